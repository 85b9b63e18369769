"""What the kernel IR of a segment says of the whole program, for its manifest."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from smelt.ir import mlir
from smelt.ir.aval import Aval
from smelt.ir.dialect import context
from smelt.passes.rewrite import ARENA_BYTES

from .program import Program


def describe(program: Program, operation: Any, names: Sequence[str]) -> None:
    """Note the program's arguments, results and memory.

    Args:
        operation: the function that launches. names: of the arguments, where these are known.
    """
    ir, ctx = mlir.ir, context()
    i64 = ir.IntegerType.get_signless(64, ctx)
    outs = [f"result{i}" for i in range(len(program.results))]
    attributes = operation.attributes
    attributes["smelt.results"] = ir.IntegerAttr.get(i64, len(program.results))
    attributes[ARENA_BYTES] = ir.IntegerAttr.get(i64, program.arena_bytes)
    called = [name or f"arg{i}" for i, name in enumerate(names)]
    attributes["smelt.arguments"] = _arrays(called, program.arguments)
    attributes["smelt.array_results"] = _arrays(outs, program.results)
    if program.aliases:
        attributes["smelt.aliases"] = _aliases(program.aliases)


@functools.cache
def cleanup() -> Any:
    """A pass manager: what schedules compute twice is computed once."""
    return mlir.passmanager.PassManager.parse("builtin.module(cse)", context())


def _aliases(aliases: Mapping[int, int | tuple[str, int]]) -> Any:
    ir, ctx = mlir.ir, context()
    i64 = ir.IntegerType.get_signless(64, ctx)
    found = []
    for result, source in aliases.items():
        kind, index = ("argument", source) if isinstance(source, int) else source
        numbers = [ir.IntegerAttr.get(i64, n) for n in (result, index)]
        found.append(ir.ArrayAttr.get([numbers[0], ir.StringAttr.get(kind, ctx), numbers[1]], ctx))
    return ir.ArrayAttr.get(found, ctx)


def _arrays(names: Sequence[str], avals: Sequence[Aval]) -> Any:
    ir, ctx = mlir.ir, context()
    return ir.ArrayAttr.get(
        [
            ir.ArrayAttr.get(
                [
                    ir.StringAttr.get(name, ctx),
                    ir.StringAttr.get(aval.dtype.name, ctx),
                    ir.DenseI64ArrayAttr.get(list(aval.shape), ctx),
                ],
                ctx,
            )
            for name, aval in zip(names, avals)
        ],
        ctx,
    )
