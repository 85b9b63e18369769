"""The examples' models, whole and in their sizes, as functions of named weights; `tests/nn/test_example_benchmarks.py`
holds them against the modules of the examples."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

Weights = Mapping[str, Any]
Shapes = dict[str, tuple[int, ...]]


def _linear(name: str, inputs: int, outputs: int, bias: bool = True) -> Shapes:
    return {f"{name}.weight": (outputs, inputs), **({f"{name}.bias": (outputs,)} if bias else {})}


def _norm(name: str, dims: int) -> Shapes:
    return {f"{name}.weight": (dims,), f"{name}.bias": (dims,)}


def linear(f: Any, p: Weights, name: str, x: Any) -> Any:
    return f.linear(x, p[f"{name}.weight"], p.get(f"{name}.bias"))


def layer_norm(f: Any, p: Weights, name: str, x: Any, eps: float = 1e-5) -> Any:
    return f.layer_norm(x, p[f"{name}.weight"], p[f"{name}.bias"], eps)


class Model:
    """Weights by the names that the example has for them, and what it computes with these.

    Attributes:
        example: its file. title: with the sizes. has_gradient_in_mlx: whether all functions have one there.
    """

    example: ClassVar[str]
    title: ClassVar[str]
    has_gradient_in_mlx: ClassVar[bool] = True

    def shapes(self) -> Shapes:
        raise NotImplementedError

    def data(self, rng: np.random.Generator) -> list[np.ndarray]:
        raise NotImplementedError

    def weights(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        found = {}
        for name, shape in self.shapes().items():
            x = rng.standard_normal(shape, np.float32)
            found[name] = 0.1 * x if len(shape) < 2 else x / np.float32(math.prod(shape[1:]) ** 0.5)
            if len(shape) == 1 and name.endswith("weight"):
                found[name] += 1
        return found

    def __call__(self, f: Any, p: Weights, *data: Any) -> Any:
        """What the trained model is asked for."""
        raise NotImplementedError

    def loss(self, f: Any, p: Weights, *data: Any) -> Any:
        raise NotImplementedError


class CharGPT(Model):
    example, title = "char_gpt", "GPT of letters (3 layers of 128, 16×96 letters)"
    LAYERS, DIMS, HEADS, BATCH, LENGTH, LETTERS = 3, 128, 4, 16, 96, 96

    def shapes(self):
        n, found = self.DIMS, {"letters.weight": (self.LETTERS, self.DIMS), "places.weight": (self.LENGTH, self.DIMS)}
        for i in range(self.LAYERS):
            block = f"blocks.{i}"
            found |= _norm(f"{block}.norms.0", n) | _norm(f"{block}.norms.1", n)
            found |= _linear(f"{block}.qkv", n, 3 * n, False) | _linear(f"{block}.out", n, n, False)
            found |= _linear(f"{block}.mlp.layers.0", n, 4 * n) | _linear(f"{block}.mlp.layers.2", 4 * n, n)
        return found | _norm("norm", n)

    def data(self, rng):
        return [rng.integers(0, self.LETTERS, (self.BATCH, self.LENGTH + 1)).astype(np.int32)]

    def __call__(self, f, p, tokens):
        x = tokens[:, : self.LENGTH]
        batch, length, dims = *x.shape, self.DIMS
        x = p["letters.weight"][x] + p["places.weight"][f.places(length)]
        for i in range(self.LAYERS):
            block = f"blocks.{i}"
            parts = linear(f, p, f"{block}.qkv", layer_norm(f, p, f"{block}.norms.0", x))
            parts = parts.reshape(batch, length, 3, self.HEADS, dims // self.HEADS)
            q, k, v = (f.transpose(parts[:, :, i], 0, 2, 1, 3) for i in range(3))
            found = f.transpose(f.attention(q, k, v, "causal"), 0, 2, 1, 3).reshape(batch, length, dims)
            x = x + linear(f, p, f"{block}.out", found)
            inner = f.gelu(linear(f, p, f"{block}.mlp.layers.0", layer_norm(f, p, f"{block}.norms.1", x)))
            x = x + linear(f, p, f"{block}.mlp.layers.2", inner)
        return f.linear(layer_norm(f, p, "norm", x), p["letters.weight"])

    def loss(self, f, p, tokens):
        return f.cross_entropy(self(f, p, tokens), tokens[:, 1:])


class ResNet(Model):
    example, title = "resnet_digits", "residual network (3 blocks of 32 and 64 channels, 64 images)"
    WIDTH, BATCH = 32, 64
    #: Inputs, outputs, stride of the blocks.
    BLOCKS = ((32, 32, 1), (32, 64, 2), (64, 64, 1))

    def shapes(self):
        found = {"stem.weight": (self.WIDTH, 3, 3, 1), "stem.bias": (self.WIDTH,)}
        for i, (inputs, outputs, _) in enumerate(self.BLOCKS):
            found[f"blocks.{i}.first.weight"] = (outputs, 3, 3, inputs)
            found[f"blocks.{i}.second.weight"] = (outputs, 3, 3, outputs)
            found |= _norm(f"blocks.{i}.norms.0", outputs) | _norm(f"blocks.{i}.norms.1", outputs)
            if inputs != outputs:
                found[f"blocks.{i}.around.weight"] = (outputs, 1, 1, inputs)
        return found | _linear("head.layers.3", 2 * self.WIDTH, 10)

    def data(self, rng):
        """Images, labels, what a dropout keeps; means and variances of channels."""
        kept = (rng.random((self.BATCH, 2 * self.WIDTH)) < 0.8) / np.float32(0.8)
        images, labels = rng.random((self.BATCH, 8, 8, 1), np.float32), rng.integers(0, 10, self.BATCH)
        running = [x for _, n, _ in self.BLOCKS for x in [0.1 * rng.random(n), 0.5 + rng.random(n)] * 2]
        return [images, labels.astype(np.int32), kept.astype(np.float32), *(x.astype(np.float32) for x in running)]

    def _scores(self, f, p, x, kept, running):
        x = f.relu(f.conv(x, p["stem.weight"], 1, 1) + p["stem.bias"])
        for i, (_, _, stride) in enumerate(self.BLOCKS):
            statistics = running[4 * i : 4 * i + 4]
            terms = [(p[f"blocks.{i}.norms.{j}.weight"], p[f"blocks.{i}.norms.{j}.bias"]) for j in range(2)]
            around = p.get(f"blocks.{i}.around.weight")
            y = f.conv(x, p[f"blocks.{i}.first.weight"], stride, 1)
            y = f.relu(f.batch_norm(y, *terms[0], *statistics[:2]))
            y = f.batch_norm(f.conv(y, p[f"blocks.{i}.second.weight"], 1, 1), *terms[1], *statistics[2:])
            x = f.relu(y + (x if around is None else f.conv(x, around, stride)))
        x = x.mean((1, 2))
        return linear(f, p, "head.layers.3", x if kept is None else x * kept)

    def __call__(self, f, p, images, labels, kept, *running):
        return self._scores(f, p, images, None, running)

    def loss(self, f, p, images, labels, kept, *running):
        return f.cross_entropy(self._scores(f, p, images, kept, ()), labels)


class Graph(Model):
    example, title = "graph_network", "graph network (34 nodes, 190 edges)"
    NODES, EDGES, HIDDEN = 34, 190, 16

    def shapes(self):
        return _linear("layers.0.linear", self.NODES, self.HIDDEN) | _linear("layers.1.linear", self.HIDDEN, 2)

    def data(self, rng):
        """Features, ends of edges, known nodes and their classes."""
        own = np.arange(self.NODES)
        ends = [np.concatenate([own, rng.integers(0, self.NODES, self.EDGES - self.NODES)]) for _ in range(2)]
        known, labels = np.array([0, self.NODES - 1], np.int32), np.array([0, 1], np.int32)
        return [np.eye(self.NODES, dtype=np.float32), *(x.astype(np.int32) for x in ends), known, labels]

    def __call__(self, f, p, x, sources, targets, known, labels):
        for i in range(2):
            degrees = f.added(self.NODES, targets, f.ones_like(x[targets, 0]))
            weights = 1 / f.sqrt(degrees[sources] * degrees[targets])
            messages = linear(f, p, f"layers.{i}.linear", x)[sources] * weights[:, None]
            x = f.added(self.NODES, targets, messages)
            x = f.tanh(x) if i == 0 else x
        return x

    def loss(self, f, p, *data):
        return f.cross_entropy(self(f, p, *data)[data[-2]], data[-1])


class Flow(Model):
    example, title = "normalizing_flow", "normalizing flow (8 couplings of 64, 256 points)"
    LAYERS, HIDDEN, BATCH = 8, 64, 256

    def shapes(self):
        found: Shapes = {}
        for i in range(self.LAYERS):
            for j, inputs, outputs in ((0, 1, self.HIDDEN), (2, self.HIDDEN, self.HIDDEN), (4, self.HIDDEN, 2)):
                found |= _linear(f"layers.{i}.net.layers.{j}", inputs, outputs)
        return found

    def data(self, rng):
        return [rng.standard_normal((self.BATCH, 2), np.float32)]

    def __call__(self, f, p, x):
        total = 0.0
        for i in range(self.LAYERS):
            kept, moved = (x[:, :1], x[:, 1:]) if i % 2 else (x[:, 1:], x[:, :1])
            y = kept
            for j in (0, 2, 4):
                y = linear(f, p, f"layers.{i}.net.layers.{j}", y)
                y = f.silu(y) if j < 4 else y
            scale, shift = f.tanh(y[:, :1]), y[:, 1:]
            moved = (moved - shift) * f.exp(-scale)
            x = f.concatenate([kept, moved] if i % 2 else [moved, kept], -1)
            total = total - scale[:, 0]
        return total - 0.5 * (x**2).sum(-1) - math.log(2 * math.pi)

    def loss(self, f, p, x):
        return -self(f, p, x).mean()


class Recurrent(Model):
    example, title = "rnn_scan", "gated recurrent network by scan (64 states, 64 sequences of 50)"
    HIDDEN, BATCH, LENGTH = 64, 64, 50

    def shapes(self):
        n = self.HIDDEN
        return {
            "cell.Wx": (3 * n, 2), "cell.Wh": (3 * n, n), "cell.b": (3 * n,), "cell.bhn": (n,), **_linear("out", n, 1)
        }  # fmt: skip

    def data(self, rng):
        return [rng.random((self.BATCH, self.LENGTH, 2), np.float32), rng.random(self.BATCH, np.float32)]

    def __call__(self, f, p, x, y):
        n = self.HIDDEN

        def step(state: Any, x: Any) -> Any:
            given, held = f.linear(x, p["cell.Wx"], p["cell.b"]), f.linear(state, p["cell.Wh"])
            gates = f.sigmoid(given[:, : 2 * n] + held[:, : 2 * n])
            new = f.tanh(given[:, 2 * n :] + gates[:, :n] * (held[:, 2 * n :] + p["cell.bhn"]))
            keep = gates[:, n:]
            return (1 - keep) * new + keep * state

        state = f.scan(step, f.array(np.zeros((self.BATCH, n), np.float32)), f.transpose(x, 1, 0, 2))
        return linear(f, p, "out", state)[:, 0]

    def loss(self, f, p, x, y):
        return ((self(f, p, x, y) - y) ** 2).mean()


class Private(Model):
    example, title = "private_gradients", "perceptron (64, 64, 10) with private gradients of 128 examples"
    BATCH, NORM, NOISE = 128, 1.0, 1.1

    def shapes(self):
        return _linear("layers.0", 64, 64) | _linear("layers.2", 64, 10)

    def data(self, rng):
        """Images, labels, and noise for the gradients."""
        noise = [rng.standard_normal(shape, np.float32) for shape in self.shapes().values()]
        return [rng.random((self.BATCH, 64), np.float32), rng.integers(0, 10, self.BATCH).astype(np.int32), *noise]

    def __call__(self, f, p, x, labels, *noise):
        return linear(f, p, "layers.2", f.tanh(linear(f, p, "layers.0", x)))

    def loss(self, f, p, x, labels, *noise):
        return f.cross_entropy(self(f, p, x, labels), labels)

    def private(self, f: Any, gradients: Any, noise: Any) -> Any:
        """From gradients of each example, [examples, ...]: none longer than `NORM`, their sum with noise, the mean."""
        norms = f.sqrt(sum((g.reshape(self.BATCH, -1) ** 2).sum(1) for g in gradients))
        kept = f.minimum(self.NORM / norms, 1.0)
        sums = [(kept @ g.reshape(self.BATCH, -1)).reshape(g.shape[1:]) for g in gradients]
        return [(s + self.NOISE * self.NORM * n) / self.BATCH for s, n in zip(sums, noise)]


class Process(Model):
    example, title = "gaussian_process", "Gaussian process (200 points, f32)"
    POINTS, has_gradient_in_mlx = 200, False

    def shapes(self):
        return {"length": (), "scale": (), "noise": ()}

    def weights(self, rng):
        return {name: np.array(x, np.float32) for name, x in (("length", -1), ("scale", 0.1), ("noise", -1))}

    def data(self, rng):
        """Points, what is seen there, other points."""
        x = np.sort(rng.uniform(0, 3, self.POINTS)).astype(np.float32)
        y = np.sin(4 * x) + 0.5 * np.sin(9 * x) + 0.1 * rng.standard_normal(self.POINTS)
        return [x, y.astype(np.float32), np.sort(rng.uniform(0, 3, self.POINTS)).astype(np.float32)]

    @staticmethod
    def _kernel(f: Any, p: Weights, a: Any, b: Any) -> Any:
        return f.exp(p["scale"] - 0.5 * ((a[:, None] - b[None, :]) * f.exp(-p["length"])) ** 2)

    def _solved(self, f: Any, p: Weights, x: Any, y: Any) -> tuple[Any, Any]:
        noise = (f.exp(2 * p["noise"]) + 1e-10) * f.eye(self.POINTS)
        lower = f.cholesky(self._kernel(f, p, x, x) + noise)
        return lower, f.solve(lower.T, f.solve(lower, y[:, None]), upper=True)[:, 0]

    def __call__(self, f, p, x, y, at):
        lower, solved = self._solved(f, p, x, y)
        across = self._kernel(f, p, x, at)
        half = f.solve(lower, across)
        deviation = f.sqrt(f.exp(p["scale"]) - (half**2).sum(0))
        return f.concatenate([across.T @ solved, deviation])

    def loss(self, f, p, x, y, at):
        lower, solved = self._solved(f, p, x, y)
        return 0.5 * (y * solved).sum() + f.log(f.diagonal(lower)).sum() + 0.5 * self.POINTS * math.log(2 * math.pi)


class Embeddings(Model):
    example, title = "sentence_embeddings", "sentence encoder (6 layers of 384, 12×16 tokens)"
    LAYERS, DIMS, HEADS, HIDDEN, VOCABULARY, BATCH, LENGTH = 6, 384, 12, 1536, 30522, 12, 16

    def shapes(self):
        n = self.DIMS
        found = {
            "embeddings.word_embeddings.weight": (self.VOCABULARY, n),
            "embeddings.position_embeddings.weight": (512, n),
            "embeddings.token_type_embeddings.weight": (2, n),
            **_norm("embeddings.LayerNorm", n),
        }
        for i in range(self.LAYERS):
            layer = f"encoder.layer.{i}"
            for name in ("query", "key", "value"):
                found |= _linear(f"{layer}.attention.self.{name}", n, n)
            found |= _linear(f"{layer}.attention.output.dense", n, n) | _norm(f"{layer}.attention.output.LayerNorm", n)
            found |= _linear(f"{layer}.intermediate.dense", n, self.HIDDEN)
            found |= _linear(f"{layer}.output.dense", self.HIDDEN, n) | _norm(f"{layer}.output.LayerNorm", n)
        return found

    def data(self, rng):
        """Tokens, and which are there."""
        lengths = rng.integers(8, self.LENGTH + 1, (self.BATCH, 1))
        tokens = rng.integers(0, self.VOCABULARY, (self.BATCH, self.LENGTH)).astype(np.int32)
        return [tokens, np.arange(self.LENGTH) < lengths]

    def __call__(self, f, p, tokens, present):
        batch, length, dims, eps = *tokens.shape, self.DIMS, 1e-12
        e = "embeddings"
        x = p[f"{e}.word_embeddings.weight"][tokens] + p[f"{e}.position_embeddings.weight"][f.places(length)]
        x = layer_norm(f, p, f"{e}.LayerNorm", x + p[f"{e}.token_type_embeddings.weight"][0], eps)
        mask = present[:, None, None, :]
        for i in range(self.LAYERS):
            name = f"encoder.layer.{i}"
            q, k, v = (
                f.transpose(
                    linear(f, p, f"{name}.attention.self.{part}", x).reshape(batch, length, self.HEADS, -1), 0, 2, 1, 3
                )
                for part in ("query", "key", "value")
            )
            found = f.transpose(f.attention(q, k, v, mask), 0, 2, 1, 3).reshape(batch, length, dims)
            out = f"{name}.attention.output"
            x = layer_norm(f, p, f"{out}.LayerNorm", x + linear(f, p, f"{out}.dense", found), eps)
            y = linear(f, p, f"{name}.output.dense", f.gelu(linear(f, p, f"{name}.intermediate.dense", x)))
            x = layer_norm(f, p, f"{name}.output.LayerNorm", x + y, eps)
        shares = present[..., None] * f.ones_like(x[:1, :1, :1])
        return f.normalized((x * shares).sum(1) / shares.sum(1))

    def loss(self, f, p, tokens, present):
        """How alike sentences are."""
        found = self(f, p, tokens, present)
        return ((found @ found.T) ** 2).mean()


class Llama(Model):
    example, title = "llama", "Llama-style decoder (8 layers of 512, 64 tokens)"
    LAYERS, DIMS, HEADS, KV_HEADS, HIDDEN, VOCABULARY, LENGTH = 8, 512, 8, 2, 1344, 8192, 64

    def shapes(self):
        n, size, found = self.DIMS, self.DIMS // self.HEADS, {"embed_tokens.weight": (self.VOCABULARY, self.DIMS)}
        for i in range(self.LAYERS):
            layer = f"layers.{i}"
            found |= {f"{layer}.input_layernorm.weight": (n,), f"{layer}.post_attention_layernorm.weight": (n,)}
            for name, inputs, outputs in (
                ("self_attn.q_proj", n, n), ("self_attn.k_proj", n, self.KV_HEADS * size),
                ("self_attn.v_proj", n, self.KV_HEADS * size), ("self_attn.o_proj", n, n),
                ("gate_proj", n, self.HIDDEN), ("up_proj", n, self.HIDDEN), ("down_proj", self.HIDDEN, n),
            ):  # fmt: skip
                found |= _linear(f"{layer}.{name}", inputs, outputs, False)
        return found | {"norm.weight": (n,)}

    def data(self, rng):
        return [rng.integers(0, self.VOCABULARY, (1, self.LENGTH + 1)).astype(np.int32)]

    def hidden(self, f: Any, p: Weights, tokens: Any, cached: Any) -> Any:
        """States after each token; `cached(layer, q, k, v)` rotates queries and keys, and attends."""
        x = p["embed_tokens.weight"][tokens]
        batch, length, dims = x.shape
        for i in range(self.LAYERS):
            layer = f"layers.{i}"
            y = f.rms_norm(x, p[f"{layer}.input_layernorm.weight"], 1e-5)
            q, k, v = (
                f.transpose(
                    linear(f, p, f"{layer}.self_attn.{name}_proj", y).reshape(batch, length, heads, -1), 0, 2, 1, 3
                )
                for name, heads in (("q", self.HEADS), ("k", self.KV_HEADS), ("v", self.KV_HEADS))
            )
            found = f.transpose(cached(i, q, k, v), 0, 2, 1, 3).reshape(batch, length, dims)
            x = x + linear(f, p, f"{layer}.self_attn.o_proj", found)
            y = f.rms_norm(x, p[f"{layer}.post_attention_layernorm.weight"], 1e-5)
            y = f.silu(linear(f, p, f"{layer}.gate_proj", y)) * linear(f, p, f"{layer}.up_proj", y)
            x = x + linear(f, p, f"{layer}.down_proj", y)
        return f.rms_norm(x, p["norm.weight"], 1e-5)

    def _whole(self, f: Any, p: Weights, tokens: Any) -> Any:
        return self.hidden(f, p, tokens, lambda _, q, k, v: f.attention(f.rope(q, 0), f.rope(k, 0), v, "causal"))

    def __call__(self, f, p, tokens):
        """Logits after the last token."""
        return f.linear(self._whole(f, p, tokens[:, :-1])[:, -1], p["embed_tokens.weight"])

    def loss(self, f, p, tokens):
        return f.cross_entropy(f.linear(self._whole(f, p, tokens[:, :-1]), p["embed_tokens.weight"]), tokens[:, 1:])


MODELS: tuple[Model, ...] = (
    ResNet(), CharGPT(), Graph(), Flow(), Recurrent(), Private(), Process(), Embeddings(), Llama(),
)  # fmt: skip
