"""``smelt reduce``: a smaller IR file on which a command still fails."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time

from smelt.ir.errors import InternalError
from smelt.passes.reduction import NotFailing, count_ops, reduce_text

from .isolate import INTERRUPTED
from .opt import read_source
from .tries import OWN, Tries
from .usage import UsageError, require_writable, write

#: The exit status of smelt's commands for a mistake on the command line.
MISUSED = 2
#: How many seconds pass at least between two lines about progress.
QUIET = 5.0


class _Spent(InternalError):
    """There has been as much time as there was to be."""


class _Search:
    """The runs of the command. Attributes: count, how many there were; best, the smallest module that failed so far."""

    def __init__(self, tries: Tries, options: argparse.Namespace, path: str):
        self._tries, self._options, self._path = tries, options, path
        self._start = self._told = time.monotonic()
        self.count, self.best, self.ended = 0, "", ""

    def fails(self, candidate: str) -> bool:
        """Whether the command fails. Raises _Spent."""
        now = time.monotonic()
        if self.best and now - self._start > self._options.total:
            raise _Spent
        if self.best and now - self._told > QUIET:
            self.report(f"{self.count} runs in {now - self._start:.0f} s: {count_ops(self.best)} ops are left")
        self.count += 1
        found = self._failing(candidate)
        if found:
            self.best = candidate
        return found

    def report(self, line: str) -> None:
        """Tell a step."""
        self._told = time.monotonic()
        print(line, file=sys.stderr, flush=True)

    def _failing(self, candidate: str) -> bool:
        options = self._options
        with open(self._path, "w", encoding="utf-8") as file:
            file.write(candidate)
        command = [word.replace("{}", self._path) for word in options.test]
        command += [] if command != options.test else [self._path]
        done = self._tries.run(command)
        if done.status == MISUSED and command[0] in OWN:
            raise UsageError(f"this command cannot be meant: {done.printed.decode(errors='replace').strip()}")
        if done.status is None:
            self.ended = f"takes more than {options.timeout:g} s, which is another fault than --message,"
            return options.message is None
        self.ended = "succeeds" if done.status == 0 else f"fails, and does not print {options.message!r},"
        return done.status != 0 and (options.message or "").encode() in done.printed


def reduce(options: argparse.Namespace) -> int:
    """Make smaller while the command fails; write what is left, also where time is up or Ctrl-C ends it."""
    require_writable(options.output)
    name, source = read_source(options.file)
    status, why = 0, ""
    with tempfile.TemporaryDirectory(prefix="smelt-reduce-") as folder, Tries(options.timeout) as tries:
        search = _Search(tries, options, os.path.join(folder, "candidate.mlir"))
        try:
            found = reduce_text(source, search.fails, search.report, name)
        except NotFailing:
            raise UsageError(f"the command {search.ended} on the whole module: there is nothing to look for") from None
        except _Spent:
            found, why = search.best, f"after {options.total:g} s (--total) "
        except KeyboardInterrupt:
            if not search.best:
                raise
            found, why, status = search.best, "interrupted: ", INTERRUPTED
    print(f"{why}{count_ops(found)} ops are left after {search.count} runs of the command", file=sys.stderr)
    write(options.output, found)
    return status
