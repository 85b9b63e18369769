"""How arrays print: NumPy's layout, with the dtype always shown."""

from __future__ import annotations

from typing import Any

import numpy as np

from smelt.ir import dtypes


def format_array(x: Any) -> str:
    """``array([1, 2], dtype=int32)``; a traced array prints its type."""
    from .graph import state

    node, _ = x._ref
    if node.values is None and state.compiling:
        return f"<traced array {x.aval}>"
    host = x._host()
    if x.dtype is dtypes.bfloat16:
        host = host.astype(np.float32)
    body = np.array2string(
        host, separator=", ", prefix="array(", suffix=")", threshold=1000, edgeitems=3, floatmode="maxprec",
        precision=6, formatter=_formatter(host),
    )  # fmt: skip
    if host.size == 0:
        body = f"[], shape={host.shape}"
    return f"array({body}, dtype={x.dtype.name})"


def _formatter(host: np.ndarray) -> Any:
    """Floats print with six significant digits, like ``%g``."""
    if host.dtype.kind == "f":
        texts = {"float_kind": lambda v: f"{v:g}"}
        return texts
    if host.dtype.kind == "c":
        return {"complex_kind": lambda v: f"{v.real:g}{v.imag:+g}j"}
    return None
