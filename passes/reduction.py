"""Smaller modules with the same fault: delta debugging of ``@main``.

After A. Zeller and R. Hildebrandt, "Simplifying and isolating failure-inducing input", IEEE Trans. Software Eng. 28
(2002): results are dropped, the program is cut off behind an op, and runs of ops, ever shorter ones, become arguments,
as long as the fault stays. What nobody reads then goes, functions that nobody calls included.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from smelt.ir import mlir, text
from smelt.ir.builder import Function, OpView, Value, functions, new_function, read_function
from smelt.ir.control import callees
from smelt.ir.errors import IRError

from .extract import replay


def reduce_text(source: str, fails: Callable[[str], bool], report: Callable[[str], None] = lambda line: None) -> str:
    """The smallest module found that still fails, as text.

    Args:
        source: a module with a function ``@main``.
        fails: whether a module has the fault.
        report: told of each step that made the module smaller.

    Raises:
        IRError: the module does not fail, or has no ``@main``.
    """
    source = text.to_text(text.parse(source))
    if not fails(source):
        raise IRError("the command succeeds on the whole module: there is nothing to look for")
    while True:
        for candidate, what in _candidates(source):
            if candidate is not None and len(candidate) < len(source) and fails(candidate):
                source = candidate
                report(f"{what}: {count_ops(source)} ops are left")
                break
        else:
            return source


def count_ops(source: str) -> int:
    """The ops of ``@main``."""
    module = text.parse(source)
    with mlir.lock:
        return len(_main(module).ops)


def _main(module: Any) -> Function:
    found = functions(module)
    if "main" not in found:
        raise IRError(f"the module has no function @main to make smaller; it has {', '.join(found) or 'none'}")
    return read_function(found["main"])


def _candidates(source: str) -> Iterator[tuple[str | None, str]]:
    """Smaller modules, the smallest first, and what was done."""
    module = text.parse(source)
    with mlir.lock:
        main = _main(module)
        results, ops = len(main.returns), [i for i, op in enumerate(main.ops) if _cuttable(op)]
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


def _written(source: str, returns: Sequence[int], cut: Collection[int] = (), last: int | None = None) -> str | None:
    """The module with only these results of ``@main``, or those of its op number `last`, and the results of the ops in
    `cut` as arguments; None where that is not a module."""
    module = text.parse(source)
    with mlir.lock:
        main = _main(module)
        wanted = [main.returns[i] for i in returns] if last is None else list(main.ops[last].results)
        removed = {main.ops[i] for i in cut}
        kept, read = [], set(wanted)
        for op in reversed(main.ops):
            if op not in removed and not read.isdisjoint(op.results):
                kept.append(op)
                read.update(op.operands)
        kept.reverse()
        made: list[Value] = [v for op in main.ops if op in removed for v in op.results if v in read]
        arguments = [a for a in main.arguments if a in read] + made
        try:
            _rebuild(module, main, arguments, kept, wanted)
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
