"""What a workload is.

A subclass states the arrays it works on, how a result is checked, and one method for each framework
that can do it. The method gets the framework's module and returns a function of the arrays; timing,
conversion, waiting and checking are the worker's. Subclasses register themselves by their name.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

workloads: dict[str, Workload] = {}

#: Methods by which a workload says what a framework does, in the order of the table's columns.
FRAMEWORKS = ("smelt", "mlx", "torch", "torch_compile", "jax")


#: What of a layer is computed, with what the names of workloads say of it.
PARTS = {"forward": "", "images": "-dx", "weights": "-dw"}


def part_of_layer(module: Any, layer: Any, part: str) -> Any:
    """A layer of x and w, or one of its gradients as a function of x, w and the cotangent, by MLX's transformations."""
    if part == "forward":
        return layer
    if part == "images":
        return lambda x, w, ct: module.vjp(lambda x: layer(x, w), [x], [ct])[1][0]
    return lambda x, w, ct: module.vjp(lambda w: layer(x, w), [w], [ct])[1][0]


class Workload:
    """Base class of workloads; ``class Softmax(Workload, name="softmax")`` makes one known."""

    name: ClassVar[str]
    unit: ClassVar[str] = "ms"
    #: The time is divided by this: operations in one run.
    count: ClassVar[int] = 1
    #: Whether the table has tokens a second in place of the time of one.
    is_rate: ClassVar[bool] = False
    #: Whether making the function belongs to the timed part (compile times).
    making: ClassVar[bool] = False
    #: Whether each sample needs a process of its own.
    fresh_process: ClassVar[bool] = False
    #: Bytes that any implementation must move; 0 where that says nothing.
    least_bytes: ClassVar[int] = 0
    rtol: ClassVar[float] = 1e-5
    atol: ClassVar[float] = 1e-5
    #: Differs at each sample: for programs that must not be found in a cache.
    salt: float = 0.0
    #: The table that has it: `programs`, run when nothing is named, `library`, single functions, `shapes`, the same in
    #: kinds of shapes, or `examples`.
    table: ClassVar[str] = "programs"

    def __init_subclass__(cls, name: str | None = None, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        if name is not None:
            cls.name = name
            workloads[name] = cls()

    @property
    def theme(self) -> str:
        """The file that it stands in."""
        return type(self).__module__.rpartition(".")[2]

    @property
    def title(self) -> str:
        """The first line of the docstring."""
        return (type(self).__doc__ or "").strip().splitlines()[0].rstrip(".")

    def arrays(self, rng: np.random.Generator) -> list[np.ndarray]:
        """The inputs."""
        raise NotImplementedError

    def expected(self, *arrays: np.ndarray) -> np.ndarray:
        """The result by NumPy, for `check`."""
        raise NotImplementedError

    def check(self, result: np.ndarray, *arrays: np.ndarray) -> None:
        """Raise AssertionError when a result is wrong."""
        expected = self.expected(*arrays)
        assert result.shape == expected.shape, f"shape {result.shape}, not {expected.shape}"
        np.testing.assert_allclose(result, expected, rtol=self.rtol, atol=self.atol)

    def least(self, np: Any) -> Any:
        """What bounds the time from below, as a function of the arrays. None: copying least_bytes."""
        return None

    # The frameworks: each gets its module. A method left out means that there is nothing to compare.

    def smelt(self, smelt: Any) -> Any:
        return None

    def mlx(self, mx: Any) -> Any:
        return None

    def torch(self, torch: Any) -> Any:
        return None

    def torch_compile(self, torch: Any) -> Any:
        return None

    def jax(self, jax: Any) -> Any:
        return None
