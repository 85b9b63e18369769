"""Where files lie, not what they are called, decides whose they are; and a checkout works in any folder."""

from __future__ import annotations

import ast
import contextlib
import functools
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest

import smelt
from smelt.ir import errors
from smelt.lazy import core

from .sources import ROOMS, ROOT

#: Line 3 makes a mistake, line 4 an array; both name their line.
PROGRAM = """import smelt
def f(x):
    try: smelt.ones(3) @ smelt.ones(4)
    except ValueError as error: message = str(error); y = smelt.exp(x)
    return y, message
lines = []
def g(x):
    y, message = f(x)
    lines.append(message)
    return y
text = smelt.compile(g).trace(smelt.ones(2)).lower().module.operation.get_asm(enable_debug_info=True)
"""


def lines_of(file: str) -> None:
    """Run PROGRAM as the code of a file; check the line in the error and the location in the IR."""
    scope: dict = {"__name__": "__main__", "__file__": file}
    exec(compile(PROGRAM, file, "exec"), scope)
    assert scope["lines"][0].endswith(f"; at {file}:3"), scope["lines"]
    assert f'"{file}":4:0' in scope["text"], scope["text"]


BELOW = [
    "optree/x.py", "numpy/x.py", "smelt/x.py", "smelt", "smelt-opt", "smelt.py", "ir/ops/x.py", "frontend/x.py",
    "contextlib.py", "functools.py", "site-packages/contextlib.py", "a b/smelt/tests/x.py", "lib/python3.11/x.py",
    "smelt_user/x.py", "bin/smelt", "frontend.py", "ir_of_mine/x.py", "<string>", "optree/functools.py",
]  # fmt: skip


@pytest.mark.parametrize("name", BELOW)
def test_a_users_file_may_have_any_name(tmp_path: Path, name: str) -> None:
    lines_of(str(tmp_path / name))


@pytest.mark.parametrize("suffix", ["_user/x.py", "-x.py", ".py", "/../x.py"])
def test_a_users_file_beside_smelt(suffix: str) -> None:
    lines_of(os.path.normpath(smelt.__path__[0] + suffix))
    lines_of(str(ROOT / ("ir" + suffix.replace("/..", ""))) if "user" in suffix else str(ROOT / "x.py"))


@pytest.mark.parametrize(
    "name", ["<string>", "<stdin>", "<ipython-input-3-0a1b2c>", "<doctest x[0]>", "<unknown>", "<timeit-src>"]
)
def test_code_without_a_file(name: str) -> None:
    """`python -c`, exec, eval, an interpreter, a notebook."""
    lines_of(name)


def test_what_python_generates_for_classes() -> None:
    """A dataclass of smelt checks its fields: the line is that of its caller, not of a generated method."""
    with pytest.raises(errors.ArgumentTypeError, match=f"{os.path.basename(__file__)}:"):
        smelt.Device(3)  # type: ignore[arg-type]
    scope: dict = {}
    exec("import smelt\ndef f():\n    smelt.Device(3)", scope)
    with pytest.raises(errors.ArgumentTypeError, match="at <string>:3"):
        scope["f"]()


def test_python_numpy_and_optree_stand_between() -> None:
    def line(make) -> str:  # type: ignore[no-untyped-def]
        with pytest.raises(errors.SmeltError) as caught:
            smelt.compile(make)(smelt.ones((2, 3)))
        return str(caught.value)

    here = f"at {__file__}:"
    assert here in line(lambda x: np.linalg.norm(x))
    assert here in line(lambda x: functools.reduce(lambda a, b: a + b, [x, smelt.ones((7, 7))]))

    def at_exit(x: smelt.array) -> None:
        with contextlib.ExitStack() as stack:
            stack.callback(smelt.matmul, x, x)

    assert here in line(at_exit)
    assert here in line(lambda x: smelt.utils.tree_map(functools.partial(smelt.matmul, x), {"a": x}))


def run(*command: str, cwd: Path, path: Path | None = None, text: str | None = None) -> str:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    if path is not None:
        environment["PYTHONPATH"] = str(path)
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, input=text, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


CHECK = PROGRAM + "print(lines[0].rpartition('; at ')[2]); print(__import__('re').findall('\"(.*)\":4:0', text)[0])\n"


@pytest.mark.parametrize("name", ["smelt", "smelt.txt", "optree/smelt", "a b/x.py"])
def test_a_script_of_any_name(tmp_path: Path, name: str) -> None:
    script = tmp_path / name
    script.parent.mkdir(exist_ok=True)
    script.write_text(CHECK)
    path = Path(smelt.__path__[0]).parent
    assert run(sys.executable, str(script), cwd=tmp_path, path=path).split("\n")[:2] == [f"{script}:3", str(script)]


def test_a_program_on_the_command_line_and_from_standard_input() -> None:
    path = Path(smelt.__path__[0]).parent
    assert run(sys.executable, "-c", CHECK, cwd=ROOT, path=path).split() == ["<string>:3", "<string>"]
    assert run(sys.executable, "-", cwd=ROOT, path=path, text=CHECK).split() == ["<stdin>:3", "<stdin>"]


