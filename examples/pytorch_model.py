"""A recurrent network of PyTorch, trained by smelt: it learns to add the marked numbers of a sequence.

The module is PyTorch's, and so are its weights at the start and at the end; gradients, steps and kernels are smelt's.
On a Mac it trains on the GPU, as Metal. Needs the package `torch`.
"""

import argparse

import torch
from torch import nn

import smelt
from smelt import optimizers


class Adder(nn.Module):
    """Reads pairs of a number and a mark; says the sum of the marked numbers."""

    def __init__(self, size: int):
        super().__init__()
        self.recurrent = nn.GRU(2, size, batch_first=True)
        self.last = nn.Linear(size, 1)

    def forward(self, x):
        return self.last(self.recurrent(x)[0][:, -1]).squeeze(-1)


def draw(count, length):
    """Sequences, of which two numbers are marked, and what these add up to."""
    numbers = smelt.random.uniform(0.0, 1.0, (count, length))
    marks = smelt.argsort(smelt.argsort(smelt.random.uniform(0.0, 1.0, (count, length)), axis=1), axis=1) < 2
    return smelt.stack([numbers, marks.astype(smelt.float32)], -1), (numbers * marks).sum(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--length", type=int, default=12)
    parser.add_argument("--device", default=None, help="cpu, metal, metal:sim, cuda, ...")
    options = parser.parse_args()
    for name, number in vars(options).items():
        if isinstance(number, int) and number < 1:
            parser.error(f"--{name} must be at least 1")
    if options.device:
        smelt.set_default_device(options.device)
    torch.manual_seed(0)
    smelt.random.seed(0)
    model = Adder(options.size)
    f = smelt.from_torch(model)

    optimizer = optimizers.Adam(learning_rate=0.01)
    weights = dict(f.weights)
    optimizer.init(weights)

    @smelt.compile
    def slopes(weights, x, y):
        return smelt.value_and_grad(lambda w: ((f.apply(w, x) - y) ** 2).mean())(weights)

    for step in range(options.steps):
        loss, gradients = slopes(weights, *draw(128, options.length))
        weights = optimizer.apply_gradients(gradients, weights)
        smelt.eval(weights, optimizer.state)
        if step % 100 == 0 or step == options.steps - 1:
            print(f"step {step}: mean squared error {loss.item():.4f}")

    # The weights go back, and PyTorch's own results are the same.
    model.load_state_dict({name: torch.from_dlpack(w) for name, w in weights.items()})
    x, _ = draw(4, options.length)
    with torch.no_grad():
        theirs = model(torch.from_dlpack(x))
    apart = smelt.abs(f.apply(weights, x) - smelt.array(theirs)).max().item()
    print(f"PyTorch's results with these weights differ by {apart:.1e}")
    assert apart < 1e-5


if __name__ == "__main__":
    main()
