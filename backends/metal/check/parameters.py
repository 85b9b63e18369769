"""Rules for what functions of a pipeline take: resources with their numbers, built-in values, members of structures."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from ...gpu.devices import METAL
from .names import (
    FRAGMENT_THREADS,
    FRAGMENT_TYPES,
    INTERSECTION_TYPES,
    KNOWN_ATTRIBUTES,
    MEMBER_TYPES,
    PARAMETER_TYPES,
    RESOURCES,
    VERTEX_TYPES,
    WITH_THREADGROUPS,
    words,
)
from .values import NoInteger, Undeclared

if TYPE_CHECKING:
    from .rules import Function, Node, Rules

STAGES = ("kernel", "vertex", "fragment", "object", "mesh", "intersection")
_LIMITS = {"buffer": METAL.max_buffers, "threadgroup": METAL.max_buffers, "texture": 128, "sampler": 16}
#: Attributes that have the same type wherever a kernel uses more than one of them.
_POSITIONS = frozenset(name for name, types in PARAMETER_TYPES.items() if "uint3" in types)
#: Which built-in values each stage has.
_BUILTINS = {
    "kernel": PARAMETER_TYPES,
    "vertex": VERTEX_TYPES,
    "fragment": {**FRAGMENT_TYPES, **{name: PARAMETER_TYPES[name] for name in FRAGMENT_THREADS}},
}
_AMPLIFICATION = {name: VERTEX_TYPES[name] for name in ("amplification_id", "amplification_count")}
_BUILTINS["object"] = _BUILTINS["mesh"] = {**PARAMETER_TYPES, **_AMPLIFICATION}
_BUILTINS["intersection"] = INTERSECTION_TYPES
#: Stages that hand a payload on or take one, and the address space that it lies in, in clang's words and Metal's.
_PAYLOADS = {
    **dict.fromkeys(("object", "mesh"), ("__local", "object_data")),
    "intersection": ("__private", "ray_data"),
}
#: What an intersection function is about, and the tags of what it is told.
_SHAPES = ("triangle", "bounding_box", "curve")
_TAGS = words("instancing triangle_data curve_data world_space_data primitive_motion instance_motion extended_limits")
#: What stands in parameters without attributes, besides resources.
_UNNAMED = {"kernel": "imageblock<", "object": "mesh_grid_properties", "mesh": "mesh<"}
_POINTERS = ("POINTER", "LVALUEREFERENCE")
#: What clang calls memory to which no structure in device or constant memory may point.
_ELSEWHERE = {"__private": "thread", "__local": "threadgroup"}
_ARRAYS = ("CONSTANTARRAY", "INCOMPLETEARRAY", "DEPENDENTSIZEDARRAY")
#: Members of one structure that have numbers of their own.
_NUMBERED_MEMBERS = frozenset({"id", "attribute", "color"})
#: The highest of these numbers: a vertex has 31 attributes, a fragment 8 colours.
_HIGHEST = {"attribute": 30, "color": 7}


class _Resource(NamedTuple):
    kind: str
    length: int = 1


def check_parameters(function: Function, rules: Rules) -> None:
    """Check the parameters of a function of a stage."""
    _Parameters(function, rules).run()


def check_members(node: Node, rules: Rules) -> None:
    """Check the attributes on the members of a structure."""
    used: set[tuple[str, int]] = set()
    for member in node.parts:
        if member.kind != "FIELD_DECL":
            continue
        found = member.annotations()
        for attribute, arguments in found:
            if attribute in MEMBER_TYPES:
                if (attribute, 0) in used:
                    rules.add("error", member.cursor, f"[[{attribute}]] stands on one member alone")
                used.add((attribute, 0))
                kind = type_name(member.cursor.type)
                if kind not in MEMBER_TYPES[attribute] and "type-parameter" not in kind:
                    (right,) = MEMBER_TYPES[attribute]
                    rules.add("error", member.cursor, f"[[{attribute}]] has type '{kind}'; it is a {right}")
            elif attribute in _NUMBERED_MEMBERS and len(found) == 1:
                value = number(rules, member.cursor, attribute, arguments, ())
                most = _HIGHEST.get(attribute)
                if value is not None and most is not None and value > most:
                    rules.add("error", member.cursor, f"[[{attribute}({value})]] is above {most}")
                elif value is not None and (attribute, value) in used:
                    rules.add("error", member.cursor, f"{attribute} {value} is used twice")
                used.add((attribute, -1 if value is None else value))


def number(rules: Rules, cursor: Any, attribute: str, text: str, unknown: tuple[str, ...]) -> int | None:
    """The number in an attribute, if it can be known; reports what is no number or is negative."""
    try:
        value = rules.values.evaluate(text, unknown)
    except Undeclared as error:
        rules.add("error", cursor, f"[[{attribute}({text})]]: '{error}' is no constant")
        return None
    except NoInteger:
        rules.add("error", cursor, f"[[{attribute}({text})]] needs an integer")
        return None
    if value is not None and value < 0:
        rules.add("error", cursor, f"[[{attribute}({text})]]: {value} is negative")
        return None
    return value


class _Parameters:
    def __init__(self, function: Function, rules: Rules) -> None:
        self.function, self.rules, self.stage = function, rules, function.stage
        self.used: dict[tuple[str, int], bool] = {}
        self.builtins: dict[str, str] = {}
        self.stage_inputs = 0
        self.unknown = tuple(
            part.cursor.spelling for part in function.node.parts if part.kind == "TEMPLATE_NON_TYPE_PARAMETER"
        )

    def run(self) -> None:
        parameters = [part for part in self.function.node.parts if part.kind == "PARM_DECL"]
        waiting: list[tuple[Any, _Resource]] = []
        for node in parameters:
            found = node.annotations()
            resource = _resource(node.cursor.type)
            self.pointers(node.cursor)
            if not found and resource is not None:
                waiting.append((node.cursor, resource))
            elif not found:
                self.unnamed(node.cursor)
            for attribute, arguments in found:
                self.attribute(node.cursor, attribute, arguments, resource, found)
        for cursor, resource in waiting:
            self.numbered(cursor, resource)
        self.widths()
        self.result()

    def error(self, cursor: Any, message: str) -> None:
        self.rules.add("error", cursor, message)

    def unnamed(self, cursor: Any) -> None:
        kind = cursor.type.get_canonical()
        if self.stage == "fragment" and _has_colours(kind):
            return
        if self.stage == "mesh" and _is_dependent(kind):
            return
        if self.stage in _UNNAMED and _plain(kind).startswith(_UNNAMED[self.stage]):
            return
        hint = {"vertex": "[[vertex_id]]", "fragment": "[[stage_in]]", "intersection": "[[origin]]"}
        hint.update(dict.fromkeys(WITH_THREADGROUPS, "[[thread_position_in_grid]]"))
        written = "[[buffer(0)]]" if _pointee(cursor.type) is not None else hint[self.stage]
        what = f"{self.stage} parameter '{cursor.spelling}'"
        self.error(cursor, f"{what} has no attribute such as {written}")

    def numbered(self, cursor: Any, resource: _Resource) -> None:
        """What has no number gets the first that is free."""
        kind, index = resource.kind, 0
        while any((kind, index + n) in self.used for n in range(resource.length)):
            index += 1
        self.take(cursor, kind, index, resource.length, False)
        message = f"{self.stage} parameter '{cursor.spelling}' has no attribute such as [[{kind}({index})]]"
        self.rules.add("remark", cursor, f"{message}: Metal numbers it")

    def pointers(self, cursor: Any) -> None:
        pointee = _pointee(cursor.type)
        if pointee is not None and pointee.kind.name == "POINTER":
            message = f"parameter '{cursor.spelling}' is a pointer to a pointer; put the inner one into a structure"
            self.error(cursor, message)
            return
        found = None if pointee is None or "__local" in pointee.spelling else _misplaced(pointee)
        if found is not None:
            self.error(cursor, f"parameter '{cursor.spelling}' has a structure in memory: {found}")

    def attribute(
        self, cursor: Any, attribute: str, arguments: str, resource: _Resource | None, found: list[tuple[str, str]]
    ) -> None:
        builtins = _BUILTINS[self.stage]
        if attribute not in KNOWN_ATTRIBUTES:
            near = difflib.get_close_matches(attribute, sorted(KNOWN_ATTRIBUTES), 1)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            self.error(cursor, f"unknown attribute '{attribute}'{hint}")
        elif attribute in builtins:
            self.builtin(cursor, attribute, builtins[attribute])
        elif attribute == "threadgroup" and self.stage in ("vertex", "intersection"):
            article = "an" if self.stage == "intersection" else "a"
            self.error(cursor, f"[[threadgroup]]: {article} {self.stage} function has no threadgroup memory")
        elif attribute == "payload":
            self.payload(cursor)
        elif attribute in RESOURCES:
            self.resource(cursor, attribute, arguments, resource, found)
        elif attribute == "stage_in":
            self.stage_inputs += 1
            if self.stage_inputs > 1:
                self.error(cursor, "[[stage_in]] stands on one parameter alone")
            kind = cursor.type.get_canonical()
            if kind.get_declaration().kind.name == "NO_DECL_FOUND" and not _is_dependent(kind):
                self.error(cursor, f"[[stage_in]] stands on a structure, not on '{type_name(cursor.type)}'")
            elif self.stage != "fragment":
                self.stage_input(cursor)
        elif attribute == "function_constant":
            if arguments.isidentifier() and not self.rules.is_function_constant(cursor, arguments):
                self.error(cursor, f"[[function_constant({arguments})]]: there is no such function constant")
        else:
            stages = [stage for stage in STAGES if attribute in _BUILTINS[stage]]
            if stages:
                self.error(
                    cursor, f"[[{attribute}]] is a value of {' and '.join(stages)} functions, not of a {self.stage}"
                )

    def payload(self, cursor: Any) -> None:
        """What an object function hands on to mesh functions, and a ray to what it may hit."""
        space, written = _PAYLOADS.get(self.stage, ("", ""))
        pointee = _pointee(cursor.type)
        if not space:
            stages = " and ".join(_PAYLOADS)
            self.error(cursor, f"[[payload]] is a value of {stages} functions, not of a {self.stage}")
        elif pointee is None or space not in pointee.spelling:
            self.error(cursor, f"[[payload]] stands on a reference or pointer to {written} memory")
        elif self.stage == "mesh" and not pointee.is_const_qualified():
            self.error(cursor, "[[payload]] of a mesh function is const")

    def stage_input(self, cursor: Any) -> None:
        """What a vertex or kernel function reads of the vertex descriptor is found by the numbers of its members."""
        for member in cursor.type.get_canonical().get_declaration().get_children():
            if member.kind.name != "FIELD_DECL" or "patch_control_point<" in member.type.spelling:
                continue
            names = [part.spelling for part in member.get_children() if part.kind.name == "ANNOTATE_ATTR"]
            if not any(name.startswith("attribute(") for name in names):
                message = f"[[stage_in]]: the member '{member.spelling}' has no attribute such as [[attribute(0)]]"
                self.error(cursor, message)
                return

    def result(self) -> None:
        """A vertex function returns where its vertex is, if it returns anything; an intersection function whether a ray
        hits."""
        cursor, kind = self.function.cursor, self.function.cursor.result_type.get_canonical()
        if self.stage not in ("vertex", "intersection") or _is_dependent(kind):
            return
        members = [*kind.get_fields(), *kind.get_declaration().get_children()]
        if any(m.kind.name == "CXX_BASE_SPECIFIER" for m in members):
            return
        marks = {part.spelling for m in members for part in m.get_children() if part.kind.name == "ANNOTATE_ATTR"}
        what = f"{self.stage} '{cursor.spelling}' returns '{type_name(kind)}'"
        if self.stage == "intersection":
            self.hit(what, kind, marks)
        elif type_name(kind) not in ("void", "float4") and not any(mark.startswith("position") for mark in marks):
            self.error(cursor, f"{what}: a float4, or a structure with a member [[position]], or void")

    def hit(self, what: str, kind: Any, marks: set[str]) -> None:
        """What an intersection function of a shape returns: of a box it says how far the hit is, too."""
        cursor = self.function.cursor
        (arguments,) = (text for name, text in self.function.annotations if name == "intersection")
        shape, *tags = [word.strip() for word in arguments.split(",")]
        unknown = [tag for tag in tags if tag not in _TAGS and not tag.startswith("max_levels")]
        if shape not in _SHAPES:
            self.error(cursor, f"[[intersection({arguments})]] begins with one of {', '.join(_SHAPES)}")
        elif unknown:
            self.error(cursor, f"[[intersection({arguments})]]: {unknown[0]} is none of {', '.join(sorted(_TAGS))}")
        elif shape == "bounding_box" and not marks >= {"accept_intersection", "distance"}:
            self.error(cursor, f"{what}: a structure with members [[accept_intersection]] and [[distance]]")
        elif shape != "bounding_box" and type_name(kind) != "bool" and "accept_intersection" not in marks:
            self.error(cursor, f"{what}: a bool, or a structure with a member [[accept_intersection]]")
        elif shape != "bounding_box" and "distance" in marks:
            self.error(cursor, f"{what}: [[distance]] is of bounding boxes alone")

    def builtin(self, cursor: Any, attribute: str, allowed: frozenset[str]) -> None:
        if cursor.type.get_canonical().kind.name in ("UNEXPOSED", "DEPENDENT"):
            return
        kind = type_name(cursor.type)
        if kind not in allowed:
            self.error(cursor, f"[[{attribute}]] has type '{kind}'; it may have {', '.join(sorted(allowed))}")
            return
        first = self.builtins.setdefault(attribute, kind)
        if first != kind:
            self.error(cursor, f"[[{attribute}]] is {first} and {kind}; it has one type in a function")
            self.builtins[attribute] = ""

    def widths(self) -> None:
        kinds = sorted({kind for name, kind in self.builtins.items() if name in _POSITIONS})
        if "" not in kinds and len({kind[-1] if kind[-1].isdigit() else "1" for kind in kinds}) > 1:
            name = self.function.cursor.spelling
            message = f"position attributes of kernel '{name}' differ in width: {', '.join(kinds)}"
            self.error(self.function.cursor, message)

    def resource(
        self, cursor: Any, attribute: str, arguments: str, resource: _Resource | None, found: list[tuple[str, str]]
    ) -> None:
        if arguments:
            index = number(self.rules, cursor, attribute, arguments, self.unknown)
            if index is not None:
                is_optional = any(name == "function_constant" for name, _ in found)
                self.take(cursor, attribute, index, resource.length if resource else 1, is_optional)
        else:
            self.error(cursor, f"[[{attribute}]] needs an index, such as [[{attribute}(0)]]")
        kind = cursor.type
        if kind.kind.name in _ARRAYS or re.search("type-parameter", kind.get_canonical().spelling):
            return
        if resource is not None and resource.kind == attribute:
            return
        name = cursor.spelling
        if attribute == "threadgroup":
            self.error(cursor, f"[[threadgroup]] parameter '{name}' must be a threadgroup pointer")
        elif attribute == "buffer":
            self.error(cursor, f"[[buffer]] parameter '{name}' must be a device or constant pointer or reference")
        elif resource is not None or not _is_dependent(kind):
            self.error(cursor, f"[[{attribute}]] parameter '{name}' must be a {attribute}")

    def take(self, cursor: Any, attribute: str, index: int, count: int, is_optional: bool) -> None:
        last = index + count - 1
        if last >= _LIMITS[attribute]:
            self.error(cursor, f"{attribute} index {last} is above {_LIMITS[attribute] - 1}")
            return
        for n in range(index, last + 1):
            if self.used.get((attribute, n), is_optional) is False and (attribute, n) in self.used and not is_optional:
                self.error(cursor, f"{attribute} index {n} is used twice")
                break
            self.used[attribute, n] = is_optional


def _plain(kind: Any) -> str:
    """The name of a type of Metal's library, without qualifiers."""
    return re.sub(r"\b(?:const|metal::|__private) ?", "", kind.spelling)


