"""Metal kernels on an NVIDIA GPU: the text that smelt emits, compiled by NVRTC, beside a copy on the device.

``python -m benchmarks.nvidia emit DIR`` writes the kernels (any machine with smelt); ``python -m benchmarks.nvidia
run DIR`` checks their values and times them (a machine with an NVIDIA GPU, NVRTC, NumPy and SciPy). ``--write
FILE`` puts the table into a document.

A kernel's speed is the bytes of its manifest over the median time; the copy moves as many bytes, in the same run.
"""

from __future__ import annotations

import argparse
import math
import re
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

BF16 = ml_dtypes.bfloat16
REPEATS = 30


@dataclass(frozen=True)
class Workload:
    """A function of arrays, from smelt's primitives, and what it must give.

    Attributes:
        build: ``build(smelt, *arrays)``.
        arrays: shapes and dtypes of the arguments.
        expected: of rows of the first argument, from NumPy in float64; or of everything.
        tolerance: relative to the largest element.
        bound: what it waits for: "memory", and is compared with the copy, "arithmetic", or neither ("").
    """

    name: str
    title: str
    build: Callable[..., Any]
    arrays: Sequence[tuple[tuple[int, ...], Any]]
    expected: Callable[..., np.ndarray]
    tolerance: float = 2e-6
    bound: str = "memory"


def gelu(sm: Any, x: Any) -> Any:
    return x * 0.5 * (1 + sm.erf(x * 0.7071067811865476))


def softmax(sm: Any, x: Any) -> Any:
    e = sm.exp(x - sm.max(x, axis=-1, keepdims=True))
    return e / sm.sum(e, axis=-1, keepdims=True)


def layer_norm(sm: Any, x: Any, weight: Any, bias: Any) -> Any:
    centered = x - sm.mean(x, axis=-1, keepdims=True)
    variance = sm.mean(centered * centered, axis=-1, keepdims=True)
    return centered * sm.rsqrt(variance + 1e-5) * weight + bias


