"""Reads Metal texts as far as running them as C++ needs: kernels, their parameters, threadgroup variables.

The text itself stays as it is, line by line, but for what C++ does not have: attributes in double brackets
disappear, ``threadgroup`` declarations become whatever the target calls shared memory, explicit
instantiations with ``host_name`` become entries.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from smelt.backends.gpu.devices import METAL

from ..check.names import METAL_HEADERS, PRIMITIVES_HEADER
from .brackets import SimulatorError as SimulatorError
from .brackets import close, split
from .cplusplus import (
    Constants,
    merged,
    single_precision,
    with_constants,
    with_plain_components,
    without_coherence,
)


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel.

    Attributes:
        name: its name, which may be empty.
        type: its type as written, without attributes.
        kind: "buffer", "threadgroup" (memory of a length that the launch gives) or "position".
        index: of the buffer or threadgroup memory.
        attribute: of a position: ``thread_position_in_grid``, ...
        element: what a buffer holds: ``float``, ``uint2``, ...
        const: whether the kernel may only read.
        reference: whether it is a reference instead of a pointer.
        optional: whether a function constant decides that it is there.
    """

    name: str
    type: str
    kind: str
    index: int = -1
    attribute: str = ""
    element: str = ""
    const: bool = False
    reference: bool = False
    optional: bool = False


@dataclass(frozen=True)
class Entry:
    """A kernel that can be launched.

    Attributes:
        name: what it is launched by.
        function: the C++ expression to call: its name, with arguments if it is a template.
        parameters: in order.
        synchronizes: whether its threads may wait for each other at barriers or simd operations.
    """

    name: str
    function: str
    parameters: tuple[Parameter, ...]
    synchronizes: bool

    def buffers(self) -> tuple[Parameter, ...]:
        """The parameters that are buffers."""
        return tuple(p for p in self.parameters if p.kind == "buffer")


@dataclass(frozen=True)
class Source:
    """A text as C++, and its kernels by name."""

    text: str
    entries: dict[str, Entry]


#: Attributes of parameters that tell a thread where it stands.
POSITIONS = frozenset(
    [
        "thread_position_in_grid",
        "threads_per_grid",
        "thread_position_in_threadgroup",
        "threads_per_threadgroup",
        "threadgroup_position_in_grid",
        "threadgroups_per_grid",
        "dispatch_threads_per_threadgroup",
        "grid_origin",
        "thread_index_in_threadgroup",
        "thread_index_in_simdgroup",
        "simdgroup_index_in_threadgroup",
        "simdgroups_per_threadgroup",
        "dispatch_simdgroups_per_threadgroup",
        "dispatch_quadgroups_per_threadgroup",
        "threads_per_simdgroup",
        "thread_execution_width",
        "thread_index_in_quadgroup",
        "quadgroup_index_in_threadgroup",
        "quadgroups_per_threadgroup",
    ]
)

_ATTRIBUTE = re.compile(r"\[\[(.*?)\]\]", re.S)
_SYNCHRONIZES = re.compile(
    r"\b(?:threadgroup_barrier|simdgroup_\w+|make_(?:filled|diagonal)_simdgroup_matrix|"
    r"(?:simd|quad)_(?:sum|product|min|max|and|or|xor|broadcast\w*|shuffle\w*|prefix_\w+|ballot|vote|all|any|is_first|"
    r"active_threads_mask)|__metal_(?:simd|quad)_\w+)\b"
)
_KERNEL = re.compile(r"\bkernel\s+(?:__attribute__\s*\(\(.*?\)\)\s*)?void\s+(\w+)\s*\(", re.S)
_THREADGROUP = re.compile(
    r"(?<=[;{}:)])(?P<space>\s*)(?P<align>alignas\s*\([^()]*\)\s*)?threadgroup\s+(?P<align2>alignas\s*\([^()]*\)\s*)?"
    r"(?P<type>(?:(?:const|volatile|typename|unsigned)\s+)*(?:\w+::)*\w+(?:\s*<[^;{}=]*?>(?:::\w+)*)?)\s+"
    r"(?P<names>\w+\s*(?:\[[^;]*?\]\s*)*(?:,\s*\w+\s*(?:\[[^;]*?\]\s*)*)*);"
)
_INSTANCE = re.compile(
    r"\btemplate\s*\[\[\s*host_name\s*\(\s*((?:\"[^\"]*\"\s*)+)\)\s*\]\]\s*(?:\[\[\s*kernel\s*\]\]|kernel)\s+([^;{}]*);"
)
_HOST_NAME = re.compile(
    r"\[\[\s*host_name\s*\(\s*((?:\"[^\"]*\"\s*)+)\)\s*\]\]\s*(?:\[\[[^\]]*\]\]\s*)*(?:kernel\s+)?"
    r"(?:\[\[[^\]]*\]\]\s*)*void\s+(\w+)\s*\("
)
#: What the host has nothing for, and the words by which a text uses it.
_ABSENT = {
    "image blocks": re.compile(r"\bimageblock\s*<"),
    "mesh pipelines": re.compile(r"\bmesh\s*<|\bmesh_grid_properties\b"),
    "ray tracing": re.compile(r"\b(?:\w+_)?acceleration_structure\b|\bintersection_function_table\s*<"),
    "tensors": re.compile(r"\btensor\s*<\s*(?:const\s+)?(?:device|threadgroup|constant|thread)\b"),
    "indirect command buffers": re.compile(r"\b(?:render|compute)_command\b|\bcommand_buffer\b"),
}
_INCLUDE = re.compile(r"^([ \t]*#[ \t]*(?:include|import)[ \t]*)<([\w/.]+)>", re.MULTILINE)
_NAMESPACE = re.compile(r"\bnamespace\s+([\w:]*)\s*\{")
_TEMPLATE = re.compile(r"\btemplate\s*<")


