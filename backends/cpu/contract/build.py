"""The `contract` schedule: which kernel a contraction gets."""

from __future__ import annotations

from collections.abc import Callable

from smelt.backends.contraction import Product, analyse
from smelt.ir.builder import Function

from ..kernel import KernelModule
from ..schedules import ScheduledKernel
from .channels import Channels, build_channels
from .dots import build_dots, runs_along_depth, suits_dots
from .elements import build_elements, is_by_channel
from .expressions import build_expressions, suits_expressions
from .lines import build_lines, suits_lines
from .order import in_memory_order
from .packed_lines import build_packed_lines, suits_packed_lines
from .panels import build_panels
from .runs import Runs, build_runs
from .tiles import Sides

#: Products with fewer multiplications than this are made element by element.
SMALL = 2048
#: Less depth than this is not worth a tile.
SHALLOW = 4


def build_contract(module: KernelModule, name: str, body: Function) -> ScheduledKernel:
    """The kernel of a body with one contraction: what computes its operands before it, elementwise ops behind it."""
    product = in_memory_order(analyse(body))
    channels = None if is_small(product) else Channels.of(product)
    if channels is None and (runs := _runs(product)) is not None:
        return build_runs(module, name, runs, lambda module, name, product: path(product)(module, name, product))
    return path(product)(module, name, product) if channels is None else build_channels(module, name, channels)


def _runs(product: Product) -> Runs | None:
    """How a product is made of runs of its batch; None where it is not. Kernels of blocks go through one member of the
    batch after the other, as is wanted for that."""
    runs = None if is_small(product) else Runs.of(product)
    if runs is None or any(path(p) is build_elements for p in (product, runs.by_parts().product, runs.tall())):
        return None
    return runs.by_parts()


def is_small(product: Product) -> bool:
    """Whether nothing is worth planning."""
    return product.size < SMALL or product.depth.extent < SHALLOW


def path(product: Product) -> Callable[[KernelModule, str, Product], ScheduledKernel]:
    """How a product is made: the builder of its kernel."""
    if product.dtype.kind == "c" or is_small(product):
        return build_elements
    if is_by_channel(product):
        return build_elements
    sides = Sides.of(product)
    if runs_along_depth(sides) and suits_expressions(sides):
        return build_expressions
    if suits_dots(sides):
        return build_dots
    if suits_lines(sides):
        return build_lines
    if suits_packed_lines(sides):
        return build_packed_lines
    # A single row reads each column once: no tile is worth filling.
    wide = sides.rows.extent > 1 or sides.columns_along_depth
    return build_panels if wide and 2 * sides.columns.extent >= sides.lanes else build_elements
