"""Kernels of one's own: signatures, values on the simulator, and errors."""

from __future__ import annotations

import contextlib
import io
import shutil
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.gpu.manifest import Manifest
from smelt.fast import metal_kernel
from smelt.ir.errors import AttributeValueError, DTypeError, NotDifferentiableError, ShapeError, SmeltError
from smelt.ir.settings import override
from smelt.runtime import compile_text
from smelt.runtime.device import devices

needs_compiler = pytest.mark.skipif(
    not any(shutil.which(c) for c in ("c++", "g++", "clang++")), reason="no C++ compiler"
)
SQUARE = "uint i = thread_position_in_grid.x;\nout[i] = x[i] * x[i];"


def square(**changes: Any) -> Callable[..., Any]:
    """A kernel that squares `x`."""
    settings = {"name": "square", "input_names": ["x"], "output_names": ["out"], "source": SQUARE}
    return metal_kernel(**{**settings, **changes})


def call(kernel: Callable[..., Any], *inputs: Any, **changes: Any) -> list[smelt.array]:
    """The kernel over the elements of its first input."""
    first = smelt.array(inputs[0])
    settings = {
        "inputs": list(inputs), "grid": (first.size, 1, 1), "threadgroup": (64, 1, 1),
        "output_shapes": [first.shape], "output_dtypes": [first.dtype],
    }  # fmt: skip
    return kernel(**{**settings, **changes})


