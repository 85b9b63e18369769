"""Finds a C++ compiler, compiles kernels to shared objects, and keeps them on disk.

Every file is named by the hash of all that it depends on and moved into place in one step, so several
processes may compile at once. The folder is ``SMELT_CACHE_DIR`` or the user's cache folder; beyond
`CACHE_BYTES` the oldest files go.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from smelt.backends.metal.check.names import SIMD_HEADER
from smelt.backends.metal.simulator.source import SimulatorError
from smelt.ir.folders import cache_place
from smelt.ir.settings import settings

CACHE_BYTES = 256 << 20
#: Files used less long ago stay: someone may be about to load them.
YOUNG_SECONDS = 600
#: Headers and runtimes of other versions go after this.
OLD_SECONDS = 7 * 24 * 3600
HEADERS = Path(__file__).parents[1] / "headers" / "cpp"
RUNTIME = Path(__file__).parent

_COMMON = [
    "-std=c++17",
    "-O2",
    "-w",
    "-fPIC",
    "-ffp-contract=off",
    "-fno-strict-aliasing",
    "-fno-math-errno",
    "-fwrapv",
    "-fsigned-char",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-stack-protector",
    "-fno-asynchronous-unwind-tables",
    "-U_FORTIFY_SOURCE",
]


@dataclass(frozen=True)
class Compiler:
    """A C++ compiler.

    Attributes:
        command: what runs it.
        family: "gcc" or "clang".
        identity: changes when another version is installed.
    """

    command: tuple[str, ...]
    family: str
    identity: str

    @property
    def flags(self) -> tuple[str, ...]:
        """For everything that is compiled."""
        family = ("-Wno-reserved-user-defined-literal", "-Wno-error") if self.family == "clang" else ()
        return (*_COMMON, *_machine_flags(), *family)

    @property
    def guard_flags(self) -> tuple[str, ...]:
        """That make misaligned accesses and indices outside of arrays trap."""
        if self.family == "clang":
            return ("-fsanitize=alignment,bounds", "-fsanitize-trap=alignment,bounds")
        return ("-fsanitize=alignment,bounds", "-fsanitize-undefined-trap-on-error")


def _candidates() -> list[tuple[str, ...]]:
    if settings.cxx:
        return [tuple(settings.cxx.split())]
    found: list[tuple[str, ...]] = [(path,) for path in map(shutil.which, ("c++", "g++", "clang++")) if path]
    if importlib.util.find_spec("ziglang"):
        found.append((sys.executable, "-m", "ziglang", "c++"))
    return found


@functools.lru_cache(maxsize=8)
def _compiler(candidates: tuple[tuple[str, ...], ...]) -> Compiler:
    problems = []
    for command in candidates:
        try:
            answer = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=120)
        except (OSError, subprocess.TimeoutExpired) as error:
            problems.append(f"{' '.join(command)}: {error}")
            continue
        if answer.returncode:
            problems.append(f"{' '.join(command)}: {answer.stderr.strip()[:200]}")
            continue
        family = "clang" if "clang" in answer.stdout.lower() else "gcc"
        return Compiler(command, family, answer.stdout)
    raise SimulatorError(
        "the Metal simulator needs a C++17 compiler: install g++ or clang++, or `pip install ziglang`, or name one "
        "in SMELT_CXX" + "".join(f"\n  {p}" for p in problems)
    )


def compiler() -> Compiler:
    """``SMELT_CXX``, else the first of c++, g++, clang++ and the ziglang wheel. Raises SimulatorError if none works."""
    return _compiler(tuple(_candidates()))


@functools.lru_cache(maxsize=8)
def _folder(place: Path | None) -> Path:
    if place is not None:
        folder = place / "simulator"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if os.access(folder, os.W_OK):
                return folder
        except OSError:
            pass
    return Path(tempfile.mkdtemp(prefix="smelt-"))


def folder() -> Path:
    """Where compiled files are kept; a temporary folder if that cannot be written."""
    place = cache_place()
    return _folder(None if place is None else Path(place))


@functools.cache
def _sources() -> str:
    """A hash of the headers and the runtime."""
    digest = hashlib.sha256()
    for path in sorted([*HEADERS.iterdir(), *RUNTIME.glob("*.cpp"), *RUNTIME.glob("*.h")]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _features() -> set[str]:
    """Names of the processor's features, where Linux tells them."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return set()
    return set(next((line for line in lines if line.startswith("flags")), "").split())


