"""`Optimizer`: what all optimizers are, several of them as one, and clipping."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import smelt
from smelt import array
from smelt.ir.errors import (
    ArgumentTypeError,
    AttributeValueError,
    DTypeError,
    ShapeError,
    SmeltError,
    TreeError,
    UndefinedMethodError,
    at_user_line,
    shown,
)

from ..lacking import missing_member
from ..lazy.arguments import number
from ..lazy.core import Memory, call
from ..lazy.explained import explained
from ..lazy.signatures import T
from ..lazy.tree import kind_of
from ..utils import tree_flatten, tree_map, tree_map_with_path, tree_merge

__all__ = ["MultiOptimizer", "Optimizer", "clip_grad_norm"]

#: Modules that are optimizers of smelt.
_OWN = __name__.rpartition(".")[0]


class Optimizer:
    """How gradients change parameters. Subclasses define `init_single` and `apply_single`.

    Args:
        schedulers: by name, functions of the number of steps that give an entry of the state, such as the learning
            rate.

    Raises:
        ArgumentTypeError: from a call; `schedulers` is no dict of functions.

    >>> import smelt
    >>> class Descent(smelt.optimizers.Optimizer):
    ...     def apply_single(self, gradient, parameter, state):
    ...         return parameter - 0.5 * gradient
    >>> Descent().apply_gradients({"w": smelt.array([1.0])}, {"w": smelt.array([2.0])})
    {'w': array([1.5], dtype=float32)}
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.__module__.startswith(_OWN) and "__init__" in cls.__dict__:
            cls.__init__ = explained(cls.__init__)  # type: ignore[method-assign]

    def __init__(self, schedulers: dict[str, Callable[[array], array]] | None = None):
        self._initialized = False
        self._state: dict[str, Any] = {"step": smelt.array(0, smelt.uint64)}
        if schedulers and not (isinstance(schedulers, dict) and all(map(callable, schedulers.values()))):
            rule = "schedulers is a dict of functions of the number of steps"
            raise ArgumentTypeError(at_user_line(f"smelt.optimizers.Optimizer: {rule}, not {shown(schedulers)}"))
        self._schedulers = dict(schedulers or {})

    def __getattr__(self, name: str) -> Any:
        raise missing_member(name, self, "smelt.optimizers.Optimizer")

    @property
    def state(self) -> dict[str, Any]:
        """A dict: ``"step"``, ``"learning_rate"`` and, in a tree like that of the parameters, a dict for each.

        Of parameters that are called like one of these entries the dicts are under ``"parameters"``.
        It keeps its identity, so it may be given to `inputs` and `outputs` of `smelt.compile`.
        """
        return self._state

    @state.setter
    def state(self, state: dict[str, Any]) -> None:
        if not isinstance(state, dict):
            message = f"{type(self).__name__}: a state is a dict, got {kind_of(state)}"
            raise ArgumentTypeError(at_user_line(message))
        self._initialized = False
        self._state = state

    @property
    def step(self) -> array:
        """How many times gradients have been applied, uint64."""
        return self._state["step"]

    @property
    def learning_rate(self) -> array:
        """The learning rate, which may be set."""
        return self._state["learning_rate"]

    @learning_rate.setter
    def learning_rate(self, learning_rate: float | array) -> None:
        self._state["learning_rate"] = smelt.array(learning_rate)

    def _maybe_schedule(self, name: str, value: float | array | Callable[[array], array]) -> None:
        """Make a number, or what a function gives, an entry of the state.

        Raises:
            ArgumentTypeError: it is neither.
        """
        of_parameters = isinstance(value, dict)  # also a module, which may be called
        if callable(value) and not of_parameters:
            self._schedulers[name] = value
            value = value(self.step)
        try:
            self._state[name] = smelt.array(value)  # type: ignore[arg-type]
        except SmeltError:
            rule = f"{name} must be a number, or a function that gives one, is {shown(value)}"
            rule += "; parameters are given to init and update" if of_parameters else ""
            raise ArgumentTypeError(at_user_line(f"smelt.optimizers.{type(self).__name__}: {rule}")) from None

    def _members(self) -> list[Optimizer]:
        """The optimizers that have a state: this one, or those that it consists of."""
        return [self]

    @explained
    def init(self, parameters: Any) -> None:
        """Make the state for parameters. Without it the first gradients do, and a compiled step is traced twice.

        Args:
            parameters: nested dicts and lists of arrays, such as ``model.trainable_parameters()``, or a module.

        >>> import smelt
        >>> optimizer = smelt.optimizers.Adam(0.1)
        >>> optimizer.init({"w": smelt.array([1.0])})
        >>> sorted(optimizer.state["w"])
        ['m', 'v']
        """
        with whole_or_nothing(self):
            self._walk("init", parameters, parameters, self._state, "", lambda g, p, s: p)
            self._initialized = True

    def init_single(self, parameter: array, state: dict[str, Any]) -> None:
        """Make the state of one parameter.

        Args:
            parameter: the array. state: what it is to have from step to step, by name; empty before.
        """

    def apply_single(self, gradient: array, parameter: array, state: dict[str, Any]) -> array:
        """The new value of a parameter; `state` is its own, to be updated.

        Args:
            gradient, parameter: arrays of one shape. state: what `init_single` made.

        Raises:
            UndefinedMethodError: a subclass that does not define it.
        """
        message = "defines no apply_single(gradient, parameter, state), which returns the new value of a parameter"
        raise UndefinedMethodError(at_user_line(f"smelt.optimizers.Optimizer: {type(self).__name__} {message}"))

    @explained
    def update(self, model: Any, gradients: Any) -> None:
        """Apply gradients to the parameters of a module, which has the new ones afterwards.

        Args:
            model: the module.
            gradients: nested dicts and lists, as from `smelt.nn.value_and_grad`; of some parameters or of all.

        Raises:
            ArgumentTypeError: no module. TreeError: a gradient without a parameter. ShapeError: one of another shape.
                The messages name the path.

        >>> import smelt
        >>> model = smelt.nn.Linear(1, 1)
        >>> model.bias = smelt.array([1.0])
        >>> smelt.optimizers.SGD(0.5).update(model, {"bias": smelt.array([1.0])})
        >>> model.bias
        array([0.5], dtype=float32)
        """
        swapped = hasattr(gradients, "trainable_parameters") and not hasattr(model, "trainable_parameters")
        if swapped or not callable(getattr(model, "update", None)):
            rule = "the module comes first, then its gradients" if swapped else "needs a module"
            message = f"{type(self).__name__}.update: {rule}, got {kind_of(model)}"
            raise ArgumentTypeError(at_user_line(message))
        model.update(self.apply_gradients(gradients, model))

    @explained
    def apply_gradients(self, gradients: T, parameters: Any) -> T:
        """The new values of parameters, in a tree like that of the gradients. After an error the state is as before.

        Args:
            gradients: an array, or nested dicts and lists of arrays. parameters: the same, or more.

        Raises:
            TreeError: a gradient without a parameter, or that is no array. ShapeError: one of another shape.
                DTypeError: one of integers, or of complex numbers for real ones. The messages name the path.

        >>> import smelt
        >>> smelt.optimizers.SGD(0.5).apply_gradients({"w": smelt.array([1.0])}, {"w": smelt.array([2.0])})
        {'w': array([1.5], dtype=float32)}
        """
        if not isinstance(gradients, (dict, list, tuple, array)):
            name = f"smelt.optimizers.{type(self).__name__}.apply_gradients"
            raise TreeError(at_user_line(f"{name}: gradients must be a tree of arrays, is {kind_of(gradients)}"))
        with whole_or_nothing(self):
            if not self._initialized:
                self.init(gradients)
            for name, schedule in self._schedulers.items():
                value = schedule(self.step)
                self._state[name] = value if isinstance(value, array) else smelt.array(value)
            self._state["step"] = self.step + 1
            return self._walk("apply_gradients", gradients, parameters, self._state, "", self._apply())

    def _apply(self) -> Callable[[array, array, dict[str, Any]], array]:
        """`apply_single` for all parameters of one step. That of optimizers of smelt makes the same nodes for
        parameters of one type, so it is followed as a recipe (see `smelt.lazy.core`)."""
        kind = type(self)
        if not kind.__module__.startswith(_OWN):
            return self.apply_single
        steps = tuple([base.__dict__.get("apply_single") for base in kind.__mro__])
        known = _memories.get(kind)
        if known is None or known[0] != steps:  # a program may put its own function into a class
            known = _memories[kind] = steps, Memory(functools.partial(_applied, kind), frozenset())
        memory = known[1]
        settings = [(name, value) for name, value in vars(self).items() if name not in _NO_SETTINGS]
        own = {name: value for name, value in self._state.items() if isinstance(value, array)}
        common = (*itertools.chain.from_iterable(settings),), (*own,), [*own.values()]

        def apply(gradient: array, parameter: array, state: dict[str, Any]) -> array:
            found, *values = call(memory, (gradient, parameter, (*state,), [*state.values()], *common), {})
            state.update(zip(state, values))
            return found

        return apply

    def _walk(self, what: str, gradients: Any, parameters: Any, state: Any, path: str, apply: Callable) -> Any:
        """A function of each gradient, its parameter and its state; states are made where there are none."""
        pairs: list[tuple[Any, Any]]
        if isinstance(gradients, dict):
            pairs = list(gradients.items())
        elif isinstance(gradients, (list, tuple)):
            pairs = list(enumerate(gradients))
        else:
            return self._leaf(what, gradients, parameters, state, path, apply)
        found = []
        for key, below in pairs:
            place = f"{path}.{key}" if path else str(key)
            try:
                parameter = parameters[key]
            except (KeyError, IndexError, TypeError):
                if isinstance(parameters, dict) and not isinstance(gradients, dict):
                    hint = "" if path else "; smelt.nn.value_and_grad gives (value, gradients)"
                    problem = f"is a {type(gradients).__name__} where the parameters are a dict{hint}"
                    raise self._misfit(what, path or "gradients", problem) from None
                raise self._misfit(what, place, "is no parameter, but has a gradient") from None
            found.append((key, self._walk(what, below, parameter, _state_below(state, key, below), place, apply)))
        if isinstance(gradients, dict):
            return dict(found)
        values = [value for _, value in found]
        return tuple(values) if isinstance(gradients, tuple) else values

    def _leaf(self, what: str, gradient: Any, parameter: Any, state: Any, path: str, apply: Callable) -> Any:
        """`_walk` of one gradient, or of what stands in the place of one."""
        if not isinstance(gradient, array):
            if isinstance(parameter, array) and gradient is not None:
                raise self._misfit(what, path, f"is {parameter.aval}, its gradient {kind_of(gradient)}")
            return parameter  # no gradient: a setting that stands among the parameters
        if not isinstance(parameter, array):
            raise self._misfit(what, path, f"is {kind_of(parameter)}, which has no gradient")
        given, own = gradient.aval, parameter.aval
        if given is not own:
            if given.shape != own.shape:
                raise self._misfit(what, path, f"is {own}, its gradient {given}", ShapeError)
            if own.dtype.is_inexact and not given.dtype.is_inexact:
                raise self._misfit(what, path, f"is {own}, its gradient {given}, of integers", DTypeError)
            if given.dtype.is_complex and not own.dtype.is_complex:
                raise self._misfit(what, path, f"is {own}, its gradient {given}, of complex numbers", DTypeError)
        if not given.dtype.is_inexact:
            return parameter  # positions, masks: no step leads anywhere
        state = state if path else state.setdefault("parameters", {})  # one array: the dict has the step, too
        if not state:
            self.init_single(parameter, state)
        return apply(gradient, parameter, state)

    def _misfit(self, what: str, path: str, problem: str, kind: type[SmeltError] = TreeError) -> SmeltError:
        return kind(at_user_line(f"smelt.optimizers.{type(self).__name__}.{what}: {path} {problem}"))


