"""`smelt doctor`: whether smelt works on this machine, device by device, as a report to hand in.

Every device that is here runs the same: each op of the registry against its NumPy rule, roots, quotients and products
bit by bit against NumPy's, half precision in both directions, and a training that must converge. On a Mac's GPU also
whether its memory goes back, and how fast it copies.
"""

from __future__ import annotations

import argparse
import gc
import platform
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import numpy as np

import smelt
from smelt.backends.device import Device, devices, registered, registered_device
from smelt.ir.aval import Aval
from smelt.ir.errors import SmeltError
from smelt.ir.op import Op
from smelt.ir.settings import override, settings
from smelt.runtime import Buffer, compile_module
from smelt.runtime.device import device_named

from .op_cases import example, module_of_batch, plain_ops, random_operands, reference
from .usage import require_writable, write

#: Ops in one program: their number decides how long compiling takes, and how many are named when it fails.
BATCH = 24
#: Relative error of an op, by bytes of a number's parts.
TOLERANCE = {2: 2e-2, 4: 1e-4, 8: 1e-9}
#: Floats that most functions are defined for.
DOMAIN = (0.2, 0.9)
#: Bytes of the array that tells the bandwidth, at most.
MOST_COPIED = 1 << 28
#: Distributions whose versions a report names.
PACKAGES = (
    "smelt-mlir", "numpy", "ml_dtypes", "optree", "torch-mlir", "scipy-openblas64", "libclang", "ziglang",
    "pyobjc-core", "pyobjc-framework-Metal",
)  # fmt: skip
#: What is asked of a device, and what it means.
CHECKS: dict[str, str] = {
    "ops": "every op of the registry gives what its NumPy rule gives",
    "precision": "roots, quotients, sums and products are correctly rounded",
    "half": "float16 and bfloat16 round to nearest even, in both directions",
    "training": "a network learns",
    "ownership": "memory of a dropped array goes back to the system",
    "bandwidth": "a kernel of one operation moves as many bytes a second as the memory can",
}


class Finding(SmeltError):
    """A check that failed; the message says what was found."""


@dataclass(frozen=True)
class Answer:
    """What a check found. `state`: "ok", "failed" or "left out"."""

    name: str
    state: str
    text: str
    seconds: float = 0.0

    def __str__(self) -> str:
        return f"{self.state:8}  {self.name:22}  {self.text}  ({self.seconds:.1f} s)"


def doctor(options: argparse.Namespace) -> int:
    """Print the report, and write it where `options.output` says; 0 if nothing failed."""
    if options.output:
        require_writable(options.output)
    names = options.device or [name for name, device in registered.items() if not device.interprets]
    for name in names:
        registered_device(name)  # an unknown device is an error of the command
    lines: list[str] = []

    def say(line: str) -> None:
        print(line, flush=True)
        lines.append(line)

    for line in machine():
        say(line)
    failed = 0
    for name in dict.fromkeys(names):
        say(f"\n{name}")
        for answer in examine(name):
            say(f"  {answer}")
            failed += answer.state == "failed"
    say(f"\n{failed} checks failed." if failed else "\nNothing failed.")
    if options.output:
        write(options.output, "\n".join(lines) + "\n")
        print(f"The report is in {options.output}.")
    return 1 if failed else 0


def machine() -> Iterator[str]:
    """What a report says of the machine."""
    yield f"smelt {smelt.__version__} on {platform.platform()}, {platform.machine()}"
    yield f"Python {platform.python_version()} ({platform.python_implementation()})"
    yield "packages: " + ", ".join(f"{name} {version}" for name in PACKAGES if (version := _version(name)))
    yield f"core in C: {_core()}"
    yield f"BLAS: {_blas()}"
    yield f"C++ compiler for metal:sim: {_compiler()}"


def examine(name: str) -> Iterator[Answer]:
    """Run every check on a device. For one that is not available, say what would be checked."""
    if name not in devices:
        for check, meaning in CHECKS.items():
            yield Answer(check, "left out", f"{registered_device(name).missing}; would check that {meaning}")
        return
    device = device_named(name)
    for check, run in _RUN.items():
        begun = time.perf_counter()
        with override(device=name), warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            try:
                state, text = "ok", run(device)
            except Finding as finding:
                state, text = "failed", str(finding)
            except _LeftOut as reason:
                state, text = "left out", str(reason)
            except Exception as error:
                state, text = "failed", f"{type(error).__name__}: {error}"
                if not isinstance(error, SmeltError):
                    text += "\n" + "".join(traceback.format_tb(error.__traceback__)[-3:])
        yield Answer(check, state, text, time.perf_counter() - begun)


