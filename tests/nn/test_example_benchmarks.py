"""The models that `python -m benchmarks examples` times are those of the examples, and their steps are right."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import smelt
from benchmarks import __main__ as command
from benchmarks.workload import workloads
from benchmarks.workloads.examples import functions, tokens
from benchmarks.workloads.examples.models import MODELS, Embeddings, Llama, Model
from smelt import nn
from smelt.utils import tree_flatten, tree_map

EXAMPLES = Path(__file__).parents[2] / "examples"


def _embeddings(example: Any) -> nn.Module:
    m = Embeddings()
    config = {
        "hidden_size": m.DIMS, "layer_norm_eps": 1e-12, "vocab_size": m.VOCABULARY, "max_position_embeddings": 512,
        "type_vocab_size": 2, "num_hidden_layers": m.LAYERS, "num_attention_heads": m.HEADS,
        "intermediate_size": m.HIDDEN,
    }  # fmt: skip
    return example["Encoder"](config)


def _resnet(example: Any, *data: Any) -> Any:
    model = example["ResNet"]().eval()
    norms = [norm for block in model.blocks for norm in block.norms]
    for i, norm in enumerate(norms):
        norm.running_mean, norm.running_var = data[3 + 2 * i], data[4 + 2 * i]
    return model


def _llama(example: Any) -> nn.Module:
    m = Llama()
    return example["Llama"](m.VOCABULARY, m.DIMS, m.LAYERS, m.HEADS, m.KV_HEADS, m.HIDDEN)


#: How an example makes its model, and calls it, with arrays of a batch.
MADE: dict[str, Callable[..., tuple[nn.Module, Callable[..., Any]]]] = {
    "resnet_digits": lambda e, *xs: ((m := _resnet(e, *xs)), lambda: m(xs[0])),
    "char_gpt": lambda e, x: ((m := e["GPT"](96, 96, 128, 3, 4)), lambda: m(x[:, :-1])),
    "graph_network": lambda e, *xs: ((m := e["Network"]()), lambda: m(*xs[:3])),
    "normalizing_flow": lambda e, x: ((m := e["Flow"]()), lambda: m(x)),
    "rnn_scan": lambda e, x, _: ((m := e["Adder"](64)), lambda: m(x)),
    "private_gradients": lambda e, x, *_: (
        (m := nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 10))), lambda: m(x)
    ),
    "sentence_embeddings": lambda e, x, present: ((m := _embeddings(e)), lambda: m(x, present)),
    "llama": lambda e, x: ((m := _llama(e)), lambda: m(x[:, :-1], m.caches(1, 64), smelt.array(0))[0]),
}  # fmt: skip


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.example)
def test_a_model_is_that_of_its_example(model: Model) -> None:
    example = runpy.run_path(str(EXAMPLES / f"{model.example}.py"), run_name=model.example)
    rng = np.random.default_rng(0)
    data = [smelt.array(x) for x in model.data(rng)]
    weights = {name: smelt.array(x) for name, x in model.weights(rng).items()}
    found = model(functions.MlxNamed(smelt, nn), weights, *data)
    if model.example == "gaussian_process":
        p, (x, y, at) = tree_map(lambda w: w.astype(smelt.float64), weights), (d.astype(smelt.float64) for d in data)
        expected = smelt.concatenate(example["predicted"](p, x, y, at))
        value, least = model.loss(functions.MlxNamed(smelt, nn), weights, *data), example["negative_log_likelihood"]
        assert abs(value.item() / least(p, x, y).item() - 1) < 1e-3
    else:
        module, call = MADE[model.example](example, *data)
        shapes = {name: w.shape for name, w in tree_flatten(module.trainable_parameters())}
        assert shapes == model.shapes()
        module.load_weights(list(weights.items()), strict=False)
        expected = call()
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-3, atol=2e-3)


QUICK = [name for m in MODELS if m.example not in ("llama", "sentence_embeddings")
         for name in (f"{m.example}-inference", f"{m.example}-step")]  # fmt: skip


@pytest.mark.parametrize("name", QUICK)
def test_results_agree_with_numpy(name: str) -> None:
    workload = workloads[name]
    arrays = workload.arrays(np.random.default_rng(0))
    result = workload.smelt(smelt)(*map(smelt.array, arrays))
    workload.check([np.asarray(r) for r in result] if isinstance(result, list) else np.asarray(result), *arrays)


@pytest.mark.parametrize("name", ["llama-tokens-fixed", "llama-tokens-growing"])
def test_tokens_agree_with_numpy(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for field, value in {"LAYERS": 2, "DIMS": 64, "HEADS": 4, "HIDDEN": 96, "VOCABULARY": 128}.items():
        monkeypatch.setattr(Llama, field, value)
    monkeypatch.setattr(tokens, "PROMPT", 5)
    monkeypatch.setattr(tokens, "TOKENS", 6)
    workload = workloads[name]
    arrays = workload.arrays(np.random.default_rng(0))
    workload.check(np.asarray(workload.smelt(smelt)(*map(smelt.array, arrays))), *arrays)


def test_rates_stand_in_the_table() -> None:
    replies = {"smelt": {"times": [0.02]}, "jax": {"times": [0.04]}}
    cells = command.row(workloads["llama-tokens-fixed"], replies, ["smelt", "jax"])
    assert cells[0].endswith("tokens a second") and cells[2:] == ["**50**", "25 (2.0×)"]
