"""Models of further examples: what they compute, and a step of training. See `models` for the decoder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..workload import Workload
from .models import _check_slopes, _NumPyLike, _stepped, _Torch


class _Model(Workload):
    """A function of a batch and weights, in NumPy's names."""

    rtol, atol = 1e-3, 1e-4
    table = "programs"

    def function(self, f: Any, x: Any, *weights: Any) -> Any:
        raise NotImplementedError

    def shapes(self) -> list[tuple[int, ...]]:
        raise NotImplementedError

    def batch(self, rng: np.random.Generator) -> np.ndarray:
        raise NotImplementedError

    def arrays(self, rng):
        weights = [(0.7 * rng.standard_normal(s) / s[0] ** 0.5).astype(np.float32) for s in self.shapes()]
        return [self.batch(rng), *weights]

    def expected(self, *arrays):
        return self.function(_NumPyLike(np), *arrays)

    def smelt(self, smelt):
        return smelt.compile(lambda *arrays: self.function(_NumPyLike(smelt), *arrays))

    def mlx(self, mx):
        return mx.compile(lambda *arrays: self.function(_NumPyLike(mx), *arrays))

    def torch(self, torch):
        return lambda *arrays: self.function(_Torch(torch), *arrays)

    def torch_compile(self, torch):
        return torch.compile(self.torch(torch))

    def jax(self, jax):
        return jax.jit(lambda *arrays: self.function(_NumPyLike(jax.numpy), *arrays))


class _Step(_Model):
    """Loss, gradients and new weights of such a function; the loss is the mean of its squares."""

    def expected(self, *arrays):
        raise NotImplementedError  # `check` looks at slopes

    def check(self, result, *arrays):
        """The slope along a direction beside a difference, in float64."""
        _check_slopes(self.function, result, arrays)

    def _of(self, f: Any, grad: Callable[..., Any]) -> Callable[..., Any]:
        def step(x: Any, *weights: Any) -> Any:
            places = tuple(range(len(weights)))
            gradients = grad(lambda *ws: (self.function(f, x, *ws) ** 2).mean(), places)(*weights)
            return _stepped(f, weights, gradients)

        return step

    def smelt(self, smelt):
        return smelt.compile(self._of(_NumPyLike(smelt), smelt.grad))

    def mlx(self, mx):
        return mx.compile(self._of(_NumPyLike(mx), mx.grad))

    def jax(self, jax):
        return jax.jit(self._of(_NumPyLike(jax.numpy), jax.grad))

    def _torch_step(self, torch, function):
        f = _Torch(torch)

        def step(x, *weights):
            weights = [w.detach().requires_grad_() for w in weights]
            with torch.enable_grad():
                gradients = torch.autograd.grad((function(x, *weights) ** 2).mean(), weights)
            return _stepped(f, [w.detach() for w in weights], gradients)

        return step

    def torch(self, torch):
        return self._torch_step(torch, _Model.torch(self, torch))

    def torch_compile(self, torch):
        return self._torch_step(torch, torch.compile(_Model.torch(self, torch)))


class _Flow:
    """Eight couplings of examples/normalizing_flow.py: logarithms of densities, up to a constant."""

    def shapes(self):
        return [shape for _ in range(8) for shape in ((1, 64), (64, 64), (64, 2))]

    def batch(self, rng):
        return rng.standard_normal((256, 2), np.float32)

    def function(self, f, x, *weights):
        def silu(y):
            return y / (1 + f.exp(-y))

        one, two, total = x[:, :1], x[:, 1:], 0.0
        for i in range(0, len(weights), 3):
            first, inner, last = weights[i : i + 3]
            terms = silu(silu(one @ first) @ inner) @ last
            scale = f.tanh(terms[:, :1])
            one, two = (two - terms[:, 1:]) * f.exp(-scale), one
            total = total - scale
        return total - 0.5 * (one * one + two * two)


class Flow(_Flow, _Model, name="flow"):
    """a normalizing flow of eight couplings (256 points), compiled"""


class FlowStep(_Flow, _Step, name="flow-step"):
    """a training step of that flow"""


class _Graph:
    """Two layers of examples/graph_network.py on a larger graph, neighbours by a matrix."""

    NODES = 1024

    def shapes(self):
        return [(self.NODES, 64), (64, 32), (32, 8)]

    def batch(self, rng):
        links = rng.random((self.NODES, self.NODES)) < 0.01
        links = (links | links.T | np.eye(self.NODES, dtype=bool)).astype(np.float32)
        degrees = np.sqrt(links.sum(1))
        return links / degrees / degrees[:, None]

    def function(self, f, x, nodes, first, last):
        return x @ (f.tanh(x @ (nodes @ first)) @ last)


class Graph(_Graph, _Model, name="graph"):
    """a graph network (1,024 nodes), compiled"""


class GraphStep(_Graph, _Step, name="graph-step"):
    """a training step of that network"""


class _Recurrent:
    """The cell of examples/rnn_scan.py over fifty steps, which are written out."""

    def shapes(self):
        return [(2, 192), (64, 192), (64, 1)]

    def batch(self, rng):
        return rng.random((64, 50, 2), np.float32)

    def function(self, f, x, inputs, hidden, out):
        state = x[:, 0, :1] * out[:, 0] * 0

        def sigmoid(y):
            return 1 / (1 + f.exp(-y))

        for i in range(50):
            given, held = x[:, i] @ inputs, state @ hidden
            reset, keep = sigmoid(given[:, :64] + held[:, :64]), sigmoid(given[:, 64:128] + held[:, 64:128])
            state = keep * state + (1 - keep) * f.tanh(given[:, 128:] + reset * held[:, 128:])
        return state @ out


class Recurrent(_Recurrent, _Model, name="gru"):
    """a gated recurrent network (64×50 numbers, 64 states), written out, compiled"""


class RecurrentStep(_Recurrent, _Step, name="gru-step"):
    """a training step of that network"""
