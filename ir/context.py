"""The MLIR context, of which there is one, and types of tensors in it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from . import dtypes, locks, mlir
from .aval import Aval
from .errors import IRError, OutOfMemoryError, at_user_line

#: The dialects whose ops programs are made of. That of LLVM is not among them, although they all end in it: no Python
#: here looks at its ops, and its classes take as long to import as all the others.
UPSTREAM = ("arith", "builtin", "cf", "complex", "func", "gpu", "math", "memref", "scf", "tensor", "vector")

_loaders: list[Callable[[], None]] = []


def register_dialect(load: Callable[[], None]) -> None:
    """Have `load` called inside of the new context; now, if there is one already."""
    _loaders.append(load)
    if context.cache_info().currsize:
        with context(), mlir.ir.Location.unknown():
            load()


@functools.cache
def context() -> Any:
    """The MLIR context, with the dialects that have been registered."""
    with mlir.lock:
        mlir.load_dialects(UPSTREAM)
        return locks.whole(_context)


@functools.cache
def _context() -> Any:
    ctx = mlir.ir.Context()
    ctx.enable_multithreading(False)  # our verifiers are Python; threads only add cost
    with ctx, mlir.ir.Location.unknown():
        for load in _loaders:
            load()
    return ctx


def element_type(dtype: dtypes.DType) -> Any:
    """The MLIR element type of `dtype`."""
    return mlir.ir.Type.parse(dtype.mlir, context())


@functools.lru_cache(maxsize=4096)
def tensor_type(aval: Aval) -> Any:
    """The MLIR type of an aval.

    Raises:
        OutOfMemoryError: an extent does not fit int64.
    """
    with mlir.ir.Location.unknown(context()):
        try:
            return mlir.ir.RankedTensorType.get(aval.shape, element_type(aval.dtype))
        except TypeError:
            message = f"smelt: shape {aval.shape} has more elements than can be addressed"
            raise OutOfMemoryError(at_user_line(message)) from None


_avals: dict[Any, Aval] = {}


def parse_aval(type_: Any) -> Aval:
    """The aval of an MLIR tensor type. Raises IRError for any other type."""
    aval = _avals.get(type_)
    if aval is None:
        ir = mlir.ir
        if not isinstance(type_, ir.RankedTensorType):
            raise IRError(f"smelt values are ranked tensors, this one is {type_}")
        if not type_.has_static_shape:
            raise IRError(f"{type_} has a dynamic dimension; smelt needs static shapes")
        if type_.encoding is not None:
            raise IRError(f"{type_} has an encoding, which smelt tensors do not take")
        aval = Aval(tuple(type_.shape), dtypes.by_mlir(str(type_.element_type)))
        if len(_avals) > 8192:
            _avals.clear()
        _avals[type_] = aval
    return aval
