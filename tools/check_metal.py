"""`smelt check-metal`: the strict check of Metal source files."""

from __future__ import annotations

import argparse
import os
import sys

from .isolate import PARSING, Progress, run_isolated
from .opt import describe

#: Larger files are refused: no kernel is as long.
MAX_BYTES = 16 * 1024 * 1024


def check_metal(options: argparse.Namespace) -> int:
    """Print diagnostics: 0 without errors, 1 with errors, 2 when a file cannot be read."""
    code = 0
    for path in options.files:
        name = "<stdin>" if path == "-" else path
        try:
            text = _read(path)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            print(f"{name}: error: cannot be read: {reason}", file=sys.stderr)
            code = 2
            continue
        include = [*([] if path == "-" else [os.path.dirname(path) or "."]), *options.include]
        arguments = (text, name, options, include)
        if options.isolate:
            found = run_isolated(_job, arguments, options.parse_timeout, name)
        else:
            found = _job(*arguments, lambda stage: None)
        code = max(code, found)
    return code


def _read(path: str) -> str:
    """The text of a file; ValueError for one that is no text."""
    if path == "-":
        data = sys.stdin.buffer.read(MAX_BYTES + 1)
    else:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ValueError(f"more than {MAX_BYTES >> 20} MiB")
    if b"\0" in data:
        raise ValueError("this is not text")
    return data.decode("utf-8", "replace")


def _job(text: str, name: str, options: argparse.Namespace, include: list[str], progress: Progress) -> int:
    from smelt.backends.metal.check import check

    progress(PARSING)
    try:
        diagnostics = check(text, name, options.strict, include, options.defines, options.metal)
    except Exception as error:
        if options.debug:
            import traceback

            traceback.print_exception(error)
        print(describe(error, name), file=sys.stderr)
        return 1
    for diagnostic in diagnostics:
        print(diagnostic)
    counts = {kind: sum(d.severity == kind for d in diagnostics) for kind in ("error", "warning")}
    if any(counts.values()):
        shown = " and ".join(f"{n} {kind}{'s' * (n > 1)}" for kind, n in counts.items() if n)
        print(f"{shown} in {name}", file=sys.stderr)
    return int(counts["error"] > 0)
