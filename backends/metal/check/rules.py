"""Rules of Metal that clang does not know, on its syntax tree."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...gpu.devices import METAL
from .barriers import check_barriers
from .names import ADDRESS_SPACES, KNOWN_ATTRIBUTES, PARAMETER_TYPES, RESOURCES, words

if TYPE_CHECKING:
    from .front_end import _Report

_LIMITS = {"buffer": METAL.max_buffers, "threadgroup": METAL.max_buffers, "texture": 128, "sampler": 16}
#: Attributes that have the same type wherever a kernel uses more than one of them.
_POSITIONS = frozenset(name for name, types in PARAMETER_TYPES.items() if "uint3" in types)
_FUNCTIONS = frozenset({"FUNCTION_DECL", "FUNCTION_TEMPLATE", "CXX_METHOD", "CONSTRUCTOR", "CONVERSION_FUNCTION"})
_CASTS = frozenset(
    {"CSTYLE_CAST_EXPR", "CXX_REINTERPRET_CAST_EXPR", "CXX_STATIC_CAST_EXPR", "CXX_FUNCTIONAL_CAST_EXPR"}
)
_FORBIDDEN = {
    "CXX_DYNAMIC_CAST_EXPR": "dynamic_cast does not exist in Metal",
    "CXX_TYPEID_EXPR": "typeid does not exist in Metal",
    "CXX_NEW_EXPR": "'new' does not exist in Metal",
    "CXX_DELETE_EXPR": "'delete' does not exist in Metal",
    "CXX_TRY_STMT": "exceptions do not exist in Metal",
    "CXX_THROW_EXPR": "exceptions do not exist in Metal",
    "GOTO_STMT": "'goto' does not exist in Metal",
    "INDIRECT_GOTO_STMT": "'goto' does not exist in Metal",
}
_LEAVES = words(
    """
    ANNOTATE_ATTR INTEGER_LITERAL FLOATING_LITERAL CXX_BOOL_LITERAL_EXPR STRING_LITERAL DECL_REF_EXPR TYPE_REF
    TEMPLATE_REF NAMESPACE_REF OVERLOADED_DECL_REF BREAK_STMT CONTINUE_STMT NULL_STMT
    """
)
_AUTO = re.compile(r"\b(?:auto|decltype)\b")
_SPACE_WORDS = re.compile(rf"\b(?:{'|'.join(ADDRESS_SPACES)})\b")


def check_tree(unit: Any, report: _Report) -> None:
    """Add to `report` what the rules find in a translation unit."""
    _Rules(report).run(unit)


class Node:
    """A cursor of the syntax tree with what lies below: asking libclang again is slow."""

    __slots__ = ("cursor", "kind", "parts")

    def __init__(self, cursor: Any) -> None:
        self.cursor = cursor
        self.kind: str = cursor.kind.name
        self.parts: list[Node] = []

    def walk(self) -> Iterator[Node]:
        """The node and all below it, in order of the text."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.parts))

    def annotations(self) -> list[tuple[str, str]]:
        """The Metal attributes of a declaration: name and arguments."""
        found = []
        for part in self.parts:
            if part.kind == "ANNOTATE_ATTR":
                name, _, arguments = part.cursor.spelling.partition("(")
                found.append((name, arguments.removesuffix(")").strip()))
        return found


def tree(cursor: Any) -> Node:
    """The nodes from a cursor down."""
    root = Node(cursor)
    stack = [root]
    while stack:
        node = stack.pop()
        if node.kind not in _LEAVES:
            node.parts = [Node(child) for child in node.cursor.get_children()]
            stack.extend(node.parts)
    return root


class Function:
    """A function of the program: its node, the annotations on it, what it calls."""

    def __init__(self, node: Node) -> None:
        self.node, self.cursor = node, node.cursor
        self.is_kernel = any(name == "kernel" for name, _ in node.annotations())
        self.calls: set[str] = set()
        self.threadgroup_bytes = 0


