"""An e-graph: many expressions of the same values at once, in equivalence classes by rules.

A node is an op on classes. Rules add nodes and merge classes, and take nothing away, so their order does not matter:
what is extracted at the end is the cheapest expression of all that have been found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

from smelt.ir.aval import Aval
from smelt.ir.errors import PipelineError, SmeltError
from smelt.ir.op import Op, registry

from ..kernels.cost import operations
from .matching import Ready, attributes_match, is_number, kept_attributes, number_in
from .terms import Applied, Const, Found, Number, Rule, Term, Variable, sides

#: Additions that a byte costs which a contraction writes or reads, and that an op costs which only moves elements.
BYTE, MOVED = 2.0, 0.05


class Node(NamedTuple):
    """An op on classes; a leaf, which stands for a value of the function, has no op."""

    op: Op | None
    key: str
    operands: tuple[int, ...]


class ClassNumber(int):
    """What a variable stands for. An attribute may be a number, too."""


class Known:
    """A class as conditions see it: like a `Value`."""

    def __init__(self, graph: EGraph, of: int):
        self.aval: Aval = graph.avals[graph.find(of)]
        self.shape, self.dtype, self.ndim = self.aval.shape, self.aval.dtype, self.aval.ndim
        value = graph.number(of)
        made = SimpleNamespace(op=registry["constant"], operands=(), attrs={"value": value})
        self.owner = None if value is None else made


class EGraph:
    """Classes of expressions."""

    def __init__(self) -> None:
        self.parents: list[int] = []
        self.avals: list[Aval] = []
        self.nodes: dict[int, dict[Node, None]] = {}
        self.table: dict[Node, int] = {}
        self.attrs: dict[str, dict[str, Any]] = {"": {}}
        self.merged = 0

    def find(self, of: int) -> int:
        """The number of a class."""
        while self.parents[of] != of:
            self.parents[of] = of = self.parents[self.parents[of]]
        return of

    def add(self, op: Op | None, attrs: dict[str, Any], operands: Sequence[int], aval: Aval, leaf: str = "") -> int:
        """The class of an op on classes."""
        key = leaf or ", ".join(f"{name}={value!r}" for name, value in sorted(attrs.items()))
        self.attrs.setdefault(key, attrs)
        node = Node(op, key, tuple(map(self.find, operands)))
        if node in self.table:
            return self.find(self.table[node])
        made = len(self.parents)
        self.parents.append(made)
        self.avals.append(aval)
        self.nodes[made], self.table[node] = {node: None}, made
        return made

    def merge(self, a: int, b: int) -> None:
        """Say that two classes are equal."""
        a, b = self.find(a), self.find(b)
        if a != b and self.avals[a] == self.avals[b]:
            if len(self.nodes[a]) < len(self.nodes[b]):
                a, b = b, a
            self.parents[b] = a
            self.nodes[a].update(self.nodes.pop(b))
            self.merged += 1

    def rebuild(self) -> None:
        """Merge classes of the same op on the same classes, until there are no more."""
        again = True
        while again:
            again = False
            table: dict[Node, int] = {}
            for of in list(self.nodes):
                if of not in self.nodes:
                    continue
                for node in list(self.nodes[self.find(of)]):
                    now = Node(node.op, node.key, tuple(map(self.find, node.operands)))
                    other = table.setdefault(now, self.find(of))
                    if self.find(other) != self.find(of):
                        self.merge(other, of)
                        again = True
            self.table = {n: self.find(c) for n, c in table.items()}
            self.nodes = {c: {} for c in self.nodes}
            for n, c in self.table.items():
                self.nodes[c][n] = None

    def number(self, of: int) -> Any:
        """The number that fills the values of a class, or None."""
        for node in self.nodes[self.find(of)]:
            if node.op is registry["constant"]:
                return self.attrs[node.key]["value"]
            if node.op is registry["broadcast"] and (inner := self.number(node.operands[0])) is not None:
                return inner
        return None

    @property
    def size(self) -> int:
        return len(self.table)

    # Rules

    def matches(self, x: Term, of: int, found: Found) -> Iterator[dict[str, Any]]:
        """The ways in which a class is what a term says; classes and attributes of variables."""
        of = self.find(of)
        if isinstance(x, Number):
            if is_number(x.value)(self.number(of)):
                yield dict(found)
        elif isinstance(x, Variable):
            if x.name in found:
                if self.find(found[x.name]) == of:
                    yield dict(found)
            elif not isinstance(x, Const) or self.number(of) is not None:
                yield {**found, x.name: ClassNumber(of)}
        elif isinstance(x, Applied):
            for node in list(self.nodes.get(of, ())):
                if node.op is x.op:
                    tried = dict(found)
                    if not x.attrs or attributes_match(x.attrs, self.attrs[node.key], tried):
                        yield from self._operands(x, node, 0, tried)

    def _operands(self, x: Applied, node: Node, at: int, found: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if at == len(x.operands):
            yield found
            return
        for tried in self.matches(x.operands[at], node.operands[at], found):
            yield from self._operands(x, node, at + 1, tried)

    def holds(self, rule: Rule, found: Found) -> bool:
        """Whether the condition of a rule holds of a match."""
        if rule.condition is None:
            return True
        return rule.condition.holds(self._known(found))

    def _known(self, found: Found) -> Found:
        """A match as conditions and computed attributes read it."""
        return {k: Known(self, v) if isinstance(v, ClassNumber) else v for k, v in found.items()}

    def put(self, x: Term, found: Found, beside: Aval) -> int:
        """The class of a replacement. Raises SmeltError where an op does not take what it gets."""
        if isinstance(x, Variable):
            of = self.find(found[x.name])
            if isinstance(x, Const) and self.avals[of].shape != beside.shape:
                return self.full(self.number(of), self.avals[of].with_shape(beside.shape))
            return of
        if isinstance(x, Number):
            aval = beside if x.like is None else self.avals[self.find(found[x.like.name])]
            return self.full(number_in(x.value, self._known(found)), aval)
        assert isinstance(x, Applied)
        operands: list[Any] = [None] * len(x.operands)
        typed, constant = sides(x)
        near = None
        for i in (*typed, *sorted(constant, key=lambda i: isinstance(x.operands[i], Number))):
            y = x.operands[i]
            own = self.avals[self.find(found[y.name])] if isinstance(y, Const) and i in typed else None
            operands[i] = self.put(y, found, own or (beside if i in typed else near or beside))
            near = self.avals[self.find(operands[i])]
        attrs = kept_attributes(x, self._known(found))
        (aval,) = x.op.infer_checked([self.avals[self.find(c)] for c in operands], attrs)
        return self.add(x.op, attrs, operands, aval)

    def full(self, value: Any, aval: Aval) -> int:
        """The class of a type filled with a number."""
        constant, broadcast = registry["constant"], registry["broadcast"]
        scalar = self.add(constant, {"value": value, "dtype": aval.dtype}, (), Aval((), aval.dtype))
        return scalar if not aval.shape else self.add(broadcast, {"shape": aval.shape}, (scalar,), aval)

    def apply(self, rules: Sequence[Ready], most: int) -> dict[str, int]:
        """One round: match all rules, then add what they say; how often each made two classes one.

        Args:
            most: nodes, after which nothing is added.
        """
        found = []
        for tried in rules:
            for of in list(self.nodes):
                for match in self.matches(tried.pattern, of, {}):
                    found.append((tried, of, match))
                    if len(found) > 20 * most:
                        break
        counted: dict[str, int] = {}
        for tried, of, match in found:
            if self.size >= most:
                break
            if not self.holds(tried.rule, match):
                continue
            try:
                made = self.put(tried.rule.replacement, match, self.avals[self.find(of)])
            except PipelineError:  # functions of the rule are to blame
                raise
            except SmeltError:  # the replacement has no meaning for these types
                continue
            if self.find(made) != self.find(of) and self.avals[self.find(made)] == self.avals[self.find(of)]:
                self.merge(made, of)
                name = str(tried.rule)
                counted[name] = counted.get(name, 0) + 1
        self.rebuild()
        return counted

    # What is cheapest

    def cost(self, node: Node, of: int) -> float:
        """What a node costs, as kernels do: operations, and for contractions the bytes of operands and result."""
        if node.op is None:
            return 0.0
        avals = [self.avals[self.find(c)] for c in node.operands]
        result = self.avals[of]
        view: Any = SimpleNamespace(
            op=node.op, operands=[SimpleNamespace(aval=a) for a in avals], attrs=self.attrs[node.key],
            results=[SimpleNamespace(aval=result)],
        )  # fmt: skip
        cost = operations(view)
        if node.op.kind == "contraction":
            cost += BYTE * sum(a.nbytes for a in (*avals, result))
        return max(cost, MOVED * result.size)

    def best(self) -> dict[int, tuple[float, Node]]:
        """The cheapest node of each class, with what the expression costs whose root it is."""
        costs = {(of, node): self.cost(node, of) for of, nodes in self.nodes.items() for node in nodes}
        found: dict[int, tuple[float, Node]] = {}
        changed = True
        while changed:
            changed = False
            for (of, node), own in costs.items():
                inner = [found.get(self.find(c)) for c in node.operands]
                if None in inner:
                    continue
                total = own + sum(x[0] for x in inner if x is not None)
                if of not in found or total < found[of][0] * (1 - 1e-12):
                    found[of], changed = (total, node), True
        return found
