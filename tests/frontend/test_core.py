"""The core of recording is there in C and in Python: both are the same, and smelt does without the first."""

from __future__ import annotations

import gc
import os
import re
import shutil
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest

import smelt
from smelt.lazy import core, graph
from smelt.lazy.core import LEAF, PARAMETER, Node, leaf

pytestmark = pytest.mark.usefixtures("small_heap")

ROOT = Path(__file__).resolve().parents[2]
WAYS = ["python", "c"] if core.native is not None else ["python"]


def run(code: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment}
    )


def test_both_have_the_same_interface() -> None:
    source = "".join(
        (ROOT / "frontend/lazy/native" / name).read_text(encoding="utf-8") for name in ("core.h", "memory.c")
    )
    assert re.search(r"#define INTERFACE (\d+)", source).group(1) == str(core.INTERFACE)  # type: ignore[union-attr]
    assert re.search(r"#define MOST_ENTRIES (\d+)", source).group(1) == str(core.MOST_ENTRIES)  # type: ignore[union-attr]


@pytest.mark.parametrize("way", [w for w in WAYS if (w == "python") is not (core.native is None)])
def test_what_uses_the_core_works_with_each(way: str) -> None:
    """With the other than the one that this process, and so the whole suite, has."""
    files = [f"tests/frontend/test_{name}.py" for name in ("remembered", "handles", "repeated_calls", "steps")]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--sample", "4", *files]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "SMELT_CORE": way, "PYTEST_ADDOPTS": ""}
    )
    assert done.returncode == 0, done.stdout[-3000:]


def test_the_setting_chooses() -> None:
    code = "import smelt; from smelt.lazy import core; print(core.native is None)"
    assert run(code, SMELT_CORE="python").stdout == "True\n"
    assert run(code, SMELT_CORE="nonsense").returncode == 0  # no import fails for a setting's value
    chosen = run(code, SMELT_CORE="c")
    assert chosen.stdout == "False\n" or "SettingError" in chosen.stderr


def test_a_node_says_what_it_is_and_forgets() -> None:
    x = smelt.array([1.0, 2.0])
    y = x * x
    node = y._ref[0]
    assert (node.op.name, node.attrs, node.inputs, node.values) == ("mul", {}, (x._ref, x._ref), None)
    assert node.traced == 0 and node.where[0].co_name == "test_a_node_says_what_it_is_and_forgets"
    watched = weakref.ref(node)
    node.detach()
    assert node.op is LEAF and node.inputs == () and node.attrs == {}
    del node, y
    assert watched() is None


def test_a_cycle_of_nodes_is_collected() -> None:
    attrs: dict[str, Any] = {}
    node = Node(LEAF, attrs, (), ())
    attrs["itself"] = node
    watched = weakref.ref(node)
    del node, attrs
    gc.collect()
    assert watched() is None


def test_leaves_and_nodes_in_a_trace_know_it() -> None:
    seen: list[int] = []

    def f(x: smelt.array) -> smelt.array:
        y = x + 1.0
        seen.append(y._ref[0].traced)
        seen.append(leaf(smelt.array(1.0)._buffer).traced)
        return y

    smelt.compile(f)(smelt.array(1.0))
    assert seen[0] > 0 and seen[0] == seen[1]


def test_wrong_arguments_are_refused_and_nothing_breaks() -> None:
    empty = Node.__new__(Node)
    with pytest.raises(AttributeError):
        empty.op  # noqa: B018
    empty.avals, empty.where = (), None
    assert empty.avals == ()
    for arguments in ((1,), (LEAF, {}, [], ()), (LEAF, {}, (), [])):
        if core.native is not None:
            with pytest.raises(TypeError):
                Node(*arguments)
            with pytest.raises(TypeError):
                core.call(*arguments)
    if core.native is not None:
        empty.op, empty.attrs, empty.inputs, empty.prepared = LEAF, {}, (), [False]
        del empty.avals
        reader = Node(LEAF, {}, ((empty, 0),), ())
        reader.prepared = [False]
        with pytest.raises(TypeError):
            core.native.plan([(reader, 0)])


