"""What the tests of schedules for short rows compute: with NumPy's functions and with smelt's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import smelt

#: Fewest rows that fill blocks of every length, and some over.
ROWS = 1038


def softmax(x: Any, of: Any = np) -> Any:
    e = of.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def layer_norm(x: Any, of: Any = np) -> Any:
    centered = x - x.mean(-1, keepdims=True)
    weights = of.arange(x.shape[-1]) + 0.5
    return centered / of.sqrt((centered * centered).mean(-1, keepdims=True) + 1e-5) * weights


def masked(x: Any, of: Any = np) -> Any:
    kept = x > -0.5
    most = of.where(kept, x, -of.array(np.float32(np.inf))).max(-1)
    return most, kept.any(-1), kept.all(-1), kept & (x == x.max(-1, keepdims=True))


#: Of an array whose last axis is short.
PROGRAMS: dict[str, Callable[..., Any]] = {
    "sum": lambda x, of=np: x.sum(-1),
    "softmax": softmax,
    "layer norm": layer_norm,
    "places": lambda x, of=np: (x.argmax(-1), x.argmin(-1), x.max(-1), x.min(-1)),
    "variance beside its deviations": lambda x, of=np: (x.var(-1), x - x.mean(-1, keepdims=True)),
    "bools": masked,
    "two axes": lambda x, of=np: (x.reshape(-1, 2, x.shape[-1]) * 2.0).sum((1, 2)),
}
#: Those that are told of NaN, infinities and zeros of both signs.
SPECIAL = ("places", "bools", "sum", "softmax")


def numbers(shape: tuple[int, ...], special: bool = True) -> np.ndarray:
    """With ties, zeros of both signs, and rows with NaN and infinities at both ends, and several NaN."""
    x = np.round(np.random.default_rng(0).standard_normal(shape), 1).astype(np.float32)
    if special:
        x[3::50, ..., 0], x[5::50, ..., -1], x[7::50, ..., 1], x[13::50, ..., -1] = np.nan, np.inf, -np.inf, np.nan
        x[15::50, ..., shape[-1] // 2 :] = np.nan
        x[9::50], x[11::50, ..., ::2] = -0.0, -0.0
    return x


def compare(program: Callable[..., Any], x: Any, host: np.ndarray) -> str:
    """Compare with float64; the text of the kernel."""
    f = smelt.compile(lambda x: program(x, smelt))
    found = f(x)
    with np.errstate(all="ignore"):
        wanted = program(host)
    pairs = zip(*(v if isinstance(v, tuple) else (v,) for v in (found, wanted)))
    loose = {2: 1.6e-2, 8: 1e-12}.get(x.dtype.size, 3e-6)
    for a, b in pairs:
        scale = np.abs(b, where=np.isfinite(b), out=np.ones(b.shape)).max()
        np.testing.assert_allclose(np.asarray(a.astype(smelt.float64)), b, rtol=loose, atol=loose * scale)
    return str(f.trace(x).lower().compile().as_text("kernel"))


def compare_cuts(program: Callable[..., Any]) -> None:
    """Some columns of each row, and rows in the middle of several axes."""
    values = numbers((2, 300, 40), special=False)
    x = smelt.array(values)
    for cut in (np.s_[:, :, :12], np.s_[:, 5:290, 3:20], np.s_[:, :, ::3], np.s_[:, :, ::-1]):
        f = smelt.compile(lambda x, cut=cut: program(x[cut], smelt))
        found, wanted = f(x), program(values[cut].astype(np.float64))
        for a, b in zip(*(v if isinstance(v, tuple) else (v,) for v in (found, wanted))):
            np.testing.assert_allclose(np.asarray(a), b, rtol=3e-6, atol=3e-6)


def compare_threads() -> None:
    """The results of several threads are those of one."""
    x, found = smelt.array(numbers((ROWS, 24), special=False)), []
    for threads in (1, 3, 16):
        with smelt.ir.settings.override(num_threads=threads):
            found.append(np.asarray(smelt.compile(lambda x: layer_norm(x, smelt))(x)))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
