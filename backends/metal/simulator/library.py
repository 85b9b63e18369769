"""Runs Metal texts on the host's CPU: the same text that a GPU would get, thread by thread.

    >>> library = Library(text)                                              # doctest: +SKIP
    >>> library.launch("add", {0: (address, size)}, (4, 1, 1), (256, 1, 1))  # doctest: +SKIP

What it catches beyond wrong values: accesses outside of buffers and threadgroup memory, misaligned vectors
(`Options.guard`), memory of a threadgroup that is read before it is written (`Options.poison`), barriers that
not all threads reach, and, by comparing orders (`Options.order`), barriers that are missing.
"""

from __future__ import annotations

import ctypes
import os
import re
import weakref
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from smelt.backends.gpu.devices import METAL
from smelt.backends.gpu.manifest import Size
from smelt.backends.metal.simulator import compiler
from smelt.backends.metal.simulator.cplusplus import Constants
from smelt.backends.metal.simulator.source import Entry, Parameter, SimulatorError, Source, known_headers, parse
from smelt.ir import locks, profiling
from smelt.ir.errors import AttributeValueError
from smelt.ir.settings import settings

__all__ = ["Entry", "Library", "Options", "Parameter", "SimulatorError"]

_ORDERS = {"forward": 0, "reverse": 1, "shuffled": 2}
_KEPT = 256


@dataclass(frozen=True)
class Options:
    """How threads are run.

    Attributes:
        order: of threadgroups, simdgroups and lanes: "forward", "reverse" or "shuffled". A correct kernel's
            results do not depend on it.
        seed: of the shuffle.
        poison: threadgroup memory holds NaN before a threadgroup writes it.
        guard: buffers end at memory that nobody may touch, and misaligned accesses are errors.
    """

    order: str = "forward"
    seed: int = 0
    poison: bool = False
    guard: bool = False

    def __post_init__(self) -> None:
        if self.order not in _ORDERS:
            raise AttributeValueError(f"order is one of {', '.join(_ORDERS)}, not {self.order!r}")


class _Launch(ctypes.Structure):
    _fields_ = [
        ("entry", ctypes.c_void_p),
        ("fibers", ctypes.c_uint32),
        ("order", ctypes.c_uint32),
        ("seed", ctypes.c_uint32),
        ("poison", ctypes.c_uint32),
        ("guard", ctypes.c_uint32),
        ("writable", ctypes.c_uint32),
        ("threads", ctypes.c_uint32 * 3),
        ("threadgroups", ctypes.c_uint32 * 3),
        ("grid", ctypes.c_uint32 * 3),
        ("buffers", ctypes.c_void_p * METAL.max_buffers),
        ("bytes", ctypes.c_uint64 * METAL.max_buffers),
        ("threadgroup_bytes", ctypes.c_uint64 * METAL.max_buffers),
        ("message", ctypes.c_char * 512),
    ]


def _vector(name: str, *, add: str = "") -> str:
    return f"smelt::Position{{c.{name}[0]{add}, c.{name}[1], c.{name}[2]}}"


#: What a position attribute is, where `c` is the context of the first thread of a row, and `n` the thread in it.
_POSITIONS = {
    "thread_position_in_grid": _vector("position_in_grid", add=" + n"),
    "threads_per_grid": _vector("grid"),
    "thread_position_in_threadgroup": _vector("position_in_threadgroup", add=" + n"),
    "threads_per_threadgroup": _vector("threads"),
    "dispatch_threads_per_threadgroup": _vector("full_threads"),
    "threadgroup_position_in_grid": _vector("threadgroup_position"),
    "threadgroups_per_grid": _vector("threadgroups"),
    "grid_origin": "smelt::Position{0, 0, 0}",
    "thread_index_in_threadgroup": "c.index + n",
    "thread_index_in_simdgroup": "(c.index + n) % 32u",
    "simdgroup_index_in_threadgroup": "(c.index + n) / 32u",
    "simdgroups_per_threadgroup": "c.simdgroups",
    "dispatch_quadgroups_per_threadgroup": "(c.full_threads[0] * c.full_threads[1] * c.full_threads[2] + 3u) / 4u",
    "dispatch_simdgroups_per_threadgroup": "(c.full_threads[0] * c.full_threads[1] * c.full_threads[2] + 31u) / 32u",
    "threads_per_simdgroup": "32u",
    "thread_execution_width": "32u",
    "thread_index_in_quadgroup": "(c.index + n) % 4u",
    "quadgroup_index_in_threadgroup": "(c.index + n) / 4u",
    "quadgroups_per_threadgroup": "(c.threads[0] * c.threads[1] * c.threads[2] + 3u) / 4u",
}


