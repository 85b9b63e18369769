"""Derivatives: grad, value_and_grad, vjp, jvp, stop_gradient.

Outside `compile` the function runs once, recording lazy nodes; values inside it are there for the
asking. What was recorded between arguments and results becomes a function, and its derivative one
node, which the passes expand.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Concatenate, Literal, overload

import numpy as np

from smelt.ir.errors import AttributeValueError, DTypeError, ShapeError, TreeError, at_user_line, shown
from smelt.ir.flags import flags_checked
from smelt.ir.keywords import explain_keywords
from smelt.ir.op import registry as ops

from ..lazy import tree
from ..lazy.arrays import StreamOrDevice, array, number_ref
from ..lazy.graph import record_function
from ..lazy.operands import apply_unary
from ..lazy.signatures import Aux, Function, P, R, S, Scalar, T
from ..lazy.streams import check_stream
from ..lazy.tree_updates import Mirrored
from .linearize import pullback
from .recording import (
    StoredCotangent,
    Variables,
    apply_function,
    article,
    as_listed,
    check_function,
    check_no_escape,
    conjugated,
    positional,
    positions_of,
    record_primals,
    recording,
    settled,
    storing,
    unchanged,
)
from .recording import name_of as name_of
from .recording import tracing as tracing

# argnums whose gradients have types
_First = Literal[0] | None
_Both = tuple[Literal[0], Literal[1]]

# The types of gradients are those of the arguments. Overloads for arrays come first: they tell a lambda its types.


@overload
def value_and_grad(  # type: ignore[overload-overlap]
    fun: Callable[Concatenate[array, P], R], argnums: _First = None
) -> Function[Concatenate[array, P], tuple[R, array]]: ...
@overload
def value_and_grad(fun: Callable[[array], R], argnums: _First = None) -> Function[[array], tuple[R, array]]: ...
@overload
def value_and_grad(
    fun: Callable[Concatenate[T, P], R], argnums: _First = None
) -> Function[Concatenate[T, P], tuple[R, T]]: ...
@overload
def value_and_grad(
    fun: Callable[Concatenate[array, array, P], R], argnums: Literal[1]
) -> Function[Concatenate[array, array, P], tuple[R, array]]: ...
@overload
def value_and_grad(
    fun: Callable[Concatenate[S, T, P], R], argnums: Literal[1]
) -> Function[Concatenate[S, T, P], tuple[R, T]]: ...
@overload
def value_and_grad(
    fun: Callable[Concatenate[array, array, P], R], argnums: _Both
) -> Function[Concatenate[array, array, P], tuple[R, tuple[array, array]]]: ...
@overload
def value_and_grad(
    fun: Callable[Concatenate[S, T, P], R], argnums: _Both
) -> Function[Concatenate[S, T, P], tuple[R, tuple[S, T]]]: ...
@overload
def value_and_grad(
    fun: Callable[P, R], argnums: int | Sequence[int] | None = None, argnames: str | Sequence[str] = ()
) -> Function[P, tuple[R, Any]]: ...


def value_and_grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] | None = None, argnames: str | Sequence[str] = ()
) -> Callable[..., Any]:
    """A function that returns the value of `fun` and its gradient.

    Args:
        fun: returns a scalar array, or a tuple or list whose first entry is one and whose rest is
            passed through (auxiliary values).
        argnums: positional argument(s) to differentiate, 0 by default. A tree with arrays is fine;
            leaves that are no arrays (None, settings) appear in the gradient as they are.
        argnames: keyword argument(s) to differentiate.

    Returns:
        A function with the arguments of `fun`. It returns ``(value, gradient)``: the gradient has
        the tree of the differentiated argument; for several `argnums` it is a tuple in the order of the
        arguments, and with `argnames` a pair ``(positional gradients, dict by name)``. The gradient of
        complex z = x + iy is ∂f/∂x + i ∂f/∂y. Arrays that `fun` updates in place are its own: those of
        the caller stay as they were. What it assigns to the entries of lists and dicts it got is found
        there afterwards.

    Raises:
        ShapeError: the value is not a scalar. DTypeError: it, or an argument, is not floating point.
        TreeError: no array in a differentiated argument. TraceError: an array of a finished trace is used.

    >>> import smelt
    >>> smelt.value_and_grad(lambda x: (x * x).sum())(smelt.array([1.0, 2.0]))
    (array(5, dtype=float32), array([2, 4], dtype=float32))
    """
    return _value_and_grad(fun, argnums, argnames, "smelt.value_and_grad")


@functools.lru_cache(maxsize=256)
def _of_scalar(count: int) -> dict[str, Any]:
    """Attributes of the derivative of one result in all of so many arguments: the same object, whose key is known."""
    return {"wrt": tuple(range(count)), "seeds": (0,)}


def _differentiated(
    argnums: int | Sequence[int] | None, argnames: str | Sequence[str], what: str
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The positions, in order, and the names of the arguments that are differentiated."""
    if isinstance(argnames, str):
        names: tuple[str, ...] = (argnames,)
    elif isinstance(argnames, (list, tuple)) and all(isinstance(n, str) for n in argnames):
        names = tuple(argnames)
    else:
        raise TreeError(at_user_line(f"{what}: argnames must be a name or a list of names, is {shown(argnames)}"))
    if argnums is None:
        positions: tuple[int, ...] = () if names else (0,)
    else:
        positions = tuple(sorted(positions_of(what, argnums)))  # as MLX does
    if len(set(names)) != len(names):
        raise AttributeValueError(at_user_line(f"{what}: argnames {names} must not repeat"))
    if not positions and not names:
        raise AttributeValueError(at_user_line(f"{what}: argnums and argnames are empty: nothing to differentiate"))
    return positions, names


