"""What graphs are expected to take op by op, and programs to save of it: from ops and shapes alone."""

from collections.abc import Callable

import pytest

import smelt
from smelt.lazy.execution import tiers
from smelt.lazy.graph import topological


def test_what_libraries_take_is_not_saved() -> None:
    product, after = smelt.ones((512, 512)) @ smelt.ones((512, 512)), smelt.exp(smelt.ones((512, 512)))
    of_product, of_both = topological([product._ref]), topological([product._ref, after._ref])
    assert tiers.library_seconds(of_product) >= tiers.PRODUCT * 512**3
    assert tiers.library_seconds(of_product) == tiers.library_seconds(of_both) < tiers.op_by_op_seconds(of_product)


def test_products_of_few_rows_take_as_long_as_reading_the_matrix() -> None:
    row, rows, matrix = smelt.ones((1, 512)), smelt.ones((512, 512)), smelt.ones((512, 4096))
    few, many = [topological([(x @ matrix)._ref]) for x in (row, rows)]
    assert tiers.library_seconds(few) >= tiers.ELEMENT * 0.8 * matrix.size
    assert tiers.library_seconds(many) == pytest.approx(2 * tiers.PRODUCT * 512 * matrix.size, 1e-3)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.T, lambda x: x.reshape(2, -1), lambda x: x[:, 1:-1], lambda x: x[::-1],
        lambda x: smelt.broadcast_to(x[None], (3, *x.shape)), lambda x: x[smelt.array([3, 1])],
    ],
)  # fmt: skip
def test_views_take_no_time_for_what_they_do_not_read(function: Callable[[smelt.array], smelt.array]) -> None:
    found = [function(smelt.ones((n, n)))._ref for n in (100, 2000)]
    few, many = (tiers.op_by_op_seconds(topological([ref])) for ref in found)
    reading = tiers.ELEMENT * 2000 * 2000
    assert few <= many < reading / 20


def test_a_program_saves_what_a_run_takes_longer_than_its_libraries() -> None:
    structure = tiers.Structure()
    structure.own, structure.library = 0.5, 1.0
    assert [structure.saved(x) for x in (2.0, 1.25, 1.0, 4.0)] == [1.0, 0.25, 0.5 * tiers.LEAST, 2.0]


def test_another_process_may_have_to_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers, "_BACKGROUND", "smelt.no_such_module")
    assert tiers.cost.beside(100) == pytest.approx(tiers.cost.seconds(100) + tiers.LOADING)
    monkeypatch.setattr(tiers, "_BACKGROUND", "smelt")
    assert tiers.cost.beside(100) == tiers.cost.seconds(100)
