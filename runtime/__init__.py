"""The thread's device, from a module to a program on a device, and the caches of programs."""

from smelt.backends.buffer import Buffer as Buffer
from smelt.backends.buffer import pool as pool
from smelt.backends.buffer import pools as pools
from smelt.backends.device import Device as Device
from smelt.backends.executable import Executable as Executable

from .cache import LruCache as LruCache
from .compile import compile_module as compile_module
from .compile import compile_text as compile_text
from .device import default_device as default_device
from .device import device_named as device_named
from .device import set_default_device as set_default_device
