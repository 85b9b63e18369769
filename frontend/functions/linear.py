"""Products of matrices and their generalizations, all on one primitive: `smelt.dot_general`."""

from __future__ import annotations

import functools
import itertools
import math
import string
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from smelt.ir import dtypes
from smelt.ir.dtypes import DType
from smelt.ir.errors import ArgumentTypeError, ShapeError, at_user_line, shown
from smelt.ir.keywords import keywords_explained
from smelt.ir.op import registry as ops
from smelt.ir.scalar import compute_dtype

from ..lazy.arguments import integer
from ..lazy.arrays import (
    ArrayLike,
    StreamOrDevice,
    array,
    as_array,
    broadcast_shapes,
    broadcast_to_shape,
    convert,
    emit,
    emit_elementwise,
    meeting,
    promote_operands,
)
from ..lazy.core import remembered
from ..lazy.movement import Axes, broadcast_together, many_axes, one_axis, permuted, piece, to_shape
from ..lazy.operands import arrays_of, is_scalar
from ..lazy.streams import check_stream
from .reductions import accumulated, widened

__all__ = [
    "addmm",
    "einsum",
    "einsum_path",
    "inner",
    "kron",
    "matmul",
    "outer",
    "tensordot",
    "vecdot",
]


def _dot(
    x: array,
    y: array,
    contracting: tuple[Sequence[int], Sequence[int]],
    batch: tuple[Sequence[int], Sequence[int]] = ((), ()),
    op: str = "dot_general",
) -> array:
    """A contraction; its axes are: batch, free axes of x, free axes of y."""
    attrs = {
        "lhs_contracting": tuple(contracting[0]), "rhs_contracting": tuple(contracting[1]),
        "lhs_batch": tuple(batch[0]), "rhs_batch": tuple(batch[1]),
    }  # fmt: skip
    return emit(ops[op], (x, y), attrs)


def common_dtype(xs: Sequence[array]) -> DType:
    """The dtype that arrays meet in."""
    return functools.reduce(dtypes.promote, [x.dtype for x in xs])


def product_operands(*values: ArrayLike) -> tuple[DType, list[array]]:
    """The dtype in which operands meet, that of their product; and the operands in the dtype that adds and multiplies.

    Bools are counted in int32: their product is whether any pair of them is true.
    """
    xs = [as_array(v) for v in values]
    dtype = common_dtype(xs)
    numbers = dtypes.int32 if dtype is dtypes.bool_ else dtype
    return dtype, [meeting(v, x, numbers) for v, x in zip(values, xs)]


