"""Threads that look at the state of a function while another one traces it: they see a value, never a placeholder."""

from __future__ import annotations

import copy
import linecache
import pickle
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import numpy as np
import pytest

import smelt
from smelt import nn
from smelt.lazy import arrays, exports, traced_state
from smelt.lazy.arrays import wrap
from smelt.lazy.core import hooks, shadows
from smelt.lazy.traced_state import TracedArray, TracedState


class Aside:
    """A thread that runs functions while the one that asks for it waits."""

    def __init__(self) -> None:
        self._asked, self._done = threading.Semaphore(0), threading.Semaphore(0)
        self._function: Callable[[], Any] | None = None
        self._result: Any = None
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            self._asked.acquire()
            if self._function is None:
                return
            try:
                self._result = self._function()
            except BaseException as error:
                self._result = error
            self._done.release()

    def run(self, function: Callable[[], Any]) -> Any:
        self._function = function
        self._asked.release()
        assert self._done.acquire(timeout=60)
        if isinstance(self._result, BaseException):
            raise self._result
        return self._result

    def end(self) -> None:
        self._function = None
        self._asked.release()
        self._thread.join(60)


@pytest.fixture
def aside() -> Iterator[Aside]:
    thread = Aside()
    yield thread
    thread.end()
    assert not shadows


#: Ways to look at an array; each gives its elements as a list.
LOOKS: dict[str, Callable[[smelt.array], Any]] = {
    "tolist": lambda x: x.tolist(),
    "numpy": lambda x: np.asarray(x).tolist(),
    "memoryview": lambda x: np.asarray(memoryview(x)).tolist(),
    "dlpack": lambda x: np.from_dlpack(x).tolist(),
    "text": lambda x: eval(repr(x).partition("(")[2].partition("]")[0] + "]"),
    "items": lambda x: [x[i].item() for i in range(x.shape[0])],
    "iterated": lambda x: [float(y) for y in x],
    "arithmetic": lambda x: (x * 2 + 0 * smelt.sum(x) - x).tolist(),
    "method": lambda x: x.reshape(-1).tolist(),
    "function": lambda x: smelt.concatenate([x, x])[: x.size].tolist(),
    "named": lambda x: smelt.add(a=x, b=0).tolist(),
    "gradient": lambda x: smelt.grad(lambda y: smelt.sum(y * y) / 2)(x).tolist(),
    "mapped": lambda x: smelt.vmap(lambda y: y * 1)(x).tolist(),
    "compiled": lambda x: smelt.compile(lambda y: y + 0)(x).tolist(),
    "evaluated": lambda x: (smelt.eval(x), (x + 0).tolist())[1],
    "begun": lambda x: (smelt.async_eval([x]), (x + 0).tolist())[1],
    "array": lambda x: smelt.array(x).tolist(),
    "copied": lambda x: copy.deepcopy(x).tolist(),
    "pickled": lambda x: pickle.loads(pickle.dumps(x)).tolist(),
    "stacked": lambda x: smelt.array([x, x])[0].tolist(),
}


@pytest.mark.parametrize("core", ["array", "entry"])
@pytest.mark.parametrize("look", LOOKS)
def test_a_look_at_what_is_traced(aside: Aside, look: str, core: str) -> None:
    """At an array that the trace has put a placeholder into, and at a result that it has put into a dict."""
    state = {"w": smelt.array([1.0, 2.0]), "n": smelt.array([5.0, 6.0])}
    seen: list[Any] = []

    def step(x: smelt.array) -> smelt.array:
        if core == "entry":
            state["w"] = state["w"] * x + 1
        seen.append(aside.run(lambda: LOOKS[look](state["w"])))
        state["w"] = state["w"] * 1
        return x + state["n"]

    f = smelt.compile(step, inputs=state, outputs=state)
    f(smelt.array(3.0))
    after = [4.0, 7.0] if core == "entry" else [1.0, 2.0]
    assert seen == [after] and state["w"].tolist() == after
    assert f(smelt.array(3.0)).tolist() == [8.0, 9.0]
    assert state["w"].tolist() == ([13.0, 22.0] if core == "entry" else after)
    assert all(type(x) is smelt.array for x in state.values())


@pytest.mark.parametrize("entry", [False, True])
def test_what_was_read_during_a_trace_has_a_value_after_it(aside: Aside, entry: bool) -> None:
    """An array that was taken out of the state, and one that was computed from it."""
    state = {"w": smelt.array([1.0, 2.0])}
    read: list[Any] = []

    def step() -> None:
        if entry:
            state["w"] = state["w"] + 1
        read.append(aside.run(lambda: (state["w"], smelt.exp(state["w"]))))

    smelt.compile(step, inputs=state, outputs=state)()
    (x, y), expected = read[0], [2.0, 3.0] if entry else [1.0, 2.0]
    assert aside.run(x.tolist) == expected and x.tolist() == expected
    np.testing.assert_allclose(np.asarray(y), np.exp(expected), rtol=1e-6)


