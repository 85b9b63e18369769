"""The set ``workbench``: for ``rewrite{set=workbench}``. ``smelt-opt --check-rewrites=workbench`` checks it."""

from __future__ import annotations

from smelt.ir.builder import Value
from smelt.passes.rewrites import Const, RewriteSet, Rule, Rules, Term, condition, number_of, ops

from . import ops as _ops  # noqa: F401  (defines the op that rules mention)

rewrites = RewriteSet("workbench", "Softsigns, exponentials and factors.")


@condition
def enlarges(c: Value) -> bool:
    """Whether the number that fills a value is at least one, and finite: no product with it rounds to zero."""
    value = number_of(c)
    return not isinstance(value, complex) and 1 <= value < float("inf")


@rewrites.rewrite
def recognize_softsign(x: Term) -> Rule:
    """x / (|x| + 1) → softsign(x)."""
    return x / (abs(x) + 1) >> ops.workbench_softsign(x)


@rewrites.rewrite
def softsign_of_neg(x: Term) -> Rule:
    """softsign(-x) → -softsign(x)."""
    return ops.workbench_softsign(-x) >> -ops.workbench_softsign(x)


@rewrites.rewrite
def scaled_maximum(x: Term, y: Term, c: Const) -> Rule:
    """max(x · c, y · c) → max(x, y) · c, where c is one or more. (With a smaller one both may round to zeros, of which
    the maximum takes the first, whatever their signs.)"""
    return (ops.maximum(x * c, y * c) >> ops.maximum(x, y) * c).when(x.is_float & enlarges(c))


@rewrites.rewrite(reals=True)
def exponentials(x: Term, y: Term) -> Rules:
    """exp(x) · exp(y) → exp(x + y); log(exp(x)) → x."""
    return ops.exp(x) * ops.exp(y) >> ops.exp(x + y), (ops.log(ops.exp(x)) >> x).when(x.is_float)


@rewrites.rewrite(reals=True)
def factor(x: Term, y: Term, z: Term) -> Rule:
    """x · y + x · z → x · (y + z)."""
    return x * y + x * z >> x * (y + z)
