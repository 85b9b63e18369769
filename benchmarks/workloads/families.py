"""A function of each family besides: counting, gathering, cumulating, random numbers, contractions. One line a
framework; JAX's are compiled, smelt's are not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from ..workload import Workload

Arrays = Callable[[np.random.Generator], Sequence[np.ndarray]]
#: A framework's module to the function of its arrays.
Calls = Mapping[str, Callable[[Any], Callable[..., Any]]]


class Function(Workload):
    """The same function of the same arrays in each framework."""

    table = "library"
    said: ClassVar[str]
    made: ClassVar[Arrays]
    by_numpy: ClassVar[Callable[..., Any]]
    calls: ClassVar[Calls]

    @property
    def title(self) -> str:
        return self.said

    def arrays(self, rng: np.random.Generator) -> list[np.ndarray]:
        return list(type(self).made(rng))

    def expected(self, *arrays: np.ndarray) -> np.ndarray:
        return np.asarray(type(self).by_numpy(*arrays))

    def _called(self, name: str, module: Any) -> Any:
        call = self.calls.get(name)
        return call(module) if call else None

    def smelt(self, smelt: Any) -> Any:
        return self._called("smelt", smelt)

    def mlx(self, mx: Any) -> Any:
        return self._called("mlx", mx)

    def torch(self, torch: Any) -> Any:
        return self._called("torch", torch)

    def jax(self, jax: Any) -> Any:
        call = self._called("jax", jax)
        return jax.jit(call) if call else None


def _workload(
    name: str, said: str, made: Arrays, by_numpy: Callable[..., Any], rtol: float = 1e-4, atol: float = 1e-4,
    **calls: Callable[[Any], Callable[..., Any]],
) -> None:  # fmt: skip
    """Make a workload known; `same` is a call of smelt, MLX and of jax.numpy alike, `ours` of smelt and MLX."""
    same, ours = calls.pop("same", None), calls.pop("ours", None)
    if same is not None:
        calls = {"smelt": same, "mlx": same, "jax": lambda jax: same(jax.numpy), **calls}
    if ours is not None:
        calls = {"smelt": ours, "mlx": ours, **calls}
    attributes = {"said": said, "made": staticmethod(made), "by_numpy": staticmethod(by_numpy), "calls": calls}
    type("Function", (Function,), {**attributes, "rtol": rtol, "atol": atol}, name=name)


def _normal(*shapes: tuple[int, ...]) -> Arrays:
    return lambda rng: [rng.standard_normal(shape, np.float32) for shape in shapes]


ROWS, LONG = (1000, 4096), 1_000_000

# Counting and finding.

_workload(
    "searchsorted", "searchsorted, 1,000,000 in 100,000 f32",
    lambda rng: [np.sort(rng.standard_normal(100_000, np.float32)), rng.standard_normal(LONG, np.float32)],
    np.searchsorted,
    smelt=lambda m: m.searchsorted, torch=lambda m: m.searchsorted, jax=lambda m: m.numpy.searchsorted,
)  # fmt: skip
_workload(
    "interp", "interp, 1,000,000 between 1,000 points f32",
    lambda rng: [
        rng.uniform(0, 1, LONG).astype(np.float32), np.linspace(0, 1, 1000, dtype=np.float32),
        rng.standard_normal(1000, np.float32),
    ],
    np.interp, atol=1e-2,
    smelt=lambda m: m.interp, jax=lambda m: m.numpy.interp,
)  # fmt: skip
_workload(
    "unique", "unique values of 1,000,000 int32 below 1,000",
    lambda rng: [rng.integers(0, 1000, LONG, np.int32)], np.unique,
    smelt=lambda m: m.unique_values, torch=lambda m: m.unique,
)  # fmt: skip
_workload(
    "nonzero", "where in 1,000,000 f32 are positive ones", _normal((LONG,)), lambda x: np.nonzero(x > 0)[0],
    smelt=lambda m: lambda x: m.nonzero(x > 0)[0], torch=lambda m: lambda x: m.nonzero(x > 0)[:, 0],
)  # fmt: skip
_workload(
    "masked", "the positive ones of 1,000,000 f32 (x[x > 0])", _normal((LONG,)), lambda x: x[x > 0],
    smelt=lambda m: lambda x: x[x > 0], torch=lambda m: lambda x: x[x > 0],
)  # fmt: skip
_workload(
    "argmax-rows", "argmax of rows, 1000×4096 f32", _normal(ROWS), lambda x: x.argmax(1),
    same=lambda m: lambda x: m.argmax(x, 1), torch=lambda m: lambda x: m.argmax(x, 1),
)  # fmt: skip
_workload(
    "argmax-columns", "argmax of columns, 1000×4096 f32", _normal(ROWS), lambda x: x.argmax(0),
    same=lambda m: lambda x: m.argmax(x, 0), torch=lambda m: lambda x: m.argmax(x, 0),
)  # fmt: skip
_workload(
    "argsort-int16", "argsort of 1,000,000 int16",
    lambda rng: [rng.integers(-(2**15), 2**15, LONG, np.int16)], lambda x: np.argsort(x, kind="stable"),
    same=lambda m: m.argsort, torch=lambda m: lambda x: m.argsort(x, stable=True),
)  # fmt: skip
_workload(
    "top-100", "the 100 largest of each row, 1000×4096 f32", _normal(ROWS), lambda x: np.sort(x)[:, -100:],
    smelt=lambda m: lambda x: m.sort(m.topk(x, 100)), mlx=lambda m: lambda x: m.sort(m.topk(x, 100)),
    torch=lambda m: lambda x: m.topk(x, 100)[0].flip(1), jax=lambda m: lambda x: m.lax.top_k(x, 100)[0][:, ::-1],
)  # fmt: skip
_workload(
    "nanmean", "nanmean of rows, 1000×4096 f32",
    lambda rng: [np.where(rng.random(ROWS) < 0.1, np.nan, rng.standard_normal(ROWS)).astype(np.float32)],
    lambda x: np.nanmean(x, 1),
    smelt=lambda m: lambda x: m.nanmean(x, axis=1), torch=lambda m: lambda x: m.nanmean(x, 1),
    jax=lambda m: lambda x: m.numpy.nanmean(x, 1),
)  # fmt: skip
_workload(
    "cov", "cov of 64 variables, 10,000 observations f32", _normal((64, 10_000)), np.cov,
    smelt=lambda m: m.cov, torch=lambda m: m.cov, jax=lambda m: m.numpy.cov,
)  # fmt: skip

# Gathering and scattering.

_INDICES = 100_000
_workload(
    "gather-rows", "100,000 rows of 64 of 100,000, f32",
    lambda rng: [rng.standard_normal((_INDICES, 64), np.float32), rng.integers(0, _INDICES, _INDICES, np.int32)],
    lambda x, i: x[i],
    same=lambda m: lambda x, i: m.take(x, i, axis=0), torch=lambda m: lambda x, i: x[i],
)  # fmt: skip
_workload(
    "take-along", "take_along_axis of rows, 1000×4096 f32",
    lambda rng: [rng.standard_normal(ROWS, np.float32), rng.integers(0, ROWS[1], ROWS, np.int64)],
    lambda x, i: np.take_along_axis(x, i, 1),
    same=lambda m: lambda x, i: m.take_along_axis(x, i, 1), torch=lambda m: lambda x, i: m.gather(x, 1, i),
)  # fmt: skip
_workload(
    "put-along", "put_along_axis of rows, 1000×4096 f32",
    lambda rng: [
        rng.standard_normal(ROWS, np.float32), rng.permuted(np.tile(np.arange(ROWS[1]), (ROWS[0], 1)), axis=1),
        rng.standard_normal(ROWS, np.float32),
    ],
    lambda x, i, v: np.take_along_axis(v, np.argsort(i, 1), 1),
    ours=lambda m: lambda x, i, v: m.put_along_axis(x, i, v, 1),
    torch=lambda m: lambda x, i, v: m.scatter(x, 1, i, v),
)  # fmt: skip


def _sums_by_index(size: int) -> Callable[..., Any]:
    def sums(x: np.ndarray, i: np.ndarray, v: np.ndarray) -> np.ndarray:
        out = x.astype(np.float64)
        np.add.at(out, i, v)
        return out.astype(np.float32)

    return sums


_workload(
    "scatter-add", "1,000,000 numbers added to 10,000, f32",
    lambda rng: [
        np.zeros(10_000, np.float32), rng.integers(0, 10_000, LONG, np.int64), rng.standard_normal(LONG, np.float32)
    ],
    _sums_by_index(10_000), rtol=1e-3, atol=1e-3,
    smelt=lambda m: lambda x, i, v: x.at[i].add(v), mlx=lambda m: lambda x, i, v: x.at[i].add(v),
    torch=lambda m: lambda x, i, v: x.index_add(0, i, v), jax=lambda m: lambda x, i, v: x.at[i].add(v),
)  # fmt: skip
_workload(
    "scatter-rows", "100,000 rows of 64 added to 10,000, f32",
    lambda rng: [
        np.zeros((10_000, 64), np.float32), rng.integers(0, 10_000, _INDICES, np.int64),
        rng.standard_normal((_INDICES, 64), np.float32),
    ],
    _sums_by_index(10_000), rtol=1e-3, atol=1e-3,
    smelt=lambda m: lambda x, i, v: x.at[i].add(v), mlx=lambda m: lambda x, i, v: x.at[i].add(v),
    torch=lambda m: lambda x, i, v: x.index_add(0, i, v), jax=lambda m: lambda x, i, v: x.at[i].add(v),
)  # fmt: skip

# Along an axis.

for _name, _function, _others in (
    ("cumsum", np.cumsum, ("cumsum", "cumsum")),
    ("cumprod", np.cumprod, ("cumprod", "cumprod")),
    ("cummax", np.maximum.accumulate, ("cummax", "cummax")),
):
    for _axis, _where in ((1, "rows"), (0, "columns")):
        _workload(
            f"{_name}-{_where}", f"{_name} of {_where}, 1000×4096 f32",
            lambda rng: [(1 + 0.01 * rng.standard_normal(ROWS)).astype(np.float32)],
            lambda x, f=_function, axis=_axis: f(x, axis=axis), rtol=1e-3, atol=1e-2,
            ours=lambda m, n=_name, axis=_axis: lambda x: getattr(m, n)(x, axis=axis),
            torch=lambda m, n=_name, axis=_axis: (
                lambda x: m.cummax(x, axis)[0] if n == "cummax" else getattr(m, n)(x, axis)
            ),
            jax=lambda m, n=_name, axis=_axis: (
                lambda x: m.lax.cummax(x, axis) if n == "cummax" else getattr(m.numpy, n)(x, axis=axis)
            ),
        )  # fmt: skip
_workload(
    "logcumsumexp", "logcumsumexp of rows, 1000×4096 f32", _normal(ROWS),
    lambda x: np.log(np.cumsum(np.exp(x.astype(np.float64)), 1)).astype(np.float32),
    ours=lambda m: lambda x: m.logcumsumexp(x, axis=1), torch=lambda m: lambda x: m.logcumsumexp(x, 1),
    jax=lambda m: lambda x: m.lax.cumlogsumexp(x, 1),
)  # fmt: skip
_workload(
    "std-columns", "std of columns, 1000×4096 f32", _normal(ROWS), lambda x: x.std(0),
    same=lambda m: lambda x: m.std(x, axis=0), torch=lambda m: lambda x: m.std(x, 0, correction=0),
)  # fmt: skip
_workload(
    "roll", "roll by 1000, 1000×4096 f32", _normal(ROWS), lambda x: np.roll(x, 1000, 1),
    same=lambda m: lambda x: m.roll(x, 1000, 1), torch=lambda m: lambda x: m.roll(x, 1000, 1),
)  # fmt: skip
_workload(
    "flip", "flip of rows, 1000×4096 f32", _normal(ROWS), lambda x: x[:, ::-1],
    smelt=lambda m: lambda x: m.flip(x, 1), torch=lambda m: lambda x: m.flip(x, [1]),
    jax=lambda m: lambda x: m.numpy.flip(x, 1),
)  # fmt: skip
_workload(
    "repeat", "repeat of each element 4 times, 1000×1024 f32", _normal((1000, 1024)), lambda x: np.repeat(x, 4, 1),
    same=lambda m: lambda x: m.repeat(x, 4, axis=1), torch=lambda m: lambda x: m.repeat_interleave(x, 4, 1),
)  # fmt: skip
_workload(
    "diff", "diff of rows, 1000×4096 f32", _normal(ROWS), lambda x: np.diff(x, axis=1),
    smelt=lambda m: lambda x: m.diff(x, axis=1), torch=lambda m: lambda x: m.diff(x, dim=1),
    jax=lambda m: lambda x: m.numpy.diff(x, axis=1),
)  # fmt: skip
_workload(
    "concatenate", "8 arrays 1000×512 f32 side by side", _normal(*[(1000, 512)] * 8),
    lambda *x: np.concatenate(x, 1),
    same=lambda m: lambda *x: m.concatenate(x, 1), torch=lambda m: lambda *x: m.cat(x, 1),
)  # fmt: skip

# Random numbers, of which the means are compared.


def _random(name: str, said: str, mean: float, **calls: Callable[[Any], Callable[..., Any]]) -> None:
    _workload(
        f"random-{name}", f"{said}, their mean", lambda rng: [np.zeros((), np.float32)], lambda x: np.float32(mean),
        rtol=0, atol=0.02, **calls,
    )  # fmt: skip


_random(
    "uniform", "4,000,000 uniform numbers f32", 0.5,
    ours=lambda m: lambda x: (m.random.uniform(shape=(4, LONG)) + x).mean(),
    torch=lambda m: lambda x: (m.rand(4, LONG) + x).mean(),
    jax=lambda m: lambda x: (m.random.uniform(m.random.key(1), (4, LONG)) + x).mean(),
)  # fmt: skip
_random(
    "gamma", "1,000,000 numbers of the gamma distribution (2), f32", 2.0,
    smelt=lambda m: lambda x: (m.random.gamma(2.0, shape=(LONG,)) + x).mean(),
    torch=lambda m: lambda x: (m._standard_gamma(m.full((LONG,), 2.0)) + x).mean(),
    jax=lambda m: lambda x: (m.random.gamma(m.random.key(1), 2.0, (LONG,)) + x).mean(),
)  # fmt: skip
_random(
    "poisson", "1,000,000 numbers of Poisson's distribution (4)", 4.0,
    smelt=lambda m: lambda x: (m.random.poisson(4.0, shape=(LONG,)) + x).mean(),
    torch=lambda m: lambda x: (m.poisson(m.full((LONG,), 4.0)) + x).mean(),
    jax=lambda m: lambda x: (m.random.poisson(m.random.key(1), 4.0, (LONG,)) + x).mean(),
)  # fmt: skip
_random(
    "categorical", "10,000 choices of 1000, f32", 499.5,
    ours=lambda m: lambda x: (m.random.categorical(m.zeros((10_000, 1000))) + x).mean() / 1000 + 498.9995,
    torch=lambda m: lambda x: (m.multinomial(m.ones(10_000, 1000), 1) + x).mean() / 1000 + 498.9995,
    jax=lambda m: lambda x: (
        (m.random.categorical(m.random.key(1), m.numpy.zeros((10_000, 1000))) + x).mean() / 1000 + 498.9995
    ),
)  # fmt: skip
_random(
    "permutation", "half of a permutation of 1,000,000", 0.5,
    ours=lambda m: lambda x: (m.random.permutation(LONG)[: LONG // 2] / LONG + x).mean(),
    torch=lambda m: lambda x: (m.randperm(LONG)[: LONG // 2] / LONG + x).mean(),
    jax=lambda m: lambda x: (m.random.permutation(m.random.key(1), LONG)[: LONG // 2] / LONG + x).mean(),
)  # fmt: skip

# Contractions.

for _name, _text, _shapes in (
    ("scores", "bqhd,bkhd->bhqk", ((4, 256, 8, 64), (4, 256, 8, 64))),
    ("batch-small", "bij,bjk->bik", ((10_000, 4, 4), (10_000, 4, 4))),
    ("rowwise", "ij,ij->i", ((4096, 1024), (4096, 1024))),
    ("outer-sum", "bi,bj->ij", ((4096, 256), (4096, 256))),
    ("last-of-three", "ijk,kl->ijl", ((64, 128, 64), (64, 256))),
    ("middle", "ijk,jl->ilk", ((64, 64, 128), (64, 64))),
    ("bilinear", "bi,ijk,bk->bj", ((256, 64), (64, 64, 64), (256, 64))),
):
    _workload(
        f"einsum-{_name}", f"einsum {_text}, {' and '.join('×'.join(map(str, s)) for s in _shapes)} f32",
        _normal(*_shapes), lambda *x, t=_text: np.einsum(t, *x, optimize=True), rtol=1e-3, atol=1e-2,
        same=lambda m, t=_text: lambda *x: m.einsum(t, *x), torch=lambda m, t=_text: lambda *x: m.einsum(t, *x),
    )  # fmt: skip
_workload(
    "convolve", "convolve, 100,000 by 1,000 f32", _normal((100_000,), (1000,)), np.convolve, rtol=1e-3, atol=1e-2,
    same=lambda m: m.convolve,
    torch=lambda m: lambda x, w: m.nn.functional.conv1d(x[None, None], w.flip(0)[None, None], padding=999)[0, 0],
)  # fmt: skip
