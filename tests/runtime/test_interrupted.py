"""Ctrl-C at any moment leaves a process that computes right. More moments: tests/long/test_interrupts.py."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import smelt
from smelt.ir import locks
from smelt.ir.settings import override

from ..architecture.sources import ROOMS, ROOT, python_files

PROGRAM = Path(__file__).with_name("interrupted_program.py")


def interrupted(phase: str, seconds: float) -> str:
    """What the program printed. It computed right after its interrupt, or ended by KeyboardInterrupt."""
    command = [sys.executable, str(PROGRAM), phase, f"{seconds:.4f}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    right = done.stdout.endswith("right\n") if done.returncode == 0 else done.stderr.endswith("\nKeyboardInterrupt\n")
    assert right, f"{phase} interrupted after {seconds:.4f} s: exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGPROF")
@pytest.mark.parametrize(
    "phase, seconds",
    [("importing", 0.02), ("compiling", 0.15), ("compiling", 0.4), ("looping", 0.5), ("evaluating", 0.6)],
)
def test_a_program_is_right_after_an_interrupt(phase: str, seconds: float) -> None:
    interrupted(phase, seconds)


def run(code: str) -> str:
    environment = {**os.environ, "SMELT_TIER": "program"}  # the first compile of a process is the test
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


#: What a program needs first of each family of modules that are loaded on use.
FIRST = {
    "smelt.functions.nans": "smelt.nansum(x)",
    "smelt.passes.transform.listed": "smelt.grad(lambda v: (v * v * v).sum())(x)",
    "smelt.passes.transform.tape_transforms": "smelt.vmap(lambda v: smelt.softmax(v))(x)",
    "smelt.passes.dependence": "smelt.linearize(lambda v: smelt.sin(v) * v, x)[1](x)",
    "smelt.nn": "smelt.nn.Linear(4, 1)(x).shape[0]",
}


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGUSR1")
@pytest.mark.parametrize("module", FIRST)
def test_a_handler_may_need_the_module_that_is_being_imported(module: str) -> None:
    code = f"""
import importlib.machinery, signal, sys
import numpy as np
import smelt

def compute():
    x = smelt.array(np.full((3, 4), 2.0, np.float32))
    return np.asarray({FIRST[module]}).tolist()

found = []
signal.signal(signal.SIGUSR1, lambda number, frame: found.append(compute()))

class Loader(importlib.machinery.SourceFileLoader):
    def exec_module(self, module):
        importlib.machinery.SourceFileLoader.exec_module = execute  # once
        signal.raise_signal(signal.SIGUSR1)
        execute(self, module)

execute = importlib.machinery.SourceFileLoader.exec_module
importlib.machinery.SourceFileLoader.exec_module = (
    lambda self, module: (Loader.exec_module if module.__name__ == {module!r} else execute)(self, module))
assert {module!r} not in sys.modules
want = compute()
print(found == [want])
"""
    assert run(code) == "True\n"


def test_interrupts_while_dialects_register_themselves() -> None:
    """One after each registration of a dialect with the bindings, which can be done only once."""
    code = """
import _thread, importlib
import smelt
from smelt.ir import mlir
bindings = importlib.import_module(f"{mlir.host()}._mlir_libs._mlir")
register, interrupts = bindings.register_dialect, 0

def interrupting(cls):
    found = register(cls)
    _thread.interrupt_main()
    return found

bindings.register_dialect = interrupting
while True:
    try:
        f = smelt.compile(lambda x: smelt.softmax(x @ x) + smelt.fori_loop(0, 9, lambda i, c: c + i, x[0]))
        found = f(smelt.ones((300, 300)))
        break
    except KeyboardInterrupt:
        interrupts += 1
print(interrupts > 0, found.shape)
"""
    assert run(code) == "True (300, 300)\n"


def test_the_first_compile_may_happen_on_a_deep_stack() -> None:
    code = """
import sys
import smelt
def deep(n):
    if n:
        return deep(n - 1)
    return smelt.compile(lambda x: smelt.exp(x) + 1)(smelt.zeros((300, 300)))
failed = 0
for spare in range(20, 500, 30):
    try:
        deep(sys.getrecursionlimit() - spare)
    except (RecursionError, smelt.SmeltError):  # a pass that fails is named
        failed += 1
