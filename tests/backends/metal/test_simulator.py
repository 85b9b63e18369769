"""The simulator: values of kernels written by hand against NumPy."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from smelt.backends.metal.simulator import Library, Options, SimulatorError

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
ORDERS = [Options(), Options("reverse"), Options("shuffled", 7), Options("shuffled", 8, poison=True, guard=True)]


def launch(
    text: str,
    entry: str,
    arrays: list[np.ndarray],
    threadgroups: tuple[int, ...] | int,
    threads: tuple[int, ...] | int,
    options: Options | None = None,
    **more: Any,
) -> None:
    def size(n: tuple[int, ...] | int) -> tuple[int, int, int]:
        n = (n,) if isinstance(n, int) else n
        return (*n, *(1,) * (3 - len(n)))  # type: ignore[return-value]

    buffers: Mapping[int, tuple[int, int]] = {i: (a.ctypes.data, a.nbytes) for i, a in enumerate(arrays)}
    Library(HEAD + text, options).launch(entry, buffers, size(threadgroups), size(threads), **more)


def fails(*arguments: Any, **more: Any) -> str:
    with pytest.raises(SimulatorError) as caught:
        launch(*arguments, **more)
    return str(caught.value)


rng = np.random.default_rng(0)


# ---- Values --------------------------------------------------------------------------------------------

ELEMENTWISE = """
struct Parameters { uint n; float scale; };
kernel void gelu(device const float* a [[buffer(0)]], device float* out [[buffer(1)]],
                 constant Parameters& p [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
  if (i >= p.n) return;
  float x = a[i];
  out[i] = x * 0.5f * (1.0f + metal::tanh(0.7978845608f * (x + 0.044715f * x * x * x))) * p.scale;
}
kernel void vectors(device const float* a [[buffer(0)]], device float* out [[buffer(1)]],
                    uint i [[thread_position_in_grid]]) {
  float4 v = *(device const float4*)(a + i * 4u);
  v.xw += float2(1.0f, 2.0f);
  v.rgb = v.bgr * 2.0f;
  float4 u = select(v, -v, v > 1.0f) + max(v, 0.5f) + float4(v.xy, v[2], 1.0f);
  *(device float4*)(out + i * 4u) = fma(u, v.wzyx, float4(half4(v))) ;
}
"""


@pytest.mark.parametrize("options", ORDERS)
def test_elementwise(options: Options) -> None:
    a = rng.standard_normal(1000, dtype=np.float32)
    out = np.zeros(1000, np.float32)
    parameters = np.array([(1000, 1.5)], [("n", "u4"), ("scale", "f4")])
    launch(ELEMENTWISE, "gelu", [a, out, parameters], 4, 256, options)
    x = a.astype(np.float64)
    want = x * 0.5 * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3))) * 1.5
    np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-6)

    launch(ELEMENTWISE, "vectors", [a, out], 1, 250, options)
    v = a.reshape(-1, 4).copy()
    v[:, [0, 3]] += np.float32([1, 2])
    v[:, :3] = v[:, 2::-1] * np.float32(2)
    one = np.ones_like(v[:, :1])
    u = np.where(v > 1, -v, v) + np.maximum(v, np.float32(0.5)) + np.concatenate([v[:, :3], one], 1)
    want = u * v[:, ::-1] + v.astype(np.float16).astype(np.float32)
    np.testing.assert_allclose(out.reshape(-1, 4), want, rtol=1e-5, atol=1e-5)


SOFTMAX = """
kernel void softmax(device const float* in [[buffer(0)]], device float* out [[buffer(1)]],
                    constant uint& n [[buffer(2)]], uint row [[threadgroup_position_in_grid]],
                    uint lid [[thread_position_in_threadgroup]], uint size [[threads_per_threadgroup]],
                    uint lane [[thread_index_in_simdgroup]], uint simd [[simdgroup_index_in_threadgroup]],
                    uint simds [[simdgroups_per_threadgroup]]) {
  threadgroup float part[32];
  device const float* x = in + row * n;
  float m = -INFINITY;
  for (uint i = lid; i < n; i += size) m = metal::max(m, x[i]);
  m = simd_max(m);
  if (lane == 0) part[simd] = m;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  m = simd_max(lane < simds ? part[lane] : -INFINITY);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float s = 0.0f;
  for (uint i = lid; i < n; i += size) s += metal::exp(x[i] - m);
  s = simd_sum(s);
  if (lane == 0) part[simd] = s;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  s = simd_sum(lane < simds ? part[lane] : 0.0f);
  for (uint i = lid; i < n; i += size) out[row * n + i] = metal::exp(x[i] - m) / s;
}
"""


@pytest.mark.parametrize("options", ORDERS)
def test_softmax(options: Options) -> None:
    x = rng.standard_normal((7, 301), dtype=np.float32) * 5
    out = np.zeros_like(x)
    launch(SOFTMAX, "softmax", [x, out, np.uint32([301])], 7, 128, options)
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(out, e / e.sum(1, keepdims=True), rtol=1e-5, atol=1e-7)


SCAN = """
kernel void scan(device const int* in [[buffer(0)]], device int* out [[buffer(1)]],
                 uint lid [[thread_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]],
                 uint simd [[simdgroup_index_in_threadgroup]]) {
  threadgroup int totals[32];
  int x = in[lid];
  int inclusive = simd_prefix_inclusive_sum(x);
  if (lane == 31) totals[simd] = inclusive;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  int before = 0;
  for (uint i = 0; i < simd; i++) before += totals[i];
  out[lid] = before + simd_prefix_exclusive_sum(x) + x;
}
kernel void bitonic(device uint* data [[buffer(0)]], uint lid [[thread_index_in_threadgroup]]) {
  threadgroup uint keys[256];
  keys[lid] = data[lid];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint size = 2; size <= 256; size <<= 1)
    for (uint step = size >> 1; step; step >>= 1) {
      uint other = lid ^ step;
      uint mine = keys[lid], theirs = keys[other];
      bool up = (lid & size) == 0, low = lid < other;
      uint kept = (up == low) ? metal::min(mine, theirs) : metal::max(mine, theirs);
      threadgroup_barrier(mem_flags::mem_threadgroup);
      keys[lid] = kept;
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
  data[lid] = keys[lid];
}
kernel void histogram(device const uchar* in [[buffer(0)]], device atomic_uint* counts [[buffer(1)]],
                      device atomic_float* sum [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
  atomic_fetch_add_explicit(&counts[in[i] & 15u], 1u, memory_order_relaxed);
  atomic_fetch_add_explicit(sum, float(in[i]), memory_order_relaxed);
  atomic_fetch_max_explicit(&counts[16], uint(in[i]), memory_order_relaxed);
}
"""


@pytest.mark.parametrize("options", ORDERS)
def test_scan_sort_histogram(options: Options) -> None:
    x = rng.integers(-1000, 1000, 256, dtype=np.int32)
    out = np.zeros_like(x)
    launch(SCAN, "scan", [x, out], 1, 256, options)
    np.testing.assert_array_equal(out, np.cumsum(x))

    keys = rng.integers(0, 1 << 32, 256, dtype=np.uint32)
    want = np.sort(keys)
    launch(SCAN, "bitonic", [keys], 1, 256, options)
    np.testing.assert_array_equal(keys, want)

    values = rng.integers(0, 256, 1024, dtype=np.uint8)
    counts, total = np.zeros(17, np.uint32), np.zeros(1, np.float32)
    launch(SCAN, "histogram", [values, counts, total], 4, 256, options)
    np.testing.assert_array_equal(counts[:16], np.bincount(values & 15, minlength=16))
    assert counts[16] == values.max() and total[0] == values.sum()


MATMUL = """
template <typename T, int TILE>
[[kernel]] void product(device const T* a [[buffer(0)]], device const T* b [[buffer(1)]], device T* c [[buffer(2)]],
                        constant uint3& size [[buffer(3)]], uint2 tile [[threadgroup_position_in_grid]],
                        uint lid [[thread_index_in_threadgroup]], uint simd [[simdgroup_index_in_threadgroup]]) {
  threadgroup T as[TILE * 8];
  threadgroup T bs[8 * TILE];
  uint n = size.y, depth = size.z, top = (simd / 2) * 8, left = (simd % 2) * 8;
  simdgroup_matrix<float, 8, 8> sum = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  for (uint k = 0; k < depth; k += 8) {
    for (uint i = lid; i < TILE * 8; i += 128) {
      as[i] = a[(tile.y * TILE + i / 8) * depth + k + i % 8];
      bs[i] = b[(k + i / TILE) * n + tile.x * TILE + i % TILE];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    simdgroup_matrix<T, 8, 8> x, y;
    simdgroup_load(x, as + top * 8, 8);
    simdgroup_load(y, bs + left, TILE);
    simdgroup_multiply_accumulate(sum, x, y, sum);
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  threadgroup float out[TILE * TILE];
  simdgroup_store(sum, out + top * TILE + left, TILE);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = lid; i < TILE * TILE; i += 128)
    c[(tile.y * TILE + i / TILE) * n + tile.x * TILE + i % TILE] = T(out[i]);
}
template [[host_name("product_float")]] [[kernel]] void product<float, 16>(
    device const float*, device const float*, device float*, constant uint3&, uint2, uint, uint);
template [[host_name("product_half")]] [[kernel]] decltype(product<half, 16>) product<half, 16>;
template [[host_name("product_bfloat")]] [[kernel]] decltype(product<bfloat, 16>) product<bfloat, 16>;
"""


@pytest.mark.parametrize("options", ORDERS)
@pytest.mark.parametrize("name, dtype", [("float", np.float32), ("half", np.float16), ("bfloat", ml_dtypes.bfloat16)])
def test_simdgroup_matrix(options: Options, name: str, dtype: Any) -> None:
    a = rng.standard_normal((32, 40)).astype(dtype)
    b = rng.standard_normal((40, 48)).astype(dtype)
    c = np.zeros((32, 48), dtype)
    launch(MATMUL, f"product_{name}", [a, b, c, np.uint32([32, 48, 40, 0])], (3, 2), 128, options)
    want = a.astype(np.float64) @ b.astype(np.float64)
    tolerance = {"float": 1e-5, "half": 2e-3, "bfloat": 1e-2}[name]
    np.testing.assert_allclose(c.astype(np.float64), want, rtol=tolerance, atol=tolerance * 4)


CONVERSIONS = """
kernel void halves(device const float* x [[buffer(0)]], device half* h [[buffer(1)]], device bfloat* b [[buffer(2)]],
                   device float* back [[buffer(3)]],
    uint i [[thread_position_in_grid]]) {
  h[i] = half(x[i]);
  b[i] = bfloat(x[i]);
  back[i] = float(half(as_type<half>(ushort(i)))) ;
}
kernel void arithmetic(device const half* x [[buffer(0)]], device half* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  half a = x[i], b = x[i + 1];
  y[i] = a * b + a / (b + 1.0h);
}
"""


def test_half_and_bfloat() -> None:
    n = 1 << 16
    x = np.exp2(rng.uniform(-30, 20, n)).astype(np.float32) * rng.choice([-1, 1], n).astype(np.float32)
    x[:8] = [0.0, -0.0, np.inf, -np.inf, np.nan, 65519.9, 65520.0, 2.0**-25]
    h, b, back = np.zeros(n, np.float16), np.zeros(n, ml_dtypes.bfloat16), np.zeros(n, np.float32)
    launch(CONVERSIONS, "halves", [x, h, b, back], n // 256, 256)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(h, x.astype(np.float16))
    np.testing.assert_array_equal(b.astype(np.float32), x.astype(ml_dtypes.bfloat16).astype(np.float32))
    np.testing.assert_array_equal(back, np.arange(n, dtype=np.uint16).view(np.float16).astype(np.float32))

    v = rng.uniform(1, 2, 257).astype(np.float16)
    y = np.zeros(256, np.float16)
    launch(CONVERSIONS, "arithmetic", [v, y], 1, 256)
    np.testing.assert_array_equal(y, v[:-1] * v[1:] + v[:-1] / (v[1:] + np.float16(1)))


FUNCTIONS = """
kernel void integers(device uint* o [[buffer(0)]]) {
  o[0] = popcount(0xf0f0u); o[1] = clz(1u); o[2] = ctz(8u); o[3] = reverse_bits(1u); o[4] = rotate(0x80000001u, 1u);
  o[5] = mulhi(0xffffffffu, 0xffffffffu); o[6] = uint(mulhi(-2, 3)); o[7] = addsat(0xffffffffu, 2u);
  o[8] = uint(subsat(-2147483647 - 1, 1)); o[9] = extract_bits(0xabcdu, 4u, 8u); o[10] = insert_bits(0u, 0xffu, 8u, 4u);
  o[11] = uint(abs(-5)); o[12] = absdiff(3u, 7u); o[13] = hadd(0xffffffffu, 1u); o[14] = uint(clamp(-7, -3, 5));
  o[15] = uint(mulhi(0xffffffffffffffffUL, 2UL)); o[16] = uint(extract_bits(-16, 4u, 8u)); o[17] = clz(ushort(1));
  o[18] = as_type<uint>(1.0f); o[19] = as_type<uint>(half2(1.0h, 2.0h)); o[20] = madhi(0x10000u, 0x10000u, 4u);
  uint4 v = uint4(1, 2, 3, 4); v <<= 2; v = v % 5u; o[21] = v.x + v.y * 10 + v.z * 100 + v.w * 1000;
  o[22] = any(int3(0, 1, 0) != 0) + 2 * all(v == v) + 4 * all(bool2(true, false));
  packed_float3 p = float3(1, 2, 3); o[23] = uint(sizeof(packed_float3) + dot(float3(p), float3(p.x)));
  float2x2 m = float2x2(float2(1, 2), float2(3, 4)); float2 q = m * float2(1, 1); o[24] = uint(q.x * 10 + q.y);
  o[25] = numeric_limits<short>::max(); o[26] = is_same_v<float, float> + 2 * is_integral_v<half>;
  array<uint, 3> a = {{7, 8, 9}}; o[27] = a[1] + a.size(); o[28] = uint(char(200) < 0);
  float c; float s = sincos(0.0f, c); o[29] = uint(c - s); int e; o[30] = uint(frexp(8.0f, e) * 2.0f) + uint(e);
  o[31] = uint(length(float2(3, 4))) + uint(fast::exp(0.0f)) + uint(precise::sqrt(4.0f));
}
"""


def test_functions() -> None:
    o = np.zeros(32, np.uint32)
    launch(FUNCTIONS, "integers", [o], 1, 1)
    want = [8, 31, 3, 1 << 31, 3, 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFF, 1 << 31, 0xBC, 0xF00, 5, 4, 1 << 31, 0xFFFFFFFD,
            1, 0xFFFFFFFF, 15, 0x3F800000, 0x40003C00, 5, 4 + 30 + 200 + 1000, 3, 12 + 6, 46, 32767, 1, 11, 1, 1, 5,
            8]  # fmt: skip
    assert o.tolist() == want


def test_float_functions() -> None:
    names = re.findall(
        r"\w+",
        """acos acosh asin asinh atan atanh ceil cos cosh exp exp2 fabs floor log log2 log10 rint round sin sinh sqrt
        tan tanh trunc abs rsqrt exp10 sign saturate fract sinpi cospi tanpi degrees radians""",
    )
    lines = "".join(
        f"o[{k} * n + i] = metal::{f}(x[i]); h[{k} * n + i] = half(metal::{f}(half2(half(x[i])))[1]);\n"
        for k, f in enumerate(names)
    )
    text = f"""kernel void all(device const float* x [[buffer(0)]], device float* o [[buffer(1)]],
        device half* h [[buffer(2)]], constant uint& n [[buffer(3)]],
    uint i [[thread_position_in_grid]]) {{ {lines} }}"""
    x = np.float32(rng.uniform(-3, 3, 64)).astype(np.float16).astype(np.float32)
    o, h = np.zeros((len(names), 64), np.float32), np.zeros((len(names), 64), np.float16)
    launch(text, "all", [x, o, h, np.uint32([64])], 1, 64)
    d = x.astype(np.float64)
    other = {
        "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan,
        "atanh": np.arctanh, "rsqrt": lambda v: 1 / np.sqrt(v), "exp10": lambda v: 10**v,
        "saturate": lambda v: np.clip(v, 0, 1), "fract": lambda v: v - np.floor(v),
        "sinpi": lambda v: np.sin(np.pi * v),
        "cospi": lambda v: np.cos(np.pi * v), "tanpi": lambda v: np.tan(np.pi * v),
        "round": lambda v: np.copysign(np.floor(np.abs(v) + 0.5), v),
    }  # fmt: skip
    with np.errstate(all="ignore"):
        for k, name in enumerate(names):
            want = (other.get(name) or getattr(np, name))(d)
            np.testing.assert_allclose(o[k], want, rtol=2e-5, atol=1e-6, err_msg=name)
            np.testing.assert_allclose(h[k].astype(float), want, rtol=2e-3, atol=2e-3, err_msg=name)


SIMD = """
kernel void lanes(device uint* o [[buffer(0)]], uint lane [[thread_index_in_simdgroup]]) {
  uint x = lane * 3u + 1u;
  o[lane] = simd_shuffle(x, 5); o[32 + lane] = simd_shuffle_xor(x, 7); o[64 + lane] = simd_shuffle_up(x, 3);
  o[96 + lane] = simd_shuffle_down(x, 3); o[128 + lane] = simd_shuffle_rotate_up(x, 3);
  o[160 + lane] = simd_shuffle_rotate_down(x, 3); o[192 + lane] = simd_broadcast(x, 9);
  o[224 + lane] = uint(ulong(simd_ballot(lane % 3 == 0)));
  o[256 + lane] = simd_any(lane == 40) + 2 * simd_all(lane < 32);
  o[288 + lane] = simd_shuffle_and_fill_up(x, x + 100u, 2); o[320 + lane] = quad_sum(x) + quad_max(x);
  o[352 + lane] = simd_product(lane == 3 ? 2u : 1u) + simd_or(x) + simd_xor(x) + simd_and(x | 1u);
  o[384 + lane] = quad_shuffle_xor(x, 1) + simd_is_first();
  if (lane % 2) o[416 + lane] = simd_sum(x); else o[416 + lane] = simd_max(x);
  uint r = 0;
  for (uint i = 0; i <= lane % 4; i++) r += simd_sum(1u);
  o[448 + lane] = r + 1000u * simd_sum(1u);
  o[480 + lane] = uint(simd_sum(float4(1, 2, 3, lane)).w);
}
"""


@pytest.mark.parametrize("options", ORDERS)
def test_simd_operations(options: Options) -> None:
    o = np.zeros((16, 32), np.uint32)
    launch(SIMD, "lanes", [o], 1, 32, options)
    lane = np.arange(32)
    x = lane * 3 + 1
    fill = np.where(lane < 2, x[lane - 2] + 100, x[lane - 2])
    quads = x.reshape(8, 4)
    xor = int(np.bitwise_xor.reduce(x))
    both = int(np.bitwise_and.reduce(x | 1))
    rows = [
        np.full(32, x[5]),
        x[lane ^ 7],
        np.where(lane >= 3, x[lane - 3], x),
        np.where(lane < 29, x[(lane + 3) % 32], x),
        x[(lane - 3) % 32],
        x[(lane + 3) % 32],
        np.full(32, x[9]),
        np.full(32, sum(1 << i for i in range(0, 32, 3))),
        np.full(32, 2),
        fill,
        np.repeat(quads.sum(1) + quads.max(1), 4),
        np.full(32, 2 + int(np.bitwise_or.reduce(x)) + xor + both),
        x[lane ^ 1] + (lane == 0),
        np.where(lane % 2, x[1::2].sum(), x[::2].max()),
        np.cumsum([32, 24, 16, 8])[lane % 4] + 32000,
        np.full(32, lane.sum()),
    ]
    for k, row in enumerate(rows):
        np.testing.assert_array_equal(o[k], row, err_msg=str(k))


def test_ragged_grid_and_macros() -> None:
    text = """
#define INSTANCE(name, op) \\
  kernel void name(device float* x [[buffer(0)]], uint2 i [[thread_position_in_grid]], \\
            uint2 n [[threads_per_grid]]) { \\
    x[i.y * n.x + i.x] = x[i.y * n.x + i.x] op 2.0f; }
INSTANCE(doubled, *)
INSTANCE(halved, /)
"""
    x = np.ones((5, 37), np.float32)
    launch(text, "doubled", [x], (0, 0), (16, 4), Options(guard=True), grid=(37, 5, 1))
    assert (x == 2).all()
    launch(text, "halved", [x], (0, 0), (16, 4), grid=(37, 5, 1))
    assert (x == 1).all()


def test_threadgroup_argument() -> None:
    text = """kernel void reverse(device uint* x [[buffer(0)]], threadgroup uint* shared [[threadgroup(0)]],
        uint i [[thread_position_in_threadgroup]], uint n [[threads_per_threadgroup]]) {
      shared[i] = x[i]; threadgroup_barrier(mem_flags::mem_threadgroup); x[i] = shared[n - 1 - i]; }"""
    x = np.arange(100, dtype=np.uint32)
    launch(text, "reverse", [x], 1, 100, threadgroup_lengths={0: 400})
    assert x.tolist() == list(range(99, -1, -1))
    assert "threadgroup(0)" in fails(text, "reverse", [x], 1, 100)


def test_host_threads_at_once() -> None:
    errors: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            x = np.random.default_rng(seed).standard_normal((20, 100), dtype=np.float32)
            for _ in range(5):
                out = np.zeros_like(x)
                launch(SOFTMAX, "softmax", [x, out, np.uint32([100])], 20, 64)
                e = np.exp(x - x.max(1, keepdims=True))
                np.testing.assert_allclose(out, e / e.sum(1, keepdims=True), rtol=1e-5)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
