"""Rules of Metal that clang does not know, on its syntax tree."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ...gpu.devices import METAL
from .barriers import check_barriers
from .names import ADDRESS_SPACES, WITH_THREADGROUPS, words
from .parameters import STAGES, check_members, check_parameters, number, type_name
from .references import BOUND, check_binding, check_call
from .values import Values

if TYPE_CHECKING:
    from .front_end import Report

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
#: The highest number of a function constant.
_MOST_CONSTANTS = 65535
#: Canonical types that a function constant may have.
_CONSTANT_TYPES = re.compile(r"(?:(?:un)?signed )?(?:char|short|int|long)|bool[234]?|half|float|.*ext_vector_type.*")
#: Functions that only fragment functions call, in clang's names for them.
_OF_FRAGMENTS = re.compile("@N@metal@F@(discard_fragment|dfdx|dfdy|fwidth)#")
_AUTO = re.compile(r"\b(?:auto|decltype)\b")
_SPACE_WORDS = (*ADDRESS_SPACES, BOUND)
_OBJECT_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+((?:\\\r?\n|[^\n])*)", re.MULTILINE)


def space_words(texts: Iterable[str]) -> re.Pattern[str]:
    """Address spaces, and macros that stand for them.

    >>> space_words(["#define MINE thread\\n#define ALSO const MINE"]).findall("MINE ALSO OTHER device")
    ['MINE', 'ALSO', 'device']
    """
    words = list(_SPACE_WORDS)
    for text in texts:
        for name, body in _OBJECT_MACRO.findall(text):
            if not set(words).isdisjoint(re.findall(r"\w+", body)):
                words.append(name)
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, words))})\b")


def check_tree(unit: Any, report: Report) -> None:
    """Add to `report` what the rules find in a translation unit."""
    Rules(report).run(unit)


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
        self.annotations = node.annotations()
        #: One of `STAGES`, or nothing.
        self.stage = next((name for name, _ in self.annotations if name in STAGES), "")
        self.is_kernel = self.stage == "kernel"
        self.calls: set[str] = set()
        #: Where it calls what.
        self.called_at: dict[str, Any] = {}
        self.threadgroup_bytes = 0


class Rules:
    """Walks the syntax tree of a program; what other modules check reports by `add`."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.functions: dict[str, Function] = {}
        self.kernels: dict[str, str] = {}
        self.host_names: set[str] = set()
        self.values = Values()
        self.has_bound = any(file.has_bound for file in report.files.values())
        self.numbers: set[int] = set()
        self.spaces = space_words(file.text for file in report.files.values())

    def run(self, unit: Any) -> None:
        for cursor in unit.cursor.get_children():
            if self.place(cursor):
                self.declaration(tree(cursor))
        self.recursion()
        self.calls()
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
                if function.stage:
                    self.staged(function)
                self.threads(function)
                self.function(cursor)
            elif kind == "VAR_DECL":
                self.variable(cursor, function)
                if self.has_bound and node.parts:
                    check_binding(cursor, node.parts[-1].cursor, self)
                self.constant(node, function)
            elif kind in ("PARM_DECL", "FIELD_DECL", "TYPEDEF_DECL", "TYPE_ALIAS_DECL"):
                self.pointer(cursor, cursor.location.offset)
            elif kind == "NAMESPACE":
                for name, arguments in node.annotations():
                    if name == "host_name":
                        self.host_name(cursor, arguments)
            elif kind == "ENUM_CONSTANT_DECL":
                self.values.add(cursor.spelling, cursor.enum_value)
            elif kind in ("STRUCT_DECL", "CLASS_DECL", "CLASS_TEMPLATE"):
                check_members(node, self)
            elif kind == "CXX_BASE_SPECIFIER" and re.match(r"(?:public\s+)?virtual\b", self.text(cursor)):
                self.add("error", cursor, "virtual bases do not exist in Metal")
            elif kind == "LAMBDA_EXPR" and self.report.metal < (4, 0):
                self.add("error", cursor, "a lambda expression needs Metal 4")
            elif kind in _CASTS:
                self.cast(cursor)
            elif kind in _FORBIDDEN:
                self.add("error", cursor, _FORBIDDEN[kind])
            elif kind == "CALL_EXPR" and function is not None:
                called = cursor.referenced
                if called is not None:
                    usr = called.get_usr()
                    function.calls.add(usr)
                    function.called_at.setdefault(usr, cursor)
                    if self.has_bound:
                        check_call(cursor, called, self)
                if cursor.spelling.startswith("atomic_") and cursor.spelling.endswith("_explicit"):
                    self.atomic(node, cursor.spelling)
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

    def constant(self, node: Node, function: Function | None) -> None:
        """Note the values of constants, which attributes may name; check function constants, samplers and atomics."""
        cursor = node.cursor
        kind = re.sub(r"\b(?:const|__constant|__private|metal::) ?", "", cursor.type.get_canonical().spelling).strip()
        if function is not None:
            if kind == "sampler" and not re.search(r"\b(?:constexpr|const|constant)\b|=", self.text(cursor)):
                self.add("error", cursor, f"sampler '{cursor.spelling}' of the text must be constexpr")
            if re.match(r"_?atomic<", kind) and "threadgroup" not in self.text(cursor, cursor.location.offset):
                self.add("error", cursor, f"atomic '{cursor.spelling}' lies in device or threadgroup memory alone")
            return
        is_given = self.is_function_constant(cursor, cursor.spelling)
        initializer = self.text(cursor).partition("=")[2].strip()
        self.values.add(cursor.spelling, None if is_given or not initializer else initializer)
        for attribute, arguments in node.annotations():
            if attribute != "function_constant":
                continue
            if not _CONSTANT_TYPES.fullmatch(kind):
                message = f"a function constant is a scalar or a vector, not '{type_name(cursor.type)}'"
                self.add("error", cursor, message)
            value = number(self, cursor, attribute, arguments, ())
            if value is not None and value > _MOST_CONSTANTS:
                self.add("error", cursor, f"[[function_constant({value})]] is above {_MOST_CONSTANTS}")
            elif value is not None and value in self.numbers:
                self.add("error", cursor, f"[[function_constant({value})]] is used twice")
            self.numbers.add(-1 if value is None else value)

    def threadgroup(self, cursor: Any, function: Function) -> None:
        """Count the memory of a threadgroup variable, which is a reference in adapted kernels."""
        kind = cursor.type
        if kind.kind.name == "LVALUEREFERENCE":
            kind = kind.get_pointee()
        size = kind.get_size()
        if size <= 0 or function.stage not in WITH_THREADGROUPS:
            return
        total = function.threadgroup_bytes = function.threadgroup_bytes + -(-size // 16) * 16
        if total > METAL.threadgroup_bytes:
            name, most = function.cursor.spelling, METAL.threadgroup_bytes
            message = f"{function.stage} '{name}' uses {total} bytes of threadgroup memory, more than {most}"
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
        # Each star wants its own, but for those of template arguments.
        plain = re.sub(r"<[^<>]*>", "", written)
        stars = plain.count("*") if "(" not in plain else 1
        if kind.kind.name in ("POINTER", "LVALUEREFERENCE", "RVALUEREFERENCE") and (
            not self.spaces.search(written) or len(self.spaces.findall(plain)) < min(stars, 2)
        ):
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
        if "*" in written and not self.spaces.search(written) and not _AUTO.search(written):
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
    def staged(self, function: Function) -> None:
        """Check a function of a stage."""
        cursor, name = function.cursor, function.cursor.spelling
        if cursor.kind.name == "CXX_METHOD":
            self.add("error", cursor, f"{function.stage} '{name}' cannot be a member")
        stages = sorted({attribute for attribute, _ in function.annotations if attribute in STAGES})
        if len(stages) > 1:
            self.add("error", cursor, f"'{name}' is a {' and a '.join(stages)} function; it can be one of these")
        if cursor.kind.name == "FUNCTION_DECL" and cursor.type.is_function_variadic():
            self.add("error", cursor, f"{function.stage} '{name}' takes any number of arguments")
        if function.is_kernel:
            signature = cursor.type.spelling
            if self.kernels.setdefault(name, signature) != signature:
                self.add("error", cursor, f"kernel '{name}' is overloaded")
        if function.stage in WITH_THREADGROUPS and cursor.result_type.kind.name != "VOID":
            self.add("error", cursor, f"{function.stage} '{name}' must return void")
        if cursor.kind.name != "FUNCTION_TEMPLATE":
            given = [arguments for attribute, arguments in function.annotations if attribute == "host_name"]
            self.host_name(cursor, given[0] if given else f'"{name}"')
        check_parameters(function, self)

    def host_name(self, cursor: Any, arguments: str) -> None:
        """A name by which the host finds a function, made of string literals; each stands for one."""
        pieces = re.findall(r'"((?:\\.|[^"\\])*)"', arguments)
        name = "".join(pieces)
        if not pieces:
            self.add("error", cursor, f"host_name({arguments}) needs a text in quotes")
        elif not name:
            self.add("error", cursor, "host_name must not be empty")
        elif name in self.host_names:
            self.add("error", cursor, f"host_name '{name}' is used twice")
        self.host_names.add(name)

    def threads(self, function: Function) -> None:
        """The limit of threads that a function states."""
        attribute = "max_total_threads_per_threadgroup"
        for name, arguments in function.annotations:
            if name != attribute:
                continue
            value = number(self, function.cursor, attribute, arguments, ()) if arguments else 0
            if function.stage not in WITH_THREADGROUPS:
                stages = " and ".join(WITH_THREADGROUPS)
                self.add("error", function.cursor, f"[[{attribute}]] stands on {stages} functions alone")
            elif value is not None and not 0 < value <= METAL.max_threads:
                self.add(
                    "error",
                    function.cursor,
                    f"[[{attribute}]] is 1 to {METAL.max_threads}, not {arguments or 'nothing'}",
                )

    def atomic(self, node: Node, name: str) -> None:
        """Atomic operations are relaxed."""
        for part in node.walk():
            order = part.cursor.spelling
            if order.startswith("memory_order_") and order != "memory_order_relaxed" and part.kind == "DECL_REF_EXPR":
                self.add("error", part.cursor, f"{name} has memory_order_relaxed alone, not {order}")

    def is_function_constant(self, cursor: Any, name: str) -> bool:
        """Whether the program has a function constant of this name."""
        place = self.place(cursor)
        return place is not None and name in self.report.files[place[0]].function_constants

    def calls(self) -> None:
        """What functions of a stage must not reach."""
        for function in self.functions.values():
            if not function.stage:
                continue
            seen: set[str] = set()
            waiting = list(function.calls)
            while waiting:
                usr = waiting.pop()
                if usr in seen:
                    continue
                seen.add(usr)
                called = self.functions.get(usr)
                if called is not None and called.stage:
                    message = (
                        f"{function.stage} '{function.cursor.spelling}' calls {called.stage} '{called.cursor.spelling}'"
                    )
                    self.add("error", function.called_at.get(usr, function.cursor), message)
                elif called is not None:
                    waiting.extend(called.calls)
                elif function.stage != "fragment" and (found := _OF_FRAGMENTS.search(usr)):
                    message = f"{function.stage} '{function.cursor.spelling}' calls {found.group(1)}()"
                    self.add("error", function.called_at.get(usr, function.cursor), message)

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
