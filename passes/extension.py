"""Changes of pipelines: passes before or after others, in place of them, or left out.

As text, changes of the default pipeline of a device::

    before:fuse=strength             after:canonicalize=log-exp,dce        replace:fuse=fuse{max-ops=8}
    without:cse                      before:fuse=a;after:fuse=b            before:canonicalize#2=a

A name stands for every run of a pass in the pipeline, also inside of ``fixpoint(...)``; with a number, for one of them.
``all`` stands for the pipeline as a whole: ``before:all=…`` comes first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from smelt.ir.errors import PipelineError, shown

from .option_text import Unreadable, walk

WAYS = ("before", "after", "replace", "without")
_CHANGE = re.compile(rf"\s*({'|'.join(WAYS)}):")
_TARGET = re.compile(r"\s*([\w.-]+)(?:#(\d+))?\s*")


class Change(NamedTuple):
    """One change: its way, the pass that it is about, which of its runs (0: all), and the passes as text."""

    way: str
    name: str
    number: int
    passes: str


def is_change(spelling: str) -> bool:
    """Whether a text changes a pipeline, and is none itself.

    >>> is_change("before:fuse=cse"), is_change("cse,fuse")
    (True, False)
    """
    return _CHANGE.match(spelling) is not None


def changes(spelling: str) -> list[Change]:
    """The changes that a text states.

    Raises:
        PipelineError: it states none, or one that cannot be read.

    >>> changes("before:fuse=cse,dce; without:canonicalize#2")
    [Change(way='before', name='fuse', number=0, passes='cse,dce'), Change(way='without', name='canonicalize', number=2, passes='')]
    """  # noqa: E501
    return [_change(part, spelling) for part in _parts(spelling) if part.strip()]


def _parts(spelling: str) -> Iterator[str]:
    start = 0
    try:
        for at, depth in walk(spelling):
            if spelling[at] == ";" and depth == 0:
                yield spelling[start:at]
                start = at + 1
    except Unreadable:
        raise PipelineError(f"in pipeline {shown(spelling)}: quotes or brackets are not closed") from None
    yield spelling[start:]


def _change(part: str, spelling: str) -> Change:
    way = _CHANGE.match(part)
    target = _TARGET.match(part, way.end()) if way else None
    if way is None or target is None:
        ways = ", ".join(f"{w}:PASS" + "=PASSES" * (w != "without") for w in WAYS)
        message = f"{shown(part.strip())} is no change of a pipeline; changes: {ways}"
        raise PipelineError(f"in pipeline {shown(spelling)}: {message}")
    rest = part[target.end() :]
    if way[1] == "without":
        if rest:
            raise PipelineError(f"in pipeline {shown(spelling)}: unexpected {shown(rest)} after without:{target[1]}")
    elif not rest.startswith("=") or not rest[1:].strip():
        raise PipelineError(f"in pipeline {shown(spelling)}: {way[1]}:{target[1]}=... needs passes")
    return Change(way[1], target[1], int(target[2] or 0), rest[1:].strip())


def with_change(items: Sequence[Any], change: Change, new: Sequence[Any]) -> tuple[Any, ...]:
    """The items of a pipeline after a change; `new`: the passes that it states.

    Raises:
        PipelineError: the pipeline has no such pass.
    """
    if change.name == "all":
        own = tuple(items) if change.way in ("before", "after") else ()
        return (*new, *own) if change.way == "before" else (*own, *new)
    seen = [0]
    made = _changed(items, change, new, seen)
    if seen[0] < max(1, change.number):
        which = change.name + f"#{change.number}" * bool(change.number)
        listed = ",".join(map(str, items))
        raise PipelineError(f"{change.way}:{which}: the pipeline runs {change.name} {seen[0]} times; it is {listed}")
    return made


def _changed(items: Sequence[Any], change: Change, new: Sequence[Any], seen: list[int]) -> tuple[Any, ...]:
    made: list[Any] = []
    for item in items:
        if hasattr(item, "items"):
            made.append(replace(item, items=_changed(item.items, change, new, seen)))
            continue
        if item.name != change.name:
            made.append(item)
            continue
        seen[0] += 1
        if change.number not in (0, seen[0]):
            made.append(item)
            continue
        made += [*(new if change.way in ("before", "replace") else ())]
        made += [item] * (change.way in ("before", "after"))
        made += [*(new if change.way == "after" else ())]
    return tuple(made)
