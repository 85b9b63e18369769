"""Kernels for all sizes on NVIDIA GPUs: those of Metal's text, and products by cuBLASLt."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence

import numpy as np

from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.dtypes import DType
from smelt.ir.settings import settings
from smelt.ir.strided_layout import StridedLayout

from ..buffer import Buffer
from ..executable import Executable
from ..gpu.executable import GpuExecutable
from ..gpu.launches import ALIGNMENT
from ..gpu.library import Matrix, MatrixProduct
from ..gpu.program import DeviceSegment
from ..gpu.strided import Kernels
from ..strided import PlannedLaunch, StridedKernels
from . import installed
from .executable import compile_ahead
from .memory import MEMORY, part_of
from .sequences import LaunchSequence, LibraryProduct, lines_of


class _CudaKernels(Kernels):
    def product(
        self, dtype: DType, result: DType, extents: tuple[int, int, int, int],
        operands: Sequence[tuple[Aval, StridedLayout]],
    ) -> Executable | None:  # fmt: skip
        _, rows, columns, _ = extents
        places = [*(place for _, place in operands), StridedLayout(0, (rows * columns, columns, 1))]
        lhs, rhs, out = [
            Matrix(i, kind.name, p.offset, (p.strides[0], p.strides[1], p.strides[2]))
            for i, (kind, p) in enumerate(zip((dtype, dtype, result), places))
        ]
        step = MatrixProduct(*extents, lhs, rhs, out, tf32=settings.tf32 and dtype.name == "float32")
        if not (settings.libraries and installed.LIBRARY.takes(step)):
            return None
        return LibraryProduct(step, [aval for aval, _ in operands], result)

    def sent(self, tables: Sequence[np.ndarray]) -> list[Buffer]:
        """By one copy, as parts of one block: a block for each takes longer than to plan."""
        buffers = super().sent(tables)
        starts = [0, *itertools.accumulate(-(-b.aval.nbytes // ALIGNMENT) * ALIGNMENT for b in buffers)]
        whole = np.zeros(starts[-1], np.uint8)
        for start, x in zip(starts, tables):
            whole[start : start + x.nbytes] = x.view(np.uint8)
        block = MEMORY.adopt(Buffer.of(whole, Aval(whole.shape, dtypes.uint8))).home
        return [Buffer.at(b.aval, part_of(block, start, b.aval.nbytes)) for start, b in zip(starts, buffers)]

    def prepare(self, kernels: Sequence[Executable]) -> None:
        missing = [k for k in kernels if isinstance(k, GpuExecutable) and not k.is_prepared]
        if len(missing) > 1:
            compile_ahead([s for k in missing for s in k.program.segments if isinstance(s, DeviceSegment)])
        super().prepare(kernels)

    def joins(self, program: Executable) -> bool:
        return lines_of(program) is not None

    def sequence(
        self, launches: Sequence[PlannedLaunch], nbytes: Sequence[int], given: Collection[int]
    ) -> LaunchSequence:  # fmt: skip
        return LaunchSequence(launches, nbytes, given)


KERNELS: StridedKernels = _CudaKernels("complex128")
