"""Hostile operands and indices: operators, reading, updates and `in` give a result or an error of smelt.

Python's own TypeError is what an operator without a meaning for its operand raises.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir.errors import SmeltError

from .test_hostile import HOSTILE, force

BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor", "lshift", "rshift",
          "lt", "ge", "eq", "ne", "iadd", "ipow", "imatmul", "iand")  # fmt: skip
ARRAYS: dict[str, Callable[[], smelt.array]] = {
    "matrix": lambda: smelt.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), "scalar": lambda: smelt.array(1.0),
    "nothing": lambda: smelt.zeros((0, 3)), "integers": lambda: smelt.array([1, 2, 3]),
}  # fmt: skip


def outcome(call: Callable[[], Any]) -> str:
    """What is wrong with the result of a call; empty if nothing is."""
    try:
        force(call())
    except SmeltError as error:
        return "" if __file__ in str(error) and len(str(error)) < 1500 else f"error {str(error)[:200]}"
    except TypeError as error:
        return "" if "unsupported operand" in str(error) or "not supported between" in str(error) else repr(error)
    except Exception as error:
        return repr(error)[:200]
    return ""


@pytest.mark.parametrize("what", HOSTILE)
def test_operands(what: str) -> None:
    wrong = {}
    for name in BINARY:
        f = getattr(operator, name)
        for kind in ("matrix", "integers"):
            found = outcome(lambda f=f, kind=kind: f(ARRAYS[kind](), HOSTILE[what]()))
            if name[0] != "i" and what not in ("objects", "texts", "date") and not found:  # else NumPy's operators
                found = outcome(lambda f=f, kind=kind: f(HOSTILE[what](), ARRAYS[kind]()))
            if found:
                wrong[name, kind] = found
    assert not wrong


def assigned(x: smelt.array, index: Any, value: Any) -> smelt.array:
    x[index] = value
    return x


@pytest.mark.parametrize("what", HOSTILE)
def test_indices(what: str) -> None:
    wrong = {}
    for kind in ("matrix", "scalar", "nothing"):
        x, v = ARRAYS[kind], HOSTILE[what]
        calls: dict[str, Callable[[], Any]] = {
            "x[v]": lambda x=x, v=v: x()[v()], "x[:, v]": lambda x=x, v=v: x()[:, v()],
            "x[v:]": lambda x=x, v=v: x()[v() :], "x[::v]": lambda x=x, v=v: x()[:: v()],
            "x[..., v]": lambda x=x, v=v: x()[..., v()], "x[[0], v]": lambda x=x, v=v: x()[[0], v()],
            "x[v] = 1": lambda x=x, v=v: assigned(x(), v(), 1.0),
            "x[...] = v": lambda x=x, v=v: assigned(x(), ..., v()),
            "x.at[v]": lambda x=x, v=v: x().at[v()].add(1.0), "x.at[...]": lambda x=x, v=v: x().at[...].add(v()),
            "v in x": lambda x=x, v=v: v() in x(),
        }  # fmt: skip
        wrong |= {(kind, name): found for name, call in calls.items() if (found := outcome(call))}
    assert not wrong


def test_in() -> None:
    x = smelt.array([[1, 2], [3, 4]])
    assert 3 in x and 9 not in x and "text" not in x
    assert 1.5 in smelt.array(1.5) and 1 not in smelt.zeros((0,))
    with pytest.raises(RuntimeError, match=r"smelt\.where"):
        smelt.compile(lambda x: 3 in x)(x)


class _Fraction(float):
    """A float that has no value where it is asked for it."""

    def __float__(self) -> float:
        raise KeyError("no")


class _Whole(int):
    def __index__(self) -> int:
        return 10**30


def test_numbers_are_what_they_are() -> None:
    """A class derived from Python's numbers may say something else."""
    x, half, two = smelt.ones((2, 3)), _Fraction(0.5), _Whole(2)
    calls: list[Callable[[Any, Any], Any]] = [
        lambda h, t: x * h + t, lambda h, t: smelt.where(x > 2, h, t), lambda h, t: smelt.clip(x, h, t),
        lambda h, t: smelt.compile(lambda a, b: a * b)(x, h), lambda h, t: smelt.full((2,), h), lambda h, t: x**t,
        lambda h, t: smelt.random.gamma(h, 3.0, (2,), key=smelt.random.key(0)), lambda h, t: smelt.sin(h),
        lambda h, t: smelt.linspace(h, t, 3),
    ]  # fmt: skip
    for call in calls:
        assert smelt.array_equal(call(half, two), call(0.5, 2)), call


class _Unasked:
    """What fails wherever it is asked for an attribute."""

    def __getattr__(self, name: str) -> Any:
        raise ZeroDivisionError(name)


class _Entries(list):
    def __iter__(self) -> Any:
        raise OSError("no entries")


def test_what_fails_when_it_is_looked_at() -> None:
    released = memoryview(bytearray(8))
    released.release()
    for given in (_Unasked(), [_Unasked()], _Entries([1, 2]), [_Entries([1])], released):
        for function in (smelt.array, smelt.sin, smelt.sum, smelt.zeros):
            assert not outcome(lambda f=function, v=given: f(v)), (function, given.__class__)


def test_a_shape_of_more_entries_than_can_be_read() -> None:
    many = smelt.broadcast_to(smelt.array(1), (2**33,))
    for call in (smelt.zeros, lambda s: smelt.random.uniform(shape=s), lambda s: smelt.fft.fftn(smelt.ones(3), s=s)):
        with pytest.raises(SmeltError, match="of ints"):
            call(many)
        with pytest.raises(SmeltError, match="of ints"):
            call(np.broadcast_to(np.int32(1), (2**33,)))
