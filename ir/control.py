"""Control flow: branches and loops whose bodies are functions of the module.

In the IR they are upstream region ops on tensors; a region does nothing but call a function. So mixed
types, printing and verification are upstream's, and a pass sees one op with operands and callees:

======  ============================================  ===============================================
op      IR                                            meaning
======  ============================================  ===============================================
cond    ``scf.if`` on a bool, else                    results of ``branches[index](*operands)``;
        ``scf.index_switch`` on an integer            operand 0 is the index (a bool: False, True)
while   ``scf.while``                                 ``while cond(*constants, *carry): carry = body(...)``
scan    ``scf.for`` with ``smelt.carries``            ``carry, y = body(*constants, *carry, *x)`` for the
                                                      elements x of the arrays xs along axis 0; the ys
                                                      are stacked; backwards if `reverse`
======  ============================================  ===============================================

Operands of while: constants, then the initial carry. Of scan: constants, initial carry, xs. Results of
scan: the final carry, then the stacked ys. An index out of range is not checked: `cond` takes the last
branch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import dtypes, mlir
from .aval import Aval
from .dialect import context, parse_aval, tensor_type
from .op import Op

if TYPE_CHECKING:
    from .builder import Builder, OpView, Value


class ControlOp(Op):
    """An op that runs functions of the module. It is no op of the registry: its rules are in passes.

    Attributes:
        parts: what its operands are, in order; of those with dots there are any number.
        callees: names of the attributes that hold functions. options: of the others.
        test: that of `callees` whose function says whether there is another step; empty where there is none.
    """

    num_results = -1
    kind = "control"

    def __init__(
        self, name: str, parts: Sequence[str], callees: Sequence[str], options: Sequence[str] = (), test: str = ""
    ):
        self.name, self.test = name, test  # type: ignore[misc]
        self.parts, self.callees, self.options = tuple(parts), tuple(callees), tuple(options)


#: attrs: branches (tuple of names)
COND = ControlOp("cond", ("index", "args..."), ("branches",))
#: attrs: cond, body, constants (their number)
WHILE = ControlOp("while", ("constants...", "carry..."), ("cond", "body"), ("constants",), test="cond")
#: attrs: body, constants, carries (numbers), length, reverse; checkpoint (False if missing): reverse mode
#: keeps only the carry of each step, and computes the rest again
SCAN = ControlOp(
    "scan", ("constants...", "carry...", "xs..."), ("body",),
    ("constants", "carries", "length", "reverse", "checkpoint"),
)  # fmt: skip
CONTROL_OPS = (COND, WHILE, SCAN)

#: Upstream ops that stand in a function only to serve control flow.
HELPERS = ("tensor.extract", "tensor.empty", "arith.constant", "arith.index_cast")
LOOPS = ("scf.if", "scf.index_switch", "scf.while", "scf.for")


class Layout(NamedTuple):
    """Which operands of a call, branch or loop are what: ranges, in order.

    Attributes:
        choice: what a branch is chosen by.
        constants: the arguments of calls and branches; what is the same in each step of a loop.
        carries: what a loop changes from step to step, and returns first.
        xs: the arrays whose elements are given to the steps.
    """

    choice: range
    constants: range
    carries: range
    xs: range


def layout(op: Op, attrs: dict[str, Any], count: int) -> Layout:
    """The layout of the `count` operands of a call, branch or loop.

    >>> layout(SCAN, {"constants": 1, "carries": 2}, 4)
    Layout(choice=range(0, 0), constants=range(0, 1), carries=range(1, 3), xs=range(3, 4))
    """
    lead = int(op is COND)
    n = lead + attrs.get("constants", count - lead)
    m = n + attrs.get("carries", count - n)
    return Layout(range(lead), range(lead, n), range(n, m), range(m, count))


def callees(op: OpView) -> tuple[str, ...]:
    """The functions that an op runs or refers to."""
    if op.op.kind in ("call", "function"):
        return (op.attrs["callee"],)
    if not isinstance(op.op, ControlOp):
        return ()
    found: list[str] = []
    for name in op.op.callees:
        value = op.attrs[name]
        found += value if isinstance(value, tuple) else (value,)
    return tuple(found)


# Writing


class _Emitter:
    """Appends upstream ops at an insertion point."""

    def __init__(self, ip: Any, location: Any):
        self.ip, self.location = ip, location

    def op(self, name: str, operands: Sequence[Any], types: Sequence[Any], regions: int = 0, **attrs: Any) -> Any:
        return mlir.ir.Operation.create(
            name, results=list(types), operands=list(operands), attributes=attrs or None, regions=regions,
            loc=self.location, ip=self.ip,
        )  # fmt: skip

    def block(self, region: Any, types: Sequence[Any], body: Callable[..., None]) -> None:
        """A block in `region`, filled by ``body(emitter, *arguments)``."""
        block = mlir.ir.Block.create_at_start(region, list(types), [self.location] * len(types))
        body(_Emitter(mlir.ir.InsertionPoint(block), self.location), *block.arguments)

    def call(self, callee: str, operands: Sequence[Any], types: Sequence[Any]) -> list[Any]:
        symbol = mlir.ir.FlatSymbolRefAttr.get(callee, context())
        return list(self.op("func.call", operands, types, callee=symbol).results)

    def extract(self, tensor: Any) -> Any:
        element = mlir.ir.RankedTensorType(tensor.type).element_type
        return self.op("tensor.extract", [tensor], [element]).result

    def index(self, value: int) -> Any:
        kind = mlir.ir.IndexType.get(context())
        return self.op("arith.constant", [], [kind], value=mlir.ir.IntegerAttr.get(kind, value)).result


def emit_control(
    b: Builder, op: ControlOp, operands: Sequence[Value], attrs: dict[str, Any], results: Sequence[Aval]
) -> Any:
    """Append a control-flow op; the upstream operation."""
    kind, count = operands[0].dtype.kind if op is COND else "", len(attrs.get("branches", ()))
    if kind == "u" or (kind == "b" and count != 2):
        operands = [b.convert_to(operands[0], dtypes.int64), *operands[1:]]  # what upstream can make an index of
    e = _Emitter(b.ip, b.location)
    types = [tensor_type(a) for a in results]
    values = [v.mlir for v in operands]
    if op is COND:
        return _emit_cond(e, operands[0].dtype, values, attrs["branches"], types)
    if op is WHILE:
        return _emit_while(e, values, attrs, types)
    return _emit_scan(e, [v.aval for v in operands], values, attrs, results)


def _emit_cond(e: _Emitter, dtype: Any, values: list[Any], branches: Sequence[str], types: list[Any]) -> Any:
    ir = mlir.ir
    index, *arguments = values

    def branch(name: str) -> Callable[..., None]:
        return lambda inner: inner.op("scf.yield", inner.call(name, arguments, types), [])

    chosen = e.extract(index)
    if dtype is dtypes.bool_ and len(branches) == 2:
        operation = e.op("scf.if", [chosen], types, regions=2)
        order = branches[::-1]
    else:
        chosen = e.op("arith.index_cast", [chosen], [ir.IndexType.get(context())]).result
        cases = ir.DenseI64ArrayAttr.get(list(range(len(branches) - 1)), context())
        operation = e.op("scf.index_switch", [chosen], types, regions=len(branches), cases=cases)
        order = (branches[-1], *branches[:-1])  # the default region comes first
    for region, name in zip(operation.regions, order):
        e.block(region, [], branch(name))
    return operation


def _emit_while(e: _Emitter, values: list[Any], attrs: dict[str, Any], types: list[Any]) -> Any:
    constants, carry = values[: attrs["constants"]], values[attrs["constants"] :]
    truth = tensor_type(Aval((), dtypes.bool_))
    operation = e.op("scf.while", carry, types, regions=2)

    def before(inner: _Emitter, *state: Any) -> None:
        (again,) = inner.call(attrs["cond"], [*constants, *state], [truth])
        inner.op("scf.condition", [inner.extract(again), *state], [])

    def after(inner: _Emitter, *state: Any) -> None:
        inner.op("scf.yield", inner.call(attrs["body"], [*constants, *state], types), [])

    e.block(operation.regions[0], types, before)
    e.block(operation.regions[1], types, after)
    return operation


def _emit_scan(
    e: _Emitter, avals: list[Aval], values: list[Any], attrs: dict[str, Any], results: Sequence[Aval]
) -> Any:
    ir, ctx = mlir.ir, context()
    n, m, length = attrs["constants"], attrs["carries"], attrs["length"]
    constants, carry, xs = values[:n], values[n : n + m], values[n + m :]
    types = [tensor_type(a) for a in results]
    elements = [tensor_type(a.with_shape(a.shape[1:])) for a in results[m:]]
    bounds = [e.index(0), e.index(length), e.index(1)]
    last = e.index(length - 1) if attrs["reverse"] else None
    stacked = [e.op("tensor.empty", [], [t]).result for t in types[m:]]
    i64 = ir.IntegerType.get_signless(64, ctx)
    marks = {"smelt.constants": ir.IntegerAttr.get(i64, n), "smelt.carries": ir.IntegerAttr.get(i64, m)}
    if attrs.get("checkpoint"):
        marks["smelt.checkpoint"] = ir.UnitAttr.get(ctx)
    operation = e.op("scf.for", [*bounds, *carry, *stacked], types, regions=1, **marks)

    def slice_of(aval: Aval) -> dict[str, Any]:
        dynamic = -(2**63)
        rest = list(aval.shape[1:])
        static = ir.DenseI64ArrayAttr.get
        return {
            # The verifier refuses a constant offset along an axis of no elements.
            "static_offsets": static([dynamic] + [0 if d else dynamic for d in rest], ctx),
            "static_sizes": static([1, *rest], ctx),
            "static_strides": static([1] * (1 + len(rest)), ctx),
        }

    def body(inner: _Emitter, i: Any, *state: Any) -> None:
        def offsets(aval: Aval) -> list[Any]:
            return [at] * (1 + aval.shape[1:].count(0))

        at = i if last is None else inner.op("arith.subi", [last, i], [ir.IndexType.get(ctx)]).result
        taken = []
        for x, aval in zip(xs, avals[n + m :]):
            sizes = ir.DenseI32ArrayAttr.get([1, len(offsets(aval)), 0, 0], ctx)
            element = tensor_type(aval.with_shape(aval.shape[1:]))
            places = [x, *offsets(aval)]
            taken.append(
                inner.op("tensor.extract_slice", places, [element], operandSegmentSizes=sizes, **slice_of(aval)).result
            )
        found = inner.call(attrs["body"], [*constants, *state[:m], *taken], [*types[:m], *elements])
        for y, into, aval in zip(found[m:], state[m:], results[m:]):
            sizes = ir.DenseI32ArrayAttr.get([1, 1, len(offsets(aval)), 0, 0], ctx)
            put = inner.op(
                "tensor.insert_slice", [y, into, *offsets(aval)], [into.type], operandSegmentSizes=sizes,
                **slice_of(aval),
            )
            found[m + list(state[m:]).index(into)] = put.result
        inner.op("scf.yield", found, [])

    e.block(operation.regions[0], [ir.IndexType.get(ctx), *types], body)
    return operation


# Meaning


def interpret(
    op: ControlOp, attrs: dict[str, Any], operands: Sequence[np.ndarray], results: Sequence[Aval],
    run: Callable[[str, Sequence[np.ndarray]], list[np.ndarray]],
) -> list[np.ndarray]:  # fmt: skip
    """The reference: `run(name, arguments)` runs a function."""
    if op is COND:
        index, *arguments = operands
        branches = attrs["branches"]
        at = int(index)
        return run(branches[at if 0 <= at < len(branches) else -1], arguments)
    n = attrs["constants"]
    constants = list(operands[:n])
    if op is WHILE:
        carry = list(operands[n:])
        while bool(run(attrs["cond"], [*constants, *carry])[0]):
            carry = run(attrs["body"], [*constants, *carry])
        return carry
    m, length = attrs["carries"], attrs["length"]
    carry, xs = list(operands[n : n + m]), operands[n + m :]
    stacked = [np.empty(a.shape, a.dtype.numpy) for a in results[m:]]
    order = range(length)
    for i in reversed(order) if attrs["reverse"] else order:
        found = run(attrs["body"], [*constants, *carry, *(np.asarray(x[i]) for x in xs)])
        carry = found[:m]
        for into, y in zip(stacked, found[m:]):
            into[i] = y
    return [*carry, *stacked]


def result_avals(operation: Any) -> list[Aval]:
    return [parse_aval(r.type) for r in operation.results]
