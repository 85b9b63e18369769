"""Matrix products on an NVIDIA GPU: by cuBLASLt, by smelt's own kernels, and by PyTorch, in one run.

``python -m benchmarks.products`` compares values with NumPy in float64 first, then times. It needs the GPU, NVRTC and
cuBLASLt; PyTorch's column is empty where that is not installed. Times are those of calls one behind the other, from
events of the stream.
"""

from __future__ import annotations

import argparse
import functools
import math
import re
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import smelt
from smelt.backends.buffer import Buffer
from smelt.backends.cuda import driver, products
from smelt.backends.cuda.memory import MEMORY
from smelt.backends.gpu.devices import GPUS, LIBRARY_LIMITS
from smelt.backends.gpu.library import Matrix, MatrixProduct
from smelt.ir.aval import Aval
from smelt.ir.dtypes import DType
from smelt.ir.settings import override

#: Seconds that a row's calls take together, about, and how often they are measured.
SECONDS, ROUNDS = 0.03, 5


@dataclass(frozen=True)
class Row:
    """A function of arrays.

    Attributes:
        build: ``build(library, *arrays)``, of smelt or PyTorch.
        flops: of a call.
    """

    name: str
    build: Callable[..., Any]
    shapes: Sequence[tuple[int, ...]]
    dtype: str
    flops: int
    tf32: bool = False


def square(n: int, dtype: str, tf32: bool = False) -> Row:
    name = f"{n}³ {dtype}{' (TF32)' if tf32 else ''}"
    return Row(name, lambda lib, x, y: x @ y, [(n, n)] * 2, dtype, 2 * n**3, tf32)


def relu(lib: Any, x: Any) -> Any:
    return lib.maximum(x, 0) if lib is smelt else lib.relu(x)


def gelu(lib: Any, x: Any) -> Any:
    return smelt.nn.gelu_approx(x) if lib is smelt else lib.nn.functional.gelu(x, approximate="tanh")


