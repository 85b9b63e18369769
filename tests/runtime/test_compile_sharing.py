"""Compiling one function twice shares its programs, unless what it refers to has changed; nothing is kept alive."""

from __future__ import annotations

import functools
import gc
import sys
import types
import warnings
import weakref
from typing import Any

import pytest

import smelt
from smelt.ir.errors import PipelineError
from smelt.ir.settings import override
from smelt.transforms.compiled_function import _compiled
from smelt.transforms.versions import MAX_VERSIONS, _shared

pytestmark = pytest.mark.usefixtures("small_heap")

X = smelt.array(2.0)
SCALE: Any = 3.0
HELD: dict[str, Any] = {"w": smelt.array(3.0)}


class Counting:
    """Calls of a function while it is traced."""

    def __init__(self) -> None:
        self.traces = 0

    def function(self, x: smelt.array) -> smelt.array:
        self.traces += 1
        return x * 3

    def __call__(self, x: smelt.array) -> smelt.array:
        return self.function(x)


@pytest.fixture(autouse=True)
def on_reference(monkeypatch: pytest.MonkeyPatch) -> Any:
    """On the reference device; whatever order the tests come in, `SCALE` is what it was."""
    monkeypatch.setattr(sys.modules[__name__], "SCALE", SCALE)
    with override(device="reference"):
        yield


def test_a_function_compiled_again_and_again_is_traced_once() -> None:
    traces = []

    def f(x):
        traces.append(len(traces))
        return x * SCALE

    for _ in range(5):
        assert smelt.compile(f)(X).item() == 6.0
    assert len(traces) == 1
    assert smelt.compile(f)(smelt.ones(2)).tolist() == [3.0, 3.0]
    assert smelt.compile(f)(smelt.ones(2)).tolist() == [3.0, 3.0]
    assert len(traces) == 2


def test_methods_and_callable_objects() -> None:
    counting = Counting()
    for _ in range(4):
        assert smelt.compile(counting.function)(X).item() == 6.0
        assert smelt.compile(counting)(X).item() == 6.0
    assert counting.traces == 2
    other = Counting()
    smelt.compile(other.function)(X)
    assert (counting.traces, other.traces) == (2, 1)


def test_other_options_share_nothing() -> None:
    counting = Counting()
    state: dict[str, Any] = {}
    for _ in range(2):
        smelt.compile(counting)(X)
        smelt.compile(counting, pipeline="inline,canonicalize")(X)
        smelt.compile(counting, inputs=state)(X)  # those with state stand alone
    assert counting.traces == 4


def helper(x: smelt.array) -> smelt.array:
    return x * SCALE


class Layer:
    def __init__(self) -> None:
        self.w = smelt.array(3.0)
        self.inner = [{"w": smelt.array(1.0)}]

    def __call__(self, x: smelt.array) -> smelt.array:
        return x * self.w * self.inner[0]["w"]


LAYER = Layer()


def in_layer() -> None:
    LAYER.w = smelt.array(4.0)


def in_place() -> None:
    HELD["w"] += 1


def deep_inside() -> None:
    LAYER.inner[0]["w"] = smelt.array(2.0)


def a_global() -> None:
    global SCALE
    SCALE = SCALE + 1


def an_entry() -> None:
    HELD["w"] = smelt.array(7.0)


