"""What is known of graphs that differ in sizes alone.

Ever new sizes of one structure would each be searched for repetitions, counted, looked for on disk and given to another
process to compile. What does not depend on sizes is found out with the first of them; and where they do not come again,
no program is made for one that is met for the first time.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from smelt.runtime import LruCache

from ..sizeless import sizeless_key

#: Sizes of which programs are made as if they came again, and the part of all that must have come again from then on.
PATIENCE, AGAIN = 4, 0.25
#: Of graphs with the same structure whose inputs are the same values in other places.
_MOST_PERIODS = 8


class Kin:
    """Graphs that differ in sizes alone.

    Attributes:
        periods: of the repetitions in them, one after the other, None for the end; by which inputs are one value.
        ops: how many there are to compile, once that was counted.
        met, returned: how many sizes were met, and how often one of them came again.
    """

    __slots__ = ("met", "nbytes", "ops", "periods", "returned")

    def __init__(self, nbytes: int) -> None:
        self.periods: dict[Hashable, list[int | None]] = {}
        self.ops: int | None = None
        self.met = self.returned = 0
        self.nbytes = nbytes

    def repeats(self, like: Hashable, periods: list[int | None]) -> None:
        """Note the periods that were found in one of them."""
        if len(self.periods) >= _MOST_PERIODS:
            self.periods.clear()
        self.periods[like] = periods

    @property
    def pass_by(self) -> bool:
        """Whether sizes that are met for the first time are not likely to come again."""
        return self.met > PATIENCE and self.returned < AGAIN * self.met


#: By `sizeless_key`.
_kins = LruCache(weigh=lambda kin: kin.nbytes)


def kin_of(structure: Any) -> Kin:
    """What is known of the graphs that differ from one in sizes alone.

    Args:
        structure: a `structure_key`, without symbols.
    """
    found: Kin = _kins.get_or_make(sizeless_key(structure), lambda: Kin(1_000 + 200 * len(structure)))
    return found
