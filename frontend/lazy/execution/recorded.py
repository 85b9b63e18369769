"""Recorded functions, transformed, as ops in order: what runs op by op.

Transformations are expanded on tapes (`smelt.passes.transform.tape`). Where one may meet it, a call of a function with
rules of its own stays a call, and branches and loops name functions of the same listed module; elsewhere functions are
part of whoever applies them, and branches and loops keep the recorded functions that they have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from smelt.ir import locks
from smelt.ir.control import ControlOp
from smelt.ir.errors import SmeltError
from smelt.ir.op_program import OpProgram
from smelt.runtime import LruCache

if TYPE_CHECKING:
    from smelt.passes.transform import tape
    from smelt.passes.transform.listed import ListedFunction, ListedModule

from ..build import check_sizes
from ..graph import ALIAS, APPLY, GraphFunction, Ref, transforms_key

Transforms = Sequence[tuple[str, dict[str, Any]]]
#: What may come out of rules.
_FAULTS = (SmeltError, ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)


#: Transformed functions that name no others, by what they compute: a graph that applies one as a part takes it over.
_bodies = LruCache(weigh=lambda body: 1_000 * len(body.ops))


class Transformed(NamedTuple):
    """A function as ops, and the functions that these name."""

    module: ListedModule
    body: tape.Recorded

    def program(self, run_function: Callable[[Any, Sequence[np.ndarray]], list[np.ndarray]]) -> OpProgram:
        """What runs it; `run_function` runs recorded functions.

        Raises:
            NeedsModule: it runs a function that has no body.
        """
        programs: dict[str, OpProgram] = {}

        def run(f: Any, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
            return programs[f].run(operands) if type(f) is str else run_function(f, operands)

        for name, f in self.module.reached(self.body.ops).items():
            programs[name] = OpProgram(f.arguments, f.ops, f.returns, run)
        body = self.body
        return OpProgram(body.arguments, body.ops, body.returns, run, programs.values())


def recorded(f: GraphFunction, transforms: Transforms) -> Transformed | None:
    """A function, transformed; None where that takes the passes."""
    recorder = _Recorder()
    try:
        body = recorder.transformed(f, transforms, False)
        recorder.module.reached(body.ops)
    except _FAULTS:  # also what a rule gets wrong: the passes find it again, and say where
        return None
    return Transformed(recorder.module, body)


class _Recorder:
    """Writes functions of the graph as functions of one listed module."""

    def __init__(self) -> None:  # the transformations are loaded when one is met
        self.tapes = locks.loaded("smelt.passes.transform.tape")
        self.module: ListedModule = locks.loaded("smelt.passes.transform.listed").ListedModule()
        self.made: dict[Any, ListedFunction] = {}

    def transformed(self, f: GraphFunction, transforms: Transforms, around: bool) -> tape.Recorded:
        """A function with its transformations expanded; `around`: whether something around it is transformed, too.

        Raises:
            NeedsModule: a rule transforms the function that it is a rule of. What rules of ops raise.
        """
        key = (f.key, transforms_key(transforms)) if transforms and not around else None
        known: tape.Recorded | None = None if key is None else _bodies.get(key)
        if known is not None:
            return known
        around = around or bool(transforms)
        if around and f.rules:
            body = self.called(f)
        else:
            body = self.body(f, around)
        for name, attrs in transforms:
            transforming = locks.loaded("smelt.passes.transform.tape_transforms")
            body = transforming.transform(self.module, body.pruned(self.module), name, attrs)
        body = body.pruned(self.module)
        if key is not None and not self.module.functions:
            _bodies.put(key, body)
        return body

    def called(self, f: GraphFunction) -> tape.Recorded:
        """A call of a function with rules and nothing else, so that a transformation meets it."""
        to = self.tapes.Tape()
        arguments = [to.argument(aval) for aval in f.arguments]
        return self.tapes.Recorded(arguments, to.ops, to.call(self.name(f), arguments, f.results))

    def name(self, f: GraphFunction) -> str:
        """The function's name in the module, written on first use; equal functions share one."""
        made = self.made.get(f.key)
        if made is None:
            body = self.body(f, True).pruned(self.module)
            made = self.made[f.key] = self.module.keep(f.name, body)
            made.rules = None  # what a rule calls is not transformed before they are known
            made.rules = {key: self._named(value) for key, value in f.rules.items()}
        return made.name

    def _named(self, value: Any) -> Any:
        """An attribute with names in place of functions."""
        if isinstance(value, tuple):
            return tuple([self._named(v) for v in value])
        return self.name(value) if isinstance(value, GraphFunction) else value

    def body(self, f: GraphFunction, around: bool) -> tape.Recorded:
        to = self.tapes.Tape()
        arguments = [to.argument(aval) for aval in f.arguments]
        env: dict[Ref, Any] = {}
        for ref, value in zip(f.parameters, arguments):
            env.setdefault(ref, value)
        for step in f.body:
            check_sizes(step)
            to.location = None if step.where is None else self.tapes.UserPlace(*step.where)
            operands: Sequence[Any] = [env[r] for r in step.inputs]
            if step.op is APPLY:
                inner = self.transformed(step.attrs["callee"], step.attrs["transforms"], around)
                results: Sequence[Any] = to.inline(inner, operands)
            elif step.op is ALIAS:
                results = operands
            else:
                attrs = step.attrs
                if around and isinstance(step.op, ControlOp):
                    attrs = {key: self._named(value) for key, value in attrs.items()}
                results = to.emit_typed(step.op, operands, attrs, step.avals)
            for i, value in enumerate(results):
                env[(step.node, i)] = value
        return self.tapes.Recorded(arguments, to.ops, [env[r] for r in f.outputs])
