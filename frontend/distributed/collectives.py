"""Collectives as ops: calls of MPI on the host, with derivatives and vectorization."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import smelt
from smelt import array
from smelt.ir.custom_call import Call, Target, register_target
from smelt.ir.dtypes import DType
from smelt.ir.errors import AttributeValueError, DistributedError, ShapeError, at_user_line

from ..lazy.streams import check_stream
from .groups import Group, communicator_of, group_or_world

__all__ = ["all_gather", "all_max", "all_min", "all_sum", "recv", "recv_like", "send", "sum_scatter"]

#: Sends that may still read their memory.
_pending: list[tuple[Any, np.ndarray]] = []
#: An operand that tells apart messages of one type: two are not one.
_messages = itertools.count()


# On the host. Types that MPI does not have travel as bytes, and are added up in single precision.


def _communicator(call: Call) -> Any:
    return communicator_of(call.parameters["group"])


def _reduced(how: str) -> Callable[[Call, np.ndarray], np.ndarray]:
    def run(call: Call, x: np.ndarray) -> np.ndarray:
        kind = _MPI_OF_BOOLS[how] if x.dtype == np.bool_ else how
        wide = x.astype(np.float32) if x.dtype.itemsize == 2 and x.dtype.kind not in "iu" else np.asarray(x, order="C")
        result = np.empty_like(wide)
        communicator = _communicator(call)
        communicator.Allreduce(wide, result, op=_operation(kind))
        return result.astype(x.dtype)

    return run


#: What sums and extremes of truth values are.
_MPI_OF_BOOLS = {"SUM": "LOR", "MAX": "LOR", "MIN": "LAND"}


@functools.cache
def _operation(name: str) -> Any:
    from mpi4py import MPI  # only where processes were launched: nobody else has it, and it starts MPI

    return getattr(MPI, name)


def _gathered(communicator: Any, x: np.ndarray) -> np.ndarray:
    """[processes, *x.shape]."""
    sent = np.asarray(x, order="C")
    found = np.empty((communicator.Get_size(), *x.shape), x.dtype)
    communicator.Allgather(sent.reshape(-1).view(np.uint8), found.reshape(-1).view(np.uint8))
    return found


def _gather(call: Call, x: np.ndarray) -> np.ndarray:
    own = call.parameters["axes"]
    batch = x.ndim - own
    parts = list(_gathered(_communicator(call), x))
    return np.concatenate([p.reshape(*p.shape, 1) for p in parts] if own == 0 else parts, axis=batch)


def _scatter(call: Call, x: np.ndarray) -> np.ndarray:
    communicator = _communicator(call)
    batch = x.ndim - call.parameters["axes"]
    n = communicator.Get_size()
    wide = x.astype(np.float32) if x.dtype.itemsize == 2 and x.dtype.kind not in "iu" else x
    parts = np.stack(np.split(wide, n, axis=batch))
    result = np.empty(parts.shape[1:], parts.dtype)
    communicator.Reduce_scatter_block(parts, result, op=_operation("SUM"))
    return result.astype(x.dtype)


def _send(call: Call, x: np.ndarray, *_: np.ndarray) -> np.ndarray:
    # Without waiting for who receives it: two processes that send to each other would wait for ever.
    held = np.array(x, order="C")
    to, tag = call.parameters["process"], call.parameters["order"]
    request = _communicator(call).Isend(held.reshape(-1).view(np.uint8), dest=to, tag=tag)
    _pending[:] = [(r, memory) for r, memory in [*_pending, (request, held)] if not r.Test()]
    return x


def _recv(call: Call, *_: np.ndarray) -> np.ndarray:
    from mpi4py import MPI  # as in _operation

    wanted, status = call.results[0], MPI.Status()
    found = np.empty(wanted.shape, wanted.dtype.numpy)
    into = found.reshape(-1).view(np.uint8)
    source = call.parameters["process"]
    try:
        _communicator(call).Recv(into, source=source, tag=call.parameters["order"], status=status)
        size = status.Get_count(MPI.BYTE)
    except MPI.Exception as error:
        if error.Get_error_class() != MPI.ERR_TRUNCATE:
            raise
        size = -1
    if size != into.size:
        sent = "more" if size < 0 else f"{size} bytes"
        raise DistributedError(
            f"smelt.distributed.recv: {wanted} has {into.size} bytes, process {source} sent {sent}; shape and dtype "
            "must be those of what is sent"
        )
    return found


for _name, _host in (
    ("all_sum", _reduced("SUM")), ("all_max", _reduced("MAX")), ("all_min", _reduced("MIN")),
    ("all_gather", _gather), ("sum_scatter", _scatter),
):  # fmt: skip
    register_target(Target(f"smelt.distributed.{_name}", _host, vectorized=True))
register_target(Target("smelt.distributed.send", _send, vectorized=True))
register_target(Target("smelt.distributed.recv", _recv, vectorized=True))


# Recorded


def _call(name: str, number: int, x: array, shape: Sequence[int]) -> array:
    types = smelt.ShapeDtype(tuple(shape), x.dtype)
    return smelt.custom_call(f"smelt.distributed.{name}", x, types=types, group=number, axes=x.ndim)


@functools.cache
def _rule(name: str, number: int, size: int) -> Callable[[array], array]:
    """A collective of a group with its derivatives. Each is linear, and the transpose of another one, but extremes."""
    if name in ("all_max", "all_min"):
        return _extreme(name, number, size)

    def shape_of(x: array) -> tuple[int, ...]:
        if name == "all_sum":
            return x.shape
        first = x.shape[0] if x.ndim else 1
        return (first * size if name == "all_gather" else first // size, *x.shape[1:])

    def recorded(x: array) -> array:
        return _call(name, number, x, shape_of(x))

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
        return _call(name, number, x, x.shape)

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

    Returns:
        [size · n, …] for arrays [n, …], [size] for scalars.

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
            f"smelt.distributed.{name}", x, message, before, types=smelt.ShapeDtype(x.shape, x.dtype), group=number,
            process=process, order=order,
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
        DistributedError: there is one process; or, when evaluated, what came has another size.
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
