"""NVIDIA's libraries that programs use, each for a kind of step."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from contextlib import AbstractContextManager
from ctypes import c_void_p
from typing import Any, Protocol

from smelt.ir.errors import DeviceError, SmeltError

from ..gpu.library import (
    AttentionGradient,
    Collective,
    Convolution,
    LibraryCall,
    LibraryStep,
    MatrixProduct,
    ScaledAttention,
)
from . import collectives, dnn, driver, libraries, products, solvers, transforms
from .launches import Place


class Plan(Protocol):
    """How a library does a step.

    Attributes:
        workspace: bytes of memory that it uses beside the step's buffers.
        in_graphs: whether it may be put on a stream that is captured.
    """

    @property
    def workspace(self) -> int: ...

    @property
    def in_graphs(self) -> bool: ...

    def run(self, addresses: Sequence[int], stream: c_void_p | None = None) -> None:
        """Does it, without waiting.

        Args:
            addresses: of the buffers.
            stream: None: that of all launches.

        Raises:
            DeviceError, OutOfMemoryError: from the library.
        """
        ...

    def words(self) -> Sequence[int] | None:
        """See `launches.Step`."""
        ...

    def places(self, given: Sequence[Place]) -> Sequence[Place]:
        """See `launches.Step`."""
        ...

    @property
    def guard(self) -> AbstractContextManager[Any]:
        """See `launches.ProductStep`."""
        ...

    def error(self, code: int) -> SmeltError:
        """See `launches.ProductStep`."""
        ...

    def failed(self, addresses: Sequence[int]) -> bool:
        """Whether what was done last for these buffers cannot be done, and the op had better be asked why; waits for
        it, if so. Raises DeviceError: from the driver."""
        ...


#: By kind of step, or op of a call, the module whose ``library()`` plans it; that is None where it is not installed.
MODULES: dict[str, Any] = {
    MatrixProduct.kind: products, Convolution.kind: dnn, ScaledAttention.kind: dnn, AttentionGradient.kind: dnn,
    Collective.kind: collectives,
    **dict.fromkeys(transforms.OPS, transforms), **dict.fromkeys(solvers.OPS, solvers),
}  # fmt: skip


def _find(step: LibraryStep) -> Plan | None:
    module = MODULES.get(step.op if isinstance(step, LibraryCall) else step.kind)
    library = None if module is None else module.library()
    found: Plan | None = None if library is None else library.find(step)
    return found


def plan(step: LibraryStep) -> Plan:
    """How a step is done that was taken. Raises DeviceError where its library is gone, or takes it no more."""
    found = _find(step)
    if found is None:
        raise DeviceError(
            f"a {step.kind} cannot be made any more by the library of NVIDIA that the program was compiled for: it has "
            "changed, or is gone; SMELT_LIBRARIES=0 does without"
        )
    return found


@functools.cache
def identity() -> str:
    """What is installed, and on which GPU it is asked what it takes."""
    return repr((libraries.versions(), driver.gpu_name(), driver.architecture()))


class _Library:
    """See `smelt.backends.gpu.library.DeviceLibrary`."""

    def takes(self, step: LibraryStep) -> bool:
        return _find(step) is not None

    def workspace(self, step: LibraryStep) -> int:
        return plan(step).workspace


#: All that is installed.
LIBRARY = _Library()
