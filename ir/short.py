"""The short form of a module: for reading. MLIR's generic form, which tools exchange, is `text.to_text`.

Literals stand in place, as do operators and views that one op reads, and broadcasts that NumPy's rule implies. A
result's type is written where it is not that of the first operand. Values have the names of the user's parameters.

    @gelu(%x: f32[8]) -> f32[8]
      %0 = erf(%x / 1.41421)
      return %x * (1 + %0) / 2
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import mlir
from . import op as _op
from .aval import Aval, broadcast_shapes
from .builder import Function, functions, read_function
from .control import ControlOp, callees, layout
from .dtypes import DType
from .errors import ShapeError
from .op import Op
from .ops.movement import unit_axes
from .text import IRText, line_of
from .values import APPLY, OpView, Value

HEADER = "// The short form, to be read; tools exchange the generic form.\n"
#: Longer expressions get a line and a name of their own.
WIDTH = 64
#: How tightly operators bind, as in Python.
_BINDING = {
    "or": 1, "and": 2, "not": 3, "<": 4, "<=": 4, ">": 4, ">=": 4, "==": 4, "!=": 4, "|": 5, "^": 6, "&": 7, "<<": 8,
    ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "//": 10, "%": 10, "@": 10, "~": 11, "**": 12,
}  # fmt: skip
_UNARY = 11
_ATOM = 13


@dataclass(frozen=True)
class _Text:
    """An expression. Attributes: text; how tightly its outermost operator binds; the type of the first value in it."""

    text: str
    binding: int = _ATOM
    first: Aval | None = None

    def within(self, binding: int) -> str:
        """The text as an operand of an operator that binds this tightly."""
        return self.text if self.binding >= binding else f"({self.text})"


def to_short_text(module: Any, lines: bool = False) -> IRText:
    """A module of the smelt dialect in the short form.

    Args:
        module: a module at any stage up to fused kernels.
        lines: whether each line ends with the line of the user's program that it comes from, where it changes.

    Raises:
        IRError: the module has ops that are not of the smelt dialect, such as the kernel IR.

    >>> from smelt.ir.text import parse
    >>> to_short_text(parse('''
    ... func.func @f(%x: tensor<8xf32> loc("x")) -> tensor<8xf32> {
    ...   %0 = "smelt.constant"() {dtype = f32, value = 2 : i64} : () -> tensor<f32>
    ...   %1 = "smelt.broadcast"(%0) {shape = array<i64: 8>} : (tensor<f32>) -> tensor<8xf32>
    ...   %2 = "smelt.mul"(%x, %1) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    ...   %3 = "smelt.exp"(%2) : (tensor<8xf32>) -> tensor<8xf32>
    ...   return %3 : tensor<8xf32>
    ... }'''))
    // The short form, to be read; tools exchange the generic form.
    @f(%x: f32[8]) -> f32[8]
      return exp(%x * 2)
    """
    written, last = [], ""
    for line, place in short_lines(module):
        new = lines and place and place != last
        written.append(f"{line}  // {place}" if new else line)
        last = place or last
    return IRText(HEADER + "\n".join(written) + "\n")


def short_lines(module: Any) -> list[tuple[str, str]]:
    """The lines of the short form, each with the line of the user's program that it comes from ("" if there is none).

    Raises:
        IRError: the module has ops that are not of the smelt dialect.
    """
    found: list[tuple[str, str]] = []
    with mlir.lock:
        for function in functions(module).values():
            found += [("", "")] if found else []
            found += _Printer(read_function(function)).lines()
    return found


class _Printer:
    """One function."""

    def __init__(self, function: Function):
        self.function = function
        self.texts: dict[Value, _Text] = {}
        self.uses = self._count_uses()
        self.named = 0
        self.listed: set[Value] = set()  #: values that have a line

    def _count_uses(self) -> Counter[Value]:
        """How often each value is read, through what is always written in place."""
        uses: Counter[Value] = Counter(self.function.returns)
        for op in reversed(self.function.ops):
            times = uses[op.results[0]] if len(op.results) == 1 and _in_place(op) else 1
            for operand in op.operands:
                uses[operand] += times
        return uses

    def lines(self) -> Iterator[tuple[str, str]]:
        """Lines with the user's."""
        taken: set[str] = set()
        for i, argument in enumerate(self.function.arguments):
            name = argument_name(argument) or f"arg{i}"
            name = name if name not in taken else f"arg{i}"
            taken.add(name)
            self.texts[argument] = _Text(f"%{name}", first=argument.aval)
        operation = self.function.mlir
        arguments = ", ".join(f"{self.texts[a].text}: {a.aval}" for a in self.function.arguments)
        results = ", ".join(str(r.aval) for r in self.function.returns) or "()"
        kept = {k: v for k, v in _discardable(operation).items() if v}
        marks = f"  [{', '.join(f'{k}={v}' for k, v in kept.items())}]" if kept else ""
        yield f"@{self.function.name}({arguments}) -> {results}{marks}", ""
        for op in self.function.ops:
            yield from self._op(op)
        returned = ", ".join(self.texts[v].text for v in self.function.returns)
        written_here = [v.owner for v in self.function.returns if v.owner and v not in self.listed]
        yield f"  return {returned}".rstrip(), line_of(written_here[0].location) if written_here else ""

    def _op(self, op: OpView) -> Iterator[tuple[str, str]]:
        text = self._expression(op)
        if len(op.results) == 1:
            (result,) = op.results
            self.texts[result] = text
            if result.aval is None:  # a function value
                return
            once = self.uses[result] <= 1 and (text.binding < _ATOM or op.op.kind == "movement")
            last = self.function.returns == [result] and op is self.function.ops[-1]
            if self.uses[result] and len(text.text) <= WIDTH and (_in_place(op) or once or last):
                return
        names = []
        for result in op.results:
            names.append(f"%{self.named}")
            self.texts[result] = _Text(names[-1], first=result.aval)
            self.named += 1
        self.listed.update(op.results)
        types = [r.aval for r in op.results]
        typed = "" if types == [text.first] else f" : {', '.join(map(str, types))}"
        line = f"  {', '.join(names)} = {text.text}{typed}" if names else f"  {text.text}"
        yield line, line_of(op.location)

    def _expression(self, op: OpView) -> _Text:
        texts = [self.texts[v] for v in op.operands]
        first = next((t.first for t in texts if t.first is not None), None)
        if op.op.kind in ("call", "function") or op.op is APPLY:
            return self._applied(op, texts, first)
        if isinstance(op.op, ControlOp):
            return _Text(_control(op, texts), first=first)
        if op.op.kind == "elementwise":
            texts = self._spread(op, texts)
            first = next((t.first for t in texts if t.first is not None), first)
        avals = [v.aval for v in op.operands]
        symbol = op.op.symbol_for(avals, **op.attrs)
        if symbol and len(texts) == 2:
            binding = _BINDING[symbol]
            # Comparisons chain in Python, and powers bind to the right: their operands stand in brackets.
            left = binding + (binding == 4 or symbol == "**")
            return _Text(f"{texts[0].within(left)} {symbol} {texts[1].within(binding + 1)}", binding, first)
        if symbol:
            gap = " " if symbol.isalpha() else ""
            binding = _BINDING["not"] if gap else _UNARY
            return _Text(f"{symbol}{gap}{texts[0].within(binding)}", binding, first)
        if op.op.kind == "constant":
            value = _plain(op.attrs["value"])
            return _Text(value, _UNARY if value.startswith("-") else _ATOM)
        short = op.op.short([t.within(_ATOM) for t in texts], avals, **op.attrs)
        if short is None:
            items = [t.text for t in texts]
            short = f"{op.op.name}({', '.join([*items, *_attributes(op.op, op.attrs), *_extra(op)])})"
        return _Text(short, first=first)

    def _applied(self, op: OpView, texts: Sequence[_Text], first: Aval | None) -> _Text:
        if op.op.kind == "function":
            return _Text(f"@{op.attrs['callee']}")
        if op.op is APPLY:
            function, *texts = texts
            name = function.text
        else:
            name = f"@{op.attrs['callee']}"
        items = [*(t.text for t in texts), *_extra(op)]
        return _Text(f"{name}({', '.join(items)})", first=first)

    def _spread(self, op: OpView, texts: Sequence[_Text]) -> list[_Text]:
        """Operands of an elementwise op without the broadcasts that NumPy's rule implies."""
        found, shapes = list(texts), [v.shape for v in op.operands]
        (whole,) = {r.shape for r in op.results}
        for i, value in enumerate(op.operands):
            maker = value.owner
            if maker is None or maker.op is not _op.registry["broadcast"]:
                continue
            narrow = [*shapes[:i], maker.operands[0].shape, *shapes[i + 1 :]]
            try:
                implied = broadcast_shapes(*narrow) == whole
            except ShapeError:
                implied = False
            if implied:
                found[i], shapes = self.texts[maker.operands[0]], narrow
        return found


