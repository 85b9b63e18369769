"""A user's kernel as Metal Shading Language: the names that it may have, and its text for a call."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.dtypes import DType
from smelt.ir.errors import AttributeValueError, DTypeError, at_user_line

from ...gpu.devices import METAL
from ...gpu.manifest import Constant, KernelBuffer, Size
from ..names import GLOBAL_RESERVED, HELPERS, RESERVED

#: What the target is called.
NAME = "smelt.metal_kernel"

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
    dtypes.float16: "half", dtypes.bfloat16: "bfloat", dtypes.float32: "float", dtypes.complex64: "complex64_t",
}  # fmt: skip
_ATOMIC = (dtypes.float32, dtypes.int32, dtypes.uint32)

_PRELUDE = """\
#include <metal_stdlib>
using namespace metal;

typedef half float16_t;
typedef bfloat bfloat16_t;
"""

#: Helpers that a source may use; each is written before the kernel where its name occurs.
_HELPERS = {
    "complex64_t": """\
struct complex64_t {
  float real;
  float imag;
  complex64_t() = default;
  constexpr complex64_t(float re, float im = 0.0f) : real(re), imag(im) {}
  explicit complex64_t(float2 v) : real(v.x), imag(v.y) {}
};
inline complex64_t operator-(complex64_t a) { return complex64_t(-a.real, -a.imag); }
inline complex64_t operator+(complex64_t a, complex64_t b) { return complex64_t(a.real + b.real, a.imag + b.imag); }
inline complex64_t operator-(complex64_t a, complex64_t b) { return complex64_t(a.real - b.real, a.imag - b.imag); }
inline complex64_t operator*(complex64_t a, complex64_t b) {
  return complex64_t(a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real);
}
inline complex64_t operator/(complex64_t a, complex64_t b) {
  float size = b.real * b.real + b.imag * b.imag;
  return complex64_t((a.real * b.real + a.imag * b.imag) / size, (a.imag * b.real - a.real * b.imag) / size);
}
inline bool operator==(complex64_t a, complex64_t b) { return a.real == b.real && a.imag == b.imag; }
inline bool operator!=(complex64_t a, complex64_t b) { return !(a == b); }
""",
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
_DEFINED = frozenset(("bfloat16_t", "float16_t", *_HELPERS))

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

#: Names of the template, with a dtype, an int or a bool each.
Template = Sequence[tuple[str, "DType | int | bool"]]


@dataclass(frozen=True)
class KernelText:
    """A kernel for operands and results of certain types.

    Attributes:
        text: all of it.
        function: the kernel's name in it.
        buffers: of operands, then of results.
        constants: shapes, strides and numbers of axes.
    """

    text: str
    function: str
    buffers: tuple[KernelBuffer, ...]
    constants: tuple[Constant, ...]


@dataclass(frozen=True)
class KernelSource:
    """A kernel as its user wrote it.

    Attributes:
        name: an identifier.
        inputs, outputs: names of parameters.
        source: the body.
        header: what stands before the kernel.
        atomic: whether outputs are atomic.

    Raises:
        AttributeValueError: a name that is no identifier, that Metal reserves or that occurs twice; a parameter
            named like a function that `source` calls; an empty source, no outputs.
    """

    name: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    source: str
    header: str = ""
    atomic: bool = False
    _words: frozenset[str] = field(default=frozenset(), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        identifier(self.name, "smelt.fast.metal_kernel", "its name")
        for what in ("inputs", "outputs"):
            object.__setattr__(self, what, self._names(getattr(self, what)))
        if not self.outputs:
            raise AttributeValueError(at_user_line(f"{self.who}: needs at least one output"))
        if not isinstance(self.source, str) or not self.source.strip():
            raise AttributeValueError(at_user_line(f"{self.who}: the source must be the body of a kernel"))
        if not isinstance(self.header, str):
            raise error_of(self, f"the header must be a text, is {self.header!r:.60}")
        object.__setattr__(self, "_words", frozenset(_IDENTIFIER.findall(self.source)))
        taken: list[str] = []
        for parameter in self.parameters:
            self._check_name(parameter, taken)
            taken.append(parameter)
        self._check_calls()

    @property
    def who(self) -> str:
        """How errors call it."""
        return f"smelt.fast.metal_kernel {self.name!r}"

    @property
    def parameters(self) -> tuple[str, ...]:
        return (*self.inputs, *self.outputs)

    # Names

    def _names(self, names: Sequence[str]) -> tuple[str, ...]:
        if isinstance(names, str):
            raise AttributeValueError(at_user_line(f"{self.who}: names come as a list, got {names!r}"))
        return tuple([identifier(n, self.who, "a parameter") for n in names])

    def _check_name(self, name: str, taken: Iterable[str]) -> None:
        """A name of a parameter or of the template is neither used nor reserved."""
        stem, _, part = name.rpartition("_")
        if name in taken:
            raise error_of(self, f"the name {name!r} is used twice")
        if part in ("shape", "strides", "ndim") and stem in self.inputs and name in self._words:
            raise error_of(self, f"the name {name!r} stands for the {part} of the input {stem}; choose another one")
        if name in _ATTRIBUTES:
            raise error_of(self, f"the name {name!r} is an attribute of Metal; choose another one")
        if name in _DEFINED:
            raise error_of(self, f"the name {name!r} is defined in each kernel; choose another one")
        if re.match("_[_A-Z]", name) or name in RESERVED.difference(_HARMLESS, HELPERS):
            raise error_of(self, f"the name {name!r} is reserved in the Metal Shading Language; choose another one")

    def _check_calls(self) -> None:
        """No parameter hides a function of Metal's library that the source calls."""
        code = re.sub(r"//[^\n]*|/\*.*?\*/", " ", self.source, flags=re.DOTALL)
        for name in (GLOBAL_RESERVED - RESERVED).intersection(self.parameters):
            if re.search(rf"(?<![\w:.>]){name}\s*\(", code):
                raise error_of(
                    self,
                    f"the source calls {name}(), which its parameter {name!r} hides; rename the parameter, or write "
                    f"metal::{name}()",
                )

    def type(self, dtype: DType, what: str) -> str:
        """What Metal calls a dtype. Raises DTypeError."""
        if dtype not in _TYPES:
            message = f"{self.who}: {what} is {dtype.name}, which Metal does not have; convert it, to float32"
            raise DTypeError(at_user_line(message))
        return _TYPES[dtype]

    def check_atomic(self, dtype: DType, name: str) -> None:
        """Raise DTypeError where an output cannot be atomic."""
        if self.atomic and dtype not in _ATOMIC:
            known = ", ".join(d.name for d in _ATOMIC)
            message = f"{self.who}: output {name} is {dtype.name}; Metal has atomics of {known}"
            raise DTypeError(at_user_line(message))

    # The text

    def text(self, operands: Sequence[Aval], results: Sequence[Aval], template: Template = ()) -> KernelText:
        """The kernel for operands and results of these types.

        Raises:
            AttributeValueError: an impossible template, or more buffers than Metal has. DTypeError: a dtype that it
            does not have.
        """
        declarations: list[str] = []
        buffers: list[KernelBuffer] = []
        constants: list[Constant] = []

        def declare(declaration: str) -> int:
            index = len(declarations)
            declarations.append(f"{declaration} [[buffer({index})]]")
            return index

        for name, x in zip(self.inputs, operands):
            element = self.type(x.dtype, f"input {name}")
            how = f"const device {element}* {name}" if x.ndim else f"const constant {element}& {name}"
            buffers.append(KernelBuffer(name, element, x.size, "read", declare(how)))
            if f"{name}_shape" in self._words:
                index = declare(f"const constant int* {name}_shape")
                constants.append(Constant(index, "int", x.shape or (1,)))
            if f"{name}_strides" in self._words:
                index = declare(f"const constant long* {name}_strides")
                strides = [int(np.prod(x.shape[axis + 1 :], dtype=np.int64)) for axis in range(x.ndim)]
                constants.append(Constant(index, "long", tuple(strides) or (1,)))
            if f"{name}_ndim" in self._words:
                constants.append(Constant(declare(f"const constant int& {name}_ndim"), "int", (x.ndim,)))
        for name, x in zip(self.outputs, results):
            element = self.type(x.dtype, f"output {name}")
            self.check_atomic(x.dtype, name)
            element = f"atomic<{element}>" if self.atomic else element
            buffers.append(KernelBuffer(name, element, x.size, "read_write", declare(f"device {element}* {name}")))
        if (count := len(declarations)) > METAL.max_buffers:
            raise error_of(self, f"has {count} buffers with shapes and strides; Metal has {METAL.max_buffers}")
        declarations += [f"{t} {a} [[{a}]]" for a, t in _ATTRIBUTES.items() if a in self._words]
        function = f"custom_kernel_{self.name}"
        text = self._text(function, declarations, self._template(template))
        return KernelText(text, function, tuple(buffers), tuple(constants))

    def _text(self, function: str, declarations: Sequence[str], definitions: Sequence[str]) -> str:
        words = self._words | set(_IDENTIFIER.findall(" ".join((self.header, *declarations, *definitions))))
        parts = [_PRELUDE, *(helper for name, helper in _HELPERS.items() if name in words)]
        if self.header:
            parts.append(self.header.strip("\n") + "\n")
        inside = "".join(f"  {line}\n" for line in definitions)
        listed = ",\n    ".join(declarations)
        parts.append(f"kernel void {function}(\n    {listed}) {{\n{inside}{self.source.strip(chr(10))}\n}}\n")
        return "\n".join(parts)

    def _template(self, template: Template) -> list[str]:
        """Definitions of the template's names."""
        lines, names = [], list(self.parameters)
        for name, value in template:
            self._check_name(name, names)
            names.append(name)
            if isinstance(value, DType):
                lines.append(f"typedef {self.type(value, f'the template parameter {name}')} {name};")
            elif isinstance(value, bool):
                lines.append(f"constexpr bool {name} = {str(value).lower()};")
            else:
                type_ = "int" if -(2**31) <= value < 2**31 else "long"
                lines.append(f"constexpr {type_} {name} = {value};")
        return lines


def error_of(source: KernelSource, message: str) -> AttributeValueError:
    """An error about a kernel."""
    return AttributeValueError(at_user_line(f"{source.who}: {message}"))


def parameters(
    source: KernelSource, grid: Size, threads: Size, template: Template = (), initial: Any = None
) -> dict[str, Any]:
    """The parameters of a call.

    Args:
        grid: threads along x, y, z.
        threads: in a threadgroup.
        initial: what results hold before the launch; None: anything.
    """
    found = {
        "name": source.name, "inputs": tuple(source.inputs), "outputs": tuple(source.outputs), "source": source.source,
        "header": source.header, "atomic": source.atomic, "template": tuple(template), "grid": grid, "threads": threads,
    }  # fmt: skip
    return found if initial is None else {**found, "initial": initial}


def identifier(name: Any, who: str, what: str) -> str:
    """`name`, if it is an identifier. Raises AttributeValueError."""
    if not isinstance(name, str) or not _IDENTIFIER.fullmatch(name):
        raise AttributeValueError(at_user_line(f"{who}: {what} must be an identifier, is {name!r}"))
    return name
