"""The same kernels as in metal/test_simulator.py through NVRTC, and on an NVIDIA GPU where there is one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import smelt
from smelt.backends.cuda import driver
from smelt.backends.cuda.compiler import compile_cubin
from smelt.backends.cuda.source import cuda_source
from smelt.ir.errors import DeviceError
from tests.backends.metal import test_simulator as simulator
from tests.backends.metal.harness import metal_text

from .needs import needs_gpu, needs_nvrtc

TEXTS = ("ELEMENTWISE", "SOFTMAX", "SCAN", "MATMUL", "CONVERSIONS", "FUNCTIONS", "SIMD")


def launch(text: str, entry: str, arrays: Sequence[np.ndarray], threadgroups: int, threads: int) -> list[np.ndarray]:
    """The arrays after the launch."""
    source, _ = cuda_source(simulator.HEAD + text, {entry: (threads, 1, 1)})
    module = driver.Module(compile_cubin(source, driver.architecture()))
    memories = [driver.Memory(a.nbytes) for a in arrays]
    for memory, array in zip(memories, arrays):
        memory.write(np.ascontiguousarray(array).ctypes.data)
    module.launch(entry, [m.address for m in memories], (threadgroups, 1, 1), (threads, 1, 1))
    driver.synchronize()
    results = [np.empty_like(a) for a in arrays]
    for memory, result in zip(memories, results):
        memory.read(result.ctypes.data)
        memory.free()
    module.unload()
    return results


def test_source() -> None:
    source, entries = cuda_source(simulator.HEAD + simulator.SOFTMAX, {"softmax": (128, 1, 1)})
    assert "__shared__ float part[32];" in source
    assert (
        'extern "C" __global__ __launch_bounds__(128) void softmax(void* buffer_0, void* buffer_1, void* buffer_2)'
        in source
    )
    assert "__builtin_assume(blockDim.x == 128 && threadIdx.x < 128 && blockDim.y == 1" in source
    assert list(entries) == ["softmax"] and [p.index for p in entries["softmax"].buffers()] == [0, 1, 2]


def test_loads_of_an_unrolled_loop_come_first() -> None:
    """A loop that only loads ends in a barrier for the compiler; its lines stay where they are."""
    text = metal_text(lambda x: smelt.softmax(x, axis=0), smelt.ShapeDtype((3000, 21), smelt.float32))
    source, _ = cuda_source(text, aligned=True)
    marked = [line.strip() for line in source.splitlines() if "SMELT_LOADED" in line and "#define" not in line]
    assert marked == ["} SMELT_LOADED"] * 2, "the chunks of the statistics, and of what is computed from them"
    assert source.count("\n") == cuda_source(text)[0].count("\n") + 2, "two definitions"


@needs_nvrtc
@pytest.mark.parametrize("name", TEXTS)
def test_compiles(name: str) -> None:
    source, _ = cuda_source(simulator.HEAD + getattr(simulator, name))
    assert compile_cubin(source)[:4] == b"\x7fELF"


@needs_nvrtc
def test_message_of_nvrtc() -> None:
    source, _ = cuda_source("kernel void k(device float* x [[buffer(0)]]) { x[0] = undeclared; }")
    with pytest.raises(DeviceError, match=r"kernel.metal\(1\).*undeclared"):
        compile_cubin(source)


@needs_gpu
def test_gpu_agrees_with_simulator() -> None:
    rng = np.random.default_rng(0)

    def both(text: str, entry: str, arrays: list[np.ndarray], threadgroups: int, threads: int, rtol: float) -> None:
        on_gpu = launch(text, entry, arrays, threadgroups, threads)
        simulator.launch(text, entry, arrays, threadgroups, threads)
        for a, b in zip(on_gpu, arrays):
            if rtol:
                np.testing.assert_allclose(
                    a.astype(np.float64), b.astype(np.float64), rtol=rtol, atol=rtol, err_msg=entry
                )
            else:
                np.testing.assert_array_equal(a, b, err_msg=entry)

    x = rng.standard_normal((7, 301), dtype=np.float32)
    both(simulator.SOFTMAX, "softmax", [x, np.zeros_like(x), np.uint32([301])], 7, 128, 1e-6)
    both(simulator.ELEMENTWISE, "vectors", [x.ravel()[:1000].copy(), np.zeros(1000, np.float32)], 1, 250, 1e-6)
    n = rng.integers(-1000, 1000, 256, dtype=np.int32)
    both(simulator.SCAN, "scan", [n, np.zeros_like(n)], 1, 256, 0)
    both(simulator.SCAN, "bitonic", [rng.integers(0, 1 << 32, 256, dtype=np.uint32)], 1, 256, 0)
    bytes_ = rng.integers(0, 256, 1024, dtype=np.uint8)
    both(simulator.SCAN, "histogram", [bytes_, np.zeros(17, np.uint32), np.zeros(1, np.float32)], 4, 256, 0)
    both(simulator.FUNCTIONS, "integers", [np.zeros(32, np.uint32)], 1, 1, 0)
    for name, dtype in (("float", np.float32), ("half", np.float16)):
        a, b = rng.standard_normal((16, 40)).astype(dtype), rng.standard_normal((40, 16)).astype(dtype)
        arrays = [a, b, np.zeros((16, 16), dtype), np.uint32([16, 16, 40, 0])]
        both(simulator.MATMUL, f"product_{name}", arrays, 1, 128, 2e-3 if name == "half" else 1e-6)
