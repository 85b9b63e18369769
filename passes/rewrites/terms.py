"""The language of declarative rewrites: terms of ops on variables, rules between terms, conditions.

A rule is written with the arithmetic of Python, and `ops` for what has no sign there::

    x * 1 >> x
    ops.log(ops.exp(x)) >> x
    (x / c >> x * (1 / c)).when(power_of_two(c))

Terms print as they are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union

from smelt.ir.attribute_kinds import checked, require_kinds
from smelt.ir.errors import ArgumentTypeError, IRError, PipelineError, at_user_line, innermost_line, shown
from smelt.ir.op import Op
from smelt.ir.plugins import get

if TYPE_CHECKING:
    from smelt.ir.builder import Value

#: What a match has found: of each variable, by its name, a `Value`; of an `Attr`, an attribute.
Found = Mapping[str, Any]
Operand = Union["Term", "Computed", bool, int, float, complex]


class Term:
    """An expression in a rule: as the annotation of a parameter, a variable that stands for any value."""

    __slots__ = ()

    def __add__(self, other: Operand) -> Term:
        return apply("add", self, other)

    def __radd__(self, other: Operand) -> Term:
        return apply("add", other, self)

    def __sub__(self, other: Operand) -> Term:
        return apply("sub", self, other)

    def __rsub__(self, other: Operand) -> Term:
        return apply("sub", other, self)

    def __mul__(self, other: Operand) -> Term:
        return apply("mul", self, other)

    def __rmul__(self, other: Operand) -> Term:
        return apply("mul", other, self)

    def __truediv__(self, other: Operand) -> Term:
        return apply("div", self, other)

    def __rtruediv__(self, other: Operand) -> Term:
        return apply("div", other, self)

    def __neg__(self) -> Term:
        return apply("neg", self)

    def __abs__(self) -> Term:
        return apply("abs", self)

    def __rshift__(self, replacement: Operand) -> Rule:
        """``pattern >> replacement``: the rule that puts one in place of the other."""
        return Rule(self, term(replacement))

    def _asks(self, what: str, test: Callable[[Any], bool]) -> Condition:
        if not isinstance(self, Variable):
            raise IRError(at_user_line(f"a condition asks about a variable; {self} is an expression"))
        name = self.name
        return Condition(f"{name} is {what}", lambda found: test(found[name]), (name,))

    @property
    def is_float(self) -> Condition:
        """Real floating point numbers."""
        return self._asks("float", lambda v: v.dtype.is_float)

    @property
    def is_integer(self) -> Condition:
        return self._asks("integer", lambda v: v.dtype.is_integer)

    @property
    def is_complex(self) -> Condition:
        return self._asks("complex", lambda v: v.dtype.is_complex)

    @property
    def is_real(self) -> Condition:
        """No complex numbers: bools, integers or floats."""
        return self._asks("real", lambda v: not v.dtype.is_complex)

    @property
    def is_discrete(self) -> Condition:
        """Bools or integers: nothing is rounded."""
        return self._asks("discrete", lambda v: not v.dtype.is_inexact)

    @property
    def is_bool(self) -> Condition:
        return self._asks("bool", lambda v: v.dtype.name == "bool")


class Variable(Term):
    """Stands for a value; the same wherever it stands again."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __str__(self) -> str:
        return self.name


class Const(Variable):
    """As the annotation of a parameter: a variable that stands for a value filled with one number.

    In a replacement it has the shape of what stands beside it.
    """

    __slots__ = ()

    def __init__(self, name: str = ""):
        super().__init__(name)


class Number(Term):
    """A number in a rule: in a pattern, a value filled with it; else one of the type of what stands beside it.

    Zeros are told apart by their signs, and True from 1.
    """

    __slots__ = ("like", "value")

    def __init__(self, value: Any, like: Variable | None = None):
        self.value, self.like = value, like

    def __str__(self) -> str:
        shown = str(self.value) if isinstance(self.value, Computed) else repr(self.value)
        return shown if self.like is None else f"number({shown}, like={self.like})"


def number(value: bool | int | float | complex | Computed, like: Term) -> Term:
    """A number of the type of a variable, for replacements where nothing else says which: ``number(0, like=x)``."""
    if not isinstance(like, Variable):
        raise ArgumentTypeError(at_user_line(f"number(..., like=) takes a variable, got {shown(like)}"))
    return Number(value, like)


class Attr:
    """As the annotation of a parameter: stands for an attribute, the same wherever it stands again."""

    __slots__ = ("name",)

    def __init__(self, name: str = ""):
        self.name = name

    def __str__(self) -> str:
        return self.name


class Computed:
    """An attribute or a number of a replacement that is computed from what the pattern has found."""

    __slots__ = ("names", "text", "value")

    def __init__(self, text: str, value: Callable[[Found], Any], names: tuple[str, ...]):
        self.text, self.value, self.names = text, value, names

    def __str__(self) -> str:
        return self.text


