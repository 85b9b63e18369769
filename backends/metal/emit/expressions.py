"""Expressions of the emitted text: C++ precedence, and what must be known to move them.

`Expression` is text plus how tightly its outermost operator binds. Parentheses appear where the grammar
needs them, and around mixtures of bitwise operators with others, where readers do.
"""

from __future__ import annotations

from .types import Type, signed_name, type_name

PRIMARY, UNARY, MULTIPLY, ADD, SHIFT, RELATION, EQUALITY = 16, 14, 12, 11, 10, 9, 8
BIT_AND, BIT_XOR, BIT_OR, AND, OR, CONDITIONAL = 7, 6, 5, 4, 3, 2
PRECEDENCE = {
    "*": MULTIPLY, "/": MULTIPLY, "%": MULTIPLY, "+": ADD, "-": ADD, "<<": SHIFT, ">>": SHIFT,
    "<": RELATION, "<=": RELATION, ">": RELATION, ">=": RELATION, "==": EQUALITY, "!=": EQUALITY,
    "&": BIT_AND, "^": BIT_XOR, "|": BIT_OR, "&&": AND, "||": OR,
}  # fmt: skip
_BITWISE = frozenset(("&", "|", "^", "<<", ">>"))
_ASSOCIATIVE = frozenset(("&", "|", "^", "&&", "||"))
_COMPARISONS = frozenset(("<", "<=", ">", ">=", "==", "!="))

_NOTHING: frozenset[str] = frozenset()


class Expression:
    """Text of a value.

    Attributes:
        precedence: of the outermost operator.
        operator: that operator, if it is binary.
        parts: its operands then.
        loads: whether memory that may change is read.
        reads: variables that are assigned later on.
        atom: whether the text is short and free, so that it may stand in several places.
        signed: the same bits as a signed integer, where this is a cast of one.
        narrow: the value before it was zero-extended, and its type.
        literal: the integer that is written, as an unsigned one.
    """

    __slots__ = ("atom", "literal", "loads", "narrow", "operator", "parts", "precedence", "reads", "signed", "text")

    def __init__(self, text: str, precedence: int = PRIMARY, *sources: Expression, atom: bool = False) -> None:
        self.text, self.precedence, self.atom = text, precedence, atom
        self.operator = ""
        self.parts: tuple[Expression, Expression] | None = None
        self.signed: Expression | None = None
        self.narrow: tuple[Expression, Type] | None = None
        self.literal: int | None = None
        self.loads = False
        self.reads = _NOTHING
        for source in sources:
            if source.loads:
                self.loads = True
            if source.reads:
                self.reads = self.reads | source.reads

    def at_least(self, precedence: int) -> str:
        """The text, in parentheses if its operator binds less tightly."""
        return self.text if self.precedence >= precedence else f"({self.text})"

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"


def variable(name: str, mutable: bool = False) -> Expression:
    """A variable; `mutable` if it is assigned after its declaration."""
    found = Expression(name, atom=True)
    if mutable:
        found.reads = frozenset((name,))
    return found


def binary(operator: str, left: Expression, right: Expression, wraps: bool = False) -> Expression:
    """``left operator right``; `wraps`: unsigned integers, whose + and * associate."""
    precedence = PRECEDENCE[operator]
    associative = operator in _ASSOCIATIVE or (wraps and operator in "+*")

    def side(e: Expression, is_left: bool) -> str:
        inner = e.operator
        if e.precedence >= UNARY:
            return e.text
        if inner == operator:
            return e.text if associative or (is_left and operator not in _COMPARISONS) else f"({e.text})"
        if operator in _BITWISE or inner in _BITWISE or (operator == "||" and inner == "&&"):
            return f"({e.text})"
        if operator in _COMPARISONS and inner in _COMPARISONS:
            return f"({e.text})"
        return e.at_least(precedence if is_left else precedence + 1)

    found = Expression(f"{side(left, True)} {operator} {side(right, False)}", precedence, left, right)
    found.operator, found.parts = operator, (left, right)
    return found


def prefix(operator: str, operand: Expression) -> Expression:
    """``!a``, ``-a``, ``~a``."""
    text = operand.at_least(UNARY)
    if text.startswith(operator):
        text = f"({text})"
    return Expression(operator + text, UNARY, operand)


def call(function: str, *operands: Expression) -> Expression:
    """``function(a, b)``."""
    return Expression(f"{function}({', '.join([e.text for e in operands])})", PRIMARY, *operands)


def conditional(test: Expression, yes: Expression, no: Expression) -> Expression:
    """``test ? yes : no``."""
    text = f"{test.at_least(OR)} ? {yes.at_least(OR)} : {no.at_least(CONDITIONAL)}"
    return Expression(text, CONDITIONAL, test, yes, no)


def cast(kind: Type, operand: Expression) -> Expression:
    """``float(a)``."""
    return call(type_name(kind), operand)


def as_type(kind: Type, operand: Expression) -> Expression:
    """``as_type<float>(a)``: the same bits."""
    return call(f"as_type<{type_name(kind)}>", operand)


def member(operand: Expression, name: str) -> Expression:
    """``a.x``; of a variable it is as free as the variable."""
    found = Expression(f"{operand.at_least(PRIMARY)}.{name}", PRIMARY, operand)
    found.atom = operand.atom
    return found


def subscript(base: str, at: Expression) -> Expression:
    """``base[at]``."""
    return Expression(f"{base}[{at.text}]", PRIMARY, at)


def pointer(base: str, at: Expression) -> Expression:
    """``base + at``, or ``base``."""
    if at.literal == 0:
        return Expression(base)
    return binary("+", Expression(base), at)


def signed(e: Expression, kind: Type) -> Expression:
    """An integer, which the text holds as unsigned, as signed: ``int(a)``."""
    if e.signed is not None:
        return e.signed
    if e.literal is not None and kind.lanes == 1:
        value = e.literal - (e.literal >> (kind.bits - 1) << kind.bits)
        if kind.bits == 32 and value != -(2**31):
            return Expression(str(value), PRIMARY if value >= 0 else UNARY, atom=True)
        if kind.bits == 64 and abs(value) < 2**31:
            return Expression(f"{value}l", PRIMARY if value >= 0 else UNARY, atom=True)
        if kind.bits < 32:
            return Expression(f"{signed_name(kind)}({value})")
    return call(signed_name(kind), e)


def unsigned(e: Expression, kind: Type) -> Expression:
    """A signed integer as the text holds it: ``uint(a)``."""
    found = cast(kind, e)
    found.signed = e
    return found
