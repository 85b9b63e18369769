"""Kinds of ops: what many ops have in common, stated once.

A kind supplies `infer`, `batch` and the link to fusion (`element`: how one element of the result
is computed from elements of the operands), so that an op of the kind states only what is its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from . import dtypes
from .aval import Aval
from .dtypes import DType
from .errors import DTypeError
from .index import Access, Guard, Index
from .op import Ints, Op, Operand, require, require_axes, require_dtype

if TYPE_CHECKING:
    from .builder import Builder, Value
    from .scalar import Scalar, ScalarBuilder

#: `fetch(i, index)`: the element of operand i at an index.
Fetch = Callable[[int, tuple[Index, ...]], "Scalar"]


class Fusible(Op):
    """An op whose result elements can be computed one at a time."""

    def element(
        self,
        k: ScalarBuilder,
        index: tuple[Index, ...],
        fetch: Fetch,
        operands: Sequence[Aval],
        result: Aval,
        **attrs: Any,
    ) -> Scalar:
        """The element of the result at `index`."""
        raise NotImplementedError(f"smelt.{self.name} does not say how an element is computed")


class Elementwise(Fusible):
    """result[i] = f(x[i], y[i], ...): operands and result have one shape.

    Subclasses state `accepts`, `reference`, a derivative and ``lower(k, *scalars, **attrs)``.
    """

    kind = "elementwise"
    accepts: ClassVar[Sequence[DType]] = dtypes.NUMERIC

    def result_dtype(self, operand: DType, **attrs: Any) -> DType:
        return operand

    def infer(self, *operands: Aval, **attrs: Any) -> Aval:
        first = operands[0]
        require_dtype(first, self.accepts)
        for other in operands[1:]:
            require(other.shape == first.shape, "operands must have the same shape")
            require(other.dtype is first.dtype, "operands must have the same dtype", DTypeError)
        return Aval(first.shape, self.result_dtype(first.dtype, **attrs))

    def batch(self, b, operands, dims, **attrs):
        operands = align_batch(b, operands, dims)
        return b.emit(self, operands, attrs), [0]

    def element(self, k, index, fetch, operands, result, **attrs):
        return self.lower(k, *(fetch(i, index) for i in range(len(operands))), **attrs)

    def lower(self, k: ScalarBuilder, *xs: Scalar, **attrs: Any) -> Scalar:
        """One element of the result from the operands' elements."""
        raise NotImplementedError(f"smelt.{self.name}.lower")


class Comparison(Elementwise):
    """Elementwise with a bool result, and no derivative."""

    accepts: ClassVar[Sequence[DType]] = dtypes.ALL

    def result_dtype(self, operand, **_):
        return dtypes.bool_


class Movement(Fusible):
    """The result's elements are elements of one operand (or a padding value).

    Subclasses state ``map_index(index, operand, result, **attrs)``: where an element comes from.
    """

    kind = "movement"
    flops = 0.0

    def map_index(
        self, index: tuple[Index, ...], operand: Aval, result: Aval, **attrs: Any
    ) -> tuple[Index, ...]:
        raise NotImplementedError(f"smelt.{self.name}.map_index")

    def element(self, k, index, fetch, operands, result, **attrs):
        return fetch(0, self.map_index(index, operands[0], result, **attrs))


class Reduction(Op):
    """The result at i combines x over the reduced axes, which vanish from its shape.

    Subclasses state `identity`, ``combine(k, a, b)`` for two elements or partial results, and
    whether the order of combination may change the rounding (`reassociates`).
    """

    kind = "reduction"
    x: Operand
    axes: Ints
    accepts: ClassVar[Sequence[DType]] = dtypes.NUMERIC

    def result_dtype(self, operand: DType) -> DType:
        return operand

    def infer(self, x, *, axes):
        require_dtype(x, self.accepts)
        require_axes(axes, x.ndim)
        return Aval(
            tuple(d for i, d in enumerate(x.shape) if i not in axes), self.result_dtype(x.dtype)
        )

    def batch(self, b, operands, dims, *, axes, **attrs):
        (x,), (dim,) = operands, dims
        x = b.move_axis(x, dim, 0)
        return b.emit(self, [x], {"axes": tuple(a + 1 for a in axes), **attrs}), [0]

    def identity(self, dtype: DType) -> Any:
        """The Python scalar that combines with anything to leave it unchanged."""
        raise NotImplementedError(f"smelt.{self.name}.identity")

    def combine(self, k: ScalarBuilder, a: Scalar, b: Scalar) -> Scalar:
        """Two partial results into one; associative."""
        raise NotImplementedError(f"smelt.{self.name}.combine")


@dataclass(frozen=True)
class MatmulForm:
    """A contraction as a batch of matrix products: [B, M, K] · [B, K, N] → [B, M, N].

    The permutations bring the operands' axes into the orders B, M, K and B, K, N. A layout says how
    a contiguous operand lies in memory: "plain" in just that order, "transposed" with its last two
    groups exchanged (a BLAS reads both without a copy), "copy" in neither.
    """

    batch: int
    m: int
    n: int
    k: int
    lhs_permutation: tuple[int, ...]
    rhs_permutation: tuple[int, ...]
    lhs_layout: str
    rhs_layout: str

    @property
    def in_place(self) -> bool:
        """Whether both operands are read where they lie."""
        return "copy" not in (self.lhs_layout, self.rhs_layout)


