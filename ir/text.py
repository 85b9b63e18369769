"""Modules from and to text, safely.

MLIR's parser recurses: absurdly nested text can exhaust the stack of the process. `parse` checks
size and nesting first, so bad input is an error and never a crash.
"""

from __future__ import annotations

import re
from typing import Any

from . import former, mlir, plugins
from .dialect import complete, context
from .errors import IRError
from .op import registry
from .scopes import position

MAX_BYTES = 64 * 1024 * 1024
MAX_NESTING = 200
MAX_DIGITS = 7  #: MLIR's parser takes memory for all results up to the one that ``%x#9999999`` names

_SMELT_OP = re.compile(r'"smelt\.(\w+)"')
#: What stands before a dot may be a dialect.
_PREFIX = re.compile(r"\b[A-Za-z_]\w*(?=\.)")  # from the start of a word: a long one is read once
#: Characters of a message of MLIR's, which repeats the words that it is about.
_MOST_SHOWN = 4000

_OPEN, _CLOSE = "([{<", ")]}>"


#: What stands before the value of an attribute in quotes, and behind a string that is the name of an op.
_VALUE_OF, _OPS = re.compile(r'\b(\w*)\s*=\s*"\Z'), re.compile(r'"\s*\(')
_ESCAPED = re.compile(rb"\\(\\|[0-9A-Fa-f]{2})")


def _byte(escaped: re.Match[bytes]) -> bytes:
    return b"\\" if escaped[1] == b"\\" else bytes.fromhex(escaped[1].decode())


def _is_text(quoted: str) -> bool:
    """Whether what stands in quotes is UTF-8: the bindings hand out nothing else, and may end the process."""
    try:
        _ESCAPED.sub(_byte, quoted.encode()).decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_value(source: str, begin: int, end: int) -> bool:
    """Whether a string that stands between two places is the value of an attribute, and no name."""
    found = _VALUE_OF.search(source, max(begin - 30, 0), begin)
    return found is not None and found[1] != "sym_name" and not _OPS.match(source, end)


def check_text(source: str, bytes_allowed: bool = False) -> None:
    """Raise IRError for text that is too large or nested too deeply to be given to the parser.

    Args:
        bytes_allowed: whether values of attributes may be strings of any bytes; all other strings are UTF-8.
    """
    if len(source) > MAX_BYTES:
        raise IRError(f"the text has {len(source)} characters; the limit is {MAX_BYTES}")
    try:
        source.encode("utf-8")
    except UnicodeEncodeError as error:
        line = source.count("\n", 0, error.start) + 1
        raise IRError(f"line {line}: this is not MLIR text (half of a surrogate pair)") from None
    if source.startswith("ML\xefR") or "\0" in source:
        raise IRError("this is not MLIR text (bytecode is not read)")
    depth, line, i, n = 0, 1, 0, len(source)
    while i < n:
        c = source[i]
        if c == "\n":
            line += 1
        elif c == '"':
            begin = i = i + 1
            while i < n and source[i] not in '"\n':
                i += 2 if source[i] == "\\" else 1
            quoted = source[begin:i]
            if "\\" in quoted and not _is_text(quoted) and not (bytes_allowed and _is_value(source, begin, i)):
                raise IRError(f"line {line}: a string is no text: its bytes are no UTF-8")
        elif c == "/" and source.startswith("//", i):
            end = source.find("\n", i)
            i = n if end < 0 else end
            continue
        elif c == "-" and source.startswith("->", i):
            i += 2
            continue
        elif c == "#" and source[i + 1 : i + 1 + MAX_DIGITS].isdigit():
            raise IRError(f"line {line}: the number of a result has at most {MAX_DIGITS - 1} digits")
        elif c in _OPEN:
            depth += 1
            if depth > MAX_NESTING:
                raise IRError(f"line {line}: brackets nest more than {MAX_NESTING} deep")
        elif c in _CLOSE:
            depth = max(0, depth - 1)
        i += 1
    # Affine expressions and signs recurse in the parser without brackets.
    for number, text in enumerate(source.split("\n"), 1):
        if "-" * MAX_NESTING in text.replace(" ", "") and not text.lstrip().startswith("//"):
            raise IRError(f"line {number}: more than {MAX_NESTING} signs in a row")
    _check_regions(source)


_STRINGS = re.compile(r'"(?:\\.|[^"\\])*"')
_RESULTS = re.compile(r"\s*(%[\w$.-]+(?::\d+)?(?:\s*,\s*%[\w$.-]+(?::\d+)?)*)\s*=(?!=)")
_VALUE = re.compile(r"(?:([(,])\s*)?(%[\w$.-]+)(?:[:#]\d+)?(\s*=(?!=)|\s*:)?")
_BRACES = re.compile(r"([{}])")
_OF_FUNCTION = re.compile(r"\bfunc\b|^\s*\"\"\(\)")


