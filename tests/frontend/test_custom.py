"""custom_function, custom_vjp, custom_jvp and checkpoint."""

from __future__ import annotations

import math

import numpy as np
import pytest

import smelt
from smelt import array, custom_function, custom_jvp, custom_vjp
from smelt.ir.errors import DTypeError, ShapeError, TraceError, TreeError
from smelt.ir.settings import settings

ONE = array(1.0)


def values(x) -> np.ndarray:
    return np.asarray(x, dtype=np.float64)


# custom_function


def doubling():
    """exp whose vjp rule has a factor of 2 and whose jvp rule has one of 3."""

    @custom_function
    def f(x):
        return smelt.exp(x)

    f.vjp(lambda x, ct, y: 2 * ct * y)
    f.jvp(lambda x, t: 3 * t * smelt.exp(x))
    return f


def test_without_rules_it_is_the_function():
    f = custom_function(smelt.exp)
    assert f(ONE).item() == pytest.approx(math.e)
    assert smelt.grad(f)(ONE).item() == pytest.approx(math.e)
    (_,), (t,) = smelt.jvp(f, [ONE], [ONE])
    assert t.item() == pytest.approx(math.e)
    np.testing.assert_allclose(values(smelt.vmap(f)(smelt.zeros(3))), 1)


def test_each_rule_is_used_in_its_mode():
    f = doubling()
    assert f(ONE).item() == pytest.approx(math.e)
    assert smelt.grad(f)(ONE).item() == pytest.approx(2 * math.e)
    (y,), (t,) = smelt.jvp(f, [ONE], [ONE])
    assert (y.item(), t.item()) == (pytest.approx(math.e), pytest.approx(3 * math.e))


def test_rules_may_be_set_as_decorators():
    @custom_function
    def f(x, y):
        return smelt.sin(x) * y

    @f.vjp
    def f_vjp(primals, cotangent, output):
        x, y = primals
        assert output.shape == x.shape
        return cotangent * smelt.cos(x) * y, cotangent * 100

    assert isinstance(f_vjp, custom_function)
    dx, dy = smelt.grad(f, argnums=(0, 1))(ONE, array(2.0))
    assert dx.item() == pytest.approx(2 * math.cos(1))
    assert dy.item() == 100


def test_reverse_mode_transposes_a_jvp_rule():
    f = custom_function(smelt.exp)
    f.jvp(lambda x, t: 7 * t)
    assert smelt.grad(f)(ONE).item() == 7


def test_keyword_arguments_are_bound_to_positions():
    @custom_function
    def f(x, scale=2.0):
        return x * scale

    f.vjp(lambda primals, ct, y: (ct * 5, None))
    assert smelt.grad(lambda x: f(x, scale=3.0))(ONE).item() == 5
    assert smelt.grad(lambda x: f(scale=3.0, x=x))(ONE).item() == 5


def test_trees():
    @custom_function
    def f(params):
        return {"out": 2 * params["x"] * params["y"]}

    p = {"x": smelt.ones(2), "y": smelt.ones(2)}

    def loss(p):
        return f(p)["out"].sum()

    np.testing.assert_allclose(values(smelt.grad(loss)(p)["x"]), 2)
    f.vjp(lambda p, ct, out: {"x": None, "y": smelt.ones_like(p["y"]) + 0 * ct["out"] + 0 * out["out"]})
    got = smelt.grad(loss)(p)
    np.testing.assert_allclose(values(got["x"]), 0)
    np.testing.assert_allclose(values(got["y"]), 1)


def test_integers_and_other_leaves_pass_through():
    @custom_function
    def f(x, n, mode):
        assert mode == "twice"
        return x * n, n + 1

    f.vjp(lambda primals, ct, out: (ct[0] * 10, None, None))
    dx = smelt.grad(lambda x: f(x, array(3), "twice")[0])(ONE)
    assert dx.item() == 10


