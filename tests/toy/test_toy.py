"""A device with memory of its own: what is copied when, and that nothing generic needs more than its registration."""

from __future__ import annotations

import copy
import gc
import io
import itertools
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends import device as devices
from smelt.backends.buffer import Buffer, pools
from smelt.backends.device import Device, Lazy, Target, register, unregister
from smelt.backends.separate import SeparateBlock
from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.errors import ArgumentTypeError, DeviceError, OutOfMemoryError
from smelt.ir.settings import override
from smelt.tools import cli

from . import TOY
from .memory import MEMORY
from .program import ToyExecutable

pytestmark = pytest.mark.usefixtures("small_heap")

ROOT = Path(__file__).resolve().parents[2]
F32 = Aval((4,), dtypes.float32)


@pytest.fixture(autouse=True)
def compiled() -> Iterator[None]:
    """Nothing is too small to be compiled for the toy."""
    with override(small_work=0):
        yield


def copies(action: Any) -> tuple[int, int]:
    """How many arrays an action copies to the device, and back."""
    before = MEMORY.copies
    action()
    return MEMORY.written - before[0], MEMORY.read_back - before[1]


def on_device(x: smelt.array) -> bool:
    """Whether the host has not seen an array's elements."""
    smelt.eval(x)
    return not x._buffer.is_on_host


# Copies


def test_results_stay_on_the_device_until_somebody_looks() -> None:
    x = smelt.array(np.arange(6, dtype=np.float32).reshape(2, 3))
    y, z = smelt.exp(x), smelt.zeros(())
    assert copies(lambda: smelt.eval(y)) == (1, 0)

    def chain() -> None:
        nonlocal z
        z = (y * 2.71875).sum()
        smelt.eval(z)
        smelt.eval(z)

    assert copies(chain) == (1, 0)  # the number, which no other test has taken there; y is there
    assert on_device(y) and on_device(z)
    assert copies(lambda: z.item()) == (0, 1)
    assert copies(lambda: (z.item(), z.tolist(), str(z), np.asarray(z))) == (0, 0)  # the host's view is kept
    assert on_device(y)
    np.testing.assert_allclose(z.item(), 2.71875 * np.exp(np.arange(6)).sum(), rtol=1e-6)


def test_arguments_are_copied_once() -> None:
    f = smelt.compile(lambda x, y: x @ y + 1)
    x, y = smelt.ones((3, 4)), smelt.ones((4, 5))
    smelt.eval(x, y)
    assert copies(lambda: f(x, y)) == (0, 0)
    host = smelt.array(np.ones((3, 4), np.float32))
    assert copies(lambda: f(host, y)) == (1, 0)
    assert copies(lambda: f(host, y)) == (0, 0)
    assert f(host, y).tolist() == [[5.0] * 5] * 3


def test_what_a_program_captured_is_copied_once() -> None:
    weight = smelt.array(np.arange(4, dtype=np.float32))
    f = smelt.compile(lambda x: x * weight)
    x = smelt.array(np.ones(4, np.float32))
    assert copies(lambda: f(x)) == (2, 0)
    assert copies(lambda: f(x)) == (0, 0)
    assert f(x).tolist() == [0, 1, 2, 3]


def test_a_training_step_stays_on_the_device() -> None:
    rng = np.random.default_rng(0)
    x, y = (smelt.array(rng.standard_normal(s).astype(np.float32)) for s in ((16, 4), (16, 1)))

    def loss(w: Any) -> Any:
        return smelt.mean(smelt.square(smelt.tanh(x @ w) - y))

    step = smelt.compile(lambda w: w - 0.1 * smelt.grad(loss)(w))
    w = smelt.array(rng.standard_normal((4, 1)).astype(np.float32))
    before = loss(w)
    smelt.eval(before, step(w))

    def train() -> None:
        nonlocal w
        for _ in range(5):
            w = step(w)
        smelt.eval(w)

    assert copies(train) == (0, 0)
    assert float(loss(w).item()) < float(before.item())


def test_small_graphs_run_on_the_host_where_copies_are_small() -> None:
    with override(small_work=1000):
        launches = ToyExecutable.launches
        x = smelt.array([1.0, 2.0]) + 1
        assert copies(lambda: smelt.eval(x)) == (0, 0) and ToyExecutable.launches == launches
        assert x.tolist() == [2, 3]
        large = smelt.ones((5000,)) + x[0]
        smelt.eval(large)
        assert ToyExecutable.launches == launches + 1 and on_device(large)