class Applied(Term):
    """An op on terms. Attributes are values, `Attr` or `Computed`; a pattern asks for those that it names alone."""

    __slots__ = ("attrs", "op", "operands")

    def __init__(self, op: Op, operands: Sequence[Term], attrs: dict[str, Any]):
        self.op, self.operands, self.attrs = op, tuple(operands), attrs

    def __str__(self) -> str:
        symbol = self.op.symbol if not self.attrs else ""
        texts = [f"({x})" if symbol and _is_infix(x) else str(x) for x in self.operands]
        if symbol and len(texts) == 2:
            return f"{texts[0]} {symbol} {texts[1]}"
        if symbol:
            return f"{symbol}{' ' if symbol.isalpha() else ''}{texts[0]}"
        attrs = [f"{name}={value}" for name, value in self.attrs.items()]
        return f"{self.op.name}({', '.join([*map(str, self.operands), *attrs])})"


def _is_infix(x: Term) -> bool:
    if isinstance(x, Number):
        return str(x).startswith("-")
    return isinstance(x, Applied) and bool(x.op.symbol) and not x.attrs


def term(x: Operand) -> Term:
    """`x` if it is a term; Python numbers and computed ones as a `Number`."""
    if isinstance(x, Term):
        return x
    if not isinstance(x, (Computed, bool, int, float, complex)):
        raise ArgumentTypeError(at_user_line(f"a rule is made of variables, numbers and ops, not of {shown(x)}"))
    return Number(x)


def apply(name: str, *operands: Operand, **attrs: Any) -> Term:
    """The op called `name` on terms.

    Raises:
        IRError: it takes another number of operands, has no such attribute, has several results, or has effects.
        AttributeValueError: there is no such op, or an attribute is of another kind.
    """
    op = get(name)
    if op.num_results != 1 or op.mixed or not op.pure or op.kind in ("transform", "opaque"):
        raise IRError(at_user_line(f"smelt.{op.name} cannot stand in a rule: rules are of pure ops with one result"))
    few = len(operands) < len(op.operand_names) - 1 if op.variadic else len(operands) != len(op.operand_names)
    if few:
        listed = ", ".join(op.operand_names) or "none"
        raise IRError(at_user_line(f"smelt.{op.name} has the operands {listed}; the rule gives it {len(operands)}"))
    unknown = [a for a in attrs if a not in op.attrs]
    if unknown:
        known = ", ".join(op.attrs) or "none"
        raise IRError(at_user_line(f"smelt.{op.name} has no attribute {unknown[0]!r}; it has {known}"))
    attrs = {k: tuple(v) if isinstance(v, list) else v for k, v in attrs.items()}
    require_kinds(op, {k: v for k, v in attrs.items() if not isinstance(v, (Attr, Computed))})
    return Applied(op, [term(x) for x in operands], attrs)


class Ops:
    """The ops of the dialect as functions on terms: ``ops.exp(x)``, ``ops.transpose(x, permutation=p)``."""

    def __getattr__(self, name: str) -> Callable[..., Term]:
        if name.startswith("_"):
            raise AttributeError(name)
        get(name)
        return lambda *operands, **attrs: apply(name, *operands, **attrs)


ops = Ops()


class Condition:
    """What must hold of a match. Conditions combine by ``&``, ``|`` and ``~``."""

    __slots__ = ("holds", "names", "text")

    def __init__(self, text: str, holds: Callable[[Found], bool], names: tuple[str, ...]):
        self.text, self.holds, self.names = text, holds, names

    def __str__(self) -> str:
        return self.text

    def __and__(self, other: Condition) -> Condition:
        return Condition(
            f"{self} and {other}", lambda found: self.holds(found) and other.holds(found), self.names + other.names
        )

    def __or__(self, other: Condition) -> Condition:
        return Condition(
            f"({self} or {other})", lambda found: self.holds(found) or other.holds(found), self.names + other.names
        )

    def __invert__(self) -> Condition:
        text = self.text.replace(" is ", " is not ", 1) if self.text.count(" is ") == 1 else f"not ({self})"
        return Condition(text, lambda found: not self.holds(found), self.names)


def condition(test: Callable[..., bool]) -> Callable[..., Condition]:
    """Decorator: a Python function of what variables stand for as a condition on them.

    A `Term` or `Const` is handed in as a `Value` (with ``shape``, ``dtype``, ``owner``; `number_of` is the number of a
    `Const`), an `Attr` as its value.
    """

    def make(*arguments: Term | Attr) -> Condition:
        names, text = _names(test, arguments), _called(test, arguments)
        return Condition(text, lambda found: bool(_asked("condition", text, test, found, names)), names)

    make.__name__, make.__doc__ = test.__name__, test.__doc__
    return make


