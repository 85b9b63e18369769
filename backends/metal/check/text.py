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
    FOREIGN_KEYWORDS,
    KNOWN_ATTRIBUTES,
    METAL_HEADERS,
    OTHER_HEADERS,
    SCALARS,
    STANDARD_ATTRIBUTES,
    VECTORS,
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
_OPEN, _CLOSE = "([{", ")]}"
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
    #: Files named by `#include "..."`.
    includes: list[str] = field(default_factory=list)
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


def adapt(text: str) -> Adapted:
    """Adapt a text (latin-1) for clang."""
    return _Adapter(text).run()


class _Adapter:
    def __init__(self, text: str) -> None:
        self.tokens = tokens_of(text)
        self.out = Adapted(text)
        self.edits: list[tuple[int, int, str]] = []
        self.match = _brackets(self.tokens)
        self.aliases = self._vector_aliases()
        self.text = text
        self.reported: set[str] = set()
        #: Macros that stand for `kernel` and more, without a body.
        self.kernel_macros = frozenset(_KERNEL_MACRO.findall(text))
        #: Kernels whose bodies are done, by their opening brace.
        self.bodies: set[int] = set()

    def run(self) -> Adapted:
        from .structures import adapt_kernel, adapt_structure

        tokens = self.tokens
        instantiation_end = attribute_end = -1
        directive_end = len(tokens)
        for index, token in enumerate(tokens):
            following = self.at(index + 1)
            if index < attribute_end:
                continue
            if index >= directive_end:
                directive_end = len(tokens)
            if token.kind == "number":
                self._number(token)
            elif token.text == "#":
                directive_end = self._directive(index)
            elif token.text == "[[":
                self._attributes(index, index < instantiation_end)
                attribute_end = self.close(index)
            elif token.kind != "name":
                continue
            elif token.text == "template" and following == "<":
                self._function_parameters(index + 1)
            elif token.text == "template":
                instantiation_end = min(self._find(index, ";"), directive_end)
            elif token.text == "kernel":
                if index < instantiation_end:
                    self.edit(token.start, token.end, "")
                else:
                    adapt_kernel(self, index)
            elif token.text in self.kernel_macros and index < directive_end == len(tokens):
                adapt_kernel(self, index)
            elif token.text in ("struct", "class"):
                adapt_structure(self, index)
            elif following == "(" and (token.text in VECTORS or token.text in self.aliases):
                self._constructor(index, index)
            elif token.text == "vec" and following == "<":
                self._vector(index)
            elif token.text == "long" and following == "long":
                self.find("error", token, "'long long' does not exist in Metal; 'long' has 64 bits")
            elif token.text in FOREIGN_KEYWORDS and token.text not in self.reported:
                self.reported.add(token.text)
                language = FOREIGN_KEYWORDS[token.text]
                self.find("warning", token, f"'{token.text}' is a keyword of {language}; other readers refuse it")
        if "metal" in {t.text for t in tokens if t.kind == "name"} and not self.has_header and not self.out.includes:
            first = next(t for t in tokens if t.text == "metal")
            self.find("error", first, "'metal' is undeclared; the text includes no header such as <metal_stdlib>")
        self.out.apply(self.edits)
        return self.out

    has_header = False

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
            self.edit(start, start + include.end(), "")
        elif include.group(2):
            self.out.includes.append(name)
        return behind

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
                return
            if not is_parameter and name not in KNOWN_ATTRIBUTES:
                self.find("warning", part[0], f"unknown attribute '{name}' ignored")
                continue
            values = self.text[part[2].start : part[-1].start] if len(part) > 3 else ""
            value = f' "(" __msl_string({values}) ")"' if values else ""
            annotations.append(f'clang::annotate("{name}"{value})')
        if annotations:
            self.edit(self.tokens[index].start, last, f"[[{', '.join(annotations)}]]")
        if inside[0].text == "function_constant" and self.at(end + 2) == ";":
            self.edit(self.tokens[end + 2].start, self.tokens[end + 2].start, "= {}")
        if any(part[0].text == "kernel" for part in _split(inside)):
            from .structures import adapt_kernel

            adapt_kernel(self, end + 1)

    def _constructor(self, first: int, last: int) -> None:
        """Turn the type between two tokens, followed by `(`, into a call."""
        opening = last + 1
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

    def _vector_aliases(self) -> frozenset[str]:
        """Names of types defined as vectors: `using T4 = vec<T, 4>;`, `typedef float4 V;`."""
        names: set[str] = set()
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
        return frozenset(names - set(SCALARS))


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
