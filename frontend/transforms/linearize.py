"""Linear maps: linearize, linear_transpose, and the pullback that vjp gives.

`linearize` expands the derivative of what was recorded and divides it in two: a program of the primals,
which also computes residuals, and a program that is linear in the tangents. Both come back as lazy
nodes, so the first runs once however often the second is applied, and either can be transformed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, overload

from smelt.ir import locks, mlir
from smelt.ir.aval import Aval
from smelt.ir.builder import CALL, OpView, Value, functions, read_function
from smelt.ir.control import ControlOp
from smelt.ir.errors import NotDifferentiableError, TreeError, at_user_line, file_line
from smelt.ir.flags import flags_checked
from smelt.ir.keywords import explain_keywords
from smelt.ir.op import Op
from smelt.ir.op import registry as ops
from smelt.runtime import LruCache
from smelt.runtime.compile import load_compiler
from smelt.runtime.device import reference

from ..lazy import tree
from ..lazy.arrays import array, placeholder, wrap
from ..lazy.build import build_module
from ..lazy.execution.recorded import recorded
from ..lazy.graph import APPLY, GraphFunction, Node, RecordedNode, Ref, parameter, record_function, snapshot
from ..lazy.shape_dtype import ShapeDtype
from ..lazy.signatures import Aux, R
from .recording import (
    Variables,
    apply_function,
    article,
    as_listed,
    check_function,
    check_like,
    check_no_escape,
    conjugated,
    name_of,
    record_primals,
    recording,
    tracing,
    unchanged,
)


class _Program(NamedTuple):
    """Ops in order. Values are numbered: inputs first, then the results of each op."""

    inputs: list[Aval]
    steps: list[tuple[Op, dict[str, Any], tuple[int, ...], tuple[Aval, ...]]]
    outputs: list[int]

    def nodes(self, inputs: Sequence[Ref]) -> tuple[list[Node], list[Ref]]:
        """The program as new nodes on `inputs`, and its outputs."""
        values, made = list(inputs), []
        for op, attrs, operands, avals in self.steps:
            node = Node(op, attrs, tuple([values[i] for i in operands]), avals)
            made.append(node)
            values += [(node, i) for i in range(len(avals))]
        return made, [values[i] for i in self.outputs]

    def __call__(self, inputs: Sequence[Ref]) -> list[Ref]:
        return self.nodes(inputs)[1]

    def function(self, name: str) -> GraphFunction:
        """The program as a function of the graph."""
        parameters = [parameter(a) for a in self.inputs]
        made, outputs = self.nodes(parameters)
        return GraphFunction(name, parameters, [], snapshot(made), outputs)


class _Halves(NamedTuple):
    """`first`: inputs → results and residuals. `second`: residuals and (co)tangents → what is linear in these."""

    first: _Program
    second: _Program

    @property
    def nbytes(self) -> int:
        """Memory that it keeps, roughly."""
        steps = [*self.first.steps, *self.second.steps]
        return sum(1000 + sum(getattr(value, "nbytes", 0) for value in attrs.values()) for _, attrs, *_ in steps)


#: By the function's structure and what was asked for: "push" or "pull".
_divided = LruCache(weigh=lambda halves: 0 if halves is None else halves.nbytes)


def _halves(f: GraphFunction, transform: str, attrs: dict[str, Any]) -> _Halves | None:
    """What `transform` (jvp or vjp) makes of f, divided into what needs no (co)tangents, and the rest.

    None where results cannot be had without tangents: a loop with a rule of its own carries both.
    """
    key = (f.key, transform, tuple(attrs.items()))

    def make() -> _Halves | None:
        return _divided_on_tape(f, transform, attrs) or _divided_by_passes(f, transform, attrs)

    return _divided.get_or_make(key, make)


def _divided_on_tape(f: GraphFunction, transform: str, attrs: dict[str, Any]) -> _Halves | None:
    """The halves without a module, where that can be: in microseconds an op."""
    transformed = recorded(f, ((transform, attrs),))
    n, results = len(f.parameters), len(f.outputs)
    if transformed is None:
        return None
    body = transformed.body
    primals, given = body.arguments[:n], body.arguments[n:]
    linear, before, after = locks.loaded("smelt.passes.dependence").split(body.ops, given)
    outs, found = body.returns[:results], body.returns[results:]
    if any(v in linear for v in outs):
        return None
    inputs = locks.loaded("smelt.passes.extract").inputs_of(after, found)
    residuals = [v for v in inputs if v not in linear]
    step_of = _Steps(transformed.module)
    first = _numbered(primals, before, [*outs, *residuals], step_of)
    return _Halves(first, _numbered([*residuals, *given], after, found, step_of))


def _numbered(
    inputs: Sequence[Value], ops: Sequence[OpView], outputs: Sequence[Value],
    step_of: Callable[[OpView], tuple[Op, dict[str, Any]]],
) -> _Program:  # fmt: skip
    number = {v: i for i, v in enumerate(inputs)}
    steps, count = [], len(inputs)
    for op in ops:
        avals = tuple(r.aval for r in op.results)
        steps.append((*step_of(op), tuple(number[v] for v in op.operands), avals))
        for r in op.results:
            number[r] = count
            count += 1
    return _Program([v.aval for v in inputs], steps, [number[v] for v in outputs])


def _divided_by_passes(f: GraphFunction, transform: str, attrs: dict[str, Any]) -> _Halves | None:
    load_compiler(reference)
    from smelt.passes import Pipeline
    from smelt.passes.call_graph import EXPAND
    from smelt.passes.rewrite import has_rules
    from smelt.passes.transform.split_linear import LINEAR

    if transform == "jvp":
        given, found = [f.arguments[i] for i in attrs["wrt"]], f.results
    else:
        given, found = [f.results[i] for i in attrs["seeds"]], [f.arguments[i] for i in attrs["wrt"]]
    expand = f"{EXPAND},cse,dce"  # leaves plain ops and control flow
    with mlir.lock:
        parameters = [parameter(a) for a in [*f.arguments, *given]]
        node = Node(APPLY, {"callee": f, "transforms": ((transform, attrs),)}, tuple(parameters),
                    (*f.results, *found))  # fmt: skip
        module = build_module(parameters, snapshot([node]), [(node, i) for i in range(len(node.avals))])
        rules = any(has_rules(operation) for operation in functions(module).values())
        if transform == "jvp" and attrs["wrt"] and not rules:
            module = build_module(f.parameters, f.body, f.outputs)
            expand += f",push-tangents{{wrt={'+'.join(map(str, attrs['wrt']))}}},{expand}"
        split = f"split-linear{{primals={len(f.parameters)} results={len(f.results)}}}"
        Pipeline.parse(f"{expand},{split}").run(module)
        known = functions(module)
        return _Halves(_program(module, known["main"]), _program(module, known[LINEAR])) if LINEAR in known else None


class _Steps:
    """Ops of a module as ops of the graph: with functions of the graph in place of names."""

    def __init__(self, module: Any):
        self._module = module

    def __call__(self, op: OpView) -> tuple[Op, dict[str, Any]]:
        if op.op is CALL:
            return APPLY, {"callee": self._function(op.attrs["callee"]), "transforms": ()}
        if not isinstance(op.op, ControlOp):
            return op.op, op.attrs
        return op.op, {**op.attrs, **{name: self._function(op.attrs[name]) for name in op.op.callees}}

    def _function(self, name: Any) -> Any:
        if isinstance(name, tuple):
            return tuple(self._function(n) for n in name)
        return _program(self._module, functions(self._module)[name]).function(name)


def _program(module: Any, operation: Any) -> _Program:
    read = read_function(operation)
    return _numbered(read.arguments, read.ops, read.returns, _Steps(module))


@overload
def linearize(
    fun: Callable[..., R], /, *primals: Any, has_aux: Literal[False] = False
) -> tuple[R, Callable[..., R]]: ...
@overload
def linearize(
    fun: Callable[..., tuple[R, Aux]], /, *primals: Any, has_aux: Literal[True]
) -> tuple[R, Callable[..., R], Aux]: ...
@flags_checked
def linearize(fun: Callable[..., Any], /, *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The value of `fun` and its best linear approximation there: ``(fun(*primals), f_jvp)``.

    ``f_jvp(*tangents)`` gives what `jvp` would give for these tangents, without computing `fun`
    again; it is meant to be called often.

    Args:
        fun: takes arrays (or trees), returns an array or a tree of arrays.
        primals: where to linearize.
        has_aux: whether `fun` returns ``(result, aux)``; `aux` is then a third result.

    Returns:
        What `fun` returned, and a linear function of one tangent for each primal (of its tree),
        which returns a tree like the result of `fun`.

    Raises:
        DTypeError, ShapeError, TreeError: as in `jvp`; those about tangents when ``f_jvp`` is called.

    >>> import smelt
    >>> y, f_jvp = smelt.linearize(smelt.exp, smelt.array(0.0))
    >>> y, f_jvp(smelt.array(1.0)), f_jvp(smelt.array(2.0))
    (array(1, dtype=float32), array(1, dtype=float32), array(2, dtype=float32))
    """
    with recording(), unchanged(primals):
        recorded = record_primals("smelt.linearize", fun, primals, has_aux)
    f, variables, n = recorded.function, recorded.variables, len(recorded.outs)
    inputs = [*variables.refs, *f.captured]
    halves = _halves(f, "jvp", {"wrt": variables.wrt})
    if halves is None:
        outs, residuals = apply_function(f, [], inputs, recorded.avals), []
    else:
        values = halves.first(inputs)
        outs, residuals = [wrap(r) for r in values[:n]], values[n:]

    def f_jvp(*tangents: Any) -> Any:
        given = variables.matching(tangents, "tangent")
        if halves is None:
            return recorded.rebuild(recorded.jvp(given)[n:])
        return recorded.rebuild([wrap(r) for r in halves.second([*residuals, *(given[k]._ref for k in variables.wrt)])])

    found = (recorded.rebuild(outs), f_jvp)
    return (*found, recorded.aux) if has_aux else found


