"""All settings in one place, read from the environment once and changed through context managers.

===================  ========  =======================================================================
Variable             Default   Meaning
===================  ========  =======================================================================
SMELT_DEVICE         auto      default device: ``cpu``, ``reference`` (the NumPy interpreter), ``metal:sim``
                               (Metal's kernels on the CPU) or ``metal``; auto: metal where there is
                               one, else cpu
SMELT_DEBUG          0         1: verify after each pass; 2: also log compiles; 3: pass timings;
                               4: IR after each pass
SMELT_DUMP_IR        (none)    folder that receives the IR after each pass of each compile
SMELT_NUM_THREADS    all       threads of the cpu backend
SMELT_CACHE_SIZE     512       executables kept; the least recently used goes first
SMELT_POOL_BYTES     2 GiB     memory kept for reuse by the buffer pool; 0 means off
SMELT_DISABLE_COMPILE  0       1: ``smelt.compile`` returns functions unchanged
SMELT_SMALL_WORK     1048576   a lazy graph with less work than this many element operations runs op by
                               op, without a compile; 0 means off
SMELT_CXX            (none)    C++17 compiler of the Metal simulator; else c++, g++ or clang++, else the
                               ``ziglang`` package
SMELT_RACE           (none)    race mode of ``metal:sim``: run threads ``forward``, ``reverse`` or ``shuffled``, with
                               poisoned threadgroup memory and guard pages around buffers
SMELT_CACHE_DIR      (none)    folder that keeps compiled kernels; else one in the user's cache folder
===================  ========  =======================================================================
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@dataclasses.dataclass
class Settings:
    """Typed settings; see the module docstring."""

    device: str = "auto"
    debug: int = 0
    dump_ir: str = ""
    num_threads: int = 0
    cache_size: int = 512
    pool_bytes: int = 2 << 30
    disable_compile: bool = False
    small_work: int = 1 << 20
    cxx: str = ""
    race: str = ""
    cache_dir: str = ""


def _read() -> Settings:
    found = Settings()
    for field in dataclasses.fields(Settings):
        variable = f"SMELT_{field.name.upper()}"
        value = os.environ.get(variable)
        if value is None or value == "":
            continue
        default = field.default
        if isinstance(default, bool):
            setattr(found, field.name, value not in ("0", "false", "False"))
        elif isinstance(default, int):
            try:
                setattr(found, field.name, int(value))
            except ValueError:
                raise ValueError(f"{variable} must be an integer, is {value!r}") from None
        else:
            setattr(found, field.name, value)
    return found


#: The settings in force.
settings = _read()


@contextmanager
def override(**changes: Any) -> Iterator[Settings]:
    """Change settings inside a with block.

    >>> with override(debug=1) as s:
    ...     s.debug
    1
    """
    saved = {name: getattr(settings, name) for name in changes}
    try:
        for name, value in changes.items():
            setattr(settings, name, value)
        yield settings
    finally:
        for name, value in saved.items():
            setattr(settings, name, value)
