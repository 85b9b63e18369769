"""A stand-in for PyObjC's ``Metal`` that runs kernels in the simulator and holds its user to Metal's rules.

The methods have PyObjC's names and argument counts (`metal_signatures.json` is what they are held against):
``error`` arguments are given as None and come back in a tuple. A breach of a rule that would make Metal
abort or give garbage raises `MetalRuleError`; one that is found where nobody hears an exception, as when an object
dies, is in `FakeMetal.breaches`. Launches of a concurrent encoder run in the reverse order between two barriers, so
that a barrier too few shows in the values. From its commit on until somebody waits, memory that a command buffer may
write reads as ones, and must not be written; command buffers of a queue run in the order of their commits.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from smelt.backends.metal.apple.order import element_bytes
from smelt.ir.errors import SmeltError

#: Bytes of threadgroup memory, as on every GPU of Apple's.
THREADGROUP_BYTES = 32768


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
        objc: what the runtime imports as ``objc``, if it does. Then objects that nobody releases are told apart:
            what instance methods called ``new…`` hand over stays for ever, unless the method was registered as PyObjC
            wants it, and what others hand out needs an autorelease pool.

    Attributes:
        counts: how often each method was called.
        events: the calls on encoders in order, with what matters of their arguments.
        failure: (code, text) with which the next command buffer fails.
        allocated: bytes of buffers that were not freed.
        breaches: rules that were broken where no exception can be heard.
    """

    MTLResourceStorageModeShared = 0
    MTLLanguageVersion3_1 = 196609
    MTLMathModeSafe = 0
    MTLMathFloatingPointFunctionsPrecise = 1
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
                 device: bool = True, objc: FakeObjc | None = None):  # fmt: skip
        self.compile = library
        self.memory, self.max_threads, self.lanes = memory, max_threads, lanes
        self.counts: Counter[str] = Counter()
        self.events: list[tuple[Any, ...]] = []
        self.failure: tuple[int, str] | None = None
        self.allocated = 0
        self.breaches: list[str] = []
        self.objc = objc
        self.kept: list[Any] = []
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

    def made(self, selector: bytes, thing: Any) -> Any:
        """What an instance method ``new…`` hands over."""
        facts = self.objc.registered.get(selector, {}) if self.objc else {"retval": {"already_retained": True}}
        if not facts.get("retval", {}).get("already_retained"):
            self.kept.append(thing)
        return thing

    def handed_out(self, thing: Any) -> Any:
        """What any other method returns: it lives until the pool is drained."""
        if self.objc is not None and not self.objc.pools:
            raise MetalRuleError(f"{type(thing).__name__} without an autorelease pool")
        return thing

    def MTLCreateSystemDefaultDevice(self) -> Any:
        return self._device

    @staticmethod
    def MTLSizeMake(width: int, height: int, depth: int) -> Any:
        return MTLSize(width, height, depth)


class FakeObjc:
    """A stand-in for ``objc``.

    Args:
        heeds: whether what is registered has an effect.

    Attributes:
        registered: facts about selectors.
        pools: how many autorelease pools are open.
    """

    def __init__(self, heeds: bool = True):
        self.heeds = heeds
        self.registered: dict[bytes, dict[str, Any]] = {}
        self.pools = 0

    def registerMetaDataForSelector(self, owner: bytes, selector: bytes, facts: dict[str, Any]) -> None:
        if self.heeds:
            self.registered[selector] = facts

    @contextlib.contextmanager
    def autorelease_pool(self) -> Iterator[None]:
        self.pools += 1
        try:
            yield
        finally:
            self.pools -= 1


