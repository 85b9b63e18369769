"""The array API standard, 2025.12: names and signatures, and what its arguments do, against NumPy."""

import base64
import inspect
import itertools
import re
import struct
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir.errors import ArgumentTypeError, AttributeValueError, DTypeError, ShapeError, SmeltError
from tests.frontend.checks import check_gradient, exact, same

#: Positional arguments; those given by name.
STANDARD = """
Device | abs(x) | acos(x) | acosh(x) | add(x1, x2) | all(x; axis, keepdims) | any(x; axis, keepdims) | arange(start,
stop, step; dtype, device) | argmax(x; axis, keepdims) | argmin(x; axis, keepdims) | argsort(x; axis, descending,
stable) | asarray(obj; dtype, device, copy) | asin(x) | asinh(x) | astype(x, dtype; copy, device) | atan(x) |
atan2(x1, x2) | atanh(x) | bitwise_and(x1, x2) | bitwise_invert(x) | bitwise_left_shift(x1, x2) | bitwise_or(x1, x2)
| bitwise_right_shift(x1, x2) | bitwise_xor(x1, x2) | bool | broadcast_arrays(*arrays) | broadcast_shapes(*shapes) |
broadcast_to(x, shape) | can_cast(from_, to) | ceil(x) | clip(x, min, max) | complex64 | concat(arrays; axis) |
conj(x) | copysign(x1, x2) | cos(x) | cosh(x) | count_nonzero(x; axis, keepdims) | cumulative_prod(x; axis, dtype,
include_initial) | cumulative_sum(x; axis, dtype, include_initial) | diff(x; axis, n, prepend, append) | divide(x1,
x2) | e | empty(shape; dtype, device) | empty_like(x; dtype, device) | equal(x1, x2) | exp(x) | expand_dims(x, axis)
| expm1(x) | eye(n_rows, n_cols; k, dtype, device) | fft | finfo(type) | flip(x; axis) | float32 | float64 |
floor(x) | floor_divide(x1, x2) | from_dlpack(x; device, copy) | full(shape, fill_value; dtype, device) |
full_like(x, fill_value; dtype, device) | greater(x1, x2) | greater_equal(x1, x2) | hypot(x1, x2) | iinfo(type) |
imag(x) | inf | int16 | int32 | int64 | int8 | isdtype(dtype, kind) | isfinite(x) | isin(x1, x2; invert) | isinf(x)
| isnan(x) | less(x1, x2) | less_equal(x1, x2) | linalg | linspace(start, stop, num; dtype, device, endpoint) |
log(x) | log10(x) | log1p(x) | log2(x) | logaddexp(x1, x2) | logical_and(x1, x2) | logical_not(x) | logical_or(x1,
x2) | logical_xor(x1, x2) | matmul(x1, x2) | matrix_transpose(x) | max(x; axis, keepdims) | maximum(x1, x2) |
mean(x; axis, keepdims) | meshgrid(*arrays; indexing) | min(x; axis, keepdims) | minimum(x1, x2) | moveaxis(x,
source, destination) | multiply(x1, x2) | nan | negative(x) | newaxis | nextafter(x1, x2) | nonzero(x) |
not_equal(x1, x2) | ones(shape; dtype, device) | ones_like(x; dtype, device) | permute_dims(x, axes) | pi |
positive(x) | pow(x1, x2) | prod(x; axis, dtype, keepdims) | real(x) | reciprocal(x) | remainder(x1, x2) | repeat(x,
repeats; axis) | reshape(x, shape; copy) | result_type(*arrays_and_dtypes) | roll(x, shift; axis) | round(x) |
searchsorted(x1, x2; side, sorter) | sign(x) | signbit(x) | sin(x) | sinh(x) | sort(x; axis, descending, stable) |
sqrt(x) | square(x) | squeeze(x, axis) | stack(arrays; axis) | std(x; axis, correction, keepdims) | subtract(x1, x2)
| sum(x; axis, dtype, keepdims) | take(x, indices; axis) | take_along_axis(x, indices; axis) | tan(x) | tanh(x) |
tensordot(x1, x2; axes) | tile(x, repetitions) | tril(x; k) | triu(x; k) | trunc(x) | uint16 | uint32 | uint64 |
uint8 | unique_all(x) | unique_counts(x) | unique_inverse(x) | unique_values(x) | unstack(x; axis) | var(x; axis,
correction, keepdims) | vecdot(x1, x2; axis) | where(condition, x1, x2) | zeros(shape; dtype, device) |
zeros_like(x; dtype, device) | linalg.cholesky(x; upper) | linalg.cross(x1, x2; axis) | linalg.det(x) |
linalg.diagonal(x; offset) | linalg.eigh(x) | linalg.eigvalsh(x) | linalg.inv(x) | linalg.matmul(x1, x2) |
linalg.matrix_norm(x; keepdims, ord) | linalg.matrix_power(x, n) | linalg.matrix_rank(x; rtol) |
linalg.matrix_transpose(x) | linalg.outer(x1, x2) | linalg.pinv(x; rtol) | linalg.qr(x; mode) | linalg.slogdet(x) |
linalg.solve(x1, x2) | linalg.svd(x; full_matrices) | linalg.svdvals(x) | linalg.tensordot(x1, x2; axes) |
linalg.trace(x; offset, dtype) | linalg.vecdot(x1, x2; axis) | linalg.vector_norm(x; axis, keepdims, ord) |
fft.fft(x; n, axis, norm) | fft.fftfreq(n; d, dtype, device) | fft.fftn(x; s, axes, norm) | fft.fftshift(x; axes) |
fft.hfft(x; n, axis, norm) | fft.ifft(x; n, axis, norm) | fft.ifftn(x; s, axes, norm) | fft.ifftshift(x; axes) |
fft.ihfft(x; n, axis, norm) | fft.irfft(x; n, axis, norm) | fft.irfftn(x; s, axes, norm) | fft.rfft(x; n, axis,
norm) | fft.rfftfreq(n; d, dtype, device) | fft.rfftn(x; s, axes, norm)
"""
ENTRIES = " ".join(STANDARD.split()).split(" | ")
#: Arguments that a program may give by name as well as by place.
EITHER = ("axis", "shape", "fill_value", "min", "max", "stop", "step", "num")
rng = np.random.default_rng(3)