@remembered
def matmul(a: ArrayLike, b: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """The product of matrices, or of stacks of matrices, whose leading axes are broadcast.

    A vector on the left counts as a row, on the right as a column; that axis is dropped from the result. Integers wrap;
    of bools it is whether any pair is true, as in NumPy.

    Args:
        a, b: […, m, k] and […, k, n], or vectors.

    Returns:
        […, m, n], in the common dtype.

    Raises:
        ShapeError: a scalar, or inner extents or leading axes that do not fit.

    >>> import smelt
    >>> smelt.matmul(smelt.array([[1, 2], [3, 4]]), smelt.array([1, 1]))
    array([3, 7], dtype=int32)
    """
    check_stream(stream)
    dtype, (x, y) = product_operands(a, b)
    return convert(_matrices(x, y), dtype)


def wide_matmul(x: array, y: array) -> array:
    """`matmul` of arrays of one dtype, whose result is in float32 where they are of half precision."""
    return _matrices(x, y, "dot_general" if compute_dtype(x.dtype) is x.dtype else "wide_dot_general")


def _matrices(x: array, y: array, op: str = "dot_general") -> array:
    """The product of matrices, or of stacks of them, by an op."""
    p, q = x.shape, y.shape
    if not p or not q:
        side = "lhs" if not p else "rhs"
        raise ShapeError(
            at_user_line(f"smelt.matmul: {side} is a scalar; multiply it with *; lhs {x.aval}, rhs {y.aval}")
        )
    rows = y.ndim - 2 if y.ndim > 1 else 0
    if p[-1] != q[rows]:
        left = f"lhs has {p[-1]} {'columns' if x.ndim > 1 else 'elements'}"
        right = f"rhs has {q[rows]} {'rows' if y.ndim > 1 else 'elements'}"
        raise ShapeError(at_user_line(f"smelt.matmul: {left}, {right}; lhs {x.aval}, rhs {y.aval}"))
    if y.ndim <= 2:  # all axes of x but the last are rows: one product
        return _dot(x, y, ((x.ndim - 1,), (rows,)), op=op)
    if x.ndim == 1:
        return to_shape(_matrices(to_shape(x, (1, *p)), y, op), (*q[:-2], q[-1]))
    lead = _broadcast_lead(x, y)
    # An axis that only one operand has is one of its free axes; an axis of both is a batch axis.
    nd = len(lead)
    mine = [-1] * (nd - x.ndim + 2) + [i if d != 1 else -1 for i, d in enumerate(p[:-2])]
    theirs = [-1] * (nd - y.ndim + 2) + [i if d != 1 else -1 for i, d in enumerate(q[:-2])]
    both = [i for i in range(nd) if mine[i] >= 0 and theirs[i] >= 0]
    only_x = [i for i in range(nd) if mine[i] >= 0 and theirs[i] < 0]
    only_y = [i for i in range(nd) if mine[i] < 0 and theirs[i] >= 0]
    x = to_shape(x, (*(d for d in p[:-2] if d != 1), *p[-2:]))
    y = to_shape(y, (*(d for d in q[:-2] if d != 1), *q[-2:]))
    x_axis = {i: n for n, i in enumerate(i for i in range(nd) if mine[i] >= 0)}
    y_axis = {i: n for n, i in enumerate(i for i in range(nd) if theirs[i] >= 0)}
    batch = ([x_axis[i] for i in both], [y_axis[i] for i in both])
    found = _dot(x, y, ((x.ndim - 1,), (y.ndim - 2,)), batch, op)
    order = [*both, *only_x, nd, *only_y, nd + 1]
    found = permuted(found, tuple(sorted(range(len(order)), key=order.__getitem__)))
    return to_shape(found, (*lead, p[-2], q[-1]))


def _broadcast_lead(x: array, y: array) -> tuple[int, ...]:
    p, q = x.shape[:-2], y.shape[:-2]
    n = max(len(p), len(q))
    p, q = (1,) * (n - len(p)) + p, (1,) * (n - len(q)) + q
    if any(c != d and 1 not in (c, d) for c, d in zip(p, q)):
        raise ShapeError(
            at_user_line(
                f"smelt.matmul: leading axes {x.shape[:-2]} and {y.shape[:-2]} cannot be broadcast together; "
                f"lhs {x.aval}, rhs {y.aval}"
            )
        )
    return tuple(d if c == 1 else c for c, d in zip(p, q))


@remembered
def addmm(
    c: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    /,
    alpha: float = 1.0,
    beta: float = 1.0,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """alpha·(a @ b) + beta·c, where c is broadcast to the shape of the product.

    Raises:
        ShapeError: matrices that do not fit, or a `c` that does not broadcast to their product.

    >>> import smelt
    >>> smelt.addmm(smelt.array([1.0]), smelt.array([[2.0]]), smelt.array([[3.0]]), alpha=0.5)
    array([[4]], dtype=float32)
    """
    check_stream(stream)
    dtype, (c, a, b) = product_operands(c, a, b)
    found, c = convert(matmul(a, b), dtype), convert(c, dtype)
    if broadcast_shapes("addmm", found.shape, c.shape) != found.shape:
        message = f"smelt.addmm: c must broadcast to the product of a and b, {found.aval}; c {c.aval}"
        raise ShapeError(at_user_line(message))
    if not (is_scalar(alpha) and alpha == 1):
        found = emit_elementwise(ops["mul"], *promote_operands("addmm", found, alpha))
    if not (is_scalar(beta) and beta == 1):
        c = emit_elementwise(ops["mul"], *promote_operands("addmm", c, beta))
    return emit_elementwise(ops["add"], *promote_operands("addmm", found, c))


@remembered
def inner(a: ArrayLike, b: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Sums of products over the last axes: result[i…, j…] = Σₖ a[i…, k] · b[j…, k]. Scalars multiply.

    Raises:
        ShapeError: last axes of different sizes.

    >>> import smelt
    >>> smelt.inner(smelt.array([1, 2]), smelt.array([3, 4]))
    array(11, dtype=int32)
    """
    check_stream(stream)
    x, y = arrays_of(a, b)
    if not x.ndim or not y.ndim:
        return emit_elementwise(ops["mul"], *promote_operands("inner", x, y))
    dtype, (x, y) = product_operands(x, y)
    if x.shape[-1] != y.shape[-1]:
        raise ShapeError(
            at_user_line(
                f"smelt.inner: the last axes have {x.shape[-1]} and {y.shape[-1]} elements; a {x.aval}, b {y.aval}"
            )
        )
    return convert(_dot(x, y, ((x.ndim - 1,), (y.ndim - 1,))), dtype)


@remembered
def outer(a: ArrayLike, b: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """All products of an element of `a` and one of `b`, both flattened: result[i, j] = a[i] · b[j].

    >>> import smelt
    >>> smelt.outer(smelt.array([1, 2]), smelt.array([3, 4]))
    array([[3, 4],
           [6, 8]], dtype=int32)
    """
    check_stream(stream)
    x, y = arrays_of(a, b)
    x, y = to_shape(x, (x.size, 1)), to_shape(y, (y.size,))
    return emit_elementwise(ops["mul"], *promote_operands("outer", x, y))


@remembered
def vecdot(a: ArrayLike, b: ArrayLike, /, *, axis: int = -1, stream: StreamOrDevice = None) -> array:
    """Sums of products along an axis, the other axes being broadcast; `a` is conjugated if complex.

    Args:
        a, b: arrays of any dtypes. axis: the one that is summed, which counts from the end.

    Raises:
        ShapeError: axes of different sizes.

    >>> import smelt
    >>> smelt.vecdot(smelt.array([[1, 2], [3, 4]]), smelt.array([1, 1]))
    array([3, 7], dtype=int32)
    """
    check_stream(stream)
    _, (x, y) = product_operands(a, b)  # bools are counted, as in MLX
    i, j = one_axis("vecdot", axis, x.shape), one_axis("vecdot", axis, y.shape)
    if x.shape[i] != y.shape[j]:
        raise ShapeError(
            at_user_line(
                f"smelt.vecdot: axis {axis} has {x.shape[i]} and {y.shape[j]} elements; a {x.aval}, b {y.aval}"
            )
        )
    dtype = x.dtype
    x = widened(permuted(x, (*(k for k in range(x.ndim) if k != i), i)))
    y = widened(permuted(y, (*(k for k in range(y.ndim) if k != j), j)))
    if x.dtype.is_complex:
        minus = emit_elementwise(ops["neg"], emit_elementwise(ops["imag"], x))
        x = emit_elementwise(ops["complex"], emit_elementwise(ops["real"], x), minus)
    found = emit_elementwise(ops["mul"], *broadcast_together("vecdot", [x, y]))
    return convert(emit(ops["reduce_sum"], (found,), {"axes": (found.ndim - 1,)}), dtype)


@remembered
def tensordot(
    a: ArrayLike, b: ArrayLike, /, axes: int | Sequence[Axes] = 2, *, stream: StreamOrDevice = None
) -> array:
    """Sums of products over pairs of axes; the result has the other axes of `a`, then those of `b`.

    Args:
        axes: how many of the last axes of `a` meet the first of `b`, or a list of axes for each.

    Raises:
        ShapeError: axes that do not fit to each other, or are no pairs.

    >>> import smelt
    >>> smelt.tensordot(smelt.ones((2, 3)), smelt.ones((3, 4)), axes=1).shape
    (2, 4)
    """
    check_stream(stream)
    dtype, (x, y) = product_operands(a, b)
    if isinstance(axes, (tuple, list)):
        if len(axes) != 2:
            raise ShapeError(at_user_line(f"smelt.tensordot: axes needs a list for each operand, is {shown(axes)}"))
        left, right = many_axes("tensordot", axes[0], x.shape), many_axes("tensordot", axes[1], y.shape)
    else:
        n = integer("tensordot", "axes", axes)
        if not 0 <= n <= min(x.ndim, y.ndim):
            raise ShapeError(at_user_line(f"smelt.tensordot: {n} axes are asked for; a {x.aval}, b {y.aval}"))
        left, right = tuple(range(x.ndim - n, x.ndim)), tuple(range(n))
    p, q = tuple(x.shape[i] for i in left), tuple(y.shape[i] for i in right)
    if p != q:
        raise ShapeError(
            at_user_line(
                f"smelt.tensordot: axes {left} of a have extents {p}, axes {right} of b have {q}; "
                f"a {x.aval}, b {y.aval}"
            )
        )
    return convert(_dot(x, y, (left, right)), dtype)


@remembered
def kron(a: ArrayLike, b: ArrayLike, *, stream: StreamOrDevice = None) -> array:
    """The Kronecker product: each element of `a` times the whole of `b`, in blocks.

    >>> import smelt
    >>> smelt.kron(smelt.array([1, 2]), smelt.array([1, 10]))
    array([ 1, 10,  2, 20], dtype=int32)
    """
    check_stream(stream)
    x, y = arrays_of(a, b)
    n = max(x.ndim, y.ndim)
    p, q = (1,) * (n - x.ndim) + x.shape, (1,) * (n - y.ndim) + y.shape
    x = to_shape(x, tuple(e for d in p for e in (d, 1)))
    y = to_shape(y, tuple(e for d in q for e in (1, d)))
    found = emit_elementwise(ops["mul"], *promote_operands("kron", x, y))
    return to_shape(found, tuple(c * d for c, d in zip(p, q)))


# Einsum


class _Term(NamedTuple):
    """An array and a label for each of its axes."""

    x: array
    labels: str


@remembered
def einsum(subscripts: str | ArrayLike, *operands: Any, stream: StreamOrDevice = None) -> array:
    """Sums of products, described by a letter for each axis: ``"ij,jk->ik"`` is the matrix product.

    A letter that is missing behind the arrow is summed over; one that repeats within an operand takes
    the diagonal; an ellipsis stands for axes that are broadcast. Without an arrow the result has the
    letters that occur once, in alphabetical order. Operands meet in pairs, cheapest first. Small integers of
    one operand widen as in `sum`.

    Instead of a text, each operand may be followed by a list of numbers for its axes, with `...` for an ellipsis, and
    the last one by that of the result.

    Raises:
        ShapeError: subscripts that do not fit the operands.

    >>> import smelt
    >>> x = smelt.array([[1, 2], [3, 4]])
    >>> smelt.einsum("ii", x)
    array(5, dtype=int32)
    >>> smelt.einsum(x, [0, 1], [1])
    array([4, 6], dtype=int32)
    """
    check_stream(stream)
    subscripts, operands = _described("einsum", subscripts, operands)
    xs = [as_array(x) for x in operands]
    inputs, output, extents = _parse("einsum", subscripts, xs)
    dtype = common_dtype(xs)
    if set("".join(inputs)) != set(output):  # something is added up
        dtype = accumulated(dtype) if len(xs) == 1 else dtype
        _, xs = product_operands(*operands)
        xs = [convert(x, dtype) for x in xs] if len(xs) == 1 else xs
    else:
        xs = [meeting(v, x, dtype) for v, x in zip(operands, xs)]
    terms = []
    for x, labels in zip(xs, inputs):
        term = _diagonals(_Term(x, labels))
        # An axis of one element that is longer elsewhere is broadcast: without it that happens by itself.
        kept = [i for i, c in enumerate(term.labels) if term.x.shape[i] == extents[c]]
        shape = tuple(term.x.shape[i] for i in kept)
        terms.append(_Term(to_shape(term.x, shape), "".join(term.labels[i] for i in kept)))
    for pair in _path([t.labels for t in terms], output, extents):
        chosen = [terms[i] for i in pair]
        terms = [t for i, t in enumerate(terms) if i not in pair]
        needed = set(output).union(*(t.labels for t in terms))
        chosen = [_summed(t, needed.union(*(u.labels for u in chosen if u is not t))) for t in chosen]
        terms.append(_product(chosen[0], chosen[1], needed) if len(chosen) == 2 else chosen[0])
    (found,) = terms
    return convert(permuted(found.x, tuple(found.labels.index(c) for c in output)), dtype)


@keywords_explained
def einsum_path(subscripts: str | ArrayLike, *operands: Any) -> tuple[list[tuple[int, ...]], str]:
    """The order in which `einsum` contracts: positions in the shrinking list of operands, and a table.

    Args:
        subscripts, operands: as of `einsum`.

    >>> import smelt
    >>> smelt.einsum_path("ij,jk,k->i", smelt.ones((8, 8)), smelt.ones((8, 8)), smelt.ones(8))[0]
    [(1, 2), (0, 1)]
    """
    subscripts, operands = _described("einsum_path", subscripts, operands)
    xs = [as_array(x) for x in operands]
    inputs, output, extents = _parse("einsum_path", subscripts, xs)
    labels = ["".join(dict.fromkeys(t)) for t in inputs]
    path = _path(labels, output, extents)
    lines = [f"{','.join(inputs)}->{output}"]
    for pair in path:
        rest = [t for i, t in enumerate(labels) if i not in pair]
        meeting = set().union(*(labels[i] for i in pair))
        kept = "".join(sorted(meeting & set(output).union(*rest)))
        cost = math.prod(extents[c] for c in meeting)
        lines.append(f"{pair!s:>10}  {','.join(labels[i] for i in pair)}->{kept}  {cost:,} products")
        labels = [*rest, kept]
    return path, "\n".join(lines)


#: Letters of axes that have numbers, in the order in which `sorted` has them.
_LETTERS = "".join(sorted(string.ascii_letters))


def _described(name: str, first: Any, rest: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """Subscripts as text, and the operands, where lists of numbers may stand behind these."""
    if isinstance(first, str) or not rest or not isinstance(rest[0], (list, tuple)):
        return first, rest
    given = (first, *rest)
    lists = [*given[1::2], *([given[-1]] if len(given) % 2 else [])]
    if not all(isinstance(axes, (list, tuple)) for axes in lists):
        text = "each operand must be followed by a list of the numbers of its axes"
        raise ArgumentTypeError(at_user_line(f"smelt.{name}: {text}"))
    numbers = [[c if c is ... else integer(name, "a number of an axis", c, 0) for c in axes] for axes in lists]
    used = sorted({c for axes in numbers for c in axes if c is not ...})
    if len(used) > len(_LETTERS):
        raise ShapeError(at_user_line(f"smelt.{name}: {len(used)} axes have numbers, at most {len(_LETTERS)} may"))
    texts = ["".join("..." if c is ... else _LETTERS[used.index(c)] for c in axes) for axes in numbers]
    inputs, output = texts[: len(given) // 2], texts[len(given) // 2 :]
    return ",".join(inputs) + "".join(f"->{t}" for t in output), given[: 2 * len(inputs) : 2]


def _parse(name: str, subscripts: str, xs: Sequence[array]) -> tuple[list[str], str, dict[str, int]]:
    """Labels of each operand and of the result, the ellipsis spelled out, and the extent of each label."""

    def fail(message: str) -> ShapeError:
        listed = ", ".join(str(x.aval) for x in xs)
        return ShapeError(at_user_line(f'smelt.{name}: {message}; {shown(subscripts)}, operands {listed or "none"}'))

    if not isinstance(subscripts, str):
        raise ArgumentTypeError(at_user_line(f"smelt.{name}: subscripts must be a text, is {shown(subscripts)}"))
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    inputs = left.split(",")
    if not xs or len(inputs) != len(xs):
        raise fail(f"{len(inputs)} operands are described, {len(xs)} given")
    letters = (left + right).replace("...", "").replace(",", "")
    if not all(c.isalpha() for c in letters):
        raise fail("subscripts consist of letters, commas, ... and one ->")
    hidden = [0] * len(xs)
    for i, (x, labels) in enumerate(zip(xs, inputs)):
        named = len(labels.replace("...", ""))
        if labels.count("...") > 1 or named > x.ndim or ("..." not in labels and named != x.ndim):
            raise fail(f"operand {i} has {x.ndim} axes, its subscripts name {named}")
        hidden[i] = x.ndim - named
    widest = max(hidden)
    # Axes under the ellipsis get labels that no user writes, the last axis always the same one.
    stand_ins = "".join(chr(0xE000 + i) for i in range(widest))
    inputs = [t.replace("...", stand_ins[widest - n :]) for t, n in zip(inputs, hidden)]
    if arrow:
        output = right.replace("...", stand_ins)
        if "..." not in right and widest:
            raise fail("the ellipsis is missing behind the arrow")
    else:
        every = "".join(inputs)
        output = stand_ins + "".join(sorted(c for c in set(every) - set(stand_ins) if every.count(c) == 1))
    if len(set(output)) != len(output):
        raise fail("a letter repeats behind the arrow")
    extents: dict[str, int] = {}
    for i, (x, labels) in enumerate(zip(xs, inputs)):
        for c, d in zip(labels, x.shape):
            known = extents.get(c, 1)
            if d != known and 1 not in (d, known):
                what = "an axis under the ellipsis" if c in stand_ins else f"axis {c}"
                raise fail(f"{what} has {known} elements, but {d} in operand {i}")
            extents[c] = d if known == 1 else known
    missing = set(output) - set(extents)
    if missing:
        raise fail(f"{sorted(missing)[0]} behind the arrow is in no operand")
    return inputs, output, extents


def _path(labels: Sequence[str], output: str, extents: dict[str, int]) -> list[tuple[int, ...]]:
    """Greedily: the pair whose result saves most memory, then the one with the fewest products."""
    if len(labels) == 1:
        return [(0,)]
    left = [set(t) for t in labels]
    path: list[tuple[int, ...]] = []
    users = Counter(itertools.chain(output, *left))  # of each label: terms, and the result

    def size(t: set[str]) -> int:
        return math.prod(extents[c] for c in t)

    while len(left) > 1:
        sizes = [size(t) for t in left]
        best: tuple[tuple[int, int], tuple[int, int], set[str]] | None = None
        for i, j in itertools.combinations(range(len(left)), 2):
            met = left[i] | left[j]
            kept = {c for c in met if users[c] > (c in left[i]) + (c in left[j])}
            cost = (size(kept) - sizes[i] - sizes[j], size(met))
            if best is None or cost < best[0]:
                best = cost, (i, j), kept
        assert best is not None
        _, pair, kept = best
        for k in pair:
            users.subtract(left[k])
        users.update(kept)
        left = [t for k, t in enumerate(left) if k not in pair] + [kept]
        path.append(pair)
    return path


def _diagonals(term: _Term) -> _Term:
    """Without repeated labels: each takes the diagonal of its axes."""
    x, labels = term
    while len(set(labels)) != len(labels):
        c = next(c for c in labels if labels.count(c) > 1)
        i = labels.index(c)
        j = labels.index(c, i + 1)
        n = max(x.shape[i], x.shape[j])
        x = broadcast_to_shape(x, tuple(n if k in (i, j) else d for k, d in enumerate(x.shape)))
        rest = [k for k in range(x.ndim) if k not in (i, j)]
        x = permuted(x, (*rest, i, j))
        lead = x.shape[:-2]
        flat = to_shape(x, (*lead, n * n))
        x = piece(flat, len(lead), 0, n * n, n + 1) if n else flat
        labels = "".join(labels[k] for k in rest) + c
    return _Term(x, labels)


def _summed(term: _Term, needed: set[str]) -> _Term:
    """Without the axes that nobody else needs."""
    axes = tuple(i for i, c in enumerate(term.labels) if c not in needed)
    if not axes:
        return term
    found = emit(ops["reduce_sum"], (term.x,), {"axes": axes})
    return _Term(found, "".join(c for c in term.labels if c in needed))


def _product(left: _Term, right: _Term, needed: set[str]) -> _Term:
    """Two terms multiplied, and summed over the labels that are needed no more."""
    (x, p), (y, q) = left, right
    common = [c for c in p if c in q]
    contracted = [c for c in common if c not in needed]
    if not contracted:  # nothing to sum: a product of elements, which fuses
        labels = p + "".join(c for c in q if c not in p)
        order = sorted(range(len(q)), key=lambda i: labels.index(q[i]))
        y = permuted(y, tuple(order))
        extent = {q[i]: d for i, d in zip(order, y.shape)}
        x = to_shape(x, (*x.shape, *(1 for c in labels if c not in p)))
        y = to_shape(y, tuple(extent.get(c, 1) for c in labels))
        return _Term(emit_elementwise(ops["mul"], *broadcast_together("einsum", [x, y])), labels)
    batch = [c for c in common if c in needed]
    found = _dot(
        x, y,
        ([p.index(c) for c in contracted], [q.index(c) for c in contracted]),
        ([p.index(c) for c in batch], [q.index(c) for c in batch]),
    )  # fmt: skip
    free = [c for c in p if c not in common] + [c for c in q if c not in common]
    return _Term(found, "".join([*batch, *free]))

