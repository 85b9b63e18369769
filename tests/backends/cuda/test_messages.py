"""Messages over NCCL in one process: what becomes of those that cannot be sent or never come."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from smelt.backends.cuda import collectives, driver
from smelt.backends.cuda.memory import MEMORY
from smelt.ir.errors import DistributedError

from .fake_driver import FakeDriver
from .test_device import fake, gpu

assert fake and gpu  # fixtures


class _Nccl:
    """One that makes names, and sends and receives nothing."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Callable[..., int]:
        return lambda *arguments: self.asked.append(name) or 0


class _Board:
    """Where nobody else ever puts anything."""

    def __init__(self, error: Exception | None = None):
        self.error, self.asked, self.over = error, threading.Event(), threading.Event()

    def put(self, name: str, value: bytes) -> None:
        if self.error is not None:
            raise self.error

    def get(self, name: str) -> bytes:
        self.asked.set()
        assert self.over.wait(60)
        raise DistributedError("nobody will")


def group(board: _Board) -> tuple[collectives.Group, _Nccl]:
    found = _Nccl()
    library = collectives.Library(found)
    communicator = collectives.Communicator(library, driver.ctypes.c_void_p(1), 0, 2)
    return collectives.Group(communicator, board, "world"), found


@pytest.fixture
def lost(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Why others have gone."""
    found: list[str] = []
    monkeypatch.setattr(collectives, "_lost", found)
    monkeypatch.setattr(collectives, "_communicators", [])
    monkeypatch.setattr(driver, "checks", [collectives.check])
    yield found


@pytest.mark.parametrize("error", [DistributedError("as it happens"), BrokenPipeError("as it happens")])
def test_messages_that_cannot_be_sent_are_an_error_at_the_end(error: Exception, lost: list[str]) -> None:
    ours, _ = group(_Board(error))
    sender, block = ours.sender(1, 0), MEMORY.block(16)
    sender.send(block.address, 16)
    with pytest.raises(DistributedError, match="messages could not be sent: as it happens"):
        ours.finish()
    with pytest.raises(DistributedError, match="messages could not be sent: as it happens"):
        sender.send(block.address, 16)


def test_the_end_waits_for_nobody_who_has_gone(lost: list[str]) -> None:
    board = _Board()
    ours, _ = group(board)
    ours.sender(1, 0).send(MEMORY.block(16).address, 16)
    assert board.asked.wait(60)
    lost.append("process 1 of 2 has ended before the others")
    with pytest.raises(DistributedError, match="process 1 of 2 has ended"):
        ours.finish()
    board.over.set()


def test_who_waits_for_a_message_keeps_nobody_from_sending(lost: list[str]) -> None:
    board = _Board()
    ours, _ = group(board)
    failed: list[Any] = []

    def receive() -> None:
        with pytest.raises(DistributedError) as found:
            ours.receiver(1, 0).recv(MEMORY.block(16).address, 16)
        failed.append(found)

    waiting = threading.Thread(target=receive)
    waiting.start()
    assert board.asked.wait(60)
    other = threading.Thread(target=ours.sender, args=(1, 0), daemon=True)
    other.start()
    other.join(10)
    is_free = not other.is_alive()
    board.over.set()
    waiting.join(60)
    assert is_free and failed


def test_nothing_is_asked_of_what_was_aborted(lost: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    ours, nccl = group(_Board())
    monkeypatch.setattr(collectives, "_communicators", [ours.communicator])
    collectives.lose("process 1 of 2 has ended before the others")
    before = [*nccl.asked]
    assert before[-1] == "ncclCommAbort"
    with pytest.raises(DistributedError, match="process 1 of 2 has ended"):
        ours.communicator.run("ncclSend")
    ours.communicator.check()
    ours.communicator.abort()
    collectives._kept(collectives.Communicator(ours.communicator.library, driver.ctypes.c_void_p(2), 0, 2))
    assert nccl.asked == [*before, "ncclCommAbort"]
