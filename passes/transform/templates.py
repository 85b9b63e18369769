"""What rules of ops emit, remembered: the same again, without running the rule.

A rule asks for the types of its values, for which of them are one, and at most whether one is an `iota`: so what it
emits for others like these is the same. It runs once, on a tape of its own; from then on its ops are copied. A loop of
Python repeats its step, a model its layer, and functions of other lengths or sizes share most of their ops.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from smelt.ir.aval import Aval
from smelt.ir.builder import Value
from smelt.ir.dtypes import DType
from smelt.ir.op import Op

if TYPE_CHECKING:
    from .tape import Tape

#: What a rule is called with: its operands, their tangents or cotangents (None: zero), which of them are linear.
Group = Sequence["Value | bool | None"]
Rule = Callable[..., Sequence["Value | None"]]

#: Attributes of these types are told by their values; a rule of an op that has others runs each time.
_PLAIN = (int, bool, str, DType)
#: A template takes about a kilobyte.
_MOST = 4096


class Template(NamedTuple):
    """What a rule emits.

    Attributes:
        ops: each with its attributes, the numbers of its operands, and the types of its results. The values that the
            rule is called with, each once, have the first numbers, then come results in order.
        outs: numbers of what the rule returns.
    """

    ops: Sequence[tuple[Op, dict[str, Any], tuple[int, ...], Sequence[Aval]]]
    outs: Sequence[int | None]


#: By rule and what it was called with; None: it cannot be copied.
_templates: dict[Hashable, Template | None] = {}


def run_rule(tape: Tape, rule: Rule, groups: Sequence[Group], attrs: dict[str, Any]) -> Sequence[Value | None]:
    """``rule(tape, *groups, **attrs)``, copied where it has emitted the same before."""
    values: dict[Value, int] = {}
    parts: list[Any] = [rule]
    for group in groups:
        parts.append(len(group))
        for v in group:
            if v is None or v is True or v is False:
                parts.append(v)
            elif v.owner is not None and not v.owner.operands:  # an `iota`, say
                return rule(tape, *groups, **attrs)
            else:
                aval = v.aval
                parts += (values.setdefault(v, len(values)), aval.shape, aval.dtype)
    if attrs and not _add_attributes(parts, attrs):
        return rule(tape, *groups, **attrs)
    key = tuple(parts)
    try:
        template = _templates[key]
    except TypeError:  # a size is a symbol, which what the rule finds out is written down for
        return rule(tape, *groups, **attrs)
    except KeyError:
        if len(_templates) >= _MOST:
            _templates.clear()
        template = _templates[key] = _recorded(tape, rule, groups, attrs, values)
    return rule(tape, *groups, **attrs) if template is None else tape.emit_template(template, list(values))


def _add_attributes(parts: list[Any], attrs: dict[str, Any]) -> bool:
    """Add what tells attributes from others; False where that takes more than a look."""
    for name, value in attrs.items():
        kind = type(value)
        if kind is tuple:
            if not {int}.issuperset(map(type, value)):
                return False
        elif kind not in _PLAIN:
            return False
        parts += (name, kind, value)
    return True


def _recorded(
    tape: Tape, rule: Rule, groups: Sequence[Group], attrs: dict[str, Any], values: dict[Value, int]
) -> Template | None:
    """What a rule emits for values of which only the types are known.

    Raises:
        What the rule raises.
    """
    own = tape.fresh()
    stand_ins = {v: own.argument(v.aval) for v in values}
    given = [[stand_ins[v] if isinstance(v, Value) else v for v in group] for group in groups]
    outs = rule(own, *given, **attrs)
    numbers = {v: i for i, v in enumerate(stand_ins.values())}
    ops = []
    for op in own.ops:
        if any(getattr(value, "nbytes", 0) for value in op.attrs.values()):  # an array
            return None
        reads = tuple([numbers[v] for v in op.operands])
        for result in op.results:
            numbers[result] = len(numbers)
        ops.append((op.op, op.attrs, reads, [r.aval for r in op.results]))
    return Template(ops, [None if v is None else numbers[v] for v in outs])
