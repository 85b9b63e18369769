"""Two and four processes on one machine, where mpi4py and an MPI are installed."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

BESIDE = Path(sys.executable).parent / "mpiexec"
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None or not (BESIDE.exists() or shutil.which("mpiexec")),
    reason="needs mpi4py and mpiexec",
)

HEAD = """
import numpy as np
import smelt
from smelt import distributed as dist, nn, optimizers
from smelt.nn.layers.distributed import shard_linear

world = dist.init(strict=True)
rank, size = world.rank(), world.size()
"""


def launched(processes: int, program: str, folder: Path, timeout: float = 240) -> subprocess.CompletedProcess[str]:
    path = folder / "program.py"
    path.write_text(HEAD + program + "\nprint(f'rank {rank} of {size} is done')\n")
    environment = {**os.environ, "SMELT_NUM_THREADS": "1", "SMELT_CACHE": "0"}
    command = [sys.executable, "-m", "smelt", "launch", "-n", str(processes), str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=environment)


def all_done(processes: int, program: str, folder: Path) -> None:
    done = launched(processes, program, folder)
    assert done.returncode == 0, done.stdout + done.stderr
    for rank in range(processes):
        assert f"rank {rank} of {processes} is done" in done.stdout, done.stdout + done.stderr


COLLECTIVES = """
def of(r, dtype=np.float32):
    return np.random.default_rng(r).integers(-4, 5, (size, 3)).astype(dtype)

every = [of(r) for r in range(size)]
whole, mine = np.concatenate(every), sum(every)[rank : rank + 1]
wanted = [sum(every), whole, mine, sum(every), sum(every), whole, mine, np.max(every, 0), np.min(every, 0)]
for dtype in (smelt.float32, smelt.float16, smelt.bfloat16, smelt.float64, smelt.int32, smelt.int8, smelt.complex64):
    x = smelt.array(of(rank)).astype(dtype)

    def ways(x):
        found = [dist.all_sum(x), dist.all_gather(x), dist.sum_scatter(x)]
        found += [smelt.vmap(dist.all_sum, axis, axis)(x) for axis in (0, 1)]
        found += [smelt.vmap(f, 1, 1)(x) for f in (dist.all_gather, dist.sum_scatter)]
        return found if dtype is smelt.complex64 else [*found, dist.all_max(x), dist.all_min(x)]

    for run in (lambda f: f, smelt.compile):
        results = run(ways)(x)
        assert len(results) == len(wanted) - 2 * (dtype is smelt.complex64)
        for found, value in zip(results, wanted):
            assert found.dtype is dtype, (found.dtype, dtype)
            np.testing.assert_array_equal(np.asarray(found.astype(smelt.complex64)), value)
