"""Fuse: ops become kernels. Every group of ops that one kernel computes is outlined into a function.

Before::

    %0 = "smelt.exp"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %1 = "smelt.reduce_sum"(%0) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>

After::

    %1 = func.call @fused_exp_reduce_sum(%x) : (tensor<4x8xf32>) -> tensor<4xf32>

    func.func private @fused_exp_reduce_sum(%x: tensor<4x8xf32>) -> tensor<4xf32>
        attributes {smelt.fusion = "row", smelt.kept = [array<i64: 0>]}

Ops are visited from the results backwards, and join the group that reads them where that pays:

- elements that only one kernel reads are computed there; where several read them, or one at several
  places, they are computed again only if that costs less than writing and reading them;
- movement is free, and goes into every kernel that reads it;
- a reduction joins when all that depends on it in the kernel reads it at the kernel's own row;
- kernels of the same shape that read the same array become one.

What the backend hands to a library stays in @main: contractions, opaque ops, and reshapes of
values that exist in memory (which are the same memory).

With `contractions`, those are kernels too, but for large matrix products of the dtypes in `library`. A
contraction joins the elementwise ops that read it, if they read each of its elements once. Movement in
front of it joins. Arithmetic does only where it makes an operand from fewer bytes than that has (see
`operands`), since a contraction reads an element many times::

    func.func private @fused_dot_general_add_tanh(...) attributes {smelt.fusion = "contract"}

With `attention`, two contractions with a softmax in between are one kernel (see `attention`); with `chains`, those of
its gradient that sum over the same axes are one, too (see `attention_chains`).

Whether what can be one kernel is one, a heuristic says (see `heuristics`), by default one that counts bytes and
additions. ``fuse{heuristic=NAME}`` asks another. Its answers are remarks: `smelt-opt --remarks`.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass
from typing import Any

from smelt.ir import mlir
from smelt.ir.builder import Builder, Function, OpView, Value, function_named, functions, read_function
from smelt.ir.dialect import context
from smelt.ir.dtypes import DType
from smelt.ir.errors import PipelineError
from smelt.ir.text import line_of

from .. import remarks
from ..call_graph import require_expanded
from ..extract import extract, name_of, named_location, reassemble
from ..registry import Pass, register_pass
from ..rewrite import unplaced_functions
from .analysis import is_pointwise, is_row_reduction
from .attention import ENOUGH_ROWS
from .attention_groups import AttentionGroup, AttentionGroups
from .contraction_layout import lay_out_contractions
from .contraction_places import is_contraction, rules_of
from .explain import explain
from .grouping import Grouping, elements, spread_values
from .groups import Group
from .heuristics import DEFAULT, heuristic_called
from .operands import behind_movement, computed_operands
from .options import dtype_called, words

#: Whether fewer ops on tiny values had better be kernels of their own is not asked; that more had which depend on each
#: other, is known.
MANY, MOST = 128, 1024
#: What a kernel costs to compile, and a call of one, in additions of a kernel: see `benchmarks.compile_stages`.
KERNEL_COST, CALL_COST = 25.0, 1.5


@register_pass("fuse")
@dataclass(frozen=True)
class FusePass(Pass):
    """Outline what one kernel computes.

    Attributes:
        max_ops: bounds the size of a kernel's body, in which movement and constants count little.
        contractions: contractions are kernels, with what follows them, and not left to a library.
        library: dtypes whose matrix products are left to a library nevertheless, with ``+`` in between, and each
            with the additions, and perhaps the rows and columns, from which on that pays: ``f64:0+f32:1000000:40``.
        max_buffers: bounds the arrays that a kernel reads and writes; 0: any number.
        apart: ops on values of at most so many elements may be kernels of their own where a program has many of them:
            most of these are equal, and are compiled once. 0: never, for devices on which each launch costs.
        shared_rows: the device's threads share rows, and compute once what depends on a row alone. Else what depends on
            the reduction of few long rows is a kernel after it.
        flops_per_byte: additions that cost what moving a byte does, where kernels wait for memory: an op of more than a
            few additions is computed by each kernel that reads it, if that costs less than its bytes. 0: it never is.
        attention: the most features of a query and of a value for which two contractions with a softmax in between are
            one kernel. 0: they never are.
        attention_work: with less multiplications than this of queries and keys they are several kernels all the same.
        attention_rows: likewise with fewer rows than this, in all, and many keys, which each thread goes through.
        chains: products of what is made of numbers of attention's rows and of other products are kernels, too (see
            `attention_chains`).
        heuristic: what says whether an op that can join a kernel does, by its name (see `heuristics`).
    """

    max_ops: int = 256
    contractions: bool = False
    library: str = ""
    max_buffers: int = 0
    apart: int = 0
    shared_rows: bool = False
    flops_per_byte: float = 0.0
    attention: int = 0
    attention_work: int = 0
    attention_rows: int = ENOUGH_ROWS
    chains: bool = False
    heuristic: str = DEFAULT

    def __post_init__(self) -> None:
        heuristic_called(self.heuristic)  # an error where there is none, before anything runs

    @property
    def foreign(self) -> bool:
        """Whether a heuristic of another package takes part."""
        return self.heuristic != DEFAULT

    def run(self, module: Any, statistics: Counter) -> None:
        """Raises PipelineError where a transformation is left: it could not look into kernels."""
        require_expanded(module, self.name)
        library, taken = self._library(), dict.fromkeys(functions(module), 1)
        for operation in unplaced_functions(module):
            function, kernels = read_function(operation), set()
            if contractions := contractions_of(function):
                if self.attention and self.contractions:
                    function = self._with_attention(module, function, contractions, statistics, taken)
                expressions = expressions_of(function)
                left = self._left(function, library, expressions)
                laid_out = lay_out_contractions(module, function, left)
                if laid_out is not function:
                    statistics["functions laid out"] += 1
                    function, expressions = laid_out, expressions_of(laid_out)
                    left = self._left(laid_out, library, expressions)
                kernels = contractions_of(function) - left
            grouping = self._grouped(function, kernels, expressions(frozenset(kernels)) if kernels else ())
            if grouping.groups:
                remark = explain(function, grouping) if grouping.explains else None
                names = outline(module, function, grouping, taken)
                if remark is not None:
                    remark(names)
                _count(statistics, grouping)

    def _with_attention(
        self, module: Any, function: Function, contractions: set[OpView], statistics: Counter, taken: dict[str, int]
    ) -> Function:
        """The function with calls of kernels of attention, where there are some."""
        found = AttentionGroups(
            function, contractions, self.attention, self.max_ops, self.max_buffers, self.attention_work, self.chains,
            self.attention_rows,
        )
        if not found.groups:
            return function
        _count(statistics, found)
        name, lines = function.name, [line_of(g.primary.location) for g in found.groups]
        names = outline(module, function, found, taken)
        for group, line in zip(found.groups, lines):
            if remarks.wanted():
                ops = ", ".join(op.name for op in group.ops if op.op.flops)
                text = f"@{names[group]} is one kernel of {len(group.ops)} ops: {ops}"
                remarks.add(remarks.Remark("fuse", "passed", group.kind, text, line, name, (names[group],),
                                           {"ops": len(group.ops)}))  # fmt: skip
        return function_named(module, name)

    def _grouped(self, function: Function, kernels: set[OpView], expressions: Collection[Value]) -> Grouping:
        """The groups that are fewer bytes to move; or those that take less time to compile, if values are tiny.
        `expressions`: what `kernels` compute while they read it."""
        tiny = sum(op.op.flops > 0 and elements(op) <= self.apart for op in function.ops)
        found = []
        may_join, explains = heuristic_called(self.heuristic), remarks.wanted()
        spread = spread_values(function) if self.apart and tiny >= MANY else set()
        is_small = tiny <= MOST or largest_part(function, spread) <= MOST
        for apart in dict.fromkeys((0, self.apart)) if is_small else (self.apart,):
            if not apart or tiny >= MANY:
                moved = moved_apart(function, apart, spread) if apart else ()
                found.append(
                    Grouping(
                        function, self.max_ops, kernels, self.max_buffers, apart, spread, may_join, explains,
                        self.shared_rows, self.flops_per_byte, expressions, moved,
                    )
                )
                found[-1].run()
        return min(found, key=compile_cost) if len(found) > 1 else found[0]

    def _library(self) -> dict[DType, tuple[int, int]]:
        """From how many additions, and rows and columns, on matrix products are a library's work."""
        found = {}
        for word in words(self.library):
            name, *least = word.split(":")
            if not 1 <= len(least) <= 2 or not all(n.isdigit() for n in least):
                rule = "library names dtypes, additions, and rows and columns, as f32:1000000:40"
                raise PipelineError(f"fuse: {rule}, not {word!r}")
            work, extent, *_ = [*map(int, least), 0]
            found[dtype_called(name, self.name)] = work, extent
        return found

    def _left(
        self, function: Function, library: dict[DType, tuple[int, int]], expressions_of_kernels: Expressions
    ) -> set[OpView]:
        """The contractions of a function that are no kernels. Those that compute an operand always are."""
        found = contractions_of(function)
        if not self.contractions or not found:
            return found
        expressions = expressions_of_kernels(frozenset(found)) if library else ()

        def is_left(op: OpView) -> bool:
            avals, rules, dtype = [v.aval for v in op.operands], rules_of(op), op.operands[0].dtype
            if dtype not in library or any(behind_movement(v) in expressions for v in op.operands):
                return False
            work, extent = library[dtype]
            form = rules.matmul_form(*avals, **op.attrs)
            return form is not None and min(form.m, form.n) >= extent and rules.work(*avals, **op.attrs) >= work

        return {op for op in found if is_left(op)}


