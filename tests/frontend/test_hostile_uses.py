"""Hostile arguments of what takes functions, trees, files and processes: transforms, control flow, export, collectives.

A use is a function of one value. What comes back is an error that names the line of the user, or a result.
"""

from __future__ import annotations

import io
import signal
from collections.abc import Callable
from typing import Any

import pytest

import smelt
from smelt import utils
from smelt.ir.errors import SmeltError

from .test_hostile import HOSTILE, SECONDS, TooLong, force, limits, little_memory

__all__ = ["limits", "little_memory"]  # for pytest

pytestmark = pytest.mark.usefixtures("small_heap")  # memory that is short has garbage collected

X, ROWS, TRUE = smelt.array([1.0, 2.0, 3.0]), smelt.ones((2, 3)), smelt.array(True)
ATTENTION = [smelt.ones((1, 1, 2, 4))] * 3
VALUES = ("None", "text", "object", "slice", "iterator", "objects", "list of None", "ragged", "endless", "dict",
          "set", "-7", "99", "1.5", "nan", "huge", "complex", "no tuple", "twice", "empty array", "array", "integers",
          "NumPy array", "refusing", "lying", "stand-in in a list", "huge shape")  # fmt: skip


def square_sum(x: smelt.array) -> smelt.array:
    return (x * x).sum()


def square(x: smelt.array) -> smelt.array:
    return x * x


def own(rule: str, value: Any, use: Callable[[Any], Any]) -> Any:
    """A function with a rule of its own that returns a value, used."""
    made = smelt.custom_function(square)
    getattr(made, rule)(lambda *args: value)
    return use(made)


def exported(*args: Any, **kwargs: Any) -> None:
    smelt.export_function("a.smelt", *args, **kwargs)


def called_again(value: Any) -> Any:
    exported(square, X)
    return smelt.import_function("a.smelt")(value)


