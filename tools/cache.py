"""`smelt cache`: the compiled programs that are kept on disk."""

from __future__ import annotations

import argparse
import time

from smelt.ir.settings import settings
from smelt.runtime.disk import disk


def cache(options: argparse.Namespace) -> int:
    """Show what is there, or delete it; the exit code."""
    if disk.place is None:
        print("there is no folder for programs here: set SMELT_CACHE_DIR")
        return 1
    if options.clear:
        entries = disk.entries()
        count = disk.clear()
        size = sum(entry.nbytes for entry in entries)
        print(f"deleted {count} program{'s' * (count != 1)}, {size / 1e6:,.1f} MB, of {disk.place}")
        return 0
    entries = disk.entries()
    size = sum(entry.nbytes for entry in entries)
    print(f"folder    {disk.place}{'' if settings.cache else ' (off: SMELT_CACHE=0)'}")
    print(f"programs  {len(entries)}, {size / 1e6:,.1f} MB of at most {settings.cache_disk_bytes / 1e6:,.1f} MB")
    if entries:
        first, last = (time.strftime("%Y-%m-%d %H:%M", time.localtime(e.used)) for e in (entries[0], entries[-1]))
        print(f"used      between {first} and {last}")
    return 0
