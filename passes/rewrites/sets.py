"""Sets of rewrites: what a package declares, and how sets are found by name.

A set is an object of a module; its rewrites are functions that state rules::

    from smelt.passes.rewrites import RewriteSet, Rule, Term, ops

    logs = RewriteSet("acme-logs", "Logarithms of exponentials.")

    @logs.rewrite(reals=True)
    def log_of_exp(x: Term) -> Rule:
        \"\"\"log(exp(x)) → x.\"\"\"
        return ops.log(ops.exp(x)) >> x

Other packages name such modules by entry points of the group ``smelt.rewrites``, called like the set.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

from smelt.ir.entry_points import load, offered
from smelt.ir.errors import ArgumentTypeError, IRError, PipelineError, at_user_line, did_you_mean, shown
from smelt.ir.op import Op

from ..registry import definition_of, require_name
from ..simplify.patterns import Pattern, pattern
from .matching import Ready, pattern_of, ready
from .terms import Applied, Attr, Const, Rule, Variable

GROUP = "smelt.rewrites"
Rules = Rule | Sequence[Rule]
Examples = Sequence[dict[str, Any]]
_sets: dict[str, RewriteSet] = {}


@dataclass(frozen=True)
class Rewrite:
    """Rules under one name.

    Attributes:
        name: as it is switched on and off, and counted.
        rules: tried in order.
        definition: the function that states them.
        ulps: units in the last place by which the replacement may differ. 0: it has the same bits, also for infinities,
            NaN and signed zeros.
        reals: it holds for real numbers: rounding errors are as large as those of the largest intermediate value, and
            what overflows, is infinite or NaN is not looked at.
        both_ways: rules may lead back to where they begin: for `saturate` alone.
        examples: shapes of the variables, and attributes, of the programs on which it is checked; none: many kinds.
    """

    name: str
    rules: tuple[Rule, ...]
    definition: Callable[..., Any]
    ulps: float = 0
    reals: bool = False
    both_ways: bool = False
    examples: tuple[dict[str, Any], ...] = ()

    @property
    def claim(self) -> str:
        """What it promises, in a word or two."""
        return "for real numbers" if self.reals else f"within {self.ulps:g} ulp" if self.ulps else "exact"

    @property
    def roots(self) -> list[Op]:
        """The ops that its patterns begin with."""
        return list(dict.fromkeys(rule.pattern.op for rule in self.rules if isinstance(rule.pattern, Applied)))

    def __str__(self) -> str:
        return f"{self.name}: " + "; ".join(map(str, self.rules))


class RewriteSet:
    """Rewrites that are used together: the pass ``rewrite{set=NAME}`` applies them.

    Args:
        name: for pipelines and ``smelt-opt --list-rewrites``.
        doc: one sentence.
        both_ways: rules may lead back to where they began; then ``saturate{set=NAME}`` is the pass for them.

    Attributes:
        module: the one that made it.

    Raises:
        PipelineError: a name that a pipeline cannot spell, or that a set of another module has.

    >>> from smelt.passes.rewrites import RewriteSet, Rule, Term, ops
    >>> halves = RewriteSet("halves", "Powers of two.")
    >>> @halves.rewrite
    ... def half_of_double(x: Term) -> Rule:
    ...     return (x * 2 * 0.5 >> x).when(x.is_float)
    >>> print(halves)
    halves: Powers of two.
      half-of-double: (x * 2) * 0.5 → x where x is float
    """

    constants_right = False

    def __init__(self, name: str, doc: str = "", both_ways: bool = False):
        require_name("a set", name)
        self.name, self.doc, self.both_ways = name, doc, both_ways
        self.module = sys._getframe(1).f_globals.get("__name__", "")
        known = _sets.get(name)
        if known is not None and known.module != self.module:
            message = f"two sets of rewrites are called {name!r}: of {known.module} and of {self.module}"
            raise PipelineError(at_user_line(message))
        self.rewrites: dict[str, Rewrite] = {}
        self._ready: dict[Op, list[tuple[Rewrite, Pattern]]] = {}
        self._tables: dict[Any, dict[Op, tuple[Pattern, ...]]] = {}
        _sets[name] = self

    @overload
    def rewrite(self, definition: Callable[..., Rules]) -> Rewrite: ...
    @overload
    def rewrite(
        self, definition: None = None, *, ulps: float = 0, reals: bool = False, examples: Examples = ()
    ) -> Callable[[Callable[..., Rules]], Rewrite]: ...
    def rewrite(
        self,
        definition: Callable[..., Rules] | None = None,
        *,
        ulps: float = 0,
        reals: bool = False,
        examples: Examples = (),
    ) -> Rewrite | Callable[[Callable[..., Rules]], Rewrite]:
        """Decorator: the rules that a function states, called like it. Its parameters are their variables.

        Args:
            ulps, reals: what the rewrite promises, if it is not exact; see `Rewrite`. ``smelt-opt --check-rewrites``
                tells whether that is so.
            examples: shapes of the variables, and attributes, of the programs on which that command runs it, for
                patterns that hardly any others fit: ``[{"x": (2, 3), "axes": (0,)}]``. An attribute is called like its
                variable, or, where a pattern leaves it open, as the op calls it.

        Raises:
            IRError: a function that states no rules, or has parameters that are no variables. PipelineError: the set
            has another rewrite of that name.
        """
        if definition is None:
            return lambda function: self._add(function, ulps, reals, examples)
        return self._add(definition, ulps, reals, examples)

    def _add(self, definition: Callable[..., Rules], ulps: float, reals: bool, examples: Examples) -> Rewrite:
        name = definition.__name__.replace("_", "-")
        known = self.rewrites.get(name)
        if known is not None and definition_of(known.definition) != definition_of(definition):
            raise PipelineError(at_user_line(f"two rewrites of the set {self.name} are called {name!r}"))
        stated = definition(*_variables_of(definition))
        rules = tuple(stated) if isinstance(stated, (tuple, list)) else (stated,)
        if not rules or not all(isinstance(rule, Rule) for rule in rules):
            message = f"{definition.__name__} states a rule (pattern >> replacement) or several, not {shown(stated)}"
            raise IRError(at_user_line(message))
        made = self.rewrites[name] = Rewrite(name, rules, definition, ulps, reals, self.both_ways, tuple(examples))
        self._tables.clear()
        for op, function in patterns_by_op(made, self.constants_right):
            tried = self._ready.setdefault(op, [])
            tried[:] = [item for item in tried if item[0].name != name]
            tried.append((made, function))
            self._registered(op, function)
        return made

    def _registered(self, op: Op, function: Pattern) -> None:
        """What else a set does with a pattern."""

    def table(self, only: Iterable[str] = (), without: Iterable[str] = ()) -> dict[Op, tuple[Pattern, ...]]:
        """The patterns to try on each op.

        Raises:
            PipelineError: the set has no rewrite of a name.
        """
        only, without = tuple(only), tuple(without)
        key = (only, without)
        if key not in self._tables:
            require_known(f"the set {self.name}", (*only, *without), self.rewrites)
            self._tables[key] = {
                op: tuple(f for r, f in tried if (not only or r.name in only) and r.name not in without)
                for op, tried in self._ready.items()
            }
        return self._tables[key]

    @property
    def foreign(self) -> bool:
        """Whether another package defines some of them."""
        return any(not rewrite.definition.__module__.startswith("smelt.") for rewrite in self)

    def __iter__(self) -> Iterator[Rewrite]:
        return iter(self.rewrites.values())

    def __len__(self) -> int:
        return len(self.rewrites)

    def __str__(self) -> str:
        return "\n".join([f"{self.name}: {self.doc}" if self.doc else self.name, *(f"  {r}" for r in self)])


class Canonical(RewriteSet):
    """The rewrites that are patterns of ``canonicalize``, which finds constants on the right. They must be exact."""

    constants_right = True

    def _registered(self, op: Op, function: Pattern) -> None:
        pattern(op.name)(function)


#: Whatever is declared here is part of ``canonicalize``.
canonical = Canonical("canonicalize", "The exact rewrites of canonicalize that are pure algebra.")


def patterns_by_op(rewrite: Rewrite, constants_right: bool = False) -> list[tuple[Op, Pattern]]:
    """A rewrite as a pattern for each of its root ops."""
    by_op: dict[Op, list[Ready]] = {}
    for rule in rewrite.rules:
        for alternative in ready(rule, constants_right):
            by_op.setdefault(alternative.op, []).append(alternative)
    return [(op, pattern_of(rewrite.definition, found)) for op, found in by_op.items()]


_KINDS: dict[str, Callable[[str], Any]] = {"Term": Variable, "Const": Const, "Attr": Attr}


def _variables_of(definition: Callable[..., Any]) -> list[Any]:
    """A variable for each parameter, of the kind that its annotation says: `Term`, `Const` or `Attr`."""
    code = definition.__code__
    made = []
    for name in code.co_varnames[: code.co_argcount]:
        annotation = definition.__annotations__.get(name)
        kind = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
        kind = kind.rpartition(".")[2]
        if kind not in _KINDS:
            message = f"{definition.__name__}: the parameter {name} is annotated as Term, Const or Attr"
            raise ArgumentTypeError(at_user_line(message))
        made.append(_KINDS[kind](name))
    return made


def require_known(owner: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Raise PipelineError for a name that is none of those known."""
    listed = list(known)
    for name in names:
        if name not in listed:
            hint = did_you_mean(name, listed)
            raise PipelineError(f"{owner} has no rewrite {shown(name)}{hint} (`smelt-opt --list-rewrites` lists them)")


def find(name: str) -> RewriteSet:
    """The set called `name`, loaded from the package that has it.

    Raises:
        PipelineError: there is none, or it does not load.
    """
    problems = [] if name in _sets else load_all(name)
    if name not in _sets:
        if problems:
            raise PipelineError("; ".join(problems))
        known = dict.fromkeys([*_sets, *(entry.name for entry in offered(GROUP))])
        raise PipelineError(f"there is no set of rewrites {shown(name)}; sets: {', '.join(known)}")
    return _sets[name]


def load_all(name: str | None = None) -> list[str]:
    """Load the sets of all installed packages, or what is called `name`; what is wrong with those that do not load."""
    problems = []
    for entry in offered(GROUP):
        if name in (None, entry.name):
            before = dict(_sets)
            try:
                load(entry, "the rewrites", PipelineError, several=True)
            except PipelineError as error:
                for half in _sets.keys() - before.keys():  # without the rewrites after the one that is wrong
                    del _sets[half]
                problems.append(str(error))
    return problems


def all_sets() -> dict[str, RewriteSet]:
    """The sets that are loaded, by name."""
    return dict(_sets)
