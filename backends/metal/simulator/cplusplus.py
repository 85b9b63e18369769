"""Metal text to C++, where erased address spaces are not enough.

Lines stay where they are. Functions that differ in address spaces alone become one, literals of double precision get
Metal's, function constants their values, and components of components become those of the vector.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from smelt.ir.errors import AttributeValueError

from .brackets import SimulatorError, close, split

#: What the host gives a function constant: by its number, or by its name.
Constants = Mapping[int | str, "bool | int | float | tuple[bool | int | float, ...]"]

_SPACES = re.compile(r"\b(?:device|threadgroup|thread)\b")
_UNIMPORTANT = re.compile(r"\b(?:METAL_FUNC|inline|static|constexpr|explicit|volatile)\b|\[\[.*?\]\]", re.DOTALL)
_LITERAL = re.compile(
    r"(?<![\w.])(?:\d+\.\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|0[xX][\da-fA-F]*\.?[\da-fA-F]*[pP][+-]?\d+)"
    r"(?![\w.])"
)
_CONSTANT = re.compile(
    r"(?:\bstatic\s+)?\bconstant\s+([\w:]+(?:<[^;{}]*?>)?)\s+(\w+)\s*\[\[\s*function_constant\s*\(([^()]*)\)\s*\]\]\s*;"
)
_COHERENT = re.compile(r"\bcoherent\b(?:\s*\(\s*\w+\s*\))?(?=\s+(?:device|volatile|const)\b)|(?<=\bdevice )coherent\b")
_NAMES = r"(?:[xyzw]{2,4}|[rgba]{2,4})"
_SWIZZLED = re.compile(rf"(\.|->)(\s*)({_NAMES})(\s*\.\s*)([xyzw]{{1,4}}|[rgba]{{1,4}})\b")
_BRACKETED = re.compile(rf"\(\s*([A-Za-z_][\w.]*(?:\[\w*\][\w.]*)*(?:\.|->)\s*{_NAMES})\s*\)(?=\s*\.\s*[xyzwrgba])")
_DEDUCED = re.compile(rf"(\bauto\s+\w+\s*=\s*)([^;{{}}]*?(?:\.|->)\s*({_NAMES})\s*);")
_OTHERWISE_NAMED = re.compile(rf"(\.|->)?\s*\b({_NAMES})\b")
_DEFINED = re.compile(r"\bis_function_constant_defined\s*\(\s*(\w+)\s*\)")


def _blanked(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def without_coherence(text: str) -> str:
    """The text without the word that makes device memory coherent: the host's is."""
    return _COHERENT.sub("", text)


def single_precision(text: str) -> str:
    """The text with literals of single precision: Metal has no other."""
    return _LITERAL.sub(lambda found: found.group() + "f", text)


def with_plain_components(text: str) -> str:
    """The text with ``v.z`` for ``v.yzx.y``, and with vectors, not parts of one, in variables whose type is deduced.

    The vectors of the host's headers have their components by name; those of these they have not. Where the text names
    something else so, ``xy`` may be the member of a structure, and is left as it is.
    """
    others = {found.group(2) for found in _OTHERWISE_NAMED.finditer(text) if not found.group(1)}

    def composed(found: re.Match[str]) -> str:
        before, space, first, between, second = found.groups()
        places = [("xyzw" if name in "xyzw" else "rgba").index(name) for name in second]
        if first in others or max(places) >= len(first):
            return found.group()
        return f"{before}{space}{''.join(first[i] for i in places)}" + "\n" * between.count("\n")

    def bare(found: re.Match[str]) -> str:
        is_called = re.search(r"(?:\w|[\])>])\s*$", text[: found.start()][-100:])
        is_word = re.search(r"\b(?:return|case|else|do)\s*$", text[: found.start()][-100:])
        return found.group() if is_called and not is_word else found.group(1)

    def vector(found: re.Match[str]) -> str:
        start, value, name = found.groups()
        return found.group() if name in others or len(split(value)) > 1 else f"{start}smelt::whole({value});"

    text = _BRACKETED.sub(bare, text)
    while (found := _SWIZZLED.sub(composed, text)) != text:
        text = found
    return _DEDUCED.sub(vector, text)


def with_constants(text: str, constants: Constants) -> str:
    """The text with values for its function constants: those of `constants`, else zero, as not defined.

    Raises AttributeValueError for a value of a constant that the text does not have.
    """
    given = dict(constants)
    defined: set[str] = set()

    def value(found: re.Match[str]) -> str:
        kind, name, number = found.groups()
        key: int | str | None = name if name in given else int(number) if number.strip().isdigit() else None
        stated = given.pop(key, None) if key is not None else None
        if stated is None:
            return f"constant {kind} {name} = {kind}(0);"
        defined.add(name)
        values = stated if isinstance(stated, tuple) else (stated,)
        return f"constant {kind} {name} = {kind}({', '.join(map(_literal, values))});"

    text = _CONSTANT.sub(value, text)
    if given:
        raise AttributeValueError(f"the Metal text has no function constant {', '.join(map(repr, given))}")
    return _DEFINED.sub(lambda found: "true" if found.group(1) in defined else "false", text)


