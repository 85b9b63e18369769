"""mypy and pyright (as basedpyright, whose wheels need nothing else) on programs of users."""

from __future__ import annotations

import functools
import importlib
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import smelt

PROGRAMS = Path(__file__).parent / "programs"

#: Line, kind and text of what a checker says.
Message = tuple[int, str, str]


#: All of them in one run of a checker, which reads smelt and NumPy for long.
FILES = ("networks.py", "ops.py", "revealed.py", "user.py", "wrong.py")


def mypy(name: str) -> list[Message]:
    return _mypy()[name]


def pyright(name: str) -> list[Message]:
    return _pyright()[name]


@functools.cache
def _mypy() -> dict[str, list[Message]]:
    """As a user runs it who has installed smelt, from a folder without settings."""
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", "", "--no-color-output"]
    command += ["--hide-error-context", "--cache-dir", str(cache("mypy")), *FILES]
    done = subprocess.run(command, capture_output=True, text=True, cwd=PROGRAMS)
    assert f"(checked {len(FILES)} source files)" in done.stdout, done.stdout + done.stderr
    found: dict[str, list[Message]] = {name: [] for name in FILES}
    for name, line, kind, text in re.findall(r"^(\w+\.py):(\d+): (\w+): (.*)", done.stdout, re.MULTILINE):
        found[name].append((int(line), kind, text))
    return found


@functools.cache
def _pyright() -> dict[str, list[Message]]:
    """In its strict mode, to which basedpyright's own adds nothing here; of `names_file`, too."""
    pytest.importorskip("basedpyright")
    files = [PROGRAMS / name for name in FILES] + [names_file()]
    project = cache("pyright") / "project.json"
    project.parent.mkdir(parents=True, exist_ok=True)
    project.write_text(json.dumps({"include": [str(path) for path in files], "typeCheckingMode": "strict"}))
    command = [sys.executable, "-m", "basedpyright", "--project", str(project), "--pythonpath", sys.executable]
    done = subprocess.run([*command, "--outputjson"], capture_output=True, text=True, cwd=PROGRAMS)
    said = json.loads(done.stdout)
    assert said["summary"]["filesAnalyzed"] == len(files)
    found: dict[str, list[Message]] = {path.name: [] for path in files}
    for d in said["generalDiagnostics"]:
        found[Path(d["file"]).name].append((d["range"]["start"]["line"] + 1, d["severity"], d["message"]))
    return found


def cache(name: str) -> Path:
    return Path(__file__).parents[2] / "build" / "typing" / name


CHECKERS = [mypy, pyright]


@pytest.mark.parametrize("name", ["user.py", "networks.py"])
@pytest.mark.parametrize("checker", CHECKERS, ids=lambda c: c.__name__)
def test_a_users_program(checker: Any, name: str) -> None:
    assert checker(name) == []


def test_the_program_with_a_network_runs() -> None:
    done = subprocess.run([sys.executable, str(PROGRAMS / "networks.py")], capture_output=True, text=True)
    assert done.returncode == 0 and "(norm): LayerNorm(4" in done.stdout, done.stderr


