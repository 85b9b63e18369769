"""Programs on the simulator without the runtime, for tests of single schedules."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import smelt
from smelt.backends.gpu.program import DeviceSegment, Program
from smelt.backends.gpu.steps import Where, walk
from smelt.backends.metal import program as metal
from smelt.backends.metal.apple.order import element_bytes
from smelt.backends.metal.simulator import Library, Options
from smelt.ir import text
from smelt.ir.aval import Aval
from smelt.ir.interpreter import Interpreter
from smelt.passes import Pipeline


def graph_of(function: Callable, *arguments: Any) -> str:
    """The graph IR of a function as text; arguments by arrays or `smelt.ShapeDtype`."""
    return text.to_text(smelt.compile(function).trace(*arguments).lower().module, locations=True)


def program_of(graph: str, gpu: str = "simulator", loops: bool = True) -> Program:
    """A module (as text) compiled for Metal. `loops`: whether loops may be kernels."""
    module = text.parse(graph)
    pipeline = Pipeline.parse(metal.PIPELINE)
    (pipeline if loops else pipeline.changed("without:loops")).run(module)
    return metal.compile_module(module, gpu)


def metal_text(function: Callable, *arguments: Any, gpu: str = "apple8") -> str:
    """The Metal text of a function whose program is all kernels."""
    (segment,) = program_of(graph_of(function, *arguments), gpu).segments
    assert isinstance(segment, DeviceSegment)
    return segment.text


def run(program: Program, operands: Sequence[np.ndarray], options: Options | None = None) -> list[np.ndarray]:
    """Run on the simulator; results as NumPy arrays."""
    def fresh(nbytes: int) -> np.ndarray:
        raw = np.full(nbytes + 64, 0xFF, np.uint8)
        return raw[-raw.ctypes.data % 64 :][: max(nbytes, 1)]

    def copied(x: np.ndarray) -> np.ndarray:
        raw = fresh(x.nbytes)
        raw[: x.nbytes] = np.ascontiguousarray(x).reshape(-1).view(np.uint8)
        return raw

    arguments = [copied(x) for x in operands]
    results = [fresh(a.nbytes) for a in program.results]
    arena = fresh(program.arena_bytes)
    for segment in program.segments:
        assert isinstance(segment, DeviceSegment), "the program has host steps"
        library = Library(segment.text, options or Options())
        tables = {"argument": arguments, "result": results, "arena": [arena]}

        def number(where: Where, nbytes: int, tables: dict[str, list[np.ndarray]] = tables) -> int:
            kind, index, offset = where
            return int.from_bytes(bytes(tables[kind][index][offset : offset + nbytes]), sys.byteorder, signed=True)

        for launch, places in walk(segment.manifest, number):
            kernel = segment.manifest.kernel(launch.entry)
            buffers = {}
            for info, (kind, index, offset) in zip(kernel.buffers, places):
                raw = tables[kind][index]
                room = min(raw.nbytes - offset, max(info.elements, 1) * (element_bytes(info.type) or 1))
                buffers[info.index] = (raw.ctypes.data + offset, room)
            library.launch(launch.entry, buffers, kernel.threadgroups, kernel.threads)
    outs = []
    for i, aval in enumerate(program.results):
        source = program.aliases.get(i)
        raw = results[i]
        if isinstance(source, int):
            raw = arguments[source]
        elif source is not None:
            raw = results[source[1]]
        outs.append(raw[: aval.nbytes].view(aval.dtype.numpy).reshape(aval.shape))
    return outs


def expected(graph: str, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What the reference interpreter says."""
    module = text.parse(graph)
    Pipeline.parse("fixpoint(inline,batch,jvp,linearize,transpose)").run(module)
    return [np.asarray(x) for x in Interpreter(module)("main", list(operands))]


def sample(aval: Aval, seed: int = 0) -> np.ndarray:
    """Random elements of a type: floats around zero, small integers, truth values."""
    rng = np.random.default_rng(seed)
    dtype = aval.dtype
    if dtype.kind == "b":
        return rng.random(aval.shape) < 0.5
    if dtype.kind in "iu":
        return rng.integers(0 if dtype.kind == "u" else -50, 50, aval.shape).astype(dtype.numpy)
    x = rng.standard_normal(aval.shape)
    if dtype.kind == "c":
        x = x + 1j * rng.standard_normal(aval.shape)
    return np.asarray(x).astype(dtype.numpy)


def check(function: Callable, *arguments: Any, tolerance: float = 2e-5, options: Options | None = None) -> Program:
    """Run a function on the simulator with random operands, compare with the reference; the program."""
    return check_all(function, *arguments, tolerance=tolerance, options=[options])


def check_all(
    function: Callable, *arguments: Any, tolerance: float, options: Sequence[Options | None]
) -> Program:  # fmt: skip
    """`check`, with each of several options."""
    graph = graph_of(function, *arguments)
    program = program_of(graph)
    operands = [sample(a, seed=i) for i, a in enumerate(program.arguments)]
    wanted = expected(graph, operands)
    for each in options:
        close(run(program, operands, each), wanted, program, tolerance)
    return program


def close(results: Sequence[np.ndarray], wanted: Sequence[np.ndarray], program: Program, tolerance: float) -> None:
    for found, want, aval in zip(results, wanted, program.results):
        assert found.shape == want.shape and found.dtype == want.dtype
        half = aval.dtype.is_float and aval.dtype.size == 2
        bound = 2e-2 if half else tolerance if aval.dtype.is_inexact else 0
        wide = np.complex128 if aval.dtype.is_complex else np.float64 if aval.dtype.is_float else aval.dtype.numpy
        exact = want.astype(wide)
        largest = np.max(np.abs(exact[np.isfinite(exact)]), initial=1) if aval.dtype.is_inexact else 0
        np.testing.assert_allclose(found.astype(wide), exact, rtol=bound, atol=bound * largest)
