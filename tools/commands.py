"""What `smelt` takes on the command line: a function for each command. What they do stands in modules called alike."""

from __future__ import annotations

import argparse
from typing import TypeAlias

from smelt import __version__
from smelt.backends.device import registered

from .usage import Parser, named, seconds, some
from .user_code import add_plugins

Commands: TypeAlias = "argparse._SubParsersAction[Parser]"

#: For the help of options.
_DEVICES = ", ".join(registered)


def command_parser() -> argparse.ArgumentParser:
    """The parser of `smelt`."""
    parser = Parser(
        prog="smelt", allow_abbrev=False, description="Look into functions and run IR files."
    )
    parser.add_argument("--version", action="version", version=f"smelt {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    # What commands share: that compile something, and that trace a function for it.
    compiles = Parser(add_help=False)
    compiles.add_argument("--device", type=named, metavar="DEVICE", help=f"{_DEVICES} (default: SMELT_DEVICE)")
    compiles.add_argument("--pass-pipeline", "--pipeline", metavar="P", help="passes instead of the device's own")
    add_plugins(compiles)
    traces = Parser(add_help=False, parents=[compiles])
    traces.add_argument("target", metavar="MODULE:FUNCTION", help="a dotted module or a path, and a function in it")
    traces.add_argument(
        "arguments", nargs="*", metavar="ARG",
        help="an argument: a type such as f32[4,8] or i32[], a number, or a list, tuple or dict of these",
    )  # fmt: skip
    _dump(commands, traces)
    _view(commands, traces)
    _run(commands)
    _verify(commands, compiles)
    _reduce(commands)
    _diff(commands)
    _check_metal(commands)
    _launch(commands)
    _doctor(commands)
    _cache(commands)
    for command in commands.choices.values():
        command.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands.add_parser("opt", help="the same as smelt-opt: transform IR files", add_help=False)
    return parser


def _dump(commands: Commands, traces: Parser) -> None:
    parser = commands.add_parser(
        "dump",
        parents=[traces],
        help="print the IR of a Python function",
        description="Trace a Python function for given argument types and print its IR.",
        epilog="Example: smelt dump examples/gelu.py:gelu 'f32[8,16]' --stage=fuse",
    )
    parser.add_argument(
        "--stage", type=named, metavar="STAGE",
        help="graph (default), a pass (canonicalize, fuse, ...) or one run of it (linearize#2), kernel, llvm, msl, "
        "gpu, manifest, or list",
    )  # fmt: skip
    parser.add_argument(
        "--emit", choices=("stage", "cost", "stablehlo", "linalg"), default="stage",
        help="the program at a stage (default), what it costs (bytes, operations and memory of its kernels), or the "
        "program for other compilers",
    )  # fmt: skip
    parser.add_argument(
        "--measure", action="store_true", help="with --emit=cost: run each kernel by itself, and time it"
    )
    parser.add_argument("--short", action="store_true", help="the short form, to be read: stages graph to plan-buffers")
    parser.add_argument("--lines", action="store_true", help="with --short: the lines of the user's program")
    parser.add_argument("--remarks", action="store_true", help="what passes say: kernels, and why others are none")
    parser.add_argument("--metal-dir", metavar="DIR", help="write Metal text and its manifest (JSON) into a folder")
    parser.add_argument("--gpu", metavar="GPU", help="for Metal's stages: apple7, apple8 (default), apple9")
    parser.add_argument("-o", dest="output", default="-", metavar="FILE", help="where to write")


def _view(commands: Commands, traces: Parser) -> None:
    parser = commands.add_parser(
        "view",
        parents=[traces],
        help="a page that shows how a Python function, or an IR file, is compiled",
        description="Trace and compile a Python function for given argument types, and write a page (HTML, no "
        "network): its stages beside the program's lines, kernels with their costs, code, and why they are kernels, "
        "graphs, memory, passes. The same of an IR file's @main; of a folder of dumps (SMELT_DUMP_IR, smelt-opt "
        "--dump-ir-to) what these tell.",
        epilog="Example: smelt view examples/gelu.py:gelu 'f32[8,16]' -o gelu.html",
    )
    parser.add_argument("-o", dest="output", required=True, metavar="FILE", help="where to write the page")
    parser.add_argument("--measure", action="store_true", help="run each kernel by itself, and time it")
    parser.add_argument("--custom-calls", action="store_true", help="with --measure: run the code that a file calls")


def _run(commands: Commands) -> None:
    parser = commands.add_parser(
        "run",
        help="run a function of an IR file",
        description="Compile an IR file and run one of its functions on NumPy files.",
        epilog="Example: smelt run f.mlir --input x.npy --input y.npy --output z.npy",
    )
    parser.add_argument(
        "file", metavar="FILE", help="MLIR text, of smelt or StableHLO, or model.onnx; - is standard input"
    )
    parser.add_argument("--input", action="append", default=[], metavar="NPY", help="an argument, in order")
    parser.add_argument("--output", action="append", default=[], metavar="NPY", help="where to save a result, in order")
    parser.add_argument("--function", default="main", metavar="NAME", help="what to run (default: main)")
    parser.add_argument("--device", metavar="DEVICE", help=f"{_DEVICES} (default: SMELT_DEVICE)")
    add_plugins(parser)
    parser.add_argument("--custom-calls", action="store_true", help="run the code that the file calls; trust it first")
    parser.add_argument("--parse-timeout", type=seconds, default=120.0, metavar="SECONDS", help=argparse.SUPPRESS)


def _verify(commands: Commands, compiles: Parser) -> None:
    parser = commands.add_parser(
        "verify",
        parents=[compiles],
        help="check that passes keep the values of an IR file",
        description="Run @main of an IR file by the NumPy interpreter before and after each pass of a pipeline, on "
        "random numbers, small integers, positive numbers and special values; name the first pass that changes a "
        "value by more than another rounding of the values on the way does.",
        epilog="Exit status: 0 if none does, else 1. Example: smelt verify f.mlir --pass-pipeline=canonicalize,cse",
    )
    parser.add_argument("file", metavar="FILE", help="MLIR text; - is standard input")
    parser.add_argument("--custom-calls", action="store_true", help="run the code that the file calls; trust it first")
    parser.add_argument("--values", action="store_true", help="by values: the only way there is, and the default")


def _reduce(commands: Commands) -> None:
    parser = commands.add_parser(
        "reduce",
        help="make an IR file smaller while a command fails on it",
        description="Make an IR file smaller as long as a command, given the file, fails: by another exit status than "
        "0, by a crash, or, without --message, by taking longer than --timeout. A function that fails by itself, such "
        "as a loop's body, becomes @main. Ctrl-C ends the search; what was found is written.",
        epilog="Example: smelt reduce f.mlir -o small.mlir --message 'changed a value' -- smelt verify {}",
    )
    parser.add_argument("file", metavar="FILE", help="MLIR text; - is standard input")
    parser.add_argument("test", nargs="+", metavar="COMMAND", help="after --; {} is the file, or it comes last")
    parser.add_argument("-o", dest="output", default="-", metavar="FILE", help="where to write what is left")
    parser.add_argument("--message", metavar="TEXT", help="what the command must print for the fault to be the same")
    parser.add_argument("--timeout", type=seconds, default=60.0, metavar="SECONDS", help="of one run (default: 60)")
    parser.add_argument(
        "--total", type=seconds, default=600.0, metavar="SECONDS", help="of the search, in all (default: 600)"
    )


def _diff(commands: Commands) -> None:
    parser = commands.add_parser(
        "diff",
        help="compare two IR files by structure",
        description="Compare two IR files: ops that compute the same are matched wherever they stand and whatever they "
        "are called; the others were added, removed, or changed.",
        epilog="Exit status: 0 if the files are the same, 1 if they differ, 2 if one cannot be read. "
        "Example: smelt diff before.mlir after.mlir",
    )
    parser.add_argument("first", metavar="FILE", help="MLIR text; - is standard input")
    parser.add_argument("second", metavar="FILE", help="MLIR text; - is standard input")
    parser.add_argument("-q", "--quiet", action="store_true", help="say it by the exit status alone")
    parser.add_argument("--parse-timeout", type=seconds, default=120.0, metavar="SECONDS", help=argparse.SUPPRESS)


def _check_metal(commands: Commands) -> None:
    parser = commands.add_parser(
        "check-metal",
        help="check Metal source files",
        description="Check Metal source files strictly, on any machine: syntax, types, address spaces, Metal's rules.",
        epilog="Exit status: 0 without errors, 1 with errors, 2 when a file cannot be read. "
        "Example: smelt check-metal kernels/*.metal",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="Metal source; - is standard input")
    parser.add_argument("-I", dest="include", action="append", default=[], metavar="DIR", help="where includes lie")
    parser.add_argument(
        "-D", dest="defines", action="append", default=[], metavar="NAME[=VALUE]", help="define a macro"
    )
    parser.add_argument("--strict", action="store_true", help="hold the text to smelt's own rules of style as well")
    parser.add_argument(
        "--metal", default="3.1", metavar="VERSION", help="of the language, such as 3.2 or 4.0 (default: 3.1)"
    )
    parser.add_argument("--parse-timeout", type=seconds, default=60.0, metavar="SECONDS", help=argparse.SUPPRESS)


def _launch(commands: Commands) -> None:
    parser = commands.add_parser(
        "launch",
        help="run a program in several processes",
        description="Run a program in several processes of this machine, which compute together by smelt.distributed: "
        "mpiexec, with mpi4py; or with a GPU each, over NCCL. If one ends with an error, all do.",
        epilog="Exit status: that of mpiexec, or of the first process that failed. Example: smelt launch -n 4 train.py "
        "--epochs 3",
    )
    parser.add_argument("-n", type=some, required=True, metavar="COUNT", help="how many processes")
    parser.add_argument(
        "--backend", choices=("mpi", "nccl"), default="mpi",
        help="what they talk over; nccl: each runs on an NVIDIA GPU of its own (default: mpi)",
    )
    parser.add_argument("--mpiexec", metavar="FILE", help="the launcher; default: that of this environment, or PATH's")
    parser.add_argument("-m", dest="module", metavar="MODULE", help="run a module; what follows are its arguments")
    parser.add_argument("program", nargs=argparse.REMAINDER, metavar="PROGRAM", help="a file and its arguments")


def _doctor(commands: Commands) -> None:
    parser = commands.add_parser(
        "doctor",
        help="check that smelt works on this machine",
        description="Check the devices of this machine: every op against its NumPy rule, rounding, half precision, a "
        "training; on a Mac's GPU also memory and bandwidth. What it prints is a report to hand in.",
        epilog="Exit status: 0 if nothing failed, else 1. Example: smelt doctor -o report.txt",
    )
    parser.add_argument(
        "--device", action="append", metavar="DEVICE",
        help=f"{_DEVICES}; may be given several times (default: all that compile, and what would be checked on those "
        "that are not here)",
    )  # fmt: skip
    parser.add_argument("-o", dest="output", metavar="FILE", help="write the report to a file as well")


def _cache(commands: Commands) -> None:
    parser = commands.add_parser(
        "cache",
        help="show or clear the programs that are kept on disk",
        description="Show where compiled programs are kept, how many there are and how large, or delete them.",
        epilog="Settings: SMELT_CACHE=0 (off), SMELT_CACHE_DIR, SMELT_CACHE_DISK_BYTES. Example: smelt cache --clear",
    )
    parser.add_argument("--clear", action="store_true", help="delete them; running programs go on")
