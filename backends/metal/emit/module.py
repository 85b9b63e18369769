"""From kernel IR to the text of a Metal program and its manifest.

`emit` is a pure function: equal modules give the same text, byte by byte. Kernel IR is upstream MLIR: a
``@main`` that launches the kernels of a ``gpu.module``, and kernels in gpu, scf, arith, math, vector,
memref and complex. The tables of `arith`, `control`, `memory` and `simd` list the ops.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from smelt.ir import mlir
from smelt.ir.dialect import context

from ...gpu.custom import read_custom
from ...gpu.devices import METAL
from ...gpu.library import read_step
from ...gpu.manifest import Alias, ArrayInfo, BufferSlot, KernelBuffer, KernelInfo, Manifest, Size
from ..names import GLOBAL_RESERVED, RESERVED, Names, identifier
from . import literals
from .body import Body
from .helpers import Helpers
from .ir import EFFECTS, EXCHANGES, Block, Value, read_block
from .simd import INDICES, POSITIONS, dimension, uses_lane
from .steps import Steps
from .types import Array, EmitError, Type, Types, parse_type, type_name, wide_definition

_HEADER = """#include <metal_stdlib>
using namespace metal;
#pragma METAL fp contract(off)
"""
_WRITES = frozenset(("memref.store", "vector.store", "gpu.subgroup_mma_store_matrix"))
_READS = frozenset(("memref.load", "vector.load", "gpu.subgroup_mma_load_matrix"))
_VECTOR_ACCESS = frozenset(("vector.load", "vector.store"))
_MLIR_NAMES = {("float", 32): "f32", ("complex", 64): "complex<f32>", ("bool", 1): "i1"}


def emit(module: Any) -> tuple[str, Manifest]:
    """The text of a program and what a host needs to launch it.

    Args:
        module: an MLIR module of kernel IR. It is not changed.

    Raises:
        EmitError: the module has an op or a type outside the vocabulary: a bug in what made it.
    """
    with mlir.lock:
        return ModuleEmitter(module).emit()


class ModuleEmitter:
    """A program under construction.

    Attributes:
        constants, functions: what the text calls a global or function, by its symbol.
        helpers: functions that Metal lacks.
        has_wide_atomics: whether integers of 64 bits are added atomically, which Metal does not.
    """

    def __init__(self, module: Any) -> None:
        self.names = Names(GLOBAL_RESERVED)
        self.constants: dict[str, str] = {}
        self.functions: dict[str, str] = {}
        self.helpers = Helpers()
        self.name = _string(module.operation, "smelt.name") or _string(module.operation, "sym_name") or "program"
        self._has_float64 = "smelt.float64" in module.operation.attributes
        self.has_wide_atomics = "smelt.wide_atomics" in module.operation.attributes
        self._main: Any = None
        self._bodies: dict[str, Any] = {}  #: functions that it calls
        self._globals: list[Any] = []
        self._function_ops: dict[str, Any] = {}
        self._exchanging: dict[str, bool] = {}  #: functions in which lanes exchange values
        self._kernel_ops: list[Any] = []
        for view in module.body.operations:
            op = view.operation
            if op.name == "gpu.module":
                self._sort(op)
            elif op.name == "func.func" and _symbol(op) != "main":
                self._bodies[_symbol(op)] = op
            elif op.name == "func.func":
                self._main = op
            else:
                raise EmitError(f"emit: {op.name} beside the kernels of a program")
        self._texts: list[str] = []
        self._wide: dict[Type, None] = {}

    def _sort(self, kernels: Any) -> None:
        """What a gpu.module holds; kernels get their names first, functions and constants then."""
        for view in kernels.regions[0].blocks[0].operations:
            op = view.operation
            if op.name == "gpu.func":
                self._kernel_ops.append(op)
            elif op.name == "func.func":
                self._function_ops[_symbol(op)] = op
            elif op.name == "memref.global":
                self._globals.append(op)
            else:
                raise EmitError(f"emit: {op.name} in a gpu.module")
        self._entries = {_symbol(op): self.names.take(identifier(_symbol(op), "kernel")) for op in self._kernel_ops}
        for symbol in self._function_ops:
            self.functions[symbol] = self.names.take(identifier(symbol, "function"))
        for op in self._globals:
            self.constants[_symbol(op)] = self.names.take(identifier(_symbol(op), "constant"))

    def emit(self) -> tuple[str, Manifest]:
        """See `emit`."""
        constants = [self._constant(op) for op in self._globals]
        self._emitted: set[str] = set()
        kernels = [self._kernel(op) for op in self._kernel_ops]
        texts = [k.text for k in kernels]
        structures = [wide_definition(kind) for kind in self._wide]
        parts = [_HEADER, *structures, *constants, *[f"{t}\n" for t in self.helpers.texts], *self._texts, *texts]
        return "\n".join(parts), self._manifest([k.info for k in kernels])

    def _kernel(self, op: Any) -> _Kernel | _CustomKernel | _LibraryKernel:
        if "smelt.text" in op.attributes:
            return _CustomKernel(self, op)
        return _LibraryKernel(self, op) if "smelt.library" in op.attributes else _Kernel(self, op)

    def read(self, op: Any) -> Block:
        """A function's body, as plain objects."""
        types = Types(_integer(op, "smelt.index_bits", 32), self._has_float64)
        block = read_block(op.regions[0].blocks[0], types)
        self._wide.update(dict.fromkeys(types.wide))
        return block

    # Program scope

    def _constant(self, op: Any) -> str:
        """``constant uint table[4] = {...};``"""
        kind = parse_type(str(mlir.ir.TypeAttr(op.attributes["type"]).value), 32)
        assert isinstance(kind, Array)
        element = kind.element
        try:
            attribute = op.attributes["initial_value"]
        except TypeError:  # the bindings know no elements of complex type
            text = str(op)
            bits = literals.dense_bits(text[text.index("dense<") :] + " : ", element)
        else:
            bits = literals.attribute_bits(attribute, element)
        count = kind.size * (2 if element.kind == "complex" else 1)
        bits = bits * count if len(bits) == 1 else bits
        part = Type("float", 32) if element.kind == "complex" else element
        words = [literals.element(b, part).text for b in bits]
        if element.kind == "complex":
            words = [f"float2({a}, {b})" for a, b in zip(words[::2], words[1::2])]
        lines, line = [], "   "
        for word in words:
            if len(line) + len(word) > 100:
                lines.append(line)
                line = "   "
            line += f" {word},"
        lines.append(line.rstrip(","))
        name = self.constants[_symbol(op)]
        return f"constant {type_name(element)} {name}[{kind.size}] = {{\n" + "\n".join(lines) + "\n};\n"

    def function(self, symbol: str) -> str:
        """What the text calls a function of the module, which is emitted before its first caller."""
        if symbol not in self._emitted:
            self._emitted.add(symbol)
            if symbol not in self._function_ops:
                raise EmitError(f"emit: a kernel calls @{symbol}, which the module lacks")
            self._texts.append(self._function(self._function_ops[symbol], self.functions[symbol]))
        return self.functions[symbol]

    def exchanges(self, symbol: str) -> bool:
        """Whether lanes exchange values in a function of the module."""
        if symbol not in self._exchanging:
            self._exchanging[symbol] = _exchanges(self._function_ops[symbol], self.exchanges)
        return self._exchanging[symbol]

    def _function(self, op: Any, name: str) -> str:
        block = self.read(op)
        names = Names(RESERVED, self.names)
        b = Body(self, names, block)
        parameters = []
        for argument in block.arguments:
            if isinstance(argument.type, Array):
                raise EmitError(f"emit: @{name} takes an array; functions take scalars and vectors")
            parameter = names.take(b.hint(argument, "x"))
            b.bind(argument, parameter, mutable=False)
            argument.variable = None
            parameters.append(f"{type_name(argument.type)} {parameter}")
        b.run(block)
        values = block.end.operands
        if len(values) != 1 or not isinstance(values[0].type, Type):
            raise EmitError(f"emit: @{name} returns {len(values)} values; functions return one")
        b.line(f"return {b.use(values[0]).text};")
        head = f"static inline {type_name(values[0].type)} {name}({', '.join(parameters)}) {{"
        return "\n".join((head, *b.lines, "}\n"))

    def complex_function(self, op_name: str, kinds: Sequence[Type]) -> str:
        """A function for an op on complex numbers, as MLIR itself expands it for every target."""
        symbol = op_name.replace(".", "_")
        if symbol not in self._function_ops:
            try:
                types = [_MLIR_NAMES[kind.kind, kind.bits] for kind in kinds]
            except KeyError:
                raise EmitError(f"emit: {op_name} of these types") from None
            self._function_ops[symbol] = _expanded(op_name, symbol, types)
            self.functions[symbol] = self.names.take(symbol)
        return self.function(symbol)

    # The manifest

    def _manifest(self, kernels: Sequence[KernelInfo]) -> Manifest:
        if self._main is None:
            return Manifest(self.name, kernels=tuple(kernels))
        op = self._main
        types = Types(64, has_float64=True)  # which it only passes on
        block = read_block(op.regions[0].blocks[0], types)
        bodies = {name: read_block(body.regions[0].blocks[0], types) for name, body in self._bodies.items()}
        results = _integer(op, "smelt.results", 0)
        arrays = block.arguments[:-1]
        arguments = len(arrays) - results
        places: dict[Value, BufferSlot] = {}
        for i, value in enumerate(arrays):
            places[value] = BufferSlot("argument", i) if i < arguments else BufferSlot("result", i - arguments)
        if block.arguments:
            places[block.arguments[-1]] = BufferSlot("arena")
        reader = Steps(places, self._entries, bodies)
        steps = reader.block(block)
        return Manifest(
            name=self.name,
            arguments=_arrays(op, "smelt.arguments", arrays[:arguments], "argument"),
            results=_arrays(op, "smelt.array_results", arrays[arguments:], "result"),
            arena_bytes=_integer(op, "smelt.arena_bytes", 0),
            kernels=tuple(kernels),
            steps=steps,
            aliases=_aliases(op),
            functions=tuple(reader.functions),
        )

    def entry(self, symbol: str) -> str:
        """What the text calls a kernel."""
        return self._entries[symbol]


