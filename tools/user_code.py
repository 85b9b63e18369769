"""Code of users that commands import: modules by their names or files, which may end the process.

Commands that run passes take the modules that define some, ``--load-pass-plugin=my_passes.py``: passes, ops, rewrites,
heuristics, analyses and devices are registered where they are defined.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import NoReturn

from .usage import UsageError

#: Plugins that were loaded, by name or file: what they define is there once.
_plugins: dict[str, ModuleType] = {}


def add_plugins(parser: argparse.ArgumentParser) -> None:
    """The flag that names plugins, as mlir-opt calls it."""
    parser.add_argument(
        "--load-pass-plugin", "--load-dialect-plugin", dest="plugins", action="append", default=[], metavar="MODULE",
        help="a module or Python file that defines passes, ops, rewrites, ...; may be repeated",
    )  # fmt: skip


def load_plugins(names: Sequence[str]) -> None:
    """Import modules, or Python files, each once.

    Raises:
        UsageError: there is none of such a name, or the import fails.
    """
    for name in names:
        _plugins[_key(name)] = load_module(name)


def _key(name: str) -> str:
    return os.path.abspath(name) if name.endswith(".py") else name


def load_module(name: str) -> ModuleType:
    """Import a module by its dotted name, from the current folder too, or from its file; a plugin is the one loaded.

    Raises:
        UsageError: there is no such file, or the import fails.
    """
    if (plugin := _plugins.get(_key(name))) is not None:
        return plugin
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
        raise UsageError(f"{name} is a folder" if os.path.isdir(name) else f"{name}: there is no such file")
    sys.path.insert(0, os.path.dirname(os.path.abspath(name)))
    stem = os.path.splitext(os.path.basename(name))[0]
    spec = importlib.util.spec_from_file_location(stem, name)
    if spec is None or spec.loader is None:
        raise UsageError(f"{name} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[stem] = module
    spec.loader.exec_module(module)
    return module
