"""Under `with lock:` there is no place where an interrupt leaves the lock taken.

Python runs handlers of signals at calls, at the beginning of functions and at jumps back. From 3.12 on it has jumps of
conditions, in comprehensions and in loops, outside of what the table of exceptions says to be in the `with`, and 3.13
looks for signals there: it would leave the block without its end. What is under a lock has no such loops of its own,
it calls functions that have them.
"""

from __future__ import annotations

import ast
import dis
import sys
import textwrap
import types
from collections.abc import Iterator
from typing import Any

import pytest

from ..architecture.sources import ROOMS, ROOT, python_files

#: What makes a lock: `smelt.ir.locks.lock`, and classes of `threading`.
MAKERS = {"lock", "Lock", "RLock", "Condition", "Semaphore"}

pytestmark = pytest.mark.skipif(sys.version_info < (3, 12), reason="has a table of its own for each with")


def locks_of(tree: ast.AST) -> set[str]:
    """The names and attributes that are assigned a lock in a module."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(node.value, ast.Call):
            if last_name(node.value.func) in MAKERS:
                found |= set(map(last_name, node.targets if isinstance(node, ast.Assign) else [node.target]))
    return found - {""}


def last_name(x: ast.expr) -> str:
    return x.attr if isinstance(x, ast.Attribute) else x.id if isinstance(x, ast.Name) else ""


def lines_of_locks(tree: ast.AST, names: set[str]) -> set[int]:
    """The lines of statements `with` that take a lock of these names."""
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.With)]
    return {item.context_expr.lineno for s in statements for item in s.items if last_name(item.context_expr) in names}


def codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for x in code.co_consts:
        if isinstance(x, types.CodeType):
            yield from codes(x)


class Blocks:
    """The blocks of `with` in a function's code, followed from instruction to instruction.

    A block is the line of its statement, and how much lies on the stack where its end is called after an error.
    """

    def __init__(self, code: types.CodeType):
        self.instructions = list(dis.get_instructions(code))
        self.places = {x.offset: n for n, x in enumerate(self.instructions)}
        self.table = dis.Bytecode(code).exception_entries  # type: ignore[attr-defined]

    def entry(self, n: int) -> Any:
        """Where an error at an instruction goes: the innermost part of the table that has it."""
        offset = self.instructions[n].offset
        return next((e for e in reversed(self.table) if e.start <= offset < e.end), None)

    def begins(self, n: int) -> bool:
        name = self.instructions[n].opname
        entered = n and self.instructions[n - 1].argrepr == "__enter__"  # 3.14
        return name == "BEFORE_WITH" or (name.startswith("CALL") and bool(entered))

    def ends(self, n: int) -> bool:
        """Whether it is the call of a block's end without an error."""
        before = self.instructions[max(0, n - 3) : n]
        nothing = [x.opname == "LOAD_CONST" and x.argval is None for x in before]
        return self.instructions[n].opname.startswith("CALL") and nothing == [True] * 3

    def looks_for_signals(self, n: int) -> bool:
        name = self.instructions[n].opname
        return name.startswith("CALL") or (name.startswith("JUMP_BACKWARD") and "NO_INTERRUPT" not in name)

    def gaps(self) -> set[tuple[int, int]]:
        """The lines of blocks and of places in them at which an error does not end the block."""
        seen, found = set(), set()
        left: list[tuple[int, tuple[tuple[int, int], ...]]] = [(0, ())]
        while left:
            n, blocks = left.pop()
            if n >= len(self.instructions) or (n, blocks) in seen:
                continue
            seen.add((n, blocks))
            x, entry = self.instructions[n], self.entry(n)
            if blocks and self.looks_for_signals(n) and not self.ends(n):
                line, depth = blocks[-1]
                if entry is None or entry.depth < depth:
                    found.add((line, x.positions.lineno or line))
            if entry is not None:  # those blocks go on that began before what handles the error
                left.append((self.places[entry.target], tuple([b for b in blocks if b[1] <= entry.depth])))
            if self.begins(n) and (inside := self.entry(n + 1)) is not None:
                blocks += ((x.positions.lineno, inside.depth),)
            elif self.ends(n) or x.opname == "WITH_EXCEPT_START":
                blocks = blocks[:-1]
            if x.opname.startswith(("RETURN", "RERAISE", "RAISE")):
                continue
            if "JUMP" in x.opname or x.opname in ("FOR_ITER", "SEND"):
                left.append((self.places[x.argval], blocks))
                if x.opname.startswith("JUMP"):
                    continue
            left.append((n + 1, blocks))
        return found


def gaps(source: str, names: set[str]) -> set[tuple[int, int]]:
    lines = lines_of_locks(ast.parse(source), names)
    return {gap for code in codes(compile(source, "source", "exec")) for gap in Blocks(code).gaps() if gap[0] in lines}


SAMPLE = """
lock = locks.lock()
def safe(xs):
    with lock:
        for x in xs:
            f(x)
        return [x for x in xs]
    with other:
        return [x for x in xs if x]
def filtered(xs):
    with lock:
        return [x for x in xs if x not in y and f(x)]
def loops(n):
    with a, lock:
        while n and (n > 1 or f(n)):
            n = n - 1
def conditions(xs):
    with lock:
        for x in xs:
            if x:
                f(x)
"""


def test_such_places_are_found() -> None:
    source = textwrap.dedent(SAMPLE)
    found = {line for line, _ in gaps(source, locks_of(ast.parse(source)))}
    assert found == {11, 14, 18}


def test_no_interrupt_leaves_a_lock_taken() -> None:
    sources = {path: path.read_text() for path in python_files(*ROOMS)}
    names = set().union(*[locks_of(ast.parse(source)) for source in sources.values()])
    assert {"_lock", "lock", "walking", "guard"} <= names
    found = [
        f"{path.relative_to(ROOT)}:{place}, under the lock of line {line}"
        for path, source in sources.items()
        for line, place in sorted(gaps(source, names))
    ]
    assert not found, "\n".join(["move these loops into functions:", *found])
