"""Values of constant expressions in attributes: `[[buffer(first + 1)]]`."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Collection

from smelt.ir.errors import InternalError

_FRACTION = re.compile(r"(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?[fFhH]?|\d+[eE][+-]?\d+")
_MOST_CHARACTERS = 200
_MOST_DEPTH = 20
_BINARY: dict[type, Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_, ast.BitXor: operator.xor,
}  # fmt: skip


class Undeclared(InternalError):
    """An expression names what nobody declares; its text is the name."""


class NoInteger(InternalError):
    """An expression that is no integer."""


class Values:
    """The integer constants of a program by name; `evaluate` computes with them."""

    def __init__(self) -> None:
        self._values: dict[str, int | str] = {}
        self._unknown: set[str] = set()

    def add(self, name: str, value: int | str | None) -> None:
        """A constant: its value, its initialiser, or None where only the pipeline knows it."""
        if value is None:
            self._unknown.add(name)
        else:
            self._values[name] = value

    def evaluate(self, text: str, unknown: Collection[str] = ()) -> int | None:
        """The value of an expression; None where it depends on `unknown` names or is beyond this arithmetic.

        Raises Undeclared and NoInteger.
        """
        return self._evaluate(text, unknown, 0)

    def _evaluate(self, text: str, unknown: Collection[str], depth: int) -> int | None:
        text = text.strip()
        if not text or len(text) > _MOST_CHARACTERS or depth > _MOST_DEPTH:
            return None
        if text[0] in "\"'" or _FRACTION.fullmatch(text):
            raise NoInteger(text)
        text = re.sub(r"\b(0[xX][\da-fA-F]+|0[bB][01]+|\d+)[uUlL]*\b", r"\1", text)
        text = re.sub(r"\b0+(?=\d)", "", text)
        text = re.sub(r"(?:\b\w+\s*)?::\s*(?=\w)", "", text)
        text = re.sub(r"\b(?:u?int|u?short|u?char|u?long|size_t)\s*(?=\()", "", text)
        try:
            tree = ast.parse(text.replace("\n", " "), mode="eval").body
            return self._value(tree, unknown, depth)
        except (SyntaxError, ValueError, MemoryError, RecursionError, OverflowError, ZeroDivisionError):
            return None

    def _value(self, node: ast.expr, unknown: Collection[str], depth: int) -> int | None:
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, int) else None
        if isinstance(node, ast.Name):
            return self._named(node.id, unknown, depth)
        if isinstance(node, ast.UnaryOp):
            x = self._value(node.operand, unknown, depth)
            if x is None or not isinstance(node.op, (ast.USub, ast.UAdd, ast.Invert)):
                return None
            return -x if isinstance(node.op, ast.USub) else ~x if isinstance(node.op, ast.Invert) else x
        if isinstance(node, ast.BinOp):
            a, b = self._value(node.left, unknown, depth), self._value(node.right, unknown, depth)
            if a is None or b is None:
                return None
            if type(node.op) in _BINARY:
                return _BINARY[type(node.op)](a, b)
            if isinstance(node.op, (ast.Div, ast.Mod)):
                quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
                return quotient if isinstance(node.op, ast.Div) else a - quotient * b
            if isinstance(node.op, (ast.LShift, ast.RShift)) and 0 <= b < 64:
                return a << b if isinstance(node.op, ast.LShift) else a >> b
        return None

    def _named(self, name: str, unknown: Collection[str], depth: int) -> int | None:
        if name in unknown or name in self._unknown:
            return None
        value = self._values.get(name)
        if value is None:
            raise Undeclared(name)
        return value if isinstance(value, int) else self._evaluate(value, unknown, depth + 1)
