"""Options of passes as text, and back.

    limit=4  ratio=0.5  exact=true  exact  name=fast  name="two words"  sizes=1,2,3  names="a b",c  sizes={}  limit=none

A boolean alone is true. Words need no quotes unless they have spaces, quotes, commas, braces or equals signs in them;
strings in quotes have the escapes of JSON (in single quotes, too). A tuple is written with commas, or in braces, as it
is inside of a tuple, or as in Python: sizes=(1, 2)  names=["a b", c]
"""

from __future__ import annotations

import sys
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any, Literal, Union, get_args, get_origin

from smelt.ir.errors import InternalError, PipelineError, shown

KINDS = "bool, int, float, str, Literal, Optional or a tuple of these"
_SPECIAL = frozenset(" \t\n\r\v\f\"'{}()[]")
_BRACKETS = {"{": "}", "(": ")", "[": "]"}


class Unreadable(InternalError):
    """A text that is none of the wanted type."""


def hints(cls: type) -> dict[str, Any]:
    """The types of a dataclass's fields; those that cannot be found are `Any`."""
    try:
        return typing.get_type_hints(cls)
    except Exception:  # a name that is there for type checkers only
        found: dict[str, Any] = {}
        for base in reversed(cls.__mro__):
            module = vars(sys.modules.get(base.__module__, typing))
            for name, annotation in vars(base).get("__annotations__", {}).items():
                try:
                    found[name] = eval(annotation, dict(module)) if isinstance(annotation, str) else annotation
                except Exception:
                    found[name] = Any
        return found


def spelled(name: str, options: Mapping[str, Any]) -> str:
    """A pass with its options, as a pipeline spells it.

    >>> spelled("fuse", {"max_ops": 4, "chains": True}), spelled("cse", {})
    ('fuse{max-ops=4 chains=true}', 'cse')
    """
    texts = [f"{key.replace('_', '-')}={to_text(value)}" for key, value in options.items()]
    return f"{name}{{{' '.join(texts)}}}" if texts else name


def to_text(value: Any) -> str:
    """An option's value as a pipeline spells it.

    >>> [to_text(v) for v in (True, 3, "two words", (1, 2), ("a,b",), (), None, ((1, 2), (3,)))]
    ['true', '3', '"two words"', '1,2', '"a,b"', '{}', 'none', '{1,2},{3}']
    """
    if isinstance(value, tuple):
        inside = _SPECIAL | {","}
        items = [f"{{{to_text(v) if v else ''}}}" if isinstance(v, tuple) else _scalar(v, inside) for v in value]
        return ",".join(items) if items else "{}"
    return _scalar(value)


def _scalar(value: Any, special: frozenset[str] = _SPECIAL) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    if isinstance(value, str) and (not text or special & set(text) or not text.isprintable() or text == "none"):
        import json  # few options have such text, and the first gradient loads this module

        return json.dumps(text)
    return text


def from_text(text: str, kind: Any) -> Any:
    """A value of a type from its text.

    Raises:
        Unreadable: the text says none. PipelineError: no text gives values of that type.

    >>> from_text("1,2", tuple[int, ...]), from_text('"a b",c', tuple[str, str]), from_text("none", Union[int, None])
    ((1, 2), ('a b', 'c'), None)
    """
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _one_of(text, get_args(kind))
    if origin is Literal:
        for choice in get_args(kind):
            if to_text(choice) == to_text(_unquoted(text)):
                return choice
        raise Unreadable
    if kind is tuple or origin is tuple:
        return _tuple(text, get_args(kind) or (str, ...))
    if kind is bool:
        try:
            return {"true": True, "1": True, "false": False, "0": False}[text.lower()]
        except KeyError:
            raise Unreadable from None
    if kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            raise Unreadable from None
    if kind in (str, Any):
        return _unquoted(text)
    raise PipelineError(f"no text gives a {described(kind)}; options are {KINDS}")


