"""Large modules in parts, which LLVM compiles at the same time on several cores.

Kernels that are called by nothing but a program's own functions go into further modules; where they were, declarations
stay::

    llvm.func internal @kernel(…) { … }      ⟶   llvm.func @kernel(…)          |   llvm.func @kernel(…) { … }
    llvm.func @main_0(…) { … @kernel … }          llvm.func @main_0(…) { … }    |

Into which part a kernel goes depends on the module alone, so code and values are the same on any number of cores. The
parts' objects are loaded together (`objects.join`).
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from smelt.ir import locks, mlir
from smelt.ir.dialect import context
from smelt.ir.host_threads import allowed_threads, together

from . import jit, objects
from .kernel import KernelModule, linkage

#: Ops of the LLVM dialect in a part at least: for fewer, what each engine takes by itself (6 ms) is too much.
PART = 2000
#: There are no more parts than this.
MOST = 8


class _Text(ctypes.Structure):
    """``MlirStringRef``."""

    _fields_ = [("data", ctypes.c_char_p), ("length", ctypes.c_size_t)]

    @classmethod
    def of(cls, text: str) -> _Text:
        data = text.encode()
        return cls(data, len(data))


@functools.cache
def _library() -> ctypes.CDLL | None:
    """MLIR's functions in C, which let go of Python's lock; None where the bindings' library does not let one."""
    names = ("Create", "LookupPacked", "Destroy", "DumpToObjectFile", "RegisterSymbol")
    library = mlir.c_library(*[f"mlirExecutionEngine{name}" for name in names])
    if library is None:
        return None
    pointer = ctypes.c_void_p
    create, lookup = library.mlirExecutionEngineCreate, library.mlirExecutionEngineLookupPacked
    # Older ones do not take the last argument, and do not look at it.
    create.restype, create.argtypes = pointer, [pointer, *[ctypes.c_int] * 2, pointer, ctypes.c_bool, ctypes.c_bool]
    lookup.restype, lookup.argtypes = pointer, [pointer, _Text]
    for name, arguments in (
        ("Destroy", [pointer]), ("DumpToObjectFile", [pointer, _Text]), ("RegisterSymbol", [pointer, _Text, pointer]),
    ):  # fmt: skip
        function = getattr(library, f"mlirExecutionEngine{name}")
        function.restype, function.argtypes = None, arguments
    return library


class Part(NamedTuple):
    """A module, and a function of it that is called from outside."""

    module: Any
    function: str


class Split:
    """A module of the LLVM dialect, in parts until `undo`."""

    def __init__(self, module: KernelModule, entry: str, groups: Sequence[Sequence[Any]], external: Any):
        self.module, self.parts = module, [Part(module.mlir, entry)]
        self._moved: list[tuple[Any, Any, Any]] = []  #: functions, their linkages, and what declares them
        self.names: list[str] = []  #: of functions that another part calls
        declarations = [op for op in _functions(module) if not op.regions[0].blocks]
        for group in groups:
            made = mlir.ir.Module.create(mlir.ir.Location.unknown(module.mlir.context))
            place = mlir.ir.InsertionPoint(made.body)
            for op in declarations:
                op.clone(place)
            for op in group:
                self._moved.append((op, op.attributes["linkage"], self._declare(op, external)))
                op.detach_from_parent()
                place.insert(op)
                op.attributes["linkage"] = external
            self.parts.append(Part(made, self.names[-1]))

    def _declare(self, op: Any, external: Any) -> Any:
        """A declaration of a function, in front of it."""
        named = [op.attributes[i] for i in range(len(op.attributes))]
        attributes = {a.name: a.attr for a in named if a.name != "sym_visibility"} | {"linkage": external}
        self.names.append(op.attributes["sym_name"].value)
        place = mlir.ir.InsertionPoint.at_block_begin(self.module.body)
        return mlir.ir.Operation.create("llvm.func", attributes=attributes, regions=1, loc=op.location, ip=place)

    def undo(self) -> None:
        """Put all into one module again."""
        place = mlir.ir.InsertionPoint(self.module.body)
        for op, before, declaration in self._moved:
            declaration.erase()
            op.detach_from_parent()
            place.insert(op)
            op.attributes["linkage"] = before
        self._moved.clear()


