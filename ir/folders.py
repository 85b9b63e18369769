"""Where what is kept across processes lies."""

from __future__ import annotations

import os
import sys

from .settings import settings


def cache_place() -> str | None:
    """SMELT_CACHE_DIR, else smelt's part of the user's cache folder; None where the user has no home."""
    if settings.cache_dir:
        return os.fspath(settings.cache_dir)
    given = None if sys.platform == "darwin" else os.environ.get("XDG_CACHE_HOME")
    home = os.path.expanduser("~")
    if given:
        return os.path.join(given, "smelt")
    if home == "~":
        return None
    return os.path.join(home, *(("Library", "Caches") if sys.platform == "darwin" else (".cache",)), "smelt")
