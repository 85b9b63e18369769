"""Where a program written for MLX would notice a difference: what these calls do there, they do here."""

import operator

import numpy as np
import pytest

import smelt
from smelt.ir.errors import ArgumentTypeError, AttributeValueError, AxisError

BIG = 2**31


class TestNumbersThatDoNotFit:
    """A Python integer takes the dtype of the array it meets; it must not become another number there."""

    @pytest.mark.parametrize(
        "call",
        [
            lambda x: x * 300,
            lambda x: smelt.minimum(256, x),
            lambda x: -1 + x,
            lambda x: smelt.maximum(x, 300),
            lambda x: smelt.clip(x, -5, 10),
            lambda x: smelt.where(x > 3, x, -1),
            lambda x: smelt.full((2,), 300, smelt.uint8),
            lambda x: x.__setitem__(0, 300),
            smelt.compile(lambda x: x + 300),
        ],
    )
    def test_raises(self, call):
        with pytest.raises(AttributeValueError, match=r"out of bounds for uint8.*test_mlx_behaviour"):
            call(smelt.array([44, 5], smelt.uint8))

    @pytest.mark.parametrize("dtype", [smelt.int8, smelt.uint16, smelt.int32, smelt.int64, smelt.uint64])
    def test_limits_are_inside(self, dtype):
        info = smelt.iinfo(dtype)
        for f in (lambda x, v: x + v, smelt.compile(lambda x, v: x + v)):
            for value in (info.min, info.max):
                assert f(smelt.array([0], dtype), value).tolist() == [value]
            for value in (info.min - 1, info.max + 1):
                with pytest.raises(ValueError, match="out of bounds"):
                    f(smelt.array([0], dtype), value)

    @pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge"])
    def test_comparisons_answer_as_mathematics_says(self, name):
        compare = getattr(operator, name)
        ways = [
            lambda x, v: compare(x, v),
            lambda x, v: smelt.vmap(lambda e: compare(e, v))(x),
            lambda x, v: smelt.compile(lambda x: compare(x, v))(x),
            lambda x, v: smelt.compile(lambda x: compare(x, v), shapeless=True)(x),
        ]
        for dtype in (smelt.bool_, smelt.int8, smelt.uint8, smelt.int32, smelt.uint32, smelt.int64, smelt.uint64):
            x = smelt.array([0, 1], dtype)
            for value in (1, -1, 300, 1, 2**31, -(2**31) - 1, 2**63, 2**64, -(10**400), 1):  # between those that fit
                for way in ways:
                    assert way(x, value).tolist() == [compare(int(e), value) for e in x.tolist()]
                assert compare(value, x).tolist() == [compare(value, int(e)) for e in x.tolist()]

    def test_floats_promote_instead(self):
        assert (smelt.array([1], smelt.uint8) * 300.0).tolist() == [300.0]


class TestCreation:
    def test_ranges_beyond_int32(self):
        found = smelt.arange(BIG, BIG + 2)
        assert found.dtype is smelt.int64 and found.tolist() == [BIG, BIG + 1]
        down = smelt.arange(-BIG, -BIG - 2, -1)
        assert down.dtype is smelt.int64 and down.tolist() == [-BIG, -BIG - 1]
        assert smelt.arange(BIG - 2, BIG).dtype is smelt.int32

    def test_range_by_keywords(self):
        assert smelt.arange(stop=3).tolist() == [0, 1, 2]
        assert smelt.arange(stop=6, step=2).tolist() == [0, 2, 4]
        assert smelt.arange(start=1, stop=6, step=2).tolist() == [1, 3, 5]
        with pytest.raises(ArgumentTypeError):
            smelt.arange()
        with pytest.raises(ArgumentTypeError, match="start needs a stop"):
            smelt.arange(start=1, step=2)

    def test_bytes(self):
        found = smelt.array(b"abc")
        assert found.dtype is smelt.uint8 and found.tolist() == [97, 98, 99]


