"""A program that ends while threads of it are inside of smelt: ``ending_program.py WORK END SECONDS``.

Daemon threads do WORK until then. They write nothing of their end.
"""

from __future__ import annotations

import atexit
import itertools
import os
import signal
import sys
import threading
import time
from collections.abc import Callable

if sys.argv[2] == "handlers":
    atexit.register(lambda: compute())  # registered first: it runs after other threads were told to end

import smelt
from smelt.lazy import asynchrony

sys.setswitchinterval(1e-5)
asynchrony.WORTH_IT = 0  # everything goes to the worker
count = itertools.count(1)


class Pair:
    """A tree whose functions are Python's, which a library in C++ calls."""

    def __init__(self, x: smelt.array, y: smelt.array):
        self.x, self.y = x, y


def trees() -> None:
    tree = [{"a": Pair(smelt.ones(2), smelt.ones(3)), "b": [1.0, None, (smelt.ones(()),)]}] * 4
    smelt.utils.tree_map(lambda x: x, tree)


class Name:
    """A key of dicts that is equal to others by functions in Python."""

    def __init__(self, text: str):
        self.text = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Name) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __lt__(self, other: Name) -> bool:
        return self.text < other.text


@smelt.compile
def _product(tree: dict) -> smelt.array:
    return tree[Name("x")] * tree[Name("y")]


def calls() -> None:
    _product({Name("x"): smelt.ones(3), Name("y"): smelt.ones(3)})
    _product({Name("x"): smelt.ones(next(count) % 4 + 1), Name("y"): smelt.ones(())})


def lazily() -> None:
    n = next(count) % 50 + 1
    x = smelt.ones((n, 7))
    smelt.eval(smelt.tanh(x @ x.T).sum() + [n * x[0]][0])


def gradients() -> None:
    x = smelt.ones((next(count) % 50 + 1, 7))
    smelt.eval(smelt.grad(lambda p: (smelt.tanh(p["w"]) * p["b"]).sum())({"w": x, "b": x * 2}))


def compiles() -> None:
    n = next(count)
    f = smelt.compile(lambda x: smelt.exp(x * n).sum() + smelt.tanh(x) * (n + 1))
    smelt.eval(f(smelt.ones((3000, 70))))


def asynchronously() -> None:
    x = smelt.ones((120, 120)) * 0.01 * next(count)
    for _ in range(5):
        x = smelt.sin(x @ x)
    smelt.async_eval({"x": x, "y": [x + 1]})


WORK: dict[str, Callable[[], None]] = {
    "trees": trees,
    "calls": calls,
    "lazily": lazily,
    "gradients": gradients,
    "compiles": compiles,
    "asynchronously": asynchronously,
}


def repeat(work: Callable[[], None]) -> None:
    while True:
        work()


def begin(work: Callable[[], None]) -> None:
    for _ in range(3):
        threading.Thread(target=repeat, args=(work,), daemon=True).start()


def compute() -> None:
    lazily()
    smelt.eval(smelt.compile(lambda x: smelt.exp(x).sum() * x)(smelt.ones((300, 70))))


def end(how: str) -> None:
    if how == "exit":
        sys.exit(3)
    if how == "at once":
        os._exit(3)
    if how == "error":
        raise ValueError("an error")
    if how == "interrupt":
        signal.raise_signal(signal.SIGINT)
    if how == "handlers":
        atexit.register(compute)


def main() -> None:
    work, how, seconds = WORK[sys.argv[1]], sys.argv[2], float(sys.argv[3])
    begin(work)
    time.sleep(seconds)
    if how == "fork":  # the child ends with threads of its own
        child = os.fork()
        if not child:
            begin(work)
            time.sleep(0.1)
            lazily()
            sys.exit(3)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
        sys.exit(3)
    end(how)


main()