#: Ways to make an entry of the state that depends on no argument.
CONSTANTS: dict[str, Callable[[], smelt.array]] = {
    "zeros": lambda: smelt.zeros((2,)),
    "number": lambda: smelt.array(0.0),
    "computed": lambda: smelt.exp(smelt.arange(2.0)) * 0,
    "in a gradient": lambda: smelt.grad(lambda x: x * smelt.exp(smelt.array(1.0)))(smelt.array(2.0)) * 0,
    "in a mapped function": lambda: smelt.vmap(lambda x: x * smelt.exp(smelt.array(1.0)))(smelt.zeros((2,))),
    "by a compiled function": lambda: smelt.compile(lambda: smelt.zeros((2,)) + 0)(),
}


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("constant", CONSTANTS)
def test_constants_of_a_trace(aside: Aside, constant: str, inside: bool) -> None:
    """What another thread evaluates stays a part of the trace, also one that is left by a trace inside."""
    state = {"w": smelt.array([1.0, 2.0]), "n": smelt.array(0.0)}
    read: list[Any] = []

    def update(x: smelt.array) -> smelt.array:
        state["w"] = CONSTANTS[constant]()
        read.append(aside.run(lambda: smelt.sum(state["w"] + 1).item() / state["w"].size))
        state["n"] = state["w"] + x
        return smelt.sum(state["n"])

    step = smelt.grad(update) if inside else update
    f = smelt.compile(step, inputs=state, outputs=state)
    for _ in range(2):
        f(smelt.array(5.0))
        assert smelt.sum(state["w"]).item() == 0 and smelt.max(state["n"]).item() == 5
    assert read == [1.0] * len(read)


#: What a function makes of its state and an argument, whose sizes are in attributes of ops, and of functions in these.
SIZED: dict[str, Callable[[smelt.array, smelt.array], smelt.array]] = {
    "ops": lambda w, x: smelt.concatenate([w, smelt.sum(x.reshape(x.shape[0], 1), axis=1)])[-2:] * x.shape[0],
    "gradient": lambda w, x: smelt.grad(lambda v: smelt.sum(smelt.broadcast_to(v, (x.shape[0], 2)) ** 2) * x[0])(w),
    "mapped": lambda w, x: smelt.sum(smelt.vmap(lambda v: w * smelt.sum(smelt.ones((x.shape[0],))) + v)(x), axis=0),
    "branch": lambda w, x: smelt.cond(x[0] > 0, lambda v: v * smelt.sum(x[: x.shape[0]]), lambda v: v, w),
}


