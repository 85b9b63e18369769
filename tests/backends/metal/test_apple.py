"""The Apple runtime against the fake: real method names, Metal's rules, and what the runtime promises."""

from __future__ import annotations

import ast
import inspect
import json
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.gpu.manifest import ArrayInfo, BufferSlot, KernelBuffer, KernelInfo, Launch, Manifest
from smelt.backends.metal.apple import AppleDevice, Block, MetalCompileError, MetalRunError
from smelt.backends.metal.apple.order import barriers, element_bytes
from smelt.ir.errors import DeviceError
from smelt.ir.settings import override

from . import fake_metal
from .extract_signatures import SIGNATURES, SOURCES, to_selector
from .fake_metal import FakeMetal, FakeObjc, MetalRuleError
from .stub_kernels import ACCESS, N, Stub, block_of, floats, manifest_of, run, text_of


@pytest.fixture
def metal() -> FakeMetal:
    return FakeMetal(Stub)


@pytest.fixture
def device(metal: FakeMetal) -> AppleDevice:
    return AppleDevice(metal)


# What the fake is held against


def fake_methods() -> Iterator[tuple[str, str, int]]:
    """Class, method, number of arguments of everything public in the fake."""
    classes = [c for _, c in inspect.getmembers(fake_metal, inspect.isclass) if c.__module__ == fake_metal.__name__]
    for owner in classes:
        if owner in (FakeMetal, fake_metal.FakeObjc, MetalRuleError, fake_metal.MTLSize, fake_metal.Function):
            continue
        for name, member in vars(owner).items():
            if inspect.isfunction(member) and not name.startswith("_"):
                yield owner.__name__, name, len(inspect.signature(member).parameters) - 1


#: Methods of classes whose arguments need no description, so PyObjC registers none: it reads their types
#: from the class at run time. `new` and NSError's are Foundation's.
PLAIN = {
    "setLanguageVersion:", "setMathMode:", "setMathFloatingPointFunctions:", "domain", "code", "localizedDescription",
}  # fmt: skip
#: Conveniences of the fake itself, and of PyObjC's core.
NOT_METAL = {
    ("Encoder", "execute"), ("CommandBuffer", "execute"), ("CommandBuffer", "written"), ("Queue", "take"),
    ("Queue", "run_until"), ("Contents", "as_buffer"),
}  # fmt: skip


def signatures() -> dict[str, Any]:
    return json.loads(SIGNATURES.read_text(encoding="utf-8"))


def test_the_fake_has_pyobjcs_methods() -> None:
    known = signatures()["methods"]
    for owner, name, arguments in fake_methods():
        if (owner, name) in NOT_METAL:
            continue
        selector = to_selector(name)
        assert selector.count(":") == arguments, f"{owner}.{name} takes {arguments} arguments"
        if selector in PLAIN:
            continue
        assert selector in known, f"PyObjC describes no {selector}"
        assert known[selector]["arguments"] == arguments
        # What is returned through a pointer comes back in a tuple; the fake asks for None in its place.
        assert ("error" in inspect.signature(getattr(getattr(fake_metal, owner), name)).parameters) == bool(
            known[selector]["out"]
        )


def test_the_fake_has_the_frameworks_constants() -> None:
    known = signatures()
    named = {name: value for name, value in vars(FakeMetal).items() if name.startswith("MTL")}
    constants = {name: value for name, value in named.items() if isinstance(value, int)}
    assert constants and constants == {name: known["constants"].get(name) for name in constants}
    assert list(fake_metal.MTLSize._fields) == known["structures"]["MTLSize"]
    assert known["functions"]["MTLSizeMake"] == "{MTLSize=QQQ}QQQ"