class TestText:
    def test_scalars_format_as_numbers(self):
        x = smelt.array(1.5)
        assert f"{x}" == "1.5" and f"{x:.2f}" == "1.50" and f"{smelt.array(3):03d}" == "003"
        assert f"{smelt.array(True)} {smelt.array(1 + 2j)}" == "True (1+2j)"

    def test_arrays_format_as_text(self):
        x = smelt.array([1, 2])
        assert f"{x}" == str(x)
        with pytest.raises(ArgumentTypeError, match=r"'\.2f' is for scalars"):
            f"{x:.2f}"

    def test_traced_scalars_format_as_types(self):
        seen = []
        smelt.compile(lambda x: seen.append(f"{x}") or x)(smelt.array(1.0))
        assert "traced" in seen[0]

    def test_print_options(self):
        x = smelt.array([1 / 3, 2.0])
        with smelt.printoptions(precision=3) as options:
            assert (options.precision, smelt.get_printoptions().precision) == (3, 3)
            assert str(x) == "array([0.333, 2.000], dtype=float32)"
            assert str(smelt.array(1 / 3 + 2j)) == "array(0.333+2.000j, dtype=complex64)"
        assert str(x) == "array([0.333333, 2], dtype=float32)"
        with pytest.raises(AttributeValueError, match="precision"):
            smelt.set_printoptions(-2)


class TestShapes:
    def test_flatten_clamps_its_axes(self):
        x = smelt.zeros((2, 3, 4))
        assert x.flatten(1, 9).shape == (2, 12) and x.flatten(-9, 1).shape == (6, 4)
        assert smelt.array(1).flatten(0, 3).shape == (1,)

    def test_roll_by_keywords(self):
        assert smelt.roll(smelt.arange(4).reshape(2, 2), shift=1, axis=1).tolist() == [[1, 0], [3, 2]]

    def test_trace_accumulates_like_sum(self):
        assert smelt.trace(smelt.ones((2, 2), smelt.int8)).dtype is smelt.int32
        assert smelt.trace(smelt.full((2, 2), 200, smelt.uint8)).item() == 400
        assert smelt.trace(smelt.ones((2, 2)), dtype=smelt.int8).dtype is smelt.int8

    def test_updates_of_a_window_span_axes_that_they_lack(self):
        found = smelt.slice_update(smelt.zeros((2, 3)), smelt.ones(2), smelt.array(1), (1,))
        assert found.tolist() == [[0, 1, 1], [0, 1, 1]]

    def test_one_axis_in_a_tuple_for_one_result(self):
        x = smelt.arange(6).reshape(2, 3)
        assert smelt.vmap(lambda v: v * 2, out_axes=(1,))(x).tolist() == [[0, 6], [2, 8], [4, 10]]


class TestGradients:
    def test_one_argument_in_a_sequence(self):
        f, x, y = lambda x, y: (x * y).sum(), smelt.array(2.0), smelt.array(3.0)
        assert smelt.grad(f, argnums=(1,))(x, y).item() == 2
        assert smelt.value_and_grad(f, argnums=[0])(x, y)[1].item() == 3
        g, named = smelt.grad(f, argnums=[0], argnames=["y"])(x, y=y)
        assert (g.item(), named["y"].item()) == (3, 2)

    def test_what_a_function_assigns_in_its_arguments_stays(self):
        def loss(model, x):
            model["seen"] = x * 2
            model["layers"][1] = model["layers"][1] + 1
            model["tags"].append("used")
            del model["old"]
            return (model["w"] * x).sum()

        w = smelt.array(3.0)
        model = {"w": w, "layers": [smelt.array(1.0), smelt.array(2.0)], "tags": ["new"], "old": None}
        kept = model["layers"]
        value, gradient = smelt.value_and_grad(loss)(model, smelt.array(5.0))
        assert (value.item(), gradient["w"].item()) == (15, 5)
        assert model["w"] is w and model["layers"] is kept
        assert model["seen"].item() == 10 and [x.item() for x in kept] == [1, 3]
        assert model["tags"] == ["new", "used"] and "old" not in model

    def test_nothing_is_assigned_when_the_function_raises(self):
        def loss(model):
            model[0] = smelt.array(0.0)
            raise KeyError("stop")

        model = [smelt.array(1.0)]
        with pytest.raises(KeyError):
            smelt.grad(loss)(model)
        assert model[0].item() == 1

    @pytest.mark.parametrize("x", [0.0, 2.0])
    def test_second_derivatives_of_logaddexp_at_equal_arguments(self, x):
        hessian = smelt.hessian(lambda v: smelt.logaddexp(v[0], v[1]))(smelt.array([x, x], smelt.float64))
        np.testing.assert_allclose(np.array(hessian), [[0.25, -0.25], [-0.25, 0.25]], rtol=1e-12)

    def test_first_derivatives_of_logaddexp_at_infinities(self):
        inf = float("inf")
        for a, b, want in ((inf, inf, (0.5, 0.5)), (-inf, -inf, (0.5, 0.5)), (-inf, 0.0, (0, 1)), (0.0, inf, (0, 1))):
            found = smelt.grad(smelt.logaddexp, argnums=(0, 1))(smelt.array(a), smelt.array(b))
            assert tuple(g.item() for g in found) == want