def text_of(kernel: Callable[..., Any], *inputs: Any, **changes: Any) -> str:
    """The text of a call, which is not run."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        call(kernel, *inputs, **{**changes, "verbose": True})
    return printed.getvalue().removesuffix("\n")


# The text


def test_signature() -> None:
    source = """
        uint i = thread_position_in_grid.x + thread_index_in_simdgroup;
        out[i] = T(x[i]) * N + scale + x_shape[0] + y_strides[0] + y_ndim;
        count[i] = flag;
    """
    kernel = metal_kernel("mixed", ["x", "y", "scale"], ["out", "count"], source, header="constant float K = 2.0f;")
    found = text_of(
        kernel, smelt.zeros((2, 3), smelt.bfloat16), smelt.zeros((4,), smelt.int64), 2.0,
        template=[("T", smelt.float16), ("N", 3), ("flag", True)],
        output_shapes=[(6,), (6,)], output_dtypes=[smelt.float32, smelt.bool_],
    )  # fmt: skip
    signature = found[found.index("kernel void") : found.index("{\n  typedef")]
    assert [line.strip(" ,)") for line in signature.splitlines()] == [
        "kernel void custom_kernel_mixed(",
        "const device bfloat* x [[buffer(0)]]",
        "const constant int* x_shape [[buffer(1)]]",
        "const device long* y [[buffer(2)]]",
        "const constant long* y_strides [[buffer(3)]]",
        "const constant int& y_ndim [[buffer(4)]]",
        "const constant float& scale [[buffer(5)]]",
        "device float* out [[buffer(6)]]",
        "device bool* count [[buffer(7)]]",
        "uint3 thread_position_in_grid [[thread_position_in_grid]]",
        "uint thread_index_in_simdgroup [[thread_index_in_simdgroup]]",
    ]
    assert "  typedef half T;\n  constexpr int N = 3;\n  constexpr bool flag = true;\n" in found
    assert found.index("constant float K") < found.index("kernel void")
    assert "ceildiv" not in found and "elem_to_loc" not in found


def test_the_names_count_only_as_whole_words() -> None:
    source = "uint i = my_thread_position_in_grid + x_shapes;"
    found = text_of(square(source=source), [1.0])
    assert "[[thread_position" not in found and "x_shape [[" not in found


def test_atomic_outputs() -> None:
    found = text_of(square(atomic_outputs=True), [1.0])
    assert "device atomic<float>* out [[buffer(1)]]" in found
    with pytest.raises(DTypeError, match="out is float16; Metal has atomics of float32, int32, uint32"):
        call(square(atomic_outputs=True), smelt.zeros((2,), smelt.float16))


def test_texts_pass_the_strict_check() -> None:
    check = pytest.importorskip("smelt.backends.metal.check", exc_type=ImportError)
    source = """
        uint i = elem_to_loc(thread_position_in_grid.x, x_shape, x_strides, x_ndim);
        uint blocks = ceildiv(threads_per_grid.x, threads_per_simdgroup);
        float total = simd_sum(float(x[i]) * scale);
        if (thread_index_in_simdgroup == 0) {
          atomic_fetch_add_explicit(&out[0], total / blocks, memory_order_relaxed);
        }
    """
    kernel = metal_kernel("checked", ["x", "scale"], ["out"], source, atomic_outputs=True)
    found = text_of(kernel, [1.0, 2.0], 3.0, output_shapes=[(1,)])
    assert not list(check.check(found))


def test_the_text_can_be_printed(capsys: Any) -> None:
    found = text_of(square(), [1.0])
    assert SQUARE in found
    call(square(), [1.0], verbose=True)
    assert capsys.readouterr().out == found + "\n"


# Values


@needs_compiler
@pytest.mark.parametrize("device", ["cpu", "metal:sim"])
def test_a_kernel_runs_on_the_simulator(device: str) -> None:
    with override(device=device):
        x = smelt.random.normal((5, 7)) + 1  # lazy: evaluated by the call
        [found] = call(square(), x, grid=(35, 1, 1))
        assert found.shape == (5, 7)
        np.testing.assert_array_equal(np.array(found), np.array(x) ** 2)
        assert smelt.sum(found + 1).item() == pytest.approx(float((np.array(x) ** 2 + 1).sum()), rel=1e-5)


@needs_compiler
@pytest.mark.parametrize("n", [1, 63, 64, 65, 1000])
def test_grids_are_counted_in_threads(n: int) -> None:
    source = "out[thread_position_in_grid.x] = threads_per_threadgroup.x * 10000 + threads_per_grid.x;"
    kernel = metal_kernel("count", [], ["out"], source)
    [found] = kernel(
        inputs=[], grid=(n, 1, 1), threadgroup=(64, 1, 1), output_shapes=[(n + 1,)], output_dtypes=[smelt.uint32],
        init_value=7,
    )  # fmt: skip
    values = np.array(found)
    assert values[n] == 7 and (values[:n] % 10000 == n).all()
    tail = n % 64
    groups = values[:n] // 10000
    assert (groups[: n - tail] == 64).all() and (groups[n - tail :] == tail).all()


@needs_compiler
def test_templates_scalars_and_several_outputs() -> None:
    source = """
        uint i = thread_position_in_grid.x;
        T value = T(x[i]);
        for (int j = 0; j < N; ++j) value = value * T(scale);
        big[i] = negate ? -float(value) : float(value);
        positive[i] = value > T(0);
    """
    kernel = metal_kernel("several", ["x", "scale"], ["big", "positive"], source)
    x = np.array([-1.5, 0, 2, 3], np.float16)
    big, positive = kernel(
        inputs=[smelt.array(x), 2.0], template=[("T", smelt.float32), ("N", 3), ("negate", True)],
        grid=(4, 1, 1), threadgroup=(4, 1, 1), output_shapes=[(4,), (2, 2)], output_dtypes=[smelt.float32, smelt.bool_],
    )  # fmt: skip
    np.testing.assert_array_equal(np.array(big), -8 * x.astype(np.float32))
    np.testing.assert_array_equal(np.array(positive), x.reshape(2, 2) > 0)


@needs_compiler
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "int8", "uint8", "int16", "int64", "uint64", "bool"])
def test_element_types(dtype: str) -> None:
    x = smelt.array([0, 1, 2, 100]).astype(smelt.ir.dtypes.by_name(dtype))
    [found] = call(square(source="uint i = thread_position_in_grid.x; out[i] = x[i];"), x)
    assert found.dtype is x.dtype and found.tolist() == x.tolist()


@needs_compiler
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_arithmetic_of_a_type_has_that_type(dtype: str) -> None:
    """As in Metal, also beside integers: both sides of `?:` are of one type. It is rounded after each operation."""
    source = """
        uint i = thread_position_in_grid.x;
        auto halved = i % 2 ? x[i] / 2 : x[i];
        auto changed = i % 3 ? 1 - x[i] * x[i] : -halved;
        static_assert(sizeof(changed) == sizeof(x[0]), "another type");
        out[i] = i < 4 ? changed : +x[i];
    """
    x = smelt.array([0.0, 1.125, 2.1, -100.3, 7.0]).astype(smelt.ir.dtypes.by_name(dtype))
    [found] = call(square(source=source), x)
    i, squared, halved = smelt.arange(5), x * x, x / 2
    smelt.eval(squared, halved)  # a kernel of several ops would round once
    changed = smelt.where(i % 3 == 0, -smelt.where(i % 2 == 1, halved, x), 1 - squared)
    for have, want in zip(found.tolist(), smelt.where(i < 4, changed, x).tolist(), strict=True):
        assert have == pytest.approx(want, rel=1e-6 if dtype == "float32" else 0, abs=0)


@needs_compiler
def test_complex_numbers_have_two_parts() -> None:
    source = "uint i = thread_position_in_grid.x; out[i] = complex64_t(x[i].imag, x[i].real);"
    [found] = call(square(source=source), [1 + 2j, -3j])
    assert found.tolist() == [2 + 1j, -3 + 0j]
    source = """
        uint i = thread_position_in_grid.x;
        T a = x[i], b = y[i];
        out[i] = a * b + a / b - 2.0f * b + (a == b ? T(1) : -b) + complex64_t(float2(0, 1));
    """
    x, y = smelt.array([1 + 2j, -3j, 2 - 1j]), smelt.array([2 - 1j, 1 + 1j, 2 - 1j])
    kernel = metal_kernel("complex", ["x", "y"], ["out"], source)
    [found] = call(kernel, x, y, template=[("T", smelt.complex64)])
    a, b = np.array(x), np.array(y)
    np.testing.assert_allclose(np.array(found), a * b + a / b - 2 * b + np.where(a == b, 1, -b) + 1j, rtol=1e-6)
    assert "complex64_t" not in text_of(square(), [1.0])
    check = pytest.importorskip("smelt.backends.metal.check", exc_type=ImportError)
    assert not check.check(text_of(kernel, x, y, template=[("T", smelt.complex64)]), strict=True)


@needs_compiler
def test_an_error_of_the_compiler_shows_the_users_line() -> None:
    kernel = square(source="uint i = thread_position_in_grid.x;\nout[i] = x[i] + missing * 2;")
    with pytest.raises(SmeltError, match=r"(?s)does not compile.*missing.*\n +out\[i\] = x\[i\] \+ missing \* 2;"):
        smelt.eval(call(kernel, [1.0]))


@needs_compiler
def test_shapes_and_strides() -> None:
    source = """
        uint i = thread_position_in_grid.x;
        long place = elem_to_loc(i, x_shape, x_strides, x_ndim);
        out[i] = x[place] + 100 * x_ndim + 1000 * int(ceildiv(x_shape[1], 2));
    """
    x = smelt.arange(24).reshape(2, 3, 4)
    [found] = call(square(source=source), smelt.transpose(x, (2, 1, 0)))
    np.testing.assert_array_equal(np.array(found), np.arange(24).reshape(2, 3, 4).T + 2300)


@needs_compiler
def test_atomics_over_an_initial_value() -> None:
    source = """
        atomic_fetch_add_explicit(&out[x[thread_position_in_grid.x]], 1.0f, memory_order_relaxed);
    """
    x = np.random.default_rng(0).integers(0, 5, 500)
    [found] = call(
        square(source=source, atomic_outputs=True), x.astype(np.int32), init_value=2,
        output_shapes=[(5,)], output_dtypes=[smelt.float32],
    )  # fmt: skip
    assert found.tolist() == (np.bincount(x, minlength=5) + 2).tolist()


@needs_compiler
def test_threadgroup_memory_and_barriers() -> None:
    source = """
        threadgroup float shared[128];
        uint lane = thread_position_in_threadgroup.x;
        shared[lane] = x[thread_position_in_grid.x];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        out[thread_position_in_grid.x] = shared[threads_per_threadgroup.x - 1 - lane];
    """
    x = smelt.arange(256).astype(smelt.float32)
    [found] = call(square(source=source), x, threadgroup=(128, 1, 1))
    np.testing.assert_array_equal(np.array(found), np.array(x).reshape(2, 128)[:, ::-1].reshape(-1))


@needs_compiler
def test_empty_grids() -> None:
    [found] = call(square(), smelt.zeros((0,)))
    assert found.shape == (0,)
    [found] = call(square(), smelt.zeros((3,)), grid=(0, 1, 1), init_value=5)
    assert found.tolist() == [5, 5, 5]


@needs_compiler
def test_on_an_apple_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The device metal, with the fake in PyObjC's place."""
    from smelt.backends.metal.apple import AppleDevice
    from smelt.backends.metal.simulator import Library
    from smelt.runtime import device as devices

    from ..backends.metal.fake_metal import FakeMetal

    fake = FakeMetal(Library)
    monkeypatch.setattr(AppleDevice, "_default", AppleDevice(fake))
    if "metal" not in devices.devices:
        monkeypatch.setitem(devices.devices, "metal", devices.Device("metal"))
    source = "uint i = thread_position_in_grid.x; out[i] = x[i] * scale + x_shape[0];"
    kernel = square(source=source, input_names=["x", "scale"])
    x = smelt.array(np.arange(100, dtype=np.float32))
    with override(device="metal"):
        [found] = call(kernel, x, 3.0)
        smelt.eval(found)
        AppleDevice.default().clear_cache()
        buffers = fake.counts["newBufferWithLength_options_"]
        [again] = call(kernel, found, 1.0)
        smelt.eval(again)
        assert fake.counts["newBufferWithLength_options_"] == buffers + 2, (
            "for the number and the result: the result of a kernel is handed on in place"
        )
    assert found.tolist() == (np.arange(100) * 3 + 100).tolist()
    assert again.tolist() == (np.arange(100) * 3 + 200).tolist()