def test_the_users_program_runs() -> None:
    done = subprocess.run([sys.executable, str(PROGRAMS / "user.py")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"loss 0\.\d+, \(64, 3, 1\), \(3, 3\), 0, 64\n", done.stdout)


@pytest.mark.parametrize("name", ["wrong.py", "ops.py"])
@pytest.mark.parametrize("checker", CHECKERS, ids=lambda c: c.__name__)
def test_wrong_lines_are_refused(checker: Any, name: str) -> None:
    lines = (PROGRAMS / name).read_text().splitlines()
    wanted = {i for i, line in enumerate(lines, 1) if line.endswith("# refused")}
    assert {line for line, kind, _ in checker(name) if kind == "error"} == wanted


def expected(checker: Any) -> dict[int, str]:
    found = {}
    for i, line in enumerate((PROGRAMS / "revealed.py").read_text().splitlines(), 1):
        if line.startswith("reveal_type("):
            types = line.split("  # ", 1)[1]
            both = re.fullmatch(r"(Any|tuple\[Any, \.\.\.\]) \| (.*)", types)
            found[i] = (both[1] if checker is mypy else both[2]) if both else types
    return found


def plain(text: str) -> str:
    """A type in the words that mypy and pyright share: no modules, no values of defaults, parameters in brackets."""
    text = re.sub(r"\b[a-z_]\w*\.(?=\w)", "", text)
    text = re.sub(r"tuple\[array, fallback=(\w+)\]", r"\1", text)
    text = re.sub(r"^def \(", "(", text)
    text = re.sub(r"(: [\w.]+) =( [\d.]+)?(?=[,\])])", r"\1 = ...", text)
    return re.sub(r"^(\w+)\[\((.*)\), (.*)\]$", r"\1[[\2], \3]", text)


@pytest.mark.parametrize("checker", CHECKERS, ids=lambda c: c.__name__)
def test_revealed_types(checker: Any) -> None:
    pattern = r'Revealed type is "(.*)"' if checker is mypy else r'Type of ".*" is "(.*)"'
    found, errors = {}, []
    for line, kind, text in checker("revealed.py"):
        if match := re.fullmatch(pattern, text, re.DOTALL):
            found[line] = plain(match[1])
        elif kind == "error" and not re.search(r"lambda|partially unknown|is unknown", text):
            errors.append((line, text))
    assert not errors
    wanted = expected(checker)
    assert len(wanted) > 70
    assert {line: (found.get(line), type) for line, type in wanted.items() if found.get(line) != type} == {}


# Every public name

MODULES = (
    "smelt", "smelt.compat", "smelt.fast", "smelt.fft", "smelt.linalg", "smelt.metal", "smelt.nn", "smelt.nn.init",
    "smelt.nn.losses", "smelt.nn.utils", "smelt.optimizers", "smelt.random", "smelt.utils",
)  # fmt: skip

#: Functions whose result no type tells: who reads a file, or maps a tree, knows more.
ANYTHING = {
    "smelt.load": "an array, or a dict of arrays, by what the file holds",
    "smelt.nn.utils.checkpoint": "a function like the module, which may be any",
    "smelt.utils.tree_merge": "a tree of the leaves given",
    "smelt.utils.tree_map_with_path": "a tree of what the function returns",
    "smelt.utils.tree_unflatten": "a tree of the leaves given",
    "smelt.import_function": "a function, or with its metadata",
    "smelt.array.__array_ufunc__": "an array, or what NumPy gives where smelt has no such function",
    "smelt.array.tolist": "a number, or nested lists of numbers",
    "smelt.array.__dlpack__": "a capsule, which Python has no type for",
    "smelt.array.__reduce__": "what pickle reads",
}


def public_names() -> list[str]:
    names = [f"{m}.{n}" for m in MODULES for n in importlib.import_module(m).__all__]
    there = [n for n in dir(smelt.array) if hasattr(smelt.array, n)]  # names of other libraries are errors
    methods = [n for n in there if not n.startswith("_") or (n in vars(smelt.array) and n not in HIDDEN)]
    return sorted({n for n in names if n not in MODULES} | {f"smelt.array.{n}" for n in methods})


#: Of the class, what is nothing to call.
HIDDEN = {n for n in vars(smelt.array) if re.match(r"_[^_]", n)} | {
    "__array_priority__", "__doc__", "__hash__", "__module__", "__slots__", "__weakref__", "__static_attributes__",
    "__firstlineno__", "__annotations__",
}  # fmt: skip


def names_file() -> Path:
    """A program that asks for the type of each public name."""
    source = cache("names.py")
    source.parent.mkdir(parents=True, exist_ok=True)
    imports = "".join(f"import {m}\n" for m in MODULES)
    source.write_text(imports + "".join(f"reveal_type({name})\n" for name in public_names()))
    return source


@functools.cache
def table() -> dict[str, str]:
    """Each public name and the type that pyright reveals."""
    found: dict[int, list[str]] = {}
    for line, _, text in pyright("names.py"):
        found.setdefault(line, []).append(text)
    return {name: "\n".join(found[i]) for i, name in enumerate(public_names(), 1 + len(MODULES))}


def test_no_public_type_is_unknown() -> None:
    generic = re.compile(r"type\[\w+\[\.\.\., Unknown\]\]")  # a generic class itself
    assert {name: types for name, types in table().items() if "nknown" in generic.sub("", types)} == {}


def test_results_have_types() -> None:
    vague = {name for name, types in table().items() if re.search(r"-> Any\)?\"$", types)}
    assert vague == ANYTHING.keys()
