"""`smelt.array`: a handle on a lazy node or on a value."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.aval import broadcast_shapes as broadcast
from smelt.ir.dtypes import DType
from smelt.ir.errors import (
    ArgumentTypeError,
    AttributeValueError,
    ShapeError,
    TraceError,
    at_user_line,
    public_call,
)
from smelt.ir.keywords import unexpected
from smelt.ir.op import Op, registry
from smelt.ir.ops.constants import constant_array
from smelt.ir.symbolic import Symbol
from smelt.runtime import Buffer

from .arguments import dtype_of, sequence
from .buffer_protocol import BufferExporter
from .core import NUMBER, connect_arrays, hooks, seen, shadows
from .dlpack import device_home, exported, exported_there
from .evaluate import evaluate
from .execution.results import apart
from .graph import NO_ATTRS, Handle, Node, Ref, leaf, parameter, state
from .host import buffer_of, check_depth, holds_arrays, of_numbers, own_array
from .printing import format_array
from .recipes import stand_ins
from .signatures import ArrayLike as ArrayLike
from .signatures import DTypeLike, HostArray
from .signatures import Scalar as Scalar
from .signatures import StreamOrDevice as StreamOrDevice
from .weak import SCALARS, exact_number, fitting, is_number, weak_dtype, weakened

if TYPE_CHECKING:
    from ..functions.array_methods import ArrayMethods as _Methods
else:
    _Methods = BufferExporter


class array(_Methods, Handle):
    """An n-dimensional array, evaluated when a value is asked for.

    Args:
        val: a Python scalar, (nested) list or tuple of scalars or arrays, NumPy array, or any object
            with ``__array__``, ``__dlpack__``, ``__mlx_array__`` or the buffer protocol, or a DLPack capsule.
        dtype: the element type; by default that of `val`, with three exceptions that MLX makes too: Python
            integers are int32, Python floats and NumPy's float64 are float32, complex128 is complex64.
        others: none; a keyword of another framework is answered by the right one.

    Raises:
        ArgumentTypeError: another keyword.
        ShapeError: nested lists of uneven lengths.
        DTypeError: elements that smelt has no dtype for.

    >>> import smelt
    >>> smelt.array([[1, 2], [3, 4]]) + 0.5
    array([[1.5, 2.5],
           [3.5, 4.5]], dtype=float32)
    """

    __slots__ = ("__weakref__", "_made", "_ref")
    __array_priority__ = 1000
    __hash__ = object.__hash__

    _made: int  #: the trace that this handle was made in, if its node is older; not set outside of traces
    _stack: ClassVar[Callable[[Sequence[array]], array]]  #: `smelt.stack`, attached by `methods.py`
    _exporter: ClassVar[Callable[[array], HostArray]]  #: `exports.export`, attached by `methods.py`

    def __init__(self, val: ArrayLike = (), dtype: DTypeLike | None = None, **others: NoReturn) -> None:
        if others:  # `keywords_explained` would be felt in each of many small arrays
            message = unexpected(next(iter(others)), ("val", "dtype"), ("val", "dtype"))
            raise ArgumentTypeError(at_user_line(f"smelt.array: {message}"))
        wanted = None if dtype is None else dtype_of("array", dtype)
        if isinstance(val, array) and issubclass(type(val), array):  # a stand-in of tests only says that it is one
            self._ref = apart(val._ref) if wanted in (None, val.dtype) else convert(val, wanted)._ref  # type: ignore[arg-type]
            if state.traced:
                self._made = state.traced
            return
        if type(val) is float and wanted is None and not state.compiling:
            self._ref = number_ref(val, dtypes.float32)
            return
        self._ref = from_host(val, wanted)._ref

    # What is known without evaluating

    @property
    def aval(self) -> Aval:
        """Shape and dtype."""
        node, i = self._ref
        return node.avals[i]

    @property
    def shape(self) -> tuple[int, ...]:
        """Extent of each axis."""
        return self.aval.shape

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.aval.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.aval.size

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.aval.dtype.size

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.aval.nbytes

    def __len__(self) -> int:
        shape = self.aval.shape
        if not shape:
            raise ArgumentTypeError(at_user_line("len() of a 0-dimensional array"))
        return shape[0]

    def __iter__(self) -> Iterator[array]:
        if not self.aval.shape:
            raise ArgumentTypeError(at_user_line("iteration over a 0-dimensional array"))
        return ArrayIterator(self)

    # Values

    @property
    def _buffer(self) -> Buffer:
        node, i = self._ref
        return self._evaluated() if node.values is None else node.values[i]

    def _evaluated(self) -> Buffer:
        """The elements, which have not been computed. Other threads may make something else of the handle meanwhile."""
        while True:
            if shadows and (other := hooks.as_seen(self)) is not self:
                return other._buffer
            ref = self._ref
            evaluate((ref,))
            if ref[0].values is not None:
                return ref[0].values[ref[1]]

    def _host(self) -> HostArray:
        """The elements as a read-only NumPy array over the same memory."""
        view = self._buffer.array.view()
        view.flags.writeable = False
        return view

    def _export(self) -> HostArray:
        """The elements in memory that others may write to."""
        return array._exporter(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> HostArray:
        """A NumPy array: a view of the elements, or a copy with ``copy=True`` or of another dtype.

        What is written to the view is seen by this handle, and by no other array.

        Raises:
            AttributeValueError: ``copy=False``, but another dtype.
        """
        if dtype is not None and np.dtype(dtype) != self.dtype.numpy:
            if copy is not None and not copy:
                message = f"smelt: {self.aval} becomes a NumPy array of {np.dtype(dtype).name} only by a copy"
                raise AttributeValueError(at_user_line(message))
            return self._host().astype(dtype)
        return self._host().copy() if copy else self._export()

    def __dlpack__(
        self, *, stream: Any = None, max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None, copy: bool | None = None,
    ) -> Any:  # fmt: skip
        """A DLPack capsule with a view of the elements, or with ``copy=True`` a copy.

        What is written to the view is seen by this handle, and by no other array. An array that is on an NVIDIA GPU
        is exported there, for reading: `stream` is the consumer's.

        Raises:
            BufferExportError: a stream on the CPU, or a device that the array is not on.
        """
        there = device_home(self._buffer, dl_device)
        if there is not None:
            return exported_there(there, stream, max_version, dl_device, copy)
        return exported(self._host() if copy else self._export(), stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        """(device type, device number) of DLPack: the CPU, or the NVIDIA GPU that the array is on."""
        if state.compiling and self._ref[0].values is None:
            return (1, 0)
        there = device_home(self._buffer)
        return (1, 0) if there is None else there.home.dlpack_device

    def item(self) -> bool | int | float:
        """The value of an array of one element as a Python scalar: of a complex one, whatever checkers are told, a
        complex number.

        >>> import smelt
        >>> smelt.array(2.5).item()
        2.5
        """
        return self._number("item")

    def _number(self, asked: str) -> Any:
        """The one element, for what asks."""
        if self.size != 1:
            raise ShapeError(at_user_line(f"{asked}() needs an array of one element, shape is {self.shape}"))
        return self._host().item() if self.dtype is not dtypes.bfloat16 else float(self._host().reshape(()))

    def tolist(self) -> Any:
        """The elements as nested Python lists.

        >>> import smelt
        >>> smelt.array([[1, 2]]).tolist()
        [[1, 2]]
        """
        host = self._host()
        return (host.astype(np.float32) if self.dtype is dtypes.bfloat16 else host).tolist()

    def _truth(self) -> Any:
        if self.size != 1:
            raise ShapeError(
                at_user_line(
                    f"the truth value of an array of shape {self.shape} is ambiguous; use smelt.any or smelt.all"
                )
            )
        return self._host().reshape(())

    def __bool__(self) -> bool:
        return bool(self._truth())

    def __int__(self) -> int:
        return int(self._number("int"))

    def __float__(self) -> float:
        return float(self._number("float"))

    def __complex__(self) -> complex:
        return complex(self._number("complex"))

    def __index__(self) -> int:
        if not self.dtype.is_integer or self.ndim:
            raise ArgumentTypeError(at_user_line(f"only an integer scalar is an index, this is {self.aval}"))
        return int(self.item())  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return format_array(self)

    def __format__(self, spec: str) -> str:
        if self.ndim == 0 and (spec or self._ref[0].values is not None or not state.compiling):
            return format(self.item(), spec)
        if spec:
            raise ArgumentTypeError(at_user_line(f"smelt: a format such as {spec!r} is for scalars; array {self.aval}"))
        return str(self)

    def __reduce__(self) -> Any:
        return (_unpickle, (np.array(self._host()), self.dtype.name))

    def __copy__(self) -> array:
        return wrap(self._ref)

    def __deepcopy__(self, memo: Any) -> array:
        return wrap(self._ref)

    # Arithmetic: the methods are attached by `methods.py`, from the functions of the same name.


class ArrayIterator:
    """The elements of an array along its first axis.

    >>> import smelt
    >>> [x.item() for x in smelt.array([1, 2])]
    [1, 2]
    """

    __slots__ = ("_array", "_places")

    def __init__(self, x: array):
        self._array, self._places = x, iter(range(len(x)))

    def __iter__(self) -> ArrayIterator:
        return self

    def __next__(self) -> array:
        return self._array[next(self._places)]

    def __length_hint__(self) -> int:
        return operator.length_hint(self._places)


def _unpickle(host: np.ndarray, name: str) -> array:
    return array(host, dtypes.by_name(name))


def wrap(ref: Ref) -> array:
    """A new handle on a result of a node.

    What gives an array back as it is gives it by another handle: `y = x.astype(x.dtype)` followed by an
    update of y in place does not change x.
    """
    found = array.__new__(array)
    found._ref = ref
    if state.traced:
        found._made = state.traced
    return found


def placeholder(aval: Aval, attrs: dict[str, Any] = NO_ATTRS) -> array:
    """A handle on an argument of a function while it is traced."""
    return wrap(parameter(aval, attrs))


def check_update(x: array) -> None:
    """Check that a branch or loop updates no array from outside of it in place: that would happen once, while
    the function is traced, whichever branch is taken and however many steps there are.

    Raises:
        TraceError: it does.
    """
    inside = state.control
    if inside and x._ref[0].traced < inside and getattr(x, "_made", 0) < inside:
        raise TraceError(
            at_user_line(
                f"a function given to smelt.cond, smelt.scan and the like updates an array from outside ({x.aval}) in "
                "place; such a function is traced once, so this cannot happen in each step or only in the branch that "
                "is taken: make the array an operand or a part of the carry and return it, or update a copy, "
                "smelt.array(x)"
            )
        )


# Making nodes

_infer_cache: dict[Any, Any] = {}


def emit(op: Op, inputs: Sequence[array], attrs: dict[str, Any] = NO_ATTRS) -> array:
    """A lazy application of `op`. Shapes and dtypes are checked now, the work is done on eval."""
    if shadows and not state.compiling:
        inputs = seen([*inputs])
    avals = op.infer_checked([x.aval for x in inputs], attrs)
    return wrap((Node(op, attrs, tuple([x._ref for x in inputs]), avals), 0))


def emit_all(op: Op, inputs: Sequence[array], attrs: dict[str, Any] = NO_ATTRS) -> tuple[array, ...]:
    """`emit` for an op with several results."""
    if shadows and not state.compiling:
        inputs = seen([*inputs])
    avals = op.infer_checked([x.aval for x in inputs], attrs)
    node = Node(op, attrs, tuple([x._ref for x in inputs]), avals)
    return tuple([wrap((node, i)) for i in range(len(avals))])


def emit_elementwise(op: Op, *inputs: array) -> array:
    """`emit` for ops without attributes, with the inference remembered."""
    if shadows and not state.compiling:
        inputs = seen(inputs)
    refs = tuple([x._ref for x in inputs])
    node, i = refs[0]
    aval = node.avals[i]
    key: Any = None
    for node, i in refs:  # nearly always all operands have one shape and dtype
        other = node.avals[i]
        if other is not aval and (other.dtype is not aval.dtype or other.shape != aval.shape):
            key = (op, *[node.avals[i] for node, i in refs])
            break
    else:
        key = (op, aval.shape, aval.dtype)  # these hash faster than an aval
    try:
        avals = _infer_cache.get(key)
    except TypeError:  # sizes are symbols
        return emit(op, inputs)
    if avals is None:
        avals = remember(key, op.infer_checked([node.avals[i] for node, i in refs], NO_ATTRS))
    found = array.__new__(array)
    found._ref = (Node(op, NO_ATTRS, refs, avals), 0)
    return found


def remember(key: Any, value: Any) -> Any:
    """Keep an inference."""
    if len(_infer_cache) > 10_000:
        _infer_cache.clear()
    _infer_cache[key] = value
    return value


_scalar_avals = {d: Aval((), d) for d in dtypes.ALL}
_scalar_buffers: dict[Any, Buffer] = {}


def scalar_array(value: Scalar, dtype: DType) -> array:
    """A 0-d array of a Python scalar: a constant inside a trace, else a run-time value.

    Raises:
        AttributeValueError: an integer that the dtype, an integer dtype, cannot hold; one beyond all floats.
    """
    found = array.__new__(array)
    if type(value) in stand_ins:
        attrs = {"place": value.place, "dtype": dtype}  # type: ignore[union-attr]
        found._ref = (Node(NUMBER, attrs, (), (_scalar_avals[dtype],)), 0)
    else:
        found._ref = number_ref(value if type(value) in SCALARS else exact_number(value), dtype)
    return found


def number_ref(value: Scalar, dtype: DType) -> Ref:
    """`scalar_array` without the handle."""
    if state.compiling or type(value) is Symbol:
        value = fitting(value, dtype)
        return (Node(registry["constant"], {"value": value, "dtype": dtype}, (), (_scalar_avals[dtype],)), 0)
    # Scalars repeat (2.0, 0.5, a learning rate): their buffers are kept. 1, 1.0 and True are equal to
    # a dictionary, and so are 0.0 and -0.0.
    kind = type(value)
    key = (value if value or kind is int else str(value), kind, dtype)
    buffer = _scalar_buffers.get(key)
    if buffer is None:
        buffer = Buffer(_scalar_avals[dtype], constant_array(fitting(value, dtype), dtype))
        if len(_scalar_buffers) > 1000:
            _scalar_buffers.clear()
        _scalar_buffers[key] = buffer
    return (leaf(buffer), 0)


connect_arrays(array, number_ref, _scalar_buffers)


def from_host(val: ArrayLike, dtype: DType | None = None) -> array:
    """An array with a copy of host data; arrays in lists are stacked."""
    if isinstance(val, (list, tuple)) and issubclass(type(val), (list, tuple)):
        if dtype is None and type(val) in (list, tuple) and (found := of_numbers(val)) is not None:
            return wrap((leaf(found), 0))
        check_depth(val)
        if holds_arrays(val):
            parts = [v if isinstance(v, array) else from_host(v) for v in sequence(val)]
            for i, part in enumerate(parts):
                if part.shape != parts[0].shape:
                    shapes = f"element 0 has shape {parts[0].shape}, element {i} has {part.shape}"
                    message = f"smelt.{public_call() or 'array'}: nested lists of uneven lengths ({shapes})"
                    raise ShapeError(at_user_line(message))
            stacked = array._stack(parts)
            return stacked if dtype is None else convert(stacked, dtype)
    elif hasattr(type(val), "__mlx_array__"):
        own: array = own_array(val)
        return wrap(own._ref) if dtype is None else convert(own, dtype)
    return wrap((leaf(buffer_of(val, dtype)), 0))


def as_array(x: ArrayLike, dtype: DType | None = None) -> array:
    """`x` as an array; Python scalars take `dtype` if given, and so does what float32 would round (`is_rounded`)."""
    if isinstance(x, array) and issubclass(type(x), array):  # a stand-in of tests only says that it is one
        return x
    if isinstance(x, (bool, int, float, complex)):
        return scalar_array(x, dtype or dtypes.of_scalar(x))
    return from_host(x, dtype if dtype in _WIDE and is_rounded(x, dtype) else None)


_WIDE = (dtypes.float64, dtypes.complex128)


def meeting(given: ArrayLike, found: array, dtype: DType) -> array:
    """What was `found` of an operand that meets others in `dtype`."""
    return as_array(given, dtype) if dtype in _WIDE and is_rounded(given, dtype) else convert(found, dtype)


def is_rounded(given: object, dtype: DType) -> bool:
    """Whether numbers lose digits in arrays of the default dtype that `dtype`, float64 or complex128, has: those in
    lists, and NumPy's arrays of that kind."""
    if isinstance(given, np.ndarray):
        return given.dtype == np.float64 or (dtype.is_complex and given.dtype == np.complex128)
    return isinstance(given, (list, tuple))


