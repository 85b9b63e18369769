"""Which results of a program may lie where an argument lies that dies with the call.

A result may overwrite an argument that nothing reads when it is written: every op that reads the argument runs before
the one that makes the result, or is that op: a kernel that reads each element of the argument once, just before it
writes the same element of the result (see `in_place`), or a scatter into the argument, which then need not be copied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from smelt.backends.bodies import Body
from smelt.backends.plan import Plan
from smelt.ir.builder import Value
from smelt.ir.kinds import Elementwise
from smelt.passes.dependence import cone, split
from smelt.passes.kernels.plan_buffers import origin

if TYPE_CHECKING:
    from .planner import PlannedOp

#: Arguments, for each result, that have been read before it is written.
FREE = 4
#: Smaller arrays do not come from the pool.
SMALLEST = 64 * 1024


def in_place(plan: Plan) -> list[tuple[int, int]]:
    """Arguments and results of a map, by number, that may share memory.

    The result must be computed from the element that it overwrites, which then is read before it is written, whatever
    order LLVM gives the rest. Floats of one part only, for of others it may find out that they do not matter.
    """
    body = plan.body
    found = []
    for j, result in enumerate(body.returns):
        needed = cone([result])
        for i, argument in enumerate(body.arguments):
            if argument.aval != result.aval or result.dtype.kind != "f" or argument not in needed:
                continue
            if [at for v, at in plan.loads if v is argument] != [plan.places[result]]:
                continue
            # Where there are more results, it must be loaded once for all: not again inside of a condition.
            readers = split(body.ops, [argument]).after
            if len(body.returns) == 1 or all(isinstance(op.op, Elementwise) for op in readers):
                found.append((i, j))
    return found


def donations(body: Body[PlannedOp]) -> list[tuple[int, int]]:
    """Results and arguments, by number, that may share memory: those pairs first that are chosen where all arguments
    are given up."""
    arguments, aliases = body.function.arguments, body.aliases()
    last: dict[Value, int] = {}
    for at, planned in enumerate(body.planned_ops):
        for v in planned.op.operands:
            last[origin(v)] = at
    kept = {origin(v) for v in body.function.returns}
    taken = {a: i for i, a in enumerate(arguments) if a not in kept and a.aval.nbytes > SMALLEST}
    made = {r: at for at, planned in enumerate(body.planned_ops) for r in planned.op.results}
    same: dict[int, list[int]] = {}
    written: list[tuple[int, int, int]] = []
    for j, returned in enumerate(body.function.returns):
        result = origin(returned)
        if j in aliases or result not in made or result.aval.nbytes <= SMALLEST:
            continue
        at, nbytes = made[result], result.aval.nbytes
        written.append((at, j, nbytes))
        inside = [v for v in _read_in_place(body.planned_ops[at], result) if v in taken and last[v] == at]
        same[j] = sorted(taken[v] for v in inside if v.aval.nbytes == nbytes)
    read = [(last.get(a, -1), i, a.aval.nbytes) for a, i in taken.items()]
    return _chosen(same, sorted(written), sorted(read))


def _chosen(
    same: dict[int, list[int]], written: list[tuple[int, int, int]], read: list[tuple[int, int, int]]
) -> list[tuple[int, int]]:
    """Pairs of results and arguments, each in one pair at most as far as these go, then others.

    Args:
        same: the arguments that are read just where a result is written. written: when each result is, with its
            number and bytes. read: the same of arguments, when they are read last.
    """
    pairs: dict[int, int] = {}
    used: set[int] = set()
    for j in sorted(same, key=lambda j: len(same[j])):  # one that has no choice first
        if (i := next((i for i in same[j] if i not in used), None)) is not None:
            pairs[j] = i
            used.add(i)
    others = [(j, i) for j, found in same.items() for i in found]
    free, spare = dict[int, list[int]](), dict[int, list[int]]()
    coming = read[::-1]
    for at, j, nbytes in written:
        while coming and coming[-1][0] < at:
            _, i, size = coming.pop()
            free.setdefault(size, []).append(i)
            if i not in used:
                spare.setdefault(size, []).append(i)
        if j not in pairs and spare.get(nbytes):
            pairs[j] = spare[nbytes].pop()
        if not same[j]:  # threads need not wait for those who read elsewhere
            others += [(j, i) for i in free.get(nbytes, ())[:FREE]]
    return list(dict.fromkeys([*pairs.items(), *others]))


def _read_in_place(planned: PlannedOp, result: Value) -> list[Value]:
    """The values that an op reads just where it writes a result, and nowhere else."""
    op = planned.op
    if planned.kind != "kernel" or not (len(planned.steps) == 1 or planned.steps[0].copies):
        return []
    j, sources = op.results.index(result), [origin(v) for v in op.operands]
    pairs = planned.steps[0].in_place
    return [v for i, v in enumerate(sources) if (i, j) in pairs and sources.count(v) == 1]
