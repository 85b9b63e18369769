"""Checked kernels (``SMELT_CHECK=1``): an access out of bounds is reported, and touches no memory.

Each load and store compares its offset with the size of the array. Where it lies outside, a load gives
the first element and a store does nothing; the program runs to its end and then raises. An index that
`gather` would clamp, or for which `scatter` would drop its update, raises too. Without the setting none
of this is in the machine code.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

from smelt.ir import mlir
from smelt.ir.builder import OpView
from smelt.ir.dialect import context
from smelt.ir.errors import IndexOutOfRangeError, KernelError, SmeltError
from smelt.ir.text import line_of

#: What checked machine code calls: ``(site, value)``, two i64.
REPORT = "smelt_report"
#: The function of the module that calls it, if nothing was reported in this run.
OUTSIDE = "smelt_outside"
#: The global that says whether something was.
FLAG = "smelt_reported"


class Site(NamedTuple):
    """One place in the code of a kernel where something is checked.

    Attributes:
        does: what happens there, with ``{}`` for the offset or index: "stores element {} of f32[3]".
        rule: what must hold.
        op: for which that is computed; empty where it is for none.
        is_index: whether it is the user's index that is wrong, not the kernel.
        unsigned: whether the value has 64 bits without a sign.
    """

    kernel: str
    does: str
    rule: str
    op: str
    line: str
    is_index: bool = False
    unsigned: bool = False

    def error(self, value: int) -> SmeltError:
        """The error for a value that breaks the rule."""
        what = self.does.format(value + (1 << 64) if self.unsigned and value < 0 else value)
        at = f"; at {self.line}" if self.line else ""
        if self.is_index:
            return IndexOutOfRangeError(f"{self.op or 'smelt'}: {what}, {self.rule} (kernel @{self.kernel}){at}")
        op = f"{self.op}: " if self.op else ""
        next_step = "a fault of smelt: please report it with the IR that SMELT_DUMP_IR=dir writes"
        return KernelError(f"{op}kernel @{self.kernel} {what}, {self.rule}; {next_step}{at}")


class Checks:
    """What the kernels of one program check, and what they found.

    Args:
        sites: where they check, by the numbers that machine code knows.
    """

    def __init__(self, sites: list[Site]) -> None:
        self.sites = sites
        found: list[tuple[int, int]] = []
        self._found = found

        def report(site: int, value: int) -> None:
            if not found:  # the first of a run
                found.append((site, value))

        self._report = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)(report)

    def symbols(self) -> dict[str, int]:
        """The address of what machine code calls."""
        return {REPORT: ctypes.cast(self._report, ctypes.c_void_p).value or 0}

    def raise_found(self) -> None:
        """Raise what was found since the last time, if anything was."""
        if self._found:
            site, value = self._found[0]
            self._found.clear()
            raise self.sites[site].error(value)


def name_of(entry: Any) -> str:
    """The function whose entry block this is."""
    return str(mlir.ir.StringAttr(entry.owner.attributes["sym_name"]).value)


def op_at(op: OpView | None, location: Any) -> tuple[str, str]:
    """An op's name and the user's line."""
    line = line_of(op.location if op is not None else location) or line_of(location)
    return (f"smelt.{op.name}" if op is not None else ""), line


def declare(module: Any) -> Any:
    """The symbol that reports; declared in the module once."""
    if REPORT not in module.declared:
        module.declared.add(REPORT)
        i64 = mlir.ir.IntegerType.get_signless(64, context())
        module.declare(REPORT, [i64, i64])
    return mlir.ir.FlatSymbolRefAttr.get(REPORT, context())


def flag(module: Any) -> Any:
    """The type of the global FLAG, which is made once."""
    ir, ctx = mlir.ir, context()
    unknown = ir.Location.unknown(ctx)
    kind = ir.MemRefType.get([1], ir.IntegerType.get_signless(8, ctx), loc=unknown)
    if FLAG not in module.declared:
        module.declared.add(FLAG)
        attributes = {
            "sym_name": ir.StringAttr.get(FLAG, ctx),
            "sym_visibility": ir.StringAttr.get("private", ctx),
            "type": ir.TypeAttr.get(kind, ctx),
            "initial_value": ir.Attribute.parse("dense<0> : tensor<1xi8>", ctx),
        }
        ip = ir.InsertionPoint.at_block_begin(module.body)
        ir.Operation.create("memref.global", attributes=attributes, loc=unknown, ip=ip)
    return kind
