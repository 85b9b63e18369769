"""Products of matrices, and convolutions."""

from __future__ import annotations

from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.scalar import compute_dtype

from ..writer import Tensor, ints
from .table import Call, rule


@rule("dot_general", "wide_dot_general")
def _dot_general(call: Call) -> Tensor:
    """Half precision accumulates in float32, so it says so."""
    w, a = call.writer, call.attrs
    lists = {
        "lhs_batching_dimensions": a["lhs_batch"], "rhs_batching_dimensions": a["rhs_batch"],
        "lhs_contracting_dimensions": a["lhs_contracting"], "rhs_contracting_dimensions": a["rhs_contracting"],
    }  # fmt: skip
    fields = ", ".join(f"{name} = [{', '.join(map(str, v))}]" for name, v in lists.items() if v)
    kind = call.aval.dtype
    wide = compute_dtype(kind)
    found = w.op(
        "stablehlo.dot_general", call.operands, Aval(call.aval.shape, wide),
        f"dot_dimension_numbers = #stablehlo.dot<{fields}>",
    )  # fmt: skip
    return w.convert(found, kind)


@rule("conv_general")
def _conv_general(call: Call) -> Tensor:
    w, a = call.writer, call.attrs
    spatial = ", ".join(map(str, range(call.x.aval.ndim - 2)))
    middle = f", {spatial}, " if spatial else ", "
    padding = ", ".join(f"[{low}, {high}]" for low, high in zip(a["padding_low"], a["padding_high"]))
    count = call.x.aval.ndim - 2
    pairs = f"dense<[{padding}]> : tensor<{count}x2xi64>" if count else "dense<> : tensor<0x2xi64>"
    attrs = (
        f"dimension_numbers = #stablehlo.conv<[b{middle}f]x[o{middle}i]->[b{middle}f]>, "
        f"window_strides = {ints(a['window_strides'])}, padding = {pairs}, "
        f"lhs_dilation = {ints(a['input_dilation'])}, rhs_dilation = {ints(a['kernel_dilation'])}, "
        f"feature_group_count = {a['feature_groups']} : i64, batch_group_count = 1 : i64"
    )
    kind = call.aval.dtype
    wide = dtypes.float32 if kind.is_float and kind.size == 2 else kind
    x, y = (w.convert(v, wide) for v in call.operands)
    return w.convert(w.op("stablehlo.convolution", [x, y], Aval(call.aval.shape, wide), attrs), kind)
