"""Mutations of bytes and of texts, each from a seeded generator."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

NUMBERS = (
    "0", "1", "-1", "2", "31", "32", "64", "127", "128", "255", "256", "65536", "2147483647", "2147483648",
    "4294967296",
    "9223372036854775807", "9223372036854775808", "18446744073709551616", "9" * 40, "1.0", "-0.0", "1e999", "nan",
    "0x7FF0000000000000", "-9223372036854775808", "?", "1" + "0" * 400,
)  # fmt: skip
ODD = (
    "é", "µ", "ß", "Ω", "λ", "𝒳", "中", "\u200b", "\ufeff", "\u2028", "\0", "\t", "\r", "\x1b", "\x7f", "\\", '"', "'",
    "`",
    "//", "/*", "*/", "#", "@", "%", "!", "$", "\ud800",
)  # fmt: skip
_TOKEN = re.compile(r"\w+|\s+|.", re.DOTALL)


def mutated_text(source: str, others: Sequence[str], words: Sequence[str], rng: random.Random) -> str:
    """A text with some changes; `others` are texts of which parts may be put in, `words` what its language has."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        source = rng.choice(_OF_TEXTS)(source, others, words, rng)
    return source


def _tokens(source: str) -> list[str]:
    return _TOKEN.findall(source)


def _place(tokens: Sequence[object], rng: random.Random) -> int:
    return rng.randrange(len(tokens)) if tokens else 0


def _drop(source: str, others: Sequence[str], words: Sequence[str], rng: random.Random) -> str:
    tokens = _tokens(source)
    at = _place(tokens, rng)
    del tokens[at : at + rng.choice((1, 1, 2, 5, 40))]
    return "".join(tokens)


def _double(source: str, others: Sequence[str], words: Sequence[str], rng: random.Random) -> str:
    tokens = _tokens(source)
    at = _place(tokens, rng)
    part = tokens[at : at + rng.choice((1, 2, 4, 20))]
    return "".join(tokens[:at] + part * rng.choice((2, 2, 3, 50, 300)) + tokens[at + len(part) :])


def _swap(source: str, others: Sequence[str], words: Sequence[str], rng: random.Random) -> str:
    tokens = _tokens(source)
    if tokens:
        i, j = _place(tokens, rng), _place(tokens, rng)
        tokens[i], tokens[j] = tokens[j], tokens[i]
    return "".join(tokens)


def _number(source: str, others: Sequence[str], words: Sequence[str], rng: random.Random) -> str:
    found = list(re.finditer(r"\d+", source))
    if not found:
        return source
    at = rng.choice(found)
    return source[: at.start()] + rng.choice(NUMBERS) + source[at.end() :]


def _word(source: str, others: Sequence[str], words: Sequence[str], rng: random.Random) -> str:
    tokens = _tokens(source)
    at = _place(tokens, rng)
    end = at + rng.randrange(2)
    return "".join(tokens[:at]) + rng.choice(words) + "".join(tokens[end:])


def _odd(source: str, others: Sequence[str], words: Sequence[str], rng: random.Random) -> str:
    at = rng.randrange(len(source) + 1)
    return source[:at] + rng.choice(ODD) * rng.choice((1, 1, 1, 30)) + source[at:]


def _character(source: str, others: Sequence[str], words: Sequence[str], rng: random.Random) -> str:
    at = rng.randrange(len(source) + 1)
    return source[:at] + chr(rng.randrange(32, 127)) + source[at + 1 :]


def _cut(source: str, others: Sequence[str], words: Sequence[str], rng: random.Random) -> str:
    return source[: rng.randrange(len(source) + 1)]


def _splice(source: str, others: Sequence[str], words: Sequence[str], rng: random.Random) -> str:
    lines, more = source.split("\n"), rng.choice(others).split("\n")
    at, start = _place(lines, rng), _place(more, rng)
    lines[at : at + rng.randrange(3)] = more[start : start + rng.choice((1, 2, 5))]
    return "\n".join(lines)


