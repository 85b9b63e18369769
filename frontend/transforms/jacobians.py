"""Jacobians and Hessians: jacfwd, jacrev, hessian.

A Jacobian is `jvp` or the pullback of `vjp`, mapped by `vmap` over the standard basis: the function
itself is computed once, only the tangents or cotangents have an axis more.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, Literal, overload

from smelt.ir.aval import Aval
from smelt.ir.errors import DTypeError, at_user_line
from smelt.ir.flags import flags_checked
from smelt.ir.keywords import explain_keywords

from ..functions.creation import eye, zeros
from ..functions.shaping import moveaxis, reshape
from ..lazy.arguments import is_integer
from ..lazy.arrays import array
from ..lazy.signatures import Function, P
from .recording import Recorded, Variables, check_function, name_of, positional, positions_of, recording, unchanged
from .vmap import vmap


@overload
def jacfwd(  # type: ignore[overload-overlap]
    fun: Callable[Concatenate[array, P], array], argnums: Literal[0] = 0, *, has_aux: Literal[False] = False
) -> Function[Concatenate[array, P], array]: ...
@overload
def jacfwd(
    fun: Callable[[array], array], argnums: Literal[0] = 0, *, has_aux: Literal[False] = False
) -> Function[[array], array]: ...
@overload
def jacfwd(fun: Callable[P, Any], argnums: int | Sequence[int] = 0, *, has_aux: bool = False) -> Function[P, Any]: ...
@flags_checked
def jacfwd(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, *, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that returns the Jacobian of `fun`, column by column by forward mode.

    Costs one `jvp` for each element of the arguments: for functions with more results than arguments.

    Args:
        fun: takes arrays (or trees), returns a real floating-point array or a tree of such.
        argnums: positional argument(s) to differentiate; arrays or trees of real arrays.
        has_aux: whether `fun` returns ``(result, aux)``; ``(Jacobian, aux)`` is then returned.

    Returns:
        A function with the arguments of `fun`. For each leaf y of the result it returns, in the tree
        of the result, the tree of the argument with arrays of shape ``y.shape + x.shape``: entry
        ``[i, j]`` is ∂y[i]/∂x[j]. For several `argnums`, a tuple of such trees stands there.

    Raises:
        DTypeError: an argument or result that is not real floating point. TreeError: no array in an argument.

    >>> import smelt
    >>> smelt.jacfwd(lambda x: x * x)(smelt.array([1.0, 2.0]))
    array([[2, 0],
           [0, 4]], dtype=float32)
    """
    return _jacobian("smelt.jacfwd", fun, argnums, has_aux, _columns)


