"""Operators and methods of `smelt.array`: each is the function of the same name, with the array first.

Importing this module attaches them to the class. `array_methods.pyi` tells type checkers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from smelt.ir.errors import AttributeValueError, DTypeError, at_user_line
from smelt.ir.keywords import explain_methods, keywords_explained

from ..lazy.arrays import StreamOrDevice, array, check_update
from ..lazy.core import call, memory_of
from ..lazy.exports import export
from ..lazy.host import ARRAY_PROTOCOLS
from ..lazy.movement import Axes
from . import (
    arithmetic,
    complex_numbers,
    compositions,
    diagonals,
    foreign_methods,
    indexing,
    joining,
    linear,
    logic,
    moments,
    namespace,
    notebook,
    reductions,
    rounding,
    shaping,
    sorting,
    transcendental,
    ufuncs,
    updating,
    views,
)
from .at import ArrayAt

__all__: list[str] = []

array._stack = staticmethod(joining.stack)
array._exporter = staticmethod(export)

#: Methods that are functions with the array as first argument.
METHODS: dict[Any, str] = {
    arithmetic: "abs reciprocal rsqrt sqrt square",
    complex_numbers: "conj",
    compositions: "logsumexp",
    reductions: "all any argmax argmin max min prod sum",
    moments: "mean std var",
    rounding: "round",
    shaping: "flatten moveaxis squeeze swapaxes",
    joining: "split",
    diagonals: "diag diagonal",
    views: "astype view",
    sorting: "cummax cummin cumprod cumsum logcumsumexp",
    transcendental: "cos exp log log10 log1p log2 sin",
}

#: Binary operators: name without underscores, module and function.
OPERATORS: dict[str, tuple[Any, str]] = {
    "add": (arithmetic, "add"),
    "sub": (arithmetic, "subtract"),
    "mul": (arithmetic, "multiply"),
    "truediv": (arithmetic, "divide"),
    "floordiv": (arithmetic, "floor_divide"),
    "mod": (arithmetic, "remainder"),
    "pow": (arithmetic, "power"),
    "matmul": (linear, "matmul"),
    "and": (logic, "bitwise_and"),
    "or": (logic, "bitwise_or"),
    "xor": (logic, "bitwise_xor"),
    "lshift": (logic, "left_shift"),
    "rshift": (logic, "right_shift"),
}

COMPARISONS = {
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}

_NO_NAMES: dict[str, Any] = {}
_OPERANDS = frozenset((array, bool, int, float, complex, np.ndarray))
_NO_OPERANDS = frozenset((str, dict, set, type(None)))


def is_operand(other: Any, equality: bool = False) -> bool:
    """Whether an operator takes it on: it can make an array of it, or an error. If not, Python asks the other operand,
    and compares objects that are of unlike kinds for equality by itself."""
    if isinstance(other, (array, bool, int, float, complex, np.ndarray, np.generic, list, tuple)):
        return True
    kind = type(other)
    if kind in _NO_OPERANDS and not equality:
        return True  # the function says what is wrong; Python would repeat a string as often as an integer array says
    buffers = (memoryview, bytearray, bytes)
    return any(hasattr(kind, name) for name in ARRAY_PROTOCOLS) or isinstance(other, buffers)


def _binary(function: Callable, name: str) -> Callable:
    memory, equality = memory_of(function), name in ("__eq__", "__ne__")

    def operator(self: array, other: Any) -> Any:
        if type(other) in _OPERANDS or is_operand(other, equality):
            if memory is not None:
                try:
                    return call(memory, (self, other), _NO_NAMES)
                except AttributeValueError:
                    pass
            return function(self, other)
        return NotImplemented

    return _named(operator, name, function)


def _reflected(function: Callable, name: str) -> Callable:
    memory = memory_of(function)

    def operator(self: array, other: Any) -> Any:
        if type(other) in _OPERANDS or is_operand(other):
            if memory is not None:
                try:
                    return call(memory, (other, self), _NO_NAMES)
                except AttributeValueError:
                    pass
            return function(other, self)
        return NotImplemented

    return _named(operator, name, function)


def _in_place(function: Callable, name: str) -> Callable:
    """``x += y`` changes what the handle stands for, so that everyone who holds it sees it."""
    keeps_kind = name == "__itruediv__"

    def operator(self: array, other: Any) -> Any:
        if type(other) in _OPERANDS or is_operand(other):
            check_update(self)
            result = function(self, other)
            if keeps_kind and result.dtype.is_inexact and not self.dtype.is_inexact:
                raise DTypeError(
                    at_user_line(
                        f"smelt.{function.__name__}: {self.dtype.name} arrays have no room for quotients: x /= y would "
                        f"make x {result.dtype.name}; write x = x / y, or x //= y"
                    )
                )
            self._ref = result._ref
            return self
        return NotImplemented

    return _named(operator, name, function)


def _named(method: Callable, name: str, function: Callable) -> Callable:
    method.__name__, method.__qualname__ = name, f"array.{name}"
    method.__doc__ = f"See `smelt.{function.__name__}`."
    return method


def _reshape(self: array, *shape: Axes, copy: bool | None = None, stream: StreamOrDevice = None) -> array:
    """In another shape, given as one sequence or as several ints; see `smelt.reshape`.

    >>> import smelt
    >>> smelt.ones(6).reshape(2, -1).shape
    (2, 3)
    """
    return shaping.reshape(self, _together(shape), copy=copy, stream=stream)


def _together(given: tuple[Any, ...]) -> Any:
    """One sequence, or several ints, as a sequence."""
    return given[0] if len(given) == 1 else given


def _transpose(self: array, *axes: Axes | None, stream: StreamOrDevice = None) -> array:
    """Permuted axes, given as one sequence or as several ints; see `smelt.transpose`.

    >>> import smelt
    >>> smelt.ones((2, 3)).transpose(1, 0).shape
    (3, 2)
    """
    if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))):
        return shaping.transpose(self, axes[0], stream=stream)
    numbers: Any = axes or None
    return shaping.transpose(self, numbers, stream=stream)


def _bytes(self: array) -> bytes:
    """The elements' memory, in row-major order."""
    return self._host().tobytes()


