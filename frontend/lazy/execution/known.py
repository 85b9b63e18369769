"""What is known of graphs that were evaluated before, by the structure of their plans; and the pieces of long ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from smelt.ir import locks
from smelt.ir.settings import settings
from smelt.runtime import Buffer, Device, LruCache

from ..core import COMPILED
from ..graph import ALIAS, Node
from . import tiers
from .bound import BoundProgram
from .steps import Plan
from .subgraphs import rolled_subgraph
from .work import work

if TYPE_CHECKING:
    from .changing import Met

#: Graphs are compiled in pieces of at most this many nodes, so that a long chain compiles in
#: bounded time and its repeated pieces share an executable.
MAX_NODES = 1000


class Known:
    """What is known of plans of one structure.

    Attributes:
        key: theirs.
        bound: their program, when it is taken in any case. groups: what they run by as long as there is none, with
            kernels for all sizes.
        structure: what is known of graphs of that structure; it is shared as soon as there is more to do about one.
        is_shared: whether it is.
        ops: how many there are to compile, once that matters.
        in_small_pieces: whether no part of it ever becomes a program; see `in_small_pieces`.
        met: what is known of graphs with the same ops, on a device whose memory is its own.
        is_portable: whether they may run on the host in its place.
    """

    __slots__ = ("bound", "groups", "in_small_pieces", "is_portable", "is_shared", "key", "met", "ops", "structure")

    def __init__(self, key: Any) -> None:
        self.key = key
        self.bound: BoundProgram | None = None
        self.groups: BoundProgram | Literal[False] | None = None  #: False: there can be none; None: not asked yet
        self.structure = tiers.Structure()
        self.is_shared = False
        self.ops: int | None = None
        self.in_small_pieces = False
        self.met: Met | None = None
        self.is_portable = True

    def stays_on_host(self, found: Plan, device: Device) -> bool:
        """Whether a plan runs on the host in place of a device whose memory is its own; see `changing`."""
        order = found.order()
        if self.met is None:
            changing = locks.loaded("smelt.lazy.execution.changing")
            self.met, self.is_portable = changing.met(order), tiers.is_portable(order)
        near = self.is_portable and not self.met.is_on_device and tiers.are_near(_operands(order))
        return near and not self.met.moves(device, found.ops, found.work, found.seconds)

    def rests(self, found: Plan) -> bool:
        """Whether nothing is to be done about a program this time."""
        if self.structure.rests(1, found.seconds):  # the least that there can be to compile
            return True
        if self.ops is None:
            order = found.order()
            self.in_small_pieces = in_small_pieces(order)
            if self.in_small_pieces:
                self.ops = 0
            elif self.structure.rests(tiers.fewest(order), found.seconds):
                return True
            else:
                loops = rolled_subgraph(order, found.kept())
                if loops.kin is not None:
                    self.structure.joins(loops.kin)
                self.ops = tiers.ops_to_compile(loops.body, loops.kin)
                if loops.structure is not None:
                    self.structure.counts(order, self.ops, found.seconds)
        return self.in_small_pieces or self.structure.rests(self.ops, found.seconds)

    def share(self, structure: tiers.Structure) -> None:
        """Take what is known of graphs, and add what is known here."""
        if not self.is_shared:
            structure.adds(self.structure)
        self.structure, self.is_shared = structure, True  # another one, where the cache has let go of the first


#: What is known, by the key of a plan and the name of a device.
by_plan = LruCache(weigh=lambda entry: 2_000)


def known_of(found: Plan, device: Device) -> Known:
    """What is known of the structure of a plan, on a device."""
    key = found.key()
    entry: Known = by_plan.get_or_make((key, device.name), lambda: Known(key))
    return entry


def _operands(order: Sequence[Node]) -> list[Buffer]:
    """The values that nodes read."""
    leaves = dict.fromkeys(ref for node in order for ref in node.inputs)
    return [node.values[i] for node, i in leaves if node.values is not None]


def ends(order: Sequence[Node]) -> Iterator[int]:
    """Where the pieces end that are run one after the other: calls of compiled functions by themselves, what only
    names their results by itself, too."""
    start, end = 0, len(order)
    kinds = [node.op if node.op is COMPILED or node.op is ALIAS else None for node in order]
    for i in range(1, end + 1):
        if i == end or i - start == MAX_NODES or kinds[i] is not kinds[i - 1] or kinds[i] is COMPILED:
            yield i
            start = i


def in_small_pieces(order: Sequence[Node]) -> bool:
    """Whether all is done by libraries, which a program would call, too; or there are calls of compiled functions, and
    each piece between them is run op by op in any case."""
    if all(node.op.kind == "library" for node in order):
        return True
    if not any(node.op is COMPILED for node in order):
        return False
    start = 0
    for end in ends(order):
        piece = order[start:end]
        if piece[0].op is not COMPILED and work(piece) >= settings.small_work:
            return False
        start = end
    return True
