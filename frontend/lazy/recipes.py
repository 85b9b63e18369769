"""Making recipes: of the nodes that a function of arrays makes, for one call, and for all sizes.

Calls are of one family when they differ in sizes alone: extents above 1, and integers among the arguments, renamed in
order of appearance. The first calls of a family are run on stand-ins, each for itself. Then the function is run on
symbols (`smelt.ir.symbolic`), and what it made is a recipe for all sizes: which attributes and shapes its nodes have,
and which calls of NumPy compute them, is code that takes microseconds. What the function finds out about sizes is a
guard; where one does not hold, there is another recipe, or none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from smelt.ir.aval import Aval
from smelt.ir.dtypes import DType
from smelt.ir.errors import SmeltError
from smelt.ir.kinds import Contraction
from smelt.ir.op import Op
from smelt.ir.ops.constants import constant_array
from smelt.ir.symbolic import Program, Symbol, has_symbol
from smelt.runtime import Buffer

from .build import MOST_ELEMENTS
from .core import (
    LEAF,
    NUMBER,
    GraphOp,
    Handle,
    Memory,
    Recipe,
    Ref,
    Step,
    connect_recipes,
    handle,
    hooks,
    parameter,
    topological,
)
from .execution import steps, tiers
from .graph import attrs_key

#: Recipes that one function keeps, in traces and outside of them each.
MOST_RECIPES = 1000
#: Families of one function that are kept, and recipes for all sizes of one family.
MOST_FAMILIES, MOST_SIZED = 100, 4
#: Integers among arguments that are no sizes: axes mostly.
MOST_LITERAL = 8
#: So many calls of a family are recorded before there is a recipe for all sizes, which takes as long as several.
FIRST = 4


class _Integer(int):
    """Stands for a Python number among the arguments while a recipe is made."""

    place: int


class _Real(float):
    """Stands for a Python number among the arguments while a recipe is made."""

    place: int


_STAND_INS: dict[type, Any] = {int: _Integer, float: _Real}
stand_ins = frozenset(_STAND_INS.values())


def record(memory: Memory, recipes: dict, key: tuple, args: tuple, kwargs: dict[str, Any]) -> Recipe | None:
    """The recipe for arguments, found or made by a call with stand-ins; kept, unless that raises an error."""
    family, sizes = family_of(memory, recipes, key)
    recipe = None if family is None else family.find(sizes)
    if recipe is None:
        failed = False
        try:
            recipe = _recorded(memory, args, kwargs, {})[0]
        except SmeltError:  # the call with the arguments themselves says what is wrong
            failed = True
        if family is not None and not failed:
            family.met(recipe, sizes, lambda symbols: _recorded(memory, args, kwargs, symbols))
    if len(recipes) >= MOST_RECIPES:
        recipes.clear()
    recipes[key] = recipe
    return recipe


def _recorded(
    memory: Memory, args: tuple, kwargs: dict[str, Any], sizes: dict[int, Symbol]
) -> tuple[Recipe | None, list[Aval | None]]:
    """What a call with stand-ins makes, as a recipe, with symbols in place of `sizes`; and the types of what the nodes
    are applied to, None for numbers."""
    inputs: list[Ref | None] = []
    array = hooks.array

    def stand_in(x: Any) -> Any:
        kind = type(x)
        if kind is array:
            aval = x.aval
            if sizes:
                aval = aval.with_shape([sizes.get(d, d) for d in aval.shape])
            inputs.append(parameter(aval))
            return handle(inputs[-1], 0, False)
        if kind is tuple or kind is list:
            return kind([stand_in(y) for y in x])
        if sizes:
            if kind is int:
                return sizes[x] if x > MOST_LITERAL else x
            if kind is slice:
                return slice(stand_in(x.start), stand_in(x.stop), stand_in(x.step))
        return x

    def operand(x: Any) -> Any:
        if type(x) not in memory.numbers:
            return stand_in(x)
        found = _STAND_INS[type(x)](x)
        found.place = len(inputs)
        inputs.append(None)
        return found

    positional = [operand(x) for x in args]  # in the order of the key
    named = {k: stand_in(v) for k, v in kwargs.items()}
    result = memory.function(*positional, **named)
    # Where all are numbers, their values decide on the dtype.
    recipe = recipe_of(result, inputs) if not inputs or any(inputs) else None
    return recipe, [None if ref is None else ref[0].avals[0] for ref in inputs]


def recipe_of(result: Any, inputs: Sequence[Ref | None]) -> Recipe | None:
    """What `result` was made by from `inputs`; None if that is no recipe."""
    found = (result,) if isinstance(result, Handle) else result
    if not (type(found) is list or isinstance(found, tuple)) or not all(type(x) is hooks.array for x in found):
        return None
    number: dict[Ref, int] = {ref: i for i, ref in enumerate(inputs) if ref is not None}
    made: list[Step] = []
    count = len(inputs)
    own = {ref[0] for ref in number}
    for node in topological([x._ref for x in found], stop=lambda n: n in own):
        op, value = node.op, None
        if op is LEAF and node.values is not None and len(node.values) == 1:
            value = node.values[0]
        elif node.values is not None or (isinstance(op, GraphOp) and op is not NUMBER):
            return None
        elif op.kind == "control" and any(has_symbol(aval.shape) for n, i in node.inputs for aval in (n.avals[i],)):
            return None  # its functions are of one size
        made.append(Step(op, node.attrs, tuple([number[r] for r in node.inputs]), node.avals, value, [None]))
        for i in range(len(node.avals)):
            number[(node, i)] = count
            count += 1
    places = [number[x._ref] for x in found]
    return Recipe(made, places[0] if isinstance(result, Handle) else (type(result), places))


# Families


#: Records a call with symbols for sizes.
Again = Callable[[dict[int, Symbol]], tuple[Recipe | None, list[Aval | None]]]


class Family:
    """Calls of a function that differ in sizes alone.

    Attributes:
        members: how many of them were recorded.
        recipes: those for all sizes; None: there are none.
    """

    __slots__ = ("members", "recipes")

    def __init__(self) -> None:
        self.members = 0
        self.recipes: list[SizedRecipe] | None = []

    def find(self, sizes: Sequence[int]) -> Recipe | None:
        """The recipe for sizes, where that is known."""
        for sized in self.recipes or ():
            found = bound(sized, sizes)
            if found is not None:
                return found
        return None

    def met(self, recipe: Recipe | None, sizes: Sequence[int], again: Again) -> None:
        """A call had to be recorded, for itself; `again` does it with symbols in place of sizes."""
        known = self.recipes
        if known is None:
            return
        self.members += 1
        if self.members <= FIRST and recipe is not None:
            return
        made = None if recipe is None or len(known) >= MOST_SIZED else _sized(recipe, sizes, again)
        if made is None:
            self.recipes = None
        else:
            known.append(made)


def family_of(memory: Memory, recipes: dict, key: tuple) -> tuple[Family | None, list[int]]:
    """The family of a call by its key, and its sizes; None where there are none."""
    sizes: dict[int, int] = {}
    parts: list[Any] = [recipes is memory.inside]
    for kind, value in zip(key[::2], key[1::2]):
        if type(kind) is tuple:  # a shape and its dtype
            parts += [_named(kind, sizes), value]
        elif kind is int and type(value) is int and value > MOST_LITERAL:  # a number has the class of arrays there
            parts += [_SIZE, sizes.setdefault(value, -1 - len(sizes))]
        else:
            parts += [kind, value]
    if not sizes:
        return None, []
    if len(key) % 2:
        parts.append(key[-1])
    families = memory.families
    found = families.get(tuple(parts))
    if found is None:
        if len(families) >= MOST_FAMILIES:
            families.clear()
        found = families[tuple(parts)] = Family()
    return found, list(sizes)


#: In keys of families: what follows is the name of a size.
_SIZE = Symbol


def _named(shape: Sequence[int], sizes: dict[int, int]) -> tuple[int, ...]:
    """0 and 1 are no sizes, for functions treat them differently."""
    return tuple([d if d < 2 else sizes.setdefault(d, -1 - len(sizes)) for d in shape])


class SizedCall(NamedTuple):
    """What computes a node, for all sizes: as `steps.Prepared`.

    Attributes:
        extra_at: the number of the output that is `extra`, or -1.
        flops, seconds: what an element takes: operations, and by NumPy.
        product_at: of a contraction: the number of the output that is its work, which takes `seconds` each; else -1.
        count_at: the number of the output that says of how many elements `seconds` are, where that is not the size of
            the largest array, or which a contraction's work is no less than; else -1.
    """

    function: Callable[..., Any]
    first: Op | None
    extra: tuple[Any, ...]
    extra_at: int
    names: tuple[str, ...] | None
    manner: int
    flops: float
    seconds: float
    product_at: int
    count_at: int


class SizedStep(NamedTuple):
    """A node of a recipe for all sizes: as `core.Step`.

    Attributes:
        attrs_at: the number of the output that its attributes are, or -1.
        avals: numbers of the results' types.
        call: what computes it, as far as that is known.
    """

    op: Op
    attrs: dict[str, Any]
    attrs_at: int
    inputs: tuple[int, ...]
    avals: tuple[int, ...]
    value: Buffer | None
    call: SizedCall | None


class SizedRecipe(NamedTuple):
    """The nodes that a function makes, for all sizes.

    Attributes:
        run: takes the sizes; its outputs, or None where it may be another recipe.
        avals: types of the nodes' operands and results, or the numbers of the outputs that are their shapes, with
            their dtypes.
        inputs: numbers of the types of what the nodes are applied to; -1 for numbers.
    """

    run: Callable[..., Any]
    avals: list[Aval | tuple[int, DType]]
    steps: list[SizedStep]
    results: int | tuple[type, list[int]]
    inputs: list[int]


def bound(sized: SizedRecipe, sizes: Sequence[int]) -> Recipe | None:
    """The recipe for sizes; None where it may be another one."""
    try:
        found = sized.run(*sizes)
    except ArithmeticError:
        return None
    if found is None:
        return None
    avals = [x if type(x) is Aval else Aval(found[x[0]], x[1]) for x in sized.avals]  # type: ignore[index,misc]
    if any(aval.size >= MOST_ELEMENTS for aval in avals):
        return None
    made: list[Step] = []
    types = [avals[i] if i >= 0 else None for i in sized.inputs]
    for op, attrs, attrs_at, inputs, numbers, value, call in sized.steps:
        results = tuple([avals[i] for i in numbers])
        prepared = None
        if call is not None:
            size = max([aval.size for aval in (*[types[i] for i in inputs], *results) if aval is not None])
            work = size * call.flops
            count = size if call.count_at < 0 else found[call.count_at]
            if call.product_at >= 0:
                product = found[call.product_at]
                work, count = max(work, product), product if call.count_at < 0 else max(count, product)
            seconds = tiers.OP + count * call.seconds
            extra = call.extra if call.extra_at < 0 else found[call.extra_at]
            prepared = steps.Prepared(
                call.function, call.first, extra, call.names, call.manner, work, seconds, next(steps.numbers), op, 1
            )
        made.append(Step(op, attrs if attrs_at < 0 else found[attrs_at], inputs, results, value, [prepared]))
        types += results
    return Recipe(made, sized.results)


def _sized(recipe: Recipe, sizes: Sequence[int], again: Again) -> SizedRecipe | None:
    """The recipe for all sizes of a family; None where it cannot be made, or is another one than `recipe` for these."""
    program = Program(sizes)
    try:
        made, given = again(dict(zip(sizes, program.sizes)))
        if made is None:
            return None
        sized = _Writer().written(program, made, given)
        found = bound(sized, sizes)
    except Exception:  # also what the function gets wrong where it is given a symbol
        return None
    return sized if found is not None and same(found, recipe) else None


def same(sized: Recipe, plain: Recipe) -> bool:
    """Whether two recipes make the same nodes. What depends on sizes is a constant in one, a value in the other."""
    if sized.results != plain.results or len(sized.steps) != len(plain.steps):
        return False
    for x, y in zip(sized.steps, plain.steps):
        if x.inputs != y.inputs or x.avals != y.avals:
            return False
        if y.value is not None:
            found = constant_array(**x.attrs) if x.value is None and x.op.kind == "constant" else _elements(x.value)
            if found is None or found.tobytes() != y.value.array.tobytes():
                return False
        elif x.value is not None or x.op is not y.op or attrs_key(x.attrs) != attrs_key(y.attrs):
            return False
    return True


def _elements(value: Buffer | None) -> np.ndarray | None:
    return None if value is None else value.array


class _Writer:
    """Writes a recipe with symbols as one for all sizes."""

    def __init__(self) -> None:
        self.outputs: list[Any] = []
        self.avals: list[Aval | tuple[int, DType]] = []
        self.numbers: dict[Any, int] = {}

    def written(self, program: Program, recipe: Recipe, given: Sequence[Aval | None]) -> SizedRecipe:
        types = list(given)
        made = []
        for op, attrs, inputs, avals, value, _ in recipe.steps:
            operands = [types[i] for i in inputs]
            types += avals
            call = None if value is not None or isinstance(op, GraphOp) else self.call(op, attrs, operands, avals)  # type: ignore[arg-type]
            numbers = tuple([self.aval(x) for x in avals])
            made.append(SizedStep(op, attrs, self.output(attrs), inputs, numbers, value, call))
        taken = [-1 if x is None else self.aval(x) for x in given]
        run = program.compiled(tuple(self.outputs))
        return SizedRecipe(run, self.avals, made, recipe.results, taken)

    def number(self, x: Any) -> int:
        """The number of an output, which may be the same for all sizes."""
        self.outputs.append(x)
        return len(self.outputs) - 1

    def output(self, x: Any) -> int:
        """The number of an output; -1 for what is the same for all sizes."""
        if not has_symbol(x):
            return -1
        return self.number(x)

    def aval(self, x: Aval) -> int:
        key = (tuple([d.name if type(d) is Symbol else d for d in x.shape]), x.dtype)
        found = self.numbers.get(key)
        if found is None:
            at = self.output(x.shape)
            self.avals.append(x if at < 0 else (at, x.dtype))
            found = self.numbers[key] = len(self.avals) - 1
        return found

    def call(self, op: Op, attrs: dict[str, Any], operands: Sequence[Aval], avals: Sequence[Aval]) -> SizedCall | None:
        """What computes a node; None where that is found out later."""
        try:
            found = steps.call_of(op, attrs, operands, avals[0])
            product = op.work(*operands, **attrs) if isinstance(op, Contraction) else None
        except Exception:  # a rule that symbols are nothing for
            return None
        if found is None:
            return None
        over = tiers.gone_over(op, operands, avals)
        seconds = tiers.ELEMENT * op.rule_cost if over else 0.0
        product_at = count_at = -1
        if product is not None:
            product_at = self.number(product)
            seconds = tiers.ELEMENT
            if operands[0].dtype.is_inexact:
                seconds, count_at = tiers.PRODUCT, self.number(tiers.reading(operands))
        elif over and len(over) < len(operands) + len(avals):
            count_at = self.number(over[0].size)
        function, first, extra, names, manner = found
        at = self.output(extra)
        return SizedCall(function, first, extra, at, names, manner, op.rule_cost, seconds, product_at, count_at)


connect_recipes(record, steps.numbers, _SIZE, tiers.OP)