# In programs


def squares(x: smelt.array) -> smelt.array:
    return call(square(), x)[0]


@needs_compiler
@pytest.mark.parametrize("device", ["cpu", "metal:sim"])
def test_compiled_with_kernels_around_it(device: str) -> None:
    f = smelt.compile(lambda x: smelt.exp(squares(smelt.sin(x)) * 2).sum(axis=0))
    x = np.linspace(0, 3, 12, dtype=np.float32).reshape(3, 4)
    with override(device=device):
        for _ in range(2):
            np.testing.assert_allclose(np.array(f(smelt.array(x))), np.exp(np.sin(x) ** 2 * 2).sum(0), rtol=1e-5)


@needs_compiler
def test_it_is_a_launch_of_the_program() -> None:
    x, f = smelt.array([1.0, 2.0, 3.0]), smelt.compile(lambda x: squares(x + 1) * 2)
    with override(device="metal:sim"):
        compiled = f.trace(x).lower().compile()
        assert [k.schedule for k in compiled.kernels] == ["map", "custom", "map"]
        assert "// custom_kernel_square: a text of its own" in compiled.as_text("msl")
        manifest = Manifest.from_json(compiled.as_text("manifest"))
        own = manifest.kernel("custom_kernel_square").own
        assert own is not None and own.grid == (3, 1, 1) and SQUARE in own.text and manifest.is_static
        assert Manifest.from_json(manifest.to_json()) == manifest
        assert f(x).tolist() == [8, 18, 32]


