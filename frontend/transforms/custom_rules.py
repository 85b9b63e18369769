"""Calls of functions with rules, recorded: the function, and its rules traced for this call's types.

All functions of one call take the same first arguments: the arrays among the arguments of the call, then
what the function or one of its rules uses from outside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any
from weakref import ReferenceType

from smelt.ir.aval import Aval
from smelt.ir.errors import ShapeError, TreeError, at_user_line

from ..functions.creation import zeros
from ..lazy import tree
from ..lazy.arguments import aval_of
from ..lazy.arrays import array, placeholder, wrap
from ..lazy.graph import ALIAS, NO_ATTRS, PARAMETER, GraphFunction, Node, Ref, cut, snapshot, state, topological
from .recording import (
    StoredCotangent,
    apply_function,
    article,
    check_like,
    conjugated,
    name_of,
    settled,
    storing,
    tracing,
)
from .vmap import broadcast_axes


class RecordedFunction:
    """A function that ran once on markers: parameters, outputs, what lies between them.

    Attributes:
        captured: what it uses from outside.
    """

    def __init__(self, parameters: Sequence[Ref], outputs: Sequence[Ref]):
        self.parameters, self.outputs = list(parameters), list(outputs)
        self.body, self.captured = cut(self.parameters, self.outputs, constant=_is_constant)

    def renew(self) -> None:
        """Put new nodes in the place of all: the old ones live on only where somebody has stored what they compute."""
        made: dict[Node, Node] = {}
        for node in (*(n for n, _ in self.parameters), *self.body):
            if node not in made:
                inputs = tuple([(made.get(n, n), i) for n, i in node.inputs])
                made[node] = new = Node(node.op, node.attrs, inputs, node.avals)
                new.where, new.traced = node.where, node.traced
        self.parameters = [(made[n], i) for n, i in self.parameters]
        self.outputs = [(made.get(n, n), i) for n, i in self.outputs]
        self.body = [made[n] for n in self.body]


def _is_constant(node: Node) -> bool:
    return node.values is None and (not node.inputs or node.op.kind == "movement")


class Rule:
    """A rule of a call, traced.

    Attributes:
        kind: vjp, backward (of a pair with a forward rule), forward, jvp, primal or batch.
        piece: what was recorded.
        first: how many of its parameters stand before what is captured.
    """

    def __init__(self, name: str, kind: str, recorded: RecordedFunction, first: int):
        self.name, self.kind, self.recorded, self.first = name, kind, recorded, first
        #: Of cotangents that a vjp rule has stored: the marker by which each is the gradient, and its parameter.
        self.stored: dict[Ref, Ref] = {}

    def function(self, captured: Sequence[Ref]) -> GraphFunction:
        """The rule as a function, when it is known what the function and all its rules capture.

        Captured values are arguments too, so there are cotangents (zero, but for what is stored) and tangents (unused)
        of them.
        """
        parameters, outputs = self.recorded.parameters, list(self.recorded.outputs)
        body = list(self.recorded.body)
        rest = parameters[self.first :]
        inexact = [(n, i) for n, i in captured if n.avals[i].dtype.is_inexact]
        if self.kind in ("vjp", "backward"):
            with tracing():
                found = [self.stored.get((n, i)) or zeros(n.avals[i].shape, n.avals[i].dtype)._ref for n, i in inexact]
            body += RecordedFunction(list(self.stored.values()), found).body
            outputs += found
        elif self.kind == "forward":
            outputs += captured
        elif self.kind == "jvp":
            rest = [*rest, *(placeholder(n.avals[i])._ref for n, i in inexact)]
        every = [*parameters[: self.first], *captured, *rest]
        return GraphFunction(self.name, every, (), snapshot(body), outputs)


class Call(tree.ArrayTree):
    """A call of a function with rules.

    Attributes:
        what: the public name, for errors. name: of the user's function.
        arguments: as given. arrays: those in the arguments that are no static ones.
        markers: what the function got in place of the arrays.
        primals: the arguments with fresh markers, for a rule.
        result: what the function returned, with markers for its arrays while a rule is traced.
    """

    def __init__(self, what: str, fun: Callable, arguments: tuple, static: Iterable[int], name: str | None = None):
        self.what, self.name = what, name or name_of(fun)
        self.arguments = arguments
        self.static = frozenset(i % len(arguments) if arguments else i for i in static)
        self.static_arguments = [arguments[i] for i in sorted(self.static)]
        self.variables = [x for i, x in enumerate(arguments) if i not in self.static]
        super().__init__(self.variables)
        self.arrays = [wrap(x._ref) for x in self.arrays]
        self.markers = [alias(x) for x in self.arrays]
        refs = [m._ref for m in self.markers]  # before `fun` runs: it may update its arguments in place
        entries = iter(self.rebuild(self.markers))
        given = [x if i in self.static else next(entries) for i, x in enumerate(arguments)]
        with storing(None):  # the call's own rule takes the place of those inside
            self.raw = settled(fun(*given))
        self.out = tree.ArrayTree(self.raw)
        self.recorded = RecordedFunction(refs, self.out.refs)
        self.primals: tuple = ()
        self.result: Any = None

    @property
    def unwrapped(self) -> Any:
        """The primals as MLX gives them to rules: one alone, or a tuple."""
        return self.primals[0] if len(self.primals) == 1 else self.primals

    def result_as_it_is(self) -> Any:
        """The result as ordinary nodes, when no rule applies."""
        return self.raw

    def begin_rule(self) -> list[Ref]:
        """Fresh markers for primals and result; the primals' references."""
        markers = [alias(x) for x in self.arrays]
        refs = [m._ref for m in markers]
        self.primals = tuple(self.rebuild(markers))
        self.result = self.out.rebuild([alias(x) for x in self.out.arrays])
        return refs

    def out_refs(self) -> list[Ref]:
        """The references of the markers in `result`."""
        leaves = tree.flatten(self.result)[0]
        return [leaves[i]._ref for i in self.out.places]

    def seeds(self) -> tuple[list[Ref], Any]:
        """Placeholders for cotangents of the inexact results, and their tree; zeros for the others."""
        values = [placeholder(a) if a.dtype.is_inexact else zeros(a.shape, a.dtype) for a in self.out.avals]
        refs = [x._ref for x in values if x.dtype.is_inexact]
        return refs, self.out.rebuild([conjugated(x) for x in values])

    def cotangents(self, given: Any) -> list[Ref]:
        """What a rule returned, as one cotangent for each inexact array in the arguments."""
        who = f"{self.what}: the vjp rule of {self.name}"
        given = in_order(tuple(self.variables), given)
        if len(self.variables) == 1 and not (isinstance(given, (tuple, list)) and len(given) == 1):
            given = (given,)
        if not isinstance(given, (tuple, list)):
            raise TreeError(
                at_user_line(f"{who} must return a tuple with a cotangent for each argument, returned {article(given)}")
            )
        if len(given) != len(self.variables):
            raise TreeError(
                at_user_line(
                    f"{who} must return {len(self.variables)} cotangents, one an argument, returned {len(given)}"
                )
            )
        found: list[Ref] = []
        for i, (x, ct) in enumerate(zip(self.variables, given)):
            name = f"argument {i}"
            found += [conjugated(wrap(r))._ref for r in matching(who, "cotangent", x, ct, name)]
        return found


