"""Layers, losses and optimizers beside PyTorch, where it is installed: values, gradients, states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import smelt
from smelt import nn, optimizers
from smelt.utils import tree_flatten, tree_unflatten

from .checks import rng_of

torch = pytest.importorskip("torch")
T = torch.nn


def first(x: np.ndarray) -> np.ndarray:
    """Channels before the spatial axes, as PyTorch has them."""
    return np.moveaxis(x, -1, 1)


def last(x: np.ndarray) -> np.ndarray:
    return np.moveaxis(x, 1, -1)


def same(x: np.ndarray) -> np.ndarray:
    return x


def swapped(x: np.ndarray) -> np.ndarray:
    """A transposed convolution's weight [out, …, in] as PyTorch has it."""
    return np.moveaxis(x, (-1, 0), (0, 1))


class Case(NamedTuple):
    """A layer of both, the shape of its argument, and how arguments, results and parameters are turned."""

    ours: Callable[[], nn.Module]
    theirs: Callable[[], Any]
    shape: tuple[int, ...]
    turn: Callable[[np.ndarray], np.ndarray] = same
    back: Callable[[np.ndarray], np.ndarray] = same
    names: dict[str, str] = {}
    weights: Callable[[np.ndarray], np.ndarray] = same


def conv(n: int, transposed: bool = False, **options: Any) -> Case:
    kind = "ConvTranspose" if transposed else "Conv"
    return Case(
        lambda: getattr(nn, f"{kind}{n}d")(4, 6, 3, **options),
        lambda: getattr(T, f"{kind}{n}d")(4, 6, 3, **options),
        (*(2, 9, 8, 7)[: n + 1], 4),
        first, last, {}, swapped if transposed else first,
    )  # fmt: skip


def pool(kind: str, n: int, *args: Any, **options: Any) -> Case:
    name = f"{kind}Pool{n}d"
    shape = (*(2, 9, 8, 7)[: n + 1], 3)
    theirs = lambda: getattr(T, name)(*args, **options)  # noqa: E731
    return Case(lambda: getattr(nn, name)(*args, **options), theirs, shape, first, last)


def recurrent(name: str) -> Case:
    parts = {"RNN": ("Wxh", "Whh", "bias"), "LSTM": ("Wx", "Wh", "bias")}
    wx, wh, bias = parts[name]
    theirs = {wx: "weight_ih_l0", wh: "weight_hh_l0", bias: "bias_ih_l0"}
    return Case(
        lambda: getattr(nn, name)(3, 5), lambda: getattr(T, name)(3, 5, batch_first=True), (2, 7, 3), names=theirs
    )


def activation(name: str, theirs: str | None = None, *args: Any) -> Case:
    return Case(lambda: getattr(nn, name)(*args), lambda: getattr(T, theirs or name)(*args), (3, 6))


CASES = {
    "Linear": Case(lambda: nn.Linear(4, 3), lambda: T.Linear(4, 3), (2, 5, 4)),
    "LayerNorm": Case(lambda: nn.LayerNorm(6), lambda: T.LayerNorm(6), (2, 3, 6)),
    "RMSNorm": Case(lambda: nn.RMSNorm(6), lambda: T.RMSNorm(6, eps=1e-5), (2, 3, 6)),
    "GroupNorm": Case(
        lambda: nn.GroupNorm(2, 6, pytorch_compatible=True), lambda: T.GroupNorm(2, 6), (2, 5, 6), first, last
    ),
    "InstanceNorm": Case(
        lambda: nn.InstanceNorm(3, affine=True), lambda: T.InstanceNorm2d(3, affine=True), (2, 5, 4, 3), first, last
    ),
    "BatchNorm": Case(lambda: nn.BatchNorm(3), lambda: T.BatchNorm2d(3), (4, 5, 2, 3), first, last),
    "Conv1d": conv(1, padding=1),
    "Conv1d strided": conv(1, stride=2, dilation=2),
    "Conv2d": conv(2, padding=1, stride=2),
    "Conv2d grouped": conv(2, groups=2),
    "Conv3d": conv(3, padding=(1, 0, 2)),
    "Conv3d grouped": conv(3, groups=2, stride=(1, 2, 1)),
    "ConvTranspose1d": conv(1, True, stride=2),
    "ConvTranspose2d": conv(2, True, stride=2, padding=1),
    "ConvTranspose3d": conv(3, True),
    "RNN": recurrent("RNN"),
    "LSTM": recurrent("LSTM"),
    **{f"{kind}Pool{n}d": pool(kind, n, 3, stride=2, padding=1) for kind in ("Max", "Avg") for n in (1, 2, 3)},
    **{f"Adaptive{kind}Pool{n}d": pool(f"Adaptive{kind}", n, 4) for kind in ("Max", "Avg") for n in (1, 2, 3)},
    **{
        name: activation(name)
        for name in ("CELU", "ELU", "GELU", "GLU", "Hardswish", "LogSigmoid", "Mish", "ReLU", "ReLU6", "SELU", "SiLU",
                     "Sigmoid", "Softplus", "Softsign", "Tanh", "LeakyReLU", "PReLU")
    },
    "HardShrink": activation("HardShrink", "Hardshrink"),
    "Softshrink": activation("Softshrink"),
    "HardTanh": activation("HardTanh", "Hardtanh"),
    "Softmax": Case(nn.Softmax, lambda: T.Softmax(-1), (3, 6)),
    "LogSoftmax": Case(nn.LogSoftmax, lambda: T.LogSoftmax(-1), (3, 6)),
    "Softmin": Case(nn.Softmin, lambda: T.Softmin(-1), (3, 6)),
    "Upsample": Case(lambda: nn.Upsample(2), lambda: T.Upsample(scale_factor=2), (2, 4, 5, 3), first, last),
    "Upsample linear": Case(
        lambda: nn.Upsample(2, "linear"), lambda: T.Upsample(scale_factor=2, mode="bilinear"), (2, 4, 5, 3), first, last
    ),
    "Upsample cubic": Case(
        lambda: nn.Upsample(2, "cubic", align_corners=True),
        lambda: T.Upsample(scale_factor=2, mode="bicubic", align_corners=True), (2, 4, 5, 3), first, last,
    ),
}  # fmt: skip

