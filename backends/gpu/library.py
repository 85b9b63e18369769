"""What a library of the device does between the kernels of a text: steps of a manifest, as plain data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Protocol

from smelt.ir import dtypes, mlir
from smelt.ir.aval import Aval
from smelt.ir.dialect import context


@dataclass(frozen=True)
class Matrix:
    """Elements of a kernel's buffer as a batch of matrices.

    Attributes:
        buffer: which of the kernel's.
        dtype: of the elements: float32, ...
        offset: of the first element, in elements.
        strides: how many elements further neighbours lie: in the batch, down, across.
    """

    buffer: int
    dtype: str
    offset: int
    strides: tuple[int, int, int]

    @classmethod
    def read(cls, found: Mapping[str, Any]) -> Matrix:
        """From plain data."""
        batch, down, across = found["strides"]
        return cls(found["buffer"], found["dtype"], found["offset"], (batch, down, across))


@dataclass(frozen=True)
class MatrixProduct:
    """A product that the device's library makes, in place of a kernel of the text.

    ``out[b, i, j] = activation(alpha * sum(lhs[b, i, k] * rhs[b, k, j] for k) + addend[b, i, j] + bias[j])``, where the
    bias runs along that axis of out along which neighbours lie next to each other.

    Attributes:
        batch, rows, columns, depth: the extents of b, i, j, k.
        activation: "", "relu", or "gelu", which is ``x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))``.
        tf32: whether operands of float32 may be rounded to 11 significant bits.
    """

    kind: ClassVar = "product"

    batch: int
    rows: int
    columns: int
    depth: int
    lhs: Matrix
    rhs: Matrix
    out: Matrix
    addend: Matrix | None = None
    bias: Matrix | None = None
    alpha: float = 1.0
    activation: str = ""
    tf32: bool = False

    @property
    def written(self) -> frozenset[int]:
        """The buffers that it writes."""
        return frozenset((self.out.buffer,))

    @classmethod
    def read(cls, found: Mapping[str, Any]) -> MatrixProduct:
        """From plain data."""
        return cls(**_with(Matrix, found))


@dataclass(frozen=True)
class Tensor:
    """Elements of a kernel's buffer as an array whose first two axes are those of a batch and of channels, or heads.

    Attributes:
        buffer, dtype, offset: as of a `Matrix`.
        shape: its extents.
        strides: how many elements further neighbours along each axis lie.
    """

    buffer: int
    dtype: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @classmethod
    def read(cls, found: Mapping[str, Any]) -> Tensor:
        """From plain data."""
        return cls(**{**found, "shape": tuple(found["shape"]), "strides": tuple(found["strides"])})


@dataclass(frozen=True)
class Convolution:
    """A convolution, or one of its two gradients, that the device's library makes.

    ``result[n, k, p] = sum(image[n, c, p * stride + t * dilation - low] * filter[k, c, t] for c, t)``, where the image
    counts as zero outside of its extent; as a linear function of the image, or of the filter, its transpose. Channels
    of the filter are those of one of ``image.shape[1] // filter.shape[1]`` equal groups.

    Attributes:
        out: which of the three is written: "result", "image" (from result and filter) or "filter".
        strides, low, high, dilation: of each spatial axis.
        tf32: whether operands of float32 may be rounded to 11 significant bits.
        workspace: bytes of memory that it may use besides: the buffer behind the three others.
    """

    kind: ClassVar = "convolution"

    image: Tensor
    filter: Tensor
    result: Tensor
    out: str
    strides: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    dilation: tuple[int, ...]
    tf32: bool = False
    workspace: int = 0

    @property
    def written(self) -> frozenset[int]:
        """The buffers that it writes."""
        tensors = {"image": self.image, "filter": self.filter, "result": self.result}
        return frozenset((tensors[self.out].buffer, 3))

    @classmethod
    def read(cls, found: Mapping[str, Any]) -> Convolution:
        """From plain data."""
        parts = _with(Tensor, found)
        parts.update({k: tuple(v) for k, v in found.items() if isinstance(v, (list, tuple))})
        return cls(**parts)


@dataclass(frozen=True)
class ScaledAttention:
    """Attention that the device's library makes, in place of a kernel of the text.

    ``out[b, h, i] = sum(w[b, h, i, j] * values[b, g, j] for j)`` with the softmax ``w`` over j of
    ``scale * queries[b, h, i] @ keys[b, g, j] + bias[b, h, i, j]``, where a head g of keys and values is that of
    ``queries.shape[1] // keys.shape[1]`` heads h.

    Attributes:
        queries, keys, values, out: arrays with the axes batch, heads, positions, features, all of one dtype.
        scale: what scores are multiplied by.
        causal: whether the query at i sees the keys up to i alone.
        bias: an array of batch, heads, queries and keys, each of which may be one for all. Its numbers are -1e30 or
            more: it may hide all keys from a query alike, which sees them all then.
        logarithms: where those of the sums of exponentials of each row's scaled scores are written, too, in float32,
            with one feature.
        workspace: bytes of memory that it may use besides: the buffer behind the others.
    """

    kind: ClassVar = "attention"

    queries: Tensor
    keys: Tensor
    values: Tensor
    out: Tensor
    scale: float = 1.0
    causal: bool = False
    bias: Tensor | None = None
    logarithms: Tensor | None = None
    workspace: int = field(default=0, compare=False)  # one plan, whose engine is compiled once

    @property
    def written(self) -> frozenset[int]:
        """The buffers that it writes."""
        last = max(x.buffer for x in (self.out, self.logarithms) if x is not None)
        return frozenset(range(self.out.buffer, last + 2))

    @classmethod
    def read(cls, found: Mapping[str, Any]) -> ScaledAttention:
        """From plain data."""
        return cls(**_with(Tensor, found))


@dataclass(frozen=True)
class AttentionGradient:
    """The gradient of a `ScaledAttention` that the device's library makes.

    Attributes:
        queries, keys, values, out: of the attention.
        cotangent: that of its result.
        logarithms: of the sums of exponentials of each row's scaled scores, in float32, with one feature.
        sums: memory for as many numbers.
        queries_cotangent, keys_cotangent, values_cotangent: what is written.
        scale, causal: of the attention.
        workspace: bytes of memory that it may use besides: the buffer behind the others.
    """

    kind: ClassVar = "attention_gradient"

    queries: Tensor
    keys: Tensor
    values: Tensor
    out: Tensor
    cotangent: Tensor
    logarithms: Tensor
    sums: Tensor
    queries_cotangent: Tensor
    keys_cotangent: Tensor
    values_cotangent: Tensor
    scale: float = 1.0
    causal: bool = False
    workspace: int = field(default=0, compare=False)

    @property
    def written(self) -> frozenset[int]:
        """The buffers that it writes."""
        results = (self.sums, self.queries_cotangent, self.keys_cotangent, self.values_cotangent)
        return frozenset((*(x.buffer for x in results), self.values_cotangent.buffer + 1))

    @classmethod
    def read(cls, found: Mapping[str, Any]) -> AttentionGradient:
        """From plain data."""
        return cls(**_with(Tensor, found))


def _with(kind: type[Matrix | Tensor], found: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a step, some of which are of the type `kind`."""
    return {k: kind.read(v) if isinstance(v, Mapping) else v for k, v in found.items()}


