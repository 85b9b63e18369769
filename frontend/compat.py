"""Programs written for MLX, without a change: its modules are names for those of smelt.

``python -m smelt.compat train.py --epochs 3`` runs a program so, and ``-m package.module`` a module; `install` does it
in a program that imports MLX later.
"""

from __future__ import annotations

import functools
import importlib.machinery
import importlib.metadata
import inspect
import os
import pathlib
import pkgutil
import runpy
import subprocess
import sys
import types
from collections.abc import Iterable, Mapping
from typing import Any

import smelt
from smelt.ir.errors import SettingError, at_user_line
from smelt.ir.listing import listed

from . import cuda, distributed, fast, linalg, metal, nn, optimizers, random, utils
from .distributed import hosts
from .functions.known_indices import Refusal
from .lazy.printing import Layout
from .nn import layers
from .optimizers import schedulers

__all__ = ["install"]

#: The version of MLX whose names these are: programs ask which one they have.
_VERSION = "0.32.4"

__dir__ = listed(globals())


def _modules() -> dict[str, types.ModuleType]:
    """What stands for each module of MLX."""
    found: dict[str, types.ModuleType] = {
        "mlx.core": smelt,
        "mlx.nn": nn,
        "mlx.optimizers": optimizers,
        "mlx.utils": utils,
        "mlx.optimizers.optimizers": optimizers,
        "mlx.optimizers.schedulers": schedulers,
        "mlx.nn.layers": layers,
        "mlx._distributed_utils": hosts,
        "mlx._distributed_utils.common": hosts,
        "mlx._distributed_utils.launch": hosts,
    }
    for module in (cuda, distributed, fast, linalg, metal, random, smelt.fft):
        found[f"mlx.core.{module.__name__.rpartition('.')[2]}"] = module
    for name in ("init", "losses", "utils"):
        found[f"mlx.nn.{name}"] = getattr(nn, name)
    for name, value in vars(layers).items():
        if isinstance(value, types.ModuleType) and value.__name__.startswith(layers.__name__):
            found[f"mlx.nn.layers.{name}"] = value
    return found


#: Classes of which programs ask for the module; others have a view of the elements of some arrays.
_PUBLIC = (smelt.array, *smelt.array.__subclasses__(), smelt.Dtype)


class _Distribution(importlib.metadata.Distribution):
    """What programs read of the package that they ask for: its name, and the version whose names these are."""

    def read_text(self, filename: str) -> str | None:
        return f"Metadata-Version: 2.1\nName: mlx\nVersion: {_VERSION}\n" if filename == "METADATA" else None

    def locate_file(self, path: str | os.PathLike[str]) -> Any:
        return pathlib.Path(__file__).parent / path


_Context = importlib.metadata.DistributionFinder.Context
_ALL = _Context()


class _Finder(importlib.metadata.DistributionFinder):
    """Finds `_Distribution`, and no modules."""

    def find_spec(self, *_: object) -> None:
        return None

    def find_distributions(self, context: _Context = _ALL) -> Iterable[importlib.metadata.Distribution]:
        return [_Distribution()] if context.name in ("mlx", None) else []


