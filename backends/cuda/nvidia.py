"""Runs Metal texts on NVIDIA GPUs: the same text, as CUDA through NVRTC, launched by the driver API.

Threadgroups become blocks, simdgroups warps, and ``threadgroup`` variables shared memory. Nothing is imported
but ctypes: NVRTC comes from the ``nvidia-cuda-nvrtc`` package or the system, the driver from the system.

    >>> source, entries = cuda_source(text)                          # doctest: +SKIP
    >>> module = Module(compile_cubin(source, "sm_90"))              # doctest: +SKIP
    >>> module.launch("add", [a.address, b.address], (4, 1, 1), (256, 1, 1))   # doctest: +SKIP
"""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import glob
import math
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from smelt.backends.gpu.manifest import Size
from smelt.backends.metal.simulator.compiler import preprocess
from smelt.backends.metal.simulator.source import Entry, Parameter, parse
from smelt.ir.errors import DeviceError

HEADERS = Path(__file__).parent / "headers" / "cpp"


def _vector(expression: str) -> str:
    return f"smelt::Position{{{', '.join(expression.replace('$', axis) for axis in 'xyz')}}}"


_THREADS = "(blockDim.x * blockDim.y * blockDim.z)"
_POSITIONS = {
    "thread_position_in_grid": _vector("blockIdx.$ * blockDim.$ + threadIdx.$"),
    "threads_per_grid": _vector("gridDim.$ * blockDim.$"),
    "thread_position_in_threadgroup": _vector("threadIdx.$"),
    "threads_per_threadgroup": _vector("blockDim.$"),
    "dispatch_threads_per_threadgroup": _vector("blockDim.$"),
    "threadgroup_position_in_grid": _vector("blockIdx.$"),
    "threadgroups_per_grid": _vector("gridDim.$"),
    "grid_origin": "smelt::Position{0, 0, 0}",
    "thread_index_in_threadgroup": "smelt::thread_index()",
    "thread_index_in_simdgroup": "(smelt::thread_index() % 32u)",
    "simdgroup_index_in_threadgroup": "(smelt::thread_index() / 32u)",
    "simdgroups_per_threadgroup": f"(({_THREADS} + 31u) / 32u)",
    "dispatch_simdgroups_per_threadgroup": f"(({_THREADS} + 31u) / 32u)",
    "threads_per_simdgroup": "32u",
    "thread_execution_width": "32u",
    "thread_index_in_quadgroup": "(smelt::thread_index() % 4u)",
    "quadgroup_index_in_threadgroup": "(smelt::thread_index() / 4u)",
    "quadgroups_per_threadgroup": f"(({_THREADS} + 3u) / 4u)",
}


def _shared(number: int, type_: str, name: str, dimensions: str) -> str:
    aligned = re.match(r"alignas\s*\([^()]*\)\s*", type_)
    front = aligned.group(0) if aligned else ""
    return f"{front}__shared__ {type_[len(front):]} {name}{dimensions};"


def _argument(parameter: Parameter) -> str:
    if parameter.kind == "position":
        return _POSITIONS[parameter.attribute]
    how = "Reference" if parameter.reference else "Pointer"
    if parameter.kind == "buffer":
        return f"smelt::{how}{{buffer_{parameter.index}}}"
    return f"smelt::{how}{{smelt_shared + offset_{parameter.index}}}"


def _wrapper(entry: Entry, size: Size | None) -> str:
    parameters = [f"void* buffer_{p.index}" for p in sorted(entry.buffers(), key=lambda p: p.index)]
    shared = sorted((p for p in entry.parameters if p.kind == "threadgroup"), key=lambda p: p.index)
    parameters += [f"unsigned offset_{p.index}" for p in shared]
    bounds = f"__launch_bounds__({math.prod(size)}) " if size else ""
    sizes = " && ".join(f"blockDim.{a} == {n} && threadIdx.{a} < {n}" for a, n in zip("xyz", size or ()))
    assumed = f"__builtin_assume({sizes}); " if size else ""
    memory = "extern __shared__ __align__(16) char smelt_shared[]; " if shared else ""
    arguments = ", ".join(_argument(p) for p in entry.parameters)
    return (
        f'extern "C" __global__ {bounds}void {entry.name}({", ".join(parameters)}) '
        f"{{ {memory}{assumed}smelt_text::{entry.function}({arguments}); }}\n"
    )


