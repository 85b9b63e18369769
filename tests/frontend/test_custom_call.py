"""Calls of targets that a package registers: on every device, under every transformation, and their errors."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.gpu.custom import CustomKernel
from smelt.backends.gpu.manifest import Constant, KernelBuffer, OwnText
from smelt.ir import custom_call, dtypes, text
from smelt.ir.custom_call import Target, register_target
from smelt.ir.errors import (
    ArgumentTypeError,
    AttributeValueError,
    CustomCallError,
    IRError,
    NotDifferentiableError,
    SmeltError,
)
from smelt.ir.parameters import Parameters
from smelt.ir.settings import override
from smelt.passes import Pipeline
from smelt.runtime import compile_text
from smelt.runtime.device import devices
from smelt.tools import cli, opt

needs_compiler = pytest.mark.skipif(
    not any(shutil.which(c) for c in ("c++", "g++", "clang++")), reason="no C++ compiler"
)
DEVICES = ["cpu", "metal:sim", "reference"]
CALLS: list[Any] = []


def mixed(call: Any, x: np.ndarray, n: np.ndarray, mask: np.ndarray) -> Any:
    """x rolled by n where the mask is, scaled; and a count."""
    CALLS.append(call)
    rolled = np.where(mask, np.roll(x, int(n)), x) * np.float32(call.parameters["scale"])
    return rolled.astype(call.results[0].dtype.numpy), np.asarray(mask.sum(), np.int32)


def double(call: Any, x: np.ndarray) -> np.ndarray:
    CALLS.append(call)
    assert not x.flags.writeable
    return 2 * x


@pytest.fixture(autouse=True)
def targets() -> Iterator[None]:
    known = dict(custom_call._targets)
    register_target(Target("acme.mixed", mixed))
    register_target(Target("acme.double", double))
    register_target(Target("acme.rows", double, vectorized=True))
    CALLS.clear()
    yield
    custom_call._targets.clear()
    custom_call._targets.update(known)


X = np.arange(6, dtype=np.float32)
MASK = np.array([True, False, True, True, False, False])


def call_mixed(x: Any, n: Any, mask: Any, scale: float = 2.0) -> tuple[smelt.array, ...]:
    types = [smelt.ShapeDtype((6,), smelt.float16), smelt.ShapeDtype((), smelt.int32)]
    return smelt.custom_call("acme.mixed", x, n, mask, types=types, scale=scale)


def expected(x: np.ndarray, n: int, mask: np.ndarray, scale: float = 2.0) -> np.ndarray:
    return np.asarray((np.where(mask, np.roll(x, n), x) * scale).astype(np.float16))


def call_double(x: smelt.array, target: str = "acme.double") -> smelt.array:
    return smelt.custom_call(target, x, types=smelt.ShapeDtype(x.shape, x.dtype))


# Where it runs


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("small_work", [0, 10**12])
def test_operands_and_results_of_several_types(device: str, small_work: int) -> None:
    with override(device=device, small_work=small_work):
        x = smelt.array(X) * 1  # lazy
        for f in (call_mixed, smelt.compile(call_mixed)):
            rolled, count = f(x, 2, smelt.array(MASK))
            assert (rolled.dtype, rolled.shape, count.dtype, count.shape) == (smelt.float16, (6,), smelt.int32, ())
            np.testing.assert_array_equal(np.array(rolled), expected(X, 2, MASK))
            assert count.item() == 3
    call = CALLS[0]
    assert call.target == "acme.mixed" and call.parameters == Parameters({"scale": 2.0})
    assert str(call.operands) == "(f32[6], i32[], i1[6])" and str(call.results) == "(f16[6], i32[])"


@pytest.mark.parametrize("device", DEVICES)
def test_it_is_in_the_midst_of_kernels(device: str) -> None:
    with override(device=device):
        f = smelt.compile(lambda x: smelt.exp(call_double(smelt.sin(x) + 1)).sum())
        np.testing.assert_allclose(np.array(f(smelt.array(X))), np.exp(2 * (np.sin(X) + 1)).sum(), rtol=1e-5)


def test_it_is_lazy() -> None:
    y = call_double(smelt.array(X))
    assert not CALLS
    smelt.eval(y)
    assert len(CALLS) == 1
    call_double(smelt.array(X))
    unread = smelt.compile(lambda x: (x + 1, call_double(x))[0])
    smelt.eval(unread(smelt.array(X)))
    assert len(CALLS) == 1


def test_equal_calls_are_one() -> None:
    def f(x: smelt.array) -> smelt.array:
        return smelt.exp(call_mixed(x, 1, x > 0)[0]) + call_mixed(x, 1, x > 0)[0] + call_mixed(x, 1, x > 0, 3.0)[0]

    compiled = smelt.compile(f)
    smelt.eval(compiled(smelt.array(X)))
    assert len(CALLS) == 2
    text_ = compiled.trace(smelt.array(X)).lower().compile().as_text("dce")
    assert text_.count('"smelt.custom_call"') == 2 == text_.count("call_indirect")


def scaled(call: Any) -> CustomKernel:
    """Each element times the parameter, by one thread."""
    (x,) = call.operands
    text = f"""#include <metal_stdlib>