assert dist.all_gather(smelt.array(rank)).tolist() == list(range(size))
flags = smelt.array([rank == 0, True, False])
assert dist.all_sum(flags).tolist() == dist.all_max(flags).tolist() == [True, True, False]
assert dist.all_min(flags).tolist() == [False, True, False]
# many in one program, and in a loop
total = smelt.compile(lambda x: sum(dist.all_sum(x * i) for i in range(20)))(x.astype(smelt.float32))
np.testing.assert_array_equal(np.asarray(total), 190 * sum(every))
carry, _ = smelt.scan(lambda c, _: (dist.all_sum(c), None), smelt.array(1.0), smelt.zeros(3))
assert carry.item() == size**3
half = world.split(rank % 2)
assert dist.all_sum(smelt.array(rank), group=half).item() == sum(range(rank % 2, size, 2))
"""

DERIVATIVES = """
x = smelt.array([1.0 + rank, -2.0 * rank])
every = np.array([[1.0 + r, -2.0 * r] for r in range(size)])
weights = np.arange(2.0 * size)
for run in (lambda f: f, smelt.compile):
    # of the sum of all processes' losses
    found = run(smelt.grad(lambda x: (dist.all_sum(x) ** 2).sum()))(x)
    np.testing.assert_allclose(np.asarray(found), 2 * size * every.sum(0))
    found = run(smelt.grad(lambda x: (dist.all_gather(x) * smelt.array(weights, smelt.float32)).sum()))(x)
    np.testing.assert_allclose(np.asarray(found), size * weights[2 * rank : 2 * rank + 2])
    y = smelt.arange(float(size)) * (rank + 1)
    found = run(smelt.grad(lambda y: ((rank + 1) * dist.sum_scatter(y)).sum()))(y)
    np.testing.assert_allclose(np.asarray(found), np.arange(1, size + 1))
    found = run(smelt.grad(lambda x: dist.all_max(x).sum()))(x)
    np.testing.assert_allclose(np.asarray(found), [size * (rank == size - 1), size * (rank == 0)])
    for name in ("all_sum", "all_gather", "all_max"):
        f = getattr(dist, name)
        tangent = run(lambda x: smelt.jvp(f, [x], [smelt.full(2, rank + 1.0)])[1][0])(x)
        wanted = {"all_sum": [size * (size + 1) / 2] * 2, "all_max": [size, 1],
                  "all_gather": np.repeat(np.arange(1.0, size + 1), 2)}[name]
        np.testing.assert_allclose(np.asarray(tangent), wanted)
    found = run(smelt.hessian(lambda x: (dist.all_sum(x) ** 2).sum()))(x)
    batch = run(smelt.vmap(smelt.grad(lambda x: (dist.all_sum(x) ** 2).sum())))(smelt.stack([x, 2 * x]))
    np.testing.assert_allclose(np.asarray(batch), [2 * size * every.sum(0), 4 * size * every.sum(0)])
"""

MESSAGES = """
x = smelt.full((100, 1000), float(rank))
for i in range(3):  # all send before anybody receives
    sent = dist.send(x + i, (rank + 1) % size)
    found = dist.recv_like(x, (rank - 1) % size)
    smelt.eval(sent, found)
    assert smelt.all(found == (rank - 1) % size + i).item()
first, second = (dist.send(smelt.array([float(i)]), (rank + 1) % size) for i in range(2))
smelt.eval(first, second)
found = [dist.recv((1,), smelt.float32, (rank - 1) % size) for _ in range(2)]
smelt.eval(found[0]), smelt.eval(found[1])
assert [x.item() for x in found] == [0.0, 1.0]
exchange = smelt.compile(lambda x: (dist.send(x, (rank + 1) % size), dist.recv_like(x, (rank - 1) % size)))
for i in range(3):
    assert exchange(smelt.array([rank + 10.0 * i]))[1].item() == (rank - 1) % size + 10 * i
"""

MESSAGES_PUSHED = """
def ring(x):
    sent = dist.send(x**3, (rank + 1) % size)
    return dist.recv_like(sent, (rank - 1) % size)

def pushed(f, directions):
    '''All derivatives along some of the directions: the value first, that along all of them last.'''
    if not directions:
        return lambda x: [f(x)]
    inner = pushed(f, directions[:-1])
    def both(x):
        values, tangents = smelt.jvp(lambda *x: inner(*x), [x], [directions[-1]])
        return [*values, *tangents]
    return both

mine = smelt.array([rank + 1.0, 2.0])
x, a, b, c = np.array([(rank - 1) % size + 1.0, 2.0]), *(np.array(v) for v in ([1.0, 2.0], [3.0, 5.0], [7.0, 1.0]))
wanted = [x**3, 3 * x**2 * a, 3 * x**2 * b, 6 * x * a * b, 3 * x**2 * c, 6 * x * a * c, 6 * x * b * c, 6 * a * b * c]
directions = [smelt.array(v, smelt.float32) for v in (a, b, c)]
# Each derivative of a message is a message of its own: in whatever order they come, none is taken for another one.
sent = pushed(lambda x: dist.send(x**3, (rank + 1) % size), directions)
came = pushed(lambda x: dist.recv_like(x**3, (rank - 1) % size), directions)
for i in range(8):
    smelt.eval(sent(mine)[i])
for i in reversed(range(8)):
    np.testing.assert_allclose(np.asarray(came(mine)[i]), wanted[i], 1e-6)