def test_values_are_there_inside_of_grad():
    @custom_function
    def f(x):
        return x * 2 if x.item() > 0 else x * 3

    f.vjp(lambda x, ct, y: ct * (5 if x.item() > 0 else 7))

    def g(x):
        y = f(x)
        return y * 2 if y.item() > 0 else y

    assert smelt.grad(g)(ONE).item() == 10
    assert smelt.grad(g)(-ONE).item() == 7


def test_arrays_from_outside_are_constants_of_the_rules():
    w = array(4.0)

    def loss(x, w):
        f = custom_function(lambda x: x * w)
        f.vjp(lambda x, ct, y: ct * w * 10)
        return f(x)

    dx, dw = smelt.grad(loss, argnums=(0, 1))(ONE, w)
    assert (dx.item(), dw.item()) == (40, 0)


def test_arrays_from_outside_without_rules_get_their_gradient():
    def loss(x, w):
        return custom_function(lambda x: x * w)(x)

    assert smelt.grad(loss, argnums=1)(ONE, array(4.0)).item() == 1


def test_rule_that_calls_its_function_holds_at_every_order():
    @custom_function
    def f(x):
        return smelt.exp(x)

    f.vjp(lambda x, ct, y: 2 * ct * f(x))
    g = f
    for order in range(4):
        assert g(ONE).item() == pytest.approx(2**order * math.e, rel=1e-6)
        g = smelt.grad(g)


def test_compile_in_every_order():
    f = doubling()
    g = smelt.grad(lambda x: f(x).sum())
    x = smelt.array([0.0, 1.0])
    want = 2 * np.exp([0, 1])
    for h in (g, smelt.compile(g), smelt.grad(smelt.compile(lambda x: f(x).sum())), smelt.vmap(smelt.grad(f)),
              smelt.compile(smelt.vmap(smelt.grad(f))), smelt.grad(lambda x: smelt.vmap(f)(x).sum()),
              smelt.jacrev(lambda x: f(x).sum())):  # fmt: skip
        np.testing.assert_allclose(values(h(x)), want, rtol=1e-6)


def test_derivatives_of_a_batch_where_some_arguments_are_shared():
    f = custom_function(lambda x, w: (x * w).sum())
    f.vjp(lambda primals, ct, y: (ct * primals[1] * 2, ct * primals[0] * 3))
    x, w = smelt.arange(6.0).reshape(2, 3), smelt.array([1.0, 2.0, 3.0])
    dx, dw = smelt.grad(lambda x, w: smelt.vmap(f, in_axes=(0, None))(x, w).sum(), argnums=(0, 1))(x, w)
    np.testing.assert_allclose(values(dx), np.stack([[2, 4, 6]] * 2))
    np.testing.assert_allclose(values(dw), 3 * np.arange(6.0).reshape(2, 3).sum(0))


def test_control_flow():
    f = doubling()
    c, d = 1.0, 1.0
    for _ in range(3):
        y = math.exp(0.1 * c)
        c, d = y, d * 2 * y * 0.1

    def loop(x):
        return smelt.scan(lambda c, _: (f(c * 0.1), c), x, None, length=3)[0]

    assert loop(ONE).item() == pytest.approx(c)
    assert smelt.grad(loop)(ONE).item() == pytest.approx(d, rel=1e-5)

    def branch(x):
        return smelt.cond(x > 0, f, lambda v: v, x)

    assert smelt.grad(branch)(ONE).item() == pytest.approx(2 * math.e)
    assert smelt.grad(branch)(-ONE).item() == 1


def test_linear_maps():
    f = doubling()
    _, pullback = smelt.vjp(f, [ONE])
    assert pullback(ONE)[0].item() == pytest.approx(2 * math.e)
    _, push = smelt.linearize(f, ONE)
    assert push(ONE).item() == pytest.approx(3 * math.e)


# vmap rules


def mapped():
    calls: list = []
    f = custom_function(lambda x, y: x * y)

    @f.vmap
    def rule(inputs, axes):
        calls.append((tuple(v.shape for v in inputs), axes))
        return inputs[0] * 1000, 0 if axes[0] is not None else None

    return f, calls


