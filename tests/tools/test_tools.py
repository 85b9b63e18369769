"""smelt-opt and smelt: flags, errors, hostile input. A few cases run real processes."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smelt.tools import cli
from smelt.tools.dump import UsageError, parse_argument
from smelt.tools.expectations import mismatches, parse_diagnostics, parse_expectations
from smelt.tools.show import dense

GOOD = """
func.func @main() -> tensor<2xf32> {
  %c = "smelt.constant"() {value = 2.0 : f64, dtype = f32} : () -> tensor<f32>
  %0 = "smelt.broadcast"(%c) {shape = array<i64: 2>} : (tensor<f32>) -> tensor<2xf32>
  %1 = "smelt.sqrt"(%0) : (tensor<2xf32>) -> tensor<2xf32>
  %2 = "smelt.sqrt"(%0) : (tensor<2xf32>) -> tensor<2xf32>
  %3 = "smelt.mul"(%1, %2) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %3 : tensor<2xf32>
}
"""


def process(*arguments: str, stdin: bytes | None = None) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", *map(str, arguments)], input=stdin, capture_output=True, check=False, timeout=120
    )


def fails(result: tuple[int, str, str], *parts: str, code: int = 1) -> None:
    """The exit code, and a clear message on stderr alone."""
    assert result[0] == code, result
    for part in parts:
        assert part in result[2], result[2]
    assert "internal error" not in result[2]
    assert not result[1]


# smelt-opt


def test_passes_as_flags_run_in_order(run, good):
    code, out, err = run(good, "--cse", "--dce", "--mlir-pass-statistics")
    assert code == 0 and out.count("smelt.sqrt") == 1
    assert err.index("cse") < err.index("dce") and "1  ops merged" in err


def test_pipeline_and_alias(run, good):
    first = run(good, "--pass-pipeline=canonicalize,cse")
    second = run(good, "--pipeline", "builtin.module(canonicalize,cse)")
    assert first == second and first[0] == 0


def test_reads_standard_input(run, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO(GOOD))
    assert run("-")[0] == 0


def test_writes_a_file(run, good, tmp_path):
    target = tmp_path / "out.mlir"
    assert run(good, "-o", target) == (0, "", "")
    assert "smelt.sqrt" in target.read_text()


def test_print_ir(run, good):
    _, _, err = run(good, "--cse", "--dce", "--mlir-print-ir-after-all")
    assert err.count("IR Dump After") == 2
    _, _, err = run(good, "--cse", "--dce", "--mlir-print-ir-before-all")
    assert err.count("IR Dump Before") == 2
    _, _, err = run(good, "--cse", "--dce", "--mlir-print-ir-after=dce")
    assert err.count("IR Dump After") == 1 and "IR Dump After dce" in err


def test_timing(run, good):
    _, _, err = run(good, "--cse", "--dce", "--mlir-timing")
    assert "total" in err and "cse" in err and "%" in err


def test_debug_locations(run, good):
    assert "loc(" in run(good, "--mlir-print-debuginfo")[1]
    assert "loc(" not in run(good)[1]


def test_dump_and_reproducer(run, good, tmp_path):
    folder = tmp_path / "ir"
    assert run(good, "--cse", "--dce", "--dump-ir-to", folder)[0] == 0
    assert sorted(p.name for p in folder.iterdir()) == ["0000-input.mlir", "0001-cse.mlir", "0002-dce-unchanged.mlir"]
    code, _, err = run(good, "--cse", "--dump-ir-to", folder / "0000-input.mlir")
    assert code == 1 and "the IR cannot be written: File exists; name a folder" in err and "internal" not in err


def test_lists(run):
    from smelt.ir.op import registry as ops
    from smelt.passes import registry as passes

    code, out, _ = run("--list-passes")
    assert code == 0 and all(f"--{name}" in out for name in passes())
    code, out, _ = run("--list-ops")
    rows = [line.split() for line in out.splitlines()]
    assert code == 0 and {row[0] for row in rows if row} >= set(ops)
    for row in rows[1 : 1 + len(ops)]:
        if ops[row[0]].kind != "transform":
            assert "-" not in row[4:] and "missing" not in row, row
            assert row[-2] in ("rule", "scan")


def test_list_ops_shows_control_flow(run):
    from smelt.ir import control

    _, out, _ = run("--list-ops")
    rows = {row[0]: row for row in map(str.split, out.splitlines()) if len(row) == 9}
    assert {v.name for v in vars(control).values() if isinstance(v, control.ControlOp)} == {
        name for name, row in rows.items() if row[1] == "control"
    }
    for name in ("cond", "while", "scan"):
        assert set(getattr(control, name.upper()).callees) <= set(rows[name][3].split(","))


def test_list_ops_shows_ops_that_are_batched_by_a_loop(run, monkeypatch):
    from smelt.ir.op import Op, registry

    monkeypatch.setattr(type(registry["sort"]), "batch", Op.batch)
    _, out, _ = run("--list-ops")
    rows = {row[0]: row for row in map(str.split, out.splitlines()) if len(row) == 9}
    assert rows["sort"][-2] == "scan" and rows["argsort"][-2] == "rule"


def test_emit_dot(run, good):
    code, out, _ = run(good, "--emit=dot")
    assert code == 0 and out.startswith('digraph "main"') and out.count("->") == 6


def test_execute(run, good):
    assert run(good, "--execute") == (0, "dense<[2.0, 2.0]> : tensor<2xf32>\n", "")


def test_execute_needs_a_main_without_arguments(run, tmp_path):
    path = tmp_path / "f.mlir"
    path.write_text("func.func @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }")
    fails(run(path, "--execute"), "@main takes 1 arguments")
    path.write_text("func.func @f() { return }")
    fails(run(path, "--execute"), "no function @main; it has f")
    path.write_text(
        "func.func @main() -> tensor<f32> {\n  %0 = call @main() : () -> tensor<f32>\n  return %0 : tensor<f32>\n}"
    )
    fails(run(path, "--execute"), "f.mlir:2:8: error: @main calls itself")
    fails(run(path, "--verify-values", "--cse"), "f.mlir:2:8: error: @main calls itself")


@pytest.mark.parametrize("stage", ["kernel", "msl"])
def test_kernels_need_a_main(run, tmp_path, stage):
    path = tmp_path / "f.mlir"
    path.write_text("func.func @f() { return }")
    fails(run(path, f"--emit={stage}"), "no function @main; it has f")
    path.write_text("func.func private @main() -> tensor<f32>")
    fails(run(path, f"--emit={stage}"), "@main has no body")


def test_upstream_passes(run, good):
    assert run(good, "--symbol-dce")[0] == 0
    assert run(good, "--pass-pipeline=symbol-dce,func.func(canonicalize{max-iterations=2})")[0] == 0


def test_split_input(run, tmp_path):
    path = tmp_path / "split.mlir"
    path.write_text(GOOD + "// -----\n" + GOOD)
    code, out, _ = run(path, "--split-input-file")
    assert code == 0 and out.count("// -----") == 1 and out.count("@main") == 2


@pytest.mark.parametrize(
    "arguments, parts",
    [
        (["--nothing"], ["unknown pass 'nothing'"]),
        (["--canonicalise"], ["did you mean canonicalize?"]),
        (["--cse=limit=3"], ["pass cse has no option 'limit'"]),
        (["--pass-pipeline=cse,"], ["a pass name is expected"]),
        (["--pass-pipeline=fixpoint(cse"], ["')' is expected"]),
        (["--pass-pipeline=" + "fixpoint(" * 100], ["nests too deeply"]),
        (["-o", "/no/such/folder/x"], ["cannot be written"]),
    ],
)
def test_mistakes(run, good, arguments, parts):
    fails(run(good, *arguments), *parts)


def test_mistakes_of_usage(run, good):
    for arguments in (["--emit=poem"], ["--verify-each=maybe"], ["a", "b"], ["--pass-pipeline"]):
        code, out, err = run(good, *arguments)
        assert code == 2 and not out and "smelt-opt: error" in err


# Hostile input


HOSTILE = {
    "empty": (b"", "the text is empty"),
    "blank": (b"\n \n", "the text is empty"),
    "bytecode": (b"ML\xefR\x01\x00", "bytecode"),
    "not utf-8": (b"func.func @f() {\n\xff\xfe", ":2:1: error"),
    "zeros": (b"\0" * 100, "not MLIR text"),
    "brackets": (b"(" * 100_000, "nest more than"),
    "regions": (b"module {" * 5_000 + b"}" * 5_000, "nest more than"),
    "types": (b"func.func @f(%x: " + b"tuple<" * 5_000, "nest more than"),
    "signs": (b"#m = affine_map<(d0) -> (" + b"-" * 100_000 + b"d0)>", "signs in a row"),
    "truncated": (GOOD.encode()[: len(GOOD) // 2], "error: "),
    "unclosed string": (b'"smelt.add', "error: "),
    "huge integer": (b"func.func @f(%x: tensor<" + b"9" * 5_000 + b"xf32>) { return }", "invalid dimension"),
    "huge constant": (
        b'%0 = "smelt.constant"() {value = ' + b"9" * 1_000 + b" : i64, dtype = i32} : () -> tensor<i32>",
        "error: ",
    ),
    "unknown dialect": (b'"foo.bar"() : () -> ()', "unregistered dialect\n"),
    "unknown type": (b"func.func private @f(!foo.bar)", "unregistered dialect\n"),
    "unknown attribute": (b"func.func private @f() attributes {x = #foo.bar}", "unregistered dialect\n"),
    "unknown op": (b'"smelt.foo"() : () -> ()', "smelt.foo is an op of another version"),
    "other op": (
        b"func.func @main(%x: tensor<f32>) -> tensor<f32> { %0 = arith.addf %x, %x : tensor<f32>\n"
        b"return %0 : tensor<f32> }",
        ":1:56: error: arith.addf is not an op of the smelt dialect",
    ),
    "words": (b"what is this", "error: "),
    "long words": (b"// " + b"x" * 3_000_000 + b"\n" + b"y" * 100_000, "…"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_input(run, tmp_path, name):
    data, part = HOSTILE[name]
    path = tmp_path / "hostile.mlir"
    path.write_bytes(data)
    result = run(path, "--canonicalize", "--cse", "--dce")
    fails(result, part, str(path))


@pytest.mark.parametrize("name", ["regions", "truncated", "bytecode", "unknown dialect"])
def test_hostile_input_in_a_process(tmp_path, name):
    data, part = HOSTILE[name]
    done = process("smelt.tools.opt", "-", "--cse", stdin=data)
    assert done.returncode == 1 and part in done.stderr.decode() and not done.stdout
    assert b"Traceback" not in done.stderr


def test_huge_shapes_are_only_numbers(run, tmp_path):
    kind = "tensor<9223372036854775807x9223372036854775807xf32>"
    path = tmp_path / "huge.mlir"
    path.write_text(
        f'func.func @main(%x: {kind}) -> {kind} {{ %0 = "smelt.exp"(%x) : ({kind}) -> {kind}\n return %0 : {kind} }}'
    )
    assert run(path, "--canonicalize", "--cse", "--dce")[0] == 0
    for stage in "kernel", "msl":
        fails(run(path, f"--emit={stage}"), "out of memory: more memory than can be addressed is planned for @main")


def test_more_memory_than_there_is(run, tmp_path):
    path = tmp_path / "large.mlir"
    path.write_text(
        'func.func @main() -> tensor<1000000000000000xf32> {\n  %0 = "smelt.iota"() {shape = array<i64: '
        "1000000000000000>, axis = 0 : i64, dtype = f32} : () -> tensor<1000000000000000xf32>\n"
        "  return %0 : tensor<1000000000000000xf32>\n}"
    )
    fails(run(path, "--execute"), "out of memory")


def _die(*_):
    os.kill(os.getpid(), signal.SIGKILL)


def _leave(progress: Any) -> int:
    progress("pass leave")
    os._exit(0)


def _exit(progress: Any) -> int:
    progress("pass leave")
    raise SystemExit(3)


def _exit_well(progress: Any) -> int:
    progress("pass leave")
    raise SystemExit


def _hang(*_):
    time.sleep(60)


def test_a_crash_is_an_error_message(capsys: pytest.CaptureFixture[str]):
    from smelt.tools.isolate import run_isolated

    assert run_isolated(_die, (), 10, "a.mlir") == 1
    assert capsys.readouterr().err == "a.mlir: error: the parser crashed with SIGKILL\n"


@pytest.mark.parametrize("leave", [_leave, _exit, _exit_well])
def test_a_job_that_ends_the_process_is_an_error_message(leave: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 0 of a process whose job has not returned is no success: a check would pass that never ran."""
    from smelt.tools.isolate import run_isolated

    assert run_isolated(leave, (), 10, "a.mlir", failed=2) == 2
    assert "a.mlir: error: pass leave ended the process (exit code " in capsys.readouterr().err


