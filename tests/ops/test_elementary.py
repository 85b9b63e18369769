"""Accuracy of the elementary functions, compiled for the host, against mpmath.

Real functions are held to 4 ulp over their whole domain, complex ones to a relative error.
``benchmarks/accuracy.py`` measures with this file on many more points.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import mpmath
import numpy as np
import pytest

import smelt
from smelt.backends.cpu import jit
from smelt.backends.lowering import FusionKernel
from smelt.ir import dtypes, elementary, mlir
from smelt.ir.builder import Value
from smelt.ir.context import context
from smelt.ir.dtypes import DType
from smelt.ir.index import Coordinates
from smelt.ir.scalar import INDEX, Scalar

BOUND = 4.0
PIPELINE = (
    "builtin.module(convert-scf-to-cf,convert-complex-to-standard,canonicalize,cse,expand-strided-metadata,"
    "lower-affine,convert-math-to-llvm,convert-complex-to-llvm,finalize-memref-to-llvm,convert-arith-to-llvm,"
    "convert-index-to-llvm,convert-func-to-llvm{use-bare-ptr-memref-call-conv=1},convert-cf-to-llvm,"
    "reconcile-unrealized-casts)"
)
LENGTH = 1 << 30

UNARY = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "arcsin", "arccos",
    "arctan", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "erf", "erfc", "erfinv", "sigmoid",
    "cbrt",
)  # fmt: skip
BINARY = ("arctan2", "power", "floor_mod")
COMPLEX = tuple(n for n in elementary.__all__ if n.startswith("complex_"))


class HostKernel(FusionKernel):
    """Scalar code for the host; arrays of constants are globals of the module."""

    module: Any = None
    globals = 0

    def global_constant(self, array: np.ndarray, dtype: DType) -> Callable[[Scalar], Scalar]:
        HostKernel.globals += 1
        name = f"constants{HostKernel.globals}"
        text = ", ".join(np.format_float_scientific(v, min_digits=1) for v in array)
        shape = f"memref<{len(array)}x{dtype.mlir}>"
        attr, kind = self.attr, mlir.ir.Type.parse(shape, self.context)
        mlir.ir.Operation.create(
            "memref.global",
            attributes={
                "sym_name": attr(f'"{name}"'),
                "sym_visibility": attr('"private"'),
                "type": attr(shape),
                "initial_value": attr(f"dense<[{text}]> : tensor<{len(array)}x{dtype.mlir}>"),
                "constant": attr("unit"),
            },
            loc=self.location,
            ip=mlir.ir.InsertionPoint.at_block_begin(self.module.body),
        )
        memref = mlir.ir.Operation.create(
            "memref.get_global", results=[kind], attributes={"name": attr(f"@{name}")}, loc=self.location, ip=self.ip
        ).result
        return lambda i: self.op("memref.load", [memref, i], dtype)

    def bitcast_storage(self, x: Scalar, dtype: DType) -> Scalar:
        return self.bitcast(x, dtype)

    def load(self, v: Value, index: Coordinates) -> Scalar:
        raise NotImplementedError("scalars come as arguments")


class Compiled:
    """Functions of scalars as loops over arrays: ``compiled[name, dtype](x, y) -> array``."""

    def __init__(self, wanted: dict[tuple[str, dtypes.DType], Callable[..., Scalar]], arity: Callable[[str], int]):
        ir, ctx = mlir.ir, context()
        with mlir.lock, ctx, ir.Location.unknown():
            module = ir.Module.create()
            HostKernel.module = module
            for (name, dtype), function in wanted.items():
                self._loop(module, f"{name}_{dtype.name}", function, dtype, arity(name))
            mlir.passmanager.PassManager.parse(PIPELINE).run(module.operation)
            for operation in module.body.operations:
                if operation.operation.name == "llvm.func":
                    operation.attributes["passthrough"] = ir.Attribute.parse('[["prefer-vector-width", "512"]]')
            self.engine = mlir.execution_engine.ExecutionEngine(module, opt_level=jit.LEVEL)
        self.out = {key: key[1].real if key[0] == "complex_abs" else key[1] for key in wanted}

    @staticmethod
    def _loop(module, name, function, dtype, arity):
        ir = mlir.ir
        array = f"memref<{LENGTH}x{dtype.mlir}>"
        out = f"memref<{LENGTH}x{dtype.real.mlir}>" if name.startswith("complex_abs") else array
        types = ", ".join(["index", *[array] * arity, out])
        attrs = {
            "sym_name": ir.StringAttr.get(name),
            "function_type": ir.TypeAttr.parse(f"({types}) -> ()"),
            "arg_attrs": ir.Attribute.parse(f"[{{}}, {', '.join(['{llvm.noalias}'] * (arity + 1))}]"),
        }
        operation = ir.Operation.create("func.func", attributes=attrs, regions=1, ip=ir.InsertionPoint(module.body))
        arguments = [ir.Type.parse(t) for t in types.split(", ")]
        block = ir.Block.create_at_start(operation.regions[0], arguments, [ir.Location.unknown()] * len(arguments))
        k = HostKernel(block, ir.Location.unknown(), None)
        count, *arrays, result = block.arguments

        def body(i):
            xs = [k.op("memref.load", [a, i], dtype) for a in arrays]
            k.emit("memref.store", [function(k, *xs), result, i], [])
            return ()

        k.for_(k.const(0, INDEX), Scalar(k, count, INDEX), body)
        k.emit("func.return", [], [])

    def __getitem__(self, key: tuple[str, dtypes.DType]) -> Callable[..., np.ndarray]:
        name, dtype = key
        address = self.engine.raw_lookup(f"{name}_{dtype.name}")
        run = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)

        def call(*xs: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
            xs = tuple(np.ascontiguousarray(x, dtype.numpy) for x in xs)
            out = np.empty(xs[0].shape, self.out[key].numpy) if out is None else out
            values = (ctypes.c_uint64 * (len(xs) + 2))(xs[0].size, *(x.ctypes.data for x in xs), out.ctypes.data)
            pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(values) + 8 * i for i in range(len(values))))
            run(ctypes.addressof(pointers))
            return out

        return call


@functools.cache
def compiled() -> Compiled:
    wanted: dict = {
        (name, dtype): getattr(elementary, name)
        for name in (*UNARY, *BINARY)
        for dtype in (dtypes.float32, dtypes.float64)
    }
    wanted |= {(name, dtype): getattr(elementary, name) for name in COMPLEX for dtype in dtypes.COMPLEX}
    return Compiled(wanted, lambda name: 2 if name in (*BINARY, "complex_power") else 1)


# The points.


def specials(dtype: dtypes.DType) -> np.ndarray:
    info = np.finfo(dtype.numpy)
    m = info.nmant
    some = [
        0.0, info.smallest_subnormal, 3 * float(info.smallest_subnormal), info.tiny, info.tiny * 1.5,
        info.eps, info.eps / 2, 0.5, 1.0, 1.5, 2.0, 3.0, 10.0, 0.75, 0.785, 2.0**m, 2.0 ** (m + 1), 2.0 ** (m + 1) - 1,
        1e10, 1e30, 1e37, info.max, info.max / 2, np.inf, np.nan, np.pi / 4, np.pi / 2, np.pi, np.log(2), np.sqrt(2),
        np.log(float(info.max)), -np.log(float(info.smallest_subnormal)), -np.log(float(info.tiny)),
        float(info.maxexp), -float(info.minexp - m), 16367173.0, 5.0, 7.0, 0.1, 1e-5, 1e-10, 1e-20,
    ]  # fmt: skip
    if dtype.size == 8:
        some += [1e300, 1e100, 6381956970095103.0 * 2.0**797, 5.319372648326541e255, 45.553093477052]
    x = np.array(some, dtype.numpy)
    with np.errstate(all="ignore"):
        neighbours = [np.nextafter(x, np.array(limit, x.dtype)) for limit in (np.inf, 0)]
    x = np.concatenate([x, *neighbours])
    return np.concatenate([x, -x])


def points(dtype: dtypes.DType, count: int, seed: int = 0) -> np.ndarray:
    """Specials, random bit patterns, and numbers of moderate size."""
    rng = np.random.default_rng(seed)
    unsigned = np.uint32 if dtype.size == 4 else np.uint64
    patterns = rng.integers(0, np.iinfo(unsigned).max, count // 4, dtype=unsigned).view(dtype.numpy)
    wide = rng.normal(size=count // 4) * 10.0 ** rng.uniform(-8, 4, count // 4)
    near = rng.uniform(-1, 1, count // 4)
    limit = 110 if dtype.size == 4 else 760
    rest = rng.uniform(-limit, limit, count // 8)
    multiples = np.round(rng.uniform(-1e5, 1e5, count // 8)) * (np.pi / 2)
    with np.errstate(all="ignore"):
        return np.concatenate(
            [specials(dtype), patterns, *(a.astype(dtype.numpy) for a in (wide, near, rest, multiples, 1 + near / 64))]
        )


def pairs(name: str, dtype: dtypes.DType, count: int) -> tuple[np.ndarray, np.ndarray]:
    some = specials(dtype)
    rng = np.random.default_rng(1)
    x, y = (a.ravel() for a in np.meshgrid(some[::3], some[1::3]))
    more_x, more_y = points(dtype, count, 2), rng.permutation(points(dtype, count, 3))
    if name == "power":
        base = np.abs(points(dtype, count, 4))
        with np.errstate(all="ignore"):
            top = dtype.bits * 1.4 * (8 if dtype.size == 8 else 2)
            exponent = rng.uniform(-1, 1, base.size) * top / np.log2(base.astype(np.float64))
            exponent = exponent.astype(dtype.numpy)
            small = np.round(rng.uniform(-9, 9, more_x.size))
            more_x, more_y = np.concatenate([more_x, base, more_x]), np.concatenate([more_y, exponent, small])
    with np.errstate(all="ignore"):
        return np.concatenate([x, more_x]), np.concatenate([y, more_y]).astype(dtype.numpy)


# The truth.

_MPMATH = {
    "exp2": lambda x: mpmath.power(2, x),
    "log2": lambda x: mpmath.log(x, 2),
    "log10": lambda x: mpmath.log(x, 10),
    "arcsin": mpmath.asin, "arccos": mpmath.acos, "arctan": mpmath.atan, "arcsinh": mpmath.asinh,
    "arccosh": mpmath.acosh, "arctanh": mpmath.atanh, "arctan2": mpmath.atan2,
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
}  # fmt: skip


def sigmoid(x):
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1.0) / (1 + e)


def erfc(x):
    """SciPy's is 0 where the result is no normal number."""
    from scipy import special

    y = x.astype(np.float64)
    return np.where(y > 1, np.exp(-x * x) * special.erfcx(np.maximum(y, 1)), special.erfc(y))


