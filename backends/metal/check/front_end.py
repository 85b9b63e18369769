"""The strict check: does a text parse and type-check as Metal Shading Language?

clang reads the text as C++ for OpenCL, whose address spaces are Metal's, against declarations of Metal's library;
rules on the syntax tree add what is particular to Metal. Any Metal compute source is accepted, not only smelt's own.
No tool outside Apple's can promise that Apple's compiler takes a text: what this check finds is wrong, what it does
not find may still be.
"""

from __future__ import annotations

import bisect
import contextlib
import hashlib
import os
import re
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from smelt.ir import locks
from smelt.ir.errors import AttributeValueError, MetalCheckError, SmeltError
from smelt.ir.settings import settings

from .limits import too_deep
from .names import LATER_NAMES
from .text import Adapted, adapt_files, includes_of

LIBCLANG = "libclang==18.1.1"
HEADERS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "headers", "strict")
_ARGUMENTS = [
    "-x", "clcpp", "-cl-std=clc++2021", "-cl-no-stdinc", "-nostdinc", "-Xclang",
    "-cl-ext=-cl_khr_fp64,-__opencl_c_fp64",
    "--target=x86_64-linux-gnu", "-ferror-limit=200", "-Wno-unknown-attributes", "-Wno-unknown-pragmas",
    "-Wno-defaulted-function-deleted", "-Wno-undefined-inline", "-Wno-undefined-internal", "-Wno-c++11-narrowing",
    "-Wno-elaborated-enum-base",
    "-Werror=uninitialized", "-Wsometimes-uninitialized",
    "-Werror=global-constructors",
]  # fmt: skip
_INCOMPLETE, _FOR_SERIALIZATION = 0x02, 0x10
_SEVERITIES = {2: "warning", 3: "error", 4: "error"}


@dataclass(frozen=True)
class Diagnostic:
    """One message of the check: an error, a warning, or, with `strict`, a remark on what Metal does by itself.

    `line` and `column` (in characters) start at 1; 0 stands for the whole file.
    """

    severity: str
    file: str
    line: int
    column: int
    message: str
    source_line: str = ""

    def __str__(self) -> str:
        """As clang prints it: place and message, the source line, a caret."""
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        first = f"{place}: {self.severity}: {self.message}"
        if not self.line:
            return first
        indent = "".join("\t" if c == "\t" else " " for c in self.source_line[: self.column - 1])
        return f"{first}\n{self.source_line}\n{indent}^"


def check(
    text: str,
    name: str = "<text>",
    strict: bool = False,
    include: Sequence[str] = (),
    defines: Sequence[str] = (),
    metal: str = "3.1",
) -> list[Diagnostic]:
    """The errors and warnings of a Metal source text, in order of their lines.

    `name` is what diagnostics call the text. `strict` makes errors of what Metal tolerates but smelt does not write:
    floating-point literals without suffix, recursion, divergent barriers, names that other readers of the text refuse.
    `include` are folders in which files of `#include "..."` are looked for, `defines` macros as `NAME` or `NAME=VALUE`,
    `metal` the version of the language, such as "3.1" or "4.0".
    Raises SmeltError when libclang is missing, AttributeValueError for what is no version.

        >>> from smelt.backends.metal.check import check
        >>> for diagnostic in check("kernel void f(uint i) {}", "f.metal"):
        ...     print(diagnostic)
        f.metal:1:20: error: kernel parameter 'i' has no attribute such as [[thread_position_in_grid]]
        kernel void f(uint i) {}
                           ^
    """
    clang = _libclang()
    files: dict[str, Adapted] = {}
    report = Report(name, files, strict, version_of(metal))
    if not _adapt_files(text, include, files, report):
        return report.sorted()
    arguments = [*_arguments(report.metal), *(f"-D{define}" for define in defines)]
    arguments += [f"-I{folder}" for folder in include]
    if defines:
        arguments += ["-I" + HEADERS, "-include", "metal_stdlib"]
    else:
        arguments += ["-include-pch", _precompiled(report.metal)]
    sources = [(path, file.text) for path, file in files.items()]
    try:
        unit = clang.Index.create().parse(_MAIN, args=arguments, unsaved_files=_encoded(sources), options=_INCOMPLETE)
    except clang.TranslationUnitLoadError:
        return [Diagnostic("error", name, 0, 0, "the parser failed on this text")]
    for path, file in files.items():
        for finding in file.findings:
            report.add(finding.severity, path, finding.offset, finding.message)
    for diagnostic in unit.diagnostics:
        report.add_clang(diagnostic)
    from .rules import check_tree

    try:
        check_tree(unit, report)
    except RecursionError:
        report.add("error", _MAIN, 0, "statements are nested too deeply")
    return report.sorted()


