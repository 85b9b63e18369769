"""Functions from files, which `export` wrote: called as the functions that they were made of."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Sequence
from contextlib import nullcontext
from typing import Any

from smelt.ir import locks, mlir, text
from smelt.ir.aval import Aval
from smelt.ir.errors import (
    ArgumentTypeError,
    FileFormatError,
    IRError,
    SmeltError,
    TreeError,
    at_user_line,
    shown,
)
from smelt.ir.flags import flags_checked
from smelt.ir.paths import path_of
from smelt.ir.values import OpView
from smelt.ir.written_sizes import merged, run_written
from smelt.runtime import Buffer

from ..formats import functions as files
from ..lazy.arrays import array
from ..lazy.build import build_module
from ..lazy.core import user_place
from ..lazy.graph import GraphFunction, Ref, leaf
from ..lazy.read_module import ModuleReader
from .export import flattened, rebuilt, unpacked
from .recording import apply_function
from .shapeless import bound
from .traced import OfThisProcess

__all__ = ["import_function"]

#: Programs for other sizes that a trace keeps.
_MOST_SIZES = 64


class ImportedFunction(OfThisProcess):
    """What `import_function` returns."""

    def __init__(self, name: str, traces: Sequence[_Imported]):
        self.__name__ = name
        self._traces = traces

    def __repr__(self) -> str:
        return f"<smelt.import_function of {self.__name__}, {len(self._traces)} traces>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = unpacked(args, kwargs)
        for positional in _alternatives(args, kwargs):
            given: list[array] = []
            forms = [flattened(self.__name__, positional, given), flattened(self.__name__, kwargs, given)]
            avals = [x.aval for x in given]
            key = _structure(forms)
            for trace in self._traces:
                found = trace.function(avals) if trace.key == key else None
                if found is not None:
                    refs = [*(x._ref for x in given), *trace.captured]
                    outs = iter(apply_function(found, (), refs, found.results))
                    return _as_returned(trace.results, rebuilt(trace.results, outs))
        forms = [flattened(self.__name__, part, []) for part in (args, kwargs)]
        known = "".join(f"\n  {i}. {_described(t.arguments)}" for i, t in enumerate(self._traces, 1))
        message = f"{self.__name__} has no trace for {_described(forms)}; it has{known or ' none'}"
        raise TreeError(at_user_line(f"smelt.import_function: {message}"))


def _alternatives(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Arguments as they are given, and as others take them: MLX takes arrays and one list of them for the same."""
    if kwargs or not args:
        return [args]
    if len(args) == 1 and type(args[0]) is list:
        return [args, tuple(args[0])]
    return [args, (list(args),)] if all(isinstance(x, array) for x in args) else [args]


def _as_returned(form: Any, result: Any) -> Any:
    """As in MLX an array alone, and a list of arrays, become a tuple."""
    ((kind, content),) = form.items()
    if kind == "array":
        return (result,)
    return tuple(result) if kind == "list" and all("array" in part for part in content) else result


def _structure(forms: Any) -> str:
    """Forms of arguments without the sizes of arrays, as a key."""
    import json  # the import of smelt loads only what most programs use

    def without(form: Any) -> Any:
        ((kind, content),) = form.items()
        if kind == "array":
            return {kind: [content[0], len(content) - 1]}
        if kind == "dict":
            return {kind: {k: without(x) for k, x in content.items()}}  # a function may see their order
        return form if kind == "value" else {kind: [without(x) for x in content]}

    return json.dumps([without(form) for form in forms])


def _described(forms: Any) -> str:
    def text_of(form: Any) -> str:
        ((kind, content),) = form.items()
        if kind == "array":
            return f"{content[0]}[{','.join(map(str, content[1:]))}]"
        if kind == "value":
            return repr(content)
        if kind == "dict":
            return "{" + ", ".join(f"{k!r}: {text_of(v)}" for k, v in content.items()) + "}"
        inner = ", ".join(map(text_of, content))
        return f"[{inner}]" if kind == "list" else f"({inner})"

    positional = [text_of(x) for x in forms[0]["tuple"]]
    return "(" + ", ".join([*positional, *(f"{k}={text_of(v)}" for k, v in forms[1]["dict"].items())]) + ")"


