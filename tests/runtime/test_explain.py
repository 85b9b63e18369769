"""What is told about compiles."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import smelt
from smelt.backends.cpu import objects
from smelt.ir.settings import override
from smelt.lazy.execution import direct
from smelt.lazy.execution.programs import program_in_background
from smelt.runtime import explain as notes

pytestmark = pytest.mark.tier("program")  # compiles are counted


def test_a_size_that_changes_is_named() -> None:
    @smelt.compile
    def scaled(x, y):
        return smelt.exp(x) * y.sum()

    with smelt.explain() as explained:
        for n in (8, 16, 16):
            scaled(smelt.ones((n, 3)), smelt.ones(5))
    first, second = explained.compiles
    assert (first.kind, first.reason, first.advice, first.name) == ("structure", "a new structure", "", "scaled")
    assert (second.kind, second.reason) == ("size", "argument 0 is f32[16,3], was f32[8,3]")
    assert second.advice == notes.ADVICE["size"]
    assert first.where.startswith(__file__) and first.how == "compiled" and first.ops >= 4
    assert explained.count == 2 and explained.reasons == {"structure": 1, "size": 1}
    assert explained.seconds == first.seconds + second.seconds > 0


def test_many_changes_are_cut_short() -> None:
    f = smelt.compile(lambda *xs: sum(xs))
    with smelt.explain() as explained:
        for n in (3, 4):
            f(*(smelt.ones(n) for _ in range(5)))
    one, two = (f"argument {i} is f32[4], was f32[3]" for i in (0, 1))
    assert explained.compiles[1].reason == f"{one}; {two}; and 3 more"


def test_a_dtype_that_changes_is_named() -> None:
    f = smelt.compile(lambda x: smelt.maximum(x, x * x))
    with smelt.explain() as explained:
        for dtype in (smelt.float32, smelt.int32):
            f(smelt.ones(4).astype(dtype))
    assert [c.kind for c in explained.compiles] == ["structure", "dtype"]
    assert explained.compiles[1].reason == "argument 0 is i32[4], was f32[4]"


def test_an_attribute_that_changes_is_named() -> None:
    f = smelt.compile(lambda x, n: smelt.sin(x) * n)
    with smelt.explain() as explained:
        for n in (1.5, 2.5):
            f(smelt.ones(4), n)
    found = explained.compiles[1]
    assert found.kind == "attribute" and found.reason.startswith("constant has ") and "smelt.array" in found.advice
    assert "2.5" in found.reason and "1.5" in found.reason


def test_lazy_graphs_and_what_was_forgotten() -> None:
    x = smelt.ones((64, 64))
    smelt.eval(x)
    with override(small_work=0), smelt.explain() as explained:
        smelt.eval(smelt.tanh(x) @ x)
        smelt.lazy.evaluate.executables.clear()
        smelt.eval(smelt.tanh(x) @ x)
    assert [(c.name, c.kind) for c in explained.compiles] == [("lazy graph", "structure"), ("lazy graph", "again")]


def test_small_programs_are_interpreted_and_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    direct._programs.clear()
    # What a tape cannot transform takes the passes.
    monkeypatch.setattr("smelt.passes.transform.tape_transforms._TRANSFORMS", {})
    with override(small_work=1 << 20), smelt.explain() as explained:
        smelt.eval(smelt.grad(lambda w: smelt.checkpoint(lambda v: v * v * v)(w).sum())(smelt.ones(3)))
    assert [c.how for c in explained.compiles] == ["interpreted"] and explained.count == 0


def test_each_thread_may_ask() -> None:
    with smelt.explain() as explained:
        f = smelt.compile(lambda x: x - 7)
        threads = [threading.Thread(target=lambda n=n: f(smelt.ones(n))) for n in (2, 3, 4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert explained.count == 3 and explained.reasons["structure"] == 1


def test_forgetting_and_the_table() -> None:
    smelt.compile(lambda x: x * 11)(smelt.ones(3))
    before = smelt.explain(reset=True)
    assert before.count >= 1 and "a new structure" in repr(before)
    assert repr(smelt.explain()) == "no compiles" and smelt.explain().count == 0
    smelt.compile(lambda x: x * 12)(smelt.ones(3))
    header, row, end = repr(smelt.explain()).splitlines()
    assert header.split() == ["ms", "kernels", "ops", "what", "why", "what", "would", "avoid", "it"]
    assert "lambda_" in row and end.startswith("1 in ")


def test_only_the_last_compiles_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = notes._Notes()
    made = notes.Compile("f", "", 1, "cpu", "compiled", 0.1, 1, "size", "", "")
    monkeypatch.setattr(notes, "_notes", kept)
    for _ in range(notes.MOST_NOTES + 5):
        kept.add(made)
    explained = smelt.explain()
    assert len(explained.compiles) == notes.MOST_NOTES and explained.count == notes.MOST_NOTES + 5
    for i in range(notes.MOST_STRUCTURES + 5):
        kept.compare(notes.Subject(f"f{i}", 1, "", (), ()), "cpu")
    assert len(kept.known) == notes.MOST_STRUCTURES


def test_large_programs_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notes, "MOST_OPS", 2)
    f = smelt.compile(lambda x: smelt.exp(smelt.sin(x) * x))
    with smelt.explain() as explained:
        for n in (3, 4):
            f(smelt.ones(n))
    assert [c.reason for c in explained.compiles] == ["a new program, too large to compare"] * 2


@pytest.mark.parametrize("level", ["compile", 2])
def test_compiles_are_logged(level: object, capsys: pytest.CaptureFixture[str]) -> None:
    f = smelt.compile(lambda x: x * 13)
    with override(debug=level):
        f(smelt.ones(3))
    assert capsys.readouterr().err.startswith("smelt: compiled lambda_ (")
    f(smelt.ones(4))
    assert capsys.readouterr().err == ""


def test_programs_from_disk_are_no_compiles(tmp_path: Path) -> None:
    if not objects.supported():
        pytest.skip("programs of this machine cannot be kept")
    with override(cache=True, cache_dir=tmp_path), smelt.explain() as explained:
        for _ in range(2):
            smelt.compile(lambda x: smelt.cos(x) * 17)(smelt.ones(3))
    assert [(c.how, c.kind) for c in explained.compiles] == [("compiled", "structure"), ("loaded", "loaded")]
    assert explained.count == 1


def test_a_reason_of_the_caller() -> None:
    with smelt.explain() as explained, notes.because("its ops have taken 3 s"):
        smelt.compile(lambda x: smelt.cos(x) * 19)(smelt.ones(3))
    assert explained.compiles[0].reason == "a new structure; its ops have taken 3 s"


def test_a_worker_that_compiles_beside() -> None:
    graph = smelt.compile(lambda x, n: smelt.sin(x[:n]) * 23).trace(smelt.ones(8), 4).function
    with override(cache=True), smelt.explain() as explained:
        pending = program_in_background(graph.parameters, graph.body, graph.outputs, smelt.default_device())
        if pending is None:
            pytest.skip("there is no worker here")
        assert pending.wait(120) and pending.program() is pending.program() is not None
    (found,) = explained.compiles
    assert found.how in ("beside", "loaded") and explained.count == (found.how == "beside")
    assert found.where.startswith(__file__) and found.ops == len(graph.body)


def test_graphs_and_modules_tell_the_same(tmp_path: Path) -> None:
    """With the cache programs are described by their recorded graph, else by their module."""
    told = []
    for cache in (True, False):
        with override(cache=cache, cache_dir=tmp_path / "none"), smelt.explain(reset=True) as explained:
            f = smelt.compile(smelt.grad(lambda x, n: (smelt.exp(x) * x)[:n].sum()))
            for size, n in ((5, 2), (6, 2), (6, 3)):
                f(smelt.ones((size, 3)), n)
        told.append([(c.kind, c.reason.partition("(")[0], c.ops) for c in explained.compiles])
    assert [kind for kind, _, _ in told[0]] == ["structure", "size", "size"]
    assert [(k, r) for k, r, _ in told[0]] == [(k, r) for k, r, _ in told[1]]


def test_what_a_structure_cost_before_its_program() -> None:
    x = smelt.ones((256, 256))
    smelt.eval(x)
    with override(tier="auto", small_work=0), smelt.explain() as explained:
        for _ in range(100_000):
            smelt.eval(smelt.tanh(x * 3) @ x)
            if explained.compiles:
                break
    assert "its ops " in explained.compiles[0].reason
