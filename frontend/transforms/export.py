"""Functions in files: what they compute for arguments of certain types, without the Python code that said so."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from types import TracebackType
from typing import Any

from smelt.ir import text
from smelt.ir.aval import Aval
from smelt.ir.errors import (
    ArgumentTypeError,
    AttributeValueError,
    DTypeError,
    IRError,
    SmeltError,
    TraceError,
    TreeError,
    at_user_line,
    shown,
)
from smelt.ir.flags import flag
from smelt.ir.paths import path_of
from smelt.ir.symbolic import Program
from smelt.ir.written_sizes import written_program
from smelt.runtime import Buffer

from ..formats import functions as files
from ..formats.safetensors import NAMES
from ..formats.writing import replacing
from ..lazy.arrays import array, placeholder, wrap
from ..lazy.build import build_functions
from ..lazy.evaluate import evaluate
from ..lazy.graph import ALIAS, NO_ATTRS, GraphFunction, Ref, callees, step_key
from ..lazy.shape_dtype import ShapeDtype
from .compiled_function import CompiledFunction
from .recording import check_function, name_of, recording
from .shapeless import bound

__all__ = ["FunctionExporter", "export_function", "exporter"]

_PLAIN = (bool, int, float, str, type(None))
#: Of a trace, for sizes that coincide.
_MOST_CASES = 64


def flattened(what: str, tree: Any, found: list[array], depth: int = 0) -> Any:
    """The form of a tree (`smelt.formats.functions`); its arrays are added to `found`.

    Raises:
        TreeError: something in it has no form.
    """
    if isinstance(tree, ShapeDtype):
        tree = placeholder(tree.aval)
    if isinstance(tree, array):
        found.append(tree)
        return files.array_form(tree.aval)
    if depth >= files.MOST_DEEP:
        raise TreeError(at_user_line(f"{what}: trees nest deeper than {files.MOST_DEEP}"))
    if type(tree) in (list, tuple):
        return {type(tree).__name__: [flattened(what, x, found, depth + 1) for x in tree]}
    if type(tree) is dict and all(type(k) is str for k in tree):
        return {"dict": {k: flattened(what, tree[k], found, depth + 1) for k in tree}}
    if type(tree) in _PLAIN:
        return {"value": tree}
    kinds = "arrays, numbers, texts, None, and lists, tuples and dicts (by texts) of them"
    raise TreeError(at_user_line(f"{what}: a file holds trees of {kinds}, got {shown(tree)}"))


def rebuilt(form: Any, found: Any) -> Any:
    """The tree of a form with the next arrays of an iterator."""
    ((kind, content),) = form.items()
    if kind == "array":
        return next(found)
    if kind == "dict":
        return {k: rebuilt(content[k], found) for k in content}
    if kind == "value":
        return content
    parts = [rebuilt(x, found) for x in content]
    return parts if kind == "list" else tuple(parts)


def unpacked(args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments as the function gets them: as in MLX, a tuple or list of arrays, or a dict of arrays by name, or both,
    stand for positional and named ones where they are all that is given."""
    kwargs = dict(sorted(kwargs.items()))
    kinds = tuple(tuple if isinstance(x, (tuple, list)) else type(x) for x in args)
    if kwargs or kinds not in ((tuple,), (dict,), (tuple, dict)):
        return tuple(args), kwargs
    named = args[-1] if kinds[-1] is dict else {}
    positional = args[0] if kinds[0] is tuple else ()
    if not all(isinstance(x, (array, ShapeDtype)) for x in (*positional, *named.values())):
        return tuple(args), kwargs
    if not all(type(k) is str for k in named):
        return tuple(args), kwargs
    return tuple(positional), dict(sorted(named.items()))


