"""What jumps, comparisons and conversions to integers, sees numbers of 16 bits as they are in memory, also in a kernel
that has just computed them in float32: an extremum equals the element that it is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import smelt
from smelt.ir.settings import override

#: Ways to run a program; the last goes through kernels that are told their sizes.
WAYS = (
    {"tier": "program", "small_work": 0}, {"tier": "strided", "small_work": 0},
    {"tier": "program", "small_work": 0, "device": "metal:sim"},
)  # fmt: skip

#: Arrays of which some elements of each row are equal to others.
EXTREMA: dict[str, Callable[..., smelt.array]] = {
    "cummax": lambda y: smelt.cummax(y, axis=1),
    "cummin": lambda y: smelt.cummin(y, axis=1),
    "max": lambda y: smelt.max(y, axis=1, keepdims=True),
    "min": lambda y: smelt.min(y, axis=1, keepdims=True),
    "sort": lambda y: smelt.sort(y, axis=1)[:, 3:4],
    "scan": lambda y: smelt.scan(lambda c, x: (smelt.maximum(c, x), None), y[:, 0], y.T)[0][:, None],
}


@pytest.fixture(params=WAYS, ids=["program", "strided", "metal"], autouse=True)
def way(request: pytest.FixtureRequest):
    with override(cache=False, **request.param):
        yield


def operand(dtype: str, shape: tuple[int, ...] = (5, 23)) -> smelt.array:
    return smelt.array(np.random.default_rng(0).standard_normal(shape).astype(np.float32)).astype(getattr(smelt, dtype))


def computed(x: smelt.array) -> smelt.array:
    """Of more bits than 16 as long as nobody rounds it."""
    return smelt.sin(x * 1.37) + 0.111


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", EXTREMA)
def test_an_extremum_equals_its_element(name: str, dtype: str) -> None:
    @smelt.compile
    def places(x: smelt.array) -> tuple[smelt.array, smelt.array]:
        y = computed(x)
        found = EXTREMA[name](y)
        return (found == y).any(axis=1), (found != y).all(axis=1)

    some, none = places(operand(dtype))
    assert all(some.tolist())
    assert not any(none.tolist())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["cummax", "cummin", "max", "min"])
def test_the_derivative_goes_to_the_element_that_it_is(name: str, dtype: str) -> None:
    x = operand(dtype, (3, 17))
    weights = (smelt.arange(17) + 1).astype(x.dtype)

    def loss(y: smelt.array) -> smelt.array:
        return (EXTREMA[name](y) * weights).sum()

    y = x * 1.37
    smelt.eval(y)
    wanted = np.asarray(smelt.grad(loss)(y).astype(smelt.float32))
    gradient = smelt.grad(lambda x: loss(x * 1.37))
    for each in (gradient, smelt.compile(gradient)):
        np.testing.assert_allclose(np.asarray(each(x).astype(smelt.float32)), wanted * 1.37, rtol=0.03)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_integers_and_overflow_are_those_of_memory(dtype: str) -> None:
    x = operand(dtype, (400,)) * 40  # times 2000 more than float16 holds

    def jumps(y: smelt.array, large: smelt.array) -> list[smelt.array]:
        return [
            y.astype(smelt.int32),
            y > 3,
            smelt.isinf(large),
            large < smelt.inf,
            smelt.isfinite(large),
            y.astype(bool),
        ]

    @smelt.compile
    def found(x: smelt.array) -> list[smelt.array]:
        return jumps(x * 3, x * 2000)

    y, large = x * 3, x * 2000
    smelt.eval(y, large)
    for a, b in zip(found(x), jumps(y, large)):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