# Memory


def test_memory_is_counted_and_goes_back() -> None:
    smelt.clear_cache()
    before = smelt.get_active_memory()
    assert MEMORY in pools
    x = smelt.zeros((1 << 20,), smelt.float32) + 1
    smelt.eval(x)
    assert 4 << 20 <= smelt.get_active_memory() - before < (4 << 20) + 4096  # and two numbers
    smelt.reset_peak_memory()
    assert smelt.get_peak_memory() >= 4 << 20
    home = x._buffer.home
    assert isinstance(home, SeparateBlock) and home.memory is MEMORY and home.nbytes == 4 << 20
    del x, home
    assert smelt.get_active_memory() < before + 4096
    assert MEMORY.cached_bytes >= 4 << 20
    smelt.clear_cache()
    assert MEMORY.cached_bytes == 0


def test_the_limit_holds_on_the_device() -> None:
    gc.collect()  # what other tests left on the host counts, too
    kept = smelt.ones((1 << 16,))
    smelt.eval(kept)
    previous = smelt.set_memory_limit(smelt.get_active_memory() + (1 << 20))
    try:
        with pytest.raises(OutOfMemoryError, match="set_memory_limit"):
            smelt.eval(smelt.zeros((1 << 20,)) + kept[0])
        assert (kept + 1)[:2].tolist() == [2, 2]
    finally:
        smelt.set_memory_limit(previous)


def test_an_argument_that_is_returned_shares_its_memory() -> None:
    f = smelt.compile(lambda x: (x, x.reshape(2, 2), x + 1))
    x = smelt.array(np.arange(4, dtype=np.float32))
    same, shaped, more = f(x)
    assert same._buffer.home is shaped._buffer.home is x._buffer.home
    assert more._buffer.home is not x._buffer.home
    assert shaped.tolist() == [[0, 1], [2, 3]] and more.tolist() == [1, 2, 3, 4]
    y = x * 2
    smelt.eval(y)
    same, shaped, more = f(y)
    assert copies(lambda: shaped.tolist()) == (0, 1) and on_device(more)


def test_an_array_on_two_devices_keeps_its_home() -> None:
    x = smelt.array(np.arange(4, dtype=np.float32)) + 1
    assert on_device(x)
    home = x._buffer.home
    for device in ("cpu", "metal:sim", "reference", "toy"):
        with override(device=device):
            assert smelt.compile(lambda x: x * 2)(x).tolist() == [2, 4, 6, 8]
    assert x._buffer.home is home
    assert copies(lambda: smelt.compile(lambda x: x * 3)(x)) == (0, 0)


def test_a_second_home_is_another_buffer() -> None:
    class Other:
        def to_host(self, aval: Aval) -> np.ndarray:
            return np.full(aval.shape, 7, aval.dtype.numpy)

    host = Buffer.of(np.zeros(4, np.float32), F32)
    first, second = MEMORY.block(16), Other()
    assert host.housed(first) is host and host.home is first
    moved = host.housed(second)
    assert moved is not host and moved.home is second and host.home is first and moved.array is host.array
    remote = Buffer.at(F32, second)
    assert not remote.is_on_host and not remote.housed(first).is_on_host
    assert remote.array.tolist() == [7] * 4 and remote.is_on_host and remote.address == remote.array.ctypes.data
    with pytest.raises(AttributeError, match="no 'size'"):
        remote.size  # noqa: B018


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2)])
@pytest.mark.parametrize("dtype", [smelt.bool_, smelt.int8, smelt.bfloat16, smelt.complex64, smelt.uint64])
def test_shapes_and_dtypes(shape: tuple[int, ...], dtype: Any) -> None:
    x = smelt.array(np.ones(shape, dtype.numpy))
    y = smelt.compile(lambda x: (x, smelt.where(x == x, x, x)))(x)[1]
    assert y.dtype == dtype and np.asarray(y).tobytes() == np.ones(shape, dtype.numpy).tobytes()


