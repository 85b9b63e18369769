"""What is done to a text before NVRTC compiles it. Needs no GPU."""

from __future__ import annotations

import pytest

from smelt.backends.cuda.compiler import compile_cubin
from smelt.backends.cuda.source import _copied_meanwhile, _loops, cuda_source

from .needs import NVRTC_IS_HERE

COPY = "*(threadgroup float4*)(tile + at) = *(device const float4*)(source + at);"


def kernel(*lines: str) -> str:
    return "\n".join(["kernel void f(...)", "{", "    __shared__ float tile[64];", *(f"    {x}" for x in lines), "}"])


LOOP = "for (uint i = 0u; i < 4u; i += 1u) {"


@pytest.mark.parametrize("lines, count", [
    ((), 0), (("if (a) {", "}"), 0), ((LOOP, "}"), 1), (("while (a) {", "}"), 1), (("do {", "} while (a);"), 1),
    ((LOOP, f"  {LOOP}", "  }", "}"), 1), ((LOOP, "}", LOOP, "  if (a) {", "  }", "}"), 2),
    (("if (a) {", f"  {LOOP}", "  }", "} else {", "  b = 1;", "}"), 1), (("{", "}", LOOP, "}", "{", "}"), 1),
])  # fmt: skip
def test_the_outermost_loops_of_a_text(lines: tuple[str, ...], count: int) -> None:
    text = kernel(*lines)
    found = _loops(text)
    assert len(found) == count
    for loop in found:
        inside = text[loop.start : loop.stop]
        assert inside.startswith(("for", "while", "do")) and inside.count("{") == inside.count("}") > 0


@pytest.mark.parametrize("around, waits", [
    ((), False), (("if (a) {", "}"), False), ((LOOP, "}"), True), (("if (a) {", LOOP, "}", "}"), True),
    ((LOOP, "if (a) {", "}", "}"), True),
])  # fmt: skip
@pytest.mark.parametrize("indent", ["", "    "])
def test_barriers_wait_for_copies_that_a_loop_brings(around: tuple[str, ...], waits: bool, indent: str) -> None:
    """However the lines are indented."""
    half = len(around) // 2
    opening = [x for x in around if x.endswith("{")]
    lines = [*opening, COPY, "threadgroup_barrier(mem_flags::mem_threadgroup);", *around[len(opening) :]]
    text = kernel(*(indent + x for x in lines))
    found = _copied_meanwhile(text)
    assert half == len(opening) and ("copy_meanwhile" in found) == waits
    assert ("await_copies(), threadgroup_barrier(" in found) == waits
    assert waits or found == text


@pytest.mark.parametrize("statement, has_some", [
    ("out[i] = v[0] + v.x;", False), ("out[i] = v.w;", False), ("out[i] = v.xy[1];", True), ("v.zw = v.xx;", True),
    ("out[i] = v\n        .bgra[0];", True), ("out[i] = float4(v).yzx[1];", True),
    ("out[i] = (&v)->xy[0];", True),
])  # fmt: skip
def test_headers_have_swizzles_where_a_text_has_some(statement: str, has_some: bool) -> None:
    lines = "    float4 v = float4(out[i]);", f"    {statement}", "}"
    text = "\n".join([
        "#include <metal_stdlib>", "using namespace metal;",
        "kernel void f(device float* out [[buffer(0)]], uint i [[thread_position_in_grid]]) {", *lines,
    ])  # fmt: skip
    source, _ = cuda_source(text)
    assert ("#define SMELT_WITHOUT_SWIZZLES" not in source) == has_some
    if NVRTC_IS_HERE:
        compile_cubin(source)
