"""Programs on Apple GPUs, through PyObjC's Metal.

One evaluation is one command buffer with one encoder. The encoder lets launches overlap, and a barrier
stands only where one launch needs what an earlier one did (`order`), so independent kernels run side
by side while a chain costs what it would in a serial encoder. Memory is shared between CPU and GPU:
nothing is copied.
"""

from __future__ import annotations

import hashlib
import math
import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from smelt.ir import locks
from smelt.ir.errors import DeviceError
from smelt.ir.settings import settings

from ...gpu.manifest import Manifest, Size
from . import ownership
from .errors import MetalCompileError, described
from .memory import Block, Pool
from .program import AppleProgram
from .recording import Recording, autorelease_pool

#: Lanes of a simdgroup that emitted kernels count on.
LANES = 32


class AppleDevice:
    """The GPU of a Mac. Thread-safe.

    Args:
        metal_module: what stands for PyObjC's ``Metal``; by default that.

    Attributes:
        name: as the system calls it, e.g. "Apple M3".
        max_threads: in a threadgroup along x; a kernel's own limit may be lower.
        pool: the memory of its blocks.

    Raises:
        DeviceError: there is no Metal, with what to do about it.
    """

    _default: ClassVar[AppleDevice | None] = None
    _default_lock: ClassVar[Any] = locks.lock()

    def __init__(self, metal_module: Any = None):
        self._metal = metal = metal_module if metal_module is not None else import_metal()
        ownership.register()
        with autorelease_pool():
            device = metal.MTLCreateSystemDefaultDevice()
            if device is None:
                raise DeviceError(
                    "this machine has no GPU that Metal can use (a virtual machine, or a session without one); "
                    "the device metal:sim runs the same kernels on the CPU"
                )
            queue = device.newCommandQueue()
            if queue is None:
                raise DeviceError(f"Metal gave no command queue for {device.name()}")
            self._device, self._queue = device, queue
            self.name = str(device.name())
            self.max_threads = int(device.maxThreadsPerThreadgroup().width)
            self.pool = Pool(device, metal.MTLResourceStorageModeShared, int(device.recommendedMaxWorkingSetSize()))
        with autorelease_pool():
            if not ownership.frees(device, metal.MTLResourceStorageModeShared):
                warnings.warn(
                    f"memory of {self.name} is not freed: this PyObjC keeps every buffer that Metal makes. Install the "
                    "versions that smelt-mlir asks for (pyobjc-core and pyobjc-framework-Metal); until then a program "
                    "that runs long takes more and more memory",
                    RuntimeWarning,
                    stacklevel=2,
                )
        self._lock = locks.lock()
        self._libraries: OrderedDict[str, _Library] = OrderedDict()

    @staticmethod
    def default() -> AppleDevice:
        """The device of this process, made on the first call. Raises DeviceError."""
        with AppleDevice._default_lock:
            if AppleDevice._default is None:
                AppleDevice._default = AppleDevice()
            return AppleDevice._default

    # Memory

    def allocate(self, nbytes: int) -> Block:
        """Uninitialized memory that CPU and GPU share.

        Raises:
            MemoryError: more would be in use than `set_memory_limit` allows or than there is.
        """
        with autorelease_pool():
            return self.pool.block(nbytes)

    def set_memory_limit(self, limit: int) -> int:
        """Let blocks use at most `limit` bytes (0: no limit); the previous limit. At first it is what Metal
        recommends for the machine."""
        previous, self.pool.limit = self.pool.limit, limit
        return previous

    @property
    def allocated_bytes(self) -> int:
        """What the system has given to this process for the GPU, used or not."""
        return int(self._device.currentAllocatedSize())

    @property
    def active_bytes(self) -> int:
        """In use by blocks."""
        return self.pool.active_bytes

    @property
    def cached_bytes(self) -> int:
        """Kept by the pool for reuse."""
        return self.pool.cached_bytes

    @property
    def peak_bytes(self) -> int:
        """The most that were in use at once."""
        return self.pool.peak_bytes

    def clear_cache(self) -> None:
        """Give memory kept for reuse, and compiled libraries, back to the system. Loaded programs stay."""
        self.pool.clear()
        with self._lock:
            self._libraries.clear()

    # Programs

    def load(self, text: str, manifest: Manifest) -> AppleProgram:
        """Compile the kernels of a manifest; texts compiled before are remembered.

        Raises:
            MetalCompileError: the text does not compile (with the compiler's log), a kernel is missing, or
                its pipeline does not allow as many threads in a threadgroup as the manifest wants.
        """
        with autorelease_pool():
            pipelines = {}
            for kernel in manifest.kernels:
                own = kernel.own
                library = self._library(text if own is None else own.text)
                pipeline = library.pipeline(kernel.entry if own is None else own.function)
                pipelines[kernel.entry] = pipeline
                _check_threads(kernel.entry, pipeline, kernel.threads, self.name)
            return AppleProgram(self, manifest, pipelines)

    def dispatch(self, text: str, entry: str, buffers: Mapping[int, Block | bytes], grid: Size, threads: Size) -> float:
        """Run one kernel of `text` over `grid` threads, in threadgroups of `threads`; the last ones along an
        axis are smaller where the grid is no multiple.

        Args:
            buffers: by ``[[buffer(index)]]``; bytes (4 KB at most) are handed over as a constant.

        Returns:
            Seconds on the GPU.

        Raises:
            MetalCompileError, MetalRunError.
        """
        with autorelease_pool():
            pipeline = self._library(text).pipeline(entry)
            _check_threads(entry, pipeline, threads, self.name)
            if 0 in grid:
                return 0.0
            make = self._metal.MTLSizeMake

            def encode(encoder: Any) -> None:
                encoder.setComputePipelineState_(pipeline)
                for index, buffer in buffers.items():
                    if isinstance(buffer, Block):
                        encoder.setBuffer_offset_atIndex_(buffer.handle, 0, index)
                    else:
                        encoder.setBytes_length_atIndex_(buffer, len(buffer), index)
                encoder.dispatchThreads_threadsPerThreadgroup_(make(*grid), make(*threads))

            return self.submit(encode, [entry], serial=True)

    def submit(self, encode: Callable[[Any], None], entries: Sequence[str], serial: bool) -> float:
        """Run what `encode` records in a compute encoder, and wait for it.

        Args:
            encode: called with the encoder.
            entries: names of the kernels, for errors.
            serial: whether launches run one after another, without barriers of their own.

        Returns:
            Seconds on the GPU.

        Raises:
            MetalRunError: the GPU reported an error. MemoryError: it ran out of memory.
        """
        recording = self.record(entries, serial)
        try:
            encode(recording.encoder)
            return recording.wait()
        finally:
            recording.close()

    def record(self, entries: Sequence[str], serial: bool) -> Recording:
        """Begin to record launches; see `submit` for the arguments."""
        return Recording(self, self._queue, entries, serial)

    def _library(self, text: str) -> _Library:
        key = hashlib.sha256(text.encode()).hexdigest()
        with self._lock:
            library = self._libraries.get(key)
            if library is None:
                library = self._libraries[key] = _Library(self, text)
                self._drop_libraries()
            self._libraries.move_to_end(key)
            return library

    def _drop_libraries(self) -> None:
        while len(self._libraries) > max(1, settings.cache_size):
            self._libraries.popitem(last=False)


