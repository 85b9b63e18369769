"""Work on untrusted text in a child process, so that a crash of the parser is an error message."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

#: `progress(stage)`: a job says what it is about to do.
Progress = Callable[[str], None]
Job = Callable[..., int]

PARSING = "parsing"
#: What the child says when the job has returned.
_RETURNED = ""
#: The exit code after Ctrl-C.
INTERRUPTED = 130


def run_isolated(
    job: Job,
    arguments: tuple[Any, ...],
    parse_seconds: float,
    name: str,
    stage_seconds: float | None = None,
    failed: int = 1,
) -> int:
    """The exit code of ``job(*arguments, progress)``, run in a child process.

    A child that dies by a signal, still parses after `parse_seconds`, or is at any other stage for `stage_seconds`
    (None: however long it takes) is reported as an error of `name`, and gives `failed`; so is one that ends before the
    job has returned.
    """
    import multiprocessing

    # A fork is fast, and safe as long as nothing has started threads: on Linux, before MLIR is loaded.
    processes: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    here, there = processes.Pipe(duplex=False)
    child = processes.Process(target=_child, args=(job, arguments, there), daemon=True)
    sys.stdout.flush()
    sys.stderr.flush()
    child.start()
    there.close()
    stage = PARSING
    try:
        while True:
            seconds = parse_seconds if stage == PARSING else stage_seconds
            if not here.poll(seconds):
                child.kill()
                child.join()
                return _failed(name, stage, f"was still busy after {seconds:g} s; gave up", failed)
            said = here.recv()
            if said == _RETURNED:
                break
            stage = said
        returned = True
    except EOFError:
        returned = False
    except KeyboardInterrupt:
        child.kill()
        child.join()
        return INTERRUPTED
    child.join()
    code = child.exitcode or 0
    if code < 0:
        return _failed(name, stage, f"crashed with {signal_name(-code)}", failed)
    if not returned:
        return _failed(name, stage, f"ended the process (exit code {code})", failed)
    return code


def _failed(name: str, stage: str, what: str, code: int) -> int:
    print(f"{name}: error: {'the parser' if stage == PARSING else stage} {what}", file=sys.stderr)
    return code


def _child(job: Job, arguments: tuple[Any, ...], connection: Any) -> None:
    try:
        code = job(*arguments, connection.send)
        sys.stdout.flush()
        sys.stderr.flush()
    except BrokenPipeError:
        code = reader_left()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except OSError as error:
        if error.filename is not None:
            raise
        print(unwritable(error), file=sys.stderr)
        code = 2
    connection.send(_RETURNED)
    sys.exit(code)


def reader_left() -> int:
    """The exit code where nobody reads on (`smelt-opt ... | head`); Python must not complain about it at exit."""
    _discard_output()
    return 0


def unwritable(error: OSError) -> str:
    """What there is to say where standard output takes no more, for a disk is full; it takes nothing from then on."""
    _discard_output()
    return f"<stdout>: error: cannot be written: {error.strerror}"


def _discard_output() -> None:
    """What standard output still holds back goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def signal_name(number: int) -> str:
    """A signal by its name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
