"""What Python drives: machine code and steps on the host in turn, and loops that contain such steps.

All of it works on addresses. The table of a function holds the addresses of its arguments and results,
and its arena its other values.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from smelt.ir import locks, profiling
from smelt.ir.aval import Aval
from smelt.ir.control import COND, WHILE
from smelt.ir.interpreter import run_op
from smelt.ir.library import Library
from smelt.ir.settings import settings

from . import interrupts, subnormals
from .description import PART, EntryStep, FunctionDescription, HostStep, LoopStep, Step
from .threads import Team

#: Where the table starts among the values of a frame; before it: the number of members, the counter's address.
TABLE = 2


class DrivenFunction:
    """A function as steps: entry points (addresses) that a team runs, and steps with ``run``.

    Args:
        keep_lock: whether its entry points are so short that Python's lock is kept.
        unforked: whether they call a library that does not survive a fork in the middle of its work.
        asks: whether one of them may have been ended by the handler of a signal: then no other runs.

    Attributes:
        steps: filled when all functions are there.
    """

    def __init__(self, function: FunctionDescription, team: Team, keep_lock: bool, unforked: bool, asks: bool = False):
        self.arguments, self.results = function.arguments, function.results
        self._copies, self._wide = function.copies, function.wide
        self.steps: list[Any] = []
        self.labels = [label_of(step) for step in function.steps]
        self.keep_lock, self.asks = keep_lock, asks
        self.unforked = unforked and not keep_lock  # with Python's lock no other thread forks meanwhile
        # Python's threads each have their gate, which who waits for them must not keep from them.
        self._launch = locks.unforked(team.launch) if self.unforked and not team.in_python else team.launch
        self._local = threading.local()

    def frame(self) -> Any:
        """This thread's argument table: values, pointers to them (and their address), and what `Team.launch` takes
        for each step of machine code.

        The arena's address stands behind those of the table: what is wide gets them as one array.
        """
        local = self._local
        if settings.flush_subnormals:
            try:
                return local.flushing
            except AttributeError:
                local.flushing = found = self._frame(True)
                return found
        try:
            return local.frame
        except AttributeError:
            local.frame = found = self._frame(False)
            return found

    def _frame(self, flushes: bool) -> Any:
        n = TABLE + 2 + self.arguments + self.results
        values = (ctypes.c_uint64 * (n + 1))()
        base = ctypes.addressof(values)
        order = [0, 1, n, n - 2] if self._wide else range(n)
        pointers = (ctypes.c_void_p * len(order))(*[base + 8 * i for i in order])
        values[1] = base + 8 * (n - 1)  # the counter
        values[n] = base + 8 * TABLE
        table = ctypes.addressof(pointers)
        kind = ctypes.PYFUNCTYPE if self.keep_lock else ctypes.CFUNCTYPE
        calls: list[tuple[Any, int, int] | None] = []
        kept = []
        for step in self.steps:
            if not isinstance(step, int):
                calls.append(None)
                continue
            address, given = step, table
            if flushes:
                kept.append(subnormals.arguments(step, table))
                address, given = subnormals.flushing(), subnormals.table_of(kept[-1])
            call = kind(None, ctypes.c_void_p)(address)
            calls.append((locks.unforked(call) if self.unforked else call, address, given))
        return values, pointers, table, calls, kept

    def execute(self, frame: Any, arena: int, count: int) -> None:
        """Run the steps on a table that has been filled."""
        values, _, table, calls, _ = frame
        at = TABLE + self.arguments + self.results
        values[at] = arena
        values[0] = count
        if profiling.active is not None:
            self._execute_timed(profiling.active, frame, arena, count)
            return
        for step, made in zip(self.steps, calls):
            if made is None:
                step.run(values, table, arena, count)
                continue
            call, address, given = made
            values[at + 1] = 0
            if count > 1:
                self._launch(call, address, given, count)
            else:
                call(given)
            if self.asks:
                interrupts.raise_pending()

    def _execute_timed(self, profiler: profiling.Profiler, frame: Any, arena: int, count: int) -> None:
        """`execute`, with an event of each step."""
        values, _, table, calls, _ = frame
        at = TABLE + self.arguments + self.results
        for step, made, (name, line) in zip(self.steps, calls, self.labels):
            values[at + 1] = 0
            if isinstance(step, HostLoop):  # its functions have events
                step.run(values, table, arena, count)
            elif isinstance(step, HostOp):
                profiler.timed(name, "host", line, step.run, values, table, arena, count)
            elif made is None:
                profiler.timed(name, "kernel", line, step.run, values, table, arena, count)
            else:
                call, address, given = made
                run = (self._launch, call, address, given, count) if count > 1 else (call, given)
                if name == PART:
                    run[0](*run[1:])
                else:
                    profiler.timed(name, "kernel", line, *run)
            if self.asks:
                interrupts.raise_pending()

    def call(self, arguments: Sequence[int], results: Sequence[int], arena: int, count: int) -> None:
        """Run on addresses. Results that are other values' memory are copied."""
        frame = self.frame()
        values = frame[0]
        for i, address in enumerate((*arguments, *results), TABLE):
            values[i] = address
        self.execute(frame, arena, count)
        for i, source, nbytes in self._copies:
            copy(arguments[source] if isinstance(source, int) else results[source[1]], results[i], nbytes)


class AloneStep:
    """Machine code that one thread runs, whatever the team."""

    def __init__(self, address: int, unforked: bool):
        self._address, self._unforked = address, unforked
        self._call = self._callable(address)

    def _callable(self, address: int) -> Any:
        call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)
        return locks.unforked(call) if self._unforked else call

    def run(self, values: Any, table: int, arena: int, count: int) -> None:
        if settings.flush_subnormals:
            given = subnormals.arguments(self._address, table)
            self._callable(subnormals.flushing())(subnormals.table_of(given))
        else:
            self._call(table)


