"""Devices, buffers, executables and their cache."""

from .buffer import Buffer as Buffer
from .buffer import pool as pool
from .buffer import pools as pools
from .cache import LruCache as LruCache
from .device import Device as Device
from .device import default_device as default_device
from .device import device_named as device_named
from .device import set_default_device as set_default_device
from .executable import Executable as Executable
from .executable import compile_module as compile_module
from .executable import compile_text as compile_text