def wide(name: str, *xs: np.ndarray) -> np.ndarray:
    """NumPy's or SciPy's result in a wider format: float64 for float32, long double for float64."""
    from scipy import special

    wider = np.float64 if xs[0].dtype == np.float32 else np.longdouble
    named = {"erf": special.erf, "erfc": erfc, "erfinv": special.erfinv, "sigmoid": sigmoid}
    function = named.get(name) or getattr(np, {"floor_mod": "remainder"}.get(name, name))
    if name == "floor_mod":  # exact in the format itself
        return np.remainder(*xs).astype(wider)
    if name in ("erf", "erfinv"):
        wider = np.float64
    result = function(*(x.astype(wider) for x in xs))
    return np.copysign(result, xs[0]) if name == "erfinv" else result  # SciPy's loses the sign of 0


def exact(name: str, *xs: np.ndarray) -> np.ndarray:
    """mpmath's result in long double, where the arguments and the result are ordinary; else `wide`."""
    out = wide(name, *xs).astype(np.longdouble)
    function = _MPMATH.get(name) or getattr(mpmath, name)
    with mpmath.workprec(140):
        for i, values in enumerate(zip(*(x.tolist() for x in xs))):
            if not np.isfinite(out[i]) or out[i] == 0 or not np.isfinite(values).all():
                continue
            values = [mpmath.mpf(v) for v in values]
            if name in ("expm1", "log1p", "arcsinh", "arctanh", "sinh", "tanh") and abs(values[0]) < 1e-18:
                continue  # mpmath loses these; NumPy's result is the argument
            y = function(*values)
            head = float(y)
            out[i] = np.longdouble(head) + np.longdouble(float(y - mpmath.mpf(head)))
    return out


