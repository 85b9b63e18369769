"""Pieces of the graph as functions: what their programs are made of and found by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from smelt.ir.errors import OutOfMemoryError
from smelt.ir.interpreter import shown_line
from smelt.ir.settings import settings
from smelt.runtime import Buffer, Device, Executable, LruCache, compile_module

from ..build import build_module
from ..graph import FunctionKey, GraphFunction, Node, RecordedNode, Ref, inputs_of, snapshot, structure_key
from .kin import Kin
from .programs import kept_program, program_in_background, program_of
from .rolled import Rolled, rolled_with_key

if TYPE_CHECKING:
    from smelt.runtime.background import Pending

#: Programs of pieces, by their keys.
executables = LruCache(weigh=lambda program: program.nbytes)


class Subgraph(NamedTuple):
    """A piece of the graph as a function: what a program is made of and found by.

    Attributes:
        key: what its programs are found by; `structure` is a part of it.
        kin: as of `rolled.Rolled`.
    """

    key: tuple[FunctionKey, str, bool, Any]
    inputs: list[Ref]
    body: Sequence[RecordedNode]
    outputs: list[Ref]
    kin: Kin | None = None

    def function(self) -> GraphFunction:
        return GraphFunction("graph", self.inputs, (), list(self.body), self.outputs, self.key[0])

    @property
    def structure(self) -> Any:
        """Its `structure_key`."""
        return self.key[0].parts

    def values(self) -> list[Buffer]:
        return [n.values[i] for n, i in self.inputs]  # type: ignore[index]

    def run(self, program: Executable) -> list[Buffer]:
        """Run its program. Raises OutOfMemoryError, which names the largest array of the results."""
        try:
            return program.run(self.values())
        except OutOfMemoryError as error:
            node, i = max(self.outputs, key=lambda ref: ref[0].avals[ref[1]].nbytes)
            largest = f"the largest result is {node.avals[i]}, of smelt.{node.op.name}{shown_line(node.where)}"
            raise OutOfMemoryError(f"{error}; {largest}") from None

    def program(self, device: Device, small: bool) -> Executable:
        return executables.get_or_wait(self.key, lambda: self.make(device, small))

    def make(self, device: Device, small: bool = False) -> Executable:
        """Compile it in place."""
        if small:
            return compile_module(build_module(self.inputs, self.body, self.outputs), device, interpret=True)
        return program_of(self.inputs, self.body, self.outputs, device)

    def find(self, device: Device) -> Executable | None:
        """Take it from disk."""
        return kept_program(self.inputs, self.body, self.outputs, device)

    def begin(self, device: Device, beside_device: bool = False) -> Pending | None:
        """Have it compiled by another process, if that can be. `beside_device`: as of `program_in_background`."""
        return program_in_background(self.inputs, self.body, self.outputs, device, beside_device=beside_device)


def subgraph_of(
    order: Sequence[Node], keep: Sequence[Node], device: Device, small: bool, loops: Rolled | None = None
) -> Subgraph:
    """A piece with loops in place of repetitions; `keep`: the nodes that are wanted."""
    found = loops or rolled_subgraph(order, keep)
    return function_of(found.body, found.outputs, device, small, found.structure)._replace(kin=found.kin)


def plain_subgraph(order: Sequence[Node], keep: Iterable[Node], device: Device) -> Subgraph:
    """A piece as it was recorded."""
    return function_of(snapshot(order), results_of(keep), device)


def function_of(
    body: Sequence[RecordedNode], outputs: list[Ref], device: Device, small: bool = False, structure: Any = None
) -> Subgraph:
    """Nodes as a piece. `structure`: its `structure_key`, if that is known."""
    inputs = inputs_of(body)
    structure = FunctionKey(structure or structure_key(inputs, body, outputs))  # whose hash is worked out once
    return Subgraph((structure, device.name, small, settings.of_programs), inputs, body, outputs)


def rolled_subgraph(order: Sequence[Node], keep: Iterable[Node]) -> Rolled:
    """A piece of the graph with loops in place of repetitions."""
    return rolled_with_key(snapshot(order), results_of(keep), by_value=True)


def results_of(keep: Iterable[Node]) -> list[Ref]:
    return [(n, i) for n in keep for i in range(len(n.avals))]
