"""smelt: an array framework with a compiler inside.

>>> import smelt
>>> smelt.exp(smelt.array([0.0, 1.0]))
array([1, 2.71828], dtype=float32)
"""

import importlib as _importlib
import math as _math
import os as _os
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

# An editable installation is a folder of links. Files made since then are found where the links lead.
__path__ = list(dict.fromkeys([*__path__, _os.path.dirname(_os.path.realpath(__file__))]))

import smelt.ir.ops as _ops  # fills the registry
from smelt.ir.dtypes import DType as Dtype
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
from smelt.ir.errors import SmeltError
from smelt.runtime.device import Device, cpu, default_device, reference, set_default_device
from smelt.runtime.device import metal as gpu

from . import methods as _methods  # attaches the operators to array
from . import random, utils
from .arithmetic import *
from .arrays import array
from .compilation import ShapeDtype, compile, disable_compile, enable_compile, make_ir
from .complex_numbers import *
from .compositions import *
from .control import *
from .creation import *
from .custom import checkpoint, custom_function, custom_jvp, custom_vjp
from .diagonals import *
from .dtypes_api import *
from .evaluate import async_eval, eval, synchronize
from .index_functions import *
from .io import *
from .jacobians import hessian, jacfwd, jacrev
from .joining import *
from .linear import *
from .linear_maps import linear_transpose, linearize
from .logic import *
from .memory import *
from .mixtures import *
from .padding import *
from .printing import get_printoptions, printoptions, set_printoptions
from .reductions import *
from .rounding import *
from .sets import *
from .shaping import *
from .sorting import *
from .streams import *
from .transcendental import *
from .transforms import grad, jvp, stop_gradient, value_and_grad, vjp
from .vectorization import vmap
from .views import *

bool = bool_  # the array API's name
e, pi, inf, nan, newaxis = _math.e, _math.pi, _math.inf, _math.nan, None
euler_gamma = 0.5772156649015329

__version__ = "0.1.0"

if _TYPE_CHECKING:
    from . import fast as fast
    from . import metal as metal

_LAZY = ("fast", "metal")  # modules that the first use loads


def __getattr__(name: str) -> _Any:
    if name in _LAZY:
        return _importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