class CompileOptions:
    """An MTLCompileOptions."""

    version: int | None = None
    mode: int | None = None
    functions: int | None = None

    def setLanguageVersion_(self, version: int) -> None:
        self.version = version

    def setMathMode_(self, mode: int) -> None:
        self.mode = mode

    def setMathFloatingPointFunctions_(self, functions: int) -> None:
        self.functions = functions


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

    def maxThreadgroupMemoryLength(self) -> int:
        return THREADGROUP_BYTES

    def currentAllocatedSize(self) -> int:
        return self.metal.allocated

    def newCommandQueue(self) -> Queue:
        self.metal.counts["newCommandQueue"] += 1
        return self.metal.made(b"newCommandQueue", Queue(self.metal))

    def newBufferWithLength_options_(self, length: int, options: int) -> Buffer | None:
        self.metal.counts["newBufferWithLength_options_"] += 1
        if options != FakeMetal.MTLResourceStorageModeShared:
            raise MetalRuleError("the CPU sees shared storage only")
        if length <= 0 or length > self.maxBufferLength() or self.metal.allocated + length > self.metal.memory:
            return None
        return self.metal.made(b"newBufferWithLength:options:", Buffer(self.metal, length))

    def newLibraryWithSource_options_error_(self, source: str, options: Any, error: Any) -> tuple[Any, Any]:
        _none(error)
        self.metal.counts["newLibraryWithSource_options_error_"] += 1
        if options.version != FakeMetal.MTLLanguageVersion3_1 or options.mode != FakeMetal.MTLMathModeSafe:
            raise MetalRuleError("texts are compiled as Metal 3.1 in safe mode")
        if options.functions != FakeMetal.MTLMathFloatingPointFunctionsPrecise:
            raise MetalRuleError("texts are compiled with precise functions")
        try:
            library = Library(self.metal, self.metal.compile(source), source)
        except SmeltError as problem:
            return None, Error("MTLLibraryErrorDomain", 3, f"program_source: error: {problem}")
        return self.metal.made(b"newLibraryWithSource:options:error:", library), None

    def newComputePipelineStateWithFunction_error_(self, function: Any, error: Any) -> tuple[Any, Any]:
        _none(error)
        self.metal.counts["newComputePipelineStateWithFunction_error_"] += 1
        if not isinstance(function, Function):
            raise MetalRuleError(f"{function!r} is no function")
        if function.threadgroup_bytes > THREADGROUP_BYTES:
            text = f"Threadgroup memory size ({function.threadgroup_bytes}) exceeds the maximum allowed"
            return None, Error("AGXMetal", 3, text)
        return self.metal.made(b"newComputePipelineStateWithFunction:error:", Pipeline(self.metal, function)), None


class Library:
    """An MTLLibrary."""

    def __init__(self, metal: FakeMetal, compiled: Any, source: str):
        self.metal, self.compiled, self.source = metal, compiled, source

    def newFunctionWithName_(self, name: str) -> Function | None:
        if name not in self.compiled.entries:
            return None
        function = Function(self.compiled, name, threadgroup_bytes(self.source, name))
        return self.metal.made(b"newFunctionWithName:", function)


_SHARED = re.compile(r"^\s*threadgroup\s+([\w<>]+)\s+\w+((?:\[\d+\])+)?;", re.M)


def threadgroup_bytes(source: str, entry: str) -> int:
    """Of the arrays that a kernel declares."""
    found = re.search(rf"^kernel void {re.escape(entry)}\(.*?^}}", source, re.M | re.S)
    total = 0
    for element, dimensions in _SHARED.findall(found.group(0) if found else ""):
        count = 1
        for extent in re.findall(r"\d+", dimensions):
            count *= int(extent)
        total += count * (element_bytes(element) or 0)
    return total


class Function(NamedTuple):
    """An MTLFunction."""

    compiled: Any
    entry: str
    threadgroup_bytes: int

    def may_write(self, index: int) -> bool:
        """Whether the kernel may write a buffer."""
        entries = self.compiled.entries
        if isinstance(entries, list):
            return True
        return any(p.index == index and not p.const for p in entries[self.entry].buffers())

    def alignment_of(self, index: int) -> int:
        """Of the memory bound to a buffer of the kernel: that of its elements."""
        entries = self.compiled.entries
        if not isinstance(entries, list):
            for parameter in entries[self.entry].buffers():
                if parameter.index == index:
                    size = element_bytes(parameter.element) or 4
                    packed = parameter.element.startswith("packed_")
                    # Constant memory is read by instructions that want multiples of four.
                    return max(4, size) if "constant" in parameter.type else (1 if packed else size)
        return 4


