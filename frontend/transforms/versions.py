"""The programs of compiled functions: one for each set of argument types, shared by all that compile a function."""

from __future__ import annotations

import contextlib
import functools
import inspect
import types
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from smelt.ir import locks, profiling
from smelt.ir.dtypes import DType
from smelt.ir.settings import settings
from smelt.runtime import Buffer, Executable, default_device

from ..lazy import alike, guarded, tree
from ..lazy.alike import Pattern, UnlikeError, pattern_of
from ..lazy.arrays import array
from ..lazy.core import evaluated
from ..lazy.static_keys import Same, static_key
from ..lazy.tree_nodes import arrays_within
from .shapeless import SizedTraces

__all__: list[str] = []

#: Versions kept for one function; the least recently used goes first.
MAX_VERSIONS = 64
#: Versions are weighed when so many-th part of what they may weigh has come.
UNWEIGHED = 64
#: Bytes of a state from which on its memory is given up: what that saves has to make up for seeing who else has it,
#: which takes some 60 microseconds, and 5 an array, more than a step that is like the last one.
LEAST_GIVEN = 1 << 22
#: Objects that `Surroundings` looks at before it gives up.
_MOST_OBJECTS = 2000


class Version:
    """One executable of a compiled function, for one set of argument types."""

    __slots__ = (
        "_given", "captured", "executable", "n_outputs", "noted", "out_tree", "passing", "state_leaves", "state_tree",
        "static_outputs",
    )  # fmt: skip

    captured: list[Any]
    executable: Executable
    n_outputs: int
    #: Attributes of the nodes that are its calls.
    noted: dict[str, Any]
    out_tree: Any
    #: What stands in `outputs` after a call: which of the arrays that it returns for them, or None and a static leaf.
    state_leaves: list[tuple[int | None, Any]]
    state_tree: Any
    #: Whether the call makes state that was not there, or of other types: then the next one is of another version.
    passing: bool
    static_outputs: list[tuple[int, Any]]

    def gives_up(self, first: int) -> bool:
        """Whether a call lets the memory of its state, what it reads from place `first` on, become that of the new
        one: where that is little, it takes longer to see who else has it."""
        places = self.executable.donatable
        known: tuple[Any, bool] | None = getattr(self, "_given", None)
        if known is None or known[0] is not places:
            nbytes = sum(self.executable.arguments[n].nbytes for n in places if n >= first)
            self._given = known = places, nbytes >= LEAST_GIVEN
        return known[1]


