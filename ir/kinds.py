"""Kinds of ops: what many ops have in common, stated once.

A kind supplies `infer`, `batch` and the link to fusion (`element`: how one element of the result
is computed from elements of the operands), so that an op of the kind states only what is its own.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, TypeVar

import numpy as np

from . import dtypes, halves, short_axes
from .aval import Aval
from .dtypes import DType
from .errors import DTypeError, RuleError
from .forms import MatmulForm, WindowForm
from .index import Access, Coordinates, Guard, Index
from .op import (
    Avals,
    Batched,
    Cotangents,
    Dims,
    Flags,
    HostCall,
    Int,
    Ints,
    NotDifferentiable,
    Op,
    Operand,
    Tangents,
    Values,
    only,
    require,
    require_axes,
    require_dtype,
    require_positions,
)

if TYPE_CHECKING:
    from .builder import Builder, Value
    from .scalar import Scalar, ScalarBuilder

#: `fetch(i, index)`: the element of operand i at an index.
Fetch = Callable[[int, Coordinates], "Scalar"]

P = ParamSpec("P")
R = TypeVar("R")
Rule = TypeVar("Rule", bound=Callable[..., Any])


def slope_in_float32(rule: Rule) -> Rule:
    """The `jvp` rule of an elementwise op of one operand, in float32 where that is of half precision.

    The result, which `rule` may read, is computed again: near the ends of ``tanh``, say, nothing is left of the slope
    in one that has been rounded to 8 bits.
    """

    @functools.wraps(rule)
    def wide(self: Op, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        (x,), (t,) = primals, tangents
        if t is None or not (x.dtype.is_float and x.dtype.size == 2):
            return rule(self, b, primals, tangents, results)  # type: ignore[no-any-return]
        x, t = b.convert(x, dtype=dtypes.float32), b.convert(t, dtype=dtypes.float32)
        found = only(rule(self, b, [x], [t], _Later(b, self, x)))
        return [b.convert(found, dtype=results[0].dtype)]

    return wide  # type: ignore[return-value]


class _Later(Sequence["Value"]):
    """The result of an op of one operand, emitted where a rule reads it."""

    def __init__(self, b: Builder, op: Op, x: Value):
        self.emit = functools.cache(lambda: b.emit(op, [x], {}))

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: Any) -> Any:
        return self.emit()[index]


class Fusible(Op):
    """An op whose result elements can be computed one at a time."""

    #: Whether elements at the same place of the parts that `borders` make are computed from one thing.
    parts_share = False

    def element(
        self,
        k: ScalarBuilder,
        index: Coordinates,
        fetch: Fetch,
        operands: Avals,
        result: Aval,
        *_: Any,
        **attrs: Any,
    ) -> Scalar:
        """The element of the result at `index`."""
        raise NotImplementedError(f"smelt.{self.name} does not say how an element is computed")

    def borders(self, index: Coordinates, operands: Avals, *_: Any, **attrs: Any) -> Sequence[tuple[Index, int]]:
        """Where elements beside each other are computed in different ways: from which number on of what."""
        return ()


class Nullary(Fusible):
    """An op without operands: its tangent is zero, and it is the same for all elements of a batch."""

    flops = 0.0
    linearity = "jointly"

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values, **_: Any) -> Tangents:
        return [None]

    def transpose(self, b: Builder, cotangents: Cotangents, operands: Values, linear: Flags, **_: Any) -> Cotangents:
        return []

    def batch(self, b: Builder, operands: Values, dims: Dims, **attrs: Any) -> Batched:
        return b.emit(self, operands, attrs), [None]


class Elementwise(Fusible):
    """result[i] = f(x[i], y[i], ...): operands and result have one shape.

    Subclasses state `accepts`, `reference`, a derivative and ``lower(k, *scalars, **attrs)``.
    """

    kind = "elementwise"
    accepts: ClassVar[Sequence[DType]] = dtypes.NUMERIC
    #: The function of NumPy that `reference` is; with `widens`, for half precision it is not that alone.
    ufunc: ClassVar[np.ufunc | None] = None
    widens: ClassVar[bool] = False
    #: Whether the result jumps, or ends, at numbers that operands may be; so does any that is no float, such as that of
    #: a comparison.
    jumps: ClassVar[bool] = False
    #: Dtypes of operands of which `lower` has a quicker way for usual ones (`ScalarBuilder.usually`).
    usual: ClassVar[Sequence[DType]] = ()

    def result_dtype(self, operand: DType, *_: Any, **attrs: Any) -> DType:
        return operand

    def infer(self, *operands: Any, **attrs: Any) -> Aval:
        first = operands[0]
        require_dtype(first, self.accepts)
        for other in operands[1:]:
            require(other.shape == first.shape, "operands must have the same shape")
            require(other.dtype is first.dtype, "operands must have the same dtype", DTypeError)
        return Aval(first.shape, self.result_dtype(first.dtype, **attrs))

    def batch(self, b: Builder, operands: Values, dims: Dims, *_: Any, **attrs: Any) -> Batched:
        operands = align_batch(b, operands, dims)
        return b.emit(self, operands, attrs), [0]

    def element(
        self,
        k: ScalarBuilder,
        index: Coordinates,
        fetch: Fetch,
        operands: Avals,
        result: Aval,
        *_: Any,
        **attrs: Any,
    ) -> Scalar:
        xs = [fetch(i, index) for i in range(len(operands))]
        return self.lower(k, *self.taken(k, xs, [a.dtype for a in operands], result.dtype), **attrs)

    def taken(self, k: ScalarBuilder, xs: Sequence[Scalar], given: Sequence[DType], out: DType) -> Sequence[Scalar]:
        """Elements of operands as `lower` takes them."""
        if not self.jumps and (out.is_float or out.is_complex):
            return xs
        # As in memory: an extremum equals the element that it is there, what overflows is infinite, and what is rounded
        # to a whole number is one.
        return [k.convert(x, d) if d.is_float and d.size == 2 else x for x, d in zip(xs, given)]

    def host_call(self, operands: Avals, result: Aval, *_: Any, **attrs: Any) -> HostCall | None:
        # That of a base class is not meant: a subclass may have a `reference` of its own.
        ufunc = type(self).__dict__.get("ufunc")
        if ufunc is None or (self.widens and operands[0].dtype.size == 2):
            return None
        size, dtype = result.size, operands[0].dtype
        if dtype.is_float and dtype.size == 2 and not (type(size) is int and size < halves.LEAST):
            return HostCall(functools.partial(halves.by_float32, ufunc), spreads=len(operands) > 1)
        return HostCall(short_axes.by_columns(ufunc, operands, result), spreads=len(operands) > 1)

    def lower(self, k: ScalarBuilder, *xs: Any, **attrs: Any) -> Scalar:
        """One element of the result from the operands' elements."""
        raise RuleError(f"smelt.{self.name} does not state the rule lower")


