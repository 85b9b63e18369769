"""How many random examples a test takes. SMELT_TEST_EXAMPLES multiplies them: `make test-long` takes many more."""

from __future__ import annotations

import os

FACTOR = float(os.environ.get("SMELT_TEST_EXAMPLES", "1"))


def examples(count: int) -> int:
    """`count`, multiplied; at least one."""
    return max(1, int(count * FACTOR))
