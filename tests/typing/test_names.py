"""What `import smelt` shows: `__all__` of the package and its public modules, and the stub of the array's methods."""

from __future__ import annotations

import ast
import importlib
import inspect
import pydoc
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import smelt
from smelt.functions import methods
from smelt.lazy import arrays

from ..architecture.test_imports import LAYERS

MODULES = (
    "smelt", "smelt.compat", "smelt.errors", "smelt.fast", "smelt.fft", "smelt.linalg", "smelt.metal", "smelt.nn",
    "smelt.nn.init", "smelt.nn.losses", "smelt.nn.utils", "smelt.optimizers", "smelt.random", "smelt.utils",
)  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_dir_is_all(name: str) -> None:
    module = importlib.import_module(name)
    assert len(set(module.__all__)) == len(module.__all__)
    assert {n for n in dir(module) if not n.startswith("_")} == set(module.__all__) - {"__version__"}
    for public in module.__all__:
        assert getattr(module, public, module) is not module, public
    names: dict[str, Any] = {}
    exec(f"from {name} import *", names)
    assert set(module.__all__) <= names.keys()


def internal_names() -> Iterator[tuple[str, str]]:
    """Modules of the frontend and the public names that they say to have."""
    folder = Path(smelt.__file__).parent
    for path in sorted([*folder.glob("*.py"), *(p for layer in LAYERS for p in (folder / layer).glob("*.py"))]):
        name = ".".join(["smelt", *path.relative_to(folder).with_suffix("").parts])
        if path.stem not in ("__init__", "__main__") and name not in MODULES:
            yield from ((name, public) for public in getattr(importlib.import_module(name), "__all__", ()))


def test_what_a_module_exports_is_public() -> None:
    public = {name for module in MODULES for name in importlib.import_module(module).__all__}
    missing = [f"{module}.{name}" for module, name in internal_names() if name not in public]
    assert not missing, f"in no public module's __all__: {missing}"


def test_help_shows_the_public_names() -> None:
    text = pydoc.plain(pydoc.TextDoc().docmodule(smelt))
    listed = text[text.index("\nFUNCTIONS") : text.index("\nDATA")]
    assert "    matmul(" in listed and "    value_and_grad(" in listed
    assert "from_host" not in listed and "promote_operands" not in listed


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="smelt has no 'nothing'"):
        smelt.nothing  # type: ignore[attr-defined]  # noqa: B018


# The stub that tells type checkers of operators and methods

STUB = Path(methods.__file__).parent / "array_methods.pyi"


def declared() -> dict[str, ast.FunctionDef]:
    (cls,) = [n for n in ast.parse(STUB.read_text(encoding="utf-8")).body if isinstance(n, ast.ClassDef)]
    return {n.name: n for n in cls.body if isinstance(n, ast.FunctionDef)}


def attached() -> dict[str, Any]:
    """What `methods` has put on the class, by name."""
    tree = ast.parse(Path(arrays.__file__).read_text(encoding="utf-8"))
    (cls,) = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "array"]
    written = {n.name for n in cls.body if isinstance(n, ast.FunctionDef)} | {"__hash__", "__array_priority__"}
    kinds = (types.FunctionType, property)
    return {n: f for n, f in vars(smelt.array).items() if isinstance(f, kinds) and n not in written}


def test_the_stub_declares_what_is_attached() -> None:
    assert declared().keys() == attached().keys()


@pytest.mark.parametrize("name", sorted(declared()))
def test_a_declaration_is_the_methods_signature(name: str) -> None:
    node, function = declared()[name], attached()[name]
    result = ast.unparse(node.returns) if node.returns else ""
    if isinstance(function, property):
        assert [ast.unparse(d) for d in node.decorator_list] == ["property"]
        assert result == {"at": "ArrayAt", "device": "Device", "__numpy_dtype__": "np.dtype[Any]"}.get(name, "array")
        return
    if name.strip("_")[name.strip("_")[0] in "ri" :] in methods.OPERATORS or name.strip("_") in (
        methods.OPERATORS.keys() | methods.COMPARISONS.keys()
    ):
        assert ast.unparse(node.args) == "self, other: ArrayLike, /" and result == "array"
        return
    if name in ("__neg__", "__pos__", "__abs__", "__invert__"):
        assert ast.unparse(node.args) == "self" and result == "array"
        return
    signature = inspect.signature(function)
    own, *rest = signature.parameters.values()
    keeps_name = own.kind is own.POSITIONAL_OR_KEYWORD or not any(p.kind is p.POSITIONAL_ONLY for p in rest)
    own = own.replace(name="self", annotation=own.empty, kind=own.POSITIONAL_OR_KEYWORD if keeps_name else own.kind)
    wanted = str(signature.replace(parameters=[own, *rest])).replace("'", "")
    arguments = str(inspect.signature(eval(f"lambda {_without_types(node)}: 0")))
    assert arguments == str(_bare(signature.replace(parameters=[own, *rest])))
    types_given = [a.annotation for a in _arguments(node)[1:]]
    types_wanted = [p.annotation for p in rest]
    assert [ast.unparse(t) if t else "" for t in types_given] == types_wanted, wanted
    assert result == signature.return_annotation


def _arguments(node: ast.FunctionDef) -> list[ast.arg]:
    a = node.args
    return [*a.posonlyargs, *a.args, *([a.vararg] if a.vararg else []), *a.kwonlyargs, *([a.kwarg] if a.kwarg else [])]


def _without_types(node: ast.FunctionDef) -> str:
    found = ast.parse(ast.unparse(node)).body[0]
    assert isinstance(found, ast.FunctionDef)
    for argument in _arguments(found):
        argument.annotation = None
    return ast.unparse(found.args)


def _bare(signature: inspect.Signature) -> inspect.Signature:
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return signature.replace(parameters=bare, return_annotation=signature.empty)
