"""Random numbers under `mlx.core.random`'s names, and the same numbers.

A key is two 32-bit words; the same key gives the same numbers on every device, whatever the
evaluation order. Without a key, functions draw one from a global state, which `seed` sets and each draw
advances. To draw from it inside `smelt.compile`, capture it, else every call repeats the numbers of the
trace::

    @partial(smelt.compile, inputs=smelt.random.state, outputs=smelt.random.state)

A parameter that a distribution does not have (a negative scale, a probability of 2) is an error where the
call has the number, and gives NaN, 0 as an integer, where it is in a smelt array: that may have no value yet.
Distributions that MLX has take what they take there: a negative `scale` of `normal` turns samples around.

The words of an array come from `smelt.random_bits` (Threefry), everything else is made of ordinary
ops, so samples fuse with what uses them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from smelt.ir.listing import listed as _listed

from ..lacking import lacking as _lacking
from .choosing import choice, shuffle
from .continuous import gumbel, laplace, multivariate_normal, normal, truncated_normal, uniform
from .discrete import bernoulli, bits, categorical, permutation, randint
from .keys import key, seed, split, state

__all__ = [
    "bernoulli", "beta", "binomial", "bits", "categorical", "cauchy", "chisquare", "choice", "dirichlet",
    "exponential", "f", "gamma", "geometric", "gumbel", "key", "laplace", "logistic", "lognormal", "maxwell",
    "multinomial", "multivariate_normal", "normal", "orthogonal", "pareto", "permutation", "poisson", "rademacher",
    "randint", "rayleigh", "seed", "shuffle", "split", "state", "student_t", "triangular", "truncated_normal",
    "uniform", "weibull",
]  # fmt: skip

__dir__ = _listed(globals())
if TYPE_CHECKING:
    from .counts import binomial, geometric, poisson
    from .families import (
        cauchy,
        f,
        logistic,
        lognormal,
        maxwell,
        multinomial,
        orthogonal,
        pareto,
        rademacher,
        rayleigh,
        triangular,
        weibull,
    )
    from .gamma_family import beta, chisquare, dirichlet, exponential, gamma, student_t
else:  # loaded by the first use of any of them: they need derivatives and linear algebra
    _LATE = {
        "counts": "binomial geometric poisson",
        "families": (
            "cauchy f logistic lognormal maxwell multinomial orthogonal pareto rademacher rayleigh triangular weibull"
        ),
        "gamma_family": "beta chisquare dirichlet exponential gamma student_t",
    }
    __getattr__ = _lacking(globals(), _LATE)
