"""Branches, loops, effects, sizes and what is said of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import smelt
from smelt import array

from ..graph import Node, check, rule


@rule("cond")
def _cond(n: Node, chosen: Any, yes: Any, no: Any, operands: Sequence[Any]) -> list[Any]:
    if not isinstance(chosen, array):
        return n.graph(yes if chosen else no)(*operands)
    return list(smelt.cond(chosen, lambda *a: n.graph(yes)(*a), lambda *a: n.graph(no)(*a), *operands))


@rule("while_loop")
def _while(n: Node, test: Any, body: Any, carried: Sequence[Any], around: Sequence[Any]) -> list[Any]:
    start = [x if isinstance(x, array) else smelt.array(x) for x in carried]
    found = smelt.while_loop(
        lambda c: n.graph(test)(*c, *around)[0], lambda c: list(n.graph(body)(*c, *around)), start
    )
    return list(found)


@rule("scan")
def _scan(n: Node, body: Any, start: Sequence[array], xs: Sequence[array], around: Sequence[Any]) -> list[Any]:
    def step(carry: list[array], x: list[array]) -> tuple[list[array], list[array]]:
        found = n.graph(body)(*carry, *x, *around)
        return found[: len(start)], found[len(start) :]

    carry, ys = smelt.scan(step, list(start), list(xs))
    return [*carry, *ys]


@rule("map_impl")
def _map(n: Node, body: Any, xs: Sequence[array], around: Sequence[Any]) -> list[Any]:
    return list(smelt.map(lambda x: list(n.graph(body)(*x, *around)), list(xs)))


@rule("wrap_with_set_grad_enabled")
def _without_derivative(n: Node, enabled: bool, body: Any, *arguments: Any) -> list[Any]:
    found = n.graph(body)(*arguments)
    return found if enabled else [smelt.stop_gradient(x) if isinstance(x, array) else x for x in found]


@rule("wrap_with_autocast")
def _autocast(n: Node, device: str, dtype: Any, enabled: bool, cache: Any, body: Any, *arguments: Any) -> list[Any]:
    """The graph has its conversions already."""
    return n.graph(body)(*arguments)


@rule("with_effects")
def _with_effects(n: Node, token: Any, op: Any, *rest: Any) -> list[Any]:
    """An op with effects gets a token that orders it, and gives it back first."""
    found = n.program.apply(n.node, op, rest, {})
    return [token, *(found if isinstance(found, (tuple, list)) else [found])]


@rule("aten._assert_async", "aten._assert_tensor_metadata", "aten._linalg_check_errors", "aten.sym_constrain_range",
      "aten.sym_constrain_range_for_size", "aten._functional_assert_async", "aten._functional_sym_constrain_range",
      "aten._print")  # fmt: skip
def _nothing(n: Node, *_: Any) -> Any:
    """What is said of values and types: those of types hold, those of values are not asked for."""
    return None


@rule("aten._assert_scalar")
def _assert(n: Node, holds: Any, message: str) -> None:
    check(bool(holds), message)


@rule("aten.sym_size")
def _size(n: Node, x: array, dim: int) -> int:
    return x.shape[dim]


@rule("aten.sym_numel")
def _numel(n: Node, x: array) -> int:
    return x.size


@rule("aten.sym_stride")
def _stride(n: Node, x: array, dim: int) -> int:
    """As of an array in one piece, which is what all are."""
    return math.prod(x.shape[dim % x.ndim + 1 :])


@rule("aten.sym_storage_offset")
def _offset(n: Node, x: array) -> int:
    return 0


@rule("aten.sym_is_contiguous")
def _is_contiguous(n: Node, x: array, *_: Any) -> bool:
    return True
