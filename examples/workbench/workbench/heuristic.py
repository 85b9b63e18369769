"""A fusion heuristic: short kernels. ``fuse{heuristic=workbench-short}`` asks it."""

from __future__ import annotations

from smelt.passes.kernels.groups import Group
from smelt.passes.kernels.heuristics import Candidate, Reason, fewest_bytes, register_heuristic

#: Ops of a kernel that compute, at most.
MOST = 3


@register_heuristic("workbench-short")
def may_join(kernel: Group, candidate: Candidate) -> Reason | None:
    """As smelt's own, as long as the kernel computes little."""
    ops = sum(op.op.flops > 0 for op in (*kernel.ops, *candidate.ops))
    if ops > MOST:
        return Reason("workbench-short", "the kernel would compute {ops} ops, more than {most}", ops=ops, most=MOST)
    return fewest_bytes(kernel, candidate)
