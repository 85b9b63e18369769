"""How threads share the rows of a reduction.

Where memory is contiguous along the row, the threads of a team stand side by side in it. Where it is
contiguous across rows, neighbouring threads take neighbouring rows ("columns"), and the lines of a
threadgroup share the elements of each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from smelt.backends.lowering import Fused, fuse_variables
from smelt.backends.plan import Plan
from smelt.backends.recompute import is_reduced
from smelt.ir.builder import Value
from smelt.ir.index import linearize, names_of
from smelt.passes.kernels.analysis import Coordinates, reduced_axes

from ...devices import Gpu
from ...kernel import vector_offset
from ..parts import power_of_two

#: Bytes of a vector load or store, and its elements at most.
VECTOR_BYTES = 16
VECTOR_WIDTH = 4
#: Values that a thread takes of each array before it looks at them: enough loads on their way at once.
VALUES = 16
#: Bytes next to each other that make a good memory access.
LINE_BYTES = 64
#: With fewer threadgroups than this a GPU has nothing to do while one of them waits.
ENOUGH_GROUPS = 256
ENOUGH_THREADS = 65536
#: So many that it does not matter if the last of them find the GPU half empty.
MANY_GROUPS = 512
#: Threadgroups that a GPU runs at a time, more or less.
MOST_GROUPS = 1024
#: The same of those that have many registers, and meet in the end.
REDUCING_GROUPS = 512
#: So many that they end about the same time, however many run at a time.
WRITING_GROUPS = 2048


@dataclass(frozen=True)
class Team:
    """The threads that share a row.

    Attributes:
        lines: threads of one team; a power of two.
        across: rows whose threads stand next to each other; more than one only for columns.
        threads: in a threadgroup.
    """

    lines: int
    across: int
    threads: int
    columns: bool

    @property
    def rows(self) -> int:
        """Teams in a threadgroup."""
        return self.threads // self.lines


@dataclass(frozen=True, eq=False)
class Space:
    """The loops over one row, as items: positions, or vectors of them where the row is contiguous.

    Attributes:
        loops: merged loops, the one along which memory is contiguous last.
        extent: elements of the row.
        width: neighbouring elements that belong to one item.
        items: of the row.
        count: items that a thread takes in one go; tiles: how often it does.
    """

    loops: Sequence[Fused]
    extent: int
    width: int
    items: int
    count: int
    tiles: int

    @property
    def values(self) -> int:
        """Elements of the row that a thread takes in one go."""
        return self.count * self.width


@dataclass
class Layout:
    """How the threads of a kernel share its rows.

    Attributes:
        spaces: inner extents → how a team goes over them.
        rows: of the fusion; width: neighbouring rows of one thread.
    """

    team: Team
    kept: list[Fused]
    spaces: dict[tuple[int, ...], Space]
    rows: int
    width: int

    @property
    def groups(self) -> int:
        """Threadgroups that have a row."""
        return -(-(self.rows // self.width) // self.team.rows)


def accesses(plan: Plan) -> list[tuple[Value, Coordinates]]:
    """What the kernel reads, and the outputs that it writes, with their places."""
    outputs = [(v, plan.places[v]) for v in plan.body.returns if v in plan.places and not is_reduced(v)]
    return [*plan.loads, *outputs]


def _bytes(access: tuple[Value, Coordinates]) -> int:
    v, at = access
    used = {a for i in at for a in i.atoms() if a.kind == "var"}
    return v.dtype.size * math.prod(a.hi + 1 for a in used)


def _contiguous(plan: Plan, loop: Fused) -> int:
    """Bytes of arrays that are contiguous along a loop."""
    return sum(_bytes(x) for x in accesses(plan) if vector_offset(linearize(x[1], x[0].shape), loop, 1))


def is_columns(plan: Plan, kept: Sequence[Fused], spaces: dict[tuple[int, ...], list[Fused]]) -> bool:
    """Whether memory is contiguous across rows rather than along them."""
    if not kept:
        return False
    along = max((_contiguous(plan, loop) for loops in spaces.values() for loop in loops), default=0)
    across = _contiguous(plan, kept[-1])
    if along != across:
        return across > along
    op = max(plan.reductions, key=lambda op: op.operands[0].aval.size)
    shape, gone = op.operands[0].shape, reduced_axes(op)
    real = [a for a in range(len(shape)) if shape[a] != 1]
    return bool(real) and real[-1] not in gone


def inner_loops(plan: Plan) -> dict[tuple[int, ...], list[Fused]]:
    """The merged loops of each inner space, the one along which most memory is contiguous last."""
    found = {}
    for space, names in plan.spaces.items():
        loops = fuse_variables(names, plan.uses)
        if len(loops) > 1:
            best = max(range(len(loops)), key=lambda i: (_contiguous(plan, loops[i]), i))
            loops = [*loops[:best], *loops[best + 1 :], loops[best]]
        found[space] = loops
    return found


def lane_width(plan: Plan, lane: Fused, ragged: bool = False) -> int:
    """Neighbouring elements along `lane` that a thread takes together.

    Args:
        ragged: the loop's last elements, less than a vector, are seen to otherwise.
    """
    found = [x for x in accesses(plan) if x[0].dtype.kind != "c" and _moves(x[1], lane)]
    most = max(map(_bytes, found), default=0)
    along = [
        linearize(at, v.shape)
        for v, at in found
        if 2 * _bytes((v, at)) >= most and vector_offset(linearize(at, v.shape), lane, 1)
    ]
    sizes = [v.dtype.size for v, at in found if vector_offset(linearize(at, v.shape), lane, 1)]
    if not along:
        return 1
    if _moves(tuple(plan.kept), lane):  # results of reductions are stored as vectors, too
        sizes += [v.dtype.size for v in plan.body.returns if is_reduced(v)]
    width = max(1, min(VECTOR_WIDTH, VECTOR_BYTES // max(sizes)))
    while width > 1:
        if (ragged or lane.extent % width == 0) and all(vector_offset(index, lane, width) for index in along):
            return width
        width //= 2
    return 1


def _moves(at: Coordinates, loop: Fused) -> bool:
    return bool(set(loop.names) & names_of(at))


def row_team(gpu: Gpu, rows: int, items: int, width: int, held: int, size: int) -> Team:
    """A team that stands side by side in a row.

    Args:
        items: of the longest row, of `width` elements each.
        held: arrays that are to stay in registers.
        size: bytes of an element.
    """
    most = min(gpu.row_threads, gpu.max_threads)
    limit = gpu.row_values

    def values(lines: int) -> int:
        return -(-items // lines) * width

    lines = 1
    while lines < most and values(lines) > (limit // held if held and lines >= gpu.simd else VALUES):
        lines *= 2
    if values(lines) > max(VALUES, limit // held if held else 0):  # in several goes
        lines = gpu.threads
    while lines < most and rows * lines < ENOUGH_THREADS and values(lines) >= 2 * width:
        lines *= 2
    if lines > gpu.simd:
        return Team(lines, 1, lines, False)
    if width * size == VECTOR_BYTES:  # neighbours read a line together
        lines = max(lines, min(LINE_BYTES // VECTOR_BYTES, 1 << (items.bit_length() - 1)) if items else 1)
    threads = min(gpu.threads, max(gpu.simd, power_of_two(rows) * lines))
    return Team(lines, 1, threads, False)


def column_team(
    gpu: Gpu, rows: int, items: int, width: int, held: int, size: int, state_bytes: int, whole: bool = True
) -> Team:
    """Lines of threads across neighbouring rows.

    Args:
        rows: vectors of `width` rows; size: bytes of an element.
        items: elements of the longest row.
        held: arrays that are to stay in registers; state_bytes: of all partial results of one row.
        whole: a threadgroup sees to all of a row, so that there are no more threadgroups than rows.
    """
    across = min(gpu.simd, power_of_two(rows))
    lines = max(1, min(gpu.threads // across, power_of_two(items) // 4))
    if held:
        wanted = power_of_two(-(-items * width * held // gpu.row_values))
        narrow = across
        while narrow > 1 and wanted * narrow > gpu.max_threads:
            narrow //= 2
        if wanted * narrow <= gpu.max_threads and narrow * width * size >= min(LINE_BYTES, rows * width * size):
            across, lines = narrow, max(wanted, min(lines, gpu.threads // narrow))
    while whole and -(-rows // across) < MANY_GROUPS and across * width * size > LINE_BYTES and 8 * lines < items:
        across, lines = across // 2, lines * 2
    while lines * 2 * across <= gpu.threads and rows * lines < ENOUGH_THREADS and lines < items:
        lines *= 2

    def fits(lines: int, across: int) -> bool:
        return lines == 1 or lines * across * width * state_bytes <= gpu.threadgroup_bytes

    while not fits(lines, across):
        lines //= 2
    while across < gpu.threads // lines and across < rows and lines * across < gpu.threads and fits(lines, 2 * across):
        across *= 2
    lines = max(lines, gpu.simd // across)
    return Team(lines, across, lines * across, True)


def space_of(team: Team, loops: Sequence[Fused], width: int, held: int, limit: int) -> Space:
    """How a team goes over a row; `width`: of the vectors along it."""
    extent = math.prod(loop.extent for loop in loops)
    own = 1 if team.columns else width
    items = extent // own
    count = -(-items // team.lines)
    if count * width * max(1, held) > max(limit, VALUES):
        count = max(1, VALUES // width)
    return Space(loops, extent, own, items, count, -(-items // (team.lines * count)) if items else 0)
