"""What Python asks of an array: weak references, buffers, and streams that are none."""

from __future__ import annotations

import gc
import io
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir.errors import ArgumentTypeError, BufferExportError, DeviceError, OutOfMemoryError, SmeltError

pytestmark = pytest.mark.usefixtures("small_heap")


def test_weak_references() -> None:
    x = smelt.array([1.0, 2.0])
    reference, found = weakref.ref(x), []
    weakref.finalize(x, found.append, "gone")
    assert reference() is x
    del x
    gc.collect()
    assert reference() is None and found == ["gone"]
    y = smelt.ones(3)
    assert weakref.WeakValueDictionary(y=y)["y"] is y


def test_buffers() -> None:
    view = memoryview(smelt.array([[1, 2], [3, 4]]))
    assert view.tolist() == [[1, 2], [3, 4]] and not view.readonly and view.format == "i"


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "bfloat16": (lambda f: f(smelt.array([1.0], smelt.bfloat16)), r"bf16\[1\].*no element type bfloat16"),
    "compiled": (lambda f: smelt.compile(lambda x: f(x) and x)(smelt.ones(2)), r"f32\[2\].*no values yet"),
    "batched": (lambda f: smelt.vmap(lambda x: f(x) and x)(smelt.ones((2, 3))), r"f32\[3\].*no values yet"),
    "branch": (lambda f: smelt.cond(True, lambda x: f(x) and x, lambda x: x, smelt.ones(2)), "no values yet"),
}


@pytest.mark.parametrize("use", [memoryview, lambda x: np.frombuffer(x, np.uint8)], ids=["memoryview", "frombuffer"])
@pytest.mark.parametrize("name", REFUSED)
def test_arrays_without_a_buffer(name: str, use: Callable) -> None:
    call, message = REFUSED[name]
    with pytest.raises(BufferExportError, match=message) as caught:
        call(use)
    assert isinstance(caught.value, BufferError) and "test_handles.py" in str(caught.value)


def test_a_refused_buffer_leaves_nothing_behind(capsys: pytest.CaptureFixture[str]) -> None:
    x = smelt.array([1.0], smelt.bfloat16)
    reference = weakref.ref(x)
    for _ in range(100):
        with pytest.raises(BufferError):
            memoryview(x)
    del x
    gc.collect()
    assert reference() is None
    assert capsys.readouterr().err == ""


def test_numpy_reads_what_has_no_buffer() -> None:
    found = np.asarray(smelt.array([1.5], smelt.bfloat16))
    assert found.dtype == smelt.bfloat16.numpy and found.astype(np.float32).tolist() == [1.5]


def test_buffers_are_written() -> None:
    x = smelt.ones(2)
    memoryview(x)[0] = 2.0
    assert x.tolist() == [2, 1]
    io.BytesIO(np.array([3, 4], np.float32).tobytes()).readinto(x)
    assert x.tolist() == [3, 4]


def test_streams() -> None:
    for good in (None, smelt.cpu, smelt.default_stream("cpu"), "cpu"):
        assert smelt.exp(smelt.zeros(1), stream=good).tolist() == [1.0]
    with pytest.raises(ArgumentTypeError, match=r"stream must be None.*is an array f32\[2\].*test_handles\.py"):
        smelt.add(smelt.ones(2), smelt.ones(2), smelt.ones(2))  # NumPy's third argument is another one
    with pytest.raises(DeviceError, match="no device 'cpus'; did you mean cpu"):
        smelt.sum(smelt.ones(2), stream="cpus")
    with pytest.raises(ArgumentTypeError):
        smelt.ones(2).sum(stream=3)
    with pytest.raises(ArgumentTypeError):
        smelt.ones(4).reshape(2, 2, stream=3)


@pytest.mark.host("it limits the host's memory")
def test_running_out_of_memory_is_a_memory_error() -> None:
    previous = smelt.set_memory_limit(1 << 20)
    try:
        with pytest.raises(OutOfMemoryError, match=r"the limit, set by smelt.set_memory_limit.*test_handles\.py"):
            smelt.eval(smelt.ones(1 << 24) + 1)
    finally:
        smelt.set_memory_limit(previous)
    with pytest.raises(MemoryError, match="more elements than can be addressed"):
        smelt.zeros((2**40, 2**40))
    assert issubclass(OutOfMemoryError, SmeltError)
