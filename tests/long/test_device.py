"""A device for a long time and at its limits: ``python -m pytest --device cuda tests/long/test_device.py``.

Steps that hold no memory, memory that runs out, a kernel of seconds and Ctrl-C, two processes. Without ``--device``
the same on the CPU. SMELT_LONG_SCALE=1 is a minute on an H200.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import smelt as sm

from ..devices import chosen_device
from .conftest import Campaign

ROOT = Path(__file__).resolve().parents[2]


def resident() -> int:
    """Bytes of this process in the memory of the host, as far as the system tells."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def of_device() -> int:
    """Bytes of the device that anybody uses; 0 for those whose memory is the host's."""
    details = sm.device_info(sm.default_device())
    return int(details["memory_size"]) - int(details["free_memory"]) if "free_memory" in details else 0


def trainer(seed: int = 0) -> Callable[[], sm.array]:
    """A step of training on a batch that is drawn on the device, and an evaluation besides the program."""
    sm.random.seed(seed)
    model = sm.nn.Sequential(sm.nn.Linear(64, 256), sm.nn.GELU(), sm.nn.LayerNorm(256), sm.nn.Linear(256, 8))
    optimizer = sm.optimizers.Adam(1e-3)
    optimizer.init(model.trainable_parameters())
    run = sm.nn.value_and_grad(model, lambda x, y: sm.nn.losses.cross_entropy(model(x), y, reduction="mean"))
    state = [model.state, optimizer.state, sm.random.state]

    def step() -> sm.array:
        x = sm.random.normal((128, 64))
        loss, gradients = run(x, x[:, :8].argmax(axis=1))
        optimizer.update(model, gradients)
        return loss

    compiled = sm.compile(step, inputs=state, outputs=state)

    def one() -> sm.array:
        loss = compiled()
        sm.eval(loss, state)
        return loss

    return one


def test_ten_thousand_steps_hold_no_memory(campaign: Campaign) -> None:
    step, count = trainer(), campaign.amount(10_000)
    first = last = step().item()
    warm = max(count // 5, 200)
    marks: dict[str, tuple[int, ...]] = {}
    for i in range(warm + count):
        loss = step()
        if i % 100 == 0:
            last = loss.item()
        if i in (warm, warm + count - 1):
            sm.synchronize()
            gc.collect()
            marks["start" if i == warm else "end"] = (
                sm.get_active_memory(), sm.get_cache_memory(), of_device(), resident(), len(gc.get_objects()),
            )  # fmt: skip
    names = ("active", "cache", "of the device", "of the host", "objects")
    grown = {name: after - before for name, before, after in zip(names, marks["start"], marks["end"])}
    assert last < 0.7 * first, "it learns"
    assert grown["active"] <= 0 and grown["cache"] <= 1 << 20 and grown["of the device"] <= 1 << 22, grown
    assert grown["of the host"] <= (8 << 20) + 100 * count and grown["objects"] <= 200, grown
    campaign.ran("train steps that hold no memory", count)


def filled() -> tuple[list[sm.array], str]:
    """Arrays until there is no memory for one more, and what the error said."""
    size = max(of_total() // 24, 1 << 23)
    held: list[sm.array] = []
    with pytest.raises(MemoryError) as caught:
        while True:
            one = sm.full((size // 4,), len(held), dtype=sm.float32) + 0
            sm.eval(one)
            held.append(one)
    return held, str(caught.value)


def of_total() -> int:
    return int(sm.device_info(sm.default_device()).get("memory_size", 0)) if of_device() else 0


def test_out_of_memory_and_on(campaign: Campaign) -> None:
    limit = 0 if of_device() else 1 << 28  # the host's memory is not filled
    previous = sm.set_memory_limit(limit)
    times = campaign.amount(3)
    try:
        for _ in range(times):
            small = sm.arange(1000) * 2
            sm.eval(small)
            held, message = filled()
            assert len(held) >= 8 and "," in message, message
            assert [int(one[-1].item()) for one in held[:3]] == [0, 1, 2], "what there is is whole"
            half = held[: len(held) // 2]
            del held
            again = sm.full(half[0].shape, 7.0) * 2
            assert again[5].item() == 14 and half[-1][0].item() == len(half) - 1
            assert small.sum().item() == 999_000
            del half, again
            sm.clear_cache()
    finally:
        sm.set_memory_limit(previous)
    assert trainer()().item() > 0
    campaign.ran("times that memory ran out", times)


#: A loop on the device over so many elements that it takes seconds (of more steps it would be many kernels); then it
#: tells its time, and what came after.
LONG_LOOP = """
import json, sys, time
import smelt as sm

run = sm.compile(lambda x: sm.scan(lambda c, _: (sm.sin(c) * 0.99 + 0.5, None), x, length=100_000)[0])

def timed(size):
    x, times = sm.ones((size,)), []
    for _ in range(3):
        start = time.perf_counter()
        sm.eval(run(x))
        sm.synchronize()
        times.append(time.perf_counter() - start)
    return min(times)

size = 1024
while (seconds := timed(size)) < 0.5:  # a GPU that was idle takes its time
    size *= 4
x = sm.ones((int(size * {seconds} / seconds),))
sm.eval(x)
print("started", flush=True)
start = time.perf_counter()
try:
    y = run(x)
    y.tolist()
    print(json.dumps(dict(interrupted=False)), flush=True)
except KeyboardInterrupt:
    caught = time.perf_counter() - start
    after = (sm.arange(10) + 1).sum().item()
    print(json.dumps(dict(interrupted=True, caught=caught, after=after)), flush=True)
"""


def environment() -> dict[str, str]:
    return {**os.environ, "SMELT_DEVICE": chosen_device().name}


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to another process")
def test_a_kernel_of_seconds_and_ctrl_c(campaign: Campaign) -> None:
    seconds = 10.0
    child = subprocess.Popen(
        [sys.executable, "-c", LONG_LOOP.replace("{seconds}", str(seconds))],
        stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment(),
    )  # fmt: skip
    assert child.stdout is not None
    assert child.stdout.readline() == "started\n"
    time.sleep(1.0)
    child.send_signal(signal.SIGINT)
    answer = json.loads(child.communicate(timeout=120)[0])
    assert answer["interrupted"] and answer["after"] == 55, answer
    if of_device():  # a loop on the host is not left before its end
        assert answer["caught"] < seconds * 0.75, answer
    campaign.ran("kernels of seconds that were interrupted", 1)


TRAINING = """
from tests.long.test_device import trainer
step = trainer(seed={seed})
print([step().item() for _ in range({steps})], flush=True)
"""


def losses(seed: int, steps: int) -> subprocess.Popen[str]:
    code = TRAINING.replace("{seed}", str(seed)).replace("{steps}", str(steps))
    return subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment()
    )


def test_two_processes_on_one_device(campaign: Campaign) -> None:
    """Each trains as if it were alone."""
    steps = campaign.amount(500)
    children = [losses(seed, steps) for seed in (1, 2, 1)]
    found = [np.array(json.loads(child.communicate(timeout=300)[0])) for child in children]
    assert all(child.returncode == 0 for child in children)
    np.testing.assert_array_equal(found[0], found[2])
    assert abs(found[0] - found[1]).max() > 0
    campaign.ran("steps of three processes at once", 3 * steps)