def _value_and_grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] | None, argnames: str | Sequence[str], what: str
) -> Callable[..., Any]:
    check_function(fun, what)
    positions, names = _differentiated(argnums, argnames, what)
    single = len(positions) == 1  # MLX's rule: also for a sequence of one
    who = name_of(fun)

    @functools.wraps(fun)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        selected = _selected(what, who, positions, names, args, kwargs)

        def call(values: Sequence[Any]) -> Any:
            return _called(fun, positions, names, args, kwargs, values)

        value, gradients = differentiated(what, who, selected, call, args, kwargs)
        gradient: Any = gradients[0] if single else tuple(gradients[: len(positions)])
        if names:
            gradient = (gradient if positions else None, dict(zip(names, gradients[len(positions) :])))
        return value, gradient

    return wrapped


def differentiated(
    what: str, who: str, selected: Sequence[tuple[str, Any]], call: Callable[[Sequence[Any]], Any], *given: Any
) -> tuple[Any, Sequence[Any]]:
    """What a function returns, and its gradient by each of some trees.

    Args:
        what: the function of smelt that was asked for, `who`: the function, for messages.
        selected: the trees, with what messages call them. call: the function of what stands in their places.
        given: trees with arrays that the function may update in place, but for itself.
    """
    variables = Variables(what, who, selected)
    stored: list[StoredCotangent] = []
    with recording(), unchanged(*given):
        markers = variables.markers()
        refs = [m._ref for m in markers]  # before the function runs: it may change its arguments in place
        values = variables.rebuild(markers)
        mirrored = None
        if len(values) != len(markers) or not all(map(operator.is_, values, markers)):
            mirrored = Mirrored([x for _, x in selected], values)
        with storing(stored):
            result = settled(call(values))
        if mirrored is not None:
            mirrored.write_back()
        loss = _loss_of(result, who, what)
        # What depends on the arguments comes from the same node, so that it is computed once.
        found = tree.ArrayTree(result)
        found_refs = found.refs
        refs += [s.marker._ref for s in stored]
        f = record_function(who, refs, found_refs, keep_outside=True)
        inputs = [*variables.refs, *(s.zeros._ref for s in stored), *f.captured]
        check_no_escape(what, inputs)
        outside = set(f.captured)
        inputs.append(number_ref(1.0, loss.dtype))
        avals = f.results + variables.avals + [s.zeros.aval for s in stored]
        outs = apply_function(f, [("vjp", _of_scalar(len(refs)))], inputs, avals)
        for s, cotangent in zip(stored, outs[len(avals) - len(stored) :]):
            s.found(cotangent)
    results = [
        out if x is loss or (ref not in outside and ref[0].values is None) else x
        for x, ref, out in zip(found.arrays, found_refs, outs)
    ]
    own = outs[len(results) : len(outs) - len(stored)]
    if any(a.dtype.is_complex for a in variables.avals):
        own = [conjugated(x) for x in own]
    gradients = variables.rebuild(own)
    return found.rebuild(results), gradients


