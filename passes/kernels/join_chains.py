"""Join-chains: chains of the same numbers become one call, so that one step of a library may stand for all of them.

Before, of the gradient of attention (see `attention_chains`)::

    %d = func.call @fused_reduce_sum(%do, %o)                       // a number of each row
    %dv, %dk = func.call @fused_chain(%k, %q, %m, %r, %do, %v, %d)
    %dq = func.call @fused_chain_1(%k, %q, %m, %r, %do, %v, %d)

After::

    %dv, %dk, %dq = func.call @fused_chains(%do, %o, %k, %q, %m, %r, %v)

    func.func private @fused_chains(...) attributes {smelt.fusion = "chains"} {
      %d = func.call @fused_reduce_sum(%do, %o)
      %dv, %dk = func.call @fused_chain(%k, %q, %m, %r, %do, %v, %d)
      %dq = func.call @fused_chain_1(%k, %q, %m, %r, %do, %v, %d)
      return %dv, %dk, %dq
    }

A fusion of rows goes along if such chains alone read what it makes. What follows the products in each chain may read
more. A device that has no such step runs the calls one after the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from smelt.ir import mlir
from smelt.ir.builder import Builder, Function, OpView, Value, functions, read_function
from smelt.ir.dialect import context

from ..dependence import cone
from ..extract import extract, inputs_of, name_of, named_location, reassemble
from ..registry import Pass, register_pass
from ..rewrite import schedule_of, unplaced_functions
from .analysis import users_of
from .attention_chains import chain_plan


@register_pass("join-chains")
@dataclass(frozen=True)
class JoinChainsPass(Pass):
    """Let chains of products of the same arrays be one call, together with what makes numbers of rows for them."""

    def run(self, module: Any, statistics: Counter) -> None:
        chains, rows = dict[str, list[int]](), set[str]()
        for name, operation in functions(module).items():
            schedule = schedule_of(operation)
            if schedule == "row":
                rows.add(name)
            elif schedule == "chain":
                chains[name] = _made_of(read_function(operation))
        made: dict[Any, str] = {}
        for operation in unplaced_functions(module) if chains else ():
            function = read_function(operation)
            groups = list(_groups(function, chains, rows))
            if groups:
                _join(module, function, groups, made)
                statistics["joined"] += len(groups)


def _made_of(body: Function) -> list[int]:
    """The arguments that the products of a chain are made of, and not what follows."""
    plan = chain_plan(body)
    assert not isinstance(plan, str), plan
    read = cone([v for end in plan.ends for v in end.op.operands])
    return [i for i, v in enumerate(body.arguments) if v in read]


@dataclass(eq=False)
class _Group:
    """Calls that become one: of fusions of rows, and of two or more chains of products of the same arrays.

    Attributes:
        ops: all of them, in order; chains: those of chains.
        at: the one in whose place it is made.
    """

    ops: list[OpView]
    chains: list[OpView]
    at: OpView | None = None

    def place(self, position: dict[OpView, int], users: Mapping[Value, list[OpView | None]]) -> bool:
        """Find where it may be made: all that it reads is there, and nobody else has asked for what it gives.

        Args:
            position: of all ops. Where the group has a place, it is that of its own from then on, but for rows that are
                made before for another group, too.
        """
        made = max((position[v.owner] for v in self.inputs if v.owner is not None), default=-1)
        asking = [op for v in self.outputs for op in users.get(v, ()) if op is not None and op not in self.ops]
        asked = min((position[op] for op in asking), default=len(position))
        self.at = next((op for op in self.chains if made < position[op] < asked), None)
        if self.at is not None:
            at = position[self.at]
            position.update((op, at if op in self.chains else min(at, position[op])) for op in self.ops)
        return self.at is not None

    @property
    def inputs(self) -> list[Value]:
        return inputs_of(self.ops)

    @property
    def outputs(self) -> list[Value]:
        return [v for op in self.chains for v in op.results]

    @property
    def key(self) -> Any:
        """Equal for groups that call the same functions alike."""
        number: dict[Value, int] = {}
        return tuple(
            (op.attrs["callee"], *(number.setdefault(v, len(number)) for v in (*op.operands, *op.results)))
            for op in self.ops
        )


def _groups(function: Function, chains: Mapping[str, list[int]], rows: Collection[str]) -> Iterator[_Group]:
    """Calls that may become one.

    Args:
        chains: the functions that are, and which of their operands their products are made of. rows: those of rows.
    """
    position = {op: i for i, op in enumerate(function.ops)}
    calls = [op for op in function.ops if op.op.kind == "call"]
    alike: dict[frozenset[Value], list[OpView]] = {}
    for op in calls:
        if op.attrs["callee"] in chains:
            alike.setdefault(frozenset(op.operands[i] for i in chains[op.attrs["callee"]]), []).append(op)
    users = users_of(function) if alike else {}
    several = [found for found in alike.values() if len(found) > 1]
    while several:
        chosen = {op for found in several for op in found}
        groups = []
        for found in several:
            makers = dict.fromkeys(v.owner for op in found for v in op.operands if v.owner in position)
            before = [
                op for op in makers if op is not None and op.attrs.get("callee") in rows
                and all(user in chosen for v in op.results for user in users.get(v, ()))
            ]  # fmt: skip
            groups.append(_Group(sorted((*before, *found), key=position.__getitem__), found))
        places = dict(position)
        placed = [group for group in groups if group.place(places, users)]
        if len(placed) == len(groups):
            yield from placed
            return
        several = [group.chains for group in placed]


def _join(module: Any, function: Function, groups: list[_Group], made: dict[Any, str]) -> None:
    """Replace a function by one that makes one call of each group."""
    places = {group.at: group for group in groups}
    gone = {op for group in groups for op in group.ops}

    def call(b: Builder, group: _Group, env: dict[Value, Value]) -> None:
        location, inputs, outputs = group.chains[0].location, group.inputs, group.outputs
        name = made.get(group.key)
        if name is None:
            operation = extract(
                module, "fused_chains", function, inputs, outputs, group.ops, location=location,
                argument_locations=[named_location(v, location) for v in inputs],
            )  # fmt: skip
            operation.attributes["smelt.fusion"] = mlir.ir.StringAttr.get("chains", context())
            name = made[group.key] = name_of(operation)
        with b.at(location):
            results = b.call(name, [env[v] for v in inputs], [v.aval for v in outputs])
        env.update(zip(outputs, results))

    reassemble(module, function, [places.get(op, op) for op in function.ops if op in places or op not in gone], call)
