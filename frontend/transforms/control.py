"""Control flow: cond, switch, while_loop, fori_loop, scan, map, associative_scan.

Python's own ``if``, ``while`` and ``for`` run while a function is traced. These functions are the ones
that run with the program: on values that are known only then, on the device, and at a compile time that
does not depend on the number of steps. They have JAX's names and meaning.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from smelt.ir import dtypes
from smelt.ir.control import COND, SCAN, WHILE
from smelt.ir.errors import (
    ArgumentTypeError,
    AttributeValueError,
    AxisError,
    DTypeError,
    ShapeError,
    TreeError,
    at_user_line,
    shown,
)
from smelt.ir.keywords import explain_keywords
from smelt.ir.symbolic import index

from ..functions.arithmetic import clip
from ..functions.joining import concatenate, stack
from ..functions.reductions import reshape_to
from ..lazy import tree
from ..lazy.arguments import MOST, aval_of, entries, integer, is_integer
from ..lazy.arrays import ArrayLike, array, as_array, convert, wrap
from ..lazy.signatures import R, Scalar
from .control_tracing import Traced, Values, control, graph_functions, match_branches, match_carry
from .recording import article, check_function, name_of
from .vmap import vmap

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..lazy.signatures import C, Operands, WithScalars, X, Y

__all__ = ["associative_scan", "cond", "fori_loop", "map", "scan", "switch", "while_loop"]


@overload
def cond(
    pred: ArrayLike,
    true_fun: Callable[[Unpack[Operands]], array | Scalar],
    false_fun: Callable[[Unpack[Operands]], array | Scalar],
    *operands: Unpack[Operands],
) -> array: ...
@overload
def cond(
    pred: ArrayLike,
    true_fun: Callable[[Unpack[Operands]], R],
    false_fun: Callable[[Unpack[Operands]], R],
    *operands: Unpack[Operands],
) -> R: ...
@overload
def cond(pred: ArrayLike, true_fun: Callable[..., R], false_fun: Callable[..., R], *operands: Any) -> R: ...
def cond(pred: ArrayLike, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any) -> Any:  # type: ignore[misc]
    """``true_fun(*operands)`` if `pred` is true, else ``false_fun(*operands)``; only that one runs.

    Args:
        pred: a scalar: a bool, or a number that counts as true if it is not zero.
        true_fun, false_fun: return trees of the same structure, shapes and dtypes.
        operands: trees of arrays. The functions may also close over arrays.

    Raises:
        ShapeError: `pred` is no scalar, or the branches return other shapes or dtypes.
        TreeError: the branches return other trees.

    >>> import smelt
    >>> x = smelt.array(-4.0)
    >>> smelt.cond(x > 0, smelt.sqrt, lambda x: 0.0, x)
    array(0, dtype=float32)
    """
    what = "smelt.cond"
    check_function(true_fun, f"{what}: true_fun")
    check_function(false_fun, f"{what}: false_fun")
    index = convert(_scalar(what, "pred", pred, "use smelt.where to choose element by element"), dtypes.bool_)
    return _branches(what, index, (true_fun, false_fun), ("true_fun", "false_fun"), operands)


@overload
def switch(
    index: ArrayLike, branches: Sequence[Callable[[Unpack[Operands]], array | Scalar]], *operands: Unpack[Operands]
) -> array: ...
@overload
def switch(
    index: ArrayLike, branches: Sequence[Callable[[Unpack[Operands]], R]], *operands: Unpack[Operands]
) -> R: ...
@overload
def switch(index: ArrayLike, branches: Sequence[Callable[..., R]], *operands: Any) -> R: ...
def switch(index: ArrayLike, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:  # type: ignore[misc]
    """``branches[index](*operands)``; only that branch runs.

    Args:
        index: a scalar integer; one that is out of range counts as the nearest that is not.
        branches: functions that return trees of the same structure, shapes and dtypes.
        operands: trees of arrays.

    Raises:
        DTypeError: `index` is no integer. ShapeError: it is no scalar, or the branches return other
        shapes or dtypes. TreeError: the branches return other trees, or there are none.

    >>> import smelt
    >>> f = lambda i: smelt.switch(i, [smelt.sin, smelt.cos, smelt.square], smelt.array(3.0))
    >>> f(2), f(smelt.array(100))
    (array(9, dtype=float32), array(9, dtype=float32))
    """
    what = "smelt.switch"
    try:
        branches = entries(branches)
    except ArgumentTypeError:
        message = f"{what}: branches must be a sequence of functions, found {article(branches)}"
        raise TreeError(at_user_line(message)) from None
    if not branches:
        raise TreeError(at_user_line(f"{what}: needs at least one branch"))
    for i, branch in enumerate(branches):
        check_function(branch, f"{what}: branches[{i}]")
    found = _scalar(what, "index", index)
    if not found.dtype.is_integer:
        raise DTypeError(at_user_line(f"{what}: index must be an integer, is {found.aval}; smelt.cond takes a bool"))
    if len(branches) == 1:
        given = Values(what, [("operands", operands)], static=True)  # handles of its own, as in `_branches`
        only = Values(what, [("result", branches[0](*given.rebuild(given.arrays)[0]))])
        return only.rebuild(only.arrays)[0]
    if found.dtype.size < 4:  # the number of the last branch may not be one of the dtype's
        found = convert(found, dtypes.int32)
    within = convert(clip(found, 0, len(branches) - 1), dtypes.int32)
    return _branches(what, within, branches, [f"branches[{i}]" for i in range(len(branches))], operands)


def _scalar(what: str, name: str, value: ArrayLike, hint: str = "") -> array:
    if not isinstance(value, (array, bool, int, float, complex, np.ndarray, np.generic)):
        raise TreeError(at_user_line(f"{what}: {name} must be a scalar array or a number, found {article(value)}"))
    found = as_array(value)
    if found.shape:
        raise ShapeError(
            at_user_line(f"{what}: {name} must be a scalar, is {found.aval}{'; ' if hint else ''}{hint}")
        )
    return found


def _branches(
    what: str, index: array, branches: Sequence[Callable], names: Sequence[str], operands: Sequence[Any]
) -> Any:
    """The node of `cond` and `switch`. A bool chooses the first if it is true."""
    given = Values(what, [(f"operand {i}", x) for i, x in enumerate(operands)], static=True)
    avals = given.avals
    traced = [Traced(what, name_of(f), lambda args, f=f: f(*args), (given, avals)) for f in branches]
    results = [t.values(("result", t.result)) for t in traced]
    match_branches(what, names, results)
    functions, constants = graph_functions(traced, [r.refs for r in results], hoist=False)
    order = tuple(functions if index.dtype is not dtypes.bool_ else functions[::-1])
    outs = control(COND, {"branches": order}, [index._ref, *constants, *given.refs], results[0].avals)
    (result,) = results[0].rebuild(outs)
    return result


@overload
def while_loop(
    cond_fun: Callable[[array], array | bool], body_fun: Callable[[array], array | Scalar], init: Scalar
) -> array: ...
@overload
def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init: WithScalars) -> Any: ...
@overload
def while_loop(cond_fun: Callable[[C], array | bool], body_fun: Callable[[C], C], init: C) -> C: ...
@overload
def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init: Any) -> Any: ...
def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init: Any) -> Any:
    """``while cond_fun(carry): carry = body_fun(carry)``, from `init`; the last carry.

    Args:
        cond_fun: a scalar bool of the carry.
        body_fun: the next carry: of the same structure, shapes and dtypes.
        init: a tree of arrays. Python numbers take the dtype that `body_fun` returns.

    Reverse-mode derivatives need the number of steps beforehand: there is `fori_loop`, or `scan`.
    Forward mode (`smelt.jvp`) and `smelt.vmap` work here too.

    Raises:
        ShapeError: the carry changes its shape or dtype, or `cond_fun` returns no scalar.
        DTypeError: it returns no bool. TreeError: the carry changes its structure.

    >>> import smelt
    >>> smelt.while_loop(lambda x: x < 1000, lambda x: x * 3, smelt.array(2))
    array(1458, dtype=int32)
    """
    what = "smelt.while_loop"
    check_function(cond_fun, f"{what}: cond_fun")
    check_function(body_fun, f"{what}: body_fun")
    carry = Values(what, [("init", init)])
    (result,) = _while(what, lambda c: cond_fun(*c), lambda c: [body_fun(*c)], carry, name_of(cond_fun),
                       name_of(body_fun))  # fmt: skip
    return result


def _while(what: str, cond_fun: Callable, body_fun: Callable, carry: Values, test: str, step: str) -> list[Any]:
    """The node of `while_loop`. The functions take, and the body returns, the list of trees of the carry."""
    while True:
        body = Traced(what, step, body_fun, (carry, carry.avals))
        out = body.values(*[(name, value) for (name, _), value in zip(carry.groups, body.result)])
        if not match_carry(what, step, carry, out):
            break
    condition = Traced(what, test, cond_fun, (carry, carry.avals))
    result = condition.values((f"the result of {test}", condition.result))
    if len(result.arrays) != 1 or result.paths != [result.groups[0][0]]:
        raise TreeError(
            at_user_line(f"{what}: {test} must return a scalar bool, returned {article(condition.result)}")
        )
    (aval,) = result.avals
    if aval.shape:
        raise ShapeError(at_user_line(f"{what}: {test} must return a scalar bool, returned {aval}; see smelt.any"))
    if aval.dtype is not dtypes.bool_:
        raise DTypeError(at_user_line(f"{what}: {test} must return a scalar bool, returned {aval}; compare it with 0"))
    (again, onward), constants = graph_functions((condition, body), (result.refs, out.refs), hoist=True)
    attrs = {"cond": again, "body": onward, "constants": len(constants)}
    return carry.rebuild(control(WHILE, attrs, [*constants, *carry.refs], carry.avals))


@overload
def fori_loop(
    lower: ArrayLike, upper: ArrayLike, body_fun: Callable[[array, array], array | Scalar], init: Scalar
) -> array: ...
@overload
def fori_loop(
    lower: ArrayLike, upper: ArrayLike, body_fun: Callable[[array, Any], Any], init: WithScalars
) -> Any: ...
@overload
def fori_loop(lower: ArrayLike, upper: ArrayLike, body_fun: Callable[[array, C], C], init: C) -> C: ...
@overload
def fori_loop(lower: ArrayLike, upper: ArrayLike, body_fun: Callable[[array, Any], Any], init: Any) -> Any: ...
def fori_loop(lower: ArrayLike, upper: ArrayLike, body_fun: Callable[[array, Any], Any], init: Any) -> Any:
    """``for i in range(lower, upper): value = body_fun(i, value)``, from `init`; the last value.

    Args:
        lower, upper: scalar integers. If both are Python numbers, the number of steps is known and the loop
            is a `scan`, which has reverse-mode derivatives; else it is a `while_loop`.
        body_fun: takes the step as an int32 array (int64 where the bounds need it) and the value; returns
            the next value: of the same structure, shapes and dtypes.
        init: a tree of arrays. Python numbers take the dtype that `body_fun` returns.

    Raises:
        DTypeError: bounds that are no integers. AttributeValueError: more than 2**63 - 1 steps. ShapeError,
        TreeError: as `while_loop`.

    >>> import smelt
    >>> smelt.fori_loop(0, 5, lambda i, total: total + i, 0)
    array(10, dtype=int32)
    """
    what = "smelt.fori_loop"
    check_function(body_fun, f"{what}: body_fun")
    name = name_of(body_fun)
    start, stop = _bound(what, "lower", lower), _bound(what, "upper", upper)
    first, last = as_array(start), as_array(stop)
    dtype = dtypes.promote(first.dtype, last.dtype)
    if not dtype.is_integer:  # int64 and uint64 meet in a float
        if isinstance(start, array) or isinstance(stop, array) or start < 0:
            raise DTypeError(
                at_user_line(f"{what}: no integer dtype holds lower, {first.aval}, and upper, {last.aval}; convert one")
            )
        dtype = dtypes.uint64

    def step(carry: Sequence[Any], *_: Any) -> list[Any]:
        i, value = carry
        return [i + 1, body_fun(i, value)]

    carry = Values(what, [("i", convert(first, dtype)), ("init", init)])
    if isinstance(start, array) or isinstance(stop, array):
        end = convert(last, dtype)
        return _while(what, lambda carry: carry[0] < end, step, carry, "upper", name)[1]
    length = max(0, stop - start)
    if length > MOST:
        raise AttributeValueError(at_user_line(f"{what}: {start} to {stop} are more steps than int64 counts"))
    return _scan(what, name, lambda c, _: (step(c), None), carry, Values(what, []), length, False, False)[0][1]


def _bound(what: str, name: str, value: Any) -> array | int:
    """A bound of a loop: an array, or a Python int."""
    found = _scalar(what, name, value)
    if not found.dtype.is_integer:
        raise DTypeError(at_user_line(f"{what}: {name} must be an integer, is {found.aval}"))
    return found if isinstance(value, array) else index(value)


@overload
def scan(
    f: Callable[[array, X], tuple[Any, Y]], init: Scalar, xs: X, length: int | None = None, reverse: bool = False,
    unroll: int = 1, checkpoint: bool = False,
) -> tuple[array, Y]: ...  # fmt: skip
@overload
def scan(
    f: Callable[[Any, X], tuple[Any, Y]], init: WithScalars, xs: X, length: int | None = None, reverse: bool = False,
    unroll: int = 1, checkpoint: bool = False,
) -> tuple[Any, Y]: ...  # fmt: skip
@overload
def scan(
    f: Callable[[C, X], tuple[C, Y]], init: C, xs: X, length: int | None = None, reverse: bool = False,
    unroll: int = 1, checkpoint: bool = False,
) -> tuple[C, Y]: ...  # fmt: skip
@overload
def scan(
    f: Callable[[C, None], tuple[C, Y]], init: C, xs: None = None, length: int | None = None, reverse: bool = False,
    unroll: int = 1, checkpoint: bool = False,
) -> tuple[C, Y]: ...  # fmt: skip
@overload
def scan(
    f: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any = None, length: int | None = None,
    reverse: bool = False, unroll: int = 1, checkpoint: bool = False,
) -> tuple[Any, Any]: ...  # fmt: skip
def scan(
    f: Callable[[Any, Any], Any],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int = 1,
    checkpoint: bool = False,
) -> tuple[Any, Any]:
    """``carry, y = f(carry, x)`` for each x of xs along axis 0, from `init`: the last carry, the ys stacked.

    Args:
        f: takes the carry and x; returns the next carry, of the same structure, shapes and dtypes, and y.
        init: a tree of arrays. Python numbers take the dtype that `f` returns.
        xs: a tree of arrays whose first axis is that of the steps, or None.
        length: the number of steps; needed where `xs` has no array.
        reverse: start with the last x; y stands where its x stood.
        unroll: accepted for JAX's sake, and ignored.
        checkpoint: for reverse-mode derivatives, keep only the carry and x of each step and compute the
            rest again, instead of keeping all that the derivative needs.

    Returns:
        ``(carry, ys)``; ys is a tree of arrays with the steps along axis 0. None stays None.

    Raises:
        ShapeError: arrays of different lengths in `xs`, or a carry that changes its shape or dtype.
        TreeError: `f` returns no pair, or the carry changes its structure.

    >>> import smelt
    >>> smelt.scan(lambda total, x: (total + x, total), 0, smelt.array([1, 2, 3]))
    (array(6, dtype=int32), array([0, 1, 3], dtype=int32))
    """
    what = "smelt.scan"
    check_function(f, what)
    name = name_of(f)
    items = Values(what, [("xs", xs)])
    steps = _steps(what, items, length)

    def step(carry: Sequence[Any], x: Sequence[Any]) -> tuple[list[Any], Any]:
        result = f(carry[0], x[0])
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise TreeError(at_user_line(f"{what}: {name} must return a pair (carry, y), returned {article(result)}"))
        return [result[0]], result[1]

    carry = Values(what, [("init", init)])
    (last,), ys = _scan(what, name, step, carry, items, steps, reverse, checkpoint)
    return last, ys


def _steps(what: str, items: Values, length: int | None) -> int:
    """The number of steps of a scan."""
    if length is not None:
        try:
            length = index(length)
        except TypeError:
            raise TreeError(at_user_line(f"{what}: length must be an int, found {article(length)}")) from None
        if length < 0:
            raise AttributeValueError(at_user_line(f"{what}: length {length} must not be negative"))
    known = "length"
    for path, aval in zip(items.paths, items.avals):
        if not aval.shape:
            raise ShapeError(at_user_line(f"{what}: {path} is a scalar ({aval}); it needs an axis of steps"))
        if length is None:
            length, known = aval.shape[0], path
        elif aval.shape[0] != length:
            has = f"is {length}" if known == "length" else f"has {length}"
            raise ShapeError(at_user_line(f"{what}: {path} has {aval.shape[0]} steps ({aval}), {known} {has}"))
    if length is None:
        raise TreeError(at_user_line(f"{what}: no array in xs; give length, the number of steps"))
    return length


def _scan(
    what: str, name: str, step: Callable, carry: Values, items: Values, length: int, reverse: bool, checkpoint: bool
) -> tuple[list[Any], Any]:
    """The node of `scan`. `step` takes the lists of trees of the carry and of x; it returns the next carry,
    likewise, and y."""
    elements = [a.with_shape(a.shape[1:]) for a in items.avals]
    while True:
        body = Traced(what, name, step, (carry, carry.avals), (items, elements))
        found, y = body.result
        out = body.values(*[(group, value) for (group, _), value in zip(carry.groups, found)])
        if not match_carry(what, name, carry, out):
            break
    ys = body.values(("y", y))
    (function,), constants = graph_functions((body,), ([*out.refs, *ys.refs],), hoist=True)
    attrs: dict[str, Any] = {
        "body": function, "constants": len(constants), "carries": len(carry.arrays), "length": length,
        "reverse": bool(reverse),
    }  # fmt: skip
    if checkpoint:
        attrs["checkpoint"] = True
    stacked = [aval_of("scan", (length, *a.shape), a.dtype) for a in ys.avals]
    results = control(SCAN, attrs, [*constants, *carry.refs, *items.refs], [*carry.avals, *stacked])
    n = len(carry.arrays)
    return carry.rebuild(results[:n]), ys.rebuild(results[n:])[0]


@overload
def map(f: Callable[[X], array | Scalar], xs: X, *, batch_size: int | None = None) -> array: ...
@overload
def map(f: Callable[[X], Y], xs: X, *, batch_size: int | None = None) -> Y: ...
@overload
def map(f: Callable[[Any], Any], xs: Any, *, batch_size: int | None = None) -> Any: ...
def map(f: Callable[[Any], Any], xs: Any, *, batch_size: int | None = None) -> Any:
    """``f(x)`` for each x of xs along axis 0, one after the other; the results stacked.

    `smelt.vmap` computes all of them at once, which is faster and needs more memory.

    Args:
        f: takes and returns trees of arrays.
        xs: a tree of arrays whose first axis is that of the elements.
        batch_size: how many elements to compute at once, by `smelt.vmap`.

    Raises:
        ShapeError: arrays of different lengths in `xs`. TreeError: no array in `xs`.

    >>> import smelt
    >>> smelt.map(lambda x: x @ x, smelt.array([[1.0, 2.0], [3.0, 4.0]]))
    array([5, 25], dtype=float32)
    """
    what = "smelt.map"
    check_function(f, what)
    if batch_size is not None:
        return _map_in_batches(what, f, xs, batch_size)
    items = Values(what, [("xs", xs)])
    length = _steps(what, items, None)
    return _scan(what, name_of(f), lambda _, x: ([], f(x[0])), Values(what, []), items, length, False, False)[1]


def _map_in_batches(what: str, f: Callable, xs: Any, size: int) -> Any:
    items = Values(what, [("xs", xs)])
    length = _steps(what, items, None)
    if not is_integer(size) or size < 1:
        raise AttributeValueError(at_user_line(f"{what}: batch_size {shown(size)} must be a positive int"))
    size = int(size)
    several = vmap(f)
    whole = length - length % size
    parts = []
    if whole:
        grouped = [reshape_to(x[:whole], (whole // size, size, *x.shape[1:])) for x in items.arrays]
        found = map(several, items.rebuild(grouped)[0])
        parts.append(tree.mapped(lambda y: y if y is None else reshape_to(y, (whole, *y.shape[2:])), found))
    if whole < length or not parts:
        parts.append(several(items.rebuild([x[whole:] for x in items.arrays])[0]))
    return tree.mapped(lambda *ys: None if ys[0] is None else concatenate(ys, axis=0), *parts)


@overload
def associative_scan(fn: Callable[[X, X], X], elems: X, reverse: bool = False, axis: int = 0) -> X: ...
@overload
def associative_scan(fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any: ...
def associative_scan(fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """Running combinations by an associative function, in a logarithmic number of steps.

    Result i is ``fn(…fn(fn(e[0], e[1]), e[2])…, e[i])``. Neighbours are combined into half as many elements,
    whose running combinations are every second result; one more combination gives the others.

    Args:
        fn: combines two trees of arrays like `elems`, for many places along `axis` at once.
        elems: a tree of arrays of the same size along `axis`.
        reverse: combine from the last element on: result i is of the elements from i to the end.
        axis: the axis of the elements, counted from the end if negative.

    Raises:
        ShapeError: arrays of different sizes along `axis`, or without it, or `fn` returns other shapes or
        dtypes. AxisError: some array has no such axis. TreeError: no array, or `fn` returns another structure.

    >>> import smelt
    >>> smelt.associative_scan(smelt.multiply, smelt.array([1, 2, 3, 4]))
    array([ 1,  2,  6, 24], dtype=int32)
    """
    what = "smelt.associative_scan"
    check_function(fn, f"{what}: fn")
    axis = integer("associative_scan", "axis", axis)
    given = Values(what, [("elems", elems)])
    sizes: dict[int, str] = {}
    axes = []
    for path, aval in zip(given.paths, given.avals):
        if not -aval.ndim <= axis < aval.ndim:
            raise AxisError(at_user_line(f"{what}: axis {axis} is out of range for {path}, {aval}"))
        axes.append(axis % aval.ndim)
        sizes.setdefault(aval.shape[axis], f"{path} ({aval})")
    if len(sizes) != 1:
        kind: Any = ShapeError if sizes else TreeError
        listed = " and ".join(f"{size} of {path}" for size, path in sizes.items())
        raise kind(at_user_line(f"{what}: {f'sizes along axis {axis} differ: {listed}' if sizes else 'no array'}"))

    def flipped(arrays: list[array]) -> list[array]:
        return _part(arrays, axes, None, None, -1) if reverse else arrays

    run = functools.partial(_combined, fn, given, reverse, axis)
    return given.rebuild(flipped(_running(run, flipped(given.arrays), axes)))[0]


def _combined(
    fn: Callable[[Any, Any], Any], given: Values, reverse: bool, axis: int, first: list[array], second: list[array]
) -> list[array]:
    """What `fn` makes of the arrays of two trees, which must be of their types. `given`: a tree like these."""
    pair = (second, first) if reverse else (first, second)
    own = [[wrap(x._ref) for x in arrays] for arrays in pair]  # `fn` may update what it gets in place
    out = Values(given.what, [("elems", fn(*(given.rebuild(arrays)[0] for arrays in own)))])
    if different := given.difference(out):
        raise TreeError(at_user_line(f"{given.what}: {name_of(fn)} must return what it takes; {different}"))
    for path, taken, returned in zip(given.paths, [x.aval for x in first], out.avals):
        if taken != returned:
            raise ShapeError(
                at_user_line(
                    f"{given.what}: {name_of(fn)} takes {path} as {taken} and returns it as {returned}; it combines "
                    f"many places along axis {axis} at once, and keeps shapes and dtypes"
                )
            )
    return out.arrays


def _running(combine: Callable[[list[array], list[array]], list[array]], arrays: list[array], axes: list[int]
             ) -> list[array]:  # fmt: skip
    """The running combinations of arrays from the first place on, along an axis of each."""
    n = arrays[0].shape[axes[0]]
    if n < 2:
        return arrays
    pairs = _part(arrays, axes, 0, n - 1, 2), _part(arrays, axes, 1, n, 2)
    odd = _running(combine, combine(*pairs), axes)  # results 1, 3, 5, ...
    first = _part(arrays, axes, 0, 1)
    if n == 2:
        return [concatenate(pair, axis=a) for *pair, a in zip(first, odd, axes)]
    even = combine(_part(odd, axes, 0, (n - 1) // 2), _part(arrays, axes, 2, n, 2))  # results 2, 4, 6, ...
    even = [concatenate(pair, axis=a) for *pair, a in zip(first, even, axes)]
    return [_interleave(x, y, a) for x, y, a in zip(even, odd, axes)]


def _part(arrays: list[array], axes: list[int], *places: int | None) -> list[array]:
    return [x[(slice(None),) * a + (slice(*places),)] for x, a in zip(arrays, axes)]


def _interleave(even: array, odd: array, axis: int) -> array:
    """even[0], odd[0], even[1], odd[1], ... along an axis; `even` may be longer by one."""
    n = odd.shape[axis]
    shape = odd.shape
    whole = (slice(None),) * axis
    paired, rest = (*whole, slice(0, n)), (*whole, slice(n, None))
    pairs = stack([even[paired], odd], axis=axis + 1)
    found = reshape_to(pairs, (*shape[:axis], 2 * n, *shape[axis + 1 :]))
    return found if even.shape[axis] == n else concatenate([found, even[rest]], axis=axis)


explain_keywords(globals())
