"""Checked kernels (SMELT_CHECK=1): what leaves an array, or an index out of range, is an error and no damage."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends import control, memory
from smelt.backends.cpu import maps, native, rows, streaming
from smelt.backends.cpu import program as cpu
from smelt.ir import dtypes, index
from smelt.ir.aval import Aval
from smelt.ir.errors import IndexOutOfRangeError, KernelError
from smelt.ir.op import registry
from smelt.ir.scalar import INDEX
from smelt.ir.settings import override, settings
from smelt.lazy.arrays import emit

from .modules import check, compile_, cross_entropy, f32, layer_norm, module_of, over, random_array, run, softmax

MATRIX, WIDE, LARGE = Aval((33, 70), f32), Aval((3, 50000), f32), Aval((3008, 3008), f32)
INDICES = Aval((5,), dtypes.int32)


def scattered(b: Any, x: Any, updates: Any, i: Any) -> Any:
    return b.scatter(x, updates, i, axes=(0,), mode="add")


#: One program for each way in which kernels are made: operands, body.
PROGRAMS: dict[str, tuple[Sequence[Aval], Callable[..., Any]]] = {
    "map": ([MATRIX, MATRIX], lambda b, x, y: b.exp(x) + y),
    "number": ([Aval((), f32)], lambda b, x: b.exp(x)),
    "blocks": ([MATRIX, Aval((70, 33), f32)], lambda b, x, y: b.transpose(x, permutation=(1, 0)) + y),
    "table": ([INDICES], lambda b, i: i + b.literal(np.arange(5, dtype=np.int32) ** 2)),
    "row": ([MATRIX], softmax),
    "row, kept": ([Aval((40, 3000), f32)], layer_norm),
    "line": ([MATRIX], functools.partial(softmax, axis=0)),
    "argmax": ([MATRIX], lambda b, x: [b.argmax(x, axis=1), b.argmin(x, axis=0)]),
    "split": ([WIDE], lambda b, x: b.reduce_sum(x, axes=(1,))),
    "split line": ([Aval((50000, 3), f32)], lambda b, x: b.reduce_max(x, axes=(0,))),
    "scan": ([MATRIX], lambda b, x: b.cumsum(b.exp(x), axis=1)),
    "scan line": ([MATRIX], lambda b, x: b.cummax(x, axis=0)),
    "gather": ([MATRIX, INDICES], lambda b, x, i: b.gather(x, i, axes=(0,), slice_sizes=(1, 70))),
    "scatter": ([MATRIX, Aval((5, 1, 70), f32), INDICES], scattered),
    "scatter along": ([Aval((70,), f32), Aval((5, 1), f32), INDICES], scattered),
    "rows": ([MATRIX, MATRIX], cross_entropy),
    "stream": ([LARGE], lambda b, x: b.exp(x)),
    "stream of rows": ([LARGE], lambda b, x: x - over(b, "reduce_max", x, 1)),
    "half": ([Aval((5, 7), dtypes.bfloat16)], lambda b, x: b.exp(x)),
    "bool": ([Aval((5, 7), dtypes.bool_)], lambda b, x: b.reduce_any(b.logical_not(x), axes=(1,))),
    "complex": ([Aval((5, 7), dtypes.complex64)], lambda b, x: x * x),
    "product": (
        [MATRIX, Aval((70, 20), f32)],
        lambda b, x, y: b.dot_general(x, y, lhs_contracting=(1,), rhs_contracting=(0,), lhs_batch=(), rhs_batch=()),
    ),
}


@pytest.fixture
def checked() -> Iterator[None]:
    with override(check=True):
        yield


def compiled(name: str) -> tuple[cpu.Program, list[np.ndarray]]:
    avals, body = PROGRAMS[name]
    return compile_(module_of(avals, body)), [random_array(a, i) for i, a in enumerate(avals)]


@pytest.mark.usefixtures("checked")
@pytest.mark.parametrize("name", PROGRAMS)
def test_checked_kernels_compute_the_same(name: str) -> None:
    if not name.startswith("stream"):  # large: tested by the next, where nothing is wrong at first
        avals, body = PROGRAMS[name]
        program = check(avals, body, 1e-4, 1e-2 if name.startswith(("half", "split")) else 1e-4)
        kernels = program.as_text("kernel")  # what reports is made once: checks are many
        assert kernels.count("call @smelt_report(") == 1 and "call @smelt_outside(" in kernels


@pytest.mark.usefixtures("checked")
@pytest.mark.parametrize("by", [-(10**6), 10**8], ids=["before", "behind"])
@pytest.mark.parametrize("name", [n for n in PROGRAMS if n not in ("product",)])
def test_wrong_addresses_are_errors_and_no_damage(name: str, by: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every address is shifted: in each schedule each access is refused, and guards around buffers stay."""

    def shifted(place: Any, shape: Any) -> Any:
        return index.linearize(place, shape) + by

    for module in (memory, rows, streaming):
        monkeypatch.setattr(module, "linearize", shifted)
    program, arrays = compiled(name)
    assert ("nontemporal" in program.as_text("kernel")) == name.startswith("stream")
    with pytest.raises(KernelError, match=r"kernel @\w+ (loads|stores) element -?\d+ of .*, which has \d+ element"):
        run(program, arrays)


