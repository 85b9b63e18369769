"""What Linux says of the processor that kernels are made for."""

from __future__ import annotations

import functools
from pathlib import Path

#: Vendors whose processors with AVX-512 LLVM gives whole registers unasked.
_WIDE_UNASKED = frozenset(("AuthenticAMD", "HygonGenuine"))


@functools.cache
def facts() -> dict[str, str]:
    """The lines of ``/proc/cpuinfo`` about the first processor, by name; none where there is no such file."""
    try:
        first = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").partition("\n\n")[0]
    except OSError:
        return {}
    lines = [line.partition(":") for line in first.splitlines()]
    return {name.strip(): value.strip() for name, _, value in lines}


@functools.cache
def flags() -> frozenset[str]:
    """The instructions that the processor has, by Linux's names."""
    return frozenset(facts().get("flags", "").split())


def is_wide_unasked() -> bool:
    """Whether LLVM uses the whole of the widest vector registers without being told to."""
    return "avx512f" in flags() and facts().get("vendor_id") in _WIDE_UNASKED
