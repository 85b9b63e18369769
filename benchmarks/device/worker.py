"""Times programs on a device in one framework: a process that answers requests, one JSON object a line.

``{"program": name, "prepare": true}`` makes it, runs it once and checks the result; ``{"program": name, "seconds":
budget}`` times it then, and with ``"kernels": true`` counts what the GPU ran (where torch is installed, whose profiler
sees all of the process). ``{}`` asks for the version.
"""

from __future__ import annotations

import gc
import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from . import attention as _attention  # noqa: F401  (registers them)
from . import functions as _functions  # noqa: F401
from . import kernels as _kernels  # noqa: F401
from . import quantized as _quantized  # noqa: F401
from . import steps as _steps  # noqa: F401
from .program import Program, programs

#: A sample is so many seconds at least, of runs that are waited for together; and so many samples are taken.
SAMPLE, FEWEST, MOST = 0.005, 5, 50


class Framework:
    """A framework on a device: arrays in and out, and how to wait."""

    def __init__(self, device: str):
        self.device = device

    def exact(self) -> None:
        """Products of float32 are those of float32, not of fewer bits."""

    def forget(self) -> None:
        """Drop what another program has left."""

    def array(self, x: np.ndarray) -> Any:
        return self.module.asarray(x)

    def started(self, result: Any) -> None:
        """Begin with what makes `result`, without waiting."""

    def wait(self, result: Any) -> None:
        """Return when `result` has its value."""
        raise NotImplementedError

    def numpy(self, result: Any) -> np.ndarray:
        return np.asarray(result)

    module: Any
    version: str


class Smelt(Framework):
    def __init__(self, device: str):
        super().__init__(device)
        os.environ["SMELT_DEVICE"] = device
        os.environ.setdefault("SMELT_TIER", "program")  # what is compiled in the background disturbs what is timed
        from importlib.metadata import PackageNotFoundError, version

        import smelt

        self.module = smelt
        try:
            self.version = version("smelt-mlir")
        except PackageNotFoundError:  # from a folder
            self.version = getattr(smelt, "__version__", "")

    def array(self, x):
        return self.module.array(x)

    def started(self, result):
        self.module.eval(result)

    def wait(self, result):
        self.module.eval(result)
        self.module.synchronize()

    def numpy(self, result):
        return np.array(result.astype(self.module.float32) if result.dtype == self.module.bfloat16 else result)


class Mlx(Framework):
    def __init__(self, device: str):
        super().__init__(device)
        os.environ["MLX_ENABLE_TF32"] = "0"
        import mlx.core as mx
        from mlx import nn, optimizers

        mx.set_default_device(mx.gpu if device == "cuda" else mx.cpu)
        parts = {name: getattr(mx, name) for name in dir(mx)} | {"nn": nn, "optimizers": optimizers}
        self.module, self.version = SimpleNamespace(**parts), mx.__version__

    def array(self, x):
        found = self.module.array(x.view(np.uint16) if x.dtype.name == "bfloat16" else x)
        return found.view(self.module.bfloat16) if x.dtype.name == "bfloat16" else found

    def forget(self):
        self.module.clear_cache()

    def started(self, result):
        self.module.async_eval(result)

    def wait(self, result):
        self.module.eval(result)
        self.module.synchronize()

    def numpy(self, result):
        return np.array(result.astype(self.module.float32))


class Torch(Framework):
    def __init__(self, device: str):
        super().__init__(device)
        import torch

        self.module, self.version = torch, torch.__version__
        torch.set_grad_enabled(False)
        torch.backends.cudnn.benchmark = True

    def forget(self):
        self.module._dynamo.reset()
        self.module.cuda.empty_cache()

    def exact(self):
        self.module.backends.cudnn.allow_tf32 = self.module.backends.cuda.matmul.allow_tf32 = False

    def array(self, x):
        found = self.module.from_numpy(np.array(x.view(np.int16) if x.dtype.name == "bfloat16" else x))
        return (found.view(self.module.bfloat16) if x.dtype.name == "bfloat16" else found).to(self.device)

    def wait(self, result):
        if self.device == "cuda":
            self.module.cuda.synchronize()

    def numpy(self, result):
        return result.detach().float().cpu().numpy()