def in_order(like: Any, given: Any, of: type = array) -> Any:
    """`given`; if it nests lists otherwise than `like`, its leaves in their order, as MLX reads what rules return."""
    leaves, wanted = tree.flatten(given)[0], tree.flatten(like)[0]
    if len(leaves) != len(wanted) or not all(isinstance(x, of) for x in leaves):
        return given
    if not in_lists(given) or not in_lists(like) or not all(isinstance(x, array) for x in wanted):
        return given
    entries = iter(leaves)
    return tree.mapped(lambda _: next(entries), like)


def in_lists(given: Any) -> bool:
    """Whether lists and tuples are all that `given` has above its leaves: then their order is all it says."""
    below = tree.children(given)
    return below is None or (type(given) in (list, tuple) and all(in_lists(x) for _, x in below))


def matching(who: str, kind: str, like: Any, given: Any, root: str) -> list[Ref]:
    """One array for each inexact array in the tree `like`; None anywhere in `given` is zero."""
    leaves = tree.flatten(like)[0]
    if given is None:
        given = tree.mapped(lambda _: None, like)
    if different := tree.difference(like, given, root):
        raise TreeError(at_user_line(f"{who} must return {kind}s in the structure of the values; {different}"))
    found = []
    for x, t, path in zip(leaves, tree.flatten_like(like, given), tree.paths(like, root)):
        if isinstance(x, array) and x.dtype.is_inexact:
            t = zeros(x.shape, x.dtype) if t is None else check_like(who, kind, t, x.aval, path)
            found.append(t._ref)
    return found


def alias(x: array) -> array:
    return wrap((Node(ALIAS, NO_ATTRS, (x._ref,), (x.aval,)), 0))


