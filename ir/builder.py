"""Emitting ops with a `Builder`, and reading the functions of a module.

Derivative and batching rules are written with this builder::

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        t, (y,) = only(tangents), results
        return [t * (1 - y * y)]
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import attributes, dtypes, mlir, plugins
from . import op as _op
from .attribute_kinds import checked
from .aval import Aval
from .control import ControlOp, emit_control
from .dialect import complete, context, tensor_type
from .dtypes import DType
from .errors import ArgumentTypeError, IRError, at_user_line, shown
from .op import Op, of_kind
from .ops.call import Transform, function_signature
from .reading import Body as Body
from .reading import Function as Function
from .reading import NewFunction, aval_or_none, mixed_maker, read_function
from .reading import is_mixed as is_mixed
from .reading import kept_function as kept_function
from .reading import renew as renew
from .scopes import Scope, is_keeping, keep, scope_at
from .values import APPLY as APPLY
from .values import CALL as CALL
from .values import FUNCTION as FUNCTION
from .values import STRUCTURAL, check_clone, full_name, function_type_of, inferred, misread
from .values import FunctionOp as FunctionOp
from .values import OpView as OpView
from .values import Value as Value


class _At:
    """Gives a builder another location for a while."""

    __slots__ = ("builder", "location", "saved")

    def __init__(self, builder: Builder, location: Any):
        self.builder, self.location = builder, location

    def __enter__(self) -> Builder:
        builder = self.builder
        self.saved, builder.location = builder.location, self.location
        return builder

    def __exit__(self, *_: Any) -> None:
        self.builder.location = self.saved


def _of_package(name: str) -> Op:
    """An op that nobody has named so far, and whose module is loaded now."""
    op = plugins.get(name)
    complete()
    return op


class Builder:
    """Emits smelt ops at an MLIR insertion point. ``b.add(x, y)``, ``b.reduce_sum(x, axes=(0,))``."""

    _scope: Scope | None
    #: The new function at whose end this builder makes ops; see `Scope.built`.
    _built: NewFunction | None = None
    #: The ops that this builder has made, if somebody wants to know.
    _ops: list[OpView] | None = None

    def __init__(self, insertion_point: Any, location: Any = None):
        complete()
        self.ip = insertion_point
        self.location = location if location is not None else mlir.ir.Location.unknown(context())

    @property
    def ip(self) -> Any:
        """The insertion point."""
        return self._ip

    @ip.setter
    def ip(self, insertion_point: Any) -> None:
        self._ip, self._scope, self._built = insertion_point, None, None

    @property
    def scope(self) -> Scope:
        """The scope of the function that is being built."""
        if self._scope is None:
            self._scope = scope_at(self._ip)
        return self._scope

    def read(self, name: str, operands: Sequence[Value]) -> list[Any]:
        """The values of the bindings of the operands of an op called `name`.

        Raises:
            IRError: an operand of another function, or of an op that was erased. ArgumentTypeError: no value at all.
        """
        scope = self._scope or self.scope
        found = []
        try:
            for value in operands:
                owner = value.owner
                if value.scope is not scope or (owner is not None and not owner._mlir.attached):
                    break
                found.append(value._mlir)
            else:
                if scope.alive:
                    return found
        except (AttributeError, RuntimeError, TypeError):
            pass
        raise misread(name, operands, scope)

    def continue_(self, other: Builder) -> None:
        """Go on where another builder is, in its stead."""
        self.ip, self._built = other.ip, other._built

    def at(self, location: Any) -> _At:
        """Give everything emitted inside a with block `location`."""
        return _At(self, location)

    def emit(self, op: Op, operands: Sequence[Value], attrs: dict[str, Any]) -> tuple[Value, ...]:
        """Append one op; its results.

        Raises what the op's `infer` raises, and ArgumentTypeError, AttributeValueError or IRError for operands and
        attributes that are none of the op's.
        """
        return self.emit_typed(op, operands, attrs, inferred(op, operands, attrs))

    def emit_typed(
        self, op: Op, operands: Sequence[Value], attrs: dict[str, Any], avals: Sequence[Aval]
    ) -> tuple[Value, ...]:
        """`emit` without inference: for ops whose results are already known."""
        encoded = {k: attributes.encode(op.attrs[k].type, v) for k, v in attrs.items()} if attrs else None
        return self._create(op, operands, attrs, encoded, avals, self.location)

    def _create(
        self,
        op: Op,
        operands: Sequence[Value],
        attrs: dict[str, Any],
        encoded: dict[str, Any] | None,
        avals: Sequence[Aval],
        location: Any,
    ) -> tuple[Value, ...]:
        if op.mixed:
            return self._create_mixed(op, operands, attrs, encoded, avals, location)
        name = "smelt." + op.name
        single = len(avals) == 1
        operation = mlir.ir.Operation.create(
            name,
            results=[tensor_type(avals[0])] if single else [tensor_type(a) for a in avals],
            operands=self.read(name, operands),
            attributes=encoded,
            loc=location,
            ip=self._ip,
        )
        scope = self._scope or self.scope
        view = OpView(op, tuple(operands), attrs, operation, scope)
        if scope.kept is not None or scope.built is not None:
            self._note(scope, view)
        if self._ops is not None:
            self._ops.append(view)
        if single:
            view.results = (Value(operation.result, avals[0], self, view, 0, scope),)
        else:
            view.results = tuple(
                Value(r, a, self, view, i, scope) for i, (r, a) in enumerate(zip(operation.results, avals))
            )
        return view.results

    def _create_mixed(
        self,
        op: Op,
        operands: Sequence[Value],
        attrs: dict[str, Any],
        encoded: dict[str, Any] | None,
        avals: Sequence[Aval],
        location: Any,
    ) -> tuple[Value, ...]:
        """An op with operands of several types: a function value, and its application, which is what a view has."""
        name = "smelt." + op.name
        values = self.read(name, operands)
        kind = function_type([v.aval for v in operands], avals)
        made = mlir.ir.Operation.create(name, results=[kind], attributes=encoded, loc=location, ip=self._ip)
        operation = mlir.ir.Operation.create(
            APPLY.name, results=list(kind.results), operands=[made.result, *values], loc=location, ip=self._ip
        )
        return self._viewed(op, operands, attrs, operation, avals)

    def _note(self, scope: Scope, view: OpView) -> None:
        """Note that an op was made in a function that is kept decoded, or is being built."""
        if scope.built is not None and scope.built is self._built:
            self._built.ops.append(view)
        else:
            scope.changed()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        op = _op.registry.get(name) or _of_package(name)

        def emit(*operands: Value, **attrs: Any) -> Any:
            for key, spec in op.attrs.items():
                if key not in attrs:
                    if spec.required:
                        raise ArgumentTypeError(f"smelt.{name} needs the attribute {key}")
                    attrs[key] = spec.default
            results = self.emit(op, operands, attrs)
            return results[0] if len(results) == 1 else results

        return emit

    def by_rule(self, rule: Any, groups: Sequence[Any], attrs: dict[str, Any]) -> Any:
        """What a derivative's rule of an op returns for this builder, groups of values, and attributes."""
        return rule(self, *groups, **attrs)

    # Values that rules ask for all the time.

    def full(self, shape: Sequence[int], value: Any, dtype: DType) -> Value:
        """A tensor of `shape` filled with a Python scalar."""
        scalar = self.emit(_op.registry["constant"], (), {"value": value, "dtype": dtype})[0]
        return self.broadcast_to(scalar, tuple(shape))

    def zeros(self, aval: Aval) -> Value:
        return self.full(aval.shape, 0, aval.dtype)

    def zeros_like(self, x: Value) -> Value:
        return self.zeros(x.aval)

    def broadcast_to(self, x: Value, shape: tuple[int, ...]) -> Value:
        """NumPy's rule: align trailing axes, stretch axes of size one."""
        if x.aval.shape == shape:
            return x
        return self.emit(_op.registry["broadcast"], (x,), {"shape": tuple(shape)})[0]

    def sum_to(self, x: Value, shape: tuple[int, ...]) -> Value:
        """The transpose of `broadcast_to`: sum over the stretched axes."""
        if x.aval.shape == shape:
            return x
        lead = x.ndim - len(shape)
        axes = tuple(range(lead)) + tuple(
            lead + i for i, d in enumerate(shape) if d == 1 and x.shape[lead + i] != 1
        )
        if axes:
            x = self.reduce_sum(x, axes=axes)
        return self.reshape_to(x, shape)

    def reshape_to(self, x: Value, shape: Sequence[int]) -> Value:
        return x if x.aval.shape == tuple(shape) else self.reshape(x, shape=tuple(shape))

    def convert_to(self, x: Value, dtype: DType) -> Value:
        return x if x.dtype is dtype else self.convert(x, dtype=dtype)

    def move_axis(self, x: Value, source: int, destination: int) -> Value:
        """Move one axis, keeping the order of the others."""
        if source == destination:
            return x
        order = [i for i in range(x.ndim) if i != source]
        order.insert(destination, source)
        return self.transpose(x, permutation=tuple(order))

    def add_any(self, x: Value | None, y: Value | None) -> Value | None:
        """The sum of two cotangents, each of which may be zero (None)."""
        if x is None or y is None:
            return y if x is None else x
        return x + y

    def literal(self, array: np.ndarray) -> Value:
        """A small constant array, stored in the IR."""
        return self.emit_typed(
            _op.registry["literal"], (), {"value": array}, [Aval(array.shape, _dtype_of(array))]
        )[0]

    # Functions

    def _upstream(
        self, op: Op, operands: Sequence[Value], attrs: dict[str, Any], types: Sequence[Any],
        avals: Sequence[Any] | None = None, **mlir_attrs: Any,
    ) -> tuple[Value, ...]:  # fmt: skip
        operation = mlir.ir.Operation.create(
            op.name,
            results=types,
            operands=self.read(op.name, operands),
            attributes=mlir_attrs,
            loc=self.location,
            ip=self._ip,
        )
        if avals is None:
            avals = [aval_or_none(r.type) for r in operation.results]
        return self._viewed(op, operands, attrs, operation, avals)

    def _viewed(
        self, op: Op, operands: Sequence[Value], attrs: dict[str, Any], operation: Any, avals: Sequence[Any]
    ) -> tuple[Value, ...]:
        """The results of an operation that has been made."""
        view, scope = OpView(op, tuple(operands), attrs, operation, self.scope), self.scope
        if scope.kept is not None or scope.built is not None:
            self._note(scope, view)
        if self._ops is not None:
            self._ops.append(view)
        view.results = tuple(
            Value(r, a, self, view, i, scope) for i, (r, a) in enumerate(zip(operation.results, avals))
        )
        return view.results

    def call(self, callee: str, operands: Sequence[Value], results: Sequence[Aval]) -> tuple[Value, ...]:
        """``func.call @callee``."""
        symbol = mlir.ir.FlatSymbolRefAttr.get(callee, context())
        types = [tensor_type(a) for a in results]
        return self._upstream(CALL, operands, {"callee": callee}, types, results, callee=symbol)

    def function(self, callee: str, arguments: Sequence[Aval], results: Sequence[Aval]) -> Value:
        """``func.constant @callee``: a function of the module as a value."""
        symbol = mlir.ir.FlatSymbolRefAttr.get(callee, context())
        kind = function_type(arguments, results)
        return self._upstream(FUNCTION, (), {"callee": callee}, [kind], value=symbol)[0]

    def apply(self, function: Value, operands: Sequence[Value]) -> tuple[Value, ...]:
        """``func.call_indirect``: apply a function value."""
        results = function_type_of(function).results
        return self._upstream(APPLY, (function, *operands), {}, results)

    def transform(self, op: Op, function: Value, attrs: dict[str, Any]) -> Value:
        """A transformation of a function value (an op of ``ops/call.py``)."""
        if not isinstance(op, Transform):
            raise ArgumentTypeError(at_user_line(f"{full_name(op)} is no transformation of functions"))
        attrs = checked(op, attrs)
        kind = function_type_of(function)
        signature = op.signature(*function_signature(kind), **attrs)
        operation = mlir.ir.Operation.create(
            "smelt." + op.name,
            results=[function_type(*signature)],
            operands=self.read("smelt." + op.name, [function]),
            attributes={k: attributes.encode(op.attrs[k].type, v) for k, v in attrs.items()},
            loc=self.location,
            ip=self._ip,
        )
        return self._viewed(op, [function], attrs, operation, [None])[0]

    def control(
        self, op: Op, operands: Sequence[Value], attrs: dict[str, Any], results: Sequence[Aval]
    ) -> tuple[Value, ...]:
        """A branch or loop over functions of the module: `COND`, `WHILE` or `SCAN` of `smelt.ir.control`."""
        self.read(op.name, operands)
        operation = emit_control(self, of_kind(op, ControlOp), operands, attrs, results)
        return self._viewed(op, operands, attrs, operation, results)

    def clone(self, op: OpView, operands: Sequence[Value]) -> tuple[Value, ...]:
        """The same op on other operands.

        Raises:
            IRError: operands of another function; also those of types for which the op has other results.
        """
        if not isinstance(op, OpView):
            raise ArgumentTypeError(at_user_line(f"clone takes an op, got {shown(op)}"))
        if len(operands) != len(op.operands):
            check_clone(op, operands)
        for new, old in zip(operands, op.operands):
            aval = getattr(new, "aval", op)
            if aval is not old.aval and aval != old.aval:
                check_clone(op, operands)
        if op.op.kind == "control":
            with self.at(op.location):
                return self.control(op.op, operands, op.attrs, [r.aval for r in op.results])
        if op.op.kind not in STRUCTURAL:
            operation, encoded = op.mlir, None
            if op.attrs:
                present = (mixed_maker(operation) or operation if op.op.mixed else operation).attributes
                encoded = {k: present[k] for k in op.attrs if k in present}
            avals = [r.aval for r in op.results]
            return self._create(op.op, operands, op.attrs, encoded, avals, operation.location)
        with self.at(op.location):
            if op.op is CALL:
                return self.call(op.attrs["callee"], operands, [r.aval for r in op.results])
            if op.op is FUNCTION:
                kind = mlir.ir.FunctionType(op.results[0].mlir.type)
                symbol = mlir.ir.FlatSymbolRefAttr.get(op.attrs["callee"], context())
                return self._upstream(FUNCTION, (), dict(op.attrs), [kind], value=symbol)
            if op.op is APPLY:
                return self.apply(operands[0], operands[1:])
            return (self.transform(op.op, operands[0], op.attrs),)

    def return_(self, values: Sequence[Value]) -> None:
        mlir.ir.Operation.create(
            "func.return", operands=self.read("func.return", values), loc=self.location, ip=self._ip
        )
        if self._built is not None and self.scope.built is self._built:
            self._built.keep(self.scope, values)


