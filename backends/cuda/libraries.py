"""NVIDIA's libraries: from their packages on PyPI, or from the system."""

from __future__ import annotations

import ctypes
import ctypes.util
import glob
import os
import sys


def load(name: str) -> ctypes.CDLL | None:
    """A library, loaded; None where it is not installed.

    Args:
        name: what stands between ``lib`` and ``.so`` in the file's name: "nvrtc", "cublasLt", ...
    """
    pattern = f"lib{name}.so.*"
    places = [path for root in sys.path for path in glob.glob(os.path.join(root, "nvidia", "*", "lib", pattern))]
    places += sorted(glob.glob(f"/usr/local/cuda*/lib64/{pattern}"), reverse=True)
    system = ctypes.util.find_library(name)
    for place in [*places, *([system] if system else [])]:
        try:
            return ctypes.CDLL(place)
        except OSError:
            continue
    return None