kernel void scaled(const device float* x [[buffer(0)]], constant int& n [[buffer(1)]], device float* y [[buffer(2)]],
                   uint i [[thread_position_in_grid]]) {{
  y[i] = x[i] * {call.parameters["scale"]} + n;
}}
"""
    own = OwnText(text, "scaled", (max(x.size, 1), 1, 1), (Constant(1, "int", (7,)),))
    buffers = KernelBuffer("x", "float", x.size, "read", 0), KernelBuffer("y", "float", x.size, "write", 2)
    return CustomKernel("scaled", own, (32, 1, 1), buffers)


@needs_compiler
def test_a_target_with_a_kernel_is_a_launch() -> None:
    def host(call: Any, x: np.ndarray) -> np.ndarray:
        CALLS.append(call)
        return np.asarray(x * np.float32(call.parameters["scale"]) + 7, np.float32)

    register_target(Target("acme.scaled", host, {"msl": scaled}))
    types = smelt.ShapeDtype((6,), smelt.float32)

    def f(x: smelt.array) -> smelt.array:
        found = smelt.custom_call("acme.scaled", x + 1, types=types, scale=3.0)
        return found + call_double(x)  # which has none, and is placed on the CPU

    for device in DEVICES:
        CALLS.clear()
        with override(device=device):
            for g in (f, smelt.compile(f), lambda x: smelt.vmap(f)(smelt.stack([x, x]))[1]):
                np.testing.assert_array_equal(np.array(g(smelt.array(X))), (X + 1) * 3 + 7 + 2 * X)
        assert ("acme.scaled" in {call.target for call in CALLS}) == (device != "metal:sim")


# Transformations


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("target, calls", [("acme.double", 3), ("acme.rows", 1)])
def test_vmap(device: str, target: str, calls: int) -> None:
    with override(device=device):
        x = smelt.array(np.arange(12, dtype=np.float32).reshape(4, 3))
        found = smelt.vmap(lambda row: call_double(row + 1, target), in_axes=1, out_axes=1)(x)
        np.testing.assert_array_equal(np.array(found), 2 * (np.array(x) + 1))
        assert len(CALLS) == calls


def test_vmap_of_operands_with_and_without_a_batch_axis() -> None:
    x = smelt.array(np.stack([X, X + 1, X + 2]))
    n, mask = smelt.array([0, 1, 2]), smelt.array(MASK)
    rolled, count = smelt.vmap(call_mixed, in_axes=(0, 0, None))(x, n, mask)
    want = [expected(np.array(x)[i], i, MASK) for i in range(3)]
    np.testing.assert_array_equal(np.array(rolled), np.stack(want))
    assert count.tolist() == [3, 3, 3]


def test_a_batching_rule_of_its_own() -> None:
    seen = []

    def batch(b: Any, operands: Any, dims: Any, call: Any) -> Any:
        seen.append((call.operands, tuple(dims)))
        (x,), (dim,) = operands, dims
        return [b.mul(x, b.full(x.shape, 2, x.dtype))], [dim]

    register_target(Target("acme.ruled", double, batch=batch))
    found = smelt.vmap(lambda row: call_double(row, "acme.ruled"), in_axes=1)(smelt.ones((4, 3)))
    assert found.tolist() == [[2.0] * 4] * 3 and not CALLS
    assert {str(call) for call in seen} == {"((f32[4,3],), (1,))"}  # once for each way to run it that is looked at


@pytest.mark.parametrize("device", DEVICES)
def test_derivatives_by_a_custom_function(device: str) -> None:
    @smelt.custom_function
    def twice(x: smelt.array) -> smelt.array:
        return call_double(x)

    @twice.vjp
    def twice_vjp(x: Any, cotangent: Any, output: Any) -> Any:
        return 2 * cotangent

    with override(device=device):
        x = smelt.array(X)
        want = 2 * np.cos(2 * X)
        for f in (
            smelt.grad(lambda x: smelt.sin(twice(x)).sum()),
            smelt.vmap(smelt.grad(lambda x: smelt.sin(twice(x)))),
        ):
            np.testing.assert_allclose(np.array(f(x)), want, rtol=1e-5)
            np.testing.assert_allclose(np.array(smelt.compile(f)(x)), want, rtol=1e-5)


def test_without_rules_it_has_no_derivative() -> None:
    for transformed in (
        smelt.grad(lambda x: call_double(x * 2).sum()),
        smelt.compile(smelt.grad(lambda x: call_double(x * 2).sum())),
        lambda x: smelt.jvp(call_double, [x], [x])[1][0],
    ):
        with pytest.raises(NotDifferentiableError) as caught:
            smelt.eval(transformed(smelt.array(X)))
        message = str(caught.value)
        assert "smelt.custom_call of acme.double has no derivative" in message and "f32[6]" in message
        assert "smelt.custom_function" in message and "test_custom_call.py:" in message
    stopped = smelt.grad(lambda x: (x * call_double(smelt.stop_gradient(x))).sum())
    assert stopped(smelt.array(X)).tolist() == (2 * X).tolist()


def test_in_loops_and_branches() -> None:
    def step(carry: Any, y: Any) -> Any:
        return call_double(carry) + y, carry

    for device in DEVICES:
        with override(device=device):
            last, before = smelt.scan(step, smelt.array(1.0), smelt.array([1.0, 2.0, 3.0]))
            assert last.item() == 19 and before.tolist() == [1, 3, 8]
            x = smelt.array(X)
            chosen = smelt.cond(x.sum() > 0, call_double, lambda x: x, x)
            assert chosen.tolist() == (2 * X).tolist()


def programs(f: Any) -> dict[str, Any]:
    """Programs around a function of (x, n) with two results."""
    n = smelt.array(3)

    def loop(x: smelt.array) -> smelt.array:
        def step(i: smelt.array, carry: Any) -> Any:
            x, n = f(*carry)
            return smelt.sin(x), n

        return smelt.fori_loop(0, 3, step, (x, n))[0]

    return {
        "twice": lambda x: smelt.sin(f(x, n)[0]) * f(x, n)[1].astype(smelt.float32),
        "for": loop,
        "while": lambda x: smelt.while_loop(lambda c: c[1] < 6, lambda c: f(*c), (x, n))[0],
        "cond": lambda x: smelt.cond(x.sum() > 0, lambda x: f(x, n)[0], lambda x: x * f(x, n)[0], x),
        "checkpoint": smelt.checkpoint(lambda x: smelt.sin(f(smelt.cos(x), n)[0])),
    }


def transformed(program: Any, reverse: bool) -> list[Any]:
    found = [program, smelt.vmap(program)]
    if reverse:
        slope = smelt.grad(lambda x: (program(x) * program(x)).sum())
        found += [slope, smelt.vmap(slope), smelt.checkpoint(slope)]
    return found


@pytest.mark.parametrize("vectorized", [False, True])
@pytest.mark.parametrize("name", ["twice", "for", "while", "cond", "checkpoint"])
def test_it_nests_as_plain_ops_do(name: str, vectorized: bool) -> None:
    def host(call: Any, x: np.ndarray, n: np.ndarray) -> Any:
        return x * 2 + n.astype(x.dtype).reshape(n.shape + (1,) * (x.ndim - n.ndim)), n + 1

    register_target(Target("acme.both", host, vectorized=vectorized))

    @smelt.custom_function
    def called(x: smelt.array, n: smelt.array) -> Any:
        types = [smelt.ShapeDtype(x.shape, x.dtype), smelt.ShapeDtype(n.shape, n.dtype)]
        return smelt.custom_call("acme.both", x, n, types=types)

    @called.vjp
    def called_vjp(primals: Any, cotangents: Any, outputs: Any) -> Any:
        return cotangents[0] * 2, None

    def plain(x: smelt.array, n: smelt.array) -> Any:
        return x * 2 + n.astype(x.dtype), n + 1

    x = smelt.array(np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3))
    pairs = zip(*(transformed(programs(f)[name], name != "while") for f in (called, plain)))
    for i, (mine, other) in enumerate(pairs):
        want = np.array(other(x))
        for f in (mine, smelt.compile(mine)):
            np.testing.assert_allclose(np.array(f(x)), want, rtol=1e-4, atol=1e-5, err_msg=str(i))


# Text

SOURCE = """
func.func @main(%x: tensor<6xf32>, %n: tensor<i32>, %m: tensor<6xi1>) -> (tensor<6xf16>, tensor<i32>) {
  %f = "smelt.custom_call"() {parameters = {scale = 2.0}, target = "acme.mixed",
    types = [tensor<6xf16>, tensor<i32>]}
    : () -> ((tensor<6xf32>, tensor<i32>, tensor<6xi1>) -> (tensor<6xf16>, tensor<i32>))
  %0:2 = call_indirect %f(%x, %n, %m) : (tensor<6xf32>, tensor<i32>, tensor<6xi1>) -> (tensor<6xf16>, tensor<i32>)
  return %0#0, %0#1 : tensor<6xf16>, tensor<i32>
}
"""


def test_text() -> None:
    module = text.parse(SOURCE)
    printed = text.to_text(module)
    assert text.to_text(text.parse(printed)) == printed
    for device in DEVICES:
        rolled, count = compile_text(SOURCE, devices[device])([X, np.array(2, np.int32), MASK])
        np.testing.assert_array_equal(rolled, expected(X, 2, MASK))
        assert count == 3


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("target = ", "targets = ", "attribute target .* is missing|has no attribute"),
        ('"acme.mixed"', '""', "target must name what is called"),
        ("{scale = 2.0}", "3 : i64", "attribute parameters must be a dictionary"),
        ("{scale = 2.0}", "{scale = unit}", "parameters must be a dictionary|is not a number"),
        (
            "[tensor<6xf16>, tensor<i32>]",
            "[tensor<6xf16>]",
            r"the function must return f16\[6\], returns f16\[6\], i32",
        ),
        ("[tensor<6xf16>, tensor<i32>]", "[f16, i32]", "attribute types must be an array of tensor types"),
    ],
)
def test_text_that_is_wrong(old: str, new: str, message: str) -> None:
    with pytest.raises(IRError, match=message):
        text.parse(SOURCE.replace(old, new, 1))


def test_passes_leave_no_function_value_behind() -> None:
    half = '%y = "smelt.convert"(%x) {dtype = f16} : (tensor<6xf32>) -> tensor<6xf16>'
    dead = SOURCE.replace("return %0#0, %0#1", f"{half}\n  return %y, %n")
    for pipeline in ("dce", "canonicalize", "cse,dce"):
        module = text.parse(dead)
        Pipeline.parse(pipeline).run(module)
        assert "custom_call" not in text.to_text(module), pipeline


def test_a_text_whose_target_is_unknown_can_be_rewritten_and_not_run() -> None:
    source = SOURCE.replace("acme.mixed", "acme.mixes")
    module = text.parse(source)
    Pipeline.parse("canonicalize,cse,dce").run(module)
    for device in DEVICES:
        with pytest.raises(SmeltError, match=r"no target is called 'acme.mixes'; did you mean acme.mixed\?"):
            compile_text(source, devices[device])([X, np.array(2, np.int32), MASK])


def test_commands_run_the_code_that_a_file_calls_only_if_told(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "f.mlir").write_text(SOURCE)
    inputs = []
    for name, x in {"x": X, "n": np.array(2, np.int32), "m": MASK}.items():
        np.save(tmp_path / f"{name}.npy", x)
        inputs += ["--input", str(tmp_path / f"{name}.npy")]
    arguments = ["run", str(tmp_path / "f.mlir"), *inputs]
    assert cli.main(arguments, isolate=False) == 1 and not CALLS
    assert "if you trust it, run it with --custom-calls" in capsys.readouterr().err
    assert cli.main([*arguments, "--custom-calls"], isolate=False) == 0 and len(CALLS) == 1
    assert "dense<3> : tensor<i32>" in capsys.readouterr().out
    constant = '%x = "smelt.constant"() {dtype = f32, value = 3 : i64} : () -> tensor<f32>'
    call = '"smelt.custom_call"() {parameters = {}, target = "acme.double", types = [tensor<f32>]}'
    (tmp_path / "g.mlir").write_text(
        f"func.func @main() -> tensor<f32> {{\n  {constant}\n  %f = {call} : () -> ((tensor<f32>) -> tensor<f32>)\n"
        "  %y = call_indirect %f(%x) : (tensor<f32>) -> tensor<f32>\n  return %y : tensor<f32>\n}\n"
    )
    arguments = [str(tmp_path / "g.mlir"), "--canonicalize", "--cse", "--dce"]
    assert opt.main(arguments, isolate=False) == 0 and "call_indirect" in capsys.readouterr().out
    assert opt.main([*arguments, "--execute"], isolate=False) == 1
    assert "--custom-calls" in capsys.readouterr().err and len(CALLS) == 1
    assert opt.main([*arguments, "--execute", "--custom-calls"], isolate=False) == 0 and len(CALLS) == 2


# Errors


@pytest.mark.parametrize(
    "returned, message",
    [
        (lambda x: x.astype(np.float64), r"must return f32\[6\], as the call states, it returned f64\[6\]"),
        (lambda x: x[:2], r"must return f32\[6\], as the call states, it returned f32\[2\]"),
        (lambda x: (x, x), "must return 1 NumPy arrays, it returned"),
        (lambda x: None, "must return 1 NumPy arrays, it returned None"),
        (lambda x: [1.0], "must return 1 NumPy arrays, it returned 1.0"),
    ],
)
def test_what_a_target_returns(returned: Any, message: str) -> None:
    register_target(Target("acme.wrong", lambda call, x: returned(x)))
    for device in DEVICES:
        with override(device=device), pytest.raises(CustomCallError, match=message + r".*test_custom_call\.py:\d+"):
            smelt.eval(call_double(smelt.array(X), "acme.wrong"))


def test_what_a_target_raises_passes_through() -> None:
    register_target(Target("acme.raises", lambda call, x: {}["no such key"]))
    for device in DEVICES:
        with override(device=device), pytest.raises(KeyError, match="no such key"):
            smelt.eval(call_double(smelt.array(X), "acme.raises"))


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda x: call_double(x, "acme.doubel"), AttributeValueError, "called 'acme.doubel'; did you mean"),
        (lambda x: call_double(x, "nothing"), AttributeValueError, "import the package that registers it"),
        (lambda x: smelt.custom_call("acme.double", x, types=x), ArgumentTypeError, "types must be a smelt.ShapeDtype"),
        (lambda x: smelt.custom_call("acme.double", x, types=[]), ArgumentTypeError, "at least one result"),
        (lambda x: smelt.custom_call("acme.double", x, types=[smelt.ShapeDtype((), smelt.int8)], a={}),
         AttributeValueError, "acme.double: parameter a must be a bool"),
        (lambda x: smelt.custom_call("acme.double", x, types=[smelt.ShapeDtype((), smelt.int8)], a=2**63),
         AttributeValueError, "parameter a must be"),
    ],
)  # fmt: skip
def test_calls_that_are_wrong(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message + r".*test_custom_call\.py:\d+"):
        call(smelt.array(X))


def test_targets_that_are_wrong() -> None:
    with pytest.raises(AttributeValueError, match=r"a target called acme\.double is already registered, by tests"):
        register_target(Target("acme.double", mixed))
    for name in ("", "a b", "acme.", 3):
        with pytest.raises(AttributeValueError, match="a target is called by identifiers"):
            Target(name, double)  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match=r"host of the target acme\.f must be a function, is None"):
        Target("acme.f", None)  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match="the kernel in msl of the target f must be a function, is 3"):
        Target("f", double, {"msl": 3})  # type: ignore[dict-item]
    with pytest.raises(ArgumentTypeError, match="register_target takes a Target"):
        register_target(double)  # type: ignore[arg-type]


def test_parameters() -> None:
    values = {"b": True, "i": 1, "f": 1.0, "s": 'x\n"y', "d": dtypes.bfloat16, "t": [1, (2.5, "z")], "c": 1 + 2j}
    found = Parameters(values)
    assert found["t"] == (1, (2.5, "z")) and list(found) == sorted(values)
    for a, b in [(1, True), (1, 1.0), (0.0, -0.0), ((1,), (1.0,))]:
        assert Parameters({"x": a}) != Parameters({"x": b}) and Parameters({"x": a}) == Parameters({"x": a})
    types = smelt.ShapeDtype((6,), smelt.float32)
    for device in DEVICES:
        with override(device=device):
            smelt.eval(
                smelt.compile(lambda x: smelt.custom_call("acme.double", x, types=types, **values))(smelt.array(X))
            )
    assert [call.parameters for call in CALLS] == [found] * 3


@pytest.mark.parametrize("tier", ["ops", "program"])
def test_operands_are_contiguous(tier: str) -> None:
    def reads_memory(call: Any, x: np.ndarray) -> np.ndarray:
        assert x.flags.c_contiguous and not x.flags.writeable
        return np.frombuffer(x.tobytes(), x.dtype).reshape(x.shape)

    register_target(Target("acme.memory", reads_memory))
    x = smelt.array(X.reshape(2, 3))
    with override(tier=tier, small_work=0):
        for operand in (x.T, x[:, ::-1], x[:, 1], smelt.broadcast_to(x[0], (4, 3)), x.sum()):
            found = call_double(operand, "acme.memory")
            np.testing.assert_array_equal(found, np.asarray(operand))
