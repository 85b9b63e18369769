"""Neural networks, under the names of `mlx.nn`: modules, layers, activations, losses, initial values.

>>> import smelt
>>> model = smelt.nn.Sequential(smelt.nn.Linear(2, 8), smelt.nn.ReLU(), smelt.nn.Linear(8, 1))
>>> model(smelt.ones((4, 2))).shape
(4, 1)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from smelt.ir.listing import listed as _listed

from ..lacking import lacking as _lacking
from . import init, layers, losses, pictures, utils
from .layers import *
from .layers import (  # noqa: F401  # MLX has them here, too
    activations,
    base,
    containers,
    convolution,
    convolution_transpose,
    distributed,
    dropout,
    embedding,
    linear,
    normalization,
    pooling,
    positional_encoding,
    quantized,
    recurrent,
    transformer,
    upsample,
)
from .layers import places as _places  # noqa: F401  # errors name the path of a layer
from .utils import average_gradients, value_and_grad

__all__ = ["average_gradients", "init", "layers", "losses", "pictures", "utils", "value_and_grad"]
__all__ += layers.__all__

__dir__ = _listed(globals())
if not TYPE_CHECKING:
    __getattr__ = _lacking(globals())