#: By class of smelt's optimizers, `apply_single` of it and those above, and the recipes of a step of one parameter.
_memories: dict[type[Optimizer], tuple[tuple[Any, ...], Memory]] = {}
#: Attributes of an optimizer on which such a step does not depend but by the arrays in the state.
_NO_SETTINGS = ("_initialized", "_state", "_schedulers")


def _applied(
    kind: type[Optimizer], gradient: array, parameter: array, names: tuple[str, ...], values: list[array],
    settings: tuple[Any, ...], own_names: tuple[str, ...], own: list[array],
) -> list[array]:  # fmt: skip
    """The new value of a parameter and its new state, by an optimizer with these settings (names and values in turn)
    and arrays of its own."""
    optimizer = object.__new__(kind)
    optimizer.__dict__.update(zip(settings[::2], settings[1::2]), _state=dict(zip(own_names, own)))
    state = dict(zip(names, values))
    found = optimizer.apply_single(gradient, parameter, state)
    return [found, *[state[name] for name in names]]


def _state_below(state: Any, key: Any, below: Any) -> Any:
    """The state for what is below a key, which is made where there is none."""
    empty: Any = [] if isinstance(below, (list, tuple)) else {}
    if isinstance(state, list):
        state += [{}] * (key + 1 - len(state))
        state[key] = state[key] or empty
        return state[key]
    if isinstance(state.get(key), array):  # an entry of the optimizer's own, such as the number of steps
        state = state.setdefault("parameters", {})
    return state.setdefault(key, empty)


