"""`smelt-opt`: parse, verify, transform and print IR files. Flags are named as mlir-opt's.

    smelt-opt file.mlir --pass-pipeline='fixpoint(inline,jvp),canonicalize,cse,dce'
    smelt-opt file.mlir --inline --canonicalize --mlir-print-ir-after-all
    smelt-opt - --verify-diagnostics --split-input-file < invalid.mlir

Each pass is also a flag, run in the order given; its options follow an equals sign.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from smelt import __version__
from smelt.backends.device import offering, stages
from smelt.ir.errors import IRError
from smelt.runtime.compile import lower_module

from .exchange import as_smelt, text_of
from .isolate import (
    INTERRUPTED,
    PARSING,
    Progress,
    flushed,
    is_unwritable,
    prepare_streams,
    reader_left,
    run_isolated,
    unwritable,
)
from .mlir_flags import LACKING, WITHOUT_EFFECT, add_flags, chosen, remarks_asked
from .printed import PrintedIR, check_printing, shown, statistics_report, timing_report
from .usage import Parser, UsageError, count, require_one, seconds, write
from .user_code import add_plugins, load_plugins

if TYPE_CHECKING:  # what a run needs is loaded when it is known to be one
    from smelt.passes.driver import PassRecord

SPLIT = "// -----"
EMIT = ("mlir", *stages(), "dot", "stablehlo", "linalg")


def main(argv: Sequence[str] | None = None, isolate: bool = True) -> int:
    """Run smelt-opt; its exit code. `isolate`: do the work in a child process."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    if argv is None:
        prepare_streams()
    try:
        options = parse_arguments(arguments)
    except SystemExit as stop:
        return flushed(stop.code if isinstance(stop.code, int) else 2)
    try:
        return flushed(_run(options, isolate))
    except BrokenPipeError:
        return reader_left()
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        reads_nothing = options.list_passes or options.list_ops or options.list_rewrites
        reads_nothing = reads_nothing or options.check_rewrites is not None or options.check_ops is not None
        return report_error(error, "smelt-opt" if reads_nothing else options.input, options.debug)


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Options; `options.pipeline` is the pipeline as one text. Leaves by SystemExit like argparse."""
    parser = _parser()
    known = {flag for action in parser._actions for flag in action.option_strings}
    pipeline: list[str] = []
    rest: list[str] = []
    words = iter(arguments)
    for word in words:
        flag, equals, value = _as_long(word, known).partition("=")
        word = f"{flag}{equals}{value}"
        if flag in ("--pass-pipeline", "--pipeline", "-p"):
            if not equals:
                value = next(words, None) or parser.error(f"{flag} needs a value")
            pipeline.append(value)
        elif flag in LACKING:
            parser.error(f"{flag} of mlir-opt is not here: {LACKING[flag]}")
        elif flag in WITHOUT_EFFECT:
            continue
        elif flag.startswith("--") and len(flag) > 2 and flag not in known:
            pipeline.append(f"{flag[2:]}{{{value}}}" if equals else flag[2:])
        else:
            rest.append(word if equals else f"{word}{ALONE.get(flag, '')}")
    options = parser.parse_args(rest)
    options.pipeline = ",".join(p for p in pipeline if p)
    return options


#: What flags mean that may have a value, behind an equals sign, and have none.
ALONE = {"--split-input-file": f"={SPLIT}", "--verify-diagnostics": "=all", "--verify-each": "=true"}


def _as_long(word: str, known: Collection[str]) -> str:
    """A flag with one dash, as MLIR's tests write them, with two. ``-oFILE`` is another thing."""
    flag = word.partition("=")[0]
    if not re.match(r"-[a-z][\w-]", word):
        return word
    is_long = f"-{flag}" in {*known, *LACKING, *WITHOUT_EFFECT, "--pass-pipeline"} or not word.startswith("-o")
    return f"-{word}" if is_long else word


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="smelt-opt",
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Parse, verify, transform and print smelt IR.",
        epilog="Each pass is a flag too: --PASS or --PASS='option=value ...', run in the order given.\n"
        "Example: smelt-opt f.mlir --inline --canonicalize --cse --dce",
    )
    add = parser.add_argument
    add("input", nargs="?", default="-", metavar="FILE", help="MLIR text; - is standard input (default)")
    add("-o", dest="output", default="-", metavar="FILE", help="where to write; - is standard output (default)")
    add(
        "--pass-pipeline", "--pipeline", metavar="P",
        help="passes: 'inline,fixpoint(jvp,inline),cse', a device's: 'cpu', or changes of "
        "the default device's: 'before:fuse=cse'",
    )  # fmt: skip
    add("--run-reproducer", action="store_true", help="run the passes that the file names: // RUN: smelt-opt %%s ...")
    add("--list-passes", action="store_true", help="list passes with their options, and stop")
    add("--list-ops", action="store_true", help="list the ops of the dialect with their rules, and stop")
    add("--list-rewrites", action="store_true", help="list the rewrites of all sets with their rules, and stop")
    add(
        "--check-rewrites", nargs="?", const="", metavar="SETS",
        help="run rewrites (of all sets, or of those named, by set or set/rewrite) on random and special inputs by the "
        "reference rules; say which are exact, bounded in ulp, wrong; and stop",
    )  # fmt: skip
    add(
        "--check-ops", nargs="?", const="", metavar="NAMES",
        help="whether the rules of ops (of all, or of those named or defined by the modules named) agree: kernels with "
        "the reference, derivatives with finite differences, batches with loops; and stop",
    )  # fmt: skip
    add("--emit", choices=EMIT, default="mlir", help="what to write (default: mlir)")
    add("--execute", action="store_true", help="interpret @main, which takes no arguments; write its results")
    add("--custom-calls", action="store_true", help="with --execute, --verify-values: run the code that the file calls")
    add("--split-input-file", metavar="LINE", help=f"treat the parts between such lines ('{SPLIT}') separately")
    add("--output-split-marker", default=SPLIT, metavar="LINE", help="what stands between these parts when written")
    add(
        "--verify-diagnostics", choices=("all", "only-expected"),
        help="compare diagnostics with expected-error comments: all (if not said), or those that are expected",
    )  # fmt: skip
    add("--verify-each", default=True, type=_truth, metavar="BOOL", help="verify after each pass (default: true)")
    add("--verify-values", action="store_true", help="run @main before and after each pass; name what changes a value")
    limit = "run the first N passes only (-1: all), and print them all, numbered"
    add("--opt-bisect-limit", type=_limit, metavar="N", help=limit)
    add("--mlir-print-ir-after-change", action="store_true", help="print the IR after each pass that changed it")
    add("--mlir-print-ir-before-all", action="store_true", help="print the IR before each pass")
    add("--mlir-print-ir-after-all", action="store_true", help="print the IR after each pass")
    add("--mlir-print-ir-before", action="append", default=[], metavar="PASS", help="... one pass, or a run (jvp#2)")
    add("--mlir-print-ir-after", action="append", default=[], metavar="PASS", help="... one pass, or a run (jvp#2)")
    add("--mlir-print-ir-after-failure", action="store_true", help="print the IR as a pass that fails leaves it")
    add("--mlir-print-ir-tree-dir", metavar="DIR", help="write what these print to files of a folder")
    add("--short", action="store_true", help="print the IR in the short form, which is to be read and not parsed")
    add("--mlir-timing", action="store_true", help="print how long each pass took")
    add("--mlir-pass-statistics", action="store_true", help="print what each pass counted")
    add_flags(parser)
    add_plugins(parser)
    add("--dump-ir-to", metavar="DIR", help="write the IR after each pass to files; a reproducer on failure")
    add("--parse-timeout", type=seconds, default=120.0, metavar="SECONDS", help="give up parsing (default: 120)")
    add("--pass-timeout", type=seconds, metavar="SECONDS", help="give up a pass (default: never)")
    add("--debug", action="store_true", help="show the traceback of an error")
    add("--version", action="version", version=f"smelt-opt {__version__}")
    parser.set_defaults(reproducers=None)
    return parser


