"""NVIDIA's libraries: from their packages on PyPI, or from the system."""

from __future__ import annotations

import ctypes
import ctypes.util
import glob
import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Generic, TypeVar

from smelt.ir import locks
from smelt.ir.errors import DeviceError, OutOfMemoryError, SmeltError

from . import driver
from .launches import Place

#: Plans that a library remembers.
MOST_PLANS = 1024


class Plan:
    """What plans of libraries have in common. See `smelt.backends.cuda.installed.Plan`."""

    workspace = 0
    in_graphs = True

    def failed(self, addresses: Sequence[int]) -> bool:
        """Whether what was done for these buffers cannot be done."""
        return False

    def words(self) -> Sequence[int] | None:
        """See `launches.Step`."""
        return None

    def places(self, given: Sequence[Place]) -> Sequence[Place]:
        """See `launches.Step`."""
        return given

    @property
    def guard(self) -> AbstractContextManager[Any]:
        """See `launches.ProductStep`."""
        raise NotImplementedError  # it is no line of a table

    def error(self, code: int) -> SmeltError:
        """See `launches.ProductStep`."""
        raise NotImplementedError  # it is no line of a table


Step = TypeVar("Step")
Found = TypeVar("Found")


def load(name: str) -> ctypes.CDLL | None:
    """A library, loaded; None where it is not installed.

    Args:
        name: what stands between ``lib`` and ``.so`` in the file's name: "nvrtc", "cublasLt", ...
    """
    system = ctypes.util.find_library(name)
    for place in [*_files(name), *([system] if system else [])]:
        try:
            return ctypes.CDLL(place)
        except OSError:
            continue
    return None


def warm() -> None:
    """Makes the GPU's context, and loads what the first kernels and products wait for: hundreds of megabytes. See
    `driver.warm`."""
    driver.warm()
    for name in ("nvrtc", "cublasLt"):
        load(name)


def _files(name: str) -> list[str]:
    """Where a library may be, beside where the system looks for it."""
    pattern = f"lib{name}.so.*"
    places = [path for root in sys.path for path in glob.glob(os.path.join(root, "nvidia", "*", "lib", pattern))]
    return places + sorted(glob.glob(f"/usr/local/cuda*/lib64/{pattern}"), reverse=True)


def versions() -> str:
    """Which libraries there are, without loading one: their files, sizes and times."""
    stats = [(path, os.stat(path)) for path in _files("*")]
    return repr([(path, status.st_size, status.st_mtime_ns) for path, status in stats])


class Library(Generic[Step, Found]):
    """A library on the GPU, and its plans of steps.

    Attributes:
        create: what makes a handle; "" where there is none.
        describe: what says an error in words; "" where nothing does.
        exhausted: codes of errors that say that there is no memory.
        handle: of the library, for one thread at a time: who holds `guard`.

    Raises:
        DeviceError: it does not work with the driver. AttributeError: it is too old.
    """

    create: ClassVar[str] = ""
    describe: ClassVar[str] = ""
    exhausted: ClassVar[tuple[int, ...]] = ()

    def __init__(self, library: Any):
        self._library = library
        if self.describe:
            getattr(library, self.describe).restype = ctypes.c_char_p
        driver.enter()
        self.guard = locks.lock()
        self.handle = ctypes.c_void_p()
        if self.create:
            self.call(self.create, ctypes.byref(self.handle))
        self._plans: dict[Step, Found | None] = {}

    def call(self, name: str, *arguments: object) -> None:
        """Calls the library.

        Raises:
            OutOfMemoryError: it could not have memory. DeviceError: its name of another error.
        """
        code = self.status(name, *arguments)
        if code:
            raise self.error(name, code)

    def error(self, name: str, code: int) -> SmeltError:
        """What `call` raises for a function that returned a code."""
        if code in self.exhausted:
            return OutOfMemoryError(f"{name}: the GPU has no more memory")
        text = getattr(self._library, self.describe)(code) if self.describe else None
        return DeviceError(f"{name}: {(text or b'error').decode()} ({code})")

    def address(self, name: str) -> int:
        """Where a function of the library lies."""
        return ctypes.cast(getattr(self._library, name), ctypes.c_void_p).value or 0

    def status(self, name: str, *arguments: object) -> int:
        """Calls the library; what it returns."""
        found: int = getattr(self._library, name)(*arguments)
        return found

    def find(self, step: Step) -> Found | None:
        """How a step is done; None for one that the library does not do."""
        with self.guard:
            if step not in self._plans:
                self._drop_oldest()
                driver.enter()
                self._plans[step] = self._planned(step)
            return self._plans[step]

    def _drop_oldest(self) -> None:
        while len(self._plans) >= MOST_PLANS:
            self._plans.pop(next(iter(self._plans)))

    def _planned(self, step: Step) -> Found | None:
        """What `find` finds for a step that it has not seen."""
        raise NotImplementedError


Kind = TypeVar("Kind", bound=Library[Any, Any])


def opened(kind: type[Kind], loaded: Any) -> Kind | None:
    """A library that was loaded, or None; None also where it does not work with the driver."""
    try:
        return None if loaded is None else kind(loaded)
    except (DeviceError, AttributeError):
        return None
