"""Teams of threads: the same bits on each, whatever their size."""

from __future__ import annotations

import ctypes
import itertools
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.cpu import threads
from smelt.backends.cpu.pace import Pace
from smelt.ir import dtypes, host_threads
from smelt.ir.aval import Aval
from smelt.ir.settings import override

from .. import interrupts
from .modules import compile_, f32, module_of, over, random_array, run, softmax

WORK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t)
APPLY = ctypes.CFUNCTYPE(None, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p, WORK)


def grand_central(log: list[int]) -> Any:
    """A library with dispatch_apply_f, whose iterations run one after the other, last first."""

    def apply(iterations: int, queue: Any, state: Any, work: Any) -> None:
        assert queue is None
        log.append(iterations)
        for i in reversed(range(iterations)):
            work(state, i)

    function = APPLY(apply)
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    untyped = ctypes.CFUNCTYPE(None)(address)  # as a loaded library has it: without a signature
    return SimpleNamespace(dispatch_apply_f=untyped, keep=function)


def many_kernels(b: Any, x: Any) -> list[Any]:
    """Every schedule, kernels that read what others wrote, and a step on the host."""
    rows = over(b, "reduce_sum", b.exp(x), 1)
    ordered = b.sort(x * 2.0, axis=1)
    product = b.dot_general(x, x, lhs_contracting=(1,), rhs_contracting=(1,))
    indices = b.convert(b.slice(ordered, start=(0, 0), stop=(9, 1), stride=(1, 1)), dtype=dtypes.int32)
    updated = b.scatter(x, b.reshape(ordered, shape=(700, 1, 300)), b.argmax(x, axis=1), axes=(0,), mode="add")
    return [
        softmax(b, x), ordered - rows, b.reduce_sum(x, axes=(0, 1)), b.reduce_sum(x, axes=(0,)),
        b.cumsum(product, axis=0), b.transpose(softmax(b, product), permutation=(1, 0)), indices, updated,
    ]  # fmt: skip


def test_every_team_gives_the_same_bits() -> None:
    aval = Aval((700, 300), f32)
    x = random_array(aval)
    sizes: list[int] = []
    default = compile_(module_of([aval], many_kernels))
    want = run(default, [x])
    others = [team for team in (threads._native(), threads._openmp()) if team is not None]
    for team in (*others, threads.PythonThreads(), threads.Dispatch(grand_central(sizes))):
        program = compile_(module_of([aval], many_kernels), team=team)
        for count in (1, 3, 4):
            with override(num_threads=count):
                for have, expected in zip(run(program, [x]), want):
                    assert np.array_equal(have, expected)
    assert set(sizes) == {12, 16} and len(sizes) > 8


@pytest.mark.parametrize(
    ("dtype", "length"), [
        *itertools.product(["float32", "float64", "bfloat16"], [2, 3, 5, 6]),
        *(("complex64", length) for length in (5, 27, 28, 29)),
    ],
)  # fmt: skip
def test_rows_that_are_straight_code(dtype: str, length: int) -> None:
    """Of which vectors are made, and which are left over, one by one: wherever the shares of threads begin."""
    numbers = np.random.default_rng(0).standard_normal((2, 9999, length)).astype(np.float32)
    x = smelt.array(numbers[0] + 1j * numbers[1] if dtype == "complex64" else numbers[0]).astype(getattr(smelt, dtype))
    found = []
    for count in (1, 2, 3, 7):
        with override(num_threads=count):
            results = smelt.compile(lambda x: (x.sum(-1), (x * x).sum(-1), x[:, 1:].sum(-1), x.prod(-1)))(x)
            found.append([np.asarray(y if y.itemsize > 2 else y.astype(smelt.float32)) for y in results])
    for others in found[1:]:
        for one, other in zip(found[0], others):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("length", [3, 7, 9])
def test_rows_of_several_loops_that_are_straight_code(length: int) -> None:
    x, found = smelt.array(np.random.default_rng(0).standard_normal((2999, 5, 2 * length), np.float32)), []
    for count in (1, 2, 3):
        with override(num_threads=count):
            results = smelt.compile(lambda x: (x[:, 1:, ::2].sum((1, 2)), x[:, :, :length].sum((1, 2))))(x)
            found.append([np.asarray(y) for y in results])
    for others in found[1:]:
        for one, other in zip(found[0], others):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("length", [20, 28])
