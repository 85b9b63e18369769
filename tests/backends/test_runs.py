"""Products with chosen matrices: neighbours that have chosen the same one are rows of one product."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.cpu.contract import build
from smelt.backends.cpu.contract.runs import HEIGHT, Runs
from smelt.ir.settings import override

from ..spies import calls_of

EXPERTS = 5
#: Which expert each token chooses, of so many tokens.
ORDERS = {
    "sorted": lambda n, random: np.sort(random.integers(0, EXPERTS, n)),
    "anyhow": lambda n, random: random.integers(0, EXPERTS, n),
    "one": lambda n, random: np.full(n, 3),
    "from the end": lambda n, random: -np.sort(random.integers(1, EXPERTS + 1, n)),
    "two names of one": lambda n, random: np.where(np.arange(n) % 3 == 0, -1, EXPERTS - 1),
    "just not whole": lambda n, random: np.arange(n) // (HEIGHT - 1) % EXPERTS,
}


@pytest.fixture(autouse=True)
def compiled() -> Iterator[None]:
    with override(tier="program", small_work=0):
        yield


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[Runs]:
    """Products that took this kernel."""
    return calls_of(monkeypatch, build, "build_runs", lambda arguments, result: arguments[2])


def _indices(order: str, count: int) -> np.ndarray:
    return ORDERS[order](count, np.random.default_rng(count)).astype(np.int32)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("tokens", "depth", "columns"), [(16, 40, 70), (57, 130, 33), (100, 24, 2048)])
def test_values(order: str, tokens: int, depth: int, columns: int, check: bool, built: list[Runs]) -> None:
    random, at = np.random.default_rng(0), _indices(order, tokens)
    x = random.standard_normal((tokens, 1, depth)).astype(np.float32)
    w = random.standard_normal((EXPERTS, depth, columns)).astype(np.float32)
    f = smelt.compile(lambda x, w, at: smelt.tanh(smelt.gather_mm(x, w, rhs_indices=at)) * 2)
    arrays = [smelt.array(v) for v in (x, w, at)]
    found = []
    for threads in (1, 2, 3, 7):
        with override(num_threads=threads, check=check):
            found.append(np.array(f(*arrays)))
    np.testing.assert_allclose(found[0], 2 * np.tanh(x.astype(np.float64) @ w[at].astype(np.float64)), atol=2e-5)
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])
    assert built and built[0].parts == (2 if columns == 2048 else 1)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("order", ["sorted", "anyhow"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize(
    ("mode", "group", "bits", "transpose"),
    [("affine", 64, 4, True), ("affine", 32, 3, True), ("affine", 64, 4, False), ("mxfp8", 32, 8, True)],
)
def test_packed(
    mode: str, group: int, bits: int, transpose: bool, dtype: str, order: str, built: list[Runs]
) -> None:  # fmt: skip
    random, at = np.random.default_rng(1), _indices(order, 50)
    kind = getattr(smelt, dtype)
    w = smelt.array(random.standard_normal((EXPERTS, 96, 192)).astype(np.float32)).astype(kind)
    x = smelt.array(random.standard_normal((50, 1, 192 if transpose else 96)).astype(np.float32)).astype(kind)
    packed = smelt.quantize(w, group, bits, mode)

    def product(x: smelt.array, at: smelt.array, w: smelt.array, s: smelt.array, *b: smelt.array) -> smelt.array:
        return smelt.gather_qmm(x, w, s, b[0] if b else None, None, at, transpose, group, bits, mode)

    plain = smelt.dequantize(*packed, group_size=group, bits=bits, mode=mode)
    chosen = np.asarray(plain.astype(smelt.float64))[at]
    lhs, rhs = np.asarray(x.astype(smelt.float64)), np.swapaxes(chosen, 1, 2) if transpose else chosen
    error = {"float32": 2e-6, "bfloat16": 8e-3, "float16": 1e-3}[dtype] * (np.abs(lhs) @ np.abs(rhs)) + 1e-9
    found = []
    for threads in (1, 3):
        with override(num_threads=threads):
            found.append(np.array(smelt.compile(product)(x, smelt.array(at), *packed).astype(smelt.float64)))
        np.testing.assert_array_less(np.abs(found[-1] - lhs @ rhs), error)
    np.testing.assert_array_equal(*found)
    assert built


def test_derivatives(built: list[Runs]) -> None:
    """Of what is multiplied by what was chosen: a product with chosen matrices, too."""
    random, at = np.random.default_rng(2), _indices("sorted", 40)
    x, w = (random.standard_normal(s).astype(np.float32) for s in ((40, 1, 33), (EXPERTS, 33, 64)))
    c = random.standard_normal((40, 1, 64)).astype(np.float32)

    def loss(x: smelt.array, w: smelt.array, c: smelt.array, at: smelt.array) -> smelt.array:
        return (smelt.gather_mm(x, w, rhs_indices=at) * c).sum()

    of_x, of_w = smelt.compile(smelt.grad(loss, argnums=(0, 1)))(*map(smelt.array, (x, w, c, at)))
    np.testing.assert_allclose(np.asarray(of_x), c @ np.swapaxes(w[at], 1, 2), atol=1e-4)
    wanted = np.zeros_like(w)
    np.add.at(wanted, at, np.swapaxes(x, 1, 2) @ c)
    np.testing.assert_allclose(np.asarray(of_w), wanted, atol=1e-4)
    assert built


def _scaled(x: Any, w: Any, at: Any, s: Any) -> Any:
    """Tokens differ in more than what they choose."""
    return x @ (w[at] * s[:, None, None])


def _twice(x: Any, w: Any, at: Any, s: Any) -> Any:
    """By two choices: these are runs where both are the same."""
    return x @ (w[at] * w[at[::-1]])


def _of(x: Any) -> Any:
    """The functions for such arrays."""
    return smelt if isinstance(x, smelt.array) else np


def _by_place(x: Any, w: Any, at: Any, s: Any) -> Any:
    return x @ (w[at] * _of(x).arange(48, dtype=x.dtype)[:, None, None])


def _first_ones(x: Any, w: Any, at: Any, s: Any) -> Any:
    return x @ _of(x).where(_of(x).arange(48)[:, None, None] < 5, s[0], w[at])


def _two_parts(x: Any, w: Any, at: Any, s: Any) -> Any:
    return x @ _of(x).concatenate([w[at[:20]], w[at[20:]] * 2])


def _padded(x: Any, w: Any, at: Any, s: Any) -> Any:
    return x @ _of(x).pad(w[at[:45]], ((3, 0), (0, 0), (0, 0)))


def _by_another(x: Any, w: Any, at: Any, s: Any) -> Any:
    """A number that chooses is one to multiply with elsewhere."""
    return x @ (w[at] * at[::-1, None, None].astype(x.dtype))


def _columns(x: Any, w: Any, at: Any, s: Any) -> Any:
    """Each column of each token is chosen by itself."""
    return x @ _of(x).swapaxes(w[(at[:, None] + _of(x).arange(64)) % EXPERTS, :, 0], 1, 2)


def _rows(x: Any, w: Any, at: Any, s: Any) -> Any:
    return x @ w[(at[:, None] + _of(x).arange(40)) % EXPERTS, 0]


def _turned(x: Any, w: Any, at: Any, s: Any) -> Any:
    """Rows and columns are chosen as well, the same ones of each matrix."""
    return x @ w[at][:, (at[:40] * 7 + 1) % 40][:, :, (at[:40] * 5 + 2) % 64]


@pytest.mark.parametrize(
    ("function", "is_built"),
    [
        (_scaled, False), (_twice, True), (_by_place, False), (_first_ones, False), (_two_parts, False),
        (_padded, False), (_by_another, False), (_columns, False), (_rows, False), (_turned, True),
    ],
)  # fmt: skip
@pytest.mark.parametrize("check", [False, True])
def test_what_differs_between_tokens(function: Any, is_built: bool, check: bool, built: list[Runs]) -> None:
    random, at = np.random.default_rng(3), np.repeat(np.arange(3), 16).astype(np.int32)
    x, w = (random.standard_normal(s).astype(np.float32) for s in ((48, 1, 40), (EXPERTS, 40, 64)))
    s = random.standard_normal(48).astype(np.float32)
    with override(check=check):
        found = np.asarray(smelt.compile(function)(*map(smelt.array, (x, w, at, s))))
    np.testing.assert_allclose(found, function(x, w, at, s), atol=2e-3)
    assert bool(built) == is_built


def test_no_numbers_among_the_choices() -> None:
    """NaN and infinity of one token stay its own."""
    x = np.ones((24, 1, 64), np.float32)
    x[3], x[20, 0, 5] = np.nan, np.inf
    w = np.random.default_rng(4).standard_normal((2, 64, 64)).astype(np.float32)
    at = np.repeat([0, 1], 12).astype(np.int32)
    f = smelt.compile(lambda x, w, at: smelt.gather_mm(x, w, rhs_indices=at))
    found = np.asarray(f(*map(smelt.array, (x, w, at))))
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(found, x @ w[at], atol=1e-4)
