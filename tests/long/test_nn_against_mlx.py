"""Layers, losses, optimizers and schedules beside MLX's, with the same weights. Runs where MLX is installed."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest

import smelt

mx = pytest.importorskip("mlx.core")
mlx_nn = pytest.importorskip("mlx.nn")
mlx_optimizers = pytest.importorskip("mlx.optimizers")
mlx_utils = pytest.importorskip("mlx.utils")

TOLERANCE = {"float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2}


def host(x: Any) -> np.ndarray:
    """The elements of an array of either framework, half precision as float32."""
    if isinstance(x, smelt.array):
        return np.asarray(x.astype(smelt.float32) if x.dtype is smelt.bfloat16 else x)
    return np.array(x.astype(mx.float32) if x.dtype == mx.bfloat16 else x)


def to_smelt(x: Any) -> smelt.array:
    dtype = str(x.dtype).rpartition(".")[2]
    return smelt.array(host(x)).astype(getattr(smelt, "bool_" if dtype == "bool" else dtype))


def flat(tree: Any) -> dict[str, np.ndarray]:
    """The arrays of a tree of either framework by their paths."""
    flatten = smelt.utils.tree_flatten if any_smelt(tree) else mlx_utils.tree_flatten
    return {path: host(x) for path, x in flatten(tree) if isinstance(x, (smelt.array, mx.array))}


def any_smelt(tree: Any) -> bool:
    return any(isinstance(x, smelt.array) for _, x in smelt.utils.tree_flatten(tree))


def agree(ours: Any, theirs: Any, tolerance: float) -> None:
    found, wanted = flat({"x": ours}), flat({"x": theirs})
    assert found.keys() == wanted.keys()
    for path, x in found.items():
        y = wanted[path]
        assert x.shape == y.shape and x.dtype == y.dtype, (path, x.dtype, y.dtype)
        np.testing.assert_allclose(x, y, tolerance, tolerance * max(1.0, np.abs(y).max(initial=0)), err_msg=path)


def rng_of(*what: Any) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(repr(what).encode()))


#: Class, arguments, shapes of the inputs ("i" in front: integers below 5).
LAYERS: list[tuple[str, tuple, dict[str, Any], list[Any]]] = [
    ("Linear", (3, 4), {}, [(2, 3)]),
    ("Linear", (3, 4), {"bias": False}, [(5, 2, 3)]),
    ("Linear", (3, 4), {}, [(3,)]),
    ("Identity", (), {}, [(2, 3)]),
    ("Bilinear", (3, 4, 5), {}, [(2, 3), (2, 4)]),
    ("Bilinear", (3, 4, 5), {"bias": False}, [(6, 2, 3), (6, 2, 4)]),
    ("Embedding", (5, 3), {}, [("i", 2, 4)]),
    ("Dropout", (0.0,), {}, [(2, 3)]),
    ("LayerNorm", (6,), {}, [(2, 3, 6)]),
    ("LayerNorm", (6,), {"affine": False}, [(2, 6)]),
    ("LayerNorm", (6,), {"bias": False, "eps": 0.1}, [(2, 6)]),
    ("RMSNorm", (6,), {}, [(2, 3, 6)]),
    ("GroupNorm", (2, 6), {}, [(2, 3, 4, 6)]),
    ("GroupNorm", (3, 6), {"pytorch_compatible": True}, [(2, 3, 4, 6)]),
    ("GroupNorm", (3, 6), {"affine": False}, [(4, 6)]),
    ("InstanceNorm", (3,), {}, [(2, 4, 3)]),
    ("InstanceNorm", (3,), {"affine": True}, [(2, 4, 5, 3)]),
    ("BatchNorm", (3,), {}, [(6, 3)]),
    ("BatchNorm", (3,), {"momentum": 0.5, "affine": False}, [(2, 4, 4, 3)]),
    ("BatchNorm", (3,), {"track_running_stats": False}, [(4, 2, 3)]),
    *((name, (), {}, [(3, 4)]) for name in (
        "ReLU", "ReLU2", "ReLU6", "LeakyReLU", "ELU", "CELU", "SELU", "SiLU", "Softplus", "LogSigmoid", "Softsign",
        "Softshrink", "HardShrink", "HardTanh", "Hardswish", "Mish", "GELU", "GLU", "PReLU", "Sigmoid", "Softmax",
        "Softmin", "LogSoftmax", "Tanh", "Step",
    )),
    ("GELU", ("fast",), {}, [(3, 4)]),
    ("GELU", ("precise",), {}, [(3, 4)]),
    ("CELU", (2.0,), {}, [(3, 4)]),
    ("ELU", (2.0,), {}, [(3, 4)]),
    ("PReLU", (4, 0.5), {}, [(3, 4)]),
    ("Conv1d", (2, 4, 3), {}, [(2, 7, 2)]),
    ("Conv1d", (4, 6, 3), {"stride": 2, "padding": 1, "dilation": 2, "groups": 2, "bias": False}, [(2, 9, 4)]),
    ("Conv2d", (2, 4, 3), {}, [(2, 6, 5, 2)]),
    ("Conv2d", (2, 4, (3, 2)), {"stride": (2, 1), "padding": (1, 0), "dilation": (1, 2)}, [(2, 6, 5, 2)]),
    ("Conv2d", (4, 4, 3), {"groups": 4}, [(2, 6, 5, 4)]),
    ("Conv3d", (2, 3, 2), {"stride": 2, "padding": 1}, [(1, 4, 5, 3, 2)]),
    ("ConvTranspose1d", (2, 4, 3), {}, [(2, 7, 2)]),
    ("ConvTranspose1d", (2, 4, 3), {"stride": 2, "padding": 1, "dilation": 2, "output_padding": 1}, [(2, 7, 2)]),
    ("ConvTranspose2d", (2, 4, (3, 2)), {"stride": (2, 1), "padding": (1, 0)}, [(2, 4, 5, 2)]),
    ("ConvTranspose3d", (2, 3, 2), {"stride": 2, "bias": False}, [(1, 2, 3, 2, 2)]),
    ("MaxPool1d", (2,), {}, [(2, 7, 3)]),
    ("MaxPool1d", (3,), {"stride": 2, "padding": 1}, [(2, 7, 3)]),
    ("MaxPool2d", ((3, 2),), {"stride": 1}, [(2, 5, 6, 3)]),
    ("MaxPool2d", (5,), {"stride": 3}, [(2, 5, 6, 3)]),
    ("MaxPool3d", (2,), {"padding": 1}, [(2, 3, 4, 5, 2)]),
    ("AvgPool1d", (3,), {"stride": 2, "padding": 1}, [(2, 7, 3)]),
    ("AvgPool2d", (2,), {}, [(2, 5, 6, 3)]),
    ("AvgPool3d", ((1, 2, 3),), {"stride": (2, 1, 1)}, [(2, 3, 4, 5, 2)]),
    ("RoPE", (4,), {}, [(2, 3, 5, 4)]),
    ("RoPE", (4,), {"traditional": True, "base": 100.0, "scale": 0.5}, [(2, 3, 5, 6)]),
    ("SinusoidalPositionalEncoding", (6,), {}, [(2, 3)]),
    ("SinusoidalPositionalEncoding", (6,), {"full_turns": True, "cos_first": True, "scale": 2.0}, [(2, 3)]),
    ("SinusoidalPositionalEncoding", (6,), {"min_freq": 0.1, "max_freq": 10.0}, [(2, 3)]),
    ("ALiBi", (), {}, [(2, 4, 3, 5)]),
    ("RNN", (3, 4), {}, [(2, 5, 3)]),
    ("RNN", (3, 4), {"bias": False}, [(5, 3), (4,)]),
    ("GRU", (3, 4), {}, [(2, 5, 3)]),
    ("GRU", (3, 4), {"bias": False}, [(5, 3), (4,)]),
    ("GRU", (3, 4), {}, [(2, 5, 3), (2, 4)]),
    ("LSTM", (3, 4), {}, [(2, 5, 3)]),
    ("LSTM", (3, 4), {"bias": False}, [(2, 5, 3), (2, 4), (2, 4)]),
    ("MultiHeadAttention", (8, 2), {}, [(2, 3, 8), (2, 5, 8), (2, 5, 8)]),
    ("MultiHeadAttention", (8, 2), {"bias": True}, [(2, 5, 8), (2, 5, 8), (2, 5, 8), (5, 5)]),
    ("MultiHeadAttention", (8, 2, 3, 4, 5, 6, 7), {}, [(2, 3, 3), (2, 5, 4), (2, 5, 5)]),
    ("TransformerEncoderLayer", (8, 2), {}, [(2, 5, 8), (5, 5)]),
    ("TransformerEncoderLayer", (8, 2, 12), {"norm_first": False}, [(2, 5, 8), (5, 5)]),
    ("TransformerDecoderLayer", (8, 2), {}, [(2, 5, 8), (2, 3, 8), (5, 5), (5, 3)]),
    ("TransformerDecoderLayer", (8, 2, 12), {"norm_first": False}, [(2, 5, 8), (2, 3, 8), (5, 5), (5, 3)]),
    ("TransformerEncoder", (2, 8, 2), {"checkpoint": True}, [(2, 5, 8), (5, 5)]),
    ("TransformerDecoder", (2, 8, 2), {}, [(2, 5, 8), (2, 3, 8), (5, 5), (5, 3)]),
    ("Transformer", (8, 2, 1, 2, 12), {}, [(2, 3, 8), (2, 5, 8), (3, 3), (5, 5), (5, 3)]),
    *(
        ("Upsample", (scale,), {"mode": mode, "align_corners": align, "antialias": smooth}, [(2, 4, 5, 3)])
        for scale in (2.0, 3, (1.7, 0.6), (2.5, 1.0), 0.5)
        for mode, align, smooth in (("nearest", False, False), ("linear", False, False), ("linear", True, False),
                                    ("cubic", False, False), ("cubic", True, False), ("linear", False, True),
                                    ("cubic", False, True))
    ),
]  # fmt: skip


def inputs_of(shapes: list[Any], rng: np.random.Generator, dtype: str) -> list[tuple[Any, Any]]:
    """Each argument for MLX and for smelt."""
    found = []
    for shape in shapes:
        if shape[0] == "i":
            value = mx.array(rng.integers(0, 5, shape[1:]).astype(np.int32))
        else:
            value = mx.array((2 * rng.standard_normal(shape)).astype(np.float32)).astype(getattr(mx, dtype))
        found.append((value, to_smelt(value)))
    return found


def outputs(x: Any) -> list[Any]:
    return list(x) if isinstance(x, (list, tuple)) else [x]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    "name, args, options, shapes", LAYERS, ids=[f"{n}-{i}" for i, (n, *_) in enumerate(LAYERS)]
)
def test_a_layer(
    name: str, args: tuple, options: dict[str, Any], shapes: list[Any], training: bool, dtype: str
) -> None:
    if name == "Upsample" and dtype != "float32":
        pytest.skip("half precision stays half precision; MLX returns float32")
    rng = rng_of(name, args, sorted(options), shapes)
    mx.random.seed(0)
    theirs, ours = getattr(mlx_nn, name)(*args, **options), getattr(smelt.nn, name)(*args, **options)
    assert list(flat(ours.parameters())) == list(flat(theirs.parameters()))  # in this order
    assert flat(ours.trainable_parameters()).keys() == flat(theirs.trainable_parameters()).keys()
    assert {k: v.shape for k, v in flat(ours.parameters()).items()} == {
        k: v.shape for k, v in flat(theirs.parameters()).items()
    }
    for module in (theirs, ours):
        module.set_dtype(getattr(mx if module is theirs else smelt, dtype))
        module.train(training)
    weights = [(path, to_smelt(x)) for path, x in mlx_utils.tree_flatten(theirs.parameters())]
    if weights:
        ours.load_weights(weights)
    pairs = inputs_of(shapes, rng, dtype)
    given, own = [x for x, _ in pairs], [y for _, y in pairs]
    tolerance = TOLERANCE[dtype]
    agree(ours(*own), theirs(*given), tolerance)
    agree(ours.parameters(), theirs.parameters(), tolerance)  # running means
    if name == "Step" or (name.startswith("Transformer") and dtype != "float32"):  # rounding decides where relu bends
        return
    scales = [rng.standard_normal(np.shape(host(x))).astype(np.float32) for x in outputs(ours(*own))]

    def loss(module: Any, framework: Any) -> Any:
        def total(*xs: Any) -> Any:
            found = outputs(module(*xs))
            return sum((y.astype(framework.float32) * framework.array(s)).sum() for y, s in zip(found, scales))

        return total

    floats = [i for i, shape in enumerate(shapes) if shape[0] != "i"]
    if floats:
        agree(
            list(outputs(smelt.grad(loss(ours, smelt), floats)(*own))),
            list(outputs(mx.grad(loss(theirs, mx), floats)(*given))),
            4 * tolerance,
        )
    if flat(theirs.trainable_parameters()):
        value, gradient = smelt.nn.value_and_grad(ours, loss(ours, smelt))(*own)
        wanted, wanted_gradient = mlx_nn.value_and_grad(theirs, loss(theirs, mx))(*given)
        agree(gradient, wanted_gradient, 4 * tolerance)
        agree(value, wanted, 10 * tolerance)


#: Loss, options, shapes of the inputs ("i": integers below 5, "p": between 0 and 1, "n": rows of probabilities, "s":
#: signs).
LOSSES: list[tuple[str, dict[str, Any], list[Any]]] = [
    ("cross_entropy", {}, [(3, 5), ("i", 3)]),
    ("cross_entropy", {"axis": 1}, [(3, 5, 2), ("i", 3, 2)]),
    ("cross_entropy", {"label_smoothing": 0.2}, [(3, 5), ("i", 3)]),
    ("cross_entropy", {}, [(3, 5), ("n", 3, 5)]),
    ("binary_cross_entropy", {}, [(3, 5), ("p", 3, 5)]),
    ("binary_cross_entropy", {"with_logits": False}, [("p", 3, 5), ("p", 3, 5)]),
    ("l1_loss", {}, [(3, 5), (3, 5)]),
    ("mse_loss", {}, [(3, 5), (3, 5)]),
    ("nll_loss", {}, [(3, 5), ("i", 3)]),
    ("gaussian_nll_loss", {}, [(3, 5), (3, 5), ("p", 3, 5)]),
    ("gaussian_nll_loss", {"full": True}, [(3, 5), (3, 5), ("p", 3, 5)]),
    ("kl_div_loss", {}, [(3, 5), (3, 5)]),
    ("smooth_l1_loss", {"beta": 0.5}, [(3, 5), (3, 5)]),
    ("huber_loss", {"delta": 0.5}, [(3, 5), (3, 5)]),
    ("log_cosh_loss", {}, [(3, 5), (3, 5)]),
    ("hinge_loss", {}, [(3, 5), ("s", 3, 5)]),
    ("triplet_loss", {}, [(3, 5), (3, 5), (3, 5)]),
    ("triplet_loss", {"p": 4, "margin": 0.1, "axis": 0}, [(3, 5), (3, 5), (3, 5)]),
    ("cosine_similarity_loss", {}, [(3, 5), (3, 5)]),
    ("margin_ranking_loss", {"margin": 0.3}, [(3,), (3,), ("s", 3)]),
]


@pytest.mark.parametrize("reduction", [None, "none", "mean", "sum"])
@pytest.mark.parametrize("name, options, shapes", LOSSES)
def test_a_loss(name: str, options: dict[str, Any], shapes: list[Any], reduction: str | None) -> None:
    rng = rng_of(name, sorted(options), shapes)
    given = []
    for shape in shapes:
        kind, extents = (shape[0], shape[1:]) if isinstance(shape[0], str) else ("", shape)
        values = {
            "": 2 * rng.standard_normal(extents),
            "i": rng.integers(0, 5, extents),
            "p": rng.uniform(0.1, 0.9, extents),
            "n": rng.dirichlet(np.ones(extents[-1]), extents[:-1]),
            "s": rng.choice([-1.0, 1.0], extents),
        }[kind]
        given.append(values.astype(np.int32 if kind == "i" else np.float32))
    options = options if reduction is None else {**options, "reduction": reduction}
    ours, theirs = getattr(smelt.nn.losses, name), getattr(mlx_nn.losses, name)
    own, other = [smelt.array(x) for x in given], [mx.array(x) for x in given]
    agree(ours(*own, **options), theirs(*other, **options), 1e-5)
    agree(
        smelt.grad(lambda *xs: ours(*xs, **options).sum())(*own),
        mx.grad(lambda *xs: theirs(*xs, **options).sum())(*other),
        1e-5,
    )


OPTIMIZERS: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"learning_rate": 0.1}),
    ("SGD", {"learning_rate": 0.1, "momentum": 0.9, "weight_decay": 0.1, "dampening": 0.2}),
    ("SGD", {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True}),
    ("RMSprop", {"learning_rate": 0.1}),
    ("Adagrad", {"learning_rate": 0.1}),
    ("AdaDelta", {"learning_rate": 0.1}),
    ("Adam", {"learning_rate": 0.1}),
    ("Adam", {"learning_rate": 0.1, "bias_correction": True, "betas": [0.8, 0.9]}),
    ("AdamW", {"learning_rate": 0.1, "weight_decay": 0.2}),
    ("AdamW", {"learning_rate": 0.1, "weight_decay": 0.2, "bias_correction": True}),
    ("Adamax", {"learning_rate": 0.1}),
    ("Lion", {"learning_rate": 0.1, "weight_decay": 0.1}),
    ("Adafactor", {}),
    ("Adafactor", {"learning_rate": 0.1, "relative_step": False, "beta_1": 0.9, "weight_decay": 0.1}),
    ("Adafactor", {"warmup_init": True, "scale_parameter": False}),
    ("Muon", {"learning_rate": 0.1}),
    ("Muon", {"learning_rate": 0.1, "nesterov": False, "weight_decay": 0.0}),
]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name, options", OPTIMIZERS)
def test_an_optimizer(name: str, options: dict[str, Any], dtype: str) -> None:
    rng = rng_of(name, sorted(options))
    theirs, ours = getattr(mlx_optimizers, name)(**options), getattr(smelt.optimizers, name)(**options)
    shapes = {"a": [(3, 4), (5,)], "b": {"c": (6, 2, 2), "d": ()}}

    def drawn() -> Any:
        return smelt.utils.tree_map(
            lambda s: mx.array(rng.standard_normal(s).astype(np.float32)).astype(getattr(mx, dtype)),
            shapes,
            is_leaf=lambda x: isinstance(x, tuple),
        )

    parameters = drawn()
    own = smelt.utils.tree_map(to_smelt, parameters)
    for step in range(4):
        gradients = drawn()
        parameters = theirs.apply_gradients(gradients, parameters)
        own = ours.apply_gradients(smelt.utils.tree_map(to_smelt, gradients), own)
        tolerance = TOLERANCE[dtype] * (step + 1) * (20 if name == "Muon" else 3)
        agree(own, parameters, tolerance)
        agree(ours.state, theirs.state, tolerance)


SCHEDULES: list[tuple[str, tuple]] = [
    ("exponential_decay", (0.5, 0.9)),
    ("step_decay", (0.5, 0.9, 3)),
    ("cosine_decay", (0.5, 6)),
    ("cosine_decay", (0.5, 6, 0.1)),
    ("linear_schedule", (0.5, 0.1, 5)),
]


@pytest.mark.parametrize("name, args", SCHEDULES)
def test_a_schedule(name: str, args: tuple) -> None:
    ours, theirs = getattr(smelt.optimizers, name)(*args), getattr(mlx_optimizers, name)(*args)
    for step in range(9):
        for dtype in ("uint64", "int32"):
            x = ours(smelt.array(step, getattr(smelt, dtype)))
            agree(x, theirs(mx.array(step, getattr(mx, dtype))), 1e-6)
    joined = smelt.optimizers.join_schedules([smelt.optimizers.linear_schedule(0.0, 1.0, 3), ours], [3])
    other = mlx_optimizers.join_schedules([mlx_optimizers.linear_schedule(0.0, 1.0, 3), theirs], [3])
    for step in range(9):
        agree(joined(smelt.array(step, smelt.uint64)), other(mx.array(step, mx.uint64)), 1e-6)


def test_clipping() -> None:
    gradients = {"a": [np.full((3, 2), 2.0, "f")], "b": np.ones(4, "f")}
    for most in (1.0, 100.0):
        agree(
            list(smelt.optimizers.clip_grad_norm(smelt.utils.tree_map(smelt.array, gradients), most)),
            list(mlx_optimizers.clip_grad_norm(mlx_utils.tree_map(mx.array, gradients), most)),
            1e-6,
        )


@pytest.mark.parametrize(
    "name, args",
    [
        ("constant", (0.5,)), ("normal", (1.0, 2.0)), ("uniform", (-2.0, 3.0)), ("glorot_normal", ()),
        ("glorot_uniform", ()), ("he_normal", ()), ("he_uniform", ()), ("sparse", (0.3, 1.0, 2.0)), ("orthogonal", ()),
    ],
)  # fmt: skip
def test_an_initial_value(name: str, args: tuple) -> None:
    """The same mean and deviation, within what chance allows."""
    ours = host(getattr(smelt.nn.init, name)(*args)(smelt.zeros((300, 200))))
    theirs = host(getattr(mlx_nn.init, name)(*args)(mx.zeros((300, 200))))
    assert abs(ours.mean() - theirs.mean()) < 0.05 * theirs.std() + 1e-9
    assert ours.std() == pytest.approx(theirs.std(), rel=0.02)
    assert (ours == 0).mean() == pytest.approx((theirs == 0).mean(), abs=0.001)