class _LeftOut(Exception):
    """A check that means nothing on a device; the message says why."""


# Checks


def _ops(device: Device) -> str:
    every = plain_ops()
    wrong = []
    for first in range(0, len(every), BATCH):
        wrong += _wrong_of(every[first : first + BATCH], device)
    if wrong:
        raise Finding(f"{len(wrong)} of {len(every)} ops: " + "; ".join(wrong[:12]))
    return f"{len(every)} ops"


def _wrong_of(ops: Sequence[Op], device: Device) -> list[str]:
    """Which of some ops, compiled as one program, differ from their NumPy rules."""
    rng = np.random.default_rng(0)
    cases = [example(op) for op in ops]
    operands = [random_operands(case, rng, DOMAIN) for case in cases]
    try:
        program = compile_module(module_of_batch(cases), device)
        flat = [Buffer.of(x, a) for case, xs in zip(cases, operands) for x, a in zip(xs, case.avals)]
        outs = iter(program.run(flat))
    except SmeltError as error:
        if len(ops) > 1:
            return [w for op in ops for w in _wrong_of([op], device)]
        return [f"{ops[0].name}: {str(error).splitlines()[0]}"]
    wrong = []
    for case, xs in zip(cases, operands):
        with np.errstate(all="ignore"):
            wanted = reference(case, xs)
        for want in wanted:
            found, want = next(outs).array, np.asarray(want)
            if not _close(found, want):
                shown = ", ".join(map(str, case.avals))
                wrong.append(f"{case.op.name}({shown}) gives {_some(found)} for {_some(want)}")
    return wrong


def _close(found: np.ndarray, want: np.ndarray) -> bool:
    if found.shape != want.shape:
        return False
    if want.dtype.kind in "biu":
        return bool(np.array_equal(found, want))
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    size = want.dtype.itemsize // (2 if want.dtype.kind == "c" else 1)
    error = TOLERANCE[size]
    scale = float(np.max(np.abs(want.astype(wide)), initial=0.0, where=np.isfinite(want.astype(wide))))
    return np.allclose(found.astype(wide), want.astype(wide), rtol=error, atol=error * scale, equal_nan=True)


def _some(x: np.ndarray) -> str:
    return str(x.reshape(-1)[:3].tolist())


