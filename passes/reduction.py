"""Smaller modules with the same fault: delta debugging of ``@main``, and of what it calls.

After A. Zeller and R. Hildebrandt, "Simplifying and isolating failure-inducing input", IEEE Trans. Software Eng. 28
(2002). First the shortest beginning of the program that has the fault is found by bisection, then its shortest end;
what crosses the cuts are results and arguments. Then results are dropped and runs of ops, ever shorter ones, become
arguments, as long as the fault stays, or what they read becomes results in their place. What nobody reads goes,
functions that nobody calls included.

A fault may lie in another function: the body of a loop, a branch, what is differentiated. Where such a function has it
alone, it becomes ``@main``; where the program has it with its transformations expanded, they are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from smelt.ir import mlir, text
from smelt.ir.builder import Builder, Function, OpView, Value, function_named, functions, new_function, read_function
from smelt.ir.control import callees
from smelt.ir.errors import IRError

from .call_graph import EXPAND
from .driver import Pipeline
from .rewrite import has_body, rebuild, replay

#: What brings the ops of functions into those that call and transform them.
EXPANDED = f"{EXPAND},inline,dce"


class NotFailing(IRError):
    """A module that is to become smaller does not have the fault."""


def reduce_text(
    source: str, fails: Callable[[str], bool], report: Callable[[str], None] = lambda line: None,
    name: str = "<text>",
) -> str:  # fmt: skip
    """The smallest module found that still fails, as text.

    Args:
        source: a module with a function ``@main``.
        fails: whether a module has the fault.
        report: told of each step that made the module smaller.
        name: of the source, in errors.

    Raises:
        IRError: the module has no ``@main``. NotFailing: it does not fail.
    """
    source = text.to_text(text.parse(source, name))
    fails = _once(fails)
    if not fails(source):
        raise NotFailing("the whole module does not fail: there is nothing to look for")
    while True:
        found = _opened(_alone(source, fails, report), fails, report)
        found = _passed_through(_reduced(found, fails, report), fails, report)
        if (source := _alone(found, fails, report)) == found:
            return found


def _once(fails: Callable[[str], bool]) -> Callable[[str], bool]:
    """`fails`, which is asked about each module once."""
    succeeding: set[int] = set()

    def asked(candidate: str) -> bool:
        if (key := hash(candidate)) in succeeding:
            return False
        found = fails(candidate)
        if not found:
            succeeding.add(key)
        return found

    return asked


def _alone(source: str, fails: Callable[[str], bool], report: Callable[[str], None]) -> str:
    """The smallest function that fails by itself as ``@main``, or the module."""
    while True:
        made = [m for name in _others(source) if (m := _as_main(source, name)) is not None and len(m) < len(source)]
        found = next((m for m in sorted(made, key=len) if fails(m)), None)
        if found is None:
            return source
        source = found
        report(f"one function alone: {count_ops(source)} ops are left")


def _opened(source: str, fails: Callable[[str], bool], report: Callable[[str], None]) -> str:
    """The module with its transformations and calls expanded, where it fails so: all ops are in one place."""
    module = text.parse(source)
    if not _others(source):
        return source
    try:
        Pipeline.parse(EXPANDED).run(module)
        found = text.to_text(module)
    except Exception:  # a pass that is at fault, perhaps
        return source
    if found == source or not fails(found):
        return source
    report(f"calls and transformations expanded: {count_ops(found)} ops")
    return found


@mlir.locked
def _others(source: str) -> list[str]:
    """The functions with a body but for ``@main``."""
    module = text.parse(source)
    return [n for n, f in functions(module).items() if n != "main" and has_body(f)]


def _as_main(source: str, name: str) -> str | None:
    """The module of one function and what it calls; None where that is none."""
    module = text.parse(source)
    with mlir.lock:
        function = read_function(functions(module)[name])
        if any(v.aval is None for v in (*function.arguments, *function.returns)):
            return None
        try:
            _rebuild(module, function, function.arguments, function.ops, function.returns)
            return text.to_text(module)
        except IRError:
            return None


def _reduced(source: str, fails: Callable[[str], bool], report: Callable[[str], None]) -> str:
    """With less of ``@main``."""
    for cut, what in ((_beginning, "cut off behind"), (_fewer_results, "fewer results"), (_end, "cut off before")):
        found = cut(source, fails)
        if found != source:
            source = found
            report(f"{what}: {count_ops(source)} ops are left")
    while True:
        found = _fewer_results(_swept(source, fails, report), fails)
        for candidate, what in _candidates(found):
            if candidate is not None and len(candidate) < len(found) and fails(candidate):
                source = candidate
                report(f"{what}: {count_ops(source)} ops are left")
                break
        else:
            return found


def _passed_through(source: str, fails: Callable[[str], bool], report: Callable[[str], None]) -> str:
    """With operands in place of results in the functions that ``@main`` needs: the last ops of each come first."""
    for name in _others(source):
        at = _length(source, name)
        while (at := min(at, _length(source, name)) - 1) >= 0:
            for candidate in _without(source, name, at):
                if len(candidate) < len(source) and fails(candidate):
                    source = candidate
                    report(f"an operand for a result in @{name}: {count_ops(source)} ops are left")
                    break
    return source


@mlir.locked
def _length(source: str, name: str) -> int:
    """How many ops a function has, if it is there."""
    module = text.parse(source)
    found = functions(module).get(name)
    return len(read_function(found).ops) if found is not None and has_body(found) else 0


def _without(source: str, name: str, at: int) -> Iterator[str]:
    """The modules in which an op of a function gives back an operand of its result's type."""
    module = text.parse(source)
    with mlir.lock:
        op = read_function(functions(module)[name]).ops[at]
        avals = [v.aval for v in op.operands]
        result = op.results[0].aval if len(op.results) == 1 else None
    for operand in [i for i, aval in enumerate(avals) if aval is not None and aval == result]:
        module = text.parse(source)
        with mlir.lock:
            function = read_function(functions(module)[name])
            gone = function.ops[at]
            needed = {gone.operands[operand] if v is gone.results[0] else v for v in function.returns}
            for op in reversed(function.ops):
                if op is not gone and not needed.isdisjoint(op.results):
                    needed.update(gone.operands[operand] if v is gone.results[0] else v for v in op.operands)

            def visit(b: Builder, op: OpView, operands: Sequence[Value]) -> Any:
                if op is gone:  # noqa: B023
                    return [operands[operand]]  # noqa: B023
                return b.clone(op, operands) if not needed.isdisjoint(op.results) else [None] * len(op.results)  # noqa: B023

            try:
                rebuild(module, function, visit, partial=True)
                text.verify(module)
                yield text.to_text(module)
            except IRError:
                continue


