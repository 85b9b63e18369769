"""Inference and a step of training of each example's model."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...workload import Workload
from . import functions
from .models import MODELS, Model, Private

RATE = 0.01


class _OfFramework(Workload):
    """A workload of one text; `made` makes it from a framework's functions."""

    table = "examples"

    def made(self, f: Any) -> Any:
        raise NotImplementedError

    def smelt(self, smelt):
        return self.made(functions.MlxNamed(smelt, smelt.nn))

    def mlx(self, mx):
        import mlx.nn

        return self.made(functions.MlxNamed(mx, mlx.nn))

    def torch(self, torch):
        return self.made(functions.Torch(torch))

    def torch_compile(self, torch):
        return self.made(functions.TorchCompile(torch))

    def jax(self, jax):
        return self.made(functions.Jax(jax))


class _OfModel(_OfFramework):
    model: Model

    def arrays(self, rng):
        """Data, then weights."""
        return [*self.model.data(rng), *self.model.weights(rng).values()]

    def parted(self, arrays: Any) -> tuple[list[Any], dict[str, Any]]:
        names = list(self.model.shapes())
        return list(arrays[: -len(names)]), dict(zip(names, arrays[-len(names) :]))


class _Inference(_OfModel):
    rtol, atol = 1e-3, 2e-4

    def made(self, f):
        def run(*arrays: Any) -> Any:
            data, weights = self.parted(arrays)
            return self.model(f, weights, *data)

        return f.compile(run)

    def expected(self, *arrays):
        data, weights = self.parted(_double(arrays))
        return self.model(functions.Reference(), weights, *data)


class _Step(_OfModel):
    """Loss, its gradients, and the weights moved against these."""

    def made(self, f):
        def step(*arrays: Any) -> Any:
            data, weights = self.parted(arrays)

            def loss(values: Any) -> Any:
                return self.model.loss(f, dict(zip(weights, values)), *data)

            gradients = f.gradients(loss)(list(weights.values()))
            return [w - RATE * g for w, g in zip(weights.values(), gradients)]

        return f.compile(step)

    def mlx(self, mx):
        return super().mlx(mx) if self.model.has_gradient_in_mlx else None

    def torch_compile(self, torch):
        """The loss with its gradients is one program, the step another."""
        f = functions.TorchCompile(torch)
        loss = torch.compile(lambda values, names, data: self.model.loss(f, dict(zip(names, values)), *data))
        moved = torch.compile(lambda weights, gradients: [w - RATE * g for w, g in zip(weights, gradients)])

        def step(*arrays: Any) -> Any:
            data, weights = self.parted(arrays)
            values = list(weights.values())
            return moved(values, f.gradients(lambda values: loss(values, tuple(weights), data))(values))

        return step

    def check(self, result, *arrays):
        """The slope of the loss along the step of all weights, and along one of a part of them, in float64."""
        data, weights = self.parted(_double(arrays))
        assert [r.shape for r in result] == [w.shape for w in weights.values()]
        rng = np.random.default_rng(1)
        for share in (1.0, 0.5):
            along = {k: rng.standard_normal(w.shape) * (rng.random() < share) for k, w in weights.items()}
            ends = []
            for size in (1e-7, -1e-7):
                moved = {name: w + size * along[name] for name, w in weights.items()}
                ends.append(float(self.model.loss(functions.Reference(), moved, *data)))
            gradients = ((w - r) / RATE for w, r in zip(weights.values(), result))
            slope, found = (ends[0] - ends[1]) / 2e-7, sum((g * a).sum() for g, a in zip(gradients, along.values()))
            assert abs(slope - found) <= 2e-2 * max(abs(slope), 1e-1), f"slope {found}, not {slope}"


class _PrivateStep(_Step):
    """Gradients of each example, none longer than a bound, their mean with noise, new weights."""

    model: Private

    def made(self, f):
        def step(*arrays: Any) -> Any:
            (x, labels, *noise), weights = self.parted(arrays)

            def loss(values: Any, x: Any, y: Any) -> Any:
                return self.model.loss(f, dict(zip(weights, values)), x[None], y[None])

            values = list(weights.values())
            each = f.vmap(f.example_gradients(loss), (None, 0, 0))(values, x, labels)
            found = self.model.private(f, each, noise)
            return [w - RATE * g for w, g in zip(values, found)]

        return f.compile(step)

    def torch_compile(self, torch):
        return self.made(functions.TorchCompile(torch))

    def check(self, result, *arrays):
        (x, labels, *noise), weights = self.parted(_double(arrays))
        first, bias, last, _ = weights.values()
        hidden = np.tanh(x @ first.T + bias)
        scores = self.model(functions.Reference(), weights, x, labels)
        shares = np.exp(scores - scores.max(1, keepdims=True))
        up = shares / shares.sum(1, keepdims=True) - np.eye(10)[labels]
        inner = (up @ last) * (1 - hidden**2)
        each = [inner[:, :, None] * x[:, None], inner, up[:, :, None] * hidden[:, None], up]
        expected = self.model.private(functions.Reference(), each, noise)
        for r, w, g in zip(result, weights.values(), expected):
            np.testing.assert_allclose(r, w - RATE * g, rtol=1e-3, atol=1e-5)


def _double(arrays: Any) -> list[np.ndarray]:
    return [x.astype(np.float64) if x.dtype == np.float32 else x for x in arrays]


def _registered() -> None:
    for model in MODELS:
        step = _PrivateStep if isinstance(model, Private) else _Step
        for base, suffix, what in ((_Inference, "inference", "inference"), (step, "step", "train step")):
            fields = {"model": model, "__doc__": f"{model.title}: {what}", "__module__": __name__}
            type(f"{type(model).__name__}{suffix.title()}", (base,), fields, name=f"{model.example}-{suffix}")


_registered()