class TestUnique:
    @pytest.mark.parametrize("dtype", [np.int32, np.float32, np.uint8, np.bool_])
    def test_against_numpy(self, dtype):
        x = np.array([[2, 1, 2], [0, 1, 5]]).astype(dtype)
        want = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
        n = len(want[0])
        found = smelt.unique(smelt.array(x), n, True, True, True)
        for a, b in zip(found, want):
            assert np.array(a).tolist() == b.reshape(np.shape(a)).tolist()
        assert [a.dtype for a in found[1:]] == [smelt.uint32, smelt.uint32, smelt.int32]

    def test_sizes(self):
        x = smelt.array([3, 1, 3, 2])
        assert smelt.unique(x, 5).tolist() == [1, 2, 3, 1, 1]
        assert smelt.unique(x, 5, fill_value=9).tolist() == [1, 2, 3, 9, 9]
        values, inverse, counts = smelt.unique(x, 2, return_inverse=True, return_counts=True)
        assert (values.tolist(), inverse.tolist(), counts.tolist()) == ([1, 2], [1, 0, 1, 1], [1, 1])
        assert smelt.unique(smelt.array([], smelt.int32), 2, fill_value=7).tolist() == [7, 7]

    def test_nans_are_one(self):
        values, counts = smelt.unique(smelt.array([float("nan"), 1.0, float("nan")]), 3, return_counts=True)
        assert counts.tolist() == [1, 2, 0] and np.isnan(values.tolist()[1])

    def test_compiled_and_batched(self):
        x = smelt.array([[1, 1, 2], [5, 4, 4]])
        assert smelt.compile(smelt.vmap(lambda v: smelt.unique(v, 2)))(x).tolist() == [[1, 2], [4, 5]]

    def test_errors(self):
        for call in (
            lambda: smelt.unique(smelt.array([1]), -1),
            lambda: smelt.unique(smelt.array([], smelt.int32), 1),
            lambda: smelt.unique(smelt.array([1]), 1, fill_value=smelt.array([1])),
        ):
            with pytest.raises(ValueError, match=r"smelt\.unique.*test_mlx_behaviour"):
                call()


def test_products_of_chosen_matrices():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 2, 2, 3)), rng.standard_normal((3, 3, 2))
    at, of = np.array([[0], [3]]), np.array([2, 0])
    found = smelt.gather_mm(smelt.array(a), smelt.array(b), smelt.array(at), smelt.array(of))
    np.testing.assert_allclose(np.array(found), a.reshape(4, 2, 3)[at] @ b[of], rtol=1e-5)
    found = smelt.gather_mm(smelt.array(a[0, 0]), smelt.array(b), rhs_indices=smelt.array(of))
    np.testing.assert_allclose(np.array(found), a[0, 0] @ b[of], rtol=1e-5)
    with pytest.raises(TypeError, match="rhs_indices must be integers"):
        smelt.gather_mm(smelt.array(a), smelt.array(b), rhs_indices=smelt.array([0.5]))
    with pytest.raises(ValueError, match="needs matrices"):
        smelt.gather_mm(smelt.array([1.0]), smelt.array(b))
    with pytest.raises(ValueError, match=r"smelt\.gather_mm: the left matrices need as many columns"):
        smelt.gather_mm(smelt.array(a), smelt.array(a))
    with pytest.raises(ValueError, match=r"smelt\.gather_mm: shapes \(2,\) and \(3,\)"):
        smelt.gather_mm(smelt.array(a), smelt.array(b), smelt.array([0, 1]), smelt.array([0, 1, 2]))


