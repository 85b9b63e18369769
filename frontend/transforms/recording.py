"""How functions are recorded for transformations: the arguments they vary with, what they did, their results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

import numpy as np

from smelt.ir.aval import Aval
from smelt.ir.errors import AttributeValueError, DTypeError, ShapeError, TraceError, TreeError, at_user_line, shown

from ..functions.complex_numbers import conjugate
from ..lazy import guarded, tree
from ..lazy.arguments import entries, is_integer
from ..lazy.arrays import array, as_array, scalar_array, wrap
from ..lazy.core import shadows
from ..lazy.evaluate import check_not_donated
from ..lazy.exports import kept, put_back
from ..lazy.graph import (
    ALIAS,
    APPLY,
    NO_ATTRS,
    GraphFunction,
    Node,
    Ref,
    parameter_below,
    record_function,
    state,
    traces,
)
from ..lazy.movement import filled
from ..lazy.no_values import OF_A_TRACE


class _Recording:
    """What `recording` returns: it keeps nothing of its own, so one serves all."""

    __slots__ = ()

    def __enter__(self) -> None:
        state.recording += 1

    def __exit__(self, *_: object) -> None:
        state.recording -= 1
        if not state.recording:
            deferred, state.deferred, state.variables = state.deferred, [], []
            for node in deferred:
                if node.values is not None:
                    node.detach()


_recording = _Recording()


def recording() -> AbstractContextManager[None]:
    """Nodes made inside keep their inputs, even when evaluated."""
    return _recording


@contextmanager
def tracing() -> Iterator[None]:
    """Arrays made inside have no values, and Python scalars are constants of the program."""
    traced, state.traced = state.traced, next(traces)
    for shadow in shadows:
        shadow.nests(state.traced)
    calls = state.calls
    if calls is None:
        state.calls = {}
    state.compiling += 1
    try:
        with storing(None):
            yield
    finally:
        state.compiling -= 1
        state.traced, state.calls = traced, calls


class StoredCotangent(NamedTuple):
    """A cotangent that a rule has stored: the gradient by an array of zeros, as if it were added to the result.

    Attributes:
        node: what stands for the cotangent in the rule, and in what it has stored.
        zeros: the array. marker: what stands for it in the function that is differentiated.
    """

    node: Node
    zeros: array
    marker: array

    def found(self, cotangent: array) -> None:
        """The gradient is there: what was stored has a value."""
        node = self.node
        node.op, node.attrs, node.inputs = ALIAS, NO_ATTRS, (cotangent._ref,)


class storing(AbstractContextManager[list[StoredCotangent] | None]):
    """Whether rules that are traced inside may store cotangents: in a list that is given, or not."""

    __slots__ = ("given", "saved")

    def __init__(self, given: list[StoredCotangent] | None):
        self.given = given

    def __enter__(self) -> list[StoredCotangent] | None:
        self.saved, state.stored = state.stored, self.given
        return self.given

    def __exit__(self, *_: object) -> None:
        state.stored = self.saved


class unchanged(AbstractContextManager[None]):
    """Arrays in these trees stand for the same values afterwards, whatever is assigned to them inside."""

    __slots__ = ("lent", "saved", "values")

    def __init__(self, *values: Any):
        self.values = values

    def __enter__(self) -> None:
        found = tree.arrays_of(self.values)
        self.saved = [(x, kept(x)) for x in found]
        self.lent = [(x, getattr(x, "_made", 0)) for x in found] if state.control else []
        for x, _ in self.lent:
            x._made = state.traced

    def __exit__(self, *_: object) -> None:
        for x, was in self.saved:
            if kept(x) is not was:
                put_back(x, was)
        for x, made in self.lent:
            x._made = made


def name_of(function: Callable) -> str:
    return getattr(function, "__name__", type(function).__name__).replace("<lambda>", "lambda_")


def apply_function(
    f: GraphFunction, transforms: Sequence[tuple[str, dict[str, Any]]], inputs: Sequence[Ref], avals: Sequence[Aval]
) -> list[array]:
    """One node that applies a recorded function, transformed."""
    if not avals:
        return []
    node = Node(APPLY, {"callee": f, "transforms": tuple(transforms)}, tuple(inputs), tuple(avals))
    return [wrap((node, i)) for i in range(len(node.avals))]


def check_function(fun: Any, what: str) -> None:
    if not callable(fun):
        raise TreeError(at_user_line(f"{what}: needs a function, got {article(fun)}"))


def check_no_escape(what: str, refs: Sequence[Ref]) -> None:
    """Raise TraceError where an array of a trace that is over is used."""
    if state.compiling:
        return  # it may belong to a trace around this one, which checks at its end
    node = parameter_below(refs)
    if node is not None:
        check_not_donated(node)
        raise TraceError(
            at_user_line(
                f"{what}: uses an array ({node.avals[0]}) that was made while {OF_A_TRACE}"
            )
        )


def article(x: Any) -> str:
    """What x is, for an error message."""
    if isinstance(x, array):
        return f"an array {x.aval}"
    return tree.kind_of(x)


class Variables(tree.ArrayTree):
    """The arrays in arguments that a function is differentiated with respect to.

    Leaves that are no arrays stay as they are, in the arguments and in their gradients.

    Attributes:
        arrays: the caller's, in order. The function may update them in place: `refs` and `avals` are of before.
        paths: the expression for each, such as ``params['w']``.
        wrt: which arrays are floating point. The others are constants; they may be there if `discrete`.
    """

    def __init__(self, what: str, who: str, arguments: Sequence[tuple[str, Any]], discrete: bool = False):
        self.what, self.who, self.arguments = what, who, arguments
        super().__init__([value for _, value in arguments])
        self._refs: list[Ref] = super().refs
        self._avals = [node.avals[i] for node, i in self._refs]
        self._paths: list[str] | None = None
        if len(self.places) != len(self.leaves) or not self.leaves:
            self._check_arrays()
        self.wrt = tuple(k for k, aval in enumerate(self.avals) if aval.dtype.is_inexact)
        if len(self.wrt) < len(self.avals) and not discrete:
            k = next(k for k in range(len(self.avals)) if k not in self.wrt)
            raise DTypeError(
                at_user_line(
                    f"{what}: {self.paths[k]} of {who} is {self.avals[k]}; derivatives are taken with respect to "
                    "floating-point arrays: convert it with .astype(smelt.float32), or leave it out"
                )
            )

    def _check_arrays(self) -> None:
        for name, value in self.arguments:
            leaves = tree.flatten(value)[0]
            for x, path in zip(leaves, tree.paths(value, name)):
                if isinstance(x, np.ndarray):
                    where = f"{path} of {self.who}"
                    raise TreeError(at_user_line(f"{self.what}: {where} is a NumPy array; pass smelt.array(x)"))
            if not any(isinstance(x, array) for x in leaves):
                found = article(leaves[0]) if len(leaves) == 1 else f"{article(value)} without one"
                numbers = leaves and isinstance(leaves[0], (int, float, complex, np.generic))
                hint = f"; pass smelt.array(x{', smelt.float32' * isinstance(leaves[0], int)})" if numbers else ""
                raise TreeError(
                    at_user_line(
                        f"{self.what}: {name} of {self.who} must be an array or a tree with arrays, found {found}{hint}"
                    )
                )

    @property
    def refs(self) -> list[Ref]:
        return self._refs

    @property
    def avals(self) -> list[Aval]:
        return self._avals

    @property
    def paths(self) -> list[str]:
        if self._paths is None:
            every = [p for name, value in self.arguments for p in tree.paths(value, name)]
            self._paths = [every[i] for i in self.places]
        return self._paths

    @property
    def wrt_avals(self) -> list[Aval]:
        return [self.avals[k] for k in self.wrt]

    def completed(self, found: Sequence[array]) -> list[array]:
        """Cotangents of all arrays: those of `wrt` are given, those of constants are zeros."""
        if len(found) == len(self.avals):
            return list(found)
        given = dict(zip(self.wrt, found))
        return [given[k] if k in given else filled(a.shape, 0, a.dtype) for k, a in enumerate(self.avals)]

    def markers(self) -> list[array]:
        """New handles, so that what depends on the arguments can be told, and in-place updates stay inside."""
        nodes = [Node(ALIAS, NO_ATTRS, (ref,), (aval,)) for ref, aval in zip(self.refs, self.avals)]
        if state.recording:
            state.variables += nodes
        return [wrap((node, 0)) for node in nodes]

    def matching(self, values: Sequence[Any], kind: str) -> list[array]:
        """The arrays of trees of the same structure, of the same shapes and dtypes: tangents, say.

        Entries that stand where the arguments have no array are ignored.
        """
        if len(values) != len(self.arguments):
            raise TreeError(
                at_user_line(f"{self.what}: {len(self.arguments)} primals but {len(values)} {kind}s; give each its own")
            )
        leaves, treedef = tree.flatten(list(values))
        if guarded.equal(treedef, self.treedef) and _are_like(found := [leaves[i] for i in self.places], self.avals):
            return found
        found = []
        for (name, value), given in zip(self.arguments, values):
            if different := tree.difference(value, given, name):
                raise TreeError(at_user_line(f"{self.what}: each {kind} has the tree of its primal; {different}"))
            for x, t, path in zip(tree.flatten(value)[0], tree.flatten_like(value, given), tree.paths(value, name)):
                if isinstance(x, array):
                    found.append(seed_like(self.what, kind, t, x.aval, path))
        return found


def _are_like(arrays: Sequence[Any], avals: Sequence[Aval]) -> bool:
    """Whether these are arrays of these types, so that `check_like` has nothing to say, for which it needs paths."""
    return len(arrays) == len(avals) and all(type(x) is array and x.aval == a for x, a in zip(arrays, avals))


def check_like(what: str, kind: str, x: Any, aval: Aval, path: str) -> array:
    """x, a tangent or cotangent of a value of this aval. Python numbers are taken for scalars."""
    if isinstance(x, (int, float, complex)) and not isinstance(x, bool) and not aval.shape:
        x = scalar_array(x, aval.dtype)
    if not isinstance(x, array):
        raise TreeError(at_user_line(f"{what}: the {kind} of {path} must be an array {aval}, found {article(x)}"))
    if x.aval != aval:
        kinds: Any = ShapeError if x.shape != aval.shape else DTypeError
        message = f"{what}: the {kind} of {path} is {x.aval}, but {path} is {aval}; same shape and dtype needed"
        raise kinds(at_user_line(message))
    return x


def seed_like(what: str, kind: str, x: Any, aval: Aval, path: str) -> array:
    """`check_like` of a tangent or cotangent that a caller gave: of integers it is ignored, whatever its dtype."""
    if not aval.dtype.is_inexact and isinstance(x, array) and x.shape == aval.shape and x.dtype != aval.dtype:
        return filled(aval.shape, 0, aval.dtype)
    return check_like(what, kind, x, aval, path)


class Recorded:
    """A function that ran once on markers of its arguments.

    Attributes:
        function: what was recorded. variables: the arguments. outs: handles on the results.
        aux: what the function returned besides, if it was asked for.
    """

    def __init__(self, what: str, fun: Callable, variables: Variables, call: Callable[[list[Any]], Any], has_aux: bool):
        self.what, self.variables, self.name = what, variables, name_of(fun)
        markers = variables.markers()
        refs = [m._ref for m in markers]  # before `fun` runs: it may change its arguments in place
        with storing(None):
            result = call(variables.rebuild(markers))
        self.aux: Any = None
        if has_aux:
            if not isinstance(result, (tuple, list)) or len(result) != 2:
                raise TreeError(at_user_line(f"{what}: with has_aux, {self.name} must return a pair (result, aux)"))
            result, self.aux = result[0], settled(result[1])
        self.result = result
        self.leaves, self.treedef = tree.flatten(result)
        self.places = [i for i, x in enumerate(self.leaves) if x is not None]
        self.outs = [self._array(self.leaves[i], i) for i in self.places]
        self.function = record_function(self.name, refs, [x._ref for x in self.outs], keep_outside=True)
        check_no_escape(what, [*variables.refs, *self.function.captured])

    def _array(self, x: Any, i: int) -> array:
        if isinstance(x, (array, bool, int, float, complex, np.ndarray, np.generic)):
            return wrap(as_array(x)._ref)
        raise TreeError(
            at_user_line(f"{self.what}: a result of {self.name} ({self.paths[i]}) must be an array, found {article(x)}")
        )

    @property
    def paths(self) -> list[str]:
        """The expression for each leaf of the results."""
        return tree.paths(self.result, "result")

    @property
    def avals(self) -> list[Aval]:
        return [x.aval for x in self.outs]

    def rebuild(self, arrays: Sequence[Any]) -> Any:
        """The tree of results with other arrays, or trees, in their place."""
        leaves = list(self.leaves)
        for i, x in zip(self.places, arrays):
            leaves[i] = x
        return tree.unflatten(self.treedef, leaves)

    @property
    def is_flat(self) -> bool:
        """Whether the results are an array, or a list or tuple of arrays: MLX's functions know no others."""
        if len(self.places) != len(self.leaves):
            return False
        listed = self.result if type(self.result) in (list, tuple) else [self.result]
        return len(listed) == len(self.leaves) and all(a is b for a, b in zip(listed, self.leaves))

    def cotangents(self, value: Any) -> list[array]:
        """The arrays of a tree of cotangents; for flat results also a list with one for each."""
        if self.is_flat and not isinstance(self.result, (list, tuple)) and not isinstance(value, (list, tuple)):
            value = [value]
        if self.is_flat and isinstance(value, (list, tuple)):
            given = list(value)
            if len(given) != len(self.outs):
                listed = ", ".join(str(a) for a in self.avals)
                raise TreeError(
                    at_user_line(
                        f"{self.what}: {self.name} has {len(self.outs)} results ({listed}), got {len(given)} "
                        "cotangents; one for each result"
                    )
                )
        else:
            if different := tree.difference(self.result, value, "result"):
                raise TreeError(
                    at_user_line(f"{self.what}: cotangents have the tree of the results of {self.name}; {different}")
                )
            leaves = tree.flatten_like(self.result, value)
            given = [leaves[i] for i in self.places]
        if _are_like(given, self.avals):
            return given
        paths = self.paths
        return [
            seed_like(self.what, "cotangent", ct, x.aval, paths[i]) for ct, x, i in zip(given, self.outs, self.places)
        ]

    def vjp(self, cotangents: Sequence[array]) -> list[array]:
        """The results, then the cotangents of the variables."""
        variables = self.variables
        seeds = tuple(i for i, y in enumerate(self.outs) if y.dtype.is_inexact)
        cotangents = [conjugated(ct) for ct in cotangents]
        found = apply_function(
            self.function,
            [("vjp", {"wrt": variables.wrt, "seeds": seeds})],
            [*variables.refs, *self.function.captured, *(cotangents[i]._ref for i in seeds)],
            [*self.avals, *variables.wrt_avals],
        )
        n = len(self.outs)
        return [*found[:n], *variables.completed([conjugated(x) for x in found[n:]])]

    def jvp(self, tangents: Sequence[array]) -> list[array]:
        """The results, then their tangents."""
        wrt = self.variables.wrt
        return apply_function(
            self.function,
            [("jvp", {"wrt": wrt})],
            [*self.variables.refs, *self.function.captured, *(tangents[k]._ref for k in wrt)],
            [*self.avals, *self.avals],
        )


