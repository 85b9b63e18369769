"""Products of the device ``cuda`` by cuBLASLt, over a library and a driver without a GPU."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.buffer import Buffer
from smelt.backends.cuda import products
from smelt.backends.cuda.memory import MEMORY
from smelt.backends.gpu.devices import GPUS, LIBRARY_LIMITS
from smelt.backends.gpu.library import Matrix, MatrixProduct
from smelt.backends.gpu.manifest import Manifest
from smelt.backends.gpu.pipeline import gpu_pipeline
from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.errors import DeviceError, OutOfMemoryError
from smelt.ir.settings import override
from smelt.passes import Pipeline

from .fake_blas import BIAS, RELU, FakeBlas
from .fake_driver import FakeDriver
from .fake_library import installed
from .test_device import _forget, fake, gpu

pytestmark = pytest.mark.usefixtures("small_heap")
assert fake and gpu  # fixtures


#: A GPU whose library makes products of any size.
ALL = dataclasses.replace(GPUS["nvidia"], **dict.fromkeys(LIBRARY_LIMITS, 0))


@pytest.fixture
def blas(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeBlas]:
    """The device's library."""
    found = FakeBlas(fake)
    monkeypatch.setitem(GPUS, "nvidia", ALL)
    with installed(monkeypatch, products, {"cublasLt": found}):
        yield found


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def ran(f: Callable[..., Any], *arrays: np.ndarray, dtype: Any = smelt.float32) -> list[np.ndarray]:
    """A function's results on the device, beside those of NumPy."""
    given = [smelt.array(x).astype(dtype) for x in arrays]
    outs = smelt.compile(lambda *xs: f(smelt, *xs))(*given)
    wants = f(np, *(np.array(x.astype(smelt.float32), np.float64) for x in given))
    outs, wants = (x if isinstance(x, tuple) else (x,) for x in (outs, wants))
    found = [np.array(x.astype(smelt.float32)) for x in outs]
    tolerance = 3e-6 if dtype in (smelt.float32, smelt.float64) else 2e-2
    for x, want in zip(found, wants):
        np.testing.assert_allclose(x, want, rtol=tolerance, atol=tolerance * np.abs(want).max())
    return found


#: Functions, shapes, and what follows the product in the library: "" for nothing; None: kernels of their own do.
CASES: dict[str, tuple[Callable[..., Any], Sequence[tuple[int, ...]], int]] = {
    "plain": (lambda lib, x, w: x @ w, [(16, 24), (24, 40)], 0),
    "both transposed": (lambda lib, x, w: x.T @ w.T, [(24, 16), (40, 24)], 0),
    "left transposed": (lambda lib, x, w: x.T @ w, [(24, 16), (24, 40)], 0),
    "result transposed": (lambda lib, x, w: (x @ w).T, [(16, 24), (24, 40)], 0),
    "batch": (lambda lib, x, y: x @ y, [(3, 16, 24), (3, 24, 40)], 0),
    "batch inside": (lambda lib, x, y: x.transpose(1, 0, 2) @ y, [(16, 3, 24), (3, 24, 40)], 0),
    "batch of one side": (lambda lib, x, y: x @ y, [(3, 16, 24), (24, 40)], 0),
    "rows in parts": (lambda lib, x, y: x[:, 1:9] @ y, [(3, 16, 24), (24, 40)], 0),
    "batch turned back": (lambda lib, x, y: (x @ y).transpose(1, 0, 2), [(3, 16, 24), (3, 24, 40)], 0),
    "depth in parts": (lambda lib, x, y: lib.einsum("abc,abd->cd", x, y), [(3, 5, 16), (3, 5, 24)], 0),
    "parts": (lambda lib, x, w: x[2:14, 4:] @ w[4:, 3:21], [(16, 24), (24, 40)], 0),
    "scaled": (lambda lib, x, w: x @ w * 0.25, [(16, 24), (24, 40)], 0),
    "bias": (lambda lib, x, w, b: x @ w + b, [(2, 16, 24), (24, 40), (40,)], BIAS),
    "bias first": (lambda lib, x, w, b: b + x @ w, [(16, 24), (24, 40), (40,)], BIAS),
    "bias, relu": (lambda lib, x, w, b: lib.maximum(x @ w + b, 0), [(16, 24), (24, 40), (40,)], BIAS | RELU),
    "relu": (lambda lib, x, w: lib.maximum(0, x @ w), [(16, 24), (24, 40)], RELU),
    "residual": (lambda lib, x, w, r: r + x @ w, [(16, 24), (24, 40), (16, 40)], 0),
    "all": (
        lambda lib, x, w, b, r: lib.maximum(r + (x @ w * 0.5 + b), 0),
        [(2, 16, 24), (24, 40), (40,), (2, 16, 40)], BIAS | RELU,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_one_step(blas: FakeBlas, fake: FakeDriver, name: str) -> None:
    """Layouts, and what the library does with the result: nothing else is launched."""
    f, shapes, epilogue = CASES[name]
    ran(f, *(numbers(*shape) for shape in shapes))
    assert not fake.launches and [p["epilogue"] for p in blas.products] == [epilogue or 1]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "complex64"])