def _has_colours(kind: Any) -> bool:
    """Whether a type is a structure of what the attachments hold: each member names its colour."""
    members = [member for member in kind.get_declaration().get_children() if member.kind.name == "FIELD_DECL"]
    marks = [[part.spelling for part in m.get_children() if part.kind.name == "ANNOTATE_ATTR"] for m in members]
    return bool(members) and all(any(mark.startswith("color(") for mark in found) for found in marks)


def _is_dependent(kind: Any) -> bool:
    return kind.get_canonical().kind.name in ("UNEXPOSED", "DEPENDENT", "INVALID")


def _resource(kind: Any) -> _Resource | None:
    """What a parameter of a type is bound to, if that can be told."""
    canonical = kind.get_canonical()
    pointee = _pointee(kind)
    if pointee is not None:
        written = canonical.spelling if canonical.kind.name in _ARRAYS else pointee.spelling
        if "__local" in written:
            return _Resource("threadgroup")
        return _Resource("buffer") if re.search("__global|__constant", written) else None
    spelling = _plain(canonical)
    array = re.fullmatch(r"array<(.*), (\d+)>", spelling)
    element, count = (array.group(1), int(array.group(2))) if array else (spelling, 1)
    if re.match(r"(?:texture|depth)(?:\w+)<", element):
        return _Resource("texture", count)
    if element == "sampler":
        return _Resource("sampler", count)
    tables = r"(?:raytracing::)?(?:visible_function_table|intersection_function_table|acceleration_structure)<"
    tensor = re.match(r"tensor<.*\btensor_handle>$", element)
    return _Resource("buffer", count) if tensor or re.match(tables, element) else None