def expected_gelu(x: np.ndarray) -> np.ndarray:
    from scipy.special import erf

    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def expected_softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def expected_layer_norm(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    centered = x - x.mean(-1, keepdims=True)
    return centered / np.sqrt((centered**2).mean(-1, keepdims=True) + 1e-5) * weight + bias


def expected_scatter(x: np.ndarray, at: np.ndarray, updates: np.ndarray) -> np.ndarray:
    np.add.at(x, at.astype(int), updates)
    return x


def rnn(sm: Any, w: Any, xs: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        h = sm.tanh(h @ (w * 0.05) + x)
        return h, h

    last, states = sm.scan(step, sm.zeros(xs.shape[1:]), xs)
    return last + states.mean(axis=0)


def expected_rnn(w: np.ndarray, xs: np.ndarray) -> np.ndarray:
    h, total = np.zeros(xs.shape[1:]), np.zeros(xs.shape[1:])
    for x in xs:
        h = np.tanh(h @ (w * 0.05) + x)
        total += h
    return h + total / len(xs)


def rnn_gradient(sm: Any, w: Any, xs: Any) -> Any:
    return sm.grad(lambda w: (rnn(sm, w, xs) ** 2).sum())(w)


def expected_rnn_gradient(w: np.ndarray, xs: np.ndarray) -> np.ndarray:
    states = [np.zeros(xs.shape[1:])]
    for x in xs:
        states.append(np.tanh(states[-1] @ (w * 0.05) + x))
    seed = 2 * (states[-1] + np.mean(states[1:], axis=0))
    ct, found = seed.copy(), np.zeros_like(w)
    for before, after in zip(states[-2::-1], states[:0:-1]):
        inner = (ct + seed / len(xs)) * (1 - after**2)
        found += 0.05 * before.T @ inner
        ct = inner @ (w * 0.05).T
    return found


def square_root(sm: Any, x: Any) -> Any:
    """Newton's method, as long as any element is not there."""
    a = x * x + 1

    def unfinished(root: Any) -> Any:
        return (sm.abs(root * root - a) > 1e-5 * a).any()

    return sm.while_loop(unfinished, lambda root: (root + a / root) / 2, a)


def product(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return x @ y


SQUARE, N = (8192, 8192), 8192
BIG = (32 * 1000, 4096)
M = 1024

WORKLOADS = (
    Workload("gelu", "GELU, 32000×4096 f32", gelu, [(BIG, np.float32)], expected_gelu),
    Workload("gelu_bf16", "GELU, 32000×4096 bf16", gelu, [(BIG, BF16)], expected_gelu, 1e-2),
    Workload("softmax", "softmax of rows, 8192×8192 f32", softmax, [(SQUARE, np.float32)], expected_softmax),
    Workload("softmax_bf16", "softmax of rows, 8192×8192 bf16", softmax, [(SQUARE, BF16)], expected_softmax, 1e-2),
    Workload(
        "layer_norm", "layer norm of rows, 8192×8192 f32", layer_norm,
        [(SQUARE, np.float32), ((N,), np.float32), ((N,), np.float32)], expected_layer_norm,
    ),
    Workload(
        "layer_norm_bf16", "layer norm of rows, 8192×8192 bf16", layer_norm,
        [(SQUARE, BF16), ((N,), BF16), ((N,), BF16)], expected_layer_norm, 2e-2,
    ),
    Workload("row_sum", "sum of each row, 8192×8192 f32", lambda sm, x: sm.sum(x, axis=1),
             [(SQUARE, np.float32)], lambda x: x.sum(1), 1e-5),
    Workload("column_sum", "sum of each column, 8192×8192 f32", lambda sm, x: sm.sum(x, axis=0),
             [(SQUARE, np.float32)], lambda x: x.sum(0), 1e-5),
    Workload("whole_sum", "sum of everything, 100,000,000 f32", lambda sm, x: sm.sum(x),
             [((100_000_000,), np.float32)], lambda x: x.sum(), 1e-4),
    Workload("softmax_columns", "softmax of columns, 8192×8192 f32", lambda sm, x: sm.softmax(x, axis=0),
             [(SQUARE, np.float32)], lambda x: expected_softmax(x.T).T),
    Workload("variance_columns", "variance of each column, 8192×8192 f32", lambda sm, x: sm.var(x, axis=0),
             [(SQUARE, np.float32)], lambda x: x.var(0), 1e-5),
    Workload("add_transposed", "x + xᵀ, 8192×8192 f32", lambda sm, x: x + x.T,
             [(SQUARE, np.float32)], lambda x: x + x.T),
    Workload("dot", "dot product, 2²⁶ f32", lambda sm, x, y: x @ y, [((1 << 26,), np.float32)] * 2, product, 1e-4),
    Workload("dot_bf16", "dot product, 2²⁶ bf16", lambda sm, x, y: x @ y, [((1 << 26,), BF16)] * 2, product, 1e-2),
    Workload("matrix_vector", "matrix · vector, 8192×8192 f32", lambda sm, x, y: x @ y,
             [(SQUARE, np.float32), ((N,), np.float32)], product, 1e-5),
    Workload("matrix_vector_bf16", "matrix · vector, 8192×8192 bf16", lambda sm, x, y: x @ y,
             [(SQUARE, BF16), ((N,), BF16)], product, 1e-2),
    Workload("vector_matrix", "vector · matrix, 8192×8192 f32", lambda sm, x, y: x @ y,
             [((N,), np.float32), (SQUARE, np.float32)], product, 1e-5),
    Workload("vector_matrix_bf16", "vector · matrix, 8192×8192 bf16", lambda sm, x, y: x @ y,
             [((N,), BF16), (SQUARE, BF16)], product, 1e-2),
    Workload("deep_product", "matrix product, 16×2²⁰×16 f32", lambda sm, x, y: x @ y,
             [((16, 1 << 20), np.float32), ((1 << 20, 16), np.float32)], product, 1e-4, "arithmetic"),
    Workload("scatter", "1,000,000 numbers added to 10 elements, f32", lambda sm, x, i, u: x.at[i].add(u),
             [((10,), np.float32), ((1_000_000,), np.int32), ((1_000_000,), np.float32)], expected_scatter, 1e-4, ""),
    Workload("matmul", "matrix product, 1024³ f32", lambda sm, x, y: x @ y,
             [((M, M), np.float32)] * 2, lambda x, y: x @ y, 1e-5, "arithmetic"),
    Workload("matmul_f16", "matrix product, 1024³ f16", lambda sm, x, y: x @ y,
             [((M, M), np.float16)] * 2, lambda x, y: x @ y, 2e-3, "arithmetic"),
    Workload("matmul_large_f16", "matrix product, 4096³ f16", lambda sm, x, y: x @ y,
             [((4 * M, 4 * M), np.float16)] * 2, lambda x, y: x @ y, 2e-3, "arithmetic"),
    Workload("matmul_large_bf16", "matrix product, 4096³ bf16", lambda sm, x, y: x @ y,
             [((4 * M, 4 * M), BF16)] * 2, lambda x, y: x @ y, 1e-2, "arithmetic"),
    Workload("linear_gelu", "GELU(x · w + b), 1000×1024×1030 bf16", lambda sm, x, w, b: gelu(sm, x @ w + b),
             [((1000, M), BF16), ((M, 1030), BF16), ((1030,), BF16)],
             lambda x, w, b: expected_gelu(x @ w + b), 1e-2, "arithmetic"),
    Workload("rnn", "scan: RNN, 200 steps of 64×256 f32", rnn,
             [((256, 256), np.float32), ((200, 64, 256), np.float32)], expected_rnn, 1e-4, ""),
    Workload("rnn_gradient", "scan: gradient of that RNN", rnn_gradient,
             [((256, 256), np.float32), ((200, 64, 256), np.float32)], expected_rnn_gradient, 1e-3, ""),
    Workload("square_root", "while loop: 10⁶ square roots by Newton's method f32", square_root,
             [((1_000_000,), np.float32)], lambda x: np.sqrt(x * x + 1), 1e-5, ""),
)  # fmt: skip

#: Workloads whose rows do not depend on each other are checked on some of them.
BY_ROW = (gelu, softmax, layer_norm)
CHECKED_ROWS = 64


def emit(directory: Path, gpu: str = "nvidia") -> None:
    """Write the kernels of all workloads and their manifests."""
    import smelt

    for w in WORKLOADS:
        arguments = [smelt.ShapeDtype(shape, np.dtype(dtype).name) for shape, dtype in w.arrays]
        lowered = smelt.compile(lambda *xs, w=w: w.build(smelt, *xs)).trace(*arguments).lower()
        lowered.to_metal(gpu).save(str(directory), w.name)


class Loaded:
    """A program on the GPU, with its memory."""

    def __init__(
        self, directory: Path, w: Workload, options: Sequence[str], arrays: Sequence[np.ndarray] | None = None
    ):
        from smelt.backends.cuda import compiler, driver, source
        from smelt.backends.gpu.manifest import Manifest

        text = (directory / f"{w.name}.metal").read_text()
        self.manifest = Manifest.from_json((directory / f"{w.name}.json").read_text())
        threads = {k.entry: k.threads for k in self.manifest.kernels}
        cuda, _ = source.cuda_source(text, threads, aligned=True)
        self.module = driver.Module(compiler.compile_cubin(cuda, driver.architecture(), options))
        rng = np.random.default_rng(0)
        self.arrays = (
            [rng.standard_normal(shape, np.float32).astype(dtype) for shape, dtype in w.arrays]
            if arrays is None else list(arrays)
        )  # fmt: skip
        self.arguments = [driver.Memory(a.nbytes) for a in self.arrays]
        for memory, array in zip(self.arguments, self.arrays):
            memory.write(array.ctypes.data)
        self.outs = [np.empty(r.shape, numpy_dtype(r.dtype)) for r in self.manifest.results]
        self.results = [driver.Memory(o.nbytes) for o in self.outs]
        self.arena = driver.Memory(self.manifest.arena_bytes)
        self.tables = {"argument": self.arguments, "result": self.results, "arena": [self.arena]}
        self.launches: list[tuple[str, list[int], Any]] = []  #: of the last run
        self.asks = True  #: whether a loop or branch asks for values while it runs

    def run(self) -> None:
        if self.asks:
            self.asks = False
            self.launches = list(self._walk())
        else:
            for item in self.launches:
                self._launch(item)

    def _walk(self) -> Iterator[tuple[str, list[int], Any]]:
        from smelt.backends.gpu.steps import walk

        def read(where: tuple[str, int, int], nbytes: int) -> int:
            self.asks = True
            kind, index, offset = where
            return self.tables[kind][index].number(offset, nbytes)

        for launch, places in walk(self.manifest, read):
            addresses = [self.tables[kind][index].address + offset for kind, index, offset in places]
            item = launch.entry, addresses, self.manifest.kernel(launch.entry)
            self._launch(item)
            yield item

    def _launch(self, item: tuple[str, list[int], Any]) -> None:
        entry, addresses, kernel = item
        self.module.launch(entry, addresses, kernel.threadgroups, kernel.threads)

    @property
    def bytes_moved(self) -> int:
        return sum(k.bytes_read + k.bytes_written for _, _, k in self.launches)

    def result(self) -> np.ndarray:
        (out,), (memory,) = self.outs, self.results
        memory.read(out.ctypes.data)
        return out

    def free(self) -> None:
        for memory in (*self.arguments, *self.results, self.arena):
            memory.free()
        self.module.unload()


def numpy_dtype(name: str) -> Any:
    return BF16 if name == "bfloat16" else np.dtype(name)


def milliseconds(run: Callable[[], None]) -> float:
    """The median time of `run` on the GPU."""
    from smelt.backends.cuda import driver

    times = []
    for i in range(REPEATS + 5):
        start, end = driver.Event(), driver.Event()
        start.record()
        run()
        end.record()
        if i >= 5:
            times.append(end.milliseconds_since(start))
    return statistics.median(times)


def copy_milliseconds(nbytes: int) -> float:
    """The median time of a copy on the device that reads and writes `nbytes` together."""
    from smelt.backends.cuda import driver

    source, target = driver.Memory(nbytes // 2), driver.Memory(nbytes // 2)
    found = milliseconds(lambda: target.copy_from(source))
    source.free()
    target.free()
    return found


def check(w: Workload, loaded: Loaded) -> float:
    """The largest error relative to the largest element. Raises AssertionError above the tolerance."""
    found = loaded.result()
    arrays = loaded.arrays
    if w.build in BY_ROW:
        rows = np.linspace(0, len(arrays[0]) - 1, CHECKED_ROWS).astype(int)
        found, arrays = found[rows], [arrays[0][rows], *arrays[1:]]
    want = np.asarray(w.expected(*(a.astype(np.float64) for a in arrays)))
    error = float(np.max(np.abs(found.astype(np.float64) - want)) / np.max(np.abs(want)))
    assert error <= w.tolerance, f"{w.name}: error {error:.2e} exceeds {w.tolerance:.0e}"
    return error


def run(directory: Path, names: Sequence[str], nvrtc: Sequence[str]) -> str:
    """Check and time the kernels in a directory; the table."""
    from smelt.backends.cuda import driver

    lines = [
        f"{driver.gpu_name()} ({driver.architecture()}), median of {REPEATS} runs.", "",
        "| workload | launches | µs | GB/s | copy GB/s | of the copy | TFLOP/s | error |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]  # fmt: skip
    for w in WORKLOADS:
        if names and w.name not in names:
            continue
        loaded = Loaded(directory, w, nvrtc)
        loaded.run()
        driver.synchronize()
        error = check(w, loaded)
        time = milliseconds(loaded.run)
        moved = loaded.bytes_moved
        speed = moved / time / 1e6
        cells = [w.title, str(len(loaded.launches)), f"{time * 1e3:.0f}"]
        if w.bound != "memory":
            flops = sum(k.flops for _, _, k in loaded.launches)
            cells += ["", "", "", f"{flops / time / 1e9:.1f}" if w.bound else ""]
        else:
            copy = moved / copy_milliseconds(moved) / 1e6
            cells += [f"{speed:.0f}", f"{copy:.0f}", f"**{speed / copy:.2f}**", ""]
        lines.append("| " + " | ".join([*cells, f"{error:.0e}"]) + " |")
        print(lines[-1], flush=True)
        loaded.free()
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.nvidia", description=__doc__.split("\n\n")[0])
    parser.add_argument("command", choices=("emit", "run"))
    parser.add_argument("directory", type=Path)
    parser.add_argument("names", nargs="*", help="workloads to run (default: all)")
    parser.add_argument("--gpu", default="nvidia", help="the GPU description to emit for")
    parser.add_argument("--nvrtc", nargs="*", default=["--fmad=false"], help="options of NVRTC")
    parser.add_argument("--write", type=Path, help="a document to put the table in")
    options = parser.parse_args()
    if options.command == "emit":
        emit(options.directory, options.gpu)
        return
    table = run(options.directory, options.names, options.nvrtc)
    print(table)
    if options.write:
        text = options.write.read_text(encoding="utf-8")
        put = f"<!-- nvidia -->\n{table}<!-- end -->"
        options.write.write_text(re.sub(r"<!-- nvidia -->\n.*?<!-- end -->", lambda _: put, text, flags=re.DOTALL))


if __name__ == "__main__":
    main()
