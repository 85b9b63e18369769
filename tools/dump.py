"""``smelt dump``: the IR of a Python function, at any stage."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence
from typing import Any

from smelt.ir import dtypes
from smelt.ir.errors import SmeltError, innermost_line

from .usage import UsageError, require_one, require_with, write
from .user_code import exits_are_errors, load_module, load_plugins

_TYPE = re.compile(r"([a-z][a-z0-9_]*(?:<f\d+>)?)\[([0-9,\s]*)\]")
_BEGUN = re.compile(r"(?:bool|(?:bf|[a-z]+)\d+|complex<f\d+>)\[")
_WORD = re.compile(r"[^\s,\[\](){}:]+")
#: Other names of stages.
_ALIASES = {"canonical": "canonicalize", "fused": "fuse", "planned": "plan-buffers"}


def dump(options: argparse.Namespace) -> int:
    """Trace, lower and print."""
    from smelt.backends.device import offering, stages
    from smelt.exchange.exported import exported

    stage = _ALIASES.get(options.stage, options.stage) or "graph"
    device = offering(stage)
    _check(options, stage, gpu=device is not None and device.kind == "gpu")
    lowered = lower(options)
    gpu = options.gpu or "apple8"
    if options.metal_dir:
        name = options.target.rpartition(":")[2].replace(".", "_")
        return _save_metal(lowered.to_metal(gpu), options.metal_dir, name)
    if options.remarks:
        found = lowered.compile(options.pass_pipeline).remarks()
        content = "".join(f"{remark}\n" for remark in found)
    elif options.emit == "cost":
        content = str(lowered.compile(options.pass_pipeline).cost(options.measure))
    elif options.emit in ("stablehlo", "linalg"):
        content = exported(lowered, options.emit)
    elif stage == "list":
        content = _list(lowered.compile(options.pass_pipeline), stages())
    elif options.short:
        program = lowered if stage == "graph" else lowered.compile(options.pass_pipeline)
        content = program.as_text(stage, short=True, lines=options.lines)
    elif stage == "graph":
        content = lowered.as_text("graph")
    elif device is not None and device.kind == "gpu":
        content = lowered.lower_for(device, gpu).as_text(stage)
    else:
        content = lowered.compile(options.pass_pipeline).as_text(stage)
    write(options.output, content)
    return 0


def _check(options: argparse.Namespace, stage: str, gpu: bool) -> None:
    """Raise UsageError where flags contradict each other, or one would say nothing."""
    emits = options.emit != "stage"
    wanted = {
        f"--stage={options.stage}": options.stage is not None, f"--emit={options.emit}": emits,
        "--remarks": options.remarks, "--metal-dir": bool(options.metal_dir),
    }  # fmt: skip
    require_one(wanted)
    other = emits or options.remarks or options.metal_dir
    require_with("--short", options.short, not other, "it is a form of stages, graph to plan-buffers")
    if options.short and gpu:
        raise UsageError(f"stage {stage!r} has no short form: it is not of the smelt dialect")
    require_with("--lines", options.lines, options.short, "give --short, too; it shows the lines of the user's program")
    require_with("--measure", options.measure, options.emit == "cost", "give --emit=cost, too, which it times")
    need = "give a stage of a GPU's program (--stage=msl) or --metal-dir, too"
    require_with("--gpu", options.gpu is not None, gpu or bool(options.metal_dir), need)
    require_with("-o", options.output != "-" and bool(options.metal_dir), False, "--metal-dir names where files go")
    if options.pass_pipeline is not None and (gpu or options.metal_dir or options.emit in ("stablehlo", "linalg")):
        what = f"--emit={options.emit}" if emits else "--metal-dir" if options.metal_dir else f"--stage={stage}"
        raise UsageError(
            f"{what} writes a program that --pass-pipeline has no part in: transform an IR file, smelt-opt f.mlir "
            "--pass-pipeline=... --emit=..."
        )


def lower(options: argparse.Namespace) -> Any:
    """The traced function that options name, for the arguments and the device that they name.

    Raises:
        UsageError: there is no such function, the arguments are none, or the function raised.
    """
    import smelt
    from smelt.passes.driver import Pipeline
    from smelt.runtime import default_device, set_default_device
    from smelt.runtime.pipelines import in_force

    load_plugins(options.plugins)
    if options.device:
        set_default_device(options.device)
    function = load(options.target)
    if options.pass_pipeline is not None:  # early stages do not come as far as the passes
        Pipeline.parse(in_force(default_device(), options.pass_pipeline) or "")
    arguments = [parse_argument(text) for text in options.arguments]
    compiled = function if hasattr(function, "trace") else smelt.compile(function)
    try:
        with exits_are_errors():
            return compiled.trace(*arguments).lower()
    except SmeltError:
        raise
    except (Exception, SystemExit) as error:
        line = innermost_line(error)
        at = f"; at {line}" if line else ""
        if isinstance(error, TypeError) and not arguments:
            at += "; what it takes follows its name: a type such as f32[4,8], or a number, each"
        raise UsageError(f"{options.target} raised {type(error).__name__}: {error}{at}") from error


def _save_metal(program: Any, directory: str, name: str) -> int:
    try:
        for path in program.save(directory, name):
            print(path)
    except OSError as error:
        raise UsageError(f"{directory}: error: cannot be written: {error.strerror}") from None
    return 0


def _list(program: Any, more: Sequence[str]) -> str:
    """The stages of a program, one a line, and `more`, which every program has."""
    passed = program.executable.passed
    unchanged = passed.unchanged if passed else ()
    names = dict.fromkeys([*program.stages, *more])
    return "".join(f"{name}  (changed nothing)\n" if name in unchanged else f"{name}\n" for name in names)


def load(target: str) -> Any:
    """The function that ``module:function`` names."""
    module_name, colon, name = target.rpartition(":")
    if not colon or not module_name or not name:
        said = f"{target!r} is not MODULE:FUNCTION, for example examples/gelu.py:gelu"
        if target.endswith(".onnx"):
            said += "; smelt.from_onnx in a Python file makes a function of an ONNX model"
        elif os.path.isfile(target) and not target.endswith(".py"):
            said += f"; of a file of IR, smelt view {target} -o page.html shows all stages, and smelt opt transforms it"
        raise UsageError(said)
    module = load_module(module_name)
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            defined = [n for n, v in vars(module).items() if callable(v) and not n.startswith("_")]
            raise UsageError(f"{module_name} has no {name!r}; it has {', '.join(defined) or 'no functions'}")
        found = getattr(found, part)
    if not callable(found):
        raise UsageError(f"{target} is not a function, but of type {type(found).__name__}")
    return found


def parse_argument(text: str) -> Any:
    """An argument from its text.

    ``f32[4,8]`` is an array by its type (names of MLIR or of NumPy), ``3``, ``0.5``, ``true`` and
    ``none`` are themselves, and ``[...]``, ``(...)``, ``{key: ...}`` are trees of these.
    """
    parser = _ArgumentParser(text)
    value = parser.value()
    parser.end()
    return value


class _ArgumentParser:
    def __init__(self, text: str):
        self.text, self.at = text, 0

    def value(self) -> Any:
        self.space()
        if array := _TYPE.match(self.text, self.at):
            self.at = array.end()
            return _by_type(array[1], array[2])
        if array := _BEGUN.match(self.text, self.at):
            raise self.bad_extents(array)
        opening = self.text[self.at : self.at + 1]
        if opening in ("[", "("):
            items = self.items("]" if opening == "[" else ")", self.value)
            return items if opening == "[" else tuple(items)
        if opening == "{":
            return dict(self.items("}", self.entry))
        word = self.word()
        special = {"true": True, "false": False, "none": None}
        if word.lower() in special:
            return special[word.lower()]
        for number in (int, float, complex):
            try:
                return number(word)
            except ValueError:
                pass
        raise self.error(f"{word!r} is neither a type such as f32[4,8] nor a number")

    def bad_extents(self, begun: re.Match[str]) -> UsageError:
        """What is wrong with ``f32[n,8]``, ``f32[4``."""
        whole = self.text[begun.end() :]
        self.at = begun.end()
        if "]" not in whole:
            return self.error("']' is expected")
        extents = whole.partition("]")[0].split(",")
        wrong = next(d for d in extents if not d.strip().isdecimal())
        return self.error(
            f"{wrong.strip()!r} is no extent: extents are numbers, for a program is shown for given sizes; "
            "name some, such as f32[4,8]"
        )

    def items(self, closing: str, item: Any) -> list[Any]:
        self.at += 1
        found: list[Any] = []
        while True:
            self.space()
            if self.text.startswith(closing, self.at):
                self.at += 1
                return found
            if found:
                self.expect(",")
                self.space()
                if self.text.startswith(closing, self.at):
                    continue
            found.append(item())

    def entry(self) -> tuple[str, Any]:
        key = self.word().strip("'\"")
        self.expect(":")
        return key, self.value()

    def word(self) -> str:
        self.space()
        found = _WORD.match(self.text, self.at)
        if found is None:
            raise self.error("something is missing")
        self.at = found.end()
        return found.group()

    def expect(self, character: str) -> None:
        self.space()
        if not self.text.startswith(character, self.at):
            raise self.error(f"{character!r} is expected")
        self.at += 1

    def space(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def end(self) -> None:
        self.space()
        if self.at < len(self.text):
            raise self.error(f"{self.text[self.at :]!r} is left over")

    def error(self, message: str) -> UsageError:
        return UsageError(f"argument {self.text!r}, column {self.at + 1}: {message}")


def _by_type(name: str, extents: str) -> Any:
    import smelt

    try:
        dtype = dtypes.by_mlir(name)
    except SmeltError:
        dtype = dtypes.by_name(name)
    shape = tuple(int(d) for d in extents.split(",") if d.strip())
    return smelt.ShapeDtype(shape, dtype)