class Comparison(Elementwise):
    """Elementwise with a bool result, and no derivative."""

    accepts: ClassVar[Sequence[DType]] = dtypes.ALL

    def result_dtype(self, operand: DType, *_: Any, **attrs: Any) -> DType:
        return dtypes.bool_

    def margin(self, x: Index, y: Index) -> Index | None:
        """What is not negative exactly where it holds of two integers; None where there is no such thing."""
        return None


class Movement(Fusible):
    """The result's elements are elements of one operand (or a padding value).

    Subclasses state ``map_index(index, operand, result, **attrs)``: where an element comes from.
    """

    kind = "movement"
    flops = 0.0

    def map_index(self, index: Coordinates, operand: Aval, result: Aval, *_: Any, **attrs: Any) -> Coordinates:
        raise RuleError(f"smelt.{self.name} does not state the rule map_index")

    def element(
        self,
        k: ScalarBuilder,
        index: Coordinates,
        fetch: Fetch,
        operands: Avals,
        result: Aval,
        *_: Any,
        **attrs: Any,
    ) -> Scalar:
        return fetch(0, self.map_index(index, operands[0], result, **attrs))


class Reduction(Op):
    """The result at i combines x over the reduced axes, which vanish from its shape.

    Subclasses state `identity`, and ``combine(k, a, b)`` for two elements or partial results.
    """

    kind = "reduction"
    x: Operand
    axes: Ints
    accepts: ClassVar[Sequence[DType]] = dtypes.NUMERIC

    def result_dtype(self, operand: DType) -> DType:
        return operand

    def infer(self, x: Aval, *, axes: Ints) -> Aval:
        require_dtype(x, self.accepts)
        require_axes(axes, x.ndim)
        return Aval(tuple(d for i, d in enumerate(x.shape) if i not in axes), self.result_dtype(x.dtype))

    def batch(self, b: Builder, operands: Values, dims: Dims, *, axes: Ints, **attrs: Any) -> Batched:
        x = b.move_axis(operands[0], only(dims), 0)
        return b.emit(self, [x], {"axes": tuple(a + 1 for a in axes), **attrs}), [0]

    def identity(self, dtype: DType) -> float | complex:
        """The Python scalar that combines with anything to leave it unchanged."""
        raise RuleError(f"smelt.{self.name} does not state the rule identity")

    def combine(self, k: ScalarBuilder, a: Scalar, b: Scalar) -> Scalar:
        """Two partial results into one; associative."""
        raise RuleError(f"smelt.{self.name} does not state the rule combine")

    def of_one(self, b: Builder, x: Value) -> Value:
        """What is left of each element where nothing is combined with it: what it gives with the identity."""
        return x