def version_of(metal: str) -> tuple[int, int]:
    """The version of a language by its name. Raises AttributeValueError."""
    found = re.fullmatch(r"([1-9])\.([0-9])", metal) if isinstance(metal, str) else None
    if found is None:
        raise AttributeValueError(f"a version of Metal is written as 3.1, got {metal!r:.40}")
    return int(found.group(1)), int(found.group(2))


def _arguments(metal: tuple[int, int]) -> list[str]:
    return [*_ARGUMENTS, f"-D__METAL_VERSION__={metal[0]}{metal[1]}0"]


def check_or_raise(text: str, name: str = "<text>") -> None:
    """Raise MetalCheckError, which lists the diagnostics, when the strict check finds an error."""
    errors = [d for d in check(text, name, strict=True) if d.severity == "error"]
    if errors:
        shown = "\n".join(str(error) for error in errors[:10])
        more = f"\n... and {len(errors) - 10} more" if len(errors) > 10 else ""
        raise MetalCheckError(f"the Metal text does not pass the strict check:\n{shown}{more}")


# ------------------------------------------------------------------------------------------------------- reports

_MAIN = "smelt.metal"
#: clang's words for Metal's.
_WORDS = (
    ("const const ", "const "),
    ("__global", "device"),
    ("__local", "threadgroup"),
    ("__constant", "constant"),
    ("__private", "thread"),
    ("__generic ", ""),
    ("__bf16", "bfloat"),
    ("__msl_name_", ""),
    ("address space 'unqualified'", "no address space"),
    ("address space unqualified", "no address space"),
)
_LITERAL = "floating-point literal without suffix; write 'f' or 'h' behind it"
#: What clang says of a name that there is not.
_MISSING = re.compile(
    r"(?:use of undeclared identifier|unknown type name|no template named|(?=.*is unavailable)) ?'(\w+)'"
)
_REWRITTEN = (
    (re.compile(r"double precision constant requires .*"), _LITERAL),
    (re.compile(r"use of type 'double' requires .*"), "'double' is not supported in Metal"),
    (re.compile(r"no matching function for call to '__msl_make'"), "no matching vector constructor"),
    (re.compile(r"static assertion failed due to requirement '.*?': "), ""),
    (re.compile(r"^non-kernel function variable cannot be declared in local address space"),
     "threadgroup variable outside a kernel"),
    (re.compile(r"declaration requires a global constructor"), "this must be initialized with a constant expression"),
)  # fmt: skip
#: The width of a vector type as clang writes it.
_LANES = re.compile(r"vector of (\d+) '|ext_vector_type\((\d+)\)|vec<[\w ]+, (\d+)>|'(?:\w+ )*[a-z]+([234])'")
_CALL = re.compile(r"(?:typename\s+)?[\w:]+\s*(?:<[^<>]*>)?\s*\(")
#: What `strict` turns into errors.
_STRICT = (_LITERAL, "is a keyword of", "recursion", "implicit conversion to bfloat", "divergent barrier")


