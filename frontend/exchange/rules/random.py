"""Random bits by the generators that XLA has, Threefry and Philox, and numbers of no stated generator.

Both generators are of J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011). Each number is a function
of a key and of its place, so they are made all at once.
"""

from __future__ import annotations

import math

from smelt.ir import dtypes, mlir
from smelt.ir.dtypes import DType
from smelt.ir.op import registry as ops

from ...functions.joining import concatenate
from ...lazy.arrays import array, convert, emit
from ...random import normal, randint, uniform
from ..reading import Call, rule
from ..translating import Refused
from .elementwise import apply, bits_of, full_like, unsigned
from .shapes import reshaped

_U32, _U64 = dtypes.uint32, dtypes.uint64
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def _word(x: array, i: int) -> array:
    """One element of a vector."""
    attrs = {"start": (i,), "stop": (i + 1,), "stride": (1,)}
    return reshaped(emit(ops["slice"], (x,), attrs), ())


def _plus(x: array, n: int) -> array:
    return apply("add", x, full_like(x, n))


def _low(x: array) -> array:
    return convert(apply("bitwise_and", x, full_like(x, 0xFFFFFFFF)), _U32)


def _high(x: array) -> array:
    return convert(apply("right_shift", x, full_like(x, 32)), _U32)


def _counters(start: array, shape: tuple[int, ...]) -> array:
    """`start` and what follows, one a place."""
    places = emit(ops["iota"], (), {"shape": (math.prod(shape),), "axis": 0, "dtype": _U64})
    return reshaped(apply("add", places, start), shape)


def _threefry(key: array, counters: array) -> tuple[array, array]:
    """Two words a counter, by 20 rounds."""
    low, high = _low(key), _high(key)
    mixed = apply("bitwise_xor", apply("bitwise_xor", low, high), full_like(low, 0x1BD11BDA))
    keys = (low, high, mixed)
    x, y = apply("add", _low(counters), keys[0]), apply("add", _high(counters), keys[1])
    for i in range(5):
        for r in _ROTATIONS[i % 2]:
            x = apply("add", x, y)
            left, right = apply("left_shift", y, full_like(y, r)), apply("right_shift", y, full_like(y, 32 - r))
            y = apply("bitwise_xor", apply("bitwise_or", left, right), x)
        x = apply("add", x, keys[(i + 1) % 3])
        y = _plus(apply("add", y, keys[(i + 2) % 3]), i + 1)
    return x, y


def _joined(low: array, high: array) -> array:
    shifted = apply("left_shift", convert(high, _U64), full_like(convert(high, _U64), 32))
    return apply("bitwise_or", convert(low, _U64), shifted)