def test_recording_leaks_nothing() -> None:
    x = smelt.array([[1.0, 2.0], [3.0, 4.0]])
    smelt.eval(x)

    def work() -> None:
        smelt.softmax(x + 1.0, axis=-1)
        smelt.split(x * 2, 2, axis=0)
        smelt.where(x > 0.0, x, 0.0).sum(axis=(0, 1), keepdims=True)
        with pytest.raises(ValueError):
            x @ smelt.array([1.0, 2.0, 3.0])

    for _ in range(20):
        work()
    gc.collect()
    before = len(gc.get_objects()), sys.getrefcount(x._ref), sys.getrefcount(x.aval), sys.getrefcount(x.shape)
    for _ in range(50):
        work()
    gc.collect()
    after = len(gc.get_objects()), sys.getrefcount(x._ref), sys.getrefcount(x.aval), sys.getrefcount(x.shape)
    assert after[1:] == before[1:] and after[0] <= before[0] + 50


def test_a_list_that_changes_in_a_call_is_no_wrong_key() -> None:
    """Its key is that of the list before the change, or after."""
    code = """
import faulthandler; faulthandler.enable()
import sys, threading
import smelt
from smelt.lazy.core import call, memory_of
x = smelt.zeros((1000, 1000))
shape = [int("1000000"), 1]
def clear(frame, event, arg):  # the first use of the state in a thread runs code of Python
    if event == "call" and frame.f_code.co_name == "__init__":
        shape.clear()
def work():
    sys.setprofile(clear)
    try:
        call(memory_of(smelt.reshape), (x, shape), {})
    except ValueError:
        pass
    finally:
        sys.setprofile(None)
thread = threading.Thread(target=work); thread.start(); thread.join()
assert not shape
print(list(memory_of(smelt.reshape).outside)[-1][-3:])
"""
    done = run(code, PYTHONMALLOC="debug")
    keys = "(1000000, <class 'int'>, 1)\n", "(smelt.float32, <class 'list'>, 0)\n"
    assert done.returncode == 0 and done.stdout in keys, done.stderr[-2000:]


def test_a_collection_may_change_what_computes_a_node() -> None:
    code = """
import faulthandler; faulthandler.enable()
import gc
import smelt
from smelt.lazy.core import memory_of
x = smelt.array([1.0, 2.0])
smelt.softmax(x, 0).tolist()
memos = [step.memo for step in list(memory_of(smelt.softmax).outside.values())[0].steps if step.memo[0]]
assert memos
def another(phase, info):
    if phase == "start":
        for memo in memos:
            memo[0] = memo[0]._replace()
gc.callbacks.append(another)
gc.set_threshold(1)
made = []
for _ in range(200):
    made.append(smelt.softmax(x, 0))
"""
    done = run(code, PYTHONMALLOC="debug")
    assert done.returncode == 0, done.stderr[-2000:]


def test_without_a_compiler_it_is_built_without_the_core(tmp_path: Path) -> None:
    code = (
        "import os, sys, build_backend; build_backend.PACKAGE = sys.argv[1]; build_backend.build_core();"
        "print(os.listdir(sys.argv[1]))"
    )
    environment = {**os.environ, "CC": str(tmp_path / "no compiler")}
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0 and done.stdout.endswith("[]\n"), done.stderr