class _Rules:
    def __init__(self, report: _Report) -> None:
        self.report = report
        self.functions: dict[str, Function] = {}
        self.kernels: dict[str, str] = {}

    def run(self, unit: Any) -> None:
        for cursor in unit.cursor.get_children():
            if self.place(cursor):
                self.declaration(tree(cursor))
        self.recursion()
        check_barriers(self.functions, self)

    def place(self, cursor: Any) -> tuple[str, int] | None:
        """The program's file that a cursor lies in, and the offset in its adapted text."""
        location = cursor.location
        file = location.file
        return (file.name, location.offset) if file is not None and file.name in self.report.files else None

    def add(self, severity: str, cursor: Any, message: str) -> None:
        """Report at a cursor."""
        place = self.place(cursor)
        if place:
            self.report.add_adapted(severity, *place, message)

    def text(self, cursor: Any, end: int | None = None) -> str:
        """The adapted text of a cursor, up to `end`."""
        place = self.place(cursor)
        if not place:
            return ""
        stop = cursor.extent.end.offset if end is None else end
        return self.report.files[place[0]].text[cursor.extent.start.offset : stop]

    def declaration(self, root: Node) -> None:
        """Check a declaration and everything inside."""
        stack: list[tuple[Node, Function | None]] = [(root, None)]
        while stack:
            node, function = stack.pop()
            cursor, kind = node.cursor, node.kind
            if kind in _FUNCTIONS:
                function = Function(node)
                if cursor.is_definition() or cursor.get_usr() not in self.functions:
                    self.functions[cursor.get_usr()] = function
                if function.is_kernel:
                    self.kernel(function)
                self.function(cursor)
            elif kind == "VAR_DECL":
                self.variable(cursor, function)
            elif kind in ("PARM_DECL", "FIELD_DECL", "TYPEDEF_DECL", "TYPE_ALIAS_DECL"):
                self.pointer(cursor, cursor.location.offset)
            elif kind == "LAMBDA_EXPR":
                self.add("warning", cursor, "a lambda needs Metal 3.2")
            elif kind in _CASTS:
                self.cast(cursor)
            elif kind in _FORBIDDEN:
                self.add("error", cursor, _FORBIDDEN[kind])
            elif kind == "CALL_EXPR" and function is not None:
                called = cursor.referenced
                if called is not None:
                    function.calls.add(called.get_usr())
            if self.report.strict and kind not in _CASTS:
                for part in node.parts:
                    self.conversion(part)
            stack.extend((part, function) for part in reversed(node.parts))

    # ------------------------------------------------------------------------------------------ declarations
    def function(self, cursor: Any) -> None:
        name = cursor.spelling
        if name == "main" and cursor.semantic_parent.kind.name == "TRANSLATION_UNIT":
            self.add("error", cursor, "a function cannot be called 'main'")
        if cursor.kind.name == "CXX_METHOD" and cursor.is_virtual_method():
            self.add("error", cursor, "virtual functions do not exist in Metal")
        if cursor.result_type.kind.name in ("POINTER", "LVALUEREFERENCE"):
            self.pointer(cursor, cursor.location.offset)

    def variable(self, cursor: Any, function: Function | None) -> None:
        kind = cursor.type
        self.pointer(cursor, cursor.location.offset)
        storage = cursor.storage_class.name
        written = self.text(cursor, cursor.location.offset)
        if function is None:
            parent = cursor.semantic_parent.kind.name
            if parent in ("TRANSLATION_UNIT", "NAMESPACE") and "__constant" not in kind.spelling:
                if not re.search(r"\b(sampler|constant)\b", kind.spelling + written):
                    message = f"program-scope variable '{cursor.spelling}' must be in the constant address space"
                    self.add("error", cursor, message)
            return
        if storage == "STATIC" and "__constant" not in kind.spelling and "constant" not in written:
            self.add("error", cursor, f"static local variable '{cursor.spelling}' does not exist in Metal")
        if re.search(r"\bthreadgroup\b", written) and not re.search(r"[*]", written):
            self.threadgroup(cursor, function)

    def threadgroup(self, cursor: Any, function: Function) -> None:
        """Count the memory of a threadgroup variable, which is a reference in adapted kernels."""
        kind = cursor.type
        if kind.kind.name == "LVALUEREFERENCE":
            kind = kind.get_pointee()
        size = kind.get_size()
        if size <= 0 or not function.is_kernel:
            return
        total = function.threadgroup_bytes = function.threadgroup_bytes + -(-size // 16) * 16
        if total > METAL.threadgroup_bytes:
            name, most = function.cursor.spelling, METAL.threadgroup_bytes
            message = f"kernel '{name}' uses {total} bytes of threadgroup memory, more than {most}"
            self.add("error", cursor, message)

    def pointer(self, cursor: Any, end: int) -> None:
        """A pointer or reference must name its address space."""
        start = cursor.extent.start.offset
        written = self.text(cursor, end)
        if end <= start or not re.search(r"[*&]", written) or _AUTO.search(written):
            return
        if cursor.kind.name in ("TYPE_ALIAS_DECL", "FIELD_DECL", "FUNCTION_TEMPLATE", "CLASS_TEMPLATE"):
            written = re.sub(r"^template\s*<.*?>\s", "", written, flags=re.DOTALL)
        kind = cursor.result_type if cursor.kind.name in _FUNCTIONS else cursor.type
        if cursor.kind.name in ("TYPEDEF_DECL", "TYPE_ALIAS_DECL"):
            kind = cursor.underlying_typedef_type
        while kind.kind.name in ("CONSTANTARRAY", "INCOMPLETEARRAY", "DEPENDENTSIZEDARRAY"):
            kind = kind.element_type
        if kind.kind.name in ("POINTER", "LVALUEREFERENCE", "RVALUEREFERENCE") and not _SPACE_WORDS.search(written):
            if self.is_macro(cursor) or kind.get_pointee().kind.name == "FUNCTIONPROTO":
                return
            what = "pointer" if kind.kind.name == "POINTER" else "reference"
            self.add("error", cursor, f"{what} '{cursor.spelling}' needs an address space, such as device or thread")

    def cast(self, cursor: Any) -> None:
        kind = cursor.type
        if kind.kind.name != "POINTER" or self.is_macro(cursor):
            return
        text = self.text(cursor)
        # `(T*)x` or `static_cast<T*>(x)`.
        closing = ")" if cursor.kind.name == "CSTYLE_CAST_EXPR" else ">"
        written = text[: text.find(closing) + 1]
        if "*" in written and not _SPACE_WORDS.search(written) and not _AUTO.search(written):
            self.add("error", cursor, "the pointer type of this cast needs an address space, such as device or thread")

    def conversion(self, node: Node) -> None:
        """smelt writes conversions to bfloat out."""
        if node.kind != "UNEXPOSED_EXPR" or len(node.parts) != 1:
            return
        if node.cursor.type.get_canonical().spelling != "__bf16":
            return
        if node.parts[0].cursor.type.get_canonical().spelling.split()[-1] in ("float", "half"):
            self.add("warning", node.cursor, "implicit conversion to bfloat; write bfloat(...)")

    def is_macro(self, cursor: Any) -> bool:
        """Whether a declaration comes out of a macro, so that its text says nothing."""
        place = self.place(cursor)
        if place is None:
            return True
        name = cursor.spelling.split("<")[0]
        text = self.report.files[place[0]].text
        return bool(name) and not text.startswith(name, place[1]) and cursor.kind.name in ("PARM_DECL", "VAR_DECL")

    # ----------------------------------------------------------------------------------------------- kernels
    def kernel(self, function: Function) -> None:
        cursor, name = function.cursor, function.cursor.spelling
        signature = cursor.type.spelling
        if self.kernels.setdefault(name, signature) != signature:
            self.add("error", cursor, f"kernel '{name}' is overloaded")
        if cursor.result_type.kind.name != "VOID":
            self.add("error", cursor, f"kernel '{name}' must return void")
        used: set[tuple[str, int]] = set()
        widths: dict[str, str] = {}
        for parameter in function.node.parts:
            if parameter.kind == "PARM_DECL":
                self.parameter(parameter, used, widths)
        kinds = sorted(set(widths.values()))
        if len({kind[-1] if kind[-1].isdigit() else "1" for kind in kinds}) > 1:
            message = f"position attributes of kernel '{name}' differ in width: {', '.join(kinds)}"
            self.add("error", cursor, message)

    def parameter(self, node: Node, used: set[tuple[str, int]], widths: dict[str, str]) -> None:
        cursor, name = node.cursor, node.cursor.spelling
        found = node.annotations()
        if not found:
            if cursor.type.kind.name in ("POINTER", "LVALUEREFERENCE"):
                hint = "[[buffer(0)]]"
            else:
                hint = "[[thread_position_in_grid]]"
            self.add("error", cursor, f"kernel parameter '{name}' has no attribute such as {hint}")
        for attribute, arguments in found:
            if attribute not in KNOWN_ATTRIBUTES:
                near = difflib.get_close_matches(attribute, sorted(KNOWN_ATTRIBUTES), 1)
                hint = f"; did you mean '{near[0]}'?" if near else ""
                self.add("error", cursor, f"unknown attribute '{attribute}'{hint}")
            elif attribute in PARAMETER_TYPES:
                kind = _type_name(cursor.type)
                if cursor.type.get_canonical().kind.name in ("UNEXPOSED", "DEPENDENT"):
                    continue
                if kind not in PARAMETER_TYPES[attribute]:
                    allowed = ", ".join(sorted(PARAMETER_TYPES[attribute]))
                    self.add("error", cursor, f"[[{attribute}]] has type '{kind}'; it may have {allowed}")
                elif attribute in _POSITIONS:
                    widths[attribute] = kind
            elif attribute in RESOURCES:
                self.resource(cursor, attribute, arguments, used)

    def resource(self, cursor: Any, attribute: str, arguments: str, used: set[tuple[str, int]]) -> None:
        if re.fullmatch(r"\d+", arguments):
            index = int(arguments)
            if index >= _LIMITS[attribute]:
                self.add("error", cursor, f"{attribute} index {index} is above {_LIMITS[attribute] - 1}")
            if (attribute, index) in used:
                self.add("error", cursor, f"{attribute} index {index} is used twice")
            used.add((attribute, index))
        elif not arguments:
            self.add("error", cursor, f"[[{attribute}]] needs an index, such as [[{attribute}(0)]]")
        kind = cursor.type
        if attribute not in ("buffer", "threadgroup") or "type-parameter" in kind.get_canonical().spelling:
            return
        if kind.kind.name in ("CONSTANTARRAY", "INCOMPLETEARRAY", "DEPENDENTSIZEDARRAY"):
            return
        is_pointer = kind.kind.name in ("POINTER", "LVALUEREFERENCE") or kind.get_canonical().kind.name == "POINTER"
        pointee = kind.get_canonical().get_pointee().spelling if is_pointer else ""
        if attribute == "threadgroup" and "__local" not in pointee:
            self.add("error", cursor, f"[[threadgroup]] parameter '{cursor.spelling}' must be a threadgroup pointer")
        elif attribute == "buffer" and not is_pointer and kind.get_canonical().kind.name == "RECORD":
            return  # tables of functions, acceleration structures
        elif attribute == "buffer" and not re.search("__global|__constant", pointee):
            message = f"[[buffer]] parameter '{cursor.spelling}' must be a device or constant pointer or reference"
            self.add("error", cursor, message)

    # --------------------------------------------------------------------------------------------- recursion
    def recursion(self) -> None:
        """Report functions that call themselves, directly or through others."""
        for start, function in self.functions.items():
            seen: set[str] = set()
            waiting = list(function.calls)
            while waiting:
                callee = waiting.pop()
                if callee == start:
                    self.add("warning", function.cursor, f"recursion: '{function.cursor.spelling}' calls itself")
                    break
                if callee not in seen and callee in self.functions:
                    seen.add(callee)
                    waiting.extend(self.functions[callee].calls)


def _type_name(kind: Any) -> str:
    name = re.sub(r"\b(const|volatile|__private|metal::)\b ?", "", kind.spelling).strip()
    canonical = re.sub(r"\b(const|volatile|__private)\b ?", "", kind.get_canonical().spelling).strip()
    vector = re.fullmatch(r"(unsigned int|unsigned short) __attribute__\(\(ext_vector_type\((\d)\)\)\)", canonical)
    names = {"unsigned int": "uint", "unsigned short": "ushort"}
    if vector:
        return names[vector.group(1)] + vector.group(2)
    return names.get(canonical, name)
