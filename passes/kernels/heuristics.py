"""Whether an op joins a kernel: the question that `fuse` asks, and who answers it.

`fuse` finds out what *can* be one kernel, within the limits of its options; a *heuristic* says whether it should be. It
is a function of a kernel and of what may join it, which returns None, yes, or the reason why not::

    from smelt.passes.kernels.heuristics import Reason, fewest_bytes, register_heuristic

    @register_heuristic("no-exp-twice")
    def may_join(kernel, candidate):
        if candidate.way == "again" and candidate.op.name == "exp":
            return Reason("exp-twice", "{readers} kernels would compute exp", readers=len(candidate.readers))
        return fewest_bytes(kernel, candidate)

A pipeline names it: ``fuse{heuristic=no-exp-twice}``. Other packages add some by an entry point in the group
``smelt.heuristics`` that is called like the heuristic and names the function, or a module that registers it. What it
answers are remarks (see `smelt.passes.remarks`). Whatever it answers, programs keep their values.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import TYPE_CHECKING, Literal

from smelt.ir.builder import OpView, Value
from smelt.ir.entry_points import load, offered
from smelt.ir.errors import ArgumentTypeError, PipelineError, SmeltError, at_user_line, shown
from smelt.ir.kinds import Movement
from smelt.ir.ops.conversion import Convert

from ..registry import definition_of, require_name
from .analysis import is_pointwise, is_row_reduction

if TYPE_CHECKING:
    from .groups import Group

GROUP = "smelt.heuristics"
#: A value read at more places than this exists in memory.
MAX_PLACES = 8
#: What is padded or joined exists in memory where reductions read it at more places than this, if threads have rows of
#: their own.
CHOSEN_PLACES = 5
#: So few joined elements exist in memory where a kernel reads each so often.
FEW_CHOSEN, OFTEN = 1024, 64
#: Additions that cost as much as moving one byte.
FLOPS_PER_BYTE = 2.0
#: What is made by so many ops of so many additions each is computed rather than read.
CHEAP_OPS, CHEAP_FLOPS = 6, 4.0
#: Results that a kernel has at most where equal loops merge.
MAX_OUTPUTS = 8

#: How an op joins: only this kernel computes it; each of several that read it does; it is movement, which costs nothing
#: where it is read; this kernel also writes it for others; a kernel of the same loops merges with this one.
Way = Literal["inside", "again", "movement", "output", "sibling"]


class Reason:
    """Why something does not join: a word, and a sentence with its numbers.

    >>> reason = Reason("max-ops", "the kernel has {ops} ops, of {limit} at most", ops=128, limit=128)
    >>> print(reason)
    the kernel has 128 ops, of 128 at most
    >>> reason.rule, reason.numbers["limit"]
    ('max-ops', 128)
    """

    __slots__ = ("numbers", "rule", "template")

    def __init__(self, rule: str, template: str, /, **numbers: float):
        self.rule, self.template, self.numbers = rule, template, numbers

    def __str__(self) -> str:
        numbers = {k: int(n) if isinstance(n, float) and n.is_integer() else n for k, n in self.numbers.items()}
        return self.template.format_map(numbers) if numbers else self.template

    def __repr__(self) -> str:
        return f"<{self.rule}: {self}>"


class Candidate:
    """What may join a kernel.

    Attributes:
        op: the op; of a kernel that may merge, the one that its loops are made for.
        way: how it would join.
        readers: kernels that read what the op makes: more than one compute it where the way is "again".
        group: the kernel that may merge with this one, where the way is "sibling".
        computed: whether contractions compute the value while they read it, for it is made of fewer bytes than it has.
    """

    __slots__ = ("_added", "computed", "group", "op", "readers", "way")

    def __init__(
        self, op: OpView, way: Way, readers: Sequence[Group] = (), group: Group | None = None, computed: bool = False
    ):
        self.op, self.way, self.readers, self.group, self.computed = op, way, readers, group, computed
        self._added: int | None = None

    @property
    def value(self) -> Value:
        """What the op makes."""
        return self.op.results[0]

    @property
    def ops(self) -> Sequence[OpView]:
        """What would join: the op, or all ops of the kernel that would merge."""
        return [self.op] if self.group is None else list(self.group.ops)

    @property
    def nbytes(self) -> int:
        """Bytes of what the op makes."""
        return self.op.results[0].aval.nbytes

    @property
    def added_bytes(self) -> int:
        """Bytes of the op's operands that kernels would read which do not read them now."""
        if self._added is None:
            operands = set(self.op.operands)
            self._added = sum(_moved_bytes(v, group.reads) for group in self.readers for v in operands)
        return self._added


