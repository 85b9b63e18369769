"""Index expressions: how a kernel addresses an element.

An `Index` is an affine form ``constant + Σ coefficient·atom`` over atoms with known bounds: loop
variables, quotients and remainders that do not simplify, and indices computed at run time. The
same expressions serve fusion (is this read aligned with that loop?) and code generation (they turn
into arithmetic only where memory is touched), so a reshape or a transpose inside a fused kernel
costs nothing unless it must.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple


class Atom:
    """Something an index is made of, with inclusive bounds."""

    __slots__ = ("_hash", "args", "hi", "key", "kind", "lo")

    def __init__(self, kind: str, args: tuple, lo: int, hi: int):
        self.kind, self.args, self.lo, self.hi = kind, args, lo, hi
        self.key = (kind, args)
        self._hash = hash(self.key)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Atom) and self.key == other.key)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        if self.kind == "var":
            return str(self.args[0])
        return f"{self.kind}({', '.join(map(repr, self.args))})"


class Index:
    """An integer expression with bounds. Supports + - with indices, * // % with integers."""

    __slots__ = ("_hash", "const", "hi", "lo", "terms")

    _hash: int

    def __init__(self, const: int, terms: Sequence[tuple[Atom, int]] = ()):
        self.const = const
        self.terms = tuple(terms)
        lo = hi = const
        for atom, coefficient in self.terms:
            first, last = (atom.lo, atom.hi) if coefficient >= 0 else (atom.hi, atom.lo)
            lo, hi = lo + coefficient * first, hi + coefficient * last
        self.lo, self.hi = lo, hi

    @staticmethod
    def variable(name: Any, extent: int) -> Index:
        """A loop variable that runs over ``0 .. extent - 1``.

        An axis of one element is at 0 and needs no loop; one without elements has a loop that never runs.
        """
        if extent == 1:
            return Index(0)
        return Index(0, [(Atom("var", (name,), 0, extent - 1), 1)])

    @staticmethod
    def dynamic(value: Any, extent: int) -> Index:
        """An index known only at run time, already brought into ``0 .. extent - 1``."""
        if extent <= 1:
            return Index(0)
        return Index(0, [(Atom("dynamic", (value,), 0, extent - 1), 1)])

    @property
    def is_constant(self) -> bool:
        return not self.terms

    def coefficient(self, atom: Atom) -> int:
        return next((c for a, c in self.terms if a == atom), 0)

    def step(self, name: Any) -> int | None:
        """How far the index moves with each step of a variable; None where that is not always as far."""
        found: int | None = 0
        for atom, coefficient in self.terms:
            if atom.kind == "var":
                if atom.args[0] == name:
                    found = coefficient
            elif name in names_of(arg for arg in atom.args if isinstance(arg, Index)):
                return None
        return found

    def atoms(self) -> set[Atom]:
        """All atoms in this expression, those inside quotients and remainders included."""
        found: set[Atom] = set()
        for atom, _ in self.terms:
            found.add(atom)
            for arg in atom.args:
                if isinstance(arg, Index):
                    found |= arg.atoms()
        return found

    def __add__(self, other: Index | int) -> Index:
        if isinstance(other, int):
            return Index(self.const + other, self.terms) if other else self
        merged = dict(self.terms)
        for atom, c in other.terms:
            merged[atom] = merged.get(atom, 0) + c
        return Index(self.const + other.const, [(a, c) for a, c in merged.items() if c])

    __radd__ = __add__

    def __mul__(self, factor: int) -> Index:
        if factor == 1:
            return self
        if factor == 0:
            return Index(0)
        return Index(self.const * factor, [(a, c * factor) for a, c in self.terms])

    __rmul__ = __mul__

    def __neg__(self) -> Index:
        return self * -1

    def __sub__(self, other: Index | int) -> Index:
        return self + -other

    def __rsub__(self, other: int) -> Index:
        return -self + other

    def _split(self, n: int) -> tuple[Index, Index]:
        """``(q, r)`` with ``self == n * q + r``, where r keeps what n does not divide."""
        quotient = Index(self.const // n, [(a, c // n) for a, c in self.terms if c % n == 0])
        rest = Index(self.const % n, [(a, c) for a, c in self.terms if c % n])
        return quotient, rest

    def __floordiv__(self, n: int) -> Index:
        quotient, rest = self._split(n)
        if rest.lo >= 0 and rest.hi < n:
            return quotient
        if len(rest.terms) == 1 and rest.const == 0 and rest.terms[0][1] == 1:
            atom = rest.terms[0][0]
            if atom.kind == "div":  # (x // a) // n == x // (a * n)
                inner, a = atom.args
                return quotient + inner // (a * n)
        atom = Atom("div", (rest, n), rest.lo // n, rest.hi // n)
        return quotient + Index(0, [(atom, 1)])

    def __mod__(self, n: int) -> Index:
        _, rest = self._split(n)
        if rest.lo >= 0 and rest.hi < n:
            return rest
        return Index(0, [(Atom("mod", (rest, n), 0, n - 1), 1)])

    def __eq__(self, other: object) -> bool:
        if isinstance(other, int):
            return not self.terms and self.const == other
        if self is other:
            return True
        if not isinstance(other, Index) or self.const != other.const or len(self.terms) != len(other.terms):
            return False
        if self.terms == other.terms:
            return True
        return len(self.terms) > 1 and frozenset(self.terms) == frozenset(other.terms)

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:  # seldom asked for
            self._hash = hash((self.const, frozenset(self.terms)))
            return self._hash

    def __repr__(self) -> str:
        parts = [f"{c}*{a!r}" if c != 1 else repr(a) for a, c in self.terms]
        if self.const or not parts:
            parts.append(str(self.const))
        return " + ".join(parts)


@dataclass(frozen=True)
class Guard:
    """The condition ``0 <= index < extent``.

    It also says that a position is a multiple of n: ``Guard(position % n, 1)``.
    """

    index: Index
    extent: int

    @property
    def always_holds(self) -> bool:
        """Whether the bounds of the index alone say that the condition holds."""
        return self.index.lo >= 0 and self.index.hi < self.extent


@dataclass(frozen=True)
class Access:
    """Which element of an array is read, and under which conditions.

    Where a guard does not hold nothing is read, and the element counts as zero, as padding does.
    `place` may then be outside of the array. Guards that always hold are left out.
    """

    place: Coordinates
    guards: tuple[Guard, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "guards", tuple(g for g in self.guards if not g.always_holds))


class Piece(NamedTuple):
    """What of a result is an operand's elements: every `step`-th from `start` on, along each axis.

    Attributes:
        operand: its number. A scalar fills the whole result, before the others.
    """

    operand: int
    start: tuple[int, ...]
    step: tuple[int, ...]


#: Where an element of an array is: an index for each axis.
Coordinates = tuple[Index, ...]


def variables(shape: Sequence[int], prefix: str = "i") -> Coordinates:
    """One loop variable for each axis of `shape`."""
    return tuple(Index.variable(f"{prefix}{axis}", extent) for axis, extent in enumerate(shape))


def names_of(indices: Iterable[Index]) -> set[str]:
    """The names of the variables that occur in some indices, in quotients and remainders too."""
    return {atom.args[0] for index in indices for atom in index.atoms() if atom.kind == "var"}


def strides_of(shape: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides in elements."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def linearize(index: Sequence[Index], shape: Sequence[int]) -> Index:
    """The row-major offset of `index` in an array of `shape`."""
    total = Index(0)
    for i, stride in zip(index, strides_of(shape)):
        total = total + i * stride
    return total


def delinearize(offset: Index, shape: Sequence[int]) -> Coordinates:
    """The index in an array of `shape` of the element at the row-major `offset`."""
    result, is_first = [], True
    for extent, stride in zip(shape, strides_of(shape)):
        q = offset // stride if stride > 1 else offset
        result.append(Index(0) if extent <= 1 else q if is_first else q % extent)
        is_first = is_first and extent <= 1  # the first axis that moves has no remainder to take
    return tuple(result)
