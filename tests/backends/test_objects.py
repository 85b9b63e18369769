"""Programs as objects and descriptions: loaded elsewhere they do the same; what is damaged is refused."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest

import smelt
from smelt.backends.cpu import jit, objects
from smelt.backends.cpu import program as cpu
from smelt.backends.cpu.description import DescriptionError, ProgramDescription
from smelt.backends.cpu.relocations import ARM64, X86_64, RelocationError
from smelt.backends.cpu.running import Program
from smelt.ir.aval import Aval
from smelt.ir.settings import override
from smelt.passes import Pipeline

from .modules import f32, module_of, random_array, run

pytestmark = pytest.mark.skipif(not objects.supported(), reason="no objects are loaded on this machine")


def softmax_of_product(b: Any, x: Any, y: Any) -> list[Any]:
    product = b.dot_general(x, y, lhs_contracting=(1,), rhs_contracting=(0,), lhs_batch=(), rhs_batch=())
    return [b.exp(b.sin(product)), b.reduce_sum(product, axes=(0,))]


def compiled(avals: list[Aval], function: Callable[..., Any]) -> Program:
    module = module_of(avals, function)
    Pipeline.parse(cpu.PIPELINE).run(module)
    return cpu.compile_module(module)


def again(program: Program) -> Program:
    """The program as another process would make it: from text and bytes."""
    text = json.dumps(program.description.to_json())
    data = program.object or b""
    return Program(ProgramDescription.of_json(json.loads(text)), lambda symbols: objects.load(data, symbols.find))


@pytest.mark.parametrize("size", [5, 700], ids=["one thread", "team"])
@pytest.mark.parametrize("checked", [False, True])
def test_a_program_of_text_and_bytes_does_the_same(size: int, checked: bool) -> None:
    avals = [Aval((size, size), f32), Aval((size, size), f32)]
    with override(check=checked):
        program = compiled(avals, softmax_of_product)
    assert isinstance(program._code, objects.Code) and program.object
    arrays = [random_array(a, i) for i, a in enumerate(avals)]
    for first, second in zip(run(program, arrays), run(again(program), arrays)):
        np.testing.assert_array_equal(first, second)


def test_an_engine_and_an_object_do_the_same() -> None:
    avals = [Aval((40, 40), f32), Aval((40, 40), f32)]
    arrays = [random_array(a, i) for i, a in enumerate(avals)]
    program = compiled(avals, softmax_of_product)
    with mock.patch.object(objects, "supported", lambda: False):
        engine = compiled(avals, softmax_of_product)
    assert engine.object is None and not isinstance(engine._code, objects.Code)
    for first, second in zip(run(program, arrays), run(engine, arrays)):
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("why", ["dump", "load"])
def test_without_an_object_the_engine_runs(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise objects.ObjectError("no executable memory")

    if why == "load":
        monkeypatch.setattr(objects, "load", refuse)
    else:
        monkeypatch.setattr(jit, "object_of", lambda engine, function: None)
    x = smelt.array(np.arange(6, dtype=np.float32))
    np.testing.assert_array_equal(np.array(smelt.compile(lambda x: x * 2 + 1)(x)), np.arange(6) * 2 + 1)


@pytest.fixture(scope="module")
def one() -> Program:
    return compiled([Aval((300,), f32)], lambda b, x: b.exp(x))


def test_damaged_objects_are_refused_or_loaded_but_never_crash(one: Program) -> None:
    data = one.object
    assert data is not None
    rng = np.random.default_rng(0)
    find = one.team.symbols().get
    outcomes = set()
    for _ in range(300):
        changed = bytearray(data)
        for at in rng.integers(0, len(data), 3):
            changed[at] ^= 1 << int(rng.integers(8))
        try:
            objects.load(bytes(changed), lambda name: find(name, 0))
            outcomes.add("loaded")  # the code itself was hit: a checksum is what notices
        except objects.ObjectError:
            outcomes.add("refused")
    assert outcomes == {"loaded", "refused"}
    for length in (0, 3, 63, 64, 200, len(data) - 1):
        with pytest.raises(objects.ObjectError):
            objects.load(data[:length], lambda name: find(name, 0))


def test_what_is_unknown_is_refused(one: Program) -> None:
    data = one.object
    assert data is not None
    with pytest.raises(objects.ObjectError, match="no relocatable object"):
        objects.load(data[:18] + struct.pack("<H", 8) + data[20:], lambda name: 0)  # of MIPS
    with pytest.raises(objects.ObjectError, match="no function other"):
        objects.load(data, lambda name: 1).raw_lookup("other")
    unknown = pytest.raises(objects.ObjectError, match="is not known")
    with mock.patch.dict(X86_64.kinds, clear=True), mock.patch.dict(ARM64.kinds, clear=True), unknown:
        objects.load(data, lambda name: 1)


def test_without_memory_there_is_no_object(one: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> Any:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(objects.mmap, "mmap", full)
    with pytest.raises(objects.ObjectError, match="no memory"):
        objects.load(one.object or b"", lambda name: one.team.symbols().get(name, 0))


def test_memory_is_never_written_and_executed(one: Program) -> None:
    data = one.object
    assert data is not None
    code = objects.load(data, lambda name: one.team.symbols().get(name, 0))
    address = code.raw_lookup("main_0")
    with open("/proc/self/maps") as maps:
        for line in maps:
            first, last = (int(x, 16) for x in line.split()[0].split("-"))
            if first <= address < last:
                assert line.split()[1] == "r-xp"
                break
        else:
            raise AssertionError("the code is nowhere")


def test_relocations_of_aarch64() -> None:
    """Instructions as an assembler writes them."""
    kinds = ARM64.kinds
    target = 0x1122_3344_5566_7788
    moves = [kinds[k].apply(0xD2800000 | g << 21, target, 0) for k, g in ((264, 0), (266, 1), (268, 2), (269, 3))]
    assert [hex(m) for m in moves] == ["0xd28ef100", "0xd2aaacc0", "0xd2c66880", "0xd2e22440"]
    assert kinds[283].apply(0x94000000, 0x1000, 0x2000) == 0x97FFFC00  # bl -0x1000
    assert kinds[275].apply(0x90000000, 0x5123, 0x1FFC) == 0x90000020  # adrp x0, +4 pages
    assert kinds[277].apply(0x91000000, 0x5123, 0) == 0x91048C00  # add x0, x0, #0x123
    assert kinds[286].apply(0xF9400000, 0x5128, 0) == 0xF9409400  # ldr x0, [x0, #0x128]
    for kind, place in ((283, 1 << 40), (275, 1 << 50), (283, 2)):
        with pytest.raises(RelocationError):
            kinds[kind].apply(0, 0, place)
    assert ARM64.jump is not None and ARM64.jump(target)[8:] == struct.pack("<Q", target)


def test_relocations_that_do_not_fit() -> None:
    assert X86_64.kinds[2].apply(0, 0x1000, 0x2000) == 0xFFFFF000
    for kind in (2, 4, 10, 11):
        with pytest.raises(RelocationError):
            X86_64.kinds[kind].apply(0, 1 << 40, 0)


@pytest.mark.parametrize("change", [{"version": 0}, {"arguments": [["f33", 1]]}, {"functions": {}}, {"aliases": 3}])
def test_what_describes_no_program(one: Program, change: dict[str, Any]) -> None:
    found = {**one.description.to_json(), **change}
    if "functions" in change:
        assert "main" not in ProgramDescription.of_json(found).functions
    else:
        with pytest.raises(DescriptionError):
            ProgramDescription.of_json(found)
