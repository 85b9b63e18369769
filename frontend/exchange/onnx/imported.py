"""`from_onnx`: a model of another framework as a function of arrays."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from smelt import array
from smelt.ir.aval import Aval
from smelt.ir.dtypes import DType
from smelt.ir.errors import (
    ArgumentTypeError,
    DTypeError,
    FileFormatError,
    IRError,
    MissingPackageError,
    ShapeError,
    SmeltError,
    at_user_line,
    shown,
)
from smelt.ir.paths import path_of

from ...lazy.arrays import as_array
from ..translating import replaced
from . import rules as _rules  # fills the table
from .graph import DTYPES, Model, Value, type_name, word

__all__ = ["OnnxFunction", "from_onnx"]

_ = _rules


class Input:
    """An input of a model: its name, dtype, and shape; extents that may be any are names, or None."""

    def __init__(self, name: str, dtype: DType | None, shape: tuple[int | str | None, ...] | None):
        self.name, self.dtype, self.shape = name, dtype, shape

    def __str__(self) -> str:
        kind = "?" if self.dtype is None else str(Aval((), self.dtype)).partition("[")[0]
        extents = "..." if self.shape is None else ",".join("?" if d is None else str(d) for d in self.shape)
        return f"{self.name}: {kind}[{extents}]"


class OnnxFunction:
    """What `from_onnx` returns: a function of the model's inputs, in order or by name.

    Attributes:
        inputs: names of the inputs. outputs: names of the results.
        weights: the model's initializers by name; `apply` takes others in their place.
    """

    def __init__(self, model: Model, name: str, inputs: list[Input]):
        self.__name__ = name
        self._model, self._inputs = model, inputs
        self.inputs = tuple(i.name for i in inputs)
        self.outputs = tuple(model.graph.outputs)
        self.weights: Mapping[str, array] = MappingProxyType(model.graph.constants)

    def __repr__(self) -> str:
        return f"<smelt.from_onnx {self.__name__}({', '.join(map(str, self._inputs))}) -> ({', '.join(self.outputs)})>"

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self.apply(self.weights, *args, **named)

    def apply(self, weights: Mapping[str, Any], /, *args: Any, **named: Any) -> Any:
        """The results with some of the weights replaced, so that there are derivatives with respect to these.

        Args:
            weights: arrays by the names in `weights`; the others are those of the model.
            args, named: the inputs.

        Raises:
            ArgumentTypeError: another number of inputs, or names that the model does not have.
            ShapeError, DTypeError: arrays of other types than the model states.
        """
        given = self._bound(args, named)
        sizes: dict[str, int] = {}
        values = [self._checked(i, given[i.name], sizes) for i in self._inputs]
        constants = replaced("smelt.from_onnx", self.__name__, self.weights, weights)
        graph = self._model.graph
        try:
            if weights is not self.weights:
                graph = graph.bound({})
                graph.constants = constants
            found = graph.run(values)
        except SmeltError as error:
            raise type(error)(at_user_line(f"smelt.from_onnx: {error}")) from error.__cause__
        return found[0] if len(found) == 1 else tuple(found)

    def _bound(self, args: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        given = {**dict(zip(self.inputs, args)), **named}
        if len(args) + len(named) != len(self.inputs) or set(given) != set(self.inputs):
            message = f"{self.__name__} takes {len(self.inputs)} inputs ({', '.join(map(str, self._inputs))})"
            got = f"got {len(args)}" + (f" and {', '.join(named)}" if named else "")
            raise ArgumentTypeError(at_user_line(f"smelt.from_onnx: {message}, {got}"))
        return given

    def _checked(self, entry: Input, x: Any, sizes: dict[str, int]) -> Value:
        def refused(kind: type[SmeltError], found: str, hint: str = "") -> SmeltError:
            message = f"input {entry.name} of {self.__name__} must be {entry}, is {found}{hint}"
            return kind(at_user_line(f"smelt.from_onnx: {message}"))

        if entry.dtype is None:  # a sequence or something optional
            return [as_array(v) for v in x] if isinstance(x, (list, tuple)) else x if x is None else as_array(x)
        if not isinstance(x, (array, np.ndarray, np.generic, bool, int, float, complex, list, tuple)):
            raise refused(ArgumentTypeError, shown(x))
        found = as_array(x, entry.dtype)
        if found.dtype is not entry.dtype:
            raise refused(DTypeError, str(found.aval), "; convert it with .astype")
        if entry.shape is None:
            return found
        if len(found.shape) != len(entry.shape):
            raise refused(ShapeError, str(found.aval))
        for size, extent in zip(found.shape, entry.shape):
            wanted = sizes.setdefault(extent, size) if isinstance(extent, str) else extent
            if wanted is not None and wanted != size:
                also = f", where {extent} is {wanted} in another input" if isinstance(extent, str) else ""
                raise refused(ShapeError, str(found.aval), also)
        return found


def from_onnx(file: bytes | str | os.PathLike[str], *, name: str | None = None) -> OnnxFunction:
    """An ONNX model, as PyTorch, TensorFlow and many tools hand them on, as a function of arrays.

    The function runs the model's nodes on arrays, so it can be differentiated, mapped, compiled and exported like any
    other; shapes that the model leaves open are those of the arrays that it is given.

    Args:
        file: the path of a model (with its files of external data beside it), or its bytes.
        name: what errors call the model; the file's name, or the graph's.

    Returns:
        A function of the model's inputs, in order or by name. It returns an array, or a tuple where the model has
        several outputs; sequences are lists. `weights` are its initializers, `apply(weights, …)` takes others.

    Raises:
        OSError: the file cannot be read. FileFormatError: the bytes are no ONNX model. IRError: something in it has no
            translation: the message names the node and its op. MissingPackageError: the package `onnx` is not there.
        ArgumentTypeError: `file` is neither bytes nor a path.

    >>> import smelt
    >>> smelt.from_onnx(b"no model")  # doctest: +SKIP
    Traceback (most recent call last):
    smelt.ir.errors.FileFormatError: smelt.from_onnx: <onnx> is no ONNX model
    """
    if not isinstance(file, (bytes, bytearray, str, os.PathLike)):
        message = f"needs the path of a file or its bytes, got {shown(file)}"
        raise ArgumentTypeError(at_user_line(f"smelt.from_onnx: {message}"))
    if name is not None and not isinstance(name, str):
        raise ArgumentTypeError(at_user_line(f"smelt.from_onnx: name must be a text, is {shown(name)}"))
    onnx = _package()
    found = name or ("<onnx>" if isinstance(file, (bytes, bytearray)) else path_of("from_onnx", "file", file))
    try:
        proto = _read(onnx, file, found)
        if name is None and isinstance(file, (bytes, bytearray)) and proto.graph.name:
            found = word(proto.graph.name)
        made = Model(onnx, proto, found)
        inputs = [_input(onnx, made, i) for i in proto.graph.input if word(i.name) in made.graph.inputs]
    except SmeltError as error:
        raise type(error)(at_user_line(f"smelt.from_onnx: {error}")) from None
    except RecursionError:
        raise IRError(at_user_line(f"smelt.from_onnx: {found} nests too deeply")) from None
    return OnnxFunction(made, os.path.basename(found), inputs)


def _package() -> Any:
    try:
        import onnx
        import onnx.numpy_helper
    except ImportError:
        message = "reading ONNX models needs the package onnx: pip install 'smelt-mlir[onnx]'"
        raise MissingPackageError(at_user_line(f"smelt.from_onnx: {message}")) from None
    return onnx


def _read(onnx: Any, file: Any, name: str) -> Any:
    try:
        if isinstance(file, (bytes, bytearray)):
            proto = onnx.ModelProto()
            proto.ParseFromString(bytes(file))
        else:
            proto = onnx.load(os.fspath(file), load_external_data=False)
    except OSError:
        raise
    except Exception as error:  # protobuf's and the package's own classes
        raise FileFormatError(f"{name} is no ONNX model: {shown(error)}") from None
    _load_data(onnx, proto, None if isinstance(file, (bytes, bytearray)) else os.fspath(file), name)
    if not proto.graph.output:
        raise FileFormatError(f"{name} is no ONNX model: it has no graph with an output")
    return proto


def _tensors(graph: Any) -> Iterator[Any]:
    """The tensors that a graph holds, those of branches and loops too."""
    yield from graph.initializer
    for attribute in (a for node in graph.node for a in node.attribute):
        yield from (attribute.t, *attribute.tensors)
        for inner in (attribute.g, *attribute.graphs):
            yield from _tensors(inner)


def _load_data(onnx: Any, proto: Any, path: str | None, name: str) -> None:
    """Bring in weights that stand in files beside the model."""
    helper = onnx.external_data_helper
    held = [t for t in _tensors(proto.graph) if helper.uses_external_data(t)]
    places = dict.fromkeys(word(e.value) for t in held for e in t.external_data if e.key == "location")
    if not places:
        return
    if path is None:
        message = f"{name} keeps weights in {', '.join(places)}, which bytes alone are without: give the model's path"
        raise FileFormatError(message)
    folder = os.path.dirname(os.path.abspath(path))
    missing = [place for place in places if not os.path.isfile(os.path.join(folder, place))]
    if missing:
        raise FileFormatError(f"{name} keeps weights in {', '.join(missing)}, and there is no such file beside it")
    try:
        helper.load_external_data_for_model(proto, folder)
    except Exception as error:  # the package's own classes
        raise FileFormatError(f"{name} keeps weights in {', '.join(places)}, not to be read: {shown(error)}") from None


def _input(onnx: Any, model: Model, proto: Any) -> Input:
    name, kind = word(proto.name), proto.type.WhichOneof("value")
    if kind != "tensor_type":
        return Input(name, None, None)
    element = type_name(onnx, proto.type.tensor_type.elem_type)
    if element not in DTYPES:
        raise IRError(f"{model.name}: input {name} is of type {element}, for which smelt has no dtype")
    shape: tuple[int | str | None, ...] | None = None
    if proto.type.tensor_type.HasField("shape"):
        dims = proto.type.tensor_type.shape.dim
        shape = tuple(d.dim_value if d.HasField("dim_value") else word(d.dim_param) or None for d in dims)
    return Input(name, DTYPES[element], shape)
