"""A stand-in for PyObjC's ``Metal`` that runs kernels in the simulator and holds its user to Metal's rules.

The methods have PyObjC's names and argument counts (`metal_signatures.json` is what they are held against):
``error`` arguments are given as None and come back in a tuple. A breach of a rule that would make Metal
abort or give garbage raises `MetalRuleError`. Launches of a concurrent encoder run in the reverse order
between two barriers, so that a barrier too few shows in the values.
"""

from __future__ import annotations

import ctypes
import mmap
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from smelt.ir.errors import SmeltError


class MetalRuleError(Exception):
    """Metal would have aborted the process."""


class MTLSize(NamedTuple):
    width: int
    height: int
    depth: int


class FakeMetal:
    """A module-like object.

    Args:
        library: what compiles a text: `smelt.backends.metal.simulator.Library` or something with its
            `entries` and `launch`.
        memory: bytes that the device has.
        max_threads, lanes: what pipelines answer.
        device: whether the machine has one.

    Attributes:
        counts: how often each method was called.
        events: the calls on encoders in order, with what matters of their arguments.
        failure: (code, text) with which the next command buffer fails.
    """

    MTLResourceStorageModeShared = 0
    MTLLanguageVersion3_1 = 196609
    MTLMathModeSafe = 0
    MTLDispatchTypeSerial = 0
    MTLDispatchTypeConcurrent = 1
    MTLBarrierScopeBuffers = 1
    MTLCommandBufferStatusNotEnqueued = 0
    MTLCommandBufferStatusCommitted = 2
    MTLCommandBufferStatusCompleted = 4
    MTLCommandBufferStatusError = 5
    MTLCommandBufferErrorOutOfMemory = 8
    MTLSize = MTLSize

    def __init__(self, library: Callable[[str], Any], memory: int = 1 << 30, max_threads: int = 1024, lanes: int = 32,
                 device: bool = True):  # fmt: skip
        self.compile = library
        self.memory, self.max_threads, self.lanes = memory, max_threads, lanes
        self.counts: Counter[str] = Counter()
        self.events: list[tuple[Any, ...]] = []
        self.failure: tuple[int, str] | None = None
        self.allocated = 0
        self.options: list[CompileOptions] = []
        self._device = Device(self) if device else None
        module = self

        class Options(CompileOptions):
            @staticmethod
            def new() -> CompileOptions:
                made = Options()
                module.options.append(made)
                return made

        self.MTLCompileOptions = Options

    def MTLCreateSystemDefaultDevice(self) -> Any:
        return self._device

    @staticmethod
    def MTLSizeMake(width: int, height: int, depth: int) -> Any:
        return MTLSize(width, height, depth)


class CompileOptions:
    """An MTLCompileOptions."""

    version: int | None = None
    mode: int | None = None

    def setLanguageVersion_(self, version: int) -> None:
        self.version = version

    def setMathMode_(self, mode: int) -> None:
        self.mode = mode


class Error:
    """An NSError."""

    def __init__(self, domain: str, code: int, text: str):
        self._domain, self._code, self._text = domain, code, text

    def domain(self) -> str:
        return self._domain

    def code(self) -> int:
        return self._code

    def localizedDescription(self) -> str:
        return self._text


def _none(error: Any) -> None:
    if error is not None:
        raise MetalRuleError("PyObjC wants None for an argument that is returned")


class Device:
    """An MTLDevice."""

    def __init__(self, metal: FakeMetal):
        self.metal = metal

    def name(self) -> str:
        return "Fake M1"

    def maxThreadsPerThreadgroup(self) -> MTLSize:
        return MTLSize(1024, 1024, 1024)

    def recommendedMaxWorkingSetSize(self) -> int:
        return self.metal.memory

    def maxBufferLength(self) -> int:
        return self.metal.memory // 2

    def newCommandQueue(self) -> Queue:
        self.metal.counts["newCommandQueue"] += 1
        return Queue(self.metal)

    def newBufferWithLength_options_(self, length: int, options: int) -> Buffer | None:
        self.metal.counts["newBufferWithLength_options_"] += 1
        if options != FakeMetal.MTLResourceStorageModeShared:
            raise MetalRuleError("the CPU sees shared storage only")
        if length <= 0 or length > self.maxBufferLength() or self.metal.allocated + length > self.metal.memory:
            return None
        return Buffer(self.metal, length)

    def newLibraryWithSource_options_error_(self, source: str, options: Any, error: Any) -> tuple[Any, Any]:
        _none(error)
        self.metal.counts["newLibraryWithSource_options_error_"] += 1
        if options.version != FakeMetal.MTLLanguageVersion3_1 or options.mode != FakeMetal.MTLMathModeSafe:
            raise MetalRuleError("texts are compiled as Metal 3.1 in safe mode")
        try:
            return Library(self.metal, self.metal.compile(source)), None
        except SmeltError as problem:
            return None, Error("MTLLibraryErrorDomain", 3, f"program_source: error: {problem}")

    def newComputePipelineStateWithFunction_error_(self, function: Any, error: Any) -> tuple[Any, Any]:
        _none(error)
        self.metal.counts["newComputePipelineStateWithFunction_error_"] += 1
        if not isinstance(function, Function):
            raise MetalRuleError(f"{function!r} is no function")
        return Pipeline(self.metal, function), None