def linear(follow: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda lib, x, w, b: follow(lib, x @ w + b)


def rows() -> Iterator[Row]:
    for n in (4096, 8192):
        for dtype in ("bfloat16", "float16", "float32"):
            yield square(n, dtype)
        yield square(n, "float32", True)
    yield square(4096, "float64")
    for n in (128, 256, 512, 1024):
        yield square(n, "bfloat16")
    for n in (128, 256, 1024):
        yield square(n, "float32")
    batch = [(64, 1024, 1024)] * 2
    yield Row("64×1024³ bfloat16", lambda lib, x, y: x @ y, batch, "bfloat16", 2 * 64 * 1024**3)
    yield Row("64×1024³ bfloat16, xᵀ·y", lambda lib, x, y: x.swapaxes(1, 2) @ y, batch, "bfloat16", 2 * 64 * 1024**3)
    m, k, n = 8192, 768, 3072
    layer = [(m, k), (k, n), (n,)]
    flops = 2 * m * k * n
    yield Row("x·w + b, 8192×768×3072 bfloat16", linear(lambda lib, x: x), layer, "bfloat16", flops)
    yield Row("relu(x·w + b), the same", linear(relu), layer, "bfloat16", flops)
    yield Row("gelu(x·w + b), the same", linear(gelu), layer, "bfloat16", flops)
    yield Row("r + x·w + b, 8192×3072×768 bfloat16", lambda lib, x, w, b, r: r + (x @ w + b),
              [(m, n), (n, k), (k,), (m, k)], "bfloat16", flops)  # fmt: skip
    yield Row("xᵀ·y, 768×8192×3072 bfloat16", lambda lib, x, y: x.T @ y, [(m, k), (m, n)], "bfloat16", flops)
    words = 50257
    flops = 2 * m * k * words
    yield Row("x·wᵀ, 8192×768×50257 bfloat16", lambda lib, x, w: x @ w.T, [(m, k), (words, k)], "bfloat16", flops)
    yield Row("y·w, 8192×50257×768 bfloat16", lambda lib, y, w: y @ w, [(m, words), (words, k)], "bfloat16", flops)
    yield Row("xᵀ·y, 768×8192×50257 bfloat16", lambda lib, x, y: x.T @ y, [(m, k), (m, words)], "bfloat16", flops)
    yield Row("tanh(x·y), 8192×128×8192 bfloat16", lambda lib, x, y: lib.tanh(x @ y),
              [(8192, 128), (128, 8192)], "bfloat16", 2 * 8192 * 128 * 8192)  # fmt: skip


class Counted:
    """Products that cuBLASLt has made."""

    def __init__(self) -> None:
        self.count = 0
        run = products.Plan.run

        def counted(plan: products.Plan, *arguments: Any) -> None:
            self.count += 1
            run(plan, *arguments)

        products.Plan.run = counted  # type: ignore[method-assign]


@contextmanager
def on_gpu(**settings: Any) -> Iterator[None]:
    with smelt.stream(smelt.Device("cuda")), override(small_work=0, tier="program", **settings):
        yield


def microseconds(run: Callable[[], Any], event: Callable[[], Any], wait: Callable[[], None]) -> float:
    """The time of a call among many."""
    run()
    wait()
    start = time.perf_counter()
    run()
    wait()
    calls = max(3, min(200, int(SECONDS / (time.perf_counter() - start))))
    found = []
    for _ in range(ROUNDS):
        first, last = event(), event()
        first.record()
        for _ in range(calls):
            run()
        last.record()
        wait()
        found.append((last.milliseconds_since(first) if hasattr(last, "milliseconds_since")
                      else first.elapsed_time(last)) / calls * 1e3)  # fmt: skip
    return statistics.median(found)


def arrays_of(shapes: Sequence[tuple[int, ...]]) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    pattern = rng.standard_normal(1 << 20, np.float32)
    return [np.resize(np.roll(pattern, 7 * i), shape) for i, shape in enumerate(shapes)]


# Values

def cases() -> Iterator[tuple[str, Callable[..., Any], list[tuple[int, ...]]]]:
    """Layouts and what may follow: functions that NumPy runs, too."""
    yield "x·w", lambda lib, x, w: x @ w, [(256, 320), (320, 192)]
    yield "xᵀ·wᵀ", lambda lib, x, w: x.T @ w.T, [(320, 256), (192, 320)]
    yield "(x·w)ᵀ", lambda lib, x, w: (x @ w).T, [(256, 320), (320, 192)]
    yield "x·w + b", lambda lib, x, w, b: x @ w + b, [(2, 256, 320), (320, 192), (192,)]
    yield "relu(x·w + b)", lambda lib, x, w, b: lib.maximum(x @ w + b, 0), [(256, 320), (320, 192), (192,)]
    yield "r + x·w + b", lambda lib, x, w, b, r: r + (x @ w + b), [(256, 320), (320, 192), (192,), (256, 192)]
    yield "x·w / 2 + r", lambda lib, x, w, r: x @ w * 0.5 + r, [(256, 320), (320, 192), (256, 192)]
    yield "tanh((x·w + b) / 32)", lambda lib, x, w, b: lib.tanh((x @ w + b) / 32), [(256, 320), (320, 192), (192,)]
    yield "batch", lambda lib, x, y: x @ y, [(3, 256, 320), (3, 320, 192)]
    yield "batch, turned", lambda lib, x, y: x.transpose(1, 0, 2) @ y, [(256, 3, 320), (3, 320, 192)]
    yield "heads", lambda lib, x, w: (x @ w).reshape(2, 256, 4, 48).transpose(0, 2, 1, 3), [(2, 256, 320), (320, 192)]
    yield "parts", lambda lib, x, w: x[3:, 7:] @ w[7:, 5:], [(256, 320), (320, 192)]
    yield "odd", lambda lib, x, w: x @ w, [(251, 317), (317, 193)]
    yield "odd, turned", lambda lib, x, w: x.T @ w.T + 1, [(1027, 509), (515, 1027)]


def check(counted: Counted) -> None:
    """Values of all dtypes, with the library; and what it does with numbers that are none."""
    tolerance = {"float32": 2e-6, "float16": 2e-3, "bfloat16": 1.2e-2, "float64": 1e-14}
    for name, f, shapes in cases():
        arrays, shown = arrays_of(shapes), []
        for dtype, allowed in tolerance.items():
            with on_gpu():
                given = [smelt.array(x).astype(getattr(smelt, dtype)) for x in arrays]
                wide = smelt.float64 if dtype == "float64" else smelt.float32
                want = f(np, *(np.array(x.astype(wide), np.float64) for x in given))
                before = counted.count
                out = smelt.compile(lambda *xs, f=f: f(smelt, *xs))(*given)
                found = np.array(out.astype(wide), np.float64)
            error = np.abs(found - want).max() / np.abs(want).max()
            verdict = "" if error <= allowed else " WRONG"
            shown.append(f"{dtype} {error:.0e} ({counted.count - before} by the library){verdict}")
        print(f"  {name}: {', '.join(shown)}", flush=True)


def check_graphs(counted: Counted) -> None:
    """A program of several products that runs again and again on the same memory."""
    arrays = arrays_of([(256, 256), (256,)])

    def f(lib: Any, w: Any, b: Any) -> Any:
        x = w
        for _ in range(6):
            x = lib.tanh(x @ w * 0.05 + b)
        return x

    want = f(np, *(x.astype(np.float64) for x in arrays))
    with on_gpu():
        given, g = [smelt.array(x) for x in arrays], smelt.compile(lambda *xs: f(smelt, *xs))
        errors, counts = [], []
        for _ in range(6):
            before = counted.count
            found = g(*given)
            errors.append(np.abs(np.array(found, np.float64) - want).max())
            counts.append(counted.count - before)
            del found
    print(f"  graphs: errors {max(errors):.0e}, calls of the library per run {counts}", flush=True)


@np.errstate(invalid="ignore")
def check_activations() -> None:
    """What the library's activations are: of a product that is zero, and numbers that are added to it."""
    library = products.library()
    assert library is not None
    n = 64
    special = np.array([np.nan, -np.nan, np.inf, -np.inf, -0.0, 0.0, -1.0, 2.0], np.float32)
    points = np.concatenate([special, np.linspace(-6, 6, n * n - len(special), dtype=np.float32)]).reshape(n, n)
    for dtype in ("float32", "float16", "bfloat16"):
        for activation in ("relu", "gelu"):
            spec = MatrixProduct(
                1, n, n, n, Matrix(0, dtype, 0, (0, n, 1)), Matrix(1, dtype, 0, (0, n, 1)),
                Matrix(2, dtype, 0, (0, n, 1)), addend=Matrix(3, dtype, 0, (0, n, 1)), activation=activation,
            )  # fmt: skip
            plan = library.find(spec)
            if plan is None:
                print(f"  {activation} {dtype}: not taken")
                continue
            dtype_of: DType = getattr(smelt, dtype)
            aval = Aval((n, n), dtype_of)
            zero, x = (MEMORY.adopt(Buffer.of(a.astype(dtype_of.numpy), aval)) for a in (np.zeros((n, n)), points))
            out = MEMORY.empty(aval)
            plan.run([b.home.address for b in (zero, zero, out, x)])
            given, found = (b.home.to_host(aval).astype(np.float64).ravel() for b in (x, out))
            tanh = given / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (given + 0.044715 * given**3)))
            exact = given / 2 * (1 + np.array([math.erf(v / math.sqrt(2)) for v in given]))
            wants = {"relu": np.maximum(given, 0)} if activation == "relu" else {"tanh": tanh, "erf": exact}
            errors = {name: np.abs(found - want)[8:].max() for name, want in wants.items()}
            shown = ", ".join(f"{name} off by {error:.1e}" for name, error in errors.items())
            print(f"  {activation} {dtype}: {shown}; of nan, -nan, inf, -inf, -0, 0: {found[:6]}", flush=True)


