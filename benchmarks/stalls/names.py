"""The frameworks under the names that the programs use: those of MLX, as far as they use them.

smelt and mlx are taken as they are.
"""

from __future__ import annotations

import importlib
import os
from types import SimpleNamespace
from typing import Any

from ..machine import threads

#: In the order of the table's columns.
NAMES = ("smelt", "mlx", "torch", "jax")

_SAME = (
    "abs", "arange", "argmax", "concatenate", "cos", "cumsum", "exp", "log", "logsumexp", "matmul", "maximum", "mean",
    "minimum", "sin", "sort", "sqrt", "square", "sum", "tanh", "where", "zeros", "zeros_like",
)  # fmt: skip


def load(name: str) -> tuple[Any, str]:
    """The names of a framework, and its version."""
    from importlib.metadata import version

    if name == "smelt":
        return importlib.import_module("smelt"), version("smelt-mlir")
    if name == "mlx":
        return importlib.import_module("mlx.core"), version("mlx")
    return {"torch": _torch, "jax": _jax}[name](), version(name)


def _jax() -> Any:
    """Gradients and what the program compiles under `jax.jit`, the rest op by op."""
    import jax
    import jax.numpy as jnp

    names = SimpleNamespace(**{name: getattr(jnp, name) for name in _SAME if hasattr(jnp, name)})
    names.array, names.float32, names.int32 = jnp.asarray, jnp.float32, jnp.int32
    names.softmax, names.logsumexp, names.rsqrt = jax.nn.softmax, jax.nn.logsumexp, jax.lax.rsqrt
    names.erf, names.take_along_axis = jax.scipy.special.erf, jnp.take_along_axis
    names.eval = lambda *trees: jax.block_until_ready(trees)
    names.compile = lambda f, **_: jax.jit(f)
    names.value_and_grad = lambda f: jax.jit(jax.value_and_grad(f))
    names.grad = lambda f: jax.jit(jax.grad(f))
    return names


def _torch() -> Any:
    """Eager, with functional gradients."""
    import torch

    torch.set_num_threads(threads())
    names = SimpleNamespace(**{name: getattr(torch, name) for name in _SAME if hasattr(torch, name)})
    names.array, names.float32, names.int32 = torch.as_tensor, torch.float32, torch.int32
    names.softmax, names.rsqrt, names.erf = torch.softmax, torch.rsqrt, torch.erf
    names.take_along_axis = lambda x, i, axis: torch.gather(x, axis, i.long())
    names.sort = lambda x, axis=-1: torch.sort(x, dim=axis).values
    names.maximum, names.minimum = _with_numbers(torch.maximum), _with_numbers(torch.minimum)
    if os.environ.get("SMELT_DEVICE", "").startswith("cuda"):
        torch.set_default_device("cuda")
        names.eval = lambda *trees: torch.cuda.synchronize()
    else:
        names.eval = lambda *trees: None
    names.value_and_grad = lambda f: lambda *args: tuple(reversed(torch.func.grad_and_value(f)(*args)))
    names.grad = torch.func.grad
    return names


def _with_numbers(function: Any) -> Any:
    """A binary function of PyTorch that takes a number for its second argument."""
    import torch

    def binary(x: Any, y: Any) -> Any:
        return function(x, y if isinstance(y, torch.Tensor) else torch.tensor(y, dtype=x.dtype))

    return binary
