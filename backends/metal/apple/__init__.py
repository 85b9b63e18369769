"""Apple's GPUs through PyObjC: libraries, pipelines, command buffers, and memory that NumPy shares."""

from .device import AppleDevice as AppleDevice
from .errors import MetalCompileError as MetalCompileError
from .errors import MetalRunError as MetalRunError
from .memory import Block as Block
from .program import AppleProgram as AppleProgram