class ArgReduction(Op):
    """The index of an extremum along one axis, which vanishes, as uint32: the first of several; a NaN wins."""

    kind = "arg_reduction"
    x: Operand
    axis: Int
    accepts: ClassVar[Sequence[DType]] = dtypes.ALL
    not_differentiable = NotDifferentiable("the result is an index")
    gives_positions = True
    flops = 4.0
    largest: ClassVar[bool]  #: of the largest element, or of the smallest

    def infer(self, x: Aval, *, axis: Int) -> Aval:
        require_dtype(x, self.accepts)
        require_axes((axis,), x.ndim, "axis")
        require(x.shape[axis] > 0, f"an empty axis has no extremum; axis {axis}")
        require_positions(x, axis)
        return Aval((*x.shape[:axis], *x.shape[axis + 1 :]), dtypes.uint32)

    def batch(self, b: Builder, operands: Values, dims: Dims, *, axis: Int) -> Batched:
        x = b.move_axis(operands[0], only(dims), 0)
        return b.emit(self, [x], {"axis": axis + 1}), [0]

    def better(self, x: Scalar, best: Scalar) -> Scalar:
        """Whether x takes the place of the best so far; false where either is NaN."""
        return x > best if self.largest else x < best

    def step(self, k: ScalarBuilder, best: Scalar, at: Scalar, x: Scalar, i: Scalar) -> tuple[Scalar, Scalar]:
        """The best value and its index after x has been seen at index i."""
        wins = self.better(x, best)
        if x.dtype.is_inexact:
            wins = k.logical_or(wins, k.isnan(x))
            wins = k.logical_and(wins, ~k.isnan(best))
        return k.select(wins, x, best), k.select(wins, i, at)


