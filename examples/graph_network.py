"""A graph network on Zachary's karate club: two known members say to which side of a quarrel all others went.

Messages along edges are a gather, and their sums a scatter (Kipf and Welling, 2017; data: Zachary, 1977). Run it:
``python examples/graph_network.py``.
"""

from __future__ import annotations

import argparse

import numpy as np

import smelt
from smelt import nn, optimizers

#: Who met whom outside of the club: for each member those with larger numbers.
FRIENDS = {
    0: [1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 17, 19, 21, 31], 1: [2, 3, 7, 13, 17, 19, 21, 30],
    2: [3, 7, 8, 9, 13, 27, 28, 32], 3: [7, 12, 13], 4: [6, 10], 5: [6, 10, 16], 6: [16], 8: [30, 32, 33], 9: [33],
    13: [33], 14: [32, 33], 15: [32, 33], 18: [32, 33], 19: [33], 20: [32, 33], 22: [32, 33],
    23: [25, 27, 29, 32, 33], 24: [25, 27, 31], 25: [31], 26: [29, 33], 27: [33], 28: [31, 33], 29: [32, 33],
    30: [32, 33], 31: [32, 33], 32: [33],
}  # fmt: skip
#: Those who stayed with the teacher; the others went with the president.
TEACHERS = [0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 16, 17, 19, 21]
MEMBERS = 34


class GraphConvolution(nn.Module):
    """Of each node a linear map of the mean of its neighbours and itself, weighted by the roots of degrees."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def __call__(self, x, sources, targets):
        degrees = smelt.zeros(x.shape[0]).at[targets].add(1.0)
        weights = smelt.rsqrt(degrees[sources] * degrees[targets])
        messages = self.linear(x)[sources] * weights[:, None]
        return smelt.zeros((x.shape[0], messages.shape[1])).at[targets].add(messages)


class Network(nn.Module):
    def __init__(self, hidden=16):
        super().__init__()
        self.layers = [GraphConvolution(MEMBERS, hidden), GraphConvolution(hidden, 2)]

    def __call__(self, x, sources, targets):
        first, last = self.layers
        return last(smelt.tanh(first(x, sources, targets)), sources, targets)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()
    for name, number in vars(options).items():
        if isinstance(number, int) and number < 1:
            parser.error(f"--{name} must be at least 1")

    smelt.random.seed(0)
    pairs = [(a, b) for a, others in FRIENDS.items() for b in others]
    edges = np.array([*pairs, *((b, a) for a, b in pairs), *((i, i) for i in range(MEMBERS))], np.int32)
    sources, targets = smelt.array(edges[:, 0]), smelt.array(edges[:, 1])
    sides = np.array([0 if i in TEACHERS else 1 for i in range(MEMBERS)])
    print(f"{MEMBERS} members, {len(pairs)} friendships; known: member 0, the teacher, and member 33, the president")

    known, labels = smelt.array([0, 33]), smelt.array([0, 1])
    model, x = Network(), smelt.eye(MEMBERS)
    optimizer = optimizers.AdamW(0.01, weight_decay=0.01)
    optimizer.init(model.trainable_parameters())
    loss_and_gradients = nn.value_and_grad(
        model, lambda: nn.losses.cross_entropy(model(x, sources, targets)[known], labels, reduction="mean")
    )
    state = [model.state, optimizer.state]

    def step():
        value, gradients = loss_and_gradients()
        optimizer.update(model, gradients)
        return value

    step = smelt.compile(step, inputs=state, outputs=state)
    for i in range(1, options.steps + 1):
        value = step()
        if i % max(1, options.steps // 5) == 0:
            chosen = np.asarray(smelt.argmax(model(x, sources, targets), axis=1))
            print(f"step {i:4}  loss {value.item():.4f}  right {np.sum(chosen == sides)} of {MEMBERS}", flush=True)
    wrong = [i for i in range(MEMBERS) if chosen[i] != sides[i]]
    print(f"accuracy  {np.mean(chosen == sides):.1%}; wrong: {wrong}")


if __name__ == "__main__":
    main()
