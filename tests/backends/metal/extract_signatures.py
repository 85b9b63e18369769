"""What PyObjC says about the Metal names that smelt uses, taken from its macOS wheel.

    pip download --no-deps --only-binary=:all: --platform macosx_10_13_universal2 --python-version 3.12 \\
        pyobjc-framework-Metal==12.2.2
    python -m tests.backends.metal.extract_signatures pyobjc_framework_metal-12.2.2-*.whl

writes metal_signatures.json beside this file. Nothing of the wheel is imported: its metadata module is run
with a stand-in for ``objc`` that notes what is registered.
"""

from __future__ import annotations

import ast
import email
import json
import re
import sys
import types
import zipfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SOURCES = sorted((HERE.parents[2] / "backends" / "metal" / "apple").glob("*.py"))
SIGNATURES = HERE / "metal_signatures.json"


def used_names() -> tuple[set[str], set[str]]:
    """Methods that the Apple runtime calls or the fake has, and names of the Metal module."""
    methods, module_names = set(), set()
    for path in [*SOURCES, HERE / "fake_metal.py"]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute):
                name = node.attr
            elif isinstance(node, (ast.FunctionDef, ast.ClassDef)) and path.name == "fake_metal.py":
                name = node.name
            else:
                continue
            if name.startswith("MTL"):
                module_names.add(name)
            elif isinstance(node, ast.FunctionDef) or name.endswith("_"):
                methods.add(name)
    return {name for name in methods if not name.startswith("_")}, module_names


def to_selector(name: str) -> str:
    """``a_b_`` is PyObjC's spelling of the selector ``a:b:``."""
    return name.replace("_", ":")


def extract(wheel: Path) -> dict[str, Any]:
    """The facts: methods, functions, constants and structures among `used_names`."""
    with zipfile.ZipFile(wheel) as archive:
        source = archive.read("Metal/_metadata.py").decode()
        [described] = [n for n in archive.namelist() if n.endswith(".dist-info/METADATA")]
        package = email.message_from_bytes(archive.read(described))
    registered: dict[str, dict[str, Any]] = {}
    structures: dict[str, list[str]] = {}

    def register(owner: bytes, selector: bytes, facts: dict[str, Any]) -> None:
        registered[selector.decode()] = facts

    def create(name: str, encoding: bytes, fields: list[str] | None) -> None:
        structures[name.removeprefix("Metal.")] = list(fields or ())

    objc = _Anything("objc")
    objc.registerMetaDataForSelector = register
    objc.createStructType = create
    objc.arch = "arm64"
    saved = sys.modules.get("objc")
    sys.modules["objc"] = objc
    scope: dict[str, Any] = {"__name__": "metal_metadata"}
    try:
        exec(compile(source, "_metadata.py", "exec"), scope)
    finally:
        sys.modules.pop("objc")
        if saved is not None:
            sys.modules["objc"] = saved

    called, names = used_names()
    constants = dict(re.findall(r"\$?(\w+)@(-?\d+)", scope["enums"]))
    methods = {}
    for selector in sorted(to_selector(name) for name in called):
        if selector in registered:
            facts = registered[selector]
            arguments = facts.get("arguments", {})
            methods[selector] = {
                "arguments": selector.count(":"),
                "types": [arguments[i].get("type", b"@").decode() for i in sorted(arguments)],
                # Arguments are numbered from 2, after the object and the selector.
                "out": [i - 2 for i, a in sorted(arguments.items()) if a.get("type_modifier") == b"o"],
                "returns": facts.get("retval", {}).get("type", b"?").decode(),
            }
    return {
        "package": package["Name"],
        "version": package["Version"],
        "requires": package.get_all("Requires-Dist"),
        "methods": methods,
        "functions": {n: scope["functions"][n][0].decode() for n in sorted(names) if n in scope["functions"]},
        "constants": {n: int(constants[n]) for n in sorted(names) if n in constants},
        "structures": {n: structures[n] for n in sorted(names) if n in structures},
    }


class _Anything(types.ModuleType):
    """A module that has every name: functions that do nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: None


if __name__ == "__main__":
    SIGNATURES.write_text(json.dumps(extract(Path(sys.argv[1])), indent=1, sort_keys=True) + "\n", encoding="utf-8")
    print(f"wrote {SIGNATURES.name}")
