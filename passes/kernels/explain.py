"""What `fuse` did and did not do, as remarks: each kernel, and why any two adjacent kernels are not one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from smelt.ir.builder import Function, OpView, Value
from smelt.ir.text import line_of

from ..remarks import Remark, add
from .grouping import Grouping
from .groups import Group
from .heuristics import Reason, Way

#: Of kernels that read one array, so many are compared with each other.
MANY_READERS = 16
_LOOPS = Reason("loops", "both read the same array, but their loops differ, or it is small beside them")
_TRIED: dict[Way, str] = {
    "inside": "{reader} reads {op} from memory", "again": "{reader} reads {op} from memory",
    "movement": "{reader} reads {op} from memory", "output": "{reader} does not compute {op} for others that read it",
    "sibling": "{op} is not merged with {reader}",
}  # fmt: skip


def explain(function: Function, grouping: Grouping) -> Callable[[Mapping[Group, str]], None]:
    """What makes the remarks of one function, once its groups are functions and have names."""
    name, final = function.name, _Final(grouping)
    touching, beside = list(_touching(grouping)), list(_beside(grouping))
    lines = {op: line_of(op.location) for op in function.ops}  # the function is rebuilt in between

    def remark(names: Mapping[Group, str]) -> None:
        def missed(op: OpView, what: str, way: Way, reason: Reason, *groups: Group) -> None:
            about = tuple(names[g] for g in groups)
            text = f"{_TRIED[way].format(op=what, reader='@' + about[1])}: {reason}"
            add(Remark("fuse", "missed", reason.rule, text, lines[op], name, about, dict(reason.numbers)))

        for group in grouping.groups:
            ops = [op.name for op in group.ordered_ops if op.op.flops > 0] or [group.primary.name]
            text = f"@{names[group]} is one kernel of {_counted(len(group.ops), 'op')}: {', '.join(ops)}"
            add(Remark("fuse", "passed", "kernel", text, lines[group.primary], name, (names[group],),
                       {"ops": len(group.ops)}))  # fmt: skip
        for op in grouping.stays:
            if op.op.kind not in ("constant", "call") and not op.op.is_view:
                loop = op.op.kind == "control"
                who = "what it runs are kernels" if loop else "a library or the host computes it"
                text = f"{op.name} is no kernel: {who}, and it reads and writes memory"
                add(Remark("fuse", "analysis", "library", text, lines[op], name, (op.name,)))
        for value, writer, reader in touching:
            assert value.owner is not None
            for way, reason in final.reasons(value.owner, reader):
                missed(value.owner, value.owner.name, way, reason, writer, reader)
        pairs = final.pairs | {p: _LOOPS for p in beside if p not in final.pairs and p[::-1] not in final.pairs}
        for (one, other), reason in pairs.items():
            missed(one.primary, f"@{names[one]}", "sibling", reason, one, other)

    return remark


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _touching(grouping: Grouping) -> Iterator[tuple[Value, Group, Group]]:
    """A value with the group that writes it, and one that reads it."""
    position = grouping.position
    inputs = {group: set(group.inputs) for group in grouping.groups}
    written = {v: group for group in grouping.groups for v in group.outputs}
    for reader, values in inputs.items():
        for v in sorted((v for v in values if v in written), key=lambda v: position[v.owner]):  # type: ignore[index]
            if written[v] is not reader:
                yield v, written[v], reader


def _beside(grouping: Grouping) -> Iterator[tuple[Group, Group]]:
    """Groups that read the same array, of which neither reads what the other writes."""
    readers: dict[Value, list[Group]] = {}
    for group in grouping.groups:
        for v in group.inputs:
            if v.aval.size > 1:
                readers.setdefault(v, []).append(group)
    written = {group: set(group.outputs) for group in grouping.groups}
    for found in readers.values():
        for i, one in enumerate(found[:MANY_READERS]):
            for other in found[i + 1 : MANY_READERS]:
                if written[one].isdisjoint(other.reads) and written[other].isdisjoint(one.reads):
                    yield one, other


class _Final:
    """Answers about groups that have become part of others since."""

    def __init__(self, grouping: Grouping):
        self.found: dict[tuple[OpView, Group], dict[Way, Reason]] = {}
        self.pairs: dict[tuple[Group, Group], Reason] = {}
        self.merged = grouping.merged
        for (what, group), answers in (grouping.refusals or {}).items():
            if isinstance(what, Group):
                pair = self._now(what), self._now(group)
                if pair[0] is not pair[1]:
                    self.pairs.update(dict.fromkeys([pair], answers["sibling"]))
            else:
                self.found.setdefault((what, self._now(group)), {}).update(answers)

    def _now(self, group: Group) -> Group:
        while group in self.merged:
            group = self.merged[group]
        return group

    def reasons(self, op: OpView, reader: Group) -> list[tuple[Way, Reason]]:
        """Why a group that reads what `op` makes does not compute it."""
        return list(self.found.get((op, reader), {}).items())
