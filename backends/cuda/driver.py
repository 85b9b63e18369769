"""NVIDIA's driver API through ctypes: memory, machine code, launches, events of one GPU.

    >>> module = Module(compile_cubin(source, architecture()))       # doctest: +SKIP
    >>> module.launch("add", [a.address, b.address], (4, 1, 1), (256, 1, 1))   # doctest: +SKIP

All work goes to one stream: what is launched later sees what was launched before.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

from smelt.backends.gpu.manifest import Size
from smelt.ir.errors import DeviceError, OutOfMemoryError, SmeltError

#: What the driver says where memory has run out, and where what was launched still runs.
OUT_OF_MEMORY, NOT_READY = 2, 600
#: Seconds for which `wait` asks again and again; what part of the time that it has waited it sleeps between two
#: questions after that, and how many seconds at most.
_SPIN, _PAUSE, _LONGEST_PAUSE = 200e-6, 1 / 256, 1e-3


def call(name: str, *arguments: object) -> None:
    """Calls the driver.

    Raises:
        OutOfMemoryError: the GPU has no more. DeviceError: the driver's name of another error.
    """
    code = getattr(driver_library(), name)(*arguments)
    if code:
        raise error(name, code)


def error(name: str, code: int) -> SmeltError:
    """What `call` raises for a function that returned a code."""
    if code == OUT_OF_MEMORY:
        return OutOfMemoryError(f"{name}: the GPU has no more memory")
    text = ctypes.c_char_p()
    driver_library().cuGetErrorString(code, ctypes.byref(text))
    return DeviceError(f"{name}: {(text.value or b'unknown error').decode()} ({code})")


def address(name: str) -> int:
    """Where a function of the driver lies. Raises DeviceError where there is no driver."""
    return ctypes.cast(getattr(driver_library(), name), ctypes.c_void_p).value or 0


@functools.cache
def driver_library() -> Any:
    """The driver, loaded. Raises DeviceError where there is none."""
    try:
        return ctypes.CDLL("libcuda.so.1" if sys.platform != "win32" else "nvcuda.dll")
    except OSError as error:
        raise DeviceError(f"there is no NVIDIA driver: {error}") from None


#: Which GPU this process uses, whether it does so already, and what else than launches may fail while they are waited
#: for: functions that raise.
_ordinal, _is_entered = 0, False
checks: list[Callable[[], None]] = []


def count() -> int:
    """How many GPUs there are."""
    found = ctypes.c_int()
    call("cuInit", 0)
    call("cuDeviceGetCount", ctypes.byref(found))
    return found.value


def ordinal() -> int:
    """The number of the GPU that this process uses."""
    return _ordinal


def choose(number: int) -> None:
    """Use another GPU than the first. Raises DeviceError: there is none of that number, or one is in use already."""
    global _ordinal
    if number != _ordinal:
        if not 0 <= number < count():
            raise DeviceError(f"there is no GPU of number {number}; there are {count()}")
        if _is_entered:
            raise DeviceError(
                f"this process uses GPU {_ordinal} already, and cannot use GPU {number}: choose it before"
            )
        _ordinal = number


@functools.cache
def _context(number: int) -> tuple[ctypes.c_void_p, int]:
    """A GPU's context, and the process that has it."""
    call("cuInit", 0)
    device, context = ctypes.c_int(), ctypes.c_void_p()
    call("cuDeviceGet", ctypes.byref(device), number)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    return context, os.getpid()


def warm() -> None:
    """Makes the GPU's context, for `enter` to find; another GPU may still be chosen. Raises DeviceError as `enter`."""
    _context(_ordinal)


def is_forked() -> bool:
    """Whether the GPU's context is another process's, of which this one was forked: it has nothing to give back."""
    return _is_entered and _context(_ordinal)[1] != os.getpid()


