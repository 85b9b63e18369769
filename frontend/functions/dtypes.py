"""Questions about dtypes: categories, limits, promotion, casts."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from smelt.ir import dtypes
from smelt.ir.dtypes import DType
from smelt.ir.errors import AttributeValueError, DTypeError, at_user_line, shown
from smelt.ir.keywords import explain_keywords

from ..lazy.arguments import dtype_of
from ..lazy.arrays import array

__all__ = [
    "DtypeCategory", "can_cast", "complexfloating", "finfo", "floating", "generic", "iinfo", "inexact",
    "integer", "isdtype", "issubdtype", "number", "result_type", "signedinteger", "unsignedinteger",
]  # fmt: skip


class DtypeCategory(enum.Enum):
    """Sets of dtypes, one within another: see `issubdtype`.

    >>> import smelt
    >>> smelt.issubdtype(smelt.bfloat16, smelt.floating)
    True
    """

    complexfloating = "complexfloating"
    floating = "floating"
    inexact = "inexact"
    signedinteger = "signedinteger"
    unsignedinteger = "unsignedinteger"
    integer = "integer"
    number = "number"
    generic = "generic"

    def __repr__(self) -> str:
        return f"smelt.{self.value}"


complexfloating, floating, inexact = DtypeCategory.complexfloating, DtypeCategory.floating, DtypeCategory.inexact
signedinteger, unsignedinteger = DtypeCategory.signedinteger, DtypeCategory.unsignedinteger
integer, number, generic = DtypeCategory.integer, DtypeCategory.number, DtypeCategory.generic

_PARENT = {
    complexfloating: inexact,
    floating: inexact,
    inexact: number,
    signedinteger: integer,
    unsignedinteger: integer,
    integer: number,
    number: generic,
}
_KIND = {"b": generic, "u": unsignedinteger, "i": signedinteger, "f": floating, "c": complexfloating}


def issubdtype(arg1: DType | DtypeCategory, arg2: DType | DtypeCategory) -> bool:
    """Whether a dtype or category lies within another. bool_ lies within `generic` only.

    Args:
        arg1: a dtype or category. arg2: the one that may hold it; a dtype holds itself only.

    >>> import smelt
    >>> smelt.issubdtype(smelt.int8, smelt.integer), smelt.issubdtype(smelt.floating, smelt.integer)
    (True, False)
    """
    if not isinstance(arg2, DtypeCategory):
        return not isinstance(arg1, DtypeCategory) and (dtype_of("issubdtype", arg1) is dtype_of("issubdtype", arg2))
    category: DtypeCategory | None = (
        arg1 if isinstance(arg1, DtypeCategory) else _KIND[dtype_of("issubdtype", arg1).kind]
    )
    while category is not None:
        if category is arg2:
            return True
        category = _PARENT.get(category)
    return False


_NAMED_KINDS = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}


def isdtype(dtype: DType, kind: DType | str | tuple[DType | str, ...]) -> bool:
    """Whether a dtype is of a kind of the array API standard, is another dtype, or any of several.

    Args:
        kind: a dtype, or ``"bool"``, ``"signed integer"``, ``"unsigned integer"``, ``"integral"``,
            ``"real floating"``, ``"complex floating"`` or ``"numeric"``, or a tuple of these.

    Raises:
        AttributeValueError: there is no such kind.

    >>> import smelt
    >>> smelt.isdtype(smelt.bfloat16, ("integral", "real floating"))
    True
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    found = dtype_of("isdtype", dtype)
    if not isinstance(kind, str):
        return found is dtype_of("isdtype", kind)
    if kind not in _NAMED_KINDS:
        listed = ", ".join(map(repr, _NAMED_KINDS))
        raise AttributeValueError(at_user_line(f"smelt.isdtype: kind {shown(kind)} must be a dtype or one of {listed}"))
    return found.kind in _NAMED_KINDS[kind]


