"""Rules as patterns of `PatternBuilder`: closures that compare operands, the most selective ones first."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from smelt.ir.aval import Aval
from smelt.ir.builder import Value
from smelt.ir.errors import IRError, PipelineError, SmeltError, at_user_line, shown
from smelt.ir.interpreter import apply_reference
from smelt.ir.op import Op
from smelt.ir.ops.constants import constant_array

from ..simplify.patterns import Pattern, PatternBuilder, Site, python_scalar, same_number, scalar_of
from .terms import Applied, Attr, Computed, Const, Found, Number, Rule, Term, Variable, sides

#: Whether a value is what a term says; fills in what the term's variables stand for.
Matcher = Callable[[Value, dict[str, Any]], bool]


class Ready:
    """A rule ready to be tried, for one order of the operands of its ops that commute.

    Attributes:
        guard: an operand, and the op that must have made it; None: a number; no guard: nothing is that plain.
        checks: what is asked of operands, by their numbers.
        parts: terms of the pattern by their texts, and the operands by which one comes to each: a replacement that
            has such a term takes the value that is there.
    """

    __slots__ = ("checks", "guard", "op", "parts", "pattern", "rule")

    def __init__(self, pattern: Applied, rule: Rule):
        self.op, self.pattern, self.rule = pattern.op, pattern, rule
        self.guard, self.checks, self.parts = _guard(pattern), _operand_checks(pattern), dict(_parts(pattern))


#: Orders of the operands of commuting ops in one pattern at most.
MAX_ORDERS = 64


def ready(rule: Rule, constants_right: bool = False) -> list[Ready]:
    """The forms in which a rule is tried: one for each order of the operands of commutative ops.

    Args:
        constants_right: numbers stand on the right of such ops, as canonicalize leaves them.
    """
    assert isinstance(rule.pattern, Applied)
    orders = list(itertools.islice(_orders(rule.pattern, constants_right), MAX_ORDERS + 1))
    if len(orders) > MAX_ORDERS:
        raise IRError(at_user_line(f"the operands of {rule.pattern} have more than {MAX_ORDERS} orders"))
    return [Ready(x, rule) for x in {str(x): x for x in orders}.values()]


def _guard(x: Applied) -> tuple[int, Op | None] | None:
    numbers = [i for i, y in enumerate(x.operands) if isinstance(y, (Number, Const))]
    made = [(i, y.op) for i, y in enumerate(x.operands) if isinstance(y, Applied)]
    return made[0] if made else (numbers[0], None) if numbers else None


def _parts(x: Applied, path: tuple[int, ...] = ()) -> Iterator[tuple[str, tuple[int, ...]]]:
    for i, y in enumerate(x.operands):
        if isinstance(y, Applied):
            if len(y.attrs) == len(y.op.attrs):
                yield str(y), (*path, i)
            yield from _parts(y, (*path, i))


def _orders(x: Applied, constants_right: bool) -> Iterator[Applied]:
    """A pattern with the operands of its commuting ops in every order; first as it is written."""
    choices = [list(_orders(y, constants_right)) if isinstance(y, Applied) else [y] for y in x.operands]
    swaps = x.op.commutative and len(x.operands) == 2
    if swaps and constants_right and any(isinstance(y, (Number, Const)) for y in x.operands):
        swaps = False
    for operands in itertools.product(*choices):
        yield Applied(x.op, operands, x.attrs)
        if swaps:
            yield Applied(x.op, operands[::-1], x.attrs)


def _operand_checks(x: Applied) -> list[tuple[int, Matcher]]:
    def telling(item: tuple[int, Term]) -> int:
        kinds = (Number, Applied, Const, Variable)
        return next(i for i, kind in enumerate(kinds) if isinstance(item[1], kind))

    return [(i, matcher(y)) for i, y in sorted(enumerate(x.operands), key=telling)]


def matcher(x: Term) -> Matcher:
    """What compares a value with a term."""
    if isinstance(x, Number):
        is_wanted = is_number(x.value)
        return lambda value, found: is_wanted(scalar_of(value))
    if isinstance(x, Const):
        name = x.name
        return lambda value, found: scalar_of(value) is not None and _bound(found, name, value)
    if isinstance(x, Variable):
        name = x.name
        return lambda value, found: _bound(found, name, value)
    assert isinstance(x, Applied)
    op, checks, attrs = x.op, _operand_checks(x), x.attrs

    def made_so(value: Value, found: dict[str, Any]) -> bool:
        owner = value.owner
        if owner is None or owner.op is not op:
            return False
        operands = owner.operands
        return all(check(operands[i], found) for i, check in checks) and (
            not attrs or attributes_match(attrs, owner.attrs, found)
        )

    return made_so


def _bound(found: dict[str, Any], name: str, value: Value) -> bool:
    """Whether a variable stands for `value`, as it does from now on if it stood for nothing yet."""
    known = found.setdefault(name, value)
    return known is value or (known.aval == value.aval and same_number(known, value))


def is_number(wanted: Any) -> Callable[[Any], bool]:
    """What tells whether a number of the IR, or None, is the one in a rule."""
    if isinstance(wanted, bool):
        return lambda c: c is wanted
    if wanted != wanted:
        return lambda c: c is not None and c != c
    if wanted == 0 and not isinstance(wanted, complex):
        negative = math.copysign(1, wanted) < 0
        return lambda c: c is not None and c == 0 and negative == (isinstance(c, float) and math.copysign(1, c) < 0)
    return lambda c: c is not None and c == wanted


def attributes_match(wanted: dict[str, Any], attrs: dict[str, Any], found: dict[str, Any]) -> bool:
    for name, value in wanted.items():
        there = attrs[name]
        if isinstance(value, Attr):
            known = found.setdefault(value.name, there)
            if known is not there and known != there:
                return False
        elif value is not there and value != there:
            return False
    return True


def matches(alternatives: Sequence[Ready], at: Site) -> Iterator[tuple[Ready, dict[str, Any]]]:
    """The rules whose patterns an op matches, with what their variables stand for."""
    operands = at.operands
    for tried in alternatives:
        found: dict[str, Any] = {}
        for i, check in tried.checks:
            if not check(operands[i], found):
                break
        else:
            attrs, condition = tried.pattern.attrs, tried.rule.condition
            if attrs and not attributes_match(attrs, at.attrs, found):
                continue
            if condition is None or condition.holds(found):
                yield tried, found


def _inside(at: Site, path: tuple[int, ...]) -> Value:
    """The value to which one comes by operands."""
    operands = at.operands
    for i in path[:-1]:
        owner = operands[i].owner
        assert owner is not None
        operands = owner.operands
    return operands[path[-1]]


#: A replacement with its types: the value itself, or (op, operands, attributes, type); a number with its type.
Planned = Any


def planned(x: Term, found: Found, beside: Aval) -> tuple[Planned, Aval]:
    """A replacement with the types of all of its parts. Raises SmeltError where an op does not take what it gets.

    Args:
        found: what variables stand for, and terms that the pattern has, by their texts.
        beside: the type of numbers that stand beside nothing.
    """
    if isinstance(x, Const) and found[x.name].aval.shape != beside.shape:
        aval = found[x.name].aval.with_shape(beside.shape)
        return (scalar_of(found[x.name]), aval), aval
    if isinstance(x, Variable):
        return found[x.name], found[x.name].aval
    if isinstance(x, Applied) and (there := found.get(str(x))) is not None:
        return there, there.aval
    if isinstance(x, Number):
        aval = beside if x.like is None else found[x.like.name].aval
        value = number_in(x.value, found)
        if not aval.dtype.is_inexact and constant_array(value, aval.dtype) != value:
            raise IRError(f"{value!r} is no {aval.dtype.name}")
        return (value, aval), aval
    assert isinstance(x, Applied)
    parts: list[Any] = [None] * len(x.operands)
    avals: list[Any] = [None] * len(x.operands)
    typed, constant = sides(x)
    for i in typed:
        parts[i], avals[i] = planned(x.operands[i], found, found_aval(x.operands[i], found, beside))
    for i in sorted(constant, key=lambda i: isinstance(x.operands[i], Number)):
        near = next((a for a in reversed(avals) if a is not None), beside)
        parts[i], avals[i] = planned(x.operands[i], found, near)
    attrs = kept_attributes(x, found)
    (aval,) = x.op.infer_checked(avals, attrs)
    if x.op.kind == "elementwise" and (folded := _folded(x.op, parts, attrs, aval)) is not None:
        return folded, aval
    return (x.op, parts, attrs, aval), aval


def found_aval(x: Term, found: Found, beside: Aval) -> Aval:
    """The type of a value that stands where types need not be alike; else that of what is beside."""
    return found[x.name].aval if isinstance(x, Const) else beside


def _folded(op: Op, parts: list[Planned], attrs: dict[str, Any], aval: Aval) -> Planned:
    """A number of numbers, computed now; None where a part is none."""
    arrays = []
    for part in parts:
        is_value = isinstance(part, Value)
        number = scalar_of(part) if is_value else part[0] if len(part) == 2 else None
        if number is None:
            return None
        arrays.append(constant_array(number, part.dtype if is_value else part[1].dtype))
    with np.errstate(all="ignore"):
        (result,) = apply_reference(op, arrays, attrs)
    return python_scalar(np.asarray(result)), aval


def kept_attributes(x: Applied, found: Found) -> dict[str, Any]:
    """The attributes of a replacement."""
    return {name: attribute(value, found) for name, value in x.attrs.items()}


def attribute(value: Any, found: Found) -> Any:
    """An attribute or a number of a replacement: as it stands there, as it was found, or computed."""
    if isinstance(value, Attr):
        return found[value.name]
    return value.value(found) if isinstance(value, Computed) else value


def number_in(value: Any, found: Found) -> Any:
    """A number of a replacement. Raises PipelineError where something else was computed."""
    number = attribute(value, found)
    if not isinstance(number, (bool, int, float, complex, np.number, np.bool_)):
        raise PipelineError(f"the computed value {value} is to be a number, it is {shown(number)}")
    return number


def emit(b: PatternBuilder, plan: Planned) -> Value:
    """What `planned` has typed, made by a builder."""
    if isinstance(plan, Value):
        return plan
    if len(plan) == 2:
        return b.splat(*plan)
    op, parts, attrs, aval = plan
    return b.emit_typed(op, [emit(b, p) for p in parts], attrs, [aval])[0]


def _replaced(b: PatternBuilder, at: Site, tried: Ready, found: dict[str, Any]) -> Value | None:
    """The replacement of what a rule has matched, if it has the same type."""
    replacement = tried.rule.replacement
    if isinstance(replacement, Variable):
        value: Value = found[replacement.name]
        if value.aval == at.avals[0]:
            return value
        if not isinstance(replacement, Const):
            return None
    for text, path in tried.parts.items():
        found[text] = _inside(at, path)
    try:
        plan, aval = planned(replacement, found, at.avals[0])
    except PipelineError:  # functions of the rule are to blame
        raise
    except SmeltError:  # the replacement has no meaning for these types
        return None
    return emit(b, plan) if aval == at.avals[0] else None


def pattern_of(definition: Callable[..., Any], alternatives: Sequence[Ready]) -> Pattern:
    """The rules of a rewrite on one op, as a pattern called like `definition`, which states them."""
    guards = list(dict.fromkeys(a.guard for a in alternatives))
    plain: list[tuple[int, Op | None]] = [g for g in guards if g is not None] if None not in guards else []

    @functools.wraps(definition)
    def rewrite(b: PatternBuilder, at: Site) -> Value | None:
        operands = at.operands
        for i, op in plain:
            if op is None:
                if scalar_of(operands[i]) is not None:
                    break
            elif (owner := operands[i].owner) is not None and owner.op is op:
                break
        else:
            if plain:
                return None
        for tried, found in matches(alternatives, at):
            value = _replaced(b, at, tried, found)
            if value is not None:
                return value
        return None

    return rewrite