@pytest.mark.parametrize("made", SIZED)
def test_a_look_at_what_is_traced_for_all_sizes(aside: Aside, made: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trace on symbols does what the one on sizes before has done, and others see the same."""
    state = {"w": smelt.array([1.0, 2.0])}
    function = SIZED[made]
    end, seen = TracedState.end, []

    def looked(self: TracedState, outputs: Any) -> None:
        if "w" in state and not self.is_over and len(seen) < 100:
            seen.append(aside.run(lambda: (state["w"] + 0 * smelt.sum(state["w"])).tolist()))
        end(self, outputs)

    def step(x: smelt.array) -> smelt.array:
        state["w"] = function(state["w"], x)
        return smelt.sum(state["w"]) + x

    f = smelt.compile(step, inputs=state, outputs=state)
    monkeypatch.setattr(TracedState, "end", looked)
    traces = []
    for n in range(2, 9):
        before = len(seen)
        state["w"] = smelt.array([1.0, 2.0])
        f(smelt.arange(1.0, n + 1))
        traces.append(len(seen) - before)
        for found in seen[before:]:
            np.testing.assert_allclose(found, state["w"].tolist(), rtol=1e-6)
    assert max(traces) == 2 and traces[-1] == 0, "some sizes were traced twice, later ones not at all"


def test_an_array_that_becomes_another_one_while_it_is_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a result of a trace does at its end."""
    x, other = smelt.array([1.0]) + 1, smelt.array([1.0]) + 2

    def seen(x: smelt.array) -> smelt.array:
        x._ref = other._ref
        return x

    monkeypatch.setattr(hooks, "as_seen", seen)
    monkeypatch.setattr(arrays, "shadows", [None])
    assert x.tolist() == [3.0]


def test_a_viewed_array_that_is_none_any_more_has_its_shape() -> None:
    """Another thread saw the view's end after this one looked for what gives the shape."""
    aval: Any = exports.ViewedArray.aval
    assert aval.fget(smelt.array([1.0, 2.0])).shape == (2,)


def test_parameters_of_a_module(aside: Aside) -> None:
    model, x = nn.Linear(3, 2), smelt.ones((4, 3))
    optimizer = smelt.optimizers.Adam(0.1)
    before = model(x).tolist()
    seen: list[Any] = []

    def loss(x: smelt.array) -> smelt.array:
        seen.append(aside.run(lambda: model(x.shape and smelt.ones((4, 3))).tolist()))
        return smelt.sum(model(x) ** 2)

    def step(x: smelt.array) -> smelt.array:
        value, gradients = nn.value_and_grad(model, loss)(x)
        optimizer.update(model, gradients)
        seen.append(aside.run(lambda: model(smelt.ones((4, 3))).tolist()))
        return value

    state = [model.state, optimizer.state]
    smelt.compile(step, inputs=state, outputs=state)(x)
    np.testing.assert_allclose(seen[0], before, rtol=1e-6)
    np.testing.assert_allclose(seen[1], model(x).tolist(), rtol=1e-5)


def test_draws_do_not_meet_a_trace(aside: Aside) -> None:
    """A number drawn in another thread is one, and what is traced draws others in each call."""
    smelt.random.seed(1)
    drawn: list[float] = []
    f = smelt.compile(
        lambda: (drawn.append(aside.run(lambda: smelt.random.uniform().item())), smelt.random.uniform())[1],
        inputs=smelt.random.state, outputs=smelt.random.state,
    )  # fmt: skip
    found = [f().item() for _ in range(4)]
    assert len(drawn) == 1 and 0 <= drawn[0] < 1
    assert len(set(found)) == 4
    smelt.random.seed(1)
    again = [f().item() for _ in range(4)]
    assert again[1:] != found[:3] and len(set(again)) == 4


def test_what_another_thread_writes_is_not_traced(aside: Aside) -> None:
    """An update in place of an array with a placeholder is one of what others see."""
    state = [smelt.array([1.0, 2.0])]
    values: list[Any] = []

    def write() -> list[float]:
        state[0][0] = 7.0
        return state[0].tolist()

    def step() -> smelt.array:
        values.append(aside.run(write))
        return state[0] + 1

    f = smelt.compile(step, inputs=state)
    assert f().tolist() == [2.0, 3.0] and values == [[7.0, 2.0]]
    assert state[0].tolist() == [7.0, 2.0]
    assert f().tolist() == [8.0, 3.0]


@pytest.mark.parametrize("others", [False, True])
def test_a_view_of_what_is_traced(others: bool) -> None:
    """Of an array that is viewed the trace sees a placeholder; the view stays what it is."""
    thread = Aside() if others else None
    state = [smelt.array(np.arange(2000, dtype=np.float32))]
    view = np.asarray(state[0])

    def step() -> smelt.array:
        if thread is not None:
            view[0] = 5
            assert thread.run(lambda: state[0][0].item()) == 5
        return state[0] + 1

    f = smelt.compile(step, inputs=state)
    f()
    view[1] = 8
    assert f()[:2].tolist() == [6.0 if others else 1.0, 9.0]
    if thread is not None:
        thread.end()


def test_a_trace_that_fails_leaves_its_state(aside: Aside) -> None:
    state = {"w": smelt.array([1.0, 2.0])}

    def step() -> None:
        state["w"] = state["w"] + 1
        raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        smelt.compile(step, inputs=state, outputs=state)()
    assert state["w"].tolist() == [1.0, 2.0] and type(state["w"]) is smelt.array and not shadows


def test_what_was_read_during_a_trace_that_fails_has_a_value(aside: Aside) -> None:
    state = {"w": smelt.array([1.0, 2.0])}
    read: list[Any] = []

    def step() -> None:
        state["w"] = state["w"] + 1
        read.append(aside.run(lambda: state["w"]))
        raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        smelt.compile(step, inputs=state, outputs=state)()
    assert read[0].tolist() == [2.0, 3.0] and state["w"].tolist() == [1.0, 2.0]


class Interruption:
    """A trace function that raises KeyboardInterrupt at the `place`th line of `traced_state.py`; not at those of
    `with`, which come again where its lock is let go."""

    def __init__(self, place: int):
        self.left, self.line = place, ""

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename != traced_state.__file__:
            return None
        text = linecache.getline(traced_state.__file__, frame.f_lineno)
        if event == "line" and not text.strip().startswith("with "):
            self.left -= 1
            if not self.left:
                self.line = f"{frame.f_code.co_name}, line {frame.f_lineno}"
                raise KeyboardInterrupt
        return self


def test_an_interrupt_leaves_the_state(aside: Aside) -> None:
    """Wherever it comes: before the trace or in what puts back what it has put into the state."""
    places = 0
    while (line := _interrupted(aside, places + 1)) is not None:
        places += 1
        assert not shadows, line
    assert places > 50


def _interrupted(aside: Aside, place: int) -> str | None:
    """A call that is interrupted at a place, and one after it; the line of the place, None if there is none."""
    w, viewed = smelt.array([1.0, 2.0]), smelt.array([5.0, 6.0])
    state, view = {"w": w, "viewed": viewed}, np.asarray(viewed)

    def step() -> None:
        state["w"] = state["w"] + 1
        state["viewed"][0] = state["viewed"][1]

    f, interruption = smelt.compile(step, inputs=state, outputs=state), Interruption(place)
    sys.settrace(interruption)
    try:
        f()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)
    line = interruption.line
    if not line:
        return None
    assert type(w) is smelt.array, line
    assert (w.tolist(), viewed.tolist()) == ([1.0, 2.0], [5.0, 6.0]), line
    view[1] = 8.0
    assert aside.run(viewed.tolist) == [5.0, 8.0], line
    assert np.asarray(viewed).tolist() == [5.0, 8.0], line
    f()
    assert (state["w"].tolist(), state["viewed"].tolist()) == ([2.0, 3.0], [8.0, 8.0]), line
    return line


