"""Transformations, which `import smelt` does not load: the first use of any of these names loads them all.

Those that few programs use are in `rest`.
"""

from __future__ import annotations

from .transforms.compile import compile as compile
from .transforms.compile import disable_compile as disable_compile
from .transforms.compile import enable_compile as enable_compile
from .transforms.compile import make_ir as make_ir
from .transforms.custom import checkpoint as checkpoint
from .transforms.custom import custom_function as custom_function
from .transforms.custom import custom_jvp as custom_jvp
from .transforms.custom import custom_vjp as custom_vjp
from .transforms.grad import grad as grad
from .transforms.grad import jvp as jvp
from .transforms.grad import stop_gradient as stop_gradient
from .transforms.grad import value_and_grad as value_and_grad
from .transforms.grad import vjp as vjp
from .transforms.vmap import vmap as vmap
