"""Translation validation: what a program computes is compared before and after each pass.

The program runs by the `reference` rules on numbers made up, so no code generator takes part. A pass that changes a
value beyond rounding is named, with the input, the place and both values.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from smelt.ir import mlir
from smelt.ir.aval import Aval
from smelt.ir.builder import function_named, functions, read_function
from smelt.ir.errors import OutOfMemoryError, PipelineError
from smelt.ir.interpreter import Interpreter

from .call_graph import callees_first
from .driver import PassRecord
from .rewrite import mentions

#: How far results may lie apart, in units of rounding of the largest one: passes reassociate sums.
TOLERANCE = 4096
#: Kinds of ops whose sums passes may reassociate: of infinities and NaN these are not the same.
_SUMS = ("reduction", "contraction", "scan", "library", "control", "scatter")
SPECIAL = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, 3.0, -2.5)


class ValueCheck:
    """Runs ``@main`` after each pass on the same inputs: an ``on_pass`` of `Instrumentation`.

    Until the passes have expanded all transformations there is nothing to run; what comes out then is what all later
    passes must keep. Passes that keep the meaning of a program also keep that of programs on which they do nothing, so
    whatever IR there is may be checked.

    Args:
        module: before the first pass.
        count: how many inputs of each kind.
        seed: of the random numbers.

    Raises:
        IRError: there is no ``@main``, or a function that calls itself.

    Attributes:
        checked: the passes after which values were compared, by stage.

    >>> from smelt.ir import text
    >>> from smelt.passes import Pipeline
    >>> from smelt.passes.driver import Instrumentation
    >>> module = text.parse('''
    ... func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    ...   %0 = "smelt.neg"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    ...   %1 = "smelt.neg"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    ...   return %1 : tensor<4xf32>
    ... }''')
    >>> check = ValueCheck(module)
    >>> _ = Pipeline.parse("canonicalize,dce").run(module, Instrumentation(on_pass=check.on_pass))
    >>> check.checked
    ['canonicalize', 'dce']
    """

    def __init__(self, module: Any, count: int = 3, seed: int = 0):
        with mlir.lock:
            callees_first(module)  # functions that call themselves are an error, and no endless run
            self.arguments = [v.aval for v in function_named(module).arguments]
        rng = np.random.default_rng(seed)
        self.inputs = [
            (kind, [_drawn(aval, kind, rng) for aval in self.arguments])
            for kind in ("random", "small", "special")
            for _ in range(count)
        ]
        self.checked: list[str] = []
        self.expected: list[list[np.ndarray]] | None = None
        self._begin(module)

    def _begin(self, module: Any) -> None:
        if self.expected is None and not mentions(module, "func.constant"):  # no transformation is left
            self.exact = not _sums(module)
            self.expected = self._run(module)

    def on_pass(self, record: PassRecord, module: Any) -> None:
        """Compare. Raises PipelineError: the pass has changed a value."""
        if self.expected is None:
            self._begin(module)
            return
        for (kind, inputs), expected, found in zip(self.inputs, self.expected, self._run(module)):
            if kind == "special" and not self.exact:
                continue
            for i, (before, after) in enumerate(zip(expected, found)):
                if (at := first_difference(before, after)) is not None:
                    raise PipelineError(
                        f"{record.stage} changed a value: result {i} at {list(at)} was {before[at]}, is {after[at]}; "
                        f"{kind} inputs ({_shown(inputs)})"
                    )
        self.checked.append(record.stage)

    def _run(self, module: Any) -> list[list[np.ndarray]]:
        run = Interpreter(module)
        with np.errstate(all="ignore"):
            return [[np.asarray(x) for x in run("main", inputs)] for _, inputs in self.inputs]


def _sums(module: Any) -> bool:
    """Whether the module has ops whose sums passes may reassociate."""
    with mlir.lock:
        return any(op.op.kind in _SUMS for f in functions(module).values() for op in read_function(f).ops)


def _drawn(aval: Aval, kind: str, rng: np.random.Generator) -> np.ndarray:
    """An array of a type: normal numbers, small integers, or special values.

    Raises:
        OutOfMemoryError: no memory is that large, of which NumPy has a ValueError.
    """
    dtype = aval.dtype
    if aval.size > sys.maxsize // 16:
        raise OutOfMemoryError(f"numbers for an argument {aval} are more than memory can hold")
    if dtype.kind == "b":
        return rng.integers(0, 2, aval.shape).astype(bool)
    if dtype.is_integer:
        low = 0 if kind == "random" or dtype.kind == "u" else -3
        return rng.integers(low, 4, aval.shape).astype(dtype.numpy)

    def floats() -> np.ndarray:
        if kind == "random":
            return rng.standard_normal(aval.shape)
        if kind == "small":
            return rng.integers(-3, 4, aval.shape).astype(float)
        return rng.choice(np.array(SPECIAL), aval.shape)

    values = floats() + 1j * floats() if dtype.is_complex else floats()
    return np.asarray(values).astype(dtype.numpy)


def first_difference(before: np.ndarray, after: np.ndarray) -> tuple[int, ...] | None:
    """Where two results differ by more than rounding, or in a sign of zero; None where they do not.

    >>> first_difference(np.array([1.0, 0.0]), np.array([1.0, -0.0]))
    (1,)
    """
    if before.shape != after.shape or before.dtype != after.dtype:
        return ()
    if before.dtype.kind == "c":
        found = first_difference(before.real, after.real)
        return first_difference(before.imag, after.imag) if found is None else found
    if before.dtype.kind in "biu":
        wrong = before != after
    else:
        wide = before.astype(np.float64), after.astype(np.float64)
        with np.errstate(all="ignore"):
            finite = np.abs(wide[0][np.isfinite(wide[0])])
            epsilon = 2.0**-7 if before.dtype.itemsize == 2 else float(np.finfo(before.dtype).eps) * TOLERANCE
            near = np.abs(wide[0] - wide[1]) <= epsilon * max(1e-30, finite.max(initial=0.0))
        same = (wide[0] == wide[1]) | (np.isnan(wide[0]) & np.isnan(wide[1])) | near
        zeros = (wide[0] == 0) & (wide[1] == 0) & (np.signbit(wide[0]) != np.signbit(wide[1]))
        wrong = ~same | zeros
    if not wrong.any():
        return None
    return tuple(int(i) for i in np.argwhere(wrong)[0])


def _shown(inputs: list[np.ndarray]) -> str:
    listed = [np.array2string(x.ravel()[:4], precision=4, separator=", ") for x in inputs[:4]]
    return ", ".join(listed)
