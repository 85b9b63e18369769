"""Records of what is launched, for Xcode."""

from __future__ import annotations

from typing import Any

from smelt.ir.errors import DeviceError, at_user_line, shown

from .device import import_metal
from .errors import described


def start(path: str) -> None:
    """Record from now on, to a new file. Raises DeviceError where Metal does not."""
    metal: Any = import_metal()
    from Foundation import NSURL  # PyObjC's, as Metal

    manager = metal.MTLCaptureManager.sharedCaptureManager()
    descriptor = metal.MTLCaptureDescriptor.alloc().init()
    descriptor.setCaptureObject_(metal.MTLCreateSystemDefaultDevice())
    descriptor.setDestination_(metal.MTLCaptureDestinationGPUTraceDocument)
    descriptor.setOutputURL_(NSURL.fileURLWithPath_(path))
    done, error = manager.startCaptureWithDescriptor_error_(descriptor, None)
    if not done:
        message = f"Metal does not record to {shown(path)}: {described(error)}; is MTL_CAPTURE_ENABLED=1 set?"
        raise DeviceError(at_user_line(f"smelt.metal.start_capture: {message}"))


def stop() -> None:
    """End the record."""
    metal: Any = import_metal()
    metal.MTLCaptureManager.sharedCaptureManager().stopCapture()
