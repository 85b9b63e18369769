"""CUDA to machine code by NVRTC: from the package ``nvidia-cuda-nvrtc`` or the system. Needs no GPU."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
from collections.abc import Sequence

from smelt.backends.metal.simulator.compiler import HEADERS
from smelt.backends.store import keep, kept
from smelt.ir.errors import DeviceError

from .libraries import load


@functools.cache
def nvrtc_library() -> ctypes.CDLL:
    """NVRTC, loaded. Raises DeviceError where it is not installed."""
    found = load("nvrtc")
    if found is None:
        raise DeviceError("NVRTC was not found: install smelt-mlir[cuda], or nvidia-cuda-nvrtc alone")
    return found


@functools.cache
def _identity() -> str:
    """What machine code depends on beside its source: the headers, and which NVRTC this is."""
    nvrtc, digest = nvrtc_library(), hashlib.sha256()
    for path in sorted(HEADERS.iterdir()):
        if path.is_file():
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    major, minor = ctypes.c_int(), ctypes.c_int()
    nvrtc.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    name = os.path.realpath(nvrtc._name)
    status = os.stat(name) if os.path.exists(name) else None
    return f"{digest.hexdigest()} {major.value}.{minor.value} {status and (status.st_size, status.st_mtime_ns)}"


def cubin(source: str, architecture: str) -> bytes:
    """`compile_cubin`, or what that gave another time, in this process or another one."""
    key = "cubin-" + hashlib.sha256("\0".join((_identity(), architecture, source)).encode()).hexdigest()
    found = kept(key)
    if found is None:
        found = compile_cubin(source, architecture)
        keep(key, found)
    return found


def compile_cubin(source: str, arch: str = "sm_90", options: Sequence[str] = ("--fmad=false",)) -> bytes:
    """Compiles CUDA to machine code.

    Args:
        source: from `cuda_source`.
        arch: ``sm_`` and the compute capability.
        options: of NVRTC, beside those that every text needs.

    Raises:
        DeviceError: NVRTC is not installed, or refuses; the message is its own.
    """
    nvrtc = nvrtc_library()
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
