"""What the signatures of public functions say, for type checkers and readers.

At run time the names of kinds of arguments are placeholders: functions check what they are given themselves, and
annotations are never evaluated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

__all__: list[str] = []

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")
Aux = TypeVar("Aux")

Scalar = bool | int | float | complex

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence
    from types import EllipsisType
    from typing import IO, ClassVar, Protocol, SupportsIndex, TypeAlias

    import numpy as np
    from typing_extensions import TypeVarTuple, Unpack  # which needs not be installed

    from smelt.ir.dtypes import DType
    from smelt.runtime.device import Device

    from .arrays import array
    from .streams import Stream

    R_co = TypeVar("R_co", covariant=True)

    class SupportsArray(Protocol):
        """What NumPy can make an array of."""

        def __array__(self, *args: Any, **kwargs: Any) -> Any: ...

    class SupportsMLXArray(Protocol):
        """What stands for an array of its own."""

        def __mlx_array__(self) -> array: ...

    class SupportsDLPack(Protocol):
        """What exports its memory by DLPack."""

        def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

    class Function(Protocol[P, R_co]):
        """A function with the arguments P and the result R. As the result of overloads it fares better than
        Callable: mypy, which sees no types in a lambda, gives Function[Any, Any], which may be called."""

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...

    HostArray: TypeAlias = np.ndarray[Any, np.dtype[Any]]
    #: An array, a Python scalar, nested lists of scalars or arrays, or anything NumPy reads.
    ArrayLike: TypeAlias = (
        array | Scalar | HostArray | np.generic | list[Any] | tuple[Any, ...] | range | bytes | bytearray | memoryview
        | SupportsArray | SupportsDLPack | SupportsMLXArray
    )  # fmt: skip
    #: A stream, a device or its name; checked, else ignored: arrays run on the default device.
    StreamOrDevice: TypeAlias = Stream | Device | str | None
    #: A dtype, its name, or what NumPy and Python call it.
    DTypeLike: TypeAlias = DType | str | type | np.dtype[Any]
    #: What stands between the brackets of ``x[…]``.
    Index: TypeAlias = (
        SupportsIndex | slice | EllipsisType | array | HostArray | list[Any] | tuple[Any, ...] | None
    )
    #: A path or an open file.
    File: TypeAlias = str | os.PathLike[str] | IO[bytes]
    class Dataclass(Protocol):
        """An instance of a dataclass."""

        __dataclass_fields__: ClassVar[dict[str, Any]]

    #: Nested lists, tuples and dicts of arrays, and dataclasses. Other trees are of no type that a checker knows.
    ArrayTree: TypeAlias = array | Sequence["ArrayTree"] | Mapping[Any, "ArrayTree"] | Dataclass
    IsLeaf: TypeAlias = Callable[[Any], Any] | None

    Tree = TypeVar("Tree", bound=ArrayTree)
    #: Carries with Python numbers, which come back as arrays.
    WithScalars: TypeAlias = (
        tuple[Scalar, Unpack[tuple[Any, ...]]]
        | tuple[Any, Scalar, Unpack[tuple[Any, ...]]]
        | tuple[Any, Any, Scalar, Unpack[tuple[Any, ...]]]
        | list[int] | list[float] | dict[str, int] | dict[str, float]
    )  # fmt: skip

    # Carries, elements and results of loops. A bound would be all that pyright tells a lambda.
    C = TypeVar("C")
    X = TypeVar("X")
    Y = TypeVar("Y")
    Operands = TypeVarTuple("Operands")
else:
    Function = HostArray = ArrayLike = StreamOrDevice = DTypeLike = Index = File = ArrayTree = Any
