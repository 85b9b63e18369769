"""Devices and streams as users see them."""

from smelt.runtime import Device as Device
from smelt.runtime import default_device as default_device
from smelt.runtime import set_default_device as set_default_device
from smelt.runtime.device import cpu as cpu
from smelt.runtime.device import reference as reference
