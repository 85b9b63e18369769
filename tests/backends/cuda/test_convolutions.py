"""Convolutions of the device ``cuda`` by cuDNN, over a library and a driver without a GPU."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.cuda import dnn as cudnn
from smelt.backends.gpu.devices import GPUS
from smelt.backends.gpu.library import Convolution, Tensor
from smelt.backends.gpu.manifest import Manifest
from smelt.ir.errors import DeviceError, OutOfMemoryError
from smelt.ir.settings import override

from .fake_dnn import FakeDnn
from .fake_driver import FakeDriver
from .fake_library import installed
from .test_device import _forget, fake, gpu
from .test_products import ALL

pytestmark = pytest.mark.usefixtures("small_heap")
assert fake and gpu  # fixtures


@pytest.fixture
def dnn(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDnn]:
    """The device's library."""
    found = FakeDnn(fake)
    monkeypatch.setitem(GPUS, "nvidia", ALL)
    with installed(monkeypatch, cudnn, dict.fromkeys(("cublasLt", "cudnn"), found)):
        yield found


def numbers(*shape: int) -> np.ndarray:
    """Of which sums are exact in every dtype."""
    return np.random.default_rng(sum(shape)).integers(-2, 3, shape).astype(np.float32)


def oracle(
    x: np.ndarray, w: np.ndarray, ct: np.ndarray, stride: Any, padding: Any, kernel_dilation: Any, groups: int
) -> list[np.ndarray]:
    """The result of a convolution, and the cotangents of its operands; tap by tap, place by place."""
    low, high = padding
    x = x.astype(np.float64)
    padded = np.pad(x, [(0, 0), *zip(low, high), (0, 0)])
    y, dx, dw = np.zeros(ct.shape), np.zeros(padded.shape), np.zeros(w.shape)
    each, outputs = w.shape[-1], w.shape[0] // groups
    for place in itertools.product(*map(range, ct.shape[1:-1])):
        for tap in itertools.product(*map(range, w.shape[1:-1])):
            at = tuple(i * s + t * d for i, s, t, d in zip(place, stride, tap, kernel_dilation))
            for g in range(groups):
                c, o = slice(g * each, (g + 1) * each), slice(g * outputs, (g + 1) * outputs)
                kernel = w[(o, *tap)]
                y[(slice(None), *place, o)] += padded[(slice(None), *at, c)] @ kernel.T
                dx[(slice(None), *at, c)] += ct[(slice(None), *place, o)] @ kernel
                dw[(o, *tap)] += ct[(slice(None), *place, o)].T @ padded[(slice(None), *at, c)]
    inside = tuple(slice(a, a + n) for a, n in zip(low, x.shape[1:-1]))
    return [y, dx[(slice(None), *inside)], dw]


def ran(
    shape: tuple[int, ...], filter: tuple[int, ...], dtype: Any = smelt.float32, stride: Any = 1, padding: Any = 0,
    kernel_dilation: Any = 1, groups: int = 1,
) -> None:  # fmt: skip
    """A convolution and both of its gradients on the device, beside NumPy's."""
    axes = len(shape) - 2
    stride, kernel_dilation = ((n,) * axes if isinstance(n, int) else n for n in (stride, kernel_dilation))
    padding = ((padding,) * axes, (padding,) * axes) if isinstance(padding, int) else padding
    options = {"stride": stride, "padding": padding, "kernel_dilation": kernel_dilation, "groups": groups}
    x, w = numbers(*shape), numbers(*filter)
    spatial = [
        (n + low + high - (k - 1) * d - 1) // s + 1
        for n, low, high, k, d, s in zip(shape[1:], *padding, filter[1:], kernel_dilation, stride)
    ]
    ct = numbers(shape[0], *spatial, filter[0])

    @smelt.compile
    def both(x: Any, w: Any, ct: Any) -> Any:
        y, pull = smelt.vjp(lambda *a: smelt.conv_general(*a, **options), [x, w], [ct])
        return y[0], *pull

    found = [np.array(a.astype(smelt.float64)) for a in both(*(smelt.array(a).astype(dtype) for a in (x, w, ct)))]
    for name, out, want in zip(("result", "image", "filter"), found, oracle(x, w, ct, **options)):
        rounded = np.array(smelt.array(want).astype(dtype).astype(smelt.float64))
        np.testing.assert_array_equal(out, rounded, err_msg=name)