@overload
def jacrev(  # type: ignore[overload-overlap]
    fun: Callable[Concatenate[array, P], array], argnums: Literal[0] = 0, *, has_aux: Literal[False] = False
) -> Function[Concatenate[array, P], array]: ...
@overload
def jacrev(
    fun: Callable[[array], array], argnums: Literal[0] = 0, *, has_aux: Literal[False] = False
) -> Function[[array], array]: ...
@overload
def jacrev(fun: Callable[P, Any], argnums: int | Sequence[int] = 0, *, has_aux: bool = False) -> Function[P, Any]: ...
@flags_checked
def jacrev(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, *, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that returns the Jacobian of `fun`, row by row by reverse mode.

    Costs one pullback for each element of the result: for functions with more arguments than results.
    Arguments, result and errors are those of `jacfwd`.

    >>> import smelt
    >>> smelt.jacrev(lambda x: (x * x).sum())(smelt.array([1.0, 2.0]))
    array([2, 4], dtype=float32)
    """
    return _jacobian("smelt.jacrev", fun, argnums, has_aux, _rows)


@overload
def hessian(  # type: ignore[overload-overlap]
    fun: Callable[Concatenate[array, P], array], argnums: Literal[0] = 0, *, has_aux: Literal[False] = False
) -> Function[Concatenate[array, P], array]: ...
@overload
def hessian(
    fun: Callable[[array], array], argnums: Literal[0] = 0, *, has_aux: Literal[False] = False
) -> Function[[array], array]: ...
@overload
def hessian(fun: Callable[P, Any], argnums: int | Sequence[int] = 0, *, has_aux: bool = False) -> Function[P, Any]: ...
@flags_checked
def hessian(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, *, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that returns the second derivatives of `fun`, by forward mode over reverse mode.

    Arguments and errors are those of `jacfwd`. For each leaf y of the result and leaves x, z of the
    arguments, nested in this order, there is an array of shape ``y.shape + x.shape + z.shape``.

    >>> import smelt
    >>> smelt.hessian(lambda x: (x ** 3).sum())(smelt.array([1.0, 2.0]))
    array([[6, 0],
           [0, 12]], dtype=float32)
    """
    return jacfwd(jacrev(fun, argnums, has_aux=has_aux), argnums, has_aux=has_aux)


def _jacobian(
    what: str, fun: Callable[..., Any], argnums: Any, has_aux: bool, blocks: Callable[..., Any]
) -> Callable[..., Any]:
    check_function(fun, what)
    positions = positions_of(what, argnums)
    who = name_of(fun)

    @functools.wraps(fun)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        variables = Variables(what, who, positional(what, who, positions, args))
        for x, path in zip(variables.arrays, variables.paths):
            _check_real(what, path, x.aval)

        def call(values: list[Any]) -> Any:
            inner = list(args)
            for p, value in zip(positions, values):
                inner[p] = value
            return fun(*inner, **kwargs)

        with recording(), unchanged(args, kwargs):
            recorded = Recorded(what, fun, variables, call, has_aux)
            for x, i in zip(recorded.outs, recorded.places):
                _check_real(what, f"{recorded.paths[i]} of {who}", x.aval)
            found = []
            for row in blocks(recorded):
                trees = variables.rebuild(row)
                found.append(trees[0] if is_integer(argnums) else tuple(trees))
        jacobian = recorded.rebuild(found)
        return (jacobian, recorded.aux) if has_aux else jacobian

    return wrapped


def _check_real(what: str, path: str, aval: Aval) -> None:
    if not aval.dtype.is_float:
        hint = "; use smelt.jvp or smelt.vjp for complex numbers" if aval.dtype.is_complex else ""
        raise DTypeError(at_user_line(f"{what}: {path} is {aval}; Jacobians are of real floating-point arrays{hint}"))


def _basis(avals: Sequence[Aval]) -> list[array]:
    """The standard basis of the space of these arrays: one for each, with the basis along axis 0."""
    total = sum(a.size for a in avals)
    found, start = [], 0
    for a in avals:
        found.append(reshape(eye(total, a.size, k=-start, dtype=a.dtype), (total, *a.shape)))
        start += a.size
    return found


def _pieces(x: array, avals: Sequence[Aval], axis_last: bool) -> list[array]:
    """Axis 0 of x, which runs over the elements of all these arrays, cut up and brought into their shapes."""
    rest = x.shape[1:]
    found, start = [], 0
    for a in avals:
        part = x[start : start + a.size]
        start += a.size
        shape = (*rest, *a.shape) if axis_last else (*a.shape, *rest)
        found.append(reshape(moveaxis(part, 0, -1) if axis_last else part, shape))
    return found


def _empty(recorded: Recorded) -> list[list[array]]:
    ins = recorded.variables.avals
    return [[zeros(y.shape + x.shape, y.dtype) for x in ins] for y in recorded.avals]


def _columns(recorded: Recorded) -> list[list[array]]:
    ins = recorded.variables.avals
    if not sum(math.prod(a.shape) for a in ins) or not recorded.outs:
        return _empty(recorded)
    n = len(recorded.outs)
    tangents = vmap(lambda *ts: recorded.jvp(ts)[n:])(*_basis(ins))
    return [_pieces(t, ins, axis_last=True) for t in tangents]


def _rows(recorded: Recorded) -> list[list[array]]:
    outs, n = recorded.avals, len(recorded.outs)
    if not sum(math.prod(a.shape) for a in outs):
        return _empty(recorded)
    cotangents = vmap(lambda *cts: recorded.vjp(cts)[n:])(*_basis(outs))
    by_input = [_pieces(ct, outs, axis_last=False) for ct in cotangents]
    return [list(row) for row in zip(*by_input)]


explain_keywords(globals(), "jacfwd jacrev hessian")
