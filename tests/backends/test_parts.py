"""Large modules in parts: they compute the same bits as whole ones, by however many threads they are made."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from typing import Any
from unittest import mock

import pytest

from smelt.backends.cpu import jit, objects, parts
from smelt.backends.cpu import program as cpu
from smelt.backends.cpu.description import ProgramDescription
from smelt.backends.cpu.running import Program
from smelt.ir import locks
from smelt.ir.aval import Aval
from smelt.ir.settings import override
from smelt.passes import Pipeline

from .. import interrupts
from .modules import f32, module_of, random_array, run

pytestmark = pytest.mark.skipif(
    not objects.supported() or parts._library() is None, reason="nothing is compiled in parts on this machine"
)

AVALS = [Aval((40, 40), f32), Aval((40, 40), f32)]
ARRAYS = [random_array(a, i) for i, a in enumerate(AVALS)]


def products(b: Any, x: Any, y: Any) -> list[Any]:
    found = []
    for n in range(1, 4):
        x = b.dot_general(x, y, lhs_contracting=(1,), rhs_contracting=(0,), lhs_batch=(), rhs_batch=())
        found.append(b.reduce_sum(b.exp(b.sin(x)), axes=(n % 2,)))
        x = b.tanh(x)
    return [x, *found]


def compiled(part: int = 1, function: Any = products) -> Program:
    module = module_of(AVALS, function)
    Pipeline.parse(cpu.PIPELINE).run(module)
    with mock.patch.object(parts, "PART", part):
        return cpu.compile_module(module)


def outputs(program: Program) -> list[bytes]:
    return [x.tobytes() for x in run(program, ARRAYS)]


def test_parts_and_the_whole_compute_the_same() -> None:
    whole, split = compiled(1 << 30), compiled()
    assert not (whole.object or b"").startswith(objects._JOINED) and (split.object or b"").startswith(objects._JOINED)
    assert outputs(split) == outputs(whole)


@pytest.mark.parametrize("parallel", [False, True])
def test_parts_do_not_depend_on_the_threads(parallel: bool) -> None:
    made = []
    for threads in (1, 4):
        with override(num_threads=threads), mock.patch.object(cpu, "PARALLEL_WORK", 0 if parallel else 1 << 30):
            made.append(compiled())
    assert made[0].object == made[1].object
    assert outputs(made[0]) == outputs(made[1]) == outputs(compiled(1 << 30))


def test_several_parts_are_compiled_at_once() -> None:
    meet, plain = threading.Barrier(2, timeout=60), parts._object
    met = []

    def together(*args: Any) -> bytes | None:
        if len(met) < 2:
            met.append(meet.wait())
        return plain(*args)

    with override(num_threads=2), mock.patch.object(parts, "_object", together), mock.patch.object(parts, "MOST", 2):
        compiled()
    assert sorted(met) == [0, 1]


def test_another_process_loads_parts() -> None:
    program = compiled()
    text, data = json.dumps(program.description.to_json()), program.object or b""
    again = Program(ProgramDescription.of_json(json.loads(text)), lambda symbols: objects.load(data, symbols.find))
    assert outputs(again) == outputs(program)


def test_texts_show_the_whole_module() -> None:
    whole, split = compiled(1 << 30).as_text("llvm"), compiled().as_text("llvm")
    assert sorted(whole.splitlines()) == sorted(split.splitlines())


@pytest.mark.parametrize("why", ["dump", "load", "library"])
def test_where_parts_cannot_be_had_the_whole_runs(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    load = objects.load

    def refuse(data: bytes, find: Any) -> Any:
        if data.startswith(objects._JOINED):
            raise objects.ObjectError("no executable memory")
        return load(data, find)

    if why == "dump":
        monkeypatch.setattr(parts, "_object", lambda *_: None)
    elif why == "load":
        monkeypatch.setattr(objects, "load", refuse)
    else:
        monkeypatch.setattr(parts, "_library", lambda: None)
    program = compiled()
    assert not (program.object or b"").startswith(objects._JOINED)
    assert outputs(program) == outputs(compiled(1 << 30))


def test_damaged_parts_are_refused() -> None:
    program = compiled()
    data = program.object or b""
    find = program.team.symbols().get
    head = len(objects._JOINED)
    for changed in (
        data[:head], data[: head + 8], data[:-1], data + b"\0",
        data[:head] + (0).to_bytes(8, "little") + data[head + 8 :],
        data[:head] + (1 << 60).to_bytes(8, "little") + data[head + 8 :],
        data[: head + 8] + (1 << 63).to_bytes(8, "little") + data[head + 16 :],
    ):  # fmt: skip
        with pytest.raises(objects.ObjectError):
            objects.load(changed, lambda name: find(name, 0))


def test_the_context_is_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(parts, "_object", fail)
    with pytest.raises(MemoryError), override(num_threads=1):
        compiled()
    monkeypatch.undo()
    assert jit.context() is parts.context() and outputs(compiled()) == outputs(compiled(1 << 30))


class _Context:
    """Knows whether several threads may use it."""

    has_threads = False

    def enable_multithreading(self, enabled: bool) -> None:
        self.has_threads = enabled


def test_interrupts_leave_the_context_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    module = module_of(AVALS, products)
    context = _Context()
    monkeypatch.setattr(parts, "context", lambda: context)
    monkeypatch.setattr(parts, "_object", lambda *_: b"")
    found = mock.Mock(names=[], parts=[parts.Part(module, "main")])
    places = 0
    for place in interrupts.everywhere(lambda: parts._objects(found, {}), parts._objects, parts._with_threads):
        assert not context.has_threads, place
        places += 1
    assert places > 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_forks_wait_for_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Longer than for others: the child would never get LLVM's locks."""
    under_way, plain = threading.Event(), parts._object
    busy: list[int] = []

    def slow(*args: Any) -> bytes | None:
        busy.append(0)
        under_way.set()
        time.sleep(0.5)
        found = plain(*args)
        busy.pop()
        return found

    monkeypatch.setattr(locks, "_LONGEST_WAIT", 0.05)
    monkeypatch.setattr(parts, "_object", slow)
    made: list[Program] = []
    other = threading.Thread(target=lambda: made.append(compiled()))
    other.start()
    assert under_way.wait(60)
    child = os.fork()
    if not child:
        signal.alarm(60)
        monkeypatch.setattr(parts, "_object", plain)
        os._exit(1 if busy else 0 if outputs(compiled()) else 2)
    assert os.waitpid(child, 0)[1] == 0
    other.join()
    assert outputs(made[0]) == outputs(compiled(1 << 30))