class RepeatedCall:
    """The last call of a compiled function: the next one is compared with it leaf by leaf, which costs less than a
    key.

    Attributes:
        version: what it ran. patterns: of the arguments, if they have such; else treedef: their structure.
        count: of the arguments by position. names: of those by name, in the order of their leaves.
        ordered: whether the function may see that order.
        expected: of each leaf the aval, or the value of one that is no array.
    """

    __slots__ = (
        "count", "device", "expected", "kind", "names", "ordered", "patterns", "profiles", "settings", "treedef",
        "version",
    )  # fmt: skip

    def __init__(
        self, version: Version, count: int, names: list[str], ordered: bool, patterns: tuple[Pattern, ...] | None,
        treedef: Any, expected: list[Any], kind: type | None,
    ):  # fmt: skip
        self.version, self.count, self.names, self.expected = version, count, names, expected
        self.ordered = ordered
        self.patterns, self.treedef = patterns, treedef
        self.device, self.settings = default_device(), settings.of_programs
        self.profiles = profiling.active is not None
        self.kind = kind  #: of the result: array, tuple of arrays; None: another tree

    @staticmethod
    def of(args: tuple, kwargs: dict[str, Any], leaves: Sequence[Any], treedef: Any, version: Version,
           is_clear: bool, ordered: bool) -> RepeatedCall | None:  # fmt: skip
        """None where a leaf is neither an array nor simple, or the tree does not say all (see `UNCLEAR`)."""
        names = list(kwargs)
        expected: list[Any] = []
        patterns: tuple[Pattern, ...] | None = None
        with contextlib.suppress(UnlikeError):
            patterns = tuple([pattern_of(x, expected) for x in (*args, *kwargs.values())])
        if patterns is None:
            if not is_clear or not all(isinstance(x, array) or type(x) in _SIMPLE for x in leaves):
                return None
            expected = [x.aval if isinstance(x, array) else x for x in leaves]
        kind: type | None = None
        if not version.static_outputs:
            if version.out_tree.is_leaf():
                kind = array
            elif tree.is_tuple_of_leaves(version.out_tree):
                kind = tuple
        return RepeatedCall(version, len(args), names, ordered, patterns, treedef, expected, kind)

    def buffers(self, args: tuple, kwargs: dict[str, Any]) -> list[Buffer] | None:
        """What the version runs on for arguments that are like these, and evaluated; None for others."""
        found = self.buffers_of_arguments(args, kwargs)
        if found is not None:
            found += self.version.captured
        return found

    def buffers_of_arguments(self, args: tuple, kwargs: dict[str, Any]) -> list[Buffer] | None:
        """`buffers` without what the version has captured."""
        if len(args) != self.count or self.device is not default_device() or self.settings != settings.of_programs:
            return None
        if self.profiles is (profiling.active is None):
            return None
        if (kwargs or self.names) and list(kwargs) != self.names:
            if self.ordered or len(kwargs) != len(self.names):
                return None
            try:
                kwargs = {name: kwargs[name] for name in self.names}
            except KeyError:
                return None
        if self.patterns is not None:
            values = (*args, *kwargs.values()) if kwargs else args
            return alike.buffers_like(self.patterns, values, self.expected)
        leaves, treedef = tree.flatten((args, kwargs) if kwargs else args, space=tree.STATES)
        return self._buffers_of(leaves) if guarded.equal(treedef, self.treedef) else None

    def _buffers_of(self, leaves: Sequence[Any]) -> list[Buffer] | None:
        """`buffers` of the leaves of arguments without a pattern."""
        found: list[Buffer] = []
        for place, (x, expected) in enumerate(zip(leaves, self.expected)):
            if isinstance(x, array):
                node, i = x._ref
                aval = node.avals[i]
                if aval is not expected:
                    if aval != expected:
                        return None
                    self.expected[place] = aval  # nearly always the same object from now on
                if node.values is None:
                    return None
                found.append(node.values[i])
            elif type(x) is not type(expected) or x != expected or type(x) not in _SIMPLE:
                return None
        return found

    def result(self, buffers: list[Buffer]) -> Any:
        """What the function returns: the program's results."""
        return self.arranged(evaluated(buffers))

    def arranged(self, outs: list[Any]) -> Any:
        """What the function returns, of its arrays."""
        if self.kind is array:
            return outs[0]
        if self.kind is tuple:
            return tuple(outs)
        for position, value in self.version.static_outputs:
            outs.insert(position, value)
        return tree.unflatten(self.version.out_tree, outs)


#: Types of static arguments of which equality is enough.
_SIMPLE = frozenset((int, bool, str, type(None)))


#: Stands under a key whose trees have keys of dicts that are equal to others: the versions' keys say more.
UNCLEAR = Version()