class Contraction(Op):
    """Each element of the result is a sum, over loops of its own, of products of elements of two operands.

    result[place] = Σ over depth of lhs[access₀(place, depth)] · rhs[access₁(place, depth)]

    Fusion, layout, libraries, schedules and estimates of cost know of a contraction what these
    methods say, and none of its attributes. Subclasses state `depth` and `operand_indices`, and
    `matmul_form` (with `in_place` where that can ask for a copy) or `window_form` where a library may compute it.
    Half precision is summed in float32 and rounded once; integers wrap.

    Attributes:
        multiplies: `accumulate` adds a product, so that matrix units may compute it.
    """

    kind = "contraction"
    accepts: ClassVar[Sequence[DType]] = dtypes.NUMERIC
    linearity = "each"
    flops = 2.0
    multiplies: ClassVar[bool] = True

    def depth(self, *operands: Any, **attrs: Any) -> tuple[int, ...]:
        """The extents of the loops that are summed over, in the order in which the operands are best read."""
        raise RuleError(f"smelt.{self.name} does not state the rule depth")

    def operand_indices(
        self, place: Coordinates, depth: Coordinates, *operands: Any, **attrs: Any
    ) -> tuple[Access, ...]:
        """Of each operand, which element is multiplied for the result at `place` at one position of the depth.

        `place` has an index for each axis of the result, `depth` one for each extent of `depth()`. A guarded
        element (padding, or a gap between elements) counts as zero, and is not read.
        """
        raise RuleError(f"smelt.{self.name} does not state the rule operand_indices")

    def accumulate(self, k: ScalarBuilder, total: Scalar, *xs: Scalar) -> Scalar:
        """One step of the sum, in the dtype of the scalars (float32 for half precision)."""
        x, y = xs
        return k.fma(x, y, total) if x.dtype.kind == "f" else total + x * y

    def matmul_form(self, *operands: Any, **attrs: Any) -> MatmulForm | None:
        """How this is a batch of matrix products of the operands, for a library; None where it is none."""
        return None

    def window_form(self, *operands: Any, **attrs: Any) -> WindowForm | None:
        """How this is a convolution of its first operand with the second, for a library; None where it is none."""
        return None

    def in_place(self, b: Builder, operands: Values, *_: Any, **attrs: Any) -> Values:
        """The same result, by ops that contain a contraction whose `matmul_form` reads its operands in place.

        Asked of contractions whose form has the layout "copy".
        """
        raise RuleError(f"smelt.{self.name} does not state the rule in_place")

    def before_transpose(self, operand: int, permutation: Ints, /, *_: Any, **attrs: Any) -> dict[str, Any] | None:
        """The attributes that give the same result for one of the operands before it was transposed, if there are such.

        `permutation`: axis i of the operand is axis permutation[i] of what was transposed.
        """
        return None

    def work(self, *operands: Any, **attrs: Any) -> float:
        """What the result costs, in additions; from shapes alone."""
        (result,) = self.infer_checked(operands, attrs)
        return self.flops * result.size * max(1, math.prod(self.depth(*operands, **attrs)))


def holds(k: ScalarBuilder, guards: Sequence[Guard]) -> Scalar | None:
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


def fetch_guarded(k: ScalarBuilder, access: Access, fetch: Callable[[Coordinates], Scalar], dtype: DType) -> Scalar:
    """The element that an access reads, by ``fetch(place)``, of an operand; zero where a guard does not hold."""
    condition = holds(k, access.guards)
    if condition is None:
        return fetch(access.place)
    return k.guarded(condition, lambda: fetch(access.place), lambda: k.const(0, dtype), dtype)


def align_batch(b: Builder, operands: Values, dims: Dims) -> list[Value]:
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


def batch_size(operands: Values, dims: Dims) -> int:
    """The extent of the batch axis."""
    return next(x.shape[d] for x, d in zip(operands, dims) if d is not None)


def restore_axes(b: Builder, reduced: Value, shape: Sequence[int], axes: Sequence[int]) -> Value:
    """A reduction's result (or its cotangent) spread over the axes that were reduced."""
    kept = tuple(1 if i in axes else d for i, d in enumerate(shape))
    return b.broadcast_to(b.reshape_to(reduced, kept), tuple(shape))


def silent(function: Callable[P, R]) -> Callable[P, R]:
    """Run a reference rule without NumPy's floating-point warnings: IEEE results are the meaning."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        with np.errstate(all="ignore"):
            return function(*args, **kwargs)

    return run
