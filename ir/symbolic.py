"""Symbolic numbers: rules of ops run once for a family of sizes.

A `Symbol` stands in an aval or attribute where a size stands, and has the value of that size. Arithmetic on it is
written down as Python code; what a rule finds out by comparing it, or by taking it for a plain number (an index, the
end of a `range`), is written down as a guard. The code takes other values, and where all guards hold, the rule would
have done the same with these: so what it computes is what the rule would have computed. (PyTorch's SymInt and its
guards are this.)

A symbol is no `int` (it only answers `isinstance` like one), since much of Python's C code reads an int's value without
asking it: every way from a symbol to a plain number goes through a method here. It cannot be hashed, for a look-up that
fails leaves no guard.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .errors import ArgumentTypeError, SmeltError

#: Python code of a binary operation: its text, and what computes it.
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
#: The same of NumPy's functions.
_UFUNCS: dict[str, Callable[[Any, Any], Any]] = {
    "equal": operator.eq, "not_equal": operator.ne, "less": operator.lt, "less_equal": operator.le,
    "greater": operator.gt, "greater_equal": operator.ge, "add": operator.add, "subtract": operator.sub,
    "multiply": operator.mul, "floor_divide": operator.floordiv, "remainder": operator.mod, "divide": operator.truediv,
}  # fmt: skip
_LOWEST = float("-inf")
_PACKAGE = __name__.partition(".")[0]


class Program:
    """Straight-line code on numbers that symbols stand for.

    Args:
        distinct: values of the first inputs, larger than 1 and different from each other, as those of all runs are.
        others: values of further inputs, of which nothing is known.
    """

    def __init__(self, distinct: Sequence[int], others: Sequence[Any] = ()) -> None:
        self._lines: list[tuple[str, str, tuple[str, ...]]] = []  # name or "" for a guard, code, names in it
        self._known: dict[Any, Any] = {}
        self._constants: dict[str, Any] = {"inf": float("inf"), "nan": float("nan")}
        self._distinct = {f"s{i}" for i in range(len(distinct))}
        self.sizes = [Symbol(self, f"s{i}", value, 2) for i, value in enumerate(distinct)]
        self.others = [Symbol(self, f"v{i}", value, _LOWEST) for i, value in enumerate(others)]

    @property
    def lines(self) -> list[tuple[str, str, tuple[str, ...]]]:
        """The code so far: of each line the name that it gives a value to, or none for a guard, its text, its names."""
        return self._lines

    def binary(self, text: str, compute: Callable[[Any, Any], Any], a: Any, b: Any, least: float = _LOWEST) -> Any:
        """The symbol of ``a text b``."""
        key = (text, _term(a), _term(b))
        found = self._known.get(key)
        if found is None:
            found = Symbol(self, f"t{len(self._lines)}", compute(_value(a), _value(b)), least)
            self._lines.append((found.name, f"{key[1]} {text} {key[2]}", _names(a, b)))
            self._known[key] = found
        return found

    def compare(self, text: str, a: Symbol, b: Any) -> bool:
        """Whether ``a text b``, from now on a guard unless it is known of all values."""
        if type(b) is Symbol:
            if a is b and type(a.value) is int:
                return text in ("==", "<=", ">=")
            if a.name in self._distinct and b.name in self._distinct and text in ("==", "!="):
                return text == "!="
        elif b < a.least:
            return text in ("!=", ">", ">=")
        elif b == a.least and text in ("<", ">="):
            return text == ">="
        key = (text, _term(a), _term(b))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = bool(_COMPARISONS[text](a.value, _value(b)))
            code = f"{key[1]} {text} {key[2]}"
            self._lines.append(("", code if found else f"not ({code})", _names(a, b)))
        return found

    def unguarded(self, outputs: Any) -> Callable[..., Any]:
        """`compiled` without the guards."""
        return self.compiled(outputs, guards=False)

    def compiled(self, outputs: Any, guards: bool = True) -> Callable[..., Any]:
        """A function of the inputs that returns `outputs` with the symbols' values for these, or None where a guard
        does not hold; it may raise what arithmetic raises.

        Args:
            outputs: tuples, slices, lists and dictionaries with symbols.
        """
        needed: set[str] = set()
        returned = self._code_of(outputs, needed)
        kept: list[str] = []
        for name, code, names in reversed(self._lines):
            if not name and not guards:
                continue
            if not name:
                kept.append(f" if not ({code}): return None")
            elif name in needed:
                kept.append(f" {name} = {code}")
            else:
                continue
            needed.update(names)
        inputs = ", ".join(s.name for s in (*self.sizes, *self.others))
        text = "\n".join([f"def run({inputs}):", *reversed(kept), f" return {returned}"])
        namespace = dict(self._constants)
        exec(compile(text, "<sizes>", "exec"), namespace)
        return namespace["run"]

    def _code_of(self, x: Any, needed: set[str]) -> str:
        kind = type(x)
        if kind is Symbol:
            needed.add(x.name)
            return x.name
        if not has_symbol(x):
            name = f"c{len(self._constants)}"
            self._constants[name] = x
            return name
        if kind is tuple:
            return "(" + "".join([self._code_of(item, needed) + ", " for item in x]) + ")"
        if kind is slice:
            return f"slice({', '.join([self._code_of(item, needed) for item in (x.start, x.stop, x.step)])})"
        if kind is list:
            return "[" + ", ".join([self._code_of(item, needed) for item in x]) + "]"
        return "{" + ", ".join([f"{k!r}: {self._code_of(v, needed)}" for k, v in x.items()]) + "}"


def has_symbol(x: Any) -> bool:
    """Whether a symbol is in an attribute: itself, or in tuples, slices, lists and dictionaries."""
    kind = type(x)
    if kind is tuple or kind is list:
        return any(map(has_symbol, x))
    if kind is slice:
        return has_symbol((x.start, x.stop, x.step))
    return kind is Symbol or (kind is dict and any(map(has_symbol, x.values())))


def value_of(x: Any) -> Any:
    """What an attribute with symbols stands for, where they were made; no guard comes of it."""
    if type(x) is Symbol:
        return x.value
    return tuple([value_of(item) for item in x]) if type(x) is tuple else x


def index(x: Any) -> Any:
    """`operator.index`, but a symbol stays what it is.

    Raises:
        TypeError: x is no integer; an ArgumentTypeError where it fails to say which one.
    """
    if type(x) is Symbol and type(x.value) is int:
        return x
    try:
        return operator.index(x)
    except (TypeError, SmeltError, MemoryError):
        raise
    except Exception as error:
        raise ArgumentTypeError(f"{type(x).__name__}.__index__ fails: {error!r}") from error


def slice_indices(s: slice, extent: Any) -> tuple[Any, Any, Any]:
    """`slice.indices`, also of symbols. The step is an int."""
    if not any(type(x) is Symbol for x in (s.start, s.stop, extent)):
        return s.indices(extent)
    step = 1 if s.step is None else operator.index(s.step)
    if not step:
        return s.indices(0)  # which raises
    lowest, highest = (0, extent) if step > 0 else (-1, extent - 1)

    def bound(x: Any, default: Any) -> Any:
        if x is None:
            return default
        x = index(x)
        return max(x + extent, lowest) if x < 0 else min(x, highest)

    ends = (lowest, highest) if step > 0 else (highest, lowest)
    return bound(s.start, ends[0]), bound(s.stop, ends[1]), step


def _value(x: Any) -> Any:
    return x.value if type(x) is Symbol else x


def _term(x: Any) -> str:
    return x.name if type(x) is Symbol else f"({x!r})"


def _names(*xs: Any) -> tuple[str, ...]:
    return tuple([x.name for x in xs if type(x) is Symbol])


def _number(x: Any) -> Any:
    """A plain number or symbol that symbols can be combined with, else None."""
    kind = type(x)
    if kind is Symbol or kind is int or kind is float:
        return x
    if isinstance(x, (bool, np.integer)):
        return int(x)
    return None


def _least(x: Any) -> float:
    return x.least if type(x) is Symbol else x


class Symbol:
    """A number of a `Program`.

    Attributes:
        value: what it stands for where it was made.
        least: no run has a smaller value.
    """

    __slots__ = ("least", "name", "program", "value")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, program: Program, name: str, value: Any, least: float):
        self.program, self.name, self.value, self.least = program, name, value, least

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # type: ignore[override]
        """For `isinstance`: a rule takes a size for an int."""
        return type(self.value)

    def __repr__(self) -> str:
        """For a user's function the value: what it prints, or makes a name of, is that of these sizes. Rules have
        the texts of their errors ready."""
        of_rule = sys._getframe(1).f_globals.get("__name__", "").partition(".")[0] == _PACKAGE
        return f"<{self.name}: {self.value}>" if of_rule else repr(self._pinned())

    def __format__(self, spec: str) -> str:
        of_rule = sys._getframe(1).f_globals.get("__name__", "").partition(".")[0] == _PACKAGE
        return format(self.value if of_rule else self._pinned(), spec)

    # Arithmetic

    def __add__(self, other: Any) -> Any:
        other = _number(other)
        if other is None:
            return NotImplemented
        if type(other) is int and not other:
            return self
        return self.program.binary("+", operator.add, self, other, self.least + _least(other))

    __radd__ = __add__  # numbers commute

    def __mul__(self, other: Any) -> Any:
        other = _number(other)
        if other is None:
            return NotImplemented
        if type(other) is int and type(self.value) is int and other in (0, 1):
            return self if other else 0
        least = self.least * _least(other) if self.least >= 0 and _least(other) >= 0 else _LOWEST
        return self.program.binary("*", operator.mul, self, other, least)

    __rmul__ = __mul__

    def __sub__(self, other: Any) -> Any:
        other = _number(other)
        if other is None:
            return NotImplemented
        if type(other) is int and not other:
            return self
        least = _LOWEST if type(other) is Symbol else self.least - other
        return self.program.binary("-", operator.sub, self, other, least)

    def __rsub__(self, other: Any) -> Any:
        return self._swapped("-", operator.sub, other)

    def __floordiv__(self, other: Any) -> Any:
        return self._binary("//", operator.floordiv, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._swapped("//", operator.floordiv, other)

    def __mod__(self, other: Any) -> Any:
        return self._binary("%", operator.mod, other)

    def __rmod__(self, other: Any) -> Any:
        return self._swapped("%", operator.mod, other)

    def __truediv__(self, other: Any) -> Any:
        return self._binary("/", operator.truediv, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._swapped("/", operator.truediv, other)

    def __pow__(self, other: Any) -> Any:
        return self._power(self, _number(other))

    def __rpow__(self, other: Any) -> Any:
        return self._power(_number(other), self)

    def _power(self, base: Any, exponent: Any) -> Any:
        """Whether it is an integer or a real number is what signs decide. Complex ones are none of a program."""
        if base is None or exponent is None:
            return NotImplemented
        if base < 0 and not isinstance(exponent, int):
            return NotImplemented
        least = 0 if base >= 0 and exponent >= 0 else _LOWEST
        return self.program.binary("**", operator.pow, base, exponent, least)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __neg__(self) -> Any:
        return self.program.binary("*", operator.mul, self, -1)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def _binary(self, text: str, compute: Callable[[Any, Any], Any], other: Any) -> Any:
        other = _number(other)
        return NotImplemented if other is None else self.program.binary(text, compute, self, other)

    def _swapped(self, text: str, compute: Callable[[Any, Any], Any], other: Any) -> Any:
        other = _number(other)
        return NotImplemented if other is None else self.program.binary(text, compute, other, self)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """NumPy's functions: ``np.int64(2) * n`` is arithmetic, of others such as ``np.sqrt(n)`` the size is fixed."""
        compute = _UFUNCS.get(ufunc.__name__)
        if compute is not None and method == "__call__" and not kwargs:
            a, b = map(_number, inputs)
            if a is not None and b is not None:
                return compute(a, b)
        return getattr(ufunc, method)(*[x._pinned() if type(x) is Symbol else x for x in inputs], **kwargs)

    # What a rule finds out: guards

    def _compare(self, text: str, other: Any) -> Any:
        other = _number(other)
        return NotImplemented if other is None else self.program.compare(text, self, other)

    def __eq__(self, other: Any) -> Any:
        return self._compare("==", other)

    def __ne__(self, other: Any) -> Any:
        return self._compare("!=", other)

    def __lt__(self, other: Any) -> Any:
        return self._compare("<", other)

    def __le__(self, other: Any) -> Any:
        return self._compare("<=", other)

    def __gt__(self, other: Any) -> Any:
        return self._compare(">", other)

    def __ge__(self, other: Any) -> Any:
        return self._compare(">=", other)

    def __bool__(self) -> bool:
        return self.program.compare("!=", self, 0)

    def _pinned(self) -> int:
        """The value, which is the same in all runs from now on."""
        if type(self.value) is not int:  # a guard would take 0.0 for -0.0
            raise ArgumentTypeError(f"{self.name}: {self.value} is no size")
        self.program.compare("==", self, self.value)
        return self.value

    def __index__(self) -> int:
        return self._pinned()

    def __int__(self) -> int:
        return self._pinned()

    def __float__(self) -> float:
        return float(self._pinned())
