"""The planted faults: one small change each that makes smelt wrong, and tests that should notice it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

#: The checkout.
ROOT = Path(__file__).resolve().parents[2]
#: The folders of the package.
ROOMS = ("frontend", "ir", "passes", "backends", "runtime", "tools")


@dataclass(frozen=True)
class Edit:
    """One replacement in one file; `old` occurs there exactly once."""

    file: str
    old: str
    new: str


@dataclass(frozen=True)
class Fault:
    """A planted fault.

    Attributes:
        name: for the command line.
        what: what is wrong afterwards.
        edits: how it is planted.
        tests: what should notice it, which runs first.
    """

    name: str
    what: str
    edits: tuple[Edit, ...]
    tests: tuple[str, ...] = field(default=())


def planted(text: str, edit: Edit) -> str:
    """The text of a file with an edit made.

    Raises:
        ValueError: the code has changed since: `old` is not there exactly once.
    """
    if text.count(edit.old) != 1:
        raise ValueError(f"{edit.file} has {text.count(edit.old)} times: {edit.old}")
    return text.replace(edit.old, edit.new)


def _fault(name: str, what: str, file: str, old: str, new: str, *tests: str) -> Fault:
    return Fault(name, what, (Edit(file, old, new),), tests)


_OPS = ("tests/ops", "tests/backends")
_KERNELS = ("tests/backends", "tests/ops")
_METAL = ("tests/backends/metal",)
_PROGRAMS = ("tests/compose",)

FAULTS = (
    # Ops: derivatives, batching, elements
    _fault("abs-slope", "the derivative of |x| is 1 everywhere", "ir/ops/arithmetic.py",
           "return [t * b.sign(x)]", "return [t]", "tests/ops/test_registry.py", "tests/ops"),
    _fault("maximum-nan", "kernels of maximum ignore NaN", "ir/ops/arithmetic.py",
           "return k.maximum(x, y)", "return k.select(x > y, x, y)", "tests/ops/test_edges.py", *_OPS),
    _fault("sign-nan", "kernels of sign give 0 for NaN", "ir/ops/arithmetic.py",
           'return signed if x.dtype.kind == "i" else k.select(k.isnan(x), x, signed)', "return signed",
           "tests/ops/test_edges.py", *_OPS),
    _fault("clamp-order", "kernels of clamp let the low limit win where the limits cross", "ir/ops/arithmetic.py",
           "return k.minimum(k.maximum(x, low), high)", "return k.maximum(k.minimum(x, high), low)",
           "tests/ops/test_edges.py", *_OPS),
    _fault("negative-power", "kernels of integer_power forget the sign of the exponent", "ir/ops/arithmetic.py",
           "return 1 / result if exponent < 0 else result", "return result", "tests/ops/test_powers.py", *_OPS),
    _fault("argmax-last", "argmax over rows takes the last of equal elements in a scan of (best, index)",
           "ir/kinds.py", "return x > best if self.largest", "return x >= best if self.largest",
           "tests/ops/test_edges.py", *_OPS),
    _fault("field-types", "annotations of an op that name no field type are dropped", "ir/op.py",
           'raise AttributeValueError(at_user_line(f"{where} is {shown(text)}; write {one_of}"))', "continue",
           "tests/ir/test_fields.py", "tests/ir"),
    _fault("field-text", "annotations of an op that are no text are dropped", "ir/op.py",
           'raise AttributeValueError(at_user_line(f"{where} is {as_text}"))', "continue",
           "tests/ir/test_fields.py", "tests/ir"),
    _fault("extremum-ties", "ties of max do not share the derivative", "ir/ops/reduce.py",
           "return [b.reduce_sum(t * chosen, axes=axes) / count]", "return [b.reduce_sum(t * chosen, axes=axes)]",
           "tests/frontend/test_transforms_awkward.py", "tests/ops", "tests/frontend"),
    _fault("gather-window", "gather clamps a window one element too late", "ir/ops/indexing.py",
           "high = operands[0].shape[a] - slice_sizes[a]\n            if high or",
           "high = operands[0].shape[a] - 1\n            if high or", "tests/ops/test_indexing.py", *_OPS),
    _fault("scatter-negative", "kernels of scatter do not drop negative indices", "ir/ops/indexing.py",
           'if start.dtype.kind == "i":\n                inside = k.logical_and(inside, start >= 0)',
           'if start.dtype.kind == "j":\n                inside = k.logical_and(inside, start >= 0)',
           "tests/ops/test_indexing.py", *_OPS),
    _fault("cumsum-transpose", "the transpose of cumsum runs in the same direction", "ir/ops/scan_sort.py",
           "axis=axis, reverse=not reverse, inclusive=inclusive", "axis=axis, reverse=reverse, inclusive=inclusive",
           "tests/ops/test_registry.py", "tests/ops"),
    _fault("logcumsumexp-infinities", "the difference of equal infinities is NaN", "ir/ops/scan_sort.py",
           'gap = k.select(same, 0, k.math("absf", x - y))', 'gap = k.math("absf", x - y)',
           "tests/ops/test_edges.py", *_OPS),
    _fault("scan-batch-axis", "running sums are batched along the wrong axis", "ir/ops/scan_sort.py",
           'return b.emit(self, operands, {"axis": axis + (axis >= dim), **attrs}), [dim]',
           'return b.emit(self, operands, {"axis": axis + (axis > dim), **attrs}), [dim]',
           "tests/ops/test_scan_sort.py", "tests/ops"),
    _fault("cholesky-diagonal", "the derivative of cholesky takes the whole diagonal, not half of it",
           "ir/ops/linalg.py", "(lower(b, whole) + lower(b, whole, below=1)) * 0.5", "lower(b, whole)", "tests/ops"),
    _fault("library-ranks", "batch axes of operands with fewer of them are not aligned", "ir/library.py",
           "x = b.reshape_to(x, (x.shape[0], *[1] * (max(ranks) - rank), *x.shape[1:]))", "pass", "tests/ops"),
    _fault("library-line", "errors of a library do not name the user's line", "ir/interpreter.py",
           'error.args = (f"{error}{shown_line(where)}",)', "error.args = (str(error),)",
           "tests/ops", "tests/frontend"),
    # Passes
    _fault("reduce-of-transpose", "a reduction of a transpose loses the permutation",
           "passes/simplify/patterns_reduce.py",
           "return _transposed(b, reduced, [p for a, p in enumerate(permutation) if a not in axes])",
           "return b.reshape_to(reduced, at.shape)",
           "tests/passes_py/test_patterns.py", "tests/passes_py", "tests/test_lit.py"),
    _fault("concatenate-stride", "slices of different stride are joined", "passes/simplify/patterns_movement.py",
           'if p["stride"] != q["stride"] or 0 in at.operands[0].shape',
           "if 0 in at.operands[0].shape",
           "tests/passes_py/test_any_module.py", "tests/passes_py", "tests/test_lit.py"),
    _fault("slice-of-slice", "a slice of a strided slice starts at the wrong place",
           "passes/simplify/patterns_movement.py",
           'first + at.attrs["start"][i] * step, step', 'first + at.attrs["start"][i], step',
           "tests/passes_py/test_any_module.py", "tests/passes_py", "tests/test_lit.py"),
    _fault("pad-of-pad", "paddings of different values are merged", "passes/simplify/patterns_movement.py",
           "if inner is None or not same_number(inner.operands[1], at.operands[1]):", "if inner is None:",
           "tests/passes_py/test_any_module.py", "tests/passes_py", "tests/test_lit.py"),
    _fault("zero-signs", "cse takes 0.0 and -0.0 for the same number", "passes/simplify/cse.py",
           "return repr(value)  # tells", "return value  # tells", "tests/test_lit.py", "tests/passes_py"),
    _fault("cotangent-lost", "a value that is used twice gets the cotangent of one use",
           "passes/transform/transpose.py",
           "cotangents[v] = b.add_any(cotangents.get(v), contribution)", "cotangents[v] = contribution",
           "tests/frontend/test_control.py", "tests/test_lit.py", "tests/frontend"),
    _fault("effects-erased", "dce erases ops that have effects", "passes/simplify/dce.py",
           'return ops[name.removeprefix("smelt.")].pure', "return True",
           "tests/passes_py/test_narrow.py", "tests/test_lit.py", "tests/passes_py"),
    _fault("hands-over", "a kernel is merged with one whose results it does not read row by row",
           "passes/kernels/grouping.py",
           "            if v in second.reads and list(second.reads[v]) != [place]:\n                return False",
           "            if v in second.reads and list(second.reads[v]) != [place]:\n                continue",
           "tests/passes_py/test_fusion_check.py", "tests/passes_py", "tests/backends"),
    _fault("masked-loops", "loops in a branch run for elements of the batch that did not take it",
           "passes/transform/control/cond.py", "inside = own if mask is None else b.logical_and(own, mask)",
           "inside = None if mask is None else mask",
           "tests/passes_py/test_control_batch.py", "tests/passes_py", "tests/frontend"),
    _fault("carry-in-place", "a loop that swaps two carries reads what it has just written",
           "passes/kernels/plan_buffers.py", "carries.append(None if origin(v) is argument else take(v.aval.nbytes))",
           "carries.append(None if origin(v) in body.arguments else take(v.aval.nbytes))",
           "tests/backends/metal/test_control.py", "tests/backends"),
    _fault("freed-early", "the place of a value is used again by the op that reads it last",
           "passes/kernels/plan_buffers.py", "dying.setdefault(max(last.get(v, i), i), [])",
           "dying.setdefault(max(last.get(v, i) - 1, i), [])",
           "tests/backends/metal/test_apple.py", *_KERNELS, *_PROGRAMS),
    _fault("scratch-shared", "an op's scratch is the place of one of its results", "passes/kernels/plan_buffers.py",
           "            offset = arena.allocate(scratch)\n", "            offset = max(offsets[-1], 0)\n",
           "tests/backends/metal/test_control.py", *_KERNELS, *_PROGRAMS),
    # CPU kernels
    _fault("tile-tail", "the last tile of a loop is as long as the others", "backends/cpu/loops.py",
           "    if extent % nest.tile:\n", "    if not nest.tile:\n",
           "tests/backends/test_cpu.py", *_KERNELS),
    _fault("scan-chunk-tail", "a long running sum leaves out its last chunk", "backends/cpu/scan_scatter.py",
           "k.loop(None, self.zero, self.count, chunk, [self.start], step=CHUNK)",
           "k.loop(None, self.zero, k.const(max(1, self.plan.length // CHUNK * CHUNK), INDEX), chunk, [self.start], "
           "step=CHUNK)",
           "tests/backends/test_cpu.py", *_KERNELS, *_PROGRAMS),
    _fault("stream-rest", "a streamed result misses what fills no whole piece", "backends/cpu/streaming.py",
           "    _store_each(k, loop, whole, last, outputs, element)\n", "", "tests/backends/test_control.py",
           *_KERNELS),
    _fault("scatter-modes", "scatter overwrites instead of combining", "backends/cpu/scan_scatter.py",
           'new if what.mode == "set" else', 'new if what.mode in ("set", "mul") else', "tests/ops/test_edges.py",
           *_OPS),
    _fault("barrier-between-kernels", "threads go on to the next kernel without waiting", "backends/cpu/native.py",
           "        if waits:\n            self.wait()\n", "",
           "tests/backends/test_threads.py", "tests/backends/test_cpu.py"),
    # The GPU's kernels
    _fault("barrier-between-rows", "threadgroup memory of a row is written before the last row was read",
           "backends/gpu/schedules/rows/combine.py",
           "        if self._rounds and (self.team.columns or self._rounds % 2):\n            self.k.barrier()\n", "",
           "tests/backends/metal/test_rows.py", *_METAL),
    _fault("barrier-in-sort", "stages of the bitonic network run into each other",
           "backends/gpu/schedules/sort/sorting.py",
           "            pairs()\n        k.barrier()\n", "            pairs()\n",
           "tests/backends/metal/test_control.py", *_METAL),
    _fault("attention-shift", "rows keep what they are shifted by however large their logits are",
           "backends/gpu/schedules/contract/attention.py", "[x > y + SLACK for", "[x > y + 1e30 for",
           "tests/backends/metal/test_attention.py", *_METAL),
    _fault("merge-ties", "merging runs reverses equal elements", "backends/gpu/schedules/sort/merging.py",
           "k.below(j, count_b), k.logical_or(~k.below(i, count_a), comes_before(k, y, x))",
           "k.below(j, count_b), k.logical_or(~k.below(i, count_a), ~comes_before(k, x, y))",
           "tests/backends/metal/test_scan_sort_scatter.py", *_METAL),
    _fault("nan-sorts", "NaN is not sorted to the end", "backends/gpu/schedules/sort/sorting.py",
           "less = k.logical_or(less, k.logical_and(k.isnan(b), a.eq(a)))", "pass",
           "tests/backends/metal/test_golden.py", *_METAL),
    _fault("transpose-edge", "blocks of a transpose write past the edge", "backends/gpu/schedules/transposes.py",
           "        if self.columns.extent % self.block:\n", "        if self.columns.extent % self.block == 1:\n",
           "tests/backends/metal/test_transposes.py"),
    _fault("share-end", "the last share of a deep product reads what is not there",
           "backends/gpu/schedules/contract/split.py",
           "            if extent % self.positions:\n", "            if extent % self.positions == 1:\n",
           "tests/backends/metal/test_contract.py", *_METAL),
    _fault("window-end", "a window reads behind the end of what it moves over", "ir/kinds.py",
           "        if guard.index.hi >= guard.extent:\n", "        if guard.index.hi > guard.extent:\n",
           "tests/frontend/test_convolution.py", "tests/ops/test_edges.py", *_PROGRAMS),
    _fault("window-group", "each group of a convolution reads the channels of the first", "ir/ops/convolution.py",
           "source.append(group * w.shape[-1] + channel)", "source.append(channel)", "tests/ops/test_contract.py"),
    # Index expressions, runtime, frontend
    _fault("index-remainder", "a remainder is dropped where it may be negative", "ir/index.py",
           "        if rest.lo >= 0 and rest.hi < n:\n            return rest\n",
           "        if rest.hi < n:\n            return rest\n", "tests/ir", *_KERNELS, *_PROGRAMS),
    _fault("index-quotient", "nested quotients are merged where a constant is added in between", "ir/index.py",
           "if len(rest.terms) == 1 and rest.const == 0 and rest.terms[0][1] == 1:",
           "if len(rest.terms) == 1 and rest.terms[0][1] == 1:", "tests/ir", *_KERNELS, *_PROGRAMS),
    _fault("device-key", "a program of one device serves another", "frontend/lazy/execution/subgraphs.py",
           "Subgraph((structure, device.name, small, settings.of_programs)",
           "Subgraph((structure, small, settings.of_programs)",
           "tests/runtime/test_compile_keys.py", "tests/runtime", "tests/frontend"),
    _fault("piece-results", "long graphs drop what the next piece needs first", "frontend/lazy/evaluate.py",
           "if last_use.get(id(n), -1) >= end", "if last_use.get(id(n), -1) > end", "tests/runtime"),
    _fault("cache-order", "the most recently used program is forgotten first", "runtime/cache.py",
           "self._drop(self._entries.popitem(last=False)[1])", "self._drop(self._entries.popitem(last=True)[1])",
           "tests/runtime"),
    _fault("home-replaced", "an array that comes to a second device loses its place on the first", "backends/buffer.py",
           "            if self.home is None:\n", "            if True:\n", "tests/toy"),
    _fault("adopted-again", "what lies on a device already is copied there again", "backends/separate.py",
           "if isinstance(home, SeparateBlock) and home.memory is self:", "if home is self:", "tests/toy"),
    _fault("result-fetched", "a result of another shape is copied to the host", "backends/buffer.py",
           "        if not self.is_on_host:\n            return Buffer.at(aval, self.home)\n", "", "tests/toy"),
    # Programs of other processes
    _fault("disk-checksum", "damaged programs are taken from disk", "runtime/disk.py",
           " or checksum != _checksum(key, content)", "", "tests/runtime/test_disk_cache.py"),
    _fault("disk-trust", "programs that others can write are taken from disk", "runtime/disk.py",
           " and not found.st_mode & _UNTRUSTED", "", "tests/runtime/test_disk_cache.py"),
    _fault("disk-lines", "errors of a program from disk name the lines of another function", "runtime/kept.py",
           "disk.put(with_lines() if names_lines else key, content)", "disk.put(key, content)",
           "tests/runtime/test_disk_cache.py"),
    _fault("disk-check", "programs with checks and without are the same on disk", "backends/cpu/portable.py",
           "kind = settings.check, profiling.active is not None", "kind = profiling.active is not None",
           "tests/runtime/test_disk_cache.py"),
    _fault("relocation-addend", "constants of a program are all the first of their section", "backends/cpu/objects.py",
           "patch.apply(old, value + addend, base + at)", "patch.apply(old, value, base + at)",
           "tests/backends/test_objects.py", "tests/backends/test_cpu.py"),
    _fault("written-operands", "what a worker compiles has other operands", "frontend/lazy/written.py",
           "[values[r] for r in inputs], [plain_aval", "[values[r] for r in inputs[::-1]], [plain_aval",
           "tests/frontend/test_written.py"),
    _fault("worker-forever", "a worker lives on when its parent was killed", "runtime/worker.py",
           "return descriptor in ready", "return True", "tests/runtime/test_background.py"),
    _fault("negative-zero-key", "0.0 and -0.0 share a compiled program", "frontend/lazy/static_keys.py",
           'return (float, float.__repr__(x) if x == x else struct.pack("d", x))', "return (float, x)",
           "tests/runtime/test_compile_keys.py", "tests/runtime"),
)  # fmt: skip
