"""Recompute-attention: the gradient of attention makes the weights anew, from what the softmax knows of its rows.

Before, with the weights %w = %e / %t of the forward pass, %e = exp(%x - max), %t = sum of %e::

    %dw = "smelt.dot_general"(%do, %v) ...                          // cotangents of the weights
    %d = "smelt.reduce_sum"(-%dw * %w / %t) ...
    %dx = (%dw / %t + %d) * %e                                      // of the logits
    %dv = "smelt.dot_general"(%w, %do) ...

After::

    %m, %r = max, 1 / %t                                            // of each row
    %w2 = exp(%x2 - %m) * %r                                        // %x2: %x, computed anew
    %d2 = "smelt.reduce_sum"(%do * %o) ...                          // over features, not keys
    %dx = (%dw - %d2) * %w2
    %dv = "smelt.dot_general"(%w2, %do) ...

So nothing but numbers of rows goes from one pass to the other, and nothing has to be reduced over the keys; `fuse`
makes one kernel of what is between such contractions (see `attention_chains`). The sum over keys of weights and their
cotangents is that of the result and its cotangent over features, since both are Σ w v do (Dao et al., "FlashAttention",
2022, appendix B). Where nobody reads the result %o, it is computed for that (`attention_products`). A gradient that
goes through the maximum, too, adds a multiple of Σ %dx, which is 0 and left out.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from smelt.ir import dtypes
from smelt.ir.builder import Builder, Function, OpView, Value, read_function
from smelt.ir.ops.movement import Reshape, Transpose

from ..extract import reassemble
from ..registry import Pass, register_pass
from ..rewrite import unplaced_functions
from .analysis import is_pointwise, reduced_axes
from .attention_gradient import Gradient, gradients_of, logits_of
from .attention_products import undone, with_products
from .contraction_places import is_contraction

#: Elementwise ops between two contractions, at most.
MOST_OPS = 64


@register_pass("recompute-attention")
@dataclass(frozen=True)
class RecomputeAttentionPass(Pass):
    """Let the gradient of attention compute weights anew where one kernel computes the attention.

    Attributes:
        features: the most features of a query and of a value.
        half: only where operands of all contractions have 16 bits.
    """

    features: int = 128
    half: bool = False

    def run(self, module: Any, statistics: Counter) -> None:
        for operation in unplaced_functions(module):
            function = with_products(module, read_function(operation), self.features)
            found, live = _gradients(function, self.features, self.half)
            if found:
                _Rewrite(function, found, live.ops).run(module)
                statistics["gradients"] += len(found)


def _gradients(function: Function, features: int, half: bool) -> tuple[list[Gradient], _Live]:
    """Those in a function that can be rewritten, and what is needed then."""
    candidates = [g for g in gradients_of(function, features) if not half or g.is_half]
    while True:
        live = _Live(function, candidates)
        fitting = [g for g in candidates if live.fits(g)]
        if len(fitting) == len(candidates):
            return candidates, live
        candidates = fitting


class _Live:
    """Which ops of a function are needed once gradients are rewritten, and which read which."""

    def __init__(self, function: Function, gradients: list[Gradient]):
        self.function = function
        self.position = {op: i for i, op in enumerate(function.ops)}
        made = {g.logits_cotangent: g for g in gradients}
        same = {op: v for g in gradients for op, v in g.same.items()}
        wanted = set(function.returns)
        self.ops: list[OpView] = []
        for op in reversed(function.ops):
            if not wanted.intersection(op.results) and op.op.pure:
                continue
            self.ops.append(op)
            if op in made:
                g = made[op]
                wanted.update((g.cotangent, g.given, g.softmax.product.results[0]))
            elif op in same:
                wanted.add(same[op])
            else:
                wanted.update(op.operands)
        self.ops.reverse()
        self.replaced = {*made, *same}

    def fits(self, g: Gradient) -> bool:
        """Whether nothing but contractions needs what is computed anew; sets what depends on this."""
        again = {v for op in g.again for v in op.results}
        output = g.softmax.product.results[0]
        inside: set[Value] = {g.logits_cotangent.results[0]}
        g.users, count = [], 0
        if inside.intersection(self.function.returns) or any(
            v.owner in g.own and v is not output for v in self.function.returns
        ):
            return False
        for op in self.ops:
            if op in g.own or op is g.logits_cotangent:
                continue
            if op in self.replaced:
                if inside.intersection(op.operands):
                    inside.update(op.results)
                continue
            read = [v for v in op.operands if v.owner in g.own and v is not output]
            if not all(v in again for v in read):
                return False
            if not read and not inside.intersection(op.operands):
                continue
            if read:
                g.users.append(op)
            if is_contraction(op):
                if len(op.operands) != 2 or op.operands[0] is op.operands[1]:
                    return False
                continue
            count += 1
            if not is_pointwise(op) or count > MOST_OPS or set(op.results).intersection(self.function.returns):
                return False
            inside.update(op.results)
        return self._follow(g)

    def _follow(self, g: Gradient) -> bool:
        """Find what moves the product's result before the gradient is made."""
        end = self.position[g.logits_cotangent]
        g.moves, value = [], g.softmax.product.results[0]
        while True:
            users = [op for op in self.ops if value in op.operands]
            if len(users) != 1 or value in self.function.returns or self.position[users[0]] > end:
                break
            if not isinstance(users[0].op, (Reshape, Transpose)):
                break
            g.moves.append(users[0])
            value = users[0].results[0]
        return self.position[g.softmax.product] < end


