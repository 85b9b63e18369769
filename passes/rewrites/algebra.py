"""The set ``algebra``: what holds for real numbers. It leads too many ways for `rewrite`; `saturate` goes them all.

Rounding differs, by as much as that of the largest value on the way; infinities and what overflows may, too.
"""

from __future__ import annotations

from typing import Any

from smelt.ir.ops.contract import sums

from .sets import RewriteSet, Rules
from .terms import Attr, Term, condition, ops

algebra = RewriteSet("algebra", "Algebra of real numbers, for saturate.", both_ways=True)


def product(x: Term, y: Term) -> Term:
    """Of matrices, or of a matrix and a vector."""
    return ops.dot_general(x, y, **sums((1,), (0,)))


def turned(x: Term) -> Term:
    """The transpose of a matrix."""
    return ops.transpose(x, permutation=(1, 0))


@condition
def is_line(x: Any) -> bool:
    return bool(x.ndim == 1)


@algebra.rewrite(reals=True)
def products_associate(x: Term, y: Term, z: Term) -> Rules:
    """(X·Y)·Z = X·(Y·Z)."""
    left, right = product(product(x, y), z), product(x, product(y, z))
    return left >> right, right >> left


def outer(x: Term, y: Term) -> Term:
    """All products of an element of x and one of y."""
    return ops.dot_general(x, y, **sums((), ()))


@algebra.rewrite(reals=True)
def products_of_outer(x: Term, y: Term, z: Term, axes: Attr) -> Rules:
    """X·(y⊗z) = (X·y)⊗z, along any axis of X: what gradients of products are made of."""
    along = sums(axes, (0,))
    whole, parts = ops.dot_general(x, outer(y, z), **along), outer(ops.dot_general(x, y, **along), z)
    return (whole >> parts).when(is_line(y))


@algebra.rewrite(reals=True)
def products_transpose(x: Term, y: Term) -> Rules:
    """(X·Y)ᵀ = Yᵀ·Xᵀ."""
    whole, parts = turned(product(x, y)), product(turned(y), turned(x))
    return whole >> parts, parts >> whole


@algebra.rewrite(reals=True)
def products_distribute(x: Term, y: Term, z: Term) -> Rules:
    """X·Y + X·Z = X·(Y + Z), and Y·X + Z·X = (Y + Z)·X."""
    return product(x, y) + product(x, z) >> product(x, y + z), product(y, x) + product(z, x) >> product(y + z, x)


@algebra.rewrite(reals=True)
def sums_and_factors(x: Term, y: Term, z: Term) -> Rules:
    """x·y + x·z = x·(y + z), x·y - x·z = x·(y - z), x/z + y/z = (x + y)/z."""
    return x * y + x * z >> x * (y + z), x * y - x * z >> x * (y - z), x / z + y / z >> (x + y) / z


@algebra.rewrite(reals=True)
def associate(x: Term, y: Term, z: Term) -> Rules:
    """(x + y) + z = x + (y + z), and likewise for products; (x - y) + y = x."""
    return (x + y) + z >> x + (y + z), (x * y) * z >> x * (y * z), (x - y) + y >> x, (x + y) - y >> x


@algebra.rewrite(reals=True)
def quotients(x: Term, y: Term, z: Term) -> Rules:
    """x/y/z = x/(y·z), (x/y)·z = (x·z)/y, x·y/y = x, x/(y/z) = x·z/y; of floats."""
    float_ = x.is_float
    rules = x / y / z >> x / (y * z), (x / y) * z >> (x * z) / y, x * y / y >> x, x / (y / z) >> x * z / y
    return [rule.when(float_) for rule in rules]


@algebra.rewrite(reals=True)
def exponentials(x: Term, y: Term) -> Rules:
    """exp(x)·exp(y) = exp(x + y), exp(x)/exp(y) = exp(x - y), log(exp(x)) = x, 1/exp(x) = exp(-x); of floats."""
    rules = (
        ops.exp(x) * ops.exp(y) >> ops.exp(x + y), ops.exp(x) / ops.exp(y) >> ops.exp(x - y),
        ops.log(ops.exp(x)) >> x, 1 / ops.exp(x) >> ops.exp(-x), ops.log(ops.exp(x) / y) >> x - ops.log(y),
    )  # fmt: skip
    return [rule.when(x.is_float) for rule in rules]


@algebra.rewrite(reals=True)
def signs(x: Term, y: Term) -> Rules:
    """-x - y = -(x + y), x + -y = x - y, -x·y = -(x·y), x - -y = x + y."""
    return -x - y >> -(x + y), x + -y >> x - y, -x * y >> -(x * y), x - -y >> x + y