#: How far results may be apart, relative to the largest.
TOLERANCE = {"float64": 2e-6, "float32": 2e-5, "float16": 8e-3, "bfloat16": 6e-2}
#: What PyTorch computes in beside half precision, on the same rounded numbers: not all its layers have that.
WIDE = {"float16": "float64", "bfloat16": "float64"}


def rounded(x: np.ndarray, dtype: str) -> np.ndarray:
    """The numbers that half precision has for these."""
    return np.array(smelt.array(x, getattr(smelt, dtype)).astype(smelt.float64)) if dtype in WIDE else x


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def with_same_parameters(case: Case, dtype: str, rng: np.random.Generator) -> tuple[nn.Module, Any]:
    wide = getattr(torch, WIDE.get(dtype, dtype))
    ours, theirs = case.ours(), case.theirs().to(wide)
    named = dict(theirs.named_parameters())
    for other in named.values():
        other.data.zero_()
    for name, x in tree_flatten(ours.parameters()):
        value = rounded(rng.uniform(-1, 1, x.shape), dtype)
        ours.update(tree_unflatten([(name, smelt.array(value, getattr(smelt, dtype)))]))
        if name not in ("running_mean", "running_var"):
            turned = case.weights(value) if value.ndim > 2 else value
            other = torch.tensor(np.ascontiguousarray(turned), dtype=wide)
            named[case.names.get(name, name)].data = other
    if "running_mean" in ours:
        theirs.running_mean[:] = torch.tensor(np.array(ours.running_mean.astype(smelt.float64)))
        theirs.running_var[:] = torch.tensor(np.array(ours.running_var.astype(smelt.float64)))
    return ours, theirs


def near(found: Any, wanted: Any, dtype: str) -> None:
    if dtype in WIDE and isinstance(found, smelt.array):
        assert found.dtype is getattr(smelt, dtype)
        found = found.astype(smelt.float64)
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.shape == wanted.shape
    size = max(1.0, np.abs(wanted).max(initial=0))
    np.testing.assert_allclose(found, wanted, TOLERANCE[dtype], TOLERANCE[dtype] * size)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", CASES)
def test_layers(name: str, dtype: str) -> None:
    case, rng = CASES[name], rng_of(name)
    ours, theirs = with_same_parameters(case, dtype, rng)
    x = rounded(rng.standard_normal(case.shape), dtype)
    wide = getattr(torch, WIDE.get(dtype, dtype))
    given = smelt.array(x, getattr(smelt, dtype))
    other = torch.tensor(np.ascontiguousarray(case.turn(x)), dtype=wide, requires_grad=True)
    wanted = theirs(other)
    wanted = wanted[0] if isinstance(wanted, tuple) else wanted
    seed = rounded(rng.standard_normal(tuple(wanted.shape)), dtype)
    wanted.backward(torch.tensor(seed, dtype=wide))

    def loss(x: smelt.array) -> tuple[smelt.array, smelt.array]:
        found = ours(x)
        found = found[0] if isinstance(found, tuple) else found
        return (found * smelt.array(case.back(seed), getattr(smelt, dtype))).sum(), found

    (_, found), gradient = smelt.value_and_grad(loss)(given)
    near(found, case.back(wanted.detach().numpy()), dtype)
    if not (name.startswith(("Max", "AdaptiveMax")) and dtype in WIDE):  # who is largest twice shares here
        near(gradient, case.back(other.grad.numpy()), dtype)
    if tree_flatten(ours.trainable_parameters()):
        ours, _ = with_same_parameters(case, dtype, rng_of(name))
        _, gradients = nn.value_and_grad(ours, loss)(given)
        named = dict(theirs.named_parameters())
        for path, g in tree_flatten(gradients):
            host = np.asarray(g.astype(smelt.float64))
            assert g.dtype is getattr(smelt, dtype)
            turned = case.weights(host) if g.ndim > 2 else host
            near(turned, named[case.names.get(path, path)].grad.numpy(), dtype)
    if "running_mean" in ours:
        near(ours.running_mean, theirs.running_mean.numpy(), dtype)
        near(ours.running_var, theirs.running_var.numpy(), dtype)