def test_the_runtime_calls_what_exists() -> None:
    """Every name with PyObjC's trailing underscore, and every name of the module, is one of the fake's."""
    fake = {name for _, name, _ in fake_methods()}
    before_macos_15 = {"setFastMathEnabled_"}
    assert SOURCES
    for path in SOURCES:
        if path.name == "capture.py":  # records for Xcode: nothing that a fake could show
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Attribute) or node.attr.startswith("_"):
                continue
            if node.attr.endswith("_"):
                assert node.attr in fake | before_macos_15, f"{path.name}:{node.lineno}: {node.attr}"
                assert to_selector(node.attr) in signatures()["methods"] or to_selector(node.attr) in PLAIN
            elif node.attr.startswith("MTL"):
                assert hasattr(FakeMetal(Stub), node.attr), f"{path.name}:{node.lineno}: {node.attr}"


# Running


def test_a_program_is_one_command_buffer_and_one_encoder(device: AppleDevice, metal: FakeMetal) -> None:
    manifest = manifest_of("double a0 t0", "increment t0", "copy t0 r0", arena=1)
    [result] = run(device, manifest, 3.0)
    assert (result == 7).all()
    for name in ("commandBuffer", "computeCommandEncoderWithDispatchType_", "endEncoding", "commit"):
        assert metal.counts[name] == 1, name
    assert metal.counts["memoryBarrierWithScope_"] == 2
    assert metal.counts["dispatchThreadgroups_threadsPerThreadgroup_"] == 3


def test_independent_launches_share_the_time_between_two_barriers(device: AppleDevice, metal: FakeMetal) -> None:
    manifest = manifest_of("double a0 t0", "double a1 t1", "add t0 t1 r0", n_arguments=2, arena=2)
    assert barriers(manifest) == (False, False, True)
    [result] = run(device, manifest, 1.0, 2.0)
    assert (result == 6).all()
    assert metal.counts["memoryBarrierWithScope_"] == 1


@pytest.mark.parametrize(
    "lines, expected",
    [
        (("copy a0 t0", "copy t0 r0"), (False, True)),  # read after write
        (("copy a0 t0", "double a0 t0"), (False, True)),  # write after write
        (("copy t0 r0", "copy a0 t0"), (False, True)),  # write after read
        (("copy a0 r0", "copy a0 t0"), (False, False)),  # both read
        (("copy a0 t0", "copy a0 t1", "copy t1 t0"), (False, False, True)),
        (("copy a0 t0", "copy t0 t1", "copy a0 t0", "copy a0 t2"), (False, True, True, False)),
    ],
)  # fmt: skip
def test_barriers_stand_where_memory_overlaps(lines: tuple[str, ...], expected: tuple[bool, ...]) -> None:
    assert barriers(manifest_of(*lines, arena=3)) == expected


def test_parts_of_arena_arrays_overlap() -> None:
    manifest = manifest_of("copy a0 t0", "copy a0 t1", arena=2)
    overlapping = Launch("copy", (BufferSlot("argument", 0), BufferSlot("arena", offset=64)))
    assert barriers(Manifest(**{**vars(manifest), "steps": (manifest.launches[0], overlapping)})) == (False, True)


def test_random_programs_agree_with_running_in_order(device: AppleDevice) -> None:
    rng = np.random.default_rng(0)
    for _ in range(30):
        lines = []
        for _ in range(8):
            entry = str(rng.choice(list(ACCESS)))
            places = [f"t{rng.integers(4)}" if a != "read" or rng.random() < 0.8 else "a0" for a in ACCESS[entry]]
            lines.append(" ".join([entry, *places]))
        lines = [f"copy a0 t{i}" for i in range(4)] + lines + ["copy t0 r0", "add t1 t2 r1"]
        manifest = manifest_of(*lines, n_results=2, arena=4)
        memory = {f"t{i}": np.zeros(N, np.float32) for i in range(4)} | {"a0": np.full(N, 2, np.float32)}
        memory |= {f"r{i}": np.zeros(N, np.float32) for i in range(2)}
        for entry, *places in map(str.split, lines):
            Stub.KERNELS[entry](*(memory[p] for p in places))
        with np.errstate(over="ignore"):
            first, second = run(device, manifest, 2.0)
        np.testing.assert_array_equal(first, memory["r0"])
        np.testing.assert_array_equal(second, memory["r1"])


