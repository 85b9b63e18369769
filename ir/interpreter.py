"""The NumPy interpreter: runs a module with the `reference` rules.

It is the meaning of a smelt program, and the oracle of every numerical test. It understands plain
ops and calls; transformations (`smelt.jvp`, ...) must have been expanded by passes before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import mlir
from .builder import CALL, Function, OpView, Value, functions, read_function
from .control import ControlOp, interpret
from .errors import IRError, SmeltError, at_user_line, file_line
from .scopes import place
from .settings import settings


def run_op(
    op: Any, operands: Sequence[np.ndarray], attrs: dict[str, Any], where: Any = None, reference: bool = False
) -> tuple[np.ndarray, ...]:
    """One op on NumPy arrays; with SMELT_CHECK=1 its indices must be in range.

    What a library computes is computed by it, or by the op's `reference` rule. `where` names the user's line in an
    error of the library: an op of a module, a node's code object and place in it, or a text for the end of the message.
    """
    if settings.check:
        try:
            op.check(*operands, **attrs)
        except SmeltError as error:
            error.args = (at_user_line(str(error)) if where is None else f"{error}{shown_line(where)}",)
            raise
    if not op.tells_line:
        return apply_reference(op, operands, attrs)
    try:
        if op.mixed:
            return apply_reference(op, operands, attrs)
        return op.compute(operands, attrs, reference)
    except SmeltError as error:
        error.args = (f"{error}{shown_line(where)}",)
        raise


def shown_line(where: Any) -> str:
    """The user's line of an op, for the end of a message; `where` as in `run_op`."""
    if isinstance(where, OpView):
        return place(where.location)
    if isinstance(where, tuple):
        return f"; at {file_line(*where)}"
    return where or ""


def apply_reference(op: Any, operands: Sequence[np.ndarray], attrs: dict[str, Any]) -> tuple[np.ndarray, ...]:
    """What an op means: the results of its `reference` rule."""
    result = op.reference(*operands, **attrs)
    return result if isinstance(result, tuple) else (result,)


class Interpreter:
    """Runs functions of one module; each is decoded once. What a library can compute is computed by it, unless
    `reference` rules are asked for.

    >>> # Interpreter(module)("main", [np.ones(3, np.float32)])
    """

    def __init__(self, module: Any, reference: bool = True):
        self._module = module  # owns the operations
        self._reference = reference
        self._functions = functions(module)
        self._decoded: dict[str, Function] = {}

    def __call__(self, name: str, arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
        if name not in self._functions:
            raise IRError(f"the module has no function @{name}; it has {', '.join(self._functions) or 'none'}")
        if name not in self._decoded:
            with mlir.lock:
                self._decoded[name] = read_function(self._functions[name])
        function = self._decoded[name]
        if len(arguments) != len(function.arguments):
            raise IRError(f"@{name} takes {len(function.arguments)} arguments, got {len(arguments)}")
        env: dict[Value, np.ndarray] = {}
        for i, (value, array) in enumerate(zip(function.arguments, arguments)):
            want = value.aval
            if tuple(array.shape) != want.shape or array.dtype != want.dtype.numpy:
                raise IRError(f"argument {i} of @{name} must be {want}, is {array.dtype}{list(array.shape)}")
            env[value] = array
        return self._block(function.ops, function.returns, env)

    def _block(self, ops: list[OpView], returns: list[Value], env: dict[Value, np.ndarray]) -> list[np.ndarray]:
        for op in ops:
            operands = [env[v] for v in op.operands]
            if op.op is CALL:
                results: Sequence[np.ndarray] = self(op.attrs["callee"], operands)
            elif isinstance(op.op, ControlOp):
                results = interpret(op.op, op.attrs, operands, [r.aval for r in op.results], self)
            elif op.op.kind in ("function", "apply", "transform"):
                raise IRError(f"{op.op.name} must be expanded before the module runs; see the pass pipeline")
            else:
                results = self.plain(op, operands)
            env.update(zip(op.results, results))
        return [env[v] for v in returns]

    def plain(self, op: OpView, operands: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """The results of an op that calls no function."""
        return run_op(op.op, operands, op.attrs, op, self._reference)
