"""Programs of other frameworks on the command line: StableHLO in the place of a file of smelt."""

from __future__ import annotations

import re

_OPS = re.compile(r"(?<![\w.\"@%])\"?(stablehlo|chlo)\.[a-z]")
_COMMENT = re.compile(r"//[^\n]*")


def is_stablehlo(source: str) -> bool:
    """Whether a text is a program in StableHLO rather than in smelt's dialect."""
    plain = _COMMENT.sub("", source)
    return '"smelt.' not in plain and _OPS.search(plain) is not None


def as_smelt(source: str, name: str) -> str:
    """A text in smelt's dialect: itself, or the translation of a program in StableHLO.

    Raises:
        IRError: something in it has no translation.
    """
    if not is_stablehlo(source):
        return source
    from smelt.exchange.imported import read_module

    return read_module(source, name)


def text_of(data: bytes, name: str) -> str | None:
    """The text of a portable artifact of StableHLO; None for other bytecode."""
    if b"StableHLO_v" not in data[:64]:
        return None
    from smelt.ir import stablehlo

    return stablehlo.text_of_bytecode(data, name)