def count_ops(source: str) -> int:
    """The ops of all functions."""
    module = text.parse(source)
    with mlir.lock:
        return sum(len(read_function(f).ops) for f in functions(module).values() if has_body(f))


@mlir.locked
def _shape(source: str) -> tuple[int, list[int]]:
    """How many results ``@main`` has, and the places of the ops that can be cut."""
    module = text.parse(source)
    main = function_named(module)
    return len(main.returns), [i for i, op in enumerate(main.ops) if _cuttable(op)]


def _bisected(count: int, made: Callable[[int], str | None], fails: Callable[[str], bool]) -> str | None:
    """The module for the smallest number that fails, if those of larger ones fail, too."""
    low, high, found = 0, count, None
    while low < high:
        middle = (low + high) // 2
        candidate = made(middle)
        if candidate is not None and fails(candidate):
            high, found = middle, candidate
        else:
            low = middle + 1
    return found


def _beginning(source: str, fails: Callable[[str], bool]) -> str:
    """The shortest beginning that fails; its results are the values that the rest reads."""
    _, ops = _shape(source)
    return _bisected(len(ops), lambda i: _written(source, (), upto=ops[i]), fails) or source


def _end(source: str, fails: Callable[[str], bool]) -> str:
    """The shortest end that fails; what it reads of the ops before are arguments."""
    results, ops = _shape(source)
    count = len(ops)
    return _bisected(count, lambda i: _written(source, range(results), ops[: count - i]), fails) or source


def _fewer_results(source: str, fails: Callable[[str], bool]) -> str:
    """Without runs of results, ever shorter ones."""
    kept = list(range(_shape(source)[0]))
    found, size = source, len(kept) // 2
    while size:
        start = 0
        while start < len(kept) > 1:
            fewer = kept[:start] + kept[start + size :]
            candidate = _written(source, fewer) if fewer else None
            if candidate is not None and fails(candidate):
                kept, found = fewer, candidate
            else:
                start += size
        size //= 2
    return found


