"""Texts of earlier versions: ops that have been removed since are read as the ops that replaced them."""

from __future__ import annotations

import re
from collections.abc import Collection

#: How an operation of each removed op is written, from its name to its attributes, and what stands for that now. Types
#: of operands and results follow, and are the same.
REMOVED = {
    "random_split": (
        r"\((%[\w$.#-]+)\) \{num = (\d+) : i64\}",
        r'"smelt.random_bits"(\1) {shape = array<i64: \2, 2>, width = 32 : i64}',
    ),
}


def updated(source: str, unknown: Collection[str]) -> str:
    """A text with ops of today in place of those removed ones among `unknown`."""
    for name in REMOVED.keys() & set(unknown):
        written, now = REMOVED[name]
        source = re.sub(f'"smelt\\.{name}"{written}', now, source)
    return source
