"""The amount of a campaign, and a line about each in the summary."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

import pytest

#: What part of the full campaigns to run; several hours on two cores are spent well with 5.
SCALE = float(os.environ.get("SMELT_LONG_SCALE", "1"))

_KEY = "campaign"


@dataclass
class Campaign:
    """How much to do, and what was done.

        def test_mutated_files(campaign):
            n = campaign.amount(100_000)
            ...
            campaign.ran("mutated files", n)
    """

    record: Callable[[str, object], None]

    def amount(self, full: float) -> int:
        """`full`, scaled by SMELT_LONG_SCALE; at least one. Also for seconds."""
        return max(1, round(full * SCALE))

    def ran(self, what: str, count: float) -> None:
        """Count things that ran; tests that name the same things share a line of the summary."""
        self.record(_KEY, (what, count))


@pytest.fixture
def campaign(record_property: Callable[[str, object], None]) -> Campaign:
    return Campaign(record_property)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    counts: dict[str, float] = {}
    seconds: dict[str, float] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", None) == "call":
                named = [value for key, value in report.user_properties if key == _KEY]
                for what, count in named:
                    counts[what] = counts.get(what, 0) + count
                for what in {what for what, _ in named}:
                    seconds[what] = seconds.get(what, 0) + report.duration
    if counts:
        terminalreporter.section(f"campaigns at scale {SCALE:g}")
        for what, count in sorted(counts.items()):
            terminalreporter.write_line(f"{count:12,.0f} {what} in {seconds[what]:,.0f} s of one process")
