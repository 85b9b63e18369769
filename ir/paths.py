"""Arguments that are paths of files."""

from __future__ import annotations

import os
from typing import Any

from .errors import ArgumentTypeError, at_user_line, shown


def path_of(name: str, what: str, value: Any) -> str:
    """A path as a text. A number, which `open` would take for a file that is open already, is none.

    Raises:
        ArgumentTypeError: it is none.
    """
    try:
        return os.fsdecode(value)
    except Exception:  # also of a class that fails to say which one
        raise ArgumentTypeError(at_user_line(f"smelt.{name}: {what} must be a path, is {shown(value)}")) from None