def _literal(value: bool | int | float) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value}l" if value < 2**63 else f"{value}ul"
    return f"float({float(value)!r}f)" if abs(value) < float("inf") else "INFINITY" if value > 0 else "-INFINITY"


def merged(text: str) -> str:
    """The text with one of the functions that differ in address spaces alone, and without those of constructors.

    Raises SimulatorError for functions that then are the same and do different things.
    """
    blanks = list(_merged(text, 0, len(text), ""))
    for start, end in sorted(blanks, reverse=True):
        text = text[:start] + _blanked(text[start:end]) + text[end:]
    return text


def _merged(text: str, at: int, end: int, structure: str) -> Iterator[tuple[int, int]]:
    """Ranges to blank in a scope: that of `structure`, or of a namespace."""
    seen: dict[str, str] = {}
    header = at
    while at < end:
        character = text[at]
        if character in "\"'":
            at = _quoted(text, at)
        elif character == "#":
            at = header = max(text.find("\n", at, end), at) + 1
            continue
        elif character in "([":
            at = close(text, at)
        elif character == ":" and re.search(r"\b(?:public|private|protected)\s*$", text[header:at]):
            header = at + 1
        elif character == ";":
            head = text[header:at]
            if structure and "(" in head and "=" not in head.split("(")[0]:
                yield from _function(text, header, at, at + 1, "", structure, seen)
            header = at + 1
        elif character == "{":
            closing = close(text, at)
            head = text[header:at]
            plain = _UNIMPORTANT.sub(" ", head)
            named = re.search(r"\b(?:struct|class|union)\s+(?:alignas\s*\([^()]*\)\s*)?(\w+)[^()]*$", plain)
            if re.match(r"\s*(?:inline\s+)?namespace\b", head):
                yield from _merged(text, at + 1, closing, "")
            elif named:
                yield from _merged(text, at + 1, closing, named.group(1))
            elif "(" in head and not re.search(r"=\s*$", head):
                behind = re.compile(r"\s*").match(text, closing + 1)
                if behind and text[behind.end() : behind.end() + 1] in (",", "{"):
                    at = closing + 1  # braces of a member's initialiser
                    continue
                yield from _function(text, header, at, closing + 1, text[at:closing], structure, seen)
            at, header = closing, closing + 1
        at += 1


def _quoted(text: str, at: int) -> int:
    found = re.compile(r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'").match(text, at)
    return found.end() - 1 if found else at


def _function(
    text: str, start: int, stop: int, end: int, body: str, structure: str, seen: dict[str, str]
) -> Iterator[tuple[int, int]]:
    """What to blank of a function whose head lies between `start` and `stop`."""
    head = text[start:stop]
    if re.search(r"(?:^|\s)(?:vertex|fragment)\s", head):  # what runs in a render pipeline alone
        yield start, end
        return
    opening = _parameters(head)
    if opening < 0:
        return
    closing = close(head, opening)
    name = re.search(r"([\w~]+|operator\s*\S+)\s*$", head[:opening])
    is_constructor = bool(structure) and name is not None and name.group(1) == structure
    front, behind = head[:opening], head[closing + 1 :]
    if is_constructor:
        behind = behind.split(":")[0]
        for found in re.finditer(r"\b(?:device|threadgroup|thread|constant)\b", behind):
            yield start + closing + 1 + found.start(), start + closing + 1 + found.end()
        behind = _SPACES.sub("", behind).replace("constant", "")
    types = ",".join(_type(p) for p in split(head[opening + 1 : closing]))
    key = _plain(f"{front}({types}){behind}")
    if key not in seen:
        seen[key] = body
        return
    if not body and not structure:
        return
    if body and seen[key] and _plain(body) != _plain(seen[key]):
        shown = name.group(1) if name else "a function"
        line = text.count("\n", 0, start + len(head) - len(head.lstrip())) + 1
        raise SimulatorError(
            f"overloads of {shown!r} differ in address spaces and in what they do, which the simulator, with one "
            f"memory, cannot tell apart; line {line}"
        )
    yield start, end


def _parameters(head: str) -> int:
    """Where the parameters of a function begin in its head, or -1."""
    depth = 0
    for at, character in enumerate(head):
        if character == "<":
            depth += 1
        elif character == ">" and depth:
            depth -= 1
        elif character == "(" and depth == 0:
            before = re.search(r"([\w~]+|operator\s*\S*)\s*$", head[:at])
            if before and before.group(1) not in ("alignas", "decltype", "__attribute__", "noexcept"):
                return at if not before.group(1).endswith("operator") else close(head, at) + 1
    return -1


def _type(parameter: str) -> str:
    """A parameter without its name and its default."""
    parameter = parameter.split("=")[0].strip()
    is_named = len(parameter.split()) > 1 or "*" in parameter
    return re.sub(r"(?<=[\s*&>])\w+\s*$", "", parameter) if is_named else parameter


def _plain(text: str) -> str:
    text = _UNIMPORTANT.sub(" ", text)
    text = _SPACES.sub(" ", re.sub(r"\bconstant\b", "const", text))
    text = re.sub(r"\bconst\s+(?=const\b)", "", text)
    return re.sub(r"\s*([^\w\s])\s*", r"\1", re.sub(r"\s+", " ", text)).strip()