class Library:
    """An MTLLibrary."""

    def __init__(self, metal: FakeMetal, compiled: Any):
        self.metal, self.compiled = metal, compiled

    def newFunctionWithName_(self, name: str) -> Function | None:
        return Function(self.compiled, name) if name in self.compiled.entries else None


class Function(NamedTuple):
    """An MTLFunction."""

    compiled: Any
    entry: str


class Pipeline:
    """An MTLComputePipelineState."""

    def __init__(self, metal: FakeMetal, function: Function):
        self.metal, self.function = metal, function

    def maxTotalThreadsPerThreadgroup(self) -> int:
        return self.metal.max_threads

    def threadExecutionWidth(self) -> int:
        return self.metal.lanes


class Buffer:
    """An MTLBuffer over pages of its own, filled with ones: as floats, NaN."""

    def __init__(self, metal: FakeMetal, length: int):
        self.metal, self.size = metal, length
        self.pages = mmap.mmap(-1, length)
        self.pages[:] = b"\xff" * length
        metal.allocated += length

    def __del__(self) -> None:
        self.metal.allocated -= self.size

    def length(self) -> int:
        return self.size

    def contents(self) -> Contents:
        return Contents(self.pages)


class Contents:
    """PyObjC's view of a ``void *`` of unknown length."""

    def __init__(self, pages: mmap.mmap):
        self._pages = pages

    def as_buffer(self, count: int) -> memoryview:
        return memoryview(self._pages)[:count]


class Queue:
    """An MTLCommandQueue."""

    def __init__(self, metal: FakeMetal):
        self.metal = metal

    def commandBuffer(self) -> CommandBuffer:
        self.metal.counts["commandBuffer"] += 1
        return CommandBuffer(self.metal)


class CommandBuffer:
    """An MTLCommandBuffer; what it was given runs when it is waited for."""

    def __init__(self, metal: FakeMetal):
        self.metal = metal
        self.state = FakeMetal.MTLCommandBufferStatusNotEnqueued
        self.encoders: list[Encoder] = []
        self.problem: Error | None = None

    def computeCommandEncoderWithDispatchType_(self, kind: int) -> Encoder:
        self.metal.counts["computeCommandEncoderWithDispatchType_"] += 1
        if self.state != FakeMetal.MTLCommandBufferStatusNotEnqueued:
            raise MetalRuleError("an encoder after commit")
        if any(not e.ended for e in self.encoders):
            raise MetalRuleError("two encoders at once")
        self.encoders.append(Encoder(self.metal, kind))
        return self.encoders[-1]

    def commit(self) -> None:
        self.metal.counts["commit"] += 1
        if self.state != FakeMetal.MTLCommandBufferStatusNotEnqueued:
            raise MetalRuleError("committed twice")
        if any(not e.ended for e in self.encoders):
            raise MetalRuleError("commit while an encoder is open")
        self.state = FakeMetal.MTLCommandBufferStatusCommitted

    def waitUntilCompleted(self) -> None:
        self.metal.counts["waitUntilCompleted"] += 1
        if self.state != FakeMetal.MTLCommandBufferStatusCommitted:
            raise MetalRuleError("waiting for what was not committed")
        if self.metal.failure is not None:
            self.problem = Error("MTLCommandBufferErrorDomain", *self.metal.failure)
            self.metal.failure = None
            self.state = FakeMetal.MTLCommandBufferStatusError
            return
        for encoder in self.encoders:
            encoder.execute()
        self.state = FakeMetal.MTLCommandBufferStatusCompleted

    def status(self) -> int:
        return self.state

    def error(self) -> Error | None:
        return self.problem

    def GPUStartTime(self) -> float:
        return 0.0 if self.state != FakeMetal.MTLCommandBufferStatusCompleted else 10.0

    def GPUEndTime(self) -> float:
        return 0.0 if self.state != FakeMetal.MTLCommandBufferStatusCompleted else 10.5


