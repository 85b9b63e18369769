"""Several processes that compute together, under the names of `mlx.core.distributed`; see `smelt launch`.

Each process runs the same program. A collective is an op: lazy, part of compiled programs, with derivatives and
vectorization. All processes of a group have to evaluate the same collectives in the same order.

>>> import smelt
>>> group = smelt.distributed.init()  # nothing is launched: this process alone
>>> group.rank(), group.size()
(0, 1)
>>> smelt.distributed.all_sum(smelt.array([1.0, 2.0]))
array([1, 2], dtype=float32)
"""

from __future__ import annotations

from smelt.ir.listing import listed as _listed

from .collectives import all_gather, all_max, all_min, all_sum, recv, recv_like, send, sum_scatter
from .groups import Group, init, is_available

__all__ = [
    "Group", "all_gather", "all_max", "all_min", "all_sum", "init", "is_available", "recv", "recv_like", "send",
    "sum_scatter",
]  # fmt: skip

__dir__ = _listed(globals())