def split(module: KernelModule, entry: str, external: Any) -> Split | None:
    """The parts of a lowered module, or None of one that is better compiled whole. It takes no locks.

    `external`: how LLVM treats names of functions that other parts call.
    """
    functions = _functions(module)
    if len(functions) != len(module.body.operations):  # a kernel may need what is no function
        return None
    sizes = {op: sum(len(block.operations) for block in op.regions[0].blocks) for op in functions}
    count = min(MOST, sum(sizes.values()) // PART)
    if count < 2:
        return None
    movable = module.leaves()
    leaves = {op: size for op, size in sizes.items() if op.attributes["sym_name"].value in movable}
    groups: list[list[Any]] = [[] for _ in range(count)]
    filled = [sum(sizes.values()) - sum(leaves.values()), *[0] * (count - 1)]
    for op in sorted(leaves, key=lambda op: -leaves[op]):
        least = filled.index(min(filled))
        groups[least].append(op)
        filled[least] += leaves[op]
    moved = [group for group in groups[1:] if group]
    return Split(module, entry, moved, external) if moved else None


def _functions(module: KernelModule) -> list[Any]:
    return [op.operation for op in module.body.operations if op.operation.name == "llvm.func"]


def object_of(module: KernelModule, entry: str, symbols: Mapping[str, int]) -> bytes | None:
    """The code of a large module, as one object; None where that is better compiled whole, or cannot be in parts.

    Args:
        entry: one of the program's own functions.
        symbols: addresses of external functions.
    """
    if _library() is None or module.checks is not None or module.asking:  # such parts share more than kernels
        return None
    external = linkage("external")
    found = mlir.plainly(lambda: split(module, entry, external))
    if found is None:
        return None
    try:
        made = _objects(found, symbols)
    finally:
        mlir.plainly(found.undo)
    return None if None in made else objects.join([data for data in made if data is not None])


def _objects(found: Split, symbols: Mapping[str, int]) -> list[bytes | None]:
    jit.prepare()
    # The engines only need some address of what other parts have: code is loaded from the objects.
    somewhere = ctypes.cast(ctypes.pythonapi.Py_IsInitialized, ctypes.c_void_p).value or 0
    known = dict.fromkeys(found.names, somewhere) | dict(symbols)
    jobs = [(i, _pointer(p.module), p.function) for i, p in enumerate(found.parts)]
    made: list[bytes | None] = [None] * len(jobs)
    jobs.reverse()  # the first, with what cannot be moved, may be the largest

    def work() -> None:
        while True:
            try:
                i, module, function = jobs.pop()
            except IndexError:
                return
            made[i] = _object(module, function, symbols if i else known)

    ctx, bodies = context(), [work] * min(allowed_threads(), len(jobs))
    locks.whole(lambda: _with_threads(ctx, lambda: together(bodies)))
    return made


#: Held while several threads read modules of the context: a child process would never get MLIR's and LLVM's own locks.
_under_way = locks.lock()


def _before_fork() -> None:
    """Wait for that, however long it takes. It is not held meanwhile: who waits for it may hold what forks wait for."""
    with _under_way:
        pass


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork)


def _with_threads(ctx: Any, action: Callable[[], object]) -> None:
    """Run `action`, in which several threads read modules of the context."""
    with _under_way:
        ctx.enable_multithreading(True)
        try:
            action()
        finally:
            ctx.enable_multithreading(False)


def _object(module: int, function: str, symbols: Mapping[str, int]) -> bytes | None:
    library = _library()
    assert library is not None
    engine = library.mlirExecutionEngineCreate(module, jit.LEVEL, 0, None, True, False)
    if not engine:
        return None
    try:
        for name, address in symbols.items():
            library.mlirExecutionEngineRegisterSymbol(engine, _Text.of(name), address)
        if not library.mlirExecutionEngineLookupPacked(engine, _Text.of(function)):
            return None
        with jit.file() as path:
            library.mlirExecutionEngineDumpToObjectFile(engine, _Text.of(path))
            return Path(path).read_bytes() or None
    finally:
        library.mlirExecutionEngineDestroy(engine)


def _pointer(module: Any) -> int:
    """Where a module is."""
    api = ctypes.pythonapi
    name, pointer = api.PyCapsule_GetName, api.PyCapsule_GetPointer
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    capsule = module._CAPIPtr
    found: int = pointer(capsule, name(capsule))
    return found
