"""Options of kernel passes that are lists written as text."""

from __future__ import annotations

from smelt.ir import dtypes
from smelt.ir.dtypes import DType
from smelt.ir.errors import PipelineError


def words(text: str) -> list[str]:
    """The words of an option, with commas or ``+`` in between."""
    return [word for word in text.replace("+", ",").split(",") if word]


def dtype_called(name: str, pass_name: str) -> DType:
    """The dtype of a name, as MLIR or as NumPy has it. Raises PipelineError: a pass was given another."""
    for dtype in dtypes.ALL:
        if name in (dtype.mlir, dtype.name):
            return dtype
    known = ", ".join(d.mlir for d in dtypes.ALL)
    raise PipelineError(f"{pass_name}: there is no dtype {name!r}; dtypes: {known}")
