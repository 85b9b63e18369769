"""``smelt reduce``: a smaller IR file on which a command still fails."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile

from .opt import read_source
from .tries import OWN, Tries
from .usage import UsageError, require_writable, write

#: The exit status of smelt's commands for a mistake on the command line.
MISUSED = 2


def reduce(options: argparse.Namespace) -> int:
    """Make smaller while the command fails; write what is left."""
    from smelt.passes.reduction import NotFailing, count_ops, reduce_text

    require_writable(options.output)
    name, source = read_source(options.file)
    count, ended = 0, ""
    with tempfile.TemporaryDirectory(prefix="smelt-reduce-") as folder, Tries(options.timeout) as tries:
        path = os.path.join(folder, "candidate.mlir")

        def fails(candidate: str) -> bool:
            nonlocal count, ended
            count += 1
            with open(path, "w", encoding="utf-8") as file:
                file.write(candidate)
            command = [word.replace("{}", path) for word in options.test]
            command += [] if command != options.test else [path]
            done = tries.run(command)
            if done.status == MISUSED and command[0] in OWN:
                raise UsageError(f"this command cannot be meant: {done.printed.decode(errors='replace').strip()}")
            if done.status is None:
                ended = f"takes more than {options.timeout:g} s, which is another fault than --message,"
                return options.message is None
            ended = "succeeds" if done.status == 0 else f"fails, and does not print {options.message!r},"
            return done.status != 0 and (options.message or "").encode() in done.printed

        try:
            found = reduce_text(source, fails, lambda line: print(line, file=sys.stderr), name)
        except NotFailing:
            raise UsageError(f"the command {ended} on the whole module: there is nothing to look for") from None
    print(f"{count_ops(found)} ops are left after {count} runs of the command", file=sys.stderr)
    write(options.output, found)
    return 0
