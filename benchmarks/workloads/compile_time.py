"""How long the first call takes."""

from __future__ import annotations

import math

import numpy as np

from ..workload import Workload


class _FirstCall(Workload):
    def arrays(self, rng):
        return [rng.standard_normal((1000, 100), np.float32)]

    def expected(self, x):
        erf = np.vectorize(math.erf)
        return x * (1 + erf(x * math.sqrt(0.5))) / (2 + self.salt)

    def smelt(self, smelt):
        scale = 2 + self.salt
        return smelt.compile(lambda x: x * (1 + smelt.erf(x * math.sqrt(0.5))) / scale)

    def mlx(self, mx):
        scale = 2 + self.salt
        return mx.compile(lambda x: x * (1 + mx.erf(x * math.sqrt(0.5))) / scale)

    def torch_compile(self, torch):
        scale = 2 + self.salt
        return torch.compile(lambda x: x * (1 + torch.erf(x * math.sqrt(0.5))) / scale)

    def jax(self, jax):
        scale = 2 + self.salt
        return jax.jit(lambda x: x * (1 + jax.scipy.special.erf(x * math.sqrt(0.5))) / scale)


class CompileTime(_FirstCall, name="compile"):
    """first call of a new one-kernel function (GELU, 1000×100), in a warm process"""

    making = True


class FirstCall(_FirstCall, name="first-call"):
    """the first call of all (GELU, 1000×100) after the import, in a new process"""

    fresh_process = True
