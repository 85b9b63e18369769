"""The call of a target that a program registers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import dtypes
from ..aval import Aval
from ..custom_call import Call, target_called
from ..errors import AttributeValueError, CustomCallError, NotDifferentiableError, shown
from ..kinds import batch_size
from ..op import Batched, Dims, Op, Operands, Static, Str, Tangents, Types, Values
from ..scopes import place

if TYPE_CHECKING:
    from ..builder import Builder


class CustomCall(Op, name="custom_call"):
    """The results of a target that a package registers (`smelt.ir.custom_call`), for operands of any types.

    The types of the results are stated; `parameters` are handed to the target. In MLIR it is a function value, which
    ``func.call_indirect`` applies: a variadic group of a Python-defined op has one type.

    ``%f = "smelt.custom_call"() {target = "acme.f", parameters = {n = 2 : i64}, types = [tensor<4xf32>]} : () -> ((tensor<4xf32>, tensor<i32>) -> tensor<4xf32>)``
    """

    kind = "opaque"
    mixed = True
    num_results = -1
    operands: Operands
    target: Str
    parameters: Static
    types: Types
    flops = 1e6

    def infer(self, *operands: Aval, target: Str, parameters: Static, types: Types) -> tuple[Aval, ...]:
        return types

    def verify(self, operation: Any, *, target: Str, parameters: Static, types: Types) -> None:
        if not target:
            raise AttributeValueError("target must name what is called")

    def reference(self, *operands: np.ndarray, target: Str, parameters: Static, types: Types) -> tuple[np.ndarray, ...]:
        call = Call(target, tuple(Aval(x.shape, dtypes.of(x.dtype)) for x in operands), types, parameters)
        return _checked(call, target_called(target).host(call, *map(_read_only, operands)))

    def jvp(
        self, b: Builder, primals: Values, tangents: Tangents, results: Values, *, target: Str, parameters: Static,
        types: Types,
    ) -> Tangents:  # fmt: skip
        listed = ", ".join(str(v.aval) for v in primals)
        raise NotDifferentiableError(
            f"smelt.custom_call of {target} has no derivative (jvp or vjp), and its operands ({listed}) depend on what is "
            "differentiated; give a function that calls it rules by smelt.custom_function, or apply "
            f"smelt.stop_gradient to its operands{place(b.location)}"
        )

    def has_batch(self, **attrs: Any) -> bool:
        known = target_called(attrs["target"])
        return known.vectorized or known.batch is not None

    def has_kernel(self, language: str, **attrs: Any) -> bool:
        return bool(language) and language in target_called(attrs["target"]).kernels

    def batch(
        self, b: Builder, operands: Values, dims: Dims, *, target: Str, parameters: Static, types: Types
    ) -> Batched:
        known = target_called(target)
        if known.batch is not None:
            return known.batch(b, operands, dims, Call(target, tuple(v.aval for v in operands), types, parameters))
        size = batch_size(operands, dims)
        whole = [
            b.broadcast_to(x, (size, *x.shape)) if dim is None else b.move_axis(x, dim, 0)
            for x, dim in zip(operands, dims)
        ]
        avals = tuple(r.with_shape((size, *r.shape)) for r in types)
        outs = b.emit(self, whole, {"target": target, "parameters": parameters, "types": avals})
        return outs, [0] * len(outs)


def _read_only(x: np.ndarray) -> np.ndarray:
    view = np.asarray(x, order="C").view()  # a loop's elements are scalars, an op's result may have any strides
    view.flags.writeable = False
    return view


def _checked(call: Call, found: object) -> tuple[np.ndarray, ...]:
    """What the host function of a target returned, if it is what the call states."""
    listed = found if isinstance(found, (tuple, list)) else (found,)
    arrays = tuple([np.asarray(x) for x in listed if isinstance(x, (np.ndarray, np.generic))])
    if len(arrays) != len(listed) or len(arrays) != len(call.results):
        what = ", ".join(shown(x) for x in listed) or "nothing"
        message = f"must return {len(call.results)} NumPy arrays, it returned {what}"
    else:
        avals = [Aval(x.shape, dtypes.of(x.dtype)) for x in arrays]
        if avals == list(call.results):
            return arrays
        want, have = (", ".join(map(str, x)) for x in (call.results, avals))
        message = f"must return {want}, as the call states, it returned {have}"
    raise CustomCallError(f"smelt.custom_call: the host function of {call.target} {message}")