class _Rewrite:
    """A function with its gradients of attention rewritten."""

    def __init__(self, function: Function, gradients: list[Gradient], ops: list[OpView]):
        self.function, self.ops = function, ops
        self.own = {op for g in gradients for op in g.own}
        self.totals = {g.softmax.total: g for g in gradients}
        self.made = {g.logits_cotangent: g for g in gradients}
        self.same = {op: v for g in gradients for op, v in g.same.items()}
        self.behind: dict[OpView, list[Gradient]] = {}  #: those of which an op reads what is computed anew
        for g in gradients:
            for op in (*g.users, g.logits_cotangent):
                self.behind.setdefault(op, []).append(g)
        self.numbers: dict[OpView, tuple[Value, Value]] = {}  #: of rows, by the op that makes their totals
        self.weights: dict[OpView, Value] = {}
        self.again: dict[Value, Value] = {}

    def run(self, module: Any) -> None:
        reassemble(module, self.function, [(op,) for op in self.ops], self._emit)

    def _emit(self, b: Builder, item: tuple[OpView], env: dict[Value, Value]) -> None:
        (op,) = item
        with b.at(op.location):
            for g in self.behind.get(op, ()):
                self._compute_again(b, g, op, env)
            if op in self.made:
                env[op.results[0]] = self._cotangent(b, self.made[op], env)
                return
            if op in self.same:
                env[op.results[0]] = env[self.same[op]]
                return
            operands = [env[v] if op in self.own else self._anew(v, env) for v in op.operands]
            env.update(zip(op.results, b.clone(op, operands)))
            if op in self.totals:
                largest, total = (b.convert_to(env[v.results[0]], dtypes.float32)
                                  for v in (self.totals[op].softmax.maximum, op))  # fmt: skip
                self.numbers[op] = largest, b.full(total.shape, 1.0, dtypes.float32) / total

    def _anew(self, v: Value, env: dict[Value, Value]) -> Value:
        """What stands for a value behind the forward pass."""
        return self.again[v] if v in self.again else env[v]

    def _spread(self, b: Builder, x: Value, g: Gradient) -> Value:
        """A number of each row as one of each logit."""
        (axis,) = reduced_axes(g.softmax.total)
        shape = logits_of(g.softmax).shape
        return b.broadcast_to(b.reshape_to(x, (*shape[:axis], 1, *shape[axis + 1 :])), shape)

    def _compute_again(self, b: Builder, g: Gradient, user: OpView, env: dict[Value, Value]) -> None:
        """What an op reads of what is computed anew, and all that stands before it."""
        wanted = {*user.operands, g.weights.results[0]} if user is g.logits_cotangent else set(user.operands)
        count = max((i for i, op in enumerate(g.again, 1) if wanted.intersection(op.results)), default=0)
        for op in g.again[:count]:
            if op.results[0] in self.again:
                continue
            if op is g.weights:
                largest, reciprocal = self.numbers[g.softmax.total]
                logits = b.convert_to(self._anew(logits_of(g.softmax), env), dtypes.float32)
                weights = b.exp(logits - self._spread(b, largest, g)) * self._spread(b, reciprocal, g)
                self.weights[g.softmax.total] = weights
                self.again[op.results[0]] = b.convert_to(weights, op.results[0].dtype)
            else:
                self.again.update(zip(op.results, b.clone(op, [self._anew(v, env) for v in op.operands])))

    def _cotangent(self, b: Builder, g: Gradient, env: dict[Value, Value]) -> Value:
        """The cotangent of the logits."""
        given = env[g.given]
        if g.turned != tuple(range(given.ndim)):
            given = b.transpose(given, permutation=g.turned)
        result = undone(b, env[g.moved], g.moves)
        both = [b.convert_to(x, dtypes.float32) for x in (given, result)]
        mean = b.reduce_sum(both[0] * both[1], axes=(g.columns,))
        cotangent = b.convert_to(self._anew(g.cotangent, env), dtypes.float32)
        found = (cotangent - self._spread(b, mean, g)) * self.weights[g.softmax.total]
        return b.convert_to(found, g.logits_cotangent.results[0].dtype)
