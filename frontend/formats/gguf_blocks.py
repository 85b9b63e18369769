"""Blocks of quantized numbers in .gguf files.

Rows are made of blocks of 32 or 256 numbers, each with its scales. What `smelt.quantize` has a format for becomes that,
bit for bit: affine groups of 32 (x = scale·q + bias), "mxfp4" and "nvfp4". Other kinds become float16; those whose
numbers stand in books of vectors are decoded by the package gguf, which has the books.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from smelt.ir.errors import MissingPackageError

#: Of blocks that are decoded at a time: temporary memory is bounded.
_CHUNK = 1 << 14


class Packed(NamedTuple):
    """A matrix as `smelt.quantize` has it."""

    words: np.ndarray
    scales: np.ndarray
    biases: np.ndarray | None


# Kinds that stay packed


def _interleaved(octets: np.ndarray) -> np.ndarray:
    """n bytes, whose lower halves are numbers 0 to n - 1 and whose upper ones those from n on: numbers in order."""
    halves = np.concatenate([octets & 15, octets >> 4], axis=-1)
    return halves[..., 0::2] | (halves[..., 1::2] << 4)


def _split(octets: np.ndarray) -> np.ndarray:
    """The reverse of `_interleaved`."""
    half = octets.shape[-1]
    numbers = np.stack([octets & 15, octets >> 4], axis=-1).reshape(*octets.shape[:-1], 2 * half)
    return numbers[..., :half] | (numbers[..., half:] << 4)


def _halves(blocks: np.ndarray, at: int) -> np.ndarray:
    """The float16 that stands at byte `at` of each block."""
    return np.ascontiguousarray(blocks[..., at : at + 2]).view("<f2")[..., 0].astype(np.float16)


def _words(octets: np.ndarray) -> np.ndarray:
    """Bytes [..., blocks, bytes] as words [..., all]."""
    found = np.ascontiguousarray(octets).view("<u4").astype(np.uint32, copy=False)
    return found.reshape(*octets.shape[:-2], -1)


def _q4_0(blocks: np.ndarray) -> Packed:
    scales = _halves(blocks, 0)
    return Packed(_words(_interleaved(blocks[..., 2:])), scales, scales * np.float16(-8))


def _q4_1(blocks: np.ndarray) -> Packed:
    return Packed(_words(_interleaved(blocks[..., 4:])), _halves(blocks, 0), _halves(blocks, 2))


def _q8_0(blocks: np.ndarray) -> Packed:
    scales = _halves(blocks, 0)
    return Packed(_words(blocks[..., 2:] ^ 0x80), scales, scales * np.float16(-128))


def _mxfp4(blocks: np.ndarray) -> Packed:
    return Packed(_words(_interleaved(blocks[..., 1:])), np.ascontiguousarray(blocks[..., 0]), None)


def _nvfp4(blocks: np.ndarray) -> Packed:
    """Four groups of 16 a block. Their scales have no sign, and what would be NaN is 0."""
    *lead, count, _ = blocks.shape
    scales = blocks[..., :4] & 0x7F
    scales = np.where(scales == 0x7F, np.uint8(0), scales).reshape(*lead, 4 * count)
    groups = np.ascontiguousarray(blocks[..., 4:]).reshape(*lead, 4 * count, 8)
    return Packed(_words(_interleaved(groups)), scales, None)


PACKED: dict[str, Callable[[np.ndarray], Packed]] = {
    "Q4_0": _q4_0, "Q4_1": _q4_1, "Q8_0": _q8_0, "MXFP4": _mxfp4, "NVFP4": _nvfp4,
}  # fmt: skip

#: Bits of a number in the kinds that stay packed, numbers that share a scale, and scales of a block.
BITS = {"Q4_0": 4, "Q4_1": 4, "Q8_0": 8, "MXFP4": 4, "NVFP4": 4}
GROUPS, EACH = {**dict.fromkeys(BITS, 32), "NVFP4": 16}, {**dict.fromkeys(BITS, 1), "NVFP4": 4}
#: Kinds whose scales are bytes, and which have no biases.
OF_BYTES = ("MXFP4", "NVFP4")


def blocks_of(kind: str, found: Packed) -> np.ndarray | None:
    """The reverse of `PACKED`: bytes [..., blocks, bytes], or None where scales or biases are not those of the kind."""
    octets = found.words.astype("<u4", copy=False).view(np.uint8)
    octets = octets.reshape(*found.scales.shape, BITS[kind] * GROUPS[kind] // 8)
    if kind == "NVFP4":
        if found.scales.size and found.scales.max() >= 0x7F:
            return None
        *lead, count = found.scales.shape
        parts = found.scales.reshape(*lead, count // 4, 4), _split(octets).reshape(*lead, count // 4, 32)
        return np.concatenate(parts, axis=-1)
    if kind == "MXFP4":
        return np.concatenate([found.scales[..., None], _split(octets)], axis=-1)
    if found.biases is None:
        return None
    scales = found.scales.astype("<f2")[..., None].view(np.uint8)
    if kind == "Q4_1":
        return np.concatenate([scales, found.biases.astype("<f2")[..., None].view(np.uint8), _split(octets)], axis=-1)
    with np.errstate(over="ignore"):
        zero = found.scales * np.float16(-8 if kind == "Q4_0" else -128)
    if not np.array_equal(zero, found.biases):
        return None
    return np.concatenate([scales, _split(octets) if kind == "Q4_0" else octets ^ 0x80], axis=-1)


# Kinds that are decoded: each of bytes [blocks, bytes] makes float32 [blocks, numbers]


def _scale(blocks: np.ndarray, at: int) -> np.ndarray:
    return _halves(blocks, at).astype(np.float32)[:, None]


def _nibbles(octets: np.ndarray) -> np.ndarray:
    """Lower halves of the bytes, then upper ones."""
    return np.concatenate([octets & 15, octets >> 4], axis=-1)


def _shifted(octets: np.ndarray, run: int, shifts: tuple[int, ...], mask: int) -> np.ndarray:
    """Parts of bytes: of each `run` bytes first those at the first shift, then those at the next."""
    runs = octets.reshape(len(octets), -1, 1, run)
    return ((runs >> np.array(shifts, np.uint8)[:, None]) & mask).reshape(len(octets), -1)


def _fifth_bits(blocks: np.ndarray, at: int) -> np.ndarray:
    return np.unpackbits(np.ascontiguousarray(blocks[:, at : at + 4]), axis=-1, bitorder="little")


def _q5_0(b: np.ndarray) -> np.ndarray:
    return _scale(b, 0) * ((_nibbles(b[:, 6:]) | (_fifth_bits(b, 2) << 4)).astype(np.float32) - 16)


def _q5_1(b: np.ndarray) -> np.ndarray:
    return _scale(b, 0) * (_nibbles(b[:, 8:]) | (_fifth_bits(b, 4) << 4)).astype(np.float32) + _scale(b, 2)


def _q8_1(b: np.ndarray) -> np.ndarray:
    return _scale(b, 0) * np.ascontiguousarray(b[:, 4:]).view(np.int8).astype(np.float32)


def _each(scales: np.ndarray, count: int) -> np.ndarray:
    return np.repeat(scales.astype(np.float32), count, axis=-1)


def _q2_k(b: np.ndarray) -> np.ndarray:
    q = _shifted(b[:, 16:80], 32, (0, 2, 4, 6), 3)
    return _scale(b, 80) * _each(b[:, :16] & 15, 16) * q - _scale(b, 82) * _each(b[:, :16] >> 4, 16)


def _q3_k(b: np.ndarray) -> np.ndarray:
    q = _shifted(b[:, 32:96], 32, (0, 2, 4, 6), 3) | _shifted(b[:, :32], 32, tuple(range(8)), 1) << 2
    low = _shifted(b[:, 96:104], 8, (0, 4), 15)
    scales = (low | (_shifted(b[:, 104:108], 4, (0, 2, 4, 6), 3) << 4)).astype(np.int8) - 32
    return _scale(b, 108) * _each(scales, 16) * (q.astype(np.float32) - 4)


def _six_bits(s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eight scales and eight minima in twelve bytes."""
    scales = np.concatenate([s[:, :4] & 63, (s[:, 8:] & 15) | (s[:, :4] >> 6 << 4)], axis=-1)
    minima = np.concatenate([s[:, 4:8] & 63, (s[:, 8:] >> 4) | (s[:, 4:8] >> 6 << 4)], axis=-1)
    return scales, minima


