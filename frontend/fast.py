"""Kernels of one's own, and functions of rows and attention, under the names of `mlx.core.fast`."""

from __future__ import annotations

import operator
import re
import struct
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from smelt.backends.device import launcher
from smelt.backends.gpu.devices import METAL as _METAL
from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.dtypes import DType
from smelt.ir.errors import AttributeValueError, DTypeError, ShapeError, TraceError, at_user_line
from smelt.ir.op import registry as _ops
from smelt.runtime import Buffer, default_device

from .functions.attention import rope, scaled_dot_product_attention
from .functions.normalization import cross_entropy, layer_norm, rms_norm
from .lazy.arguments import dtype_of
from .lazy.arrays import ArrayLike, Scalar, StreamOrDevice, array, as_array, wrap
from .lazy.evaluate import evaluate
from .lazy.graph import ALIAS, leaf, state, topological
from .lazy.streams import check_stream

__all__ = [
    "cross_entropy",
    "layer_norm",
    "metal_kernel",
    "rms_norm",
    "rope",
    "scaled_dot_product_attention",
]


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


#: What a kernel may ask about its place in the grid, with the type of the parameter.
_ATTRIBUTES = {
    **dict.fromkeys(
        (
            "dispatch_threads_per_threadgroup", "grid_origin", "grid_size", "thread_position_in_grid",
            "thread_position_in_threadgroup", "threadgroup_position_in_grid", "threadgroups_per_grid",
            "threads_per_grid", "threads_per_threadgroup",
        ),
        "uint3",
    ),
    **dict.fromkeys(
        (
            "dispatch_quadgroups_per_threadgroup", "dispatch_simdgroups_per_threadgroup",
            "quadgroup_index_in_threadgroup", "quadgroups_per_threadgroup", "simdgroup_index_in_threadgroup",
            "simdgroups_per_threadgroup", "thread_execution_width", "thread_index_in_quadgroup",
            "thread_index_in_simdgroup", "thread_index_in_threadgroup", "threads_per_simdgroup",
        ),
        "uint",
    ),
}  # fmt: skip

_TYPES = {
    dtypes.bool_: "bool", dtypes.uint8: "uchar", dtypes.uint16: "ushort", dtypes.uint32: "uint",
    dtypes.uint64: "ulong", dtypes.int8: "char", dtypes.int16: "short", dtypes.int32: "int", dtypes.int64: "long",
    dtypes.float16: "half", dtypes.bfloat16: "bfloat", dtypes.float32: "float", dtypes.complex64: "float2",
}  # fmt: skip
_ATOMIC = (dtypes.float32, dtypes.int32, dtypes.uint32)

_PRELUDE = """\
#include <metal_stdlib>
using namespace metal;

typedef half float16_t;
typedef bfloat bfloat16_t;
typedef float2 complex64_t;
"""

#: Helpers that a source may use; each is written before the kernel where its name occurs.
_HELPERS = {
    "ceildiv": """\
template <typename N, typename D>
inline N ceildiv(N n, D d) {
  return (n + d - 1) / d;
}
""",
    "elem_to_loc": """\
// Where element `elem`, counted in row-major order, lies in an array of these strides.
inline long elem_to_loc(uint elem, constant const int* shape, constant const long* strides, int ndim) {
  long place = 0;
  for (int axis = ndim; axis-- > 0; elem /= uint(shape[axis])) {
    place += long(elem % uint(shape[axis])) * strides[axis];
  }
  return place;
}
""",
}