def conjugated(x: array) -> array:
    """A complex cotangent as users see it from how the IR works with it, and the other way round.

    The IR transposes without conjugation. Users get adjoints, as in MLX: with the real inner product
    Re(conj(a) · b), so that the gradient of a real function of complex z = x + iy is ∂f/∂x + i ∂f/∂y, the
    direction in which f grows.
    """
    return conjugate(x) if x.dtype.is_complex else x


def settled(value: Any) -> Any:
    """A tree with handles of its own on the arrays: later updates of the given ones do not reach it."""
    if type(value) is array:
        return wrap(value._ref)
    leaves, treedef = tree.flatten(value)
    return tree.unflatten(treedef, [wrap(x._ref) if isinstance(x, array) else x for x in leaves])


def positions_of(what: str, argnums: int | Sequence[int]) -> tuple[int, ...]:
    """Positional arguments as a tuple of distinct indices."""
    try:
        positions = (argnums,) if is_integer(argnums) else () if isinstance(argnums, str) else entries(argnums)
        wrong = isinstance(argnums, str) or not all(is_integer(p) for p in positions)
    except TypeError:
        wrong, positions = True, ()
    if wrong:
        raise TreeError(at_user_line(f"{what}: argnums must be an int or a sequence of ints, found {shown(argnums)}"))
    if len(set(positions)) != len(positions):
        raise AttributeValueError(at_user_line(f"{what}: argnums {positions} must not repeat"))
    if any(p < 0 for p in positions):
        raise AttributeValueError(at_user_line(f"{what}: argnums {positions} must not be negative"))
    return tuple(int(p) for p in positions)


