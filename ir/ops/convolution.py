"""Convolutions: contractions of windows of an input with a kernel."""

from __future__ import annotations

import itertools
import math
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import halves
from ..aval import Aval
from ..errors import AttributeValueError, DTypeError
from ..forms import MatmulForm, WindowForm, matrix_layout
from ..index import Access, Coordinates, Guard
from ..kinds import Contraction, batch_size, silent
from ..numpy_blas import matmul
from ..op import Batched, Cotangents, Dims, Flags, Int, Ints, Operand, Values, only, require, require_dtype

if TYPE_CHECKING:
    from ..builder import Builder, Value


class ConvGeneral(Contraction, name="conv_general"):
    """Products of a kernel with a window of the input, summed, for each place of the window.

    x has the axes N, spatial axes, C; the kernel w has O, the same spatial axes, C / groups; the result N,
    spatial axes, O. Along each spatial axis
    result[n, i, o] = Σ over k, c of x[n, (i·stride + k·kernel_dilation - low) / input_dilation, c] · w[o, k, c],
    where x counts as zero outside of its extent and between its elements, which stand `input_dilation` apart.
    Negative padding cuts elements off. With g groups the i-th part of O sees only the i-th part of C.
    The kernel is not flipped. Half precision accumulates in float32; integers wrap.

    ``%0 = "smelt.conv_general"(%x, %w) {window_strides = array<i64: 1>, padding_low = array<i64: 1>, padding_high = array<i64: 1>, kernel_dilation = array<i64: 1>, input_dilation = array<i64: 1>, feature_groups = 1 : i64} : (tensor<2x5x4xf32>, tensor<6x3x4xf32>) -> tensor<2x5x6xf32>``
    """

    primitive = "Convolution"
    x: Operand
    w: Operand
    window_strides: Ints
    padding_low: Ints
    padding_high: Ints
    kernel_dilation: Ints
    input_dilation: Ints
    feature_groups: Int = 1
    sizes = ("padding_low", "padding_high")

    def infer(
        self, x: Aval, w: Aval,
        *, window_strides: Ints, padding_low: Ints, padding_high: Ints, kernel_dilation: Ints, input_dilation: Ints,
        feature_groups: Int,
    ) -> Aval:  # fmt: skip
        require_dtype(x, self.accepts, "x")
        require(x.dtype is w.dtype, "x and w must have the same dtype", DTypeError)
        require(x.ndim >= 2 and x.ndim == w.ndim, "x and w must have the same number of axes, two or more")
        options = {
            "window_strides": window_strides, "padding_low": padding_low, "padding_high": padding_high,
            "kernel_dilation": kernel_dilation, "input_dilation": input_dilation,
        }  # fmt: skip
        for name, values in options.items():
            rule = f"{name} needs one entry for each of {x.ndim - 2} spatial axes"
            require(len(values) == x.ndim - 2, rule, AttributeValueError)
            positive = name in ("padding_low", "padding_high") or all(v >= 1 for v in values)
            require(positive, f"{name} {values} must be positive", AttributeValueError)
        require(feature_groups >= 1, f"feature_groups must be at least 1, is {feature_groups}", AttributeValueError)
        require(all(w.shape[1:-1]), "w must have elements along its spatial axes")
        channels, per_group = x.shape[-1], w.shape[-1]
        rule = f"x has {channels} channels, w has {per_group} for each of {feature_groups} groups"
        require(channels == per_group * feature_groups, rule)
        require(w.shape[0] % feature_groups == 0, f"{w.shape[0]} output channels are not {feature_groups} equal groups")
        spatial = []
        for axis, (stride, low, high, d, e) in enumerate(zip(*options.values()), 1):
            room = _spread(x.shape[axis], e) + low + high - _spread(w.shape[axis], d)
            spatial.append(max(0, room // stride + 1))
        return x.with_shape((x.shape[0], *spatial, w.shape[0]))

    @silent
    def reference(
        self, x: np.ndarray, w: np.ndarray,
        *, window_strides: Ints, padding_low: Ints, padding_high: Ints, kernel_dilation: Ints, input_dilation: Ints,
        feature_groups: Int,
    ) -> np.ndarray:  # fmt: skip
        dtype, g = x.dtype, feature_groups
        x, w = halves.widened(x), halves.widened(w)
        padded = _padded(x, padding_low, padding_high, input_dilation)
        taps = w.shape[1:-1]
        sizes = [
            len(range(0, n - (k - 1) * d, s))
            for n, k, d, s in zip(padded.shape[1:-1], taps, kernel_dilation, window_strides)
        ]
        places = (x.shape[0], *sizes)
        rows_seen = math.prod(places)
        if g == 1 and rows_seen and w.size:
            apart = padded.strides[1:-1]
            windows = np.lib.stride_tricks.as_strided(
                padded,
                (*places, *taps, x.shape[-1]),
                (padded.strides[0], *map(operator.mul, apart, window_strides),
                 *map(operator.mul, apart, kernel_dilation), padded.strides[-1]),
            )  # fmt: skip
            return _products(windows, w).astype(dtype, copy=False)
        kernels = w.reshape(g, w.shape[0] // g, *w.shape[1:])
        if math.prod(sizes) < math.prod(taps):  # a matrix product a place and group, of all of a window
            deep = kernels.reshape(g, w.shape[0] // g, math.prod(w.shape[1:])).swapaxes(1, 2)
            sums = np.empty((x.shape[0], math.prod(sizes), g, w.shape[0] // g), x.dtype)
            for i, at in enumerate(itertools.product(*map(range, sizes))):
                window: Any = slice(None), *(
                    slice(a * s, a * s + (k - 1) * d + 1, d)
                    for a, s, k, d in zip(at, window_strides, taps, kernel_dilation)
                )  # fmt: skip
                lines = np.moveaxis(padded[window].reshape(x.shape[0], math.prod(taps), g, w.shape[-1]), 2, 0)
                sums[:, i] = np.moveaxis(matmul(lines.reshape(g, x.shape[0], deep.shape[1]), deep), 0, 1)
            return sums.reshape(*places, w.shape[0]).astype(dtype)
        total = np.zeros((rows_seen, g, w.shape[0] // g), x.dtype)
        for k in itertools.product(*map(range, taps)):  # a matrix product a tap and group
            parts = [
                slice(j * d, j * d + (m - 1) * s + 1 if m else 0, s)
                for j, d, m, s in zip(k, kernel_dilation, sizes, window_strides)
            ]
            tap: Any = slice(None), slice(None), *k  # group, output, channel
            seen = (slice(None), *parts)
            rows = padded[seen].reshape(rows_seen, g, w.shape[-1])
            if w.shape[-1] == 1:  # a product an element
                total += rows * kernels[tap][..., 0]
            else:
                total += np.moveaxis(matmul(np.moveaxis(rows, 1, 0), kernels[tap].swapaxes(1, 2)), 0, 1)
        return total.reshape(*places, w.shape[0]).astype(dtype)

    def transpose(
        self, b: Builder, cotangents: Cotangents, operands: Values, linear: Flags,
        *, window_strides: Ints, padding_low: Ints, padding_high: Ints, kernel_dilation: Ints, input_dilation: Ints,
        feature_groups: Int,
    ) -> Cotangents:  # fmt: skip
        """A convolution of the cotangent with the other operand, dilated by the strides."""
        ct, (x, w), g = only(cotangents), operands, feature_groups
        if ct.aval.size == 0:
            return [b.zeros_like(v) if t else None for v, t in zip((x, w), linear)]
        spatial = tuple(range(1, x.ndim - 1))
        single = g == 1 and all(n == 1 for n in (*w.shape[1:-1], *input_dilation))
        if single and not any((*padding_low, *padding_high)):
            return self._transposed_products(b, ct, x, w, linear, window_strides)
        taps, last = w.shape[1:-1], x.ndim
        reach = [(k - 1) * d for k, d in zip(taps, kernel_dilation)]
        if linear[0]:  # the kernel flipped, its channels exchanged group by group
            low = tuple(r - p for r, p in zip(reach, padding_low))
            high = tuple(
                (n - 1) * e + p - (m - 1) * s if n else -(m - 1) * s - 1 + p
                for n, e, p, m, s in zip(x.shape[1:-1], input_dilation, padding_low, ct.shape[1:-1], window_strides)
            )
            kernel = b.reshape_to(b.reverse(w, axes=spatial), (g, w.shape[0] // g, *taps, w.shape[-1]))
            kernel = b.transpose(kernel, permutation=(0, last, *(a + 1 for a in spatial), 1))
            kernel = b.reshape_to(kernel, (x.shape[-1], *taps, w.shape[0] // g))
            found = b.conv_general(
                ct, kernel,
                window_strides=input_dilation, padding_low=low, padding_high=high,
                kernel_dilation=kernel_dilation, input_dilation=window_strides, feature_groups=g,
            )  # fmt: skip
            return [found, None]
        # The channels of a group of what is seen are its batch, its batch the channels; the other one is the kernel. The
        # input is seen, but that of a transposed convolution, which has zeros between its elements: there the cotangent
        # is, by windows that go the other way. Of channels by themselves either is as few sums.
        turned = x.shape[-1] > g and math.prod(input_dilation) > math.prod(window_strides)
        seen, kernel = (ct, x) if turned else (x, ct)
        between, apart = (window_strides, input_dilation) if turned else (input_dilation, window_strides)
        low = tuple(r - p for r, p in zip(reach, padding_low)) if turned else padding_low
        high = tuple(
            r + _spread(m, s) - p - _spread(d, e)
            for r, m, s, p, d, e in zip(reach, kernel.shape[1:-1], apart, low, seen.shape[1:-1], between)
        )
        found = b.conv_general(
            self._batch_as_channels(b, seen, g), b.transpose(kernel, permutation=(last - 1, *spatial, 0)),
            window_strides=kernel_dilation, padding_low=low, padding_high=high,
            kernel_dilation=apart, input_dilation=between, feature_groups=g,
        )  # fmt: skip
        if not turned:
            return [None, b.transpose(found, permutation=(last - 1, *spatial, 0))]
        found = b.reshape_to(b.reverse(found, axes=spatial), (*found.shape[:-1], g, w.shape[-1]))
        found = b.transpose(found, permutation=(last - 1, 0, *spatial, last))
        return [None, b.reshape_to(found, w.shape)]

    def _batch_as_channels(self, b: Builder, x: Value, groups: int) -> Value:
        """N, spatial, groups·C → C, spatial, groups·N."""
        spatial, last, per_group = tuple(range(1, x.ndim - 1)), x.ndim, x.shape[-1] // groups
        x = b.reshape_to(x, (*x.shape[:-1], groups, per_group))
        x = b.transpose(x, permutation=(last, *spatial, last - 1, 0))
        return b.reshape_to(x, (per_group, *x.shape[1:-2], x.shape[-2] * x.shape[-1]))

    def _transposed_products(
        self, b: Builder, ct: Value, x: Value, w: Value, linear: Flags, strides: Ints
    ) -> Cotangents:
        """Of windows of one element, which are a product of matrices: two more of them."""
        matrix, apart, none = (w.shape[0], w.shape[-1]), (1, *strides, 1), (0,) * x.ndim
        if linear[0]:
            found = b.dot_general(ct, b.reshape_to(w, matrix), lhs_contracting=(x.ndim - 1,), rhs_contracting=(0,))
            reach = [_spread(d, s) for d, s in zip(found.shape, apart)]
            if found.shape != x.shape:
                high, between = tuple(n - m for n, m in zip(x.shape, reach)), tuple(s - 1 for s in apart)
                found = b.pad(found, b.full((), 0, found.dtype), low=none, high=high, interior=between)
            return [found, None]
        if any(s > 1 for s in strides):
            x = b.slice(x, start=none, stop=x.shape, stride=apart)
        places = tuple(range(x.ndim - 1))
        return [None, b.reshape_to(b.dot_general(ct, x, lhs_contracting=places, rhs_contracting=places), w.shape)]

    def batch(self, b: Builder, operands: Values, dims: Dims, **attrs: Any) -> Batched:
        """Examples of the input are more of its N, kernels more output channels, both together more groups."""
        (x, w), (i, j) = operands, dims
        size, g = batch_size(operands, dims), attrs["feature_groups"]
        if j is None:
            x = b.move_axis(x, only(dims), 0)
            (found,) = b.emit(self, [b.reshape_to(x, (size * x.shape[1], *x.shape[2:])), w], attrs)
            return [b.reshape_to(found, (size, x.shape[1], *found.shape[1:]))], [0]
        w = b.move_axis(w, j, 0)
        outputs = w.shape[1]
        if i is not None:  # channels: example, channel
            x = b.move_axis(x, i, x.ndim - 2)
            x = b.reshape_to(x, (*x.shape[:-2], size * x.shape[-1]))
            w = b.reshape_to(w, (size * outputs, *w.shape[2:]))
            (found,) = b.emit(self, [x, w], {**attrs, "feature_groups": size * g})
            return [b.reshape_to(found, (*found.shape[:-1], size, outputs))], [found.ndim - 1]
        # Output channels: group, kernel, channel of the group.
        w = b.reshape_to(w, (size, g, outputs // g, *w.shape[2:]))
        w = b.reshape_to(b.move_axis(w, 1, 0), (size * outputs, *w.shape[3:]))
        (found,) = b.emit(self, [x, w], attrs)
        found = b.reshape_to(found, (*found.shape[:-1], g, size, outputs // g))
        found = b.move_axis(found, found.ndim - 2, 0)
        return [b.reshape_to(found, (*found.shape[:-2], outputs))], [0]

    # Lowering: as loops over the kernel, or to a matrix product where each window is read once.

    def depth(self, x: Aval, w: Aval, **_: Any) -> tuple[int, ...]:
        return w.shape[1:]

    def operand_indices(
        self, place: Coordinates, depth: Coordinates, x: Aval, w: Aval,
        *, window_strides: Ints, padding_low: Ints, padding_high: Ints, kernel_dilation: Ints, input_dilation: Ints,
        feature_groups: Int,
    ) -> tuple[Access, ...]:  # fmt: skip
        (first, *middle, output), (*taps, channel) = place, depth
        source, guards = [first], []
        steps = zip(middle, taps, x.shape[1:-1], window_strides, padding_low, kernel_dilation, input_dilation)
        for i, k, extent, stride, low, d, e in steps:
            at = i * stride + k * d - low
            if e > 1:
                guards.append(Guard(at % e, 1))
                at = at // e
            guards.append(Guard(at, extent))
            source.append(at)
        group = output // max(1, w.shape[0] // feature_groups)
        source.append(group * w.shape[-1] + channel)
        return Access(tuple(source), tuple(guards)), Access((output, *taps, channel))

    def matmul_form(
        self, x: Aval, w: Aval,
        *, window_strides: Ints, padding_low: Ints, padding_high: Ints, kernel_dilation: Ints, input_dilation: Ints,
        feature_groups: Int,
    ) -> MatmulForm | None:  # fmt: skip
        axes = range(1, x.ndim - 1)
        moves = [  # an axis along which windows of one element stand side by side
            (w.shape[a], s, lo, hi, e) == (1, 1, 0, 0, 1)
            for a, s, lo, hi, e in zip(axes, window_strides, padding_low, padding_high, input_dilation)
        ]
        whole = [  # an axis along which there is one window, which is all of it
            (w.shape[a], lo, hi, d, e) == (x.shape[a], 0, 0, 1, 1)
            for a, lo, hi, d, e in zip(axes, padding_low, padding_high, kernel_dilation, input_dilation)
        ]
        if feature_groups > 1 or not all(m or h for m, h in zip(moves, whole)):
            return None
        free = [a for a, m in zip(axes, moves) if m]
        deep = [a for a, m in zip(axes, moves) if not m]
        left, right = (0, *free), (*free, *deep, x.ndim - 1)
        form = MatmulForm(
            1,
            math.prod(x.shape[a] for a in left),
            w.shape[0],
            math.prod(w.shape[1:]),
            (*left, *deep, x.ndim - 1),
            (*right, 0),
            matrix_layout(x.shape, (), left, (*deep, x.ndim - 1)),
            matrix_layout(w.shape, (), right, (0,)),
        )
        return form if form.in_place else None

    def window_form(
        self, x: Aval, w: Aval,
        *, window_strides: Ints, padding_low: Ints, padding_high: Ints, kernel_dilation: Ints, input_dilation: Ints,
        feature_groups: Int,
    ) -> WindowForm:  # fmt: skip
        return WindowForm(window_strides, padding_low, kernel_dilation, input_dilation, feature_groups)


def _padded(x: np.ndarray, low: Ints, high: Ints, dilation: Ints) -> np.ndarray:
    """`x` with zeros between and around its elements, or without those at its ends."""
    if any(d > 1 for d in dilation):
        apart = (1, *dilation, 1)
        spread = np.zeros([d if step == 1 else _spread(d, step) for d, step in zip(x.shape, apart)], x.dtype)
        spread[tuple([slice(None, None, step) for step in apart])] = x
        x = spread
    if not any(low) and not any(high):
        return x
    sides = [(0, 0), *zip(low, high), (0, 0)]
    found = np.zeros([max(a, 0) + d + max(b, 0) for (a, b), d in zip(sides, x.shape)], x.dtype)
    found[tuple([slice(max(a, 0), max(a, 0) + d) for (a, _), d in zip(sides, x.shape)])] = x
    return found[tuple([slice(max(-a, 0), n - max(-b, 0)) for (a, b), n in zip(sides, found.shape)])]


#: Elements of windows, each by itself, that are copied for one product.
_WINDOWS = 1 << 20


def _products(windows: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The products of all windows with a kernel of one group: of as many at a time as have `_WINDOWS` elements."""
    places, kernel = windows.shape[: 1 - w.ndim], w.reshape(w.shape[0], -1).T
    found = np.empty((*places, w.shape[0]), w.dtype)
    images = max(1, _WINDOWS // windows[0].size)
    lines = max(1, _WINDOWS // windows[0, 0].size) if len(places) > 1 and windows[0].size > _WINDOWS else None
    for n in range(0, places[0], images):
        for i in range(0, places[1], lines) if lines else (0,):
            block = (slice(n, n + images), slice(i, i + lines)) if lines else (slice(n, n + images),)
            part = found[block]
            part[...] = matmul(windows[block].reshape(-1, kernel.shape[0]), kernel).reshape(part.shape)
    return found


def _spread(extent: int, dilation: int) -> int:
    """The extent of an axis whose elements stand `dilation` apart."""
    return (extent - 1) * dilation + 1 if extent else 0
