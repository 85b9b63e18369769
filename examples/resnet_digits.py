"""A small residual network on scikit-learn's handwritten digits: 99 of 100 test images and more.

Convolutions, batch normalization whose running means are part of the compiled step, shifted images. Needs scikit-learn.
Run it: ``python examples/resnet_digits.py``.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

import smelt
from smelt import nn, optimizers


class Block(nn.Module):
    """Two convolutions beside a way around them."""

    def __init__(self, inputs, outputs, stride=1):
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.second = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.norms = [nn.BatchNorm(outputs), nn.BatchNorm(outputs)]
        self.around = nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False) if inputs != outputs else nn.Identity()

    def __call__(self, x):
        y = nn.relu(self.norms[0](self.first(x)))
        return nn.relu(self.norms[1](self.second(y)) + self.around(x))


class ResNet(nn.Module):
    def __init__(self, width=32, classes=10):
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3, padding=1)
        self.blocks = [Block(width, width), Block(width, 2 * width, stride=2), Block(2 * width, 2 * width)]
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(2 * width, classes))

    def __call__(self, x):
        x = nn.relu(self.stem(x))
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def load():
    """Images [n, 8, 8, 1] in 0..1 and labels: for training, and a fifth for testing."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    images = (digits.images[order, :, :, None] / 16).astype(np.float32)
    labels = digits.target[order].astype(np.int32)
    test = len(labels) // 5
    return (images[test:], labels[test:]), (images[:test], labels[:test])


def shifted(rng, images):
    """Each image moved by up to one pixel in either direction."""
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    rows, columns = rng.integers(0, 3, (2, len(images)))
    i, j = np.arange(8)[None, :, None], np.arange(8)[None, None, :]
    return padded[np.arange(len(images))[:, None, None], rows[:, None, None] + i, columns[:, None, None] + j]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--width", type=int, default=32)
    options = parser.parse_args()
    for name, number in vars(options).items():
        if isinstance(number, int) and number < 1:
            parser.error(f"--{name} must be at least 1")

    smelt.random.seed(0)
    (images, labels), (test_images, test_labels) = load()
    each = len(labels) // options.batch
    if not each:
        parser.error(f"--batch must be at most {len(labels)}, the number of images")
    model = ResNet(options.width)
    optimizer = optimizers.AdamW(optimizers.cosine_decay(4e-3, options.epochs * each), weight_decay=0.02)
    optimizer.init(model.trainable_parameters())
    count = sum(x.size for _, x in smelt.utils.tree_flatten(model.trainable_parameters()))
    print(f"{len(labels)} images to train on, {len(test_labels)} to test; {count:,} parameters")

    loss_and_gradients = nn.value_and_grad(
        model, lambda x, y: nn.losses.cross_entropy(model(x), y, label_smoothing=0.05, reduction="mean")
    )
    state = [model.state, optimizer.state, smelt.random.state]

    def step(x, y):
        value, gradients = loss_and_gradients(x, y)
        optimizer.update(model, gradients)
        return value

    step = smelt.compile(step, inputs=state, outputs=state)
    predict = smelt.compile(lambda x: smelt.argmax(model(x), axis=1), inputs=model.state)
    rng = np.random.default_rng(1)
    start = time.perf_counter()
    for epoch in range(1, options.epochs + 1):
        model.train()
        order = rng.permutation(len(labels))
        for i in range(each):
            chosen = order[i * options.batch : (i + 1) * options.batch]
            value = step(smelt.array(shifted(rng, images[chosen])), smelt.array(labels[chosen]))
            smelt.eval(state)
            if sys.stdout.isatty():
                print(f"\repoch {epoch:3} [{'#' * (20 * (i + 1) // each):20}]", end="", flush=True)
        model.eval()
        accuracy = np.mean(np.asarray(predict(smelt.array(test_images))) == test_labels)
        line = f"epoch {epoch:3}  loss {value.item():.4f}  test accuracy {accuracy:.2%}"
        print(f"\r{line}  {time.perf_counter() - start:.1f} s", flush=True)
    print(f"test accuracy  {accuracy:.2%}")


if __name__ == "__main__":
    main()