def convert(x: array, dtype: DType) -> array:
    """`x` in another dtype; another handle in any case."""
    node, i = x._ref
    aval = node.avals[i]
    return wrap(x._ref) if aval.dtype is dtype else _emit_typed(_convert, x, aval, "dtype", dtype)


def broadcast_to_shape(x: array, shape: tuple[int, ...]) -> array:
    """`x` stretched to `shape`, by NumPy's rule; another handle in any case."""
    node, i = x._ref
    aval = node.avals[i]
    return wrap(x._ref) if aval.shape == shape else _emit_typed(_broadcast, x, aval, "shape", shape)


_convert, _broadcast = registry["convert"], registry["broadcast"]


def _emit_typed(op: Op, x: array, aval: Aval, name: str, value: Any) -> array:
    """`emit` for an op of one operand and one attribute, with the inference remembered."""
    key = (op, aval, value)
    try:
        found = _infer_cache.get(key)
    except TypeError:  # sizes are symbols
        return emit(op, [x], {name: value})
    if found is None:
        attrs = {name: value}
        found = remember(key, (op.infer_checked([aval], attrs), attrs))
    result = array.__new__(array)
    result._ref = (Node(op, found[1], (x._ref,), found[0]), 0)
    return result


def spread_scalar(value: Any, dtype: DType, shape: tuple[int, ...]) -> array:
    """An array of one Python scalar."""
    found = scalar_array(value, dtype)
    if not shape:
        return found
    key = (_broadcast, dtype, shape)
    try:
        known = _infer_cache.get(key)
    except TypeError:  # sizes are symbols
        return emit(_broadcast, [found], {"shape": shape})
    if known is None:
        attrs = {"shape": shape}
        known = remember(key, (_broadcast.infer_checked([_scalar_avals[dtype]], attrs), attrs))
    found._ref = (Node(_broadcast, known[1], (found._ref,), known[0]), 0)
    return found


