"""Components of components of vectors, which the host's headers have not: what texts with them compute."""

from __future__ import annotations

import numpy as np
import pytest

from smelt.backends.cuda.compiler import compile_cubin
from smelt.backends.cuda.source import cuda_source
from smelt.backends.metal.simulator import Library
from smelt.backends.metal.simulator.cplusplus import with_plain_components

from ..cuda.needs import needs_nvrtc

TEXT = """#include <metal_stdlib>
using namespace metal;
struct Pair { float2 ab; float4 whole; };
float twice(float3 v) { return 2.0f * v.x; }
float3 turned(float3 v) { return v.yzx; }
kernel void f(device float4* out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    float4 v = out[i];
    out[0] = float4(v.yzx.y, v.wzyx.xy.y, (v.zw).x, v.rgba.bgr.x);
    out[1] = v.yzxw.wzyx;
    float4 w = v;
    w.yz.x = 10.0f;
    w.zw
        .yx = v.xy;
    w.xyz.x += 1.0f;
    out[2] = w;
    auto turn = v.zyx;
    const auto both = v.xy;
    out[3] = float4(turn.x, turn.yz, both.y);
    Pair pair = {v.zw, v};
    out[4] = float4(pair.ab.x, pair.whole.wz.x, twice(v.yzx), turned(v.xyz).x);
    device float4* at = out + i;
    out[5] = float4(at->wz.y, (&v)->wzy.yz, max(v.yzx.y, 2.5f));
}
"""


def test_what_they_are() -> None:
    out = np.zeros((6, 4), np.float32)
    out[0] = 1, 2, 3, 4
    library = Library(TEXT)
    library.launch("f", {0: (out.ctypes.data, out.nbytes)}, (1, 1, 1), (1, 1, 1))
    expected = [3, 3, 3, 3], [4, 1, 3, 2], [2, 10, 2, 1], [3, 2, 1, 2], [3, 4, 4, 2], [3, 3, 2, 3]
    np.testing.assert_array_equal(out, expected)


@needs_nvrtc
def test_cuda_compiles_them() -> None:
    compile_cubin(cuda_source(TEXT)[0])


@pytest.mark.parametrize(("text", "plain"), [
    ("a.yzx.y", "a.z"), ("a.yzx.xz.y", "a.x"), ("a.bgra.xy", "a.bg"), ("p->xy.yx", "p->yx"), ("a.xy\n.yx", "a.yx\n"),
    ("(a.yz).x", "a.y"), ("return (a.yz).x", "return a.y"), ("f(a.yz).x", "f(a.yz).x"), ("(a.b[i].yz).xx", "a.b[i].yy"),
    ("a.xy.z", "a.xy.z"), ("a.xyz.length", "a.xyz.length"), ("float2 xy; s.xy.x", "float2 xy; s.xy.x"),
    ("auto c = a.xy;", "auto c = smelt::whole(a.xy);"), ("auto c = f(a, b).xy;", "auto c = smelt::whole(f(a, b).xy);"),
    ("auto c = a.xy, d = b.xy;", "auto c = a.xy, d = b.xy;"), ("auto c = a.x;", "auto c = a.x;"),
])  # fmt: skip
def test_texts(text: str, plain: str) -> None:
    assert with_plain_components(text) == plain
