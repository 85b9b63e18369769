"""`from_stablehlo`: a program of another framework as a function of arrays."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from smelt.ir import mlir, stablehlo, text
from smelt.ir.aval import Aval
from smelt.ir.errors import (
    ArgumentTypeError,
    DTypeError,
    IRError,
    OutOfMemoryError,
    ShapeError,
    SmeltError,
    at_user_line,
    shown,
)
from smelt.ir.text import IRText

from ..lazy.arrays import array, as_array
from ..lazy.build import build_module
from ..lazy.graph import GraphFunction
from ..transforms.recording import apply_function
from . import rules as _rules  # fills the table
from .reading import Reader
from .translating import OpenAval

__all__ = ["StablehloFunction", "from_stablehlo"]

_ = _rules


#: Sizes for which a program of open sizes is kept.
_MOST_SIZES = 64
#: A type with an open extent.
_OPEN = re.compile(r"tensor<[^>]*\?")
#: An op that draws from a state: a program with one is read anew for each call, which so has numbers of its own.
_DRAWS = re.compile(r"\bstablehlo\.rng\b")


class StablehloFunction:
    """What `from_stablehlo` returns: a function of arrays of the types that the program states.

    Attributes:
        arguments, results: these types, in order, as `smelt.ir.aval.Aval` (``f32[2,3]`` as text); with extents that
            may be any as `OpenAval` (``f32[?,3]``).
    """

    def __init__(
        self, name: str, bind: Callable[[tuple[Aval, ...]], GraphFunction],
        arguments: Sequence[Aval | OpenAval], results: Sequence[Aval | OpenAval],
    ):  # fmt: skip
        self.__name__ = name
        self._bind = bind
        self.arguments, self.results = tuple(arguments), tuple(results)

    def __repr__(self) -> str:
        types = ", ".join(map(str, self.arguments))
        return f"<smelt.from_stablehlo {self.__name__}({types}) -> ({', '.join(map(str, self.results))})>"

    def __call__(self, *args: Any) -> Any:
        if len(args) != len(self.arguments):
            message = f"{self.__name__} takes {len(self.arguments)} arrays ({', '.join(map(str, self.arguments))})"
            raise ArgumentTypeError(at_user_line(f"smelt.from_stablehlo: {message}, got {len(args)}"))
        given = [self._checked(i, x, aval) for i, (x, aval) in enumerate(zip(args, self.arguments))]
        try:
            f = self._bind(tuple(x.aval for x in given))
        except SmeltError as error:
            raise type(error)(at_user_line(f"smelt.from_stablehlo: {error}")) from None
        outs = apply_function(f, (), [*(x._ref for x in given), *f.captured], f.results)
        return outs[0] if len(outs) == 1 else tuple(outs)

    def _checked(self, i: int, x: Any, aval: Aval | OpenAval) -> array:
        if not isinstance(x, (array, np.ndarray, np.generic, bool, int, float, complex)):
            message = f"argument {i} of {self.__name__} must be an array {aval}, is {shown(x)}"
            raise ArgumentTypeError(at_user_line(f"smelt.from_stablehlo: {message}"))
        found = as_array(x, aval.dtype)
        if found.ndim != len(aval.shape) or any(d not in (None, n) for n, d in zip(found.shape, aval.shape)):
            message = f"argument {i} of {self.__name__} must be {aval}, is {found.aval}"
            raise ShapeError(at_user_line(f"smelt.from_stablehlo: {message}"))
        if found.dtype is not aval.dtype:
            message = f"argument {i} of {self.__name__} must be {aval}, is {found.aval}; convert it with .astype"
            raise DTypeError(at_user_line(f"smelt.from_stablehlo: {message}"))
        return found


def from_stablehlo(program: str | bytes, *, name: str = "<stablehlo>") -> StablehloFunction:
    """A StableHLO program, as JAX, PyTorch and TensorFlow hand them on, as a function of arrays.

    It is recorded once, so it can be differentiated, mapped, compiled and exported like any other function. One that
    draws from no state of its own (``stablehlo.rng``) draws from `smelt.random.state`, at each call.

    Args:
        program: MLIR text (``jax.jit(f).lower(x).as_text()``), or the bytes of a portable artifact
            (``jax.export.export(jax.jit(f))(x).mlir_module_serialized``).
        name: what errors call the program.

    Returns:
        A function of as many arrays as ``@main`` (or the only public function) takes, of exactly its shapes and
        dtypes; extents that the program leaves open (``tensor<?x3xf32>``, as of JAX's symbolic shapes) are those of
        the arrays, and the program is read anew for sizes that it has not met. It returns an array, or a tuple where
        the program has several results.

    Raises:
        IRError: the text does not parse, or something in it has no translation: the message names op and line.
        FileFormatError: bytes that are no portable artifact. MissingPackageError: MLIR bindings without StableHLO.
        ArgumentTypeError: `program` is neither text nor bytes. OutOfMemoryError: constants that memory cannot hold.

    >>> import smelt
    >>> f = smelt.from_stablehlo('''
    ... func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
    ...   %y = stablehlo.multiply %x, %x : tensor<3xf32>
    ...   return %y : tensor<3xf32>
    ... }''')
    >>> f(smelt.array([1.0, 2.0, 3.0]))
    array([1, 4, 9], dtype=float32)
    """
    if not isinstance(program, (str, bytes, bytearray)):
        message = f"needs text or the bytes of a portable artifact, got {shown(program)}"
        raise ArgumentTypeError(at_user_line(f"smelt.from_stablehlo: {message}"))
    if not isinstance(name, str):
        raise ArgumentTypeError(at_user_line(f"smelt.from_stablehlo: name must be a text, is {shown(name)}"))
    try:
        return _read(program, name)
    except SmeltError as error:
        raise type(error)(at_user_line(f"smelt.from_stablehlo: {error}")) from None
    except RecursionError:
        limit = sys.getrecursionlimit()
        message = f"{name} nests too deeply for Python's recursion limit of {limit}"
        raise IRError(at_user_line(f"smelt.from_stablehlo: {message}")) from None
    except MemoryError as short:
        raise OutOfMemoryError(at_user_line(f"smelt.from_stablehlo: {name}: {short}")) from None
    except RuntimeError as refused:  # of the bindings, such as texts that are no UTF-8
        raise IRError(at_user_line(f"smelt.from_stablehlo: {name} cannot be read: {refused}")) from None


def read_module(program: str, name: str) -> IRText:
    """The text of a StableHLO program in smelt's dialect, for the command line.

    Raises:
        IRError: something in it has no translation.
    """
    module = stablehlo.parse(program, name)
    with mlir.lock:
        reader = Reader(module, name)
        f = reader.program(reader.entry())
        return text.to_text(build_module(f.parameters, f.body, f.outputs))


def _read(program: str | bytes | bytearray, name: str) -> StablehloFunction:
    if not isinstance(program, str):
        data = bytes(program)
        if data.startswith(stablehlo.BYTECODE):
            source = stablehlo.text_of_bytecode(data, name)
        else:
            try:
                source = data.decode()
            except UnicodeDecodeError as error:
                raise IRError(f"{name}: neither a portable artifact nor text: {error}") from None
    else:
        source = program
    module = stablehlo.parse(source, name)
    with mlir.lock:
        reader = Reader(module, name)
        entry = reader.entry()
        arguments, results = reader.open_signature(entry)
        if _OPEN.search(source) is None and not _DRAWS.search(source):
            function = reader.program(entry)
            return StablehloFunction(entry, lambda avals: function, arguments, results)

    @functools.lru_cache(maxsize=0 if _DRAWS.search(source) else _MOST_SIZES)
    def bind(avals: tuple[Aval, ...]) -> GraphFunction:
        module = stablehlo.bound(source, avals, name)
        with mlir.lock:
            return Reader(module, name).program(entry)

    if not any(isinstance(a, OpenAval) for a in arguments):
        bind(tuple(a for a in arguments if isinstance(a, Aval)))  # what has no translation is an error now
    return StablehloFunction(entry, bind, arguments, results)
