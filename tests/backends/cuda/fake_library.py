"""What the libraries without a GPU have in common."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from smelt.ir.settings import override

from .test_device import _forget


class Texts:
    """A function that says an error in words."""

    restype: Any = None

    def __init__(self, words: Mapping[int, bytes]):
        self.words = words

    def __call__(self, code: int) -> bytes:
        return self.words.get(code, b"an error")


@contextlib.contextmanager
def installed(patch: pytest.MonkeyPatch, module: Any, libraries: Mapping[str, Any]) -> Iterator[None]:
    """Let a module of the device find libraries, by name, and no others."""
    patch.setattr(module, "load", libraries.get)
    _forget()
    with override(tier="program"):
        yield
    _forget()