@pytest.mark.parametrize("name", ["both transposed", "batch inside", "parts", "all"])
def test_other_dtypes(blas: FakeBlas, dtype: str, name: str) -> None:
    if dtype == "complex64" and name == "all":
        return  # there is no larger one of two complex numbers
    f, shapes, _ = CASES[name]
    ran(f, *(numbers(*shape) for shape in shapes), dtype=getattr(smelt, dtype))
    (found,) = blas.products
    compute = 70 if dtype == "float64" else 68
    types = {"float16": 2, "bfloat16": 14, "float64": 1, "complex64": 4}
    assert found["compute"] == compute and found["a"]["dtype"] == found["d"]["dtype"] == types[dtype]


def test_sums_of_half_precision_stay_float32(blas: FakeBlas) -> None:
    shapes = (8, 24), (24, 16)
    arrays = [numbers(*shape) for shape in shapes]
    ran(lambda lib, x, w: x.astype("float32") @ w.astype("float32"), *arrays, dtype=smelt.float16)
    (found,) = blas.products
    assert (found["a"]["dtype"], found["d"]["dtype"], found["compute"], found["scale"]) == (2, 0, 68, 0)


FOLLOWED: dict[str, tuple[Callable[..., Any], Sequence[tuple[int, ...]]]] = {
    "tanh": (lambda lib, x, w, b: lib.tanh(x @ w + b), [(16, 24), (24, 40), (40,)]),
    "heads": (
        lambda lib, x, w, b: (x @ w + b).reshape(2, 16, 4, 10).transpose(0, 2, 1, 3), [(2, 16, 24), (24, 40), (40,)]
    ),
    "twice": (lambda lib, x, w, b: (y := x @ w + b) + y * y, [(16, 24), (24, 40), (40,)]),
    "two results": (lambda lib, x, w, b: ((y := x @ w + b), lib.tanh(y)), [(16, 24), (24, 40), (40,)]),
    "bias that is transposed": (lambda lib, x, w, b: lib.exp((x @ w + b).T / 9), [(16, 24), (24, 40), (40,)]),
    "bias of rows": (lambda lib, x, w, b: x @ w + b[:, None], [(16, 24), (24, 40), (16,)]),
    "one number": (lambda lib, x, w, b: x @ w + b, [(16, 24), (24, 40), (1,)]),
}  # fmt: skip


@pytest.mark.parametrize("name", FOLLOWED)
def test_what_a_kernel_does_afterwards(blas: FakeBlas, fake: FakeDriver, name: str) -> None:
    f, shapes = FOLLOWED[name]
    ran(f, *(numbers(*shape) for shape in shapes))
    assert len(blas.products) == 1 and len(fake.launches) == 1


@pytest.mark.parametrize("name", ["plain", "both transposed", "left transposed", "batch", "all", "result transposed"])
@pytest.mark.parametrize("shape", [(13, 24, 40), (16, 21, 40), (16, 24, 35), (13, 21, 35), (8, 21, 16)], ids=str)
def test_odd_rows_of_16_bits_get_zeros_behind_them(blas: FakeBlas, name: str, shape: tuple[int, ...]) -> None:
    f, shapes, _ = CASES[name]
    extents = dict(zip((16, 24, 40), shape))
    ran(f, *(numbers(*(extents.get(n, n) for n in s)) for s in shapes), dtype=smelt.bfloat16)
    (found,) = blas.products
    for matrix in "abd":
        assert found[matrix]["rows"] % 8 == 0 and found[matrix]["lead"] % 8 == 0, matrix


