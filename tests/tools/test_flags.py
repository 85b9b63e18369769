"""Flags of the command lines: what they say, alone and together; mistakes are one line with a way out."""

from __future__ import annotations

import argparse
import io
import re

import numpy as np
import pytest

import smelt
from smelt.tools import cli, opt
from smelt.tools.commands import command_parser
from smelt.tools.usage import count, seconds, some

SOURCE = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
PROGRAM = """
import smelt

def f(x):
    return smelt.exp(x) * 2
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.mlir").write_text(SOURCE)
    (tmp_path / "m.py").write_text(PROGRAM)
    (tmp_path / "dumps").mkdir()
    np.save(tmp_path / "x.npy", np.ones(4, np.float32))
    return tmp_path


def refused(capsys, words, *parts, code=1):
    """One line to stderr, and nothing else."""
    assert cli.main(words.split(), isolate=False) == code
    out, err = capsys.readouterr()
    assert not out and err.count("\n") == 1 and "internal error" not in err, err
    for part in parts:
        assert part in err, err


STAGES = ["graph", "canonicalize", "fuse", "kernel", "list", "msl", "gpu", "manifest", "llvm"]


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("form", ["", "--short", "--short --lines"])
def test_every_stage_in_every_form(folder, capsys, stage, form):
    code = cli.main(f"dump m.py:f f32[8] --stage={stage} {form}".split(), isolate=False)
    out, err = capsys.readouterr()
    if form and stage in ("kernel", "llvm", "msl", "gpu", "manifest"):
        assert code == 1 and not out and f"stage '{stage}' has no short form" in err
    else:
        assert code == 0 and out and not err
    if stage == "list":
        assert {"graph", "fuse", "kernel", "msl"} <= set(re.findall(r"^\S+", out, re.MULTILINE))


@pytest.mark.parametrize(
    ("flags", "parts"),
    [
        ("--stage=fuse --emit=cost", "--stage=fuse and --emit=cost ask for different things"),
        ("--emit=cost --remarks", "--emit=cost and --remarks ask for different things"),
        ("--emit=cost --metal-dir=out", "--emit=cost and --metal-dir ask for different things"),
        ("--remarks --stage=list --metal-dir=out", "--stage=list and --remarks and --metal-dir ask"),
        ("--emit=stablehlo --short", "--short says nothing here"),
        ("--remarks --short", "--short says nothing here"),
        ("--lines", "--lines says nothing here: give --short, too"),
        ("--measure", "--measure says nothing here: give --emit=cost, too"),
        ("--stage=fuse --measure", "--measure says nothing here"),
        ("--gpu=apple9", "--gpu says nothing here: give a stage of a GPU's program (--stage=msl) or --metal-dir, too"),
        ("--metal-dir=out -o x", "-o says nothing here: --metal-dir names where files go"),
        ("--emit=linalg --pass-pipeline=cse", "--emit=linalg writes a program that --pass-pipeline has no part in"),
        ("--stage=msl --pass-pipeline=cse", "--stage=msl writes a program that --pass-pipeline has no part in"),
        ("--metal-dir=out --pass-pipeline=cse", "--metal-dir writes a program that --pass-pipeline has no part in"),
    ],
)  # fmt: skip
def test_flags_of_dump_that_cannot_be_meant(folder, capsys, flags, parts):
    refused(capsys, f"dump m.py:f f32[8] {flags}", f"m.py:f: error: {parts}")


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("f32[n,8]", "column 5: 'n' is no extent: extents are numbers"),
        ("float32[8,?]", "column 9: '?' is no extent"),
        ("f32[-1]", "column 5: '-1' is no extent"),
        ("f32[1.5]", "'1.5' is no extent"),
        ("complex<f32>[n]", "'n' is no extent"),
        ("{a:f32[n]}", "'n' is no extent"),
        ("f32[8", "column 5: ']' is expected"),
        ("f99[8]", "unknown dtype 'f99'"),
        ("f32(8)", "'f32' is neither a type such as f32[4,8] nor a number"),
    ],
)
def test_types_that_are_none(folder, capsys, argument, message):
    refused(capsys, f"dump m.py:f {argument}", message)


@pytest.mark.parametrize(
    ("words", "message", "code"),
    [
        ("view dumps -o v.html --measure", "--measure says nothing here: a folder of dumps is shown as it is", 1),
        ("view dumps -o v.html --pass-pipeline=cse", "--pass-pipeline says nothing here", 1),
        ("view dumps -o v.html --device=cpu", "--device says nothing here", 1),
        ("view m.py:f f32[3] -o v.html --custom-calls", "--custom-calls says nothing here", 1),
        ("view f.mlir -o v.html --custom-calls", "--custom-calls says nothing here", 1),
        ("view f.mlir -o nowhere/v.html", "nowhere/v.html: error: cannot be written: there is no such folder", 1),
        ("view f.mlir -o dumps", "dumps: error: cannot be written: it is a folder", 1),
        ("reduce f.mlir -o nowhere/x -- false", "nowhere/x: error: cannot be written", 1),
        ("reduce f.mlir --timeout=0 -- false", "'0' is no number of seconds above 0", 2),
        ("diff - -", "one of the two files can be standard input, not both", 2),
        ("launch -n 2", "smelt launch: what is to run?", 1),
        ("launch -n 2 --backend=nccl", "smelt launch: what is to run?", 1),
        ("launch -n 0 m.py", "'0' is no whole number from 1 on", 2),
        ("launch -n -1 m.py", "argument -n: ", 2),
        ("run nofile.onnx", "nofile.onnx: error: No such file or directory", 1),
        ("verify f.mlir --device=abacus", "there is no device 'abacus'", 1),
        ("bake", "invalid choice: 'bake'", 2),
        ("dump m.py:f f32[8] --stage=nope", "sum-taps, canonicalize, cse, dce, split-sums, fuse, plan-buffers, kernel, "
         "llvm, gpu, msl, manifest", 1),
        ("dump m.py:f f32[8] --stage=nope --short", "plan-buffers, kernel, llvm, gpu, msl, manifest", 1),
        ("dump m.py:f f32[8] --stage=ms", "there is no stage 'ms'; did you mean msl?", 1),
        ("dump m.py:f f32[8] --stage=FUSE", "there is no stage 'FUSE'; did you mean fuse?", 1),
        ("dump m.py:f f32[8] --stage=", "argument --stage: a name is missing (smelt dump --help", 2),
        ("dump m.py:f f32[8] --device=", "argument --device: a name is missing", 2),
        ("dump m.py:f f32[8] --stages=fuse", "arguments: --stages=fuse; did you mean --stage? (smelt dump --help", 2),
        ("run f.mlir --inputs x.npy", "arguments: --inputs x.npy; did you mean --input? (smelt run --help", 2),
        ("diff f.mlir f.mlir f.mlir", "unrecognized arguments: f.mlir (smelt diff --help lists what it takes)", 2),
        ("run m.py", "m.py: error: this is a Python file, no MLIR text: name a function in it", 1),
        ("view m.py -o v.html", "smelt dump m.py:FUNCTION 'f32[8]' (smelt view likewise)", 1),
        ("launch -n 2 -- nofile.py", "smelt launch: nofile.py: there is no such file", 1),
        ("launch -n 2 nofile.py", "smelt launch: nofile.py: there is no such file", 1),
        ("run", "the following arguments are required: FILE (smelt run --help lists what it takes)", 2),
        ("opt f.mlir --opt-bisect-limit=-2", "'-2' is no whole number from 0 on", 2),
        ("opt f.mlir --pass-timeout=-1", "'-1' is no number of seconds above 0", 2),
        ("opt f.mlir --parse-timeout=nan", "'nan' is no number of seconds above 0", 2),
        ("opt f.mlir --emit=dot --short", "--short says nothing here: it is a form of the dialect's IR", 1),
        ("opt f.mlir --emit=llvm --mlir-print-debuginfo", "--mlir-print-debuginfo says nothing here", 1),
        ("opt f.mlir --execute --emit=dot", "--execute and --emit=dot ask for different things", 1),
        ("opt --list-passes --list-ops", "--list-passes and --list-ops ask for different things", 1),
        ("opt f.mlir --cse --mlir-print-ir-tree-dir=t", "give one that prints, too, such as --mlir-print-ir", 1),
        ("opt f.mlir --cse --mlir-print-ir-after=csee", "unknown pass 'csee'", 1),
        ("opt f.mlir --cse --mlir-print-ir-before=csee#2", "unknown pass 'csee'", 1),
        ("opt f.mlir --remarks-output-file=nowhere/x --fuse", "nowhere/x: error: cannot be written: No such file", 1),
        ("opt f.mlir --device=cpu", "unknown pass 'device'", 1),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_a_line(folder, capsys, words, message, code):
    refused(capsys, words, message, code=code)
    assert not (folder / "v.html").exists()


#: What each command cannot do without, from the folder.
NEEDS = {
    "dump": "m.py:f f32[8]", "view": "m.py:f f32[8] -o v.html", "run": "f.mlir", "verify": "f.mlir", "reduce": "f.mlir",
    "diff": "f.mlir f.mlir", "check-metal": "f.mlir", "launch": "", "doctor": "", "cache": "",
}  # fmt: skip


@pytest.mark.parametrize("command", sorted(NEEDS))
def test_each_command_names_its_own_help(folder, capsys, command):
    """Of a flag that there is not."""
    found = f"smelt {command}: error: ", f"(smelt {command} --help lists what it takes)"
    refused(capsys, f"{command} --nope {NEEDS[command]}", *found, code=2)


def test_all_commands_are_tried():
    (commands,) = (a for a in command_parser()._actions if isinstance(a, argparse._SubParsersAction))
    assert set(commands.choices) == {*NEEDS, "opt"}


def test_no_passes_are_none(folder, capsys):
    assert cli.main(["verify", "f.mlir", "--pass-pipeline="], isolate=False) == 0
    assert capsys.readouterr().err.startswith("0 runs of passes")


def test_what_goes_together(folder, capsys):
    for words in (
        "opt f.mlir --emit=dot --short --cse --mlir-print-ir-after=cse",
        "opt f.mlir --cse --mlir-print-ir-after=canonicalize --mlir-print-ir-before=cse#2",
        "opt f.mlir --opt-bisect-limit=0 --cse",
        "opt f.mlir --opt-bisect-limit -1 --cse",
        "opt f.mlir --pipeline=metal:sim",
        "verify f.mlir --pass-pipeline=cpu",
        "opt f.mlir --canonicalize --cse --mlir-print-ir-tree-dir=t --mlir-print-ir-after-all",
        "dump m.py:f f32[8] --stage=msl --gpu=apple9",
        "dump m.py:f f32[8] --remarks --pass-pipeline=without:cse",
        "dump m.py:f f32[8] --stage=list --pass-pipeline=without:cse -o list",
        "dump m.py:f f32[8] --emit=cost --device=metal:sim",
        "view f.mlir -o v.html --pass-pipeline=without:cse",
    ):
        assert cli.main(words.split(), isolate=False) == 0, (words, capsys.readouterr())
    assert "cse" not in (folder / "list").read_text().split() and (folder / "t").is_dir()


def test_an_exported_function_from_standard_input(folder, capsys, monkeypatch):
    """Its arrays stand behind the text."""
    w = smelt.array(np.arange(4, dtype=np.float32))
    smelt.export_function("f.smelt", lambda x: x * w, smelt.ShapeDtype((4,), smelt.float32))
    assert cli.main(["run", "f.smelt", "--input", "x.npy"], isolate=False) == 0
    assert "[0.0, 1.0, 2.0, 3.0]" in capsys.readouterr().out
    data = (folder / "f.smelt").read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    refused(capsys, "run - --input x.npy", "whose arrays are read by its name: smelt run FILE")


def test_help_names_every_flag_and_each_has_words():
    parsers = [opt._parser()]
    commands = next(a for a in command_parser()._actions if isinstance(a, argparse._SubParsersAction))
    parsers += [p for name, p in commands.choices.items() if name != "opt"]
    for parser in parsers:
        text = parser.format_help()
        for action in parser._actions:
            assert action.help, (parser.prog, action)
            if action.help != argparse.SUPPRESS:
                assert all(flag in text for flag in action.option_strings)


def test_numbers_of_flags():
    assert seconds("0.5") == 0.5 and count("0") == 0 and some("3") == 3
    for read, bad in [(seconds, ("0", "-1", "nan", "inf", "x")), (count, ("-1", "1.5", "x")), (some, ("0", "x"))]:
        for text in bad:
            with pytest.raises(argparse.ArgumentTypeError):
                read(text)