class Report:
    """Collects diagnostics, with places in the original texts."""

    def __init__(self, name: str, files: dict[str, Adapted], strict: bool, metal: tuple[int, int]) -> None:
        self.name, self.files, self.strict, self.metal = name, files, strict, metal
        self.diagnostics: dict[tuple[str, int, str], tuple[int, Diagnostic]] = {}
        self._starts: dict[str, list[int]] = {}

    def add(self, severity: str, path: str, offset: int, message: str) -> None:
        """Add a diagnostic at an offset in the original of a file."""
        if severity == "remark" and not self.strict:
            return
        text = self.files[path].original
        starts = self._starts.get(path)
        if starts is None:
            starts = self._starts[path] = [0, *(m.end() for m in re.finditer("\n", text))]
        line = bisect.bisect_right(starts, offset)
        start = starts[line - 1]
        end = text.find("\n", start)
        source = _decoded(text[start : end if end >= 0 else len(text)]).rstrip("\r")
        column = len(_decoded(text[start:offset])) + 1
        if self.strict and severity == "warning" and any(part in message for part in _STRICT):
            severity = "error"
        key = (path, line, message)
        if key not in self.diagnostics or self.diagnostics[key][1].column > column:
            shown = self.name if path == _MAIN else path
            # A line of megabytes helps nobody.
            source = source if len(source) <= 1000 else ""
            self.diagnostics[key] = (offset, Diagnostic(severity, shown, line, column, message, source))

    def add_adapted(self, severity: str, path: str, offset: int, message: str) -> None:
        """Add a diagnostic at an offset in the adapted text of a file."""
        self.add(severity, path, self.files[path].offset(offset), message)

    def add_clang(self, diagnostic: Any) -> None:
        """Add what clang said, in Metal's words, unless Metal allows it."""
        severity = _SEVERITIES.get(diagnostic.severity)
        message = diagnostic.spelling
        if severity is None:
            return
        place = self._place(diagnostic)
        if place is None:
            if diagnostic.severity == 4 or not self.diagnostics:
                self.add(severity, _MAIN, 0, message)
            return
        path, offset = place
        location = diagnostic.location
        if location.file is not None and location.file.name == path:
            if self.files[path].replaced(location.offset).startswith((" __msl_copies", " __msl_aggregate")):
                return  # a member without a copy; it matters where the structure is copied
        if self._is_allowed(message, path, offset, [child.spelling for child in diagnostic.children]):
            return
        missing = _MISSING.match(message)
        since = LATER_NAMES.get(missing.group(1)) if missing else None
        for pattern, words in _REWRITTEN:
            message = pattern.sub(words, message)
        for old, new in _WORDS:
            message = message.replace(old, new)
        if since is not None and self.metal < since:
            version = ".".join(map(str, since))
            message += f"; Metal {version} has it: check with --metal {version}"
        self.add(severity, path, offset, message)

    def _place(self, diagnostic: Any) -> tuple[str, int] | None:
        """File and original offset; for a message inside the library, where the program asked for it."""
        notes = [note for note in diagnostic.children if not note.spelling.startswith("in file included")]
        for found in (diagnostic, *notes):
            location = found.location
            if location.file is not None and location.file.name in self.files:
                return location.file.name, self.files[location.file.name].offset(location.offset)
        return None

    def _is_allowed(self, message: str, path: str, offset: int, notes: list[str]) -> bool:
        if "local address space" in message:
            # Declared through a macro, where the text could not be adapted.
            return any(start <= offset < end for start, end in self.files[path].kernel_bodies)
        if message.startswith(("C-style cast from", "static_cast from", "functional-style cast from",
                               "invalid conversion between ext-vector type")):  # fmt: skip
            # clang has no cast between its two 16-bit floating-point types.
            if "'half'" in message and re.search("bfloat|__bf16", message):
                return True
            # Metal converts vectors of the same width element by element; so does a cast in a template.
            sides = [_LANES.search(side) for side in re.split(r" (?:to|and) (?:vector )?(?=')", message, maxsplit=1)]
            widths = [found and found.group(found.lastindex or 0) for found in sides]
            return len(widths) == 2 and widths[0] is not None and widths[0] == widths[1]
        if message.startswith(("excess elements in scalar initializer", "excess elements in vector init")):
            # `T4(1, 2, 3, 4)` in a template, of which clang sees a list.
            is_call = _CALL.match(self.files[path].original, offset) is not None
            return is_call or not self._is_in_braces(path, offset)
        if message.startswith("too few elements in vector init"):
            return True  # `float4 x = {0};`: the others are zero
        if message.startswith("declaration requires a global constructor"):
            name = re.match(r"\w+", self.files[path].original[offset : offset + 200])
            return name is not None and name.group() in self.files[path].function_constants
        if message == "invalid vector element type 'bool'":
            return True
        return "implicitly-deleted copy" in message and any("has no copy" in note for note in notes)

    def _is_in_braces(self, path: str, offset: int) -> bool:
        """Whether the innermost bracket around a place is a brace."""
        depth = 0
        for character in reversed(self.files[path].original[max(0, offset - 2000) : offset]):
            depth += (character in ")]}") - (character in "([{")
            if depth < 0:
                return character == "{"
        return False

    def sorted(self) -> list[Diagnostic]:
        """The diagnostics by file and place."""
        found = sorted(self.diagnostics.items(), key=lambda item: (item[0][0] != _MAIN, item[0][0], item[1][0]))
        return [diagnostic for _, (_, diagnostic) in found]


