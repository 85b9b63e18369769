"""Structures and kernels of a Metal text, adapted for C++ for OpenCL: see check_text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .names import ADDRESS_SPACES

if TYPE_CHECKING:
    from .text import Adapter, Token

_QUALIFIERS = frozenset({"const", "volatile"})


def adapt_structure(adapter: Adapter, index: int) -> None:
    """Give the structure whose keyword is at `index` its copies, and its methods the address space `thread`."""
    at = adapter.at
    if at(index - 1) == "enum":
        return
    index += 1
    while at(index) in ("[[", "alignas", "__attribute__"):
        index = adapter.close(index if at(index) == "[[" else index + 1) + 1
        index += at(index) == "]"
    name = at(index)
    opening = index + 1
    if at(opening) == "<":
        opening = adapter.angle(opening) + 1
    if at(opening) == "final":
        opening += 1
    if at(opening) == ":":
        while opening < len(adapter.tokens) and at(opening) not in ("{", ";"):
            opening += 1
    if not name.isidentifier() or at(opening) != "{":
        return
    constructors, assigns = _methods(adapter, name, opening + 1, adapter.close(opening))
    if not assigns and not any("&" in text for text in constructors):
        macro = "__msl_copies" if constructors else "__msl_aggregate"
        end = adapter.tokens[opening].end
        adapter.edit(end, end, f" {macro}({name})")


def _methods(adapter: Adapter, name: str, index: int, end: int) -> tuple[list[str], bool]:
    """Qualify the methods between two tokens; the parameter texts of constructors, and whether `=` is overloaded."""
    at, tokens = adapter.at, adapter.tokens
    constructors: list[str] = []
    assigns = False
    qualified: dict[str, bool] = {}
    while index < end:
        start = first = index
        if at(index) == "template" and at(index + 1) == "<":
            index = start = max(adapter.angle(index + 1), index) + 1
        is_method, is_special, has_value = True, False, False
        while index < end and at(index) not in (";", "{"):
            text = at(index)
            if text in ("static", "friend", "using", "typedef", "static_assert", "~", "__attribute__"):
                is_method = False
            elif text == "operator":
                assigns = assigns or at(index + 1) == "="
                index += 1 + (at(index + 1) == "(")
            elif text == "=":
                has_value = True
            elif text == ":" and at(index - 1) in ("public", "private", "protected"):
                start = first = index + 1
            elif text == "(":
                closing = adapter.close(index)
                if at(index - 1) == name and not has_value and at(index - 2) != "~":
                    constructors.append(" ".join(t.text for t in tokens[index + 1 : closing]))
                    is_special = True
                    _qualified(adapter, first, closing, qualified)
                is_list = at(index - 1) != "noexcept"
                if is_method and is_list and not is_special and not has_value and index - start >= 2:
                    _qualify(adapter, closing)
                index = closing
            elif text in ("[", "[["):
                index = adapter.close(index)
            index += 1
        if at(index) == "{":
            index = adapter.close(index)
            # A structure or an initialiser ends with a semicolon, a body does not.
            if at(index + 1) in (",", "{"):  # a brace in a list of member initialisers
                while index < end and at(index) != "{":
                    index += 1
                index = adapter.close(index)
        index += 1
    return constructors, assigns


def _qualify(adapter: Adapter, closing: int) -> None:
    """Put `thread` after the parameters that end at `closing`, unless an address space stands there."""
    index = closing
    while adapter.at(index + 1) in _QUALIFIERS:
        index += 1
    behind = index + 1
    if adapter.at(behind) == "noexcept":
        behind = adapter.close(behind + 1) + 1 if adapter.at(behind + 1) == "(" else behind + 1
    if adapter.at(behind) in ("{", ";", "->"):
        end = adapter.tokens[index].end
        adapter.edit(end, end, " thread")


def _qualified(adapter: Adapter, start: int, closing: int, known: dict[str, bool]) -> None:
    """Take the address space off a constructor whose parameters end at `closing`; all but the first of several go."""
    at, tokens = adapter.at, adapter.tokens
    space = closing + 1
    is_qualified = at(space) in ADDRESS_SPACES
    opening = closing
    while opening > start and adapter.match.get(opening) != closing:
        opening -= 1
    template = tokens[start : adapter.angle(start + 1) + 1] if at(start) == "template" else []
    parameters = " ".join([*(t.text for t in template), *_without_defaults(adapter, opening, closing)])
    if parameters not in known or not (is_qualified or known[parameters]):
        known[parameters] = is_qualified
        if is_qualified:
            adapter.edit(tokens[space].start, tokens[space].end, "")
        return
    end = space
    while end < len(tokens) and at(end) not in (";", "{"):
        end = adapter.close(end) if at(end) == "(" else end
        end += 1
    while at(end) == "{":  # braces of member initialisers, then the body
        end = adapter.close(end)
        if at(end + 1) in (",", "{"):
            end += 1
            while end < len(tokens) and at(end) != "{":
                end += 1
    if end < len(tokens):
        adapter.edit(tokens[start].start, tokens[end].end, "")


def _without_defaults(adapter: Adapter, opening: int, closing: int) -> list[str]:
    """The texts of a list of parameters, without the values of parameters that have one."""
    found, index = [], opening
    while index < closing:
        if adapter.at(index) == "=":
            while index < closing and adapter.at(index) != ",":
                index = adapter.close(index) if adapter.at(index) in ("(", "{", "[") else index
                index += 1
            continue
        found.append(adapter.at(index))
        index += 1
    return found


def adapt_kernel(adapter: Adapter, index: int) -> None:
    """Rewrite the threadgroup variables of the kernel that is announced at `index`."""
    at = adapter.at
    limit = min(len(adapter.tokens), index + 2000)
    while index < limit and at(index) not in ("{", ";", "}"):
        index = adapter.close(index) if at(index) in ("(", "[[") else index
        index += 1
    if at(index) != "{" or index in adapter.bodies:
        return
    adapter.bodies.add(index)
    end = adapter.close(index)
    adapter.out.kernel_bodies.append((adapter.tokens[index].start, adapter.tokens[end].end))
    depth = 0
    for i in range(index + 1, end):
        depth += (at(i) == "{") - (at(i) == "}")
        if at(i) == "threadgroup" and at(i - 1) in (";", "{", "}"):
            _threadgroup_variables(adapter, i, end, depth > 0)


def _threadgroup_variables(adapter: Adapter, index: int, end: int, is_inner: bool) -> None:
    """`threadgroup T a[N], b;` becomes references: templates that are kernels may not declare such variables."""
    at, tokens = adapter.at, adapter.tokens
    first = index + 1
    while at(first) == "alignas":
        first = adapter.close(first + 1) + 1
    name = first
    while name < end and not (tokens[name].kind == "name" and at(name + 1) in ("[", ";", ",", "=", "{")):
        if at(name) in ("*", "&", "(", "{", ";", "[["):
            return
        name = adapter.angle(name) if at(name) == "<" else name
        if name < 0:
            return
        name += 1
    if name <= first or name >= end:
        return
    if is_inner:
        message = f"threadgroup variable '{at(name)}' must stand in the outermost scope of the kernel"
        adapter.find("error", tokens[name], message)
    kind = adapter.text[tokens[first].start : tokens[name - 1].end]
    while True:
        stop = name + 1
        while stop < end and at(stop) not in (",", ";", "=", "{"):
            stop = adapter.close(stop) + 1 if at(stop) in ("[", "(") else stop + 1
        _reference(adapter, name, stop, kind)
        if at(stop) in ("=", "{"):
            adapter.find("error", tokens[stop], f"threadgroup variable '{at(name)}' cannot have an initializer")
            last = stop
            while last < end and at(last) not in (",", ";"):
                last = adapter.close(last) + 1 if at(last) in ("[", "(", "{") else last + 1
            adapter.edit(tokens[stop].start, tokens[last].start, "")
            stop = last
        if at(stop) != "," or tokens[stop + 1].kind != "name":
            return
        name = stop + 1


def _reference(adapter: Adapter, name: int, stop: int, kind: str) -> None:
    variable: Token = adapter.tokens[name]
    end = adapter.tokens[stop - 1].end
    sizes = adapter.text[variable.end : end]
    if sizes.strip():
        adapter.edit(variable.start, variable.end, f"(&{variable.text})")
        adapter.edit(end, end, f" = __msl_threadgroup<{kind}{sizes}>()")
    else:
        adapter.edit(variable.start, end, f"&{variable.text} = __msl_threadgroup<{kind}>()")
