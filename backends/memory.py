"""Kernels whose arrays lie in flat memrefs, read and written with conversion.

Stored bool is one byte; half precision is widened when read and rounded when written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from smelt.ir import dtypes, mlir
from smelt.ir.aval import Aval
from smelt.ir.builder import Function, Value
from smelt.ir.dialect import context
from smelt.ir.dtypes import DType
from smelt.ir.index import linearize
from smelt.ir.scalar import Scalar, compute_dtype
from smelt.ir.scalar_emitter import made_from

from .lowering import Coordinates, FusionKernel


class Memory:
    """An array inside a kernel: a flat memref."""

    __slots__ = ("aval", "memref")

    def __init__(self, memref: Any, aval: Aval):
        self.memref, self.aval = memref, aval


class MemoryKernel(FusionKernel):
    """A kernel that loads and stores.

    Attributes:
        stored_as: the dtype of one stored element, where it is not that of the value.
    """

    stored_as: ClassVar[dict[DType, DType]] = {dtypes.bool_: dtypes.uint8}

    def __init__(self, module: Any, entry: Any, location: Any, body: Function | None):
        super().__init__(entry, location, body)
        self.module = module
        self.memory: dict[Value, Memory] = {}

    @classmethod
    def storage(cls, dtype: DType) -> Any:
        """The MLIR type of an element in memory."""
        dtype = cls.stored_as.get(dtype, dtype)
        return mlir.ir.Type.parse(f"i{dtype.bits}" if dtype.kind == "u" else dtype.mlir, context())

    @classmethod
    def buffer_type(cls, aval: Aval) -> Any:
        """The flat memref in which an array of `aval` lives."""
        unknown = mlir.ir.Location.unknown(context())
        return mlir.ir.MemRefType.get([max(1, aval.size)], cls.storage(aval.dtype), loc=unknown)

    def read(self, memory: Memory, offset: Scalar) -> Scalar:
        dtype = memory.aval.dtype
        raw = self.emit("memref.load", [memory.memref, offset], [self.storage(dtype)]).result
        return self.from_storage(raw, dtype)

    def from_storage(self, raw: Any, dtype: DType) -> Scalar:
        if dtype.kind == "b":
            return self.compare("ne", Scalar(self, raw, dtypes.uint8), self.const(0, dtypes.uint8))
        held = compute_dtype(dtype)
        if held is not dtype:
            if dtype in self.stored_as:  # as its bits
                kind = self.shaped(mlir.ir.Type.parse(dtype.mlir, self.context))
                raw = self.emit("arith.bitcast", [raw], [kind]).result
            raw = self.emit("arith.extf", [raw], [self.type(held)]).result
        return Scalar(self, raw, held)

    def to_storage(self, x: Scalar, dtype: DType) -> Any:
        if dtype.kind == "b":
            return self.emit("arith.extui", [x], [self.shaped(self.storage(dtype))]).result
        if compute_dtype(dtype) is not dtype:
            kind = self.shaped(mlir.ir.Type.parse(dtype.mlir, self.context))
            stored = self.shaped(self.storage(dtype))
            raw = made_from(x.mlir, "arith.extf", kind)
            if raw is not None:  # moved and not computed: a signalling NaN keeps its bits
                bits = raw if stored == kind else made_from(raw, "arith.bitcast", stored)
                if bits is not None:
                    return bits
            else:
                raw = self.emit("arith.truncf", [x], [kind]).result
            return self.emit("arith.bitcast", [raw], [stored]).result if stored != kind else raw
        return x.mlir

    def write(self, x: Scalar, memory: Memory, offset: Scalar) -> None:
        self.emit("memref.store", [self.to_storage(x, memory.aval.dtype), memory.memref, offset], [])

    def load(self, v: Value, index: Coordinates) -> Scalar:
        return self.read(self.memory[v], self.index(linearize(index, v.shape)))

    def store(self, x: Scalar, memory: Memory, index: Coordinates) -> None:
        self.write(x, memory, self.index(linearize(index, memory.aval.shape)))

    def when(self, condition: Scalar, body: Callable[[], Any]) -> None:
        """Run `body`, which has no result, only where `condition` holds."""
        operation = self.emit("scf.if", [condition], [], regions=2)
        with self.inside(mlir.ir.Block.create_at_start(operation.regions[0], [])):
            body()
            self.emit("scf.yield", [], [])

    def carried(
        self, condition: Scalar, values: Sequence[Scalar], then: Callable[[], Sequence[Scalar]],
        otherwise: Callable[[], Sequence[Scalar]] | None = None,
    ) -> list[Scalar]:  # fmt: skip
        """What `then` makes of some values where `condition` holds, else what `otherwise` does, or the values."""
        operation = self.emit("scf.if", [condition], [x.mlir.type for x in values], regions=2)
        for region, body in zip(operation.regions, (then, otherwise or (lambda: values))):
            with self.inside(mlir.ir.Block.create_at_start(region, [])):
                self.emit("scf.yield", list(body()), [])
        return [Scalar(self, found, x.dtype) for found, x in zip(operation.results, values)]

    # Constants in memory

    def global_constant(self, array: np.ndarray, dtype: DType) -> Callable[[Scalar], Scalar]:
        flat = np.ascontiguousarray(array).reshape(-1)
        bits = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[dtype.real.size]
        name, kind = _global(self.module, flat.view(bits), self.location)
        ir = mlir.ir
        symbol = ir.FlatSymbolRefAttr.get(name, self.context)
        saved, self.ip = self.ip, ir.InsertionPoint.at_block_begin(self.entry)
        memref = ir.Operation.create(
            "memref.get_global", results=[kind], attributes={"name": symbol}, loc=self.location, ip=self.ip
        ).result
        self.ip = saved

        def look_up(offset: Scalar) -> Scalar:
            if dtype.kind == "c":
                part, parts = dtype.real, []
                for i in (0, 1):
                    raw = self.emit("memref.load", [memref, offset * 2 + i], [kind.element_type]).result
                    parts.append(Scalar(self, self.emit("arith.bitcast", [raw], [self.type(part)]).result, part))
                return self.complex(*parts)
            raw = self.emit("memref.load", [memref, offset], [kind.element_type]).result
            if dtype.kind == "f":
                raw = self.emit("arith.bitcast", [raw], [self.storage(dtype)]).result
            return self.from_storage(raw, dtype)

        return look_up

    def bitcast_storage(self, x: Scalar, dtype: DType) -> Scalar:
        source = self.source_dtype or x.dtype
        raw = self.to_storage(x, source)
        if self.storage(source) != self.storage(dtype):
            raw = self.emit("arith.bitcast", [raw], [self.shaped(self.storage(dtype))]).result
        return self.from_storage(raw, dtype)


def _global(module: Any, flat: np.ndarray, location: Any) -> tuple[str, Any]:
    """A constant global of the module: its name and memref type. Equal arrays share one."""
    ir, ctx = mlir.ir, context()
    element = ir.IntegerType.get_signless(8 * flat.dtype.itemsize, ctx)
    key = (flat.dtype.str, flat.tobytes())
    kind = ir.MemRefType.get([flat.size], element, loc=location)
    if key not in module.globals:
        name = f"constant_{len(module.globals)}"
        value = ir.DenseElementsAttr.get(flat, type=element, shape=[flat.size], context=ctx)
        ir.Operation.create(
            "memref.global",
            attributes={
                "sym_name": ir.StringAttr.get(name, ctx),
                "sym_visibility": ir.StringAttr.get("private", ctx),
                "type": ir.TypeAttr.get(kind, ctx),
                "initial_value": value,
                "constant": ir.UnitAttr.get(ctx),
            },
            loc=location,
            ip=ir.InsertionPoint.at_block_begin(module.body),
        )
        module.globals[key] = name
    return module.globals[key], kind