def _check(options: argparse.Namespace) -> None:
    """Raise UsageError where flags contradict each other, or one would say nothing."""
    listings = ("list_passes", "list_ops", "list_rewrites")
    asked = {f"--{name.replace('_', '-')}": getattr(options, name) for name in listings}
    asked["--check-rewrites"] = options.check_rewrites is not None
    asked["--check-ops"] = options.check_ops is not None
    asked["--execute"] = options.execute
    require_one({**asked, f"--emit={options.emit}": options.emit != "mlir"})
    check_printing(options)


def _limit(text: str) -> int:
    return -1 if text == "-1" else count(text)


def _truth(text: str) -> bool:
    try:
        return {"true": True, "1": True, "on": True, "false": False, "0": False, "off": False}[text.lower()]
    except KeyError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false") from None


def _run(options: argparse.Namespace, isolate: bool) -> int:
    _check(options)
    listings = options.list_passes, options.list_ops, options.list_rewrites
    if any(listings) or options.check_rewrites is not None or options.check_ops is not None:
        load_plugins(options.plugins)
    if options.list_passes or options.list_ops:
        from . import listing

        listed, problems = listing.list_passes() if options.list_passes else listing.list_ops()
        sys.stdout.write(listed)
        for problem in problems:
            print(f"smelt-opt: warning: {problem}", file=sys.stderr)
        return 0
    if options.list_rewrites or options.check_rewrites is not None:
        from . import rewrites

        return rewrites.check(options.check_rewrites) if options.check_rewrites is not None else rewrites.listed()
    if options.check_ops is not None:
        from . import ops

        return ops.check(options.check_ops, options.debug)
    name, source = read_source(options.input)
    if options.run_reproducer:
        from .reproducer import passes_of

        options.pipeline = passes_of(source, name, options.pipeline, options.plugins, parse_arguments)

    if not isolate:
        return _job(options, source, name, lambda stage: None)
    with tempfile.TemporaryDirectory(prefix="smelt-opt-") as folder:
        options.reproducers = folder
        code = run_isolated(_job, (options, source, name), options.parse_timeout, name, options.pass_timeout)
        for file in sorted(os.listdir(folder)):
            kept = os.path.join(os.path.dirname(folder), f"{os.path.basename(folder)}-{file}")
            kept = options.mlir_pass_pipeline_crash_reproducer or kept
            shutil.move(os.path.join(folder, file), kept)
            print(f"{name}: note: reproducer: {kept}", file=sys.stderr)
        return code