# Rules


def vjp_rule(call: Call, run: Callable[[Any], Any]) -> Rule:
    """``run(cotangents)`` returns the cotangents of the primals. In the IR: (arguments, results, cotangents)."""
    with tracing():
        refs = call.begin_rule()
        outs = call.out_refs()
        seeds, cotangents = call.seeds()
        found = call.cotangents(run(cotangents))
    rule = Rule(f"{call.name}_vjp", "vjp", RecordedFunction([*refs, *outs, *seeds], found), len(refs))
    if state.stored is not None:
        nodes = [ReferenceType(node) for node, _ in seeds]
        del seeds, cotangents, found
        _keep_stored(rule, nodes, state.stored)
    return rule


def _keep_stored(rule: Rule, seeds: Sequence[ReferenceType[Node]], stored: list[StoredCotangent]) -> None:
    """Note which cotangents somebody has stored, or what was computed from them."""
    rule.recorded.renew()
    parameters = rule.recorded.parameters
    for seed, parameter in zip(seeds, parameters[len(parameters) - len(seeds) :]):
        node = seed()
        if node is not None:
            none = zeros(node.avals[0].shape, node.avals[0].dtype)
            stored.append(StoredCotangent(node, none, marker := alias(none)))
            rule.stored[marker._ref] = parameter


def tangent_rule(call: Call, run: Callable[[tuple], Any]) -> Rule:
    """``run(tangents)`` returns the tangents of the result. In the IR: (arguments, tangents)."""
    with tracing():
        refs = call.begin_rule()
        values = [placeholder(x.aval) if x.dtype.is_inexact else zeros(x.shape, x.dtype) for x in call.arrays]
        given = [x._ref for x in values if x.dtype.is_inexact]
        tangents = run(tuple(call.rebuild(values, keep=False)))
        who = f"{call.what}: the jvp rule of {call.name}"
        if call.out.treedef.num_leaves == 1 and isinstance(tangents, (tuple, list)) and len(tangents) == 1:
            tangents = tangents if tree.children(call.raw) is not None else tangents[0]
        found = matching(who, "tangent", call.raw, in_order(call.raw, tangents), "result")
    return Rule(f"{call.name}_jvp", "jvp", RecordedFunction([*refs, *given], found), len(refs))


def primal_rule(call: Call, fun: Callable) -> Rule:
    """``fun(*args)`` returns a result like that of the call. In the IR: (arguments) → (results)."""
    with tracing():
        refs = call.begin_rule()
        leaves = tree.flatten_like(call.raw, settled(fun(*call.primals)))
        outs = [leaves[i]._ref for i in call.out.places]
    return Rule(f"{call.name}_primal", "primal", RecordedFunction(refs, outs), len(refs))


def forward_rule(call: Call, fun: Callable) -> tuple[Rule, Any]:
    """``fun(*args)`` returns result and residuals. In the IR: (arguments) → (results, residuals)."""
    with tracing():
        refs = call.begin_rule()
        entries = iter(call.primals)
        given = [x if i in call.static else next(entries) for i, x in enumerate(call.arguments)]
        pair = fun(*given)
        who = f"{call.what}: the forward rule of {call.name}"
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TreeError(at_user_line(f"{who} must return a pair (result, residuals), returned {article(pair)}"))
        result, residuals = settled(pair)
        if different := tree.difference(call.raw, result, "result"):
            raise TreeError(at_user_line(f"{who} must return the result of {call.name} first; {different}"))
        leaves = tree.flatten_like(call.raw, result)
        outs = [
            check_like(who, "result", leaves[i], x.aval, f"the result of {call.name}")._ref
            for i, x in zip(call.out.places, call.out.arrays)
        ]
        kept = [x._ref for x in tree.flatten(residuals)[0] if isinstance(x, array)]
    return Rule(f"{call.name}_fwd", "forward", RecordedFunction(refs, [*outs, *kept]), len(refs)), residuals


def backward_rule(call: Call, residuals: Any, run: Callable[[Any, Any], Any]) -> Rule:
    """``run(residuals, cotangent)`` returns the cotangents. In the IR: (residuals, cotangents)."""
    with tracing():
        leaves, treedef = tree.flatten(residuals)
        markers = [alias(x) if isinstance(x, array) else x for x in leaves]
        refs = [m._ref for m in markers if isinstance(m, array)]
        seeds, cotangents = call.seeds()
        found = call.cotangents(run(tree.unflatten(treedef, markers), cotangents))
    return Rule(f"{call.name}_bwd", "backward", RecordedFunction([*refs, *seeds], found), len(refs))