class Pipeline:
    """An MTLComputePipelineState."""

    def __init__(self, metal: FakeMetal, function: Function):
        self.metal, self.function = metal, function

    def maxTotalThreadsPerThreadgroup(self) -> int:
        return self.metal.max_threads

    def threadExecutionWidth(self) -> int:
        return self.metal.lanes

    def staticThreadgroupMemoryLength(self) -> int:
        return self.function.threadgroup_bytes


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
    """An MTLCommandQueue: its command buffers run one after the other."""

    def __init__(self, metal: FakeMetal):
        self.metal = metal
        self.pending: list[CommandBuffer] = []
        #: What buffers hold that are to be written, while ones stand in their place.
        self.hidden: dict[Buffer, bytes] = {}

    def commandBuffer(self) -> CommandBuffer:
        self.metal.counts["commandBuffer"] += 1
        return self.metal.handed_out(CommandBuffer(self.metal, self))

    def take(self, committed: CommandBuffer) -> None:
        """The GPU has it; when, is not known until somebody waits."""
        self.pending.append(committed)
        self._hide()

    def run_until(self, last: CommandBuffer) -> None:
        """Run what was committed, up to `last`."""
        for buffer, content in self.hidden.items():
            if bytes(buffer.pages) != b"\xff" * buffer.size:
                raise MetalRuleError("the CPU wrote memory that the GPU may be writing")
            buffer.pages[:] = content
        self.hidden = {}
        while last in self.pending:
            self.pending.pop(0).execute()
        self._hide()

    def _hide(self) -> None:
        for buffer in {b for waiting in self.pending for b in waiting.written()} - self.hidden.keys():
            self.hidden[buffer] = bytes(buffer.pages)
            buffer.pages[:] = b"\xff" * buffer.size


class CommandBuffer:
    """An MTLCommandBuffer; what it was given runs when it, or a later one of its queue, is waited for."""

    def __init__(self, metal: FakeMetal, queue: Queue):
        self.metal, self.queue = metal, queue
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
        return self.metal.handed_out(self.encoders[-1])

    def commit(self) -> None:
        self.metal.counts["commit"] += 1
        if self.state != FakeMetal.MTLCommandBufferStatusNotEnqueued:
            raise MetalRuleError("committed twice")
        if any(not e.ended for e in self.encoders):
            raise MetalRuleError("commit while an encoder is open")
        self.state = FakeMetal.MTLCommandBufferStatusCommitted
        self.queue.take(self)

    def waitUntilCompleted(self) -> None:
        self.metal.counts["waitUntilCompleted"] += 1
        if self.state == FakeMetal.MTLCommandBufferStatusNotEnqueued:
            raise MetalRuleError("waiting for what was not committed")
        self.queue.run_until(self)

    def written(self) -> set[Buffer]:
        """Buffers that a kernel may write."""
        return {b for encoder in self.encoders for b in encoder.written}

    def execute(self) -> None:
        """What the GPU does."""
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
        self._finished("GPUStartTime")
        return 0.0 if self.state != FakeMetal.MTLCommandBufferStatusCompleted else 10.0

    def GPUEndTime(self) -> float:
        self._finished("GPUEndTime")
        return 0.0 if self.state != FakeMetal.MTLCommandBufferStatusCompleted else 10.5

    def _finished(self, what: str) -> None:
        if self.state < FakeMetal.MTLCommandBufferStatusCompleted:
            raise MetalRuleError(f"{what} of what has not run")


class Encoder:
    """An MTLComputeCommandEncoder."""

    def __init__(self, metal: FakeMetal, kind: int):
        self.metal, self.kind = metal, kind
        self.ended = False
        self.pipeline: Pipeline | None = None
        self.bound: dict[int, tuple[Any, int, int]] = {}
        self.batches: list[list[Callable[[], None]]] = [[]]
        self.written: set[Buffer] = set()

    def __del__(self) -> None:
        if not self.ended:
            self.metal.breaches.append("an encoder died without endEncoding")

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
        if not 0 <= offset < buffer.size:
            raise MetalRuleError(f"offset {offset} in a buffer of {buffer.size} bytes")
        address = ctypes.addressof(ctypes.c_char.from_buffer(buffer.pages))
        self._bind(index, address + offset, buffer.size - offset, buffer)

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
        for index, (kept, address, _) in bound.items():
            if isinstance(kept, Buffer) and address % function.alignment_of(index):
                raise MetalRuleError(f"buffer {index} of {function.entry} at an address that is not aligned")
            if isinstance(kept, Buffer) and function.may_write(index):
                self.written.add(kept)
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