def promote_operands(name: str, x: ArrayLike, y: ArrayLike, floating: bool = False) -> tuple[array, array]:
    """Two operands in their common dtype and shape (MLX's promotion; Python scalars are weak)."""
    if type(x) is array:
        node, i = x._ref
        a = node.avals[i]
        if type(y) is array:
            node, i = y._ref
            b = node.avals[i]
            dtype = a.dtype
            if dtype is not b.dtype:
                dtype = dtypes.promote(dtype, b.dtype)
            if floating:
                dtype = dtypes.to_float(dtype)
            if a.dtype is not dtype:
                x = convert(x, dtype)
            if b.dtype is not dtype:
                y = convert(y, dtype)
            if a.shape == b.shape:
                return x, y
            shape = broadcast_shapes(name, a.shape, b.shape)
            return broadcast_to_shape(x, shape), broadcast_to_shape(y, shape)
        if type(y) in SCALARS:
            dtype = weak_dtype(a.dtype, y, floating)
            return x if a.dtype is dtype else convert(x, dtype), spread_scalar(y, dtype, a.shape)
    elif type(y) is array and type(x) in SCALARS:
        node, i = y._ref
        b = node.avals[i]
        dtype = weak_dtype(b.dtype, x, floating)
        return spread_scalar(x, dtype, b.shape), y if b.dtype is dtype else convert(y, dtype)
    if isinstance(y, np.generic) and not is_number(x):
        x = as_array(x)
        y = weakened(y, x.dtype)
    elif isinstance(x, np.generic) and not is_number(y):
        y = as_array(y)
        x = weakened(x, y.dtype)
    if isinstance(y, (bool, int, float, complex)) and not isinstance(x, (bool, int, float, complex)):
        x = as_array(x)
        dtype = dtypes.promote_scalar(x.dtype, y)
    elif isinstance(x, (bool, int, float, complex)) and not isinstance(y, (bool, int, float, complex)):
        y = as_array(y)
        dtype = dtypes.promote_scalar(y.dtype, x)
    else:
        given = x, y
        x, y = as_array(x), as_array(y)
        dtype = dtypes.promote(x.dtype, y.dtype)
        x, y = meeting(given[0], x, dtype), meeting(given[1], y, dtype)
    if floating:
        dtype = dtypes.to_float(dtype)
    x, y = as_array(x, dtype), as_array(y, dtype)
    x, y = convert(x, dtype), convert(y, dtype)
    if x.shape == y.shape:
        return x, y
    shape = broadcast_shapes(name, x.shape, y.shape)
    return broadcast_to_shape(x, shape), broadcast_to_shape(y, shape)


def broadcast_shapes(name: str, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    """NumPy's broadcast of shapes; the error names the function."""
    try:
        return broadcast(*shapes)
    except ShapeError as error:
        raise ShapeError(at_user_line(f"smelt.{name}: {error}")) from None
