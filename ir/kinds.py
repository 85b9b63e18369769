"""Kinds of ops: what many ops have in common, stated once.

A kind supplies `infer`, `batch` and the link to fusion (`element`: how one element of the result
is computed from elements of the operands), so that an op of the kind states only what is its own.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, TypeVar

import numpy as np

from . import dtypes, host_memory, host_threads, numpy_blas, short_axes
from .aval import Aval, broadcast_shapes
from .dtypes import DType
from .errors import AttributeValueError, DTypeError, LibraryError, OutOfMemoryError, ShapeError, SmeltError
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
        return HostCall(short_axes.by_columns(ufunc, operands, result), spreads=len(operands) > 1)

    def lower(self, k: ScalarBuilder, *xs: Any, **attrs: Any) -> Scalar:
        """One element of the result from the operands' elements."""
        raise NotImplementedError(f"smelt.{self.name}.lower")


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
        raise NotImplementedError(f"smelt.{self.name}.map_index")

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

    Subclasses state `identity`, ``combine(k, a, b)`` for two elements or partial results, and
    whether the order of combination may change the rounding (`reassociates`).
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
        raise NotImplementedError(f"smelt.{self.name}.identity")

    def combine(self, k: ScalarBuilder, a: Scalar, b: Scalar) -> Scalar:
        """Two partial results into one; associative."""
        raise NotImplementedError(f"smelt.{self.name}.combine")


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
        raise NotImplementedError(f"smelt.{self.name}.depth")

    def operand_indices(
        self, place: Coordinates, depth: Coordinates, *operands: Any, **attrs: Any
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

    def matmul_form(self, *operands: Any, **attrs: Any) -> MatmulForm | None:
        """How this is a batch of matrix products of the operands, for a library; None where it is none."""
        return None

    def window_form(self, *operands: Any, **attrs: Any) -> WindowForm | None:
        """How this is a convolution of its first operand with the second, for a library; None where it is none."""
        return None

    def in_place(self, b: Builder, operands: Values, *_: Any, **attrs: Any) -> Values:
        """The same result by ops of which the contraction's `matmul_form` reads its operands in place.

        Asked of contractions whose form has the layout "copy".
        """
        raise NotImplementedError(f"smelt.{self.name}.in_place")

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


#: Matrices of up to so many rows and columns, of which each is the work of one thread.
SMALL_MATRIX = 64
#: More batch axes than that are one while a library computes: iterators of NumPy and SciPy end at 32 axes.
MOST_BATCH_AXES = 16


class Library(Op):
    """An op that a library computes on the host, such as LAPACK or an FFT; no fusion looks into it.

    It works on the last axes of its operands, their *core* axes, which `core` names as NumPy's
    gufuncs do: ``"(m,n)->(m,k),(k,n)"``. All axes before them are batch axes, which broadcast. So
    `infer`, `batch` and the number of results are inherited. Subclasses state, in this order:

    - ``accepts``: dtypes; all operands have the same one.
    - ``extents(dims)``: extents of axes that only results have (``k`` above).
    - ``host(*arrays)``: what the library computes, for all batch axes at once.
    - ``reference(*arrays)``, which shares no code with the library, or `properties` where a result is
      only determined up to signs or order.
    - ``sample(rng, *avals)``: operands for which the op is defined, where not all are.
    - a derivative, as every op.

    `host` and `reference` raise LibraryError with the bare rule ("the matrix is singular"), or let the
    library's exception pass: the error that the user sees names the op, its operands and the user's line too.
    """

    kind = "library"
    core: ClassVar[str]
    core_operands: ClassVar[tuple[tuple[str, ...], ...]] = ()
    core_results: ClassVar[tuple[tuple[str, ...], ...]] = ()
    accepts: ClassVar[Sequence[DType]] = (dtypes.float32, dtypes.float64)
    flops = 30.0
    #: Seconds for each element of the operands, about, where threads may share a batch; 0: they would wait for each
    #: other, as in OpenBLAS's own factorizations, which take a lock for their memory.
    shared_seconds: ClassVar[float] = 0.0
    #: Whether there is `host_into(out, *arrays)`, which may leave its only result in a contiguous `out`: threads then
    #: copy no parts.
    takes_out: ClassVar[bool] = False

    @classmethod
    def complete(cls) -> None:
        if "core" not in cls.__dict__:
            return
        cls.core_operands, cls.core_results = _parse_core(cls.core)
        cls.num_results = len(cls.core_results)
        if len(cls.core_operands) != len(cls.operand_names):
            operands = ", ".join(cls.operand_names)
            raise AttributeValueError(f"{cls.__name__} has the operands ({operands}), its core is {cls.core!r}")

    def extents(self, dims: dict[str, int], *_: Any, **attrs: Any) -> dict[str, int]:
        """Extents of the core axes that no operand has, from those that operands have."""
        return {}

    def result_dtypes(self, operand: DType, *_: Any, **attrs: Any) -> Sequence[DType]:
        """The dtype of each result; that of the operands, if nothing else is said."""
        return [operand] * self.num_results

    def host(self, *arrays: Any, **attrs: Any) -> np.ndarray | tuple[np.ndarray, ...]:
        """The result, or a tuple of results, by the library. Operands have equally many axes in front."""
        raise NotImplementedError(f"smelt.{self.name}.host")

    def host_into(self, out: np.ndarray | None, /, *arrays: Any, **attrs: Any) -> np.ndarray:
        """The result of `host`, in `out` or elsewhere; see `takes_out`."""
        raise NotImplementedError(f"smelt.{self.name}.host_into")

    def host_of_views(self, *arrays: Any, **attrs: Any) -> np.ndarray | tuple[np.ndarray, ...] | None:
        """The result of `host` for operands that do not lie row by row, without copies of these; None: copy them."""
        return None

    def reference(self, *operands: Any, **attrs: Any) -> np.ndarray | tuple[np.ndarray, ...]:
        return self.host(*operands, **attrs)

    def properties(
        self, operands: Sequence[np.ndarray], results: Sequence[np.ndarray], *_: Any, **attrs: Any
    ) -> Iterable[tuple[str, np.ndarray, np.ndarray]]:
        """What holds for every right result: pairs of arrays that are equal but for rounding, and what that means."""
        return ()

    def sample(self, rng: np.random.Generator, *avals: Any, **attrs: Any) -> Sequence[np.ndarray]:
        """Random operands of these types for which the op is defined and has a derivative."""
        found = []
        for aval in avals:
            x = rng.uniform(-1, 1, aval.shape)
            x = x + 1j * rng.uniform(-1, 1, aval.shape) if aval.dtype.is_complex else x
            found.append(x.astype(aval.dtype.numpy))
        return found

    def infer(self, *operands: Any, **attrs: Any) -> Aval | tuple[Aval, ...]:
        dtype, dims, leads = operands[0].dtype, dict[str, int](), []
        for name, x, core in zip(self.operand_names, operands, self.core_operands):
            if x.dtype not in self.accepts:
                listed = ", ".join(d.name for d in self.accepts)
                wanted = f"{name} is {x.dtype.name}, must be one of {listed}"
                raise DTypeError(f"{wanted}; convert it first, e.g. with .astype(smelt.{self.accepts[0].name})")
            require(x.dtype is dtype, "operands must have the same dtype", DTypeError)
            axes = f"({', '.join(core)})"
            require(x.ndim >= len(core), f"{name} has {x.ndim} axes, must have at least {len(core)}: {axes}")
            lead = x.ndim - len(core)
            for label, d in zip(core, x.shape[lead:]):
                known = int(label) if label.isdigit() else dims.setdefault(label, d)
                if known != d:
                    have = "the last axis" if len(core) == 1 else f"the last {len(core)} axes"
                    raise ShapeError(f"{have} of {name} must be {axes}, here {x.shape[lead:]}, with {label} = {known}")
            leads.append(x.shape[:lead])
        dims.update(self.extents(dims, **attrs))
        try:
            batch = broadcast_shapes(*leads)
        except ValueError:
            raise ShapeError(f"batch axes {' and '.join(map(str, leads))} cannot be broadcast together") from None
        kinds = self.result_dtypes(dtype, **attrs)
        shapes = [[int(n) if n.isdigit() else dims[n] for n in core] for core in self.core_results]
        found = tuple([Aval((*batch, *shape), kind) for shape, kind in zip(shapes, kinds)])
        return found[0] if len(found) == 1 else found

    def batch(self, b: Builder, operands: Values, dims: Dims, *_: Any, **attrs: Any) -> Batched:
        """One more batch axis. An operand without it is broadcast by the library, not copied."""
        ranks = [x.ndim - (dim is not None) - len(core) for x, dim, core in zip(operands, dims, self.core_operands)]
        aligned = []
        for x, dim, rank in zip(operands, dims, ranks):
            if dim is not None:
                x = b.move_axis(x, dim, 0)
                x = b.reshape_to(x, (x.shape[0], *[1] * (max(ranks) - rank), *x.shape[1:]))
            aligned.append(x)
        results = b.emit(self, aligned, attrs)
        return results, [0] * len(results)

    def compute(
        self, arrays: Sequence[np.ndarray], attrs: dict[str, Any], reference: bool = False
    ) -> tuple[np.ndarray, ...]:
        """The results by `host`, or by `reference`. Whatever goes wrong is an error that names op and operands.

        Raises:
            LibraryError: the operands have no such result. OutOfMemoryError: the library had no memory.
        """
        ranks = [x.ndim - len(core) for x, core in zip(arrays, self.core_operands)]
        most = max(ranks)
        aligned = [x.reshape((*[1] * (most - rank), *x.shape)) for x, rank in zip(arrays, ranks)]
        batch: tuple[int, ...] = ()
        if most > MOST_BATCH_AXES:
            batch = broadcast_shapes(*(x.shape[:most] for x in aligned))
            whole = [np.broadcast_to(x, (*batch, *x.shape[most:])) for x in aligned]
            aligned = [x.reshape(math.prod(batch), *x.shape[most:]) for x in whole]
        try:
            found = self.reference(*aligned, **attrs) if reference else self._shared(aligned, attrs)
        except Exception as error:
            kind = OutOfMemoryError if isinstance(error, MemoryError) else LibraryError
            avals = [Aval(x.shape, dtypes.of(x.dtype)) for x in arrays]
            rule = str(error) or type(error).__name__
            cause = None if isinstance(error, SmeltError) else error
            raise kind(self.describe_error(rule, avals, attrs)) from cause
        results = found if isinstance(found, tuple) else (found,)
        return tuple(x.reshape(*batch, *x.shape[1:]) for x in results) if batch else results

    def _shared(self, arrays: Sequence[np.ndarray], attrs: dict[str, Any]) -> np.ndarray | tuple[np.ndarray, ...]:
        """The results by `host`, of parts of the batch by several threads where that pays.

        Large matrices are left to the threads of the library.
        """
        if not all(x.flags.c_contiguous for x in arrays):
            found = self.host_of_views(*arrays, **attrs)
            if found is not None:
                return found
        lead = arrays[0].ndim - len(self.core_operands[0])
        batch = arrays[0].shape[:lead]
        rows, work = math.prod(batch), self.shared_seconds * sum(x.size for x in arrays)
        sizes = [x.shape[-len(core) :] for x, core in zip(arrays, self.core_operands)]
        small = all(len(size) < 2 or max(size) <= SMALL_MATRIX for size in sizes)
        if rows < 2 or work < 2 * host_threads.WORTH or not small or any(x.shape[:lead] != batch for x in arrays):
            if all(len(size) == 2 and max(size) <= numpy_blas.FACTORED_ALONE for size in sizes):
                return numpy_blas.alone(lambda: self.host(*arrays, **attrs))
            return self.host(*arrays, **attrs)
        flat = [x.reshape(rows, *x.shape[lead:]) for x in arrays]
        parts: dict[int, tuple[slice, tuple[np.ndarray, ...]]] = {}
        whole: np.ndarray | None = None
        if self.takes_out:
            aval = self.infer(*[Aval(x.shape, dtypes.of(x.dtype)) for x in flat], **attrs)
            assert isinstance(aval, Aval)
            whole = host_memory.empty(aval.shape, aval.dtype.numpy)

        def compute(part: slice) -> None:
            if whole is not None:
                out = whole[part]
                made = self.host_into(out, *[x[part] for x in flat], **attrs)
                if made is not out:
                    out[...] = made
                return
            got = self.host(*[x[part] for x in flat], **attrs)
            parts[part.start] = part, got if isinstance(got, tuple) else (got,)

        try:
            host_threads.share(rows, work, compute)
        except Exception:  # the error says which matrix of all it was
            return self.host(*arrays, **attrs)
        if whole is not None:
            return whole.reshape(*batch, *whole.shape[1:])
        results = [host_memory.empty((rows, *x.shape[1:]), x.dtype) for x in parts[0][1]]
        for part, got in parts.values():
            for x, y in zip(results, got):
                x[part] = y
        return tuple([x.reshape(*batch, *x.shape[1:]) for x in results])


_CORE = re.compile(r"\(\s*((?:\w+\s*(?:,\s*\w+\s*)*)?)\)")


def _parse_core(core: str) -> tuple[tuple[tuple[str, ...], ...], ...]:
    """The core axes of operands and of results: ``"(m,n),(n)->(m)"`` is ((m, n), (n,)) and ((m,),)."""
    sides = core.split("->")
    if len(sides) != 2 or any(_CORE.sub("", side).strip(" ,") for side in sides) or not _CORE.search(sides[1]):
        raise AttributeValueError(f"{core!r} names no core axes, as in '(m,n),(n)->(m)'")
    return tuple(tuple(tuple(re.findall(r"\w+", group)) for group in _CORE.findall(side)) for side in sides)


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
