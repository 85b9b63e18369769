"""Apple's GPUs through PyObjC: libraries, pipelines, command buffers, and memory that NumPy shares."""

from .device import AppleDevice as AppleDevice
from .device import AppleProgram as AppleProgram
from .device import MetalCompileError as MetalCompileError
from .device import MetalRunError as MetalRunError
from .memory import Block as Block
