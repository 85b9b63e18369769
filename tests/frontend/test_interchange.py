"""Memory shared with others: what they write is seen by the array that they have a view of, and by nothing else: no
other array, no work that was recorded before, and no constant."""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import smelt
from smelt.backends import buffer
from smelt.ir import dtypes
from smelt.ir.errors import ArgumentTypeError, AttributeValueError, BufferExportError, DTypeError, SmeltError

from .dlpack_by_hand import READ_ONLY, Consumed, Producer

pytestmark = pytest.mark.usefixtures("small_heap")

HAS_VERSIONS = np.lib.NumpyVersion(np.__version__) >= "2.1.0"
LARGE = buffer.SMALL // 8 + 8  # elements of eight bytes for a block of the pool

# Producers: what is exported, and what shared its memory before. The latter are functions, asked before and after.

Shared = tuple[smelt.array, list[Callable[[], Any]]]


def host_of(dtype: smelt.Dtype, size: int) -> np.ndarray:
    return (np.arange(size) % 7 + 1).astype(dtype.numpy)


def evaluated(dtype: smelt.Dtype, size: int) -> Shared:
    x = smelt.array(host_of(dtype, size), dtype)
    pending = x[::-1]  # not evaluated before the write
    return x, [lambda: pending]


def alone(dtype: smelt.Dtype, size: int) -> Shared:
    x = smelt.array(host_of(dtype, size), dtype)
    return x, [lambda: smelt.array(host_of(dtype, size), dtype)]


def lazy(dtype: smelt.Dtype, size: int) -> Shared:
    x = smelt.array(host_of(dtype, size), dtype)
    y = smelt.where(smelt.ones(size, smelt.bool_), x, x)
    return y, [lambda: x]


def copied(dtype: smelt.Dtype, size: int) -> Shared:
    x = smelt.array(host_of(dtype, size), dtype)
    others = [copy.copy(x), copy.deepcopy(x), smelt.array(x), smelt.from_dlpack(x), x.astype(dtype), x[...]]
    return x, [lambda y=y: y for y in others]


def reshaped(dtype: smelt.Dtype, size: int) -> Shared:
    x = smelt.array(host_of(dtype, size), dtype)
    y = x.reshape(2, -1)
    smelt.eval(y)
    return y, [lambda: x]


def viewed(dtype: smelt.Dtype, size: int) -> Shared:
    x = smelt.array(host_of(dtype, size), dtype)
    y = x.view(smelt.uint8)
    smelt.eval(y)
    return y, [lambda: x]


def constant(dtype: smelt.Dtype, size: int) -> Shared:
    x = smelt.array(host_of(dtype, size), dtype)
    f = smelt.compile(lambda i: x[i])
    at = smelt.array(size - 1)
    f(at)
    return x, [lambda: f(at), lambda: f(smelt.array(0))]


@smelt.compile
def reversed_and_reshaped(x: smelt.array) -> Any:
    return x[::-1], x, x.reshape(2, -1)


@smelt.compile
def reshaped_and_as_it_is(x: smelt.array) -> Any:
    return x.reshape(2, -1), x


def result(dtype: smelt.Dtype, size: int) -> Shared:
    x = smelt.array(host_of(dtype, size), dtype)
    y, z, w = reversed_and_reshaped(x)
    return y, [lambda: x, lambda: z, lambda: w]


def passed_through(dtype: smelt.Dtype, size: int) -> Shared:
    x = smelt.array(host_of(dtype, size), dtype)
    y, z = reshaped_and_as_it_is(x)
    return y, [lambda: x, lambda: z]


def argument(dtype: smelt.Dtype, size: int) -> Shared:
    x = smelt.array(host_of(dtype, size), dtype)
    y, z = reshaped_and_as_it_is(x)
    return x, [lambda: y, lambda: z]


def state(dtype: smelt.Dtype, size: int) -> Shared:
    held = {"x": smelt.array(host_of(dtype, size), dtype)}

    @smelt.compile(inputs=held, outputs=held)
    def step(i: smelt.array) -> smelt.array:
        old = held["x"]
        held["x"] = old[::-1]
        return old[i]

    first = held["x"]
    found = step(smelt.array(0))
    same = smelt.array(held["x"])
    return held["x"], [lambda: first, lambda: found, lambda: same]


def scalar(dtype: smelt.Dtype, size: int) -> Shared:
    x = smelt.full((), 1, dtype)  # the buffers of Python scalars are kept
    return x, [lambda: smelt.full((), 1, dtype), lambda: smelt.full((2,), 1, dtype)]


