"""Every mistake gets an error for the person who made it: what, the rule, their line, what to do."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import smelt
from smelt.ir import errors

X = smelt.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
INTS = smelt.array([1, 2, 3])

MISTAKES = {
    "shapes do not broadcast": (lambda: X + smelt.array([1.0, 2.0]), ValueError, ("add", "(2, 3)", "(2,)")),
    "matmul": (lambda: X @ X, ValueError, ("matmul", "3", "2")),
    "reshape": (lambda: X.reshape(4, 2), ValueError, ("reshape", "6", "(4, 2)")),
    "axis": (lambda: smelt.sum(X, axis=5), ValueError, ("sum", "5")),
    "transpose": (lambda: smelt.transpose(X, (0, 0)), ValueError, ("transpose",)),
    "concatenate": (lambda: smelt.concatenate([X, INTS]), ValueError, ("concatenate",)),
    "static index": (lambda: X[7], IndexError, ("7",)),
    "uneven lists": (lambda: smelt.array([[1.0], [2.0, 3.0]]), ValueError, ("array",)),
    "uneven lists of arrays": (lambda: smelt.asarray([INTS, [1], 2]), ValueError, ("asarray", "(3,)", "(1,)")),
    "arrays beside numbers": (lambda: smelt.array([[1, INTS]]), ValueError, ("smelt.array", "(3,)", "()")),
    "strings": (lambda: smelt.array(["a"]), TypeError, ("array",)),
    "bitwise on floats": (lambda: X & X, TypeError, ("bitwise",)),
    "grad of ints": (lambda: smelt.grad(lambda x: x.sum())(INTS), TypeError, ("grad", "i32")),
    "grad of a vector": (lambda: smelt.grad(lambda x: x)(X), ValueError, ("grad", "scalar")),
    "grad of no array": (lambda: smelt.grad(lambda x: x)(3.0), TypeError, ("grad",)),
    "grad of too few": (lambda: smelt.grad(lambda x: x, argnums=1)(X), ValueError, ("argnums",)),
    "jvp tangent": (lambda: smelt.jvp(lambda x: x, [X], [INTS]), ValueError, ("tangent",)),
    "vmap sizes": (lambda: smelt.vmap(lambda x, y: x)(X, INTS), ValueError, ("vmap", "[2, 3]")),
    "vmap axis": (lambda: smelt.vmap(lambda x: x, in_axes=4)(X), ValueError, ("vmap", "in_axes")),
    "bool of many": (lambda: bool(X > 0), ValueError, ("ambiguous", "any")),
    "item of many": (lambda: X.item(), ValueError, ("item", "(2, 3)")),
    "value under compile": (
        lambda: smelt.compile(lambda x: x * 2 if x.sum() > 0 else x)(X), RuntimeError, ("smelt.where", "compile")
    ),
    "item under compile": (lambda: smelt.compile(lambda x: x.sum().item())(X), RuntimeError, ("compile",)),
    "numpy under compile": (lambda: smelt.compile(lambda x: np.asarray(x))(X), RuntimeError, ("compile",)),
    "numpy argument": (lambda: smelt.compile(lambda x: x)(np.ones(3)), TypeError, ("smelt.array",)),
    "unknown device": (lambda: smelt.set_default_device("cpus"), RuntimeError, ("cpus", "cpu")),
    "unknown pass": (lambda: smelt.compile(lambda x: x, pipeline="csee")(X), ValueError, ("csee", "cse")),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake(name):
    mistake, kind, words = MISTAKES[name]
    with pytest.raises(errors.SmeltError if kind not in (ValueError, TypeError) else kind) as caught:
        mistake()
    assert isinstance(caught.value, kind)
    text = str(caught.value)
    for word in words:
        assert word in text, text
    if name not in ("unknown device", "unknown pass"):
        assert f"{os.path.basename(__file__)}:" in text, text


def test_missing_bindings_say_what_to_install():
    code = "import smelt; smelt.make_ir(lambda x: x + 1)(smelt.array([1.0]))"
    environment = {**os.environ, "SMELT_MLIR_PACKAGE": "no_such_package"}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert run.returncode == 1
    assert "pip install torch-mlir" in run.stderr
    assert "no_such_package" in run.stderr


def test_an_error_inside_a_trace_leaves_everything_usable():
    def bad(x):
        return x @ smelt.ones((7, 7))

    with pytest.raises(ValueError):
        smelt.compile(bad)(X)
    with pytest.raises(ValueError):
        smelt.grad(lambda x: bad(x).sum())(X)
    assert smelt.compile(lambda x: x.sum())(X).item() == 21.0
    assert (X + 1)[0, 0].item() == 2.0


def test_array_from_an_earlier_trace_is_refused():
    leaked = []

    def f(x):
        leaked.append(x * 2)
        return x

    smelt.compile(f)(X)
    with pytest.raises(RuntimeError):
        leaked[0].tolist()
    with pytest.raises(RuntimeError):
        smelt.compile(lambda x: x + leaked[0])(X)


def test_unsupported_operands_are_a_type_error():
    with pytest.raises(TypeError):
        X + "a"
    with pytest.raises(TypeError):
        X @ None


def test_the_cell_of_a_notebook_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the file in which IPython keeps its code."""
    cell = compile("smelt.ones(2) + smelt.ones(3)\n", "/tmp/ipykernel_7/123.py", "exec")
    compiler = SimpleNamespace(format_code_name=lambda name: ("Cell", "In[3]") if "ipykernel" in name else None)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace(compile=compiler)))
    with pytest.raises(smelt.SmeltError, match=r"at cell In\[3\]:1$"):
        exec(cell, {"smelt": smelt})
    with pytest.raises(smelt.SmeltError, match=r"at .+test_errors\.py:\d+$"):
        smelt.ones(2) + smelt.ones(3)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    with pytest.raises(smelt.SmeltError, match=r"ipykernel_7/123\.py:1$"):
        exec(cell, {"smelt": smelt})