#: Shapes of images and filters, and options.
CASES: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "1-d": ((2, 9, 8), (16, 3, 8), {"padding": 1}),
    "1-d, strides": ((2, 9, 8), (16, 3, 8), {"stride": 2}),
    "2-d": ((2, 7, 6, 8), (16, 3, 3, 8), {"padding": 1}),
    "no padding": ((2, 7, 6, 8), (16, 3, 2, 8), {}),
    "strides": ((2, 7, 8, 8), (16, 3, 3, 8), {"padding": 1, "stride": 2}),
    "strides, even": ((2, 8, 8, 8), (16, 3, 3, 8), {"padding": 1, "stride": 2}),
    "strides that leave some": ((2, 9, 10, 8), (16, 2, 3, 8), {"stride": (3, 4)}),
    "stem": ((2, 16, 16, 3), (8, 7, 7, 3), {"padding": 3, "stride": 2}),
    "dilation": ((2, 9, 9, 8), (16, 3, 3, 8), {"padding": 2, "kernel_dilation": 2}),
    "dilation and strides": ((2, 9, 9, 8), (16, 3, 3, 8), {"padding": 2, "kernel_dilation": (2, 1), "stride": 2}),
    "unequal padding": ((2, 7, 6, 8), (16, 3, 3, 8), {"padding": ((0, 2), (1, 0))}),
    "unequal padding, strides": ((2, 7, 6, 8), (16, 3, 3, 8), {"padding": ((0, 1), (1, 2)), "stride": 2}),
    "much padding": ((1, 4, 4, 8), (16, 3, 3, 8), {"padding": 4}),
    "groups": ((2, 7, 6, 8), (12, 3, 3, 4), {"padding": 1, "groups": 2}),
    "groups, strides": ((2, 7, 6, 8), (12, 3, 3, 4), {"padding": 1, "groups": 2, "stride": 2}),
    "two channels a group": ((2, 7, 6, 8), (8, 3, 3, 2), {"padding": 1, "groups": 4}),
    "one place": ((2, 3, 3, 8), (16, 3, 3, 8), {}),
    "one image": ((1, 6, 6, 8), (16, 3, 3, 8), {"padding": 1}),
    "one channel": ((2, 6, 6, 1), (8, 3, 3, 1), {"padding": 1}),
    "one result": ((2, 6, 6, 8), (1, 3, 3, 8), {"padding": 1}),
    "a row": ((2, 1, 6, 8), (16, 1, 3, 8), {"padding": ((0, 1), (0, 1))}),
    "3-d": ((2, 4, 5, 4, 4), (8, 3, 2, 3, 4), {"padding": 1}),
    "3-d, all": (
        (1, 5, 6, 5, 4), (8, 2, 3, 3, 2),
        {"padding": ((0, 1, 2), (1, 1, 0)), "stride": (1, 2, 2), "kernel_dilation": (2, 1, 1), "groups": 2},
    ),
}  # fmt: skip


UNEQUAL = ("unequal padding", "unequal padding, strides", "3-d, all")


@pytest.mark.parametrize("name", CASES)
def test_values(dnn: FakeDnn, fake: FakeDriver, name: str) -> None:
    """The three of them by the library, from arrays as they lie; but where padding differs the gradient in the filter,
    which it gets wrong, is that of an image whose padding is in memory."""
    shape, filter, options = CASES[name]
    ran(shape, filter, **options)
    assert sorted(found["written"] for found in dnn.done) == ["w", "x", "y"]
    (found,) = (found["convolution"] for found in dnn.done if found["written"] == "w")
    assert found["low"] == found["high"]
    kernels = [entry for entry in fake.launches if "convert" not in entry]
    assert len(kernels) == (name in UNEQUAL)


@pytest.mark.parametrize("filter", [(8, 3, 3, 1), (16, 3, 3, 1)])
def test_one_channel_a_group_is_a_kernel(dnn: FakeDnn, filter: tuple[int, ...]) -> None:
    ran((2, 7, 6, 8), filter, padding=1, groups=8)
    assert not dnn.done


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
@pytest.mark.parametrize("name", ["strides", "groups, strides", "3-d"])
def test_other_dtypes(dnn: FakeDnn, dtype: str, name: str) -> None:
    shape, filter, options = CASES[name]
    ran(shape, filter, getattr(smelt, dtype), **options)
    assert len(dnn.done) == 3
    for found in dnn.done:
        assert {found[x]["dtype"][0] for x in "xwy"} == {{"float16": 2, "bfloat16": 9, "float64": 1}[dtype]}
        assert found["convolution"]["compute"] == [1 if dtype == "float64" else 0]


