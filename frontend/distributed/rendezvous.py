"""Where processes that were launched together find each other: bytes by name, at a server in the first of them."""

from __future__ import annotations

import base64
import contextlib
import json
import socket
import threading
import time
from typing import Any

from smelt.ir import locks
from smelt.ir.errors import DistributedError

#: Seconds for which a process tries to reach the server, which may start later.
PATIENCE = 120.0
#: Put by the server: why somebody has gone, or nothing when all have left.
_GONE = "gone"
_MOST_BYTES = 1 << 20
#: What a process says that cannot reach the server any more.
_NO_SERVER = "process 0 has ended before the others"


class _Line:
    """A connection: each message is a line of JSON."""

    def __init__(self, connection: socket.socket):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection = connection
        self._file = connection.makefile("rb")

    def write(self, *message: Any) -> None:
        """Raises OSError: the connection has ended."""
        self._connection.sendall(json.dumps(message).encode() + b"\n")

    def read(self) -> list[Any] | None:
        """The next message; None where the connection has ended."""
        try:
            line = self._file.readline(_MOST_BYTES)
            found = json.loads(line) if line.endswith(b"\n") else None
        except (OSError, ValueError):
            return None
        return found if isinstance(found, list) else None

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()


class _Server:
    """Keeps what was put, and tells all when a process is gone that has not left."""

    def __init__(self, listening: socket.socket, size: int):
        self._listening, self._size = listening, size
        self._values: dict[str, str] = {}
        self._left: set[int] = set()
        self._waiting: dict[str, list[_Line]] = {}  #: those who have asked for what nobody has put yet
        self._guard = locks.lock()
        threading.Thread(target=self._accept, name="smelt-rendezvous", daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                connection, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(_Line(connection),), daemon=True).start()

    def _serve(self, line: _Line) -> None:
        rank = -1
        with contextlib.suppress(OSError, ValueError):  # it is gone, or none of the processes
            while (message := line.read()) is not None:
                what, name, value = message
                if what == "enter":
                    rank = int(name)
                elif what == "leave":
                    self._leave(rank)
                elif what == "put":
                    self._put(name, value)
                else:
                    self._get(name, line)
        if rank >= 0 and rank not in self._left:
            self._put(_GONE, f"process {rank} of {self._size} has ended before the others")

    def _put(self, name: str, value: str) -> None:
        with self._guard:
            self._values.setdefault(name, value)
            for asked in [*self._waiting] if name == _GONE else [name]:
                for line in self._waiting.pop(asked, []):
                    self._get(asked, line)

    def _get(self, name: str, line: _Line) -> None:
        """Answer with what was put, now or when it is."""
        with self._guard, contextlib.suppress(OSError):  # who has asked may be gone
            if name in self._values:
                line.write([True, self._values[name]])
            elif _GONE in self._values:
                line.write([False, self._values[_GONE]])
            else:
                self._waiting.setdefault(name, []).append(line)

    def _leave(self, rank: int) -> None:
        with self._guard:
            self._left.add(rank)

    def close(self) -> None:
        """Wait until all have left, or one is gone."""
        while len(self._left) < self._size and _GONE not in self._values:
            time.sleep(0.005)
        self._put(_GONE, "")
        self._listening.close()


def _tell(line: _Line, what: str, name: str, value: str = "") -> None:
    """Ask the server for something. Raises DistributedError: it has gone."""
    try:
        line.write(what, name, value)
    except OSError as error:
        raise DistributedError(f"smelt.distributed: {_NO_SERVER} ({error})") from None


class Rendezvous:
    """A process's connection to the server, which is in process 0.

    Args:
        rank, size: of this process, and how many there are.
        address: host and port of the server; process 0 listens there.

    Raises:
        DistributedError: nobody listens, or process 0 cannot.
    """

    def __init__(self, rank: int, size: int, address: tuple[str, int]):
        self.rank, self.size = rank, size
        self._address = address
        self._server: _Server | None = None
        if rank == 0:
            try:
                listening = socket.create_server(address)
            except OSError as error:
                raise DistributedError(f"process 0 cannot listen at {address[0]}:{address[1]}: {error}") from None
            self._address = listening.getsockname()[:2]
            self._server = _Server(listening, size)
        self._guard = locks.lock()
        self._line = self._connect()
        _tell(self._line, "enter", str(rank))

    @property
    def address(self) -> tuple[str, int]:
        """Host and port of the server."""
        return self._address

    def _connect(self) -> _Line:
        until = time.monotonic() + PATIENCE
        while True:
            try:
                connection = socket.create_connection(self._address, timeout=PATIENCE)
            except OSError as error:
                if time.monotonic() > until:
                    where = f"{self._address[0]}:{self._address[1]}"
                    message = f"process {self.rank} cannot reach process 0 at {where} ({error})"
                    raise DistributedError(f"smelt.distributed.init: {message}") from None
                time.sleep(0.05)
            else:
                connection.settimeout(None)
                return _Line(connection)

    def put(self, name: str, value: bytes) -> None:
        """Leave bytes for others. What has been put first stays. Raises DistributedError: process 0 has gone."""
        with self._guard:
            _tell(self._line, "put", name, base64.b64encode(value).decode())

    def get(self, name: str) -> bytes:
        """Wait until somebody has put it there, on a connection of its own. Raises DistributedError: nobody will."""
        found = self._ask(name)
        if not found[0]:
            raise DistributedError(f"smelt.distributed: {found[1] or 'the other processes have ended'}")
        return base64.b64decode(found[1])

    def _ask(self, name: str) -> list[Any]:
        line = self._connect()
        _tell(line, "get", name)
        found = line.read()
        line.close()
        return found[0] if found else [False, _NO_SERVER]

    def gone(self) -> str:
        """Wait until a process is gone that has not left; which. Empty when all have left."""
        try:
            return str(self._ask(_GONE)[1])
        except DistributedError:
            return _NO_SERVER

    def leave(self) -> None:
        """This process has done its part. The first one waits for the others."""
        with self._guard, contextlib.suppress(OSError):
            self._line.write("leave", "", "")
        if self._server is not None:
            self._server.close()