def read_source(path: str) -> tuple[str, str]:
    """(name for messages, text) of a file or, for ``-``, of standard input."""
    from smelt.formats.functions import MARK
    from smelt.ir.text import MAX_BYTES

    most = 4 * MAX_BYTES  # what as many characters have at most: a device may never end
    name = "<stdin>" if path == "-" else path
    try:
        if path == "-":
            has_bytes = hasattr(sys.stdin, "buffer")
            data = sys.stdin.buffer.read(most + 1) if has_bytes else sys.stdin.read(most + 1).encode()
        else:
            with open(path, "rb") as file:
                data = file.read(most + 1)
    except OSError as error:
        how = ""
        if os.path.isfile(name.rpartition(":")[0]):
            how = f"; this command reads IR, which smelt dump {name} 'f32[8]' -o f.mlir writes of a function"
        raise IRError(f"{name}: error: cannot be read: {error.strerror}{how}") from None
    if name.endswith(".py"):
        how = f"name a function in it and its arguments, smelt dump {name}:FUNCTION 'f32[8]' (smelt view likewise)"
        raise IRError(f"{name}: error: this is a Python file, no MLIR text: {how}")
    if data.startswith(MARK):
        data = data.partition(b"\0")[0]  # arrays stand behind
    elif len(data) > most:
        raise IRError(f"{name}: error: there are more than {most} bytes; no text that is read is as long")
    if data.startswith(b"ML\xefR"):
        program = text_of(data, name)
        if program is not None:
            return name, program
        raise IRError(f"{name}:1:1: error: this is MLIR bytecode; only text is read")
    try:
        return name, data.decode("utf-8")
    except UnicodeDecodeError as error:
        if name.endswith(".onnx"):
            how = "smelt run runs it; smelt.from_onnx in a Python file makes a function of it, for smelt dump and view"
            raise IRError(f"{name}: error: an ONNX model is no MLIR text: {how}") from None
        line = data.count(b"\n", 0, error.start) + 1
        raise IRError(f"{name}:{line}:1: error: this is not MLIR text (invalid UTF-8)") from None