def enter() -> None:
    """Makes the GPU's context that of the calling thread. Raises DeviceError where there is no GPU."""
    global _is_entered
    context, process = _context(_ordinal)
    _is_entered = True
    if process != os.getpid():
        raise DeviceError(
            "a process that was forked cannot use the GPU of its parent: let multiprocessing start processes by spawn"
        )
    call("cuCtxSetCurrent", context)


def architecture() -> str:
    """Of the GPU: ``sm_90``, ... Raises DeviceError if there is none."""
    enter()
    device, value, digits = ctypes.c_int(), ctypes.c_int(), ""
    call("cuCtxGetDevice", ctypes.byref(device))
    for attribute in (75, 76):  # compute capability, major and minor
        call("cuDeviceGetAttribute", ctypes.byref(value), attribute, device)
        digits += str(value.value)
    return f"sm_{digits}"


class Memory:
    """Bytes on the GPU.

    Attributes:
        address: where they are.
        nbytes: how many.
    """

    def __init__(self, nbytes: int) -> None:
        enter()
        address = ctypes.c_uint64()
        call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(nbytes, 1)))
        self.address, self.nbytes = address.value, nbytes

    def write(self, source: int, nbytes: int | None = None, offset: int = 0) -> None:
        """Copies from an address of the host to `offset`, when what was launched before has finished."""
        enter()
        size = ctypes.c_size_t(self.nbytes if nbytes is None else nbytes)
        if size.value:
            call("cuMemcpyHtoD_v2", ctypes.c_uint64(self.address + offset), ctypes.c_void_p(source), size)

    def read(self, target: int, nbytes: int | None = None, offset: int = 0) -> None:
        """Copies from `offset` to an address of the host, when what was launched before has finished."""
        fetch(target, self.address + offset, self.nbytes if nbytes is None else nbytes)

    def number(self, offset: int, nbytes: int) -> int:
        """The signed integer at an offset, when what was launched before has finished."""
        found = (ctypes.c_char * nbytes)()
        fetch(ctypes.addressof(found), self.address + offset, nbytes)
        return int.from_bytes(bytes(found), sys.byteorder, signed=True)

    def copy_from(self, other: Memory) -> None:
        """Copies the bytes of another memory, of the same length or a longer one, on the GPU, without waiting."""
        enter()
        copy(self.address, other.address, min(self.nbytes, other.nbytes))

    def free(self) -> None:
        """Gives the memory back; it must not be used after."""
        if self.address:
            enter()
            call("cuMemFree_v2", ctypes.c_uint64(self.address))
            self.address = 0


def fetch(target: int, address: int, nbytes: int) -> None:
    """Copies from an address of the GPU to one of the host, when what was launched before has finished."""
    enter()
    if nbytes:
        wait()
        call("cuMemcpyDtoH_v2", ctypes.c_void_p(target), ctypes.c_uint64(address), ctypes.c_size_t(nbytes))


def copy(target: int, source: int, nbytes: int, stream: ctypes.c_void_p | None = None) -> None:
    """Copies from an address of the GPU to another, without waiting. stream: None: that of all launches."""
    size = ctypes.c_size_t(nbytes)
    call("cuMemcpyDtoDAsync_v2", ctypes.c_uint64(target), ctypes.c_uint64(source), size, stream)


class _Rectangle(ctypes.Structure):
    """CUDA_MEMCPY2D_v2."""

    _fields_ = [
        *(
            (f"{side}_{name}", kind) for side in ("source", "target")
            for name, kind in (
                ("x", ctypes.c_size_t), ("y", ctypes.c_size_t), ("memory", ctypes.c_int), ("host", ctypes.c_void_p),
                ("device", ctypes.c_uint64), ("array", ctypes.c_void_p), ("step", ctypes.c_size_t),
            )
        ),
        ("width", ctypes.c_size_t),
        ("height", ctypes.c_size_t),
    ]  # fmt: skip


