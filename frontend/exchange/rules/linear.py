"""Products: of matrices, and convolutions."""

from __future__ import annotations

from typing import Any

from smelt.ir import dtypes, stablehlo
from smelt.ir.op import registry as ops

from ...lazy.arrays import array, convert, emit
from ..reading import Call, rule
from ..translating import Refused
from .elementwise import full_like
from .shapes import permuted, reshaped

_NO_BATCH: dict[str, tuple[int, ...]] = {"lhs_batch": (), "rhs_batch": ()}


def _numbers(kind: str, attr: Any) -> Any:
    """A structured attribute with its fields readable."""
    return getattr(stablehlo.bindings(), kind)(attr)


@rule("stablehlo.dot_general")
def _dot_general(call: Call) -> array:
    numbers = _numbers("DotDimensionNumbers", call.attribute("dot_dimension_numbers"))
    attrs = {
        "lhs_contracting": tuple(numbers.lhs_contracting_dimensions),
        "rhs_contracting": tuple(numbers.rhs_contracting_dimensions),
        "lhs_batch": tuple(numbers.lhs_batching_dimensions),
        "rhs_batch": tuple(numbers.rhs_batching_dimensions),
    }
    return _product(call, attrs)


@rule("stablehlo.dot")
def _dot(call: Call) -> array:
    return _product(call, {**_NO_BATCH, "lhs_contracting": (call.x.ndim - 1,), "rhs_contracting": (0,)})


def _product(call: Call, attrs: dict[str, Any]) -> array:
    x, y = _widened(call)
    return convert(emit(ops["dot_general"], (x, y), attrs), call.aval.dtype)


def _widened(call: Call) -> tuple[array, array]:
    """Operands in the dtype in which products are summed: that of the result where it is wider. Sums of truth values
    say whether there is one: they are counted."""
    x, y = call.operands
    target = call.aval.dtype
    if x.dtype is y.dtype is dtypes.bool_:
        return convert(x, dtypes.int32), convert(y, dtypes.int32)
    if x.dtype is not y.dtype or target.size > x.dtype.size:
        return convert(x, target), convert(y, target)
    return x, y


@rule("chlo.ragged_dot")
def _ragged(call: Call) -> array:
    """Rows in groups, each with a matrix of its own: rows of other groups are zero in the product of a group."""
    x, y, sizes = call.operands
    if x.ndim != 2 or y.ndim != 3 or sizes.ndim != 1:
        raise Refused(f"is translated for matrices [m, k], [g, k, n] and g sizes, not {x.aval}, {y.aval}, {sizes.aval}")
    sizes = convert(sizes, dtypes.int32)
    ends = emit(ops["cumsum"], (sizes,), {"axis": 0, "reverse": False, "inclusive": True})
    starts = emit(ops["sub"], (ends, sizes))
    shape = (sizes.shape[0], x.shape[0])
    row = emit(ops["iota"], (), {"shape": shape, "axis": 1, "dtype": sizes.dtype})

    def spread(v: array) -> array:
        return emit(ops["broadcast"], (reshaped(v, (shape[0], 1)),), {"shape": shape})

    after = emit(ops["greater_equal"], (row, spread(starts)))
    inside = emit(ops["logical_and"], (after, emit(ops["less"], (row, spread(ends)))))
    wide = (*shape, x.shape[1])
    mask = emit(ops["broadcast"], (reshaped(inside, (*shape, 1)),), {"shape": wide})
    rows = emit(ops["broadcast"], (reshaped(x, (1, *x.shape)),), {"shape": wide})
    kept = emit(ops["select"], (mask, rows, full_like(rows, 0)))
    found = emit(ops["dot_general"], (kept, y), {**_NO_BATCH, "lhs_contracting": (0, 2), "rhs_contracting": (0, 1)})
    return convert(found, call.aval.dtype)


@rule("stablehlo.convolution")
def _convolution(call: Call) -> array:
    """The axes are put in smelt's order; a kernel that is flipped is reversed; groups of the batch are groups of
    channels."""
    x, w = _widened(call)
    n = _numbers("ConvDimensionNumbers", call.attribute("dimension_numbers"))
    x = permuted(x, (n.input_batch_dimension, *n.input_spatial_dimensions, n.input_feature_dimension))
    w = permuted(w, (n.kernel_output_feature_dimension, *n.kernel_spatial_dimensions, n.kernel_input_feature_dimension))
    spatial = x.ndim - 2
    ones = (1,) * spatial
    flipped = call.attribute("window_reversal")
    axes = tuple(i + 1 for i, f in enumerate(flipped) if f) if flipped is not None else ()
    if axes:
        w = emit(ops["reverse"], (w,), {"axes": axes})
    padding = call.ints("padding", (0,) * (2 * spatial))
    attrs: dict[str, Any] = {
        "window_strides": call.ints("window_strides", ones),
        "padding_low": padding[::2],
        "padding_high": padding[1::2],
        "kernel_dilation": call.ints("rhs_dilation", ones),
        "input_dilation": call.ints("lhs_dilation", ones),
        "feature_groups": call.int("feature_group_count", 1),
    }
    batches = call.int("batch_group_count", 1)
    if batches > 1:
        # Group i of the batch meets the i-th part of the output channels alone, which is what groups of channels do.
        size, channels = x.shape[0] // batches, x.shape[-1]
        x = reshaped(x, (batches, size, *x.shape[1:]))
        x = permuted(x, (1, *range(2, x.ndim - 1), 0, x.ndim - 1))
        x = reshaped(x, (*x.shape[:-2], batches * channels))
        attrs["feature_groups"] = batches
    found = convert(emit(ops["conv_general"], (x, w), attrs), call.aval.dtype)
    order = [0] * found.ndim
    order[n.output_batch_dimension], order[n.output_feature_dimension] = 0, found.ndim - 1
    for i, axis in enumerate(n.output_spatial_dimensions):
        order[axis] = i + 1
    return permuted(found, tuple(order))