def test_engines(dnn: FakeDnn) -> None:
    """Values do not change from run to run, sums of float32 stay float32's unless asked, and nothing is compiled."""
    shape, filter, options = CASES["2-d"]
    ran(shape, filter, **options)
    assert {found["engine"] for found in dnn.done} == {5}
    ran(shape, filter, smelt.bfloat16, **options)
    assert {found["engine"] for found in dnn.done[3:]} == {4}
    _forget()
    with override(tf32=True):
        ran(shape, filter, **options)
    assert {found["engine"] for found in dnn.done[6:]} == {4}


def test_settings(dnn: FakeDnn, fake: FakeDriver) -> None:
    shape, filter, options = CASES["strides"]
    with override(libraries=False):
        ran(shape, filter, **options)
    assert not dnn.done and len(fake.launches) >= 3


def test_without_an_engine(dnn: FakeDnn, fake: FakeDriver) -> None:
    dnn.without.add(0)
    shape, filter, options = CASES["strides"]
    ran(shape, filter, **options)
    assert not dnn.done and len(fake.launches) >= 3


def test_a_library_that_does_not_work_with_the_driver(dnn: FakeDnn) -> None:
    dnn.cudnnCreate = lambda handle: 1001  # type: ignore[method-assign]
    ran(*CASES["2-d"][:2], **CASES["2-d"][2])
    assert cudnn.library() is None and not dnn.done


def test_integers_are_kernels(dnn: FakeDnn) -> None:
    x, w = numbers(2, 6, 6, 8), numbers(4, 3, 3, 8)
    found = smelt.conv2d(smelt.array(x.astype(np.int32)), smelt.array(w.astype(np.int32)))
    want = oracle(x, w, np.zeros((2, 4, 4, 4)), (1, 1), ((0, 0), (0, 0)), (1, 1), 1)[0]
    np.testing.assert_array_equal(np.array(found), want)
    assert not dnn.done


