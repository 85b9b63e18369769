"""Work on untrusted text in a child process, so that a crash of the parser is an error message."""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

#: `progress(stage)`: a job says what it is about to do.
Progress = Callable[[str], None]
Job = Callable[..., int]

PARSING = "parsing"
#: What writing fails with where a disk is full, or standard output closed.
_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EBADF, errno.EIO)
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
    prepare_streams()
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


def flushed(code: int) -> int:
    """The exit code of a command once all that it has printed is written, and says where it cannot be."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return reader_left()
    except OSError as error:
        print(unwritable(error), file=sys.stderr)
        return code or 1
    return code


def reader_left() -> int:
    """The exit code where nobody reads on (`smelt-opt ... | head`); Python must not complain about it at exit."""
    _discard_output()
    return 0


def is_unwritable(error: BaseException) -> bool:
    """Whether an error says that standard output takes no more."""
    return isinstance(error, OSError) and error.filename is None and error.errno in _UNWRITABLE


def unwritable(error: OSError) -> str:
    """What there is to say where standard output takes no more; it takes nothing from then on."""
    _discard_output()
    return f"<stdout>: error: cannot be written: {error.strerror}"


def prepare_streams() -> None:
    """Make standard input and output fit for a command.

    Those that were closed before the process began, where Python has None, are opened: reading and writing them fail,
    messages go nowhere, and files that are opened later cannot take their numbers. What is printed is UTF-8, as in
    files; a terminal of another encoding shows what it does not know in escapes.
    """
    for number, (name, mode, flags) in enumerate(
        (("stdin", "r", os.O_WRONLY), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_WRONLY))
    ):
        if getattr(sys, name) is None:
            setattr(sys, name, open(_opened(number, flags), mode, encoding="utf-8"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        encoding = None if sys.stdout.isatty() else "utf-8"
        sys.stdout.reconfigure(encoding=encoding, errors="backslashreplace")


def _opened(number: int, flags: int) -> int:
    """The null device under the number of a standard stream, or another one where something else has that."""
    opened = os.open(os.devnull, flags)
    if opened == number or _is_open(number):
        return opened
    os.dup2(opened, number)
    os.close(opened)
    return number


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _discard_output() -> None:
    """What standard output still holds back goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def signal_name(number: int) -> str:
    """A signal by its name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