for run in (lambda f: f, smelt.compile):
    for found, value in zip(run(pushed(ring, directions[:2]))(mine), wanted):
        np.testing.assert_allclose(np.asarray(found), value, 1e-6)
    found = run(smelt.vmap(pushed(ring, directions[:2])))(smelt.stack([mine, 2 * mine]))
    for found, value, power in zip(found, wanted, (3, 2, 2, 1)):
        np.testing.assert_allclose(np.asarray(found), np.stack([value, 2**power * value]), 1e-6)
"""

MESSAGES_DERIVED = """
# A stage in each process: each multiplies by its own weights, and the last one has the loss.
def stage(w, x):
    if rank > 0:
        x = dist.recv_like(x, rank - 1)
    y = smelt.tanh(w * x)
    return (y**2).sum() if rank == size - 1 else 0 * dist.send(y, rank + 1).sum()

def whole(ws, x):
    for w in ws:
        x = smelt.tanh(w * x)
    return (x**2).sum()

# Each process sends to the next one, and waits for the one before it.
def ring(x):
    sent = dist.send(x * x, (rank + 1) % size)
    return sent, dist.recv_like(sent, (rank - 1) % size)

def loss(x):
    sent, found = ring(x)
    return (found * found).sum() + 0 * sent.sum()

x, t = smelt.array([0.3, -0.7]), smelt.array([1.0, 2.0])
ws = [smelt.array([1.0 + r, 0.5]) for r in range(size)]
mine, before = smelt.array([rank + 1.0, 2.0]), np.array([(rank - 1) % size + 1.0, 2.0])
many = smelt.stack([mine, 2 * mine, 3 * mine])
_, (wanted, below) = smelt.value_and_grad(whole, (0, 1))(ws, x)
for run in (lambda f: f, smelt.compile):
    step = run(smelt.value_and_grad(stage, (0, 1)))
    for _ in range(3):
        value, (gradient, under) = step(ws[rank], x)
        smelt.eval(value, gradient, under)
        np.testing.assert_allclose(np.asarray(gradient), np.asarray(wanted[rank]), 1e-4)
        np.testing.assert_allclose(np.asarray(under), np.asarray(below) if rank == 0 else 0, 1e-4)
    (_, found), (_, tangent) = run(lambda x: smelt.jvp(ring, [x], [t]))(mine)
    np.testing.assert_allclose(np.asarray(found), before**2)
    np.testing.assert_allclose(np.asarray(tangent), 2 * before * [1, 2])
    for axis in (0, 1):
        _, found = run(smelt.vmap(ring, axis, axis))(many)
        np.testing.assert_allclose(np.asarray(found), before**2 * np.array([[1], [4], [9]]))
    np.testing.assert_allclose(np.asarray(run(smelt.grad(loss))(mine)), 4 * np.asarray(mine) ** 3)
    np.testing.assert_allclose(np.asarray(run(smelt.vmap(smelt.grad(loss)))(many)), 4 * np.asarray(many) ** 3, 1e-6)
    # Derivatives of derivatives: all send before they wait, and no message is taken for one of another derivative.
    second = lambda x: smelt.grad(lambda x: smelt.grad(loss)(x).sum())(x)
    for twice in (second, lambda x: smelt.jvp(smelt.grad(loss), [x], [smelt.ones(2)])[1][0],
                  smelt.grad(lambda x: smelt.jvp(loss, [x], [smelt.ones(2)])[1][0]),
                  lambda x: smelt.hessian(loss)(x).sum(axis=0)):
        np.testing.assert_allclose(np.asarray(run(twice)(mine)), 12 * np.asarray(mine) ** 2)
    np.testing.assert_allclose(np.asarray(run(smelt.vmap(second))(many)), 12 * np.asarray(many) ** 2)
    np.testing.assert_allclose(np.asarray(run(smelt.grad(lambda x: second(x).sum()))(mine)), 24 * np.asarray(mine))
# What comes must be what is waited for.
smelt.eval(dist.send(smelt.ones(3), (rank + 1) % size))
try:
    smelt.eval(dist.recv((4 if rank else 2,), smelt.float32, (rank - 1) % size))