def _one_of(text: str, kinds: tuple[Any, ...]) -> Any:
    if type(None) in kinds and text.lower() == "none":
        return None
    for kind in sorted((k for k in kinds if k is not type(None)), key=lambda k: k is str):
        try:
            return from_text(text, kind)
        except Unreadable:
            pass
    raise Unreadable


def _tuple(text: str, kinds: tuple[Any, ...]) -> tuple[Any, ...]:
    items = list(_split(text))
    inner = _inside(items[0]) if len(items) == 1 else None
    if inner is not None and (get_origin(kinds[0]) is not tuple or inner[:1] in ("", *_BRACKETS)):
        items = list(_split(inner))
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        kinds = (kinds[0],) * len(items)
    if len(kinds) != len(items):
        raise Unreadable
    return tuple([from_text(_bare(item, kind), kind) for item, kind in zip(items, kinds)])


def _bare(item: str, kind: Any) -> str:
    """An element without the brackets of a tuple inside of a tuple."""
    inner = _inside(item) if get_origin(kind) is tuple else None
    return inner or item


def _inside(item: str) -> str | None:
    """What stands in the brackets that are all of a text."""
    return item[1:-1].strip() if item and item[-1] == _BRACKETS.get(item[0]) else None


def _split(text: str) -> Iterator[str]:
    """What stands between commas that are in no quotes or braces."""
    start = 0
    for at, depth in walk(text):
        if text[at] == "," and depth == 0:
            yield text[start:at].strip()
            start = at + 1
    if text[start:].strip():
        yield text[start:].strip()


def walk(text: str, start: int = 0) -> Iterator[tuple[int, int]]:
    """The places of characters outside of quotes, and how many brackets are open around each.

    Braces are brackets everywhere, others where a value begins.

    Raises:
        Unreadable: quotes or brackets that do not end.
    """
    at, braces, ends = start, 0, ""
    while at < len(text):
        c = text[at]
        begins = at == start or text[at - 1] in " \t\n=,{(["
        if c in "\"'" and begins:
            at = _end_of_quotes(text, at)
            continue
        ends = ends[:-1] if ends.endswith(c) else ends
        braces -= c == "}"
        yield at, braces + len(ends)
        braces += c == "{"
        ends += _BRACKETS[c] if c in "([" and begins else ""
        at += 1
    if ends:
        raise Unreadable


def _end_of_quotes(text: str, start: int) -> int:
    at = start + 1
    while at < len(text):
        if text[at] == text[start]:
            return at + 1
        at += 2 if text[at] == "\\" else 1
    raise Unreadable


def _unquoted(text: str) -> str:
    if len(text) < 2 or text[0] not in "\"'" or text[-1] != text[0]:
        return text
    import json

    inner = text[1:-1]
    if text[0] == "'":
        inner = inner.replace("\\'", "'").replace('"', '\\"')
    try:
        found = json.loads(f'"{inner}"', strict=False)
    except ValueError:
        raise Unreadable from None
    return str(found)


def split_options(text: str) -> list[tuple[str, str]]:
    """The options of a pass, each with its text; one without an equals sign has none.

    Raises:
        Unreadable: quotes that do not end.

    >>> split_options('limit=4 name="two words" on')
    [('limit', '4'), ('name', '"two words"'), ('on', '')]
    """
    found: list[tuple[str, str]] = []
    start: int | None = None
    for at, depth in [*walk(text), (len(text), 0)]:
        if at == len(text) or (text[at].isspace() and depth == 0):
            if start is not None:
                key, _, value = text[start:at].partition("=")
                found.append((key, value))
            start = None
        elif start is None:
            start = at
    return found


def described(kind: Any) -> str:
    """A type in a message.

    >>> described(Union[int, None]), described(tuple[str, ...]), described(float)
    ('int or none', 'tuple of str', 'float')
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return " or ".join("none" if k is type(None) else described(k) for k in arguments)
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        return f"tuple of {described(arguments[0])}"
    if origin is tuple:
        return f"tuple ({', '.join(map(described, arguments))})"
    if origin is Literal:
        return " or ".join(map(to_text, arguments))
    return str(getattr(kind, "__name__", shown(kind)))
