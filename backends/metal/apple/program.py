"""A loaded program: its pipelines, and how its steps are encoded."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from smelt.ir import dtypes

from ...gpu.manifest import ArrayInfo, KernelInfo, Launch, Manifest, OwnText
from ...gpu.steps import Where, walk
from .errors import MetalCompileError, MetalRunError
from .memory import Block
from .order import Hazards, barriers
from .recording import Recording, autorelease_pool

if TYPE_CHECKING:
    from .device import AppleDevice


#: So many launches go to a command buffer of a loop: the GPU begins with it while the next is encoded.
LAUNCHES = 256


class AppleProgram:
    """Compiled kernels and the order of their launches. Made by `AppleDevice.load`.

    Attributes:
        manifest: what it was loaded from.
        last_gpu_seconds: what the last `run` took on the GPU.
        barriers: whether a barrier stands before each launch, of a program without loops and branches.
    """

    def __init__(self, device: AppleDevice, manifest: Manifest, pipelines: Mapping[str, Any]):
        self._device, self.manifest = device, manifest
        self.last_gpu_seconds = 0.0
        make = device._metal.MTLSizeMake
        self._entries = list(dict.fromkeys(launch.entry for launch in manifest.launches))
        self._kernels = {
            k.entry: _Kernel(k, pipelines[k.entry], make(*(k.own.grid if k.own else k.threadgroups)), make(*k.threads))
            for k in manifest.kernels
        }
        for launch in manifest.launches:
            kernel = self._kernels[launch.entry].info
            if len(kernel.buffers) != len(launch.buffers):
                raise MetalCompileError(
                    f"kernel {kernel.entry!r} has {len(kernel.buffers)} buffers, a launch gives {len(launch.buffers)}"
                )
        self._scope = device._metal.MTLBarrierScopeBuffers
        self.barriers = barriers(manifest) if manifest.is_static else ()
        self._encoded: list[_Encoded] = []
        if manifest.is_static:
            state = _Encoder(self._kernels)
            found = [state.encoded(launch, places) for launch, places in walk(manifest, _no_reads)]
            self._encoded = [x for x in found if x is not None]

    def run(self, arguments: Sequence[Block], results: Sequence[Block], arena: Block | None = None) -> None:
        """Launch all kernels and wait for them.

        Launches of loops are encoded one after the other, without waiting for the GPU; where a condition or
        the number of a branch is needed, the GPU is waited for.

        Args:
            arguments, results: one block each, in the manifest's order. A result may be the block of an
                argument or of another result.
            arena: at least the manifest's `arena_bytes`; None where that is 0.

        Raises:
            MetalRunError: blocks are missing or too small, or the GPU reported an error.
            MemoryError: the GPU ran out of memory.
        """
        self._check(arguments, results, arena)
        if not self.manifest.steps or (self.manifest.is_static and not self._encoded):
            return
        tables: dict[str, Sequence[Any]] = {"argument": arguments, "result": results, "arena": [arena]}
        # Barriers are planned for separate buffers; where a block has two roles, the order decides.
        serial = _share(arguments, results)
        with autorelease_pool():
            recording = self._device.record(self._entries, serial)
            try:
                if self.manifest.is_static:
                    for launch in self._encoded:
                        self._encode(recording.encoder, launch, tables, serial)
                    self.last_gpu_seconds = recording.wait()
                else:
                    self.last_gpu_seconds = self._run_steps(recording, tables, serial)
            finally:
                recording.close()

    def _run_steps(self, recording: Recording, tables: Mapping[str, Sequence[Any]], serial: bool) -> float:
        seconds = 0.0
        state = _Encoder(self._kernels)
        count = 0

        def read(where: Where, nbytes: int) -> int:
            nonlocal seconds, state
            kind, index, offset = where
            seconds += recording.wait()
            state = _Encoder(self._kernels)
            found = bytes(tables[kind][index].array[offset : offset + nbytes])
            return int.from_bytes(found, sys.byteorder, signed=True)

        for launch, places in walk(self.manifest, read):
            encoded = state.encoded(launch, places)
            if encoded is None:
                continue
            self._encode(recording.encoder, encoded, tables, serial)
            count += 1
            if count % LAUNCHES == 0:
                recording.commit()
                state = _Encoder(self._kernels)
        return seconds + recording.wait()

    def _encode(self, encoder: Any, launch: _Encoded, tables: Mapping[str, Sequence[Any]], serial: bool) -> None:
        wait, pipeline, changes, size, threads, own = launch
        if wait and not serial:
            encoder.memoryBarrierWithScope_(self._scope)
        if pipeline is not None:
            encoder.setComputePipelineState_(pipeline)
        for (kind, number, offset), index in changes:
            encoder.setBuffer_offset_atIndex_(tables[kind][number].handle, offset, index)
        if own is None:
            encoder.dispatchThreadgroups_threadsPerThreadgroup_(size, threads)
            return
        for constant in own.constants:
            encoder.setBytes_length_atIndex_(constant.bytes, len(constant.bytes), constant.index)
        encoder.dispatchThreads_threadsPerThreadgroup_(size, threads)

    def _check(self, arguments: Sequence[Block], results: Sequence[Block], arena: Block | None) -> None:
        manifest = self.manifest
        for what, blocks, infos in (
            ("argument", arguments, manifest.arguments),
            ("result", results, manifest.results),
        ):
            if len(blocks) != len(infos):
                raise MetalRunError(f"{manifest.name} has {len(infos)} {what}s, got {len(blocks)} blocks")
            for block, info in zip(blocks, infos):
                if block.nbytes < _nbytes(info):
                    raise MetalRunError(
                        f"{what} {info.name} of {manifest.name} is {info.dtype}{list(info.shape)}, "
                        f"{_nbytes(info)} bytes; its block has {block.nbytes}"
                    )
        if manifest.arena_bytes > (arena.nbytes if arena else 0):
            have = f"has {arena.nbytes}" if arena else "is missing"
            raise MetalRunError(f"{manifest.name} needs an arena of {manifest.arena_bytes} bytes; it {have}")


class _Kernel(NamedTuple):
    """A kernel and what Metal knows of it. `size`: in threadgroups, of a user's kernel in threads."""

    info: KernelInfo
    pipeline: Any
    size: Any
    threads: Any


