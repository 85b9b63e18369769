"""Simdgroup matrices on a GPU with tensor cores: the text as CUDA, and its values where there is one."""

from __future__ import annotations

import re
import shutil
from types import SimpleNamespace

import numpy as np
import pytest

import smelt
from smelt.backends import store
from smelt.backends.cuda import compiler
from smelt.backends.cuda.compiler import compile_cubin
from smelt.backends.cuda.source import cuda_source
from smelt.ir.errors import DeviceError
from smelt.runtime.disk import disk
from tests.backends.metal.harness import metal_text

from .needs import needs_gpu, needs_nvrtc


def product(dtype: str, transposed: bool = False) -> str:
    """The text of a product for NVIDIA's tiles."""
    shape = smelt.ShapeDtype((2048, 2048), dtype)
    return metal_text(lambda x, y: x @ (y.T if transposed else y), shape, shape, gpu="nvidia")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("transposed", [False, True])
def test_pairs_and_fours(dtype: str, transposed: bool) -> None:
    text = product(dtype, transposed)
    source, _ = cuda_source(text, aligned=True)
    calls = re.findall(r"multiply_accumulate_pairs\(([^)]*)\)", source)
    assert 4 * len(calls) == text.count("simdgroup_multiply_accumulate(") > 0
    assert "simdgroup_multiply_accumulate(" not in source and "simdgroup_load(" not in source
    rights = set(re.findall(r"smelt::Right<\w+> (\w+);", source))
    assert rights == {name for call in calls for name in call.split(", ")[4::3]}
    fours = re.findall(r"simdgroup_load_four\((\w+, \w+, \w+, \w+),", source)
    assert sorted(name for four in fours for name in four.split(", ")) == sorted(
        re.findall(r"simdgroup_load\((\w+),", text)
    )
    # A lane's registers are those of one instruction, in its order.
    left = [", ".join((a, b, c, d)) for _, _, a, b, _, c, d, _ in (call.split(", ") for call in calls)]
    assert set(left) <= set(fours)


def test_other_texts_are_left_alone() -> None:
    head = "#include <metal_stdlib>\nusing namespace metal;\nkernel void f(device half* x [[buffer(0)]]) {\n"
    four = (
        "    simdgroup_multiply_accumulate(s, a, b, s);\n    simdgroup_multiply_accumulate(t, c, b, t);\n"
        "    simdgroup_multiply_accumulate(s, d, e, s);\n    simdgroup_multiply_accumulate(t, f, e, t);\n"
    )
    same = four.replace("(t,", "(s,").replace(" t)", " s)")
    used = four + "    simdgroup_store(b, x);\n"
    names = "    simdgroup_half8x8 a, c, d, f;\n    simdgroup_half8x8 b;\n    simdgroup_half8x8 e;\n"
    load = "    simdgroup_load(b, x);\n    simdgroup_load(e, x);\n"
    whole = cuda_source(head + names + load + four + "}\n")[0]
    assert "multiply_accumulate_pairs(s, t, a, c, b, d, f, e)" in whole and whole.count("smelt::Right<half>") == 2
    assert "multiply_accumulate_pairs" not in cuda_source(head + names + load + same + "}\n")[0]
    stored = cuda_source(head + names + load + used + "}\n")[0]
    assert stored.count("smelt::Right<half>") == 1 and "smelt::Right<half> e;" in stored
    assert "load_four" not in stored


