"""What the rules of branches, loops and checkpoints emit, remembered: one function is transformed once.

A function that is run at two places, and runs another one at two, would be transformed four times, and one that is
twenty levels deep a million times. A rule asks for the types of its operands, and for which of them have a tangent, a
cotangent, or are linear: so for others like these it emits the same ops, which name the same functions. While one
transformation is expanded they are copied.

Only what rules emit on the way to their results is copied: those of ops with effects of their own run each time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from smelt.ir.builder import CALL, STRUCTURAL, Builder, OpView, Value, function_operation
from smelt.ir.control import callees

from ..rewrite import CHECKPOINT, RULES
from ..rules import Attrs, Flags, Maybe, Values, function_rules


class _Emitted:
    """What a rule has emitted: the values that it was given, and those that it returned."""

    def __init__(self, given: Sequence[Value], returned: Sequence[Value | None]):
        self.given, self.returned = given, returned
        self._ops: list[OpView] | None = None
        self._is_read = False

    @property
    def ops(self) -> list[OpView] | None:
        """The ops between them, in order; None if one of them cannot be copied, or reads something else."""
        if not self._is_read:
            self._ops, self._is_read = self._read(), True
        return self._ops

    def _read(self) -> list[OpView] | None:
        made: list[OpView] = []
        done: set[Any] = set(self.given)
        pending = [v for v in reversed(self.returned) if v is not None]
        while pending:
            op = pending[-1].owner
            if pending[-1] in done or op in done:
                pending.pop()
            elif op is None or (op.op.kind in STRUCTURAL and op.op is not CALL):
                return None
            elif unknown := [v for v in op.operands if v not in done and v.owner not in done]:
                pending += reversed(unknown)
            else:
                done.add(op)
                made.append(op)
        return made

    def copied(self, b: Builder, given: Sequence[Value]) -> list[Value | None]:
        """The same on other values."""
        env = dict(zip(self.given, given))
        for op in self.ops or ():
            operands, avals = [env[v] for v in op.operands], [r.aval for r in op.results]
            if op.op.kind == "control":
                results = b.control(op.op, operands, op.attrs, avals)
            elif op.op is CALL:
                results = b.call(op.attrs["callee"], operands, avals)
            else:
                results = b.emit_typed(op.op, operands, op.attrs, avals)
            env.update(zip(op.results, results))
        return [None if v is None else env[v] for v in self.returned]


class Expansion:
    """What is remembered of a module while transformations of its functions are expanded.

    Attributes:
        has_rest: whether functions may have been made that nothing refers to.
    """

    def __init__(self, module: Any):
        self.module, self.has_rest = module, False
        self._known: dict[Hashable, Any] = {}
        self._naming: dict[str, list[Hashable]] = {}  #: the keys that name a function

    def get(self, key: Hashable) -> Any:
        return self._known.get(key)

    def keep(self, key: Hashable, names: Iterable[str], value: Any) -> None:
        self._known[key] = value
        for name in names:
            self._naming.setdefault(name, []).append(key)

    def forget(self, name: str) -> None:
        """A function is erased: another one may get its name."""
        for key in self._naming.pop(name, ()):
            self._known.pop(key, None)


_current: ContextVar[Expansion | None] = ContextVar("expansion", default=None)


@contextmanager
def expanding(module: Any) -> Iterator[Expansion]:
    """Remember, inside of the with block, what rules emit in a module."""
    found = Expansion(module)
    token = _current.set(found)
    try:
        yield found
    finally:
        _current.reset(token)


def expansion_of(module: Any) -> Expansion | None:
    """What is remembered of a module; None where nothing is."""
    found = _current.get()
    return found if found is not None and found.module is module else None


def jvp(
    module: Any, b: Builder, op: OpView, operands: Values, tangents: Maybe, linearize: bool
) -> tuple[Sequence[Value], Maybe]:
    """`FunctionRules.jvp` of an op."""

    def run() -> list[Value | None]:
        results, outgoing = function_rules(op.name).jvp(module, b, op, operands, tangents, linearize)
        return [*results, *outgoing]

    found = _emit(module, b, op, "jvp", [operands, tangents], (linearize,), run)
    count = len(op.results)
    return [v for v in found[:count] if v is not None], found[count:]


def partition(module: Any, b: Builder, op: OpView, operands: Values, flags: Flags) -> list[Value]:
    """`FunctionRules.partition` of an op, on other operands."""

    def run() -> Sequence[Value | None]:
        avals = [r.aval for r in op.results]
        return function_rules(op.name).partition(module, b, op.attrs, operands, flags, avals)

    return [v for v in _emit(module, b, op, "partition", [operands], tuple(flags), run) if v is not None]


def transpose(
    module: Any, b: Builder, op: OpView, cotangents: Maybe, operands: Values, linear: Flags
) -> Maybe:
    """`FunctionRules.transpose` of an op."""

    def run() -> Maybe:
        return function_rules(op.name).transpose(module, b, op, cotangents, operands, linear)

    fixed = [None if flag else v for v, flag in zip(operands, linear)]
    return _emit(module, b, op, "transpose", [fixed, cotangents], tuple(linear), run)


def dependent(module: Any, op: OpView, flags: Flags) -> Flags:
    """`FunctionRules.dependent` of an op."""
    expansion = expansion_of(module)
    if expansion is None:
        return function_rules(op.name).dependent(module, op.attrs, flags)
    key = ("dependent", op.name, _listed(op.attrs), *flags)
    found: Flags | None = expansion.get(key)
    if found is None:
        found = function_rules(op.name).dependent(module, op.attrs, flags)
        expansion.keep(key, callees(op), found)
    return found


def _emit(
    module: Any, b: Builder, op: OpView, what: str, groups: Sequence[Maybe], more: tuple[bool, ...],
    run: Callable[[], Sequence[Value | None]],
) -> Sequence[Value | None]:  # fmt: skip
    """What `run` returns, which emits a rule's ops for groups of values: copied where the same was emitted before."""
    expansion = expansion_of(module)
    if expansion is None or not _can_copy(module, op):
        return run()
    numbers: dict[Value, int] = {}
    pattern = [None if v is None else numbers.setdefault(v, len(numbers)) for group in groups for v in group]
    avals = [(v.aval.shape, v.aval.dtype) for v in op.operands]
    key = (what, op.name, _listed(op.attrs), *avals, *pattern, more)
    try:
        found: _Emitted | None = expansion.get(key)
    except TypeError:  # a size is a symbol
        return run()
    if found is not None and found.ops is not None:
        return found.copied(b, list(numbers))
    returned = run()
    expansion.keep(key, callees(op), _Emitted(list(numbers), returned))
    return returned


def _can_copy(module: Any, op: OpView) -> bool:
    """Whether everything that rules emit for an op is needed for results, or has no effects."""
    if op.op.kind == "control":
        return bool(op.results)
    attributes = function_operation(module, op.attrs["callee"]).attributes
    return bool(op.results) and CHECKPOINT in attributes and not any(name in attributes for name in RULES)


def _listed(attrs: Attrs) -> tuple[Any, ...]:
    return tuple(sorted(attrs.items()))