@contextmanager
def whole_or_nothing(optimizer: Optimizer) -> Iterator[None]:
    """A step that is made as a whole: after an error the dicts and lists of the state are the same, with what was in
    them before."""
    before = [(m, m._initialized, m._state, _contents(m._state)) for m in optimizer._members()]
    try:
        yield
    except BaseException:
        for member, initialized, state, contents in before:
            member._initialized, member._state = initialized, state
            for holder, content in contents:
                holder.clear()
                holder.update(content) if isinstance(holder, dict) else holder.extend(content)
        raise


def _contents(state: Any) -> list[tuple[Any, Any]]:
    """The dicts and lists of a state, each with a copy of what is in it."""
    found: list[tuple[Any, Any]] = []
    below = [state]
    for holder in below:  # grows on the way
        if isinstance(holder, dict):
            found.append((holder, holder.copy()))
            below += holder.values()
        elif isinstance(holder, list):
            found.append((holder, holder.copy()))
            below += holder
    return found


class MultiOptimizer(Optimizer):
    """Several optimizers, each for some of the parameters.

    Args:
        optimizers: a list of them. filters: for each but the last a function of the path of a parameter and of its
            gradient. The first optimizer whose filter is true gets the parameter, the last one the rest.

    Raises:
        AttributeValueError: not one filter less than optimizers.

    >>> import smelt
    >>> slow, quick = smelt.optimizers.SGD(0.25), smelt.optimizers.SGD(1.0)
    >>> both = smelt.optimizers.MultiOptimizer([slow, quick], [lambda path, gradient: path == "bias"])
    >>> ones = {"bias": smelt.ones(1), "weight": smelt.ones(1)}
    >>> both.apply_gradients(ones, ones)
    {'bias': array([0.75], dtype=float32), 'weight': array([0], dtype=float32)}
    """

    def __init__(self, optimizers: Sequence[Optimizer], filters: Sequence[Callable[[str, Any], bool]] = ()):
        super().__init__()
        self._state = {}
        _check_all("optimizers", optimizers, lambda x: isinstance(x, Optimizer))
        _check_all("filters", filters, callable)
        if len(filters) != len(optimizers) - 1:
            raise AttributeValueError(
                at_user_line(
                    "smelt.optimizers.MultiOptimizer: needs one filter less than optimizers; got "
                    f"{len(optimizers)} optimizers, {len(filters)} filters"
                )
            )
        self.optimizers = list(optimizers)
        self.filters = [*filters, lambda path, gradient: True]

    def _parts(self, gradients: Any) -> list[Any]:
        """For each optimizer the tree, with empty dicts in place of what is not its own."""
        owner: dict[str, int] = {}
        for path, x in tree_flatten(gradients):
            owner[path] = next(i for i, chosen in enumerate(self.filters) if chosen(path, x))
        return [
            tree_map_with_path(lambda path, x, i=i: x if owner[path] == i else {}, gradients)
            for i in range(len(self.optimizers))
        ]

    def _members(self) -> list[Optimizer]:
        return [member for optimizer in self.optimizers for member in optimizer._members()]

    def init(self, parameters: Any) -> None:
        """Make the states for parameters; see `Optimizer.init`."""
        with whole_or_nothing(self):
            for optimizer, part in zip(self.optimizers, self._parts(parameters)):
                optimizer.init(part)

    def apply_gradients(self, gradients: T, parameters: Any) -> T:
        """The new values of parameters; see `Optimizer.apply_gradients`."""
        found: Any = {}
        with whole_or_nothing(self):
            for optimizer, part in zip(self.optimizers, self._parts(gradients)):
                found = tree_merge(found, optimizer.apply_gradients(part, parameters))
        return found

    @property
    def state(self) -> dict[str, Any]:
        """The states of the optimizers, as a list under ``"states"``."""
        return {"states": [optimizer.state for optimizer in self.optimizers]}

    @state.setter
    def state(self, state: dict[str, Any]) -> None:
        states = state.get("states") if isinstance(state, dict) else None
        if states is None or len(states) != len(self.optimizers):
            raise TreeError(
                at_user_line(
                    f"smelt.optimizers.MultiOptimizer: state needs {len(self.optimizers)} entries under 'states'"
                )
            )
        for optimizer, own in zip(self.optimizers, states):
            optimizer.state = own

    @property
    def learning_rate(self) -> array:
        """The learning rate of the first optimizer; setting it sets all."""
        return self.optimizers[0].learning_rate

    @learning_rate.setter
    def learning_rate(self, learning_rate: float | array) -> None:
        for optimizer in self.optimizers:
            optimizer.learning_rate = learning_rate  # type: ignore[assignment]