def test_a_parser_that_hangs_is_given_up(capsys: pytest.CaptureFixture[str]):
    from smelt.tools.isolate import run_isolated

    assert run_isolated(_hang, (), 0.5, "a.mlir", failed=2) == 2
    assert "a.mlir: error: the parser was still busy" in capsys.readouterr().err


# Processes


def test_help_loads_no_library_that_takes_long():
    code = "import sys, smelt.tools.opt as o; o.main(['--help']); print({'torch_mlir', 'scipy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "--pass-pipeline" in done.stdout and done.stdout.splitlines()[-1] == "set()"


def test_process(good):
    done = process("smelt.tools.opt", good, "--canonicalize", "--execute")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"dense<[2.0, 2.0]> : tensor<2xf32>\n", b"")


def test_module_entry_point(good):
    done = process("smelt.tools", "opt", good, "--execute")
    assert done.returncode == 0 and b"dense" in done.stdout


# smelt run


@pytest.fixture
def exp(tmp_path) -> str:
    path = tmp_path / "exp.mlir"
    path.write_text("""
func.func @main(%x: tensor<3xf32>, %n: tensor<i32>) -> (tensor<3xf32>, tensor<i32>) {
  %0 = "smelt.neg"(%x) : (tensor<3xf32>) -> tensor<3xf32>
  return %0, %n : tensor<3xf32>, tensor<i32>
}
func.func private @other(%x: tensor<bf16>) -> tensor<bf16> {
  return %x : tensor<bf16>
}
""")
    np.save(tmp_path / "x.npy", np.array([1, 2, 3], np.float32))
    np.save(tmp_path / "n.npy", np.array(7, np.int32))
    np.save(tmp_path / "wide.npy", np.array([1.0, 2, 3]))
    np.savez(tmp_path / "archive.npz", np.zeros(3))
    (tmp_path / "text.npy").write_text("hello")
    return str(path)


