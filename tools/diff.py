"""``smelt diff``: two IR files, by structure."""

from __future__ import annotations

import argparse
import sys

from .isolate import PARSING, Progress, run_isolated
from .opt import describe, read_source
from .usage import UsageError


def diff(options: argparse.Namespace) -> int:
    """Print what is different; 0: nothing, 1: something, 2: a file that cannot be read."""
    try:
        if options.first == options.second == "-":
            raise UsageError("one of the two files can be standard input, not both")
        sources = [read_source(path) for path in (options.first, options.second)]
    except Exception as error:
        print(describe(error, "smelt diff"), file=sys.stderr)
        return 2
    if not options.isolate:
        return _job(options, sources, lambda stage: None)
    return run_isolated(_job, (options, sources), options.parse_timeout, "smelt diff", failed=2)


def _job(options: argparse.Namespace, sources: list[tuple[str, str]], progress: Progress) -> int:
    from smelt.ir import text
    from smelt.ir.differences import differences

    modules = []
    name = ""
    try:
        for name, source in sources:
            progress(PARSING)
            modules.append(text.parse(source, name))
        progress("the comparison")
        found = differences(*modules)
    except Exception as error:
        if options.debug:
            import traceback

            traceback.print_exception(error)
        print(describe(error, name), file=sys.stderr)
        return 2
    if str(found) and not options.quiet:
        print(str(found).replace("(-:", "(line "))
    return int(bool(found))
