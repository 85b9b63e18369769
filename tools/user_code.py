"""Code of users that commands import: modules by their names or files, which may end the process."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import sys
import threading
from collections.abc import Iterator
from types import ModuleType
from typing import NoReturn

from .usage import UsageError


def load_module(name: str) -> ModuleType:
    """Import a module by its dotted name, from the current folder too, or from its file.

    Raises:
        UsageError: there is no such file, or the import fails.
    """
    try:
        with exits_are_errors():
            return _load_module(name)
    except UsageError:
        raise
    except (Exception, SystemExit) as error:
        raise UsageError(f"{name} cannot be imported: {type(error).__name__}: {error}") from error


@contextlib.contextmanager
def exits_are_errors() -> Iterator[None]:
    """What ends the process at once, without a word, is an exception while the user's code runs."""
    leave, process, thread = os._exit, os.getpid(), threading.get_ident()
    elsewhere: list[str] = []

    def told(status: int) -> NoReturn:
        if os.getpid() != process:  # a child that was forked, which ends so
            leave(status)
        if threading.get_ident() != thread:  # whose exceptions nobody sees
            elsewhere.append(f"os._exit({status}) in another thread")
        raise SystemExit(f"os._exit({status})")

    os._exit = told
    try:
        yield
    finally:
        os._exit = leave
    if elsewhere:
        raise SystemExit(elsewhere[0])


def _load_module(name: str) -> ModuleType:
    if not name.endswith(".py") and os.sep not in name:
        sys.path.insert(0, os.getcwd())
        return importlib.import_module(name)
    if not os.path.isfile(name):
        raise UsageError(f"{name}: there is no such file")
    sys.path.insert(0, os.path.dirname(os.path.abspath(name)))
    stem = os.path.splitext(os.path.basename(name))[0]
    spec = importlib.util.spec_from_file_location(stem, name)
    if spec is None or spec.loader is None:
        raise UsageError(f"{name} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[stem] = module
    spec.loader.exec_module(module)
    return module
