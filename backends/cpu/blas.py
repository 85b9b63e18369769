"""The BLAS: found, tried, and loaded. What programs call of it stands in `products`."""

from __future__ import annotations

import ctypes
import functools
import os
import warnings
from dataclasses import dataclass
from typing import Any

from smelt.ir import locks

from . import blas_check


@dataclass(frozen=True)
class Library:
    """A loaded BLAS with 64-bit integers."""

    handle: Any
    prefix: str
    suffix: str

    def symbol(self, name: str) -> str:
        return f"{self.prefix}cblas_{name}{self.suffix}"

    def address(self, symbol: str) -> int:
        return ctypes.cast(getattr(self.handle, symbol), ctypes.c_void_p).value or 0

    def core(self) -> str:
        """What the library takes the processor for."""
        name = getattr(self.handle, f"{self.prefix}openblas_get_corename{self.suffix}")
        name.restype = ctypes.c_char_p
        return (name() or b"").decode()

    def wrong(self) -> list[str]:
        """Functions whose products are wrong here."""
        return blas_check.wrong_products(lambda name: self.address(self.symbol(name)))


@functools.cache
def library() -> Library | None:
    """scipy-openblas64, or None where it is not installed, or multiplies wrong whatever it takes the processor for.

    Warns (RuntimeWarning) when its own choice of kernels gives wrong products.
    """
    return locks.whole(_find)


def _find() -> Library | None:
    try:
        import scipy_openblas64
    except ImportError:
        return None
    folder = scipy_openblas64.get_lib_dir()
    for name in sorted(os.listdir(folder)):
        if name.startswith("libscipy_openblas64_") and name.endswith((".so", ".dylib", ".dll")):
            path = os.path.join(folder, name)
            try:
                return _right(_load(path), path)
            except (OSError, AttributeError):
                continue
    return None


def _load(path: str) -> Library:
    found = Library(ctypes.CDLL(path), "scipy_", "64_")
    found.handle.scipy_openblas_set_num_threads64_(1)
    found.address(found.symbol("sgemm"))
    return found


def _right(found: Library, path: str) -> Library | None:
    """The library, if it multiplies right; else loaded once more for a plain processor, with a warning."""
    wrong = found.wrong()
    if not wrong:
        return found
    chosen, plain = found.core(), blas_check.plain_core()
    problem = f"the BLAS gives wrong products on this processor, which it takes for {chosen} ({', '.join(wrong)})"
    again = _load_for(path, plain) if plain else None
    if again is not None and not again.wrong():
        warnings.warn(f"{problem}; smelt uses its kernels for {again.core()}, which are right", RuntimeWarning, 4)
        return again
    hint = "set OPENBLAS_CORETYPE to a kind that it is right for" if plain is None else "please report it"
    warnings.warn(f"{problem}; smelt does without, which is slow: {hint}", RuntimeWarning, 4)
    return None


def _load_for(path: str, core: str) -> Library | None:
    """The library once more, for another kind of processor: it looks for that when it is loaded. A copy, as the same
    file would be the library that is there."""
    import shutil
    import tempfile  # both for few processors only

    os.environ["OPENBLAS_CORETYPE"] = core
    try:
        with tempfile.TemporaryDirectory(prefix="smelt-") as folder:
            return _load(shutil.copy(path, folder))
    except (OSError, AttributeError):
        return None
    finally:
        del os.environ["OPENBLAS_CORETYPE"]


def symbols() -> dict[str, int]:
    """Addresses of what compiled programs call."""
    found = library()
    if found is None:
        return {}
    names = [found.symbol(t + n) for t in "sdcz" for n in ("gemm", "gemv", "syrk")]
    return {name: found.address(name) for name in names}
