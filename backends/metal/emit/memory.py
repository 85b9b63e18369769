"""Rules for `memref`, `vector` and `complex`: loads, stores, atomics, components."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smelt.ir import mlir

from . import literals
from .arith import Rule
from .expressions import (
    PRIMARY,
    UNARY,
    Expression,
    as_type,
    binary,
    call,
    member,
    pointer,
    prefix,
    signed,
    subscript,
    unsigned,
)
from .ir import Op, Value, kind_of
from .types import Array, EmitError, Type, type_name

if TYPE_CHECKING:
    from .body import Body

_DYNAMIC = -(2**63)
#: By the number of an atomic kind of `arith`: the function of Metal, and whether operands are signed.
_ATOMICS = {
    "addf": ("add", False), "addi": ("add", False), "assign": ("exchange", False), "maxs": ("max", True),
    "maxu": ("max", False), "mins": ("min", True), "minu": ("min", False), "ori": ("or", False),
    "andi": ("and", False),
}  # fmt: skip
_ATOMIC_KINDS = (
    "addf", "addi", "andi", "assign", "maximumf", "maxnumf", "maxs", "maxu", "minimumf", "minnumf", "mins", "minu",
    "mulf", "muli", "ori", "xori",
)  # fmt: skip


def _array(value: Value) -> Array:
    assert isinstance(value.type, Array)
    return value.type


def offset(b: Body, memory: Value, indices: list[Value]) -> Expression:
    """The row-major position of an element."""
    shape = _array(memory).shape
    if not indices:
        return literals.integer(0, Type("index", 32))
    found = b.use(indices[0])
    for extent, index in zip(shape[1:], indices[1:]):
        row = binary("*", found, literals.integer(extent, kind_of(index)), wraps=True)
        found = binary("+", row, b.use(index), wraps=True)
    return found


def _base(b: Body, memory: Value) -> str:
    return b.use(memory).text


def _is_constant(memory: Value) -> bool:
    return memory.op is not None and memory.op.name == "memref.get_global"


def vector_pointer(b: Body, memory: Value, at: Expression, lanes: int, const: bool) -> str:
    """``(device const float4*)(x + i)``."""
    array = _array(memory)
    space = "constant" if _is_constant(memory) else array.space
    const_ = "const " if const and space != "constant" else ""
    name = type_name(array.element.of_width(lanes))
    where = pointer(_base(b, memory), at)
    return f"({space} {const_}{name}*){where.at_least(PRIMARY)}"


def _load(b: Body, op: Op) -> Expression:
    memory, *indices = op.operands
    found = subscript(_base(b, memory), offset(b, memory, indices))
    found.loads = not _is_constant(memory)
    return found


def _load_vector(b: Body, op: Op) -> Expression:
    memory, *indices = op.operands
    kind = kind_of(op.results[0])
    if kind.lanes == 1:
        return _load(b, op)
    if kind.lanes == 3 or (_array(memory).space == "thread" and not kind.is_wide):
        # A float3 takes 16 bytes in memory, and arrays of a thread are aligned as their elements are.
        parts = [subscript(_base(b, memory), at) for at in _consecutive(b, op, 0, kind.lanes)]
        found = call(type_name(kind), *parts)
    else:
        found = prefix("*", Expression(vector_pointer(b, memory, offset(b, memory, indices), kind.lanes, True), UNARY))
        for v in indices:
            found.reads = found.reads | b.use(v).reads
    found.loads = True
    return found


def _consecutive(b: Body, op: Op, memory: int, lanes: int) -> list[Expression]:
    array, indices = op.operands[memory], op.operands[memory + 1 :]
    for v in indices:
        b.named(v)
    first = offset(b, array, indices)
    kind = kind_of(indices[-1])
    if first.literal is not None:
        return [literals.integer(first.literal + i, kind) for i in range(lanes)]
    return [binary("+", first, literals.integer(i, kind), wraps=True) if i else first for i in range(lanes)]


def _store(b: Body, op: Op) -> None:
    value, memory, *indices = op.operands
    b.statement(
        op, lambda: f"{_base(b, memory)}[{offset(b, memory, indices).text}] = {b.use(value).text};"
    )


def _store_vector(b: Body, op: Op) -> None:
    value, memory, *indices = op.operands
    kind = kind_of(value)
    if kind.lanes == 1:
        _store(b, op)
    elif kind.lanes == 3 or (_array(memory).space == "thread" and not kind.is_wide):
        x = b.named(value)
        for at, name in zip(_consecutive(b, op, 1, kind.lanes), "xyzw"):
            b.line(f"{_base(b, memory)}[{at.text}] = {member(x, name).text};")
    else:
        b.statement(
            op,
            lambda: f"*{vector_pointer(b, memory, offset(b, memory, indices), kind.lanes, False)} = "
            f"{b.use(value).text};",
        )


def _atomic(b: Body, op: Op) -> None:
    value, memory, *indices = op.operands
    array = _array(memory)
    kind = array.element
    name = _ATOMIC_KINDS[int(mlir.ir.IntegerAttr(op.attribute("kind")).value)]
    floating = kind == Type("float", 32)
    wide = kind.is_integer and kind.bits == 64 and name == "addi" and b.program.has_wide_atomics
    integral = wide or (kind.is_integer and kind.bits == 32)
    if name not in _ATOMICS or not (floating if name == "addf" else integral or (floating and name == "assign")):
        raise EmitError(f"emit: Metal has no atomic {name} on {type_name(kind)}")
    if name == "addf" and array.space != "device":
        raise EmitError(f"emit: Metal adds floats atomically in device memory only, not in {array.space} memory")
    function, is_signed = _ATOMICS[name]
    target = "atomic_float" if floating else "atomic_ulong" if wide else "atomic_int" if is_signed else "atomic_uint"
    suffix = "exchange" if function == "exchange" else f"fetch_{function}"

    def text() -> str:
        where = pointer(_base(b, memory), offset(b, memory, indices)).at_least(PRIMARY)
        x = signed(b.use(value), kind) if is_signed else b.use(value)
        return (
            f"metal::atomic_{suffix}_explicit(({array.space} {target}*){where}, {x.text}, memory_order_relaxed)"
        )

    if not op.results[0].uses:
        b.statement(op, lambda: f"{text()};")
        return
    found = Expression(b.fitted(op, text))
    b.declare(op.results[0], unsigned(found, kind) if is_signed else found)


def _alloca(b: Body, op: Op) -> None:
    array = _array(op.results[0])
    if array.space != "thread":
        raise EmitError("emit: memref.alloca outside the private address space")
    name = b.names.take(b.hint(op.results[0], "values"))
    b.line(f"{type_name(array.element)} {name}[{array.size}];")
    op.results[0].expression = Expression(name, atom=True)


def _get_global(b: Body, op: Op) -> Expression:
    name = b.constants[mlir.ir.FlatSymbolRefAttr(op.attribute("name")).value]
    return Expression(name, atom=True)


# Vectors


def _position(op: Op) -> int | Value:
    """The lane that an extract or insert works on."""
    static = list(mlir.ir.DenseI64ArrayAttr(op.attribute("static_position")))
    if not static:
        return 0
    if len(static) != 1:
        raise EmitError(f"emit: {op.name} at {len(static)} positions")
    return op.operands[-1] if static[0] == _DYNAMIC else int(static[0])


def lane_text(b: Body, vector: str, kind: Type, at: int | Value) -> str:
    """``v.x`` or ``v[i]``; of a wide vector ``v.lanes[i]``."""
    if isinstance(at, Value):
        e = b.use(at)
        if e.literal is None or kind.is_wide:
            return f"{vector}.lanes[{e.text}]" if kind.is_wide else f"{vector}[{e.text}]"
        at = e.literal
    return f"{vector}.lanes[{at}]" if kind.is_wide else f"{vector}.{'xyzw'[at]}"


def _extract(b: Body, op: Op) -> Expression:
    vector = op.operands[0]
    if kind_of(vector).lanes == 1:
        return b.use(vector)
    at = _position(op)
    x = b.named(vector)
    sources = (x, b.use(at)) if isinstance(at, Value) else (x,)
    found = Expression(lane_text(b, x.text, kind_of(vector), at), PRIMARY, *sources)
    found.atom = not isinstance(at, Value) or sources[-1].literal is not None
    return found


def _insert(b: Body, op: Op) -> None:
    """A copy of the vector, or the vector itself where this is its last use, with a lane assigned."""
    value, vector = op.operands[:2]
    result = op.results[0]
    if kind_of(result).lanes == 1:
        result.expression = b.use(value)
        return
    name = b.take_over(vector, result)
    at = _position(op)
    b.statement(op, lambda: f"{lane_text(b, name, kind_of(result), at)} = {b.use(value).text};")


def _broadcast(b: Body, op: Op) -> Expression:
    target = kind_of(op.results[0])
    if target.is_wide:
        raise EmitError(f"emit: a broadcast to {type_name(target)}")
    x = b.use(op.operands[0])
    return x if kind_of(op.operands[0]).lanes == target.lanes else call(type_name(target), x)


def _from_elements(b: Body, op: Op) -> Expression:
    if len(op.operands) == 1:
        return b.use(op.operands[0])
    kind = kind_of(op.results[0])
    if kind.is_wide:
        return Expression(f"{type_name(kind)}{{{{{', '.join([b.use(v).text for v in op.operands])}}}}}", PRIMARY,
                          *[b.use(v) for v in op.operands])
    return call(type_name(kind), *[b.use(v) for v in op.operands])


def _same(b: Body, op: Op) -> Expression:
    return b.use(op.operands[0])


# Complex numbers: float2


def _component(x: Expression, name: str) -> Expression:
    """A part of a complex number; of one that is just put together, what it is made of."""
    if x.parts is not None and not x.operator:
        return x.parts[name == "y"]
    return member(x, name)


def _part(b: Body, op: Op) -> Expression:
    return _component(b.use(op.operands[0]), "x" if op.name == "complex.re" else "y")


def _create(b: Body, op: Op) -> Expression:
    real, imag = (b.use(v) for v in op.operands)
    found = call("float2", real, imag)
    found.parts = real, imag
    return found


def _complex_operator(b: Body, op: Op) -> Expression:
    x, y = (b.use(v) for v in op.operands)
    return binary("+" if op.name == "complex.add" else "-", x, y)


def _complex_equal(b: Body, op: Op) -> Expression:
    equal, both = ("==", "&&") if op.name == "complex.eq" else ("!=", "||")
    x, y = (b.named(v) for v in op.operands)
    real, imag = (binary(equal, _component(x, name), _component(y, name)) for name in "xy")
    return binary(both, real, imag)


def _complex_bitcast(b: Body, op: Op) -> Expression:
    return as_type(kind_of(op.results[0]), b.use(op.operands[0]))


def complex_call(b: Body, op: Op) -> Expression:
    """Any other op on complex numbers: a function that MLIR's own expansion defines."""
    kinds = [kind_of(v) for v in (*op.operands, *op.results)]
    return call(b.complex_function(op.name, kinds), *[b.use(v) for v in op.operands])


RULES: dict[str, Rule] = {
    "memref.load": _load,
    "memref.get_global": _get_global,
    "vector.load": _load_vector,
    "vector.extract": _extract,
    "vector.broadcast": _broadcast,
    "vector.from_elements": _from_elements,
    "vector.shape_cast": _same,
    "complex.constant": lambda b, op: literals.complex_constant(op.attribute("value")),
    "complex.create": _create,
    "complex.re": _part,
    "complex.im": _part,
    "complex.add": _complex_operator,
    "complex.sub": _complex_operator,
    "complex.neg": lambda b, op: prefix("-", b.use(op.operands[0])),
    "complex.eq": _complex_equal,
    "complex.neq": _complex_equal,
    "complex.bitcast": _complex_bitcast,
}
STATEMENTS = {
    "memref.store": _store,
    "memref.atomic_rmw": _atomic,
    "memref.alloca": _alloca,
    "vector.store": _store_vector,
    "vector.insert": _insert,
}
