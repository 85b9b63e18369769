"""cuSOLVER and cuBLAS, and which plan is made for a call."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from ctypes import c_void_p
from typing import TYPE_CHECKING, Any

from smelt.backends.gpu.library import LibraryCall
from smelt.ir.errors import DeviceError

from .. import libraries

if TYPE_CHECKING:
    from .plan import Plan


class Blas(libraries.Library[LibraryCall, "Plan"]):
    """cuBLAS on the GPU, for whoever holds the guard of the `Library` that it belongs to."""

    create = "cublasCreate_v2"
    exhausted = (3,)


class Library(libraries.Library[LibraryCall, "Plan"]):
    """cuSOLVER on the GPU. See `libraries.Library`.

    Attributes:
        blas: cuBLAS; None where it is not installed.
        kinds: by op the plans for it: the first that takes a call.
        options: of functions whose names have an X.
    """

    create = "cusolverDnCreate"
    exhausted = (2,)
    blas: Blas | None = None
    kinds: Mapping[str, Sequence[type[Plan]]] = {}

    def __init__(self, library: Any):
        super().__init__(library)
        self.options = c_void_p()
        self.call("cusolverDnCreateParams", ctypes.byref(self.options))

    def has(self, name: str) -> bool:
        """Whether the library is so new that it has a function."""
        return hasattr(self._library, name)

    def put_on(self, stream: c_void_p | None) -> None:
        """What is called from now on is put on a stream. None: that of all launches."""
        self.call("cusolverDnSetStream", self.handle, stream)
        if self.blas is not None:
            self.blas.call("cublasSetStream_v2", self.blas.handle, stream)

    def _planned(self, call: LibraryCall) -> Plan | None:
        for kind in self.kinds[call.op]:
            if not kind.takes(self, call):
                continue
            try:
                return kind(self, call)
            except DeviceError:  # larger than it knows
                continue
        return None