def cuda_source(text: str, threads: Mapping[str, Size] | None = None) -> tuple[str, dict[str, Entry]]:
    """The text as CUDA, and its kernels.

    A kernel takes its buffers in the order of their indices, then for each ``[[threadgroup(n)]]`` the offset of
    its memory.

    Args:
        text: Metal Shading Language.
        threads: the size of the threadgroups that a kernel is launched with, by its name, where that is known: then
            registers suffice, and nothing is spent on simdgroups that are not full.

    Raises:
        SimulatorError: the text has no kernels that can be read.
    """
    if re.search(r"^\s*#\s*(?!include\s*<metal_|pragma\b)\w+", text, re.M):
        text = preprocess(text)
    found = parse(text, _shared)
    body = re.sub(r"^[ \t]*#[ \t]*include\b.*$", "", found.text, flags=re.M)
    # CUDA's own global functions would make unqualified names ambiguous: declarations nearer win.
    out = [
        '#include <metal_stdlib>\nnamespace smelt_text { SMELT_SAME_FUNCTIONS\n#line 1 "kernel.metal"\n',
        body,
        "\n}\n",
    ]
    out += [_wrapper(entry, (threads or {}).get(entry.name)) for entry in found.entries.values()]
    return "".join(out), found.entries


# ---- Compiling -------------------------------------------------------------------------------------------


@functools.cache
def _nvrtc() -> ctypes.CDLL:
    places = [
        path for root in sys.path for path in glob.glob(os.path.join(root, "nvidia", "*", "lib", "libnvrtc.so.*"))
    ]
    places += sorted(glob.glob("/usr/local/cuda*/lib64/libnvrtc.so.*"), reverse=True)
    system = ctypes.util.find_library("nvrtc")
    for place in [*places, *([system] if system else [])]:
        if "builtins" in place or "alt" in os.path.basename(place):
            continue
        try:
            return ctypes.CDLL(place)
        except OSError:
            continue
    raise DeviceError("NVRTC was not found: `pip install nvidia-cuda-nvrtc`")


def compile_cubin(source: str, arch: str = "sm_90", options: Sequence[str] = ("--fmad=false",)) -> bytes:
    """Compiles CUDA to machine code.

    Args:
        source: from `cuda_source`.
        arch: ``sm_`` and the compute capability.
        options: of NVRTC, beside those that every text needs.

    Raises:
        DeviceError: NVRTC is not installed, or refuses; the message is its own.
    """
    nvrtc = _nvrtc()
    headers = [path for path in sorted(HEADERS.iterdir()) if path.is_file()]
    texts = (ctypes.c_char_p * len(headers))(*(path.read_bytes() for path in headers))
    names = (ctypes.c_char_p * len(headers))(*(path.name.encode() for path in headers))
    program = ctypes.c_void_p()
    if nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", len(headers), texts, names):
        raise DeviceError("NVRTC could not make a program")
    try:
        flags = [f"-arch={arch}", "-std=c++17", "-default-device", "-w", *options]
        given = (ctypes.c_char_p * len(flags))(*(flag.encode() for flag in flags))
        size = ctypes.c_size_t()
        if nvrtc.nvrtcCompileProgram(program, len(flags), given):
            nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            nvrtc.nvrtcGetProgramLog(program, log)
            raise DeviceError(f"the Metal text does not compile as CUDA\n{log.value.decode(errors='replace')[:8000]}")
        nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
        cubin = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetCUBIN(program, cubin)
        return cubin.raw
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


# ---- Running ---------------------------------------------------------------------------------------------


def _call(name: str, *arguments: object) -> None:
    """Calls the driver. Raises DeviceError with its name of the error."""
    driver = _driver()
    code = getattr(driver, name)(*arguments)
    if code:
        text = ctypes.c_char_p()
        driver.cuGetErrorString(code, ctypes.byref(text))
        raise DeviceError(f"{name}: {(text.value or b'unknown error').decode()} ({code})")


@functools.cache
def _driver() -> ctypes.CDLL:
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise DeviceError(f"there is no NVIDIA driver: {error}") from None


@functools.cache
def _context() -> ctypes.c_void_p:
    _call("cuInit", 0)
    device, context = ctypes.c_int(), ctypes.c_void_p()
    _call("cuDeviceGet", ctypes.byref(device), 0)
    _call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    return context


def _enter() -> None:
    """Makes the device's context that of the calling thread."""
    _call("cuCtxSetCurrent", _context())


