"""What those who launch programs leave in the environment, and what a group consists of."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from typing import NamedTuple, Protocol

from smelt.ir.dtypes import DType
from smelt.ir.errors import DistributedError, at_user_line

#: What those who launch MPI programs (Open MPI, MPICH and its kin, Slurm's PMI) leave.
MPI = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "MPI_LOCALNRANKS")


class _Nccl(NamedTuple):
    """Names of variables, those of MLX."""

    host: str = "NCCL_HOST_IP"
    port: str = "NCCL_PORT"
    rank: str = "MLX_RANK"
    size: str = "MLX_WORLD_SIZE"


NCCL = _Nccl()


def by_mpi() -> bool:
    """Whether this process was launched by MPI."""
    return any(name in os.environ for name in MPI)


def by_nccl() -> bool:
    """Whether this process was launched with an address at which all meet."""
    return all(name in os.environ for name in NCCL)


class Processes(Protocol):
    """The processes of a group.

    Attributes:
        rank, size: the number of this one, and how many there are.
        calls: what the names of its targets begin with.
        wider: for dtypes that it has no sums and extremes of, in which these are taken.
    """

    calls: str
    wider: Mapping[DType, DType]

    @property
    def rank(self) -> int: ...

    @property
    def size(self) -> int: ...

    def split(self, color: int, key: int) -> Processes:
        """Those that give the same color. All have to call it."""
        ...


#: The processes of groups by number; a group is one in programs, which outlive objects.
_numbered: dict[int, Processes] = {}
_numbers = itertools.count()


def number_of(processes: Processes) -> int:
    """A new number for the processes of a group."""
    number = next(_numbers)
    _numbered[number] = processes
    return number


def processes_of(number: int) -> Processes:
    """The processes of a group, by its number."""
    if number not in _numbered:
        raise DistributedError(at_user_line("smelt.distributed: a program of another group; init makes groups"))
    return _numbered[number]