def without_comments(text: str) -> str:
    """The text with spaces in place of comments, lines where they were."""

    def blank(found: re.Match[str]) -> str:
        piece = found.group(0)
        return piece if piece[0] in "\"'" else re.sub(r"[^\n]", " ", piece)

    return re.sub(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|//[^\n]*|/\*.*?\*/", blank, text, flags=re.S)


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """(header, body) of the functions and types of a text, also those in namespaces."""
    at = header = 0
    while at < len(text):
        character = text[at]
        if character == ";":
            header = at + 1
        elif character == "{":
            end = close(text, at)
            head = text[header:at].strip()
            if re.match(r"(?:inline\s+)?namespace\b|extern\s*\"C\"", head):
                yield from _blocks(text[at + 1 : end])
            else:
                yield head, text[at : end + 1]
            at, header = end, end + 1
        at += 1


def _synchronizing(text: str) -> Callable[[str], bool]:
    """Tells whether a kernel reaches a barrier or simd operation, through the functions that it names."""
    bodies: dict[str, str] = {}
    everywhere = ""
    for head, body in _blocks(text):
        plain = re.sub(r"^[ \t]*#(?:.*\\\n)*.*", "", head, flags=re.M)
        plain = re.sub(r"\b(?:decltype|alignas|__attribute__)\s*\(", "(", plain)
        type_name = re.search(r"\b(?:struct|class|union|enum)\s+(?:class\s+)?(\w+)[^()]*$", plain)
        function = re.search(r"(\w+)\s*\(", plain)
        name = type_name or function
        if name is None or "operator" in plain:
            everywhere += body
        else:
            bodies[name.group(1)] = bodies.get(name.group(1), "") + head + body
    # Macros and initialisers lie outside of all blocks.
    everywhere += "\n".join(re.findall(r"^[ \t]*#[ \t]*define\b(?:.*\\\n)*.*", text, re.M))

    def reaches(kernel: str) -> bool:
        seen, left = set(), [kernel]
        if _SYNCHRONIZES.search(everywhere):
            return True
        while left:
            name = left.pop()
            if name in seen:
                continue
            seen.add(name)
            body = bodies.get(name, "")
            if _SYNCHRONIZES.search(body):
                return True
            left += set(re.findall(r"\w+", body)) & bodies.keys() - seen
        return False

    return reaches


_QUALIFIERS = frozenset(("device", "constant", "const", "threadgroup", "volatile", "coherent"))


def _parameter(written: str, taken: set[int], threadgroup: Callable[[], int]) -> Parameter:
    attributes = {
        found.group(1): (found.group(2) or "").strip()
        for body in _ATTRIBUTE.findall(written)
        for found in re.finditer(r"([\w:]+)\s*(?:\(([^()]*)\))?", body)
    }
    plain = " ".join(_ATTRIBUTE.sub(" ", written).split())
    found = re.search(r"\b(\w+)\s*(\[\s*\w*\s*\])?((?:\[\s*\w+\s*\])*)$", plain)
    array = re.search(r"\(\s*&\s*(\w+)\s*\)\s*\[[^\]]*\]$", plain)
    name = array.group(1) if array else found.group(1) if found else ""
    type_ = (plain[: found.start()] + ("*" if found.group(2) else "")).strip() if found else plain
    if array:
        type_ = plain[: array.start()].strip() + "&"
    if not type_:
        name, type_ = "", plain
    position = next((a for a in attributes if a in POSITIONS), None)
    if position:
        return Parameter(name, type_, "position", attribute=position)
    if not re.search(r"[*&]", type_):
        if re.match(r"(?:const\s+)?(?:metal::)?(?:array\s*<\s*)?(?:texture|depth|sampler)", type_):
            raise SimulatorError(f"the simulator has no textures; parameter {plain!r} of a kernel is one")
        raise SimulatorError(f"parameter {plain!r} of a kernel is neither a buffer nor a known position")
    pointee = type_.rstrip("*& ").replace("const*", "const *")
    words = [w for w in pointee.split() if w not in _QUALIFIERS]
    const = bool(re.search(r"\b(?:const|constant)\b", pointee))
    reference = type_.endswith("&")
    if "threadgroup" in attributes or re.search(r"\bthreadgroup\b", type_):
        number = attributes.get("threadgroup")
        index = int(number) if number else threadgroup()
        return Parameter(name, type_, "threadgroup", index, element=" ".join(words), reference=reference)
    number = attributes.get("buffer", "")
    if number.isdigit():
        index = int(number)
    else:
        index = next(i for i in range(len(taken) + 1) if i not in taken)
    taken.add(index)
    is_optional = "function_constant" in attributes
    return Parameter(name, type_, "buffer", index, "", " ".join(words), const, reference, is_optional)


def _parameters(written: str) -> tuple[Parameter, ...]:
    pieces = split(written)
    taken = {int(n) for n in re.findall(r"\[\[\s*buffer\s*\(\s*(\d+)\s*\)", written)}
    memories = iter(range(METAL.max_buffers))
    return tuple(_parameter(piece, taken, lambda: next(memories)) for piece in pieces if piece != "void")


def _template_names(text: str, end: int) -> list[str]:
    """Names of the template parameters of the declaration that stands right before `end`."""
    openings = [found.end() - 1 for found in _TEMPLATE.finditer(text, 0, end)]
    if not openings:
        return []
    opening = openings[-1]
    closing = close(text, opening)
    if re.sub(r"\b(?:static|inline)\b", "", text[closing + 1 : end]).strip():
        return []
    return [_template_name(p) for p in split(text[opening + 1 : closing])]


def _template_name(parameter: str) -> str:
    function = re.search(r"\(\s*[*&]\s*(\w+)\s*\)\s*\(", parameter)
    return function.group(1) if function else (parameter.split("=")[0].split() or [""])[-1]


def known_headers(text: str) -> str:
    """The text with the one header that there is in place of all those of Metal's library."""

    def name(found: re.Match[str]) -> str:
        is_known = found.group(2) in METAL_HEADERS or found.group(2) == PRIMITIVES_HEADER
        return f"{found.group(1)}<metal_stdlib>" if is_known else found.group()

    return _INCLUDE.sub(name, text)


def _qualified(text: str) -> Callable[[int], str]:
    """Tells which namespaces a place lies in: `a::b::`."""
    found = [(m.start(), close(text, m.end() - 1), m.group(1)) for m in _NAMESPACE.finditer(text)]
    return lambda at: "".join(f"{name}::" for start, end, name in found if start < at < end and name)


def parse(text: str, threadgroup: Callable[[int, str, str, str], str], constants: Constants | None = None) -> Source:
    """The text as C++, and its entries.

    Args:
        text: Metal, preprocessed if it builds kernels with macros.
        threadgroup: from number, type, name and dimensions (``"[32][4]"`` or nothing) of a threadgroup variable
            to the C++ statement that declares it.
        constants: values of function constants, by number or name.

    Raises:
        SimulatorError: kernels that cannot be read. AttributeValueError: a value of no constant.
    """
    text = with_constants(without_comments(text), constants or {})
    for what, words in _ABSENT.items():
        if found := words.search(text):
            raise SimulatorError(f"the simulator has no {what}; the text uses '{found.group().rstrip(' <')}'")
    text = with_plain_components(single_precision(without_coherence(text)))
    host_names = {name: "".join(re.findall(r'"([^"]*)"', given)) for given, name in _HOST_NAME.findall(text)}
    text, instances = _instances(text)
    text = re.sub(r"\[\[\s*(?:[^\[\]]*,)?\s*(kernel|vertex|fragment)\s*(?:,[^\[\]]*)?\]\]", r"\1", text)
    text = re.sub(r"\bconst\s+constant\b|\bconstant\s+const\b", "constant", text)
    # Attributes between `kernel` and its parameters are of no use here.
    text = re.sub(r"(?<=\bkernel\b)(?:\s*\[\[[^\]]*\]\])+", _lines_alone, text)
    text = re.sub(r"(?:\[\[[^\]]*\]\]\s*)+(?=kernel\b)", _lines_alone, text)
    plain = merged(_ATTRIBUTE.sub(_lines_alone, text))
    entries = _entries(text, host_names, instances, _synchronizing(plain))
    return Source(_declared(plain, threadgroup), entries)


def _lines_alone(found: re.Match[str]) -> str:
    """What is left of a match: its ends of lines, so that errors name the right one."""
    return " " + "\n" * found.group(0).count("\n")


def _instances(text: str) -> tuple[str, list[tuple[str, str]]]:
    """The text without explicit instances of kernels that are templates; of each the name and what it is one of."""
    found: list[tuple[int, str, str]] = []

    def take(instance: re.Match[str]) -> str:
        name = "".join(re.findall(r'"([^"]*)"', instance.group(1)))
        rest = instance.group(2).strip()
        if rest.startswith("decltype"):
            rest = rest[close(rest, rest.index("(")) + 1 :].strip()
        else:
            rest = re.sub(r"^(?:[\w:]+\s+)+(?=[\w:]+\s*[<(])", "", rest)
        depth = 0
        for at, character in enumerate(rest):  # up to the parameters, if they are repeated
            depth += (character == "<") - (character == ">")
            if character == "(" and depth == 0:
                rest = rest[:at]
                break
        found.append((instance.start(), name, rest.strip()))
        return "\n" * instance.group(0).count("\n")

    place = _qualified(text)
    left = _INSTANCE.sub(take, text)
    return left, [(name, place(at) + rest) for at, name, rest in found]


def _entries(
    text: str, host_names: Mapping[str, str], instances: Sequence[tuple[str, str]], reaches: Callable[[str], bool]
) -> dict[str, Entry]:
    """The kernels of a text, by the names that a host calls them by.

    Args:
        reaches: whether a function of a name waits for others of its threadgroup.
    """
    templates: dict[str, tuple[list[str], str]] = {}
    place, places = _qualified(text), dict[str, str]()
    for found in _KERNEL.finditer(text):
        opening, name = found.end() - 1, found.group(1)
        written = text[opening + 1 : close(text, opening)]
        templates.setdefault(name, (_template_names(text, found.start()), written))
        places[name] = place(found.start())
    entries: dict[str, Entry] = {}
    for name, (arguments, written) in templates.items():
        if not arguments:
            host = host_names.get(name, name)
            entries[host] = Entry(host, places[name] + name, _parameters(written), reaches(name))
    for name, expression in instances:
        base = expression.split("<")[0].strip().rpartition("::")[2]
        if base not in templates:
            raise SimulatorError(f"host_name {name!r}: there is no kernel {base!r} to instantiate")
        arguments, written = templates[base]
        given = split(expression[expression.index("<") + 1 : expression.rindex(">")]) if "<" in expression else []
        for argument, value in zip(arguments, given):
            written = re.sub(rf"\b{re.escape(argument)}\b", value.replace("\\", r"\\"), written)
        entries[name] = Entry(name, expression, _parameters(written), reaches(base))
    return entries


def _declared(text: str, threadgroup: Callable[[int, str, str, str], str]) -> str:
    """The text with what `threadgroup` makes of the variables of threadgroups, in place of them."""
    count = 0

    def declare(found: re.Match[str]) -> str:
        nonlocal count
        out = found.group("space")
        align = found.group("align") or found.group("align2") or ""
        for piece in split(found.group("names")):
            name = re.match(r"\w+", piece)
            assert name
            out += threadgroup(count, align + found.group("type"), name.group(0), piece[name.end() :].strip()) + " "
            count += 1
        return out + "\n" * (found.group(0).count("\n") - out.count("\n"))

    return _THREADGROUP.sub(declare, text)
