"""What runs for every operation: nodes, and functions that remember which nodes they make.

A node is one op applied to results of other nodes; nothing runs when it is made. Nodes hold their
inputs, so work that nobody asks for dies by reference counting. Nothing here recurses: chains may
be a million nodes long (their release included, see `Node.__del__`).

A function of arrays makes the same nodes whenever it is called with the same types and the same other
arguments. So it is run once for them, on stand-ins (`remembered`), and what it made is a recipe, which
is followed from then on: shapes are checked and inferred once.

What is on the way of every operation stands in C too (`core.h`): there it takes a fifth of the time. Where it was not
built, and where SMELT_CORE is ``python``, all of this runs.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import FrameType
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary, WeakSet

from smelt.ir.aval import Aval
from smelt.ir.dtypes import DType
from smelt.ir.errors import AttributeValueError, SettingError, internal_files, is_internal
from smelt.ir.flags import flags_checked
from smelt.ir.keywords import keywords_explained
from smelt.ir.op import Op
from smelt.ir.settings import settings
from smelt.runtime import Buffer


class GraphOp(Op):
    """A kind of node that is no op of the dialect."""

    def __init__(self, name: str):
        self.name, self.primitive = name, name.capitalize()  # type: ignore[misc]


LEAF = GraphOp("leaf")  #: a value: never an op, always a buffer
PARAMETER = GraphOp("parameter")  #: an argument of a trace; has no value
ALIAS = GraphOp("alias")  #: an argument of a differentiated function; has its input's value
APPLY = GraphOp("apply")  #: attrs: callee (a GraphFunction), transforms
COMPILED = GraphOp("compiled")  #: a call of a compiled function; see `calls`
#: In recipes alone: the Python number given as argument number ``attrs["place"]``, as ``attrs["dtype"]``.
NUMBER = GraphOp("number")

#: A result of a node.
Ref = tuple["Node", int]

NO_ATTRS: dict[str, Any] = {}

#: Numbers of traces: a later one has a larger number.
traces = itertools.count(1)


class Handle:
    """What `smelt.array` is to the modules below it: a name for a result of a node, with its dtype, shape and size.

    The underscores of these names are for users, who see MLX's names alone; all modules of the frontend use them:

    - `_ref`: the node and which of its results. An update in place gives the handle another one; `arrays.wrap` makes
      a handle from it.
    - `array._buffer`: the result's memory, `array._host()` that as NumPy's array, which nobody may write to, and
      `array._export()` as one for others to write to. All of them evaluate.
    """

    __slots__ = ()

    _ref: Ref


class _State(threading.local):
    """What this thread is tracing."""

    def __init__(self) -> None:
        self.recording = 0  #: depth of differentiated functions being recorded: nodes stay whole
        self.compiling = 0  #: depth of compile/vmap traces: scalars are constants, values are absent
        self.traced = 0  #: the number of the trace that new nodes belong to; 0 outside of traces
        self.control = 0  #: the number of the innermost trace of a branch or of a loop's body; 0 outside of them
        self.calls: dict[Any, Any] | None = None  #: of compiled functions, in the outermost trace; None outside of one
        self.deferred: list[Any] = []  #: nodes evaluated while recording, to be detached at its end
        self.variables: list[Node] = []  #: what stands for the arguments of the functions being recorded
        self.stored: list[Any] | None = None  #: what rules of the function being differentiated store, if they can


state = _State()

#: Traces of functions with state that run while there are other threads; see `traced_state`.
shadows: list[Any] = []


class Node:
    """One op applied to results of other nodes.

    Attributes:
        op: an op of the registry, a control-flow op (its functions are GraphFunctions in `attrs`), or one
            of LEAF, PARAMETER, ALIAS, APPLY.
        attrs: the op's attributes.
        inputs: what it is applied to; empty once evaluated.
        avals: one a result.
        values: one Buffer a result once evaluated, else None.
        where: the user's code object and the place in it (see `smelt.ir.errors.line_of`), or None.
        traced: the number of the trace (of `compile`, `vmap`, `scan`, ...) that it was made in, or 0.
        prepared: what computes it (see `steps`), as far as that is known: a list of one is its recipe's.
        owner: a list of the evaluation that has it in work, which is empty when that is over, or None.
    """

    __slots__ = (
        "__weakref__", "attrs", "avals", "inputs", "op", "owner", "prepared", "traced", "values", "where",
    )  # fmt: skip

    def __init__(self, op: Op, attrs: dict[str, Any], inputs: tuple[Ref, ...], avals: tuple[Aval, ...]):
        self.op = op
        self.attrs = attrs
        self.inputs = inputs
        self.avals = avals
        self.values: list[Buffer] | None = None
        self.traced = state.traced
        self.where = user_place(2)
        self.prepared: Any = None
        self.owner: Any = None

    def detach(self) -> None:
        """Forget the inputs: the values are there."""
        self.inputs = ()
        self.attrs = NO_ATTRS
        self.op = LEAF
        self.prepared = None

    def __del__(self) -> None:
        # A chain of a million nodes must not be released by a million nested calls.
        inputs = getattr(self, "inputs", None)  # a call with wrong arguments makes a node without them
        if not inputs:
            return
        self.inputs = ()
        queue = _release.queue
        queue.append(inputs)
        del inputs
        if not _release.active:
            _release.active = True
            try:
                while True:  # of a loop with a condition Python 3.12 has a jump outside of the `try`
                    if not queue:
                        break
                    queue.pop()
            finally:  # an interrupt inside leaves the rest to the next one
                _release.active = False


class _Release(threading.local):
    def __init__(self) -> None:
        self.queue: list[Any] = []
        self.active = False


_release = _Release()


def user_place(depth: int) -> Any:
    """The innermost code that does not belong to smelt, from `depth` frames above on, and the place in it."""
    frame: FrameType | None = sys._getframe(depth)
    internal = internal_files
    while frame is not None:
        code = frame.f_code
        known = internal.get(code.co_filename)
        if known is None:
            known = is_internal(frame)
        if not known:
            return (code, frame.f_lasti)
        frame = frame.f_back
    return None


def leaf(buffer: Buffer) -> Node:
    """A node that is a value."""
    node = Node.__new__(Node)
    node.op = LEAF
    node.attrs = NO_ATTRS
    node.inputs = ()
    node.avals = (buffer.aval,)
    node.values = [buffer]
    node.traced = state.traced
    node.where = node.prepared = node.owner = None
    return node


def parameter(aval: Aval, attrs: dict[str, Any] = NO_ATTRS) -> Ref:
    """What stands for an argument of a function while it is traced."""
    return (Node(PARAMETER, attrs, (), (aval,)), 0)


def evaluated(buffers: Iterable[Buffer]) -> list[Any]:
    """Arrays that are these values."""
    found = []
    for buffer in buffers:
        x = hooks.array.__new__(hooks.array)
        x._ref = (leaf(buffer), 0)
        found.append(x)
    return found


def topological(outputs: Iterable[Ref], stop: Any = None) -> list[Node]:
    """Nodes below `outputs` in the order of evaluation. Descends into no node that has values, or where `stop` is given
    for which ``stop(node)`` holds; such nodes are not listed. A set as `stop` is its nodes, leaves and parameters."""
    if isinstance(stop, set):
        ends = stop
        stop = lambda n: n in ends or n.op is LEAF or n.op is PARAMETER  # noqa: E731
    order: list[Node] = []
    seen: set[Node] = set()
    for root, _ in outputs:
        if root in seen:
            continue
        stack: list[tuple[Node, Any]] = []
        if not (stop(root) if stop else root.values is not None):
            seen.add(root)
            stack.append((root, iter(root.inputs)))
        while stack:
            node, pending = stack[-1]
            for child, _ in pending:
                if child in seen or (stop(child) if stop else child.values is not None):
                    continue
                seen.add(child)
                stack.append((child, iter(child.inputs)))
                break
            else:
                stack.pop()
                order.append(node)
    return order


def parameter_below(refs: Sequence[Ref]) -> Node | None:
    """A parameter that is not computed, nor is what leads from the references to it; None if there is none."""
    roots = [ref for ref in refs if ref[0].values is None]
    for node in topological(roots, stop=lambda n: n.values is not None or n in _free):
        if node.op is PARAMETER:
            return node
    _free.update([node for node, _ in roots])
    return None


def varies(ref: Ref) -> bool:
    """Whether a value depends on the argument of a function that is being recorded to be differentiated."""

    def ends(node: Node) -> bool:
        return node.op.name == "stop_gradient" or not any(aval.dtype.is_inexact for aval in node.avals)

    return not set(state.variables).isdisjoint(topological([ref], stop=ends))


#: Nodes below which no parameter was found: so that a chain of derivatives is looked at once.
_free: WeakSet[Node] = WeakSet()


# Functions that remember


class Step(NamedTuple):
    """A node of a recipe.

    Attributes:
        inputs: numbers of values: first the arrays among the arguments, then the results of each step.
        value: the buffer of a leaf, else None.
        memo: one element: what computes such nodes, once it is known.
    """

    op: Op
    attrs: dict[str, Any]
    inputs: tuple[int, ...]
    avals: tuple[Aval, ...]
    value: Buffer | None
    memo: list[Any]


class Recipe(NamedTuple):
    """The nodes that a function makes.

    Attributes:
        results: the number of the value that it returns; of several their container (a list, or a tuple that may have
            names) and numbers.
    """

    steps: list[Step]
    results: int | tuple[type, list[int]]


class Memory:
    """A function and its recipes by arguments. Where there is None, the function looks at values: it is called.

    Attributes:
        numbers: types of Python numbers that are operands: the nodes depend on their type, but not on their value.
        outside, inside: recipes outside of traces, and inside, where numbers are constants.
        families: recipes for all sizes; see `recipes`.
    """

    __slots__ = ("families", "function", "inside", "numbers", "outside")

    def __init__(self, function: Callable[..., Any], numbers: frozenset[type]):
        self.function, self.numbers = function, numbers
        self.outside: dict[tuple, Recipe | None] = {}
        self.inside: dict[tuple, Recipe | None] = {}
        self.families: dict[tuple, Any] = {}


#: Entries of a list among arguments that a key is made of.
MOST_ENTRIES = 64
#: Types of arguments that are equal where they are the same to a program.
_PLAIN = frozenset((int, bool, type(None), str, DType, type(Ellipsis)))


class _Hooks:
    """What `arrays` gives to this module: the class of arrays, and the reference of a number as an array of a dtype;
    `recipes`: what finds or makes a recipe; and `traced_state`: what this thread sees in an array while `shadows` are
    there."""

    array: Any = None
    number: Callable[[Any, DType], Ref]
    record: Callable[..., Recipe | None]
    as_seen: Callable[[Any], Any]


hooks = _Hooks()


def connect_arrays(array: type, number: Callable[[Any, DType], Ref], numbers: dict) -> None:
    """Take what `arrays` has: the class, `number_ref`, and the buffers of numbers that this keeps."""
    hooks.array, hooks.number = array, number
    if native is not None:
        native.connect_arrays(array, number, numbers)


def connect_recipes(record: Callable[..., Recipe | None], numbers: Iterator[int], size: type, seconds: float) -> None:
    """Take what `recipes` has: `record`, numbers of what is prepared, what stands for a size in keys of families, and
    what an op takes."""
    hooks.record = record
    if native is not None:
        native.connect_recipes(record, numbers, size, seconds)


def key_of(items: Iterable[Any], parts: list, inputs: list, numbers: frozenset[type]) -> bool:
    """Add to a key, two parts an item, and to what the nodes are applied to: references and Python numbers.
    Whether that is possible."""
    array = hooks.array
    for x in items:
        kind = type(x)
        if kind is array:
            ref = x._ref
            inputs.append(ref)
            aval = ref[0].avals[ref[1]]
            parts.append(aval.shape)  # these hash faster than an aval
            parts.append(aval.dtype)
        elif kind in numbers:
            inputs.append(x)
            parts.append(kind)
            parts.append(array)
        elif kind in _PLAIN:
            parts.append(kind)
            parts.append(x)
        elif kind is float:
            parts.append(kind)
            parts.append(x if x and x == x else str(x))  # a NaN, 0.0 or -0.0
        elif kind is tuple or kind is list:
            if len(x) > MOST_ENTRIES or len(parts) > MOST_ENTRIES:
                return False
            parts.append(kind)
            parts.append(len(x))
            if not key_of(x, parts, inputs, _NONE):
                return False
        elif kind is slice:
            parts.append(kind)
            parts.append(None)
            bounds = (x.start, x.stop, x.step)
            if array in map(type, bounds):  # their values are asked for, so they are no operands
                return False
            if not key_of(bounds, parts, inputs, _NONE):
                return False
        else:
            return False
    return True


_NONE: frozenset[type] = frozenset()


def _as_seen(args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
    """Arguments as this thread sees them while others trace functions with state."""
    return seen(args), {name: seen(x) for name, x in kwargs.items()}


def seen(x: Any) -> Any:
    """An array, or a list or tuple of arrays and other things, as this thread sees it."""
    if type(x) in (list, tuple):
        return type(x)([seen(y) for y in x])
    return hooks.as_seen(x) if type(x) is hooks.array else x


def call(memory: Memory, args: tuple, kwargs: dict[str, Any]) -> Any:
    """`memory.function` of these arguments, by its recipe if there is one."""
    parts: list[Any] = []
    inputs: list[Any] = []
    if shadows and not state.compiling:
        args, kwargs = _as_seen(args, kwargs)
    if settings.__dict__.get("check") or not key_of(args, parts, inputs, memory.numbers):
        return memory.function(*args, **kwargs)
    if kwargs:
        if not key_of(kwargs.values(), parts, inputs, _NONE):
            return memory.function(*args, **kwargs)
        parts.append(tuple(kwargs))
    recipes = memory.inside if state.compiling else memory.outside
    key = tuple(parts)
    try:
        recipe = recipes[key]
    except KeyError:
        recipe = hooks.record(memory, recipes, key, args, kwargs)
    except TypeError:  # sizes are symbols
        recipe = None
    if recipe is None:
        return memory.function(*args, **kwargs)
    return follow(recipe, inputs)


def follow(recipe: Recipe, inputs: list[Any]) -> Any:
    """Make the nodes of a recipe; what its function returns."""
    where = user_place(3)
    traced = state.traced
    given = len(inputs)
    values = inputs.copy()
    for op, attrs, operands, avals, value, memo in recipe.steps:
        if op is NUMBER:
            values.append(hooks.number(inputs[attrs["place"]], attrs["dtype"]))
            continue
        node = Node.__new__(Node)
        node.op = op
        node.attrs = attrs
        node.inputs = tuple([values[i] for i in operands])
        node.avals = avals
        node.values = None if value is None else [value]
        node.traced = traced
        node.where = where
        node.prepared = memo if memo[0] is None else memo[0]
        node.owner = None
        values.append((node, 0))
        for i in range(1, len(avals)):
            values.append((node, i))
    results = recipe.results
    if isinstance(results, int):
        return handle(values[results], traced, results < given)
    kind, places = results
    found = [handle(values[i], traced, i < given) for i in places]
    return found if kind is list else tuple(found) if kind is tuple else kind(*found)


def handle(ref: Any, traced: int, is_argument: bool) -> Any:
    found = hooks.array.__new__(hooks.array)
    found._ref = ref
    if is_argument and traced:
        found._made = traced
    return found


# Functions that remember, for others


F = TypeVar("F", bound=Callable[..., Any])


#: Not attributes of the functions: what wraps one takes these over, and they can be neither copied nor pickled.
_memories: WeakKeyDictionary[Callable[..., Any], Memory] = WeakKeyDictionary()


def remembered(
    function: F, numbers: Iterable[type] = (), check: Callable[[tuple, dict[str, Any]], None] | None = None
) -> F:
    """A function of arrays and static arguments that makes nodes once for each of their types and values.

    It must depend on nothing else, on no value of an array, and change nothing. Arguments that are no part of a key,
    such as NumPy's arrays, make it a call of `function`.

    Args:
        numbers: types of Python numbers that are operands of the function: what it makes of one depends on its type
            and on those of the arrays.
        check: is told positional and named arguments of each call; it may raise for values that are there.
    """
    inner = keywords_explained(flags_checked(function))
    memory = Memory(inner, frozenset(numbers))

    @functools.wraps(inner)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if check is not None:
            check(args, kwargs)
        try:
            return call(memory, args, kwargs)
        except AttributeValueError:
            pass
        return inner(*args, **kwargs)  # a number that does not fit the dtype which it meets: what that means it says

    _memories[wrapped] = memory
    return wrapped  # type: ignore[return-value]


def memory_of(function: Callable[..., Any]) -> Memory | None:
    """The memory of a function that remembers: `call` on it saves a frame of Python."""
    return _memories.get(function)


#: `remembered` for functions of two operands in their common dtype; a Python number may be one of them.
remembered_numbers = functools.partial(remembered, numbers=(int, float))
#: The same where two numbers may meet: the value of an integer then decides on its dtype.
remembered_floats = functools.partial(remembered, numbers=(float,))


def remembered_op(function: F) -> F:
    """`remembered_numbers` for functions that make one op, whose inference is kept anyway (`emit_elementwise`): without
    the core in C they are quicker without a memory."""
    return keywords_explained(function) if native is None else remembered_numbers(function)


def _native() -> Any:
    """The same in C (see `core.h`), if it was built and is asked for.

    Raises:
        SettingError: SMELT_CORE asks for it, but there is none.
    """
    asked = settings.__dict__.get("core")  # a value that it cannot have does not stop the import
    if asked == "python":
        return None
    try:
        found = importlib.import_module("smelt._core")
    except ImportError:
        found = None
    if found is not None and found.INTERFACE == INTERFACE:
        return found
    if asked == "c":
        raise SettingError("SMELT_CORE is c, but smelt was installed without its core in C (is there a C compiler?)")
    return None


#: That of `core.h` must be the same: an older build is passed over.
INTERFACE = 26
native: Any = _native()
if native is not None:
    native.connect(
        leaf=LEAF, number=NUMBER, no_attrs=NO_ATTRS, state=state, settings=settings.__dict__,
        internal_files=internal_files, is_internal=is_internal, getframe=sys._getframe, dtype=DType, aval=Aval,
        shadows=shadows, as_seen=_as_seen,
    )  # fmt: skip
    Node, Memory = native.Node, native.Memory  # type: ignore[misc]
    leaf, evaluated, topological, call = native.leaf, native.evaluated, native.topological, native.call
    parameter_below = native.parameter_below