@pytest.mark.skipif((os.cpu_count() or 1) < 2 or not shutil.which("cc"), reason="needs two processors and a compiler")
def test_sources_are_compiled_at_the_same_time(tmp_path: Path) -> None:
    """By a compiler that waits until another one runs; what it makes is the module."""
    compiler = tmp_path / "compiler"
    compiler.write_text(
        f"#!{sys.executable}\nimport os, subprocess, sys, time\n"
        f"if '-c' in sys.argv:\n    here = {str(tmp_path)!r}\n"
        "    open(f'{here}/{os.getpid()}.runs', 'w').close()\n    end = time.time() + 60\n"
        "    while sum(name.endswith('.runs') for name in os.listdir(here)) < 2:\n"
        "        assert time.time() < end\n        time.sleep(0.01)\n"
        "sys.exit(subprocess.run(['cc', *sys.argv[1:]]).returncode)\n"
    )
    compiler.chmod(0o755)
    for name in ("one", "other"):
        (tmp_path / f"{name}.c").write_text(f"int {name}(void) {{ return {len(name)}; }}\n")
    code = (
        "import ctypes, glob, os, sys, build_backend; build_backend.PACKAGE = build_backend.ROOT = sys.argv[1];"
        "os.chdir(sys.argv[1]); build_backend._build('both', ['one.c', 'other.c']);"
        "made = ctypes.CDLL(glob.glob(sys.argv[1] + '/both*')[0]); print(made.one(), made.other())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, capture_output=True, text=True,
        env={**os.environ, "CC": str(compiler), "LDSHARED": "cc -shared"},
    )  # fmt: skip
    assert done.returncode == 0 and done.stdout.endswith("3 5\n"), done.stderr


