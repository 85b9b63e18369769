"""The simulator: planted mistakes that it must catch, and its compiler and cache."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

import numpy as np
import pytest

from smelt.backends.metal.simulator import Library, Options, SimulatorError, compiler
from smelt.ir.settings import override
from tests.backends.metal.test_simulator import ELEMENTWISE, HEAD, fails, launch

rng = np.random.default_rng(0)


MISTAKES = """
kernel void missing(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
    uint i [[thread_position_in_threadgroup]]) {
  threadgroup float shared[64];
  shared[i] = x[i];
  y[i] = shared[63 - i];
}
kernel void outside(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  y[i + 1] = x[i];
}
kernel void before(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  y[int(i) - 5] = x[i];
}
kernel void large(device float* y [[buffer(0)]],
    uint i [[thread_position_in_grid]]) {
  threadgroup float a[33 * 256];
  a[i] = 1.0f; threadgroup_barrier(mem_flags::mem_threadgroup); y[i] = a[i];
}
kernel void divergent(device float* y [[buffer(0)]],
    uint i [[thread_position_in_grid]]) {
  if (i < 40) threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = 1.0f;
}
kernel void different(device float* y [[buffer(0)]],
    uint i [[thread_position_in_grid]]) {
  if (i < 40) { threadgroup_barrier(mem_flags::mem_threadgroup); y[i] = 2.0f; }
  else
    threadgroup_barrier(mem_flags::mem_none);
  y[i] = 1.0f;
}
kernel void uninitialised(device float* y [[buffer(0)]],
    uint i [[thread_position_in_grid]]) {
  threadgroup float a[64];
  if (i % 2) a[i] = 1.0f;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = a[i];
}
kernel void misaligned(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  *(device float4*)(y + i) = *(device const float4*)(x + 1);
}
kernel void copies_vectors(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  *(device float4*)(y + 4 * i) = *(device const float4*)(x + 4 * i);
}
kernel void overrun(device float* y [[buffer(0)]],
    uint i [[thread_position_in_grid]]) {
  threadgroup float a[64];
  threadgroup float* p = a;
  p[i * 4] = 1.0f;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = p[i];
}
kernel void divides(device int* y [[buffer(0)]],
    uint i [[thread_position_in_grid]]) { y[i] = 7 / y[i]; }