def copied(folder: Path) -> None:
    """The repository without what has been built in it."""
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in (*ROOMS, "pyproject.toml", "build_backend.py", "README.md", "LICENSE"):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, folder / name)


def with_core(checkout: Path) -> None:
    """The largest of the modules in C as it has been compiled for this process: the small ones are still compiled."""
    if core.native is not None:
        package = checkout / "build" / "package" / "smelt"
        package.mkdir(parents=True)
        shutil.copy2(core.native.__file__, package)


@pytest.mark.parametrize("kind", ["wheel", "flat"])
def test_other_ways_to_install(tmp_path: Path, kind: str) -> None:
    """As a wheel does: one folder, of any name above; or rooms that lie flat in a folder called `smelt`."""
    site = tmp_path / "smelt"
    site.mkdir()
    copied(site)
    if kind == "wheel":
        (site / "frontend").rename(site / "smelt")
        for room in set(ROOMS) - {"frontend"}:
            (site / room).rename(site / "smelt" / room)
        code = ""
    else:
        places = {"smelt": "frontend", **{f"smelt.{room}": room for room in ROOMS if room != "frontend"}}
        code = (
            f"import importlib.util, sys\nplaces, site = {places!r}, {str(site)!r}\nclass Finder:\n"
            "    def find_spec(name, path=None, target=None):\n"
            "        if name in places:\n"
            "            file = f'{site}/{places[name]}/__init__.py'\n"
            "            return importlib.util.spec_from_file_location(name, file)\n"
            "sys.meta_path.insert(0, Finder)\n"
        )
    script = site / "tests" / "smelt.py"
    script.parent.mkdir()
    setup = tmp_path / "setup.py"
    setup.write_text(code + f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')")
    script.write_text(CHECK + "print(smelt.__file__)\n")
    found = run(sys.executable, str(setup), cwd=tmp_path, path=site if kind == "wheel" else tmp_path).split("\n")
    assert found[:2] == [f"{script}:3", str(script)]
    assert found[2].startswith(str(site))


def test_an_editable_installation(tmp_path: Path) -> None:
    """Of a checkout called `smelt` in a folder with spaces, deep down: a script above it gets the package, a file
    made later is found, the commands run."""
    pytest.importorskip("pip")
    above = tmp_path / "with a space" / ("deep" * 20) / ("down" * 20)
    checkout = above / "smelt"
    checkout.mkdir(parents=True)
    copied(checkout)
    with_core(checkout)
    environment = checkout / ".venv"
    run(sys.executable, "-m", "venv", "--without-pip", str(environment), cwd=tmp_path)
    python = str(environment / "bin" / "python")
    site = next(environment.glob("lib/python*/site-packages"))
    (site / "dependencies.pth").write_text(str(Path(pytest.__file__).parents[1]))  # its own .pth files are not read
    options = ("--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check")
    run(sys.executable, "-m", "pip", "--python", python, "install", *options, "-e", str(checkout), cwd=tmp_path)

    script = above / "script.py"
    script.write_text(CHECK + "print(smelt.__file__)\n")
    for cwd in (above, checkout, tmp_path):
        found = run(python, str(script), cwd=cwd).splitlines()
        assert found == [f"{script}:3", str(script), str(checkout / "build" / "package" / "smelt" / "__init__.py")]
    places = {"frontend/made_later.py": "smelt.made_later", "ir/ops/made_later.py": "smelt.ir.ops.made_later"}
    for file, module in places.items():
        (checkout / file).write_text("def f(): import smelt; smelt.ones(3) @ smelt.ones(4)")
        program = f"from {module} import f\ntry: f()\nexcept ValueError as error: print(error)"
        assert run(python, "-c", program, cwd=above).endswith("at <string>:2\n"), "the line of a file of smelt"
    assert "cse" in run(str(environment / "bin" / "smelt-opt"), "--list-passes", cwd=above)
    broken = above / "broken.mlir"
    broken.write_text("module {")
    done = subprocess.run([environment / "bin" / "smelt-opt", broken], capture_output=True, text=True, check=False)
    assert done.returncode and "bin/smelt-opt:" not in done.stderr


def test_commands_of_a_linked_environment(tmp_path: Path) -> None:
    """They are no lines of the user either."""
    linked = tmp_path / "linked"
    linked.symlink_to(sysconfig.get_path("scripts"))
    assert errors._is_internal_file(str(linked / "smelt-opt"))
    assert not errors._is_internal_file(str(tmp_path / "smelt")) and not errors._is_internal_file(str(linked / "mine"))


def test_the_folder_of_links_has_every_room() -> None:
    found = [
        ast.literal_eval(node.value)
        for node in ast.parse((ROOT / "build_backend.py").read_text()).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "ROOMS"
    ]
    assert [{*rooms, "frontend"} for rooms in found] == [set(ROOMS)]
