"""What a Mac's GPU has to show: `make test-metal`. Elsewhere one case of each runs against the fake, the rest is left
out and says so."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import smelt
from smelt.backends.metal import METAL
from smelt.backends.metal.apple import AppleDevice
from smelt.ir.settings import override
from smelt.runtime import compile_module
from smelt.runtime import device as devices

from ..backends.metal.fake_metal import FakeMetal
from ..backends.metal.programs import PROGRAMS
from ..backends.metal.test_registry import assert_values, batches, module_of_batch

ROOT = Path(__file__).resolve().parents[2]
HAS_GPU = "metal" in devices.devices
needs_gpu = pytest.mark.skipif(not HAS_GPU, reason="needs macOS and a GPU of Apple's")
#: Elsewhere one batch is enough: the simulator runs all of them in tests/backends/metal.
BATCHES = list(batches()) if HAS_GPU else list(batches())[:1]


@pytest.fixture(scope="module", autouse=True)
def metal() -> Iterator[devices.Device]:
    """The device; where there is none, the fake."""
    if HAS_GPU:
        yield METAL
        return
    simulator = pytest.importorskip("smelt.backends.metal.simulator", exc_type=ImportError)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AppleDevice, "_default", AppleDevice(FakeMetal(simulator.Library)))
        patch.setitem(devices.devices, "metal", METAL)
        yield METAL


@pytest.mark.parametrize("batch", BATCHES, ids=lambda b: b[0].op.name)
def test_registry(batch, metal: devices.Device) -> None:  # type: ignore[no-untyped-def]
    """Every op, dtype and shape of the registry."""
    assert_values(compile_module(module_of_batch(batch), metal), batch)


@pytest.mark.parametrize("name", PROGRAMS if HAS_GPU else ["softmax"])
def test_programs_compile(name: str) -> None:
    """The texts of the golden files, of all schedules, are taken by the compiler."""
    from ..backends.metal.harness import graph_of, program_of

    function, arguments = PROGRAMS[name]
    for segment in program_of(graph_of(function, *arguments), "apple8").segments:
        AppleDevice.default().load(segment.text, segment.manifest)  # type: ignore[union-attr]


def test_a_users_kernel_in_a_program(metal: devices.Device) -> None:
    """Launched between others, in loops, with constants beside its buffers, and threadgroups that are not full."""
    kernel = smelt.fast.metal_kernel(
        "affine", ["x", "scale"], ["y"], "uint i = thread_position_in_grid.x; y[i] = x[i] * scale + x_shape[0];"
    )

    def affine(x: smelt.array, scale: smelt.array) -> smelt.array:
        (y,) = kernel(
            inputs=[x, scale], grid=(x.size, 1, 1), threadgroup=(32, 1, 1), output_shapes=[x.shape],
            output_dtypes=[x.dtype], init_value=0,
        )  # fmt: skip
        return y

    def f(x: smelt.array) -> smelt.array:
        rows = smelt.vmap(affine)(smelt.sin(x), smelt.arange(3, dtype=smelt.float32))
        last, _ = smelt.scan(lambda carry, row: (affine(carry, row[0]), carry), rows[0], rows)
        return affine(smelt.exp(-last), 2.0) + 1

    x = smelt.array(np.linspace(-1, 1, 3 * 70, dtype=np.float32).reshape(3, 70))
    rows = np.sin(np.array(x)) * np.arange(3)[:, None] + 70
    last = rows[0]
    for row in rows:
        last = last * row[0] + 70
    with override(device="metal"):
        np.testing.assert_allclose(np.array(smelt.compile(f)(x)), np.exp(-last) * 2 + 71, rtol=1e-5)


@needs_gpu
def test_demo() -> None:
    environment = {**os.environ, "SMELT_DEVICE": "metal"}
    program = [sys.executable, str(ROOT / "examples" / "digits.py")]
    answer = subprocess.run(program, capture_output=True, text=True, env=environment)
    print(answer.stdout)
    assert answer.returncode == 0, answer.stderr


@needs_gpu
def test_the_default_device_is_the_gpu() -> None:
    assert os.environ.get("SMELT_DEVICE") or smelt.default_device() == METAL
