"""What processes do that share a folder of programs and may be killed at any moment; see `test_disk_cache_kills`.

``python -m tests.runtime.kept_program SEED [once]`` writes, reads and deletes entries, and compiles and runs small
programs, for ever or once all that there are. It ends with an error where anything read or computed is wrong.
"""

from __future__ import annotations

import hashlib
import random
import sys

import numpy as np

import smelt
from smelt.ir.settings import settings
from smelt.runtime.disk import SUFFIX, disk

settings.tier = "program"

#: Entries and programs that the processes share.
ENTRIES, PROGRAMS = 60, 12
X = np.linspace(0.5, 1.5, 64, dtype=np.float32)


def content_of(number: int) -> bytes:
    """What belongs under a key: up to 200 kB."""
    block = hashlib.sha256(str(number).encode()).digest()
    return block * (1 + number * number * 2 % 6400)


def check_entry(number: int) -> None:
    found = disk.get(f"entry-{number}")
    assert found is None or found == content_of(number), f"entry {number} is wrong"


def check_program(number: int) -> bool:
    """Compute with a program; whether it came from disk."""
    hits = disk.hits
    found = smelt.compile(lambda x: smelt.sqrt(x * number + 1) - number)(smelt.array(X))
    np.testing.assert_allclose(np.array(found), np.sqrt(X * number + 1) - number, rtol=1e-5, atol=1e-5)
    return disk.hits > hits


def main(seed: int, once: bool) -> None:
    rng = random.Random(seed)
    if once:
        kept = sum(check_program(number) for number in range(PROGRAMS))
        for number in range(ENTRIES):
            check_entry(number)
        entries = disk.entries()
        assert all(disk.get(entry.name.removesuffix(SUFFIX)) is not None for entry in entries)
        disk.put("last", b"")  # whoever wrote before may have been killed before it deleted what is too much
        print(len(entries), kept, disk.damaged)
        return
    print("ready", flush=True)
    while True:
        number = rng.randrange(ENTRIES)
        what = rng.random()
        if what < 0.5:
            disk.put(f"entry-{number}", content_of(number))
        elif what < 0.9:
            check_entry(number)
        elif what < 0.92:
            disk.drop(f"entry-{number}")
        else:
            check_program(number % PROGRAMS)
        assert disk.damaged == 0, "an entry was damaged"


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:] == ["once"])
