"""The `contract` schedule: matrix products, and what is computed from their elements, in one kernel."""

from __future__ import annotations

from collections.abc import Callable

from smelt.backends.contraction import Product, analyse
from smelt.ir import dtypes
from smelt.ir.builder import Function

from ...kernel import GpuModule
from ..schedule import ScheduledKernel, ScratchPlan
from .convolutions import build_convolution
from .depthwise import build_depthwise, suits_depthwise
from .elements import BLOCK, build_blocks, build_elements
from .library import build_library
from .matrices import MATRIX, build_matrices
from .taps import build_taps, suits_taps
from .vectors import build_vectors, suits_vectors
from .words import build_words, suits_words

#: Dtypes that simdgroup matrices hold, or that are widened to one of them.
MATRIX_DTYPES = (dtypes.float32, dtypes.float16, dtypes.bfloat16)
#: Products with fewer multiplications are made by single threads.
SMALL = 4096


def build_contract(module: GpuModule, body: Function, scratch: ScratchPlan) -> list[ScheduledKernel]:
    """The kernels of a body with one contraction, movement in front of it and elementwise ops behind it.

    One kernel, or two where a deep product has few results: then threadgroups share the contracted axes. Where there is
    a library for it, its product or convolution, and a kernel if something must follow.
    """
    product = analyse(body)
    for build in (build_library, build_convolution, path(product)):
        found = build(module, product, scratch)
        if found is not None:
            return found
    raise AssertionError(f"@{body.name} has no kernels")


def path(product: Product) -> Callable[[GpuModule, Product, ScratchPlan], list[ScheduledKernel]]:
    """How a product is made: the builder of its kernels."""
    rows, columns, depth = product.rows.extent, product.columns.extent, product.depth.extent
    fewest = min(rows, columns)
    if product.size and suits_depthwise(product):
        return build_depthwise
    if product.size and suits_taps(product):
        return build_taps
    if product.size == 0 or depth < MATRIX or not product.rules.multiplies:
        return build_elements
    if depth >= 4 * MATRIX and suits_words(product):
        return build_words
    if depth >= 4 * MATRIX and suits_vectors(product):
        return build_vectors
    if rows * columns * depth < SMALL:
        return build_elements
    if product.dtype in MATRIX_DTYPES and fewest > 1:
        return build_matrices
    if fewest >= BLOCK and depth >= BLOCK:
        return build_blocks
    return build_elements
