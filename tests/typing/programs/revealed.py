"""What checkers see: after ``#`` the type that both reveal, or ``mypy | pyright`` where they differ.

mypy sees no types in a lambda that is an argument of overloads.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from typing_extensions import reveal_type

import smelt as mx
from smelt import fast, random
from smelt.utils import register_class, tree_flatten, tree_map


@dataclass
class Params:
    w: mx.array
    b: mx.array


class Pair(NamedTuple):
    a: mx.array


x, n, p = mx.ones((4, 3)), 3, Params(mx.ones(3), mx.ones(()))

# Operators and methods
reveal_type(x * n)  # array
reveal_type(n * x)  # array
reveal_type(2.5 - x)  # array
reveal_type(x * [1, 2, 3])  # array
reveal_type(x @ x.T)  # array
reveal_type(x // 2 % 3)  # array
reveal_type(x == 2)  # array
reveal_type(x >= x)  # array
reveal_type(-abs(~x))  # array
reveal_type(x[0, ..., None, 1:])  # array
reveal_type(list(x))  # list[array]
reveal_type(x.sum(axis=(0, 1)))  # array
reveal_type(x.reshape(2, -1).transpose(1, 0).at[0].add(1))  # array
reveal_type(x.split(2))  # list[array]
reveal_type(isinstance(x.item(), bool))  # bool
reveal_type(x.item() < 0.5)  # bool
reveal_type(x.shape)  # tuple[int, ...]
reveal_type(x.dtype)  # DType
reveal_type(np.asarray(x))  # ndarray[tuple[Any, ...], dtype[Any]]
reveal_type(float(x[0, 0]))  # float
reveal_type(memoryview(x))  # memoryview[int]

# Functions
reveal_type(mx.matmul(x, x.T))  # array
reveal_type(mx.zeros_like(x).view(mx.int32))  # array
reveal_type(mx.divmod(x, 2))  # tuple[array, array]
reveal_type(mx.float32)  # DType
reveal_type(mx.bool)  # DType
reveal_type(mx.finfo(mx.float32).eps)  # float
reveal_type(mx.hanning(3))  # array
reveal_type(fast.rms_norm(x, None, 1e-5))  # array
reveal_type(random.split(random.key(0)))  # array
reveal_type(mx.stop_gradient({"a": x}))  # dict[str, array]


# Transformations keep signatures
def loss(p: Params, x: mx.array, scale: float = 1.0) -> mx.array:
    return (p.w * x).sum() * scale


reveal_type(mx.grad(loss))  # Function[[Params, x: array, scale: float = ...], Params]
reveal_type(mx.grad(loss)(p, x, scale=2.0))  # Params
reveal_type(mx.grad(loss, argnums=1)(p, x))  # array
reveal_type(mx.grad(loss, argnums=(0, 1))(p, x))  # tuple[Params, array]
reveal_type(mx.grad(loss, argnums=2))  # Function[[p: Params, x: array, scale: float = ...], Any]
reveal_type(mx.value_and_grad(loss)(p, x))  # tuple[array, Params]
reveal_type(mx.value_and_grad(loss, argnums=(0, 1))(p, x))  # tuple[array, tuple[Params, array]]
reveal_type(mx.grad(lambda x: (x * x).sum())(x))  # Any | array
reveal_type(mx.grad(mx.grad(lambda x: (x * x).sum()))(x))  # array
reveal_type(mx.grad(lambda x, y: (x * y).sum(), argnums=(0, 1))(x, x))  # Any | tuple[array, array]
reveal_type(mx.vmap(mx.grad(loss), (None, 0)))  # (Params, x: array, scale: float = ...) -> Params
reveal_type(mx.compile(loss))  # CompiledFunction[[p: Params, x: array, scale: float = ...], array]
reveal_type(mx.compile(mx.grad(loss))(p, x))  # Params
reveal_type(mx.grad(mx.compile(loss))(p, x))  # Params
reveal_type(mx.hessian(lambda x: (x**3).sum())(x))  # Any | array
reveal_type(mx.jacrev(mx.exp)(x))  # array
reveal_type(mx.vjp(mx.exp, [x], [x]))  # tuple[list[array], list[array]]
reveal_type(mx.vjp(mx.exp, [x])[1]([x]))  # list[array]
reveal_type(mx.jvp(mx.exp, [x], [x]))  # tuple[list[array], list[array]]
reveal_type(mx.linearize(loss, p, x)[0])  # array
reveal_type(mx.make_ir(loss))  # (p: Params, x: array, scale: float = ...) -> str


def with_aux(p: Params, x: mx.array) -> tuple[mx.array, dict[str, int]]:
    return loss(p, x), {"steps": 1}


reveal_type(mx.grad(with_aux, has_aux=True)(p, x))  # tuple[Params, dict[str, int]]
reveal_type(mx.value_and_grad(with_aux)(p, x))  # tuple[tuple[array, dict[str, int]], Params]


@mx.compile(inputs=[x])
def compiled(x: mx.array, k: int = 2) -> mx.array:
    return x * k


@partial(mx.compile, outputs=[x])
def partly(x: mx.array) -> mx.array:
    return x


@mx.checkpoint
def checkpointed(x: mx.array, k: int = 2) -> tuple[mx.array, mx.array]:
    return x * k, x


@mx.custom_function
def custom(x: mx.array, k: int) -> mx.array:
    return x * k


@custom.vjp
def custom_vjp(primals: tuple[mx.array, int], cotangent: mx.array, output: mx.array) -> tuple[mx.array, None]:
    return cotangent, None


class Model:
    def __init__(self) -> None:
        self.w = mx.ones(3)

    @mx.compile
    def step(self, x: mx.array) -> mx.array:
        return self.w * x

    @mx.custom_jvp
    def ruled(self, x: mx.array) -> mx.array:
        return self.w * x


reveal_type(compiled(x, k=3))  # array
reveal_type(compiled.trace(x).as_text())  # str
reveal_type(partly(x))  # Any | array
reveal_type(checkpointed)  # (x: array, k: int = ...) -> tuple[array, array]
reveal_type(custom(x, k=2))  # array
reveal_type(custom_vjp)  # custom_function[[x: array, k: int], array]
reveal_type(Model().step(x))  # array
reveal_type(Model().ruled(x))  # array

# Trees and loops
named = {"a": x, "b": x}
reveal_type(tree_map(mx.exp, named))  # dict[str, array]
reveal_type(tree_map(mx.exp, p))  # Params
reveal_type(tree_map(mx.exp, Pair(x)))  # Pair
reveal_type(tree_map(lambda a, b: a + b, p, p))  # Any | Params
reveal_type(tree_map(lambda a: a.shape, p))  # Any
reveal_type(tree_flatten(p))  # list[tuple[str, Any]]
reveal_type(register_class(Params))  # type[Params]
reveal_type(mx.cond(x.sum() > 0, mx.sqrt, mx.exp, x))  # array
reveal_type(mx.cond(x.sum() > 0, lambda a: a + 1, lambda a: 0.0, x))  # Any | array
reveal_type(mx.while_loop(lambda c: c < 5, lambda c: c + 1, 0))  # Any | array
reveal_type(mx.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1]), (x, x)))  # Any | tuple[array, array]
reveal_type(mx.fori_loop(0, 5, lambda i, t: t + i, x))  # Any | array


def step(carry: Params, row: mx.array) -> tuple[Params, mx.array]:
    return carry, row


reveal_type(mx.scan(step, p, x))  # tuple[Params, array]
reveal_type(mx.scan(lambda c, row: (c + row, row), x[0], x))  # tuple[Any, ...] | tuple[array, array]
reveal_type(mx.map(mx.exp, x))  # array
reveal_type(mx.associative_scan(mx.add, x))  # array
