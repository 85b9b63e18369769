"""Transformations, which `import smelt` does not load: the first use of any of these names loads them all.

Derivatives are in `gradients`, those that few programs use in `rest`.
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
