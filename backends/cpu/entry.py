"""Programs that the calling thread runs in one call of machine code, called from C (`entry.c`).

Python takes longer to make the buffers of small results and to write addresses into a table than such programs run.
Where the module in C was not built, and where SMELT_CORE is ``python``, `Buffer.empties` and `Program.run` do it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from smelt.ir.settings import settings

from ..buffer import Blank, Buffer, pool

#: ``run(inputs, arena)``, as `Program.run`; returns fresh buffers of the results, and None for others.
Run = Callable[[Sequence[Buffer], int], list[Buffer]]


def _native() -> Any:
    if settings.__dict__.get("core") == "python":
        return None
    try:
        found = importlib.import_module("smelt._entry")
    except ImportError:
        return None
    found.connect(Buffer, Buffer.empty, np.empty, settings)
    return found


_found = _native()


def entry(
    address: int, arguments: int, keeps_lock: bool, wide: bool, blanks: Sequence[Blank | None]
) -> Run | None:  # fmt: skip
    """What runs a function of machine code on buffers; None without a module in C.

    Args:
        address: of the function. arguments: their number.
        keeps_lock: whether it is so short that Python's lock is kept.
        wide: whether it takes the addresses of all arrays as one array.
        blanks: of the results; None of those that are an argument's memory, or another result's.
    """
    return None if _found is None else _found.Entry(address, arguments, keeps_lock, wide, tuple(blanks))


def fresh(blanks: tuple[Blank | None, ...]) -> list[Any]:
    """`Buffer.empties`, with None where there is None."""
    if _found is not None and not pool.limit:
        return _found.empties(blanks)  # type: ignore[no-any-return]
    made = iter(Buffer.empties([blank for blank in blanks if blank is not None]))
    return [None if blank is None else next(made) for blank in blanks]


def flushing() -> int:
    """The address of `flushing` in C; 0 without a module in C. See `subnormals`."""
    return 0 if _found is None else _found.flushing()


def check_signals() -> int:
    """The address of what runs handlers of signals in the mode of the caller; 0 without a module in C."""
    return 0 if _found is None else _found.check_signals()
