"""Groups over MPI, by mpi4py: calls on the host."""

from __future__ import annotations

import atexit
import ctypes
import functools
import sys
from collections.abc import Callable, Mapping
from types import MappingProxyType, TracebackType
from typing import Any

import numpy as np

from smelt.ir import locks
from smelt.ir.custom_call import Call, Target, register_target
from smelt.ir.dtypes import DType
from smelt.ir.errors import DistributedError

from .calls import BATCH, CALLS
from .launched import Processes, processes_of

#: Sends that may still read their memory.
_pending: list[tuple[Any, np.ndarray]] = []
_sending = locks.lock()


@atexit.register
def _keep_pending() -> None:
    """Never free what MPI still reads: it sends until it is finalized, when nothing of Python's modules is left."""
    for _, memory in _pending:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(memory))


@functools.cache
def _mpi() -> Any:
    from mpi4py import MPI  # only where processes were launched: nobody else has it, and it starts MPI

    return MPI


class MpiProcesses(Processes):
    """A communicator."""

    calls = "smelt.distributed"
    wider: Mapping[DType, DType] = MappingProxyType({})

    def __init__(self, communicator: Any):
        self.communicator = communicator

    @property
    def rank(self) -> int:
        found: int = self.communicator.Get_rank()
        return found

    @property
    def size(self) -> int:
        found: int = self.communicator.Get_size()
        return found

    def split(self, color: int, key: int) -> MpiProcesses:
        return MpiProcesses(self.communicator.Split(color, key))


def connect() -> MpiProcesses:
    """All processes that were launched together. An uncaught error of one ends them all."""
    world = _mpi().COMM_WORLD
    if world.Get_size() > 1:
        previous = sys.excepthook

        def end_all(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
            previous(kind, error, traceback)
            sys.stderr.flush()
            world.Abort(1)  # the others would wait for this one for ever

        sys.excepthook = end_all
    return MpiProcesses(world.Dup())


# Types that MPI does not have travel as bytes, and are added up in single precision.


def _communicator(call: Call) -> Any:
    processes = processes_of(call.parameters["group"])
    assert isinstance(processes, MpiProcesses)
    return processes.communicator


def _wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float32) if x.dtype.itemsize == 2 and x.dtype.kind not in "iu" else np.asarray(x, order="C")


def _reduced(how: str) -> Callable[[Call, np.ndarray], np.ndarray]:
    def run(call: Call, x: np.ndarray) -> np.ndarray:
        wide = _wide(x)
        result = np.empty_like(wide)
        _communicator(call).Allreduce(wide, result, op=_operation(how, x.dtype))
        return result.astype(x.dtype)

    return run


_OPERATIONS = {"sum": "SUM", "max": "MAX", "min": "MIN"}
#: What sums and extremes of truth values are.
_OF_BOOLS = {"sum": "LOR", "max": "LOR", "min": "LAND"}


def _operation(how: str, dtype: np.dtype) -> Any:
    return getattr(_mpi(), (_OF_BOOLS if dtype == np.bool_ else _OPERATIONS)[how])


def _gather(call: Call, x: np.ndarray) -> np.ndarray:
    sent = np.asarray(x, order="C")
    found = np.empty(call.results[0].shape, x.dtype)
    _communicator(call).Allgather(sent.reshape(-1).view(np.uint8), found.reshape(-1).view(np.uint8))
    return found


def _scatter(call: Call, x: np.ndarray) -> np.ndarray:
    wide = _wide(x)
    result = np.empty(wide.shape[1:], wide.dtype)
    _communicator(call).Reduce_scatter_block(wide, result, op=_operation("sum", x.dtype))
    return result.astype(x.dtype)


def _send(call: Call, x: np.ndarray, *_: np.ndarray) -> np.ndarray:
    # Without waiting for who receives it: two processes that send to each other would wait for ever.
    held = np.array(x, order="C")
    to, tag = call.parameters["process"], call.parameters["order"]
    request = _communicator(call).Isend(held.reshape(-1).view(np.uint8), dest=to, tag=tag)
    with _sending:
        _keep(request, held)
    return x


def _keep(request: Any, held: np.ndarray) -> None:
    """Keep what is being sent, and no longer what has been."""
    _pending[:] = [(r, memory) for r, memory in [*_pending, (request, held)] if not r.Test()]


def _recv(call: Call, *_: np.ndarray) -> np.ndarray:
    MPI = _mpi()
    wanted, status = call.results[0], MPI.Status()
    found = np.empty(wanted.shape, wanted.dtype.numpy)
    into = found.reshape(-1).view(np.uint8)
    source = call.parameters["process"]
    try:
        _communicator(call).Recv(into, source=source, tag=call.parameters["order"], status=status)
        size = status.Get_count(MPI.BYTE)
    except MPI.Exception as error:
        if error.Get_error_class() != MPI.ERR_TRUNCATE:
            raise
        size = -1
    if size != into.size:
        sent = "more" if size < 0 else f"{size} bytes"
        raise DistributedError(
            f"smelt.distributed.recv: {wanted} has {into.size} bytes, process {source} sent {sent}; shape and dtype "
            "must be those of what is sent"
        )
    return found


_HOW: dict[str, Callable[..., np.ndarray]] = {"gather": _gather, "scatter": _scatter, "send": _send, "recv": _recv}
for _name, (_how, _operator) in CALLS.items():
    _host = _reduced(_operator) if _how == "reduce" else _HOW[_how]
    register_target(Target(f"{MpiProcesses.calls}.{_name}", _host, vectorized=True, batch=BATCH.get(_name)))
