"""Keys of structures whatever their sizes: what was found out about a graph is found again when only sizes changed."""

from __future__ import annotations

from typing import Any

from smelt.ir.op import registry

from .core import APPLY, native
from .graph import FunctionKey

#: How the key of a step, `graph.step_key`, is made: attributes; the function that is applied, and how it is
#: transformed; functions among the attributes; attributes and a line.
PLAIN, APPLIED, FUNCTIONS, LINED = range(4)


def sizeless_key(structure: Any) -> Any:
    """A `graph.structure_key` with its sizes renamed in order of appearance: integers above 1 in shapes and in what ops
    say are sizes, and numbers among attributes, which may depend on sizes as 1 / n does.

    Equal for graphs that differ in sizes alone, those of functions inside of them included. It may be so for others as
    well: use it for estimates, and for what is easy to verify.
    """
    return _Renaming().function(structure)


class _Renaming:
    """The new names, which are in order."""

    def __init__(self) -> None:
        self.sizes: dict[int, int] = {}
        self.numbers: dict[Any, int] = {}
        #: Those with new names: a function may be applied many times by functions that are.
        self.functions: dict[FunctionKey, FunctionKey] = {}

    def function(self, parts: Any) -> Any:
        if type(parts[0]) is FunctionKey:  # of a function with rules of its own
            return self.nested(parts)
        inputs = tuple([(self.value(shape), dtype) for shape, dtype in parts[0]])
        steps = [self.step(part) for part in parts[1:-1]]
        return (inputs, *steps, parts[-1])

    def step(self, part: Any) -> Any:
        name, key, read = part
        way, names = _ways.get(name) or way_of(name)
        if way == APPLIED:
            return name, (self.nested(key[0]), tuple(map(self.transform, key[1]))), read
        if way == FUNCTIONS:
            return name, self.nested(key), read
        if not names:
            return part
        return name, (self.attributes(key[0], names), key[1]) if way == LINED else self.attributes(key, names), read

    def transform(self, part: Any) -> Any:
        name, key = part
        _, names = _ways.get(name) or way_of(name)
        return name, self.attributes(key, names)

    def attributes(self, key: Any, names: tuple[str, ...]) -> Any:
        return tuple([(k, self.value(v)) if k in names else (k, v) for k, v in key])

    def value(self, x: Any) -> Any:
        if type(x) is int:
            return self.sizes.setdefault(x, -1 - len(self.sizes)) if x > 1 else (x if x >= 0 else (x,))
        if type(x) is not tuple:
            return x
        if len(x) == 2 and x[0] is float:
            return float, self.numbers.setdefault(x, len(self.numbers))
        return tuple([self.value(d) if type(d) is int else d for d in x])

    def nested(self, x: Any) -> Any:
        if type(x) is FunctionKey:
            found = self.functions.get(x)
            if found is None:
                found = self.functions[x] = FunctionKey(self.function(x.parts))
            return found
        return tuple([self.nested(y) for y in x]) if type(x) is tuple else x


#: How keys of steps are made, and which of the attributes may be sizes, by the name of the op.
_ways: dict[str, tuple[int, tuple[str, ...]]] = {}


def way_of(name: str) -> tuple[int, tuple[str, ...]]:
    op = registry.get(name)
    if op is None:  # branches, loops, and what is no op of the dialect
        found: tuple[int, tuple[str, ...]] = (APPLIED if name == APPLY.name else FUNCTIONS, ())
    else:
        names = (*op.sizes, *(name for name, attr in op.attrs.items() if attr.type == "Number"))
        found = LINED if op.tells_line else PLAIN, names
    _ways[name] = found
    return found


if native is not None:
    native.connect_sizeless(FunctionKey, _ways, way_of)
    sizeless_key = native.sizeless_key
