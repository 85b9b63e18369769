"""Contractions against NumPy's einsum."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest

import smelt
from smelt.ir import dtypes
from smelt.ir import op as op_module
from smelt.ir.aval import Aval
from smelt.ir.errors import AttributeValueError, DTypeError, ShapeError
from smelt.ir.index import Access, Guard, variables
from smelt.ir.kinds import Contraction
from smelt.ir.op import registry
from smelt.ir.settings import override
from smelt.lazy.arrays import emit

from .cases import reference, sample
from .rules import Eager, Number, ScalarMachine, check_batch, check_jvp, check_transpose, constants, fetcher, full, run
from .variants import variants

CONTRACTIONS = [  # shapes of lhs and rhs, their axes, the same as an einsum
    ((3, 4), (4, 5), (1,), (0,), (), (), "ik,kj->ij"),
    ((4, 3), (5, 4), (0,), (1,), (), (), "ki,jk->ij"),
    ((4,), (4,), (0,), (0,), (), (), "k,k->"),
    ((2,), (3,), (), (), (), (), "i,j->ij"),
    ((2, 3, 4), (2, 4, 5), (2,), (1,), (0,), (0,), "bik,bkj->bij"),
    ((3, 2, 4), (4, 5, 2), (2,), (0,), (1,), (2,), "ibk,kjb->bij"),
    ((2, 3, 4, 5), (5, 3, 6), (3, 1), (0, 1), (), (), "aibk,kij->abj"),
    ((2, 3, 4, 2), (3, 2, 2, 5), (3,), (1,), (1, 0), (0, 2), "abic,bcaj->baij"),
    ((2, 0, 3), (0, 4), (1,), (0,), (), (), "aki,kj->aij"),
]


def axes(c):
    names = ("lhs_contracting", "rhs_contracting", "lhs_batch", "rhs_batch")
    return dict(zip(names, c[2:6]))


@pytest.mark.parametrize("c", CONTRACTIONS, ids=lambda c: c[-1])
def test_dot_general_is_einsum(c, rng):
    x, y = rng.standard_normal(c[0]), rng.standard_normal(c[1])
    np.testing.assert_allclose(run("dot_general", x, y, **axes(c)), np.einsum(c[-1], x, y), atol=1e-12)
    z = (x + 1j).astype(np.complex64)
    np.testing.assert_allclose(
        run("dot_general", z, y.astype(np.complex64), **axes(c)), np.einsum(c[-1], z, y), atol=1e-5
    )


@pytest.mark.parametrize("c", CONTRACTIONS, ids=lambda c: c[-1])
def test_dot_general_derivatives(c, rng):
    x, y = rng.standard_normal(c[0]), rng.standard_normal(c[1])
    check_transpose("dot_general", [x, y], [True, False], rng, **axes(c))
    check_transpose("dot_general", [x, y], [False, True], rng, **axes(c))
    check_jvp("dot_general", [x, y], (0, 1), rng, **axes(c))


@pytest.mark.parametrize("c", CONTRACTIONS, ids=lambda c: c[-1])
def test_dot_general_batches(c, rng):
    x, y = rng.integers(-9, 9, c[0]), rng.integers(-9, 9, c[1])
    for i, j in itertools.product([None, *range(x.ndim + 1)], [None, *range(y.ndim + 1)]):
        if i is None and j is None:
            continue
        operands = [
            z if d is None else np.stack([z, 2 * z + 1, z - 3], d) for z, d in ((x, i), (y, j))
        ]
        check_batch("dot_general", operands, (i, j), **axes(c))


def test_dot_general_batched_on_one_side_adds_no_batch_axis(rng):
    """vmap over rows of a matrix must stay one matrix product."""
    b, (op, attrs) = Eager(), full("dot_general", {"lhs_contracting": (0,), "rhs_contracting": (0,)})
    x, y = b.value(rng.standard_normal((8, 3))), b.value(rng.standard_normal((3, 4)))
    (found,), (dim,) = op.batch(b, [x, y], (0, None), **attrs)
    assert dim == 0 and found.owner.op is op and found.owner.operands == (x, y)
    assert found.owner.attrs["lhs_batch"] == ()


def test_dot_general_dtypes(rng):
    product = {"lhs_contracting": (1,), "rhs_contracting": (0,)}
    x = rng.integers(-128, 127, (5, 40)).astype(np.int8)
    wrapped = (x.astype(np.int64) @ x.T.astype(np.int64)).astype(np.int8)
    np.testing.assert_array_equal(run("dot_general", x, x.T, **product), wrapped)
    for dtype in (np.float16, ml_dtypes.bfloat16):
        ones = np.ones((1, 5000), dtype)  # summed in the narrow dtype this would stop growing
        found = run("dot_general", ones, ones.T, **product)
        assert found.dtype == dtype and found[0, 0] == dtype(5000)


@pytest.mark.parametrize("c", CONTRACTIONS, ids=lambda c: c[-1])
def test_dot_general_lowers_to_matrix_products(c, rng):
    x, y = rng.standard_normal(c[0]), rng.standard_normal(c[1])
    op = op_module.get("dot_general")
    left, right = Aval(x.shape, dtypes.float64), Aval(y.shape, dtypes.float64)
    form = op.matmul_form(left, right, **axes(c))
    want = np.einsum(c[-1], x, y)

    def matrices(z, permutation, layout, rows, columns):
        if layout == "plain":  # in memory as it is
            return z.reshape(form.batch, rows, columns)
        if layout == "transposed":
            return z.reshape(form.batch, columns, rows).transpose(0, 2, 1)
        return z.transpose(permutation).reshape(form.batch, rows, columns)

    for layouts in ((form.lhs_layout, form.rhs_layout), ("copy", "copy")):
        found = matrices(x, form.lhs_permutation, layouts[0], form.m, form.k) @ matrices(
            y, form.rhs_permutation, layouts[1], form.k, form.n
        )
        np.testing.assert_allclose(found.reshape(want.shape), want, atol=1e-12)


SMALL = [c for op in registry.values() if isinstance(op, Contraction) for c in variants(op)]


@pytest.mark.parametrize("case", SMALL, ids=str)
def test_the_loops_of_a_contraction_compute_its_reference(case, rng):
    op, arrays = case.op, [sample(a, rng) for a in case.avals]
    (want,) = reference(case, arrays)
    fetch = fetcher(arrays)
    for at in np.ndindex(want.shape):
        total = Number(0, case.results[0].dtype)
        for depth in np.ndindex(*op.depth(*case.avals, **case.kwargs)):
            accesses = op.operand_indices(constants(at), constants(depth), *case.avals, **case.kwargs)
            xs = [
                fetch(i, access.place) if all(g.always_holds for g in access.guards) else Number(0, aval.dtype)
                for i, (access, aval) in enumerate(zip(accesses, case.avals))
            ]
            total = op.accumulate(ScalarMachine(), total, *xs)
        np.testing.assert_allclose(total.value, want[at], atol=1e-12)
    assert op.work(*case.avals, **case.kwargs) >= want.size


@pytest.mark.parametrize("case", [c for c in SMALL if c.op.name == "dot_general"], ids=str)
def test_transposes_in_front_of_a_contraction_can_be_left_out(case, rng):
    arrays = [sample(a, rng) for a in case.avals]
    (want,) = reference(case, arrays)
    for i, x in enumerate(arrays):
        for permutation in itertools.permutations(range(x.ndim)):
            attrs = case.op.before_transpose(i, permutation, **case.kwargs)
            if attrs is not None:
                before = np.transpose(x, np.argsort(permutation))
                found = case.op.reference(*arrays[:i], before, *arrays[i + 1 :], **attrs)
                np.testing.assert_allclose(found, want, atol=1e-12)
            assert attrs is not None or x.ndim > 2


def test_an_element_outside_counts_as_zero_and_is_not_read():
    (i,) = variables((4,))
    inside, outside, gap = Guard(i, 4), Guard(i - 1, 3), Guard(i % 2, 1)
    assert inside.always_holds and not outside.always_holds and not gap.always_holds
    access = Access((i - 1,), (inside, outside, gap))
    assert access.guards == (outside, gap)


def test_matmul_form_spots_operands_that_need_no_copy():
    op = op_module.get("dot_general")

    def layouts(lhs, rhs, *axes_):
        names = ("lhs_contracting", "rhs_contracting", "lhs_batch", "rhs_batch")
        avals = Aval(lhs, dtypes.float32), Aval(rhs, dtypes.float32)
        form = op.matmul_form(*avals, **dict(zip(names, axes_)))
        return form.lhs_layout, form.rhs_layout

    assert layouts((3, 4), (4, 5), (1,), (0,), (), ()) == ("plain", "plain")
    assert layouts((4, 3), (5, 4), (0,), (1,), (), ()) == ("transposed", "transposed")
    assert layouts((2, 3, 4), (2, 5, 4), (2,), (2,), (0,), (0,)) == ("plain", "transposed")
    assert layouts((3, 2, 4), (2, 4, 5), (2,), (1,), (1,), (0,)) == ("copy", "plain")
    # a batch axis of size one lies anywhere, and the order of the contracting axes is free
    assert layouts((3, 1, 4), (1, 4, 5), (2,), (1,), (1,), (0,)) == ("plain", "plain")
    assert layouts((2, 3, 4), (3, 4, 5), (2, 1), (1, 0), (), ()) == ("plain", "plain")


def test_dot_general_errors():
    product = {"lhs_contracting": (1,), "rhs_contracting": (0,)}
    x, y = np.ones((2, 3), np.float32), np.ones((4, 5), np.float32)
    with pytest.raises(ShapeError, match=r"axis 1 of lhs has 3 elements, axis 0 of rhs has 4.*f32\[2,3\]"):
        run("dot_general", x, y, **product)
    with pytest.raises(DTypeError, match="same dtype"):
        run("dot_general", x, np.ones((3, 2)), **product)
    with pytest.raises(AttributeValueError, match="lhs has 1 contracting axes, rhs has 0"):
        run("dot_general", x, y, lhs_contracting=(1,), rhs_contracting=())
    with pytest.raises(AttributeValueError, match="repeat"):
        run("dot_general", x, x, lhs_contracting=(1,), rhs_contracting=(1,), lhs_batch=(1,), rhs_batch=(1,))


@pytest.mark.parametrize("name", ["dot_general", "wide_dot_general"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "int32"])
def test_a_sum_of_one_term_is_that_term(name: str, dtype: str) -> None:
    """Bit by bit in every tier, as in `canonicalize`, which makes a product of elements of it: 0 · -1 is -0."""
    kind, op = getattr(smelt, dtype), registry[name]
    x, y = (smelt.array(np.array(v)).astype(kind) for v in ([[0.0], [2.0], [-3.0]], [[-1.0, 0.0, 4.0, -0.0]]))
    attrs = {"lhs_contracting": (1,), "rhs_contracting": (0,), "lhs_batch": (), "rhs_batch": ()}
    wanted = np.asarray(x.astype(smelt.complex128)) * np.asarray(y.astype(smelt.complex128))

    def product(x: smelt.array, y: smelt.array) -> smelt.array:
        return emit(op, (x, y), attrs)

    for way in ({"tier": "ops"}, {"tier": "program", "small_work": 0}, {"tier": "strided"}, {"device": "reference"}):
        with override(cache=False, **way):
            for function in (product, smelt.compile(product)):
                found = np.asarray(function(x, y).astype(smelt.complex128))
                np.testing.assert_array_equal(found, wanted)
                if kind.is_float:
                    np.testing.assert_array_equal(np.signbit(found.real), np.signbit(wanted.real))
