"""What was compiled, why, how long that took, and what would avoid it.

Whoever compiles a program takes its `subject` before the passes change it, and leaves a `note` when it is ready.
`explain` shows the notes, and with ``SMELT_DEBUG=compile`` each is printed as it is made. Why a program was compiled
is found by comparing it with the last one of the same structure: equal but for sizes, numbers and dtypes.
"""

from __future__ import annotations

import contextlib
import pickle
import re
import sys
import threading
import zlib
from collections import Counter, OrderedDict, deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from smelt.backends.device import Device
from smelt.backends.executable import Executable, InterpretedExecutable
from smelt.ir import locks
from smelt.ir.builder import functions, read_function
from smelt.ir.dtypes import DType
from smelt.ir.errors import SmeltError
from smelt.ir.flags import flag
from smelt.ir.op import Op
from smelt.ir.settings import logs_compiles, settings
from smelt.ir.tables import columns
from smelt.ir.text import line_of

__all__ = ["Compile", "Explanation", "Subject", "because", "explain", "note", "subject"]

#: Compiles that are remembered; of earlier ones only their number is.
MOST_NOTES = 1000
#: Structures that are remembered, the most recent ones, and of how many ops they may be.
MOST_STRUCTURES, MOST_OPS = 256, 2000

#: The name of programs that are no compiled functions.
LAZY = "lazy graph"

#: What would avoid a compile, by the kind of its reason.
ADVICE = {
    "structure": "",
    "size": "keep to few sizes, e.g. fill up to a multiple of 64",
    "dtype": "cast to one dtype before",
    "attribute": "pass what changes as a smelt.array",
    "loaded": "",
    "again": "compile a function once, outside of loops, or raise SMELT_CACHE_SIZE",
}


class Compile(NamedTuple):
    """One compile.

    Attributes:
        name: of the compiled function, or "lazy graph".
        where: the user's line that made the program's last op, as ``file:line``; "" where none did.
        ops: ops of the program before any pass.
        device: its name.
        how: "compiled"; "beside": by another process, meanwhile; "loaded": from disk; or "interpreted": too little
            work for a compile, the passes ran all the same.
        seconds: what it took.
        kernels: of the program.
        kind: "structure", "size", "dtype", "attribute" or "again": what is new against earlier programs; "loaded".
        reason: that in words.
        advice: what would avoid it; "" for a first program of its structure.
    """

    name: str
    where: str
    ops: int
    device: str
    how: str
    seconds: float
    kernels: int
    kind: str
    reason: str
    advice: str

    def __str__(self) -> str:
        """One line, as ``SMELT_DEBUG=compile`` prints it.

        >>> str(Compile("f", "model.py:17", 3, "cpu", "compiled", 0.0612, 1, "structure", "a new structure", ""))
        'compiled f (3 ops, model.py:17) for cpu in 61 ms, 1 kernel: a new structure'
        """
        place = f", {self.where}" if self.where else ""
        text = (
            f"{self.how} {self.name} ({self.ops} op{'s' * (self.ops != 1)}{place}) for {self.device} in "
            f"{self.seconds * 1e3:.0f} ms, {self.kernels} kernel{'s' * (self.kernels != 1)}: {self.reason}"
        )
        return f"{text}; {self.advice}" if self.advice else text


class Mark(NamedTuple):
    """A moment: how many compiles there were before it, of all and of programs that were compiled."""

    all: int
    compiled: int


class Explanation:
    """Compiles of some time: since the process began, since they were last forgotten, or within a ``with`` block."""

    def __init__(self, first: Mark, last: Mark | None = None):
        self._first, self._last = first, last

    def __enter__(self) -> Explanation:
        self._first, self._last = _notes.mark, None
        return self

    def __exit__(self, *_: object) -> None:
        self._last = _notes.mark

    @property
    def count(self) -> int:
        """How many there were; programs too small to compile, and those that came from disk, are not counted."""
        return (self._last or _notes.mark).compiled - self._first.compiled

    @property
    def compiles(self) -> list[Compile]:
        """The compiles in order, of the last thousand of the process."""
        return _notes.between(self._first.all, (self._last or _notes.mark).all)

    @property
    def reasons(self) -> dict[str, int]:
        """The number of compiles of each kind.

        "structure": a new structure; "size": known, but for sizes; "dtype"; "attribute": a constant, the bounds of a
        slice, …; "again": the very same program; "loaded": from disk.
        """
        return dict(Counter(c.kind for c in self.compiles))

    @property
    def seconds(self) -> float:
        """What they took together."""
        return sum(c.seconds for c in self.compiles)

    def __repr__(self) -> str:
        compiles = self.compiles
        if not compiles:
            return "no compiles"
        rows = [("ms", "kernels", "ops", "what", "why", "what would avoid it")]
        for c in compiles:
            what = f"{c.name}{'' if c.how == 'compiled' else f' ({c.how})'}{f' at {c.where}' if c.where else ''}"
            rows.append((f"{c.seconds * 1e3:.0f}", str(c.kernels), str(c.ops), what, c.reason, c.advice))
        reasons = ", ".join(f"{n} × {kind}" for kind, n in self.reasons.items())
        last = f"{len(compiles)} in {self.seconds:.2f} s: {reasons}"
        return "\n".join([*columns(rows, right=(0, 1, 2)), last])


