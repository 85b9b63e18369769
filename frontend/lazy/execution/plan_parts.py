"""Steps of a plan as few parts: those that the device runs in one go are one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from smelt.backends.strided import LaunchSequence, PlannedLaunch, StridedKernels


class Part(NamedTuple):
    """What is run at once.

    Attributes:
        step: None: there are several. sequence: what runs them; None: `step` runs by itself.
        dead: numbers of memories that nothing needs afterwards, without those that a sequence has for itself.
    """

    step: PlannedLaunch | None
    sequence: LaunchSequence | None
    dead: tuple[int, ...]


def parts_of(
    launches: Sequence[PlannedLaunch], kernels: StridedKernels, nbytes: Sequence[int], lasting: Collection[int]
) -> list[Part]:
    """Launches as parts.

    Args:
        launches: in order. kernels: what runs them.
        nbytes: of each memory. lasting: numbers of those that are needed in the end.
    """
    joins = {id(program): kernels.joins(program) for program in {id(x.program): x.program for x in launches}.values()}
    groups: list[tuple[bool, list[PlannedLaunch]]] = []
    for launch in launches:
        is_joined = joins[id(launch.program)]
        if is_joined and groups and groups[-1][0]:
            groups[-1][1].append(launch)
        else:
            groups.append((is_joined, [launch]))
    used = [{i for launch in group for i in (*launch.read, *launch.written)} for _, group in groups]
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for n, numbers in enumerate(used):
        for i in numbers:
            first.setdefault(i, n)
            last[i] = n
    given = {i for i in first if first[i] != last[i] or i in lasting or not groups[last[i]][0]}
    return [
        Part(
            None if is_joined else group[0], kernels.sequence(group, nbytes, given) if is_joined else None,
            tuple([i for i in numbers if i in given and last[i] == n and i not in lasting]),
        )
        for n, ((is_joined, group), numbers) in enumerate(zip(groups, used))
    ]  # fmt: skip
