"""The passes of the device ``cuda``."""

from __future__ import annotations

from smelt.ir.builder import OpView
from smelt.ir.settings import settings
from smelt.passes.kernels import place

from ..gpu.custom import LIBRARY_LANGUAGE
from ..gpu.schedules.calls import call_of
from ..metal.program import PIPELINE_WITH_FLOAT64
from . import dnn, installed, products


def _takes(op: OpView) -> bool:
    call = call_of(op) if settings.libraries else None
    return call is not None and installed.LIBRARY.takes(call)


place.libraries["nvidia"] = _takes
PIPELINE = PIPELINE_WITH_FLOAT64.replace("kernels=msl", f"kernels=msl,{LIBRARY_LANGUAGE} library=nvidia")
#: Where there is cuDNN, gradients of convolutions with strides are one convolution of its, and not one for each phase.
if settings.libraries and dnn.library() is not None:
    PIPELINE = PIPELINE.replace(",canonicalize,", ",canonicalize{without=conv-of-spread-input},", 1)
#: Where there is cuBLASLt, products of 16 bits have rows that it reads quickly.
if settings.libraries and products.library() is not None:
    PIPELINE = PIPELINE.replace(",recompute-attention", ",pad-products,recompute-attention", 1)
