"""Attributes of wrong types in passes of other packages: each attribute of each op gets what it does not take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from smelt.ir import dtypes, mlir, text
from smelt.ir.aval import Aval
from smelt.ir.builder import new_function
from smelt.ir.dialect import context
from smelt.ir.errors import SmeltError
from smelt.ir.op import Op
from smelt.passes import Pipeline

from ..ops.cases import example, plain_ops
from .plugins import Foreign

WRONG: dict[str, Any] = {
    "None": None, "text": "x", "bytes": b"x", "float": 1.5, "nan": float("nan"), "bool": True, "huge": 2**70,
    "-huge": -(2**70),
    "negative": -3, "large": 2**62, "complex": 1j, "list": [1.5], "nested": ((1,),), "texts": ("a",), "nothing": (),
    "huge numbers": (2**70,), "negative numbers": (-1, -2), "twice": (0, 0), "large numbers": (2**62, 2**62),
    "least": -(2**63), "least numbers": (-(2**63),), "dtype": dtypes.float32, "NumPy dtype": np.dtype("f4"),
    "class": float,
    "dict": {}, "array": np.ones(3), "objects": np.array([None, 1], object), "texts of NumPy": np.array(["a"]),
    "NumPy integer": np.int64(3), "NumPy float": np.float32(2.5), "aval": Aval((2,), dtypes.int32),
    "half a character": "\ud800",
    "function": len, "attribute of MLIR": "attribute", "empty": np.zeros((0,), np.float32), "structure": np.zeros(2,
    [("a", "i4")]),
}  # fmt: skip


def attempt(op: Op, attrs: dict[str, Any]) -> None:
    """A pass that emits an op; what it leaves is verified by the driver."""
    case = example(op)

    def do(module: Any, statistics: Any) -> None:
        given = dict(attrs)
        for name in [k for k, v in attrs.items() if isinstance(v, str) and v == "attribute"]:
            given[name] = mlir.ir.Attribute.parse("3 : i4", context())
        _, arguments, b = new_function(module, "made", case.avals, list(case.results))
        made = b.emit(op, arguments, given)
        b.return_(made)

    with mlir.lock:
        module = mlir.ir.Module.create(mlir.ir.Location.unknown(context()))
        Pipeline([Foreign(do)]).run(module)
        text.parse(text.to_text(module))


@pytest.mark.parametrize("op", [op for op in plain_ops() if op.attrs], ids=lambda op: op.name)
def test_attributes_of_wrong_types(op: Op) -> None:
    right = example(op).kwargs
    attempt(op, right)
    for name in op.attrs:
        for what, wrong in WRONG.items():
            try:
                attempt(op, {**right, name: wrong})
            except SmeltError as error:
                assert "foreign" in str(error), (name, what, error)
        with pytest.raises(SmeltError, match=f"has no attribute {name}_"):
            attempt(op, {**right, f"{name}_": right.get(name)})
        if op.attrs[name].required:
            with pytest.raises(SmeltError, match=f"needs the attribute {name}"):
                attempt(op, {k: v for k, v in right.items() if k != name})


@pytest.mark.parametrize("op", plain_ops(), ids=lambda op: op.name)
def test_wrong_counts_of_operands(op: Op) -> None:
    case = example(op)
    for count in {0, 1, len(case.avals) + 1, max(0, len(case.avals) - 1)} - {len(case.avals)}:

        def do(module: Any, statistics: Any) -> None:
            avals = (list(case.avals) * 3 or [Aval((), dtypes.float32)] * 3)[:count]  # noqa: B023
            _, arguments, b = new_function(module, "made", avals, list(case.results))
            b.return_(b.emit(op, arguments, case.kwargs))

        with mlir.lock:
            module = mlir.ir.Module.create(mlir.ir.Location.unknown(context()))
            if op.variadic and count >= len(op.operand_names) - 1:
                continue
            with pytest.raises(SmeltError, match=rf"smelt.{op.name} takes \d+ operands.*foreign"):
                Pipeline([Foreign(do)]).run(module)
