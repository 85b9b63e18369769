"""Transformations: ops on functions.

A function of the module becomes a value by the upstream ``func.constant @f``; the ops here turn it
into another function, and ``func.call_indirect`` applies it. So the IR of ``vmap(grad(f))`` reads
like the user's program, transformations nest in any order, and each expansion can be dumped::

    %f = func.constant @f : (tensor<4xf32>) -> tensor<f32>
    %df = "smelt.vjp"(%f) {wrt = array<i64: 0>, seeds = array<i64: 0>} : (...) -> (...)
    %y, %ct = func.call_indirect %df(%x, %seed) : ...

The passes `batch`, `jvp`, `linearize` and `transpose` replace them by functions, innermost first.
Plain calls are the upstream ``func.call``.

A package's own transformation states what it computes of its function (`expand`), and `inline` replaces it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from .. import mlir
from ..aval import Aval
from ..context import parse_aval
from ..errors import AttributeValueError, ShapeError
from ..op import Avals, Int, Ints, Op, Operand, require

if TYPE_CHECKING:
    from ..builder import Builder
    from ..values import Value

Signature = tuple[list[Aval], list[Aval]]


class Callee(Protocol):
    """The function that a transformation is of, as its `expand` sees it.

    Attributes:
        name: for ops that run functions: ``b.control(SCAN, operands, {"body": f.name, ...}, results)``.
        arguments, results: its types.
    """

    name: str
    arguments: list[Aval]
    results: list[Aval]

    def __call__(self, b: Builder, operands: Sequence[Value]) -> Sequence[Value]:
        """Apply it."""

    def reordered(self, order: Sequence[int]) -> Callee:
        """The function that takes the i-th argument at the place of ``order[i]``: loops take what does not change
        first."""


def function_signature(function_type: Any) -> Signature:
    """Argument and result avals of an MLIR function type."""
    kind = mlir.ir.FunctionType(function_type)
    return [parse_aval(t) for t in kind.inputs], [parse_aval(t) for t in kind.results]


class Transform(Op):
    """A function turned into another function. Subclasses state `signature`, those of other packages also `expand`."""

    kind = "transform"
    f: Operand

    def signature(self, arguments: Avals, results: Avals, *_: Any, **attrs: Any) -> Signature:
        """Arguments and results of the transformed function, from those of f."""
        raise NotImplementedError

    def expand(self, b: Builder, f: Callee, operands: Sequence[Value], **attrs: Any) -> Sequence[Value]:
        """What the transformed function computes of its operands, by ops, by applying f, by loops that run f."""
        raise NotImplementedError

    @property
    def is_stated(self) -> bool:
        """Whether `expand` states what it computes; smelt's own transformations are expanded by passes."""
        return type(self).expand is not Transform.expand

    def verify(self, operation: Any, *_: Any, **attrs: Any) -> None:
        ir = mlir.ir
        have, want = operation.results[0].type, operation.operands[0].type
        for kind in (have, want):
            if not isinstance(kind, ir.FunctionType):
                raise ShapeError(f"operand and result are functions, one is {kind}")
        expected = self.signature(*function_signature(want), **attrs)
        found = function_signature(have)
        require(found == expected, f"result must be {_show(expected)}, is {_show(found)}")


def _show(signature: Signature) -> str:
    arguments, results = (", ".join(map(str, side)) for side in signature)
    return f"({arguments}) -> ({results})"


def _check_positions(positions: Sequence[int], count: int, what: str) -> None:
    if not all(0 <= i < count for i in positions) or len(set(positions)) != len(positions):
        raise AttributeValueError(f"{what} {tuple(positions)} must be distinct and below {count}")


