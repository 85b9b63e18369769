"""The activations as modules."""

from __future__ import annotations

import smelt
from smelt import array
from smelt.ir.errors import AttributeValueError, at_user_line, shown

from . import activation_functions as functions
from .base import Module

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "SELU", "HardShrink", "HardTanh", "Hardswish", "LeakyReLU", "LogSigmoid",
    "LogSoftmax", "Mish", "PReLU", "ReLU", "ReLU2", "ReLU6", "SiLU", "Sigmoid", "Softmax", "Softmin", "Softplus",
    "Softshrink", "Softsign", "Step", "Tanh",
]  # fmt: skip


class HardTanh(Module):
    """`hard_tanh` as a module.

    >>> import smelt
    >>> smelt.nn.HardTanh()(smelt.array([-4.0, 0.5, 3.0]))
    array([-1, 0.5, 1], dtype=float32)
    """

    def __call__(self, x: array) -> array:
        return functions.hard_tanh(x)


class Hardswish(Module):
    """`hardswish` as a module.

    >>> import smelt
    >>> smelt.nn.Hardswish()(smelt.array([-4.0, 0.0, 3.0]))
    array([0, 0, 3], dtype=float32)
    """

    def __call__(self, x: array) -> array:
        return functions.hardswish(x)


class LogSigmoid(Module):
    """`log_sigmoid` as a module.

    >>> import smelt
    >>> smelt.nn.LogSigmoid()(smelt.array([0.0, -100.0]))
    array([-0.693147, -100], dtype=float32)
    """

    def __call__(self, x: array) -> array:
        return functions.log_sigmoid(x)


class LogSoftmax(Module):
    """`log_softmax` as a module.

    >>> import smelt
    >>> smelt.nn.LogSoftmax()(smelt.array([1.0, 1.0]))
    array([-0.693147, -0.693147], dtype=float32)
    """

    def __call__(self, x: array) -> array:
        return functions.log_softmax(x)


class Mish(Module):
    """`mish` as a module.

    >>> import smelt
    >>> smelt.nn.Mish()(smelt.array([0.0, 1.0]))
    array([0, 0.865098], dtype=float32)
    """

    def __call__(self, x: array) -> array:
        return functions.mish(x)


class ReLU(Module):
    """`relu` as a module.

    >>> import smelt
    >>> smelt.nn.ReLU()(smelt.array([-1.0, 2.0]))
    array([0, 2], dtype=float32)
    """

    def __call__(self, x: array) -> array:
        return functions.relu(x)


class ReLU2(Module):
    """`relu2` as a module.

    >>> import smelt
    >>> smelt.nn.ReLU2()(smelt.array([-1.0, 2.0]))
    array([0, 4], dtype=float32)
    """

    def __call__(self, x: array) -> array:
        return functions.relu2(x)


class ReLU6(Module):
    """`relu6` as a module.

    >>> import smelt
    >>> smelt.nn.ReLU6()(smelt.array([-1.0, 2.0, 8.0]))
    array([0, 2, 6], dtype=float32)
    """

    def __call__(self, x: array) -> array:
        return functions.relu6(x)


class SELU(Module):
    """`selu` as a module.

    >>> import smelt
    >>> smelt.nn.SELU()(smelt.array([0.0, 2.0]))
    array([0, 2.1014], dtype=float32)
    """

    def __call__(self, x: array) -> array:
        return functions.selu(x)


class SiLU(Module):
    """`silu` as a module.

    >>> import smelt
    >>> smelt.nn.SiLU()(smelt.array([0.0, 1.0]))
    array([0, 0.731059], dtype=float32)
    """

    def __call__(self, x: array) -> array:
        return functions.silu(x)


class Sigmoid(Module):
    """`sigmoid` as a module.

    >>> import smelt
    >>> smelt.nn.Sigmoid()(smelt.array([0.0, 100.0]))
    array([0.5, 1], dtype=float32)
    """

    def __call__(self, x: array) -> array:
        return functions.sigmoid(x)


class Softmax(Module):
    """`softmax` as a module.

    >>> import smelt
    >>> smelt.nn.Softmax()(smelt.array([1.0, 1.0]))
    array([0.5, 0.5], dtype=float32)
    """

    def __call__(self, x: array) -> array:
        return functions.softmax(x)


class Softmin(Module):
    """`softmin` as a module.

    >>> import smelt
    >>> smelt.nn.Softmin()(smelt.array([1.0, 1.0]))
    array([0.5, 0.5], dtype=float32)
    """

    def __call__(self, x: array) -> array:
        return functions.softmin(x)


class Softplus(Module):
    """`softplus` as a module.

    >>> import smelt
    >>> smelt.nn.Softplus()(smelt.array([0.0, 100.0]))
    array([0.693147, 100], dtype=float32)
    """

    def __call__(self, x: array) -> array:
        return functions.softplus(x)


class Softsign(Module):
    """`softsign` as a module.

    >>> import smelt
    >>> smelt.nn.Softsign()(smelt.array([-1.0, 3.0]))
    array([-0.5, 0.75], dtype=float32)
    """

    def __call__(self, x: array) -> array:
        return functions.softsign(x)


