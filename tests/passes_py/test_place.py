"""What moves to the CPU, and in which order."""

from __future__ import annotations

import itertools
import pathlib
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from smelt.ir import dtypes, mlir, text
from smelt.ir.aval import Aval
from smelt.ir.builder import Function, functions, read_function
from smelt.ir.errors import PipelineError
from smelt.ir.interpreter import Interpreter
from smelt.passes import Pipeline

from ..backends.modules import f32, module_of, random_array

VECTOR = Aval((6,), f32)


def placed(avals: list[Aval], function: Callable[..., Any], passes: str = "place{dtypes=f64}") -> list[Function]:
    """@main and the functions for the CPU; that the values are the same is checked."""
    module = module_of(avals, function)
    arrays = [random_array(a, i) for i, a in enumerate(avals)]
    want = Interpreter(module)("main", arrays)
    Pipeline.parse(passes).run(module)
    text.verify(module)
    for have, expected in zip(Interpreter(module)("main", arrays), want):
        np.testing.assert_array_equal(have, expected)
    found = functions(module)
    main = read_function(found["main"])
    hosts = [name for name in found if name.startswith("host_")]
    for name in hosts:
        assert mlir.ir.StringAttr(found[name].attributes["smelt.device"]).value == "cpu"
    before = str(module)
    (record,) = Pipeline.parse(passes.split("},")[0] + "}" * ("}," in passes)).run(module)
    assert str(module) == before and not any(record.statistics.values())
    return [main, *(read_function(found[name]) for name in hosts)]


def test_control_flow_is_placed_once() -> None:
    source = (pathlib.Path(__file__).parents[1] / "passes" / "place" / "control.mlir").read_text(encoding="utf-8")
    module = text.parse(source)
    first, second = Pipeline.parse("place{dtypes=f64},place{dtypes=f64}").run(module)
    assert first.statistics["functions placed"] == 3  # both branches, and the function that chooses
    assert not any(second.statistics.values())


def double(b: Any, x: Any) -> Any:
    return b.convert(x, dtype=dtypes.float64)


def single(b: Any, x: Any) -> Any:
    return b.convert(x, dtype=f32)


def test_chains_are_one_function() -> None:
    main, host = placed([VECTOR], lambda b, x: single(b, b.exp(double(b, x))) + x)
    assert [op.name for op in main.ops] == ["func.call", "add"]
    assert [op.name for op in host.ops] == ["convert", "exp", "convert"]


def test_nothing_of_main_stays() -> None:
    main, host = placed([Aval((6,), dtypes.float64)], lambda b, x: b.exp(x))
    assert [op.name for op in main.ops] == ["func.call"] and len(host.ops) == 1


def test_independent_work_is_one_function() -> None:
    def function(b: Any, *xs: Any) -> list[Any]:
        return [single(b, b.exp(double(b, b.sin(x)))) * 2.0 for x in xs]

    main, *hosts = placed([VECTOR] * 5, function)
    assert len(hosts) == 1 and len(hosts[0].returns) == 5
    order = [op.name for op in main.ops if op.op.kind in ("elementwise", "call")]
    assert order == ["sin"] * 5 + ["func.call"] + ["mul"] * 5


def test_each_value_crosses_once() -> None:
    def function(b: Any, x: Any) -> list[Any]:
        y = double(b, x)
        z = b.exp(y) + y
        return [single(b, z), z, z]

    _, host = placed([VECTOR], function)
    assert len(host.arguments) == 1 and len(host.returns) == 2


def test_kinds() -> None:
    def function(b: Any, x: Any) -> Any:
        return b.sort(b.exp(x), axis=0)

    assert len(placed([VECTOR], function, "place{dtypes=f64 kinds=opaque}")) == 1
    assert len(placed([VECTOR], function, "place{kinds=opaque,sort}")) == 2


def test_kernels_are_made_of_the_rest() -> None:
    def function(b: Any, x: Any) -> Any:
        return b.exp(single(b, b.sqrt(double(b, b.exp(x) * 2.0)))) + 1.0

    main, host = placed([VECTOR], function, "place{dtypes=f64},fuse")
    assert [op.attrs["callee"] for op in main.ops] == ["fused_exp_mul", "host_0", "fused_exp_add"]
    assert [op.name for op in host.ops] == ["convert", "sqrt", "convert"]


def test_arguments_are_named() -> None:
    module = text.parse("""
        func.func @main(%x: tensor<6xf32> loc("angles")) -> tensor<6xf64> {
          %0 = "smelt.convert"(%x) {dtype = f64} : (tensor<6xf32>) -> tensor<6xf64>
          return %0 : tensor<6xf64>
        }""")
    Pipeline.parse("place{dtypes=f64}").run(module)
    host = read_function(functions(module)["host_0"])
    assert host.arguments[0].mlir.location.name_str == "angles"


def test_options_as_text() -> None:
    for spelling in ("place", "place{dtypes=f64}", "place{dtypes=f64,complex<f32> kinds=opaque,sort},cse"):
        assert str(Pipeline.parse(spelling)) == spelling
    with pytest.raises(PipelineError, match="there is no dtype 'f65'"):
        Pipeline.parse("place{dtypes=f65}").run(module_of([VECTOR], lambda b, x: b.exp(x)))


@pytest.mark.parametrize("seed", range(20))
def test_random_programs(seed: int) -> None:
    draw = random.Random(seed)
    choices = [draw.random() for _ in range(200)]

    def function(b: Any, *xs: Any) -> list[Any]:
        left = iter(choices)
        values = list(xs)
        for _ in range(25):
            x, y = (values[int(next(left) * len(values))] for _ in range(2))
            if x.dtype is not y.dtype or next(left) < 0.3:
                values.append(single(b, x) if x.dtype is dtypes.float64 else double(b, x))
            else:
                values.append(b.maximum(x, y) if next(left) < 0.5 else b.neg(x))
        return values[-3:]

    main, *hosts = placed([VECTOR] * 3, function)
    assert all(dtypes.float64 not in {v.dtype for v in op.results} for op in main.ops if op.op.kind != "call")
    callees = [op.attrs["callee"] for op in main.ops if op.op.kind == "call"]
    kinds = [op.op.kind == "call" for op in main.ops]
    assert len(callees) == len(hosts) and not any(a and b for a, b in itertools.pairwise(kinds))