def copy_rows(
    target: int, target_step: int, source: int, source_step: int, nbytes: int, count: int,
    stream: ctypes.c_void_p | None = None,
) -> None:  # fmt: skip
    """Copies `count` rows of `nbytes` bytes, whose starts are steps apart, without waiting. stream: see `copy`."""
    on_device = 2  # CU_MEMORYTYPE_DEVICE
    found = _Rectangle(
        source_memory=on_device, source_device=source, source_step=source_step, target_memory=on_device,
        target_device=target, target_step=target_step, width=nbytes, height=count,
    )  # fmt: skip
    call("cuMemcpy2DAsync_v2", ctypes.byref(found), stream)


def memory_info() -> tuple[int, int]:
    """Bytes of the GPU that are free, and all of them."""
    enter()
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    return free.value, total.value


def gpu_name() -> str:
    """As its maker calls it, e.g. "NVIDIA H200"."""
    enter()
    device, name = ctypes.c_int(), ctypes.create_string_buffer(256)
    call("cuCtxGetDevice", ctypes.byref(device))
    call("cuDeviceGetName", name, 256, device)
    return name.value.decode(errors="replace")


def pinned(nbytes: int) -> int:
    """The address of new memory of the host that is never moved, so that the GPU's own copies reach it."""
    enter()
    found = ctypes.c_void_p()
    call("cuMemHostAlloc", ctypes.byref(found), ctypes.c_size_t(nbytes), 0)
    return found.value or 0


def copy_async(way: str, target: int, source: int, nbytes: int) -> None:
    """Copies after what was launched before, without waiting: "HtoD" from pinned memory, or "DtoH" to it."""
    call(f"cuMemcpy{way}Async_v2", ctypes.c_uint64(target), ctypes.c_uint64(source), ctypes.c_size_t(nbytes), None)


class Event:
    """A point in the stream of launches. `timed`: for measuring time."""

    def __init__(self, timed: bool = True) -> None:
        enter()
        self._handle = ctypes.c_void_p()
        call("cuEventCreate", ctypes.byref(self._handle), 0 if timed else 2)

    def record(self) -> None:
        """Puts the point after everything launched so far."""
        call("cuEventRecord", self._handle, None)

    def before(self, stream: ctypes.c_void_p | None) -> None:
        """What a stream gets from now on comes after it."""
        enter()
        call("cuStreamWaitEvent", stream, self._handle, 0)

    @property
    def is_reached(self) -> bool:
        """Whether all before it has run. False where that failed: `wait` says so."""
        return bool(driver_library().cuEventQuery(self._handle) == 0)

    def wait(self) -> None:
        """Waits for it, in such a way that Ctrl-C is noticed. Raises DeviceError if a kernel before it failed."""
        _wait(lambda: driver_library().cuEventQuery(self._handle))

    def milliseconds_since(self, start: Event) -> float:
        """Waits for this point; the time since another."""
        elapsed = ctypes.c_float()
        call("cuEventSynchronize", self._handle)
        call("cuEventElapsedTime", ctypes.byref(elapsed), start._handle, self._handle)
        return elapsed.value

    def __del__(self, is_finalizing: Any = sys.is_finalizing) -> None:
        if not is_finalizing() and getattr(self, "_handle", None) and not is_forked():
            driver_library().cuEventDestroy_v2(self._handle)


def wait() -> None:
    """Waits for everything launched, in such a way that Ctrl-C is noticed. Raises DeviceError if a kernel failed."""
    query = driver_library().cuStreamQuery
    _wait(lambda: query(None))


def wait_until(done: Callable[[], bool]) -> None:
    """Waits for what the driver does not know, as for launches. Raises what `checks` raise."""
    _wait(lambda: 0 if done() else NOT_READY)


def _wait(query: Callable[[], int]) -> None:
    start = time.perf_counter()
    while (code := query()) == NOT_READY:
        waited = time.perf_counter() - start
        if waited > _SPIN:
            time.sleep(min(waited * _PAUSE, _LONGEST_PAUSE))
            for check in checks:
                check()
    if code:
        call("cuCtxSynchronize")
    for check in checks:
        check()


