"""All elementary functions: what `smelt.ir.elementary` has."""

from .complex import (
    complex_abs,
    complex_arccos,
    complex_arccosh,
    complex_arcsin,
    complex_arcsinh,
    complex_arctan,
    complex_arctanh,
    complex_cos,
    complex_cosh,
    complex_exp,
    complex_expm1,
    complex_log,
    complex_log1p,
    complex_log2,
    complex_log10,
    complex_power,
    complex_sin,
    complex_sinh,
    complex_sqrt,
    complex_tan,
    complex_tanh,
)
from .exponential import (
    cbrt,
    exp,
    exp2,
    exp_half,
    exp_nonpositive,
    expm1,
    log,
    log1p,
    log2,
    log10,
    power,
    sigmoid,
    sigmoid_half,
)
from .hyperbolic import arccosh, arcsinh, arctanh, cosh, sinh, tanh, tanh_half
from .remainder import floor_mod
from .special import erf, erf_half, erfc, erfinv
from .trigonometric import arccos, arcsin, arctan, arctan2, cos, sin, sin_cos, tan

__all__ = [
    "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "cbrt", "complex_abs",
    "complex_arccos", "complex_arccosh", "complex_arcsin", "complex_arcsinh", "complex_arctan",
    "complex_arctanh", "complex_cos", "complex_cosh", "complex_exp", "complex_expm1", "complex_log",
    "complex_log1p", "complex_log2", "complex_log10", "complex_power", "complex_sin", "complex_sinh",
    "complex_sqrt", "complex_tan", "complex_tanh", "cos", "cosh", "erf", "erf_half", "erfc", "erfinv", "exp", "exp2",
    "exp_half", "exp_nonpositive", "expm1", "floor_mod", "log", "log1p", "log2", "log10", "power", "sigmoid",
    "sigmoid_half", "sin", "sin_cos", "sinh", "tan", "tanh", "tanh_half",
]  # fmt: skip