def _pointee(kind: Any) -> Any:
    """What a parameter points to, which may be written as an array; None where it is no pointer."""
    canonical = kind.get_canonical()
    if canonical.kind.name in _ARRAYS:
        return canonical.element_type
    return canonical.get_pointee() if canonical.kind.name in _POINTERS else None


def _misplaced(kind: Any, in_union: bool = False, seen: frozenset[str] = frozenset()) -> str | None:
    """What a structure in device or constant memory has that may not stand there; None: nothing. It may have pointers
    to memory of these two, outside of unions."""
    canonical = kind.get_canonical()
    while canonical.kind.name in _ARRAYS:
        canonical = canonical.element_type.get_canonical()
    if canonical.kind.name != "RECORD" or canonical.spelling in seen:
        return None
    seen |= {canonical.spelling}
    declared = canonical.get_declaration()
    in_union |= declared.kind.name == "UNION_DECL"
    members = [("", c.type) for c in declared.get_children() if c.kind.name == "CXX_BASE_SPECIFIER"]
    for name, member in [*members, *((f.spelling, f.type) for f in canonical.get_fields())]:
        target = member.get_canonical().get_pointee() if member.get_canonical().kind.name in _POINTERS else None
        if target is not None:
            space = next((metal for clang, metal in _ELSEWHERE.items() if clang in target.spelling), None)
            if space is not None:
                return f"'{name}' points to {space} memory: only pointers to device and constant memory may stand there"
            if in_union:
                return f"the pointer '{name}' is in a union: a structure with pointers in memory may have none"
        found = _misplaced(member if target is None else target, in_union and target is None, seen)
        if found is not None:
            return found
    return None


def type_name(kind: Any) -> str:
    """What a program calls a type: `uint3`, whatever the alias."""
    name = re.sub(r"\b(const|volatile|__private|metal::)\b ?", "", kind.spelling).strip()
    canonical = re.sub(r"\b(const|volatile|__private)\b ?", "", kind.get_canonical().spelling).strip()
    vector = re.fullmatch(r"([\w ]+) __attribute__\(\(ext_vector_type\((\d)\)\)\)", canonical)
    names = {"unsigned int": "uint", "unsigned short": "ushort", "unsigned char": "uchar", "unsigned long": "ulong"}
    if vector:
        return names.get(vector.group(1), vector.group(1)) + vector.group(2)
    return names.get(canonical, name)
