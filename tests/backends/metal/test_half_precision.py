"""half and bfloat of the simulator's headers, compiled in many ways: every bit pattern, against NumPy and ml_dtypes.

A compiler may make one conversion in one way and eight of them, or a conversion there and back, in another; GCC 12 once
dropped the rounding of such a pair on processors with AVX512-FP16. So each function here stands in five kinds of loops.
"""

from __future__ import annotations

import ctypes
import importlib.util
import itertools
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from smelt.backends.metal.simulator import compiler

#: An expression of `v`, its inputs and its result, by name.
FUNCTIONS = {
    "narrow": ("{T}(v)", "float", "{T}"),
    "widen": ("float(v)", "{T}", "float"),
    "there_and_back": ("float({T}(v))", "float", "float"),
    "twice": ("float({T}(float({T}(v)) + 1.0f))", "float", "float"),
    "product": ("v * v", "{T}", "{T}"),
    "converted": ("{U}(v)", "{T}", "{U}"),
}
#: How the values of a block of eight meet the expression.
LOOPS = {
    "single": "for (long i = 0; i < n; i++) {{ volatile long at = i; {A} v = x[at]; y[at] = {E}; }}",
    "plain": "for (long i = 0; i < n; i++) {{ {A} v = x[i]; y[i] = {E}; }}",
    "restrict": "const {A}* __restrict a = x; {R}* __restrict b = y; "
    "for (long i = 0; i < n; i++) {{ {A} v = a[i]; b[i] = {E}; }}",
    # Four or eight side by side without a loop over memory: the compiler packs them.
    "packed": "for (long i = 0; i < n; i += 8) {{ {A} w[8]; {R} r[8]; for (int k = 0; k < 8; k++) w[k] = x[i + k]; "
    "for (int k = 0; k < 8; k++) {{ {A} v = w[k]; r[k] = {E}; }} for (int k = 0; k < 8; k++) y[i + k] = r[k]; }}",
    "vector": "for (long i = 0; i < n; i += 4) {{ auto w = *(const metal::vec<{A}, 4>*)(x + i); metal::vec<{R}, 4> r; "
    "for (int k = 0; k < 4; k++) {{ {A} v = w[k]; r[k] = {E}; }} *(metal::vec<{R}, 4>*)(y + i) = r; }}",
}
#: A vector's own operators and conversions.
VECTORS = {
    "narrow": "*(metal::vec<{R}, 4>*)(y + i) = metal::vec<{R}, 4>(*(const metal::vec<{A}, 4>*)(x + i));",
    "widen": "*(metal::vec<{R}, 4>*)(y + i) = metal::vec<{R}, 4>(*(const metal::vec<{A}, 4>*)(x + i));",
    "there_and_back": "*(float4*)(y + i) = float4(metal::vec<{T}, 4>(*(const float4*)(x + i)));",
    "product": "auto v = *(const metal::vec<{A}, 4>*)(x + i); *(metal::vec<{R}, 4>*)(y + i) = v * v;",
}
TYPES = {"half": np.dtype(np.float16), "bfloat": np.dtype(ml_dtypes.bfloat16), "float": np.dtype(np.float32)}


def source() -> str:
    lines = ["#include <metal_stdlib>"]

    def add(name: str, loop: str, body: str, a: str, r: str) -> None:
        lines.append(f'extern "C" void {name}_{loop}(const {a}* x, {r}* y, long n) {{ {body} }}')

    for t, (name, (expression, a, r)) in itertools.product(("half", "bfloat"), FUNCTIONS.items()):
        words = {"T": t, "U": "bfloat" if t == "half" else "half"}
        words |= {"A": a.format(**words), "R": r.format(**words), "E": expression.format(**words)}
        for loop, body in LOOPS.items():
            add(f"{t}_{name}", loop, body.format(**words), words["A"], words["R"])
        if name in VECTORS:
            body = f"for (long i = 0; i < n; i += 4) {{ {VECTORS[name].format(**words)} }}"
            add(f"{t}_{name}", "vectors", body, words["A"], words["R"])
    # What the compiler computes itself.
    numbers = ["1.0f / 3.0f", "65519.99f", "65520.0f", "2.9802322e-08f", "2.9802326e-08f", "6.1e-05f", "-1.0f / 3.0f"]
    for t, (i, number) in itertools.product(("half", "bfloat"), enumerate(numbers)):
        lines.append(f'extern "C" float {t}_constant_{i}() {{ constexpr {t} v = {t}({number}); return float(v); }}')
        lines.append(f'extern "C" float {t}_variable_{i}() {{ volatile float x = {number}; return float({t}(x)); }}')
    return "\n".join(lines)


def compilers() -> dict[str, list[str]]:
    found = {name: [path] for name in ("g++", "clang++") if (path := shutil.which(name))}
    if importlib.util.find_spec("ziglang"):
        found["zig"] = [sys.executable, "-m", "ziglang", "c++"]
    return found


def ways() -> list[Any]:
    """Compilers and their flags: levels of optimization, sets of instructions that this machine runs."""
    x86 = platform.machine().lower() in ("x86_64", "amd64")
    native = [("-O2", "-march=native"), ("-O3", "-march=native")] if x86 or sys.platform != "darwin" else []
    level = [("-O3", "-mavx2", "-mfma")] if x86 and {"avx2", "fma"} <= compiler._features() else []
    flags = {"g++": [("-O0",), ("-O2",), ("-O3",), *native, *level], "clang++": [("-O2",), *native]}
    flags["zig"] = [("-O3", "-march=native", "-nostdlib++")]  # without its C++ library, which it would build first
    return [pytest.param(name, list(f), id=" ".join((name, *f))) for name in compilers() for f in flags[name]]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("half") / "half.cpp"
    path.write_text(source())
    return path