class Versions:
    """The versions of one function by the types of their arguments.

    Attributes:
        entries: from keys to versions, the most recently used last. recent: the one used last.
        lock: held while one is made. traces: how many were made. last_key: of the last one.
        surroundings: what the function referred to after it was last traced; None where that is not watched any more.
        sized: its traces for all sizes.

    Args:
        state: `inputs` and `outputs` of a function that shares nothing: their keys say what they hold.
    """

    def __init__(self, found: Surroundings | None = None, state: Any = None) -> None:
        self._state, self._looked = state, found is not None
        self.entries: OrderedDict[Any, Version] = OrderedDict()
        self.recent: Version | None = None
        self.lock = locks.lock()
        self.traces = 0
        self.last_key: Any = None
        self.surroundings = found
        self.sized = SizedTraces()
        self._unweighed = 0  #: bytes of versions that were put since all were weighed

    def use(self, key: Any, version: Version) -> None:
        """Note that a version is used now; callers ask `recent` before, which is quicker."""
        self.recent = version
        with contextlib.suppress(KeyError):  # another thread may have dropped it since
            guarded.move_to_end(self.entries, key)

    def put(self, key: Any, version: Version) -> None:
        guarded.put(self.entries, key, version)
        self.recent = version
        if len(self.entries) > MAX_VERSIONS:
            guarded.drop_oldest(self.entries, last=False)
        captured = sum([b.aval.nbytes for b in version.captured])
        self._unweighed += version.executable.nbytes + captured
        if self._unweighed <= settings.cache_bytes // UNWEIGHED:  # to weigh all of them takes long
            return
        self._unweighed = 0
        while len(self.entries) > 1 and self.nbytes > settings.cache_bytes:
            guarded.drop_oldest(self.entries, last=False)

    @property
    def nbytes(self) -> int:
        """Memory that the versions keep, roughly. Arrays that several captured count once."""
        versions = [v for v in list(self.entries.values()) if v is not UNCLEAR]
        captured = {id(b): b.aval.nbytes for v in versions for b in v.captured}
        return sum(v.executable.nbytes for v in versions) + sum(captured.values())

    @property
    def is_pure(self) -> bool:
        """Whether another trace is known to do what the last one did: what the function refers to is watched as a
        whole, and its traces change nothing of it."""
        found = self.surroundings
        return found is not None and not found.own and found.is_whole

    def is_as_traced(self, fun: Callable) -> bool:
        """Whether a trace now is known to be as the last one."""
        return self.is_pure and self.surroundings is not None and self._look(fun).parts == self.surroundings.parts

    def _look(self, fun: Callable, own: frozenset = frozenset()) -> Surroundings:
        return Surroundings(fun, own, self._state)

    @contextlib.contextmanager
    def tracing(self, fun: Callable) -> Iterator[None]:
        """While `fun` is traced. If what it refers to changed before, later compiles of it share nothing with this.
        What the trace itself changes, such as a counter, does not count."""
        if not self._looked:  # what functions refer to may be made between compile and the first call
            self.surroundings, self._looked = self._look(fun), True
        if self.surroundings is not None:
            before = self._look(fun, self.surroundings.own)
            if before.parts != self.surroundings.parts:
                self.surroundings = None
        yield
        if self.surroundings is not None:
            after = self._look(fun, before.own)
            changed = before.differing(after)
            self.surroundings = self._look(fun, before.own | changed) if changed else after


#: By the identity of the function, or of a method's object, and the options of the compile.
_shared: dict[tuple, tuple[weakref.ref, Versions]] = {}


def versions_of(fun: Callable, *options: Any) -> Versions:
    """The versions of a function under these options: those that it had when it was compiled before.

    What a function refers to besides its arguments is part of its programs. So where that has changed since
    (see `Surroundings`), it gets new ones.
    """
    owner, part = (fun.__self__, fun.__func__) if isinstance(fun, types.MethodType) else (fun, None)
    key = (id(owner), part, *options)
    known = _shared.get(key)
    if known is not None and known[0]() is owner:
        found = known[1].surroundings
        if found is not None and Surroundings(fun, found.own).parts == found.parts:
            return known[1]
    versions = Versions(Surroundings(fun))
    with contextlib.suppress(TypeError):  # what has no weak references is not shared
        _shared[key] = (weakref.ref(owner, functools.partial(_forget, _shared, key)), versions)
    return versions


def _forget(shared: dict, key: tuple, _: Any) -> None:  # a dict of its own: globals go first when Python ends
    shared.pop(key, None)


class _Identity:
    """An object, while it lives, by its identity."""

    __slots__ = ("reference",)

    def __init__(self, x: Any):
        self.reference = weakref.ref(x)

    def __eq__(self, other: object) -> bool:
        mine = self.reference()
        return mine is not None and isinstance(other, _Identity) and other.reference() is mine

    def __hash__(self) -> int:
        return hash(_Identity)


_ATOMS = {type(None), bool, int, float, complex, str, bytes, DType, range}


