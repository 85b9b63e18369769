"""All settings in one place, read from the environment once and changed through context managers.

===================  ========  =======================================================================
Variable             Default   Meaning
===================  ========  =======================================================================
SMELT_DEVICE         auto      default device: ``cpu``, ``reference`` (the NumPy interpreter), ``metal:sim``
                               (Metal's kernels on the CPU), ``metal``, or one that another package
                               brings; auto: metal where there is one, else cpu
SMELT_DEBUG          0         compile: log compiles, and why they were needed; 1: verify after each pass; 2: both;
                               3: also pass timings; 4: IR after each pass
SMELT_CHECK          0         1: kernels of the cpu backend check each access against its array, and an index out
                               of range is an error where it would be clamped or its update dropped
SMELT_DUMP_IR        (none)    folder that receives the IR after each pass of each compile; 0 means off
SMELT_NUM_THREADS    all       threads of the cpu backend; 0: all
SMELT_CACHE_SIZE     512       executables kept; the least recently used goes first
SMELT_CACHE_BYTES    1 GiB     memory that the programs of one cache keep at most, the arrays that they captured
                               included; the one used last stays in any case
SMELT_POOL_BYTES     2 GiB     memory kept for reuse by the buffer pool; 0 means off
SMELT_GPU_POOL_BYTES  4 EiB    the same on a GPU with a memory of its own, which keeps what it once had
SMELT_DISABLE_COMPILE  0       1: ``smelt.compile`` returns functions unchanged
SMELT_SMALL_WORK     1048576   a lazy graph with less work than this many element operations runs op by
                               op, without a compile; 0 means off
SMELT_TIER           auto      how graphs run where there is a choice: ``ops``, op by op; ``strided``, by kernels for
                               all sizes where there can be some; ``program``, compiled unless they are small; auto:
                               op by op until kernels or a program pay
SMELT_CXX            (none)    C++17 compiler of the Metal simulator; else c++, g++ or clang++, else the
                               ``ziglang`` package
SMELT_RACE           (none)    race mode of ``metal:sim``: run threads ``forward``, ``reverse`` or ``shuffled``, with
                               poisoned threadgroup memory and guard pages around buffers; 0 means off
SMELT_CORE           auto      what records operations: ``c``, the extension, ``python``, which is slower and the same;
                               auto: the extension where it was built. Read when smelt is imported
SMELT_PIPELINE       (none)    passes of programs, in place of the device's own, or changes of those:
                               ``before:fuse=my-pass;without:cse``; 0 means off
SMELT_CACHE_DIR      (none)    folder that keeps compiled kernels; else one in the user's cache folder
SMELT_CACHE          1         0: compiled programs are neither kept on disk nor taken from there
SMELT_PROFILE        (none)    file for a trace, in Chrome's format, of what runs and compiles in this process, written
                               at its end; 0 means off. Read when smelt is imported
SMELT_LIBRARIES      1         0: programs of a GPU are kernels of smelt's own alone, also where libraries of its maker
                               are installed
SMELT_TF32           0         1: where a GPU is faster then, operands of float32 products and convolutions are rounded
                               to 11 significant bits (TF32)
SMELT_FLUSH_SUBNORMALS  0      1: machine code of the cpu backend takes subnormal operands for zero, and its subnormal
                               results are zeros: some processors take many times as long for them
SMELT_CACHE_DISK_BYTES  1 GiB  bytes of compiled programs on disk at most; the least recently used goes first
===================  ========  =======================================================================

Settings by which programs are compiled hold at once: programs that were compiled under other values wait in the cache
until those return. An empty variable is one that is not set. A value that a variable cannot have is a SettingError
that names the variable, raised where the setting is first used: importing smelt never fails for it.
"""

from __future__ import annotations

import operator
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .errors import SettingError, at_user_line, shown


class _Refused(Exception):
    """A value that a setting cannot have."""


@dataclass(frozen=True, eq=False, repr=False)
class Rule:
    """What a setting may be.

    Attributes:
        of_programs: whether programs are compiled by it: those compiled under another value are other programs.
    """

    of_programs: bool = field(default=False, kw_only=True)


