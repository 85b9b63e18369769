"""Random bits as a function of a key: no state, and any element can be computed alone.

The generator is Threefry-2x32 with 20 rounds (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as
easy as 1, 2, 3", SC 2011): a keyed bijection of 64-bit counters. Both words of a block are used, as in MLX, whose
numbers these are: of n words, the blocks of the counters (i, i + ⌈n/2⌉) give the first half by their first words and
the second half by their second ones; of an odd n, the word in the middle is the first one of the block (⌊n/2⌋, 0).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .. import dtypes
from ..aval import Aval
from ..errors import AttributeValueError
from ..host_loops import loops
from ..index import Coordinates, Index, linearize
from ..kinds import Fetch, Fusible, silent
from ..op import Avals, Batched, Dims, Int, Ints, NotDifferentiable, Operand, Values, only, require, require_dtype
from ..scalar import Scalar, ScalarBuilder

if TYPE_CHECKING:
    from ..builder import Builder

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
#: So many words come from blocks that differ.
MOST_WORDS = 2**33


#: What adds, shifts and xors like uint32: NumPy arrays, or the scalars of a kernel.
Words = TypeVar("Words", np.ndarray, Scalar)


def threefry2x32(k0: Words, k1: Words, x0: Words, x1: Words) -> tuple[Words, Words]:
    """The block of counter (x0, x1) under key (k0, k1)."""
    keys = (k0, k1, k0 ^ k1 ^ _PARITY)
    x0, x1 = x0 + k0, x1 + k1
    for group in range(5):
        for r in _ROTATIONS[group % 2]:
            x0 = x0 + x1
            x1 = ((x1 << r) | (x1 >> (32 - r))) ^ x0
        x0 = x0 + keys[(group + 1) % 3]
        x1 = x1 + (keys[(group + 2) % 3] + (group + 1))
    return x0, x1


def words_of(size: int, width: int) -> int:
    """How many words `size` numbers of `width` bits are made of."""
    return -(-size * width // 32)


def _check_key(key: Aval) -> tuple[int, ...]:
    """The batch axes of a key."""
    require_dtype(key, (dtypes.uint32,), "key")
    require(key.ndim > 0 and key.shape[-1] == 2, "a key is 2 words: its last axis must have 2 elements")
    return key.shape[:-1]


class RandomBits(Fusible, name="random_bits"):
    """Uniformly random unsigned integers of `width` bits: the words of a key, in order.

    Narrow elements are pieces of the words, the lowest bits first. Of 64 bits each, word j stands below word j + n of the
    2n words of n elements: one block. A key of shape [b…, 2] is a batch of keys and gives a result of shape [b…, shape…].

    ``%0 = "smelt.random_bits"(%key) {shape = array<i64: 4>, width = 32 : i64} : (tensor<2xui32>) -> tensor<4xui32>``
    """

    kind = "random"
    key: Operand
    shape: Ints
    width: Int
    sizes = ("shape",)
    not_differentiable = NotDifferentiable("random bits are integers")
    flops = 110.0
    parts_share = True

    def infer(self, key: Aval, *, shape: Ints, width: Int) -> Aval:
        batch = _check_key(key)
        require(all(d >= 0 for d in shape), f"shape {shape} has a negative extent", AttributeValueError)
        require(width in _WIDTHS, f"width {width} must be 8, 16, 32 or 64", AttributeValueError)
        require(
            words_of(math.prod(shape), width) <= MOST_WORDS,
            f"shape {shape} of {width} bits is more than the 2**33 words of a key; split it",
            AttributeValueError,
        )
        return Aval((*batch, *shape), _WIDTHS[width])

    @silent
    def reference(self, key: np.ndarray, *, shape: Ints, width: Int) -> np.ndarray:
        batch, size = key.shape[:-1], math.prod(shape)
        found = np.empty((*batch, size if width == 64 else words_of(size, width)), _WIDTHS[max(width, 32)].numpy)
        if loops.random_words is not None:
            loops.random_words(np.ascontiguousarray(key), width == 64, found)
        else:
            _fill(key, found)
        if width < 32:
            found = found.astype("<u4", copy=False).view(_WIDTHS[width].numpy)[..., :size]
        return np.ascontiguousarray(found).reshape((*batch, *shape))

    def batch(self, b: Builder, operands: Values, dims: Dims, **attrs: Any) -> Batched:
        return b.emit(self, [b.move_axis(operands[0], only(dims), 0)], attrs), [0]

    def element(
        self, k: ScalarBuilder, index: Coordinates, fetch: Fetch, operands: Avals, result: Aval,
        *, shape: Ints, width: Int,
    ) -> Scalar:  # fmt: skip
        lead, size = len(index) - len(shape), math.prod(shape)
        key = fetch(0, (*index[:lead], Index(0))), fetch(0, (*index[:lead], Index(1)))
        at = linearize(index[lead:], shape)
        if width == 64:
            low, high = threefry2x32(*key, _counter(k, at), _counter(k, at + size))
            return (k.convert(high, dtypes.uint64) << 32) | k.convert(low, dtypes.uint64)
        each = 32 // width
        word = _word(k, key, at // each, words_of(size, width))
        if each > 1:
            word = word >> (k.index(at % each, dtypes.uint32) * width)
        return k.convert(word, result.dtype)

    def borders(self, index: Coordinates, operands: Avals, *, shape: Ints, width: Int) -> Sequence[tuple[Index, int]]:
        """Where the second words of the blocks begin, if that is in between two parts along the first axis."""
        lead, size = len(index) - len(shape), math.prod(shape)
        axis = next((a for a, d in enumerate(shape) if d > 1), None)
        if width != 32 or axis is None or not size or shape[axis] % 2:
            return []
        return [(index[lead + axis], shape[axis] // 2)]


_WIDTHS = {8: dtypes.uint8, 16: dtypes.uint16, 32: dtypes.uint32, 64: dtypes.uint64}


def _fill(key: np.ndarray, found: np.ndarray) -> None:
    """The words of each key, along the last axis; or numbers of 64 bits."""
    k0, k1, n = key[..., :1], key[..., 1:], found.shape[-1]
    half = n if found.dtype.itemsize == 8 else n // 2
    first = np.arange(half, dtype=np.uint64)
    x0, x1 = threefry2x32(k0, k1, *(c.astype(np.uint32) for c in (first, first + np.uint64(n - half or n))))
    if found.dtype.itemsize == 8:
        found[...] = (x1.astype(np.uint64) << np.uint64(32)) | x0
        return
    found[..., :half], found[..., n - half :] = x0, x1
    if n % 2:
        middle = np.array([half], np.uint32)
        found[..., half : half + 1] = threefry2x32(k0, k1, middle, np.zeros_like(middle))[0]


def _counter(k: ScalarBuilder, at: Index) -> Scalar:
    return k.index(at, dtypes.uint32) if at.hi < 2**32 else k.convert(k.index(at, dtypes.uint64), dtypes.uint32)


def _word(k: ScalarBuilder, key: tuple[Scalar, Scalar], at: Index, n: int) -> Scalar:
    """Word number `at` of n."""
    half = n // 2
    middle = n - half  # where the second words begin
    if at.lo >= middle:
        return threefry2x32(*key, _counter(k, at - middle), _counter(k, at))[1]
    if n % 2 and at == half:
        return threefry2x32(*key, _counter(k, at), k.const(0, dtypes.uint32))[0]
    if at.hi < half:
        return threefry2x32(*key, _counter(k, at), _counter(k, at + middle))[0]
    place = k.index(at, dtypes.uint64 if n > 2**32 else dtypes.uint32)
    later = place >= middle
    first = place - k.select(later, k.const(middle, place.dtype), k.const(0, place.dtype))
    second = first + middle
    if n % 2:
        second = k.select(first.eq(half), k.const(0, place.dtype), second)
    x0, x1 = threefry2x32(*key, k.convert(first, dtypes.uint32), k.convert(second, dtypes.uint32))
    return k.select(later, x1, x0)
