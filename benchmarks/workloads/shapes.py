"""Reductions, copies and sums in kinds of shapes that libraries like less: short and turned rows, masks, edges. Each
lazily and compiled; JAX's are compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .families import Arrays, Function

ROWS = (1000, 1000)


class _Shaped(Function):
    """The function of NumPy's name in each framework, and in smelt once more compiled."""

    table = "shapes"


def _workloads(
    name: str, said: str, made: Arrays, ours: Callable[[Any], Callable[..., Any]], by_numpy: Callable[..., Any],
    torch: Callable[[Any], Callable[..., Any]] | None = None,
    jax: Callable[[Any], Callable[..., Any]] | None = None,
) -> None:  # fmt: skip
    """Make two workloads known: `ours` is a call of smelt, and of jax.numpy if `jax` says nothing else."""
    others = {"jax": jax or (lambda m: ours(m.numpy)), **({"torch": torch} if torch else {})}
    for end, words, call in (
        ("", "", ours),
        ("-compiled", ", compiled", lambda m: m.compile(ours(m))),
    ):
        attributes = {
            "said": said + words, "made": staticmethod(made), "by_numpy": staticmethod(by_numpy),
            "calls": {"smelt": call, **others}, "rtol": 1e-3, "atol": 1e-3,
        }  # fmt: skip
        type("Shaped", (_Shaped,), attributes, name=name + end)


def _normal(*shape: int) -> Arrays:
    return lambda rng: [rng.standard_normal(shape, np.float32)]


def _near_one(*shape: int) -> Arrays:
    return lambda rng: [(1 + 0.01 * rng.standard_normal(shape)).astype(np.float32)]


def _complex(rng: np.random.Generator) -> list[np.ndarray]:
    return [(rng.standard_normal(ROWS) + 1j * rng.standard_normal(ROWS)).astype(np.complex64)]


def _masked(rng: np.random.Generator) -> list[np.ndarray]:
    return [rng.standard_normal((1000, 4096), np.float32), rng.random((1000, 4096)) < 0.5]


_workloads(
    "masked-max", "largest of each row under a mask, 1000×4096 f32", _masked,
    lambda m: lambda x, mask: m.where(mask, x, -np.inf).max(1),
    lambda x, mask: np.where(mask, x, -np.inf).max(1).astype(np.float32),
    lambda m: lambda x, mask: m.where(mask, x, -np.inf).amax(1),
)  # fmt: skip
_workloads(
    "nanmax", "nanmax of rows, 1000×4096 f32", _normal(1000, 4096),
    lambda m: lambda x: m.nanmax(x, axis=1), lambda x: np.nanmax(x, 1),
)  # fmt: skip
for _mode, _torch_mode in (("edge", "replicate"), ("reflect", "reflect")):
    _workloads(
        f"pad-{_mode}", f"pad by 3 on each side, {_mode}, 1024×1024 f32", _normal(1024, 1024),
        lambda m, mode=_mode: lambda x: m.pad(x, 3, mode=mode), lambda x, mode=_mode: np.pad(x, 3, mode=mode),
        lambda m, mode=_torch_mode: (
            lambda x: m.nn.functional.pad(x[None, None], (3,) * 4, mode=mode)[0, 0]
        ),
    )  # fmt: skip
_workloads(
    "side-by-side", "16 arrays 1000×256 f32 side by side",
    lambda rng: [rng.standard_normal((1000, 256), np.float32) for _ in range(16)],
    lambda m: lambda *xs: m.concatenate(xs, axis=1), lambda *xs: np.concatenate(xs, 1),
    lambda m: lambda *xs: m.cat(xs, 1),
)  # fmt: skip
_workloads(
    "turned", "axes of 128×128×128 f32 in reverse", _normal(128, 128, 128),
    lambda m: lambda x: m.transpose(x, (2, 1, 0)), lambda x: x.transpose(2, 1, 0),
    lambda m: lambda x: x.permute(2, 1, 0).contiguous(),
)  # fmt: skip
_workloads(
    "argmax-turned", "argmax of the transpose, 1000×1000 f32", _normal(*ROWS),
    lambda m: lambda x: m.argmax(x.T, axis=0), lambda x: x.T.argmax(0), lambda m: lambda x: m.argmax(x.T, 0),
)  # fmt: skip
_workloads(
    "any-turned", "any of the transpose above 3, 1000×1000 f32", _normal(*ROWS),
    lambda m: lambda x: (x.T > 3).any(0), lambda x: (x.T > 3).any(0), lambda m: lambda x: (x.T > 3).any(0),
)  # fmt: skip
_workloads(
    "sum-complex", "sum of rows, 1000×1000 c64", _complex, lambda m: lambda x: x.sum(1), lambda x: x.sum(1),
    lambda m: lambda x: x.sum(1),
)  # fmt: skip
_workloads(
    "prod-rows", "product of rows, 1000×1000 f32", _near_one(*ROWS), lambda m: lambda x: m.prod(x, axis=1),
    lambda x: x.prod(1), lambda m: lambda x: x.prod(1),
)  # fmt: skip
_workloads(
    "sum-tall", "sum of columns, 100,000×10 f32", _near_one(100_000, 10), lambda m: lambda x: x.sum(0),
    lambda x: x.sum(0), lambda m: lambda x: x.sum(0),
)  # fmt: skip
_workloads(
    "min-short", "smallest of rows, 20,000×8×6 f32", _normal(20_000, 8, 6), lambda m: lambda x: m.min(x, axis=2),
    lambda x: x.min(2), lambda m: lambda x: x.amin(2),
)  # fmt: skip
_workloads(
    "cumsum-flat", "cumsum of 1,000,000 f32", _near_one(1_000_000), lambda m: lambda x: m.cumsum(x, axis=0),
    lambda x: np.cumsum(x.astype(np.float64)).astype(np.float32), lambda m: lambda x: x.cumsum(0),
)  # fmt: skip
_workloads(
    "variance-groups", "variance of groups of channels, 8×1024×32×8 f32", _normal(8, 1024, 32, 8),
    lambda m: lambda x: m.var(x, axis=(1, 3)), lambda x: x.var((1, 3)),
    lambda m: lambda x: m.var(x, (1, 3), correction=0),
)  # fmt: skip
_workloads(
    "sum-points", "sum of 64 points each, 4000×64×3 f32", _normal(4000, 64, 3),
    lambda m: lambda x: m.sum(x, axis=1), lambda x: x.sum(1), lambda m: lambda x: x.sum(1),
)  # fmt: skip
_workloads(
    "pool-channels", "largest of 3×3 pixels, 16×96×96×16 f32", _normal(16, 32, 3, 32, 3, 16),
    lambda m: lambda x: m.max(x, axis=(2, 4)), lambda x: x.max((2, 4)), lambda m: lambda x: x.amax((2, 4)),
)  # fmt: skip
