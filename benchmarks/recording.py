"""What recording an operation costs, and calling a compiled function, by the processor's time: one row an expression.

    python -m benchmarks.recording                 # all rows, the worst first
    python -m benchmarks.recording --only matmul   # rows whose expression contains a text
    python -m benchmarks.recording --module mlx.core --no-calls  # the same expressions in MLX
"""

from __future__ import annotations

import argparse
import functools
import importlib
import time
from typing import Any

#: Expressions over the names of `operands`; each records one operation, or few.
EXPRESSIONS = """
x + 1.0 | 1.0 + x | x * 2 | i + 1 | i * 2.0 | -x | x + y | x * y | x - y | x / y | x / 2.0 | x // 2.0 | x % y
x ** 2 | x ** 0.5 | x ** 3 | x ** y | x + row | x * column | x + s | x + i | h * x | h + 1 | i / i | x < y | x == 0
x != y | b & b | ~b | abs(x) | m.exp(x) | m.exp(i) | m.log(x) | m.sqrt(x) | m.rsqrt(x) | m.tanh(x) | m.erf(x)
m.sigmoid(x) | m.square(x) | m.negative(x) | m.abs(x) | m.maximum(x, y) | m.maximum(x, 0.0) | m.where(b, x, y)
m.where(b, x, 0.0) | m.clip(x, 0.0, 1.0) | m.logical_not(b) | m.isnan(x) | m.floor(x) | m.reciprocal(x)
m.stop_gradient(x) | x.astype(m.float16) | x.astype(m.float32) | x.sum() | x.sum(-1) | x.sum(0, keepdims=True)
x.mean(-1) | x.mean(-1, keepdims=True) | x.var(-1) | x.max(-1) | x.max() | x.argmax(-1) | m.sum(x, axis=(0, 1))
m.softmax(x, axis=-1) | m.logsumexp(x, axis=-1) | m.all(b) | m.cumsum(x, axis=0) | x.reshape(-1) | x.reshape(4, 2, 2)
x.reshape((16,)) | x.flatten() | x.T | x.transpose(1, 0) | t.transpose(0, 2, 1) | t.swapaxes(0, 1) | x[:, None]
m.expand_dims(x, 0) | m.squeeze(one) | m.broadcast_to(row, (4, 4)) | lazy[0] | lazy[1:3] | lazy[:, 0] | lazy[..., -1]
lazy[:, None] | lazy[::2] | lazy[j] | lazy[:, j] | x[0] | x[1:3] | x @ w | x @ v | t @ w | t @ t | m.matmul(x, w)
m.addmm(v, x, w) | m.concatenate([x, y]) | m.stack([x, y]) | m.split(lazy, 2) | m.take(x, j)
m.take_along_axis(x, k, -1)
m.einsum('ij,jk->ik', x, w) | m.zeros((4, 4)) | m.ones((4, 4)) | m.zeros_like(x) | m.full((4, 4), 2.0) | m.arange(4)
m.array(1.0) | m.sort(x) | m.outer(v, v) | m.pad(x, 1) | m.repeat(x, 2) | m.tile(x, 2) | x.shape | x.dtype
m.random.normal((4, 4)) | m.random.uniform(shape=(4, 4)) | m.fast.layer_norm(x, v, v, 1e-5)
m.fast.rms_norm(x, v, 1e-5)
"""
#: Calls of compiled functions, evaluated arguments.
CALLS = (
    "one(x) | two(x, y) | scalars(x, 2) | scalars(x, 2.5) | pair(x, y) | tree({'a': x, 'b': (x, y)}) | key(x, y=y)"
    " | many(*ten) | first(layers)"
)
#: Steps of optimizers over a module of 300 arrays of 64 numbers and less, with the state as `inputs` and `outputs`; in
#: smelt alone.
STEPS = "sgd(gradients) | adam(gradients)"
#: The time that one expression is measured for, in seconds of the processor.
LEAST = 0.02


