"""Trees, auxiliary values and conventions of the transformations that users call."""

from __future__ import annotations

import dataclasses
from collections import namedtuple
from typing import Any

import numpy as np
import pytest

import smelt

from .checks import same

Pair = namedtuple("Pair", "a b")


@dataclasses.dataclass
class Layer:
    """No class that was registered: it is a tree because it holds arrays."""

    w: Any
    power: int = 3
    name: str = "layer"


@smelt.utils.register_class
class Box:
    def __init__(self, inside: Any):
        self.inside = inside

    def tree_flatten(self):
        return [self.inside], None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)


def array(*values: float) -> smelt.array:
    return smelt.array(list(values))


X, Y = array(1.0, 2.0), array(3.0, 4.0)


class TestGrad:
    def test_nested_containers_and_none(self):
        params = {"a": X, "b": [Y, None, (X,)], "none": None}
        gradient = smelt.grad(lambda p: (p["a"] * p["b"][0] * p["b"][2][0]).sum())(params)
        same(gradient["a"], [3, 8], rtol=1e-6)
        same(gradient["b"][0], [1, 4], rtol=1e-6)
        assert gradient["b"][1] is None and gradient["none"] is None
        assert type(gradient["b"][2]) is tuple

    def test_named_tuples_dataclasses_and_registered_classes(self):
        gradient = smelt.grad(lambda p: (p.a * p.b).sum())(Pair(X, Y))
        assert type(gradient) is Pair
        same(gradient.a, [3, 4])
        gradient = smelt.grad(lambda layer: (layer.w**layer.power).sum())(Layer(X))
        assert (gradient.power, gradient.name) == (3, "layer")
        same(gradient.w, [3, 12])
        same(smelt.grad(lambda box: (box.inside["x"] ** 2).sum())(Box({"x": X})).inside["x"], [2, 4])

    def test_argnums_and_argnames(self):
        def f(x, y, *, z):
            return (x * y * z).sum()

        same(smelt.grad(f, argnums=1)(X, Y, z=X), [1, 4])
        gx, gy = smelt.grad(f, argnums=[0, 1])(X, Y, z=X)
        same(gx, [3, 8])
        same(gy, [1, 4])
        positions, names = smelt.grad(f, argnames="z")(X, Y, z=X)
        assert positions is None
        same(names["z"], [3, 8])
        gy, names = smelt.grad(f, argnums=(1,), argnames=["z"])(X, Y, z=X)
        same(gy, [1, 4])
        same(names["z"], [3, 8])

    @pytest.mark.parametrize("kind", [tuple, list, Pair])
    def test_auxiliary_values(self, kind):
        def f(x):
            loss, aux = (x * x).sum(), {"doubled": 2 * x, "note": "hello", "none": None}
            return Pair(loss, aux) if kind is Pair else kind([loss, aux])

        value, gradient = smelt.value_and_grad(f)(X)
        assert type(value) is kind
        assert value[0].item() == 5 and value[1]["note"] == "hello" and value[1]["none"] is None
        same(value[1]["doubled"], [2, 4])
        same(gradient, [2, 4])
        gradient, aux = smelt.grad(f, has_aux=True)(X)
        same(aux["doubled"], [2, 4])

    def test_values_are_there_and_lists_may_be_built(self):
        seen = []

        def f(x):
            seen.append(x.sum().item())
            return (x * x).sum() if seen[0] > 0 else x.sum()

        same(smelt.grad(f)(X), [2, 4])
        assert seen == [3.0]

    def test_constant_and_unused(self):
        same(smelt.grad(lambda x, y: y.sum())(X, Y), [0, 0])
        same(smelt.grad(lambda x: smelt.array(1.0))(X), [0, 0])
        value, gradient = smelt.value_and_grad(lambda x: smelt.stop_gradient({"x": x, "n": 1})["x"].sum())(X)
        assert value.item() == 3
        same(gradient, [0, 0])


