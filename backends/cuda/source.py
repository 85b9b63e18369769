"""The Metal text as CUDA: threadgroups become blocks, simdgroups warps, ``threadgroup`` variables shared memory."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from itertools import accumulate

from smelt.backends.gpu.manifest import Size
from smelt.backends.metal.simulator.compiler import preprocess
from smelt.backends.metal.simulator.source import Entry, Parameter, known_headers, parse


def _vector(expression: str) -> str:
    return f"smelt::Position{{{', '.join(expression.replace('$', axis) for axis in 'xyz')}}}"


_THREADS = "(blockDim.x * blockDim.y * blockDim.z)"
_POSITIONS = {
    "thread_position_in_grid": _vector("blockIdx.$ * blockDim.$ + threadIdx.$"),
    "threads_per_grid": _vector("gridDim.$ * blockDim.$"),
    "thread_position_in_threadgroup": _vector("threadIdx.$"),
    "threads_per_threadgroup": _vector("blockDim.$"),
    "dispatch_threads_per_threadgroup": _vector("blockDim.$"),
    "threadgroup_position_in_grid": _vector("blockIdx.$"),
    "threadgroups_per_grid": _vector("gridDim.$"),
    "grid_origin": "smelt::Position{0, 0, 0}",
    "thread_index_in_threadgroup": "smelt::thread_index()",
    "thread_index_in_simdgroup": "(smelt::thread_index() % 32u)",
    "simdgroup_index_in_threadgroup": "(smelt::thread_index() / 32u)",
    "simdgroups_per_threadgroup": f"(({_THREADS} + 31u) / 32u)",
    "dispatch_simdgroups_per_threadgroup": f"(({_THREADS} + 31u) / 32u)",
    "dispatch_quadgroups_per_threadgroup": f"(({_THREADS} + 3u) / 4u)",
    "threads_per_simdgroup": "32u",
    "thread_execution_width": "32u",
    "thread_index_in_quadgroup": "(smelt::thread_index() % 4u)",
    "quadgroup_index_in_threadgroup": "(smelt::thread_index() / 4u)",
    "quadgroups_per_threadgroup": f"(({_THREADS} + 3u) / 4u)",
}


#: Where those of a kernel differ whose last threadgroups along an axis may not be full: `_PLACE` says which it is in.
_DISPATCHED = _POSITIONS | {
    "thread_position_in_grid": _vector("(blockIdx.$ + first.$) * whole.$ + threadIdx.$"),
    "threads_per_grid": "smelt::Position{grid.x, grid.y, grid.z}",
    "dispatch_threads_per_threadgroup": "smelt::Position{whole.x, whole.y, whole.z}",
    "threadgroup_position_in_grid": _vector("blockIdx.$ + first.$"),
    "threadgroups_per_grid": _vector("(grid.$ + whole.$ - 1u) / whole.$"),
    "dispatch_simdgroups_per_threadgroup": "((whole.x * whole.y * whole.z + 31u) / 32u)",
    "dispatch_quadgroups_per_threadgroup": "((whole.x * whole.y * whole.z + 3u) / 4u)",
}
_PLACE = ("uint3 first", "uint3 whole", "uint3 grid")


#: Products of two matrices on the left with one on the right, and of those that follow them along the depth.
_PAIRS = re.compile(
    r"simdgroup_multiply_accumulate\((\w+), (\w+), (\w+), \1\);(\s*)"
    r"simdgroup_multiply_accumulate\((\w+), (\w+), \3, \5\);(\s*)"
    r"simdgroup_multiply_accumulate\(\1, (\w+), (\w+), \1\);(\s*)"
    r"simdgroup_multiply_accumulate\(\5, (\w+), \9, \5\);"
)


#: A matrix that begins as another one, behind a product that has nothing to do with it.
_BEGINS = re.compile(
    r"^( *simdgroup_multiply_accumulate\([^;\n]*;\n)((?: *simdgroup_multiply_accumulate\([^;\n]*;\n)*)"
    r"( *simdgroup_float8x8 (\w+) = (\w+);\n)", re.M,
)  # fmt: skip


def _begun_before(match: re.Match[str]) -> str:
    first, others, begins, name, start = match.groups()
    used = re.search(rf"\b{name}\b|\({start}\b", first + others)
    return match.group() if used else begins + first + others


def _paired(match: re.Match[str]) -> str:
    d0, a0, b, s0, d1, a1, s1, c0, e, s2, c1 = match.groups()
    if d0 == d1 or {d0, d1} & {a0, a1, b, c0, c1, e}:
        return match.group()
    return f"smelt::multiply_accumulate_pairs({d0}, {d1}, {a0}, {a1}, {b}, {c0}, {c1}, {e});{s0}{s1}{s2}"


_USES = (
    r"simdgroup_(?:half|bfloat)8x8 {0};|simdgroup_load\({0},|"
    r"simdgroup_multiply_accumulate\(\w+, \w+, {0},|"
    r"multiply_accumulate_pairs\((?:\w+, ){{4}}{0}, \w+, \w+, \w+\)|multiply_accumulate_pairs\((?:\w+, ){{7}}{0}\)"
)


def _for_tensor_cores(text: str) -> str:
    """Pairs of pairs of products as one call, and matrices that only stand on the right as a type of their own."""
    before = ""
    while before != text:
        before, text = text, _BEGINS.sub(_begun_before, text)
    text = _PAIRS.sub(_paired, text)
    names = {name for match in re.finditer(r"multiply_accumulate_pairs\(([^)]*)\)", text)
             for name in match[1].split(", ")[4::3]}  # fmt: skip
    for name in sorted(names):
        if len(re.findall(rf"\b{name}\b", text)) == len(re.findall(_USES.format(rf"\b{name}\b"), text)):
            text = re.sub(rf"\bsimdgroup_(half|bfloat)8x8 {name};", rf"smelt::Right<\1> {name};", text)
    return text


_WIDE = re.compile(r"struct alignas\((\d+)\) (\w+) \{\s*(\w+) lanes\[(\d+)\];\s*\};")


def _copied_whole(match: re.Match[str]) -> str:
    """A vector of more than four lanes, whose copies the compiler does not take apart into elements."""
    size, name, element, lanes = match.groups()
    copy = f"smelt::copy_whole<{size}>(lanes, from.lanes);"
    return (
        f"struct alignas({size}) {name} {{ {element} lanes[{lanes}]; {name}() = default; "
        f"SMELT_FUNCTION {name}(const {element} (&all)[{lanes}]) {{ smelt::copy_whole<{size}>(lanes, all); }} "
        f"SMELT_FUNCTION {name}(const {name}& from) {{ {copy} }} "
        f"SMELT_FUNCTION {name}& operator=(const {name}& from) {{ {copy} return *this; }} }};\n\n"
    )


_LOAD = re.compile(r"\s*simdgroup_load\((\w+), (\w+(?: \+ .+)?), (\d+)(, ulong2\(0\), true)?\);")
_MATRIX = re.compile(r"\s*(simdgroup_(?:half|bfloat)8x8|smelt::Right<\w+>) (\w+);")
_PURE = re.compile(r"\s*uint \w+ = [^;=]*;")


def _by_fours(text: str) -> str:
    """Four matrices of 16-bit elements that are loaded one after the other from threadgroup memory, at once.

    The text says which variables are `threadgroup` no more; so only arrays that it declares count.
    """
    arrays = set(re.findall(r"__shared__ (?:half|bfloat) (\w+)\[", text))
    out: list[str] = []
    kinds: dict[str, str] = {}
    loads: list[tuple[int, str, str]] = []  # line, name, place
    form: tuple[str, ...] = ()
    for line in text.split("\n"):
        out.append(line)
        if matrix := _MATRIX.fullmatch(line):
            kinds[matrix[2]] = matrix[1]
        elif load := _LOAD.fullmatch(line):
            name, place, *rest = load.groups("")
            own = (kinds.get(name, ""), place.split(" ")[0], *rest)
            if own != form:
                loads, form = [], own
            if own[0] and own[1] in arrays:
                loads.append((len(out) - 1, name, place))
            if len(loads) == 4:
                names = ", ".join(n for _, n, _ in loads)
                places = ", ".join([own[1], *(p.partition(" + ")[2] or "0u" for _, _, p in loads)])
                for at, _, _ in loads:
                    out[at] = ""
                out[-1] = f"simdgroup_load_four({names}, {places}, {own[2]}u, {'true' if own[3] else 'false'});"
                loads = []
        elif not _PURE.fullmatch(line):
            loads = []
    return "\n".join(out)


#: A vector that is stored to threadgroup memory as soon as it has been read, and is read no more.
_MOVED = re.compile(
    r"^ *(\w+) (\w+) = (\*\(device const \1\*\)\([^;=]+\));\n((?: *uint \w+ = [^;=]*;\n)*)"
    r"( *\*\(threadgroup \1\*\)\([^;=]+\) = )\2;\n(?![\s\S]*\b\2\b)", re.M,
)  # fmt: skip
_COPY = re.compile(
    r"^( *)\*\(threadgroup (\w+)\*\)\((\w+)([^;=]*)\) = \*\(device const \2\*\)\(([^;=]+)\);", re.M
)  # fmt: skip
_BARRIER = re.compile(r"\b(?:threadgroup|simdgroup)_barrier\(")
#: What tells where loops are: their heads, up to the brace that opens the body, and all other braces.
_BRACES = re.compile(r"\b(?:for|while) \([^\n]*\{$|\bdo \{$|[{}]", re.M)


def _loops(text: str) -> list[range]:
    """Where the outermost loops of a text stand."""
    found, depth, outermost, start = [], 0, None, 0
    for match in _BRACES.finditer(text):
        if match[0] != "}":
            if match[0] != "{" and outermost is None:
                outermost, start = depth, match.start()
            depth += 1
            continue
        depth -= 1
        if depth == outermost:
            found.append(range(start, match.end()))
            outermost = None
    return found


def _copied_meanwhile(text: str) -> str:
    """Vectors that go from buffers to threadgroup memory as they are, without registers; barriers wait for them.

    Only where a loop brings some: to wait at its barriers costs what else the compiler would move over them.
    """
    arrays = set(re.findall(r"__shared__ \w+ (\w+)\[", text))
    moved = _MOVED.sub(r"\n\4\5\3;\n", text)
    copies = [match for match in _COPY.finditer(moved) if match[3] in arrays]
    loops = _loops(moved) if copies else []
    if not any(match.start() in loop for match in copies for loop in loops):
        return text

    def copy(match: re.Match[str]) -> str:
        indent, kind, array, offset, source = match.groups()
        if array not in arrays:
            return match[0]
        return f"{indent}smelt::copy_meanwhile(({kind}*)({array}{offset}), (const {kind}*)({source}));"

    return _BARRIER.sub(r"smelt::await_copies(), \g<0>", _COPY.sub(copy, moved))


_UNROLLED = re.compile(r"^( *)#pragma unroll\n\1for \([^\n]*\{\n((?:\1 +[^\n]*\n)*)\1\}\n", re.M)
#: Statements of a loop that only loads: indices, vectors, and what goes into a thread's array.
_LOADING = re.compile(
    r"\s*(?:#pragma unroll|for \(.*\{|\}|(?:uint|ulong|bool) \w+ = [^;]*;|\w+ \w+ = \*\(device const .*;|"
    r"\w+\[[^=;]*\] = (?:(?:float|int|uint)\()?\w+\[[^;]*\]\)?;)"
)


def _loads_first(kernel: str) -> str:
    """All loads of an unrolled loop that does nothing else before what is computed from them.

    The compiler moves each load to where its value is used; that may be behind a branch, as divisions have, and then
    the loads wait for each other.
    """
    buffers = "|".join(re.findall(r"device const \w+\* (\w+)", kernel))
    arrays = set(re.findall(r"^ +\w+ (\w+)\[\d+\];", kernel, re.M))

    def closed(match: re.Match[str]) -> str:
        lines = match[2].splitlines()
        targets = set(re.findall(r"^ *(\w+)\[[^=;]*\] =", match[2], re.M))
        loads = re.search(rf"= (?:\w+\()?(?:\*\(device const|\b(?:{buffers})\[)", match[2])
        only = all(_LOADING.fullmatch(line) for line in lines)
        return f"{match[0][:-1]} SMELT_LOADED\n" if loads and targets <= arrays and only else match[0]

    return _UNROLLED.sub(closed, kernel) if buffers else kernel


def _of_aligned(text: str) -> str:
    """What is done with smelt's own texts, whose vectors and matrices are aligned."""
    return _loads_first(_copied_meanwhile(_by_fours(_for_tensor_cores(text))))