def smelt_run(run, exp, *arguments):
    folder = Path(exp).parent
    words = [folder / a if a.endswith((".npy", ".npz")) else a for a in arguments]
    return run("run", exp, "--device", "reference", *words, main=cli.main)


def test_run(run, exp):
    code, out, _ = smelt_run(run, exp, "--input", "x.npy", "--input", "n.npy")
    assert (code, out) == (0, "dense<[-1.0, -2.0, -3.0]> : tensor<3xf32>\ndense<7> : tensor<i32>\n")


def test_run_saves(run, exp):
    args = ("--input", "x.npy", "--input", "n.npy", "--output", "y.npy", "--output", "m.npy")
    assert smelt_run(run, exp, *args) == (0, "", "")
    np.testing.assert_array_equal(np.load(Path(exp).parent / "y.npy"), [-1, -2, -3])


def test_run_takes_either_byte_order(run, exp):
    np.save(Path(exp).parent / "swapped.npy", np.array([1, 2, 3], ">f4"))
    plain = smelt_run(run, exp, "--input", "x.npy", "--input", "n.npy")
    assert smelt_run(run, exp, "--input", "swapped.npy", "--input", "n.npy") == plain


def test_run_asks_the_settings_for_the_device(run, exp, monkeypatch):
    from smelt.ir.settings import override
    from smelt.runtime.device import devices

    monkeypatch.delitem(devices, "metal", raising=False)
    with override(device="metal"):
        fails(run("run", exp, main=cli.main), "no device 'metal'")