def _lines(source: str, others: Sequence[str], words: Sequence[str], rng: random.Random) -> str:
    lines = source.split("\n")
    i, j = _place(lines, rng), _place(lines, rng)
    lines[i], lines[j] = lines[j], lines[i]
    return "\n".join(lines)


def _nest(source: str, others: Sequence[str], words: Sequence[str], rng: random.Random) -> str:
    tokens = _tokens(source)
    at = _place(tokens, rng)
    opening, closing = rng.choice(("()", "[]", "{}", "<>", ("!", ""), ("-", ""), ("tensor<", ">"), ("tuple<", ">")))
    count = rng.choice((1, 3, 20, 190, 500))
    end = min(len(tokens), at + rng.randrange(4))
    return "".join([*tokens[:at], opening * count, *tokens[at:end], closing * count, *tokens[end:]])


TextMutation = Callable[[str, Sequence[str], Sequence[str], random.Random], str]
_OF_TEXTS: tuple[TextMutation, ...] = (
    _drop, _drop, _double, _swap, _swap, _number, _number, _word, _word, _odd, _character, _cut, _splice, _splice,
    _lines,
    _nest,
)  # fmt: skip


def gently_mutated(source: str, words: Sequence[str], rng: random.Random) -> str:
    """A module with changes that often leave it valid: other operands, other ops, other numbers, lines once more."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        kind = rng.randrange(6)
        if kind < 2:  # another value in place of one that is read
            values = sorted(set(re.findall(r"%\w+", source)))
            reads = [m for m in re.finditer(r"%\w+", source) if not re.match(r"(:\d+)?\s*=", source[m.end() :])]
            if reads:
                at = rng.choice(reads)
                source = source[: at.start()] + rng.choice(values) + source[at.end() :]
        elif kind == 2:  # another op
            ops = list(re.finditer(r'"smelt\.\w+"', source))
            names = [word for word in words if word.startswith('"smelt.')]
            if ops:
                at = rng.choice(ops)
                source = source[: at.start()] + rng.choice(names) + source[at.end() :]
        elif kind == 3:  # another number, wherever it stands
            numbers = sorted(set(re.findall(r"(?<![%\w.])\d+(?![\w.])", source)))
            if numbers:
                old, new = rng.choice(numbers), rng.choice(("0", "1", "2", "3", "5", "7"))
                source = re.sub(rf"(?<![%\w.]){old}(?=[x>,\s\]])", new, source)
        elif kind == 4:  # another type, everywhere
            types = ("f32", "i1", "i8", "i32", "i64", "ui8", "ui64", "f16", "bf16", "f64", "complex<f32>")
            source = re.sub(rf"\b{rng.choice(types[:-1])}\b", rng.choice(types), source)
        else:
            lines = source.split("\n")
            i, j = _place(lines, rng), _place(lines, rng)
            lines[i], lines[j] = lines[j], lines[i]
            source = "\n".join(lines)
    return source


def mutated_bytes(data: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    """Bytes with some changes."""
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        at = rng.randrange(len(found) + 1)
        kind = rng.randrange(8)
        if kind == 0 and found:
            found[at % len(found)] ^= 1 << rng.randrange(8)
        elif kind == 1 and found:
            found[at % len(found)] = rng.randrange(256)
        elif kind == 2:
            found[at:at] = rng.randbytes(rng.choice((1, 2, 4, 8, 100)))
        elif kind == 3:
            del found[at : at + rng.choice((1, 2, 4, 8, 100))]
        elif kind == 4:
            width = rng.choice((2, 4, 8))
            number = rng.choice((0, 1, 2**15, 2**31 - 1, 2**31, 2**63 - 1, 2**64 - 1, len(found))) % 2 ** (8 * width)
            found[at : at + width] = number.to_bytes(width, "little")
        elif kind == 5:
            other = rng.choice(others)
            start = rng.randrange(len(other) + 1)
            found[at : at + rng.randrange(64)] = other[start : start + rng.randrange(64)]
        elif kind == 6:
            del found[at:]
        else:
            numbers = list(re.finditer(rb"\d+", found))
            if numbers:
                place = rng.choice(numbers)
                found[place.start() : place.end()] = rng.choice(NUMBERS).encode()
    return bytes(found)