def _swept(source: str, fails: Callable[[str], bool], report: Callable[[str], None]) -> str:
    """With runs of ops as arguments, ever shorter ones; where one goes, the next is tried, not the first again."""
    results, ops = _shape(source)
    size = len(ops) // 2
    while size:
        start = 0
        while start < len(ops):
            for kept in (False, True):
                candidate = _written(source, range(results), ops[start : start + size], kept=kept)
                if candidate is not None and _is_smaller(candidate, source) and fails(candidate):
                    source = candidate
                    results, ops = _shape(source)
                    report(f"{size} ops made arguments{' and results' * kept}: {len(ops)} ops are left")
                    break
            else:
                start += size
        size = min(size, len(ops)) // 2
    return source


def _is_smaller(one: str, other: str) -> bool:
    """Whether a module has fewer ops than another, or as many and less text."""
    return (len(_shape(one)[1]), len(one)) < (len(_shape(other)[1]), len(other))


def _candidates(source: str) -> Iterator[tuple[str | None, str]]:
    """Smaller modules, the smallest first, and what was done."""
    results, ops = _shape(source)
    if results > 1:
        for i in range(results):
            yield _written(source, [i]), "one result"
    for i in ops:
        yield _written(source, (), last=i), "cut off behind an op"
    size = len(ops)
    while size:
        for start in range(0, len(ops), size):
            yield _written(source, range(results), ops[start : start + size]), f"{size} ops made arguments"
        size //= 2


def _cuttable(op: OpView) -> bool:
    """Whether values of the op may be results or arguments: they are tensors."""
    return bool(op.results) and all(r.aval is not None for r in op.results)


@mlir.locked
def _written(
    source: str, returns: Sequence[int], cut: Collection[int] = (), last: int | None = None, upto: int | None = None,
    kept: bool = False,
) -> str | None:  # fmt: skip
    """The module with only these results of ``@main``, or those of its op number `last`, or what is read behind its op
    number `upto`, and the results of the ops in `cut` as arguments; with `kept` what these ops read are results, too.
    None where that is not a module."""
    module = text.parse(source)
    main = function_named(module)
    wanted = [main.returns[i] for i in returns] if last is None else list(main.ops[last].results)
    if upto is not None:
        behind = {v for op in main.ops[upto + 1 :] for v in op.operands} | set(main.returns)
        wanted = [v for op in main.ops[: upto + 1] for v in op.results if v in behind]
        if not wanted or any(v.aval is None for v in wanted):
            return None
    removed = {main.ops[i] for i in cut}
    if kept:
        made = {v for op in removed for v in op.results}
        read_by = [v for op in main.ops if op in removed for v in op.operands]
        wanted = list(dict.fromkeys([*wanted, *(v for v in read_by if v.owner is not None and v.aval)]))
        wanted = [v for v in wanted if v not in made]
        if not wanted:
            return None
    needed, read = [], set(wanted)
    for op in reversed(main.ops):
        if op not in removed and not read.isdisjoint(op.results):
            needed.append(op)
            read.update(op.operands)
    needed.reverse()
    made_arguments: list[Value] = [v for op in main.ops if op in removed for v in op.results if v in read]
    arguments = [a for a in main.arguments if a in read] + made_arguments
    try:
        _rebuild(module, main, arguments, needed, wanted)
        return text.to_text(module)
    except IRError:
        return None


def _rebuild(
    module: Any, main: Function, arguments: Sequence[Value], kept: Sequence[OpView], wanted: Sequence[Value]
) -> None:
    found = functions(module)
    called = {name for op in kept for name in callees(op)}
    while more := {n for c in called for op in read_function(found[c]).ops for n in callees(op)} - called:
        called |= more
    avals, results = [a.aval for a in arguments], [v.aval for v in wanted]
    location = main.mlir.location
    operation, values, b = new_function(module, "main.new", avals, results, location, public=True, before=main.mlir)
    env = dict(zip(arguments, values))
    replay(b, kept, env)
    b.return_([env[v] for v in wanted])
    for name, function in found.items():
        if name not in called:
            function.operation.erase()
    operation.attributes["sym_name"] = mlir.ir.StringAttr.get("main", module.context)
    text.verify(module)
