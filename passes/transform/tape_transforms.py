"""Transformations of functions on tapes.

The rules which the passes `jvp`, `linearize`, `transpose` and `batch` apply to functions of a module make the same of
functions that are only recorded: in microseconds an op, for sizes that change all the time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from smelt.ir.aval import Aval
from smelt.ir.builder import Value
from smelt.ir.op import of_kind
from smelt.ir.op import registry as ops
from smelt.ir.ops.call import Transform

from ..dependence import split
from .batch import Batching, settled_results
from .jvp import push_tangents
from .partition import separate
from .remembered import expanding
from .stated import FunctionCallee, emit_stated
from .tape import NeedsModule, Recorded, Tape
from .transpose import pull_cotangents

if TYPE_CHECKING:
    from .listed import ListedModule

F = TypeVar("F", bound=Callable[..., list[Value]])
_TRANSFORMS: dict[str, Callable[..., list[Value]]] = {}


def _expands(name: str) -> Callable[[F], F]:
    """Decorator: what emits the transformation called `name`."""

    def keep(function: F) -> F:
        _TRANSFORMS[name] = function
        return function

    return keep


def transform(module: ListedModule, body: Recorded, name: str, attrs: dict[str, Any]) -> Recorded:
    """What the transformation called `name` makes of a function.

    Args:
        module: has the functions that it runs, and gets those that are made.

    Raises:
        NeedsModule: there is no such transformation here. NotDifferentiableError: an op has no derivative.
    """
    found, op = _TRANSFORMS.get(name), of_kind(ops[name], Transform)
    if found is None and not op.is_stated:
        raise NeedsModule(name)
    taken, returned = op.signature([v.aval for v in body.arguments], [v.aval for v in body.returns], **attrs)
    tape = Tape()
    arguments = [tape.argument(aval) for aval in taken]
    if found is None:
        f = FunctionCallee(module, module.keep("main", body).name, body)
        return Recorded(arguments, tape.ops, emit_stated(op, tape, f, arguments, returned, attrs))
    with expanding(module):
        returns = found(module, tape, body, arguments, returned, **attrs)
    return Recorded(arguments, tape.ops, returns)


@_expands("jvp")
def _jvp(
    module: ListedModule, tape: Tape, body: Recorded, operands: Sequence[Value], _: Any, wrt: tuple[int, ...]
) -> list[Value]:
    n = len(body.arguments)
    tangents: list[Value | None] = [None] * n
    for i, t in zip(wrt, operands[n:]):
        tangents[i] = t if t.aval.dtype.is_inexact else None
    outs, pushed = push_tangents(module, tape, body, operands[:n], tangents)
    return [*outs, *(tape.zeros_like(y) if t is None else t for y, t in zip(outs, pushed))]


@_expands("vjp")
def _vjp(
    module: ListedModule, tape: Tape, body: Recorded, operands: Sequence[Value], _: Any, wrt: tuple[int, ...],
    seeds: tuple[int, ...],
) -> list[Value]:  # fmt: skip
    n, first = len(body.arguments), len(tape.ops)
    tangents: list[Value | None] = [None] * n
    for i in wrt:
        if operands[i].aval.dtype.is_inexact:
            tangents[i] = tape.argument(operands[i].aval)
    outs, pushed = push_tangents(module, tape, body, operands[:n], tangents, linearize=True)
    seeded = [(t, ct) for i, ct in zip(seeds, operands[n:]) if (t := pushed[i]) is not None]
    found = _pulled(module, tape, first, [t for t in tangents if t is not None], seeded)
    return [*outs, *(_or_zeros(tape, found.get(t) if t is not None else None, operands[i].aval)
                     for i, t in ((i, tangents[i]) for i in wrt))]  # fmt: skip


@_expands("linear_transpose")
def _linear_transpose(
    module: ListedModule, tape: Tape, body: Recorded, operands: Sequence[Value], _: Any, wrt: tuple[int, ...]
) -> list[Value]:
    flags = [i in wrt for i in range(len(body.arguments))]
    separated = separate(module, module.keep("main", body), flags)
    n, first = len(body.arguments) - len(wrt), len(tape.ops)
    residuals = iter(operands[:n])
    unknown = [tape.argument(body.arguments[i].aval) for i in wrt]
    places = dict(zip(wrt, unknown))
    given = [places[i] if i in places else next(residuals) for i in range(len(body.arguments))]
    found = _pulled(module, tape, first, unknown, list(zip(tape.inline(separated, given), operands[n:])))
    return [_or_zeros(tape, found.get(v), v.aval) for v in unknown]


def _pulled(
    module: ListedModule, tape: Tape, first: int, unknown: Sequence[Value], seeds: Sequence[tuple[Value, Value]]
) -> dict[Value, Value]:
    """Cotangents of `unknown`, given those of values on the tape which depend on them linearly. The ops from number
    `first` on that depend on them leave the tape."""
    linear, before, after = split(tape.ops[first:], unknown)
    tape.ops[first:] = before
    cotangents: dict[Value, Any] = {}
    for value, ct in seeds:
        if value in linear:
            cotangents[value] = tape.add_any(cotangents.get(value), ct)
    pull_cotangents(module, tape, after, linear, {}, cotangents)
    return cotangents


def _or_zeros(tape: Tape, value: Value | None, aval: Aval) -> Value:
    return tape.zeros(aval) if value is None else value


@_expands("batch")
def _batch(
    module: ListedModule, tape: Tape, body: Recorded, operands: Sequence[Value], returned: Sequence[Aval], size: int,
    in_axes: tuple[int, ...], out_axes: tuple[int, ...],
) -> list[Value]:  # fmt: skip
    dims = [None if a < 0 else a for a in in_axes]
    results, places = Batching(module, size).emit(tape, module.keep("main", body), operands, dims)
    return settled_results(tape, results, places, out_axes, returned)
