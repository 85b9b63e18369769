"""Ops of another package that state a formula take part in the forms that passes and schedules recognize."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import smelt
from smelt.ir.errors import AttributeValueError
from smelt.ir.kinds import Elementwise, Reduction
from smelt.ir.op import FORMULAS, Op, Operand, registry
from tests.ops.cases import cases, sample

#: What formulas mean.
MEANINGS = {
    "x + y": np.add, "x - y": np.subtract, "x * y": np.multiply, "x / y": np.divide, "-x": np.negative,
    "exp(x)": np.exp, "max(x, y)": np.maximum, "sum(x)": np.sum, "max(x)": np.max,
}  # fmt: skip


def test_each_formula_is_that_of_an_op() -> None:
    known = {(kind, formula) for kind, formulas in FORMULAS.items() for formula in formulas}
    assert {(op.kind, op.formula) for op in registry.values() if op.formula} == known
    assert {formula for _, formula in known} == set(MEANINGS)


@pytest.mark.parametrize("op", [op for op in registry.values() if op.formula], ids=lambda op: op.name)
def test_an_op_computes_its_formula(op: Op) -> None:
    rng = np.random.default_rng(5)
    for case in cases(op):
        arrays = [sample(aval, rng) for aval in case.avals]
        if arrays[0].dtype == bool:  # of which no form is made
            continue
        wide = [a.astype(np.complex128 if a.dtype.kind == "c" else np.float64) for a in arrays]
        with np.errstate(all="ignore"):
            expected = MEANINGS[op.formula](*wide, **({"axis": case.kwargs["axes"]} if "axes" in case.kwargs else {}))
            found = np.asarray(op.reference(*arrays, **case.kwargs))
        if arrays[0].dtype.kind in "fc":
            wide_found = found.astype(expected.dtype)
            np.testing.assert_allclose(wide_found, expected, rtol=0.02 if arrays[0].dtype.itemsize == 2 else 1e-5)


def test_a_formula_that_no_pass_knows_is_an_error() -> None:
    with pytest.raises(AttributeValueError, match=r"no such formula: 'e.x'; of an op of the kind 'elementwise'"):

        class Wrong(Elementwise, name="acme_wrong"):
            """Exponential.

            ``%0 = "smelt.acme_wrong"(%x) : (tensor<4xf32>) -> tensor<4xf32>``
            """

            x: Operand
            formula = "e^x"

    assert "acme_wrong" not in registry


@pytest.mark.parametrize(
    "kind, formula, fields, message",
    [
        (Elementwise, "x + y", {"x": "Operand"}, "takes x and y alone; the op has x;"),
        (Elementwise, "exp(x)", {"x": "Operand", "y": "Operand"}, "takes x alone; the op has x, y;"),
        (Elementwise, "exp(x)", {"x": "Operands"}, "takes x alone; the op has x;"),
        (Elementwise, "-x", {"x": "Operand", "scale": "Int"}, "takes no attributes; the op has x, scale;"),
        (Reduction, "sum(x)", {"power": "Int"}, "takes the attribute axes alone; the op has x, axes, power;"),
    ],
)
def test_a_formula_of_other_operands_or_attributes_is_an_error(
    kind: type[Op], formula: str, fields: dict[str, str], message: str
) -> None:
    with pytest.raises(AttributeValueError, match=re.escape(f"the formula {formula!r} {message}")):
        type("Wrong", (kind,), {"__annotations__": fields, "formula": formula}, name="acme_wrong")
    assert "acme_wrong" not in registry


def test_a_formula_is_not_inherited() -> None:
    class Other(type(registry["exp"])):  # type: ignore[misc]
        """Something else."""

    assert Other.formula == ""


OPS = '''
import re, sys
import smelt
from smelt.ir import mlir, text
from smelt.ir.op import registry
from smelt.tools import opt

taken = [op for op in registry.values() if op.formula]
for i, op in enumerate(taken):
    name = op.name[:-1] + "qrstuvwxyz"[i]
    type(op.name, (type(op),), {"__doc__": type(op).__doc__, "formula": op.formula}, name=name)
with open(sys.argv[1]) as file:
    source = file.read()
again, count = source, 0
for i, op in enumerate(taken):
    again, n = re.subn(f'(?<="smelt.{op.name[:-1]}){op.name[-1]}(?=")', "qrstuvwxyz"[i], again)
    count += n
assert count > 4, count
with open(sys.argv[2], "w") as file:
    file.write(again)
sys.exit(opt.main([sys.argv[2], f"--pass-pipeline={sys.argv[3]}", "--emit=" + sys.argv[4]], isolate=False))
'''


def attention(q: smelt.array, k: smelt.array, v: smelt.array) -> smelt.array:
    scores = q @ k.T * 0.125
    return smelt.softmax(scores, axis=-1) @ v


def normalized(x: smelt.array, scale: smelt.array) -> smelt.array:
    apart = x - smelt.mean(x, axis=-1, keepdims=True)
    return apart * smelt.rsqrt(smelt.mean(apart * apart, axis=-1, keepdims=True) + 1e-3) * scale


def pulled(f):  # type: ignore[no-untyped-def]
    return lambda *given: smelt.vjp(f, list(given[:-1]), [given[-1]])[1]


PROGRAMS = {
    "softmax": (lambda x: smelt.softmax(x, axis=-1), [(64, 2048)]),
    "attention": (attention, [(512, 64)] * 3),
    "attention's gradient": (pulled(attention), [(512, 64)] * 4),
    "norm": (normalized, [(64, 512), (512,)]),
    "norm's gradient": (pulled(normalized), [(64, 512), (512,), (64, 512)]),
}


#: What the passes before `fuse` say that recognize forms, by the text that a device's programs have.
FORMS = {"llvm": "split-sums,dce", "msl": "recompute-attention,split-sums,pad-products,dce"}


@pytest.mark.parametrize("stage", FORMS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_ops_of_the_same_formulas_become_the_same_kernels(name: str, stage: str, tmp_path: Path) -> None:
    function, shapes = PROGRAMS[name]
    source, script = tmp_path / "own.mlir", tmp_path / "ops.py"
    script.write_text(OPS)
    _, _, fuse = str(smelt.default_pipeline("metal:sim" if stage == "msl" else "cpu")).rpartition(",fuse{")
    text = smelt.compile(function).trace(*map(smelt.zeros, shapes)).lower().as_text("graph")
    expanded = "fixpoint(inline,batch,jvp,linearize,transpose),canonicalize,cse,dce"
    text = _run(["-m", "smelt.tools.opt", "-", f"--pass-pipeline={expanded}"], text)
    for pipeline, emit in ((FORMS[stage], "mlir"), (f"fuse{{{fuse}", stage)):
        source.write_text(text)
        text = _run(["-m", "smelt.tools.opt", str(source), f"--pass-pipeline={pipeline}", f"--emit={emit}"])
        others = _run([str(script), str(source), str(tmp_path / "foreign.mlir"), pipeline, emit])
        assert _unnamed(others) == _unnamed(text)


def _run(command: list[str], given: str = "") -> str:
    found = subprocess.run(
        [sys.executable, *command], input=given, capture_output=True, text=True, timeout=300, check=False
    )
    assert found.returncode == 0, found.stderr
    return found.stdout


def _unnamed(text: str) -> str:
    """A text in which the foreign ops are called as smelt's are; texts are of the same length, so lines break alike."""
    for i, op in enumerate(op for op in registry.values() if op.formula):
        short = op.name.removeprefix("reduce_")
        text = re.sub(f"(?<![a-z]){short[:-1]}{'qrstuvwxyz'[i]}(?![a-z])", short, text)
    return text