def function_type(arguments: Sequence[Aval], results: Sequence[Aval]) -> Any:
    """The MLIR function type of a signature."""
    inputs, outputs = ([tensor_type(a) for a in side] for side in (arguments, results))
    return mlir.ir.FunctionType.get(inputs, outputs, context())


def _dtype_of(array: np.ndarray) -> DType:
    return dtypes.of(array.dtype)


def functions(module: Any) -> dict[str, Any]:
    """The ``func.func`` operations of a module by name, in order."""
    if hasattr(module, "functions"):  # `smelt.passes.transform.listed`; the bindings need not be loaded for it
        return dict(module.functions)
    keep(module)
    found = {}
    for item in module.body.operations:
        operation = item.operation
        if operation.name == "func.func":
            found[mlir.ir.StringAttr(operation.attributes["sym_name"]).value] = operation
    return found


def symbols(module: Any) -> Any:
    """The symbol table of a module as it is now. To look up one or two names it is much faster than `functions`."""
    if hasattr(module, "functions"):
        return module.functions
    keep(module)
    return mlir.ir.SymbolTable(module.operation)


def function_operation(module: Any, name: str = "main") -> Any:
    """The ``func.func`` of a name.

    Raises:
        IRError: there is none.
    """
    found = symbols(module)
    if name in found:
        operation = found[name]
        if isinstance(operation, Function):  # of a module that is no MLIR
            return operation
        if operation.operation.name == "func.func":
            return operation.operation
    raise IRError(f"the module has no function @{name}; it has {', '.join(functions(module)) or 'none'}")