def _shared(number: int, type_: str, name: str, dimensions: str) -> str:
    """A variable of the threadgroup: one memory for all of its fibers."""
    own = f"smelt_type_{name}"
    type_ = re.sub(r"alignas\s*\([^()]*\)\s*", "", type_)  # all lie at multiples of 64
    return (
        f"typedef {type_} {own}{dimensions}; {own}& {name} = "
        f"*static_cast<{own}*>(smelt_runtime->threadgroup_variable({number}u, sizeof({own})));"
    )


def _argument(parameter: Parameter) -> str:
    if parameter.kind == "position":
        return _POSITIONS[parameter.attribute]
    how = "Reference" if parameter.reference else "Pointer"
    if parameter.kind == "buffer":
        return f"smelt::{how}{{c.buffers[{parameter.index}]}}"
    return f"smelt::{how}{{smelt_runtime->threadgroup_argument({parameter.index}u)}}"


def _wrapper(number: int, entry: Entry) -> str:
    call = f"{entry.function}({', '.join(_argument(p) for p in entry.parameters)});"
    head = f'extern "C" void smelt_entry_{number}(const smelt::Context* context'
    if entry.synchronizes:
        return f"{head}) {{ const smelt::Context& c = *context; const unsigned n = 0; (void)c; (void)n; {call} }}\n"
    return (
        f"{head}, unsigned count) {{ const smelt::Context c = *context; (void)c;\n"
        f"  for (unsigned n = 0; n < count; n++) {{ {call} }} }}\n"
    )


def host_source(text: str, constants: Constants | None = None) -> tuple[str, Source]:
    """C++ with the text, and a function around each kernel; and what is in the text."""
    text = known_headers(text)
    if re.search(r"^\s*#\s*(?!include\s*<metal_|pragma\b)\w+", text, re.M):
        text = compiler.preprocess(text)
    source = parse(text, _shared, constants)
    # The user's lines keep their numbers.
    out = ["#include <metal_stdlib>\n", '#line 1 "kernel.metal"\n', source.text, '\n#line 1 "entries"\n']
    out.append("const smelt::Runtime* smelt_runtime;\n")
    out += [_wrapper(number, entry) for number, entry in enumerate(source.entries.values())]
    return "".join(out), source


def _with_lines(message: str, text: str) -> str:
    """A compiler's message, with the line of the text behind each error: nobody has the file that it names."""
    lines = text.split("\n")

    def line(found: re.Match[str]) -> str:
        number = int(found.group(1))
        return found.group() + (f"\n    {lines[number - 1].strip()}" if 0 < number <= len(lines) else "")

    return re.sub(r"^kernel\.metal:(\d+):\d+: error: .*$", line, message, flags=re.MULTILINE)


def _close(handle: int) -> None:
    import _ctypes

    if hasattr(_ctypes, "dlclose"):
        _ctypes.dlclose(handle)


class _Code:
    """A loaded shared object."""

    def __init__(self, text: str, guard: bool, constants: tuple[tuple[int | str, Any], ...] = ()) -> None:
        source, found = host_source(text, dict(constants))
        self.entries = MappingProxyType(found.entries)
        try:
            path = compiler.shared_object(source, guard)
        except SimulatorError as error:
            raise SimulatorError(_with_lines(str(error), found.text)) from None
        self.nbytes = os.stat(path).st_size
        library = ctypes.CDLL(str(path))
        self.library = library
        table = ctypes.addressof(ctypes.c_char.in_dll(_runtime(), "smelt_functions"))
        ctypes.c_void_p.in_dll(library, "smelt_runtime").value = table
        self.addresses = {
            name: ctypes.cast(getattr(library, f"smelt_entry_{number}"), ctypes.c_void_p).value
            for number, name in enumerate(found.entries)
        }
        weakref.finalize(self, _close, library._handle).atexit = False


_lock = locks.lock()
_loaded_runtime: ctypes.CDLL | None = None
_codes: OrderedDict[tuple[str, bool, tuple[tuple[int | str, Any], ...]], _Code] = OrderedDict()


def _runtime() -> ctypes.CDLL:
    global _loaded_runtime
    with _lock:
        if _loaded_runtime is None:
            library = ctypes.CDLL(str(compiler.runtime()))
            library.smelt_launch.argtypes = [ctypes.POINTER(_Launch)]
            library.smelt_launch.restype = ctypes.c_int
            _loaded_runtime = library
        return _loaded_runtime


def _code(text: str, guard: bool, constants: tuple[tuple[int | str, Any], ...]) -> _Code:
    key = (text, guard, constants)
    with _lock:
        found = _codes.get(key)
        if found is not None:
            _codes.move_to_end(key)
            return found
    made = _Code(*key)
    with _lock:
        _codes[key] = made
        _drop_oldest()
    return made


def _drop_oldest() -> None:
    excess = sum(code.nbytes for code in _codes.values()) - settings.cache_bytes
    while len(_codes) > 1 and (len(_codes) > _KEPT or excess > 0):
        excess -= _codes.popitem(last=False)[1].nbytes


