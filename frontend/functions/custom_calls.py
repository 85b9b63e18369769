"""Calls of what other packages register: `smelt.custom_call`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

from smelt.ir.aval import Aval
from smelt.ir.custom_call import target_called
from smelt.ir.errors import ArgumentTypeError, AttributeValueError, at_user_line, shown
from smelt.ir.op import registry as ops
from smelt.ir.parameters import Parameters

from ..lazy.arrays import ArrayLike, array, as_array, wrap
from ..lazy.graph import Node
from ..lazy.shape_dtype import ShapeDtype

__all__ = ["custom_call"]

_CUSTOM_CALL = ops["custom_call"]


@overload
def custom_call(target: str, /, *operands: ArrayLike, types: ShapeDtype, **parameters: Any) -> array: ...


@overload
def custom_call(
    target: str, /, *operands: ArrayLike, types: Sequence[ShapeDtype], **parameters: Any
) -> tuple[array, ...]: ...


def custom_call(
    target: str, /, *operands: ArrayLike, types: ShapeDtype | Sequence[ShapeDtype], **parameters: Any
) -> array | tuple[array, ...]:
    """Call a target that a package has registered (`smelt.ir.custom_call.register_target`).

    The call is lazy, and part of the program under `smelt.compile`, `smelt.vmap`, in branches and in loops. It has no
    derivative of its own: give a function that calls it one by `smelt.custom_function`.

    Args:
        target: its name.
        operands: arrays or Python scalars, of any shapes and dtypes.
        types: of the results: one, or a sequence of them. The target is held to it.
        parameters: bools, numbers, texts, dtypes, and tuples of these; they are part of the program.

    Returns:
        An array, or for a sequence of types a tuple of arrays.

    Raises:
        AttributeValueError: there is no such target, or a parameter of another kind.
        ArgumentTypeError: `target` is no text, or `types` are no `ShapeDtype`.
        CustomCallError: when evaluated, the target returned something else than `types` say.

    >>> import numpy as np
    >>> import smelt
    >>> from smelt.ir.custom_call import Target, register_target
    >>> def rotate(call, x, n):
    ...     return np.roll(x, n, call.parameters["axis"])
    >>> target = register_target(Target("docs.rotate", rotate))
    >>> x = smelt.array([[1.0, 2.0, 3.0]])
    >>> smelt.custom_call("docs.rotate", x, 1, types=smelt.ShapeDtype(x.shape, x.dtype), axis=1)
    array([[3, 1, 2]], dtype=float32)
    """
    inputs = [as_array(x) for x in operands]
    single = isinstance(types, ShapeDtype)
    found = custom_call_of(target, inputs, [x.aval for x in _listed(types)], parameters)
    return found[0] if single else found


def custom_call_of(
    target: str, inputs: Sequence[array], types: Sequence[Aval], parameters: dict[str, Any]
) -> tuple[array, ...]:
    """`custom_call` of arrays, with results of these types."""
    if not isinstance(target, str):
        raise ArgumentTypeError(at_user_line(f"smelt.custom_call: target must be a text, is {shown(target)}"))
    try:
        target_called(target)
        attrs = {"target": target, "parameters": Parameters(parameters), "types": tuple(types)}
    except AttributeValueError as error:
        message = str(error)
        own = message if message.startswith("smelt.") else f"smelt.custom_call of {target}: {message}"
        raise AttributeValueError(at_user_line(own)) from None
    node = Node(_CUSTOM_CALL, attrs, tuple([x._ref for x in inputs]), tuple(types))
    return tuple([wrap((node, i)) for i in range(len(types))])


def _listed(types: Any) -> Sequence[ShapeDtype]:
    listed = [types] if isinstance(types, ShapeDtype) else types
    if not isinstance(listed, (tuple, list)) or not all(isinstance(t, ShapeDtype) for t in listed):
        message = f"smelt.custom_call: types must be a smelt.ShapeDtype or a sequence of them, is {shown(types)}"
        raise ArgumentTypeError(at_user_line(message))
    if not listed:
        raise ArgumentTypeError(at_user_line("smelt.custom_call: a call has at least one result; types is empty"))
    return listed