kernel void part(device float* y [[buffer(0)]],
    uint i [[thread_position_in_grid]]) {
  simdgroup_float8x8 a = make_filled_simdgroup_matrix<float, 8, 8>(1.0f);
  if (i < 7) simdgroup_store(a, y, 8);
}
"""


def test_missing_barrier() -> None:
    x = rng.standard_normal(64, dtype=np.float32)
    results = []
    for options in [Options(poison=True), Options("reverse", poison=True), Options("shuffled", 1, poison=True)]:
        y = np.zeros(64, np.float32)
        launch(MISTAKES, "missing", [x, y], 1, 64, options)
        results.append(y)
    assert not np.array_equal(results[0], results[1])
    assert np.isnan(results[0]).any()


@pytest.mark.parametrize("enabled", [False, True])
def test_accesses_out_of_bounds(enabled: bool) -> None:
    import faulthandler

    was = faulthandler.is_enabled()
    if enabled and sys.__stderr__ is not None:
        faulthandler.enable(sys.__stderr__)
    try:
        x, y = np.ones(1024, np.float32), np.zeros(1024, np.float32)
        said = fails(MISTAKES, "outside", [x, y], 4, 256, Options(guard=True))
        assert "'outside'" in said and "byte 4096 of buffer(1) 'y', which has 4096 bytes" in said, said
        assert "threadgroup (3, 0, 0), thread (255, 0, 0)" in said
        assert "buffer(1)" in fails(MISTAKES, "before", [x, y], 4, 256, Options(guard=True))
        # Within the 16 bytes that alignment may leave free.
        said = fails(MISTAKES, "outside", [x[:1022], y[:1022]], 1022 // 2, 2, Options(guard=True))
        assert "store out of bounds at byte 4088 of buffer(1)" in said, said
    finally:
        if enabled and not was:
            faulthandler.disable()
    launch(ELEMENTWISE, "vectors", [x, y], 1, 256)


def test_addresses_that_nothing_has() -> None:
    x = np.ones(4, np.float32)
    with pytest.raises(SimulatorError, match="access to address"):
        Library(HEAD + MISTAKES).launch("outside", {0: (x.ctypes.data, 16), 1: (8, 16)}, (1, 1, 1), (4, 1, 1))


def test_threadgroup_memory() -> None:
    y = np.zeros(64, np.float32)
    assert "33792 bytes of threadgroup memory, of which there are 32768" in fails(MISTAKES, "large", [y], 1, 64)
    launch(MISTAKES, "uninitialised", [y], 1, 64, Options(poison=True))
    assert np.isnan(y[::2]).all() and (y[1::2] == 1).all()
    said = fails(MISTAKES, "overrun", [y], 1, 64, Options(guard=True))
    assert "byte 256 of threadgroup memory that has 256 bytes" in said, said


def test_divergent_barriers() -> None:
    y = np.zeros(64, np.float32)
    said = fails(MISTAKES, "divergent", [y], (2, 1), 64)
    assert "divergent barrier: 40 threads wait at line" in said and "24 have finished" in said
    assert "others at line" in fails(MISTAKES, "different", [y], 1, 64)
    assert "simdgroup matrix operation" in fails(MISTAKES, "part", [y], 1, 32)


def test_misaligned_vector() -> None:
    x, y = np.zeros(64, np.float32), np.zeros(64, np.float32)
    assert "misaligned" in fails(MISTAKES, "misaligned", [x, y], 1, 16, Options(guard=True))


def test_buffers_that_are_bound_between_vectors() -> None:
    """Parts of a buffer keep their alignment between the fences."""
    raw = np.zeros(80, np.float32)
    whole = raw[-(raw.ctypes.data // 4) % 4 :]
    y = np.zeros(16, np.float32)
    launch(MISTAKES, "copies_vectors", [whole[4:20], y], 1, 4, Options(guard=True))
    for shift in (1, 2, 3):
        said = fails(MISTAKES, "copies_vectors", [whole[shift : shift + 16], y], 1, 4, Options(guard=True))
        assert "misaligned" in said


def test_division_by_zero() -> None:
    if platform.machine() == "x86_64":  # elsewhere it does not trap
        assert "division by zero" in fails(MISTAKES, "divides", [np.zeros(4, np.int32)], 1, 4)


def test_launches_that_do_not_fit() -> None:
    y = np.zeros(64, np.float32)
    assert "more than 1024" in fails(MISTAKES, "large", [y], 1, (64, 32))
    assert "y [[buffer(1)]] is not bound" in fails(MISTAKES, "outside", [y], 1, 64)
    assert "no kernel 'nothing'" in fails(MISTAKES, "nothing", [y], 1, 64)
    with pytest.raises(SimulatorError, match=r"kernel.metal:3:.*error"):
        Library(HEAD + "kernel void k(device float* x [[buffer(0)]]) { x[0] = undeclared; }")


# ---- The compiler --------------------------------------------------------------------------------------


def test_no_compiler() -> None:
    with override(cxx="/nowhere/c++"), pytest.raises(SimulatorError, match="pip install ziglang"):
        compiler.compiler()


def test_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "kernel void k(device float* x [[buffer(0)]]) { x[0] = %d; }"
    x = np.zeros(1, np.float32)
    with override(cache_dir=str(tmp_path)):
        launch(text % 101, "k", [x], 1, 1)
        assert x[0] == 101
        first = {p.name for p in (tmp_path / "simulator").glob("*.so")}
        launch(text % 102, "k", [x], 1, 1)
        assert len(list((tmp_path / "simulator").glob("*.so"))) == len(first) + 1
        monkeypatch.setattr(compiler, "CACHE_BYTES", 0)
        monkeypatch.setattr(compiler, "_compiled_since_check", 64)
        old = list((tmp_path / "simulator").glob("*.so"))
        for path in old:
            if not path.name.startswith("runtime-"):
                os.utime(path, (1, 1))
        launch(text % 103, "k", [x], 1, 1)
        assert x[0] == 103
        assert [p.exists() for p in old] == [p.name.startswith("runtime") for p in old]
