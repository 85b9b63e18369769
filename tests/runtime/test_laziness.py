"""Nothing runs before it is asked for; everything asked for runs once."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import smelt
from smelt.ir.op import registry
from smelt.lazy import evaluate
from smelt.lazy.graph import LEAF

pytestmark = pytest.mark.usefixtures("small_heap")


@pytest.fixture
def executed(monkeypatch):
    """The names of the ops that run op by op."""
    names: list[str] = []

    silently = evaluate.silently

    def spy(run):
        names.extend([node.op.name for node in run.__self__.order()])
        silently(run)

    monkeypatch.setattr(evaluate, "silently", spy)
    return names


def test_building_runs_nothing(executed):
    x = smelt.array([1.0, 2.0])
    y = smelt.exp(x) + x
    assert not executed
    smelt.eval(y)
    assert sorted(executed) == ["add", "exp"]


def test_evaluating_again_is_a_no_op(executed):
    y = smelt.exp(smelt.array([1.0, 2.0]))
    smelt.eval(y)
    smelt.eval(y, {"again": [y]})
    y.tolist()
    assert executed == ["exp"]


def test_unused_branches_never_run(executed):
    x = smelt.array([1.0, 2.0])
    unused = smelt.sin(x)
    used = smelt.exp(x)
    smelt.eval(used)
    assert executed == ["exp"]
    assert unused._ref[0].values is None


def test_unused_nodes_are_released():
    x = smelt.array([1.0, 2.0])
    y = smelt.exp(x)
    node = weakref.ref(y._ref[0])
    del y
    gc.collect()
    assert node() is None


def test_evaluated_nodes_forget_their_inputs():
    x = smelt.array([1.0, 2.0])
    y = smelt.exp(x)
    before = weakref.ref(x._ref[0])
    smelt.eval(y)
    del x
    gc.collect()
    assert before() is None
    assert y._ref[0].op is LEAF


def test_a_chain_of_two_hundred_thousand_ops():
    x = smelt.array([0.0])
    y = x
    for _ in range(200_000):
        y = y + 1.0
    assert y.item() == 200_000


def test_a_million_op_chain_is_released_without_running():
    y = smelt.array([0.0])
    for _ in range(1_000_000):
        y = y + 1.0
    del y
    gc.collect()


def test_a_long_chain_of_large_arrays_is_compiled_in_pieces():
    x = smelt.array(np.zeros(1 << 16, np.float32))
    y = x
    for _ in range(2500):
        y = y + 1.0
    assert np.array(y).tolist() == [2500.0] * (1 << 16)


def test_values_inside_grad_steer_control_flow():
    def f(x):
        y = x * x
        return y * 3 if y.item() > 1 else y

    assert smelt.grad(f)(smelt.array(2.0)).item() == 12.0
    assert smelt.grad(f)(smelt.array(0.5)).item() == 1.0


def test_held_intermediates_are_computed_once(executed):
    x = smelt.array([1.0, 2.0])
    middle = smelt.exp(x)
    smelt.eval(middle + 1)
    smelt.eval(middle + 2)
    assert executed.count("exp") == 1


def test_python_scalars_are_not_part_of_the_key():
    from smelt.ir.settings import override
    from smelt.lazy.evaluate import executables

    x = smelt.array(np.ones(8, np.float32))
    with override(small_work=0):
        smelt.eval(x * 1.5)
        misses = executables.misses
        for scale in (2.5, 3.5, 4.5):
            np.testing.assert_allclose(np.array(x * scale), scale)
        assert executables.misses == misses


def test_device_reference_runs_the_same_program():
    from smelt.ir.settings import override

    x = smelt.array([[1.0, -2.0], [3.0, 0.5]])
    want = np.array(smelt.softmax(x * 2, axis=1))
    with override(device="reference"):
        np.testing.assert_allclose(np.array(smelt.softmax(x * 2, axis=1)), want, rtol=1e-6)


def test_registry_is_complete():
    assert {"add", "dot_general", "gather", "random_bits"} <= set(registry)
