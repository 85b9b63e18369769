"""Arrays have as many axes as NumPy's, and empty ones no extents that no array could have: else a ShapeError that
names the line. What single arguments do is in test_hostile.py."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir.aval import MAX_NDIM
from smelt.ir.errors import OutOfMemoryError, ShapeError, SmeltError
from smelt.ir.settings import override

from .test_hostile import FUNCTIONS, force, valid


def full(n: int = MAX_NDIM) -> smelt.array:
    return smelt.zeros((1,) * n)


#: More axes than there can be.
AXES: dict[str, Callable[[], Any]] = {
    "zeros": lambda: full(MAX_NDIM + 1),
    "expand_dims": lambda: smelt.expand_dims(full(), 0),
    "stack": lambda: smelt.stack([full(), full()]),
    "None": lambda: full()[None],
    "indices": lambda: full()[smelt.zeros((1, 1), smelt.int32)],
    "take": lambda: smelt.take(full(), smelt.zeros((1, 1), smelt.int32), axis=0),
    "tensordot": lambda: smelt.tensordot(full(), full(), 0),
    "tile": lambda: smelt.tile(full(), (2,) * 10 + (1,) * MAX_NDIM),
    "unflatten": lambda: smelt.unflatten(full(), 0, (1, 1)),
    "meshgrid": lambda: smelt.meshgrid(*[smelt.zeros(1)] * (MAX_NDIM + 1)),
    "as_strided": lambda: smelt.as_strided(smelt.zeros(3), (1,) * (MAX_NDIM + 1), (0,) * (MAX_NDIM + 1)),
    "ShapeDtype": lambda: smelt.ShapeDtype((1,) * (MAX_NDIM + 1), smelt.float32),
    "vmap": lambda: smelt.vmap(lambda x: smelt.broadcast_to(x, (1,) * MAX_NDIM) * 1)(smelt.zeros((3,))),
    "jacrev": lambda: smelt.jacrev(lambda x: x * 1)(full(MAX_NDIM // 2 + 1)),
    "jacfwd": lambda: smelt.jacfwd(lambda x: x * 1)(full(MAX_NDIM // 2 + 1)),
    "hessian": lambda: smelt.hessian(lambda x: (x * x).sum())(full(MAX_NDIM // 2 + 1)),
    "scan": lambda: smelt.scan(lambda c, x: (c, full()), smelt.zeros(()), smelt.zeros((3,))),
    "compile": lambda: smelt.compile(lambda x: smelt.expand_dims(x, 0))(full()),
    "make_ir": lambda: smelt.make_ir(lambda x: smelt.expand_dims(x, 0))(full()),
}
#: Empty arrays with other extents that are too large.
EXTENTS: dict[str, Callable[[], Any]] = {
    "zeros": lambda: smelt.zeros((0, 2**62, 2**62)),
    "reshape": lambda: smelt.zeros((0, 3)).reshape((0, 2**63)),
    "the last extent": lambda: smelt.zeros((0, 3)).reshape((2**32, 2**31, 0)),
    "repeat": lambda: smelt.repeat(smelt.zeros((0, 3)), 2**62, axis=1),
    "tile": lambda: smelt.tile(smelt.zeros((0, 3)), (1, 2**62)),
    "pad": lambda: smelt.pad(smelt.zeros((0, 3)), [(0, 0), (2**61, 2**61)]),
    "concatenate": lambda: smelt.concatenate([smelt.zeros((0, 2**60))] * 20, axis=1),
    "view": lambda: smelt.zeros((0, 2**60), smelt.uint8).astype(smelt.float64),
    "eye": lambda: smelt.eye(0, 2**62),
    "vmap": lambda: smelt.vmap(lambda x: smelt.broadcast_to(x, (0, 2**60)))(smelt.zeros((100,))),
}
WRONG = {f"axes: {k}": v for k, v in AXES.items()} | {f"extents: {k}": v for k, v in EXTENTS.items()}


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("name", WRONG)
def test_shapes_that_no_array_has(name: str, device: str) -> None:
    with override(device=device), pytest.raises(SmeltError) as caught:
        force(WRONG[name]())
    assert re.search("axes are more than|too large even for an empty|more elements than can be", str(caught.value))
    assert __file__ in str(caught.value), caught.value


def test_the_error_names_the_line() -> None:
    with pytest.raises(ShapeError, match=rf"smelt\.\w+: 65 axes are more than the 64 .*{__file__}"):
        smelt.expand_dims(smelt.zeros((1,) * 64), 0)


def two_arrays(function: Callable) -> list[str]:
    parameters = inspect.signature(function).parameters.values()
    return [p.name for p in parameters if str(p.annotation) == "ArrayLike" and p.default is p.empty][:2]


BINARY = {name: found for name, f in FUNCTIONS.items() if len(found := two_arrays(f)) == 2}


@pytest.mark.parametrize("name", BINARY)
def test_empty_arrays_that_stretch_each_other(name: str) -> None:
    """Each of them is possible; what they make together is not."""
    dtype = smelt.int32 if name.startswith(("bitwise_", "left_shift", "right_shift")) else smelt.float32
    given = dict(zip(BINARY[name], (smelt.zeros((0, 2**40, 1), dtype), smelt.zeros((0, 1, 2**40), dtype))))
    arguments = []
    for parameter in inspect.signature(FUNCTIONS[name]).parameters.values():
        if parameter.name in given:
            arguments.append(given[parameter.name])
        elif parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD:
            arguments.append(valid(name, parameter))
    try:
        force(FUNCTIONS[name](*arguments))
    except SmeltError as error:
        assert __file__ in str(error)


def test_as_many_axes_as_there_can_be() -> None:
    x = smelt.array(np.arange(8, dtype=np.float32).reshape((2, 2, 2) + (1,) * (MAX_NDIM - 3)))
    for function in (lambda x: x + 1, lambda x: x.sum(axis=1, keepdims=True), lambda x: smelt.transpose(x) * 2):
        want = function(np.array(x)) if function is not None else None
        assert np.array_equal(np.array(function(x)), want)
        assert np.array_equal(np.array(smelt.compile(function)(x)), want)


def test_products_without_anything_to_sum_may_be_too_large() -> None:
    with pytest.raises(MemoryError):
        smelt.eval(smelt.zeros((2**33, 0)) @ smelt.zeros((0, 2**33)))
    with override(device="reference"), pytest.raises(MemoryError):
        smelt.eval(smelt.zeros((2**33, 0)) @ smelt.zeros((0, 2**33)))


def test_an_axis_beyond_32_bits_of_an_empty_array() -> None:
    many = 2**33
    wide, long = smelt.zeros((0, many)), smelt.zeros((many, 0))
    for found in (
        smelt.eye(0, many), smelt.eye(many, 0), smelt.tri(0, many, 1), smelt.triu(wide), smelt.tril(long),
        smelt.indices((0, many)), smelt.indices((many, 0), sparse=True)[1], smelt.sort(wide, 0), smelt.argsort(long, 1),
    ):  # fmt: skip
        smelt.eval(found)
        assert found.size == 0


def test_extents_of_what_is_made_of_views() -> None:
    """Arrays of one element, seen as many."""
    many = smelt.broadcast_to(smelt.ones(1), (2**62,))
    for make in (
        lambda: smelt.repeat(smelt.ones(3), 2**62), lambda: smelt.tile(smelt.ones(3), 2**62),
        lambda: smelt.fft.istft(smelt.ones((3, 4), smelt.complex64), hop_length=2**62),
        lambda: smelt.kron(many, many), lambda: smelt.concatenate([many] * 3),
        lambda: (many[:, None] + many).flatten(), lambda: smelt.outer(many, many),
    ):  # fmt: skip
        with pytest.raises(MemoryError, match=r"test_extents\.py") as caught:
            smelt.eval(make())
        assert isinstance(caught.value, SmeltError)


def many(count: int, dtype: Any = smelt.uint8, inner: tuple[int, ...] = ()) -> smelt.array:
    """As many equal elements, or empty rows, of which one lies in memory."""
    return smelt.broadcast_to(smelt.array(1, dtype), (count, *inner))


#: Functions that make a list of handles: of elements, and of rows without any.
PIECES: dict[str, Callable[[smelt.array], Any]] = {
    "unstack": smelt.unstack,
    "split": lambda x: smelt.split(x, x.shape[0]),
    "array_split": lambda x: smelt.array_split(x, x.shape[0]),
    "vsplit": lambda x: smelt.vsplit(x[:, None], x.shape[0]),
    "concatenate": smelt.concatenate,
    "stack": smelt.stack,
    "vstack": smelt.vstack,
    "hstack": smelt.hstack,
    "dstack": smelt.dstack,
    "column_stack": smelt.column_stack,
    "lexsort": smelt.lexsort,
}


@pytest.mark.parametrize("inner", [(), (0,)], ids=["elements", "empty rows"])
@pytest.mark.parametrize("name", PIECES)
def test_more_pieces_than_a_list_is_good_for(name: str, inner: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match=r"8589934592 pieces of ui8.*; 4194304 is the most; at .*extents"):
        PIECES[name](many(2**33, inner=inner))


def test_more_axes_than_there_are_names_for() -> None:
    with pytest.raises(ShapeError, match="axes are more than"):
        smelt.expand_dims(smelt.zeros(()), tuple(range(20_000)))


#: What counts elements: its dtype where there are at most 2**31 - 1 of them, and beyond.
COUNTS: dict[str, tuple[Callable[[smelt.array], Any], Any]] = {
    "sum": (lambda x: smelt.sum(x), smelt.bool_),
    "cumsum": (lambda x: smelt.cumsum(x), smelt.bool_),
    "cumsum along an axis": (lambda x: smelt.cumsum(x[None], axis=1), smelt.bool_),
    "cumulative_sum": (lambda x: smelt.cumulative_sum(x, include_initial=True), smelt.bool_),
    "nancumsum": (lambda x: smelt.nancumsum(x), smelt.bool_),
    "nansum": (lambda x: smelt.nansum(x), smelt.bool_),
    "count_nonzero": (lambda x: smelt.count_nonzero(x), smelt.float32),
    "bincount": (lambda x: smelt.bincount(x, length=2), smelt.uint8),
    "bincount by bools": (lambda x: smelt.bincount(x, weights=many(x.size, smelt.bool_), length=2), smelt.uint8),
    "histogram": (lambda x: smelt.histogram(x, 2, (0, 2))[0], smelt.float32),
    "histogram2d": (lambda x: smelt.histogram2d(x, x, 2, [(0, 2), (0, 2)])[0], smelt.float32),
}


@pytest.mark.parametrize("name", COUNTS)
def test_counts_have_a_dtype_that_holds_them(name: str) -> None:
    function, dtype = COUNTS[name]
    assert function(many(2**31 - 1, dtype)).dtype is smelt.int32
    assert function(many(2**31, dtype)).dtype is smelt.int64


def test_sums_along_the_other_axis_count_what_they_go_over() -> None:
    assert smelt.cumsum(many(3, smelt.bool_, (2**31,)), axis=0).dtype is smelt.int32
    assert smelt.trace(many(3, smelt.bool_, (3,))).dtype is smelt.int32


@pytest.mark.parametrize(("function", "value"), [(smelt.nanmean, 1.0), (smelt.nanvar, 0.0)])
def test_numbers_beyond_32_bits_that_are_no_nan(function: Callable[..., smelt.array], value: float) -> None:
    of_all = smelt.compile(lambda x: function(smelt.broadcast_to(x, (2**32,))))  # which lie nowhere in memory
    assert of_all(smelt.array(1.0)).item() == value
    assert "tensor<i64>" in str(smelt.make_ir(function)(smelt.ShapeDtype((2**32,), smelt.float32)))


@pytest.mark.parametrize("count", [1 << 17, 1 << 33, 1 << 70])
def test_shapes_of_too_many_entries(count: int) -> None:
    """They are refused at once, however long it would take to look at them."""
    x, many = smelt.zeros(4), range(count)
    for name, call in {
        "zeros": lambda: smelt.zeros(many), "full": lambda: smelt.full(many, 1), "reshape": lambda: x.reshape(many),
        "broadcast_to": lambda: smelt.broadcast_to(x, many), "tile": lambda: smelt.tile(x, many),
        "roll": lambda: smelt.roll(x, many), "random.normal": lambda: smelt.random.normal(many),
    }.items():  # fmt: skip
        with pytest.raises(ShapeError, match=rf"^smelt\.{name}: .* 65,536 ints at most, got range\(0, {count}\)"):
            call()
    with pytest.raises(OutOfMemoryError, match="more elements than can be addressed"):
        smelt.zeros([1 << 20] * (1 << 16))