def install() -> None:
    """Make ``mlx``, ``mlx.core``, ``mlx.nn``, ``mlx.optimizers`` and ``mlx.utils`` names for smelt, for later imports.

    From then on dtypes and arrays print themselves as MLX's do (``mlx.core.float32``), arrays are of the class
    ``mlx.core.array``, for whose name some programs ask, and ``mx.__version__``, which is ``smelt.__version__``, is
    that of MLX whose names these are. An array with an index out of range, where MLX uses memory of something else, is
    warned about, once for each line: the nearest element is read, and nothing is written.

    Raises:
        SettingError: MLX itself has been imported already.

    >>> import subprocess, sys
    >>> program = "import smelt; smelt.compat.install(); import mlx.core as mx; print(mx.array([1.0]) + 1)"
    >>> print(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout)
    array([2], dtype=float32)
    """
    known = sys.modules.get("mlx")
    if known is not None and not getattr(known, "__smelt__", False):
        raise SettingError(at_user_line("smelt.compat.install: MLX itself has been imported already; install before"))
    package = types.ModuleType("mlx", "Names for smelt.")
    package.__path__ = list(pkgutil.extend_path([], "mlx"))  # other packages are in it: `mlx.data`
    package.__spec__ = importlib.machinery.ModuleSpec("mlx", None, is_package=True)  # `find_spec("mlx")` asks for one
    package.__spec__.submodule_search_locations = package.__path__
    package.__smelt__ = True  # type: ignore[attr-defined]
    modules = _modules()
    for name, module in modules.items():
        if name.count(".") == 1:
            setattr(package, name.partition(".")[2], module)
    sys.modules.update({"mlx": package, **modules})
    if known is None:
        sys.meta_path.append(_Finder())  # behind those of packages that are installed
    smelt.Dtype.module = "mlx.core"
    Layout.of_mlx = Refusal.of_mlx = True
    for kind in _PUBLIC:
        kind.__module__ = "mlx.core"
    smelt.__version__ = _VERSION


#: Holds a package ``mlx`` that installs itself.
_STAND_IN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "stand_in")


def _with_stand_in(environment: Mapping[Any, Any]) -> dict[Any, Any]:
    """The environment, with the stand-in on the path of Python."""
    key: Any = b"PYTHONPATH" if b"PYTHONPATH" in environment else "PYTHONPATH"
    paths = os.fsdecode(environment.get(key, "")).split(os.pathsep)
    others = [path for path in paths if path and path != _STAND_IN]
    return {**environment, key: os.pathsep.join([_STAND_IN, *others])}


def _install_in_processes() -> None:
    """Have the processes that this one starts find a package ``mlx`` that installs itself: workers, other programs;
    those with an environment of their own as well."""
    os.environ.update(_with_stand_in(dict(os.environ)))
    if _STAND_IN not in sys.path:
        sys.path.insert(1, _STAND_IN)  # workers that are spawned get this path
    start = subprocess.Popen.__init__
    signature = inspect.signature(start)

    @functools.wraps(start)
    def started(*args: Any, **kwargs: Any) -> None:
        given = signature.bind(*args, **kwargs)
        environment = given.arguments.get("env")
        given.arguments["env"] = _with_stand_in(dict(os.environ if environment is None else environment))
        start(*given.args, **given.kwargs)

    subprocess.Popen.__init__ = started  # type: ignore[method-assign]


_USAGE = """usage: python -m smelt.compat PROGRAM [ARGUMENTS...]
       python -m smelt.compat -m MODULE [ARGUMENTS...]
       python -m smelt.compat -c CODE [ARGUMENTS...]

Run a program written for MLX with smelt."""


def main(arguments: list[str]) -> int:
    """Run a program, as Python would; its exit status, if it does not exit itself."""
    kind = arguments[0] if arguments and arguments[0] in ("-m", "-c") else None
    if not arguments or arguments[0] in ("-h", "--help") or (kind and len(arguments) == 1):
        print(_USAGE)
        return 0 if arguments[:1] and not kind else 2
    if kind is None and not os.path.exists(arguments[0]):
        print(f"smelt.compat: there is no file {arguments[0]}", file=sys.stderr)
        return 2
    code = kind == "-c"
    sys.path[0] = "" if code else os.getcwd() if kind else os.path.dirname(os.path.abspath(arguments[0]))
    install()
    _install_in_processes()
    if kind is None:
        sys.argv[:] = arguments
        runpy.run_path(arguments[0], run_name="__main__")
        return 0
    what, sys.argv[:] = arguments[1], [kind, *arguments[2:]]
    if code:
        program = types.ModuleType("__main__")
        sys.modules["__main__"] = program
        exec(compile(what, "<string>", "exec"), program.__dict__)
    else:
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