def interpreted(dtype: smelt.Dtype, size: int) -> Shared:
    with smelt.stream(smelt.reference):
        x = smelt.array(host_of(dtype, size), dtype)
        y = x.reshape(2, -1).T  # a view by the reference rule
        smelt.eval(y)
    return y, [lambda: x]


PRODUCERS = [
    evaluated, alone, lazy, copied, reshaped, viewed, constant, result, passed_through, argument, state, scalar,
    interpreted,
]  # fmt: skip

# Consumers: memory to write to, or None where there is only memory for reading.


def writable(found: np.ndarray) -> np.ndarray | None:
    return found if found.flags.writeable else None


def by_hand(x: smelt.array, **options: Any) -> Any:
    """A consumer that looks at no flag; it keeps the memory as long as the array that it made."""
    return Consumed(x.__dlpack__(**options))


def memory_view(x: smelt.array) -> Any:
    try:
        view = memoryview(x)
    except BufferExportError:
        assert x.dtype is smelt.bfloat16
        return None
    assert not view.readonly
    return writable(np.asarray(view))


def torch_tensor(x: smelt.array) -> Any:
    torch = pytest.importorskip("torch")
    found = torch.from_dlpack(x)
    return found.view(torch.uint8) if found.ndim else found.reshape(1).view(torch.uint8)


def jax_array(x: smelt.array) -> Any:
    jax = pytest.importorskip("jax")
    found = jax.numpy.from_dlpack(x)
    assert found.shape == x.shape
    return None  # which cannot be written to


CONSUMERS: dict[str, Callable[[smelt.array], Any]] = {
    "np.from_dlpack": lambda x: writable(np.from_dlpack(x)) if x.dtype is not smelt.bfloat16 else None,
    "np.asarray": lambda x: writable(np.asarray(x)),
    "np.array": lambda x: writable(np.array(x)),
    "np.array(dtype)": lambda x: writable(np.array(x, x.dtype.numpy)),
    "__array__(copy=False)": lambda x: writable(x.__array__(copy=False)),
    "memoryview": memory_view,
    "np.frombuffer": lambda x: writable(np.frombuffer(x, np.uint8)) if x.dtype is not smelt.bfloat16 else None,
    "dlpack before 1.0": by_hand,
    "dlpack 0.8": lambda x: by_hand(x, max_version=(0, 8)),
    "dlpack 1.0": lambda x: by_hand(x, max_version=(1, 0), dl_device=(1, 0)),
    "dlpack 9.9": lambda x: by_hand(x, max_version=(9, 9)),
    "dlpack copy": lambda x: by_hand(x, max_version=(1, 0), copy=True),
    "torch": torch_tensor,
    "jax": jax_array,
}


def overwrite(target: Any) -> None:
    if isinstance(target, Consumed):
        target = target.memory
    if isinstance(target, np.ndarray):
        target[...] = 0
    elif target is not None:
        target.zero_()


@pytest.mark.host("what others get of a GPU's array stays there: tests/backends/cuda/test_dlpack.py")
@pytest.mark.parametrize("consumer", CONSUMERS)
@pytest.mark.parametrize("produce", PRODUCERS, ids=lambda p: p.__name__)
def test_a_write_reaches_nothing_else(produce: Callable[..., Shared], consumer: str) -> None:
    kinds = dtypes.ALL if produce not in (constant, result, passed_through, argument, state) else (
        smelt.float32, smelt.bfloat16, smelt.bool_, smelt.complex64
    )  # fmt: skip
    for dtype in kinds:
        for size in (8, LARGE) if dtype.size == 8 else (8,):
            check_a_write(produce, consumer, dtype, size)


#: Consumers that have a copy.
COPIES = {"np.array", "np.array(dtype)", "dlpack copy"}


def check_a_write(produce: Callable[..., Shared], consumer: str, dtype: smelt.Dtype, size: int) -> None:
    x, others = produce(dtype, size)
    before, wanted = np.array(x), [np.array(other()) for other in others]
    x, others = produce(dtype, size)  # anew: what is asked for before the write has its value already
    target = CONSUMERS[consumer](x)
    overwrite(target)
    if target is None or consumer in COPIES:
        assert np.array(x).tobytes() == before.tobytes(), (dtype, size)
    else:
        assert not np.any(np.array(x)), (dtype, size)
    for i, (other, value) in enumerate(zip(others, wanted)):
        found = np.array(other())
        assert found.tobytes() == value.tobytes(), (dtype, size, i)


