"""Programs written for MLX, without a change: its modules are names for those of smelt.

``python -m smelt.compat train.py --epochs 3`` runs a program so; `install` does it in a program that imports MLX later.
"""

from __future__ import annotations

import importlib.machinery
import os
import runpy
import sys
import types

import smelt
from smelt.ir.errors import SettingError, at_user_line

from . import distributed, fast, linalg, metal, nn, optimizers, random, utils
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
    }
    for module in (distributed, fast, linalg, metal, random, smelt.fft):
        found[f"mlx.core.{module.__name__.rpartition('.')[2]}"] = module
    for name in ("init", "losses", "utils"):
        found[f"mlx.nn.{name}"] = getattr(nn, name)
    for name, value in vars(layers).items():
        if isinstance(value, types.ModuleType) and value.__name__.startswith(layers.__name__):
            found[f"mlx.nn.layers.{name}"] = value
    return found


def install() -> None:
    """Make ``mlx``, ``mlx.core``, ``mlx.nn``, ``mlx.optimizers`` and ``mlx.utils`` names for smelt, for later imports.

    Dtypes print themselves as MLX's do, ``mlx.core.float32``, from then on.

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
    package.__path__ = []
    package.__spec__ = importlib.machinery.ModuleSpec("mlx", None, is_package=True)  # `find_spec("mlx")` asks for one
    package.__smelt__ = True  # type: ignore[attr-defined]
    modules = _modules()
    for name, module in modules.items():
        if name.count(".") == 1:
            setattr(package, name.partition(".")[2], module)
    sys.modules.update({"mlx": package, **modules})
    smelt.Dtype.module = "mlx.core"


def main(arguments: list[str]) -> int:
    """Run a program; its exit status, if it does not exit itself."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print("usage: python -m smelt.compat PROGRAM [ARGUMENTS...]\n\nRun a program written for MLX with smelt.")
        return 0 if arguments else 2
    install()
    sys.argv[:] = arguments
    sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
    runpy.run_path(arguments[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