def result_type(*arrays_and_dtypes: array | DType | bool | int | float | complex) -> DType:
    """The dtype in which arrays and dtypes meet; Python scalars are weak.

    Raises:
        AttributeValueError: no arguments.

    >>> import smelt
    >>> smelt.result_type(smelt.array([1]), smelt.float16, 2.5)
    smelt.float16
    """
    if not arrays_and_dtypes:
        raise AttributeValueError(at_user_line("smelt.result_type: at least one array or dtype is needed"))
    scalars = [x for x in arrays_and_dtypes if isinstance(x, (bool, int, float, complex))]
    strong = [x for x in arrays_and_dtypes if not isinstance(x, (bool, int, float, complex))]
    found = [_dtype_of("result_type", x) for x in strong] or [dtypes.of_scalar(x) for x in scalars]
    dtype = found[0]
    for other in found[1:]:
        dtype = dtypes.promote(dtype, other)
    for scalar in scalars if strong else ():
        dtype = dtypes.promote_scalar(dtype, scalar)
    return dtype


def _dtype_of(name: str, x: Any) -> DType:
    return x.dtype if isinstance(x, array) else dtype_of(name, x)


def can_cast(from_: array | DType, to: DType) -> bool:
    """Whether promotion of a dtype with `to` gives `to`.

    >>> import smelt
    >>> smelt.can_cast(smelt.int8, smelt.float16), smelt.can_cast(smelt.float32, smelt.float16)
    (True, False)
    """
    target = dtype_of("can_cast", to)
    return dtypes.promote(_dtype_of("can_cast", from_), target) is target


class finfo:
    """Limits of a floating or complex dtype, or of an array of it: those of its parts.

    Args:
        arg: a dtype, or an array that has it.

    Attributes:
        dtype: the dtype of a part. bits: its width.
        min, max: least and largest finite number.
        eps: distance from 1 to the next larger number.
        smallest_normal, smallest_subnormal: least positive number, normal or not.

    Raises:
        DTypeError: integers or bools.

    >>> import smelt
    >>> smelt.finfo(smelt.float32).eps
    1.1920928955078125e-07
    """

    __slots__ = ("bits", "dtype", "eps", "max", "min", "smallest_normal", "smallest_subnormal")

    def __init__(self, arg: DType | array, /):
        dtype = _dtype_of("finfo", arg)
        if not dtype.is_inexact:
            raise DTypeError(at_user_line(f"smelt.finfo: {dtype.name} is not floating; see smelt.iinfo"))
        self.dtype = dtype.real
        if self.dtype is dtypes.bfloat16:
            import ml_dtypes

            info: Any = ml_dtypes.finfo(self.dtype.numpy)
        else:
            info = np.finfo(self.dtype.numpy)
        self.bits = self.dtype.bits
        self.min, self.max, self.eps = float(info.min), float(info.max), float(info.eps)
        self.smallest_normal, self.smallest_subnormal = float(info.smallest_normal), float(info.smallest_subnormal)

    def __repr__(self) -> str:
        return f"finfo(min={self.min:g}, max={self.max:g}, eps={self.eps:g}, dtype={self.dtype.name})"


class iinfo:
    """Limits of an integer dtype, or of an array of it.

    Args:
        arg: a dtype, or an array that has it.

    Attributes:
        dtype: the dtype. bits: its width. min, max: least and largest integer.

    Raises:
        DTypeError: a dtype that is not of integers.

    >>> import smelt
    >>> smelt.iinfo(smelt.int8).max
    127
    """

    __slots__ = ("bits", "dtype", "max", "min")

    def __init__(self, arg: DType | array, /):
        self.dtype = _dtype_of("iinfo", arg)
        if not self.dtype.is_integer:
            raise DTypeError(at_user_line(f"smelt.iinfo: {self.dtype.name} is not an integer dtype; see smelt.finfo"))
        info = np.iinfo(self.dtype.numpy)
        self.bits, self.min, self.max = self.dtype.bits, int(info.min), int(info.max)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype.name})"


explain_keywords(globals())