def function_named(module: Any, name: str = "main") -> Function:
    """The function of a name, decoded.

    Raises:
        IRError: there is none, or it has no body.
    """
    return read_function(function_operation(module, name))


def new_function(
    module: Any,
    name: str,
    arguments: Sequence[Aval],
    results: Sequence[Aval],
    location: Any = None,
    public: bool = False,
    before: Any = None,
    argument_locations: Sequence[Any] | None = None,
) -> tuple[Any, list[Value], Builder]:
    """An empty function: the ``func.func``, its arguments as Values, a builder at its end."""
    if hasattr(module, "functions"):
        found: tuple[Any, list[Value], Builder] = module.new_function(name, arguments, results, location)
        return found
    keep(module)
    ir = mlir.ir
    location = location if location is not None else ir.Location.unknown(context())
    types = [tensor_type(a) for a in arguments]
    attrs = {
        "sym_name": ir.StringAttr.get(name, context()),
        "function_type": ir.TypeAttr.get(function_type(arguments, results), context()),
    }
    if not public:
        attrs["sym_visibility"] = ir.StringAttr.get("private", context())
    ip = ir.InsertionPoint(before) if before is not None else ir.InsertionPoint(module.body)
    operation = ir.Operation.create("func.func", attributes=attrs, regions=1, loc=location, ip=ip)
    block = ir.Block.create_at_start(operation.regions[0], types, argument_locations or [location] * len(types))
    b = Builder(ir.InsertionPoint(block), location)
    values = [Value(v, a, b, None, i, b.scope) for i, (v, a) in enumerate(zip(block.arguments, arguments))]
    if is_keeping():
        b.scope.built = b._built = NewFunction(name, operation, values)
    return operation, values, b


def fresh_name(module: Any, stem: str, taken: dict[str, int] | None = None) -> str:
    """`stem`, or `stem_1`, `stem_2`, ... where taken.

    `taken`: for who asks many times and makes the functions himself: the names of all, each with the first number that
    has not been tried behind it; it is kept up to date.
    """
    if taken is None:
        known = symbols(module)
        names = (f"{stem}_{i}" for i in itertools.count(1))
        return next(name for name in itertools.chain([stem], names) if name not in known)
    name = stem
    while name in taken:
        name = f"{stem}_{taken[stem]}"
        taken[stem] += 1
    taken[name] = 1
    return name
