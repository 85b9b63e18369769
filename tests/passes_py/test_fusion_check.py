"""What the verifier of fused functions refuses, and that fusion never makes such a function."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from smelt.backends.cpu import program as cpu
from smelt.ir import mlir
from smelt.ir.aval import Aval
from smelt.ir.builder import functions, new_function, read_function
from smelt.ir.dialect import context
from smelt.ir.errors import IRError
from smelt.ir.interpreter import Interpreter
from smelt.passes import Pipeline
from smelt.passes.driver import Instrumentation
from smelt.passes.kernels.check import verify_fusions

from ..backends.modules import compile_, f32, module_of, random_array, run

X, Y, SQUARE = Aval((4, 8), f32), Aval((3, 8), f32), Aval((4, 4), f32)


def fusion(
    avals: Sequence[Aval], body: Callable[..., Any], schedule: str, kept: Any = None, chunks: int | None = None
) -> Any:
    """A module whose @main calls a fusion that `fuse` did not make."""
    ir, module = mlir.ir, module_of(avals, body)
    (operation,) = functions(module).values()
    attributes = {"sym_name": '"fused"', "sym_visibility": '"private"', "smelt.fusion": f'"{schedule}"'}
    if kept is not None:
        lists = [f"array<i64: {', '.join(map(str, axes))}>" if axes else "array<i64>" for axes in kept]
        attributes["smelt.kept"] = f"[{', '.join(lists)}]"
    if chunks is not None:
        attributes["smelt.chunks"] = f"{chunks} : i64"
    for name, value in attributes.items():
        operation.attributes[name] = ir.Attribute.parse(value, context())
    results = [v.aval for v in read_function(operation).returns]
    with ir.Location.unknown(context()):
        _, arguments, b = new_function(module, "main", avals, results, public=True)
        b.return_(b.call("fused", arguments, results))
    return module


def total(b: Any, x: Any) -> Any:
    return b.reduce_sum(x, axes=(1,))


def read_reversed(b: Any, x: Any) -> Any:
    s = total(b, x)
    return b.add(s, b.reverse(s, axes=(0,)))


def chained(b: Any, x: Any) -> Any:
    return total(b, b.sub(x, b.broadcast_to(b.reshape_to(total(b, x), (4, 1)), (4, 8))))


def multiplied(b: Any, x: Any, y: Any) -> Any:
    return b.dot_general(x, y, lhs_batch=(), lhs_contracting=(1,), rhs_batch=(), rhs_contracting=(0,))


def softmax(b: Any, x: Any, axis: int) -> Any:
    shape = tuple(1 if a == axis else n for a, n in enumerate(x.shape))

    def along(row: Any) -> Any:
        return b.broadcast_to(b.reshape_to(row, shape), x.shape)

    e = b.exp(b.sub(x, along(b.reduce_max(x, axes=(axis,)))))
    return b.div(e, along(b.reduce_sum(e, axes=(axis,))))


#: What is refused: operands, body, schedule, kept axes of each result, chunks, and words of the message.
REFUSED: dict[str, tuple[list[Aval], Callable[..., Any], str, Any, int | None, str]] = {
    "fewer rows returned": ([X, Y], lambda b, x, y: [total(b, x), b.exp(y)], "row", [(0,), (0,)], None, "rows"),
    "fewer rows first": ([X, Y], lambda b, x, y: [b.exp(y), total(b, x)], "row", [(0,), (0,)], None, "rows"),
    "rows of other reduction": ([X, Y], lambda b, x, y: [total(b, x), total(b, y)], "row", [(0,), (0,)], None, "rows"),
    "no rows": ([X], total, "row", [(-1,)], None, "rows"),
    "axis that is not there": ([X], total, "row", [(1,)], None, "axes"),
    "axis twice": ([SQUARE], lambda b, x: [b.exp(x), total(b, x)], "row", [(0, 0), (0,)], None, "axes"),
    "too few lists": ([X], lambda b, x: [total(b, x), b.exp(x)], "row", [(0,)], None, "smelt.kept"),
    "no lists": ([X], total, "row", None, None, "smelt.kept"),
    "row read elsewhere": ([X], read_reversed, "row", [(0,)], None, "read at"),
    "row read by another axis": (
        [SQUARE],
        lambda b, x: [total(b, x), b.mul(x, b.broadcast_to(total(b, x), (4, 4)))],
        "row", [(0,), (0,)], None, "read at",
    ),
    "nothing reduced": ([X], lambda b, x: b.exp(x), "row", [(0,)], None, "reduces"),
    "a scan in a row": ([X], lambda b, x: total(b, b.cumsum(x, axis=1)), "row", [(0,)], None, "one by one"),
    "chunks that need each other": ([X], chained, "split", [(0,)], 2, "needs another"),
    "chunks of two": ([X, SQUARE], lambda b, x, z: [total(b, x), total(b, z)], "split", [(0,)] * 2, 2, "one shape"),
    "chunks with elements": ([X], lambda b, x: [total(b, x), b.exp(x)], "split", [(0,), (0,)], 2, "more than"),
    "no chunks": ([X], total, "split", [(0,)], 0, "chunks"),
    "map of two shapes": ([X, Y], lambda b, x, y: [b.exp(x), b.exp(y)], "map", None, None, "differ"),
    "map of two sizes": ([X, Y], lambda b, x, y: [b.exp(y), b.exp(x)], "map", None, None, "differ"),
    "map with a reduction": ([X], total, "map", None, None, "one by one"),
    "scan with more": ([X], lambda b, x: [b.cumsum(x, axis=1), b.exp(x)], "scan", None, None, "alone"),
    "scan that goes on": ([X], lambda b, x: b.exp(b.cumsum(x, axis=1)), "scan", None, None, "end in a scan"),
    "scan without one": ([X], lambda b, x: b.exp(x), "scan", None, None, "end in a scan"),
    "scatter without one": ([X], lambda b, x: b.exp(x), "scatter", None, None, "end in a scatter"),
    "no schedule": ([X], lambda b, x: b.exp(x), "spiral", None, None, "spiral"),
    "attention without contractions": ([X], lambda b, x: b.exp(x), "attention", None, None, "0 contractions"),
    "attention without a softmax": (
        [SQUARE], lambda b, x: multiplied(b, b.exp(multiplied(b, x, x)), x), "attention", None, None, "no softmax",
    ),
    "attention along the rows": (
        [SQUARE], lambda b, x: multiplied(b, softmax(b, multiplied(b, x, x), 0), x), "attention", None, None,
        "every key",
    ),
    "chain without contractions": ([X], lambda b, x: b.exp(x), "chain", None, None, "no contraction is made"),
    "chain with a reduction": (
        [SQUARE], lambda b, x: multiplied(b, softmax(b, multiplied(b, x, x), 0), x), "chain", None, None, "one by one",
    ),
    "chain that returns what is between": (
        [SQUARE], lambda b, x: [multiplied(b, y := b.exp(multiplied(b, x, x)), x), y], "chain", None, None,
        "one contraction",
    ),
    "chain over different axes": (
        [SQUARE], lambda b, x: [multiplied(b, y := b.exp(multiplied(b, x, x)), x), multiplied(b, x, y)], "chain", None,
        None, "different axes",
    ),
    "no contraction": ([X], lambda b, x: b.exp(x), "contract", None, None, "0 contractions"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_functions_that_are_no_kernel_are_refused(name: str) -> None:
    avals, body, schedule, kept, chunks, words = REFUSED[name]
    module = fusion(avals, body, schedule, kept, chunks)
    with pytest.raises(IRError, match=words):
        verify_fusions(module)
    Pipeline.parse("plan-buffers").run(module)
    with pytest.raises(IRError, match=words):  # before there is a kernel that could run
        cpu.compile_module(module)
    with pytest.raises(IRError, match=words):  # after each pass with SMELT_DEBUG=1
        Pipeline.parse("cse").run(module, Instrumentation(verify=True))


def test_functions_that_are_one_kernel_pass() -> None:
    for avals, body, schedule, kept in (
        ([X], lambda b, x: [total(b, x), b.exp(x)], "row", [(0,), (0,)]),
        ([X], lambda b, x: [b.exp(x), total(b, x)], "row", [(0,), (0,)]),
        ([Aval((1, 8), f32)], lambda b, x: [total(b, x), b.exp(x)], "row", [(-1,), (-1,)]),
        ([X], lambda b, x: b.cumsum(b.exp(x), axis=1), "scan", None),
    ):
        module = fusion(avals, body, schedule, kept)
        verify_fusions(module)
        Pipeline.parse("plan-buffers").run(module)
        arrays = [random_array(a, i) for i, a in enumerate(avals)]
        want = Interpreter(module)("main", arrays)
        for have, expected in zip(run(cpu.compile_module(module), arrays), want, strict=True):
            np.testing.assert_allclose(have, expected, rtol=1e-5, atol=1e-5)


# Values beside a reduction whose extents are not the reduction's


def padded(b: Any, x: Any, low: int, high: int, axis: int) -> Any:
    at = [low if a == axis else 0 for a in range(x.ndim)], [high if a == axis else 0 for a in range(x.ndim)]
    return b.pad(x, b.full((), 0.0, x.dtype), low=at[0], high=at[1], interior=[0] * x.ndim)


#: An array of other extents made of x: all or part of it is read where the new array's rows are.
OTHER_EXTENTS: dict[str, Callable[[Any, Any, int], Any]] = {
    "padded behind": lambda b, x, axis: padded(b, x, 0, 24, axis),
    "padded before": lambda b, x, axis: padded(b, x, 24, 0, axis),
    "concatenated": lambda b, x, axis: b.concatenate(x, x, axis=axis),
    "beside zeros": lambda b, x, axis: b.concatenate(x, b.full(x.shape, 0.0, x.dtype), axis=axis),
    "sliced": lambda b, x, axis: b.slice(
        x, start=(0,) * x.ndim, stop=[d // 2 if a == axis else d for a, d in enumerate(x.shape)], stride=(1,) * x.ndim
    ),
    "strided": lambda b, x, axis: b.slice(
        x, start=(0,) * x.ndim, stop=x.shape, stride=[2 if a == axis else 1 for a in range(x.ndim)]
    ),
    "reversed": lambda b, x, axis: b.reverse(x, axes=(axis,)),
    "repeated": lambda b, x, axis: b.broadcast_to(x, (3, *x.shape)),
    "transposed": lambda b, x, axis: b.transpose(x, permutation=tuple(reversed(range(x.ndim)))),
}


def beside_reductions(other: str, axis: int, over: int) -> Callable[..., Any]:
    """A function that returns values before and after a change of extents, and reductions of both."""

    def function(b: Any, x: Any) -> list[Any]:
        early = b.mul(x, b.full(x.shape, 2.0, x.dtype))
        late = OTHER_EXTENTS[other](b, early, axis)
        gone = late.ndim + over
        if not late.shape[gone]:
            return [late]
        sums = b.reduce_sum(late, axes=(gone,))
        found = [late, early, sums, b.reduce_min(late, axes=(gone,)), b.argmax(late, axis=gone)]
        rows = tuple(1 if a == gone else d for a, d in enumerate(late.shape))
        found.append(b.add(late, b.broadcast_to(b.reshape_to(sums, rows), late.shape)))
        # The other way: what is reduced changes its extents afterwards.
        return [*found, OTHER_EXTENTS[other](b, b.reduce_sum(early, axes=(2,)), min(axis, 1))]

    return function


@pytest.mark.parametrize(
    "shape", [(4, 16, 32), (8, 8, 8), (1, 4, 6), (2, 1, 8), (3, 5, 1), (0, 4, 6), (4, 0, 6)], ids=str
)
@pytest.mark.parametrize("other", OTHER_EXTENTS)
def test_what_is_fused_beside_a_reduction_fits(other: str, shape: tuple[int, ...]) -> None:
    for axis, over in itertools.product(range(3), range(-3, 0)):
        module = module_of([Aval(shape, f32)], beside_reductions(other, axis, over))
        for contractions in ("", "{contractions=true max-buffers=31}"):
            Pipeline.parse(f"cse,dce,fuse{contractions}").run(module, Instrumentation(verify=True))


@pytest.mark.parametrize("other", OTHER_EXTENTS)
def test_values_of_other_extents_beside_a_reduction(other: str) -> None:
    for axis, over in ((1, -1), (2, -2), (1, -2)):
        module = module_of([Aval((4, 16, 32), f32)], beside_reductions(other, axis, over))
        x = random_array(Aval((4, 16, 32), f32))
        want = Interpreter(module)("main", [x])
        for have, expected in zip(run(compile_(module), [x]), want, strict=True):
            np.testing.assert_allclose(have, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("attribute", ["smelt.fusion = 1 : i64", "smelt.kept = 3 : i64", 'smelt.chunks = "two"'])
def test_attributes_of_another_kind_are_refused(attribute: str) -> None:
    module = fusion([X], total, "split", [(0,)], 2)
    name, value = attribute.split(" = ")
    functions(module)["fused"].attributes[name] = mlir.ir.Attribute.parse(value, context())
    with pytest.raises(IRError, match="must be"):
        verify_fusions(module)


# Kernels of one shape that read the same array: merged where each row can hand over what the next reads

N = 64


def spread(b: Any, s: Any, axis: int) -> Any:
    """A value of N elements as a matrix that is constant along the other axis than `axis`."""
    return b.broadcast_to(b.reshape_to(s, (N, 1) if axis == 0 else (1, N)), (N, N))


#: How a second reduction of x reads what the first one gave for each row.
HANDED: dict[str, Callable[[Any, Any, Any], Any]] = {
    "own row": lambda b, x, s: b.mul(x, spread(b, s, 0)),
    "another row": lambda b, x, s: b.mul(x, spread(b, b.reverse(s, axes=(0,)), 0)),
    "every row": lambda b, x, s: b.mul(x, spread(b, s, 1)),
    "own row and every": lambda b, x, s: b.mul(b.mul(x, spread(b, s, 0)), spread(b, s, 1)),
    "transposed": lambda b, x, s: b.add(x, b.transpose(b.mul(x, spread(b, s, 0)), permutation=(1, 0))),
    "next row": lambda b, x, s: b.mul(
        x,
        spread(
            b,
            b.concatenate(
                b.slice(s, start=(1,), stop=(N,), stride=(1,)), b.slice(s, start=(0,), stop=(1,), stride=(1,)), axis=0
            ),
            0,
        ),
    ),
}


@pytest.mark.parametrize("returned", [True, False])
@pytest.mark.parametrize("how", HANDED)
def test_rows_hand_over_only_what_is_their_own(how: str, returned: bool) -> None:
    aval = Aval((N, N), f32)

    def function(b: Any, x: Any) -> list[Any]:
        s = b.reduce_sum(x, axes=(1,))
        m = b.reduce_max(x, axes=(1,))
        found = [b.reduce_sum(HANDED[how](b, x, s), axes=(1,)), b.reduce_min(HANDED[how](b, x, m), axes=(1,))]
        return [*found, s, b.mul(x, spread(b, s, 0))] if returned else found

    module = module_of([aval], function)
    x = random_array(aval)
    want = Interpreter(module)("main", [x])
    for have, expected in zip(run(compile_(module), [x]), want, strict=True):
        np.testing.assert_allclose(have, expected, rtol=1e-4, atol=1e-3)
