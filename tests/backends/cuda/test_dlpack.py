"""Arrays of an NVIDIA GPU handed to other libraries, and taken from them, without a copy; over a driver without one."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends import dlpack
from smelt.ir import dtypes
from smelt.ir.errors import BufferExportError

from .fake_driver import BASE, FakeDriver
from .test_device import fake, gpu

pytestmark = pytest.mark.usefixtures("small_heap")
assert fake and gpu  # fixtures


class Library:
    """Another library's array on the GPU: what it gets of a capsule, seen through some strides."""

    def __init__(self, capsule: Any, versions: bool = True, device: int = 0):
        self.capsule, self.versions, self.device, self.streams = capsule, versions, device, []

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, self.device)

    def __dlpack__(self, stream: Any = None, **options: Any) -> Any:
        if options and not self.versions:
            raise TypeError("unexpected keyword argument")
        self.streams.append(stream)
        return self.capsule


def on_gpu(values: Any, dtype: Any = smelt.float32) -> smelt.array:
    x = smelt.array(values, dtype) + smelt.array(1, dtype) if dtype is not smelt.bool_ else ~smelt.array(values, dtype)
    smelt.eval(x)
    return x


def flags(capsule: Any) -> int:
    return int(dlpack._managed_in(capsule).flags)


def test_out_without_a_copy(fake: FakeDriver) -> None:
    x = on_gpu([[1, 2, 3], [4, 5, 6]])
    assert x.__dlpack_device__() == (2, 0)
    used = fake.used
    capsule = x.__dlpack__(stream=1, max_version=(1, 0))
    assert flags(capsule) == 1  # read-only
    found = dlpack.taken(capsule)
    assert fake.used == used and found.address >= BASE and found.device == (2, 0)
    assert found.aval == x.aval and found.strides == (3, 1) and not fake.order
    again = dlpack.taken(x.__dlpack__())
    assert again.address == found.address


def test_the_memory_lives_as_long_as_others_have_it(fake: FakeDriver) -> None:
    x = on_gpu(np.arange(100))
    found, lent = dlpack.taken(x.__dlpack__()), len(dlpack._lent)
    del x
    gc.collect()
    others = [on_gpu(np.arange(100)) for _ in range(3)]
    assert found.address not in [y._buffer.home.address for y in others]
    del found
    assert len(dlpack._lent) == lent - 1
    x = on_gpu([1.0])
    x.__dlpack__()  # nobody takes it
    assert len(dlpack._lent) == lent - 1


def test_streams(fake: FakeDriver) -> None:
    """The consumer's waits for what was launched; launches wait for the consumer when it gives the array back."""
    x = on_gpu([1.0])
    for stream, want in ((None, 0), (1, 0), (-1, 0), (2, 2), (4711, 4711)):
        fake.order.clear()
        found = dlpack.taken(x.__dlpack__(stream=stream))
        assert fake.order == ([("after", None), ("before", want)] if want else [])
        fake.order.clear()
        del found
        assert fake.order == ([("after", want), ("before", None)] if want else [])
    for wrong in (0, -2, "1"):
        with pytest.raises(BufferExportError, match=r"a stream of DLPack is .*test_dlpack\.py"):
            x.__dlpack__(stream=wrong)
    with pytest.raises(BufferExportError, match=r"\(2, 1\) was asked for; the array is exported on \(2, 0\)"):
        x.__dlpack__(dl_device=(2, 1))


def test_copies_and_the_host(fake: FakeDriver) -> None:
    x = on_gpu([1.0, 2.0])
    capsule = x.__dlpack__(copy=True, max_version=(1, 0))
    assert flags(capsule) == 2  # the consumer's own
    found = dlpack.taken(capsule)
    assert found.address != dlpack.taken(x.__dlpack__()).address
    assert smelt.from_dlpack(Library(x.__dlpack__(copy=True))).tolist() == [2, 3]
    assert np.from_dlpack(OnHost(x)).tolist() == [2, 3]


class OnHost:
    """Asks for the host's memory, as ``np.from_dlpack(x, device="cpu")`` does."""

    def __init__(self, x: smelt.array):
        self.x = x

    def __dlpack__(self, **options: Any) -> Any:
        return self.x.__dlpack__(**(options | {"dl_device": (1, 0)}))

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=lambda d: d.name)
def test_in_without_a_copy(fake: FakeDriver, dtype: smelt.Dtype) -> None:
    x = smelt.array(np.arange(6).reshape(2, 3) % 2, dtype)
    want = x.tolist()
    capsule = x.__dlpack__(max_version=(1, 0))
    address, used = x._buffer.home.address, fake.used
    library = Library(capsule, versions=False)
    y = smelt.from_dlpack(library)
    assert fake.used == used and y._buffer.home.address == address and library.streams == [1]
    assert (y.dtype, y.shape) == (dtype, (2, 3))
    del x, capsule, library
    gc.collect()
    assert y.tolist() == want
    assert smelt.from_dlpack(Library(y.__dlpack__()), copy=True)._buffer.home.address != address
    assert smelt.array(Library(y.__dlpack__()), dtype).tolist() == want


def test_elements_in_another_order(fake: FakeDriver) -> None:
    """A transposed array of another library is read where it lies."""
    x = on_gpu(np.arange(12).reshape(3, 4))
    for shape, strides in (((4, 3), (1, 4)), ((3, 2), (4, 2)), ((2, 3), (0, 1)), ((0, 4), (1, 1)), ((1, 1), (7, 9))):
        want = np.lib.stride_tricks.as_strided(np.array(x), shape, [4 * s for s in strides])
        for make in (smelt.from_dlpack, smelt.array):
            capsule = x.__dlpack__()
            tensor = dlpack.tensor_in(capsule)
            for i in (0, 1):
                tensor.shape[i], tensor.strides[i] = shape[i], strides[i]
            np.testing.assert_array_equal(np.array(make(Library(capsule))), want)


def test_refused(fake: FakeDriver) -> None:
    with pytest.raises(BufferExportError, match=r"no data that is in reach: .*GPU 0.*number 3.*test_dlpack\.py"):
        capsule = on_gpu([1.0]).__dlpack__()
        dlpack.tensor_in(capsule).device_id = 3
        smelt.from_dlpack(Library(capsule, device=3))
    with pytest.raises(BufferExportError, match="a int is no DLPack capsule"):
        smelt.from_dlpack(Library(3))
    capsule = on_gpu([1.0]).__dlpack__()
    smelt.from_dlpack(Library(capsule))
    with pytest.raises(BufferExportError, match="no DLPack capsule that can be taken"):
        smelt.from_dlpack(Library(capsule))


def test_arrays_of_the_host_stay_there() -> None:
    with smelt.stream(smelt.cpu):
        x = smelt.array([1.0])
        assert x.__dlpack_device__() == (1, 0) and np.from_dlpack(x).tolist() == [1]
