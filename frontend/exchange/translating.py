"""What readers of other systems' programs share: errors that say where they belong, and weights that are replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from smelt import array
from smelt.ir import dtypes, mlir
from smelt.ir.errors import ArgumentTypeError, IRError, ShapeError, SmeltError, at_user_line, shown

from ..lazy.arrays import as_array


class Refused(IRError):
    """An op, or a form of one, that has no translation: why, as what follows the op's name."""


class PlacedError(IRError):
    """An error that names its node already."""


class SizesError(ShapeError):
    """What a program itself says of sizes that it is not for."""


@contextmanager
def placed(place: Callable[[bool], str]) -> Iterator[None]:
    """Let errors of a node's rule say which node it is.

    Args:
        place: what stands before the reason, which for a `Refused` follows the op's name.
    """
    try:
        yield
    except (PlacedError, SizesError):
        raise
    except SmeltError as error:
        reason = str(error).partition("; at ")[0]
        kind = PlacedError if isinstance(error, IRError) else type(error)
        raise kind(place(isinstance(error, Refused)) + reason) from None
    except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
        why = f"this form of it is not translated ({type(error).__name__}: {error})"
        raise PlacedError(place(False) + why) from error
    except RecursionError:
        raise PlacedError(place(False) + "graphs nest too deeply") from None


def replaced(who: str, name: str, mine: Mapping[str, array], weights: Mapping[str, Any]) -> dict[str, array]:
    """The weights of a program, some of them replaced.

    Args:
        who: the function that made the program, for errors. name: of the program.

    Raises:
        ArgumentTypeError: names that it does not have. ShapeError: another shape than its own.
    """
    if weights is mine:
        return dict(mine)
    unknown = [key for key in weights if key not in mine]
    if unknown:
        message = f"{name} has no weight {shown(unknown[0])}; it has {', '.join(mine) or 'none'}"
        raise ArgumentTypeError(at_user_line(f"{who}: {message}"))
    found = dict(mine)
    for key, value in weights.items():
        found[key] = as_array(value, mine[key].dtype)
        if found[key].shape != mine[key].shape:
            message = f"weight {key} of {name} must be {mine[key].aval}, is {found[key].aval}"
            raise ShapeError(at_user_line(f"{who}: {message}"))
    return found


class OpenAval(NamedTuple):
    """The type of an array of which some extents may be any: they are None in `shape`."""

    shape: tuple[int | None, ...]
    dtype: dtypes.DType

    @staticmethod
    def of(kind: Any) -> OpenAval | None:
        """That of an MLIR type; None where it is no tensor with open extents."""
        if not isinstance(kind, mlir.ir.RankedTensorType) or kind.has_static_shape or kind.encoding is not None:
            return None
        extents = tuple(None if kind.is_dynamic_dim(i) else kind.get_dim_size(i) for i in range(kind.rank))
        return OpenAval(extents, dtypes.by_mlir(str(kind.element_type)))

    def __repr__(self) -> str:
        return f"{self.dtype.mlir}[{','.join('?' if d is None else str(d) for d in self.shape)}]"
