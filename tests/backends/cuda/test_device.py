"""The device ``cuda`` over a driver without a GPU, and over the real one where there is one."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator, Mapping

import numpy as np
import pytest

import smelt
from smelt.backends.buffer import Buffer, instances, pools
from smelt.backends.cuda import compiler, driver, executable, installed, memory, transfers
from smelt.backends.cuda.source import cuda_source, cuda_sources
from smelt.backends.device import devices, registered
from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.errors import DeviceError, OutOfMemoryError
from smelt.ir.settings import override
from smelt.lazy import arrays, evaluate
from smelt.lazy.execution import changing, device_plan, fragments, known, strided, tiers
from smelt.runtime import warming
from smelt.transforms import versions

from .fake_driver import FakeDriver
from .needs import needs_nvrtc

pytestmark = pytest.mark.usefixtures("small_heap")


@pytest.fixture(scope="module")
def gpu() -> Iterator[FakeDriver]:
    """The device's driver, with its kernels simulated."""
    found = FakeDriver()
    _forget()  # before the other driver goes, which has what is freed here
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "driver_library", lambda: found)
        patch.setattr(executable, "cuda_sources", _as_it_is)
        patch.setattr(executable, "cubins", lambda sources, architecture: [source.encode() for source in sources])
        for module in installed.MODULES.values():
            patch.setattr(module, "load", lambda name: None)
        patch.setattr(executable.PORTABLE, "_has_room", lambda: False)  # another process has no such driver
        patch.setitem(devices, "cuda", registered["cuda"])
        _forget()
        yield found
        _forget()


def _as_it_is(text: str, threads: Mapping[str, object], most: int) -> dict[str, str]:
    return dict.fromkeys(threads, text)


def _forget() -> None:
    """Programs and memory of another driver, in which numbers that are remembered lie, too."""
    changing.Timed.latest = None
    warming.settle()
    for cache in (
        evaluate.executables, known.by_plan, tiers.structures, arrays._scalar_buffers, strided.kernels,
        changing._plans, device_plan._single, fragments.fragments, fragments.constants, changing._met, versions._shared,
    ):  # fmt: skip
        cache.clear()
    gc.collect()
    for buffer in instances():  # constants, in recipes for one
        if buffer.is_on_host and isinstance(buffer.home, memory.CudaBlock):
            buffer.home = None
    memory.MEMORY.clear()
    executable._code.cache_clear()
    for module in installed.MODULES.values():
        module.library.cache_clear()
    driver._context.cache_clear()
    driver._is_entered = False
    installed.identity.cache_clear()
    transfers.ring.cache_clear()
    if memory.MEMORY in pools:
        pools.remove(memory.MEMORY)


@pytest.fixture
def fake(gpu: FakeDriver) -> Iterator[FakeDriver]:
    gpu.launches.clear()
    with smelt.stream("cuda"), override(small_work=0):
        yield gpu


@pytest.mark.parametrize("x", [np.bool_(True), np.float32(1.5), np.complex64(2j), np.float32([[3.0]])])
def test_elements_that_are_numpys_scalars_come_to_the_device(gpu: FakeDriver, x: np.ndarray) -> None:
    aval = Aval(x.shape, dtypes.of(x.dtype))
    block = memory.MEMORY.adopt(Buffer.of(x, aval)).home
    found = np.empty(x.shape, x.dtype)
    memory.MEMORY.read(block.handle, found)
    assert found == x


@pytest.mark.host("which device is the default where none was asked for")
def test_it_is_never_the_default() -> None:
    assert smelt.default_device().name != "cuda" and registered["cuda"].rank < registered["cpu"].rank


def test_values(fake: FakeDriver) -> None:
    x = smelt.array(np.arange(12, dtype=np.float32).reshape(3, 4))
    y = smelt.softmax(x * 2, axis=-1)
    want = np.exp(2 * (np.arange(12).reshape(3, 4) - np.array([[3], [7], [11]])))
    np.testing.assert_allclose(np.array(y), want / want.sum(-1, keepdims=True), rtol=1e-6)
    assert fake.launches


