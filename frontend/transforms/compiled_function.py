"""What `smelt.compile` gives: a function that is traced once and runs many times."""

from __future__ import annotations

import copy
import functools
import inspect
import sys
import warnings
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, Generic, overload

from smelt.ir import collector, locks, profiling
from smelt.ir.aval import Aval
from smelt.ir.errors import TraceError, TreeError, at_user_line
from smelt.ir.flags import flag
from smelt.ir.settings import settings
from smelt.runtime import Executable, default_device

from ..lazy import guarded, tree
from ..lazy.arrays import array, placeholder, wrap
from ..lazy.calls import NotedCall, have_run
from ..lazy.core import ALIAS, COMPILED, evaluated, seen, shadows
from ..lazy.evaluate import check_not_donated, evaluate
from ..lazy.execution.programs import program_of
from ..lazy.graph import GIVEN, NO_ATTRS, PARAMETER, GraphFunction, Node, Ref, parameter, record_function, state
from ..lazy.no_values import OF_A_TRACE
from ..lazy.shape_dtype import ShapeDtype
from ..lazy.signatures import P, Q, R, T
from ..lazy.traced_state import TracedState
from ..lazy.tree_updates import put, put_whole
from . import repeated_calls
from .calls import arrays_of, keys_of_dicts, names_of_arguments, places_of, state_leaf, state_part, static_part
from .donation import Donate, Donations, GivenState
from .grad import name_of, tracing
from .repeated_steps import RepeatedStep, Steps
from .shapeless import HeldState, Sizes
from .stage_names import explain_names
from .traced import Trace, compiled_by
from .turns import parts_of, release, turn, turn_of, under_way
from .versions import UNCLEAR, RepeatedCall, Version, Versions, receiver, unwrapped, versions_of

if TYPE_CHECKING:  # passes are loaded by the first compile
    pass

#: Traces of one function after which a warning says what keeps changing, and again whenever there are twice as many.
WARN_AFTER = 16
#: Sizes that a function is traced for before it is traced for all, which takes as long as for many, unless
#: ``shapeless=True`` says that it can be.
PATIENCE = 4

_ARRAYS = {array}