class _Regions:
    """Values as they are read and defined in the regions of a text, from its first line to its last."""

    def __init__(self) -> None:
        self.defined: list[set[str]] = [set()]
        self.missing: list[set[str]] = [set()]  #: read so far, in a region or in those inside it, and not defined
        self.functions = [True]

    def line(self, number: int, line: str) -> None:
        if '"' in line:
            line = _STRINGS.sub('""', line)
        line = line.split("//", 1)[0]
        results = _RESULTS.match(line) if "=" in line else None
        new = [name.split(":")[0].strip() for name in results[1].split(",")] if results else []
        rest = line[results.end() :] if results else line
        for part in _BRACES.split(rest) if "{" in rest or "}" in rest else (rest,):
            if part == "{":
                self.define(number, new)
                new = []
                self.defined.append(set())
                self.missing.append(set())
                self.functions.append(_OF_FUNCTION.search(line) is not None)
            elif part == "}" and len(self.defined) > 1:
                self.defined.pop()
                left = self.missing.pop()
                if not self.functions.pop():
                    self.missing[-1] |= left
            elif "%" in part:
                for before, name, after in _VALUE.findall(part):
                    if after.endswith("="):
                        self.define(number, [name])
                    elif after and before:  # an argument of a block, or an operand whose type follows
                        self.defined[-1].add(name)
                    elif not any(name in scope for scope in self.defined):
                        self.missing[-1].add(name)
        self.define(number, new)

    def define(self, number: int, names: list[str]) -> None:
        for name in names:
            if any(name in scope for scope in self.missing[:-1]):
                raise IRError(f"line {number}: {name} is read before, and outside of, the region that defines it")
            self.defined[-1].add(name)


def _check_regions(source: str) -> None:
    """Raise IRError for a value that is read before, and outside of, the region that defines it.

    No module can have one. But where an op does not parse after it, MLIR's parser frees the region, and writes to the
    value later, when it frees what reads it.
    """
    regions = _Regions()
    for number, line in enumerate(source.split("\n"), 1):
        regions.line(number, line)


#: What to do about an op that nobody knows.
_OTHER = (
    "note: smelt.{} is an op of another version of smelt, or of a package that is not installed: install that, or "
    "write the text with this version (smelt.export_function of the same function)"
)


def parse(source: str, name: str = "<text>", own: bool = False) -> Any:
    """A verified module from MLIR text. Ops that nobody has defined are looked for among those that were removed, and
    in other packages.

    Args:
        own: whether smelt itself has just written the text, which then is not checked before MLIR parses it.

    Raises:
        IRError: the place of the mistake, and which packages with ops do not load if one is missing.
    """
    if not own:
        check_text(source)
    unknown = {*_SMELT_OP.findall(source)}.difference(registry)
    if unknown:
        source = former.updated(source, unknown)
        unknown = {*_SMELT_OP.findall(source)}.difference(registry)
    problems = plugins.load_for(unknown) if unknown else []
    problems += [_OTHER.format(name) for name in sorted(unknown.difference(registry))]
    with mlir.lock:
        ir = mlir.ir
        complete()
        mlir.load_dialects({*_PREFIX.findall(source)})
        try:
            with context() as ctx, mlir.file_location(name, 1, 1, ctx):
                return ir.Module.parse(source)
        except ir.MLIRError as error:
            raise IRError("\n".join((diagnostics(error, name), *problems))) from None


#: What MLIR says of ops of unknown dialects: no tool here has that flag.
_MLIR_FLAG = re.compile(r"\. If this is intended, please [^\n]*")


def diagnostics(error: Any, name: str) -> str:
    """The messages of an MLIRError, one a line, as file:line:column: text."""
    lines = []
    for d in getattr(error, "error_diagnostics", None) or []:
        place = str(d.location).removeprefix("loc(").removesuffix(")").replace('"', "")
        place = place.replace("-:", f"{name}:", 1) if place.startswith("-:") else place
        lines.append(f"{place}: error: {_shown(_MLIR_FLAG.sub('', d.message))}")
        for note in getattr(d, "notes", []):
            where = str(note.location).removeprefix("loc(").removesuffix(")").replace('"', "")
            lines.append(f"{where.replace('-:', f'{name}:', 1)}: note: {_shown(note.message)}")
    return "\n".join(lines) or _shown(str(error))


def _shown(message: str) -> str:
    half = _MOST_SHOWN // 2
    return message if len(message) <= _MOST_SHOWN else f"{message[:half]} … {message[-half:]}"


class IRText(str):
    """IR as a string that an interactive session shows as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self).rstrip("\n")


def to_text(module: Any, locations: bool = False, verified: bool = False, generic: bool = False) -> IRText:
    """A module as text in MLIR's generic form for smelt ops: the interchange form.

    Args:
        locations: whether each op says where it comes from.
        verified: whether the module is known to be valid. MLIR verifies what it prints, which takes much longer.
        generic: whether ops of other dialects are in that form, too.
    """
    return printed(module, enable_debug_info=locations, assume_verified=verified, print_generic_op_form=generic)


def printed(module: Any, **form: Any) -> IRText:
    """A module as the bindings' printer writes it; `form` is its keywords."""
    with mlir.lock:
        found: str = module.operation.get_asm(**form)
        return IRText(found.rstrip() + "\n")


def verify(module: Any) -> None:
    """Raise IRError when a module is not valid."""
    with mlir.lock:
        try:
            module.operation.verify()
        except mlir.ir.MLIRError as error:
            raise IRError(diagnostics(error, "<module>")) from None
        except RuntimeError:
            raise IRError("the module has been erased") from None


def line_of(location: Any) -> str:
    """The user's line in an op's location, as ``model.py:17``; empty where it has none."""
    found = position(location)
    return f"{found[0]}:{found[1]}" if found else ""