def test_products_of_chosen_matrices_without_elements():
    rows = smelt.gather_mm(smelt.ones((2, 0, 3)), smelt.ones((3, 3, 2)), smelt.array([0]), smelt.array([2]))
    assert rows.shape == (1, 0, 2)
    sums = smelt.gather_mm(smelt.ones((2, 2, 0)), smelt.ones((3, 0, 2)), smelt.array([1]), smelt.array([2]))
    assert sums.tolist() == [[[0, 0], [0, 0]]]
    with pytest.raises(IndexError, match="lhs_indices choose from no matrices"):
        smelt.gather_mm(smelt.ones((0, 2, 3)), smelt.ones((3, 3, 2)), smelt.array([0]), smelt.array([0]))


def test_ranges_of_integers_wrap_around_in_a_dtype_that_is_given():
    assert smelt.arange(5, 0, -1, dtype=smelt.uint8).tolist() == [5, 4, 3, 2, 1]
    assert smelt.arange(-2, 2, dtype=smelt.uint8).tolist() == [254, 255, 0, 1]
    assert smelt.arange(126, 130, dtype=smelt.int8).tolist() == [126, 127, -128, -127]
    assert smelt.compile(lambda: smelt.arange(3, -1, -1, dtype=smelt.uint64))().tolist() == [3, 2, 1, 0]
    assert smelt.arange(2**63, 2**63 + 2, dtype=smelt.uint64).tolist() == [2**63, 2**63 + 1]
    with pytest.raises(ValueError, match=r"smelt\.arange: .* do not fit int64; give a dtype"):
        smelt.arange(2**63, 2**63 + 2)


def test_numbers_beyond_all_floats():
    x, huge = smelt.array([1.0]), 10**400
    for call in (
        lambda: x + huge,
        lambda: smelt.compile(lambda v: v * huge)(x),
        lambda: smelt.full(2, huge, smelt.float16),
        lambda: smelt.linspace(0, huge, 3),
        lambda: smelt.fast.rms_norm(x, None, huge),
    ):
        with pytest.raises(ValueError, match=r"too large for.*test_mlx_behaviour"):
            call()


def test_shifts_and_axes_of_another_type_are_called_so():
    x = smelt.zeros((3, 3))
    with pytest.raises(TypeError, match=r"smelt\.roll: shifts consist of ints"):
        smelt.roll(x, 1.5)
    with pytest.raises(TypeError, match=r"smelt\.slice_update: axes consist of ints"):
        smelt.slice_update(x, smelt.ones((1, 3)), smelt.array([0]), "0")
    assert smelt.roll(smelt.array([1, 2, 3]), 2**70 + 2).tolist() == [1, 2, 3]


def test_digits_that_no_number_has():
    with pytest.raises(ValueError, match="1074 at most"):
        smelt.set_printoptions(2**40)
    with smelt.printoptions(precision=1074):
        assert len(str(smelt.array(0.5))) > 1074


def test_whether_a_device_is_here_asks_no_packages(monkeypatch):
    """Programs ask at every step."""
    monkeypatch.setattr("importlib.metadata.entry_points", None)
    assert smelt.is_available("cpu")
    assert smelt.metal.is_available() in (True, False) and smelt.cuda.is_available() in (True, False)