@needs_compiler
@pytest.mark.parametrize("device", ["cpu", "metal:sim"])
def test_over_a_batch_and_in_loops(device: str) -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    with override(device=device):
        for f in (smelt.vmap(squares), smelt.compile(smelt.vmap(squares))):
            np.testing.assert_array_equal(np.array(f(smelt.array(x))), x**2)
        by_columns = smelt.vmap(lambda a, b: squares(a) + b, in_axes=(1, None))(smelt.array(x), 1.0)
        np.testing.assert_array_equal(np.array(by_columns), x.T**2 + 1)

        def step(carry: smelt.array, y: smelt.array) -> tuple[smelt.array, smelt.array]:
            total = carry + squares(y)
            return total, squares(carry)

        def scan(start: smelt.array, rows: smelt.array) -> Any:
            return smelt.scan(step, start, rows)

        for f in (scan, smelt.compile(scan)):
            last, before = f(smelt.zeros(4), smelt.array(x))
            np.testing.assert_array_equal(np.array(last), (x**2).sum(0))
            np.testing.assert_array_equal(np.array(before)[1:], np.cumsum(x**2, 0)[:-1] ** 2)


@needs_compiler
def test_elements_of_a_batch_that_lie_where_vectors_cannot() -> None:
    source = "uint i = thread_position_in_grid.x; out[i] = x[i] * scale + x_shape[0];"
    kernel = square(source=source, input_names=["x", "scale"])
    x, scale = np.arange(15, dtype=np.int16).reshape(5, 3), np.arange(5, dtype=np.int16)
    with override(device="metal:sim"):
        found = smelt.vmap(lambda x, s: call(kernel, x, s)[0])(smelt.array(x), smelt.array(scale))
        np.testing.assert_array_equal(np.array(found), x * scale[:, None] + 3)