def _q4_k(b: np.ndarray) -> np.ndarray:
    scales, minima = _six_bits(b[:, 4:16])
    q = _shifted(b[:, 16:], 32, (0, 4), 15)
    return _scale(b, 0) * _each(scales, 32) * q - _scale(b, 2) * _each(minima, 32)


def _q5_k(b: np.ndarray) -> np.ndarray:
    scales, minima = _six_bits(b[:, 4:16])
    q = _shifted(b[:, 48:], 32, (0, 4), 15) | (_shifted(b[:, 16:48], 32, tuple(range(8)), 1) << 4)
    return _scale(b, 0) * _each(scales, 32) * q - _scale(b, 2) * _each(minima, 32)


def _q6_k(b: np.ndarray) -> np.ndarray:
    q = _shifted(b[:, :128], 64, (0, 4), 15) | (_shifted(b[:, 128:192], 32, (0, 2, 4, 6), 3) << 4)
    scales = np.ascontiguousarray(b[:, 192:208]).view(np.int8)
    return _scale(b, 208) * _each(scales, 16) * (q.astype(np.float32) - 32)


def _q8_k(b: np.ndarray) -> np.ndarray:
    scale = np.ascontiguousarray(b[:, :4]).view("<f4").astype(np.float32)
    return scale * np.ascontiguousarray(b[:, 4:260]).view(np.int8).astype(np.float32)


