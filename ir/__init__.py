"""The `smelt` dialect: types, ops with all their rules, builder, text, NumPy interpreter.

This room imports no other. MLIR itself loads on first use (see `mlir.py`), so that importing
the op definitions, and with them `smelt`, stays cheap.
"""

from . import collector as _collector
from . import locks as _locks


def _import_libraries() -> None:
    """Packages in C that an interrupted import may leave unusable."""
    import ml_dtypes  # noqa: F401
    import numpy  # noqa: F401


with _collector.lasting():
    _locks.whole(_import_libraries)
