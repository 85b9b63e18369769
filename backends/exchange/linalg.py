"""A module of the smelt dialect as linalg on tensors: by way of StableHLO, with upstream's conversion."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from smelt.ir import mlir, stablehlo
from smelt.ir.errors import IRError
from smelt.ir.text import IRText

from .loops import LoopWriter
from .stablehlo import to_stablehlo

_LEFT = re.compile(r"\b(?:stablehlo|chlo)\.(?!return)[a-z_]+(?: @\w+)?")
#: The conversion leaves unsigned types in signatures, with casts that no later pass takes; ops say what is unsigned.
_UNSIGNED = re.compile(r"(?<=[x<(\s])ui(8|16|32|64)\b")
_PIPELINE = (
    "func.func(chlo-legalize-to-stablehlo,stablehlo-complex-math-expander),stablehlo-legalize-to-linalg,"
    "canonicalize,cse"
)


def to_linalg(module: Any, captured: Sequence[np.ndarray] = ()) -> IRText:
    """The text of a module in linalg, tensor, arith, math and scf, which other projects on MLIR read. Unsigned integers
    are signless there, as in arith.

    Args:
        module: a module of the smelt dialect. captured: what the last arguments of ``@main`` are.

    Raises:
        IRError: code of a library, such as of LAPACK.
    """
    source = to_stablehlo(module, captured, writer=LoopWriter)
    with mlir.lock:
        found = stablehlo.parse(source, "<stablehlo>")
        try:
            stablehlo.run(stablehlo.context(), found, _PIPELINE)
            if _UNSIGNED.search(signed := stablehlo.to_text(found)):
                found = mlir.ir.Module.parse(_UNSIGNED.sub(r"i\1", signed), stablehlo.context())
                stablehlo.run(stablehlo.context(), found, "reconcile-unrealized-casts,canonicalize")
        except (RuntimeError, ValueError, mlir.ir.MLIRError) as error:
            raise IRError(f"the conversion of StableHLO to linalg failed: {error}") from None
        result = stablehlo.to_text(found)
    left = sorted({found[0] for found in _LEFT.finditer(result)})
    if left:
        names = ", ".join(left)
        raise IRError(f"linalg has nothing for {names}; leave such ops outside of the program, or hand on StableHLO")
    return IRText(result)