def pullback(fun: Callable[..., Any], primals: Any, has_aux: bool) -> tuple[Any, ...]:
    """`vjp` without cotangents: the results, and the function from cotangents to those of the primals."""
    with recording(), unchanged(primals):
        recorded = record_primals("smelt.vjp", fun, primals, has_aux)
    f, variables, n = recorded.function, recorded.variables, len(recorded.outs)
    seeds = tuple(i for i, a in enumerate(recorded.avals) if a.dtype.is_inexact)
    halves = _halves(f, "vjp", {"wrt": variables.wrt, "seeds": seeds})
    assert halves is not None  # results never wait for cotangents
    values = halves.first([*variables.refs, *f.captured])

    def pull(cotangents: Any) -> list[Any]:
        given = [conjugated(ct) for ct in recorded.cotangents(cotangents)]
        found = halves.second([*values[n:], *(given[i]._ref for i in seeds)])
        return variables.rebuild(variables.completed([conjugated(wrap(r)) for r in found]))

    found = (as_listed(recorded, [wrap(r) for r in values[:n]]), pull)
    return (*found, recorded.aux) if has_aux else found


def linear_transpose(fun: Callable[..., Any], /, *primals: Any) -> Callable[[Any], tuple[Any, ...]]:
    """The transpose of a linear function: ``t(ct)`` with ⟨ct, fun(x)⟩ = ⟨t(ct), x⟩ for all x.

    Args:
        fun: linear in all its arguments; it takes arrays (or trees) and returns an array or a tree.
            What it adds that does not depend on them counts for nothing.
        primals: arguments of the right types: arrays or `smelt.ShapeDtype`, whose values do not matter.

    Returns:
        A function of a cotangent, of the tree of the result of `fun`, which returns a tuple with
        one entry an argument, of its tree.

    Raises:
        NotDifferentiableError: `fun` is not linear; the message names the op. TraceError: `fun` asks
        for the value of an array. TreeError, ShapeError, DTypeError: a cotangent that does not fit.

    >>> import smelt
    >>> t = smelt.linear_transpose(lambda x: 3 * x, smelt.ShapeDtype((2,), smelt.float32))
    >>> t(smelt.array([1.0, 2.0]))
    (array([3, 6], dtype=float32),)
    """
    what, who = "smelt.linear_transpose", name_of(fun)
    check_function(fun, what)
    primals = tuple(_of_types(primals))
    variables = Variables(what, who, [(f"primal {i}", x) for i, x in enumerate(primals)])
    parameters = [parameter(a) for a in variables.avals]
    with tracing():
        result = fun(*variables.rebuild([wrap(p) for p in parameters]))
    leaves, _ = tree.flatten(result)
    paths = tree.paths(result, "result")
    for x, path in zip(leaves, paths):
        if not isinstance(x, array):
            raise TreeError(at_user_line(f"{what}: a result of {who} ({path}) must be an array, found {article(x)}"))
    outs = [wrap(x._ref) for x in leaves]
    f = record_function(who, parameters, [x._ref for x in outs], keep_outside=True)
    check_no_escape(what, f.captured)
    _check_linear(f, len(parameters))

    def transposed(cotangent: Any) -> tuple:
        if different := tree.difference(result, cotangent, "result"):
            raise TreeError(at_user_line(f"{what}: the cotangent has the tree of the result of {who}; {different}"))
        given = [
            check_like(what, "cotangent", ct, x.aval, path)
            for ct, x, path in zip(tree.flatten_like(result, cotangent), outs, paths)
        ]
        found = apply_function(
            f,
            [("linear_transpose", {"wrt": tuple(range(len(parameters)))})],
            [*f.captured, *(ct._ref for ct in given)],
            variables.avals,
        )
        return tuple(variables.rebuild(found))

    return transposed