_NONLINEAR = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float32)


def _iq4_nl(b: np.ndarray) -> np.ndarray:
    return _scale(b, 0) * _NONLINEAR[_nibbles(b[:, 2:])]


def _iq4_xs(b: np.ndarray) -> np.ndarray:
    high = np.ascontiguousarray(b[:, 2:4]).view("<u2") >> np.arange(0, 16, 2, dtype=np.uint16) & 3
    low = _shifted(b[:, 4:8], 1, (0, 4), 15)
    scales = (low | (high << 4).astype(np.uint8)).astype(np.int8) - 32
    return _scale(b, 0) * _each(scales, 32) * _NONLINEAR[_shifted(b[:, 8:], 16, (0, 4), 15)]


def _tq1_0(b: np.ndarray) -> np.ndarray:
    parts = []
    for start, stop, digits in ((0, 32, 5), (32, 48, 5), (48, 52, 4)):  # numbers in base three, the first the highest
        powers = 3 ** np.arange(digits, dtype=np.uint8)
        shifted = b[:, None, start:stop] * powers[:, None]  # modulo 256
        parts.append((shifted.astype(np.uint16) * 3 >> 8).reshape(len(b), -1))
    return _scale(b, 52) * (np.concatenate(parts, axis=-1).astype(np.float32) - 1)


def _tq2_0(b: np.ndarray) -> np.ndarray:
    return _scale(b, 64) * (_shifted(b[:, :64], 32, (0, 2, 4, 6), 3).astype(np.float32) - 1)


DECODED: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "Q5_0": _q5_0, "Q5_1": _q5_1, "Q8_1": _q8_1, "Q2_K": _q2_k, "Q3_K": _q3_k, "Q4_K": _q4_k, "Q5_K": _q5_k,
    "Q6_K": _q6_k, "Q8_K": _q8_k, "IQ4_NL": _iq4_nl, "IQ4_XS": _iq4_xs, "TQ1_0": _tq1_0, "TQ2_0": _tq2_0,
}  # fmt: skip


def _by_package(kind: str) -> Callable[[np.ndarray], np.ndarray]:
    """What decodes a kind by books of vectors: ggml's own package, which has them."""
    try:
        from gguf.constants import GGMLQuantizationType  # type: ignore[import-not-found,unused-ignore]
        from gguf.quants import dequantize  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        message = f"the kind {kind} is by books of vectors, which the package gguf has: pip install smelt-mlir[gguf]"
        raise MissingPackageError(message) from None
    return lambda blocks: dequantize(blocks.reshape(-1), GGMLQuantizationType[kind]).reshape(len(blocks), -1)


def decoded(kind: str, blocks: np.ndarray, each: int) -> np.ndarray:
    """float16 [..., blocks · each] of bytes [..., blocks, bytes]."""
    flat = blocks.reshape(-1, blocks.shape[-1])
    found = np.empty((len(flat), each), np.float16)
    decode = DECODED.get(kind) or _by_package(kind)
    with np.errstate(all="ignore"):  # scales may be anything
        for start in range(0, len(flat), _CHUNK):
            found[start : start + _CHUNK] = decode(flat[start : start + _CHUNK])
    return found.reshape(*blocks.shape[:-2], -1)
