"""Steps of training and what they are made of: a perceptron, an optimizer of many arrays, attention, losses, products
with what follows them."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from ..workload import Workload

RATE, DECAY, BETAS, EPSILON = 1e-3, 0.01, (0.9, 0.999), 1e-8
LAYERS, BATCH = (784, 1024, 1024, 10), 256
ARRAYS, SIDE = 100, 256


def _adamw(w: Any, m: Any, v: Any, g: Any, sqrt: Any) -> tuple[Any, Any, Any]:
    m = BETAS[0] * m + (1 - BETAS[0]) * g
    v = BETAS[1] * v + (1 - BETAS[1]) * g * g
    return w * (1 - RATE * DECAY) - RATE * m / (sqrt(v) + EPSILON), m, v


def _sums(module: Any) -> tuple[Any, Any]:
    """The largest number and the sum of each row."""
    most = module.amax if hasattr(module, "amax") else module.max
    return (lambda x: most(x, axis=-1, keepdims=True)), (lambda x: module.sum(x, axis=-1, keepdims=True))


def _cross_entropy(module: Any, logits: Any, one_hot: Any) -> Any:
    most, total = _sums(module)
    shifted = logits - most(logits)
    return module.mean(module.log(total(module.exp(shifted))) - total(shifted * one_hot))


class _Compiled(Workload):
    """One text for all frameworks: `run` gets the module with NumPy's names, and the arrays."""

    rtol, atol = 1e-4, 1e-4

    def run(self, module: Any, *arrays: Any) -> Any:
        raise NotImplementedError

    def expected(self, *arrays: np.ndarray) -> Any:
        return self.run(np, *(a.astype(np.float64) for a in arrays))

    def smelt(self, smelt: Any) -> Any:
        return smelt.compile(lambda *arrays: self.run(smelt, *arrays))

    def mlx(self, mx: Any) -> Any:
        return mx.compile(lambda *arrays: self.run(mx, *arrays))

    def torch(self, torch: Any) -> Any:
        return lambda *arrays: self.run(torch, *arrays)

    def torch_compile(self, torch: Any) -> Any:
        return torch.compile(lambda *arrays: self.run(torch, *arrays))

    def jax(self, jax: Any) -> Any:
        return jax.jit(lambda *arrays: self.run(jax.numpy, *arrays))

    def check(self, result: Any, *arrays: np.ndarray) -> None:
        expected = self.expected(*arrays)
        pairs = zip(result, expected) if isinstance(result, list) else [(result, expected)]
        for found, wanted in pairs:
            np.testing.assert_allclose(found, wanted, rtol=self.rtol, atol=self.atol)


class _Step(_Compiled):
    """A loss and what is made of its gradients in all arrays after the first `data`."""

    data = 1

    def loss(self, module: Any, *arrays: Any) -> Any:
        raise NotImplementedError

    def gradients(self, *arrays: np.ndarray) -> tuple[Any, list[np.ndarray]]:
        """The loss and its gradients by NumPy."""
        raise NotImplementedError

    def after(self, module: Any, loss: Any, gradients: Any, arrays: Any, state: Any) -> Any:
        return (loss, *gradients)

    def expected(self, *arrays: np.ndarray) -> Any:
        wide = [a.astype(np.float64) for a in arrays]
        weights, state = self._split(wide)
        loss, found = self.gradients(*wide[: self.data], *weights)
        return self.after(np, loss, found, weights, state)

    def _split(self, arrays: Any) -> tuple[Any, Any]:
        """Weights, and what a step has besides."""
        return arrays[self.data :], []

    def _by(self, module: Any, transform: Any) -> Any:
        def step(*arrays: Any) -> Any:
            weights, state = self._split(arrays)
            numbers = tuple(range(self.data, self.data + len(weights)))
            loss, found = transform(lambda *some: self.loss(module, *some), numbers)(*arrays[: self.data], *weights)
            found = found if isinstance(found, (list, tuple)) else [found]
            return self.after(module, loss, found, weights, state)

        return step

    def smelt(self, smelt: Any) -> Any:
        return smelt.compile(self._by(smelt, smelt.value_and_grad))

    def mlx(self, mx: Any) -> Any:
        return mx.compile(self._by(mx, mx.value_and_grad))

    def jax(self, jax: Any) -> Any:
        return jax.jit(self._by(jax.numpy, jax.value_and_grad))

    def _torch_step(self, torch: Any, made: Any, after: Any) -> Any:
        def step(*arrays: Any) -> Any:
            weights, state = self._split(arrays)
            tracked = [w.detach().requires_grad_() for w in weights]
            with torch.enable_grad():
                loss = made(*arrays[: self.data], *tracked)
                found = torch.autograd.grad(loss, tracked)
            return after(torch, loss.detach(), found, weights, state)

        return step

    def torch(self, torch: Any) -> Any:
        return self._torch_step(torch, lambda *some: self.loss(torch, *some), self.after)

    def torch_compile(self, torch: Any) -> Any:
        loss = torch.compile(lambda *some: self.loss(torch, *some))
        return self._torch_step(torch, loss, torch.compile(self.after))


