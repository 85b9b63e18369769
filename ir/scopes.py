"""Which values an op may read: those of its own function, as long as that stands in its module.

MLIR's Python bindings do not know when an op that they wrap is gone, and reading one that is gone ends the process.
So every `Value`, `OpView` and `Function` of smelt has the scope of its function, which dies when the function is
erased, and an op is erased only when nobody reads its results.

While `keeping`, as a compile is, a function that has been read or built is kept decoded until something changes it:
most passes change few functions, and each would decode all of them.
"""

from __future__ import annotations

import ctypes
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar
from weakref import WeakValueDictionary

from . import mlir
from .errors import IRError


def _nothing() -> None:
    """In place of a weak reference."""


class Scope:
    """A function of a module while it stands there.

    Attributes:
        operation: the function's op, or whatever stands directly in the module.
        alive: False once it has been erased.
        kept: the function decoded, as it is now; None: it has to be read.
        built: what a builder has made of a new function so far; None: it is not one that is being built, or somebody
            else has changed it meanwhile.
    """

    __slots__ = ("__weakref__", "alive", "built", "function", "kept", "module", "operation")
    #: Reads a function of a module.
    reader: ClassVar[Callable[[Any], Any]]

    def __init__(self, operation: Any):
        self.operation, self.alive = operation, True
        outer = operation.parent
        #: The module, which the bindings would free below what is read of it.
        self.module = None if outer is None else _modules.get(_address(outer.operation))
        #: The function as it was read last, while somebody holds that.
        self.function: Callable[[], Any] = _nothing
        self.kept: Any = None
        self.built: Any = None

    def keep(self, function: Any) -> None:
        """Keep the function decoded, if this thread is `keeping`."""
        if _keeping.scopes is not None:
            self.kept = function
            _keeping.scopes.append(self)

    def changed(self) -> None:
        """The function is another one now: what was kept of it is not."""
        self.kept = self.built = None

    def views(self) -> dict[int, Any]:
        """The ops of the function as they were read, by address; it is read where nobody holds it."""
        function = self.function() or type(self).reader(self.operation)
        if function.addresses is None or len(function.addresses) != len(function.ops):
            function.addresses = {_address(op._mlir): op for op in function.ops if op.standing}
        found: dict[int, Any] = function.addresses
        return found

    def __repr__(self) -> str:
        return _name(self.operation) if self.alive else "a function that is gone"


class _Keeping(threading.local):
    def __init__(self) -> None:
        #: Those with a function that is kept decoded; None: none is kept.
        self.scopes: list[Scope] | None = None


_keeping = _Keeping()


def is_keeping() -> bool:
    """Whether this thread keeps functions decoded."""
    return _keeping.scopes is not None


@contextmanager
def keeping(begin: bool = True) -> Iterator[None]:
    """Keep the functions of modules decoded that this thread reads and builds meanwhile.

    All that changes a function by a `Builder` or erases ops is noticed; whoever changes attributes of ops, or puts ops
    there by the bindings alone, says so by `changed`. `begin`: False for code that need not know that; what was
    kept is forgotten then.
    """
    outer = _keeping.scopes
    if not begin:
        _let_go(outer)
    _keeping.scopes = [] if begin else None
    try:
        yield
    finally:
        _let_go(_keeping.scopes)
        _keeping.scopes = outer


def _let_go(scopes: list[Scope] | None) -> None:
    for scope in scopes or ():
        scope.changed()
    if scopes:
        scopes.clear()


#: By the address of the operation: the bindings make a new object each time that they wrap it.
_scopes: WeakValueDictionary[int, Scope] = WeakValueDictionary()
#: By the address of its operation.
_modules: WeakValueDictionary[int, Any] = WeakValueDictionary()


def keep(module: Any) -> None:
    """Let a module live as long as the scopes of its functions that are made from now on."""
    _modules[_address(module.operation)] = module


_capsule_name = ctypes.pythonapi.PyCapsule_GetName
_capsule_name.restype, _capsule_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype, _capsule_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def _address(operation: Any) -> int:
    """Where an operation lies; its hash is one of what it says."""
    capsule = operation._CAPIPtr
    return _capsule_pointer(capsule, _capsule_name(capsule)) or 0


