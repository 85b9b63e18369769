"""100,000 random graphs of every op through kernels: empty axes, ties, NaN, several threads, up to 100,000 elements."""

from __future__ import annotations

import pytest

from .programs import BATCH, run

GRAPHS = 100_000
PARTS = 50


@pytest.mark.parametrize("part", range(PARTS))
def test_random_graphs(part, campaign):
    count = -(-campaign.amount(GRAPHS) // PARTS // BATCH) * BATCH
    first = 1_000_000 + part * (GRAPHS // PARTS)
    found = run(first, count)
    campaign.ran("random graphs through kernels", found.ran)
    assert not found.texts, f"{len(found.texts)} problems\n\n" + "\n\n".join(found.texts[:10])
