"""Contractions: sums of products over shared axes."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import dtypes, halves
from ..aval import Aval
from ..errors import AttributeValueError, DTypeError
from ..forms import MatmulForm, matrix_layout
from ..index import Access, Coordinates
from ..kinds import Contraction, silent
from ..numpy_blas import matmul
from ..op import (
    Avals,
    Batched,
    Cotangents,
    Dims,
    Flags,
    HostCall,
    Ints,
    Operand,
    Values,
    only,
    require,
    require_axes,
    require_dtype,
    shifted,
)
from ..scalar import compute_dtype
from ..symbolic import has_symbol

if TYPE_CHECKING:
    from ..builder import Builder, Value
    from ..dtypes import DType

    Both = Sequence[tuple[int, int]]
    Either = Sequence[tuple[int | None, int | None]]


class DotGeneral(Contraction, name="dot_general"):
    """Products summed over the contracting axes, for each index of the batch axes.

    result[b…, m…, n…] = Σₖ lhs[b…, m…, k…] · rhs[b…, n…, k…]: batch axes first, then the free axes
    of lhs, then those of rhs. Half precision accumulates in float32; integers wrap.

    ``%0 = "smelt.dot_general"(%x, %y) {lhs_contracting = array<i64: 1>, rhs_contracting = array<i64: 0>, lhs_batch = array<i64>, rhs_batch = array<i64>} : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>``
    """

    primitive = "Matmul"
    lhs: Operand
    rhs: Operand
    lhs_contracting: Ints
    rhs_contracting: Ints
    lhs_batch: Ints = ()
    rhs_batch: Ints = ()

    def infer(
        self, lhs: Aval, rhs: Aval, *, lhs_contracting: Ints, rhs_contracting: Ints, lhs_batch: Ints, rhs_batch: Ints
    ) -> Aval:
        require_dtype(lhs, self.accepts, "lhs")
        require(lhs.dtype is rhs.dtype, "lhs and rhs must have the same dtype", DTypeError)
        require_axes((*lhs_batch, *lhs_contracting), lhs.ndim, "batch and contracting axes of lhs")
        require_axes((*rhs_batch, *rhs_contracting), rhs.ndim, "batch and contracting axes of rhs")
        pairs = (("contracting", lhs_contracting, rhs_contracting), ("batch", lhs_batch, rhs_batch))
        for what, left, right in pairs:
            same = len(left) == len(right)
            require(same, f"lhs has {len(left)} {what} axes, rhs has {len(right)}", AttributeValueError)
            for i, j in zip(left, right):
                p, q = lhs.shape[i], rhs.shape[j]
                require(p == q, f"{what} axis {i} of lhs has {p} elements, axis {j} of rhs has {q}")
        batch = tuple(lhs.shape[a] for a in lhs_batch)
        left = tuple(lhs.shape[a] for a in _free(lhs.ndim, lhs_batch, lhs_contracting))
        right = tuple(rhs.shape[a] for a in _free(rhs.ndim, rhs_batch, rhs_contracting))
        return Aval(batch + left + right, self.result_dtype(lhs.dtype))

    def symbol_for(
        self, operands: Avals,
        *, lhs_contracting: Ints, rhs_contracting: Ints, lhs_batch: Ints, rhs_batch: Ints,
    ) -> str:  # fmt: skip
        """NumPy's product of matrices, and of stacks of them."""
        lhs, rhs = operands
        stack = tuple(range(len(lhs_batch)))
        stacked = lhs_batch == rhs_batch == stack and lhs.ndim >= rhs.ndim == len(stack) + 2
        plain = stacked and lhs_contracting == (lhs.ndim - 1,) and rhs_contracting == (rhs.ndim - 2,)
        return "@" if plain and (not stack or lhs.ndim == rhs.ndim) else ""

    def short(
        self, texts: Sequence[str], operands: Avals,
        *, lhs_contracting: Ints, rhs_contracting: Ints, lhs_batch: Ints, rhs_batch: Ints,
    ) -> str:  # fmt: skip
        """Einstein's notation, of letters where there are enough."""
        lhs, rhs = operands
        letters = iter("ijklmnopqrstuvwxyzabcdefghBCDEFGHIJKLMNOPQRSTUVWXYZ" + "?" * (lhs.ndim + rhs.ndim))
        left, right = [""] * lhs.ndim, [""] * rhs.ndim
        for i, j in zip((*lhs_batch, *lhs_contracting), (*rhs_batch, *rhs_contracting)):
            left[i] = right[j] = next(letters)
        for side in (left, right):
            side[:] = [name or next(letters) for name in side]
        kept = [left[i] for i in lhs_batch]
        kept += [left[i] for i in _free(lhs.ndim, lhs_batch, lhs_contracting)]
        kept += [right[i] for i in _free(rhs.ndim, rhs_batch, rhs_contracting)]
        spec = f"{''.join(left)},{''.join(right)}->{''.join(kept)}"
        return f'einsum("{spec}", {", ".join(texts)})'

    @silent
    def reference(self, lhs: np.ndarray, rhs: np.ndarray, **axes: Any) -> np.ndarray:
        dtype = dtypes.of(lhs.dtype)
        left, left_shape, right, right_shape, shape = _as_matrices(self, lhs.shape, rhs.shape, dtype, **axes)
        a = halves.widened(lhs).transpose(left).reshape(left_shape)
        b = halves.widened(rhs).transpose(right).reshape(right_shape)
        return halves.rounded(_matmul(a, b).reshape(shape), self.result_dtype(dtype).numpy)

    def result_dtype(self, operand: DType) -> DType:
        """The dtype of the result of operands of a dtype."""
        return operand

    def host_call(
        self, operands: Avals, result: Aval,
        *, lhs_contracting: Ints, rhs_contracting: Ints, lhs_batch: Ints, rhs_batch: Ints,
    ) -> HostCall | None:  # fmt: skip
        lhs, rhs = operands
        if lhs.dtype.is_float and lhs.dtype.size == 2:
            return None
        matrices = _as_matrices.__wrapped__ if has_symbol((lhs.shape, rhs.shape)) else _as_matrices
        left, left_shape, right, right_shape, shape = matrices(
            self, lhs.shape, rhs.shape, result.dtype, lhs_contracting=lhs_contracting, rhs_contracting=rhs_contracting,
            lhs_batch=lhs_batch, rhs_batch=rhs_batch,
        )  # fmt: skip
        by_left, by_right = _way(lhs.shape, left, left_shape), _way(rhs.shape, right, right_shape)
        if by_left is None and by_right is None and shape == (*left_shape[:-1], right_shape[-1]):
            return HostCall(_matmul)
        return HostCall(_product, (by_left, by_right, shape))

    def transpose(
        self, b: Builder, cotangents: Cotangents, operands: Values, linear: Flags,
        *, lhs_contracting: Ints, rhs_contracting: Ints, lhs_batch: Ints, rhs_batch: Ints,
    ) -> Cotangents:  # fmt: skip
        """A contraction of the cotangent with the other operand over the latter's free axes, in their dtype."""
        lhs, rhs = operands
        ct = b.convert_to(only(cotangents), lhs.dtype)
        batch = tuple(range(len(lhs_batch)))
        left = _free(lhs.ndim, lhs_batch, lhs_contracting)
        right = _free(rhs.ndim, rhs_batch, rhs_contracting)
        middle = len(batch) + len(left)
        if linear[0]:  # batch, free axes of lhs, contracting axes in the order in which rhs has them
            found = b.dot_general(
                ct, rhs,
                lhs_contracting=tuple(range(middle, ct.ndim)), rhs_contracting=right,
                lhs_batch=batch, rhs_batch=rhs_batch,
            )  # fmt: skip
            partner = dict(zip(rhs_contracting, lhs_contracting))
            return [_restore(b, found, (*lhs_batch, *left, *(partner[a] for a in sorted(partner)))), None]
        found = b.dot_general(
            lhs, ct,
            lhs_contracting=left, rhs_contracting=tuple(range(len(batch), middle)),
            lhs_batch=lhs_batch, rhs_batch=batch,
        )  # fmt: skip
        partner = dict(zip(lhs_contracting, rhs_contracting))
        return [None, _restore(b, found, (*rhs_batch, *(partner[a] for a in sorted(partner)), *right))]

    def batch(
        self, b: Builder, operands: Values, dims: Dims,
        *, lhs_contracting: Ints, rhs_contracting: Ints, lhs_batch: Ints, rhs_batch: Ints,
    ) -> Batched:  # fmt: skip
        """One more batch axis, or one more free axis where only one operand is batched: nothing moves."""
        (lhs, rhs), (i, j) = operands, dims
        if i is not None:
            lhs_contracting, lhs_batch = shifted(lhs_contracting, i), shifted(lhs_batch, i)
        if j is not None:
            rhs_contracting, rhs_batch = shifted(rhs_contracting, j), shifted(rhs_batch, j)
        if i is not None and j is not None:
            lhs_batch, rhs_batch, out = (i, *lhs_batch), (j, *rhs_batch), 0
        elif i is not None:
            out = len(lhs_batch) + _free(lhs.ndim, lhs_batch, lhs_contracting).index(i)
        else:
            kept = lhs.ndim - len(lhs_contracting)  # batch and free axes of lhs
            out = kept + _free(rhs.ndim, rhs_batch, rhs_contracting).index(j)
        attrs = {
            "lhs_contracting": lhs_contracting, "rhs_contracting": rhs_contracting,
            "lhs_batch": lhs_batch, "rhs_batch": rhs_batch,
        }  # fmt: skip
        return b.emit(self, [lhs, rhs], attrs), [out]

    # Lowering: as loops over elements of the operands, or to matrix products.

    def depth(
        self, lhs: Aval, rhs: Aval, *, lhs_contracting: Ints, rhs_contracting: Ints, lhs_batch: Ints, rhs_batch: Ints
    ) -> tuple[int, ...]:
        order = _depth_order(lhs, rhs, lhs_contracting, rhs_contracting, lhs_batch, rhs_batch)
        return tuple(lhs.shape[lhs_contracting[i]] for i in order)

    def operand_indices(
        self, place: Coordinates, depth: Coordinates, lhs: Aval, rhs: Aval,
        *, lhs_contracting: Ints, rhs_contracting: Ints, lhs_batch: Ints, rhs_batch: Ints,
    ) -> tuple[Access, ...]:  # fmt: skip
        order = _depth_order(lhs, rhs, lhs_contracting, rhs_contracting, lhs_batch, rhs_batch)
        nb, left = len(lhs_batch), _free(lhs.ndim, lhs_batch, lhs_contracting)
        right = _free(rhs.ndim, rhs_batch, rhs_contracting)
        split = nb + len(left)
        lk, rk = [lhs_contracting[i] for i in order], [rhs_contracting[i] for i in order]
        at = dict(zip((*lhs_batch, *left, *lk), (*place[:split], *depth)))
        to = dict(zip((*rhs_batch, *right, *rk), (*place[:nb], *place[split:], *depth)))
        return Access(tuple(at[a] for a in range(lhs.ndim))), Access(tuple(to[a] for a in range(rhs.ndim)))

    def matmul_form(
        self, lhs: Aval, rhs: Aval, *, lhs_contracting: Ints, rhs_contracting: Ints, lhs_batch: Ints, rhs_batch: Ints
    ) -> MatmulForm:
        left = _free(lhs.ndim, lhs_batch, lhs_contracting)
        right = _free(rhs.ndim, rhs_batch, rhs_contracting)
        order = _depth_order(lhs, rhs, lhs_contracting, rhs_contracting, lhs_batch, rhs_batch)
        lk, rk = tuple(lhs_contracting[i] for i in order), tuple(rhs_contracting[i] for i in order)
        return MatmulForm(
            math.prod(lhs.shape[a] for a in lhs_batch),
            math.prod(lhs.shape[a] for a in left),
            math.prod(rhs.shape[a] for a in right),
            math.prod(lhs.shape[a] for a in lhs_contracting),
            (*lhs_batch, *left, *lk),
            (*rhs_batch, *rk, *right),
            matrix_layout(lhs.shape, lhs_batch, left, lk),
            matrix_layout(rhs.shape, rhs_batch, rk, right),
        )

    def in_place(self, b: Builder, operands: Values, **axes: Any) -> Values:
        """Operands that lie in another order are transposed; each such transpose fuses with what makes its operand."""
        lhs, rhs = operands
        form = self.matmul_form(lhs.aval, rhs.aval, **axes)
        nb, nk = len(axes["lhs_batch"]), len(axes["lhs_contracting"])
        left, right, middle = form.lhs_permutation, form.rhs_permutation, lhs.ndim - nk
        if form.lhs_layout == "copy":
            lhs, left = b.transpose(lhs, permutation=left), tuple(range(lhs.ndim))
        if form.rhs_layout == "copy":
            rhs, right = b.transpose(rhs, permutation=right), tuple(range(rhs.ndim))
        attrs = {
            "lhs_batch": left[:nb], "lhs_contracting": left[middle:],
            "rhs_batch": right[:nb], "rhs_contracting": right[nb : nb + nk],
        }  # fmt: skip
        return b.emit(self, [lhs, rhs], attrs)

    def before_transpose(self, operand: int, permutation: Ints, /, **axes: Any) -> dict[str, Any] | None:
        """The same axes by their names before, if the free ones keep their order."""
        side = ("lhs", "rhs")[operand]
        batch, contracting = (tuple(permutation[a] for a in axes[f"{side}_{what}"]) for what in ("batch", "contracting"))
        free = [permutation[a] for a in _free(len(permutation), axes[f"{side}_batch"], axes[f"{side}_contracting"])]
        return {**axes, f"{side}_batch": batch, f"{side}_contracting": contracting} if free == sorted(free) else None

    def loops(
        self, lhs: int, rhs: int, *, lhs_contracting: Ints, rhs_contracting: Ints, lhs_batch: Ints, rhs_batch: Ints
    ) -> tuple[Both, Either, Either, Both]:
        """The axes of operands with `lhs` and `rhs` axes as loops over batches, rows, columns and the depth: for each loop
        its axis in either operand, or None."""
        rows, columns = _free(lhs, lhs_batch, lhs_contracting), _free(rhs, rhs_batch, rhs_contracting)
        batch, depth = list(zip(lhs_batch, rhs_batch)), list(zip(lhs_contracting, rhs_contracting))
        return batch, [(a, None) for a in rows], [(None, a) for a in columns], depth

    def summed(self, **axes: Any) -> tuple[Ints, Ints] | None:
        """The axes of both operands that are summed over; None where they have others in common."""
        return None if axes["lhs_batch"] else (axes["lhs_contracting"], axes["rhs_contracting"])

    def with_summed(self, operand: int, summed: Ints, /, **axes: Any) -> dict[str, Any]:
        """The attributes by which these axes of an operand are summed over."""
        return {**axes, ("lhs_contracting", "rhs_contracting")[operand]: summed}

    def work(
        self, lhs: Aval, rhs: Aval, *, lhs_contracting: Ints, rhs_contracting: Ints, lhs_batch: Ints, rhs_batch: Ints
    ) -> float:
        return self.flops * lhs.size * math.prod(rhs.shape[a] for a in _free(rhs.ndim, rhs_batch, rhs_contracting))