def _adapt_files(text: str, include: Sequence[str], files: dict[str, Adapted], report: Report) -> bool:
    """Adapt the text and the files that it includes, into `files`; clang finds them by the paths that are the keys.

    False where one of them is too deep for clang or uses what its version has not, which then is in the report.
    """

    sources: dict[str, str] = {}

    def put(path: str, source: str) -> bool:
        deep = too_deep(source)
        if deep:
            files[path] = Adapted(source)
            report.add("error", path, deep.offset, deep.message)
        sources[path] = source
        return deep is None

    if not put(_MAIN, text.encode("utf-8", "replace").decode("latin-1")):
        return False
    waiting = [(include, found) for found in includes_of(sources[_MAIN])]
    while waiting and len(sources) < 500:
        folders, relative = waiting.pop()
        for folder in folders:
            path = os.path.join(folder, relative)
            if os.path.isfile(path) and path not in sources:
                with open(path, encoding="latin-1") as file:
                    source = file.read()
                if not put(path, source):
                    return False
                nested = [os.path.dirname(path), *include]
                waiting += [(nested, found) for found in includes_of(source)]
                break
    files.update(adapt_files(sources, report.metal))
    later = [(path, adapted) for path, adapted in files.items() if adapted.is_later]
    for path, adapted in later:
        for finding in adapted.findings:
            report.add(finding.severity, path, finding.offset, finding.message)
    return not later


def _decoded(text: str) -> str:
    return text.encode("latin-1").decode("utf-8", "replace")


def _encoded(sources: Sequence[tuple[str, str]]) -> list[tuple[str, Any]]:
    """Sources for libclang's bindings, which would encode a text of theirs as UTF-8 once more."""
    return [(path, _Bytes(text.encode("latin-1"))) for path, text in sources]


class _Bytes:
    """A file as the bindings read it: through `read`."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def read(self) -> bytes:
        return self._content


# ------------------------------------------------------------------------------------------------------ libclang

_lock = locks.lock()
#: Precompiled libraries of other versions go after this.
_OLD_SECONDS = 30 * 24 * 3600


@lru_cache(maxsize=1)
def _libclang() -> Any:
    """The module `clang.cindex`, with a library that loads."""
    try:
        from clang import cindex
    except ImportError as error:
        raise SmeltError(f"checking Metal text needs libclang: pip install {LIBCLANG}") from error
    try:
        cindex.Index.create()
    except Exception as error:  # no shared library, or one of another version
        raise SmeltError(f"libclang does not load ({error}); pip install {LIBCLANG}") from error
    return cindex


def _precompiled(metal: tuple[int, int]) -> str:
    """The path of the precompiled library of a version of Metal, made when it is missing."""
    with _lock:
        path = _precompiled_path(settings.cache_dir, metal)
        if os.path.exists(path):
            return path
        clang = _libclang()
        arguments = [*_arguments(metal), "-I" + HEADERS]
        source = [("smelt_metal.h", "#include <metal_stdlib>\n")]
        options = _INCOMPLETE | _FOR_SERIALIZATION
        unit = clang.Index.create().parse("smelt_metal.h", args=arguments, unsaved_files=source, options=options)
        _check_declarations(unit)
        temporary = f"{path}.{os.getpid()}.{threading.get_ident()}"
        unit.save(temporary)
        os.replace(temporary, path)
        _discard_old(os.path.dirname(path))
        return path


def _check_declarations(unit: Any) -> None:
    broken = [d for d in unit.diagnostics if d.severity >= 3]
    if broken:
        raise SmeltError(f"the declarations of Metal's library do not compile: {broken[0]}; pip install {LIBCLANG}")


def _discard_old(folder: str) -> None:
    """Delete precompiled libraries of other versions that nobody has used for long."""
    for name in os.listdir(folder):
        other = os.path.join(folder, name)
        if name.startswith("metal-") and name.endswith(".pch"):
            with contextlib.suppress(OSError):
                if time.time() - os.stat(other).st_atime > _OLD_SECONDS:
                    os.unlink(other)


@lru_cache(maxsize=8)
def _precompiled_path(folder: str, metal: tuple[int, int]) -> str:
    clang = _libclang()
    digest = hashlib.sha256(repr((_arguments(metal), HEADERS, clang.__file__)).encode())
    for place, _, names in sorted(os.walk(HEADERS)):
        for name in sorted(names):
            path = os.path.join(place, name)
            # clang refuses a precompiled header whose sources have changed their time.
            digest.update(f"{name} {os.stat(path).st_mtime_ns}".encode())
            with open(path, "rb") as file:
                digest.update(file.read())
    return os.path.join(_cache_folder(folder), f"metal-{digest.hexdigest()[:24]}.pch")


def _cache_folder(wanted: str) -> str:
    """`SMELT_CACHE_DIR`, else the user's cache; a temporary folder where that cannot be written."""
    home = os.path.expanduser("~")
    if sys.platform == "darwin":
        base = os.path.join(home, "Library", "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    folder = wanted or os.path.join(base, "smelt")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass
    return tempfile.mkdtemp(prefix="smelt-")