def test_few_large_rows(length: int) -> None:
    """Parts of them are added up in the same order, however many rows are a thread's."""
    x, found = smelt.array(np.random.default_rng(0).standard_normal((2999, 5, length), np.float32)), []
    for count in (1, 2, 3):
        with override(num_threads=count):
            found.append(np.asarray(smelt.compile(lambda x: smelt.exp(x).sum((0, 2)))(x)))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    aval = Aval((700, 300), f32)
    program = compile_(module_of([aval], many_kernels))
    x = random_array(aval)
    want = run(program, [x])
    for n in (1, 3, 4):
        with override(num_threads=n):
            for have, expected in zip(run(program, [x]), want):
                assert np.array_equal(have, expected)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_products_of_the_library_do_not_depend_on_the_number_of_threads(dtype: str) -> None:
    """A BLAS adds up in another order where a product is cut elsewhere."""
    sizes = [(128, 256, 128), (250, 300, 70), (70, 300, 250), (64, 4096, 64), (512, 512, 512)]
    avals = [Aval(shape, dtypes.by_name(dtype)) for m, k, n in sizes for shape in ((m, k), (k, n))]

    def products(b: Any, *values: Any) -> list[Any]:
        pairs = list(zip(values[::2], values[1::2]))
        plain = {"lhs_batch": (), "rhs_batch": ()}
        return [
            *(b.dot_general(x, y, lhs_contracting=(1,), rhs_contracting=(0,), **plain) for x, y in pairs),
            *(b.dot_general(y, x, lhs_contracting=(0,), rhs_contracting=(1,), **plain) for x, y in pairs),
        ]

    program = compile_(module_of(avals, products), "plan-buffers")
    arrays = [random_array(aval, i) for i, aval in enumerate(avals)]
    want = run(program, arrays)
    for n in (1, 2, 3, 5):
        with override(num_threads=n):
            for have, expected in zip(run(program, arrays), want):
                assert have.tobytes() == expected.tobytes(), (n, have.shape)


def test_number_of_threads_is_a_setting() -> None:
    assert threads.available_threads() == host_threads.processors()
    with override(num_threads=3):
        assert threads.available_threads() == 3


def test_python_threads_make_all_calls() -> None:
    calls: list[int] = []
    for count in (1, 2, 5):
        threads.PythonThreads().launch(calls.append, 0, 7, count)
    assert calls == [7] * 8


#: What an interrupt may come in.
TOGETHER = (
    host_threads.together, host_threads._begin, host_threads._wait, host_threads._Part.wait, host_threads._Part.is_mine,
)  # fmt: skip


def test_an_interrupt_waits_for_the_calls_that_run() -> None:
    """They write to memory that goes when the launch has ended."""
    team, begun, ended = threads.PythonThreads(), [], []

    def call(table: int) -> None:
        begun.append(table)
        time.sleep(0.0 if threading.current_thread() is threading.main_thread() else 0.005)
        ended.append(table)

    inside = (*TOGETHER, call)
    places = 0
    for place in interrupts.everywhere(lambda: team.launch(call, 0, 7, 3), *inside):
        now = len(ended)
        # The caller's own call is what the interrupt may have ended.
        assert len(begun) - now <= place.startswith("call"), place
        time.sleep(0.001)
        assert len(ended) == now, place
        begun.clear(), ended.clear()
        places += 1
    assert places > 20


SMALLER_TEAM = """
import numpy as np, smelt
from smelt.ir.settings import override
x = smelt.array(np.ones((700, 300), np.float32))
with override(num_threads=4):
    print(float(smelt.compile(lambda x: smelt.sum(smelt.exp(x) * 0 + 1))(x)))
"""


@pytest.mark.parametrize("limit", [{"OMP_THREAD_LIMIT": "1"}, {"OMP_THREAD_LIMIT": "2"}, {"OMP_DYNAMIC": "true"}])
def test_openmp_may_give_fewer_threads_than_asked(limit: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SMALLER_TEAM], env={**os.environ, **limit, "SMELT_CORE": "python"},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.stdout.strip() == "210000.0", done.stderr


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.parametrize("make_team", [threads.team, threads.PythonThreads])
def test_after_fork_programs_run_on_the_threads_that_there_can_be(make_team: Any) -> None:
    aval = Aval((300, 500), f32)
    program = compile_(module_of([aval], softmax), team=make_team())
    x = random_array(aval)
    want = run(program, [x])[0]

    def child(queue: Any) -> None:
        with override(num_threads=3):
            same = np.array_equal(run(program, [x])[0], want)
            queue.put((threads.available_threads(program.team), same))

    ctx = multiprocessing.get_context("fork")
    queue = ctx.Queue()
    process = ctx.Process(target=child, args=(queue,))
    process.start()
    assert queue.get(timeout=30) == (3 if program.team.renewable else 1, True)
    process.join(30)


needs_pool = pytest.mark.skipif(threads._native() is None, reason="smelt's pool of threads was not built")


