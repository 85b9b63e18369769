"""Train a network with two hidden layers on scikit-learn's handwritten digits.

The optimizer is Adam, written here; forward pass, gradient and update are one compiled program.
Needs scikit-learn (``pip install smelt-mlir[demo]``). Run it: ``python examples/digits.py``.
"""

from __future__ import annotations

import functools
import itertools
import sys
import time

import numpy as np

import smelt

SIZES = (64, 128, 128, 10)
BATCH = 64
EPOCHS = 25
RATE, DECAY_MEAN, DECAY_SQUARE, TINY = 2e-3, 0.9, 0.999, 1e-8


def init_layers(sizes):
    """Weights and biases, in a dict."""
    layers = {}
    for i, (n, m) in enumerate(itertools.pairwise(sizes)):
        layers[f"w{i}"] = smelt.random.normal((n, m)) * (2 / n) ** 0.5
        layers[f"b{i}"] = smelt.zeros((m,))
    return layers


def logits(layers, x):
    last = len(SIZES) - 2
    for i in range(last):
        x = smelt.maximum(x @ layers[f"w{i}"] + layers[f"b{i}"], 0)
    return x @ layers[f"w{last}"] + layers[f"b{last}"]


def loss(layers, x, labels):
    """Mean cross entropy."""
    scores = logits(layers, x)
    chosen = smelt.take_along_axis(scores, labels[:, None], axis=1)[:, 0]
    return smelt.mean(smelt.logsumexp(scores, axis=1) - chosen)


smelt.random.seed(0)
layers = init_layers(SIZES)
means = {name: smelt.zeros(w.shape) for name, w in layers.items()}
squares = {name: smelt.zeros(w.shape) for name, w in layers.items()}
count = {"steps": smelt.array(0.0)}
state = [layers, means, squares, count]


@functools.partial(smelt.compile, inputs=state, outputs=state)
def step(x, labels):
    """One step of Adam; updates the state and returns the loss."""
    value, gradients = smelt.value_and_grad(loss)(layers, x, labels)
    count["steps"] = t = count["steps"] + 1
    for name, g in gradients.items():
        means[name] = DECAY_MEAN * means[name] + (1 - DECAY_MEAN) * g
        squares[name] = DECAY_SQUARE * squares[name] + (1 - DECAY_SQUARE) * g * g
        mean = means[name] / (1 - DECAY_MEAN**t)
        square = squares[name] / (1 - DECAY_SQUARE**t)
        layers[name] = layers[name] - RATE * mean / (smelt.sqrt(square) + TINY)
    return value


@functools.partial(smelt.compile, inputs=layers)
def predict(x):
    return smelt.argmax(logits(layers, x), axis=1)


def load():
    """Images in 0..1 and labels: for training, and for testing."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    images = (digits.data[order] / 16).astype(np.float32)
    labels = digits.target[order].astype(np.int32)
    test = len(labels) // 5
    return (images[test:], labels[test:]), (images[:test], labels[:test])


def show(epoch, value, accuracy, seconds):
    """Progress: a bar that redraws itself on a terminal, every fifth epoch as a line elsewhere."""
    done = 30 * epoch // EPOCHS
    line = (
        f"epoch {epoch:3}/{EPOCHS} [{'#' * done}{'.' * (30 - done)}] "
        f"loss {value:.4f}  test accuracy {accuracy:.2%}  {seconds:.1f} s"
    )
    if sys.stdout.isatty():
        print(f"\r{line}", end="\n" if epoch == EPOCHS else "", flush=True)
    elif epoch % 5 == 0 or epoch == 1:
        print(line, flush=True)


def main():
    (images, labels), (test_images, test_labels) = load()
    print(f"{len(labels)} images to train on, {len(test_labels)} to test; layers {SIZES}, batches of {BATCH}")
    test_inputs = smelt.array(test_images)
    shuffle = np.random.default_rng(1)

    start = time.perf_counter()
    steps, stepping = 0, 0.0
    for epoch in range(1, EPOCHS + 1):
        order = shuffle.permutation(len(labels))
        value = None
        for i in range(0, len(order) - BATCH + 1, BATCH):
            chosen = order[i : i + BATCH]
            x, y = smelt.array(images[chosen]), smelt.array(labels[chosen])
            before = time.perf_counter()
            value = step(x, y)
            smelt.eval(value, layers)
            if steps:  # the first call compiles
                stepping += time.perf_counter() - before
            steps += 1
        accuracy = np.mean(np.array(predict(test_inputs)) == test_labels)
        show(epoch, value.item(), accuracy, time.perf_counter() - start)

    compiled = step.trace(x, y).lower().compile(keep_texts=False)
    print(f"test accuracy     {accuracy:.2%}")
    print(f"kernels per step  {len(compiled.kernels)}")
    print(f"compile time      {compiled.seconds:.2f} s")
    print(f"steps per second  {(steps - 1) / stepping:.0f}")
    print(f"IR of a step      smelt dump examples/digits.py:step 'f32[{BATCH},64]' 'i32[{BATCH}]' --stage=fuse")
    return accuracy


if __name__ == "__main__":
    main()