#: The values that contractions compute while they read them, for those of a function that are kernels.
Expressions = Callable[[frozenset[OpView]], Collection[Value]]


def expressions_of(function: Function) -> Expressions:
    """`computed_operands` of a function, looked for once for the same contractions."""
    return functools.cache(lambda kernels: computed_operands(function, kernels.__contains__))


def contractions_of(function: Function) -> set[OpView]:
    """The contractions of a function."""
    return {op for op in function.ops if is_contraction(op)}


def _count(statistics: Counter, grouping: Grouping | AttentionGroups) -> None:
    statistics["kernels"] += len(grouping.groups)
    statistics["ops fused"] += sum(len(g.ops) for g in grouping.groups)


def largest_part(function: Function, spread: Collection[Value] = ()) -> int:
    """How many ops there are at most that have to do with each other: by more than arguments, single numbers, and
    `spread`. A step of an optimizer falls into as many parts as there are parameters."""
    above: dict[Value, Value] = {}

    def root(v: Value) -> Value:
        while (next_ := above.get(v, v)) is not v:
            above[v] = v = above.get(next_, next_)  # halves the way
        return v

    for op in function.ops:
        first = root(op.results[0])
        for v in (*op.operands, *op.results[1:]):
            if v.owner is not None and v.aval.size > 1 and v not in spread:
                above[root(v)] = first
    sizes = Counter(root(op.results[0]) for op in function.ops)
    return max(sizes.values(), default=0)


