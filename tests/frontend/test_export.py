"""Functions in files: round trips, transformations of what is read, other sizes, the command line, hostile files."""

from __future__ import annotations

import io
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.formats.functions import MARK
from smelt.ir.custom_call import Target, register_target
from smelt.ir.errors import AttributeValueError, FileFormatError, SmeltError, TraceError, TreeError
from smelt.ir.op import registry

from ..hostile.mutate import mutated_bytes

W = smelt.array(np.random.default_rng(0).standard_normal((4, 5)), dtype=smelt.float32)
X, Y = smelt.arange(12, dtype=smelt.float32).reshape(3, 4) / 10, smelt.ones(5)


def same(a: Any, b: Any) -> None:
    if not isinstance(a, smelt.array):  # one of which there is a view is of a class of its own
        assert type(a) is type(b)
    if isinstance(a, smelt.array):
        assert isinstance(b, smelt.array)
        assert a.dtype is b.dtype and a.shape == b.shape
        kind = np.complex128 if a.dtype is smelt.complex64 else np.float64
        np.testing.assert_allclose(np.array(a).astype(kind), np.array(b).astype(kind), rtol=1e-6)
    elif isinstance(a, (tuple, list)):
        assert len(a) == len(b)
        for x, y in zip(a, b):
            same(x, y)
    elif isinstance(a, dict):
        assert sorted(a) == sorted(b)
        for k in a:
            same(a[k], b[k])
    else:
        assert a == b


def through(path: Path, fun: Callable, *args: Any, **kwargs: Any) -> Any:
    smelt.export_function(path / "f", fun, *args, **kwargs)
    return smelt.import_function(path / "f")


@smelt.custom_function
def halved(x):
    return x * x


@halved.vjp
def halved_vjp(primals, cotangent, output):
    return cotangent * 0.5


def looped(x):
    x = smelt.fori_loop(0, 3, lambda i, x: x * 2 + i, x)
    carry, ys = smelt.scan(lambda c, r: (c + r, c * r), smelt.zeros(4), x)
    return smelt.cond(x[0, 0] > 2, lambda a: a + 1, lambda a: a - 1, carry), ys


