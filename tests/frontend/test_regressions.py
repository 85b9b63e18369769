"""What users once ran into, a case each."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import smelt
from smelt.ir.errors import ShapeError, TraceError, TreeError
from smelt.ir.settings import override

from .checks import same


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x[4:2, np.array([1, 2])],
        lambda x: x[3:3].reshape(-1, 2, 7)[:, :, np.array([[0], [6]])],
        lambda x: smelt.ones((0, 4)) @ smelt.broadcast_to(x, (3, 4, 7)),
        lambda x: (x @ smelt.zeros((3, 7, 0))).reshape(0, 5) + 1,
    ],
)
def test_empty_arrays_are_compiled(function) -> None:
    x = smelt.ones((4, 7))
    with override(small_work=0):
        assert smelt.compile(function)(x).size == function(x).size == 0
        same(function(x), np.zeros(function(x).shape, np.float32))


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_the_derivative_of_an_empty_sort(shape) -> None:
    x = smelt.zeros(shape)
    same(smelt.grad(lambda x: smelt.sort(x).sum())(x), np.zeros(shape, np.float32))


def test_a_tangent_that_depends_on_nothing_is_zero() -> None:
    x, y = smelt.zeros((0,)), smelt.array(3.0)
    found = smelt.grad(lambda x, y: smelt.sort(x).sum() + y * y, argnums=(0, 1))(x, y)
    same(found[0], np.zeros((0,), np.float32))
    assert found[1].item() == 6.0


def scaled(x):
    return x * 2


doubled = smelt.compile(scaled)


@smelt.compile
def tripled(x):
    return x * 3


class Model:
    def __init__(self):
        self.w = smelt.ones((2,))
        self.forward = smelt.compile(self.apply)

    def apply(self, x):
        return x * self.w


def test_compiled_functions_are_pickled_by_name() -> None:
    assert pickle.loads(pickle.dumps(tripled)) is tripled
    again = pickle.loads(pickle.dumps(doubled))  # its name stands for the function that is not compiled
    assert type(again) is type(doubled) and again is not doubled
    same(again(smelt.ones(1)), [2.0])
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(Model().forward)


def test_a_copied_object_has_its_own_compiled_method() -> None:
    model = Model()
    x = smelt.ones((2,))
    same(model.forward(x), [1.0, 1.0])
    other = copy.deepcopy(model)
    other.w = other.w * 3
    same(other.forward(x), [3.0, 3.0])
    same(model.forward(x), [1.0, 1.0])
    assert copy.deepcopy(tripled) is tripled


def test_state_that_is_no_array_is_part_of_the_program() -> None:
    state = {"a": smelt.array(2.0), "b": 3}
    f = smelt.compile(lambda x: x * state["a"] + state["b"], inputs=state)
    found = [f(smelt.array(1.0)).item()]
    state["b"] = 10
    found.append(f(smelt.array(1.0)).item())
    state["a"], state["b"] = 5, smelt.array(7.0)
    found.append(f(smelt.array(1.0)).item())
    assert found == [5.0, 12.0, 12.0]


def test_a_counter_in_the_state_counts() -> None:
    state = {"n": 0, "w": smelt.array(1.0)}

    def step(x):
        state["n"] += 1
        state["w"] = state["w"] + x * state["n"]
        return state["w"]

    f = smelt.compile(step, inputs=state, outputs=state)
    assert [f(smelt.array(1.0)).item() for _ in range(4)] == [2.0, 4.0, 7.0, 11.0]


def test_state_may_hold_what_cannot_be_hashed() -> None:
    state = {"a": smelt.array(2.0), "names": {"x", "y"}}
    assert smelt.compile(lambda x: x * state["a"], inputs=state)(smelt.array(3.0)).item() == 6.0


def numbers(x):
    yield x
    yield x * 2


@pytest.mark.parametrize("function", [numbers, lambda x: (x * i for i in range(3)), lambda x: map(abs, [x])])
def test_results_that_run_later_are_refused(function) -> None:
    with pytest.raises(TreeError, match="return a list"):
        smelt.compile(function)(smelt.ones((2,)))


def test_an_array_that_left_its_trace_says_so() -> None:
    kept = []
    smelt.compile(lambda x: kept.append(x * 2) or x)(smelt.ones((2,)))
    with pytest.raises(TraceError, match=r"has returned since.*outputs="):
        kept[0].tolist()


@pytest.mark.parametrize(
    "function",
    [
        lambda: smelt.zeros((1 << 33, 1 << 33)).sum().item(),
        lambda: smelt.compile(lambda x: smelt.zeros((1 << 62, 4)) + x)(smelt.ones((1,))),
    ],
)
def test_more_elements_than_addresses(function) -> None:
    with pytest.raises(MemoryError, match=r"more elements.*test_regressions.py"):
        function()


def test_no_array_has_such_a_shape() -> None:
    for shape in [(10**20,), (0, 10**20), (-1,)]:
        with pytest.raises(ShapeError, match="ShapeDtype"):
            smelt.ShapeDtype(shape, smelt.float32)


def test_a_range_is_like_a_list() -> None:
    same(smelt.array(range(4)), np.arange(4, dtype=np.int32))
    assert smelt.array(range(2**40, 2**40 + 2)).dtype == smelt.int64
    assert smelt.array(range(0)).shape == (0,)


def test_a_shape_that_is_a_float() -> None:
    with pytest.raises(TypeError, match=r"smelt.zeros: a shape consists of ints, got 2.5"):
        smelt.zeros(2.5)