class Tanh(Module):
    """`tanh` as a module.

    >>> import smelt
    >>> smelt.nn.Tanh()(smelt.array([0.0, 100.0]))
    array([0, 1], dtype=float32)
    """

    def __call__(self, x: array) -> array:
        return functions.tanh(x)


class CELU(Module):
    """`celu` as a module.

    Args:
        alpha: as of `celu`.

    >>> import smelt
    >>> smelt.nn.CELU(2.0)(smelt.array([-2.0, 2.0]))
    array([-1.26424, 2], dtype=float32)
    """

    def __init__(self, alpha: float = 1.0):
        super().__init__()
        self._alpha = alpha

    def __call__(self, x: array) -> array:
        return functions.celu(x, self._alpha)


class ELU(Module):
    """`elu` as a module.

    Args:
        alpha: as of `elu`.

    >>> import smelt
    >>> smelt.nn.ELU()(smelt.array([-1.0, 2.0]))
    array([-0.632121, 2], dtype=float32)
    """

    def __init__(self, alpha: float = 1.0):
        super().__init__()
        self._alpha = alpha

    def __call__(self, x: array) -> array:
        return functions.elu(x, self._alpha)


class GLU(Module):
    """`glu` as a module.

    Args:
        axis: as of `glu`.

    >>> import smelt
    >>> smelt.nn.GLU()(smelt.array([2.0, 0.0]))
    array([1], dtype=float32)
    """

    def __init__(self, axis: int = -1):
        super().__init__()
        self.axis = axis

    def __call__(self, x: array) -> array:
        return functions.glu(x, self.axis)


class HardShrink(Module):
    """`hard_shrink` as a module.

    Args:
        lambd: as of `hard_shrink`.

    >>> import smelt
    >>> smelt.nn.HardShrink()(smelt.array([-2.0, 0.25, 2.0]))
    array([-2, 0, 2], dtype=float32)
    """

    def __init__(self, lambd: float = 0.5):
        super().__init__()
        self.lambd = lambd

    def __call__(self, x: array) -> array:
        return functions.hard_shrink(x, self.lambd)


class LeakyReLU(Module):
    """`leaky_relu` as a module.

    Args:
        negative_slope: as of `leaky_relu`.

    >>> import smelt
    >>> smelt.nn.LeakyReLU(0.5)(smelt.array([-1.0, 2.0]))
    array([-0.5, 2], dtype=float32)
    """

    def __init__(self, negative_slope: float = 0.01):
        super().__init__()
        self._negative_slope = negative_slope

    def __call__(self, x: array) -> array:
        return functions.leaky_relu(x, self._negative_slope)


class Softshrink(Module):
    """`softshrink` as a module.

    Args:
        lambd: as of `softshrink`.

    >>> import smelt
    >>> smelt.nn.Softshrink()(smelt.array([-2.0, 0.25, 2.0]))
    array([-1.5, 0, 1.5], dtype=float32)
    """

    def __init__(self, lambd: float = 0.5):
        super().__init__()
        self.lambd = lambd

    def __call__(self, x: array) -> array:
        return functions.softshrink(x, self.lambd)


class Step(Module):
    """`step` as a module.

    Args:
        threshold: as of `step`.

    >>> import smelt
    >>> smelt.nn.Step()(smelt.array([-1.0, 1.0]))
    array([0, 1], dtype=int32)
    """

    def __init__(self, threshold: float = 0.0):
        super().__init__()
        self.threshold = threshold

    def __call__(self, x: array) -> array:
        return functions.step(x, self.threshold)


class PReLU(Module):
    """`prelu` with slopes that are parameters.

    Args:
        num_parameters: 1, or the extent of the last axis. init: the slopes at first.

    Attributes:
        weight: the slopes, [num_parameters].

    >>> import smelt
    >>> smelt.nn.PReLU()(smelt.array([-1.0, 2.0]))
    array([-0.25, 2], dtype=float32)
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25):
        super().__init__()
        self.weight = smelt.full([num_parameters], init)

    def __call__(self, x: array) -> array:
        return functions.prelu(x, self.weight)


_GELUS = {
    "none": functions.gelu,
    "precise": functions.gelu_approx,
    "tanh": functions.gelu_approx,
    "fast": functions.gelu_fast_approx,
}


class GELU(Module):
    """`gelu` as a module, or one of its approximations.

    Args:
        approx: ``"none"``: `gelu`. ``"precise"`` or ``"tanh"``: `gelu_approx`. ``"fast"``: `gelu_fast_approx`.

    Raises:
        AttributeValueError: another word.

    >>> import smelt
    >>> smelt.nn.GELU()(smelt.array([-1.0, 1.0]))
    array([-0.158655, 0.841345], dtype=float32)
    """

    def __init__(self, approx: str = "none"):
        super().__init__()
        if not isinstance(approx, str) or approx not in _GELUS:
            raise AttributeValueError(
                at_user_line(f"smelt.nn.GELU: approx must be one of {', '.join(_GELUS)}, is {shown(approx)}")
            )
        self._approx = approx

    def _extra_repr(self) -> str:
        return f"approx={self._approx!r}" if self._approx != "none" else ""

    def __call__(self, x: array) -> array:
        return _GELUS[self._approx](x)
