"""The passes of the device ``cuda``."""

from __future__ import annotations

from smelt.ir.builder import OpView
from smelt.ir.settings import settings
from smelt.passes.kernels import place

from ..gpu.custom import LIBRARY_LANGUAGE
from ..gpu.pipeline import gpu_pipeline
from ..gpu.schedules.calls import call_of
from . import dnn, installed, products


def _takes(op: OpView) -> bool:
    call = call_of(op) if settings.libraries else None
    return call is not None and installed.LIBRARY.takes(call)


place.libraries["nvidia"] = _takes
PIPELINE = gpu_pipeline(
    lacking=("complex128",),
    languages=("msl", LIBRARY_LANGUAGE),
    library="nvidia",
    # Simdgroup matrices of 32 bits are many instructions here, which take long to compile: a library makes those
    # products of attention's gradient.
    half_gradients=True,
    pads_products=settings.libraries and products.library() is not None,
    joins_chains=settings.libraries and dnn.library() is not None,
    # cuDNN makes one convolution of the gradient of one with strides, where there would be one for each phase.
    without="conv-of-spread-input" if settings.libraries and dnn.library() is not None else None,
)