def test_questions_about_metal():
    assert smelt.metal.is_available() is smelt.is_available("metal")
    assert smelt.metal.get_active_memory() == smelt.get_active_memory()
    assert bool(smelt.metal.device_info()) == smelt.is_available(smelt.gpu)
    assert smelt.set_wired_limit(1 << 20) == 0
    with pytest.raises(AttributeValueError, match="negative"):
        smelt.set_wired_limit(-1)


def test_gradients_of_complex_arrays_are_directions_of_ascent():
    """Of z = x + iy, the gradient is ∂f/∂x + i ∂f/∂y; by differences along both."""
    z0 = np.array([0.3 + 0.7j, -1.0 + 0.2j], np.complex64)
    w = smelt.array(np.array([0.5 - 0.25j, 2.0 + 1j], np.complex64))

    def loss(z):
        return (smelt.abs(z * z * w) + smelt.real(smelt.exp(z * w))).sum()

    h = 1e-2
    want = np.zeros(2, np.complex64)
    for i in range(2):
        for unit in (1, 1j):
            step = np.zeros(2, np.complex64)
            step[i] = h * unit
            difference = loss(smelt.array(z0 + step)) - loss(smelt.array(z0 - step))
            want[i] += unit * difference.item() / (2 * h)
    for transform in (smelt.grad(loss), smelt.compile(smelt.grad(loss)), lambda z: smelt.vjp(loss, [z])[1](1.0)[0]):
        np.testing.assert_allclose(np.array(transform(smelt.array(z0))), want, rtol=1e-3)
    each = smelt.vmap(smelt.grad(lambda z, w: smelt.abs(z * z * w)))(smelt.array(z0), w)
    np.testing.assert_allclose(np.array(each), 2 * np.abs(w) * z0, rtol=1e-5)


def test_cotangents_of_complex_arrays_are_adjoint_to_tangents():
    rng = np.random.default_rng(0)
    z, w, t, ct = (smelt.array((rng.standard_normal(3) + 1j * rng.standard_normal(3)).astype(np.complex64))
                   for _ in range(4))  # fmt: skip

    @smelt.custom_function
    def ruled(z):
        return z * z * w

    @ruled.vjp
    def ruled_vjp(z, ct, out):
        return smelt.conjugate(2 * z * w) * ct

    @smelt.custom_vjp
    def paired(z):
        return z * z * w

    paired.defvjp(lambda z: (z * z * w, z), lambda z, ct: (smelt.conjugate(2 * z * w) * ct,))
    for f in (lambda z: z * z * w, ruled, paired):
        ((_,), (back,)) = smelt.vjp(f, [z], [ct])
        np.testing.assert_allclose(np.array(back), np.conj(2 * np.array(z) * np.array(w)) * np.array(ct), rtol=1e-4)
    ((_,), (along,)) = smelt.jvp(lambda z: z * z * w, [z], [t])
    left, right = np.vdot(np.array(ct), np.array(along)).real, np.vdot(np.array(back), np.array(t)).real
    np.testing.assert_allclose(left, right, rtol=1e-4)


def test_gradients_stand_in_the_order_of_the_arguments():
    f = smelt.grad(lambda x, y: x * 2 + y * 3, argnums=(1, 0))
    assert [g.item() for g in f(smelt.array(1.0), smelt.array(1.0))] == [2, 3]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: smelt.grad(lambda x: x)(x),
        lambda x: smelt.grad(lambda x: x.sum())(x.astype(smelt.int32)),
        lambda x: smelt.grad(lambda x: 1.0)(x),
        lambda x: smelt.vjp(lambda x: x, [x], [x, x]),
        lambda x: smelt.vmap(lambda x, y: x + y)(x, x[:1]),
        lambda x: smelt.compile(lambda x: x.item())(x),
        lambda x: smelt.bitwise_and(x, x),
        lambda x: x[0, 0, 0],
        lambda x: smelt.concatenate([x, x], axis=3),
    ],
)
def test_what_mlx_refuses_by_value_error(call):
    with pytest.raises(ValueError) as caught:
        call(smelt.ones((2, 2)))
    assert isinstance(caught.value, smelt.SmeltError)


