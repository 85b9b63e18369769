"""`smelt`: look into functions and run IR files.

smelt dump examples/gelu.py:gelu 'f32[32,128]' --stage=fuse
smelt view examples/gelu.py:gelu 'f32[32,128]' -o gelu.html
smelt run file.mlir --input a.npy --output y.npy
smelt opt file.mlir --canonicalize
smelt diff before.mlir after.mlir
smelt check-metal kernel.metal
smelt doctor
smelt launch -n 4 train.py
smelt cache
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from smelt import __version__
from smelt.backends.device import registered


def main(argv: Sequence[str] | None = None, isolate: bool = True) -> int:
    """Run a subcommand; its exit code."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    if arguments and arguments[0] == "opt":
        from . import opt

        return opt.main(arguments[1:], isolate)
    try:
        options = _parser().parse_args(arguments)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 2
    try:
        if options.command == "dump":
            from .dump import dump

            return dump(options)
        if options.command == "view":
            from .view import view

            return view(options, isolate)
        if options.command == "diff":
            from .diff import diff

            return diff(options, isolate)
        if options.command == "reduce":
            from .reduce import reduce

            return reduce(options)
        if options.command == "verify":
            return _verify(options, isolate)
        if options.command == "check-metal":
            from .check_metal import check_metal

            return check_metal(options, isolate)
        if options.command == "doctor":
            from .doctor import doctor

            return doctor(options)
        if options.command == "launch":
            from .launch import launch

            return launch(options)
        if options.command == "cache":
            from .cache import cache

            return cache(options)
        from .run import run

        return run(options, isolate)
    except BrokenPipeError:
        from .isolate import reader_left

        return reader_left()
    except KeyboardInterrupt:
        from .isolate import INTERRUPTED

        return INTERRUPTED
    except Exception as error:
        from .opt import report_error

        name = getattr(options, "file", None) or getattr(options, "target", None) or "smelt"
        return report_error(error, name, options.debug)


def _verify(options: argparse.Namespace, isolate: bool) -> int:
    """Run a pipeline as smelt-opt does, compare values after each pass, and write no IR."""
    from smelt.ir.settings import settings
    from smelt.passes.driver import Pipeline
    from smelt.passes.extension import is_change
    from smelt.runtime import device_named

    from . import opt

    pipeline = options.pass_pipeline or ""
    if not pipeline or is_change(pipeline):
        whole = Pipeline.parse(device_named(options.device or settings.device).pipeline)
        pipeline = str(whole.changed(pipeline) if pipeline else whole)
    flags = ["--debug"] * options.debug + ["--custom-calls"] * options.custom_calls
    command = [options.file, "--verify-values", f"--pass-pipeline={pipeline}", "-o", os.devnull, *flags]
    return opt.main(command, isolate)


