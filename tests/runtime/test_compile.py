"""`smelt.compile`: what is traced when, what is cached, what can be looked at."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
import pytest

import smelt
from smelt.ir import text
from smelt.ir.errors import PipelineError
from smelt.ir.settings import override


def counting(fun):
    calls = []

    def wrapped(*args, **kwargs):
        calls.append(1)
        return fun(*args, **kwargs)

    return smelt.compile(wrapped), calls


def test_one_trace_for_each_set_of_types():
    f, traces = counting(lambda x: x * 2)
    for value in (1.0, 2.0, 3.0):
        assert f(smelt.array([value])).tolist() == [2 * value]
    assert len(traces) == 1
    f(smelt.array([1.0, 2.0]))
    f(smelt.array([1]))
    assert len(traces) == 3
    assert f(smelt.array([1])).dtype == smelt.int32
    assert len(traces) == 3


def test_static_arguments_are_part_of_the_key():
    f, traces = counting(lambda x, n: x**n if n != 0 else x)
    x = smelt.array([3.0])
    assert f(x, 2).item() == 9.0
    assert f(x, 3).item() == 27.0
    assert f(x, 2).item() == 9.0
    assert len(traces) == 2
    assert f(x, 1).item() == f(x, True).item() == 3.0
    assert len(traces) == 4


def test_trees_in_and_out():
    class Pair(NamedTuple):
        a: object
        b: object

    @smelt.compile
    def f(tree, *, scale):
        return {"sum": tree["x"][0] + tree["x"][1], "pair": Pair(scale * 2, "static"), "none": None}

    out = f({"x": [smelt.array([1.0]), smelt.array([2.0])]}, scale=smelt.array(4.0))
    assert out["sum"].tolist() == [3.0]
    assert out["pair"].a.item() == 8.0
    assert out["pair"].b == "static"
    assert out["none"] is None


def test_closed_over_arrays_are_constants():
    w = smelt.array([1.0, 2.0])
    f = smelt.compile(lambda x: x * w)
    assert f(smelt.array([3.0, 4.0])).tolist() == [3.0, 8.0]
    w = smelt.array([9.0, 9.0])
    assert f(smelt.array([3.0, 4.0])).tolist() == [3.0, 8.0]


def test_lazy_arguments_are_evaluated():
    f = smelt.compile(lambda x: x + 1)
    assert f(smelt.exp(smelt.array([0.0])) * 2).tolist() == [3.0]


def test_state_is_captured_by_inputs_and_outputs():
    state = {"count": smelt.array(0), "total": smelt.array(0.0)}

    def step(x):
        state["count"] = state["count"] + 1
        state["total"] = state["total"] + x
        return state["total"] * 2

    f = smelt.compile(step, inputs=state, outputs=state)
    assert [f(smelt.array(float(i))).item() for i in (1, 2, 3)] == [2.0, 6.0, 12.0]
    assert state["count"].item() == 3
    assert state["total"].item() == 6.0


def test_random_state_advances_under_compile():
    f = smelt.compile(
        lambda: smelt.random.uniform(shape=(4,)), inputs=smelt.random.state, outputs=smelt.random.state
    )
    smelt.random.seed(3)
    a, b = f(), f()
    assert a.tolist() != b.tolist()
    smelt.random.seed(3)
    assert f().tolist() == a.tolist()


def test_grad_of_compiled_and_compiled_grad():
    f = smelt.compile(lambda x: (smelt.sin(x) ** 2).sum())
    x = smelt.array([0.3, 0.7])
    want = np.sin(2 * np.array(x))
    np.testing.assert_allclose(np.array(smelt.grad(f)(x)), want, rtol=1e-6)
    np.testing.assert_allclose(np.array(smelt.compile(smelt.grad(f))(x)), want, rtol=1e-6)
    np.testing.assert_allclose(np.array(smelt.vmap(smelt.grad(f))(smelt.stack([x, x])))[1], want, rtol=1e-6)


def test_compiled_inside_compiled():
    inner = smelt.compile(lambda x: smelt.exp(x))
    outer = smelt.compile(lambda x: inner(x) + inner(2 * x))
    assert outer(smelt.array([0.0])).tolist() == [2.0]


def test_results_that_are_arguments_or_equal():
    f = smelt.compile(lambda x, y: (x, y, x + y, x, x.reshape(1, 2), x + y))
    x, y = smelt.array([1.0, 2.0]), smelt.array([3.0, 4.0])
    outs = f(x, y)
    assert [o.tolist() for o in outs] == [[1, 2], [3, 4], [4, 6], [1, 2], [[1, 2]], [4, 6]]
    outs[0][0] = 100.0
    assert x.tolist() == [1.0, 2.0]
    assert outs[3].tolist() == [1.0, 2.0]


def test_empty_results_and_no_arguments():
    assert smelt.compile(lambda: ())() == ()
    assert smelt.compile(lambda: smelt.zeros((2,)))().tolist() == [0.0, 0.0]
    assert smelt.compile(lambda x: (x[:0], x.sum()))(smelt.array([1.0, 2.0]))[0].shape == (0,)


def test_methods_and_keyword_arguments():
    class Layer:
        def __init__(self):
            self.w = smelt.array([2.0])

        @smelt.compile
        def forward(self, x, bias=None):
            return self.w * x if bias is None else self.w * x + bias

    layer = Layer()
    assert layer.forward(smelt.array([3.0])).tolist() == [6.0]
    assert layer.forward(smelt.array([3.0]), bias=smelt.array([1.0])).tolist() == [7.0]


def test_retracing_warns_with_the_reason():
    f = smelt.compile(lambda x, n: x * n)
    with pytest.warns(UserWarning, match="argument 1"):
        for i in range(40):
            f(smelt.array([1.0]), float(i))


def test_versions_are_bounded():
    from smelt.transforms.versions import MAX_VERSIONS

    f = smelt.compile(lambda x, n: x * n)
    with warnings.catch_warnings(), override(device="reference"):
        warnings.simplefilter("ignore")
        for i in range(MAX_VERSIONS + 10):
            f(smelt.array([1.0]), float(i))
    assert len(f._store.entries) == MAX_VERSIONS


def test_disable_compile():
    f, calls = counting(lambda x: x + 1)
    smelt.disable_compile()
    try:
        for _ in range(3):
            assert f(smelt.array([1.0])).item() == 2.0
    finally:
        smelt.enable_compile()
    assert len(calls) == 3


def test_stages_as_text():
    def model(weights, x):
        return smelt.softmax(x @ weights["w"], axis=-1)

    f = smelt.compile(model)
    arguments = {"w": smelt.array(np.ones((3, 4), np.float32))}, smelt.array(np.ones((2, 3), np.float32))
    trace = f.trace(*arguments)
    lowered = trace.lower()
    assert '"smelt.dot_general"' in lowered.as_text()
    compiled = lowered.compile()
    assert "smelt.fusion" in compiled.as_text("fuse")
    assert "scf.for" in compiled.as_text("kernel")
    assert "llvm.func" in compiled.as_text("llvm")
    assert compiled.kernels
    with pytest.raises(ValueError, match="stages"):
        compiled.as_text("nonsense")


def test_the_ir_names_arguments_and_lines():
    def model(weights, x):
        return smelt.tanh(x * weights["w"])

    f = smelt.compile(model)
    x = smelt.array([1.0])
    debug = text.to_text(f.trace({"w": x}, x).lower().module, locations=True)
    assert "weights.w" in debug
    assert "test_compile.py" in debug


def test_ir_text_runs_elsewhere():
    from smelt.runtime import compile_text, device_named

    f = smelt.compile(lambda x, y: smelt.exp(x) @ y + 1)
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((3, 4)).astype(np.float32), rng.standard_normal((4, 2)).astype(np.float32)
    source = smelt.make_ir(f)(smelt.array(a), smelt.array(b))
    want = np.array(f(smelt.array(a), smelt.array(b)))
    for device in ("cpu", "reference"):
        (found,) = compile_text(source, device_named(device))([a, b])
        np.testing.assert_allclose(found, want, rtol=1e-5)


def test_a_custom_pipeline():
    f = smelt.compile(lambda x: smelt.exp(x) + smelt.exp(x), pipeline="inline,cse,dce,fuse,plan-buffers")
    assert f(smelt.array([0.0])).item() == 2.0


def test_a_trace_is_compiled_by_the_pipeline_of_its_function():
    apart = smelt.compile(lambda x: smelt.exp(x) * 2 + 1, pipeline="replace:fuse=fuse{max-ops=1}")
    lowered = apart.trace(smelt.ShapeDtype((300, 300), smelt.float32)).lower()
    assert len(lowered.compile().kernels) > 1 == len(lowered.compile(smelt.default_pipeline()).kernels)
    assert lowered.as_text("fuse").count("smelt.fusion") > 1
    wrong = smelt.compile(lambda x: x + 1, pipeline="nonsense").trace(smelt.ones(3)).lower()
    with pytest.raises(PipelineError, match=r"smelt.compile: .*nonsense"):
        wrong.compile()


def test_shape_only_arguments_can_be_traced():
    f = smelt.compile(lambda x: x.sum(axis=0))
    assert "tensor<8x4xf32>" in f.trace(smelt.ShapeDtype((8, 4), smelt.float32)).as_text()


def test_dump_ir_where_nothing_can_be_written(tmp_path):
    """The error names the path and the setting, and the function works once it is another."""
    taken = tmp_path / "taken"
    taken.write_text("no folder")
    function = smelt.compile(lambda x: smelt.exp(x) * 4)
    with override(dump_ir=str(taken), small_work=0), pytest.raises(PipelineError, match=r"taken.*SMELT_DUMP_IR"):
        function(smelt.array([0.0])).item()
    with override(dump_ir=str(tmp_path / "free"), small_work=0):
        assert function(smelt.array([0.0])).item() == 4


def test_dump_ir(tmp_path):
    with override(dump_ir=str(tmp_path)):
        smelt.compile(lambda x: smelt.exp(x) * 3)(smelt.array([1.0]))
    (folder,) = tmp_path.iterdir()
    names = sorted(p.name for p in folder.iterdir())
    assert names[0] == "0000-input.mlir"
    assert any(n.endswith("-fuse.mlir") for n in names)
    for p in folder.iterdir():
        text.parse(p.read_text())