class Encoder:
    """An MTLComputeCommandEncoder."""

    def __init__(self, metal: FakeMetal, kind: int):
        self.metal, self.kind = metal, kind
        self.ended = False
        self.pipeline: Pipeline | None = None
        self.bound: dict[int, tuple[Any, int, int]] = {}
        self.batches: list[list[Callable[[], None]]] = [[]]
        self.kept: list[Any] = []

    def _note(self, *event: Any) -> None:
        if self.ended:
            raise MetalRuleError(f"{event[0]} after endEncoding")
        self.metal.counts[event[0]] += 1
        self.metal.events.append(event)

    def setComputePipelineState_(self, pipeline: Any) -> None:
        if not isinstance(pipeline, Pipeline):
            raise MetalRuleError(f"{pipeline!r} is no pipeline")
        self._note("setComputePipelineState_", pipeline.function.entry)
        self.pipeline = pipeline

    def setBuffer_offset_atIndex_(self, buffer: Any, offset: int, index: int) -> None:
        self._note("setBuffer_offset_atIndex_", offset, index)
        if not isinstance(buffer, Buffer):
            raise MetalRuleError(f"{buffer!r} is no buffer")
        # Apple asks for the alignment of what the kernel reads there, which the simulator checks.
        if not 0 <= offset < buffer.size:
            raise MetalRuleError(f"offset {offset} in a buffer of {buffer.size} bytes")
        self.kept.append(buffer)
        address = ctypes.addressof(ctypes.c_char.from_buffer(buffer.pages))
        self._bind(index, address + offset, buffer.size - offset)

    def setBytes_length_atIndex_(self, data: bytes, length: int, index: int) -> None:
        self._note("setBytes_length_atIndex_", length, index)
        if not 0 < length <= 4096 or length != len(data):
            raise MetalRuleError(f"{length} constant bytes")
        copy = ctypes.create_string_buffer(bytes(data), length)
        self._bind(index, ctypes.addressof(copy), length, copy)

    def _bind(self, index: int, address: int, nbytes: int, keep: Any = None) -> None:
        if not 0 <= index < 31:
            raise MetalRuleError(f"buffer index {index}")
        self.bound[index] = (keep, address, nbytes)

    def memoryBarrierWithScope_(self, scope: int) -> None:
        self._note("memoryBarrierWithScope_", scope)
        if scope != FakeMetal.MTLBarrierScopeBuffers:
            raise MetalRuleError(f"barrier scope {scope}")
        self.batches.append([])

    def dispatchThreadgroups_threadsPerThreadgroup_(self, threadgroups: Any, threads: Any) -> None:
        self._note("dispatchThreadgroups_threadsPerThreadgroup_", tuple(threadgroups), tuple(threads))
        self._dispatch(threadgroups, threads, None)

    def dispatchThreads_threadsPerThreadgroup_(self, grid: Any, threads: Any) -> None:
        self._note("dispatchThreads_threadsPerThreadgroup_", tuple(grid), tuple(threads))
        groups = MTLSize(*(-(-n // t) for n, t in zip(grid, threads)))
        self._dispatch(groups, threads, tuple(grid))

    def _dispatch(self, threadgroups: Any, threads: Any, grid: Any) -> None:
        if not isinstance(threadgroups, MTLSize) or not isinstance(threads, MTLSize):
            raise MetalRuleError("sizes must be MTLSize")
        if self.pipeline is None:
            raise MetalRuleError("a dispatch without a pipeline")
        if 0 in threadgroups or 0 in threads:
            raise MetalRuleError("an empty dispatch")
        if threads.width * threads.height * threads.depth > self.metal.max_threads:
            raise MetalRuleError("too many threads")
        function, bound = self.pipeline.function, dict(self.bound)
        options = {} if grid is None else {"grid": grid}

        def launch() -> None:
            buffers = {i: (address, nbytes) for i, (_, address, nbytes) in bound.items()}
            function.compiled.launch(function.entry, buffers, tuple(threadgroups), tuple(threads), **options)

        if self.kind == FakeMetal.MTLDispatchTypeSerial:
            self.batches.append([launch])
        else:
            self.batches[-1].append(launch)

    def endEncoding(self) -> None:
        self._note("endEncoding")
        self.ended = True

    def execute(self) -> None:
        """Run what was recorded."""
        for batch in self.batches:
            for launch in reversed(batch):
                launch()