@needs_pool
def test_programs_of_several_callers_share_the_pool() -> None:
    """Runs of all sizes at the same time: teams get what threads there are, and nobody waits for another."""
    aval = Aval((700, 300), f32)
    program = compile_(module_of([aval], many_kernels), team=threads._native())
    inputs = [random_array(aval, seed) for seed in range(4)]
    wanted = [run(program, [x]) for x in inputs]
    wrong: list[Any] = []

    def caller(i: int) -> None:
        for n in (2, 5, 3, 8, 1, 4):
            with override(num_threads=n):
                found = run(program, [inputs[i]])
            wrong.extend((i, n) for have, want in zip(found, wanted[i]) if not np.array_equal(have, want))

    callers = [threading.Thread(target=caller, args=(i,)) for i in range(4)]
    for thread in callers:
        thread.start()
    for thread in callers:
        thread.join()
    assert not wrong


@needs_pool
def test_members_of_the_pool_have_numbers_and_wait_for_each_other() -> None:
    """Each adds to an element of its own, and reads all others' behind the barrier."""
    team = threads._native()
    assert team is not None
    ask = {name: ctypes.PYFUNCTYPE(ctypes.c_int)(at) for name, at in team.symbols().items() if name.startswith("omp")}
    wait = ctypes.CFUNCTYPE(None)(team.symbols()["GOMP_barrier"])
    assert [f() for f in ask.values()] == [0, 1]  # outside of a run
    wait()
    counts, seen, sizes = [0] * 8, [], set()

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    def member(table: int) -> None:
        number, members = ask["omp_get_thread_num"](), ask["omp_get_num_threads"]()
        sizes.add(members)
        for turn in range(1, 20):
            counts[number] += 1
            wait()
            seen.append(counts[:members] == [turn] * members)
            wait()

    address = ctypes.cast(member, ctypes.c_void_p).value
    assert address is not None
    for asked in (1, 2, 8, 3, 8):
        counts[:], seen[:] = [0] * 8, []
        sizes.clear()
        team.launch(member, address, 7, asked)
        (found,) = sizes
        assert 1 <= found <= asked and len(seen) == 19 * found and all(seen)


#: Two members on one processor: prints the barriers, and the milliseconds for which the processor was used.
ON_ONE_PROCESSOR = """
import ctypes, os, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
from smelt.backends.cpu import threads
team = threads._native()
wait = ctypes.CFUNCTYPE(None)(team.symbols()["GOMP_barrier"])
sizes = []
@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def member(table):
    sizes.append(ctypes.PYFUNCTYPE(ctypes.c_int)(team.symbols()["omp_get_num_threads"])())
    for _ in range(BARRIERS):
        wait()
team.launch(member, ctypes.cast(member, ctypes.c_void_p).value, 0, 2)  # makes the thread
assert sizes == [2, 2], sizes
start = time.process_time()
team.launch(member, ctypes.cast(member, ctypes.c_void_p).value, 0, 2)
print(1e3 * (time.process_time() - start))
"""


@needs_pool
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processors are not chosen here")
def test_members_that_share_a_processor_do_not_look_for_each_other() -> None:
    """Who looks has the processor that the other one needs, for 0.15 ms a barrier: 600 ms."""
    program = ON_ONE_PROCESSOR.replace("BARRIERS", "4000")
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert float(ran.stdout) < 300


def test_as_many_threads_as_were_asked_for_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pace, "members", lambda self, most: 1)
    aval = Aval((700, 300), f32)
    program = compile_(module_of([aval], many_kernels))
    assert program._parallel
    counts: list[int] = []
    execute = program._main.execute
    monkeypatch.setattr(program._main, "execute", lambda f, a, count: (counts.append(count), execute(f, a, count)))
    with override(num_threads=3):
        run(program, [random_array(aval)])
    monkeypatch.setattr(host_threads, "processors", lambda: 4)
    run(program, [random_array(aval)])
    assert counts == [3, 1]


@pytest.mark.parametrize("variable", [None, "GOMP_SPINCOUNT", "OMP_WAIT_POLICY"])
def test_how_threads_wait_is_the_users_choice(variable: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GOMP_SPINCOUNT", raising=False)
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    if variable is not None:
        monkeypatch.setenv(variable, "7")
    before = dict(os.environ)
    seen: list[dict[str, str]] = []
    monkeypatch.setattr(ctypes, "CDLL", lambda name: seen.append(dict(os.environ)))
    threads._load_openmp("libgomp.so.1")
    assert seen == [before if variable else before | {"GOMP_SPINCOUNT": threads._LOOKS}]
    assert dict(os.environ) == before