def architecture() -> str:
    """Of the first GPU: ``sm_90``, ... Raises DeviceError if there is none."""
    _enter()
    device, value, digits = ctypes.c_int(), ctypes.c_int(), ""
    _call("cuCtxGetDevice", ctypes.byref(device))
    for attribute in (75, 76):  # compute capability, major and minor
        _call("cuDeviceGetAttribute", ctypes.byref(value), attribute, device)
        digits += str(value.value)
    return f"sm_{digits}"


class Memory:
    """Bytes on the GPU.

    Attributes:
        address: where they are.
        nbytes: how many.
    """

    def __init__(self, nbytes: int) -> None:
        _enter()
        address = ctypes.c_uint64()
        _call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(nbytes, 1)))
        self.address, self.nbytes = address.value, nbytes

    def write(self, source: int, nbytes: int | None = None) -> None:
        """Copies from an address of the host."""
        _enter()
        size = ctypes.c_size_t(self.nbytes if nbytes is None else nbytes)
        _call("cuMemcpyHtoD_v2", ctypes.c_uint64(self.address), ctypes.c_void_p(source), size)

    def read(self, target: int, nbytes: int | None = None) -> None:
        """Copies to an address of the host, when what was launched before has finished."""
        _enter()
        size = ctypes.c_size_t(self.nbytes if nbytes is None else nbytes)
        _call("cuMemcpyDtoH_v2", ctypes.c_void_p(target), ctypes.c_uint64(self.address), size)

    def number(self, offset: int, nbytes: int) -> int:
        """The signed integer at an offset, when what was launched before has finished."""
        _enter()
        found = (ctypes.c_char * nbytes)()
        _call("cuMemcpyDtoH_v2", found, ctypes.c_uint64(self.address + offset), ctypes.c_size_t(nbytes))
        return int.from_bytes(bytes(found), sys.byteorder, signed=True)

    def copy_from(self, other: Memory) -> None:
        """Copies another memory of the same length, on the GPU, without waiting."""
        _enter()
        size = ctypes.c_size_t(self.nbytes)
        _call("cuMemcpyDtoDAsync_v2", ctypes.c_uint64(self.address), ctypes.c_uint64(other.address), size, None)

    def free(self) -> None:
        """Gives the memory back; it must not be used after."""
        if self.address:
            _enter()
            _call("cuMemFree_v2", ctypes.c_uint64(self.address))
            self.address = 0


class Event:
    """A point in the stream of launches, for measuring time."""

    def __init__(self) -> None:
        _enter()
        self._handle = ctypes.c_void_p()
        _call("cuEventCreate", ctypes.byref(self._handle), 0)

    def record(self) -> None:
        """Puts the point after everything launched so far."""
        _call("cuEventRecord", self._handle, None)

    def milliseconds_since(self, start: Event) -> float:
        """Waits for this point; the time since another."""
        elapsed = ctypes.c_float()
        _call("cuEventSynchronize", self._handle)
        _call("cuEventElapsedTime", ctypes.byref(elapsed), start._handle, self._handle)
        return elapsed.value


def synchronize() -> None:
    """Waits for everything launched. Raises DeviceError if a kernel failed."""
    _enter()
    _call("cuCtxSynchronize")


class Module:
    """Machine code on the GPU."""

    def __init__(self, cubin: bytes) -> None:
        _enter()
        self._handle = ctypes.c_void_p()
        _call("cuModuleLoadData", ctypes.byref(self._handle), cubin)
        self._functions: dict[str, ctypes.c_void_p] = {}

    def _function(self, name: str) -> ctypes.c_void_p:
        found = self._functions.get(name)
        if found is None:
            found = ctypes.c_void_p()
            _call("cuModuleGetFunction", ctypes.byref(found), self._handle, name.encode())
            self._functions[name] = found
        return found

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
        _enter()
        values: list[ctypes.c_uint64 | ctypes.c_uint32] = [ctypes.c_uint64(address) for address in addresses]
        shared = 0
        for length in threadgroup_lengths:
            values.append(ctypes.c_uint32(shared))
            shared += -(-length // 16) * 16
        pointers = (ctypes.c_void_p * max(len(values), 1))(*(ctypes.addressof(value) for value in values))
        _call("cuLaunchKernel", self._function(entry), *threadgroups, *threads, shared, None, pointers, None)

    def unload(self) -> None:
        """Drops the code; the module must not be used after."""
        if self._handle:
            _enter()
            _call("cuModuleUnload", self._handle)
            self._handle = ctypes.c_void_p()
