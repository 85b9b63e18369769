"""Barriers that not all threads reach, where that is plain from the text.

A value depends on the thread when it is computed from a position or an index within the threadgroup. A barrier in a
branch or loop on such a value, behind a return or continue in one, or in a loop that a break or return in one ends,
is reported. Functions are followed: one that contains a barrier counts as a barrier where it is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .names import words

if TYPE_CHECKING:
    from .rules import Function, Node, Rules

#: Attributes whose values differ between the threads of a threadgroup.
_VARYING = words(
    """
    thread_position_in_grid thread_position_in_threadgroup thread_index_in_threadgroup thread_index_in_simdgroup
    simdgroup_index_in_threadgroup thread_index_in_quadgroup quadgroup_index_in_threadgroup
    """
)
_BARRIER = "threadgroup_barrier"
_LOOPS = frozenset({"FOR_STMT", "WHILE_STMT", "DO_STMT"})
_ASSIGNMENTS = frozenset({"BINARY_OPERATOR", "COMPOUND_ASSIGNMENT_OPERATOR"})
_LEAVES = frozenset({"BREAK_STMT", "RETURN_STMT"})
_SKIPS = frozenset({"CONTINUE_STMT"})
#: What means the loop that it stands in.
_LEAVES_LOOP = frozenset({"BREAK_STMT", "CONTINUE_STMT"})
_MAX_DEPTH = 200


def check_barriers(functions: dict[str, Function], rules: Rules) -> None:
    """Warn of barriers in divergent control flow."""
    barriers = _barrier_functions(functions)
    if not barriers and not any(_calls_barrier(f) for f in functions.values()):
        return
    for function in functions.values():
        if function.is_kernel and (_calls_barrier(function) or function.calls & barriers):
            _Walk(function, barriers, rules).run()


def _calls_barrier(function: Function) -> bool:
    return any(f"@{_BARRIER}#" in usr or usr.endswith(f"@{_BARRIER}") for usr in function.calls)


def _barrier_functions(functions: dict[str, Function]) -> set[str]:
    """The functions that reach a barrier."""
    found = {usr for usr, function in functions.items() if _calls_barrier(function)}
    while True:
        more = {usr for usr, function in functions.items() if usr not in found and function.calls & found}
        if not more:
            return found
        found |= more


class _Walk:
    def __init__(self, function: Function, barriers: set[str], rules: Rules) -> None:
        self.function, self.barriers, self.rules = function, barriers, rules
        self.left: str | None = None
        self.varying = {
            part.cursor.hash
            for part in function.node.parts
            if part.kind == "PARM_DECL" and any(name in _VARYING for name, _ in part.annotations())
        }

    def run(self) -> None:
        body = [part for part in self.function.node.parts if part.kind == "COMPOUND_STMT"]
        if not body or not self.varying:
            return
        flows = [node for node in body[-1].walk() if node.kind == "VAR_DECL" or node.kind in _ASSIGNMENTS]
        # Twice, for values that flow around a loop.
        for node in flows * 2:
            self.flow(node)
        self.statement(body[-1], None, 0)

    def flow(self, node: Node) -> None:
        """Mark a variable that is set from a value that varies."""
        if node.kind == "VAR_DECL":
            if any(self.varies(part) for part in node.parts):
                self.varying.add(node.cursor.hash)
        elif len(node.parts) == 2 and node.parts[0].kind == "DECL_REF_EXPR":
            target = node.parts[0].cursor.referenced
            if target is not None and self.varies(node.parts[1]) and self.assigns(node):
                self.varying.add(target.hash)

    def assigns(self, node: Node) -> bool:
        """Whether a binary operator is an assignment: `==` and `<` are operators, too."""
        if node.kind == "COMPOUND_ASSIGNMENT_OPERATOR":
            return True
        place = self.rules.place(node.cursor)
        if place is None:
            return False
        text = self.rules.report.files[place[0]].text
        between = text[node.parts[0].cursor.extent.end.offset : node.parts[1].cursor.extent.start.offset]
        return between.strip() == "="

    def varies(self, node: Node) -> bool:
        """Whether an expression names something that varies."""
        for found in node.walk():
            if found.kind == "DECL_REF_EXPR":
                named = found.cursor.referenced
                if named is not None and named.hash in self.varying:
                    return True
        return False

    def statement(self, node: Node, divergent: str | None, depth: int) -> None:
        """Walk a statement; `divergent` says why not all threads may come here."""
        if depth > _MAX_DEPTH or node.kind == "LAMBDA_EXPR":
            return
        parts = node.parts
        if node.kind == "IF_STMT" and parts:
            self.statement(parts[0], divergent, depth + 1)
            reason = divergent or self.reason(parts[0], "a branch")
            for branch in parts[1:]:
                self.statement(branch, reason, depth + 1)
            if reason and self.left is None and any(found.kind == "RETURN_STMT" for found in node.walk()):
                self.left = "behind a return that depends on the thread"
            return
        if node.kind == "SWITCH_STMT" and parts:
            divergent = divergent or self.reason(parts[0], "a branch")
        elif node.kind in _LOOPS:
            # The body of a loop is its last statement, that of do-while its first.
            header = parts[1:] if node.kind == "DO_STMT" else parts[:-1]
            for part in header:
                divergent = divergent or self.reason(part, "a loop")
            if divergent is None and self.is_left_early(node):
                divergent = "in a loop that threads leave at different times"
        elif node.kind == "CONDITIONAL_OPERATOR" and parts:
            self.statement(parts[0], divergent, depth + 1)
            divergent, parts = divergent or self.reason(parts[0], "a branch"), parts[1:]
        elif node.kind == "CALL_EXPR" and (divergent or self.left) and self.is_barrier(node.cursor):
            reason = divergent or self.left
            self.rules.add("warning", node.cursor, f"divergent barrier: {reason}; every thread must reach it")
        for part in parts:
            self.statement(part, divergent, depth + 1)
            if divergent is None and part.kind == "IF_STMT" and self.leaves(part, _SKIPS):
                divergent = "behind a continue that depends on the thread"

    def is_left_early(self, loop: Node) -> bool:
        """Whether a break or return in a branch that depends on the thread ends a loop."""
        return any(self.leaves(part, _LEAVES) for part in loop.parts)

    def leaves(self, node: Node, kinds: frozenset[str], varying: bool = False) -> bool:
        """Whether one of `kinds` stands in a branch that depends on the thread and means what encloses `node`."""
        if node.kind in kinds:
            return varying
        if node.kind == "LAMBDA_EXPR":
            return False
        if node.kind in _LOOPS:
            kinds = kinds - _LEAVES_LOOP
        elif node.kind == "SWITCH_STMT":
            kinds = kinds - {"BREAK_STMT"}
        parts = node.parts
        if node.kind in ("IF_STMT", "SWITCH_STMT") and parts:
            varying = varying or self.varies(parts[0])
        return bool(kinds) and any(self.leaves(part, kinds, varying) for part in parts)

    def reason(self, condition: Node, what: str) -> str | None:
        return f"in {what} that depends on the thread" if self.varies(condition) else None

    def is_barrier(self, cursor: Any) -> bool:
        called = cursor.referenced
        return called is not None and (called.spelling == _BARRIER or called.get_usr() in self.barriers)
