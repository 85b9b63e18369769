"""Programs of GPUs as bytes: the length of a description, the description as JSON, and what runs on the CPU.

The description has the text and the manifest of each segment. Machine code of texts is kept apart, by those who make
it of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from smelt.ir.errors import SmeltError
from smelt.ir.plain import aval_of, plain_aval

from ..cpu.description import DescriptionError
from ..cpu.portable import PORTABLE as CPU
from ..device import Device
from ..executable import Executable
from .executable import GpuExecutable
from .manifest import Manifest, slot_from, slot_to
from .program import DeviceSegment, HostSegment, Program

#: Of the form below.
VERSION = 1


class GpuPortable:
    """See `smelt.backends.executable.Portable`.

    Args:
        kind: what runs its programs.
        libraries: says what may make steps of them, and on which GPU.
        has_room: says whether another process may ask that on the device; None: nobody asks there.
    """

    def __init__(
        self, kind: type[GpuExecutable], libraries: Callable[[], str] = lambda: "",
        has_room: Callable[[], bool] | None = None,
    ):  # fmt: skip
        self._kind, self._libraries = kind, libraries
        self.needs_device, self._has_room = has_room is not None, has_room

    def has_room(self) -> bool:
        return self._has_room is None or self._has_room()

    def identity(self) -> str | None:
        # Where code of the CPU has no form as bytes, programs without such code have one.
        return repr((CPU.identity(), self._libraries()))

    def dump(self, executable: Executable) -> tuple[bytes, bool] | None:
        assert isinstance(executable, GpuExecutable)
        program, names_lines, behind = executable.program, False, b""
        segments: list[dict[str, Any]] = []
        for segment in program.segments:
            if isinstance(segment, DeviceSegment):
                names_lines = True  # a comment above each kernel
                segments.append({"text": segment.text, "manifest": segment.manifest.to_json()})
                continue
            dumped = CPU.dump_program(segment.program)
            if dumped is None:
                return None
            content, names = dumped
            names_lines |= names
            arguments, results = (
                [[slot_to(slot), plain_aval(aval)] for slot, aval in values]
                for values in (segment.arguments, segment.results)
            )
            segments.append(
                {"host": segment.name, "bytes": len(content), "arguments": arguments, "results": results}
            )
            behind += content
        description = {
            "version": VERSION,
            "arguments": [plain_aval(a) for a in program.arguments],
            "results": [plain_aval(a) for a in program.results],
            "aliases": [[i, source] for i, source in program.aliases.items()],
            "arena_bytes": program.arena_bytes,
            "segments": segments,
        }
        text = json.dumps(description, separators=(",", ":")).encode()
        return len(text).to_bytes(8, "little") + text + behind, names_lines

    def load(self, content: bytes, device: Device) -> GpuExecutable:
        size = int.from_bytes(content[:8], "little")
        try:
            found = json.loads(content[8 : 8 + size])
            if found["version"] != VERSION:
                raise DescriptionError(f"a description of version {found['version']}")
            program = _KeptProgram(found, content[8 + size :])
        except DescriptionError:
            raise
        except (SmeltError, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise DescriptionError(f"this describes no program: {type(error).__name__}: {error}") from None
        return self._kind(program, device)


class _KeptProgram(Program):
    """A program of a description.

    Args:
        behind: the programs of its host segments, one after the other.
    """

    def __init__(self, found: Any, behind: bytes):
        self.arguments, self.results = ([aval_of(a) for a in found[key]] for key in ("arguments", "results"))
        self.aliases = {
            int(i): int(source) if isinstance(source, int) else (str(source[0]), int(source[1]))
            for i, source in found["aliases"]
        }
        self.arena_bytes = int(found["arena_bytes"])
        self.segments = []
        for segment in found["segments"]:
            if "text" in segment:
                manifest = Manifest.from_json(segment["manifest"])
                self.segments.append(DeviceSegment.of_text(str(segment["text"]), manifest))
                continue
            content, behind = behind[: segment["bytes"]], behind[segment["bytes"] :]
            arguments, results = (
                [(slot_from(slot), aval_of(aval)) for slot, aval in segment[key]] for key in ("arguments", "results")
            )
            program = CPU.load_program(content)
            self.segments.append(HostSegment(str(segment["host"]), program, arguments, results))
