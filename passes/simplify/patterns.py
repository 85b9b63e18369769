"""Patterns, and the builder that tries them before it emits an op.

A pattern is a function from an op that is about to be emitted to the value that replaces it, or
None where it does not match. It is registered for op names or for a kind of ops::

    @pattern("transpose")
    def transpose_of_transpose(b, at):
        \"\"\"transpose(transpose(x, p), q) → transpose(x, p∘q).\"\"\"

Ops are tried from the first to the last, so operands are already in their final form, and what a
pattern emits is tried in turn: one sweep reaches the fixpoint.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from smelt.ir import mlir
from smelt.ir.aval import Aval
from smelt.ir.builder import STRUCTURAL, Builder, Function, OpView, Value, read_function, renew
from smelt.ir.errors import IRError, PipelineError, did_you_mean, shown
from smelt.ir.op import Op
from smelt.ir.ops.constants import constant_array
from smelt.ir.scopes import place
from smelt.ir.values import full_name

from ..rewrite import erase_whole, unfused_functions
from .reads import is_pure


class Site:
    """An op that is about to be emitted."""

    __slots__ = ("attrs", "avals", "op", "operands")

    def __init__(self, op: Op, operands: Sequence[Value], attrs: dict[str, Any], avals: Sequence[Aval]):
        self.op, self.operands, self.attrs, self.avals = op, operands, attrs, avals

    @property
    def aval(self) -> Aval:
        """The type of the (first) result."""
        return self.avals[0]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.avals[0].shape


Pattern = Callable[["PatternBuilder", Site], "Value | None"]

_by_name: dict[str, list[Pattern]] = {}
_by_kind: dict[str, list[Pattern]] = {}
_foreign: list[Pattern] = []
_ROOM = __name__.rpartition(".")[0] + "."
_tables: dict[Op, tuple[Pattern, ...]] = {}


def pattern(*names: str, kind: str | None = None) -> Callable[[Pattern], Pattern]:
    """Decorator: try a function on ops of these names, or on all ops of a kind (these come first)."""

    def register(function: Pattern) -> Pattern:
        if not function.__module__.startswith(_ROOM):
            _foreign.append(function)
        for name in names:
            _add(_by_name.setdefault(name, []), function)
        if kind is not None:
            _add(_by_kind.setdefault(kind, []), function)
        _tables.clear()
        return function

    return register


def has_foreign_patterns() -> bool:
    """Whether another package has registered a pattern."""
    return bool(_foreign)


def _add(patterns: list[Pattern], function: Pattern) -> None:
    """Add a pattern; one of smelt once, for a module whose import was interrupted is imported again."""
    if function.__module__.startswith(_ROOM):
        name = (function.__module__, function.__qualname__)
        patterns[:] = [p for p in patterns if (p.__module__, p.__qualname__) != name]
    patterns.append(function)


def patterns_of(op: Op) -> tuple[Pattern, ...]:
    """The patterns tried on an op, in order."""
    table = _tables.get(op)
    if table is None:
        table = _tables[op] = (*_by_kind.get(op.kind, ()), *_by_name.get(op.name, ()))
    return table


def patterns_without(names: Sequence[str]) -> Callable[[Op], tuple[Pattern, ...]]:
    """`patterns_of` but for those of some names. Raises PipelineError for a name that no pattern has."""
    if not names:
        return patterns_of
    left_out = {name.replace("-", "_") for name in names}
    if unknown := left_out - set(all_patterns()):
        name = min(unknown).replace("_", "-")
        hint = did_you_mean(name, [n.replace("_", "-") for n in all_patterns()])
        message = f"canonicalize has no rewrite {shown(name)}{hint} (`smelt-opt --list-rewrites` lists them)"
        raise PipelineError(message)
    return lambda op: tuple(p for p in patterns_of(op) if p.__name__ not in left_out)


def all_patterns() -> dict[str, tuple[str, ...]]:
    """Names of all patterns, with the ops or kinds that each is tried on."""
    found: dict[str, list[str]] = {}
    for where in (_by_kind, _by_name):
        for key, registered in where.items():
            for function in registered:
                found.setdefault(function.__name__, []).append(key)
    return {name: tuple(keys) for name, keys in found.items()}


class PatternBuilder(Builder):
    """Emits what the patterns make of an op. `sweep_all` applies them to the functions of a module.

    `with_effects`: the functions that have effects. `patterns_of`: what is tried.

    Attributes:
        keep_gradients: whether derivatives of what is built may still be taken, so that ops which only matter for them
            have to stay.
    """

    def __init__(
        self,
        statistics: Counter,
        with_effects: set[str],
        patterns_of: Callable[[Op], Sequence[Pattern]] = patterns_of,
    ):
        super().__init__(None)
        self.with_effects, self.patterns_of = with_effects, patterns_of
        self.statistics, self.keep_gradients = statistics, False
        self._ops = []

    def sweep_all(self, module: Any) -> None:
        """`sweep` each function of a module that is no kernel."""
        decoded = [read_function(f) for f in unfused_functions(module)]
        transforms = [kind for kind in STRUCTURAL if kind != "call"]
        self.keep_gradients = any(op.op.kind in transforms for f in decoded for op in f.ops)
        for function in decoded:
            self.sweep(function)

    def sweep(self, function: Function) -> None:
        """Rewrite a function in place, from the first op to the last; then erase dead ops."""
        new: dict[Value, Value] = {}
        self._ops, self._scope = [], function.scope
        at = mlir.ir.InsertionPoint
        for value in function.arguments:
            value.builder = self
        for view in function.ops:
            if new:
                view.operands = tuple([new.get(v, v) for v in view.operands])
            table = self.patterns_of(view.op)
            if table:
                self._ip, self.location = at(view._mlir), view._mlir.location
                avals = [r.aval for r in view.results]
                rewritten = self._rewritten(table, view.op, view.operands, view.attrs, avals)
                if rewritten is not None:
                    old = view.results[0]
                    old.mlir.replace_all_uses_with(rewritten.mlir)
                    view.mlir.erase()
                    new[old] = rewritten
                    continue
            for result in view.results:
                result.builder = self
            self._ops.append(view)
        read = set(function.ops)
        function.returns = [new.get(v, v) for v in function.returns]
        function.ops = self._erase_dead(function.returns)
        renew(function, [view for view in function.ops if view not in read])

    def _erase_dead(self, returned: Iterable[Value]) -> list[OpView]:
        """Erase the ops that nobody reads; returns the others."""
        live, left = {v.owner for v in returned}, []
        for view in reversed(self._ops or ()):
            if view in live or not is_pure(view, self.with_effects):
                live.update([v.owner for v in view.operands])
                left.append(view)
            else:
                if view.op.kind == "control" or view.op.mixed:  # helpers may read dead values, too
                    erase_whole(view.mlir)
                else:
                    view.mlir.erase()
                self.statistics["dead-ops-erased"] += 1
        return left[::-1]

    def _rewritten(
        self,
        table: Sequence[Pattern],
        op: Op,
        operands: Sequence[Value],
        attrs: dict[str, Any],
        avals: Sequence[Aval],
    ) -> Value | None:
        """What the first pattern that matches makes of an op."""
        site = Site(op, operands, attrs, avals)
        for rewrite in table:
            value = rewrite(self, site)
            if value is not None:
                if not isinstance(value, Value) or value.aval != avals[0]:
                    found = value.aval if isinstance(value, Value) else shown(value)
                    what = f"the pattern {rewrite.__name__} returned {found} in place of {avals[0]}"
                    raise IRError(f"{what}, the result of {full_name(op)}{place(self.location)}")
                if value.scope is not self._scope or not value.standing:
                    self.read(f"the pattern {rewrite.__name__} for {full_name(op)}", [value])
                self.statistics[rewrite.__name__.replace("_", "-")] += 1
                return value
        return None

    def emit_typed(
        self, op: Op, operands: Sequence[Value], attrs: dict[str, Any], avals: Sequence[Aval]
    ) -> tuple[Value, ...]:
        value = self._rewritten(self.patterns_of(op), op, operands, attrs, avals)
        if value is not None:
            return (value,)
        return super().emit_typed(op, operands, attrs, avals)

    # What patterns emit all the time.

    def splat(self, value: Any, aval: Aval) -> Value:
        """A tensor of type `aval` filled with one number."""
        return self.full(aval.shape, value, aval.dtype)


# What patterns ask of values.


def scalar_of(x: Value) -> Any:
    """The number that fills `x` as written in the IR, or None unless it is a (broadcast) constant."""
    owner = x.owner
    if owner is None:
        return None
    if owner.op.name == "broadcast":
        owner = owner.operands[0].owner
        if owner is None:
            return None
    return owner.attrs["value"] if owner.op.name == "constant" else None


def array_of(x: Value) -> np.ndarray | None:
    """The elements of a constant (as a 0-d array, also where broadcast) or of a literal, else None."""
    owner = x.owner
    if owner is not None and owner.op.name == "literal":
        return owner.attrs["value"]
    value = scalar_of(x)
    return None if value is None else constant_array(value, x.dtype)


def python_scalar(array: np.ndarray) -> bool | int | float | complex:
    """A 0-d array as the Python number that `smelt.constant` takes."""
    kind = array.dtype.kind
    if kind == "b":
        return bool(array)
    if kind in "iu":
        return int(array)
    value = complex(array) if kind == "c" else float(array)
    return math.nan if value != value and kind != "c" else value  # one NaN, whatever its sign bit


def is_number(value: Any, wanted: float) -> bool:
    """Whether a constant's value (None: not a constant) is a given nonzero number."""
    return value is not None and value == wanted


def same_number(x: Value, y: Value) -> bool:
    """Whether both are the same value, or filled with the same number."""
    if x is y:
        return True
    a, b = scalar_of(x), scalar_of(y)
    return a is not None and b is not None and x.dtype is y.dtype and repr(a) == repr(b)


def unit_free(shape: Sequence[int]) -> tuple[int, ...]:
    """A shape without its axes of size one."""
    return tuple(d for d in shape if d != 1)


def adds_unit_axes(before: Sequence[int], after: Sequence[int]) -> bool:
    """Whether a reshape only inserts and removes axes of size one."""
    return unit_free(before) == unit_free(after)


def aligned(shape: Sequence[int], ndim: int) -> tuple[int, ...]:
    """A shape with leading ones up to `ndim` axes, as broadcasting sees it."""
    return (1,) * (ndim - len(shape)) + tuple(shape)
