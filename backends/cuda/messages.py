"""Messages between two processes by NCCL: sent by a thread, received on the stream of launches."""

from __future__ import annotations

import ctypes
import queue
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from smelt.ir import locks
from smelt.ir.errors import DistributedError

from . import driver
from .memory import MEMORY

if TYPE_CHECKING:
    from .collectives import Communicator

#: ncclUint8: messages are bytes.
_BYTES = 1
_TO, _FROM = 1, 0


class Receiver:
    """One end of messages between two processes."""

    def __init__(self, connect: Callable[[], Communicator]):
        self._connect, self._guard = connect, locks.lock()
        self._communicator: Communicator | None = None

    def recv(self, address: int, nbytes: int) -> None:
        """Receive the next message: what is launched later sees it. Only the first call waits, for the sender.

        NCCL compares no sizes: a message of another one is wrong, or never comes.
        """
        with self._guard:
            if self._communicator is None:
                self._communicator = self._connect()
            self._communicator.run("ncclRecv", ctypes.c_void_p(address), ctypes.c_size_t(nbytes), _BYTES, _FROM)


class Sender:
    """The sending end. Messages are sent in order, by a thread that waits for the receiver."""

    def __init__(self, connect: Callable[[], Communicator]):
        self._connect = connect
        self._waiting: queue.Queue[tuple[Any, driver.Event]] = queue.Queue()
        self._failed: list[Exception] = []
        threading.Thread(target=self._run, name="smelt-send", daemon=True).start()

    def send(self, address: int, nbytes: int) -> None:
        """Send bytes as they are after what was launched before. Raises DistributedError: others could not be sent."""
        self._check()
        block = MEMORY.block(nbytes)
        driver.enter()
        driver.copy(block.handle.address, address, nbytes)
        copied = driver.Event(timed=False)
        copied.record()
        self._waiting.put((block, copied))

    def _run(self) -> None:
        communicator = stream = None
        while True:
            block, copied = self._waiting.get()
            try:
                if not self._failed:
                    if communicator is None:
                        communicator, stream = self._connect(), driver.new_stream()
                    copied.before(stream)
                    size = ctypes.c_size_t(block.nbytes)
                    where = ctypes.c_void_p(block.handle.address)
                    communicator.run("ncclSend", where, size, _BYTES, _TO, stream=stream)
                    driver.wait_for(stream)
            except Exception as error:  # whatever it is: who sends, or waits for the end, is told
                self._failed.append(error)
            finally:
                del block  # which others may have now
                self._waiting.task_done()

    def finish(self) -> None:
        """Wait until all have been sent. Raises DistributedError: some could not be, or their receivers have gone."""
        driver.wait_until(lambda: not self._waiting.unfinished_tasks)
        self._check()

    def _check(self) -> None:
        if self._failed:
            raise DistributedError(f"messages could not be sent: {self._failed[0]}") from self._failed[0]
