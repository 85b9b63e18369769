"""The kind of ops that a library computes on the host, such as LAPACK or an FFT."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from . import dtypes, host_memory, host_threads, numpy_blas
from .aval import Aval, broadcast_shapes
from .dtypes import DType
from .errors import AttributeValueError, DTypeError, LibraryError, OutOfMemoryError, RuleError, ShapeError, SmeltError
from .op import Batched, Dims, Op, Values, require

if TYPE_CHECKING:
    from .builder import Builder
    from .lapack import OnAddresses

#: Matrices of up to so many rows and columns, of which each is the work of one thread.
SMALL_MATRIX = 64
#: More batch axes than that are one while a library computes: iterators of NumPy and SciPy end at 32 axes.
MOST_BATCH_AXES = 16


class Library(Op):
    """An op that a library computes on the host, such as LAPACK or an FFT; no fusion looks into it.

    It works on the last axes of its operands, their *core* axes, which `core` names as NumPy's
    gufuncs do: ``"(m,n)->(m,k),(k,n)"``. All axes before them are batch axes, which broadcast. So
    `infer`, `batch` and the number of results are inherited. Subclasses state, in this order:

    - ``accepts``: dtypes; all operands have the same one.
    - ``extents(dims)``: extents of axes that only results have (``k`` above).
    - ``host(*arrays)``: what the library computes, for all batch axes at once.
    - ``reference(*arrays)``, which shares no code with the library, or `properties` where a result is
      only determined up to signs or order.
    - ``sample(rng, *avals)``: operands for which the op is defined, where not all are.
    - a derivative, as every op.

    `host` and `reference` raise LibraryError with the bare rule ("the matrix is singular"), or let the
    library's exception pass: the error that the user sees names the op, its operands and the user's line too.
    """

    kind = "library"
    core: ClassVar[str]
    core_operands: ClassVar[tuple[tuple[str, ...], ...]] = ()
    core_results: ClassVar[tuple[tuple[str, ...], ...]] = ()
    accepts: ClassVar[Sequence[DType]] = (dtypes.float32, dtypes.float64)
    flops = 30.0
    #: Seconds for each element of the operands, about, where threads may share a batch; 0: they would wait for each
    #: other, as in OpenBLAS's own factorizations, which take a lock for their memory.
    shared_seconds: ClassVar[float] = 0.0
    #: Whether there is `host_into(out, *arrays)`, which may leave its only result in a contiguous `out`: threads then
    #: copy no parts.
    takes_out: ClassVar[bool] = False

    @classmethod
    def complete(cls) -> None:
        if "core" not in cls.__dict__:
            return
        cls.core_operands, cls.core_results = _parse_core(cls.core)
        cls.num_results = len(cls.core_results)
        if len(cls.core_operands) != len(cls.operand_names):
            operands = ", ".join(cls.operand_names)
            raise AttributeValueError(f"{cls.__name__} has the operands ({operands}), its core is {cls.core!r}")

    def extents(self, dims: dict[str, int], *_: Any, **attrs: Any) -> dict[str, int]:
        """Extents of the core axes that no operand has, from those that operands have."""
        return {}

    def result_dtypes(self, operand: DType, *_: Any, **attrs: Any) -> Sequence[DType]:
        """The dtype of each result; that of the operands, if nothing else is said."""
        return [operand] * self.num_results

    def host(self, *arrays: Any, **attrs: Any) -> np.ndarray | tuple[np.ndarray, ...]:
        """The result, or a tuple of results, by the library. Operands have equally many axes in front."""
        raise RuleError(f"smelt.{self.name} does not state the rule host")

    def host_into(self, out: np.ndarray | None, /, *arrays: Any, **attrs: Any) -> np.ndarray:
        """The result of `host`, in `out` or elsewhere; see `takes_out`."""
        raise RuleError(f"smelt.{self.name} does not state the rule host_into")

    def host_of_views(self, *arrays: Any, **attrs: Any) -> np.ndarray | tuple[np.ndarray, ...] | None:
        """The result of `host` for operands that do not lie row by row, without copies of these; None: copy them."""
        return None

    def on_addresses(self, *operands: Any, **attrs: Any) -> OnAddresses | None:
        """What computes `host` for operands of these types on memory in which they lie row by row, results too, which
        may lie where operands do. What it does not compute, errors among that, `compute` does. None: there is no such
        way."""
        return None

    def reference(self, *operands: Any, **attrs: Any) -> np.ndarray | tuple[np.ndarray, ...]:
        return self.host(*operands, **attrs)

    def properties(
        self, operands: Sequence[np.ndarray], results: Sequence[np.ndarray], *_: Any, **attrs: Any
    ) -> Iterable[tuple[str, np.ndarray, np.ndarray]]:
        """What holds for every right result: pairs of arrays that are equal but for rounding, and what that means."""
        return ()

    def sample(self, rng: np.random.Generator, *avals: Any, **attrs: Any) -> Sequence[np.ndarray]:
        """Random operands of these types for which the op is defined and has a derivative."""
        found = []
        for aval in avals:
            x = rng.uniform(-1, 1, aval.shape)
            x = x + 1j * rng.uniform(-1, 1, aval.shape) if aval.dtype.is_complex else x
            found.append(x.astype(aval.dtype.numpy))
        return found

    def infer(self, *operands: Any, **attrs: Any) -> Aval | tuple[Aval, ...]:
        dtype, dims, leads = operands[0].dtype, dict[str, int](), []
        for name, x, core in zip(self.operand_names, operands, self.core_operands):
            if x.dtype not in self.accepts:
                listed = ", ".join(d.name for d in self.accepts)
                wanted = f"{name} is {x.dtype.name}, must be one of {listed}"
                raise DTypeError(f"{wanted}; convert it first, e.g. with .astype(smelt.{self.accepts[0].name})")
            require(x.dtype is dtype, "operands must have the same dtype", DTypeError)
            axes = f"({', '.join(core)})"
            require(x.ndim >= len(core), f"{name} has {x.ndim} axes, must have at least {len(core)}: {axes}")
            lead = x.ndim - len(core)
            for label, d in zip(core, x.shape[lead:]):
                known = int(label) if label.isdigit() else dims.setdefault(label, d)
                if known != d:
                    have = "the last axis" if len(core) == 1 else f"the last {len(core)} axes"
                    raise ShapeError(f"{have} of {name} must be {axes}, here {x.shape[lead:]}, with {label} = {known}")
            leads.append(x.shape[:lead])
        dims.update(self.extents(dims, **attrs))
        try:
            batch = broadcast_shapes(*leads)
        except ValueError:
            raise ShapeError(f"batch axes {' and '.join(map(str, leads))} cannot be broadcast together") from None
        kinds = self.result_dtypes(dtype, **attrs)
        shapes = [[int(n) if n.isdigit() else dims[n] for n in core] for core in self.core_results]
        found = tuple([Aval((*batch, *shape), kind) for shape, kind in zip(shapes, kinds)])
        return found[0] if len(found) == 1 else found

    def batch(self, b: Builder, operands: Values, dims: Dims, *_: Any, **attrs: Any) -> Batched:
        """One more batch axis. An operand without it is broadcast by the library, not copied."""
        ranks = [x.ndim - (dim is not None) - len(core) for x, dim, core in zip(operands, dims, self.core_operands)]
        aligned = []
        for x, dim, rank in zip(operands, dims, ranks):
            if dim is not None:
                x = b.move_axis(x, dim, 0)
                x = b.reshape_to(x, (x.shape[0], *[1] * (max(ranks) - rank), *x.shape[1:]))
            aligned.append(x)
        results = b.emit(self, aligned, attrs)
        return results, [0] * len(results)

    def compute(
        self, arrays: Sequence[np.ndarray], attrs: dict[str, Any], reference: bool = False
    ) -> tuple[np.ndarray, ...]:
        """The results by `host`, or by `reference`. Whatever goes wrong is an error that names op and operands.

        Raises:
            LibraryError: the operands have no such result. OutOfMemoryError: the library had no memory.
        """
        ranks = [x.ndim - len(core) for x, core in zip(arrays, self.core_operands)]
        most = max(ranks)
        aligned = arrays
        if min(ranks) < most:
            aligned = [x.reshape((*[1] * (most - rank), *x.shape)) for x, rank in zip(arrays, ranks)]
        batch: tuple[int, ...] = ()
        if most > MOST_BATCH_AXES:
            batch = broadcast_shapes(*(x.shape[:most] for x in aligned))
            whole = [np.broadcast_to(x, (*batch, *x.shape[most:])) for x in aligned]
            aligned = [x.reshape(math.prod(batch), *x.shape[most:]) for x in whole]
        try:
            found = self.reference(*aligned, **attrs) if reference else self._shared(aligned, attrs)
        except Exception as error:
            kind = OutOfMemoryError if isinstance(error, MemoryError) else LibraryError
            avals = [Aval(x.shape, dtypes.of(x.dtype)) for x in arrays]
            rule = str(error) or type(error).__name__
            cause = None if isinstance(error, SmeltError) else error
            raise kind(self.describe_error(rule, avals, attrs)) from cause
        results = found if isinstance(found, tuple) else (found,)
        return tuple(x.reshape(*batch, *x.shape[1:]) for x in results) if batch else results

    def _shared(self, arrays: Sequence[np.ndarray], attrs: dict[str, Any]) -> np.ndarray | tuple[np.ndarray, ...]:
        """The results by `host`, of parts of the batch by several threads where that pays.

        Large matrices are left to the threads of the library.
        """
        if not all(x.flags.c_contiguous for x in arrays):
            found = self.host_of_views(*arrays, **attrs)
            if found is not None:
                return found
        lead = arrays[0].ndim - len(self.core_operands[0])
        batch = arrays[0].shape[:lead]
        rows, work = math.prod(batch), self.shared_seconds * sum([x.size for x in arrays])
        sizes = [x.shape[-len(core) :] for x, core in zip(arrays, self.core_operands)]

        def is_small() -> bool:
            return all(len(size) < 2 or max(size) <= SMALL_MATRIX for size in sizes)

        if rows < 2 or work < 2 * host_threads.WORTH or not is_small() or any(x.shape[:lead] != batch for x in arrays):
            if all(len(size) == 2 and max(size) <= numpy_blas.FACTORED_ALONE for size in sizes):
                return numpy_blas.alone(lambda: self.host(*arrays, **attrs))
            return self.host(*arrays, **attrs)
        flat = [x.reshape(rows, *x.shape[lead:]) for x in arrays]
        parts: dict[int, tuple[slice, tuple[np.ndarray, ...]]] = {}
        whole: np.ndarray | None = None
        if self.takes_out:
            aval = self.infer(*[Aval(x.shape, dtypes.of(x.dtype)) for x in flat], **attrs)
            assert isinstance(aval, Aval)
            whole = host_memory.empty(aval.shape, aval.dtype.numpy)

        def compute(part: slice) -> None:
            if whole is not None:
                out = whole[part]
                made = self.host_into(out, *[x[part] for x in flat], **attrs)
                if made is not out:
                    out[...] = made
                return
            got = self.host(*[x[part] for x in flat], **attrs)
            parts[part.start] = part, got if isinstance(got, tuple) else (got,)

        try:
            host_threads.share(rows, work, compute)
        except Exception:  # the error says which matrix of all it was
            return self.host(*arrays, **attrs)
        if whole is not None:
            return whole.reshape(*batch, *whole.shape[1:])
        results = [host_memory.empty((rows, *x.shape[1:]), x.dtype) for x in parts[0][1]]
        for part, got in parts.values():
            for x, y in zip(results, got):
                x[part] = y
        return tuple([x.reshape(*batch, *x.shape[1:]) for x in results])


_CORE = re.compile(r"\(\s*((?:\w+\s*(?:,\s*\w+\s*)*)?)\)")


def _parse_core(core: str) -> tuple[tuple[tuple[str, ...], ...], ...]:
    """The core axes of operands and of results: ``"(m,n),(n)->(m)"`` is ((m, n), (n,)) and ((m,),)."""
    sides = core.split("->")
    if len(sides) != 2 or any(_CORE.sub("", side).strip(" ,") for side in sides) or not _CORE.search(sides[1]):
        raise AttributeValueError(f"{core!r} names no core axes, as in '(m,n),(n)->(m)'")
    return tuple(tuple(tuple(re.findall(r"\w+", group)) for group in _CORE.findall(side)) for side in sides)
