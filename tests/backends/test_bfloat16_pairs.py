"""Products of bfloat16 by pairs: values beside float64, whatever lies how, subnormal numbers and what is not finite."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.backends.cpu.contract import pairs, panels
from smelt.ir.settings import override

needs_pairs = pytest.mark.skipif(not pairs.has_bfloat16_pairs(), reason="the processor has no products of pairs")
SPECS = {
    "plain": ("ij,jk->ik", (61, 37), (37, 70)),
    "right transposed": ("ij,kj->ik", (61, 37), (70, 37)),
    "left transposed": ("ji,jk->ik", (37, 61), (37, 70)),
    "both transposed": ("ji,kj->ik", (37, 61), (70, 37)),
    "blocks of the depth": ("ij,jk->ik", (30, 901), (901, 40)),
    "batch": ("bij,bkj->bik", (3, 33, 64), (3, 65, 64)),
    "few columns": ("ij,jk->ik", (300, 50), (50, 9)),
}


def _operands(spec: str, dtype: smelt.Dtype = smelt.bfloat16) -> tuple[str, list[smelt.array]]:
    text, *shapes = SPECS[spec]
    rng = np.random.default_rng(0)
    return text, [smelt.array(rng.standard_normal(s).astype(np.float32)).astype(dtype) for s in shapes]


def _product(text: str, operands: list[smelt.array], **settings: int) -> tuple[np.ndarray, str]:
    with override(tier="program", cache=False, **settings):
        smelt.clear_cache()
        f = smelt.compile(lambda x, y: smelt.einsum(text, x, y))
        kernel = str(f.trace(*operands).lower().compile().as_text("kernel"))
        return np.asarray(f(*operands).astype(smelt.float32)), kernel


def _wanted(text: str, operands: list[smelt.array]) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return np.einsum(text, *(np.asarray(x.astype(smelt.float32)).astype(np.float64) for x in operands))


@needs_pairs
@pytest.mark.parametrize("spec", SPECS)
def test_values(spec: str) -> None:
    text, operands = _operands(spec)
    found, kernel = _product(text, operands)
    wanted = _wanted(text, operands)
    assert "dpbf16ps" in kernel
    np.testing.assert_allclose(found, wanted, rtol=2**-8, atol=1e-5 * np.abs(wanted).max())


@needs_pairs
@pytest.mark.parametrize("spec", SPECS)
def test_as_float32_makes_them(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, operands = _operands(spec)
    found, _ = _product(text, operands)
    monkeypatch.setattr(panels, "multiply_pairs", pairs.multiply_in_float32)
    again, kernel = _product(text, operands)
    assert "dpbf16ps" not in kernel
    np.testing.assert_allclose(found, again, rtol=2**-7, atol=1e-5 * np.abs(again).max())


@pytest.mark.parametrize("has", [False, True])
def test_processors(has: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the instruction, and without."""
    if not has:
        monkeypatch.setattr(pairs, "has_bfloat16_pairs", lambda: False)
    text, operands = _operands("plain")
    found, kernel = _product(text, operands)
    assert ("dpbf16ps" in kernel) == (has and pairs.has_bfloat16_pairs())
    np.testing.assert_allclose(found, _wanted(text, operands), rtol=2**-8, atol=1e-4)


@pytest.mark.parametrize("spec", SPECS)
def test_subnormal_elements_count(spec: str) -> None:
    text, (x, y) = _operands(spec)
    for operands in ([x * 1e-39, y * 1e30], [x * 1e30, y * 1e-39]):
        found, _ = _product(text, operands)
        wanted = _wanted(text, operands)
        assert np.abs(wanted).max() > 0
        np.testing.assert_allclose(found, wanted, rtol=2**-7, atol=1e-2 * np.abs(wanted).max())


@pytest.mark.parametrize("spec", SPECS)
def test_what_is_not_finite(spec: str) -> None:
    text, operands = _operands(spec)
    x, y = (np.array(v.astype(smelt.float32)) for v in operands)
    x.flat[3], x.flat[-1], y.flat[5], y.flat[-1] = np.nan, np.inf, -np.inf, -0.0
    given = [smelt.array(v).astype(smelt.bfloat16) for v in (x, y)]
    found, _ = _product(text, given)
    wanted = _wanted(text, given)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    np.testing.assert_array_equal(found[np.isinf(wanted)], wanted[np.isinf(wanted)])
    finite = np.isfinite(wanted)
    np.testing.assert_allclose(found[finite], wanted[finite], rtol=2**-7, atol=1e-3)


def test_the_number_of_threads_does_not_matter() -> None:
    text, operands = _operands("blocks of the depth")
    found = [_product(text, operands, num_threads=n)[0] for n in (1, 2, 3)]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_float32_results_of_bfloat16_operands() -> None:
    text, operands = _operands("plain")
    with override(tier="program", cache=False):
        f = smelt.compile(lambda x, y: smelt.einsum(text, x.astype(smelt.float32), y.astype(smelt.float32)))
        found = np.asarray(f(*operands))
    np.testing.assert_allclose(found, _wanted(text, operands), rtol=1e-5, atol=1e-5)
