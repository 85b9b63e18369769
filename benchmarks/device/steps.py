"""Whole train steps of the sizes that people train: a GPT of 124 million parameters, ResNet-50.

A model is written once, on `Layers` of each framework: its own attention, convolution, normalization and loss, as its
users would take them. Weights and the optimizer's state are float32, and stay on the device between steps. What is
timed is one step: loss, gradients, new weights; its result is the loss.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .layers import LAYERS, Layers
from .program import Program

Weights = dict[str, Any]


class GPT(NamedTuple):
    """Sizes of a GPT."""

    layers: int = 12
    dims: int = 768
    heads: int = 12
    vocabulary: int = 50257
    length: int = 1024
    batch: int = 8

    def weights(self, rng: np.random.Generator) -> Weights:
        """Of GPT-2's names and sizes; matrices are [inputs, outputs]."""

        def normal(*shape: int) -> np.ndarray:
            return rng.standard_normal(shape, np.float32) * np.float32(0.02)

        def ones() -> np.ndarray:
            return np.ones(self.dims, np.float32)

        def zeros(n: int = 1) -> np.ndarray:
            return np.zeros(n * self.dims, np.float32)

        d = self.dims
        found = {"tokens": normal(self.vocabulary, d), "places": normal(self.length, d)}
        for i in range(self.layers):
            found |= {
                f"{i}.norm1.weight": ones(), f"{i}.norm1.bias": zeros(),
                f"{i}.qkv.weight": normal(d, 3 * d), f"{i}.qkv.bias": zeros(3),
                f"{i}.out.weight": normal(d, d), f"{i}.out.bias": zeros(),
                f"{i}.norm2.weight": ones(), f"{i}.norm2.bias": zeros(),
                f"{i}.up.weight": normal(d, 4 * d), f"{i}.up.bias": zeros(4),
                f"{i}.down.weight": normal(4 * d, d), f"{i}.down.bias": zeros(),
            }  # fmt: skip
        return found | {"norm.weight": ones(), "norm.bias": zeros()}

    def loss(self, f: Layers, w: Weights, tokens: Any) -> Any:
        """Mean cross entropy of each next token of [batch, length + 1]."""
        x, targets = tokens[:, :-1], tokens[:, 1:]
        batch, length = x.shape
        x = f.rows(w["tokens"], x) + f.cast(w["places"])[:length]
        for i in range(self.layers):
            y = f.layer_norm(x, w[f"{i}.norm1.weight"], w[f"{i}.norm1.bias"])
            y = f.linear(y, w[f"{i}.qkv.weight"], w[f"{i}.qkv.bias"])
            y = f.attention(y.reshape(batch, length, 3, self.heads, -1)).reshape(batch, length, self.dims)
            x = x + f.linear(y, w[f"{i}.out.weight"], w[f"{i}.out.bias"])
            y = f.layer_norm(x, w[f"{i}.norm2.weight"], w[f"{i}.norm2.bias"])
            y = f.gelu(f.linear(y, w[f"{i}.up.weight"], w[f"{i}.up.bias"]))
            x = x + f.linear(y, w[f"{i}.down.weight"], w[f"{i}.down.bias"])
        x = f.layer_norm(x, w["norm.weight"], w["norm.bias"])
        return f.cross_entropy(x @ f.cast(w["tokens"]).T, targets)

    def batch_of(self, rng: np.random.Generator) -> list[np.ndarray]:
        return [rng.integers(0, self.vocabulary, (self.batch, self.length + 1)).astype(np.int32)]


class ResNet(NamedTuple):
    """Sizes of a ResNet of bottlenecks: blocks of each stage, channels of the first, width and height of images."""

    stages: tuple[int, ...] = (3, 4, 6, 3)
    width: int = 64
    size: int = 224
    classes: int = 1000
    batch: int = 64

    def weights(self, rng: np.random.Generator) -> Weights:
        """Of convolutions [outputs, rows, columns, inputs]; of the norm behind each, scale and offset."""
        found: Weights = {}

        def conv(name: str, inputs: int, outputs: int, taps: int) -> None:
            scale = np.float32((2 / (taps * taps * inputs)) ** 0.5)
            found[f"{name}.weight"] = rng.standard_normal((outputs, taps, taps, inputs), np.float32) * scale
            found[f"{name}.scale"] = np.ones(outputs, np.float32)
            found[f"{name}.offset"] = np.zeros(outputs, np.float32)

        conv("stem", 3, self.width, 7)
        inputs = self.width
        for stage, blocks in enumerate(self.stages):
            inner = self.width << stage
            for i in range(blocks):
                conv(f"{stage}.{i}.first", inputs, inner, 1)
                conv(f"{stage}.{i}.second", inner, inner, 3)
                conv(f"{stage}.{i}.third", inner, 4 * inner, 1)
                if not i:
                    conv(f"{stage}.{i}.around", inputs, 4 * inner, 1)
                inputs = 4 * inner
        found["head.weight"] = rng.standard_normal((inputs, self.classes), np.float32) * np.float32(0.01)
        return found | {"head.bias": np.zeros(self.classes, np.float32)}

    def loss(self, f: Layers, w: Weights, images: Any, labels: Any) -> Any:
        """Mean cross entropy; the norms are of the batch."""

        def conv(name: str, x: Any, stride: int = 1) -> Any:
            y = f.conv(x, w[f"{name}.weight"], stride)
            return f.batch_norm(y, w[f"{name}.scale"], w[f"{name}.offset"])

        x = f.max_pool(f.relu(conv("stem", f.images(images), 2)))
        for stage, blocks in enumerate(self.stages):
            for i in range(blocks):
                name, stride = f"{stage}.{i}", 2 if stage and not i else 1
                y = f.relu(conv(f"{name}.first", x))
                y = conv(f"{name}.third", f.relu(conv(f"{name}.second", y, stride)))
                x = f.relu(y + (x if i else conv(f"{name}.around", x, stride)))
        return f.cross_entropy(f.linear(f.mean_of_places(x), w["head.weight"], w["head.bias"]), labels)

    def batch_of(self, rng: np.random.Generator) -> list[np.ndarray]:
        images = rng.standard_normal((self.batch, self.size, self.size, 3), np.float32)
        return [images, rng.integers(0, self.classes, self.batch).astype(np.int32)]