@needs_compiler
@pytest.mark.parametrize("device", ["cpu", "metal:sim"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "bool", "int8", "uint64", "complex64"])
def test_initial_values_in_a_program(device: str, dtype: str) -> None:
    dtype_ = smelt.ir.dtypes.by_name(dtype)
    kernel = metal_kernel("first", ["x"], ["out"], "out[0] = x[0];")
    x = smelt.array([0]).astype(dtype_)

    def f(x: smelt.array) -> smelt.array:
        (found,) = kernel(
            inputs=[x + x], grid=(1, 1, 1), threadgroup=(1, 1, 1), output_shapes=[(3,)], output_dtypes=[dtype_],
            init_value=1,
        )  # fmt: skip
        return found

    with override(device=device):
        assert smelt.compile(f)(x).astype(smelt.float32).tolist() == [0, 1, 1]


@needs_compiler
@pytest.mark.parametrize("device", ["cpu", "metal:sim"])
def test_derivatives_by_a_custom_function(device: str) -> None:
    kernel = square()
    slope = square(name="slope", source="uint i = thread_position_in_grid.x; out[i] = 2 * x[i];")

    @smelt.custom_function
    def f(x: smelt.array) -> smelt.array:
        return call(kernel, x)[0]

    @f.vjp
    def f_vjp(x: Any, cotangent: Any, output: Any) -> Any:
        return cotangent * call(slope, x)[0]

    x = np.array([1.0, -2.0, 3.0], np.float32)
    with override(device=device):
        whole = smelt.grad(lambda x: smelt.sin(f(x)).sum())
        for g in (whole, smelt.compile(whole)):
            np.testing.assert_allclose(np.array(g(smelt.array(x))), np.cos(x**2) * 2 * x, rtol=1e-5)
        each = smelt.vmap(smelt.grad(lambda x: f(x).sum()))
        rows = smelt.compile(each)(smelt.array(np.stack([x, 2 * x])))
        np.testing.assert_allclose(np.array(rows), np.stack([2 * x, 4 * x]), rtol=1e-6)


@needs_compiler
def test_a_text_with_a_kernel_runs() -> None:
    x = smelt.array([1.0, 2.0, 3.0])
    source = str(smelt.make_ir(lambda x: squares(x) + 1)(x))
    assert 'target = "smelt.metal_kernel"' in source
    for device in ("cpu", "metal:sim"):
        (found,) = compile_text(source, devices[device])([np.array([1, 2, 3], np.float32)])
        assert found.tolist() == [2, 5, 10]
    for old, new, message in (
        ('inputs = ["x"]', 'inputs = ["x", "y"]', "it names others"),
        ('name = "square"', 'name = "a b"', "its name must be an identifier"),
        ('name = "square", ', "", "its parameters are not those of a kernel"),
        ("grid = [3, 1, 1]", "grid = [3, 1]", "its parameters are not those of a kernel"),
        ("grid = [3, 1, 1]", "grid = [3, 1, -1]", "its parameters are not those of a kernel"),
    ):
        assert old in source
        for device in ("cpu", "metal:sim"):
            with pytest.raises(SmeltError, match=message):
                compile_text(source.replace(old, new), devices[device])([np.zeros(3, np.float32)])


# Errors


def test_what_a_kernel_is_made_of() -> None:
    for changes, message in [
        ({"name": "a b"}, "its name must be an identifier, is 'a b'"),
        ({"name": 3}, "must be an identifier, is 3"),
        ({"input_names": ["x", "2"]}, "'square': a parameter must be an identifier, is '2'"),
        ({"input_names": "x"}, "names come as a list, got 'x'"),
        ({"output_names": []}, "needs at least one output"),
        ({"output_names": ["x"]}, "the name 'x' is used twice"),
        ({"input_names": ["grid_size"]}, "the name 'grid_size' is an attribute of Metal"),
        ({"header": None}, "the header must be a text, is None"),
        ({"source": " "}, "the source must be the body of a kernel"),
    ]:
        with pytest.raises(AttributeValueError, match=message + r".*test_metal_kernel\.py"):
            square(**changes)


