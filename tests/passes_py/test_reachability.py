"""Which kernels need what others compute: kept up to date, against a search of the graph."""

from __future__ import annotations

import random

import pytest

from smelt.passes.kernels.reachability import Reachability


@pytest.mark.parametrize("part", [1024, 7])
@pytest.mark.parametrize("seed", range(20))
def test_against_a_search(seed: int, part: int) -> None:
    """Within a part. Items of others may lead to those that were added before them, for all that is known."""
    choose, reach = random.Random(seed), Reachability(part)
    following: dict[int, set[int]] = {}
    part_of: dict[int, int] = {}

    def found(item: int) -> int:
        while item in part_of:
            item = part_of[item]
        return item

    def leads(start: int, goal: int) -> bool:
        pending, seen = [found(start)], set()
        while pending:
            item = pending.pop()
            if item not in seen:
                seen.add(item)
                pending += [found(x) for x in following[item]]
        return found(goal) in seen

    def through_a_third(one: int, other: int) -> bool:
        return any(leads(found(x), other) for x in following[found(one)] if found(x) != found(other))

    for i in range(30):
        following[i] = {j for j in range(i) if choose.random() < 0.1}
        reach.add(i, list(following[i]))
        one, other = choose.randrange(i + 1), choose.randrange(i + 1)
        if choose.random() < 0.4 and not leads(other, one) and not reach.leads(other, one):
            following[found(one)].add(other)
            reach.connect(one, [other])
        one, other = choose.randrange(i + 1), choose.randrange(i + 1)
        merges = (
            found(one) != found(other)
            and reach.in_one_part(one, other)
            and not leads(other, one)
            and not through_a_third(one, other)
        )
        if choose.random() < 0.2 and merges:
            one, other = found(one), found(other)
            part_of[other] = one
            following[one] = {x for x in following[one] | following[other] if found(x) != one}
            reach.merge(one, other)
        for a in range(i + 1):
            for b in range(i + 1):
                known = reach.in_one_part(a, b)
                assert known == (found(a) // part == found(b) // part)
                assert reach.leads(a, b) == (leads(a, b) if known else a // part > b // part), (a, b)
                assert known or a // part > b // part or not leads(a, b)
