"""Elementary functions, expanded into arithmetic that every target has in hardware.

Each takes ``(k, x, ...)``, a `ScalarBuilder` and float32 or float64 `Scalar`s (half precision is held as
float32), and emits straight-line arith/math ops: fma, select, bitcasts and integer arithmetic, no
calls and no branches, so that loops around them vectorize. float32 code uses no float64. The
``complex_`` functions take and return complex numbers. ``docs/accuracy.md`` has the measured errors.
The first use of one loads all: `import smelt` needs none.
"""

from typing import TYPE_CHECKING, Any

from .. import locks

if TYPE_CHECKING:
    from .functions import *  # noqa: F403


def __getattr__(name: str) -> Any:
    if name[:2] == "__" and name != "__all__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = locks.loaded(f"{__name__}.functions")
    globals().update({known: getattr(found, known) for known in found.__all__})
    return getattr(found, name)