def _selected(
    what: str, who: str, positions: Sequence[int], names: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> list[tuple[str, Any]]:
    """The arguments to differentiate by, with what messages call them."""
    if positions and max(positions) >= len(args):
        positional(what, who, positions, args)
    found = [(f"argument {p}", args[p]) for p in positions]
    for n in names:
        if n not in kwargs:
            raise AttributeValueError(at_user_line(f"{what}: {who} was called without the keyword {shown(n)}"))
        found.append((n, kwargs[n]))
    return found


def _called(
    fun: Callable[..., Any], positions: Sequence[int], names: Sequence[str], args: Sequence[Any],
    kwargs: Mapping[str, Any], values: Sequence[Any],
) -> Any:  # fmt: skip
    """What a function returns with `values` in place of the arguments to differentiate by."""
    inner = list(args)
    for p, value in zip(positions, values):
        inner[p] = value
    return fun(*inner, **{**kwargs, **dict(zip(names, values[len(positions) :]))}) if kwargs else fun(*inner)


_TAKEN_OUT = ", of which no derivative is known: leave out .item() and float()"
_OF_NUMPY = ", of which no derivative is known: use smelt's functions in the place of NumPy's"


def _loss_of(result: Any, who: str, what: str) -> array:
    """The scalar to differentiate, which stands first among auxiliary values."""
    loss = result[0] if isinstance(result, (tuple, list)) and result else result
    if not isinstance(loss, array):
        why = _TAKEN_OUT if isinstance(loss, (int, float)) else ""
        why = _OF_NUMPY if isinstance(loss, (np.generic, np.ndarray)) else why
        rule = "must return a scalar array, or a tuple that starts with one"
        raise TreeError(at_user_line(f"{what}: {who} {rule}; returned {article(loss)}{why}"))
    aval = loss.aval
    if aval.shape:
        raise ShapeError(
            at_user_line(
                f"{what}: {who} must return a scalar, returned {aval}; reduce it, e.g. by .sum() or .mean(), or "
                "use smelt.vjp or smelt.jacrev"
            )
        )
    if not aval.dtype.is_float:
        raise DTypeError(at_user_line(f"{what}: {who} must return a floating-point scalar, returned {aval}"))
    return loss


@overload
def grad(  # type: ignore[overload-overlap]
    fun: Callable[Concatenate[array, P], Any], argnums: _First = None, *, has_aux: Literal[False] = False
) -> Function[Concatenate[array, P], array]: ...
@overload
def grad(
    fun: Callable[[array], Any], argnums: _First = None, *, has_aux: Literal[False] = False
) -> Function[[array], array]: ...
@overload
def grad(
    fun: Callable[Concatenate[T, P], Any], argnums: _First = None, *, has_aux: Literal[False] = False
) -> Function[Concatenate[T, P], T]: ...
@overload
def grad(  # type: ignore[overload-overlap]
    fun: Callable[Concatenate[array, P], tuple[Any, Aux]], argnums: _First = None, *, has_aux: Literal[True]
) -> Function[Concatenate[array, P], tuple[array, Aux]]: ...
@overload
def grad(
    fun: Callable[[array], tuple[Any, Aux]], argnums: _First = None, *, has_aux: Literal[True]
) -> Function[[array], tuple[array, Aux]]: ...
@overload
def grad(
    fun: Callable[Concatenate[T, P], tuple[Any, Aux]], argnums: _First = None, *, has_aux: Literal[True]
) -> Function[Concatenate[T, P], tuple[T, Aux]]: ...
@overload
def grad(
    fun: Callable[Concatenate[array, array, P], Any], argnums: Literal[1], *, has_aux: Literal[False] = False
) -> Function[Concatenate[array, array, P], array]: ...
@overload
def grad(
    fun: Callable[Concatenate[S, T, P], Any], argnums: Literal[1], *, has_aux: Literal[False] = False
) -> Function[Concatenate[S, T, P], T]: ...
@overload
def grad(
    fun: Callable[Concatenate[array, array, P], Any], argnums: _Both, *, has_aux: Literal[False] = False
) -> Function[Concatenate[array, array, P], tuple[array, array]]: ...
@overload
def grad(
    fun: Callable[Concatenate[S, T, P], Any], argnums: _Both, *, has_aux: Literal[False] = False
) -> Function[Concatenate[S, T, P], tuple[S, T]]: ...
@overload
def grad(
    fun: Callable[P, Any], argnums: int | Sequence[int] | None = None, argnames: str | Sequence[str] = (),
    *, has_aux: bool = False,
) -> Function[P, Any]: ...  # fmt: skip
@flags_checked
def grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] | None = None,
    argnames: str | Sequence[str] = (),
    *,
    has_aux: bool = False,
) -> Callable[..., Any]:
    """A function that returns the gradient of `fun`; see `value_and_grad` for the arguments.

    With `has_aux` it returns ``(gradient, aux)``, where `fun` returns ``(value, aux)``.

    Raises:
        TreeError: with `has_aux`, `fun` returns no pair. And what `value_and_grad` raises.

    >>> import smelt
    >>> smelt.grad(smelt.grad(lambda x: x ** 3))(smelt.array(2.0))
    array(12, dtype=float32)
    """
    both = _value_and_grad(fun, argnums, argnames, "smelt.grad")

    @functools.wraps(fun)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        if not has_aux:
            return gradient
        if not isinstance(value, (tuple, list)) or len(value) != 2:
            raise TreeError(at_user_line(f"smelt.grad: with has_aux, {name_of(fun)} must return a pair (value, aux)"))
        return gradient, value[1]

    return wrapped