def new_stream() -> ctypes.c_void_p:
    """A stream that waits for no other."""
    enter()
    made = ctypes.c_void_p()
    call("cuStreamCreate", ctypes.byref(made), 1)
    return made


def wait_for(stream: ctypes.c_void_p | None) -> None:
    """Waits for what a stream has. Raises DeviceError if something of it failed."""
    call("cuStreamSynchronize", stream)


def order(first: int | None, then: int | None) -> None:
    """What one stream has so far comes before what another one gets from now on. None: the stream of all launches."""
    enter()
    event = ctypes.c_void_p()
    call("cuEventCreate", ctypes.byref(event), 2)  # without a time
    call("cuEventRecord", event, ctypes.c_void_p(first))
    call("cuStreamWaitEvent", ctypes.c_void_p(then), event, 0)
    call("cuEventDestroy_v2", event)  # when it has been waited for


def synchronize() -> None:
    """Waits for everything launched. Raises DeviceError if a kernel failed."""
    enter()
    wait()
    call("cuCtxSynchronize")


class Module:
    """Machine code on the GPU."""

    def __init__(self, cubin: bytes) -> None:
        self._handle = ctypes.c_void_p()
        enter()
        call("cuModuleLoadData", ctypes.byref(self._handle), cubin)
        self._functions: dict[str, ctypes.c_void_p] = {}

    def function(self, name: str) -> ctypes.c_void_p:
        """The driver's handle of a kernel, which lives as long as the module."""
        found = self._functions.get(name)
        if found is None:
            found = ctypes.c_void_p()
            call("cuModuleGetFunction", ctypes.byref(found), self._handle, name.encode())
            self._functions[name] = found
        return found

    def node(self, graph: Graph, entry: str, addresses: Sequence[int], threadgroups: Size, threads: Size) -> None:
        """Adds a launch to a graph, after its last one."""
        graph.add(self.function(entry), addresses, threadgroups, threads)

    def launch(
        self,
        entry: str,
        addresses: Sequence[int],
        threadgroups: Size,
        threads: Size,
        threadgroup_lengths: Sequence[int] = (),
    ) -> None:
        """Starts a kernel, without waiting.

        Args:
            entry: the kernel's name.
            addresses: of its buffers, in the order of their indices.
            threadgroups, threads: along x, y, z.
            threadgroup_lengths: bytes of each ``[[threadgroup(n)]]``, in order.
        """
        enter()
        offsets, shared = [], 0
        for length in threadgroup_lengths:
            offsets.append(shared)
            shared += -(-length // 16) * 16
        values = (ctypes.c_uint64 * max(len(addresses) + len(offsets), 1))(*addresses, *offsets)
        start = ctypes.addressof(values)
        pointers = (ctypes.c_void_p * len(values))(*range(start, start + 8 * len(values), 8))
        call("cuLaunchKernel", self.function(entry), *threadgroups, *threads, shared, None, pointers, None)

    def dispatch(self, entry: str, addresses: Sequence[int], grid: Size, threads: Size) -> None:
        """Starts a kernel that was made for it (`cuda_source`) over `grid` threads, without waiting: the last
        threadgroups along an axis have fewer where `threads` is no divisor, as in Metal."""
        enter()
        for first, groups, own in _parts(grid, threads):
            values: list[Any] = [ctypes.c_uint64(address) for address in addresses]
            values += [(ctypes.c_uint32 * 3)(*numbers) for numbers in (first, threads, grid)]
            pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
            call("cuLaunchKernel", self.function(entry), *groups, *own, 0, None, pointers, None)

    def unload(self) -> None:
        """Drops the code; the module must not be used after."""
        if self._handle:
            handle, self._handle = self._handle, ctypes.c_void_p()
            enter()
            call("cuModuleUnload", handle)

    def __del__(self, is_finalizing: Any = sys.is_finalizing) -> None:
        if not is_finalizing() and getattr(self, "_handle", None) and not is_forked():
            self.unload()


class _Node(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS_v2."""

    _fields_ = [
        ("function", ctypes.c_void_p),
        *((f"{of}_{axis}", ctypes.c_uint) for of in ("groups", "threads") for axis in "xyz"),
        ("shared", ctypes.c_uint),
        ("parameters", ctypes.c_void_p),
        ("extra", ctypes.c_void_p),
        ("kernel", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
    ]


class Graph:
    """Launches on the same memory, which are handed to the GPU at once.

    Raises:
        DeviceError, OutOfMemoryError: from the driver.
    """

    def __init__(self) -> None:
        enter()
        self._graph, self._ready, self._last = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        call("cuGraphCreate", ctypes.byref(self._graph), 0)

    def add(self, function: ctypes.c_void_p, addresses: Sequence[int], threadgroups: Size, threads: Size) -> None:
        """Adds a launch, after the last one."""
        values = (ctypes.c_uint64 * max(len(addresses), 1))(*addresses)
        start = ctypes.addressof(values)
        pointers = (ctypes.c_void_p * len(values))(*(start + 8 * i for i in range(len(values))))
        node = _Node(function.value, *threadgroups, *threads, 0, ctypes.addressof(pointers))
        added = ctypes.c_void_p()
        before = (ctypes.byref(self._last), ctypes.c_size_t(1)) if self._last else (None, ctypes.c_size_t(0))
        call("cuGraphAddKernelNode_v2", ctypes.byref(added), self._graph, *before, ctypes.byref(node))
        self._last = added

    def add_captured(self, enqueue: Callable[[ctypes.c_void_p], None]) -> None:
        """Adds what ``enqueue(stream)`` puts on a stream, after the last launch. Nothing runs now."""
        stream, captured, added = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        call("cuStreamCreate", ctypes.byref(stream), 1)  # which does not wait for the stream of all launches
        try:
            call("cuStreamBeginCapture_v2", stream, 2)  # calls of other threads are their own business
            try:
                enqueue(stream)
            finally:
                call("cuStreamEndCapture", stream, ctypes.byref(captured))
            before = (ctypes.byref(self._last), ctypes.c_size_t(1)) if self._last else (None, ctypes.c_size_t(0))
            call("cuGraphAddChildGraphNode", ctypes.byref(added), self._graph, *before, captured)
            self._last = added
        finally:
            if captured:
                call("cuGraphDestroy", captured)  # the node has a copy
            call("cuStreamDestroy_v2", stream)

    def finish(self) -> None:
        """No launch will be added any more."""
        call("cuGraphInstantiateWithFlags", ctypes.byref(self._ready), self._graph, ctypes.c_uint64(0))
        graph, self._graph = self._graph, ctypes.c_void_p()
        call("cuGraphDestroy", graph)

    def launch(self) -> None:
        """Starts all of it, without waiting."""
        enter()
        call("cuGraphLaunch", self._ready, None)

    def __del__(self, is_finalizing: Any = sys.is_finalizing) -> None:
        if is_finalizing() or is_forked():
            return
        for name, handle in (("cuGraphExecDestroy", "_ready"), ("cuGraphDestroy", "_graph")):
            if getattr(self, handle, None):
                enter()
                call(name, getattr(self, handle))


def _parts(grid: Size, threads: Size) -> Iterator[tuple[Size, Size, Size]]:
    """A grid as launches of equal threadgroups: the first of them, how many, and the threads of each."""
    axes = []
    for n, size in zip(grid, threads):
        whole, rest = divmod(n, size)
        axes.append([part for part in ((0, whole, size), (whole, 1, rest)) if part[1] * part[2]])
    for (x, gx, tx), (y, gy, ty), (z, gz, tz) in product(*axes):
        yield (x, y, z), (gx, gy, gz), (tx, ty, tz)