#: Barrier before it, pipeline to set, buffers to bind (where, index), size, threads, a text of its own.
_Encoded = tuple[bool, Any, list[tuple[Where, int]], Any, Any, OwnText | None]


class _Encoder:
    """What is bound in an encoder, and what launches since its last barrier touch: it says what changes."""

    def __init__(self, kernels: Mapping[str, _Kernel]):
        self._kernels = kernels
        self._hazards = Hazards()
        self._bound: dict[int, Where] = {}
        self._entry = ""

    def encoded(self, launch: Launch, places: Sequence[Where]) -> _Encoded | None:
        """What to encode for a launch; None: nothing."""
        info, pipeline, size, threads = self._kernels[launch.entry]
        if 0 in info.threadgroups or 0 in info.threads:
            return None
        wait = self._hazards.needs_barrier(places, info.buffers)
        changes = [(where, b.index) for b, where in zip(info.buffers, places) if self._bound.get(b.index) != where]
        self._bound |= {index: where for where, index in changes}
        if launch.entry == self._entry:
            pipeline = None
        self._entry = launch.entry
        if info.own is not None:
            for constant in info.own.constants:
                self._bound.pop(constant.index, None)
        return wait, pipeline, changes, size, threads, info.own


def _no_reads(where: Where, nbytes: int) -> int:
    raise AssertionError("a program without loops and branches reads nothing")


def _share(arguments: Sequence[Block], results: Sequence[Block]) -> bool:
    """Whether a result has the memory of an argument or of another result."""
    written = {id(b.handle) for b in results}
    return len(written) < len(results) or any(id(b.handle) in written for b in arguments)


def _nbytes(info: ArrayInfo) -> int:
    return math.prod(info.shape) * dtypes.by_name(info.dtype).size
