"""Programs are found by type and bits: what Python calls equal may need another one, or the other way round."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import itertools
import pathlib
import struct
import uuid
import warnings
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import smelt
from smelt.ir.aval import Aval
from smelt.ir.op import registry
from smelt.ir.parameters import Parameters
from smelt.ir.settings import override
from smelt.lazy.evaluate import executables
from smelt.lazy.graph import attrs_key
from smelt.lazy.static_keys import static_key

NAN = float("nan")
OTHER_NAN = struct.unpack("d", struct.pack("Q", 0xFFF8000000000001))[0]


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Number(enum.IntEnum):
    ONE = 1


class Word(str, enum.Enum):
    A = "a"


class Flag(enum.Flag):
    X = 1
    Y = 2


@dataclasses.dataclass(frozen=True)
class Config:
    scale: Any
    note: Any = dataclasses.field(default=0, compare=False)


@dataclasses.dataclass
class Changing:
    scale: Any


class Text(str):
    """A text with an attribute."""


class Loose:
    """Its equality leaves out a member."""

    def __init__(self, a: int, b: int):
        self.a, self.b = a, b

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Loose) and self.a == other.a

    def __hash__(self) -> int:
        return hash(self.a)

    def __repr__(self) -> str:
        return f"Loose({self.a}, {self.b})"


class Plain:
    """Compared by identity."""

    def method(self) -> int:
        return 1


def text(value: str, note: int) -> Text:
    made = Text(value)
    made.note = note  # type: ignore[attr-defined]
    return made


def one(x: Any) -> Any:
    return x


def two(x: Any) -> Any:
    return x


PLAIN, OTHER = Plain(), Plain()
utc, paris = datetime.timezone.utc, datetime.timezone(datetime.timedelta(hours=1))

#: Groups of values that differ, though many of them are equal to others of their group, or hash alike.
GROUPS: dict[str, list[Any]] = {
    "one": [1, True, 1.0, 1 + 0j, np.float32(1), np.float64(1), np.int8(1), np.int64(1), np.bool_(True), Number.ONE,
            decimal.Decimal(1), fractions.Fraction(1), np.complex64(1), ml_dtypes.bfloat16(1), np.longdouble(1)],
    "zero": [0, False, 0.0, -0.0, np.float32(0), np.float32(-0.0), np.float64(0), np.float64(-0.0), np.float16(0),
             np.float16(-0.0), ml_dtypes.bfloat16(0), ml_dtypes.bfloat16(-0.0), decimal.Decimal(0),
             decimal.Decimal("-0"), decimal.Decimal("0.0"), np.longdouble(0), -np.longdouble(0)],
    "complex": [complex(a, b) for a in (0.0, -0.0, 2.0) for b in (0.0, -0.0, NAN)]
               + [np.complex64(complex(a, b)) for a in (0.0, -0.0) for b in (0.0, -0.0)],
    "nan": [NAN, OTHER_NAN, np.float32(NAN), np.float64(NAN), np.float16(NAN), decimal.Decimal("nan"),
            decimal.Decimal("snan"), -NAN],
    "decimal": [decimal.Decimal("1.0"), decimal.Decimal("1.00"), decimal.Decimal("1.000")],
    "range": [range(0), range(1, 1), range(0, 3, 2), range(0, 4, 2), range(3), slice(3), slice(0, 3), slice(True)],
    "text": ["a", b"a", np.str_("a"), np.bytes_(b"a"), Word.A, Text("a"), text("a", 1), text("a", 2), "", b"", None],
    "enum": [Color.RED, Color.BLUE, Flag.X, Flag.Y, Flag.X | Flag.Y, Flag(0), Number.ONE],
    "dataclass": [Config(1), Config(True), Config(1.0), Config(0.0), Config(-0.0), Config(1, note=1), Config((1, (2,))),
                  Config((1, (2.0,))), Config(frozenset({1})), Config(frozenset({True})), Config(NAN), Changing(1),
                  Changing(True)],
    "nested": [(1, 2), (True, 2), (1.0, 2), ((0.0,),), ((-0.0,),), frozenset({0.0}), frozenset({-0.0})],
    "function": [one, two, functools.partial(one, 1), functools.partial(one, True), functools.partial(one, x=1),
                 functools.partial(two, 1), PLAIN.method, OTHER.method, PLAIN, OTHER, Plain, Color, len, np.sin],
    "loose": [Loose(1, 1), Loose(1, 2), Loose(2, 1)],
    "time": [datetime.datetime(2020, 1, 1, 12, tzinfo=utc), datetime.datetime(2020, 1, 1, 13, tzinfo=paris),
             datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 1, fold=1), datetime.date(2020, 1, 1),
             np.datetime64("2020-01-01"), np.datetime64("2020-01-01T00"), np.timedelta64(1, "h"),
             np.timedelta64(60, "m")],
    "other": [pathlib.PurePosixPath("a"), pathlib.PurePosixPath("b"), uuid.UUID(int=1), uuid.UUID(int=2), ...,
              NotImplemented, smelt.float32, smelt.float16, np.dtype("f4"), smelt.cpu, smelt.reference],
}  # fmt: skip

ALL = [(name, x) for name, values in GROUPS.items() for x in values]


def test_no_two_values_share_a_key_and_each_keeps_its_own() -> None:
    keys = [static_key(x) for _, x in ALL]
    for (i, a), (j, b) in itertools.combinations(enumerate(keys), 2):
        same = ALL[i][1] is ALL[j][1]
        assert (a == b) is same, f"{ALL[i]} and {ALL[j]}"
    for key, (name, x) in zip(keys, ALL):
        assert static_key(x) == key and hash(static_key(x)) == hash(key), (name, x)


def test_equal_values_made_anew_share_a_key() -> None:
    for make in (
        lambda: np.float32(NAN), lambda: float("nan"), lambda: decimal.Decimal("1.0"), lambda: Config((1, "a")),
        lambda: functools.partial(one, 1.5), lambda: PLAIN.method, lambda: range(3), lambda: text("ab", 1),
        lambda: np.longdouble(1) / 3, lambda: pathlib.PurePosixPath("a") / "b", lambda: Loose(1, 2),
        lambda: (1, (NAN,)),
    ):  # fmt: skip
        assert static_key(make()) == static_key(make()), make()


def described(value: Any) -> str:
    return f"{type(value).__qualname__} {value!r} {getattr(value, 'note', '')} {getattr(value, 'fold', '')}"


@pytest.mark.parametrize("name", GROUPS)
def test_each_value_gets_its_own_program_once(name: str) -> None:
    """As an argument, inside a tree, as a keyword, and in the state that a function reads."""
    traces: list[str] = []
    held: dict[str, Any] = {"w": smelt.ones(1), "v": None}

    def run(x: Any, value: Any) -> Any:
        traces.append(described(value))
        return x + 1, described(value)

    state_function = smelt.compile(lambda x: run(x + held["w"], held["v"]), inputs=held)

    def from_state(x: Any, value: Any) -> Any:
        held["v"] = value
        return state_function(x)

    argument, inside, keyword = (smelt.compile(f) for f in (
        lambda x, value: run(x, value), lambda tree: run(tree["x"], tree["v"][0]), lambda x, *, value: run(x, value)
    ))  # fmt: skip
    calls = [
        argument, lambda x, v: inside({"x": x, "v": [v]}), lambda x, v: keyword(x, value=v), from_state,
    ]  # fmt: skip
    x = smelt.ones(1)
    with override(device="reference"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in calls:
            traces.clear()
            for _ in range(2):
                for value in GROUPS[name]:
                    _, seen = call(x, value)
                    assert seen == described(value)
            assert len(traces) == len(GROUPS[name]), traces


KEYS = [{1: 0, 2: 0}, {True: 0, 2: 0}, {1.0: 0, 2: 0}, {0.0: 0}, {-0.0: 0}, {0: 0}, {False: 0}, {"a": 0}, {b"a": 0},
        {(1, 0.0): 0}, {(True, 0.0): 0}, {(1, -0.0): 0}]  # fmt: skip


@pytest.mark.parametrize("order", [1, -1])
def test_keys_of_dicts(order: int) -> None:
    traces = []

    def f(d: Any, x: Any) -> Any:
        traces.append(1)
        return x, repr(list(d))

    g = smelt.compile(f)
    with override(device="reference"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(2):
            for keys in KEYS[::order]:
                assert g(dict.fromkeys(keys, smelt.ones(1)), smelt.ones(2))[1] == repr(list(keys))
    assert len(traces) == len(KEYS)


def test_a_number_in_a_program_keeps_its_sign() -> None:
    for kind in (float, np.float32, np.float16):
        f = smelt.compile(lambda x, v: x / v)
        assert f(smelt.array([1.0]), kind(0.0)).tolist() == [np.inf]
        assert f(smelt.array([1.0]), kind(-0.0)).tolist() == [-np.inf]


F32 = Aval((2,), smelt.float32)
ATTRIBUTES: dict[str, list[Any]] = {
    "Ints": [(), (0,), (1,), (1, 2), (2, 1), (True,), (1.0,)],
    "Int": [0, 1, True, 1.0],
    "Float": [0.0, -0.0, NAN, 1.0, 1],
    "Bool": [False, True, 0],
    "Str": ["", "a", b"a"],
    "Element": [smelt.float32, smelt.int32, smelt.float16],
    "Number": [0, 0.0, -0.0, False, 1, 1.0, True, NAN, 1j, complex(0.0, -0.0), complex(0.0, 0.0)],
    "Array": [np.arange(2000), np.where(np.arange(2000) == 1000, 0, np.arange(2000)), np.arange(2000.0),
              np.zeros(2), -np.zeros(2), np.zeros((2, 1))],
    "Types": [(), (F32,), (F32, F32), (Aval((3,), smelt.float32),), (Aval((2,), smelt.float16),)],
    "Static": [Parameters(p) for p in ({}, {"k": 1}, {"k": True}, {"k": 1.0}, {"k": 0.0}, {"k": -0.0}, {"k": NAN},
                                       {"j": 1}, {"j": 1, "k": 1}, {"k": (1,)}, {"k": "1"}, {"k": smelt.float32})],
}  # fmt: skip


def test_attributes_of_recorded_ops() -> None:
    kinds = {spec.type for op in registry.values() for spec in op.attrs.values()}
    assert kinds <= set(ATTRIBUTES)
    for kind in kinds:
        keys = [attrs_key({"a": value}) for value in ATTRIBUTES[kind]]
        for i, j in itertools.combinations(range(len(keys)), 2):
            assert keys[i] != keys[j], (kind, ATTRIBUTES[kind][i], ATTRIBUTES[kind][j])
        assert [attrs_key({"a": value}) for value in ATTRIBUTES[kind]] == keys
        assert len(set(map(hash, keys))) > len(keys) // 2


def test_lazy_graphs_that_differ_in_a_sign() -> None:
    """Evaluated one after the other by compiled programs, of which the first may be found again."""
    with override(small_work=0):
        for value in (0.0, -0.0, 0.0, -0.0):
            for x in (smelt.array([1.0, -1.0]) / value, 1 / (smelt.full((2,), value) + smelt.full((2,), value))):
                assert np.signbit(np.array(x)[0]) == np.signbit(value), value


@pytest.mark.tier("program")
def test_another_device_gets_another_program() -> None:
    """Of compiled functions and of lazy graphs."""
    traces = []

    def f(x):
        traces.append(smelt.default_device().name)
        return x * 3 + 1

    g = smelt.compile(f)
    x = smelt.array([1.0, 2.0])
    for _ in range(2):
        for device in ("cpu", "reference", "metal:sim"):
            with override(device=device):
                assert g(x).tolist() == [4.0, 7.0]
                assert type(g._store.recent.executable) is type(g.trace(x).lower().compile().executable)
    assert [t for t in traces if t] and len(g._store.entries) == 3

    executables.clear()
    with override(small_work=0):
        for known in (0, 1):
            before = executables.misses
            for device in ("cpu", "metal:sim"):
                with override(device=device):
                    assert (x * 5 - 1).tolist() == [4.0, 9.0]
            assert executables.misses - before == (0 if known else 2)