CHANGES = {
    "a global": (lambda x: x * SCALE, a_global),
    "a global of a function that is called": (lambda x: helper(x) + 0, a_global),
    "a global of an inner function": (lambda x: (lambda y: y * SCALE)(x), a_global),
    "an entry of a dict": (lambda x: x * HELD["w"], an_entry),
    "an array in place": (lambda x: x * HELD["w"], in_place),
    "an attribute": (lambda x: LAYER(x), in_layer),
    "an object's attribute": (LAYER, in_layer),
    "a method's object": (LAYER.__call__, in_layer),
    "deep inside": (lambda x: LAYER(x), deep_inside),
    "partial": (functools.partial(lambda layer, x: layer(x), LAYER), in_layer),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_changes_around_a_function_is_seen_by_the_next_compile(name: str) -> None:
    f, change = CHANGES[name]
    for _ in range(2):
        assert smelt.compile(f)(X).item() == f(X).item()
        change()
        assert smelt.compile(f)(X).item() == f(X).item()
        assert smelt.compile(f)(X).item() == f(X).item()


def test_closures_and_defaults() -> None:
    k: Any = 1.0

    def f(x, n=2.0):
        return x * k * n

    assert smelt.compile(f)(X).item() == 4.0
    k = 2.0
    assert smelt.compile(f)(X).item() == 8.0
    f.__defaults__ = (3.0,)
    assert smelt.compile(f)(X).item() == 12.0
    k = smelt.array(5.0)
    assert smelt.compile(f)(X).item() == 30.0


def test_what_changed_between_compile_and_trace_is_not_shared() -> None:
    k: Any = 1.0

    def f(x):
        return x * k

    early = smelt.compile(f)
    k = 2.0
    assert early(X).item() == 4.0
    k = 1.0
    assert smelt.compile(f)(X).item() == 2.0


def test_functions_in_a_loop_leave_nothing() -> None:
    """Functions, methods, objects, arrays that they close over; with versions, and never called."""
    gc.collect()
    before, references = len(_shared), []

    class Model:
        def __init__(self) -> None:
            self.w = smelt.array([1.0])

        def step(self, x):
            return self.w * x

        __call__ = step

    def recursive(x):
        return x if x.ndim else smelt.compile(recursive)(x[None])

    for i in range(10):
        w, model = smelt.array([float(i)]), Model()
        box: dict[str, Any] = {"w": w}
        f = lambda x, w=w: x * w  # noqa: E731
        f.box = box  # type: ignore[attr-defined]
        box["f"] = f  # a cycle through what is looked at
        g = functools.partial(f)
        compiled = [smelt.compile(c) for c in (f, g, model, model.step)]
        for c in compiled[i % 2 :]:
            c(smelt.ones(1))
        references += [weakref.ref(x) for x in (f, g, model, w, *compiled)]
        del w, model, box, f, g, compiled, c
    gc.collect()
    assert [r for r in references if r() is not None] == []
    assert len(_shared) == before


def test_versions_used_last_stay() -> None:
    traces = []

    def f(x, n):
        traces.append(n)
        return x + n

    g = smelt.compile(f)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n in range(MAX_VERSIONS + 20):
            assert g(smelt.array(1), n).item() == 1 + n
            assert g(smelt.array(1), 0).item() == 1
            assert smelt.compile(f)(smelt.array(1), 1).item() == 2
        traces.clear()
        for n in (0, 1, MAX_VERSIONS + 19, MAX_VERSIONS):
            g(smelt.array(1), n)
        assert traces == []
        g(smelt.array(1), 2)
        assert traces == [2]


def test_threads_share_versions() -> None:
    import threading

    traces, wrong = [], []

    def f(x, n):
        traces.append(n)
        return x + n

    def work() -> None:
        for i in range(60):
            n = i % 7
            if smelt.compile(f)(smelt.array(1), n).item() != 1 + n:
                wrong.append(n)

    threads = [threading.Thread(target=work) for _ in range(4)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not wrong
    assert len(traces) < 60


@pytest.mark.parametrize("error", [KeyError, AttributeError, AssertionError])
def test_a_pipeline_is_blamed_only_where_one_was_given(monkeypatch: pytest.MonkeyPatch, error: type) -> None:
    """A mistake in a backend stays what it is, with the default pipeline, also where that is written out."""
    import smelt.transforms.compiled_function as compilation

    def broken(*_: Any, **__: Any) -> Any:
        raise error("the backend's own")

    monkeypatch.setattr(compilation, "program_of", broken)
    for pipeline in (None, smelt.default_device().pipeline):
        with pytest.raises(error, match="the backend's own"):
            _compiled(types.SimpleNamespace(parameters=[], body=[], outputs=[]), [], pipeline, "f")
        with pytest.raises(error, match="the backend's own"):
            smelt.compile(lambda x: x + 1, pipeline=pipeline)(X)
    with pytest.raises(PipelineError, match="canonicalize"):
        smelt.compile(lambda x: x + 1, pipeline="canonicalize")(X)
