"""Functions of branches and loops, traced: run once on placeholders and cut out of the graph.

What a function uses from outside becomes an operand of the branch or loop (a constant of the loop).
Work in the body of a loop that is the same in every step is done once, before the loop; work in a
branch is done in that branch only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.dtypes import DType
from smelt.ir.errors import ShapeError, TreeError, at_user_line
from smelt.ir.op import Op

from ..lazy import tree
from ..lazy.arrays import Scalar, array, as_array, scalar_array, wrap
from ..lazy.graph import GraphFunction, Node, Ref, cut, parameter, snapshot, state
from ..lazy.operands import is_scalar
from .recording import article, tracing


class Values(tree.ArrayTree):
    """Named trees of arrays, taken apart. Python numbers in them have become arrays.

    Attributes:
        groups: names (for errors) and trees.
        arrays: the arrays, in order.
        scalars: for each of them the Python number that it was, or None: numbers take the dtype that
            they meet.
    """

    def __init__(self, what: str, groups: Sequence[tuple[str, Any]], static: bool = False):
        """`static`: other leaves than arrays, numbers and None are allowed; they stay as they are."""
        self.what, self.groups = what, list(groups)
        super().__init__([value for _, value in groups])
        self.places, self.arrays = [], []
        self.scalars: list[Scalar | None] = []
        for i, x in enumerate(self.leaves):
            if isinstance(x, array):
                found = wrap(x._ref)  # the caller's handle may be updated in place
            elif isinstance(x, (bool, int, float, complex, np.ndarray, np.generic)):
                found = as_array(x)
            elif x is None or static:
                continue
            else:
                path = [p for name, value in groups for p in tree.paths(value, name)][i]
                raise TreeError(
                    at_user_line(
                        f"{what}: {path} must be an array, a number or None, found {article(x)}; let the function "
                        "close over what is no array"
                    )
                )
            self.places.append(i)
            self.arrays.append(found)
            self.scalars.append(x if is_scalar(x) else None)

    @property
    def paths(self) -> list[str]:
        """The expression for each array, such as ``init['w']``."""
        every = [p for name, value in self.groups for p in tree.paths(value, name)]
        return [every[i] for i in self.places]

    def adopt(self, i: int, dtype: DType) -> bool:
        """Give array i this dtype if it was a Python number that takes it; whether it did."""
        scalar = self.scalars[i]
        if scalar is None or dtypes.promote_scalar(dtype, scalar) is not dtype:
            return False
        self.arrays[i] = scalar_array(scalar, dtype)
        self.scalars[i] = None
        return True

    def difference(self, other: Values) -> str | None:
        """Where the structure of other trees of the same names differs; None if it does not."""
        for (name, a), (_, b) in zip(self.groups, other.groups):
            if different := tree.difference(a, b, name):
                return different
        mine, theirs = self.paths, other.paths
        if mine != theirs:
            odd = next(p for p in (*mine, *theirs) if (p in mine) != (p in theirs) or mine.index(p) != theirs.index(p))
            there = ("an array", "None") if odd in mine else ("None", "an array")
            return f"{odd} is {there[0]}, but there is {there[1]}"
        return None


class Traced:
    """A function that ran once on placeholders.

    Attributes:
        parameters: the placeholders, in the order of the arguments' arrays.
        names: what they stand for, such as ``init['w']``.
        result: what the function returned.
    """

    def __init__(self, what: str, name: str, call: Callable[..., Any], *arguments: tuple[Values, Sequence[Aval]]):
        """``call(*groups)`` gets the trees of each of `arguments`, with placeholders of the given types."""
        self.what, self.name = what, name
        self.parameters: list[Ref] = []
        self.names: list[str] = []
        around = state.control
        with tracing():
            self.trace = state.traced
            rebuilt = []
            for values, avals in arguments:
                refs = [parameter(aval) for aval in avals]
                self.parameters += refs
                self.names += values.paths
                rebuilt.append(values.rebuild([wrap(r) for r in refs]))
            state.control = self.trace
            try:
                self.result = call(*rebuilt)
            finally:
                state.control = around

    def values(self, *groups: tuple[str, Any]) -> Values:
        """Results taken apart; what had to become an array is part of the function."""
        with tracing():
            return Values(self.what, groups)


def _is_constant(node: Node) -> bool:
    return not node.inputs or node.op.kind == "movement" or node.op.name == "convert"


def graph_functions(
    functions: Sequence[Traced], outputs: Sequence[Sequence[Ref]], hoist: bool
) -> tuple[list[GraphFunction], list[Ref]]:
    """Functions with the same first parameters, what any of them uses from outside; and these values.

    With `hoist`, work that does not depend on the placeholders stays outside, constants excepted.
    """

    def piece(f: Traced, refs: Sequence[Ref]) -> tuple[list[Node], list[Ref]]:
        return cut(f.parameters, refs, lambda n: n.traced < f.trace or n.values is not None, hoist, _is_constant)

    pieces = [piece(f, refs) for f, refs in zip(functions, outputs)]
    constants = list(dict.fromkeys(r for _, captured in pieces for r in captured))
    made = [
        GraphFunction(f.name, [*constants, *f.parameters], (), snapshot(body), refs)
        for f, (body, _), refs in zip(functions, pieces, outputs)
    ]
    for f, function in zip(functions, made):
        function.names = [*[None] * len(constants), *f.names]
    return made, constants


def control(op: Op, attrs: dict[str, Any], operands: Sequence[Ref], avals: Sequence[Aval]) -> list[array]:
    """A branch or loop as a node; its results."""
    if not avals:
        return []
    node = Node(op, attrs, tuple(operands), tuple(avals))
    return [wrap((node, i)) for i in range(len(avals))]


def match_carry(what: str, who: str, carry: Values, out: Values) -> bool:
    """Check that a step returns the carry as it takes it. True if numbers in `carry` took another dtype, so
    that the step has to be traced again.

    Raises:
        TreeError: another structure. ShapeError: other types; a carry keeps its shape and dtype.
    """
    if different := carry.difference(out):
        raise TreeError(
            at_user_line(f"{what}: {who} must return the carry in the structure that it takes; taken, {different}")
        )
    again = False
    for i, (path, taken, returned) in enumerate(zip(carry.paths, carry.avals, out.avals)):
        if taken == returned:
            continue
        if taken.shape == returned.shape:
            with tracing():
                if out.adopt(i, taken.dtype):
                    continue
            if carry.adopt(i, returned.dtype):
                again = True
                continue
            change = f"start with {path} of dtype {returned.dtype.name}, or convert it in {who}"
        else:
            change = f"start with {path} of shape {returned.shape}"
        raise ShapeError(
            at_user_line(
                f"{what}: {who} takes {path} as {taken} and returns it as {returned}; a carry keeps its shape and "
                f"dtype: {change}"
            )
        )
    return again


def match_branches(what: str, names: Sequence[str], results: Sequence[Values]) -> None:
    """Check that all branches return the same structure and types; numbers take the dtype of arrays.

    Raises:
        TreeError: another structure. ShapeError: other types.
    """
    first = results[0]
    for name, other in zip(names[1:], results[1:]):
        if different := first.difference(other):
            raise TreeError(
                at_user_line(
                    f"{what}: {names[0]} and {name} must return the same structure; "
                    f"of {names[0]}, {different} in {name}"
                )
            )
    for i, path in enumerate(first.paths):
        strong = [r for r in results if r.scalars[i] is None]
        wanted = strong[0].arrays[i].dtype if strong else first.arrays[i].dtype
        for r in () if strong else results:
            wanted = dtypes.promote(wanted, r.arrays[i].dtype)
        for r in results:
            if r.arrays[i].dtype is not wanted:
                with tracing():
                    r.adopt(i, wanted)
        for name, r in zip(names[1:], results[1:]):
            a, b = first.arrays[i].aval, r.arrays[i].aval
            if a != b:
                raise ShapeError(
                    at_user_line(
                        f"{what}: {names[0]} returns {path} as {a}, {name} as {b}; branches return the same shapes "
                        "and dtypes: broadcast or convert (.astype) one of them"
                    )
                )
