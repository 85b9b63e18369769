"""Batch: vectorization, ``smelt.batch`` of a function replaced by a function.

Before::

    %v = "smelt.batch"(%f) {size = 8 : i64, in_axes = array<i64: 0>, out_axes = array<i64: 0>}
                                      where @f is: %0 = "smelt.sin"(%x) : (tensor<4xf32>) -> tensor<4xf32>

After, with the new function::

    func.func private @f_batch(%x: tensor<8x4xf32>) { %0 = "smelt.sin"(%x) : (tensor<8x4xf32>) ... }

An op of the registry is batched by its `batch` rule, or where it has none by a scan over the batch
(``smelt-opt --list-ops`` shows which). Branches, loops and calls have `smelt.passes.rules`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.builder import Body, Builder, Function, OpView, Value, fresh_name, functions, new_function, read_function
from smelt.ir.control import SCAN, WHILE, callees
from smelt.ir.op import of_kind
from smelt.ir.op import registry as ops
from smelt.ir.ops.call import Transform

from ..dependence import split
from ..registry import Pass, register_pass
from ..rewrite import argument_locations, has_body
from ..rules import function_rules
from .expand import expand_transforms


@register_pass("batch")
@dataclass(frozen=True)
class BatchPass(Pass):
    """Expand smelt.batch of functions that contain no further transformation."""

    def run(self, module: Any, statistics: Counter) -> None:
        statistics["functions batched"] += expand_transforms(module, "batch", make_batch)


class Batching:
    """The vectorization of functions of one module over one batch axis of `size` elements.

    Functions made here have their batched arguments and results batched along axis 0. Which ones those
    are is decided by `depends`, before anything is emitted.

    A mask is a bool[size] value: the elements of the batch whose results will be used. Without one all
    are. It keeps loops from running for elements that would not have entered them.
    """

    def __init__(self, module: Any, size: int):
        self.module, self.size = module, size
        self._decoded: dict[str, Function] = {}
        self._made: dict[Any, str] = {}
        self._depends: dict[Any, tuple[bool, ...]] = {}
        self._found: dict[tuple[str, str], bool] = {}

    def read(self, name: str) -> Function:
        """A function of the module, decoded."""
        if name not in self._decoded:
            self._decoded[name] = read_function(functions(self.module)[name])
        return self._decoded[name]

    def loops(self, name: str) -> bool:
        """Whether a function runs a while loop, itself or in what it calls."""
        return self._contains(name, "while", self._runs_loop)

    def may_fail(self, name: str) -> bool:
        """Whether a function runs what refuses some operands by their values, as LAPACK does."""
        return self._contains(name, "library", self._runs_library)

    def _contains(self, name: str, what: str, test: Callable[[OpView], bool]) -> bool:
        key = (name, what)
        if key not in self._found:
            known = has_body(functions(self.module)[name])  # else a declaration
            self._found[key] = any(test(op) for op in self.read(name).ops) if known else False
        return self._found[key]

    def _runs_loop(self, op: OpView) -> bool:
        return op.op is WHILE or any(self.loops(name) for name in callees(op))

    def _runs_library(self, op: OpView) -> bool:
        return op.op.kind == "library" or any(self.may_fail(name) for name in callees(op))

    def depends(self, name: str, batched: Sequence[bool]) -> tuple[bool, ...]:
        """Which results of a function may differ between elements of the batch, given which arguments do."""
        key = (name, tuple(batched))
        if key not in self._depends:
            function = self.read(name)
            varying = [v for v, differs in zip(function.arguments, batched) if differs]
            found = split(function.ops, varying, self._varying).values
            self._depends[key] = tuple(v in found for v in function.returns)
        return self._depends[key]

    def _varying(self, op: OpView, flags: list[bool]) -> Sequence[bool]:
        if op.op.kind in ("control", "call"):
            return function_rules(op.name).varying(self, op, flags)
        return [True] * len(op.results)

    def batched(self, avals: Sequence[Aval], flags: Sequence[bool]) -> list[Aval]:
        """The avals with the batch axis in front where flagged."""
        return [a.with_shape((self.size, *a.shape)) if f else a for a, f in zip(avals, flags)]

    def settle(
        self, b: Builder, values: Sequence[Value], dims: Sequence[int | None], flags: Sequence[bool]
    ) -> list[Value]:
        """The values with their batch axis in front where flagged, repeated along it if they have none."""
        out = []
        for x, dim, flag in zip(values, dims, flags):
            if flag:
                x = b.broadcast_to(x, (self.size, *x.shape)) if dim is None else b.move_axis(x, dim, 0)
            out.append(x)
        return out

    def build(
        self, like: str, stem: str, key: Any, arguments: Sequence[Aval], results: Sequence[Aval],
        emit: Callable[[Builder, list[Value]], Sequence[Value]],
    ) -> str:  # fmt: skip
        """The name of a new function, filled by `emit`; made once for each `key`. It stands before `like`."""
        if key not in self._made:
            name = fresh_name(self.module, stem)
            near = self.read(like).mlir
            _, values, b = new_function(self.module, name, arguments, results, near.location, before=near)
            b.return_(emit(b, values))
            self._made[key] = name
        return self._made[key]

    def function(self, name: str, batched: Sequence[bool], results: Sequence[bool], masked: bool) -> str:
        """The function over the batch, `results` being (at least) those that `depends` finds.

        With `masked` it takes the mask as its first argument.
        """
        function = self.read(name)
        avals = self.batched([a.aval for a in function.arguments], batched)
        mask_aval = [Aval((self.size,), dtypes.bool_)] * masked

        def emit(b: Builder, values: list[Value]) -> list[Value]:
            dims = [0 if flag else None for flag in batched]
            mask = values[0] if masked else None
            outs, places = self.emit(b, function, values[masked:], dims, mask)
            return self.settle(b, outs, places, results)

        outs = self.batched([r.aval for r in function.returns], results)
        key = (name, tuple(batched), tuple(results), masked)
        return self.build(name, f"{name}_batch", key, [*mask_aval, *avals], outs, emit)

    def emit(
        self, b: Builder, function: Body, arguments: Sequence[Value], dims: Sequence[int | None],
        mask: Value | None = None,
    ) -> tuple[list[Value], list[int | None]]:  # fmt: skip
        """Emit `function` over the batch: its results and where their batch axes stand."""
        env = dict(zip(function.arguments, arguments))
        dim: dict[Value, int | None] = dict(zip(function.arguments, dims))
        for op in function.ops:
            operands = [env[v] for v in op.operands]
            places = [dim[v] for v in op.operands]
            results: Sequence[Value]
            out: Sequence[int | None]
            if all(d is None for d in places) and (mask is None or not self._runs_loop(op)):
                results = b.clone(op, operands)
                out = [None] * len(results)
            else:
                with b.at(op.location):
                    if op.op.kind in ("control", "call"):
                        results, out = function_rules(op.name).batch(self, b, op, operands, places, mask)
                    elif op.op.has_batch(**op.attrs):
                        results, out = op.op.batch(b, operands, places, **op.attrs)
                    else:
                        results, out = self._one_by_one(b, op, operands, places, getattr(function, "name", ""))
            env.update(zip(op.results, results))
            dim.update(zip(op.results, out))
        return [env[v] for v in function.returns], [dim[v] for v in function.returns]

    def _one_by_one(
        self, b: Builder, op: OpView, operands: Sequence[Value], dims: Sequence[int | None], caller: str
    ) -> tuple[Sequence[Value], Sequence[int | None]]:
        """The rule of an op that has none: a scan whose step runs the op on one element of the batch."""
        order = sorted(range(len(operands)), key=lambda i: dims[i] is not None)
        constants = sum(d is None for d in dims)
        avals, results = [op.operands[i].aval for i in order], [r.aval for r in op.results]

        def step(inner: Builder, values: list[Value]) -> Sequence[Value]:
            return inner.clone(op, [v for _, v in sorted(zip(order, values))])

        body = self.build(caller, f"{caller}_{op.name}", (op, tuple(order)), avals, results, step)
        places = [dims[i] for i in order]
        taken = [operands[i] if d is None else b.move_axis(operands[i], d, 0) for i, d in zip(order, places)]
        attrs = {"body": body, "constants": constants, "carries": 0, "length": self.size, "reverse": False}
        stacked = b.control(SCAN, taken, attrs, self.batched(results, [True] * len(results)))
        return stacked, [0] * len(stacked)


def push_batch(
    module: Any, b: Builder, function: Function, arguments: Sequence[Value], dims: Sequence[int | None], size: int
) -> tuple[list[Value], list[int | None]]:
    """Emit `function` over a batch axis: results and where their batch axes stand."""
    return Batching(module, size).emit(b, function, arguments, dims)


def make_batch(module: Any, function: Function, attrs: dict[str, Any]) -> str:
    """The function on batched arguments."""
    name = fresh_name(module, f"{function.name}_batch")
    signature = of_kind(ops["batch"], Transform).signature(
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
    b.return_(settled_results(b, results, places, attrs["out_axes"], signature[1]))
    return name


def settled_results(
    b: Builder, results: Sequence[Value], places: Sequence[int | None], axes: Sequence[int], avals: Sequence[Aval]
) -> list[Value]:
    """Results with the batch axis at `axes` (-1: nowhere), of types `avals`."""
    outs = []
    for value, place, axis, aval in zip(results, places, axes, avals):
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
    return outs