def test_wide_rows_go_from_product_to_product(blas: FakeBlas, fake: FakeDriver) -> None:
    """Logits of an odd number of classes, their softmax, and its gradient: none of them is copied."""
    x, w, classes = numbers(2, 40, 16), numbers(16, 61), np.arange(80, dtype=np.int32).reshape(2, 40) * 3 % 61

    def loss(x: Any, w: Any, classes: Any) -> Any:
        return smelt.fast.cross_entropy(x @ w, classes).sum()

    pipeline = Pipeline.parse(gpu_pipeline(("complex128",), half_gradients=True)).before(
        "recompute-attention", "pad-products{work=0 reuse=16}"
    )
    step = smelt.compile(smelt.grad(loss, argnums=(0, 1)), pipeline=pipeline)
    given = [smelt.array(a).astype(smelt.bfloat16) for a in (x, w)]
    smelt.eval(given)
    fake.launches.clear()
    found = step(*given, smelt.array(classes))
    smelt.eval(found)
    copies = [name for name in fake.launches if name.endswith("_operand")]
    assert len(blas.products) == 3 and len(copies) == 2 and len(fake.launches) == 4  # w twice, softmax, the result
    x, w = (np.array(a.astype(smelt.float32), np.float64) for a in given)
    e = np.exp(x @ w - (x @ w).max(-1, keepdims=True))
    p = e / e.sum(-1, keepdims=True)
    np.put_along_axis(p, classes[..., None], np.take_along_axis(p, classes[..., None], -1) - 1, -1)
    for a, want in zip(found, (p @ w.T, np.einsum("bnk,bnm->km", x, p))):
        got = np.array(a.astype(smelt.float32))
        np.testing.assert_allclose(got, want, rtol=2e-2, atol=2e-2 * np.abs(want).max())


def test_an_odd_matrix_by_itself(blas: FakeBlas) -> None:
    """Which would need zeros in two ways; and what is left to kernels where there are zeros."""
    ran(lambda lib, x: x @ x, numbers(13, 13), dtype=smelt.float16)
    ran(lambda lib, x: x @ x.T, numbers(13, 21), dtype=smelt.float16)
    ran(lambda lib, x, y: ((z := x @ y), lib.tanh(z)), numbers(13, 21), numbers(21, 11), dtype=smelt.float16)
    ran(lambda lib, x, y: (lib.tanh(x @ y)).T, numbers(13, 21), numbers(21, 11), dtype=smelt.float16)
    assert len(blas.products) == 4


def test_odd_rows_of_other_dtypes_stay(blas: FakeBlas, fake: FakeDriver) -> None:
    ran(CASES["plain"][0], numbers(13, 21), numbers(21, 35))
    assert not fake.launches


def test_what_it_is_not_asked_for(blas: FakeBlas, fake: FakeDriver) -> None:
    """Integers, operands that are computed, vectors, padded windows."""
    ran(lambda lib, x, y: x @ y, numbers(16, 24), numbers(24, 40) * 9, dtype=smelt.int32)
    ran(lambda lib, x, y: x @ y, numbers(16, 24), numbers(24))
    x, w = smelt.array(numbers(2, 6, 6, 8)), smelt.array(numbers(8, 3, 3, 8))
    smelt.eval(smelt.conv2d(x, w, padding=1))
    assert not blas.products and len(fake.launches) >= 3


def test_a_convolution_of_one_element_is_a_product(blas: FakeBlas, fake: FakeDriver) -> None:
    x, w = numbers(2, 5, 5, 24), numbers(16, 1, 1, 24)
    found = smelt.conv2d(smelt.array(x), smelt.array(w))
    np.testing.assert_allclose(np.array(found), x @ w[:, 0, 0].T, rtol=1e-5, atol=1e-5)
    assert len(blas.products) == 1 and not fake.launches


def test_an_epilogue_without_an_algorithm_is_a_kernel(blas: FakeBlas, fake: FakeDriver) -> None:
    f, shapes, _ = CASES["bias, relu"]
    blas.without |= {BIAS | RELU, RELU}
    ran(f, *(numbers(*shape) for shape in shapes))
    assert [p["epilogue"] for p in blas.products] == [BIAS] and len(fake.launches) == 1
    blas.without |= {BIAS, 1}
    ran(f, *(numbers(*shape) for shape in ((8, 24), (24, 40), (40,))))
    assert len(blas.products) == 1 and len(fake.launches) == 2