def _in_place(op: OpView) -> bool:
    """Whether the op is written where it is read, however often: literals, broadcasts, axes of one element."""
    kind = op.op
    if kind in (_op.registry["constant"], _op.registry["broadcast"]) or kind.kind == "function":
        return True
    if kind is _op.registry["literal"]:
        return op.results[0].aval.size <= 8
    return kind is _op.registry["reshape"] and unit_axes(op.operands[0].shape, op.results[0].shape) is not None


def _control(op: OpView, texts: Sequence[_Text]) -> str:
    """A branch or loop: its functions, then its operands by what they are."""
    parts = layout(op.op, op.attrs, len(texts))
    items = [f"@{name}" for name in callees(op)]
    items += [texts[i].text for i in parts.choice]
    groups = {"constants": parts.constants, "carry": parts.carries, "xs": parts.xs}
    if op.op.name == "cond":
        groups = {"operands": parts.constants}
    for name, places in groups.items():
        if places:
            items.append(f"{name}=[{', '.join(texts[i].text for i in places)}]")
    of_functions = {*getattr(op.op, "callees", ()), "constants", "carries"}
    items += [f"{k}={_plain(v)}" for k, v in op.attrs.items() if k not in of_functions and v is not False]
    return f"{op.op.name}({', '.join(items)})"


