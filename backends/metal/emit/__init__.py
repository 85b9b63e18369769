"""Kernel IR to Metal Shading Language: a pure function that translates a closed vocabulary."""

from .module import emit as emit
from .types import EmitError as EmitError
