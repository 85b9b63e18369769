"""What ops are by a call of NumPy (`Op.host_call`) has the bits of their `reference` rule."""

from __future__ import annotations

import numpy as np
import pytest

from smelt.ir.dtypes import of
from smelt.ir.op import Op, registry

from .cases import Case, random_operands, reference
from .variants import every_case

CASES = [
    case
    for op in registry.values()
    if type(op).host_call is not Op.host_call and not op.mixed
    for case in every_case(op)
    if case.op.host_call(case.avals, case.results[0], **case.kwargs) is not None
]


def bits(x: np.ndarray) -> bytes:
    return np.ascontiguousarray(x).tobytes()


def operands_of(case: Case, special: bool) -> list[np.ndarray]:
    """Random, or with zeros of both signs, infinities and NaN among them."""
    rng = np.random.default_rng(5)
    operands = random_operands(case, rng)
    if special:
        for x in operands:
            if of(x.dtype).is_float and x.size and x.flags.writeable:
                with np.errstate(all="ignore"):
                    x.flat[::2] = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1e30], x.size)[::2].astype(x.dtype)
    return operands


@pytest.mark.parametrize("special", [False, True], ids=["random", "special"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_call_is_the_rule(case: Case, special: bool) -> None:
    operands, aval = operands_of(case, special), case.results[0]
    call = case.op.host_call(case.avals, aval, **case.kwargs)
    assert call is not None
    (want,) = map(np.asarray, reference(case, operands))
    views = [np.asfortranarray(np.stack([x, x], -1))[..., 0] if x.ndim else x for x in operands]
    for arrays in (operands, views):
        with np.errstate(all="ignore"):
            found = arrays[0] if call.function is None else np.asarray(call.function(*arrays, *call.extra))
        assert (found.shape, found.dtype) == (aval.shape, aval.dtype.numpy)
        if arrays is operands or case.op.kind in ("elementwise", "movement"):  # sums may be added in another order
            assert bits(found) == bits(want)


@pytest.mark.parametrize(
    "case", [c for c in CASES if c.op.host_call(c.avals, c.results[0], **c.kwargs).spreads], ids=str
)
def test_operands_may_be_shorter(case: Case) -> None:
    call = case.op.host_call(case.avals, case.results[0], **case.kwargs)
    assert call is not None and call.function is not None
    operands = operands_of(case, True)
    for short in range(len(operands)):
        if operands[short].ndim == 0 or len(operands) < 2:
            continue
        arrays = [x[:1] if i == short else x for i, x in enumerate(operands)]
        whole = [np.broadcast_to(x, operands[i].shape) for i, x in enumerate(arrays)]
        (want,) = map(np.asarray, reference(case, whole))
        with np.errstate(all="ignore"):
            found = np.asarray(call.function(*arrays))
        assert found.shape == want.shape and bits(found) == bits(want)


def test_many_ops_have_one() -> None:
    names = {case.op.name for case in CASES}
    assert {"add", "exp", "select", "reshape", "dot_general", "reduce_sum", "convert"} <= names
