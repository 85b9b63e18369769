"""What a host needs to know to launch emitted kernels: a plain description, also as JSON.

A program is a text of Metal Shading Language with kernels, and steps in order. All grids are static: a
`Launch` binds a kernel's buffers to arguments, results, or places in the arena (one block of temporary
memory, whose size is known before running). A `Loop` or `Branch` runs steps that it contains; what moves
in a loop are the places of its buffers. A `Call` runs the steps of a function on places. `steps.walk` shows
what runs when.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from .library import LibraryStep, step_from, step_to

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
class Constant:
    """A ``[[buffer(index)]]`` that holds the same numbers in every launch; `type` is int or long."""

    index: int
    type: str
    values: tuple[int, ...]

    @property
    def bytes(self) -> bytes:
        return struct.pack(f"={len(self.values)}{'i' if self.type == 'int' else 'q'}", *self.values)


@dataclass(frozen=True)
class OwnText:
    """A kernel that a user wrote: a text beside the program's.

    Attributes:
        text: all of it.
        function: the kernel's name in it.
        grid: how many threads, along x, y, z; the last threadgroups along an axis may not be full.
        constants: bound beside the buffers of a launch.
    """

    text: str
    function: str
    grid: Size
    constants: tuple[Constant, ...] = ()


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
        own: its text, where that is not the program's; `entry` is a name in the manifest alone then.
        library: what a library does in its place; the same then.
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
    own: OwnText | None = None
    library: LibraryStep | None = None


@dataclass(frozen=True)
class BufferSlot:
    """Where a buffer of a launch lies.

    Attributes:
        kind: "argument", "result", "arena", "local": where local `index` stands, or "parameter": where the call of the
            function says.
        index: which argument, result, local or parameter.
        offset: so many bytes further.
        strides: for each of the loops around: its number, and the bytes further at each of its iterations.
    """

    kind: str
    index: int = 0
    offset: int = 0
    strides: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Launch:
    """One kernel over its buffers. Steps run in order; each sees what the ones before it wrote."""

    entry: str
    buffers: tuple[BufferSlot, ...]


@dataclass(frozen=True)
class Local:
    """A place that moves while a loop runs: from `start` to `next` after each iteration, all locals at once."""

    index: int
    start: BufferSlot
    next: BufferSlot


@dataclass(frozen=True)
class Loop:
    """Steps that are repeated.

    Attributes:
        loop: its number, by which strides name it.
        length: how often it runs; None: while the byte at `flag` is not 0 after the steps `condition`.
    """

    loop: int
    length: int | None
    locals: tuple[Local, ...]
    condition: tuple[Step, ...]
    flag: BufferSlot | None
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Branch:
    """One of several lists of steps: that of the number at a place; the last, if there is none of that number.

    Attributes:
        bytes: of the number, a signed integer.
    """

    branch: BufferSlot
    bytes: int
    branches: tuple[tuple[Step, ...], ...]


@dataclass(frozen=True)
class Call:
    """The steps of a function.

    Attributes:
        function: its number among the manifest's.
        buffers: where its parameters lie.
    """

    function: int
    buffers: tuple[BufferSlot, ...]


Step = Launch | Loop | Branch | Call


@dataclass(frozen=True)
class ArrayInfo:
    """An argument or result: row-major and contiguous. bool is a byte, a complex number two floats."""

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
    """All of a program but its text. `functions`: steps that run at several places."""

    name: str
    arguments: tuple[ArrayInfo, ...] = ()
    results: tuple[ArrayInfo, ...] = ()
    arena_bytes: int = 0
    kernels: tuple[KernelInfo, ...] = ()
    steps: tuple[Step, ...] = ()
    aliases: tuple[Alias, ...] = ()
    functions: tuple[tuple[Step, ...], ...] = ()

    def kernel(self, entry: str) -> KernelInfo:
        """The kernel called `entry`. Raises KeyError."""
        for kernel in self.kernels:
            if kernel.entry == entry:
                return kernel
        raise KeyError(entry)

    @property
    def launches(self) -> list[Launch]:
        """The launches, also those in loops, branches and functions, each once."""
        return [launch for steps in (self.steps, *self.functions) for launch in _launches(steps)]

    @property
    def is_static(self) -> bool:
        """Whether the steps are launches, and nothing else."""
        return all(isinstance(step, Launch) for step in self.steps)

    def to_json(self) -> str:
        """The manifest as JSON, the same for equal manifests."""
        return json.dumps(_plain(self), indent=2) + "\n"

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
                "own": _own(item["own"]) if "own" in item else None,
                "library": step_from(item["library"]) if "library" in item else None,
            })
            for item in found["kernels"]
        )  # fmt: skip
        aliases = tuple(Alias(**a) for a in found.get("aliases", ()))
        return Manifest(
            found["name"], arrays(found["arguments"]), arrays(found["results"]), found["arena_bytes"], kernels,
            _steps(found["steps"]), aliases, tuple(map(_steps, found.get("functions", ()))),
        )  # fmt: skip


def _launches(steps: Sequence[Step]) -> Iterator[Launch]:
    for step in steps:
        if isinstance(step, Launch):
            yield step
        elif isinstance(step, Loop):
            yield from _launches((*step.condition, *step.steps))
        elif isinstance(step, Branch):
            for branch in step.branches:
                yield from _launches(branch)


def _plain(x: Any) -> Any:
    """Dataclasses as dicts; a place outside of loops has no strides, a kernel of the program's text nothing in its
    place, and a program without functions no list of them."""
    if isinstance(x, LibraryStep):
        return step_to(x)
    if is_dataclass(x):
        items = {f.name: _plain(getattr(x, f.name)) for f in fields(x)}
        if isinstance(x, BufferSlot) and not x.strides:
            del items["strides"]
        if isinstance(x, Manifest) and not x.functions:
            del items["functions"]
        if isinstance(x, KernelInfo):
            items = {name: item for name, item in items.items() if name not in ("own", "library") or item is not None}
        return items
    return [_plain(item) for item in x] if isinstance(x, tuple) else x


def _own(found: Mapping[str, Any]) -> OwnText:
    x, y, z = found["grid"]
    constants = tuple(Constant(c["index"], c["type"], tuple(c["values"])) for c in found["constants"])
    return OwnText(found["text"], found["function"], (x, y, z), constants)


def slot_to(slot: BufferSlot) -> Any:
    """A place as plain data."""
    return _plain(slot)


def slot_from(found: Mapping[str, Any]) -> BufferSlot:
    """The inverse of `slot_to`."""
    strides = tuple((int(loop), int(stride)) for loop, stride in found.get("strides", ()))
    return BufferSlot(found["kind"], found["index"], found["offset"], strides)


def _steps(items: Sequence[Mapping[str, Any]]) -> tuple[Step, ...]:
    return tuple(_step(item) for item in items)


def _step(item: Mapping[str, Any]) -> Step:
    if "entry" in item:
        return Launch(item["entry"], tuple(map(slot_from, item["buffers"])))
    if "function" in item:
        return Call(item["function"], tuple(map(slot_from, item["buffers"])))
    if "branch" in item:
        return Branch(slot_from(item["branch"]), item["bytes"], tuple(map(_steps, item["branches"])))
    moving = tuple(Local(x["index"], slot_from(x["start"]), slot_from(x["next"])) for x in item["locals"])
    flag = slot_from(item["flag"]) if item["flag"] else None
    return Loop(item["loop"], item["length"], moving, _steps(item["condition"]), flag, _steps(item["steps"]))
