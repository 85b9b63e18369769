"""What schedules need to know of a GPU: one row each.

The figures for Apple GPUs are Apple's (Metal Feature Set Tables; 32 lanes a simdgroup and 32 KB of
threadgroup memory on every family); the tile and register choices are ours.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Gpu:
    """A kind of GPU.

    Attributes:
        threads: in a threadgroup, where nothing else decides.
        groups: threadgroups that a grid-stride loop is spread over, at most.
        row_threads: in a threadgroup that holds a row, at most.
        row_values: values of a row that one thread keeps in registers, at most.
        tile: rows and columns of a matrix product that one threadgroup makes, and the depth of a step.
        max_threads, simd, threadgroup_bytes: what the hardware allows.
    """

    name: str
    threads: int = 256
    groups: int = 4096
    row_threads: int = 1024
    row_values: int = 32
    tile: tuple[int, int, int] = (64, 64, 16)
    max_threads: int = 1024
    simd: int = 32
    threadgroup_bytes: int = 32768


GPUS = {
    gpu.name: gpu
    for gpu in (
        Gpu("apple7"),  # A14, M1
        Gpu("apple8"),  # A15, A16, M2
        Gpu("apple9"),  # A17, M3, M4
        Gpu("simulator", groups=64),
        Gpu("nvidia", groups=65536),
    )
}
