"""`smelt.compile`, and the text of what it traces."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

from smelt.ir.flags import flags_checked
from smelt.ir.keywords import explain_keywords
from smelt.ir.settings import settings
from smelt.runtime.pipelines import spelled

from ..lazy.signatures import P, R
from .compiled_function import CompiledFunction
from .donation import Donate
from .recording import check_function

if TYPE_CHECKING:  # passes are loaded by the first compile
    from smelt.passes.driver import Pipeline


@overload
def compile(
    fun: Callable[P, R], inputs: Any = None, outputs: Any = None, shapeless: bool = False,
    pipeline: str | Pipeline | None = None, donate: Donate | None = None,
) -> CompiledFunction[P, R]: ...
@overload
def compile(
    fun: None = None, inputs: Any = None, outputs: Any = None, shapeless: bool = False,
    pipeline: str | Pipeline | None = None, donate: Donate | None = None,
) -> Callable[[Callable[P, R]], CompiledFunction[P, R]]: ...
def compile(
    fun: Callable[..., Any] | None = None,
    inputs: Any = None,
    outputs: Any = None,
    shapeless: bool = False,
    pipeline: str | Pipeline | None = None,
    donate: Donate | None = None,
) -> Any:
    """A function that traces `fun` once for each set of argument types, compiles it, and runs that.

    The first set of types is compiled at once where that takes a moment, or where a few calls make up for it. Else,
    and with other types, the function runs op by op until what that has taken comes to what a compile takes; it is
    compiled by another process meanwhile, where there is a way (`SMELT_TIER`).

    Compiling a function again shares its programs, as long as what it refers to besides its arguments (its closure,
    the globals that it names, their attributes) is as it was. Of each function, 64 programs are kept.

    Args:
        fun: takes and returns trees of arrays. Other arguments (numbers, strings, functions) are
            static: each value is traced anew, where types and bits tell values apart: 0.0 is not -0.0, 1 not
            True. Arrays that `fun` closes over are constants.
        inputs: a tree of arrays (e.g. a dict of parameters, a module) that `fun` reads besides its arguments.
            Leaves that are no arrays, and other attributes, are static.
        outputs: a tree of arrays that `fun` updates; they hold the new values after each call. Dicts, lists and
            objects get new arrays; what cannot be assigned to, such as a tuple, keeps its arrays, which change.
            Calls in several threads take turns where they share state, also those of other functions.
        shapeless: whether the function is traced for all sizes of its arguments from the second on: what it does
            with sizes becomes part of the program, and a program is used only for sizes that it is right for. A
            function that does something else for other sizes is traced for these, too. Without, that is done from
            the third on, as long as what the function refers to stays as it was.
        pipeline: passes to run instead of the device's, or changes of those (``"before:fuse=my-pass"``), or an object.
        donate: numbers or names of arguments whose arrays have no value after a call: their memory becomes that of
            results where that can be, which saves as much. Using one is an error, but where the function is part
            of another trace, or `disable_compile` was called.

    Returns:
        A callable with the arguments of `fun`. ``.trace(*args)`` gives the graph,
        ``.trace(*args).lower().compile()`` the executable, each with ``.as_text(stage)``.

    Raises:
        TraceError: `fun` asks for the value of an array. TreeError: an argument that is neither an
        array, nor a tree, nor hashable, or holds arrays and is no tree; state that `outputs` cannot hold, or an
        optimizer in place of its ``state``.
        AttributeValueError: `donate` names no argument of `fun`. DonatedError: an array is used that was donated.

    >>> import smelt
    >>> @smelt.compile
    ... def f(x):
    ...     return smelt.exp(-x) * 2
    >>> f(smelt.array([0.0, 1.0]))
    array([2, 0.735759], dtype=float32)
    """
    if fun is None:
        given = {"inputs": inputs, "outputs": outputs, "shapeless": shapeless, "pipeline": pipeline, "donate": donate}
        return functools.partial(compile, **given)
    check_function(fun, "smelt.compile")
    return CompiledFunction(fun, inputs, outputs, shapeless, spelled(pipeline, "smelt.compile"), donate)


def disable_compile() -> None:
    """Make compiled functions run uncompiled, e.g. to debug them.

    >>> import smelt
    >>> smelt.disable_compile()
    >>> smelt.compile(lambda x: x.item() + 1)(smelt.array(1.0))  # would be an error in a trace
    2.0
    >>> smelt.enable_compile()
    """
    settings.disable_compile = True


def enable_compile() -> None:
    """Undo `disable_compile`.

    >>> import smelt
    >>> smelt.enable_compile()
    """
    settings.disable_compile = False


@flags_checked
def make_ir(fun: Callable[P, Any], short: bool = False) -> Callable[P, str]:
    """A function that returns the graph IR of `fun` as text, for given arguments.

    `short`: in the short form, which is to be read.

    >>> import smelt
    >>> smelt.make_ir(lambda x: x + x)(smelt.array([1.0]))
    module {
      func.func @main(%arg0: tensor<1xf32>) -> tensor<1xf32> {
        %0 = "smelt.add"(%arg0, %arg0) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
        return %0 : tensor<1xf32>
      }
    }
    >>> smelt.make_ir(lambda x: x + x, short=True)(smelt.array([1.0]))
    // The short form, to be read; tools exchange the generic form.
    @main(%x: f32[1]) -> f32[1]
      return %x + %x
    """
    check_function(fun, "smelt.make_ir")
    compiled = fun if isinstance(fun, CompiledFunction) else CompiledFunction(fun, None, None, False, None)

    @functools.wraps(fun)
    def wrapped(*args: Any, **kwargs: Any) -> str:
        return compiled.trace(*args, **kwargs).as_text("graph", short)

    return wrapped


explain_keywords(globals(), "compile make_ir")
