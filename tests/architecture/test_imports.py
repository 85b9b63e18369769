"""Who imports whom: ir ← passes ← backends ← runtime ← frontend ← tools."""

from __future__ import annotations

import ast
import functools
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import build_backend

from .sources import ROOMS, ROOT, module_name, python_files

#: Modules in C, and the rooms of their sources.
NATIVE = {f"smelt.{name}": folder.split(os.sep)[0] for name, folder in build_backend.NATIVE.items()}
OUTSIDE = ("tests", "benchmarks", "docs", "examples", *ROOMS)


def imported_modules(tree: ast.AST, module: str, is_package: bool) -> Iterator[tuple[int, str]]:
    """Line and absolute name of everything that a module imports, at its top or inside functions."""
    package = module.split(".") if is_package else module.split(".")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*base, node.module] if node.module else base)
            yield from ((node.lineno, f"{source}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in ("import_module", "__import__", "loaded") and isinstance(node.args[0].value, str):
                yield node.lineno, node.args[0].value


def room_of(module: str) -> str | None:
    """The room that an absolute module name lies in; None outside smelt."""
    parts = module.split(".")
    if parts[0] != "smelt":
        return None
    if module in NATIVE:
        return NATIVE[module]
    return parts[1] if len(parts) > 1 and parts[1] in ROOMS else "frontend"


#: ``python -m smelt``, which nothing imports.
ENTRY = ROOT / "frontend" / "__main__.py"


#: Inside the frontend: each may import those to its left. What lies in no folder may import all.
LAYERS = ("lazy", "functions", "transforms")

#: Folders whose functions may import what a program loads only when it needs it, and what that is.
LOADED_ON_USE = {
    # Compilers, and what writes kernels for them.
    "frontend": (
        "smelt.backends", "smelt.own_kernels", "smelt.passes", "smelt.runtime.background", "smelt.runtime.kept",
        "smelt.runtime.measure", "smelt.runtime.view", "smelt.ir.short",
        # What the first steps of a program do without: trees, what finds and keeps kernels of its graphs, what runs
        # compiled functions.
        "smelt.lazy.tree", "smelt.lazy.written",
        "smelt.lazy.execution.changing", "smelt.lazy.execution.strided", "smelt.lazy.execution.tiered",
        "smelt.foreign",  # what errors say of names that there are not
    ),
    "runtime": ("smelt.backends.pipelines", "smelt.passes", "smelt.runtime.kept"),
    "backends": ("smelt.backends",),
    "tools": ("smelt",),  # `--help` is quick
}


def _loads(node: ast.AST) -> bool:
    """Whether a module is loaded when it is needed, by `locks.loaded`."""
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "locks.loaded"


@functools.cache
def own_imports(path: Path) -> list[tuple[int, str, bool]]:
    """Line and module of everything of smelt's that a module imports at run time, and whether a function does."""
    return _own_imports(path, ast.parse(path.read_text(encoding="utf-8")))


def _own_imports(path: Path, tree: ast.AST) -> list[tuple[int, str, bool]]:
    module = module_name(path)
    pending: list[tuple[ast.AST, bool]] = [(tree, False)]
    imports = []
    while pending:
        node, inside = pending.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            pending += [(child, inside) for child in node.orelse]
            continue
        if isinstance(node, ast.Import | ast.ImportFrom) or _loads(node):
            for line, target in imported_modules(ast.Module([node], []), module, path.name == "__init__.py"):
                found = target if target in MODULES else target.rpartition(".")[0]
                if found in MODULES and found != module:
                    imports.append((line, found, inside))
        inside = inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        pending += [(child, inside) for child in ast.iter_child_nodes(node)]
    return imports


MODULES = {module_name(path): path for path in python_files(*ROOMS) if path != ENTRY}


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_what_it_may(module: str) -> None:
    """What the rules below say; a file is read once for all of them."""
    path = MODULES[module]
    broken = _broken(module, ast.parse(path.read_text(encoding="utf-8")))
    assert not broken, "\n".join(f"{path.relative_to(ROOT)}:{line}: {what}" for line, what in broken)


def _broken(module: str, tree: ast.AST) -> list[tuple[int, str]]:
    path = MODULES[module]
    every, own = list(imported_modules(tree, module, path.name == "__init__.py")), _own_imports(path, tree)
    broken = [*_to_the_right(module, every), *_of_upper_layers(module, own), *_not_loaded_on_use(module, own)]
    return [*broken, *_private(every), *(_not_loaded_whole(module, tree) if any(inside for *_, inside in own) else ())]


def _to_the_right(module: str, imports: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """A room imports only what stands to its left."""
    room = MODULES[module].relative_to(ROOT).parts[0]
    for line, target in imports:
        found = room_of(target)
        if target.split(".")[0] in OUTSIDE or (found is not None and ROOMS.index(found) > ROOMS.index(room)):
            yield line, f"{room} must not import {target}"


def _of_upper_layers(module: str, imports: Iterable[tuple[int, str, bool]]) -> Iterator[tuple[int, str]]:
    """A layer of the frontend imports only what stands to its left."""
    layer = _layer(module)
    for line, target, _ in imports:
        found = _layer(target)
        if layer is not None and found is not None and LAYERS.index(found) > LAYERS.index(layer):
            yield line, f"{module} must not import {target}"


def _layer(module: str) -> str | None:
    if room_of(module) != "frontend" or "." not in module:
        return None
    name = module.split(".")[1]
    return name if name in LAYERS else None


def _not_loaded_on_use(module: str, imports: Iterable[tuple[int, str, bool]]) -> Iterator[tuple[int, str]]:
    """A function imports only what is loaded on use."""
    allowed = LOADED_ON_USE.get(MODULES[module].relative_to(ROOT).parts[0], ())
    for line, target, inside in imports:
        if inside and not target.startswith(allowed):
            yield line, f"import {target} at the top of the module"


def _private(imports: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """A module imports no private name of another."""
    for line, target in imports:
        name = target.rpartition(".")[2]
        if room_of(target) is not None and name[0] == "_" and not name.endswith("__") and target not in NATIVE:
            yield line, f"{target} is private"


#: Their functions run where a handler of a signal may need the same module.
INTERRUPTED = ("ir", "runtime", "frontend")


def _not_loaded_whole(module: str, tree: ast.AST) -> Iterator[tuple[int, str]]:
    """What is loaded on use is loaded whole: by `locks.loaded`, or after `load_compiler`, which loads a compiler."""
    if room_of(module) not in INTERRUPTED:
        return
    is_package = MODULES[module].name == "__init__.py"
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and function.name != "_import_compiler":
            inside = list(ast.walk(function))
            if not any(isinstance(n, ast.Import | ast.ImportFrom) for n in inside):
                continue
            imports = [t for _, t in imported_modules(function, module, is_package) if room_of(t)]
            calls = {ast.unparse(n.func) for n in inside if isinstance(n, ast.Call)}
            if imports and not calls & {"load_compiler", "_need_metal"}:
                yield function.lineno, f"{function.name} imports {imports}"


#: What a module must not hold, and what is said of it.
BROKEN = [
    ("ir.op", "def f():\n from ..runtime import pool", "ir must not import smelt.runtime.pool"),
    ("ir.op", "import numpy\nimport tests.ops", "ir must not import tests.ops"),
    ("lazy.graph", "from ..transforms import compile", "smelt.lazy.graph must not import smelt.transforms.compile"),
    ("passes.driver", "def f():\n from smelt.ir import text", "import smelt.ir.text at the top of the module"),
    ("passes.driver", "from smelt.ir.text import _written", "smelt.ir.text._written is private"),
    ("lazy.graph", "def f():\n from smelt.passes import driver", "f imports ['smelt.passes.driver']"),
]


@pytest.mark.parametrize(("module", "source", "message"), BROKEN)
def test_the_rules_see_what_breaks_them(module: str, source: str, message: str) -> None:
    assert message in [what for _, what in _broken(f"smelt.{module}", ast.parse(source))]
    assert not _broken(f"smelt.{module}", ast.parse("import numpy"))


def test_no_modules_import_each_other() -> None:
    left = {m: {target for _, target, _ in own_imports(path)} for m, path in MODULES.items()}
    while free := [m for m, targets in left.items() if not targets & left.keys()]:
        for module in free:
            del left[module]
    while ends := [m for m in left if not any(m in targets for targets in left.values())]:
        for module in ends:
            del left[module]
    circle = "\n".join(f"{m} -> {', '.join(sorted(targets & left.keys()))}" for m, targets in sorted(left.items()))
    assert not left, f"circles:\n{circle}"


def test_the_rule_sees_imports_inside_functions() -> None:
    source = "def f():\n    from ..runtime import pool\n    import smelt\n    from . import dtypes\n"
    found = [room_of(name) for _, name in imported_modules(ast.parse(source), "smelt.ir.op", False)]
    assert found == ["runtime", "frontend", "ir"]


def test_one_file_names_the_host_of_the_bindings() -> None:
    naming = [
        str(path.relative_to(ROOT))
        for path in python_files(*ROOMS)
        if "torch_mlir" in path.read_text(encoding="utf-8")
    ]
    assert naming == ["ir/mlir.py"]


def run_python(code: str, **variables: str) -> str:
    """What a program prints, which runs with these environment variables; an empty one is left out."""
    changed = {**os.environ, **variables}
    environment = {name: value for name, value in changed.items() if value or name not in variables}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd="/", env=environment)
    return done.stdout.strip()


def loaded_by_import() -> list[str]:
    """The modules that `import smelt` loads beyond those of NumPy."""
    code = "import sys, numpy; before = set(sys.modules); import smelt; print(*sorted(set(sys.modules) - before))"
    return run_python(code).split()


def test_import_smelt_loads_neither_the_bindings_nor_optional_packages() -> None:
    unwanted = {"torch_mlir", "mlir", "clang", "scipy", "sklearn", "mpmath", "hypothesis", "lit"}
    assert not unwanted & set(loaded_by_import())


def test_import_smelt_loads_no_compiler() -> None:
    """Only what devices are called, what arrays lie in, and how kernels are told."""
    rooms = ("smelt.passes", "smelt.backends", "smelt.tools", "smelt.fast")
    folders = [p.parent.name for p in (ROOT / "backends").glob("*/__init__.py")]
    light = ["buffer", "counting", "device", "dlpack", "executable", "gpu.devices", "pool", *folders]
    found = [m for m in loaded_by_import() if m.startswith(rooms)]
    assert found == sorted(["smelt.backends", *(f"smelt.backends.{name}" for name in light)])


def test_import_smelt_loads_few_modules() -> None:
    """What it takes is a row of the benchmarks; it grows with what is loaded."""
    code = (
        "import numpy, sys; before = set(sys.modules); import smelt; "
        "print(sum(name.partition('.')[0] == 'smelt' for name in set(sys.modules) - before))"
    )
    assert int(run_python(code)) < 200


def test_what_few_programs_use_is_not_loaded() -> None:
    """By an array of numbers, and by functions of rows."""
    code = (
        "import sys; import smelt; smelt.fast.rms_norm(smelt.array([[1.0, 2.0]]), smelt.ones(2), 1e-5); "
        "late = ('numpy.ma', 'smelt.own_kernels', 'smelt.backends.gpu.manifest', 'smelt.io', 'json', "
        "'smelt.transforms.compile', 'smelt.lazy.execution.strided', 'smelt.ir.elementary.functions'); "
        "print([name for name in late if name in sys.modules])"
    )
    assert run_python(code) == "[]"


def test_layers_linear_algebra_and_errors_load_no_kernels_of_gpus() -> None:
    """By their use alone: what is caught by name, what a layer is made of, a norm."""
    code = (
        "import sys; import smelt; import smelt.optimizers; smelt.nn.Linear(2, 2), smelt.conv1d, smelt.linalg.norm; "
        "smelt.errors.ShapeError; unwanted = ('smelt.backends.metal.', 'smelt.backends.gpu.schedules'); "
        "print([name for name in sys.modules if name.startswith(unwanted)], smelt.errors.SimulatorError.__name__)"
    )
    assert run_python(code) == "[] SimulatorError"


def test_functions_of_arrays_need_no_trees() -> None:
    code = "import sys; import smelt; smelt.eval(smelt.exp(smelt.array([1.0]))); print('optree' in sys.modules)"
    assert run_python(code) == "False"


def test_modules_that_load_on_use_are_named() -> None:
    code = "import smelt; print('fast' in dir(smelt), smelt.fast.__name__, smelt.fast is smelt.fast)"
    assert run_python(code) == "True smelt.fast True"


def test_names_that_load_on_use_are_there_when_asked_for() -> None:
    """By an attribute, by `from smelt import`, and all at once; none is missing, and `dir` shows each beforehand."""
    code = """
import sys
import smelt
late = [name for name in smelt.__all__ if name not in vars(smelt)]
families = ("smelt.io", "smelt.functions.sets", "smelt.functions.convolution", "smelt.linalg")
assert not set(families) & set(sys.modules) and {"conv2d", "save", "linalg", "union1d"} <= set(late), late
assert set(smelt.__all__) <= set(dir(smelt))
smelt.save = kept = print
from smelt import conv2d
assert smelt.save is kept, "a program's own is kept"
del smelt.save
assert smelt.conv2d is conv2d and "union1d" not in vars(smelt), "the others are not loaded with it"
names = {}
exec("from smelt import *", names)
assert set(smelt.__all__) <= set(names) and all(names[name] is getattr(smelt, name) for name in smelt.__all__)
try:
    smelt.no_such_name
except AttributeError as error:
    print(type(error).__name__)
"""
    assert run_python(code) == "MissingNameError"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_each_module_that_loads_on_use_loads_for_itself() -> None:
    """Whatever is loaded first, it needs none of the others to be loaded before; and it has the names of the lists."""
    code = """
import importlib, os
import smelt, smelt.late
for module in sorted({module for module, _ in smelt.late.HOMES.values()}):
    child = os.fork()
    if not child:
        try:
            found = vars(importlib.import_module(f"smelt.{module}"))
            for name, (home, attribute) in smelt.late.HOMES.items():
                if home == module:
                    assert getattr(smelt, name) is found[attribute] and name in smelt.__all__, name
        except BaseException as error:
            print(module, repr(error), flush=True)
            os._exit(1)
        os._exit(0)
    assert not os.waitpid(child, 0)[1], module
"""
    assert run_python(code) == ""


@pytest.mark.parametrize("name", ["pad", "conv2d", "quantile", "random.normal"])
def test_array_functions_load_no_transformations(name: str) -> None:
    code = f"import sys, smelt; smelt.{name}; print(*{{'optree', 'smelt.transforms.grad'}} & set(sys.modules))"
    assert run_python(code) == ""
