"""float64 on NVIDIA GPUs: kernels of their own, not the CPU's."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np

import smelt
from smelt.backends.cuda.compiler import compile_cubin
from smelt.backends.cuda.source import cuda_source
from smelt.backends.device import devices
from smelt.ir import dtypes
from smelt.ir.errors import SmeltError
from smelt.ir.library import Library
from smelt.runtime import compile_module
from tests.backends.metal.test_registry import assert_values, metal_cases
from tests.ops.cases import Case, cases, module_of_batch, plain_ops
from tests.ops.edges import dtype_cases, edge_cases, few

from .fake_driver import FakeDriver
from .needs import needs_nvrtc
from .test_device import fake, gpu

assert fake and gpu  # fixtures


def wide(case: Case) -> Case | None:
    """The case with float64 for float32, if its op takes that."""
    avals = tuple(a.with_dtype(dtypes.float64) if a.dtype is dtypes.float32 else a for a in case.avals)
    try:
        case.op.infer(*avals, **case.kwargs)
    except SmeltError:
        return None
    return Case(case.op, avals, case.attrs)


@functools.cache
def every_case() -> list[Case]:
    """Cases in which float64 occurs, and nothing that these GPUs leave to the CPU."""
    found = {}
    for op in plain_ops():
        if isinstance(op, Library):
            continue
        narrow = [wide(c) for c in (*metal_cases(op), *few(edge_cases(op), 10))]
        for case in (*narrow, *cases(op), *few(dtype_cases(op), 40)):
            dtypes_of = {a.dtype for a in (*case.avals, *case.results)} if case else set()
            if case and dtypes.float64 in dtypes_of and dtypes.complex128 not in dtypes_of:
                found[str(case), repr(case.kwargs)] = case
    return list(found.values())


def batches() -> Iterator[list[Case]]:
    """One case of each op, and some others, in handfuls."""
    several = [*{c.op: c for c in every_case()}.values(), *every_case()[::29]]
    yield from (several[i : i + 60] for i in range(0, len(several), 60))


def test_every_op_agrees_with_reference(fake: FakeDriver) -> None:
    for batch in batches():
        program = compile_module(module_of_batch(batch), devices["cuda"])
        assert "host" not in [k.schedule for k in program.kernels]
        assert "double" in program.as_text("msl") and "runs on the CPU" not in program.as_text("msl")
        assert_values(program, batch)


@needs_nvrtc
def test_texts_compile(fake: FakeDriver) -> None:
    for batch in batches():
        text = compile_module(module_of_batch(batch), devices["cuda"]).as_text("msl")
        compile_cubin(cuda_source(text, aligned=True)[0])


def test_constants_are_exact(fake: FakeDriver) -> None:
    """Metal's literals are floats, whatever their digits."""
    values = [0.1, -0.1, 1 / 3, 1e300, 5e-324, -0.0, 2.0**31, np.inf, -np.inf, 7.0]
    x = smelt.array(np.ones(3), smelt.float64)
    found = smelt.compile(lambda x: [x * smelt.array(v, smelt.float64) for v in values])(x)
    for v, y in zip(values, found):
        host = np.array(y)
        assert host.dtype == np.float64 and host.tobytes() == np.full(3, v).tobytes()


def test_gradients_stay_wide(fake: FakeDriver) -> None:
    w = smelt.array(np.linspace(-1, 1, 12).reshape(4, 3), smelt.float64)
    x = smelt.array(np.linspace(0, 1, 20).reshape(5, 4), smelt.float64)
    found = np.array(smelt.grad(lambda w: smelt.logsumexp(smelt.tanh(x @ w), axis=-1).sum())(w))
    h, a, b = 1e-6, np.array(w), np.array(x)

    def loss(w: np.ndarray) -> float:
        return float(np.log(np.exp(np.tanh(b @ w)).sum(-1)).sum())

    for i in np.ndindex(4, 3):
        step = np.zeros((4, 3))
        step[i] = h
        assert abs((loss(a + step) - loss(a - step)) / (2 * h) - found[i]) < 1e-8
