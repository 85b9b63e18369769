"""What Metal asks of its user: the fake refuses each breach, and the runtime commits none."""

from __future__ import annotations

import ast
import gc
import json
import sys
import warnings
from typing import Any

import numpy as np
import pytest

from smelt.backends.metal.apple import AppleDevice, MetalCompileError
from smelt.backends.metal.apple import device as apple_device
from smelt.backends.metal.apple.ownership import MAKERS, description

from .extract_signatures import SIGNATURES, SOURCES, to_selector
from .fake_metal import FakeMetal, FakeObjc, MetalRuleError
from .stub_kernels import N, Stub, block_of, floats, manifest_of, run

pytestmark = pytest.mark.usefixtures("small_heap")


@pytest.fixture
def metal() -> FakeMetal:
    return FakeMetal(Stub)


@pytest.fixture
def device(metal: FakeMetal) -> AppleDevice:
    return AppleDevice(metal)


# Ownership


def new_methods() -> set[bytes]:
    """Selectors of the instance methods called ``new…`` in the runtime."""
    return {
        to_selector(node.func.attr).encode()
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        and node.func.attr.startswith("new") and node.func.attr != "new"
    }  # fmt: skip


def test_every_method_that_hands_over_an_object_is_registered() -> None:
    assert new_methods() == set(MAKERS)


def test_registered_descriptions_are_pyobjcs_but_for_the_ownership() -> None:
    known = json.loads(SIGNATURES.read_text(encoding="utf-8"))["methods"]
    for selector, types in MAKERS.items():
        facts, said = known[selector.decode()], description(types)
        assert said["retval"] == {"type": facts["returns"].encode(), "already_retained": True}
        arguments = said.get("arguments", {})
        assert [arguments[i]["type"].decode() for i in sorted(arguments)] == facts["types"]
        assert [i - 2 for i, a in arguments.items() if a.get("type_modifier") == b"o"] == facts["out"]


def fakes(monkeypatch: pytest.MonkeyPatch, heeds: bool) -> FakeMetal:
    metal = FakeMetal(Stub, objc=FakeObjc(heeds))
    monkeypatch.setitem(sys.modules, "objc", metal.objc)
    return metal


