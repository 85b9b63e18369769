"""Convolutions by cuDNN: a `Convolution` as a graph of one operation.

What a plan computes does not change from run to run, and sums of float32 stay float32's: engines that cuDNN notes to be
otherwise are left out, and those that spread a NaN, or the rounding of a large element, over a tile of the result.
"""

from __future__ import annotations

from collections.abc import Iterator

from smelt.ir.errors import DeviceError

from ...gpu.library import Convolution
from . import codes
from .library import Graph, Library, Plan

#: cudnnBackendDescriptorType_t.
_CONVOLUTION = 1
#: The same of the operation that writes a tensor, and the attributes of its operands.
_OPERATIONS = {
    "result": (10, {"alpha": 700, "beta": 701, "description": 702, "filter": 703, "image": 704, "result": 705}),
    "image": (12, {"alpha": 706, "beta": 707, "description": 708, "filter": 709, "image": 710, "result": 711}),
    "filter": (11, {"alpha": 712, "beta": 713, "description": 714, "filter": 715, "image": 716, "result": 717}),
}
#: What no engine may do, and what it may not do besides where operands of float32 are not to be rounded.
_REFUSED = {codes.ROUNDS_SUMS, codes.FOURIER, codes.CHANGES, *codes.WINOGRAD}
_ROUNDING = {codes.TENSOR_CORES, codes.ROUNDS_INPUTS}
#: Of what elements are.
_DTYPES = {"float32", "float64", "float16", "bfloat16"}


def plans(library: Library, convolution: Convolution) -> Iterator[Plan]:
    """The ways in which cuDNN can make a convolution, those first that it takes for the fastest."""
    dtypes = {x.dtype for x in (convolution.image, convolution.filter, convolution.result)}
    if len(dtypes) > 1 or not dtypes <= _DTYPES or _is_wrong(convolution):
        return
    try:
        graph = _graph(library, convolution, *dtypes)
    except DeviceError:  # what it knows to be impossible without asking its engines
        return
    refused = _REFUSED if convolution.tf32 or "float32" not in dtypes else _REFUSED | _ROUNDING
    yield from graph.plans(refused, convolution.workspace)


def _is_wrong(convolution: Convolution) -> bool:
    """Whether cuDNN was seen to give wrong values (9.19): gradients in filters where padding is not that before."""
    return convolution.out == "filter" and convolution.low != convolution.high


def _graph(library: Library, convolution: Convolution, dtype: str) -> Graph:
    graph, axes = Graph(library), len(convolution.strides)
    real = codes.DOUBLE if dtype == "float64" else codes.FLOAT
    description = graph.part(_CONVOLUTION).dtype(100, "float64" if dtype == "float64" else "float32")
    description.set(101, codes.CONVOLUTION_MODE, 1).integers(106, axes).integers(102, *convolution.dilation)
    description.integers(103, *convolution.strides).integers(105, *convolution.low)
    description.integers(104, *convolution.high).finish()
    kind, names = _OPERATIONS[convolution.out]
    tensors = {name: graph.array(getattr(convolution, name)) for name in ("image", "filter", "result")}
    operation = graph.operation(kind).refer(names["description"], description)
    for name, tensor in tensors.items():
        operation.refer(names[name], tensor)
    operation.set(names["alpha"], real, 1.0).set(names["beta"], real, 0.0).finish()
    return graph