class CompiledFunction(Generic[P, R]):
    """What `smelt.compile` returns. Call it; or take it apart with `trace`."""

    __qualname__: str

    def __init__(
        self, fun: Callable[P, R], inputs: Any, outputs: Any, shapeless: bool, pipeline: str | None,
        donate: Donate | None = None,
    ):  # fmt: skip
        functools.update_wrapper(self, fun)
        self._fun, self._name = fun, name_of(fun)
        self._inputs, self._outputs = inputs, outputs
        self._pipeline = pipeline
        self._shapeless = flag("compile", "shapeless", shapeless)
        self._donate = donate
        self._donations = None if donate is None else Donations(fun, self._name, donate)
        self._is_plain = inputs is None and outputs is None and donate is None
        #: From so many sizes on the function is traced for all sizes.
        self._patience = 1 if self._shapeless else PATIENCE
        is_shared = inputs is None and outputs is None
        given = None if self._donations is None else self._donations.key  # what is given up is written where it lies
        self._store = versions_of(fun, pipeline, given) if is_shared else Versions(None, (inputs, outputs))
        self._lock = locks.lock()
        self.shared: frozenset[int] = frozenset()
        self._repeated: RepeatedCall | None = None
        self._steps = Steps()
        code = getattr(fun, "__code__", None)
        #: Whether the function may see in which order arguments are named.
        self._sees_order = code is None or bool(code.co_flags & inspect.CO_VARKEYWORDS)

    @overload
    def __get__(self, instance: None, owner: Any = None) -> CompiledFunction[P, R]: ...
    @overload
    def __get__(self: CompiledFunction[Concatenate[T, Q], R], instance: T, owner: Any = None) -> Callable[Q, R]: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, receiver(instance))

    def __repr__(self) -> str:
        return f"<smelt.compile of {self._name}, {len(self._store.entries)} versions>"

    def __reduce__(self) -> Any:
        """Pickled as what it is called, like a function, or as the function of that name compiled; a child process
        compiles for itself."""
        name = getattr(self, "__qualname__", self._name)
        found: Any = sys.modules.get(getattr(self, "__module__", ""))
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is not self._fun or self._inputs is not None or self._outputs is not None:
            return name
        return CompiledFunction, (self._fun, None, None, self._shapeless, self._pipeline, self._donate)

    def __copy__(self) -> CompiledFunction[P, R]:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> CompiledFunction[P, R]:
        fun = copy.deepcopy(self._fun, memo)  # another function where it is bound to an object
        if fun is self._fun:
            return self
        inputs, outputs = copy.deepcopy((self._inputs, self._outputs), memo)
        return CompiledFunction(fun, inputs, outputs, self._shapeless, self._pipeline, self._donate)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if settings.disable_compile or state.recording or state.compiling:
            return self._inline(args, kwargs)
        if self._is_plain:
            repeated = self._repeated
            if repeated is not None and repeated.version is self._store.recent:
                buffers = repeated.buffers(args, kwargs)
                if buffers is not None:
                    return repeated.result(repeated.version.executable.run(buffers))
            return self._run(args, kwargs)
        if self._inputs is None and self._outputs is None:
            return self._run(args, kwargs)
        held = None
        try:
            under_way.append(self)
            held = self._lock if len(under_way) == 1 else turn_of(self)
            with held:
                step = self._steps.last
                if step is not None and step.call.version is self._store.recent:
                    outs = step.run(args, kwargs, self._inputs, self._outputs)
                    if outs is not None:
                        return step.call.arranged(outs)
                return self._run(args, kwargs)
        finally:
            try:
                under_way.remove(self)  # the first call here: no interrupt comes before it
            except ValueError:  # this process was forked in the call
                pass
            finally:
                release(held)

    def _inline(self, args: Any, kwargs: Any) -> Any:
        """The function as part of another trace."""
        if self._inputs is None and self._outputs is None:
            return repeated_calls.call(self._fun, args, kwargs)
        leaves, treedef = tree.flatten((args, kwargs))
        args, kwargs = tree.unflatten(treedef, [wrap(x._ref) if isinstance(x, array) else unwrapped(x) for x in leaves])
        return self._fun(*args, **kwargs)

    def _run(self, args: Any, kwargs: Any) -> Any:
        # Functions see in which order their dicts are, so it belongs to the key; so do names only for ``**kwargs``.
        if kwargs and not self._sees_order:
            kwargs = {name: kwargs[name] for name in sorted(kwargs)}
        leaves, treedef = tree.flatten((args, kwargs) if kwargs else args, space=tree.STATES)
        leaves = seen(leaves) if shadows else leaves
        parts: list[Any] = [treedef, (default_device().name, settings.of_programs, profiling.active is not None)]
        if _ARRAYS.issuperset(map(type, leaves)):
            refs = [x._ref for x in leaves]
            parts += [node.avals[i] for node, i in refs]
        else:
            refs = []
            for x in leaves:
                if isinstance(x, array):
                    refs.append(x._ref)
                    parts.append(x.aval)
                else:
                    parts.append(static_part(x, self._name))
        state_arrays: list[array] = []
        if self._inputs is not None:
            state_arrays = self._read_state(parts)
            refs += [x._ref for x in state_arrays]
        key = tuple(parts)
        store = self._store
        version = guarded.find(store.entries, key)
        if version is None or version is not store.recent:
            if version is None or version is UNCLEAR:
                version = self._make(key, args, kwargs, leaves, treedef, state_arrays)
            else:
                store.use(key, version)
        if self._outputs is None:
            outs = self._results(version, refs, args, kwargs)
        else:
            outs = self._step(version, refs, state_arrays, args, kwargs)
        for position, value in version.static_outputs:
            outs.insert(position, value)
        result = tree.unflatten(version.out_tree, outs)
        known = self._repeated
        if (known is None or known.version is not version) if self._is_plain else self._steps.ask(version):
            is_clear = guarded.find(store.entries, key) is version
            call = RepeatedCall.of(args, kwargs, leaves, treedef, version, is_clear, self._sees_order)
            if self._is_plain:
                self._repeated = call
            elif call is not None and self._donations is None and not version.gives_up(len(arrays_of(leaves))):
                self._remember_step(call, leaves, key)
        return result

    def _remember_step(self, call: RepeatedCall, leaves: Sequence[Any], key: tuple[Any, ...]) -> None:
        """Keep a call with state, if the next one may be like it. `leaves`: of the arguments; `key`: of the version."""
        after = [*key[: 2 + len(leaves)]]
        if self._inputs is not None:
            self._read_state(after)
        if guarded.is_equal(tuple(after), key):  # a call with the state that this one has left is like it
            self._steps.last = RepeatedStep.of(call, self._inputs, self._outputs) or self._steps.last

    def _read_state(self, parts: list[Any]) -> list[array]:
        """The arrays in `inputs`; what of the state belongs to the key of a version goes to `parts`."""
        leaves, treedef = tree.flatten(self._inputs, space=tree.STATES)
        if _ARRAYS.issuperset(map(type, leaves)):
            arrays = leaves
            parts += [node.avals[i] for node, i in [x._ref for x in leaves]]
        else:
            arrays = [x for x in leaves if isinstance(x, array)]
            parts += [x.aval if isinstance(x, array) else state_part(x) for x in leaves]
        parts.append(treedef)
        if len({*map(id, arrays)}) < len(arrays):  # one array in two places
            parts.append(tuple(places_of(arrays)))
        return arrays

    def _step(
        self, version: Version, refs: list[Ref], state_arrays: list[array], args: Any, kwargs: Any
    ) -> list[Any]:  # fmt: skip
        """Run a version that gives `outputs` new values; its other results.

        Where it may write the new state over the old one, `refs` and `state_arrays` are emptied: the call alone has it.
        """
        n_arguments = len(refs) - len(state_arrays)
        gives_up = version.gives_up(n_arguments) and have_run(refs)
        replaced = GivenState(self._outputs, state_arrays, n_arguments) if gives_up else None
        outs = self._noted(version, refs, args, kwargs) if gives_up else self._results(version, refs, args, kwargs)
        updated = outs[version.n_outputs :]
        new = [updated[place] if place is not None else x for place, x in version.state_leaves]
        if replaced is None:
            put_whole(self._outputs, tree.unflatten(version.state_tree, new))
        else:
            for held in (refs, state_arrays):
                held.clear()
            replaced.run(tree.unflatten(version.state_tree, new), outs)
        del outs[version.n_outputs :]
        return outs

    def _results(self, version: Version, refs: list[Ref], args: Any, kwargs: Any) -> list[Any]:
        """Run a version, or if an argument has no value yet, note that it is to be run."""
        executable = version.executable
        try:
            buffers = [node.values[i] for node, i in refs]  # type: ignore[index]
        except TypeError:
            is_noted = executable.donatable or not have_run(refs)  # memory is given up in calls that are noted
            if is_noted and executable.results and not any(n.op is PARAMETER for n, _ in refs):
                return self._noted(version, refs, args, kwargs)
            evaluate(refs)
            buffers = [node.values[i] for node, i in refs]  # type: ignore[index]
        if version.captured:
            buffers += version.captured
        if self._donations is None:
            return evaluated(executable.run(buffers))
        return evaluated(self._donations.run(executable, refs, buffers, self._donations.arrays(args, kwargs)))

    def _noted(self, version: Version, refs: Sequence[Ref], args: Any, kwargs: Any) -> list[Any]:
        """The results of a call that runs when they are asked for."""
        if self._donations is not None:
            self._donations.take(self._donations.arrays(args, kwargs))
        avals = version.executable.results
        node = Node(COMPILED, version.noted, tuple(refs), tuple(avals))
        if len(avals) == 1:
            return [wrap((node, 0))]
        # Each has a node of its own, so that none keeps the memory of the others.
        return [wrap((Node(ALIAS, NO_ATTRS, ((node, i),), (aval,)), 0)) for i, aval in enumerate(avals)]

    def _make(self, key: Any, args: Any, kwargs: Any, leaves: list, treedef: Any, state_arrays: list) -> Version:
        store = self._store
        with store.lock, collector.kept():
            if (keys := keys_of_dicts(part for part in key if tree.is_structure(part))) is not None:
                guarded.put(store.entries, key, UNCLEAR)
                key = (*key, keys)
            version = guarded.find(store.entries, key)
            if version is not None:
                store.use(key, version)
                return version
            traced, held = self._trace_or_know(key, args, kwargs, leaves, treedef, state_arrays)
            captured = traced.captured
            if captured:
                evaluate(captured)
            version = Version()
            version.passing, version.state_leaves, version.state_tree = held
            version.executable = self._executable(traced, version.passing)
            version.captured = [n.values[i] for n, i in captured]  # type: ignore[index]
            executable = version.executable
            call = NotedCall(executable.run, executable, version.captured)
            if self._donations is not None:
                call.prepared = False  # it runs in the memory that it was given
            version.noted = {"call": call}
            version.out_tree = traced.out_tree
            version.static_outputs = sorted(traced.static_outputs.items())
            version.n_outputs = traced.n_results - traced.n_state_out
            store.put(key, version)
            return version

    def _trace_or_know(
        self, key: Any, args: Any, kwargs: Any, leaves: list, treedef: Any, state_arrays: list[array]
    ) -> tuple[Trace, HeldState]:
        """The trace for these arguments and what it leaves in `outputs`, without one where that for other sizes says
        it (`shapeless`)."""
        store = self._store
        stateful = self._inputs is not None or self._outputs is not None
        sizes = None if stateful and any(isinstance(part, type) for part in key) else Sizes(key)
        always = self._shapeless and not stateful
        known = None if sizes is None else store.sized.find(sizes)
        if known is not None and (always or store.is_as_traced(self._fun)):
            return known

        def trace(sized: Callable[[Aval], Aval] | None = None) -> tuple[Trace, HeldState]:
            traced, outputs = self._trace(args, kwargs, leaves, treedef, bool(kwargs), state_arrays, sized)
            return traced, self._held(outputs, sized is None and self._changes_types(outputs))

        self._count_trace(key)
        with store.tracing(self._fun):
            found = trace()
        if sizes is not None and (always or store.is_pure) and store.sized.waits(sizes, self._patience):
            with store.tracing(self._fun):
                store.sized.met(sizes, found, trace)
            return store.sized.find(sizes) or found  # what runs op by op for all sizes is known of it
        return found

    @staticmethod
    def _held(outputs: Any, changes_types: bool) -> HeldState:
        """What a trace leaves in `outputs`: whether of other types, its leaves (`Version.state_leaves`), its tree."""
        leaves, treedef = tree.flatten(outputs)
        places = iter(places_of([x for x in leaves if isinstance(x, array)]))
        held: list[tuple[int | None, Any]]
        held = [(next(places), None) if isinstance(x, array) else (None, x) for x in leaves]
        return changes_types, held, treedef

    def _changes_types(self, outputs: Any) -> bool:
        """Whether the state is made, or gets other types, by a call that leaves `outputs`: so does the first step of
        an optimizer, which begins without momenta."""
        if self._inputs is None or self._outputs is None:
            return False
        (before, old), (after, new) = tree.flatten(self._outputs), tree.flatten(outputs)
        return not guarded.equal(old, new) or any(
            isinstance(x, array) and isinstance(y, array) and x.aval != y.aval for x, y in zip(before, after)
        )

    def _executable(self, traced: Trace, passing: bool) -> Executable:
        """The first program is what was asked for (see `executable_of`); for other sizes one is made when it pays, and
        for state that the call makes as well: the next call has it."""
        pipeline, name = self._pipeline, self._name  # `make` is kept with the program, and must not keep the function

        def make() -> Executable:
            return _compiled(traced.function, traced.names, pipeline, name)

        if pipeline is not None or profiling.active is not None:
            return make()
        first = not any(version is not UNCLEAR and not version.passing for version in self._store.entries.values())
        tiered = locks.loaded("smelt.lazy.execution.tiered")
        found: Executable = tiered.executable_of(
            lambda: traced.function, traced.ops, default_device(), make, first, passing
        )
        return found

    def _count_trace(self, key: Any) -> None:
        store = self._store
        store.traces += 1
        times, rest = divmod(store.traces, WARN_AFTER)
        if not rest and times & (times - 1) == 0 and store.last_key is not None:
            changed = [
                f"argument {i - 2}: {a} → {b}"
                for i, (a, b) in enumerate(zip(store.last_key, key))
                if a != b and i >= 2
            ]
            warnings.warn(
                at_user_line(
                    f"smelt.compile: {self._name} was traced {store.traces} times; "
                    f"{'; '.join(changed) or 'the argument tree'} changed last. Pass changing numbers as "
                    "smelt.array, and keep shapes fixed; smelt.explain() lists what was compiled, and why"
                ),
                stacklevel=5,
            )
        store.last_key = key

    def _trace(
        self, args: Any, kwargs: Any, leaves: list, treedef: Any, with_kwargs: bool, state_arrays: list[array],
        sized: Callable[[Aval], Aval] | None = None,
    ) -> tuple[Trace, Any]:  # fmt: skip
        """The trace, and a copy of `outputs` as the function leaves it. The state itself is as before.

        Args:
            sized: gives the arguments and the state other types.
        """
        names = names_of_arguments(self._fun, args, kwargs)
        parameters: list[Ref] = []
        inner = []
        given = {} if self._donations is None else self._donations.arrays(args, kwargs)
        for x in leaves:
            if isinstance(x, array):
                aval = x.aval if sized is None else sized(x.aval)
                parameters.append(parameter(aval, GIVEN if len(parameters) in given else NO_ATTRS))
                inner.append(wrap(parameters[-1]))
            else:
                inner.append(unwrapped(x))
        rebuilt = tree.unflatten(treedef, inner)
        new_args, new_kwargs = rebuilt if with_kwargs else (rebuilt, {})
        before = [(held, tree.mapped(state_leaf, held)) for held in (self._inputs, self._outputs) if held is not None]
        traced_state = TracedState([*state_arrays, *(x for _, copied in before for x in arrays_of(copied))])
        values = [x._ref for x in (*arrays_of(leaves), *state_arrays)]
        outputs: Any = None
        state_refs: list[Ref] = []
        self.shared = parts_of((self._inputs, self._outputs))
        try:
            with tracing():
                parameters += [parameter(x.aval if sized is None else sized(x.aval)) for x in state_arrays]
                traced_state.begin(zip(parameters, values) if before else None)
                for x, ref in zip(state_arrays, parameters[len(parameters) - len(state_arrays) :]):
                    x._ref = ref
                result = self._fun(*new_args, **new_kwargs)
                outs, out_tree = tree.flatten(result)
                _check_no_iterator(outs, self._name)
                refs = [x._ref for x in outs if isinstance(x, array)]  # of the state's arrays, too
                if self._outputs is not None:
                    outputs = tree.mapped(state_leaf, self._outputs)
                    state_refs = [x._ref for x in arrays_of(outputs)]
        finally:
            try:
                self._put_back(traced_state, before)
            finally:  # what an interrupt kept that from
                self._put_back(traced_state, before)
        static = {i: x for i, x in enumerate(outs) if not isinstance(x, array)}
        f = record_function(self._name, parameters, refs + state_refs, keep_outside=False)
        _check_no_leak(f, {n for n, _ in parameters})
        return Trace(self._name, f, out_tree, names, len(state_refs), static, self._pipeline), outputs

    def _put_back(self, traced_state: TracedState, before: list[tuple[Any, Any]]) -> None:
        """Make the state what it was before a trace; `before`: trees, and copies of them as they were."""
        if traced_state.is_over:
            return
        traced_state.end([held for held, _ in before])
        for held, copied in before:
            put(held, copied)
        self.shared = frozenset()
        traced_state.is_over = True

    def trace(self, *args: Any, **kwargs: Any) -> Trace:
        """Trace for these arguments; arrays may be given as `smelt.array` or by `smelt.ShapeDtype`."""
        args, kwargs = tree.mapped(_materialize, (args, kwargs))
        leaves, treedef = tree.flatten((args, kwargs), space=tree.STATES)
        with turn(self):
            held = tree.flatten(self._inputs, space=tree.STATES)[0] if self._inputs is not None else []
            state_arrays = [x for x in held if isinstance(x, array)]
            return self._trace(args, kwargs, leaves, treedef, True, state_arrays)[0]


explain_names(CompiledFunction)


def _compiled(f: GraphFunction, names: Sequence[str | None], pipeline: str | None, name: str) -> Executable:
    device = default_device()
    own = None if pipeline is None or pipeline == device.pipeline else pipeline  # asking a device loads its passes
    return compiled_by(own, device, lambda: program_of(f.parameters, f.body, f.outputs, device, names, own, name))


def _materialize(x: Any) -> Any:
    return placeholder(x.aval) if isinstance(x, ShapeDtype) else x


def _check_no_iterator(results: list, name: str) -> None:
    for x in results:
        if isinstance(x, (Iterator, Coroutine)):
            raise TreeError(
                at_user_line(
                    f"smelt.compile: {name} returned a {type(x).__name__}, which would run after the trace; "
                    "return a list or a tuple"
                )
            )


def _check_no_leak(f: GraphFunction, parameters: set[Node]) -> None:
    for node, i in f.captured:
        if node.op is PARAMETER and node not in parameters:
            check_not_donated(node)
        if node.op is PARAMETER and node not in parameters and not state.compiling:
            raise TraceError(
                at_user_line(
                    f"smelt.compile: {f.name} uses an array ({node.avals[i]}) that was made while {OF_A_TRACE}"
                )
            )
