"""Metal source text to text that clang reads as C++ for OpenCL, with a map back to the places in the original.

Everything here works on tokens and keeps line numbers. Text is handled as latin-1, one character a byte, so that
offsets are those of libclang.

    device float* x [[buffer(0)]]   →  device float* x [[clang::annotate("buffer(0)")]]
    float4(a, b, c, d)              →  __msl_make<float4>(a, b, c, d)
    threadgroup T s[N];             →  threadgroup T (&s)[N] = ...        (in kernels)
    void f() const { ... }          →  void f() const thread { ... }      (in structures)
"""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass, field
from typing import NamedTuple

from .names import (
    ADDRESS_SPACES,
    FOREIGN_KEYWORDS,
    KNOWN_ATTRIBUTES,
    LATER,
    METAL_HEADERS,
    OTHER_HEADERS,
    SCALARS,
    SIMD_HEADER,
    SIMD_VECTORS,
    STANDARD_ATTRIBUTES,
    VECTORS,
    WITH_THREADGROUPS,
)

_TOKEN = re.compile(
    r"""(?P<space>\s+|\\\r?\n|//(?:\\\r?\n|[^\n])*|/\*.*?(?:\*/|\Z))
      | (?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
      | (?P<number>\.?[0-9](?:[eEpP][+-]|[\w.\x80-\xff])*)
      | (?P<name>[A-Za-z_\x80-\xff][\w\x80-\xff]*)
      | (?P<mark>\[\[|::|->\*|->|<<=|<<|&&|\|\||[=!<>+*/%&|^-]=|\+\+|--|\#\#|.)""",
    re.VERBOSE | re.DOTALL,
)
_DIRECTIVE = re.compile(r"#(?:\\\r?\n|[^\n])*")
_KERNEL_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+([\w\x80-\xff]+)[^\n{]*\bkernel\b[^\n{]*$", re.MULTILINE)
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*(?:include|import)[ \t]*(?:<([^>\n]*)>|\"([^\"\n]*)\")", re.MULTILINE)
_OPEN, _CLOSE = "([{", ")]}"
#: Words that Metal does not have, and what stands for them so that clang goes on.
_MISSING = {"asm": "", "__asm": "", "__asm__": "", "__int128": "long", "__uint128_t": "ulong"}
_NAMED_TYPES = frozenset(SCALARS) | VECTORS | ADDRESS_SPACES
#: How many tokens a search looks ahead; keeps hostile text from taking quadratic time.
_REACH = 2000


class Token(NamedTuple):
    """A token with its place in the original text."""

    kind: str
    text: str
    start: int
    end: int


class Finding(NamedTuple):
    """A violation found in the text alone: severity, offset in the original text, message."""

    severity: str
    offset: int
    message: str


@dataclass
class Adapted:
    """The adapted text and how to get from its offsets to those of the original."""

    original: str
    text: str = ""
    findings: list[Finding] = field(default_factory=list)
    #: Ranges (in the original) of the bodies of kernels.
    kernel_bodies: list[tuple[int, int]] = field(default_factory=list)
    #: Names of function constants, and of constants that are computed from them.
    function_constants: frozenset[str] = frozenset()
    #: Whether a reference of the text takes temporaries; see `references`.
    has_bound: bool = False
    #: Whether the text uses parts of Metal that its version does not have.
    is_later: bool = False
    _new: list[int] = field(default_factory=list)
    _old: list[int] = field(default_factory=list)
    _lengths: list[int] = field(default_factory=list)

    def offset(self, offset: int) -> int:
        """The offset in the original text of an offset in the adapted one."""
        at = bisect.bisect_right(self._new, offset) - 1
        if at < 0:
            return offset
        # What an edit put in stands for the place of the edit.
        return self._old[at] + max(0, offset - self._new[at] - self._lengths[at])

    def replaced(self, offset: int) -> str:
        """The text that an edit put where `offset` in the adapted text lies; empty when it lies in the original."""
        at = bisect.bisect_right(self._new, offset) - 1
        if at < 0 or offset >= self._new[at] + self._lengths[at]:
            return ""
        return self.text[self._new[at] : self._new[at] + self._lengths[at]]

    def apply(self, edits: list[tuple[int, int, str]]) -> None:
        """Make the adapted text of edits (start, end, replacement), which must not overlap."""
        parts: list[str] = []
        at = length = 0
        for start, end, replacement in sorted(edits):
            if start < at:
                continue
            kept = self.original[at:start]
            lines = "\n" * (self.original.count("\n", start, end) - replacement.count("\n"))
            parts += (kept, replacement, lines)
            length += len(kept)
            new = len(replacement) + len(lines)
            # Up to the edit, offsets go one to one; behind it they continue at its end.
            self._new.append(length)
            self._old.append(start)
            self._lengths.append(new)
            length += new
            self._new.append(length)
            self._old.append(end)
            self._lengths.append(0)
            at = end
        parts.append(self.original[at:])
        self.text = "".join(parts)


def tokens_of(text: str) -> list[Token]:
    """The tokens of a text, comments and white space left out."""
    return [
        Token(match.lastgroup or "mark", match.group(), match.start(), match.end())
        for match in _TOKEN.finditer(text)
        if match.lastgroup != "space"
    ]


def includes_of(text: str) -> list[str]:
    """The files that a text includes, without the headers of Metal's library."""
    names = [angled or quoted for angled, quoted in _INCLUDE.findall(text)]
    return [name for name in names if name not in METAL_HEADERS and name not in OTHER_HEADERS]


def adapt(text: str) -> Adapted:
    """Adapt a text (latin-1) for clang."""
    return adapt_files({"": text})[""]


def adapt_files(texts: dict[str, str], metal: tuple[int, int] = (3, 1)) -> dict[str, Adapted]:
    """Adapt the files of a program, which see each other's macros and types; the first one includes the others."""
    from .references import overloaded_by_space

    adapters = {path: Adapter(text, metal) for path, text in texts.items()}
    shared = _Shared()
    for adapter in adapters.values():
        if SIMD_HEADER in adapter.text:
            shared.aliases |= SIMD_VECTORS
        shared.kernel_macros.update(_KERNEL_MACRO.findall(adapter.text))
    for _ in range(2):  # a file may come before the one whose types it names
        for adapter in adapters.values():
            shared.aliases |= adapter.vector_aliases(shared.aliases)
            shared.function_constants |= adapter.function_constants(shared.function_constants)
    shared.overloaded = overloaded_by_space(list(adapters.values()))
    for path, adapter in adapters.items():
        adapter.shared, adapter.is_included = shared, path != next(iter(adapters))
    return {path: adapter.run() for path, adapter in adapters.items()}


@dataclass
class _Shared:
    """What the files of a program know of each other."""

    #: Macros that stand for `kernel` and more, without a body.
    kernel_macros: set[str] = field(default_factory=set)
    #: Names of types that are vectors.
    aliases: set[str] = field(default_factory=set)
    function_constants: set[str] = field(default_factory=set)
    #: Functions that differ in the address spaces of their references.
    overloaded: frozenset[str] = frozenset()


class Adapter:
    """The tokens of one file, and the edits that adapt them."""

    def __init__(self, text: str, metal: tuple[int, int]) -> None:
        self.tokens = tokens_of(text)
        self.out = Adapted(text)
        self.edits: list[tuple[int, int, str]] = []
        self.match = _brackets(self.tokens)
        self.text = text
        self.metal = metal
        self.shared = _Shared()
        self.is_included = False
        self.has_header = False
        self.reported: set[str] = set()
        #: The tokens that end the explicit instantiation and the directive that the walk is in.
        self.instantiation_end, self.directive_end = -1, len(self.tokens)
        #: Kernels whose bodies are done, by their opening brace.
        self.bodies: set[int] = set()

    def run(self) -> Adapted:
        """The adapted text of the file."""
        skipped = 0
        for index, token in enumerate(self.tokens):
            if index < skipped:
                continue
            if index >= self.directive_end:
                self.directive_end = len(self.tokens)
            if token.kind == "number":
                self._number(token)
            elif token.text == "#":
                self.directive_end = self._directive(index)
            elif token.text == "[[":
                self._attributes(index, index < self.instantiation_end)
                skipped = self.close(index)
            elif token.kind == "name" and not self._declaration(index, token.text):
                self._name(index, token)
        self._check_header()
        self.out.function_constants = frozenset(self.shared.function_constants)
        self.out.apply(self.edits)
        return self.out

    def _declaration(self, index: int, text: str) -> bool:
        """Adapt what a keyword at `index` begins; False where it is no such word."""
        from .references import adapt_reference
        from .structures import adapt_kernel, adapt_structure

        token, is_directive = self.tokens[index], self.directive_end < len(self.tokens)
        if text == "template" and self.at(index + 1) == "<":
            self._function_parameters(index + 1)
        elif text == "template":
            self.instantiation_end = min(self._find(index, ";"), self.directive_end)
            self._host_name(index, self.instantiation_end)
        elif text == "kernel" and index < self.instantiation_end:
            self.edit(token.start, token.end, "")
        elif text == "kernel" or (text in self.shared.kernel_macros and not is_directive):
            adapt_kernel(self, index)
        elif text == "thread":
            adapt_reference(self, index, self.shared.overloaded)
        elif text in ("struct", "class"):
            adapt_structure(self, index)
        else:
            return False
        return True

    def _name(self, index: int, token: Token) -> None:
        """Adapt or report a name that begins no declaration: of a vector, or a word that Metal does not have."""
        text, following = token.text, self.at(index + 1)
        if following == "(" and (text in VECTORS or text in self.shared.aliases):
            self._constructor(index, index)
        elif following == "<" and text in self.shared.aliases:
            end = self.angle(index + 1)
            if end > 0 and self.at(end + 1) == "(":
                self._constructor(index, end)
        elif text == "vec" and following == "<":
            self._vector(index)
        elif text == "long" and following == "long":
            self.find("error", token, "'long long' does not exist in Metal; 'long' has 64 bits")
        elif text in _MISSING:
            self.find("error", token, f"'{text}' does not exist in Metal")
            if _MISSING[text]:
                self.edit(token.start, token.end, _MISSING[text])
        elif text == "coherent" and (following in ("device", "(") or self.at(index - 1) == "device"):
            self._coherent(index)
        elif text in LATER and self.metal < LATER[text][1] and self._is_of_library(index):
            self._later(token, *LATER[text])
        elif text in FOREIGN_KEYWORDS and text not in self.reported and self.at(index - 1) != "::":
            self.reported.add(text)
            self.find("warning", token, f"'{text}' is a keyword of {FOREIGN_KEYWORDS[text]}; other readers refuse it")

    def _check_header(self) -> None:
        if self.has_header or self.is_included or includes_of(self.text):
            return
        first = next((t for t in self.tokens if t.text == "metal" and t.kind == "name"), None)
        if first is not None:
            self.find("error", first, "'metal' is undeclared; the text includes no header such as <metal_stdlib>")

    # What the helpers share.
    def at(self, index: int) -> str:
        """The text of a token, or nothing beyond the ends."""
        return self.tokens[index].text if 0 <= index < len(self.tokens) else ""

    def edit(self, start: int, end: int, replacement: str) -> None:
        """Replace a range of the original."""
        self.edits.append((start, end, replacement))

    def find(self, severity: str, token: Token, message: str) -> None:
        """Report a violation."""
        self.out.findings.append(Finding(severity, token.start, message))

    def close(self, index: int) -> int:
        """The index of the bracket that closes the one at `index`, or the last token."""
        return self.match.get(index, len(self.tokens) - 1)

    def enclosing(self, index: int) -> int:
        """The index of the innermost bracket around a token, or -1."""
        depth = 0
        for at in range(index - 1, max(-1, index - _REACH), -1):
            text = self.tokens[at].text
            depth += (text in _CLOSE) - (text in _OPEN) if self.tokens[at].kind == "mark" and len(text) == 1 else 0
            if depth < 0:
                return at
        return -1

    def angle(self, index: int) -> int:
        """The index of the `>` that closes the `<` at `index`, or -1."""
        depth = 0
        limit = min(len(self.tokens), index + _REACH)
        while index < limit:
            text = self.tokens[index].text
            if text in ("(", "[", "{", "[["):
                index = self.close(index)
            elif text == "<":
                depth += 1
            elif text == ">":
                depth -= 1
                if depth == 0:
                    return index
            elif text in (";", "{", "}", ")", "]"):
                return -1
            index += 1
        return -1

    def _find(self, index: int, text: str) -> int:
        limit = min(len(self.tokens), index + _REACH)
        while index < limit and self.tokens[index].text != text:
            index += 1
        return index

    def _number(self, token: Token) -> None:
        text = token.text.lower()
        if text.endswith("bf") and not text.startswith("0x"):
            self.edit(token.start, token.end, f"bfloat({token.text[:-2]}f)")

    def _directive(self, index: int) -> int:
        """Resolve an `#include`; the index of the first token behind the directive."""
        start = self.tokens[index].start
        found = _DIRECTIVE.match(self.text, start)
        end = found.end() if found else start
        behind = index + 1
        while behind < len(self.tokens) and self.tokens[behind].start < end:
            behind += 1
        if self.at(index + 1) not in ("include", "import"):
            return behind
        include = re.match(r"#\s*(?:include|import)\s*(?:<([^>]*)>|\"([^\"]*)\")", self.text[start:end])
        if not include:
            return behind
        name = include.group(1) or include.group(2)
        if name in METAL_HEADERS or name in OTHER_HEADERS:
            self.has_header = self.has_header or name in METAL_HEADERS
            self.edit(start, start + include.end(), "__msl_simd" if name == SIMD_HEADER else "")
        return behind

    def _host_name(self, index: int, end: int) -> None:
        """Leave the host name of an explicit instantiation where the syntax tree keeps it: on a type beside it."""
        found = index + 1
        while found < end and self.at(found) == "[[":
            inside = self.tokens[found + 1 : self.close(found)]
            for part in _split(inside):
                if part[0].text == "host_name" and len(part) > 2:
                    value = self.text[part[2].start : part[-1].start]
                    text = f'namespace [[clang::annotate("host_name" "(" __msl_string({value}) ")")]] {{}} '
                    self.edit(self.tokens[index].start, self.tokens[index].start, text)
            found = self.close(found) + 1
            found += self.at(found) == "]"

    def _coherent(self, index: int) -> None:
        end = self.close(index + 1) if self.at(index + 1) == "(" else index
        if self.metal < (3, 2):
            self.find("error", self.tokens[index], "'coherent' needs Metal 3.2")
        self.edit(self.tokens[index].start, self.tokens[end].end, "")

    def _is_of_library(self, index: int) -> bool:
        """Whether a name means a part of Metal, not something of the program."""
        name, before = self.at(index), self.at(index - 1)
        if before in (".", "->", "struct", "class", "enum", "union", "using") or self.at(index + 1) in ("=", "("):
            return False
        return name.count("_") > 0 or self.at(index + 1) == "<"

    def _later(self, token: Token, what: str, since: tuple[int, int]) -> None:
        self.out.is_later = True
        if what not in self.reported:
            self.reported.add(what)
            version = ".".join(map(str, since))
            message = f"'{token.text}': there are {what} since Metal {version}; check with --metal {version}"
            self.find("error", token, message)

    def _attributes(self, index: int, blank: bool) -> None:
        end = self.close(index)
        inside = self.tokens[index + 1 : end]
        if self.at(end) != "]" or not inside:
            return
        last = self.tokens[end + 1].end if self.at(end + 1) == "]" else self.tokens[end].end
        if blank:
            self.edit(self.tokens[index].start, last, "")
            return
        is_parameter = self.at(end + 2) in (",", ")") and self.tokens[index - 1].kind == "name"
        annotations: list[str] = []
        for part in _split(inside):
            name = part[0].text
            if (len(part) > 1 and part[1].text == "::") or name in STANDARD_ATTRIBUTES:
                if len(_split(inside)) == 1:
                    return
                annotations.append(self.text[part[0].start : part[-1].end])
                continue
            if not is_parameter and name not in KNOWN_ATTRIBUTES:
                self.find("warning", part[0], f"unknown attribute '{name}' ignored")
                continue
            values = self.text[part[2].start : part[-1].start] if len(part) > 3 else ""
            value = f' "(" __msl_string({values}) ")"' if values else ""
            annotations.append(f'clang::annotate("{name}"{value})')
        if annotations:
            written, place = f"[[{', '.join(annotations)}]]", self._declarator(index)
            if place < 0:
                is_unnamed = is_parameter and self.at(index - 1) in _NAMED_TYPES
                name = f" __msl_unnamed{index} " if is_unnamed else ""
                self.edit(self.tokens[index].start, last, name + written)
            else:
                self.edit(place, place, written)
                self.edit(self.tokens[index].start, last, "")
        if inside[0].text == "function_constant" and self.at(end + 2) == ";":
            self.edit(self.tokens[end + 2].start, self.tokens[end + 2].start, "= __msl_function_constant")
        elif inside[0].text == "function_constant" and self.at(end + 2) in ("=", "{"):
            self.find("error", self.tokens[end + 2], "a function constant has no value in the text")
        if any(part[0].text in WITH_THREADGROUPS for part in _split(inside)):
            from .structures import adapt_kernel

            adapt_kernel(self, end + 1)

    def _declarator(self, index: int) -> int:
        """For attributes behind the sizes of an array, where its name ends: there clang wants them; else -1."""
        if self.at(index - 1) != "]":
            return -1
        first = index - 1
        while self.at(first) == "]":
            depth = 0
            while first >= 0 and index - first < _REACH:
                depth += (self.at(first) == "]") - (self.at(first) == "[")
                first -= 1
                if depth == 0:
                    break
        if self.at(first) == ")":
            first -= 1
        return self.tokens[first].end if first >= 0 and self.tokens[first].kind == "name" else -1

    def _constructor(self, first: int, last: int) -> None:
        """Turn the type between two tokens, followed by `(`, into a call; `metal::` before it is part of the type."""
        opening = last + 1
        if self.at(first - 1) == "::" and self.at(first - 2) in ("metal", "simd"):
            first -= 3 if self.at(first - 3) == "::" else 2
        before = self.at(first - 1)
        if self.at(opening + 1) in ("&", "*") and self.at(opening + 3) == ")":
            return  # a reference or pointer to an array
        if before == "operator":
            return
        start, end = self.tokens[first].start, self.tokens[last].end
        self.edit(start, start, "__msl_make<")
        self.edit(end, end, ">")

    def _vector(self, index: int) -> None:
        end = self.angle(index + 1)
        if end < 0:
            return
        width = self.tokens[end - 1]
        if width.kind == "number" and self.at(end - 2) == "," and width.text not in ("2", "3", "4"):
            self.find("error", width, f"a vector has 2, 3 or 4 components, not {width.text}")
        first = index - 2 if self.at(index - 1) == "::" and self.at(index - 2) == "metal" else index
        if self.at(index + 2) == "bool" and self.at(index + 4) in ("2", "3", "4") and end == index + 5:
            self.edit(self.tokens[first].start, self.tokens[end].end, f"bool{self.at(index + 4)}")
        elif self.at(end + 1) == "(":
            if self.at(first - 1) == "typename":
                first -= 1
            self._constructor(first, end)

    def _function_parameters(self, index: int) -> None:
        """Make references of pointers to functions among template parameters: clang takes no arguments for those."""
        for i in range(index + 1, self.angle(index)):
            if self.at(i) == "(" and self.at(i + 1) == "*" and self.at(self.close(i) + 1) == "(":
                self.edit(self.tokens[i + 1].start, self.tokens[i + 1].end, "&")

    def vector_aliases(self, known: set[str]) -> set[str]:
        """Names of types defined as vectors: `using T4 = vec<T, 4>;`, `typedef float4 V;`."""
        names = set(known)
        for index, token in enumerate(self.tokens):
            if token.text == "using" and self.at(index + 2) == "=":
                start, name = index + 3, self.at(index + 1)
                end = self._find(index, ";")
            elif token.text == "typedef":
                start, end = index + 1, self._find(index, ";")
                name, end = self.at(end - 1), end - 1
            else:
                continue
            words = [t.text for t in self.tokens[start:end] if t.text not in ("metal", "::", "typename")]
            if not words or not name.isidentifier():
                continue
            is_named = len(words) == 1 and (words[0] in VECTORS or words[0] in names)
            if is_named or (words[0] == "vec" and words[-1] == ">"):
                names.add(name)
        return names - set(SCALARS)

    def function_constants(self, known: set[str]) -> set[str]:
        """Names of constants whose values come with the pipeline: by attribute, or computed from such."""
        names = set(known)
        for index, token in enumerate(self.tokens):
            if token.text == "function_constant" and self.at(index - 1) == "[[" and self.at(index - 2).isidentifier():
                behind = self.close(index - 1) + 2
                if self.at(behind) in (";", "=", "{"):
                    names.add(self.at(index - 2))
            elif (
                token.text == "="
                and self.tokens[index - 1].kind == "name"
                and "constant" in (self.at(i) for i in range(max(0, index - 6), index - 1))
            ):
                value = {t.text for t in self.tokens[index + 1 : self._find(index, ";")] if t.kind == "name"}
                if value & names or "is_function_constant_defined" in value:
                    names.add(self.at(index - 1))
        return names


def _brackets(tokens: list[Token]) -> dict[int, int]:
    """The closing bracket of each opening one; `[[` counts as two."""
    match: dict[int, int] = {}
    stack: list[tuple[str, int]] = []
    pairs = {")": "(", "]": "[", "}": "{"}
    for index, token in enumerate(tokens):
        text = token.text
        if text == "[[":
            stack += [("[", -1), ("[", index)]
        elif text in _OPEN and token.kind == "mark":
            stack.append((text, index))
        elif text in _CLOSE and token.kind == "mark":
            for depth in range(len(stack) - 1, max(-1, len(stack) - 8), -1):
                if stack[depth][0] == pairs[text]:
                    match[stack[depth][1]] = index
                    del stack[depth:]
                    break
    return match


def _split(tokens: list[Token]) -> list[list[Token]]:
    """Tokens divided at commas outside brackets."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.text in _OPEN) - (token.text in _CLOSE) if token.kind == "mark" else 0
        if token.text == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]
