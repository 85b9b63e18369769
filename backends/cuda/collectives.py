"""What processes compute together by NCCL, each on a GPU of its own: from a `Collective` to its functions.

Numbers are those of ``nccl.h``. All steps are put on the stream of launches and do not wait. What is sent is handed
over by a thread for each destination, on a stream of its own: two processes may send to each other before they receive.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from smelt.ir import locks
from smelt.ir.errors import DistributedError

from ..gpu.library import Collective
from . import driver, libraries
from .libraries import load, opened
from .messages import Receiver, Sender

#: ncclDataType_t, and how many of it an element is.
TYPES = {
    "bool": (1, 1), "int8": (0, 1), "uint8": (1, 1), "int32": (2, 1), "uint32": (3, 1), "int64": (4, 1),
    "uint64": (5, 1), "float16": (6, 1), "float32": (7, 1), "float64": (8, 1), "bfloat16": (9, 1), "complex64": (7, 2),
    "complex128": (8, 2),
}  # fmt: skip
#: ncclRedOp_t.
_OPERATIONS = {"sum": 0, "max": 2, "min": 3}
#: Sums of truth values: whether any is true.
_OF_BOOLS = {"sum": "max", "max": "max", "min": "min"}
_SUCCESS, _IN_PROGRESS = 0, 7
_ID_BYTES = 128


class UniqueId(ctypes.Structure):
    """ncclUniqueId: by it processes find each other."""

    _fields_ = [("internal", ctypes.c_char * _ID_BYTES)]

    @classmethod
    def of(cls, content: bytes) -> UniqueId:
        return cls.from_buffer_copy(content)


class Board(Protocol):
    """Where processes leave bytes for each other, by name."""

    def put(self, name: str, value: bytes) -> None: ...

    def get(self, name: str) -> bytes:
        """Waits until somebody has put it there. Raises DistributedError: nobody will."""
        ...


class Library(libraries.Library["Collective", "Plan"]):
    """NCCL."""

    describe = "ncclGetErrorString"

    def __init__(self, library: Any):
        library.ncclGetLastError.restype = ctypes.c_char_p
        super().__init__(library)

    def call(self, name: str, *arguments: object) -> None:
        """Calls the library. Raises DistributedError: its name of an error, and what it says of it."""
        code = self.status(name, *arguments)
        if code not in (_SUCCESS, _IN_PROGRESS):
            raise DistributedError(f"{name}: {self.text(code)}")

    def _planned(self, step: Collective) -> Plan:
        return Plan(step)

    def text(self, code: int) -> str:
        """What an error is called, and the last thing that went wrong."""
        name = (self._library.ncclGetErrorString(code) or b"unknown error").decode(errors="replace")
        last = (self._library.ncclGetLastError(None) or b"").decode(errors="replace").strip()
        hint = "; each process needs a GPU of its own" if "uplicate GPU" in last else ""
        return f"{name} ({code})" + (f": {last}" if last else "") + hint

    def new_id(self) -> bytes:
        """A new name by which processes find each other."""
        made = UniqueId()
        self.call("ncclGetUniqueId", ctypes.byref(made))
        return bytes(made)


class Communicator:
    """The processes of a group, as NCCL has them.

    Attributes:
        rank, size: of this process, and how many there are.
    """

    def __init__(self, library: Library, handle: ctypes.c_void_p, rank: int, size: int):
        self.library, self.handle, self.rank, self.size = library, handle, rank, size
        self._is_aborted, self._guard = False, locks.lock()

    @classmethod
    def connect(cls, library: Library, name: bytes, rank: int, size: int) -> Communicator:
        """With all that have the same name, which all have to call it. Raises DistributedError from NCCL."""
        driver.enter()
        handle = ctypes.c_void_p()
        library.call("ncclCommInitRank", ctypes.byref(handle), size, UniqueId.of(name), rank)
        return cls(library, handle, rank, size)

    def split(self, color: int, key: int) -> Communicator:
        """With all that give the same color. All have to call it."""
        driver.enter()
        handle, rank, size = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_int()
        self.library.call("ncclCommSplit", self.handle, color, key, ctypes.byref(handle), None)
        self.library.call("ncclCommUserRank", handle, ctypes.byref(rank))
        self.library.call("ncclCommCount", handle, ctypes.byref(size))
        return Communicator(self.library, handle, rank.value, size.value)

    def check(self) -> None:
        """Raises DistributedError: something went wrong since."""
        code = ctypes.c_int()
        with self._guard:  # aborted meanwhile, the handle would be none
            if not self._is_aborted:
                self.library.call("ncclCommGetAsyncError", self.handle, ctypes.byref(code))
        if code.value not in (_SUCCESS, _IN_PROGRESS):
            raise DistributedError(f"NCCL: {self.library.text(code.value)}")

    def abort(self) -> None:
        """End what it does: others have gone."""
        with self._guard:
            if not self._is_aborted:
                self._is_aborted = True
                self.library.call("ncclCommAbort", self.handle)

    def run(self, name: str, *arguments: object, stream: Any = None) -> None:
        """Put a function on a stream; None: that of all launches. Raises DistributedError: others have gone."""
        check_gone()
        driver.enter()
        self.library.call(name, *arguments, self.handle, stream)


class Group:
    """A communicator with its messages.

    Attributes:
        name: what all of its processes call it.
    """

    def __init__(self, communicator: Communicator, board: Board, name: str):
        self.communicator, self.name = communicator, name
        self._board, self._splits, self._guard = board, 0, locks.lock()
        self._senders: dict[tuple[int, int], Sender] = {}
        self._receivers: dict[tuple[int, int], Receiver] = {}

    def split(self, color: int, key: int) -> Group:
        self._splits += 1
        made = self.communicator.split(color, key)
        return Group(_kept(made), self._board, f"{self.name}/{self._splits}.{color}")

    def _pair(self, sends: bool, source: int, target: int, order: int) -> Communicator:
        """The two processes of a message: the one that sends it is the first."""
        name = f"{self.name}:{source}>{target}.{order}"
        library = self.communicator.library
        if sends:
            self._board.put(name, library.new_id())
        return _kept(Communicator.connect(library, self._board.get(name), 0 if sends else 1, 2))

    def sender(self, process: int, order: int) -> Sender:
        """The sender of the messages to a process that belong to one order (`Step.order`)."""
        with self._guard:
            if (process, order) not in self._senders:
                connect = functools.partial(self._pair, True, self.communicator.rank, process, order)
                self._senders[process, order] = Sender(connect)
            return self._senders[process, order]

    def receiver(self, process: int, order: int) -> Receiver:
        """The receiver of the messages from a process that belong to one order."""
        with self._guard:
            if (process, order) not in self._receivers:
                connect = functools.partial(self._pair, False, process, self.communicator.rank, order)
                self._receivers[process, order] = Receiver(connect)
            return self._receivers[process, order]

    def finish(self) -> None:
        """Wait until all messages have been sent. Raises DistributedError: some could not be."""
        for sender in list(self._senders.values()):
            sender.finish()


#: All groups by number, in programs, and all communicators.
_groups: list[Group] = []
_communicators: list[Communicator] = []
#: Why others have gone.
_lost: list[str] = []


def _kept(communicator: Communicator) -> Communicator:
    _communicators.append(communicator)
    if _lost:  # meanwhile
        communicator.abort()
    return communicator


def numbered(group: Group) -> int:
    """The number by which programs name a group."""
    _groups.append(group)
    return len(_groups) - 1


def connect(board: Board, rank: int, size: int) -> Group:
    """All processes, each on a GPU of its own: that of its number among those here, as long as there are so many.

    Raises:
        DistributedError: NCCL is not installed, or refuses. DeviceError: this process has used another GPU already.
    """
    driver.choose(rank % driver.count())
    found = library()
    if found is None:
        raise DistributedError("NCCL is not installed: pip install nvidia-nccl-cu13, or -cu12 for CUDA 12")
    if rank == 0:
        board.put("world", found.new_id())
    made = _kept(Communicator.connect(found, board.get("world"), rank, size))
    if check not in driver.checks:
        driver.checks.append(check)
    return Group(made, board, "world")


def lose(reason: str) -> None:
    """Others have gone: what waits for them ends, and says why."""
    _lost.append(reason)
    for communicator in list(_communicators):
        with contextlib.suppress(DistributedError):  # the others have to end, too
            communicator.abort()


def check() -> None:
    """Raises DistributedError where processes have gone, or NCCL has failed."""
    if _lost:
        raise DistributedError(f"smelt.distributed: {_lost[0]}")
    for communicator in _communicators:
        communicator.check()


def finish() -> None:
    """Wait until all messages have been sent, and all steps are done. Raises DistributedError: see `check`, or some
    could not be sent."""
    for group in _groups:
        group.finish()
    driver.synchronize()


class Plan(libraries.Plan):
    """How a step is done: a call of NCCL.

    A step of several processes is part of a graph in all of them or in none, and each has memory of its own.
    """

    in_graphs = False

    def __init__(self, step: Collective):
        self._step, self._group = step, _groups[step.group]
        number, self._each = TYPES[step.dtype]
        self._type, self._size = ctypes.c_int(number), ctypes.c_size_t(step.count * self._each)
        operation = _OF_BOOLS[step.operation] if step.dtype == "bool" else step.operation
        self._operation = ctypes.c_int(_OPERATIONS[operation])

    def run(self, addresses: Sequence[int], stream: ctypes.c_void_p | None = None) -> None:
        """See `smelt.backends.cuda.installed.Plan`. Messages stand on the stream of all launches."""
        check_gone()
        if self._step.count:
            source, target = ctypes.c_void_p(addresses[0]), ctypes.c_void_p(addresses[self._step.out])
            _HOW[self._step.how](self, source, target, stream)

    def _reduce(self, source: Any, target: Any, stream: Any) -> None:
        self._group.communicator.run(
            "ncclAllReduce", source, target, self._size, self._type, self._operation, stream=stream
        )

    def _gather(self, source: Any, target: Any, stream: Any) -> None:
        self._group.communicator.run("ncclAllGather", source, target, self._size, self._type, stream=stream)

    def _scatter(self, source: Any, target: Any, stream: Any) -> None:
        self._group.communicator.run(
            "ncclReduceScatter", source, target, self._size, self._type, self._operation, stream=stream
        )

    def _send(self, source: Any, target: Any, stream: Any) -> None:
        driver.enter()
        driver.copy(target.value, source.value, self._size.value)
        self._group.sender(self._step.process, self._step.order).send(source.value, self._size.value)

    def _recv(self, source: Any, target: Any, stream: Any) -> None:
        self._group.receiver(self._step.process, self._step.order).recv(target.value, self._size.value)


_HOW: dict[str, Callable[[Plan, Any, Any, Any], None]] = {
    "reduce": Plan._reduce, "gather": Plan._gather, "scatter": Plan._scatter, "send": Plan._send, "recv": Plan._recv,
}  # fmt: skip


def check_gone() -> None:
    """Raises DistributedError where processes have gone: what would be done with them would wait for ever."""
    if _lost:
        check()


def is_installed() -> bool:
    """Whether there is NCCL."""
    return load("nccl") is not None


@functools.cache
def library() -> Library | None:
    """NCCL; None where it is not installed."""
    return opened(Library, load("nccl"))