def compile_cost(grouping: Grouping) -> float:
    """About how long kernels take to compile, in additions: those that are equal once, and each call of one."""
    different = {structure(g): g for g in grouping.groups}
    inside = sum(1 + op.op.flops for group in different.values() for op in group.ops)
    return KERNEL_COST * len(different) + inside + CALL_COST * len(grouping.groups)


def moved_apart(function: Function, most: int, spread: Collection[Value]) -> Collection[OpView]:
    """Movement of values of at most so many elements that had better be kernels of its own. As a part of what reads it
    each pair of the two is another kernel; by itself it is one more call.

    Args:
        spread: values that are single numbers, repeated.
    """
    moved: dict[OpView, Hashable] = {}
    made: dict[Value, Hashable] = {}  #: how values were moved, by what computes them
    pairs: set[Hashable] = set()
    for op in function.ops:
        v = op.operands[0] if op.operands else None
        free = is_pointwise(op) and op.op.flops == 0
        if free and v is not None and v.aval.size > 1 and v not in spread and elements(op) <= most:
            how = op.op.name, *[x.aval for x in op.operands], tuple(op.attrs.values())
            made[op.results[0]] = how, made.get(v)
            if not op.op.is_view:
                moved[op] = how
        elif is_pointwise(op) or is_row_reduction(op) or is_contraction(op):
            read = [made.get(x) for x in op.operands]
            if any(read):
                pairs.add((op.op.name, tuple(op.attrs.values()), *read))
    apart = KERNEL_COST * len(set(moved.values())) + CALL_COST * len(moved)
    return moved if apart < KERNEL_COST * len(pairs) else ()