@pytest.mark.host("what others get of a GPU's array stays there: tests/backends/cuda/test_dlpack.py")
@pytest.mark.parametrize("dtype", dtypes.ALL, ids=lambda d: d.name)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3)], ids=str)
def test_capsules_hold_the_elements(dtype: smelt.Dtype, shape: tuple[int, ...]) -> None:
    host = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype.numpy)
    x = smelt.array(host, dtype)
    for options in ({}, {"max_version": (0, 5)}, {"max_version": (1, 0)}, {"max_version": (1, 1), "copy": True}):
        found = Consumed(x.__dlpack__(**options))
        is_versioned = HAS_VERSIONS and options.get("max_version", (0, 0)) >= (1, 0)
        assert (found.version is not None) == is_versioned and not found.flags & READ_ONLY
        assert found.memory.dtype == host.dtype and found.memory.shape == shape
        assert found.memory.tobytes() == host.tobytes()
    if x.size:
        found, again = Consumed(x.__dlpack__(copy=False)), Consumed(x.__dlpack__())
        assert found.memory.__array_interface__["data"][0] == again.memory.__array_interface__["data"][0]


@pytest.mark.host("what others get of a GPU's array stays there: tests/backends/cuda/test_dlpack.py")
def test_memory_in_a_capsule_outlives_the_array() -> None:
    for size in (4, LARGE):
        x = smelt.arange(size, dtype=smelt.int64)
        found = Consumed(x.__dlpack__(copy=False))
        del x
        gc.collect()
        others = [smelt.zeros(size, smelt.int64) for _ in range(4)]
        smelt.eval(others)
        assert found.memory[1] == 1 and found.memory[-1] == size - 1


@pytest.mark.host("what others get of a GPU's array stays there: tests/backends/cuda/test_dlpack.py")
def test_refused_exports() -> None:
    x = smelt.array([1.0])
    for options in ({"stream": 1}, {"dl_device": (2, 0)}):
        with pytest.raises(BufferExportError, match=r"test_interchange\.py"):
            x.__dlpack__(**options)
    with pytest.raises(ArgumentTypeError, match="max_version must be a pair"):
        x.__dlpack__(max_version="new")
    with pytest.raises(AttributeValueError, match=r"f32\[1\] becomes a NumPy array of int8 only by a copy"):
        x.__array__(np.int8, copy=False)
    with pytest.raises(smelt.SmeltError, match="traced array"):
        smelt.compile(lambda x: x.__dlpack__())(x)


# Into smelt


def foreign(host: np.ndarray) -> Iterator[tuple[str, Any, Any]]:
    """What holds an array's memory: its name, the object, and what makes an array of it."""
    for name, f in {"array": smelt.array, "asarray": smelt.asarray, "from_dlpack": smelt.from_dlpack}.items():
        yield name, host, f
        for versioned in (False, True):
            if not versioned or HAS_VERSIONS:
                yield f"{name}, by hand, {versioned}", Producer(host, versioned), f
    if host.dtype != ml_dtypes.bfloat16:
        yield "memoryview", memoryview(host), smelt.array
        yield "read-only", memoryview(host).toreadonly(), smelt.array
    yield "nested", [host, host], smelt.array
    yield "pending", host, lambda x: smelt.stack([smelt.array(x), smelt.array(x)])
    if host.dtype != bool:
        yield "operand", host, lambda x: smelt.maximum(x, x) if x.dtype.kind != "c" else smelt.add(x, x)
    yield "captured", host, lambda x: smelt.where(smelt.array(True), x, x)


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=lambda d: d.name)
def test_what_an_owner_changes_later_is_not_seen(dtype: smelt.Dtype) -> None:
    for size in (4, LARGE):
        for i in range(len(list(foreign(host_of(dtype, 4))))):
            host = host_of(dtype, size)
            name, held, make = list(foreign(host))[i]
            x = make(held)
            host[...] = 0
            assert np.array(x != 0).all(), name


def test_a_compiled_constant_from_outside_is_a_copy() -> None:
    host = np.array([1.0, 2.0], np.float32)
    f = smelt.compile(lambda x: x + smelt.array(host))
    g = smelt.compile(lambda x: x + host)
    for h in (f, g):
        host[...] = 1
        assert h(smelt.zeros(2)).tolist() == [1, 1]
        host[...] = 5
        assert h(smelt.zeros(2)).tolist() == [1, 1]


