"""Groups of processes, over MPI or NCCL."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import smelt
from smelt.ir.errors import ArgumentTypeError, AttributeValueError, DistributedError, at_user_line, shown
from smelt.ir.settings import settings

from ..lazy.arguments import integer
from ..lazy.explained import explained
from .launched import Processes, by_mpi, by_nccl, number_of

__all__ = ["Group", "init", "is_available"]

_BACKENDS = ("any", "mpi", "nccl")


class Group:
    """Processes that compute together; `init` and `split` make one.

    >>> import smelt
    >>> smelt.distributed.init()
    Group(rank=0, size=1)
    """

    def __init__(self, processes: Processes | None = None):
        self._processes = processes
        #: Which group it is, for the ops of a program: -1 is this process alone.
        self._number = -1 if processes is None else number_of(processes)

    def __repr__(self) -> str:
        return f"Group(rank={self.rank()}, size={self.size()})"

    def __copy__(self) -> Group:
        return self

    def __deepcopy__(self, memo: Any) -> Group:
        return self

    def __reduce__(self) -> Any:
        """What another process reads is its own group of all processes."""
        if self._processes is not None and self is not _world:
            raise DistributedError(at_user_line("smelt.distributed: only the group of all processes can be pickled"))
        return init, ()

    def rank(self) -> int:
        """The number of this process, from 0 on.

        >>> import smelt
        >>> smelt.distributed.init().rank()
        0
        """
        return 0 if self._processes is None else self._processes.rank

    def size(self) -> int:
        """How many processes there are.

        >>> import smelt
        >>> smelt.distributed.init().size()
        1
        """
        return 1 if self._processes is None else self._processes.size

    def split(self, color: int, key: int = -1) -> Group:
        """The group of all processes that give the same `color`. All processes of this group have to call it.

        Args:
            key: ranks are in the order of these; by default in that of the ranks here.

        Raises:
            ArgumentTypeError: `color` or `key` is no int. AttributeValueError: `color` is negative.

        >>> import smelt
        >>> smelt.distributed.init().split(0).size()
        1
        """
        color = integer("distributed.Group.split", "color", color, 0)
        key = integer("distributed.Group.split", "key", key)
        if self._processes is None:
            return Group()
        made = self._processes.split(color, key if key >= 0 else self.rank())
        return Group(made if made.size > 1 else None)


#: The group of all processes, and what it talks over.
_world: Group | None = None
_backend = ""


def is_available(backend: str = "any") -> bool:
    """Whether several processes can compute together: whether mpi4py is installed, or NCCL, beside a GPU for it.

    >>> import smelt
    >>> smelt.distributed.is_available("ring")
    False
    """
    if backend == "any":
        return is_available("mpi") or is_available("nccl")
    if backend == "nccl":
        found: bool = smelt.is_available("cuda") and _part("nccl").collectives.is_installed()
        return found
    return backend in _BACKENDS and importlib.util.find_spec("mpi4py") is not None


def _part(name: str) -> Any:
    """A module beside this one, which a program without several processes does without."""
    return importlib.import_module(f"{__package__}.{name}")


@explained
def init(strict: bool = False, backend: str = "any", *, all_gather_factory: Any = None) -> Group:
    """The group of all processes that were launched together; of this one, where none were. Again: the same one.

    Where there are several, an uncaught error of one ends them all, and graphs run in one way (`SMELT_TIER` is
    ``program``): which is quicker is not the same in all processes. Over NCCL each has a GPU of its own, the one of its
    number among those here: programs of the device ``cuda`` run there, and what they do together stays there.

    Args:
        strict: it is an error if nothing was launched. backend: ``"mpi"``, ``"nccl"``, or any: NCCL where
            ``smelt launch --backend nccl`` launched, or who else sets ``NCCL_HOST_IP``, ``NCCL_PORT``, ``MLX_RANK`` and
            ``MLX_WORLD_SIZE``; else MPI. Processes that MPI launched can have ``"nccl"``, too.
        all_gather_factory: what MLX takes; without effect.

    Raises:
        AttributeValueError: another backend.
        DistributedError: `strict`, and nothing was launched; or something was, and mpi4py, or NCCL, is not installed;
            or there is another backend already.

    >>> import smelt
    >>> smelt.distributed.init() is smelt.distributed.init()
    True
    """
    global _world, _backend
    if backend not in _BACKENDS:
        names = ", ".join(_BACKENDS[:-1])
        raise AttributeValueError(
            at_user_line(f"smelt.distributed.init: backend must be {names} or {_BACKENDS[-1]}, is {shown(backend)}")
        )
    if _world is None:
        _backend = backend if backend != "any" else "nccl" if by_nccl() else "mpi"
        _world = _launched(_backend)
    if backend not in ("any", _backend) and _world.size() > 1:
        message = f"processes compute together over {_backend} already, not over {backend}"
        raise DistributedError(at_user_line(f"smelt.distributed.init: {message}"))
    if strict and _world.size() == 1:
        message = "nothing was launched; run the program by: smelt launch -n 2 program.py"
        raise DistributedError(at_user_line(f"smelt.distributed.init: {message}"))
    return _world


def _launched(backend: str) -> Group:
    if not (by_mpi() or (backend == "nccl" and by_nccl())):
        return Group()
    made = _over_nccl() if backend == "nccl" else _over_mpi()
    if made.size == 1:
        return Group()
    # Processes that took different ways would meet in different collectives.
    settings.tier = "program"
    return Group(made)


def _over_mpi() -> Processes:
    try:
        importlib.import_module("mpi4py.MPI")
    except (ImportError, RuntimeError) as error:  # the latter: there is no MPI library
        message = "several processes were launched, which needs mpi4py and an MPI library"
        raise DistributedError(
            at_user_line(f"smelt.distributed.init: {message}: pip install 'smelt-mlir[distributed]' ({error})")
        ) from None
    found: Processes = _part("mpi").connect()
    return found


def _over_nccl() -> Processes:
    if by_nccl():
        found: Processes = _part("nccl").connect()
        return found
    found = _over_mpi()
    if found.size > 1:
        found = _part("nccl").connect_over(found)
    return found


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
