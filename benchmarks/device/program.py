"""What is timed on a device: workloads whose sizes are those that GPUs are for."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..workload import Workload

#: By name, in the order of the table.
programs: dict[str, Program] = {}

#: The columns of the table.
FRAMEWORKS = ("smelt", "mlx", "torch", "torch_compile", "jax")

#: Elements that large arrays repeat: random numbers take longer than the programs.
PATTERN = 2**20


class Program(Workload):
    """A workload on a device. ``name=`` makes it known.

    Attributes:
        dtype: what is computed in.
        tiny: whether sizes are those with which the code is tried.
        device: where the rivals' arrays lie: "cuda" or "cpu".
        awaited: whether each run is waited for, not several together.
        flops: of one run, where arithmetic is what it waits for.
    """

    table = "device"
    dtype: ClassVar[str] = "float32"
    tiny: bool = False
    device: str = "cpu"
    awaited: ClassVar[bool] = False

    def __init_subclass__(cls, name: str | None = None, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        if name is not None:
            cls.name = name
            programs[name] = cls()

    @property
    def flops(self) -> float:
        return 0.0

    def mlx(self, mx: Any) -> Any:
        """What smelt runs, after a change of its import."""
        return self.smelt(mx)

    def shown(self, result: Any) -> Any:
        """What of a result is checked."""
        return result


def numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str = "float32") -> np.ndarray:
    """Normal numbers, which repeat themselves in large arrays."""
    import ml_dtypes

    size = int(np.prod(shape))
    found = rng.standard_normal(min(size, PATTERN), np.float32)
    return np.resize(found.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype), shape)


def wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float64)


#: Tolerances relative to the largest element, by the dtype that is computed in.
TOLERANCE = {"float32": 2e-5, "float16": 4e-3, "bfloat16": 2e-2}


def check_close(program: Program, found: np.ndarray, expected: np.ndarray) -> None:
    """Raise AssertionError where a value is further away than rounding explains."""
    assert found.shape == expected.shape, f"shape {found.shape}, not {expected.shape}"
    error = float(np.max(np.abs(wide(found) - expected)) / np.max(np.abs(expected)))
    assert error <= TOLERANCE[program.dtype], f"error {error:.2e}"