def test_a_result_in_an_arguments_block_runs_in_order(device: AppleDevice, metal: FakeMetal) -> None:
    """Seen as separate buffers the launches need no barrier; as one block, their order matters."""
    manifest = manifest_of("double a0 r1", "copy a1 r0", n_arguments=2, n_results=2)
    program = device.load(text_of(manifest), manifest)
    assert program.barriers == (False, False)
    shared, other, out = block_of(device, 1.0), block_of(device, 5.0), block_of(device)
    program.run([shared, other], [shared, out])
    assert (floats(out) == 2).all() and (floats(shared) == 5).all()
    assert metal.counts["memoryBarrierWithScope_"] == 0


def test_what_stays_bound_is_not_bound_again(device: AppleDevice, metal: FakeMetal) -> None:
    run(device, manifest_of("increment r0", "increment r0", "increment r0", n_arguments=0))
    assert metal.counts["setComputePipelineState_"] == 1
    assert metal.counts["setBuffer_offset_atIndex_"] == 1
    assert metal.counts["memoryBarrierWithScope_"] == 2


def test_empty_launches_and_empty_programs(device: AppleDevice, metal: FakeMetal) -> None:
    manifest = manifest_of("copy a0 r0")
    [kernel] = manifest.kernels
    empty = KernelInfo(**{**vars(kernel), "threadgroups": (0, 1, 1)})
    run(device, Manifest(**{**vars(manifest), "kernels": (empty,)}), 1.0)
    assert metal.counts["commandBuffer"] == 0


def test_gpu_time(device: AppleDevice) -> None:
    manifest = manifest_of("copy a0 r0")
    program = device.load("copy", manifest)
    program.run([block_of(device)], [block_of(device)])
    assert program.last_gpu_seconds == 0.5


def test_one_kernel_over_a_ragged_grid(device: AppleDevice, metal: FakeMetal) -> None:
    x, y = block_of(device, 4.0), block_of(device)
    device.dispatch("add", "add", {0: x, 1: np.ones(N, np.float32).tobytes(), 2: y}, (N - 3, 1, 1), (8, 1, 1))
    assert (floats(y) == 5).all()
    assert ("dispatchThreads_threadsPerThreadgroup_", (N - 3, 1, 1), (8, 1, 1)) in metal.events


# Caches and errors


def test_a_text_is_compiled_once(device: AppleDevice, metal: FakeMetal) -> None:
    manifest = manifest_of("copy a0 r0")
    for _ in range(3):
        device.load("copy double", manifest)
    assert metal.counts["newLibraryWithSource_options_error_"] == 1
    assert metal.counts["newComputePipelineStateWithFunction_error_"] == 1
    assert len(metal.options) == 1
    with override(cache_size=1):
        device.load("copy", manifest)
        device.load("copy double", manifest)
    assert metal.counts["newLibraryWithSource_options_error_"] == 3


def test_compile_errors_carry_the_log(device: AppleDevice) -> None:
    with pytest.raises(MetalCompileError, match=r"no such kernel: nonsense \(MTLLibraryErrorDomain 3\)"):
        device.load("nonsense", manifest_of("copy a0 r0"))
    with pytest.raises(MetalCompileError, match="the text has no kernel 'copy'"):
        device.load("double", manifest_of("copy a0 r0"))


def test_limits_of_pipelines() -> None:
    device = AppleDevice(FakeMetal(Stub, max_threads=16))
    with pytest.raises(
        MetalCompileError, match="'copy' is to run 32 threads a threadgroup, but its registers allow 16"
    ):
        device.load("copy", manifest_of("copy a0 r0"))
    with pytest.raises(MetalCompileError, match="allow 16 on Fake M1"):
        device.dispatch("copy", "copy", {}, (64, 1, 1), (8, 8, 1))


