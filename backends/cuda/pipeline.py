"""The passes of the device ``cuda``."""

from __future__ import annotations

from smelt.ir.settings import settings

from ..metal.program import PIPELINE_WITH_FLOAT64
from . import convolutions

#: Where there is cuDNN, gradients of convolutions with strides are one convolution of its, and not one for each phase.
PIPELINE = PIPELINE_WITH_FLOAT64
if settings.libraries and convolutions.library() is not None:
    PIPELINE = PIPELINE.replace(",canonicalize,", ",canonicalize{without=conv-of-spread-input},", 1)