def test_settings(blas: FakeBlas, fake: FakeDriver) -> None:
    f, shapes, _ = CASES["plain"]
    with override(libraries=False):
        ran(f, *(numbers(*shape) for shape in shapes))
    assert not blas.products and len(fake.launches) == 1
    _forget()
    with override(tf32=True):
        ran(f, *(numbers(*shape) for shape in shapes))
        ran(f, *(numbers(*shape) for shape in shapes), dtype=smelt.float16)
    assert [p["compute"] for p in blas.products] == [77, 68]


@pytest.mark.parametrize("bits", [4, 8])
def test_packed_weights_are_unpacked_as_they_lie(blas: FakeBlas, fake: FakeDriver, bits: int) -> None:
    """Numbers of a word next to each other, line by line: the library takes what lies by columns, too."""
    w = smelt.quantize(smelt.array(numbers(48, 64)), bits=bits)
    x = smelt.array(numbers(16, 64))
    program = smelt.compile(lambda x, *w: smelt.quantized_matmul(x, *w, bits=bits)).trace(x, *w).lower().compile()
    unpacked, product = Manifest.from_json(program.as_text("manifest")).kernels
    assert unpacked.schedule == "map" and isinstance(product.library, MatrixProduct)
    assert product.library.rhs.strides == (0, 1, 64)