class HostOp:
    """An op that runs on the host: by a library, or by its `reference` rule."""

    def __init__(self, step: HostStep):
        self.op, self.attrs, self.line = step.op, step.attrs, step.line
        self.operands, self.results = step.operands, step.results
        self._on_addresses: Callable[[Sequence[int], Sequence[int]], bool] | None = None
        self._is_asked = False  #: whether its op has said how it works on addresses

    def run(self, values: Any, table: int, arena: int, count: int) -> None:
        if not self._is_asked:
            if isinstance(self.op, Library):
                self._on_addresses = self.op.on_addresses(*[aval for _, aval in self.operands], **self.attrs)
            self._is_asked = True
        if self._on_addresses is not None and not settings.check:
            places = [[address(slot, values, arena) for slot, _ in side] for side in (self.operands, self.results)]
            if self._on_addresses(*places):
                return
        operands = [array_at(address(slot, values, arena), aval) for slot, aval in self.operands]
        for x in operands:
            x.flags.writeable = False
        found = run_op(self.op, operands, self.attrs, self.line)
        for (slot, aval), value in zip(self.results, found):
            np.copyto(array_at(address(slot, values, arena), aval), value, casting="unsafe")


class HostLoop:
    """A loop or branch around functions with steps on the host. See `native` for where its values lie."""

    def __init__(self, step: LoopStep, functions: dict[str, DrivenFunction]):
        self.op, self.attrs, self.space, self.functions = step.op, step.attrs, step, functions
        self.scratch = step.scratch
        self.operands = [slot for slot, _ in step.operands]
        self.results = [slot for slot, _ in step.results]
        self.operand_avals = [aval for _, aval in step.operands]
        self.result_avals = [aval for _, aval in step.results]

    def run(self, values: Any, table: int, arena: int, count: int) -> None:
        operands = [address(slot, values, arena) for slot in self.operands]
        results = [address(slot, values, arena) for slot in self.results]
        base = arena + self.scratch
        if self.op is COND:
            self._cond(operands, results, base, count)
        elif self.op is WHILE:
            self._while(operands, results, base, count)
        else:
            self._scan(operands, results, base, count)

    def _cond(self, operands: list[int], results: list[int], base: int, count: int) -> None:
        branches = self.attrs["branches"]
        at = int(array_at(operands[0], self.operand_avals[0]).item())
        chosen = branches[at if 0 <= at < len(branches) else -1]
        self.functions[chosen].call(operands[1:], results, base + self.space.arena, count)

    def _targets(self, now: list[int], results: list[int], base: int) -> list[int]:
        """Where the carries go that are at `now`: to the result, or to the scratch if they are there."""
        return [
            at if offset is None else base + offset if at == result else result
            for at, result, offset in zip(now, results, self.space.carries)
        ]

    def _finish(self, now: list[int], results: list[int]) -> None:
        for at, result, aval in zip(now, results, self.result_avals):
            copy(at, result, aval.nbytes)

    def _while(self, operands: list[int], results: list[int], base: int, count: int) -> None:
        n, arena, flag = self.attrs["constants"], base + self.space.arena, base + self.space.flag
        constants, now = operands[:n], operands[n:]
        condition, body = self.functions[self.attrs["cond"]], self.functions[self.attrs["body"]]
        while True:
            condition.call([*constants, *now], [flag], arena, count)
            if not ctypes.c_uint8.from_address(flag).value:
                break
            then = self._targets(now, results, base)
            body.call([*constants, *now], then, arena, count)
            now = then
        self._finish(now, results)

    def _scan(self, operands: list[int], results: list[int], base: int, count: int) -> None:
        attrs, space = self.attrs, self.space
        n, m, length = attrs["constants"], attrs["carries"], attrs["length"]
        constants, now, xs = operands[:n], operands[n : n + m], operands[n + m :]
        body = self.functions[attrs["body"]]
        x_sizes = [a.nbytes // max(length, 1) for a in self.operand_avals[n + m :]]
        y_sizes = [a.nbytes // max(length, 1) for a in self.result_avals[m:]]
        for i in reversed(range(length)) if attrs["reverse"] else range(length):
            elements = [x + i * size for x, size in zip(xs, x_sizes)]
            slots = [y + i * size for y, size in zip(results[m:], y_sizes)]
            into = [y if t is None else base + t for y, t in zip(slots, space.elements)]
            then = self._targets(now, results, base)
            body.call([*constants, *now, *elements], [*then, *into], base + space.arena, count)
            for source, target, size in zip(into, slots, y_sizes):
                copy(source, target, size)
            now = then
        self._finish(now, results)


def label_of(step: Step) -> tuple[str, str]:
    """What a profile calls a step, and the user's line of it."""
    if isinstance(step, EntryStep):
        return step.label or "kernels of a program", step.line
    return step.op.name, step.line.removeprefix("; at ") if isinstance(step, HostStep) else ""


def address(slot: tuple[str, int], values: Any, arena: int) -> int:
    """Where a value lies while the function runs."""
    kind, at = slot
    return arena + at if kind == "arena" else values[TABLE + at]


def copy(source: int, target: int, nbytes: int) -> None:
    """Copy memory by address."""
    if source != target and nbytes:
        ctypes.memmove(target, source, nbytes)


def array_at(address: int, aval: Aval) -> np.ndarray:
    """The array of `aval` at an address, which must stay valid."""
    if not aval.nbytes:
        return np.empty(aval.shape, aval.dtype.numpy)
    raw = (ctypes.c_char * aval.nbytes).from_address(address)
    return np.frombuffer(memoryview(raw), aval.dtype.numpy).reshape(aval.shape)