def standard(name: str) -> Any:
    found: Any = smelt
    for part in name.split("."):
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("entry", ENTRIES)
def test_signatures(entry: str) -> None:
    name, _, arguments = entry.rstrip(")").partition("(")
    found = standard(name)
    if not arguments:
        return
    positional, _, keywords = arguments.partition("; ")
    parameters = inspect.signature(found).parameters
    places = [p.name for p in parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    several = any(p.kind is p.VAR_POSITIONAL for p in parameters.values())
    wanted = positional.split(", ") if positional else []
    assert several or len(places) >= len([w for w in wanted if not w.startswith("*")])
    missing = [k for k in keywords.split(", ") if k and k not in parameters]
    missing += [w for w in wanted if w in EITHER and w not in parameters]
    assert not missing, f"{name} takes no {missing}: {inspect.signature(found)}"


METHODS = """__abs__ __add__ __and__
__array_namespace__ __bool__ __complex__ __dlpack__ __dlpack_device__ __eq__ __float__
__floordiv__ __ge__ __getitem__ __gt__ __index__ __int__ __invert__ __le__ __lshift__ __lt__ __matmul__ __mod__ __mul__
__ne__ __neg__ __or__ __pos__ __pow__ __rshift__ __setitem__ __sub__ __truediv__ __xor__ to_device
__radd__ __iadd__ __rsub__ __isub__ __rmul__ __imul__ __rtruediv__ __itruediv__ __rfloordiv__ __ifloordiv__ __rpow__
__ipow__ __rmod__ __imod__ __rmatmul__ __imatmul__ __rand__ __iand__ __ror__ __ior__ __rxor__ __ixor__ __rlshift__
__ilshift__ __rrshift__ __irshift__ dtype device mT ndim shape size T"""


@pytest.mark.parametrize("name", METHODS.split())
def test_methods(name: str) -> None:
    assert hasattr(smelt.array, name)


def test_namespace() -> None:
    x = smelt.array([1.0])
    assert smelt.__array_api_version__ == "2025.12"
    assert x.__array_namespace__() is x.__array_namespace__(api_version="2023.12") is smelt
    with pytest.raises(AttributeValueError, match=r"2020\.01"):
        x.__array_namespace__(api_version="2020.01")
    info = smelt.__array_namespace_info__()
    assert info.default_device() == x.device and x.device in info.devices()
    assert info.default_dtypes(device=x.device)["integral"] is smelt.arange(2).dtype
    assert info.dtypes(kind="bool") == {"bool": smelt.bool_}
    both = info.dtypes(kind=("real floating", "complex floating"))
    assert {"float32", "float64", "complex64"} <= both.keys() and "int8" not in both
    assert both.items() <= info.dtypes(device="cpu").items()
    capabilities = info.capabilities()
    assert capabilities["boolean indexing"] and capabilities["data-dependent shapes"]


def test_devices() -> None:
    x = smelt.array([1.0, 2.0])
    same(x.to_device(x.device), x)
    assert smelt.zeros(2, device=x.device).device == x.device
    creators: list[Callable[..., Any]] = [
        lambda d: smelt.zeros(2, device=d), lambda d: smelt.ones(2, device=d), lambda d: smelt.empty(2, device=d),
        lambda d: smelt.full(2, 1, device=d), lambda d: smelt.arange(2, device=d), lambda d: smelt.eye(2, device=d),
        lambda d: smelt.linspace(0, 1, 3, device=d), lambda d: smelt.asarray([1], device=d), x.to_device,
        lambda d: smelt.zeros_like(x, device=d), lambda d: smelt.ones_like(x, device=d),
        lambda d: smelt.full_like(x, 1, device=d), lambda d: smelt.empty_like(x, device=d),
        lambda d: smelt.from_dlpack(x, device=d), lambda d: smelt.astype(x, smelt.int8, device=d),
        lambda d: smelt.fft.fftfreq(4, device=d), lambda d: smelt.fft.rfftfreq(4, device=d),
    ]  # fmt: skip
    for create in creators:
        create("cpu"), create(x.device), create(None)
        with pytest.raises(SmeltError):
            create("nowhere")


def test_limits_of_arrays() -> None:
    assert smelt.finfo(smelt.array([1.0])).max == smelt.finfo(smelt.float32).max
    assert smelt.iinfo(smelt.array([1])).max == 2**31 - 1


# Arguments


@pytest.mark.parametrize("shape", [(5,), (3, 4), (0, 3), (2, 0)], ids=str)
def test_dtype_and_correction(shape: tuple[int, ...]) -> None:
    host = rng.integers(0, 3, shape).astype(np.int16)
    x = exact(host)
    for axis in (None, 0, -1):
        for dtype in ("int64", "float64", "uint8"):
            same(smelt.sum(x, axis, dtype=standard(dtype)), host.sum(axis, dtype=dtype))
            same(smelt.prod(x, axis, dtype=standard(dtype)), host.prod(axis, dtype=dtype))
        if not host.size:
            continue
        same(smelt.mean(x, axis, dtype=smelt.float64), host.mean(axis, dtype=np.float64), rtol=1e-15)
        wide = exact(host.astype(np.float64))
        for correction in (0, 0.5, 1):
            for name in ("var", "std"):
                expected = getattr(np, name)(host.astype(np.float64), axis, ddof=correction)
                same(getattr(smelt, name)(wide, axis, correction=correction), expected, rtol=1e-13)
                same(getattr(wide, name)(axis, correction=correction), expected, rtol=1e-13)
    with pytest.raises(DTypeError, match="floats"):
        smelt.mean(x, dtype=smelt.int32)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "float16", "float32"])
