"""How many threads a program runs with, as its runs went."""

from __future__ import annotations

import functools


@functools.lru_cache(maxsize=64)
def sizes(most: int, elastic: bool) -> tuple[int, ...]:
    """The sizes of a team: the powers of two below the largest one, or the calling thread alone."""
    smaller = [1 << i for i in range((most - 1).bit_length())] if elastic else [1][: most - 1]
    return (*smaller, most)


class Pace:
    """How many members run a program.

    Members of a team wait for each other. Where one has lost its core to another process all wait, and where kernels
    are small their barriers take longer than they do: a smaller team, or the calling thread alone, is quicker. So
    neighbouring sizes are tried, and the size moves to what was quicker. A smaller one is tried once after some runs,
    and when runs get longer; a larger one again and again, the more rarely the more often that was in vain. What tries
    cost is a small part of the time between them.

    Several threads may use it at once; a lost update costs a try.

    Args:
        work: of the program, in bytes moved, where it is known.
        elastic: see `Team.elastic`.
    """

    __slots__ = (
        "_began", "_best", "_down", "_elastic", "_expected", "_most", "_next_try", "_patience", "_pause", "_recent",
        "_runs", "_size", "_sizes", "_spent", "_trial", "_trials", "_work",
    )  # fmt: skip

    #: Seconds until the next try, at least and at most; and by how much they are more than what the last one lost.
    PAUSE, LONGEST_PAUSE, SHARE = 0.005, 1.0, 50
    #: A try of a smaller team may take so many seconds; longer programs are tried when they have run `SHARE` times as
    #: long as a try can lose, and after a try that has lost `RARER` times as seldom.
    LONGEST_TRY = 0.02
    RARER = 4
    #: The first try: of a program that met a busy machine from the beginning.
    FIRST_TRY = 32
    #: Bytes that a thread moves in a second, at least. A team that takes longer than this is tried against at once:
    #: many small kernels, on a machine that has been busy from the beginning.
    SPEED = 1e9
    #: Bytes of work for which the first runs have a member.
    EACH = 1 << 17
    #: Runs and seconds of a try of a larger team, at least, of which the later half counts: its threads were asleep,
    #: and where the system wakes them on the caller's core it takes its time to spread them. Runs of a try of a smaller
    #: one: its threads are awake.
    TEAM_RUNS, TEAM_TIME, SMALLER_RUNS = 16, 0.016, 4
    #: A try that has lost so many seconds is over.
    MOST_LOST = 0.05
    #: What is quicker by less than this stays untaken.
    GAIN = 0.9

    def __init__(self, work: float = 0.0, elastic: bool = False) -> None:
        self._work, self._elastic = work, elastic
        self._expected = work / self.SPEED or float("inf")  # what the calling thread alone takes at most
        self._most = 0
        self._sizes: tuple[int, ...] = ()
        self._forget(1)

    def _forget(self, size: int) -> None:
        """Start over with a size about which nothing is known."""
        self._size = size
        self._best = self._recent = float("inf")  # seconds of its runs: the shortest, and an average
        self._runs = 0
        self._trial = 0  # the size that is being tried, or none
        self._trials: list[float] = []  # its runs
        self._began = self._next_try = 0.0  # when the try began, and when there may be another one
        self._down = True  # which neighbour is the next to be tried
        self._spent = 0.0  # since the last try of a smaller team for a long program
        self._patience, self._pause = float(self.SHARE), self.PAUSE

    def members(self, most: int) -> int:
        """How many members are to run the program now; at most `most`."""
        if most != self._most:
            self._most, self._sizes = most, sizes(most, self._elastic)
            first = next((n for n in self._sizes if n * self.EACH >= self._work > 0), most)
            self._forget(max(first, self._sizes[:2][-1]))
        return self._trial or self._size

    def ran(self, members: int, seconds: float, now: float) -> None:
        """Record the time of a run, by `members` members, that ends at `now`."""
        if members == self._trial:
            self._trials.append(seconds)
            lost = sum(self._trials) - len(self._trials) * self._recent
            if lost > self.MOST_LOST or self._is_tried(now):
                self._judge(now, lost)
        elif members == self._size and not self._trial:
            self._runs += 1
            self._best = min(1.01 * self._best, seconds)
            before = self._recent
            self._recent = seconds if self._runs <= 2 else before + (min(seconds, 4 * before) - before) / 8
            self._spent += seconds
            if self._runs > 1:
                self._consider(now)

    def _is_tried(self, now: float) -> bool:
        if self._trial > self._size:
            return len(self._trials) >= self.TEAM_RUNS and now >= self._began + self.TEAM_TIME
        return self._trial == 1 or len(self._trials) >= self.SMALLER_RUNS

    def _judge(self, now: float, lost: float) -> None:
        later = self._trials[len(self._trials) // 2 :]
        found, tried = sum(later) / len(later), self._trial
        if found < self.GAIN * self._recent:
            is_smaller = tried < self._size
            self._forget(tried)
            self._best = self._recent = found
            self._runs, self._down = 2, is_smaller  # tries go on in the same direction
        else:
            self._trial, self._down, self._spent = 0, tried > self._size, 0.0
            if tried < self._size:
                self._patience *= self.RARER
            self._pause = min(2 * self._pause, self.LONGEST_PAUSE)
        self._next_try = now + max(self._pause, self.SHARE * lost)

    def _consider(self, now: float) -> None:
        """Begin a try, if it is time for one."""
        if now < self._next_try:
            return
        at = self._sizes.index(self._size)
        larger = self._sizes[at + 1 : at + 2]
        smaller = self._sizes[:at][-1:]
        is_late = self._best > self._expected
        if smaller and (self._down or not larger) and self._may_try(smaller[0], is_late):
            found = 1 if is_late else smaller[0]
        elif larger:
            found = larger[0]
        else:
            return
        self._trial, self._trials, self._began = found, [], now

    def _may_try(self, smaller: int, is_late: bool) -> bool:
        """Whether a smaller team is to be tried."""
        most = min(self._best * self._size / smaller, self._expected)  # that a run of it takes
        if most >= self.LONGEST_TRY:
            return self._spent >= self._patience * max(most - self._recent, 0.1 * most)
        is_first = self._patience == self.SHARE and self._runs >= self.FIRST_TRY
        return is_first or self._recent > 1.5 * self._best or is_late
