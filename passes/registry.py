"""What a pass is, and where passes are found.

A pass is a frozen dataclass whose fields are its options::

    @register_pass("my-pass")
    @dataclass(frozen=True)
    class MyPass(Pass):
        \"\"\"One sentence; before and after.\"\"\"

        limit: int = 4

        def run(self, module, statistics): ...

Other packages add passes by an entry point in the group ``smelt.passes`` that is called like the pass and names
such a class, or a module that defines it. It is loaded when its pass is asked for, so one that does not load breaks
no pipeline without it.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
import sys
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, get_args

from smelt.ir import locks
from smelt.ir.entry_points import load, offered
from smelt.ir.errors import ArgumentTypeError, PipelineError, SmeltError, at_user_line, did_you_mean, shown

from .option_text import Unreadable, described, from_text, hints, spelled

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "smelt.passes"


@dataclasses.dataclass(frozen=True)
class Pass:
    """Base class of passes on the smelt dialect. Options are the dataclass's fields."""

    name: ClassVar[str] = ""
    #: Whether the pass changes nothing: what it counts is then no change, and what `run` returns is its report.
    only_looks: ClassVar[bool] = False
    #: Analyses (`smelt.passes.analysis`) that stay right when the pass has changed something.
    preserves: ClassVar[tuple[str, ...]] = ()

    def run(self, module: Any, statistics: Counter) -> str | None:
        """Change `module` in place. Count what was done in `statistics`."""
        raise NotImplementedError

    @property
    def foreign(self) -> bool:
        """Whether code of another package takes part: then the module is verified after each run."""
        return not is_own(type(self))

    def __str__(self) -> str:
        """The pass as it stands in a textual pipeline, with the options that differ from defaults."""
        values = {f.name: value for f in dataclasses.fields(self) if (value := getattr(self, f.name)) != f.default}
        return spelled(self.name, values)


_passes: dict[str, type[Pass]] = {}
_loaded = False
_ROOM = __name__.rpartition(".")[0]


def register_pass(name: str) -> Callable[[type[Pass]], type[Pass]]:
    """Class decorator: make a pass known under its name on the command line.

    Raises:
        ArgumentTypeError: what is decorated is no subclass of `Pass`. PipelineError: a name that a pipeline cannot
        spell, or that another pass has; a class with options that is no dataclass.
    """
    require_name("a pass", name)

    def register(cls: type[Pass]) -> type[Pass]:
        if not isinstance(cls, type) or not issubclass(cls, Pass):
            message = f"register_pass({name!r}) decorates a subclass of Pass, not {shown(cls)}"
            raise ArgumentTypeError(at_user_line(message))
        if not is_own(cls):
            registry()  # a name that smelt itself has is taken
        known = _passes.get(name)
        if known is not None and definition_of(known) != definition_of(cls):
            message = f"two passes are called {name!r}: {known.__module__} and {cls.__module__}"
            raise PipelineError(at_user_line(message))
        _require_options(cls)
        cls.name = name
        _passes[name] = cls
        return cls

    return register


def require_name(what: str, name: object) -> None:
    """Raise PipelineError for a name that a pipeline cannot spell."""
    if not isinstance(name, str) or not name or not all(c.isalnum() or c in "-_." for c in name):
        message = f"{what} is called by letters, digits, '-', '_' and '.', not {shown(name)}"
        raise PipelineError(at_user_line(message))


def definition_of(registered: Any) -> str:
    """Where a class, a function or a callable object is defined: the same for one whose module is imported again."""
    defined = registered if hasattr(registered, "__qualname__") else type(registered)
    return f"{defined.__module__}.{defined.__qualname__}"


def _require_options(cls: type[Pass]) -> None:
    """Raise PipelineError for annotated names that would be no options: their class was made no dataclass."""
    options = {f.name for f in dataclasses.fields(cls)}
    for base in cls.__mro__[: cls.__mro__.index(Pass)]:
        try:
            annotations = inspect.get_annotations(base)
        except NameError:  # Python 3.14 evaluates them when they are asked for; a dataclass has read their names
            continue
        for field, kind in annotations.items():
            if field not in options and "ClassVar" not in str(kind):
                message = f"{base.__name__}.{field} is no option: write @dataclass(frozen=True) right above the class"
                raise PipelineError(at_user_line(message))