def test_arrays_stay_on_the_gpu_until_they_are_asked_for(fake: FakeDriver) -> None:
    x = smelt.array(np.ones(1000, np.float32))
    y = x + 1
    smelt.eval(y)
    z = y * 2
    smelt.eval(z)
    before = fake.used
    np.testing.assert_array_equal(np.array(z), np.full(1000, 4, np.float32))
    assert fake.used == before and len(fake.launches) == 2


@pytest.fixture
def small_ring(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(transfers, "RING_BYTES", 1024)
    monkeypatch.setattr(transfers, "PART_BYTES", 256)
    transfers.ring.cache_clear()
    yield
    transfers.ring.cache_clear()


@pytest.mark.parametrize("pinnable", [1 << 30, 0])
@pytest.mark.usefixtures("small_ring")
def test_transfers(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch, pinnable: int) -> None:
    """In parts, by way of pinned memory where there is some, which is lent anew when what it holds has arrived."""
    monkeypatch.setattr(fake, "pinnable", pinnable)
    before = fake.transfers
    for n in (1, 63, 64, 65, 255, 700, 1000):
        x = np.arange(n, dtype=np.float32)
        fake.busy = 3
        np.testing.assert_array_equal(np.array(smelt.array(x) + 1), x + 1)
    assert (fake.transfers > before) == (pinnable > 0)


def _there_and_back(x: np.ndarray) -> np.ndarray:
    found, on_gpu = np.empty_like(x), transfers.Memory(x.nbytes)
    on_gpu.write(x.ctypes.data)
    on_gpu.read(found.ctypes.data)
    on_gpu.free()
    return found


@pytest.mark.usefixtures("small_ring")
def test_transfers_in_handlers_of_signals(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes in the middle of another transfer, on the same thread, leaves the parts alone that this one has."""
    move, inner = transfers._move, np.arange(3000, 5000, dtype=np.uint16)
    inside: list[bool] = []

    def moved(target: int, source: int, nbytes: int) -> None:
        for when in range(2):
            if not inside:
                inside.append(True)
                np.testing.assert_array_equal(_there_and_back(inner), inner)
                inside.pop()
            if not when:
                move(target, source, nbytes)

    monkeypatch.setattr(transfers, "_move", moved)
    outer = np.arange(2000, dtype=np.uint16)
    np.testing.assert_array_equal(_there_and_back(outer), outer)


@pytest.mark.usefixtures("small_ring")
def test_ctrl_c_while_a_transfer_waits(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the GPU may still read is waited for the next time, too."""
    x, waits = np.zeros(1024, np.uint8), []

    def wait(self: driver.Event) -> None:
        waits.append(self)
        if len(waits) == 1:
            raise KeyboardInterrupt

    on_gpu = transfers.Memory(x.nbytes)
    on_gpu.write(x.ctypes.data)
    monkeypatch.setattr(driver.Event, "wait", wait)
    with pytest.raises(KeyboardInterrupt):
        on_gpu.write(x.ctypes.data, 256)
    on_gpu.write(x.ctypes.data, 256)
    assert len(waits) > 1
    on_gpu.free()


def test_what_the_cpu_computes_between_kernels(fake: FakeDriver) -> None:
    """Placed ops read from the GPU and write there: sorts of float64, factorizations."""
    a = smelt.array(np.array([[4.0, 1.0], [1.0, 3.0]], np.float32))
    lower = smelt.linalg.cholesky(a * 2) + 1
    np.testing.assert_allclose(np.array(lower), np.linalg.cholesky(2 * np.array(a)) + 1, rtol=1e-6)
    x = smelt.array(np.linspace(0, 1, 5))
    np.testing.assert_array_equal(np.array(x.astype(smelt.float64) * 3), np.linspace(0, 1, 5).astype(np.float32) * 3.0)


def test_loops_and_branches(fake: FakeDriver) -> None:
    def run(x: smelt.array) -> smelt.array:
        x = smelt.while_loop(lambda x: smelt.sum(x) < 100, lambda x: x * 2, x)
        return smelt.cond(x[0] > 3, lambda x: x + 1, lambda x: x - 1, x)

    np.testing.assert_array_equal(np.array(smelt.compile(run)(smelt.ones(4))), np.full(4, 33, np.float32))
    carry, ys = smelt.scan(lambda c, x: (c + x, c), smelt.zeros(()), smelt.arange(5.0))
    assert carry.item() == 10 and np.array(ys).tolist() == [0, 0, 1, 3, 6]


@pytest.mark.parametrize("shape", [(0,), (1,), (0, 3), (1, 1, 1)])
def test_few_elements(fake: FakeDriver, shape: tuple[int, ...]) -> None:
    x = smelt.array(np.ones(shape, np.float32))
    np.testing.assert_array_equal(np.array(x + 1), np.full(shape, 2, np.float32))
    np.testing.assert_array_equal(np.array(smelt.sum(x, axis=0)), np.sum(np.ones(shape, np.float32), axis=0))


def test_gradients_and_steps_reuse_memory(fake: FakeDriver) -> None:
    @smelt.compile
    def step(w: smelt.array, x: smelt.array) -> smelt.array:
        return w - 0.1 * smelt.grad(lambda w: ((x @ w - 1) ** 2).mean())(w)

    x = smelt.array(np.linspace(-1, 1, 4000, dtype=np.float32).reshape(500, 8))
    w = smelt.zeros((8, 1))
    used = []
    for _ in range(6):
        w = step(w, x)
        smelt.eval(w)
        used.append(fake.used)
    assert used[-1] == used[2]


def test_memory_that_runs_out(fake: FakeDriver) -> None:
    fake.total = fake.used + (1 << 20)
    with pytest.raises(OutOfMemoryError, match="could not allocate 2,097,152 bytes"):
        smelt.eval(smelt.zeros((1 << 19,)) + smelt.array(np.ones(1 << 19, np.float32)))
    np.testing.assert_array_equal(np.array(smelt.array(np.ones(9, np.float32)) + 1), np.full(9, 2, np.float32))


def test_loops_of_known_length_become_graphs(fake: FakeDriver) -> None:
    """When they run again on the same memory; and give the same values."""
    step = smelt.compile(lambda c, x: smelt.scan(lambda c, x: (smelt.tanh(c + x.sum()), c), c, x))
    x = smelt.array(np.linspace(-1, 1, 40, dtype=np.float32).reshape(10, 4))
    smelt.eval(x)
    found, before = [], fake.graphs
    for _ in range(6):
        carry, ys = step(smelt.zeros((3,)), x)
        found.append((np.array(carry), np.array(ys)))
        del carry, ys
    assert fake.graphs - before >= 3
    for carry, ys in found[1:]:
        np.testing.assert_array_equal(carry, found[0][0])
        np.testing.assert_array_equal(ys, found[0][1])


def test_steps_that_replace_their_state_are_graphs(fake: FakeDriver) -> None:
    """State after state lies at two places in turn, batches come and go, and nothing is given back to the driver."""
    weights = [smelt.array(np.full((8, 8), i, np.float32)) for i in range(6)]

    def step(batch: smelt.array) -> smelt.array:
        y = batch
        for w in weights:
            y = smelt.tanh(y @ w)
        weights[:] = [w * 0.5 + y.T @ y for w in weights]
        return y.sum()

    compiled = smelt.compile(step, inputs=weights, outputs=weights)
    for i in range(12):
        loss = compiled(smelt.array(np.full((4, 8), i, np.float32)))
        smelt.eval(loss, weights)
        if i == 5:
            used, before = fake.used, fake.graphs
    assert fake.graphs - before == 6 and fake.used == used


def test_a_call_on_results_of_calls_that_have_run_runs_at_once(fake: FakeDriver) -> None:
    """Where only some of these were asked for; else the host would look at all of them again for the next."""
    state = [smelt.ones((8, 8)) * i for i in range(3)]

    def step() -> smelt.array:
        state[:] = [smelt.tanh(x @ x) for x in state]
        return state[0].sum()

    compiled = smelt.compile(step, inputs=state, outputs=state)
    loss = compiled()  # of arrays without values
    assert not fake.launches
    smelt.eval(loss)
    before = len(fake.launches)
    compiled()
    assert len(fake.launches) > before


def test_memory_once_had_is_kept_and_lent_from_the_lowest_address(fake: FakeDriver) -> None:
    pool = memory.MEMORY
    held = [memory.MEMORY.block(5000) for _ in range(4)]
    addresses = sorted(block.address for block in held)
    for i in (2, 0, 3, 1):
        held[i] = None  # type: ignore[call-overload]
    again = [memory.MEMORY.block(5000) for _ in range(4)]
    assert [block.address for block in again] == addresses
    with override(gpu_pool_bytes=0):
        cached = pool.cached_bytes
        del again
        assert pool.cached_bytes == cached


def test_launches_in_loops_that_depend_on_values_are_not_known(fake: FakeDriver) -> None:
    before = fake.graphs
    double = smelt.compile(lambda x: smelt.while_loop(lambda x: smelt.sum(x) < 100, lambda x: x * 2, x))
    for _ in range(4):
        assert np.array(double(smelt.ones(4))).tolist() == [32] * 4
    assert fake.graphs == before


def test_ctrl_c_while_a_kernel_runs(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wait for a value ends; the array is whole, and is read when the GPU has finished."""
    x = smelt.ones((5,)) + 1
    smelt.eval(x)
    fake.busy = 10**9
    with monkeypatch.context() as patch:
        patch.setattr(driver.time, "sleep", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            x.tolist()
        with pytest.raises(KeyboardInterrupt):
            memoryview(x)
    fake.busy = 3
    assert np.array(x).tolist() == [2] * 5


def _interrupt(seconds: float) -> None:
    raise KeyboardInterrupt


def test_a_forked_child_is_told(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    driver.enter()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(DeviceError, match="forked"):
        driver.enter()


def test_a_forked_child_gives_nothing_back(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """What dies there is its parent's: the driver is not asked, and nothing is said of errors in destructors."""
    graph = driver.Graph()
    graph.finish()
    had, ignored, asked = [memory._Memory(16), driver.Event(), graph], [], []
    del graph
    used = fake.used
    with monkeypatch.context() as child:
        child.setattr(os, "getpid", lambda: -1)
        child.setattr(sys, "unraisablehook", ignored.append)
        for name in ("cuEventDestroy_v2", "cuGraphExecDestroy", "cuMemFree_v2"):
            child.setattr(fake, name, lambda *arguments: asked.append(arguments) or 0)
        had.clear()
        gc.collect()
    assert not ignored and not asked and fake.used == used


@pytest.mark.parametrize("grid", [(8, 1, 1), (10, 1, 1), (3, 1, 1), (5, 7, 2), (4, 2, 3), (0, 3, 1)])
def test_grids_are_covered_once(grid: tuple[int, int, int]) -> None:
    threads, seen = (4, 2, 2), []
    for first, groups, own in driver._parts(grid, threads):
        for at in np.ndindex(*groups):
            for thread in np.ndindex(*own):
                seen.append(tuple((a + f) * n + t for a, f, n, t in zip(at, first, threads, thread)))
    assert sorted(seen) == sorted(np.ndindex(*grid))


def test_positions_of_grids_that_are_no_multiples() -> None:
    text = "kernel void k(device uint* y [[buffer(0)]], uint2 at [[thread_position_in_grid]]) { y[at.x] = at.y; }"
    source, _ = cuda_source("#include <metal_stdlib>\nusing namespace metal;\n" + text, {}, dispatched=True)
    assert "uint3 first, uint3 whole, uint3 grid" in source and "(blockIdx.x + first.x) * whole.x" in source


def test_headers_are_found() -> None:
    assert any(path.name == "metal_stdlib" for path in compiler.HEADERS.iterdir())


def test_a_driver_that_makes_no_graphs(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeDriver, "cuGraphInstantiateWithFlags", lambda *_: 801)
    step = smelt.compile(lambda c, x: smelt.scan(lambda c, x: (smelt.cos(c + x.sum()), c), c, x))
    x, before = smelt.array(np.ones((12, 2), np.float32)), fake.graphs
    smelt.eval(x)
    found = [np.array(step(smelt.zeros(()), x)[0]).item() for _ in range(4)]
    assert len(set(found)) == 1 and fake.graphs == before


def test_large_texts_are_compiled_in_parts() -> None:
    """Each kernel is in one of them, with what kernels share."""
    kernels = "".join(
        f"\nkernel void k{i}(device float* y [[buffer(0)]], uint at [[thread_position_in_grid]]) {{\n"
        f"    y[at] = shared_one({i}.0f);\n{'    y[at] += 1.0f;' * 200}\n}}\n"
        for i in range(9)
    )
    head = "#include <metal_stdlib>\nusing namespace metal;\nstatic float shared_one(float x) { return x; }\n"
    text = head + kernels
    found = cuda_sources(text, {"k3": (32, 1, 1)}, 4)
    assert list(found) == [f"k{i}" for i in range(9)] and len(set(found.values())) == 4
    for name, source in found.items():
        assert source.count(f"void {name}(") == 2 and "static float shared_one" in source
    at = text.split("\n").index("    y[at] = shared_one(4.0f);") + 1
    lines = found["k4"].split("\n")
    place = lines.index("    y[at] = shared_one(4.0f);")
    first = next(i for i in range(place, -1, -1) if lines[i].startswith("#line"))
    assert int(lines[first].split()[1]) + place - first - 1 == at
    assert len(set(cuda_sources(text, {}, 1).values())) == 1
    # what takes long to compile is apart from the rest, and from each other
    product = "    simdgroup_multiply_accumulate(a, b, c, a);\n"
    for slow in ({0, 1}, {3, 8}):
        several = list(kernels.split("\nkernel ")[1:])
        several = [k.replace("}", product * 16 + "}") if i in slow else k for i, k in enumerate(several)]
        found = cuda_sources(head + "".join(f"\nkernel {k}" for k in several), {}, 4)
        assert all(sum(found[f"k{i}"] == s for i in range(9)) == 1 for s in {found[f"k{i}"] for i in slow})


@needs_nvrtc
def test_parts_compile() -> None:
    kernels = "".join(
        f"\nkernel void k{i}(device float* y [[buffer(0)]], uint at [[thread_position_in_grid]]) {{\n"
        f"{'    y[at] += 1.0f;' * 700}\n}}\n" for i in range(2)
    )  # fmt: skip
    found = cuda_sources(f"#include <metal_stdlib>\nusing namespace metal;\n{kernels}", {}, 4)
    assert len(set(found.values())) == 2
    for name, source in found.items():
        assert name.encode() in compiler.compile_cubin(source)


def test_small_copies_leave_few_events(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are before the ring comes round, and whether the GPU has come to them or not."""
    transfers.ring.cache_clear()
    way = transfers.ring(to_gpu=True)
    block = memory.MEMORY.block(1 << 16)
    x = np.arange(64, dtype=np.float32)
    for busy in (False, True):
        monkeypatch.setattr(driver.Event, "is_reached", not busy)
        for i in range(1000):
            block.handle.write(x.ctypes.data, x.nbytes, x.nbytes * (i % 100))
        assert len(way._lent) <= (transfers.MOST_LENT + 1 if busy else transfers.FEW_LENT + 1)
