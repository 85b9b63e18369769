"""NCCL without GPUs: the functions that smelt calls, over files of a folder that all processes see.

As with NCCL, who sends waits for who receives. Numbers are those of ``nccl.h``, written down apart from smelt's.
"""

from __future__ import annotations

import ctypes
import os
import time
import uuid
from functools import reduce
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from .fake_driver import FakeDriver

SUCCESS, INVALID_ARGUMENT, INVALID_USAGE = 0, 4, 5
#: ncclDataType_t and ncclRedOp_t.
DTYPES = {
    0: np.int8, 1: np.uint8, 2: np.int32, 3: np.uint32, 4: np.int64, 5: np.uint64, 6: np.float16, 7: np.float32,
    8: np.float64, 9: ml_dtypes.bfloat16,
}  # fmt: skip
OPERATIONS = {0: np.add, 2: np.maximum, 3: np.minimum}


class _Text:
    """A function whose result is a text."""

    restype: Any = None

    def __init__(self, texts: dict[int | None, bytes]):
        self.texts = texts

    def __call__(self, code: int | None) -> bytes:
        return self.texts.get(code, b"an error")


class _Communicator:
    def __init__(self, name: str, rank: int, size: int):
        self.name, self.rank, self.size, self.steps, self.is_aborted = name, rank, size, 0, False