@functools.cache
def _machine_flags() -> tuple[str, ...]:
    """What the processor must have: two levels, not all that is there, so that compilers have no more ways to make
    a kernel than tests look at, and machines can share a folder."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return ()
    # With fma in hardware, which emitted texts use much.
    fast = ("-mavx2", "-mfma") if {"avx2", "fma"} <= _features() else ()
    return ("-fcf-protection=none", *fast)


def _key(*parts: str) -> str:
    return hashlib.sha256("\0".join((_sources(), platform.machine(), *parts)).encode()).hexdigest()[:32]


def _run(command: list[str], what: str) -> None:
    answer = subprocess.run(command, capture_output=True, text=True)
    if answer.returncode:
        raise SimulatorError(f"{what} does not compile\n{answer.stderr.strip()[:8000]}")


def _make(target: Path, command: list[str], what: str) -> None:
    """Runs a command that ends with the name of its output, then moves the output to `target`."""
    handle, temporary = tempfile.mkstemp(dir=target.parent, suffix=target.suffix)
    os.close(handle)
    try:
        _run([*command, "-o", temporary], what)
        os.chmod(temporary, 0o755)
        os.replace(temporary, target)
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)


def _touch(path: Path) -> Path:
    with contextlib.suppress(OSError):
        os.utime(path)
    return path


def runtime() -> Path:
    """The simulator's runtime as a shared object."""
    tool = compiler()
    path = folder() / f"runtime-{_key('runtime', tool.identity, *tool.flags)}.so"
    if not path.exists():
        source = RUNTIME / "runtime.cpp"
        threads = [] if sys.platform == "darwin" else ["-pthread"]
        command = [*tool.command, *tool.flags, *threads, "-shared", f"-I{HEADERS}", str(source)]
        _make(path, command, "the simulator's runtime")
    return _touch(path)


def _header(tool: Compiler, flags: tuple[str, ...]) -> list[str]:
    """Options that give a text `metal_stdlib`, precompiled."""
    place = folder() / f"header-{_key('header', tool.identity, *flags)}"
    source = place / "metal_stdlib"
    compiled = place / ("metal_stdlib.gch" if tool.family == "gcc" else "metal_stdlib.pch")
    if not compiled.exists():
        place.mkdir(exist_ok=True)
        # The compiler takes the precompiled file for an include of the file beside it.
        handle, temporary = tempfile.mkstemp(dir=place)
        with os.fdopen(handle, "wb") as file:
            file.write((HEADERS / "metal_stdlib").read_bytes())
        os.replace(temporary, source)
        _make(compiled, [*tool.command, *flags, "-x", "c++-header", f"-I{HEADERS}", str(source)], "metal_stdlib")
    use = [] if tool.family == "gcc" else ["-include-pch", str(compiled)]
    return [*use, f"-I{_touch(place)}", f"-I{HEADERS}"]


def shared_object(source: str, guard: bool) -> Path:
    """Compiles C++ to a shared object, or finds it compiled.

    Raises:
        SimulatorError: with the compiler's message.
    """
    tool = compiler()
    flags = (*tool.flags, *(tool.guard_flags if guard else ()))
    path = folder() / f"{_key(source, tool.identity, *flags)}.so"
    if path.exists():
        return _touch(path)
    with tempfile.TemporaryDirectory(prefix="smelt-") as place:
        written = Path(place) / "kernel.cpp"
        written.write_text(source)
        undefined = ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []
        command = [*tool.command, *flags, *_header(tool, flags), "-shared", str(written), *undefined, "-lm"]
        _make(path, command, "the Metal text")
    _discard_oldest()
    return path


@functools.cache
def _library_macros() -> list[str]:
    """The constants of the standard library that are macros, which a text may ask for."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(HEADERS.glob("smelt_*.h"))]
    return [n for t in texts for n in re.findall(r"^#define ([A-Z]\w*) ", t, re.M) if not n.startswith("SMELT")]


def preprocess(text: str) -> str:
    """The text after its own macros; the standard library's stay for later. Raises SimulatorError."""
    tool = compiler()
    with tempfile.TemporaryDirectory(prefix="smelt-") as place:
        for header in HEADERS.glob("metal_*"):
            (Path(place) / header.name).touch()
        names = Path(place) / SIMD_HEADER
        names.parent.mkdir()
        shutil.copyfile(HEADERS / "smelt_simd_names.h", names)
        command = [*tool.command, "-std=c++17", "-x", "c++", "-E", "-P", "-w", "-nostdinc", f"-I{place}"]
        command += ["-D__METAL__=1", "-D__METAL_VERSION__=310", "-D__HAVE_BFLOAT__=1"]
        command += [f"-D{name}={name}" for name in _library_macros()] + ["-"]
        answer = subprocess.run(command, input=text, capture_output=True, text=True)
    if answer.returncode:
        raise SimulatorError(f"the Metal text does not compile\n{answer.stderr.strip()[:8000]}")
    return answer.stdout


_compiled_since_check = 0


def _discard_oldest() -> None:
    """Every 64 compiles: deletes the kernels used longest ago, beyond CACHE_BYTES, and what no version uses."""
    global _compiled_since_check
    _compiled_since_check += 1
    if _compiled_since_check % 64 != 1:
        return
    files = []
    for path in folder().iterdir():
        try:
            status = path.stat()
        except OSError:
            continue
        if not path.name.startswith(("runtime-", "header-")):
            files.append((status.st_mtime, status.st_size, path))
        elif time.time() - status.st_mtime > OLD_SECONDS:
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
    total = sum(size for _, size, _ in files)
    for used, size, path in sorted(files):
        if total <= CACHE_BYTES or time.time() - used < YOUNG_SECONDS:
            return
        path.unlink(missing_ok=True)
        total -= size