_Arrays = array | list[array] | tuple[array, ...]


@overload
def vjp(
    fun: Callable[..., _Arrays], primals: Sequence[array], cotangents: None = None, *, has_aux: Literal[False] = False
) -> tuple[list[array], Callable[[Sequence[array]], list[array]]]: ...
@overload
def vjp(
    fun: Callable[..., _Arrays], primals: Sequence[array], cotangents: Sequence[array], *,
    has_aux: Literal[False] = False,
) -> tuple[list[array], list[array]]: ...  # fmt: skip
@overload
def vjp(
    fun: Callable[..., Any], primals: Sequence[Any], cotangents: None = None, *, has_aux: Literal[False] = False
) -> tuple[Any, Callable[[Any], list[Any]]]: ...
@overload
def vjp(
    fun: Callable[..., Any], primals: Sequence[Any], cotangents: Any, *, has_aux: Literal[False] = False
) -> tuple[Any, list[Any]]: ...
@overload
def vjp(
    fun: Callable[..., tuple[Any, Aux]], primals: Sequence[Any], cotangents: None = None, *, has_aux: Literal[True]
) -> tuple[Any, Callable[[Any], list[Any]], Aux]: ...
@overload
def vjp(
    fun: Callable[..., tuple[Any, Aux]], primals: Sequence[Any], cotangents: Any, *, has_aux: Literal[True]
) -> tuple[Any, list[Any], Aux]: ...
@flags_checked
def vjp(
    fun: Callable[..., Any], primals: Sequence[Any], cotangents: Any = None, *, has_aux: bool = False
) -> tuple[Any, ...]:
    """Vector–Jacobian product: ``(fun(*primals), cotangents · J)``.

    Args:
        fun: takes arrays (or trees), returns an array, a list of arrays, or a tree.
        primals: a list or tuple with one entry an argument: where to differentiate. Integers and bools are constants,
            whose cotangents are zeros.
        cotangents: a list with one for each result, of its shape and dtype; for other trees of
            results a tree like it. Cotangents of integer results are ignored. If left out, a
            function of the cotangents is returned in place of the product.
        has_aux: whether `fun` returns ``(results, aux)``; `aux` is then a third result.

    Returns:
        The results, as a list (a tree if `fun` returns another tree), and a list with one
        cotangent for each primal, of its tree.

    Raises:
        TreeError: numbers or trees that do not match. ShapeError, DTypeError: a cotangent that
        does not fit its result.

    Complex cotangents are adjoint to tangents: Re Σ conj(cotangent) · tangent is the same for results and primals.

    >>> import smelt
    >>> smelt.vjp(lambda x: 2 * x, [smelt.array([1.0, 2.0])], [smelt.array([1.0, 10.0])])
    ([array([2, 4], dtype=float32)], [array([2, 20], dtype=float32)])
    """
    if cotangents is None:
        return pullback(fun, primals, has_aux)
    cotangents = settled(cotangents)  # `fun` may change them in place
    with recording(), unchanged(primals):
        recorded = record_primals("smelt.vjp", fun, primals, has_aux)
        outs = recorded.vjp(recorded.cotangents(cotangents))
    n = len(recorded.outs)
    found = (as_listed(recorded, outs[:n]), recorded.variables.rebuild(outs[n:]))
    return (*found, recorded.aux) if has_aux else found


