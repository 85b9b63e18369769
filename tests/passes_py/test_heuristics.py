"""Whether what can be one kernel is one: heuristics of others, and what is said about it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir import text
from smelt.ir.aval import Aval
from smelt.ir.builder import functions, read_function
from smelt.ir.errors import ArgumentTypeError, IRError, PipelineError
from smelt.ir.interpreter import Interpreter
from smelt.passes import Pipeline, remarks
from smelt.passes.kernels import heuristics
from smelt.passes.kernels.heuristics import Candidate, Reason, fewest_bytes, register_heuristic
from smelt.runtime import device_named
from smelt.runtime.kept import Recipe

from ..backends.modules import f32, gelu, layer_norm, module_of, random_array, softmax

MATRIX = Aval((32, 48), f32)


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Any], str]]:
    """Registers a function for one test; its name."""
    known = dict(heuristics._known)

    def register(function: Any) -> str:
        register_heuristic("under-test")(function)
        return "under-test"

    yield register
    heuristics._known.clear()
    heuristics._known.update(known)


def fused(function: Callable[..., Any], heuristic: str, avals: list[Aval] | None = None) -> tuple[list[str], list[Any]]:
    """The kernels of a function, and the remarks; that it computes the same is checked."""
    avals = avals or [MATRIX]
    module = module_of(avals, function)
    arrays = [random_array(a, i) for i, a in enumerate(avals)]
    want = Interpreter(module)("main", arrays)
    with remarks.collected() as found:
        Pipeline.parse(f"cse,dce,fuse{{heuristic={heuristic}}}").run(module)
    text.verify(module)
    for have, expected in zip(Interpreter(module)("main", arrays), want):
        np.testing.assert_allclose(have, expected, rtol=1e-5, atol=1e-5)
    main = read_function(functions(module)["main"])
    return [op.attrs["callee"] for op in main.ops if op.op.kind == "call"], found


def shared(b: Any, x: Any) -> Any:
    """exp that three read: two reductions along different axes, and an op."""
    y = b.exp(b.sin(x))
    return b.reduce_sum(y, axes=(0,)), b.reduce_sum(b.tanh(y), axes=(1,)), y + b.cos(y)


PROGRAMS = [gelu, softmax, layer_norm, shared]


@pytest.mark.parametrize("function", PROGRAMS)
def test_answers_change_kernels_but_no_values(function: Any, named: Any) -> None:
    usual, _ = fused(function, "fewest-bytes")
    name = named(lambda kernel, candidate: "never")
    never, found = fused(function, name)
    assert len(never) > len(usual)
    assert all(r.text.endswith(": never") for r in found if r.rule == name)
    choose = random.Random(0)
    for answer in (lambda: None, lambda: choose.choice([None, "no"])):
        heuristics._known.pop(name)
        kernels, _ = fused(function, named(lambda kernel, candidate, answer=answer: answer()))
        assert len(kernels) <= len(never)


def test_every_two_kernels_that_touch_have_a_remark(named: Any) -> None:
    choose = random.Random(1)
    for name in ("fewest-bytes", named(lambda kernel, candidate: choose.choice([None, "no"]))):
        for function in PROGRAMS:
            module = module_of([MATRIX], function)
            with remarks.collected() as found:
                Pipeline.parse(f"cse,dce,fuse{{heuristic={name}}}").run(module)
            main = read_function(functions(module)["main"])
            said = {frozenset(r.about) for r in found if r.kind == "missed"}
            made = {v: op.attrs["callee"] for op in main.ops if op.op.kind == "call" for v in op.results}
            for op in main.ops:
                if op.op.kind == "call":
                    callee = op.attrs["callee"]
                    assert all(frozenset((made[v], callee)) in said for v in op.operands if v in made)
            calls = [op for op in main.ops if op.op.kind == "call"]
            for one, other in combinations(calls, 2):
                if set(one.operands) & set(other.operands):
                    assert frozenset((one.attrs["callee"], other.attrs["callee"])) in said
            kernels = {r.about[0] for r in found if r.rule == "kernel"}
            assert kernels == {name for name in functions(module) if name != "main"}


def test_remarks_change_no_kernels() -> None:
    for function in PROGRAMS:
        texts = []
        for collects in (False, True):
            module = module_of([MATRIX], function)
            if collects:
                with remarks.collected():
                    Pipeline.parse("cse,dce,fuse").run(module)
            else:
                Pipeline.parse("cse,dce,fuse").run(module)
            texts.append(text.to_text(module))
        assert texts[0] == texts[1]


def test_candidates_say_what_would_join(named: Any) -> None:
    asked: list[tuple[str, str, int, int, int]] = []

    def may_join(kernel: Any, candidate: Candidate) -> Reason | None:
        asked.append((candidate.way, candidate.op.name, candidate.nbytes, len(candidate.readers), len(candidate.ops)))
        assert kernel.outputs and kernel.schedule in ("map", "row", "split")
        assert candidate.value is candidate.op.results[0] and candidate.added_bytes >= 0
        return fewest_bytes(kernel, candidate)

    fused(shared, named(may_join))
    ways = {way for way, *_ in asked}
    assert {"inside", "again", "output"} <= ways
    assert ("output", "exp", MATRIX.nbytes) in [a[:3] for a in asked]
    asked.clear()
    fused(lambda b, x: (b.exp(x), b.sin(x)), "under-test")
    assert [a[0] for a in asked] == ["sibling"] and asked[0][4] == 1


def test_padding_that_many_sums_read_is_written() -> None:
    def sums(count: int) -> Any:
        def program(b: Any, x: Any) -> Any:
            padded = b.pad(x, b.full((), 0, x.dtype), low=(9, 0), high=(9, 0), interior=(0, 0))
            shifted = (b.slice(padded, start=(i, 0), stop=(i + 32, 48), stride=(1, 1)) for i in range(count))
            return tuple(b.reduce_sum(y * x, axes=(0,)) for y in shifted)

        return program

    few, _ = fused(sums(heuristics.CHOSEN_PLACES), "fewest-bytes")
    many, found = fused(sums(heuristics.CHOSEN_PLACES + 1), "fewest-bytes")
    assert len(few) == 1 and many[0] == "fused_pad" and len(many) == 2
    assert any(r.rule == "choices" for r in found)


def test_a_reason_is_a_word_a_sentence_and_its_numbers() -> None:
    reason = Reason("dear", "{cost} additions, worth {saved}", cost=3.0, saved=2)
    assert str(reason) == "3 additions, worth 2" and reason.numbers == {"cost": 3.0, "saved": 2}
    assert repr(reason) == "<dear: 3 additions, worth 2>"


def test_answers_are_checked(named: Any) -> None:
    for answer in (True, False, 1, "", object()):
        name = named(lambda kernel, candidate, answer=answer: answer)
        with pytest.raises(PipelineError, match=r"the heuristic under-test answered .*it has to be None"):
            fused(gelu, name)
        heuristics._known.pop(name)

    def fails(kernel: Any, candidate: Candidate) -> None:
        raise KeyError("lost")

    def changes(kernel: Any, candidate: Candidate) -> None:
        kernel.ops.clear()

    with pytest.raises(PipelineError, match=r"the heuristic under-test changed a kernel on \w+"):
        fused(gelu, named(changes))
    heuristics._known.pop("under-test")

    with pytest.raises(
        PipelineError, match=r"the heuristic under-test failed on \w+: KeyError: 'lost'; in the pass fuse"
    ):
        fused(gelu, named(fails))


def test_names() -> None:
    with pytest.raises(PipelineError, match="called by letters"):
        register_heuristic("two words")
    with pytest.raises(ArgumentTypeError, match="decorates a function of a kernel and a candidate"):
        register_heuristic("number")(3)  # type: ignore[arg-type]
    with pytest.raises(PipelineError, match="two heuristics are called 'fewest-bytes'"):
        register_heuristic("fewest-bytes")(lambda kernel, candidate: None)
    with pytest.raises(PipelineError, match=r"there is no heuristic 'nobodys'; there are .*fewest-bytes"):
        Pipeline.parse("fuse{heuristic=nobodys}")


def test_packages_add_heuristics(monkeypatch: pytest.MonkeyPatch, named: Any) -> None:
    def entry(name: str, load: Callable[[], Any]) -> Any:
        return SimpleNamespace(name=name, value=f"package:{name}", load=load)

    def broken() -> Any:
        raise ImportError("no such library")

    found = [entry("given", lambda: fewest_bytes), entry("broken", broken), entry("empty", lambda: SimpleNamespace())]
    monkeypatch.setattr(heuristics, "offered", lambda group: found)
    assert "heuristic=given" in str(Pipeline.parse("fuse{heuristic=given}"))
    with pytest.raises(PipelineError, match="the heuristic 'broken' of package:broken does not load: ImportError"):
        Pipeline.parse("fuse{heuristic=broken}")
    with pytest.raises(PipelineError, match="package:empty, the entry point of the heuristic 'empty', defines none"):
        Pipeline.parse("fuse{heuristic=empty}")


def test_compiled_programs_have_remarks(named: Any) -> None:
    def f(x: smelt.array) -> Any:
        y = smelt.exp(x)
        return smelt.sort(y), y.sum(axis=0)

    x = smelt.ones((64, 64))
    program = smelt.compile(f).trace(x).lower().compile()
    found = program.remarks()
    assert {r.kind for r in found} == {"passed", "analysis"} or any(r.kind == "missed" for r in found)
    assert all(r.pass_name == "fuse" and "test_heuristics.py:" in r.line for r in found)
    lowered = smelt.compile(f).trace(x).lower()
    with pytest.raises(IRError, match="the program has no remarks"):
        lowered.compile(keep_texts=False).remarks()


def test_programs_of_others_are_not_kept(named: Any) -> None:
    """The text of a pipeline does not say what somebody's heuristic answers."""
    device = device_named("cpu")
    source = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }"
    name = named(lambda kernel, candidate: None)
    assert Recipe(source, device, pipeline="fuse,plan-buffers").keys is not None
    assert Recipe(source, device, pipeline=f"fixpoint(inline),fuse{{heuristic={name}}},plan-buffers").keys is None