@dataclass(frozen=True)
class Array:
    """The elements of a kernel's buffer, row by row."""

    dtype: str
    shape: tuple[int, ...]

    @classmethod
    def of(cls, aval: Aval) -> Array:
        """That of a value's type."""
        return cls(aval.dtype.name, aval.shape)

    @property
    def aval(self) -> Aval:
        """The type of a value that lies so."""
        return Aval(self.shape, dtypes.by_name(self.dtype))

    @classmethod
    def read(cls, found: Mapping[str, Any]) -> Array:
        """From plain data."""
        return cls(found["dtype"], tuple(found["shape"]))


@dataclass(frozen=True)
class LibraryCall:
    """An op on whole arrays that the device's library computes: a Fourier transform, a factorization.

    The kernel's buffers are the op's operands, what the library writes, what `smelt.backends.gpu.schedules.calls` has
    laid out for it, and its workspace. All but the operands may be written to.

    Attributes:
        op, attributes: the op.
        operands: those of the op.
        results: what the library writes: the op's results, or what these are made of.
        laid: what is laid out.
        laid_of: of which operand, if it takes the place of one. What does not comes last, and may say which matrices
            the library is not to be trusted with.
        columns: results that the library writes column by column: their last two axes change places.
        line: where the user wrote it, for the end of a message.
    """

    kind: ClassVar = "call"

    op: str
    attributes: tuple[tuple[str, Any], ...]
    operands: tuple[Array, ...]
    results: tuple[Array, ...]
    laid: tuple[Array, ...] = ()
    laid_of: tuple[int | None, ...] = ()
    columns: tuple[int, ...] = ()
    line: str = field(default="", compare=False)

    @property
    def written(self) -> frozenset[int]:
        """The buffers that it writes."""
        count = len(self.operands)
        return frozenset(range(count, count + len(self.results) + len(self.laid) + 1))

    @classmethod
    def read(cls, found: Mapping[str, Any]) -> LibraryCall:
        """From plain data."""
        attributes = tuple((name, value) for name, value in found["attributes"])
        operands, results, laid = (tuple(map(Array.read, found[name])) for name in ("operands", "results", "laid"))
        laid_of, columns = tuple(found["laid_of"]), tuple(found["columns"])
        return cls(found["op"], attributes, operands, results, laid, laid_of, columns, found["line"])


