"""What holds of every op that a library computes: its host against its reference or properties, batches, errors."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import numpy as np
import pytest

import smelt
from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.errors import AttributeValueError, LibraryError, OutOfMemoryError, ShapeError
from smelt.ir.interpreter import run_op
from smelt.ir.library import Library
from smelt.ir.op import Operand, registry
from smelt.lazy.arrays import array, emit_all
from smelt.passes import Pipeline
from smelt.runtime import Buffer, compile_module
from smelt.runtime.device import reference
from smelt.tools.op_checks import check_library, narrowest, tolerance

from ..devices import with_kernels
from .cases import EXPAND, example, module_of, random_operands
from .edges import edge_cases
from .variants import every_case

LIBRARY = [op for op in registry.values() if isinstance(op, Library)]
each_library_op = pytest.mark.parametrize("op", LIBRARY, ids=lambda op: op.name)
DEVICES = (*with_kernels(), reference)


def test_there_are_some() -> None:
    assert {"cholesky", "qr", "solve_triangular"} <= {op.name for op in LIBRARY}


@each_library_op
def test_it_keeps_the_contract(op: Library) -> None:
    own = type(op)
    assert own.host is not Library.host, f"{op} has no host"
    assert own.reference is not Library.reference or own.properties is not Library.properties, (
        f"{op} states neither an independent reference nor properties"
    )
    assert "batch" not in vars(own) and "infer" not in vars(own), f"{op} inherits infer and batch from its core"
    assert op.num_results == len(op.core_results)


@each_library_op
def test_the_library_agrees_with_reference_and_properties(op: Library) -> None:
    for case in (*every_case(op), *edge_cases(op)):
        operands = random_operands(case, np.random.default_rng(3))
        for x in operands:
            x.flags.writeable = False
        check_library(case, operands, run_op(op, operands, case.kwargs), "host")


@pytest.mark.parametrize("device", DEVICES, ids=lambda d: d.name)
@each_library_op
def test_every_device_agrees_with_reference_and_properties(op: Library, device: Any) -> None:
    for case in every_case(op):
        operands = random_operands(case, np.random.default_rng(4))
        program = compile_module(module_of(case), device)
        found = [x.array for x in program.run([Buffer.of(x, a) for x, a in zip(operands, case.avals)])]
        check_library(case, operands, found, device.name)
        with smelt.stream(device):
            inputs = [smelt.array(x, a.dtype) for x, a in zip(operands, case.avals)]
            lazy = [np.asarray(x) for x in emit_all(op, inputs, case.kwargs)]
        check_library(case, operands, lazy, f"{device.name}, op by op")


@each_library_op
def test_a_batch_is_one_call_of_the_library(op: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a batch of batches, one of whose operands has no batch axis: neither a loop nor a copy of that operand."""
    case = example(op)
    n = len(case.avals)
    calls = []
    host = type(op).host
    monkeypatch.setattr(type(op), "host", lambda *xs, **attrs: calls.append(xs[1:]) or host(*xs, **attrs))

    def f(*xs: array) -> Any:
        return emit_all(op, xs, case.kwargs)

    for axes in {(0,) * n, *(tuple(0 if i == j else None for j in range(n)) for i in range(n))}:
        operands = [
            np.stack([np.stack([x, x], 0)] * 3, 0) if axis == 0 else x
            for x, axis in zip(random_operands(case, np.random.default_rng(5)), axes)
        ]
        batched = smelt.vmap(smelt.vmap(f, in_axes=axes), in_axes=axes)
        inputs = [smelt.array(x) for x in operands]
        traced = smelt.compile(batched).trace(*inputs)
        module = traced.lower().module
        EXPAND.run(module)
        text = str(module)
        assert text.count(f'"smelt.{op.name}"') == 1 and "scf." not in text
        calls.clear()
        with smelt.stream(smelt.cpu):  # a device may have a library of its own
            found = smelt.compile(batched)(*inputs)
            smelt.eval(found)
        assert len(calls) == 1
        assert [x.size for x in calls[0]] == [x.size for x in operands]
        for x in found:
            assert x.shape[:2] == (3, 2)
            np.testing.assert_allclose(x[0, 0], x[2, 1], rtol=1e-6)