class TestVjpAndJvp:
    def test_lists_as_mlx(self):
        outs, vjps = smelt.vjp(lambda x, y: [x * y, x + y], [X, Y], [array(1.0, 0.0), array(0.0, 1.0)])
        assert type(outs) is list and type(vjps) is list
        same(vjps[0], [3, 1])
        same(vjps[1], [1, 1])
        outs, tangents = smelt.jvp(lambda x, y: (x * y, x), [X, Y], [X, Y])
        assert type(outs) is list and type(tangents) is list
        same(tangents[0], [6, 16])

    def test_tuples_single_arrays_and_numbers(self):
        _outs, (ct,) = smelt.vjp(lambda x: x * x, (X,), X)
        same(ct, [2, 8])
        same(smelt.vjp(lambda x: x * x, smelt.array(3.0), 2)[1][0], np.float32(12))
        same(smelt.jvp(lambda x: x * x, smelt.array(3.0), smelt.array(1.0))[1][0], np.float32(6))

    def test_trees(self):
        def f(p, x):
            return {"y": p["w"] * x, "n": None}

        outs, (dp, dx) = smelt.vjp(f, [{"w": X, "k": "v"}, Y], {"y": X, "n": None})
        same(outs["y"], [3, 8])
        assert outs["n"] is None and dp["k"] == "v"
        same(dp["w"], [3, 8])
        same(dx, [1, 4])
        outs, tangents = smelt.jvp(f, ({"w": X, "k": "v"}, Y), ({"w": X, "k": "v"}, X))
        same(tangents["y"], [4, 12])
        assert tangents["n"] is None

    def test_integer_results_have_no_derivative(self):
        outs, (ct,) = smelt.vjp(lambda x: (x * x, smelt.argmax(x)), [X], [X, smelt.array(0, smelt.uint32)])
        same(ct, [2, 8])
        assert outs[1].item() == 1
        outs, tangents = smelt.jvp(lambda x: (x * x, smelt.argmax(x)), [X], [X])
        assert tangents[1].item() == 0

    def test_aux(self):
        _outs, _, aux = smelt.vjp(lambda x: (x, {"k": x + 1}), [X], [X], has_aux=True)
        same(aux["k"], [2, 3])
        assert smelt.jvp(lambda x: (x, "aux"), [X], [X], has_aux=True)[2] == "aux"
        assert smelt.linearize(lambda x: (x, "aux"), X, has_aux=True)[2] == "aux"
        assert smelt.jacfwd(lambda x: (x, "aux"), has_aux=True)(X)[1] == "aux"
        assert smelt.hessian(lambda x: (x.sum(), "aux"), has_aux=True)(X)[1] == "aux"

    def test_pullback_runs_often(self):
        runs = []

        def f(x, y):
            runs.append(1)
            return smelt.sin(x) * y, x

        outs, pull = smelt.vjp(f, [X, Y])
        for scale in (1.0, 2.0):
            dx, dy = pull([scale * X, Y])
            same(dx, scale * np.cos([1, 2]) * [3, 8] + [3, 4], rtol=1e-6)
            same(dy, scale * np.sin([1, 2]) * [1, 2], rtol=1e-6)
        assert len(runs) == 1 and type(outs) is list


