"""What compiled functions keep alive, how long, and what is left after an exception."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

import smelt
from smelt.ir.settings import override, settings
from smelt.transforms.compiled_function import WARN_AFTER
from smelt.transforms.versions import MAX_VERSIONS

pytestmark = pytest.mark.usefixtures("small_heap")


@pytest.fixture(params=["program", "auto"], autouse=True)
def tier(request: pytest.FixtureRequest) -> Iterator[None]:
    """Programs at once, as in most tests, and op by op first, as for users."""
    with override(tier=request.param):
        yield


def live(references: list) -> int:
    gc.collect()
    return sum(r() is not None for r in references)


def test_lambdas_made_in_a_loop_do_not_leak() -> None:
    functions, compiled = [], []
    before = smelt.get_active_memory()
    for i in range(20):
        weight = smelt.array(np.full(300_000, i, np.float32))
        f = lambda x, weight=weight: x * weight  # noqa: E731
        c = smelt.compile(f)
        assert c(smelt.array([2.0]))[0].item() == 2.0 * i
        assert smelt.get_active_memory() - before >= 1_200_000
        functions.append(weakref.ref(f))
        compiled.append(weakref.ref(c))
        del f, c, weight
    assert (live(functions), live(compiled)) == (0, 0)
    assert smelt.get_active_memory() - before < 1_200_000  # of one array


def test_transformed_lambdas_do_not_leak() -> None:
    functions = []
    for i in range(10):
        f = lambda x, i=i: (x * float(i)).sum()  # noqa: E731
        smelt.compile(smelt.vmap(smelt.grad(f)))(smelt.ones((2, 3)))
        smelt.grad(smelt.compile(f))(smelt.ones(3))
        functions.append(weakref.ref(f))
        del f
    assert live(functions) == 0


def test_functions_passed_as_static_arguments_go_with_the_compiled_function() -> None:
    apply = smelt.compile(lambda g, x: g(x))
    references = []
    for i in range(3):
        g = lambda x, i=i: x + float(i)  # noqa: E731
        assert apply(g, smelt.array(1.0)).item() == 1.0 + i
        references.append(weakref.ref(g))
        del g
    del apply
    assert live(references) == 0


@pytest.mark.parametrize("evaluated", [False, True])
def test_a_model_goes_with_the_function_that_reads_it(evaluated: bool) -> None:
    models = []
    for _ in range(3):
        model = smelt.nn.Linear(4, 2)
        step = smelt.compile(model)
        x = smelt.ones((3, 4))
        if evaluated:
            smelt.eval(x)
        smelt.eval(step(x))
        models.append(weakref.ref(model))
        del model, step, x
    assert live(models) == 0


def test_a_cycle_of_a_model_and_its_compiled_step_is_collected() -> None:
    class Model:
        def __init__(self) -> None:
            self.w = smelt.array([1.0])
            self.step = smelt.compile(lambda x: self.w * x)

    model = Model()
    model.step(smelt.array([2.0]))
    reference = weakref.ref(model)
    del model
    assert live([reference]) == 0


def test_methods_compiled_in_the_class_do_not_keep_instances() -> None:
    class Model:
        def __init__(self, w: float) -> None:
            self.w = w

        def step(self, x):
            return self.w * x

    references = []
    for i in range(3):
        model = Model(float(i))
        step = smelt.compile(model.step)
        assert step(smelt.array(2.0)).item() == 2.0 * i
        references.append(weakref.ref(model))
        del model, step
    assert live(references) == 0


def test_arguments_are_not_kept() -> None:
    f = smelt.compile(lambda x: x * 2)
    f(smelt.ones(300_000))
    gc.collect()
    before = smelt.get_active_memory()
    for _ in range(5):
        x = smelt.array(np.ones(300_000, np.float32))
        y = f(x)
        smelt.eval(x, y)
        assert smelt.get_active_memory() - before >= 2_400_000
        del x, y
    gc.collect()
    assert smelt.get_active_memory() - before < 1_200_000


def test_dropped_versions_are_freed() -> None:
    class Key:
        """A static argument."""

    f = smelt.compile(lambda x, key: x + 1)
    keys = [Key() for _ in range(MAX_VERSIONS + 5)]
    references = [weakref.ref(k) for k in keys]
    with warnings.catch_warnings(), override(device="reference"):
        warnings.simplefilter("ignore")
        for k in keys:
            f(smelt.array(1.0), k)
    keys.clear()
    del k
    assert live(references) == MAX_VERSIONS


def test_the_least_recently_used_version_goes_first_and_comes_back() -> None:
    traces = []

    def f(x, n):
        traces.append(n)
        return x + n

    g = smelt.compile(f)
    with warnings.catch_warnings(), override(device="reference"):
        warnings.simplefilter("ignore")
        for n in range(MAX_VERSIONS + 1):
            assert g(smelt.array(1), n).item() == 1 + n
        assert g(smelt.array(1), 0).item() == 1
    assert traces.count(0) == 2
    assert len(g._store.entries) == MAX_VERSIONS


@pytest.mark.parametrize(
    ("calls", "reason"),
    [
        (lambda f: [f(smelt.ones(3), n) for n in range(WARN_AFTER)], r"argument 1: .*14.* → .*15"),
        (lambda f: [f(smelt.ones([1] * n), 0) for n in range(WARN_AFTER)], r"argument 0: f32\[1,1,.*\] → f32\[1,"),
        (lambda f: [f([smelt.ones(2)] * (n + 1), 0) for n in range(WARN_AFTER)], r"the argument tree|argument"),
    ],
    ids=["number", "shape", "tree"],
)
def test_a_warning_says_what_keeps_changing(calls, reason) -> None:
    f = smelt.compile(lambda x, n: sum(smelt.sum(a) for a in x) if isinstance(x, list) else x * n)
    with override(device="reference"), pytest.warns(UserWarning, match=reason) as caught:
        calls(f)
    (warning,) = [w for w in caught if "was traced" in str(w.message)]
    assert f"{WARN_AFTER} times" in str(warning.message)
    assert "test_compile_lifetimes.py" in str(warning.message)


def test_warnings_become_fewer() -> None:
    f = smelt.compile(lambda x, n: x * n)
    with override(device="reference"), pytest.warns(UserWarning, match="was traced") as caught:
        for n in range(5 * WARN_AFTER):
            f(smelt.ones(3), n)
    times = [int(re.search(r"traced (\d+) times", str(w.message)).group(1)) for w in caught]  # type: ignore[union-attr]
    assert times == [WARN_AFTER, 2 * WARN_AFTER, 4 * WARN_AFTER]


def test_no_warning_without_retracing() -> None:
    f = smelt.compile(lambda x: x * 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in range(50):
            f(smelt.array(float(n)))


@contextmanager
def disabled() -> Iterator[None]:
    smelt.disable_compile()
    try:
        yield
    finally:
        smelt.enable_compile()


def test_disable_and_enable_apply_to_functions_made_before_and_after() -> None:
    calls = []

    def f(x):
        calls.append(x.item() if settings.disable_compile else None)
        return x + 1

    before = smelt.compile(f)
    with disabled():
        after = smelt.compile(f)
        for g in (before, after, before):
            assert g(smelt.array(1.0)).item() == 2.0
        assert calls == [1.0] * 3
        nested = smelt.compile(smelt.vmap(smelt.grad(smelt.compile(lambda x: x**2))))
        assert nested(smelt.array([3.0])).tolist() == [6.0]
    for g in (before, after, before, after):
        assert g(smelt.array(1.0)).item() == 2.0
    assert calls == [1.0] * 3 + [None]  # both share the trace


def test_state_without_compile() -> None:
    state = [smelt.array(0.0)]

    def step(x):
        state[0] = state[0] + x

    f = smelt.compile(step, inputs=state, outputs=state)
    f(smelt.array(1.0))
    with disabled():
        f(smelt.array(2.0))
    f(smelt.array(4.0))
    assert state[0].item() == 7.0


@pytest.mark.parametrize(("value", "off"), [("0", False), ("", False), ("false", False), ("1", True), ("true", True)])
def test_smelt_disable_compile(value: str, off: bool) -> None:
    code = (
        "import smelt\ncalls = []\nf = smelt.compile(lambda x: calls.append(1) or x + 1)\n"
        "f(smelt.array(1.0)); f(smelt.array(2.0)); print(len(calls))\n"
        "smelt.enable_compile(); f(smelt.array(1.0)); f(smelt.array(1.0)); print(len(calls))"
    )
    environment = {**os.environ, "SMELT_DISABLE_COMPILE": value}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == (["2", "3"] if off else ["1", "1"]), done.stderr


class Stop(Exception):
    pass


WRAPPED = {
    "compile": smelt.compile,
    "grad": smelt.grad,
    "vmap": smelt.vmap,
    "compile(vmap(grad))": lambda f: smelt.compile(smelt.vmap(smelt.grad(f))),
    "grad(compile)": lambda f: smelt.grad(smelt.compile(f)),
    "checkpoint": lambda f: smelt.grad(smelt.checkpoint(f)),
    "fori_loop": lambda f: smelt.compile(lambda x: smelt.fori_loop(0, 3, lambda i, c: f(c), x)),
}


@pytest.mark.parametrize("name", WRAPPED)
def test_an_exception_while_tracing_leaves_everything_usable(name: str) -> None:
    broken = True

    def f(x):
        y = smelt.sin(x) * 2
        if broken:
            raise Stop
        return y

    g = WRAPPED[name](f)
    x = smelt.array([1.0]) if "vmap" in name else smelt.array(1.0)
    for _ in range(2):
        with pytest.raises(Stop):
            g(x)
        # Values can be asked for, so no trace is left open.
        assert (x + 1).reshape(()).item() == 2.0
        assert smelt.compile(smelt.grad(lambda x: x * x))(smelt.array(3.0)).item() == 6.0
    broken = False
    first = np.array(g(x))
    np.testing.assert_array_equal(np.array(g(x)), first)
    assert np.all(np.isfinite(first))


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (lambda x: x if x.sum() > 0 else -x, "TraceError"),
        (lambda x: x @ smelt.ones((7, 7)), "ShapeError"),
        (lambda x: x + np.ones(3) @ np.ones(4), "ValueError"),
        (lambda x: (yield x), "TreeError"),
        (lambda x: float(x[0]), "TraceError"),
    ],
)
def test_an_error_while_tracing_leaves_everything_usable(body, error: str) -> None:
    f = smelt.compile(body)
    for _ in range(2):
        with pytest.raises(Exception) as caught:
            f(smelt.ones(3))
        assert type(caught.value).__name__ == error
        assert smelt.compile(lambda x: x + 1)(smelt.array(1.0)).item() == 2.0
    assert len(f._store.entries) == 0


def test_a_failing_pipeline_leaves_everything_usable() -> None:
    f = smelt.compile(lambda x: x + 1, pipeline="nonsense")
    with pytest.raises(Exception, match="nonsense"):
        f(smelt.array(1.0))
    assert smelt.compile(lambda x: x + 1)(smelt.array(1.0)).item() == 2.0
    assert len(f._store.entries) == 0
