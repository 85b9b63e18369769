"""``smelt view``: the page of a Python function, of an IR file, or of a folder of dumps."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from .dump import lower
from .isolate import PARSING, Progress, run_isolated
from .opt import check_calls, describe, read_source
from .run import parsed
from .usage import UsageError, require_with, require_writable, write
from .user_code import load_plugins


def view(options: argparse.Namespace) -> int:
    """Trace and compile, or read what a compile left; write the page."""
    require_writable(options.output)
    files = "it is about the code of an IR file that --measure runs"
    require_with("--custom-calls", options.custom_calls, options.measure and os.path.isfile(options.target), files)
    if os.path.isdir(options.target):
        what = "a folder of dumps is shown as it is, and nothing is compiled"
        for flag in ("--measure", "--device", "--pass-pipeline"):
            given = getattr(options, flag[2:].replace("-", "_"))
            require_with(flag, given is not None and given is not False, False, what)
    python = bool(options.arguments) and options.target.endswith(".py")  # :FUNCTION is missing, which `lower` says
    if os.path.exists(options.target) and not python:
        if options.arguments:
            raise UsageError(f"{options.target} is a file or a folder of dumps, which takes no arguments")
        if options.isolate:
            return run_isolated(_read, (options,), 600.0, options.target)
        return _read(options, lambda stage: None)
    if ":" not in options.target and not python:
        raise UsageError(f"there is no file or folder {options.target!r}, and it is not MODULE:FUNCTION")
    from smelt.ir import mlir

    program = lower(options).compile(options.pass_pipeline)
    title = mlir.unicode(" ".join([options.target, *options.arguments]))
    write(options.output, program.view(title=title, measure=options.measure))
    print(options.output)
    return 0


def _read(options: argparse.Namespace, progress: Progress) -> int:
    """The page of what others have written."""
    from smelt.runtime.view.page import page_of_dumps

    progress(PARSING)
    try:
        load_plugins(options.plugins)
        if os.path.isdir(options.target):
            found = page_of_dumps(Path(options.target), options.target)
        else:
            found = _page_of_file(options, progress)
        write(options.output, found)
    except Exception as error:
        if options.debug:
            raise
        print(describe(error, options.target), file=sys.stderr)
        return 1
    print(options.output)
    return 0


def _page_of_file(options: argparse.Namespace, progress: Progress) -> str:
    """What becomes of ``@main`` of a file."""
    from smelt.ir import mlir, text
    from smelt.ir.dialect import context
    from smelt.lazy.read_module import ModuleReader
    from smelt.runtime import set_default_device
    from smelt.transforms.traced import Lowered, Trace

    module = parsed(*reversed(read_source(options.target)))
    if options.measure:
        check_calls(module, options)
    progress("the compiler")
    if options.device:
        set_default_device(options.device)
    trace = Trace("main", ModuleReader(module, lambda op: None).function("main"), None, [], 0, {})
    # MLIR calls every file "-" in locations.
    name = mlir.ir.StringAttr.get(mlir.unicode(options.target), context())
    located = text.to_text(module, locations=True).replace('loc("-":', f"loc({name}:")
    program = Lowered(trace, text.parse(located)).compile(options.pass_pipeline)
    return program.view(title=mlir.unicode(options.target), measure=options.measure)