@pytest.mark.parametrize(
    "changes, error, message",
    [
        ({"inputs": []}, AttributeValueError, r"takes 1 inputs \(x\), got 0"),
        ({"output_shapes": []}, AttributeValueError, r"has 1 outputs \(out\), output_shapes has 0"),
        ({"output_dtypes": [smelt.int8] * 2}, AttributeValueError, "output_dtypes has 2"),
        ({"output_dtypes": [smelt.float64]}, DTypeError, "output out is float64, which Metal does not have"),
        ({"output_dtypes": ["flaot32"]}, DTypeError, "unknown dtype 'flaot32'"),
        ({"output_shapes": [(2, -1)]}, ShapeError, r"\(2, -1\) is no shape for output out"),
        ({"output_shapes": [3]}, ShapeError, "3 is no shape for output out"),
        ({"inputs": [smelt.zeros((2,), smelt.float64)]}, DTypeError, "input x is float64"),
        ({"grid": (1, 1)}, AttributeValueError, r"grid must be three integers, is \(1, 1\)"),
        ({"grid": 4}, AttributeValueError, "grid must be three integers, is 4"),
        ({"grid": (1, 1, -1)}, AttributeValueError, "grid must be at least 0 along each axis"),
        ({"threadgroup": (0, 1, 1)}, AttributeValueError, "threadgroup must be at least 1 along each axis"),
        ({"grid": (99, 99, 1), "threadgroup": (64, 64, 1)}, AttributeValueError, "4096 threads in a threadgroup"),
        ({"template": [("T", smelt.float64)]}, DTypeError, "the template parameter T is float64"),
        ({"template": [("T", 1.5)]}, AttributeValueError, "T must be a dtype, an int or a bool, is 1.5"),
        ({"template": [("x", 1)]}, AttributeValueError, "the name 'x' is used twice"),
        ({"template": [("N", 2**63)]}, AttributeValueError, "N must fit int64"),
        ({"stream": 3}, TypeError, "stream must be None, a smelt.Stream or a device, is 3"),
        ({"template": ["T"]}, AttributeValueError, "pairs of a name and a dtype, int or bool; it has 'T'"),
        ({"template": [("T T", 1)]}, AttributeValueError, "a template parameter must be an identifier"),
    ],
)  # fmt: skip
def test_calls(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(square(), [1.0, 2.0], **changes)


@pytest.mark.parametrize(
    "name",
    ["float", "half4", "uint32_t", "kernel", "device", "threadgroup", "true", "xor", "co_await", "metal", "INFINITY",
     "M_PI_F", "CHAR_BIT", "assert", "NULL", "__x", "_X", "as_type", "simd_sum", "ceildiv", "float16_t"],
)  # fmt: skip
def test_reserved_names(name: str) -> None:
    for changes in ({"input_names": [name]}, {"output_names": [name]}):
        with pytest.raises(AttributeValueError, match=f"the name '{name}' is (reserved|defined).*choose another one"):
            square(**changes)
    with pytest.raises(AttributeValueError, match=f"the name '{name}' is (reserved|defined)"):
        call(square(), [1.0, 2.0], template=[(name, 1)])


def test_a_parameter_named_like_a_function() -> None:
    source = "uint i = thread_position_in_grid.x;\nout[i] = {}(exp[i]);  // not exp()"
    kernel = metal_kernel("hiding", ["exp"], ["out"], source.format(""))
    assert "exp[i]" in text_of(kernel, [1.0])
    assert metal_kernel("hiding", ["exp"], ["out"], source.format("metal::exp"))
    with pytest.raises(AttributeValueError, match=r"the source calls exp\(\), which its parameter 'exp' hides"):
        metal_kernel("hiding", ["exp"], ["out"], source.format("exp"))


def test_a_parameter_named_like_an_inputs_shape() -> None:
    with pytest.raises(AttributeValueError, match="the name 'x_shape' stands for the shape of the input x"):
        metal_kernel("clash", ["x"], ["x_shape"], "x_shape[0] = x[0];")


def test_too_many_buffers() -> None:
    names = [f"x{i}" for i in range(31)]
    with pytest.raises(AttributeValueError, match="has 32 buffers with shapes and strides; Metal has 31"):
        call(square(input_names=names), *[[1.0]] * 31)


def test_without_rules_it_has_no_derivative() -> None:
    f = smelt.grad(lambda x: call(square(), x * 2)[0].sum())
    with pytest.raises(NotDifferentiableError, match=r"has no derivative.*custom_function.*smelt.stop_gradient"):
        smelt.eval(f(smelt.array([1.0, 2.0])))


@needs_compiler
def test_values_that_are_not_differentiated_may_pass_through_a_kernel() -> None:
    kernel, data = square(), smelt.array([1.0, 2.0])

    def f(x: smelt.array) -> smelt.array:
        return (x * call(kernel, data + 1)[0] * call(kernel, smelt.stop_gradient(x))[0]).sum()

    assert smelt.grad(f)(smelt.array([3.0, 1.0])).tolist() == [36, 9]


@needs_compiler
def test_the_compilers_message() -> None:
    for device in ("cpu", "metal:sim"):
        with override(device=device), pytest.raises(SmeltError, match="undeclared_name"):
            smelt.eval(call(square(source="out[0] = undeclared_name;"), [1.0]))
