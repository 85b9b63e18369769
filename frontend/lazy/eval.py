"""`smelt.eval` and its kin: values asked for."""

from __future__ import annotations

from typing import Any

from smelt.ir import locks
from smelt.runtime import default_device, device_named

from .arrays import array
from .asynchrony import begin, wait
from .core import seen, shadows
from .evaluate import evaluate
from .graph import Ref
from .streams import check_stream


def eval(*args: Any) -> None:
    """Evaluate arrays, or trees of arrays. Evaluating again does nothing.

    Args:
        args: arrays, or trees of arrays (see `smelt.utils`); other leaves are ignored, also those that hold arrays.

    Raises:
        TraceError: an array belongs to a trace of `compile` or `vmap`. MemoryError: out of memory.

    >>> import smelt
    >>> x = smelt.array([1.0]) + 1
    >>> smelt.eval(x)
    """
    evaluate(_refs(args))


def _refs(args: tuple[Any, ...]) -> list[Ref]:
    arrays: list[array] = []
    for arg in args:
        if isinstance(arg, array):
            arrays.append(arg)
        else:
            tree = locks.loaded("smelt.lazy.tree")
            arrays += [x for x in tree.flatten(arg, strict=False)[0] if isinstance(x, array)]
    return [x._ref for x in seen(arrays)] if shadows else [x._ref for x in arrays]


def async_eval(*args: Any) -> None:
    """Begin to evaluate arrays, or trees of arrays, and return at once; what asks for a value waits for it.

    Another thread evaluates, on this thread's device. What takes less than about a millisecond, besides what Python
    does for each op, is evaluated before the call returns. What goes wrong is raised where a value is asked for, and by
    `synchronize`.

    Args:
        args: as for `eval`.

    Raises:
        TraceError: an array belongs to a trace of `compile` or `vmap`.

    >>> import smelt
    >>> x = smelt.ones((1000, 1000)) @ smelt.ones((1000, 1000))
    >>> smelt.async_eval(x)
    >>> x[0, 0].item()
    1000.0
    """
    begin(_refs(args))


def synchronize(stream: Any = None) -> None:
    """Wait for running work: what `async_eval` began, and that of the stream's device, or of the default one.

    Raises:
        ArgumentTypeError: `stream` is neither a stream nor a device. DeviceError: there is no such device.
        And the first error of what `async_eval` began.

    >>> import smelt
    >>> smelt.async_eval(smelt.zeros(3) + 1)
    >>> smelt.synchronize()
    """
    check_stream(stream)
    wait()
    device = default_device() if stream is None else device_named(getattr(stream, "device", stream))
    device.memory.synchronize()
