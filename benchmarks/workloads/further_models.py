"""What the other examples compute: sentence embeddings, a residual network, private gradients, a Gaussian process."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..workload import Workload
from .example_models import _Model, _Step
from .models import RATE


class Embeddings(_Model, name="embeddings"):
    """two layers of examples/sentence_embeddings.py (12×16 tokens of 384), compiled"""

    DIMS, HEADS = 384, 12

    def shapes(self):
        n = self.DIMS
        return [shape for _ in range(2) for shape in ((n, 3 * n), (n, n), (n, 4 * n), (4 * n, n))]

    def batch(self, rng):
        return rng.standard_normal((12, 16, self.DIMS), np.float32)

    def function(self, f, x, *weights):
        rows, length, dims = x.shape

        def norm(x):
            centered = x - f.mean(x)
            return centered / f.sqrt(f.mean(centered * centered) + 1e-12)

        for i in range(0, len(weights), 4):
            qkv, out, up, down = weights[i : i + 4]
            parts = (x @ qkv).reshape(rows, length, 3, self.HEADS, dims // self.HEADS)
            q, k, v = (f.transpose(parts[:, :, j], (0, 2, 1, 3)) for j in range(3))
            scores = q @ f.transpose(k, (0, 1, 3, 2)) * (dims // self.HEADS) ** -0.5
            shares = f.exp(scores - f.max(scores))
            found = f.transpose(shares / f.sum(shares) @ v, (0, 2, 1, 3)).reshape(rows, length, dims)
            x = norm(x + found @ out)
            y = x @ up
            x = norm(x + (0.5 * y * (1 + f.tanh(0.7978845608 * (y + 0.044715 * y * y * y)))) @ down)
        return x


class _Residual:
    """Two blocks of examples/resnet_digits.py without their normalizations."""

    def shapes(self):
        return [(32, 3, 3, 32)] * 4

    def arrays(self, rng):
        weights = [(rng.standard_normal(s) / (9 * s[3]) ** 0.5).astype(np.float32) for s in self.shapes()]
        return [self.batch(rng), *weights]

    def batch(self, rng):
        return rng.standard_normal((64, 8, 8, 32), np.float32)

    def function(self, f, x, *weights):
        for first, second in zip(weights[::2], weights[1::2]):
            x = f.relu(x + f.conv(f.relu(f.conv(x, first)), second))
        return x


class Residual(_Residual, _Model, name="resnet"):
    """two residual blocks (64 images of 8×8×32), compiled"""


class ResidualStep(_Residual, _Step, name="resnet-step"):
    """a training step of these blocks"""


class Private(Workload, name="private-step"):
    """examples/private_gradients.py: gradients of 256 examples, each clipped, and new weights"""

    table = "programs"
    rtol, atol = 1e-3, 1e-5

    def arrays(self, rng):
        shapes = [(256, 64), (64, 128), (128, 10)]
        return [(rng.standard_normal(s) / s[-1] ** 0.5).astype(np.float32) for s in shapes]

    def expected(self, x, a, b):
        x, a, b = (v.astype(np.float64) for v in (x, a, b))
        h = np.tanh(x @ a)
        up = 2 * (h @ b)
        of_b = h[:, :, None] * up[:, None]
        of_a = x[:, :, None] * ((up @ b.T) * (1 - h * h))[:, None]
        size = np.sqrt((of_a**2).sum((1, 2)) + (of_b**2).sum((1, 2)))
        factor = np.minimum(1, 1 / size)[:, None, None]
        return np.concatenate([(w - RATE * (factor * g).mean(0)).ravel() for w, g in ((a, of_a), (b, of_b))])

    @staticmethod
    def _step(grad: Any, vmap: Any, tanh: Any, minimum: Any, flat: Any) -> Any:
        each = vmap(grad(lambda a, b, x: (tanh(x @ a) @ b * (tanh(x @ a) @ b)).sum(), (0, 1)), (None, None, 0))

        def step(x, a, b):
            gradients = each(a, b, x)
            size = sum((g * g).sum((1, 2)) for g in gradients) ** 0.5
            factor = minimum(1 / size).reshape(-1, 1, 1)
            return flat([w - RATE * (factor * g).mean(0) for w, g in zip((a, b), gradients)])

        return step

    def _like_numpy(self, module: Any, grad: Any, vmap: Any) -> Any:
        def flat(xs):
            return module.concatenate([x.reshape(-1) for x in xs])

        return self._step(grad, vmap, module.tanh, lambda x: module.minimum(x, 1.0), flat)

    def smelt(self, smelt):
        return smelt.compile(self._like_numpy(smelt, smelt.grad, smelt.vmap))

    def mlx(self, mx):
        return mx.compile(self._like_numpy(mx, mx.grad, mx.vmap))

    def jax(self, jax):
        return jax.jit(self._like_numpy(jax.numpy, jax.grad, jax.vmap))

    def torch(self, torch):
        def flat(xs):
            return torch.cat([x.reshape(-1) for x in xs])

        return self._step(torch.func.grad, torch.func.vmap, torch.tanh, lambda x: x.clamp(max=1.0), flat)

    def torch_compile(self, torch):
        return torch.compile(self.torch(torch))


class Process(Workload, name="gp-step"):
    """examples/gaussian_process.py: the likelihood of 200 points, its gradients by two parameters"""

    table = "programs"
    rtol, atol = 1e-2, 1e-2

    def arrays(self, rng):
        x = np.sort(rng.uniform(-3, 3, (200, 1)), axis=0).astype(np.float32)
        y = (np.sin(2 * x[:, 0]) + 0.1 * rng.standard_normal(200)).astype(np.float32)
        return [x, y, np.array([0.0, -1.0], np.float32)]

    def expected(self, x, y, p):
        x, y, p = (v.astype(np.float64) for v in (x, y, p))
        distances = (x - x.T) ** 2 * np.exp(-2 * p[0])
        smooth, noise = np.exp(-0.5 * distances), np.exp(2 * p[1]) * np.eye(len(x))
        inverse = np.linalg.inv(smooth + noise)
        inner = inverse - np.outer(inverse @ y, inverse @ y)
        return np.array([0.5 * (inner * d).sum() for d in (distances * smooth, 2 * noise)])

    def _gradient(self, f: Any, linalg: Any, grad: Any, solve: Any) -> Any:
        def loss(p, x, y):
            distances = (x - x.reshape(1, -1)) ** 2 * f.exp(-2 * p[0])
            covariance = f.exp(-0.5 * distances) + f.exp(2 * p[1]) * f.eye(x.shape[0])
            lower = linalg.cholesky(covariance)
            half = solve(lower, y.reshape(-1, 1))
            return 0.5 * (half * half).sum() + f.log(f.diagonal(lower)).sum()

        gradient = grad(loss)
        return lambda x, y, p: gradient(p, x, y)

    def smelt(self, smelt):
        solve = smelt.linalg.solve_triangular
        return smelt.compile(self._gradient(smelt, smelt.linalg, smelt.grad, lambda a, b: solve(a, b, upper=False)))

    def jax(self, jax):
        solve = jax.scipy.linalg.solve_triangular
        return jax.jit(self._gradient(jax.numpy, jax.numpy.linalg, jax.grad, lambda a, b: solve(a, b, lower=True)))

    def torch(self, torch):
        solve = torch.linalg.solve_triangular
        return self._gradient(torch, torch.linalg, torch.func.grad, lambda a, b: solve(a, b, upper=False))
