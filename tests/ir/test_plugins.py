"""Ops of other packages: one that a tiny installed package defines, wherever ops of smelt's own can be."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir import mlir, op, text
from smelt.ir.builder import functions, read_function
from smelt.ir.dialect import context
from smelt.ir.errors import ArgumentTypeError, AttributeValueError, IRError
from smelt.ir.settings import override
from smelt.lazy.arrays import emit_all
from smelt.passes import Pipeline
from smelt.passes.rewrite import rebuild
from smelt.passes.rewrites.terms import Variable, ops
from smelt.tools import opt

from ..ops import cases, test_registry

#: Softsign, and a function for it.
PACKAGE = '''
from __future__ import annotations

import numpy as np

import smelt
from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.errors import ShapeError
from smelt.ir.kinds import Elementwise, silent
from smelt.ir.op import Bool, Op, Operand, Operands, registry
from smelt.lazy.arrays import as_array, emit_elementwise, wrap
from smelt.lazy.graph import Node


class Softsign(Elementwise, name="acme_softsign"):
    """Softsign: x / (1 + |x|).

    ``%0 = "smelt.acme_softsign"(%x) : (tensor<4xf32>) -> tensor<4xf32>``
    """

    x: Operand
    accepts = dtypes.FLOATS
    flops = 3.0

    @silent
    def reference(self, x):
        return x / (1 + np.abs(x))

    def jvp(self, b, primals, tangents, results, **_):
        (x,), (t,) = primals, tangents
        scale = b.abs(x) + 1
        return [t / (scale * scale)]

    def lower(self, k, x):
        return x / (k.math("absf", x) + 1)


class Shift(Op, name="acme_shift"):
    """x moved by n places where the mask holds, else x; and how many these are.

    ``%f = "smelt.acme_shift"() {} : () -> ((tensor<f32>, tensor<i32>, tensor<i1>) -> (tensor<f32>, tensor<i32>))``
    """

    mixed = True
    operands: Operands
    back: Bool = False

    def infer(self, x, n, mask, *, back):
        if mask.shape != x.shape:
            raise ShapeError("x and mask must have the same shape")
        return x, Aval((), dtypes.int32)

    def reference(self, x, n, mask, *, back):
        n = -int(n) if back else int(n)
        moved = np.roll(x * mask, n) + x * ~mask if back else np.where(mask, np.roll(x, n), x)
        return moved.astype(x.dtype), np.asarray(mask.sum(), np.int32)

    def jvp(self, b, primals, tangents, results, *, back):
        (_, n, mask), (t, *_) = primals, tangents
        return [None if t is None else b.emit(self, (t, n, mask), {"back": back})[0], None]

    def transpose(self, b, cotangents, operands, linear, *, back):
        (_, n, mask), (ct, _) = operands, cotangents
        return [None if ct is None else b.emit(self, (ct, n, mask), {"back": not back})[0], None, None]

    linearity = "jointly"
    linear_operands = (0,)


def shift(x, n, mask) -> tuple[smelt.array, smelt.array]:
    inputs = [as_array(v) for v in (x, n, mask)]
    op = registry["acme_shift"]
    avals = op.infer_checked([v.aval for v in inputs], {"back": False})
    node = Node(op, {"back": False}, tuple(v._ref for v in inputs), avals)
    return tuple(wrap((node, i)) for i in range(2))


def softsign(a: smelt.array) -> smelt.array:
    return emit_elementwise(registry["acme_softsign"], as_array(a))
'''
SOURCE = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.acme_softsign"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
X = np.array([-3, 0, 1, 0.25], np.float32)
Y = np.array([-0.75, 0, 0.5, 0.2], np.float32)


def install(folder: Path, entries: str) -> None:
    """A package with ops, and its entry points."""
    (folder / "acme_ops.py").write_text(PACKAGE)
    (folder / "acme_broken.py").write_text("import nothing_that_is_there")
    (folder / "f.mlir").write_text(SOURCE)
    np.save(folder / "x.npy", X)
    info = folder / "acme-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[smelt.ops]\n{entries}")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The package, installed, and not imported so far."""
    install(tmp_path, "acme = acme_ops\nbroken = acme_broken\nstale = no_such_package.ops\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    known = dict(op._registry)
    yield tmp_path
    op._registry.clear()
    op._registry.update(known)
    for name in [n for n in sys.modules if n.startswith("acme_")]:
        del sys.modules[name]


@pytest.fixture
def acme(folder: Path) -> Any:
    """The package, imported after the dialect was loaded."""
    context()
    return importlib.import_module("acme_ops")


def python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, timeout=120, cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip


# Text


def test_a_text_with_an_unknown_op_loads_the_packages(folder: Path) -> None:
    text.parse(SOURCE.replace("acme_softsign", "exp"))
    assert "acme_ops" not in sys.modules
    module = text.parse(SOURCE)
    assert "acme_ops" in sys.modules
    (view,) = read_function(functions(module)["main"]).ops
    assert view.op is op.registry["acme_softsign"] and text.to_text(text.parse(text.to_text(module))) == text.to_text(
        module
    )


def test_a_builder_of_an_unknown_op_loads_the_packages(folder: Path) -> None:
    module = text.parse(SOURCE.replace("acme_softsign", "neg"))
    assert "acme_ops" not in sys.modules
    rebuild(module, read_function(functions(module)["main"]), lambda b, op, values: [b.acme_softsign(values[0])])
    text.verify(module)
    assert text.to_text(module) == text.to_text(text.parse(SOURCE))


def test_a_rewrite_of_an_unknown_op_loads_the_packages(folder: Path) -> None:
    assert str(ops.acme_softsign(Variable("x"))) == "acme_softsign(x)" and "acme_ops" in sys.modules
    with pytest.raises(AttributeValueError, match="no op 'acme_softmin'") as caught:
        ops.acme_softmin  # noqa: B018
    assert "the ops 'broken' of acme_broken do not load" in str(caught.value)


def test_the_ops_verifier_is_asked(folder: Path) -> None:
    with pytest.raises(IRError, match=r"acme_softsign: operand is int32, must be one of float16"):
        text.parse(SOURCE.replace("f32", "i32"))


def test_what_an_op_is_given_is_checked_where_it_is_recorded(acme: Any) -> None:
    softsign, shift = op.registry["acme_softsign"], op.registry["acme_shift"]
    x = smelt.array(X)
    for given, attrs, error, said in (
        ((softsign, (x, x)), {}, ArgumentTypeError, r"takes 1 operands \(x\), got 2"),
        ((softsign, (x,)), {"by": 1}, AttributeValueError, "has no attribute by; it has none"),
        ((shift, (x, x, x)), {"back": "yes"}, AttributeValueError, "back must be true or false, is 'yes'"),
    ):
        with pytest.raises(error, match=said):
            emit_all(*given, attrs)
        with pytest.raises(error, match=said):
            smelt.compile(lambda given=given, attrs=attrs: emit_all(*given, attrs))()


def test_an_op_that_nobody_has_names_what_does_not_load(folder: Path) -> None:
    with pytest.raises(IRError) as caught:
        text.parse(SOURCE.replace("softsign", "softmin"))
    message = str(caught.value)
    assert "acme_softmin" in message and "<text>:2:" in message
    assert "the ops 'broken' of acme_broken do not load: ModuleNotFoundError" in message
    assert "the ops 'stale' of no_such_package.ops do not load" in message


def test_an_entry_point_called_like_the_op_is_loaded_alone(tmp_path: Path, folder: Path) -> None:
    info = folder / "acme-1.0.dist-info"
    (info / "entry_points.txt").write_text("[smelt.ops]\nbroken = acme_broken\nacme_softsign = acme_ops\n")
    text.parse(SOURCE)
    assert "acme_broken" not in sys.modules


# Names


def defining(name: str, module: str = "another_package") -> Any:
    body = {"__module__": module, "__qualname__": "Taken"}
    return lambda: type(op.Op)("Taken", (op.Op,), body, name=name)


def test_names_cannot_collide(acme: Any) -> None:
    known = dict(op.registry)
    for name, owner in {"acme_softsign": "acme_ops", "exp": r"smelt\.ir\.ops\.exponential"}.items():
        with pytest.raises(AttributeValueError, match=f"'{name}' of another_package is already defined, by {owner}"):
            defining(name)()
    for name in ("cond", "while", "scan", "", "Exp", "a b", "acme.op", "1x"):
        with pytest.raises(AttributeValueError, match="an op is called by"):
            defining(name)()
    assert dict(op.registry) == known


# Wherever ops of smelt's own can be


@pytest.mark.parametrize("device", ["cpu", "metal:sim", "reference"])
@pytest.mark.parametrize("small_work", [0, 10**9])
def test_it_is_recorded_transformed_and_compiled(acme: Any, device: str, small_work: int) -> None:
    with override(device=device, small_work=small_work):
        x = smelt.array(X)
        np.testing.assert_allclose(np.array(acme.softsign(x)), Y)
        slope = 1 / (1 + np.abs(X)) ** 2
        np.testing.assert_allclose(np.array(smelt.grad(lambda x: acme.softsign(x).sum())(x)), slope, rtol=1e-6)
        rows = smelt.vmap(lambda row: acme.softsign(row) * row.sum())(smelt.stack([x, 2 * x]))
        np.testing.assert_allclose(
            np.array(rows), np.stack([Y * X.sum(), 2 * X / (1 + 2 * np.abs(X)) * 2 * X.sum()]), rtol=1e-5
        )
        found = smelt.compile(smelt.vmap(smelt.grad(acme.softsign)))(x)
        np.testing.assert_allclose(np.array(found), slope, rtol=1e-6)


def test_it_is_a_kernel_with_others(acme: Any) -> None:
    compiled = smelt.compile(lambda x: acme.softsign(x * 2) + 1).trace(smelt.array(X)).lower().compile()
    assert len(compiled.kernels) == 1 and "acme_softsign" in str(compiled.kernels[0])


@pytest.mark.parametrize("device", ["cpu", "metal:sim", "reference"])
def test_an_op_with_operands_of_several_types(acme: Any, device: str) -> None:
    mask = X > -1
    with override(device=device):
        x, m = smelt.array(X), smelt.array(mask)
        want = np.where(mask, np.roll(X, 1), X)
        for f in (acme.shift, smelt.compile(acme.shift)):
            moved, count = f(x, 1, m)
            assert moved.tolist() == want.tolist() and (count.item(), count.dtype) == (3, smelt.int32)
        rows, counts = smelt.vmap(acme.shift, in_axes=(None, 0, None))(x, smelt.array([1, 2]), m)
        assert rows.tolist() == [want.tolist(), np.where(mask, np.roll(X, 2), X).tolist()] and counts.tolist() == [3, 3]
        # The Jacobian is a matrix of zeros and ones, whichever way it is made.
        forward, backward = (j(lambda x: acme.shift(x, 1, m)[0])(x) for j in (smelt.jacfwd, smelt.jacrev))
        np.testing.assert_array_equal(np.array(forward), np.where(mask[:, None], np.roll(np.eye(4), 1, 0), np.eye(4)))
        np.testing.assert_array_equal(np.array(forward), np.array(backward))
    source = str(smelt.make_ir(lambda x: acme.shift(x, 1, m)[0])(x))
    assert '"smelt.acme_shift"() {back = false}' in source and text.to_text(text.parse(source)) == source
    with pytest.raises(IRError, match="acme_shift: x and mask must have the same shape"):
        text.parse(source.replace("tensor<4xi1>", "tensor<3xi1>"))
    with pytest.raises(smelt.ir.errors.ShapeError, match=r"same shape; operands\[0\] f32\[4\].*acme_ops\.py:\d+"):
        acme.shift(x, 1, smelt.array([True]))


def test_the_generated_tests(acme: Any) -> None:
    it = op.registry["acme_softsign"]
    test_registry.test_backend_agrees_with_reference(it)
    test_registry.test_batch_agrees_with_a_loop(it)
    for case in cases.cases(it):
        test_registry.test_round_trip(case)
    case = next(c for c in cases.cases(it) if c.avals[0].dtype is smelt.ir.dtypes.float64)
    test_registry.test_jvp_agrees_with_finite_differences(case)
    test_registry.test_vjp_is_the_adjoint_of_jvp(case)
    test_registry.test_second_derivative(case)


# The command line


def test_list_ops_shows_it_and_warns(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert opt.main(["--list-ops"], isolate=False) == 0
    out, err = capsys.readouterr()
    (row,) = [line.split() for line in out.splitlines() if line.startswith("acme_softsign ")]
    assert row[1:] == ["elementwise", "x", "-", "yes", "yes", "jvp", "rule", "yes"]
    assert [line.split(" of ")[0] for line in err.splitlines()] == [
        "smelt-opt: warning: the ops 'broken'", "smelt-opt: warning: the ops 'stale'"
    ]  # fmt: skip


def test_commands_in_processes(folder: Path) -> None:
    done = python(folder, "-m", "smelt.tools.opt", "f.mlir", "--canonicalize")
    assert done.returncode == 0 and '"smelt.acme_softsign"' in done.stdout, done.stderr
    for device in ("cpu", "metal:sim"):
        done = python(folder, "-m", "smelt.tools", "run", "f.mlir", "--input", "x.npy", "--device", device)
        assert done.returncode == 0 and "-0.75" in done.stdout and "0.2" in done.stdout, done.stderr
    done = python(folder, "-m", "smelt.tools", "dump", "acme_ops:softsign", "f32[4]")
    assert done.returncode == 0 and '"smelt.acme_softsign"' in done.stdout, done.stderr


ORDERS = {
    "before smelt": "import acme_ops, smelt",
    "after smelt": "import smelt; import acme_ops",
    "after the dialect": "import smelt; smelt.eval(smelt.compile(smelt.exp)(smelt.zeros(3))); import acme_ops",
    "by a text": "import smelt; from smelt.ir import text; text.parse(open('f.mlir').read()); import acme_ops",
    "in another thread": (
        "import smelt, importlib, threading; from smelt.ir.dialect import context; context()\n"
        "t = threading.Thread(target=importlib.import_module, args=('acme_ops',)); t.start(); t.join(); import acme_ops"
    ),
}


@pytest.mark.parametrize("order", ORDERS)
def test_orders_of_import(folder: Path, order: str) -> None:
    code = f"{ORDERS[order]}\nprint(smelt.compile(acme_ops.softsign)(smelt.array([-3.0, 1.0])).tolist())"
    done = python(folder, "-c", code)
    assert (done.returncode, done.stdout) == (0, "[-0.75, 0.5]\n"), done.stderr


def test_a_pass_may_define_an_op_and_emit_it(folder: Path) -> None:
    module = text.parse(SOURCE.replace("acme_softsign", "exp"))
    with mlir.lock:
        acme = importlib.import_module("acme_ops")
        from smelt.passes.rewrite import rebuild

        rebuild(module, read_function(functions(module)["main"]), lambda b, op, xs: [b.acme_softsign(xs[0])])
    Pipeline.parse("canonicalize,cse,dce").run(module)
    assert acme and '"smelt.acme_softsign"' in text.to_text(module) and "smelt.exp" not in text.to_text(module)