# Times

def _evaluated(f: Callable[..., Any], given: Sequence[Any]) -> None:
    smelt.eval(f(*given))


def measure(row: Row, torch: Any, counted: Counted) -> str:
    arrays, cells, outs = arrays_of(row.shapes), [row.name], []
    for libraries in (True, False):
        with on_gpu(libraries=libraries, tf32=row.tf32):
            given = [smelt.array(x).astype(getattr(smelt, row.dtype)) for x in arrays]
            f = smelt.compile(lambda *xs: row.build(smelt, *xs))
            before = counted.count
            outs.append(np.array(f(*given)[..., :64, :64].astype(smelt.float32)))
            calls = counted.count - before
            run = functools.partial(_evaluated, f, given)
            took = microseconds(run, driver.Event, driver.synchronize)
            del given, run
        cells += [f"{took:.1f}", f"{row.flops / took / 1e6:.1f}"]
        if libraries:
            cells.append(str(calls))
    difference = np.abs(outs[0] - outs[1]).max() / max(np.abs(outs[1]).max(), 1e-30)
    cells.append(f"{difference:.0e}")
    if torch is not None:
        torch.backends.cuda.matmul.allow_tf32 = row.tf32
        given = [torch.from_numpy(x).to("cuda").to(getattr(torch, row.dtype)) for x in arrays]
        with torch.no_grad():
            took = microseconds(
                lambda: row.build(torch, *given), lambda: torch.cuda.Event(enable_timing=True), torch.cuda.synchronize
            )  # fmt: skip
        cells += [f"{took:.1f}", f"{row.flops / took / 1e6:.1f}"]
        del given
        torch.cuda.empty_cache()
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.products", description=__doc__.split("\n\n")[0])
    parser.add_argument("only", nargs="*", help="rows whose name has one of these; default: all")
    parser.add_argument("--values", action="store_true", help="values alone")
    parser.add_argument("--write", type=Path, help="a document to put the table in")
    options = parser.parse_args()
    library = products.library()
    title = f"{driver.gpu_name()} ({driver.architecture()}); cuBLASLt: {'there' if library else 'not there'}"
    print(title)
    counted = Counted()
    if not options.only:
        every = replace(GPUS["nvidia"], **dict.fromkeys(LIBRARY_LIMITS, 0))
        with mock.patch.dict(GPUS, nvidia=every):  # products of all sizes
            check(counted)
            check_graphs(counted)
        if library is not None:
            check_activations()
    if options.values:
        return
    try:
        import torch
    except ImportError:
        torch = None  # type: ignore[assignment]
    lines = [
        "| product | µs | TFLOP/s | calls | own kernels µs | TFLOP/s | difference | PyTorch µs | TFLOP/s |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    print("\n".join(lines))
    for row in rows():
        if not options.only or any(word in row.name for word in options.only):
            lines.append(measure(row, torch, counted))
            print(lines[-1], flush=True)
    if options.write:
        text, table = options.write.read_text(encoding="utf-8"), "\n".join([f"{title}.", "", *lines, ""])
        put = f"<!-- products -->\n{table}<!-- end -->"
        found = re.sub(r"<!-- products -->\n.*?<!-- end -->", lambda _: put, text, flags=re.DOTALL)
        options.write.write_text(found, encoding="utf-8")


if __name__ == "__main__":
    main()
