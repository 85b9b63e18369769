"""How arrays are handed to kernels without sizes (see `smelt.ir.strided`): as addresses, and a table of numbers.

The table has the extents of `LOOPS` loops over rows and the number of columns; then for each operand and result its
strides in these loops, and how many elements it has. All count elements. In a row an operand is contiguous, or the same
for all columns.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from smelt.ir.aval import Aval
from smelt.ir.dtypes import DType
from smelt.ir.strided import CONTIGUOUS, REPEATED, ROW
from smelt.ir.strided_layout import StridedLayout

if TYPE_CHECKING:
    from .buffer import Buffer
    from .executable import Executable


class Laid(NamedTuple):
    """An array of a kernel on a device: where it lies, and whether it is a full value."""

    place: StridedLayout
    full: bool


class DeviceBinding(NamedTuple):
    """What a kernel on a device is handed: `layout` as of `Binding`, and the table."""

    layout: str
    table: np.ndarray


class PlannedLaunch(NamedTuple):
    """A step of what a device runs in one go.

    Attributes:
        program: what runs.
        table: of a kernel without sizes, on the device; None: it is a program.
        read, written: numbers of memories, which are whole blocks of the device's.
    """

    program: Executable
    table: Buffer | None
    read: tuple[int, ...]
    written: tuple[int, ...]


class LaunchSequence(Protocol):
    """Steps that a device runs in one go.

    Attributes:
        given: numbers of memories that `run` needs; it has the others for itself.
    """

    given: tuple[int, ...]

    def run(self, memories: Sequence[Buffer]) -> None:
        """Run all steps, without waiting. Raises OutOfMemoryError."""
        ...


class StridedKernels(Protocol):
    """How kernels without sizes run where arrays lie in a device's own memory."""

    def takes(self, dtype: DType) -> bool:
        """Whether kernels compute with such numbers."""
        ...

    def bind(
        self, space: tuple[int, ...], axes: int, operands: Sequence[Laid], results: Sequence[Laid],
        gathered: Sequence[tuple[int, int]] = (),
    ) -> DeviceBinding | None:  # fmt: skip
        """How a kernel runs on arrays; None where it cannot.

        Args:
            space: the shape of full values, without an extent of 0. axes: how many of its last ones are reduced.
            operands, results: those that are no full values have the shape of `space` but for the reduced axes, which
                are missing or of extent 1.
            gathered: of the last operands, which are indices: how large one may be, and how far it moves the first
                operand, in elements.
        """
        ...

    def scatter(
        self, mode: str, count: int, window: tuple[int, ...], strides: tuple[int, ...],
        places: Sequence[tuple[int, int]],
    ) -> DeviceBinding | None:  # fmt: skip
        """How a kernel for all sizes writes windows into a result, one after the other; None where it cannot.

        Args:
            mode: of the scatter. count: of windows. window, strides: their shape, which has an extent of 1 along the
                axes that are indexed, and how far its neighbours lie apart in the result.
            places: for each index the largest one, and how far neighbours along its axis lie apart in the result.
        """
        ...

    def product(
        self, dtype: DType, result: DType, extents: tuple[int, int, int, int],
        operands: Sequence[tuple[Aval, StridedLayout]],
    ) -> Executable | None:  # fmt: skip
        """What makes products of matrices without a compile, by a library; None where there is no such thing.

        Args:
            dtype, result: of the operands, and of the product.
            extents: of batch, rows, columns and depth.
            operands: the type of each one's memory, and where in it the matrices lie: along batch, rows and depth, and
                along batch, depth and columns. The result lies in order.
        """
        ...

    def sent(self, tables: Sequence[np.ndarray]) -> list[Buffer]:
        """Tables as buffers of the device."""
        ...

    def prepare(self, kernels: Sequence[Executable]) -> None:
        """Make kernels ready to run, several at once where that is quicker."""
        ...

    def launch(self, kernel: Executable, arguments: Sequence[Buffer], results: Sequence[Buffer]) -> None:
        """Run it on the table and the operands, and on memory of the results: whole blocks of the device's."""
        ...

    def joins(self, program: Executable) -> bool:
        """Whether a program that is ready to run may be a step of a `sequence`."""
        ...

    def sequence(
        self, launches: Sequence[PlannedLaunch], nbytes: Sequence[int], given: Collection[int]
    ) -> LaunchSequence:  # fmt: skip
        """Programs that join, one after the other.

        Args:
            launches: in order. nbytes: of each memory. given: numbers of memories that somebody else has, too.
        """
        ...


#: Loops over rows.
LOOPS = 3
#: Numbers at the head of the table, and for each array.
HEAD, EACH = LOOPS + 1, LOOPS + 1
#: Lines of memory, and parts of long rows, begin at multiples of so many elements.
LINE = 64