@pytest.mark.parametrize("versioned", [False, True])
@pytest.mark.parametrize("dtype", dtypes.ALL, ids=lambda d: d.name)
def test_capsules_are_read_and_given_back(dtype: smelt.Dtype, versioned: bool) -> None:
    if versioned and not HAS_VERSIONS:
        pytest.skip("NumPy reads no versioned capsules")
    wide = (np.arange(12) % 5).reshape(3, 4).astype(dtype.numpy)
    for host in (wide, wide[:, ::2], wide.T, wide[:0], wide[0, 0].reshape(())):
        for read_only in (False, True)[: 1 + versioned]:
            producer = Producer(host, versioned, read_only=read_only)
            x = smelt.from_dlpack(producer)
            assert x.shape == host.shape
            np.testing.assert_array_equal(np.array(x), host.astype(x.dtype.numpy))
            assert producer.deleted == 1


@pytest.mark.host("what others get of a GPU's array stays there: tests/backends/cuda/test_dlpack.py")
def test_refused_imports() -> None:
    host = np.arange(3, dtype=np.float32)
    with pytest.raises(BufferExportError, match=r"a Producer exports no data.*test_interchange.py"):
        smelt.from_dlpack(Producer(host, False, device=2))

    class NoCapsule:
        def __dlpack__(self, **_: Any) -> Any:
            return 3

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

    with pytest.raises(BufferExportError, match="exports no data"):
        smelt.from_dlpack(NoCapsule())
    with pytest.raises(DTypeError, match="cannot make an array"):
        smelt.array(NoCapsule())
    with pytest.raises(ArgumentTypeError, match="has no __dlpack__"):
        smelt.from_dlpack([1])


@pytest.mark.host("what others get of a GPU's array stays there: tests/backends/cuda/test_dlpack.py")
def test_torch_and_back() -> None:
    torch = pytest.importorskip("torch")
    for kind in (torch.bfloat16, torch.float16, torch.float32, torch.int64, torch.uint8, torch.bool, torch.complex64):
        t = torch.arange(6).reshape(2, 3).to(kind)
        for x in (smelt.from_dlpack(t), smelt.array(t)):
            back = torch.from_dlpack(x)
            assert back.dtype == kind and torch.equal(back, t)
        assert torch.equal(torch.from_dlpack(smelt.array(t.T)), t.T)


def test_jax_and_back() -> None:
    jnp = pytest.importorskip("jax").numpy
    for kind in (jnp.bfloat16, jnp.float16, jnp.float32, jnp.int32, jnp.uint8, jnp.bool_, jnp.complex64):
        j = jnp.arange(6).reshape(2, 3).astype(kind)
        for x in (smelt.from_dlpack(j), smelt.array(j)):
            back = jnp.from_dlpack(x)
            assert back.dtype == kind and (back == j).all()
            assert (jnp.asarray(x) == j).all()


def test_capsules_are_arrays_as_their_owners_are() -> None:
    host = np.arange(8, dtype=np.int32).reshape(2, 4)
    for made in (smelt.array, smelt.asarray, smelt.from_dlpack):
        capsule = host.__dlpack__()
        np.testing.assert_array_equal(np.array(made(capsule)), host)
        with pytest.raises(SmeltError, match="PyCapsule"):
            made(capsule)
    np.testing.assert_array_equal(np.array(smelt.array(host[:, ::2].__dlpack__(), smelt.float32)), host[:, ::2])
    half = smelt.ones(3, smelt.bfloat16)
    assert smelt.array(half.__dlpack__()).dtype is smelt.bfloat16
    assert smelt.array(np.ones(2).__dlpack__()).dtype is smelt.array(np.ones(2)).dtype


def test_objects_that_stand_for_an_array() -> None:
    class Stands:
        def __init__(self, given: Any):
            self.given = given

        def __mlx_array__(self) -> Any:
            if isinstance(self.given, Exception):
                raise self.given
            return self.given

        def __dlpack__(self, **_: Any) -> Any:
            raise AssertionError("is not asked")

    x = Stands(smelt.array([1, 2, 3]))
    assert smelt.array(x).dtype is smelt.int32 and smelt.array(x) is not x.given
    assert smelt.asarray(x, dtype=smelt.float16).dtype is smelt.float16
    for found in (smelt.add(x, 1), x.given + Stands(smelt.array(1)), Stands(smelt.array(1)) + x.given):  # type: ignore[operator]
        assert found.tolist() == [2, 3, 4]
    np.testing.assert_array_equal(np.array(smelt.compile(lambda a: a + x)(smelt.ones(3))), [2, 3, 4])
    with pytest.raises(DTypeError, match="its __mlx_array__ gives a str"):
        smelt.array(Stands("no"))
    with pytest.raises(DTypeError, match="KeyError"):
        smelt.array(Stands(KeyError("no")))
