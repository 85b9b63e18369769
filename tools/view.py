"""``smelt view``: the page of a Python function, or of a folder of dumps."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from .dump import UsageError, lower, write
from .isolate import PARSING, Progress, run_isolated
from .opt import describe


def view(options: argparse.Namespace, isolate: bool = True) -> int:
    """Trace and compile, or read what a compile left; write the page."""
    if os.path.isdir(options.target):
        if options.arguments:
            raise UsageError(f"{options.target} is a folder of dumps, which takes no arguments")

        def report(message: str) -> None:
            print(f"{options.target}: error: {message}", file=sys.stderr)

        return run_isolated(_dumps, (options,), 600.0, report) if isolate else _dumps(options, lambda stage: None)
    program = lower(options).compile(options.pass_pipeline)
    title = " ".join([options.target, *options.arguments])
    write(options.output, program.view(title=title, measure=options.measure))
    print(options.output)
    return 0


def _dumps(options: argparse.Namespace, progress: Progress) -> int:
    from smelt.runtime.view.page import page_of_dumps

    progress(PARSING)
    try:
        write(options.output, page_of_dumps(Path(options.target), options.target))
    except Exception as error:
        if options.debug:
            raise
        print(describe(error, options.target), file=sys.stderr)
        return 1
    print(options.output)
    return 0