def outline(
    module: Any, function: Function, grouping: Grouping | AttentionGroups, taken: dict[str, int]
) -> dict[Any, str]:
    """Replace `function` by one that calls a new function for each group; the names of these. `taken`: the names of
    all functions (see `fresh_name`)."""
    made: dict[Hashable, str] = {}
    names: dict[Any, str] = {}

    def call(b: Builder, group: Group | AttentionGroup, env: dict[Value, Value]) -> None:
        key = structure(group)
        name = made.get(key)
        if name is None:
            name = made[key] = make_fusion(module, function, group, taken)
        names[group] = name
        with b.at(group.primary.location):
            results = b.call(name, [env[v] for v in group.inputs], [v.aval for v in group.outputs])
        env.update(zip(group.outputs, results))

    reassemble(module, function, grouping.schedule(), call)
    return names


def structure(group: Group | AttentionGroup) -> Hashable:
    """Equal for groups that compute the same: one function serves all of them."""
    number = {v: i for i, v in enumerate(group.inputs)}
    ops = []
    for op in _from_operands_on(group):
        attrs: Any = ()
        if op.attrs:
            if op.op.attrs_compare:
                attrs = tuple(op.attrs.values())
            else:
                present = op.mlir.attributes
                attrs = tuple([(k, present[k]) for k in op.attrs if k in present])
        ops.append((op.op.name, attrs, tuple([number[v] for v in op.operands])))
        for v in op.results:
            number[v] = len(number)
    outputs = tuple([number[v] for v in group.outputs])
    return tuple([v.aval for v in group.inputs]), tuple(ops), outputs, tuple(group.attributes().items())


def _from_operands_on(group: Group | AttentionGroup) -> list[OpView]:
    """The ops of a group, each after those that it needs, in an order that does not depend on where they stood: what
    several groups compute stands before all of them."""
    inside, done, found = set(group.ordered_ops), set[OpView](), list[OpView]()
    for v in group.outputs:
        stack = [(v.owner, False)]
        while stack:
            op, is_ready = stack.pop()
            if op is None or op not in inside or op in done:
                continue
            if is_ready:
                done.add(op)
                found.append(op)
            else:
                stack.append((op, True))
                stack += [(x.owner, False) for x in reversed(op.operands)]
    return found


def make_fusion(
    module: Any, function: Function, group: Group | AttentionGroup, taken: dict[str, int]
) -> str:
    """The function of one group; its name."""
    location = group.primary.location
    operation = extract(
        module, group.name(), function, group.inputs, group.outputs, group.ordered_ops, location=location,
        argument_locations=[named_location(v, location) for v in group.inputs], taken=taken,
    )  # fmt: skip
    for key, text in group.attributes().items():
        operation.attributes[f"smelt.{key}"] = _attribute(text)
    return name_of(operation)


@functools.lru_cache(maxsize=1024)
def _attribute(text: str) -> Any:
    """An attribute of MLIR: many kernels have the same."""
    return mlir.ir.Attribute.parse(text, context())
