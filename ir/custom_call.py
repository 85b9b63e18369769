"""Targets of ``smelt.custom_call``: what a call of a name runs, in each place where it can run.

A package registers a target under a name, and calls it by that::

    register_target(Target("acme.rotate", host=lambda call, x, n: np.roll(x, n)))

An implementation is handed the `Call`: types and parameters. On the host it computes on NumPy arrays. For a GPU it
says which kernel is to be launched; the call is then a launch of the program, like any other. Where a target has no
implementation for a device, the call runs on the host, in between.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .aval import Aval
from .errors import ArgumentTypeError, AttributeValueError, at_user_line, did_you_mean, shown
from .parameters import Parameters

if TYPE_CHECKING:
    from .builder import Builder, Value


@dataclass(frozen=True)
class Call:
    """One call, by its types: what an implementation is asked about.

    Attributes:
        target: the name.
        operands, results: types.
        parameters: of the call, by name.
    """

    target: str
    operands: tuple[Aval, ...]
    results: tuple[Aval, ...]
    parameters: Parameters


@dataclass(frozen=True)
class Target:
    """What is called. Implementations must give equal results for equal operands, and have no effects: a call whose
    results nobody reads does not run, and one whose results are read twice may run once.

    Attributes:
        name: letters, digits, ``_`` and dots; best begins with the name of its package: ``acme.rotate``.
        host: ``host(call, *arrays)`` gives the results: an array, or a tuple of arrays. The operands are read-only.
        kernels: for devices that launch kernels in a language: ``kernels["msl"](call)`` gives what to launch, in the
            Metal Shading Language a `smelt.backends.gpu.custom.CustomKernel`. In ``"nccl"``, for devices that have
            that library, it is what the library does: a `smelt.backends.gpu.library.Collective`.
        vectorized: `smelt.vmap` calls it once, on operands that all have a batch axis in front, and so have the
            results. Otherwise it is called for one element after the other, in a loop of the program.
        batch: a rule of its own for that: ``batch(b, operands, dims, call)`` as `smelt.ir.op.Op.batch`.
    """

    name: str
    host: Callable[..., Any]
    kernels: Mapping[str, Callable[[Call], Any]] = field(default_factory=dict)
    vectorized: bool = False
    batch: Callable[[Builder, Sequence[Value], Sequence[int | None], Call], Any] | None = None

    def __post_init__(self) -> None:
        name = self.name
        if not isinstance(name, str) or not all(part.isidentifier() for part in name.split(".")):
            raise AttributeValueError(
                at_user_line(
                    f"smelt.custom_call: a target is called by identifiers with dots between, not {shown(name)}"
                )
            )
        functions = {"host": self.host, **{f"the kernel in {k}": f for k, f in self.kernels.items()}}
        for what, given in {**functions, "batch": self.batch}.items():
            if not callable(given) and (given is not None or what != "batch"):
                message = f"smelt.custom_call: {what} of the target {name} must be a function, is {shown(given)}"
                raise ArgumentTypeError(at_user_line(message))


_targets: dict[str, Target] = {}


def register_target(target: Target) -> Target:
    """Make a target known under its name; the target.

    Raises:
        AttributeValueError: another target has the name. ArgumentTypeError: it is no `Target`.
    """
    if not isinstance(target, Target):
        raise ArgumentTypeError(at_user_line(f"register_target takes a Target, got {shown(target)}"))
    known = _targets.get(target.name)
    if known is not None and _origin(known) != _origin(target):
        raise AttributeValueError(
            at_user_line(
                f"smelt.custom_call: a target called {target.name} is already registered, by {_origin(known)[0]}"
            )
        )
    _targets[target.name] = target
    return target


def _origin(target: Target) -> tuple[str, str]:
    """Where a target was defined: a module that is imported again registers the same targets."""
    function = target.host
    return getattr(function, "__module__", ""), getattr(function, "__qualname__", repr(function))


def target_called(name: str) -> Target:
    """The target of that name.

    Raises:
        AttributeValueError: there is none.
    """
    found = _targets.get(name)
    if found is None:
        hint = did_you_mean(name, _targets) or "; import the package that registers it"
        raise AttributeValueError(f"smelt.custom_call: no target is called {shown(name)}{hint}")
    return found
