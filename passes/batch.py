"""Batch: vectorization, ``smelt.batch`` of a function replaced by a function.

Before::

    %v = "smelt.batch"(%f) {size = 8 : i64, in_axes = array<i64: 0>, out_axes = array<i64: 0>}
                                      where @f is: %0 = "smelt.sin"(%x) : (tensor<4xf32>) -> tensor<4xf32>

After, with the new function::

    func.func private @f_batch(%x: tensor<8x4xf32>) { %0 = "smelt.sin"(%x) : (tensor<8x4xf32>) ... }
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from smelt.ir.builder import Builder, Function, Value, fresh_name, new_function
from smelt.ir.op import registry as ops

from . import control_batch
from .registry import Pass, register_pass
from .rewrite import argument_locations, expand_transforms


@register_pass("batch")
@dataclass(frozen=True)
class BatchPass(Pass):
    """Expand smelt.batch of functions that contain no further transformation."""

    def run(self, module: Any, statistics: Counter) -> None:
        statistics["functions batched"] += expand_transforms(module, "batch", make_batch)


def push_batch(
    module: Any, b: Builder, function: Function, arguments: Sequence[Value], dims: Sequence[int | None], size: int
) -> tuple[list[Value], list[int | None]]:
    """Emit `function` over a batch axis: results and where their batch axes stand."""
    env = dict(zip(function.arguments, arguments))
    dim: dict[Value, int | None] = dict(zip(function.arguments, dims))
    for op in function.ops:
        operands = [env[v] for v in op.operands]
        places = [dim[v] for v in op.operands]
        if all(d is None for d in places):
            results: Sequence[Value] = b.clone(op, operands)
            out: Sequence[int | None] = [None] * len(results)
        else:
            with b.at(op.location):
                if op.op.kind == "control":
                    results, out = control_batch.push(module, b, op, operands, places, size)
                else:
                    results, out = op.op.batch(b, operands, places, **op.attrs)
        env.update(zip(op.results, results))
        dim.update(zip(op.results, out))
    return [env[v] for v in function.returns], [dim[v] for v in function.returns]


def make_batch(module: Any, function: Function, attrs: dict[str, Any]) -> str:
    """The function on batched arguments."""
    name = fresh_name(module, f"{function.name}_batch")
    signature = ops["batch"].signature(  # type: ignore[attr-defined]
        [a.aval for a in function.arguments], [r.aval for r in function.returns], **attrs
    )
    _, arguments, b = new_function(
        module,
        name,
        signature[0],
        signature[1],
        function.mlir.location,
        before=function.mlir,
        argument_locations=argument_locations(function),
    )
    dims = [None if a < 0 else a for a in attrs["in_axes"]]
    results, places = push_batch(module, b, function, arguments, dims, attrs["size"])
    outs = []
    for value, place, axis, aval in zip(results, places, attrs["out_axes"], signature[1]):
        if axis >= 0 and place is None:
            unbatched = (*aval.shape[:axis], 1, *aval.shape[axis + 1 :])
            value = b.broadcast_to(b.reshape_to(value, unbatched), aval.shape)
        elif axis >= 0 and place is not None:
            value = b.move_axis(value, place, axis)
        elif place is not None:
            # The caller said that this result does not depend on the batch: all its slices are equal.
            ndim = value.ndim
            first = b.slice(
                value, start=(0,) * ndim, stride=(1,) * ndim,
                stop=tuple(min(1, d) if i == place else d for i, d in enumerate(value.shape)),
            )  # fmt: skip
            value = b.reshape_to(first, aval.shape)
        outs.append(value)
    b.return_(outs)
    return name
