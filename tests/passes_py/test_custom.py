"""Functions with rules of their own, checkpoints and rematerialization on hand-written modules."""

from __future__ import annotations

import numpy as np
import pytest

from smelt.ir import text
from smelt.ir.builder import functions, read_function
from smelt.ir.errors import IRError
from smelt.ir.interpreter import Interpreter
from smelt.passes import Pipeline

EXPAND = "fixpoint(inline,batch,jvp,linearize,transpose)"
FULL = f"{EXPAND},canonicalize,cse,dce"
T, S = "tensor<3xf64>", "tensor<f64>"
M = "tensor<2x3xf64>"  # a batch of two
F1, F2 = f"({T}) -> {T}", f"({T}, {T}) -> {T}"
X = np.array([0.3, -0.7, 1.1])

#: g(x, w) = exp(x) * w, with a rule that doubles the cotangent of x, and triples that of w.
RULED = f"""
func.func private @g_vjp(%x: {T}, %w: {T}, %y: {T}, %ct: {T}) -> ({T}, {T}) {{
  %0 = "smelt.mul"(%ct, %y) : ({T}, {T}) -> {T}
  %1 = "smelt.add"(%0, %0) : ({T}, {T}) -> {T}
  %2 = "smelt.exp"(%x) : ({T}) -> {T}
  %3 = "smelt.mul"(%ct, %2) : ({T}, {T}) -> {T}
  %4 = "smelt.add"(%3, %3) : ({T}, {T}) -> {T}
  %5 = "smelt.add"(%4, %3) : ({T}, {T}) -> {T}
  return %1, %5 : {T}, {T}
}}
func.func private @g(%x: {T}, %w: {T}) -> {T} attributes {{smelt.custom_vjp = @g_vjp}} {{
  %0 = "smelt.exp"(%x) : ({T}) -> {T}
  %1 = "smelt.mul"(%0, %w) : ({T}, {T}) -> {T}
  return %1 : {T}
}}
"""


def run(source: str, *arguments: np.ndarray, pipeline: str = FULL) -> list[np.ndarray]:
    module = expanded(source, pipeline)
    return Interpreter(module)("main", list(arguments))


def expanded(source: str, pipeline: str = FULL):
    module = text.parse(source)
    Pipeline.parse(pipeline).run(module)
    text.verify(module)
    assert list(functions(module)) == ["main"]
    return module


def vjp_main(function: str, kinds: str, n: int) -> str:
    names = ", ".join(f"%a{i}: {T}" for i in range(n))
    values = ", ".join(f"%a{i}" for i in range(n))
    types = ", ".join([T] * n)
    wrt = ", ".join(map(str, range(n)))
    pull = f"({types}, {T}) -> ({T}, {types})"
    return f"""
func.func @main({names}, %ct: {T}) -> ({kinds}) {{
  %f = func.constant @{function} : ({types}) -> {T}
  %d = "smelt.vjp"(%f) {{wrt = array<i64: {wrt}>, seeds = array<i64: 0>}} : (({types}) -> {T}) -> ({pull})
  %r:{n + 1} = func.call_indirect %d({values}, %ct) : {pull}
  return {", ".join(f"%r#{i}" for i in range(n + 1))} : {kinds}
}}
"""


def test_transformation_of_a_function_with_rules_itself():
    w, ct = np.array([2.0, 3.0, 4.0]), np.array([1.0, 10.0, 100.0])
    y, dx, dw = run(RULED + vjp_main("g", f"{T}, {T}, {T}", 2), X, w, ct)
    np.testing.assert_allclose(y, np.exp(X) * w)
    np.testing.assert_allclose(dx, 2 * ct * np.exp(X) * w)
    np.testing.assert_allclose(dw, 3 * ct * np.exp(X))


