"""One trace for all sizes: what `smelt.compile` keeps besides its programs.

The function is traced on symbols (`smelt.ir.symbolic`) when it is called with the second sizes under
``shapeless=True``, else after a few more. What it asks of sizes becomes a guard, so where the guards hold, a trace for
other sizes would record the same nodes with other sizes, which are computed. Where they do not, or where the function
does with sizes what symbols cannot do, it is traced again; so is one of which the trace changes what it refers to, and
without ``shapeless=True`` one for which that has changed since.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from smelt.ir.aval import Aval
from smelt.ir.errors import IRError
from smelt.ir.op_program import OpProgram
from smelt.ir.sized_program import SizedProgram
from smelt.ir.symbolic import Program

from ..lazy import guarded
from ..lazy.execution import direct
from ..lazy.execution.families import costs_of
from ..lazy.execution.recorded import recorded
from ..lazy.graph import NO_ATTRS, GraphFunction, Node, RecordedNode, Ref, callees, parameter
from ..lazy.static_keys import static_key
from .traced import Trace

__all__: list[str] = []

#: Families of one function, and traces of one family.
MOST_FAMILIES, MOST_TRACES = 64, 4


#: What a trace leaves in the state of a compiled function: whether of other types, its leaves, its tree.
HeldState = tuple[bool, list[tuple[int | None, Any]], Any]
#: Traces a function, with types of arguments and state that are made of the call's.
Tracer = Callable[[Callable[[Aval], Aval]], tuple[Trace, HeldState]]


class Sizes:
    """The sizes in the key of a call, renamed in order of appearance. 0 and 1 are none: rules treat them differently.

    Attributes:
        key: of the family of calls. values: the sizes, distinct from each other.
    """

    def __init__(self, key: Sequence[Any]):
        names: dict[int, int] = {}
        parts = [
            (tuple([d if d < 2 else names.setdefault(d, -1 - len(names)) for d in part.shape]), part.dtype)
            if type(part) is Aval
            else part
            for part in key
        ]
        self.key, self.values = tuple(parts), list(names)


class SizedTraces:
    """The traces of a function on symbols."""

    def __init__(self) -> None:
        self._families: dict[Any, list[_SizedTrace]] = {}  #: none where symbols do not serve
        self._met: dict[Any, int] = {}  #: sizes of families that have no trace yet

    def find(self, sizes: Sizes) -> tuple[Trace, HeldState] | None:
        """What a trace for these sizes gives, without a trace, if that is known."""
        for trace in guarded.find(self._families, sizes.key) or ():
            found = trace.at(sizes.values)
            if found is not None:
                return found, trace.held
        return None

    def waits(self, sizes: Sizes, patience: int) -> bool:
        """Whether a trace on symbols is wanted, now that a call had to be traced.

        Args:
            patience: from so many other sizes on.
        """
        if not sizes.values:
            return False
        known = guarded.find(self._families, sizes.key)
        if known is not None:
            return bool(known)
        if len(self._met) >= MOST_FAMILIES:
            self._met.clear()
        met = guarded.find(self._met, sizes.key) or 0  # perhaps the only ones
        guarded.put(self._met, sizes.key, met + 1)
        return met >= patience

    def met(self, sizes: Sizes, trace: tuple[Trace, HeldState], again: Tracer) -> None:
        """Trace a call on symbols.

        Args:
            trace: that of these sizes.
        """
        guarded.drop(self._met, sizes.key)
        known = guarded.find(self._families, sizes.key)
        if known is None and len(self._families) >= MOST_FAMILIES:
            self._families.clear()
        known = known or []
        made = None if len(known) >= MOST_TRACES else _traced(sizes, *trace, again)
        guarded.put(self._families, sizes.key, [] if made is None else [*known, made])


def _traced(sizes: Sizes, trace: Trace, held: HeldState, again: Tracer) -> _SizedTrace | None:
    """The trace on symbols; None where it says nothing of other sizes, or something else than `trace` of these."""
    program = Program(sizes.values)
    symbols: dict[int, Any] = dict(zip(sizes.values, program.sizes))
    try:
        found, left = again(lambda aval: aval.with_shape([symbols.get(d, d) for d in aval.shape]))
        made = _SizedTrace(program, found, held)
        bound = made.at(sizes.values)
    except Exception:  # also what the function itself gets wrong where it is given a symbol
        return None
    return made if bound is not None and _same(bound, trace) and _leaves_same(held, left) else None


def _leaves_same(held: HeldState, left: HeldState) -> bool:
    """Whether two traces leave the same in the state, but for sizes of arrays."""
    _, a, tree_a = held
    _, b, tree_b = left
    return guarded.equal(tree_a, tree_b) and all(
        i == j and type(x) is type(y) and static_key(x) == static_key(y)
        for (i, x), (j, y) in zip(a, b, strict=True)
    )  # fmt: skip


def _same(a: Trace, b: Trace) -> bool:
    """Whether two traces are the same program."""
    static = [[(i, static_key(x)) for i, x in t.static_outputs.items()] for t in (a, b)]
    return a.function.key == b.function.key and guarded.equal(a.out_tree, b.out_tree) and static[0] == static[1]


class _SizedTrace:
    """A trace on symbols.

    Attributes:
        held: what it leaves in the state.

    Raises:
        IRError: it has functions with rules.
    """

    def __init__(self, program: Program, trace: Trace, held: HeldState):
        self._trace, self.held, self._program = trace, held, program
        self._asked = 0  #: how often for the ops of sizes
        self._ops: SizedProgram | None = None
        self._functions: dict[int, GraphFunction] = {}
        self._order: list[GraphFunction] = []
        self._add(trace.function)
        functions = [
            [[n.avals[i].shape for n, i in f.parameters], [[s.attrs, [a.shape for a in s.avals]] for s in f.body]]
            for f in self._order
        ]
        self._run = program.compiled([functions, trace.static_outputs])

    def _add(self, f: GraphFunction) -> None:
        """A function, after those that it applies."""
        if f.rules:
            raise IRError(f"{f.name} has rules of its own")
        if id(f) in self._functions:
            return
        self._functions[id(f)] = f
        for step in f.body:
            for inner in callees(step):
                self._add(inner)
        self._order.append(f)

    def at(self, sizes: Sequence[int]) -> Trace | None:
        """The trace for these sizes; None where it may be another one."""
        try:
            found = self._run(*sizes)
        except ArithmeticError:
            return None
        if found is None:
            return None
        functions, static = found

        def function() -> GraphFunction:
            made: dict[int, GraphFunction] = {}
            for f, (shapes, steps) in zip(self._order, functions):
                made[id(f)] = bound(f, shapes, steps, made, f is self._trace.function)
            return made[id(self._trace.function)]

        return _TraceAt(self._trace, static, function, lambda: self._ops_at(sizes))

    def _ops_at(self, sizes: Sequence[int]) -> OpProgram | None:
        self._asked += 1
        if self._asked == 2:  # they take as long as the trace: no call has to wait for both
            self._ops = _sized_ops(self._trace.function, self._program)
        return None if self._ops is None else self._ops.bound(sizes, direct.run_function)


class _TraceAt(Trace):
    """A trace for sizes, of one on symbols; the function is made where somebody asks for it."""

    def __init__(
        self, trace: Trace, static: dict[int, Any], function: Callable[[], GraphFunction],
        ops: Callable[[], OpProgram | None],
    ):  # fmt: skip
        self.name, self.out_tree, self.names = trace.name, trace.out_tree, trace.names
        self.n_state_out, self.static_outputs = trace.n_state_out, static
        self._captured, self._n_results = trace.function.captured, len(trace.function.outputs)
        self._find_function, self._find_ops = function, ops
        self._function: GraphFunction | None = None

    @property
    def function(self) -> GraphFunction:  # type: ignore[override]
        found = self._function
        if found is None:
            found = self._function = self._find_function()
        return found

    @property
    def captured(self) -> Sequence[Ref]:
        return self._captured

    @property
    def n_results(self) -> int:
        return self._n_results

    def ops(self) -> OpProgram | None:
        return self._find_ops() or super().ops()


def _sized_ops(f: GraphFunction, numbers: Program) -> SizedProgram | None:
    """A function on symbols op by op, for all sizes; None where it has branches, loops or rules, or a rule of an op
    does what symbols cannot do."""
    try:
        found = recorded(f, ())
        if found is None or any(op.op.kind in ("control", "call") for op in found.body.ops):
            return None
        body = found.body
        costs: Any = (0, 0.0, 0.0)
        for op in body.ops:
            own = costs_of(op.op, op.attrs, [v.aval for v in op.operands], [v.aval for v in op.results])
            costs = tuple([x + y for x, y in zip(costs, own)])
        return SizedProgram(body.arguments, body.ops, body.returns, numbers, costs)
    except Exception:  # what a rule gets wrong where it is given a symbol
        return None


def bound(
    f: GraphFunction, shapes: Sequence[Any], steps: Sequence[Any], made: dict[int, GraphFunction], outer: bool,
    rules: dict[str, Any] = NO_ATTRS,
) -> GraphFunction:
    """A function for sizes.

    Args:
        shapes: of its parameters. steps: attributes and shapes of results of each node.
        made: the functions that it applies, and those of its rules. outer: whether what it captures are values.
        rules: those that it has of its own, with functions that `made` knows.
    """
    env: dict[Ref, Ref] = {}
    count = len(f.parameters) - len(f.captured) if outer else len(f.parameters)
    parameters: list[Ref] = []
    for (node, i), shape in zip(f.parameters[:count], shapes):
        parameters.append(parameter(node.avals[i].with_shape(shape)))
        env.setdefault((node, i), parameters[-1])
    captured = f.parameters[count:]
    for ref in captured:
        env.setdefault(ref, ref)
    body: list[RecordedNode] = []
    for step, (given, results) in zip(f.body, steps):
        attrs = _with_functions(given, made) if callees(step) else given
        avals = tuple([a.with_shape(s) for a, s in zip(step.avals, results)])
        node = Node(step.op, attrs, tuple([env[r] for r in step.inputs]), avals)
        node.where = step.where
        body.append(RecordedNode(node, step.op, attrs, node.inputs, avals, step.where))
        for i in range(len(avals)):
            env[(step.node, i)] = (node, i)
    found = GraphFunction(f.name, parameters, captured, body, [env[r] for r in f.outputs])
    found.names = f.names
    if rules:
        found.set_rules(_with_functions(rules, made))
    return found


def _with_functions(value: Any, made: dict[int, GraphFunction]) -> Any:
    """An attribute with functions for sizes in place of those on symbols."""
    if isinstance(value, GraphFunction):
        if id(value) not in made:  # of a file
            raise IRError(f"{value.name} is not among the functions that sizes are known of")
        return made[id(value)]
    if type(value) is dict:
        return {k: _with_functions(v, made) for k, v in value.items()}
    return type(value)([_with_functions(v, made) for v in value]) if type(value) in (tuple, list) else value
