"""Passes and backends keep no lists of op names: they ask the op, and what it says of itself is true."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import numpy as np
import pytest

import smelt.ir.ops  # noqa: F401  (fills the registry)
from smelt.ir.op import Op, registry
from tests.ops.cases import Case, cases, sample

from .sources import ROOT, python_files

#: Names of Metal's functions, of passes, of what ops are in StableHLO and in NVIDIA's libraries, and of collectives.
OTHER_NAMES = (
    "backends/metal/emit/", "backends/exchange/rules/", "passes/call_graph.py", "backends/cuda/transforms.py",
    "backends/cuda/solvers/", "backends/gpu/schedules/calls.py", "backends/gpu/schedules/factorizations.py",
    "backends/cuda/collectives.py",
)  # fmt: skip


def _lists(tree: ast.AST) -> Iterator[tuple[int, list[str]]]:
    """Line and names of each tuple, list, set or dict with the names of two ops."""
    for node in ast.walk(tree):
        items = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else []
        items = node.keys if isinstance(node, ast.Dict) else items
        names = [i.value for i in items if isinstance(i, ast.Constant) and isinstance(i.value, str)]
        found = [name for name in names if name in registry]
        if len(found) > 1:
            yield node.lineno, found


def test_lists_are_seen() -> None:
    found = list(_lists(ast.parse('a = ("exp", "sin")\nb = {"add": 1, "mul": 2}\nc = ("exp", "x")\nf("exp", "sin")')))
    assert found == [(1, ["exp", "sin"]), (2, ["add", "mul"])]


def test_there_is_no_list_of_op_names() -> None:
    found = []
    for path in python_files("passes", "backends"):
        name, source = str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
        quoted = set(re.findall(r"""(?<=["'])\w+(?=["'])""", source))
        if not name.startswith(OTHER_NAMES) and len(quoted & registry.keys()) > 1:
            found += [f"{name}:{line}: {names}" for line, names in _lists(ast.parse(source))]
    assert not found, "\n".join(found)


def test_full_names_are_the_ops_own() -> None:
    """``f"smelt.{ReduceSum.name}"`` names an op that there is; a name spelled out may name none, and never match."""
    found = []
    for path in python_files("passes", "backends"):
        source = path.read_text(encoding="utf-8")
        if not re.search(r"""["']smelt\.""", source):
            continue
        strings = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Constant)]
        full = [s for s in strings if isinstance(s.value, str) and s.value.startswith("smelt.")]
        found += [f"{path}:{s.lineno}: {s.value}" for s in full if s.value.removeprefix("smelt.") in registry]
    assert not found, "\n".join(found)