def test_memory_goes_back_to_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    metal = fakes(monkeypatch, heeds=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        device = AppleDevice(metal)
    assert metal.allocated == 0
    for _ in range(3):
        assert run(device, manifest_of("copy a0 r0"), 1.0)[0][0] == 1
    device.clear_cache()
    gc.collect()
    assert metal.allocated == 0 and not metal.kept


def test_a_pyobjc_that_frees_nothing_is_told_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    metal = fakes(monkeypatch, heeds=False)
    with pytest.warns(RuntimeWarning, match="memory of Fake M1 is not freed.*pyobjc-core"):
        AppleDevice(metal)
    assert metal.allocated > 0


def test_a_device_without_memory_is_no_pyobjc_that_leaks() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        AppleDevice(FakeMetal(Stub, memory=1024))


# How texts are compiled


@pytest.mark.parametrize("setter", ["setMathMode_", "setMathFloatingPointFunctions_", "setLanguageVersion_"])
def test_the_fake_wants_safe_and_precise(
    device: AppleDevice, metal: FakeMetal, monkeypatch: pytest.MonkeyPatch, setter: str
) -> None:
    device.load("copy", manifest_of("copy a0 r0"))
    monkeypatch.setattr(metal.MTLCompileOptions, setter, lambda self, value: None)
    with pytest.raises(MetalRuleError, match="texts are compiled"):
        device.load("copy double", manifest_of("copy a0 r0"))


def test_before_macos_15_fast_math_is_one_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    class Options:
        calls: list[tuple[str, Any]] = []

        @staticmethod
        def new() -> Options:
            return Options()

        def setLanguageVersion_(self, version: int) -> None:
            self.calls.append(("version", version))

        def setFastMathEnabled_(self, on: bool) -> None:
            self.calls.append(("fast", on))

    metal = FakeMetal(Stub)
    metal.MTLCompileOptions = Options  # type: ignore[assignment,misc]
    device = AppleDevice(metal)
    monkeypatch.setattr(device._device, "newLibraryWithSource_options_error_", lambda *a: (Stub("copy"), None))
    apple_device._Library(device, "copy")
    assert ("fast", False) in Options.calls


THREADGROUP = """
kernel void shared(device float* x [[buffer(0)]], uint i [[thread_position_in_threadgroup]]) {
  threadgroup float4 rows[%d][16];
  rows[0][i] = x[i];
  x[i] = rows[0][i].x;
}
"""


def test_threadgroup_memory() -> None:
    simulator = pytest.importorskip("smelt.backends.metal.simulator", exc_type=ImportError)
    device = AppleDevice(FakeMetal(simulator.Library))
    x = block_of(device, 3.0)
    device.dispatch(THREADGROUP % 128, "shared", {0: x}, (16, 1, 1), (16, 1, 1))
    with pytest.raises(MetalCompileError, match=r"no pipeline of .* 'shared'.*Threadgroup memory size \(33024\)"):
        device.dispatch(THREADGROUP % 129, "shared", {0: x}, (16, 1, 1), (16, 1, 1))


# Memory that the GPU uses


def encoder(device: AppleDevice, *lines: tuple[str, Any, Any]) -> Any:
    """A command buffer with launches of stub kernels of one input and one output, with its encoder open."""
    buffer = device._queue.commandBuffer()
    enc = buffer.computeCommandEncoderWithDispatchType_(0)
    for entry, x, y in lines:
        enc.setComputePipelineState_(device._library("copy double").pipeline(entry))
        enc.setBuffer_offset_atIndex_(x.handle, 0, 0)
        enc.setBuffer_offset_atIndex_(y.handle, 0, 1)
        size = device._metal.MTLSizeMake
        enc.dispatchThreadgroups_threadsPerThreadgroup_(size(1, 1, 1), size(N, 1, 1))
    return buffer, enc


def committed(device: AppleDevice, *lines: tuple[str, Any, Any]) -> Any:
    buffer, enc = encoder(device, *lines)
    enc.endEncoding()
    buffer.commit()
    return buffer


def test_results_are_there_after_waiting(device: AppleDevice) -> None:
    x, y = block_of(device, 3.0), block_of(device, 5.0)
    buffer = committed(device, ("double", x, y))
    assert np.isnan(floats(y)).all()  # not the old values, which a test might take for right
    with pytest.raises(MetalRuleError, match="has not run"):
        buffer.GPUEndTime()
    buffer.waitUntilCompleted()
    assert (floats(y) == 6).all()


def test_memory_in_use_is_not_written(device: AppleDevice) -> None:
    x, y = block_of(device, 3.0), block_of(device)
    buffer = committed(device, ("copy", x, y))
    floats(y)[3] = 7
    with pytest.raises(MetalRuleError, match="the CPU wrote memory that the GPU may be writing"):
        buffer.waitUntilCompleted()


def test_command_buffers_run_in_the_order_of_their_commits(device: AppleDevice) -> None:
    x, y, z = block_of(device, 3.0), block_of(device), block_of(device)
    first = committed(device, ("double", x, y))
    second = committed(device, ("double", y, z))
    third = committed(device, ("copy", x, y))
    second.waitUntilCompleted()
    assert (floats(z) == 12).all() and np.isnan(floats(y)).all()
    assert first.status() == second.status() == 4 != third.status()
    third.waitUntilCompleted()
    first.waitUntilCompleted()
    assert (floats(y) == 3).all()


def test_encoders_are_ended(device: AppleDevice, metal: FakeMetal) -> None:
    buffer, enc = encoder(device)
    with pytest.raises(MetalRuleError, match="commit while an encoder is open"):
        buffer.commit()
    with pytest.raises(MetalRuleError, match="two encoders at once"):
        buffer.computeCommandEncoderWithDispatchType_(0)
    del buffer, enc
    gc.collect()
    assert metal.breaches == ["an encoder died without endEncoding"]
    with pytest.raises(MetalRuleError, match="waiting for what was not committed"):
        device._queue.commandBuffer().waitUntilCompleted()


@pytest.mark.parametrize(("kind", "offset", "fits"), [
    ("device half*", 2, True), ("device half*", 1, False), ("device float*", 2, False), ("device float*", 4, True),
    ("device float4*", 8, False), ("device float4*", 16, True), ("device packed_float4*", 4, True),
    ("device uchar*", 3, True), ("constant uchar*", 3, False), ("constant float*", 4, True),
])  # fmt: skip
def test_offsets_are_multiples_of_the_element(kind: str, offset: int, fits: bool) -> None:
    simulator = pytest.importorskip("smelt.backends.metal.simulator", exc_type=ImportError)
    device = AppleDevice(FakeMetal(simulator.Library))
    text = f"kernel void f({kind} x [[buffer(0)]], device float* y [[buffer(1)]]) {{ y[0] = 1.0f; }}"
    x, y = block_of(device), block_of(device)

    def encode(enc: Any) -> None:
        enc.setComputePipelineState_(device._library(text).pipeline("f"))
        enc.setBuffer_offset_atIndex_(x.handle, offset, 0)
        enc.setBuffer_offset_atIndex_(y.handle, 0, 1)
        size = device._metal.MTLSizeMake
        enc.dispatchThreadgroups_threadsPerThreadgroup_(size(1, 1, 1), size(1, 1, 1))

    if fits:
        device.submit(encode, ["f"], serial=True)
    else:
        with pytest.raises(MetalRuleError, match="not aligned"):
            device.submit(encode, ["f"], serial=True)