def _numbers(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Normal float32 numbers of all exponents whose quotients and products are normal."""
    rng = np.random.default_rng(0)
    signs = rng.integers(0, 2, count, dtype=np.uint32) << 31
    digits = rng.integers(0, 1 << 23, (2, count), dtype=np.uint32)
    exponents = rng.integers(70, 180, (2, count), dtype=np.uint32) << 23
    x, y = (exponents | digits).view(np.float32)
    return (x.view(np.uint32) | signs).view(np.float32), y


def _precision(device: Device) -> str:
    x, y = _numbers(1 << 16)
    made: dict[str, tuple[Callable[..., Any], Callable[..., np.ndarray]]] = {
        "sqrt": (lambda x, y: smelt.sqrt(y), lambda x, y: np.sqrt(y)),
        "x / y": (lambda x, y: x / y, lambda x, y: x / y),
        "1 / sqrt(y)": (lambda x, y: 1 / smelt.sqrt(y), lambda x, y: np.float32(1) / np.sqrt(y)),
        # A product that is rounded before the sum: nothing may fuse the two.
        "x * y + x": (lambda x, y: x * y + x, lambda x, y: x * y + x),
    }
    wrong = []
    for name, (function, rule) in made.items():
        found, want = np.asarray(smelt.compile(function)(smelt.array(x), smelt.array(y))), rule(x, y)
        off = found.view(np.int32).astype(np.int64) - want.view(np.int32)
        if off.any():
            wrong.append(f"{name}: {np.count_nonzero(off)} of {x.size} differ, by up to {np.abs(off).max()} ulp")
    if wrong:
        raise Finding("; ".join(wrong))
    return f"{', '.join(made)} of {x.size} numbers, bit by bit"


def _half(device: Device) -> str:
    every = np.arange(1 << 16, dtype=np.uint16)
    numbers, _ = _numbers(1 << 16)
    for dtype in (smelt.float16, smelt.bfloat16):
        own = smelt.array([0.0]).astype(dtype).dtype.numpy
        small = every.view(own)
        with np.errstate(all="ignore"):
            middles = np.concatenate([small.astype(np.float32), numbers])
            middles = np.concatenate([middles, (middles.view(np.uint32) + 0x1000).view(np.float32)])
            wanted = middles.astype(own)
        narrow = np.asarray(smelt.compile(lambda x, d=dtype: x.astype(d))(smelt.array(middles)))
        wide = np.asarray(smelt.compile(lambda x: x.astype(smelt.float32))(smelt.array(small)))
        _same_bits(narrow, wanted, f"float32 to {dtype}")
        _same_bits(wide, small.astype(np.float32), f"{dtype} to float32")
    return "all 65,536 patterns of both"


def _same_bits(found: np.ndarray, want: np.ndarray, what: str) -> None:
    bits = np.uint16 if want.dtype.itemsize == 2 else np.uint32
    # GPUs may take subnormal float32 numbers for zero.
    tiny = np.abs(want.astype(np.float32)) < np.finfo(np.float32).tiny
    same = (found.view(bits) == want.view(bits)) | tiny | (np.isnan(want) & np.isnan(found))
    if not same.all():
        raise Finding(f"{what}: {np.count_nonzero(~same)} of {same.size} are wrong")


def _training(device: Device) -> str:
    rng = np.random.default_rng(0)
    x = smelt.array(rng.standard_normal((128, 16)).astype(np.float32))
    labels = smelt.argmax(x @ smelt.array(rng.standard_normal((16, 4)).astype(np.float32)), axis=1)
    weights = [smelt.array(rng.standard_normal(s).astype(np.float32) * 0.3) for s in ((16, 32), (32, 4))]

    def loss(weights: list[Any]) -> Any:
        scores = smelt.tanh(x @ weights[0]) @ weights[1]
        chosen = smelt.take_along_axis(scores, labels[:, None], axis=1)[:, 0]
        return smelt.mean(smelt.logsumexp(scores, axis=1) - chosen)

    @smelt.compile
    def step(weights: list[Any]) -> tuple[Any, list[Any]]:
        value, gradients = smelt.value_and_grad(loss)(weights)
        return value, [w - g for w, g in zip(weights, gradients)]

    losses = []
    for _ in range(60):
        value, weights = step(weights)
        losses.append(float(value.item()))
    if not losses[-1] < losses[0] / 3:
        raise Finding(f"the loss went from {losses[0]:.3f} to {losses[-1]:.3f} in 60 steps")
    return f"the loss goes from {losses[0]:.3f} to {losses[-1]:.3f} in 60 steps"


def _ownership(device: Device) -> str:
    memory = device.memory

    def in_use() -> int:
        gc.collect()
        smelt.clear_cache()
        found = memory.system_bytes()
        if found is None:
            raise _LeftOut("memory is NumPy's here")
        return found

    before = in_use()
    kept = [memory.empty(Aval((1 << 20,), smelt.uint8)) for _ in range(64)]
    during = in_use()
    del kept
    after = in_use()
    text = f"64 blocks of 1 MiB: {before:,} bytes before, {during:,} with them, {after:,} after"
    if during - before < 64 << 20 or after - before > 4 << 20:
        raise Finding(text)
    return "; ".join([text, *(f"{name} {value}" for name, value in device.details().items())])


def _bandwidth(device: Device) -> str:
    if not device.target.measured_bytes:
        raise _LeftOut("the simulator is no measure of anything")
    count = min(device.target.measured_bytes, MOST_COPIED) // 4
    twice = smelt.compile(lambda x: x * 2)
    x = smelt.ones((count,))
    smelt.eval(twice(x), x)
    best = float("inf")
    for _ in range(7):
        begun = time.perf_counter()
        smelt.eval(twice(x))
        best = min(best, time.perf_counter() - begun)
    return f"{8 * count / best / 1e9:.1f} GB/s reading and writing {4 * count >> 20} MiB each"


_RUN: dict[str, Callable[[Device], str]] = {
    "ops": _ops, "precision": _precision, "half": _half, "training": _training, "ownership": _ownership,
    "bandwidth": _bandwidth,
}  # fmt: skip


# The machine


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _core() -> str:
    from smelt.lazy.core import native

    if native is not None:
        return "yes"
    if settings.core == "python":
        return "not used, for SMELT_CORE is python"
    return "none: operations are recorded more slowly (install smelt again where there is a C compiler)"


def _blas() -> str:
    from smelt.backends.cpu import blas

    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        found = blas.library()
    problems = "; ".join(str(w.message) for w in heard)
    return problems or (f"right, for {found.core()}" if found else "none (pip install scipy-openblas64)")


def _compiler() -> str:
    from smelt.backends.metal.simulator import compiler

    try:
        tool = compiler.compiler()
    except SmeltError as error:
        return f"none: {error}"
    return f"{' '.join(tool.command)} ({tool.identity.splitlines()[0]})"
