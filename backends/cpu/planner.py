"""What the functions of a program consist of: kernels, steps on the host, loops and branches over functions."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

from smelt.backends import bodies
from smelt.backends.bodies import carries_in_place
from smelt.ir import mlir
from smelt.ir.aval import Aval
from smelt.ir.builder import Function, OpView, Value, new_function, read_function
from smelt.ir.control import COND, SCAN, WHILE, callees, layout
from smelt.ir.kinds import Contraction
from smelt.passes.kernels.analysis import kept_axes, split_chunks
from smelt.passes.kernels.contraction_places import is_contraction
from smelt.passes.kernels.cost import least_bytes, trips
from smelt.passes.kernels.plan_buffers import ALIGNMENT, arena_bytes, is_view, scratch_of
from smelt.passes.rewrite import is_planned

from . import products, traffic
from .build import build
from .contract.build import build_contract
from .description import KernelCost
from .kernel import KernelModule
from .schedules import ScheduledKernel

#: Loops and branches run on one thread where a kernel in them does less work than this on average, in bytes
#: moved: to divide it costs more than it saves.
SOLO_WORK = 256 * 1024
#: Kernels that do less work than this, in bytes moved, run on one thread: to wait for the others takes as long.
SOLO_KERNEL = 16 * 1024
#: Loops that move more bytes, or launch more kernels, than this are long.
LONG_WORK, LONG_LAUNCHES = 4e9, 2e7


@dataclass
class PlannedOp(bodies.PlannedOp):
    """One op of a function and how it runs.

    Attributes:
        kind: "kernel", "host" or "control".
        work: in bytes moved, all runs of a loop together.
        launches: how many kernels that is.
        hosted: whether it needs steps on the host.
        long: whether it is a loop that runs for an unknown or a long time.
        parallel_work: the work that is worth dividing among threads.
    """

    work: float = 0.0
    launches: float = 1.0
    hosted: bool = False
    long: bool = False
    parallel_work: float = field(init=False)

    def __post_init__(self) -> None:
        self.parallel_work = self._parallel_work()

    @property
    def solo(self) -> bool:
        """Whether one thread alone should run this kernel, loop or branch."""
        if self.kind == "kernel":
            return self.work < SOLO_KERNEL
        return self.kind == "control" and not self.hosted and self.work < SOLO_WORK * max(self.launches, 1.0)

    def _parallel_work(self) -> float:
        if self.kind == "control" and self.hosted:
            return trips(self.op) * sum(p.parallel_work for body in self.bodies for p in body.planned_ops)
        return 0.0 if self.kind == "host" or self.solo else self.work


Body = bodies.Body[PlannedOp]


def _work(op: OpView) -> float:
    """What an op costs, in additions."""
    if isinstance(op.op, Contraction):
        return op.op.work(*(v.aval for v in op.operands), **op.attrs)
    return op.op.flops * op.results[0].aval.size


def operands_of(planned: PlannedOp, step: ScheduledKernel) -> list[tuple[Value | int, Aval]]:
    """The operands of a launch: values of the function that the op is in, or offsets in its arena."""
    op, base = planned.op, scratch_of(planned.op)
    outer = {v: v for v in (*op.operands, *op.results)}
    if step.body is not None:
        outer = dict(zip(step.body.arguments, op.operands)) | dict(zip(step.body.returns, op.results))
    return [
        (outer[x], outer[x].aval) if isinstance(x, Value) else (base + x[0], x[1])
        for x in step.operands
    ]  # fmt: skip


class FunctionPlanner:
    """Reads functions and builds their kernels, each once.

    Attributes:
        kernels: what was built, in the order of the program.
        has_long: whether some loop runs for an unknown or a long time.
        arena_bytes: the memory of ``@main``: what was planned, and behind it that of threads.
    """

    def __init__(self, module: KernelModule, found: dict[str, Any]):
        self.module, self.found = module, found
        self.kernels: list[KernelCost] = []
        self.has_complex = self.has_long = False
        planned = is_planned(found["main"])  # else an op will say that it was not
        self.arena_bytes = arena_bytes(found["main"]) if planned else 0
        self._end = -(-self.arena_bytes // ALIGNMENT) * ALIGNMENT
        self._bodies: dict[str, Body] = {}
        self._built: dict[tuple[str, bool], Any] = {}  #: by name, and whether in ``@main``
        self._products: dict[Any, ScheduledKernel] = {}
        self._single: Any = None  #: a module of functions that consist of one op

    def body(self, name: str) -> Body:
        """The planned ops of a function."""
        if name not in self._bodies:
            function = read_function(self.found[name])
            planned_ops = [self._plan_op(op, function) for op in function.ops if not is_view(op)]
            self._bodies[name] = Body(function, planned_ops)
        return self._bodies[name]

    def merge_alike(self) -> None:
        """Let small kernels of what was planned that differ in numbers alone be one."""
        kernels = [p for body in self._bodies.values() for p in body.planned_ops if p.kind == "kernel"]
        large = {step.function for p in kernels if p.work >= SOLO_WORK for step in p.steps}
        merged = self.module.merged({step.function for p in kernels for step in p.steps} - large)
        for planned in kernels:
            found = [(step, merged.get(step.function)) for step in planned.steps]
            planned.steps = [
                step if other is None else replace(step, function=other.function, numbers=other.numbers)
                for step, other in found
            ]

    def _plan_op(self, op: OpView, function: Function) -> PlannedOp:
        self.has_complex |= any(v.dtype.kind == "c" for v in (*op.operands, *op.results))
        if op.op.kind == "control":
            return self._control(op)
        least = least_bytes((*op.operands, *op.results))
        if op.op.kind == "call":
            return self._fusion(op, least, function.name == "main")
        if products.can_build(op):
            step = self._product(op, function)
            self.kernels.append(KernelCost(op.name, "contract", least, least))
            sizes = [float(v.aval.size) for v in (*op.operands, *op.results)]
            # A product of matrices does about m·n·k steps.
            return PlannedOp(op, "kernel", [step], work=least + math.sqrt(math.prod(sizes)))
        if is_contraction(op):
            body = self._alone(op)
            step = build_contract(self.module, body.name, body)
            step = replace(step, function=self.module.shared(step.function))
            self.kernels.append(KernelCost(op.name, "contract", least, least))
            return PlannedOp(op, "kernel", [step], work=least + _work(op) / 4)
        self.kernels.append(KernelCost(op.name, "host", least, least))
        return PlannedOp(op, "host", hosted=True)

    def _product(self, op: OpView, function: Function) -> ScheduledKernel:
        """A matrix product by the BLAS; equal ones are built once, but where a report is to name the line of each."""
        values = [*op.operands, *op.results]
        key = op.name, *(v.aval for v in values), *op.attrs.items()
        if self.module.checks is not None or key not in self._products:
            name = f"{op.name}_{len(self.kernels)}"
            self._products[key] = products.build(self.module, name, op, function)
        return replace(self._products[key], operands=values)

    def _alone(self, op: OpView) -> Function:
        """An op as a function of its own."""
        operands = list(dict.fromkeys(op.operands))
        if self._single is None:
            self._single = mlir.ir.Module.create(loc=op.location)
        operation, arguments, b = new_function(
            self._single, f"{op.name}_{len(self.kernels)}", [v.aval for v in operands],
            [v.aval for v in op.results], op.location,
        )  # fmt: skip
        env = dict(zip(operands, arguments))
        b.return_(b.clone(op, [env[v] for v in op.operands]))
        return read_function(operation)

    def _fusion(self, op: OpView, least: int, in_main: bool) -> PlannedOp:
        callee = op.attrs["callee"]
        key = callee, in_main
        if key not in self._built:
            body = read_function(self.found[callee])
            schedule, steps = build(self.module, body, self._end if in_main else None)
            if schedule == "row":
                own = [x[0] + x[1].nbytes for step in steps for x in step.operands if not isinstance(x, Value)]
                self.arena_bytes = max(self.arena_bytes, *own, 0)
            steps = [replace(step, function=self.module.shared(step.function)) for step in steps]
            moved = traffic.moved_bytes(body, schedule, kept_axes(body), split_chunks(body))
            self.has_complex |= any(r.dtype.kind == "c" for inner in body.ops for r in inner.results)
            self._built[key] = schedule, steps, moved, moved + sum(map(_work, body.ops)) / 4
        schedule, steps, moved, work = self._built[key]
        self.kernels.append(KernelCost(callee, schedule, moved, least))
        return PlannedOp(op, "kernel", steps, work=work)

    def _control(self, op: OpView) -> PlannedOp:
        found = tuple(self.body(name) for name in callees(op))
        for body in found:
            body.places += 1
        works = [sum(p.work for p in body.planned_ops) for body in found]
        launches = [sum(p.launches for p in body.planned_ops) for body in found]
        if op.op is not COND:  # what stays in one buffer is not copied
            carries = layout(op.op, op.attrs, len(op.operands)).carries
            for i in carries_in_place(found[-1], self.found, carries.start, len(carries)):
                works[-1] = max(0.0, works[-1] - 2 * op.results[i].aval.nbytes)
        combine = sum if op.op is WHILE else max
        hosted = any(p.hosted for body in found for p in body.planned_ops)
        n = trips(op)
        planned = PlannedOp(op, "control", [], found, n * combine(works), n * combine(launches), hosted)
        much = planned.work >= LONG_WORK or planned.launches >= LONG_LAUNCHES
        planned.long = op.op is WHILE or (op.op is SCAN and much)
        self.has_long |= planned.long
        return planned