def test_vmap_rule_of_a_direct_and_an_indirect_call():
    f, calls = mapped()
    x = smelt.ones((5, 2))
    np.testing.assert_allclose(values(smelt.vmap(f)(x, x)), 1000)
    got = smelt.vmap(lambda x: 2 * f(x + 0, smelt.ones(2)), in_axes=1)(smelt.ones((2, 5)))
    np.testing.assert_allclose(values(got), np.full((5, 2), 2000))
    assert calls == [(((5, 2), (5, 2)), (0, 0)), (((5, 2), (2,)), (0, None))]


def test_vmap_rule_outside_of_vmap_is_not_asked():
    f, calls = mapped()
    assert f(ONE, ONE).item() == 1
    assert smelt.compile(lambda x: f(x, x))(ONE).item() == 1
    assert not calls


def test_vmap_rule_of_the_inner_one_of_two():
    f, calls = mapped()
    x = smelt.ones((3, 5, 2))
    np.testing.assert_allclose(values(smelt.vmap(smelt.vmap(f))(x, x)), 1000)
    assert calls == [(((5, 2), (5, 2)), (0, 0))]
    got = smelt.vmap(lambda a: smelt.vmap(lambda b: b + f(a, a))(smelt.zeros((4, 2))))(smelt.ones((3, 2)))
    np.testing.assert_allclose(values(got), np.full((3, 4, 2), 1000))
    assert calls[-1] == (((3, 2), (3, 2)), (0, 0))


def test_vmap_rule_below_a_derivative():
    f, _ = mapped()
    f.vjp(lambda primals, ct, y: (7 * ct, y))
    y, dx = smelt.vmap(smelt.value_and_grad(f))(smelt.ones(4), smelt.ones(4))
    np.testing.assert_allclose(values(y), 1000)
    np.testing.assert_allclose(values(dx), 7)


def test_vmap_rule_that_calls_its_function():
    f = custom_function(lambda x: x * 2)
    f.vmap(lambda x, axis: (f(x) + 1, axis))
    np.testing.assert_allclose(values(smelt.vmap(f)(smelt.ones(3))), 3)


# custom_vjp and custom_jvp


def test_custom_vjp():
    @custom_vjp
    def f(x, y):
        return x * y

    f.defvjp(lambda x, y: (x * y, {"x": x, "k": 5}), lambda res, ct: (ct * res["k"], ct * res["x"]))
    assert f(array(2.0), array(3.0)).item() == 6
    for h in (smelt.grad(f, argnums=(0, 1)), smelt.compile(smelt.grad(f, argnums=(0, 1)))):
        assert [d.item() for d in h(array(2.0), array(3.0))] == [5, 2]
    got = smelt.vmap(smelt.grad(f, argnums=(0, 1)), in_axes=(0, None))(smelt.arange(3.0), array(3.0))
    np.testing.assert_allclose(values(got[0]), 5)
    np.testing.assert_allclose(values(got[1]), [0, 1, 2])
    got = smelt.grad(lambda x, y: smelt.vmap(f, in_axes=(0, None))(x, y).sum(), argnums=1)(smelt.arange(3.0), ONE)
    assert got.item() == 3


@pytest.mark.parametrize("nested", [
    lambda a, b: ([a], b), lambda a, b: ([[a]], (b,)), lambda a, b: [[a, b]], lambda a, b: (a, [b]),
])  # fmt: skip
def test_what_rules_return_is_taken_in_its_order_whatever_lists_it_is_in(nested):
    """A kernel that a rule calls returns a list, which rules for MLX hand on as it is."""
    f = custom_function(lambda x, y: x * y)
    f.vjp(lambda p, ct, y: nested(2 * ct, 3 * ct))
    x, y = smelt.array([1.0, 2.0]), smelt.array([3.0, 4.0])
    for transform in (lambda g: g, smelt.compile):
        found = transform(lambda x, y: smelt.vjp(f, [x, y], [smelt.ones(2)])[1])(x, y)
        assert [d.tolist() for d in found] == [[2.0, 2.0], [3.0, 3.0]]
    pair = custom_function(lambda x, y: (x * y, x + y))
    pair.jvp(lambda p, t: nested(5 * t[0], 7 * t[1]))
    assert [d.tolist() for d in smelt.jvp(pair, [x, y], [smelt.ones(2)] * 2)[1]] == [[5.0, 5.0], [7.0, 7.0]]
    for axes in ((0, 0), nested(0, 0), 0):
        pair.vmap(lambda inputs, _, axes=axes: (nested(5 * inputs[0], 7 * inputs[1]), axes))
        assert [d.tolist() for d in smelt.vmap(pair)(x, y)] == [[5.0, 10.0], [21.0, 28.0]]