def test_run_another_function_on_bfloat16(run, exp):
    import ml_dtypes

    np.save(Path(exp).parent / "h.npy", np.array(1.5, ml_dtypes.bfloat16))
    code, out, _ = smelt_run(run, exp, "--function", "other", "--input", "h.npy")
    assert (code, out) == (0, "dense<1.5> : tensor<bf16>\n")


@pytest.mark.parametrize(
    "arguments, part",
    [
        ([], "@main takes 2 arguments (f32[3], i32[]), --input gives 0"),
        (["--input", "wide.npy", "--input", "n.npy"], "argument 0 of @main must be f32[3], is float64[3]"),
        (["--input", "n.npy", "--input", "n.npy"], "must be f32[3], is int32[]"),
        (["--input", "none.npy", "--input", "n.npy"], "none.npy: error: cannot be read"),
        (["--input", "text.npy", "--input", "n.npy"], "not a .npy file"),
        (["--input", "archive.npz", "--input", "n.npy"], "archive"),
        (["--function", "nothing"], "no function @nothing; it has main, other"),
        (["--input", "x.npy", "--input", "n.npy", "--output", "y.npy"], "2 results, --output names 1"),
    ],
)
def test_run_mistakes(run, exp, arguments, part):
    fails(smelt_run(run, exp, *arguments), part)