def _contains(self: array, value: Any, /) -> bool:
    """``value in x``: whether any element equals it. Evaluates x."""
    found = self == value
    return bool(reductions.any(found)) if isinstance(found, array) else bool(found)


def _attach() -> None:
    explain_methods(array)
    for module, names in METHODS.items():
        for name in names.split():
            setattr(array, name, getattr(module, name))
    for name, method in {
        "reshape": keywords_explained(_reshape, "array.reshape"),
        "transpose": keywords_explained(_transpose, "array.transpose"),
        "__bytes__": _bytes,
        "__contains__": _contains,
        "__array_namespace__": namespace.array_namespace,
        "to_device": keywords_explained(namespace.to_device, "array.to_device"),
        "__round__": namespace.rounded,
        "__divmod__": namespace.divided,
        "__rdivmod__": namespace.divided_by,
        "_repr_html_": notebook.html_of,
        "__array_ufunc__": ufuncs.array_ufunc,
        "__numpy_dtype__": property(lambda x: x.dtype.numpy),  # of `numpy.result_type`, from NumPy 2.4 on
    }.items():
        setattr(array, name, method)
    for name, (module, function_name) in OPERATORS.items():
        function = getattr(module, function_name)
        setattr(array, f"__{name}__", _binary(function, f"__{name}__"))
        setattr(array, f"__r{name}__", _reflected(function, f"__r{name}__"))
        setattr(array, f"__i{name}__", _in_place(function, f"__i{name}__"))
    for name, function_name in COMPARISONS.items():
        setattr(array, f"__{name}__", _binary(getattr(logic, function_name), f"__{name}__"))
    unary: dict[str, Callable[..., array]] = {
        "neg": arithmetic.negative,
        "pos": arithmetic.positive,
        "abs": arithmetic.abs,
        "invert": logic.bitwise_invert,
    }
    for name, function in unary.items():
        setattr(array, f"__{name}__", function)
    setattr(array, "__getitem__", indexing.getitem)  # noqa: B010  (declared in a stub)
    setattr(array, "__setitem__", updating.setitem)  # noqa: B010
    for name, getter, doc in (
        ("T", shaping.transpose, "The axes in reversed order."),
        ("mT", shaping.matrix_transpose, "The last two axes exchanged."),
        ("real", complex_numbers.real, "The real part."),
        ("imag", complex_numbers.imag, "The imaginary part."),
        ("device", namespace.device_of, "The device on which this thread would evaluate it."),
        ("at", ArrayAt, "Updates that return a new array: ``x.at[index].add(value)``."),
    ):
        setattr(array, name, property(getter, doc=doc))
    foreign_methods.attach()


_attach()
