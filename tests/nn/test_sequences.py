"""Recurrent layers, attention, transformers and encodings of positions, against formulas in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special

import smelt
from smelt import nn
from smelt.ir.settings import settings
from smelt.utils import tree_flatten

from .checks import TOLERANCE, check_gradient, close, host, rng_of

pytestmark = pytest.mark.tier("ops")


Weights = dict[str, np.ndarray]
sigmoid = special.expit


def rnn(p: Weights, x: np.ndarray, h: np.ndarray | None = None) -> np.ndarray:
    h = np.zeros(p["Whh"].shape[0]) if h is None else h
    states = []
    for t in range(x.shape[-2]):
        h = np.tanh(x[..., t, :] @ p["Wxh"].T + h @ p["Whh"].T + p.get("bias", 0))
        states.append(h)
    return np.stack(states, -2)


def gru(p: Weights, x: np.ndarray, h: np.ndarray | None = None) -> np.ndarray:
    n = p["Wh"].shape[1]
    h = np.zeros((*x.shape[:-2], n)) if h is None else h
    states = []
    for t in range(x.shape[-2]):
        a, b = x[..., t, :] @ p["Wx"].T + p.get("b", 0), h @ p["Wh"].T
        r, z = (sigmoid((a + b)[..., i * n : (i + 1) * n]) for i in (0, 1))
        new = np.tanh(a[..., 2 * n :] + r * (b[..., 2 * n :] + p.get("bhn", 0)))
        h = (1 - z) * new + z * h
        states.append(h)
    return np.stack(states, -2)


def lstm(p: Weights, x: np.ndarray, h: Any = None, c: Any = None) -> tuple[np.ndarray, np.ndarray]:
    n = p["Wh"].shape[1]
    h = np.zeros((*x.shape[:-2], n)) if h is None else h
    c = np.zeros((*x.shape[:-2], n)) if c is None else c
    states = []
    for t in range(x.shape[-2]):
        a = x[..., t, :] @ p["Wx"].T + h @ p["Wh"].T + p.get("bias", 0)
        i, f, g, o = (a[..., k * n : (k + 1) * n] for k in range(4))
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        states.append((h, c))
    return np.stack([s[0] for s in states], -2), np.stack([s[1] for s in states], -2)


def linear(p: Weights, name: str, x: np.ndarray) -> np.ndarray:
    return x @ p[f"{name}.weight"].T + p.get(f"{name}.bias", 0)


def norm(p: Weights, name: str, x: np.ndarray) -> np.ndarray:
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return x * p[f"{name}.weight"] + p[f"{name}.bias"]


def attention(p: Weights, q: Any, k: Any, v: Any, mask: Any = 0.0, name: str = "", heads: int = 2) -> np.ndarray:
    q, k, v = (linear(p, f"{name}{n}_proj", x) for n, x in (("query", q), ("key", k), ("value", v)))
    parts = []
    for a, b, c in zip(*(np.split(x, heads, -1) for x in (q, k, v))):
        scores = a @ b.swapaxes(-1, -2) / np.sqrt(a.shape[-1])
        parts.append(special.softmax(scores + mask, -1) @ c)
    return linear(p, f"{name}out_proj", np.concatenate(parts, -1))


def inner(p: Weights, x: np.ndarray) -> np.ndarray:
    return linear(p, "linear2", np.maximum(linear(p, "linear1", x), 0))


def encoder(p: Weights, x: np.ndarray, mask: Any = 0.0) -> np.ndarray:
    y = norm(p, "ln1", x)
    x = x + attention(p, y, y, y, mask, "attention.")
    return x + inner(p, norm(p, "ln2", x))


def encoder_after(p: Weights, x: np.ndarray, mask: Any = 0.0) -> np.ndarray:
    x = norm(p, "ln1", x + attention(p, x, x, x, mask, "attention."))
    return norm(p, "ln2", x + inner(p, x))


def decoder(p: Weights, x: np.ndarray, memory: np.ndarray, a: Any, b: Any) -> np.ndarray:
    y = norm(p, "ln1", x)
    x = x + attention(p, y, y, y, a, "self_attention.")
    x = x + attention(p, norm(p, "ln2", x), memory, memory, b, "cross_attention.")
    return x + inner(p, norm(p, "ln3", x))


def decoder_after(p: Weights, x: np.ndarray, memory: np.ndarray, a: Any, b: Any) -> np.ndarray:
    x = norm(p, "ln1", x + attention(p, x, x, x, a, "self_attention."))
    x = norm(p, "ln2", x + attention(p, x, memory, memory, b, "cross_attention."))
    return norm(p, "ln3", x + inner(p, x))


CASES: list[tuple[Callable[[], nn.Module], list[tuple[int, ...]], Callable[..., Any]]] = [
    (lambda: nn.RNN(3, 4), [(2, 5, 3)], rnn),
    (lambda: nn.RNN(3, 4, bias=False), [(5, 3), (4,)], rnn),
    (lambda: nn.GRU(3, 4), [(2, 5, 3)], gru),
    (lambda: nn.GRU(3, 4), [(2, 3, 5, 3), (2, 3, 4)], gru),
    (lambda: nn.GRU(3, 4, bias=False), [(5, 3)], gru),
    (lambda: nn.LSTM(3, 4), [(2, 5, 3)], lstm),
    (lambda: nn.LSTM(3, 4, bias=False), [(5, 3), (4,), (4,)], lstm),
    (lambda: nn.MultiHeadAttention(8, 2), [(2, 3, 8), (2, 5, 8), (2, 5, 8)], attention),
    (lambda: nn.MultiHeadAttention(8, 2, 3, 4, 5, 6, 7, True), [(2, 3, 3), (2, 5, 4), (2, 5, 5), (3, 5)], attention),
    (lambda: nn.TransformerEncoderLayer(8, 2), [(2, 5, 8), (5, 5)], encoder),
    (lambda: nn.TransformerEncoderLayer(8, 2, 12, norm_first=False), [(2, 5, 8), (2, 1, 5, 5)],
     lambda p, x, mask: encoder_after(p, x, mask[:, 0])),
    (lambda: nn.TransformerDecoderLayer(8, 2), [(2, 5, 8), (2, 3, 8), (5, 5), (5, 3)], decoder),
    (lambda: nn.TransformerDecoderLayer(8, 2, 12, norm_first=False), [(2, 5, 8), (2, 3, 8), (5, 5), (5, 3)],
     decoder_after),
]  # fmt: skip
NAMES = [f"{i}-{type(make()).__name__}" for i, (make, *_) in enumerate(CASES)]


def made(index: int, dtype: Any) -> tuple[nn.Module, list[smelt.array], Any]:
    make, shapes, formula = CASES[index]
    rng = rng_of(index)
    layer = make()
    layer.apply(lambda x: smelt.array(0.6 * rng.standard_normal(x.shape)).astype(dtype))
    given = [smelt.array(rng.standard_normal(shape)).astype(dtype) for shape in shapes]
    weights = {path: host(x) for path, x in tree_flatten(layer.parameters())}
    wanted = formula(weights, *([host(x) for x in given]))
    return layer, given, wanted


def several(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else (x,)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("index", range(len(CASES)), ids=NAMES)
def test_values(index: int, dtype: str) -> None:
    layer, given, wanted = made(index, getattr(smelt, dtype))
    if layer.children() == {} and len(given) == 1:
        given = given[:1]
    for found, value in zip(several(layer(*given)), several(wanted)):
        assert found.dtype is given[0].dtype
        if dtype == "float32":
            close(found, value, dtype)
        else:
            largest = np.abs(value).max()
            np.testing.assert_allclose(host(found), value, 0, 5 * TOLERANCE[dtype] * largest)
    if dtype == "float32":
        settings.tier = "program"
        for found, value in zip(several(smelt.compile(layer)(*given)), several(wanted)):
            close(found, value, dtype)


@pytest.mark.parametrize("index", range(len(CASES)), ids=NAMES)
def test_gradients(index: int) -> None:
    layer, given, _ = made(index, smelt.float64)

    def all_of(*xs: smelt.array) -> smelt.array:
        return smelt.concatenate([y.reshape(-1) for y in several(layer(*xs))])

    check_gradient(all_of, *map(np.asarray, given))
    paths = dict(tree_flatten(layer.parameters()))
    check_gradient(
        lambda *values: [layer.update(smelt.utils.tree_unflatten(list(zip(paths, values)))), all_of(*given)][1],
        *map(np.asarray, paths.values()),
    )


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
def test_sequences_in_parts(kind: Any) -> None:
    """The states go on where they stopped; a mapped layer is the layer; a checkpoint too."""
    layer, x = kind(2, 3), smelt.array(rng_of("parts").standard_normal((4, 6, 2))).astype(smelt.float32)
    whole = several(layer(x))
    first = several(layer(x[:, :4]))
    second = several(layer(x[:, 4:], *(y[:, -1] for y in first)))
    for a, b, c in zip(whole, first, second):
        assert smelt.allclose(a, smelt.concatenate([b, c], axis=1), atol=1e-6).item()
    for a, b in zip(whole, several(smelt.vmap(layer)(x))):
        assert smelt.allclose(a, b, atol=1e-6).item()
    for a, b in zip(whole, several(nn.utils.checkpoint(layer)(x))):
        assert smelt.allclose(a, b, atol=1e-6).item()


def test_other_nonlinearities() -> None:
    layer = nn.RNN(1, 1, bias=False, nonlinearity=nn.relu)
    layer.update({"Wxh": smelt.ones((1, 1)), "Whh": smelt.ones((1, 1))})
    assert layer(smelt.array([[1.0], [-3.0], [2.0]])).reshape(-1).tolist() == [1.0, 0.0, 2.0]
    assert repr(layer) == "RNN(input_dims=1, hidden_size=1, nonlinearity=relu, bias=False)"


def test_transformers() -> None:
    """The parts, put together; masks; checkpoints."""
    x = smelt.array(rng_of("encoder").standard_normal((2, 5, 8))).astype(smelt.float32)
    other = x[:, :3] + 1
    stack = nn.TransformerEncoder(2, 8, 2, checkpoint=True)
    by_hand = stack.ln(stack.layers[1](stack.layers[0](x, None), None))
    assert smelt.allclose(stack(x, None), by_hand, atol=1e-5).item()
    causal = nn.MultiHeadAttention.create_additive_causal_mask(5)
    assert smelt.allclose(stack(x, causal), stack(x, "causal"), atol=1e-5).item()
    assert smelt.allclose(stack(x, "causal")[:, :2], stack(x[:, :2], "causal"), atol=1e-5).item()
    model = nn.Transformer(8, 2, 1, 1, checkpoint=True)
    memory = model.encoder(other, None)
    found = model(other, x, None, "causal", None)
    assert smelt.allclose(found, model.decoder(x, memory, "causal", None), atol=1e-5).item()
    value, gradients = nn.value_and_grad(model, lambda: model(other, x, None, "causal", None).square().mean())()
    model.encoder.checkpoint = model.decoder.checkpoint = False
    wanted, others = nn.value_and_grad(model, lambda: model(other, x, None, "causal", None).square().mean())()
    assert value.item() == pytest.approx(wanted.item(), rel=1e-5)
    for (path, a), (_, b) in zip(tree_flatten(gradients), tree_flatten(others)):
        assert smelt.allclose(a, b, atol=1e-5).item(), path
    assert nn.Transformer(8, 2, custom_encoder=stack, custom_decoder=model.decoder).encoder is stack


def test_encodings_of_positions() -> None:
    x = smelt.array(rng_of("rope").standard_normal((2, 3, 5, 8))).astype(smelt.float32)
    layer = nn.RoPE(6, traditional=True, base=100.0, scale=0.5)
    wanted = smelt.fast.rope(x, 6, traditional=True, base=100.0, scale=0.5, offset=3)
    assert smelt.array_equal(layer(x, offset=3), wanted).item()
    positions = np.array([[0.0, 1.0, 7.0]])
    rates = np.geomspace(1.0, 0.01, 3)
    for cos_first in (False, True):
        encoding = nn.SinusoidalPositionalEncoding(6, 0.01, 1.0, scale=2.0, cos_first=cos_first, full_turns=True)
        angles = 2 * np.pi * positions[..., None] * rates
        parts = [np.sin(angles), np.cos(angles)]
        found = encoding(smelt.array(positions, smelt.float32))
        np.testing.assert_allclose(host(found), 2 * np.concatenate(parts[::-1] if cos_first else parts, -1), 0, 2e-5)
        assert encoding.parameters() == {}
    assert nn.SinusoidalPositionalEncoding(8).scale == 0.5
    slopes = np.array([2**-2.0, 2**-4.0, 2**-6.0, 2**-8.0])
    distance = np.abs(np.arange(2, 5)[:, None] - np.arange(5))
    found = nn.ALiBi()(smelt.ones((1, 4, 3, 5)), offset=2)
    close(found, 1 - slopes[:, None, None] * distance[None, None], "float32")
    assert nn.ALiBi.create_alibi_slope(6).flatten().tolist() == [0.25, 0.0625, 2**-6, 2**-8, 0.5, 0.125]
    assert nn.ALiBi.create_alibi_slope(1).item() == 2**-8
    mask = nn.MultiHeadAttention.create_additive_causal_mask(3, smelt.float16)
    assert mask.dtype is smelt.float16 and mask.tolist()[0] == [0.0, -65504.0, -65504.0]


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: nn.RNN(3, 4)(smelt.zeros((2, 5, 4))), r"RNN: needs axes \[..., positions, 3\]; x f32\[2,5,4\]"),
        (lambda: nn.LSTM(3, 4)(smelt.zeros(3)), r"LSTM: needs axes"),
        (lambda: nn.RNN(3, 4, nonlinearity=3), "RNN: nonlinearity must be a function, is 3"),  # type: ignore[arg-type]
        (lambda: nn.MultiHeadAttention(8, 3), r"MultiHeadAttention: dims \(8\) and value_dims \(8\) must be 3 equal"),
    ],
)
def test_bad_arguments(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(smelt.SmeltError, match=message) as caught:
        call()
    assert "test_sequences.py" in str(caught.value)