def _shared(number: int, type_: str, name: str, dimensions: str) -> str:
    aligned = re.match(r"alignas\s*\([^()]*\)\s*", type_)
    front = aligned.group(0) if aligned else ""
    return f"{front}__shared__ {type_[len(front):]} {name}{dimensions};"


def _argument(parameter: Parameter, positions: Mapping[str, str]) -> str:
    if parameter.kind == "position":
        return positions[parameter.attribute]
    how = "Reference" if parameter.reference else "Pointer"
    if parameter.kind == "buffer":
        return f"smelt::{how}{{buffer_{parameter.index}}}"
    return f"smelt::{how}{{smelt_shared + offset_{parameter.index}}}"


def _wrapper(entry: Entry, size: Size | None, dispatched: bool) -> str:
    parameters = [f"void* buffer_{p.index}" for p in sorted(entry.buffers(), key=lambda p: p.index)]
    shared = sorted((p for p in entry.parameters if p.kind == "threadgroup"), key=lambda p: p.index)
    parameters += [f"unsigned offset_{p.index}" for p in shared]
    if dispatched:
        parameters += _PLACE
    bounds = f"__launch_bounds__({math.prod(size)}) " if size else ""
    sizes = " && ".join(f"blockDim.{a} == {n} && threadIdx.{a} < {n}" for a, n in zip("xyz", size or ()))
    assumed = f"__builtin_assume({sizes}); " if size else ""
    memory = "extern __shared__ __align__(16) char smelt_shared[]; " if shared else ""
    positions = _DISPATCHED if dispatched else _POSITIONS
    arguments = ", ".join(_argument(p, positions) for p in entry.parameters)
    return (
        f'extern "C" __global__ {bounds}void {entry.name}({", ".join(parameters)}) '
        f"{{ {memory}{assumed}smelt_text::{entry.function}({arguments}); }}\n"
    )


