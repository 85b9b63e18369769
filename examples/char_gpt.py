"""A small GPT that learns to write Python's documentation, letter by letter.

The text is what ``help()`` shows: `pydoc_data.topics` of the standard library. At the end the model goes on from a few
words. Run it: ``python examples/char_gpt.py``, or with a GPU for each half of a batch:
``smelt launch --backend nccl -n 2 examples/char_gpt.py``.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

import smelt
from smelt import nn, optimizers


class Block(nn.Module):
    def __init__(self, dims, heads):
        super().__init__()
        self.heads = heads
        self.norms = [nn.LayerNorm(dims), nn.LayerNorm(dims)]
        self.qkv = nn.Linear(dims, 3 * dims, bias=False)
        self.out = nn.Linear(dims, dims, bias=False)
        self.mlp = nn.Sequential(nn.Linear(dims, 4 * dims), nn.GELU(), nn.Linear(4 * dims, dims))

    def __call__(self, x):
        batch, length, dims = x.shape
        parts = self.qkv(self.norms[0](x)).reshape(batch, length, 3, self.heads, dims // self.heads)
        q, k, v = (parts[:, :, i].transpose(0, 2, 1, 3) for i in range(3))
        found = smelt.fast.scaled_dot_product_attention(q, k, v, scale=q.shape[-1] ** -0.5, mask="causal")
        x = x + self.out(found.transpose(0, 2, 1, 3).reshape(batch, length, dims))
        return x + self.mlp(self.norms[1](x))


class GPT(nn.Module):
    def __init__(self, letters, length, dims, layers, heads):
        super().__init__()
        self.letters = nn.Embedding(letters, dims)
        self.places = nn.Embedding(length, dims)
        self.blocks = [Block(dims, heads) for _ in range(layers)]
        self.norm = nn.LayerNorm(dims)

    def __call__(self, x):
        """Logits of the next letter after each of x, [batch, length]."""
        x = self.letters(x) + self.places(smelt.arange(x.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.letters.as_linear(self.norm(x))


def text():
    from pydoc_data.topics import topics

    return "\n\n".join(topics[name] for name in sorted(topics)).encode("ascii", "ignore").decode()


def written(model, codes, letters, start, count, temperature, length):
    """The start, and what the model makes of it."""
    # The window has one length, so one program serves all letters.
    predict = smelt.compile(lambda x, i: model(x)[0, i], inputs=model.state)
    found = [codes[c] for c in start]
    for _ in range(count):
        window = found[-length:]
        padded = smelt.array([window + [0] * (length - len(window))])
        scores = predict(padded, smelt.array(len(window) - 1))
        found.append(smelt.random.categorical(scores / temperature).item())
    return "".join(letters[i] for i in found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--length", type=int, default=96)
    parser.add_argument("--dims", type=int, default=128)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--letters", type=int, default=400, help="how many to write at the end")
    options = parser.parse_args()
    for name, number in vars(options).items():
        if isinstance(number, int) and number < 1:
            parser.error(f"--{name} must be at least 1")
    if options.dims % 4:
        parser.error("--dims must be a multiple of 4, the number of heads")

    group = smelt.distributed.init()  # of one process, where nothing was launched
    show = print if group.rank() == 0 else (lambda *_, **__: None)
    smelt.random.seed(0)
    rng = np.random.default_rng(0)
    corpus = text()
    letters = sorted(set(corpus))
    codes = {c: i for i, c in enumerate(letters)}
    data = np.array([codes[c] for c in corpus], np.int32)
    train, valid = data[: -len(data) // 10], data[-len(data) // 10 :]
    model = GPT(len(letters), options.length, options.dims, options.layers, 4)
    count = sum(x.size for _, x in smelt.utils.tree_flatten(model.parameters()))
    show(f"{len(data):,} letters, {len(letters)} different ones; {count:,} parameters")

    warm = max(1, options.steps // 20)
    cooling = optimizers.cosine_decay(2e-3, max(1, options.steps - warm))
    rate = optimizers.join_schedules([optimizers.linear_schedule(0.0, 2e-3, warm), cooling], [warm])
    optimizer = optimizers.AdamW(rate, betas=[0.9, 0.98], weight_decay=0.05)
    optimizer.init(model.trainable_parameters())

    def loss(x):
        return nn.losses.cross_entropy(model(x[:, :-1]), x[:, 1:], reduction="mean")

    loss_and_gradients = nn.value_and_grad(model, loss)
    state = [model.state, optimizer.state]

    def step(x):
        value, gradients = loss_and_gradients(x)
        value, gradients = nn.average_gradients((value, gradients))
        gradients, _ = optimizers.clip_grad_norm(gradients, 1.0)
        optimizer.update(model, gradients)
        return value

    step = smelt.compile(step, inputs=state, outputs=state)
    measure = smelt.compile(loss, inputs=model.state)

    def batch(of, rng):
        """What this process gets of a batch that all processes draw."""
        starts = rng.integers(0, len(of) - options.length - 1, options.batch)[group.rank() :: group.size()]
        return smelt.array(of[starts[:, None] + np.arange(options.length + 1)])

    start = time.perf_counter()
    for i in range(1, options.steps + 1):
        value = step(batch(train, rng))
        if i % max(1, options.steps // 10) == 0:
            checks = np.random.default_rng(1)
            held = np.mean([smelt.distributed.all_sum(measure(batch(valid, checks))).item() for _ in range(8)])
            held /= group.size()
            done = i * options.batch * options.length / (time.perf_counter() - start)
            show(f"step {i:5}  loss {value.item():.3f}  held out {held:.3f}  {done:,.0f} letters/s", flush=True)
        elif sys.stdout.isatty():
            smelt.eval(value)
            show(f"\rstep {i:5}", end="\r", flush=True)
    show(f"held-out loss  {held:.3f} nats a letter, {held / np.log(2):.2f} bits")
    show("-" * 40)
    show(written(model, codes, letters, "The statement", options.letters, 0.8, options.length))


if __name__ == "__main__":
    main()
