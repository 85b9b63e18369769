"""Derivatives and `vmap`, which `import smelt` does not load; they need nothing of what runs compiled functions."""

from __future__ import annotations

from .transforms.grad import grad as grad
from .transforms.grad import jvp as jvp
from .transforms.grad import stop_gradient as stop_gradient
from .transforms.grad import value_and_grad as value_and_grad
from .transforms.grad import vjp as vjp
from .transforms.vmap import vmap as vmap