def operands(m: Any) -> dict[str, Any]:
    """The names that expressions use, for a module with MLX's functions."""
    x = m.array([[1.0, 2.0, 3.0, 4.0]] * 4)
    names = {
        "m": m, "x": x, "y": m.array([[2.0] * 4] * 4), "i": m.array([[1, 2, 3, 4]] * 4),
        "h": m.array([[1.0] * 4] * 4, dtype=m.float16), "b": m.array([[True, False, True, False]] * 4),
        "row": m.array([1.0] * 4), "column": m.array([[1.0]] * 4), "s": m.array(2.0), "one": m.array([[1.0], [2.0]]),
        "w": m.array([[0.5] * 4] * 4), "v": m.array([1.0] * 4), "t": m.array([[[1.0] * 4] * 4] * 4),
        "j": m.array([1, 0]), "k": m.array([[0], [1], [2], [3]]),
    }  # fmt: skip
    m.eval([v for n, v in names.items() if n != "m"])
    names["lazy"] = x + 1.0
    return names


def compiled(m: Any) -> dict[str, Any]:
    """Functions for CALLS."""
    names = {
        "one": lambda x: x * 2.0 + 1.0,
        "two": lambda x, y: x * y + 1.0,
        "scalars": lambda x, n: x * n,
        "pair": lambda x, y: (x + y, x - y),
        "tree": lambda t: {"a": t["a"] + t["b"][0], "b": t["b"][1]},
        "key": lambda x, y: x + y,
        "many": lambda *xs: tuple([x + 1.0 for x in xs]),
        "first": lambda layers: layers[0]["weight"] + layers[1]["bias"],
    }
    ten = [m.array([1.0] * 4) for _ in range(10)]
    layers = [{"weight": ten[0], "bias": ten[1]} for _ in range(100)]
    return {name: m.compile(f) for name, f in names.items()} | {"ten": ten, "layers": layers}


def steps(m: Any) -> dict[str, Any]:
    """Functions for STEPS."""
    found: dict[str, Any] = {}
    for name, optimizer in (("sgd", m.optimizers.SGD(0.01, momentum=0.9)), ("adam", m.optimizers.Adam(0.01))):
        model = m.nn.Sequential(*[m.nn.Linear(8, 8) for _ in range(150)])
        optimizer.init(model.trainable_parameters())
        found["gradients"] = gradients = m.utils.tree_map(m.ones_like, model.trainable_parameters())
        state = [model.state, optimizer.state]
        m.eval(gradients, state)
        update = functools.partial(optimizer.update, model)
        found[name] = m.compile(update, inputs=state, outputs=state)
    return found


def microseconds(expression: str, names: dict[str, Any]) -> float:
    """The processor's time of one evaluation of an expression: the least of five measurements."""
    code = compile(f"def run(n):\n for _ in range(n):\n  {expression}\n", "<benchmark>", "exec")
    space = dict(names)
    exec(code, space)
    run = space["run"]
    run(3)
    count, found = 100, 0.0
    while True:
        start = time.process_time()
        run(count)
        found = time.process_time() - start
        if found > LEAST / 2:
            break
        count *= 2
    best = found / count
    for _ in range(4):
        start = time.process_time()
        run(count)
        best = min(best, (time.process_time() - start) / count)
    return best * 1e6


def expressions(text: str) -> list[str]:
    return [e.strip() for line in text.strip().splitlines() for e in line.split(" | ") if e.strip()]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recording", description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="expressions that contain this")
    parser.add_argument("--module", default="smelt", help="a module with MLX's functions (default: %(default)s)")
    parser.add_argument("--no-calls", action="store_true", help="without the calls of compiled functions")
    options = parser.parse_args()
    m = importlib.import_module(options.module)
    names = operands(m)
    rows = [(microseconds(e, names), e) for e in expressions(EXPRESSIONS) if options.only in e]
    if not options.no_calls:
        functions = {**names, **compiled(m)}
        rows += [(microseconds(e, functions), f"compiled: {e}") for e in expressions(CALLS) if options.only in e]
        if hasattr(m, "optimizers") and any(options.only in e for e in expressions(STEPS)):
            functions = steps(m)
            rows += [(microseconds(e, functions), f"compiled: {e}") for e in expressions(STEPS) if options.only in e]
    print("| expression | µs |\n| --- | ---: |")
    for found, expression in sorted(rows, reverse=True):
        print(f"| `{expression}` | {found:.2f} |")
    mean = sum(found for found, _ in rows) / max(len(rows), 1)
    print(f"\n{len(rows)} rows, {mean:.2f} µs in the mean")


if __name__ == "__main__":
    main()
