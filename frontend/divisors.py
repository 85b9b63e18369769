"""Common divisors and multiples of integers, by Euclid's loop."""

from __future__ import annotations

from smelt.ir import dtypes
from smelt.ir.dtypes import DType
from smelt.ir.errors import DTypeError, at_user_line
from smelt.ir.keywords import explain_keywords

from .functions.arithmetic import abs as absolute
from .functions.arithmetic import floor_divide, multiply, remainder
from .functions.logic import where
from .functions.reductions import any as any_of
from .lazy.arrays import ArrayLike, StreamOrDevice, array, convert, promote_operands
from .lazy.core import remembered
from .lazy.streams import check_stream
from .transforms.control import while_loop

__all__ = ["gcd", "lcm"]


def _sizes(name: str, x1: ArrayLike, x2: ArrayLike) -> tuple[array, array, DType]:
    """|x1| and |x2| without a sign, which the least integer's has no room for otherwise, and their common dtype."""
    x, y = promote_operands(name, x1, x2)
    if not x.dtype.is_integer:
        raise DTypeError(at_user_line(f"smelt.{name}: takes integers; x1 and x2 are of {x.dtype}"))
    unsigned = dtypes.by_name("u" + x.dtype.name.removeprefix("u"))
    return convert(absolute(x), unsigned), convert(absolute(y), unsigned), x.dtype


def _gcd(x: array, y: array) -> array:
    def step(pair: tuple[array, array]) -> tuple[array, array]:
        a, b = pair
        done = b == 0
        return where(done, a, b), where(done, 0, remainder(a, where(done, 1, b)))

    found: array = while_loop(lambda pair: any_of(pair[1] != 0), step, (x, y))[0]
    return found


@remembered
def gcd(x1: ArrayLike, x2: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """The greatest common divisor of |x1| and |x2|, in their common dtype; of two zeros 0.

    Raises:
        DTypeError: no integers.

    >>> import smelt
    >>> smelt.gcd(smelt.array([12, -9, 0]), smelt.array([18, 6, 5]))
    array([6, 3, 5], dtype=int32)
    """
    check_stream(stream)
    x, y, dtype = _sizes("gcd", x1, x2)
    return convert(_gcd(x, y), dtype)


@remembered
def lcm(x1: ArrayLike, x2: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """The least common multiple of |x1| and |x2|, in their common dtype, where it wraps; 0 where one is 0.

    Raises:
        DTypeError: no integers.

    >>> import smelt
    >>> smelt.lcm(smelt.array([12, -9, 0]), smelt.array([18, 6, 5]))
    array([36, 18,  0], dtype=int32)
    """
    check_stream(stream)
    x, y, dtype = _sizes("lcm", x1, x2)
    common = _gcd(x, y)
    return convert(multiply(floor_divide(x, where(common == 0, 1, common)), y), dtype)


explain_keywords(globals())