def _set_sizes(launch: _Launch, entry: str, threadgroups: Size, threads: Size, grid: Size | None) -> None:
    """Write the sizes of a launch. Raises SimulatorError: it is empty, or too large."""
    if grid is not None:
        threadgroups = (-(-grid[0] // threads[0]), -(-grid[1] // threads[1]), -(-grid[2] // threads[2]))
    else:
        grid = (threadgroups[0] * threads[0], threadgroups[1] * threads[1], threadgroups[2] * threads[2])
    if min(*threads, *threadgroups, *grid) < 1:
        raise SimulatorError(f"kernel {entry!r}: an empty launch: {threadgroups} threadgroups of {threads} threads")
    if threads[0] * threads[1] * threads[2] > (most := METAL.max_threads):
        raise SimulatorError(f"kernel {entry!r}: {threads} are more than {most} threads in a threadgroup")
    if max(grid) > 0xFFFFFFFF:
        raise SimulatorError(f"kernel {entry!r}: a grid of {grid} threads needs more than 32 bits")
    launch.threads[:] = threads
    launch.threadgroups[:] = threadgroups
    launch.grid[:] = grid


def _bind(
    launch: _Launch, found: Entry, buffers: Mapping[int, tuple[int, int]], threadgroup_lengths: Mapping[int, int]
) -> None:  # fmt: skip
    """Write the memory that a launch works on. Raises SimulatorError: a parameter of the kernel has none."""
    for parameter in found.parameters:
        if parameter.kind == "threadgroup" and parameter.index not in threadgroup_lengths:
            what = f"{parameter.name} [[threadgroup({parameter.index})]]"
            raise SimulatorError(f"kernel {found.name!r}: no length was given for {what}")
        if parameter.kind != "buffer":
            continue
        bound = buffers.get(parameter.index)
        if bound is None and parameter.optional:
            continue
        if bound is None:
            raise SimulatorError(f"kernel {found.name!r}: {parameter.name} [[buffer({parameter.index})]] is not bound")
        launch.buffers[parameter.index], launch.bytes[parameter.index] = bound
        if not parameter.const:
            launch.writable |= 1 << parameter.index
    for index, length in threadgroup_lengths.items():
        launch.threadgroup_bytes[index] = length


class Library:
    """A Metal text, compiled for the host.

    Args:
        text: Metal Shading Language.
        options: how its threads are run.
        constants: values of function constants, by number or name; the others are not defined.

    Raises:
        SimulatorError: the text does not compile; the message is the compiler's.
        AttributeValueError: a value for a constant that the text does not have.
    """

    def __init__(self, text: str, options: Options | None = None, constants: Constants | None = None) -> None:
        self.text = text
        self.options = options or Options()
        self._code = _code(text, self.options.guard, tuple((constants or {}).items()))

    @property
    def entries(self) -> Mapping[str, Entry]:
        """The kernels of the text by name."""
        return self._code.entries

    def launch(
        self,
        entry: str,
        buffers: Mapping[int, tuple[int, int]],
        threadgroups: Size,
        threads: Size,
        *,
        threadgroup_lengths: Mapping[int, int] | None = None,
        grid: Size | None = None,
        line: str = "",
    ) -> None:
        """Runs a kernel, and returns when it has finished.

        Args:
            entry: the kernel's name.
            buffers: address and length in bytes by buffer index.
            threadgroups: how many, along x, y, z.
            threads: in each threadgroup.
            threadgroup_lengths: bytes by index of ``[[threadgroup(index)]]``.
            grid: threads in all, if the last threadgroups are not full; then `threadgroups` does not count.
            line: the user's, for profiles.

        Raises:
            SimulatorError: the launch does not fit the kernel, or the kernel did what a GPU would not survive;
                the message names the kernel and the place.
        """
        found = self.entries.get(entry)
        if found is None:
            known = ", ".join(self.entries) or "none"
            raise SimulatorError(f"there is no kernel {entry!r} in the Metal text; there are: {known}")
        launch = _Launch()
        launch.entry = self._code.addresses[entry]
        launch.fibers = found.synchronizes
        options = self.options
        launch.order = _ORDERS[options.order]
        launch.seed = options.seed & 0xFFFFFFFF
        launch.poison = options.poison
        launch.guard = options.guard
        _set_sizes(launch, entry, threadgroups, threads, grid)
        _bind(launch, found, buffers, threadgroup_lengths or {})
        run, profiler = _runtime().smelt_launch, profiling.active
        at = ctypes.byref(launch)
        if run(at) if profiler is None else profiler.timed(entry, "kernel", line, run, at):
            message = launch.message.decode(errors="replace")
            for parameter in found.buffers():
                message = message.replace(f"buffer({parameter.index})", f"buffer({parameter.index}) {parameter.name!r}")
            raise SimulatorError(f"kernel {entry!r}: {message}")
