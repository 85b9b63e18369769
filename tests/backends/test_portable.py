"""Programs of GPUs as bytes: kept on disk, made by other processes, and refused when they are damaged."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.cpu import objects
from smelt.backends.device import Device, registered
from smelt.backends.executable import Executable
from smelt.backends.gpu.portable import GpuPortable
from smelt.ir import text
from smelt.ir.errors import SmeltError
from smelt.ir.settings import override
from smelt.runtime import Buffer, background, compile_module
from smelt.runtime.background import compile_in_background
from smelt.runtime.device import metal_sim
from smelt.runtime.disk import disk

pytestmark = pytest.mark.skipif(not objects.supported(), reason="no objects are loaded on this machine")

PORTABLE = metal_sim.portable
assert isinstance(PORTABLE, GpuPortable)


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).random(shape, np.float32) + 0.5


def factor(x: Any) -> Any:
    """An op that the CPU does."""
    return smelt.linalg.cholesky(x @ x.T + smelt.eye(x.shape[0]) * 4)


def stepped(x: Any) -> Any:
    """A loop of known length and one of unknown length, with a branch."""
    total, rows = smelt.scan(lambda c, y: (c + y, c * y), x.sum(axis=0), x)
    grown = smelt.while_loop(lambda s: s.sum() < 1e3, lambda s: s * 1.5, total)
    return smelt.cond(grown.sum() > 0, lambda s: s * 2, lambda s: s, grown), rows


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "one kernel": lambda x: smelt.exp(x) * 2,
    "no kernel": lambda x: (x, x.reshape(-1)),
    "aliases": lambda x: (x + 1, x, x.reshape(-1)),
    "products and rows": lambda x: smelt.softmax(x @ x.T, axis=1),
    "kernels around the CPU": lambda x: factor(x * 2) + smelt.sin(x),
    "control": stepped,
    "a gradient": smelt.grad(lambda x: (smelt.sin(x) * x).sum()),
}


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Where programs are kept in this test."""
    with override(cache=True, cache_dir=tmp_path):
        yield tmp_path


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_comes_from_disk_is_the_same(name: str, folder: Path) -> None:
    x = smelt.array(numbers(4, 4))
    found = []
    with smelt.stream(metal_sim.name):
        for writes, hits in ((1, 0), (0, 1)):
            before = disk.writes, disk.hits
            results = smelt.compile(lambda x: PROGRAMS[name](x))(x)
            found.append([np.array(a) for _, a in smelt.utils.tree_flatten(results)])
            assert (disk.writes - before[0], disk.hits - before[1]) == (writes, hits)
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


CODE = """
import numpy as np, smelt, sys
from smelt.runtime.disk import disk
with smelt.stream("metal:sim"):
    x = smelt.array(np.arange(16, dtype=np.float32).reshape(4, 4))
    print(np.array(smelt.compile(lambda x: smelt.linalg.inv(smelt.cos(x)) * 3)(x)).tolist())
compilers = "smelt.passes", "smelt.backends.cpu.program", "smelt.backends.gpu.compile", "smelt.backends.metal.emit"
print(disk.hits, disk.writes, *(name in sys.modules for name in compilers), any("_mlir_libs" in m for m in sys.modules))
"""


def test_another_process_loads_no_compiler(tmp_path: Path) -> None:
    environment = {**os.environ, "SMELT_TIER": "program", "SMELT_CACHE": "1", "SMELT_CACHE_DIR": str(tmp_path)}
    lines = [
        subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True, env=environment).stdout
        for _ in range(2)
    ]
    (first, made), (second, found) = (text.splitlines() for text in lines)
    assert first == second
    assert (made, found) == ("0 1 True True True True True", "1 0 False False False False False")


@pytest.fixture
def no_worker() -> Iterator[None]:
    """None is left over, before and after."""
    background._worker.leave()
    yield
    background._worker.leave()


@pytest.mark.usefixtures("no_worker")
def test_another_process_compiles() -> None:
    """The text, which needs no GPU: this process makes machine code of it."""
    x = numbers(4, 4)
    graph = smelt.make_ir(PROGRAMS["kernels around the CPU"])(smelt.array(x))
    pending = compile_in_background(graph, metal_sim)
    assert pending is not None and pending.wait(60)
    program = pending.program()
    assert program is not None and program.loaded and program.kernels and not program.stages
    (found,) = program.run([Buffer.of(x, program.arguments[0])])
    np.testing.assert_allclose(found.array, np.linalg.cholesky(4 * x @ x.T + 4 * np.eye(4)) + np.sin(x), 1e-4, 1e-5)


@pytest.mark.usefixtures("no_worker")
def test_where_a_compile_asks_the_device_another_process_does_so_briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the device has room for it; and it makes the program ready to run, for what that takes is on disk then."""
    x = numbers(3)
    monkeypatch.setattr(PORTABLE, "needs_device", True)
    monkeypatch.setattr(PORTABLE, "_has_room", lambda: False)
    assert compile_in_background(smelt.make_ir(lambda x: x * 2)(smelt.array(x)), metal_sim) is None
    monkeypatch.setattr(PORTABLE, "_has_room", lambda: True)
    worker = background._on_device
    for factor in (2, 3):  # the second one by another process: the first has ended
        graph = smelt.make_ir(lambda x, factor=factor: x * factor)(smelt.array(x))
        pending = compile_in_background(graph, metal_sim)
        assert pending is not None and pending.wait(60) and background._worker.process is None
        program = pending.program()
        assert program is not None and program.loaded
        (found,) = program.run([Buffer.of(x, program.arguments[0])])
        np.testing.assert_array_equal(found.array, x * factor)
        assert worker.process is not None
        worker.process.wait(60)
    assert worker.starts == 2 and not worker.deaths
    worker.leave()


def program_of(name: str, device: Device = metal_sim) -> Executable:
    module = text.parse(smelt.make_ir(PROGRAMS[name])(smelt.array(numbers(4, 4))))
    return compile_module(module, device, prepare=False)


def test_those_of_metal_are_made_and_read_without_its_gpu() -> None:
    metal = registered["metal"]
    program = program_of("control", metal)
    assert metal.portable is not None and not metal.portable.needs_device
    dumped = metal.portable.dump(program)
    assert dumped is not None
    found = metal.portable.load(dumped[0], metal)
    assert found.kernels == program.kernels and found.arena_bytes == program.arena_bytes
    assert (found.arguments, found.results) == (program.arguments, program.results)


def test_libraries_are_part_of_what_a_program_depends_on() -> None:
    others = [GpuPortable(PORTABLE._kind, lambda name=name: name) for name in ("", "one", "other")]
    assert len({other.identity() for other in others}) == 3


@pytest.mark.parametrize("name", ["kernels around the CPU", "control"])
def test_damaged_bytes_are_an_error(name: str) -> None:
    assert PORTABLE is not None
    dumped = PORTABLE.dump(program_of(name))
    assert dumped is not None
    content, rng = dumped[0], random.Random(0)
    size = int.from_bytes(content[:8], "little")
    for _ in range(60):
        at = rng.randrange(8 + size)
        for damaged in (content[:at], content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :]):
            try:
                PORTABLE.load(damaged, metal_sim)
            except SmeltError:
                continue
