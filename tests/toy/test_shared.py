"""Tests of the frontend and of the runtime, once more on a device with memory of its own."""

from __future__ import annotations

import importlib
import types
from collections.abc import Callable

import pytest

pytestmark = pytest.mark.usefixtures("small_heap")

MODULES = (
    "frontend.test_interchange", "frontend.test_views", "runtime.test_laziness", "runtime.test_compile",
    "runtime.test_compile_state", "runtime.test_memory", "frontend.test_io",
)  # fmt: skip
#: What is about another device or memory, or long.
LEFT_OUT = (
    "test_streams_choose_the_device", "test_a_million", "test_a_long_chain", "test_a_chain_of", "test_threads_evaluate",
    "test_small_arrays_count", "test_the_limit_holds",
)  # fmt: skip
#: What has so many variants that every fourth diagonal of them is enough here.
MANY = ("test_view", "test_a_write_reaches_nothing_else")


def _thinned(test: Callable[..., None]) -> Callable[..., None]:
    """A test of its own: a mark on the other's function would count there, too."""
    found = types.FunctionType(test.__code__, test.__globals__, test.__name__, test.__defaults__)
    found.__dict__.update(test.__dict__)
    return pytest.mark.thinned(4)(found)


for _module in MODULES:
    _found = importlib.import_module(f"tests.{_module}")
    for _name, _value in list(vars(_found).items()):
        if _name.startswith(LEFT_OUT):
            continue
        if _name.startswith("test_"):
            globals()[f"test_{_module.rpartition('.')[2]}__{_name}"] = _thinned(_value) if _name in MANY else _value
        elif hasattr(_value, "_pytestfixturefunction") or type(_value).__name__ == "FixtureFunctionDefinition":
            globals()[_name] = _value