def positional(what: str, who: str, positions: Sequence[int], args: Sequence[Any]) -> list[tuple[str, Any]]:
    """The selected positional arguments with what to call them in errors."""
    if positions and max(positions) >= len(args):
        raise AttributeValueError(
            at_user_line(f"{what}: argnums {tuple(positions)}, but {who} got {len(args)} positional arguments")
        )
    return [(f"argument {p}", args[p]) for p in positions]


def record_primals(what: str, fun: Callable, primals: Any, has_aux: bool = False) -> Recorded:
    """Run `fun` on primals (a list or tuple of trees, or one array), inside `recording`."""
    check_function(fun, what)
    if isinstance(primals, array):
        primals = [primals]
    if not isinstance(primals, (list, tuple)):
        raise TreeError(at_user_line(f"{what}: the primals must be a list or tuple, found {article(primals)}"))
    who = name_of(fun)
    variables = Variables(what, who, [(f"primal {i}", x) for i, x in enumerate(primals)], discrete=True)
    return Recorded(what, fun, variables, lambda values: fun(*values), has_aux)


def as_listed(recorded: Recorded, arrays: Sequence[array]) -> Any:
    """Results as MLX returns them, a list of arrays, where they are flat; else as their tree."""
    return list(arrays) if recorded.is_flat else recorded.rebuild(arrays)