class FunctionExporter:
    """Traces of a function for a file; see `exporter`. Each call adds one, `close` writes the file.

    >>> import smelt, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with smelt.exporter(f"{folder}/f.smelt", lambda x: x + 1) as add:
    ...         add(smelt.array(1.0))
    ...     smelt.import_function(f"{folder}/f.smelt")(smelt.array(2.0))
    (array(3, dtype=float32),)
    """

    def __init__(self, file: Any, fun: Callable[..., Any], shapeless: bool, metadata: str | None):
        check_function(fun, "smelt.exporter")
        is_open = hasattr(file, "write") and not isinstance(file, type)
        self._file = file if is_open else path_of("exporter", "file", file)
        if metadata is not None and not isinstance(metadata, str):
            raise ArgumentTypeError(at_user_line(f"smelt.exporter: metadata must be a text, is {shown(metadata)}"))
        self._fun, self._name, self._metadata = fun, name_of(fun), metadata
        self._shapeless = flag("export_function", "shapeless", shapeless)
        self._traces: list[_Traced] = []
        self._is_open = True

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Add the trace for these arguments; arrays may be given by their types, as `ShapeDtype`.

        Raises:
            AttributeValueError: there is one for such arguments already. TreeError: arguments or results that are no
            trees of arrays, numbers and texts. TraceError: the function asks for a value, or the file is written.
        """
        if not self._is_open:
            raise TraceError(at_user_line("smelt.exporter: the file has been written"))
        made = traced(self._fun, self._name, args, kwargs, self._shapeless)
        if any(other.arguments == made.arguments for other in self._traces):
            raise AttributeValueError(at_user_line("smelt.exporter: there is a trace for such arguments already"))
        self._traces.append(made)
        if made.fixed:
            self._add_without_ones(made)

    def _add_without_ones(self, made: _Traced) -> None:
        """Add the trace for sizes that are not 1, where that is another program than the one of such sizes."""
        avals = [x for form in made.arguments for x in files.leaves(form)]
        names = itertools.count()
        shapes = [[2 if f"v{next(names)}" in made.fixed else d for d in aval.shape] for aval in avals]
        given = iter([ShapeDtype(tuple(shape), aval.dtype) for shape, aval in zip(shapes, avals)])
        args, kwargs = (rebuilt(form, given) for form in made.arguments)
        try:
            other = traced(self._fun, self._name, args, kwargs, True)
        except Exception:  # also what the function gets wrong where it is given such sizes
            return
        if all(known.arguments != other.arguments for known in self._traces):
            self._traces.append(other)

    def close(self) -> None:
        """Write the file."""
        if self._is_open:
            self._is_open = False
            found = exported(self._name, self._metadata, self._traces)
            with replacing(self._file) if isinstance(self._file, str) else nullcontext(self._file) as out:
                files.write_exported(out, found)

    def __enter__(self) -> FunctionExporter:
        return self

    def __exit__(
        self, exc_type: type | None = None, exc_value: object | None = None, traceback: TracebackType | None = None
    ) -> None:
        if exc_type is None:
            self.close()
        else:
            self._is_open = False


class _Traced:
    """A trace with the forms of its arguments and results.

    Attributes:
        function: for the sizes of the arguments.
        others: functions that it applies, and itself, in an order in which each comes after those that it applies.
        sizes: the code for other sizes, or None. fixed: which of them it is the program for 1 of alone.
    """

    def __init__(self, arguments: Any, results: Any, function: GraphFunction):
        self.arguments, self.results, self.function = arguments, results, function
        self.order: list[GraphFunction] = []
        self.sizes: dict[str, Any] | None = None
        self.fixed: set[str] = set()


def traced(
    fun: Callable[..., Any], name: str, args: Sequence[Any], kwargs: dict[str, Any], shapeless: bool, rules: bool = True
) -> _Traced:
    """The trace of a function for these arguments, in which calls of functions with `rules` keep them."""
    what = f"export of {name}"
    args, kwargs = unpacked(args, kwargs)
    given: list[array] = []
    arguments = [flattened(what, args, given), flattened(what, kwargs, given)]
    results: list[Any] = []

    def flat(*leaves: array) -> list[array]:
        found = iter(leaves)
        positional, named = rebuilt(arguments[0], found), rebuilt(arguments[1], found)
        outs: list[array] = []
        results.append(flattened(what, fun(*positional, **named), outs))
        return outs

    flat.__name__ = name
    compiled: CompiledFunction[..., Any] = CompiledFunction(flat, None, None, False, None)
    with recording() if rules else nullcontext():
        f = compiled.trace(*given).function
        made = _Traced(arguments, results[0], f)
        if shapeless:
            _trace_sizes(made, name, compiled, given)
    return made


def _trace_sizes(made: _Traced, name: str, compiled: CompiledFunction[..., Any], given: Sequence[array]) -> None:
    """Add what the trace is for other sizes: the same on symbols, which must be it for these."""
    known = files.sizes_of([x.aval for x in given])
    ones = {f"v{i}": 1 for i, size in enumerate(known) if size == 1}
    try:
        whole = _Sized(compiled, given, ones)
        if not _same_program(whole.function, made.function):
            raise IRError("it is another program for these sizes")
    except (SmeltError, TypeError, ValueError, ArithmeticError) as error:
        reason = str(error).partition("; at ")[0]
        if isinstance(error, TreeError):  # the function itself has been traced before
            reason = f"an op in it keeps sizes in what cannot follow them ({reason})"
        message = f"shapeless=True needs a function that is the same for all sizes, {name} is not: {reason}"
        raise AttributeValueError(at_user_line(f"smelt.exporter: {message}")) from None
    whole = _freed(whole, compiled, given)
    made.sizes = sizes = whole.written
    made.function, made.order, made.fixed = whole.at(known), whole.functions, {*whole.equal}
    others = [{}, *_coincidences(sizes["cases"][0]["lines"], whole.sizes)]
    for held in [whole.equal] if whole.equal == ones else [whole.equal, ones]:
        for equal in [{**held, **other} for other in others]:
            try:
                case = _Sized(compiled, given, equal, {k: n for k, n in whole.freed.items() if k not in equal})
                same = equal != whole.equal and _same_program(whole.at(case.sizes), case.function)
            except Exception:  # also what the function gets wrong where it is given such sizes
                continue
            if same:
                sizes["cases"] += case.written["cases"]


def _freed(whole: _Sized, compiled: CompiledFunction[..., Any], given: Sequence[array]) -> _Sized:
    """The same program, traced for other sizes where sizes are 1, or happen to be what they are compared with."""
    lines = whole.written["cases"][0]["lines"]
    compared = {x for name, text, *pair in lines if (name, text) in (("", "=="), ("!", "!=")) for x in pair}
    groups: dict[int, list[str]] = {}
    for i, size in enumerate(files.sizes_of([x.aval for x in given])):
        if size == 1 or f"v{i}" in compared:
            groups.setdefault(size, []).append(f"v{i}")
    taken = {*whole.sizes, *(d for node, i in whole.function.captured for d in node.avals[i].shape)}
    for names in groups.values():
        for some in [names, *([name] for name in names if len(names) > 1)]:
            equal = {name: n for name, n in whole.equal.items() if name not in some}
            for other in (max(taken) + 1, next(n for n in itertools.count(2) if n not in taken)):
                try:
                    found = _Sized(compiled, given, equal, {**whole.freed, **dict.fromkeys(some, other)})
                    same = _same_program(found.at(whole.sizes), whole.function)
                except Exception:  # as above
                    continue
                if same:
                    whole = found
                    taken.add(other)
                    break
    return whole


def _same_program(a: GraphFunction, b: GraphFunction) -> bool:
    """Whether two functions compute their results by the same ops. One may compute several times what another shares,
    and reshape an array that another captures in that shape already."""
    if a.key == b.key or a.rules or b.rules:
        return a.key == b.key
    known: dict[Any, int] = {}
    contents: dict[int, bytes] = {}

    def captured(content: bytes, aval: Aval) -> int:
        found = known.setdefault((content, aval.shape, aval.dtype), len(known))
        contents[found] = content
        return found

    def results(f: GraphFunction) -> list[tuple[int, int]]:
        number: dict[Ref, tuple[int, int]] = {}
        count = len(f.parameters) - len(f.captured)
        for at, (node, i) in enumerate(f.parameters[:count]):
            number[(node, i)] = known.setdefault((at, node.avals[i].shape, node.avals[i].dtype), len(known)), 0
        evaluate(f.captured)
        for node, i in f.captured:
            value: Buffer = node.values[i]  # type: ignore[index]
            content = hashlib.blake2b(value.array.tobytes()).digest()
            number[(node, i)] = captured(content, node.avals[i]), 0
        for step in f.body:
            given = [number[ref] for ref in step.inputs]
            if step.op.name == "reshape" and given[0][0] in contents:
                found = captured(contents[given[0][0]], step.avals[0])
            else:
                found = known.setdefault((*step_key(step), *given), len(known))
            for i in range(len(step.avals)):
                number[(step.node, i)] = found, i
        return [number[ref] for ref in f.outputs]

    return results(a) == results(b)


def _coincidences(lines: Sequence[Sequence[Any]], known: Sequence[int]) -> list[dict[str, Any]]:
    """Which sizes may be 0, 1, or what they are compared with, such as others and constants: broadcasting does it."""
    found: list[tuple[Any, Any]] = [(f"v{i}", n) for i, size in enumerate(known) for n in (1, 0) if n != size]
    for name, operator, a, b in lines:
        if (name, operator) in (("!", "=="), ("", "!=")):
            found += [(a, b), (b, a)]  # one of them may be fixed
    sizes = {f"v{i}" for i in range(len(known))}
    kept = [(x, y) for x, y in dict.fromkeys(found) if x in sizes and (type(y) is int or y in sizes)]
    return [{x: y} for x, y in kept[:_MOST_CASES]]


class _Sized:
    """A function traced on symbols.

    Args:
        equal: sizes, by their names, that are numbers or the same as others in this trace.
        freed: sizes that are others in this trace than in `given`.

    Attributes:
        sizes: those that it was traced for. function: what it is for them. functions: that after those that it applies.
        written: the form for a file.
    """

    def __init__(
        self, compiled: CompiledFunction[..., Any], given: Sequence[array], equal: dict[str, Any],
        freed: dict[str, int] = NO_ATTRS,
    ):  # fmt: skip
        self.equal, self.freed = equal, freed
        known = [freed.get(f"v{i}", size) for i, size in enumerate(files.sizes_of([x.aval for x in given]))]
        names = {f"v{i}": i for i in range(len(known))}
        self.sizes = list(known)
        for name, other in equal.items():
            self.sizes[names[name]] = known[names[other]] if other in names else other
        program = Program((), self.sizes)
        extents: list[Any] = list(program.others)
        for name, other in equal.items():
            extents[names[name]] = extents[names[other]] if other in names else other
        rest = iter(extents)
        avals = [x.aval.with_shape([next(rest) for _ in x.aval.shape]) for x in given]
        symbolic = [placeholder(aval) for aval in avals]
        self._traced: GraphFunction = compiled.trace(*symbolic).function
        self._order = _functions_of(self._traced)
        form = [_sizes_of(f, keep=False) for f in self._order]
        self.written = written_program(program, form, equal)
        self._run = program.unguarded([_sizes_of(f) for f in self._order])
        self.function = self.at(self.sizes)

    def at(self, sizes: Sequence[int]) -> GraphFunction:
        """What the trace is for these sizes, whether its guards hold or not."""
        functions: dict[int, GraphFunction] = {}
        for f, (shapes, steps, *rules) in zip(self._order, self._run(*sizes)):
            functions[id(f)] = bound(f, shapes, steps, functions, f is self._traced, *rules)
        self.functions = [functions[id(f)] for f in self._order]
        return functions[id(self._traced)]


def _functions_of(f: GraphFunction) -> list[GraphFunction]:
    """A function after those that it applies, and those that are rules of it."""
    found: dict[int, GraphFunction] = {}

    def add(f: GraphFunction) -> None:
        if id(f) not in found:
            for step in f.body:
                for inner in callees(step):
                    add(inner)
            for rule in f.rules.values():
                if isinstance(rule, GraphFunction):
                    add(rule)
            found[id(f)] = f

    add(f)
    return list(found.values())


def _sizes_of(f: GraphFunction, keep: bool = True) -> list[Any]:
    """Where a function has sizes: its parameters, attributes and results of its ops, and its rules if it has some.
    Aliases are no ops of modules."""
    steps = [step for step in f.body if keep or step.op is not ALIAS]
    found = [[n.avals[i].shape for n, i in f.parameters], [[s.attrs, [a.shape for a in s.avals]] for s in steps]]
    return [*found, f.rules] if f.rules else found


def exported(name: str, metadata: str | None, traces: Sequence[_Traced]) -> files.Exported:
    """What the file of some traces holds."""
    names = ["main" if i == 0 else f"main_{i}" for i in range(len(traces))]
    module, others = build_functions([(n, t.function) for n, t in zip(names, traces)])
    arrays: dict[str, Any] = {}
    known: dict[int, str] = {}

    def captured(refs: Sequence[Ref]) -> tuple[str, ...]:
        evaluate(refs)
        found = []
        for node, i in refs:
            buffer: Buffer = node.values[i]  # type: ignore[index]
            key = known.setdefault(id(buffer), f"captured.{len(known)}")
            if buffer.aval.dtype not in NAMES.values():
                raise DTypeError(at_user_line(f"smelt.exporter: {name} uses an array {buffer.aval}, of which files "
                                              "of functions have none"))  # fmt: skip
            arrays[key] = buffer.array, buffer.aval.dtype
            found.append(key)
        return tuple(found)

    written = []
    for n, t in zip(names, traces):
        sizes = None
        if t.sizes is not None:
            called: dict[str, Any] = {}
            for f, form in zip(t.order, t.sizes["outputs"] or [None] * len(t.order)):
                key = n if f is t.function else others[f.key]
                if called.setdefault(key, form) != form:
                    message = f"shapeless=True: functions that {name} applies are the same for these sizes alone"
                    raise AttributeValueError(at_user_line(f"smelt.exporter: {message}"))
            sizes = {"functions": list(called), **t.sizes, "outputs": list(called.values())}
        written.append(files.Trace(n, t.arguments, t.results, captured(t.function.captured), sizes))
    return files.Exported(name, metadata, written, text.to_text(module), arrays)


def exporter(
    file: Any, fun: Callable[..., Any], *, shapeless: bool = False, metadata: str | None = None
) -> FunctionExporter:
    """What traces a function for arguments of several types, and writes the traces to one file.

    Args:
        file: a path, or an open binary file.
        fun: a function of trees of arrays that returns one; arrays that it uses besides are stored as they are. Numbers
            and texts among its arguments are part of the trace.
        shapeless: whether the traces hold for arguments of other sizes, as far as the function treats them alike.
        metadata: a text to store beside them.

    Raises:
        TreeError: `fun` is no function. ArgumentTypeError: `file` is no path, `metadata` no text. OSError: the file
        cannot be written.

    >>> import smelt, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with smelt.exporter(f"{folder}/sum.smelt", lambda *xs: sum(xs)) as add:
    ...         add(smelt.array(1))
    ...         add(smelt.array(1), smelt.array(2))
    ...     smelt.import_function(f"{folder}/sum.smelt")(smelt.array(3), smelt.array(4))
    (array(7, dtype=int32),)
    """
    return FunctionExporter(file, fun, shapeless, metadata)


def export_function(
    file_or_callback: Any, fun: Callable[..., Any], *args: Any, shapeless: bool = False, metadata: str | None = None,
    **kwargs: Any,
) -> None:  # fmt: skip
    """Write what a function computes for arguments of these types to a file, or hand it to a callback piece by piece.

    Args:
        file_or_callback: a path, an open binary file, or a function that is called with dictionaries: their
            ``"type"`` is ``"inputs"``, ``"keyword_inputs"``, ``"outputs"``, ``"constants"``, and ``"primitive"`` for
            each op.
        fun, shapeless, metadata: see `exporter`.
        args, kwargs: arguments, or their types as `ShapeDtype`. As in MLX, a tuple or list of arrays and a dict of
            them by name, if that is all, stand for positional and named arguments.

    Raises:
        AttributeValueError: metadata, but no file; with `shapeless`, a function that depends on sizes. Else what
        `exporter` raises.

    >>> import smelt, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     smelt.export_function(f"{folder}/f.smelt", lambda x, y: x + y, smelt.array(1.0), y=smelt.ones(3))
    ...     smelt.import_function(f"{folder}/f.smelt")(smelt.array(2.0), y=smelt.ones(3))
    (array([3, 3, 3], dtype=float32),)
    """
    if callable(file_or_callback):
        if metadata is not None:
            raise AttributeValueError(at_user_line("smelt.export_function: metadata is for files, not for callbacks"))
        check_function(fun, "smelt.export_function")
        _report(file_or_callback, traced(fun, name_of(fun), args, kwargs, False, rules=False))
        return
    with FunctionExporter(file_or_callback, fun, shapeless, metadata) as export:
        export(*args, **kwargs)


def _report(callback: Callable[[dict[str, Any]], Any], made: _Traced) -> None:
    """Tell a callback of a trace, in MLX's words."""
    f = made.function
    names: dict[Ref, str] = {}

    def of(refs: Sequence[Ref]) -> list[tuple[str, tuple[int, ...], Any]]:
        found = []
        for node, i in refs:
            aval = node.avals[i]
            found.append((names.setdefault((node, i), f"v{len(names)}"), aval.shape, aval.dtype))
        return found

    count = len(f.parameters) - len(f.captured)
    inputs = of(f.parameters[:count])
    positional = len(files.leaves(made.arguments[0]))
    callback({"type": "inputs", "inputs": inputs})
    pairs, at = [], positional
    for key, form in sorted(made.arguments[1]["dict"].items()):
        taken = len(files.leaves(form))
        pairs += [(key, name) for name, _, _ in inputs[at : at + taken]]
        at += taken
    callback({"type": "keyword_inputs", "keywords": pairs})
    outputs = of(f.outputs)
    evaluate(f.captured)
    callback({"type": "outputs", "outputs": outputs})
    constants = [(name, wrap(ref)) for (name, _, _), ref in zip(of(f.captured), f.captured)]
    callback({"type": "constants", "constants": constants})
    for step in f.body:
        results = of([(step.node, i) for i in range(len(step.avals))])
        primitive = {"name": step.op.primitive, "inputs": of(step.inputs), "outputs": results}
        callback({"type": "primitive", **primitive, "arguments": list(step.attrs.values())})
