"""Modules made with the builder, and programs run on NumPy arrays."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import smelt.ir.ops  # noqa: F401
from smelt.backends.cpu import program as cpu
from smelt.backends.cpu.threads import Team
from smelt.ir import dtypes, mlir, text
from smelt.ir.aval import Aval
from smelt.ir.builder import new_function
from smelt.ir.dialect import context
from smelt.ir.interpreter import Interpreter
from smelt.passes import Pipeline

f32 = dtypes.float32
PASSES = "cse,dce,fuse,plan-buffers"


def module_of(avals: Sequence[Aval], function: Callable[..., Any]) -> Any:
    """A module whose @main is `function(builder, *values)`."""
    with mlir.ir.Location.unknown(context()):
        module = mlir.ir.Module.create()

    def emit(results: Sequence[Aval]) -> tuple[Any, list[Aval]]:
        operation, arguments, b = new_function(module, "main", avals, results, public=True)
        found = function(b, *arguments)
        found = found if isinstance(found, (list, tuple)) else [found]
        if results:
            b.return_(found)
        return operation, [v.aval for v in found]

    operation, results = emit([])
    operation.erase()
    emit(results)
    return module


#: Bytes before and behind each buffer that nobody may write.
GUARD = 4096


class Buffer:
    """Memory between two guards."""

    def __init__(self, array: np.ndarray):
        lead = GUARD + 63
        self._memory = np.full(lead + array.nbytes + GUARD, 0x5A, np.uint8)
        first = GUARD + -(self._memory.ctypes.data + GUARD) % 64
        self._ends = first, first + array.nbytes
        self.array = self._memory[slice(*self._ends)].view(array.dtype).reshape(array.shape)
        self.array[...] = array
        self.address = self._memory.ctypes.data + first

    def check(self) -> None:
        first, last = self._ends
        assert (self._memory[:first] == 0x5A).all(), "a kernel wrote before a buffer"
        assert (self._memory[last:] == 0x5A).all(), "a kernel wrote past a buffer"


def run(program: cpu.Program, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    inputs = [Buffer(a) for a in arrays]
    outputs = [Buffer(np.zeros(a.shape, a.dtype.numpy)) for a in program.results]
    for buffer in outputs:  # what nobody writes shows
        buffer.array.reshape(-1).view(np.uint8).fill(0xFF)
    arena = Buffer(np.full(program.arena_bytes, 0xA5, np.uint8))
    program.run(inputs, outputs, arena.address)
    for buffer in (*inputs, *outputs, arena):
        buffer.check()
    found = []
    for i, (aval, own) in enumerate(zip(program.results, outputs)):
        alias = program.aliases.get(i)
        buffer = own if alias is None else inputs[alias] if isinstance(alias, int) else outputs[alias[1]]
        found.append(buffer.array.reshape(aval.shape))
    return found


def compile_(module: Any, passes: str = PASSES, team: Team | None = None) -> cpu.Program:
    Pipeline.parse(passes).run(module)
    text.verify(module)
    return cpu.compile_module(module, team)


def random_array(aval: Aval, seed: int = 0, positive: bool = False) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(aval.shape)
    if aval.dtype.kind == "b":
        return np.asarray(x > 0)
    if aval.dtype.kind in "iu":
        return np.asarray(rng.integers(0, 7, aval.shape)).astype(aval.dtype.numpy)
    if aval.dtype.kind == "c":
        x = x + 1j * rng.standard_normal(aval.shape)
    return np.asarray(np.abs(x) if positive else x).astype(aval.dtype.numpy)


def check(
    avals: Sequence[Aval], function: Callable[..., Any], rtol: float = 1e-5, atol: float = 1e-5, passes: str = PASSES
) -> cpu.Program:
    """Compile and compare with the interpreter on the unfused module."""
    arrays = [random_array(a, i) for i, a in enumerate(avals)]
    module = module_of(avals, function)
    want = Interpreter(module)("main", arrays)
    program = compile_(module, passes)
    for i, (have, expected) in enumerate(zip(run(program, arrays), want, strict=True)):
        wide = np.complex128 if expected.dtype.kind == "c" else np.float64
        np.testing.assert_allclose(
            have.astype(wide), expected.astype(wide), rtol=rtol, atol=atol, err_msg=f"result {i} of {avals}"
        )
    return program


def side_by_side(cases: Sequence[tuple[Sequence[Aval], Callable[..., Any]]]) -> tuple[list[Aval], Callable[..., Any]]:
    """Functions as one, each of operands of its own: their kernels are those of each alone, and one compile makes
    them all."""

    def function(b: Any, *values: Any) -> list[Any]:
        rest, found = iter(values), []
        for avals, make in cases:
            made = make(b, *itertools.islice(rest, len(avals)))
            found += made if isinstance(made, (list, tuple)) else [made]
        return found

    return [a for avals, _ in cases for a in avals], function


def over(b: Any, op: str, x: Any, axis: int) -> Any:
    """A reduction along one axis, spread over it again."""
    kept = tuple(1 if a == axis else d for a, d in enumerate(x.shape))
    return b.broadcast_to(b.reshape_to(getattr(b, op)(x, axes=(axis,)), kept), x.shape)


def softmax(b: Any, x: Any, axis: int = 1) -> Any:
    e = b.exp(x - over(b, "reduce_max", x, axis))
    return e / over(b, "reduce_sum", e, axis)


def layer_norm(b: Any, x: Any, axis: int = 1) -> Any:
    n = x.shape[axis]
    centered = x - over(b, "reduce_sum", x, axis) * (1 / n)
    variance = over(b, "reduce_sum", centered * centered, axis) * (1 / n)
    return centered * b.rsqrt(variance + 1e-5)


def gelu(b: Any, x: Any) -> Any:
    return x * 0.5 * (b.erf(x * 0.7071067811865476) + 1.0)


def cross_entropy(b: Any, x: Any, t: Any) -> Any:
    shifted = x - over(b, "reduce_max", x, 1)
    total = b.log(b.reduce_sum(b.exp(shifted), axes=(1,)))
    return b.reduce_sum(total - b.reduce_sum(shifted * t, axes=(1,)), axes=(0,)) * (1 / x.shape[0])
