"""The order in which a program's launches run, with loops and branches decided on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from .manifest import Branch, BufferSlot, Call, Launch, Loop, Manifest, Step

#: Where a buffer lies: "argument", "result" or "arena", its number, and bytes from its start.
Where = tuple[str, int, int]


def walk(manifest: Manifest, read: Callable[[Where, int], int]) -> Iterator[tuple[Launch, list[Where]]]:
    """Each launch with the places of its buffers, in the order in which they run.

    Args:
        manifest: of the program.
        read: ``read(where, nbytes)`` gives the signed integer at a place, with all that was yielded before
            done. It is asked about conditions of while loops and about branches, so a program without
            them can be walked ahead of its execution.
    """
    return _Walk(manifest.functions, read).run(manifest.steps)


class _Walk:
    def __init__(self, functions: Sequence[Sequence[Step]], read: Callable[[Where, int], int]):
        self.functions, self.read = functions, read
        self.iterations: dict[int, int] = {}
        self.locals: dict[int, Where] = {}
        self.parameters: list[Where] = []

    def at(self, place: BufferSlot) -> Where:
        kind, index, offset = place.kind, place.index, place.offset
        for loop, stride in place.strides:
            offset += stride * self.iterations[loop]
        if kind in ("local", "parameter"):
            kind, index, start = (self.locals if kind == "local" else self.parameters)[index]
            offset += start
        return kind, index, offset

    def run(self, steps: Sequence[Step]) -> Iterator[tuple[Launch, list[Where]]]:
        for step in steps:
            if isinstance(step, Launch):
                yield step, [self.at(place) for place in step.buffers]
            elif isinstance(step, Branch):
                n = self.read(self.at(step.branch), step.bytes)
                yield from self.run(step.branches[n if 0 <= n < len(step.branches) else -1])
            elif isinstance(step, Call):
                outer, self.parameters = self.parameters, [self.at(place) for place in step.buffers]
                yield from self.run(self.functions[step.function])
                self.parameters = outer
            else:
                self.locals |= {x.index: self.at(x.start) for x in step.locals}
                self.iterations[step.loop] = 0
                while True:
                    if step.flag is not None:
                        yield from self.run(step.condition)
                        if not self.read(self.at(step.flag), 1):
                            break
                    elif self.iterations[step.loop] == step.length:
                        break
                    yield from self.run(step.steps)
                    self.locals |= {x.index: self.at(x.next) for x in step.locals}
                    self.iterations[step.loop] += 1


def known_launches(manifest: Manifest) -> int | None:
    """How many launches `walk` yields; None where that depends on values."""
    functions: list[int | None] = []
    for steps in manifest.functions:
        functions.append(_known(steps, functions))
    return _known(manifest.steps, functions)


def _known(steps: Sequence[Step], functions: Sequence[int | None]) -> int | None:
    total = 0
    for step in steps:
        found: int | None = None
        if isinstance(step, Launch):
            found = 1
        elif isinstance(step, Call):
            found = functions[step.function]
        elif isinstance(step, Loop) and step.length is not None:
            inner = _known(step.steps, functions)
            found = None if inner is None else inner * step.length
        if found is None:
            return None
        total += found
    return total