class Jvp(Transform, name="jvp"):
    """Forward mode: (x, ẋ) ↦ (f(x), Jf(x)·ẋ).

    `wrt` lists the arguments that have a tangent; tangent arguments follow the primal ones in that
    order. Results that are not differentiable (integers, bools) have a zero tangent.

    ``%1 = "smelt.jvp"(%0) {wrt = array<i64: 0>} : ((tensor<4xf32>) -> tensor<f32>) -> ((tensor<4xf32>, tensor<4xf32>) -> (tensor<f32>, tensor<f32>))``
    """

    wrt: Ints

    def signature(self, arguments: Avals, results: Avals, *, wrt: Ints) -> Signature:
        _check_positions(wrt, len(arguments), "wrt")
        return [*arguments, *(arguments[i] for i in wrt)], [*results, *results]


class Vjp(Transform, name="vjp"):
    """Reverse mode: (x, ȳ) ↦ (f(x), ȳ·Jf(x)).

    `wrt` lists the arguments whose cotangents are wanted, `seeds` the results that have a cotangent
    argument (after the primal ones); the cotangents of the other results are zero.

    ``%1 = "smelt.vjp"(%0) {wrt = array<i64: 0>, seeds = array<i64: 0>} : ((tensor<4xf32>) -> tensor<f32>) -> ((tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>))``
    """

    wrt: Ints
    seeds: Ints

    def signature(self, arguments: Avals, results: Avals, *, wrt: Ints, seeds: Ints) -> Signature:
        _check_positions(wrt, len(arguments), "wrt")
        _check_positions(seeds, len(results), "seeds")
        return [*arguments, *(results[i] for i in seeds)], [*results, *(arguments[i] for i in wrt)]


class LinearTranspose(Transform, name="linear_transpose"):
    """The transpose of a function that is linear in the arguments `wrt`: (r, ȳ) ↦ x̄.

    Takes the other arguments (the residuals), then one cotangent for each result; returns one
    cotangent for each argument in `wrt`.

    ``%1 = "smelt.linear_transpose"(%0) {wrt = array<i64: 1>} : ((tensor<4xf32>, tensor<4xf32>) -> tensor<f32>) -> ((tensor<4xf32>, tensor<f32>) -> tensor<4xf32>)``
    """

    wrt: Ints

    def signature(self, arguments: Avals, results: Avals, *, wrt: Ints) -> Signature:
        _check_positions(wrt, len(arguments), "wrt")
        residuals = [a for i, a in enumerate(arguments) if i not in wrt]
        return [*residuals, *results], [arguments[i] for i in wrt]


class Batch(Transform, name="batch"):
    """Vectorization: f applied over an axis of `size` elements of its arguments.

    `in_axes` gives for each argument the axis to map over, -1 for none; `out_axes` where the mapped
    axis stands in each result, -1 for a result that does not depend on it.

    ``%1 = "smelt.batch"(%0) {size = 8 : i64, in_axes = array<i64: 0>, out_axes = array<i64: 0>} : ((tensor<4xf32>) -> tensor<f32>) -> ((tensor<8x4xf32>) -> tensor<8xf32>)``
    """

    size: Int
    in_axes: Ints
    out_axes: Ints
    sizes = ("size",)

    def signature(
        self, arguments: Avals, results: Avals, *, size: Int, in_axes: Ints, out_axes: Ints
    ) -> Signature:
        if len(in_axes) != len(arguments) or len(out_axes) != len(results):
            raise AttributeValueError(
                f"{len(arguments)} arguments and {len(results)} results need as many in_axes and out_axes"
            )
        require(size >= 0, f"size {size} must not be negative", AttributeValueError)
        return (
            [_insert_axis(a, axis, size, "in_axes") for a, axis in zip(arguments, in_axes)],
            [_insert_axis(a, axis, size, "out_axes") for a, axis in zip(results, out_axes)],
        )


def _insert_axis(aval: Aval, axis: int, size: int, what: str) -> Aval:
    if axis == -1:
        return aval
    if not 0 <= axis <= aval.ndim:
        raise AttributeValueError(f"{what} entry {axis} out of range for {aval}")
    return aval.with_shape((*aval.shape[:axis], size, *aval.shape[axis:]))