def test_another_function_may_be_called_like_a_call_of_one_with_rules():
    """A transformation meets a call of a function with rules, for which a function is made: never one that there is."""
    w, ct = np.array([2.0, 3.0, 4.0]), np.array([1.0, 10.0, 100.0])
    pull = f"({T}, {T}, {T}) -> ({T}, {T}, {T})"
    other = f"""
func.func private @g_call(%x: {T}, %w: {T}) -> {T} {{
  %0 = "smelt.sub"(%x, %w) : {F2}
  return %0 : {T}
}}
func.func private @both(%x: {T}, %w: {T}, %ct: {T}) -> ({T}, {T}) {{
  %g = func.constant @g : {F2}
  %d = "smelt.vjp"(%g) {{wrt = array<i64: 0, 1>, seeds = array<i64: 0>}} : ({F2}) -> ({pull})
  %h = func.constant @g_call : {F2}
  %e = "smelt.vjp"(%h) {{wrt = array<i64: 0, 1>, seeds = array<i64: 0>}} : ({F2}) -> ({pull})
  %r:3 = func.call_indirect %d(%x, %w, %ct) : {pull}
  %s:3 = func.call_indirect %e(%x, %w, %ct) : {pull}
  return %r#1, %s#1 : {T}, {T}
}}
func.func @main(%x: {T}, %w: {T}, %ct: {T}) -> ({T}, {T}) {{
  %r:2 = call @both(%x, %w, %ct) : ({T}, {T}, {T}) -> ({T}, {T})
  return %r#0, %r#1 : {T}, {T}
}}
"""
    ruled, plain = run(RULED + other, X, w, ct)
    np.testing.assert_allclose(ruled, 2 * ct * np.exp(X) * w)
    np.testing.assert_allclose(plain, ct)


def test_derivative_of_a_batch_uses_the_rule():
    """An argument that is not batched gets the sum over the batch."""
    batched, pull = f"({M}, {T}) -> {M}", f"({M}, {T}, {M}) -> ({M}, {M}, {T})"
    axes = "size = 2 : i64, in_axes = array<i64: 0, -1>, out_axes = array<i64: 0>"
    source = f"""{RULED}
func.func private @f(%x: {M}, %w: {T}) -> {M} {{
  %g = func.constant @g : {F2}
  %b = "smelt.batch"(%g) {{{axes}}} : ({F2}) -> ({batched})
  %r = func.call_indirect %b(%x, %w) : {batched}
  return %r : {M}
}}
func.func @main(%x: {M}, %w: {T}, %ct: {M}) -> ({M}, {T}) {{
  %f = func.constant @f : {batched}
  %d = "smelt.vjp"(%f) {{wrt = array<i64: 0, 1>, seeds = array<i64: 0>}} : ({batched}) -> ({pull})
  %r:3 = func.call_indirect %d(%x, %w, %ct) : {pull}
  return %r#1, %r#2 : {M}, {T}
}}"""
    rng = np.random.default_rng(0)
    x, w, ct = rng.normal(size=(2, 3)), rng.normal(size=3), rng.normal(size=(2, 3))
    dx, dw = run(source, x, w, ct)
    np.testing.assert_allclose(dx, 2 * ct * np.exp(x) * w)
    np.testing.assert_allclose(dw, 3 * (ct * np.exp(x)).sum(0))


#: A rule that calls the function that it belongs to.
RECURSIVE = f"""
func.func private @e_vjp(%x: {T}, %y: {T}, %ct: {T}) -> {T} {{
  %0 = call @e(%x) : ({T}) -> {T}
  %1 = "smelt.mul"(%ct, %0) : ({T}, {T}) -> {T}
  %2 = "smelt.add"(%1, %1) : ({T}, {T}) -> {T}
  return %2 : {T}
}}
func.func private @e(%x: {T}) -> {T} attributes {{smelt.custom_vjp = @e_vjp}} {{
  %0 = "smelt.exp"(%x) : ({T}) -> {T}
  return %0 : {T}
}}
"""


def test_rule_that_calls_its_function():
    ct = np.array([1.0, 10.0, 100.0])
    _, dx = run(RECURSIVE + vjp_main("e", f"{T}, {T}", 1), X, ct)
    np.testing.assert_allclose(dx, 2 * ct * np.exp(X))


def test_second_derivative_uses_the_rule_twice():
    source = f"""{RECURSIVE}
func.func private @d(%x: {T}) -> {T} {{
  %one = "smelt.constant"() {{value = 1.0 : f64, dtype = f64}} : () -> {S}
  %ones = "smelt.broadcast"(%one) {{shape = array<i64: 3>}} : ({S}) -> {T}
  %f = func.constant @e : ({T}) -> {T}
  %d = "smelt.vjp"(%f) {{wrt = array<i64: 0>, seeds = array<i64: 0>}} : (({T}) -> {T}) -> (({T}, {T}) -> ({T}, {T}))
  %r:2 = func.call_indirect %d(%x, %ones) : ({T}, {T}) -> ({T}, {T})
  return %r#1 : {T}
}}
{vjp_main("d", f"{T}, {T}", 1)}"""
    d, dd = run(source, X, np.ones(3))
    np.testing.assert_allclose(d, 2 * np.exp(X))
    np.testing.assert_allclose(dd, 4 * np.exp(X))