def report_error(error: BaseException, name: str, debug: bool = False) -> int:
    """Print an error as ``file:line:col: error: ...``; exit code 1."""
    if debug:
        import traceback

        traceback.print_exception(error)
    print(describe(error, "<stdin>" if name == "-" else name), file=sys.stderr)
    return 1


def describe(error: BaseException, name: str) -> str:
    """An exception as diagnostics, one a line."""
    from smelt.ir.errors import SmeltError

    message = str(error) or type(error).__name__
    if isinstance(error, MemoryError):
        message = f"out of memory: {message}"
    elif isinstance(error, RecursionError):
        message = "the module nests too deeply"
    elif isinstance(error, OSError) and not isinstance(error, SmeltError) and error.filename is not None:
        message = f"{os.fspath(error.filename)}: error: {error.strerror}"
    elif isinstance(error, OSError) and not isinstance(error, SmeltError) and is_unwritable(error):
        message = unwritable(error)
    elif not isinstance(error, SmeltError):
        message = f"internal error: {type(error).__name__}: {message}"
    if place := re.match(r"line (\d+): (.*)", message, re.DOTALL):
        message = f"{name}:{place[1]}:1: error: {place[2]}"
    elif place := re.search(r'(?:; in @\w+)?,? at loc\("-":(\d+):(\d+)\)(?=$|;)', message):
        message = f"{name}:{place[1]}:{place[2]}: error: {message[: place.start()]}{message[place.end() :]}"
    elif not re.match(r".*: (error|note): ", message):
        message = f"{name}: error: {message}"
    notes = [f"{name}: note: {note}" for note in getattr(error, "__notes__", [])]
    return "\n".join([message, *notes])


def _job(options: argparse.Namespace, source: str, name: str, progress: Progress) -> int:
    """Everything that touches MLIR."""
    code, outputs = 0, []
    if not source.strip():
        print(f"{name}: error: the text is empty", file=sys.stderr)
        return 1
    try:
        load_plugins(options.plugins)
    except UsageError as error:
        print(describe(error, "smelt-opt"), file=sys.stderr)
        return 1
    for part in split(source, options.split_input_file) if options.split_input_file else [source]:
        progress(PARSING)
        try:
            result, problem = _process(options, part, name, progress), None
        except Exception as error:
            if options.debug:
                import traceback

                traceback.print_exception(error)
            result, problem = None, describe(error, name)
        if options.verify_diagnostics:
            code |= _check_diagnostics(part, problem, name, options.verify_diagnostics == "all")
        elif problem is not None:
            print(problem, file=sys.stderr)
            code = 1
        else:
            outputs.append(result or "")
    if not options.verify_diagnostics and (outputs or not code):
        try:
            write(options.output, f"{options.output_split_marker}\n".join(outputs))
        except UsageError as error:
            print(error, file=sys.stderr)
            return 1
    return code


def _plugin_flags(options: argparse.Namespace) -> tuple[str, ...]:
    """What another command needs that runs the same passes, from whatever folder."""
    names = (os.path.abspath(name) if name.endswith(".py") else name for name in options.plugins)
    return tuple(f"--load-pass-plugin={name}" for name in names)


def split(source: str, marker: str = SPLIT) -> list[str]:
    """The parts of a file, each with as many empty lines in front as keep its line numbers."""
    parts: list[list[str]] = [[]]
    for number, line in enumerate(source.split("\n"), 1):
        if line.strip() == marker:
            parts.append([""] * number)
        else:
            parts[-1].append(line)
    return ["\n".join(lines) + "\n" for lines in parts]