def computed(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: a Python function of what variables stand for as an attribute, or a number, of a replacement."""

    def make(*arguments: Term | Attr) -> Computed:
        names, text = _names(function, arguments), _called(function, arguments)
        return Computed(text, lambda found: _asked("computed value", text, function, found, names), names)

    make.__name__, make.__doc__ = function.__name__, function.__doc__
    return make


def _asked(what: str, text: str, function: Callable[..., Any], found: Found, names: Sequence[str]) -> Any:
    """What a function of a rule says of a match. Raises PipelineError, which names it, for whatever it raises."""
    try:
        return function(*[found[n] for n in names])
    except Exception as error:
        line = innermost_line(error)
        said = f"the {what} {text} failed: {type(error).__name__}: {error}" + (f"; at {line}" if line else "")
        raise PipelineError(said) from error


def _called(function: Callable[..., Any], arguments: Sequence[Any]) -> str:
    return f"{function.__name__}({', '.join(map(str, arguments))})"


def _names(function: Callable[..., Any], arguments: Sequence[Any]) -> tuple[str, ...]:
    for x in arguments:
        if not isinstance(x, (Variable, Attr)):
            raise ArgumentTypeError(at_user_line(f"{function.__name__} takes variables of the rule, got {shown(x)}"))
    return tuple(x.name for x in arguments)


class Rule:
    """``pattern >> replacement``, perhaps under a condition.

    A rule applies only where the replacement has the type of what it replaces.

    Raises:
        IRError: the pattern is no op; the replacement mentions what the pattern does not find, or lacks an attribute.
    """

    __slots__ = ("condition", "pattern", "replacement")

    def __init__(self, pattern: Term, replacement: Term, condition: Condition | None = None):
        if not isinstance(pattern, Applied):
            raise IRError(at_user_line(f"the pattern of a rule is an op on terms; {pattern} is none"))
        known = {x.name for x in variables(pattern)}
        asked = [x.name for x in variables(replacement)]
        made = [x for x in subterms(replacement) if isinstance(x, Applied)]
        asked += [n for x in made for v in x.attrs.values() for n in _read(v)]
        numbers = [x for x in subterms(replacement) if isinstance(x, Number)]
        asked += [n for x in numbers for n in (*_read(x.value), *((x.like.name,) if x.like is not None else ()))]
        asked += condition.names if condition is not None else ()
        for name in asked:
            if name not in known:
                raise IRError(at_user_line(f"{name} does not stand in the pattern {pattern}"))
        given = [v for x in subterms(pattern) if isinstance(x, Applied) for v in x.attrs.values()]
        given += [x.value for x in subterms(pattern) if isinstance(x, Number)]
        if any(isinstance(v, Computed) for v in given):
            raise IRError(at_user_line(f"what is computed stands in replacements, not in patterns; {pattern}"))
        for x in made:
            _require_attributes(x)
        self.pattern, self.replacement, self.condition = pattern, replacement, condition

    def when(self, condition: Condition) -> Rule:
        """The same under a condition."""
        if not isinstance(condition, Condition):
            raise ArgumentTypeError(at_user_line(f"when() takes a condition on variables, got {shown(condition)}"))
        both = condition if self.condition is None else self.condition & condition
        return Rule(self.pattern, self.replacement, both)

    def __str__(self) -> str:
        where = "" if self.condition is None else f" where {self.condition}"
        return f"{self.pattern} → {self.replacement}{where}"

    def __repr__(self) -> str:
        return f"<rule {self}>"


def _require_attributes(x: Applied) -> None:
    """Raise IRError or AttributeValueError for an op that cannot be made of what is given."""
    for name, spec in x.op.attrs.items():
        if name not in x.attrs:
            if spec.required:
                raise IRError(at_user_line(f"the replacement {x} lacks the attribute {name} of smelt.{x.op.name}"))
            x.attrs[name] = spec.default
    if not any(isinstance(v, (Attr, Computed)) for v in x.attrs.values()):
        checked(x.op, x.attrs)


def subterms(x: Term) -> Iterator[Term]:
    """A term and all that it is made of."""
    yield x
    for y in x.operands if isinstance(x, Applied) else ():
        yield from subterms(y)


def variables(x: Term) -> Iterator[Variable | Attr]:
    """The variables of a term, attributes included, each as often as it stands there."""
    for y in subterms(x):
        if isinstance(y, Variable):
            yield y
        elif isinstance(y, Applied):
            yield from (v for v in y.attrs.values() if isinstance(v, Attr))


def _read(value: Any) -> tuple[str, ...]:
    """What an attribute of a replacement refers to."""
    return (value.name,) if isinstance(value, Attr) else value.names if isinstance(value, Computed) else ()


def is_constant(x: Term) -> bool:
    """Whether a term of a replacement is made of numbers alone, and so has the shape of what stands beside it."""
    if isinstance(x, Applied):
        return x.op.kind == "elementwise" and all(map(is_constant, x.operands))
    return isinstance(x, Const) or (isinstance(x, Number) and x.like is None)


def sides(x: Applied) -> tuple[list[int], list[int]]:
    """The operands of a replacement that have types of their own, and those that take the type of what is beside."""
    constant = [i for i, y in enumerate(x.operands) if is_constant(y)]
    if x.op.kind != "elementwise":  # operands need not be alike: a value found is as it is
        constant = [i for i in constant if isinstance(x.operands[i], Number)]
    return [i for i in range(len(x.operands)) if i not in constant], constant


def number_of(value: Value) -> Any:
    """The number that a value matched by a `Const` is filled with, as it stands in the IR."""
    owner = value.owner
    if owner is not None and owner.op.name == "broadcast":
        owner = owner.operands[0].owner
    return owner.attrs["value"] if owner is not None and owner.op.name == "constant" else None
