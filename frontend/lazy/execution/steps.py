"""Op by op at once: plans of graphs whose nodes are calls of NumPy each.

A node is prepared: what its op, attributes and types say about computing it is found once, and kept with the recipe
that makes such nodes. A plan is a walk over a graph that notes what is computed from what, and which values are wanted;
running it is one call a node. It refers to nothing that another thread may change.

What is on the way of every evaluation stands in `plan.c` and `steps.c` too.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from sys import getrefcount
from typing import Any, Literal, NamedTuple

import numpy as np

from smelt.ir import error_functions, host_calls, locks
from smelt.ir.aval import Aval
from smelt.ir.errors import AttributeValueError, SmeltError
from smelt.ir.host_loops import loops
from smelt.ir.interpreter import shown_line
from smelt.ir.library import Library
from smelt.ir.op import Op
from smelt.ir.op_program import out_of_memory, plain_rule
from smelt.runtime import Buffer, Executable

from .. import core
from ..build import MOST_ELEMENTS
from ..calls import NotedCall
from ..core import ALIAS, APPLY, COMPILED, PARAMETER, Node, Ref, state, topological
from ..graph import GraphFunction, RecordedNode, attrs_key, callees
from . import direct, tiers
from .results import as_buffer
from .work import work

#: What is peculiar to a prepared call. Its operands may be shorter than its result by what NumPy's broadcasting
#: repeats, as long as one is not:
SPREADS = 1
#: It is such a repetition, which need not be made for those:
REPEATS = 2
#: It gives a list of results, not one:
SEVERAL = 4

#: Elements of operands with which a library's op is a call. What takes longer is better claimed by the thread that
#: evaluates it, so that others wait for it.
MOST_LIBRARY_ELEMENTS = 1 << 19

#: Arguments that the call of an op has at most; that of a function has any number.
MOST_ARGUMENTS = 20


class Prepared(NamedTuple):
    """What computes nodes of one op, with the same attributes and types.

    Attributes:
        function: called with `first` if that is not None, the operands, and `extra`; None: the result is the operand.
        names: the keywords by which it takes `extra`; None: by position.
        manner: some of the numbers above.
        work, seconds: what it takes, in element operations and by NumPy.
        number: different for each.
        ops: how many it stands for.
    """

    function: Callable[..., Any] | None
    first: Op | None
    extra: tuple[Any, ...]
    names: tuple[str, ...] | None
    manner: int
    work: float
    seconds: float
    number: int
    op: Op
    ops: int


numbers = itertools.count()
_prepared: dict[Any, Prepared | Literal[False]] = {}
#: As many are kept beside those of recipes.
_MOST_PREPARED = 10_000


def prepare(node: Node) -> None:
    """Find what computes a node, or False where that takes more than a call, and note it in the node."""
    memo, op, attrs, inputs = node.prepared, node.op, node.attrs, node.inputs
    if node.values is not None:  # another thread has evaluated it, and perhaps it forgot one of these
        return
    operands = tuple([n.avals[i] for n, i in inputs])
    found: Prepared | Literal[False]
    if op is APPLY:
        found = _prepare_program(RecordedNode(node, op, attrs, inputs, node.avals, None))
    elif op is COMPILED:
        found = _prepare_call(attrs["call"], (*operands, *node.avals))
    elif op is PARAMETER or op.kind == "control":
        found = False
    else:
        key = (op, attrs_key(attrs), operands, node.avals)
        known = _prepared.get(key)
        if known is None:
            if len(_prepared) >= _MOST_PREPARED:
                _prepared.clear()
            known = _prepared[key] = _prepare(node, op, attrs, inputs, operands)
        found = known
    if isinstance(memo, list):
        memo[0] = found
    node.prepared = found


def _prepare(
    node: Node, op: Op, attrs: dict[str, Any], inputs: tuple[Ref, ...], operands: tuple[Aval, ...]
) -> Prepared | Literal[False]:
    if any(aval.size >= MOST_ELEMENTS for aval in node.avals):
        return False
    if op is ALIAS:
        return Prepared(None, None, (), None, 0, 0.0, 0.0, next(numbers), op, 1)
    called: Called | None
    if op.kind != "library":
        called = call_of(op, attrs, operands, node.avals[0])
    else:
        short = sum([x.size for x in operands]) <= MOST_LIBRARY_ELEMENTS
        called = (_computed, op, (attrs,), None, SEVERAL * (op.num_results > 1)) if short else None
    if called is None:
        return False
    step = RecordedNode(node, op, attrs, inputs, node.avals, None)
    return Prepared(*called, work((step,)), tiers.op_by_op_seconds((step,)), next(numbers), op, 1)


#: `function`, `first`, `extra`, `names` and `manner` of what is prepared.
Called = tuple[Callable[..., Any], Op | None, tuple[Any, ...], tuple[str, ...] | None, int]


def call_of(op: Op, attrs: dict[str, Any], operands: Sequence[Aval], result: Aval) -> Called | None:
    """The call that computes a node of one result; None where that takes more than a call."""
    rule = plain_rule(op)
    if rule is None or len(operands) + len(attrs) > MOST_ARGUMENTS:
        return None
    call = op.host_call(operands, result, **attrs)
    if call is None or len(operands) + len(call.extra) > MOST_ARGUMENTS:
        return rule, op, tuple(attrs.values()), tuple(attrs) or None, 0
    manner = SPREADS * call.spreads + REPEATS * call.repeats
    return call.function, None, call.extra, None, manner  # type: ignore[return-value]


def _computed(op: Library, *given: Any) -> Any:
    """The results of an op that a library computes, from its operands and attributes; the plan adds the user's line to
    an error."""
    *operands, attrs = given
    found = op.compute(operands, attrs)
    return found[0] if len(found) == 1 else list(found)


def _prepare_program(step: RecordedNode) -> Prepared | Literal[False]:
    """What computes a transformed function: kept with its program."""
    program = direct.program_of(step.attrs["callee"], step.attrs["transforms"])
    if program is None:
        return False
    found: Prepared | Literal[False] | None = program.prepared
    if found is None and not program.is_pure:
        found = program.prepared = False
    if found is None:
        ops, cost, seconds = program.costs or (tiers.count((step,)), work((step,)), tiers.op_by_op_seconds((step,)))
        found = Prepared(program.call, None, (), None, SEVERAL, cost, seconds, next(numbers), step.op, ops)
        program.prepared = found
    return found


#: A call of a compiled function that takes and gives more bytes runs by itself, in the memory of what nobody wants any
#: more; see `calls`. It cuts the graph in two, which costs more than to write that much elsewhere.
MOST_CALL_BYTES = 1 << 18


def _prepare_call(call: NotedCall, avals: Sequence[Aval]) -> Prepared | Literal[False]:
    """What runs a call of a compiled function on little as one step."""
    found: Prepared | Literal[False] | None = call.prepared
    if found is None:
        program, found = call.program, False
        if program is not None and program.is_step and sum([a.nbytes for a in avals]) <= MOST_CALL_BYTES:
            run = functools.partial(_run_call, program, call.captured)
            found = Prepared(run, None, (), None, SEVERAL, 0.0, 0.0, next(numbers), COMPILED, 1)
        call.prepared = found
    return found


def _run_call(program: Executable, captured: Sequence[Buffer], *arrays: np.ndarray) -> list[np.ndarray]:
    buffers = [as_buffer(np.asarray(x), aval) for x, aval in zip(arrays, program.arguments)]
    return [buffer.array for buffer in program.run([*buffers, *captured])]


class Plan:
    """A part of a graph, to be run op by op.

    Attributes:
        plain: whether it can be run: all of its nodes are prepared.
        work, seconds: what that takes.
        ops: how many ops there are, those of functions included.
        owner: the evaluation that has some of its nodes in work, if there is one.
    """

    def __init__(self, order: list[Node], refs: Sequence[Ref]):
        self._order = order
        self._prepared = [_known(node) for node in order]
        self.plain = all(self._prepared)
        self.work = sum(p.work for p in self._prepared if p)
        self.seconds = sum(p.seconds for p in self._prepared if p)
        self.ops = sum(p.ops for p in self._prepared if p)
        self.owner = next((node.owner for node in order if node.owner), None)
        number = {node: i for i, node in enumerate(order)}
        leaves: dict[Node, int] = {}
        self._operands: list[list[tuple[int, int] | Buffer]] = []
        self._inputs: list[int] = []
        self._uses = [0] * len(order)
        for node in order:
            found: list[tuple[int, int] | Buffer] = []
            for child, i in node.inputs:
                at = number.get(child)
                if at is None:
                    assert child.values is not None
                    found.append(child.values[i])
                    self._inputs.append(~(leaves.setdefault(child, len(leaves)) | i << 32))
                else:
                    found.append((at, i))
                    self._inputs.append(at | i << 32)
                    self._uses[at] += 1
            self._operands.append(found)
        roots = {n for n, _ in refs}
        held = held_outside(order)
        self._kept = [node in roots or node in held for node in order]
        self._short = self._shorten() if self.plain else []

    def __len__(self) -> int:
        return len(self._order)

    def order(self) -> list[Node]:
        """The nodes in order."""
        return self._order.copy()

    def kept(self) -> list[Node]:
        """The nodes whose values are wanted after the run."""
        return [node for node, kept in zip(self._order, self._kept) if kept]

    def key(self) -> Any:
        """Equal for plans of the same structure; only of those that are plain."""
        return tuple([p.number for p in self._prepared if p]), tuple(self._inputs), tuple(self._kept)

    def _shorten(self) -> list[bool]:
        """Which broadcasts need not be made."""
        manners = [p.manner for p in self._prepared if p]
        short = [bool(manner & REPEATS) and not kept for manner, kept in zip(manners, self._kept)]
        for manner, operands in zip(manners, self._operands):
            known = [x[0] for x in operands if isinstance(x, tuple) and short[x[0]]]
            if not manner & SPREADS:
                for at in known:
                    short[at] = False
            elif known and len(known) == len(operands):
                short[known[0]] = False
        return short

    def run(self) -> None:
        """Compute the nodes, and give those that are kept their values.

        Raises:
            OutOfMemoryError: there is no memory for a result.
        """
        results: list[Any] = [None] * len(self._order)
        uses = self._uses.copy()  # a run that failed may be followed by another
        for i, (node, prepared) in enumerate(zip(self._order, self._prepared)):
            assert prepared
            operands = [_value(x, results) for x in self._operands[i]]
            try:
                results[i] = operands[0] if self._short[i] else _called(prepared, operands)
            except SmeltError as error:
                _failed(node.op, error, node.where)
                raise
            except MemoryError as error:
                raise out_of_memory(node.op, error, node.where) from None
            del operands
            for x in self._operands[i]:
                if isinstance(x, tuple):
                    uses[x[0]] -= 1
                    if not uses[x[0]] and not self._kept[x[0]]:
                        results[x[0]] = None
        self._settle([self._values(i, results[i]) if kept else None for i, kept in enumerate(self._kept)])

    def _settle(self, values: Sequence[list[Buffer] | None], owned: Any = None) -> None:
        with walking:
            self._put(values, owned)

    def _put(self, values: Sequence[list[Buffer] | None], owned: Any) -> None:
        for node, value in zip(self._order, values):
            if value is not None and node.values is None:  # or another thread was first
                node.values = value
                settle(node, owned)

    def claim(self, owned: Any) -> bool:
        """Take the nodes for an evaluation, if nobody has any of them in work, and none has values."""
        with walking:
            return self._claimed(owned)

    def _claimed(self, owned: Any) -> bool:
        if any(node.values is not None or node.owner for node in self._order):
            return False
        for node in self._order:
            node.owner = owned
        return True

    def values(self, places: tuple[int, ...]) -> list[Buffer]:
        """The buffers of operands that have values, counted through all nodes."""
        operands = list(itertools.chain.from_iterable(self._operands))
        return [operands[i] for i in places]  # type: ignore[misc]

    def give(self, buffers: list[Buffer], owned: Any) -> None:
        """Give the nodes that are kept their values: what a program of the whole plan returned.

        Args:
            owned: what `claim` had.
        """
        count = sum([len(n.avals) for n, kept in zip(self._order, self._kept) if kept])
        if len(buffers) != count:
            raise AttributeValueError(f"{len(buffers)} values for {count} results")
        rest = iter(buffers)
        values = [[next(rest) for _ in n.avals] if kept else None for n, kept in zip(self._order, self._kept)]
        self._settle(values, owned)

    def _values(self, i: int, result: Any) -> list[Buffer]:
        arrays = result if isinstance(result, list) else [result]
        return [as_buffer(x, aval) for x, aval in zip(arrays, self._order[i].avals)]


#: Held while the nodes of a graph are looked at, or changed, and more than one must fit together.
walking = locks.lock()


def settle(node: Node, owned: Any = None) -> None:
    """An evaluated node forgets its inputs, unless a derivative still wants to look at them, or whoever has it in
    work, who does it then.

    Args:
        owned: of the evaluation that gives it its values, if it has it in work.
    """
    if state.recording:
        state.deferred.append(node)
    elif node.owner is owned or not node.owner:
        node.detach()


def _known(node: Node) -> Prepared | Literal[False] | None:
    """What computes a node; False if that takes more than a call, None if it is not known."""
    known = node.prepared
    return known[0] if isinstance(known, list) else known


def _value(x: tuple[int, int] | Buffer, results: list[Any]) -> np.ndarray:
    if not isinstance(x, tuple):
        return x.array
    found = results[x[0]]
    return found[x[1]] if isinstance(found, list) else found


def _called(prepared: Prepared, operands: list[np.ndarray]) -> Any:
    if prepared.function is None:
        return operands[0]
    first = () if prepared.first is None else (prepared.first,)
    if prepared.names is None:
        found = prepared.function(*first, *operands, *prepared.extra)
    else:
        found = prepared.function(*first, *operands, **dict(zip(prepared.names, prepared.extra)))
    return found if prepared.manner & SEVERAL else np.asarray(found)


def plan(refs: list[Ref]) -> Any:
    """A plan of what has no values at and below `refs`; None if all have."""
    while True:
        with walking:
            order = topological(refs)
            unknown = _unknown(order)
            if not unknown:
                return Plan(order, refs) if order else None
        for node in unknown:  # other threads may evaluate nodes meanwhile
            prepare(node)


def _unknown(order: list[Node]) -> list[Node]:
    return [node for node in order if _known(node) is None]


def held_outside(order: Sequence[Node]) -> set[Node]:
    """Nodes that somebody refers to besides the graph and the functions that it applies, which were recorded on the
    very arrays: their values are worth keeping. Those of several results are among them."""
    functions: dict[int, GraphFunction] = {}
    waiting = [f for node in order for f in callees(node)]
    while waiting:
        f = waiting.pop()
        if id(f) not in functions:
            functions[id(f)] = f
            waiting += [inner for step in f.body for inner in callees(step)]
    holders: dict[int, Sequence[Ref]] = {id(node.inputs): node.inputs for node in order}
    for f in functions.values():
        lists = (f.parameters, f.captured, f.outputs, *(step.inputs for step in f.body))
        holders.update((id(node.inputs), node.inputs) for node, _ in f.parameters)  # other names of the arguments
        holders.update((id(refs), refs) for refs in lists)
    # Each result has a reference of its own, which says nothing of the others.
    several = {node for node in order if len(node.avals) > 1}
    return referred_besides(holders.values(), lambda node: node.values is None) | several


def referred_besides(lists: Iterable[Sequence[Ref]], counts: Callable[[Node], bool]) -> set[Node]:
    """Of the nodes to which references in these lists lead those to which others do, too.

    An array and the nodes made from it share one reference tuple, so more references than stand in the lists mean that
    the array lives. A wrong guess costs a recomputation or a store, never a wrong value.

    Args:
        lists: different objects.
        counts: whether a node matters.
    """
    # The first tells how often the loops below refer to each: versions of Python differ in that.
    known: dict[int, list[Any]] = {0: [0, object()]}
    for refs in lists:
        for ref in refs:
            if counts(ref[0]):
                entry = known.get(id(ref))
                if entry is None:
                    known[id(ref)] = [1, ref]
                else:
                    entry[0] += 1
    refs = ref = None  # type: ignore[assignment]
    found: set[Node] = set()
    own = -1
    for count, ref in known.values():
        more = getrefcount(ref) - count
        if own < 0:
            own = more
        elif more > own:
            found.add(ref[0])
    return found


def _failed(op: Op, error: Exception, where: Any) -> Exception:
    """The error of a step, with the op where there was no memory, and the user's line."""
    if op.tells_line and isinstance(error, SmeltError):
        error.args = (f"{error}{shown_line(where)}",)
        return error
    return out_of_memory(op, error, where) if isinstance(error, MemoryError) else error


if core.native is not None:
    core.native.connect_steps(Buffer, np.ndarray, Prepared, GraphFunction, prepare, as_buffer, np.asarray, _failed)
    Plan = core.native.Plan  # type: ignore[misc]
    plan = core.native.plan
    host_calls.use_runner(core.native.run_calls)
    core.native.connect_elements(*error_functions.COEFFICIENTS)
    loops.vector_bytes, loops.erf = core.native.vector_bytes(), core.native.erf_of
    loops.erf_single, loops.erfinv_single = core.native.erf_of_single, core.native.erfinv_of_single
    loops.fourier, loops.fourier_columns = core.native.fourier, core.native.fourier_columns
    loops.random_words, loops.small_matrices = core.native.random_words, core.native.small_matrices
    loops.radix, loops.row_sums, loops.write_rows = core.native.radix, core.native.row_sums, core.native.write_rows
    loops.row_extrema, loops.running = core.native.row_extrema, core.native.running
    loops.arrange, loops.convert_halves = core.native.arrange, core.native.convert_halves
    loops.select = core.native.select
    loops.signs = core.native.signs
    loops.shift_words, loops.short_rows = core.native.shift_words, core.native.short_rows