def test_nodes_are_sorted_inputs_first_and_each_once() -> None:
    x = smelt.array(1.0)
    nodes = [x + 1.0]
    for i in range(40):
        nodes.append(nodes[i] * nodes[i * 7 // 9])
    refs = [y._ref for y in (nodes[-1], nodes[20], nodes[-1], nodes[-2])]
    order = core.topological(refs)
    place = {node: i for i, node in enumerate(order)}
    assert len(place) == len(order) and order[-1] is nodes[-1]._ref[0]
    assert all(place[n] < i for i, node in enumerate(order) for n, _ in node.inputs if n.values is None)
    assert all(node.values is None for node in order)
    below = nodes[10]._ref[0]
    cut = core.topological(iter(refs), stop=lambda n: n is below or n.values is not None)
    assert below not in cut and set(cut) < set(order)
    assert core.topological([]) == [] and core.topological([x._ref]) == []
    with pytest.raises(ZeroDivisionError):
        core.topological(refs, lambda n: 1 / 0)
    for wrong in ([None], [(1, 2)], [(x,)]):
        if core.native is not None:
            with pytest.raises(TypeError):
                core.topological(wrong)


def test_a_deep_chain_is_sorted_without_recursion() -> None:
    x = smelt.array(1.0)
    for _ in range(100_000):
        x = smelt.negative(x)
    assert len(core.topological([x._ref])) == 100_000


def test_what_depends_on_parameters_is_cut_out() -> None:
    x, y = smelt.array([1.0, 2.0]), smelt.array([3.0, 4.0])
    a, b = smelt.exp(x), smelt.sin(y)
    twice = [a * b, a + a]
    outs = [(twice[0] - y)._ref, twice[1]._ref, b._ref, x._ref, a._ref]
    for parameters in ([a._ref], [x._ref], [x._ref, b._ref], [(a._ref[0], 0), y._ref]):
        nodes, captured = graph.cut(parameters, outs)
        body, used = graph.dependent_on(iter(parameters), outs)
        assert [step.node for step in body] == nodes and used == captured
        assert [type(step) for step in body] == [graph.RecordedNode] * len(nodes)
        assert [tuple(step) for step in body] == [tuple(step) for step in graph.snapshot(nodes)]
    assert graph.dependent_on([], []) == ([], [])
    if core.native is not None:
        for wrong in ([None], [(1, 2)], [(x,)]):
            with pytest.raises(TypeError):
                graph.dependent_on([x._ref], wrong)


def test_a_parameter_is_found_wherever_it_stands() -> None:
    x = smelt.array([1.0, 2.0])
    parameter = Node(PARAMETER, {}, (), x._ref[0].avals)
    free = smelt.exp(x)
    bound = (Node(free._ref[0].op, {}, ((parameter, 0),), free._ref[0].avals), 0)
    for _ in range(2):  # what was found is not taken for free the next time
        assert core.parameter_below([free._ref, bound]) is parameter
        assert core.parameter_below([(parameter, 0)]) is parameter
        assert core.parameter_below([free._ref, x._ref]) is None
    assert core.parameter_below([]) is None
    chain = free
    for _ in range(100_000):
        chain = smelt.negative(chain)
    assert core.parameter_below([chain._ref]) is None and core.parameter_below([chain._ref, bound]) is parameter


@pytest.mark.skipif(core.native is None, reason="there is no core in C")
def test_memory_that_runs_out_anywhere_is_an_error_and_no_crash() -> None:
    code = """
import faulthandler; faulthandler.enable()
import _testcapi
import smelt
from smelt.lazy import core, graph
from smelt.lazy.core import memory_of
x = smelt.array([[1.0, 2.0], [3.0, 4.0]])
add, split, total = map(memory_of, (smelt.add, smelt.split, smelt.softmax))
def work():
    y = core.call(add, (core.call(add, (x, 1.5), {}), x), {})
    core.call(split, (y, 2), {"axis": 0}); core.call(total, (y,), {"axis": (0, 1)})
    core.topological([y._ref]); core.leaf(x._buffer); core.parameter_below([y._ref])
    graph.dependent_on([x._ref], [y._ref])
work()
failed = 0
for start in range(200):
    try:
        _testcapi.set_nomemory(start, start + 1)
        work()
    except MemoryError:
        failed += 1
    finally:
        _testcapi.remove_mem_hooks()
work()
print(failed)
"""
    pytest.importorskip("_testcapi")
    done = run(code, PYTHONMALLOC="debug")
    assert done.returncode == 0 and int(done.stdout) > 20, done.stderr[-2000:]


class _Model:
    """Something that holds arrays without values, made by functions that hold it."""

    k: smelt.array
    y: Any


def _unevaluated(how: str) -> _Model:
    """A model whose results have no values yet."""
    model = _Model()
    model.k = smelt.array([2.0, 3.0])
    rule = smelt.custom_function(lambda x: x * model.k)
    functions = {
        "compile": smelt.compile(lambda x: x * model.k), "vmap": smelt.vmap(lambda x: rule(x[None])[0]),
        "grad": smelt.grad(lambda x: rule(x).sum()), "plain": lambda x: x * model.k,
    }  # fmt: skip
    model.y = smelt.softmax(functions[how](smelt.array([1.0, 2.0]) + 1.0) * 2.0) + 1.0, rule
    return model


@pytest.mark.parametrize("how", ["compile", "vmap", "grad", "plain"])
def test_what_waits_for_its_value_is_collected_with_what_it_was_made_by(how: str) -> None:
    watched = weakref.ref(_unevaluated(how))
    gc.collect()
    assert watched() is None


@pytest.mark.skipif(core.native is None or sys.version_info >= (3, 14), reason="what Python's collector counts")
def test_nodes_take_the_memory_of_those_that_are_gone() -> None:
    """Python's collector counts what is made anew: the nodes of each step of a model would bring it."""
    x = smelt.array([1.0, 2.0])

    def recorded(n: int) -> int:
        before = gc.get_count()[0]
        kept = [x + x for _ in range(n)]
        return gc.get_count()[0] - before + 0 * len(kept)

    gc.collect()
    gc.disable()
    try:
        recorded(20_000)  # more than are kept for later, of which there are as many as can be from now on
        assert recorded(500) < 600  # the arrays
        before = gc.get_count()[0]
        recorded(20_000)
        assert gc.get_count()[0] <= before + 600
    finally:
        gc.enable()