@dataclass(frozen=True, eq=False, repr=False)
class Flag(Rule):
    """A setting that is on or off."""

    default: bool = False

    allowed = "0, 1, true, false, on, off, yes or no"

    def parse(self, text: str) -> bool:
        word = text.strip().lower()
        if word not in ("0", "1", "true", "false", "on", "off", "yes", "no"):
            raise _Refused
        return word in ("1", "true", "on", "yes")

    def check(self, value: Any) -> bool:
        if not isinstance(value, (bool, int)) or value not in (0, 1):
            raise _Refused
        return bool(value)


@dataclass(frozen=True, eq=False, repr=False)
class Number(Rule):
    """An integer within limits."""

    default: int
    least: int = 0
    most: int = 2**63 - 1

    @property
    def allowed(self) -> str:
        return f"an integer from {self.least} to {self.most if self.most < 2**63 - 1 else '2**63 - 1'}"

    def parse(self, text: str) -> int:
        try:
            return self.check(int(text))
        except ValueError:
            raise _Refused from None

    def check(self, value: Any) -> int:
        try:
            found = operator.index(value)
        except TypeError:
            raise _Refused from None
        if not self.least <= found <= self.most:
            raise _Refused
        return found


class _Compile(int):
    """The word ``compile`` as a level of ``SMELT_DEBUG``: 0, and compiles are logged."""

    def __repr__(self) -> str:
        return "'compile'"


#: What the word stands for.
COMPILE = _Compile()


@dataclass(frozen=True, eq=False, repr=False)
class Debug(Number):
    """A level, or the word ``compile``."""

    @property
    def allowed(self) -> str:
        return f"compile or {super().allowed}"

    def parse(self, text: str) -> int:
        return COMPILE if _is_compile(text) else super().parse(text)

    def check(self, value: Any) -> int:
        return COMPILE if value is COMPILE or _is_compile(value) else super().check(value)


def _is_compile(value: Any) -> bool:
    return isinstance(value, str) and value.strip().lower() == "compile"


@dataclass(frozen=True, eq=False, repr=False)
class Choice(Rule):
    """One of several words; 0 and off stand for the empty one, where that is a choice."""

    default: str
    words: tuple[str, ...]

    @property
    def allowed(self) -> str:
        listed = [w or "0 (off)" for w in self.words]
        return f"{', '.join(listed[:-1])} or {listed[-1]}"

    def parse(self, text: str) -> str:
        return self.check(text)

    def check(self, value: Any) -> str:
        word = value.strip().lower() if isinstance(value, str) else None
        if word in ("0", "off") and "" in self.words:
            word = ""
        if word not in self.words:
            raise _Refused
        return word


@dataclass(frozen=True, eq=False, repr=False)
class Name(Rule):
    """The name of something that is looked up when it is needed."""

    default: str

    allowed = "a name"

    def parse(self, text: str) -> str:
        return self.check(text)

    def check(self, value: Any) -> str:
        word = value.strip().lower() if isinstance(value, str) else ""
        if not word:
            raise _Refused
        return word


@dataclass(frozen=True, eq=False, repr=False)
class Text(Rule):
    """Any text, such as a path; 0 and off stand for the empty one, where nothing happens without a text."""

    default: str = ""
    optional: bool = False

    allowed = "a text"

    def parse(self, text: str) -> str:
        return self.check(text)

    def check(self, value: Any) -> str:
        if not isinstance(value, (str, os.PathLike)):
            raise _Refused
        try:
            text = os.fsdecode(value)
            if b"\0" in os.fsencode(text):
                raise _Refused
        except (UnicodeError, TypeError):
            raise _Refused from None
        return "" if self.optional and text.strip().lower() in ("0", "off") else text


@dataclass(frozen=True, eq=False, repr=False)
class PathName(Text):
    """A path, in which ``~`` in front stands for a user's folder, as in a shell."""

    allowed = "a path"

    def check(self, value: Any) -> str:
        return os.path.expanduser(super().check(value))


