"""Programs of the device ``cuda`` on disk: the next process runs no passes, and asks no library what it takes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.cpu import objects
from smelt.ir.settings import override
from smelt.runtime.background import compile_in_background
from smelt.runtime.device import device_named
from smelt.runtime.disk import disk

from .fake_blas import FakeBlas
from .fake_driver import FakeDriver
from .test_device import fake, gpu
from .test_products import blas, numbers

pytestmark = [
    pytest.mark.usefixtures("small_heap"),
    pytest.mark.skipif(not objects.supported(), reason="no objects are loaded on this machine"),
]
assert fake and gpu and blas  # fixtures

PROGRAMS: dict[str, Callable[..., Any]] = {
    "kernels and a library": lambda x, w: smelt.softmax(smelt.maximum(smelt.sin(x) @ w, 0), axis=-1),
    "the CPU between kernels": lambda x, w: smelt.sin(smelt.linalg.eigvalsh(w @ w.T)) + x,
    "a loop": lambda x, w: smelt.while_loop(lambda s: s.sum() < 1e3, lambda s: s * 1.5, smelt.abs(x @ w)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_comes_from_disk_is_the_same(blas: FakeBlas, fake: FakeDriver, name: str, tmp_path: Path) -> None:
    x, w = smelt.array(numbers(24, 24)), smelt.array(numbers(24, 24))
    found, launched = [], []
    with override(cache=True, cache_dir=tmp_path, tier="program"):
        for writes, hits in ((1, 0), (0, 1)):
            before = disk.writes, disk.hits
            fake.launches.clear()
            blas.products.clear()
            found.append(np.array(smelt.compile(lambda x, w: PROGRAMS[name](x, w))(x, w)))
            launched.append((len(fake.launches), len(blas.products)))
            assert (disk.writes - before[0], disk.hits - before[1]) == (writes, hits)
    assert launched[0] == launched[1] and all(launched[0])
    np.testing.assert_array_equal(*found)


@pytest.mark.usefixtures("fake")
def test_no_other_process_compiles() -> None:
    """It would hold memory of the GPU."""
    graph = smelt.make_ir(lambda x: x * 2)(smelt.array(numbers(3)))
    assert compile_in_background(graph, device_named("cuda")) is None