@pytest.mark.parametrize("shape", [(), (1,), (9,), (3, 4), (0, 3), (2, 0)], ids=str)
def test_descending(shape: tuple[int, ...], dtype: str) -> None:
    host = rng.integers(0, 3, shape).astype(dtype)
    x = exact(host)
    for axis in range(-host.ndim, host.ndim):
        same(smelt.sort(x, axis, descending=True), np.flip(np.sort(host, axis), axis))
        order = np.asarray(smelt.argsort(x, axis, descending=True, stable=True))
        same(np.take_along_axis(host, order.astype(np.int64), axis), np.flip(np.sort(host, axis), axis))
        ordered = np.take_along_axis(host, order.astype(np.int64), axis)
        before, after = (np.moveaxis(v, axis, 0) for v in (ordered, order.astype(np.int64)))
        ties = before[1:] == before[:-1]
        assert (after[1:] > after[:-1])[ties].all()
    if not shape:
        same(smelt.sort(x, descending=True), host)
        same(smelt.argsort(x, descending=True), np.zeros((), np.uint32))


@pytest.mark.parametrize("shape", [(5,), (3, 4), (0, 3), (2, 0)], ids=str)
def test_cumulative_with_initial(shape: tuple[int, ...]) -> None:
    host = rng.integers(1, 4, shape).astype(np.float32)
    x = exact(host)
    for axis in range(-host.ndim, host.ndim):
        one = list(shape)
        one[axis] = 1
        for name, first, function in (("cumulative_sum", 0, np.cumsum), ("cumulative_prod", 1, np.cumprod)):
            expected = np.concatenate([np.full(one, first, np.float32), function(host, axis)], axis)
            same(getattr(smelt, name)(x, axis=axis, include_initial=True), expected)
            backward = np.flip(function(np.flip(host, axis), axis), axis)
            expected = np.concatenate([backward, np.full(one, first, np.float32)], axis)
            same(getattr(smelt, name)(x, axis=axis, include_initial=True, reverse=True), expected)