def _attributes(op: Op, attrs: dict[str, Any]) -> list[str]:
    """Attributes as ``name=value``, without those that have their defaults and empty ones."""
    listed = []
    for name, value in attrs.items():
        known = op.attrs.get(name)
        if isinstance(value, tuple) and not value:
            continue
        if known is not None and not known.required and not isinstance(value, np.ndarray) and value == known.default:
            continue
        listed.append(f"{name}={_plain(value)}")
    return listed


def _extra(op: OpView) -> list[str]:
    """What passes have written on an op beside its fields."""
    return [f"{k}={v}" for k, v in _discardable(op.mlir).items()]


def _discardable(operation: Any) -> dict[str, str]:
    """Attributes of the ``smelt.`` kind on upstream's ops and functions, as text."""
    if operation is None:
        return {}
    attributes = getattr(operation, "operation", operation).attributes
    names = [item if isinstance(item, str) else item.name for item in attributes]
    return {n.removeprefix("smelt."): _attribute(attributes[n]) for n in names if n.startswith("smelt.")}


def _attribute(attr: Any) -> str:
    """An attribute as Python writes it."""
    ir = mlir.ir
    if isinstance(attr, (ir.DenseI64ArrayAttr, ir.ArrayAttr)):
        return f"[{', '.join(_attribute(x) if isinstance(attr, ir.ArrayAttr) else str(x) for x in attr)}]"
    if isinstance(attr, (ir.BoolAttr, ir.IntegerAttr, ir.FloatAttr, ir.StringAttr)):
        return number(attr.value)
    return "true" if isinstance(attr, ir.UnitAttr) else str(attr)


def argument_name(argument: Value) -> str:
    """The name of the user's parameter, where it is known."""
    location = argument.mlir.location
    name = getattr(location, "name_str", "")
    return "".join(c if c.isalnum() or c in "_.$-" else "_" for c in name)


def number(value: Any) -> str:
    """A number to six significant digits.

    >>> number(2**0.5), number(3), number(True), number(1.0)
    ('1.41421', '3', 'true', '1.0')
    """
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value)).lower()
    if isinstance(value, (float, np.floating)):
        text = f"{float(value):.6g}"
        return f"{text}.0" if text.lstrip("-").isdigit() else text
    if isinstance(value, (complex, np.complexfloating)):
        return f"({value:.6g})"
    return str(value)


def elements(value: np.ndarray) -> str:
    """An array's elements, or where they are many how many.

    >>> elements(np.array([1, 2])), elements(np.zeros((3, 4)))
    ('[1, 2]', '<12 elements>')
    """
    if value.size > 8:
        return f"<{value.size} elements>"
    if value.ndim:
        return f"[{', '.join(elements(row) for row in value)}]"
    return number(value[()])


def _plain(value: Any) -> str:
    """A decoded attribute."""
    if isinstance(value, DType):
        return value.mlir
    if isinstance(value, np.ndarray):
        return elements(value)
    if isinstance(value, tuple):
        return f"[{', '.join(_plain(v) for v in value)}]"
    return number(value) if not isinstance(value, str) else value
