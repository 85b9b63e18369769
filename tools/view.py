"""``smelt view``: the page of a Python function."""

from __future__ import annotations

import argparse

from .dump import lower, write


def view(options: argparse.Namespace) -> int:
    """Trace, compile, and write the page."""
    program = lower(options).compile(options.pass_pipeline)
    title = " ".join([options.target, *options.arguments])
    write(options.output, program.view(title=title, measure=options.measure))
    print(options.output)
    return 0
