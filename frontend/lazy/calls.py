"""Calls of compiled functions that were noted with arguments that had no values yet, as they run.

The memory of an argument that nobody wants any more becomes that of a result where the program says that it can
(`Executable.donatable`): of a chain of steps, each of which replaces its state, two states need not be in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from sys import getrefcount
from typing import Any

from smelt.ir import locks
from smelt.runtime import Buffer, Executable

from .core import ALIAS, Node, Ref, state


class NotedCall:
    """What a node of a call runs. The calls of one version of a function share it.

    Attributes:
        run: from buffers to buffers.
        program: whose `run` that is; None: of none.
        captured: what it reads after its arguments.
        prepared: how it runs as one step of a plan (`steps.prepare`): False where it runs by itself, None as long as
            nobody has asked.
    """

    __slots__ = ("captured", "prepared", "program", "run")

    def __init__(
        self, run: Callable[[list[Buffer]], list[Buffer]], program: Executable | None = None,
        captured: Sequence[Buffer] = (),
    ):  # fmt: skip
        self.run, self.program, self.captured = run, program, captured
        self.prepared: Any = None


def have_run(refs: Iterable[Ref]) -> bool:
    """Whether all these have values, or are results of calls that have."""
    return all(
        node.values is not None or (node.op is ALIAS and all(child.values is not None for child, _ in node.inputs))
        for node, _ in refs
    )


def run_call(node: Node) -> None:
    """Give a node its values. Where that fails, those of its inputs are as before."""
    call: NotedCall = node.attrs["call"]
    program = call.program
    given: list[int] = []
    if program is not None and program.donatable and not state.recording:  # a derivative may want to look at them
        given = dying(node.inputs, program.donatable)
    buffers = [child.values[i] for child, i in node.inputs]  # type: ignore[index]
    buffers += call.captured
    if not given:
        node.values = call.run(buffers)
        return
    assert program is not None
    locks.signals_later(_Run(node, program, buffers, given))


class _Run:
    """A run on inputs some of which are given up. An interrupt in its midst would leave neither them nor results."""

    def __init__(self, node: Node, program: Executable, buffers: list[Buffer], given: Sequence[int]):
        self.node, self.program, self.buffers, self.given = node, program, buffers, given

    def __call__(self) -> None:
        children = [self.node.inputs[n][0] for n in self.given]
        for child in children:
            child.values = None
        try:
            taken = {n for n in self.given if Buffer.renew(self.buffers, n)}
            self.node.values = self.program.run_donated(self.buffers, taken)
        except BaseException:  # before the program began, such as where there is no memory: nothing was written
            for n, child in zip(self.given, children):
                child.values = [self.buffers[n]]
            raise


def dying(refs: Sequence[Ref], places: Iterable[int]) -> list[int]:
    """Of some places among references those whose nodes nobody refers to but these references.

    `refs`: of a node, which alone refers to the sequence.
    """
    # How often each stands there; the first, which nothing else has, tells how many references these lists make.
    tuples: dict[int, list[Any]] = {0: [0, (object(), 0)]}
    nodes: dict[int, list[Any]] = {0: [0, object()]}  # by how many different references
    for ref in refs:
        known = tuples.get(id(ref))
        if known is None:
            tuples[id(ref)] = [1, ref]
            nodes.setdefault(id(ref[0]), [0, ref[0]])[0] += 1
        else:
            known[0] += 1
    ref = None  # type: ignore[assignment]
    shared = {id(ref[0]) for ref in _referred(tuples)} | {id(node) for node in _referred(nodes)}
    return [n for n in places if n < len(refs) and id(refs[n][0]) not in shared and len(refs[n][0].avals) == 1]


def _referred(known: dict[int, list[Any]]) -> list[Any]:
    """Those to which there are more references than were counted."""
    found, own = [], -1
    for count, x in known.values():
        more = getrefcount(x) - count
        if own < 0:
            own = more
        elif more > own:
            found.append(x)
    return found