class Jax(Framework):
    def __init__(self, device: str):
        super().__init__(device)
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # others have the GPU, too
        import jax

        self.module, self.version = jax, jax.__version__

    def exact(self):
        self.module.config.update("jax_default_matmul_precision", "highest")

    def array(self, x):
        return self.module.numpy.asarray(x)

    def wait(self, result):
        self.module.block_until_ready(result)

    def numpy(self, result):
        return np.asarray(result.astype("float32"))


FRAMEWORKS: dict[str, type[Framework]] = {
    "smelt": Smelt, "mlx": Mlx, "torch": Torch, "torch_compile": Torch, "jax": Jax
}  # fmt: skip


class NothingToCompare(Exception):
    """A framework has no such function."""


class Prepared:
    """A program that has run once.

    Attributes:
        first: seconds until the first result, which was right. value: it, if it is a number.
    """

    def __init__(self, program: Program, framework: Framework, name: str):
        self.program, self.framework, self.value = program, framework, None
        if program.dtype == "float32":
            framework.exact()
        host = program.arrays(np.random.default_rng(0))
        self.arrays = [framework.array(x) for x in host]
        framework.wait(self.arrays)
        start = time.perf_counter()
        self.function: Callable[..., Any] | None = getattr(program, name)(framework.module)
        if self.function is None:
            raise NothingToCompare
        result = self.function(*self.arrays)
        framework.wait(result)
        self.first = time.perf_counter() - start
        found = framework.numpy(program.shown(result))
        if found.shape == ():
            self.value = float(found)
        program.check(found, *host)

    def sample(self, runs: int) -> float:
        """Seconds of a run, of so many that are waited for together."""
        assert self.function is not None
        start = time.perf_counter()
        for _ in range(runs):
            result = self.function(*self.arrays)
            self.framework.started(result)
        self.framework.wait(result)
        return (time.perf_counter() - start) / runs

    def times(self, seconds: float) -> list[float]:
        for _ in range(3):
            self.sample(1)  # graphs are recorded, pools filled
        once = min(self.sample(1) for _ in range(3))
        runs = 1 if self.program.awaited else max(1, min(200, round(SAMPLE / once)))
        found: list[float] = []
        stop = time.perf_counter() + seconds
        while len(found) < FEWEST or (time.perf_counter() < stop and len(found) < MOST):
            found.append(self.sample(runs))
        return found

    def kernels(self) -> list[tuple[str, int, float]]:
        """What the GPU ran in one run: names, how often, and milliseconds; the longest first."""
        if self.framework.device != "cuda" or importlib.util.find_spec("torch") is None:
            return []
        import torch
        from torch.profiler import ProfilerActivity, profile

        self.sample(1)
        with profile(activities=[ProfilerActivity.CUDA]) as found:
            self.sample(1)
            torch.cuda.synchronize()
        rows = [(e.key, e.count, e.self_device_time_total / 1e3) for e in found.key_averages()]
        return sorted((row for row in rows if row[2]), key=lambda row: -row[2])


class Answers:
    """To requests, in a process that keeps the program that it prepared last."""

    def __init__(self, name: str, device: str):
        self.name, self.framework = name, FRAMEWORKS[name](device)
        self.prepared: Prepared | None = None

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        if not request:
            return {"version": self.framework.version}
        try:
            if request.get("prepare"):
                self.prepared = None
                gc.collect()
                self.framework.forget()
                program = programs[request["program"]]
                program.tiny, program.device = bool(request.get("tiny")), self.framework.device
                self.prepared = Prepared(program, self.framework, self.name)
                return {"first": self.prepared.first, "value": self.prepared.value}
            assert self.prepared is not None
            found: dict[str, Any] = {"times": self.prepared.times(request["seconds"])}
        except NothingToCompare:
            return {}
        except Exception as error:
            lines = [line for line in str(error).splitlines() if line.strip()]
            return {"error": f"{type(error).__name__}: {' '.join(lines[:3])}"[:400]}
        if request.get("kernels"):
            try:
                found["kernels"] = self.prepared.kernels()
            except Exception as error:  # of the profiler: there are times
                found["note"] = f"{type(error).__name__}: {error}"[:200]
        return found


def main(name: str, device: str) -> None:
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what frameworks print does not mix with the answers
    answers = Answers(name, device)
    for line in sys.stdin:
        print(json.dumps(answers.answer(json.loads(line))), file=replies, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
