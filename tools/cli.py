"""`smelt`: look into functions and run IR files.

smelt dump examples/gelu.py:gelu 'f32[32,128]' --stage=fuse
smelt view examples/gelu.py:gelu 'f32[32,128]' -o gelu.html
smelt run file.mlir --input a.npy --output y.npy
smelt opt file.mlir --canonicalize
smelt verify file.mlir --pass-pipeline=canonicalize,cse
smelt reduce file.mlir -o small.mlir -- smelt verify {}
smelt diff before.mlir after.mlir
smelt check-metal kernel.metal
smelt doctor
smelt launch -n 4 train.py
smelt cache
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from .commands import command_parser
from .isolate import INTERRUPTED, flushed, prepare_streams, reader_left


def main(argv: Sequence[str] | None = None, isolate: bool = True) -> int:
    """Run a subcommand; its exit code. `isolate`: read files of others in a child process."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    if argv is None:
        prepare_streams()
    if arguments and arguments[0] == "opt":
        from . import opt

        return opt.main(arguments[1:], isolate)
    try:
        options = command_parser().parse_args(arguments)
    except SystemExit as stop:
        return flushed(stop.code if isinstance(stop.code, int) else 2)
    options.isolate = isolate
    name = options.command.replace("-", "_")
    try:
        code: int = getattr(importlib.import_module(f"smelt.tools.{name}"), name)(options)
        return flushed(code)
    except BrokenPipeError:
        return reader_left()
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        from .opt import report_error

        where = getattr(options, "file", None) or getattr(options, "target", None) or "smelt"
        return report_error(error, where, options.debug)


if __name__ == "__main__":
    sys.exit(main())
