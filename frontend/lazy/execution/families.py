"""Functions that differ in sizes alone: transformed once for all of them.

A family has the recorded functions of one structure, with sizes renamed in order of appearance: in shapes, and in
attributes that ops declare as sizes (`Op.sizes`). Extents of 0 and 1 are part of the structure, and so is which sizes
are equal. Its first member is transformed for itself, since it may remain the only one. With the second, or where
nothing is to be transformed with one of the next, the transformation runs on symbols (`smelt.ir.symbolic`), and its
guards say which members the result is right for; others have it run again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from smelt.ir import locks
from smelt.ir.aval import Aval
from smelt.ir.errors import SmeltError
from smelt.ir.kinds import Contraction
from smelt.ir.op import Op, registry
from smelt.ir.op_program import OpProgram
from smelt.ir.sized_program import SizedProgram
from smelt.ir.symbolic import Program, Symbol, value_of
from smelt.runtime import LruCache

from ..build import MOST_ELEMENTS
from ..graph import ALIAS, APPLY, GraphFunction, Ref
from ..static_keys import attribute_key
from . import tiers
from .recorded import Transforms

if TYPE_CHECKING:
    from smelt.passes.transform.tape import Recorded

#: Programs of a family: where more are needed, its members are transformed one by one.
MOST_PROGRAMS = 4
#: Members of a family without transformations that are each taken for itself: symbols take as long as many of them.
PATIENCE = 6


class Family:
    """What is known of functions of one structure.

    Attributes:
        programs: those made so far; None: they cannot be made.
        members: how many were met.
    """

    def __init__(self) -> None:
        self.programs: list[SizedProgram] | None = []
        self.members = 0

    @property
    def nbytes(self) -> int:
        return 2_000 + sum(program.nbytes for program in self.programs or ())


#: By structure.
families = LruCache(weigh=lambda family: family.nbytes)


class _NoFamilyError(SmeltError):
    """A function whose structure is not found."""


def bound_program(f: GraphFunction, transforms: Transforms, run_function: Any) -> OpProgram | None:
    """A function, transformed, as `OpProgram` makes it of its ops; None where it has to be transformed for itself.

    Args:
        run_function: as of `OpProgram`.
    """
    reader = _Reader()
    try:
        key = reader.function(f, transforms)
    except _NoFamilyError:
        return None
    values = [*reader.sizes, *reader.numbers]
    if not values:
        return None
    family: Family = families.get_or_make(key, Family)
    if family.programs is None:
        return None
    for program in family.programs:
        bound = program.bound(values, run_function)
        if bound is not None:
            return bound
    family.members += 1
    if family.members <= (1 if transforms or any(step.op is APPLY for step in f.body) else PATIENCE):
        return None
    made = _program(f, transforms, reader) if len(family.programs) < MOST_PROGRAMS else None
    if made is None:
        family.programs = None
        return None
    family.programs.append(made)
    families.put(key, family)
    return made.bound(values, run_function)


class _Reader:
    """The structure of a function, and its sizes.

    Attributes:
        sizes: sizes larger than 1 by value, with their names: -1, -2, ... in order of appearance.
        numbers: numbers among attributes that may depend on sizes as 1 / n does, in order of appearance.
    """

    def __init__(self) -> None:
        self.sizes: dict[int, int] = {}
        self.numbers: list[float] = []

    def function(self, f: GraphFunction, transforms: Transforms) -> Any:
        """The structure; raises _NoFamilyError for a function with branches, loops or rules."""
        if f.rules:
            raise _NoFamilyError(f.name)
        known = f.key.parts
        parts: list[Any] = [tuple([(self.names(n.avals[i].shape), n.avals[i].dtype) for n, i in f.parameters])]
        for step, part in zip(f.body, known[1:]):
            op = step.op
            for aval in step.avals:
                if aval.size >= MOST_ELEMENTS:  # an error, with the user's line
                    raise _NoFamilyError(f.name)
            if op is APPLY:
                attrs = step.attrs
                parts.append((part[0], self.function(attrs["callee"], attrs["transforms"]), part[2]))
            elif op.kind == "control":
                raise _NoFamilyError(f.name)
            elif _changing(op):
                key: Any = self.attributes(op, step.attrs)
                parts.append((part[0], (key, step.where) if op.tells_line else key, part[2]))
            else:
                parts.append(part)
        parts.append(known[-1])
        parts.append(tuple([(name, self.attributes(registry[name], attrs)) for name, attrs in transforms]))
        return tuple(parts)

    def names(self, shape: Sequence[int]) -> tuple[Any, ...]:
        sizes = self.sizes
        return tuple([d if d == 1 else _named(d, sizes) for d in shape])

    def attributes(self, op: Op, attrs: dict[str, Any]) -> tuple[Any, ...]:
        changing = _changing(op)
        return tuple([(k, self.attribute(v) if k in changing else attribute_key(v)) for k, v in attrs.items()])

    def attribute(self, x: Any) -> Any:
        kind = type(x)
        if kind is int:
            return _named(x, self.sizes)
        if kind is tuple and all(type(d) is int for d in x):
            return self.names(x)
        if kind is float:
            if x.is_integer():  # an extent to divide by, perhaps
                return (float, _named(int(x), self.sizes)) if 1 < x < _EXACT else attribute_key(x)
            self.numbers.append(x)
            return float
        return attribute_key(x)


def _named(d: int, sizes: dict[int, int]) -> Any:
    """0 and 1 are no sizes, for rules treat them differently; nor is what is negative."""
    if d > 1:
        return sizes.setdefault(d, -1 - len(sizes))
    return d if d >= 0 else (d,)


#: Integers below are floats.
_EXACT = 2.0**53
_CHANGING: dict[type[Op], tuple[str, ...]] = {}


def _changing(op: Op) -> tuple[str, ...]:
    """Attributes that may be other ones for other sizes."""
    kind = type(op)
    found = _CHANGING.get(kind)
    if found is None:
        found = (*op.sizes, *(name for name, attr in op.attrs.items() if attr.type == "Number"))
        _CHANGING[kind] = found
    return found


# Transforming on symbols


def _program(f: GraphFunction, transforms: Transforms, reader: _Reader) -> SizedProgram | None:
    """The program of a function's family; None where a rule makes functions, or does what symbols cannot do."""
    numbers = Program(list(reader.sizes), reader.numbers)
    writer = _Writer(dict(zip(reader.sizes, numbers.sizes)), iter(numbers.others))
    try:
        body = writer.function(f, transforms)
        if any(op.op.kind in ("control", "call") for op in body.ops):
            return None
        return SizedProgram(body.arguments, body.ops, body.returns, numbers, writer.costs)
    except Exception:  # also what a rule gets wrong where it is given a symbol
        return None


