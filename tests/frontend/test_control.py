"""Branches and loops: values, trees, dtypes, laziness, transformations and mistakes."""

from __future__ import annotations

import os
from collections import namedtuple

import numpy as np
import pytest

import smelt
from smelt.ir.errors import AttributeValueError, DTypeError, NotDifferentiableError
from smelt.ir.settings import override

from .checks import same

F64 = smelt.float64
Pair = namedtuple("Pair", "a b")


def array64(x):
    return smelt.array(np.asarray(x, np.float64), F64)


def close(a, b, rtol=1e-9):
    np.testing.assert_allclose(np.array(a), np.array(b), rtol=rtol, atol=rtol)


# Values


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("pred", [True, False, 1, 0, 2.5, 0.0, np.True_, "array", "number"])
def test_cond_runs_the_chosen_branch(pred, device) -> None:
    given = {"array": smelt.array(True), "number": smelt.array(3)}.get(pred, pred)
    with override(device=device):
        found = smelt.cond(given, lambda x, y: x + y, lambda x, y: x - y, smelt.array([1.0, 2.0]), 3.0)
        same(found, [4.0, 5.0] if bool(pred) else [-2.0, -1.0])


@pytest.mark.parametrize("index", [-7, 0, 1, 2, 50])
@pytest.mark.parametrize("dtype", [None, smelt.int8, smelt.int64])
def test_switch_clamps_its_index(index, dtype) -> None:
    i = index if dtype is None else smelt.array(index, dtype)
    x = smelt.array(3.0)
    found = smelt.switch(i, [lambda x: x, lambda x: x * 10, lambda x: x * 100], x)
    assert found.item() == 3.0 * 10 ** min(max(index, 0), 2)


def test_switch_with_one_branch_and_unsigned_index() -> None:
    assert smelt.switch(5, [lambda x: x + 1], smelt.array(1.0)).item() == 2.0
    assert smelt.switch(smelt.array(255, smelt.uint8), [lambda: 1, lambda: 2, lambda: 3]).item() == 3
    many = [lambda i=i: i for i in range(300)]
    assert [smelt.switch(smelt.array(100, d), many).item() for d in (smelt.int8, smelt.uint8)] == [100, 100]


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_while_loop(device) -> None:
    with override(device=device):
        x, n = smelt.while_loop(lambda c: c[0] < 100, lambda c: (c[0] * 2, c[1] + 1), (smelt.array(3), 0))
        assert (x.item(), n.item()) == (192, 6)
        same(smelt.while_loop(lambda c: False, lambda c: c + 1, smelt.array([1.0])), [1.0])


@pytest.mark.parametrize("bounds", [(0, 5), (3, 7), (4, 4), (6, 2), (-2, 2)])
def test_fori_loop_with_known_and_unknown_bounds(bounds) -> None:
    lower, upper = bounds
    want = sum(range(lower, upper))
    assert smelt.fori_loop(lower, upper, lambda i, t: t + i, 0).item() == want
    assert smelt.fori_loop(smelt.array(lower), smelt.array(upper), lambda i, t: t + i, 0).item() == want
    assert smelt.fori_loop(np.int64(lower), smelt.array(upper), lambda i, t: t + i, smelt.array(0)).item() == want


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_scan_with_trees(reverse, device) -> None:
    xs = {"a": smelt.arange(12.0).reshape(4, 3), "b": (smelt.arange(4), None)}

    def f(carry, x):
        total, (n, nothing) = carry["total"], carry["rest"]
        assert nothing is None and x["b"][1] is None
        total = total + x["a"]
        return {"total": total, "rest": (n + x["b"][0], None)}, Pair(total.sum(), [None, x["b"][0] * 2])

    with override(device=device):
        carry, ys = smelt.scan(f, {"total": smelt.zeros(3), "rest": (0, None)}, xs, reverse=reverse)
        rows = np.arange(12.0, dtype=np.float32).reshape(4, 3)
        same(carry["total"], rows.sum(0))
        assert carry["rest"][0].item() == 6 and carry["rest"][1] is None
        assert isinstance(ys, Pair) and ys.b[0] is None
        sums = np.cumsum(rows[::-1] if reverse else rows, axis=0).sum(1)
        same(ys.a, sums[::-1] if reverse else sums)
        same(ys.b[1], [0, 2, 4, 6])


