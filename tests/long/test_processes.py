"""Threads, forks and interrupts, in processes of their own. Short forms are in tests/runtime."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import pytest

from ..runtime.test_disk_cache_kills import TIGHT, WIDE, killed
from ..runtime.test_fork import forks
from ..runtime.test_interrupted import interrupted
from ..runtime.test_many_threads import many_threads
from .conftest import Campaign


def test_sixteen_threads(campaign: Campaign) -> None:
    """Ten minutes, in processes of a minute each, whose collections of garbage differ."""
    seconds = campaign.amount(600)
    for seed in range(max(1, round(seconds / 60))):
        campaign.ran("rounds of work in sixteen threads", many_threads(16, min(seconds, 60), seed))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_forks_while_others_evaluate(campaign: Campaign) -> None:
    count = campaign.amount(200)
    forks(count)
    campaign.ran("forks while three threads compile and evaluate", count)


@pytest.mark.parametrize("most", [TIGHT, WIDE])
def test_kills_of_writers_of_the_disk_cache(most: int, campaign: Campaign, tmp_path: Path) -> None:
    """Eight processes at once; two hundred are killed in all."""
    count = campaign.amount(100)
    entries, programs, damaged = killed(tmp_path, most, count, processes=8, seconds=1.0)
    assert entries and (programs or most == TIGHT) and not damaged
    campaign.ran("processes killed while they wrote programs to disk", count)


PHASES = {"importing": 0.35, "compiling": 1.2, "looping": 1.0, "evaluating": 1.5}


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGPROF")
@pytest.mark.parametrize("phase", PHASES)
def test_interrupts_at_random_moments(phase: str, campaign: Campaign) -> None:
    rng = random.Random(phase)
    count = campaign.amount(50)
    for _ in range(count):
        interrupted(phase, rng.uniform(0.005, PHASES[phase]))
    campaign.ran("interrupts of a fresh process", count)
