"""Subnormal numbers: kept, and zeros in machine code where the setting says so; the caller's mode is never another."""

from __future__ import annotations

import contextlib
import ctypes
import ctypes.util
import platform
import signal
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.cpu import entry, subnormals, threads
from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.custom_call import Target, register_target
from smelt.ir.errors import SmeltError
from smelt.ir.kinds import Elementwise
from smelt.ir.op import registry
from smelt.ir.settings import override, settings

from .modules import compile_, module_of, run, side_by_side
from .test_threads import grand_central

pytestmark = pytest.mark.host("kernels of the CPU")

#: By the machine: rounding upward, as <fenv.h> has it; where the register is in what `fegetenv` writes; its modes.
ENVIRONMENTS = {"x86_64": (0x800, 28, 0xFFC0), "aarch64": (0x400000, 0, 0xFFFFFFFF)}


def _least(dtype: Any) -> float:
    return float(np.finfo(dtype).smallest_normal)


@pytest.fixture
def mode() -> Iterator[Any]:
    """Asks for the modes of this thread, which rounds in a way of its own for the test."""
    name = ctypes.util.find_library("m")
    library = ctypes.CDLL(name) if name else None
    if library is None or platform.machine() not in ENVIRONMENTS or not hasattr(library, "fegetenv"):
        pytest.skip("this system does not say how it rounds")
    upward, at, modes = ENVIRONMENTS[platform.machine()]
    found = (ctypes.c_char * 256)()

    def ask() -> int:
        library.fegetenv(found)
        return ctypes.c_uint32.from_buffer(found, at).value & modes

    library.fesetround(upward)
    try:
        yield ask
    finally:
        library.fesetround(0)


def _halves(b: Any, *xs: Any) -> list[Any]:
    return [x * 0.5 for x in xs]


def _teams() -> list[threads.Team]:
    found = [threads._native(), threads._openmp(), threads.PythonThreads(), threads.Dispatch(grand_central([]))]
    return [team for team in found if team is not None]


@pytest.mark.parametrize("team", _teams(), ids=lambda team: type(team).__name__)
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("size", [1, 5, 300_000])
def test_every_thread_of_a_team(team: threads.Team, count: int, size: int) -> None:
    avals = [Aval((size,), dtype) for dtype in (dtypes.float32, dtypes.float64)]
    arrays = [np.full(a.shape, 1.5 * _least(a.dtype.numpy), a.dtype.numpy) for a in avals]
    program = compile_(module_of(avals, _halves), team=team)
    for flush in (False, True, False):
        with override(num_threads=count, flush_subnormals=flush):
            for have, x in zip(run(program, arrays), arrays):
                np.testing.assert_array_equal(have, np.zeros_like(x) if flush else x * x.dtype.type(0.5))


@pytest.mark.parametrize("size", [3, 1 << 20])
@pytest.mark.parametrize("tier", ["strided", "program"])
def test_kernels_of_lazy_arrays(tier: str, size: int) -> None:
    for flush in (False, True, False):
        with override(flush_subnormals=flush, tier=tier, small_work=0):
            x = smelt.full((size,), 1.5 * _least(np.float32))
            found = np.asarray(smelt.sqrt(x * x) + x * 0.25 + x * 0.25)
        assert (found == (0 if flush else np.float32(0.75 * _least(np.float32)))).all()


def test_operands_are_zeros_and_signs_are_kept() -> None:
    tiny = np.float32(0.5 * _least(np.float32))
    x = smelt.array(np.array([tiny, -tiny, 2.0], np.float32))
    f = smelt.compile(lambda x: (x * 2.0**100, -x * 0.5, x.astype(smelt.bfloat16) * 2))
    with override(flush_subnormals=True):
        large, half, short = (np.array(y.astype(smelt.float32)) for y in f(x))
    np.testing.assert_array_equal(large, np.array([0, 0, 2.0**101], np.float32))
    np.testing.assert_array_equal(short, [0, 0, 4])
    assert list(np.signbit(large)) == [False, True, False] and list(np.signbit(half)) == [True, False, True]


