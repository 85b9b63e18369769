"""Branches and loops: their functions are called in regions."""

from __future__ import annotations

from collections.abc import Sequence

from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.control import SCAN, layout

from ..writer import Tensor
from .table import Call, rule


@rule("call")
def _call(call: Call) -> Sequence[Tensor]:
    return call.writer.call(call.attrs["callee"], call.operands, call.avals)


@rule("cond")
def _cond(call: Call) -> Sequence[Tensor]:
    w, (choice, *operands) = call.writer, call.operands
    if choice.dtype not in (dtypes.bool_, dtypes.int32):
        last = len(call.attrs["branches"]) - 1
        inside = w.compare("LT", choice, last)
        if choice.dtype.kind == "i":
            inside = inside & w.compare("GE", choice, 0)
        choice = w.convert(w.select(inside, choice, last), dtypes.int32)
    branches = [lambda name=name: w.call(name, operands, call.avals) for name in call.attrs["branches"]]
    return w.case(choice, branches, call.avals)


@rule("while")
def _while(call: Call) -> Sequence[Tensor]:
    w, n = call.writer, call.attrs["constants"]
    constants, carry = call.operands[:n], call.operands[n:]
    avals = [x.aval for x in carry]

    def test(*carried: Tensor) -> Tensor:
        return w.call(call.attrs["cond"], [*constants, *carried], [Aval((), dtypes.bool_)])[0]

    return w.while_(test, lambda *c: w.call(call.attrs["body"], [*constants, *c], avals), carry)


@rule("scan")
def _scan(call: Call) -> Sequence[Tensor]:
    """A loop that counts, reads the elements of the arrays and writes those of the results."""
    w, a = call.writer, call.attrs
    parts = layout(SCAN, a, len(call.operands))
    constants = [call.operands[i] for i in parts.constants]
    carries = [call.operands[i] for i in parts.carries]
    xs = [call.operands[i] for i in parts.xs]
    length, count = a["length"], len(carries)
    stacked = call.avals[count:]
    first = [*carries, *(w.broadcast(w.scalar(0, y.dtype), y.shape) for y in stacked)]

    def step(i: Tensor, *values: Tensor) -> Sequence[Tensor]:
        carry, made = values[:count], values[count:]
        at, zero = w.scalar(length - 1, i.dtype) - i if a["reverse"] else i, w.scalar(0, i.dtype)
        items = []
        for x in xs:
            piece = w.dynamic_slice(x, [at, *(zero for _ in x.shape[1:])], (1, *x.shape[1:]))
            items.append(w.reshape(piece, x.shape[1:]))
        elements = [Aval(y.shape[1:], y.dtype) for y in stacked]
        found = w.call(a["body"], [*constants, *carry, *items], [*(c.aval for c in carry), *elements])
        results = []
        for whole, y in zip(made, found[count:]):
            starts = [at, *(zero for _ in y.shape)]
            row = w.reshape(y, (1, *y.shape))
            results.append(w.op("stablehlo.dynamic_update_slice", [whole, row, *starts], whole.aval))
        return [*found[:count], *results]

    return w.loop(length, step, first)
