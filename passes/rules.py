"""Rules of the ops that run functions of the module: calls, branches, loops.

Other ops have their rules in their blocks. The rules of these ops transform functions, which is the work of passes.
All rules of one op stand in one class (for control flow in `transform/control/`, for calls in
`transform/custom_rules.py`), which a pass gets from `function_rules`. So passes and rules, which need each other, do
not import each other.
"""

from __future__ import annotations

import importlib
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from smelt.ir import locks
from smelt.ir.aval import Aval
from smelt.ir.builder import Builder, OpView, Value

if TYPE_CHECKING:
    from .simplify.reads import ModuleReads, Needs
    from .transform.batch import Batching

Attrs = dict[str, Any]
Values = Sequence[Value]
Maybe = Sequence["Value | None"]  #: tangents or cotangents; None: zero
Flags = Sequence[bool]
Dims = Sequence["int | None"]  #: where the batch axis of each value stands; None: it has none


class FunctionRules(ABC):
    """What passes ask about an op that runs functions.

    Attributes:
        partitions_unused: whether `partition` is for the op even where nobody reads the results that are not linear.
        not_transposable: why `transpose` always raises; empty where it does not.
    """

    partitions_unused: ClassVar[bool] = False
    not_transposable: ClassVar[str] = ""

    # Batching

    @abstractmethod
    def varying(self, t: Batching, op: OpView, flags: Flags) -> list[bool]:
        """Which results differ between elements of the batch, given which operands do."""

    @abstractmethod
    def batch(
        self, t: Batching, b: Builder, op: OpView, operands: Values, dims: Dims, mask: Value | None
    ) -> tuple[Values, Dims]:
        """Emit the op over the batch, for the elements in `mask`: its results and where their batch axes stand."""

    # Derivatives

    @abstractmethod
    def jvp(
        self, module: Any, b: Builder, op: OpView, operands: Values, tangents: Maybe, linearize: bool
    ) -> tuple[Values, Maybe]:
        """Emit the op together with its tangents: results, and tangents of results.

        With `linearize`, as two ops: one of the primal operands, which may have residuals as more results, and one
        that is linear in the tangents.
        """

    @abstractmethod
    def dependent(self, module: Any, attrs: Attrs, flags: Flags) -> list[bool]:
        """Which results depend on the operands marked in `flags`."""

    @abstractmethod
    def partition(
        self, module: Any, b: Builder, attrs: Attrs, operands: Values, flags: Flags, avals: Sequence[Aval]
    ) -> list[Value]:
        """Emit the op as one of the operands not marked in `flags` and one that is linear in the marked ones: the
        results of both, of types `avals`, in the order of the one."""

    @abstractmethod
    def transpose(
        self, module: Any, b: Builder, op: OpView, cotangents: Maybe, operands: Values, linear: Flags
    ) -> Maybe:
        """Cotangents of the operands marked in `linear`, of which only ``.aval`` may be used.

        Raises:
            NotDifferentiableError: it cannot be transposed.
        """

    # Simplification

    @abstractmethod
    def needs(self, reads: ModuleReads, op: OpView) -> Needs:
        """Which operands the results and the effects are computed from."""


_rules: dict[str, FunctionRules] = {}
R = TypeVar("R", bound=type[FunctionRules])


def register_rules(name: str) -> Callable[[R], R]:
    """Class decorator: the rules of the op called `name`."""

    def register(cls: R) -> R:
        _rules[name] = cls()
        return cls

    return register


def function_rules(name: str) -> FunctionRules:
    """The rules of the call, branch or loop called `name`."""
    found = _rules.get(name)
    if found is None:
        locks.whole(_load)
        found = _rules[name]
    return found


#: Where rules stand, in this room.
_PLACES = ("transform.custom_rules", "transform.control")


def _load() -> None:
    """Import all rules: functions without calls, branches and loops need none."""
    for place in _PLACES:
        part = importlib.import_module(f"{__package__}.{place}")
        for module in pkgutil.iter_modules(getattr(part, "__path__", ()), f"{part.__name__}."):
            importlib.import_module(module.name)
