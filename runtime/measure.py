"""How long the steps of a program take, each run by itself; and what the machine could do at best."""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from smelt.backends.buffer import Buffer
from smelt.backends.device import Device
from smelt.backends.executable import Executable
from smelt.ir import dtypes, mlir, text
from smelt.ir.aval import Aval
from smelt.ir.builder import functions, new_function, read_function
from smelt.ir.errors import IRError
from smelt.ir.ops.matrices import matmul
from smelt.passes.call_graph import reached
from smelt.passes.kernels.cost import ProgramCost, StepCost, least_bytes, operations, program_cost
from smelt.passes.rewrite import is_fusion

from .compile import compile_module

#: Seconds that one step is run for, and how often at least.
SECONDS, RUNS = 0.05, 5
#: Bytes of the copies, from those that stay in a cache on, and extents of the products, by which a machine is rated.
COPIES, PRODUCTS = (1 << 18, 1 << 22, 1 << 26), (256, 768)


def cost_of(program: Executable, device: Device | None = None) -> ProgramCost:
    """What a program costs; with a device, what its kernels take there.

    Raises:
        IRError: its pipeline did not plan it, or its texts were not kept.
    """
    planned = program.passed.located("plan-buffers") if program.passed else None
    if planned is None:
        reason = (
            "its pipeline does not end with fuse and plan-buffers, as that of the device cpu does"
            if program.passed
            else "its stages were not kept: compile it with keep_texts=True"
        )
        raise IRError(f"the program has no kernels whose costs could be told: {reason}")
    cost = program_cost(text.parse(planned))
    cost = cost.with_moved({k.name: k.bytes_moved for k in program.kernels if hasattr(k, "bytes_moved")})
    return cost if device is None else measured(cost, planned, device)


def measured(cost: ProgramCost, planned: str, device: Device) -> ProgramCost:
    """The cost of a program with what its steps take on a device.

    A step runs by itself on numbers made up: those that its op is defined for, where it says so, else floats between
    ½ and 1, zeros for all else. Its operands are in the cache
    if they fit there. What it takes at the least is by the machine's own rates: bytes a second of the fastest copy of
    at least as many bytes, and operations a second of the fastest product.

    Args:
        cost: of `planned`.
        planned: the module after ``plan-buffers``, as text with locations.
        device: where to run.
    """
    copies, rate = rates(device)
    times: dict[tuple[str, int, float], float | None] = {}

    def of(step: StepCost) -> StepCost:
        key = step.name, step.least_bytes, step.operations
        if key not in times:
            times[key] = _time(step, planned, device)
        products = step.operations if step.kind in ("contract", "library") else 0.0
        moved = step.moved_or_least
        bandwidth = max([speed for size, speed in copies.items() if size >= moved] or [copies[max(copies)]])
        return replace(step, measured=times[key], predicted=max(moved / bandwidth, products / rate))

    return replace(cost, steps=tuple(map(of, cost.steps)))


@functools.cache
def rates(device: Device) -> tuple[dict[int, float], float]:
    """Bytes a second of copies, read and written together, by their bytes; and additions a second of a product of
    float32."""
    copies = {}
    for size in COPIES:
        row = Aval((size // 8,), dtypes.float32)
        copies[size] = 2 * row.nbytes / _fastest(row, lambda b, x: -x, device)
    products = []
    for extent in PRODUCTS:
        square = Aval((extent, extent), dtypes.float32)
        products.append(2 * extent**3 / _fastest(square, lambda b, x: matmul(b, x, x), device))
    return copies, max(products)


def _fastest(aval: Aval, compute: Callable[..., Any], device: Device) -> float:
    """Seconds of the fastest run of a program of one op on one array."""
    with mlir.lock:
        module = text.parse("module {}")
        _, (x,), b = new_function(module, "main", [aval], [aval], public=True)
        b.return_([compute(b, x)])
    program = compile_module(module, device)
    return min(_times(functools.partial(program.run, _made_up([aval]))))


def _time(step: StepCost, planned: str, device: Device) -> float | None:
    """Seconds of a run of a step; None where it cannot run by itself."""
    module = text.parse(planned)
    with mlir.lock:
        found = functions(module)
        arguments, results, sample = _alone(module, found, step)
    if arguments is None:
        return None
    program = compile_module(module, device, "plan-buffers")
    buffers = _made_up(arguments) if sample is None else list(map(Buffer.of, sample(), arguments))
    return statistics.median(_times(lambda: program.run(buffers))) if results else None


def _alone(
    module: Any, found: dict[str, Any], step: StepCost
) -> tuple[list[Aval] | None, list[Aval], Callable[[], list[np.ndarray]] | None]:
    """Make `step` all that a module does; its arguments, its results, and arguments for which it is defined, where its
    op has a rule of its own for these."""
    main, sample = found["main"], None
    if step.name in found:
        body = read_function(found[step.name])
        arguments, results = [v.aval for v in body.arguments], [v.aval for v in body.returns]
        make = lambda b, values: b.call(step.name, values, results)  # noqa: E731
    else:
        read = (read_function(f) for f in found.values())
        ops = [op for f in read if not is_fusion(f.mlir) for op in f.ops if op.name == step.name]
        cost = step.least_bytes, step.operations
        op = next((o for o in ops if (least_bytes((*o.operands, *o.results)), operations(o)) == cost), None)
        if op is None:
            return None, [], None
        operands = list(dict.fromkeys(op.operands))
        arguments, results = [v.aval for v in operands], [v.aval for v in op.results]
        of = {v: i for i, v in enumerate(operands)}
        chosen = op
        own = getattr(op.op, "sample", None)
        if own is not None:
            each = functools.partial(own, np.random.default_rng(0), *[v.aval for v in op.operands], **op.attrs)
            sample = lambda: list(dict(zip(chosen.operands, each())).values())  # noqa: E731
        make = lambda b, values: b.emit(chosen.op, [values[of[v]] for v in chosen.operands], chosen.attrs)  # noqa: E731
    operation, values, b = new_function(module, "main.alone", arguments, results, main.location, public=True)
    b.return_(list(make(b, values)))
    needed = reached(read_function(operation).ops, found)
    for name, other in found.items():
        if name not in needed:
            other.operation.erase()
    operation.attributes["sym_name"] = mlir.ir.StringAttr.get("main", module.context)
    return arguments, results, sample


def _made_up(avals: Sequence[Aval]) -> list[Buffer]:
    """Buffers of these types: floats between ½ and 1, zeros for all else."""
    rng = np.random.default_rng(0)
    found = []
    for aval in avals:
        floats = aval.dtype.is_float
        array = rng.uniform(0.5, 1.0, aval.shape) if floats else np.zeros(aval.shape)
        found.append(Buffer.of(np.asarray(array.astype(aval.dtype.numpy)), aval))
    return found


def _times(run: Callable[[], Any]) -> list[float]:
    """Seconds of several runs, after one that is not counted."""
    run()
    times: list[float] = []
    start = time.perf_counter()
    while len(times) < RUNS or (time.perf_counter() - start < SECONDS and len(times) < 1000):
        before = time.perf_counter()
        run()
        times.append(time.perf_counter() - before)
    return times
