"""smelt: an array framework with a compiler inside.

>>> import smelt
>>> smelt.exp(smelt.array([0.0, 1.0]))
array([1, 2.71828], dtype=float32)
"""

import smelt.ir.ops as _ops
from smelt.ir.dtypes import (
    DType as Dtype,
)
from smelt.ir.dtypes import (
    bfloat16,
    bool_,
    complex64,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from smelt.runtime.device import Device, cpu, default_device, reference, set_default_device

from .arrays import array
from .compilation import ShapeDtype, compile, disable_compile, enable_compile, make_ir
from .evaluate import async_eval, eval, synchronize
from .transforms import grad, jvp, value_and_grad, vjp, vmap
