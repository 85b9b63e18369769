"""Lazy graphs as pictures: `smelt.export_to_dot`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any

from smelt.ir.errors import ArgumentTypeError, at_user_line, shown
from smelt.ir.paths import path_of

from ..formats.writing import replacing
from .arrays import array
from .core import topological
from .graph import ALIAS, Ref

__all__ = ["export_to_dot"]


def export_to_dot(file: Any, /, *args: array, **kwargs: array) -> None:
    """Write the graph of what is to be computed for arrays in Graphviz's DOT format.

    Args:
        file: a path, or an open file.
        args: arrays; those that have values are single nodes.
        kwargs: arrays with the names that they have in the picture.

    Raises:
        ArgumentTypeError: no path, or no array.

    >>> import smelt, io
    >>> x = smelt.array(1.0)
    >>> file = io.StringIO()
    >>> smelt.export_to_dot(file, y=x + x, x=x)
    >>> print(file.getvalue())
    digraph {
    { rank=source; "x"; }
    { n0 [label="Add", shape=rectangle]; }
    "x" -> n0
    "x" -> n0
    { rank=sink; "y"; }
    n0 -> "y"
    }
    <BLANKLINE>
    """
    for x in (*args, *kwargs.values()):
        if not isinstance(x, array):
            raise ArgumentTypeError(at_user_line(f"smelt.export_to_dot: needs arrays, got {shown(x)}"))
    text = _dot([x._ref for x in args], {name: x._ref for name, x in kwargs.items()})
    if hasattr(file, "write") and not isinstance(file, type):
        try:
            file.write(text)
        except TypeError:  # open for bytes
            file.write(text.encode())
        return
    with replacing(path_of("export_to_dot", "file", file)) as out:
        out.write(text.encode())


def _dot(outputs: list[Ref], named: dict[str, Ref]) -> str:
    names = {_meant(ref): name for name, ref in named.items()}
    more = _letters(set(named))

    def name_of(ref: Ref) -> str:
        ref = _meant(ref)
        if ref not in names:
            names[ref] = next(more)
        return names[ref]

    ends = [_meant(ref) for ref in (*outputs, *named.values())]
    found = topological(ends, stop=lambda node: node.values is not None)
    read = {_meant(ref) for node in found if node.values is None for ref in node.inputs}
    sinks = {ref for ref in ends if ref not in read}
    sources = [ref for ref in dict.fromkeys((*read, *ends)) if ref[0].values is not None or not ref[0].inputs]
    lines = [f'{{ rank=source; "{name_of(ref)}"; }}' for ref in sorted(sources, key=lambda r: name_of(r))]
    drawn = 0
    for node in found:
        if node.values is not None or node.op is ALIAS or not node.inputs:
            continue
        lines.append(f'{{ n{drawn} [label="{node.op.primitive}", shape=rectangle]; }}')
        lines += [f'"{name_of(ref)}" -> n{drawn}' for ref in node.inputs]
        for i in range(len(node.avals)):
            if (node, i) in read or (node, i) in sinks:
                rank = "rank=sink; " if (node, i) in sinks else ""
                lines += [f'{{ {rank}"{name_of((node, i))}"; }}', f'n{drawn} -> "{name_of((node, i))}"']
        drawn += 1
    return "\n".join(["digraph {", *lines, "}", ""])


def _meant(ref: Ref) -> Ref:
    """What a reference stands for, without aliases."""
    while ref[0].op is ALIAS and ref[0].values is None:
        ref = ref[0].inputs[0]
    return ref


def _letters(taken: Iterable[str]) -> Iterator[str]:
    """A, B, …, Z, AA, …"""
    taken = set(taken)
    for i in count(1):
        name = ""
        while i:
            i, digit = divmod(i - 1, 26)
            name = chr(ord("A") + digit) + name
        if name not in taken:
            yield name
