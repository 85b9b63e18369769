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
