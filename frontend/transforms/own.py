"""Transformations of a package's own, applied to functions of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from smelt.ir.attribute_kinds import checked
from smelt.ir.errors import ArgumentTypeError, ShapeError, at_user_line, shown
from smelt.ir.op import registry
from smelt.ir.ops.call import Transform

from ..lazy.arrays import array, as_array, wrap
from ..lazy.graph import parameter, record_function
from .recording import apply_function, check_function, check_no_escape, name_of, tracing

__all__: list[str] = []


def apply_transform(
    name: str, fun: Callable[..., Any], like: Sequence[array], operands: Sequence[array], **attrs: Any
) -> list[array]:
    """What a transformation (a `smelt.ir.ops.call.Transform` of any package) makes of a function, on these operands.

    Args:
        name: of the op, such as ``"acme_iterate"``.
        fun: of arrays, that returns an array or a tuple of arrays. Arrays that it uses from outside are more arguments
            of it, and more operands, behind the others.
        like: arrays of the types that it takes.
        operands: what the transformed function takes. attrs: of the op.

    Raises:
        ArgumentTypeError: no transformation has this name. ShapeError: operands of other types than it states.
    """
    op = registry.get(name)
    if not isinstance(op, Transform):
        raise ArgumentTypeError(at_user_line(f"there is no transformation of functions called {shown(name)}"))
    check_function(fun, f"smelt.{name}")
    attrs = checked(op, attrs)
    with tracing():
        parameters = [parameter(x.aval) for x in like]
        result = fun(*map(wrap, parameters))
        outs = [as_array(y) for y in (result if isinstance(result, (tuple, list)) else (result,))]
    f = record_function(name_of(fun), parameters, [y._ref for y in outs], keep_outside=True)
    inputs = [*(x._ref for x in operands), *f.captured]
    check_no_escape(f"smelt.{name}", inputs)
    taken, returned = op.signature(f.arguments, f.results, **attrs)
    given = [node.avals[i] for node, i in inputs]
    if given != taken:
        want, have = (", ".join(map(str, side)) for side in (taken, given))
        raise ShapeError(at_user_line(f"smelt.{name} of {name_of(fun)} takes ({want}), is given ({have})"))
    return apply_function(f, [(name, attrs)], inputs, returned)