#: What each setting may be, in the order of the table above.
RULES: dict[str, Flag | Number | Choice | Name | Text] = {
    "device": Name("auto"),
    "debug": Debug(0, most=4),
    "check": Flag(of_programs=True),
    "dump_ir": PathName(optional=True),
    "num_threads": Number(0, most=1024),
    "cache_size": Number(512),
    "cache_bytes": Number(1 << 30),
    "pool_bytes": Number(2 << 30),
    "gpu_pool_bytes": Number(4 << 60),
    "disable_compile": Flag(),
    "small_work": Number(1 << 20),
    "tier": Choice("auto", ("auto", "ops", "strided", "program")),
    "cxx": Text(),
    "race": Choice("", ("forward", "reverse", "shuffled", "")),
    "core": Choice("auto", ("auto", "python", "c")),
    "pipeline": Text(optional=True, of_programs=True),
    "cache_dir": PathName(),
    "cache": Flag(True),
    "profile": PathName(optional=True),
    "libraries": Flag(True, of_programs=True),
    "tf32": Flag(of_programs=True),
    "flush_subnormals": Flag(),
    "cache_disk_bytes": Number(1 << 30),
}


def variable(name: str) -> str:
    """The environment variable of a setting.

    >>> variable("debug")
    'SMELT_DEBUG'
    """
    return f"SMELT_{name.upper()}"


#: The names of the settings by which programs are compiled.
OF_PROGRAMS = tuple(name for name, rule in RULES.items() if rule.of_programs)


@dataclass(init=False, repr=False, eq=False)
class Settings:
    """Typed settings; see the module docstring.

    Args:
        environment: variables that are read now.

    Attributes:
        of_programs: the values of the settings by which programs are compiled, in the order of `RULES`.

    >>> Settings({"SMELT_DISABLE_COMPILE": "Off", "SMELT_DEBUG": "2"}).debug
    2
    """

    device: str
    debug: int
    check: bool
    dump_ir: str
    num_threads: int
    cache_size: int
    cache_bytes: int
    pool_bytes: int
    gpu_pool_bytes: int
    disable_compile: bool
    small_work: int
    tier: str
    cxx: str
    race: str
    core: str
    pipeline: str
    cache_dir: str
    cache: bool
    profile: str
    libraries: bool
    tf32: bool
    flush_subnormals: bool
    cache_disk_bytes: int
    if TYPE_CHECKING:
        of_programs: tuple[Any, ...]

    def __init__(self, environment: Mapping[str, str]):
        for name, rule in RULES.items():
            value = environment.get(variable(name), "")
            try:
                self.__dict__[name] = rule.parse(value) if value.strip() else rule.default
            except _Refused:
                self.__dict__[f"wrong {name}"] = value  # `__getattr__` says so when it is asked for
        self._note()

    def _note(self) -> None:
        self.__dict__["of_programs"] = tuple(map(self.__dict__.get, OF_PROGRAMS))

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in RULES:
            raise SettingError(at_user_line(f"smelt has no setting {shown(name)}; it has {', '.join(RULES)}"))
        try:
            self.__dict__[name] = RULES[name].check(value)
        except _Refused:
            message = f"the setting {name} must be {RULES[name].allowed}, is {shown(value)}"
            raise SettingError(at_user_line(message)) from None
        self._note()

    if not TYPE_CHECKING:  # a type checker knows the names

        def __getattr__(self, name: str) -> Any:
            if name not in RULES:
                raise AttributeError(f"smelt has no setting {shown(name)}; it has {', '.join(RULES)}")
            value = self.__dict__[f"wrong {name}"]
            message = f"the environment variable {variable(name)} must be {RULES[name].allowed}, is {shown(value)}"
            raise SettingError(at_user_line(message))

    def __repr__(self) -> str:
        return f"Settings({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items() if name in RULES)})"


#: The settings in force.
settings = Settings(os.environ)
#: When they were read, in seconds since 1970: what has changed on disk since is not what this process runs.
READ_AT = time.time()


def logs_compiles(settings: Settings) -> bool:
    """Whether each compile is written to stderr.

    >>> logs_compiles(Settings({"SMELT_DEBUG": "compile"}))
    True
    """
    return settings.debug >= 2 or settings.debug is COMPILE


@contextmanager
def override(**changes: Any) -> Iterator[Settings]:
    """Change settings inside a with block. They are those of the process: other threads see the change.

    Raises:
        SettingError: there is no such setting, or it cannot have that value.

    >>> with override(debug=1) as s:
    ...     s.debug
    1
    """
    saved = dict(settings.__dict__)
    try:
        for name, value in changes.items():
            setattr(settings, name, value)
        yield settings
    finally:
        for name in changes:
            settings.__dict__.pop(name, None)
            if name in saved:
                settings.__dict__[name] = saved[name]
        settings._note()
