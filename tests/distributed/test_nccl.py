"""Several processes with a GPU each, over NCCL: on GPUs that are not there, and on those that are."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from smelt.backends.cuda import driver
from smelt.backends.cuda.collectives import is_installed
from smelt.ir.errors import DeviceError
from smelt.tools import launch

from .test_processes import COLLECTIVES, DERIVATIVES, ENDS, HEAD, MESSAGES, TRAINING

ROOT = Path(__file__).parents[2]
FAKES = "from tests.distributed.on_fakes import fake, nccl\n"

#: What takes the simulator seconds, not minutes.
FEW = """
smelt.set_default_device(smelt.Device("cuda"))
every = [np.arange(6.0).reshape(2, 3) + r for r in range(size)]
many = [(np.arange(4.0 * size) % 5).reshape(2 * size, 2) * (r + 1) for r in range(size)]
for dtype in (smelt.float32, smelt.float64, smelt.bfloat16, smelt.int8, smelt.uint16, smelt.complex64):
    x, y = (smelt.array(a[rank]).astype(dtype) for a in (every, many))
    found = smelt.compile(lambda x, y: (dist.all_sum(x) + 1, dist.all_gather(x), dist.sum_scatter(y)))(x, y)
    wanted = sum(every) + 1, np.concatenate(every), np.split(sum(many), size)[rank]
    for a, b in zip(found, wanted):
        assert a.dtype is dtype
        np.testing.assert_array_equal(np.asarray(a.astype(smelt.complex64)), b)
assert dist.all_max(smelt.array([rank, -rank], smelt.int16)).tolist() == [size - 1, 0]
assert dist.all_min(smelt.array(float(rank))).item() == 0
assert dist.all_gather(smelt.array(rank)).tolist() == list(range(size))
flags = smelt.array([rank == 0, True, False])
assert dist.all_sum(flags).tolist() == [True, True, False] and dist.all_min(flags).tolist() == [False, True, False]
assert dist.all_sum(smelt.zeros((0, 3))).shape == (0, 3) and dist.all_gather(smelt.zeros((0, 3))).shape == (0, 3)
assert dist.sum_scatter(smelt.zeros((0, 2))).shape == (0, 2)
# batched along each axis, in loops, with what the CPU does between, and for arrays of the CPU
x = smelt.array(every[rank], smelt.float32)
for axis in (0, 1):
    found = smelt.vmap(dist.all_gather, axis, axis)(x)
    wanted = np.stack([np.concatenate([e.take(i, axis) for e in every]) for i in range(x.shape[axis])], axis)
    np.testing.assert_array_equal(np.asarray(found), wanted)
y = smelt.array(many[rank], smelt.float32)
np.testing.assert_array_equal(
    np.asarray(smelt.vmap(dist.sum_scatter, 1, 1)(y)), np.split(sum(many), size)[rank])
before = len(nccl.done)
carry, _ = smelt.scan(lambda c, _: (dist.all_sum(c), None), smelt.array(1.0), smelt.zeros(3))
assert carry.item() == size**3 and len(nccl.done) == before + 3
with smelt.stream(smelt.cpu):
    np.testing.assert_array_equal(np.asarray(dist.all_sum(x)), sum(every))
half = world.split(rank % 2)
assert dist.all_sum(smelt.array(rank), group=half).item() == sum(range(rank % 2, size, 2))
assert (half.rank(), half.size()) == (rank // 2, size // 2)
assert fake.device == rank and smelt.zeros(1).__dlpack_device__()[1] == rank
# what comes between steps of all is a graph, as what has none of these
turn = smelt.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])

def turned(x):
    return smelt.scan(lambda c, _: (c @ turn, None), x, smelt.zeros(6))[0]

step = smelt.compile(lambda x: turned(dist.all_sum(turned(x) + 1)))
for _ in range(6):
    found = step(x)
    np.testing.assert_array_equal(np.asarray(found), sum(every) + size)
assert fake.graphs
"""

#: One process: NCCL itself, which `init` does without then.
ALONE = """
from smelt.distributed import nccl as over
from smelt.distributed.collectives import _rule
from smelt.distributed.rendezvous import Rendezvous

group = dist.Group(over.together(Rendezvous(0, 1, ("127.0.0.1", 0))))
smelt.set_default_device(smelt.Device("cuda"))
rules = [_rule(name, group._number, 1) for name in ("all_sum", "all_max", "all_min", "all_gather", "sum_scatter")]
for dtype in (smelt.float32, smelt.float64, smelt.float16, smelt.bfloat16, smelt.int8, smelt.uint16, smelt.int32,
              smelt.int64, smelt.bool_, smelt.complex64):
    x = smelt.array([[1, 0, 1], [0, 0, 1]]).astype(dtype)
    for rule in rules:
        if dtype is not smelt.complex64 or rule not in rules[1:3]:
            found = smelt.compile(lambda x: rule(x))(x)
            assert found.dtype is dtype and smelt.array_equal(found, x).item(), (rule, dtype, found)
w = smelt.array(np.linspace(-1, 1, 16).reshape(4, 4).astype(np.float32))
step = smelt.compile(smelt.grad(lambda x: (rules[0](smelt.tanh(x @ w)) @ w).sum()))
other = smelt.compile(smelt.grad(lambda x: (smelt.tanh(x @ w) @ w).sum()))
for _ in range(6):
    np.testing.assert_allclose(np.asarray(step(w)), np.asarray(other(w)), 1e-6)
