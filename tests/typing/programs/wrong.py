"""What checkers refuse: each line that says so, and no other."""

from __future__ import annotations

import smelt as mx
from smelt.utils import tree_map

x = mx.ones(3)


@mx.compile
def f(x: mx.array, k: int = 2) -> mx.array:
    return x * k


mx.nothing(x)  # refused
x.summ()  # refused
print(x + "a")  # refused
print(x["key"])  # refused
mx.zeros("shape")  # refused
mx.exp(x, axis=0)  # refused
mx.sum(x, axis="rows")  # refused
x.astype(3)  # refused
f(x, "two")  # refused
f(x, 2, 3)  # refused
mx.grad(f)("text")  # refused
mx.vmap(f)(x, k="two")  # refused
mx.compile(f, pipeline=3)  # refused
mx.scan(1, x, x)  # refused
tree_map(x, [x])  # refused
mx.eval(x, [x], {"a": (x, None)})
mx.exp([1.0, 2.0])
print(x @ [1, 2, 3], x * "a".count("a"))
