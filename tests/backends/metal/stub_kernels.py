"""Programs of kernels that are NumPy functions, for tests of the Apple runtime without a compiler."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from smelt.backends.gpu.manifest import ArrayInfo, BufferSlot, KernelBuffer, KernelInfo, Launch, Manifest
from smelt.backends.metal.apple import AppleDevice, Block
from smelt.ir.errors import SmeltError

N = 32  # elements of every buffer here


class Stub:
    """Kernels made of NumPy: the text names them, one a line."""

    KERNELS: dict[str, Callable[..., None]] = {
        "copy": lambda x, y: np.copyto(y, x),
        "double": lambda x, y: np.copyto(y, x * 2),
        "increment": lambda x: np.copyto(x, x + 1),
        "add": lambda x, y, z: np.copyto(z, x + y),
    }

    def __init__(self, text: str):
        self.entries = text.split()
        for entry in self.entries:
            if entry not in self.KERNELS:
                raise SmeltError(f"no such kernel: {entry}")

    def launch(self, entry: str, buffers: Any, threadgroups: Any, threads: Any, grid: Any = None) -> None:
        arrays = []
        for _, (address, nbytes) in sorted(buffers.items()):
            assert nbytes >= 4 * N
            holder = types.SimpleNamespace(__array_interface__={
                "version": 3, "shape": (N,), "typestr": "<f4", "data": (address, False),
            })  # fmt: skip
            arrays.append(np.asarray(holder))
        kernel = self.KERNELS[entry]
        kernel(*arrays[: len(inspect.signature(kernel).parameters)])


ACCESS = {
    "copy": ("read", "write"),
    "double": ("read", "write"),
    "increment": ("read_write",),
    "add": ("read", "read", "write"),
}


def kernel_info(entry: str, threads: int = N) -> KernelInfo:
    buffers = [KernelBuffer(f"b{i}", "float", N, access, i) for i, access in enumerate(ACCESS[entry])]
    return KernelInfo(entry, "map", tuple(buffers), (1, 1, 1), (threads, 1, 1), 0, 4 * N, 4 * N, 0)


def place(name: str) -> BufferSlot:
    """``a1``: an argument, ``r0``: a result, ``t3``: the third array of the arena."""
    number = int(name[1:])
    if name[0] == "t":
        return BufferSlot("arena", offset=number * 4 * N)
    return BufferSlot({"a": "argument", "r": "result"}[name[0]], number)


def manifest_of(*lines: str, n_arguments: int = 1, n_results: int = 1, arena: int = 0) -> Manifest:
    """Each line is a kernel and the places of its buffers."""
    launches = [Launch(entry, tuple(place(p) for p in places)) for entry, *places in map(str.split, lines)]
    return Manifest(
        "program",
        tuple(ArrayInfo(f"x{i}", "float32", (N,)) for i in range(n_arguments)),
        tuple(ArrayInfo(f"y{i}", "float32", (N,)) for i in range(n_results)),
        arena * 4 * N,
        tuple(kernel_info(entry) for entry in dict.fromkeys(launch.entry for launch in launches)),
        tuple(launches),
    )


def text_of(manifest: Manifest) -> str:
    return " ".join(k.entry for k in manifest.kernels)


def block_of(device: AppleDevice, values: Any = 0.0) -> Block:
    block = device.allocate(4 * N)
    floats(block)[:] = values
    return block


def floats(block: Block) -> np.ndarray:
    return block.array.view(np.float32)


def run(device: AppleDevice, manifest: Manifest, *arguments: Any) -> list[np.ndarray]:
    program = device.load(text_of(manifest), manifest)
    results = [device.allocate(4 * N) for _ in manifest.results]
    arena = device.allocate(manifest.arena_bytes) if manifest.arena_bytes else None
    program.run([block_of(device, a) for a in arguments], results, arena)
    return [floats(r).copy() for r in results]