def test_other_widths_of_simdgroups_are_refused_where_they_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    device = AppleDevice(FakeMetal(Stub, lanes=64))
    device.load("copy", manifest_of("copy a0 r0"))
    monkeypatch.setitem(Stub.KERNELS, "simd_sum", Stub.KERNELS["copy"])
    with pytest.raises(MetalCompileError, match="runs 64 lanes a simdgroup"):
        device.load("copy simd_sum", manifest_of("copy a0 r0"))


def test_run_errors_name_the_kernels(device: AppleDevice, metal: FakeMetal) -> None:
    manifest = manifest_of("double a0 t0", "copy t0 r0", arena=1)
    program = device.load(text_of(manifest), manifest)
    blocks = [block_of(device, 1.0)], [block_of(device)], block_of(device)
    metal.failure = (2, "Caused GPU Timeout Error")
    with pytest.raises(MetalRunError, match="the kernels double, copy failed on Fake M1: Caused GPU Timeout Error"):
        program.run(*blocks)
    metal.failure = (8, "Insufficient Memory")
    with pytest.raises(MemoryError, match="Insufficient Memory"):
        program.run(*blocks)
    program.run(*blocks)
    assert (floats(blocks[1][0]) == 2).all()


def test_blocks_are_checked(device: AppleDevice) -> None:
    manifest = manifest_of("double a0 t0", "copy t0 r0", arena=1)
    program = device.load(text_of(manifest), manifest)
    full = block_of(device)
    with pytest.raises(MetalRunError, match="program has 1 arguments, got 0 blocks"):
        program.run([], [full], full)
    with pytest.raises(MetalRunError, match=r"result y0 of program is float32\[32\], 128 bytes; its block has 4"):
        program.run([full], [device.allocate(4)], full)
    with pytest.raises(MetalRunError, match="needs an arena of 128 bytes; it is missing"):
        program.run([full], [full])


def test_an_encoder_is_ended_when_encoding_fails(device: AppleDevice, metal: FakeMetal) -> None:
    with pytest.raises(ZeroDivisionError):
        device.submit(lambda encoder: 1 / 0, ["copy"], serial=True)
    assert metal.counts["endEncoding"] == 1 and metal.counts["commit"] == 0


def test_machines_without_metal(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DeviceError, match=r"no GPU that Metal can use.*metal:sim"):
        AppleDevice(FakeMetal(Stub, device=False))
    monkeypatch.setitem(sys.modules, "Metal", None)
    monkeypatch.setattr(AppleDevice, "_default", None)
    with pytest.raises(DeviceError, match="needs macOS and pyobjc-framework-Metal"):
        AppleDevice.default()


def test_the_default_device_is_made_once(metal: FakeMetal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "Metal", metal)
    monkeypatch.setattr(AppleDevice, "_default", None)
    assert AppleDevice.default() is AppleDevice.default()
    assert metal.counts["newCommandQueue"] == 1