def _functions(aval: Aval) -> list[tuple[list[Aval], Any]]:
    """The functions of elements that have such operands."""
    found = []
    for name, op in registry.items():
        for count in (1, 2, 3) if isinstance(op, Elementwise) else ():
            case = [aval] * count, lambda b, *xs, name=name: getattr(b, name)(*xs)
            with contextlib.suppress(SmeltError, TypeError):
                module_of(*case)
                found.append(case)
    return found


@pytest.mark.parametrize(("dtype", "least"), [(dtypes.float32, 1e-30), (dtypes.float64, 1e-290)], ids=str)
def test_normal_numbers_have_the_same_bits(dtype: Any, least: float) -> None:
    """In all functions of elements, whose operands are not so small that what is computed on the way vanishes."""
    random, n = np.random.default_rng(0), 300
    bits = random.integers(0, 1 << 8 * dtype.size - 1, n * 9, np.uint64).astype(f"u{dtype.size}").view(dtype.numpy)
    usual = random.standard_normal(n * 2) * 10 ** random.uniform(-4, 4, n * 2)
    lowest = random.uniform(0.9, 1, n) * np.log(_least(dtype.numpy))
    with np.errstate(all="ignore"):
        pool = np.concatenate([bits, -bits, usual, lowest, -lowest, [0, -0.0, 1, -1, np.inf]]).astype(dtype.numpy)
    pool = pool[(np.abs(pool) >= least) | (pool == 0)]
    avals, function = side_by_side(_functions(Aval(pool.shape, dtype)))
    program = compile_(module_of(avals, function))
    arrays = [random.permutation(pool) for _ in avals]
    plain = run(program, arrays)
    with override(flush_subnormals=True):
        flushed = run(program, arrays)
    assert len(plain) > 50
    for x, y in zip(plain, flushed):
        if x.dtype.kind in "fc":
            normal = ~(np.abs(x) <= _least(x.dtype))  # what is rounded up to the least normal number is so afterwards
            x, y = x[normal], y[normal]
        np.testing.assert_array_equal(x, y)


def test_products_by_the_library() -> None:
    x, y = smelt.full((96, 96), 1e-30), smelt.full((96, 96), 1e-10)
    for flush in (False, True):
        with override(flush_subnormals=flush, tier="program", small_work=0):
            found = np.asarray(smelt.compile(lambda x, y: x @ y)(x, y))
        assert (found == 0).all() if flush else (found > 9e-39).all()


#: What functions of the tests' target do, one after the other.
_on_the_host: list[Any] = []
register_target(Target("tests.subnormals", lambda call, x: _on_the_host[-1](x)))


def _called(x: smelt.array) -> smelt.array:
    return smelt.custom_call("tests.subnormals", x, types=smelt.ShapeDtype(x.shape, x.dtype))


@pytest.mark.parametrize("size", [4, 1 << 20])
@pytest.mark.parametrize("flush", [False, True])
def test_steps_on_the_host_have_the_callers_mode(mode: Any, flush: bool, size: int) -> None:
    modes = []

    def halved(x: np.ndarray) -> np.ndarray:
        modes.append(mode())
        return x * np.float32(0.5)

    f = smelt.compile(lambda x: _called(smelt.exp(x)) + smelt.abs(x) * 1e-45)
    x = smelt.full((size,), np.log(_least(np.float32)) + 1e-3)
    before = mode()
    _on_the_host.append(halved)
    with override(flush_subnormals=flush):
        found = np.asarray(f(x))
    assert modes == [before] and mode() == before
    assert (found == 0).all() == flush, "a sum of the kernel behind it"
    d = smelt.array(np.diag(np.full(3, 1e-40, np.float32)))
    with override(flush_subnormals=flush, tier="program", small_work=0):
        found = np.array(smelt.compile(smelt.linalg.svdvals)(d))
    np.testing.assert_allclose(found, 1e-40, rtol=1e-4)