def matrix_layout(shape: Sequence[int], batch: Ints, rows: Ints, columns: Ints) -> str:
    """How the axes of a contiguous array, in groups, lie in memory as matrices; see `MatmulForm`."""
    for name, order in (("plain", (*batch, *rows, *columns)), ("transposed", (*batch, *columns, *rows))):
        kept = [a for a in order if shape[a] != 1]  # axes of size one lie anywhere
        if kept == sorted(kept):
            return name
    return "copy"


class Contraction(Op):
    """Each element of the result is a sum, over loops of its own, of products of elements of two operands.

    result[place] = Σ over depth of lhs[access₀(place, depth)] · rhs[access₁(place, depth)]

    Fusion, layout, libraries, schedules and estimates of cost know of a contraction what these
    methods say, and none of its attributes. Subclasses state `depth` and `operand_indices`, and
    `matmul_form` (with `in_place` where that can ask for a copy) where a library may compute it.
    Half precision is summed in float32 and rounded once; integers wrap.

    Attributes:
        multiplies: `accumulate` adds a product, so that matrix units may compute it.
    """

    kind = "contraction"
    accepts: ClassVar[Sequence[DType]] = dtypes.NUMERIC
    linearity = "each"
    flops = 2.0
    multiplies: ClassVar[bool] = True

    def depth(self, *operands: Aval, **attrs: Any) -> tuple[int, ...]:
        """The extents of the loops that are summed over, in the order in which the operands are best read."""
        raise NotImplementedError(f"smelt.{self.name}.depth")

    def operand_indices(
        self, place: tuple[Index, ...], depth: tuple[Index, ...], *operands: Aval, **attrs: Any
    ) -> tuple[Access, ...]:
        """Of each operand, which element is multiplied for the result at `place` at one position of the depth.

        `place` has an index for each axis of the result, `depth` one for each extent of `depth()`. A guarded
        element (padding, or a gap between elements) counts as zero, and is not read.
        """
        raise NotImplementedError(f"smelt.{self.name}.operand_indices")

    def accumulate(self, k: ScalarBuilder, total: Scalar, *xs: Scalar) -> Scalar:
        """One step of the sum, in the dtype of the scalars (float32 for half precision)."""
        x, y = xs
        return k.fma(x, y, total) if x.dtype.kind == "f" else total + x * y

    def matmul_form(self, *operands: Aval, **attrs: Any) -> MatmulForm | None:
        """How this is a batch of matrix products of the operands, for a library; None where it is none."""
        return None

    def in_place(self, b: Builder, operands: Sequence[Value], **attrs: Any) -> Sequence[Value]:
        """The same result by ops of which the contraction's `matmul_form` reads its operands in place.

        Asked of contractions whose form has the layout "copy".
        """
        raise NotImplementedError(f"smelt.{self.name}.in_place")

    def work(self, *operands: Aval, **attrs: Any) -> float:
        """What the result costs, in additions; from shapes alone."""
        result = self.infer(*operands, **attrs)
        assert isinstance(result, Aval)
        return self.flops * result.size * max(1, math.prod(self.depth(*operands, **attrs)))


def holds(k: Any, guards: Sequence[Guard]) -> Scalar | None:
    """Whether all guards hold, as a bool scalar; None where there is nothing to ask."""
    condition: Scalar | None = None
    for guard in guards:
        at, tests = k.index(guard.index), []
        if guard.index.lo < 0:
            tests.append(at >= 0)
        if guard.index.hi >= guard.extent:
            tests.append(at < guard.extent)
        for test in tests:
            condition = test if condition is None else k.logical_and(condition, test)
    return condition


def fetch_guarded(
    k: Any, access: Access, fetch: Callable[[tuple[Index, ...]], Scalar], dtype: DType
) -> Scalar:
    """The element that an access reads, by ``fetch(place)``, of an operand; zero where a guard does not hold."""
    condition = holds(k, access.guards)
    if condition is None:
        return fetch(access.place)
    return k.guarded(condition, lambda: fetch(access.place), lambda: k.const(0, dtype), dtype)


class Opaque(Op):
    """An op that no fusion looks into; a backend runs it by a library or by `reference`."""

    kind = "opaque"


def align_batch(b: Builder, operands: Sequence[Value], dims: Sequence[int | None]) -> list[Value]:
    """Operands of equal rank with their batch axis in front; unbatched ones are broadcast."""
    size = batch_size(operands, dims)
    out = []
    for x, dim in zip(operands, dims):
        if dim is None:
            x = b.broadcast_to(x, (size, *x.shape))
        else:
            x = b.move_axis(x, dim, 0)
        out.append(x)
    return out


def batch_size(operands: Sequence[Value], dims: Sequence[int | None]) -> int:
    """The extent of the batch axis."""
    return next(x.shape[d] for x, d in zip(operands, dims) if d is not None)


def restore_axes(b: Builder, reduced: Value, shape: Sequence[int], axes: Sequence[int]) -> Value:
    """A reduction's result (or its cotangent) spread over the axes that were reduced."""
    kept = tuple(1 if i in axes else d for i, d in enumerate(shape))
    return b.broadcast_to(b.reshape_to(reduced, kept), tuple(shape))


def silent(function: Callable) -> Callable:
    """Run a reference rule without NumPy's floating-point warnings: IEEE results are the meaning."""

    def run(*args: Any, **kwargs: Any) -> np.ndarray:
        with np.errstate(all="ignore"):
            return function(*args, **kwargs)

    return run