def test_scan_without_xs_carry_or_results() -> None:
    last, ys = smelt.scan(lambda c, _: (c * 2, None), smelt.array(1), length=5)
    assert last.item() == 32 and ys is None
    nothing, ys = smelt.scan(lambda _, x: (None, x * 2), None, smelt.array([1, 2]))
    assert nothing is None
    same(ys, [2, 4])
    assert smelt.scan(lambda c, x: (c, None), None, smelt.ones(3)) == (None, None)
    last, ys = smelt.scan(lambda c, x: (c + x, x), smelt.array(1.0), smelt.zeros((0,)))
    assert last.item() == 1.0 and ys.shape == (0,)
    same(smelt.scan(lambda c, _: (c, 7), 0, length=3)[1], [7, 7, 7])


def test_map() -> None:
    x = smelt.arange(21.0).reshape(7, 3)
    want = np.array(x).sum(1)
    same(smelt.map(lambda r: r.sum(), x), want)
    for batch_size in (1, 2, 3, 7, 10):
        found = smelt.map(lambda r: {"s": r["x"].sum(), "n": None}, {"x": x}, batch_size=batch_size)
        same(found["s"], want)
        assert found["n"] is None


@pytest.mark.parametrize("n", [1, 2, 3, 7, 16])
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan(n, reverse) -> None:
    x = np.random.default_rng(0).integers(-3, 4, (2, n)).astype(np.float32)
    found = smelt.associative_scan(smelt.add, smelt.array(x), axis=1, reverse=reverse)
    want = np.cumsum(x[:, ::-1], 1)[:, ::-1] if reverse else np.cumsum(x, 1)
    same(found, want)

    def compose(f, g):  # x -> a x + b, f first
        return {"a": f["a"] * g["a"], "b": g["a"] * f["b"] + g["b"]}

    a, b = smelt.array(x[0]), smelt.array(x[1])
    found = smelt.associative_scan(compose, {"a": a, "b": b})
    _, want = smelt.scan(lambda h, ab: (ab[0] * h + ab[1],) * 2, 0.0, (a, b))
    same(found["b"], np.array(want))


def test_values_outside_are_operands_and_work_that_stays_the_same_is_done_once() -> None:
    w = smelt.array([1.0, 2.0])
    text = smelt.make_ir(lambda x: smelt.scan(lambda c, _: (c * smelt.exp(w) + 2.0, None), x, length=9)[0])(w)
    body, main = text.split("@main")
    assert "smelt.exp" in main and "smelt.exp" not in body
    assert '"smelt.constant"' in body and '"smelt.constant"' not in main


def test_work_of_a_branch_stays_in_the_branch() -> None:
    def f(x):
        y = smelt.sin(x)
        return smelt.cond(x.sum() > 0, lambda: smelt.exp(y), lambda: smelt.cos(x))

    branches, main = smelt.make_ir(f)(smelt.ones(2)).split("@main")
    assert "smelt.exp" in branches and "smelt.cos" in branches and "smelt.sin" not in branches
    assert "smelt.sin" in main and "smelt.exp" not in main
    same(f(smelt.array([0.0, -1.0])), np.cos(np.array([0.0, -1.0], np.float32)))


def test_nested_control_flow() -> None:
    def inner(x):
        return smelt.while_loop(lambda v: v < 10, lambda v: v * 2, x)

    def step(total, x):
        y = smelt.cond(x > 3, inner, lambda x: smelt.fori_loop(0, 3, lambda i, v: v + i, x), x)
        return total + y, y

    total, ys = smelt.scan(step, 0, smelt.array([1, 5, 3, 4]))
    same(ys, [4, 10, 6, 16])
    assert total.item() == 36


def test_equal_functions_are_one() -> None:
    def f(x):
        return smelt.cond(x > 0, smelt.sin, smelt.cos, x) + smelt.cond(x > 1, smelt.sin, smelt.cos, x)

    assert smelt.make_ir(f)(smelt.array(1.0)).count("func.func private") == 2


# Dtypes


