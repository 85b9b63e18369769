"""The collector of cycles is paused for the time of a compile, and for no longer."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import smelt
from smelt.ir import collector
from smelt.passes import driver


def test_pauses_nest_and_end_with_errors() -> None:
    assert gc.isenabled()
    with pytest.raises(KeyError), collector.paused():
        with collector.paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
        raise KeyError
    assert gc.isenabled()


def test_a_collector_that_is_off_stays_off() -> None:
    gc.disable()
    try:
        with collector.paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_what_an_import_makes_is_old() -> None:
    """And what was there before is still collected once nobody refers to it."""
    code = """
import gc, weakref
class Cycle: pass
mine = Cycle()
mine.self, seen = mine, weakref.ref(mine)
import smelt
print(gc.isenabled(), gc.get_freeze_count(), len(gc.get_objects(2)) > 10 * len(gc.get_objects(0)))
del mine
gc.collect()
print(seen())
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["True", "0", "True", "None"]


def test_a_compile_pauses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    states = []
    one = driver._Run.one
    monkeypatch.setattr(driver._Run, "one", lambda *args: (states.append(gc.isenabled()), one(*args))[1])
    smelt.compile(lambda x: smelt.sinh(x) * 3.25)(smelt.array(np.ones(123, np.float32)))
    assert states and not any(states)
    assert gc.isenabled()


def _full_collections(code: str) -> int:
    head = """
import gc
import smelt
from smelt.ir import collector

def full():
    return gc.get_stats()[2]["collections"]

class Cycle:
    def __init__(self):
        self.self = self

gc.collect()
"""
    done = subprocess.run([sys.executable, "-c", head + code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


MADE = """
kept, before = [], full()
for _ in range({times}):
    with {by}():
        kept.append([[i] for i in range({count})])
print(full() - before)
"""


def test_what_caches_keep_is_not_looked_through_as_it_comes() -> None:
    """As many objects as there were before, in pieces: Python would look through all of them again and again."""
    assert _full_collections("import contextlib" + MADE.format(by="contextlib.nullcontext", times=40, count=5_000)) > 0
    assert _full_collections(MADE.format(by="collector.kept", times=40, count=5_000)) == 0
    assert _full_collections(MADE.format(by="collector.kept", times=400, count=5_000)) > 0  # but not for ever


@pytest.mark.parametrize("count", [100, 5_000])
def test_garbage_of_the_user_is_found_beside_it(count: int) -> None:
    """Cycles that were young while caches grew: after as much as `MOST` says Python looks as often as ever."""
    code = f"""
import weakref
seen, kept, at = weakref.ref(Cycle()), [], 0
while seen() is not None and at < 5_000_000:
    with collector.kept():
        kept.append([[i] for i in range({count})])
    at += {count}
print(at)
"""
    assert _full_collections(code) < 8 * collector.MOST


def test_objects_that_are_kept_from_it_are_counted_seldom() -> None:
    """Python walks through all of them to tell how many they are."""
    code = """
asked, frozen = [], gc.get_freeze_count
gc.get_freeze_count = lambda: asked.append(1) or frozen()
gc.freeze()
kept, before = [], full()
for _ in range(20):
    with collector.kept():
        kept.append([[i] for i in range(5_000)])
assert frozen() > 0 and full() == before
print(len(asked))
"""
    assert _full_collections(code) == 1


def test_errors_while_something_is_made() -> None:
    with pytest.raises(KeyError), collector.kept():
        assert not gc.isenabled()
        raise KeyError
    assert gc.isenabled()


def test_first_runs_of_models_do_not_look_through_everything() -> None:
    code = """
from smelt import nn, optimizers
before = full()
for depth in range(3, 9):
    model = nn.Sequential(*[nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.GELU()) for _ in range(3 * depth)])
    optimizer = optimizers.Adam(1e-3)
    for _ in range(2):
        value, gradient = nn.value_and_grad(model, lambda x: model(x).square().sum())(smelt.ones((2, 8)))
        optimizer.update(model, gradient)
        smelt.eval(model.parameters(), optimizer.state, value)
print(full() - before)
"""
    assert _full_collections(code) <= 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_of_another_thread_has_it() -> None:
    begun, over = threading.Event(), threading.Event()

    def compiles() -> None:
        with collector.paused():
            begun.set()
            over.wait()

    thread = threading.Thread(target=compiles)
    thread.start()
    begun.wait()
    child = os.fork()
    if not child:
        os._exit(0 if gc.isenabled() else 1)
    over.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.filterwarnings("ignore:smelt.compile")
def test_versions_of_compiled_functions_are_kept() -> None:
    states, count = [], 300

    def f(x: smelt.array, fails: bool) -> smelt.array:
        states.append(gc.isenabled())
        if fails:
            raise KeyError
        for i in range(count):
            x = x * i + 1
        return x

    compiled = smelt.compile(f)
    gc.collect()
    for n in range(2, 12):
        compiled(smelt.ones((n, 3)), False)
        with pytest.raises(KeyError):
            compiled(smelt.ones((n, 3)), True)
        assert gc.isenabled()
    assert states and not any(states)
    assert gc.get_count()[0] < count  # the last ones count as old