def values(dtype: np.dtype) -> np.ndarray:
    """All bit patterns of 16 bits; of float32 those, what lies around them and around their midpoints, and others."""
    every = np.arange(1 << 16, dtype=np.uint16)
    if dtype.itemsize == 2:
        return every.view(dtype)
    upper = np.concatenate([every.view(t).astype(np.float32).view(np.uint32) for t in (TYPES["half"], TYPES["bfloat"])])
    middles = np.concatenate([upper + (1 << 12), upper + (1 << 15)])
    near = [middles, middles + 1, middles - 1, upper, upper + 1, upper - 1]
    others = np.random.default_rng(0).integers(0, 1 << 32, 1 << 16, dtype=np.uint64).astype(np.uint32)
    return np.concatenate([*near, others]).view(np.float32)


def expected(name: str, kind: str, x: np.ndarray) -> np.ndarray:
    own, other = TYPES[kind], TYPES["bfloat" if kind == "half" else "half"]
    with np.errstate(all="ignore"):
        f = x.astype(np.float32)
        return {
            "narrow": lambda: f.astype(own),
            "widen": lambda: f,
            "there_and_back": lambda: f.astype(own).astype(np.float32),
            "twice": lambda: (f.astype(own).astype(np.float32) + np.float32(1)).astype(own).astype(np.float32),
            # bfloat's product is a float, which is stored as bfloat.
            "product": lambda: (f * f).astype(own),
            "converted": lambda: f.astype(other),
        }[name]()


def assert_same(found: np.ndarray, wanted: np.ndarray, what: str) -> None:
    bits = np.uint16 if found.dtype.itemsize == 2 else np.uint32
    wrong = (found.view(bits) != wanted.view(bits)) & ~(np.isnan(found) & np.isnan(wanted))
    assert not wrong.any(), f"{what}: {wrong.sum()} wrong, first {found[wrong][:4]} for {wanted[wrong][:4]}"


@pytest.mark.parametrize(("name", "flags"), ways())
def test_every_bit_pattern(name: str, flags: list[str], written: Path) -> None:
    """No level of optimization and no feature of the processor changes a value."""
    made = written.with_name(f"{name}{''.join(flags)}.so")
    rest = [f for f in compiler._COMMON if f != "-O2"]
    rest += [] if name == "g++" else ["-Wno-reserved-user-defined-literal"]
    command = [*compilers()[name], *rest, *flags, f"-I{compiler.HEADERS}", "-shared", str(written), "-o", str(made)]
    answer = subprocess.run(command, capture_output=True, text=True)
    if answer.returncode and "march=native" in answer.stderr:
        pytest.skip("the compiler has no -march=native here")
    assert not answer.returncode, answer.stderr
    library = ctypes.CDLL(str(made))
    for kind, (function, (_, a, _)) in itertools.product(("half", "bfloat"), FUNCTIONS.items()):
        x = values(TYPES[a.format(T=kind)])
        wanted = expected(function, kind, x)
        for loop in [*LOOPS, *(["vectors"] if function in VECTORS else [])]:
            y = np.empty_like(wanted)
            call = getattr(library, f"{kind}_{function}_{loop}")
            call(ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(y.ctypes.data), ctypes.c_long(x.size))
            assert_same(y, wanted, f"{kind} {function} in a {loop} loop")
    for kind, i in itertools.product(("half", "bfloat"), range(7)):
        numbers = [getattr(library, f"{kind}_{how}_{i}") for how in ("constant", "variable")]
        for number in numbers:
            number.restype = ctypes.c_float
        assert numbers[0]() == numbers[1](), f"constant {i} of {kind}"


def test_there_and_back_keeps_every_half(written: Path) -> None:
    """Of NaN the sign, the digits that fit, and that it is one."""
    every = np.arange(1 << 16, dtype=np.uint16)
    made = written.with_name("back.so")
    text = "#include <metal_stdlib>\nextern \"C\" void back(ushort* x) { for (int i = 0; i < 65536; i++) "
    text += "x[i] = half(float(as_type<half>(x[i]))).code; }"
    written.with_name("back.cpp").write_text(text)
    tool = compiler.compiler()
    command = [*tool.command, *tool.flags, f"-I{compiler.HEADERS}", "-shared", str(written.with_name("back.cpp"))]
    subprocess.run([*command, "-o", str(made)], check=True)
    found = every.copy()
    ctypes.CDLL(str(made)).back(ctypes.c_void_p(found.ctypes.data))
    quiet = np.where(np.isnan(every.view(np.float16)), every | 0x200, every)
    np.testing.assert_array_equal(found, quiet)


def test_kernels_are_compiled_for_no_more_than_the_tests_look_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    seen = set()
    for features in ({"avx2", "fma", "avx512f", "avx512_fp16"}, {"avx2", "fma"}, {"sse2", "f16c"}, set[str]()):
        monkeypatch.setattr(compiler, "_features", lambda features=features: features)
        seen.add(compiler._machine_flags.__wrapped__())
    assert seen == {("-fcf-protection=none", "-mavx2", "-mfma"), ("-fcf-protection=none",)}