class TestLinearMaps:
    def test_linearize(self):
        y, f_jvp = smelt.linearize(lambda p, x: {"out": smelt.sin(p["w"]) * x}, {"w": X}, Y)
        same(y["out"], np.sin([1, 2]) * [3, 4], rtol=1e-6)
        same(f_jvp({"w": X}, 0 * Y)["out"], np.cos([1, 2]) * [3, 8], rtol=1e-6)
        same(f_jvp({"w": 0 * X}, Y)["out"], np.sin([1, 2]) * [3, 4], rtol=1e-6)

    def test_forward_work_is_done_once(self):
        """A pure tangent program: nothing in it is nonlinear any more."""
        _, f_jvp = smelt.linearize(lambda x: smelt.exp(smelt.tanh(x)) * smelt.sin(x), X)
        text = smelt.make_ir(f_jvp)(Y)
        assert "smelt.mul" in text
        assert not any(f"smelt.{name}" in text for name in ("exp", "tanh", "sin", "cos")), text

    def test_linearize_composes(self):
        x = smelt.array(0.5)
        same(smelt.grad(lambda x: smelt.linearize(smelt.sin, x)[1](smelt.array(1.0)))(x), -np.sin(0.5), rtol=1e-6)
        _, f_jvp = smelt.linearize(lambda x: x**3, X)
        same(smelt.vmap(f_jvp)(smelt.eye(2)), np.diag([3.0, 12.0]).astype(np.float32), rtol=1e-6)
        (t,) = smelt.linear_transpose(f_jvp, X)(Y)
        same(t, [9, 48], rtol=1e-6)
        same(smelt.compile(lambda x: smelt.linearize(smelt.sin, x)[1](x))(x), 0.5 * np.cos(0.5), rtol=1e-6)
        same(smelt.vmap(lambda x: smelt.linearize(smelt.sin, x)[1](x))(X), [1, 2] * np.cos([1, 2]), rtol=1e-6)

    def test_linearize_of_transformed_functions(self):
        _, f_jvp = smelt.linearize(smelt.vmap(smelt.grad(lambda x: x**3)), X)
        same(f_jvp(X), [6, 24], rtol=1e-6)

    def test_through_loops_and_branches(self):
        def f(w, xs):
            def step(h, x):
                h = smelt.tanh(w * h + x)
                return h, h * h

            h, ys = smelt.scan(step, smelt.zeros(2), xs)
            return smelt.cond(ys.sum() > 0, lambda h: (h * h).sum(), lambda h: h.sum(), h) + ys.sum()

        xs = smelt.array([[0.3, -0.4], [0.1, 0.9], [0.5, 0.2]])
        y, f_jvp = smelt.linearize(f, X, xs)
        (want_y,), (want,) = smelt.jvp(f, [X, xs], [Y, xs])
        same(y, want_y, rtol=1e-6)
        same(f_jvp(Y, xs), want, rtol=1e-5)
        text = smelt.make_ir(f_jvp)(Y, xs)
        assert "smelt.tanh" not in text, text
        gradient = smelt.grad(f, (0, 1))(X, xs)
        pulled = smelt.vjp(f, [X, xs])[1](1.0)
        for got, expected in zip(pulled, gradient):
            same(got, expected, rtol=1e-5)

    def test_rules_of_the_users_own_count(self):
        @smelt.custom_function
        def f(x):
            return smelt.sin(x)

        f.vjp(lambda x, cotangent, output: cotangent * 100)
        same(smelt.vjp(f, [X])[1](Y)[0], [300, 400])

        g = smelt.custom_jvp(smelt.sin)
        g.defjvps(lambda t, y, x: 7 * t)
        same(smelt.linearize(g, X)[1](Y), [21, 28])

        block = smelt.checkpoint(lambda x: smelt.sin(smelt.exp(x)))
        want = np.cos(np.exp([1.0, 2.0])) * np.exp([1.0, 2.0])
        same(smelt.linearize(block, X)[1](smelt.ones(2)), want, rtol=1e-4)
        same(smelt.vjp(block, [X])[1](smelt.ones(2))[0], want, rtol=1e-4)

    def test_linear_transpose(self):
        matrix = smelt.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])

        def f(x, tree):
            return matrix @ x + smelt.concatenate([tree["y"], tree["y"][:1]]), 2 * x[0]

        kind = smelt.ShapeDtype((2,), smelt.float32)
        transpose = smelt.linear_transpose(f, kind, {"y": X})
        dx, dy = transpose((array(1.0, 10.0, 100.0), smelt.array(1.0)))
        same(dx, [533, 642])
        same(dy["y"], [101, 10])

    def test_twice_transposed(self):
        f = lambda x: smelt.cumsum(x)[1:] * Y[0]  # noqa: E731
        back = smelt.linear_transpose(lambda ct: smelt.linear_transpose(f, X)(ct)[0], array(1.0))
        same(back(X)[0], f(X), rtol=1e-6)