class Step(NamedTuple):
    """An op of a program."""

    op: str
    operands: tuple[int, ...]  #: numbers of values
    attributes: str
    types: str  #: of the results


class Subject(NamedTuple):
    """What is compiled, as it was before the passes.

    Attributes:
        name, ops, where: as in `Compile`.
        arguments: types of the arguments: f32[2,3].
        steps: the ops of all functions; None for a program that is too large to compare.
    """

    name: str
    ops: int
    where: str
    arguments: tuple[str, ...] = ()
    steps: tuple[Step, ...] | None = None

    @property
    def structure(self) -> Hashable:
        """Equal for programs that differ in sizes, dtypes and numbers at most."""
        return (
            tuple(_NUMBER.sub("", x) for x in self.arguments),
            tuple((step.op, step.operands, _NUMBER.sub("#", step.attributes)) for step in self.steps or ()),
        )


#: Numbers, and dtypes as they are shown.
_NUMBER = re.compile(r"-?\b(?:\d[\w.+-]*|(?:smelt\.)?(?:b?f\d+|u?i\d+|b?float\d+|complex\d+|u?int\d+|bool_?)\b)")

#: An op, what it is applied to, its attributes and the types of its results.
Row = tuple[str, Iterable[Hashable], Mapping[str, Any], Iterable[Any]]


def steps_of(
    arguments: Iterable[Hashable], rows: Iterable[Row], results: Iterable[Iterable[Hashable]]
) -> list[Step]:  # fmt: skip
    """The steps of a function: `results` are what rows have among their operands for the results of others."""
    numbers: dict[Hashable, int] = {}
    for argument in arguments:
        numbers.setdefault(argument, len(numbers))
    steps = []
    for (op, operands, attrs, avals), given in zip(rows, results):
        taken = tuple(numbers.get(x, -1) for x in operands)
        attributes = ", ".join(f"{key} = {_shown(value)}" for key, value in attrs.items())
        steps.append(Step(op, taken, attributes, ", ".join(map(str, avals))))
        for result in given:
            numbers[result] = len(numbers)
    return steps


def _shown(value: Any) -> str:
    text = value.name if isinstance(value, (Op, DType)) or hasattr(value, "body") else repr(value)
    return text if len(text) <= 120 else f"{text[:100]}… ({zlib.crc32(text.encode()):08x})"


def subject(module: Any, name: str = "") -> Subject:
    """What is about to be compiled; `name`: of the function, empty for a lazy graph."""
    found = functions(module)
    blocks = [block for f in found.values() for block in f.regions[0].blocks]
    ops = sum(len(block.operations) - 1 for block in blocks)  # a return is no op
    where = _last_line(found.get("main"))
    if ops > MOST_OPS or "main" not in found:
        return Subject(name or LAZY, ops, where)
    steps: list[Step] = []
    arguments: tuple[str, ...] = ()
    try:
        for symbol, operation in found.items():
            f = read_function(operation)
            if symbol == "main":
                arguments = tuple([str(a.aval) for a in f.arguments])
            rows = [(o.op.name, o.operands, o.attrs, [r.aval for r in o.results]) for o in f.ops]
            steps += steps_of(f.arguments, rows, [o.results for o in f.ops])
    except SmeltError:  # no smelt functions: of another stage
        return Subject(name or LAZY, ops, where)
    return Subject(name or LAZY, ops, where, arguments, tuple(steps))


def _last_line(main: Any) -> str:
    """The user's line of the last op of @main that has one."""
    if main is None or not main.regions[0].blocks:
        return ""
    operations = main.regions[0].blocks[0].operations
    for i in range(len(operations) - 1, max(-1, len(operations) - 6), -1):
        if line := line_of(operations[i].location):
            return line
    return ""