def test_threads_that_ask_for_the_same_elements_share_one_view() -> None:
    x = smelt.arange(1 << 16) + 1
    assert on_device(x)
    seen: list[Any] = []

    def ask() -> None:
        started.wait()
        seen.append((x._buffer.address, x._buffer.array.ctypes.data))

    started = threading.Barrier(8)
    threads = [threading.Thread(target=ask) for _ in range(8)]
    before = MEMORY.read_back
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert MEMORY.read_back == before + 1 and len(seen) == 8 and len({*itertools.chain(*seen)}) == 1


# Ways out


def test_exports() -> None:
    def made() -> smelt.array:
        x = smelt.arange(6).reshape(2, 3) * 2
        assert on_device(x)
        return x

    want = (np.arange(6) * 2).reshape(2, 3)
    assert np.array_equal(np.asarray(made()), want)
    assert np.array_equal(np.from_dlpack(made()), want)
    assert memoryview(made()).tolist() == want.tolist()
    assert [row.tolist() for row in made()] == want.tolist()
    assert str(made()).startswith("array([[ 0,  2,  4]") and int(made()[1, 2]) == 10
    assert np.array_equal(pickle.loads(pickle.dumps(made())), want)
    assert made().__dlpack_device__() == (1, 0)
    file = io.BytesIO()
    smelt.save(file, made())
    file.seek(0)
    assert np.array_equal(np.load(file), want)
    if made()[0, 1] > 1:
        assert bool((made() == smelt.array(want)).all())


def test_transformations_and_control_flow() -> None:
    x = smelt.array(np.linspace(0.1, 1, 12, dtype=np.float32).reshape(3, 4))
    programs = {
        "grad": smelt.grad(lambda x: smelt.logsumexp(x, axis=1).sum()),
        "vmap": smelt.vmap(lambda row: smelt.softmax(row)),
        "scan": lambda x: smelt.scan(lambda c, r: (c + r, c * r), x[0], x)[1],
        "sort": lambda x: smelt.sort(-x, axis=1),
        "while": lambda x: smelt.while_loop(lambda c: c.sum() < 100, lambda c: c * 2, x),
        "wide": lambda x: sum(smelt.exp(x + i) for i in range(9)),
    }
    for name, f in programs.items():
        found = np.asarray(f(x))
        with override(device="reference"):
            np.testing.assert_allclose(found, np.asarray(f(x)), rtol=1e-5, err_msg=name)


# What is asked of a device


def test_devices_and_streams() -> None:
    assert smelt.default_device() == TOY == Device("toy")
    assert smelt.is_available("toy") and smelt.device_count("toy") == 1
    assert smelt.device_info()["device_name"] == "toy" and smelt.device_info("toy")["beads"] == 10
    assert "beads" not in smelt.device_info("cpu")
    with smelt.stream(smelt.cpu):
        assert not on_device(smelt.ones(3) + 1)
        with smelt.stream(smelt.new_stream("toy")):
            assert on_device(smelt.ones(3) + 1)
    smelt.set_default_device("cpu")
    assert not on_device(smelt.ones(3) + 1)
    smelt.set_default_device(TOY)
    assert on_device(smelt.ones(3) + 1)
    waited = MEMORY.waited
    smelt.synchronize()
    smelt.synchronize(smelt.Stream(TOY))
    smelt.synchronize("cpu")
    assert MEMORY.waited == waited + 2
    assert smelt.gpu.kind == "gpu" and smelt.cpu.kind == "cpu"


def test_its_pipeline_and_its_limits_are_in_force() -> None:
    lowered = smelt.compile(lambda *xs: sum(smelt.exp(x) for x in xs)).trace(*[smelt.ones(4)] * 7).lower()
    compiled = lowered.compile()
    assert compiled.as_text("beads").count(": map\n") == len(compiled.kernels) > 1
    assert TOY.pipeline.endswith(f"fuse{{max-buffers={TOY.target.max_buffers}}},plan-buffers")
    with override(device="cpu"):
        other = lowered.compile()
        assert len(other.kernels) == 1 and other.as_text("beads") == lowered.lower_for("toy").as_text("beads")
        assert "kernel" in other.stages and "metal_stdlib" in other.as_text("msl")


