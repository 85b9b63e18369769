"""Brackets and commas in a text of C++ or Metal."""

from __future__ import annotations

from smelt.ir.errors import SmeltError


class SimulatorError(SmeltError, RuntimeError):
    """A Metal text that does not compile, or a launch that goes wrong: what, in which kernel, where."""


def close(text: str, start: int) -> int:
    """Where the bracket at `start` closes."""
    pairs = {"(": ")", "{": "}", "<": ">", "[": "]"}
    opening, closing, depth = text[start], pairs[text[start]], 0
    for at in range(start, len(text)):
        if text[at] == opening:
            depth += 1
        elif text[at] == closing:
            depth -= 1
            if not depth:
                return at
    raise SimulatorError(f"unbalanced {opening!r} in the Metal text, line {text.count(chr(10), 0, start) + 1}")


def split(text: str) -> list[str]:
    """Pieces between commas that stand outside of brackets."""
    pieces, depth, piece = [], 0, ""
    for character in text:
        depth += (character in "([{<") - (character in ")]}>")
        if character == "," and depth == 0:
            pieces.append(piece)
            piece = ""
        else:
            piece += character
    return [p.strip() for p in [*pieces, piece] if p.strip()]