def _check_all(what: str, given: Any, fits: Callable[[Any], bool]) -> None:
    if not isinstance(given, (list, tuple)) or not all(map(fits, given)):
        rule = f"{what} must be a list of {'functions' if what == 'filters' else what}, is {shown(given)}"
        raise ArgumentTypeError(at_user_line(f"smelt.optimizers.MultiOptimizer: {rule}"))


@explained
def clip_grad_norm(grads: T, max_norm: float) -> tuple[T, array]:
    """Gradients, scaled down where the norm of all of them together is more than `max_norm`.

    Args:
        grads: nested dicts and lists of arrays. max_norm: a number, 0 or more.

    Returns:
        The tree of gradients, floating-point ones in their dtypes, and their norm before: the root of the sum of all
        squares, at least in float32.

    Raises:
        ArgumentTypeError: `max_norm` is no number. AttributeValueError: it is negative.

    >>> import smelt
    >>> smelt.optimizers.clip_grad_norm({"w": smelt.array([3.0, 4.0])}, 2.5)
    ({'w': array([1.5, 2], dtype=float32)}, array(5, dtype=float32))
    """
    return clipped("optimizers.clip_grad_norm", grads, max_norm, lambda squares: squares)


def squared(x: array) -> array:
    """The squares of absolute values: of complex numbers real ones, so that both parts of a step are scaled alike."""
    return smelt.square(smelt.real(x)) + smelt.square(smelt.imag(x)) if x.dtype.is_complex else smelt.square(x)


def clipped(who: str, grads: T, max_norm: float, together: Callable[[array], array]) -> tuple[T, array]:
    """`clip_grad_norm`, where a function makes of the sum of squares here that of all processes."""
    if not isinstance(max_norm, array) and number(who, "max_norm", max_norm) < 0:
        raise AttributeValueError(at_user_line(f"smelt.{who}: max_norm must not be negative, is {shown(max_norm)}"))
    arrays = [x for _, x in tree_flatten(grads) if isinstance(x, array)]
    # Squares of half precision are soon beyond it.
    squares = [smelt.sum(squared(x.astype(smelt.result_type(x, smelt.float32)))) for x in arrays]
    norm = smelt.sqrt(together(sum(squares[1:], squares[0]) if squares else smelt.array(0.0)))
    factor = smelt.minimum(max_norm / (norm + 1e-6), 1.0)

    def scaled(x: Any) -> Any:
        if not isinstance(x, array):
            return x
        found = x * factor  # half precision takes a small factor for 0
        return found.astype(x.dtype) if x.dtype.is_inexact else found

    return tree_map(scaled, grads), norm
