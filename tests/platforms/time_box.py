"""A pytest plugin: tests that have not begun after SMELT_TEST_SECONDS are skipped, in every worker.

python -m pytest -p tests.platforms.time_box
"""

from __future__ import annotations

import os
import time

import pytest

_END = time.monotonic() + float(os.environ.get("SMELT_TEST_SECONDS") or "inf")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if time.monotonic() > _END:
        pytest.skip("the time is up")