def scope_of(operation: Any) -> Scope:
    """The scope of an op that stands directly in a module."""
    key = _address(operation)
    found = _scopes.get(key)
    if found is None:
        found = _scopes[key] = Scope(operation)
    return found


def scope_at(insertion_point: Any) -> Scope:
    """The scope in which an insertion point lies. Raises IRError where its block has been erased."""
    try:
        operation = insertion_point.block.owner.operation
        while (outer := operation.parent) is not None and outer.operation.parent is not None:
            operation = outer.operation
    except RuntimeError:
        raise IRError("the function of this builder was erased or rebuilt; use the one that is handed in") from None
    return scope_of(operation)


def users_of(value: Any, scope: Scope) -> list[Any]:
    """The ops of a function that read a value of the bindings, in order, each once; through what is not an op of smelt
    (bounds and slices of loops), and from inside of branches and loops, those that it stands for."""
    views, found, pending = scope.views(), {}, [value]
    while pending:
        for use in pending.pop().uses:
            operation = use.owner
            operation = getattr(operation, "operation", operation)
            inner = operation
            while operation is not None and (key := _address(operation)) not in views:
                outer = operation.parent
                operation = None if outer is None else outer.operation
            if operation is not None:
                found[key] = views[key]
            elif inner.name not in ("func.return", "scf.yield"):
                pending += list(inner.results)
    places = {key: i for i, key in enumerate(views)}
    return [found[key] for key in sorted(found, key=places.__getitem__)]


def forget() -> None:
    """Let all scopes die: MLIR's own passes may have erased any function."""
    for scope in list(_scopes.values()):
        scope.alive = False
        scope.changed()
    _scopes.clear()


def _name(operation: Any) -> str:
    attributes = operation.attributes
    return f"@{mlir.ir.StringAttr(attributes['sym_name']).value}" if "sym_name" in attributes else operation.name


def _inside(operation: Any) -> Iterator[Any]:
    """The ops directly in the regions of a module, and it itself."""
    yield operation
    if operation.name == "builtin.module":
        for block in operation.regions[0].blocks:
            for item in block.operations:
                yield item.operation


_PLACE = re.compile(r'"((?:[^"\\]|\\.)+)":(\d+):(\d+)')


def position(location: Any) -> tuple[str, int, int] | None:
    """The first file, line and column in an op's location; None where it has none."""
    file = getattr(location, "filename", None)
    if file is not None:
        return str(file), location.start_line, location.start_col
    found = _PLACE.search(str(location))
    return (found[1], int(found[2]), int(found[3])) if found else None


def place(location: Any) -> str:
    """Where the user wrote an op, for the end of a message: ``"; at model.py:12"``, or nothing where it is unknown."""
    found = position(location)
    if found is None:
        return ""
    file, line, column = found
    return f"; at line {line}, column {column} of the text" if file == "-" else f"; at {file}:{line}"


def changed(operation: Any) -> None:
    """Forget what is kept of the function that an op, which is changed or erased, stands in."""
    while (outer := operation.parent) is not None and outer.operation.parent is not None:
        operation = outer.operation
    scope = _scopes.get(_address(operation))
    if scope is not None:
        scope.changed()


def guard_erase() -> None:
    """Make `erase` of the bindings an error where something still reads what it frees; they themselves do not check."""
    base = mlir.ir.Operation.__mro__[1]
    original = base.erase
    if getattr(original, "checked", False):
        return

    def erase(self: Any) -> None:
        """Erase the op. Raises IRError while something reads one of its results."""
        operation = self.operation
        for result in operation.results:
            for use in result.uses:
                where = place(operation.location)
                raise IRError(f"{operation.name} cannot be erased: {use.owner.name} still reads its results{where}")
        if _keeping.scopes is not None:
            changed(operation)
        name = operation.name
        if name == "builtin.module" and operation.parent is None:
            raise IRError("a module cannot be erased: its owner would free it again")
        if not name.startswith("smelt."):  # these have no regions, so no scope is theirs
            for inner in _inside(operation):
                scope = _scopes.pop(_address(inner), None)
                if scope is not None:
                    scope.alive = False
        original(self)

    erase.checked = True  # type: ignore[attr-defined]
    base.erase = erase
