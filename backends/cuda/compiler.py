"""CUDA to machine code by NVRTC: from the package ``nvidia-cuda-nvrtc`` or the system. Needs no GPU."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from smelt.backends.metal.simulator.compiler import HEADERS
from smelt.backends.store import keep, kept
from smelt.ir.errors import DeviceError
from smelt.ir.host_threads import processors

from . import nvrtc
from .libraries import load
from .nvrtc import CompileError, compiled

_OPTIONS = ("--fmad=false",)


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
    library, digest = nvrtc_library(), hashlib.sha256()
    for path in sorted(HEADERS.iterdir()):
        if path.is_file():
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    major, minor = ctypes.c_int(), ctypes.c_int()
    library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    name = os.path.realpath(library._name)
    status = os.stat(name) if os.path.exists(name) else None
    return f"{digest.hexdigest()} {major.value}.{minor.value} {status and (status.st_size, status.st_mtime_ns)}"


@functools.cache
def _headers() -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(HEADERS.iterdir()) if path.is_file()}


def cubins(sources: Sequence[str], architecture: str) -> list[bytes]:
    """The machine code of sources, in order, or what it was another time, in this process or another one.

    Several are compiled at once, each by a process of its own.

    Raises:
        DeviceError: see `compile_cubin`.
    """
    keys = [
        "cubin-" + hashlib.sha256("\0".join((_identity(), architecture, source)).encode()).hexdigest()
        for source in sources
    ]
    found = {source: kept(key) for source, key in zip(sources, keys)}
    missing = [source for source, code in found.items() if code is None]
    if len(missing) == 1:
        found[missing[0]] = compile_cubin(missing[0], architecture)
    elif missing:
        with ThreadPoolExecutor(min(len(missing), processors()), "smelt-nvrtc") as pool:
            found |= zip(missing, pool.map(functools.partial(_compiled_apart, arch=architecture), missing))
    result = [found[source] or b"" for source in sources]
    for source, key, code in zip(sources, keys, result):
        if source in missing:
            keep(key, code)
    return result


def compile_cubin(source: str, arch: str = "sm_90", options: Sequence[str] = _OPTIONS) -> bytes:
    """Compiles CUDA to machine code.

    Args:
        source: from `cuda_source`.
        arch: ``sm_`` and the compute capability.
        options: of NVRTC, beside those that every text needs.

    Raises:
        DeviceError: NVRTC is not installed, or refuses; the message is its own.
    """
    try:
        return compiled(nvrtc_library(), source, _headers(), _flags(arch, options))
    except CompileError as error:
        raise _refused(str(error)) from None


def _compiled_apart(source: str, arch: str) -> bytes:
    """`compile_cubin`, by a process of its own; by this one where no other can be started, or where it dies."""
    asked = {"library": nvrtc_library()._name, "source": source, "headers": _headers(), "flags": _flags(arch, _OPTIONS)}
    command = [sys.executable, "-I", "-S", nvrtc.__file__]
    try:
        done = subprocess.run(command, input=json.dumps(asked).encode(), capture_output=True, start_new_session=True)
    except OSError:
        return compile_cubin(source, arch)
    if done.returncode == nvrtc.REFUSED:
        raise _refused(done.stderr.decode(errors="replace"))
    return done.stdout if done.returncode == 0 else compile_cubin(source, arch)


def _flags(arch: str, options: Sequence[str]) -> list[str]:
    return [f"-arch={arch}", "-std=c++17", "-default-device", "-w", *options]


def _refused(log: str) -> DeviceError:
    return DeviceError(f"the Metal text does not compile as CUDA\n{log[:8000]}")
