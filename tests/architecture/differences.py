"""What differs from MLX on purpose, as expressions: a table of docs/from-mlx.md.

``python -m tests.architecture.api`` writes it. What smelt gives is computed; what MLX 0.32.4 gives stands here, and is
compared with MLX where that is installed.
"""

from __future__ import annotations

import importlib
import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from .sources import ROOT

PAGE = ROOT / "docs" / "from-mlx.md"
MARKS = ("<!-- differences -->", "<!-- end of differences -->")


@dataclass
class Difference:
    """An expression and what MLX makes of it; `why` smelt does not."""

    expression: str
    mlx: str
    why: str


DIFFERENCES = [
    Difference("mx.array([1, 2]) == [1, 2]", "False", "lists are operands"),
    Difference("mx.array([1, 2]) + [1, 2]", "ValueError", "lists are operands"),
    Difference("(mx.array([1, 2]) + np.array([0.5, 0.5])).dtype", "int32", "NumPy's arrays keep their dtype"),
    Difference("mx.array([1, 2]) == None", "TypeError", "as for any other object"),
    Difference("mx.array([1, 2, 3])[3]", "array(0, dtype=int32)", "MLX reads other memory"),
    Difference("mx.array([1, 2, 3])[mx.array([3])][:0]", "array([], dtype=int32)", "also where an array says so"),
    Difference("mx.array([1, 2, 3])[[True, False, True]]", "ValueError", "masks select, as in NumPy"),
    Difference("mx.array(2**63)", "RuntimeError", "as in NumPy"),
    Difference("mx.array([-1.0]).astype(mx.uint8)", "array([255], dtype=uint8)", "the nearest, on all devices"),
    Difference("mx.array([math.nan]).astype(mx.int32)", "array([-2147483648], dtype=int32)", "0, on all devices"),
    Difference("mx.array(1) << mx.array(40)", "array(256, dtype=int32)", "no bits are left, as in NumPy"),
    Difference("mx.array(3) % mx.array(0)", "array(3, dtype=int32)", "0, on all devices, as in NumPy"),
    Difference("mx.array(3) // 1j", "array(0-3j, dtype=complex64)", "complex numbers have no floor, as in NumPy"),
    Difference("mx.array(-1) ** mx.array(-1)", "array(0, dtype=int32)", "exact where the result is an integer"),
    Difference("mx.array([1], mx.uint64) + -2", "array([18446744073709551615], dtype=uint64)",
               "no number becomes another one"),
    Difference("mx.sum(mx.array(True)).dtype", "bool", "as for other shapes, in which both count in int32"),
    Difference("mx.softmax(mx.array(1)).dtype", "int32", "as for other shapes, in which both give float32"),
    Difference("mx.fft.fft(mx.array([1.0], mx.float64)).dtype", "complex64", "no digits are lost"),
    Difference("(mx.array([1.0], mx.float64) + 1j).dtype", "complex64", "no digits are lost"),
    Difference("mx.fft.rfft(mx.array([1j, 1j]))", "array([0+0j, 0+0j], dtype=complex64)",
               "an imaginary part is not lost, as in NumPy"),
    Difference("mx.linspace(-1.5, 2, 2, dtype=mx.int32)", "array([-1, 2], dtype=int32)", "the floor, as in NumPy"),
    Difference("mx.full((2,), mx.array(1), mx.uint8).dtype", "int32", "the dtype that is asked for"),
    Difference("mx.vecdot(mx.array([1], mx.int8), mx.array([1], mx.int8)).dtype", "int32", "as in the standard"),
    Difference("mx.array([1.0]).__setitem__(0, 1j)", "None", "an imaginary part is not lost, as in NumPy"),
    Difference('mx.pad(mx.zeros(0), 1, mode="edge")', "array([0, 0], dtype=float32)", "there is no edge, as in NumPy"),
    Difference("mx.linalg.norm(mx.array([200, 200], mx.uint8))", "array(11.3137, dtype=float32)",
               "squares are those of float32"),
    Difference("mx.array([1, 2]).at[0].divide(2)", "array([0, 2], dtype=int32)", "integers would lose the fraction"),
    Difference("(lambda x: x.__setitem__(..., 1.5) or x.dtype)(mx.array([1]))", "float32", "an array keeps its dtype"),
    Difference("type(mx.divmod(mx.array(3), 2)).__name__", "list", "also `quantize` and `broadcast_arrays`"),
    Difference("mx.linalg.norm(mx.array([1j]), 1).dtype", "complex64", "a norm is real"),
    Difference("mx.sign(mx.array(math.nan))", "array(0, dtype=float32)", "as in NumPy"),
    Difference("mx.matmul(mx.array([1, 2]), mx.array([3, 4]))", "ValueError", "integers have products, too"),
    Difference("mx.conv1d(mx.array([[[1], [2]]]), mx.array([[[3]]])).dtype", "ValueError", "and convolutions"),
    Difference("mx.conv_transpose1d(mx.ones((1, 4, 1)), mx.ones((1, 1, 1)), 2, 1).shape", "(1, 3, 1)",
               "what `conv1d` makes 4 of"),
    Difference("mx.fast.rms_norm(mx.array([1, 1]), None, 0.0).dtype", "ValueError", "and norms, in float32"),
    Difference("(lambda x: x.__setitem__(x > 1, mx.array([5, 6])) or x)(mx.array([1, 2]))",
               "array([1, 5], dtype=int32)", "one value for each that is chosen, as in NumPy"),
    Difference("str(mx.arange(8))", "array([0, 1, 2, ..., 5, 6, 7], dtype=int32)", "as in NumPy"),
    Difference("type(np.sin(mx.array([0.0]))).__name__", "ndarray", "universal functions of NumPy are smelt's"),
    Difference("mx.grad(lambda x: mx.sin(np.float64(2) * x).sum())(mx.array([0.0]))", "array([0], dtype=float32)",
               "NumPy's numbers are operands; MLX's product is NumPy's array, a constant"),
    Difference("mx.load('missing.npy')", "RuntimeError", "as by `open`"),
    Difference("mx.linalg.cholesky(-mx.eye(2), stream=mx.cpu)[0]", "array([-1, 0], dtype=float32)",
               "it is not positive definite"),
    Difference("mx.compile(lambda x, y: x)(mx.array(1), object())", "ValueError", "any object is a static argument"),
    Difference("mx.compile(lambda x: x.item())(mx.array(1))", "ValueError", "`TraceError` is both"),
    Difference("mx.grad(lambda x: mx.async_eval(x) or x)(mx.array(1.0))", "ValueError", "as `eval` does"),
    Difference("mx.jvp(mx.max, [mx.array([1.0, 1.0])], [mx.array([1.0, 3.0])])[1][0]", "array(1, dtype=float32)",
               "equal elements share the tangent, as they share the gradient"),
    Difference("mx.grad(lambda y: mx.zeros(1).at[mx.array([0, 0])].maximum(y).sum())(mx.array([1.0, 1.0]))",
               "array([1, 1], dtype=float32)", "equal candidates share the gradient"),
    Difference("mx.grad(lambda x: mx.linalg.norm(x))(mx.zeros(2))", "array([nan, nan], dtype=float32)",
               "the subgradient of least norm"),
    Difference("mx.grad(lambda x: (x.sum(), x))(mx.array([1.0]))", "ValueError",
               "the first result, as by `value_and_grad`"),
    Difference("mx.grad(mx.sum)(mx.array([1, 2]))", "array([1, 1], dtype=int32)", "integers have no derivatives"),
    Difference("mx.vjp(lambda x: 2 * x, [mx.array(1)], [mx.array(1)])[1][0]", "array(2, dtype=int32)",
               "of `vjp` and `jvp` they are constants"),
    Difference("mx.grad(lambda x: nn.step(x).sum())(mx.array([1.0]))", "array([0], dtype=float32)",
               "nor have functions to integers"),
    Difference('mx.grad(lambda d: d["x"] * d["n"])({"x": mx.array(1.0), "n": 2})["n"]', "ValueError",
               "leaves that are no arrays stay as they are"),
    Difference("mx.grad(mx.arccosh)(mx.array(-2.0))", "array(0.57735, dtype=float32)",
               "arccosh has no value there, so no slope"),
    Difference("mx.grad(nn.elu)(mx.array(100.0))", "array(nan, dtype=float32)", "also `celu` and `selu`"),
    Difference("mx.grad(nn.celu)(mx.array(0.0))", "array(0, dtype=float32)", "there is no bend"),
    Difference("mx.grad(lambda x: nn.prelu(x, mx.array(0.25)))(mx.array(0.0))", "array(1.25, dtype=float32)",
               "one of the slopes beside it, not their sum"),
    Difference('nn.Upsample(2, "linear")(mx.ones((1, 2, 2, 1), mx.float16)).dtype', "float32",
               "half precision stays what it is"),
    Difference("nn.MaxPool1d(3)(mx.ones((1, 2, 1))).shape", "(1, 0, 1)", "as for convolutions, in both"),
    Difference("type(tree_map(lambda x: x, nn.Linear(1, 1))).__name__", "dict", "trees keep their types"),
    Difference('"stride" in nn.Conv2d(1, 1, 1)', "True", "tuples of numbers are no entries"),
    Difference('optim.Adam(0.1).apply_gradients({"w": mx.ones(2)}, {"v": mx.ones(2)})', "KeyError",
               "the message names the path"),
]  # fmt: skip


