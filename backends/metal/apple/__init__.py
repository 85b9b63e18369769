"""Apple's GPUs through PyObjC: libraries, pipelines, command buffers, and memory that NumPy shares."""

from .device import AppleDevice as AppleDevice
from .device import AppleProgram as AppleProgram
from .memory import Block as Block
