"""Compiled programs that other processes have made: found by the text of a module before any pass.

The key of a program is a hash of that text and of all else that its code depends on: the sources of smelt, the
bindings, the Python environment, and what the device says (the processor, the BLAS, the kind of its threads, checks).
Texts have no locations, so functions that compute the same share a program wherever they stand. One whose errors
name lines of the user is kept under a key of the text with its locations besides.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import sysconfig
from collections.abc import Callable

from smelt.backends.device import Device
from smelt.backends.executable import Executable
from smelt.ir import locks, mlir
from smelt.ir.errors import SmeltError
from smelt.ir.op import registry
from smelt.ir.settings import READ_AT, logs_compiles, settings

from .disk import disk
from .pipelines import WITHOUT_SIZES, in_force

#: The rooms whose sources decide what becomes of a module.
_ROOMS = ("ir", "passes", "backends", "runtime")
#: Where packages add patterns to a default pipeline, once that is loaded.
_PATTERNS = "smelt.passes.simplify.patterns"
#: What reads MLIR.
MLIR = "smelt.ir.text:parse"


def can_keep(device: Device) -> bool:
    """Whether programs of a device have a form as bytes on this machine."""
    return device.portable is not None and device.portable.identity() is not None


class Recipe:
    """A module to be compiled, by its text.

    Args:
        text: the module without locations.
        located: gives the same module with the user's lines; None: it has none.
        pipeline: passes instead of the device's own, as text.
        reader: ``"module:name"`` of what makes a module of the text, if that is not MLIR's own.
    """

    def __init__(
        self, text: str, device: Device, located: Callable[[], str] | None = None, pipeline: str | None = None,
        reader: str = MLIR,
    ):  # fmt: skip
        self.text, self.device, self.pipeline, self.reader = text, device, in_force(device, pipeline), reader
        self._located = located
        self._identity = self._identity_now()
        #: The key, and what gives the one of a program that names lines; None where it cannot be kept.
        self.keys = self._make_keys()

    @property
    def located(self) -> str:
        """The text with the user's lines."""
        return self.text if self._located is None else self._located()

    def _make_keys(self) -> tuple[str, Callable[[], str]] | None:
        environment = _environment()
        if self._identity is None or not environment or not _is_smelts_own(self.text):
            return None
        if self.pipeline not in (None, WITHOUT_SIZES) and _is_foreign(self.pipeline):
            return None
        digest = hashlib.sha256()
        for part in (self.device.name, self._identity, environment, self.pipeline or "", self.reader, self.text):
            digest.update(part.encode() + b"\0")

        def with_lines() -> str:
            other = digest.copy()
            other.update(self.located.encode() + b"\0lines")
            return other.hexdigest()[:40]

        return digest.hexdigest()[:40], with_lines

    def _identity_now(self) -> str | None:
        return self.device.portable.identity() if self.device.portable is not None else None

    def load(self, content: bytes) -> Executable | None:
        """The program that another process has made; None where it needs what is not here."""
        portable = self.device.portable
        assert portable is not None
        try:
            found = portable.load(content, self.device)
        except SmeltError as error:
            if logs_compiles(settings):
                print(f"smelt: a kept program cannot be used: {error}", file=sys.stderr)
            return None
        found.loaded = True
        return found

    def find(self) -> Executable | None:
        """The program, if it is on disk."""
        if not settings.cache or self.keys is None:
            return None
        key, with_lines = self.keys
        content = disk.get(key)
        if content is None and self._located is not None:
            key = with_lines()
            content = disk.get(key)
        if content is None:
            return None
        program = self.load(content)
        if program is None:
            disk.drop(key)
        return program

    def keep(self, program: Executable) -> bytes | None:
        """Put a program on disk, if that is wanted; it as bytes, or None where it has no such form."""
        portable = self.device.portable
        dumped = portable.dump(program) if portable is not None and self.keys is not None else None
        if dumped is None or self._identity != self._identity_now():  # another thread has changed a setting
            return None
        content, names_lines = dumped
        if settings.cache and self.keys is not None:
            key, with_lines = self.keys
            disk.put(with_lines() if names_lines else key, content)
        return content


def _is_smelts_own(text: str) -> bool:
    """Whether what becomes of a module depends on smelt alone: ops of other packages, functions that a process has
    registered under a name, and patterns of others may be anything."""
    if "smelt.custom_call" in text:
        return False
    others = [name for name, op in registry.items() if not type(op).__module__.startswith("smelt.")]
    if any(f'"smelt.{name}"' in text for name in others):
        return False
    patterns = sys.modules.get(_PATTERNS)
    return patterns is None or not patterns.has_foreign_patterns()


def _is_foreign(pipeline: str) -> bool:
    """Whether code of another package takes part in a pipeline: its text does not say what that does."""
    # Pipelines of devices are smelt's own, so most programs need no passes here.
    foreign: bool = locks.loaded("smelt.passes.driver").Pipeline.parse(pipeline).foreign
    return foreign


@functools.cache
def _environment() -> str:
    """The sources of smelt, the bindings, and the folders into which packages are installed that may add passes.

    Of sources it is where they lie, their sizes, and when they were written: to the nanosecond, and by the system's own
    clock, so that there is nothing to read. Empty where some have changed since this process began to load them: it may
    run the old ones.
    """
    found: list[tuple[str, int, int, int]] = []
    root = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    for room in _ROOMS:
        _add_sources(os.path.join(root, room), found)
    if any(written > READ_AT * 1e9 for _, _, written, _ in found):
        return ""
    digest = hashlib.sha256(repr(sorted(found)).encode())
    installed = []
    for name in ("purelib", "platlib"):
        folder = sysconfig.get_path(name)
        try:
            installed.append((folder, os.stat(folder).st_mtime_ns))
        except OSError:
            continue
    return repr((digest.hexdigest(), mlir.identity(), sys.version_info[:2], installed))


def _add_sources(folder: str, found: list[tuple[str, int, int, int]]) -> None:
    """Add path, size, and both times of each source in a folder."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                about = entry.stat()
                found.append((entry.path, about.st_size, about.st_mtime_ns, about.st_ctime_ns))
            elif entry.is_dir(follow_symlinks=False) and entry.name != "__pycache__":
                _add_sources(entry.path, found)