@pytest.mark.parametrize(
    "kind, call",
    [
        (RuntimeError, lambda path: smelt.linalg.inv(smelt.zeros((2, 2))).tolist()),
        (RuntimeError, lambda path: smelt.linalg.solve(smelt.zeros((2, 2)), smelt.ones(2)).tolist()),
        (RuntimeError, lambda path: smelt.load(path)),
        (RuntimeError, lambda path: smelt.import_function(path)),
        (ValueError, lambda path: smelt.set_default_device("abacus")),
        (ValueError, lambda path: smelt.new_stream("abacus")),
        (ValueError, lambda path: smelt.default_stream("abacus")),
        (ValueError, lambda path: smelt.stream("abacus")),
    ],
)
def test_kinds_of_errors_of_libraries_files_and_devices(kind, call, tmp_path):
    (tmp_path / "a.safetensors").write_bytes(b"no header")
    with pytest.raises(kind) as caught:
        call(str(tmp_path / "a.safetensors"))
    assert isinstance(caught.value, smelt.SmeltError)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: smelt.sum(x, axis=2),
        lambda x: smelt.sort(x, axis=-3),
        lambda x: smelt.fft.fft(x, axis=2),
        lambda x: smelt.linalg.norm(x, axis=(0, 2)),
        lambda x: smelt.transpose(x, (0, 2)),
        lambda x: smelt.vmap(lambda y: y, 2)(x),
        lambda x: smelt.vmap(lambda y: y, 0, 3)(x),
        lambda x: smelt.associative_scan(smelt.add, x, axis=2),
        smelt.compile(lambda x: smelt.softmax(x, axis=2)),
    ],
)
def test_axes_that_are_not_there_are_index_errors(call):
    for kind in (AxisError, IndexError, ValueError):
        with pytest.raises(kind, match=r"axis|axes"):
            call(smelt.ones((2, 2)))


class TestDtypesOfNorms:
    """MLX 0.32.4: the common dtype of all, where there is a weight; else that of what is normalized."""

    @pytest.mark.parametrize(
        "x, weight, bias, expected",
        [
            ("float16", None, "float32", "float16"),
            ("bfloat16", None, "float64", "bfloat16"),
            ("float16", "float32", None, "float32"),
            ("float16", "float16", "float32", "float32"),
            ("float16", "bfloat16", None, "float32"),
            ("float16", "int32", "bfloat16", "float32"),
            ("int32", "float16", None, "float16"),
            ("bool_", "bool_", "float16", "float16"),
            ("int32", "float64", None, "float64"),
            ("int32", None, "float16", "float32"),
            ("uint8", "int8", None, "float32"),
        ],
    )
    def test_layer_norm(self, x, weight, bias, expected):
        rows = smelt.array([[1, 0, 1, 0]], getattr(smelt, x))
        parameters = [None if name is None else smelt.ones(4, getattr(smelt, name)) for name in (weight, bias)]
        found = smelt.fast.layer_norm(rows, *parameters, 0.0)
        assert found.dtype is getattr(smelt, expected)
        assert found.tolist() == [[1.0 + (bias is not None), -1.0 + (bias is not None)] * 2]
        if bias is None:
            assert smelt.fast.rms_norm(rows, parameters[0], 0.0).dtype is getattr(smelt, expected)


