"""Other values of an op's attributes than its example has, by what the op declares them to be."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from smelt.ir import dtypes
from smelt.ir.op import Op

from .op_cases import Case, example, valid

#: Of each attribute, so many values at most that the op takes.
MOST = 6


def variants(case: Case) -> Iterator[Case]:
    """The case with another value of one attribute, as far as `infer` takes that."""
    for name, value in case.attrs:
        field = case.op.attrs.get(name)
        others = _OTHERS.get(field.type) if field is not None else None
        if others is None:
            continue
        found = (
            variant
            for other in others(value)
            if repr(other) != repr(value)
            for variant in valid(case.op, case.avals, tuple((k, other if k == name else v) for k, v in case.attrs))
        )
        yield from itertools.islice(found, MOST)


def varied(op: Op) -> tuple[Case, ...]:
    """Those of the op's example."""
    return tuple(variants(example(op)))


def _bools(value: bool) -> Iterator[bool]:
    yield not value


def _ints(value: int) -> Iterator[int]:
    yield from dict.fromkeys((value + 1, value - 1, -value, 0, 1, 2, 3, 5))


def _floats(value: float) -> Iterator[float]:
    yield from dict.fromkeys((-value, value / 2, value + 1.0, 0.0, 1.0, -1.5))


def _tuples(value: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Reversed, with one integer changed, with one less, with one more."""
    yield value[::-1]
    for i, number in enumerate(value):
        yield from ((*value[:i], other, *value[i + 1 :]) for other in (number + 1, number - 1))
    for i in range(len(value)):
        yield (*value[:i], *value[i + 1 :])
    yield from ((*value, other) for other in (0, 1))


def _numbers(value: Any) -> Iterator[Any]:
    if isinstance(value, bool):
        return _bools(value)
    return _ints(value) if isinstance(value, int) else _floats(value)


#: By the type of a field; words, arrays and types have none: what they may be, only the op knows.
_OTHERS: dict[str, Callable[[Any], Iterator[Any]]] = {
    "Bool": _bools, "Int": _ints, "Float": _floats, "Ints": _tuples, "Number": _numbers,
    "Element": lambda value: iter(dtypes.ALL),
}  # fmt: skip