def test_vectors_that_need_no_registers() -> None:
    """What loops bring from a buffer to threadgroup memory, and nowhere else, goes by itself; barriers wait for it."""
    head = (
        "#include <metal_stdlib>\nusing namespace metal;\nkernel void f(device const float* x [[buffer(0)]], "
        "device float* y [[buffer(1)]]) {\n    alignas(16) threadgroup float t[64];\n"
    )
    fetched = "    float4 v = *(device const float4*)(x + 4u);\n    uint at = 8u;\n"
    moved = fetched + "    *(threadgroup float4*)(t + at) = v;\n"
    whole = "    *(threadgroup float4*)(t + 8u) = *(device const float4*)(x + (4u));\n"
    barrier = "    threadgroup_barrier(mem_flags::mem_threadgroup);\n"

    def repeated(text: str) -> str:
        return "    for (uint i = 0u; i < 4u; i++) {\n" + re.sub("^", "    ", text, flags=re.M).rstrip(" ") + "    }\n"

    for text in (moved, whole):
        source = cuda_source(head + repeated(text + barrier) + "}\n", aligned=True)[0]
        assert "smelt::copy_meanwhile(" in source and "smelt::await_copies(), threadgroup_barrier(" in source
    read = "    y[0] = v.x;\n"
    elsewhere = "    *(device float4*)(y + 8u) = *(device const float4*)(x + 4u);\n"
    kept = (moved + barrier + read, elsewhere + barrier, barrier)
    for text in (*map(repeated, kept), moved + barrier, whole + barrier):
        source = cuda_source(head + text + "}\n", aligned=True)[0]
        assert "copy_meanwhile" not in source and "await_copies" not in source
    assert "copy_meanwhile" not in cuda_source(head + repeated(whole + barrier) + "}\n")[0]


@needs_nvrtc
@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize(
    ("dtype", "arch"),
    [("float32", "sm_90"), ("float16", "sm_75"), ("float16", "sm_90"), ("bfloat16", "sm_80"), ("bfloat16", "sm_90")],
)
def test_compiles(dtype: str, arch: str, aligned: bool) -> None:
    assert compile_cubin(cuda_source(product(dtype), aligned=aligned)[0], arch)


@needs_gpu
@pytest.mark.parametrize("dtype", [smelt.float16, smelt.bfloat16])
@pytest.mark.parametrize("shape", [(512, 512, 512), (130, 70, 200), (1000, 1024, 1030), (64, 4096, 64)], ids=str)
def test_values(shape: tuple[int, int, int], dtype: smelt.Dtype) -> None:
    m, k, n = shape
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((m, k)), rng.standard_normal((k, n))
    with smelt.stream(smelt.Device("cuda")):
        a, b = smelt.array(x).astype(dtype), smelt.array(y).astype(dtype)
        found = [np.asarray(f(a, b).astype(smelt.float32)) for f in (lambda a, b: a @ b, lambda a, b: (b.T @ a.T).T)]
    want = np.asarray(a.astype(smelt.float32), np.float64) @ np.asarray(b.astype(smelt.float32), np.float64)
    for values in found:
        assert np.abs(values - want).max() <= 1e-2 * np.abs(want).max()


@needs_nvrtc
def test_machine_code_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under all that it depends on, in memory here; the runtime keeps it on disk."""
    found: dict[str, bytes] = {}
    kept = SimpleNamespace(get=found.get, put=lambda key, content: found.setdefault(key, content) is content)
    monkeypatch.setattr(store, "_place", [kept])
    source, _ = cuda_source(product("float16"))
    first = compiler.cubins([source], "sm_90")
    assert list(found.values()) == first
    monkeypatch.setattr(compiler, "compile_cubin", lambda *_: pytest.fail("compiled once more"))
    assert compiler.cubins([source, source], "sm_90") == 2 * first
    monkeypatch.setattr(compiler, "compile_cubin", lambda source, arch: b"another")
    assert compiler.cubins([source + "\n"], "sm_90") == compiler.cubins([source], "sm_80") == [b"another"]
    assert len(found) == 3


@needs_nvrtc
def test_several_are_compiled_by_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """In their order; by this process where no other can be started, or one dies; errors are NVRTC's."""
    monkeypatch.setattr(store, "_place", [])
    kernels = [f'extern "C" __global__ void k{i}(float* x) {{ x[0] = {i}; }}' for i in range(3)]
    here = [compiler.compile_cubin(kernel) for kernel in kernels]
    with monkeypatch.context() as patch:
        patch.setattr(compiler, "compile_cubin", lambda *_: pytest.fail("compiled here"))
        assert compiler.cubins(kernels, "sm_90") == here
        with pytest.raises(DeviceError, match=r'does not compile as CUDA\n.*"nothing" is undefined'):
            compiler.cubins([*kernels, 'extern "C" __global__ void f() { nothing(); }'], "sm_90")
    for python in ("no such file", shutil.which("false") or ""):
        monkeypatch.setattr(compiler.sys, "executable", python)
        assert compiler.cubins(kernels, "sm_90") == here


def test_the_runtime_keeps_machine_code_on_disk() -> None:
    assert store._place == [disk]
