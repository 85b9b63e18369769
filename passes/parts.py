"""Parts of a program as programs: a few neighbouring ops, whose operands are arguments and whose results are returned.

What a pass does to a few ops is often hidden in a program: no argument makes an operand in the middle infinite, and no
result tells one zero from another. In a part each value that it reads is an argument, which may be anything, and each
that others read is a result. It is a valid program, of which a pass has to keep the meaning too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from smelt.ir import mlir
from smelt.ir.builder import Function, OpView, Value, functions, new_function, read_function
from smelt.ir.control import callees
from smelt.ir.dialect import context

from .extract import inputs_of
from .kernels.analysis import users_of
from .rewrite import has_body, replay

#: How many ops lie one behind the other in a part, and behind how many the next one begins: long parts for patterns of
#: many ops, short ones for those whose results other ops would hide, as a sum does the sign of a zero.
LENGTHS = ((6, 3), (2, 1), (1, 1))


def parts_of(module: Any) -> Iterator[tuple[str, Any]]:
    """For each part the name of its function, and a module with the part as ``@main``."""
    for name, operation in functions(module).items():
        if not has_body(operation):
            continue
        function = read_function(operation)
        levels, readers = _levels(function), users_of(function)
        for length, step in LENGTHS:
            for low in range(0, max(levels.values(), default=0), step):
                ops = [op for op in function.ops if low < levels[op] <= low + length]
                if (made := _module_of(module, function, ops, levels, readers)) is not None:
                    yield name, made


def _levels(function: Function) -> dict[OpView, int]:
    """How many ops lie one behind the other up to each; 0 for those that depend on no argument."""
    levels: dict[OpView, int] = {}
    of_value = dict.fromkeys(function.arguments, 1)
    for op in function.ops:
        levels[op] = max((of_value.get(v, 0) for v in op.operands), default=0)
        of_value.update(dict.fromkeys(op.results, levels[op] + 1 if levels[op] else 0))
    return levels


def _module_of(
    module: Any, function: Function, ops: Sequence[OpView], levels: dict[OpView, int],
    readers: dict[Value, list[OpView | None]],
) -> Any:  # fmt: skip
    """A module whose ``@main`` consists of `ops` and the constants that they read; None where values are no arrays."""
    constants: dict[OpView, None] = {}
    pending = [v for op in ops for v in op.operands]
    while pending:
        owner = pending.pop().owner
        if owner is not None and not levels[owner] and owner not in constants:
            constants[owner] = None
            pending += owner.operands
    whole, inside = [op for op in function.ops if op in constants] + list(ops), set(ops)
    arguments = inputs_of(whole)
    returns = [r for op in ops for r in op.results if any(reader not in inside for reader in readers.get(r, ()))]
    if not returns or any(v.aval is None for v in (*arguments, *returns)):
        return None
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
