"""How long a framework takes to import."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from ..workload import Workload


def importing(package: str):
    """A function that imports `package` in a new process."""

    def run(x):
        subprocess.run([sys.executable, "-c", f"import {package}"], check=True)
        return x

    return run


class Import(Workload, name="import"):
    """a new process that imports the framework; least: NumPy"""

    def arrays(self, rng):
        return [np.zeros(1, np.float32)]

    def expected(self, x):
        return x

    def least(self, np):
        return importing("numpy")

    def smelt(self, smelt):
        return importing("smelt")

    def mlx(self, mx):
        return importing("mlx.core")

    def torch(self, torch):
        return importing("torch")

    def jax(self, jax):
        return importing("jax.numpy")
