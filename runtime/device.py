"""Where programs run."""

from __future__ import annotations

import importlib.util
import sys
import threading
from dataclasses import dataclass

from smelt.ir.errors import ArgumentTypeError, DeviceError, at_user_line, shown
from smelt.ir.settings import settings


def has_metal() -> bool:
    """Whether Apple's Metal can be reached from Python here."""
    return sys.platform == "darwin" and importlib.util.find_spec("Metal") is not None


@dataclass(frozen=True)
class Device:
    """A place where programs run, by name: ``cpu``, ``reference``, ``metal:sim`` or ``metal``."""

    name: str

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise ArgumentTypeError(at_user_line(f"smelt.Device: name must be a text, is {shown(self.name)}"))

    def __repr__(self) -> str:
        return f"Device({self.name})"


cpu = Device("cpu")
reference = Device("reference")
metal_sim = Device("metal:sim")  #: Metal's kernels on this machine's CPU, thread by thread
metal = Device("metal")
#: Those that this machine has.
devices = {d.name: d for d in (cpu, reference, metal_sim, *([metal] if has_metal() else []))}


def device_named(name: str | Device) -> Device:
    """The device called `name`; ``"auto"`` is ``metal`` where there is one, else ``cpu``.

    Raises:
        DeviceError: there is no such device here.
    """
    wanted = name.name if isinstance(name, Device) else name
    if isinstance(wanted, str) and wanted == "auto":
        wanted = "metal" if "metal" in devices else "cpu"
    found = devices.get(wanted) if isinstance(wanted, str) else None
    if found is None:
        from difflib import get_close_matches

        near = get_close_matches(wanted, devices, n=1) if isinstance(wanted, str) else []
        hint = f"; did you mean {near[0]}?" if near else ""
        if isinstance(wanted, str) and wanted == "metal":
            hint = "; it needs macOS and the package pyobjc-framework-Metal"
        raise DeviceError(
            at_user_line(f"smelt: there is no device {shown(wanted)}{hint} (devices: {', '.join(devices)})")
        )
    return found


class _Chosen(threading.local):
    """What this thread has chosen."""

    device: Device | None = None


chosen = _Chosen()


def default_device() -> Device:
    """The device on which this thread evaluates arrays.

    What it has set last, else SMELT_DEVICE, else ``metal`` where there is one, else ``cpu``.
    """
    return chosen.device or device_named(settings.device)


def set_default_device(device: str | Device) -> None:
    """Evaluate on `device` from now on, in this thread. Other threads go on as before.

    Raises:
        DeviceError: there is no such device here.

    >>> import smelt
    >>> smelt.set_default_device("reference")
    >>> smelt.default_device()
    Device(reference)
    >>> smelt.set_default_device("cpu")
    """
    chosen.device = device_named(device)