FUNCTIONS: dict[str, tuple[Callable, tuple, dict]] = {
    "captured": (lambda x, y: smelt.tanh(x @ W) + y, (X, Y), {}),
    "named": (lambda x, *, y: x.sum() * y, (X,), {"y": Y}),
    "trees": (lambda p, x: {"b": [p["w"][0] + x, (p["s"],)], "a": 3, "n": None, "t": "text"},
              ({"w": [X], "s": 2.5}, 1.0), {}),
    "derivative": (smelt.grad(lambda x: smelt.sin(x @ W).sum()), (X,), {}),
    "mapped": (smelt.vmap(lambda r: smelt.linalg.norm(r)), (X,), {}),
    "compiled": (smelt.compile(lambda x: x + 1), (X,), {}),
    "loops": (looped, (X,), {}), "rules": (smelt.grad(lambda x: halved(x).sum()), (X,), {}),
    "checkpoint": (smelt.checkpoint(lambda x: smelt.exp(x) @ W), (X,), {}), "constant": (lambda: smelt.ones(3), (), {}),
    "argument": (lambda x: (x, x), (X,), {}),
    "random": (lambda x: x + smelt.random.normal((3, 4), key=smelt.random.key(0)), (X,), {}),
    "half": (lambda x: x.astype(smelt.bfloat16) @ W.astype(smelt.bfloat16), (X,), {}),
    "complex": (lambda x: smelt.fft.rfft(x) * smelt.array([1j, 2, 3], dtype=smelt.complex64), (X,), {}),
    "empty": (lambda x: smelt.concatenate([x, smelt.zeros((0, 4))]), (X,), {}),
    "indices": (lambda x, i: x[i] + smelt.take(W, i, axis=0)[:, :4], (X, smelt.array([1, 2])), {}),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_round_trips(name, tmp_path):
    fun, args, kwargs = FUNCTIONS[name]
    found, expected = through(tmp_path, fun, *args, **kwargs)(*args, **kwargs), fun(*args, **kwargs)
    if isinstance(expected, smelt.array):
        expected = (expected,)
    same(found, tuple(expected) if isinstance(expected, list) else expected)


@pytest.mark.parametrize("name", ["captured", "loops", "checkpoint", "indices"])
def test_transformations_of_what_is_read(name, tmp_path):
    fun, args, _ = FUNCTIONS[name]
    f = through(tmp_path, fun, *args)
    (x, *more) = args

    def first(g):
        def total(x):
            out = g(x, *more)
            return sum(r.sum() for r in (out if isinstance(out, tuple) else (out,)))

        return total

    same(smelt.grad(first(f))(x), smelt.grad(first(fun))(x))
    if not more:
        batch = smelt.stack([x, x + 1])
        found, expected = smelt.vmap(f)(batch), smelt.vmap(fun)(batch)
        same(found, expected if isinstance(expected, tuple) else (expected,))
    same(smelt.compile(f)(*args), f(*args))
    again = through(tmp_path, f, *args)
    same(again(*args), f(*args))


def test_several_traces_and_metadata(tmp_path):
    path = tmp_path / "sum.smelt"
    with smelt.exporter(path, lambda *xs, scale=1.0: sum(xs) * scale, metadata='{"a": 1}') as add:
        add(smelt.array(1.0))
        add(smelt.array(1.0), smelt.array([1.0, 2.0]))
        add(smelt.ShapeDtype((), smelt.float32), scale=smelt.array(2.0))
        add(smelt.array(1.0), scale=3.0)
        with pytest.raises(AttributeValueError, match=r"already.*test_export"):
            add(smelt.array(7.0))
        assert not path.exists()
    with pytest.raises(TraceError, match="written"):
        add(smelt.array(1))
    f, metadata = smelt.import_function(path, return_metadata=True)
    assert metadata == '{"a": 1}' and "4 traces" in repr(f)
    one = smelt.array(2.0)
    assert [f(*a, **k)[0].tolist() for a, k in (
        ((one,), {}), ((one, smelt.array([1.0, 2.0])), {}), ((one,), {"scale": one}), ((one,), {"scale": 3.0}),
        (((one,), {"scale": one}), {}), (((one,),), {}),
    )] == [2, [3, 4], 4, 6, 4, 2]  # fmt: skip
    for args, kwargs in (((), {}), ((smelt.array(1),), {}), ((one,), {"scale": 4.0}), (([one, 1],), {})):
        listed = r"no trace for .*\n  1\. \(f32\[\]\)\n.*\n  3\. \(f32\[\], scale=f32\[\]\)"
        with pytest.raises(TreeError, match=listed):
            f(*args, **kwargs)
    with pytest.raises(ZeroDivisionError), smelt.exporter(tmp_path / "none", lambda x: x) as add:
        add(one)
        raise ZeroDivisionError
    assert not (tmp_path / "none").exists()


def test_other_sizes(tmp_path):
    def f(x, y):
        rows = x.shape[0]
        return smelt.softmax(x @ W, axis=-1).reshape(rows * 5) * smelt.concatenate([y, y])[: x.shape[0]].sum(), x.T

    g = through(tmp_path, f, X, smelt.ones(7), shapeless=True)
    for rows, count in ((3, 7), (6, 7), (5, 7), (1, 7), (7, 7), (4, 9), (2, 2), (1, 1)):
        x, y = smelt.random.normal((rows, 4)), smelt.random.normal((count,))
        same(g(x, y), f(x, y))
    with pytest.raises(TreeError, match=r"no trace for \(f32\[3,5\], f32\[7\]\)"):
        g(smelt.ones((3, 5)), smelt.ones(7))  # W has four rows
    same(smelt.grad(lambda x: g(x, Y)[0].sum())(X + 1), smelt.grad(lambda x: f(x, Y)[0].sum())(X + 1))


def test_a_program_that_depends_on_sizes_is_right_or_an_error(tmp_path):
    def f(x):
        return x * 2 if x.shape[0] > 3 else x - 1

    g = through(tmp_path, f, smelt.ones(5), shapeless=True)
    same(g(smelt.ones(9)), (f(smelt.ones(9)),))
    for count in (0, 1, 2, 3):
        with pytest.raises(TreeError, match="no trace"):
            g(smelt.ones(count))

    def broadcast(x, y):
        return x + y if x.shape == y.shape else x[:, None] + y

    g = through(tmp_path, broadcast, smelt.ones(5), smelt.ones(4), shapeless=True)
    same(g(smelt.ones(2), smelt.ones(3)), (broadcast(smelt.ones(2), smelt.ones(3)),))
    with pytest.raises(TreeError, match="no trace"):
        g(smelt.ones(3), smelt.ones(3))
    with pytest.raises(AttributeValueError, match="shapeless=True needs a function that is the same for all sizes"):
        through(tmp_path, lambda x: smelt.ones(x.shape[0] ** 2).sum() + x, smelt.ones(5), shapeless=True)
    copy = smelt.fast.metal_kernel(name="copy", input_names=["a"], output_names=["b"],
                                   source="b[thread_position_in_grid.x] = a[thread_position_in_grid.x];")  # fmt: skip

    def copied(x):
        options = {"grid": (x.size, 1, 1), "threadgroup": (1, 1, 1)}
        return copy(inputs=[x], output_shapes=[x.shape], output_dtypes=[x.dtype], **options)[0]

    with pytest.raises(AttributeValueError, match="an op in it keeps sizes in what cannot follow them"):
        through(tmp_path, copied, smelt.ones(5), shapeless=True)


def quantized() -> smelt.nn.Module:
    made = smelt.nn.Sequential(smelt.nn.Linear(64, 32), smelt.nn.ReLU(), smelt.nn.Linear(32, 64))
    smelt.nn.quantize(made, group_size=32)
    return made


def attention(x: smelt.array) -> smelt.array:
    return smelt.fast.scaled_dot_product_attention(x, x, x, scale=0.5)


#: Functions, sizes that they are exported for, and others. Sizes that are 1, like others, or like those of weights.
SIZES: dict[str, tuple[Callable[[], Callable[..., Any]], list[Any], list[Any]]] = {
    "matmul": (lambda: lambda x: x @ W, [(1, 4, 4), (5, 4, 4)], [(3, 4, 4), (1, 1, 4), (2, 7, 4), (0, 4, 4)]),
    "sums": (lambda: lambda x: x + x.mean(axis=0), [(4, 4), (1, 4)], [(2, 3), (1, 5), (6, 6)]),
    "norms": (lambda: smelt.nn.LayerNorm(4), [(1, 4), (4, 4)], [(1, 4), (7, 4), (0, 4)]),
    "loss": (lambda: lambda x: smelt.nn.losses.mse_loss(x, x * 2), [(3, 4)], [(7, 2), (1, 4)]),
    "picture": (lambda: smelt.nn.Conv2d(3, 4, 3, 1, 1), [(2, 8, 8, 3), (1, 3, 3, 3)], [(1, 8, 8, 3), (4, 9, 5, 3)]),
    "pool": (lambda: smelt.nn.AvgPool2d(2), [(1, 4, 4, 2)], [(3, 8, 6, 2), (1, 4, 4, 1)]),
    "attention": (lambda: attention, [(1, 2, 6, 8), (3, 6, 6, 6)], [(4, 2, 9, 8), (3, 2, 5, 8)]),
    "encoder": (lambda: smelt.nn.TransformerEncoder(1, 8, 2, 16).eval(), [(1, 6, 8)], [(4, 6, 8), (2, 9, 8)]),
    "quantized": (quantized, [(32, 64), (1, 64), (512, 64)], [(3, 64), (1, 64), (100, 64)]),
}  # fmt: skip


@pytest.mark.parametrize("name", SIZES)
def test_sizes_that_were_alike_may_differ(name: str, tmp_path: Path) -> None:
    make, traced, others = SIZES[name]
    f = make()
    if isinstance(f, smelt.nn.Module):
        smelt.eval(f.parameters())
    call = f if not isinstance(f, smelt.nn.TransformerEncoder) else lambda x: f(x, None)
    for first in traced:
        g = through(tmp_path, call, smelt.random.normal(first), shapeless=True)
        for shape in (first, *others):
            x = smelt.random.normal(shape)
            found, want = g(x)[0], call(x)
            assert found.shape == want.shape, (first, shape)
            where = f"{first} {shape}"
            np.testing.assert_allclose(np.asarray(found), np.asarray(want), rtol=1e-4, atol=1e-5, err_msg=where)


def test_metadata_is_a_text(tmp_path: Path) -> None:
    smelt.export_function(tmp_path / "f", lambda x: x + 1, X)
    assert smelt.import_function(tmp_path / "f", return_metadata=True)[1] == ""


def test_models(tmp_path):
    model = smelt.nn.Sequential(smelt.nn.Linear(4, 8), smelt.nn.ReLU(), smelt.nn.Linear(8, 2))
    f = through(tmp_path, model, X, shapeless=True)
    for rows in (3, 1, 2, 8, 4, 11, 0):
        x = smelt.random.normal((rows, 4))
        same(f(x), (model(x),))


def test_a_callback_is_told_of_the_trace():
    told: list[dict[str, Any]] = []
    smelt.export_function(told.append, lambda x, y: (x @ W + y).sum(), X, y=Y)
    assert [t["type"] for t in told[:4]] == ["inputs", "keyword_inputs", "outputs", "constants"]
    assert [shape for _, shape, _ in told[0]["inputs"]] == [(3, 4), (5,)]
    assert told[1]["keywords"] == [("y", told[0]["inputs"][1][0])]
    assert told[3]["constants"][0][1].shape == (4, 5)
    assert {t["type"] for t in told[4:]} == {"primitive"}
    assert [t["name"] for t in told[4:]] == ["Matmul", "Broadcast", "Add", "Sum"]
    assert told[-1]["outputs"] == told[2]["outputs"]
    with pytest.raises(AttributeValueError, match="callbacks"):
        smelt.export_function(told.append, lambda x: x, X, metadata="m")


def test_arguments(tmp_path):
    for call in (
        lambda: smelt.export_function(3, lambda x: x, X), lambda: smelt.exporter(tmp_path / "f", 3),
        lambda: smelt.exporter(tmp_path / "f", lambda x: x, metadata=3),
        lambda: through(tmp_path, lambda x: x, object()),
        lambda: through(tmp_path, lambda x: object(), X), lambda: through(tmp_path, lambda x: x.item(), X),
        lambda: through(tmp_path, lambda x: {1: x}, X), lambda: smelt.import_function(3),
        lambda: smelt.import_function(tmp_path / "f", custom_calls="a"),
    ):  # fmt: skip
        with pytest.raises(SmeltError, match=r"test_export\.py"):
            call()
    with pytest.raises(FileNotFoundError):
        smelt.import_function(tmp_path / "missing")


def test_another_process_and_the_command_line(tmp_path):
    smelt.export_function(tmp_path / "f.smelt", lambda x, y: x @ W + y, X, Y)
    smelt.save(tmp_path / "x", X)
    smelt.save(tmp_path / "y", Y)
    expected = np.array(X @ W + Y)
    code = "import smelt; f, load = smelt.import_function('f.smelt'), smelt.load\n"
    code += "smelt.save('z', f(load('x.npy'), load('y.npy'))[0])"
    for command in (
        [sys.executable, "-c", code],
        [sys.executable, "-m", "smelt", "run", "f.smelt", "--input", "x.npy", "--input", "y.npy", "--output", "z.npy"],
    ):
        subprocess.run(command, cwd=tmp_path, check=True, env={**os.environ})
        np.testing.assert_allclose(np.load(tmp_path / "z.npy"), expected, rtol=1e-6)
        (tmp_path / "z.npy").unlink()


register_target(Target("tests.exported", lambda call, x: x + 1))


def test_nothing_is_called_that_was_not_allowed(tmp_path):
    def f(x):
        return smelt.custom_call("tests.exported", x, types=smelt.ShapeDtype(x.shape, x.dtype))

    smelt.export_function(tmp_path / "f", f, X)
    with pytest.raises(FileFormatError, match=r"calls 'tests\.exported'; custom_calls=\['tests\.exported'\] lets it"):
        smelt.import_function(tmp_path / "f")
    same(smelt.import_function(tmp_path / "f", custom_calls=["tests.exported"])(X), (X + 1,))


def exported(fun: Callable, *args: Any, tmp: Path, **kwargs: Any) -> bytes:
    smelt.export_function(tmp / "f", fun, *args, **kwargs)
    return (tmp / "f").read_bytes()


def test_hostile_files(tmp_path):
    good = exported(lambda x, y: smelt.exp(x @ W) + y, X, Y, tmp=tmp_path, shapeless=True)
    header = json.loads(good.split(b"\n")[1][3:])

    def changed(change: Callable[[dict], Any], text: Callable[[bytes], bytes] = lambda t: t) -> bytes:
        other = json.loads(json.dumps(header))
        change(other)
        first, old, rest = good.split(b"\n", 2)
        new = b"// " + json.dumps(other).encode()
        return b"\n".join([first, new + b" " * ((len(old) - len(new)) % 8), text(rest)])

    def of_trace(**new: Any) -> bytes:
        return changed(lambda h: h["traces"][0].update(new))

    def of_sizes(**new: Any) -> bytes:
        return changed(lambda h: h["traces"][0]["sizes"].update(new))

    deep: Any = {"value": 1}
    for _ in range(100):
        deep = {"list": [deep]}
    bad = {
        "no mark": good[3:], "no header": MARK + good.partition(b"}]}\n")[2], "list": MARK + b"// [1]\n",
        "no traces": changed(lambda h: h.pop("traces")), "metadata": changed(lambda h: h.update(metadata=3)),
        "traces": changed(lambda h: h.update(traces=3)), "trace": changed(lambda h: h.update(traces=[3])),
        "function": of_trace(function="other"), "arguments": of_trace(arguments=[{"tuple": []}, {"dict": {}}]),
        "one form": of_trace(arguments=[{"tuple": []}]), "deep": of_trace(results=deep),
        "kind": of_trace(results={"set": []}), "dtype": of_trace(results={"array": ["f33"]}),
        "shape": of_trace(results={"array": ["f32", -1]}), "huge": of_trace(results={"array": ["f32", 2**62, 2**62]}),
        "captured": of_trace(captured=["x"]), "more captured": of_trace(captured=["captured.0"] * 2),
        "result": of_trace(results={"array": ["f32", 3, 6]}), "sizes": of_trace(sizes=3),
        "names": of_sizes(functions=["other"]), "no names": of_sizes(functions=[]),
        "no arrays": good.partition(b"\0")[0],
        "no module": changed(lambda h: None, lambda t: b"nonsense" + t[t.index(b"\0"):]),
        "cut": good[: len(good) // 2], "cut arrays": good[:-4],
    }  # fmt: skip
    for what, data in bad.items():
        assert data != good, what
        with pytest.raises(FileFormatError, match=r"open file.*test_export\.py"):
            smelt.import_function(io.BytesIO(data))
            raise AssertionError(what)
    for what, data in {
        "lines": of_sizes(cases=[{"equal": {}, "lines": [["t0", "**", 9, 9]]}]),
        "cases": of_sizes(cases=3),
        "large": of_sizes(cases=[{"equal": {}, "lines": [[f"t{i + 1}", "*", f"t{i}", f"t{i}"] for i in range(99)]}]),
        "outputs": of_sizes(outputs=[3]),
        "wrong": of_sizes(outputs=[[None, [[None, [["v1"]]]] * 4]]),
        "wrong sizes": changed(lambda h: h["traces"][0]["sizes"]["outputs"][0][1].reverse()),
    }.items():
        f = smelt.import_function(io.BytesIO(data))
        with pytest.raises(SmeltError):
            smelt.eval(f(smelt.ones((7, 4)), Y))
            raise AssertionError(what)


def test_ops_that_were_removed(tmp_path):
    now = exported(lambda key: smelt.random.split(key, 3)[1:], smelt.random.key(7), tmp=tmp_path)
    split = b'"smelt.random_bits"(%arg0) {shape = array<i64: 3, 2>, width = 32 : i64}'
    assert split in now
    then = now.replace(split, b'"smelt.random_split"(%arg0) {num = 3 : i64}')
    (found,) = smelt.import_function(io.BytesIO(then))(smelt.random.key(7))
    assert found.tolist() == smelt.random.split(smelt.random.key(7), 3)[1:].tolist()
    with pytest.raises(FileFormatError, match=r"smelt\.random_future is an op of another version"):
        smelt.import_function(io.BytesIO(now.replace(split, split.replace(b"random_bits", b"random_future"))))


def test_functions_that_apply_themselves(tmp_path):
    head = exported(lambda x: x + 1, X, tmp=tmp_path).decode().partition("module {")[0]
    kind = "(tensor<3x4xf32>) -> tensor<3x4xf32>"

    def calls(name: str, callee: str) -> str:
        body = f"%0 = func.call @{callee}(%x) : {kind}\n return %0 : tensor<3x4xf32>"
        return f"func.func {name}(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {{ {body} }}\n"

    chain = [calls("@main", "f0"), *(calls(f"private @f{i}", f"f{i + 1}") for i in range(2000))]
    end = "func.func private @f2000(%x: tensor<3x4xf32>) -> tensor<3x4xf32> { return %x : tensor<3x4xf32> }"
    cases = {"applies itself": calls("@main", "main"), "deep": "".join(chain) + end}
    for what, text in cases.items():
        with pytest.raises(FileFormatError, match=what):
            smelt.import_function(io.BytesIO((head + text).encode()))


def test_mutated_files(tmp_path):
    files = [exported(*FUNCTIONS[name][:1], *FUNCTIONS[name][1], tmp=tmp_path, **FUNCTIONS[name][2])
             for name in ("captured", "trees", "loops", "rules")]  # fmt: skip
    files.append(exported(lambda x, y: x @ W + y, X, Y, tmp=tmp_path, shapeless=True))
    for seed in range(300):
        rng = random.Random(seed)
        data = mutated_bytes(rng.choice(files), files, rng)
        try:
            smelt.import_function(io.BytesIO(data))
        except FileFormatError:
            pass
        except Exception as error:
            raise AssertionError(f"seed {seed}: {type(error).__name__}: {error}") from error


def test_names_of_ops_are_those_of_mlx() -> None:
    x, m = smelt.array([0.5, 1.0]), smelt.ones((2, 2))
    calls: dict[str, Any] = {
        "Sin": smelt.sin(x), "ArcSin": smelt.arcsin(x), "Log1p": smelt.log1p(x), "ErfInv": smelt.erfinv(x),
        "Negative": -x,
        "Subtract": x - x, "Multiply": x * x, "Divide": x / x, "FloorDivide": x // x, "LessEqual": x <= x,
        "AsType": x.astype(smelt.int32), "Matmul": m @ m, "Sum": m.sum(), "And": m.astype(smelt.bool_).all(),
        "ArgReduce": m.argmax(axis=0), "ArgSort": smelt.argsort(x), "CumSum": smelt.cumsum(x),
        "Select": smelt.where(x > 0, x, x),
        "StopGradient": smelt.stop_gradient(x), "Cholesky": smelt.linalg.cholesky(m), "Inverse": smelt.linalg.inv(m),
        "SVD": smelt.linalg.svd(m)[0], "FFT": smelt.fft.rfft(x), "RandomBits": smelt.random.bits((2,)),
    }  # fmt: skip
    for name, y in calls.items():
        file = io.StringIO()
        smelt.export_to_dot(file, y)
        assert f'label="{name}"' in file.getvalue(), name
    assert all(op.primitive[:1].isupper() and op.primitive.isalnum() for op in registry.values())


def test_pictures(tmp_path):
    x, y = smelt.array([1.0]), smelt.array([2.0])
    z = smelt.sin(x + y)
    smelt.export_to_dot(tmp_path / "g.dot", z, z * 2, first=x)
    text = (tmp_path / "g.dot").read_text()
    assert text.startswith('digraph {\n{ rank=source; "A"; }') and text.count("shape=rectangle") == 4
    assert all(f'label="{op}"' in text for op in ("Add", "Sin", "Multiply", "Broadcast")) and '"first" -> n' in text
    smelt.eval(z)
    file = io.StringIO()
    smelt.export_to_dot(file, z)
    assert file.getvalue() == 'digraph {\n{ rank=source; "A"; }\n}\n'
    for arguments in ((3, x), (tmp_path / "h", 3)):
        with pytest.raises(SmeltError, match="export_to_dot"):
            smelt.export_to_dot(*arguments)
    many = x
    for _ in range(20_000):
        many = many + 1
    smelt.export_to_dot(file, many)


def test_dicts_keep_their_order(tmp_path):
    def f(d):
        return {"z": next(iter(d.values())) * 2, "a": d["a"]}

    x, y = smelt.array([1.0]), smelt.array([5.0])
    with smelt.exporter(tmp_path / "f", f) as add:
        add({"b": x, "a": [y]})
    g = smelt.import_function(tmp_path / "f")
    found = g({"b": x, "a": [y]})
    assert list(found) == ["z", "a"] and found["z"].tolist() == [2] and found["a"][0].tolist() == [5]
    with pytest.raises(TreeError, match="no trace"):
        g({"a": [y], "b": x})
    h = through(tmp_path, lambda *, b, a: a - b, b=x, a=y)
    assert h(a=y, b=x)[0].tolist() == h(b=x, a=y)[0].tolist() == h({"b": x, "a": y})[0].tolist() == [4]


def test_a_list_of_arrays_stands_for_arguments_as_in_mlx(tmp_path):
    path, x = tmp_path / "f.smelt", smelt.array([1.0, 2.0])
    for given in (x, [x], (x,)):
        smelt.export_function(
            path, lambda x: smelt.abs(smelt.sin(smelt.array(x[0] if isinstance(x, list) else x))), given
        )
        f = smelt.import_function(path)
        for again in (x, [x], (x,)):
            np.testing.assert_allclose(np.asarray(f(again)[0]), np.abs(np.sin([1.0, 2.0])), 1e-6)
        with pytest.raises(smelt.SmeltError, match="has no trace for"):
            f(x, x)
    with smelt.exporter(path, smelt.sin) as exporter:
        exporter(x)
    with pytest.raises(RuntimeError, match="has been written"):  # as MLX raises
        exporter(smelt.ones(3))


def test_rules_of_functions_are_part_of_a_file(tmp_path):
    """Derivatives of what is read are those of the exported function, of any order, batched and compiled."""
    w = smelt.array([3.0, 4.0])
    by_vjp = smelt.custom_vjp(lambda x: smelt.sin(x) * w)
    by_vjp.defvjp(lambda x: (smelt.sin(x) * w, x * w), lambda kept, ct: (ct * kept * w,))
    by_jvp = smelt.custom_jvp(lambda x: x * x)
    by_jvp.defjvps(lambda t, y, x: t * y * 5)
    both = smelt.custom_function(lambda x, y: x * y)
    both.vjp(lambda primals, ct, out: (ct * 100 * primals[1], ct * 200))

    def loop(x):
        return smelt.scan(lambda a, b: (by_jvp(a) * b, a), x, smelt.ones((3,)))[0]

    again = smelt.checkpoint(lambda x: by_vjp(smelt.exp(x)))
    x = smelt.array([0.5, 2.0])
    mapped = smelt.vmap(by_vjp)
    for f in (by_vjp, by_jvp, lambda x: both(x, 2 * x), loop, again, lambda x: mapped(smelt.stack([x, x]))[1]):
        smelt.export_function(str(tmp_path / "f.smelt"), f, x)
        read = smelt.import_function(str(tmp_path / "f.smelt"))

        def gradients(f):
            slope = smelt.grad(lambda x: f(x).sum())
            return [slope(x), smelt.grad(lambda x: slope(x).sum())(x), smelt.compile(slope)(x),
                    smelt.vmap(slope)(smelt.stack([x, x * 2])), smelt.jvp(slope, [x], [w])[1][0]]  # fmt: skip

        for found, want in zip(gradients(lambda x, read=read: read(x)[0]), gradients(f)):
            np.testing.assert_allclose(np.asarray(found), np.asarray(want), rtol=1e-6)


def test_rules_of_functions_hold_for_all_sizes(tmp_path):
    w = smelt.array([3.0, 4.0])
    by_vjp = smelt.custom_vjp(lambda x: smelt.sin(x) * w)
    by_vjp.defvjp(lambda x: (smelt.sin(x) * w, x * w), lambda kept, ct: (ct * kept * w,))
    by_jvp = smelt.custom_jvp(lambda x: x * x)
    by_jvp.defjvps(lambda t, y, x: t * y * 5)
    mapped, again = smelt.vmap(by_jvp), smelt.checkpoint(by_vjp)

    def twice(x):  # equal functions, and one that differs in its sizes
        return by_vjp(by_jvp(x)) + by_vjp(x) + by_jvp(smelt.concatenate([x, x]))[: x.shape[0]]

    def looped(x):
        return smelt.scan(lambda a, b: (by_jvp(a) * b, a), x, smelt.ones((3,)))[0] + mapped(x) + again(x)

    for f in (twice, looped, smelt.grad(lambda x: halved(x).sum())):
        read = through(tmp_path, f, smelt.ones((5, 2)), shapeless=True)
        for n in (5, 3, 7):
            x = smelt.array(np.linspace(0.3, 2, 2 * n).reshape(n, 2), smelt.float32)
            slopes = [smelt.grad(lambda x, f=f: f(x).sum()) for f in (f, lambda x, read=read: read(x)[0])]
            curves = [smelt.grad(lambda x, s=s: s(x).sum()) for s in slopes]
            for want, found in (slopes, curves):
                np.testing.assert_allclose(np.asarray(found(x)), np.asarray(want(x)), rtol=1e-5)
