"""Smaller modules: the fault stays, the rest goes."""

from __future__ import annotations

import re
import sys

import pytest

import smelt
from smelt.ir import text
from smelt.ir.errors import IRError
from smelt.passes import Pipeline
from smelt.passes.reduction import count_ops, reduce_text
from smelt.tools import cli


def source_of(function, *arguments) -> str:
    return text.to_text(smelt.compile(function).trace(*arguments).lower().module)


def transformer(x, w):
    for _ in range(4):
        h = smelt.softmax(x @ x.T / 8, axis=-1) @ x
        x = x + smelt.erf(h @ w) * smelt.rsqrt((h * h).mean(axis=-1, keepdims=True) + 1e-5)
    return x.sum(), x.max(axis=0), smelt.sort(x, axis=1)


#: A part of the text that stands for a fault, and how many ops are left at most.
FAULTS = {
    "smelt.erf": 1, "smelt.sort": 1, "smelt.rsqrt": 1, "smelt.reduce_max": 1, "smelt.transpose": 1,
    "smelt.exp": 1, "smelt.constant": 2, "lhs_contracting = array<i64: 1>": 1,
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_one_op_is_left(fault):
    source = source_of(transformer, smelt.ones((4, 8)), smelt.ones((8, 8)))
    assert source.count("smelt.") > 60
    steps: list[str] = []
    found = reduce_text(source, lambda s: fault in s, steps.append)
    assert fault in found and count_ops(found) <= FAULTS[fault] and steps
    text.parse(found)


@pytest.mark.parametrize("at", [5, 60, 115])
def test_runs_grow_with_the_logarithm(at):
    """Wherever the fault is: the command is what costs."""

    def program(x, y):
        for i in range(120):
            x, y = y, smelt.erf(x) if i == at else x * y + i
        return x

    runs = 0

    def fails(s: str) -> bool:
        nonlocal runs
        runs += 1
        return "smelt.erf" in s

    assert count_ops(reduce_text(source_of(program, smelt.ones(3), smelt.ones(3)), fails)) == 1
    assert runs < 40


def test_two_ops_that_have_to_meet():
    source = source_of(transformer, smelt.ones((4, 8)), smelt.ones((8, 8)))

    def fails(s: str) -> bool:
        return "smelt.exp" in s and s.find("smelt.reduce_sum", s.find("smelt.exp")) > 0

    assert count_ops(reduce_text(source, fails)) <= 3


def test_functions_that_nobody_calls_go():
    def program(x):
        return smelt.cond(x.sum() > 0, smelt.sin, smelt.cos, x), smelt.exp(x)

    source = source_of(program, smelt.ones(3))
    assert source.count("func.func") == 3
    found = reduce_text(source, lambda s: "smelt.exp" in s)
    assert found.count("func.func") == 1
    assert "scf.if" in reduce_text(source, lambda s: "smelt.sin" in s and "scf.if" in s)


def test_transformations_stay_whole():
    source = source_of(lambda x: smelt.grad(lambda x: smelt.sin(x).sum())(x * 2) + 1, smelt.ones(3))
    found = reduce_text(source, lambda s: "smelt.vjp" in s)
    assert "smelt.vjp" in found and count_ops(found) < count_ops(source)


def test_a_module_that_does_not_fail():
    with pytest.raises(IRError, match="the whole module does not fail"):
        reduce_text(source_of(lambda x: x + 1, smelt.ones(3)), lambda s: False)


def test_the_command(tmp_path, capsys):
    path, out = tmp_path / "f.mlir", tmp_path / "small.mlir"
    path.write_text(source_of(lambda x: smelt.exp(smelt.erf(x) + 1) * 2, smelt.ones(3)))
    check = "import sys; sys.exit('the fault' if 'smelt.erf' in open(sys.argv[1]).read() else 0)"
    command = ["reduce", str(path), "-o", str(out), "--message", "the fault", "--", sys.executable, "-c", check, "{}"]
    assert cli.main(command) == 0
    assert count_ops(out.read_text()) == 1 and "runs of the command" in capsys.readouterr().err
    assert cli.main(["reduce", str(path), "--", sys.executable, "-c", "0"]) == 1
    assert "succeeds on the whole module" in capsys.readouterr().err
    assert cli.main(["reduce", str(path), "--message", "another", "--", *command[-4:]]) == 1
    assert f"{path}: error: the command fails, and does not print 'another', on the whole" in capsys.readouterr().err
    assert cli.main(["reduce", str(path), "--", "smelt", "verifi", "{}"]) == 1
    assert "this command cannot be meant: smelt: error: argument COMMAND: invalid choice" in capsys.readouterr().err
    assert cli.main(["reduce", str(path), "--", "/nowhere/command"]) == 1
    assert "/nowhere/command cannot be run" in capsys.readouterr().err


def nested(x, w):
    def step(c, t):
        h = smelt.cond(c.sum() > 0, lambda h: smelt.tanh(h) * 2, lambda h: smelt.sin(h) + smelt.erf(h @ w), c @ w + t)
        return h, (h * h).sum()

    c, ys = smelt.scan(step, x[0], x)
    last = smelt.while_loop(lambda s: s.sum() < 10, lambda s: smelt.abs(s) * 1.5 + smelt.expm1(s * s), c)
    return smelt.softmax(x @ w, axis=-1).sum() + ys.sum() + smelt.sort(last).sum()


def loss(w):
    x = smelt.ones((5, 4))
    return smelt.checkpoint(lambda v: smelt.sum(smelt.arctan(v @ w) + smelt.log1p(smelt.exp(v))))(x)


#: Where a fault lies in another function than @main: a program, and a part of its text.
INSIDE = {
    "a branch in a loop": (nested, "smelt.erf"),
    "the other branch": (nested, "smelt.tanh"),
    "a loop's condition": (nested, "smelt.less"),
    "a loop's body": (nested, "smelt.expm1"),
    "what is differentiated": (lambda x, w: smelt.grad(loss)(w), "smelt.arctan"),
    "what is differentiated twice": (lambda x, w: smelt.hessian(lambda w: nested(x, w))(w), "smelt.erf"),
    "what is batched": (lambda x, w: smelt.vmap(lambda r: nested(r[None] + x, w))(x), "smelt.expm1"),
}


@pytest.mark.parametrize("name", INSIDE)
def test_a_fault_in_another_function(name):
    program, fault = INSIDE[name]
    source = source_of(program, smelt.ones((5, 4)), smelt.ones((4, 4)))
    steps: list[str] = []
    found = reduce_text(source, lambda s: fault in s, steps.append)
    assert fault in found and count_ops(found) == 1 and found.count("func.func") == 1, found


def test_a_fault_of_what_a_transformation_becomes():
    """The op at fault is in no function: a pass makes it."""
    source = source_of(lambda x, w: smelt.grad(loss)(w), smelt.ones((5, 4)), smelt.ones((4, 4)))
    expanded = "fixpoint(inline,batch,jvp,linearize,transpose)"

    def fails(s: str) -> bool:
        module = text.parse(s)
        Pipeline.parse(expanded).run(module)
        return "smelt.div" in text.to_text(module)

    assert "smelt.div" not in source
    assert count_ops(reduce_text(source, fails)) == 1


def test_another_fault_than_the_message(tmp_path, capsys):
    """What takes too long has not printed the message: it is not what is looked for."""
    path = tmp_path / "f.mlir"
    path.write_text(source_of(lambda x: smelt.exp(smelt.sin(x)), smelt.ones(3)))
    slow = "import sys, time; t = open(sys.argv[1]).read(); 'sin' in t or time.sleep(60); sys.exit('bad ' + t)"
    command = ["reduce", str(path), "--timeout", "2", "--message", "bad", "--", sys.executable, "-c", slow, "{}"]
    assert cli.main(command, isolate=False) == 0
    out, _ = capsys.readouterr()
    assert "smelt.sin" in out and "smelt.exp" not in out
    command[command.index("--message") + 1] = "worse"
    command[command.index(slow)] = "import time; time.sleep(60)"
    assert cli.main(command, isolate=False) == 1
    assert "takes more than 2 s, which is another fault than --message, on the whole module" in capsys.readouterr().err


VECTOR = "tensor<4xf32>"


def chain(*names: str) -> str:
    """Ops one behind the other."""
    ops = [f'%{i + 1} = "smelt.{name}"(%{i}) : ({VECTOR}) -> {VECTOR}' for i, name in enumerate(names)]
    ops[0] = ops[0].replace("(%0)", "(%x)")
    return f"func.func @main(%x: {VECTOR}) -> {VECTOR} {{\n" + "\n".join(ops) + f"\nreturn %{len(names)} : {VECTOR}\n}}"


def test_a_fault_of_ops_that_lie_far_apart() -> None:
    """What stands between them goes, although one reads what comes of the other."""
    asked: list[str] = []

    def fails(source: str) -> bool:
        asked.append(source)
        return "smelt.exp" in source and "smelt.sin" in source

    found = reduce_text(chain("exp", *["neg"] * 40, "sin", "neg"), fails)
    assert re.findall(r"smelt\.(\w+)", found) == ["exp", "sin"] and count_ops(found) == 2, found
    assert len(asked) == len(set(asked)) and len(asked) < 60


def test_no_module_is_without_results() -> None:
    found = reduce_text(chain("neg", "exp", "neg"), lambda source: True)
    assert count_ops(found) <= 1 and "-> tensor<4xf32>" in found