def batch_rule(call: Call, rule: Callable) -> dict[str, Any]:
    """``rule(inputs, axes)`` for the innermost `smelt.vmap` that the call depends on; nothing if there is none."""
    levels = [_levels(x._ref) for x in call.arrays]
    every = set().union(*levels) | set().union(*(_levels(r) for r in call.recorded.captured))
    if not every:
        return {}
    level = max(every)
    size = level[1]
    if any(level in _levels(r) for r in call.recorded.captured):
        return {}  # the rule has no way to know
    axes = [0 if level in found else None for found in levels]
    who = f"{call.what}: the vmap rule of {call.name}"
    with tracing():
        refs, values = [], []
        for x, axis, found in zip(call.arrays, axes, levels):
            if axis is None:
                value = alias(x)
            else:
                around = found - {level}
                attrs = {"batch": max(around)} if around else NO_ATTRS
                value = placeholder(aval_of("vmap", (size, *x.shape), x.dtype), attrs)
            values.append(value)
            refs.append(value._ref)
        inputs, places = call.rebuild(values), call.rebuild(axes, keep=False)
        single = len(inputs) == 1
        pair = rule(*((inputs[0], places[0]) if single else (tuple(inputs), tuple(places))))
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TreeError(at_user_line(f"{who} must return a pair (outputs, axes), returned {article(pair)}"))
        outputs, out_axes = in_order(call.raw, pair[0]), in_order(call.raw, pair[1], int)
        if different := tree.difference(call.raw, outputs, "result"):
            raise TreeError(at_user_line(f"{who} must return outputs in the structure of the result; {different}"))
        outputs = tree.unflatten(call.out.treedef, tree.flatten_like(call.raw, outputs))
        given, found_axes = tree.flatten(outputs)[0], broadcast_axes(out_axes, outputs, "out_axes", "result")
        outs, dims = [], []
        for i, x in zip(call.out.places, call.out.arrays):
            y, axis = given[i], found_axes[i]
            aval = x.aval if axis is None else _with_axis(who, x.aval, axis, size)
            outs.append(check_like(who, "output", y, aval, f"output {i}")._ref)
            dims.append(-1 if axis is None else axis % aval.ndim)
    recorded = RecordedFunction(refs, outs)
    if any(level in _levels(r) for r in recorded.captured):
        return {}
    return {
        "smelt.custom_batch": Rule(f"{call.name}_vmap", "batch", recorded, len(refs)),
        "smelt.batch_size": size,
        "smelt.batch_axes": tuple(-1 if a is None else a for a in axes),
        "smelt.batch_out_axes": tuple(dims),
    }


def _with_axis(who: str, aval: Aval, axis: int, size: int) -> Aval:
    if not -aval.ndim - 1 <= axis <= aval.ndim:
        raise ShapeError(at_user_line(f"{who} returned the axis {axis} for a result {aval} over {size} elements"))
    at = axis % (aval.ndim + 1)
    return aval.with_shape((*aval.shape[:at], size, *aval.shape[at:]))


def _levels(ref: Ref) -> set[tuple[int, int]]:
    """The calls of `smelt.vmap` that a value depends on: (nesting, size)."""
    found = {ref[0].attrs["batch"]} if ref[0].op is PARAMETER and "batch" in ref[0].attrs else set()
    for node in topological([ref]):
        if node.op is PARAMETER and "batch" in node.attrs:
            found.add(node.attrs["batch"])
    return found


def apply_call(call: Call, rules: dict[str, Any]) -> Any:
    """The call as one node whose function carries the rules; the result."""
    functions = [call.recorded, *(r.recorded for r in rules.values() if isinstance(r, Rule))]
    markers = [marker for r in rules.values() if isinstance(r, Rule) for marker in r.stored]
    captured = [*dict.fromkeys(r for p in functions for r in p.captured), *markers]
    own = call.recorded
    f = GraphFunction(call.name, [*own.parameters, *captured], (), snapshot(own.body), own.outputs)
    made: dict[str, Any] = {}
    for name, rule in rules.items():
        if isinstance(rule, Rule):
            rule = rule.function(captured)
        elif name == "smelt.batch_axes":
            rule = (*rule, *[-1] * len(captured))
        made[name] = rule
    f.set_rules(made)
    results = apply_function(f, (), [*(x._ref for x in call.arrays), *captured], call.out.avals)
    return call.out.rebuild(results)
