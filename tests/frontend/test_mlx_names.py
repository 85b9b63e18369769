"""Names that MLX's programs use besides functions of arrays: kinds of devices, streams, memory, orders."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

import smelt
from smelt.ir.custom_call import Target, register_target
from smelt.ir.errors import ArgumentTypeError, AttributeValueError, DeviceError, ShapeError

pytestmark = pytest.mark.usefixtures("small_heap")


def test_kinds_of_devices():
    kind = smelt.DeviceType.cpu
    assert smelt.cpu.type is kind and smelt.gpu.type is smelt.DeviceType.gpu and smelt.reference.type is kind
    assert smelt.cpu == kind and kind == smelt.cpu and kind != smelt.gpu and kind != smelt.DeviceType.gpu
    assert smelt.Device(kind) == smelt.Device(smelt.cpu, 0) == smelt.cpu and repr(kind) == "DeviceType.cpu"
    assert {kind: 1}[smelt.DeviceType.cpu] == 1 and smelt.is_available(kind) and smelt.device_count(kind) == 1
    with smelt.stream(kind):
        assert smelt.add(smelt.array(1), 2, stream=kind).item() == 3
    with pytest.raises(DeviceError, match="number 0"):
        smelt.Device(kind, 1)


def test_streams_of_threads():
    stream = smelt.new_thread_local_stream(smelt.DeviceType.cpu)
    found = []

    def note():
        with smelt.stream(stream):
            found.append(smelt.default_stream("cpu").index)
            assert smelt.add(smelt.array([1]), 1, stream=stream).tolist() == [2]

    note(), note()
    other = threading.Thread(target=note)
    other.start(), other.join()
    assert found[0] == found[1] != found[2] and stream.device == smelt.cpu and "cpu" in repr(stream)
    assert smelt.new_thread_unsafe_stream("cpu").device == smelt.cpu


def test_classes():
    x = smelt.array([1, 2])
    assert isinstance(x.at, smelt.ArrayAt) and isinstance(iter(x), smelt.ArrayIterator)
    it = iter(x)
    assert it is iter(it) and [y.item() for y in it] == [1, 2] and list(it) == []
    assert smelt.PrintOptions(3).precision == 3 and smelt.PrintOptions() == smelt.PrintOptions(-1)
    assert smelt.cuda.is_available() is smelt.is_available("cuda") and smelt.ArrayLike is not None
    with pytest.raises(ArgumentTypeError, match="0-dimensional"):
        iter(smelt.array(1))


called: list[float] = []
register_target(Target("tests.noted", lambda call, x: called.append(float(x)) or x))


def noted(value):
    return smelt.custom_call("tests.noted", smelt.array(value), types=smelt.ShapeDtype((), smelt.float32))


def test_the_dtype_has_a_name():
    assert smelt.array([1.5]).astype(dtype=smelt.int32).tolist() == [1]
    assert smelt.astype([1.5], dtype=smelt.int32).tolist() == [1]


def test_depends():
    x = smelt.array([1.0, 2.0])
    y = smelt.depends(x + 1, noted(1.0))
    a, b = smelt.depends([x, x * 2], (noted(2.0), noted(3.0)))
    assert called == []
    assert y.tolist() == [2, 3] and called == [1]
    assert (a + b).tolist() == [3, 6] and sorted(called) == [1, 2, 3] and b.tolist() == [2, 4]
    assert smelt.grad(lambda x: smelt.depends(x * x, x).sum())(x).tolist() == [2, 4]
    assert smelt.compile(lambda x: smelt.depends([x], x + 1)[0])(x).tolist() == [1, 2]
    assert smelt.vmap(lambda x: smelt.depends(x, x))(x).tolist() == [1, 2] and smelt.depends([], x) == []
    z = smelt.depends(x, x + 1)
    assert smelt.grad(lambda x: (x * z).sum())(x).tolist() == [1, 2]
    with pytest.raises(ArgumentTypeError, match="dependencies must be"):
        smelt.depends(x, 3)


@pytest.mark.host("it counts bytes of the host")
def test_memory_of_small_arrays():
    gc.collect()
    before = smelt.get_active_memory()
    kept = [smelt.zeros(100) + i for i in range(50)]
    smelt.eval(kept)
    numbers = 50 * 4  # are kept, perhaps in place of others, of up to 16 bytes
    assert 50 * 400 - 4 * numbers <= smelt.get_active_memory() - before <= 50 * 400 + numbers
    assert smelt.get_array_buffer_size(kept, {"again": kept[:7], "n": 3}) == 50 * 400
    assert smelt.get_peak_memory() >= before + 50 * 400
    large = smelt.zeros((1000, 1000)) + 1
    with pytest.raises(AttributeValueError, match=r"f32\[1000,1000\] has not been evaluated"):
        smelt.get_array_buffer_size(large)
    smelt.eval(large)
    assert smelt.get_array_buffer_size(large, large) >= 4_000_000
    assert smelt.get_active_memory() - before >= 4_000_000 + 50 * 400
    del kept, large
    gc.collect()
    assert smelt.get_active_memory() <= before + 2 * numbers


def test_captures_and_kernels_of_other_machines(tmp_path):
    if not smelt.metal.is_available():
        for call in (lambda: smelt.metal.start_capture(tmp_path / "a.gputrace"), smelt.metal.stop_capture):
            with pytest.raises(DeviceError, match="no Apple GPU"):
                call()
    for call in (smelt.fast.cuda_kernel, smelt.fast.precompiled_cuda_kernel):
        with pytest.raises(DeviceError, match="metal_kernel"):
            call(name="f")


def test_gated_delta_update():
    rng = np.random.default_rng(0)
    b, t, hk, hv, dk, dv = 2, 5, 2, 4, 3, 6
    q, k = rng.standard_normal((2, b, t, hk, dk))
    v = rng.standard_normal((b, t, hv, dv))
    gamma, beta = rng.random((b, t, hv)), rng.random((b, t, hv))
    start, mask = rng.standard_normal((b, hv, dv, dk)), rng.random((b, t)) > 0.3
    arrays = [smelt.array(x, dtype=smelt.float32) for x in (q, k, v, gamma, beta)]
    for given in ({}, {"initial_state": start}, {"mask": mask}, {"initial_state": start, "mask": mask}):
        state = given.get("initial_state", np.zeros((b, hv, dv, dk))).copy()
        outs = np.zeros((b, t, hv, dv))
        for i in range(b):
            for s in range(t):
                for h in range(hv):
                    if "mask" in given and not mask[i, s]:
                        continue
                    key, query = k[i, s, h // 2], q[i, s, h // 2]
                    kept = state[i, h] * gamma[i, s, h]
                    state[i, h] = kept + beta[i, s, h] * np.outer(v[i, s, h] - kept @ key, key)
                    outs[i, s, h] = state[i, h] @ query
        more = {name: smelt.array(x) for name, x in given.items()}
        found, last = smelt.fast.gated_delta_update(*arrays, **more)
        np.testing.assert_allclose(np.array(found), outs, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(np.array(last), state, rtol=1e-4, atol=1e-5)
    smelt.eval(smelt.grad(lambda q: smelt.fast.gated_delta_update(q, *arrays[1:])[0].sum())(arrays[0]))
    for wrong in ({"initial_state": smelt.zeros((1,))}, {"mask": smelt.zeros((b, 1))}):
        with pytest.raises(ShapeError, match="gated_delta_update"):
            smelt.fast.gated_delta_update(*arrays, **wrong)
    with pytest.raises(ShapeError, match="Hk divides Hv"):
        smelt.fast.gated_delta_update(*arrays[:3], arrays[0], arrays[4])
