"""Parts of a program as programs: a few neighbouring ops, whose operands are arguments and whose results are returned.

What a pass does to a few ops is often hidden in a program: no argument makes an operand in the middle infinite, and no
result tells one zero from another. In a part each value that it reads is an argument, which may be anything, and each
that others read is a result. It is a valid program, of which a pass has to keep the meaning too.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from functools import partial
from typing import Any, NamedTuple

from smelt.ir import mlir
from smelt.ir.builder import Function, OpView, Value, functions, new_function, read_function
from smelt.ir.control import callees
from smelt.ir.dialect import context

from .extract import inputs_of
from .kernels.analysis import users_of
from .rewrite import has_body, replay
from .simplify.cse import attributes_key

#: How many ops lie one behind the other in a part, and behind how many the next one begins: long parts for patterns of
#: many ops, short ones for those whose results other ops would hide, as a sum does the sign of a zero.
LENGTHS = ((6, 3), (2, 1), (1, 1))


def parts_of(module: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """For each part the name of its function, and what makes a module with the part as ``@main``. Of parts that differ
    in the names of values alone there is the first.
    """
    seen: set[Hashable] = set()
    for name, operation in functions(module).items():
        if not has_body(operation):
            continue
        cuts = _Cuts(read_function(operation))
        for length, step in LENGTHS:
            for low in range(0, cuts.height, step):
                part = cuts.part(low, low + length)
                if part is not None and (key := _key(part)) not in seen:
                    seen.add(key)
                    yield name, partial(_module_of, module, part)


class _Part(NamedTuple):
    """Ops with the constants that they read, what else they read, and what others read of them."""

    ops: list[OpView]
    arguments: list[Value]
    returns: list[Value]


class _Cuts:
    """A function in parts.

    Attributes:
        height: how many ops lie one behind the other.
    """

    def __init__(self, function: Function):
        self._readers = users_of(function)
        self._place = {op: i for i, op in enumerate(function.ops)}
        self._levels: dict[OpView, int] = {}  # 0 for those that depend on no argument
        self._ranked: dict[int, list[OpView]] = {}
        of_value = dict.fromkeys(function.arguments, 1)
        for op in function.ops:
            level = self._levels[op] = max((of_value.get(v, 0) for v in op.operands), default=0)
            self._ranked.setdefault(level, []).append(op)
            of_value.update(dict.fromkeys(op.results, level + 1 if level else 0))
        self.height = max(self._ranked, default=0)

    def part(self, low: int, high: int) -> _Part | None:
        """The ops above level `low`, up to `high`; None where values are no arrays."""
        ops = [op for level in range(low + 1, high + 1) for op in self._ranked.get(level, ())]
        constants: dict[OpView, None] = {}
        pending = [v for op in ops for v in op.operands]
        while pending:
            owner = pending.pop().owner
            if owner is not None and not self._levels[owner] and owner not in constants:
                constants[owner] = None
                pending += owner.operands
        whole, inside = sorted([*constants, *ops], key=self._place.__getitem__), set(ops)
        arguments = inputs_of(whole)
        results = [r for op in whole if op in inside for r in op.results]
        returns = [r for r in results if any(reader not in inside for reader in self._readers.get(r, ()))]
        if not returns or any(v.aval is None for v in (*arguments, *returns)):
            return None
        return _Part(whole, arguments, returns)


def _key(part: _Part) -> Hashable:
    """Equal for parts that differ in the names of values alone."""
    names = {v: i for i, v in enumerate((*part.arguments, *(r for op in part.ops for r in op.results)))}
    ops = tuple((op.name, attributes_key(op), *(names[v] for v in op.operands)) for op in part.ops)
    return ops, tuple(v.aval for v in names), tuple(names[v] for v in part.returns)


def _module_of(module: Any, part: _Part) -> Any:
    """A module whose ``@main`` is the part."""
    whole, arguments, returns = part
    made = mlir.ir.Module.create(mlir.ir.Location.unknown(context()))
    _, values, b = new_function(made, "main", [v.aval for v in arguments], [v.aval for v in returns], public=True)
    env: dict[Value, Value] = dict(zip(arguments, values))
    replay(b, whole, env)
    b.return_([env[v] for v in returns])
    known = functions(module)
    called = [name for op in whole for name in callees(op)]
    copied: set[str] = set()
    while called:
        name = called.pop()
        if name not in copied and name in known:
            copied.add(name)
            known[name].clone(mlir.ir.InsertionPoint(made.body))
            called += [n for op in read_function(known[name]).ops for n in callees(op)] if has_body(known[name]) else []
    return made
