"""ONNX models run with the values of the standard's own tests, transform like other functions, and are refused well."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.exchange.onnx.graph import MOST_DEEP, RULES, Node
from smelt.ir.errors import ArgumentTypeError, DTypeError, FileFormatError, ShapeError
from smelt.tools.cli import main

onnx = pytest.importorskip("onnx")

from .onnx_nodes import cases_of, outcome  # noqa: E402

#: One op of each family of the table; `python -m tests.exchange.onnx_nodes` runs all cases.
OPS = ("Div", "Clip", "Slice", "Pad", "ReduceSum", "ScatterND", "TopK", "MaxPool", "ConvTranspose", "LSTM", "If",
       "Loop", "Resize", "GridSample", "QLinearMatMul", "LayerNormalization", "Attention", "SequenceInsert",
       "DFT", "ConvInteger", "QLinearConv", "MatMulInteger", "Gemm")  # fmt: skip


def model(nodes: list[Any], inputs: dict[str, tuple[int, list[Any]]], outputs: list[str], **more: Any) -> bytes:
    """A model of float32 results."""
    h = onnx.helper
    given = [h.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()]
    made = [h.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in outputs]
    opset = more.pop("opset", 21)
    functions = more.pop("functions", [])
    graph = h.make_graph(nodes, "small", given, made, **more)
    opsets = [h.make_opsetid("", opset), h.make_opsetid("own", 1)]
    return bytes(h.make_model(graph, opset_imports=opsets, functions=functions).SerializeToString())


def mlp() -> bytes:
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=s).astype(np.float32) for s in ((3, 4), (4,), (4, 2))]
    nodes = [
        onnx.helper.make_node("Gemm", ["x", "w1", "b1"], ["a"]),
        onnx.helper.make_node("Relu", ["a"], ["h"]),
        onnx.helper.make_node("MatMul", ["h", "w2"], ["y"]),
    ]
    constants = [onnx.numpy_helper.from_array(w, n) for n, w in zip(("w1", "b1", "w2"), weights)]
    return model(nodes, {"x": (onnx.TensorProto.FLOAT, ["batch", 3])}, ["y"], initializer=constants)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("op", OPS)
def test_cases_of_the_standard(op: str) -> None:
    of_op = cases_of(op)
    assert of_op
    for case in of_op[:6]:
        found, why = outcome(case)
        assert found in ("right", "refused-dtype"), f"{case.name}: {why}"


def test_function_of_arrays() -> None:
    f = smelt.from_onnx(mlp())
    assert str(f) == "<smelt.from_onnx small(x: f32[batch,3]) -> (y)>"
    w1, b1, w2 = (np.array(f.weights[n]) for n in ("w1", "b1", "w2"))
    for batch in (2, 5):
        x = np.random.default_rng(batch).normal(size=(batch, 3)).astype(np.float32)
        wanted = np.maximum(x @ w1 + b1, 0) @ w2
        for found in (f(smelt.array(x)), f(x=smelt.array(x)), smelt.compile(f)(smelt.array(x))):
            np.testing.assert_allclose(np.array(found), wanted, rtol=1e-5, atol=1e-6)
        rows = smelt.vmap(lambda row: f(row[None])[0])(smelt.array(x))
        np.testing.assert_allclose(np.array(rows), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint64, np.uint32], ids=lambda kind: kind.__name__)
def test_products_of_integers_are_exact(kind: Any) -> None:
    of_onnx = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    nodes = [onnx.helper.make_node("MatMul", ["x", "x"], ["a"]), onnx.helper.make_node("Gemm", ["a", "x"], ["y"])]
    f = smelt.from_onnx(model(nodes, {"x": (of_onnx, [2, 2])}, ["y"]))
    x = np.array([[2**31 - 1, 3], [1, 2**30 + 7]], kind)
    np.testing.assert_array_equal(np.asarray(f(smelt.array(x))), x @ x @ x, strict=True)


def test_convolutions_of_integers_are_exact() -> None:
    """Their sums are more than float32 holds."""
    kind, rng = onnx.TensorProto.UINT8, np.random.default_rng(0)
    node = onnx.helper.make_node("ConvInteger", ["x", "w", "xz", "wz"], ["y"])
    shapes = {"x": [1, 512, 2, 3], "w": [4, 512, 2, 2], "xz": [], "wz": [4]}
    f = smelt.from_onnx(model([node], {name: (kind, shape) for name, shape in shapes.items()}, ["y"]))
    x, w = (rng.integers(200, 256, shape, np.uint8) for shape in ((1, 512, 2, 3), (4, 512, 2, 2)))
    wz = np.arange(4, dtype=np.uint8)
    centred = w.astype(np.int64) - wz[:, None, None, None]
    windows = np.stack([x[0, :, :, i : i + 2].astype(np.int64) - 1 for i in range(2)])
    wanted = np.einsum("ichw,ochw->oi", windows, centred)[None, :, None].astype(np.int32)
    assert wanted.min() > 2**24
    np.testing.assert_array_equal(
        np.asarray(f(smelt.array(x), smelt.array(w), smelt.array(1, smelt.uint8), smelt.array(wz))), wanted, strict=True
    )


def test_threads_run_a_model_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """More of them than graphs may nest."""
    threads = MOST_DEEP + 4
    together = threading.Barrier(threads, timeout=60)

    def meet(node: Node) -> smelt.array:
        together.wait()
        return node.x

    monkeypatch.setitem(RULES, ("own", "Meet"), meet)
    inner = onnx.helper.make_node("Meet", ["a"], ["b"], domain="own")
    function = onnx.helper.make_function("own", "Met", ["a"], ["b"], [inner], [onnx.helper.make_opsetid("own", 1)])
    met = onnx.helper.make_node("Met", ["x"], ["y"], domain="own")
    f = smelt.from_onnx(model([met], {"x": (onnx.TensorProto.FLOAT, [2])}, ["y"], functions=[function]))
    with ThreadPoolExecutor(threads) as pool:
        found = list(pool.map(lambda i: f(smelt.array([i, 2.0])).tolist(), range(threads)))
    assert found == [[i, 2.0] for i in range(threads)]


def test_weights_have_gradients() -> None:
    f = smelt.from_onnx(mlp())
    x = smelt.array([[1.0, -2.0, 0.5]])
    found = smelt.grad(lambda w: f.apply(w, x).sum())(dict(f.weights))
    hidden = np.maximum(np.array(x @ f.weights["w1"] + f.weights["b1"]), 0)
    np.testing.assert_allclose(np.array(found["w2"]), np.repeat(hidden.T, 2, 1), rtol=1e-6)


def test_on_metal() -> None:
    f = smelt.from_onnx(mlp())
    x = smelt.array([[1.0, -2.0, 0.5]])
    wanted = np.array(f(x))
    before = smelt.default_device()
    smelt.set_default_device("metal:sim")
    try:
        np.testing.assert_allclose(np.array(smelt.compile(f)(x)), wanted, rtol=1e-5, atol=1e-6)
    finally:
        smelt.set_default_device(before)


def test_loop_whose_end_depends_on_values() -> None:
    """Compiled it is a loop of the program."""
    h = onnx.helper
    flag, number = onnx.TensorProto.BOOL, onnx.TensorProto.FLOAT
    body = h.make_graph(
        [h.make_node("Add", ["v", "v"], ["w"]), h.make_node("Less", ["w", "limit"], ["goes"])],
        "body",
        [h.make_tensor_value_info(n, k, []) for n, k in (("i", 7), ("on", flag), ("v", number))],
        [h.make_tensor_value_info(n, k, []) for n, k in (("goes", flag), ("w", number))],
    )
    nodes = [h.make_node("Less", ["x", "limit"], ["start"]), h.make_node("Loop", ["", "start", "x"], ["y"], body=body)]
    constants = [onnx.numpy_helper.from_array(np.float32(100), "limit")]
    f = smelt.from_onnx(model(nodes, {"x": (number, [])}, ["y"], initializer=constants))
    for x in (3.0, 200.0):
        wanted = x
        while wanted < 100:
            wanted *= 2
        assert f(smelt.array(x)).item() == wanted
        assert smelt.compile(f)(smelt.array(x)).item() == wanted


def test_functions_of_the_model() -> None:
    """Their attributes may be those of the node that calls them."""
    h = onnx.helper
    body = [h.make_node("LeakyRelu", ["a"], ["c"])]
    body[0].attribute.append(onnx.AttributeProto(name="alpha", ref_attr_name="slope", type=1))
    own = h.make_function("own", "Leaky", ["a"], ["c"], body, [h.make_opsetid("", 21)], ["slope"])
    nodes = [h.make_node("Leaky", ["x"], ["y"], domain="own", slope=0.25)]
    f = smelt.from_onnx(model(nodes, {"x": (1, [2])}, ["y"], functions=[own]))
    assert f(smelt.array([-4.0, 4.0])).tolist() == [-1.0, 4.0]


def test_files_and_data_beside_them(tmp_path: Path) -> None:
    proto = onnx.ModelProto.FromString(mlp())
    path = tmp_path / "model.onnx"
    onnx.save(proto, str(path), save_as_external_data=True, location="weights.bin", size_threshold=0)
    f = smelt.from_onnx(path)
    x = smelt.ones((1, 3))
    assert f.__name__ == "model.onnx"
    np.testing.assert_array_equal(np.array(f(x)), np.array(smelt.from_onnx(mlp())(x)))
    with pytest.raises(FileFormatError, match=r"weights in weights\.bin, which bytes alone are without"):
        smelt.from_onnx(path.read_bytes())
    (tmp_path / "weights.bin").write_bytes(b"")
    with pytest.raises(FileFormatError, match=r"weights in weights\.bin, not to be read"):
        smelt.from_onnx(path)
    (tmp_path / "weights.bin").unlink()
    with pytest.raises(FileFormatError, match=r"model\.onnx keeps weights in weights\.bin, and there is no such file"):
        smelt.from_onnx(path)


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, given, made = tmp_path / "m.onnx", tmp_path / "x.npy", tmp_path / "y.npy"
    path.write_bytes(mlp())
    x = np.ones((2, 3), np.float32)
    np.save(given, x)
    wanted = np.array(smelt.from_onnx(mlp())(smelt.array(x)))
    for device in ("cpu", "metal:sim"):
        arguments = ["run", str(path), "--input", str(given), "--output", str(made), "--device", device]
        assert main(arguments, isolate=False) == 0, capsys.readouterr().err
        np.testing.assert_allclose(np.load(made), wanted, rtol=1e-5, atol=1e-6)
    np.save(given, np.ones((2, 2), np.float32))
    assert main(["run", str(path), "--input", str(given)], isolate=False) == 1
    assert "must be x: f32[batch,3], is f32[2,2]" in capsys.readouterr().err


def test_commands_for_ir_say_what_takes_models(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(mlp() + b"\xff")
    assert main(["view", str(path), "-o", str(tmp_path / "page.html")], isolate=False) == 1
    assert "an ONNX model is no MLIR text: smelt run runs it; smelt.from_onnx" in capsys.readouterr().err


def node(op: str, *inputs: str, **attributes: Any) -> bytes:
    return model([onnx.helper.make_node(op, inputs or ["x"], ["y"], **attributes)], {"x": (1, [2])}, ["y"])


@pytest.mark.parametrize(
    "data, message",
    [
        (
            lambda: node("Gram", domain="own"),
            r"node y \(Gram\): Gram is an op of the domain own.*RULES\['own', 'Gram'\]",
        ),
        (lambda: node("TfIdfVectorizer"), r"TfIdfVectorizer has no translation; there are Abs, Acos,"),
        (lambda: node("Cast", to=onnx.TensorProto.FLOAT8E5M2), "asks for FLOAT8E5M2, for which smelt has no dtype"),
        (lambda: node("Add", "x", "z"), r"node y \(Add\): input z is computed by no node"),
        (lambda: node("Transpose", perm=[0, 1]), r"node y \(Transpose\)"),
        (lambda: node("Pad", "x", "x", mode="wild"), r"node y \(Pad\)"),
        (lambda: node("Loop"), r"node y \(Loop\)"),
    ],
)
def test_what_has_no_translation(data: Any, message: str) -> None:
    with pytest.raises(smelt.SmeltError, match=message):
        smelt.from_onnx(data())(smelt.array([1.0, 2.0]))


@pytest.mark.parametrize("size, said", [(2, "a window of 2"), (3, "a window of 3"), (1 << 62, "which has 1 with")])
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "LpPool"])
def test_windows_for_which_there_is_no_room(op: str, size: int, said: str) -> None:
    """Each element of a window is an op, of which there were as many as the file says."""
    pool = model([onnx.helper.make_node(op, ["x"], ["y"], kernel_shape=[2, size])], {"x": (1, [1, 1, 3, 1])}, ["y"])
    with pytest.raises(smelt.SmeltError, match=said):
        smelt.from_onnx(pool)(smelt.ones((1, 1, 3, 1)))


def test_arguments() -> None:
    f = smelt.from_onnx(mlp())
    for args in ((), (smelt.ones((1, 3)), smelt.ones(1))):
        with pytest.raises(ArgumentTypeError, match=r"takes 1 inputs \(x: f32\[batch,3\]\)"):
            f(*args)
    with pytest.raises(ShapeError, match=r"input x of small must be x: f32\[batch,3\], is f32\[1,2\]"):
        f(smelt.ones((1, 2)))
    with pytest.raises(DTypeError, match=r"convert it with \.astype"):
        f(smelt.ones((1, 3), smelt.int32))
    with pytest.raises(ArgumentTypeError, match="has no weight 'w9'"):
        f.apply({"w9": 1.0}, smelt.ones((1, 3)))
    with pytest.raises(ShapeError, match=r"weight b1 of small must be f32\[4\]"):
        f.apply({"b1": smelt.ones(3)}, smelt.ones((1, 3)))


@pytest.mark.parametrize("data", [b"", b"no model", b"\x08\x07", bytes(1000)])
def test_bytes_that_are_no_model(data: bytes) -> None:
    with pytest.raises(FileFormatError, match="no ONNX model"):
        smelt.from_onnx(data)


def test_damaged_models_are_errors_or_models() -> None:
    rng = np.random.default_rng(1)
    whole = mlp()
    for _ in range(60):
        data = bytearray(whole)
        for at in rng.integers(0, len(data), 3):
            data[at] = rng.integers(0, 256)
        try:
            f = smelt.from_onnx(bytes(data))
            f(smelt.ones((1, 3)))
        except smelt.SmeltError:
            pass


@pytest.mark.parametrize("kind", ["FLOAT", "DOUBLE"])
def test_complex_inputs_have_parts_of_their_own(kind: str) -> None:
    """An infinite imaginary part leaves the real one alone; real numbers are as precise as they come."""
    dtype = np.dtype(np.float32 if kind == "FLOAT" else np.float64)
    z = np.array([[complex(1, np.inf), 2.0], [complex(1 / 3, 1e-9), 0.25 - 3j]], np.result_type(dtype, 1j))
    node = onnx.helper.make_node("DFT", ["x", "", "axis"], ["y"])
    axis = onnx.numpy_helper.from_array(np.array(1, np.int64), "axis")
    for given in (z.view(dtype).reshape(2, 2, 2), np.ascontiguousarray(z.real)[..., None]):
        inputs = {"x": (getattr(onnx.TensorProto, kind), list(given.shape))}
        f = smelt.from_onnx(model([node], inputs, ["y"], initializer=[axis], opset=20))
        want = np.fft.fft(z if given.shape[-1] == 2 else z.real)
        found = np.asarray(f(smelt.array(given, getattr(smelt, dtype.name))))
        rounding = 5e-6 if dtype.itemsize == 4 else 1e-14
        np.testing.assert_allclose(found, np.stack([want.real, want.imag], -1), rtol=rounding)
