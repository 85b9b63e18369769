"""What Python asks of an array: weak references, buffers, and streams that are none."""

from __future__ import annotations

import contextlib
import gc
import io
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir.errors import ArgumentTypeError, BufferExportError, DeviceError, OutOfMemoryError, SmeltError
from smelt.lazy import core

from .. import interrupts

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


@pytest.mark.skipif(not hasattr(core.Node.__init__, "__code__"), reason="nodes are the core's in C")
def test_an_interrupt_leaves_releases_to_the_next() -> None:
    """A node that goes releases its inputs, and those that an interrupted one has left."""

    def release() -> None:
        core.Node.__del__(SimpleNamespace(inputs=(1,)))  # type: ignore[arg-type]

    for place in interrupts.everywhere(release, core.Node.__del__):
        assert not core._release.active, place
        release()
        assert not core._release.queue, place


#: Ways to call a function of an array, many of which ask for nothing to be done where axes are short.
CALLS: list[Callable[[Callable[..., Any], Any], Any]] = [
    lambda f, x: f(x), lambda f, x: f(x, 0), lambda f, x: f(x, 1), lambda f, x: f(x, x), lambda f, x: f(x, ()),
    lambda f, x: f([x]), lambda f, x: f(x, axis=0), lambda f, x: f(x, axis=()), lambda f, x: f([x], axis=0),
    lambda f, x: f(x, axes=(0,)), lambda f, x: f(x, axes=()), lambda f, x: f(x, x.shape), lambda f, x: f(x, x.dtype),
    lambda f, x: f(x, [(0, 0)] * x.ndim, "edge"), lambda f, x: f(x, 0, 0), lambda f, x: f(x, 0, -1),
    lambda f, x: f(x, [*range(x.ndim)]),
]  # fmt: skip

#: What gives its argument back: as in NumPy, and what makes no arrays.
THE_SAME = {"asarray", "eval", "async_eval"}


@pytest.mark.parametrize("module", [smelt, smelt.fft, smelt.linalg, smelt.random, smelt.fast], ids=lambda m: m.__name__)
def test_results_are_handles_of_their_own(module: Any) -> None:
    """An update of a result in place does not reach the argument, whatever the sizes."""
    found = set()
    for name in set(module.__all__) - THE_SAME:
        function = getattr(module, name)
        if not callable(function) or isinstance(function, type) or name.startswith(("save", "set_", "load")):
            continue
        for shape in ((), (3, 1), (2, 0)):
            for dtype in (smelt.float32, smelt.complex64):
                x = smelt.zeros(shape, dtype)
                view = np.asarray(x) if dtype is smelt.float32 else None  # such a handle has no recipe
                for call in CALLS:
                    with contextlib.suppress(Exception):
                        results = call(function, x)
                        if any(y is x for y in (results if isinstance(results, (list, tuple)) else [results])):
                            found.add(name)
                del view
    assert not found


def test_updates_of_what_was_not_moved_leave_the_argument() -> None:
    x = smelt.ones((3, 1))
    view = np.asarray(x)
    for y in (smelt.roll(x, 1, axis=1), smelt.fft.fftshift(x, axes=1), smelt.unwrap(x), smelt.pad(x, 0, "edge")):
        y[0] = 5
    assert x.tolist() == view.tolist() == [[1], [1], [1]]


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


@pytest.mark.skipif(smelt.is_available(smelt.gpu), reason="there is a GPU")
@pytest.mark.parametrize(
    "call",
    [
        lambda s: smelt.exp(smelt.zeros(1), stream=s),
        lambda s: smelt.zeros(1, stream=s),
        lambda s: smelt.ones(1).sum(stream=s),
        lambda s: smelt.random.uniform(shape=(2,), stream=s),
        lambda s: smelt.fft.fft(smelt.ones(2), stream=s),
        lambda s: smelt.linalg.inv(smelt.eye(2), stream=s),
        lambda s: smelt.fast.rms_norm(smelt.ones(2), None, 1e-5, stream=s),
        lambda s: smelt.compile(lambda x: smelt.add(x, 1, stream=s))(smelt.ones(1)),
        smelt.new_stream,
        smelt.default_stream,
        smelt.set_default_device,
    ],
)
def test_a_stream_of_a_gpu_that_is_not_here(call: Any) -> None:
    for gpu in (smelt.gpu, smelt.DeviceType.gpu, smelt.Device(smelt.gpu), smelt.Device(smelt.DeviceType.gpu)):
        with pytest.raises(ValueError, match="there is no device 'metal'"):
            call(gpu)
        assert smelt.device_info(gpu) == {}


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
