"""Collectives as ops: calls of what a group talks over, with derivatives and vectorization."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import smelt
from smelt import array
from smelt.ir.dtypes import DType
from smelt.ir.errors import AttributeValueError, DistributedError, ShapeError, at_user_line

from ..lazy.streams import check_stream
from .groups import Group, group_or_world
from .launched import processes_of

__all__ = ["all_gather", "all_max", "all_min", "all_sum", "recv", "recv_like", "send", "sum_scatter"]

#: An operand that tells apart messages of one type: two are not one.
_messages = itertools.count()


def _call(name: str, number: int, x: array, shape: Sequence[int]) -> array:
    types = smelt.ShapeDtype(tuple(shape), x.dtype)
    return smelt.custom_call(f"{processes_of(number).calls}.{name}", x, types=types, group=number)


def _reduced(name: str, number: int, x: array, shape: Sequence[int]) -> array:
    wide = processes_of(number).wider.get(x.dtype, x.dtype)
    return _call(name, number, x.astype(wide), shape).astype(x.dtype)


@functools.cache
def _rule(name: str, number: int, size: int) -> Callable[[array], array]:
    """A collective of a group with its derivatives. Each is linear, and the transpose of another one, but extremes."""
    if name in ("all_max", "all_min"):
        return _extreme(name, number, size)

    def recorded(x: array) -> array:
        if name == "all_sum":
            return _reduced(name, number, x, x.shape)
        if name == "all_gather":
            parts = _call(name, number, x, (size, *x.shape))
            return parts.reshape(-1, *x.shape[1:]) if x.ndim else parts
        parts = x.reshape(size, x.shape[0] // size, *x.shape[1:])
        return _reduced(name, number, parts, parts.shape[1:])

    recorded.__name__ = name
    found = smelt.custom_function(recorded)
    other = {"all_sum": "all_sum", "all_gather": "sum_scatter", "sum_scatter": "all_gather"}[name]

    def pulled(x: array, cotangent: array, output: array) -> array:
        return _rule(other, number, size)(cotangent).reshape(x.shape)

    found.vjp(pulled)
    found.jvp(lambda x, tangent: found(tangent))
    return found


def _extreme(name: str, number: int, size: int) -> Callable[[array], array]:
    def recorded(x: array) -> array:
        return _reduced(name, number, x, x.shape)

    recorded.__name__ = name
    found = smelt.custom_function(recorded)
    total = _rule("all_sum", number, size)

    def share(x: array, output: array) -> array:
        """What part of the result an element is: equal ones share."""
        mine = (x == output).astype(x.dtype)
        return mine / total(mine)

    found.vjp(lambda x, cotangent, output: total(cotangent) * share(x, output))
    found.jvp(lambda x, tangent: total(tangent * share(x, found(x))))
    return found


def _collective(name: str, x: Any, group: Group | None, stream: Any) -> array:
    check_stream(stream)
    group = group_or_world(name, group)
    x = x if isinstance(x, array) else smelt.array(x)
    if name in ("all_max", "all_min") and smelt.issubdtype(x.dtype, smelt.complexfloating):
        raise AttributeValueError(at_user_line(f"smelt.distributed.{name}: complex numbers have no order; x {x.aval}"))
    if name == "sum_scatter" and (x.ndim == 0 or x.shape[0] % group.size()):
        raise ShapeError(
            at_user_line(
                f"smelt.distributed.sum_scatter: the first axis needs equal parts for {group.size()} processes; "
                f"x {x.aval}"
            )
        )
    return x if group.size() == 1 else _rule(name, group._number, group.size())(x)


def all_sum(x: array, *, group: Group | None = None, stream: Any = None) -> array:
    """The sum of the arrays of all processes, of one shape and dtype. Its derivative is `all_sum`.

    Args:
        group: all processes by default. stream: what MLX takes; without effect.

    Raises:
        ArgumentTypeError: `group` is none.

    >>> import smelt
    >>> smelt.distributed.all_sum(smelt.array([1.0, 2.0]))  # of one process
    array([1, 2], dtype=float32)
    """
    return _collective("all_sum", x, group, stream)


def all_max(x: array, *, group: Group | None = None, stream: Any = None) -> array:
    """The largest elements of the arrays of all processes; see `all_sum`. The derivative goes to who has them.

    >>> import smelt
    >>> smelt.distributed.all_max(smelt.array([1.0, 2.0]))
    array([1, 2], dtype=float32)
    """
    return _collective("all_max", x, group, stream)


def all_min(x: array, *, group: Group | None = None, stream: Any = None) -> array:
    """The smallest elements of the arrays of all processes; see `all_max`.

    >>> import smelt
    >>> smelt.distributed.all_min(smelt.array([1.0, 2.0]))
    array([1, 2], dtype=float32)
    """
    return _collective("all_min", x, group, stream)


def all_gather(x: array, *, group: Group | None = None, stream: Any = None) -> array:
    """The arrays of all processes, one after the other along the first axis. Its derivative is `sum_scatter`.

    Args:
        group: all processes by default.

    Returns:
        [size · n, …] for arrays [n, …], [size] for scalars.

    Raises:
        ArgumentTypeError: `group` is none.

    >>> import smelt
    >>> smelt.distributed.all_gather(smelt.array([1.0, 2.0]))
    array([1, 2], dtype=float32)
    """
    return _collective("all_gather", x, group, stream)


def sum_scatter(x: array, *, group: Group | None = None, stream: Any = None) -> array:
    """Of the sum of the arrays of all processes this one's part of the first axis. Its derivative is `all_gather`.

    Raises:
        ShapeError: the group does not divide the axis.

    >>> import smelt
    >>> smelt.distributed.sum_scatter(smelt.array([1.0, 2.0]))
    array([1, 2], dtype=float32)
    """
    return _collective("sum_scatter", x, group, stream)


def _peer(name: str, group: Group, process: int) -> int:
    if group.size() == 1:
        raise DistributedError(at_user_line(f"smelt.distributed.{name}: there is one process, and nobody else"))
    if not 0 <= process < group.size() or process == group.rank():
        raise AttributeValueError(
            at_user_line(
                f"smelt.distributed.{name}: needs another one of {group.size()} processes, got {process} in process "
                f"{group.rank()}"
            )
        )
    return process


@functools.cache
def _message_rule(name: str, number: int, process: int, order: int, times: int = 0) -> Callable[..., array]:
    """A message to or from a process, with its derivatives: other messages, each kind with a number of its own
    (`order`), so that no process takes one for another. The arguments: what is sent, or like what is received; which
    message it is; what is computed before.

    Processes that send to each other all send before they wait, in derivatives, too: where a message comes after what
    computes `before`, its tangent comes after the tangent of that, and with cotangents it is the other way round.
    """

    def recorded(x: array, message: array, before: array) -> array:
        return smelt.custom_call(
            f"{processes_of(number).calls}.{name}", x, message, before, types=smelt.ShapeDtype(x.shape, x.dtype),
            group=number, process=process, order=order,
        )  # fmt: skip

    def pushed(primals: tuple[array, ...], tangents: tuple[array, ...]) -> array:
        before = tangents[2] if _differentiable(primals[2]) else None
        return _message(name, number, process, _order_of(order, 2 * times), tangents[0], before)

    def pulled(primals: tuple[array, ...], cotangent: array, output: array) -> tuple[array, None, array | None]:
        before = primals[2]
        back = _order_of(order, 2 * times + 1)
        if name == "recv":  # the array that it was like counts for nothing, but is there to send this
            nothing = 0 * _message("send", number, process, back, cotangent)
            return nothing, None, _nothing(before, nothing) if _differentiable(before) else None
        return cotangent + _message("recv", number, process, back, output, cotangent), None, None

    def primal(x: array, message: array, before: array) -> array:
        # The derivative of a derivative meets this message again, and its tangent and cotangent are other messages.
        return _message_rule(name, number, process, order, times + 1)(x, message, before)

    recorded.__name__ = name
    found = smelt.custom_function(recorded).jvp(pushed).vjp(pulled)
    found._primal = primal
    return found


def _order_of(order: int, derivative: int) -> int:
    """The number of a derivative of a message. MPI promises 32,767 of them: fourth derivatives are distinct."""
    return (9 * order + 1 + min(derivative, 7)) % 32768


def _differentiable(x: array) -> bool:
    return smelt.issubdtype(x.dtype, smelt.inexact)


def _nothing(like: array, after: array) -> array:
    """Zeros, computed after something else that is zero."""
    return smelt.zeros_like(like) + after.sum().astype(like.dtype)


def _message(name: str, number: int, process: int, order: int, x: array, before: array | None = None) -> array:
    """A new message."""
    known = smelt.array(next(_messages))
    return _message_rule(name, number, process, order)(x, known, known if before is None else before)


def send(x: array, dst: int, *, group: Group | None = None, stream: Any = None) -> array:
    """Send an array to another process when the result, which is `x`, is evaluated.

    What is differentiated is the sum of all processes' losses: the gradient of `x` is that of the result and, received
    from `dst`, that of what `recv_like` gave there. A process whose own loss is none takes ``0 * result.sum()``.

    Args:
        dst: the rank of who has to `recv` it. group: all processes by default. stream: without effect.

    Raises:
        DistributedError: there is one process. AttributeValueError: no other process is called `dst`.

    >>> import smelt
    >>> group = smelt.distributed.init()
    >>> if group.size() > 1 and group.rank() == 0:
    ...     smelt.eval(smelt.distributed.send(smelt.ones(3), 1))
    """
    check_stream(stream)
    group = group_or_world("send", group)
    process = _peer("send", group, dst)
    x = x if isinstance(x, array) else smelt.array(x)
    return _message("send", group._number, process, 0, x)


def recv(shape: Sequence[int], dtype: DType, src: int, *, group: Group | None = None, stream: Any = None) -> array:
    """Wait for an array of another process when the result is evaluated. No derivative goes back; see `recv_like`.

    Args:
        shape, dtype: those of what is sent. src: the rank of who sends it. group: all processes by default.
        stream: without effect.

    Raises:
        DistributedError: there is one process; or, when evaluated over MPI, what came has another number of bytes.
            NCCL compares none: what has another size is wrong there, or waited for without end.
        AttributeValueError: no other process is called `src`.

    >>> import smelt
    >>> group = smelt.distributed.init()
    >>> if group.size() > 1 and group.rank() == 1:
    ...     x = smelt.distributed.recv((3,), smelt.float32, 0)
    """
    return recv_like(smelt.zeros(shape, dtype), src, group=group, stream=stream)


def recv_like(x: array, src: int, *, group: Group | None = None, stream: Any = None) -> array:
    """`recv` of the shape and dtype of `x`.

    Where `x` is among what is differentiated the gradient of the result is sent back to `src`, whose `send` waits for
    it, when the gradient of `x`, zeros, is evaluated. `jvp` receives a tangent besides. `vmap` over `x` waits for all
    in one message, as `vmap` of `send` sends them. What `x` is computed from happens before:
    ``recv_like(send(x, 1), 1)`` waits when it has sent.

    >>> import smelt
    >>> group = smelt.distributed.init()
    >>> if group.size() > 1 and group.rank() == 1:
    ...     x = smelt.distributed.recv_like(smelt.ones(3), 0)
    """
    check_stream(stream)
    group = group_or_world("recv", group)
    process = _peer("recv", group, src)
    return _message("recv", group._number, process, 0, x)
