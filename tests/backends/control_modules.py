"""Modules with control flow made by hand, and programs of them compared with the interpreter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import smelt.ir.ops  # noqa: F401
from smelt.backends.cpu import program as cpu
from smelt.backends.cpu.threads import Team
from smelt.ir import mlir, text
from smelt.ir.aval import Aval
from smelt.ir.builder import new_function
from smelt.ir.control import COND, SCAN, WHILE
from smelt.ir.dialect import context
from smelt.ir.interpreter import Interpreter
from smelt.passes import Pipeline

from .modules import random_array, run


class Made:
    """A module under construction."""

    def __init__(self) -> None:
        with mlir.ir.Location.unknown(context()):
            self.module = mlir.ir.Module.create()
        self.results: dict[str, list[Aval]] = {}

    def define(self, name: str, avals: Sequence[Aval], function: Callable[..., Sequence[Any]]) -> str:
        """``@name``, computed by ``function(builder, *values)``; its name."""

        def emit(results: Sequence[Aval]) -> tuple[Any, list[Aval]]:
            operation, arguments, b = new_function(self.module, name, avals, results, public=name == "main")
            found = function(b, *arguments)
            if results or not found:
                b.return_(found)
            return operation, [v.aval for v in found]

        operation, results = emit([])
        if results:
            operation.erase()
            emit(results)
        self.results[name] = results
        return name

    def cond(self, b: Any, index: Any, operands: Sequence[Any], *branches: str) -> Sequence[Any]:
        return b.control(COND, [index, *operands], {"branches": branches}, self.results[branches[0]])

    def loop(self, b: Any, cond: str, body: str, operands: Sequence[Any], constants: int = 0) -> Sequence[Any]:
        attrs = {"cond": cond, "body": body, "constants": constants}
        return b.control(WHILE, operands, attrs, self.results[body])

    def scan(
        self, b: Any, body: str, operands: Sequence[Any], length: int, constants: int = 0, carries: int = 0,
        reverse: bool = False,
    ) -> Sequence[Any]:  # fmt: skip
        attrs = {"body": body, "constants": constants, "carries": carries, "length": length, "reverse": reverse}
        found = self.results[body]
        stacked = [a.with_shape((length, *a.shape)) for a in found[carries:]]
        return b.control(SCAN, operands, attrs, [*found[:carries], *stacked])

    def check(
        self, *several: Sequence[np.ndarray], team: Team | None = None, rtol: float = 1e-5, atol: float = 1e-5
    ) -> cpu.Program:
        """Compile and compare with the interpreter on the module as it is now. `several`: lists of arguments; random
        ones where there is none."""
        text.verify(self.module)
        interpreter = Interpreter(self.module)
        if not several:
            arguments = [Aval(tuple(t.shape), _dtype(t)) for t in _argument_types(self.module)]
            several = ([random_array(a, i) for i, a in enumerate(arguments)],)
        wanted = [interpreter("main", list(arrays)) for arrays in several]
        again = text.parse(text.to_text(self.module), "made")
        Pipeline.parse(cpu.PIPELINE).run(again)
        text.verify(again)
        program = cpu.compile_module(again, team)
        for arrays, want in [*zip(several, wanted)] * 2:
            for have, expected in zip(run(program, arrays), want):
                assert have.shape == expected.shape
                if expected.dtype.kind in "fc":
                    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
                    np.testing.assert_allclose(have.astype(wide), expected.astype(wide), rtol=rtol, atol=atol)
                else:
                    np.testing.assert_array_equal(have, expected)
        return program


def _argument_types(module: Any) -> list[Any]:
    from smelt.ir.builder import functions

    block = functions(module)["main"].regions[0].blocks[0]
    return [mlir.ir.RankedTensorType(a.type) for a in block.arguments]


def _dtype(kind: Any) -> Any:
    from smelt.ir.dialect import parse_aval

    return parse_aval(kind).dtype
