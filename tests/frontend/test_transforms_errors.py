"""Mistakes with transformations: typed errors that say what, where, and what to do."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir import errors

X = smelt.array([1.0, 2.0])
M = smelt.zeros((3, 4))
ONE = smelt.array(1.0)
INTS = smelt.array([1, 2])

Shape, DType, Tree = errors.ShapeError, errors.DTypeError, errors.TreeError


def total(x: Any) -> Any:
    return x.sum()


MISTAKES: dict[str, tuple[Callable, type, tuple[str, ...]]] = {
    "grad of what is no function": (lambda: smelt.grad(3), Tree, ("smelt.grad", "function", "an int")),
    "grad of ints": (lambda: smelt.grad(total)(INTS), DType, ("argument 0 of total", "i32[2]", "astype")),
    "ints in a tree": (
        lambda: smelt.grad(lambda p: p["a"].sum())({"a": X, "b": [INTS]}), DType, ("argument 0['b'][0]", "i32[2]")
    ),
    "grad of a float": (lambda: smelt.grad(total)(3.0), Tree, ("a float", "smelt.array")),
    "grad of numpy": (lambda: smelt.grad(total)(np.ones(2)), Tree, ("NumPy", "smelt.array")),
    "vmap of numpy": (lambda: smelt.vmap(total)(np.ones(2)), Tree, ("is a NumPy array", "smelt.array(x)")),
    "compile of numpy": (lambda: smelt.compile(total)(np.ones(2)), Tree, ("a NumPy array", "smelt.array(x)")),
    "grad of no array": (lambda: smelt.grad(total)({"a": None, "b": 3}), Tree, ("argument 0", "array")),
    "vector loss": (lambda: smelt.grad(lambda x: x)(X), Shape, ("scalar", "f32[2]", "smelt.vjp")),
    "integer loss": (lambda: smelt.grad(lambda x: smelt.argmax(x))(X), DType, ("floating-point", "ui32")),
    "loss of None": (lambda: smelt.grad(lambda x: None)(X), Tree, ("scalar array", "None")),
    "float loss": (lambda: smelt.grad(lambda x: 1.0)(X), Tree, ("scalar array", "a float")),
    "loss taken out": (lambda: smelt.grad(lambda x: x.sum().item())(X), Tree, ("a float", "leave out .item()")),
    "argnums too large": (lambda: smelt.grad(total, argnums=2)(X), ValueError, ("argnums (2,)", "1 positional")),
    "argnums negative": (lambda: smelt.grad(total, argnums=-1), ValueError, ("negative",)),
    "argnums repeated": (lambda: smelt.grad(total, argnums=(0, 0)), ValueError, ("repeat",)),
    "argnums of text": (lambda: smelt.grad(total, argnums="x"), Tree, ("argnums", "'x'")),
    "argnames missing": (lambda: smelt.grad(total, argnames="y")(X), ValueError, ("keyword 'y'",)),
    "nothing to differentiate": (lambda: smelt.grad(total, argnums=()), ValueError, ("nothing",)),
    "aux is no pair": (lambda: smelt.grad(total, has_aux=True)(X), Tree, ("has_aux", "pair")),
    "vjp count": (lambda: smelt.vjp(lambda x: (x, x), [X], [X]), Tree, ("2 results", "f32[2]", "1 cotangents")),
    "vjp shape": (lambda: smelt.vjp(total, [X], [X]), Shape, ("cotangent", "f32[2]", "f32[]")),
    "vjp dtype": (lambda: smelt.vjp(lambda x: x, [X], [INTS]), DType, ("cotangent", "i32[2]", "f32[2]")),
    "vjp primals": (lambda: smelt.vjp(total, {"x": X}, [ONE]), Tree, ("list or tuple", "a dict")),
    "hessian of ints": (lambda: smelt.hessian(total)(INTS), DType, ("argument 0", "i32[2]")),
    "vjp tree": (
        lambda: smelt.vjp(lambda x: {"y": [x]}, [X], {"y": X}), Tree, ("result['y']", "a list", "an array")
    ),
    "vjp result": (lambda: smelt.vjp(lambda x: {"y": "s"}, [X], [X]), Tree, ("result['y']", "a str")),
    "jvp count": (lambda: smelt.jvp(total, [X], [X, X]), Tree, ("1 primals", "2 tangents")),
    "jvp shape": (lambda: smelt.jvp(total, [X], [ONE]), Shape, ("tangent of primal 0", "f32[]", "f32[2]")),
    "jvp tree": (
        lambda: smelt.jvp(lambda p: p["a"], [{"a": X}], [{"b": X}]), Tree, ("primal 0", "['a']", "['b']")
    ),
    "jvp of numbers": (lambda: smelt.jvp(total, [X], 3.0), Tree, ("tangents", "a float")),
    "linearized": (lambda: smelt.linearize(total, X)[1](M), Shape, ("linearize", "tangent", "f32[3,4]")),
    "not linear": (
        lambda: smelt.linear_transpose(lambda x: x * x, X), errors.NotDifferentiableError, ("smelt.mul", "f32[2]")
    ),
    "not linear in a vmap": (
        lambda: smelt.linear_transpose(smelt.vmap(smelt.sin), X), errors.NotDifferentiableError, ("smelt.sin",)
    ),
    "not linear in the divisor": (
        lambda: smelt.linear_transpose(lambda x: 1 / x, X), errors.NotDifferentiableError, ("smelt.div",)
    ),
    "transposed cotangent": (
        lambda: smelt.linear_transpose(lambda x: {"y": x}, X)({"z": X}), Tree, ("result", "['y']", "['z']")
    ),
    "jacobian of ints": (lambda: smelt.jacrev(total)(INTS), DType, ("smelt.jacrev", "argument 0", "i32[2]")),
    "jacobian to ints": (lambda: smelt.jacfwd(smelt.argmax)(X), DType, ("result of argmax", "ui32")),
    "complex jacobian": (
        lambda: smelt.jacfwd(lambda x: x)(smelt.array(1j)), DType, ("complex", "smelt.jvp")
    ),
    "vmap of what is no function": (lambda: smelt.vmap(X), Tree, ("smelt.vmap", "function")),
    "vmap sizes": (
        lambda: smelt.vmap(lambda p, y: y, in_axes=(0, 1))({"w": X}, M), Shape,
        ("p['w'] f32[2] axis 0 of size 2", "y f32[3,4] axis 1 of size 4"),
    ),
    "vmap axis": (lambda: smelt.vmap(total, in_axes=2)(M), Shape, ("in_axes entry 2", "x, f32[3,4]", "[-2, 1]")),
    "vmap of a scalar": (lambda: smelt.vmap(lambda x: x)(ONE), Shape, ("scalar has no axis",)),
    "vmap of a number": (lambda: smelt.vmap(lambda x, y: x)(X, 2.0), Tree, ("argument 1", "a float", "None")),
    "vmap of nothing": (lambda: smelt.vmap(lambda x: x, in_axes=None)(X), Shape, ("no argument", "in_axes=None")),
    "vmap without arguments": (lambda: smelt.vmap(lambda: ONE)(), Shape, ("without arguments",)),
    "vmap axes count": (lambda: smelt.vmap(total, in_axes=(0, 0))(X), Tree, ("2 entries", "1 positional")),
    "vmap axes keys": (
        lambda: smelt.vmap(lambda p: p["b"], in_axes=({"a": 0},))({"b": X}), Tree, ("['a']", "['b']")
    ),
    "vmap axes deep": (
        lambda: smelt.vmap(lambda p: p["b"], in_axes=({"b": (0, 0)},))({"b": (X, (X, X), X)}), Tree,
        ("argument 0['b']", "2 entries", "has 3"),
    ),
    "vmap axes of text": (lambda: smelt.vmap(total, in_axes="0"), Tree, ("ints and None", "a str")),
    "vmap out axis": (
        lambda: smelt.vmap(lambda x: {"y": x}, out_axes=3)(X), Shape, ("out_axes entry 3", "result['y']", "[-1, 0]")
    ),
    "vmap out None": (lambda: smelt.vmap(lambda x: x, out_axes=None)(X), Shape, ("out_axes is None", "depends")),
    "vmap out tree": (lambda: smelt.vmap(lambda x: x, out_axes=(0, 0))(X), Tree, ("out_axes (0, 0)", "result")),
    "vmap result": (lambda: smelt.vmap(lambda x: {"k": "s"})(X), Tree, ("result['k']", "a str")),
    "value in vmap": (lambda: smelt.vmap(lambda x: x if x > 0 else -x)(X), errors.TraceError, ("smelt.where",)),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake(name):
    mistake, kind, words = MISTAKES[name]
    with pytest.raises(kind) as caught:
        mistake()
    text = str(caught.value)
    for word in (*words, f"{os.path.basename(__file__)}:"):
        assert word in text, text


def _escaped(transform: Callable) -> smelt.array:
    kept = []

    def f(x):
        kept.append(x * 2)
        return x.sum()

    transform(f)(smelt.array([[1.0, 2.0], [3.0, 4.0]]))
    return kept[0]


USES = {
    "grad": lambda x: smelt.grad(lambda y: (y * x).sum())(X),
    "grad of it": lambda x: smelt.grad(lambda x: x.sum())(x),
    "vjp": lambda x: smelt.vjp(lambda y: y * x.sum(), [ONE], [ONE]),
    "jvp": lambda x: smelt.jvp(lambda y: y * x.sum(), [ONE], [ONE]),
    "vmap": lambda x: smelt.vmap(lambda y: y * x.sum())(X),
    "jacrev": lambda x: smelt.jacrev(lambda y: y * x.sum())(X),
    "linearize": lambda x: smelt.linearize(lambda y: y * x.sum(), ONE),
    "linear_transpose": lambda x: smelt.linear_transpose(lambda y: y * x.sum(), ONE),
    "compile": lambda x: smelt.compile(lambda y: y * x.sum())(X),
    "vmap in compile": lambda x: smelt.compile(lambda z: smelt.vmap(lambda y: y * x.sum())(z))(X),
    "item": lambda x: x.sum().item(),
}


@pytest.mark.parametrize("trace", [smelt.vmap, smelt.compile], ids=["vmap", "compile"])
@pytest.mark.parametrize("use", USES)
def test_arrays_of_a_finished_trace(use, trace):
    x = _escaped(trace)
    with pytest.raises(errors.TraceError) as caught:
        USES[use](x)
    assert f"{os.path.basename(__file__)}:" in str(caught.value)
    assert "trace" in str(caught.value)


def test_an_error_inside_leaves_nothing_behind():
    def fails(x):
        x += 1
        raise KeyError("mine")

    x = smelt.array([1.0, 2.0])
    for transformed in (smelt.grad(fails), smelt.vmap(fails), smelt.jacrev(fails), smelt.compile(fails)):
        with pytest.raises(KeyError, match="mine"):
            transformed(x)
    assert x.tolist() == [1.0, 2.0]
    assert smelt.grad(lambda x: (x * x).sum())(x).tolist() == [2.0, 4.0]
    assert (x + 1).sum().item() == 5.0


@pytest.mark.parametrize("transform", [smelt.compile, smelt.vmap])
@pytest.mark.parametrize(
    ("use", "says"),
    [
        (lambda x: x.sum().item(), r"by \.item\(\) .* as they are"),
        (lambda x: x.tolist(), r"by \.tolist\(\) "),
        (lambda x: float(x.sum()), r"by float\(\) "),
        (lambda x: smelt.save("nowhere.npy", x), r"by smelt\.save "),
        (lambda x: x.reshape(x.astype(smelt.int32).sum()), r"by smelt\.reshape .* sets a shape"),
        (lambda x: x[: x.astype(smelt.int32).sum()], r"^the value .* sets a shape"),
    ],
)
def test_who_asks_for_a_value_that_is_not_there(transform: Any, use: Any, says: str) -> None:
    with pytest.raises(errors.TraceError, match=says):
        transform(use)(smelt.ones((2, 2)))


def test_what_is_no_bound_of_a_slice_is_said_once() -> None:
    with pytest.raises(errors.ArgumentTypeError) as error:
        X[: X.sum()]
    assert str(error.value).count("test_transforms_errors.py") == 1