class TestVmap:
    def test_prefix_trees_and_negative_axes(self):
        def f(p, x, y):
            return {"r": (p["w"] * x).sum() + p["b"][0], "s": y}

        w, x = smelt.ones((2, 3)), smelt.ones((2, 5))
        got = smelt.vmap(f, in_axes=({"w": -1, "b": None}, 1, None), out_axes={"r": 0, "s": None})(
            {"w": smelt.ones((2, 5)), "b": [array(1.0)[0]]}, x, 7
        )
        same(got["r"], np.full(5, 3, np.float32))
        assert got["s"].item() == 7
        same(smelt.vmap(lambda x: x, in_axes=-1, out_axes=-1)(w), np.ones((2, 3), np.float32))
        assert smelt.vmap(lambda x: x, in_axes=-1)(w).shape == (3, 2)
        assert smelt.vmap(lambda x: x[None], out_axes=1)(X).shape == (1, 2)

    def test_classes_as_axes(self):
        got = smelt.vmap(lambda p: p.a * p.b, in_axes=(Pair(0, None),))(Pair(X, smelt.array(2.0)))
        same(got, [2, 4])
        got = smelt.vmap(lambda p: p.a * p.b, in_axes=Pair(0, None))(Pair(X, smelt.array(2.0)))
        same(got, [2, 4])
        same(smelt.vmap(lambda layer: layer.w * layer.power)(Layer(X)), [3, 6])
        same(smelt.vmap(lambda box: Box(box.inside + 1), out_axes=Box(0))(Box(X)).inside, [2, 3])

    def test_keywords_none_and_what_is_no_array(self):
        same(smelt.vmap(lambda x, *, k: x * k)(X, k=Y), [3, 8])
        same(smelt.vmap(lambda x, *, mode: x + 1 if mode == "one" else x)(X, mode="one"), [2, 3])
        same(smelt.vmap(lambda x, y: x if y is None else y)(X, None), [1, 2])
        same(smelt.vmap(lambda p: p["x"] * p["n"])({"x": X, "n": 3}), [3, 6])
        same(smelt.vmap(lambda f, x: f(x), in_axes=(None, 0))(smelt.square, X), [1, 4])

    def test_results_that_are_not_mapped(self):
        a, none, number, ones = smelt.vmap(lambda x: (x, None, 2.0, smelt.ones(3)), out_axes=(0, 0, None, -1))(X)
        same(a, [1, 2])
        assert none is None and number.item() == 2.0
        same(ones, np.ones((3, 2), np.float32))
        assert smelt.vmap(lambda x: {})(X) == {}
        assert smelt.vmap(lambda x: None)(X) is None

    def test_empty_axis(self):
        assert smelt.vmap(lambda x: x.sum())(smelt.zeros((0, 3))).shape == (0,)

    def test_axes_two_levels_deep(self):
        rng = np.random.default_rng(0)
        x, y = rng.standard_normal((4, 2, 3)), rng.standard_normal((2, 4))

        def inner(row, scale):
            return smelt.sin(row) * scale

        got = smelt.vmap(smelt.vmap(inner, in_axes=(1, None), out_axes=1), in_axes=(1, 0), out_axes=2)(
            smelt.array(x, smelt.float64), smelt.array(y, smelt.float64)
        )
        want = np.stack([np.stack([np.sin(x[:, i, j]) * y[i] for j in range(3)], 1) for i in range(2)], 2)
        same(got, want, rtol=1e-12)