def _moved_bytes(value: Value, read: Container[Value], ops: int = CHEAP_OPS) -> int:
    """Bytes that a kernel reads for a value: movement is free, so what is spread over many places is read as it is, and
    what is widened before. What few additions make of what the kernel reads anyway takes none.

    Args:
        read: what the kernel reads.
        ops: so many of them, one after the other, are looked through.
    """
    least = value.aval.nbytes
    if value in read:
        return 0
    op = value.owner
    if op is None or not ops or not is_pointwise(op) or not (op.op.flops <= CHEAP_FLOPS or _widens(op)):
        return least
    total, operands = 0, op.operands
    for operand in operands if len(operands) == 1 else dict.fromkeys(operands):
        if operand in read:
            continue
        total += _moved_bytes(operand, read, ops - 1)
        if total >= least:
            return least
    return total


def _widens(op: OpView) -> bool:
    """Whether an op converts elements to larger ones."""
    return isinstance(op.op, Convert) and op.operands[0].dtype.size < op.results[0].dtype.size


#: Answers whether a candidate joins a kernel: None, or why not.
Heuristic = Callable[["Group", Candidate], "Reason | str | None"]
Answers = Callable[["Group", Candidate], "Reason | None"]


def fewest_bytes(kernel: Group, candidate: Candidate) -> Reason | None:
    """The heuristic of all devices: what joins saves more bytes than it costs, where one addition more costs what half
    a byte does."""
    op, way = candidate.op, candidate.way
    if way == "sibling":
        if len(kernel.outputs) > MAX_OUTPUTS:
            return Reason("outputs", "it writes {outputs} arrays, of {most}", outputs=len(kernel.outputs),
                          most=MAX_OUTPUTS)  # fmt: skip
        return None
    places = len(kernel.reads[op.results[0]])
    if places > MAX_PLACES:
        return Reason("places", "it is read at {places} places, of {most}", places=places, most=MAX_PLACES)
    if way == "movement":
        return None if kernel.shared_rows else _chosen_often(kernel, candidate)
    if is_row_reduction(op):
        return kernel.reduction_loses(op)
    if not is_pointwise(op):
        return None
    cost = kernel.recompute_cost(op)
    if cost:
        saved = 2 * candidate.nbytes * FLOPS_PER_BYTE + 65536
        if kernel.recomputed + cost > saved:
            return Reason(
                "recompute", "elements would be computed more than once: {cost} more additions after {spent}, to save "
                "bytes that are worth {saved}", cost=cost, spent=kernel.recomputed, saved=saved,
            )  # fmt: skip
    if way == "again" and not candidate.computed:
        return _dear_everywhere(kernel, candidate)
    return None


def _chosen_often(kernel: Group, candidate: Candidate) -> Reason | None:
    """Why what reads a joined or padded array should not choose among its parts: a loop of many choices is no
    vector's, and few elements that are read very often are chosen once."""
    if not candidate.op.operands or isinstance(candidate.op.op, Movement):
        return None
    reads, size = kernel.elements, candidate.value.aval.size
    if len(candidate.op.operands) > 1 and size <= FEW_CHOSEN and reads >= OFTEN * size:
        return Reason("chosen-often", "{size} elements are read {reads} times, and would be chosen each time",
                      size=size, reads=reads)  # fmt: skip
    if kernel.schedule != "row":
        return None
    places = sum(len(group.reads[candidate.value]) for group in candidate.readers)
    if places > CHOSEN_PLACES:
        return Reason("choices", "reductions read it at {places} places, of {most}, and would choose at each",
                      places=places, most=CHOSEN_PLACES)  # fmt: skip
    return None