def test_small_products_are_kernels(blas: FakeBlas, fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    row = dataclasses.replace(GPUS["nvidia"], library_work=16 * 24 * 40, library_reuse=25)
    monkeypatch.setitem(GPUS, "nvidia", row)
    ran(lambda lib, x, y: x @ y, numbers(16, 24), numbers(24, 39))
    ran(lambda lib, x, y: lib.tanh(x @ y), numbers(16, 24), numbers(24, 40))
    assert not blas.products
    ran(lambda lib, x, y: x @ y, numbers(16, 24), numbers(24, 40))
    ran(lambda lib, x, y: lib.tanh(x @ y), numbers(16, 25), numbers(25, 40))
    assert len(blas.products) == 2


def test_elements_of_stacked_arrays_are_aligned(blas: FakeBlas) -> None:
    """In a loop, where they lie at multiples of four bytes; the fake refuses other addresses than it was told."""
    xs, w = numbers(5, 3, 7), numbers(7, 7)
    out, ys = smelt.compile(lambda x, w: smelt.scan(lambda c, x: (c + x @ w, x @ w), smelt.zeros((3, 7)), x))(
        smelt.array(xs), smelt.array(w)
    )
    np.testing.assert_allclose(np.array(ys), xs @ w, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(np.array(out), (xs @ w).sum(0), rtol=1e-5, atol=1e-5)
    assert len(blas.products) == 5


def chain(lib: Any, w: Any, b: Any) -> Any:
    for _ in range(5):
        w = lib.tanh(w @ w + b)
    return w


def test_graphs(blas: FakeBlas, fake: FakeDriver) -> None:
    """Products of a program that runs again on the same memory are captured, with the addresses of that moment."""
    w, b = numbers(16, 16), numbers(16)
    want, before = chain(np, w, b), fake.graphs
    f, given = smelt.compile(lambda w, b: chain(smelt, w, b)), [smelt.array(w), smelt.array(b)]
    for _ in range(5):
        np.testing.assert_allclose(np.array(f(*given)), want, rtol=1e-4, atol=1e-4)
    assert fake.graphs - before >= 2 and blas.captured == 5


def test_one_call_of_a_library_is_a_graph(blas: FakeBlas, fake: FakeDriver) -> None:
    """A kernel is launched as quickly by itself; what a library needs to be called is more."""
    given = [smelt.array(numbers(16, 16)), smelt.array(numbers(16, 16))]
    for f, graphs in ((lambda x, y: x @ y, True), (lambda x, y: x + y, False)):
        before, compiled = fake.graphs, smelt.compile(f)
        for _ in range(5):
            smelt.eval(compiled(*given))
        assert (fake.graphs > before) == graphs


def test_a_library_that_cannot_be_captured(blas: FakeBlas, fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeDriver, "capture", lambda *_: 14)
    w, b, before = numbers(8, 8), numbers(8), fake.graphs
    f, given = smelt.compile(lambda w, b: chain(smelt, w, b)), [smelt.array(w), smelt.array(b)]
    for _ in range(4):
        np.testing.assert_allclose(np.array(f(*given)), chain(np, w, b), rtol=1e-4, atol=1e-4)
    assert fake.graphs == before


@pytest.mark.parametrize(("code", "kind"), [(14, DeviceError), (3, OutOfMemoryError)])
def test_errors(blas: FakeBlas, code: int, kind: type[Exception]) -> None:
    blas.fails = code
    with pytest.raises(kind, match="cublasLtMatmul"):
        smelt.eval(smelt.array(numbers(8, 8)) @ smelt.array(numbers(8, 8)))
    blas.fails = 0
    ran(CASES["plain"][0], numbers(8, 8), numbers(8, 8))


def test_a_library_that_does_not_work_with_the_driver(blas: FakeBlas, fake: FakeDriver) -> None:
    blas.cublasLtCreate = lambda handle: 1  # type: ignore[method-assign]
    ran(CASES["plain"][0], numbers(8, 8), numbers(8, 8))
    assert products.library() is None and len(fake.launches) == 1


def test_the_manifest_says_what_the_library_does(blas: FakeBlas) -> None:
    f = smelt.compile(lambda x, w, b: smelt.tanh(x @ w + b))
    given = [smelt.array(numbers(*shape)) for shape in ((16, 24), (24, 40), (40,))]
    program = f.trace(*given).lower().compile()
    manifest = Manifest.from_json(program.as_text("manifest"))
    assert Manifest.from_json(manifest.to_json()) == manifest
    first, second = manifest.kernels
    assert second.library is None and first.library == MatrixProduct(
        1, 16, 40, 24, Matrix(0, "float32", 0, (0, 24, 1)), Matrix(1, "float32", 0, (0, 40, 1)),
        Matrix(3, "float32", 0, (0, 40, 1)), bias=Matrix(2, "float32", 0, (0, 0, 1)),
    )  # fmt: skip
    assert [b.access for b in first.buffers] == ["read", "read", "read", "write"] and first.flops == 2 * 16 * 24 * 40
    assert "by a library" in program.as_text("msl") and "kernel void product" not in program.as_text("msl")


def test_all_orders_of_all_matrices(fake: FakeDriver, blas: FakeBlas) -> None:
    """Any matrix may lie by rows or by columns, with gaps between; what has no form is refused."""
    library, rng = products.library(), np.random.default_rng(0)
    assert library is not None
    m, n, k, batch = 3, 4, 5, 2
    taken = 0
    for turned in itertools.product((False, True), repeat=4):
        arrays, matrices = [], []
        for i, (rows, columns) in enumerate([(m, k), (k, n), (m, n), (m, n)]):
            stored = (batch, columns + 1, rows + 1) if turned[i] else (batch, rows + 1, columns + 1)
            arrays.append(rng.standard_normal(stored).astype(np.float32))
            by, far, _ = (s // 4 for s in arrays[-1].strides)
            matrices.append(Matrix(i, "float32", 0, (by, 1, far) if turned[i] else (by, far, 1)))
        lhs, rhs, addend, out = matrices
        spec = MatrixProduct(batch, m, n, k, lhs, rhs, out, addend)
        plan = library.find(spec)
        assert (plan is not None) == (turned[2] == turned[3])
        if plan is None:
            continue
        taken += 1
        blocks = [MEMORY.adopt(Buffer.of(x, Aval(x.shape, dtypes.float32))) for x in arrays]
        plan.run([b.home.address for b in blocks])
        found = blocks[3].home.to_host(Aval(arrays[3].shape, dtypes.float32))
        a, b, c, d = (x.swapaxes(1, 2) if t else x for x, t in zip((*arrays[:3], found), turned))
        np.testing.assert_allclose(d[:, :m, :n], a[:, :m, :k] @ b[:, :k, :n] + c[:, :m, :n], rtol=1e-5, atol=1e-5)
        rest = np.ones(d.shape, bool)
        rest[:, :m, :n] = False
        before = arrays[3].swapaxes(1, 2) if turned[3] else arrays[3]
        np.testing.assert_array_equal(d[rest], before[rest])
    assert taken == 8
    assert library.find(MatrixProduct(1, m, n, k, Matrix(0, "float32", 0, (0, 2 * k, 2)), rhs, out)) is None
