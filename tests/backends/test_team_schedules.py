"""The pool of threads where each of its steps may take long: no wake-up is lost."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from smelt.backends.cpu import threads

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [
    pytest.mark.host("threads of the CPU"),
    pytest.mark.skipif(threads._native() is None, reason="smelt's pool of threads was not built"),
]

#: Before and after what one thread tells others it may lose its processor, or fall asleep.
DELAYS = """
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>
static _Thread_local unsigned drawn;
static void delay(void)
{
    if (!drawn)
        drawn = (unsigned)(unsigned long long)&drawn | 1;
    unsigned found = rand_r(&drawn) % 24;
    if (!found)
        usleep(200);
    else if (found < 4)
        sched_yield();
}
#undef atomic_store
#define atomic_store(at, value) (delay(), atomic_store_explicit(at, value, memory_order_seq_cst), delay())
#undef atomic_load
#define atomic_load(at) (delay(), atomic_load_explicit(at, memory_order_seq_cst))
"""

#: Runs of all sizes by several callers, whose members do nothing but wait for each other.
RUNS = """
import ctypes, importlib.machinery, importlib.util, random, sys, threading
loader = importlib.machinery.ExtensionFileLoader("_team", sys.argv[1])
module = importlib.util.module_from_spec(importlib.util.spec_from_loader("_team", loader))
run, barrier, *_ = module.functions()
run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint)(run)
def caller(seed):
    draw = random.Random(seed)
    for _ in range(int(sys.argv[3])):
        run(barrier, None, draw.randint(1, 12))
callers = [threading.Thread(target=caller, args=(i,), daemon=True) for i in range(int(sys.argv[2]))]
for thread in callers:
    thread.start()
for thread in callers:
    thread.join(60)
    assert not thread.is_alive(), "members wait for each other for ever"
"""


@pytest.fixture(scope="module")
def delayed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pool with delays."""
    folder = tmp_path_factory.mktemp("team")
    (folder / "delays.h").write_text(DELAYS)
    built = folder / "_team.so"
    compiler = (sysconfig.get_config_var("CC") or "cc").split()
    flags = ["-shared", "-fPIC", "-O1", "-pthread", "-D_GNU_SOURCE=", "-include", str(folder / "delays.h")]
    source = ROOT / "backends" / "cpu" / "team.c"
    include = f"-I{sysconfig.get_paths()['include']}"
    try:
        subprocess.run([*compiler, *flags, include, str(source), "-o", str(built)], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no C compiler for extensions of Python: {error}")
    return built


@pytest.mark.parametrize(("callers", "runs"), [(1, 300), (3, 60)])
def test_all_members_of_a_run_wake_up(delayed: Path, callers: int, runs: int) -> None:
    command = [sys.executable, "-c", RUNS, str(delayed), str(callers), str(runs)]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
