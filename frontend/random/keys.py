"""Keys, and the global state that they are drawn from."""

from __future__ import annotations

from typing import Any

import numpy as np

from smelt.ir import dtypes, locks
from smelt.ir.aval import Aval
from smelt.ir.errors import AttributeValueError, DTypeError, at_user_line
from smelt.ir.host_loops import loops
from smelt.ir.keywords import explain_keywords
from smelt.ir.op import registry as ops
from smelt.runtime import Buffer

from ..functions.reductions import reshape_to
from ..lazy.arguments import integer
from ..lazy.arrays import StreamOrDevice, array, emit, wrap
from ..lazy.graph import PARAMETER, leaf
from ..lazy.streams import check_stream

_KEY = Aval((2,), dtypes.uint32)
WORD = 0xFFFFFFFF


def key(seed: int) -> array:
    """The key of a seed: its upper and lower 32 bits.

    Raises:
        AttributeValueError: the seed is not within 0 and 2**64.

    >>> import smelt
    >>> smelt.random.key(7)
    array([0, 7], dtype=uint32)
    """
    value = seed if type(seed) is int else integer("random.key", "the seed", seed)
    if not 0 <= value < 2**64:
        raise AttributeValueError(at_user_line(f"smelt.random.key: the seed {value} must lie within 0 and 2**64"))
    return _key_array(value >> 32, value & WORD)


def _key_array(high: int, low: int) -> array:
    return wrap((leaf(Buffer(_KEY, np.array((high, low), np.uint32))), 0))


def seed(seed: int) -> None:
    """Set the global state: draws without a key repeat from here.

    >>> import smelt
    >>> smelt.random.seed(3)
    >>> a = smelt.random.uniform()
    >>> smelt.random.seed(3)
    >>> smelt.array_equal(a, smelt.random.uniform())
    array(True, dtype=bool)
    """
    fresh = key(seed)
    with _lock:
        state[0]._ref = fresh._ref


def split(key: array, num: int = 2, stream: StreamOrDevice = None) -> array:
    """`num` new keys from one, as uint32 of shape [num, 2]; do not use the old one again.

    >>> import smelt
    >>> a, b = smelt.random.split(smelt.random.key(0))
    >>> a.shape
    (2,)
    """
    check_stream(stream)
    found = checked_key("split", key)
    return emit(ops["random_bits"], (found,), {"shape": (integer("random.split", "num", num, 0), 2), "width": 32})


_lock = locks.lock()

#: The global state: a list that holds its key, for ``smelt.compile(inputs=…, outputs=…)``. The array in
#: it is updated in place.
state: list[array] = [_key_array(0, 0)]


def checked_key(name: str, key: Any) -> array:
    """`key`, or one drawn from the global state in place of None."""
    if key is None:
        return _next_key()
    if not isinstance(key, array) or key.aval != _KEY:
        given = key.aval if isinstance(key, array) else type(key).__name__
        raise DTypeError(
            at_user_line(f"smelt.random.{name}: a key is {_KEY} (see smelt.random.key), this is {given}")
        )
    return key


def _next_key() -> array:
    """A fresh key; the global state advances."""
    with _lock:
        current = state[0]
        node, i = current._ref
        if node.values is None and not node.traced and node.op is not PARAMETER:
            current._buffer  # noqa: B018  (a key that was put into the state lazily: evaluates it)
            node, i = current._ref
        if node.values is not None:  # on the host: cheaper than an evaluation, and the same numbers
            first, second = _split_on_host(node.values[i].array)
            current._ref = _key_array(*first)._ref
            return _key_array(*second)
        pair = emit(ops["random_bits"], (current,), {"shape": (2, 2), "width": 32})
        current._ref = _row(pair, 0)._ref
        return _row(pair, 1)


def _row(keys: array, i: int) -> array:
    row = emit(ops["slice"], (keys,), {"start": (i, 0), "stop": (i + 1, 2), "stride": (1, 1)})
    return reshape_to(row, (2,))


def _split_on_host(key: np.ndarray) -> list[list[int]]:
    """`split` in two of a key that has its value."""
    if loops.random_words is None:
        return _split_words(*key.tolist())
    words = np.empty((2, 2), np.uint32)
    loops.random_words(np.ascontiguousarray(key), False, words)
    return words.tolist()


def _split_words(k0: int, k1: int) -> list[list[int]]:
    """The same on Python ints: four words of two blocks."""
    keys = (k0, k1, k0 ^ k1 ^ 0x1BD11BDA)
    first, second = [], []
    for counter in (0, 1):
        x0, x1 = (counter + k0) & WORD, (counter + 2 + k1) & WORD
        for group in range(5):
            for r in ((13, 15, 26, 6), (17, 29, 16, 24))[group % 2]:
                x0 = (x0 + x1) & WORD
                x1 = ((x1 << r | x1 >> (32 - r)) & WORD) ^ x0
            x0 = (x0 + keys[(group + 1) % 3]) & WORD
            x1 = (x1 + keys[(group + 2) % 3] + group + 1) & WORD
        first.append(x0)
        second.append(x1)
    return [first, second]


explain_keywords(globals(), "key seed split")
