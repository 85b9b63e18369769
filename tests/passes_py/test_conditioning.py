"""Translation validation of ill-conditioned programs: right passes are not blamed, wrong ones are all the same."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.ir import text
from smelt.ir.builder import functions, read_function
from smelt.ir.errors import PipelineError
from smelt.ir.interpreter import Interpreter
from smelt.passes import Pipeline
from smelt.passes.conditioning import Movement, nudged
from smelt.passes.driver import PassRecord
from smelt.passes.rewrite import rebuild
from smelt.passes.validation import ValueCheck, differences


def train_step(x, y, w, k, b):
    """Attention whose keys have an offset, of which no result depends, and a step of Adam's: its gradient is what
    rounding leaves of 0, and divided by its own size."""

    def loss(w, k, b):
        scores = smelt.softmax((x @ w) @ (x @ k + b).T, axis=-1)
        hidden = smelt.maximum(scores @ x + 0.5, 0) @ w
        return ((hidden - y) ** 2).mean() + smelt.logsumexp(hidden, axis=-1).sum()

    value, slopes = smelt.value_and_grad(loss, argnums=(0, 1, 2))(w, k, b)
    return value, *(p - 0.1 * g / (smelt.sqrt(g * g) + 1e-12) for p, g in zip((w, k, b), slopes))


def differences_of_sums(x, y):
    """What two orders of a sum leave, compared with 0, counted, and multiplied."""
    e = smelt.exp(x)
    rest = e.sum(axis=0) - e[::-1].cumsum(axis=0)[-1] + 0 * y[0]
    return rest > 0, (rest * 1e6).astype(smelt.int32), smelt.tanh(rest * 1e7), smelt.log(rest), smelt.exp(y)


def until_it_stays(x):
    """A loop that ends when a step changes nothing."""
    step = lambda c: 0.5 * (c + x.sum() / c)  # noqa: E731
    (last, _) = smelt.while_loop(lambda c: c[0] != c[1], lambda c: (step(c[0]), c[0]), (step(x[0]), x[0]))
    return last - smelt.sqrt(x.sum())


def in_half(x):
    e = smelt.exp(x)
    rest = (e.sum(axis=0) - e[::-1].cumsum(axis=0)[-1]).astype(smelt.bfloat16)
    return smelt.sign(rest), smelt.exp(x.astype(smelt.float16)), (rest * 2.0**21).astype(smelt.int8)


S = smelt.ShapeDtype
F = smelt.float32
PROGRAMS = {
    "a step of training": (train_step, [S((6, 4), F), S((6, 4), F), S((4, 4), F), S((4, 4), F), S((4,), F)]),
    "differences of sums": (differences_of_sums, [S((9, 8), F), S((9, 8), F)]),
    "half precision": (in_half, [S((9, 8), F)]),
}  # fmt: skip


def expanded(name):
    f, types = PROGRAMS[name]
    module = text.parse(text.to_text(smelt.compile(f).trace(*types).lower().module))
    Pipeline.parse("fixpoint(inline,batch,jvp,linearize,transpose),canonicalize,cse,dce").run(module)
    return module


def changed(module, change):
    """The module with what `change` makes of each op: None, where it stays."""
    module = text.parse(text.to_text(module))
    count = 0
    for operation in list(functions(module).values()):

        def visit(b, op, operands):
            nonlocal count
            made = change(b, op, operands)
            count += made is not None
            return b.clone(op, operands) if made is None else [made]

        rebuild(module, read_function(operation), visit)
    assert count
    return module


def sums_backwards(b, op, operands):
    """Right: what is summed comes in another order."""
    if op.name in ("reduce_sum", "cumsum") and not op.attrs.get("reverse"):
        axes = op.attrs["axes"] if op.name == "reduce_sum" else (op.attrs["axis"],)
        turned = b.reverse(operands[0], axes=axes)
        if op.name == "reduce_sum":
            return b.reduce_sum(turned, axes=axes)
        return b.reverse(b.cumsum(turned, axis=axes[0], reverse=True, inclusive=op.attrs["inclusive"]), axes=axes)
    if op.name == "dot_general" and len(op.attrs["lhs_contracting"]) == 1:
        sides = ("lhs_contracting", "rhs_contracting")
        return b.dot_general(*(b.reverse(x, axes=op.attrs[s]) for x, s in zip(operands, sides)), **op.attrs)
    return None


@pytest.mark.parametrize("name", PROGRAMS)
def test_another_order_of_sums_is_no_fault(name):
    module = expanded(name)
    after = changed(module, sums_backwards)
    check = ValueCheck(module, count=2)
    inputs = check.inputs[0][1]
    apart = [differences(*(np.asarray(x) for x in pair)).any() for pair in zip(
        Interpreter(module)("main", inputs), Interpreter(after)("main", inputs))]  # fmt: skip
    assert any(apart)  # it is one as long as nobody asks how the program is conditioned
    check.on_pass(PassRecord("backwards", 0.0, stage="backwards"), after)
    assert check.checked == ["backwards"] and {stage for stage, *_ in check.loose} == {"backwards"}
    assert "as far as rounding leaves them sure: result" in check.report()


def swapped(name, other):
    return lambda b, op, operands: getattr(b, other)(*operands, **op.attrs) if op.name == name else None


def turned(name):
    return lambda b, op, operands: getattr(b, name)(*operands[::-1], **op.attrs) if op.name == name else None


#: What wrong passes do to the step of training.
WRONG = {
    "the least for the largest": swapped("reduce_max", "reduce_min"),
    "a product for a sum": swapped("reduce_sum", "reduce_prod"),
    "less for greater": swapped("greater", "less"),
    "quotients upside down": turned("div"),
    "differences turned": turned("sub"),
    "another function": swapped("exp", "expm1"),
    "roots forgotten": lambda b, op, operands: operands[0] if op.name == "sqrt" else None,
    "signs forgotten": lambda b, op, operands: operands[0] if op.name == "neg" else None,
    "sums for products": swapped("mul", "add"),
    "rows in another order": lambda b, op, operands: (
        b.dot_general(b.reverse(operands[0], axes=op.attrs["lhs_contracting"]), operands[1], **op.attrs)
        if op.name == "dot_general" else None
    ),
    "constants a little larger": lambda b, op, operands: (
        b.constant(value=op.attrs["value"] * 1.01, dtype=op.attrs["dtype"])
        if op.name == "constant" and op.results[0].aval.dtype.kind == "f" else None
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_passes_of_ill_conditioned_programs_are_named(name):
    module = expanded("a step of training")
    check = ValueCheck(module, count=1)
    with pytest.raises(PipelineError, match="wrong changed a value: result"):
        check.on_pass(PassRecord("wrong", 0.0, stage="wrong"), changed(module, WRONG[name]))


def test_exact_values_are_not_moved():
    rng = np.random.default_rng(0)
    for dtype in (np.float16, np.float32, np.float64, np.complex64):
        exact = np.array([0, -0.0, 1, -3, 0.5, 96], dtype)
        assert nudged(exact, 8, rng).tobytes() == exact.tobytes()
        rounded = np.full(100, 1 / 3, dtype)
        by = np.abs(nudged(rounded, 2, rng).real - rounded.real) / np.spacing(rounded.real)
        assert (by == (1 if dtype is np.float16 else 2)).all()
    special = np.float32([np.inf, -np.inf, np.nan])
    assert nudged(special, 1, rng).tobytes() == special.tobytes()
    assert nudged(np.int32([7]), 1, rng).tolist() == [7]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("step", [1, 2, 4, 8])
def test_the_least_and_the_largest_numbers_stay_numbers_of_their_sign(dtype, step):
    """One that became NaN would make all that depends on it NaN, and nothing would be known of the program."""
    info = np.finfo(dtype)
    near_zero = np.arange(1, 20).astype(dtype) * info.smallest_subnormal
    whole = np.dtype(f"i{np.dtype(dtype).itemsize}")
    near_infinity = (np.array(info.max).view(whole) - np.arange(20, dtype=whole)).view(dtype)
    values = np.concatenate([near_zero, -near_zero, near_infinity, -near_infinity])
    for seed in range(4):
        found = nudged(values, step, np.random.default_rng(seed))
        assert np.isfinite(found).all() and (np.signbit(found) == np.signbit(values)).all()
        assert (found != values).any()


def quotient_of_noise(x):
    """One over what rounding leaves of a sum that is 0: of thousands of them a few are far larger than others."""
    rest = (x * 1.1).sum(axis=-1) - 1.1 * x.sum(axis=-1)
    return 1 / (smelt.abs(rest) + 1e-6)


def test_rare_numbers_that_are_far_larger_are_no_fault():
    module = text.parse(text.to_text(smelt.compile(quotient_of_noise).trace(S((4000, 256), F)).lower().module))
    check = ValueCheck(module, count=1, parts=False)
    check.on_pass(PassRecord("backwards", 0.0, stage="backwards"), changed(module, sums_backwards))
    assert check.loose


def test_a_loop_that_never_ends_when_its_values_move():
    module = text.parse(text.to_text(smelt.compile(until_it_stays).trace(S((3,), F)).lower().module))
    movement = Movement(module, [np.float32([1.1, 2.3, 3.7])])
    while movement.look():
        pass
    assert movement.far[0] < 1e-4


def test_what_breaks_does_not_excuse_what_moves():
    """A root of what may be negative is NaN in some runs: that says nothing about another number there."""
    source = """
    func.func @main(%x: tensor<1xf32>) -> tensor<1xf32> {
      %0 = "smelt.log"(%x) : (tensor<1xf32>) -> tensor<1xf32>
      %1 = "smelt.exp"(%0) : (tensor<1xf32>) -> tensor<1xf32>
      %2 = "smelt.sub"(%x, %1) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
      %3 = "smelt.sqrt"(%2) : (tensor<1xf32>) -> tensor<1xf32>
      return %3 : tensor<1xf32>
    }"""
    movement = Movement(text.parse(source), [np.float32([1.1])])
    while movement.look():
        pass
    (was,) = Interpreter(text.parse(source))("main", [np.float32([1.1])])
    assert movement.breaks[0].all() and movement.far[0] < 1
    assert movement.explains(0, was, np.float32([np.nan])).all() or np.isnan(was)
    assert not movement.explains(0, was, np.float32([5.0])).all() or np.isnan(was)