print(failed > 0, deep(0).sum().item())
"""
    assert run(code) == "True 180000.0\n"


def test_an_op_may_be_defined_again_by_its_own_module_only() -> None:
    """After an interrupt the module is imported anew."""
    code = """
import importlib
import smelt
from smelt.ir import op
from smelt.ir.ops import conversion
count = len(op.registry)
importlib.reload(conversion)
assert len(op.registry) == count
try:
    class Convert(op.Op, name="convert"):
        pass
except smelt.SmeltError as error:
    print(error)
"""
    assert run(code).startswith("op 'convert' of __main__ is already defined, by smelt.ir.ops.conversion")


def test_what_is_done_whole_ends_before_the_interrupt() -> None:
    code = """
import _thread, threading, time
from smelt.ir import locks

made = []
def make(n):
    _thread.interrupt_main()
    time.sleep(0.05)
    made.append(locks.whole(lambda: n))
    if n == 2:
        raise ValueError("two")
    return n
for n in range(4):
    try:
        print(locks.whole(lambda: make(n)))
    except (KeyboardInterrupt, ValueError) as error:
        print(type(error).__name__)
print(made, locks.whole(lambda: threading.current_thread() is threading.main_thread()))
"""
    assert run(code) == "KeyboardInterrupt\n" * 4 + "[0, 1, 2, 3] False\n"


def test_no_interrupt_gets_into_what_python_itself_sets_up_once() -> None:
    """Folders of the installation: an interrupt inside leaves `sysconfig` unusable."""
    code = """
import sysconfig, threading
seen = []
for name in ("get_paths", "get_path"):
    def wrapped(*args, function=getattr(sysconfig, name)):
        seen.append(threading.current_thread() is threading.main_thread())
        return function(*args)
    setattr(sysconfig, name, wrapped)
import smelt
from smelt.ir import errors
errors._command_folders()
print(set(seen))
"""
    assert run(code) == "{False}\n"


def test_errors_of_what_is_done_whole_are_raised() -> None:
    def fail() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        locks.whole(fail)
    assert locks.whole(lambda: 3) == 3


def test_modules_load_no_bindings_when_they_are_imported() -> None:
    """An import inside of `whole` would wait for a thread that imports one of them outside of it."""
    code = """
import importlib, pkgutil, sys
import smelt
skip = ("smelt.tools", "smelt.backends.cuda.")
for module in pkgutil.walk_packages(smelt.__path__, "smelt."):
    if not module.name.startswith(skip):
        importlib.import_module(module.name)
from smelt.ir import locks, mlir
print(mlir.host.cache_info().currsize)
"""
    assert run(code) == "0\n"


def test_all_locks_are_renewed_in_a_child() -> None:
    """Those that `smelt.ir.locks.lock` makes are; they are reentrant, too, as handlers of signals need."""
    kinds = {"Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore", "Event", "Barrier", "allocate_lock"}
    found = set()
    for path in python_files(*ROOMS):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in kinds:
                if ast.unparse(node.func).startswith(("threading.", "_thread.", "multiprocessing.")):
                    found.add(str(path.relative_to(ROOT)))
            if isinstance(node, ast.Attribute) and node.attr == "cached_property":
                found.add(f"{path.relative_to(ROOT)}: cached_property has a lock before Python 3.12")
    assert found == {"ir/locks.py"}


@pytest.mark.parametrize("tier", ["ops", "program", "auto"])
def test_evaluations_note_no_locks(tier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where such a one goes an interrupt may be lost."""

    def evaluated() -> None:
        x = smelt.tanh(smelt.ones((64, 64)) * 2)
        smelt.eval(x + 1, x)
        step(x)

    state = {"w": smelt.zeros((64, 64))}
    step = smelt.compile(lambda x: state.update(w=state["w"] + x), inputs=state, outputs=state)
    made: list[int] = []
    with override(tier=tier, small_work=0):
        for _ in range(3):
            evaluated()
        lock = locks.lock

        def noted(*kind: Any) -> Any:
            made.append(1)
            return lock(*kind)

        monkeypatch.setattr(locks, "lock", noted)
        evaluated()
    assert not made