def test_clip_by_the_standards_names() -> None:
    host = rng.standard_normal((3, 4)).astype(np.float32)
    x = smelt.array(host)
    for low, high in itertools.product((None, -0.5, np.full(4, -0.1, np.float32)), (None, 0.5)):
        expected = host if low is None and high is None else np.clip(host, low, high)
        same(smelt.clip(x, min=low, max=high), expected)
        same(smelt.clip(x, low, high), expected)
    with pytest.raises(AttributeValueError, match="one bound"):
        smelt.clip(x, 0, min=1)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "float32"])
@pytest.mark.parametrize("shape", [(5,), (3, 4), (0, 3), (2, 0)], ids=str)
def test_diff_with_ends(shape: tuple[int, ...], dtype: str) -> None:
    host = rng.integers(0, 2, shape).astype(dtype)
    for axis, n in itertools.product(range(-host.ndim, host.ndim), (0, 1, 2)):
        wide = list(shape)
        wide[axis] = 2
        for before, after in itertools.product((None, 1, np.ones(wide, dtype)), (None, np.zeros(wide, dtype))):
            ends = {k: v for k, v in (("prepend", before), ("append", after)) if v is not None}
            expected = np.diff(host, n, axis, **{k: np.asarray(v, dtype) for k, v in ends.items()})
            same(smelt.diff(exact(host), n=n, axis=axis, **ends), expected)
    with pytest.raises(ShapeError, match="does not fit"):
        smelt.diff(smelt.ones((2, 3)), axis=0, prepend=smelt.ones((1, 4)))


