"""The stored programs, their arguments and their results; see `make_programs`."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import NamedTuple

import numpy as np

FOLDER = Path(__file__).parent / "programs"
NAMES = sorted(path.stem for path in FOLDER.glob("*.mlir"))


class Program(NamedTuple):
    text: str
    arguments: list[np.ndarray]
    results: list[np.ndarray]


@functools.cache
def _values() -> dict[str, np.ndarray]:
    with np.load(FOLDER / "values.npz") as file:
        return dict(file)


@functools.cache
def program(name: str) -> Program:
    values = _values()

    def all_of(kind: str) -> list[np.ndarray]:
        count = sum(key.startswith(f"{name}.{kind}") for key in values)
        return [values[f"{name}.{kind}{i}"] for i in range(count)]

    return Program((FOLDER / f"{name}.mlir").read_text(encoding="utf-8"), all_of("argument"), all_of("result"))


def check(name: str, found: object) -> None:
    """Results beside JAX's: integers are equal, float32 is to a few hundred units in the last place of the largest."""
    given = found if isinstance(found, tuple) else (found,)
    wanted = program(name).results
    assert len(given) == len(wanted)
    for i, (a, b) in enumerate(zip(given, wanted)):
        a = np.array(a)
        assert (a.shape, a.dtype) == (b.shape, b.dtype), f"{name}: result {i}"
        if b.dtype.kind not in "fc":
            np.testing.assert_array_equal(a, b, err_msg=f"{name}: result {i}")
            continue
        finite = np.abs(b[np.isfinite(b)])
        size = float(finite.max(initial=1e-3))
        tolerance = 2e-3 if b.dtype == np.float16 else 3e-5
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * size, err_msg=f"{name}: result {i}")
