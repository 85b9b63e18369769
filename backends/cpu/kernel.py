"""Kernels of the cpu backend: functions on memrefs."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from smelt.backends.lowering import Coordinates, Fused
from smelt.backends.memory import Memory
from smelt.ir import dtypes, mlir
from smelt.ir.aval import Aval
from smelt.ir.builder import Function, OpView
from smelt.ir.dialect import context
from smelt.ir.dtypes import DType
from smelt.ir.index import Index
from smelt.ir.scalar import INDEX, Scalar
from smelt.passes.rewrite import is_fusion

from . import alike, checks
from .checks import Site
from .hasty import is_small, is_tiny, leave_rolled, leave_scalar, leave_whole
from .tangled import is_tangled
from .unrounded import is_read, is_unrounded
from .vectors import VectorKernel

if TYPE_CHECKING:
    from .polling import Breaks

_UNSIGNED_LESS = 6  # arith.cmpi's predicate
#: How MLIR describes a memref with one axis: where it was allocated, where it begins, offset, sizes, strides.
_DESCRIPTOR = "!llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>"
_SIZE = re.compile(r"memref<\d+x")


class CpuKernel(VectorKernel):
    """One ``func.func`` on memrefs under construction.

    bfloat16 is stored as its bits and converted by integer arithmetic: LLVM's own bfloat16 needs
    instructions or libraries that a CPU may lack. float16 is stored so, too: vectors of halves do not go past the
    caches where a CPU computes with them.
    """

    stored_as = {dtypes.bool_: dtypes.uint8, dtypes.bfloat16: dtypes.uint16, dtypes.float16: dtypes.uint16}

    def __init__(self, module: KernelModule, entry: Any, location: Any, body: Function | None):
        super().__init__(module, entry, location, body)
        #: whether it does not matter how fast it is
        self.hasty = body is not None and is_fusion(body.mlir) and is_small(body)
        #: whether there is one way for all of its elements, also where another is quicker for usual ones
        self.tiny = self.hasty and body is not None and is_tiny(body)
        self._in_order = False  #: see `in_order`
        self._whole: Callable[[Any], bool] | None = None  #: see `whole`
        self.breaks: Breaks | None = None
        self._quick: tuple[Any, list[Scalar]] | None = None  #: see `quick`, and the block that it is for
        self.checks: list[Site] | None = module.checks
        self.checks_indices = module.checks is not None
        self._evaluated: OpView | None = None  #: the op whose element is being computed
        self._accessed: Memory | None = None

    def scratch(self, size: int, dtype: DType) -> Memory:
        """Thread-local memory of `size` elements, on the stack."""
        aval = Aval((size,), dtype)
        ir = mlir.ir
        saved, self.ip = self.ip, ir.InsertionPoint.at_block_begin(self.entry)
        sizes = ir.DenseI32ArrayAttr.get([0, 0], self.context)
        i64 = ir.IntegerType.get_signless(64, self.context)
        memref = self.emit(
            "memref.alloca", [], [self.buffer_type(aval)],
            operandSegmentSizes=sizes, alignment=ir.IntegerAttr.get(i64, 64),
        ).result  # fmt: skip
        self.ip = saved
        return Memory(memref, aval)

    def call(self, function: str, memrefs: Sequence[Any], *bounds: Scalar) -> None:
        """Call a kernel. Its arrays may have another number of elements than those that it was built for."""
        self.module.calls.add((checks.name_of(self.entry), function))
        kinds = self.module.parameters[function]
        passed = [
            memref if memref.type == kind else self._resized(memref, kind) for memref, kind in zip(memrefs, kinds)
        ]
        symbol = mlir.ir.FlatSymbolRefAttr.get(function, self.context)
        self.emit("func.call", [*passed, *bounds], [], callee=symbol)

    def _resized(self, memref: Any, kind: Any) -> Any:
        one, numbers = mlir.ir.DenseI64ArrayAttr.get([1], self.context), mlir.ir.DenseI64ArrayAttr
        return self.emit(
            "memref.reinterpret_cast", [memref], [kind], static_strides=one,
            static_offsets=numbers.get([0], self.context), static_sizes=numbers.get(kind.shape, self.context),
            operandSegmentSizes=mlir.ir.DenseI32ArrayAttr.get([1, 0, 0, 0], self.context),
        ).result  # fmt: skip

    def address_of(self, memref: Any) -> Scalar:
        """Where a buffer begins, as a number."""
        found = self.emit("memref.extract_aligned_pointer_as_index", [memref], [self.type(INDEX)]).result
        return Scalar(self, found, INDEX)

    def at_address(self, address: Scalar, kind: Any) -> Any:
        """What lies at an address, an int64, as a flat memref of a type: the descriptor that MLIR would make."""
        ctx, ir = self.context, mlir.ir
        ctx.get_dialect_descriptor("llvm")  # loads it
        pointer, struct = ir.Type.parse("!llvm.ptr", ctx), ir.Type.parse(_DESCRIPTOR, ctx)
        first = self.emit("llvm.inttoptr", [address], [pointer]).result
        found = self.emit("llvm.mlir.undef", [], [struct]).result
        zero = self.const(0, dtypes.int64)
        for place, value in ((0, first), (1, first), (2, zero)):
            position = ir.DenseI64ArrayAttr.get([place], ctx)
            found = self.emit("llvm.insertvalue", [found, value], [struct], position=position).result
        return self.emit("builtin.unrealized_conversion_cast", [found], [kind]).result

    def looped(self, operation: Any) -> None:
        if is_tangled(operation):
            leave_scalar(operation)
        elif self.hasty:
            leave_rolled(operation)
        elif self._whole is not None and self._whole(operation):
            leave_whole(operation)

    @contextmanager
    def rolled(self) -> Iterator[None]:
        """Loops that are not unrolled."""
        saved, self.hasty = self.hasty, True
        try:
            yield
        finally:
            self.hasty = saved

    @contextmanager
    def whole(self, which: Callable[[Any], bool] = lambda loop: True) -> Iterator[None]:
        """Loops, or some of them, that are not unrolled before LLVM has made vectors of them."""
        saved, self._whole = self._whole, which
        try:
            yield
        finally:
            self._whole = saved

    @contextmanager
    def in_order(self) -> Iterator[None]:
        """Sums and products whose order LLVM does not change."""
        saved, self._in_order = self._in_order, True
        try:
            yield
        finally:
            self._in_order = saved

    def convert(self, x: Scalar, dtype: DType) -> Scalar:
        if dtype is dtypes.bfloat16 and x.dtype is dtypes.float32 and is_unrounded(x.mlir):
            return x
        return super().convert(x, dtype)

    def to_storage(self, x: Scalar, dtype: DType) -> Any:
        if dtype is dtypes.bfloat16 and not is_read(x.mlir) and is_unrounded(x.mlir):
            return self.convert(self.bitcast(x, dtypes.uint32) >> 16, dtypes.uint16).mlir
        return super().to_storage(x, dtype)

    # Rare elements; see `usual`

    @contextmanager
    def quick(self) -> Iterator[list[Scalar]]:
        """Emit what is right for usual elements; the conditions for it are found meanwhile."""
        conditions: list[Scalar] = []
        saved, self._quick = self._quick, (self.ip.block, conditions)
        try:
            yield conditions
        finally:
            self._quick = saved

    def usually(self, quick: Callable[[], tuple[Scalar, Scalar]], general: Callable[[], Scalar]) -> Scalar:
        if self._quick is None or self.ip.block != self._quick[0]:  # what a branch computes is not known outside
            return general()
        found, is_right = quick()
        self._quick[1].append(is_right)
        return found

    # Long kernels; see `polling`

    def for_(
        self, lower: Scalar, upper: Scalar, body: Callable[..., Sequence[Scalar] | None],
        carries: Sequence[Scalar] = (), step: int = 1,
    ) -> list[Scalar]:  # fmt: skip
        given = [c.dtype for c in carries]

        def by_parts(at: Scalar, *parts: Scalar) -> Sequence[Scalar] | None:
            found = body(at, *self._joined(parts, given))
            return found and self._parted(found)

        if any(dtype.kind == "c" for dtype in given):  # LLVM finds no sums in what is carried as a pair
            return self._joined(self.for_(lower, upper, by_parts, self._parted(carries), step), given)
        if self.breaks is None:
            return super().for_(lower, upper, body, carries, step)
        return self.breaks.loop(self, super().for_, lower, upper, body, carries, step)

    def _parted(self, xs: Sequence[Scalar]) -> list[Scalar]:
        """Complex numbers as their parts, one after the other."""
        return [p for x in xs for p in ((self.real(x), self.imag(x)) if x.dtype.kind == "c" else (x,))]

    def _joined(self, parts: Sequence[Scalar], given: Sequence[DType]) -> list[Scalar]:
        left = iter(parts)
        return [self.complex(next(left), next(left)) if dtype.kind == "c" else next(left) for dtype in given]

    def add_reassociating(self, x: Scalar, y: Scalar) -> Scalar:
        if x.dtype.kind != "c":
            return super().add_reassociating(x, y)
        add = super().add_reassociating
        return self.complex(add(self.real(x), self.real(y)), add(self.imag(x), self.imag(y)))

    def _reassociating(self, name: str, x: Scalar, y: Scalar) -> Scalar:
        return self.op(name, [x, y], x.dtype) if self._in_order else super()._reassociating(name, x, y)

    def loop(
        self, fused: Fused | None, lower: Scalar, upper: Scalar, body: Callable[..., Sequence[Scalar] | None],
        carries: Sequence[Scalar] = (), step: int = 1,
    ) -> list[Scalar]:  # fmt: skip
        if fused is not None and self.breaks is not None and not self.breaks.expected:
            self.expect(max(1, fused.extent // step // self.breaks.parts))
        return super().loop(fused, lower, upper, body, carries, step)

    def expect(self, steps: int) -> None:
        """State how many steps the next loop has, in all threads together, if its bounds do not tell."""
        if self.breaks is not None:
            self.breaks.expected = steps

    # Checks (SMELT_CHECK=1); see `checks`

    def _evaluate(self, op: OpView, index: Coordinates) -> None:
        before, self._evaluated = self._evaluated, op
        super()._evaluate(op, index)
        self._evaluated = before

    def emit(self, name: str, operands: Sequence[Any], types: Sequence[Any], regions: int = 0, **attrs: Any) -> Any:
        if self.checks is None or name not in ("memref.load", "memref.store", "vector.load", "vector.store"):
            return super().emit(name, operands, types, regions, **attrs)
        with self.vectors(0):
            return self._emit_checked(name, operands, types, regions, attrs)

    def _emit_checked(
        self, name: str, operands: Sequence[Any], types: Sequence[Any], regions: int, attrs: dict[str, Any]
    ) -> Any:  # fmt: skip
        """A load or a store, of an array's element or of a vector of them."""
        *value, memref, offset = operands
        size, lanes = memref.type.shape[0], 1
        if name.startswith("vector"):
            lanes = (_mlir(value[0]).type if value else types[0]).shape[0]
        memory = self._accessed if self._accessed is not None and self._accessed.memref == memref else None
        if memory is not None:
            size = memory.aval.size
        at = offset if isinstance(offset, Scalar) else Scalar(self, offset, INDEX)
        last = at + (lanes - 1) if lanes > 1 else at
        inside = self._less(last, self.const(size, INDEX))
        what = str(memory.aval if memory is not None else memref.type)
        site = self._site(
            f"{'stores' if value else 'loads'} element {{}} of {what}",
            f"which has {size} element{'s' if size != 1 else ''}",
        )
        plain = super().emit
        if not value:
            first = self.required(inside, site, last, at)
            return plain(name, [memref, first], types, regions, **attrs)
        self.require(inside, site, last, lambda: plain(name, [*value, memref, at], types, regions, **attrs))
        return None

    def read(self, memory: Memory, offset: Scalar) -> Scalar:
        if self.checks is None:
            return super().read(memory, offset)
        if not memory.aval.size:  # not even a first element
            site = self._site(f"loads element {{}} of {memory.aval}", "which has 0 elements")
            self.require(self.const(False, dtypes.bool_), site, offset)
            return self.const(0, memory.aval.dtype)
        self._accessed = memory
        return super().read(memory, offset)

    def write(self, x: Scalar, memory: Memory, offset: Scalar) -> None:
        self._accessed = memory
        super().write(x, memory, offset)

    def load_vector(self, memory: Memory, offset: Scalar) -> Scalar:
        self._accessed = memory
        return super().load_vector(memory, offset)

    def load_stored(self, memory: Memory, offset: Scalar, kind: Any) -> Any:
        self._accessed = memory
        return super().load_stored(memory, offset, kind)

    def store_vector(self, x: Scalar, memory: Memory, offset: Scalar) -> None:
        self._accessed = memory
        super().store_vector(x, memory, offset)

    def store_stored(self, raw: Any, memory: Memory, offset: Scalar, past: bool = False) -> None:
        self._accessed = memory
        super().store_stored(raw, memory, offset, past)

    def dynamic(self, x: Scalar, lo: int, hi: int) -> Index:
        if self._lanes:
            if hi <= lo:  # all lanes have the index that there is, but may have asked for others
                lanes = self.each_lane(x) if self.checks is not None else []
                with self.vectors(0):
                    for lane in lanes:
                        self.dynamic(lane, lo, hi)
                return Index(lo)
            same = self.the_same(x)
            with self.vectors(0):
                return self.dynamic(same, lo, hi)
        if self.checks is not None:
            least, most = np.iinfo(x.dtype.numpy).min, np.iinfo(x.dtype.numpy).max
            ok = self.const(least <= hi and most >= lo, dtypes.bool_)
            if least < lo <= most:
                ok = self.logical_and(ok, x >= lo)
            if least <= hi < most:
                ok = self.logical_and(ok, x <= hi)
            site = self._site("index {}", f"which lies outside {lo} … {hi}", True, x.dtype is dtypes.uint64)
            self.require(ok, site, x)
        return super().dynamic(x, lo, hi)

    def _less(self, x: Scalar, y: Scalar) -> Scalar:
        """As numbers without a sign: what is negative is large."""
        i64 = mlir.ir.IntegerType.get_signless(64, self.context)
        return self.op("arith.cmpi", [x, y], dtypes.bool_, predicate=mlir.ir.IntegerAttr.get(i64, _UNSIGNED_LESS))

    def _extremum(self, stem: str, x: Scalar, y: Scalar) -> Scalar:
        if x.dtype.kind == "f":
            x, y = self._settled(x), self._settled(y)
        return super()._extremum(stem, x, y)

    def _settled(self, x: Scalar) -> Scalar:
        """x as a value that LLVM does not look into, where it may be an infinity that was chosen: an extremum with it
        would become one that is computed only where it was not, and a loop of those has no vectors."""
        owner = x.mlir.owner
        if isinstance(owner, mlir.ir.Block) or owner.operation.name != "arith.select":
            return x
        if not any(_is_infinite(arm) for arm in owner.operation.operands[1:]):
            return x
        return Scalar(self, self.emit("llvm.freeze", [x], [x.mlir.type]).results[0], x.dtype)

    def at_most(self, end: Scalar, extent: int) -> Scalar:
        """`end`, where a kernel's range ends within its parallel dimension; else that is reported, and it is 0."""
        site = self._site("runs up to {}", f"but has {extent} steps")
        inside = self._less(end, self.const(extent + 1, INDEX))
        return self.required(inside, site, end, end)

    def in_range(self, memref: Any, offset: Scalar, aval: Aval) -> Scalar:
        """`offset`, where an array there lies within a memref of bytes; else that is reported, and it is 0."""
        size = memref.type.shape[0]
        if size < aval.nbytes:
            raise AssertionError(f"{aval} does not fit into {memref.type}")
        site = self._site(f"puts {aval} at byte {{}} of {size}", "where it does not fit")
        inside = self._less(offset, self.const(size - aval.nbytes + 1, INDEX))
        return self.required(inside, site, offset, offset)

    def require(
        self, condition: Scalar, site: Site, value: Scalar, then: Callable[[], Any] = lambda: None
    ) -> None:  # fmt: skip
        """Report `value` where `condition` does not hold, else do `then`. Only for checked kernels."""
        report = self._report(site, value)
        operation = self.emit("scf.if", [condition], [], regions=2)
        for region, body in zip(operation.regions, (then, report)):
            with self.inside(mlir.ir.Block.create_at_start(region, [])):
                body()
                self.emit("scf.yield", [], [])

    def required(self, condition: Scalar, site: Site, value: Scalar, found: Scalar) -> Scalar:
        """An index, `found`; where `condition` does not hold, `value` is reported, and it is 0."""
        self.require(condition, site, value)
        return self.select(condition, found, self.const(0, INDEX))  # a value that can be compared: see `is_same`

    def _report(self, site: Site, value: Scalar) -> Callable[[], None]:
        """Emits a call that reports a value, as one of many in a kernel: what it does stands in a function."""
        assert self.checks is not None
        operands = [self.const(len(self.checks), dtypes.int64), self.convert(value, dtypes.int64)]
        self.checks.append(site)
        symbol = self._reporter()
        return lambda: self.emit("func.call", operands, [], callee=symbol)

    def _reporter(self) -> Any:
        """The function ``(site, value)`` that reports what is the first of a run."""
        module, name = self.module, checks.OUTSIDE
        if name not in module.declared:
            module.declared.add(name)
            symbol = checks.declare(module)
            entry = module.function(name, [self.type(dtypes.int64)] * 2, mlir.ir.Location.unknown(self.context))
            k = CpuKernel(module, entry, mlir.ir.Location.unknown(self.context), None)

            def report() -> None:
                k.set_reported(True)
                k.emit("func.call", entry.arguments, [], callee=symbol)

            k.when(~k._is_reported(), report)
            k.emit("func.return", [], [])
        return mlir.ir.FlatSymbolRefAttr.get(name, self.context)

    def _flag(self) -> Any:
        """Whether something was reported in this run: a byte that all kernels share."""
        ir = mlir.ir
        symbol, kind = {"name": ir.FlatSymbolRefAttr.get(checks.FLAG, self.context)}, checks.flag(self.module)
        return ir.Operation.create(
            "memref.get_global", results=[kind], attributes=symbol, loc=self.location, ip=self.ip
        ).result

    def _is_reported(self) -> Scalar:
        byte = super().emit("memref.load", [self._flag(), self.const(0, INDEX)], [self.storage(dtypes.uint8)]).result
        return Scalar(self, byte, dtypes.uint8).ne(self.const(0, dtypes.uint8))

    def set_reported(self, reported: bool) -> None:
        """Only the first report of a run counts; more would cost time."""
        byte = self.const(int(reported), dtypes.uint8)
        super().emit("memref.store", [byte, self._flag(), self.const(0, INDEX)], [])

    def _site(self, does: str, rule: str, is_index: bool = False, unsigned: bool = False) -> Site:
        op = self._evaluated
        if op is None and self.body is not None and self.body.ops:
            op = self.body.ops[-1]
        name, line = checks.op_at(op, self.location)
        return Site(checks.name_of(self.entry), does, rule, name, line, is_index, unsigned)


