"""Rules of ops of other packages: what they raise names the op, the rule and its line, whoever asked the op.

smelt asks ops everywhere: while it records, infers, transforms and emits. So the rules themselves are guarded, once,
where the class is defined; smelt's own are as they stand.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import dtypes
from .aval import Aval
from .errors import RuleError, SmeltError, innermost_line, shown

#: Rules that another package may state. What `host` raises is a `LibraryError` anyway: of it, shapes are looked at.
GUARDED = ("infer", "reference", "jvp", "vjp", "transpose", "batch", "lower", "element", "map_index")


def guard_rules(cls: type) -> None:
    """Guard the rules that a class states itself."""
    for rule in GUARDED:
        stated = vars(cls).get(rule)
        if callable(stated):
            setattr(cls, rule, _guarded(rule, stated))
    for rule in ("reference", "host"):
        stated = vars(cls).get(rule)
        if callable(stated):
            setattr(cls, rule, _of_shapes(rule, stated))


def _of_shapes(rule: str, stated: Callable[..., Any]) -> Callable[..., Any]:
    """A rule that computes results, whose shapes are those that `infer` tells."""

    @functools.wraps(stated)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = stated(self, *args, **kwargs)
        wanted = _shapes(self, args, kwargs)
        results = found if isinstance(found, tuple) else (found,)
        numbers = (np.ndarray, np.generic, bool, int, float, complex)
        shapes = [np.shape(x) if isinstance(x, numbers) else type(x).__name__ for x in results]
        if wanted is not None and shapes != wanted:
            said = f"the rule {rule} of smelt.{self.name} returned {_listed(shapes)}"
            raise RuleError(f"{said}, where infer says {_listed(wanted)}")
        return found

    guarded.__signature__ = inspect.signature(stated)  # type: ignore[attr-defined]
    del guarded.__wrapped__
    return guarded


def _shapes(op: Any, arrays: Sequence[Any], attrs: dict[str, Any]) -> list[tuple[int, ...]] | None:
    """Shapes of the results for operands, unless these are such as `infer` refuses: a rule may help another."""
    try:
        found = op.infer(*[Aval(x.shape, dtypes.of(x.dtype)) for x in arrays], **attrs)
    except (SmeltError, TypeError, AttributeError):
        return None
    return [aval.shape for aval in ([found] if isinstance(found, Aval) else found)]


def _listed(shapes: Sequence[Any]) -> str:
    return ", ".join(shape if isinstance(shape, str) else f"shape {shape}" for shape in shapes) or "nothing"


def _guarded(rule: str, stated: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(stated)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            found = stated(self, *args, **kwargs)
        except (SmeltError, MemoryError):
            raise
        except Exception as error:
            line = innermost_line(error)
            said = f"the rule {rule} of smelt.{self.name} failed: {type(error).__name__}: {error}"
            raise RuleError(said + (f"; at {line}" if line else "")) from error
        if rule == "infer" and not _are_types(found):
            wanted = "an Aval, or a list of them"
            raise RuleError(f"the rule infer of smelt.{self.name} returned {shown(found)}, which is not {wanted}")
        if rule == "lower" and (found is None or isinstance(found, (bool, int, float, complex, str))):
            wanted = "a scalar of its builder"
            raise RuleError(f"the rule lower of smelt.{self.name} returned {shown(found)}, which is not {wanted}")
        return found

    guarded.__signature__ = inspect.signature(stated)  # type: ignore[attr-defined]
    del guarded.__wrapped__  # by which `op_program` takes rules without what is around them
    return guarded


def _are_types(found: Any) -> bool:
    return isinstance(found, Aval) or (isinstance(found, (list, tuple)) and all(isinstance(a, Aval) for a in found))
