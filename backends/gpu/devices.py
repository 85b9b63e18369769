"""What schedules need to know of a GPU: one row each.

The figures for Apple GPUs are Apple's (Metal Feature Set Tables; 32 lanes a simdgroup and 32 KB of
threadgroup memory on every family); the tile and register choices are ours.
"""

from __future__ import annotations

from dataclasses import dataclass

from smelt.ir.dtypes import DType

from ..device import Target

#: What Metal lets a kernel have, on every GPU, and so what every text keeps to.
METAL = Target("metal", max_buffers=31, max_threads=1024, threadgroup_bytes=32 * 1024)

#: The most features of a query, and of a value, for which there are kernels of attention.
ATTENTION_FEATURES = 256
#: The same for kernels of its gradient, which have more of a row in registers.
GRADIENT_FEATURES = 128


@dataclass(frozen=True)
class Gpu(Target):
    """A kind of GPU.

    Attributes:
        threads: in a threadgroup, where nothing else decides.
        groups: threadgroups that a grid-stride loop is spread over, at most.
        row_threads: in a threadgroup that holds a row, at most.
        row_values: values of a row that one thread keeps in registers, at most.
        own_tiles: of a row that one threadgroup goes over by itself where it needs several loops.
        tile: rows and columns of a matrix product that one threadgroup makes, and the depth of a step.
        simdgroups: down and across such a tile.
        half_tile, half_simdgroups: the same for operands of 16 bits.
        tiles: so many of them at least, if need be smaller ones.
        simd: lanes of a simdgroup.
        fragment: where a lane's elements of an 8 × 8 matrix begin: what each bit of its number adds to row and column;
            None where that is not specified.
        copies_itself: whether vectors that go from a buffer to threadgroup memory need no registers on their way, and
            nobody waits for them before the next barrier.
        float64: whether it computes in that. wide_atomics: whether it adds integers of 64 bits atomically.
        library_work: multiplications from which on a product is its library's work, where it has one;
            half_library_work: of 16 bits; convolution_work: of a convolution; attention_work: of attention.
        library_reuse: multiplications for each element that kernels must copy before, or read and write behind it, from
            which on that still pays; half_library_reuse: of 16 bits.
    """

    max_buffers: int = METAL.max_buffers
    max_threads: int = METAL.max_threads
    threadgroup_bytes: int = METAL.threadgroup_bytes
    measured_bytes: int = 1 << 28
    threads: int = 256
    groups: int = 4096
    row_threads: int = 1024
    row_values: int = 32
    own_tiles: int = 16
    tile: tuple[int, int, int] = (64, 64, 16)
    simdgroups: tuple[int, int] = (2, 2)
    half_tile: tuple[int, int, int] = (64, 64, 16)
    half_simdgroups: tuple[int, int] = (2, 2)
    tiles: int = 64
    simd: int = 32
    fragment: tuple[tuple[int, int], ...] | None = None
    copies_itself: bool = False
    float64: bool = False
    wide_atomics: bool = False
    library_work: int = 1 << 22
    half_library_work: int = 1 << 26
    convolution_work: int = 1 << 27
    attention_work: int = 1 << 30
    library_reuse: int = 64
    half_library_reuse: int = 256


#: What decides whether a library is called.
LIBRARY_LIMITS = (
    "library_work", "half_library_work", "convolution_work", "attention_work", "library_reuse", "half_library_reuse",
)  # fmt: skip

GPUS = {
    gpu.name: gpu
    for gpu in (
        Gpu("apple7"),  # A14, M1
        Gpu("apple8"),  # A15, A16, M2
        Gpu("apple9"),  # A17, M3, M4
        Gpu("simulator", groups=64, own_tiles=4, measured_bytes=0),
        Gpu(
            "nvidia", float64=True, wide_atomics=True, groups=65536, half_tile=(128, 128, 32), tiles=128,
            copies_itself=True, fragment=((0, 2), (0, 4), (1, 0), (2, 0), (4, 0)),  # of mma.m16n8k16's sums (PTX ISA)
        ),
    )
}


def library_limits(gpu: Gpu, dtype: DType) -> tuple[int, int]:
    """A GPU's `library_work` and `library_reuse` for products of a dtype."""
    if dtype.size == 2:
        return gpu.half_library_work, gpu.half_library_reuse
    return gpu.library_work, gpu.library_reuse