#: Names that the emitter keeps away from, though a parameter may have them: it is local to the kernel.
_HARMLESS = frozenset((
    "array", "atomic", "buffer", "concept", "final", "import", "intersection", "linux", "main", "mesh", "module",
    "override", "packed", "patch", "requires", "texture", "unix", "vec", "visible",
))  # fmt: skip
_DEFINED = frozenset(("bfloat16_t", "complex64_t", "float16_t", *_HELPERS))

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def metal_kernel(
    name: str,
    input_names: Sequence[str],
    output_names: Sequence[str],
    source: str,
    header: str = "",
    ensure_row_contiguous: bool = True,
    atomic_outputs: bool = False,
    compile_options: Any = None,
) -> GpuKernel:
    """A kernel written in Metal Shading Language, as a function of arrays.

    `source` is the body of the kernel; its signature is made for each call. The parameters are

    - each input by its name: ``const device T*`` (a 0-d input is a value: ``const constant T&``), and where
      these names occur in `source`, ``NAME_shape`` (int), ``NAME_strides`` (long, in elements) and
      ``NAME_ndim`` (int);
    - each output by its name: ``device T*``;
    - each of Metal's attributes that occurs in `source`: ``thread_position_in_grid`` and its kind are uint3,
      indices and counts like ``thread_index_in_simdgroup`` are uint.

    complex64 is float2. ``ceildiv(n, d)``, ``elem_to_loc(elem, NAME_shape, NAME_strides, NAME_ndim)`` and the
    names float16_t and bfloat16_t are defined.

    The kernel runs when it is called, on the default device where that is ``metal`` or ``metal:sim``; from
    any other device it runs on ``metal:sim``, which needs a C++ compiler. It has no derivative, and cannot be
    called inside `smelt.compile` and `smelt.vmap`.

    Args:
        name: of the kernel, an identifier.
        input_names, output_names: of the parameters, in order.
        source: the body.
        header: text before the kernel: functions, constants.
        ensure_row_contiguous: accepted for MLX's sake and ignored: smelt's arrays are row-major.
        atomic_outputs: outputs are ``device atomic<T>*``; T is float, int or uint.
        compile_options: accepted for MLX's sake and ignored: kernels are compiled in safe math mode.

    Raises:
        AttributeValueError: a name that is no identifier, that Metal reserves or that occurs twice; a parameter
            named like a function that `source` calls; an empty source, no outputs.

    >>> import smelt
    >>> body = "uint i = thread_position_in_grid.x; out[i] = x[i] * x[i];"
    >>> kernel = smelt.fast.metal_kernel("square", ["x"], ["out"], body)
    >>> x = smelt.array([1.0, 2.0, 3.0])
    >>> kernel(
    ...     inputs=[x], grid=(3, 1, 1), threadgroup=(32, 1, 1), output_shapes=[x.shape], output_dtypes=[x.dtype]
    ... )
    [array([1, 4, 9], dtype=float32)]
    """
    return GpuKernel(name, input_names, output_names, source, header, atomic_outputs)