class Surroundings:
    """What a function refers to besides its arguments: its closure, defaults, the globals that it names, and what they
    hold, of functions of its own package too. Keeps nothing alive, looks at the nearest `_MOST_OBJECTS` objects.

    Attributes:
        parts: what was found where: an array stands for its value, an object for itself. own: places that the
            function changes itself while it is traced, such as a counter; they are left out.

    Args:
        state: trees that are not looked into.
    """

    def __init__(self, fun: Any, own: frozenset = frozenset(), state: Any = None) -> None:
        self.own = own
        self.parts: dict[tuple, Any] = {}
        self._root = _root(getattr(inspect.unwrap(fun), "__module__", None))
        seen = {id(fun)}
        if state is not None:
            _add_nodes(state, seen)
        pending = deque([fun])
        while pending and len(self.parts) < _MOST_OBJECTS:
            holder = pending.popleft()
            name = id(holder) if holder is not fun else 0  # a bound method is another object each time
            if (name, ...) in own:
                continue
            for slot, x in self._held(holder):
                place = (name, slot)
                if place in own:
                    continue
                self.parts[place] = _part(x)
                if id(x) not in seen and type(x) not in _ATOMS:
                    seen.add(id(x))
                    pending.append(x)

    @property
    def is_whole(self) -> bool:
        """Whether all that there is was looked at."""
        return len(self.parts) < _MOST_OBJECTS

    def differing(self, later: Surroundings) -> set[tuple]:
        """The places where another look found something else; a list that has grown or shrunk as a whole."""
        places = {p for p in {*self.parts, *later.parts} if self.parts.get(p) != later.parts.get(p)}
        return {(p[0], ...) if (p in self.parts) != (p in later.parts) and type(p[1]) is int else p for p in places}

    def _held(self, x: Any) -> Iterable[tuple[Any, Any]]:
        if isinstance(x, dict):
            found: list[tuple[Any, Any]] = [
                (k if type(k) is str else (_part(k), i), v) for i, (k, v) in enumerate(dict.items(x))
            ]
            if type(x) is not dict and hasattr(x, "__dict__"):  # a module: whether it trains, say
                found.append((("__dict__",), x.__dict__))
            return found
        if isinstance(x, (list, tuple)):
            return enumerate(x)
        if isinstance(x, types.FunctionType):
            return self._held_by_function(x) if _root(x.__module__) == self._root else ()
        if isinstance(x, types.MethodType):
            return (("__func__", x.__func__), ("__self__", x.__self__))
        if isinstance(x, functools.partial):
            return (("func", x.func), ("args", x.args), ("keywords", x.keywords))
        if isinstance(x, (type, types.ModuleType, array)):
            return ()
        if _root(type(x).__module__) == _root(__name__):  # compiled functions, functions with rules
            return (("__wrapped__", getattr(x, "__wrapped__", None)),)
        return (("__dict__", getattr(x, "__dict__", None)),)

    def _held_by_function(self, x: types.FunctionType) -> Iterator[tuple[Any, Any]]:
        yield from (("code", x.__code__), ("defaults", x.__defaults__), ("kwdefaults", x.__kwdefaults__))
        for i, cell in enumerate(x.__closure__ or ()):
            with contextlib.suppress(ValueError):  # not assigned yet
                yield ("cell", i), cell.cell_contents
        names = _names(x.__code__)
        for name in names:
            value = x.__globals__.get(name)
            yield name, value
            if isinstance(value, types.ModuleType) and _root(value.__name__) == self._root:
                yield from ((f"{name}.{n}", vars(value)[n]) for n in names if n in vars(value))


def _add_nodes(held: Any, seen: set[int]) -> None:
    """Add the nodes of a tree, however deep it is."""
    left = [held]
    while left:
        x = left.pop()
        if id(x) in seen or type(x) is array or not tree.is_node(x):
            continue
        seen.add(id(x))
        if isinstance(x, dict):
            left += dict.values(x)
        elif isinstance(x, (list, tuple)):
            left += x
        elif hasattr(x, "__dict__"):
            left += vars(x).values()


def _part(x: Any) -> Any:
    kind = type(x)
    if kind in _ATOMS or isinstance(x, np.generic):
        return static_key(x)
    if isinstance(x, array):
        return (_Identity(x._ref[0]), x._ref[1])
    try:
        return _Identity(x)
    except TypeError:  # a list, say: what it holds counts
        return (kind, id(x))


def _root(module: Any) -> str:
    return str(module).partition(".")[0]


@functools.lru_cache(maxsize=1000)
def _names(code: types.CodeType) -> tuple[str, ...]:
    """The globals and attributes that code names, functions inside it included."""
    inner = [name for c in code.co_consts if isinstance(c, types.CodeType) for name in _names(c)]
    return tuple(dict.fromkeys([*code.co_names, *inner]))


class Receiver:
    """The object of a method that was compiled in its class, where it is no tree. Its arrays are constants, and
    others of them make another program."""

    __slots__ = ("instance",)

    def __init__(self, instance: Any):
        self.instance = instance

    def key(self) -> Any:
        held = [(path, _Identity(x._ref[0]), x._ref[1]) for path, x in arrays_within(self.instance)]
        return (Receiver, Same(self.instance), *held)


def receiver(instance: Any) -> Any:
    """What stands for an object as the first argument of a method."""
    return instance if tree.is_node(instance) else Receiver(instance)


def unwrapped(x: Any) -> Any:
    return x.instance if type(x) is Receiver else x