def test_numbers_take_the_dtype_that_they_meet() -> None:
    half = smelt.ones(3, dtype=smelt.float16)
    last, _ = smelt.scan(lambda c, x: (x, None), 0.0, half)
    assert last.dtype is smelt.float16
    last, _ = smelt.scan(lambda c, x: (c + x, None), 0, smelt.ones(3))
    assert last.dtype is smelt.float32 and last.item() == 3.0
    found = smelt.cond(True, lambda x: x, lambda x: 0, half[0])
    assert found.dtype is smelt.float16
    found = smelt.cond(False, lambda: 1, lambda: 2.5)
    assert found.dtype is smelt.float32 and found.item() == 2.5
    found = smelt.while_loop(lambda c: c[1] < 2, lambda c: (0, c[1] + 1), (smelt.array(1.5), 0))
    assert found[0].dtype is smelt.float32
    assert smelt.fori_loop(0, 2**40 - 2**40 + 3, lambda i, t: t + i, 0.0).item() == 3.0


# Laziness


def test_nothing_runs_until_a_value_is_asked_for() -> None:
    x = smelt.scan(lambda c, _: (c / 0.0, None), smelt.array(1.0), length=3)[0]
    del x
    a = smelt.array(2.0)
    y = smelt.cond(a > 1, lambda: a * 2, lambda: a)
    z = y + 1
    assert z.item() == 5.0 and y.item() == 4.0


def test_in_place_updates_stay_inside() -> None:
    x = smelt.array([1.0, 2.0])

    def f(c, _):
        c[0] = c[0] + 1
        c += 1
        return c, c

    last, ys = smelt.scan(f, x, length=2)
    same(x, [1.0, 2.0])
    same(last, [5.0, 4.0])
    same(ys, [[3.0, 3.0], [5.0, 4.0]])


def test_a_long_loop_is_not_unrolled() -> None:
    def rnn(w, h, xs):
        return smelt.scan(lambda h, x: (smelt.tanh(w @ h + x), None), h, xs)[0].sum()

    w, h = smelt.eye(4) * 0.5, smelt.zeros(4)
    lines = []
    for steps in (10, 1000):
        lowered = smelt.compile(smelt.grad(rnn)).trace(w, h, smelt.ones((steps, 4))).lower()
        assert len(lowered.as_text("graph")) < 10_000
        lines.append(lowered.compile().as_text("kernel").count("\n"))
    assert lines[1] < 1.1 * lines[0]


# Derivatives and batches, against the same steps in Python

RNG = np.random.default_rng(0)
W, H = array64(RNG.standard_normal((3, 3)) * 0.4), array64(RNG.standard_normal(3))
XS = array64(RNG.standard_normal((6, 3)))


def cell(w, h, x):
    h = smelt.tanh(smelt.sin(w) @ h + x * 2.0)
    return h, (h * x).sum()


def rnn(w, h, xs, **options):
    h, ys = smelt.scan(lambda h, x: cell(w, h, x), h, xs, **options)
    return (h * h).sum() + (ys * ys).sum()


def rnn_in_python(w, h, xs):
    total = 0.0
    for i in range(xs.shape[0]):
        h, y = cell(w, h, xs[i])
        total = total + y * y
    return (h * h).sum() + total


def branch(p, x):
    return smelt.cond(p, lambda x: smelt.sin(x).sum(), lambda x: (x * x).sum(), x)


def growing(x):
    return smelt.while_loop(lambda c: (c * c).sum() < 100, lambda c: c * 1.5, x)


def all_gradients(f):
    return smelt.grad(f, argnums=(0, 1, 2))


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("options", [{}, {"checkpoint": True}, {"unroll": 2}])
def test_gradient_of_scan(options, device) -> None:
    with override(device=device):
        for wrapped in (lambda f: f, smelt.compile):
            found = wrapped(all_gradients(lambda w, h, xs: rnn(w, h, xs, **options)))(W, H, XS)
            for a, b in zip(found, all_gradients(rnn_in_python)(W, H, XS)):
                close(a, b)
        for a, b in zip(all_gradients(lambda w, h, xs: rnn(w, h, xs, reverse=True))(W, H, XS),
                        all_gradients(lambda w, h, xs: rnn_in_python(w, h, xs[::-1]))(W, H, XS)):  # fmt: skip
            close(a, b)


