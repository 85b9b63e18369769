"""Programs of the device ``cpu`` as bytes: the length of the description, the description as JSON, the object."""

from __future__ import annotations

import functools
import importlib.util
import os
import platform
from json import dumps, loads

from smelt.ir import profiling
from smelt.ir.host_threads import processors
from smelt.ir.plain import PlainError
from smelt.ir.settings import settings

from ..device import Device
from ..executable import Executable
from . import objects, processor, threads
from .description import DescriptionError, ProgramDescription
from .executable import CpuExecutable
from .running import Program

#: What `/proc/cpuinfo` says of the processor that code is made for.
_OF_THE_PROCESSOR = frozenset(
    ("vendor_id", "cpu family", "model", "model name", "flags", "Features", "CPU implementer", "CPU architecture",
     "CPU variant", "CPU part")
)  # fmt: skip


class CpuPortable:
    """See `smelt.backends.executable.Portable`."""

    needs_device = False

    def has_room(self) -> bool:
        return True

    def identity(self) -> str | None:
        if not objects.supported():
            return None
        team = threads.team()
        kind = settings.check, profiling.active is not None
        return repr((_processor(), processors(), _blas(), type(team).__name__, team.together, team.shares, kind))

    def dump(self, executable: Executable) -> tuple[bytes, bool] | None:
        return self.dump_program(executable.program) if isinstance(executable, CpuExecutable) else None

    def dump_program(self, program: Program) -> tuple[bytes, bool] | None:
        """`dump` of what an executable runs."""
        if program.object is None and program.description.has_code:
            return None
        try:
            text = dumps(program.description.to_json(), separators=(",", ":")).encode()
        except PlainError:
            return None
        content = len(text).to_bytes(8, "little") + text + (program.object or b"")
        program.object = None  # is in memory as code; nobody asks twice
        return content, program.description.names_lines

    def load(self, content: bytes, device: Device) -> CpuExecutable:
        return CpuExecutable(self.load_program(content), device)

    def load_program(self, content: bytes) -> Program:
        """What the executable runs that `load` gives. Raises DescriptionError."""
        size = int.from_bytes(content[:8], "little")
        try:
            found = loads(content[8 : 8 + size])
        except (ValueError, RecursionError) as error:
            raise DescriptionError(f"this describes no program: {error}") from None
        description = ProgramDescription.of_json(found)
        if description.parallel and description.together is not threads.team().together:
            raise DescriptionError("a program of another team of threads")
        code = content[8 + size :]
        return Program(description, lambda symbols: objects.load(code, symbols.find))


@functools.cache
def _processor() -> str:
    """The kind of the processor, and what it can do."""
    known = [(name, value) for name, value in processor.facts().items() if name in _OF_THE_PROCESSOR]
    return repr((platform.machine(), known) if known else platform.uname())


def _blas() -> str:
    """Which BLAS there is, without loading it."""
    try:
        spec = importlib.util.find_spec("scipy_openblas64")
    except (ImportError, ValueError):
        return ""
    if spec is None or spec.origin is None:
        return ""
    folder = os.path.join(os.path.dirname(spec.origin), "lib")
    try:
        with os.scandir(folder) as files:
            stats = sorted([(f.name, f.stat().st_size, f.stat().st_mtime_ns) for f in files if "openblas" in f.name])
    except OSError:
        stats = []
    return repr((folder, stats, os.environ.get("OPENBLAS_CORETYPE")))


PORTABLE = CpuPortable()
