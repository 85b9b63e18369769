"""Layers of convolutional networks: of ResNet-50 and of a network of depthwise convolutions, and their gradients."""

from __future__ import annotations

import itertools
from typing import Any, ClassVar

import numpy as np

from ..workload import PARTS, Workload, part_of_layer

BATCH = 4


class Layer(Workload):
    """A convolution of images in the order batch, rows, columns, channels."""

    table = "library"
    #: Rows and columns of the images, channels of the input and of the result, taps a side, stride, groups.
    size: ClassVar[int]
    channels: ClassVar[int]
    outputs: ClassVar[int]
    taps: ClassVar[int]
    stride: ClassVar[int] = 1
    groups: ClassVar[int] = 1
    #: What is computed: the layer, or its gradient with respect to the images or the weights.
    part: ClassVar[str] = "forward"
    rtol, atol = 1e-3, 2e-2

    @property
    def title(self) -> str:
        shape = f"{self.taps}×{self.taps}" + (f", stride {self.stride}" if self.stride > 1 else "")
        kind = "depthwise " if self.groups > 1 else ""
        what = {"forward": "", "images": ", gradient of images", "weights": ", gradient of weights"}[self.part]
        return f"{kind}conv {shape}, {BATCH}×{self.size}²×{self.channels} to {self.outputs}{what}"

    def arrays(self, rng: np.random.Generator) -> list[np.ndarray]:
        x = rng.standard_normal((BATCH, self.size, self.size, self.channels), np.float32)
        w = rng.standard_normal((self.outputs, self.taps, self.taps, self.channels // self.groups), np.float32)
        w /= (self.taps**2 * w.shape[-1]) ** 0.5
        extent = (self.size - 1) // self.stride + 1
        if self.part == "forward":
            return [x, w]
        return [x, w, rng.standard_normal((BATCH, extent, extent, self.outputs), np.float32)]

    def expected(self, x: np.ndarray, w: np.ndarray, *rest: np.ndarray) -> np.ndarray:
        """Tap by tap, a product of matrices each."""
        pad, s = self.taps // 2, self.stride
        padded = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
        extent = (self.size - 1) // s + 1
        result = np.zeros((BATCH, extent, extent, self.outputs), np.float32)
        of_images, of_weights = np.zeros_like(padded), np.zeros_like(w)
        for i, j in itertools.product(range(self.taps), repeat=2):
            place = np.s_[:, i : i + (extent - 1) * s + 1 : s, j : j + (extent - 1) * s + 1 : s]
            seen, tap = padded[place], w[:, i, j]
            if self.part == "forward":
                result += seen * tap[:, 0] if self.groups > 1 else seen @ tap.T
            elif self.part == "images":
                of_images[place] += rest[0] * tap[:, 0] if self.groups > 1 else rest[0] @ tap
            elif self.groups > 1:
                of_weights[:, i, j, 0] = (seen * rest[0]).sum((0, 1, 2))
            else:
                of_weights[:, i, j] = np.tensordot(rest[0], seen, ([0, 1, 2], [0, 1, 2]))
        if self.part == "images":
            return of_images[:, pad : pad + self.size, pad : pad + self.size]
        return result if self.part == "forward" else of_weights

    def smelt(self, smelt: Any) -> Any:
        return smelt.compile(part_of_layer(smelt, self._layer(smelt), self.part))

    def mlx(self, mx: Any) -> Any:
        return mx.compile(part_of_layer(mx, self._layer(mx), self.part))

    def _layer(self, module: Any) -> Any:
        return lambda x, w: module.conv2d(x, w, stride=self.stride, padding=self.taps // 2, groups=self.groups)

    def torch(self, torch: Any) -> Any:
        """Its own order of axes over the same memory, which it calls channels last."""

        def moved(*arrays: Any) -> list[Any]:
            return [a.permute(0, 3, 1, 2) for a in arrays]

        stride, padding = [self.stride] * 2, [self.taps // 2] * 2
        if self.part == "forward":

            def layer(x: Any, w: Any) -> Any:
                x, w = moved(x, w)
                found = torch.nn.functional.conv2d(x, w, None, stride, padding, 1, self.groups)
                return found.permute(0, 2, 3, 1)

            return layer
        mask = [self.part == "images", self.part == "weights", False]

        def gradient(*arrays: Any) -> Any:
            x, w, ct = moved(*arrays)
            found = torch.ops.aten.convolution_backward(
                ct, x, w, None, stride, padding, [1, 1], False, [0, 0], self.groups, mask
            )
            return found[mask.index(True)].permute(0, 2, 3, 1)

        return gradient

    def jax(self, jax: Any) -> Any:
        def layer(x: Any, w: Any) -> Any:
            return jax.lax.conv_general_dilated(
                x, w, [self.stride] * 2, [(self.taps // 2,) * 2] * 2,
                dimension_numbers=("NHWC", "OHWI", "NHWC"), feature_group_count=self.groups,
            )  # fmt: skip

        if self.part == "forward":
            return jax.jit(layer)
        at = 0 if self.part == "images" else 1
        return jax.jit(lambda x, w, ct: jax.vjp(layer, x, w)[1](ct)[at])


#: The name of each layer, with rows, channels, output channels, taps, stride and groups.
LAYERS = {
    "stem": (224, 3, 64, 7, 2, 1),
    "1x1-64-256": (56, 64, 256, 1, 1, 1),
    "3x3-64": (56, 64, 64, 3, 1, 1),
    "3x3-128-s2": (56, 128, 128, 3, 2, 1),
    "1x1-256-512-s2": (56, 256, 512, 1, 2, 1),
    "3x3-256": (14, 256, 256, 3, 1, 1),
    "1x1-1024-256": (14, 1024, 256, 1, 1, 1),
    "3x3-512": (7, 512, 512, 3, 1, 1),
    "depthwise-32": (112, 32, 32, 3, 1, 32),
    "depthwise-144-s2": (56, 144, 144, 3, 2, 144),
    "depthwise-384": (14, 384, 384, 3, 1, 384),
    "depthwise-5x5-672": (14, 672, 672, 5, 1, 672),
}

for _name, _numbers in LAYERS.items():
    for _part, _suffix in PARTS.items():
        if _name == "stem" and _part == "images":  # the first layer: nobody asks for it
            continue
        _attributes = dict(zip(("size", "channels", "outputs", "taps", "stride", "groups"), _numbers))
        type("Layer", (Layer,), {**_attributes, "part": _part}, name=f"conv-{_name}{_suffix}")