def _threefry_bits(state: array, shape: tuple[int, ...], wide: bool) -> tuple[array, array]:
    """New state, and 32 or 64 bits a place. 32 bits: both words of a counter are neighbours along the first axis of
    even size, or, where there is none, along the longest."""
    key, start = _word(state, 0), _word(state, 1)
    if wide or not shape:
        x, y = _threefry(key, _counters(start, shape))
        return _state(state, 1, _plus(start, math.prod(shape))), _joined(x, y) if wide else x
    even = [a for a, d in enumerate(shape) if d % 2 == 0]
    axis = even[0] if even else max(range(len(shape)), key=lambda a: (shape[a], -a))
    half = (*shape[:axis], -(-shape[axis] // 2), *shape[axis + 1 :])
    x, y = _threefry(key, _counters(start, half))
    pair = (*half[: axis + 1], 1, *half[axis + 1 :])
    found = concatenate([reshaped(x, pair), reshaped(y, pair)], axis + 1)
    found = reshaped(found, (*shape[:axis], 2 * half[axis], *shape[axis + 1 :]))
    attrs = {"start": (0,) * len(shape), "stop": shape, "stride": (1,) * len(shape)}
    found = found if found.shape == shape else emit(ops["slice"], (found,), attrs)
    return _state(state, 1, _plus(start, math.prod(half))), found


def _state(state: array, i: int, word: array) -> array:
    """The state with another word."""
    words = [_word(state, k) if k != i else word for k in range(state.shape[0])]
    return concatenate([reshaped(w, (1,)) for w in words], 0)


def _philox(key: array, low: array, high: array) -> list[array]:
    """Four words a counter of 128 bits, by 10 rounds."""
    a, b, c, d = _low(low), _high(low), _low(high), _high(high)
    k0, k1 = _low(key), _high(key)
    for _ in range(10):
        first = apply("mul", convert(a, _U64), full_like(convert(a, _U64), 0xD2511F53))
        second = apply("mul", convert(c, _U64), full_like(convert(c, _U64), 0xCD9E8D57))
        a, b, c, d = (
            apply("bitwise_xor", apply("bitwise_xor", _high(second), b), k0), _low(second),
            apply("bitwise_xor", apply("bitwise_xor", _high(first), d), k1), _low(first),
        )  # fmt: skip
        k0, k1 = _plus(k0, 0x9E3779B9), _plus(k1, 0xBB67AE85)
    return [a, b, c, d]


def _philox_bits(state: array, shape: tuple[int, ...], wide: bool) -> tuple[array, array]:
    """New state, and the words in order. The upper half of the counter is the third word of the state, or the key."""
    key, start = _word(state, 0), _word(state, 1)
    upper = _word(state, 2) if state.shape[0] == 3 else key
    size = math.prod(shape)
    blocks = -(-size * (2 if wide else 1) // 4)
    low = _counters(start, (blocks,))
    high = apply("add", convert(apply("less", low, start), _U64), upper)
    words = concatenate([reshaped(w, (blocks, 1)) for w in _philox(key, low, high)], 1)
    if wide:
        pairs = reshaped(words, (2 * blocks, 2))
        parts = [emit(ops["slice"], (pairs,), {"start": (0, i), "stop": (2 * blocks, i + 1), "stride": (1, 1)})
                 for i in range(2)]  # fmt: skip
        words = _joined(*parts)
    flat = reshaped(words, (words.size,))
    kept = emit(ops["slice"], (flat,), {"start": (0,), "stop": (size,), "stride": (1,)})
    after = _plus(start, blocks)
    new = _state(state, 1, after)
    if state.shape[0] == 3:
        new = _state(new, 2, apply("add", upper, convert(apply("less", after, start), _U64)))
    return new, reshaped(kept, shape)


@rule("stablehlo.rng_bit_generator")
def _rng_bit_generator(call: Call) -> list[array]:
    """DEFAULT is Philox, as XLA has it on CPUs and GPUs."""
    algorithm, aval = call.word("rng_algorithm"), call.avals[1]
    state = call.x
    if state.dtype is not _U64 or state.shape not in ((2,), (3,)):
        raise Refused(f"starts from {state.aval}; from ui64[2] it is translated, and from ui64[3] for Philox")
    dtype: DType = aval.dtype
    if dtype.kind not in "iu":
        raise Refused(f"makes {aval}; integers are translated")
    wide = dtype.size == 8
    three = algorithm == "THREE_FRY"
    new, found = (_threefry_bits if three else _philox_bits)(state, aval.shape, wide)
    kind = unsigned(dtype)
    return [new, bits_of(found if found.dtype is kind else convert(found, kind), dtype)]


@rule("stablehlo.rng")
def _rng(call: Call) -> array:
    """Numbers of the state that a program does not name: that of `smelt.random`, which `smelt.random.seed` sets."""
    within = call.operation.parent
    if within.name != "func.func" or call.reader.entry() != mlir.ir.StringAttr(within.attributes["sym_name"]).value:
        raise Refused("draws within a loop, a branch or another function; in the program's own body it is translated")
    low, high, aval = call.operands[0], call.operands[1], call.aval
    dtype: DType = aval.dtype
    if call.word("rng_distribution") == "NORMAL":
        if dtype.kind == "f":
            return normal(aval.shape, dtype, low, high)
    elif dtype.kind == "f":
        return uniform(low, high, aval.shape, dtype)
    elif dtype.kind in "iu":
        return randint(low, high, aval.shape, dtype)
    raise Refused(f"makes {aval}; floating-point numbers are translated, and integers of UNIFORM")
