"""Convolutions of other kinds than layers of images have: along one axis and three, transposed ones, of groups."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from ..workload import PARTS, Workload, part_of_layer

#: What the title says of what is computed.
SAID = {"forward": "", "images": ", gradient of the input", "weights": ", gradient of weights"}


class Kind(Workload):
    """A convolution of an array in the order batch, space, channels."""

    table = "library"
    said: ClassVar[str]
    function: ClassVar[str]
    shape: ClassVar[tuple[int, ...]]
    kernel: ClassVar[tuple[int, ...]]
    stride: ClassVar[int]
    padding: ClassVar[int]
    groups: ClassVar[int]
    dilation: ClassVar[int]
    part: ClassVar[str]
    rtol, atol = 1e-3, 2e-2

    @property
    def title(self) -> str:
        return f"{self.said}, {'×'.join(map(str, self.shape))} to {self.kernel[0]}{SAID[self.part]}"

    @property
    def _transposed(self) -> bool:
        return "transpose" in self.function

    @property
    def _space(self) -> tuple[int, ...]:
        """The result's."""
        pairs = tuple(zip(self.shape[1:-1], self.kernel[1:-1]))
        if self._transposed:
            return tuple((d - 1) * self.stride + k - 2 * self.padding for d, k in pairs)
        return tuple((d + 2 * self.padding - (k - 1) * self.dilation - 1) // self.stride + 1 for d, k in pairs)

    def arrays(self, rng: np.random.Generator) -> list[np.ndarray]:
        x, w = rng.standard_normal(self.shape, np.float32), rng.standard_normal(self.kernel, np.float32)
        w /= np.sqrt(w[0].size)
        if self.part == "forward":
            return [x, w]
        return [x, w, rng.standard_normal((self.shape[0], *self._space, self.kernel[0]), np.float32)]

    def _taps(self, small: tuple[int, ...]) -> Iterator[tuple[Any, Any]]:
        """For each tap where it is in the kernel, and which places of the padded larger array meet the smaller one."""
        for tap in itertools.product(*map(range, self.kernel[1:-1])):
            starts = [t * self.dilation for t in tap]
            places = [slice(t, t + (d - 1) * self.stride + 1, self.stride) for t, d in zip(starts, small)]
            yield (slice(None), *tap), (slice(None), *places)

    def expected(self, x: np.ndarray, w: np.ndarray, *rest: np.ndarray) -> np.ndarray:
        """Tap by tap, and group by group. A transposed convolution is the gradient of another."""
        pad = ((0, 0), *[(self.padding, self.padding)] * (x.ndim - 2), (0, 0))
        inside = tuple(slice(self.padding, -self.padding or None) for _ in self._space)
        large_shape = (self.shape[0], *(self._space if self._transposed else self.shape[1:-1]))
        groups = []
        for g in range(self.groups):
            own, outs = (slice(g * n // self.groups, (g + 1) * n // self.groups) for n in (x.shape[-1], w.shape[0]))
            v = w[outs]
            image = x[..., own] if self.part != "images" else None
            ct = rest[0][..., outs] if rest else None
            # `large` is what windows look into: the input, or of a transposed convolution the result.
            large, small = (ct, image) if self._transposed else (image, ct)
            channels = v.shape[0] if self._transposed else v.shape[-1]
            space = self.shape[1:-1] if self._transposed else self._space
            if self.part == "weights":
                padded, found = np.pad(large, pad), np.zeros_like(v)
                for tap, places in self._taps(space):
                    seen = padded[places].reshape(-1, channels)
                    product = seen.T @ small.reshape(-1, small.shape[-1])
                    found[tap] = product if self._transposed else product.T
            elif (self.part == "forward") != self._transposed:  # windows are read
                padded, found = np.pad(large, pad), 0.0
                for tap, places in self._taps(space):
                    found = found + padded[places] @ (v[tap] if self._transposed else v[tap].T)
            else:
                sizes = [d + 2 * self.padding for d in large_shape[1:]]
                whole = np.zeros((large_shape[0], *sizes, channels), np.float32)
                for tap, places in self._taps(space):
                    whole[places] += small @ (v[tap].T if self._transposed else v[tap])
                found = whole[(slice(None), *inside)]
            groups.append(found)
        return np.concatenate(groups, 0 if self.part == "weights" else -1).astype(np.float32)

    def _layer(self, module: Any) -> Any:
        def layer(x: Any, w: Any) -> Any:
            options = {"stride": self.stride, "padding": self.padding, "dilation": self.dilation}
            return getattr(module, self.function)(x, w, groups=self.groups, **options)

        return layer

    def smelt(self, smelt: Any) -> Any:
        return smelt.compile(part_of_layer(smelt, self._layer(smelt), self.part))

    def mlx(self, mx: Any) -> Any:
        return mx.compile(part_of_layer(mx, self._layer(mx), self.part))

    def torch(self, torch: Any) -> Any:
        """Its own order of axes over the same memory."""
        last, axes = len(self.shape) - 1, range(1, len(self.shape) - 1)
        first, channels_first = (last, 0, *axes), (0, last, *axes)
        of_kernel = first if self._transposed else channels_first
        layer = getattr(torch.nn.functional, self.function)
        if self.part == "forward":

            def call(x: Any, w: Any) -> Any:
                found = layer(
                    x.permute(channels_first), w.permute(of_kernel), None, self.stride, self.padding,
                    groups=self.groups, dilation=self.dilation,
                )  # fmt: skip
                return found.movedim(1, -1)

            return call
        mask = [self.part == "images", self.part == "weights", False]
        every = [[n] * len(axes) for n in (self.stride, self.padding, self.dilation, 0)]

        def gradient(x: Any, w: Any, ct: Any) -> Any:
            found = torch.ops.aten.convolution_backward(
                ct.permute(channels_first), x.permute(channels_first), w.permute(of_kernel), None,
                *every[:3], self._transposed, every[3], self.groups, mask,
            )[mask.index(True)]  # fmt: skip
            return found.movedim((0, 1), (-1, 0)) if mask[1] and self._transposed else found.movedim(1, -1)

        return gradient


KINDS = {
    "conv1d": ("conv1d of 5", "conv1d", (8, 4000, 64), (64, 5, 64), 1, 2, 1),
    "conv1d-wave": ("conv1d of 16, stride 8", "conv1d", (8, 16000, 1), (64, 16, 1), 8, 0, 1),
    "conv3d": ("conv3d of 3³", "conv3d", (2, 16, 32, 32, 16), (32, 3, 3, 3, 16), 1, 1, 1),
    "conv3d-stem": ("conv3d of 3³", "conv3d", (2, 16, 64, 64, 3), (16, 3, 3, 3, 3), 1, 1, 1),
    "transposed-1d": ("transposed conv1d, stride 2", "conv_transpose1d", (8, 1000, 64), (32, 4, 64), 2, 1, 1),
    "transposed-2d": ("transposed conv2d, stride 2", "conv_transpose2d", (4, 28, 28, 64), (32, 4, 4, 64), 2, 1, 1),
    "grouped-32": ("conv2d of 3² in 32 groups", "conv2d", (4, 56, 56, 256), (256, 3, 3, 8), 1, 1, 32),
    "grouped-32-s2": ("conv2d of 3² in 32 groups, stride 2", "conv2d", (4, 56, 56, 256), (256, 3, 3, 8), 2, 1, 32),
    "grouped-2": ("conv2d of 3² in 2 groups", "conv2d", (4, 28, 28, 128), (128, 3, 3, 64), 1, 1, 2),
    "grouped-4": ("conv2d of 3² in 4 groups", "conv2d", (4, 28, 28, 128), (128, 3, 3, 32), 1, 1, 4),
    "dilated": ("conv2d of 3², dilation 2", "conv2d", (4, 28, 28, 128), (128, 3, 3, 128), 1, 2, 1, 2),
    "one-image": ("conv2d of 3²", "conv2d", (1, 56, 56, 64), (64, 3, 3, 64), 1, 1, 1),
}

for _name, _values in KINDS.items():
    for _part, _suffix in PARTS.items():
        _names = ("said", "function", "shape", "kernel", "stride", "padding", "groups", "dilation")
        _attributes = {"dilation": 1, **dict(zip(_names, _values)), "part": _part}
        type("Kind", (Kind,), _attributes, name=f"{_name}{_suffix}")
