"""Function transformations: grad, vjp, jvp, vmap.

Outside `compile` the function runs once, recording lazy nodes; values inside it are there for the
asking. What was recorded between arguments and results becomes a function, and its derivative one
node, which the passes expand.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from smelt.ir.aval import Aval
from smelt.ir.errors import DTypeError, ShapeError, TreeError, at_user_line
from smelt.ir.op import registry as ops

from . import tree
from .arrays import ArrayLike, StreamOrDevice, array, scalar_array, wrap
from .graph import ALIAS, APPLY, NO_ATTRS, PARAMETER, GraphFunction, Node, Ref, record_function, state
from .operands import apply_unary


@contextmanager
def recording() -> Iterator[None]:
    """Nodes made inside keep their inputs, even when evaluated."""
    state.recording += 1
    try:
        yield
    finally:
        state.recording -= 1
        if not state.recording:
            deferred, state.deferred = state.deferred, []
            for node in deferred:
                if node.values is not None:
                    node.detach()


@contextmanager
def tracing() -> Iterator[None]:
    """Arrays made inside have no values, and Python scalars are constants of the program."""
    traced, state.traced = state.traced, True
    state.compiling += 1
    try:
        yield
    finally:
        state.compiling -= 1
        state.traced = traced


def name_of(function: Callable) -> str:
    return getattr(function, "__name__", type(function).__name__).replace("<lambda>", "lambda_")


def apply_function(
    f: GraphFunction, transforms: Sequence[tuple[str, dict[str, Any]]], inputs: Sequence[Ref], avals: Sequence[Aval]
) -> list[array]:
    """One node that applies a recorded function, transformed."""
    node = Node(APPLY, {"callee": f, "transforms": tuple(transforms)}, tuple(inputs), tuple(avals))
    return [wrap((node, i)) for i in range(len(node.avals))]


def _alias(x: array) -> array:
    return wrap((Node(ALIAS, NO_ATTRS, (x._ref,), (x.aval,)), 0))


def _check_array(x: Any, what: str) -> array:
    if not isinstance(x, array):
        raise TreeError(at_user_line(f"{what} must be an array or a tree of arrays, found {type(x).__name__}"))
    return x


def _check_differentiable(x: array, what: str) -> None:
    if not x.dtype.is_inexact:
        raise DTypeError(
            at_user_line(f"{what} is {x.aval}; derivatives are taken with respect to floating-point arrays")
        )


def value_and_grad(
    fun: Callable,
    argnums: int | Sequence[int] | None = None,
    argnames: str | Sequence[str] = (),
) -> Callable:
    """A function that returns the value of `fun` and its gradient.

    Args:
        fun: returns a scalar array, or a tuple or list whose first entry is one and whose rest is
            passed through (auxiliary values).
        argnums: positional argument(s) to differentiate, 0 by default. A tree of arrays is fine.
        argnames: keyword argument(s) to differentiate.

    Returns:
        A function with the arguments of `fun`. It returns ``(value, gradient)``: the gradient has
        the tree of the differentiated argument; for several `argnums` it is a tuple, and with
        `argnames` a pair ``(positional gradients, dict by name)``.

    Raises:
        ShapeError: the value is not a scalar. DTypeError: it, or an argument, is not floating point.
        TreeError: a differentiated argument is not a tree of arrays.

    >>> import smelt
    >>> smelt.value_and_grad(lambda x: (x * x).sum())(smelt.array([1.0, 2.0]))
    (array(5, dtype=float32), array([2, 4], dtype=float32))
    """
    names = (argnames,) if isinstance(argnames, str) else tuple(argnames)
    if argnums is None:
        positions: tuple[int, ...] = () if names else (0,)
    else:
        positions = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    single = isinstance(argnums, int) or (argnums is None and not names)
    who = name_of(fun)
    if not callable(fun):
        raise TreeError(at_user_line(f"smelt.grad: needs a function, got {type(fun).__name__}"))
    if len(set(positions)) != len(positions) or len(set(names)) != len(names):
        raise ValueError(at_user_line(f"smelt.grad: argnums {positions} and argnames {names} must not repeat"))
    if any(p < 0 for p in positions):
        raise ValueError(at_user_line(f"smelt.grad: argnums {positions} must not be negative"))

    @functools.wraps(fun)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if positions and max(positions) >= len(args):
            raise ValueError(
                at_user_line(f"smelt.grad: argnums {positions}, but {who} got {len(args)} positional arguments")
            )
        missing = [n for n in names if n not in kwargs]
        if missing:
            raise ValueError(at_user_line(f"smelt.grad: {who} was called without the keyword {missing[0]!r}"))
        selected = ([args[p] for p in positions], {n: kwargs[n] for n in names})
        leaves, treedef = tree.flatten(selected)
        for x in leaves:
            what = f"smelt.grad: an argument of {who}"
            _check_differentiable(_check_array(x, what), what)
        with recording():
            markers = [_alias(x) for x in leaves]
            refs = [m._ref for m in markers]  # before `fun` runs: it may change its arguments in place
            new_positional, new_named = tree.unflatten(treedef, markers)
            inner = list(args)
            for p, value in zip(positions, new_positional):
                inner[p] = value
            result = fun(*inner, **{**kwargs, **new_named})
            loss, rebuild = _split_loss(result, who)
            f = record_function(name_of(fun), refs, [loss._ref], keep_outside=True)
            seed = scalar_array(1.0, loss.dtype)
            wrt = tuple(range(len(markers)))
            outs = apply_function(
                f,
                [("vjp", {"wrt": wrt, "seeds": (0,)})],
                [x._ref for x in leaves] + f.captured + [seed._ref],
                [loss.aval] + [x.aval for x in leaves],
            )
        positional, named = tree.unflatten(treedef, outs[1:])
        gradient: Any = positional[0] if single else tuple(positional)
        if names:
            gradient = (gradient if positions else None, named)
        return rebuild(outs[0]), gradient

    return wrapped


def _split_loss(result: Any, who: str) -> tuple[array, Callable[[array], Any]]:
    """The scalar to differentiate, and how to put its value back among auxiliary values."""
    loss = result[0] if isinstance(result, (tuple, list)) and result else result
    if not isinstance(loss, array):
        raise TreeError(
            at_user_line(f"smelt.grad: {who} must return a scalar array first, returned {type(loss).__name__}")
        )
    if loss.size != 1 or loss.ndim:
        raise ShapeError(
            at_user_line(f"smelt.grad: {who} must return a scalar, returned {loss.aval}; reduce it, or use smelt.vjp")
        )
    if not loss.dtype.is_float:
        raise DTypeError(at_user_line(f"smelt.grad: {who} must return a floating-point scalar, returned {loss.aval}"))
    if loss is result:
        return loss, lambda value: value
    rest = list(result[1:])
    return loss, lambda value: type(result)([value, *rest]) if type(result) in (list, tuple) else (value, *rest)


def grad(fun: Callable, argnums: int | Sequence[int] | None = None, argnames: str | Sequence[str] = ()) -> Callable:
    """A function that returns the gradient of `fun`; see `value_and_grad` for the arguments.

    >>> import smelt
    >>> smelt.grad(smelt.grad(lambda x: x ** 3))(smelt.array(2.0))
    array(12, dtype=float32)
    """
    both = value_and_grad(fun, argnums, argnames)

    @functools.wraps(fun)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return both(*args, **kwargs)[1]

    return wrapped


def _record(fun: Callable, primals: Sequence[array], what: str) -> tuple[GraphFunction, Any, list[array]]:
    """Run `fun` on markers of the primals: the recorded function, the tree and arrays of its results."""
    markers = [_alias(x) for x in primals]
    refs = [m._ref for m in markers]  # before `fun` runs: it may change its arguments in place
    result = fun(*markers)
    outs, treedef = tree.flatten(result)
    outs = [_check_array(x, f"{what}: a result of {name_of(fun)}") for x in outs]
    f = record_function(name_of(fun), refs, [x._ref for x in outs], keep_outside=True)
    return f, treedef, outs


def vjp(fun: Callable, primals: Sequence[array], cotangents: Sequence[array]) -> tuple[list[array], list[array]]:
    """Vector–Jacobian product: ``(fun(*primals), cotangents · J)``.

    Args:
        fun: takes arrays, returns an array or a list of arrays.
        primals: where to differentiate. cotangents: one for each result, of its shape.

    Returns:
        The results as a list, and one cotangent for each primal.

    >>> import smelt
    >>> smelt.vjp(lambda x: 2 * x, [smelt.array([1.0, 2.0])], [smelt.array([1.0, 10.0])])
    ([array([2, 4], dtype=float32)], [array([2, 20], dtype=float32)])
    """
    primals = [_check_array(x, "smelt.vjp: a primal") for x in primals]
    cotangents = [_check_array(x, "smelt.vjp: a cotangent") for x in cotangents]
    with recording():
        f, _, outs = _record(fun, primals, "smelt.vjp")
        if len(cotangents) != len(outs):
            raise TreeError(
                at_user_line(f"smelt.vjp: {name_of(fun)} has {len(outs)} results, got {len(cotangents)} cotangents")
            )
        for y, ct in zip(outs, cotangents):
            if y.aval != ct.aval:
                raise ShapeError(at_user_line(f"smelt.vjp: cotangent {ct.aval} for a result {y.aval}"))
        for x in primals:
            _check_differentiable(x, "smelt.vjp: a primal")
        seeds = tuple(i for i, y in enumerate(outs) if y.dtype.is_inexact)
        results = apply_function(
            f,
            [("vjp", {"wrt": tuple(range(len(primals))), "seeds": seeds})],
            [x._ref for x in primals] + f.captured + [cotangents[i]._ref for i in seeds],
            [y.aval for y in outs] + [x.aval for x in primals],
        )
    return results[: len(outs)], results[len(outs) :]


def jvp(fun: Callable, primals: Sequence[array], tangents: Sequence[array]) -> tuple[list[array], list[array]]:
    """Jacobian–vector product: ``(fun(*primals), J · tangents)``.

    Args:
        fun: takes arrays, returns an array or a list of arrays.
        primals: where to differentiate. tangents: one for each primal, of its shape.

    Returns:
        The results and their tangents, as lists.

    >>> import smelt
    >>> smelt.jvp(lambda x: x * x, [smelt.array(3.0)], [smelt.array(1.0)])
    ([array(9, dtype=float32)], [array(6, dtype=float32)])
    """
    primals = [_check_array(x, "smelt.jvp: a primal") for x in primals]
    tangents = [_check_array(x, "smelt.jvp: a tangent") for x in tangents]
    if len(primals) != len(tangents):
        raise TreeError(at_user_line(f"smelt.jvp: {len(primals)} primals but {len(tangents)} tangents"))
    for x, t in zip(primals, tangents):
        _check_differentiable(x, "smelt.jvp: a primal")
        if x.aval != t.aval:
            raise ShapeError(at_user_line(f"smelt.jvp: tangent {t.aval} for a primal {x.aval}"))
    with recording():
        f, _, outs = _record(fun, primals, "smelt.jvp")
        avals = [y.aval for y in outs]
        results = apply_function(
            f,
            [("jvp", {"wrt": tuple(range(len(primals)))})],
            [x._ref for x in primals] + f.captured + [t._ref for t in tangents],
            avals + avals,
        )
    return results[: len(outs)], results[len(outs) :]


def vmap(fun: Callable, in_axes: Any = 0, out_axes: Any = 0) -> Callable:
    """A function that applies `fun` over an axis of its arguments.

    Args:
        in_axes: the axis of each argument to map over; None for arguments that are not mapped. One
            int for all arguments, or a tree with a prefix of the arguments' structure.
        out_axes: where the mapped axis goes in the results, likewise; None if they do not depend on
            the mapped arguments.

    Raises:
        ShapeError: mapped axes of different sizes, or out of range. TreeError: trees that do not match.

    >>> import smelt
    >>> smelt.vmap(lambda x, y: x @ y, in_axes=(0, None))(smelt.ones((3, 2)), smelt.ones(2))
    array([2, 2, 2], dtype=float32)
    """

    @functools.wraps(fun)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        leaves, treedef = tree.flatten((args, kwargs))
        axes = _broadcast_axes(in_axes, args, "in_axes") + _broadcast_axes(0, kwargs, "in_axes")
        leaves = [_check_array(x, "smelt.vmap: an argument") if a is not None else x for x, a in zip(leaves, axes)]
        mapped: list[tuple[int, array, int]] = []
        for i, (x, a) in enumerate(zip(leaves, axes)):
            if a is None:
                continue
            if not -x.ndim <= a < x.ndim:
                raise ShapeError(at_user_line(f"smelt.vmap: in_axes entry {a} out of range for an argument {x.aval}"))
            mapped.append((i, x, a % x.ndim))
        sizes = {x.shape[a] for _, x, a in mapped}
        if len(sizes) != 1:
            what = "no argument is mapped" if not sizes else f"mapped axes have different sizes {sorted(sizes)}"
            raise ShapeError(at_user_line(f"smelt.vmap: {what}; in_axes={in_axes}"))
        size = sizes.pop()
        with tracing():
            inner = list(leaves)
            parameters: list[Ref] = []
            for i, x, a in mapped:
                aval = x.aval.with_shape(x.shape[:a] + x.shape[a + 1 :])
                parameters.append((Node(PARAMETER, NO_ATTRS, (), (aval,)), 0))
                inner[i] = wrap(parameters[-1])
            new_args, new_kwargs = tree.unflatten(treedef, inner)
            result = fun(*new_args, **new_kwargs)
        outs, out_tree = tree.flatten(result)
        outs = [_check_array(x, f"smelt.vmap: a result of {name_of(fun)}") for x in outs]
        places = _broadcast_axes(out_axes, result, "out_axes")
        f = record_function(name_of(fun), parameters, [x._ref for x in outs], keep_outside=True)
        out_positions = []
        for x, a in zip(outs, places):
            if a is not None and not -x.ndim - 1 <= a <= x.ndim:
                raise ShapeError(at_user_line(f"smelt.vmap: out_axes entry {a} out of range for a result {x.aval}"))
            out_positions.append(-1 if a is None else a % (x.ndim + 1))
        attrs = {
            "size": size,
            "in_axes": tuple(a for _, _, a in mapped) + (-1,) * len(f.captured),
            "out_axes": tuple(out_positions),
        }
        avals = [
            x.aval if a < 0 else x.aval.with_shape((*x.shape[:a], size, *x.shape[a:]))
            for x, a in zip(outs, out_positions)
        ]
        results = apply_function(f, [("batch", attrs)], [x._ref for _, x, _ in mapped] + f.captured, avals)
        return tree.unflatten(out_tree, results)

    return wrapped


def _broadcast_axes(axes: Any, value: Any, what: str) -> list[int | None]:
    """One axis a leaf of `value`, from a tree that is a prefix of it. Lists and tuples are alike."""
    if axes is None or isinstance(axes, int):
        return [axes] * len(tree.flatten(value)[0])
    if isinstance(axes, (tuple, list)) and isinstance(value, (tuple, list)):
        if len(axes) != len(value):
            raise TreeError(at_user_line(f"smelt.vmap: {what} has {len(axes)} entries for {len(value)} values"))
        return [a for axis, v in zip(axes, value) for a in _broadcast_axes(axis, v, what)]
    if isinstance(axes, dict) and isinstance(value, dict):
        if axes.keys() != value.keys():
            raise TreeError(at_user_line(f"smelt.vmap: {what} has keys {list(axes)} for a dict of {list(value)}"))
        return [a for key in sorted(value) for a in _broadcast_axes(axes[key], value[key], what)]
    raise TreeError(at_user_line(f"smelt.vmap: {what} {axes!r} does not match a {type(value).__name__}"))


def stop_gradient(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """a itself, whose derivative is zero.

    >>> import smelt
    >>> smelt.grad(lambda x: x * smelt.stop_gradient(x))(smelt.array(3.0))
    array(3, dtype=float32)
    """
    return apply_unary(ops["stop_gradient"], a)