class WideDotGeneral(DotGeneral, name="wide_dot_general"):
    """`dot_general` whose sums of products of half precision stay in float32, and are not rounded.

    Scores of attention are such: a softmax magnifies what rounding a large one loses. Of other dtypes it is the same
    as `dot_general`. The cotangent of an operand is of the operand's dtype.

    ``%0 = "smelt.wide_dot_general"(%x, %y) {lhs_contracting = array<i64: 1>, rhs_contracting = array<i64: 0>, lhs_batch = array<i64>, rhs_batch = array<i64>} : (tensor<4x8xbf16>, tensor<8x3xbf16>) -> tensor<4x3xf32>``
    """

    primitive = "Matmul"

    def result_dtype(self, operand: DType) -> DType:
        return compute_dtype(operand)


#: A permutation and a shape, where they change an array.
_Way = tuple["Ints | None", "Ints | None"]


def sums(lhs: Any, rhs: Any, batch: Any = ()) -> dict[str, Any]:
    """The attributes of a `DotGeneral` that sums over axes `lhs` and `rhs`, for each of the `batch` axes of both.

    >>> sums((1,), (0,))["rhs_contracting"]
    (0,)
    """
    return {"lhs_contracting": lhs, "rhs_contracting": rhs, "lhs_batch": batch, "rhs_batch": batch}