class PerceptronStep(_Step, name="perceptron-adamw"):
    """a training step of a perceptron (784, 1024, 1024, 10; 256 examples) by AdamW"""

    data = 2
    rtol, atol = 1e-3, 1e-4

    def arrays(self, rng):
        shapes = [shape for i, o in itertools.pairwise(LAYERS) for shape in ((i, o), (o,))]
        weights = [(rng.standard_normal(s, np.float32) * s[0] ** -0.5).astype(np.float32) for s in shapes]
        moments = [rng.random(s, np.float32) * 1e-2 for _ in range(2) for s in shapes]
        one_hot = np.eye(LAYERS[-1], dtype=np.float32)[rng.integers(0, LAYERS[-1], BATCH)]
        return [rng.standard_normal((BATCH, LAYERS[0]), np.float32), one_hot, *weights, *moments]

    def _split(self, arrays):
        count = 2 * len(LAYERS) - 2
        return arrays[self.data : self.data + count], arrays[self.data + count :]

    def loss(self, module, x, one_hot, *weights):
        for w, b in zip(weights[:-2:2], weights[1:-2:2]):
            x = x @ w + b
            x = module.where(x > 0, x, 0.0)
        return _cross_entropy(module, x @ weights[-2] + weights[-1], one_hot)

    def gradients(self, x, one_hot, *weights):
        inputs, found = [x], []
        for w, b in zip(weights[:-2:2], weights[1:-2:2]):
            inputs.append(np.maximum(inputs[-1] @ w + b, 0))
        logits = inputs[-1] @ weights[-2] + weights[-1]
        shares = np.exp(logits - logits.max(-1, keepdims=True))
        ct = (shares / shares.sum(-1, keepdims=True) - one_hot) / len(x)
        for h, w in zip(reversed(inputs), reversed(weights[::2])):
            found = [h.T @ ct, ct.sum(0), *found]
            ct = (ct @ w.T) * (h > 0)
        return _cross_entropy(np, logits, one_hot), found

    def after(self, module, loss, gradients, weights, state):
        first, second = state[: len(weights)], state[len(weights) :]
        new = [_adamw(*each, module.sqrt) for each in zip(weights, first, second, gradients)]
        return (loss, *(x for each in new for x in each))


class ManyArrays(_Compiled, name="adamw-100"):
    """AdamW of 100 arrays of 256² f32"""

    def arrays(self, rng):
        return [rng.random((SIDE, SIDE), np.float32) for _ in range(4 * ARRAYS)]

    def run(self, module, *arrays):
        kinds = (arrays[i * ARRAYS : (i + 1) * ARRAYS] for i in range(4))
        return [x for each in zip(*kinds) for x in _adamw(*each, module.sqrt)]


class Attention(_Compiled, name="attention-primitives"):
    """attention from primitives, 4×8×512×64 f32, compiled"""

    def arrays(self, rng):
        return [rng.standard_normal((4, 8, 512, 64), np.float32) for _ in range(3)]

    def run(self, module, q, k, v):
        most, total = _sums(module)
        scores = q @ module.swapaxes(k, -1, -2) * 64**-0.5
        weights = module.exp(scores - most(scores))
        return (weights / total(weights)) @ v


class Distances(_Compiled, name="distances-product"):
    """exp(−squared distances) of 50,000×64 to 256×64 f32, with a product by 256×8"""

    def arrays(self, rng):
        shapes = ((50_000, 64), (256, 64), (256, 8))
        return [(rng.standard_normal(s, np.float32) / 8).astype(np.float32) for s in shapes]

    def run(self, module, x, centers, w):
        _, total = _sums(module)
        apart = total(x * x) + total(centers * centers).T - 2 * (x @ centers.T)
        return module.exp(-apart) @ w


class GeluOfProduct(_Compiled, name="gelu-product"):
    """GELU(x·w + b), 1024×1024×4096 f32, compiled"""

    def arrays(self, rng):
        shapes = ((1024, 1024), (1024, 4096), (4096,))
        return [(rng.standard_normal(s, np.float32) / 32).astype(np.float32) for s in shapes]

    def run(self, module, x, w, b):
        y = x @ w + b
        return 0.5 * y * (1 + module.tanh(math.sqrt(2 / math.pi) * (y + 0.044715 * y * y * y)))


class NormOfRows(_Compiled, name="rms-norm-product"):
    """RMS norm of 2048×1024 f32 with weights, and its product with 1024², compiled"""

    def arrays(self, rng):
        shapes = ((2048, 1024), (1024,), (1024, 1024))
        return [(rng.standard_normal(s, np.float32) / 8).astype(np.float32) for s in shapes]

    def run(self, module, x, scale, w):
        _, total = _sums(module)
        return (x / module.sqrt(total(x * x) / x.shape[-1] + 1e-5) * scale) @ w


class Transposes(_Compiled, name="transposes"):
    """transposes of 4096×4096 and 64×128×512×4 (axes 0, 2, 1, 3) f32"""

    def arrays(self, rng):
        return [rng.standard_normal(s, np.float32) for s in ((4096, 4096), (64, 128, 512, 4))]

    def run(self, module, x, y):
        turned = module.swapaxes(x, 0, 1), module.swapaxes(y, 1, 2)
        if hasattr(module, "clone"):  # else PyTorch's are views
            return tuple(t.contiguous() for t in turned)
        contiguous = getattr(module, "contiguous", None)
        return tuple(contiguous(t) for t in turned) if contiguous else turned


class CrossEntropy(_Step, name="cross-entropy"):
    """cross entropy of 4096×8192 f32 and its gradient, compiled"""

    atol = 1e-7

    def arrays(self, rng):
        one_hot = np.eye(8192, dtype=np.float32)[rng.integers(0, 8192, 4096)]
        return [one_hot, rng.standard_normal((4096, 8192), np.float32)]

    def loss(self, module, one_hot, logits):
        return _cross_entropy(module, logits, one_hot)

    def gradients(self, one_hot, logits):
        shares = np.exp(logits - logits.max(-1, keepdims=True))
        return _cross_entropy(np, logits, one_hot), [(shares / shares.sum(-1, keepdims=True) - one_hot) / len(logits)]