def ulps(actual: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """The error in units of the last place of the true result; inf where a special case is wrong."""
    info = np.finfo(actual.dtype)
    kind = truth.dtype
    with np.errstate(all="ignore"):
        rounded = truth.astype(actual.dtype)
        clipped = np.clip(np.abs(truth), kind.type(info.tiny), kind.type(info.max))
        unit = np.ldexp(kind.type(1), np.frexp(clipped)[1] - 1 - info.nmant)
        error = np.abs(actual.astype(kind) - truth) / unit
        same = (actual == rounded) | (np.isnan(actual) & np.isnan(truth))
        # at the edge of overflow an infinity stands for the next power of two
        edge = np.isinf(actual) != np.isinf(rounded)
        top = np.ldexp(kind.type(1), info.maxexp)
        stand_in = np.where(np.isinf(actual), np.copysign(top, actual.astype(kind)), actual.astype(kind))
        error = np.where(edge, np.abs(stand_in - np.clip(truth, -top, top)) / unit, error)
    error = np.where(same, np.minimum(np.where(np.isnan(error), 0, error), 0.5), error)
    error = np.where(np.isnan(error), np.inf, error)
    wrong_sign = (actual == 0) & (truth == 0) & (np.signbit(actual) != np.signbit(truth))
    return np.where(wrong_sign, np.inf, error)


def measure(name: str, dtype: dtypes.DType, count: int) -> tuple[float, tuple]:
    """The largest error in ulp, and the arguments where it occurs."""
    xs = pairs(name, dtype, count) if name in BINARY else (points(dtype, count),)
    actual = compiled()[name, dtype](*xs)
    with np.errstate(all="ignore"):
        truth = wide(name, *xs)
        error = ulps(actual, truth)
        doubtful = np.flatnonzero(error > (0.6 if dtype.size == 8 else 1e9))
        if dtype.size == 8 and name != "floor_mod":
            doubtful = doubtful[np.argsort(-error[doubtful])[: max(200, count // 100, int(np.sum(error > 3)))]]
            error[doubtful] = ulps(actual[doubtful], exact(name, *(x[doubtful] for x in xs)))
    worst = int(np.argmax(error))
    return float(error[worst]), (*(x[worst] for x in xs), actual[worst], truth[worst])


def complex_points(dtype: DType, count: int) -> np.ndarray:
    rng = np.random.default_rng(5)
    parts = [rng.normal(size=count) * 10.0 ** rng.uniform(-3, 1, count) for _ in range(2)]
    z = parts[0] + 1j * parts[1]
    return np.concatenate([z, z.real, 1j * z.imag, np.exp(1j * z.imag)]).astype(dtype.numpy)


def exact_complex(name: str, values: tuple[complex, ...]) -> Any:
    """mpmath's result in complex128; it knows no signed zeros."""
    plain = name.removeprefix("complex_")
    function = _MPMATH.get(plain) or {"abs": mpmath.fabs}.get(plain) or getattr(mpmath, plain)
    with mpmath.workprec(240):
        found = function(*(mpmath.mpc(v) for v in values))
        return float(found) if plain == "abs" else complex(found)


def measure_complex(name: str, dtype: DType, count: int) -> tuple[float, tuple]:
    """The largest |error| / |result|, where the result is finite and not tiny."""
    zs = (complex_points(dtype, count),)
    if name == "complex_power":
        zs = (zs[0], np.random.default_rng(6).permutation(zs[0]))
    actual = compiled()[name, dtype](*zs)
    with np.errstate(all="ignore"):
        wider = np.complex128 if dtype is dtypes.complex64 else np.clongdouble
        truth = getattr(np, name.removeprefix("complex_"))(*(z.astype(wider) for z in zs))
        if dtype is dtypes.complex128:  # NumPy's are no better than ours
            error = np.nan_to_num(np.abs(actual - truth) / np.abs(truth), posinf=0)
            for i in np.argsort(-error)[: max(200, count // 100, int(np.sum(error > 1e-15)))]:
                if name == "complex_log1p" or all(z[i].real and z[i].imag for z in zs):
                    truth[i] = exact_complex(name, tuple(complex(z[i]) for z in zs))
        scale = np.abs(truth)
        usual = (scale < 1e37) & (scale > 1e-36) & np.isfinite(truth)
        error = np.where(usual, np.abs(actual - truth) / scale, 0)
        if name == "complex_power":  # the exponent's rounding is multiplied by its size
            error /= 1 + np.abs(zs[1] * np.log(zs[0].astype(np.complex128)))
    error = np.where(np.isnan(error), np.where(usual, np.inf, 0), error)
    worst = int(np.argmax(error))
    return float(error[worst]), (*(z[worst] for z in zs), actual[worst], truth[worst])


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=lambda d: d.name)
@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_within_four_ulp(name, dtype):
    error, where = measure(name, dtype, 20000)
    assert error <= (0.5 if name == "floor_mod" else BOUND), f"{error} ulp at {where}"


@pytest.mark.parametrize("dtype", dtypes.COMPLEX, ids=lambda d: d.name)
@pytest.mark.parametrize("name", COMPLEX)
def test_complex(name, dtype):
    error, where = measure_complex(name, dtype, 20000)
    assert error <= (2e-6 if dtype is dtypes.complex64 else 4e-15), f"relative error {error} at {where}"


def test_erf_stays_within_one():
    x = np.linspace(0, 10, 200001)
    for dtype in (dtypes.float32, dtypes.float64):
        y = compiled()["erf", dtype](x)
        assert y.max() == 1 and y.min() == 0


@pytest.mark.parametrize("dtype", dtypes.COMPLEX, ids=lambda d: d.name)
def test_complex_special_values(dtype):
    limits, rtol = np.finfo(dtype.real.numpy), 1e-6 if dtype is dtypes.complex64 else 1e-15
    large, least, small = float(limits.max) * 0.8, float(limits.smallest_subnormal), float(limits.tiny) / 32
    root = compiled()["complex_sqrt", dtype]
    z = np.array([-4, complex(-4, -0.0), 0, complex(np.inf, 1), complex(-np.inf, 1), large * (1 + 1j), least])
    z = z.astype(dtype.numpy)
    np.testing.assert_allclose(root(z), np.sqrt(z), rtol=rtol)
    size = compiled()["complex_abs", dtype]
    z = np.array([large * (1 + 0.3j), least, small * (3 + 4j), complex(np.inf, np.nan), complex(np.nan, 0)])
    z = z.astype(dtype.numpy)
    np.testing.assert_allclose(size(z), np.abs(z), rtol=rtol)


@pytest.mark.parametrize("dtype", dtypes.COMPLEX, ids=lambda d: d.name)
def test_complex_arctanh_beside_one(dtype):
    """Where the square of the imaginary part vanishes, the real part still is that of -log(y / 2) / 2."""
    y = float(np.finfo(dtype.real.numpy).tiny) * np.array([1.0, 1e4, 1e10, 1e20, 1e30])
    found = compiled()["complex_arctanh", dtype]((1 + 1j * y).astype(dtype.numpy))
    rtol = 1e-6 if dtype is dtypes.complex64 else 1e-15
    np.testing.assert_allclose(found.real, -np.log(y / 2) / 2, rtol=rtol)
    np.testing.assert_allclose(found.imag, np.pi / 4, rtol=rtol)


@pytest.mark.parametrize("dtype", [smelt.float16, smelt.bfloat16], ids=str)
def test_erf_of_every_half_precision_number(dtype):
    """Within one unit in the last place, and never above 1."""
    from scipy import special

    x = np.arange(1 << 16, dtype=np.uint16).view(dtype.numpy)
    x = x[np.isfinite(x.astype(np.float32))]
    found = np.array(smelt.compile(smelt.erf)(smelt.array(x))).astype(np.float64)
    want = special.erf(x.astype(np.float64))
    tiny = float(ml_dtypes.finfo(dtype.numpy).smallest_normal)
    unit = np.maximum(np.abs(want), tiny) * float(ml_dtypes.finfo(dtype.numpy).eps)
    assert np.max(np.abs(found - want) / unit) <= 1
    assert np.max(np.abs(found)) == 1


@pytest.mark.parametrize("device", ["cpu", "metal:sim"])
@pytest.mark.parametrize("dtype", [smelt.float16, smelt.bfloat16], ids=str)
def test_tanh_and_sigmoid_of_every_half_precision_number(dtype, device):
    """Within six tenths of a unit in the last place, never above 1; NaN, infinities and signed zeros."""
    x = np.arange(1 << 16, dtype=np.uint16).view(dtype.numpy)
    with smelt.stream(device):
        found = [np.array(y) for y in smelt.compile(lambda x: (smelt.tanh(x), smelt.sigmoid(x)))(smelt.array(x))]
    limits, real = ml_dtypes.finfo(dtype.numpy), ~np.isnan(x.astype(np.float32))
    with np.errstate(all="ignore"):
        wide = x.astype(np.float32).astype(np.float64)
        wanted = [np.tanh(wide), 1 / (1 + np.exp(-wide))]
    for y, want in zip(found, wanted):
        y = y.astype(np.float32)
        unit = np.maximum(np.abs(want), float(limits.smallest_normal)) * float(limits.eps)
        assert np.max(np.abs(y - want)[real] / unit[real]) <= 0.6
        assert np.isnan(y[~real]).all() and np.max(np.abs(y[real])) == 1
        np.testing.assert_array_equal(np.signbit(y[real]), np.signbit(want[real]))


@pytest.mark.parametrize("device", ["cpu", "metal:sim"])
@pytest.mark.parametrize("dtype", [smelt.float16, smelt.bfloat16], ids=str)
def test_what_rounds_to_one_is_one_inside_a_kernel(dtype, device):
    """Large numbers times what is left of 1 are nothing, as they are of rounded numbers. The slope of GELU, which takes
    nothing from 1, keeps what is left."""
    x = smelt.array(np.array([5.1, 8, 30, 1000, 6e4]).astype(dtype.numpy))
    x = smelt.concatenate([x, -x])

    def left(x):
        return [abs(x) * (1 - abs(f(x))) for f in (smelt.tanh, smelt.erf)]

    with smelt.stream(device):
        for found in smelt.compile(left)(x):
            assert not smelt.any(found).item(), found
        slopes = smelt.compile(smelt.grad(lambda x: smelt.nn.gelu_approx(x).astype(smelt.float32).sum()))(x)
    wide = np.array(x).astype(np.float64)
    y, slope = np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3), np.sqrt(2 / np.pi) * (1 + 3 * 0.044715 * wide**2)
    with np.errstate(over="ignore", invalid="ignore"):
        left_of = 1 / (1 + np.exp(-2 * y))
        want = left_of + np.nan_to_num(2 * wide * slope * left_of * (1 - left_of))
    np.testing.assert_allclose(np.array(slopes).astype(np.float64), want, 0.01, 6e-8)


@pytest.mark.parametrize("dtype", [smelt.float16, smelt.bfloat16], ids=str)
def test_exp_of_every_half_precision_number(dtype):
    """Within one unit in the last place, subnormal results included; ∞, 0 and NaN where they belong; exact at 0."""
    x = np.arange(1 << 16, dtype=np.uint16).view(dtype.numpy)
    found = np.array(smelt.compile(smelt.exp)(smelt.array(x)))
    with np.errstate(all="ignore"):
        wide = x.astype(np.float32).astype(np.float64)
        want = np.exp(wide)
        rounded = want.astype(np.float32).astype(dtype.numpy).astype(np.float64)
    limits = ml_dtypes.finfo(dtype.numpy)
    unit = np.maximum(want, float(limits.smallest_normal)) * float(limits.eps)
    finite = np.isfinite(rounded)
    assert np.max(np.abs(found[finite].astype(np.float64) - want[finite]) / unit[finite]) <= 1
    np.testing.assert_array_equal(found[~finite].astype(np.float64), rounded[~finite])
    assert (found[np.abs(wide) < 1e-4].astype(np.float64) == 1).all()


#: What NaNs may have in their last bits: R's missing number has 1954.
PAYLOADS = [1, 2, 0x80, 0xFF, 0x1FF, 1954]


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=lambda d: d.name)
def test_exp_nonpositive(dtype):
    """As `exp` where the result is a normal number, next to nothing below; 1 of 0 and above, NaN of NaN."""
    limits = np.finfo(dtype.numpy)
    x = np.linspace(np.log(float(limits.tiny)) + 2, 0, 20001).astype(dtype.numpy)
    special = np.array([-np.inf, limits.min, -1e4, 0.0, -0.0, 1.0, limits.max, np.inf, np.nan], dtype.numpy)
    run = Compiled({("exp_nonpositive", dtype): elementary.exp_nonpositive}, lambda name: 1)["exp_nonpositive", dtype]
    want = np.exp(x.astype(np.longdouble))
    off = 3e-9 * np.abs(x) if dtype is dtypes.float32 else 0.0
    assert (np.abs(run(x) - want) / want <= limits.eps + off).all()
    found = run(special)
    assert (found[:3] > 0).all() and (found[:3] < 4 * limits.tiny).all()
    np.testing.assert_array_equal(found[3:], [1, 1, 1, 1, 1, np.nan])
    infinities = np.array([np.inf, -np.inf], dtype.numpy).view(f"u{dtype.size}")
    assert np.isnan(run(np.ravel(infinities[:, None] + np.array(PAYLOADS, infinities.dtype)).view(dtype.numpy))).all()
