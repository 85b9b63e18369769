"""Passes of other packages: whatever they do wrong is an error that names them, and never ends the process."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable
from typing import Any

import pytest

from smelt.ir import dtypes, mlir, text
from smelt.ir.builder import Builder, Function, OpView, functions, new_function
from smelt.ir.dialect import context
from smelt.ir.errors import IRError, OutOfMemoryError, PassError, PipelineError, SmeltError
from smelt.ir.op import registry as ops
from smelt.passes.rewrite import rebuild, replay

from .plugins import RIGHT, RIGHT_VALUES, USES, WRONG, F, as_function, parsed, read, run, visiting

pytestmark = pytest.mark.usefixtures("small_heap")

#: The pass, and its line or that of the program.
NAMED = r"(?s)foreign.*\w\.py:\d+|\w\.py:\d+.*foreign"


@pytest.mark.parametrize("use", USES)
def test_values_that_a_function_can_read(use: str) -> None:
    right = RIGHT_VALUES.get(use, lambda site: site.operands[0])
    if right is not None:
        run(visiting(lambda site: [USES[use](site, right(site))]))


@pytest.mark.parametrize("use", USES)
def test_values_that_a_function_cannot_read(use: str) -> None:
    count = text.to_text(parsed()).count("func.func")
    for what, wrong in WRONG.items():
        module = parsed()
        do = visiting(lambda site: [USES[use](site, wrong(site))])  # noqa: B023
        if (use, what) in RIGHT:
            run(do, module)
            continue
        with pytest.raises(SmeltError, match=NAMED) as caught:
            run(do, module)
            print("no error:", what)
        if "not valid after the pass" not in str(caught.value):
            text.verify(module)
        assert text.to_text(module).count("func.func") == count, what
        del module
    gc.collect()  # once: it takes a second in a process that has run many tests


RESULTS = {
    "nothing": (lambda s: None, "has 1 results, the visit of it returned None"),
    "no results": (lambda s: [], "has 1 results, the visit of it returned 0 values"),
    "two": (lambda s: [s.operands[0]] * 2, "has 1 results, the visit of it returned 2 values"),
    "a value": (lambda s: s.operands[0], "the visit of it returned"),
    "an iterator": (lambda s: iter(s.operands), "the visit of it returned"),
    "no value": (lambda s: [None], "the visit must return a value, it returned None"),
    "a number": (lambda s: [1.5], "the visit must return a value, it returned 1.5"),
    "another shape": (lambda s: [s.b.reduce_sum(s.operands[0], axes=(0,))], "is f32[4], the visit returned f32[]"),
    "another dtype": (lambda s: [s.b.convert(s.operands[0], dtype=dtypes.int32)], "the visit returned i32[4]"),
    "a function": (lambda s: [as_function(s)], "is f32[4], the visit returned None"),
}


@pytest.mark.parametrize("what", RESULTS)
def test_results_of_a_visit(what: str) -> None:
    result, words = RESULTS[what]
    module = parsed()
    before = text.to_text(module)
    with pytest.raises(IRError) as caught:
        run(visiting(result), module)
    message = str(caught.value)
    assert "smelt.log" in message and words in message
    assert "model.py:14" in message and "in the pass foreign" in message
    assert re.search(r"plugins\.py:\d+", message)
    assert text.to_text(module) == before


def stale(module: Any) -> Function:
    function = read(module)
    rebuild(module, function, lambda b, op, operands: b.clone(op, operands))
    return function


def begun(module: Any) -> Builder:
    operation, _, b = new_function(module, "begun", [], [])
    operation.erase()
    return b


def finished(module: Any) -> Builder:
    builders: list[Builder] = []

    def visit(b: Builder, op: OpView, operands: Any) -> Any:
        builders.append(b)
        return b.clone(op, operands)

    rebuild(module, read(module), visit)
    rebuild(module, read(module), visit)
    return builders[0]


def erase_function(module: Any) -> Function:
    function = read(module, "other")
    function.mlir.erase()
    return function


#: What a pass does with handles of what is gone, or erases what is read.
GONE: dict[str, Callable[[Any], Any]] = {
    "op.erase of an op that is read": lambda m: read(m).ops[0].erase(),
    "op.mlir.erase of an op that is read": lambda m: read(m).ops[0].mlir.erase(),
    "erase through the block": lambda m: functions(m)["main"].regions[0].blocks[0].operations[0].operation.erase(),
    "erase through the op's own class": lambda m: functions(m)["main"].regions[0].blocks[0].operations[0].erase(),
    "erase twice": lambda m: [op.erase() for op in [stale(m) and read(m, "other").ops[0]] for _ in range(2)],
    "rebuild again": lambda m: rebuild(m, stale(m), lambda b, op, operands: b.clone(op, operands)),
    "rebuild of another module": lambda m: rebuild(m, read(parsed()), lambda b, op, operands: b.clone(op, operands)),
    "rebuild of an erased function": lambda m: rebuild(m, erase_function(m), lambda b, op, operands: operands),
    "function.mlir": lambda m: stale(m).mlir,
    "op.location": lambda m: stale(m).ops[0].location,
    "op.mlir": lambda m: stale(m).ops[1].mlir,
    "op.mlir, read twice": lambda m: [f.ops[0].mlir for f in [read(m)] if stale(m)],
    "value.mlir": lambda m: stale(m).ops[0].results[0].mlir,
    "argument.mlir": lambda m: stale(m).arguments[0].mlir,
    "returned value.mlir": lambda m: stale(m).returns[0].mlir,
    "op.erase": lambda m: stale(m).ops[2].erase(),
    "value of an erased function": lambda m: erase_function(m).ops[0].results[0].mlir,
    "builder of an erased function": lambda m: begun(m).full((), 1.0, dtypes.float32),
    "builder of a rebuilt function": lambda m: finished(m).full((), 1.0, dtypes.float32),
    "replay into a builder of a rebuilt function": lambda m: replay(finished(m), read(m).ops, {}),
    "return_ of a builder that is done": lambda m: finished(m).return_([]),
    "the module": lambda m: m.operation.erase(),
}


@pytest.mark.parametrize("what", GONE)
def test_handles_of_what_is_gone(what: str) -> None:
    module = parsed()
    with pytest.raises(SmeltError, match=NAMED):
        run(lambda m, statistics: GONE[what](m), module)
    del module
    gc.collect()


def test_an_op_that_nobody_reads_is_erased() -> None:
    def do(module: Any, statistics: Any) -> None:
        function = read(module, "other")
        b = Builder(mlir.ir.InsertionPoint(function.ops[0].mlir))
        made = b.exp(function.arguments[0])
        made.owner.erase()

    module = parsed()
    before = text.to_text(module)
    assert text.to_text(run(do, module)) == before


class Unprintable(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


def deep(n: int = 0) -> int:
    return deep(n + 1) + 1


def fail(kind: type[BaseException]) -> None:
    raise kind("what went wrong")


FAILURES = {
    "KeyError": lambda: {}["x"], "ZeroDivisionError": lambda: 1 / 0, "AssertionError": lambda: fail(AssertionError),
    "RecursionError": deep, "Unprintable": lambda: fail(Unprintable), "ImportError": lambda: fail(ImportError),
    "StopIteration": lambda: next(iter(())), "UnicodeError": lambda: "\ud800".encode(),
    "OSError": lambda: fail(OSError),
    "TypeError": lambda: mlir.ir.Operation.create(3), "NotImplementedError": lambda: fail(NotImplementedError),
}  # fmt: skip


@pytest.mark.parametrize("what", FAILURES)
def test_an_exception_in_a_pass_names_the_pass_and_its_line(what: str) -> None:
    with pytest.raises(PassError, match=r"(?s)the pass foreign failed: .*; at .*plugins\.py:\d+") as caught:
        run(lambda module, statistics: FAILURES[what]())
    assert caught.value.__cause__ is not None


def test_memory_that_runs_out_in_a_pass() -> None:
    with pytest.raises(OutOfMemoryError, match="the pass foreign ran out of memory"):
        run(lambda module, statistics: fail(MemoryError))


def empty_function(module: Any) -> None:
    new_function(module, "empty", [], [])


def second_main(module: Any) -> None:
    _, arguments, b = new_function(module, "main", [F], [F])
    b.return_(arguments)


def wrong_return(module: Any) -> None:
    _, _, b = new_function(module, "wrong", [F], [F])
    b.return_([])


def wrong_callee(module: Any) -> None:
    _, arguments, b = new_function(module, "wrong", [F], [F])
    b.return_(b.call("nowhere", arguments, [F]))


def wrong_signature(module: Any) -> None:
    _, arguments, b = new_function(module, "wrong", [F], [F, F])
    b.return_(b.call("other", arguments, [F, F]))


def wrong_type(module: Any) -> None:
    _, arguments, b = new_function(module, "wrong", [F], [F.with_shape((2,))])
    b.return_(b.emit_typed(ops["exp"], arguments, {}, [F.with_shape((2,))]))


def without_main(module: Any) -> None:
    functions(module)["main"].erase()


def renamed_main(module: Any) -> None:
    functions(module)["main"].attributes["sym_name"] = mlir.ir.StringAttr.get("other_main", context())


INVALID = [
    without_main, renamed_main, empty_function, second_main, wrong_return, wrong_callee, wrong_signature, wrong_type,
]  # fmt: skip


@pytest.mark.parametrize("do", INVALID, ids=lambda f: f.__name__)
def test_what_a_pass_leaves_is_verified(do: Callable[[Any], None]) -> None:
    with pytest.raises(IRError, match=r"(not valid|no function @main) after the pass; in the pass foreign"):
        run(lambda module, statistics: do(module))


def test_statistics_are_integers() -> None:
    with pytest.raises(PipelineError, match=r"statistics count by integers.*in the pass foreign"):
        run(lambda module, statistics: statistics.update({"x": "many"}))


def test_a_value_keeps_its_module() -> None:
    """The bindings free a module that nobody holds below the ops that they wrap."""
    values = [read(parsed()).ops[0].results[0] for _ in range(50)]
    others = [parsed() for _ in range(100)]  # where freed memory would be written over
    assert {repr(v.scope) for v in values} == {"@main"}
    assert all(v.mlir.owner.name.startswith("smelt.") and v.owner.mlir.attached for v in values)
    del others
