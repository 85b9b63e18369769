"""The node tests of the ONNX standard, which its package makes: ``python -m tests.exchange.onnx_nodes [--compiled]``.

Prints what is not right, then how many cases are right, refused for a dtype or an op, and wrong. Right is what lies
within the tolerance of the case, 1e-7 of the largest element, or, of 16 bits, two units of the last place.
"""

from __future__ import annotations

import argparse
import collections
import functools
import importlib
import keyword
import sys
import warnings
from typing import Any

import numpy as np

import smelt

#: Ops whose results are random: dtype and shape are compared.
RANDOM = ("Bernoulli", "RandomUniformLike", "RandomNormalLike", "Multinomial", "Dropout")


def cases() -> list[Any]:
    """All of them: the package makes those of a module once, when it is imported."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        found: list[Any] = collect_testcases(None)
    return found


@functools.cache
def cases_of(op: str) -> list[Any]:
    """Those of the module for an op, without the seconds that all others take."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case import node

        module = f"{node.__name__}.{op.lower()}{'_' * (op.lower() in keyword.kwlist)}"
        before = 0 if module in sys.modules else len(node._NodeTestCases)  # which has them all, if somebody was before
        importlib.import_module(module)
    return [case for case in node._NodeTestCases[before:] if any(n.op_type == op for n in case.model.graph.node)]


def _plain(value: Any) -> Any:
    from onnx import TensorProto, numpy_helper

    if isinstance(value, TensorProto):
        return numpy_helper.to_array(value)
    return value


def _given(value: Any) -> Any:
    value = _plain(value)
    if isinstance(value, list):
        return [_given(v) for v in value]
    if value is None or isinstance(value, smelt.array):
        return value
    array = np.asarray(value)
    return smelt.array(array, _dtype(array))


def _dtype(array: np.ndarray) -> Any:
    return getattr(smelt, {"bool": "bool_"}.get(array.dtype.name, array.dtype.name))


def _differs(found: Any, wanted: Any, case: Any, random: bool) -> str:
    wanted = _plain(wanted)
    if isinstance(wanted, list):
        if not isinstance(found, list) or len(found) != len(wanted):
            return f"a list of {len(wanted)} is {found!r:.80}"
        return next(filter(None, (_differs(f, w, case, random) for f, w in zip(found, wanted))), "")
    wanted = np.asarray(wanted)
    if not isinstance(found, smelt.array):
        return f"an array is {found!r:.80}"
    if found.shape != wanted.shape or found.dtype.numpy != wanted.dtype:
        return f"{wanted.dtype}{list(wanted.shape)} is {found.aval}"
    if random:
        return ""
    kind = np.complex128 if wanted.dtype.kind == "c" else np.float64
    a, b = np.array(found).astype(kind), wanted.astype(kind)
    finite = np.abs(b[np.isfinite(b)])
    relative = max(case.rtol, {"bfloat16": 2**-6, "float16": 2**-9}.get(wanted.dtype.name, 0))
    apart = ~np.isclose(a, b, relative, case.atol + 1e-7 * (finite.max() if finite.size else 0), equal_nan=True)
    if not apart.any():
        return ""
    return f"{apart.sum()} of {apart.size} elements differ: {a[apart][:3]} for {b[apart][:3]}"


def outcome(case: Any, compiled: bool = False) -> tuple[str, str]:
    """What became of a case: right, refused-dtype, refused-op, wrong or failed; and why."""
    random = any(node.op_type in RANDOM for node in case.model.graph.node)
    random = random and not case.name.startswith(("test_dropout_default", "test_training_dropout_zero"))
    try:
        f = smelt.from_onnx(case.model.SerializeToString(), name=case.name)
        for inputs, outputs in case.data_sets:
            found = _compiled(f, [*map(_given, inputs)]) if compiled else f(*map(_given, inputs))
            results = list(found) if isinstance(found, tuple) else [found]
            for result, wanted in zip(results, outputs):
                difference = _differs(result, wanted, case, random)
                if difference:
                    return "wrong", difference
    except smelt.SmeltError as error:
        text = str(error)
        if "no dtype" in text or "which is no integer" in text:
            return "refused-dtype", text
        return ("refused-op" if "no translation" in text else "failed"), text
    except (AttributeError, TypeError, ValueError) as error:
        return ("refused-dtype", "") if _unknown_dtype(case) else ("failed", f"{type(error).__name__}: {error}")
    return "right", ""


def _compiled(f: Any, inputs: list[Any]) -> Any:
    """The results of the compiled function. Inputs that may say shapes (integers, but the first) are its constants."""
    try:
        return smelt.compile(f)(*inputs)
    except smelt.SmeltError as error:
        if "of a traced array" not in str(error):
            raise

    def given(i: int, x: Any) -> bool:
        return isinstance(x, smelt.array) and (i == 0 or (x.dtype.is_inexact and x.size > 8)) and x.size > 1

    free = [i for i, x in enumerate(inputs) if given(i, x)]

    def call(*arrays: Any) -> Any:
        values = dict(zip(free, arrays))
        return f(*(values.get(i, x) for i, x in enumerate(inputs)))

    return smelt.compile(call)(*(inputs[i] for i in free))


def _unknown_dtype(case: Any) -> bool:
    """Whether something goes in that smelt has no dtype for."""
    for inputs, _ in case.data_sets:
        for value in inputs:
            if isinstance(_plain(value), np.ndarray) and not hasattr(smelt, _plain(value).dtype.name):
                return True
    return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-k", default="", help="cases whose name holds this")
    parser.add_argument("--compiled", action="store_true", help="compile each")
    options = parser.parse_args()
    counts: collections.Counter[str] = collections.Counter()
    for case in cases():
        if options.k in case.name:
            found, why = outcome(case, options.compiled)
            counts[found] += 1
            if found not in ("right", "refused-dtype"):
                print(f"{found:8} {case.name}: {why[:400]}")
    print(", ".join(f"{n} {found}" for found, n in counts.most_common()))


if __name__ == "__main__":
    main()
