"""Graphs through the kernels of a device: several in one program, run in one of several ways."""

from __future__ import annotations

import contextlib
import functools
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any
from unittest import mock

import numpy as np

import smelt
from smelt.backends import buffer
from smelt.backends.cpu import (
    extremum_blocks,
    narrow_lines,
    objects,
    parts,
    planner,
    program,
    spread_rows,
    streaming,
    threads,
)
from smelt.ir import mlir
from smelt.ir.builder import new_function
from smelt.ir.dialect import context
from smelt.ir.settings import override
from smelt.lazy.arrays import emit
from smelt.lazy.evaluate import executables
from smelt.passes.kernels import groups as fusion_groups
from smelt.runtime import Buffer, compile_module
from smelt.runtime.device import device_named
from smelt.runtime.disk import disk

from ..devices import chosen_device, is_chosen
from .alike import graph_alike
from .drawing import graph
from .graphs import Graph


@dataclass(frozen=True)
class Way:
    """How programs are compiled and run.

    Attributes:
        members: threads that share each kernel, however small; 0: as the program's size says.
        alone: members run one after the other, and each kernel is a launch of its own.
        streamed: results are written past the caches, however small.
        chunked: reductions to few rows are done in chunks, however small.
        beside: rows and steps that lie beside each other run together, however few; positions of extrema are found
            by blocks, however short.
        apart: LLVM compiles as many kernels as possible in modules of their own.
        checked: each access is checked against its array; indices have to be in range.
        kept: programs come from disk, where those that were compiled before were put.
        by: "module" of all graphs; "lazy" arrays, evaluated together; "vmap" over two rows of other elements.
    """

    device: str = "cpu"
    members: int = 0
    alone: bool = False
    streamed: bool = False
    chunked: bool = False
    beside: bool = False
    apart: bool = False
    checked: bool = False
    kept: bool = False
    by: str = "module"

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            ways = {"device": self.device, "num_threads": self.members, "check": self.checked, "tier": "program"}
            stack.enter_context(override(**ways))
            if self.members:
                stack.enter_context(mock.patch.object(program, "PARALLEL_WORK", 0))
                stack.enter_context(mock.patch.object(planner, "SOLO_KERNEL", 0))
            if self.alone:
                stack.enter_context(mock.patch.object(threads, "team", python_threads))
            if self.streamed:  # streamed buffers come from the pool, which aligns them
                stack.enter_context(mock.patch.object(streaming, "STREAM_BYTES", 1))
                stack.enter_context(mock.patch.object(buffer, "SMALL", 0))
            if self.chunked:
                stack.enter_context(mock.patch.object(fusion_groups, "SMALL", 0))
            if self.beside:
                stack.enter_context(mock.patch.object(spread_rows, "FEWEST", 1))
                stack.enter_context(mock.patch.object(narrow_lines, "LONG", 0))
                stack.enter_context(mock.patch.object(extremum_blocks, "BLOCK_BYTES", 16))
                stack.enter_context(mock.patch.object(extremum_blocks, "FEWEST_STEPS", 1))
            if self.apart:
                stack.enter_context(mock.patch.object(parts, "PART", 1))
            yield


    def __str__(self) -> str:
        """What is special about it.

        >>> str(Way(members=2, checked=True))
        'cpu, members=2, checked=True'
        """
        special = {k: v for k, v in asdict(self).items() if v not in (self.device, "module", 0)}
        return ", ".join([self.device, *(f"{k}={v}" for k, v in special.items())])

    def graphs(self, seeds: Iterable[int]) -> list[Graph]:
        """Graphs that can be run in this way; every fourth is small and full of numbers and parts that meet."""
        return [graph_alike(s, self.checked) if s % 4 == 3 else graph(s, inside=self.checked) for s in seeds]


@functools.cache
def python_threads() -> threads.PythonThreads:
    return threads.PythonThreads()


