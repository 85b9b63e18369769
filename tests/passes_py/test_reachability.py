"""Which kernels need what others compute: kept up to date, against a search of the graph."""

from __future__ import annotations

import random

import pytest

from smelt.passes.kernels.reachability import Reachability


@pytest.mark.parametrize("seed", range(20))
def test_against_a_search(seed: int) -> None:
    choose, reach = random.Random(seed), Reachability()
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
        if choose.random() < 0.4 and not leads(other, one):
            following[found(one)].add(other)
            reach.connect(one, [other])
        one, other = choose.randrange(i + 1), choose.randrange(i + 1)
        merges = found(one) != found(other) and not leads(other, one) and not through_a_third(one, other)
        if choose.random() < 0.2 and merges:
            one, other = found(one), found(other)
            part_of[other] = one
            following[one] = {x for x in following[one] | following[other] if found(x) != one}
            reach.merge(one, other)
        for a in range(i + 1):
            for b in range(i + 1):
                assert reach.leads(a, b) == leads(a, b), (a, b)
