"""The strict check: what it must accept and what it must find, by line and message."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from smelt.backends.metal.check import Diagnostic, check, check_or_raise
from smelt.backends.metal.check import front_end as module
from smelt.backends.metal.check.text import adapt
from smelt.ir.errors import AttributeValueError, MetalCheckError, SmeltError
from smelt.tools.cli import main

pytest.importorskip("clang.cindex")

KERNELS = Path(__file__).parent / "kernels"
HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
POSITION = "uint i [[thread_position_in_grid]]"
OUT = "device float* out [[buffer(0)]]"


def errors(text: str, strict: bool = False) -> list[Diagnostic]:
    return [d for d in check(text, "k.metal", strict) if d.severity == "error"]


@pytest.mark.parametrize("path", sorted(KERNELS.glob("*.metal")), ids=lambda path: path.stem)
def test_real_kernels_have_no_errors(path: Path) -> None:
    assert [str(d) for d in check(path.read_text(), path.name) if d.severity == "error"] == []


#: Bodies of `kernel void k(device float* out [[buffer(0)]], uint i [[...]])`.
GOOD_BODIES = [
    "out[i] = 1;",
    "threadgroup float s[8192]; s[i] = 0; out[i] = s[i];",
    "float4 v = float4(1, 2, 3, 4); out[i] = v.x + v.wzyx.y + v[2];",
    "float4 v = float4(float2(1, 2), 3, 4); v.xy = v.zw; out[i] = dot(v, v);",
    "half4 h = half4(float4(1)); float4 f = (float4)h; out[i] = f.x + float(h.y);",
    "thread float* p = out ? nullptr : nullptr; float x = 1; thread float& r = x; r = 2; out[i] = x; (void)p;",
    "bfloat b = bfloat(out[i]); out[i] = float(b) + metal::exp(float(b));",
    "if (out[0] > 0) { threadgroup_barrier(mem_flags::mem_threadgroup); }",
    "threadgroup_barrier(mem_flags::mem_threadgroup); if (i > 3) return; out[i] = 0;",
    "device float4* p = (device float4*)out; p[i] = max(p[i], 0.0f);",
    "device uint* bits = reinterpret_cast<device uint*>(out); bits[i] = as_type<uint>(1.0f);",
    "ulong n = ulong(i) * 4ul; long m = -long(n); out[uint(n)] = float(m);",
    "simdgroup_half8x8 m = make_filled_simdgroup_matrix<half, 8, 8>(0.0h); (void)m;",
    "auto f = as_type<int>(out[i]); out[i] = clamp(f, 0, 255);",
    "bool4 b = float4(1) > float4(2); out[i] = any(b) ? 1.0f : select(0.0f, 1.0f, b.x);",
    "uchar a = uchar(i), b = uchar(a + a); out[i] = float(int(char(b)));",
    "constexpr uint n = min(3u, 4u); float a[n] = {}; out[i] = a[0];",
    "int global = 1, generic = 2, pipe = 3; out[i] = global + generic + pipe;",
    "volatile device atomic_float* a = (volatile device atomic_float*)out; "
    "atomic_fetch_add_explicit(a, 1.0f, memory_order_relaxed);",
    "for (uint n = 0; n < 4; n++) { threadgroup_barrier(mem_flags::mem_none); }",
    "metal::float4 v = ::metal::float4(metal::float2(1), metal::half2(2, 3).x, metal::vec<half, 2>(1).y); "
    "out[i] = v.x;",
]


@pytest.mark.parametrize("body", GOOD_BODIES)
def test_good_bodies_pass(body: str) -> None:
    text = f"{HEAD}kernel void k({OUT}, {POSITION}) {{ {body} }}\n"
    assert [str(d) for d in check(text) if d.severity == "error" or "divergent" in d.message] == []


@pytest.mark.parametrize(
    "text",
    [
        "kernel void k(device float* x [[buffer(0)]], constant float& y [[buffer(30)]]) { x[0] = y; }",
        "[[kernel]] void k(device float* x [[buffer(0)]]) { threadgroup float s[2], t; s[0] = t = 1; x[0] = s[0]; }",
        "constant float table[2] = {1.0f, 2.0f};\nfloat f(uint i) { return table[i]; }",
        "struct S { float a; float b; };\n"
        "kernel void k(constant S& s [[buffer(0)]], device S* t [[buffer(1)]]) {\n"
        "  S x = s; t[0] = x; S y = t[1]; t[2] = y; }",
        "struct A { float x; }; struct B { A a; float f(float y) const { return a.x + y; } };\n"
        "kernel void k(device B* b [[buffer(0)]]) { B c = b[0]; b[1].a.x = c.f(2); }",
        "template <typename T> T twice(T x) { return x + x; }\n"
        "kernel void k(device float* x [[buffer(0)]]) { x[0] = twice(x[1]); }",
        "kernel void k(device float* x [[buffer(0)]], threadgroup float* s [[threadgroup(0)]]) { s[0] = x[0]; }",
        "constant bool has_bias [[function_constant(0)]];\n"
        "kernel void k(device float* x [[buffer(0)]]) { if (has_bias) x[0] = 1; }",
        "void f(device const float (&x)[4], thread float4 (&y)[2]);",
        "#define INSTANCE(T) template [[host_name(\"k_\" #T)]] [[kernel]] decltype(k<T>) k<T>\n"
        "#define KERNEL kernel void\n"
        "template <typename T> [[kernel]] void k(device T* x [[buffer(0)]]) { threadgroup T s[4]; x[0] = s[0] = 0; }\n"
        "INSTANCE(half);\nKERNEL l(device float* x [[buffer(0)]]) { threadgroup float t; x[0] = t = 1; }",
        "#define PRODUCT(name, T) \\\n  kernel void name(device T* x [[buffer(0)]]) { \\\n    threadgroup T s[4]; \\\n"
        "    x[0] = s[1] = 0; \\\n  }\nPRODUCT(f, float)\nPRODUCT(h, half)",
        "#define FIRST 2\nconstant int n [[function_constant(FIRST + 1)]];\n"
        "kernel void k(device char* x[[buffer(FIRST)]], ushort3 t[[thread_position_in_threadgroup]]) { x[t.x] = n; }",
        "void add(float sums[4], thread float* more) { sums[0] += more[0]; }",
        "template <typename T> struct V4 { typedef vec<T, 4> type; };\n"
        "template <typename T, typename T4 = typename V4<T>::type>\n"
        "kernel void k(device T4* x [[buffer(0)]], device half4* h [[buffer(1)]]) {\n"
        "  x[0] = T4(1, 2, 3, 4) + (T4)h[0] + static_cast<T4>(h[0]) + T4(h[0]);\n}\n"
        "template [[host_name(\"a\")]] kernel decltype(k<float>) k<float>;\n"
        "template [[host_name(\"b\")]] kernel decltype(k<bfloat>) k<bfloat>;",
        "struct pair { int a, b; };\nvoid swap(thread pair& x, thread pair& y) { pair t = x; x = y; y = t; }\n"
        "void f() { pair a = {1, 2}, b = {3, 4}; swap(a, b); }",
        "struct alignas(16) S { float x[3]; S() : x{0, 0, 0} {} float get(int i) const device { return x[i]; } };\n"
        "kernel void k(device S* s [[buffer(0)]]) { s[0].x[0] = s[0].get(1); }",
        "struct C { half a, b; C(half x, half y) thread : a(x), b(y) {}\n"
        "  constexpr C(half x = 0, half y = half(1)) constant : a(x), b(y) {} };\n"
        "kernel void k(device half* x [[buffer(0)]]) { C c(x[0], 2); x[0] = c.b; }",
    ],
)  # fmt: skip
def test_good_texts_pass(text: str) -> None:
    assert [str(d) for d in check(HEAD + text + "\n")] == []


#: (text after the two lines of the head, line in it, phrase of the message)
BAD = [
    # address spaces
    ("kernel void k(device float* x [[buffer(0)]]) { thread float* p = x; }", 1, "cannot initialize"),
    ("kernel void k(device float* x [[buffer(0)]]) {\n  threadgroup float* p = (threadgroup float*)x;\n}", 2, "cast"),
    ("void f(float* x);", 1, "pointer 'x' needs an address space"),
    ("void f(const float& x) {}", 1, "reference 'x' needs an address space"),
    ("struct S {\n  float* p;\n};", 2, "pointer 'p' needs an address space"),
    ("void f() {\n  float x = 0;\n  float* p = &x;\n}", 3, "pointer 'p' needs an address space"),
    ("float* f();", 1, "pointer 'f' needs an address space"),
    ("void f(device float* x) { device int* y = (int*)x; }", 1, "address space"),
    ("kernel void k(constant float* x [[buffer(0)]]) { x[0] = 1; }", 1, "read-only"),
    ("kernel void k(device const float* x [[buffer(0)]]) { x[0] = 1; }", 1, "read-only"),
    ("struct S { float v; float get() { return v; } };\n"
     "kernel void k(device S* s [[buffer(0)]]) {\n  s->v = s->get();\n}", 3, "device S"),
    # attributes and signatures of kernels
    ("kernel void k(uint x) {}", 1, "kernel parameter 'x' has no attribute such as [[thread_position_in_grid]]"),
    ("kernel void k(device float* x [[bufer(0)]]) {}", 1, "unknown attribute 'bufer'; did you mean 'buffer'?"),
    ("kernel void k(uint i [[thread_position_in_gird]]) {}", 1, "did you mean 'thread_position_in_grid'?"),
    ("kernel void k(int i [[thread_position_in_grid]]) {}", 1, "[[thread_position_in_grid]] has type 'int'"),
    ("kernel void k(uint2 i [[thread_index_in_simdgroup]]) {}", 1, "has type 'uint2'; it may have uint, ushort"),
    ("kernel void k(uint i [[thread_position_in_grid]],\n  uint2 n [[threads_per_grid]]) {}", 1, "differ in width"),
    ("kernel void k(device float* a [[buffer(1)]],\n  device float* b [[buffer(1)]]) {}", 2,
     "buffer index 1 is used twice"),
    ("kernel void k(device float* a [[buffer(31)]]) {}", 1, "buffer index 31 is above 30"),
    ("kernel void k(device float* a [[buffer]]) {}", 1, "needs an index"),
    ("kernel void k(float a [[buffer(0)]]) {}", 1, "must be a device or constant pointer"),
    ("kernel void k(thread float* a [[buffer(0)]]) {}", 1, "must be a device or constant pointer"),
    ("kernel void k(device float* a [[threadgroup(0)]]) {}", 1, "must be a threadgroup pointer"),
    ("kernel float k(device float* a [[buffer(0)]]) { return a[0]; }", 1, "must return void"),
    ("kernel void k(device float* a [[buffer(0)]]) {}\nkernel void k(device int* a [[buffer(0)]]) {}", 2, "overloaded"),
    ("kernel void main(device float* a [[buffer(0)]]) {}", 1, "'main'"),
    # types and literals
    ("kernel void k(device double* a [[buffer(0)]]) {}", 1, "'double' is not supported in Metal"),
    ("void f() {\n  double x = 1.0f;\n}", 2, "'double' is not supported in Metal"),
    ("void f() { long long x = 0; (void)x; }", 1, "'long long' does not exist"),
    ("void f(half3 h) { float4 x = (float4)h; }", 1, "C-style cast"),
    ("void f(half4 h) { float4 x = h; }", 1, "cannot initialize a variable of type"),
    ("void f() { float4 x = float4(1, 2, 3); }", 1, "as many components"),
    ("void f() { float3 x = float3(float2(1), float2(2)); }", 1, "as many components"),
    ("void f(float2 x) { float y = x.z; }", 1, "vector component access exceeds"),
    ("void f(float4 x) { float y = x.xq; }", 1, "illegal vector component"),
    ("void f(uint a, int b) { uint x = max(a, b); }", 1, "ambiguous"),
    ("void f() { uint x = as_type<uint>(half(1)); }", 1, "as_type needs types of the same size"),
    ("void f(float x) { y = x; }", 1, "use of undeclared identifier 'y'"),
    ("void f(float x) { float y = erf(x); }", 1, "undeclared identifier 'erf'"),
    # storage
    ("float f() { threadgroup float x; return x; }", 1, "threadgroup variable outside a kernel"),
    ("kernel void k(device float* a [[buffer(0)]]) {\n  threadgroup float s[2] = {1, 2};\n}", 2,
     "cannot have an initializer"),
    ("kernel void k(device float* a [[buffer(0)]]) {\n  threadgroup float s[8448];\n  a[0] = s[0];\n}", 2,
     "33792 bytes"),
    ("kernel void k(device float* a [[buffer(0)]]) {\n  threadgroup float s[8000];\n  threadgroup half t[800];\n}", 3,
     "more than 32768"),
    ("float f() {\n  static float x = 0;\n  return x;\n}", 2, "static local variable 'x'"),
    ("float table[2] = {1, 2};", 1, "program-scope variable 'table' must be in the constant address space"),
    ("constexpr int n = 3;", 1, "program-scope variable 'n'"),
    ("constant float x;", 1, "must be initialized"),
    ("float f();\nconstant float x = f();", 2, "constant expression"),
    # what C++ has and Metal has not
    ("void f() {\n  goto end;\nend:\n  return;\n}", 2, "'goto' does not exist"),
    ("struct S { virtual void f(); };", 1, "virtual"),
    ("void f() { int x = *new int(3); }", 1, "new"),
    ("void f() { throw 1; }", 1, "throw"),
    ("void f() { try { } catch (...) { } }", 1, "try"),
    ("#include <vector>", 1, "'vector' file not found"),
    ("__shared__ float x[3];", 1, "__shared__"),
    # the library
    ("void f(bool b) { uint x = simd_sum(b); }", 1, "no matching function"),
    ("void f(ulong b) { ulong x = simd_sum(b); }", 1, "no matching function"),
    ("void f(threadgroup atomic_float* a) { atomic_fetch_add_explicit(a, 1.0f, memory_order_relaxed); }", 1,
     "no matching function"),
    ("void f(device uint* a) { atomic_fetch_add_explicit(a, 1u, memory_order_relaxed); }", 1, "no matching function"),
    ("void f() { simdgroup_matrix<int, 8, 8> m; }", 1, "float, half or bfloat"),
    ("void f() { simdgroup_matrix<float, 4, 4> m; }", 1, "8 rows and 8 columns"),
    ("void f(thread float* p) { simdgroup_float8x8 m; simdgroup_load(m, p, 8); }", 1, "no matching function"),
    ("void f() { threadgroup_barrier(); }", 1, "no matching function"),
    ("float f() { float x; return x; }", 1, "uninitialized"),
]  # fmt: skip


@pytest.mark.parametrize("text, line, phrase", BAD)
def test_errors_are_found(text: str, line: int, phrase: str) -> None:
    found = errors(f"{HEAD}{text}\n")
    assert any(d.line == line + 2 and phrase in d.message for d in found), [str(d) for d in found]


@pytest.mark.parametrize(
    "text, line, phrase",
    [
        ("void f(thread float& x) { x = x * 0.5; }", 1, "literal without suffix"),
        ("int f(int n) { return n ? f(n - 1) : 0; }", 1, "recursion"),
        ("bfloat f(float x) { return x; }", 1, "implicit conversion to bfloat"),
        ("int f(int local) { return local; }", 1, "'local' is a keyword of OpenCL"),
    ],
)
def test_strict_turns_warnings_into_errors(text: str, line: int, phrase: str) -> None:
    found = check(f"{HEAD}{text}\n", strict=True)
    assert [(d.severity, d.line) for d in found if phrase in d.message] == [("error", line + 2)]
    assert errors(f"{HEAD}{text}\n") == []


BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);"


@pytest.mark.parametrize(
    "body, is_divergent",
    [
        (f"if (i < 3) {{ {BARRIER} }}", True),
        (f"uint j = i * 2; if (out[0] > j) {BARRIER}", True),
        (f"if (i >= n) return; {BARRIER}", True),
        (f"for (uint j = i; j < n; j += 32) {{ {BARRIER} }}", True),
        ("if (i < 3) sync();", True),
        (f"while (out[i] > 0) {{ {BARRIER} }}", True),
        (f"if (n > 3) {{ {BARRIER} }}", False),
        (f"if (n > 3) return; {BARRIER}", False),
        (f"for (uint j = 0; j < n; j++) {{ if (i < j) out[i] = 0; {BARRIER} }}", False),
        ("if (n < 3) sync();", False),
        ("if (i < 3) out[i] = 0; sync();", False),
    ],
)
def test_divergent_barriers(body: str, is_divergent: bool) -> None:
    text = (
        f"{HEAD}void sync() {{ {BARRIER} }}\n"
        f"kernel void k({OUT}, constant uint& n [[buffer(1)]], uint i [[thread_index_in_threadgroup]]) {{ {body} }}\n"
    )
    found = check(text)
    assert not [d for d in found if d.severity == "error"]
    assert any("divergent barrier" in d.message for d in found) == is_divergent


def test_explicit_conversions_to_bfloat_pass() -> None:
    body = "bfloat a = bfloat(x), b = static_cast<bfloat>(x), c = (bfloat)half(x); bfloat4 d = bfloat4(bfloat(0.0f));"
    assert check(f"{HEAD}float f(float x) {{ {body} return a + b + c + d.x; }}\n", strict=True) == []


def test_a_diagnostic_prints_like_clang() -> None:
    text = f"{HEAD}kernel void k({OUT}) {{\n  // Größe\n  out[0] = /* ü */ float4(1).x + size;\n}}\n"
    (found,) = check(text, "k.metal")
    assert str(found) == (
        "k.metal:5:34: error: use of undeclared identifier 'size'\n"
        "  out[0] = /* ü */ float4(1).x + size;\n"
        "                                 ^"
    )


def test_a_text_without_the_header() -> None:
    (found,) = errors("kernel void k(device float* x [[buffer(0)]]) { x[0] = metal::exp(x[0]); }")
    assert "no header" in found.message


def test_check_or_raise() -> None:
    check_or_raise(f"{HEAD}kernel void k({OUT}, {POSITION}) {{ out[i] = 0.5f; }}\n")
    with pytest.raises(MetalCheckError, match="literal without suffix"):
        check_or_raise(f"{HEAD}kernel void k({OUT}, {POSITION}) {{ out[i] = 0.5; }}\n")


def test_every_metal_header_is_known() -> None:
    names = "stdlib math atomic simdgroup simdgroup_matrix integer common compute geometric relational types "
    names += "type_traits limits matrix packing array uniform logging"
    text = "".join(f"#include <metal_{name}>\n" for name in names.split())
    assert check(f"{text}using namespace metal;\nfloat f(float x) {{ return exp(x); }}\n") == []


def test_adapting_keeps_lines_and_offsets() -> None:
    for path in KERNELS.glob("*.metal"):
        text = path.read_bytes().decode("latin-1")
        adapted = adapt(text)
        assert adapted.text.count("\n") == text.count("\n")
        for word in ("threadgroup_barrier", "simd_sum", "lane"):
            at = adapted.text.find(word)
            while at >= 0:
                if not adapted.replaced(at):
                    assert text.startswith(word, adapted.offset(at))
                at = adapted.text.find(word, at + 1)


def test_included_files(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.h").write_text("#pragma once\nstruct P { float x; float get() { return y; } };\n")
    (tmp_path / "a.h").write_text('#include "sub/b.h"\ninline float4 two() { return float4(1, 2, 3, 4); }\n')
    text = f'#include "a.h"\n{HEAD}float f() {{ return two().x; }}\n'
    (found,) = check(text, "k.metal", include=[str(tmp_path)])
    assert found.file.endswith("b.h") and found.line == 2 and "undeclared identifier 'y'" in found.message


def test_included_files_rely_on_the_includer(tmp_path: Path) -> None:
    (tmp_path / "ops.h").write_text(
        "struct Twice { template <typename T> T operator()(T x) const { return metal::max(x, T(0)) + T(2) * x; } };\n"
        "inline Quad four(SCALAR x) { return Quad(x, x, x, x); }\nENTRY twice(device float* x [[buffer(0)]]) {\n"
        "  threadgroup float s[4];\n  s[0] = x[0];\n  x[0] = four(Twice()(s[0])).x;\n}\n"
    )
    head = f"{HEAD}#define ENTRY kernel void\n#define SCALAR float\nusing Quad = float4;\n"
    for include in ('#include "ops.h"', "#include <ops.h>"):
        assert check(f"{head}{include}\n", "k.metal", True, include=[str(tmp_path)]) == []
    (found,) = errors('#include "ops.h"\n')
    assert "'ops.h' file not found" in found.message


def test_versions() -> None:
    text = f"{HEAD}float f(float x) {{ return [=]() {{ return x; }}() + __METAL_VERSION__; }}\n"
    assert ["needs Metal 4" in d.message for d in check(text)] == [True]
    assert check(text, metal="4.0") == []
    for wrong in ("", "4", "metal3.1", "3.1.1", 4.0):
        with pytest.raises(AttributeValueError, match=r"written as 3\.1"):
            check(text, metal=wrong)


@pytest.mark.parametrize(
    "body",
    [
        "bfloat y = bfloat(x); return y;", "return as_type<bfloat>(ushort(x));", "return 1.0bf;",
        "bfloat4 v = bfloat4(x); return v.x;", "metal::bfloat2 v(x); return v.x;", "vec<bfloat, 3> v(x); return v.x;",
        "packed_bfloat3 v = packed_bfloat3(x); return v[0];", "simdgroup_bfloat8x8 m; return x;",
    ],
)  # fmt: skip
def test_bfloat_is_of_metal_3_1(body: str) -> None:
    text = f"{HEAD}float f(float x) {{ {body} }}\n"
    assert check(text) == [] == check(f"#if __METAL_VERSION__ >= 310\n{text}#endif\n", metal="3.0")
    assert all("3.1 has it: check with --metal 3.1" in d.message for d in check(text, metal="3.0"))
    assert check(text, metal="3.0") and check(f"{HEAD}float f(half x) {{ return x; }}\n", metal="3.0") == []


def test_defines() -> None:
    text = f"{HEAD}float f() {{ return SCALE; }}\n"
    assert errors(text)
    assert check(text, defines=["SCALE=2.0f"]) == []


def test_threads_may_check_at_once() -> None:
    texts = [f"{HEAD}float f{n}(float x) {{ return x * {n}; }}\n" for n in range(16)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(check, texts)) == [[]] * 16


def test_the_precompiled_library_is_made_by_several_processes_at_once(tmp_path: Path) -> None:
    script = "from smelt.backends.metal.check import check; print(check('float f() { return 1.0f; }'))"
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    environment.pop("SMELT_CACHE_DIR", None)
    command = [sys.executable, "-c", script]
    running = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [process.communicate()[0] for process in running] == ["[]\n"] * 3
    assert [path.suffix for path in (tmp_path / "smelt").iterdir()] == [".pch"]


def test_without_libclang(monkeypatch: pytest.MonkeyPatch) -> None:
    module._libclang.cache_clear()
    monkeypatch.setitem(sys.modules, "clang", None)
    try:
        with pytest.raises(SmeltError, match=r"pip install libclang==18\.1\.1"):
            check("")
    finally:
        monkeypatch.undo()
        module._libclang.cache_clear()


def test_command(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    good, bad = tmp_path / "good.metal", tmp_path / "bad.metal"
    good.write_text(f"{HEAD}kernel void k({OUT}) {{ out[0] = 1; }}\n")
    bad.write_text(f"{HEAD}kernel void k({OUT}) {{ out[0] = x; }}\n")
    assert main(["check-metal", str(good)]) == 0
    assert capfd.readouterr() == ("", "")
    assert main(["check-metal", str(good), str(bad)]) == 1
    shown = capfd.readouterr()
    assert f"{bad}:3:59: error: use of undeclared identifier 'x'" in shown.out
    assert f"1 error in {bad}" in shown.err
    assert main(["check-metal", str(tmp_path / "none.metal"), str(good)]) == 2
    assert "cannot be read" in capfd.readouterr().err
    good.write_text(f"{HEAD}kernel void k(device float* out) {{ out[0] = [] {{ return 1.0f; }}(); }}\n")
    assert main(["check-metal", "--strict", "--metal=4.0", str(good)]) == 0
    shown = capfd.readouterr()
    assert f"{good}:3:29: remark: kernel parameter 'out' has no attribute such as [[buffer(0)]]" in shown.out
    assert shown.err == ""
    assert main(["check-metal", str(good)]) == 1
    assert "a lambda expression needs Metal 4" in capfd.readouterr().out
    assert main(["check-metal", "--metal=new", str(good)]) == 1
    assert "a version of Metal is written as 3.1" in capfd.readouterr().err


@pytest.mark.parametrize(
    "content",
    [
        b"\x00\x01\xff" * 1000,
        b"\xff\xfe{{{{((((" * 1000,
        b"(" * 100_000,
        b"{" * 100_000,
        b"void f() { int x = " + b"!" * 300_000 + b"1; }",
        b"float f(float x) { return " + b"x + " * 20_000 + b"x; }",
        b"[[" * 50_000,
        b"template <" * 20_000,
        b"/*" + b"a" * 1_000_000,
        b'#include "hostile.metal"\n',
        b"#define A A A\nA" * 100,
        b"",
    ],
    ids=range(12),
)
def test_hostile_files(content: bytes, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "hostile.metal"
    path.write_bytes(content)
    assert main(["check-metal", str(path)]) in (0, 1, 2)
    shown = capfd.readouterr()
    assert "Traceback" not in shown.err and "internal error" not in shown.err