def test_what_rules_return_is_taken_in_its_order_where_that_says_all():
    x, y = smelt.array([1.0, 2.0]), smelt.array([3.0, 4.0])
    one = custom_function(lambda x: 2 * x)
    for axes in (0, [0]):
        one.vmap(lambda x, _, axes=axes: ([5 * x], axes))
        assert smelt.vmap(one)(x).tolist() == [5.0, 10.0]
    alone = custom_function(lambda xs: xs[0] * xs[1])
    alone.vjp(lambda p, ct, y: [[4 * ct], 5 * ct])
    assert [d.tolist() for d in smelt.grad(lambda xs: alone(xs).sum())([x, y])] == [[4.0, 4.0], [5.0, 5.0]]
    keyed = custom_function(lambda tree: tree["b"] * tree["a"])
    keyed.vjp(lambda p, ct, y: [ct, ct])
    with pytest.raises(TreeError, match="structure"):  # in which order is not said
        smelt.grad(lambda tree: keyed(tree).sum())({"b": x, "a": y})


def test_custom_vjp_with_static_arguments():
    f = custom_vjp(lambda g, x: g(x), nondiff_argnums=(0,))
    f.defvjp(lambda g, x: (g(x), x), lambda g, res, ct: (ct * g(res) * 10,))
    assert smelt.grad(lambda x: f(smelt.exp, x))(ONE).item() == pytest.approx(10 * math.e)


def test_custom_vjp_second_order():
    f = custom_vjp(lambda x: x**3)
    f.defvjp(lambda x: (x**3, x), lambda x, ct: (ct * 3 * x**2,))
    assert smelt.grad(smelt.grad(f))(array(2.0)).item() == pytest.approx(12)


def test_custom_jvp():
    f = custom_jvp(lambda x, y: x * y)
    f.defjvp(lambda primals, ts: (primals[0] * primals[1], 10 * ts[0] + 20 * ts[1]))
    assert [d.item() for d in smelt.grad(f, argnums=(0, 1))(ONE, ONE)] == [10, 20]
    _, (t,) = smelt.jvp(f, [ONE, ONE], [ONE, ONE])
    assert t.item() == 30
    f.defjvps(lambda t, out, x, y: t * y * 3, None)
    assert [d.item() for d in smelt.grad(f, argnums=(0, 1))(ONE, array(2.0))] == [6, 0]


def test_safe_sqrt_has_no_nan():
    f = custom_jvp(smelt.sqrt)
    f.defjvps(lambda t, y, x: t * smelt.where(x > 0, 1 / (2 * y), 0))
    got = smelt.grad(lambda x: f(x).sum())(smelt.array([0.0, 4.0]))
    np.testing.assert_allclose(values(got), [0, 0.25])


# checkpoint


def block(x):
    return smelt.sin(smelt.exp(smelt.sin(x)))


@pytest.mark.parametrize("transform", [
    lambda f: smelt.grad(lambda x: f(x).sum()),
    lambda f: smelt.grad(lambda x: smelt.grad(lambda x: f(x).sum())(x).sum()),
    lambda f: smelt.vmap(smelt.grad(f)),
    lambda f: smelt.grad(lambda x: smelt.vmap(f)(x).sum()),
    lambda f: lambda x: smelt.jvp(f, [x], [x])[1][0],
    lambda f: smelt.hessian(lambda x: f(x).sum()),
    lambda f: smelt.compile(smelt.grad(lambda x: f(x).sum())),
    lambda f: smelt.grad(lambda x: smelt.scan(lambda c, _: (f(c), c), x, None, length=4)[0].sum()),
])  # fmt: skip
def test_checkpoint_changes_no_values(transform):
    x = smelt.array([0.1, 0.5, -0.7])
    np.testing.assert_allclose(
        values(transform(smelt.checkpoint(block))(x)), values(transform(block)(x)), rtol=2e-6, atol=1e-7
    )


