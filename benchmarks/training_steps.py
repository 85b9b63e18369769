"""A train step of each example's model, as the example has it: model, loss, optimizer, a batch."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


class Task(NamedTuple):
    """A model, its loss on arrays, and the arrays of a batch."""

    model: Any
    loss: Callable[..., Any]
    arrays: list[np.ndarray]


def _example(name: str) -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name=name)


def _char_gpt(nn: Any, rng: np.random.Generator) -> Task:
    model = _example("char_gpt")["GPT"](96, 96, 128, 3, 4)
    tokens = rng.integers(0, 96, (16, 97)).astype(np.int32)
    return Task(
        model, lambda x: nn.losses.cross_entropy(model(x[:, :-1]), x[:, 1:], reduction="mean"), [tokens]
    )  # fmt: skip


def _resnet_digits(nn: Any, rng: np.random.Generator) -> Task:
    model = _example("resnet_digits")["ResNet"]()
    arrays = [rng.random((64, 8, 8, 1), np.float32), rng.integers(0, 10, 64).astype(np.int32)]
    return Task(model, lambda x, y: nn.losses.cross_entropy(model(x), y, reduction="mean"), arrays)


def _normalizing_flow(nn: Any, rng: np.random.Generator) -> Task:
    model = _example("normalizing_flow")["Flow"]()
    return Task(model, lambda x: -model(x).mean(), [rng.standard_normal((256, 2), np.float32)])


def _rnn_scan(nn: Any, rng: np.random.Generator) -> Task:
    model = _example("rnn_scan")["Adder"](64)
    arrays = [rng.random((64, 50, 2), np.float32), rng.random(64, np.float32)]
    return Task(model, lambda x, y: nn.losses.mse_loss(model(x), y), arrays)


def _sentence_embeddings(nn: Any, rng: np.random.Generator) -> Task:
    config = {
        "hidden_size": 384, "layer_norm_eps": 1e-12, "vocab_size": 1000, "max_position_embeddings": 64,
        "type_vocab_size": 2, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536,
    }  # fmt: skip
    model = _example("sentence_embeddings")["Encoder"](config)
    arrays = [rng.integers(0, 1000, (12, 16)).astype(np.int32), np.ones((12, 16), np.bool_)]

    def loss(x: Any, present: Any) -> Any:
        found = model(x, present)
        return (found @ found.T).square().mean()

    return Task(model, loss, arrays)


def _llama(nn: Any, rng: np.random.Generator) -> Task:
    """On a text of 65 tokens; the example has logits of the last one alone."""
    import smelt

    model = _example("llama")["Llama"](8192, 512, 8, 8, 2, 1344)
    tokens = rng.integers(0, 8192, (1, 65)).astype(np.int32)

    def loss(x: Any) -> Any:
        logits, _ = model(x[:, :-1], model.caches(1, 64), smelt.array(0))
        return nn.losses.cross_entropy(logits, x[:, -1], reduction="mean")

    return Task(model, loss, [tokens])


#: By the name of the example.
TASKS: dict[str, Callable[[Any, np.random.Generator], Task]] = {
    "char_gpt": _char_gpt,
    "resnet_digits": _resnet_digits,
    "normalizing_flow": _normalizing_flow,
    "rnn_scan": _rnn_scan,
    "sentence_embeddings": _sentence_embeddings,
    "llama": _llama,
}