def _branches(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of each comparison of the op that a pattern is tried on with a name."""
    for node in ast.walk(tree):
        sides = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
        names = [x.value for x in sides if isinstance(x, ast.Constant) and x.value in registry]
        if names and any(ast.unparse(x) == "at.op.name" for x in sides):
            yield node.lineno, names[0]


def test_branches_are_seen() -> None:
    found = list(_branches(ast.parse('a = at.op.name == "exp"\nb = inner.op.name == "sin"\nc = at.op.name == name')))
    assert found == [(1, "exp")]


def test_patterns_do_not_ask_which_of_their_ops_it_is() -> None:
    """What holds of some ops that a pattern is tried on is said by the op, or is a pattern of its own."""
    found = []
    for path in python_files("passes"):
        if "at.op.name" in (source := path.read_text(encoding="utf-8")):
            found += [f"{path.relative_to(ROOT)}:{line}: {name}" for line, name in _branches(ast.parse(source))]
    assert not found, "\n".join(found)


def _ops(attribute: str) -> list[Op]:
    found = [op for op in registry.values() if getattr(op, attribute)]
    assert found, attribute
    return found


def _run(op: Op, case: Case, arrays: list[np.ndarray]) -> np.ndarray:
    return np.asarray(op.reference(*arrays, **case.kwargs))


def _drawn(op: Op) -> Iterator[tuple[Case, list[np.ndarray]]]:
    rng = np.random.default_rng(3)
    for case in cases(op):
        yield case, [sample(aval, rng) for aval in case.avals]


@pytest.mark.parametrize("op", _ops("idempotent"), ids=lambda op: op.name)
def test_equal_elements_reduce_to_the_element(op: Op) -> None:
    for case, (x,) in _drawn(op):
        if x.size:
            equal = np.full_like(x, x.flat[0])
            assert (_run(op, case, [equal]) == x.flat[0]).all()


@pytest.mark.parametrize("op", _ops("repeated"), ids=lambda op: op.name)
def test_equal_integers_reduce_to_a_multiple_or_power(op: Op) -> None:
    found = 0
    for case, (x,) in _drawn(op):
        if x.size and x.dtype.kind in "iu":
            result = _run(op, case, [np.full_like(x, x.flat[0])])
            equal = np.full(x.size // result.size, x.flat[0])
            one = (equal.sum if op.repeated == "multiple" else equal.prod)(dtype=x.dtype)
            assert (result == one).all()
            found += 1
    assert found


@pytest.mark.parametrize("op", _ops("extremum"), ids=lambda op: op.name)
def test_an_extremum_is_one(op: Op) -> None:
    for case, (x,) in _drawn(op):
        assert np.array_equal(_run(op, case, [x]), getattr(np, op.extremum)(x, axis=case.kwargs["axes"]))


@pytest.mark.parametrize("op", _ops("gives_positions"), ids=lambda op: op.name)
def test_positions_lie_on_the_axis(op: Op) -> None:
    for case, arrays in _drawn(op):
        found = _run(op, case, arrays)
        shape = arrays[0].shape if arrays else found.shape
        if found.size:
            assert found.min() >= 0 and found.max() < shape[case.kwargs["axis"]]


@pytest.mark.parametrize("op", _ops("odd_operands"), ids=lambda op: op.name)
def test_an_odd_operand_negates_the_result(op: Op) -> None:
    for case, arrays in _drawn(op):
        for i in op.odd_operands:
            if arrays[i].dtype.kind in "iufc":
                negated = [-a if k == i else a for k, a in enumerate(arrays)]
                assert np.array_equal(_run(op, case, negated), -_run(op, case, arrays))


@pytest.mark.parametrize("op", _ops("complement"), ids=lambda op: op.name)
def test_a_complement_is_one(op: Op) -> None:
    other = registry[op.complement]
    assert other.complement == op.name
    for case, (x, y) in _drawn(op):
        for pair in ([x, y], [x, x], [np.full_like(x, np.nan), y] if x.dtype.kind == "f" else [y, x]):
            assert np.array_equal(_run(op, case, pair), ~_run(other, case, pair))


def _asked_by_name(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and op of each comparison of a name, or check of a class, where the op has a formula."""
    classes = {type(op).__name__: op.name for op in registry.values() if op.formula}
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and ast.unparse(node.left).endswith(".name"):
            named = [x.value for c in node.comparators for x in ast.walk(c) if isinstance(x, ast.Constant)]
            found = [x for x in named if x in classes.values()]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
            found = [classes[x.id] for x in ast.walk(node.args[1]) if isinstance(x, ast.Name) and x.id in classes]
        else:
            continue
        yield from ((node.lineno, x) for x in found)


def test_questions_by_name_are_seen() -> None:
    found = _asked_by_name(ast.parse('x.name == "exp"\nisinstance(x.op, Add | Convert)\nx.op.formula == "exp(x)"'))
    assert list(found) == [(1, "exp"), (2, "add")]


def test_forms_are_recognized_by_formulas() -> None:
    """So that ops of other packages take part in them (`Op.formula`)."""
    found = []
    for path in python_files("passes", "backends"):
        name = str(path.relative_to(ROOT))
        if not name.startswith(OTHER_NAMES):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            found += [f"{name}:{line}: {op}" for line, op in _asked_by_name(tree)]
    assert not found, "\n".join(found)