#: What a product of matrices takes to compile, in characters of other code, and from which length on a text is worth a
#: compile of its own. (NVRTC on 82 kernels of a train step: 46 ms a product, 24 µs a character, 0.4 s the headers)
_PRODUCT, _UNIT = 2_000, 8_000


def _cost(kernel: str) -> int:
    return len(kernel) + _PRODUCT * kernel.count("multiply_accumulate")


def cuda_sources(text: str, threads: Mapping[str, Size], most: int) -> dict[str, str]:
    """One of smelt's own texts as at most `most` sources, which take about the same time to compile, at once.

    Each has what the kernels share, and some of the kernels.

    Returns:
        By the name of a kernel the source that it is in.
    """
    body, entries = _translated(text, aligned=True)
    front, *kernels = re.split(r"^(?=kernel\b)", body, flags=re.M)
    costs = [_cost(kernel) for kernel in kernels]
    most = min(most, -(-sum(costs) // _UNIT), len(kernels))
    if most < 2 or len(kernels) != len(entries):
        return dict.fromkeys(entries, _source(body, entries.values(), threads, aligned=True))
    lines = accumulate((kernel.count("\n") for kernel in kernels), initial=front.count("\n") + 1)
    every = list(zip(kernels, entries.values(), lines))
    parts: list[list[int]] = [[] for _ in range(most)]
    loads = [0] * most
    for i in sorted(range(len(kernels)), key=costs.__getitem__, reverse=True):
        least = loads.index(min(loads))
        parts[least].append(i)
        loads[least] += costs[i]
    found: dict[str, str] = {}
    for part in parts:
        chosen = [every[i] for i in sorted(part)]
        code = "".join(f'#line {line} "kernel.metal"\n{kernel}' for kernel, _, line in chosen)
        source = _source(front + code, [entry for _, entry, _ in chosen], threads, aligned=True)
        found |= dict.fromkeys((entry.name for _, entry, _ in chosen), source)
    return {name: found[name] for name in entries}


def cuda_source(
    text: str, threads: Mapping[str, Size] | None = None, dispatched: bool = False, aligned: bool = False
) -> tuple[str, dict[str, Entry]]:
    """The text as CUDA, and its kernels.

    A kernel takes its buffers in the order of their indices, then for each ``[[threadgroup(n)]]`` the offset of
    its memory, then, if it is `dispatched`, the first threadgroup of the launch, the size of a whole one, and that of
    the grid.

    Args:
        text: Metal Shading Language.
        threads: the size of the threadgroups that a kernel is launched with, by its name, where that is known: then
            registers suffice, and nothing is spent on simdgroups that are not full.
        dispatched: whether kernels run over grids that are no multiples of their threadgroups (`Module.dispatch`).
        aligned: whether matrices of 16-bit elements in threadgroup memory have rows at multiples of 16 bytes, as those
            of smelt's own kernels have.

    Raises:
        SimulatorError: the text has no kernels that can be read.
    """
    body, entries = _translated(text, aligned)
    return _source(body, entries.values(), threads or {}, dispatched, aligned), entries


def _translated(text: str, aligned: bool) -> tuple[str, dict[str, Entry]]:
    """The text as CUDA knows it, but for what makes kernels of its functions; and its kernels."""
    text = known_headers(text)
    if re.search(r"^\s*#\s*(?!include\s*<metal_|pragma\b)\w+", text, re.M):
        text = preprocess(text)
    found = parse(text, _shared)
    body = re.sub(r"^[ \t]*#[ \t]*include\b.*$", "", found.text, flags=re.M)
    body = _WIDE.sub(_copied_whole, body)
    each = _of_aligned if aligned else _for_tensor_cores
    return "".join(each(part) for part in re.split(r"(?=\bextern \"C\"|\bkernel\b)", body)), found.entries


#: Several components of a vector by their names.
_SWIZZLE = re.compile(r"(?:\.|->)\s*(?:[xyzw]{2,4}|[rgba]{2,4})\b")


def _source(
    body: str, entries: Iterable[Entry], threads: Mapping[str, Size], dispatched: bool = False, aligned: bool = False
) -> str:
    # CUDA's own global functions would make unqualified names ambiguous: declarations nearer win.
    out = ['#define SMELT_ALIGNED\n#define SMELT_LOADED asm volatile("" ::: "memory");\n'] if aligned else []
    if not _SWIZZLE.search(body):
        out.append("#define SMELT_WITHOUT_SWIZZLES\n")
    out += [
        '#include <metal_stdlib>\nnamespace smelt_text { SMELT_SAME_FUNCTIONS\n#line 1 "kernel.metal"\n',
        body,
        "\n}\n",
    ]
    out += [_wrapper(entry, threads.get(entry.name), dispatched) for entry in entries]
    return "".join(out)
