"""The MLIR Python bindings. The only file that names the package that hosts them.

`SMELT_MLIR_PACKAGE` names the host if set; else `torch_mlir` (a wheel that carries the complete
upstream bindings), else `mlir`. Everything loads on first use: `import smelt` does not pay for it.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import pkgutil
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, ParamSpec, TypeVar

from . import ending, locks
from .errors import SmeltError

P = ParamSpec("P")
T = TypeVar("T")

_HOSTS = ("torch_mlir", "mlir")
_NEEDED = ("ir", "passmanager", "execution_engine", "dialects.ext")
_HINT = (
    "smelt needs MLIR's Python bindings (Python-defined dialects and the execution engine). "
    "Install them with: pip install torch-mlir==20261001. "
    "To use another build, set SMELT_MLIR_PACKAGE to the package that contains `ir` and `dialects`."
)

#: Held while MLIR's context is in use: smelt has one context, and compiles one program at a time.
lock = locks.lock(ending.GuardedLock)


def locked(function: Callable[P, T]) -> Callable[P, T]:
    """The function, which is called under `lock`, and has no place where an interrupt leaves that taken.

    Under a `with` Python 3.13 has such places: the jumps of conditions in comprehensions and loops.
    """

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        with lock:
            return function(*args, **kwargs)

    return run


class BindingsError(SmeltError, ImportError):
    """The MLIR bindings are missing or lack a part that smelt needs."""


@functools.cache
def host() -> str:
    """The name of the package that provides the bindings."""
    return locks.whole(_find_host)


def _find_host() -> str:
    wanted = os.environ.get("SMELT_MLIR_PACKAGE")
    problems = []
    for name in (wanted,) if wanted else _HOSTS:
        try:
            for part in _NEEDED:
                importlib.import_module(f"{name}.{part}")
            if not hasattr(importlib.import_module(f"{name}.ir"), "DynamicOpTrait"):
                raise BindingsError(f"{name}.ir has no DynamicOpTrait")
        except (ImportError, TypeError, ValueError) as error:  # also of a name that can be none, such as ".x"
            problems.append(f"{name}: {error}")
        else:
            return name
    raise BindingsError(f"{_HINT} Tried {'; '.join(problems)}.")


@functools.cache
def identity() -> str:
    """What changes when other bindings are installed: where they lie, and when their libraries were written.

    Nothing is loaded for it; where no bindings are found it is empty.
    """
    wanted = os.environ.get("SMELT_MLIR_PACKAGE")
    for name in (wanted,) if wanted else _HOSTS:
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, TypeError, ValueError):
            continue
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            try:
                with os.scandir(os.path.join(folder, "_mlir_libs")) as files:
                    stats = [(f.name, f.stat().st_size, f.stat().st_mtime_ns) for f in files if f.is_file()]
            except OSError:
                continue
            return repr((name, folder, sorted(stats)))
    return ""


@functools.cache
def module(name: str) -> ModuleType:
    """A module of the bindings: ``module("ir")``, ``module("dialects.scf")``."""
    path = f"{host()}.{name}"
    return locks.whole(lambda: importlib.import_module(path))


@functools.cache
def dialects() -> frozenset[str]:
    """The names of upstream's dialects that the bindings have modules for."""
    path = module("dialects").__path__
    return frozenset(m.name for m in pkgutil.iter_modules(path) if not m.name.startswith("_"))


def load_dialects(names: Iterable[str]) -> None:
    """Import the modules of these dialects, as far as they exist.

    The bindings import a dialect's module when they first meet one of its ops. The module registers itself; if an
    interrupt left that half done, it could never be loaded again.
    """
    missing = [n for n in names if n not in _loaded and n in dialects()]
    if missing:
        path = f"{host()}.dialects"

        def load() -> None:
            for name in missing:
                importlib.import_module(f"{path}.{name}")
                _loaded.add(name)

        locks.whole(load)


def file_location(name: str, line: int, column: int, context: Any) -> Any:
    """A place in a file, as a location. What of its name is not Unicode, which MLIR cannot take, stands in escapes."""
    return module("ir").Location.file(unicode(name), line, column, context=context)


def unicode(name: str) -> str:
    """A name with escapes for what is not Unicode: bytes of names of files that are not of their encoding."""
    return name.encode("utf-8", "backslashreplace").decode()


def plain_attribute(text: str, context: Any) -> Any:
    """An attribute that stays what it is to MLIR, of no class of its dialect; see `plainly`."""
    return plainly(functools.partial(module("ir").Attribute.parse, text, context))


def plainly(action: Callable[[], T]) -> T:
    """What `action` returns, in which ops and attributes are of no class of their dialect: for one of the LLVM dialect
    the bindings would import all of its classes, which takes as long as two kernels. `action`: as of `locks.whole`."""
    state: Any = getattr(module("_mlir_libs._mlir"), "globals", None)
    places = list(getattr(state, "dialect_search_modules", ()))

    def without_classes() -> T:
        state.dialect_search_modules = []
        try:
            return action()
        finally:
            state.dialect_search_modules = places

    with lock:
        return locks.whole(without_classes) if places else action()


def set_llvm_options(*options: str) -> bool:
    """Set options of LLVM's command line, for this process; whether the library of the bindings lets one.

    Options that its LLVM does not know, or that somebody has set before, do nothing.
    """
    import ctypes  # imports much, for who compiles nothing

    library = c_library("LLVMParseCommandLineOptions")
    if library is None:
        return False
    parse, words = library.LLVMParseCommandLineOptions, [b"smelt", *(option.encode() for option in options)]
    parse.restype, parse.argtypes = None, [ctypes.c_int, ctypes.POINTER(ctypes.c_char_p), ctypes.c_char_p]
    parse(len(words), (ctypes.c_char_p * len(words))(*words), None)
    return True


def c_library(*functions: str) -> Any:
    """The library of the bindings that has these functions in C; None where none has all of them."""
    import ctypes

    (folder,) = module("_mlir_libs").__path__
    for name in sorted(n for n in os.listdir(folder) if n.startswith("lib") and "CAPI" in n):
        try:
            library = ctypes.CDLL(os.path.join(folder, name))
        except OSError:
            continue
        if all(hasattr(library, function) for function in functions):
            return library
    return None


_loaded: set[str] = set()


def __getattr__(name: str) -> Any:
    if name in ("ir", "passmanager", "execution_engine", "ext"):
        value = module("dialects.ext" if name == "ext" else name)
        globals()[name] = value
        return value
    raise AttributeError(name)
