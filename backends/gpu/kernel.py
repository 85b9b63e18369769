"""Scalars and vectors in a kernel of a GPU: one ``gpu.func`` under construction, and the module it is in.

Elements are computed as on every target (`lowering`). What is a GPU's own: positions of threads, the
exchange between lanes of a simdgroup, threadgroup memory, and loads and stores of 16 bytes. An
elementary function becomes a function of the module, so that a kernel's text reads like its program.
The words are Metal's: a threadgroup is CUDA's block, a simdgroup its warp.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from smelt.backends.lowering import Coordinates, Fused
from smelt.backends.memory import Memory, MemoryKernel
from smelt.ir import dtypes, elementary, mlir
from smelt.ir.aval import Aval
from smelt.ir.builder import Function, OpView, Value
from smelt.ir.dialect import context
from smelt.ir.dtypes import DType
from smelt.ir.index import Index
from smelt.ir.kinds import Elementwise
from smelt.ir.scalar import INDEX, Scalar, compute_dtype

from .devices import Gpu
from .library import DeviceLibrary
from .quotients import Quotients

#: Elementwise ops with at least this many flops become functions of the module.
FUNCTION_FLOPS = 8.0

#: ``ult`` among the predicates of ``arith.cmpi``.
UNSIGNED_LESS = 6
#: Updates of integers that threads may make at once, by mode and kind: the number of ``memref.atomic_rmw``'s kind.
ATOMICS = {("add", "i"): 1, ("add", "u"): 1, ("max", "i"): 6, ("max", "u"): 7, ("min", "i"): 10, ("min", "u"): 11}

Size = tuple[int, int, int]


class GpuModule:
    """The kernels of a program under construction: a ``gpu.module`` inside a module.

    Attributes:
        library: what makes products and convolutions in place of kernels, if there is something.
    """

    def __init__(self, gpu: Gpu, library: DeviceLibrary | None = None) -> None:
        ir, ctx = mlir.ir, context()
        self.gpu, self.library = gpu, library
        unknown = ir.Location.unknown(ctx)
        with unknown:
            self.mlir = ir.Module.create()
        self.mlir.operation.attributes["gpu.container_module"] = ir.UnitAttr.get(ctx)
        if gpu.float64:
            self.mlir.operation.attributes["smelt.float64"] = ir.UnitAttr.get(ctx)
        if gpu.wide_atomics:
            self.mlir.operation.attributes["smelt.wide_atomics"] = ir.UnitAttr.get(ctx)
        kernels = ir.Operation.create(
            "gpu.module", attributes={"sym_name": ir.StringAttr.get("kernels", ctx)}, regions=1, loc=unknown,
            ip=ir.InsertionPoint(self.mlir.body),
        )  # fmt: skip
        self.body = ir.Block.create_at_start(kernels.regions[0], [])
        self.globals: dict[Any, str] = {}
        self.functions: dict[Any, str] = {}
        self.names: set[str] = set()

    def fresh(self, name: str) -> str:
        """`name`, or with a number where it is taken."""
        found, n = name, 0
        while found in self.names:
            n += 1
            found = f"{name}_{n}"
        self.names.add(found)
        return found

    def start(
        self,
        name: str,
        avals: Sequence[Aval],
        names: Sequence[str],
        location: Any,
        body: Function | None = None,
    ) -> tuple[GpuKernel, list[Memory]]:
        """An empty kernel over flat buffers of `avals`; its builder and the buffers."""
        ir, ctx = mlir.ir, context()
        types = [GpuKernel.buffer_type(a) for a in avals]
        operation = ir.Operation.create(
            "gpu.func",
            attributes={
                "sym_name": ir.StringAttr.get(self.fresh(name), ctx),
                "function_type": ir.TypeAttr.get(ir.FunctionType.get(types, [], ctx), ctx),
                "kernel": ir.UnitAttr.get(ctx),
            },
            regions=1,
            loc=location,
            ip=ir.InsertionPoint(self.body),
        )
        locations = [ir.Location.name(n, context=ctx) if n else location for n in names]
        entry = ir.Block.create_at_start(operation.regions[0], types, locations)
        k = GpuKernel(self, entry, location, body)
        k.function = operation
        return k, [Memory(m, a) for m, a in zip(entry.arguments, avals)]


class GpuKernel(MemoryKernel):
    """One ``gpu.func``, or a function that kernels call."""

    module: GpuModule
    function: Any

    def __init__(self, module: GpuModule, entry: Any, location: Any, body: Function | None):
        super().__init__(module, entry, location, body)
        self.gpu = module.gpu
        self._shared = 0  #: how many arrays of threadgroup memory there are
        self._largest = 0  #: see `reach`
        self._ids: dict[str, Scalar] = {}  #: positions, which are emitted once
        self._quotients = Quotients(self)

    def _number(self, value: int) -> Any:
        """An attribute of 64 bits."""
        return mlir.ir.IntegerAttr.get(mlir.ir.IntegerType.get_signless(64, self.context), value)

    # Positions

    def _at_entry(self, name: str, **attrs: Any) -> Scalar:
        """An op without operands, emitted once, where the kernel begins."""
        if name not in self._ids:
            saved, self.ip = self.ip, mlir.ir.InsertionPoint.at_block_begin(self.entry)
            self._ids[name] = Scalar(self, self.emit(name, [], [self.type(INDEX)], **attrs).result, INDEX)
            self.ip = saved
        return self._ids[name]

    def _along_x(self, name: str) -> Scalar:
        return self._at_entry(name, dimension=self.attr("#gpu<dim x>"))

    def thread(self) -> Scalar:
        """The thread's position in its threadgroup."""
        return self._along_x("gpu.thread_id")

    def group(self) -> Scalar:
        """The threadgroup's position in the grid."""
        return self._along_x("gpu.block_id")

    def grid_position(self) -> Scalar:
        """The thread's position in the grid."""
        return self._along_x("gpu.global_id")

    def lane(self) -> Scalar:
        """The thread's position in its simdgroup."""
        return self._at_entry("gpu.lane_id")

    def simdgroup(self) -> Scalar:
        """The simdgroup's position in its threadgroup."""
        return self._at_entry("gpu.subgroup_id")

    @contextmanager
    def named(self, name: str) -> Iterator[None]:
        """What is emitted meanwhile is called `name` in the text."""
        saved, self.location = self.location, mlir.ir.Location.name(name, self.location, context=self.context)
        try:
            yield
        finally:
            self.location = saved

    # How far indices reach, which no buffer need show: ``(x[:, None] * y).sum()`` stores none of its elements

    def reach(self, *values: int) -> None:
        """Say that the kernel computes indices as large as these."""
        self._largest = max(self._largest, *map(abs, values))

    def const(self, value: Any, dtype: DType) -> Scalar:
        if dtype is INDEX:
            self.reach(value)
        return super().const(value, dtype)

    def index(self, index: Index, dtype: DType = INDEX) -> Scalar:
        self.reach(index.lo, index.hi)
        return super().index(index, dtype)

    def bind(self, fused: Fused, at: Scalar) -> None:
        self.reach(fused.extent)
        super().bind(fused, at)

    # Memory

    def shared(self, size: int, dtype: DType, stored: bool = False, name: str = "shared") -> Memory:
        """Threadgroup memory of `size` elements, held in the dtype in which kernels compute, or as `stored`."""
        ir = mlir.ir
        aval = Aval((size,), dtype if stored else compute_dtype(dtype))
        space = self.attr("#gpu.address_space<workgroup>")
        kind = ir.MemRefType.get([size], self.storage(aval.dtype), memory_space=space, loc=self.location)
        self._shared += 1
        self.function.attributes["workgroup_attributions"] = self._number(self._shared)
        return Memory(self.entry.add_argument(kind, ir.Location.name(name, context=self.context)), aval)

    def barrier(self, device: bool = False) -> None:
        """All threads of a threadgroup meet; what they wrote to threadgroup memory (and, with `device`, to
        buffers) is seen by all."""
        attrs = {} if device else {"address_spaces": self.attr("[#gpu.address_space<workgroup>]")}
        self.emit("gpu.barrier", [], [], **attrs)

    def simdgroup_barrier(self) -> None:
        """The lanes of a simdgroup meet; what they wrote to threadgroup memory is seen by them."""
        scope = self.attr("#gpu.barrier_scope<subgroup>")
        self.emit("gpu.barrier", [], [], address_spaces=self.attr("[#gpu.address_space<workgroup>]"), scope=scope)

    def atomic(self, mode: str, x: Scalar, memory: Memory, offset: Scalar) -> Scalar:
        """Update an element with x as by "add", "max" or "min", while other threads do the same; see `ATOMICS`.

        What it was before.
        """
        kind = self._number(ATOMICS[mode, memory.aval.dtype.kind])
        operation = self.emit("memref.atomic_rmw", [x, memory.memref, offset], [self.type(x.dtype)], kind=kind)
        return Scalar(self, operation.result, x.dtype)

    def thread_array(self, size: int, dtype: DType) -> Memory:
        """An array of the thread's own, in registers as long as all its indices are known."""
        ir = mlir.ir
        aval = Aval((size,), compute_dtype(dtype))
        space = self.attr("#gpu.address_space<private>")
        kind = ir.MemRefType.get([size], self.storage(aval.dtype), memory_space=space, loc=self.location)
        saved, self.ip = self.ip, ir.InsertionPoint.at_block_begin(self.entry)
        sizes = ir.DenseI32ArrayAttr.get([0, 0], self.context)
        memref = self.emit("memref.alloca", [], [kind], operandSegmentSizes=sizes).result
        self.ip = saved
        return Memory(memref, aval)

    def will_not_change(self, array: Memory) -> None:
        """Loops that begin here read the thread's `array` and do not write it."""
        self._quotients.arrays[array.memref] = array, self.ip.block

    # Vectors

    def vector_type(self, dtype: DType, width: int) -> Any:
        return mlir.ir.VectorType.get([width], self.storage(dtype), loc=self.location)

    def load_vector(self, memory: Memory, offset: Scalar, width: int) -> Any:
        """`width` stored elements from an offset that is a multiple of `width`."""
        kind = self.vector_type(memory.aval.dtype, width)
        return self.emit("vector.load", [memory.memref, offset], [kind]).result

    def store_vector(self, vector: Any, memory: Memory, offset: Scalar) -> None:
        self.emit("vector.store", [vector, memory.memref, offset], [])

    def extract(self, vector: Any, at: Scalar, dtype: DType) -> Scalar:
        """One element of a vector of stored elements."""
        dynamic = mlir.ir.DenseI64ArrayAttr.get([-(2**63)], self.context)
        raw = self.emit("vector.extract", [vector, at], [self.storage(dtype)], static_position=dynamic).result
        return self.from_storage(raw, dtype)

    def insert(self, x: Scalar, vector: Any, at: Scalar, dtype: DType) -> Any:
        """A vector of stored elements with one replaced."""
        dynamic = mlir.ir.DenseI64ArrayAttr.get([-(2**63)], self.context)
        raw = self.to_storage(x, dtype)
        return self.emit("vector.insert", [raw, vector, at], [vector.type], static_position=dynamic).result

    def empty_vector(self, dtype: DType, width: int) -> Any:
        """A vector to insert into."""
        kind = self.vector_type(dtype, width)
        element = self.storage(dtype)
        zero = mlir.ir.FloatAttr.get(element, 0.0, loc=self.location) if dtype.is_float else (
            mlir.ir.IntegerAttr.get(element, 0)
        )
        splat = mlir.ir.DenseElementsAttr.get_splat(kind, zero)
        return self.emit("arith.constant", [], [kind], value=splat).result

    # Positions compared

    def below(self, x: Scalar, limit: Scalar | int) -> Scalar:
        """Whether a position, which is not negative, is below `limit`."""
        limit = limit if isinstance(limit, Scalar) else self.const(limit, INDEX)
        return self.op("arith.cmpi", [x, limit], dtypes.bool_, predicate=self._number(UNSIGNED_LESS))

    # Lanes of a simdgroup

    def shuffle(self, x: Scalar, distance: int, mode: str = "xor") -> Scalar:
        """The value that another lane has: of lane ^ distance ("xor"), lane - distance ("up")."""
        if x.dtype.kind == "c":
            return self.complex(self.shuffle(self.real(x), distance, mode), self.shuffle(self.imag(x), distance, mode))
        if x.dtype is INDEX:
            return self.convert(self.shuffle(self.convert(x, dtypes.uint32), distance, mode), INDEX)
        operands = [x, self.const(distance, dtypes.int32), self.const(self.gpu.simd, dtypes.int32)]
        kind = self.attr(f"#gpu<shuffle_mode {mode}>")
        i1 = mlir.ir.IntegerType.get_signless(1, self.context)
        return Scalar(self, self.emit("gpu.shuffle", operands, [self.type(x.dtype), i1], mode=kind).results[0], x.dtype)

    def ballot(self, vote: Scalar) -> Scalar:
        """The lanes of the simdgroup whose `vote` is true, as bits of a uint32."""
        return self.op("gpu.ballot", [vote], dtypes.uint32)

    # Loops

    def unrolled(
        self, count: int, body: Callable[..., Sequence[Any] | None], carries: Sequence[Any] = ()
    ) -> list[Any]:
        """``for j in range(count)``, to be unrolled; carries are MLIR values."""
        if count == 1:
            found = body(self.const(0, INDEX), *carries)
            return [x.mlir if isinstance(x, Scalar) else x for x in found or ()]
        return self.counted(count, body, carries, unroll=True)

    def counted(
        self,
        stop: int | Scalar,
        body: Callable[..., Sequence[Any] | None],
        carries: Sequence[Any] = (),
        unroll: bool = False,
        first: Scalar | None = None,
        step: int = 1,
        carried: str = "",
    ) -> list[Any]:
        """``for j in range(first, stop, step)``; carries are MLIR values, which the text may call `carried`."""
        ir = mlir.ir
        types = [c.type for c in carries]
        first = self.const(0, INDEX) if first is None else first
        end = stop if isinstance(stop, Scalar) else self.const(stop, INDEX)
        bounds = [first, end, self.const(step, INDEX)]
        operation = self.emit("scf.for", [*bounds, *carries], types, regions=1)
        if unroll:
            operation.attributes["smelt.unroll"] = ir.UnitAttr.get(self.context)
        arguments = [self.type(INDEX), *types]
        named = ir.Location.name(carried, context=self.context) if carried else self.location
        block = ir.Block.create_at_start(operation.regions[0], arguments, [self.location, *[named] * len(types)])
        j, *inner = block.arguments
        with self.inside(block):
            self.emit("scf.yield", list(body(Scalar(self, j, INDEX), *inner) or ()), [])
        return list(operation.results)

    def grid_stride(self, fused: Fused | None, extent: int, threads: int, groups: int, body: Callable) -> None:
        """Run ``body(i)`` for each i below `extent`, spread over all threads of the grid."""
        first = self.grid_position()
        stride = threads * groups
        if stride >= extent:
            def once() -> None:
                if fused is not None:
                    self.bind(fused, first)
                body(first)

            if stride == extent:
                once()
            else:
                self.when(self.below(first, extent), once)
            return
        self.loop(fused, first, self.const(extent, INDEX), lambda i: body(i), step=stride)

    def while_(
        self,
        condition: Callable[..., Scalar],
        body: Callable[..., Sequence[Scalar]],
        carries: Sequence[Scalar],
        names: Sequence[str] = (),
    ) -> list[Scalar]:
        """``while condition(*carries): carries = body(*carries)``; the text may call the carries `names`."""
        ir = mlir.ir
        locations = [ir.Location.name(n, context=self.context) for n in names] or [self.location] * len(carries)
        types = [self.type(c.dtype) for c in carries]
        operation = self.emit("scf.while", carries, types, regions=2)
        for region, ends in zip(operation.regions, ("scf.condition", "scf.yield")):
            block = ir.Block.create_at_start(region, types, locations)
            with self.inside(block):
                inner = [Scalar(self, v, c.dtype) for v, c in zip(block.arguments, carries)]
                last = [condition(*inner), *inner] if ends == "scf.condition" else body(*inner)
                self.emit(ends, last, [])
        return [Scalar(self, r, c.dtype) for r, c in zip(operation.results, carries)]

    # Functions

    def _evaluate(self, op: OpView, index: Coordinates) -> None:
        saved, self.location = self.location, mlir.ir.Location.name(op.name, op.location, context=self.context)
        try:
            if isinstance(op.op, Elementwise) and op.op.flops >= FUNCTION_FLOPS:
                self._keep(op.results[0], index, self._called(op, index))
            elif op.op.formula == "x / y" and self._needs_half(op.results[0]):
                x, y = (self.value(v, index) for v in op.operands)
                self._keep(op.results[0], index, self._quotients.of(x, y))
            else:
                super()._evaluate(op, index)
        finally:
            self.location = saved

    def _needs_half(self, v: Value) -> bool:
        """Whether no more than the digits of half precision counts of a value."""
        dtype = self.coarse.get(v, v.dtype)
        return dtype.is_float and dtype.size == 2

    def _called(self, op: OpView, index: Coordinates) -> Scalar:
        """An elementary function, by a call."""
        rules, sources = op.rules(Elementwise), [v.dtype for v in op.operands]
        operands = [self.value(v, index) for v in op.operands]
        if not rules.jumps:
            sources[0] = self.digits(op)
        return self.elementary(rules, operands, sources, op.results[0].dtype, op.attrs)

    def elementary(
        self, rules: Elementwise, operands: Sequence[Scalar], sources: Sequence[DType], out: DType,
        attrs: Mapping[str, Any] = {},
    ) -> Scalar:  # fmt: skip
        """A call of an elementary function: the rules of its op, on scalars of arrays of dtypes `sources`."""
        key = rules.name, tuple(sources), out, repr(attrs)
        name = f"{rules.name}_{sources[0].mlir}".replace("<", "_").replace(">", "")

        def define(inner: GpuKernel, *xs: Scalar) -> Scalar:
            inner.source_dtype = sources[0]
            return rules.lower(inner, *xs, **attrs)

        taken = rules.taken(self, operands, sources, out)
        return self.call(key, name, taken, rules.operand_names, compute_dtype(out), define)

    def usually(self, quick: Callable[[], tuple[Scalar, Scalar]], general: Callable[[], Scalar]) -> Scalar:
        """Each thread decides for itself: a simdgroup goes the longer way where one of its elements is rare."""
        found, is_usual = quick()
        return self.if_(is_usual, lambda: found, general, found.dtype)

    def exp_nonpositive(self, x: Scalar, source: DType) -> Scalar:
        """See `FusionKernel.exp_nonpositive`; of halves by the instruction that there is."""
        if source.size == 2:
            return self.fast_exp2(x * math.log2(math.e))
        define = elementary.exp_nonpositive
        return self.call((define, x.dtype), f"exp_nonpositive_{x.dtype.mlir}", [x], ["x"], x.dtype, define)

    def fast_exp2(self, x: Scalar) -> Scalar:
        """2^x by the instruction that there is: as exact as halves need."""
        return self.op("math.exp2", [x], x.dtype, fastmath=self.attr("#arith.fastmath<afn>"))

    def call(
        self,
        key: Any,
        name: str,
        operands: Sequence[Scalar],
        names: Sequence[str],
        out: DType,
        define: Callable[..., Scalar],
    ) -> Scalar:
        """Call a function of the module, which ``define(kernel, *arguments)`` makes unless one of that `key` exists."""
        if key not in self.module.functions:
            self.module.functions[key] = self._define(name, [x.dtype for x in operands], names, out, define)
        callee = mlir.ir.FlatSymbolRefAttr.get(self.module.functions[key], self.context)
        return Scalar(self, self.emit("func.call", operands, [self.type(out)], callee=callee).result, out)

    def _define(
        self, name: str, inputs: Sequence[DType], names: Sequence[str], out: DType, define: Callable[..., Scalar]
    ) -> str:
        ir, ctx = mlir.ir, self.context
        types = [self.type(d) for d in inputs]
        name = self.module.fresh(name)
        unknown = ir.Location.unknown(ctx)
        operation = ir.Operation.create(
            "func.func",
            attributes={
                "sym_name": ir.StringAttr.get(name, ctx),
                "sym_visibility": ir.StringAttr.get("private", ctx),
                "function_type": ir.TypeAttr.get(ir.FunctionType.get(types, [self.type(out)], ctx), ctx),
            },
            regions=1,
            loc=unknown,
            ip=ir.InsertionPoint.at_block_begin(self.module.body),
        )
        entry = ir.Block.create_at_start(operation.regions[0], types, [ir.Location.name(n, context=ctx) for n in names])
        inner = GpuKernel(self.module, entry, unknown, None)
        result = define(inner, *(Scalar(inner, x, d) for x, d in zip(entry.arguments, inputs)))
        inner.emit("func.return", [result], [])
        return name

    # The end

    def finish(
        self, schedule: str, groups: Size, threads: Size, read: int, written: int, flops: int, source: Sequence[str]
    ) -> None:
        """Close the kernel, and say how it is launched and what it costs."""
        ir, ctx = mlir.ir, self.context
        self.emit("gpu.return", [], [])
        attrs = self.function.attributes
        attrs["known_block_size"] = ir.DenseI32ArrayAttr.get(list(threads), ctx)
        attrs["known_grid_size"] = ir.DenseI32ArrayAttr.get(list(groups), ctx)
        attrs["smelt.schedule"] = ir.StringAttr.get(schedule, ctx)
        for name, value in (("bytes_read", read), ("bytes_written", written), ("flops", flops)):
            attrs[f"smelt.{name}"] = self._number(value)
        sizes = [math.prod(ir.MemRefType(x.type).shape) for x in self.entry.arguments]
        wide = max([*sizes, math.prod(groups) * math.prod(threads), self._largest]) >= 2**31
        attrs["smelt.index_bits"] = self._number(64 if wide else 32)
        attrs["smelt.source"] = ir.ArrayAttr.get([ir.StringAttr.get(s, ctx) for s in source], ctx)

    @property
    def name(self) -> str:
        return mlir.ir.StringAttr(self.function.attributes["sym_name"]).value


def vector_offset(index: Index, loop: Fused, width: int) -> bool:
    """Whether `index` moves with `loop` by one, and is a multiple of `width` where the loop's counter is."""
    names = set(loop.names)
    for atom, coefficient in index.terms:
        if atom.kind == "var" and atom.args[0] in names:
            if coefficient != loop.strides[atom.args[0]]:
                return False
        elif coefficient % width or names & {a.args[0] for a in Index(0, [(atom, 1)]).atoms() if a.kind == "var"}:
            return False
    present = {a.args[0] for a, _ in index.terms if a.kind == "var"}
    return index.const % width == 0 and all(n in present for n, extent in loop.variables if extent > 1)


def depends_on(place: Coordinates, loop: Fused) -> bool:
    """Whether an index changes with a loop's counter (an index known at run time may)."""
    names = set(loop.names)
    return any(
        atom.kind == "dynamic" or (atom.kind == "var" and atom.args[0] in names) for i in place for atom in i.atoms()
    )