def table_size(arrays: int) -> int:
    """The length of the table of a kernel; `arrays`: the number of its operands and results."""
    return HEAD + EACH * arrays


class Binding(NamedTuple):
    """What a kernel is handed for operands of certain shapes and strides.

    Attributes:
        layout: how they lie in a row, a letter each: kernels are made for one layout.
        table: the numbers. columns: of a row. size: full elements.
        copied: operands that have to be made contiguous before.
    """

    layout: str
    table: np.ndarray
    columns: int
    size: int
    copied: tuple[int, ...]


def bind(
    space: tuple[int, ...], axes: int, operands: Sequence[np.ndarray], full: Sequence[bool], results: Sequence[bool]
) -> Binding:
    """How a kernel runs on operands.

    Args:
        space: the shape of full values, without an extent of 0. axes: how many of its last ones are reduced.
        full: which operands are full values; the others have the shape of `space` but for the reduced axes, which are
            missing or of extent 1.
        results: which results are full values.
    """
    copied = [i for i, x in enumerate(operands) if not _is_plain(x)]
    while True:
        strides = [_strides(x, space, axes, f, i in copied) for i, (x, f) in enumerate(zip(operands, full))]
        strides += [_contiguous(space if f else space[: len(space) - axes], len(space)) for f in results]
        loops = collapsed(space, axes, strides)
        wrong = [
            i for i, f in enumerate(full)
            if f and i not in copied and loops is not None and loops[-1][0] > 1 and loops[-1][1][i] not in (0, 1)
        ]  # fmt: skip
        if loops is not None and not wrong and len(loops) <= LOOPS + 1:
            break
        # Contiguous operands always fit, beside others that are as contiguous or repeat for all rows.
        copied = sorted({*copied, *wrong}) if wrong else list(range(len(operands)))
    rows, (columns, inner) = loops[:-1], loops[-1]
    rows = [(1, (0,) * len(strides))] * (LOOPS - len(rows)) + rows
    numbers = [*(extent for extent, _ in rows), columns]
    for i, steps in enumerate(strides):
        # Where elements lie apart they reach further than there are elements: checked accesses go by this.
        reach = 1 + sum((extent - 1) * step for extent, step in zip(space, steps))
        numbers += [by[i] for _, by in rows] + [reach]
    letters = [ROW if not f else CONTIGUOUS if columns == 1 or inner[i] else REPEATED for i, f in enumerate(full)]
    return Binding("".join(letters), np.array(numbers, np.int64), columns, math.prod(space), tuple(copied))


def _is_plain(x: np.ndarray) -> bool:
    """Whether elements can be read where they lie."""
    return x.flags.aligned and all(s >= 0 and not s % x.itemsize for s in x.strides)


def _contiguous(shape: Sequence[int], ndim: int) -> tuple[int, ...]:
    """Strides of a contiguous array, with zeros for axes that it does not have."""
    found, step = [], 1
    for extent in reversed(shape):
        found.append(step)
        step *= extent
    return (*reversed(found), *[0] * (ndim - len(shape)))


def _strides(x: np.ndarray, space: tuple[int, ...], axes: int, full: bool, is_copied: bool) -> tuple[int, ...]:
    kept = len(space) - axes
    if is_copied:
        return _contiguous(space if full else space[:kept], len(space))
    found = [s // x.itemsize for s in x.strides]
    return tuple(found) if full else (*found[:kept], *[0] * axes)


#: An extent, and how far neighbours are apart in each array.
Loop = tuple[int, tuple[int, ...]]


def merged(loops: Iterable[Loop]) -> list[Loop]:
    """Nested loops as few: those of one step are none, and two that reach what one of both extents does are one.

    >>> merged([(2, (12, 0)), (3, (4, 0)), (4, (1, 5))])
    [(6, (4, 0)), (4, (1, 5))]
    """
    found: list[Loop] = []
    for extent, steps in loops:
        if extent == 1:
            continue
        if found and all(outer == extent * step for outer, step in zip(found[-1][1], steps)):
            found[-1] = (found[-1][0] * extent, steps)
        else:
            found.append((extent, steps))
    return found


def collapsed(
    space: Sequence[int], axes: int, strides: Sequence[tuple[int, ...]]
) -> list[Loop] | None:  # fmt: skip
    """The axes of arrays as few loops: over rows, and last the loop over columns.

    Args:
        space: extents. axes: how many of the last ones are columns; 0: the last loop is.
        strides: of each array.

    Returns:
        Extents, each with the arrays' strides; None: columns take more than a loop.
    """
    kept = len(space) - axes
    loops = list(zip(space, zip(*strides)))
    rows, columns = merged(loops[:kept]), merged(loops[kept:])
    if not axes:  # the last loop is over columns
        columns = [rows.pop()] if rows else []
    if len(columns) > 1:
        return None
    return rows + (columns or [(1, (0,) * len(strides))])