#: Ways through kernels, one for each batch in turn.
WAYS = (
    Way(), Way(members=3, checked=True), Way(streamed=True, checked=True), Way(chunked=True, members=2),
    Way(members=4, streamed=True, alone=True), Way(checked=True), Way(chunked=True, streamed=True, checked=True),
    Way(by="lazy", checked=True), Way(by="vmap", members=2, checked=True), Way(device="metal:sim"),
    Way(kept=True), Way(by="vmap", kept=True, checked=True), Way(by="lazy", kept=True),
    Way(beside=True, members=3, checked=True), Way(apart=True, members=2), Way(apart=True, kept=True),
)  # fmt: skip
if is_chosen():
    WAYS = tuple(Way(device=chosen_device().name, by=by) for by in ("module", "lazy", "vmap"))


def module_of(graphs: Sequence[Graph]) -> Any:
    """A module whose `@main` computes all of them: the arguments and results of one after those of another."""
    with mlir.lock:
        module = mlir.ir.Module.create(mlir.ir.Location.unknown(context()))
        avals = [a for g in graphs for a in g.arguments]
        results = [g.steps[i].aval for g in graphs for i in g.returns]
        _, arguments, b = new_function(module, "main", avals, results, public=True)
        rest = iter(arguments)
        outs = []
        for g in graphs:
            outs += g.emit(b, [next(rest) for _ in g.arguments])
        b.return_(outs)
    return module


def results_of(graphs: Sequence[Graph], way: Way, kernels: list | None = None) -> list[list[np.ndarray]]:
    """The results of each graph; `kernels` receives what was launched."""
    if way.kept:
        with tempfile.TemporaryDirectory() as folder, override(cache=True, cache_dir=folder):
            fresh = replace(way, kept=False)
            executables.clear()
            results_of(graphs, fresh)
            executables.clear()
            before = disk.hits, disk.writes
            found = results_of(graphs, fresh, kernels)
            if objects.supported():
                assert disk.hits > before[0] and disk.writes == before[1], "the programs were not kept"
            return found
    with way.taken():
        if way.by == "lazy":
            return _by_lazy_arrays(graphs)
        if way.by == "vmap":
            return [_by_vmap(g) for g in graphs]
        executable = compile_module(module_of(graphs), device_named(way.device))
        if kernels is not None:
            kernels += executable.kernels
        inputs = [Buffer.of(x, a) for g in graphs for x, a in zip(g.inputs, g.arguments)]
        found = iter([b.array for b in executable.run(inputs)])
        return [[np.array(next(found)) for _ in g.returns] for g in graphs]


def _function_of(graph: Graph) -> Callable[..., list]:
    def function(*arguments: Any) -> list:
        values = graph.run(arguments, emit)
        return [values[i] for i in graph.returns]

    return function


def _by_lazy_arrays(graphs: Sequence[Graph]) -> list[list[np.ndarray]]:
    with override(small_work=0):
        found = []
        for g in graphs:
            arrays = [smelt.array(x, dtype=a.dtype) for x, a in zip(g.inputs, g.arguments)]
            found.append(_function_of(g)(*arrays))
        smelt.eval(found)
        return [[np.array(x) for x in xs] for xs in found]


def _by_vmap(graph: Graph) -> list[np.ndarray]:
    """The results of the second of two rows; the first has the elements backwards."""
    if not graph.inputs:
        return _by_lazy_arrays([graph])[0]
    rows = [np.stack([x.reshape(-1)[::-1].reshape(x.shape), x]) for x in graph.inputs]
    arrays = [smelt.array(x, dtype=a.dtype) for x, a in zip(rows, graph.arguments)]
    return [np.array(x)[1] for x in smelt.compile(smelt.vmap(_function_of(graph)))(*arrays)]


def problems(graphs: Sequence[Graph], way: Way) -> list[str]:
    """What is wrong with the results of these graphs; exceptions too."""
    try:
        found = results_of(graphs, way)
    except Exception as error:  # the test is that there is none
        if len(graphs) == 1:
            return [f"{type(error).__name__}: {error}\nway: {way}\n{graphs[0]}"]
        return [p for g in graphs for p in problems([g], way)] or [
            f"{type(error).__name__}: {error}\n{way}; only together: seeds {[g.seed for g in graphs]}"
        ]
    told = [(g, g.differences(results)) for g, results in zip(graphs, found)]
    return [f"{text}\nway: {way}" for _, text in told if text]