def _is_infinite(value: Any) -> bool:
    owner = value.owner
    if isinstance(owner, mlir.ir.Block) or owner.operation.name != "arith.constant":
        return False
    attribute = owner.operation.attributes["value"]
    return isinstance(attribute, mlir.ir.FloatAttr) and math.isinf(attribute.value)


def _mlir(x: Any) -> Any:
    return x.mlir if isinstance(x, Scalar) else x


buffer_type = CpuKernel.buffer_type


def as_bytes(memory: Memory) -> Memory:
    """Bools as bytes, so that they can be moved; other arrays unchanged."""
    bools = memory.aval.dtype.kind == "b"
    return Memory(memory.memref, Aval(memory.aval.shape, dtypes.uint8)) if bools else memory


class KernelModule:
    """The module of kernels under construction.

    Args:
        checks: where its kernels check their accesses, if they do: grows as they are built.
    """

    def __init__(self, checks: list[Site] | None = None) -> None:
        self.checks = checks
        with mlir.ir.Location.unknown(context()):
            self.mlir = mlir.ir.Module.create()
        self.body = self.mlir.body
        self.globals: dict[Any, str] = {}
        self.declared: set[str] = set()
        self.external: set[str] = set()  #: functions that it calls
        self.can_ask = True  #: whether its long kernels can ask Python whether to go on
        self.asking: set[str] = set()  #: those that do: they take where members tell each other, too
        self.parameters: dict[str, Sequence[Any]] = {}  #: the types of functions' arguments
        self.calls: set[tuple[str, str]] = set()  #: which function calls which kernel
        self.bodies: dict[Any, str] = {}  #: functions for what several loops and branches run; see `native`
        self._private: dict[str, Any] = {}  #: those that only this module calls
        #: Complete functions, each unlike the others, and their texts where these were asked for; until `merged`.
        self._complete: dict[str, str | None] = {}
        self._rough: dict[tuple[int, int], str] = {}  #: the first with so many arguments and operations
        self._known: dict[str, str] = {}  #: by what they are those that were compared

    def function(
        self, name: str, types: Sequence[Any], location: Any, internal: bool = True, noalias: Sequence[int] = (),
        results: Sequence[Any] = (),
    ) -> Any:  # fmt: skip
        """An empty ``func.func``; its entry block.

        Args:
            internal: whether only other functions call it. Else the engine makes a form of it that takes one table of
                pointers, which is all that is called: this one is needed no more once it stands in there.
        """
        ir, ctx = mlir.ir, context()
        attrs: dict[str, Any] = {
            "sym_name": ir.StringAttr.get(name, ctx),
            "function_type": ir.TypeAttr.get(ir.FunctionType.get(list(types), list(results), ctx), ctx),
        }
        if noalias:
            unit = ir.DictAttr.get({"llvm.noalias": ir.UnitAttr.get(ctx)}, ctx)
            none = ir.DictAttr.get({}, ctx)
            attrs["arg_attrs"] = ir.ArrayAttr.get([unit if i in noalias else none for i in range(len(types))], ctx)
        if internal:
            attrs["sym_visibility"] = ir.StringAttr.get("private", ctx)
        attrs["llvm.linkage"] = linkage("internal" if internal else "linkonce_odr")
        place = ir.InsertionPoint(self.body)
        operation = ir.Operation.create("func.func", attributes=attrs, regions=1, loc=location, ip=place)
        self.parameters[name] = types
        if internal:
            self._private[name] = operation
        return ir.Block.create_at_start(operation.regions[0], list(types), [location] * len(types))

    def shared(self, name: str) -> str:
        """The name of the first function that is like this complete one, which goes where it is not itself the first.

        Functions of different ops are alike where these differ in the shapes of what is one run of memory, say. How
        many elements an array has is not looked at: where code depends on it, the code is another. (`CpuKernel.call`
        calls it with any number.)
        """
        if self.checks is not None:  # reports name the op of each
            return name
        operation = self._private[name]
        rough = len(self.parameters[name]), len(list(operation.regions[0].blocks[0].operations))
        first = self._rough.setdefault(rough, name)
        if first == name:  # its text is made where it is compared with another's
            self._complete[name] = None
            return name
        if self._complete[first] is None:
            self._known[self._key(first)] = first
        found = self._known.setdefault(self._key(name), name)
        if found != name:
            del self._complete[name], self._private[name]
            operation.erase()
        return found

    def _key(self, name: str) -> str:
        """Equal for complete functions that are alike."""
        text = self._complete[name] = self._text(name)
        return _SIZE.sub("memref<?x", text) if "memref.alloca" not in text else _without_extents(text)

    def _text(self, name: str) -> str:
        asm: str = self._private[name].get_asm(assume_verified=True, use_local_scope=True)
        return asm.replace(f" @{name}(", " @(", 1)

    def merged(self, small: Set[str]) -> dict[str, alike.Merged]:
        """Let functions that differ in numbers alone be one of them; what each is replaced by. None is `shared` later.

        `small`: those whose launches are short.
        """
        names = [name for name in self._complete if name in small - self.asking]
        texts = {name: self._complete[name] or self._text(name) for name in names if len(names) >= alike.FEWEST}
        for known in (self._complete, self._rough, self._known):
            known.clear()
        return alike.merge(alike.codes(texts), self._private)

    def leaves(self) -> set[str]:
        """Kernels that call no others, and that only a program's own functions call."""
        drivers = (self.parameters.keys() - self._private.keys()) | set(self.bodies.values())
        inner = {name for call in self.calls if call[0] not in drivers for name in call}
        return {called for _, called in self.calls} & self._private.keys() - inner - drivers

    def drop(self, name: str) -> None:
        """Erase a function that only this module calls, and that nobody calls yet."""
        del self.parameters[name]
        self._private.pop(name).erase()

    def declare(self, name: str, types: Sequence[Any], results: Sequence[Any] = ()) -> None:
        """An external function."""
        self.external.add(name)
        ir, ctx = mlir.ir, context()
        ir.Operation.create(
            "func.func",
            attributes={
                "sym_name": ir.StringAttr.get(name, ctx),
                "function_type": ir.TypeAttr.get(ir.FunctionType.get(list(types), list(results), ctx), ctx),
                "sym_visibility": ir.StringAttr.get("private", ctx),
            },
            regions=1,
            loc=ir.Location.unknown(ctx),
            ip=ir.InsertionPoint.at_block_begin(self.body),
        )


def _without_extents(text: str) -> str:
    """The text of a function without the extents of arrays that are not its own."""
    lines = text.splitlines()
    return "\n".join(line if "memref.alloca" in line else _SIZE.sub("memref<?x", line) for line in lines)


@functools.cache
def linkage(kind: str) -> Any:
    """How LLVM treats the name of a function."""
    return mlir.plain_attribute(f"#llvm.linkage<{kind}>", context())