except smelt.SmeltError as error:
    assert "process" in str(error) and ("12 bytes" if rank else "sent more") in str(error), error
else:
    raise AssertionError
"""

LAYERS = """
smelt.random.seed(0)
first, second = nn.Linear(8, 12), nn.Linear(12, 8)
x, y = smelt.random.normal((5, 8)), smelt.random.normal((5, 8))
whole = nn.Sequential(first, nn.ReLU(), second)
parts = nn.Sequential(shard_linear(first, "all-to-sharded"), nn.ReLU(), shard_linear(second, "sharded-to-all"))
assert parts.layers[0].weight.shape == (12 // size, 8) and parts.layers[2].weight.shape == (8, 12 // size)

def loss(model, x):
    return ((model(x) - y) ** 2).mean()

for run in (lambda f: f, smelt.compile):
    value, (gradient, below) = run(smelt.value_and_grad(loss, (0, 1)))(parts, x)
    wanted, (other, under) = smelt.value_and_grad(loss, (0, 1))(whole, x)
    np.testing.assert_allclose(value.item(), wanted.item(), 1e-5)
    np.testing.assert_allclose(np.asarray(below), np.asarray(under), 1e-4, 1e-6)
    own = slice(rank * 12 // size, (rank + 1) * 12 // size)
    np.testing.assert_allclose(
        np.asarray(gradient.layers[0].weight), np.asarray(other.layers[0].weight)[own], 1e-4, 1e-6)
    np.testing.assert_allclose(
        np.asarray(gradient.layers[2].weight), np.asarray(other.layers[2].weight)[:, own], 1e-4, 1e-6)
    np.testing.assert_allclose(np.asarray(gradient.layers[2].bias), np.asarray(other.layers[2].bias), 1e-4, 1e-6)
import copy, pickle
for other in (copy.deepcopy(parts), pickle.loads(pickle.dumps(parts))):
    assert other.layers[0].group is world
    np.testing.assert_allclose(np.asarray(other(x)), np.asarray(whole(x)), 1e-4, 1e-6)
try:
    pickle.dumps(world.split(0))
except smelt.SmeltError as error:
    assert "only the group of all processes" in str(error)
else:
    raise AssertionError
x = smelt.random.normal((2, 128))
wide, back = nn.Linear(128, 8).to_quantized(32, 8), nn.Linear(128, 4).to_quantized(32, 8)
np.testing.assert_allclose(
    np.asarray(dist.all_gather(shard_linear(wide, "all-to-sharded")(x).T).T), np.asarray(wide(x)), 1e-4, 1e-5)
mine = x[:, rank * 128 // size : (rank + 1) * 128 // size]
np.testing.assert_allclose(np.asarray(shard_linear(back, "sharded-to-all")(mine)), np.asarray(back(x)), 1e-4, 1e-4)
"""

TRAINING = """
# Each process has its own examples; all have the parameters of one process that has them all.
rng = np.random.default_rng(0)
inputs, targets = rng.standard_normal((8, 4)).astype(np.float32), rng.standard_normal((8, 2)).astype(np.float32)
own = slice(rank * 8 // size, (rank + 1) * 8 // size)

def trained(x, y, average, shard=False):
    smelt.random.seed(1)
    inner = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    model = nn.fully_shard(inner) if shard else inner
    optimizer = optimizers.Adam(0.1)
    optimizer.init(model.trainable_parameters())
    value_and_grad = nn.value_and_grad(model, lambda x, y: ((model(x) - y) ** 2).mean())
    state = [model.state, optimizer.state]

    def step(x, y):
        value, gradients = value_and_grad(x, y)
        optimizer.update(model, average(gradients))
        return value

    step = smelt.compile(step, inputs=state, outputs=state)
    for _ in range(5):
        smelt.eval(step(smelt.array(x), smelt.array(y)))
    return inner

alone = trained(inputs, targets, lambda gradients: gradients)
for bytes in (1 << 25, 40):
    together = trained(inputs[own], targets[own], lambda g: nn.average_gradients(g, all_reduce_size=bytes))
    for a, b in zip(alone.layers[::2], together.layers[::2]):
        np.testing.assert_allclose(np.asarray(a.weight), np.asarray(b.weight), 1e-4, 1e-5)

def of_whole_ones(gradients):
    return nn.utils.clip_grad_norm_sharded(gradients, 1e9)[0]

if 2 % size == 0:
    sharded = trained(inputs[own], targets[own], of_whole_ones, shard=True)
    assert sharded.layers[0].weight.shape == (8 // size, 4)
    whole = dist.all_gather(sharded.layers[0].weight)
    np.testing.assert_allclose(np.asarray(alone.layers[0].weight), np.asarray(whole), 1e-4, 1e-5)
"""


PROGRAMS = {
    "collectives": COLLECTIVES, "derivatives": DERIVATIVES, "messages": MESSAGES,
    "derivatives of messages": MESSAGES_DERIVED, "messages pushed": MESSAGES_PUSHED, "layers": LAYERS,
    "training": TRAINING,
}  # fmt: skip
#: One after the other, each with names of its own: to start processes takes longer than most of them do.
EVERY = f"""
for name, program in {PROGRAMS!r}.items():
    exec(compile(program, name, "exec"), dict(globals()))
"""


@pytest.mark.parametrize("processes", [2, 4])
def test_programs(processes: int, tmp_path: Path) -> None:
    all_done(processes, EVERY, tmp_path)


def test_a_message_outlives_who_sent_it(tmp_path: Path) -> None:
    """Large ones are sent when somebody receives them: the sender's memory must be there, though it has ended."""
    program = """
import time
wanted = np.arange(1 << 22, dtype=np.int32)
if rank == 0:
    smelt.eval(dist.send(smelt.array(wanted), 1))
else:
    time.sleep(2)
    np.testing.assert_array_equal(np.asarray(dist.recv(wanted.shape, smelt.int32, 0)), wanted)
"""
    all_done(2, program, tmp_path)


ENDS = {
    "an error": "if rank == 1: raise ValueError('as it happens')",
    "sys.exit": "import sys\nif rank == 1: sys.exit(3)",
    "killed": "import os, signal\nif rank == 1: os.kill(os.getpid(), signal.SIGKILL)",
    "an error of smelt": "if rank == 1: smelt.ones(2) @ smelt.ones(3)",
}


@pytest.mark.parametrize("name", ENDS)
def test_a_process_that_ends_ends_the_others(name: str, tmp_path: Path) -> None:
    start = time.monotonic()
    done = launched(2, ENDS[name] + "\nprint(dist.all_sum(smelt.ones(2)))", tmp_path, timeout=120)
    assert done.returncode != 0, done.stdout
    assert "is done" not in done.stdout
    assert time.monotonic() - start < 120
    if name == "an error":
        assert "as it happens" in done.stderr


def test_shapes_that_do_not_fit(tmp_path: Path) -> None:
    program = """
for call in (lambda: dist.sum_scatter(smelt.ones(size + 1)), lambda: dist.send(smelt.ones(1), rank),
             lambda: nn.AllToShardedLinear(3, 2 * size + 1), lambda: dist.recv((1,), smelt.float32, size)):
    try:
        call()
    except smelt.SmeltError as error:
        print(error)
    else:
        raise AssertionError
"""
    done = launched(2, program, tmp_path)
    assert done.returncode == 0, done.stderr
    for part in ("needs equal parts for 2 processes", "another one of 2 processes", "cannot share equally"):
        assert part in done.stdout


def test_a_module_and_through_it_a_program_written_for_mlx(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(
        "import sys\nimport mlx.core as mx\nworld = mx.distributed.init(strict=True)\n"
        "total = mx.distributed.all_sum(mx.array(1 + world.rank())).item()\n"
        "print('sum', total, sys.argv[1:], flush=True)\n"
    )
    command = [sys.executable, "-m", "smelt", "launch", "-n", "2", "-m", "smelt.compat", str(path), "-n", "3"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("sum 3 ['-n', '3']") == 2, done.stdout
