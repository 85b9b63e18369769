"""Gathers and scatters."""

from __future__ import annotations

from collections.abc import Sequence

from smelt.ir import dtypes

from ..writer import Tensor, Writer, ints
from .table import Call, rule


def _vector(w: Writer, indices: Sequence[Tensor]) -> Tensor:
    """Index tensors as one, with an axis of its own for the components."""
    shape = indices[0].shape
    wide = [w.convert(i, dtypes.int32) if i.dtype.size < 4 else i for i in indices]
    parts = [w.reshape(i, (*shape, 1)) for i in wide]
    return parts[0] if len(parts) == 1 else w.concatenate(parts, len(shape))


def _listed(values: Sequence[int]) -> str:
    return "[" + ", ".join(map(str, values)) + "]"


@rule("gather")
def _gather(call: Call) -> Tensor:
    w, (x, *indices), sizes = call.writer, call.operands, call.attrs["slice_sizes"]
    if not indices:
        return w.slice(x, (0,) * x.aval.ndim, sizes)
    lead = indices[0].aval.ndim
    numbers = (
        f"#stablehlo.gather<offset_dims = {_listed(range(lead, lead + x.aval.ndim))}, "
        f"start_index_map = {_listed(call.attrs['axes'])}, index_vector_dim = {lead}>"
    )
    attrs = f"dimension_numbers = {numbers}, slice_sizes = {ints(sizes)}, indices_are_sorted = false"
    return w.op("stablehlo.gather", [x, _vector(w, indices)], call.aval, attrs)


_COMBINE = {"add": ("add", "or"), "mul": ("multiply", "and"), "max": ("maximum", "or"), "min": ("minimum", "and")}


@rule("scatter")
def _scatter(call: Call) -> Tensor:
    w, (x, updates, *indices), mode = call.writer, call.operands, call.attrs["mode"]
    if not indices:  # one window, at the beginning
        indices = [w.scalar(0, dtypes.int32)]
        axes: tuple[int, ...] = (0,) if x.aval.ndim else ()
        if not axes:
            return updates if mode == "set" else w.binary(combiner(mode, x), x, updates)
    else:
        axes = call.attrs["axes"]
    lead = indices[0].aval.ndim
    numbers = (
        f"#stablehlo.scatter<update_window_dims = {_listed(range(lead, lead + x.aval.ndim))}, "
        f"scatter_dims_to_operand_dims = {_listed(axes)}, index_vector_dim = {lead}>"
    )
    attrs = f"scatter_dimension_numbers = {numbers}, indices_are_sorted = false, unique_indices = false"

    def body(old: Tensor, new: Tensor) -> list[Tensor]:
        return [new if mode == "set" else w.op(combiner(mode, x), [old, new], old.aval)]

    region = w.scalars(x.dtype, 2, body)
    return w.op("stablehlo.scatter", [x, _vector(w, indices), updates], call.aval, attrs, [region])


def combiner(mode: str, x: Tensor) -> str:
    number, truth = _COMBINE[mode]
    return f"stablehlo.{truth if x.dtype is dtypes.bool_ else number}"
