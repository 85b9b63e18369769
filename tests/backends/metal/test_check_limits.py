"""The strict check on text that nests without end, and on letters outside ASCII, in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("clang")

from smelt.backends.metal.check import check
from smelt.backends.metal.check.limits import too_deep

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
FOLDER = Path(__file__).parent

#: Texts that nest `n` deep, each in its own way.
NESTED: dict[str, Callable[[int], str]] = {
    "parentheses": lambda n: f"int f(int x) {{ return {'(' * n}x{')' * n}; }}",
    "calls": lambda n: f"int g(int x); int f(int x) {{ return {'g(' * n}x{')' * n}; }}",
    "indices": lambda n: f"void f(device int* x) {{ x{'[x' * n}[0]{']' * n} = 0; }}",
    "blocks": lambda n: f"void f() {{ {'{' * n}{'}' * n} }}",
    "ifs with blocks": lambda n: f"void f(int x) {{ {'if (x) { ' * n}{'}' * n} }}",
    "attributes": lambda n: f"{'[[a' * n}{']]' * n} int x;",
    "namespaces": lambda n: f"{'namespace a {' * n}{'}' * n}",
    "structures": lambda n: f"{''.join(f'struct S{i} {{' for i in range(n))}{'};' * n}",
    "lists": lambda n: f"constant int x[] = {'{' * n}1{'}' * n};",
    "parameters": lambda n: f"void f({'void (*g)(' * n}{')' * n});",
    "lambdas": lambda n: f"void f() {{ {'auto x = [&]() {' * n}{'};' * n} }}",
    "not": lambda n: f"bool f(bool x) {{ return {'!' * n}x; }}",
    "complement": lambda n: f"int f(int x) {{ return {'~ ' * n}x; }}",
    "minus": lambda n: f"int f(int x) {{ return {'- ' * n}x; }}",
    "plus": lambda n: f"int f(int x) {{ return {'+ ' * n}x; }}",
    "dereference": lambda n: f"int f(int x) {{ return {'*' * n}x; }}",
    "address": lambda n: f"int f(int x) {{ return {'& ' * n}x; }}",
    "increments": lambda n: f"void f(int x) {{ {'++' * n}x; }}",
    "casts": lambda n: f"int f(int x) {{ return {'(int)' * n}x; }}",
    "sizeof": lambda n: f"int f(int x) {{ return {'sizeof ' * n}x; }}",
    "mixed signs": lambda n: f"int f(int x) {{ return {'-~!' * n}x; }}",
    "labels": lambda n: f"void f() {{ {''.join(f'a{i}: ' for i in range(n))}; }}",
    "cases": lambda n: f"void f(int x) {{ switch (x) {{ {''.join(f'case {i}: ' for i in range(n))}; }} }}",
    "sum": lambda n: f"int f(int x) {{ return {'x + ' * n}x; }}",
    "shifts": lambda n: f"int f(int x) {{ return {'x << ' * n}x; }}",
    "ternary": lambda n: f"int f(int x) {{ return {'x ? x : ' * n}x; }}",
    "ternary inside": lambda n: f"int f(int x) {{ return {'x ? ' * n}x{' : x' * n}; }}",
    "assignments": lambda n: f"void f(int x) {{ {'x = ' * n}x; }}",
    "commas": lambda n: f"int f(int x) {{ return {'x, ' * n}x; }}",
    "members": lambda n: f"void f(int x) {{ x{'.s' * n}; }}",
    "subscripts": lambda n: f"void f(device int* x) {{ x{'[0]' * n}; }}",
    "ifs": lambda n: f"void f(int x) {{ {'if (x) ' * n}; }}",
    "else ifs": lambda n: f"void f(int x) {{ {'if (x) { } else ' * n}; }}",
    "else ifs without blocks": lambda n: f"void f(int x) {{ {'if (x) ; else ' * n}; }}",
    "loops": lambda n: f"void f() {{ {'for (;;) ' * n}; }}",
    "while loops": lambda n: f"void f() {{ {'while (1) ' * n}; }}",
    "do loops": lambda n: f"void f() {{ {'do ' * n}; {'while (1); ' * n}}}",
    "switches": lambda n: f"void f(int x) {{ {'switch (x) ' * n}; }}",
    "template arguments": lambda n: f"{'vec<' * n}float{', 4>' * n} x;",
    "comparisons": lambda n: f"bool f(int x) {{ return {'x < ' * n}x; }}",
    "pointers": lambda n: f"void f(device int {'*' * n}x);",
    "qualifiers": lambda n: f"{'const ' * n}int f();",
    "longs": lambda n: f"{'long ' * n}f();",
    "scopes": lambda n: f"int f() {{ return {'a::' * n}b; }}",
    "strings": lambda n: "constant char x[] = " + '"a" ' * n + ";",
    "declarators": lambda n: f"void f() {{ int x0{''.join(f', x{i}' for i in range(1, n))}; }}",
    "macro calls": lambda n: f"#define D(x) x x\nvoid f() {{ {'D(' * n};{')' * n} }}",
    "macros": lambda n: (
        "#define A0 1 +\n" + "".join(f"#define A{i + 1} A{i} A{i}\n" for i in range(n)) + f"int x = A{n} 1;"
    ),
    "variadic macros": lambda n: f"#define D(...) __VA_ARGS__ + __VA_ARGS__\nint x = {'D(' * n}1{')' * n};",
    "macro of signs": lambda n: f"#define S {'-' * n}\nint f(int x) {{ return S x; }}",
    "macro of macros": lambda n: "".join(f"#define M{i} ({'-' * 20} M{i + 1})\n" for i in range(n)) + "int x = M0;",
    "conditions": lambda n: "#if 1\n" * n + "#endif\n" * n,
    "templates": lambda n: (
        f"template <int N> struct S {{ enum {{ v = S<N - 1>::v }}; }}; int f() {{ return S<{n}>::v; }}"
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", NESTED)
def test_text_that_nests_without_end(what: str) -> None:
    for n in (150, 250, 1100, 20_000):
        found = check(HEAD + NESTED[what](n), "k.metal", strict=True)
        assert all(str(d) for d in found)
    if what not in ("macros", "declarators", "conditions", "templates"):
        (deep,) = found
        assert deep.severity == "error" and deep.line >= 3, deep


@pytest.mark.parametrize("path", sorted([*FOLDER.glob("kernels/*.metal"), *FOLDER.glob("golden/*.metal")]), ids=str)
def test_kernels_are_far_from_the_limits(path: Path) -> None:
    text = path.read_bytes().decode("latin-1")
    assert too_deep(text) is None
    assert too_deep("#define A 1\n" + text * 20) is None


def test_long_tables_and_long_programs() -> None:
    table = f"constant float t[] = {{{', '.join(['1.0f'] * 50_000)}}};\n"
    pairs = f"constant float2 p[] = {{{', '.join(['{1.0f, 2.0f}'] * 3_000)}}};\n"
    functions = "".join(f"inline int f{i}(int x) {{ return x + {i}; }}\n" for i in range(2_000))
    assert [d for d in check(HEAD + table + pairs + functions) if "than" in d.message] == []


LETTERS = ("é", "ß", "µ", "ñ", "λ", "Ж", "中", "ひ", "ﬁ", "𝒳", "é")
PLACES = {
    "function": "float {0}(float x) {{ return x; }}\nfloat g(float x) {{ return {0}(x); }}",
    "parameter": "float f(float {0}, float a{0}b) {{ return {0} + a{0}b; }}",
    "variable": "float f(float x) {{ float {0}1 = x; return {0}1; }}",
    "threadgroup variable": "kernel void k(device float* out [[buffer(0)]], "
    "uint i [[thread_index_in_threadgroup]]) {{\n"
    "  threadgroup float gr{0}n[32], {0};\n  gr{0}n[i] = 1; {0} = gr{0}n[0];\n  out[i] = {0};\n}}",
    "type": "struct {0} {{ float x{0}; float get() const {{ return x{0}; }} }};\nfloat f({0} s) {{ return s.get(); }}",
    "alias": "using {0}4 = float4;\nfloat f() {{ return {0}4(1).x; }}",
    "macro": "#define {0}(x) ((x) + 1)\nint f(int x) {{ return {0}(x); }}",
    "comment": "// {0}\nfloat f(float x) {{ /* {0} */ return x; }}",
    "kernel": "kernel void k{0}(device float* {0} [[buffer(0)]]) {{ {0}[0] = 1; }}",
    "template": "template <typename {0}> {0} f({0} x) {{ return x; }}\nfloat g() {{ return f<float>(1.0f); }}",
}


@pytest.mark.parametrize("where", PLACES)
def test_letters_outside_ascii(where: str) -> None:
    for letter in LETTERS[:-1]:
        assert [str(d) for d in check(HEAD + PLACES[where].format(letter), strict=True)] == [], letter


def test_places_behind_letters_outside_ascii() -> None:
    for letter in LETTERS:
        text = f"{HEAD}float f(float {letter}) {{ return /* {letter} */ nothing; }}"
        (found,) = [d for d in check(text) if d.line == 3]
        assert found.column == len(f"float f(float {letter}) {{ return /* {letter} */ ") + 1, letter


@pytest.mark.parametrize("odd", ["\ud800", "\0", "\x1a", "\u2028", "\ufeff", "²", "…", "\x80", "\\\n", "??/", "\r"])
def test_odd_characters(odd: str) -> None:
    texts = (
        odd, f"float f{odd}(float x) {{ return x{odd}; }}", f'constant char x[] = "{odd}";', f"// {odd}\nint x{odd}1;",
        f"#define A {odd}\nA A", f"kernel void k(device float* a [[buffer({odd})]]) {{}}", f"1{odd}.0f{odd}",
    )  # fmt: skip
    for text in texts:
        assert all(str(d) for d in check(text, strict=True))
