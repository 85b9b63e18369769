"""Scalars inside kernels: what the `lower` rules of ops are written with.

`Kernel` emits upstream arith/math/complex/scf ops at an insertion point; `Scalar` is one SSA value
with its dtype and Python operators. Half precision is held as float32 and rounded when stored or
converted; bool is i1; complex64 is complex<f32>. Target-neutral: no smelt op, no memory layout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from . import dtypes, mlir
from .context import context
from .dtypes import DType

#: Not an element type of arrays: MLIR's index type, for loop bounds and addresses.
INDEX = DType("index", "index", "i", 8, "int64")


def compute_dtype(dtype: DType) -> DType:
    """The dtype in which kernels hold elements of `dtype`."""
    return dtypes.float32 if dtype.kind == "f" and dtype.size == 2 else dtype


class Scalar:
    """One value inside a kernel."""

    __slots__ = ("dtype", "k", "mlir")

    def __init__(self, k: Kernel, value: Any, dtype: DType):
        self.k, self.mlir, self.dtype = k, value, dtype

    def _other(self, x: Scalar | float | complex) -> Scalar:
        return x if isinstance(x, Scalar) else self.k.const(x, self.dtype)

    def __add__(self, x):
        return self.k.add(self, self._other(x))

    def __radd__(self, x):
        return self.k.add(self._other(x), self)

    def __sub__(self, x):
        return self.k.sub(self, self._other(x))

    def __rsub__(self, x):
        return self.k.sub(self._other(x), self)

    def __mul__(self, x):
        return self.k.mul(self, self._other(x))

    def __rmul__(self, x):
        return self.k.mul(self._other(x), self)

    def __truediv__(self, x):
        return self.k.div(self, self._other(x))

    def __rtruediv__(self, x):
        return self.k.div(self._other(x), self)

    def __neg__(self):
        return self.k.neg(self)

    def __and__(self, x):
        return self.k.bitwise("andi", self, self._other(x))

    def __or__(self, x):
        return self.k.bitwise("ori", self, self._other(x))

    def __xor__(self, x):
        return self.k.bitwise("xori", self, self._other(x))

    def __invert__(self):
        return self ^ (True if self.dtype.kind == "b" else -1)

    def __lshift__(self, x):
        return self.k.bitwise("shli", self, self._other(x))

    def __rshift__(self, x):
        return self.k.bitwise("shrsi" if self.dtype.kind == "i" else "shrui", self, self._other(x))

    def __lt__(self, x):
        return self.k.compare("lt", self, self._other(x))

    def __le__(self, x):
        return self.k.compare("le", self, self._other(x))

    def __gt__(self, x):
        return self.k.compare("gt", self, self._other(x))

    def __ge__(self, x):
        return self.k.compare("ge", self, self._other(x))

    def eq(self, x):
        return self.k.compare("eq", self, self._other(x))

    def ne(self, x):
        return self.k.compare("ne", self, self._other(x))


_CMPI = {
    "eq": (0, 0), "ne": (1, 1), "lt": (2, 6), "le": (3, 7), "gt": (4, 8), "ge": (5, 9),
}  # fmt: skip
_CMPF = {"eq": 1, "gt": 2, "ge": 3, "lt": 4, "le": 5, "ne": 13}  # ordered; ne is unordered


class Kernel:
    """Emits scalar code. One kernel is one MLIR function; `ip` moves as regions are entered.

    Attributes:
        source_dtype: of the first operand of the op being lowered; its scalars may be wider.
        checks_indices: whether indices known at run time are to be read even where there is one place to go.
    """

    source_dtype: DType | None = None
    checks_indices = False

    def __init__(self, ip: Any, location: Any):
        self.ip, self.location, self.context = ip, location, context()
        self._types: dict[DType, Any] = {}

    @property
    def is_half(self) -> bool:
        """Whether the op being lowered works on half precision, so that its result need not be finer."""
        return self.source_dtype is not None and self.source_dtype.kind == "f" and self.source_dtype.size == 2

    # Emission

    def type(self, dtype: DType) -> Any:
        """The MLIR type in which scalars of `dtype` are held."""
        found = self._types.get(dtype)
        if found is None:
            dtype_ = compute_dtype(dtype)
            text = f"i{dtype_.bits}" if dtype_.kind == "u" else dtype_.mlir
            found = self._types[dtype] = mlir.ir.Type.parse(text, self.context)
        return found

    def emit(self, name: str, operands: Sequence[Any], types: Sequence[Any], regions: int = 0, **attrs: Any) -> Any:
        """Any upstream op, by name; operands may be Scalars or MLIR values."""
        return mlir.ir.Operation.create(
            name,
            results=types,
            operands=[x.mlir if isinstance(x, Scalar) else x for x in operands],
            attributes=attrs or None,
            regions=regions,
            loc=self.location,
            ip=self.ip,
        )

    def op(self, name: str, operands: Sequence[Scalar], dtype: DType, **attrs: Any) -> Scalar:
        """An upstream op with one result of `dtype`."""
        dtype = compute_dtype(dtype)
        return Scalar(self, self.emit(name, operands, [self.type(dtype)], **attrs).results[0], dtype)

    def attr(self, text: str) -> Any:
        return mlir.ir.Attribute.parse(text, self.context)

    # Constants and conversions

    def const(self, value: Any, dtype: DType) -> Scalar:
        """A constant; floats are written by their bits, so nothing is rounded twice."""
        dtype = compute_dtype(dtype)
        ir = mlir.ir
        kind = self.type(dtype)
        if dtype.kind == "c":
            value = complex(value)
            parts = [
                ir.FloatAttr.get(self.type(dtypes.float32), x, loc=self.location)
                for x in (value.real, value.imag)
            ]
            return self.op("complex.constant", (), dtype, value=ir.ArrayAttr.get(parts, self.context))
        if dtype.kind == "f":
            attr = ir.FloatAttr.get(kind, float(value), loc=self.location)
        elif dtype.kind == "b":
            attr = ir.BoolAttr.get(bool(value), self.context)
        else:
            bits = dtype.bits
            value = int(value) & ((1 << bits) - 1)
            value -= (value >> (bits - 1)) << bits
            attr = ir.IntegerAttr.get(kind, value)
        return self.op("arith.constant", (), dtype, value=attr)

    def convert(self, x: Scalar, dtype: DType) -> Scalar:
        """Numeric conversion. Float to integer truncates and saturates, NaN to 0; int to int wraps."""
        source = x.dtype
        target = compute_dtype(dtype)
        if dtype.kind == "f" and dtype.size == 2 and source.kind != "c":
            wide = self.convert(x, dtypes.float32)
            narrow = self.emit("arith.truncf", [wide], [mlir.ir.Type.parse(dtype.mlir, self.context)]).result
            return Scalar(self, self.emit("arith.extf", [narrow], [self.type(target)]).result, target)
        if source is target:
            return x
        if INDEX in (source, target):
            if source is INDEX:
                wide = self.op("arith.index_cast", [x], dtypes.int64)
                return self.convert(wide, target)
            if source.kind == "b":
                return self.op("arith.index_castui", [x], INDEX)
            return self.op("arith.index_cast" if source.kind == "i" else "arith.index_castui", [x], INDEX)
        if target.kind == "c":
            real = self.convert(x, dtypes.float32)
            return self.complex(real, self.const(0.0, dtypes.float32))
        if source.kind == "c":
            if target.kind == "b":
                return self.compare("ne", x, self.const(0, source))
            return self.convert(self.real(x), target)
        if target.kind == "b":
            return self.compare("ne", x, self.const(0, source))
        if source.kind == "f":
            if target.kind == "f":
                return self.op("arith.extf" if target.size > source.size else "arith.truncf", [x], target)
            return self._float_to_int(x, target)
        if target.kind == "f":
            return self.op("arith.sitofp" if source.kind == "i" else "arith.uitofp", [x], target)
        if target.bits == source.bits:
            return Scalar(self, x.mlir, target)
        if target.bits < source.bits:
            return self.op("arith.trunci", [x], target)
        return self.op("arith.extsi" if source.kind == "i" else "arith.extui", [x], target)

    def _float_to_int(self, x: Scalar, target: DType) -> Scalar:
        bits = target.bits
        low = -(2 ** (bits - 1)) if target.kind == "i" else 0
        high = 2 ** (bits - 1) if target.kind == "i" else 2**bits  # the first value too large
        top = high - 1
        inside = self.logical_and(x > float(low) - 1 if low > -(2**31) else x >= float(low), x < float(high))
        safe = self.select(inside, x, self.const(0.0, x.dtype))
        cast = self.op("arith.fptosi" if target.kind == "i" else "arith.fptoui", [safe], target)
        out = self.select(x >= float(high), self.const(top, target), self.const(low, target))
        out = self.select(self.isnan(x), self.const(0, target), out)
        return self.select(inside, cast, out)

    def bitcast(self, x: Scalar, dtype: DType) -> Scalar:
        """Same bits, another dtype of the same size (not for half precision or bool)."""
        if x.dtype.kind in "iu" and dtype.kind in "iu":
            return Scalar(self, x.mlir, dtype)
        return self.op("arith.bitcast", [x], dtype)

    # Arithmetic

    def _arith(self, stem: str, x: Scalar, y: Scalar) -> Scalar:
        if x.dtype.kind == "c":
            return self.op(f"complex.{stem}", [x, y], x.dtype)
        return self.op(f"arith.{stem}{'f' if x.dtype.kind == 'f' else 'i'}", [x, y], x.dtype)

    def add(self, x: Scalar, y: Scalar) -> Scalar:
        return self._arith("add", x, y)

    def sub(self, x: Scalar, y: Scalar) -> Scalar:
        return self._arith("sub", x, y)

    def mul(self, x: Scalar, y: Scalar) -> Scalar:
        return self._arith("mul", x, y)

    def div(self, x: Scalar, y: Scalar) -> Scalar:
        """Division of floats and complex numbers; `int_div` for integers."""
        return self.op("complex.div" if x.dtype.kind == "c" else "arith.divf", [x, y], x.dtype)

    def neg(self, x: Scalar) -> Scalar:
        if x.dtype.kind == "f":
            return self.op("arith.negf", [x], x.dtype)
        return self.op("complex.neg", [x], x.dtype) if x.dtype.kind == "c" else 0 - x

    def fma(self, x: Scalar, y: Scalar | float, z: Scalar | float) -> Scalar:
        """``x * y + z`` with one rounding."""
        return self.op("math.fma", [x, x._other(y), x._other(z)], x.dtype)

    def bitwise(self, name: str, x: Scalar, y: Scalar) -> Scalar:
        return self.op(f"arith.{name}", [x, y], x.dtype)

    def int_div(self, x: Scalar, y: Scalar, kind: str = "trunc") -> Scalar:
        """Integer quotient towards zero ("trunc"). The divisor must not be zero."""
        return self.op("arith.divsi" if x.dtype.kind == "i" else "arith.divui", [x, y], x.dtype)

    def int_rem(self, x: Scalar, y: Scalar) -> Scalar:
        """Integer remainder with the sign of `x`. The divisor must not be zero."""
        return self.op("arith.remsi" if x.dtype.kind == "i" else "arith.remui", [x, y], x.dtype)

    def math(self, name: str, *xs: Scalar) -> Scalar:
        """An op of the math dialect that every target has in hardware: floor, ceil, sqrt, absf, ..."""
        return self.op(f"math.{name}", xs, xs[0].dtype)

    def minimum(self, x: Scalar, y: Scalar) -> Scalar:
        """Smaller of two; NaN if either is NaN."""
        return self._extremum("min", x, y)

    def maximum(self, x: Scalar, y: Scalar) -> Scalar:
        """Larger of two; NaN if either is NaN."""
        return self._extremum("max", x, y)

    def _extremum(self, stem: str, x: Scalar, y: Scalar) -> Scalar:
        kind = x.dtype.kind
        if kind == "f":
            return self.op(f"arith.{stem}imumf", [x, y], x.dtype)
        return self.op(f"arith.{stem}{'si' if kind == 'i' else 'ui'}", [x, y], x.dtype)

    # Comparison and selection

    def compare(self, predicate: str, x: Scalar, y: Scalar) -> Scalar:
        """eq ne lt le gt ge. NaN compares unequal to everything."""
        if x.dtype.kind == "c":
            return self.op("complex.eq" if predicate == "eq" else "complex.neq", [x, y], dtypes.bool_)
        if x.dtype.kind == "f":
            number, name = _CMPF[predicate], "arith.cmpf"
        else:
            number, name = _CMPI[predicate][x.dtype.kind != "i"], "arith.cmpi"
        i64 = mlir.ir.IntegerType.get_signless(64, self.context)
        return self.op(name, [x, y], dtypes.bool_, predicate=mlir.ir.IntegerAttr.get(i64, number))

    def select(self, c: Scalar, x: Scalar | float, y: Scalar | float) -> Scalar:
        x = x if isinstance(x, Scalar) else self.const(x, y.dtype)  # type: ignore[union-attr]
        y = y if isinstance(y, Scalar) else self.const(y, x.dtype)
        return self.op("arith.select", [c, x, y], x.dtype)

    def isnan(self, x: Scalar) -> Scalar:
        return self.compare("ne", x, x)

    def logical_and(self, x: Scalar, y: Scalar) -> Scalar:
        return self.bitwise("andi", x, y)

    def logical_or(self, x: Scalar, y: Scalar) -> Scalar:
        return self.bitwise("ori", x, y)

    # Complex numbers

    def complex(self, real: Scalar, imag: Scalar) -> Scalar:
        return self.op("complex.create", [real, imag], dtypes.complex64)

    def real(self, x: Scalar) -> Scalar:
        return self.op("complex.re", [x], dtypes.float32)

    def imag(self, x: Scalar) -> Scalar:
        return self.op("complex.im", [x], dtypes.float32)

    # Structure

    @contextmanager
    def inside(self, block: Any) -> Iterator[None]:
        """Emit at the end of `block`."""
        saved, self.ip = self.ip, mlir.ir.InsertionPoint(block)
        try:
            yield
        finally:
            self.ip = saved

    def table(self, values: Sequence[Any], dtype: DType) -> Callable[[Scalar], Scalar]:
        """A constant table; the result looks up an element by an index Scalar."""
        raise NotImplementedError("only kernel builders of a backend have tables")

    def if_(
        self, condition: Scalar, then: Callable[[], Scalar], otherwise: Callable[[], Scalar], dtype: DType
    ) -> Scalar:
        """A branch with one result: for reads that must not happen, not for speed."""
        operation = self.emit("scf.if", [condition], [self.type(dtype)], regions=2)
        for region, body in zip(operation.regions, (then, otherwise)):
            with self.inside(mlir.ir.Block.create_at_start(region, [])):
                self.emit("scf.yield", [body()], [])
        return Scalar(self, operation.results[0], compute_dtype(dtype))

    def for_(
        self,
        lower: Scalar,
        upper: Scalar,
        body: Callable[..., Sequence[Scalar] | None],
        carries: Sequence[Scalar] = (),
        step: int = 1,
    ) -> list[Scalar]:
        """``for i in range(lower, upper, step)``; `body(i, *carries)` returns the new carries."""
        ir = mlir.ir
        types = [self.type(c.dtype) for c in carries]
        operation = self.emit("scf.for", [lower, upper, self.const(step, INDEX), *carries], types, regions=1)
        arguments = [self.type(INDEX), *types]
        block = ir.Block.create_at_start(operation.regions[0], arguments, [self.location] * len(arguments))
        i, *inner = block.arguments
        with self.inside(block):
            results = body(Scalar(self, i, INDEX), *(Scalar(self, v, c.dtype) for v, c in zip(inner, carries)))
            self.emit("scf.yield", list(results or ()), [])
        return [Scalar(self, r, c.dtype) for r, c in zip(operation.results, carries)]
