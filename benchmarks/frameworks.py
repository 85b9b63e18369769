"""The frameworks: how to get arrays in and out of them, and how to wait for a result."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from .machine import threads


class Framework:
    """One column of the table; a subclass for each."""

    package = ""

    def __init__(self) -> None:
        self.module = importlib.import_module(self.package)

    @property
    def version(self) -> str:
        from importlib.metadata import version

        return version(self.package.split(".")[0])

    def array(self, x: np.ndarray) -> Any:
        """A NumPy array as the framework's."""
        raise NotImplementedError

    def wait(self, result: Any) -> Any:
        """Return when `result` has its value."""
        return result

    def numpy(self, result: Any) -> Any:
        """A result, or each of a list, as a NumPy array."""
        if isinstance(result, (list, tuple)):
            return [self.numpy(x) for x in result]
        return np.array(result)

    def forget(self) -> None:
        """Drop compiled programs, before a compile is timed."""

    def settle(self, run: Callable[[], Any], seconds: float) -> None:
        """Run something until what is compiled beside it is there, for about so long."""


class Smelt(Framework):
    package = "smelt"

    @property
    def version(self) -> str:
        from importlib.metadata import version

        return version("smelt-mlir")

    def array(self, x):
        return self.module.array(x)

    def wait(self, result):
        self.module.eval(result)
        return result

    def settle(self, run, seconds):
        from smelt.runtime.background import wait_for_all

        end = time.process_time() + seconds  # of work: what it takes op by op decides when it is compiled
        while time.process_time() < end:
            run()
        if wait_for_all(600):
            run()


class Mlx(Framework):
    package = "mlx.core"

    def array(self, x):
        return self.module.array(x)

    def wait(self, result):
        self.module.eval(result)
        return result


class Torch(Framework):
    package = "torch"

    def __init__(self) -> None:
        super().__init__()
        self.module.set_num_threads(threads())
        self.module.set_grad_enabled(False)

    def array(self, x):
        return self.module.from_numpy(x)


class TorchCompile(Torch):
    def forget(self):
        self.module._dynamo.reset()


class Jax(Framework):
    package = "jax"

    def array(self, x):
        return self.wait(self.module.numpy.asarray(x))

    def wait(self, result):
        return self.module.block_until_ready(result)


frameworks: dict[str, type[Framework]] = {
    "smelt": Smelt,
    "mlx": Mlx,
    "torch": Torch,
    "torch_compile": TorchCompile,
    "jax": Jax,
}
