"""Programs of recorded graphs: from disk, from a worker process, or compiled in place."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from smelt.ir import locks, profiling
from smelt.ir.errors import file_line
from smelt.runtime import Device, Executable, compile_module, explain
from smelt.runtime.compile import compile_anew, looks_on_disk

from ..build import build_module
from ..graph import RecordedNode, Ref, callees

if TYPE_CHECKING:
    from smelt.runtime.background import Pending
    from smelt.runtime.kept import Recipe

#: What makes a module of the text of a graph, in a worker process.
READER = "smelt.lazy.written:module_of"


def program_of(
    inputs: Sequence[Ref],
    body: Sequence[RecordedNode],
    outputs: Sequence[Ref],
    device: Device,
    names: Sequence[str | None] = (),
    pipeline: str | None = None,
    name: str = "",
) -> Executable:
    """The program of a graph, from disk if it is there: then neither bindings nor passes are loaded.

    Args:
        names: of the inputs, as far as known.
        pipeline: passes instead of the device's own, as text.
        name: of the function that it is, for `explain`; empty for a lazy graph.

    Raises what `compile_module` raises.
    """
    if not looks_on_disk():
        return compile_module(build_module(inputs, body, outputs, names), device, pipeline, name=name)
    start = time.perf_counter()
    recipe = _recipe(inputs, body, outputs, device, names, pipeline)
    found = _found(recipe, inputs, body, device, name, start)
    if found is not None:
        return found
    module = build_module(inputs, body, outputs, names)
    program = compile_anew(module, device, pipeline, subject=_subject(inputs, body, name))
    if recipe is not None:
        recipe.keep(program)
    return program


def kept_program(
    inputs: Sequence[Ref], body: Sequence[RecordedNode], outputs: Sequence[Ref], device: Device, name: str = ""
) -> Executable | None:
    """The program of a graph if it is on disk, else None: what a look costs is less than a millisecond.

    Args:
        name: as `program_of` has it.
    """
    start = time.perf_counter()
    looks = looks_on_disk() and not locks.loaded("smelt.runtime.kept").disk.is_empty()
    recipe = _recipe(inputs, body, outputs, device, (), None) if looks else None
    return _found(recipe, inputs, body, device, name, start)


def program_in_background(
    inputs: Sequence[Ref], body: Sequence[RecordedNode], outputs: Sequence[Ref], device: Device, name: str = "",
    beside_device: bool = False,
) -> Pending | None:  # fmt: skip
    """Have the program of a graph compiled by another process; see `smelt.runtime.background`.

    Args:
        name: as `program_of` has it.
        beside_device: whether it may use a device that a compile asks: not for graphs that run on the host.

    Returns:
        What says when it is ready (at once, where it is on disk); None: it has to be compiled in place.

    Does not wait, and raises nothing::

        pending = program_in_background(inputs, body, outputs, device)
        ...
        if pending is None or (pending.ready() and pending.program() is None):
            program = program_of(inputs, body, outputs, device)   # in place; its errors are raised here
        elif pending.ready():
            program = pending.program()
    """
    if profiling.active is not None:  # what another process compiles has no events
        return None
    recipe = _recipe(inputs, body, outputs, device, (), None)
    pending = None if recipe is None else locks.loaded("smelt.runtime.background").submit(recipe, beside_device)
    if pending is not None:
        pending.subject = _subject(inputs, body, name)
    return pending


def _subject(inputs: Sequence[Ref], body: Sequence[RecordedNode], name: str = "") -> explain.Subject:
    """What `explain` tells of a graph."""
    functions: dict[int, tuple[Sequence[Ref], Sequence[RecordedNode]]] = {0: (inputs, body)}
    waiting = list(body)
    while waiting:
        for f in callees(waiting.pop()):
            if id(f) not in functions:
                functions[id(f)] = (f.parameters, f.body)
                waiting += f.body
    ops = sum(len(steps) for _, steps in functions.values())
    line = next((file_line(*n.where) for n in reversed(body) if n.where), "")
    if ops > explain.MOST_OPS:
        return explain.Subject(name or explain.LAZY, ops, line)
    found: list[explain.Step] = []
    for parameters, steps in functions.values():
        rows = [(n.op.name, n.inputs, n.attrs, n.avals) for n in steps]
        results = [[(n.node, i) for i in range(len(n.avals))] for n in steps]
        found += explain.steps_of(parameters, rows, results)
    arguments = tuple(str(n.avals[i]) for n, i in inputs)
    return explain.Subject(name or explain.LAZY, ops, line, arguments, tuple(found))


def _found(
    recipe: Recipe | None, inputs: Sequence[Ref], body: Sequence[RecordedNode], device: Device, name: str, start: float
) -> Executable | None:
    """The program of a recipe if it is on disk, which `explain` is told; it was looked for since `start`."""
    found = None if recipe is None else recipe.find()
    if found is not None:
        found.seconds = time.perf_counter() - start
        explain.note(_subject(inputs, body, name), found, device)
    return found


def _recipe(
    inputs: Sequence[Ref],
    body: Sequence[RecordedNode],
    outputs: Sequence[Ref],
    device: Device,
    names: Sequence[str | None],
    pipeline: str | None,
) -> Recipe | None:
    """What a program is found by; None where it cannot be kept."""
    kept = locks.loaded("smelt.runtime.kept")
    written = None
    if kept.can_keep(device):
        written = locks.loaded("smelt.lazy.written").write_graph(inputs, body, outputs, names)
    return None if written is None else kept.Recipe(written.text, device, written.located, pipeline, READER)
