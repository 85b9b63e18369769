"""``smelt-opt --run-reproducer``: the passes that an IR file names itself."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable

from smelt.ir.errors import PipelineError

_RUN = re.compile(r"^\s*//\s*RUN:\s*(?:not\s+)?smelt-opt\s+(.*)$", re.MULTILINE)
_MLIR = re.compile(r'mlir_reproducer\s*:\s*\{[^}]*?\bpipeline\s*:\s*"((?:[^"\\]|\\.)*)"', re.DOTALL)


def passes_of(source: str, name: str, given: str, parse: Callable[[list[str]], str]) -> str:
    """The pipeline of a reproducer: of its first line ``// RUN: smelt-opt %s …``, which smelt's begin with and tests
    have, or of the resource that mlir-opt's end with.

    Args:
        source: the file. name: of it, for errors. given: passes of the command line. parse: gives the pipeline of
            arguments of smelt-opt, or leaves by SystemExit.

    Raises:
        PipelineError: it names no passes, or the command line does, too.
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
            pipeline = parse(words)
        except (ValueError, SystemExit):
            raise PipelineError(f"{name}: error: this is no command of smelt-opt: {command}") from None
        if pipeline:
            return pipeline
    rule = "the first line of a reproducer is `// RUN: smelt-opt %s --pass-pipeline='...'`"
    raise PipelineError(f"{name}: error: the file names no passes: {rule}")
