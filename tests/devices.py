"""The device that tests run on: ``pytest --device NAME`` (or SMELT_DEVICE), else the CPU."""

from __future__ import annotations

from smelt.ir.settings import settings
from smelt.runtime.device import AUTO, Device, cpu, device_named, metal_sim

#: What ``--device`` runs where no tests are named.
ON_DEVICES = ("tests/ops", "tests/compose", "tests/frontend")


def is_chosen() -> bool:
    """Whether a device was asked for."""
    return settings.device != AUTO


def chosen_device() -> Device:
    """The device that was asked for, else the CPU."""
    return device_named(settings.device) if is_chosen() else cpu


def with_kernels() -> tuple[Device, ...]:
    """The devices whose kernels are compared: the one that was asked for, else the CPU and the simulated GPU."""
    return (chosen_device(),) if is_chosen() else (cpu, metal_sim)