def test_full_by_the_standards_name() -> None:
    same(smelt.full((2, 3), fill_value=7), np.full((2, 3), 7, np.int32))
    same(smelt.full_like(smelt.ones(2), fill_value=7), np.full(2, 7, np.float32))
    for wrong in (lambda: smelt.full(2), lambda: smelt.full(2, 1, fill_value=1), lambda: smelt.full_like([1])):
        with pytest.raises(ArgumentTypeError, match="one value"):
            wrong()


def test_copies_and_shapes() -> None:
    x = smelt.arange(6)
    for copy in (None, True, False):
        assert smelt.reshape(x, (2, 3), copy=copy).shape == x.reshape(2, 3, copy=copy).shape == (2, 3)
    same(x.astype(smelt.float32, smelt.cpu), np.arange(6, dtype=np.float32))
    same(smelt.astype(x, smelt.float32, copy=False), np.arange(6, dtype=np.float32))


def test_frequencies_in_a_dtype() -> None:
    same(smelt.fft.fftfreq(5, d=0.3, dtype=smelt.float64), np.fft.fftfreq(5, 0.3), rtol=1e-15)
    assert smelt.fft.rfftfreq(5, dtype=smelt.float64).dtype is smelt.float64
    with pytest.raises(DTypeError, match="floats"):
        smelt.fft.fftfreq(5, dtype=smelt.int32)


@pytest.mark.parametrize("shape", [(4, 2), (2, 5, 3), (3, 3), (2, 4), (3, 0)], ids=str)
def test_complete_qr(shape: tuple[int, ...]) -> None:
    host = rng.standard_normal(shape)
    q, r = (np.asarray(v) for v in smelt.linalg.qr(exact(host), mode="complete"))
    expected = np.linalg.qr(host, mode="complete")
    assert q.shape == expected[0].shape and r.shape == expected[1].shape
    np.testing.assert_allclose(q @ r, host, atol=1e-13)
    unit = np.broadcast_to(np.eye(shape[-2]), (*shape[:-2], shape[-2], shape[-2]))
    np.testing.assert_allclose(np.swapaxes(q, -1, -2) @ q, unit, atol=1e-13)
    np.testing.assert_allclose(np.tril(r, -1), 0, atol=0)
    if shape == (4, 2):
        check_gradient(lambda a: smelt.linalg.qr(a, mode="complete")[1], host, tol=1e-5)


BOOLS = np.array([True, True, False, False]), np.array([True, False, True, False])


@pytest.mark.parametrize("name, expected", [
    ("subtract", [False, True, True, False]), ("floor_divide", [True, False, False, False]),
    ("remainder", [False, True, False, False]), ("power", [True, True, False, True]),
])  # fmt: skip
def test_arithmetic_of_bools_is_mlxs(name: str, expected: list[bool]) -> None:
    """NumPy has errors and int8 for these; MLX computes them as C does."""
    x, y = map(smelt.array, BOOLS)
    for way in (getattr(smelt, name), smelt.compile(getattr(smelt, name)), smelt.vmap(getattr(smelt, name))):
        same(way(x, y), np.array(expected))
    with pytest.raises(DTypeError):
        _ = -x


# NumPy's functions call methods


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "all", "any", "mean", "std", "var", "argmax", "argmin"])
def test_numpys_reductions_call_methods(name: str) -> None:
    host = rng.random((3, 4)).astype(np.float32)
    x = smelt.array(host)
    for arguments in ({}, {"axis": 0}, {"axis": 1, "keepdims": True}):
        found = getattr(np, name)(x, **arguments)
        assert isinstance(found, smelt.array)
        expected = getattr(np, name)(host, **arguments)
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-6)
    with pytest.raises(ArgumentTypeError, match="out must be None"):
        getattr(x, name)(out=host)