def outcome(expression: str, package: str) -> str:
    """What an expression is in a package, as text; of an error, the builtin that it is first of all."""
    core = importlib.import_module(f"{package}.core" if package == "mlx" else package)
    nn, optim, utils = (importlib.import_module(f"{package}.{name}") for name in ("nn", "optimizers", "utils"))
    trees = {name: getattr(utils, name) for name in ("tree_map", "tree_reduce")}
    names = SimpleNamespace(mx=core, nn=nn, optim=optim, np=np, math=math, **trees)
    try:
        found: Any = eval(expression, vars(names))
        return str(found).replace("mlx.core.", "").replace("smelt.", "").replace("-nan", "nan")
    except Exception as error:
        return next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins")


def table() -> str:
    """The rows, with what smelt gives."""
    lines = ["| expression | MLX 0.32.4 | smelt | |", "| --- | --- | --- | --- |"]
    for row in DIFFERENCES:
        found = outcome(row.expression, "smelt")
        lines.append(f"| `{row.expression}` | `{row.mlx}` | `{found}` | {row.why} |")
    return "\n".join(lines) + "\n"


def with_table(page: str) -> str:
    """docs/from-mlx.md with the table between its marks."""
    start, end = (page.index(mark) for mark in MARKS)
    return f"{page[:start]}{MARKS[0]}\n{table()}{page[end:]}"
