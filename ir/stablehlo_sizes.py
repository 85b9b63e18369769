"""Custom calls of JAX whose sizes are values, as of running sums of open sizes: StableHLO's ops, once the values
are known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from . import mlir


def settle(module: Any) -> int:
    """Write those of them whose sizes are constants by now as ops of given sizes; how many."""
    count = 0
    for call in [op for op in inside(module.operation) if op.name == "stablehlo.custom_call"]:
        rule = _RULES.get(str(call.attributes["call_target_name"].value))
        made = rule(module, call) if rule is not None else None
        if made is None:
            continue
        for old, new in zip(call.results, made.results):
            old.replace_all_uses_with(new)
        call.erase()
        count += 1
    if count:
        _fit_results(module)
    return count


def inside(operation: Any) -> Iterator[Any]:
    """The operations inside of one."""
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield inner.operation
                yield from inside(inner.operation)


def _window(module: Any, call: Any) -> Any:
    """``dynamic_reduce_window(arrays, initial values, extents, strides, dilations of both, padding)``."""
    ir = mlir.ir
    arrays = list(call.operands)[: 2 * len(call.results)]
    kinds = [ir.RankedTensorType(v.type) for v in arrays]
    values = [constant(v) for v in list(call.operands)[len(arrays) :]]
    known = [v.reshape(-1) for v in values if v is not None]
    if len(known) < len(values) or not all(k.has_static_shape for k in kinds):
        return None
    window, strides, base, dilations, padding = known
    extents = []
    for i, d in enumerate(kinds[0].shape):
        room = ((d - 1) * base[i] + 1 if d else 0) + padding[2 * i] + padding[2 * i + 1]
        extents.append(int(max(0, (room - (window[i] - 1) * dilations[i] - 1) // strides[i] + 1)))
    with call.context, call.location:
        named = {"window_dimensions": window, "window_strides": strides, "base_dilations": base,
                 "window_dilations": dilations}  # fmt: skip
        attributes = {name: ir.DenseI64ArrayAttr.get([int(n) for n in v]) for name, v in named.items()}
        pairs = np.ascontiguousarray(padding.reshape(-1, 2), np.int64)
        attributes["padding"] = ir.DenseElementsAttr.get(pairs, type=ir.IntegerType.get_signless(64))
        results = [ir.RankedTensorType.get(extents, k.element_type) for k in kinds[: len(call.results)]]
        made = ir.Operation.create(
            "stablehlo.reduce_window", results, arrays, attributes, regions=1, ip=ir.InsertionPoint(call)
        )
        _copy_body(module, ir.ArrayAttr(call.attributes["called_computations"])[0].value, made.regions[0])
    return made


def _top_k(module: Any, call: Any) -> Any:
    """``dynamic_top_k(x, k)``."""
    ir = mlir.ir
    x, k = call.operands
    kind, count = ir.RankedTensorType(x.type), constant(k)
    if count is None or not kind.has_static_shape:
        return None
    shape = [*kind.shape[:-1], int(count)]
    with call.context, call.location:
        kinds = [ir.RankedTensorType(r.type).element_type for r in call.results]
        attributes = {"k": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), int(count))}
        results = [ir.RankedTensorType.get(shape, element) for element in kinds]
        return ir.Operation.create("chlo.top_k", results, [x], attributes, ip=ir.InsertionPoint(call))


_RULES = {"stablehlo.dynamic_reduce_window": _window, "stablehlo.dynamic_top_k": _top_k}


def constant(value: Any) -> np.ndarray | None:
    """The elements of a constant of integers; None where it is none."""
    owner = getattr(value.owner, "operation", None)
    if owner is None or owner.name != "stablehlo.constant":
        return None
    attr = owner.attributes["value"]
    shape = mlir.ir.RankedTensorType(attr.type).shape
    return np.full(shape, attr.get_splat_value().value) if attr.is_splat else np.array(attr).reshape(shape)


def _copy_body(module: Any, name: str, region: Any) -> None:
    """The ops of a function of the module as those of a region."""
    ir = mlir.ir
    found = (op for op in inside(module.operation) if op.name == "func.func")
    body = next(op for op in found if op.attributes["sym_name"].value == name).regions[0].blocks[0]
    block = ir.Block.create_at_start(region, [a.type for a in body.arguments], [a.location for a in body.arguments])
    env, point = dict(zip(body.arguments, block.arguments)), ir.InsertionPoint(block)
    for item in body.operations:
        op = item.operation
        if op.name == "func.return":
            ir.Operation.create("stablehlo.return", [], [env[v] for v in op.operands], ip=point)
            return
        copy = op.clone(point).operation
        for i, v in enumerate(op.operands):
            copy.operands[i] = env[v]
        env.update(zip(op.results, copy.results))


def _fit_results(module: Any) -> None:
    """Functions return what they return now."""
    ir = mlir.ir
    for item in module.body.operations:
        function = item.operation
        if function.name != "func.func" or not function.regions[0].blocks:
            continue
        block = function.regions[0].blocks[0]
        returned: Sequence[Any] = list(block.operations)[-1].operands
        with function.context:
            kind = ir.FunctionType.get([a.type for a in block.arguments], [v.type for v in returned])
            function.attributes["function_type"] = ir.TypeAttr.get(kind)