def test_numpys_other_functions_call_methods() -> None:
    x = smelt.array([[1.25, 2.5], [3.0, 4.0]])
    assert isinstance(np.sum(x, dtype=np.float64), smelt.array) and np.sum(x, dtype=np.float64).dtype is smelt.float64
    for found in (np.cumsum(x), np.cumprod(x, axis=0), np.round(x, 1), np.transpose(x), np.swapaxes(x, 0, 1)):
        assert isinstance(found, smelt.array)


# Operators of Python


def test_python_rounds_and_divides() -> None:
    x = smelt.array([1.25, -2.5])
    same(round(x), np.array([1, -2], np.float32))
    same(round(x, 1), np.array([1.2, -2.5], np.float32))
    for found, expected in zip(divmod(x, 2), np.divmod(np.array([1.25, -2.5], np.float32), 2)):
        same(found, expected)
    for found, expected in zip(divmod(7, x), np.divmod(7, np.array([1.25, -2.5], np.float32))):
        same(found, expected)


def test_a_notebook_shows_text() -> None:
    html = smelt.array([[1, 2]])._repr_html_()
    assert "array([[1, 2]]" in html and "1 × 2, int32" in html


@pytest.mark.parametrize(
    "x, said",
    [
        (lambda: smelt.array([1, 2, 6]), "3, int32; least 1, largest 6, mean 3, deviation 2.16025"),
        (lambda: smelt.array([1, np.nan, np.inf]), "3, float32; least 1, largest 1, mean 1, deviation 0, 1 NaN, 1 inf"),
        (lambda: smelt.array([True, False]), "2, bool; 50% true"),
        (lambda: smelt.array([3 + 4j]), "1, complex64, absolute values; least 5, largest 5, mean 5, deviation 0"),
        (lambda: smelt.array(1.0), "scalar, float32"),
        (lambda: smelt.zeros((0, 3)), "0 × 3, float32; empty"),
        (lambda: smelt.arange(1 << 23), "8388608, int32; least about 0, largest about 8,388,606"),
        (lambda: smelt.array([1.0, 2.0], smelt.bfloat16), "2, bfloat16; least 1, largest 2, mean 1.5, deviation 0.5"),
    ],
)  # fmt: skip
def test_a_notebook_shows_statistics(x: Any, said: str) -> None:
    assert f"<small>{said}" in x()._repr_html_()


def test_a_notebook_shows_a_matrix_as_a_picture() -> None:
    host = np.array([[0, 1, -2], [np.nan, 2, 0.5]], np.float32)
    html = smelt.array(host)._repr_html_()
    file = base64.b64decode(re.search(r"base64,([^\"]*)", html)[1])
    assert file[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">II", file[16:24]) == (3, 2)
    end = 41 + struct.unpack(">I", file[33:37])[0]
    assert file[37:41] == b"IDAT" and zlib.crc32(file[37:end]) == struct.unpack(">I", file[end : end + 4])[0]
    lines = np.frombuffer(zlib.decompress(file[41:end]), np.uint8).reshape(2, 10)
    assert (lines[:, 0] == 0).all()
    pixels = lines[:, 1:].reshape(2, 3, 3).tolist()
    assert pixels[0][0] == [255, 255, 255] and pixels[0][2] == [0, 0, 255] and pixels[1][1] == [255, 0, 0]
    assert pixels[1][0] == [255, 200, 0]  # NaN
    assert "<img" in smelt.ones((200, 2))._repr_html_() and 'height="128"' in smelt.ones((200, 2))._repr_html_()
    for plain in (smelt.ones(3), smelt.ones((1, 3)), smelt.ones((2, 2, 2)), smelt.zeros((0, 3))):
        assert "<img" not in plain._repr_html_()


def test_a_traced_array_in_a_notebook() -> None:
    found = []
    smelt.compile(lambda x: found.append(x._repr_html_()) or x)(smelt.ones((2, 3)))
    assert found == ["<pre>&lt;traced array f32[2,3]&gt;</pre><small>2 × 3, float32</small>"]
