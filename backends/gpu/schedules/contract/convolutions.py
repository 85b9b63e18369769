"""Convolutions by a library, and their gradients, which are convolutions of an unusual layout.

A gradient with respect to the image is a convolution with the filter reversed; one with respect to the filter has the
image's channels for a batch, and the result's places for taps. A library makes both from arrays that lie as in the
convolution itself: which of the three a body is shows in where its elements lie. What lies in no such way is written
to memory first where each of its elements is multiplied often enough.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from smelt.backends.contraction import Product, only_moves
from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.builder import Builder, Value
from smelt.ir.forms import WindowForm
from smelt.ir.index import Coordinates, Index, linearize, variables
from smelt.ir.op import Ints
from smelt.ir.settings import settings
from smelt.passes.kernels.analysis import collect_reads, operand_reads
from smelt.passes.kernels.contraction_places import inverse_place, substitute

from ...devices import library_limits
from ...kernel import GpuModule
from ...library import Convolution, Tensor
from ..schedule import ScheduledKernel, ScratchPlan
from .beside import Epilogue, Lay, Step, Way, steps_of

#: Spatial axes that libraries know.
FEWEST_AXES, MOST_AXES = 2, 3
#: Bytes of memory that a library may use for a convolution.
WORKSPACE_BYTES = 1 << 28

#: Variables, outermost first, whose positions follow one after the other along an axis: names and extents.
_Axis = Sequence[tuple[str, int]]


def build_convolution(module: GpuModule, product: Product, scratch: ScratchPlan) -> list[ScheduledKernel] | None:
    """The steps that run a body by the library's convolution; None where the library is not asked, or cannot."""
    library, gpu, op = module.library, module.gpu, product.op
    form = product.rules.window_form(*(v.aval for v in op.operands), **op.attrs)
    if library is None or form is None or not 0 < len(form.strides) <= MOST_AXES:
        return None
    if product.size < max(gpu.convolution_work, 1):
        return None
    _, reuse = library_limits(gpu, product.dtype)
    for copies, target in itertools.product(_copies(product, form, reuse), _targets(product)):
        copied = {copy.value: copy.aval for copy in copies}
        laid = {copy.value: copy.lay for copy in copies if copy.lay is not None}
        way = Way(Epilogue(target), target, Index(0), copied, laid=laid)
        if way.rest(product) and product.depth.extent < reuse:
            continue
        for work, values in _Windows(product, form, way).convolutions():
            if _pays(work, bool(copied)) and library.takes(work):
                extra = library.workspace(work)
                buffers = [(v, copied.get(v, v.aval)) for v in values]
                step = Step(replace(work, workspace=extra), buffers, ("image", "filter", "result"), extra)
                return steps_of(module, product, way, step, scratch)
    return None


