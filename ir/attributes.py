"""Attributes between Python and MLIR, by the field types of `op.py`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import dtypes, mlir
from .attribute_kinds import DESCRIPTIONS
from .aval import Aval
from .context import context, element_type, parse_aval, tensor_type
from .errors import AttributeValueError, IRError
from .op import Op
from .parameters import Parameters


def _i64() -> Any:
    return mlir.ir.IntegerType.get_signless(64, context())


def _f64() -> Any:
    return mlir.ir.F64Type.get(context())


def _encode_number(value: Any) -> Any:
    ir = mlir.ir
    if isinstance(value, (bool, np.bool_)):
        return ir.BoolAttr.get(bool(value), context())
    if isinstance(value, (int, np.integer)):
        value = int(value)
        if not -(2**63) <= value < 2**64:
            raise AttributeValueError(f"the integer {value} does not fit into 64 bits")
        if value >= 2**63:
            return ir.Attribute.parse(f"{value} : ui64", context())  # the constructor takes an int64
        return ir.IntegerAttr.get(_i64(), value)
    if isinstance(value, (complex, np.complexfloating)):
        return ir.DenseF64ArrayAttr.get([value.real, value.imag], context())
    return ir.FloatAttr.get(_f64(), float(value), loc=mlir.ir.Location.unknown(context()))


def _bounded(attr: Any, above: int) -> int:
    """An integer attribute. Raises AttributeValueError: MLIR has integers of any width, we have 64 bits."""
    value = int(mlir.ir.IntegerAttr(attr).value)
    if not -(2**63) <= value < above:
        raise AttributeValueError("the integer does not fit into 64 bits")
    return value


def _decode_number(attr: Any) -> Any:
    ir = mlir.ir
    if isinstance(attr, ir.BoolAttr):
        return attr.value
    if isinstance(attr, ir.IntegerAttr):
        if attr.type == ir.IntegerType.get_signless(1, context()):
            return bool(attr.value)
        return _bounded(attr, 2**64)
    if isinstance(attr, ir.FloatAttr):
        return float(attr.value)
    if isinstance(attr, ir.DenseF64ArrayAttr) and len(attr) == 2:
        return complex(attr[0], attr[1])
    raise AttributeValueError(f"{attr} is not a number")


#: What the literal op holds: the dtypes that MLIR's dense elements exchange with NumPy.
LITERAL_DTYPES = (dtypes.bool_, *dtypes.INTEGERS, dtypes.float16, dtypes.float32, dtypes.float64)


#: A literal that is one number throughout is short as text, however many elements it has.
MAX_ELEMENTS = 1 << 26


def _encode_array(array: np.ndarray) -> Any:
    """A DenseElementsAttr of the array's shape and dtype."""
    array = np.asarray(array, order="C")
    kind = tensor_type(Aval(array.shape, dtypes.of(array.dtype)))
    if array.dtype == np.bool_:
        array = array.astype(np.uint8)
    shape = tuple(kind.shape)
    return mlir.ir.DenseElementsAttr.get(array, type=kind.element_type, shape=shape, context=context())


def _decode_array(attr: Any) -> np.ndarray:
    kind = mlir.ir.RankedTensorType(attr.type)
    dtype = dtypes.by_mlir(str(kind.element_type))
    shape = tuple(kind.shape)
    if dtype in LITERAL_DTYPES:
        if math.prod(shape) > MAX_ELEMENTS:
            raise AttributeValueError(f"a literal of {math.prod(shape)} elements; there are at most {MAX_ELEMENTS}")
        if attr.is_splat:
            return np.full(shape, _decode_number(attr.get_splat_value()), dtype.numpy)
        return np.array(attr).astype(dtype.numpy).reshape(shape)
    raise AttributeValueError(f"dense elements of {dtype.name} are not supported")


def _encode_types(avals: Sequence[Aval]) -> Any:
    return mlir.ir.ArrayAttr.get([mlir.ir.TypeAttr.get(tensor_type(a), context()) for a in avals], context())


def _decode_types(attr: Any) -> tuple[Aval, ...]:
    return tuple([parse_aval(mlir.ir.TypeAttr(item).value) for item in mlir.ir.ArrayAttr(attr)])


def _encode_parameter(value: Any) -> Any:
    ir = mlir.ir
    if isinstance(value, tuple):
        return ir.ArrayAttr.get([_encode_parameter(item) for item in value], context())
    kind = "Str" if isinstance(value, str) else "Element" if isinstance(value, dtypes.DType) else "Number"
    return ENCODERS[kind](value)


