"""How a library computes an op: what kernels do before its step and behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from smelt.ir.aval import Aval
from smelt.ir.builder import Value


@dataclass(frozen=True)
class Laid:
    """A buffer that a kernel writes for the library.

    Attributes:
        aval: its type.
        compute: makes it, of the builder and the operand.
        operand: the number of the operand that it is made of; None: it is made of nothing.
        in_rows: whether each element is the reduction of a row.
    """

    aval: Aval
    compute: Callable[..., Value]
    operand: int | None
    in_rows: bool = False


@dataclass(frozen=True)
class Made:
    """A kernel that makes results of what the library wrote.

    Attributes:
        results, read: by their numbers, results of the op and outputs of the library.
        compute: makes the results, of the builder and the outputs.
        in_rows: whether each element is the reduction of a row.
    """

    results: Sequence[int]
    read: Sequence[int]
    compute: Callable[..., Sequence[Value]]
    in_rows: bool = False


@dataclass(frozen=True)
class Form:
    """How a library computes an op.

    Attributes:
        laid: what is written for it beside the operands. What is made of an operand takes its place, in order.
        outputs: what it writes; None: the results of the op.
        kept: by number of an output, that of the result which it is.
        made: how the other results are made.
        columns: results that are outputs whose last two axes have changed places.
    """

    laid: Sequence[Laid] = ()
    outputs: Sequence[Aval] | None = None
    kept: Mapping[int, int] = field(default_factory=dict)
    made: Sequence[Made] = ()
    columns: tuple[int, ...] = ()


def turned(x: Any) -> Aval:
    """The type of the transposed matrices."""
    return Aval((*x.shape[:-2], *x.shape[:-3:-1]), x.dtype)