def test_checkpoint_gives_gradients_to_arrays_from_outside():
    def loss(x, w):
        return smelt.checkpoint(lambda v: smelt.sin(v * w))(x)

    dx, dw = smelt.grad(loss, argnums=(0, 1))(array(2.0), array(3.0))
    assert dx.item() == pytest.approx(3 * math.cos(6), rel=1e-5)
    assert dw.item() == pytest.approx(2 * math.cos(6), rel=1e-5)


def test_checkpoint_trees_and_keywords():
    f = smelt.checkpoint(lambda p, n, *, scale: {"y": p["w"] * scale * n, "n": n})
    d = smelt.grad(lambda p: f(p, 2, scale=array(3.0))["y"])({"w": ONE})
    assert d["w"].item() == 6


@pytest.mark.host("it counts the CPU's temporaries")
def test_checkpoint_uses_less_memory():
    def loss(wrap):
        def run(x):
            for _ in range(6):
                x = wrap(lambda v: smelt.sin(smelt.sin(smelt.sin(v @ v) @ v) @ v))(x)
            return x.sum()

        return smelt.compile(smelt.grad(run))

    x = smelt.array(np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32) / 8)
    plain, checkpointed = loss(lambda f: f), loss(smelt.checkpoint)
    settings.tier = "program"  # which plans its memory
    np.testing.assert_allclose(values(checkpointed(x)), values(plain(x)), rtol=1e-3, atol=1e-5)
    used = [next(iter(f._store.entries.values())).executable.arena_bytes for f in (plain, checkpointed)]
    assert used[1] < 0.6 * used[0]


def test_arguments_updated_inside_belong_to_the_function():
    def f(x):
        x += 1
        return x * x

    x = array(2.0)
    assert smelt.checkpoint(f)(x).item() == 9
    assert x.item() == 2
    assert smelt.grad(smelt.checkpoint(f))(x).item() == 6
    assert x.item() == 2


# Errors


def broken(rule, mode="vjp", fun=lambda x, y: x * y):
    f = custom_function(fun)
    getattr(f, mode)(rule)
    return f


@pytest.mark.parametrize("rule, error, match", [
    (lambda p, ct, y: ct, TreeError, r"vjp rule of .* must return a tuple with a cotangent for each argument"),
    (lambda p, ct, y: (ct,), TreeError, r"must return 2 cotangents, one an argument, returned 1"),
    (lambda p, ct, y: (ct, smelt.ones(3)), ShapeError, r"cotangent of argument 1 is float32\[3\]|argument 1"),
    (lambda p, ct, y: (ct, ct.astype(smelt.float16)), DTypeError, r"argument 1"),
    (lambda p, ct, y: (ct, {"a": ct}), TreeError, r"structure"),
    (lambda p, ct, y: (ct, ct * ct.item()), TraceError, r"value"),
])  # fmt: skip
def test_vjp_rules_that_are_wrong(rule, error, match):
    with pytest.raises(error, match=match):
        smelt.grad(broken(rule))(ONE, ONE)


def test_jvp_rules_that_are_wrong():
    with pytest.raises(ShapeError, match="jvp rule"):
        smelt.jvp(broken(lambda p, t: smelt.ones(3), "jvp"), [ONE, ONE], [ONE, ONE])
    f = custom_jvp(smelt.exp)
    f.defjvp(lambda p, t: t[0])
    with pytest.raises(TreeError, match="pair"):
        smelt.jvp(f, [ONE], [ONE])