def _decode_parameter(attr: Any) -> Any:
    ir = mlir.ir
    if isinstance(attr, ir.ArrayAttr):
        return tuple([_decode_parameter(item) for item in attr])
    if isinstance(attr, ir.StringAttr):
        return attr.value
    return DECODERS["Element"](attr) if isinstance(attr, ir.TypeAttr) else _decode_number(attr)


def _encode_static(values: Parameters) -> Any:
    return mlir.ir.DictAttr.get({k: _encode_parameter(v) for k, v in values.items()}, context())


def _decode_static(attr: Any) -> Parameters:
    return Parameters({item.name: _decode_parameter(item.attr) for item in mlir.ir.DictAttr(attr)})


ENCODERS: dict[str, Any] = {
    "Ints": lambda v: mlir.ir.DenseI64ArrayAttr.get([int(x) for x in v], context()),
    "Int": lambda v: mlir.ir.IntegerAttr.get(_i64(), int(v)),
    "Float": lambda v: mlir.ir.FloatAttr.get(_f64(), float(v), loc=mlir.ir.Location.unknown(context())),
    "Bool": lambda v: mlir.ir.BoolAttr.get(bool(v), context()),
    "Str": lambda v: mlir.ir.StringAttr.get(v, context()),
    "Element": lambda v: mlir.ir.TypeAttr.get(element_type(v), context()),
    "Number": _encode_number,
    "Array": _encode_array,
    "Types": _encode_types,
    "Static": _encode_static,
}

DECODERS: dict[str, Any] = {
    "Ints": lambda a: tuple(mlir.ir.DenseI64ArrayAttr(a)),
    "Int": lambda a: _bounded(a, 2**63),
    "Float": lambda a: float(mlir.ir.FloatAttr(a).value),
    "Bool": lambda a: bool(mlir.ir.BoolAttr(a).value),
    "Str": lambda a: mlir.ir.StringAttr(a).value,
    "Element": lambda a: dtypes.by_mlir(str(mlir.ir.TypeAttr(a).value)),
    "Number": _decode_number,
    "Array": _decode_array,
    "Types": _decode_types,
    "Static": _decode_static,
}


def encode(kind: str, value: Any) -> Any:
    """`value` as an MLIR attribute of the field type `kind`."""
    return ENCODERS[kind](value)


_decoded: dict[tuple[str, Any], Any] = {}


def decode(kind: str, attr: Any) -> Any:
    """The Python value of an MLIR attribute; raises ValueError when it is of another type."""
    if kind in ("Array", "Static"):
        return DECODERS[kind](attr)
    key = kind, attr
    if key in _decoded:
        return _decoded[key]
    value = DECODERS[kind](attr)
    if len(_decoded) > 8192:
        _decoded.clear()
    if not isinstance(value, (tuple, str)) or len(value) < 1000:
        _decoded[key] = value
    return value


def decode_all(op: Op, operation: Any) -> dict[str, Any]:
    """All attributes of `op`, defaults filled in; attributes the op does not know are ignored."""
    if not op.attrs:
        return {}
    present = operation.attributes
    result = {}
    for name, spec in op.attrs.items():
        if name in present:
            try:
                result[name] = decode(spec.type, present[name])
            except TypeError:  # the bindings cannot wrap it: dense elements of complex numbers
                raise AttributeValueError(
                    f"smelt.{op.name}: attribute {name} must be {DESCRIPTIONS[spec.type]} of a dtype "
                    f"among {', '.join(d.name for d in LITERAL_DTYPES)}"
                ) from None
            except ValueError:
                raise AttributeValueError(
                    f"smelt.{op.name}: attribute {name} must be {DESCRIPTIONS[spec.type]}, is {present[name]}"
                ) from None
        elif spec.required:
            raise AttributeValueError(
                f"smelt.{op.name}: attribute {name} ({DESCRIPTIONS[spec.type]}) is missing"
            )
        else:
            result[name] = spec.default
    return result


def attributes_of(operation: Any) -> dict[str, Any]:
    """The attributes of an operation. Raises IRError for one of a kind that the bindings cannot read."""
    present = operation.attributes
    found = {}
    for name in present:
        try:
            found[name] = present[name]
        except TypeError:
            raise IRError(f"the attribute {name} of {operation.name} cannot be read; at {operation.location}") from None
    return found