class _Imported:
    """A trace of a file, checked.

    Attributes:
        key: the structure of its arguments. captured: the arrays that follow them.
    """

    def __init__(self, trace: files.Trace, reader: ModuleReader, arrays: dict[str, Ref]):
        self.arguments, self.results, self._sizes = trace.arguments, trace.results, trace.sizes
        self.key = _structure(self.arguments)
        self.captured = [arrays[name] for name in trace.captured]
        self._avals = [a for form in self.arguments for a in files.leaves(form)]
        self._function = f = reader.function(trace.function)
        known = [n.avals[i] for n, i in self.captured]
        if f.arguments != [*self._avals, *known] or f.results != files.leaves(self.results):
            raise FileFormatError(f"@{trace.function} has other arguments or results than its header says")
        self._order = [] if self._sizes is None else _functions(self._sizes, reader)
        self._others: OrderedDict[tuple[int, ...], GraphFunction | None] = OrderedDict()
        self._lock = locks.lock()

    def function(self, avals: Sequence[Aval]) -> GraphFunction | None:
        """The function for arguments of these types; None where there is none."""
        if self._sizes is None:
            return self._function if list(avals) == self._avals else None
        sizes = files.sizes_of(avals)
        if sizes == files.sizes_of(self._avals):
            return self._function
        with self._lock:
            if sizes not in self._others:
                self._others[sizes] = self._bound(sizes)
                if len(self._others) > _MOST_SIZES:
                    self._others.popitem(last=False)
            return self._others[sizes]

    def _bound(self, sizes: Sequence[int]) -> GraphFunction | None:
        values = run_written(self._sizes, sizes)
        if values is None:
            return None
        forms = self._sizes["outputs"]
        if not isinstance(forms, list) or len(forms) != len(self._order):
            raise FileFormatError("sizes are not those of its functions")
        made: dict[int, GraphFunction] = {}
        for f, form in zip(self._order, forms):
            steps = [[step.attrs, [a.shape for a in step.avals]] for step in f.body]
            whole = [[a.shape for a in f.arguments], steps, *([f.rules] if f.rules else [])]
            shapes, filled, *rules = merged(whole, form, values)
            made[id(f)] = bound(f, shapes, filled, made, False, *rules)
        found = made[id(self._function)]
        with mlir.lock:  # what the file says of sizes may be wrong
            text.verify(build_module(found.parameters, found.body, found.outputs))
        return found


def _functions(sizes: Any, reader: ModuleReader) -> list[GraphFunction]:
    if not isinstance(sizes, dict) or not {"functions", "cases", "outputs"} <= set(sizes):
        raise FileFormatError(f"sizes are {shown(sizes)}")
    names = sizes["functions"]
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise FileFormatError(f"sizes are those of {shown(names)}")
    return [reader.function(name) for name in names]


@flags_checked
def import_function(file: Any, return_metadata: bool = False, *, custom_calls: Collection[str] = ()) -> Any:
    """A function that `export_function` or `exporter` has written, perhaps on another machine.

    It takes what the exported one took, or as in MLX a tuple or list of arrays, a dict of them by name, or both; it can
    be differentiated, mapped and compiled like any other. Nothing in the file is executed but ops of smelt.

    Args:
        file: a path, or an open binary file that can seek.
        return_metadata: return ``(function, metadata)``, a text, which is empty where there is none.
        custom_calls: names of targets of `custom_call` that the file may call. They are this program's own code, such
            as a compiler of kernels, on values and parameters that the file chooses.

    Returns:
        A function. It returns a tuple where the exported one returned an array, a list or a tuple, else its tree. It
        raises TreeError for arguments that there is no trace for.

    Raises:
        FileFormatError: the file is damaged, or another. OSError: it cannot be read. ArgumentTypeError: `custom_calls`
        that are no names.

    >>> import smelt, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     smelt.export_function(f"{folder}/f.smelt", lambda x: smelt.sin(x).sum(), smelt.zeros(3))
    ...     f = smelt.import_function(f"{folder}/f.smelt")
    >>> smelt.grad(lambda x: f(x)[0])(smelt.zeros(3))
    array([1, 1, 1], dtype=float32)
    """
    has_read = hasattr(file, "read")
    name = str(getattr(file, "name", "the open file")) if has_read else path_of("import_function", "file", file)
    if not isinstance(custom_calls, (list, tuple, set, frozenset)) or not all(type(x) is str for x in custom_calls):
        raise ArgumentTypeError(at_user_line("smelt.import_function: custom_calls must be names of targets"))
    where = user_place(1)
    try:
        with nullcontext(file) if has_read else open(name, "rb") as source:
            found = files.read_exported(source)
        traces = _checked(found, name, frozenset(custom_calls), where)
    except (SmeltError, MemoryError) as error:
        raise FileFormatError(at_user_line(f"smelt.import_function: {name} cannot be read: {error}")) from None
    except ValueError as error:  # of the file itself: it is closed, or its name cannot be one
        raise FileFormatError(at_user_line(f"smelt.import_function: {name}: {error}")) from None
    function = ImportedFunction(found.name, traces)
    return (function, found.metadata or "") if return_metadata else function


def _checked(found: files.Exported, name: str, targets: frozenset[str], where: Any) -> list[_Imported]:
    def check(view: OpView) -> None:
        target = view.attrs.get("target") if view.op.kind == "opaque" else None
        if target is not None and target not in targets:
            raise IRError(f"it calls {shown(target)}; custom_calls=[{target!r}] lets it")

    arrays = {key: (leaf(Buffer.of(host, Aval(host.shape, dtype))), 0) for key, (host, dtype) in found.arrays.items()}
    module = text.parse(found.text, name)
    with mlir.lock:
        reader = ModuleReader(module, check, where)
        return [_Imported(trace, reader, arrays) for trace in found.traces]
