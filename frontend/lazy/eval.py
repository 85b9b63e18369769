"""`smelt.eval` and its kin: values asked for."""

from __future__ import annotations

from typing import Any

from smelt.runtime import default_device, device_named

from . import tree
from .arrays import array
from .evaluate import evaluate
from .streams import check_stream


def eval(*args: Any) -> None:
    """Evaluate arrays, or trees of arrays. Evaluating again does nothing.

    Args:
        args: arrays, or trees of arrays (see `smelt.utils`); other leaves are ignored.

    Raises:
        TreeError: a leaf that is no array holds arrays.
        TraceError: an array belongs to a trace of `compile` or `vmap`. MemoryError: out of memory.

    >>> import smelt
    >>> x = smelt.array([1.0]) + 1
    >>> smelt.eval(x)
    """
    refs = []
    for arg in args:
        if type(arg) is array:
            refs.append(arg._ref)
        else:
            refs += [x._ref for x in tree.flatten(arg)[0] if isinstance(x, array)]
    evaluate(refs)


def async_eval(*args: Any) -> None:
    """`eval`; the devices there are now run synchronously."""
    eval(*args)


def synchronize(stream: Any = None) -> None:
    """Wait for running work: that of the stream's device, or of the default one.

    Raises:
        ArgumentTypeError: `stream` is neither a stream nor a device. DeviceError: there is no such device.
    """
    check_stream(stream)
    device = default_device() if stream is None else device_named(getattr(stream, "device", stream))
    device.memory.synchronize()