def _check_diagnostics(source: str, problem: str | None, name: str, everything: bool) -> int:
    from .expectations import mismatches, parse_diagnostics, parse_expectations

    try:
        expected = parse_expectations(source)
    except UsageError as error:
        print(f"{name}:{error}", file=sys.stderr)
        return 1
    wrong = mismatches(expected, parse_diagnostics(problem or ""), everything)
    for line, message in wrong:
        print(f"{name}:{line}:1: error: {message}", file=sys.stderr)
    return int(bool(wrong))


def _process(options: argparse.Namespace, source: str, name: str, progress: Progress) -> str:
    """Parse, transform and print one module."""
    from smelt.ir import text
    from smelt.passes import remarks

    pipeline = pipeline_of(options.pipeline)
    module = text.parse(as_smelt(source, name), name)
    if options.verify_roundtrip:
        check_roundtrip(module, name)
    if options.dump_pass_pipeline:
        print(f"Pass pipeline: {pipeline}", file=sys.stderr)
    if options.mlir_generate_reproducer:
        words = ["--pass-pipeline=" + str(pipeline), *_plugin_flags(options)]
        command = f"// RUN: smelt-opt %s {shlex.join(words)}\n"
        write(options.mlir_generate_reproducer, command + text.to_text(module, locations=True))
    progress("the pipeline")
    if options.verify_values:
        check_calls(module, options)
    watched = _Watched(options, module, progress)
    with remarks.collected(bool(remarks_asked(options) or options.remarks_output_file)) as found:
        records = pipeline.run(module, watched.instrumentation())
    found = chosen(found, options)
    found = [dataclasses.replace(r, line=re.sub("^-(?=:)", name, r.line)) for r in found]  # MLIR calls any text "-"
    if remarks_asked(options):
        sys.stderr.write("".join(f"{remark}\n" for remark in found))
    if options.remarks_output_file:
        write(options.remarks_output_file, remarks.to_yaml(found))
    if options.mlir_timing:
        sys.stderr.write(timing_report(records))
    if options.mlir_pass_statistics:
        sys.stderr.write(statistics_report(records))
    for run in watched.unmet():
        print(f"{options.input}: warning: the pipeline had no run {run!r} to print the IR at", file=sys.stderr)
    if (values := watched.values) is not None:
        print(values.report(), file=sys.stderr)
    progress("the interpreter" if options.execute else f"emitting {options.emit}")
    if options.execute:
        check_calls(module, options)
        return execute(module)
    return emit(module, options)


