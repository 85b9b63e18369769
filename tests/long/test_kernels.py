"""Random graphs through kernels: arrays up to 10⁵ elements, several threads, every access checked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from smelt.backends.gpu.devices import GPUS
from smelt.ir.settings import override
from tests.backends.test_random_graphs import check_cpu, check_metal

from .conftest import Campaign

#: Graphs in one program; where seeds start, so that they are not those of `make test`.
CPU, METAL, FIRST = 2, 8, 1_000_000


@pytest.mark.parametrize("part", range(10))
def test_checked_kernels(part: int, campaign: Campaign) -> None:
    n = campaign.amount(4_000)
    with override(num_threads=1 + part % 4):
        for seed in range(FIRST + part * n, FIRST + (part + 1) * n, CPU):
            check_cpu(range(seed, seed + CPU), 100_000 if part % 2 else 5_000)
    campaign.ran("random graphs through checked CPU kernels", n)


@pytest.mark.parametrize("part", range(4))
def test_kernels_of_metal(part: int, campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(GPUS, "simulator", replace(GPUS["simulator"], groups=(1, 3, 7, 64)[part]))
    n = -(-campaign.amount(500) // METAL) * METAL
    for seed in range(FIRST + part * n, FIRST + (part + 1) * n, METAL):
        check_metal(range(seed, seed + METAL), 20_000 if part % 2 else 1_000)
    campaign.ran("random graphs through Metal's kernels", n)