def test_run_mistakes_of_files_and_devices(run, exp):
    fails(run("run", "nowhere.mlir", main=cli.main), "nowhere.mlir: error: cannot be read")
    fails(run("run", exp, "--device", "abacus", main=cli.main), "no device 'abacus'")


def test_run_hostile_text(run, tmp_path):
    path = tmp_path / "bad.mlir"
    path.write_bytes(b"(" * 10_000)
    fails(run("run", path, main=cli.main), ":1:1: error: brackets nest")


# smelt dump


PROGRAM = """
import smelt

def square(x, n=2):
    return smelt.square(x) * n

@smelt.compile
def compiled(parameters, x):
    return parameters["w"] * x + parameters["b"]

def broken(x):
    return x.nothing

number = 3
"""


@pytest.fixture
def program(tmp_path) -> str:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return str(path)


def test_dump(run, program):
    code, out, _ = run("dump", f"{program}:square", "f32[4,8]", "3", main=cli.main)
    assert code == 0 and "func.func @main(%arg0: tensor<4x8xf32>) -> tensor<4x8xf32>" in out


def test_dump_trees_of_a_compiled_function(run, program):
    code, out, _ = run("dump", f"{program}:compiled", "{w: f32[4], b: f32[4]}", "f32[4]", main=cli.main)
    assert code == 0 and out.count("smelt.mul") == 1 and out.count("smelt.add") == 1


def test_dump_a_stage(run, program):
    args = ("--device", "reference", "--stage=canonical")
    code, out, _ = run("dump", f"{program}:square", "f32[4]", "1", *args, main=cli.main)
    assert code == 0 and out.count("smelt.mul") + out.count("smelt.square") == 1


@pytest.mark.parametrize(
    "target, arguments, part",
    [
        ("square", [], "is not MODULE:FUNCTION"),
        ("nowhere.py:f", [], "there is no such file"),
        ("no.such.module:f", [], "cannot be imported"),
        ("PROGRAM:cube", [], "has no 'cube'; it has square, compiled, broken"),
        ("PROGRAM:number", [], "is not a function"),
        ("PROGRAM:broken", ["f32[2]"], "AttributeError"),
        ("PROGRAM:square", [], "missing 1 required positional argument"),
        ("PROGRAM:square", [], "what it takes follows its name: a type such as f32[4,8]"),
        ("PROGRAM:square", ["f33[2]"], "unknown dtype 'f33'"),
        ("PROGRAM:square", ["f32[2"], "argument 'f32[2'"),
        ("PROGRAM:square", ["f32[2]", "--stage=cooked", "--device=reference"], "no stage 'cooked'; stages: graph"),
        ("PROGRAM:square", ["f32[2]", "--device=abacus"], "no device 'abacus'"),
    ],
)
def test_dump_mistakes(run, program, target, arguments, part):
    fails(run("dump", target.replace("PROGRAM", program), *arguments, main=cli.main), part)


def test_view_of_a_file_without_its_function(run, program, tmp_path):
    part = f"{program!r} is not MODULE:FUNCTION"
    fails(run("view", program, "f32[2]", "-o", str(tmp_path / "v.html"), main=cli.main), part)


def test_dump_of_a_file_of_ir(run, good):
    fails(run("dump", good, main=cli.main), f"smelt view {good} -o page.html")


@pytest.mark.parametrize("command", ["run", "verify", "opt"])
def test_functions_where_files_of_ir_belong(run, program, command):
    part = f"No such file or directory; this command reads IR, which smelt dump {program}:square"
    fails(run(command, f"{program}:square", main=cli.main), part)


def test_dump_for_reading(run, program):
    _, out, _ = run("dump", f"{program}:square", "f32[4,8]", "3", "--short", "--lines", main=cli.main)
    assert "@main(%x: f32[4,8]" in out and "program.py:" in out and "tensor<" not in out
    _, out, _ = run("dump", f"{program}:square", "f32[4,8]", "3", "--short", "--stage=fuse", main=cli.main)
    assert "[fusion=map]" in out
    fails(run("dump", f"{program}:square", "f32[4]", "3", "--short", "--stage=llvm", main=cli.main), "no short form")


