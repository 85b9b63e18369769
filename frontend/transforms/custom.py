"""Functions with derivative and batching rules of their own, and functions that are computed again.

Calls inside of a transformation are recorded as one node whose function carries its rules (see
`smelt.passes.transform.custom_rules`); elsewhere they are ordinary calls. Rules run while the call is traced, on
placeholders. How often follows from the number of derivatives around the call: a rule is
differentiated itself by its ops, where calls of functions with rules count again.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Concatenate, Generic, overload

from smelt.ir.errors import TreeError, at_user_line
from smelt.ir.keywords import explain_keywords

from ..lazy import tree
from ..lazy.arrays import array
from ..lazy.graph import state
from ..lazy.signatures import P, Q, R, S, T
from .custom_rules import Call, apply_call, backward_rule, batch_rule, forward_rule, primal_rule, tangent_rule, vjp_rule
from .recording import article, check_function, name_of, positions_of, settled, unchanged

if TYPE_CHECKING:
    from typing_extensions import Self  # which needs not be installed


class _Depth(threading.local):
    """How many of the derivatives around are taken care of by the rules being traced."""

    handled = 0


_depth = _Depth()


@contextmanager
def _one_derivative_less() -> Iterator[None]:
    _depth.handled += 1
    try:
        yield
    finally:
        _depth.handled -= 1


def _derivatives() -> int:
    """How many derivatives may be taken of what is called now."""
    return state.recording - _depth.handled


class _Ruled(Generic[P, R]):
    """A function with rules; what the public classes have in common."""

    def __init__(self, fun: Callable[P, R], what: str, static: Sequence[int] = ()) -> None:
        check_function(fun, what)
        functools.update_wrapper(self, fun)
        self._fun, self._what = fun, what
        self._static = frozenset(positions_of(what, static))

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Self: ...
    @overload
    def __get__(self: _Ruled[Concatenate[T, Q], R], instance: T, owner: Any = None) -> Callable[Q, R]: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<{self._what} {name_of(self._fun)}>"

    def _positional(self, args: tuple, kwargs: dict[str, Any]) -> tuple:
        """All arguments as positional ones: rules know no others."""
        if not kwargs:
            return args
        try:
            bound = inspect.signature(self._fun).bind(*args, **kwargs)
        except (TypeError, ValueError) as error:
            raise TreeError(at_user_line(f"{self._what}: {name_of(self._fun)}: {error}")) from None
        if bound.kwargs:
            listed = ", ".join(bound.kwargs)
            raise TreeError(
                at_user_line(
                    f"{self._what}: {name_of(self._fun)} got keyword-only arguments ({listed}); rules take "
                    "arguments by position: make them positional, or close over them"
                )
            )
        return bound.args

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if not self._matters():
            with unchanged(args, kwargs):  # as in a transformation
                return settled(self._fun(*args, **kwargs))
        call = Call(self._what, self._fun, self._positional(args, kwargs), self._static)
        if not call.arrays:
            return self._fun(*args, **kwargs)
        rules = self._rules(call)
        if not rules:
            return call.result_as_it_is()
        return apply_call(call, rules)

    def _matters(self) -> bool:
        """Whether a rule may be asked for."""
        raise NotImplementedError

    def _rules(self, call: Call) -> dict[str, Any]:
        """The rules, traced, by their attributes in the IR."""
        raise NotImplementedError


class custom_function(_Ruled[P, R]):
    """A function whose derivatives and vectorization are the user's.

    ``@smelt.custom_function`` decorates the function f; the rules follow as ``@f.vjp``, ``@f.jvp`` and
    ``@f.vmap``, all optional. What has no rule is derived from f itself. `primals`, `tangents` and
    `inputs` are tuples with one entry an argument, or the entry itself where f has one argument:

    - ``f.vjp``: (primals, cotangents, outputs) → cotangents of the primals, in the same structure; None
      for zero. `cotangents` and `outputs` have the structure of f's result.
    - ``f.jvp``: (primals, tangents) → tangents of the result. Tangents of constants are zero arrays.
    - ``f.vmap``: (inputs, axes) → (outputs, axes of the outputs). `inputs` are the whole arrays; those that
      are mapped come with their mapped axis moved to 0, and `axes` says 0 or None for each.

    Arrays that f or a rule uses without taking them as arguments are constants for f.vjp and f.jvp: no
    gradient flows to them. Rules see no values of cotangents and tangents, only shapes and dtypes. What f.vjp
    stores of a cotangent, in a list say, has its value when `grad` or `value_and_grad` is over, unless that
    was inside of `vmap`, a loop or another function with rules. The vmap rule is used where `smelt.vmap`
    meets the call; below `vmap` of a derivative, the derivative is vectorized op by op.

    Raises:
        TreeError: not a function, keyword-only arguments, or a rule that returns another structure.
        ShapeError, DTypeError: a rule that returns arrays of other types.

    >>> import smelt
    >>> @smelt.custom_function
    ... def twice(x):
    ...     return 2 * x
    >>> @twice.vjp
    ... def twice_vjp(x, cotangent, output):
    ...     return 10 * cotangent
    >>> smelt.grad(twice)(smelt.array(1.0))
    array(10, dtype=float32)
    """

    def __init__(self, f: Callable[P, R]) -> None:
        super().__init__(f, "smelt.custom_function")
        self._vjp: Callable[..., Any] | None = None
        self._jvp: Callable[..., Any] | None = None
        self._vmap: Callable[..., Any] | None = None
        self._primal: Callable[..., Any] | None = None  # what a derivative leaves in the place of f; here alone

    def vjp(self, f: Callable[..., Any]) -> Self:
        """Set the rule of reverse mode: ``f(primals, cotangents, outputs)`` → cotangents of the primals."""
        check_function(f, "smelt.custom_function.vjp")
        self._vjp = f
        return self

    def jvp(self, f: Callable[..., Any]) -> Self:
        """Set the rule of forward mode: ``f(primals, tangents)`` → tangents of the outputs."""
        check_function(f, "smelt.custom_function.jvp")
        self._jvp = f
        return self

    def vmap(self, f: Callable[..., Any]) -> Self:
        """Set the rule of vectorization: ``f(inputs, axes)`` → (outputs, axes of the outputs)."""
        check_function(f, "smelt.custom_function.vmap")
        self._vmap = f
        return self

    def _matters(self):
        wanted = _derivatives() > 0 and (self._vjp or self._jvp)
        return bool(wanted or (self._vmap and state.compiling))

    def _rules(self, call):
        rules: dict[str, Any] = {}
        if _derivatives() > 0:
            with _one_derivative_less():
                if self._vjp:
                    rule = self._vjp
                    rules["smelt.custom_vjp"] = vjp_rule(call, lambda ct: rule(call.unwrapped, ct, call.result))
                if self._jvp:
                    jvp = self._jvp
                    rules["smelt.custom_jvp"] = tangent_rule(call, lambda ts: jvp(call.unwrapped, _unwrap(ts)))
                if self._primal:
                    rules["smelt.custom_primal"] = primal_rule(call, self._primal)
        if self._vmap and state.compiling:
            rules.update(batch_rule(call, self._vmap))
        return rules


def _unwrap(entries: Sequence[Any]) -> Any:
    return entries[0] if len(entries) == 1 else tuple(entries)


class custom_vjp(_Ruled[P, R]):
    """A function whose reverse mode is the user's, as in JAX.

    ``f.defvjp(fwd, bwd)`` gives the rule: ``fwd(*args)`` → (result of f, residuals), any tree;
    ``bwd(residuals, cotangent)`` → a tuple with the cotangent of each argument, None for zero.

    Args:
        fun: the function.
        nondiff_argnums: arguments that are no variables (functions, settings); `bwd` gets them first.

    Arrays that are used without being arguments are constants: no gradient flows to them. Forward mode
    differentiates `fun` itself.

    Raises:
        TreeError: not a function, or a rule that returns another structure.
        ShapeError, DTypeError: a rule that returns arrays of other types.

    >>> import smelt
    >>> clip_gradient = smelt.custom_vjp(lambda x: x)
    >>> clip_gradient.defvjp(lambda x: (x, None), lambda _, ct: (smelt.clip(ct, -1, 1),))
    >>> smelt.grad(lambda x: 5 * clip_gradient(x))(smelt.array(2.0))
    array(1, dtype=float32)
    """

    def __init__(self, fun: Callable[P, R], nondiff_argnums: Sequence[int] = ()) -> None:
        super().__init__(fun, "smelt.custom_vjp", nondiff_argnums)
        self._forward: Callable[..., Any] | None = None
        self._backward: Callable[..., Any] | None = None

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """Set the rule of reverse mode.

        Args:
            fwd, bwd: functions, as of `custom_vjp`.

        Raises:
            TreeError: one that is no function.
        """
        check_function(fwd, "smelt.custom_vjp.defvjp")
        check_function(bwd, "smelt.custom_vjp.defvjp")
        self._forward, self._backward = fwd, bwd

    def _matters(self):
        return self._backward is not None and _derivatives() > 0

    def _rules(self, call):
        assert self._forward is not None and self._backward is not None
        backward = self._backward
        with _one_derivative_less():
            forward, residuals = forward_rule(call, self._forward)
            rule = backward_rule(call, residuals, lambda res, ct: backward(*call.static_arguments, res, ct))
        return {"smelt.custom_forward": forward, "smelt.custom_vjp": rule}


class custom_jvp(_Ruled[P, R]):
    """A function whose forward mode is the user's, as in JAX; reverse mode transposes the rule.

    ``f.defjvp(rule)``: ``rule(primals, tangents)`` → (result of f, its tangent), with tuples of the
    arguments; the tangent must be linear in the tangents. ``f.defjvps(*rules)`` gives one rule an argument,
    ``rule(tangent, result, *primals)`` → its part of the tangent, None for zero.

    Args:
        fun: the function.
        nondiff_argnums: arguments that are no variables (functions, settings); the rule gets them first.

    Arrays that are used without being arguments are constants: no gradient flows to them.

    Raises:
        TreeError: not a function, or a rule that returns another structure.
        ShapeError, DTypeError: a rule that returns arrays of other types.

    >>> import smelt
    >>> safe_sqrt = smelt.custom_jvp(smelt.sqrt)
    >>> safe_sqrt.defjvps(lambda t, y, x: t * smelt.where(x > 0, 1 / (2 * y), 0))
    >>> smelt.grad(safe_sqrt)(smelt.array(0.0))
    array(0, dtype=float32)
    """

    def __init__(self, fun: Callable[P, R], nondiff_argnums: Sequence[int] = ()) -> None:
        super().__init__(fun, "smelt.custom_jvp", nondiff_argnums)
        self._rule: Callable[..., Any] | None = None
        self._each: tuple[Callable[..., Any] | None, ...] = ()

    def defjvp(self, jvp: Callable[Q, S]) -> Callable[Q, S]:
        """Set the rule of forward mode; the function that was given, so that this decorates.

        Args:
            jvp: the function ``rule(primals, tangents)``, as of `custom_jvp`.

        Raises:
            TreeError: it is no function.
        """
        check_function(jvp, "smelt.custom_jvp.defjvp")
        self._rule = jvp
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Set one rule of forward mode for each argument.

        Args:
            jvps: functions ``rule(tangent, result, *primals)``, as of `custom_jvp`, or None for zero.

        Raises:
            TreeError: one that is no function.
        """
        for f in jvps:
            if f is not None:
                check_function(f, "smelt.custom_jvp.defjvps")
        self._rule, self._each = None, jvps

    def _matters(self):
        return (self._rule is not None or bool(self._each)) and _derivatives() > 0

    def _rules(self, call):
        with _one_derivative_less():
            return {"smelt.custom_jvp": tangent_rule(call, lambda ts: self._tangent(call, ts))}

    def _tangent(self, call: Call, tangents: tuple) -> Any:
        if self._rule is None:
            return self._sum(call, tangents)
        pair = self._rule(*call.static_arguments, call.primals, tangents)
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TreeError(
                at_user_line(
                    f"smelt.custom_jvp: the rule of {call.name} must return a pair (result, tangent), returned "
                    f"{article(pair)}"
                )
            )
        if different := tree.difference(call.result, pair[0], "result"):
            raise TreeError(
                at_user_line(f"smelt.custom_jvp: the rule of {call.name} must return its result first; {different}")
            )
        return pair[1]

    def _sum(self, call: Call, tangents: tuple) -> Any:
        if len(self._each) != len(tangents):
            raise TreeError(
                at_user_line(
                    f"smelt.custom_jvp: {call.name} has {len(tangents)} arguments, but defjvps gave "
                    f"{len(self._each)} rules; one for each, None for zero"
                )
            )
        terms = [
            rule(t, call.result, *call.primals)
            for rule, x, t in zip(self._each, call.primals, tangents)
            if rule is not None and any(isinstance(v, array) and v.dtype.is_inexact for v in tree.flatten(x)[0])
        ]
        if not terms:
            return tree.mapped(lambda _: None, call.result)
        return functools.reduce(lambda a, b: tree.mapped(lambda x, y: x + y, a, b), terms)


