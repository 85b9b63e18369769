"""What is too deep for clang: it parses by recursion, and text that nests without end would exhaust its stack.

The limits are far above what kernels have, and far below what ends the process.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from .text import Token, tokens_of

#: Brackets inside brackets, as in MLIR text, and prefix operators in a row.
MAX_NESTING = 200
#: Template arguments inside template arguments: clang's time doubles with each.
MAX_ANGLES = 12
#: Tokens of one statement, also where macros make it; the entries of a list in braces count each for itself.
MAX_STATEMENT = 3000
#: `else if` behind `else if`.
MAX_ELSE = 1000
#: Tokens that macros make of one name.
MAX_EXPANSION = 200_000

_OPEN, _CLOSE = {"(": 1, "[": 1, "{": 1, "[[": 2}, (")", "]", "}")
_PREFIX = frozenset({"!", "~", "-", "+", "*", "&", "++", "--", "sizeof", "&&", "alignof", "decltype", "noexcept"})
#: Behind these a brace begins a list, not a block.
_BEFORE_LIST = frozenset({"=", ",", "(", "]", "return"})
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+([\w\x80-\xff]+)(\([^)\n]*\))?((?:\\\r?\n|[^\n])*)", re.MULTILINE)


class TooDeep(NamedTuple):
    """Where a text is too deep, and why."""

    offset: int
    message: str


def too_deep(text: str) -> TooDeep | None:
    """What is too deep for clang in a text (latin-1), or None."""
    macros = _Macros(text)
    tokens = tokens_of(_DEFINE.sub(lambda m: " " * len(m[0]), text))
    return macros.problem or _in_tokens(tokens, macros)


def _in_tokens(tokens: Sequence[Token], macros: _Macros) -> TooDeep | None:
    stack: list[str] = []
    depth = prefixes = angles = length = elses = 0
    before = ""
    for i, token in enumerate(tokens):
        text = token.text
        if text in _OPEN and token.kind == "mark":
            depth += _OPEN[text]
            if text == "{" and (before in _BEFORE_LIST or (before == "{" and stack and stack[-1] == "list")):
                stack.append("list")
            else:
                stack += text  # two of "[["
            if depth > MAX_NESTING:
                return TooDeep(token.start, f"brackets nest more than {MAX_NESTING} deep")
        elif text in _CLOSE and stack:
            stack.pop()
            depth = len(stack)
        inside = stack[-1] if stack else "{"
        if text in ("{", "}") or (text == ";" and inside == "{") or (text == "," and inside == "list"):
            length = 0
        prefixes = prefixes + 1 if text in _PREFIX else 0
        if prefixes > MAX_NESTING:
            return TooDeep(token.start, f"more than {MAX_NESTING} prefix operators in a row")
        if text == "<" and before == "name":
            angles += 1
        elif token.kind != "name" and text not in ("::", "<"):
            angles = 0
        if angles > MAX_ANGLES:
            return TooDeep(token.start, f"template arguments nest more than {MAX_ANGLES} deep")
        if text == "else":
            elses += 1
        elif before in ("}", ";") and text not in ("}", ";", "else"):
            elses = 0
        if elses > MAX_ELSE:
            return TooDeep(token.start, f"more than {MAX_ELSE} branches of one 'if'")
        size, whole = macros.size(tokens, i)
        if whole > MAX_EXPANSION:
            return TooDeep(token.start, f"macros make more than {MAX_EXPANSION} tokens of '{text[:40]}'")
        length += size
        if length > MAX_STATEMENT:
            return TooDeep(token.start, f"a statement has more than {MAX_STATEMENT} tokens")
        before = "name" if token.kind == "name" and text != "return" else text
    return None


class _Macro(NamedTuple):
    parameters: tuple[str, ...] | None
    body: list[Token]
    offset: int


class _Macros:
    """How many tokens the macros of a text expand to, an upper bound."""

    def __init__(self, text: str) -> None:
        self.problem: TooDeep | None = None
        self.macros: dict[str, _Macro] = {}
        for found in _DEFINE.finditer(text):
            name, parameters, body = found.groups()
            names = None if parameters is None else tuple(re.findall(r"[\w\x80-\xff]+|\.\.\.", parameters))
            # Of several definitions the longest counts.
            tokens = tokens_of(body)
            known = self.macros.get(name)
            if known is None or len(known.body) < len(tokens):
                self.macros[name] = _Macro(names, tokens, found.start())
        self._sizes: dict[str, tuple[int, int]] = {}
        for name, macro in self.macros.items():
            self.problem = self.problem or self._check(name, macro)

    def _check(self, name: str, macro: _Macro) -> TooDeep | None:
        deep = _in_tokens(macro.body, _NONE) if macro.body else None
        return TooDeep(macro.offset, f"in the macro '{name[:40]}' {deep.message}") if deep else None

    def size(self, tokens: Sequence[Token], at: int) -> tuple[int, int]:
        """(tokens of one statement, tokens altogether) that one token becomes."""
        name = tokens[at].text
        if name not in self.macros:
            return 1, 1
        statement, whole = self._size(name, 0)
        uses = self._uses(name)
        if uses > 1 and at + 1 < len(tokens) and tokens[at + 1].text == "(":
            inner = self._arguments(tokens, at + 1)
            statement, whole = statement + uses * inner, whole + uses * inner
        return statement, whole

    def _size(self, name: str, depth: int) -> tuple[int, int]:
        known = self._sizes.get(name)
        if known is not None:
            return known
        self._sizes[name] = (1, 1)  # a macro is not expanded in itself
        longest = statement = whole = 0
        body = self.macros[name].body
        for i, token in enumerate(body):
            part, all_ = (1, 1)
            if token.text in self.macros:
                if depth > MAX_NESTING:
                    part = all_ = MAX_EXPANSION + 1
                else:
                    part, all_ = self._size(token.text, depth + 1)
                    uses = self._uses(token.text)
                    if uses > 1 and i + 1 < len(body) and body[i + 1].text == "(":
                        inner = self._arguments(body, i + 1)
                        part, all_ = part + uses * inner, all_ + uses * inner
            statement = 0 if token.text in (";", "{", "}") else statement + part
            longest, whole = max(longest, statement), min(whole + all_, 2 * MAX_EXPANSION)
        self._sizes[name] = longest, whole
        return longest, whole

    def _uses(self, name: str) -> int:
        """How often a macro repeats one of its arguments."""
        parameters = self.macros[name].parameters or ()
        if not parameters:
            return 0
        texts = [token.text for token in self.macros[name].body]
        return max(texts.count("__VA_ARGS__" if p == "..." else p) for p in parameters)

    def _arguments(self, tokens: Sequence[Token], opening: int) -> int:
        """Tokens that the arguments of a macro expand to, with macros among them."""
        factors: list[int] = []
        total, factor = 0, 1
        for i in range(opening, min(len(tokens), opening + MAX_STATEMENT)):
            text = tokens[i].text
            if text == "(":
                made = tokens[i - 1].text if i > opening else ""
                factors.append(factor)
                factor = min(factor * max(1, self._uses(made) if made in self.macros else 1), MAX_EXPANSION + 1)
            elif text == ")":
                factor = factors.pop() if factors else 1
                if not factors:
                    break
            else:
                own = self._size(text, 0)[1] if text in self.macros else 1
                total = min(total + factor * own, 2 * MAX_EXPANSION)
        return total


_NONE = _Macros("")