class _Notes:
    """The notes of the process."""

    def __init__(self) -> None:
        self.lock = locks.lock()
        self.notes: deque[tuple[int, Compile]] = deque(maxlen=MOST_NOTES)
        self.mark = self.start = Mark(0, 0)
        self.known: OrderedDict[int, bytes] = OrderedDict()

    def add(self, made: Compile) -> None:
        with self.lock:
            self.notes.append((self.mark.all, made))
            self.mark = Mark(self.mark.all + 1, self.mark.compiled + (made.how in ("compiled", "beside")))

    def between(self, first: int, last: int) -> list[Compile]:
        with self.lock:
            notes = list(self.notes)
        return [made for n, made in notes if first <= n < last]

    def compare(self, new: Subject, device: str) -> tuple[str, str]:
        """What is new about a program, as a kind and in words."""
        if new.steps is None:
            return "structure", "a new program, too large to compare"
        place = "" if new.name == LAZY else new.where  # functions may share a name
        key = hash((device, new.name, place, new.structure))
        with self.lock:
            known = self.known.pop(key, None)
            self.known[key] = zlib.compress(pickle.dumps((new.arguments, new.steps)), 1)
            if len(self.known) > MOST_STRUCTURES:
                self.known.popitem(last=False)
        if known is None:
            return "structure", "a new structure"
        arguments, steps = pickle.loads(zlib.decompress(known))
        return _difference(arguments, steps, new)


def _difference(arguments: Sequence[str], steps: Sequence[Step], new: Subject) -> tuple[str, str]:
    """Between the arguments and steps of a program and another one of its structure."""
    changes = [(i, a, b) for i, (a, b) in enumerate(zip(arguments, new.arguments)) if a != b]
    if changes:
        same_dtypes = all(a.partition("[")[0] == b.partition("[")[0] for _, a, b in changes)
        words = [f"argument {i} is {b}, was {a}" for i, a, b in changes]
        rest = f"; and {len(words) - 2} more" if len(words) > 2 else ""
        return "size" if same_dtypes else "dtype", "; ".join(words[:2]) + rest
    for old, now in zip(steps, new.steps or ()):
        if old.types != now.types:
            return "size", f"{now.op} gives {now.types[:120]}, gave {old.types[:120]}"
        if old.attributes != now.attributes:
            return "attribute", f"{now.op} has {now.attributes[:120]}, had {old.attributes[:120]}"
    return "again", "the same program as before, forgotten since or made for another function"


_notes = _Notes()


class _Because(threading.local):
    reason = ""


_because = _Because()


@contextlib.contextmanager
def because(reason: str) -> Iterator[None]:
    """Programs that this thread compiles within are compiled for this reason, besides what a comparison tells."""
    before, _because.reason = _because.reason, reason
    try:
        yield
    finally:
        _because.reason = before


def note(compiled: Subject, program: Executable, device: Device, how: str = "") -> None:
    """Remember a compile, or that a program was loaded.

    Args:
        how: as in `Compile`, where the program does not tell: that it was compiled "beside" this process.
    """
    kind, words = _notes.compare(compiled, device.name)
    how = how or ("loaded" if program.loaded else "compiled")
    if isinstance(program, InterpretedExecutable):
        how = "interpreted"
    if how == "loaded":
        kind, words = "loaded", "an earlier process has compiled it"
    reason = _because.reason
    made = Compile(
        compiled.name, compiled.where, compiled.ops, device.name, how, program.seconds, len(program.kernels), kind,
        f"{words}; {reason}" if reason else words, ADVICE[kind],
    )  # fmt: skip
    _notes.add(made)
    if logs_compiles(settings):
        print(f"smelt: {made}", file=sys.stderr)


def explain(reset: bool = False) -> Explanation:
    """What was compiled in this process so far, why, how long it took, and what would avoid it.

    The result prints as a table; `compiles` lists its rows, `reasons` counts them by kind, `count` and `seconds` are
    their number and time. In a ``with`` block it is about the compiles within: ``with smelt.explain() as explained:``.
    The last thousand compiles are remembered. ``SMELT_DEBUG=compile`` prints each when it happens.

    Args:
        reset: forget those before, after this answer.

    >>> import smelt
    >>> f = smelt.compile(lambda x: smelt.exp(-x))
    >>> with smelt.explain() as explained:
    ...     for n in (8, 16, 16):
    ...         y = f(smelt.ones(n))
    >>> explained.count, explained.reasons
    (2, {'structure': 1, 'size': 1})
    >>> explained.compiles[1].reason
    'argument 0 is f32[16], was f32[8]'
    """
    reset = flag("explain", "reset", reset)
    with _notes.lock:
        found = Explanation(_notes.start, _notes.mark)
        if reset:
            _notes.start = _notes.mark
        return found
