"""Comparison with NumPy, and gradients by finite differences."""

import numpy as np

import smelt
import smelt.functions.methods


def exact(values):
    """`values` as an array; NumPy's float64 stays what it is."""
    return smelt.array(values, values.dtype if isinstance(values, (np.ndarray, np.generic)) else None)


def same(found, expected, rtol=0.0, atol=0.0, what=""):
    """`found` has the elements, shape and (unless NumPy's is wider) dtype of `expected`."""
    host, expected = np.asarray(found), np.asarray(expected)
    assert host.shape == expected.shape, f"shape {host.shape}, expected {expected.shape} {what}"
    if expected.dtype not in (np.int64, np.float64, np.complex128):
        assert host.dtype == expected.dtype, f"dtype {host.dtype}, expected {expected.dtype} {what}"
    np.testing.assert_allclose(host, expected, rtol=rtol, atol=atol, err_msg=what)


def check_gradient(function, *arguments, eps=1e-6, tol=1e-6):
    """Derivatives of Σ w·function(...) with random weights, in a random direction, in float64."""
    rng = np.random.default_rng(7)
    arguments = [np.asarray(a, np.float64) for a in arguments]
    xs = [exact(a) for a in arguments]
    weights = rng.standard_normal(function(*[x.__copy__() for x in xs]).shape)
    weight = exact(weights)

    def loss(*xs):
        return (function(*xs) * weight).sum()

    gradients = smelt.grad(lambda xs: loss(*xs))(xs)
    directions = [rng.standard_normal(a.shape) for a in arguments]

    def at(t):
        moved = [exact(a + t * d) for a, d in zip(arguments, directions)]
        return float((np.asarray(function(*moved)) * weights).sum())

    expected = (at(eps) - at(-eps)) / (2 * eps)
    found = sum(float((np.asarray(g) * d).sum()) for g, d in zip(gradients, directions))
    assert abs(found - expected) <= tol * max(1.0, abs(expected)), f"{found}, finite differences say {expected}"