class _Step(Program):
    #: The model, what it is computed in, and one with which the code is tried.
    model: Any = GPT()
    tiny_model: Any = GPT(2, 32, 2, 97, 16, 2)
    dtype = "bfloat16"

    @property
    def sized(self) -> Any:
        return self.tiny_model if self.tiny else self.model

    def arrays(self, rng):
        return self.sized.batch_of(rng)

    def weights(self) -> Weights:
        return self.sized.weights(np.random.default_rng(1))

    def check(self, result, *arrays):
        """The loss of a model that knows nothing, or a little."""
        classes = self.sized.vocabulary if isinstance(self.sized, GPT) else self.sized.classes
        assert result.shape == () and 0.2 * np.log(classes) < result < 2 * np.log(classes), f"loss {result}"

    def smelt(self, smelt, framework="smelt"):
        weights = {name: smelt.array(w) for name, w in self.weights().items()}
        optimizer, layers = self.optimizer(smelt.optimizers), LAYERS[framework](smelt, self.dtype)
        optimizer.init(weights)
        state = [weights, optimizer.state]

        @partial(smelt.compile, inputs=state, outputs=state)
        def step(*batch):
            run = smelt.value_and_grad(lambda w: self.sized.loss(layers, w, *batch))
            value, gradients = run(weights)
            weights.update(optimizer.apply_gradients(gradients, weights))
            return value

        return step

    def mlx(self, mx):
        return self.smelt(mx, "mlx")

    def _torch(self, torch: Any, compiled: Callable[..., Any]) -> Any:
        layers = LAYERS["torch"](torch, self.dtype)
        weights = {name: layers.parameter(w, self.device) for name, w in self.weights().items()}
        optimizer = self.torch_optimizer(torch.optim, list(weights.values()))

        @compiled
        def loss(*batch: Any) -> Any:
            return self.sized.loss(layers, weights, *batch)

        def step(*batch: Any) -> Any:
            with torch.enable_grad():
                value = loss(*batch)
                value.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            return value.detach()

        return step

    def torch(self, torch):
        return self._torch(torch, lambda f: f)

    def torch_compile(self, torch):
        return self._torch(torch, partial(torch.compile, dynamic=False))

    def jax(self, jax):
        layers = LAYERS["jax"](jax, self.dtype)
        state = [{name: jax.numpy.asarray(w) for name, w in self.weights().items()}, self.jax_state(jax)]

        @partial(jax.jit, donate_argnums=0)
        def step(state, *batch):
            weights, slots = state
            value, gradients = jax.value_and_grad(lambda w: self.sized.loss(layers, w, *batch))(weights)
            new = {name: self.jax_update(jax, w, gradients[name], slots[name]) for name, w in weights.items()}
            return value, [{n: w for n, (w, _) in new.items()}, {n: s for n, (_, s) in new.items()}]

        def run(*batch):
            value, state[:] = step(list(state), *batch)
            return value

        return run

    def jax_state(self, jax: Any) -> dict[str, Any]:
        return {
            name: tuple(jax.numpy.zeros(w.shape, "float32") for _ in range(self.slots))
            for name, w in self.weights().items()
        }


class GPTStep(_Step, name="gpt-step"):
    """train step of a GPT-2 of 124 million parameters, 8×1024 tokens, bf16 (AdamW, f32 state)"""

    slots = 2

    def optimizer(self, optimizers: Any) -> Any:
        return optimizers.AdamW(1e-4, weight_decay=0.1)

    def torch_optimizer(self, optim: Any, weights: Any) -> Any:
        return optim.AdamW(weights, 1e-4, weight_decay=0.1, fused=True)

    def jax_update(self, jax: Any, w: Any, g: Any, slots: Any) -> Any:
        m, v = slots
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        return w * (1 - 1e-4 * 0.1) - 1e-4 * m / (jax.numpy.sqrt(v) + 1e-8), (m, v)


class ResNetStep(_Step, name="resnet-step"):
    """train step of a ResNet-50, 64 images of 224×224, f32 (momentum)"""

    model: Any = ResNet()
    tiny_model: Any = ResNet((1, 1), 4, 16, 10, 2)
    dtype = "float32"
    slots = 1

    def optimizer(self, optimizers: Any) -> Any:
        return optimizers.SGD(0.01, momentum=0.9)

    def torch_optimizer(self, optim: Any, weights: Any) -> Any:
        return optim.SGD(weights, 0.01, momentum=0.9, fused=True)

    def jax_update(self, jax: Any, w: Any, g: Any, slots: Any) -> Any:
        v = 0.9 * slots[0] + g
        return w - 0.01 * v, (v,)


class ResNetStepBF16(ResNetStep, name="resnet-step-bf16"):
    """train step of a ResNet-50, 64 images of 224×224, bf16 (momentum, f32 state)"""

    dtype = "bfloat16"