@overload
def jvp(
    fun: Callable[..., _Arrays], primals: Sequence[array], tangents: Sequence[array], *,
    has_aux: Literal[False] = False,
) -> tuple[list[array], list[array]]: ...  # fmt: skip
@overload
def jvp(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], *, has_aux: Literal[False] = False
) -> tuple[Any, Any]: ...
@overload
def jvp(
    fun: Callable[..., tuple[Any, Aux]], primals: Sequence[Any], tangents: Sequence[Any], *, has_aux: Literal[True]
) -> tuple[Any, Any, Aux]: ...
@flags_checked
def jvp(fun: Callable[..., Any], primals: Sequence[Any], tangents: Any, *, has_aux: bool = False) -> tuple[Any, ...]:
    """Jacobian–vector product: ``(fun(*primals), J · tangents)``.

    Args:
        fun: takes arrays (or trees), returns an array, a list of arrays, or a tree.
        primals: a list or tuple with one entry an argument: where to differentiate.
        tangents: one for each primal, of its tree, shapes and dtypes. Those of integers and bools are ignored.
        has_aux: whether `fun` returns ``(results, aux)``; `aux` is then a third result.

    Returns:
        The results and their tangents, as lists (trees if `fun` returns another tree).

    Raises:
        TreeError: numbers or trees that do not match. ShapeError, DTypeError: a tangent that does
        not fit its primal.

    >>> import smelt
    >>> smelt.jvp(lambda x: x * x, [smelt.array(3.0)], [smelt.array(1.0)])
    ([array(9, dtype=float32)], [array(6, dtype=float32)])
    """
    if isinstance(tangents, array):
        tangents = [tangents]
    if not isinstance(tangents, (list, tuple)):
        raise TreeError(at_user_line(f"smelt.jvp: the tangents must be a list or tuple, found {article(tangents)}"))
    tangents = settled(tangents)  # `fun` may change them in place
    with recording(), unchanged(primals):
        recorded = record_primals("smelt.jvp", fun, primals, has_aux)
        outs = recorded.jvp(recorded.variables.matching(tangents, "tangent"))
    n = len(recorded.outs)
    found = (as_listed(recorded, outs[:n]), as_listed(recorded, outs[n:]))
    return (*found, recorded.aux) if has_aux else found


@overload
def stop_gradient(a: Scalar, /, *, stream: StreamOrDevice = None) -> array: ...
@overload
def stop_gradient(a: T, /, *, stream: StreamOrDevice = None) -> T: ...
def stop_gradient(a: Any, /, *, stream: StreamOrDevice = None) -> Any:
    """a itself, whose derivative is zero: an array, or a tree of arrays (other leaves stay as they are).

    >>> import smelt
    >>> smelt.grad(lambda x: x * smelt.stop_gradient(x))(smelt.array(3.0))
    array(3, dtype=float32)
    """
    check_stream(stream)
    if isinstance(a, array):
        return apply_unary(ops["stop_gradient"], a)
    leaves, treedef = tree.flatten(a)
    if not any(isinstance(x, array) for x in leaves):
        return apply_unary(ops["stop_gradient"], a)
    stopped = [apply_unary(ops["stop_gradient"], x) if isinstance(x, array) else x for x in leaves]
    return tree.unflatten(treedef, stopped)


explain_keywords(globals(), "value_and_grad grad vjp jvp stop_gradient")
