"""Where a kernel reads a contraction's result, and the way back."""

from __future__ import annotations

import itertools
import random

import pytest

from smelt.ir.index import Atom, Index, delinearize, linearize, variables
from smelt.passes.kernels.contraction_places import inverse_place


def evaluate(index: Index, env: dict[str, int]) -> int:
    """The value of an index expression."""

    def value(atom: Atom) -> int:
        if atom.kind == "var":
            return env[atom.args[0]]
        x, n = evaluate(atom.args[0], env), atom.args[1]
        return x // n if atom.kind == "div" else x % n

    return index.const + sum(c * value(a) for a, c in index.terms)


def holds(place: tuple[Index, ...], shape: tuple[int, ...], loops: tuple[Index, ...], extents: tuple[int, ...]) -> bool:
    """Whether the inverse leads from each element that the loops read back to the loops' variables."""
    inverse = inverse_place(place, shape, loops)
    if inverse is None:
        return False
    for values in itertools.product(*map(range, extents)):
        read = [evaluate(i, {f"i{a}": v for a, v in enumerate(values)}) for i in place]
        back = tuple(evaluate(i, {f"c{a}": v for a, v in enumerate(read)}) for i in inverse)
        assert back == values, (place, inverse)
    return True


def test_permuted_merged_and_split() -> None:
    i, j, k = variables((4, 3, 2))
    assert holds((k, i, j), (2, 4, 3), (i, j, k), (4, 3, 2))
    assert holds((i * 6 + j * 2 + k,), (24,), (i, j, k), (4, 3, 2))
    assert holds((i // 2, j, Index(0), i % 2, k), (2, 3, 1, 2, 2), (i, j, k), (4, 3, 2))
    assert holds((k * 12 + i // 2 * 6 + j * 2 + i % 2,), (24,), (i, j, k), (4, 3, 2))


@pytest.mark.parametrize(
    "place",
    [
        lambda i, j: ((i + 1, j), (4, 3)),  # shifted
        lambda i, j: ((-i + 3, j), (4, 3)),  # reversed
        lambda i, j: ((i,), (4,)),  # broadcast
        lambda i, j: ((i, i), (4, 4)),  # the diagonal
        lambda i, j: ((i, j), (5, 3)),  # not all of it
        lambda i, j: ((i * 3 + j + j,), (12,)),
        lambda i, j: ((i + j,), (6,)),
        lambda i, j: ((i // 2, j), (2, 3)),  # the quotient alone
        lambda i, j: ((Index.dynamic("d", 4), j), (4, 3)),
    ],
)
def test_what_has_no_inverse(place) -> None:
    i, j = variables((4, 3))
    index, shape = place(i, j)
    assert inverse_place(index, shape, (i, j)) is None


def test_random_movement() -> None:
    """Reshapes and transposes in any order, which may or may not be expressible: those that are must be right."""
    r = random.Random(0)
    shapes = [(12,), (2, 6), (6, 2), (3, 4), (4, 3), (2, 2, 3), (2, 3, 2), (3, 1, 4), (1, 12)]
    found = 0
    for _ in range(300):
        extents = shape = r.choice(shapes)
        loops = place = variables(shape)
        for _ in range(r.randint(1, 4)):
            if r.random() < 0.5:
                new = r.choice(shapes)
                place, shape = delinearize(linearize(place, shape), new), new
            else:
                order = r.sample(range(len(shape)), len(shape))
                place, shape = tuple(place[a] for a in order), tuple(shape[a] for a in order)
        found += holds(place, shape, loops, extents)
    assert found > 100


def test_axes_without_elements() -> None:
    i, j = variables((3, 0))
    assert inverse_place((i, j), (3, 0), (i, j)) == variables((3, 0), "c")
    assert inverse_place((i, j % 2), (3, 2), (i, j)) is None
    assert inverse_place((j // 2, i), (4, 3), (i, j)) is None
    for divisor in (1, 2, 3):
        assert inverse_place((j // divisor, j % divisor, i), (2, divisor, 3), (i, j)) is None