class TestScansOfBools:
    def test_products(self):
        x = smelt.array([[True, True, False, True], [True, True, True, True]])
        for f in (smelt.cumprod, smelt.compile(smelt.cumprod)):
            found = f(x, axis=1)
            assert found.dtype is smelt.bool_
            assert found.tolist() == [[True, True, False, False], [True] * 4]
        assert smelt.cumprod(x, 1, reverse=True, inclusive=False).tolist() == [[False, False, True, True], [True] * 4]
        assert smelt.cumprod(x[0], include_initial=True).tolist() == [True, True, True, False, False]
        assert smelt.cumprod(x[:, :0], 1).shape == (2, 0) and smelt.cumprod(smelt.array(False)).tolist() == [False]
        assert smelt.cumprod(smelt.array([2, 0, 3]), dtype=smelt.bool_).tolist() == [True, False, False]
        assert smelt.cumprod(x[0], dtype=smelt.int8).tolist() == [1, 1, 0, 0]

    def test_sums(self):
        x = smelt.array([False, True, True])
        found = smelt.cumsum(x)
        assert found.dtype is smelt.int32 and found.tolist() == [0, 1, 2]
        found = smelt.cumsum(x, dtype=smelt.bool_)  # no dtype in MLX; as in NumPy and the standard
        assert found.dtype is smelt.bool_ and found.tolist() == [False, True, True]


@pytest.mark.parametrize("dtype", ["bool_", "uint8", "int32", "float16", "bfloat16", "float32", "float64"])
def test_determinants_of_any_real_numbers(dtype):
    given = getattr(smelt, dtype)
    x = smelt.array([[[1, 1], [0, 1]], [[1, 1], [1, 1]]], given)
    expected = given if given.is_float else smelt.float32
    found, (sign, log) = smelt.linalg.det(x), smelt.linalg.slogdet(x)
    assert found.dtype is sign.dtype is log.dtype is expected
    assert found.tolist() == sign.tolist() == [1, 0] and log.tolist() == [0, -np.inf]


def test_empty_arrays_read_as_complex_numbers():
    for shape in ((0,), (2, 0), (0, 16)):
        for dtype in (smelt.bool_, smelt.float32, smelt.float64):
            for target in (smelt.complex64, smelt.complex128):
                found = smelt.zeros(shape, dtype).view(target)
                assert found.dtype is target and found.size == 0 and found.view(dtype).shape == shape
    assert smelt.array([[1.0, 2.0, 3.0, 4.0]]).view(smelt.complex64).tolist() == [[1 + 2j, 3 + 4j]]


def test_devices_and_empty_vectors_as_text():
    assert str(smelt.cpu) == "Device(cpu, 0)" and str(smelt.Stream(smelt.cpu)) == "Stream(Device(cpu, 0), 0)"
    assert str(smelt.zeros(0)) == "array([], dtype=float32)"
    assert str(smelt.zeros((2, 0))) == "array([], shape=(2, 0), dtype=float32)"


class TestArgumentsThatMlxRefuses:
    @pytest.mark.parametrize("call", [
        lambda: smelt.linspace(0, 1, 3, smelt.float16),  # was the place of the dtype
        lambda: smelt.sum(smelt.ones(2), None, smelt.float32),
        lambda: smelt.quantized_matmul(smelt.ones(2), smelt.ones(2), smelt.ones(2), smelt.ones(2), smelt.float32),
    ])  # fmt: skip
    def test_a_dtype_is_no_bool(self, call):
        with pytest.raises(ArgumentTypeError, match=r"must be a bool, is smelt\.float"):
            call()

    def test_no_shapes(self):
        with pytest.raises(ValueError, match="at least one shape"):
            smelt.broadcast_shapes()

    def test_integer_probabilities(self):
        for p in (0, 1, True, smelt.array([0, 1])):
            with pytest.raises(ValueError, match="must be floating"):
                smelt.random.bernoulli(p)
        assert not smelt.random.bernoulli(0.0).item()


def test_a_list_of_arrays_stands_for_the_arguments_of_an_exported_function(tmp_path):
    x, y = smelt.array([1.0, 2.0]), smelt.array([3.0, 5.0])
    path = tmp_path / "f.mlxfn"
    for given in ([x, y], (x, y)):
        smelt.export_function(path, lambda a, b: b - a, given)
        f = smelt.import_function(path)
        for found in (f(x, y), f([x, y]), f((x, y))):
            assert [r.tolist() for r in found] == [[2.0, 3.0]]
    smelt.export_function(path, lambda a, b: b - a, [x], {"b": y})
    assert smelt.import_function(path)([x], {"b": y})[0].tolist() == [2.0, 3.0]
