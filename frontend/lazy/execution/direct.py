"""Evaluation op by op: what runs at once, without a compile.

A node is computed by its op's NumPy rule. A transformed function (`grad`, `vmap`, …) is first expanded on a tape, by
the rules that the passes use; a branch or loop runs its functions the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from smelt.ir import profiling
from smelt.ir.control import ControlOp, interpret
from smelt.ir.interpreter import run_op, shown_line
from smelt.ir.op_program import OpProgram, out_of_memory, plain_rule
from smelt.ir.settings import settings
from smelt.runtime import Buffer, LruCache

from ..build import MOST_ELEMENTS, check_sizes
from ..graph import ALIAS, APPLY, GraphFunction, Node, callees, transforms_key
from .families import bound_program
from .recorded import Transforms, recorded
from .results import as_buffer

#: Programs of recorded functions, transformed or not, by what they compute; `_REFUSED` for what needs a compile.
_programs = LruCache(weigh=lambda program: program.nbytes)


class _Refused:
    """In place of the program of a function whose transformation needs a module."""

    nbytes = 1_000


_REFUSED = _Refused()


def can_run(order: Iterable[Node]) -> bool:
    """Whether all of these nodes can run op by op."""
    for node in order:
        if node.op is APPLY:
            if _program_of(node) is None:
                return False
        elif node.op.kind == "control" and not all(map(_is_plain, callees(node))):
            return False
    return True


def run(order: list[Node], keep: Sequence[Node], reference: bool = False) -> dict[Node, Sequence[np.ndarray]]:
    """Compute nodes in order, which is emptied on the way, so that what nobody needs any more is freed.

    Args:
        reference: whether libraries are not to be used where an op has a rule of its own.

    Returns:
        The results of the nodes in `keep`; they may share memory with operands and with each other.
    """
    uses: dict[Node, int] = dict.fromkeys(keep, 1)
    for node in order:
        for child, _ in node.inputs:
            if child in uses:
                uses[child] += 1
            elif child.values is None:
                uses[child] = 1
    env: dict[Node, Sequence[np.ndarray]] = {}
    checked = reference or settings.check
    profiler = profiling.active
    order.reverse()
    with np.errstate(all="ignore"):
        while order:
            node = order.pop()
            op, operands = node.op, []
            for child, i in node.inputs:
                operands.append(env[child][i] if child in env else child.values[i].array)  # type: ignore[index]
            for aval in node.avals:
                if aval.size >= MOST_ELEMENTS:
                    check_sizes(node)
            rule = None if checked else plain_rule(op)
            try:
                if profiler is not None and not (op is ALIAS or op is APPLY or isinstance(op, ControlOp)):
                    line = shown_line(node.where).removeprefix("; at ")
                    results = profiler.timed(op.name, "op", line, _results, node, operands, reference)
                elif rule is None:
                    results = _results(node, operands, reference)
                else:
                    results = (rule(op, *operands, **node.attrs),)
            except MemoryError as error:
                raise out_of_memory(op, error, node.where) from None
            operands.clear()
            for child, _ in node.inputs:
                if child in uses:
                    if uses[child] > 1:
                        uses[child] -= 1
                    else:
                        env.pop(child, None)
            if node in uses:
                env[node] = results
            del results
    return env


def _results(node: Node, operands: list[np.ndarray], reference: bool) -> Sequence[np.ndarray]:
    if node.op is ALIAS:
        return tuple(operands)
    if node.op is APPLY:
        program = _program_of(node)
        assert program is not None
        return program.run(operands)
    if isinstance(node.op, ControlOp):
        return interpret(node.op, node.attrs, operands, node.avals, run_function)
    return run_op(node.op, operands, node.attrs, node.where, reference)


def run_function(f: Any, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
    program = program_of(f, ())
    assert program is not None
    return program.run(operands)


def results_as_buffers(node: Node, arrays: Sequence[np.ndarray]) -> list[Buffer]:
    """The values of a node."""
    return [as_buffer(np.asarray(x), aval) for x, aval in zip(arrays, node.avals)]


# Functions


def _is_plain(f: GraphFunction) -> bool:
    return program_of(f, ()) is not None


def _program_of(node: Node) -> OpProgram | None:
    return program_of(node.attrs["callee"], node.attrs["transforms"])


def program_of(f: GraphFunction, transforms: Transforms) -> OpProgram | None:
    """A recorded function, transformed, as ops in order; None where that takes a module."""
    found = _programs.get_or_make((f.key, transforms_key(transforms)), lambda: _expand(f, transforms))
    return None if found is _REFUSED else found


def _expand(f: GraphFunction, transforms: Transforms) -> OpProgram | _Refused:
    bound = bound_program(f, transforms, run_function)
    if bound is not None:
        return bound
    found = recorded(f, transforms)
    return _REFUSED if found is None else found.program(run_function)
