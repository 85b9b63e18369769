"""Some mutations of each kind, and those that once found something."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from smelt.ir import mlir, text
from smelt.ir.errors import IRError, PipelineError, SmeltError
from smelt.passes import Pipeline

from . import batch
from .subjects import SUBJECTS

#: How many, in a second or two; campaigns of `tests/long` have many more.
COUNTS = {
    "mlir": 300, "npy": 2000, "npz": 1000, "safetensors": 2000, "gguf": 2000, "functions": 150, "metal": 30,
    "pipelines": 250,
    "settings": 1000, "stablehlo": 30, "artifacts": 50, "onnx": 50, "commands": 20,
}  # fmt: skip


@pytest.mark.parametrize("subject", SUBJECTS)
def test_mutations(subject: str) -> None:
    if subject == "metal":
        pytest.importorskip("clang")
    assert not [str(finding) for finding in batch.run(subject, 1_000_000, COUNTS[subject])]


def test_a_crash_and_a_hang_are_findings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The child is this program in place of the batch."""
    program = tmp_path / "child"
    program.write_text(
        "import os, sys, time\nfirst, count, at, log = int(sys.argv[4]), int(sys.argv[5]), *sys.argv[6:]\n"
        "for n in range(first, first + count):\n    open(at, 'w').write(str(n))\n"
        "    if n == 3: os.abort()\n    if n == 5: time.sleep(60)\n"
        "    if n == 6: open(log, 'a').write(f'{n}\\tKeyError: 1\\n')\n"
    )
    monkeypatch.setattr(batch, "SECONDS", 1.5)
    monkeypatch.setattr(batch, "INTERPRETER", [sys.executable, str(program)])
    found = batch.run("mlir", 0, 9)
    assert [f.seed for f in found] == [3, 5, 6]
    assert "ended with -6" in found[0].what and "nothing came back" in found[1].what and "KeyError" in found[2].what


LITERAL = 'func.func @main() {{ %0 = "smelt.literal"() {{value = {0} : {1}}} : () -> {1}\n return }}'
ATTRIBUTE = (
    'func.func @main() {{ %0 = "smelt.iota"() {{shape = array<i64: 4>, axis = 0 : i64, dtype = f32, {0}}} '
    ": () -> tensor<4xf32>\n return }}"
)
#: A value is read, then defined in a region of an op that does not parse: MLIR's parser wrote to freed memory.
FORWARD = """func.func @f(%x: tensor<f32>, %c: i1, %i: index) -> tensor<f32> {
  %1 = scf.if %c -> (tensor<f32>) {
    scf.yield %6 : tensor<f32>
  } else {
    scf.yield %x : tensor<f32>
  }
  %5 = scf.index_switch %i -> tensor<f32>
  case 0 {
    %6 = func.call @f(%x) : (tensor<f32>) -> tensor<f32>
    scf.yield %6 : tensor<f32>
  }
  default {
    %7 = func.call @f(%x) : (tensor<i1>) -> tensor<f32>
  }
  return %x : tensor<f32>
}"""
MODULES = {
    "a region that is freed": FORWARD,
    "number of a result": "func.func @main(%x: tensor<f32>) { return %x#2147483647 : tensor<f32> }",
    "number of another result": 'func.func @main(%x: tensor<f32>) { %0 = "smelt.exp"(%y#99999999) : (tensor<f32>) -> '
    "tensor<f32>\n return }",
    "huge splat": LITERAL.format("dense<1>", "tensor<9223372036854775807xi8>"),
    "large splat": LITERAL.format("dense<true>", "tensor<4294967296xi1>"),
    "another array": ATTRIBUTE.format("more = array<ui8: 1>"),
    "array of another type": ATTRIBUTE.format("more = array<f8E4M3: 1.0>"),
    "complex elements": ATTRIBUTE.format("more = dense<(1.0,2.0)> : tensor<2xcomplex<f32>>"),
    "half a character": "func.func @main() { return } // \ud800",
    "rules of a function": "func.func @main() attributes {smelt.custom_vjp = array<ui8: 1>} { return }",
    "attribute of a function": "func.func @main() attributes {a.b = array<ui8: 1>} { func.call @f() : () -> ()\n"
    " return }\n"
    "func.func private @f() { return }",
    "attribute of a call": "func.func @main() { func.call @f() {a.b = array<ui8: 1>} : () -> ()\n return }\n"
    "func.func private @f() { return }",
}  # fmt: skip


@pytest.mark.parametrize("what", MODULES)
@pytest.mark.parametrize("pipeline", ["inline,canonicalize,cse,dce", "dce,fuse,plan-buffers", "place{kinds=opaque}"])
def test_modules_that_once_found_something(what: str, pipeline: str) -> None:
    try:
        with mlir.lock:
            Pipeline.parse(pipeline).run(text.parse(MODULES[what]))
    except SmeltError as error:
        assert "pass" not in str(error).split()[:2], error
    else:
        assert "of a call" in what or "of a function" in what, "this is no valid module"


def test_values_of_later_regions_are_found_in_the_text() -> None:
    with pytest.raises(IRError, match="line 9: %6 is read before, and outside of, the region that defines it"):
        text.check_text(FORWARD)


def test_the_texts_of_the_tests_define_what_they_read() -> None:
    files = sorted((Path(__file__).parent.parent).rglob("*.mlir"))
    assert len(files) > 100
    for file in files:
        for part in file.read_text(encoding="utf-8").split("// -----"):
            text._check_regions(part)


@pytest.mark.parametrize(
    "spelling",
    ["a\0b", "\ud800", "func.func(" * 5000, "cse{" * 5000, "any(" * 300 + "cse" + ")" * 300, "x" * (1 << 21),
     "canonicalize{a=\0}", "fixpoint(" * 40 + "cse" + ")" * 40, "{", ")", ",", "=", "func.func(\ud800)", "cse{a=b",
     None, 3],
    ids=range(16),
)  # fmt: skip
def test_pipelines_that_are_none(spelling: str) -> None:
    with pytest.raises(PipelineError):
        Pipeline.parse(spelling)
