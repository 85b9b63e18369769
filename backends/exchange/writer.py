"""What rules write StableHLO with: tensors that add, shift and compare, and ops by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.dtypes import DType
from smelt.ir.errors import IRError
from smelt.ir.ops.constants import constant_array


class UntranslatedError(IRError):
    """An op that has no translation, or a form of one."""


def type_of(aval: Aval) -> str:
    """A type of MLIR: StableHLO writes those of smelt as smelt does."""
    return "tensor<" + "".join(f"{d}x" for d in aval.shape) + aval.dtype.mlir + ">"


def ints(values: Sequence[int]) -> str:
    """An attribute that is an array of integers."""
    return "array<i64: " + ", ".join(map(str, values)) + ">" if values else "array<i64>"


class Tensor:
    """A value of the program that is being written."""

    __slots__ = ("aval", "name", "writer")

    def __init__(self, writer: Writer, name: str, aval: Aval):
        self.writer, self.name, self.aval = writer, name, aval

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape

    @property
    def dtype(self) -> DType:
        return self.aval.dtype

    def _with(self, op: str, x: Tensor | float, swapped: bool = False) -> Tensor:
        other = x if isinstance(x, Tensor) else self.writer.full(self, x)
        a, b = self.writer.together((other, self) if swapped else (self, other))
        return self.writer.op(op, [a, b], a.aval)

    def __add__(self, x: Tensor | float) -> Tensor:
        return self._with("stablehlo.add", x)

    def __sub__(self, x: Tensor | float) -> Tensor:
        return self._with("stablehlo.subtract", x)

    def __mul__(self, x: Tensor | float) -> Tensor:
        return self._with("stablehlo.multiply", x)

    def __truediv__(self, x: Tensor | float) -> Tensor:
        return self._with("stablehlo.divide", x)

    def __xor__(self, x: Tensor | int) -> Tensor:
        return self._with("stablehlo.xor", x)

    def __and__(self, x: Tensor | int) -> Tensor:
        return self._with("stablehlo.and", x)

    def __or__(self, x: Tensor | int) -> Tensor:
        return self._with("stablehlo.or", x)

    def __lshift__(self, x: Tensor | int) -> Tensor:
        return self._with("stablehlo.shift_left", x)

    def __rshift__(self, x: Tensor | int) -> Tensor:
        kind = "logical" if self.dtype.kind == "u" else "arithmetic"
        return self._with(f"stablehlo.shift_right_{kind}", x)

    def __neg__(self) -> Tensor:
        return self.writer.op("stablehlo.negate", [self], self.aval)


class Writer:
    """Lines of one function; regions are written into lists of their own.

    Args:
        functions: called with the name of a function of the module that is referred to.

    Attributes:
        own_rules: rules of ops that stand in place of those of the table.
    """

    own_rules: Mapping[str, Any] = {}

    def __init__(self, functions: Callable[[str], None]):
        self.lines: list[str] = []
        self._count = 0
        self.refers = functions

    # Ops

    def op(
        self, name: str, operands: Sequence[Tensor], result: Aval, attrs: str = "", regions: Sequence[str] = ()
    ) -> Tensor:
        """An op with one result. `attrs` as they stand between the braces of the generic form."""
        return self.op_all(name, operands, [result], attrs, regions)[0]

    def op_all(
        self,
        name: str,
        operands: Sequence[Tensor],
        results: Sequence[Aval],
        attrs: str = "",
        regions: Sequence[str] = (),
    ) -> list[Tensor]:
        types = [type_of(x.aval) for x in operands]
        return self.write(name, [x.name for x in operands], types, results, attrs, regions)

    def write(
        self,
        name: str,
        operands: Sequence[str],
        types: Sequence[str],
        results: Sequence[Aval],
        attrs: str,
        regions: Sequence[str],
    ) -> list[Tensor]:
        """An op by the names and the types of its operands."""
        base, many = self.new_name(), len(results) > 1
        names = [f"{base}#{i}" for i in range(len(results))] if many else [base]
        left = "" if not results else f"{base}:{len(results)} = " if many else f"{base} = "
        inner = f" ({', '.join(regions)})" if regions else ""
        extra = f" {{{attrs}}}" if attrs else ""
        gives = ", ".join(map(type_of, results))
        self.lines.append(f'{left}"{name}"({", ".join(operands)}){inner}{extra} : ({", ".join(types)}) -> ({gives})')
        return self.tensors(names, results)

    def new_name(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def tensors(self, names: Sequence[str], avals: Sequence[Aval]) -> list[Tensor]:
        return [Tensor(self, name, aval) for name, aval in zip(names, avals)]

    def block(self, types: Sequence[str], body: Callable[[Sequence[str]], str]) -> str:
        """A region of one block; `body` gets the names of its arguments and returns the line that ends it."""
        outer, self.lines = self.lines, []
        base = self.new_name()
        names = [f"{base}_{i}" for i in range(len(types))]
        self.lines.append(body(names))
        inner, self.lines = self.lines, outer
        header = ", ".join(f"{name}: {kind}" for name, kind in zip(names, types))
        return "{\n" + (f"^bb0({header}):\n" if header else "^bb0:\n") + "\n".join(inner) + "\n}"

    def region(self, arguments: Sequence[Aval], body: Callable[..., Sequence[Tensor]]) -> str:
        """A region whose block takes these arguments and returns what `body` makes of them."""

        def returned(names: Sequence[str]) -> str:
            found = body(*self.tensors(names, arguments))
            given, types = ", ".join(x.name for x in found), ", ".join(type_of(x.aval) for x in found)
            return f'"stablehlo.return"({given}) : ({types}) -> ()'

        return self.block(list(map(type_of, arguments)), returned)

    def scalars(self, dtype: DType, count: int, body: Callable[..., Sequence[Tensor]]) -> str:
        """A region of scalars of one dtype."""
        return self.region([Aval((), dtype)] * count, body)

    def call(self, name: str, operands: Sequence[Tensor], results: Sequence[Aval]) -> list[Tensor]:
        self.refers(name)
        return self.op_all("func.call", operands, results, f"callee = @{symbol(name)}")

    # Constants

    def constant(self, values: np.ndarray) -> Tensor:
        values = np.asarray(values)
        aval = Aval(values.shape, dtypes.of(values.dtype))
        return self.op("stablehlo.constant", [], aval, f"value = {elements_text(values)} : {type_of(aval)}")

    def scalar(self, value: Any, dtype: DType) -> Tensor:
        return self.constant(constant_array(value, dtype))

    def full(self, like: Tensor, value: Any, dtype: DType | None = None) -> Tensor:
        """One value in the shape of a tensor."""
        return self.broadcast(self.scalar(value, dtype or like.dtype), like.shape)

    def iota(self, shape: tuple[int, ...], axis: int, dtype: DType) -> Tensor:
        return self.op("stablehlo.iota", [], Aval(shape, dtype), f"iota_dimension = {axis} : i64")

    # Shapes

    def broadcast(self, x: Tensor, shape: Sequence[int], axes: Sequence[int] | None = None) -> Tensor:
        """By NumPy's rule, or axis i to axes[i]."""
        shape = tuple(shape)
        if x.shape == shape:
            return x
        where = range(len(shape) - len(x.shape), len(shape)) if axes is None else axes
        attrs = f"broadcast_dimensions = {ints(tuple(where))}"
        return self.op("stablehlo.broadcast_in_dim", [x], Aval(shape, x.dtype), attrs)

    def together(self, xs: Sequence[Tensor]) -> list[Tensor]:
        shape = np.broadcast_shapes(*(x.shape for x in xs))
        return [self.broadcast(x, shape) for x in xs]

    def reshape(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        shape = tuple(shape)
        return x if x.shape == shape else self.op("stablehlo.reshape", [x], Aval(shape, x.dtype))

    def transpose(self, x: Tensor, permutation: Sequence[int]) -> Tensor:
        shape = tuple(x.shape[a] for a in permutation)
        return self.op("stablehlo.transpose", [x], Aval(shape, x.dtype), f"permutation = {ints(tuple(permutation))}")

    def slice(self, x: Tensor, start: Sequence[int], stop: Sequence[int], stride: Sequence[int] = ()) -> Tensor:
        stride = tuple(stride) or (1,) * len(x.shape)
        shape = tuple(max(0, -((a - b) // s)) for a, b, s in zip(start, stop, stride))
        attrs = f"start_indices = {ints(tuple(start))}, limit_indices = {ints(tuple(stop))}, strides = {ints(stride)}"
        return self.op("stablehlo.slice", [x], Aval(shape, x.dtype), attrs)

    def concatenate(self, xs: Sequence[Tensor], axis: int) -> Tensor:
        shape = list(xs[0].shape)
        shape[axis] = sum(x.shape[axis] for x in xs)
        return self.op("stablehlo.concatenate", xs, Aval(tuple(shape), xs[0].dtype), f"dimension = {axis} : i64")

    def dynamic_slice(self, x: Tensor, start: Sequence[Tensor], sizes: tuple[int, ...]) -> Tensor:
        """A block at a place that is known when the program runs."""
        return self.op("stablehlo.dynamic_slice", [x, *start], Aval(sizes, x.dtype), f"slice_sizes = {ints(sizes)}")

    def while_(
        self, test: Callable[..., Tensor], step: Callable[..., Sequence[Tensor]], carried: Sequence[Tensor]
    ) -> list[Tensor]:
        """``carried = step(*carried)`` as long as `test` of them holds."""
        avals = [x.aval for x in carried]
        regions = [self.region(avals, lambda *values: [test(*values)]), self.region(avals, step)]
        return self.op_all("stablehlo.while", carried, avals, "", regions)

    def loop(
        self, count: int | Tensor, step: Callable[..., Sequence[Tensor]], carried: Sequence[Tensor]
    ) -> list[Tensor]:
        """``carried = step(i, *carried)`` for each number below `count`."""
        if isinstance(count, int) and not count:
            return list(carried)
        kind = count.dtype if isinstance(count, Tensor) else dtypes.int32 if count < 1 << 31 else dtypes.int64
        return self.while_(
            lambda i, *_: self.compare("LT", i, count),
            lambda i, *values: [i + 1, *step(i, *values)],
            [self.scalar(0, kind), *carried],
        )[1:]

    def case(
        self, choice: Tensor, branches: Sequence[Callable[[], Sequence[Tensor]]], results: Sequence[Aval]
    ) -> list[Tensor]:
        """What one of these makes: by a bool, or by a number; the last one where that is no number of a branch."""
        regions = [self.region([], branch) for branch in branches]
        return self.op_all("stablehlo.case", [self.convert(choice, dtypes.int32)], results, "", regions)

    # Elements

    def unary(self, name: str, x: Tensor) -> Tensor:
        return self.op(name, [x], x.aval)

    def binary(self, name: str, x: Tensor, y: Tensor | float) -> Tensor:
        a, b = self.together((x, y if isinstance(y, Tensor) else self.full(x, y)))
        return self.op(name, [a, b], a.aval)

    def convert(self, x: Tensor, dtype: DType) -> Tensor:
        return x if x.dtype is dtype else self.op("stablehlo.convert", [x], Aval(x.shape, dtype))

    def compare(self, direction: str, x: Tensor, y: Tensor | float, total: bool = False) -> Tensor:
        a, b = self.together((x, y if isinstance(y, Tensor) else self.full(x, y)))
        kind = {"f": "FLOAT", "c": "FLOAT", "i": "SIGNED"}.get(a.dtype.kind, "UNSIGNED")
        kind = "TOTALORDER" if total and a.dtype.kind == "f" else kind
        attrs = (
            f"comparison_direction = #stablehlo<comparison_direction {direction}>, "
            f"compare_type = #stablehlo<comparison_type {kind}>"
        )
        return self.op("stablehlo.compare", [a, b], Aval(a.shape, dtypes.bool_), attrs)

    def select(self, condition: Tensor, x: Tensor | float, y: Tensor | float) -> Tensor:
        known = x if isinstance(x, Tensor) else y
        assert isinstance(known, Tensor)
        a = x if isinstance(x, Tensor) else self.full(known, x)
        b = y if isinstance(y, Tensor) else self.full(known, y)
        condition, a, b = self.together((condition, a, b))
        return self.op("stablehlo.select", [condition, a, b], a.aval)

    def invert(self, x: Tensor) -> Tensor:
        return self.unary("stablehlo.not", x)

    # Reductions

    def reduce(self, x: Tensor, start: Any, name: str, axes: Sequence[int]) -> Tensor:
        """A reduction by one op."""
        if not axes:
            return x
        if not x.aval.size:
            return self.broadcast(self.scalar(start, x.dtype), [d for i, d in enumerate(x.shape) if i not in axes])
        body = self.scalars(x.dtype, 2, lambda a, b: [self.op(name, [a, b], a.aval)])
        shape = tuple(d for i, d in enumerate(x.shape) if i not in axes)
        first, attrs = self.scalar(start, x.dtype), f"dimensions = {ints(tuple(axes))}"
        return self.op("stablehlo.reduce", [x, first], Aval(shape, x.dtype), attrs, [body])


def symbol(name: str) -> str:
    """A name of a function as it is written after an @."""
    plain = name.isascii() and (name[0].isalpha() or name[0] == "_") and name.replace("_", "a").isalnum()
    return name if plain else '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def elements_text(values: np.ndarray) -> str:
    """``dense<…>`` with all bits: floats as their bits, so that no digit is lost."""
    kind = dtypes.of(values.dtype)
    flat = np.ascontiguousarray(values).reshape(-1)
    if flat.size and (flat.size == 1 or flat.tobytes() == flat[:1].tobytes() * flat.size):
        return f"dense<{_element(flat[0], kind)}>"
    if kind is dtypes.bool_ or flat.size <= 64:
        return f"dense<{_nested(values, kind)}>"
    data = flat.astype(flat.dtype.newbyteorder("<")) if kind is not dtypes.bfloat16 else flat.view(np.uint16)
    return f'dense<"0x{data.tobytes().hex().upper()}">'


def _nested(values: np.ndarray, kind: DType) -> str:
    if not values.size:
        return ""
    if values.ndim:
        return "[" + ", ".join(_nested(row, kind) for row in values) + "]"
    return _element(values[()], kind)


def _element(value: Any, kind: DType) -> str:
    if kind is dtypes.bool_:
        return "true" if value else "false"
    if kind.is_complex:
        real = dtypes.float64 if kind is dtypes.complex128 else dtypes.float32
        parts = np.array([value.real, value.imag], real.numpy)
        return f"({_element(parts[0], real)}, {_element(parts[1], real)})"
    if not kind.is_float:
        return str(int(value))
    bits = np.asarray(value, kind.numpy).reshape(1).view({2: np.uint16, 4: np.uint32, 8: np.uint64}[kind.size])[0]
    return f"0x{int(bits):0{2 * kind.size}X}"