def _of_types(primals: Any) -> Any:
    """Arrays in place of types."""
    leaves, treedef = tree.flatten(primals)
    return tree.unflatten(treedef, [placeholder(x.aval) if isinstance(x, ShapeDtype) else x for x in leaves])


def _check_linear(f: GraphFunction, count: int) -> None:
    """Raise unless the outputs are linear in the first parameters, as far as ops tell."""
    linear = set(f.parameters[:count])
    for step in f.body:
        marked = [i for i, r in enumerate(step.inputs) if r in linear]
        if not marked:
            continue
        linear.update((step.node, i) for i in range(len(step.avals)))
        op = step.op
        if op is APPLY:
            if all(name == "batch" for name, _ in step.attrs["transforms"]):
                _check_linear(_reordered(step.attrs["callee"], marked), len(marked))
            continue  # of derivatives, the passes will tell
        if op.name not in ops or op.name == "stop_gradient":
            continue
        allowed = range(len(step.inputs)) if op.linear_operands is None else op.linear_operands
        if op.linearity is None or any(i not in allowed for i in marked):
            _refuse(f.name, step, "is not linear" if op.linearity is None else "is not linear in all its operands")
        if op.linearity == "each" and len(marked) > 1:
            _refuse(f.name, step, "of two arrays that both depend on the arguments is not linear")


def _reordered(f: GraphFunction, marked: Sequence[int]) -> GraphFunction:
    """f with the marked parameters in front, for `_check_linear` alone."""
    order = [f.parameters[i] for i in marked] + [p for i, p in enumerate(f.parameters) if i not in marked]
    return GraphFunction(f.name, order, [], f.body, f.outputs)


def _refuse(name: str, step: RecordedNode, why: str) -> None:
    line = f" (at {file_line(*step.where)})" if step.where else ""
    shown = ", ".join(str(n.avals[i]) for n, i in step.inputs)
    raise NotDifferentiableError(
        at_user_line(
            f"smelt.linear_transpose: {name} is not linear: smelt.{step.op.name} of {shown}{line} {why}; "
            "use smelt.vjp for its derivative"
        )
    )


explain_keywords(globals(), "linearize linear_transpose")
