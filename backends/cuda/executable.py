"""The device ``cuda``: Metal's texts on an NVIDIA GPU. Launches do not wait; values are waited for."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from smelt.ir import dtypes, locks
from smelt.ir.aval import Aval
from smelt.ir.ops.constants import constant_array

from ..buffer import Buffer
from ..gpu.executable import GpuExecutable, HostCall
from ..gpu.manifest import KernelInfo, Manifest, Size
from ..gpu.steps import Where, walk
from . import driver
from .compiler import cubin
from .memory import MEMORY
from .source import cuda_source

_Tables = Mapping[str, Sequence[Any]]


_compiling = locks.lock()


@functools.lru_cache(maxsize=256)
def _code(text: str, threads: tuple[tuple[str, Size], ...], dispatched: bool) -> driver.Module:
    source, _ = cuda_source(text, dict(threads), dispatched, aligned=not dispatched)
    return driver.Module(cubin(source, driver.architecture()))


def code(text: str, threads: Mapping[str, Size], dispatched: bool = False) -> driver.Module:
    """A text's kernels on the GPU. Those compiled before are remembered.

    Args:
        threads: of a threadgroup, by kernel; dispatched: whether grids may be no multiples of them.

    Raises:
        DeviceError: NVRTC is not installed, or refuses the text.
    """
    with _compiling:
        return _code(text, tuple(sorted(threads.items())), dispatched)


class CudaProgram:
    """Compiled kernels and the order of their launches."""

    def __init__(self, text: str, manifest: Manifest):
        own = [kernel.entry for kernel in manifest.kernels if kernel.own is not None]
        threads = {kernel.entry: kernel.threads for kernel in manifest.kernels if kernel.own is None}
        module = code(text, threads) if threads else None
        self._steps = manifest.steps
        self._kernels: dict[str, _Kernel] = {}
        for kernel in manifest.kernels:
            found = module if kernel.entry not in own else _own_code(kernel)
            assert found is not None
            self._kernels[kernel.entry] = _Kernel(kernel, found)

    def run(self, arguments: Sequence[Buffer], results: Sequence[Buffer], arena: Buffer | None) -> None:
        """Launch everything. Where a loop or a branch asks for a value, what was launched is waited for."""
        tables: _Tables = {"argument": arguments, "result": results, "arena": [arena]}

        def read(where: Where, nbytes: int) -> int:
            kind, index, offset = where
            number: int = tables[kind][index].home.memory.number(offset, nbytes)
            return number

        for launch, places in walk(self._steps, read):
            self._kernels[launch.entry].launch([tables[kind][n].home.address + offset for kind, n, offset in places])


class _Kernel:
    """A kernel, and the constants it is launched with, which lie on the GPU."""

    def __init__(self, info: KernelInfo, module: driver.Module):
        self.info, self.module = info, module
        own = info.own
        constants = () if own is None else own.constants
        self._order = [b.index for b in info.buffers] + [c.index for c in constants]
        self._constants = [_on_gpu(c.bytes) for c in constants]

    def launch(self, addresses: Sequence[int]) -> None:
        info, own = self.info, self.info.own
        if own is None:
            if 0 not in info.threadgroups:
                self.module.launch(info.entry, addresses, info.threadgroups, info.threads)
            return
        bound = dict(zip(self._order, [*addresses, *(c.home.address for c in self._constants)]))
        self.module.dispatch(own.function, [bound[i] for i in sorted(bound)], own.grid, info.threads)


def _own_code(kernel: KernelInfo) -> driver.Module:
    assert kernel.own is not None
    return code(kernel.own.text, {kernel.own.function: kernel.threads} if _is_whole(kernel) else {}, dispatched=True)


def _is_whole(kernel: KernelInfo) -> bool:
    """Whether all threadgroups of a user's kernel are full."""
    return kernel.own is not None and all(n % t == 0 for n, t in zip(kernel.own.grid, kernel.threads))


def _on_gpu(content: bytes) -> Buffer:
    array = np.frombuffer(content, np.uint8)
    return MEMORY.adopt(Buffer.of(array, Aval(array.shape, dtypes.uint8)))


class StagedCall(HostCall):
    """A function on the CPU: what it reads is fetched from the GPU, and what it writes is sent there."""

    def run(self, arguments: Sequence[Buffer], results: Sequence[Buffer], arena: Buffer | None) -> None:
        tables: _Tables = {"argument": arguments, "result": results, "arena": [arena]}
        inputs = []
        for place, aval in self.segment.arguments:
            staged = Buffer.empty(aval)
            tables[place.kind][place.index].home.memory.read(staged.address, aval.nbytes, place.offset)
            inputs.append(staged)
        outputs = [Buffer.empty(aval) for _, aval in self.segment.results]
        self.call(inputs, outputs)
        for (place, aval), staged in zip(self.segment.results, outputs):
            tables[place.kind][place.index].home.memory.write(staged.address, aval.nbytes, place.offset)


class CudaExecutable(GpuExecutable):
    """Programs of ``cuda``."""

    host_call = StagedCall

    def load(self, text: str, manifest: Manifest) -> CudaProgram:
        return CudaProgram(text, manifest)


def launch(
    text: str, entry: str, inputs: Sequence[Buffer | bytes], results: Sequence[Aval], init_value: Any,
    grid: Size, threads: Size,
) -> list[Buffer]:  # fmt: skip
    """Run one kernel of a user's text; what it writes. See `smelt.backends.metal.simulated.launch`.

    Raises:
        DeviceError: the text does not compile, or there is no GPU.
    """
    module = code(text, {}, dispatched=True)
    found = []
    for aval in results:
        if init_value is None:
            found.append(MEMORY.empty(aval))
        else:
            array = np.full(aval.shape, constant_array(init_value, aval.dtype))
            block = MEMORY.adopt(Buffer.of(array, aval)).home
            found.append(Buffer.at(aval, block))
    given = [_on_gpu(x) if isinstance(x, bytes) else MEMORY.adopt(x) for x in inputs]
    module.dispatch(entry, [b.home.address for b in (*given, *found)], grid, threads)
    return found


def details() -> dict[str, str | int]:
    """What is known of the GPU."""
    free, total = driver.memory_info()
    return {
        "device_name": driver.gpu_name(), "architecture": driver.architecture(), "memory_size": total,
        "free_memory": free,
    }  # fmt: skip