assert group.split(0).size() == 1
"""


def launched(
    processes: int, program: str, folder: Path, gpus: int = 0, timeout: float = 240, backend: str = "nccl"
) -> subprocess.CompletedProcess[str]:
    """A program in several processes; `gpus`: those that are not there, 0: those that are."""
    path = folder / "program.py"
    head = HEAD.replace("strict=True", f"strict={processes > 1}")
    path.write_text((FAKES if gpus else "") + head + program + "\nprint(f'rank {rank} of {size} is done')\n")
    (folder / "meeting").mkdir()
    fakes = {"FAKE_GPUS": str(gpus), "FAKE_FOLDER": str(folder / "meeting")}
    path_of_modules = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, **fakes, "PYTHONPATH": path_of_modules, "SMELT_NUM_THREADS": "1", "SMELT_CACHE": "0"}
    command = [sys.executable, "-m", "smelt", "launch", "--backend", backend, "-n", str(processes), str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=environment)


def all_done(processes: int, program: str, folder: Path, gpus: int = 0) -> None:
    done = launched(processes, program, folder, gpus)
    assert done.returncode == 0, done.stdout + done.stderr
    for rank in range(processes):
        assert f"rank {rank} of {processes} is done" in done.stdout, done.stdout + done.stderr


def test_collectives(tmp_path: Path) -> None:
    all_done(4, FEW, tmp_path, gpus=4)


@pytest.mark.parametrize("program", [MESSAGES, TRAINING, DERIVATIVES], ids=["messages", "training", "derivatives"])
def test_programs(program: str, tmp_path: Path) -> None:
    all_done(2, program, tmp_path, gpus=2)


@pytest.mark.parametrize("name", ENDS)
def test_a_process_that_ends_ends_the_others(name: str, tmp_path: Path) -> None:
    start = time.monotonic()
    done = launched(2, ENDS[name] + "\nprint(dist.all_sum(smelt.ones(2)))", tmp_path, gpus=2, timeout=120)
    assert done.returncode != 0, done.stdout
    assert "is done" not in done.stdout
    assert time.monotonic() - start < 120
    if name == "an error":
        assert "as it happens" in done.stderr


class _Process:
    """One that ends with a status after so many questions."""

    def __init__(self, questions: int, status: int):
        self.questions, self.status = questions, status

    def poll(self) -> int | None:
        self.questions -= 1
        return None if self.questions >= 0 else self.status

    def terminate(self) -> None:
        pass

    def wait(self, timeout: float) -> None:
        pass


@pytest.mark.parametrize("status, wanted", [(0, 0), (3, 3), (-9, 137)])
def test_the_exit_status_is_that_of_who_failed(status: int, wanted: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whenever it ends, also between two questions to different processes."""
    monkeypatch.setattr(launch.time, "sleep", lambda seconds: None)
    for first in range(4):
        for second in range(4):
            made = iter([_Process(first, 0), _Process(second, status)])
            monkeypatch.setattr(launch.subprocess, "Popen", lambda *_, made=made, **__: next(made))
            assert launch._beside_each_other(2, ["program.py"], {}) == wanted


def test_processes_that_share_a_gpu(tmp_path: Path) -> None:
    done = launched(2, "", tmp_path, gpus=1)
    assert done.returncode == 1
    assert "both on CUDA device 1000; each process needs a GPU of its own" in done.stderr


def test_nccl_alone(tmp_path: Path) -> None:
    all_done(1, ALONE, tmp_path, gpus=1)


def _gpus() -> int:
    try:
        return driver.count() if is_installed() else 0
    except DeviceError:
        return 0


ON_GPUS = {"collectives": COLLECTIVES, "derivatives": DERIVATIVES, "messages": MESSAGES, "training": TRAINING}


@pytest.mark.skipif(_gpus() < 1, reason="there is no NVIDIA GPU with NCCL")
def test_alone_on_a_gpu(tmp_path: Path) -> None:
    all_done(1, ALONE, tmp_path)


@pytest.mark.skipif(_gpus() != 1, reason="there is not one NVIDIA GPU with NCCL")
def test_processes_that_share_a_real_gpu(tmp_path: Path) -> None:
    done = launched(2, "", tmp_path)
    assert done.returncode == 1 and "each process needs a GPU of its own" in done.stderr, done.stderr


@pytest.mark.skipif(_gpus() < 2, reason="there are not two NVIDIA GPUs with NCCL")
@pytest.mark.parametrize("name", ON_GPUS)
def test_on_gpus(name: str, tmp_path: Path) -> None:
    """The same on real GPUs."""
    all_done(2, ON_GPUS[name], tmp_path)


@pytest.mark.skipif(_gpus() < 2, reason="there are not two NVIDIA GPUs with NCCL")
@pytest.mark.parametrize("name", ENDS)
def test_a_process_that_ends_ends_the_others_on_gpus(name: str, tmp_path: Path) -> None:
    """While these wait for it in a kernel of NCCL."""
    program = f"smelt.eval(dist.all_sum(smelt.ones(2)))\n{ENDS[name]}\nprint(dist.all_sum(smelt.ones(2)))"
    done = launched(2, program, tmp_path, timeout=120)
    assert done.returncode != 0 and "is done" not in done.stdout, done.stdout + done.stderr
