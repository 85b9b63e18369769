"""Metal Shading Language on the host's CPU: every thread, barrier and simdgroup of a launch."""

from .library import Entry as Entry
from .library import Library as Library
from .library import Options as Options
from .library import Parameter as Parameter
from .library import SimulatorError as SimulatorError