def test_opt_for_reading(run, good):
    _, out, err = run(good, "--short", "--cse", "--mlir-print-ir-after-all")
    assert "sqrt(broadcast(2.0, shape=[2]))" in out and out.removeprefix("// ") in err and "tensor<" not in out + err


def test_dump_names_lines_of_the_user_only(run, program):
    assert "program.py:12" in run("dump", f"{program}:broken", "f32[2]", main=cli.main)[2]
    assert "compilation.py" not in run("dump", f"{program}:square", main=cli.main)[2]


def test_dump_where_nothing_can_be_written(run, program):
    done = run("dump", f"{program}:square", "f32[2]", "-o", "/nowhere/x", main=cli.main)
    fails(done, "/nowhere/x: error: cannot be written")


def test_dump_of_an_impossible_shape(run, program):
    fails(run("dump", f"{program}:square", f"f32[{10**20}]", main=cli.main), "no shape that an array can have")


def test_usage(run):
    for arguments in ([], ["bake"], ["run"], ["dump"]):
        assert run(*arguments, main=cli.main)[0] == 2


def test_arguments():
    assert parse_argument("3") == 3 and parse_argument("0.5") == 0.5 and parse_argument("true") is True
    assert str(parse_argument("f32[4, 8]")) == "ShapeDtype(f32[4,8])"
    assert str(parse_argument("float16[]")) == "ShapeDtype(f16[])"
    assert str(parse_argument("complex<f32>[2]")) == "ShapeDtype(complex<f32>[2])"
    assert parse_argument("[1, (2, 3), {a: 4, 'b': 5}]") == [1, (2, 3), {"a": 4, "b": 5}]
    for bad in ("", "f32", "[1", "[1 2]", "{a 1}", "1 2", "f32[2]x"):
        with pytest.raises(UsageError):
            parse_argument(bad)


# Parts


def test_dense():
    assert dense(np.array([[1, 2.5], [np.nan, -np.inf]], np.float32)) == (
        "dense<[[1.0, 2.5], [nan, -inf]]> : tensor<2x2xf32>"
    )
    assert dense(np.array([True, False])) == "dense<[true, false]> : tensor<2xi1>"
    assert dense(np.array(1 - 2j, np.complex64)) == "dense<(1.0, -2.0)> : tensor<complex<f32>>"
    assert dense(np.zeros((0, 2), np.int8)) == "dense<[]> : tensor<0x2xi8>"
    assert dense(np.array(1e-20)) == "dense<1e-20> : tensor<f64>"


def test_expectations():
    source = """// expected-error @+1 {{one}}
x
// expected-error@above {{two}}
y // expected-error-re {{t{{h.}}ee}}
// expected-error @unknown {{nowhere}}
"""
    expected = parse_expectations(source)
    assert [(e.line, e.text) for e in expected] == [(2, "one"), (2, "two"), (4, "t{{h.}}ee"), (0, "nowhere")]
    printed = "f:2:1: error: number one\nf:2:3: error: and two\nf:4:1: error: three\nf:4:1: note: see\nnowhere at all"
    found = parse_diagnostics(printed)
    assert found[2].text == "three" and found[3].kind == "note"
    assert mismatches(expected, parse_diagnostics(printed.rsplit("\n", 1)[0])) == [
        (5, "expected error 'nowhere' was not produced")
    ]
    assert mismatches([], parse_diagnostics("f:1:2: error: surprise")) == [(1, "unexpected error: surprise")]
    with pytest.raises(UsageError, match=r"^2:24: error: 't\{\{\(\}\}' is no regular expression: "):
        parse_expectations("x\n// expected-error-re {{t{{(}}}}")


def test_an_expectation_that_cannot_be_read_is_an_error_of_its_line(run, tmp_path):
    path = tmp_path / "f.mlir"
    path.write_text("module {} // expected-error-re {{a{{[}}}}\n")
    fails(run(path, "--verify-diagnostics"), f"{path}:1:", "is no regular expression")


def test_pass_names_may_begin_with_smelt(good, run):
    lists = (["--cse", "--dce"], ["--smelt-cse", "--smelt-dce"], ["--pass-pipeline=smelt-cse,dce"])
    texts = [run(good, *arguments)[1] for arguments in lists]
    assert texts[0] == texts[1] == texts[2] and texts[0].count("smelt.sqrt") == 1
    code, _, err = run(good, "--smelt-fuse-all")
    assert code == 1 and "unknown pass 'smelt-fuse-all'" in err