def is_own(cls: type) -> bool:
    """Whether a pass is one of smelt's own."""
    return cls.__module__.startswith(_ROOM + ".")


def registry() -> dict[str, type[Pass]]:
    """The passes by name: those of this room, and those of other packages that have been loaded."""
    global _loaded
    if not _loaded:
        locks.whole(import_room)
        _loaded = True
    return _passes


def import_room() -> None:
    """Import all modules of this room, whose passes and patterns make themselves known."""
    for module in pkgutil.walk_packages(sys.modules[_ROOM].__path__, f"{_ROOM}."):
        importlib.import_module(module.name)


def find(name: str) -> type[Pass] | None:
    """The pass called `name`, with or without ``smelt-`` in front as ``mlir-opt`` users write it, or None.

    Raises:
        PipelineError: an installed package has such a pass, which does not load.
    """
    passes = registry()
    for wanted in (name, name.removeprefix("smelt-")):
        if wanted in passes:
            return passes[wanted]
    for wanted in dict.fromkeys((name, name.removeprefix("smelt-"))):
        for entry in offered(GROUP):
            if entry.name == wanted:
                return _load(entry)
    return None


def _load(entry: EntryPoint) -> type[Pass]:
    load(entry, "the pass", PipelineError)
    if entry.name not in _passes:
        raise PipelineError(f"{entry.value}, the entry point of the pass {entry.name!r}, defines no pass of that name")
    return _passes[entry.name]


def load_all() -> list[str]:
    """Load the passes of all installed packages; what is wrong with those that do not load."""
    registry()
    problems = []
    for entry in offered(GROUP):
        try:
            _load(entry)
        except PipelineError as error:
            problems.append(str(error))
    return problems


def require_pass(name: str) -> None:
    """Raise PipelineError where no package has a pass of this name."""
    if find(name) is None:
        problems = load_all()
        if find(name) is None:
            raise _unknown(name, problems)


def make(name: str, options: dict[str, str]) -> Pass:
    """An instance of the pass called `name` with options given as text.

    Raises:
        PipelineError: there is no such pass, or it has no such option, or an option cannot be what the text says.
    """
    cls = find(name)
    if cls is None:
        problems = load_all()  # an entry point may define more passes than the one that it is called by
        cls = find(name)
        if cls is None:
            raise _unknown(name, problems)
    fields = {f.name.replace("_", "-"): f for f in dataclasses.fields(cls)}
    kinds = hints(cls) if options else {}
    values: dict[str, Any] = {}
    for key, text in options.items():
        if key not in fields:
            known = ", ".join(fields) or "none"
            raise PipelineError(f"pass {name} has no option {key!r}; its options: {known}")
        values[fields[key].name] = _from_text(name, key, text, fields[key], kinds.get(fields[key].name, Any))
    try:
        return cls(**values)
    except SmeltError:
        raise
    except Exception as error:
        raise PipelineError(f"pass {name} cannot be made: {type(error).__name__}: {error}") from error


def _unknown(name: str, problems: list[str]) -> PipelineError:
    """The error about a name that no pass has; `problems`: what does not load, and may have had it."""
    hint = did_you_mean(name, registry())
    lists = "".join(f"; {problem}" for problem in problems)
    return PipelineError(f"unknown pass {shown(name)}{hint} (`smelt-opt --list-passes` lists them){lists}")


def _from_text(pass_name: str, key: str, text: str, field: dataclasses.Field[Any], kind: Any) -> Any:
    if kind is Any and field.default not in (dataclasses.MISSING, None):
        kind = type(field.default)
    if not text and bool in (kind, *get_args(kind)):
        return True  # as MLIR takes an option that is given alone
    if not text:
        raise PipelineError(f"option {key!r} of pass {pass_name} needs a value: {key}=...")
    try:
        return from_text(text, kind)
    except Unreadable:
        message = f"option {key} of pass {pass_name} takes {described(kind)}, not {shown(text)}"
        raise PipelineError(message) from None
    except PipelineError as error:
        raise PipelineError(f"option {key} of pass {pass_name}: {error}") from None
