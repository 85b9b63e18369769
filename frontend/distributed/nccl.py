"""Groups over NCCL: processes with a GPU each."""

from __future__ import annotations

import atexit
import os
import socket
import sys
import threading
from collections.abc import Mapping
from types import MappingProxyType, TracebackType
from typing import Any

import numpy as np

from smelt.backends.buffer import Buffer
from smelt.backends.cuda import collectives, driver
from smelt.backends.cuda.installed import plan
from smelt.backends.cuda.memory import MEMORY
from smelt.backends.gpu.custom import LIBRARY_LANGUAGE
from smelt.backends.gpu.library import Collective
from smelt.ir import dtypes
from smelt.ir.custom_call import Call, Target, register_target
from smelt.ir.dtypes import DType
from smelt.ir.errors import DistributedError, SmeltError, at_user_line

from .calls import BATCH, CALLS
from .launched import NCCL, Processes, processes_of
from .rendezvous import Rendezvous


class NcclProcesses(Processes):
    """A group over NCCL."""

    calls = "smelt.distributed.nccl"
    wider: Mapping[DType, DType] = MappingProxyType({dtypes.int16: dtypes.int32, dtypes.uint16: dtypes.uint32})

    def __init__(self, group: collectives.Group):
        self.group, self.number = group, collectives.numbered(group)

    @property
    def rank(self) -> int:
        return self.group.communicator.rank

    @property
    def size(self) -> int:
        return self.group.communicator.size

    def split(self, color: int, key: int) -> NcclProcesses:
        return NcclProcesses(self.group.split(color, key))


def connect() -> NcclProcesses:
    """All processes that were launched together. Raises DistributedError: see `smelt.distributed.init`."""
    try:
        rank, size, port = (int(os.environ[name]) for name in (NCCL.rank, NCCL.size, NCCL.port))
    except ValueError:
        values = ", ".join(f"{name}={os.environ[name]}" for name in NCCL)
        raise DistributedError(at_user_line(f"smelt.distributed.init: numbers are wanted: {values}")) from None
    return together(Rendezvous(rank, size, (os.environ[NCCL.host], port)))


def connect_over(processes: Any) -> NcclProcesses:
    """The same processes as those of a communicator of MPI, which tells all where the first one listens."""
    rank, size, tell = processes.rank, processes.size, processes.communicator.bcast
    if rank == 0:
        meeting = Rendezvous(rank, size, (socket.gethostname(), 0))
        tell(meeting.address)
    else:
        meeting = Rendezvous(rank, size, tell(None))
    return together(meeting)


def together(meeting: Rendezvous) -> NcclProcesses:
    """The processes that met, each on its GPU."""
    try:
        found = NcclProcesses(collectives.connect(meeting, meeting.rank, meeting.size))
    except SmeltError as error:
        raise DistributedError(at_user_line(f"smelt.distributed.init: {error}")) from None
    threading.Thread(target=_watch, args=(meeting,), name="smelt-watch", daemon=True).start()
    failed: list[BaseException] = []
    previous = sys.excepthook

    def note(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        failed.append(error)
        previous(kind, error, traceback)

    def end() -> None:
        if failed:  # the others see that this process is gone
            return
        collectives.finish()
        meeting.leave()

    sys.excepthook = note
    atexit.register(end)
    return found


def _watch(meeting: Rendezvous) -> None:
    reason = meeting.gone()
    if reason:
        collectives.lose(reason)


def _step(call: Call) -> Collective:
    """What NCCL does for a call."""
    name = call.target.rsplit(".", 1)[1]
    how, operation = CALLS[name]
    given = call.parameters
    x, out = call.operands[0], call.results[0]
    dtype, count = x.dtype.name, out.size if how in ("scatter", "recv") else x.size
    if how in ("gather", "send", "recv"):
        dtype, count = "uint8", count * x.dtype.size
    process, order = (given["process"], given["order"]) if how in ("send", "recv") else (-1, 0)
    processes = processes_of(given["group"])
    assert isinstance(processes, NcclProcesses)
    return Collective(how, operation, dtype, count, processes.number, len(call.operands), process, order)


def _host(call: Call, *operands: np.ndarray) -> np.ndarray:
    """For arrays of the CPU: they go to the GPU and come back."""
    driver.enter()
    given = [MEMORY.adopt(Buffer.of(x, aval)) for x, aval in zip(operands, call.operands)]
    result = MEMORY.empty(call.results[0])
    plan(_step(call)).run([b.home.address for b in (*given, result)])
    found: np.ndarray = result.home.to_host(call.results[0])
    return found


for _name in CALLS:
    register_target(
        Target(
            f"{NcclProcesses.calls}.{_name}", _host, {LIBRARY_LANGUAGE: _step}, vectorized=True, batch=BATCH.get(_name)
        )
    )
