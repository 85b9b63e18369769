"""`Module`: what all layers and models are."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import smelt
from smelt.ir.dtypes import DType
from smelt.ir.errors import (
    ArgumentTypeError,
    AttributeValueError,
    MissingMemberError,
    TreeError,
    at_user_line,
)
from smelt.ir.flags import flag

from ...lacking import missing_member
from ...lazy.explained import explained
from ...lazy.tree import kind_of
from ...transforms.recording import check_function
from ...utils import tree_flatten, tree_unflatten
from .entries import check_weights, named_weights, names_of, put_entries
from .parameters import is_setting, parameters_in
from .summary import Row, html_table, table

__all__ = ["Module"]

Self = TypeVar("Self", bound="Module")
#: Of the module that holds an entry, the entry's name there and its value: whether it counts.
Filter = Callable[["Module", str, Any], bool]

_CONTAINERS = (dict, list, tuple)
#: Modules that are layers of smelt.
_OWN = __name__.rpartition(".")[0]
_NONE: frozenset[str] = frozenset()


def _calls_no_forward(self: Module, *args: Any, **kwargs: Any) -> NoReturn:
    """What calling a module does that has the method that PyTorch calls."""
    rule = "has no __call__, which here is what PyTorch calls forward: rename it"
    raise ArgumentTypeError(at_user_line(f"{type(self).__name__} {rule}"))


class Module(dict[str, Any]):
    """A piece of a model: a dict of arrays, of other modules, and of dicts, lists and tuples of these.

    What is assigned to an attribute becomes an entry of the dict if it is one of these; anything else (numbers, texts,
    functions, tuples of such) is an ordinary attribute. Arrays whose names do not start with ``_`` are
    parameters. A module is a tree (`smelt.utils`), so `grad`, `vmap` and `compile` take it as an argument, and as
    `inputs` and `outputs`.

    Subclasses define ``__call__``.

    >>> import smelt
    >>> class Shift(smelt.nn.Module):
    ...     def __init__(self, size):
    ...         super().__init__()
    ...         self.amount = smelt.zeros(size)
    ...     def __call__(self, x):
    ...         return x + self.amount
    >>> shift = Shift(2)
    >>> shift(smelt.array([1.0, 2.0]))
    array([1, 2], dtype=float32)
    >>> shift.parameters()
    {'amount': array([0, 0], dtype=float32)}
    """

    # Attributes of an object only where it is frozen or evaluating: the fewer it has, the quicker it is as a tree.
    _no_grad: frozenset[str] = _NONE
    _training: bool = True

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "forward" in cls.__dict__ and not any("__call__" in base.__dict__ for base in cls.__mro__):
            cls.__call__ = _calls_no_forward  # type: ignore[method-assign]
        if cls.__module__.startswith(_OWN):
            for name in ("__init__", "__call__"):
                if name in cls.__dict__:
                    setattr(cls, name, explained(cls.__dict__[name]))

    @explained  # of layers that have none of their own
    def __init__(self) -> None:
        """Nothing is needed before attributes are assigned."""

    __hash__ = None  # type: ignore[assignment]  # as of a dict

    if TYPE_CHECKING:

        def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

    @property
    def training(self) -> bool:
        """Whether layers such as `Dropout` and `BatchNorm` do what they do in training."""
        return self._training

    @property
    def state(self: Self) -> Self:
        """The module itself: every array in it, for `inputs` and `outputs` of `smelt.compile`.

        >>> import smelt
        >>> layer = smelt.nn.Linear(1, 1)
        >>> layer.state is layer
        True
        """
        return self

    def _extra_repr(self) -> str:
        """What stands in brackets behind the name of the class."""
        return ""

    def __repr__(self) -> str:
        lines = [
            textwrap.indent(f"({path}): {child!r}", "  ")
            for path, child in _flat_modules(self.children())
            if isinstance(child, Module)
        ]
        inside = "".join(f"\n{line}" for line in lines) + "\n" * bool(lines)
        return f"{type(self).__name__}({self._extra_repr()}{inside})"

    def __getattr__(self, key: str) -> Any:
        try:
            return dict.__getitem__(self, key)
        except KeyError:
            pass
        if hasattr(type(self), key):  # a property, in which an attribute is missing
            return object.__getattribute__(self, key)
        raise missing_member(key, self, "smelt.nn.Module")

    def __setattr__(self, key: str, val: Any) -> None:
        if isinstance(val, (smelt.array, *_CONTAINERS)) and not is_setting(val):
            self.__dict__.pop(key, None)
            self[key] = val
        else:
            super().__setattr__(key, val)
            self.pop(key, None)

    def __delattr__(self, name: str) -> None:
        if name in self:
            del self[name]
        else:
            super().__delattr__(name)

    # What there is

    @staticmethod
    def is_module(value: Any) -> bool:
        """Whether a value is a module."""
        return isinstance(value, Module)

    @staticmethod
    def valid_child_filter(module: Module, key: str, value: Any) -> bool:
        """Whether an entry of a module is a module, or may hold some."""
        return isinstance(value, (dict, list))

    @staticmethod
    def valid_parameter_filter(module: Module, key: str, value: Any) -> bool:
        """Whether an entry of a module is a parameter, or may hold some."""
        return isinstance(value, (dict, list, smelt.array)) and not key.startswith("_")

    @staticmethod
    def trainable_parameter_filter(module: Module, key: str, value: Any) -> bool:
        """Whether an entry of a module is a parameter that is not frozen, or may hold some."""
        return Module.valid_parameter_filter(module, key, value) and key not in module._no_grad

    @explained  # a list that contains itself
    def filter_and_map(
        self,
        filter_fn: Filter,
        map_fn: Callable[[Any], Any] | None = None,
        is_leaf_fn: Filter | None = None,
    ) -> dict[str, Any]:
        """The entries of the module and of those inside it that a filter lets through, as nested dicts and lists.

        Args:
            filter_fn: gets a module, the name of an entry (``name.key`` inside a dict or list that is an entry) and
                its value. map_fn: what is done to leaves; nothing by default.
            is_leaf_fn: gets the same; whether this is a leaf. By default all that is no module, dict, list or tuple.

        Returns:
            Dicts in place of modules; ``{}`` in place of an entry of a dict or list that does not come through.

        >>> import smelt
        >>> layer = smelt.nn.Linear(2, 3)
        >>> layer.filter_and_map(lambda module, key, value: key == "bias", lambda x: x.shape)
        {'bias': (3,)}
        """
        for name, given in (("filter_fn", filter_fn), ("map_fn", map_fn), ("is_leaf_fn", is_leaf_fn)):
            if given is not None or name == "filter_fn":
                check_function(given, f"smelt.nn.Module.filter_and_map: {name}")
        if map_fn is is_leaf_fn is None and any(filter_fn is known for known in _OF_PARAMETERS):
            return parameters_in(self, filter_fn is Module.trainable_parameter_filter, Module)
        chosen = _Selection(filter_fn, map_fn, is_leaf_fn)
        return {k: chosen.below(self, k, v) for k, v in self.items() if filter_fn(self, k, v)}

    def parameters(self) -> dict[str, Any]:
        """All parameters, those of modules inside too, as nested dicts and lists.

        >>> import smelt
        >>> [name for name, _ in smelt.utils.tree_flatten(smelt.nn.Linear(2, 3).parameters())]
        ['weight', 'bias']
        """
        return self.filter_and_map(Module.valid_parameter_filter)

    def trainable_parameters(self) -> dict[str, Any]:
        """The `parameters` that are not frozen.

        >>> import smelt
        >>> list(smelt.nn.Linear(2, 3).freeze(keys="bias").trainable_parameters())
        ['weight']
        """
        return self.filter_and_map(Module.trainable_parameter_filter)

    def children(self) -> dict[str, Any]:
        """The modules that are entries of this one, or stand in its dicts and lists.

        >>> import smelt
        >>> smelt.nn.Sequential(smelt.nn.ReLU()).children()
        {'layers': [ReLU()]}
        """
        return self.filter_and_map(Module.valid_child_filter, is_leaf_fn=_is_module_entry)

    def leaf_modules(self) -> dict[str, Any]:
        """The modules inside that hold no modules, as nested dicts and lists.

        >>> import smelt
        >>> smelt.nn.Sequential(smelt.nn.Sequential(smelt.nn.ReLU())).leaf_modules()
        {'layers': [{'layers': [ReLU()]}]}
        """

        def is_leaf(module: Module, key: str, value: Any) -> bool:
            return isinstance(value, Module) and not _flat_modules(value.children())

        return self.filter_and_map(Module.valid_child_filter, is_leaf_fn=is_leaf)

    def named_modules(self) -> list[tuple[str, Module]]:
        """This module, whose path is empty, and all inside, with their paths.

        >>> import smelt
        >>> smelt.nn.Sequential(smelt.nn.ReLU()).named_modules()[1:]
        [('layers.0', ReLU())]
        """
        found: list[tuple[str, Module]] = []
        self.apply_to_modules(lambda path, module: found.append((path, module)))
        return found

    def modules(self) -> list[Module]:
        """This module and all inside.

        >>> import smelt
        >>> smelt.nn.ReLU().modules()
        [ReLU()]
        """
        return [module for _, module in self.named_modules()]

    def summary(self) -> str:
        """A table of this module and all inside: path, class, parameters with their types, how many elements and bytes.

        What is not trained stands in brackets.

        >>> import smelt
        >>> print(smelt.nn.Sequential(smelt.nn.Linear(2, 3), smelt.nn.ReLU()).summary())
        module    class       parameters                    elements  bytes
                  Sequential
        layers.0  Linear      weight f32[3,2], bias f32[3]         9     36
        layers.1  ReLU
        total                 9 elements trained of 9              9     36
        """
        return table(_rows(self))

    def _repr_html_(self) -> str:
        """The `summary` in a notebook."""
        return html_table(_rows(self))

    # Changes

    def apply_to_modules(self: Self, apply_fn: Callable[[str, Module], Any]) -> Self:
        """Call a function with path and module, for this module and all inside; the module.

        Args:
            apply_fn: called with the dotted path of each, and the module itself.

        >>> import smelt
        >>> _ = smelt.nn.Sequential(smelt.nn.ReLU()).apply_to_modules(lambda path, module: print(repr(path)))
        ''
        'layers.0'
        """
        check_function(apply_fn, "smelt.nn.Module.apply_to_modules")
        pending: list[tuple[str, Module]] = [("", self)]
        while pending:
            path, module = pending.pop()
            apply_fn(path, module)
            pending += [(p, m) for p, m in _flat_modules(module.children(), path) if isinstance(m, Module)]
        return self

    @explained
    def apply(self: Self, map_fn: Callable[[Any], Any], filter_fn: Filter | None = None) -> Self:
        """Replace each parameter, or what `filter_fn` lets through, by a function of it; the module.

        Args:
            map_fn: called with an array, returns what takes its place.

        >>> import smelt
        >>> smelt.nn.Linear(1, 1).apply(lambda x: smelt.ones_like(x)).parameters()
        {'weight': array([[1]], dtype=float32), 'bias': array([1], dtype=float32)}
        """
        check_function(map_fn, "smelt.nn.Module.apply")
        return self.update(self.filter_and_map(filter_fn or Module.valid_parameter_filter, map_fn))

    @explained
    def set_dtype(
        self: Self,
        dtype: DType,
        predicate: Callable[[DType], bool] | None = lambda dtype: smelt.issubdtype(dtype, smelt.floating),
    ) -> Self:
        """Convert the parameters whose dtype `predicate` holds for, all if it is None; the module.

        >>> import smelt
        >>> smelt.nn.Linear(1, 1).set_dtype(smelt.float16).bias.dtype
        smelt.float16
        """
        return self.apply(lambda x: x.astype(dtype) if predicate is None or predicate(x.dtype) else x)

    @explained
    def train(self: Self, mode: bool = True) -> Self:
        """Set whether this module and all inside are in training; the module.

        Args:
            mode: False for what `eval` does.

        >>> import smelt
        >>> smelt.nn.Dropout().train(False).training
        False
        """
        mode = flag("nn.Module.train", "mode", mode)
        return self.apply_to_modules(lambda path, module: module._set_training_mode(mode))

    def _set_training_mode(self, mode: bool) -> None:
        """What `train` does to each module; layers that have another form where they are not trained add to it."""
        self.__dict__.pop("_training", None)
        if not mode:
            self.__dict__["_training"] = False

    def eval(self: Self) -> Self:
        """``train(False)``.

        >>> import smelt
        >>> smelt.nn.Dropout().eval()(smelt.array([1.0, 2.0]))
        array([1, 2], dtype=float32)
        """
        return self.train(False)

    @explained
    def freeze(
        self: Self, *, recurse: bool = True, keys: str | Sequence[str] | None = None, strict: bool = False
    ) -> Self:
        """Take parameters out of those that are trained; the module.

        Args:
            recurse: in the modules inside, too. keys: names of parameters; all by default.
            strict: each of these modules must have all `keys`.

        Raises:
            MissingMemberError: with `strict`, a key that a module does not have.

        >>> import smelt
        >>> smelt.nn.Linear(1, 1).freeze().trainable_parameters()
        {}
        """
        return self._set_frozen("freeze", lambda old, names: old | names, recurse, keys, strict)

    @explained
    def unfreeze(
        self: Self, *, recurse: bool = True, keys: str | Sequence[str] | None = None, strict: bool = False
    ) -> Self:
        """Undo `freeze`, with the same arguments.

        Args:
            recurse, keys, strict: as of `freeze`.

        >>> import smelt
        >>> list(smelt.nn.Linear(1, 1).freeze().unfreeze(keys="bias").trainable_parameters())
        ['bias']
        """
        change = lambda old, names: _NONE if keys is None else old - names  # noqa: E731
        return self._set_frozen("unfreeze", change, recurse, keys, strict)

    def _set_frozen(
        self: Self, name: str, change: Callable[[frozenset[str], frozenset[str]], frozenset[str]], recurse: bool,
        keys: Any, strict: bool,
    ) -> Self:  # fmt: skip
        given = None if keys is None else names_of(f"smelt.nn.Module.{name}", keys)
        recurse, strict = (flag(f"nn.Module.{name}", *x) for x in (("recurse", recurse), ("strict", strict)))
        modules = self.named_modules() if recurse else [("", self)]
        for path, module in modules if strict and given is not None else ():
            missing = [k for k in given or () if k not in module]
            if missing:
                raise MissingMemberError(at_user_line(f"{_where(module, path)} has no {min(missing)!r} to freeze"))
        for _, module in modules:
            frozen = change(module._no_grad, _own_parameters(module) if given is None else given)
            module.__dict__.pop("_no_grad", None)
            if frozen:
                module.__dict__["_no_grad"] = frozen
        return self

    @explained
    def update(self: Self, parameters: Any, strict: bool = True) -> Self:  # type: ignore[override]
        """Put arrays in the place of others; the module.

        Args:
            parameters: nested dicts and lists, as from `parameters`; what is missing stays as it is.
            strict: what the module has no place for is an error; else it is passed over.

        Raises:
            TreeError: with `strict`, a name that the module does not have, a list that is too long, or something that
                is no array where there is one. The message names the path.

        >>> import smelt
        >>> smelt.nn.Linear(1, 1).update({"bias": smelt.array([5.0])}).bias
        array([5], dtype=float32)
        """
        put_entries(self, parameters, strict, "", type(self).__name__, fits_array, "parameter")
        return self

    @explained
    def update_modules(self: Self, modules: Any, strict: bool = True) -> Self:
        """Put modules in the place of others; the module.

        Args:
            modules: nested dicts and lists, as from `children` or `leaf_modules`; what is missing stays as it is.
            strict: what the module has no place for is an error; else it is passed over.

        Raises:
            TreeError: with `strict`, a name that the module does not have, a list that is too long, or something else
                where there is a module. The message names the path.

        >>> import smelt
        >>> smelt.nn.Sequential(smelt.nn.ReLU()).update_modules({"layers": [smelt.nn.Tanh()]})
        Sequential(
          (layers.0): Tanh()
        )
        """
        put_entries(self, modules, strict, "", type(self).__name__, _fits_module, "module")
        return self

    # Files

    @explained
    def load_weights(self: Self, file_or_weights: Any, strict: bool = True) -> Self:
        """Put arrays from a file in the place of parameters; the module.

        Args:
            file_or_weights: the path of a .npz or .safetensors file, or pairs of a parameter's path and its array.
            strict: the file holds all parameters, and nothing else, in their shapes. Otherwise what is missing stays
                as it is, and what the module has no place for is passed over.

        Raises:
            TreeError: with `strict`, parameters that are missing, or names that the module does not have.
            ShapeError: with `strict`, another shape. DTypeError: with `strict`, integers for floating-point numbers,
                or the like. ArgumentTypeError: something that is no array.
                The messages name the paths.

        >>> import smelt
        >>> smelt.nn.Linear(1, 1).load_weights([("bias", smelt.array([5.0]))], strict=False).bias
        array([5], dtype=float32)
        """
        weights = file_or_weights
        if isinstance(weights, (str, os.PathLike)):
            weights = smelt.load(os.fspath(weights))
            if not isinstance(weights, dict):
                raise ArgumentTypeError(at_user_line(f"{file_or_weights} holds {kind_of(weights)}, no named arrays"))
        given = named_weights(type(self).__name__, weights)
        if strict:
            check_weights(type(self).__name__, dict(tree_flatten(self.parameters())), given)
        return self.update(tree_unflatten(given), strict=False) if given else self

    @explained
    def save_weights(self, file: str | os.PathLike[str]) -> None:
        """Write all parameters under their paths into a .npz or .safetensors file.

        Raises:
            AttributeValueError: a path that ends in neither.

        >>> import smelt, tempfile
        >>> layer = smelt.nn.Linear(1, 1)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     layer.save_weights(f"{folder}/layer.safetensors")
        ...     sorted(smelt.load(f"{folder}/layer.safetensors"))
        ['bias', 'weight']
        """
        path = os.fspath(file)
        arrays = dict(tree_flatten(self.parameters()))
        if path.endswith(".npz"):
            smelt.savez(path, **arrays)
        elif path.endswith(".safetensors"):
            smelt.save_safetensors(path, arrays)
        else:
            raise AttributeValueError(at_user_line(f"weights are saved as .npz or .safetensors, not as {path}"))


#: Filters of which `parameters_in` gives what `filter_and_map` does.
_OF_PARAMETERS = (Module.valid_parameter_filter, Module.trainable_parameter_filter)


class _Selection:
    """What `Module.filter_and_map` does below an entry."""

    def __init__(self, chosen: Filter, change: Callable[[Any], Any] | None, is_leaf: Filter | None):
        self.chosen, self.change, self.is_leaf = chosen, change, is_leaf

    def below(self, module: Module, key: str, value: Any) -> Any:
        inner = isinstance(value, _CONTAINERS)
        if not inner if self.is_leaf is None else self.is_leaf(module, key, value):
            return value if self.change is None else self.change(value)
        if isinstance(value, Module):
            return {k: self.below(value, k, v) for k, v in value.items() if self.chosen(value, k, v)}
        if isinstance(value, dict):
            return {k: self._entry(module, f"{key}.{k}", v) for k, v in value.items()}
        if inner:
            entries = [self._entry(module, f"{key}.{i}", v) for i, v in enumerate(value)]
            return entries if isinstance(value, list) else tuple(entries)
        raise TreeError(
            at_user_line(f"{type(module).__name__}.{key} is {kind_of(value)}, which is no leaf and holds nothing")
        )

    def _entry(self, module: Module, key: str, value: Any) -> Any:
        return self.below(module, key, value) if self.chosen(module, key, value) else {}


def _is_module_entry(module: Module, key: str, value: Any) -> bool:
    return isinstance(value, Module)


def _flat_modules(found: Any, path: str = "") -> list[tuple[str, Any]]:
    """Paths and modules in nested dicts and lists, in their order."""
    if isinstance(found, Module):
        return [(path, found)]
    pairs = found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, (list, tuple)) else ()
    return [x for k, v in pairs for x in _flat_modules(v, f"{path}.{k}" if path else str(k))]


def _in_order(module: Module, path: str = "") -> list[tuple[str, Module]]:
    """A module and all inside, each before those that it holds."""
    return [(path, module), *(x for p, m in _flat_modules(module.children(), path) for x in _in_order(m, p))]


def _rows(module: Module) -> list[Row]:
    """What the table of a module shows."""
    rows = []
    for path, inner in _in_order(module):
        found = tree_flatten(inner.filter_and_map(_is_own_parameter))
        trained = dict(tree_flatten(inner.filter_and_map(_is_own_trainable)))
        rows.append(Row(path, type(inner).__name__, [(n, x.aval, x.nbytes, n in trained) for n, x in found]))
    return rows


def _is_own_parameter(module: Module, key: str, value: Any) -> bool:
    return not isinstance(value, Module) and Module.valid_parameter_filter(module, key, value)


def _is_own_trainable(module: Module, key: str, value: Any) -> bool:
    return not isinstance(value, Module) and Module.trainable_parameter_filter(module, key, value)


def _own_parameters(module: Module) -> frozenset[str]:
    """The names of a module's parameters, without those of modules inside."""
    return frozenset(path for path, _ in tree_flatten(module.filter_and_map(_is_own_parameter)))


def _where(module: Module, path: str) -> str:
    return f"{type(module).__name__} ({path})" if path else type(module).__name__


def fits_array(old: Any, new: Any) -> bool | None:
    """Whether a value may take the place of another one; None if that has to be looked at inside."""
    return isinstance(new, smelt.array) if isinstance(old, smelt.array) else None


def _fits_module(old: Any, new: Any) -> bool | None:
    if isinstance(old, Module):
        return True if isinstance(new, Module) else None
    return None


def check_module(name: str, value: Any) -> None:
    """Raise TreeError where a function of modules, `name`, is given something else."""
    if not isinstance(value, Module):
        raise TreeError(at_user_line(f"smelt.nn.{name}: needs a module, got {kind_of(value)}"))


def check_linear(name: str, value: Any) -> None:
    """Raise TreeError where what takes the matrix of a `Linear` or an `Embedding`, `name`, is given something else."""
    check_module(name, value)
    if not isinstance(value.get("weight"), smelt.array) or value.weight.ndim != 2:
        raise TreeError(at_user_line(f"smelt.nn.{name}: needs a layer whose weight is a matrix, got {kind_of(value)}"))