@dataclass(frozen=True)
class Collective:
    """What the processes of a group do together, each with the first buffer of its own step.

    Attributes:
        how: "reduce" (the same result in all), "gather" (the arrays of all, one behind the other), "scatter" (of what
            "reduce" gives, the part of each), "send" or "recv".
        operation: of those that reduce: "sum", "max" or "min".
        dtype: of the elements: float32, ...
        count: elements that a process gives; of "scatter", and "recv", those that it gets.
        group: the number of the group in this process.
        out: the buffer that is written.
        process: of messages, whom with.
        order: of messages, which of those with this process: each order is one of its own.
    """

    kind: ClassVar = "collective"

    how: str
    operation: str
    dtype: str
    count: int
    group: int
    out: int
    process: int = -1
    order: int = 0

    @property
    def written(self) -> frozenset[int]:
        """The buffers that it writes."""
        return frozenset((self.out,))

    @classmethod
    def read(cls, found: Mapping[str, Any]) -> Collective:
        """From plain data."""
        return cls(**found)


#: What a library does.
LibraryStep = MatrixProduct | Convolution | ScaledAttention | AttentionGradient | LibraryCall | Collective
_KINDS: dict[str, type[LibraryStep]] = {
    found.kind: found
    for found in (MatrixProduct, Convolution, ScaledAttention, AttentionGradient, LibraryCall, Collective)
}


class DeviceLibrary(Protocol):
    """What computes in place of kernels where a program will run."""

    def takes(self, step: LibraryStep) -> bool:
        """Whether it can do a step, with all that follows in it. Buffers lie at multiples of 16 bytes."""
        ...

    def workspace(self, step: LibraryStep) -> int:
        """Bytes of memory that a step which it takes uses besides."""
        ...


def step_to(step: LibraryStep) -> dict[str, Any]:
    """A step as plain data."""
    return {"kind": step.kind, **asdict(step)}


def step_from(found: Mapping[str, Any]) -> LibraryStep:
    """The inverse of `step_to`."""
    return _KINDS[found["kind"]].read({k: v for k, v in found.items() if k != "kind"})


def mark_step(function: Any, step: LibraryStep) -> None:
    """Let a ``gpu.func`` without a body stand for a step."""
    function.attributes["smelt.library"] = mlir.ir.StringAttr.get(json.dumps(step_to(step)), context())


def read_step(function: Any) -> LibraryStep | None:
    """The step that a ``gpu.func`` stands for; None for a kernel."""
    attributes = function.attributes
    if "smelt.library" not in attributes:
        return None
    return step_from(json.loads(mlir.ir.StringAttr(attributes["smelt.library"]).value))
