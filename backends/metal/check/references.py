"""References to constants in the address space `thread`, to which Metal binds temporaries, as C++ does.

In C++ for OpenCL only a reference without address space can be bound to a temporary. So `thread` becomes an empty
macro, and what such a reference must not be bound to, a value in other memory, is a rule on the syntax tree.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from .names import ADDRESS_SPACES

if TYPE_CHECKING:
    from .rules import Rules
    from .text import Adapter

BOUND = "__msl_bound"
_OTHER_MEMORY = {"__global": "device", "__local": "threadgroup", "__constant": "constant"}
_QUALIFIERS = re.compile(r"\b(?:const|volatile|metal::|__private|__generic|__global|__local|__constant) ?")


def overloaded_by_space(adapters: list[Adapter]) -> frozenset[str]:
    """Names of functions that differ in the address spaces of their references: those say what they take."""
    known: dict[tuple[str, int], tuple[str, ...]] = {}
    found = set()
    for adapter in adapters:
        for opening, closing in adapter.match.items():
            name = adapter.at(opening - 1)
            if adapter.at(opening) != "(" or not name.isidentifier():
                continue
            spaces = _spaces(adapter, opening, closing)
            if any(spaces) and known.setdefault((name, len(spaces)), spaces) != spaces:
                found.add(name)
    return frozenset(found)


def _spaces(adapter: Adapter, opening: int, closing: int) -> tuple[str, ...]:
    """The address space of each parameter that is a reference, between two brackets; empty for the others."""
    found, space, depth = [], "", 0
    for index in range(opening + 1, closing + 1):
        text = adapter.at(index)
        depth += (text in ("(", "[", "{", "<")) - (text in (")", "]", "}", ">"))
        if depth < 0 or (text == "," and depth == 0):
            found.append(space.partition("&")[0] if "&" in space else "")
            space = ""
        elif text in ADDRESS_SPACES and not space:
            space = text
        elif text == "&" and space:
            space += "&"
    return tuple(found)


def adapt_reference(adapter: Adapter, index: int, overloaded: frozenset[str]) -> None:
    """Let temporaries be bound to the reference whose `thread` is at `index`, if it is one to a constant."""
    at = adapter.at
    before, after = at(index - 1), index + 1
    if at(after) == "const":
        after += 1
    elif before != "const":
        return
    while at(after) in ("metal", "::", "typename"):
        after += 1
    if not at(after).isidentifier():
        return
    after += 1
    while at(after) in ("::", "<"):
        after = adapter.angle(after) + 1 if at(after) == "<" else after + 2
        if after <= index:
            return
    if at(after) != "&" or not at(after + 1).isidentifier() or at(after + 2) not in (",", ")", "=", "{"):
        return
    opening = adapter.enclosing(index)
    if at(opening) == "(" and at(opening - 1) in overloaded:
        return
    # Behind `const`: a declaration that begins with a macro begins behind it for clang.
    last = index + (at(index + 1) == "const")
    adapter.edit(adapter.tokens[index].start, adapter.tokens[last].end, f"const {BOUND}" if last > index else BOUND)
    adapter.out.has_bound = True


def check_call(cursor: Any, called: Any, rules: Rules) -> None:
    """Arguments for references of `thread` lie there, or are temporaries."""
    for parameter, argument in zip(called.get_arguments(), cursor.get_arguments()):
        check_binding(parameter, argument, rules)


def check_binding(bound: Any, value: Any, rules: Rules) -> None:
    """A value that a reference is bound to."""
    if bound.type.kind.name != "LVALUEREFERENCE" or BOUND not in rules.text(bound, bound.location.offset):
        return
    wanted = bound.type.get_pointee()
    while value.kind.name == "UNEXPOSED_EXPR" and len(inner := list(value.get_children())) == 1:
        (value,) = inner
    # A pointer's own memory is named behind the star.
    memory = next((s for s in _OTHER_MEMORY if s in value.type.get_canonical().spelling.rpartition("*")[2]), None)
    if memory is None or _plain(wanted) != _plain(value.type):
        return
    message = f"'{bound.spelling}' is a reference to thread memory, not to {_OTHER_MEMORY[memory]} memory"
    rules.add("error", value, message)


def _plain(kind: Any) -> str:
    return _QUALIFIERS.sub("", kind.get_canonical().spelling).strip()