class _Writer:
    """Writes functions on tapes, in the order in which `_Reader` reads them.

    Attributes:
        costs: of running the function that was written last: how many ops, element operations, seconds.
    """

    costs: Any

    def __init__(self, sizes: dict[int, Symbol], numbers: Iterator[Symbol]):
        self.sizes, self.numbers = sizes, numbers

    def function(self, f: GraphFunction, transforms: Transforms) -> Recorded:
        # The transformations are loaded when one is met.
        listed, tapes = locks.loaded("smelt.passes.transform.listed"), locks.loaded("smelt.passes.transform.tape")
        transforming = locks.loaded("smelt.passes.transform.tape_transforms")
        module, tape = listed.ListedModule(), tapes.Tape()
        arguments = [tape.argument(self.aval(aval)) for aval in f.arguments]
        env: dict[Ref, Any] = {}
        for ref, value in zip(f.parameters, arguments):
            env.setdefault(ref, value)
        ops: int = 0
        work: Any = 0.0
        seconds: Any = 0.0
        for step in f.body:
            tape.location = None if step.where is None else tapes.UserPlace(*step.where)
            operands: Sequence[Any] = [env[r] for r in step.inputs]
            if step.op is APPLY:
                results: Sequence[Any] = tape.inline(
                    self.function(step.attrs["callee"], step.attrs["transforms"]), operands
                )
                own = self.costs
            elif step.op is ALIAS:
                results, own = operands, (1, 0.0, 0.0)
            else:
                attrs = self.attributes(step.op, step.attrs)
                results = tape.emit(step.op, operands, attrs)
                own = costs_of(step.op, attrs, [v.aval for v in operands], [v.aval for v in results])
            ops, work, seconds = ops + own[0], work + own[1], seconds + own[2]
            for i, (value, aval) in enumerate(zip(results, step.avals)):
                if value_of(value.aval.shape) != aval.shape or value.aval.dtype is not aval.dtype:
                    raise _NoFamilyError(f.name)
                env[(step.node, i)] = value
        body = tapes.Recorded(arguments, tape.ops, [env[r] for r in f.outputs])
        work = work * 3.0
        for name, given in transforms:
            attrs = self.attributes(registry[name], given)
            body = transforming.transform(module, body.pruned(module), name, attrs)
            ops = ops * tiers.GRADIENT
            work = work * attrs["size"] if name == "batch" else work
            seconds = seconds * (attrs["size"] if name == "batch" else tiers.GRADIENT)
        self.costs = max(ops, 1), work, seconds
        return body.pruned(module)

    def aval(self, aval: Aval) -> Aval:
        return aval.with_shape(self.shape(aval.shape))

    def shape(self, shape: Sequence[int]) -> tuple[Any, ...]:
        return tuple([self.sizes[d] if d > 1 else d for d in shape])

    def attributes(self, op: Op, attrs: dict[str, Any]) -> dict[str, Any]:
        changing = _changing(op)
        return {k: self.attribute(v) if k in changing else v for k, v in attrs.items()} if changing else attrs

    def attribute(self, x: Any) -> Any:
        if type(x) is int:
            return self.sizes[x] if x > 1 else x
        if type(x) is tuple and all(type(d) is int for d in x):
            return self.shape(x)
        if type(x) is float:
            if x.is_integer():
                return self.sizes[int(x)] * 1.0 if 1 < x < _EXACT else x
            return next(self.numbers)
        return x


def costs_of(op: Op, attrs: dict[str, Any], operands: Sequence[Aval], results: Sequence[Aval]) -> tuple[int, Any, Any]:
    """What `tiers.count`, `work` and `tiers.op_by_op_seconds` say of an op. Which of its arrays is the largest is what
    it is in the first member of the family, for these are estimates and no guards."""
    work = max([aval.size for aval in (*operands, *results)], key=value_of) * op.rule_cost
    if not isinstance(op, Contraction):
        size = max([aval.size for aval in tiers.gone_over(op, operands, results)], key=value_of, default=0)
        return 1, work, size * (tiers.ELEMENT * op.rule_cost) + tiers.OP
    product = op.work(*operands, **attrs)
    if operands[0].dtype.is_inexact:
        seconds = tiers.operations(op, attrs, operands) * tiers.PRODUCT + tiers.OP
    else:
        seconds = product * tiers.ELEMENT + tiers.OP
    return 1, max(work, product, key=value_of), seconds