@pytest.mark.usefixtures("checked")
def test_one_element_too_far_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "linearize", lambda place, shape: index.linearize(place, shape) + 1)
    program, arrays = compiled("map")
    with pytest.raises(KernelError, match=r"element 2310 of f32\[33,70\], which has 2310 elements"):
        run(program, arrays)


@pytest.mark.usefixtures("checked")
def test_empty_arrays_have_no_element(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even the first one is outside; here a kernel is made to write it."""

    def once(k: Any, nest: Any, lo: Any, hi: Any, line: Any) -> None:
        line(k.const(0, INDEX), k.const(1, INDEX))

    monkeypatch.setattr(maps, "all", lambda _: True, raising=False)
    monkeypatch.setattr(maps, "emit_nest", once)
    program = compile_(module_of([Aval((0, 3), f32)], lambda b, x: b.exp(x)))
    with pytest.raises(KernelError, match=r"element 0 of f32\[0,3\], which has 0 elements"):
        run(program, [np.zeros((0, 3), np.float32)])


@pytest.mark.usefixtures("checked")
def test_ranges_of_library_calls_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "share", lambda k, me, members, extent, grain: _too_far(k, extent))
    program, arrays = compiled("product")
    with pytest.raises(KernelError, match=r"runs up to (\d+), but has \d+ steps?"):
        run(program, arrays)


def _too_far(k: Any, extent: int) -> Any:
    return k.const(extent + 1, INDEX), k.const(extent + 1, INDEX)


@pytest.mark.usefixtures("checked")
def test_elements_of_stacked_arrays_lie_in_them(monkeypatch: pytest.MonkeyPatch) -> None:
    far = control.Storage.element
    monkeypatch.setattr(control.Storage, "element", lambda self, i, nbytes: far(self, i + 1, nbytes))
    compiled = smelt.compile(lambda x: smelt.scan(lambda c, y: (c + y, c * y), smelt.zeros((7,)), x))
    with pytest.raises(KernelError, match=r"puts f32\[7\] at byte 140 of 140"):
        smelt.eval(compiled(smelt.ones((5, 7))))


def test_nothing_is_checked_without_the_setting() -> None:
    with override(check=False):
        program, _ = compiled("row")
    assert "smelt_report" not in program.as_text("kernel")


def test_errors_name_kernel_op_and_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "linearize", lambda place, shape: index.linearize(place, shape) + 10**6)
    with override(check=True):
        compiled = smelt.compile(lambda x: smelt.tanh(x) * 2)
        with pytest.raises(KernelError) as caught:
            smelt.eval(compiled(smelt.ones((100, 100))))
    message = str(caught.value)
    assert "smelt.tanh: kernel @fused_tanh_mul" in message and "test_checks.py:" in message
    assert isinstance(caught.value, RuntimeError)


def test_the_setting_chooses_another_program() -> None:
    compiled = smelt.compile(lambda x, i: smelt.take(x, i, axis=0))
    x, far = smelt.arange(12.0).reshape(4, 3), smelt.array([7])
    for on in (False, True, False):
        with override(check=on, small_work=0):
            for function in (compiled, lambda x, i: smelt.take(x, i, axis=0)):
                if on:
                    with pytest.raises(IndexOutOfRangeError):
                        smelt.eval(function(x, far + 0))
                else:
                    assert function(x, far + 0).tolist() == [[9.0, 10.0, 11.0]]


# Indices

INDEX_DTYPES = [d for d in dtypes.INTEGERS if d.kind in "iu"]


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("dtype", INDEX_DTYPES, ids=str)
def test_indices_out_of_range_are_errors(dtype: Any, device: str) -> None:
    """Every width, below and above, for gather and scatter; in kernels and on the host."""
    most = np.iinfo(dtype.numpy).max
    wrong = [5, most] + ([-1, np.iinfo(dtype.numpy).min] if dtype.kind == "i" else [])
    gather = smelt.compile(lambda x, i: _op("gather", x, i))
    scatter = smelt.compile(lambda x, u, i: _op("scatter", x, u, i))
    x, u = smelt.ones((5, 3)), smelt.ones((2, 1, 3))
    with override(check=True, device=device):
        assert smelt.sum(gather(x, smelt.array([0, 4], dtype=dtype))).item() == 6
        assert smelt.sum(scatter(x, u, smelt.array([0, 4], dtype=dtype))).item() == 21
        for value in wrong:
            i = smelt.array(np.array([1, value], dtype.numpy))
            for name, call in (("gather", lambda i=i: gather(x, i)), ("scatter", lambda i=i: scatter(x, u, i))):
                with pytest.raises(IndexOutOfRangeError, match=rf"smelt\.{name}: index {value}.* outside 0 … 4"):
                    smelt.eval(call())


def _op(name: str, *operands: Any) -> Any:
    attrs = {"gather": {"axes": (0,), "slice_sizes": (1, 3)}, "scatter": {"axes": (0,), "mode": "add"}}
    return emit(registry[name], operands, attrs[name])


@pytest.mark.usefixtures("checked")
@pytest.mark.parametrize("small_work", [0, 1 << 20])
def test_an_axis_of_one_element_has_one_index(small_work: int) -> None:
    settings.small_work = small_work
    x = smelt.ones((1, 3))
    assert smelt.take(x, smelt.array([0]), axis=0).tolist() == [[1.0, 1.0, 1.0]]
    with pytest.raises(IndexOutOfRangeError, match="index 1"):
        smelt.eval(smelt.take(x, smelt.array([1]), axis=0))


@pytest.mark.usefixtures("checked")
@pytest.mark.parametrize("wrong", [None, 0, 16, 19])
def test_each_lane_has_an_index_of_its_own(wrong: int | None) -> None:
    """A matrix that all of a batch choose, in a kernel whose lanes are members of the batch."""
    x, w, at = smelt.ones((20, 1, 64)), smelt.ones((1, 64, 200)), np.full(20, -1, np.int32)
    if wrong is not None:
        at[wrong] = 1
    f = smelt.compile(lambda x, w, at: x @ smelt.take(w, at, axis=0))
    with override(tier="program", small_work=0):
        if wrong is None:
            assert (np.asarray(f(x, w, smelt.array(at))) == 64).all()
        else:
            with pytest.raises(IndexOutOfRangeError, match="index 1"):
                smelt.eval(f(x, w, smelt.array(at)))


@pytest.mark.usefixtures("checked")
def test_constant_indices_out_of_range_do_not_stop_a_compile() -> None:
    """They may stand where nothing is computed."""
    x = smelt.arange(5.0)
    found = smelt.compile(lambda p, x: smelt.cond(p, lambda x: x[smelt.array([9]) + 0], lambda x: x[:1], x))
    assert found(smelt.array(False), x).tolist() == [0.0]
    with pytest.raises(IndexOutOfRangeError):
        smelt.eval(found(smelt.array(True), x))


@pytest.mark.usefixtures("checked")
@pytest.mark.parametrize("small_work", [0, 1 << 20])
def test_functions_that_clamp_are_no_error(small_work: int) -> None:
    """What smelt's functions promise for every argument holds in checked kernels too."""
    settings.small_work = small_work
    x = smelt.arange(6.0).reshape(2, 3)
    assert smelt.slice(x, smelt.array([9]), (1,), (2, 2)).tolist() == [[1.0, 2.0], [4.0, 5.0]]
    assert smelt.slice_update(x, smelt.zeros((2, 2)), smelt.array([-4]), (1,)).tolist() == [[0, 0, 2], [0, 0, 5]]
    assert smelt.searchsorted(smelt.arange(5.0), smelt.array([-1.0, 2.5, 99.0])).tolist() == [0, 3, 5]
    assert smelt.unique(smelt.array([3, 1, 3]), 5, fill_value=9).tolist() == [1, 3, 9, 9, 9]
    x[x > 1] = smelt.array([7.0, 8.0, 9.0, 10.0])
    assert x.tolist() == [[0.0, 1.0, 7.0], [8.0, 9.0, 10.0]]