def _dear_everywhere(kernel: Group, candidate: Candidate) -> Reason | None:
    """Why several kernels should not each compute the op: many additions, or much more to read."""
    op, value, readers = candidate.op, candidate.value, len(candidate.readers)
    if op.op.flops * value.aval.size <= 16:
        return None
    kept = candidate.nbytes * (1 + readers)
    worth = max(0, kept - candidate.added_bytes) * kernel.flops_per_byte
    if op.op.flops > 4 and op.op.flops * value.aval.size * (readers - 1) > worth:
        return Reason("again", "{readers} kernels would each compute it, at {flops} additions an element",
                      readers=readers, flops=op.op.flops)  # fmt: skip
    saved = kept * 0.75
    if candidate.added_bytes > saved:
        return Reason("again-reads", "the {readers} kernels that read it would read {added} bytes more to save {saved}",
                      readers=readers, added=candidate.added_bytes, saved=saved)  # fmt: skip
    return None


#: The heuristic of all pipelines that name no other.
DEFAULT = "fewest-bytes"
_known: dict[str, Heuristic] = {DEFAULT: fewest_bytes}


def register_heuristic(name: str) -> Callable[[Heuristic], Heuristic]:
    """Decorator: make a heuristic known by a name, for ``fuse{heuristic=NAME}``.

    Raises:
        PipelineError: a name that a pipeline cannot spell, or that another function has. ArgumentTypeError: what is
        decorated cannot be called.
    """
    require_name("a heuristic", name)

    def register(function: Heuristic) -> Heuristic:
        if not callable(function):
            message = f"register_heuristic({name!r}) decorates a function of a kernel and a candidate, not "
            raise ArgumentTypeError(at_user_line(message + shown(function)))
        known = _known.get(name)
        if known is not None and definition_of(known) != definition_of(function):
            message = f"two heuristics are called {name!r}: {definition_of(known)} and {definition_of(function)}"
            raise PipelineError(at_user_line(message))
        _known[name] = function
        return function

    return register


def heuristic_called(name: str) -> Answers:
    """The heuristic of a name. One that is not smelt's own is asked through a check of what it answers.

    Raises:
        PipelineError: there is none of that name, or it does not load.
    """
    if name not in _known:
        _load(name)
    function = _known[name]
    return fewest_bytes if function is fewest_bytes else _Checked(name, function)


def _load(name: str) -> None:
    found = offered(GROUP)
    for entry in found:
        if entry.name == name:
            loaded = load(entry, "the heuristic", PipelineError)
            if name not in _known and callable(loaded):
                _known[name] = loaded
            if name in _known:
                return
            raise PipelineError(f"{entry.value}, the entry point of the heuristic {name!r}, defines none of that name")
    known = ", ".join(sorted({*_known, *(e.name for e in found)}))
    raise PipelineError(f"fuse: there is no heuristic {name!r}; there are {known}")


class _Checked:
    """A heuristic of another package, whose answers are checked."""

    def __init__(self, name: str, function: Heuristic):
        self.name, self.function = name, function

    def __call__(self, kernel: Group, candidate: Candidate) -> Reason | None:
        count = len(kernel.ops)
        try:
            answer = self.function(kernel, candidate)
        except SmeltError:
            raise
        except Exception as error:
            what = f"the heuristic {self.name} failed on {candidate.op.name}: {type(error).__name__}: {error}"
            raise PipelineError(what) from error
        if len(kernel.ops) != count:
            raise PipelineError(f"the heuristic {self.name} changed a kernel on {candidate.op.name}; it only answers")
        if answer is None or isinstance(answer, Reason):
            return answer
        if isinstance(answer, str) and answer:
            return Reason(self.name, answer)
        rule = "it has to be None (it joins), or why it does not: a Reason or a text"
        raise PipelineError(f"the heuristic {self.name} answered {shown(answer)} on {candidate.op.name}; {rule}")
