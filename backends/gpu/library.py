"""Matrix products that a library of the device makes, between the kernels of a text."""

from __future__ import annotations

import json
from typing import Any, Protocol

from smelt.ir import mlir
from smelt.ir.dialect import context

from .manifest import MatrixProduct, product_from, product_to


class ProductLibrary(Protocol):
    """What makes matrix products where a program will run."""

    def takes(self, product: MatrixProduct) -> bool:
        """Whether it can make a product, with all that follows in it. Buffers lie at multiples of 16 bytes."""
        ...


def mark_product(function: Any, product: MatrixProduct) -> None:
    """Let a ``gpu.func`` without a body stand for a product."""
    function.attributes["smelt.product"] = mlir.ir.StringAttr.get(json.dumps(product_to(product)), context())


def read_product(function: Any) -> MatrixProduct | None:
    """The product that a ``gpu.func`` stands for; None for a kernel."""
    attributes = function.attributes
    if "smelt.product" not in attributes:
        return None
    return product_from(json.loads(mlir.ir.StringAttr(attributes["smelt.product"]).value))
