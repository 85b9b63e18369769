"""Threads that evaluate, compile, allocate and drop, all at once, and check what they get.

    python threads_program.py THREADS SECONDS SEED

It prints how many rounds there were, and ends with an error where a value was wrong, anything was raised, or memory
stayed in use.
"""

import faulthandler
import gc
import io
import random
import sys
import threading
import time
import traceback

import numpy as np

import smelt
from smelt.ir.settings import settings
from smelt.runtime import pool

COUNT, SECONDS, SEED = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
faulthandler.dump_traceback_later(SECONDS + 300, exit=True)
settings.small_work, settings.cache_size, settings.pool_bytes = 30_000, 30, 32 << 20
settings.cache_bytes = 4 << 20
sys.setswitchinterval(0.0005)

shared = smelt.compile(lambda x: smelt.softmax(x * 2, axis=-1))
board: list = [smelt.ones((8,)) + i for i in range(8)]  # lazy arrays that threads evaluate for each other
stateful = {"total": smelt.array(0)}


@smelt.compile(inputs=stateful, outputs=stateful)
def count(n):
    stateful["total"] = stateful["total"] + n


class Ring:
    """Garbage that counting references does not free."""

    def __init__(self, x):
        self.me, self.x = self, x


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def close(found, want, rtol=1e-4, atol=1e-4):
    np.testing.assert_allclose(np.array(found), want, rtol=rtol, atol=atol)


def lazily(rng, x):
    a = smelt.array(x)
    close(smelt.where(a > 0, a * a, -a).sum(axis=0), np.where(x > 0, x * x, -x).sum(0), atol=1e-2)
    close((a @ a.T)[0], x @ x[0], atol=1e-2)


def compiled(rng, x):
    n = int(rng.integers(1, 50))
    f = smelt.compile(lambda a: (smelt.exp(-a * a) * n).sum(axis=1) + smelt.sort(a, axis=1)[:, 0])
    close(f(smelt.array(x)), (np.exp(-x * x) * n).sum(1) + x.min(1), atol=1e-3)


def together(rng, x):
    close(shared(smelt.array(x)), softmax(x * 2), atol=1e-5)
    before = np.array(shared(smelt.array(x[:1])))
    close(shared(smelt.array(x[:1])), before, atol=1e-6)  # another tier may have taken over


def derivatives(rng, x):
    g = smelt.grad(lambda a: smelt.vmap(lambda row: (row**3).sum())(a).sum())
    close(g(smelt.array(x)), 3 * x * x, atol=1e-3)


def memory(rng, x):
    held = []
    for i in range(10):
        big = smelt.full((30_000 + int(rng.integers(9) * 5_000),), float(i))
        view = np.asarray(big * 1)
        held.append((view[3:], i))
        Ring(big + 1), Ring(np.asarray(big))
        del big, view
    assert all((view == i).all() for view, i in held)


def of_others(rng, x):
    i = int(rng.integers(8))
    y = board[i]
    board[i] = smelt.minimum(y * 1 + 0, 1e6)
    first = y[0].item()
    assert (np.array(y) == first).all() and first >= 1


def chosen(rng, x):
    device = ("reference", "cpu")[int(rng.integers(2))]
    with smelt.stream(device), smelt.printoptions(precision=3):
        assert smelt.default_device().name == device
        assert repr(smelt.array([1 / 3])) == "array([0.333], dtype=float32)"
        close(shared(smelt.array(x[:2])), softmax(x[:2] * 2), atol=1e-5)
    assert smelt.default_device().name == "cpu"


def rest(rng, x):
    file = io.BytesIO()
    smelt.save_safetensors(file, {"x": smelt.array(x)})
    file.seek(0)
    assert np.array_equal(np.array(smelt.load(file, format="safetensors")["x"]), x)
    assert smelt.random.uniform(shape=(100,)).max().item() < 1
    count(smelt.array(1))
    try:
        smelt.array(x) @ smelt.ones((x.shape[1] + 1, 2))
        raise AssertionError("no error")
    except smelt.SmeltError:
        pass
    if rng.integers(20) == 0:
        smelt.clear_cache()
        gc.collect()


WORK = [lazily, compiled, together, derivatives, memory, of_others, chosen, rest]
rounds, errors, calls = [0] * COUNT, [], [0] * COUNT
end = time.monotonic() + SECONDS


def work(number):
    rng = np.random.default_rng((SEED, number))
    try:
        while time.monotonic() < end and not errors:
            x = rng.standard_normal((int(rng.choice([2, 17, 300])), int(rng.choice([3, 64, 129])))).astype(np.float32)
            task = WORK[int(rng.integers(len(WORK)))]
            calls[number] += task is rest
            task(rng, x)
            rounds[number] += 1
    except BaseException:
        errors.append(traceback.format_exc())


random.seed(SEED)
gc.set_threshold(random.choice([1, 50, 700]))
threads = [threading.Thread(target=work, args=(i,)) for i in range(COUNT)]
for t in threads:
    t.start()
for t in threads:
    t.join()
if errors:
    sys.exit(errors[0])
assert stateful["total"].item() == sum(calls), (stateful["total"].item(), sum(calls))
settings.cache_size = 0
board.clear()
gc.collect()
assert pool.active_bytes < 8 << 20, pool.active_bytes
print(sum(rounds))
