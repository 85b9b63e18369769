"""Single functions that models have beside their large products: what nobody looks at may take longest."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .program import Program, check_close, numbers, wide
from .quantized import Quantized


class _Function(Program):
    """A function that each framework has; its first elements are checked."""

    def check(self, result: Any, *arrays: np.ndarray) -> None:
        check_close(self, result, self.expected(*arrays))

    def torch_compile(self, torch: Any) -> Any:
        return torch.compile(self.torch(torch), dynamic=False)


class Depthwise(_Function, name="depthwise"):
    """3×3 convolution of each channel, 64 images of 112×112, 96 channels, f32"""

    @property
    def shape(self) -> tuple[int, ...]:
        return (2, 8, 8, 8) if self.tiny else (64, 112, 112, 96)

    @property
    def least_bytes(self) -> int:
        return 2 * math.prod(self.shape) * (2 if self.dtype == "bfloat16" else 4)

    def arrays(self, rng: np.random.Generator) -> list[np.ndarray]:
        return [numbers(rng, self.shape, self.dtype), numbers(rng, (self.shape[-1], 3, 3, 1), self.dtype)]

    def shown(self, result: Any) -> Any:
        return result[:1]

    def expected(self, x: np.ndarray, w: np.ndarray) -> np.ndarray:
        rows, columns = x.shape[1:3]
        padded, taps = np.pad(wide(x[:1]), ((0, 0), (1, 1), (1, 1), (0, 0))), wide(w)[..., 0]
        places = [(i, j) for i in range(3) for j in range(3)]
        return sum(padded[:, i : i + rows, j : j + columns] * taps[:, i, j] for i, j in places)

    def smelt(self, smelt: Any) -> Any:
        return smelt.compile(lambda x, w: smelt.conv2d(x, w, padding=1, groups=w.shape[0]))

    def torch(self, torch: Any) -> Any:
        def layer(x: Any, w: Any) -> Any:
            images, filters = x.permute(0, 3, 1, 2), w.permute(0, 3, 1, 2)
            return torch.nn.functional.conv2d(images, filters, padding=1, groups=w.shape[0]).permute(0, 2, 3, 1)

        return layer

    def jax(self, jax: Any) -> Any:
        order = "NHWC", "OHWI", "NHWC"
        return jax.jit(
            lambda x, w: jax.lax.conv_general_dilated(
                x, w, (1, 1), "SAME", dimension_numbers=order, feature_group_count=w.shape[0]
            )
        )


class DepthwiseBF16(Depthwise, name="depthwise-bf16"):
    """3×3 convolution of each channel, 64 images of 112×112, 96 channels, bf16"""

    dtype = "bfloat16"


class DepthwiseFilters(Depthwise, name="depthwise-filters"):
    """the gradient of that convolution in its filters, f32"""

    def arrays(self, rng: np.random.Generator) -> list[np.ndarray]:
        return [*super().arrays(rng), numbers(rng, self.shape, self.dtype)]

    def shown(self, result: Any) -> Any:
        return result[:2]

    def expected(self, x: np.ndarray, w: np.ndarray, given: np.ndarray | None = None) -> np.ndarray:
        assert given is not None
        rows, columns = x.shape[1:3]
        padded = np.pad(wide(x[..., :2]), ((0, 0), (1, 1), (1, 1), (0, 0)))
        places = [(i, j) for i in range(3) for j in range(3)]
        sums = [(padded[:, i : i + rows, j : j + columns] * wide(given[..., :2])).sum((0, 1, 2)) for i, j in places]
        return np.stack(sums, -1).reshape(2, 3, 3, 1)

    def smelt(self, smelt: Any) -> Any:
        def gradient(x: Any, w: Any, given: Any) -> Any:
            return smelt.vjp(lambda w: smelt.conv2d(x, w, padding=1, groups=w.shape[0]), [w], [given])[1][0]

        return smelt.compile(gradient)

    def torch(self, torch: Any) -> Any:
        layer = super().torch(torch)

        def gradient(x: Any, w: Any, given: Any) -> Any:
            with torch.enable_grad():
                w = w.detach().requires_grad_()
                return torch.autograd.grad(layer(x, w), [w], given)[0]

        return gradient

    def torch_compile(self, torch: Any) -> Any:
        return self.torch(torch)

    def jax(self, jax: Any) -> Any:
        layer = super().jax(jax)
        return jax.jit(lambda x, w, given: jax.vjp(lambda w: layer(x, w), w)[1](given)[0])


class ScatterAdd(_Function, name="scatter-add"):
    """2²³ numbers added to 2²⁰ elements, f32"""

    def arrays(self, rng: np.random.Generator) -> list[np.ndarray]:
        updates, targets = (5000, 100) if self.tiny else (2**23, 2**20)
        places = rng.integers(0, targets, updates).astype(np.int32)
        return [np.zeros(targets, np.float32), places, numbers(rng, (updates,))]

    def expected(self, x: np.ndarray, places: np.ndarray, updates: np.ndarray) -> np.ndarray:
        return np.bincount(places, wide(updates), len(x))

    def smelt(self, smelt: Any) -> Any:
        return smelt.compile(lambda x, places, updates: x.at[places].add(updates))

    def torch(self, torch: Any) -> Any:
        return lambda x, places, updates: x.index_add(0, places, updates)

    def jax(self, jax: Any) -> Any:
        return jax.jit(lambda x, places, updates: x.at[places].add(updates))


class LogGamma(_Function, name="lgamma"):
    """log Γ of 2²⁴ numbers, f32"""

    least_bytes = 2**27

    def arrays(self, rng: np.random.Generator) -> list[np.ndarray]:
        return [np.abs(numbers(rng, (1000 if self.tiny else 2**24,))) * 10 + 0.01]

    def shown(self, result: Any) -> Any:
        return result[:1000]

    def expected(self, x: np.ndarray) -> np.ndarray:
        return np.array([math.lgamma(v) for v in wide(x[:1000])])

    def smelt(self, smelt: Any) -> Any:
        return smelt.compile(smelt.lgamma)

    def mlx(self, mx: Any) -> Any:
        return None

    def torch(self, torch: Any) -> Any:
        return torch.lgamma

    def jax(self, jax: Any) -> Any:
        return jax.jit(jax.scipy.special.gammaln)


class Cholesky(_Function, name="cholesky-batch"):
    """Cholesky factors of 2,000 matrices of 32×32, f32"""

    def arrays(self, rng: np.random.Generator) -> list[np.ndarray]:
        x = numbers(rng, (4 if self.tiny else 2000, 32, 32))
        return [x @ x.swapaxes(1, 2) + 32 * np.eye(32, dtype=np.float32)]

    def expected(self, x: np.ndarray) -> np.ndarray:
        return np.linalg.cholesky(wide(x))

    def smelt(self, smelt: Any) -> Any:
        return smelt.compile(smelt.linalg.cholesky)

    def mlx(self, mx: Any) -> Any:
        return None  # it factors on the CPU alone

    def torch(self, torch: Any) -> Any:
        return torch.linalg.cholesky

    def jax(self, jax: Any) -> Any:
        return jax.jit(jax.numpy.linalg.cholesky)


class Solve(Cholesky, name="solve-batch"):
    """2,000 systems of 32 equations, f32"""

    def arrays(self, rng: np.random.Generator) -> list[np.ndarray]:
        (x,) = super().arrays(rng)
        return [x, numbers(rng, (len(x), 32, 4))]

    def expected(self, x: np.ndarray, *rest: np.ndarray) -> np.ndarray:
        return np.linalg.solve(wide(x), wide(*rest))

    def smelt(self, smelt: Any) -> Any:
        return smelt.compile(smelt.linalg.solve)

    def torch(self, torch: Any) -> Any:
        return torch.linalg.solve

    def jax(self, jax: Any) -> Any:
        return jax.jit(jax.numpy.linalg.solve)


class Recurrent(_Function, name="rnn"):
    """an RNN of 200 steps (tanh, 64×256), all states, f32"""

    def arrays(self, rng: np.random.Generator) -> list[np.ndarray]:
        steps = 5 if self.tiny else 200
        return [numbers(rng, (steps, 64, 256)), numbers(rng, (256, 256)) / 32]

    def expected(self, xs: np.ndarray, w: np.ndarray) -> np.ndarray:
        found = [np.zeros(xs.shape[1:])]
        for x in wide(xs):
            found.append(np.tanh(found[-1] @ wide(w) + x))
        return np.stack(found[1:])

    def _step(self, of: Any, h: Any, x: Any, w: Any) -> Any:
        return of.tanh(h @ w + x)

    def smelt(self, smelt: Any) -> Any:
        def states(xs: Any, w: Any) -> Any:
            return smelt.scan(lambda h, x: (self._step(smelt, h, x, w),) * 2, smelt.zeros_like(xs[0]), xs)[1]

        return smelt.compile(states)

    def mlx(self, mx: Any) -> Any:
        return None  # it has no loops in programs

    def torch(self, torch: Any) -> Any:
        def states(xs: Any, w: Any) -> Any:
            found = [torch.zeros_like(xs[0])]
            for x in xs:
                found.append(self._step(torch, found[-1], x, w))
            return torch.stack(found[1:])

        return states

    def jax(self, jax: Any) -> Any:
        def states(xs: Any, w: Any) -> Any:
            start = jax.numpy.zeros_like(xs[0])
            return jax.lax.scan(lambda h, x: (self._step(jax.numpy, h, x, w),) * 2, start, xs)[1]

        return jax.jit(states)


class QuantizedMany(Quantized, name="quantized-512-4"):
    """512×8192 by 8192² in packed numbers of 4 bits, bf16"""

    rows = 512