class FakeNccl:
    """Attributes:
    done: what was asked for on communicators: the function, and how many elements.
    asynchronous: what `ncclCommGetAsyncError` finds.
    """

    def __init__(self, driver: FakeDriver, folder: Path):
        self.driver, self.folder = driver, folder
        self.done: list[tuple[str, int]] = []
        self.asynchronous = 0
        self._communicators: dict[int, _Communicator] = {}
        self.ncclGetErrorString = _Text({INVALID_USAGE: b"invalid usage", 6: b"remote error"})
        self.ncclGetLastError = _Text({None: b""})

    # Communicators

    def ncclGetUniqueId(self, made: Any) -> int:
        made._obj.internal = uuid.uuid4().hex.encode()
        return SUCCESS

    def ncclCommInitRank(self, made: Any, size: int, name: Any, rank: int) -> int:
        assert isinstance(name, ctypes.Structure) and ctypes.sizeof(name) == 128
        if not 0 <= rank < size:
            return INVALID_ARGUMENT
        return self._start(made, name.internal.decode(), rank, size)

    def _start(self, made: Any, name: str, rank: int, size: int) -> int:
        communicator = _Communicator(name, rank, size)
        gpus = [int(found) for found in self._exchange(communicator, str(self.driver.device).encode())]
        if len(set(gpus)) < size:
            self.ncclGetLastError.texts[None] = b"Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000"
            return INVALID_USAGE
        made._obj.value = 40_000 + len(self._communicators)
        self._communicators[made._obj.value] = communicator
        return SUCCESS

    def ncclCommSplit(self, of: Any, color: int, key: int, made: Any, configuration: None) -> int:
        communicator = self._communicators[of.value]
        found = self._exchange(communicator, f"{color} {key}".encode())
        asked = [(*map(int, reply.split()), rank) for rank, reply in enumerate(found)]
        ranks = [rank for given, _, rank in sorted(asked, key=lambda each: each[1:]) if given == color]
        name = f"{communicator.name}-{communicator.steps}-{color}"
        return self._start(made, name, ranks.index(communicator.rank), len(ranks))

    def ncclCommUserRank(self, of: Any, rank: Any) -> int:
        rank._obj.value = self._communicators[of.value].rank
        return SUCCESS

    def ncclCommCount(self, of: Any, count: Any) -> int:
        count._obj.value = self._communicators[of.value].size
        return SUCCESS

    def ncclCommGetAsyncError(self, of: Any, code: Any) -> int:
        code._obj.value = self.asynchronous
        return SUCCESS

    def ncclCommAbort(self, of: Any) -> int:
        self._communicators[of.value].is_aborted = True
        return SUCCESS

    # Exchange

    def _exchange(self, communicator: _Communicator, content: bytes) -> list[bytes]:
        """What all processes give; those that have been aborted get their own."""
        communicator.steps += 1
        stem = f"{communicator.name}.{communicator.steps}."
        self._write(stem + str(communicator.rank), content)
        paths = [self.folder / f"{stem}{rank}" for rank in range(communicator.size)]
        while not all(path.exists() for path in paths):
            if communicator.is_aborted:
                return [content] * communicator.size
            time.sleep(1e-3)
        return [path.read_bytes() for path in paths]

    def _write(self, name: str, content: bytes) -> None:
        beside = self.folder / f"{name}.{os.getpid()}.part"
        beside.write_bytes(content)
        beside.rename(self.folder / name)

    def _memory(self, address: Any, count: int, kind: int) -> np.ndarray:
        dtype = np.dtype(DTYPES[kind])
        found = self.driver._find(address.value)
        assert found is not None and found[1] >= count * dtype.itemsize, "beyond its memory"
        return np.frombuffer((ctypes.c_char * (count * dtype.itemsize)).from_address(found[0]), dtype)

    def _given(self, function: str, source: Any, count: Any, kind: Any, of: Any) -> list[np.ndarray]:
        """What all processes give, in order."""
        assert isinstance(count, ctypes.c_size_t) and isinstance(kind, ctypes.c_int)
        self.done.append((function, count.value))
        content = self._memory(source, count.value, kind.value).tobytes()
        found = self._exchange(self._communicators[of.value], content)
        return [np.frombuffer(each, DTYPES[kind.value]) for each in found]

    def ncclAllReduce(self, source: Any, target: Any, count: Any, kind: Any, how: Any, of: Any, stream: Any) -> int:
        given = self._given("ncclAllReduce", source, count, kind, of)
        self._memory(target, count.value, kind.value)[...] = reduce(OPERATIONS[how.value], given)
        return SUCCESS

    def ncclAllGather(self, source: Any, target: Any, count: Any, kind: Any, of: Any, stream: Any) -> int:
        given = self._given("ncclAllGather", source, count, kind, of)
        self._memory(target, count.value * len(given), kind.value)[...] = np.concatenate(given)
        return SUCCESS

    def ncclReduceScatter(self, source: Any, target: Any, count: Any, kind: Any, how: Any, of: Any, stream: Any) -> int:
        communicator = self._communicators[of.value]
        given = self._given("ncclReduceScatter", source, ctypes.c_size_t(count.value * communicator.size), kind, of)
        whole = reduce(OPERATIONS[how.value], given)
        self._memory(target, count.value, kind.value)[...] = np.split(whole, communicator.size)[communicator.rank]
        return SUCCESS

    # Messages

    def ncclSend(self, source: Any, count: Any, kind: int, peer: int, of: Any, stream: Any) -> int:
        communicator = self._communicators[of.value]
        assert peer == 1 - communicator.rank and communicator.size == 2
        communicator.steps += 1
        name = f"{communicator.name}.{communicator.steps}.message"
        self._write(name, self._memory(source, count.value, kind).tobytes())
        while (self.folder / name).exists() and not communicator.is_aborted:
            time.sleep(1e-3)
        return SUCCESS

    def ncclRecv(self, target: Any, count: Any, kind: int, peer: int, of: Any, stream: Any) -> int:
        communicator = self._communicators[of.value]
        assert peer == 1 - communicator.rank and communicator.size == 2 and stream is None
        communicator.steps += 1
        path = self.folder / f"{communicator.name}.{communicator.steps}.message"
        while not path.exists():
            if communicator.is_aborted:
                return SUCCESS
            time.sleep(1e-3)
        memory = self._memory(target, count.value, kind)
        memory[...] = np.frombuffer(path.read_bytes(), memory.dtype)
        path.unlink()
        return SUCCESS
