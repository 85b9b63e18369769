"""Every op of the registry in every dtype that Metal has, on an NVIDIA GPU."""

from __future__ import annotations

import pytest

from smelt.runtime import compile_module
from smelt.runtime.device import device_named
from tests.backends.metal.test_registry import assert_values, batches
from tests.ops.cases import module_of_batch

from .needs import needs_gpu


@needs_gpu
@pytest.mark.parametrize("batch", list(batches()), ids=lambda b: b[0].op.name)
def test_gpu_agrees_with_reference(batch):
    assert_values(compile_module(module_of_batch(batch), device_named("cuda")), batch)