def test_attention() -> None:
    ours, theirs = nn.MultiHeadAttention(8, 2), T.MultiheadAttention(8, 2, bias=False, batch_first=True)
    parts = [np.array(getattr(ours, f"{n}_proj").weight) for n in ("query", "key", "value")]
    theirs.in_proj_weight.data = torch.tensor(np.concatenate(parts))
    theirs.out_proj.weight.data = torch.tensor(np.array(ours.out_proj.weight))
    x = rng_of("attention").standard_normal((2, 5, 8)).astype(np.float32)
    given = smelt.array(x)
    near(ours(given, given, given), theirs(*[torch.tensor(x)] * 3)[0].detach().numpy(), "float32")


@pytest.mark.parametrize("mode", ["mean", "sum", "max"])
def test_bags(mode: Any) -> None:
    ours, theirs = nn.EmbeddingBag(7, 3, mode), T.EmbeddingBag(7, 3, mode=mode)
    theirs.weight.data = torch.tensor(np.array(ours.weight))
    x, offsets = np.array([1, 2, 6, 4, 0]), np.array([0, 3, 3, 4])
    near(ours(smelt.array(x), smelt.array(offsets)), theirs(torch.tensor(x), torch.tensor(offsets)).detach(), "float32")


def test_gru() -> None:
    """PyTorch's has one bias more."""
    ours, theirs = nn.GRU(3, 5), T.GRU(3, 5, batch_first=True)
    theirs.weight_ih_l0.data, theirs.weight_hh_l0.data = (torch.tensor(np.array(w)) for w in (ours.Wx, ours.Wh))
    theirs.bias_ih_l0.data = torch.tensor(np.array(ours.b))
    theirs.bias_hh_l0.data = torch.cat([torch.zeros(10), torch.tensor(np.array(ours.bhn))])
    x = rng_of("gru").standard_normal((2, 6, 3)).astype(np.float32)
    near(ours(smelt.array(x)), theirs(torch.tensor(x))[0].detach(), "float32")


@pytest.mark.parametrize("repeated", [False, True])
def test_ctc_loss(repeated: bool) -> None:
    rng = rng_of("ctc", repeated)
    x = rng.standard_normal((3, 9, 5))
    targets = rng.integers(1, 3 if repeated else 5, (3, 4))
    inputs, labels = np.array([9, 8, 9]), np.array([4, 2, 3])
    other = torch.tensor(x, requires_grad=True)
    theirs = torch.nn.functional.ctc_loss(
        other.log_softmax(-1).transpose(0, 1), torch.tensor(targets), torch.tensor(inputs), torch.tensor(labels),
        reduction="none",
    )  # fmt: skip
    theirs.sum().backward()

    def ours(x: smelt.array) -> smelt.array:
        given = (smelt.array(targets), smelt.array(inputs), smelt.array(labels))
        return nn.losses.ctc_loss(nn.log_softmax(x), *given)

    given = smelt.array(x, smelt.float64)
    near(ours(given), theirs.detach().numpy(), "float64")
    near(smelt.grad(lambda x: ours(x).sum())(given), other.grad.numpy(), "float64")


LOSSES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "mse": (nn.losses.mse_loss, T.functional.mse_loss),
    "l1": (nn.losses.l1_loss, T.functional.l1_loss),
    "smooth l1": (nn.losses.smooth_l1_loss, T.functional.smooth_l1_loss),
    "huber": (nn.losses.huber_loss, T.functional.huber_loss),
    "bce": (nn.losses.binary_cross_entropy, T.functional.binary_cross_entropy_with_logits),
    "cosine": (nn.losses.cosine_similarity_loss, lambda a, b, reduction: T.functional.cosine_similarity(a, b)),
    "kl": (
        lambda a, b, reduction: nn.losses.kl_div_loss(a, b, reduction=reduction),
        lambda a, b, reduction: T.functional.kl_div(a, b, reduction="none", log_target=True).sum(-1),
    ),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses(name: str) -> None:
    ours, theirs = LOSSES[name]
    a, b = (rng_of(name, i).standard_normal((4, 5)) for i in range(2))
    found = ours(smelt.array(a, smelt.float64), smelt.array(b, smelt.float64), reduction="none")
    near(found, theirs(torch.tensor(a), torch.tensor(b), reduction="none").numpy(), "float64")


