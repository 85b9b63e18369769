"""Functions and modules of PyTorch, a few of each family of ops, with their arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx

Case = tuple[Callable[..., Any], list[Any]]

_random = torch.Generator().manual_seed(0)


def rand(*shape: int) -> torch.Tensor:
    """Numbers of both signs, none close to another or to 0."""
    return torch.randn(*shape, generator=_random)


def positive(n: int) -> torch.Tensor:
    x = rand(n, n)
    return x @ x.T + n * torch.eye(n)


x, y, square, picture = rand(4, 6), rand(4, 6), rand(5, 5), rand(2, 3, 8, 8)
row, cube, places = rand(6), rand(2, 5, 8), torch.tensor([2, 0, 3])
small = torch.rand(4, 6, generator=_random) * 0.8 + 0.1
whole, sequence, words = torch.randint(-9, 9, (4, 6), generator=_random), rand(2, 5, 16), torch.tensor([[1, 4], [0, 2]])


def _assigned(x: Any) -> Any:
    made = x.clone()
    made[:, 1:3] = 0
    made[0] += 1
    made[2, ::2].mul_(3)
    return made


def _by_group(*arrays: torch.Tensor) -> list[torch.Tensor]:
    """Of small integers, whose sums half precision holds."""
    x, y, w = (v.round().bfloat16() for v in arrays)
    ends = [torch.tensor(e, dtype=torch.int32) for e in ([5, 5, 16], [3, 8, 16], [4, 9, 16])]
    found = [F.grouped_mm(x, w, offs=ends[0]), F.grouped_mm(w, y, offs=ends[1]), F.grouped_mm(y, x, offs=ends[2])]
    return [v.float() for v in (*found, F.grouped_mm(w, w.mT))]


def _parted(x: Any) -> Any:
    with torch.no_grad():
        fixed = x * 2
    return fixed * x + x.detach()


def _derivative(function: Callable[..., Any], *arguments: torch.Tensor) -> Callable[..., Any]:
    """The derivative of a function as PyTorch's graph of it, by ops of derivatives."""
    made: Callable[..., Any] = make_fx(torch.func.grad(function))(*arguments)
    return made