def test_other_derivatives_of_scan() -> None:
    tangents = [array64(RNG.standard_normal(x.shape)) for x in (W, H, XS)]
    close(smelt.jvp(rnn, [W, H, XS], tangents)[1][0], smelt.jvp(rnn_in_python, [W, H, XS], tangents)[1][0])

    def second(f):
        return smelt.grad(lambda w: (smelt.grad(f)(w, H, XS) ** 2).sum())(W)

    close(second(rnn), second(rnn_in_python), 1e-8)
    close(smelt.jacrev(lambda h: smelt.scan(lambda h, x: cell(W, h, x), h, XS)[1])(H),
          smelt.jacfwd(lambda h: smelt.scan(lambda h, x: cell(W, h, x), h, XS)[1])(H))  # fmt: skip


def test_batches_of_scan() -> None:
    several = [smelt.stack([x, x * 2.0]) for x in (W, H, XS)]
    for mapped in [(0, None, None), (None, 0, None), (None, None, 0), (0, 0, 0)]:
        rows = [[x if a is None else s[i] for x, s, a in zip((W, H, XS), several, mapped)] for i in range(2)]
        given = [x if a is None else s for x, s, a in zip((W, H, XS), several, mapped)]
        close(smelt.vmap(rnn, in_axes=mapped)(*given), [rnn_in_python(*row).item() for row in rows])
        gradients = smelt.compile(smelt.vmap(all_gradients(rnn), in_axes=mapped))(*given)
        wanted = [smelt.stack(g) for g in zip(*(all_gradients(rnn_in_python)(*row) for row in rows))]
        for a, b in zip(gradients, wanted):
            close(a, b)


def test_derivatives_and_batches_of_cond() -> None:
    for p, want in ((True, smelt.cos(H)), (False, 2 * H)):
        close(smelt.grad(branch, argnums=1)(smelt.array(p), H), want)
        close(smelt.compile(smelt.grad(branch, argnums=1))(smelt.array(p), H), want)
        rows = smelt.vmap(smelt.grad(branch, argnums=1), in_axes=(None, 0))(smelt.array(p), smelt.stack([H, H]))
        close(rows[1], want)
    both = smelt.vmap(smelt.grad(branch, argnums=1))(smelt.array([True, False]), smelt.stack([H, H]))
    close(both, smelt.stack([smelt.cos(H), 2 * H]))
    third = smelt.grad(lambda i, x: smelt.switch(i, [smelt.sin, smelt.cos, smelt.square], x).sum(), argnums=1)
    close(third(smelt.array(2), H), 2 * H)
    close(smelt.vmap(third)(smelt.array([0, 2]), smelt.stack([H, H])), smelt.stack([smelt.cos(H), 2 * H]))


def test_derivatives_and_batches_of_while_loop() -> None:
    tangent = array64([1.0, 0.0, 0.0])
    steps = 0
    x = np.array(H)
    while (x * x).sum() < 100:
        x, steps = x * 1.5, steps + 1
    close(smelt.jvp(growing, [H], [tangent])[1][0], np.array(tangent) * 1.5**steps)
    close(smelt.vmap(growing)(XS), smelt.stack([growing(x) for x in XS]))
    with pytest.raises(NotDifferentiableError, match=r"smelt\.scan.*fori_loop"):
        smelt.eval(smelt.grad(lambda x: growing(x).sum())(H))


def test_derivatives_of_fori_loop() -> None:
    def f(x):
        return smelt.fori_loop(0, 7, lambda i, v: v * smelt.cos(v + i), x).sum()

    def in_python(x):
        for i in range(7):
            x = x * smelt.cos(x + float(i))
        return x.sum()

    close(smelt.grad(f)(H), smelt.grad(in_python)(H))
    close(smelt.hessian(f)(H), smelt.hessian(in_python)(H), 1e-8)
    step = 1e-6 * np.eye(3)
    numeric = [(f(array64(np.array(H) + e)).item() - f(array64(np.array(H) - e)).item()) / 2e-6 for e in step]
    close(smelt.grad(f)(H), numeric, 1e-6)


def test_transformations_inside_bodies() -> None:
    def f(x):
        def step(c, _):
            slope = smelt.grad(lambda v: smelt.sin(v).sum())(c)
            return slope + smelt.vmap(lambda v: v * c.sum())(c), smelt.compile(lambda v: v * 2)(c)

        return smelt.scan(step, x, length=3)

    def in_python(x):
        ys = []
        for _ in range(3):
            ys.append(x * 2)
            x = smelt.cos(x) + x * x.sum()
        return x, smelt.stack(ys)

    for a, b in zip(f(H), in_python(H)):
        close(a, b)
    close(smelt.grad(lambda x: f(x)[0].sum())(H), smelt.grad(lambda x: in_python(x)[0].sum())(H))


