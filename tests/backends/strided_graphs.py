"""Programs with kernels for all sizes, against the same ops one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import smelt
from smelt.ir.aval import Aval
from smelt.ir.op_program import OpProgram
from smelt.ir.settings import override
from smelt.lazy.execution import strided
from smelt.passes.transform.tape import Recorded, Tape


def recorded(avals: Sequence[Aval], function: Any) -> Recorded:
    """What a function does with a builder and values."""
    tape = Tape()
    arguments = [tape.argument(a) for a in avals]
    returns = list(function(tape, *arguments))
    return Recorded(arguments, tape.ops, returns)


def both(avals: Sequence[Aval], function: Any) -> tuple[OpProgram, OpProgram]:
    """The ops of a function one by one, and as a program with groups."""
    ops = OpProgram(*recorded(avals, function), lambda f, operands: [])
    return ops, strided.StridedProgram(ops, smelt.cpu)


def run(program: OpProgram, arrays: Sequence[np.ndarray], check: bool = False) -> list[np.ndarray]:
    with override(tier="strided", check=check):
        return program.run(arrays)


def laid_out(x: np.ndarray, how: int) -> np.ndarray:
    """The same elements, lying otherwise: as a transpose, with gaps, backwards, off their alignment."""
    if how == 1 and x.ndim > 1:
        return np.asfortranarray(x)
    if how == 2 and x.ndim:
        wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
        wide[..., ::2] = x
        return wide[..., ::2]
    if how == 3 and x.ndim:
        return np.ascontiguousarray(x[::-1])[::-1]
    if how == 4:
        raw = np.zeros(x.nbytes + 1, np.uint8)
        found = raw[1:].view(x.dtype).reshape(x.shape)
        found[...] = x
        return found
    return x
