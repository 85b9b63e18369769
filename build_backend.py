"""How pip builds smelt: by setuptools, except that an editable installation is a folder of links.

The package is put together from several folders, and `build/package/smelt` shows them as one: that is what the
`.pth` file of an editable installation names, and what type checkers look at. A regular package on `sys.path` is
found before a folder that only has the package's name, such as a checkout called `smelt` beside a script.
"""

from __future__ import annotations

import base64
import hashlib
import os
import sysconfig
import zipfile
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

from setuptools import Distribution, Extension, build_meta
from setuptools.build_meta import (
    build_sdist,
    build_wheel,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)
from setuptools.command.build_ext import build_ext

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

ROOT = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.join(ROOT, "build", "package", "smelt")
ROOMS = ("ir", "passes", "backends", "runtime", "tools")


def link() -> str:
    """Make the folder of links, or bring it up to date; the folder that it lies in."""
    os.makedirs(PACKAGE, exist_ok=True)
    wanted = {name: os.path.join(ROOT, "frontend", name) for name in os.listdir(os.path.join(ROOT, "frontend"))}
    wanted.update({room: os.path.join(ROOT, room) for room in ROOMS})
    wanted.pop("__pycache__", None)
    targets = {name: os.path.relpath(path, PACKAGE) for name, path in wanted.items()}
    for name in os.listdir(PACKAGE):
        path = os.path.join(PACKAGE, name)
        if os.path.islink(path) and targets.get(name) != os.readlink(path):
            os.unlink(path)
    for name, target in targets.items():
        if not os.path.lexists(path := os.path.join(PACKAGE, name)):
            os.symlink(target, path)
    os.utime(PACKAGE)
    return os.path.dirname(PACKAGE)


#: Modules in C, and their sources or the folders of these; as in pyproject.toml.
NATIVE = {
    "_core": os.path.join("frontend", "lazy", "native"),
    "_counted": os.path.join("backends", "counted.c"),
    "_launches": os.path.join("backends", "cuda", "launches.c"),
    "_entry": os.path.join("backends", "cpu", "entry.c"),
    "_team": os.path.join("backends", "cpu", "team.c"),
}


def build_core() -> None:
    """Compile the modules in C into the folder of links, if a source is newer than what is there. Without a compiler
    or Python's headers smelt does without: beside them stands the same in Python."""
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return
    before = os.getcwd()
    os.chdir(ROOT)  # setuptools wants relative paths
    try:
        for name, path in NATIVE.items():
            names = [os.path.join(path, f) for f in os.listdir(path)] if os.path.isdir(path) else [path]
            files = sorted(f for f in names if f.endswith((".c", ".h")))
            made = os.path.join(PACKAGE, f"{name}{sysconfig.get_config_var('EXT_SUFFIX')}")
            newest = max(os.path.getmtime(file) for file in files)
            if not os.path.exists(made) or os.path.getmtime(made) <= newest:
                _build(name, files)
    finally:
        os.chdir(before)


class _BuildTogether(build_ext):
    """Compiles the sources of a module at the same time, as many as there are processors."""

    def build_extensions(self) -> None:
        one = self.compiler.compile

        def compile_all(sources: list[str], **options) -> list[str]:
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                return list(chain.from_iterable(pool.map(lambda source: one([source], **options), sources)))

        self.compiler.compile = compile_all
        super().build_extensions()


def _build(name: str, files: list[str]) -> None:
    sources, headers = ([f for f in files if f.endswith(end)] for end in (".c", ".h"))
    flags = ["-ffp-contract=off", "-fno-math-errno", "-Wno-psabi"]
    extension = Extension(name, sources, depends=headers, extra_compile_args=flags, optional=True)
    command = _BuildTogether(Distribution({"name": "smelt", "ext_modules": [extension]}))
    command.build_lib, command.build_temp = PACKAGE, os.path.join(ROOT, "build", "core")
    command.ensure_finalized()
    command.run()


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """A wheel that holds the name of the folder of links, and the metadata."""
    if metadata_directory is None:
        name = build_meta.prepare_metadata_for_build_editable(wheel_directory, config_settings)
        metadata_directory = os.path.join(wheel_directory, name)
    info = os.path.basename(metadata_directory)
    distribution = info.removesuffix(".dist-info")
    build_core()
    files = {f"{distribution.partition('-')[0]}.pth": os.fsencode(f"{link()}\n")}
    for folder, _, names in os.walk(metadata_directory):
        for name in names:
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                files[f"{info}/{os.path.relpath(path, metadata_directory).replace(os.sep, '/')}"] = file.read()
    files[f"{info}/WHEEL"] = (
        b"Wheel-Version: 1.0\nGenerator: smelt's build_backend.py\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    record = []
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record.append(f"{name},sha256={digest},{len(content)}\n")
    record.append(f"{info}/RECORD,,\n")
    files[f"{info}/RECORD"] = "".join(record).encode()
    wheel = f"{distribution}-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, wheel), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return wheel


if __name__ == "__main__":
    link()
    build_core()
