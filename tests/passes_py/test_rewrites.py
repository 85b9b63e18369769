"""Declarative rewrites: what can be stated, how it prints, is switched, counted, checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import smelt.passes.simplify.canonicalize  # noqa: F401  (states rewrites)
from smelt.ir import text
from smelt.ir.builder import function_named
from smelt.ir.dtypes import float32
from smelt.ir.errors import IRError, PipelineError, SmeltError
from smelt.passes import Pipeline
from smelt.passes.rewrites import (
    Attr,
    Condition,
    Const,
    RewriteSet,
    Rule,
    Rules,
    Term,
    canonical,
    computed,
    condition,
    number,
    number_of,
    ops,
    sets,
)
from smelt.passes.rewrites.checking import check
from smelt.passes.rewrites.instances import instances
from smelt.tools import opt

T = "tensor<4xf32>"


@condition
def power_of_two(c: Any) -> bool:
    number = number_of(c)
    return isinstance(number, float) and number in (0.25, 0.5, 2.0, 4.0)


@computed
def composed(p: tuple[int, ...], q: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(p[i] for i in q)


@pytest.fixture
def trial() -> Iterator[RewriteSet]:
    yield RewriteSet("trial", "Rewrites of a test.")
    del sets._sets["trial"]


def run(body: str, pipeline: str, returned: str = "%r", kind: str = T) -> tuple[str, Counter]:
    """The text of a function of %x and %y after a pipeline, and what its first pass counted."""
    source = f"func.func @main(%x: {kind}, %y: {kind}) -> {kind} {{\n{body}\n  return {returned} : {kind}\n}}\n"
    module = text.parse(source)
    records = Pipeline.parse(pipeline).run(module)
    return text.to_text(module), records[0].statistics


def unary(name: str, x: str, made: str) -> str:
    return f'  {made} = "smelt.{name}"({x}) : ({T}) -> {T}'


def binary(name: str, x: str, y: str, made: str) -> str:
    return f'  {made} = "smelt.{name}"({x}, {y}) : ({T}, {T}) -> {T}'


def filled(value: str, made: str) -> str:
    return (
        f'  {made}s = "smelt.constant"() {{value = {value} : f64, dtype = f32}} : () -> tensor<f32>\n'
        f'  {made} = "smelt.broadcast"({made}s) {{shape = array<i64: 4>}} : (tensor<f32>) -> {T}'
    )


def test_rules_print_as_text(trial: RewriteSet) -> None:
    @trial.rewrite
    def div_by_power(x: Term, c: Const) -> Rule:
        return (x / c >> x * (1 / c)).when(x.is_float & power_of_two(c))

    @trial.rewrite(reals=True)
    def both(x: Term, p: Attr, q: Attr) -> Rules:
        once = ops.transpose(ops.transpose(x, permutation=p), permutation=q)
        return once >> ops.transpose(x, permutation=composed(p, q)), -(-abs(x) * -2.0) >> number(0, like=x)

    assert str(trial) == (
        "trial: Rewrites of a test.\n"
        "  div-by-power: x / c → x * (1 / c) where x is float and power_of_two(c)\n"
        "  both: transpose(transpose(x, permutation=p), permutation=q) → transpose(x, permutation=composed(p, q)); "
        "-((-abs(x)) * (-2.0)) → number(0, like=x)"
    )
    assert [r.claim for r in trial] == ["exact", "for real numbers"]


def test_a_set_is_applied_and_counted(trial: RewriteSet) -> None:
    @trial.rewrite(reals=True)
    def log_of_exp(x: Term) -> Rule:
        return ops.log(ops.exp(x)) >> x

    @trial.rewrite(reals=True)
    def factor(x: Term, y: Term, c: Const) -> Rule:
        return x * c + y * c >> (x + y) * c

    body = [unary("exp", "%x", "%a"), unary("log", "%a", "%b"), filled("3.000000e+00", "%c")]
    body += [binary("mul", "%c", "%b", "%d"), binary("mul", "%y", "%c", "%e"), binary("add", "%d", "%e", "%r")]
    after, counted = run("\n".join(body), "rewrite{set=trial}")
    assert counted == {"log-of-exp": 1, "factor": 1, "dead-ops-erased": 3}
    assert after.count('"smelt.mul"') == 1 and "smelt.exp" not in after
    after, counted = run("\n".join(body), "rewrite{set=trial without=factor}")
    assert counted["factor"] == 0 and counted["log-of-exp"] == 1
    _, counted = run("\n".join(body), "rewrite{set=trial only=factor}")
    assert counted["factor"] == 1 and counted["log-of-exp"] == 0


def test_a_part_of_the_pattern_is_not_made_anew(trial: RewriteSet) -> None:
    @trial.rewrite
    def relu_of_relu(x: Term) -> Rule:
        return ops.maximum(ops.maximum(x, 0), 0) >> ops.maximum(x, 0)

    body = [filled("0.000000e+00", "%c"), binary("maximum", "%x", "%c", "%a"), binary("maximum", "%a", "%c", "%b")]
    body += [binary("add", "%a", "%b", "%r")]
    after, _ = run("\n".join(body), "rewrite{set=trial}")
    assert after.count('"smelt.maximum"') == 1


def test_attributes_are_matched_and_computed(trial: RewriteSet) -> None:
    @trial.rewrite
    def twice(x: Term, p: Attr, q: Attr) -> Rule:
        inner = ops.transpose(x, permutation=p)
        return ops.transpose(inner, permutation=q) >> ops.transpose(x, permutation=composed(p, q))

    square = "tensor<3x3x3xf32>"

    def turn(x: str, made: str) -> str:
        return f'  {made} = "smelt.transpose"({x}) {{permutation = array<i64: 1, 2, 0>}} : ({square}) -> {square}'

    after, _ = run("\n".join([turn("%x", "%a"), turn("%a", "%r")]), "rewrite{set=trial}", kind=square)
    assert after.count("smelt.transpose") == 1 and "permutation = array<i64: 2, 0, 1>" in after
    assert check(trial.rewrites["twice"]).verdict == "exact"


def test_rewrites_of_canonicalize_are_switched_off_by_name() -> None:
    body = "\n".join([unary("neg", "%x", "%a"), unary("neg", "%a", "%r")])
    assert run(body, "canonicalize")[1]["neg-of-neg"] == 1
    assert run(body, "canonicalize{without=neg-of-neg,transpose-of-transpose}")[1]["neg-of-neg"] == 0
    assert str(Pipeline.parse("canonicalize{without=neg-of-neg,mul-one}")) == "canonicalize{without=neg-of-neg,mul-one}"
    with pytest.raises(PipelineError, match="no rewrite 'neg-of-nag'; did you mean neg-of-neg"):
        run(body, "canonicalize{without=neg-of-nag}")
    with pytest.raises(PipelineError, match="no set of rewrites 'no-such'"):
        run(body, "rewrite{set=no-such}")


def test_rewrites_that_undo_each_other_are_an_error(trial: RewriteSet) -> None:
    @trial.rewrite
    def one_way(x: Term, y: Term) -> Rule:
        return ops.maximum(x, y) >> ops.maximum(y, x)

    with pytest.raises(IRError, match=r"rewrites of smelt.maximum undo each other: one-way.*\.when"):
        run(binary("maximum", "%x", "%y", "%r"), "rewrite{set=trial}")

    @trial.rewrite
    def grows(x: Term) -> Rule:
        return ops.exp(x) >> ops.exp(-x)

    with pytest.raises(IRError, match=r"smelt.exp go on after 64 rewrites.*grows"):
        run(unary("exp", "%x", "%r"), "rewrite{set=trial only=grows}")


def _shadow(x: int) -> Rule:
    raise AssertionError(x)


MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "no op": (lambda: Rule(Const("x"), Const("x")), "the pattern of a rule is an op"),
    "unknown op": (lambda: ops.expo(Const("x")), "no op 'expo'"),
    "operands": (lambda: ops.exp(Const("x"), 1), "has the operands x; the rule gives it 2"),
    "attribute": (lambda: ops.exp(Const("x"), axis=1), "no attribute 'axis'"),
    "lacks an attribute": (lambda: -Const("x") >> ops.transpose(Const("x")), "lacks the attribute permutation"),
    "wrong attribute": (lambda: -Const("x") >> ops.transpose(Const("x"), permutation="p"), "permutation must be"),
    "unbound": (lambda: -Const("x") >> Const("y"), "y does not stand in the pattern -x"),
    "unbound condition": (lambda: (-Const("x") >> Const("x")).when(Const("z").is_float), "z does not stand in"),
    "condition on a term": (lambda: (-Const("x")).is_float, "asks about a variable; -x is an expression"),
    "array": (lambda: Const("x").__add__([1]), "not of \\[1\\]"),  # type: ignore[operator]
    "random": (lambda: ops.print(Const("x")), "no op 'print'"),
    "several results": (lambda: ops.topk(Const("x")), "cannot stand in a rule|no op"),
    "no rules": (lambda: RewriteSet("nothing").rewrite(lambda: 3), "states a rule"),  # type: ignore[arg-type,return-value]
    "annotation": (lambda: RewriteSet("nothing").rewrite(_shadow), "parameter x is annotated as Term, Const or Attr"),
    "name of a set": (lambda: RewriteSet("a b"), "a set is called by letters"),
    "a set of others": (lambda: RewriteSet("canonicalize"), "two sets of rewrites are called 'canonicalize'"),
    "when": (lambda: (-Const("x") >> Const("x")).when(True), "takes a condition"),  # type: ignore[arg-type]
    "condition of a number": (lambda: power_of_two(3), "takes variables of the rule"),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_mistakes_are_errors_where_the_rule_stands(what: str) -> None:
    make, words = MISTAKES[what]
    with pytest.raises(SmeltError, match=words) as caught:
        make()
    assert "test_rewrites.py" in str(caught.value) or "no op" in words
    sets._sets.pop("nothing", None)


@pytest.mark.parametrize("name", ["rewrite", "saturate"])
@pytest.mark.parametrize("what", ["condition", "computed", "text"])
def test_what_functions_of_a_rule_raise_names_them(trial: RewriteSet, what: str, name: str) -> None:
    @condition
    def lost(x: Any) -> bool:
        raise KeyError("lost")

    @computed
    def absent(x: Any) -> float:
        raise KeyError("lost")

    @computed
    def word(x: Any) -> Any:
        return "word"

    @trial.rewrite
    def fails(x: Term) -> Rule:
        if what == "condition":
            return (ops.exp(x) >> x).when(lost(x))
        return ops.exp(x) >> x * (absent(x) if what == "computed" else word(x))

    said = {
        "condition": r"the condition lost\(x\) failed: KeyError: 'lost'; at .*test_rewrites",
        "computed": r"the computed value absent\(x\) failed: KeyError: 'lost'; at .*test_rewrites",
        "text": r"the computed value word\(x\) is to be a number, it is 'word'",
    }
    with pytest.raises(PipelineError, match=said[what]):
        run(unary("exp", "%x", "%r"), f"{name}{{set=trial}}")


def test_a_rule_applies_only_where_types_fit(trial: RewriteSet) -> None:
    @trial.rewrite
    def halved(x: Term) -> Rule:
        return x + x >> x * 2.5

    ints = T.replace("f32", "i32")
    after, _ = run(binary("add", "%x", "%x", "%r").replace("f32", "i32"), "rewrite{set=trial}", kind=ints)
    assert "smelt.add" in after
    assert "smelt.mul" in run(binary("add", "%x", "%x", "%r"), "rewrite{set=trial}")[0]


@pytest.mark.parametrize("name", canonical.rewrites)
def test_rewrites_of_canonicalize_are_exact(name: str) -> None:
    verdict = check(canonical.rewrites[name])
    assert verdict.verdict == "exact" and verdict.kept, str(verdict)


def test_examples_name_attributes_that_a_pattern_leaves_open(trial: RewriteSet) -> None:
    """Each is a program: attributes that fit are seldom found by trying."""

    @trial.rewrite(examples=[{"x": (2, 3), "axes": (1,)}, {"x": (2, 1, 3), "axes": (0, 2)}])
    def sum_of_nothing(x: Term) -> Rule:
        return ops.reduce_sum(x) >> x

    (rule,) = sum_of_nothing.rules
    made = instances(rule, float32, examples=sum_of_nothing.examples)
    assert [function_named(i.module).returns[0].aval.shape for i in made] == [(2,), (1,)]
    assert check(canonical.rewrites["pad-by-nothing"], among=[float32]).instances == 5


def _planted() -> dict[str, Callable[[Term, Term], Rule]]:
    """Rewrites that are wrong, each as rewrites go wrong."""
    return {
        "sign": lambda x, y: x - y >> y - x,
        "abs of neg": lambda x, y: abs(-x) >> x,
        "root of a square": lambda x, y: ops.sqrt(x * x) >> x,
        "order of a quotient": lambda x, y: x / y >> y / x,
        "maximum of negatives": lambda x, y: ops.maximum(-x, -y) >> -ops.maximum(x, y),
        "double": lambda x, y: x + x >> x,
        "constant": lambda x, y: x * 2 >> x * 2.0000001,
        "sine of neg": lambda x, y: ops.sin(-x) >> ops.sin(x),
        "log of a product": lambda x, y: ops.log(x * y) >> ops.log(x) + ops.log(y),
        "comparison": lambda x, y: ops.select(ops.less(x, y), x, y) >> ops.maximum(x, y),
        "not of less": lambda x, y: ops.logical_not(ops.less(x, y)) >> ops.greater(x, y),
        "floor": lambda x, y: ops.floor(-x) >> -ops.floor(x),
    }


@pytest.mark.parametrize("name", _planted())
@pytest.mark.parametrize("reals", [False, True])
def test_planted_wrong_rewrites_are_classified_as_wrong(trial: RewriteSet, name: str, reals: bool) -> None:
    rule = _planted()[name]

    def planted(x: Term, y: Term) -> Rule:
        return rule(x, y)

    verdict = check(trial.rewrite(reals=reals)(planted))
    assert verdict.verdict == "wrong" and not verdict.kept, str(verdict)
    assert "became" in str(verdict)


BOUNDED: dict[str, tuple[Callable[[Term, Term], Rule], bool]] = {
    "reciprocal": (lambda x, y: x / 3.0 >> x * (1 / 3.0), False),
    "distributive": (lambda x, y: x * y + x * x >> x * (y + x), True),
    "exponentials": (lambda x, y: ops.exp(x) * ops.exp(y) >> ops.exp(x + y), True),
    "log of exp": (lambda x, y: ops.log(ops.exp(x)) >> x, True),
}


@pytest.mark.parametrize("name", BOUNDED)
def test_rewrites_that_round_otherwise_are_bounded(trial: RewriteSet, name: str) -> None:
    rule, relative = BOUNDED[name]

    def rounds(x: Term, y: Term) -> Rule:
        return rule(x, y)

    def when(x: Term) -> Condition:
        return x.is_float

    def floats(x: Term, y: Term) -> Rule:
        return rounds(x, y).when(when(x))

    claimed_exact = check(trial.rewrite(floats))
    assert claimed_exact.verdict == "bounded" and not claimed_exact.kept, str(claimed_exact)
    assert claimed_exact.relative == relative and "claimed: exact" in str(claimed_exact)
    trial.rewrites.clear()
    assert check(trial.rewrite(ulps=2, reals=relative)(floats)).kept


def test_what_no_program_matches_is_said(trial: RewriteSet) -> None:
    @trial.rewrite
    def never(x: Term) -> Rule:
        return (-x >> x).when(x.is_float & x.is_integer)

    assert check(never).verdict == "unseen" and not check(never).kept


def test_the_command_lists_and_checks(trial: RewriteSet, capsys: pytest.CaptureFixture[str]) -> None:
    @trial.rewrite
    def wrong(x: Term) -> Rule:
        return abs(-x) >> x

    @trial.rewrite(reals=True)
    def log_of_exp(x: Term) -> Rule:
        return ops.log(ops.exp(x)) >> x

    assert opt.main(["--list-rewrites"], isolate=False) == 0
    out = capsys.readouterr().out
    assert "trial: Rewrites of a test.\n  wrong\n    abs(-x) → x\n  log-of-exp (for real numbers)\n" in out
    assert "  mul-one\n    x * 1 → x where x is real\n" in out and "  transpose-of-transpose\n" in out
    assert opt.main(["--check-rewrites=trial"], isolate=False) == 1
    assert "wrong: wrong, claimed: exact" in capsys.readouterr().out
    assert opt.main(["--check-rewrites=trial/log-of-exp,canonicalize/mul-one"], isolate=False) == 0
    assert "mul-one: exact" in capsys.readouterr().out
    assert opt.main(["--check-rewrites=trial/nonsense"], isolate=False) == 1
    assert capsys.readouterr().err.startswith("smelt-opt: error: the set trial has no rewrite 'nonsense'")