def _pays(work: Convolution, is_copied: bool) -> bool:
    """Whether a library is quick: not at groups of one channel, of which little is multiplied twice, nor at the
    gradient in a filter as a convolution whose filter is larger than its image or result."""
    each, groups = work.filter.shape[1], work.image.shape[1] // work.filter.shape[1]
    if groups > 1 and min(each, work.filter.shape[0] // groups) == 1:
        return False
    taps, *places = (math.prod(x.shape[2:]) for x in (work.filter, work.image, work.result))
    return not is_copied or work.out == "filter" or taps <= min(places)


@dataclass(frozen=True)
class _Copy:
    """A value that is written to memory before: as which array, and in which order of its elements."""

    value: Value
    aval: Aval
    lay: Lay | None = None


def _copies(product: Product, form: WindowForm, reuse: int) -> Iterator[tuple[_Copy, ...]]:
    """The values that may be written to memory before, those first that are closest to where operands come from.

    That is what must be, and then values on the way to the operands, these themselves, and at last the image with its
    padding, as the gradient in the filter takes it, and the filter as that in the image takes it.
    """
    image, filter = product.op.operands
    choices = [_stops(image), _stops(filter)]
    seen, low = _seen(product, form), form.low
    high = tuple(n - before - extent for n, before, extent in zip(seen, low, image.shape[1:-1]))
    if min(*low, *high) >= 0:
        aval = image.aval.with_shape((image.shape[-1] // form.groups, *seen, image.shape[0] * form.groups))
        choices[0].append(_Copy(image, aval, lambda b, x: _padded(b, x, low, high, form.groups)))
    aval = _exchanged_aval(filter.aval, form.groups)
    choices[1].append(_Copy(filter, aval, lambda b, w: _exchanged(b, w, form.groups)))
    every = [(i + j, [x for x in (a, b) if x]) for (i, a), (j, b) in itertools.product(*map(enumerate, choices))]
    for _, found in sorted(every, key=lambda pair: pair[0]):
        if all(product.size >= reuse * copy.aval.size for copy in found):
            yield tuple(found)


def _stops(v: Value) -> list[_Copy | None]:
    """The values on the way to an operand, the first one first; None for one that is in memory."""
    found: list[_Copy | None] = []
    while v.owner is not None:
        found.insert(0, _Copy(v, v.aval))
        if not only_moves(v.owner):
            return found
        v = v.owner.operands[0]
    return [None, *found]


def _seen(product: Product, form: WindowForm) -> tuple[int, ...]:
    """The extents of the image with its padding, as far as windows reach."""
    spatial = zip(product.result.shape[1:-1], form.strides, product.op.operands[1].shape[1:-1], form.dilation)
    return tuple((n - 1) * stride + (taps - 1) * d + 1 for n, stride, taps, d in spatial)


def _padded(b: Builder, x: Value, low: Ints, high: Ints, groups: int) -> Value:
    """The image of a gradient in the filter with its padding; its channels, a batch there, are the channels again."""
    zeros, axes = (0,) * x.ndim, tuple(range(1, x.ndim - 1))
    x = b.pad(x, b.full((), 0, x.dtype), low=(0, *low, 0), high=(0, *high, 0), interior=zeros)
    parts = b.reshape_to(x, (*x.shape[:-1], groups, x.shape[-1] // groups))
    turned = b.transpose(parts, permutation=(x.ndim, *axes, x.ndim - 1, 0))
    return b.reshape_to(turned, (*turned.shape[:-2], groups * turned.shape[-1]))


def _exchanged(b: Builder, w: Value, groups: int) -> Value:
    """The filter of a convolution's gradient in the image: reversed, and its channels exchanged group by group."""
    spatial = tuple(range(1, w.ndim - 1))
    shape = groups, w.shape[0] // groups, *w.shape[1:]
    order = 0, w.ndim, *(axis + 1 for axis in spatial), 1
    turned = b.transpose(b.reshape_to(b.reverse(w, axes=spatial), shape), permutation=order)
    return b.reshape_to(turned, _exchanged_aval(w.aval, groups).shape)


def _exchanged_aval(w: Aval, groups: int) -> Aval:
    return w.with_shape((w.shape[-1] * groups, *w.shape[1:-1], w.shape[0] // groups))


def _targets(product: Product) -> list[Value]:
    """The values that may be written: the contraction's result, and what has just its elements, the last of it first.

    All else must follow from one of them.
    """
    found = [product.result]
    while found[0] not in product.body.returns:
        readers = [op for op in product.body.ops if found[0] in op.operands]
        if len(readers) != 1 or not only_moves(readers[0]) or readers[0].results[0].aval.size != found[0].aval.size:
            break
        found.insert(0, readers[0].results[0])
    return found


@dataclass(frozen=True)
class _Lying:
    """Where elements are: of which value, and at which offset."""

    value: Value
    offset: Index


class _Windows:
    """A body as a convolution of arrays that lie somewhere.

    Along the spatial axes i, k and p run over the image, the filter and the result; g over the groups of channels, c
    and o over a group's and those of its result; n over the batch.
    """

    def __init__(self, product: Product, form: WindowForm, way: Way):
        self.product, self.form, self.way = product, form, way
        x, w = product.op.operands
        axes = range(1, x.ndim - 1)
        groups = form.groups
        self.n, self.g = [("n", x.shape[0])], [("g", groups)]
        self.c, self.o = [("c", w.shape[-1])], [("o", w.shape[0] // groups)]
        self.i, self.k, self.p = (
            [[(f"{name}{a}", v.shape[a])] for a in axes] for name, v in (("i", x), ("k", w), ("p", product.result))
        )

    def convolutions(self) -> Iterator[tuple[Convolution, list[Value]]]:
        """What a library may make of it: the step, and the values of its image, filter and result."""
        form, inputs, outputs = self.form, [*self.g, *self.c], [*self.g, *self.o]
        is_dense, is_close = (all(n == 1 for n in steps) for steps in (form.spread, form.strides))
        if is_dense:
            yield from self._found(
                "result", self._image((self.n, inputs, *self.i)), self._filter((outputs, self.c, *self.k)),
                self._result((self.n, outputs, *self.p)), form.strides, form.low, form.dilation,
            )  # fmt: skip
        if is_close:
            reach = [(extent - 1) * d for ((_, extent),), d in zip(self.k, form.dilation)]
            low = tuple(r - before for r, before in zip(reach, form.low))
            yield from self._found(
                "image", self._result((self.n, outputs, *self.p)), self._filter((inputs, self.o, *self.k), True),
                self._image((self.n, inputs, *self.i)), form.spread, low, form.dilation,
            )  # fmt: skip
        if is_dense:
            channels, is_padded = [*self.g, *self.n], self.product.op.operands[0] in self.way.laid
            image = self._padded_image(channels) if is_padded else self._image((self.c, channels, *self.i))
            low = (0,) * len(form.low) if is_padded else form.low
            yield from self._found(
                "filter", image, self._result((outputs, self.n, *self.p)), self._filter((self.c, outputs, *self.k)),
                form.dilation, low, form.strides,
            )  # fmt: skip

    # Where elements are

    def _place(self, batch: _Axis, spatial: Sequence[_Axis], channels: _Axis) -> Coordinates:
        return tuple(map(_position, (batch, *spatial, channels)))

    def _image(self, axes: Sequence[_Axis]) -> _Tensor | None:
        place = self._place(self.n, self.i, [*self.g, *self.c])
        return _tensor(self._lies(self.product.op.operands[0], place), axes)

    def _padded_image(self, channels: _Axis) -> _Tensor | None:
        """The image as `_padded` gives it."""
        x = self.product.op.operands[0]
        spatial = [[(f"i{axis}", extent)] for axis, extent in enumerate(_seen(self.product, self.form), 1)]
        place = self._place(self.c, spatial, channels)
        return _tensor(_Lying(x, linearize(place, self.way.copied[x].shape)), (self.c, channels, *spatial))

    def _filter(self, axes: Sequence[_Axis], is_reversed: bool = False) -> _Tensor | None:
        image, w = self.product.op.operands
        if w in self.way.laid and w != image:
            place = self._place([*self.g, *self.c], self.k, self.o)
            return _tensor(_Lying(w, linearize(place, self.way.copied[w].shape)), axes) if is_reversed else None
        output, *taps, channel = self._place([*self.g, *self.o], self.k, self.c)
        if is_reversed:
            taps = [extent - 1 - tap for ((_, extent),), tap in zip(self.k, taps)]
        return _tensor(self._lies(w, (output, *taps, channel)), axes)

    def _result(self, axes: Sequence[_Axis]) -> _Tensor | None:
        place = self._place(self.n, self.p, [*self.g, *self.o])
        target = self.way.target
        loops, result = variables(target.shape), self.product.result
        [seen] = collect_reads(self.product.body.ops, [(target, loops)])[result]
        found = inverse_place(seen, result.shape, loops)
        if found is None:
            return None
        at = {f"c{axis}": i for axis, i in enumerate(place)}
        return _tensor(_Lying(target, linearize([substitute(i, at) for i in found], target.shape)), axes)

    def _lies(self, v: Value, at: Coordinates) -> _Lying | None:
        while v.owner is not None and v not in self.way.copied:
            [(v, at)] = operand_reads(v.owner, at)
        return None if v in self.way.laid else _Lying(v, linearize(at, v.shape))

    # The step

    def _found(
        self, out: str, image: _Tensor | None, filter: _Tensor | None, result: _Tensor | None, strides: Ints, low: Ints,
        dilation: Ints,
    ) -> Iterator[tuple[Convolution, list[Value]]]:  # fmt: skip
        if image is None or filter is None or result is None:
            return
        fitted = _fitted(image, filter, result, strides, low, dilation, out != "image")
        if fitted is None:
            return
        image, low, high = fitted
        missing = max(0, FEWEST_AXES - len(strides))
        ones, zeros = (1,) * missing, (0,) * missing
        tensors = [x.at(i, missing) for i, x in enumerate((image, filter, result))]
        tf32 = settings.tf32 and self.product.dtype is dtypes.float32
        yield (
            Convolution(
                tensors[0], tensors[1], tensors[2], out, ones + strides, zeros + low, zeros + high, ones + dilation,
                tf32, WORKSPACE_BYTES,
            ),
            [image.value, filter.value, result.value],
        )  # fmt: skip


def _position(axis: _Axis) -> Index:
    """Where along an axis its variables are."""
    total = Index(0)
    for name, extent in axis:
        total = total * extent + Index.variable(name, extent)
    return total


@dataclass(frozen=True)
class _Tensor:
    """A `Tensor` of a value."""

    value: Value
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def at(self, buffer: int, missing: int) -> Tensor:
        """It in a buffer, with so many spatial axes of one element more."""
        shape = (*self.shape[:2], *(1,) * missing, *self.shape[2:])
        strides = (*self.strides[:2], *(self.shape[2] * self.strides[2],) * missing, *self.strides[2:])
        return Tensor(buffer, self.value.dtype.name, self.offset, shape, strides)

    def cut(self, axis: int, first: int, extent: int) -> _Tensor:
        """Only `extent` elements along an axis, from the `first` on."""
        shape = (*self.shape[:axis], extent, *self.shape[axis + 1 :])
        return replace(self, shape=shape, offset=self.offset + first * self.strides[axis])


def _tensor(lying: _Lying | None, axes: Sequence[_Axis]) -> _Tensor | None:
    """An array of these axes; None where it has no strides, or its channels, the second of them, are no neighbours."""
    if lying is None:
        return None
    offset = lying.offset
    if any(atom.kind != "var" or n < 0 for atom, n in offset.terms):
        return None
    steps: Mapping[str, int] = {atom.args[0]: n for atom, n in offset.terms}
    batch, channels, *spatial = axes
    found, size = [], 1
    for axis in (channels, *reversed(spatial), batch):
        variables = [(name, extent) for name, extent in axis if extent > 1]
        stride = steps[variables[-1][0]] if variables and variables[-1][0] in steps else size
        apart = stride
        for name, extent in reversed(variables):
            if steps.get(name) != apart:
                return None
            apart *= extent
        found.append((math.prod(extent for _, extent in axis), stride))
        size = stride * found[-1][0]
    (many, apart), *inner, outermost = found
    if apart != 1:
        return None
    shape, strides = zip(outermost, (many, apart), *reversed(inner))
    return _Tensor(lying.value, offset.const, shape, strides)


def _fitted(
    image: _Tensor, filter: _Tensor, result: _Tensor, strides: Ints, low: Ints, dilation: Ints, may_cut: bool
) -> tuple[_Tensor, tuple[int, ...], tuple[int, ...]] | None:
    """The part of the image that is read, and the padding on both sides of its axes; None where that has no form.

    The padding behind is that before it, where the result has so many elements.
    """
    before, behind = [], []
    for axis, (stride, first, d) in enumerate(zip(strides, low, dilation), 2):
        if first < 0:
            if not may_cut or image.shape[axis] + first <= 0:
                return None
            image, first = image.cut(axis, -first, image.shape[axis] + first), 0
        reach = (filter.shape[axis] - 1) * d + 1
        least = (result.shape[axis] - 1) * stride + reach - image.shape[axis] - first
        most = least + stride - 1
        if most < 0:
            if not may_cut:
                return None
            image, least, most = image.cut(axis, 0, image.shape[axis] + most), least - most, 0
        before.append(first)
        behind.append(first if least <= first <= most else max(least, 0))
    return image, tuple(before), tuple(behind)
