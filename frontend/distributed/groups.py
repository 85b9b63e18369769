"""Groups of processes, over MPI by mpi4py."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from types import TracebackType
from typing import Any

from smelt.ir.errors import ArgumentTypeError, AttributeValueError, DistributedError, at_user_line, shown
from smelt.ir.settings import settings

from ..lazy.explained import explained

__all__ = ["Group", "init", "is_available"]

#: What those who launch MPI programs (Open MPI, MPICH and its kin, Slurm's PMI) leave in the environment.
_LAUNCHED = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "MPI_LOCALNRANKS")
_BACKENDS = ("any", "mpi")

#: The communicators by number; a group is one in programs, which outlive objects.
_communicators: list[Any] = []


class Group:
    """Processes that compute together; `init` and `split` make one.

    >>> import smelt
    >>> smelt.distributed.init()
    Group(rank=0, size=1)
    """

    def __init__(self, communicator: Any = None):
        self._communicator = communicator
        self._number = -1
        if communicator is not None:
            self._number = len(_communicators)
            _communicators.append(communicator)

    def __repr__(self) -> str:
        return f"Group(rank={self.rank()}, size={self.size()})"

    def __copy__(self) -> Group:
        return self

    def __deepcopy__(self, memo: Any) -> Group:
        return self

    def __reduce__(self) -> Any:
        """What another process reads is its own group of all processes."""
        if self._communicator is not None and self is not _world:
            raise DistributedError(at_user_line("smelt.distributed: only the group of all processes can be pickled"))
        return init, ()

    def rank(self) -> int:
        """The number of this process, from 0 on.

        >>> import smelt
        >>> smelt.distributed.init().rank()
        0
        """
        return 0 if self._communicator is None else self._communicator.Get_rank()

    def size(self) -> int:
        """How many processes there are.

        >>> import smelt
        >>> smelt.distributed.init().size()
        1
        """
        return 1 if self._communicator is None else self._communicator.Get_size()

    def split(self, color: int, key: int = -1) -> Group:
        """The group of all processes that give the same `color`. All processes of this group have to call it.

        Args:
            key: ranks are in the order of these; by default in that of the ranks here.

        >>> import smelt
        >>> smelt.distributed.init().split(0).size()
        1
        """
        if self._communicator is None:
            return Group()
        made = self._communicator.Split(color, key if key >= 0 else self.rank())
        return Group(made if made.Get_size() > 1 else None)


def communicator_of(number: int) -> Any:
    """The communicator of a group, by its number."""
    if not 0 <= number < len(_communicators):
        raise DistributedError(at_user_line("smelt.distributed: a program of another group; init makes groups"))
    return _communicators[number]


_world: Group | None = None


def is_available(backend: str = "any") -> bool:
    """Whether several processes can compute together: whether mpi4py is installed.

    >>> import smelt
    >>> smelt.distributed.is_available("ring")
    False
    """
    return backend in _BACKENDS and importlib.util.find_spec("mpi4py") is not None


@explained
def init(strict: bool = False, backend: str = "any", *, all_gather_factory: Any = None) -> Group:
    """The group of all processes that were launched together; of this one, where none were. Again: the same one.

    Where there are several, an uncaught error of one ends them all, and graphs run in one way (`SMELT_TIER` is
    ``program``): which is quicker is not the same in all processes.

    Args:
        strict: it is an error if nothing was launched. backend: ``"mpi"``, or any.
        all_gather_factory: what MLX takes; without effect.

    Raises:
        AttributeValueError: another backend.
        DistributedError: `strict`, and nothing was launched; or something was, and mpi4py is not installed.

    >>> import smelt
    >>> smelt.distributed.init() is smelt.distributed.init()
    True
    """
    global _world
    if backend not in _BACKENDS:
        raise AttributeValueError(
            at_user_line(f"smelt.distributed.init: backend must be any or mpi, is {shown(backend)}")
        )
    if _world is None:
        _world = _launched() if any(name in os.environ for name in _LAUNCHED) else Group()
    if strict and _world.size() == 1:
        message = "nothing was launched; run the program by: smelt launch -n 2 program.py"
        raise DistributedError(at_user_line(f"smelt.distributed.init: {message}"))
    return _world


def _launched() -> Group:
    try:
        MPI = importlib.import_module("mpi4py.MPI")
    except (ImportError, RuntimeError) as error:  # the latter: there is no MPI library
        message = "several processes were launched, which needs mpi4py and an MPI library"
        raise DistributedError(
            at_user_line(f"smelt.distributed.init: {message}: pip install 'smelt-mlir[distributed]' ({error})")
        ) from None
    world = MPI.COMM_WORLD
    if world.Get_size() == 1:
        return Group()
    # Processes that took different ways would meet in different collectives.
    settings.tier = "program"
    previous = sys.excepthook

    def end_all(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        previous(kind, error, traceback)
        sys.stderr.flush()
        world.Abort(1)  # the others would wait for this one for ever

    sys.excepthook = end_all
    return Group(world.Dup())


def group_or_world(name: str, group: Any) -> Group:
    """A group that was given, or that of all processes.

    Raises:
        ArgumentTypeError: it is something else.
    """
    if group is None:
        return init()
    if not isinstance(group, Group):
        raise ArgumentTypeError(
            at_user_line(f"smelt.distributed.{name}: group must be a smelt.distributed.Group, is {shown(group)}")
        )
    return group
