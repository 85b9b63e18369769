"""The set ``algebra``: rules that hold for real numbers. They lead both ways, so they are for `saturate` alone.

Results may differ by the rounding of the largest intermediate value, and where something is infinite or overflows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from smelt.ir.ops.contract import sums

from .sets import RewriteSet, Rules
from .terms import Attr, Condition, Rule, Term, computed, condition, ops

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


@condition
def is_pair(s: Any) -> bool:
    return len(s) == 2


def outer(x: Term, y: Term) -> Term:
    """All products of an element of x and one of y."""
    return ops.dot_general(x, y, **sums((), ()))


@algebra.rewrite(reals=True)
def products_of_outer(x: Term, y: Term, z: Term, axes: Attr) -> Rules:
    """X·(y⊗z) = (X·y)⊗z, along any axis of X: what gradients of products are made of."""
    along = sums(axes, (0,))
    whole, parts = ops.dot_general(x, outer(y, z), **along), outer(ops.dot_general(x, y, **along), z)
    return (whole >> parts).when(is_line(y))


@condition
def is_column(r: Any) -> bool:
    return len(r) == 2 and bool(r[1] == 1)


@algebra.rewrite(reals=True, examples=[{"x": (2, 3), "y": (3,), "z": (4,), "r": (3, 1), "s": (3, 4), "axes": (1,)}])
def products_of_elements(x: Term, y: Term, z: Term, r: Attr, s: Attr, axes: Attr) -> Rules:
    """X·(y⊗z) = (X·y)⊗z where y⊗z is written as a product of elements."""
    along, column = sums(axes, (0,)), ops.broadcast(ops.reshape(y, shape=r), shape=s)
    whole = ops.dot_general(x, column * ops.broadcast(z, shape=s), **along)
    return (whole >> outer(ops.dot_general(x, y, **along), z)).when(is_line(y) & is_line(z) & is_column(r) & is_pair(s))


@algebra.rewrite(reals=True, examples=[{"x": (2, 3), "z": (4,), "s": (3, 4), "axes": (1,)}])
def products_of_equal_rows(x: Term, z: Term, s: Attr, axes: Attr) -> Rules:
    """X·Z where all rows of Z are z = (the sum of X)⊗z."""
    whole = ops.dot_general(x, ops.broadcast(z, shape=s), **sums(axes, (0,)))
    return (whole >> outer(ops.reduce_sum(x, axes=axes), z)).when(is_line(z) & is_pair(s) & x.is_float)


@condition
def is_matrix(x: Any) -> bool:
    return bool(x.ndim == 2)


@algebra.rewrite(reals=True)
def products_transpose(x: Term, y: Term) -> Rules:
    """(X·Y)ᵀ = Yᵀ·Xᵀ, Xᵀᵀ = X, and Xᵀ·Y sums along the columns of X."""
    whole, parts = turned(product(x, y)), product(turned(y), turned(x))
    across, down = product(turned(x), y), ops.dot_general(x, y, **sums((0,), (0,)))
    return whole >> parts, parts >> whole, turned(turned(x)) >> x, across >> down, (down >> across).when(is_matrix(x))


@algebra.rewrite(reals=True)
def products_distribute(x: Term, y: Term, z: Term) -> Rules:
    """X·Y + X·Z = X·(Y + Z), and Y·X + Z·X = (Y + Z)·X."""
    return product(x, y) + product(x, z) >> product(x, y + z), product(y, x) + product(z, x) >> product(y + z, x)


#: What multiplies two stacks of matrices.
Product = Callable[[Term, Term], Term]


def stacked(batch: int, across: bool) -> Product:
    """X·Y of stacks of matrices along `batch` axes; `across`: X·Yᵀ, as scores of attention are made."""
    axes, inner = tuple(range(batch)), batch + int(across)
    along = sums((batch + 1,), (inner,), axes)
    return lambda x, y: ops.dot_general(x, y, **along)


@condition
def is_number(c: Any) -> bool:
    return bool(c.ndim == 0)


@condition
def is_one_a_row(c: Any, x: Any) -> bool:
    return bool(c.ndim == x.ndim and c.shape[-1] == 1)


@condition
def is_one_a_column(c: Any, x: Any) -> bool:
    return bool(c.ndim == x.ndim and c.shape[-2] == 1)


@computed
def shape_of(x: Any) -> tuple[int, ...]:
    return tuple(x.shape)


def product_shape(across: bool) -> Callable[[Term, Term], Any]:
    @computed
    def shape_of_product(x: Any, y: Any) -> tuple[int, ...]:
        return (*x.shape[:-1], y.shape[-2 if across else -1])

    return shape_of_product


def factors_around(product: Product, across: bool, x: Term, y: Term, c: Term, s: Attr) -> Iterator[Rule]:
    """(c·X)·Y = c·(X·Y) and the like, where c is a number, or one a row of X, or one a column of Y."""
    given, made = ops.broadcast(c, shape=s), ops.broadcast(c, shape=product_shape(across)(x, y))
    on_x, on_y = (ops.broadcast(c, shape=shape_of(v)) for v in (x, y))
    scaled: tuple[Callable[[Term, Term], Term], ...] = (lambda a, b: a * b, lambda a, b: a / b)
    for by in scaled:
        whole, after = by(product(x, y), given), by(product(x, y), made)
        left: Condition = is_number(c) | is_one_a_row(c, x)
        right: Condition = is_number(c) if across else is_number(c) | is_one_a_column(c, y)
        yield (product(by(x, given), y) >> after).when(x.is_float & left)
        yield (product(x, by(y, given)) >> after).when(x.is_float & right)
        yield (whole >> product(by(x, on_x), y)).when(x.is_float & left)
        yield (whole >> product(x, by(y, on_y))).when(x.is_float & right)


_SCALED = [
    {"x": (*stack, 2, 3), "y": (*stack, 3, 3), "c": c, "s": s}
    for stack in ((), (2, 1))
    for c in ((), (*stack, 2, 1), (*stack, 1, 3))
    for s in ((*stack, 2, 3), (*stack, 3, 3))
]


@algebra.rewrite(reals=True, examples=_SCALED)
def products_scale(x: Term, y: Term, c: Term, s: Attr) -> Rules:
    """(c·X)·Y = X·(c·Y) = c·(X·Y) where c is a number; with one a row of X, or a column of Y, where that stays."""
    forms = [(batch, across) for batch in (0, 1, 2) for across in (False, True)]
    return [rule for b, across in forms for rule in factors_around(stacked(b, across), across, x, y, c, s)]


@computed
def permuted(x: Any, p: Any) -> tuple[int, ...]:
    return tuple(x.shape[axis] for axis in p)


@algebra.rewrite(reals=True, examples=[{"x": (2, 3), "c": (), "s": s, "p": (1, 0)} for s in ((2, 3), (3, 2))])
def numbers_move(x: Term, c: Term, s: Attr, p: Attr) -> Rules:
    """(c·X)ᵀ = c·Xᵀ where c is a number, and both ways for quotients, too."""
    given, on_x, moved = (ops.broadcast(c, shape=shape) for shape in (s, shape_of(x), permuted(x, p)))
    over = ops.transpose(x, permutation=p)
    rules = (
        ops.transpose(x * given, permutation=p) >> over * moved, over * given >> ops.transpose(x * on_x, permutation=p),
        ops.transpose(x / given, permutation=p) >> over / moved, over / given >> ops.transpose(x / on_x, permutation=p),
    )  # fmt: skip
    return [rule.when(x.is_float & is_number(c)) for rule in rules]


@algebra.rewrite(reals=True)
def sums_of_products(x: Term, y: Term) -> Rules:
    """The sum of X·Y over its rows is that of X times Y, that over its columns X times that of Y."""
    rows, columns = ops.reduce_sum(x, axes=(0,)), ops.reduce_sum(y, axes=(1,))
    rules = (
        ops.reduce_sum(product(x, y), axes=(0,)) >> ops.dot_general(rows, y, **sums((0,), (0,))),
        ops.reduce_sum(product(x, y), axes=(1,)) >> ops.dot_general(x, columns, **sums((1,), (0,))),
        ops.reduce_sum(product(x, y), axes=(0, 1)) >> ops.dot_general(rows, columns, **sums((0,), (0,))),
    )
    return [rule.when(x.is_float) for rule in rules]


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