def test_values_are_there_inside_a_gradient() -> None:
    def f(x):
        y, _ = smelt.scan(lambda c, _: (smelt.sin(c) * x, None), x, length=3)
        return (y * y.sum().item()).sum()

    def in_python(x):
        y = x
        for _ in range(3):
            y = smelt.sin(y) * x
        return (y * y.sum().item()).sum()

    close(smelt.grad(f)(H), smelt.grad(in_python)(H))


def test_a_training_loop_is_one_program() -> None:
    data = smelt.array(RNG.standard_normal((60, 8, 3)), smelt.float32)
    target = smelt.array([1.0, -2.0, 0.5])
    state = {"w": smelt.zeros(3)}

    def train(batches):
        def step(w, batch):
            loss, slope = smelt.value_and_grad(lambda w: ((batch @ (w - target)) ** 2).mean())(w)
            return w - 0.1 * slope, loss

        state["w"], losses = smelt.scan(step, state["w"], batches)
        return losses

    losses = smelt.compile(train, inputs=state, outputs=state)(data)
    assert losses.shape == (60,) and losses[-1].item() < 1e-3 < losses[0].item()
    np.testing.assert_allclose(np.array(state["w"]), np.array(target), atol=0.02)


def test_work_outside_and_keys_of_random_numbers() -> None:
    def f(w, x):
        e = smelt.exp(w)  # belongs to the trace around the loop
        return smelt.scan(lambda c, i: (smelt.tanh(e * c + i * smelt.cos(w)), None), x, XS)[0].sum()

    several = smelt.stack([H, 2 * H])
    found = smelt.compile(smelt.vmap(smelt.vmap(smelt.grad(f), in_axes=(0, None)), in_axes=(None, 0)))(several, several)
    for i in range(2):
        for j in range(2):
            close(found[i][j], smelt.grad(f)(several[j], several[i]))
    states = smelt.random.state
    draw = smelt.compile(lambda: smelt.cond(True, smelt.random.normal, lambda: 0.0), inputs=states, outputs=states)
    assert draw().item() != draw().item()


def test_the_gradient_of_a_long_rnn() -> None:
    xs = array64(RNG.standard_normal((1000, 3)))
    found = smelt.compile(all_gradients(rnn))(W, H, xs)
    directions = [array64(RNG.standard_normal(x.shape)) for x in (W, H, xs)]
    slope = sum((g * d).sum().item() for g, d in zip(found, directions))
    ends = [rnn(*(x + s * 1e-6 * d for x, d in zip((W, H, xs), directions))).item() for s in (1, -1)]
    np.testing.assert_allclose(slope, (ends[0] - ends[1]) / 2e-6, rtol=1e-5)


# Mistakes