def test_what_metal_hands_out_is_released(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake's methods ask for an open pool; every one is closed again, after errors too."""
    objc = FakeObjc()
    opened = []
    pool = objc.autorelease_pool
    monkeypatch.setattr(objc, "autorelease_pool", lambda: (opened.append(1), pool())[1])
    monkeypatch.setitem(sys.modules, "objc", objc)
    metal = FakeMetal(Stub, objc=objc)
    device = AppleDevice(metal)
    program = device.load("copy", manifest_of("copy a0 r0"))
    blocks = [block_of(device, 1.0)], [block_of(device)]
    opened.clear()
    metal.failure = (2, "timeout")
    with pytest.raises(MetalRunError):
        program.run(*blocks)
    program.run(*blocks)
    assert len(opened) == 4 and objc.pools == 0  # twice one of the run, and one of its command buffer


def test_element_bytes() -> None:
    names = ["float", "half4", "uint3", "packed_float3", "atomic_uint", "atomic<float>", "uchar2", "struct S"]
    assert [element_bytes(n) for n in names] == [4, 8, 16, 12, 4, 4, 2, None]


def test_many_threads(device: AppleDevice) -> None:
    manifest = manifest_of("double a0 t0", "increment t0", "copy t0 r0", arena=1)
    failures = []

    def work(number: int) -> None:
        for i in range(20):
            [result] = run(device, manifest, float(number + i))
            if not (result == 2 * (number + i) + 1).all():
                failures.append((number, i))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and device.active_bytes == 0


# Through the simulator

KERNELS = """
#include <metal_stdlib>
using namespace metal;

kernel void scale(const device float* x [[buffer(0)]], device float* y [[buffer(1)]],
                  uint i [[thread_position_in_grid]]) {
  y[i] = 2.0f * x[i];
}

kernel void reverse(const device float* x [[buffer(0)]], device float* y [[buffer(1)]],
                    uint i [[thread_position_in_grid]], uint lane [[thread_index_in_threadgroup]]) {
  threadgroup float shared[16];
  shared[lane] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = shared[15 - lane];
}
"""


def test_metal_text_runs_on_the_fake() -> None:
    simulator = pytest.importorskip("smelt.backends.metal.simulator", exc_type=ImportError)
    buffers = (KernelBuffer("x", "float", N, "read", 0), KernelBuffer("y", "float", N, "write", 1))
    kernels = tuple(
        KernelInfo(entry, "map", buffers, (2, 1, 1), (16, 1, 1), 0, 4 * N, 4 * N, 0) for entry in ("scale", "reverse")
    )
    launches = (
        Launch("scale", (BufferSlot("argument"), BufferSlot("arena", offset=64))),
        Launch("reverse", (BufferSlot("arena", offset=64), BufferSlot("result"))),
    )
    manifest = Manifest(
        "both", (ArrayInfo("x", "float32", (N,)),), (ArrayInfo("y", "float32", (2, 16)),), 64 + 4 * N, kernels, launches
    )
    device = AppleDevice(FakeMetal(simulator.Library))
    x, y = block_of(device, np.arange(N)), block_of(device)
    device.load(KERNELS, manifest).run([x], [y], device.allocate(manifest.arena_bytes))
    np.testing.assert_array_equal(floats(y).reshape(2, 16), 2 * np.arange(N).reshape(2, 16)[:, ::-1])
    with pytest.raises(MetalCompileError, match="refused the text"):
        device.load(KERNELS + "kernel void bad(device float* x [[buffer(0)]]) { x[0] = y; }", manifest)


def test_emitted_programs_run_on_the_fake() -> None:
    """Kernels with temporaries between them: each barrier is needed, as the fake runs backwards between them."""
    simulator = pytest.importorskip("smelt.backends.metal.simulator", exc_type=ImportError)
    harness = pytest.importorskip("tests.backends.metal.harness", exc_type=ImportError)
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(shape).astype(np.float32) for shape in ((9, 40), (40, 7)))

    def function(x: smelt.array, y: smelt.array) -> tuple[smelt.array, smelt.array]:
        product = smelt.exp(x) @ smelt.tanh(y)
        return product - product.sum(), smelt.exp(y)

    program = harness.program_of(harness.graph_of(function, smelt.array(x), smelt.array(y)))
    [segment] = program.segments
    fake = FakeMetal(simulator.Library)
    device = AppleDevice(fake)

    def filled(values: np.ndarray) -> Block:
        block = device.allocate(values.nbytes)
        block.array[:] = values.reshape(-1).view(np.uint8)
        return block

    results = [device.allocate(aval.nbytes) for aval in program.results]
    loaded = device.load(segment.text, segment.manifest)
    loaded.run([filled(x), filled(y)], results, device.allocate(segment.manifest.arena_bytes))
    product = np.exp(x) @ np.tanh(y)
    for block, expected in zip(results, (product - product.sum(), np.exp(y))):
        np.testing.assert_allclose(floats(block).reshape(expected.shape), expected, rtol=1e-4, atol=1e-3)
    assert fake.counts["commandBuffer"] == 1
    assert 1 <= fake.counts["memoryBarrierWithScope_"] < len(segment.manifest.launches) - 1