@pytest.mark.parametrize("size", [4, 1 << 20])
def test_the_mode_of_the_caller_is_as_before(mode: Any, size: int) -> None:
    def refuses(x: np.ndarray) -> np.ndarray:
        raise ZeroDivisionError

    x = smelt.full((size,), 1.0)
    f = smelt.compile(lambda x: smelt.exp(x) / 3)
    g = smelt.compile(lambda x: _called(smelt.exp(x)) * 3)
    _on_the_host.append(refuses)
    before = mode()
    with override(flush_subnormals=True):
        smelt.eval(f(x), f(x))
        assert mode() == before
        with pytest.raises(ZeroDivisionError):
            smelt.eval(g(x))
    assert mode() == before


def test_handlers_of_signals_have_the_callers_mode(mode: Any) -> None:
    """And threads that they make, which keep the mode that they begin with."""
    if entry.check_signals() == 0:
        pytest.skip("only the module in C gives handlers another mode")
    before, modes = mode(), []

    def handler(*_: Any) -> None:
        made = threading.Thread(target=lambda: modes.append(mode() & ~rounding))
        modes.append(mode() & ~rounding)
        made.start()
        made.join()
        if len(modes) >= 4:  # at the latest the second time it was in the loop
            raise ZeroDivisionError

    rounding = ENVIRONMENTS[platform.machine()][0]
    f = smelt.compile(lambda x: smelt.while_loop(lambda y: y[0] < 2, lambda y: y * 0.5 + 0.5, x))
    smelt.eval(f(smelt.array([2.0, 3.0])))  # it is compiled, so nearly all of what follows is in the loop
    x = smelt.array([0.25, 3.0])
    former = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)
    try:
        with override(flush_subnormals=True), pytest.raises(ZeroDivisionError):
            smelt.eval(f(x))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)
    assert modes == [before & ~rounding] * len(modes) and mode() == before


def test_loops_that_python_drives() -> None:
    _on_the_host.append(np.copy)
    f = smelt.compile(lambda x: smelt.scan(lambda x, _: (_called(x * 0.5), None), x, None, length=3)[0])
    x = smelt.full((4,), 1.5 * _least(np.float32))
    for flush in (False, True, False):
        with override(flush_subnormals=flush):
            assert (np.asarray(f(x)) == 0).all() == flush


def test_without_a_module_in_c(monkeypatch: pytest.MonkeyPatch, mode: Any) -> None:
    """The function that LLVM compiles does the same as the one in C."""
    monkeypatch.setattr(entry, "flushing", lambda: 0)
    monkeypatch.setattr(subnormals, "flushing", subnormals.flushing.__wrapped__)
    aval = Aval((7,), dtypes.float32)
    x = np.full(7, 1.5 * _least(np.float32), np.float32)
    program = compile_(module_of([aval], _halves))
    before = mode()
    with override(flush_subnormals=True):
        (found,) = run(program, [x])
    assert (found == 0).all() and mode() == before
    (found,) = run(program, [x])
    assert (found > 0).all()


def test_the_function_sets_it_for_all_threads() -> None:
    f, x = smelt.compile(lambda x: x * 0.5), smelt.array([1.5 * _least(np.float32)])
    before = settings.flush_subnormals
    found = []
    try:
        assert smelt.set_flush_subnormals(True) is before
        other = threading.Thread(target=lambda: found.append(f(x).item()))
        other.start()
        other.join()
        assert found == [0.0] and smelt.set_flush_subnormals(False) is True and f(x).item() > 0
    finally:
        smelt.set_flush_subnormals(before)
    for wrong in (1, None, "on"):
        with pytest.raises(smelt.errors.ArgumentTypeError, match="set_flush_subnormals: flush is True or False"):
            smelt.set_flush_subnormals(wrong)  # type: ignore[arg-type]