def test_batch_of_a_rule_that_calls_its_function():
    axes = "size = 2 : i64, in_axes = array<i64: 0>, out_axes = array<i64: 0>"
    source = f"""{RECURSIVE}
func.func @main(%x: {M}) -> {M} {{
  %g = func.constant @e : {F1}
  %b = "smelt.batch"(%g) {{{axes}}} : ({F1}) -> (({M}) -> {M})
  %r = func.call_indirect %b(%x) : ({M}) -> {M}
  return %r : {M}
}}"""
    (y,) = run(source, np.stack([X, -X]))
    np.testing.assert_allclose(y, np.exp(np.stack([X, -X])))


CHECKPOINTED = f"""
func.func private @g(%x: {T}) -> {T} attributes {{smelt.checkpoint}} {{
  %0 = "smelt.sin"(%x) : ({T}) -> {T}
  %1 = "smelt.exp"(%0) : ({T}) -> {T}
  %2 = "smelt.cos"(%1) : ({T}) -> {T}
  return %2 : {T}
}}
func.func private @f(%x: {T}) -> {T} {{
  %0 = call @g(%x) : ({T}) -> {T}
  %1 = call @g(%0) : ({T}) -> {T}
  return %1 : {T}
}}
"""


def test_checkpoint_keeps_the_arguments_only():
    source = CHECKPOINTED + vjp_main("f", f"{T}, {T}", 1)
    module = text.parse(source)
    Pipeline.parse("linearize").run(module)
    tangent = read_function(functions(module)["f_tangent"])
    assert len(tangent.arguments) == 3  # x, g(x), and the tangent


def test_checkpoint_changes_no_values():
    source = CHECKPOINTED + vjp_main("f", f"{T}, {T}", 1)
    ct = np.array([1.0, 10.0, 100.0])
    y, dx = run(source, X, ct)
    want_y, want = run(source.replace("attributes {smelt.checkpoint}", ""), X, ct)
    np.testing.assert_array_equal(y, want_y)
    np.testing.assert_array_equal(dx, want)
    h = 1e-6

    def f(x: np.ndarray) -> np.ndarray:
        for _ in range(2):
            x = np.cos(np.exp(np.sin(x)))
        return x

    np.testing.assert_allclose(dx, ct * (f(X + h) - f(X - h)) / (2 * h), rtol=1e-7)


def test_recomputation_survives_simplification():
    module = expanded(CHECKPOINTED + vjp_main("f", f"{T}, {T}", 1))
    names = [op.name for op in read_function(functions(module)["main"]).ops]
    assert names.count("barrier") == 2
    assert names.count("exp") == 4  # two forwards, two again


@pytest.mark.parametrize("limit", [0, 1, 3, 1000])
def test_remat_changes_no_values(limit: int):
    source = CHECKPOINTED.replace("attributes {smelt.checkpoint}", "") + vjp_main("f", f"{T}, {T}", 1)
    ct = np.array([1.0, 10.0, 100.0])
    pipeline = f"fixpoint(inline,linearize,remat{{max-flops={limit}}},transpose),canonicalize,cse,dce"
    for got, want in zip(run(source, X, ct, pipeline=pipeline), run(source, X, ct)):
        np.testing.assert_array_equal(got, want)


def test_remat_leaves_the_argument_as_the_only_residual():
    source = CHECKPOINTED.replace("attributes {smelt.checkpoint}", "") + vjp_main("f", f"{T}, {T}", 1)
    module = text.parse(source)
    Pipeline.parse("inline,linearize,remat{max-flops=1000}").run(module)
    tangent = read_function(functions(module)["f_tangent_remat"])
    assert len(tangent.arguments) == 2
    primal = read_function(functions(module)["f_primal_remat"])
    assert len(primal.returns) == 1