#: For the help of options.
_DEVICES = ", ".join(registered)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="smelt", allow_abbrev=False, description="Look into functions and run IR files."
    )
    parser.add_argument("--version", action="version", version=f"smelt {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    # What commands share: that compile something, and that trace a function for it.
    compiles = argparse.ArgumentParser(add_help=False)
    compiles.add_argument("--device", metavar="DEVICE", help=f"{_DEVICES} (default: SMELT_DEVICE)")
    compiles.add_argument("--pass-pipeline", "--pipeline", metavar="P", help="passes instead of the device's own")
    traces = argparse.ArgumentParser(add_help=False, parents=[compiles])
    traces.add_argument("target", metavar="MODULE:FUNCTION", help="a dotted module or a path, and a function in it")
    traces.add_argument(
        "arguments", nargs="*", metavar="ARG",
        help="an argument: a type such as f32[4,8] or i32[], a number, or a list, tuple or dict of these",
    )  # fmt: skip

    dump = commands.add_parser(
        "dump",
        parents=[traces],
        help="print the IR of a Python function",
        description="Trace a Python function for given argument types and print its IR.",
        epilog="Example: smelt dump examples/gelu.py:gelu 'f32[8,16]' --stage=fuse",
    )
    dump.add_argument(
        "--stage", default="graph", metavar="STAGE",
        help="graph (default), a pass (canonicalize, fuse, ...) or one run of it (linearize#2), kernel, llvm, msl, "
        "gpu, manifest, or list",
    )  # fmt: skip
    dump.add_argument(
        "--emit", choices=("stage", "cost", "stablehlo", "linalg"), default="stage",
        help="the program at a stage (default), what it costs (bytes, operations and memory of its kernels), or the "
        "program for other compilers",
    )  # fmt: skip
    dump.add_argument("--measure", action="store_true", help="with --emit=cost: run each kernel by itself, and time it")
    dump.add_argument("--short", action="store_true", help="the short form, to be read: stages graph to plan-buffers")
    dump.add_argument("--lines", action="store_true", help="with --short: the lines of the user's program")
    dump.add_argument("--remarks", action="store_true", help="what passes say: kernels, and why others are none")
    dump.add_argument("--metal-dir", metavar="DIR", help="write Metal text and its manifest (JSON) into a folder")
    dump.add_argument("--gpu", default="apple8", metavar="GPU", help="for Metal: apple7, apple8 (default), apple9")
    dump.add_argument("-o", dest="output", default="-", metavar="FILE", help="where to write")
    dump.add_argument("--debug", action="store_true", help="show the traceback of an error")

    view = commands.add_parser(
        "view",
        parents=[traces],
        help="a page that shows how a Python function, or an IR file, is compiled",
        description="Trace and compile a Python function for given argument types, and write a page (HTML, no "
        "network): its stages beside the program's lines, kernels with their costs, code, and why they are kernels, "
        "graphs, memory, passes. The same of an IR file's @main; of a folder of dumps (SMELT_DUMP_IR, smelt-opt "
        "--dump-ir-to) what these tell.",
        epilog="Example: smelt view examples/gelu.py:gelu 'f32[8,16]' -o gelu.html",
    )
    view.add_argument("-o", dest="output", required=True, metavar="FILE", help="where to write the page")
    view.add_argument("--measure", action="store_true", help="run each kernel by itself, and time it")
    view.add_argument("--custom-calls", action="store_true", help="with --measure: run the code that a file calls")
    view.add_argument("--debug", action="store_true", help="show the traceback of an error")

    run = commands.add_parser(
        "run",
        help="run a function of an IR file",
        description="Compile an IR file and run one of its functions on NumPy files.",
        epilog="Example: smelt run f.mlir --input x.npy --input y.npy --output z.npy",
    )
    run.add_argument(
        "file", metavar="FILE", help="MLIR text, of smelt or StableHLO, or model.onnx; - is standard input"
    )
    run.add_argument("--input", action="append", default=[], metavar="NPY", help="an argument, in order")
    run.add_argument("--output", action="append", default=[], metavar="NPY", help="where to save a result, in order")
    run.add_argument("--function", default="main", metavar="NAME", help="what to run (default: main)")
    run.add_argument("--device", metavar="DEVICE", help=f"{_DEVICES} (default: SMELT_DEVICE)")
    run.add_argument("--custom-calls", action="store_true", help="run the code that the file calls; trust it first")
    run.add_argument("--parse-timeout", type=float, default=120.0, metavar="SECONDS", help=argparse.SUPPRESS)
    run.add_argument("--debug", action="store_true", help="show the traceback of an error")

    verify = commands.add_parser(
        "verify",
        parents=[compiles],
        help="check that passes keep the values of an IR file",
        description="Run @main of an IR file by the NumPy interpreter before and after each pass of a pipeline, on "
        "random numbers, small integers and special values; name the first pass that changes a value.",
        epilog="Exit status: 0 if none does, else 1. Example: smelt verify f.mlir --pass-pipeline=canonicalize,cse",
    )
    verify.add_argument("file", metavar="FILE", help="MLIR text; - is standard input")
    verify.add_argument("--custom-calls", action="store_true", help="run the code that the file calls; trust it first")
    verify.add_argument("--values", action="store_true", help="by values: the only way there is, and the default")
    verify.add_argument("--debug", action="store_true", help="show the traceback of an error")

    reduce = commands.add_parser(
        "reduce",
        help="make an IR file smaller while a command fails on it",
        description="Make @main of an IR file smaller as long as a command, given the file, fails: by another exit "
        "status than 0, by a crash, or by taking longer than --timeout.",
        epilog="Example: smelt reduce f.mlir -o small.mlir --message 'changed a value' -- smelt verify {}",
    )
    reduce.add_argument("file", metavar="FILE", help="MLIR text; - is standard input")
    reduce.add_argument("test", nargs="+", metavar="COMMAND", help="after --; {} is the file, or it comes last")
    reduce.add_argument("-o", dest="output", default="-", metavar="FILE", help="where to write what is left")
    reduce.add_argument("--message", metavar="TEXT", help="what the command must print for the fault to be the same")
    reduce.add_argument("--timeout", type=float, default=60.0, metavar="SECONDS", help="of one run (default: 60)")
    reduce.add_argument("--debug", action="store_true", help="show the traceback of an error")

    diff = commands.add_parser(
        "diff",
        help="compare two IR files by structure",
        description="Compare two IR files: ops that compute the same are matched wherever they stand and whatever they "
        "are called; the others were added, removed, or changed.",
        epilog="Exit status: 0 if the files are the same, 1 if they differ, 2 if one cannot be read. "
        "Example: smelt diff before.mlir after.mlir",
    )
    diff.add_argument("first", metavar="FILE", help="MLIR text; - is standard input")
    diff.add_argument("second", metavar="FILE", help="MLIR text; - is standard input")
    diff.add_argument("-q", "--quiet", action="store_true", help="say it by the exit status alone")
    diff.add_argument("--parse-timeout", type=float, default=120.0, metavar="SECONDS", help=argparse.SUPPRESS)
    diff.add_argument("--debug", action="store_true", help="show the traceback of an error")

    metal = commands.add_parser(
        "check-metal",
        help="check Metal source files",
        description="Check Metal source files strictly, on any machine: syntax, types, address spaces, Metal's rules.",
        epilog="Exit status: 0 without errors, 1 with errors, 2 when a file cannot be read. "
        "Example: smelt check-metal kernels/*.metal",
    )
    metal.add_argument("files", nargs="+", metavar="FILE", help="Metal source; - is standard input")
    metal.add_argument("-I", dest="include", action="append", default=[], metavar="DIR", help="where includes lie")
    metal.add_argument("-D", dest="defines", action="append", default=[], metavar="NAME[=VALUE]", help="define a macro")
    metal.add_argument("--strict", action="store_true", help="hold the text to smelt's own rules of style as well")
    metal.add_argument(
        "--metal", default="3.1", metavar="VERSION", help="of the language, such as 3.2 or 4.0 (default: 3.1)"
    )
    metal.add_argument("--parse-timeout", type=float, default=60.0, metavar="SECONDS", help=argparse.SUPPRESS)
    metal.add_argument("--debug", action="store_true", help="show the traceback of an error")

    launch = commands.add_parser(
        "launch",
        help="run a program in several processes",
        description="Run a program in several processes of this machine, which compute together by smelt.distributed: "
        "mpiexec, with mpi4py. If one ends with an error, all do.",
        epilog="Exit status: that of mpiexec. Example: smelt launch -n 4 train.py --epochs 3",
    )
    launch.add_argument("-n", type=int, required=True, metavar="COUNT", help="how many processes")
    launch.add_argument("--mpiexec", metavar="FILE", help="the launcher; default: that of this environment, or PATH's")
    launch.add_argument("--debug", action="store_true", help="show the traceback of an error")
    launch.add_argument("program", nargs=argparse.REMAINDER, metavar="PROGRAM", help="a file and its arguments")

    doctor = commands.add_parser(
        "doctor",
        help="check that smelt works on this machine",
        description="Check the devices of this machine: every op against its NumPy rule, rounding, half precision, a "
        "training; on a Mac's GPU also memory and bandwidth. What it prints is a report to hand in.",
        epilog="Exit status: 0 if nothing failed, else 1. Example: smelt doctor -o report.txt",
    )
    doctor.add_argument(
        "--device", action="append", metavar="DEVICE",
        help=f"{_DEVICES}; may be given several times (default: all that compile, and what would be checked on those "
        "that are not here)",
    )  # fmt: skip
    doctor.add_argument("-o", dest="output", metavar="FILE", help="write the report to a file as well")
    doctor.add_argument("--debug", action="store_true", help="show the traceback of an error")

    cache = commands.add_parser(
        "cache",
        help="show or clear the programs that are kept on disk",
        description="Show where compiled programs are kept, how many there are and how large, or delete them.",
        epilog="Settings: SMELT_CACHE=0 (off), SMELT_CACHE_DIR, SMELT_CACHE_DISK_BYTES. Example: smelt cache --clear",
    )
    cache.add_argument("--clear", action="store_true", help="delete them; running programs go on")
    cache.add_argument("--debug", action="store_true", help="show the traceback of an error")

    commands.add_parser("opt", help="the same as smelt-opt: transform IR files", add_help=False)
    return parser


if __name__ == "__main__":
    sys.exit(main())