class _Checkpoint(_Ruled[P, R]):
    """What `checkpoint` returns."""

    def _positional(self, args, kwargs):
        return args if not kwargs else (*args, kwargs)

    def __call__(self, *args, **kwargs):
        if state.recording == 0:
            with unchanged(args, kwargs):
                return settled(self._fun(*args, **kwargs))
        fun = self._fun
        if kwargs:
            call = Call(self._what, lambda *a: fun(*a[:-1], **a[-1]), (*args, kwargs), (), name_of(fun))
        else:
            call = Call(self._what, fun, args, ())
        return apply_call(call, {"smelt.checkpoint": True}) if call.arrays else call.result_as_it_is()


def checkpoint(fun: Callable[P, R]) -> Callable[P, R]:
    """A function that computes the same as `fun`, and computes it again for its gradient.

    Reverse mode keeps values of the forward pass until the backward pass needs them. Of a checkpointed
    function it keeps the arguments (and arrays that the function uses from outside), and runs the
    function again when the cotangents of its results are there: less memory for more work. Gradients are
    the same, to arrays from outside too. In forward mode it changes nothing.

    Args:
        fun: takes and returns trees of arrays; other leaves are passed on as they are.

    Raises:
        TreeError: not a function.

    >>> import smelt
    >>> block = smelt.checkpoint(lambda x: smelt.sin(smelt.exp(x)))
    >>> smelt.grad(lambda x: block(x).sum())(smelt.zeros(2))
    array([0.540302, 0.540302], dtype=float32)
    """
    return _Checkpoint(fun, "smelt.checkpoint")


__all__ = ["checkpoint", "custom_function", "custom_jvp", "custom_vjp"]


explain_keywords(globals())
