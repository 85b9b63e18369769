"""Functions with rules of their own: calls that the transformations do not look into.

Attributes of a private function say how calls of it are transformed. Until no transformation is left
they stay calls (see `inline`); then the rules that nobody used vanish with the rest that is unused.

==========================  ======================================================================
attribute of ``@f``         meaning
==========================  ======================================================================
``smelt.custom_vjp``        @f_vjp: (residuals, cotangents of the inexact results of f) → cotangents
                            of its inexact arguments
``smelt.custom_forward``    @f_fwd: (arguments of f) → (results of f, residuals); without it the
                            residuals are the arguments and results of f
``smelt.custom_jvp``        @f_jvp: (arguments of f, tangents of the inexact ones) → tangents of the
                            inexact results
``smelt.custom_primal``     @f_primal: what a derivative leaves in the place of f for further derivatives,
                            of f's type; without it f stays
``smelt.custom_batch``      @f_batch: f over a batch, for ``smelt.batch_size`` elements and
                            arguments batched along axis 0 or not at all, as ``smelt.batch_axes``
                            lists (0 or -1); ``smelt.batch_out_axes`` likewise, any axis
``smelt.checkpoint``        reverse mode keeps the arguments of f as its only residuals, and
                            computes f again when cotangents arrive
``smelt.custom_transpose``  of a declaration without a body, a linear map that is known only by its
                            transpose: the rule that `smelt.custom_vjp` gives. Written by `linearize`
==========================  ======================================================================

A missing rule falls back: reverse mode to the jvp rule, which is transposed, and then to f itself;
forward mode and batching to f itself. Batching f where no batch rule fits batches its rules as well,
so that a derivative of the batched function still uses them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from smelt.ir import mlir
from smelt.ir.attributes import attributes_of
from smelt.ir.aval import Aval
from smelt.ir.builder import (
    Builder,
    Function,
    OpView,
    Value,
    fresh_name,
    function_named,
    function_operation,
    function_type,
    new_function,
    read_function,
    symbols,
)
from smelt.ir.dialect import context
from smelt.ir.errors import IRError

from ..extract import cut, set_type
from ..rewrite import CHECKPOINT, has_body, has_rules, replay, rules_of
from ..rules import Attrs, Dims, Flags, FunctionRules, Maybe, Values, register_rules
from ..simplify.reads import ModuleReads, Needs
from .jvp import make_jvp, push_tangents
from .partition import drop_separated, linear_values, merge, pick, separate, stem_of
from .transpose import make_transpose

if TYPE_CHECKING:
    from .batch import Batching

VJP, FORWARD, JVP = "smelt.custom_vjp", "smelt.custom_forward", "smelt.custom_jvp"
PRIMAL, BATCH, TRANSPOSE = "smelt.custom_primal", "smelt.custom_batch", "smelt.custom_transpose"


@register_rules("func.call")
class CallRules(FunctionRules):
    """A function, run once."""

    # Batching

    def varying(self, t: Batching, op: OpView, flags: Flags) -> list[bool]:
        return [any(flags)] * len(op.results)

    def batch(
        self, t: Batching, b: Builder, op: OpView, operands: Values, dims: Dims, mask: Value | None
    ) -> tuple[Values, Dims]:
        callee = function_operation(t.module, op.attrs["callee"])
        flags = [d is not None for d in dims]
        moved = [v if d is None else b.move_axis(v, d, 0) for v, d in zip(operands, dims)]
        rules = rules_of(callee)
        axes = tuple(0 if flag else -1 for flag in flags)
        if BATCH in rules and _integers(callee, "smelt.batch_axes") == axes:
            if _integer(callee, "smelt.batch_size") == t.size:
                out_axes = _integers(callee, "smelt.batch_out_axes")
                found = _inlined(b, _function(t.module, rules[BATCH]), moved, _batched(op, out_axes, t.size))
                return found, [None if a < 0 else a for a in out_axes]
        function = _decoded(callee, op)
        if mask is not None or not (VJP in rules or JVP in rules or CHECKPOINT in callee.attributes):
            return t.emit(b, function, moved, [0 if flag else None for flag in flags], mask)
        name = _batched_with_rules(t, function, flags)
        outs = t.batched([r.aval for r in op.results], [True] * len(op.results))
        return b.call(name, moved, outs), [0] * len(outs)

    # Derivatives

    def jvp(
        self, module: Any, b: Builder, op: OpView, operands: Values, tangents: Maybe, linearize: bool
    ) -> tuple[Values, Maybe]:
        callee = function_operation(module, op.attrs["callee"])
        rules = rules_of(callee)
        if linearize and VJP in rules:
            return _push_by_vjp(module, b, op, operands, tangents, rules)
        if JVP in rules:
            given = [t for v, t in zip(operands, _instantiated(b, operands, tangents)) if v.aval.dtype.is_inexact]
            avals = [v.aval for v in op.results if v.aval.dtype.is_inexact]
            out = _inlined(b, _function(module, rules[JVP]), [*operands, *given], avals)
            return _primal(module, b, op, operands, rules), _spread(op.results, out)
        function = _decoded(callee, op)
        if CHECKPOINT in callee.attributes:
            return _push_checkpoint(module, b, op, operands, tangents, function, linearize)
        results, outgoing = push_tangents(module, b, function, operands, tangents, linearize)
        if VJP in rules:
            # An outer reverse mode finds the call, with its rule; equal work is merged later.
            results = list(_primal(module, b, op, operands, rules))
        return results, outgoing

    def dependent(self, module: Any, attrs: Attrs, flags: Flags) -> list[bool]:
        """A checkpoint is looked into; other calls are linear as a whole, by their rules."""
        callee = function_operation(module, attrs["callee"])
        if CHECKPOINT not in callee.attributes or not has_body(callee):
            return [any(flags)] * _count_results(callee)
        function = read_function(callee)
        linear = linear_values(module, function, flags)
        return [v in linear for v in function.returns]

    def partition(
        self, module: Any, b: Builder, attrs: Attrs, operands: Values, flags: Flags, avals: Sequence[Aval]
    ) -> list[Value]:
        """The linear call keeps the operands alone, behind barriers: what it computes again stays apart."""
        callee = _function(module, attrs["callee"])
        body, stem = separate(module, callee, flags), stem_of(callee.name)
        linear = linear_values(module, body, flags)
        outs = [v in linear for v in body.returns]
        plain, pushed = pick(body.returns, outs, False), pick(body.returns, outs)
        primal = cut(module, f"{stem}_primal", body, pick(body.arguments, flags, False), plain, effects=True)
        tangent = cut(module, f"{stem}_tangent", body, body.arguments, pushed)
        for made in (primal, tangent):
            made.mlir.attributes[CHECKPOINT] = callee.mlir.attributes[CHECKPOINT]
        drop_separated(module, [callee], [body])
        results = b.call(primal.name, pick(operands, flags, False), [v.aval for v in plain])
        again = [v if flag else b.barrier(v) for v, flag in zip(operands, flags)]
        found = b.call(tangent.name, again, [v.aval for v in pushed]) if pushed else ()
        return merge(outs, results, found)

    def transpose(
        self, module: Any, b: Builder, op: OpView, cotangents: Maybe, operands: Values, linear: Flags
    ) -> Maybe:
        callee = function_operation(module, op.attrs["callee"])
        given = [b.zeros(r.aval) if ct is None else ct for r, ct in zip(op.results, cotangents)]
        residuals = [v for v, is_linear in zip(operands, linear) if not is_linear]
        rules = rules_of(callee)
        if TRANSPOSE in rules:
            rule = _function(module, rules[TRANSPOSE])
            first = len(operands) - len(rule.returns)  # tangents that are zero stand among them
            if any(linear[:first]):
                raise IRError(f"@{op.attrs['callee']} is linear in its last {len(rule.returns)} arguments only")
            found = _inlined(b, rule, [*operands[:first], *given], [v.aval for v in operands[first:]])
            return [None] * first + [ct if flag else None for ct, flag in zip(found, linear[first:])]
        function = _decoded(callee, op)
        positions = tuple(i for i, flag in enumerate(linear) if flag)
        name = make_transpose(module, function, {"wrt": positions})
        if CHECKPOINT in callee.attributes:
            _mark(module, name, CHECKPOINT)
        pulled = iter(b.call(name, [*residuals, *given], [operands[i].aval for i in positions]))
        return [next(pulled) if flag else None for flag in linear]

    # Simplification

    def needs(self, reads: ModuleReads, op: OpView) -> Needs:
        return reads.one_of([op.attrs["callee"]], 0)


# Derivatives


def _primal(module: Any, b: Builder, op: OpView, operands: Values, rules: dict[str, str]) -> Values:
    """The results of the call, beside a derivative of it."""
    if PRIMAL not in rules:
        return b.clone(op, operands)
    return _inlined(b, _function(module, rules[PRIMAL]), operands, [v.aval for v in op.results])


def _push_by_vjp(
    module: Any, b: Builder, op: OpView, operands: Values, tangents: Maybe, rules: dict[str, str]
) -> tuple[Values, Maybe]:
    results: Values
    residuals: Values
    if FORWARD in rules:
        values = _inlined(b, _function(module, rules[FORWARD]), operands, [v.aval for v in op.results], more=True)
        results, residuals = values[: len(op.results)], values[len(op.results) :]
    else:
        results = _primal(module, b, op, operands, rules)
        residuals = [*operands, *results]
    given = [t for v, t in zip(operands, _instantiated(b, operands, tangents)) if v.aval.dtype.is_inexact]
    avals = [v.aval for v in op.results if v.aval.dtype.is_inexact]
    arguments = [v.aval for v in (*residuals, *given)]
    name = _declare(module, op.attrs["callee"], arguments, avals, rules[VJP])
    return results, _spread(op.results, b.call(name, [*residuals, *given], avals))


def _push_checkpoint(
    module: Any, b: Builder, op: OpView, operands: Values, tangents: Maybe, function: Function, linearize: bool
) -> tuple[Values, Maybe]:
    active = [i for i, t in enumerate(tangents) if t is not None and operands[i].aval.dtype.is_inexact]
    given = [t for i in active if (t := tangents[i]) is not None]
    avals = [r.aval for r in op.results]
    if not linearize:
        name = make_jvp(module, function, {"wrt": tuple(active)})
        _mark(module, name, CHECKPOINT)
        values = b.call(name, [*operands, *given], avals + avals)
        return values[: len(avals)], [t if t.aval.dtype.is_inexact else None for t in values[len(avals) :]]
    name, known = make_tangent(module, function, active)
    found = iter(b.call(name, [*operands, *given], [avals[i] for i in known]))
    return b.clone(op, operands), [next(found) if i in known else None for i in range(len(avals))]


def make_tangent(module: Any, function: Function, active: Sequence[int]) -> tuple[str, list[int]]:
    """The function (arguments, tangents of the active ones) → tangents of results, which computes all that
    it needs of `function` again. Its name, and which results have a tangent."""
    avals = [a.aval for a in function.arguments]
    name = fresh_name(module, f"{function.name}_again")
    operation, arguments, b = new_function(
        module, name, avals + [avals[i] for i in active], [], function.mlir.location, before=function.mlir
    )
    tangents: list[Value | None] = [None] * len(avals)
    for i, t in zip(active, arguments[len(avals) :]):
        tangents[i] = t
    primals = [b.barrier(v) for v in arguments[: len(avals)]]
    _, outgoing = push_tangents(module, b, function, primals, tangents, linearize=True)
    known = [i for i, t in enumerate(outgoing) if t is not None]
    returned = [t for t in outgoing if t is not None]
    b.return_(returned)
    set_type(operation, arguments, returned)
    _mark(module, name, CHECKPOINT)
    return name, known


# Batching


def _batched_with_rules(batching: Batching, function: Function, flags: list[bool]) -> str:
    """The function over the batch, all results batched, with rules that are those of `function` over the batch."""
    module, count = batching.module, len(function.returns)
    name = batching.function(function.name, flags, [True] * count, False)
    made = function_operation(module, name)
    if has_rules(made):
        return name
    rules = rules_of(function.mlir)
    if CHECKPOINT in function.mlir.attributes:
        _mark(module, name, CHECKPOINT)
    inexact = [flag for a, flag in zip(function.arguments, flags) if a.aval.dtype.is_inexact]
    if JVP in rules:
        set_rule(made, JVP, rules[JVP])  # rules may refer to each other: this one counts as made
        rule = batching.read(rules[JVP])
        jvp_name = batching.function(rule.name, [*flags, *inexact], [True] * len(rule.returns), False)
        set_rule(made, JVP, jvp_name)
    if PRIMAL in rules:
        set_rule(made, PRIMAL, rules[PRIMAL])
        primal = batching.read(rules[PRIMAL])
        set_rule(made, PRIMAL, batching.function(primal.name, flags, [True] * count, False))
    if VJP in rules:
        set_rule(made, VJP, rules[VJP])
        kept = [*flags, *[True] * count]
        if FORWARD in rules:
            forward = batching.read(rules[FORWARD])
            forward_name = batching.function(forward.name, flags, [True] * len(forward.returns), False)
            set_rule(made, FORWARD, forward_name)
            kept = [True] * (len(forward.returns) - count)
        set_rule(made, VJP, _batched_pullback(batching, batching.read(rules[VJP]), kept, inexact))
    return name


def _batched_pullback(batching: Batching, rule: Function, residuals: list[bool], flags: list[bool]) -> str:
    """A vjp rule over the batch: cotangents of arguments that are not batched are summed over it."""
    batched = [*residuals, *[True] * (len(rule.arguments) - len(residuals))]

    def emit(b: Builder, values: list[Value]) -> list[Value]:
        outs, places = batching.emit(b, rule, values, [0 if flag else None for flag in batched])
        outs = batching.settle(b, outs, places, [True] * len(outs))
        return [x if flag else b.reduce_sum(x, axes=(0,)) for x, flag in zip(outs, flags)]

    arguments = batching.batched([a.aval for a in rule.arguments], batched)
    results = batching.batched([r.aval for r in rule.returns], flags)
    key = (rule.name, "vjp", *batched, *flags)
    return batching.build(rule.name, f"{rule.name}_batch", key, arguments, results, emit)


# Helpers


def _function(module: Any, name: str) -> Function:
    if name not in symbols(module):
        raise IRError(f"the module has no function @{name}, which another function names as its rule")
    return function_named(module, name)


def _count_results(operation: Any) -> int:
    if isinstance(operation, Function):
        return len(operation.returns)
    return len(mlir.ir.FunctionType(mlir.ir.TypeAttr(operation.attributes["function_type"]).value).results)


def _decoded(callee: Any, op: OpView) -> Function:
    if not has_body(callee):
        raise IRError(f"@{op.attrs['callee']} has no body and no rule for this transformation; at {op.location}")
    return read_function(callee)


def _batched(op: OpView, axes: Sequence[int], size: int) -> list[Aval]:
    """The results of a call with a batch axis at `axes` (negative: none)."""
    avals = [r.aval for r in op.results]
    if len(axes) != len(avals) or any(axis > aval.ndim for axis, aval in zip(axes, avals)):
        callee = op.attrs["callee"]
        raise IRError(f"smelt.batch_out_axes of @{callee} is {tuple(axes)}, but its results are {_listed(avals)}")
    return [
        aval if axis < 0 else aval.with_shape((*aval.shape[:axis], size, *aval.shape[axis:]))
        for aval, axis in zip(avals, axes)
    ]


def _listed(avals: Sequence[Aval]) -> str:
    return f"({', '.join(map(str, avals))})"


def _inlined(
    b: Builder, function: Function, arguments: Values, results: Sequence[Aval], more: bool = False
) -> list[Value]:
    """The results of a rule, its ops emitted here; they must be `results`, with `more` those and others."""
    want, have = [a.aval for a in function.arguments], [v.aval for v in arguments]
    if want != have:
        raise IRError(f"the rule @{function.name} takes {_listed(want)}, but is given {_listed(have)}")
    found = [v.aval for v in function.returns]
    if found[: len(results)] != list(results) or (len(found) > len(results) and not more):
        others = " and residuals" if more else ""
        raise IRError(f"the rule @{function.name} must return {_listed(results)}{others}, but returns {_listed(found)}")
    env = dict(zip(function.arguments, arguments))
    replay(b, function.ops, env)
    return [env[v] for v in function.returns]


def _instantiated(b: Builder, primals: Values, tangents: Maybe) -> list[Value]:
    return [b.zeros_like(v) if t is None else t for v, t in zip(primals, tangents)]


def _spread(results: Values, tangents: Values) -> list[Value | None]:
    """Maybe of the inexact results in their places."""
    found = iter(tangents)
    return [next(found) if r.aval.dtype.is_inexact else None for r in results]


def _declare(module: Any, stem: str, arguments: Sequence[Aval], results: Sequence[Aval], transpose_rule: str) -> str:
    """A linear function without a body, known by its transpose."""
    before = function_operation(module, stem)
    name = fresh_name(module, f"{stem}_linear")
    if isinstance(before, Function):
        made, _, _ = new_function(module, name, arguments, results, before.mlir.location)
        made.has_body, made.attributes[TRANSPOSE] = False, transpose_rule
        return name
    ir = mlir.ir
    attrs = {
        "sym_name": ir.StringAttr.get(name, context()),
        "sym_visibility": ir.StringAttr.get("private", context()),
        "function_type": ir.TypeAttr.get(function_type(arguments, results), context()),
        TRANSPOSE: _symbol(transpose_rule),
    }
    ip = ir.InsertionPoint(before)
    ir.Operation.create("func.func", attributes=attrs, regions=1, loc=before.location, ip=ip)
    return name


def _mark(module: Any, name: str, attribute: str) -> None:
    operation = function_operation(module, name)
    operation.attributes[attribute] = True if isinstance(operation, Function) else mlir.ir.UnitAttr.get(context())


def set_rule(operation: Any, attribute: str, name: str) -> None:
    """Give a function a rule: the function called `name`."""
    operation.attributes[attribute] = name if isinstance(operation, Function) else _symbol(name)


def _symbol(name: str) -> Any:
    return mlir.ir.FlatSymbolRefAttr.get(name, context())


def _integers(operation: Any, name: str) -> tuple[int, ...]:
    if name not in operation.attributes:
        return ()
    if isinstance(operation, Function):
        return tuple(operation.mlir.attributes[name])
    return tuple(_attribute(operation, name, mlir.ir.DenseI64ArrayAttr, "array<i64: 0, -1>"))


def _integer(operation: Any, name: str) -> int:
    if name not in operation.attributes:
        return -1
    if isinstance(operation, Function):
        return int(operation.mlir.attributes[name])
    return int(_attribute(operation, name, mlir.ir.IntegerAttr, "8 : i64").value)


def _attribute(operation: Any, name: str, kind: Any, example: str) -> Any:
    try:
        return kind(operation.attributes[name])
    except (ValueError, TypeError):
        found = attributes_of(operation)[name]
        raise IRError(f"{name} must be like {example}, is {found}; at {operation.location}") from None