class GpuKernel:
    """What `metal_kernel` makes; call it."""

    def __init__(self, name: str, input_names: Sequence[str], output_names: Sequence[str], source: str, header: str,
                 atomic_outputs: bool):  # fmt: skip
        self._who = f"smelt.fast.metal_kernel {name!r}"
        self.name = _identifier(name, "smelt.fast.metal_kernel", "its name")
        self.input_names, self.output_names = (self._names(names) for names in (input_names, output_names))
        if not self.output_names:
            raise AttributeValueError(at_user_line(f"{self._who}: needs at least one output"))
        if not isinstance(source, str) or not source.strip():
            raise AttributeValueError(at_user_line(f"{self._who}: the source must be the body of a kernel"))
        if not isinstance(header, str):
            raise self._error(f"the header must be a text, is {header!r:.60}")
        self.source, self.header = source, header
        self.atomic_outputs = atomic_outputs
        self._words = set(_IDENTIFIER.findall(source))
        self._taken: list[str] = []
        for parameter in (*self.input_names, *self.output_names):
            self._check_name(parameter, self._taken)
            self._taken.append(parameter)
        self._check_calls()

    def _check_name(self, name: str, taken: Iterable[str]) -> None:
        """A name of a parameter or of the template is neither used nor reserved."""
        from smelt.backends.metal.emit.names import HELPERS, RESERVED

        stem, _, part = name.rpartition("_")
        if name in taken:
            raise self._error(f"the name {name!r} is used twice")
        if part in ("shape", "strides", "ndim") and stem in self.input_names and name in self._words:
            raise self._error(f"the name {name!r} stands for the {part} of the input {stem}; choose another one")
        if name in _ATTRIBUTES:
            raise self._error(f"the name {name!r} is an attribute of Metal; choose another one")
        if name in _DEFINED:
            raise self._error(f"the name {name!r} is defined in each kernel; choose another one")
        if re.match("_[_A-Z]", name) or name in RESERVED.difference(_HARMLESS, HELPERS):
            raise self._error(f"the name {name!r} is reserved in the Metal Shading Language; choose another one")

    def _check_calls(self) -> None:
        """No parameter hides a function of Metal's library that the source calls."""
        from smelt.backends.metal.emit.names import GLOBAL_RESERVED, RESERVED

        code = re.sub(r"//[^\n]*|/\*.*?\*/", " ", self.source, flags=re.DOTALL)
        for name in (GLOBAL_RESERVED - RESERVED).intersection(self._taken):
            if re.search(rf"(?<![\w:.>]){name}\s*\(", code):
                raise self._error(
                    f"the source calls {name}(), which its parameter {name!r} hides; rename the parameter, or write "
                    f"metal::{name}()"
                )

    def __repr__(self) -> str:
        return f"<{self._who}: {', '.join(self.input_names)} -> {', '.join(self.output_names)}>"

    def _names(self, names: Sequence[str]) -> list[str]:
        if isinstance(names, str):
            raise AttributeValueError(at_user_line(f"{self._who}: names come as a list, got {names!r}"))
        return [_identifier(n, self._who, "a parameter") for n in names]

    def __call__(
        self,
        *,
        inputs: Sequence[ArrayLike],
        output_shapes: Sequence[Sequence[int]],
        output_dtypes: Sequence[DType | Any],
        grid: tuple[int, int, int],
        threadgroup: tuple[int, int, int],
        template: Sequence[tuple[str, DType | int | bool]] | None = None,
        init_value: Scalar | None = None,
        verbose: bool = False,
        stream: StreamOrDevice = None,
    ) -> list[array]:
        """Run the kernel.

        Args:
            inputs: arrays or Python scalars, as many as there are input names. They are evaluated.
            output_shapes, output_dtypes: one for each output.
            grid: threads (not threadgroups) along x, y, z.
            threadgroup: threads in a threadgroup, at most 1024 in all; no longer along an axis than the grid.
            template: names that the source may use: a dtype is a type, an int or bool a constant.
            init_value: what the outputs hold before; without, what was in their memory.
            verbose: print the text.
            stream: accepted for MLX's sake: a kernel runs where the class says.

        Returns:
            The outputs.

        Raises:
            TraceError: inside `smelt.compile` or `smelt.vmap`, or an input is being differentiated.
            AttributeValueError: counts do not match, an impossible grid or template.
            DTypeError: an element type that Metal does not have. ShapeError: an impossible output shape.
            SmeltError: the text does not compile; the message is the compiler's.
        """
        check_stream(stream)
        operands = self._check_inputs(inputs)
        results = self._check_outputs(output_shapes, output_dtypes)
        sizes = self._size(grid, "grid", 0), self._size(threadgroup, "threadgroup", 1)
        x, y, z = (max(1, min(g, t)) for g, t in zip(*sizes))
        if (threads := x * y * z) > _METAL.max_threads:
            raise AttributeValueError(
                at_user_line(f"{self._who}: {threads} threads in a threadgroup, Metal allows {_METAL.max_threads}")
            )
        constants = self._template(template or ())
        evaluate([x._ref for x in operands])
        parameters, buffers = self._parameters(operands, results)
        text = self._text(parameters, constants)
        if verbose:
            print(text)
        values = self._launch(text, buffers, results, init_value, sizes[0], (x, y, z))
        return [wrap((leaf(value), 0)) for value in values]

    # What a call is given

    def _error(self, message: str) -> AttributeValueError:
        return AttributeValueError(at_user_line(f"{self._who}: {message}"))

    def _check_inputs(self, inputs: Sequence[ArrayLike]) -> list[array]:
        if state.compiling:
            raise TraceError(
                at_user_line(
                    f"{self._who} runs when it is called, and inside smelt.compile and smelt.vmap arrays have no "
                    "values yet; call it outside, between compiled functions"
                )
            )
        if len(inputs) != len(self.input_names):
            raise self._error(
                f"takes {len(self.input_names)} inputs ({', '.join(self.input_names)}), got {len(inputs)}"
            )
        operands = [as_array(x) for x in inputs]
        for name, x in zip(self.input_names, operands):
            self._type(x.dtype, f"input {name}")
        if state.recording:
            stop = _ops["stop_gradient"]
            if any(n.op is ALIAS for n in topological([x._ref for x in operands], lambda node: node.op is stop)):
                raise TraceError(
                    at_user_line(
                        f"{self._who} has no derivative, and an input depends on what is differentiated; call it "
                        "outside, or give it smelt.stop_gradient of the input to treat the outputs as constants"
                    )
                )
        return operands

    def _check_outputs(self, shapes: Sequence[Sequence[int]], types: Sequence[DType | Any]) -> list[Aval]:
        for what, found in (("output_shapes", shapes), ("output_dtypes", types)):
            if isinstance(found, (str, DType)) or len(found) != len(self.output_names):
                count = 1 if isinstance(found, (str, DType)) else len(found)
                raise self._error(
                    f"has {len(self.output_names)} outputs ({', '.join(self.output_names)}), {what} has {count}"
                )
        results = []
        for name, shape, type_ in zip(self.output_names, shapes, types):
            try:
                extents = tuple(operator.index(n) for n in shape)
            except TypeError:
                extents = (-1,)
            if any(n < 0 for n in extents):
                raise ShapeError(at_user_line(f"{self._who}: {shape!r} is no shape for output {name}"))
            dtype = dtype_of("fast.metal_kernel", type_)
            self._type(dtype, f"output {name}")
            if self.atomic_outputs and dtype not in _ATOMIC:
                known = ", ".join(d.name for d in _ATOMIC)
                raise DTypeError(
                    at_user_line(f"{self._who}: output {name} is {dtype.name}; Metal has atomics of {known}")
                )
            results.append(Aval(extents, dtype))
        return results

    def _type(self, dtype: DType, what: str) -> str:
        if dtype not in _TYPES:
            raise DTypeError(
                at_user_line(f"{self._who}: {what} is {dtype.name}, which Metal does not have; convert it, to float32")
            )
        return _TYPES[dtype]

    def _size(self, size: Sequence[int], what: str, least: int) -> tuple[int, int, int]:
        try:
            x, y, z = (operator.index(n) for n in size)
        except (TypeError, ValueError):
            raise self._error(f"{what} must be three integers, is {size!r}") from None
        if min(x, y, z) < least:
            raise self._error(f"{what} must be at least {least} along each axis, is {(x, y, z)}")
        return x, y, z

    def _template(self, template: Sequence[tuple[str, Any]]) -> list[str]:
        """Declarations of the template's names."""
        lines, names = [], list(self._taken)
        for item in template:
            if not isinstance(item, (tuple, list)) or len(item) != 2:
                raise self._error(f"template holds pairs of a name and a dtype, int or bool; it has {item!r}")
            name, value = item
            _identifier(name, self._who, "a template parameter")
            self._check_name(name, names)
            names.append(name)
            if isinstance(value, (bool, np.bool_)):
                lines.append(f"constexpr bool {name} = {str(bool(value)).lower()};")
            elif isinstance(value, (int, np.integer)):
                if not -(2**63) <= value < 2**63:
                    raise self._error(f"the template parameter {name} must fit int64, is {value}")
                type_ = "int" if -(2**31) <= value < 2**31 else "long"
                lines.append(f"constexpr {type_} {name} = {int(value)};")
            elif isinstance(value, (str, float)):
                raise self._error(f"the template parameter {name} must be a dtype, an int or a bool, is {value!r}")
            else:
                type_ = self._type(dtype_of("fast.metal_kernel", value), f"the template parameter {name}")
                lines.append(f"typedef {type_} {name};")
        return lines

    # The text

    def _parameters(self, operands: Sequence[array], results: Sequence[Aval]) -> tuple[list[str], list[Buffer | bytes]]:
        """Declarations of the kernel's parameters, and what the inputs among them hold."""
        declarations: list[str] = []
        contents: list[Buffer | bytes] = []

        def declare(declaration: str, content: Buffer | bytes) -> None:
            declarations.append(f"{declaration} [[buffer({len(declarations)})]]")
            contents.append(content)

        for name, x in zip(self.input_names, operands):
            element = _TYPES[x.dtype]
            if x.ndim == 0:
                declare(f"const constant {element}& {name}", x._buffer.array.tobytes())
            else:
                declare(f"const device {element}* {name}", x._buffer)
            if f"{name}_shape" in self._words:
                declare(f"const constant int* {name}_shape", struct.pack(f"{max(1, x.ndim)}i", *(x.shape or (1,))))
            if f"{name}_strides" in self._words:
                strides = [int(np.prod(x.shape[axis + 1 :], dtype=np.int64)) for axis in range(x.ndim)]
                declare(f"const constant long* {name}_strides", struct.pack(f"{max(1, x.ndim)}q", *(strides or [1])))
            if f"{name}_ndim" in self._words:
                declare(f"const constant int& {name}_ndim", struct.pack("i", x.ndim))
        for name, aval in zip(self.output_names, results):
            element = _TYPES[aval.dtype]
            element = f"atomic<{element}>" if self.atomic_outputs else element
            declarations.append(f"device {element}* {name} [[buffer({len(declarations)})]]")
        if (count := len(declarations)) > _METAL.max_buffers:
            raise self._error(f"has {count} buffers with shapes and strides; Metal has {_METAL.max_buffers}")
        declarations += [f"{t} {a} [[{a}]]" for a, t in _ATTRIBUTES.items() if a in self._words]
        return declarations, contents

    def _text(self, parameters: Sequence[str], constants: Sequence[str]) -> str:
        words = self._words | set(_IDENTIFIER.findall(self.header))
        parts = [_PRELUDE, *(helper for name, helper in _HELPERS.items() if name in words)]
        if self.header:
            parts.append(self.header.strip("\n") + "\n")
        inside = "".join(f"  {line}\n" for line in constants)
        listed = ",\n    ".join(parameters)
        parts.append(f"kernel void {self._entry}(\n    {listed}) {{\n{inside}{self.source.strip(chr(10))}\n}}\n")
        return "\n".join(parts)

    @property
    def _entry(self) -> str:
        return f"custom_kernel_{self.name}"

    # Running

    def _launch(
        self,
        text: str,
        inputs: Sequence[Buffer | bytes],
        results: Sequence[Aval],
        init_value: Scalar | None,
        grid: tuple[int, int, int],
        group: tuple[int, int, int],
    ) -> list[Buffer]:
        launch = launcher("msl", default_device())
        return launch(text, self._entry, inputs, results, init_value, grid, group)


def _identifier(name: Any, who: str, what: str) -> str:
    if not isinstance(name, str) or not _IDENTIFIER.fullmatch(name):
        raise AttributeValueError(at_user_line(f"{who}: {what} must be an identifier, is {name!r}"))
    return name