def test_small_convolutions_are_kernels(dnn: FakeDnn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(GPUS, "nvidia", dataclasses.replace(ALL, convolution_work=1 << 20))
    ran(*CASES["2-d"][:2], **CASES["2-d"][2])
    assert not dnn.done


#: Functions of a convolution's operands and one array more, and launches of kernels beside it.
BESIDE: dict[str, tuple[Callable[..., Any], int]] = {
    "bias and activation": (lambda x, w, b: smelt.maximum(smelt.conv2d(x, w, padding=1) + b, 0), 1),
    "another order": (lambda x, w, b: smelt.conv2d(x, w, padding=1).transpose(0, 3, 1, 2), 1),
    "both": (lambda x, w, b: ((y := smelt.conv2d(x, w, padding=1)), smelt.tanh(y)), 1),
    "a border that is cut": (lambda x, w, b: smelt.conv2d(x[:, 1:, :5], w, padding=1), 0),
    "channels of another array": (lambda x, w, b: smelt.conv2d(x[..., 2:6], w[..., :4], padding=1), 0),
    "channels first in memory": (lambda x, w, b: smelt.conv2d(x.reshape(2, 8, 7, 6).transpose(0, 2, 3, 1), w), 1),
    "computed": (lambda x, w, b: smelt.conv2d(x * 2, w + 1, padding=1), 2),
    "padded": (lambda x, w, b: smelt.conv2d(smelt.pad(x, ((0, 0), (1, 2), (0, 1), (0, 0)), constant_values=3), w), 1),
    "reversed": (lambda x, w, b: smelt.conv2d(x, w[:, ::-1], padding=1), 1),
    "transposed": (lambda x, w, b: smelt.conv_transpose2d(x, w, stride=2, padding=1), 1),
    "transposed, more": (lambda x, w, b: smelt.conv_transpose2d(x, w, stride=2, padding=1, output_padding=1), 1),
    "transposed, groups": (lambda x, w, b: smelt.conv_transpose2d(x, w[..., :2], stride=2, groups=4), 1),
    "spread": (lambda x, w, b: smelt.conv_general(x, w, input_dilation=2, padding=1), 1),
    "by itself": (lambda x, w, b: smelt.conv2d(w, w), 0),
}  # fmt: skip


@pytest.mark.parametrize("name", BESIDE)
def test_what_kernels_do_beside(dnn: FakeDnn, fake: FakeDriver, name: str) -> None:
    f, launches = BESIDE[name]
    given = [smelt.array(numbers(*shape)) for shape in ((2, 7, 6, 8), (12, 3, 3, 8), (12,))]
    with smelt.stream("cpu"):
        wants = smelt.compile(f)(*given)
        wants = [np.array(x.astype(smelt.float32)) for x in (wants if isinstance(wants, tuple) else (wants,))]
    outs = smelt.compile(f)(*given)
    for out, want in zip(outs if isinstance(outs, tuple) else (outs,), wants):
        np.testing.assert_allclose(np.array(out), want, rtol=1e-6)
    assert dnn.done and len(fake.launches) == launches, [f"{k}" for k in fake.launches]


def test_weights_of_float32_have_gradients_from_arrays_as_they_lie(dnn: FakeDnn, fake: FakeDriver) -> None:
    x, w, ct = (smelt.array(numbers(*shape)) for shape in ((2, 7, 6, 8), (12, 3, 3, 8), (2, 7, 6, 12)))

    def f(w: Any) -> Any:
        y = smelt.conv2d(x.astype(smelt.bfloat16), w.astype(smelt.bfloat16), padding=1)
        return (y.astype(smelt.float32) * ct).sum()

    found = np.array(smelt.compile(smelt.grad(f))(w))
    assert [done["written"] for done in dnn.done] == ["w"] and len(fake.launches) == 3
    want = oracle(np.array(x), np.array(w), np.array(ct), (1, 1), ((1, 1), (1, 1)), (1, 1), 1)[2]
    np.testing.assert_array_equal(found, np.array(smelt.array(want).astype(smelt.bfloat16).astype(smelt.float32)))


def test_graphs(dnn: FakeDnn, fake: FakeDriver) -> None:
    """Convolutions of a program that runs again on the same memory are captured, with the addresses of that moment."""
    x, w = smelt.array(numbers(1, 5, 5, 8)), smelt.array(numbers(8, 3, 3, 8) / 8)

    def chain(x: Any, w: Any) -> Any:
        for _ in range(3):
            x = smelt.tanh(smelt.conv2d(x, w, padding=1))
        return x

    with smelt.stream("cpu"):
        want = np.array(smelt.compile(chain)(x, w))
    f, before = smelt.compile(chain), fake.graphs
    for _ in range(5):
        np.testing.assert_allclose(np.array(f(x, w)), want, rtol=1e-5, atol=1e-6)
    assert fake.graphs - before >= 2 and dnn.captured == 3


@pytest.mark.parametrize(("code", "kind"), [(5000, DeviceError), (4004, OutOfMemoryError)])
def test_errors(dnn: FakeDnn, code: int, kind: type[Exception]) -> None:
    dnn.fails = code
    with pytest.raises(kind, match="cudnnBackendExecute"):
        smelt.eval(smelt.conv2d(smelt.array(numbers(1, 5, 5, 8)), smelt.array(numbers(8, 3, 3, 8))))
    dnn.fails = 0
    ran(*CASES["2-d"][:2], **CASES["2-d"][2])


def test_the_manifest_says_what_the_library_does(dnn: FakeDnn) -> None:
    given = [smelt.array(numbers(*shape)) for shape in ((2, 7, 6, 8), (12, 3, 3, 8))]
    program = smelt.compile(lambda x, w: smelt.conv2d(x, w, padding=1)).trace(*given).lower().compile()
    manifest = Manifest.from_json(program.as_text("manifest"))
    assert Manifest.from_json(manifest.to_json()) == manifest
    (kernel,) = manifest.kernels
    assert kernel.library == Convolution(
        Tensor(0, "float32", 0, (2, 8, 7, 6), (336, 1, 48, 8)), Tensor(1, "float32", 0, (12, 8, 3, 3), (72, 1, 24, 8)),
        Tensor(2, "float32", 0, (2, 12, 7, 6), (504, 1, 72, 12)), "result", (1, 1), (1, 1), (1, 1), (1, 1),
        workspace=kernel.buffers[3].elements,
    )  # fmt: skip
    assert [b.access for b in kernel.buffers] == ["read", "read", "write", "write"]
    assert kernel.flops == 2 * 2 * 7 * 6 * 12 * 72 and "a convolution by a library" in program.as_text("msl")


def test_numbers_are_those_of_the_reference_where_nothing_is_multiplied(dnn: FakeDnn) -> None:
    """Empty batches, and channels that there are none of."""
    for shape, filter in (((0, 5, 5, 8), (4, 3, 3, 8)), ((2, 5, 5, 0), (4, 3, 3, 0)), ((2, 5, 5, 8), (0, 3, 3, 8))):
        x, w = (smelt.array(np.ones(s, np.float32)) for s in (shape, filter))
        found = np.array(smelt.conv2d(x, w))
        np.testing.assert_array_equal(found, np.zeros((shape[0], 3, 3, filter[0])))
    assert not dnn.done
