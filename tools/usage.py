"""What smelt's command lines share: messages about mistakes, numeric arguments, and flags that need other flags."""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from smelt.ir.errors import SmeltError, did_you_mean

from .isolate import unwritable


class UsageError(SmeltError, ValueError):
    """Something on the command line that cannot be meant."""


class Parser(argparse.ArgumentParser):
    """Tells a mistake in one line, with the way to the flags, in place of all of them."""

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Like argparse's, but unknown flags are reported by the command that they were given to."""
        options, left = self.parse_known_args(args, namespace)
        if left:
            commands = [a for a in self._actions if isinstance(a, argparse._SubParsersAction)]
            chosen = next((a.choices[getattr(options, a.dest)] for a in commands), self)
            chosen.refuse(left)
        return options

    def refuse(self, words: Sequence[str]) -> NoReturn:
        """Leave with exit status 2: there are no such flags, or too many words."""
        flag = words[0].partition("=")[0]
        known = [flag for action in self._actions for flag in action.option_strings]
        hint = did_you_mean(flag, known) if flag.startswith("-") else ""
        self.error(f"unrecognized arguments: {' '.join(words)}{hint}")

    def error(self, message: str) -> NoReturn:
        """Leave with exit status 2."""
        self.exit(2, f"{self.prog}: error: {message} ({self.prog} --help lists what it takes)\n")


def seconds(text: str) -> float:
    """A time to wait, which is some."""
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 < found < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return found


def named(text: str) -> str:
    """A name, which says something."""
    if not text.strip():
        raise argparse.ArgumentTypeError("a name is missing")
    return text


def count(text: str) -> int:
    """How many of something, which may be none."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0 on")
    return int(text)


def some(text: str) -> int:
    """How many of something, at least one."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 on")
    return int(text)


def require_one(asked: Mapping[str, bool]) -> None:
    """Raise UsageError if more than one flag says what to write."""
    given = [flag for flag, there in asked.items() if there]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} ask for different things: give one of them")


def require_with(flag: str, given: bool, by: bool, needed: str) -> None:
    """Raise UsageError where a flag is given without what gives it a meaning."""
    if given and not by:
        raise UsageError(f"{flag} says nothing here: {needed}")


def require_writable(path: str) -> None:
    """Raise UsageError where a file cannot be written, before there is something to lose; - is standard output."""
    folder = os.path.dirname(path) or "."
    if path == "-":
        return
    if os.path.isdir(path):
        raise UsageError(f"{path}: error: cannot be written: it is a folder")
    if not os.path.isdir(folder) or not os.access(path if os.path.exists(path) else folder, os.W_OK):
        why = "there is no such folder" if not os.path.isdir(folder) else "permission denied"
        raise UsageError(f"{path}: error: cannot be written: {why}")


def write(path: str, content: str) -> None:
    """Write a text to a file; - is standard output. Raises UsageError where a file cannot be written."""
    if path == "-":
        try:
            sys.stdout.write(content)
            sys.stdout.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise UsageError(unwritable(error)) from None
        return
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(content)
    except OSError as error:
        raise UsageError(f"{path}: error: cannot be written: {error.strerror}") from None
