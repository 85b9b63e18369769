"""Random bits as a function of a key: no state, and any element can be computed alone.

The generator is Threefry-2x32 with 20 rounds (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as
easy as 1, 2, 3", SC 2011): a keyed bijection of 64-bit counters. The element at row-major offset n
of `random_bits` comes from the block of counter (n >> 32, n & 0xffffffff), whatever is later done to
the array; `random_split` uses the counters (0xffffffff, i), which no array is long enough to reach.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .. import dtypes
from ..aval import Aval
from ..errors import AttributeValueError
from ..index import Coordinates, Index, linearize
from ..kinds import Fetch, Fusible, silent
from ..op import Avals, Batched, Dims, Int, Ints, NotDifferentiable, Operand, Values, only, require, require_dtype
from ..scalar import Scalar, ScalarBuilder

if TYPE_CHECKING:
    from ..builder import Builder

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_SPLIT = 0xFFFFFFFF  #: the first word of the counters of `random_split`


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


_loops: list[Callable[[np.ndarray, int, int, np.ndarray], None]] = []


def use_loop(loop: Callable[[np.ndarray, int, int, np.ndarray], None]) -> None:
    """Compute words by a loop that gives the same bits.

    Args:
        loop: takes keys, the first counter, what becomes of the two words of a counter (0: the first one, 1: a number
            of 64 bits, 2: both), and the array that it fills.
    """
    _loops[:] = [loop]


def _check_key(key: Aval) -> tuple[int, ...]:
    """The batch axes of a key."""
    require_dtype(key, (dtypes.uint32,), "key")
    require(key.ndim > 0 and key.shape[-1] == 2, "a key is 2 words: its last axis must have 2 elements")
    return key.shape[:-1]


class RandomBits(Fusible, name="random_bits"):
    """Uniformly random unsigned integers of `width` bits: the first word of each element's block.

    Narrow elements are its low bits; 64 bits are the first word above the second. A key of shape
    [b…, 2] is a batch of keys and gives a result of shape [b…, shape…].

    ``%0 = "smelt.random_bits"(%key) {shape = array<i64: 4>, width = 32 : i64} : (tensor<2xui32>) -> tensor<4xui32>``
    """

    kind = "random"
    key: Operand
    shape: Ints
    width: Int
    sizes = ("shape",)
    not_differentiable = NotDifferentiable("random bits are integers")
    flops = 110.0

    def infer(self, key: Aval, *, shape: Ints, width: Int) -> Aval:
        batch = _check_key(key)
        require(all(d >= 0 for d in shape), f"shape {shape} has a negative extent", AttributeValueError)
        require(width in _WIDTHS, f"width {width} must be 8, 16, 32 or 64", AttributeValueError)
        return Aval((*batch, *shape), _WIDTHS[width])

    @silent
    def reference(self, key: np.ndarray, *, shape: Ints, width: Int) -> np.ndarray:
        batch = key.shape[:-1]
        if _loops:
            found = np.empty((*batch, *shape), np.uint64 if width == 64 else np.uint32)
            _loops[0](np.ascontiguousarray(key), 0, width // 64, found)
            return found.astype(_WIDTHS[width].numpy, copy=False)
        n = np.arange(math.prod(shape), dtype=np.uint64)
        counter = (n >> np.uint64(32)).astype(np.uint32), n.astype(np.uint32)
        x0, x1 = threefry2x32(key[..., :1], key[..., 1:], *counter)
        if width == 64:
            x0 = (x0.astype(np.uint64) << np.uint64(32)) | x1
        return x0.astype(_WIDTHS[width].numpy, copy=False).reshape((*batch, *shape))

    def batch(self, b: Builder, operands: Values, dims: Dims, **attrs: Any) -> Batched:
        return b.emit(self, [b.move_axis(operands[0], only(dims), 0)], attrs), [0]

    def element(
        self, k: ScalarBuilder, index: Coordinates, fetch: Fetch, operands: Avals, result: Aval,
        *, shape: Ints, width: Int,
    ) -> Scalar:  # fmt: skip
        lead = len(index) - len(shape)
        n = linearize(index[lead:], shape)
        if math.prod(shape) <= 2**32:
            high, low = k.const(0, dtypes.uint32), k.index(n, dtypes.uint32)
        else:
            wide = k.index(n, dtypes.uint64)
            high, low = k.convert(wide >> 32, dtypes.uint32), k.convert(wide, dtypes.uint32)
        x0, x1 = threefry2x32(*_key_words(index[:lead], fetch), high, low)
        if width == 64:
            return (k.convert(x0, dtypes.uint64) << 32) | k.convert(x1, dtypes.uint64)
        return k.convert(x0, result.dtype)


class RandomSplit(Fusible, name="random_split"):
    """`num` new keys made from one: independent of each other and of the key's random bits.

    A key of shape [b…, 2] is a batch of keys and gives a result of shape [b…, num, 2].

    ``%0 = "smelt.random_split"(%key) {num = 3 : i64} : (tensor<2xui32>) -> tensor<3x2xui32>``
    """

    kind = "random"
    key: Operand
    num: Int
    sizes = ("num",)
    not_differentiable = NotDifferentiable("random bits are integers")
    flops = 110.0

    def infer(self, key: Aval, *, num: Int) -> Aval:
        batch = _check_key(key)
        require(0 <= num <= 2**32, f"num {num} must lie within 0 and 2**32", AttributeValueError)
        return Aval((*batch, num, 2), dtypes.uint32)

    @silent
    def reference(self, key: np.ndarray, *, num: Int) -> np.ndarray:
        if _loops:
            found = np.empty((*key.shape[:-1], num, 2), np.uint32)
            _loops[0](np.ascontiguousarray(key), _SPLIT << 32, 2, found)
            return found
        counter = np.arange(num, dtype=np.uint32)
        return np.stack(threefry2x32(key[..., :1], key[..., 1:], np.full_like(counter, _SPLIT), counter), -1)

    def batch(self, b: Builder, operands: Values, dims: Dims, **attrs: Any) -> Batched:
        return b.emit(self, [b.move_axis(operands[0], only(dims), 0)], attrs), [0]

    def element(
        self, k: ScalarBuilder, index: Coordinates, fetch: Fetch, operands: Avals, result: Aval, *, num: Int
    ) -> Scalar:
        *lead, i, word = index
        counter = k.const(_SPLIT, dtypes.uint32), k.index(i, dtypes.uint32)
        x0, x1 = threefry2x32(*_key_words(tuple(lead), fetch), *counter)
        if word.is_constant:
            return x1 if word.const else x0
        return k.select(k.index(word, dtypes.uint32).eq(0), x0, x1)


_WIDTHS = {8: dtypes.uint8, 16: dtypes.uint16, 32: dtypes.uint32, 64: dtypes.uint64}


def _key_words(batch: Coordinates, fetch: Fetch) -> tuple[Scalar, Scalar]:
    """The two words of the key at an index of its batch axes."""
    return fetch(0, (*batch, Index(0))), fetch(0, (*batch, Index(1)))