@pytest.mark.parametrize("transform", ["jvp", "vjp"])
@pytest.mark.parametrize("batched", [False, True])
def test_what_a_derivative_leaves_in_the_place_of_the_function(transform, batched):
    rule = "smelt.custom_jvp = @g_jvp" if transform == "jvp" else "smelt.custom_vjp = @g_jvp"
    arguments = f"%x: {T}, %t: {T}" if transform == "jvp" else f"%x: {T}, %y: {T}, %t: {T}"
    seeds = "" if transform == "jvp" else "seeds = array<i64: 0>, "
    binary = f"({T}, {T}) -> ({T}, {T})"
    source = f"""
func.func private @g_jvp({arguments}) -> {T} {{ return %t : {T} }}
func.func private @h(%x: {T}) -> {T} {{ %0 = "smelt.mul"(%x, %x) : ({T}, {T}) -> {T} return %0 : {T} }}
func.func private @g(%x: {T}) -> {T} attributes {{{rule}, smelt.custom_primal = @h}} {{
  %0 = "smelt.exp"(%x) : ({T}) -> {T}
  return %0 : {T}
}}
func.func private @k(%x: {T}) -> {T} {{ %0 = func.call @g(%x) : ({T}) -> {T} return %0 : {T} }}
func.func @main(%x: {M if batched else T}, %t: {M if batched else T}) -> {M if batched else T} {{
  %f = func.constant @k : ({T}) -> {T}
  %d = "smelt.{transform}"(%f) {{{seeds}wrt = array<i64: 0>}} : (({T}) -> {T}) -> ({binary})
"""
    if batched:
        of_many = binary.replace(T, M)
        source += f"""
  %b = "smelt.batch"(%d) {{in_axes = array<i64: 0, 0>, out_axes = array<i64: 0, 0>, size = 2 : i64}}
    : ({binary}) -> ({of_many})
  %r:2 = func.call_indirect %b(%x, %t) : {of_many}
  return %r#0 : {M}
}}"""
    else:
        source += f"  %r:2 = func.call_indirect %d(%x, %t) : {binary}\n  return %r#0 : {T}\n}}"
    x = np.stack([X, 2 * X]) if batched else X
    np.testing.assert_allclose(run(source, x, x)[0], x * x)


def test_missing_rule_function():
    source = (
        RULED.replace("smelt.custom_vjp = @g_vjp", "smelt.custom_jvp = @absent")
        + f"""
func.func @main(%x: {T}, %t: {T}) -> {T} {{
  %f = func.constant @g : ({T}, {T}) -> {T}
  %d = "smelt.jvp"(%f) {{wrt = array<i64: 0>}} : (({T}, {T}) -> {T}) -> (({T}, {T}, {T}) -> ({T}, {T}))
  %r:2 = func.call_indirect %d(%x, %x, %t) : ({T}, {T}, {T}) -> ({T}, {T})
  return %r#1 : {T}
}}"""
    )
    module = text.parse(source)
    with pytest.raises(IRError, match="no function @absent"):
        Pipeline.parse("jvp").run(module)


def test_rule_with_the_wrong_arguments():
    source = (
        RULED.replace("smelt.custom_vjp", "smelt.custom_jvp")
        + f"""
func.func @main(%x: {T}, %t: {T}) -> {T} {{
  %f = func.constant @g : ({T}, {T}) -> {T}
  %d = "smelt.jvp"(%f) {{wrt = array<i64: 0>}} : (({T}, {T}) -> {T}) -> (({T}, {T}, {T}) -> ({T}, {T}))
  %r:2 = func.call_indirect %d(%x, %x, %t) : ({T}, {T}, {T}) -> ({T}, {T})
  return %r#1 : {T}
}}"""
    )
    source = source.replace(f"@g_vjp(%x: {T}, %w: {T}, %y: {T}, %ct: {T})", f"@g_vjp(%x: {T}, %y: {T}, %ct: {T})")
    with pytest.raises(IRError, match=r"@g_vjp takes .* but is given"):
        Pipeline.parse("jvp").run(text.parse(source))


def test_function_with_rules_that_calls_itself_is_refused():
    source = RULED.replace('%1 = "smelt.mul"(%0, %w)', "%1 = call @g(%0, %w)") + vjp_main("g", f"{T}, {T}, {T}", 2)
    module = text.parse(source)
    with pytest.raises(IRError, match="@g calls itself: smelt functions do not recurse"):
        Pipeline.parse(FULL).run(module)
