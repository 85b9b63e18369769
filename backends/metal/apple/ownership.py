"""Whose the objects are that Metal's methods make.

A method whose name begins with ``new`` hands over an object that the caller owns. PyObjC up to 12.2.2 knows that of
class methods alone: what instance methods hand over it retains once more, so that no buffer, library or pipeline is
ever freed. Registering the methods as what they are mends that, in every version of PyObjC, before and after. The
registered description takes the place of PyObjC's own, so it says the rest of it too; a test holds it to the wheel's.
"""

from __future__ import annotations

from typing import Any

#: Types of the arguments, in Objective-C's letters, of each method used here that makes an object; ``^@``: an error
#: that comes back beside the result.
MAKERS: dict[bytes, tuple[bytes, ...]] = {
    b"newCommandQueue": (),
    b"newBufferWithLength:options:": (b"Q", b"Q"),
    b"newLibraryWithSource:options:error:": (b"@", b"@", b"^@"),
    b"newFunctionWithName:": (b"@",),
    b"newComputePipelineStateWithFunction:error:": (b"@", b"^@"),
}
#: Bytes of the buffer that `frees` makes.
PROBE = 4 << 20


def description(types: tuple[bytes, ...]) -> dict[str, Any]:
    """What PyObjC is to know of a method of `MAKERS`."""
    # Arguments are numbered from 2: after the object and the selector.
    arguments = {i: {"type": t} | ({"type_modifier": b"o"} if t == b"^@" else {}) for i, t in enumerate(types, 2)}
    found: dict[str, Any] = {"required": True, "retval": {"type": b"@", "already_retained": True}}
    return found | ({"arguments": arguments} if arguments else {})


def register() -> None:
    """Tell PyObjC about `MAKERS`. To be called before any of them; without PyObjC it does nothing."""
    try:
        import objc
    except ImportError:
        return
    for selector, types in MAKERS.items():
        objc.registerMetaDataForSelector(b"NSObject", selector, description(types))


def frees(device: Any, storage: int) -> bool:
    """Whether memory goes back to the system when its buffer is dropped.

    Args:
        device: an MTLDevice.
        storage: resource options.
    """
    before = int(device.currentAllocatedSize())
    buffer = device.newBufferWithLength_options_(PROBE, storage)
    if buffer is None:
        return True  # no memory: that is for the first who needs some
    during = int(device.currentAllocatedSize())
    del buffer
    return during <= before or int(device.currentAllocatedSize()) < during
