"""The activations, as functions and as modules."""

from __future__ import annotations

from . import activation_functions, activation_layers
from .activation_functions import *
from .activation_layers import *

__all__: list[str] = []
__all__ += activation_functions.__all__
__all__ += activation_layers.__all__
