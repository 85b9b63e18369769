"""Caches are bounded, by entries and by bytes; a cache that nobody thought of fails here."""

from __future__ import annotations

import ast
import gc
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.metal.simulator import library
from smelt.ir.settings import override
from smelt.lazy.execution import changing
from smelt.runtime import Buffer, LruCache, default_device

from ..architecture.sources import ROOMS, ROOT, python_files

pytestmark = pytest.mark.usefixtures("small_heap")

#: What modules keep, and what bounds it.
KEPT = {
    "backends/device.py devices": "the devices there are",
    "backends/device.py registered": "the devices there are",
    "backends/cuda/executable.py _compiling": "texts that are compiled right now",
    "backends/cuda/executable.py _ahead": "kernels of one plan",
    "backends/cuda/sequences.py _known": "the programs that live",
    "backends/dlpack.py _lent": "arrays that other libraries have",
    "backends/dlpack.py takers": "the devices there are",
    "backends/store.py _place": "one",
    "backends/metal/simulator/library.py _codes": "256 libraries, settings.cache_bytes",
    "backends/exchange/rules/table.py RULES": "the ops there are",
    "backends/exchange/rules/table.py LOOPS": "the ops there are",
    "frontend/exchange/onnx/graph.py RULES": "the ops of ONNX",
    "frontend/exchange/torch/graph.py RULES": "the ops of PyTorch that have a translation",
    "frontend/exchange/reading.py ELEMENTWISE": "the ops of StableHLO",
    "frontend/exchange/reading.py RULES": "the ops of StableHLO",
    "frontend/exchange/rules/library.py TARGETS": "the calls of libraries that are known",
    "backends/cuda/collectives.py _communicators": "the groups there are, and their messages",
    "backends/cuda/collectives.py _groups": "the groups there are, which programs name",
    "backends/cuda/collectives.py _lost": "one",
    "backends/cuda/driver.py checks": "one",
    "ir/lapack.py _rooms": "512 sizes of work space",
    "ir/locks.py _loaded": "the modules of the package",
    "runtime/warming.py _threads": "the devices there are",
    "passes/driver.py _parsed": "64 pipelines",
    "passes/kernels/place.py libraries": "the devices there are",
    "frontend/distributed/mpi.py _pending": "messages that are under way",
    "frontend/distributed/launched.py _numbered": "the groups there are, which programs name",
    "frontend/functions/methods.py _NO_NAMES": "empty",
    "frontend/lazy/core.py _memories": "functions that remember",
    "frontend/lazy/arrays.py _infer_cache": "10,000 types",
    "frontend/lazy/arrays.py _scalar_buffers": "1,000 numbers",
    "frontend/lazy/buffer_protocol.py _kept": "filled once",
    "frontend/lazy/core.py _free": "weak",
    "frontend/lazy/execution/changing.py _met": "settings.cache_size",
    "frontend/lazy/execution/changing.py _plans": "settings.cache_size, settings.cache_bytes",
    "frontend/lazy/execution/fragments.py constants": "settings.cache_size, settings.cache_bytes",
    "frontend/lazy/execution/fragments.py fragments": "settings.cache_size, settings.cache_bytes",
    "frontend/lazy/execution/device_plan.py _single": "settings.cache_size, settings.cache_bytes",
    "frontend/lazy/execution/direct.py _programs": "settings.cache_size, settings.cache_bytes",
    "frontend/lazy/execution/families.py families": "settings.cache_size, settings.cache_bytes",
    "frontend/lazy/execution/families.py _CHANGING": "the ops there are",
    "frontend/lazy/graph.py _attrs_keys": "4,096 sets of small attributes",
    "frontend/lazy/graph.py _plain_names": "the ops there are",
    "frontend/lazy/execution/known.py by_plan": "settings.cache_size",
    "frontend/lazy/evaluate.py _waiting": "the threads there are",
    "frontend/lazy/execution/kin.py _kins": "settings.cache_size, settings.cache_bytes",
    "frontend/lazy/sizeless.py _ways": "the ops there are",
    "frontend/lazy/execution/rolled.py searched": "settings.cache_size, settings.cache_bytes",
    "frontend/lazy/execution/steps.py _prepared": "10,000 steps",
    "frontend/lazy/execution/subgraphs.py executables": "settings.cache_size, settings.cache_bytes",
    "frontend/optimizers/base.py _memories": "one a class of smelt's optimizers; recipes by MOST_RECIPES",
    "frontend/transforms/linearize.py _divided": "settings.cache_size, settings.cache_bytes",
    "frontend/transforms/stage_names.py _stages": "the classes of a compiled function's stages",
    "frontend/lazy/static_keys.py _integers": "tuples of less than 100 integers",
    "frontend/lazy/execution/recorded.py _bodies": "settings.cache_size, settings.cache_bytes",
    "frontend/lazy/execution/strided.py _programs": "settings.cache_size, settings.cache_bytes",
    "frontend/lazy/execution/strided.py kernels": "settings.cache_size, settings.cache_bytes",
    "frontend/lazy/execution/tiers.py structures": "settings.cache_size",
    "frontend/lazy/graph.py _keys": "weak",
    "frontend/lazy/tree_nodes.py _adopted": "weak",
    "frontend/lazy/tree_nodes.py _attributes": "weak",
    "frontend/lazy/tree_nodes.py _registered": "weak",
    "frontend/transforms/turns.py under_way": "calls that run right now",
    "frontend/transforms/turns.py _waiting": "threads that wait right now",
    "frontend/lazy/core.py shadows": "traces that run right now",
    "frontend/transforms/versions.py _shared": "goes with its function; settings.cache_bytes each",
    "ir/attributes.py _decoded": "8,192 attributes, none of them long",
    "ir/context.py _avals": "8,192 types",
    "ir/context.py _loaders": "the dialects there are",
    "ir/custom_call.py _targets": "the targets that are registered",
    "ir/dialect.py _loaded": "the ops there are",
    "ir/ending.py _guards": "the code of one function",
    "ir/ending.py _held": "one lock",
    "ir/errors.py places_in_programs": "one function, of smelt.nn",
    "ir/errors.py internal_files": "10,000 names of files",
    "ir/locks.py _gates": "weak",
    "ir/locks.py _made": "weak",
    "ir/mlir.py _loaded": "the dialects there are",
    "ir/op.py _registry": "the ops there are",
    "ir/op_program.py _plain": "the ops there are",
    "ir/scopes.py _modules": "the modules that are alive",
    "ir/scopes.py _scopes": "weak",
    "passes/simplify/patterns.py _by_kind": "the patterns there are",
    "passes/simplify/patterns.py _by_name": "the patterns there are",
    "passes/simplify/patterns.py _foreign": "the patterns of other packages",
    "passes/simplify/patterns.py _tables": "the ops there are",
    "passes/registry.py _passes": "the passes there are",
    "tools/user_code.py _plugins": "the plugins that a command names",
    "passes/analysis.py _registered": "the analyses there are",
    "passes/rewrites/sets.py _sets": "the sets of rewrites there are",
    "passes/transform/tape_transforms.py _TRANSFORMS": "the transformations there are",
    "passes/transform/templates.py _templates": "4,096 rules",
    "passes/rules.py _rules": "the ops over functions there are",
    "runtime/compile.py _loaded": "the devices there are",
}
#: functools.cache on functions with arguments, and what bounds these.
FUNCTIONS = {
    "backends/cpu/hasty.py _annotation": "two kinds of loops",
    "backends/cpu/jit.py _manager": "two pipelines",
    "backends/cpu/kernel.py linkage": "three linkages",
    "backends/cuda/driver.py _context": "the GPUs there are",
    "backends/cuda/transfers.py ring": "two ways",
    "frontend/distributed/collectives.py _message_rule": "32,768 orders of derivatives of two kinds to each process",
    "frontend/distributed/collectives.py _rule": "five collectives of each group",
    "frontend/nn/layers/distributed.py _gather_mean": "the groups there are",
    "frontend/nn/layers/distributed.py _pair": "the groups there are",
    "ir/dtypes.py promote": "pairs of dtypes",
    "ir/errors.py _folders_of": "two sets of packages",
    "ir/mlir.py module": "the modules of the bindings",
    "ir/numpy_blas.py lapack_function": "sixty names",
    "ir/sorting.py _network": "twelve lengths",
    "passes/kernels/place.py needs": "goes with the call around it",
    "runtime/measure.py rates": "the devices there are",
    "tools/op_cases.py cases": "the ops there are",
    "tools/op_cases.py example": "the ops there are",
}
_CONTAINERS = ("dict", "set", "list", "OrderedDict", "defaultdict", "deque", "LruCache", "WeakSet",
               "WeakKeyDictionary", "WeakValueDictionary")  # fmt: skip