USES: dict[str, Callable[[Any], Any]] = {
    "grad: argnums": lambda v: smelt.grad(square_sum, argnums=v)(X),
    "grad: argument": lambda v: smelt.grad(square_sum)(v),
    "grad: argnames": lambda v: smelt.grad(square_sum, argnums=[], argnames=v)(x=X),
    "grad: result": lambda v: smelt.grad(lambda x: v)(X),
    "value_and_grad: result": lambda v: smelt.value_and_grad(lambda x: (v, x))(X),
    "vmap: in_axes": lambda v: smelt.vmap(square, in_axes=v)(ROWS),
    "vmap: one of in_axes": lambda v: smelt.vmap(smelt.add, in_axes=(0, v))(ROWS, ROWS),
    "vmap: out_axes": lambda v: smelt.vmap(square, out_axes=v)(ROWS),
    "vmap: result": lambda v: smelt.vmap(lambda x: v)(ROWS),
    "vmap: argument": lambda v: smelt.vmap(square)(v),
    "jvp: tangents": lambda v: smelt.jvp(square, [X], v), "jvp: tangent": lambda v: smelt.jvp(square, [X], [v]),
    "vjp: cotangents": lambda v: smelt.vjp(square, [X], v), "vjp: cotangent": lambda v: smelt.vjp(square, [X], [v]),
    "compile: argument": lambda v: smelt.compile(lambda x: X)(v),
    "compile: result": lambda v: smelt.compile(lambda x: v)(X),
    "compile: shapeless": lambda v: smelt.compile(square, shapeless=v)(X),
    "checkpoint: result": lambda v: smelt.grad(smelt.checkpoint(lambda x: v))(X),
    "vjp of one's own": lambda v: own("vjp", v, lambda f: smelt.grad(lambda x: f(x).sum())(X)),
    "jvp of one's own": lambda v: own("jvp", v, lambda f: smelt.jvp(f, [X], [X])),
    "vmap of one's own": lambda v: own("vmap", v, lambda f: smelt.vmap(f)(ROWS)),
    "cond: predicate": lambda v: smelt.cond(v, square, smelt.negative, X),
    "cond: result": lambda v: smelt.cond(TRUE, lambda x: v, square, X),
    "switch: index": lambda v: smelt.switch(v, [square, smelt.negative], X),
    "switch: branches": lambda v: smelt.switch(0, v, X),
    "scan: result": lambda v: smelt.scan(lambda c, x: v, X, ROWS),
    "scan: init": lambda v: smelt.scan(lambda c, x: (c, x), v, ROWS),
    "scan: elements": lambda v: smelt.scan(lambda c, x: (c, x), X, v),
    "fori_loop: bound": lambda v: smelt.fori_loop(v, 3, lambda i, x: x, X),
    "fori_loop: result": lambda v: smelt.fori_loop(0, 3, lambda i, x: v, X),
    "jacrev: result": lambda v: smelt.jacrev(lambda x: v)(X),
    "hessian: result": lambda v: smelt.hessian(lambda x: v)(X),
    "linearize: result": lambda v: smelt.linearize(lambda x: v, X), "depends": lambda v: smelt.depends(X, v),
    "save": lambda v: smelt.save("a.npy", v), "savez": lambda v: smelt.savez("a.npz", a=v),
    "save_safetensors": lambda v: smelt.save_safetensors("a.safetensors", v),
    "save_safetensors: array": lambda v: smelt.save_safetensors("a.safetensors", {"a": v}),
    "save_safetensors: metadata": lambda v: smelt.save_safetensors("a.safetensors", {"a": X}, metadata={"a": v}),
    "save_gguf: array": lambda v: smelt.save_gguf("a.gguf", {"a": v}),
    "save_gguf: metadata": lambda v: smelt.save_gguf("a.gguf", {"a": X}, metadata={"a": v}),
    "load":
        lambda v: smelt.load(io.BytesIO(b"x" if isinstance(v, (type(None), bool)) else bytes(str(type(v)), "utf8"))),
    "export: argument": lambda v: exported(lambda *x: X, v),
    "export: keyword": lambda v: exported(lambda x, k: x, X, k=v),
    "export: result": lambda v: exported(lambda x: v, X), "import: argument": called_again,
    "export_to_dot": lambda v: smelt.export_to_dot("a.dot", v),
    "all_sum": lambda v: smelt.distributed.all_sum(v),
    "all_sum: group": lambda v: smelt.distributed.all_sum(X, group=v),
    "send": lambda v: smelt.distributed.send(X, v),
    "recv: shape": lambda v: smelt.distributed.recv(v, smelt.float32, 0),
    "recv: dtype": lambda v: smelt.distributed.recv((2,), v, 0),
    "init: backend": lambda v: smelt.distributed.init(backend=v),
    "split: color": lambda v: smelt.distributed.init().split(v),
    "split: key": lambda v: smelt.distributed.init().split(0, v),
    "key": lambda v: smelt.random.normal((2,), key=v),
    "categorical": lambda v: smelt.random.categorical(ROWS, num_samples=v),
    "multivariate_normal": lambda v: smelt.random.multivariate_normal(X, v),
    "tree_unflatten": lambda v: utils.tree_unflatten([(v, X)]),
    "tree_unflatten: pair": lambda v: utils.tree_unflatten([v]),
    "tree_map": lambda v: utils.tree_map(lambda a, b: a, {"a": X}, v),
    "tree_merge": lambda v: utils.tree_merge({"a": X}, v),
    "update": lambda v: X.at[v].add(1.0), "update: value": lambda v: X.at[0].add(v), "read": lambda v: ROWS[0, v],
    "read a slice": lambda v: ROWS[v:], "write": lambda v: smelt.zeros(3).__setitem__(v, 1.0),
    "written": lambda v: smelt.zeros(3).__setitem__(0, v),
    "view": lambda v: X.view(v),
    "einsum": lambda v: smelt.einsum(v, X),
    "rms_norm": lambda v: smelt.fast.rms_norm(X, v, 1e-5),
    "layer_norm": lambda v: smelt.fast.layer_norm(X, None, v, 1e-5),
    "rope: dims": lambda v: smelt.fast.rope(ROWS, v, traditional=False, base=1e4, scale=1.0, offset=0),
    "rope: offset":
        lambda v: smelt.fast.rope(smelt.ones((1, 2, 4)), 4, traditional=False, base=1e4, scale=1.0, offset=v),
    "rope: base": lambda v: smelt.fast.rope(smelt.ones((1, 2, 4)), 4, traditional=False, base=v, scale=1.0, offset=0),
    "attention: scale": lambda v: smelt.fast.scaled_dot_product_attention(*ATTENTION, scale=v),
    "attention: mask": lambda v: smelt.fast.scaled_dot_product_attention(*ATTENTION, scale=1.0, mask=v),
    "attention: sinks": lambda v: smelt.fast.scaled_dot_product_attention(*ATTENTION, scale=1.0, sinks=v),
    "metal_kernel: inputs": lambda v: smelt.fast.metal_kernel("k", v, ["b"], "b[0] = 1;"),
    "metal_kernel: source": lambda v: smelt.fast.metal_kernel("k", [], ["b"], v),
}  # fmt: skip


