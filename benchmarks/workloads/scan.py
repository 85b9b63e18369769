"""Loops that are compiled as loops, and gradients of every example by itself."""

from __future__ import annotations

import functools

import numpy as np

from ..workload import Workload

STEPS = 1000
BATCH, WIDTH = 32, 64
EXAMPLES, INPUTS, HIDDEN = 256, 32, 64


class _Rnn(Workload):
    steps = STEPS
    rtol = 1e-3
    atol = 1e-4

    def arrays(self, rng):
        w = rng.standard_normal((WIDTH, WIDTH), np.float32) * np.float32(0.5 / WIDTH**0.5)
        h = np.zeros((BATCH, WIDTH), np.float32)
        return [w, h, rng.standard_normal((self.steps, BATCH, WIDTH), np.float32)]

    def last(self, w, h, xs):
        for x in xs:
            h = np.tanh(h @ w + x)
        return h


def smelt_rnn(smelt, w, h, xs, salt=0.0):
    def step(h, x):
        return smelt.tanh(h @ w + x + salt), None

    return smelt.scan(step, h, xs)[0]


def jax_rnn(jax, w, h, xs):
    def step(h, x):
        return jax.numpy.tanh(h @ w + x), None

    return jax.lax.scan(step, h, xs)[0]


class Rnn(_Rnn, name="rnn"):
    """an RNN of 1000 steps (tanh, 32×64), its last state"""

    def expected(self, w, h, xs):
        return self.last(w, h, xs)

    def smelt(self, smelt):
        return smelt.compile(functools.partial(smelt_rnn, smelt))

    def torch(self, torch):
        def run(w, h, xs):
            for x in xs:
                h = torch.tanh(h @ w + x)
            return h

        return run

    def jax(self, jax):
        return jax.jit(functools.partial(jax_rnn, jax))


class RnnGradient(_Rnn, name="rnn-grad"):
    """the gradient of an RNN of 1000 steps in its weights"""

    def expected(self, w, h, xs):
        states = [h.astype(np.float64)]
        w = w.astype(np.float64)
        for x in xs:
            states.append(np.tanh(states[-1] @ w + x))
        found, dh = np.zeros_like(w), np.ones_like(states[0])
        for before, after in zip(reversed(states[:-1]), reversed(states[1:])):
            dz = dh * (1 - after * after)
            found += before.T @ dz
            dh = dz @ w.T
        return found

    def smelt(self, smelt):
        return smelt.compile(smelt.grad(lambda w, h, xs: smelt.sum(smelt_rnn(smelt, w, h, xs))))

    def jax(self, jax):
        return jax.jit(jax.grad(lambda w, h, xs: jax_rnn(jax, w, h, xs).sum()))


class RnnFirst(_Rnn, name="rnn-compile"):
    """first call of a new RNN of 1000 steps, in a warm process"""

    making = True

    def expected(self, w, h, xs):
        return self.last(w, h, xs + np.float32(self.salt))

    def smelt(self, smelt):
        return smelt.compile(functools.partial(smelt_rnn, smelt, salt=self.salt))

    def jax(self, jax):
        salt = self.salt
        return jax.jit(lambda w, h, xs: jax_rnn(jax, w, h, xs + salt))


class RnnFirstShort(RnnFirst, name="rnn-compile-10"):
    """first call of a new RNN of 10 steps: as long as of 1000 where loops stay loops"""

    steps = 10


def loss(np, w, v, x, y):
    """Of one example."""
    return (np.sum(np.tanh(x @ w) @ v) - y) ** 2


class PerExample(Workload, name="per-example-grad"):
    """gradients of 256 examples each, of a perceptron (32, 64, 1), vectorized"""

    rtol = 1e-3
    atol = 1e-4

    def arrays(self, rng):
        w = rng.standard_normal((INPUTS, HIDDEN), np.float32) / np.float32(INPUTS**0.5)
        v = rng.standard_normal(HIDDEN, np.float32) / np.float32(HIDDEN**0.5)
        x = rng.standard_normal((EXAMPLES, INPUTS), np.float32)
        return [w, v, x, rng.standard_normal(EXAMPLES, np.float32)]

    def expected(self, w, v, x, y):
        h = np.tanh(x @ w)
        error = 2 * (h @ v - y)
        return x[:, :, None] * ((1 - h * h) * v * error[:, None])[:, None, :]

    def smelt(self, smelt):
        gradient = smelt.grad(functools.partial(loss, smelt))
        return smelt.compile(smelt.vmap(gradient, in_axes=(None, None, 0, 0)))

    def mlx(self, mx):
        gradient = mx.grad(functools.partial(loss, mx))
        return mx.compile(mx.vmap(gradient, in_axes=(None, None, 0, 0)))

    def torch(self, torch):
        gradient = torch.func.grad(functools.partial(loss, torch))
        return torch.func.vmap(gradient, in_dims=(None, None, 0, 0))

    def jax(self, jax):
        gradient = jax.grad(functools.partial(loss, jax.numpy))
        return jax.jit(jax.vmap(gradient, in_axes=(None, None, 0, 0)))


class PerExampleLoop(PerExample, name="per-example-loop"):
    """the same in a Python loop over the examples, each by a compiled function"""

    def smelt(self, smelt):
        return looped(smelt.compile(smelt.grad(functools.partial(loss, smelt))), smelt.stack)

    def mlx(self, mx):
        return looped(mx.compile(mx.grad(functools.partial(loss, mx))), mx.stack)

    def torch(self, torch):
        return looped(torch.func.grad(functools.partial(loss, torch)), torch.stack)

    def jax(self, jax):
        return looped(jax.jit(jax.grad(functools.partial(loss, jax.numpy))), jax.numpy.stack)


def looped(gradient, stack):
    """`gradient` of one example after the other."""

    def run(w, v, x, y):
        return stack([gradient(w, v, x[i], y[i]) for i in range(EXAMPLES)])

    return run


class FilledCache(Workload, name="cache"):
    """a cache of 20,000×128 f32, of which each of 2000 steps writes one row"""

    def arrays(self, rng):
        return [np.zeros((20_000, 128), np.float32), rng.standard_normal((2000, 128), np.float32)]

    def expected(self, cache, rows):
        return np.concatenate([rows, cache[len(rows) :]])

    def smelt(self, smelt):
        def run(cache, rows):
            write = lambda cache, i_row: (cache.at[i_row[0]].add(i_row[1]), None)  # noqa: E731
            return smelt.scan(write, cache, (smelt.arange(len(rows)), rows))[0]

        return smelt.compile(run)

    def jax(self, jax):
        def run(cache, rows):
            write = lambda cache, i_row: (cache.at[i_row[0]].add(i_row[1]), None)  # noqa: E731
            return jax.lax.scan(write, cache, (jax.numpy.arange(len(rows)), rows))[0]

        return jax.jit(run)
