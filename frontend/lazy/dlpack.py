"""Arrays handed to other libraries, and taken from them, by DLPack.

NumPy makes and reads the capsules. It knows no bfloat16, so those travel as uint16 and the capsule's element type is
changed on the way.

What others get is memory that they may write to (`exports`), unless they ask for a copy. Arrays that lie on a device
with a name in DLPack are handed over and taken there, without a copy and for reading (`smelt.backends.dlpack`).
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from smelt.backends import dlpack
from smelt.ir import dtypes
from smelt.ir.errors import ArgumentTypeError, BufferExportError, at_user_line, shown
from smelt.runtime import Buffer
from smelt.runtime.device import default_device

#: The device of all that is exported: memory of the CPU.
CPU = (1, 0)
#: From here on capsules have a version.
_VERSIONED = (1, 0)

_UINT = 1  # kDLUInt


def exported(host: np.ndarray, stream: Any, max_version: Any, dl_device: Any, copy: Any) -> Any:
    """A capsule with the elements of an array, or a copy of them; see `array.__dlpack__`."""
    if stream is not None:
        raise BufferExportError(at_user_line(f"smelt: arrays lie in the CPU's memory, without stream {shown(stream)}"))
    if dl_device is not None and _pair(dl_device) != CPU:
        message = f"smelt: DLPack device {shown(dl_device)} was asked for; arrays are exported on the CPU, (1, 0)"
        raise BufferExportError(at_user_line(message))
    version = None if max_version is None else _pair(max_version)
    if max_version is not None and version is None:
        raise ArgumentTypeError(at_user_line(f"smelt: max_version must be a pair of ints, is {shown(max_version)}"))
    if version is not None and not (version >= _VERSIONED and _numpy_has_versions()):
        version = None
    memory = host.copy() if copy else host
    bits = memory.view(np.uint16) if memory.dtype == dtypes.bfloat16.numpy else memory
    capsule = bits.__dlpack__() if version is None else bits.__dlpack__(max_version=version)
    if bits is not memory and (held := dlpack.tensor_in(capsule)):
        held.code = dlpack.BFLOAT
    return capsule


def exported_there(buffer: Buffer, stream: Any, max_version: Any, dl_device: Any, copy: Any) -> Any:
    """`exported`, of a buffer whose home has a name in DLPack; see `array.__dlpack__`."""
    home = buffer.home
    if dl_device is not None and _pair(dl_device) != home.dlpack_device:
        message = (
            f"smelt: DLPack device {shown(dl_device)} was asked for; the array is exported on {home.dlpack_device}, "
            "or on the CPU, (1, 0)"
        )
        raise BufferExportError(at_user_line(message))
    if stream is not None and (not isinstance(stream, int) or stream == 0 or stream < -1):
        message = f"smelt: a stream of DLPack is None, -1, 1, 2 or a handle, not {shown(stream)}"
        raise BufferExportError(at_user_line(message))
    version = None if max_version is None else _pair(max_version)
    if max_version is not None and version is None:
        raise ArgumentTypeError(at_user_line(f"smelt: max_version must be a pair of ints, is {shown(max_version)}"))
    versioned = version is not None and version >= _VERSIONED
    return home.capsule(buffer.aval, stream, versioned, bool(copy))


def device_home(buffer: Buffer, dl_device: Any = None) -> Buffer | None:
    """The buffer where others get it on a device: it is that of the thread, or the elements began there; else None."""
    if dl_device is not None and _pair(dl_device) == CPU:
        return None
    if buffer.is_of_device:
        return buffer if hasattr(buffer.home, "dlpack_device") else None
    memory = default_device().memory
    return memory.adopt(buffer) if hasattr(memory, "dlpack_device") else None


def taken_there(x: Any, copy: bool = False) -> tuple[Buffer, dlpack.Tensor] | None:
    """An array of another library on a device that smelt has: its elements from the first to the last, and which of
    them it has; None where NumPy reads it.

    Raises:
        DeviceError: the device is not here. BufferExportError, DTypeError: from the capsule. And what the object does.
    """
    if isinstance(x, (np.ndarray, type)) or not hasattr(x, "__dlpack_device__"):
        return None
    take = dlpack.takers.get(int(x.__dlpack_device__()[0]))
    if take is None:
        return None
    try:
        capsule = x.__dlpack__(stream=1, max_version=_VERSIONED)
    except TypeError:  # from before there were versions
        capsule = x.__dlpack__(stream=1)
    tensor = dlpack.taken(capsule)
    return take.load()(tensor, copy), tensor


def _pair(given: Any) -> tuple[int, int] | None:
    try:
        first, second = map(int, given)
    except (TypeError, ValueError):
        return None
    return first, second


@functools.cache
def _numpy_has_versions() -> bool:
    """Whether NumPy's capsules have a version."""
    return np.lib.NumpyVersion(np.__version__) >= "2.1.0"


class _Taken:
    """A capsule in the place of what it was got from."""

    def __init__(self, capsule: Any):
        self._capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        tensor = dlpack.tensor_in(self._capsule)
        return CPU if tensor is None else (tensor.device_type, tensor.device_id)


_Capsule = type(np.empty(0).__dlpack__())


def producer(x: Any) -> Any:
    """An object that gives the capsule that `x` is; anything else as it is."""
    return _Taken(x) if type(x) is _Capsule else x


def imported(x: Any) -> np.ndarray:
    """The elements of an object with ``__dlpack__``, in its own memory: its owner may change them.

    Raises whatever the object raises, and what NumPy does not like about its capsule.
    """
    if isinstance(x, np.ndarray):  # which may have a dtype that NumPy does not export
        return x
    if (there := taken_there(x)) is not None:
        buffer, whole = there
        strides = [n * whole.aval.dtype.size for n in whole.strides]
        return np.lib.stride_tricks.as_strided(buffer.array, whole.aval.shape, strides)
    try:
        capsule = x.__dlpack__(max_version=_VERSIONED) if _numpy_has_versions() else x.__dlpack__()
    except TypeError:  # from before there were versions
        capsule = x.__dlpack__()
    tensor = dlpack.tensor_in(capsule)
    is_bfloat16 = tensor is not None and (tensor.code, tensor.bits) == (dlpack.BFLOAT, 16)
    if tensor is not None and is_bfloat16:
        tensor.code = _UINT
    found = np.from_dlpack(_Taken(capsule))
    return found.view(dtypes.bfloat16.numpy) if is_bfloat16 else found
