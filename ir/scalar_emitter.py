"""Scalar code as upstream's arith, math, complex and scf: the `ScalarBuilder` that backends build kernels with.

Half precision is held as float32 and rounded when stored or converted; bool is i1; complex numbers are
upstream's. Target-neutral: no smelt op, no memory layout.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from . import dtypes, mlir
from .aval import Aval
from .context import context
from .dtypes import DType
from .errors import KernelError
from .index import Coordinates, Index
from .scalar import INDEX, Number, Scalar, ScalarLike, beside_each_other, compute_dtype

_CMPI = {
    "eq": (0, 0), "ne": (1, 1), "lt": (2, 6), "le": (3, 7), "gt": (4, 8), "ge": (5, 9),
}  # fmt: skip
#: Up to this all integers are numbers of the dtype.
_EXACT = {dtypes.float16: 1 << 11, dtypes.bfloat16: 1 << 8}
_CMPF = {"eq": 1, "gt": 2, "ge": 3, "lt": 4, "le": 5, "ne": 13}  # ordered; ne is unordered


def known_value(value: Number, dtype: DType) -> int | None:
    """A constant of integers or bools, as it wraps."""
    if dtype.kind not in "iub" or isinstance(value, complex):
        return None
    if dtype.kind == "b" or dtype is INDEX:
        return int(value)
    word = int(value) & ((1 << dtype.bits) - 1)
    return word - (1 << dtype.bits) if dtype.kind == "i" and word >> (dtype.bits - 1) else word


def made_from(x: Any, name: str, kind: Any) -> Any:
    """What the op `name` made a value of, if one did, of a value of type `kind`."""
    owner = x.owner
    if isinstance(owner, mlir.ir.Block) or owner.operation.name != name:
        return None
    found = owner.operation.operands[0]
    return found if found.type == kind else None


class ScalarEmitter(ABC):
    """A `ScalarBuilder` that emits upstream ops into one MLIR function; `ip` moves as regions are entered.

    Where elements and constant tables lie, and how indices become numbers, a subclass says.
    """

    source_dtype: DType | None = None
    checks_indices = False

    def __init__(self, ip: Any, location: Any):
        self.ip, self.location, self.context = ip, location, context()
        self._types: dict[DType, Any] = {}

    @property
    def is_half(self) -> bool:
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

    def shaped(self, element: Any) -> Any:
        """The MLIR type of what has elements of a type, where scalars are held otherwise than one by one."""
        return element

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

    def const(self, value: Number, dtype: DType) -> Scalar:
        """A constant; floats are written by their bits, so nothing is rounded twice."""
        dtype = compute_dtype(dtype)
        ir = mlir.ir
        kind = self.type(dtype)
        if dtype.kind == "c":
            number = complex(value)
            parts = [
                ir.FloatAttr.get(self.type(dtype.real), x, loc=self.location)
                for x in (number.real, number.imag)
            ]
            return self.op("complex.constant", (), dtype, value=ir.ArrayAttr.get(parts, self.context))
        if dtype.kind == "b":
            attr = ir.BoolAttr.get(bool(value), self.context)
        elif isinstance(value, complex):
            raise KernelError(f"{value} is complex and no constant of {dtype.name}")
        elif dtype.kind == "f":
            attr = ir.FloatAttr.get(kind, float(value), loc=self.location)
        else:
            bits = dtype.bits
            word = int(value) & ((1 << bits) - 1)
            attr = ir.IntegerAttr.get(kind, word - ((word >> (bits - 1)) << bits))
        found = self.op("arith.constant", (), dtype, value=attr)
        found.known = found.most = known_value(value, dtype)
        return found

    def convert(self, x: Scalar, dtype: DType) -> Scalar:
        source = x.dtype
        target = compute_dtype(dtype)
        if x.known is not None and target.is_integer:
            return self.const(x.known, target)
        if dtype.kind == "f" and dtype.size == 2 and source.kind != "c":
            wide = self._toward_odd(x) if source is dtypes.float64 and dtype is dtypes.float16 else (
                self.convert(x, dtypes.float32)
            )  # fmt: skip
            if x.most is not None and 0 <= x.most <= _EXACT[dtype] and source.kind in "iu":
                return wide
            kind = self.shaped(mlir.ir.Type.parse(dtype.mlir, self.context))
            if made_from(wide.mlir, "arith.extf", kind) is not None:  # as it is in memory
                return wide
            narrow = self.emit("arith.truncf", [wide], [kind]).result
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
            if source.kind == "c":
                return self.complex(self.convert(self.real(x), target.real), self.convert(self.imag(x), target.real))
            return self.complex(self.convert(x, target.real), self.const(0.0, target.real))
        if source.kind == "c":
            if target.kind == "b":
                return self.compare("ne", x, self.const(0, source))
            return self.convert(self.real(x), dtype)
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

    def _toward_odd(self, x: Scalar) -> Scalar:
        """A float64 as the float32 beside it whose last bit is odd: what is rounded to half then is rounded once."""
        near = self.op("arith.truncf", [x], dtypes.float32)
        back = self.op("arith.extf", [near], dtypes.float64)
        bits = self.bitcast(near, dtypes.uint32)
        one = self.const(1, dtypes.uint32)
        farther, nearer = self.bitcast(bits + one, dtypes.float32), self.bitcast(bits - one, dtypes.float32)
        is_even = (bits & one).eq(0)
        is_rounded = self.logical_and(self.logical_or(back < x, back > x), near.ne(0.0))
        is_short = self.math("absf", back) < self.math("absf", x)
        found = self.select(is_short, farther, nearer)
        return self.select(self.logical_and(is_rounded, is_even), found, near)

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
        if x.dtype.kind in "iu" and dtype.kind in "iu":
            return Scalar(self, x.mlir, dtype) if x.known is None else self.const(x.known, dtype)
        return self.op("arith.bitcast", [x], dtype)

    # Arithmetic

    def _arith(self, stem: str, x: Scalar, y: Scalar) -> Scalar:
        if x.known is not None and y.known is not None and x.dtype.kind in "iu" and x.dtype is not INDEX:
            return self.const(getattr(operator, stem)(x.known, y.known), x.dtype)
        if x.dtype.kind == "c":
            return self._complex_arith(stem, x, y)
        return self.op(f"arith.{stem}{'f' if x.dtype.kind == 'f' else 'i'}", [x, y], x.dtype)

    def _complex_arith(self, stem: str, x: Scalar, y: Scalar) -> Scalar:
        """By the parts: upstream folds x + 0, (x + y) - y and x · 1 to x, whatever the zeros and what is rounded."""
        (a, b), (c, d) = ((self.real(v), self.imag(v)) for v in (x, y))
        if stem == "mul":
            return self.complex(a * c - b * d, a * d + b * c)
        return self.complex(self._arith(stem, a, c), self._arith(stem, b, d))

    def add(self, x: Scalar, y: Scalar) -> Scalar:
        return self._arith("add", x, y)

    def sub(self, x: Scalar, y: Scalar) -> Scalar:
        return self._arith("sub", x, y)

    def mul(self, x: Scalar, y: Scalar) -> Scalar:
        return self._arith("mul", x, y)

    def div(self, x: Scalar, y: Scalar) -> Scalar:
        return self._complex_div(x, y) if x.dtype.kind == "c" else self.op("arith.divf", [x, y], x.dtype)

    def _complex_div(self, x: Scalar, y: Scalar) -> Scalar:
        """Smith's quotient, as NumPy has it: upstream's has numbers where a part is infinite and NumPy has NaN."""
        (a, b), (c, d) = ((self.real(v), self.imag(v)) for v in (x, y))
        zero = self.const(0.0, a.dtype)
        wide = self.math("absf", c) >= self.math("absf", d)
        is_zero = self.logical_and(c.eq(zero), d.eq(zero))
        large, small = self.select(wide, c, d), self.select(wide, d, c)
        ratio = small / large
        near, far = self.select(wide, a, b), self.select(wide, b, a)
        part = near * ratio
        scale = 1.0 / self.select(is_zero, zero, large + small * ratio)
        re = self.select(is_zero, a, near + far * ratio)
        im = self.select(is_zero, b, self.select(wide, far - part, part - far))
        return self.complex(re * scale, im * scale)

    def neg(self, x: Scalar) -> Scalar:
        if x.dtype.kind == "f":
            return self.op("arith.negf", [x], x.dtype)
        return self.op("complex.neg", [x], x.dtype) if x.dtype.kind == "c" else 0 - x

    def fma(self, x: Scalar, y: ScalarLike, z: ScalarLike) -> Scalar:
        return self.op("math.fma", [x, x.beside(y), x.beside(z)], x.dtype)

    def add_reassociating(self, x: Scalar, y: Scalar) -> Scalar:
        return self._reassociating("arith.addf", x, y) if x.dtype.kind == "f" else self.add(x, y)

    def mul_reassociating(self, x: Scalar, y: Scalar) -> Scalar:
        return self._reassociating("arith.mulf", x, y) if x.dtype.kind == "f" else self.mul(x, y)

    def _reassociating(self, name: str, x: Scalar, y: Scalar) -> Scalar:
        return self.op(name, [x, y], x.dtype, fastmath=self.attr("#arith.fastmath<reassoc>"))

    def div_coarse(self, x: Scalar, y: Scalar) -> Scalar:
        return self.op("arith.divf", [x, y], x.dtype, fastmath=self.attr("#arith.fastmath<afn>"))

    def bitwise(self, name: str, x: Scalar, y: Scalar) -> Scalar:
        found = self.op(f"arith.{name}", [x, y], x.dtype)
        if name == "andi" and y.known is not None and y.known >= 0:
            found.most = y.known
        return found

    def int_div(self, x: Scalar, y: Scalar) -> Scalar:
        return self.op("arith.divsi" if x.dtype.kind == "i" else "arith.divui", [x, y], x.dtype)

    def int_rem(self, x: Scalar, y: Scalar) -> Scalar:
        return self.op("arith.remsi" if x.dtype.kind == "i" else "arith.remui", [x, y], x.dtype)

    def math(self, name: str, *xs: Scalar) -> Scalar:
        return self.op(f"math.{name}", xs, xs[0].dtype)

    def minimum(self, x: Scalar, y: Scalar) -> Scalar:
        return self._extremum("min", x, y)

    def maximum(self, x: Scalar, y: Scalar) -> Scalar:
        return self._extremum("max", x, y)

    def _extremum(self, stem: str, x: Scalar, y: Scalar) -> Scalar:
        kind = x.dtype.kind
        if kind == "c":  # the first NaN, and the first of equal ones, as NumPy
            first = self.compare("ge" if stem == "max" else "le", x, y)
            return self.select(self.logical_or(self.isnan(x), first), x, y)
        if kind == "b":
            return x | y if stem == "max" else x & y
        if kind == "f":
            return self.op(f"arith.{stem}imumf", [x, y], x.dtype)
        return self.op(f"arith.{stem}{'si' if kind == 'i' else 'ui'}", [x, y], x.dtype)

    # Comparison and selection

    def compare(self, predicate: str, x: Scalar, y: Scalar) -> Scalar:
        if x.dtype.kind == "c":
            if predicate in ("eq", "ne"):
                return self.op("complex.eq" if predicate == "eq" else "complex.neq", [x, y], dtypes.bool_)
            return self._compare_parts(predicate, x, y)
        if x.known is not None and y.known is not None:
            return self.const(getattr(operator, predicate)(x.known, y.known), dtypes.bool_)
        if x.dtype.kind == "f":
            number, name = _CMPF[predicate], "arith.cmpf"
        else:
            number, name = _CMPI[predicate][x.dtype.kind != "i"], "arith.cmpi"
        i64 = mlir.ir.IntegerType.get_signless(64, self.context)
        return self.op(name, [x, y], dtypes.bool_, predicate=mlir.ir.IntegerAttr.get(i64, number))

    def _compare_parts(self, predicate: str, x: Scalar, y: Scalar) -> Scalar:
        """Complex numbers: by the real part, then by the imaginary one; false where a part that decides is NaN."""
        a, b, c, d = self.real(x), self.real(y), self.imag(x), self.imag(y)
        known = self.logical_and(self.compare("eq", c, c), self.compare("eq", d, d))
        decided = self.logical_and(self.compare(predicate[0] + "t", a, b), known)
        return self.logical_or(decided, self.logical_and(self.compare("eq", a, b), self.compare(predicate, c, d)))

    def select(self, c: Scalar, x: ScalarLike, y: ScalarLike) -> Scalar:
        x, y = beside_each_other(x, y)
        return self.op("arith.select", [c, x, y], x.dtype) if c.known is None else x if c.known else y

    def usually(self, quick: Callable[[], tuple[Scalar, Scalar]], general: Callable[[], Scalar]) -> Scalar:
        return general()

    def isnan(self, x: Scalar) -> Scalar:
        return self.compare("ne", x, x)

    def logical_and(self, x: Scalar, y: Scalar) -> Scalar:
        return self.bitwise("andi", x, y)

    def logical_or(self, x: Scalar, y: Scalar) -> Scalar:
        return self.bitwise("ori", x, y)

    # Complex numbers

    def complex(self, real: Scalar, imag: Scalar) -> Scalar:
        return self.op("complex.create", [real, imag], real.dtype.complex)

    def real(self, x: Scalar) -> Scalar:
        return self.op("complex.re", [x], x.dtype.real)

    def imag(self, x: Scalar) -> Scalar:
        return self.op("complex.im", [x], x.dtype.real)

    # Structure

    @contextmanager
    def inside(self, block: Any) -> Iterator[None]:
        """Emit at the end of `block`."""
        saved, self.ip = self.ip, mlir.ir.InsertionPoint(block)
        try:
            yield
        finally:
            self.ip = saved

    def if_(
        self, condition: Scalar, then: Callable[[], Scalar], otherwise: Callable[[], Scalar], dtype: DType
    ) -> Scalar:
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
        ir = mlir.ir
        types = [self.type(c.dtype) for c in carries]
        operation = self.emit("scf.for", [lower, upper, self.const(step, INDEX), *carries], types, regions=1)
        arguments = [self.type(INDEX), *types]
        block = ir.Block.create_at_start(operation.regions[0], arguments, [self.location] * len(arguments))
        i, *inner = block.arguments
        with self.inside(block):
            results = body(Scalar(self, i, INDEX), *(Scalar(self, v, c.dtype) for v, c in zip(inner, carries)))
            self.emit("scf.yield", list(results or ()), [])
        self.looped(operation)
        return [Scalar(self, r, c.dtype) for r, c in zip(operation.results, carries)]

    def looped(self, operation: Any) -> None:
        """Called with each ``scf.for`` that is complete: a backend may have something to say about it."""
        return None

    def guarded(
        self, condition: Scalar, then: Callable[[], Scalar], otherwise: Callable[[], Scalar], dtype: DType
    ) -> Scalar:
        return self.if_(condition, then, otherwise, dtype)

    # What subclasses supply.

    @abstractmethod
    def table(self, values: Sequence[float], dtype: DType) -> Callable[[Scalar], Scalar]: ...

    @abstractmethod
    def literal_element(self, array: np.ndarray, aval: Aval, index: Coordinates) -> Scalar: ...

    @abstractmethod
    def bitcast_storage(self, x: Scalar, dtype: DType) -> Scalar: ...

    @abstractmethod
    def index(self, index: Index, dtype: DType = INDEX) -> Scalar: ...

    @abstractmethod
    def dynamic(self, x: Scalar, lo: int, hi: int) -> Index: ...
