"""Products, against NumPy and finite differences."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import smelt
import smelt.functions.methods
from smelt.functions import linear
from smelt.ir.errors import ArgumentTypeError, AttributeValueError, ShapeError
from tests.frontend.checks import check_gradient, exact, same

SHAPES = [
    ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)),
    ((5, 2, 3), (5, 3, 4)), ((5, 1, 2, 3), (6, 3, 4)), ((1, 6, 2, 3), (5, 1, 3, 4)), ((5, 6, 2, 3), (1, 6, 3, 4)),
    ((3,), (5, 3, 4)), ((5, 2, 3), (3,)), ((7, 1, 5, 2, 3), (6, 1, 3, 4)), ((2, 0), (0, 3)), ((0, 3), (3, 2)),
    ((1, 2, 3), (5, 3, 4)), ((1, 1, 3), (2, 2, 3, 1)), ((0, 2, 3), (3, 4)), ((2, 1, 2, 3), (1, 3, 3, 4)),
]  # fmt: skip


def _random(shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


@pytest.mark.parametrize("p, q", SHAPES, ids=repr)
def test_matmul(p, q):
    x, y = _random(p), _random(q, 1)
    same(linear.matmul(exact(x), exact(y)), x @ y, rtol=1e-10, atol=1e-12)
    same(exact(x) @ exact(y), x @ y, rtol=1e-10, atol=1e-12)
    check_gradient(linear.matmul, x, y)


def test_matmul_dtypes():
    x = np.arange(6).reshape(2, 3)
    same(exact(x.astype(np.int32)) @ exact(x.T.astype(np.int32)), (x @ x.T).astype(np.int32))
    assert (exact(x.astype(np.float16)) @ exact(x.T.astype(np.float32))).dtype is smelt.float32
    assert (exact([True, False]) @ exact([True, True])).dtype is smelt.bool_
    same(np.ones((2, 2), np.float32) @ exact(x.astype(np.float32)), np.ones((2, 2), np.float32) @ x.astype("f"))


@pytest.mark.parametrize(
    "p, q, text",
    [
        ((2, 3), (4, 5), r"smelt.matmul: lhs has 3 columns, rhs has 4 rows; lhs f32\[2,3\], rhs f32\[4,5\]; at "),
        ((3,), (4,), "lhs has 3 elements, rhs has 4 elements"),
        ((), (4,), "lhs is a scalar"),
        ((2, 2, 3), (3, 3, 4), "leading axes"),
    ],
)
def test_matmul_errors(p, q, text):
    with pytest.raises(ShapeError, match=text) as info:
        exact(np.ones(p, np.float32)) @ exact(np.ones(q, np.float32))
    assert "test_linear.py" in str(info.value)


EINSUMS = [
    ("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)), ("ij,kj->ki", (2, 3), (4, 3)), ("ii", (3, 3)),
    ("ii->i", (3, 3)),
    ("ij->ji", (2, 3)), ("ij->", (2, 3)), ("ij->j", (2, 3)), ("i,i->", (3,), (3,)), ("i,j->ij", (2,), (3,)),
    ("i,i->i", (3,), (3,)),
    ("bij,bjk->bik", (5, 2, 3), (5, 3, 4)), ("bij,bjk->ikb", (5, 2, 3), (5, 3, 4)),
    ("...ij,...jk->...ik", (5, 1, 2, 3), (6, 3, 4)),
    ("...i->...", (2, 3)), ("i...,i...->...", (3, 2), (3, 2)), ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)),
    ("ij,jk,kl,lm->mi", (2, 3), (3, 4), (4, 5), (5, 2)), ("iij,j->i", (3, 3, 2), (2,)),
    ("ij,j,k->ik", (2, 3), (3,), (4,)),
    ("bhqd,bhkd->bhqk", (2, 3, 4, 5), (2, 3, 6, 5)), ("i,ij,j->", (2,), (2, 3), (3,)),
    ("ijk,jil->kl", (2, 3, 4), (3, 2, 5)),
    ("...,...", (2, 3), (2, 3)), ("ij,jk->ik", (2, 1), (3, 4)), ("ik,jk->ij", (2, 1), (3, 1)), ("aab->b", (2, 2, 3)),
    ("ij , jk -> ik", (2, 3), (3, 4)), ("a...,b...->ba...", (2, 3), (4, 3)), ("ij,ij->ij", (2, 3), (1, 3)),
    ("iii", (3, 3, 3)),
    ("ab,cd->", (2, 3), (4, 5)), ("", ()), (",->", (), ()), ("i,->i", (3,), ()),
]  # fmt: skip


@pytest.mark.parametrize("subscripts, shapes", [(e[0], e[1:]) for e in EINSUMS], ids=repr)
def test_einsum(subscripts, shapes):
    xs = [_random(s, i) for i, s in enumerate(shapes)]
    expected = np.einsum(subscripts, *xs)
    same(linear.einsum(subscripts, *map(exact, xs)), expected, rtol=1e-10, atol=1e-12)
    check_gradient(lambda *xs: linear.einsum(subscripts, *xs), *xs)
    path, text = linear.einsum_path(subscripts, *map(exact, xs))
    assert len(path) == max(len(xs) - 1, 1) and "products" in text


@pytest.mark.parametrize("subscripts, shapes", [(e[0], e[1:]) for e in EINSUMS], ids=repr)
def test_einsum_by_numbers_of_axes(subscripts, shapes):
    def numbers(text):
        return [... if c == "." else ord(c) for c in text.replace("...", ".") if c != " "]

    left, arrow, right = subscripts.partition("->")
    xs = [_random(s, i) for i, s in enumerate(shapes)]
    lists = [numbers(t) for t in left.split(",")]
    last = [numbers(right)] if arrow else []
    described = [part for pair in zip(map(exact, xs), lists) for part in pair] + last
    expected = np.einsum(subscripts, *xs)
    same(linear.einsum(*described), expected, rtol=1e-10, atol=1e-12)
    assert linear.einsum_path(*described)[0] == linear.einsum_path(subscripts, *map(exact, xs))[0]


def test_errors_of_einsum_by_numbers_of_axes():
    x = exact(np.ones((2, 3)))
    for wrong in ([x, [0, -1]], [x, [0, 1.5]], [x, [0, 1], x], [x, [0, 1], x, 3], [x, [0, "j"]]):
        with pytest.raises((ArgumentTypeError, AttributeValueError), match="einsum"):
            linear.einsum(*wrong)
    for wrong in ([x, [0]], [x, [0, 1], [2]], [x, [0, 1], x, [0, 0]], [smelt.ones((1,) * 60), list(range(60))]):
        with pytest.raises(ShapeError, match="einsum"):
            linear.einsum(*wrong)


def test_einsum_of_ints():
    x = np.arange(6, dtype=np.int32).reshape(2, 3)
    same(linear.einsum("ij,kj->ik", exact(x), exact(x)), x @ x.T)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text("abcd", max_size=3), min_size=1, max_size=4), st.data())
def test_any_einsum(terms, data):
    extents = {c: data.draw(st.integers(1, 3)) for c in "abcd"}
    used = sorted(set("".join(terms)))
    output = "".join(data.draw(st.permutations(used))[: data.draw(st.integers(0, len(used)))])
    subscripts = f"{','.join(terms)}->{output}"
    xs = [_random([extents[c] for c in t], i) for i, t in enumerate(terms)]
    expected = np.einsum(subscripts, *xs)
    same(linear.einsum(subscripts, *map(exact, xs)), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "subscripts, shapes, text",
    [
        ("ij,jk->ik", ((2, 3),), "2 operands are described, 1 given"),
        ("ij->ik", ((2, 3),), "k behind the arrow is in no operand"),
        ("ij,jk->ik", ((2, 3), (4, 5)), "axis j has 3 elements, but 4 in operand 1"),
        ("ijk", ((2, 3),), "operand 0 has 2 axes, its subscripts name 3"),
        ("i1", ((2, 3),), "letters"),
        ("ij->ii", ((2, 3),), "repeats behind"),
        ("...->", ((2, 3),), "ellipsis is missing"),
    ],
)
def test_einsum_errors(subscripts, shapes, text):
    with pytest.raises(ShapeError, match=text) as info:
        linear.einsum(subscripts, *[exact(np.ones(s, np.float32)) for s in shapes])
    assert "test_linear.py" in str(info.value)


@pytest.mark.parametrize("axes", [0, 1, 2, ((1, 0), (0, 1)), ([0], [1]), (0, 1), (-1, -2)], ids=repr)
def test_tensordot(axes):
    if axes == 2:
        x, y = _random((4, 2, 3)), _random((2, 3, 5), 1)
    elif axes == 1 or axes == (-1, -2):
        x, y = _random((4, 3)), _random((3, 2), 1)
    else:
        x, y = _random((2, 3)), _random((3, 2), 1)
    same(linear.tensordot(exact(x), exact(y), axes), np.tensordot(x, y, axes), rtol=1e-10, atol=1e-12)
    check_gradient(lambda x, y: linear.tensordot(x, y, axes), x, y)


@pytest.mark.parametrize("p, q", [((3,), (3,)), ((2, 3), (4, 3)), ((), (3,)), ((2, 3), (3,))], ids=repr)
def test_inner_outer_kron(p, q):
    x, y = _random(p), _random(q, 1)
    for name in ("inner", "outer", "kron"):
        expected = getattr(np, name)(x, y)
        same(getattr(linear, name)(exact(x), exact(y)), expected, rtol=1e-10, atol=1e-12)
        check_gradient(getattr(linear, name), x, y)


@pytest.mark.parametrize("axis", [-1, 0])
def test_vecdot(axis):
    x, y = _random((3, 3)), _random((3, 3) if axis == 0 else (3,), 1)
    expected = (x * y).sum(axis)
    same(linear.vecdot(exact(x), exact(y), axis=axis), expected, rtol=1e-10)
    z = (x + 1j * x.T).astype(np.complex64)
    same(linear.vecdot(exact(z), exact(z)), (z.conj() * z).sum(-1), rtol=1e-5)


def test_addmm():
    c, x, y = _random((4,)), _random((2, 3)), _random((3, 4))
    for alpha, beta in ((1.0, 1.0), (0.5, 2.0)):
        found = linear.addmm(exact(c), exact(x), exact(y), alpha=alpha, beta=beta)
        same(found, alpha * (x @ y) + beta * c, rtol=1e-10)
    check_gradient(lambda c, x, y: linear.addmm(c, x, y, 0.5, 2.0), c, x, y)


@pytest.mark.parametrize("c, a, b", [((2, 2, 2), (2, 2), (2, 2)), ((3,), (2, 4), (4, 1)), ((1,), (4,), (4,)),
                                     ((5, 2, 1), (3,), (2, 3, 1))], ids=repr)  # fmt: skip
def test_addmm_gives_a_shape_of_the_product(c, a, b):
    with pytest.raises(ShapeError, match=r"smelt.addmm.*test_linear\.py"):
        smelt.addmm(smelt.zeros(c), smelt.zeros(a), smelt.zeros(b))


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda x: linear.inner(x, x[:, :2]), "smelt.inner: the last axes have 3 and 2"),
        (lambda x: linear.tensordot(x, x, 1), "smelt.tensordot: axes .* extents"),
        (lambda x: linear.tensordot(x, x, 3), "3 axes are asked for"),
        (lambda x: linear.vecdot(x, x[:, :2]), "smelt.vecdot: axis -1"),
    ],
)
def test_errors_name_the_users_line(call, text):
    with pytest.raises(ShapeError, match=text) as info:
        call(exact(np.ones((2, 3), np.float32)))
    assert "test_linear.py" in str(info.value)


@pytest.mark.parametrize("name", ["outer", "kron", "inner"])
def test_products_that_add_nothing_up_keep_booleans(name):
    a, b = np.array([True, False]), np.array(True)
    found = getattr(smelt, name)(smelt.array(a), smelt.array(b))
    assert found.dtype is smelt.bool_
    np.testing.assert_array_equal(np.array(found), getattr(np, name)(a, b))


def test_rearranged_booleans_stay_booleans():
    a = np.array([[True, False, True], [False, False, True]])
    found = smelt.einsum("ij->ji", smelt.array(a))
    assert found.dtype is smelt.bool_
    np.testing.assert_array_equal(np.array(found), a.T)
    assert smelt.einsum("ij->j", smelt.array(a)).dtype is smelt.int32
    bytes_ = smelt.array([[200, 100], [50, 7]], smelt.uint8)
    for found, expected in [
        (smelt.einsum("ij->i", bytes_), [300, 57]),
        (smelt.einsum("...j->...", bytes_), [300, 57]),
    ]:
        assert found.dtype is smelt.uint32 and found.tolist() == expected
    assert smelt.einsum("ij->ji", bytes_).dtype is smelt.einsum("ij,ij->ij", bytes_, bytes_).dtype is smelt.uint8
    assert smelt.einsum("i,j->ij", bytes_[0] > 150, bytes_[1] > 9).tolist() == [[True, False], [False, False]]


@pytest.mark.parametrize("dtype", [smelt.float16, smelt.bfloat16])
def test_products_are_as_exact_as_what_they_are_added_to(dtype):
    """Operands are converted before they meet: 2049 is no float16."""
    a = smelt.array([[1.0, 1.0]]).astype(dtype)
    found = smelt.addmm(smelt.zeros((1, 1), smelt.float32), a * 2048, smelt.array([[1.0], [2**-11]]).astype(dtype))
    assert found.dtype is smelt.float32 and found.item() == 2049.0


@pytest.mark.parametrize(
    "product",
    [
        lambda m, x, y: m.matmul(x, y), lambda m, x, y: m.matmul(x[0], y), lambda m, x, y: m.matmul(x, y[:, 0]),
        lambda m, x, y: m.matmul(x[None], m.stack([y, y])), lambda m, x, y: m.inner(x, y.T),
        lambda m, x, y: m.tensordot(x, y, axes=1), lambda m, x, y: m.einsum("ij,jk->ik", x, y),
        lambda m, x, y: m.einsum("ij,jk->", x, y), lambda m, x, y: m.linalg.multi_dot([x, y, x]),
        lambda m, x, y: m.linalg.matrix_power(x @ y, 3), lambda m, x, y: m.convolve(x[0], y[:, 0]),
        lambda m, x, y: m.correlate(x[0], y[:, 0]), lambda m, x, y: m.correlate(x[0, :3], y[:, 0], "same"),
    ],
)  # fmt: skip
def test_products_of_booleans_are_as_numpy_has_them(product):
    """Whether any pair is true; 300 true pairs are more than a byte counts."""
    rng = np.random.default_rng(0)
    for x, y in ((rng.random((4, 300)) < 0.05, rng.random((300, 4)) < 0.05), (np.ones((4, 256), bool),) * 2):
        y = y if y.shape[1] == 4 else y.T
        expected = product(np, x, y)
        for call in (product, smelt.compile(lambda m, a, b: product(m, a, b))):
            found = call(smelt, smelt.array(x), smelt.array(y))
            assert found.dtype is smelt.bool_
            np.testing.assert_array_equal(np.array(found), expected)


def test_booleans_are_added_to_a_product_and_counted_beside_numbers():
    x, y = smelt.array([[True, False]]), smelt.array([[False], [True]])
    assert smelt.addmm(smelt.array([True]), x, y).tolist() == [[True]]
    assert smelt.addmm(smelt.array([False]), x, y).tolist() == [[False]]
    assert (x @ smelt.array([2, 3])).tolist() == [2]
    assert smelt.vecdot(x, x).tolist() == [1]  # a count, as in MLX