V = smelt.array([1.0, 2.0])
MISTAKES = {
    "pred of many": (lambda: smelt.cond(V > 0, lambda: 1, lambda: 2), ValueError, ("pred", "bool_[2]|i1[2]", "where")),
    "pred of no kind": (lambda: smelt.cond("yes", lambda: 1, lambda: 2), TypeError, ("pred", "str")),
    "no function": (lambda: smelt.cond(True, 1, lambda: 2), TypeError, ("true_fun", "int")),
    "other shapes": (lambda: smelt.cond(True, lambda: V, lambda: V[0]), ValueError, ("f32[2]", "f32[]", "true_fun")),
    "other dtypes": (
        lambda: smelt.cond(True, lambda: V, lambda: V.astype(smelt.int32)), ValueError, ("f32[2]", "i32[2]", "astype")
    ),
    "other trees": (
        lambda: smelt.cond(True, lambda: {"a": V}, lambda: {"b": V}), TypeError, ("true_fun", "false_fun", "'a'", "'b'")
    ),
    "None or an array": (lambda: smelt.cond(True, lambda: (V, V), lambda: (V, None)), TypeError, ("result[1]", "None")),
    "index": (lambda: smelt.switch(1.5, [lambda: 1, lambda: 2]), TypeError, ("index", "f32[]")),
    "no branch": (lambda: smelt.switch(0, []), TypeError, ("branch",)),
    "no sequence of branches": (lambda: smelt.switch(0, lambda x: x, V), TypeError, ("branches", "function")),
    "carry dtype": (
        lambda: smelt.scan(lambda c, x: ({"h": c["h"] * x}, x), {"h": smelt.array([1])}, V), ValueError,
        ("init['h']", "i32[1]", "f32[1]", "float32"),
    ),
    "carry shape": (
        lambda: smelt.while_loop(lambda c: c.sum() < 3, lambda c: smelt.concatenate([c, c]), V), ValueError,
        ("while_loop", "f32[2]", "f32[4]"),
    ),
    "carry tree": (
        lambda: smelt.fori_loop(0, 3, lambda i, c: (c, c), V), TypeError, ("fori_loop", "init", "tuple")
    ),
    "no pair": (lambda: smelt.scan(lambda c, x: c + x, 0.0, V), TypeError, ("scan", "pair")),
    "lengths": (
        lambda: smelt.scan(lambda c, x: (c, x), 0, (V, smelt.ones(3))), ValueError, ("xs[1]", "f32[3]", "xs[0]", "2")
    ),
    "length": (lambda: smelt.scan(lambda c, x: (c, x), 0, V, length=3), ValueError, ("xs", "length is 3")),
    "no length": (lambda: smelt.scan(lambda c, x: (c, x), 0), TypeError, ("length",)),
    "scalar xs": (lambda: smelt.map(lambda x: x, 3.0), ValueError, ("map", "xs", "scalar")),
    "string carry": (lambda: smelt.scan(lambda c, x: (c, x), {"m": "fast"}, V), TypeError, ("init['m']", "str")),
    "condition": (lambda: smelt.while_loop(lambda c: c, lambda c: c, V), ValueError, ("scalar bool", "f32[2]", "any")),
    "number condition": (lambda: smelt.while_loop(lambda c: c, lambda c: c, V[0]), TypeError, ("scalar bool",)),
    "bounds": (lambda: smelt.fori_loop(0, 2.5, lambda i, c: c, V), TypeError, ("upper", "integer")),
    "if in a body": (
        lambda: smelt.scan(lambda c, x: (c if x > 0 else -c, None), 0.0, V), RuntimeError,
        ("smelt.cond", "smelt.while_loop", "smelt.where"),
    ),
    "batch size": (lambda: smelt.map(lambda x: x, V, batch_size=0), ValueError, ("batch_size",)),
    "associative sizes": (
        lambda: smelt.associative_scan(lambda a, b: a, (V, smelt.ones(3))), ValueError, ("f32[3]", "2")
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake(name) -> None:
    mistake, kind, words = MISTAKES[name]
    with pytest.raises(kind) as caught:
        mistake()
    text = str(caught.value)
    for word in words:
        assert any(w in text for w in word.split("|")), text
    assert f"{os.path.basename(__file__)}:" in text, text


def test_an_escaped_array_names_scan() -> None:
    kept = []

    def f(c, x):
        kept.append(c * 2)
        return c + x, None

    assert smelt.scan(f, 0.0, V)[0].item() == 3.0
    with pytest.raises(RuntimeError, match=r"smelt\.scan"):
        kept[0].item()


def test_bounds_at_the_limits_of_integers():
    assert smelt.fori_loop(2**63 - 1, 2**63 + 1, lambda i, x: i, smelt.array(0, smelt.uint64)).item() == 2**63
    assert smelt.fori_loop(-(2**63), 2 - 2**63, lambda i, x: i, smelt.array(0, smelt.int64)).item() == 1 - 2**63
    with pytest.raises(AttributeValueError, match=r"smelt\.fori_loop: 0 to 9223372036854775808 are more steps"):
        smelt.fori_loop(0, 2**63, lambda i, x: x, 0)
    for bounds in ((-1, 2**63), (smelt.array(0, smelt.int64), smelt.array(5, smelt.uint64))):
        with pytest.raises(DTypeError, match=r"smelt\.fori_loop: no integer dtype holds lower"):
            smelt.fori_loop(*bounds, lambda i, x: x, 0)
    with pytest.raises(TypeError, match=r"smelt\.associative_scan: axis must be an int"):
        smelt.associative_scan(smelt.add, smelt.array([1, 2]), axis=1.5)
