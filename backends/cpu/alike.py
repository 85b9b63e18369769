"""Functions that differ only in numbers are merged into one function, which takes these numbers as arguments.

A step over hundreds of arrays sums along rows of dozens of lengths. For each length there is a kernel, and compiling a
kernel takes LLVM longer than hundreds of its launches. Kernels that are alike except for extents, steps, and factors
that follow from them become::

    func @sum(%x, %result, %lo, %hi) { … scf.for %i = %c0 to %c39 … arith.divf %sum, %cst_39 }
    func @sum_1(%x, %result, %lo, %hi) { … scf.for %i = %c0 to %c87 … arith.divf %sum, %cst_87 }
    ⟶
    func @sum(%x, %result, %lo, %hi, %extent, %length) { … scf.for %i = %c0 to %extent … arith.divf %sum, %length }

A function for all is slower where a divisor is no constant any more: numbers that divide integers stay in the code. It
pays for small kernels only.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from smelt.ir import mlir
from smelt.ir.dialect import context

#: Fewer functions that are alike stay as they are.
FEWEST = 4

_DEFINITION = re.compile(r"^ *(%[\w-]+) = arith\.constant (.+)$")
_NUMBER = re.compile(r"^(-?[\d.]+(?:[eE][+-]?\d+)?|0x[0-9A-F]+) : (index|i\d+|f32|f64)$")
_NAMED = re.compile(r"%(?!arg\d)[a-zA-Z][\w-]*")
_SIZE = re.compile(r"memref<\d+x")
_DIVIDES = re.compile(r" = arith\.(?:ceil|floor)?(?:div|rem)[su]?i ")
_TOLD = "%number"


class Number(NamedTuple):
    """A constant in the code of a function: its bits as a signed integer, and its type."""

    bits: int
    kind: str

    @classmethod
    def of(cls, text: str) -> Number | None:
        """What a constant's text says; None of others than numbers."""
        if (found := _NUMBER.match(text)) is None:
            return None
        value, kind = found.groups()
        if kind not in ("f32", "f64"):
            return cls(int(value), kind)
        as_float, as_bits = (np.float32, np.int32) if kind == "f32" else (np.float64, np.int64)
        if value.startswith("0x"):
            return cls(int(np.array(int(value, 16), f"u{as_float().nbytes}").view(as_bits)), kind)
        return cls(int(np.array(float(value), as_float).view(as_bits)), kind)


@dataclass
class Code:
    """A complete function.

    Attributes:
        key: equal for functions that are alike.
        numbers: where they may differ: the constants that it uses, in order.
        scratch: elements of each array on its stack.
    """

    name: str
    text: str
    key: str = field(init=False)
    numbers: list[Number] = field(default_factory=list)
    scratch: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._constants: dict[str, tuple[str, Number | None]] = {}
        names: dict[str, str] = {}
        lines = []
        for line in self.text.splitlines():
            if found := _DEFINITION.match(line):
                self._constants[found[1]] = found[2], Number.of(found[2])
            else:
                lines.append(line)

        def canonical(token: str, number: Number | None) -> str:
            if number is not None:
                self.numbers.append(number)
                return f"%#{number.kind}"
            if token in self._constants:
                return f"%<{self._constants[token][0]}>"
            return names.setdefault(token, f"%n{len(names)}")

        kept = [self._replaced(line, canonical) for line in lines]
        self.scratch = [int(n) for line in kept if "memref.alloca" in line for n in re.findall(r"memref<(\d+)x", line)]
        self.key = "\n".join(_SIZE.sub("memref<?x", line) for line in kept)

    def _replaced(self, line: str, replace: Any) -> str:
        """A line with other names. `replace`: of a name, and the number that may be another, if it is one."""
        divides = _DIVIDES.search(line) is not None

        def one(found: re.Match[str]) -> str:
            token = found[0]
            return str(replace(token, None if divides else self._constants.get(token, ("", None))[1]))

        return _NAMED.sub(one, line)

    def told(self, name: str, columns: Sequence[int | None], kinds: Sequence[str]) -> str:
        """The text of the same function, which takes some of its numbers as arguments.

        Args:
            columns: for each of `numbers`, which of these arguments it is, if any.
            kinds: the types of the latter.
        """
        places = iter(columns)

        def renamed(token: str, number: Number | None) -> str:
            column = None if number is None else next(places)
            return token if column is None else f"{_TOLD}{column}"

        head, *rest = self.text.splitlines()
        arguments = "".join(f", {_TOLD}_{i}: i64" for i in range(len(kinds)))
        head = re.sub(r"@\w*\(", f"@{name}(", head, count=1).replace(") attributes", f"{arguments}) attributes", 1)
        body = [line if _DEFINITION.match(line) else self._replaced(line, renamed) for line in rest]
        return "\n".join([head, *(line for i, kind in enumerate(kinds) for line in _conversion(i, kind)), *body])


