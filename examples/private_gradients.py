"""Training with differential privacy: no single example can move the model by more than noise hides.

The gradient of each example is clipped by itself, and noise is added to their sum (Abadi et al., 2016). Gradients of
single examples are ``vmap`` of ``grad``: one program, as quick as a batch allows. The privacy spent is Rényi's, of the
Gaussian mechanism on random batches (Mironov et al., 2019). Needs scikit-learn for its digits. Run it:
``python examples/private_gradients.py``.
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np

import smelt
from smelt import nn, optimizers
from smelt.utils import tree_flatten, tree_map


def epsilon(rate, noise, steps, delta):
    """The ε of (ε, δ)-privacy after some steps on batches that are a random part of all examples."""
    best = math.inf
    for order in range(2, 64):
        terms = [
            math.lgamma(order + 1) - math.lgamma(k + 1) - math.lgamma(order - k + 1)
            + k * math.log(rate) + (order - k) * math.log1p(-rate) + k * (k - 1) / (2 * noise**2)
            for k in range(order + 1)
        ]  # fmt: skip
        top = max(terms)
        spent = steps * (top + math.log(sum(math.exp(t - top) for t in terms))) / (order - 1)
        best = min(best, spent + math.log1p(-1 / order) - math.log(delta * order) / (order - 1))
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--noise", type=float, default=1.1, help="deviation of the noise, as a part of the norm kept")
    parser.add_argument("--norm", type=float, default=1.0, help="the norm that a gradient keeps at most")
    options = parser.parse_args()
    for name, number in vars(options).items():
        if isinstance(number, int) and number < 1:
            parser.error(f"--{name} must be at least 1")
        if isinstance(number, float) and not 0 < number < math.inf:
            parser.error(f"--{name} must be a number above 0")

    from sklearn.datasets import load_digits

    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    images, labels = (digits.data[order] / 16).astype(np.float32), digits.target[order].astype(np.int32)
    test, n = len(labels) // 5, len(labels) - len(labels) // 5

    smelt.random.seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 10))
    optimizer = optimizers.Adam(5e-3)
    optimizer.init(model.trainable_parameters())
    state = [model.state, optimizer.state, smelt.random.state]

    def loss(model, x, y):
        return nn.losses.cross_entropy(model(x[None]), y[None], reduction="sum")

    def step(x, y):
        losses, gradients = smelt.vmap(smelt.value_and_grad(loss), (None, 0, 0))(model, x, y)
        norms = smelt.sqrt(sum((g.reshape(x.shape[0], -1) ** 2).sum(1) for _, g in tree_flatten(gradients)))
        kept = smelt.minimum(1, options.norm / norms)

        def private(g):
            total = smelt.tensordot(kept, g, 1)
            return (total + options.noise * options.norm * smelt.random.normal(total.shape)) / options.batch

        optimizer.update(model, tree_map(private, gradients))
        return losses.mean(), (norms > options.norm).mean()

    step = smelt.compile(step, inputs=state, outputs=state)
    rng = np.random.default_rng(1)
    start = time.perf_counter()
    for i in range(1, options.steps + 1):
        chosen = test + rng.choice(n, options.batch, replace=False)
        value, clipped = step(smelt.array(images[chosen]), smelt.array(labels[chosen]))
        if i % max(1, options.steps // 10) == 0:
            spent = epsilon(options.batch / n, options.noise, i, 1e-4)
            print(
                f"step {i:4}  loss {value.item():.3f}  clipped {clipped.item():4.0%}  epsilon {spent:.2f}  "
                f"{time.perf_counter() - start:.1f} s",
                flush=True,
            )
    found = np.asarray(smelt.argmax(model(smelt.array(images[:test])), axis=1))
    print(f"test accuracy  {np.mean(found == labels[:test]):.2%}")
    print(f"privacy        epsilon {epsilon(options.batch / n, options.noise, options.steps, 1e-4):.2f}, delta 1e-4")


if __name__ == "__main__":
    main()
