"""``smelt-opt --check-ops``: whether the rules of ops agree with each other, those of other packages too."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator

import smelt.ir.ops  # noqa: F401  (fills the registry)
from smelt.backends.device import Device
from smelt.ir.errors import AttributeValueError, SmeltError, innermost_line, shown
from smelt.ir.op import Op, registry
from smelt.ir.plugins import load_all
from smelt.runtime.device import default_device

from .listing import derivative
from .op_checks import CHECKS, checks_of
from .user_code import load_module


def check(names: str, debug: bool = False) -> int:
    """Check ops and print what was found; the exit code: 1 if rules of one do not agree, or one is missing.

    Args:
        names: ops, or modules, packages and Python files that define some, with commas in between; nothing: all ops.

    Raises:
        SmeltError: no such op, and no such module; or one that defines no ops.
    """
    problems = load_all() if not names else []
    for problem in problems:
        print(f"smelt-opt: warning: {problem}", file=sys.stderr)
    failed, device = bool(problems), default_device()
    for op in _asked(names):
        said, is_wrong = _of(op, device, debug)
        print(f"{op.name}: {said}", flush=True)
        failed |= is_wrong
    return int(failed)


def _asked(names: str) -> Iterator[Op]:
    found: dict[str, Op] = {}
    for word in filter(None, (word.strip() for word in names.split(","))):
        known = registry.get(word.removeprefix("smelt."))
        ops = [known] if known is not None else _defined_by(word)
        if not ops:
            raise AttributeValueError(f"--check-ops: {shown(word)} is no op, and a module that defines none")
        found.update((op.name, op) for op in ops)
    yield from found.values() if names else registry.values()


def _defined_by(name: str) -> list[Op]:
    """The ops of a module that is imported here, of those in its package, and of what it imports for the first time."""
    before = set(registry)
    module = load_module(name).__name__
    return [
        op for op in registry.values()
        if op.name not in before or f"{type(op).__module__}.".startswith(f"{module}.")
    ]  # fmt: skip


def _of(op: Op, device: Device, debug: bool) -> tuple[str, bool]:
    """What is to be said of an op, and whether it is wrong."""
    if op.kind == "transform":
        return "not checked: it transforms functions, and means what it states", False
    if op.mixed:
        return "not checked: its operands are of any types", False
    try:
        names = checks_of(op)
    except SmeltError as error:
        return str(error), True
    if derivative(op) == "missing":
        return "no derivative: state jvp, transpose or not_differentiable", True
    wrong = []
    for name in names:
        try:
            CHECKS[name](op, device)
        except Exception as error:  # whatever rules raise
            if debug:
                traceback.print_exception(error)
            wrong.append(f"\n  {name}: {_said(error)}")
    return "".join(wrong) or ", ".join(names), bool(wrong)


def _said(error: Exception) -> str:
    if isinstance(error, SmeltError):
        return str(error)
    line = innermost_line(error)
    return f"{type(error).__name__}: {error}" + (f"; at {line}" if line else "")