CASES: dict[str, Case] = {
    # one element at a time
    "unary": (lambda x: [f(x) for f in (torch.sin, torch.exp, torch.tanh, torch.erf, torch.sigmoid, torch.neg,
                                        torch.sgn, torch.floor, torch.expm1, torch.atan, torch.asinh, torch.trunc,
                                        torch.sinc)], [x]),
    "of small numbers": (lambda x: [f(x) for f in (torch.log, torch.sqrt, torch.rsqrt, torch.acos, torch.lgamma,
                                                   torch.logit, torch.erfinv, torch.log1p, torch.special.i0e,
                                                   torch.digamma, torch.special.ndtri)], [small]),
    "of integers": (lambda x: [x.sin(), x / 3, x // 4, x % 4, -x, ~x, x.abs(), x << 1, x.float().fmod(3)], [whole]),
    "division": (lambda x, y: [torch.div(x, y, rounding_mode=m) for m in (None, "trunc", "floor")], [x, y]),
    "integer division": (lambda x: [torch.div(x, 4, rounding_mode=m) for m in ("trunc", "floor")], [whole]),
    "promotion": (lambda x, n: [x + n, n + 1.5, n * x[0, 0], torch.where(x > 0, x, n), n == x, n**2, x > 1], [x,
        whole]),
    "half": (lambda x: [x.half() + x, x.bfloat16() * 2, (x.half() * 3).float()], [x]),
    "bools": (lambda x: [(x > 0) & (x < 1), (x > 0) | (x < -1), ~(x > 0), (x > 0) ^ (x > 1), (x > 0) + (x < 1)], [x]),
    "pow": (lambda x: [x**2, x.abs() ** 1.5, 2**x, x.abs() ** x, x.pow(0)], [x]),
    "alpha": (lambda x, y: [torch.add(x, y, alpha=3), torch.sub(x, y, alpha=2), torch.rsub(x, y, alpha=2)], [x, y]),
    "clamp": (lambda x: [x.clamp(-0.5, 0.5), x.clamp(min=0), x.clamp_max(0.2), torch.clamp(x, x * 0.5, x * 0 + 1)],
              [x]),
    "activations": (lambda x: [f(x) for f in (F.relu, F.gelu, F.silu, F.elu, F.leaky_relu, F.hardtanh, F.softplus,
                                              F.mish,
                                              F.hardswish, F.selu, F.celu, F.softsign, F.logsigmoid, F.relu6)], [x]),
    "gelu by tanh": (lambda x: F.gelu(x, approximate="tanh"), [x]),
    "complex": (lambda x, y: [torch.view_as_real(torch.polar(x.abs(), y)), torch.complex(x, y).abs(),
                              torch.complex(x, y).conj().angle()], [x, y]),
    "searches": (lambda x, r: [torch.searchsorted(r.sort()[0], x), torch.bucketize(x, r.sort()[0], right=True),
                               torch.isin((x * 3).int(), (r * 3).int())], [x, row]),
    # over axes
    "sums": (lambda x: [x.sum(), x.sum(0), x.mean(1, keepdim=True), x.prod(1), (x > 0).sum(), x.sum((0, 1))], [x]),
    "extremes": (lambda x: [x.amax(1), x.amin(), x.max(), x.max(1), x.min(0, keepdim=True), x.argmax(1), x.argmin()],
                 [x]),
    "truth": (lambda x: [(x > 0).any(1), (x < 2).all(), x.bool().any()], [x]),
    "moments": (lambda x: [x.var(), x.var(1), x.std(1, correction=0), torch.var_mean(x, 0), torch.std_mean(x, 1)], [x]),
    "norms": (lambda x: [x.norm(), x.norm(dim=1), torch.linalg.vector_norm(x, 3, dim=0), x.norm(float("inf"))], [x]),
    "logsumexp": (lambda x: [x.logsumexp(1), x.softmax(1), x.log_softmax(0), F.softmin(x, 1)], [x]),
    "running": (lambda x: [x.cumsum(1), x.cumprod(0), x.cummax(1), x.cummin(0), x.logcumsumexp(1)], [x]),
    "counts": (lambda n: [torch.bincount(n.reshape(-1).abs(), minlength=12)], [whole]),
    # shapes
    "views": (lambda x: [x.view(2, 12), x.t(), x.reshape(-1), x.permute(1, 0), x.unsqueeze(1), x[None, :, :,
                                                                                                 None].squeeze(),
                         x.expand(3, 4, 6), x.flatten(), x.unflatten(1, (2, 3)), x.swapaxes(0, 1), x.ravel()], [x]),
    "parts": (lambda x: [x[1:3], x[:, ::2], x[-1], x[..., -2:], x.narrow(1, 2, 3), x.select(1, -1), x.diagonal(1),
                         *x.chunk(4, 1), *x.split([1, 3]), *x.unbind(0), x.tril(), x.triu(1)], [x]),
    "joins": (lambda x, y: [torch.cat([x, y]), torch.stack([x, y], 1), torch.hstack([x, y]), x.repeat(2, 3),
                            torch.cat([x, torch.zeros(0)[:, None].expand(0, 6)]), x.roll(2, 1), x.flip(0, 1),
                            x.repeat_interleave(2, 0), torch.tile(x, (2,))], [x, y]),
    "windows of lines": (lambda x: x.unfold(1, 3, 2), [x]),
    "padding": (lambda x: [F.pad(x, (1, 2, 0, 1)), F.pad(x, (-1, 1)), F.pad(x, (1, 1, 2, 2), mode="reflect"),
                           F.pad(x, (1, 1, 2, 2), mode="replicate"), F.pad(x, (1, 1, 2, 2),
                                                                           mode="circular")], [picture]),
    "new arrays": (lambda x: [torch.zeros_like(x), x.new_ones(3), torch.full((2,), 7), torch.arange(2, 9, 3),
                              torch.linspace(0, 1, 5), torch.eye(3), torch.tensor([1.0, 2.0]) + x[0, 0],
                              torch.empty_like(x) * 0, torch.ones(2, dtype=torch.int32)], [x]),
    "writes": (_assigned, [x]),
    "without derivatives": (_parted, [x]),
    # places
    "index": (lambda x, i: [x[i], x[:, i], x[i, i], x[i][:, None], x.index_select(1, i), torch.take(x, i)], [x,
        places]),
    "masks": (lambda x: [x[x > 0].sum(), x.masked_fill(x > 0, 2.0), x.masked_scatter(x > 0, x.flip(0))], [x]),
    "gather": (lambda x, i: [x.gather(0, i[:, None].expand(3, 5)), x.gather(1, i[None, :])], [x, places]),
    "index writes": (lambda x, i: [x.index_put((i,), x[:3] * 2), x.index_put((i, i), x[0, :3], accumulate=True),
                                   x.index_add(0, i, x[:3]), x.index_copy(1, i, x[:, :3]), x.index_fill(0, i, 5.0)],
                     [x, places]),
    "scatter": (lambda x, i: [x.scatter(0, i[:, None].expand(3, 6), x[:3]), x.scatter_add(0, i[:, None].expand(3, 6),
                                                                                          x[:3]),
                              x.scatter(1, i[None], 3.0), x.scatter_reduce(0, i[:, None].expand(3, 6), x[:3],
                                                                           "amax")], [x, places]),
    "scatter by reductions": (lambda x, i: [
        x.scatter_reduce(0, i[:, None].expand(3, 6) % 2, x[1:], by, include_self=own)
        for by in ("sum", "mean", "prod", "amin") for own in (True, False)], [x, places]),
    "embedding": (lambda w, i: [F.embedding(i, w), F.embedding_bag(i, w), F.embedding_bag(i, w, mode="sum"),
                                F.one_hot(i, 6)], [rand(6, 4), words]),
    "diagonal writes": (lambda x, y: x.diagonal_scatter(y[0, :3], 1), [rand(4, 4), y]),
    # ranks
    "sorts": (lambda x: [x.sort(1), x.sort(0, descending=True), x.argsort(1), x.topk(3), x.topk(2, 0, largest=False),
                         x.msort(), x.kthvalue(2, 1), x.median(1), x.median(), x.nanmedian(0)], [x]),
    "mode": (lambda n: n.mode(1)[0], [whole]),
    "mode of many": (lambda n: n.mode()[0], [torch.arange(150_000) // 7 * 3 % 100_000]),
    "unique": (lambda n: torch.unique(n, return_inverse=True, return_counts=True), [torch.tensor([3, 1, 3, 2])]),
    # products
    "products": (lambda x, y: [x @ y.T, torch.mv(x, y[0]), torch.outer(x[0], y[0]), torch.dot(x[0], y[0]), F.linear(x,
        y),
                               torch.addmm(x[:, :4], x, y.T, beta=0.5, alpha=2), torch.einsum("ij,kj->ik", x, y),
                               torch.tensordot(x, y, dims=([1], [1])), torch.kron(x[:2, :2], y)], [x, y]),
    "batched products": (lambda x: [torch.bmm(x, x.mT), torch.baddbmm(x @ x.mT, x, x.mT), x @ x[0].T], [cube]),
    "products by group": (_by_group, [rand(16, 8), rand(8, 16), rand(3, 8, 8)]),
    "integer products": (lambda n: n @ n.T, [whole]),
    "products of large integers": (lambda n: [n @ n, (n @ n).int() @ n.int(), n.byte() @ n.byte(),
                                              torch.addmm(n, n, n)], [torch.tensor([[2**31 + 1, 3], [1, 2**62 + 7]])]),
    "attention": (lambda q: [F.scaled_dot_product_attention(q, q, q), F.scaled_dot_product_attention(q, q, q,
        is_causal=True),
                             F.scaled_dot_product_attention(q, q, q, attn_mask=(q @ q.mT) > -3)], [rand(2, 3, 5, 4)]),
    "uneven attention": (lambda q, k: [F.scaled_dot_product_attention(q, k, k, is_causal=True),
                                       F.scaled_dot_product_attention(q, k[:, :1], k[:, :1], enable_gqa=True)],
                         [rand(1, 2, 3, 4), rand(1, 2, 5, 4)]),
    "attention without weights": (lambda q: F.scaled_dot_product_attention(q, q, q, dropout_p=1.0),
                                  [rand(2, 3, 5, 4)]),
    "distances": (lambda x, y: [torch.cdist(x, y), torch.cdist(x, y, p=1), F.pdist(x)], [x, y]),
    # windows
    "convolutions": (lambda x, w: [F.conv2d(x, w, padding=1), F.conv2d(x, w, stride=2, dilation=2),
                                   F.conv2d(x, w, padding="same"), F.conv2d(x, w[:, :1].repeat(3, 1, 1, 1), groups=3)],
                     [picture, rand(2, 3, 3, 3)]),
    "other convolutions": (lambda x, w: [F.conv1d(x, w, torch.ones(2)), F.conv_transpose1d(x, w.transpose(0, 1),
                                                                                           stride=2),
                                         F.conv_transpose1d(x, w.transpose(0, 1), stride=3, padding=1,
                                                            output_padding=2),
                                         F.conv3d(x[:, None, None], w[:, None, None])], [cube, rand(2, 5, 3)]),
    "pooling": (lambda x: [F.max_pool2d(x, 2), F.max_pool2d(x, 3, 2, 1, return_indices=True), F.avg_pool2d(x, 3, 2, 1),
                           F.max_pool2d(x, 3, ceil_mode=True), F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
                           F.max_pool1d(x[0], 2), F.avg_pool1d(x[0], 3), F.lp_pool2d(x.abs(), 2, 2)], [picture]),
    "adaptive pooling": (lambda x: [F.adaptive_avg_pool2d(x, 3), F.adaptive_max_pool2d(x, 3, return_indices=True),
                                    F.adaptive_avg_pool1d(x[0], 5)], [picture]),
    "adaptive pooling of many": (lambda x: F.adaptive_avg_pool1d(x, 70_001).sum(), [torch.ones(1, 100_000)]),
    "resampling": (lambda x: [F.interpolate(x, scale_factor=2), F.interpolate(x, size=(5, 11), mode="bilinear"),
                              F.interpolate(x, scale_factor=0.5, mode="bicubic"), F.pixel_shuffle(x.repeat(1, 4, 1, 1),
                                                                                                  2)],
                   [picture]),
    "grids": (lambda x, g: F.grid_sample(x, g.tanh(), align_corners=False), [picture, rand(2, 4, 4, 2)]),
    "columns": (lambda x: [F.unfold(x, 3, stride=2), F.fold(F.unfold(x, 2), (8, 8), 2)], [picture]),
    # norms of layers, losses
    "layer norms": (lambda x, w: [F.layer_norm(x, (6,), w, w), F.rms_norm(x, (6,), w), F.layer_norm(x, (4, 6))], [x,
        row]),
    "group norms": (lambda x: [F.group_norm(x.repeat(1, 2, 1, 1), 3), F.instance_norm(x), F.local_response_norm(x, 2)],
                    [picture]),
    "losses": (lambda x, y: [F.mse_loss(x, y), F.l1_loss(x, y), F.huber_loss(x, y), F.kl_div(x, y.softmax(1)),
                             F.cross_entropy(x, torch.tensor([1, 2, 0, 5])), F.cosine_similarity(x, y),
                             F.binary_cross_entropy_with_logits(x, y.sigmoid()), F.smooth_l1_loss(x, y),
                             F.cross_entropy(x, torch.tensor([1, 2, -100, 5]), label_smoothing=0.1)], [x, y]),
    # matrices, signals
    "factors": (lambda a: [torch.linalg.cholesky(a), torch.linalg.inv(a), torch.linalg.det(a), torch.linalg.slogdet(a),
                           torch.linalg.eigvalsh(a), torch.linalg.svdvals(a), torch.linalg.matrix_exp(a / 20)],
                [positive(4)]),
    "systems": (lambda a, b: [torch.linalg.solve(a, b), torch.linalg.solve_triangular(a.triu(), b, upper=True),
                              torch.cholesky_solve(b, torch.linalg.cholesky(a)), torch.linalg.solve(a, b[:, 0])],
                [positive(4), rand(4, 2)]),
    "products of factors": (lambda a: [(lambda u, s, v: u @ torch.diag(s) @ v)(*torch.linalg.svd(a)),
                                       (lambda q, r: q @ r)(*torch.linalg.qr(a)),
                                       (lambda p, l, u: p @ l @ u)(*torch.linalg.lu(a)),
                                       torch.linalg.pinv(a), torch.linalg.pinv(a, hermitian=True), torch.lu_solve(a,
        *torch.linalg.lu_factor(a))], [positive(4)]),
    "fourier": (lambda x: [torch.fft.fft(x).abs(), torch.fft.irfft(torch.fft.rfft(x), 6), torch.fft.ifft2(x).real,
                           torch.fft.fft(x, norm="ortho").imag, torch.fft.fftshift(x), torch.fft.irfft(x, 7)], [x]),
    "spectrograms": (lambda x: torch.stft(x, 8, window=torch.ones(8), return_complex=True).abs(), [rand(40)]),
    # control flow
    "branches": (lambda x: torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, (x,)), [x]),
    "branches the other way": (lambda x: torch.cond(x.sum() > 1e6, lambda x: x * 2, lambda x: x - 1, (x,)), [x]),
    "vmap": (lambda x, y: torch.vmap(lambda a, b: (a * b).sum())(x, y), [x, y]),
    "derivative of layers": (_derivative(lambda w, x: F.group_norm(F.layer_norm(F.max_pool2d(
        F.conv2d(x, w, padding=1), 2), (4,)), 2).pow(3).sum(), rand(2, 3, 3, 3), picture), [rand(2, 3, 3, 3), picture]),
    "derivative of pooling": (_derivative(lambda x: (F.avg_pool2d(x, 3, 2, 1).pow(2).sum() + F.conv_transpose2d(
        F.adaptive_avg_pool2d(x, 3), torch.ones(3, 2, 2, 2)).pow(2).sum()), picture), [picture]),
    "derivative of a look-up": (_derivative(lambda w, i: F.embedding(i, w).pow(2).sum(), rand(6, 4), words),
                                [rand(6, 4), words]),
}  # fmt: skip


class _Mixed(nn.Module):
    """A convolution, a batch norm, attention, in one."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 8, 3, stride=2), nn.BatchNorm2d(8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.register_buffer("scale", torch.tensor(0.5), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.relu(self.norm(self.first(x))).flatten(2).transpose(1, 2)
        found, weights = self.attention(x, x, x)
        return found * self.scale + weights.mean()


def _embedded() -> nn.Module:
    return nn.Sequential(nn.Embedding(6, 16), nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), nn.Linear(16, 6))


MODULES: dict[str, tuple[Callable[[], nn.Module], list[Any]]] = {
    "mixed": (_Mixed, [picture]),
    "perceptron": (lambda: nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 2)), [x]),
    "transformer": (_embedded, [words]),
    "decoder": (lambda: nn.TransformerDecoderLayer(16, 2, 32, batch_first=True), [sequence, rand(2, 3, 16)]),
    "lstm": (lambda: nn.LSTM(16, 4, 2, batch_first=True, bidirectional=True), [sequence]),
    "lstm with projection": (lambda: nn.LSTM(16, 4, proj_size=3), [sequence]),
    "gru": (lambda: nn.GRU(16, 4, bidirectional=True), [sequence]),
    "rnn": (lambda: nn.RNN(16, 4, 2, nonlinearity="relu"), [sequence]),
    "cells": (lambda: nn.LSTMCell(6, 3), [x]),
    "bilinear": (lambda: nn.Bilinear(6, 6, 3), [x, y]),
    "prelu": (lambda: nn.Sequential(nn.Linear(6, 3), nn.PReLU(), nn.Dropout(0.5)), [x]),
}

#: Whose results have shapes that depend on values: no compiler knows them.
SHAPED_BY_VALUES = {"counts", "masks", "unique"}
#: What has no translation, and what the message says.
REFUSED: dict[str, tuple[Callable[..., Any], list[Any], str]] = {
    "no dtype": (lambda x: x.to(torch.float8_e4m3fn), [x],
                 "aten.to.dtype has elements of type float8_e4m3fn, for which smelt"),
    "no op": (lambda x: torch.geqrf(x), [square], "aten.geqrf.default has no translation; write the program without"),
    "writes to its argument": (lambda x: x.add_(1), [x], "writes to its argument args_0, .*clone it there first"),
    "asks for a value": (lambda x: x if x.sum() > 0 else -x, [x], "torch.export fails: GuardOnDataDependentSymNode"),
    "memory": (lambda x: torch.as_strided(x.t(), (2, 2), (1, 3)), [x], "of what does not lie in one piece"),
}
