"""PyTorch's own samples of its ops: ``python -m tests.exchange.torch_ops [op …]``, beside PyTorch's results.

PyTorch keeps arguments for each of its functions, for its own tests (the package ``expecttest`` loads them). Here some
of each are exported, run on arrays, and compared. Prints what is not right, and how many are right, refused, wrong.
"""

from __future__ import annotations

import argparse
import itertools
import logging
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

import smelt
from smelt.ir.errors import SmeltError

tree = torch.utils._pytree
#: What draws, whose numbers are others here, or whose results nobody has written to.
OTHER_NUMBERS = ("rand", "bernoulli", "normal", "multinomial", "dropout", "empty", "cauchy", "exponential", "geometric",
                 "uniform", "rrelu", "fractional_max_pool", "lowrank")  # fmt: skip


def outcomes(op: Any, samples: int) -> Iterator[tuple[str, str]]:
    """For some samples of an op what came of them, and why."""
    if not op.dtypes:
        return
    dtype = torch.float32 if torch.float32 in op.dtypes else min(op.dtypes, key=str)
    listed = list(itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=False), 60))
    for sample in listed[:: max(1, len(listed) // samples)][:samples]:
        arguments = (sample.input, *sample.args), sample.kwargs
        try:
            copies = tree.tree_map(lambda x: x.clone() if isinstance(x, torch.Tensor) else x, arguments)
            wanted = tree.tree_leaves(op(*copies[0], **copies[1]))
        except Exception:  # not on this machine
            continue
        yield outcome(op, arguments, wanted)


def outcome(op: Any, arguments: Any, wanted: list[Any]) -> tuple[str, str]:
    def of_tensors(*tensors: Any) -> Any:
        rest = iter(tensors)
        args, named = tree.tree_map(lambda x: next(rest) if isinstance(x, torch.Tensor) else x, arguments)
        return op(*args, **named)

    tensors = [x for x in tree.tree_leaves(arguments) if isinstance(x, torch.Tensor)]
    try:
        found = tree.tree_leaves(smelt.from_torch(of_tensors)(*tensors))
        if len(found) != len(wanted):
            return "wrong", f"{len(found)} results, of {len(wanted)}"
        drawn = any(word in op.name for word in OTHER_NUMBERS)
        reasons = [why for x, y in zip(found, wanted) if (why := difference(x, y, drawn))]
        return ("wrong", reasons[0]) if reasons else ("right", "")
    except SmeltError as error:
        why = str(error)
        return "no graph" if "torch.export fails" in why else "refused", why
    except Exception as error:
        return "failed", f"{type(error).__name__}: {error}"


def difference(x: Any, y: Any, drawn: bool) -> str:
    """How a result differs from PyTorch's; empty where it does not."""
    if not isinstance(y, torch.Tensor):
        return "" if x == y else f"{x}, not {y}"
    theirs = y.detach().resolve_conj().resolve_neg()
    theirs = (theirs.float() if theirs.dtype is torch.bfloat16 else theirs).numpy()
    ours = np.array(x.astype(smelt.float32) if x.dtype is smelt.bfloat16 else x)
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return f"{ours.dtype}{ours.shape}, not {theirs.dtype}{theirs.shape}"
    largest = np.abs(theirs[np.isfinite(theirs)]).max(initial=0) if theirs.dtype.kind in "fc" else 0
    if drawn or np.allclose(ours, theirs, rtol=1e-3, atol=1e-4 + 1e-5 * largest, equal_nan=True):
        return ""
    return f"{ours.reshape(-1)[:4]}, not {theirs.reshape(-1)[:4]}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.exchange.torch_ops", description=__doc__.splitlines()[0])
    parser.add_argument("ops", nargs="*", help="names of ops (default: all)")
    parser.add_argument("--samples", type=int, default=3, help="of each op (default: %(default)s)")
    parser.add_argument("--part", default="0/1", help="I/N: every N-th op, from the I-th on (default: %(default)s)")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    from torch.testing._internal.common_methods_invocations import op_db

    first, step = map(int, options.part.split("/"))
    total: Counter[str] = Counter()
    ops: Counter[str] = Counter()
    for op in [op for op in op_db if not options.ops or op.name in options.ops][first::step]:
        torch.manual_seed(0)
        found = list(outcomes(op, options.samples))
        kinds = Counter(kind for kind, _ in found)
        total.update(kinds)
        if found:
            ops["right" if set(kinds) == {"right"} else "in part" if "right" in kinds else next(iter(kinds))] += 1
        for kind, why in dict(pair for pair in found if pair[0] != "right").items():
            print(f"{op.name} {op.variant_test_name}: {kind}: {' '.join(why.split())[:240]}", flush=True)
    print(f"ops: {dict(ops)}; samples: {dict(total)}")


if __name__ == "__main__":
    sys.exit(main())
