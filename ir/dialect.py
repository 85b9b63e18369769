"""The MLIR side of the dialect: ops made from the registry.

Every class of the registry becomes an ``ext`` operation (IRDL underneath), whose verifier decodes
the attributes and calls the same `infer` that the tracer and the builder call. IRDL wants all
operands of a variadic group to have one type, which is why no op here takes a mixed list.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any

from . import attributes, locks, mlir, ops  # noqa: F401  (`ops` fills the registry)
from .aval import Aval
from .context import context as context
from .context import parse_aval as parse_aval
from .context import register_dialect
from .context import tensor_type as tensor_type
from .errors import IRError, SmeltError
from .op import Op, registry
from .scopes import guard_erase

NAMESPACE = "smelt"


def verify_operation(op: Op, operation: Any) -> str | None:
    """The reason why `operation` is not a valid `op`, or None."""
    attrs: dict[str, Any] = {}
    operands: list[Aval] = []
    try:
        attrs = attributes.decode_all(op, operation)
        for name in operation.attributes:
            if name not in op.attrs and name != "operandSegmentSizes" and "." not in name:
                return f"smelt.{op.name} has no attribute {name}"
        if op.mixed:
            _verify_mixed(op, operation, attrs)
            return None
        names, count = op.operand_names, len(operation.operands)
        if count < len(names) - 1 if op.variadic else count != len(names):
            return f"smelt.{op.name} takes {len(names)} operands ({', '.join(names)}), has {count}"
        if op.kind == "transform":
            op.verify(operation, **attrs)
            return None
        operands = [parse_aval(v.type) for v in operation.operands]
        results = tuple(parse_aval(r.type) for r in operation.results)
        inferred: Any = op.infer(*operands, **attrs)
        inferred = inferred if isinstance(inferred, tuple) else (inferred,)
        if inferred != results:
            want, have = (", ".join(map(str, r)) for r in (inferred, results))
            return op.describe_error(f"result type must be {want}, is {have}", operands, attrs)
        op.verify(operation, **attrs)
    except SmeltError as error:
        text = str(error)
        return text if text.startswith("smelt.") else op.describe_error(text, operands, attrs)
    return None


def _verify_mixed(op: Op, operation: Any, attrs: dict[str, Any]) -> None:
    """Raise SmeltError where the function value of a mixed op is not of the types that the op infers."""
    kind = operation.results[0].type
    if not isinstance(kind, mlir.ir.FunctionType):
        raise IRError(f"the result is a function, which func.call_indirect applies; it is {kind}")
    operands, results = ([parse_aval(t) for t in side] for side in (kind.inputs, kind.results))
    inferred: Any = op.infer(*operands, **attrs)
    wanted = list(inferred if isinstance(inferred, tuple) else (inferred,))
    if wanted != results:
        want, have = (", ".join(map(str, r)) for r in (wanted, results))
        raise IRError(op.describe_error(f"the function must return {want}, returns {have}", operands, attrs))
    op.verify(operation, **attrs)


def _verifier(name: str) -> Any:
    def verify_invariants(self: Any) -> bool:
        operation = self.operation
        problem = verify_operation(registry[name], operation)
        if problem is not None:
            operation.location.emit_error(problem)
            return False
        return True

    return verify_invariants


def _declared(declared: Iterable[Op]) -> Any:
    """The dialect's class in the bindings, with these ops."""
    ext: Any = mlir.ext

    Smelt: Any = type("Smelt", (ext.Dialect,), {}, name=NAMESPACE)

    for op in declared:
        annotations: dict[str, Any] = {}
        for i, name in enumerate(() if op.mixed else op.operand_names):
            last = i == len(op.operand_names) - 1
            variadic = op.variadic and last
            annotations[name] = Sequence[ext.Operand[Any]] if variadic else ext.Operand[Any]
        for i in range(1 if op.mixed else op.num_results):
            annotations[f"result{i or ''}"] = ext.Result[Any]
        traits: list[Any] = [ext.Pure] if op.pure else []
        body = {
            "__annotations__": annotations,
            "__module__": type(op).__module__,
            "__doc__": type(op).__doc__,
            "verify_invariants": _verifier(op.name),
        }
        class_name = "".join(w.title() for w in op.name.split("_")) + "Op"
        type(class_name, (Smelt.Operation,), body, name=op.name, traits=traits)
    return Smelt


#: The ops that the context knows.
_loaded: set[str] = set()


def _load() -> None:
    # The bindings look for a module of the dialect whenever they wrap one of its ops; a search
    # that fails is not remembered and costs 25 µs an op, so there is one to be found.
    module = f"{mlir.host()}.dialects.{NAMESPACE}"
    sys.modules.setdefault(module, ModuleType(module))
    _declared(registry.values()).load()
    _loaded.update(registry)
    guard_erase()


def complete() -> None:
    """Make the ops known to the context that were defined after it was made. Cheap where there are none.

    Modules are parsed and built after a call of this, so an op works whenever its class was defined.
    """
    if len(_loaded) == len(registry):
        return
    with mlir.lock:
        context()
        if not _loaded.issuperset(registry):
            locks.whole(_load_later)


def _load_later() -> None:
    late = [op for name, op in registry.items() if name not in _loaded]
    more = _declared(late)
    # MLIR adds ops to a dialect that is loaded. The bindings refuse a second one of its name, which they take from
    # here; that of the ops, and of the dialect in MLIR, stands fast by now.
    more.DIALECT_NAMESPACE = f"{NAMESPACE}+{len(_loaded)}"
    with context(), mlir.ir.Location.unknown():
        more.load()
    _loaded.update(op.name for op in late)


register_dialect(_load)
