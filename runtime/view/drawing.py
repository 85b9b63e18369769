"""Where the nodes of a graph are drawn: in layers, each below what it reads, ordered to have few crossings.

After K. Sugiyama, S. Tagawa and M. Toda, "Methods for visual understanding of hierarchical system structures", IEEE
Trans. SMC 11 (1981): longest paths give layers, means of neighbours' positions the order in them.
"""

from __future__ import annotations

from collections.abc import Sequence

#: How often the layers are put in order, downwards and upwards.
SWEEPS = 6


def draw(count: int, edges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Columns and rows of `count` nodes, numbered so that edges go to larger numbers.

    >>> draw(4, [(0, 1), (0, 2), (1, 3), (2, 3)])
    [(0, 0), (0, 1), (1, 1), (0, 2)]
    """
    before: list[list[int]] = [[] for _ in range(count)]
    after: list[list[int]] = [[] for _ in range(count)]
    row = [0] * count
    for source, target in sorted(edges, key=lambda e: e[1]):
        before[target].append(source)
        after[source].append(target)
        row[target] = max(row[target], row[source] + 1)
    for node in reversed(range(count)):  # what has no operands stands right above what reads it
        if not before[node] and after[node]:
            row[node] = min(row[t] for t in after[node]) - 1
    layers: list[list[int]] = [[] for _ in range(max(row, default=-1) + 1)]
    for node in range(count):
        layers[row[node]].append(node)
    column = [0.0] * count
    for layer in layers:
        for i, node in enumerate(layer):
            column[node] = i
    for sweep in range(SWEEPS):
        near = before if sweep % 2 == 0 else after
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            middle = {n: _mean([column[m] for m in near[n]], column[n]) for n in layer}
            for i, node in enumerate(sorted(layer, key=middle.__getitem__)):
                column[node] = i
    return [(int(column[node]), row[node]) for node in range(count)]


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
