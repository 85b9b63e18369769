"""Random graphs by kernels for all sizes, against their ops one by one: operands lie anywhere, accesses are checked."""

from __future__ import annotations

import pytest

from ..backends.test_strided import check_graph

GRAPHS = 40_000
PARTS = 20
#: Graphs that are one program.
TOGETHER = 4


@pytest.mark.parametrize("part", range(PARTS))
def test_random_graphs(part, campaign):
    count = max(1, campaign.amount(GRAPHS) // PARTS // TOGETHER)
    first = 2_000_000 + part * (GRAPHS // PARTS)
    for i in range(count):
        seed = first + i * TOGETHER
        check_graph(range(seed, seed + TOGETHER), check=i % 2 == 1)
    campaign.ran("random graphs by kernels for all sizes", count * TOGETHER)
