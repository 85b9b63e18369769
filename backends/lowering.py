"""From a fusion's body to scalar code: the part of kernel building that no target changes.

`FusionKernel` evaluates elements of a fusion's values on demand, each once in a scope, and turns
index expressions into arithmetic where memory is touched. A target says how memory is read and
written, and builds the loops.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from smelt.ir import dtypes, elementary, mlir
from smelt.ir.aval import Aval
from smelt.ir.builder import Function, OpView, Value
from smelt.ir.dtypes import DType
from smelt.ir.index import Atom, Coordinates, Index, linearize
from smelt.ir.kinds import Elementwise, Fusible
from smelt.ir.scalar import INDEX, Number, Scalar
from smelt.ir.scalar_emitter import ScalarEmitter

from .coarse import coarse_values


class Fused:
    """Adjacent loop variables run by one loop: names and extents, outermost first."""

    def __init__(self, variables: Sequence[tuple[Any, int]]):
        self.variables = list(variables)
        self.extent = 1
        self.strides: dict[Any, int] = {}
        for name, extent in reversed(self.variables):
            self.strides[name] = self.extent
            self.extent *= extent

    @property
    def names(self) -> list[Any]:
        return [name for name, _ in self.variables]


def fuse_variables(variables: Sequence[tuple[Any, int]], uses: Sequence[Index]) -> list[Fused]:
    """Merge adjacent loops wherever every index in `uses` is linear across the boundary."""
    atoms = [Atom("var", (name,), 0, extent - 1) for name, extent in variables]
    nested: set[Atom] = set()
    rows = []
    for use in uses:
        for atom, _ in use.terms:
            if atom.kind in ("div", "mod"):
                nested |= atom.args[0].atoms()
        rows.append(dict(use.terms))
    loops: list[list[tuple[Any, int]]] = []
    for i, (name, extent) in enumerate(variables):
        if extent == 1:
            continue
        if loops and atoms[i] not in nested:
            before, _ = loops[-1][-1]
            previous = next(a for a in atoms if a.args[0] == before)
            if previous not in nested and all(row.get(previous, 0) == row.get(atoms[i], 0) * extent for row in rows):
                loops[-1].append((name, extent))
                continue
        loops.append([(name, extent)])
    return [Fused(loop) for loop in loops]


def divide(k: ScalarEmitter, x: Scalar, n: int, more: bool = True) -> tuple[Scalar, Scalar]:
    """Quotient and remainder of an index; `more`: whether the quotient can be other than zero."""
    if n == 1:
        return x, k.const(0, INDEX)
    if not more:
        return k.const(0, INDEX), x
    size = k.const(n, INDEX)
    return k.op("arith.divui", [x, size], INDEX), k.op("arith.remui", [x, size], INDEX)


def always(x: Scalar) -> Callable[[Coordinates], Scalar]:
    """A value that is the same at every index."""
    return lambda place: x


def _read_here_and_elsewhere(body: Function) -> frozenset[Value]:
    """What ops compute elementwise in 16 bits, other ops of the kernel read, and the kernel returns."""
    returned = {v for v in body.returns if v.dtype.kind == "f" and v.dtype.size == 2}
    if not returned:
        return frozenset()
    read = {v for op in body.ops for v in op.operands}
    made = {v for op in body.ops if isinstance(op.op, Elementwise) for v in op.results}
    return frozenset(returned & read & made)


class FusionKernel(ScalarEmitter):
    """Evaluates the values of one fusion. Subclasses load and store."""

    ip: Any

    def __init__(self, entry: Any, location: Any, body: Function | None):
        super().__init__(mlir.ir.InsertionPoint(entry), location)
        self.entry = entry
        self.body = body
        self.position = {op: i for i, op in enumerate(body.ops if body else ())}
        #: Values of 16 bits that others read here and elsewhere: both read the same, so they are rounded here, too.
        self.rounded = _read_here_and_elsewhere(body) if body else frozenset()
        #: Values of float32 of which the digits of half precision are enough.
        self.coarse: dict[Value, DType] = coarse_values(body) if body else {}
        self.scopes: list[dict[Any, Scalar]] = [{}]
        self.loops: dict[Any, tuple[Fused, Scalar]] = {}  #: variable name → its loop
        self.provided: dict[Value, Callable[[Coordinates], Scalar]] = {}  #: values that are not computed here
        self._constant_cache: dict[Any, Scalar] = {}

    # Scopes

    def lookup(self, key: Any) -> Scalar | None:
        for scope in reversed(self.scopes):
            if key in scope:
                return scope[key]
        return None

    @contextmanager
    def inside(self, block: Any) -> Iterator[None]:
        """Emit at the end of `block`; what is computed there is forgotten afterwards."""
        self.scopes.append({})
        try:
            with super().inside(block):
                yield
        finally:
            self.scopes.pop()

    @contextmanager
    def at_position(self, fused: Fused, at: Scalar):
        """Let a loop's variables stand at `at` for a while; nothing computed meanwhile is remembered."""
        saved = {name: self.loops.get(name) for name in fused.names}
        self.bind(fused, at)
        self.scopes.append({})
        try:
            yield
        finally:
            self.scopes.pop()
            for name, loop in saved.items():
                if loop is not None:
                    self.loops[name] = loop

    def const(self, value: Number, dtype: DType) -> Scalar:
        key = (dtype, type(value), repr(value))
        found = self._constant_cache.get(key)
        if found is None:
            saved, self.ip = self.ip, mlir.ir.InsertionPoint.at_block_begin(self.entry)
            found = self._constant_cache[key] = super().const(value, dtype)
            self.ip = saved
        return found

    def loop(
        self,
        fused: Fused | None,
        lower: Scalar,
        upper: Scalar,
        body: Callable[..., Sequence[Scalar] | None],
        carries: Sequence[Scalar] = (),
        step: int = 1,
    ) -> list[Scalar]:
        """``scf.for`` that binds the variables of `fused`."""

        def bound(at: Scalar, *carried: Scalar) -> Sequence[Scalar] | None:
            if fused is not None:
                self.bind(fused, at)
            return body(at, *carried)

        return self.for_(lower, upper, bound, carries, step)

    def bind(self, fused: Fused, at: Scalar) -> None:
        """Let the variables of `fused` stand for positions of the loop counter `at`."""
        for name in fused.names:
            self.loops[name] = (fused, at)

    # Indices

    def index(self, index: Index, dtype: DType = INDEX) -> Scalar:
        """An index expression as a number."""
        found = self.lookup(index)
        if found is None:
            found = self.scopes[-1][index] = self._materialize(index)
        return found if dtype is INDEX else self.convert(found, dtype)

    def _materialize(self, index: Index) -> Scalar:
        total: Scalar | None = None
        pending = dict(index.terms)
        for atom, coefficient in index.terms:
            if atom not in pending:
                continue
            del pending[atom]
            term, factor = None, coefficient
            if atom.kind == "var":
                fused, at = self.loops[atom.args[0]]
                rest = self._rest_of_loop(fused, atom.args[0], coefficient, index)
                if rest is None:
                    term = self._variable(fused, atom.args[0], at)
                else:
                    for other in rest:
                        pending.pop(other, None)
                    term, factor = at, coefficient // fused.strides[atom.args[0]]
            else:
                term = self._atom(atom)
            if factor != 1:
                term = term * factor
            total = term if total is None else total + term
        if total is None:
            return self.const(index.const, INDEX)
        return total + index.const if index.const else total

    def _rest_of_loop(self, fused: Fused, name: Any, coefficient: int, index: Index) -> list[Atom] | None:
        """The atoms of a merged loop if they stand in `index` as its counter does."""
        if len(fused.variables) == 1:
            return []
        stride = fused.strides[name]
        if not stride or coefficient % stride:  # a loop over nothing has no strides
            return None
        unit, found = coefficient // stride, []
        for other, extent in fused.variables:
            atom = Atom("var", (other,), 0, extent - 1)
            if index.coefficient(atom) != unit * fused.strides[other]:
                return None
            found.append(atom)
        return found

    def _variable(self, fused: Fused, name: Any, at: Scalar) -> Scalar:
        extent = dict(fused.variables)[name]
        stride = fused.strides[name]
        value = at
        if stride > 1:
            value = self.op("arith.divui", [value, self.const(stride, INDEX)], INDEX)
        if stride * extent < fused.extent:
            value = self.op("arith.remui", [value, self.const(extent, INDEX)], INDEX)
        return value

    def _atom(self, atom: Atom) -> Scalar:
        if atom.kind == "dynamic":
            return atom.args[0]
        inner, n = atom.args
        signed = inner.lo < 0
        name = {
            ("div", False): "divui", ("mod", False): "remui", ("div", True): "floordivsi",
        }.get((atom.kind, signed))  # fmt: skip
        x, size = self.index(inner), self.const(n, INDEX)
        if name is None:
            shift = -(inner.lo // n) * n  # a multiple of n that makes it non-negative
            x, name = x + shift, "remui"
        return self.op(f"arith.{name}", [x, size], INDEX)

    def dynamic(self, x: Scalar, lo: int, hi: int) -> Index:
        """A run-time integer, brought into lo … hi, as an index."""
        if hi <= lo:
            return Index(lo)
        held = x.dtype if x.dtype.size >= 4 else dtypes.int32
        stem = held.kind + "i" if held.kind == "u" else "si"
        x = self.convert(x, held)
        x = self.op(f"arith.min{stem}", [x, self.const(min(hi, np.iinfo(held.numpy).max), held)], held)
        if held.kind == "i" or lo > 0:
            x = self.op(f"arith.max{stem}", [x, self.const(lo, held)], held)
        at = self.op("arith.index_castui" if held.kind == "u" else "arith.index_cast", [x], INDEX)
        return Index(0, [(Atom("dynamic", (at,), lo, hi), 1)])

    # Values

    def value(self, v: Value, index: Coordinates) -> Scalar:
        """The element of `v` at `index`."""
        found = self.lookup((v, index))
        if found is not None:
            return found
        op = self._computed_by(v)
        if op is None:
            found = self.provided[v](index) if v in self.provided else self.load(v, index)
            self.scopes[-1][v, index] = found
            return found
        for each in self._elementwise_before(v, index) if isinstance(op.op, Elementwise) else [op]:
            self._evaluate(each, index)
        return self.scopes[-1][v, index]

    def _computed_by(self, v: Value) -> OpView | None:
        return None if v in self.provided else v.owner

    def _evaluate(self, op: OpView, index: Coordinates) -> None:
        def fetch(i: int, at: Coordinates) -> Scalar:
            return self.value(op.operands[i], tuple(at))

        avals = [v.aval for v in op.operands]
        result = op.results[0]
        for v in op.operands if isinstance(op.op, Elementwise) else ():
            self.value(v, index)
        self.source_dtype = self.digits(op) if op.operands else None
        element = op.rules(Fusible).element(self, index, fetch, avals, result.aval, **op.attrs)
        self._keep(result, index, element)

    def digits(self, op: OpView) -> DType:
        """The dtype of whose digits an op's result needs no more, as far as its kernel shows; else its operand's."""
        given = op.operands[0].dtype
        return self.coarse.get(op.results[0], given) if given is dtypes.float32 else given

    def _keep(self, v: Value, index: Coordinates, element: Scalar) -> None:
        """Remember an element of `v` that has been computed."""
        self.scopes[-1][v, index] = self.convert(element, v.dtype) if v in self.rounded else element

    def _elementwise_before(self, v: Value, index: Coordinates) -> list[OpView]:
        """The elementwise ops still to be evaluated for `v` at `index`, in order: no recursion."""
        stack, found, seen = [v], [], set()
        while stack:
            u = stack.pop()
            op = self._computed_by(u)
            if op is None or op in seen or not isinstance(op.op, Elementwise) or self.lookup((u, index)):
                continue
            seen.add(op)
            found.append(op)
            stack.extend(op.operands)
        return sorted(found, key=self.position.__getitem__)

    def elementary(
        self, rules: Elementwise, operands: Sequence[Scalar], sources: Sequence[DType], out: DType,
        attrs: Mapping[str, Any] = {},
    ) -> Scalar:  # fmt: skip
        """An elementary function of scalars, by the rules of its op.

        Args:
            sources: dtypes of the arrays that they come from.
            out: of the array that the result is for.
        """
        self.source_dtype = sources[0]
        return rules.lower(self, *rules.taken(self, operands, sources, out), **attrs)

    def exp_nonpositive(self, x: Scalar, source: DType) -> Scalar:
        """e^x of x ≤ 0 for a sum in which there is a 1, from an array of dtype `source`."""
        self.source_dtype = source
        return (elementary.exp_half if source.size == 2 else elementary.exp_nonpositive)(self, x)

    # What targets supply.

    @abstractmethod
    def load(self, v: Value, index: Coordinates) -> Scalar:
        """The element of `v` at `index`, from memory."""

    @abstractmethod
    def global_constant(self, array: np.ndarray, dtype: DType) -> Callable[[Scalar], Scalar]:
        """A constant array of the module; the result looks up an element by its offset."""

    # Rules that ops ask for.

    def literal_element(self, array: np.ndarray, aval: Aval, index: Coordinates) -> Scalar:
        offset = linearize(index, aval.shape)
        flat = np.asarray(array).reshape(-1)
        if offset.is_constant:
            return self.const(flat[offset.const].item(), aval.dtype)
        return self.global_constant(flat, aval.dtype)(self.index(offset))

    def table(self, values: Sequence[float], dtype: DType) -> Callable[[Scalar], Scalar]:
        look_up = self.global_constant(np.asarray(values, dtype.numpy), dtype)
        return lambda i: look_up(i if i.dtype is INDEX else self.convert(i, INDEX))
