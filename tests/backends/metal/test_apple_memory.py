"""Memory of the Apple runtime: shared blocks, their pool, limits."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from smelt.backends.metal.apple import AppleDevice, Block
from smelt.backends.metal.apple.memory import size_class
from smelt.ir.settings import override

from .fake_metal import FakeMetal
from .stub_kernels import Stub, block_of, floats, manifest_of, run

pytestmark = pytest.mark.usefixtures("small_heap")


@pytest.fixture
def metal() -> FakeMetal:
    return FakeMetal(Stub)


@pytest.fixture
def device(metal: FakeMetal) -> AppleDevice:
    return AppleDevice(metal)


def test_blocks_are_views_of_shared_memory(device: AppleDevice) -> None:
    block = device.allocate(12)
    assert block.array.shape == (12,) and block.array.dtype == np.uint8
    block.array[:] = range(12)
    assert bytes(block.handle.contents().as_buffer(12)) == bytes(range(12))
    assert device.allocate(0).array.size == 0


def test_memory_returns_when_nothing_sees_it(device: AppleDevice, metal: FakeMetal) -> None:
    block = device.allocate(1000)
    view = block.array.view(np.float32).reshape(10, 25)[2:]
    del block
    assert device.active_bytes == 1024 and device.cached_bytes == 0
    view[:] = 1
    del view
    assert device.active_bytes == 0 and device.cached_bytes == 1024
    made = metal.counts["newBufferWithLength_options_"]
    device.allocate(900)
    assert metal.counts["newBufferWithLength_options_"] == made
    assert device.peak_bytes == 1024
    device.clear_cache()
    gc.collect()
    assert device.cached_bytes == 0 and metal.allocated == 0


def test_the_block_of_an_array(device: AppleDevice) -> None:
    block = block_of(device, 1.0)
    array = floats(block).reshape(4, 8)
    found = Block.of(array)
    assert found is not None and found.handle is block.handle and found.nbytes == array.nbytes
    del block, array
    assert device.active_bytes  # the one found keeps it
    assert Block.of(floats(found).reshape(4, 8)[1:]) is None
    assert Block.of(floats(found).reshape(4, 8).T) is None
    assert Block.of(np.zeros(3)) is None


def test_running_out_of_memory_leaves_everything_usable(device: AppleDevice, metal: FakeMetal) -> None:
    assert device.set_memory_limit(4096) == metal.memory
    kept = device.allocate(2048)
    with pytest.raises(MemoryError, match=r"asked for 4,000 bytes on the GPU; 2,048 .* limit.* is 4,096"):
        device.allocate(4000)
    del kept
    device.allocate(4000)  # drops the cached block first
    assert device.set_memory_limit(0) == 4096
    with pytest.raises(MemoryError, match="one buffer may have 536,870,912"):
        device.allocate(600 << 20)
    assert device.active_bytes == 0
    assert run(device, manifest_of("copy a0 r0"), 1.0)[0][0] == 1


def test_the_cache_is_bounded(device: AppleDevice, metal: FakeMetal) -> None:
    with override(pool_bytes=1024):
        blocks = [device.allocate(512) for _ in range(4)]
        del blocks
    gc.collect()
    assert device.cached_bytes == 1024 and metal.allocated == 1024


def test_size_classes() -> None:
    sizes = [size_class(n) for n in range(0, 100_000, 37)]
    assert all(s >= n and s % 256 == 0 for s, n in zip(sizes, range(0, 100_000, 37)))
    assert all(s <= 1.125 * n + 256 for s, n in zip(sizes, range(0, 100_000, 37)))
    assert size_class(1 << 20) == 1 << 20