def _conversion(i: int, kind: str) -> list[str]:
    """The ops that turn an argument, an i64, into a number of the type `kind`."""
    told, number = f"{_TOLD}_{i}", f"{_TOLD}{i}"
    if kind == "index":
        return [f"{number} = arith.index_cast {told} : i64 to index"]
    if kind == "i64":
        return [f"%zero{i} = arith.constant 0 : i64", f"{number} = arith.addi {told}, %zero{i} : i64"]
    if kind == "f64":
        return [f"{number} = arith.bitcast {told} : i64 to f64"]
    if kind == "f32":
        bits = f"%bits{i}"
        return [f"{bits} = arith.trunci {told} : i64 to i32", f"{number} = arith.bitcast {bits} : i32 to f32"]
    return [f"{number} = arith.trunci {told} : i64 to {kind}"]


def codes(texts: Mapping[str, str]) -> list[Code]:
    """The functions that may be alike, since at least `FEWEST` of them have the same number of lines."""
    by_length: dict[int, list[str]] = {}
    for name, text in texts.items():
        by_length.setdefault(text.count("\n") - text.count(" = arith.constant "), []).append(name)
    return [Code(name, texts[name]) for names in by_length.values() if len(names) >= FEWEST for name in names]


class Merged(NamedTuple):
    """The function that replaces another one, and the numbers that are passed to it then."""

    function: str
    numbers: tuple[int, ...]


def merge(codes: Collection[Code], operations: dict[str, Any]) -> dict[str, Merged]:
    """Replace functions that differ in numbers alone by one of them. `operations`: what they are, by name: updated."""
    groups: dict[str, list[Code]] = {}
    for code in codes:
        groups.setdefault(code.key, []).append(code)
    found: dict[str, Merged] = {}
    for group in groups.values():
        if len(group) < FEWEST or not group[0].numbers:
            continue
        columns: dict[tuple[Number, ...], int] = {}
        places: list[int | None] = []
        for column in zip(*(code.numbers for code in group)):
            same = all(number == column[0] for number in column)
            places.append(None if same else columns.setdefault(column, len(columns)))
        scratch = [max(sizes) for sizes in zip(*(code.scratch for code in group))]
        first = group[0]
        if any(code.scratch != scratch for code in group) and " call @" in first.key:
            continue  # what is called knows how much there is
        text = first.told(first.name, places, [column[0].kind for column in columns])
        operations[first.name] = _replace(operations[first.name], text, scratch)
        for i, code in enumerate(group):
            found[code.name] = Merged(first.name, tuple(column[i].bits for column in columns))
            if code is not first:
                operations.pop(code.name).erase()
    return found


def _replace(operation: Any, text: str, scratch: Sequence[int]) -> Any:
    """Replace a function by one in a text, whose arrays on the stack have `scratch` elements."""
    ir = mlir.ir
    module = ir.Module.parse(f"module {{\n{text}\n}}", context())
    made = module.body.operations[0]
    stack = [op for op in made.regions[0].blocks[0].operations if op.name == "memref.alloca"]
    for op, size in zip(stack, scratch, strict=True):
        kind = op.result.type
        op.result.set_type(ir.MemRefType.get([size], kind.element_type, loc=op.location))
    made.detach_from_parent()
    ir.InsertionPoint(operation).insert(made)
    operation.erase()
    return made
