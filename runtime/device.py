"""Where programs run."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches

from smelt.ir.errors import DeviceError
from smelt.ir.settings import settings


@dataclass(frozen=True)
class Device:
    """A place where programs run, by name: ``cpu`` or ``reference``."""

    name: str

    def __repr__(self) -> str:
        return f"Device({self.name})"


cpu = Device("cpu")
reference = Device("reference")
devices = {d.name: d for d in (cpu, reference)}


def device_named(name: str | Device) -> Device:
    """The device called `name`. Raises DeviceError when there is none."""
    if isinstance(name, Device):
        return name
    found = devices.get(name)
    if found is None:
        near = get_close_matches(str(name), devices, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise DeviceError(f"there is no device {name!r}{hint} (devices: {', '.join(devices)})")
    return found


def default_device() -> Device:
    """The device on which arrays are evaluated."""
    return device_named(settings.device)


def set_default_device(device: str | Device) -> None:
    """Evaluate on `device` from now on.

    >>> import smelt
    >>> smelt.set_default_device("reference")
    >>> smelt.default_device()
    Device(reference)
    >>> smelt.set_default_device("cpu")
    """
    settings.device = device_named(device).name