class _Kernel:
    """One kernel: its text and its row in the manifest."""

    def __init__(self, program: ModuleEmitter, op: Any) -> None:
        self.op = op
        block = program.read(op)
        self.entry = program.entry(_symbol(op))
        names = Names(RESERVED, program.names)
        b = self.body = Body(program, names, block)
        b.grid, b.group = _size(op, "known_grid_size"), _size(op, "known_block_size")
        self.buffers = [v for v in block.arguments if isinstance(v.type, Array) and v.type.space == "device"]
        if len(self.buffers) > METAL.max_buffers:
            raise EmitError(f"emit: {self.entry} has {len(self.buffers)} buffers; Metal binds {METAL.max_buffers}")
        if any(not isinstance(v.type, Array) for v in block.arguments):
            raise EmitError(f"emit: {self.entry} takes a number; kernels take buffers")
        self.parameters: list[str] = []
        self.infos: list[KernelBuffer] = []
        self.threadgroup_bytes = 0
        accesses = _accesses(block)
        for i, value in enumerate(self.buffers):
            self._buffer(value, i, accesses.get(value, set()))
        self._positions(block)
        for value in block.arguments:
            assert isinstance(value.type, Array)
            if value.type.space != "device":
                self._local_array(value, value.type, accesses.get(value, set()))
        b.run(block)
        self.text = self._text()
        self.info = self._info()

    def _buffer(self, value: Value, index: int, access: set[str]) -> None:
        b, array = self.body, value.type
        assert isinstance(array, Array)
        name = b.names.take(b.hint(value, "buffer_" + str(index)))
        kind = type_name(array.element)
        const = "" if "write" in access else "const "
        self.parameters.append(f"device {const}{kind}* {name} [[buffer({index})]]")
        mode = "read_write" if {"read", "write"} <= access else "write" if "write" in access else "read"
        self.infos.append(KernelBuffer(name, kind, array.size, mode, index))
        b.bind(value, name, mutable=False)

    def _positions(self, block: Block) -> None:
        """The parameters for thread positions: scalars where no kernel position needs y or z."""
        b = self.body
        found: set[str] = set()
        for op in block.walk():
            if op.name in POSITIONS:
                axis = dimension(op)
                if b.extent(op.name, axis) > 1:
                    found.add(op.name)
                    b.wide_positions |= axis > 0
            elif op.name == "gpu.lane_id" or uses_lane(op):
                found.add("gpu.lane_id")
            elif op.name == "gpu.subgroup_id" and b.threads > 32:
                found.add(op.name)
        for table, kind in ((POSITIONS, "uint3" if b.wide_positions else "uint"), (INDICES, "uint")):
            for op_name, (attribute, name) in table.items():
                if op_name in found:
                    b.parameters[op_name] = b.names.take(name)
                    self.parameters.append(f"{kind} {b.parameters[op_name]} [[{attribute}]]")

    def _local_array(self, value: Value, array: Array, access: set[str]) -> None:
        b = self.body
        shared = array.space == "threadgroup"
        name = b.names.take(b.hint(value, "shared" if shared else "values"))
        kind = type_name(array.element)
        if shared:
            self.threadgroup_bytes += -(-array.size * max(8, array.element.bits) // 128) * 16
        # A vector access needs the alignment of a vector.
        aligned = "alignas(16) " if shared and "vector" in access else ""
        b.line(f"{aligned}{'threadgroup ' if shared else ''}{kind} {name}[{array.size}];")
        b.bind(value, name, mutable=False)

    def _text(self) -> str:
        source = self.op.attributes
        lines = [f"// {self.entry}: {_string(self.op, 'smelt.schedule') or 'kernel'}"]
        if "smelt.source" in source:
            lines += [f"//   {mlir.ir.StringAttr(s).value}" for s in mlir.ir.ArrayAttr(source["smelt.source"])]
        lines.append(f"[[max_total_threads_per_threadgroup({math.prod(self.body.group)})]]")
        head = f"kernel void {self.entry}("
        one = f"{head}{', '.join(self.parameters)}) {{"
        if len(one) <= 100:
            lines.append(one)
        else:
            lines.append(head)
            lines += [f"    {p}," for p in self.parameters[:-1]]
            lines += [f"    {self.parameters[-1]}", ") {"]
        return "\n".join((*lines, *self.body.lines, "}\n"))

    def _info(self) -> KernelInfo:
        return KernelInfo(
            entry=self.entry,
            schedule=_string(self.op, "smelt.schedule"),
            buffers=tuple(self.infos),
            threadgroups=self.body.grid,
            threads=self.body.group,
            threadgroup_bytes=self.threadgroup_bytes,
            bytes_read=_integer(self.op, "smelt.bytes_read", 0),
            bytes_written=_integer(self.op, "smelt.bytes_written", 0),
            flops=_integer(self.op, "smelt.flops", 0),
        )


class _CustomKernel:
    """A kernel with a text of its own: its row in the manifest, and a line that says so."""

    def __init__(self, program: ModuleEmitter, op: Any) -> None:
        found = read_custom(op)
        assert found is not None
        buffers, own = found
        entry = program.entry(_symbol(op))
        self.text = f"// {entry}: a text of its own, in the manifest\n"
        self.info = KernelInfo(
            entry=entry,
            schedule=_string(op, "smelt.schedule"),
            buffers=buffers,
            threadgroups=_size(op, "known_grid_size"),
            threads=_size(op, "known_block_size"),
            threadgroup_bytes=0,
            bytes_read=_integer(op, "smelt.bytes_read", 0),
            bytes_written=_integer(op, "smelt.bytes_written", 0),
            flops=0,
            own=own,
        )


class _LibraryKernel:
    """What a library does: its row in the manifest, and a line that says so."""

    def __init__(self, program: ModuleEmitter, op: Any) -> None:
        step, entry = read_step(op), program.entry(_symbol(op))
        assert step is not None
        self.text = f"// {entry}: a {step.kind} by a library, in the manifest\n"
        buffers = []
        for i, value in enumerate(program.read(op).arguments):
            assert isinstance(value.type, Array)
            access = "write" if i in step.written else "read"
            name, kind = value.hint or f"buffer_{i}", type_name(value.type.element)
            buffers.append(KernelBuffer(name, kind, value.type.size, access, i))
        self.info = KernelInfo(
            entry=entry,
            schedule=_string(op, "smelt.schedule"),
            buffers=tuple(buffers),
            threadgroups=_size(op, "known_grid_size"),
            threads=_size(op, "known_block_size"),
            threadgroup_bytes=0,
            bytes_read=_integer(op, "smelt.bytes_read", 0),
            bytes_written=_integer(op, "smelt.bytes_written", 0),
            flops=_integer(op, "smelt.flops", 0),
            library=step,
        )


def _exchanges(op: Any, calls: Callable[[str], bool]) -> bool:
    """Whether lanes exchange values in an operation; `calls`: whether in a function that it calls."""
    if op.name in EXCHANGES or op.name == "gpu.barrier":
        return True
    if op.name == "func.call":
        return calls(mlir.ir.FlatSymbolRefAttr(op.attributes["callee"]).value)
    return any(_exchanges(inner.operation, calls) for region in op.regions for block in region for inner in block)


def _accesses(block: Block) -> dict[Value, set[str]]:
    """What a kernel does with each array: read, write, vector."""
    found: dict[Value, set[str]] = {}
    for op in block.walk():
        if op.name not in _READS and op.name not in EFFECTS:
            continue
        for value in op.operands:
            if isinstance(value.type, Array):
                modes = found.setdefault(value, set())
                if op.name in _READS or op.name == "memref.atomic_rmw":
                    modes.add("read")
                if op.name in _WRITES or op.name == "memref.atomic_rmw":
                    modes.add("write")
                if op.name in _VECTOR_ACCESS:
                    modes.add("vector")
    return found


def _expanded(op_name: str, symbol: str, types: Sequence[str]) -> Any:
    """A ``func.func`` with one complex op, expanded to arithmetic by MLIR's own pass."""
    *inputs, output = types
    arguments = ", ".join([f'%a{i} : {t} loc("{"abc"[i]}")' for i, t in enumerate(inputs)])
    values = ", ".join([f"%a{i}" for i in range(len(inputs))])
    text = (
        f"func.func private @{symbol}({arguments}) -> {output} {{\n"
        f'%r = "{op_name}"({values}) : ({", ".join(inputs)}) -> {output}\n'
        f"return %r : {output}\n}}"
    )
    ctx = context()
    with ctx, mlir.ir.Location.unknown(ctx):
        module = mlir.ir.Module.parse(text, ctx)
        mlir.passmanager.PassManager.parse("builtin.module(convert-complex-to-standard,canonicalize,cse)", ctx).run(
            module.operation
        )
        op = module.body.operations[0].operation
        if f'"{op_name}"' in str(op) or f"{op_name} " in str(op):
            raise EmitError(f"emit: MLIR has no expansion of {op_name}")
        return op.clone()


# Attributes


def _string(op: Any, name: str) -> str:
    attributes = op.attributes
    return mlir.ir.StringAttr(attributes[name]).value if name in attributes else ""


def _symbol(op: Any) -> str:
    return _string(op, "sym_name")


def _integer(op: Any, name: str, default: int) -> int:
    attributes = op.attributes
    return int(mlir.ir.IntegerAttr(attributes[name]).value) if name in attributes else default


def _size(op: Any, name: str) -> Size:
    attributes = op.attributes
    if name not in attributes:
        raise EmitError(f"emit: @{_symbol(op)} lacks {name}; all grids are static")
    x, y, z = mlir.ir.DenseI32ArrayAttr(attributes[name])
    return int(x), int(y), int(z)


def _arrays(op: Any, name: str, values: Sequence[Value], default: str) -> tuple[ArrayInfo, ...]:
    """From an attribute, or else from the memrefs."""
    ir = mlir.ir
    if name in op.attributes:
        return tuple(
            ArrayInfo(
                ir.StringAttr(item[0]).value, ir.StringAttr(item[1]).value, tuple(ir.DenseI64ArrayAttr(item[2]))
            )
            for item in map(ir.ArrayAttr, ir.ArrayAttr(op.attributes[name]))
        )
    found = []
    for i, value in enumerate(values):
        assert isinstance(value.type, Array)
        element = value.type.element
        found.append(ArrayInfo(value.hint or f"{default}{i}", f"{element.kind}{element.bits}", value.type.shape))
    return tuple(found)


def _aliases(op: Any) -> tuple[Alias, ...]:
    """From an attribute, if there is one."""
    ir, name = mlir.ir, "smelt.aliases"
    if name not in op.attributes:
        return ()
    return tuple(
        Alias(int(ir.IntegerAttr(item[0]).value), ir.StringAttr(item[1]).value, int(ir.IntegerAttr(item[2]).value))
        for item in map(ir.ArrayAttr, ir.ArrayAttr(op.attributes[name]))
    )