def problem(use: Callable[[Any], Any], value: Any) -> str:
    """What is wrong with how a use ends; nothing, if nothing is."""
    signal.alarm(SECONDS)
    try:
        force(use(value))
    except SmeltError as error:
        message = str(error)
        if __file__ not in message:
            return f"the message has no line of the user: {message[:200]}"
        return "" if len(message) < 1500 else f"a message of {len(message)} characters"
    except TooLong:
        return "it takes too long"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    finally:
        signal.alarm(0)
    return ""


@pytest.mark.parametrize("name", USES)
def test_hostile_uses(name: str) -> None:
    found = [(what, problem(USES[name], HOSTILE[what]())) for what in VALUES]
    assert not (wrong := [f"{what}: {text}" for what, text in found if text]), "\n".join(wrong)


#: Uses of what is no function, or the like, which must fail.
REFUSED: dict[str, Callable[[Any], Any]] = {
    "grad": lambda v: smelt.grad(v)(X), "vmap": lambda v: smelt.vmap(v)(ROWS), "jvp": lambda v: smelt.jvp(v, [X], [X]),
    "compile": lambda v: smelt.compile(v)(X), "checkpoint": lambda v: smelt.checkpoint(v)(X),
    "custom_function": lambda v: smelt.custom_function(v)(X), "cond": lambda v: smelt.cond(TRUE, v, square, X),
    "vjp of one's own": lambda v: smelt.custom_function(square).vjp(v), "scan": lambda v: smelt.scan(v, X, ROWS),
    "while_loop": lambda v: smelt.while_loop(v, square, X), "fori_loop": lambda v: smelt.fori_loop(0, 3, v, X),
    "map": lambda v: smelt.map(v, ROWS),
    "tree_map": lambda v: utils.tree_map(v, {"a": X}),
    "export": lambda v: exported(v, X),
    "tree_map_with_path": lambda v: utils.tree_map_with_path(v, {"a": X}),
    "tree_reduce": lambda v: utils.tree_reduce(v, {"a": X, "b": X}),
    "group": lambda v: smelt.distributed.all_sum(X, group=v), "color": lambda v: smelt.distributed.init().split(v),
    "inputs of a kernel": lambda v: smelt.fast.metal_kernel("k", v, ["b"], "b[0] = 1;"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_function_is_refused(name: str) -> None:
    for what in ("text", "object", "1.5", "nan", "complex", "slice", "array", "NumPy array"):
        with pytest.raises(SmeltError, match=r"smelt.*; at .*test_hostile_uses"):
            force(REFUSED[name](HOSTILE[what]()))