class _Library:
    """A compiled text and the pipelines made of its kernels."""

    def __init__(self, device: AppleDevice, text: str):
        metal = device._metal
        options = metal.MTLCompileOptions.new()
        options.setLanguageVersion_(metal.MTLLanguageVersion3_1)
        # Fast math, the default, takes NaN and infinity for impossible.
        if hasattr(options, "setMathMode_"):
            options.setMathMode_(metal.MTLMathModeSafe)
            # A choice of its own, whose default is fast too: then sqrt would not be correctly rounded.
            options.setMathFloatingPointFunctions_(metal.MTLMathFloatingPointFunctionsPrecise)
        else:  # before macOS 15
            options.setFastMathEnabled_(False)
        library, error = device._device.newLibraryWithSource_options_error_(text, options, None)
        if library is None:
            raise MetalCompileError(f"Metal's compiler refused the text:\n{described(error)}")
        self._device, self._library = device, library
        self._needs_lanes = "simd" in text
        self._pipelines: dict[str, Any] = {}
        self._lock = locks.lock()

    def pipeline(self, entry: str) -> Any:
        """The MTLComputePipelineState of a kernel. Raises MetalCompileError."""
        with self._lock:
            found = self._pipelines.get(entry)
            if found is None:
                found = self._pipelines[entry] = self._make_pipeline(entry)
            return found

    def _make_pipeline(self, entry: str) -> Any:
        function = self._library.newFunctionWithName_(entry)
        if function is None:
            raise MetalCompileError(f"the text has no kernel {entry!r}")
        pipeline, error = self._device._device.newComputePipelineStateWithFunction_error_(function, None)
        if pipeline is None:
            raise MetalCompileError(f"Metal made no pipeline of the kernel {entry!r}: {described(error)}")
        width = pipeline.threadExecutionWidth()
        if self._needs_lanes and width != LANES:
            raise MetalCompileError(
                f"the kernel {entry!r} runs {width} lanes a simdgroup on {self._device.name}, and simdgroup code is "
                f"written for {LANES}; use the device cpu on this machine"
            )
        return pipeline


def import_metal() -> Any:
    """PyObjC's ``Metal``. Raises DeviceError where there is none."""
    try:
        import Metal
    except ImportError as error:
        raise DeviceError(
            f"the device metal needs macOS and pyobjc-framework-Metal ({error}); on a Mac, install smelt-mlir again "
            "or pyobjc-framework-Metal alone. The device metal:sim runs the same kernels on any CPU"
        ) from None
    return Metal


def _check_threads(entry: str, pipeline: Any, threads: Size, device: str) -> None:
    most, wanted = int(pipeline.maxTotalThreadsPerThreadgroup()), math.prod(threads)
    if wanted > most:
        raise MetalCompileError(
            f"the kernel {entry!r} is to run {wanted} threads a threadgroup, but its registers allow {most} on {device}"
        )