@each_library_op
def test_nan_and_infinities_end_without_error(op: Library) -> None:
    """A matrix of a batch that is not finite leaves the others as they are, and has NaN or infinities in its result."""
    for case in every_case(op):
        if case.results[0].ndim < 3 or any(a.ndim != case.avals[0].ndim for a in case.avals):
            continue
        if not all(a.dtype.is_inexact for a in case.avals):
            continue
        good = random_operands(case, np.random.default_rng(6))
        want = run_op(op, good, case.kwargs)
        for value in (np.nan, np.inf, -np.inf):
            for i in range(len(good)):
                bad = [x.copy() for x in good]
                bad[i][(0,) * (bad[i].ndim - 2)][:] = value
                found = run_op(op, bad, case.kwargs)
                for x, y in zip(found, want):
                    first = (0,) * (x.ndim - 2)
                    np.testing.assert_allclose(np.delete(x, 0, 0), np.delete(y, 0, 0), **tolerance(narrowest(case)))
                assert not all(np.isfinite(x[first]).all() for x in found), f"{case} {value}"


class Failing(Library):
    """An op of no name in the registry, whose library raises what it is told to."""

    name = "failing"
    a: Operand
    core = "(n)->(n)"
    error: ClassVar[BaseException] = ValueError()

    def host(self, a):
        raise self.error


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (np.linalg.LinAlgError("SVD did not converge"), LibraryError, "SVD did not converge"),
        (ValueError("illegal value in argument 3"), LibraryError, "illegal value in argument 3"),
        (RuntimeError(), LibraryError, "RuntimeError"),
        (LibraryError("the matrix is singular"), LibraryError, "the matrix is singular"),
        (MemoryError(), OutOfMemoryError, "MemoryError"),
    ],
)
def test_whatever_a_library_raises_names_op_and_operands_and_line(
    error: Exception, kind: type[Exception], text: str
) -> None:
    op = Failing()
    op.error = error
    with pytest.raises(kind, match=re.escape(f"smelt.failing: {text}; a f32[2,3]; at model.py:17")) as caught:
        run_op(op, [np.ones((2, 3), np.float32)], {}, "; at model.py:17")
    assert isinstance(caught.value, smelt.SmeltError)
    op.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        run_op(op, [np.ones((2, 3), np.float32)], {})


def test_results_may_have_axes_and_dtypes_of_their_own() -> None:
    class Spectrum(Library):
        """The shape of a spectrum of real numbers."""

        a: Operand
        core = "(n)->(k),(),(3)"

        def extents(self, dims):
            return {"k": dims["n"] // 2 + 1}

        def result_dtypes(self, operand):
            return [dtypes.complex64, operand, dtypes.int32]

    f32, op = dtypes.float32, Spectrum()
    assert op.num_results == 3
    assert op.infer(Aval((5, 2, 8), f32)) == (
        Aval((5, 2, 5), dtypes.complex64), Aval((5, 2), f32), Aval((5, 2, 3), dtypes.int32)
    )  # fmt: skip


@pytest.mark.parametrize("core", ["", "(n)", "n->n", "(n)->", "(n)->(n)->(n)", "(n,)->(n)", "(n)(m)x->(n)"])
def test_a_core_that_says_nothing_is_an_error(core: str) -> None:
    with pytest.raises(AttributeValueError, match="names no core axes"):
        type("Wrong", (Library,), {"core": core})


def test_a_core_has_an_entry_for_each_operand() -> None:
    with pytest.raises(AttributeValueError, match=re.escape("operands (a), its core is '(n),(n)->(n)'")):

        class Wrong(Library, name="wrong_core"):
            a: Operand
            core = "(n),(n)->(n)"

    assert "wrong_core" not in registry


def test_fixed_extents_of_a_core() -> None:
    class Cross(Library):
        """Vectors of three numbers."""

        a: Operand
        b: Operand
        core = "(3),(3)->(3)"

    def three(*shape: int) -> Aval:
        return Aval(shape, dtypes.float32)

    assert Cross().infer(three(5, 1, 3), three(4, 3)) == three(5, 4, 3)
    with pytest.raises(ShapeError, match=re.escape("the last axis of b must be (3), here (2,), with 3 = 3")):
        Cross().infer(three(3), three(2))


def test_the_pipeline_of_metal_places_them() -> None:
    from smelt.backends.metal import program as metal

    for op in LIBRARY:
        module = module_of(example(op))
        Pipeline.parse(metal.PIPELINE).run(module)
        assert 'smelt.device = "cpu"' in str(module)