def containers(tree: ast.Module) -> Iterator[str]:
    """Names of empty containers that a module makes: those it means to fill."""
    for node in tree.body:
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
            continue
        target, value = node.targets[0] if isinstance(node, ast.Assign) else node.target, node.value
        empty = isinstance(value, (ast.Dict, ast.List, ast.Set)) and not ast.unparse(value).strip("{}[]")
        made = isinstance(value, ast.Call) and ast.unparse(value.func).rpartition(".")[2] in _CONTAINERS
        if (empty or made) and ast.unparse(target) not in ("__all__", "__path__", "NO_ATTRS"):
            yield ast.unparse(target)


def unbounded_functions(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.args.args:
            for decorator in map(ast.unparse, node.decorator_list):
                if decorator in ("functools.cache", "cache") or "maxsize=None" in decorator:
                    yield node.name


@pytest.mark.parametrize("found, listed", [(containers, KEPT), (unbounded_functions, FUNCTIONS)])
def test_every_cache_is_listed_with_its_bound(found: Any, listed: dict[str, str]) -> None:
    names = {
        f"{path.relative_to(ROOT).as_posix()} {name}"
        for path in python_files(*ROOMS)
        for name in found(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert names == set(listed)


def test_a_cache_is_bounded_by_bytes() -> None:
    cache = LruCache(weigh=len)
    with override(cache_bytes=100):
        for i in range(10):
            cache.get_or_make(i, lambda: b"x" * 30)
            cache.get(0)
        assert sorted(cache._entries) == [0, 8, 9] and cache.nbytes == 90
        cache.get_or_make("large", lambda: b"x" * 1000)
        assert list(cache._entries) == ["large"]  # the one used last stays
    with override(cache_size=0):
        cache.get_or_make("next", lambda: b"x")
        assert len(cache) == 1


def test_versions_are_bounded_by_what_they_captured() -> None:
    made: list[weakref.ref] = []

    @smelt.compile
    def f(x: Any) -> Any:
        weight = smelt.array(np.ones(100_000, np.float32))
        smelt.eval(weight)
        made.append(weakref.ref(weight._ref[0].values[0]))
        return x.sum() + weight

    with override(cache_bytes=1_500_000):
        for n in range(1, 9):
            assert f(smelt.ones((n,)))[0].item() == n + 1
        gc.collect()
        assert len(made) == 8 and len(f._store.entries) in (2, 3)
        assert sum(r() is not None for r in made) <= 3
        assert f(smelt.ones((8,)))[0].item() == 9 and len(made) == 8


def test_an_array_that_several_versions_captured_counts_once() -> None:
    weight = smelt.ones((200_000,)) * 2
    smelt.eval(weight)
    f = smelt.compile(lambda x: x.sum() + weight)
    with override(cache_bytes=1_500_000):
        for n in (1, 2, 3, 1, 2, 3):
            assert f(smelt.ones((n,)))[0].item() == n + 2
    assert len(f._store.entries) == 3 and f._store.traces == 3


@pytest.mark.tier("program")
def test_executables_of_lazy_graphs_are_bounded() -> None:
    from smelt.lazy.evaluate import executables

    with override(cache_bytes=600_000, small_work=0):
        for n in range(2, 12):
            assert (smelt.ones((n, 3)) * 3).sum().item() == 9 * n
        assert 1 <= len(executables) <= 8 and executables.nbytes <= 600_000


def test_a_plan_that_its_cache_dropped_is_gone_although_it_ran_last() -> None:
    """Its time until the next run of any plan is counted, and that may never come."""
    ran: list[list[Buffer]] = []

    class Plan:
        nbytes = 0

        def run(self, inputs: list[Buffer]) -> list[Buffer]:
            ran.append(inputs)
            return inputs

    first, second = [changing.Timed(Plan(), default_device()) for _ in range(2)]  # type: ignore[arg-type]
    first.run([])
    spent = first.spent
    second.run([])
    assert first.spent > spent
    last = weakref.ref(second)
    del second
    gc.collect()
    assert last() is None
    first.run([])
    assert len(ran) == 3


def test_libraries_of_the_simulator_are_bounded(tmp_path: Path) -> None:
    text = "kernel void f(device float* x [[buffer(0)]], uint i [[thread_position_in_grid]]) {{ x[i] = {}.0f; }}\n"
    with override(cache_bytes=0):
        for n in range(3):
            library.Library(text.format(n))
        assert len(library._codes) == 1
