"""Copies, gathers, reductions and small matrix products as kernels without sizes: texts as of `smelt.ir.strided`."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from json import dumps
from typing import Any, NamedTuple

from smelt.backends.strided import Laid, merged
from smelt.ir.aval import Aval
from smelt.ir.dtypes import DType
from smelt.ir.kinds import Elementwise, Reduction
from smelt.ir.op import Op
from smelt.ir.ops.contract import DotGeneral
from smelt.ir.ops.indexing import Gather
from smelt.ir.plain import plain_attrs
from smelt.ir.scalar import compute_dtype
from smelt.ir.strided import VERSION
from smelt.ir.strided_layout import StridedLayout

#: Multiplications up to which a product is a sum over a broadcast product: beyond, tiles are worth a program.
MOST_WORK = 1 << 24


class Group(NamedTuple):
    """A kernel on operands that lie in its space.

    Attributes:
        text: of the kernel.
        space, axes: the shape of full values, and how many of its last axes are reduced.
        operands: where these lie.
        gathered: what the last of them, indices, do to the first: see `smelt.backends.strided.StridedKernels`.
    """

    text: str
    space: tuple[int, ...]
    axes: int
    operands: list[Laid]
    gathered: Sequence[tuple[int, int]] = ()


def copy_of(aval: Aval, place: StridedLayout) -> Group:
    """The elements of an array, as they are."""
    return Group(_text([aval.dtype], [], 0, True), aval.shape, 0, [Laid(place, True)])


class Loop(NamedTuple):
    """One or more axes of a product: its extent, and how far neighbours are apart in the two operands."""

    extent: int
    left: int
    right: int


class Product(NamedTuple):
    """The axes of a product of two arrays: of batches, of the left operand alone, of the right one, and summed ones."""

    batch: list[Loop]
    rows: list[Loop]
    columns: list[Loop]
    depth: list[Loop]

    @classmethod
    def of(
        cls, op: DotGeneral, attrs: Mapping[str, Any], avals: Sequence[Aval], places: Sequence[StridedLayout]
    ) -> Product:  # fmt: skip
        """That of arrays that lie there."""

        def loop(axes: tuple[int | None, int | None]) -> Loop:
            left, right = (0 if a is None else p.strides[a] for p, a in zip(places, axes))
            return Loop(next(x.shape[a] for x, a in zip(avals, axes) if a is not None), left, right)

        lhs, rhs = avals
        return cls(*([loop(axes) for axes in part] for part in op.loops(lhs.ndim, rhs.ndim, **attrs)))

    @property
    def size(self) -> int:
        """Multiplications."""
        return math.prod([loop.extent for part in self for loop in part])

    @property
    def has_vector(self) -> bool:
        """Whether one of the operands has no axis to itself."""
        return any(math.prod([loop.extent for loop in part]) == 1 for part in (self.rows, self.columns))

    def matrices(self) -> list[Loop] | None:
        """One loop for each kind of axis; None where the axes of one lie in no such way."""
        parts = [merged((n, (left, right)) for n, left, right in loops) or [(1, (0, 0))] for loops in self]
        return None if any(len(part) > 1 for part in parts) else [Loop(n, *steps) for [(n, steps)] in parts]


def product_of(
    op: Op, attrs: Mapping[str, Any], avals: Sequence[Aval], places: Sequence[StridedLayout]
) -> Group | None:  # fmt: skip
    """A product of matrices as a sum along the last axes of its space; None for other ops, and where tiles pay."""
    if not isinstance(op, DotGeneral) or avals[0].dtype.kind not in "fiu":
        return None
    product = Product.of(op, attrs, avals, places)
    if not product.size or (product.size > MOST_WORK and not product.has_vector):
        return None
    space, *strides = (tuple(x) for x in zip(*(loop for part in product for loop in part), Loop(1, 0, 0)))
    laid = [Laid(StridedLayout(p.offset, s), True) for p, s in zip(places, strides)]
    return Group(_product_text(avals[0].dtype, op.result_dtype(avals[0].dtype)), space, len(product.depth) + 1, laid)


def gather_of(
    op: Op, attrs: Mapping[str, Any], avals: Sequence[Aval], places: Sequence[StridedLayout]
) -> Group | None:  # fmt: skip
    """Windows of an array; None for other ops."""
    if not isinstance(op, Gather):
        return None
    (x, *indices), sizes = avals, attrs["slice_sizes"]
    shape = indices[0].shape if indices else ()
    space = (*shape, *sizes)
    at = StridedLayout(places[0].offset, (*[0] * len(shape), *places[0].strides))
    laid = [at, *(StridedLayout(p.offset, (*p.strides, *[0] * len(sizes))) for p in places[1:])]
    gathered = [(x.shape[a] - sizes[a], places[0].strides[a]) for a in attrs["axes"]]
    text = _text([a.dtype for a in avals], [], 0, True)
    return Group(text, space, 0, [Laid(p, True) for p in laid], gathered) if math.prod(space) else None


def reduction_of(
    op: Op, attrs: Mapping[str, Any], avals: Sequence[Aval], places: Sequence[StridedLayout]
) -> Group | None:  # fmt: skip
    """A reduction over any axes; None for other ops, and of no elements."""
    if not isinstance(op, Reduction) or not avals[0].size:
        return None
    (x,), (at,), summed = avals, places, sorted(attrs["axes"])
    order = [a for a in range(x.ndim) if a not in summed] + summed
    space, strides = (tuple([of[a] for a in order]) for of in (x.shape, at.strides))
    others = {name: value for name, value in attrs.items() if name != "axes"}
    steps = [[f"smelt.{op.name}", plain_attrs(others), [0], False]]
    return Group(_text([x.dtype], steps, 1, False), space, len(summed), [Laid(StridedLayout(at.offset, strides), True)])


def elementwise_of(
    op: Op, attrs: Mapping[str, Any], avals: Sequence[Aval], places: Sequence[StridedLayout]
) -> Group | None:  # fmt: skip
    """An elementwise op; None for others, and of no elements."""
    if not isinstance(op, Elementwise) or op.sizes or len({a.shape for a in avals}) != 1 or not avals[0].size:
        return None
    steps = [[f"smelt.{op.name}", plain_attrs(attrs), list(range(len(avals))), True]]
    text = _text([a.dtype for a in avals], steps, len(avals), True)
    return Group(text, avals[0].shape, 0, [Laid(p, True) for p in places])


@functools.lru_cache(maxsize=64)
def _product_text(dtype: DType, result: DType) -> str:
    wide = compute_dtype(dtype)
    steps: list[Any] = []

    def add(name: str, attrs: dict[str, Any], read: list[int], full: bool) -> int:
        steps.append([f"smelt.{name}", plain_attrs(attrs), read, full])
        return 1 + len(steps)

    x, y = 0, 1
    if wide is not dtype:
        x, y = (add("convert", {"dtype": wide}, [i], True) for i in (0, 1))
    found = add("reduce_sum", {}, [add("mul", {}, [x, y], True)], False)
    if wide is not result:
        found = add("convert", {"dtype": result}, [found], False)
    return _text([dtype, dtype], steps, found, False)


def _text(operands: Sequence[DType], steps: Sequence[Any], given: int, full: bool) -> str:
    taken = [[dtype.mlir, True] for dtype in operands]
    return dumps([VERSION, taken, steps, [[given, full]]], separators=(",", ":"))


def scatter_text(dtypes: Sequence[DType]) -> str:
    """The text of a scatter of updates and indices of these types, which its layout completes."""
    return _text(dtypes, [], 0, True)


#: What makes a group of an op, where it is one of them.
WAYS = (gather_of, elementwise_of, reduction_of, product_of)
