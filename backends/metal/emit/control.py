"""Rules for `scf`, `func` and ops with several results: loops, conditions, calls, assignments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from smelt.ir import mlir

from .arith import negate
from .expressions import ADD, MULTIPLY, Expression, binary, call, cast, signed, unsigned, variable
from .ir import Block, Op, Value, kind_of
from .types import type_name

if TYPE_CHECKING:
    from .body import Body

_CARRIED_NAMES = {
    "arith.addf": "sum", "arith.addi": "sum", "arith.mulf": "product", "arith.muli": "product",
    "arith.maximumf": "largest", "arith.maxnumf": "largest", "arith.maxsi": "largest", "arith.maxui": "largest",
    "arith.minimumf": "smallest", "arith.minnumf": "smallest", "arith.minsi": "smallest",
    "arith.minui": "smallest", "math.fma": "sum", "gpu.subgroup_mma_compute": "acc", "vector.insert": "values",
}  # fmt: skip
_COUNTERS = "i j k l m n p q"
_COMPOUND = {"+": ADD, "-": ADD, "*": MULTIPLY, "/": MULTIPLY}


# Assignments


def assign(b: Body, end: Op, targets: Sequence[str], values: Sequence[Value]) -> None:
    """All of ``target = value`` at once: no assignment changes what a later one reads."""
    left = []
    for target, value in zip(targets, values):
        e = b.use(value)
        if e.text == target:
            continue
        if len(e.text) > 90 and value.deferred:
            e = b.named(value)
        left.append((target, e, kind_of(value)))
    while left:
        for i, (target, _, _) in enumerate(left):
            if not any(target in e.reads for j, (_, e, _) in enumerate(left) if j != i):
                left_target, e, _ = left.pop(i)
                b.line(_assignment(left_target, e))
                break
        else:  # each is read by another: keep one new value aside
            i = next(i for i, (_, e, _) in enumerate(left) if e.reads)
            target, e, kind = left[i]
            name = b.names.take(f"next_{target}")
            b.line(f"{type_name(kind)} {name} = {e.text};")
            left[i] = target, variable(name), kind


def _assignment(target: str, e: Expression) -> str:
    if e.parts is not None and e.operator in _COMPOUND:
        x, y = e.parts
        if x.text == target:
            return f"{target} {e.operator}= {y.text};"
        if y.text == target and e.operator in "+*":
            return f"{target} {e.operator}= {x.text};"
    return f"{target} = {e.text};"


# Loops


def _carried_hint(b: Body, argument: Value, yielded: Value, result: Value) -> str:
    for value in (argument, result):
        if value.hint:
            return b.hint(value)
    op = _update(yielded)
    return _CARRIED_NAMES.get(op.name, "carry") if op is not None else "carry"


def _update(value: Value) -> Op | None:
    """The op that makes a new value of a carried one, inside of loops and conditions."""
    op = value.op
    if op is None:
        return None
    if op.name == "scf.for":
        return _update(op.blocks[0].end.operands[value.index])
    if op.name == "scf.if":
        return _update(op.blocks[0].end.operands[value.index]) or _update(op.blocks[1].end.operands[value.index])
    if op.name == "arith.select":
        return _update(op.operands[1]) or _update(op.operands[2])
    return op


def _carry(b: Body, op: Op, first: int, arguments: Sequence[Value], yielded: Sequence[Value]) -> list[str]:
    """Variables for what a loop carries, holding the initial values."""
    found = []
    for i, (argument, start) in enumerate(zip(arguments, op.operands[first:])):
        if b.can_take_over(start, op):
            assert start.variable is not None
            name = start.variable
        else:
            result = op.results[i] if i < len(op.results) else argument
            name = b.names.take(_carried_hint(b, argument, yielded[i], result))
            b.line(f"{type_name(kind_of(argument))} {name} = {b.use(start).text};")
        b.bind(argument, name)
        found.append(name)
    return found


def _bound(b: Body, value: Value) -> Expression:
    """A limit or step, which is evaluated again and again: no load, nothing that the loop changes."""
    e = b.use(value)
    return b.named(value) if e.loads or e.reads or len(e.text) > 32 else e


def _for(b: Body, op: Op) -> None:
    block = op.blocks[0]
    lower, upper, step = op.operands[:3]
    limit, stride = _bound(b, upper), _bound(b, step)
    counter, *arguments = block.arguments
    names = _carry(b, op, 3, arguments, block.end.operands)
    kind = kind_of(counter)
    if op.attribute("smelt.unroll") is not None:
        b.line("#pragma unroll")
    b.names.open()
    i = b.names.take(b.hint(counter)) if counter.hint else b.names.take_first(_COUNTERS)
    counter.expression = variable(i)
    below = binary("<", Expression(i), limit)
    if kind.kind != "index":
        below = binary("<", signed(Expression(i), kind), signed(limit, kind))
    advance = f"{i}++" if stride.literal == 1 else f"{i} += {stride.text}"
    b.line(f"for ({type_name(kind)} {i} = {b.use(lower).text}; {below.text}; {advance}) {{")
    b.scope(block)
    assign(b, block.end, names, block.end.operands)
    b.close()
    b.names.close()
    b.line("}")
    for result, name in zip(op.results, names):
        b.bind(result, name)


def _while(b: Body, op: Op) -> None:
    """Carried values and results share variables where the condition hands them on unchanged."""
    before, after = op.blocks
    condition = before.end
    passed = condition.operands[1:]
    for value, argument in zip(passed, after.arguments):
        if value.op is None and value.block is before:
            value.hint = value.hint or argument.hint
    names = _carry(b, op, 0, before.arguments, after.end.operands)
    handed: list[str] = []
    for value, result, argument in zip(passed, op.results, after.arguments):
        if value.op is None and value.block is before and names[value.index] not in handed:
            handed.append(names[value.index])
        else:
            name = b.names.take(_carried_hint(b, argument, value, result))
            b.line(f"{type_name(kind_of(result))} {name};")
            handed.append(name)
    opening = len(b.lines)
    b.line("while (true) {")
    b.scope(before)
    simple = len(b.lines) == opening + 1
    simple = simple and all(b.use(v).text == name for v, name in zip(passed, handed))
    test = b.use(condition.operands[0])
    if simple:
        b.lines[opening] = b.lines[opening].replace("true", test.text)
    else:
        assign(b, condition, handed, passed)
        b.line(f"if ({negate(test).text}) break;")
    for argument, name in zip(after.arguments, handed):
        b.bind(argument, name)
    b.run(after)
    assign(b, after.end, names, after.end.operands)
    b.close()
    b.line("}")
    for result, name in zip(op.results, handed):
        b.bind(result, name)


# Conditions


def _inside(op: Op, block: Block) -> bool:
    """Whether an op stands in a block, at any depth."""
    found: Block | None = op.block
    while found is not None and found is not block:
        found = found.parent.block if found.parent is not None else None
    return found is not None


def _result_target(b: Body, op: Op, result: Value) -> str | None:
    """The variable of the surrounding condition or loop that a result goes to and nobody reads meanwhile."""
    if len(result.uses) != 1:
        return None
    end = result.uses[0]
    outer = end.block.parent
    if end.name != "scf.yield" or end.block is not op.block or outer is None:
        return None
    position = end.operands.index(result)
    if outer.name == "scf.if":
        target = outer.targets[position]
        return target if target in outer.fresh else None
    if outer.name == "scf.for":
        carried = end.block.arguments[position + 1]
        if all(any(_inside(user, block) for block in op.blocks) for user in carried.uses):
            return carried.variable
    return None


def _if(b: Body, op: Op) -> None:
    for result in op.results:
        op.targets.append(_result_target(b, op, result))
        if op.targets[-1] is not None and result.uses[0].block.parent.fresh:  # type: ignore[union-attr]
            op.fresh.add(op.targets[-1])
    for i, result in enumerate(op.results):
        if op.targets[i] is None:
            name = b.names.take(b.hint(result, "chosen"))
            b.line(f"{type_name(kind_of(result))} {name};")
            op.targets[i] = name
            op.fresh.add(name)
    _branches(b, op, "")
    for result, target in zip(op.results, op.targets):
        assert target is not None
        b.bind(result, target)


def _branches(b: Body, op: Op, otherwise: str) -> None:
    targets = [name for name in op.targets if name is not None]
    test = b.use(op.operands[0])
    opening = len(b.lines)
    b.line(f"{otherwise}if ({test.text}) {{")
    _branch(b, op.blocks[0], targets)
    is_empty = len(b.lines) == opening + 1
    if len(op.blocks) == 1 or not op.blocks[1].ops:
        b.line("}")
        return
    second = op.blocks[1]
    if is_empty:
        if second.ops[:-1] or not _is_same(b, second.end, targets):
            b.lines[opening] = b.lines[opening].replace(f"if ({test.text})", f"if ({negate(test).text})")
            _branch(b, second, targets)
        b.line("}")
        return
    middle = len(b.lines)
    b.line("} else {")
    b.names.open()
    b.shift(1)
    last = second.ops[-2] if len(second.ops) > 1 else op
    if last is not op and last.name == "scf.if" and last.results == second.end.operands:
        b.run_ops(second.ops[:-2])
        last.targets, last.fresh = list(op.targets), op.fresh
        if len(b.lines) == middle + 1:  # a condition and nothing else: one chain
            b.lines.pop()
            b.close()
            _branches(b, last, "} else ")
            return
        _branches(b, last, "")
    else:
        b.run(second)
        assign(b, second.end, targets, second.end.operands)
    b.close()
    if len(b.lines) == middle + 1:
        b.lines.pop()
    b.line("}")


def _is_same(b: Body, end: Op, targets: Sequence[str]) -> bool:
    return all(b.use(v).text == name for v, name in zip(end.operands, targets) if v.expression is not None)


def _branch(b: Body, block: Block, targets: Sequence[str]) -> None:
    b.scope(block)
    assign(b, block.end, targets, block.end.operands)
    b.close()


# Functions, and ops with two results


def _call(b: Body, op: Op) -> None:
    symbol = mlir.ir.FlatSymbolRefAttr(op.attribute("callee")).value
    name, result = b.function(symbol), op.results[0]
    found = b.built(op, lambda: call(name, *[b.use(v) for v in op.operands]))
    if b.program.exchanges(symbol):  # all lanes have to call it, so it stands in no branch of an expression
        b.declare(result, found)
    else:
        b.define(op, result, found)


def _add_with_carry(b: Body, op: Op) -> None:
    kind = kind_of(op.operands[0])
    total, carry = op.results
    x, y = (b.named(v) for v in op.operands)
    e = binary("+", x, y, wraps=True)
    if kind.bits < 32 and kind.lanes == 1:
        e = cast(kind, e)
    if carry.uses:
        b.declare(total, e) if total.uses else None
        e = b.use(total) if total.uses else e
        b.define(op, carry, binary("<", e, x))
    else:
        b.define(op, total, e)


def _multiply_wide(b: Body, op: Op) -> None:
    kind = kind_of(op.operands[0])
    low, high = op.results
    x, y = (b.named(v) for v in op.operands)
    if low.uses:
        wide = call("uint", x) if kind.bits == 16 else x
        e = binary("*", wide, y, wraps=True)
        b.define(op, low, cast(kind, e) if kind.bits < 32 and kind.lanes == 1 else e)
    if not high.uses:
        return
    if op.name == "arith.mulsi_extended":
        if kind.bits == 64:
            # The upper half of a signed product: the unsigned one, less each factor where the other is negative.
            e = call(b.helper("wide_mulhi", kind), x, y)
            for a, c in ((x, y), (y, x)):
                e = binary("-", e, binary("&", unsigned(binary(">>", signed(a, kind), Expression("63")), kind), c))
        else:
            e = unsigned(call("metal::mulhi", signed(x, kind), signed(y, kind)), kind)
    elif kind.bits == 64:
        e = call(b.helper("wide_mulhi", kind), x, y)
    else:
        e = call("metal::mulhi", x, y)
    b.define(op, high, e)


STATEMENTS = {
    "scf.for": _for,
    "scf.while": _while,
    "scf.if": _if,
    "func.call": _call,
    "arith.addui_extended": _add_with_carry,
    "arith.mului_extended": _multiply_wide,
    "arith.mulsi_extended": _multiply_wide,
}
