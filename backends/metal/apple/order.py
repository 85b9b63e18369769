"""Which launches of a program must wait for the ones before them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from ...gpu.manifest import KernelBuffer, Manifest
from ...gpu.steps import Where

_SCALAR_BYTES = {
    "bool": 1, "char": 1, "uchar": 1, "short": 2, "ushort": 2, "half": 2, "bfloat": 2,
    "int": 4, "uint": 4, "float": 4, "long": 8, "ulong": 8,
}  # fmt: skip
_TYPE = re.compile(r"(?P<packed>packed_)?(?P<scalar>[a-z]+?)(?P<width>[234]?)")


def element_bytes(type_name: str) -> int | None:
    """Bytes of an element of a buffer, by the name of its type in the text; None for a type not known."""
    name = type_name.strip()
    if name.startswith("atomic"):
        name = name.removeprefix("atomic").strip("_<>")
    match = _TYPE.fullmatch(name)
    if match is None or match["scalar"] not in _SCALAR_BYTES:
        return None
    width = int(match["width"] or 1)
    # A vector of three takes the place of four unless it is packed.
    return _SCALAR_BYTES[match["scalar"]] * (4 if width == 3 and not match["packed"] else width)


@dataclass(frozen=True)
class _Span:
    """Memory that a launch touches: bytes of one buffer."""

    memory: tuple[str, int]
    start: float
    end: float
    reads: bool
    writes: bool

    @staticmethod
    def of(where: Where, buffer: KernelBuffer) -> _Span:
        kind, index, offset = where
        size = element_bytes(buffer.type)
        return _Span(
            (kind, index),
            offset if size is not None else 0,
            offset + size * buffer.elements if size is not None else math.inf,
            buffer.access != "write",
            buffer.access != "read",
        )

    def conflicts(self, other: _Span) -> bool:
        """Whether the order of the two matters: they overlap and one of them writes."""
        return (
            (self.writes or other.writes)
            and self.memory == other.memory
            and self.start < other.end
            and other.start < self.end
        )


class Hazards:
    """What launches since the last barrier touch. Arguments and results are taken to be memory of their own."""

    def __init__(self) -> None:
        self._since: list[_Span] = []

    def needs_barrier(self, places: Iterable[Where], buffers: Iterable[KernelBuffer]) -> bool:
        """Whether a launch, which is the next one, needs a barrier before it.

        It does when it touches what a launch since the last barrier has written, or writes what such a
        launch has read.
        """
        own = [_Span.of(where, buffer) for where, buffer in zip(places, buffers)]
        wait = any(a.conflicts(b) for a in own for b in self._since)
        self._since = own if wait else self._since + own
        return wait


def barriers(manifest: Manifest) -> tuple[bool, ...]:
    """Whether a barrier is needed before each launch of a program without loops and branches."""
    hazards = Hazards()
    found = []
    for launch in manifest.launches:
        buffers = manifest.kernel(launch.entry).buffers
        places = [(place.kind, place.index, place.offset) for place in launch.buffers]
        found.append(hazards.needs_barrier(places, buffers))
    return tuple(found)
