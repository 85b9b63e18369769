"""Branches, loops and calls."""

from __future__ import annotations

from typing import Any

from smelt.ir import dtypes

from ...functions.logic import where
from ...lazy.arrays import array, convert
from ...transforms.control import cond, scan, switch, while_loop
from ..reading import Call, Region, elements, elements_of, owner_of, rule
from ..translating import Refused
from .elementwise import apply, full_like


@rule("func.call")
def _call(call: Call) -> list[array]:
    return call.reader.call(str(call.attribute("callee").value), call.operands)


@rule("stablehlo.composite")
def _composite(call: Call) -> list[array]:
    """What its decomposition computes."""
    return call.reader.call(str(call.attribute("decomposition").value), call.operands)


@rule("stablehlo.all_reduce", "stablehlo.all_gather", "stablehlo.reduce_scatter", "stablehlo.all_to_all")
def _collective(call: Call) -> list[array]:
    """Of groups of one device each: what comes in goes out."""
    groups = elements(call.attribute("replica_groups"))
    if groups.shape[-1] != 1:
        raise Refused(f"joins groups of {groups.shape[-1]} devices; a program here is that of one: export it for one")
    return call.operands


@rule("stablehlo.if")
def _if(call: Call) -> list[array]:
    then, other = call.regions
    return list(cond(call.x, lambda: tuple(then()), lambda: tuple(other())))


@rule("stablehlo.case")
def _case(call: Call) -> list[array]:
    """An index that names no branch means the last."""
    branches = call.regions
    index = call.x
    if len(branches) == 1:
        return branches[0]()
    last = full_like(index, len(branches) - 1)
    inside = apply("logical_and", apply("greater_equal", index, full_like(index, 0)), apply("less", index, last))
    chosen = convert(where(inside, index, last), dtypes.int32)
    return list(switch(chosen, [_branch(region) for region in branches]))


def _branch(region: Region) -> Any:
    return lambda: tuple(region())


@rule("stablehlo.while")
def _while(call: Call) -> list[array]:
    """Values that no step changes stay outside. A loop that counts to a known number is a `scan`, which can be
    differentiated backwards."""
    test, body = call.regions
    arguments = list(body.block.arguments)
    varies = [i for i, value in enumerate(body.returned) if value != arguments[i]]
    start = call.operands

    def whole(carry: Any) -> list[array]:
        values = list(start)
        for i, x in zip(varies, carry):
            values[i] = x
        return values

    def step(carry: Any) -> tuple[array, ...]:
        found = body(*whole(carry))
        return tuple(found[i] for i in varies)

    first = tuple(start[i] for i in varies)
    if not varies:  # it ends at once, or never
        return while_loop(lambda c: test(*c)[0], lambda c: tuple(c), tuple(start))  # type: ignore[return-value]
    length = _steps(call, test, body)
    if length is not None:
        last, _ = scan(lambda carry, _: (step(carry), None), first, None, length=length)
    else:
        last = while_loop(lambda carry: test(*whole(carry))[0], step, first)
    return whole(last)


def _steps(call: Call, test: Region, body: Region) -> int | None:
    """How many steps a loop takes, where it counts by a constant from one constant to another."""
    compare = owner_of(test.returned[0])
    if compare is None or compare.name != "stablehlo.compare":
        return None
    direction = str(compare.attributes["comparison_direction"]).rstrip(">").rpartition(" ")[2]
    counter, limit = compare.operands
    arguments = list(test.block.arguments)
    if counter not in arguments or direction not in ("LT", "LE"):
        return None
    at = arguments.index(counter)
    stop = _number(limit, call, arguments, call.operands, body)
    first = _known(call.operands[at])
    add = owner_of(body.returned[at])
    if stop is None or first is None or add is None or add.name != "stablehlo.add":
        return None
    mine = body.block.arguments[at]
    others = [v for v in add.operands if v != mine]
    if len(others) != 1:
        return None
    step = _number(others[0], call, list(body.block.arguments), call.operands, body)
    if step is None or step < 1:
        return None
    return max(0, -((first - stop - (direction == "LE")) // step))


def _number(value: Any, call: Call, arguments: list[Any], start: list[array], body: Region) -> int | None:
    """The integer that a value of a region is known to be."""
    op = owner_of(value)
    if op is not None:
        if op.name != "stablehlo.constant":
            return _known(call.env[value]) if value in call.env else None
        found = elements_of(op)
        return int(found.reshape(-1)[0]) if found.size == 1 and found.dtype.kind in "iu" else None
    if value in arguments:
        i = arguments.index(value)
        unchanged = body.returned[i] == body.block.arguments[i]
        return _known(start[i]) if unchanged else None
    return _known(call.env[value]) if value in call.env else None


def _known(x: array) -> int | None:
    """The integer that an array is known to be."""
    node, _ = x._ref
    while node.op.name in ("broadcast", "reshape", "convert", "barrier") and node.inputs:
        node = node.inputs[0][0]
    if node.op.name == "constant" and x.dtype.is_integer and not isinstance(node.attrs["value"], float):
        return int(node.attrs["value"])
    return None
