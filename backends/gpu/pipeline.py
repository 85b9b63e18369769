"""The passes of programs for a GPU."""

from __future__ import annotations

from collections.abc import Sequence

from ..pipelines import sequence, simplified, with_options
from .devices import ATTENTION_FEATURES, GRADIENT_FEATURES, METAL


def gpu_pipeline(
    lacking: Sequence[str] = ("f64", "complex128"),
    languages: Sequence[str] = ("msl",),
    library: str | None = None,
    half_gradients: bool | None = None,
    pads_products: bool = False,
    without: str | None = None,
    joins_chains: bool = False,
) -> str:
    """What makes a module ready for `compile_module`. What libraries compute, and ops of no kind, have no kernels.

    Args:
        lacking: dtypes that the GPU does not compute in.
        languages: those of kernels that users write.
        library: the name of the one whose ops stay on the device (see `smelt.passes.kernels.place`).
        half_gradients: whether attention's gradient is a few kernels for 16 bits only.
        pads_products: whether products of 16 bits get rows that a library reads quickly.
        without: patterns that `canonicalize` leaves out.
        joins_chains: whether a library may make attention's gradient.
    """
    return sequence(
        simplified(without=without),
        "select",
        "pad-products" if pads_products else "",
        with_options("recompute-attention", half=half_gradients, features=GRADIENT_FEATURES),
        "split-sums",
        "dce",
        with_options("place", dtypes=tuple(lacking), kinds=("library", "opaque"), kernels=tuple(languages),
                     library=library),
        with_options("loops", max_buffers=METAL.max_buffers),
        with_options("fuse", contractions=True, max_buffers=METAL.max_buffers, shared_rows=True, flops_per_byte=4,
                     attention=ATTENTION_FEATURES, chains=True),
        "join-chains" if joins_chains else "",
        "plan-buffers",
    )  # fmt: skip