def both(name: str, **options: Any) -> tuple[Callable[[], Any], Callable[[Any], Any]]:
    """An optimizer of both, where names and meanings agree."""
    return (
        lambda: getattr(optimizers, name)(0.05, **options),
        lambda p: getattr(torch.optim, name)(p, lr=0.05, **options),
    )


OPTIMIZERS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "SGD": both("SGD"),
    "SGD with momentum": both("SGD", momentum=0.9, weight_decay=0.1, dampening=0.0, nesterov=True),
    "RMSprop": both("RMSprop", alpha=0.9, eps=1e-6),
    "Adagrad": both("Adagrad", eps=1e-6),
    "AdaDelta": (lambda: optimizers.AdaDelta(0.5, rho=0.8), lambda p: torch.optim.Adadelta(p, lr=0.5, rho=0.8)),
    "Adam": (lambda: optimizers.Adam(0.05, bias_correction=True), lambda p: torch.optim.Adam(p, lr=0.05)),
    "AdamW": (
        lambda: optimizers.AdamW(0.05, weight_decay=0.1, bias_correction=True),
        lambda p: torch.optim.AdamW(p, lr=0.05, weight_decay=0.1),
    ),
    "NAdam": both("NAdam", weight_decay=0.1),
    "Adamax": (  # theirs corrects the mean's bias
        lambda: optimizers.Adamax(lambda step: 0.05 / (1 - 0.9 ** (step + 1).astype(smelt.float32))),
        lambda p: torch.optim.Adamax(p, lr=0.05),
    ),
    "Adafactor": (
        lambda: optimizers.Adafactor(0.05, relative_step=False),
        lambda p: torch.optim.Adafactor(p, lr=0.05, beta2_decay=-0.8, eps=(1e-30, 1e-3)),
    ),
    "LBFGS": (
        lambda: optimizers.LBFGS(0.5, history=4),
        lambda p: torch.optim.LBFGS(p, lr=0.5, max_iter=1, history_size=4, tolerance_grad=0, tolerance_change=0),
    ),
}  # fmt: skip


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name: str, compiled: bool) -> None:
    """Eight steps on a small problem in float64: the parameters are the same after each."""
    ours, theirs = OPTIMIZERS[name]
    rng = rng_of("problem")
    a, y = rng.standard_normal((20, 3)), rng.standard_normal((20, 2))
    start = rng.standard_normal((3, 2))
    w = {"w": smelt.array(start, smelt.float64)}
    other = torch.tensor(start, requires_grad=True)
    optimizer, reference = ours(), theirs([other])
    optimizer.init(w)
    inputs, wanted = smelt.array(a, smelt.float64), smelt.array(y, smelt.float64)

    def step(w: Any) -> Any:
        gradients = smelt.grad(lambda w: smelt.mean((smelt.tanh(inputs @ w["w"]) - wanted) ** 2))(w)
        return optimizer.apply_gradients(gradients, w)

    if compiled:
        step = smelt.compile(step, inputs=optimizer.state, outputs=optimizer.state)

    def closure() -> Any:
        reference.zero_grad()
        loss = ((torch.tanh(torch.tensor(a) @ other) - torch.tensor(y)) ** 2).mean()
        loss.backward()
        return loss

    for _ in range(8):
        w = step(w)
        reference.step(closure)
        np.testing.assert_allclose(np.asarray(w["w"]), other.detach().numpy(), 1e-5, 1e-6)


def test_muon() -> None:
    """PyTorch makes its steps orthogonal in bfloat16."""
    rng = rng_of("muon")
    start = rng.standard_normal((6, 4))
    ours, other = {"w": smelt.array(start)}, torch.tensor(start, dtype=torch.float32, requires_grad=True)
    optimizer, reference = optimizers.Muon(0.1, weight_decay=0.0), torch.optim.Muon([other], lr=0.1, weight_decay=0.0)
    for _ in range(4):
        gradient = rng.standard_normal((6, 4)).astype(np.float32)
        ours = optimizer.apply_gradients({"w": smelt.array(gradient)}, ours)
        other.grad = torch.tensor(gradient)
        reference.step()
        np.testing.assert_allclose(np.asarray(ours["w"]), other.detach().numpy(), atol=1e-2)