def test_a_device_is_a_name_to_the_outside() -> None:
    for made in (pickle.loads(pickle.dumps(TOY)), copy.deepcopy(TOY), Device("toy")):
        assert made == TOY and hash(made) == hash(TOY) and made.memory is MEMORY and repr(made) == "Device(toy, 0)"
    with pytest.raises(ArgumentTypeError, match=r"rank of Device\(toy, 0\) cannot be set"):
        TOY.rank = 3
    with pytest.raises(DeviceError, match="there is no device 'abacus'"):
        Device("abacus").pipeline  # noqa: B018


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        (("toy", "", len, MEMORY, Target("")), DeviceError, "a device 'toy': there is one"),
        (("auto", "", len, MEMORY, Target("")), DeviceError, "a name of its own"),
        (("", "", len, MEMORY, Target("")), DeviceError, "a name of its own"),
        (("New", "", len, MEMORY, Target("")), DeviceError, "in small letters"),
        (("new",), ArgumentTypeError, "needs pipeline, executable, memory and target"),
        (("new", "dce", len, None, Target("")), ArgumentTypeError, "needs pipeline, executable, memory and target"),
    ],
)  # fmt: skip
def test_registrations_that_are_refused(arguments: Any, error: type[Exception], message: str) -> None:
    before = dict(devices.registered)
    with pytest.raises(error, match=message):
        register(Device(*arguments))
    with pytest.raises(ArgumentTypeError, match="is no device"):
        register("new")  # type: ignore[arg-type]
    assert devices.registered == before


def test_the_best_device_is_the_default() -> None:
    first = register(Device("first", "dce", len, MEMORY, Target("first"), rank=100))  # type: ignore[arg-type]
    try:
        with override(device="auto"):
            assert smelt.default_device() == first == smelt.Device("first")
        gone = register(Device("gone", "dce", len, MEMORY, Target(""), rank=200, missing="it needs a shop"))  # type: ignore[arg-type]
        with override(device="auto"):
            assert smelt.default_device() == first
        assert not smelt.is_available("gone")
        with pytest.raises(DeviceError, match="no device 'gone'; it needs a shop"):
            smelt.set_default_device("gone")
        with pytest.raises(DeviceError, match="programs of first cannot be made"):
            smelt.compile(smelt.exp).trace(smelt.ones(2)).lower().lower_for("first")
        unregister(gone)
    finally:
        unregister(first)
    with override(device="auto"):
        assert smelt.default_device() != first


def test_doctor_examines_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor", "--device", "toy"]) == 0
    report = capsys.readouterr().out
    assert report.count("  ok ") == 5 and "beads 10" in report and "no measure of anything" in report


# Entry points


def run(tmp_path: Path, code: str, value: str) -> subprocess.CompletedProcess[str]:
    info = tmp_path / "toy_device-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-device\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[smelt.devices]\ntoy = {value}\n")
    code = f"import sys; sys.path += [{str(tmp_path)!r}, {str(ROOT)!r}]\n{code}"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)


def test_a_package_brings_a_device(tmp_path: Path) -> None:
    code = """
import smelt
print(sorted(name for name in sys.modules if name.startswith("tests")))
print(smelt.is_available("toy"), smelt.is_available("abacus"))
smelt.set_default_device("toy")
x = smelt.compile(lambda x: smelt.exp(x) * 2)(smelt.zeros(3))
print(x._buffer.is_on_host, x.tolist())
"""
    done = run(tmp_path, code, "tests.toy")
    assert done.stdout.splitlines() == ["[]", "True False", "False [2.0, 2.0, 2.0]"], done.stderr


@pytest.mark.parametrize(
    "value, message",
    [("nowhere:Nothing", "the device 'toy' of nowhere:Nothing does not load: ModuleNotFoundError"),
     ("json", "json, the entry point of the device 'toy', registers no such device")],
)  # fmt: skip
def test_a_package_that_does_not_load(tmp_path: Path, value: str, message: str) -> None:
    done = run(tmp_path, "import smelt\nprint(smelt.ones(2).tolist())\nsmelt.set_default_device('toy')", value)
    assert done.stdout == "[1.0, 1.0]\n" and message in done.stderr


def test_a_part_that_does_not_load() -> None:
    device = register(Device("stale", pipeline="", executable=Lazy("tests.toy.nowhere:Program"), memory=MEMORY,
                             target=TOY.target))  # fmt: skip
    try:
        rule = r"the executable of the device 'stale', tests.toy.nowhere:Program, does not load: ModuleNotFoundError"
        with pytest.raises(DeviceError, match=rule):
            device.executable  # noqa: B018
    finally:
        unregister(device)
