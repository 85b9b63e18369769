"""``smelt-opt --run-reproducer``: the passes that an IR file names itself."""

from __future__ import annotations

import argparse
import os
import re
import shlex
from collections.abc import Callable, Sequence

from smelt.ir.errors import PipelineError

_RUN = re.compile(r"^\s*//\s*RUN:\s*(?:not\s+)?smelt-opt\s+(.*)$", re.MULTILINE)
_MLIR = re.compile(r'mlir_reproducer\s*:\s*\{[^}]*?\bpipeline\s*:\s*"((?:[^"\\]|\\.)*)"', re.DOTALL)


def passes_of(
    source: str, name: str, given: str, plugins: Sequence[str], parse: Callable[[list[str]], argparse.Namespace]
) -> str:
    """The pipeline of a reproducer: of its first line ``// RUN: smelt-opt %s …``, which smelt's begin with and tests
    have, or of the resource that mlir-opt's end with.

    Args:
        source: the file. name: of it, for errors. given: passes of the command line. plugins: of the command line, too.
        parse: reads arguments of smelt-opt, or leaves by SystemExit.

    Raises:
        PipelineError: it names no passes, or the command line does, too; or passes of a plugin that the command line
            does not name: a file of others has no code run.
    """
    if given:
        rule = "--run-reproducer takes the passes from the file"
        raise PipelineError(f"{name}: error: {rule}; the command line has {given}, too")
    if found := _MLIR.search(source):
        return found[1].replace('\\"', '"')
    if found := _RUN.search(source):
        command = re.split(r"\s(?:\||2>|>|<|&&)", found[1])[0]
        try:
            words = [word for word in shlex.split(command) if "%" not in word and word != "--run-reproducer"]
            options = parse(words)
        except (ValueError, SystemExit):
            raise PipelineError(f"{name}: error: this is no command of smelt-opt: {command}") from None
        known = set(map(os.path.abspath, plugins)).union(plugins)
        if lacking := [plugin for plugin in options.plugins if plugin not in known]:
            flags = " ".join(f"--load-pass-plugin={plugin}" for plugin in lacking)
            needed = ", ".join(lacking)
            raise PipelineError(f"{name}: error: its passes need code of {needed}: if you trust that, {flags}")
        if options.pipeline:
            return str(options.pipeline)
    rule = "the first line of a reproducer is `// RUN: smelt-opt %s --pass-pipeline='...'`"
    raise PipelineError(f"{name}: error: the file names no passes: {rule}")
