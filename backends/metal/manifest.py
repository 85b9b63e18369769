"""What a host needs to know to launch emitted kernels: a plain description, also as JSON.

A program is a text of Metal Shading Language with kernels, and a list of launches over buffers. All
grids are static: a `Launch` binds a kernel's buffers to arguments, results, or places in the arena (one
block of temporary memory, whose size is known before running).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

Size = tuple[int, int, int]


@dataclass(frozen=True)
class KernelBuffer:
    """A ``[[buffer(index)]]`` of a kernel.

    Attributes:
        name: the parameter's name in the text.
        type: the element type in the text: float, half, bfloat, uint, float2, ...
        elements: how many of them the kernel may touch.
        access: "read", "write" or "read_write".
        index: of the buffer.
    """

    name: str
    type: str
    elements: int
    access: str
    index: int


@dataclass(frozen=True)
class KernelInfo:
    """One kernel function.

    Attributes:
        entry: its name in the text.
        schedule: how its elements are spread over threads: map, row, ...
        buffers: in the order of their indices.
        threadgroups: how many, along x, y, z.
        threads: in each threadgroup, along x, y, z.
        threadgroup_bytes: memory shared by a threadgroup.
        bytes_read, bytes_written: between device memory and the kernel; what its threads read twice from a
            cache is counted once.
        flops: floating-point operations, estimated.
    """

    entry: str
    schedule: str
    buffers: tuple[KernelBuffer, ...]
    threadgroups: Size
    threads: Size
    threadgroup_bytes: int
    bytes_read: int
    bytes_written: int
    flops: int


@dataclass(frozen=True)
class Place:
    """Where a buffer of a launch lies: argument or result `index` of the program, or `offset` in the arena."""

    kind: str  #: "argument", "result" or "arena"
    index: int = 0
    offset: int = 0


@dataclass(frozen=True)
class Launch:
    """One kernel over its buffers. Launches run in order; each sees what the ones before it wrote."""

    entry: str
    buffers: tuple[Place, ...]


@dataclass(frozen=True)
class ArrayInfo:
    """An argument or result: row-major and contiguous. bool is a byte, complex64 two floats."""

    name: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Alias:
    """A result that no launch writes: it is argument or result `index`, byte for byte."""

    result: int
    kind: str  #: "argument" or "result"
    index: int


@dataclass(frozen=True)
class Manifest:
    """All of a program but its text."""

    name: str
    arguments: tuple[ArrayInfo, ...] = ()
    results: tuple[ArrayInfo, ...] = ()
    arena_bytes: int = 0
    kernels: tuple[KernelInfo, ...] = ()
    launches: tuple[Launch, ...] = field(default=())
    aliases: tuple[Alias, ...] = ()

    def kernel(self, entry: str) -> KernelInfo:
        """The kernel called `entry`. Raises KeyError."""
        for kernel in self.kernels:
            if kernel.entry == entry:
                return kernel
        raise KeyError(entry)

    def to_json(self) -> str:
        """The manifest as JSON, the same for equal manifests."""
        return json.dumps(asdict(self), indent=2) + "\n"

    @staticmethod
    def from_json(text: str) -> Manifest:
        """The inverse of `to_json`."""
        found: dict[str, Any] = json.loads(text)

        def arrays(items: Sequence[Mapping[str, Any]]) -> tuple[ArrayInfo, ...]:
            return tuple(ArrayInfo(i["name"], i["dtype"], tuple(i["shape"])) for i in items)

        kernels = tuple(
            KernelInfo(**{
                **item,
                "buffers": tuple(KernelBuffer(**b) for b in item["buffers"]),
                "threadgroups": tuple(item["threadgroups"]),
                "threads": tuple(item["threads"]),
            })
            for item in found["kernels"]
        )  # fmt: skip
        launches = tuple(Launch(i["entry"], tuple(Place(**p) for p in i["buffers"])) for i in found["launches"])
        aliases = tuple(Alias(**a) for a in found.get("aliases", ()))
        return Manifest(
            found["name"], arrays(found["arguments"]), arrays(found["results"]), found["arena_bytes"], kernels,
            launches, aliases,
        )  # fmt: skip
