"""What two modules have in common, and what not, by structure: names of values, their order and places do not matter.

Ops that compute the same from the same operands are the same. Those that are left are matched where they are of one
kind and result type, in order: these have changed. The others were added, or removed. Functions are matched by name,
then by what they compute; a call is known by what is called.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any

from . import mlir
from .attributes import attributes_of
from .builder import Function, OpView, functions, read_function
from .dtypes import DType
from .text import line_of

#: Characters of an op that are shown.
SHOWN = 160


@dataclass(frozen=True)
class Change:
    """An op that is in one function only, or differs between the two.

    Attributes:
        kind: "removed", "added" or "changed".
        text: the op; of a changed one what is different.
        line: of the op, in its file or the user's program; of a changed one in the second module.
    """

    kind: str
    text: str
    line: str

    def __str__(self) -> str:
        mark = {"removed": "-", "added": "+", "changed": "~"}[self.kind]
        return f"  {mark} {self.text}{f'  ({self.line})' if self.line else ''}"


@dataclass(frozen=True)
class FunctionDifference:
    """Two functions. Attributes: name, or both where they differ; same: how many ops both have; changes."""

    name: str
    same: int
    changes: tuple[Change, ...] = ()

    def __str__(self) -> str:
        counts = Counter(c.kind for c in self.changes)
        told = [f"{n} {kind}" for kind in ("changed", "removed", "added") if (n := counts[kind])]
        return "\n".join([f"{self.name}: {', '.join([f'{self.same} ops the same', *told])}", *map(str, self.changes)])


@dataclass
class Differences:
    """What two modules do not have in common. Attributes: functions that differ; only_first, only_second: names of
    functions that only one has; renamed: those that are the same but for their names."""

    functions: list[FunctionDifference] = field(default_factory=list)
    only_first: list[str] = field(default_factory=list)
    only_second: list[str] = field(default_factory=list)
    renamed: list[tuple[str, str]] = field(default_factory=list)

    def __bool__(self) -> bool:
        """Whether they differ by more than names of private functions."""
        return bool(self.functions or self.only_first or self.only_second)

    def __str__(self) -> str:
        lines = [str(f) for f in self.functions]
        lines += [f"@{name}: only in the first" for name in self.only_first]
        lines += [f"@{name}: only in the second" for name in self.only_second]
        lines += [f"@{one}: called @{other} in the second" for one, other in self.renamed]
        return "\n".join(lines)


@mlir.locked
def differences(first: Any, second: Any) -> Differences:
    """How two modules differ.

    >>> from smelt.ir import text
    >>> program = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{ {0} return %1 : tensor<4xf32> }}"
    >>> op = '%1 = "smelt.{0}"(%x) : (tensor<4xf32>) -> tensor<4xf32>'
    >>> one, other = (text.parse(program.format(op.format(name))) for name in ("exp", "sin"))
    >>> print(differences(one, one)), print(differences(one, other))
    <BLANKLINE>
    @main: 0 ops the same, 1 changed, 1 removed, 1 added
      - exp(%arg0) : f32[4]  (-:1)
      + sin(%arg0) : f32[4]  (-:1)
      ~ return: result 0 %0 (exp) → %0 (sin)
    (None, None)
    """
    found = Differences()
    numbers: dict[Any, int] = {}
    one, other = _Module(first, numbers), _Module(second, numbers)
    left = [name for name in one.functions if name not in other.functions]
    right: dict[int, list[str]] = {}
    for name in other.functions:
        if name not in one.functions:
            right.setdefault(other.key(name), []).append(name)
    for name in left:
        known = right.get(one.key(name))
        if known and not one.is_public(name):
            found.renamed.append((name, known.pop(0)))
        else:
            found.only_first.append(name)
    found.only_second = [name for names in right.values() for name in names]
    both = [name for name in one.functions if name in other.functions and one.key(name) != other.key(name)]
    compared = [_compared(name, one, other) for name in both]
    found.functions = [f for f in compared if f.changes] or compared  # who calls what has changed is the same
    return found


class _Module:
    """Functions of a module, and a number for whatever is computed: equal for equal structure, also in modules that
    share `numbers`. Attributes: keys, of functions, by name."""

    def __init__(self, module: Any, numbers: dict[Any, int]):
        self._numbers = numbers
        self.functions: dict[str, Any] = functions(module)
        self._read: dict[str, Function | None] = {}
        self.keys: dict[str, int] = {}
        self.of: dict[str, dict[Any, int]] = {}  #: of each function, what its values are

    def is_public(self, name: str) -> bool:
        return "sym_visibility" not in self.functions[name].attributes

    def read(self, name: str) -> Function | None:
        """A function, decoded; None for a declaration."""
        if name not in self._read:
            operation = self.functions[name]
            has_body = len(operation.regions[0].blocks) > 0
            self._read[name] = read_function(operation) if has_body else None
        return self._read[name]

    def attributes(self, name: str) -> dict[str, str]:
        """The attributes of a function, except its name and visibility."""
        known = attributes_of(self.functions[name])
        return {k: str(v) for k, v in known.items() if k not in ("sym_name", "sym_visibility")}

    def key(self, name: str) -> int:
        """A number for what a function computes. Functions do not recurse."""
        waiting = [name]
        while waiting:
            at = waiting[-1]
            function = self.read(at)
            missing = [c for c in self._callees(function) if c in self.functions and c not in self.keys and c != at]
            if missing and len(waiting) <= len(self.functions):
                waiting.append(missing[0])
                continue
            waiting.pop()
            self.keys[at] = self._number_function(at, function)
        return self.keys[name]

    @staticmethod
    def _callees(function: Function | None) -> list[str]:
        found: list[str] = []
        for op in function.ops if function else ():
            for key in ("callee", "callees", "branches", "body", "cond"):
                named = op.attrs.get(key)
                found += [named] if isinstance(named, str) else [n for n in named or () if isinstance(n, str)]
        return found

    def _number_function(self, name: str, function: Function | None) -> int:
        attributes = tuple(sorted(self.attributes(name).items()))
        values: dict[Any, int] = {}
        self.of[name] = values
        if function is None:
            return self.number(("declared", name, attributes))
        for i, v in enumerate(function.arguments):
            values[v] = self.number(("argument", i, str(v.aval)))
        effects = []
        for op in function.ops:
            made = self.number((*self.shallow(op), tuple(values[v] for v in op.operands)))
            for i, v in enumerate(op.results):
                values[v] = self.number((made, i))
            if not op.op.pure:
                effects.append(made)
        return self.number(("function", attributes, tuple(values[v] for v in function.returns), tuple(effects)))

    def shallow(self, op: OpView) -> tuple[Any, ...]:
        """An op without its operands."""
        attrs = tuple((k, _known(v, self.keys)) for k, v in sorted(op.attrs.items()))
        return op.name, attrs, tuple(str(r.aval) if r.aval is not None else "function" for r in op.results)

    def number(self, key: Any) -> int:
        return self._numbers.setdefault(key, len(self._numbers))


def _known(value: Any, keys: Mapping[str, int]) -> Any:
    """An attribute to compare; functions by what they compute, as far as that is known."""
    if isinstance(value, str) and value in keys:
        return keys[value]
    if isinstance(value, (tuple, list)):
        return tuple(_known(v, keys) for v in value)
    return value.tobytes() if hasattr(value, "tobytes") else repr(value)


def _compared(name: str, one: _Module, other: _Module) -> FunctionDifference:
    f, g = one.read(name), other.read(name)
    if f is None or g is None:
        return FunctionDifference(f"@{name}", 0, (Change("changed", "a declaration in one, a body in the other", ""),))
    x, y = one.of[name], other.of[name]
    rest_f, rest_g, same = _rest(f.ops, x, g.ops, y)
    names_f, names_g = _names(f), _names(g)
    pairs = _pairs(rest_f, rest_g)
    before, after = one.attributes(name), other.attributes(name)
    keys = [k for k in sorted({*before, *after}) if k != "function_type" and before.get(k) != after.get(k)]
    changes = [Change("changed", f"{k} {before.get(k)} → {after.get(k)}", "") for k in keys]
    paired_f, paired_g = {id(a) for a, _ in pairs}, {id(b) for _, b in pairs}
    changes += [Change("removed", _text(op, names_f), line_of(op.location)) for op in rest_f if id(op) not in paired_f]
    changes += [Change("added", _text(op, names_g), line_of(op.location)) for op in rest_g if id(op) not in paired_g]
    for a, b in pairs:
        told = _told(a, b, one, other, x, y, names_f, names_g, {(id(p), id(q)) for p, q in pairs})
        if told:
            changes.append(Change("changed", f"{_text(b, names_g)}: {told}", line_of(b.location)))
        else:
            same += 1  # only what it is made from has changed
    if len(f.returns) != len(g.returns):
        changes.append(Change("changed", f"return: {len(f.returns)} → {len(g.returns)} results", ""))
    owners = {(id(a), id(b)) for a, b in pairs}
    for i, (v, w) in enumerate(zip(f.returns, g.returns)):
        if x[v] != y[w] and (id(v.owner), id(w.owner)) not in owners:
            text = f"return: result {i} {_made(v, names_f)} → {_made(w, names_g)}"
            changes.append(Change("changed", text, ""))
    return FunctionDifference(f"@{name}", same, tuple(changes))


def _rest(
    f: Sequence[OpView], x: dict[Any, int], g: Sequence[OpView], y: dict[Any, int]
) -> tuple[list[OpView], list[OpView], int]:
    """The ops of both that compute what the other does not; and how many both have."""
    known: dict[Any, deque[int]] = defaultdict(deque)
    for i, op in enumerate(g):
        known[tuple(y[r] for r in op.results)].append(i)
    left, found = [], set()
    for op in f:
        waiting = known.get(tuple(x[r] for r in op.results))
        if waiting:
            found.add(waiting.popleft())
        else:
            left.append(op)
    return left, [op for i, op in enumerate(g) if i not in found], len(found)


def _pairs(f: list[OpView], g: list[OpView]) -> list[tuple[OpView, OpView]]:
    """Ops of one kind and type, in the order of both."""
    kinds, others = ([" ".join([op.name, *(str(r.aval) for r in op.results)]) for op in ops] for ops in (f, g))
    blocks = SequenceMatcher(None, kinds, others, autojunk=False).get_matching_blocks()
    return [(f[b.a + i], g[b.b + i]) for b in blocks for i in range(b.size)]


def _told(
    a: OpView, b: OpView, one: _Module, other: _Module, x: dict[Any, int], y: dict[Any, int], names_f: dict[Any, str],
    names_g: dict[Any, str], pairs: set[tuple[int, int]],
) -> str:  # fmt: skip
    """What is different of two ops of a kind, but for operands that are such a pair, too."""
    told = []
    for key in sorted({*a.attrs, *b.attrs}):
        before, after = a.attrs.get(key), b.attrs.get(key)
        if _known(before, one.keys) != _known(after, other.keys) and _known(before, {}) != _known(after, {}):
            told.append(f"{key} {_short(before)} → {_short(after)}")
    if len(a.operands) != len(b.operands):
        told.append(f"{len(a.operands)} → {len(b.operands)} operands")
    for i, (v, w) in enumerate(zip(a.operands, b.operands)):
        if x[v] != y[w] and (id(v.owner), id(w.owner)) not in pairs:
            told.append(f"operand {i} {_made(v, names_f)} → {_made(w, names_g)}")
    return ", ".join(told)


def _names(function: Function) -> dict[Any, str]:
    names = {v: f"%arg{i}" for i, v in enumerate(function.arguments)}
    for v in (r for op in function.ops for r in op.results):
        names[v] = f"%{len(names) - len(function.arguments)}"
    return names


def _made(v: Any, names: dict[Any, str]) -> str:
    """A value by its name and what makes it."""
    return f"{names[v]} ({v.owner.name})" if v.owner is not None else names[v]


def _text(op: OpView, names: dict[Any, str]) -> str:
    arguments = [names[v] for v in op.operands] + [f"{k}={_short(v)}" for k, v in op.attrs.items()]
    types = ", ".join(str(r.aval) for r in op.results if r.aval is not None)
    found = f"{op.name}({', '.join(arguments)}) : {types}"
    return found if len(found) <= SHOWN else f"{found[: SHOWN - 1]}…"


def _short(value: Any) -> str:
    text = value.mlir if isinstance(value, DType) else str(value).replace("\n", " ")
    return text if len(text) <= 60 else f"{text[:59]}…"
