"""Value numbering across functions: values with equal numbers are equal, whatever the arguments are.

An op is identified by its name, its attributes and the numbers of its operands; a call by its callee and the numbers of
its operands; a loop or a branch by what its functions compute. So two programs that differ only in calls, in the order
of ops and in duplicates of ops are proved equal without being run.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from smelt.ir import mlir
from smelt.ir.builder import CALL, Function, OpView, Value, functions, read_function
from smelt.ir.control import ControlOp

from .simplify.cse import hashable


class Numbering:
    """Numbers of values, for any number of modules.

    >>> from smelt.ir import text
    >>> program = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{ {0} return %1 : tensor<4xf32> }}"
    >>> one = text.parse(program.format('%1 = "smelt.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>'))
    >>> two = text.parse(program.format('%1 = call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>') + '''
    ... func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {
    ...   %0 = "smelt.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    ...   return %0 : tensor<4xf32>
    ... }''')
    >>> numbering = Numbering()
    >>> numbering.of(one) == numbering.of(two)
    True
    """

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}

    def of(self, module: Any, name: str = "main") -> Hashable:
        """What a function without transformations returns, and what it does beside that."""
        with mlir.lock:
            return _Functions(module, self.number).abstract(name)

    def number(self, key: Hashable) -> int:
        """The number of what has this key."""
        return self._numbers.setdefault(key, len(self._numbers))


class _Functions:
    """The functions of one module, run on numbers in the place of arrays."""

    def __init__(self, module: Any, number: Callable[[Hashable], int]):
        self._operations, self._number = functions(module), number
        self._read: dict[str, Function] = {}
        self._known: dict[Hashable, tuple[list[int], list[int]]] = {}  # results and effects of calls

    def abstract(self, name: str) -> Hashable:
        """A function on arguments that may be anything."""
        avals = [v.aval for v in self._function(name).arguments]
        results, effects = self._call(name, [self._number(("argument", i, a)) for i, a in enumerate(avals)])
        return tuple(avals), tuple(results), tuple(effects)

    def _function(self, name: str) -> Function:
        if name not in self._read:
            self._read[name] = read_function(self._operations[name])
        return self._read[name]

    def _call(self, name: str, arguments: Sequence[int]) -> tuple[list[int], list[int]]:
        key = name, tuple(arguments)
        if key not in self._known:
            function = self._function(name)
            env = dict(zip(function.arguments, arguments))
            effects: list[int] = []
            for op in function.ops:
                self._op(op, env, effects)
            self._known[key] = [env[v] for v in function.returns], effects
        return self._known[key]

    def _op(self, op: OpView, env: dict[Value, int], effects: list[int]) -> None:
        operands = [env[v] for v in op.operands]
        if op.op is CALL:
            results, inside = self._call(op.attrs["callee"], operands)
            effects += inside
            env.update(zip(op.results, results))
            return
        if op.op.commutative:
            operands.sort()
        made = self._number((op.name, self._attrs(op), *operands))
        env.update((r, self._number((made, i, r.aval))) for i, r in enumerate(op.results))
        if not op.op.pure:
            effects.append(made)

    def _attrs(self, op: OpView) -> Hashable:
        called = op.op.callees if isinstance(op.op, ControlOp) else ()
        return tuple((k, self._called(v) if k in called else hashable(v)) for k, v in sorted(op.attrs.items()))

    def _called(self, names: str | Sequence[str]) -> Hashable:
        return tuple(self.abstract(name) for name in ((names,) if isinstance(names, str) else names))
