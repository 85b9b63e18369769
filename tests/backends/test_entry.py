"""Programs called from C give what they give where Python calls them."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from smelt.backends.buffer import Buffer, pool
from smelt.backends.cpu import entry
from smelt.backends.cpu.executable import CpuExecutable
from smelt.backends.device import registered_device
from smelt.ir import dtypes
from smelt.ir.aval import Aval

from .modules import compile_, module_of, over, random_array

needs_c = pytest.mark.skipif(entry._found is None, reason="there is no module in C")
f32 = dtypes.float32


def vector(n: int = 6, dtype: Any = f32) -> Aval:
    return Aval((n,), dtype)


def _many(b: Any, *xs: Any) -> list[Any]:
    return [x * y for x, y in itertools.pairwise(xs)]


def _in_arena(b: Any, x: Any) -> Any:
    sums = over(b, "reduce_sum", b.exp(x), 0)
    return x / over(b, "reduce_sum", sums * x, 1)


PROGRAMS: dict[str, tuple[list[Aval], Callable[..., Any]]] = {
    "one": ([vector(), vector()], lambda b, x, y: b.exp(x) * y),
    "several results": ([vector(), Aval((), f32)], lambda b, x, y: [b.exp(x), y * y, b.reduce_max(x, axes=(0,))]),
    "dtypes": (
        [vector(3, d) for d in (dtypes.bfloat16, dtypes.float16, dtypes.int8, dtypes.complex64, dtypes.uint64)],
        lambda b, *xs: [x + x for x in xs],
    ),
    "nothing in it": ([vector(0), vector(2)], lambda b, x, y: [x * x, y + y]),
    "large": ([vector(40_000)], lambda b, x: b.exp(x)),
    "many arrays": ([vector(3)] * 30, _many),
    "an array of addresses": ([vector(3)] * 40, _many),
    "arguments among the results": ([vector(3)] * 3, lambda b, x, y, z: [x, x * y, z, x]),
    "results twice": ([vector(3)] * 2, lambda b, x, y: [y] + [x * y] * 2),
    "arguments among many results": ([vector(3)] * 40, lambda b, *xs: [xs[7], *_many(b, *xs), xs[0], xs[7]]),
    "arena": ([Aval((8, 8), f32)], _in_arena),
}


def _executable(name: str) -> tuple[CpuExecutable, list[Buffer]]:
    avals, function = PROGRAMS[name]
    found = CpuExecutable(compile_(module_of(avals, function)), registered_device("cpu"))
    return found, [Buffer.of(random_array(a, i), a) for i, a in enumerate(avals)]


def _by_python(executable: CpuExecutable, inputs: Any) -> list[Buffer]:
    other = CpuExecutable(executable.program, registered_device("cpu"))
    other._entry = None
    return other.run(inputs)


@pytest.mark.parametrize("name", PROGRAMS)
def test_both_give_the_same(name: str) -> None:
    executable, inputs = _executable(name)
    is_in_c = entry._found is not None and executable.program._is_one_call
    assert (executable._entry is not None) == is_in_c
    assert (executable.arena_bytes > 0) == (name == "arena")
    wanted = _by_python(executable, inputs)
    for given in (inputs, tuple(inputs)):
        found = executable.run(given)
        assert type(found) is list and len(found) == len(wanted)
        for a, b in zip(found, wanted):
            assert type(a) is type(b) and a.aval == b.aval and a.home is None
            assert a.array.shape == b.array.shape and a.array.dtype == b.array.dtype
            assert a.address == a.array.__array_interface__["data"][0]
            assert a.array.tobytes() == b.array.tobytes()


@needs_c
def test_calls_that_do_not_fit() -> None:
    executable, inputs = _executable("one")
    call: Any = executable._entry
    assert call is not None
    for arguments, error in [
        ((inputs[:1], 0), TypeError), ((inputs * 2, 0), TypeError), ((inputs,), TypeError), ((None, 0), TypeError),
        ((inputs, -1), OverflowError), (([inputs[0], 3], 0), AttributeError), ((inputs, "x"), TypeError),
    ]:  # fmt: skip
        with pytest.raises(error):
            call(*arguments)
    assert len(call(inputs, 0)) == 1
    with pytest.raises(TypeError):
        type(call)(0, 1, False, False, ((1, 2),))
    with pytest.raises(ValueError, match="-1 arguments"):
        type(call)(0, -1, False, False, ())


@needs_c
def test_limits_of_memory_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    executable, inputs = _executable("one")
    monkeypatch.setattr(executable, "_entry", lambda *_: pytest.fail("not looked at"))
    monkeypatch.setattr(pool, "limit", 1 << 60)
    assert len(executable.run(inputs)) == 1


def test_threads_have_tables_of_their_own() -> None:
    executable, inputs = _executable("several results")
    other = [Buffer.of(np.asarray(x.array + 1), x.aval) for x in inputs]
    wanted = [[r.array.tolist() for r in _by_python(executable, x)] for x in (inputs, other)]
    wrong: list[int] = []

    def run(k: int) -> None:
        given = (inputs, other)[k % 2]
        if any([r.array.tolist() for r in executable.run(given)] != wanted[k % 2] for _ in range(300)):
            wrong.append(k)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


@needs_c
@pytest.mark.parametrize("name", ["one", "arguments among many results"])
def test_nothing_is_kept(name: str) -> None:
    executable, inputs = _executable(name)
    x, blank = inputs[0], next(blank[0] for blank in executable._blanks if blank)
    executable.run(inputs)
    before = sys.getrefcount(x), sys.getrefcount(blank), sys.getrefcount(None)
    for _ in range(1000):
        executable.run(inputs)
    after = sys.getrefcount(x), sys.getrefcount(blank), sys.getrefcount(None)
    assert all(abs(a - b) < 100 for a, b in zip(after, before))


def test_python_does_it_where_it_is_asked_to() -> None:
    code = "from smelt.backends.cpu import entry; print(entry._found)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "SMELT_CORE": "python"}
    )
    assert done.stdout == "None\n", done.stderr


@pytest.mark.parametrize("native", [True, False])
def test_fresh_buffers_leave_out_those_of_aliases(monkeypatch: pytest.MonkeyPatch, native: bool) -> None:
    avals = [Aval((3,), dtypes.float32), Aval((0, 2), dtypes.int8), Aval((5,), dtypes.bfloat16), Aval((), dtypes.bool_)]
    if not native:
        monkeypatch.setattr(entry, "_found", None)
    assert entry.fresh(()) == []
    first, *made, last = entry.fresh((None, *Buffer.blanks(avals), None))
    assert first is None and last is None and len(made) == len(avals)
    for buffer, aval in zip(made, avals):
        assert buffer.aval is aval and buffer.array.shape == aval.shape and buffer.array.dtype == aval.dtype.numpy
        assert buffer.address == buffer.array.__array_interface__["data"][0] and buffer.home is None
    before = [sys.getrefcount(aval) for aval in avals]
    del made, buffer
    for _ in range(1000):
        entry.fresh(tuple(Buffer.blanks(avals)))
    assert all(sys.getrefcount(aval) - count < 100 for aval, count in zip(avals, before))