def test_a_view_is_asked_for_when_a_trace_begins(aside: Aside, monkeypatch: pytest.MonkeyPatch) -> None:
    """By another thread, which evaluates the array first."""
    state = {"w": smelt.array([1.0, 2.0]) + 1}
    is_evaluated, is_traced, found = threading.Event(), threading.Event(), []

    def waiting(refs: Any) -> None:
        evaluate(refs)
        is_evaluated.set()
        assert is_traced.wait(60)

    def step() -> None:
        is_traced.set()
        thread.join(60)
        state["w"] = state["w"] * 2

    evaluate = exports.evaluate
    monkeypatch.setattr(exports, "evaluate", waiting)
    thread = threading.Thread(target=lambda: found.append(np.asarray(state["w"]).tolist()))
    thread.start()
    assert is_evaluated.wait(60)
    f = smelt.compile(step, inputs=state, outputs=state)
    f()
    assert found == [[2.0, 3.0]] and state["w"].tolist() == [4.0, 6.0]
    assert type(state["w"]) is smelt.array


@pytest.mark.parametrize("use", ["read", "write"])
def test_a_viewed_array_is_used_when_a_trace_begins(use: str) -> None:
    """By another thread, which waits for what begins it."""
    x = smelt.array([1.0, 2.0])
    view, found, begun = np.asarray(x), [], threading.Event()
    trace, placeholder = TracedState([x]), smelt.array(0.0)._ref

    def run() -> None:
        begun.set()
        if use == "read":
            found.append(x._ref)
        else:
            x._ref = smelt.array([3.0, 4.0])._ref

    thread = threading.Thread(target=run)
    with exports.changing:
        thread.start()
        assert begun.wait(60)
        time.sleep(0.05)
        trace.begin(())
        x._ref = placeholder
    thread.join(60)
    assert x._ref is placeholder
    trace.end([])
    assert x.tolist() == ([1.0, 2.0] if use == "read" else [3.0, 4.0])
    assert all(wrap(ref).tolist() == [1.0, 2.0] for ref in found) and view.tolist() == [1.0, 2.0]


def test_what_the_thread_that_traces_keeps_has_no_value(aside: Aside) -> None:
    state = {"w": smelt.array([1.0, 2.0])}
    kept: list[Any] = []
    smelt.compile(lambda: (kept.append(state["w"] * 2), state["w"])[1], inputs=state, outputs=state)()
    with pytest.raises(smelt.errors.TraceError, match="was made while"):
        kept[0].tolist()


def test_one_thread_pays_nothing() -> None:
    """Its state keeps its class, and its ops are looked at as ever."""
    state = {"w": smelt.array([1.0, 2.0])}
    found: list[Any] = []

    def step() -> None:
        found.append((type(state["w"]), len(shadows)))
        state["w"] = state["w"] + 1

    if threading.active_count() > 1:
        pytest.skip("other tests have left threads")
    smelt.compile(step, inputs=state, outputs=state)()
    assert found == [(smelt.array, 0)] and not issubclass(found[0][0], TracedArray)
