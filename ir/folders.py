"""Where what is kept across processes lies."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from .settings import settings


def cache_place() -> Path | None:
    """SMELT_CACHE_DIR, else smelt's part of the user's cache folder; None where the user has no home."""
    if settings.cache_dir:
        return Path(settings.cache_dir)
    try:
        if sys.platform == "darwin":
            return Path.home() / "Library" / "Caches" / "smelt"
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "smelt"
    except RuntimeError:  # no home
        return None
