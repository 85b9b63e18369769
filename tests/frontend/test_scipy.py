"""SciPy's functions of arrays by the array API standard, on smelt arrays: values beside NumPy's, and whose arrays.

What SciPy computes by NumPy it makes an array of again, in float32 for float64, as MLX does.
SciPy reads SCIPY_ARRAY_API when it is imported, so this is a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("scipy", minversion="1.15", reason="has fewer such functions")

PROGRAM = """
import warnings
import numpy as np
import scipy.cluster.vq as vq, scipy.differentiate as differentiate, scipy.fft as fft, scipy.integrate as integrate
import scipy.ndimage as ndimage, scipy.optimize as optimize, scipy.signal as signal, scipy.special as special
import scipy.stats as stats
import smelt

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
x, y, rows = rng.normal(size=30), rng.normal(size=30), rng.normal(size=(20, 3))
p = abs(x) + 0.1

CALLS = {
    **{name: (getattr(special, name), [x]) for name in "logsumexp softmax log_softmax ndtr i0e erf expit".split()},
    **{name: (getattr(special, name), [p]) for name in "gammaln i1 erfc log_ndtr".split()},
    **{name: (getattr(special, name), [p, p]) for name in "xlogy rel_entr chdtr".split()},
    **{name: (getattr(stats, name), [p]) for name in (
        "skew kurtosis zscore gmean hmean variation sem iqr entropy circmean tvar rankdata differential_entropy "
        "skewtest jarque_bera chisquare").split()},
    **{name: (getattr(stats, name), [x, y]) for name in "ttest_ind bartlett mannwhitneyu".split()},
    **{name: (getattr(fft, name), [rows]) for name in "fft rfft ifftn fftshift dct".split()},
    "cumulative_trapezoid": (integrate.cumulative_trapezoid, [x]), "trapezoid": (integrate.trapezoid, [x]),
    "rosen": (optimize.rosen, [x]), "rosen_der": (optimize.rosen_der, [x]), "whiten": (vq.whiten, [rows]),
    "derivative": (lambda a: differentiate.derivative(lambda t: t**3, a).df, [x[:4]]),
    "fftconvolve": (signal.fftconvolve, [x, y]), "detrend": (signal.detrend, [x]), "hilbert": (signal.hilbert, [x]),
    "gaussian_filter": (lambda a: ndimage.gaussian_filter(a, 1.0), [rows]),
}
for name, (f, given) in CALLS.items():
    want, found = f(*given), f(*[smelt.array(v, smelt.float64) for v in given])
    several = isinstance(want, tuple)
    for a, b in zip(found, want) if several else [(found, want)]:
        if not isinstance(a, smelt.array):
            print(name, "gives", type(a))
        if not np.allclose(np.asarray(a), b, rtol=1e-6, atol=1e-7, equal_nan=True):
            print(name, "differs:", a, b)
print(len(CALLS), "functions")
"""


def test_functions_of_scipy_take_arrays() -> None:
    env = {**os.environ, "SCIPY_ARRAY_API": "1"}
    found = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=env, timeout=300)
    assert found.returncode == 0, found.stderr[-2000:]
    assert found.stdout.splitlines() == ["48 functions"]