class _Watched:
    """What the flags ask for between passes. Attributes: values, the check of ``--verify-values``."""

    def __init__(self, options: argparse.Namespace, module: Any, progress: Progress):
        from smelt.passes.stages import Stages
        from smelt.passes.validation import ValueCheck

        for name in (*options.mlir_print_ir_before, *options.mlir_print_ir_after):
            pipeline_of(name.partition("#")[0])  # raises where there is no such pass
        self._options, self._progress, self._printed = options, progress, PrintedIR(options)
        self._runs: Counter[str] = Counter()
        self._unmet = {*options.mlir_print_ir_before, *options.mlir_print_ir_after}
        prints = options.mlir_print_ir_after_all or options.mlir_print_ir_after or options.mlir_print_ir_after_change
        self._stages = Stages(module) if prints else None
        self.values = ValueCheck(module) if options.verify_values else None

    def instrumentation(self) -> Any:
        """What the driver calls."""
        from smelt.passes.driver import Instrumentation

        options = self._options
        return Instrumentation(
            options.verify_each, options.dump_ir_to, self._after, self._before, options.reproducers,
            self._limit if options.opt_bisect_limit is not None else None, self._failed, _plugin_flags(options),
        )  # fmt: skip

    def _names(self, record: PassRecord, among: Sequence[str]) -> set[str]:
        """Which names mean this run: that of the pass, or with a number."""
        names = {record.name, record.stage, f"{record.name}#{self._runs[record.name]}"} & set(among)
        self._unmet -= names
        return names

    def unmet(self) -> list[str]:
        """The runs that a flag named and that were none."""
        return sorted(self._unmet)

    def _before(self, record: PassRecord, module: Any) -> None:
        self._progress(f"pass {record.name}")
        self._runs[record.name] += 1
        options = self._options
        asked = self._names(record, options.mlir_print_ir_before)
        if options.mlir_print_ir_before_all or asked:
            self._printed.show(f"Before {record.stage}", module, f"{record.stage}_before")

    def _after(self, record: PassRecord, module: Any) -> None:
        options = self._options
        changed = self._stages is not None and self._stages.record(record, module)
        asked = self._names(record, options.mlir_print_ir_after)
        if asked or options.mlir_print_ir_after_all or (options.mlir_print_ir_after_change and changed):
            unchanged = "" if changed else " (changed nothing)"
            self._printed.show(f"After {record.stage}{unchanged}", module, record.stage)
        if record.report:
            sys.stderr.write(f"// -----// {record.stage} //----- //\n{record.report}")
        if self.values is not None:
            self.values.on_pass(record, module)

    def _limit(self, number: int, name: str) -> bool:
        runs: bool = self._options.opt_bisect_limit < 0 or number <= self._options.opt_bisect_limit
        print(f"BISECT: {'' if runs else 'NOT '}running pass ({number}) {name}", file=sys.stderr)
        return runs

    def _failed(self, record: PassRecord, module: Any) -> None:
        if self._options.mlir_print_ir_after_failure:
            self._printed.show(f"After {record.stage} Failed", module, f"{record.stage}_failed")


def pipeline_of(spelling: str) -> Any:
    """A pipeline from text: of passes, a device, or changes of the default device's."""
    from smelt.passes import Pipeline
    from smelt.runtime.device import default_device
    from smelt.runtime.pipelines import in_force

    return Pipeline.parse(in_force(default_device(), spelling) or "")


def emit(module: Any, options: argparse.Namespace) -> str:
    """The module in the language that ``--emit`` names."""
    if options.emit == "dot":
        from .dot import to_dot

        return to_dot(module)
    if options.emit == "stablehlo":
        from smelt.backends.exchange.stablehlo import to_stablehlo

        return to_stablehlo(module)
    if options.emit == "linalg":
        from smelt.backends.exchange.linalg import to_linalg

        return to_linalg(module)
    if options.emit != "mlir":
        return emit_backend(module, options.emit)
    return shown(module, options)


def check_roundtrip(module: Any, name: str) -> None:
    """Raise IRError where a module is printed as a text that is another module."""
    from smelt.ir import text

    first = text.to_text(module)
    if (second := text.to_text(text.parse(first, name))) != first:
        pairs = enumerate(zip(first.splitlines(), second.splitlines()), 1)
        number, (was, now) = next(((i, p) for i, p in pairs if p[0] != p[1]), (0, ("", "")))
        raise IRError(f"{name}: error: printed and read again, line {number} is `{now.strip()}`, not `{was.strip()}`")


def emit_backend(module: Any, stage: str) -> str:
    """What the backend of the device that offers `stage` makes of a module."""
    device = offering(stage)
    assert device is not None, stage
    return lower_module(module, device).as_text(stage)


def check_calls(module: Any, options: argparse.Namespace) -> None:
    """Raise IRError where a file would run code of its own, and nobody has said that it may."""
    from smelt.passes.rewrite import mentions

    if not options.custom_calls and mentions(module, "smelt.custom_call"):
        raise IRError(
            "the file calls code by smelt.custom_call: of an installed package, or Metal kernels that stand in the "
            "file itself and can do whatever a program can; if you trust it, run it with --custom-calls"
        )


def execute(module: Any) -> str:
    """Results of @main, one a line."""
    from smelt.ir.interpreter import Interpreter
    from smelt.passes.call_graph import callees_first

    from .show import dense

    callees_first(module)  # functions that call themselves are an error, and no endless run
    return "".join(dense(array) + "\n" for array in Interpreter(module)("main", []))


if __name__ == "__main__":
    sys.exit(main())
