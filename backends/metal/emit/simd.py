"""Rules for `gpu`: positions of threads, barriers, lanes of a simdgroup, simdgroup matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smelt.ir import mlir

from . import literals
from .arith import Rule
from .expressions import (
    Expression,
    as_type,
    binary,
    call,
    cast,
    member,
    pointer,
    signed,
    unsigned,
    variable,
)
from .ir import Op, Value, kind_of
from .memory import offset
from .types import Array, EmitError, Type, bits_type, type_name

if TYPE_CHECKING:
    from .body import Body

LANES = 32
#: Ops that give a thread's position → the attribute of Metal and the parameter's usual name.
POSITIONS = {
    "gpu.thread_id": ("thread_position_in_threadgroup", "tid"),
    "gpu.block_id": ("threadgroup_position_in_grid", "group"),
    "gpu.global_id": ("thread_position_in_grid", "gid"),
}
INDICES = {
    "gpu.lane_id": ("thread_index_in_simdgroup", "lane"),
    "gpu.subgroup_id": ("simdgroup_index_in_threadgroup", "simdgroup"),
}
#: Memory seen as of other elements.
CAST = "builtin.unrealized_conversion_cast"
_WORD = Type("int", 32)
_REDUCTIONS = {
    "add": "sum", "mul": "product", "minui": "min", "maxui": "max", "minsi": "min", "maxsi": "max",
    "minnumf": "min", "maxnumf": "max", "minimumf": "nan_min", "maximumf": "nan_max", "and": "and", "or": "or",
    "xor": "xor",
}  # fmt: skip
_BOOL_REDUCTIONS = {
    "and": "all", "minui": "all", "maxsi": "all", "mul": "all", "or": "any", "maxui": "any", "minsi": "any",
}  # fmt: skip
_SHUFFLES = {"xor": "shuffle_xor", "up": "shuffle_up", "down": "shuffle_down", "idx": "shuffle"}
_FENCES = {"workgroup": "mem_flags::mem_threadgroup", "global": "mem_flags::mem_device"}


def dimension(op: Op) -> int:
    """0, 1 or 2."""
    return "xyz".index(op.text("dimension"))


def _index(b: Body, op: Op, e: Expression) -> Expression:
    """A position, which Metal gives in 32 bits, as an index."""
    kind = kind_of(op.results[0])
    return e if kind.bits == 32 else cast(kind, e)


def _position(b: Body, op: Op) -> Expression:
    axis = dimension(op)
    if b.extent(op.name, axis) == 1:
        return literals.integer(0, kind_of(op.results[0]))
    e = variable(b.parameters[op.name])
    return _index(b, op, member(e, "xyz"[axis]) if b.wide_positions else e)


def _lane(b: Body, op: Op) -> Expression:
    if op.name == "gpu.subgroup_id" and b.threads <= LANES:
        return literals.integer(0, kind_of(op.results[0]))
    return _index(b, op, variable(b.parameters[op.name]))


def _extent(b: Body, op: Op) -> Expression:
    name = "gpu.thread_id" if op.name == "gpu.block_dim" else "gpu.block_id"
    return literals.integer(b.extent(name, dimension(op)), kind_of(op.results[0]))


def _barrier(b: Body, op: Op) -> None:
    spaces = op.attribute("address_spaces")
    names = ["workgroup", "global"] if spaces is None else [str(s).split("<")[1].rstrip(">") for s in spaces]
    fences = " | ".join([_FENCES[name] for name in _FENCES if name in names]) or "mem_flags::mem_none"
    scope = op.attribute("scope")
    who = "simdgroup" if scope is not None and "subgroup" in str(scope) else "threadgroup"
    b.line(f"{who}_barrier({fences});")


def _reduce(b: Body, op: Op) -> None:
    kind, which = kind_of(op.results[0]), op.text("op")
    if op.attribute("cluster_size") is not None or which not in _REDUCTIONS:
        raise EmitError(f"emit: gpu.subgroup_reduce {which} over part of a simdgroup")
    name = _REDUCTIONS[which]
    is_signed = which in ("minsi", "maxsi")

    def build() -> Expression:
        x = b.use(op.operands[0])
        if kind.kind == "bool":
            if which in _BOOL_REDUCTIONS:
                return call(f"simd_{_BOOL_REDUCTIONS[which]}", x)
            return cast(kind, call("simd_xor", cast(_WORD, x)))
        if kind.bits == 64:
            wide = Type("long", 64) if is_signed else kind if kind.kind == "float" else Type("int", 64)
            found = call(b.helper(f"simd_{name}_64", wide), signed(x, kind) if is_signed else x)
            return unsigned(found, kind) if is_signed else found
        if name.startswith("nan_"):
            return call(b.helper(f"simd_{name}", kind), x)
        if is_signed:
            return unsigned(call(f"simd_{name}", signed(x, kind)), kind)
        return call(f"simd_{name}", x)

    b.declare(op.results[0], b.built(op, build), "total")


def _shuffle(b: Body, op: Op) -> None:
    value, distance, width = op.operands
    kind, mode = kind_of(value), op.text("mode")
    if b.use(width).literal != LANES:
        raise EmitError("emit: gpu.shuffle over part of a simdgroup")
    function = f"simd_{_SHUFFLES[mode]}"

    def build() -> Expression:
        x = b.use(value)
        at = literals.bare(b.use(distance))
        if at.literal is None and not at.text.isdigit():
            at = call("ushort", at)
        if kind.kind == "bool":
            return cast(kind, call(function, cast(Type("int", 32, kind.lanes), x), at))
        if kind.bits == 64 and kind.kind != "complex":
            if kind.lanes != 1:
                raise EmitError(f"emit: gpu.shuffle of {type_name(kind)}")
            return as_type(kind, call(function, as_type(Type("int", 32, 2), x), at))
        if kind.kind == "bfloat":
            return as_type(kind, call(function, as_type(bits_type(kind), x), at))
        return call(function, x, at)

    if op.results[1].uses:
        _shuffle_is_valid(b, op, mode, distance)
    b.declare(op.results[0], b.built(op, build), "other")


def _shuffle_is_valid(b: Body, op: Op, mode: str, distance: Value) -> None:
    at = b.named(distance)
    if mode == "xor" or mode == "idx":
        test = binary("<", at, literals.integer(LANES, _WORD))
    elif mode == "up":
        test = binary(">=", variable(b.parameters["gpu.lane_id"]), at)
    else:
        reached = binary("+", variable(b.parameters["gpu.lane_id"]), at)
        test = binary("<", reached, literals.integer(LANES, _WORD))
    b.declare(op.results[1], test, "valid")


def _ballot(b: Body, op: Op) -> None:
    kind = kind_of(op.results[0])
    if kind.bits != LANES:
        raise EmitError(f"emit: gpu.ballot of {LANES} lanes in {kind.bits} bits")
    found = b.built(op, lambda: cast(kind, call("simd_vote::vote_t", call("simd_ballot", b.use(op.operands[0])))))
    b.declare(op.results[0], found, "votes")


# Matrices of 8 by 8, each spread over the lanes of a simdgroup


def _matrix_place(b: Body, op: Op, memory: Value, indices: list[Value]) -> str:
    assert isinstance(memory.type, Array)
    row = literals.attribute_bits(op.attribute("leadDimension"), Type("int", 64))[0]
    where = pointer(b.use(memory).text, offset(b, memory, indices)).text
    transposed = ", ulong2(0), true" if op.attribute("transpose") is not None else ""
    return f"{where}, {row}{transposed}"


def _matrix_load(b: Body, op: Op) -> None:
    memory, *indices = op.operands
    result = op.results[0]
    name = b.names.take(b.hint(result, "matrix"))
    kind = kind_of(result)
    if memory.op is not None and memory.op.name == CAST:  # upstream's matrices have no bfloat
        source = memory.op.operands[0].type
        assert isinstance(source, Array)
        kind = Type(f"{source.element.kind} matrix", source.element.bits)
    b.line(f"{type_name(kind)} {name};")
    b.statement(op, lambda: f"simdgroup_load({name}, {_matrix_place(b, op, memory, indices)});")
    b.bind(result, name)


def _matrix_store(b: Body, op: Op) -> None:
    value, memory, *indices = op.operands
    x = b.named(value).text
    b.statement(op, lambda: f"simdgroup_store({x}, {_matrix_place(b, op, memory, indices)});")


def _matrix_fill(b: Body, op: Op) -> Expression:
    kind = kind_of(op.results[0])
    scalar = type_name(Type("float", kind.bits))
    return call(f"make_filled_simdgroup_matrix<{scalar}, 8, 8>", b.use(op.operands[0]))


def _matrix_compute(b: Body, op: Op) -> None:
    if op.attribute("a_transpose") is not None or op.attribute("b_transpose") is not None:
        raise EmitError("emit: gpu.subgroup_mma_compute of a transposed matrix; load it transposed")
    left, right, added = op.operands
    x, y = b.named(left).text, b.named(right).text
    name = b.take_over(added, op.results[0])  # in place: tensor cores take such products two by two
    b.line(f"simdgroup_multiply_accumulate({name}, {x}, {y}, {name});")


_ELEMENTWISE = {"addf": "+=", "subf": "-=", "mulf": "*=", "divf": "/="}
#: Elements of a matrix that each lane has.
OWN = 2


def _matrix_elementwise(b: Body, op: Op) -> None:
    """Which lane holds which element is unspecified in Metal, but the same for all matrices."""
    sign = _ELEMENTWISE.get(op.text("opType"))
    if sign is None or len(op.operands) != 2:
        known = ", ".join(_ELEMENTWISE)
        raise EmitError(f"emit: gpu.subgroup_mma_elementwise {op.text('opType')} is not among {known}")
    left, right = op.operands
    other = b.named(right).text
    name = b.take_over(left, op.results[0])
    for i in range(OWN):
        b.line(f"{name}.thread_elements()[{i}] {sign} {other}.thread_elements()[{i}];")


def _own_element(b: Body, at: Value) -> int:
    found = literals.bare(b.use(at)).text
    if not found.isdigit() or int(found) >= OWN:
        raise EmitError(f"emit: element {found} of a lane's {OWN} elements of a matrix; it must be a known number")
    return int(found)


def _matrix_extract(b: Body, op: Op) -> None:
    matrix, at = op.operands
    b.declare(op.results[0], Expression(f"{b.named(matrix).text}.thread_elements()[{_own_element(b, at)}]"), "element")


def _matrix_insert(b: Body, op: Op) -> None:
    x, matrix, at = op.operands
    value = b.use(x)
    is_bfloat = x.op is not None and x.op.name == CAST  # upstream's matrices have none
    if is_bfloat and matrix.op is not None and matrix.op.name == "gpu.subgroup_mma_constant_matrix":
        name = b.names.take(b.hint(op.results[0], "matrix"))
        kind = type_name(Type("bfloat matrix", 16))
        start = cast(Type("bfloat", 16), b.use(matrix.op.operands[0]))
        filled = call("make_filled_simdgroup_matrix<bfloat, 8, 8>", start)
        b.line(f"{kind} {name} = {filled.text};")
        b.bind(op.results[0], name)
    else:
        name = b.take_over(matrix, op.results[0])
    b.line(f"{name}.thread_elements()[{_own_element(b, at)}] = {value.text};")


def uses_lane(op: Op) -> bool:
    """Whether a shuffle needs the lane, to say whether its result is valid."""
    if op.name != "gpu.shuffle" or not op.results[1].uses:
        return False
    return str(mlir.ir.Attribute(op.attribute("mode"))).rstrip(">").endswith(("up", "down"))


RULES: dict[str, Rule] = {
    **dict.fromkeys(POSITIONS, _position),
    **dict.fromkeys(INDICES, _lane),
    "gpu.block_dim": _extent,
    "gpu.grid_dim": _extent,
    "gpu.num_subgroups": lambda b, op: literals.integer(-(-b.threads // LANES), kind_of(op.results[0])),
    "gpu.subgroup_size": lambda b, op: literals.integer(LANES, kind_of(op.results[0])),
    "gpu.subgroup_mma_constant_matrix": _matrix_fill,
    CAST: lambda b, op: b.use(op.operands[0]),
}
STATEMENTS = {
    "gpu.barrier": _barrier,
    "gpu.subgroup_reduce": _reduce,
    "gpu.shuffle": _shuffle,
    "gpu.ballot": _ballot,
    "gpu.subgroup_mma_load_matrix": _matrix_load,
    "gpu.subgroup_mma_store_matrix": _matrix_store,
    "gpu.subgroup_mma_compute": _matrix_compute,
    "gpu.subgroup_mma_elementwise": _matrix_elementwise,
    "gpu.subgroup_mma_extract_thread_local": _matrix_extract,
    "gpu.subgroup_mma_insert_thread_local": _matrix_insert,
}
