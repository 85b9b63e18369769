"""How many threads run a program, on machines whose clock the test is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from smelt.backends.cpu.pace import Pace, sizes


class Machine:
    """Runs a program. `most`: members of a team at most; `elastic`: whether there are teams of other sizes."""

    def __init__(self, most: int = 2, work: float = 0.0, elastic: bool = False):
        self.pace, self.most, self.now = Pace(work, elastic), most, 1.0

    def run_by(self, runs: int, seconds: Callable[[int], float]) -> list[int]:
        """How many members ran it each time, if a run takes so many seconds by so many."""
        chosen = []
        for _ in range(runs):
            members = self.pace.members(self.most)
            self.now += seconds(members)
            self.pace.ran(members, seconds(members), self.now)
            chosen.append(members)
        return chosen

    def run(self, runs: int, team: float, alone: float) -> list[bool]:
        """Whether a team ran it, if all of them take as long."""
        return [n > 1 for n in self.run_by(runs, lambda members: team if members > 1 else alone)]


def test_a_team_that_is_quicker_runs_nearly_always() -> None:
    chosen = Machine().run(10_000, team=1e-4, alone=2e-4)
    assert chosen.count(False) == 1  # the first try


@pytest.mark.parametrize("team", [3e-4, 5e-3])
def test_a_team_that_waits_for_a_core_makes_way(team: float) -> None:
    machine = Machine()
    machine.run(100, team=1e-4, alone=2e-4)
    busy = machine.run(2000, team=team, alone=2e-4)
    assert not any(busy[-10:]) or busy.count(True) < 300
    start = machine.now
    while not all(machine.run(20, team=1e-4, alone=2e-4)):
        assert machine.now < start + 10, "the team never came back"


def test_a_busy_machine_from_the_beginning() -> None:
    chosen = Machine().run(5000, team=1e-3, alone=2e-4)
    assert chosen.count(True) < 500


def test_many_small_kernels_on_a_busy_machine() -> None:
    chosen = Machine(work=4e6).run(200, team=0.1, alone=2e-3)
    assert chosen.count(True) < 5
    assert all(Machine(work=4e8).run(20, team=0.1, alone=0.4))  # too long to be tried


def test_a_loop_of_many_kernels_whose_work_says_little() -> None:
    """Its team waits so long that nobody would guess what the calling thread takes: 60 ms, and alone 1."""
    machine = Machine(work=6.6e7)
    assert machine.run(400, team=0.06, alone=1e-3).count(True) < 40
    start = machine.now
    while not all(machine.run(20, team=5e-4, alone=1e-3)):
        assert machine.now < start + 30, "the team never came back"
    for alone in (0.4, 0.2):
        machine = Machine(work=4e8)
        machine.run(1000, team=0.1, alone=alone)
        assert machine.now - 1.0 < 1.05 * 1000 * 0.1, alone


def test_tries_cost_little_whatever_the_team() -> None:
    for members, team, alone in ((2, 1e-4, 2e-4), (16, 1e-4, 1.6e-3), (2, 3e-4, 2e-4), (64, 1e-3, 6e-2)):
        machine = Machine(members)
        machine.run(20_000, team, alone)
        least = 20_000 * min(team, alone)
        assert machine.now - 1.0 < 1.1 * least + 0.1, (members, team, alone)
    assert all(Machine(64).run(1000, team=1e-3, alone=6e-2))  # too long to be tried


def test_a_team_that_slows_down_now_and_then_stays() -> None:
    machine = Machine()
    for _ in range(50):
        machine.run(40, team=1e-4, alone=2e-4)
        machine.run(1, team=2e-2, alone=2e-4)
    assert machine.run(1000, team=1e-4, alone=2e-4).count(False) < 100


def test_sizes_of_teams() -> None:
    assert sizes(16, True) == (1, 2, 4, 8, 16) and sizes(12, True) == (1, 2, 4, 8, 12)
    assert sizes(16, False) == (1, 16) and sizes(2, False) == sizes(2, True) == (1, 2)
    assert sizes(1, True) == sizes(1, False) == (1,)


@pytest.mark.parametrize("best", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("work", [0.0, 2e5, 1e8])
def test_a_program_gets_the_team_that_it_is_quickest_with(best: int, work: float) -> None:
    """Each step away from the best size takes half as long again."""

    def seconds(members: int) -> float:
        return 2e-4 * 1.5 ** abs(members.bit_length() - best.bit_length())

    machine = Machine(16, work, elastic=True)
    machine.run_by(3000, seconds)
    last = machine.run_by(1000, seconds)
    assert last.count(best) > 900
    machine.run_by(20_000, seconds)
    assert machine.now - 1.0 < 1.1 * 24_000 * seconds(best) + 0.3


def test_a_team_makes_way_for_a_smaller_one_and_comes_back() -> None:
    """Of sixteen cores some are taken, and given back."""
    free, taken = (lambda n: 1.6e-3 / n), (lambda n: 5e-3 if n == 16 else 1.6e-3 / n)
    machine = Machine(16, elastic=True)
    assert machine.run_by(500, free).count(16) > 490
    assert machine.run_by(1000, taken)[-500:].count(8) > 480
    start = machine.now
    while machine.run_by(100, free).count(16) < 100:
        assert machine.now < start + 10


def test_the_first_runs_of_little_work_have_few_members() -> None:
    for work, members in ((1e4, 2), (3e5, 4), (1e6, 8), (1e9, 16), (0.0, 16)):
        assert Pace(work, elastic=True).members(16) == members
        assert Pace(work).members(16) == 16
    pace = Pace(1e6, elastic=True)
    assert pace.members(16) == 8 and pace.members(4) == 4  # fewer processors from now on
