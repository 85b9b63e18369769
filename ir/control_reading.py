"""Control flow read back from the IR: the exact forms that `emit_control` writes, and no others.

A pass sees a branch or loop as one op with operands and callees. That is right only if the region ops say
nothing besides, so everything that they could say otherwise (a step other than 1, results in another order,
a slice at another place) is an error here rather than a program with another meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import mlir
from .control import COND, SCAN, WHILE, ControlOp
from .dialect import parse_aval
from .errors import IRError

if TYPE_CHECKING:
    from .builder import Value

#: (op, operands, attributes)
Decoded = tuple[ControlOp, tuple["Value", ...], dict[str, Any]]

DYNAMIC = -(2**63)  #: stands in a static offset for one that is an operand


class _FormError(Exception):
    """What is not as `emit_control` writes it."""


def decode_control(operation: Any, values: dict[Any, Value]) -> Decoded:
    """(op, operands, attributes) of an ``scf`` operation.

    Args:
        values: the values of smelt ops and arguments before it.

    Raises:
        IRError: for one that `emit_control` cannot write.
    """
    name = operation.name
    try:
        if name in ("scf.if", "scf.index_switch"):
            return _decode_cond(operation, values)
        return _decode_while(operation, values) if name == "scf.while" else _decode_scan(operation, values)
    except _FormError as error:
        raise IRError(f"{name}: {error}; at {operation.location}") from None
    except (KeyError, IndexError, ValueError, TypeError, AttributeError) as error:
        raise IRError(
            f"{name}: its regions must do nothing but call a function, as smelt writes them (see "
            f"smelt.ir.control); at {operation.location}"
        ) from error


def _need(condition: bool, message: str) -> None:
    if not condition:
        raise _FormError(message)


def _region(region: Any, *names: str) -> list[Any]:
    """The ops of a region, which must have these names: ``name*`` stands for any number, ``name?`` for one or none."""
    _need(len(region.blocks) == 1, "a region without a block, or with several")
    ops = [item.operation for item in region.blocks[0].operations]
    left = list(ops)
    for name in names:
        plain = name.rstrip("*?")
        most = len(left) if name.endswith("*") else 1
        count = 0
        while count < most and left and left[0].name == plain:
            left.pop(0)
            count += 1
        if not count and plain == name:
            break
    else:
        if not left:
            return ops
    odd = left[0].name if left else "its end"
    raise _FormError(
        f"{odd} in a region where smelt writes {', '.join(names)}; regions call a function and do nothing else"
    )


def _callee(call: Any) -> str:
    return mlir.ir.FlatSymbolRefAttr(call.attributes["callee"]).value


def _made_by(value: Any, name: str) -> Any:
    """The operation that a value is the result of."""
    owner = value.owner
    found = getattr(owner, "operation", owner)
    _need(getattr(found, "name", None) == name, f"smelt writes {name} for one of its operands")
    return found


def _index_constant(value: Any) -> int:
    return int(mlir.ir.IntegerAttr(_made_by(value, "arith.constant").attributes["value"]).value)


def _scalar(value: Any) -> Any:
    """The 0-d tensor that a scalar was extracted from."""
    found = _made_by(value, "tensor.extract")
    _need(len(found.operands) == 1, "what it decides on must be extracted from a tensor without axes")
    return found.operands[0]


# Branches


def _decode_cond(operation: Any, values: dict[Any, Value]) -> Decoded:
    if operation.name == "scf.if":
        index = _scalar(operation.operands[0])
    else:
        index = _scalar(_made_by(operation.operands[0], "arith.index_cast").operands[0])
        cases = list(mlir.ir.DenseI64ArrayAttr(operation.attributes["cases"]))
        _need(cases == list(range(len(cases))), f"its cases are {cases}; they must be 0, 1, 2, ...")
    names: list[str] = []
    arguments: list[Any] = []
    for region in operation.regions:
        call, end = _region(region, "func.call", "scf.yield")
        _need(list(end.operands) == list(call.results), "a branch must yield the results of its call, in order")
        given = list(call.operands)
        _need(not names or given == arguments, "its branches are called with different operands")
        arguments = given
        names.append(_callee(call))
    order = names[::-1] if operation.name == "scf.if" else [*names[1:], names[0]]
    return COND, (values[index], *(values[v] for v in arguments)), {"branches": tuple(order)}


# While


def _decode_while(operation: Any, values: dict[Any, Value]) -> Decoded:
    before, after = operation.regions
    test, extract, condition = _region(before, "func.call", "tensor.extract", "scf.condition")
    step, end = _region(after, "func.call", "scf.yield")
    count = len(operation.operands)
    n = len(test.operands) - count
    _need(n >= 0, "its condition must take all of the carry")
    state = list(before.blocks[0].arguments)
    tested, stepped = list(test.operands), list(step.operands)
    _need(tested[n:] == state, "its condition must take the constants, then the carry, in order")
    _need(
        list(extract.operands) == list(test.results) and list(condition.operands) == [extract.results[0], *state],
        "its condition must pass on the result of its call, then the carry, in order",
    )
    _need(
        stepped[n:] == list(after.blocks[0].arguments) and stepped[:n] == tested[:n],
        "its body must take the constants that its condition takes, then the carry, in order",
    )
    _need(list(end.operands) == list(step.results), "its body must yield the results of its call, in order")
    operands = (*(values[v] for v in tested[:n]), *(values[v] for v in operation.operands))
    return WHILE, operands, {"cond": _callee(test), "body": _callee(step), "constants": n}


# Scan


def _mark(operation: Any, name: str) -> int:
    _need(name in operation.attributes, f"a loop needs the attributes smelt.constants and smelt.carries; no {name}")
    found = mlir.ir.IntegerAttr(operation.attributes[name]).value
    _need(found.bit_length() < 64, f"{name} does not fit into 64 bits")
    _need(found >= 0, f"{name} is {found}; it must not be negative")
    return int(found)


def _decode_scan(operation: Any, values: dict[Any, Value]) -> Decoded:
    n, m = _mark(operation, "smelt.constants"), _mark(operation, "smelt.carries")
    low, high, by, *initial = operation.operands
    length = _index_constant(high)
    _need(_index_constant(low) == 0 and _index_constant(by) == 1, "it must count from 0 in steps of 1")
    _need(length >= 0, f"its number of steps is {length}; it must not be negative")
    _need(m <= len(initial), f"smelt.carries is {m}, but it carries {len(initial)} values")
    for value in initial[m:]:
        _made_by(value, "tensor.empty")

    region = operation.regions[0]
    ops = _region(region, "arith.subi?", "tensor.extract_slice*", "func.call", "tensor.insert_slice*", "scf.yield")
    at, *state = region.blocks[0].arguments
    reverse = ops[0].name == "arith.subi"
    if reverse:
        last, counter = ops[0].operands
        _need(counter == at and _index_constant(last) == length - 1, "a loop backwards starts with the last step")
        at = ops.pop(0).results[0]
    *taken, call = ops[: [op.name for op in ops].index("func.call") + 1]
    put, end = ops[len(taken) + 1 : -1], ops[-1]

    operands, results = list(call.operands), list(call.results)
    _need(operands[n : n + m] == state[:m], "its call must take the constants, then the carry, then the slices")
    _need(operands[n + m :] == [op.results[0] for op in taken], "its call must take the slices, in order")
    for op in taken:
        _check_slice(op, op.operands[0].type, op.operands[1:], at, length)
    for op, y, into in zip(put, results[m:], state[m:]):
        _need(list(op.operands)[:2] == [y, into], "its results must be inserted each into its own, in order")
        _check_slice(op, into.type, op.operands[2:], at, length)
    _need(
        len(put) == len(results) - m and list(end.operands) == [*results[:m], *(op.results[0] for op in put)],
        "it must yield the carry that its call returns, then what its results were inserted into, in order",
    )

    attrs = {"body": _callee(call), "constants": n, "carries": m, "length": length, "reverse": reverse,
             "checkpoint": "smelt.checkpoint" in operation.attributes}  # fmt: skip
    sources = [*operands[:n], *initial[:m], *(op.operands[0] for op in taken)]
    return SCAN, tuple(values[v] for v in sources), attrs


def _check_slice(op: Any, whole: Any, places: Sequence[Any], at: Any, length: int) -> None:
    """Check that a slice is element `at` along axis 0 of an array with as many elements as there are steps."""
    aval = parse_aval(whole)
    _need(aval.ndim > 0 and aval.shape[0] == length, f"{aval} does not have one element for each of {length} steps")
    rest = aval.shape[1:]
    read = mlir.ir.DenseI64ArrayAttr
    # An axis of no elements has no constant offset.
    offsets = [DYNAMIC, *(0 if d else DYNAMIC for d in rest)]
    _need(
        list(read(op.attributes["static_offsets"])) == offsets
        and all(place == at for place in places)
        and list(read(op.attributes["static_sizes"])) == [1, *rest]
        and all(stride == 1 for stride in read(op.attributes["static_strides"])),
        f"{op.name} must take the element of this step along axis 0 of {aval}",
    )