def _way(given: Ints, permutation: Ints, shape: Ints) -> _Way | None:
    moved = tuple(given[p] for p in permutation)
    by = None if permutation == tuple(range(len(given))) else permutation
    to = None if shape == moved else shape
    return None if by is None and to is None else (by, to)


def _along(x: np.ndarray, way: _Way | None) -> np.ndarray:
    if way is None:
        return x
    by, to = way
    x = x if by is None else x.transpose(by)
    return x if to is None else x.reshape(to)


def _matmul(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Products of matrices. A sum of one term is that term, also -0, which a library adds to 0; and it takes longer."""
    return np.multiply(x, y) if x.shape[-1] == 1 else matmul(x, y)


def _product(x: np.ndarray, y: np.ndarray, left: _Way | None, right: _Way | None, shape: Ints) -> np.ndarray:
    return _matmul(_along(x, left), _along(y, right)).reshape(shape)


@functools.lru_cache(4096)
def _as_matrices(op: DotGeneral, lhs: Ints, rhs: Ints, dtype: DType, **axes: Ints) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """Operands of these shapes as batches of matrices: by which permutation and in which shape, and the result's."""
    left, right = Aval(lhs, dtype), Aval(rhs, dtype)
    form = op.matmul_form(left, right, **axes)
    shape = op.infer(left, right, **axes).shape
    batch = () if form.batch == 1 else (form.batch,)
    return form.lhs_permutation, (*batch, form.m, form.k), form.rhs_permutation, (*batch, form.k, form.n), shape


def _free(ndim: int, batch: Ints, contracting: Ints) -> Ints:
    """The axes that are neither batch nor contracting, in order."""
    return tuple(a for a in range(ndim) if a not in batch and a not in contracting)


def _restore(b: Builder, x: Value, axes: Ints) -> Value:
    """x, whose axis i shall become axis ``axes[i]``."""
    permutation = tuple(int(i) for i in np.argsort(axes))
    return x if permutation == tuple(range(x.ndim)) else b.transpose(x, permutation=permutation)


def _depth_order(
    lhs: Aval, rhs: Aval, lhs_contracting: Ints, rhs_contracting: Ints, lhs_batch: Ints, rhs_batch: Ints
) -> list[int]:
    """The contracting axes, by their number, in the order that leaves most operands where they are.

    Their order is free, as long as both operands agree.
    """
    left, right = _free(lhs.ndim, lhs_batch, lhs_contracting), _free(rhs.ndim, rhs_batch, rhs_contracting)

    def copies(order: list[int]) -> int:
        lk, rk = tuple(lhs_contracting[i] for i in order), tuple(rhs_contracting[i] for i in order)
        layouts = matrix_layout(lhs.shape, lhs_batch, left, lk), matrix_layout(rhs.shape, rhs_batch, rk, right)
        return layouts.count("copy")

    count = range(len(lhs_contracting))
    if len(count) < 2:
        return list(count)
    return min((sorted(count, key=axes.__getitem__) for axes in (lhs_contracting, rhs_contracting)), key=copies)
