"""Programs written for MLX, without a change: its modules are names for those of smelt.

``python -m smelt.compat train.py --epochs 3`` runs a program so, and ``-m package.module`` a module; `install` does it
in a program that imports MLX later.
"""

from __future__ import annotations

import importlib.machinery
import importlib.metadata
import os
import pathlib
import pkgutil
import runpy
import sys
import types
from collections.abc import Iterable
from typing import Any

import smelt
from smelt.ir.errors import SettingError, at_user_line

from . import cuda, distributed, fast, linalg, metal, nn, optimizers, random, utils
from .distributed import hosts
from .nn import layers
from .optimizers import schedulers

__all__ = ["install"]


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


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
        return "Metadata-Version: 2.1\nName: mlx\nVersion: 0.32.4\n" if filename == "METADATA" else None

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

    Dtypes print themselves as MLX's do, ``mlx.core.float32``, from then on, and arrays are of the class
    ``mlx.core.array``: some programs ask for its name.

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
    for kind in _PUBLIC:
        kind.__module__ = "mlx.core"


def _install_in_processes() -> None:
    """Have the processes that this one starts find a package ``mlx`` that installs itself: workers, other programs."""
    stand_in = os.path.join(os.path.dirname(os.path.abspath(__file__)), "stand_in")
    others = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path and path != stand_in]
    os.environ["PYTHONPATH"] = os.pathsep.join([stand_in, *others])
    sys.path.insert(1, stand_in)  # workers that are spawned get this path


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
