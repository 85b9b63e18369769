"""`to_stablehlo`: a function of arrays as a program that other frameworks run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, overload

import numpy as np

from smelt.backends.exchange.linalg import to_linalg as linalg_of
from smelt.backends.exchange.stablehlo import to_stablehlo as stablehlo_of
from smelt.ir import stablehlo
from smelt.ir.errors import ArgumentTypeError, TreeError, at_user_line, shown
from smelt.ir.flags import flags_checked
from smelt.ir.text import IRText

from ..lazy.arrays import wrap
from ..lazy.evaluate import evaluate
from ..transforms.compile import compile as compile_function
from ..transforms.compiled_function import CompiledFunction
from ..transforms.recording import check_function
from ..transforms.traced import Lowered

__all__ = ["to_linalg", "to_stablehlo"]


def exported(lowered: Lowered, language: str) -> IRText:
    """A lowered trace in "stablehlo" or "linalg"; arrays that it uses besides its arguments are constants."""
    captured = lowered.trace.function.captured
    evaluate(captured)
    values = [np.array(wrap(ref)) for ref in captured]
    return (linalg_of if language == "linalg" else stablehlo_of)(lowered.module, values)


def _lowered(what: str, fun: Callable[..., Any], args: tuple[Any, ...]) -> Lowered:
    check_function(fun, what)
    compiled: Any = fun if isinstance(fun, CompiledFunction) else compile_function(fun)
    found: Lowered = compiled.trace(*args).lower()
    for place, value in found.trace.static_outputs.items():
        if value is not None:
            message = f"{what}: result {place} of {found.trace.name} is {shown(value)}, results of programs are arrays"
            raise TreeError(at_user_line(f"{message}; return smelt.array of it, or leave it out"))
    return found


@overload
def to_stablehlo(fun: Callable[..., Any], *args: Any, bytecode: Literal[False] = False) -> IRText: ...


@overload
def to_stablehlo(fun: Callable[..., Any], *args: Any, bytecode: Literal[True]) -> bytes: ...


@flags_checked
def to_stablehlo(fun: Callable[..., Any], *args: Any, bytecode: bool = False) -> IRText | bytes:
    """The StableHLO program of a function: for JAX, and for all else that reads StableHLO.

    The program takes the arrays of `args` in order and returns the function's, flattened and without None; arrays that
    the function uses besides are constants of it. Transformations are expanded, ops that StableHLO does not have are
    written with those that it has.

    Args:
        fun: a function of trees of arrays.
        args: arguments that say the types: arrays, or `smelt.ShapeDtype`.
        bytecode: return a portable artifact (bytes), which later versions of StableHLO read too.

    Returns:
        MLIR text, or bytes.

    Raises:
        IRError: an op that StableHLO has nothing for (eigenvalues, code of the user): the message names it and its
            line. TraceError: the function asks for a value. TreeError: a result is neither an array nor None.
            MissingPackageError: MLIR bindings without StableHLO. ArgumentTypeError: `bytecode` is no bool.

    >>> import smelt
    >>> text = smelt.to_stablehlo(lambda x: smelt.exp(x).sum(), smelt.zeros(3))
    >>> "stablehlo.exponential" in text
    True
    """
    if not isinstance(bytecode, bool):
        message = f"smelt.to_stablehlo: bytecode must be True or False, is {shown(bytecode)}"
        raise ArgumentTypeError(at_user_line(message))
    text = exported(_lowered("smelt.to_stablehlo", fun, args), "stablehlo")
    return stablehlo.to_bytecode(text) if bytecode else text


def to_linalg(fun: Callable[..., Any], *args: Any) -> IRText:
    """The program of a function in linalg on tensors, for other projects on MLIR; see `smelt.to_stablehlo`.

    Args:
        fun: a function of trees of arrays.
        args: arguments that say the types: arrays, or `smelt.ShapeDtype`.

    Raises:
        IRError: an op that linalg has nothing for: sorts, scatters, factors, Fourier transforms. TreeError: a result
            is neither an array nor None.

    >>> import smelt
    >>> "linalg.matmul" in smelt.to_linalg(lambda x: x @ x, smelt.zeros((3, 3)))
    True
    """
    return exported(_lowered("smelt.to_linalg", fun, args), "linalg")