def test_vmap_rules_that_are_wrong():
    x = smelt.ones(3)
    with pytest.raises(TreeError, match="pair"):
        smelt.vmap(broken(lambda i, a: i[0], "vmap"))(x, x)
    with pytest.raises(ShapeError, match="vmap rule"):
        smelt.vmap(broken(lambda i, a: (smelt.ones(4), 0), "vmap"))(x, x)
    with pytest.raises(ShapeError, match="axis 5"):
        smelt.vmap(broken(lambda i, a: (i[0], 5), "vmap"))(x, x)


def test_arguments_that_are_wrong():
    with pytest.raises(TreeError, match="custom_function"):
        custom_function(3)
    with pytest.raises(TreeError, match=r"custom_function\.vjp"):
        custom_function(smelt.exp).vjp(None)
    with pytest.raises(TreeError, match="checkpoint"):
        smelt.checkpoint(None)
    f = custom_function(lambda x, *, n: x * n)
    f.vjp(lambda x, ct, y: ct)
    with pytest.raises(TreeError, match=r"keyword-only arguments \(n\)"):
        smelt.grad(lambda x: f(x, n=2))(ONE)


# Cotangents that a vjp rule stores


def close(found, want) -> None:
    np.testing.assert_allclose(np.asarray(found), want, rtol=1e-5)


def storing(kept: list):
    """The identity, whose vjp rule keeps something that is made of its cotangent."""

    @custom_function
    def f(x):
        return x

    @f.vjp
    def f_vjp(x, ct, y):
        kept.append(ct * 2 + x)
        return 5 * ct

    return f


def test_cotangents_that_a_rule_stores_have_values() -> None:
    kept: list = []
    f = storing(kept)
    x = array([1.0, 2.0, 0.0])
    gradient = smelt.grad(lambda x: (smelt.sin(f(x * 2)) + f(x) ** 2).sum())(x)
    close(gradient, 10 * np.cos(2 * values(x)) + 10 * values(x))
    close(kept[0], 2 * np.cos(2 * values(x)) + 2 * values(x))
    close(kept[1], 2 * 2 * values(x) + values(x))
    smelt.grad(lambda z: (f(z) * np.array([1j, 2])).real.sum())(array([1 + 2j, 3j]))
    close(kept[2], [1, 4 + 3j])  # the gradient is the conjugate of the factor


def test_cotangents_that_a_rule_stores_depend_on_outer_variables() -> None:
    def outer(x):
        kept: list = []
        f = storing(kept)
        smelt.grad(lambda y: (f(y) ** 3).sum())(x)
        return kept[0].sum()

    x = array([1.0, 2.0])
    close(smelt.grad(outer)(x), 5 * 12 * values(x) + 1)  # f has a derivative of 5 there, too
    close(smelt.vmap(outer)(smelt.stack([x, 2 * x])), [6 * 5 + 3, 6 * 20 + 6])
    close(smelt.compile(outer)(x), 33)


def test_cotangents_that_a_rule_stores_are_outputs_of_a_compiled_step() -> None:
    state: dict = {"seen": smelt.zeros(2)}

    @custom_function
    def f(x):
        return x

    @f.vjp
    def f_vjp(x, ct, y):
        state["seen"] = ct
        return ct

    step = smelt.compile(smelt.grad(lambda x: (f(x) ** 2).sum()), outputs=state)
    for scale in (1.0, 3.0):
        x = scale * array([1.0, 2.0])
        close(step(x), 2 * values(x))
        close(state["seen"], 2 * values(x))


def test_cotangents_that_a_rule_cannot_store_are_named() -> None:
    kept: list = []
    f = storing(kept)
    outer = custom_function(lambda x: f(x) * 2)
    outer.vjp(lambda x, ct, y: ct)
    for inside in (smelt.vmap(f), smelt.checkpoint(f), outer):
        kept.clear()
        smelt.eval(smelt.grad(lambda x, inside=inside: inside(x).sum())(smelt.ones(2)))
        for x in kept:
            with pytest.raises(TraceError, match="traced"):
                smelt.eval(x)
