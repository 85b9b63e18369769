"""Calls that a function does not take: which argument is wrong, and what other libraries' keyword is called here."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, TypeVar

from .errors import ArgumentTypeError, SmeltError, at_user_line, did_you_mean
from .flags import public_name

__all__: list[str] = []

F = TypeVar("F", bound=Callable[..., Any])

#: Keywords of NumPy, PyTorch, JAX and TensorFlow, and what functions may call them here: the first that one has.
_HERE = {
    there: here.split()
    for there, here in {
        **dict.fromkeys(("dim", "dims", "dimension", "dimensions", "reduction_indices", "perm"), "axis axes"),
        **dict.fromkeys(("keepdim", "keep_dims", "keep_dim"), "keepdims"),
        **dict.fromkeys(("size", "sizes", "newshape", "new_shape", "output_shape", "out_shape"), "shape"),
        **dict.fromkeys(("generator", "rng", "random_state", "rng_key", "prng"), "key"),
        **dict.fromkeys(("sections", "split_size", "chunks", "num_or_size_splits"), "indices_or_sections"),
        **dict.fromkeys(("split_size_or_sections", "indices"), "indices_or_sections"),
        **dict.fromkeys(("other", "tensor2", "mat2", "vec2", "x2"), "b x2 y c"),
        **dict.fromkeys(("value", "val", "constant"), "fill_value values constant_values"),
        **dict.fromkeys(("std", "stddev", "sigma"), "scale"), **dict.fromkeys(("probs", "prob"), "p"),
        **dict.fromkeys(("func", "function", "body"), "fun f fn body_fun"),
        **dict.fromkeys(("in_features", "input_size", "in_dim", "n_in"), "input_dims input_size in_channels"),
        **dict.fromkeys(("out_features", "out_dim", "units", "features", "n_out"), "output_dims out_channels"),
        **dict.fromkeys(("normalized_shape", "embed_dim", "embedding_dim", "d_model", "num_features"), "dims"),
        **dict.fromkeys(("num_channels", "hidden_size", "hidden_dim"), "dims hidden_size"), "nhead": "num_heads",
        "lr": "learning_rate", "target": "targets", "preds": "predictions", "rate": "lam p", "probability": "p",
        "axis": "axes", "axes": "axis", "dim0": "axis1", "dim1": "axis1", "dim2": "axis2", "N": "n",
        "dtype": "out_dtype", "out_dtype": "dtype", "end": "stop", "steps": "num", "index": "indices", "mean": "loc",
        "mu": "loc", "minval": "low", "maxval": "high", "unbiased": "correction", "ddof": "correction",
        "correction": "ddof", "num_samples": "shape", "pad": "pad_width", "paddings": "pad_width", "diagonal": "k",
        "shifts": "shift", "multiples": "reps", "largest": "descending", "fn": "fun f", "f": "fun fn", "fun": "f fn",
        "in_dims": "in_axes", "out_dims": "out_axes", "argnum": "argnums", "strides": "stride",
        "window_strides": "stride", "dilations": "dilation", "epsilon": "eps", "p": "ord", "interpolation": "method",
        "decimals": "ndigits", "init_val": "init", "length": "n", "n": "size", "query": "q", "attn_mask": "mask",
        "element": "x1", "test_elements": "x2",
    }.items()
}  # fmt: skip
#: What others call the first argument, which often has no name here.
_FIRST = frozenset([
    "a", "a1", "a_tuple", "arr", "array", "arrays", "ary", "input", "input_tensor", "logits", "m", "object", "obj",
    "operand", "self", "sample", "tensor", "tensors", "tup", "v", "values", "x", "X", "x1",
])  # fmt: skip
#: What no function here has, and why.
_NOWHERE = {
    "requires_grad": "derivatives are taken by smelt.grad",
    "ignore_index": "keep = targets != index, then smelt.where(keep, targets, 0) for targets, keep as weights, or "
    "factor of the losses with reduction='none', and a division by keep.sum()",
    "padding_idx": "smelt.where(indices[..., None] == index, 0, layer(indices)) leaves it out",
    "where": "smelt.where(mask, x, …) makes what is left out harmless before",
    "device": "what is computed under `with smelt.stream(device):` is on that device",
    "order": "the order in memory is no part of an array",
    "out": "arrays do not change; assign the result, out[...] = result",
    "kind": "equal elements keep their order",
    "optimize": "the order of products is found",
    "rcond": "here it is rtol", "tol": "rtol is relative to the largest singular value",
    "hermitian": "such matrices are computed as others are",
    "lower": "upper= says the opposite, UPLO='L' the same",
    "assume_a": "smelt.linalg.cho_solve(smelt.linalg.cho_factor(a), b) for positive definite matrices",
    "pivoting": "columns stay in their order", "return_rank": "smelt.linalg.matrix_rank",
    "ndmin": "smelt.atleast_2d(x), smelt.atleast_3d(x)",
    "approximate": "smelt.nn.gelu_approx computes by tanh",
    **dict.fromkeys(("overwrite_a", "overwrite_b", "overwrite_input"), "no argument is written over"),
    "check_finite": "nothing is checked",
    **dict.fromkeys(("casting", "subok", "memory_format", "layout", "pin_memory", "sharding"), "it is left out here"),
}


def keywords_explained(function: F, name: str = "") -> F:
    """`function`, whose errors about arguments that it does not take are errors of smelt, with the user's line and
    the keyword that it has instead. They call it `name`, or what users call it.

    >>> import smelt
    >>> try:
    ...     smelt.ones((2, 3)).sum(dim=1)
    ... except TypeError as error:
    ...     print(str(error).partition("; its")[0])
    smelt.sum: got an unexpected keyword argument 'dim'; here it is axis
    """

    public = name or public_name(function)

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs) if kwargs else function(*args)
        except TypeError as error:
            if not isinstance(error, SmeltError) and (problem := misfit(function, args, kwargs)):
                raise ArgumentTypeError(at_user_line(f"smelt.{public}: {problem}")) from None
            raise

    return called  # type: ignore[return-value]


#: The code of the functions that `keywords_explained` makes.
_CALLED = keywords_explained(at_user_line).__code__


def explain_keywords(names: dict[str, Any], public: str = "") -> None:
    """Put `keywords_explained` of its public functions, or of those listed, into a module."""
    for name in public.split() or names["__all__"]:
        found = names[name]
        if type(found) is FunctionType and found.__module__ == names["__name__"] and not _is_explained(found):
            names[name] = keywords_explained(found)


def explain_methods(owner: type) -> None:
    """The same for the public methods that a class defines itself."""
    for name, found in list(vars(owner).items()):
        if type(found) is FunctionType and not name.startswith("_"):
            setattr(owner, name, keywords_explained(found, f"{owner.__name__}.{name}"))


def _is_explained(function: Callable[..., Any]) -> bool:
    """Whether that is done by something that the function wraps already."""
    inner = getattr(function, "__wrapped__", None)
    return getattr(function, "__code__", None) is _CALLED or (inner is not None and _is_explained(inner))


def misfit(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """What is wrong with the arguments of a call, and what the function takes; "" if they fit."""
    signature = inspect.signature(function)
    try:
        signature.bind(*args, **kwargs)
        return ""
    except TypeError as error:
        problem = str(error)
    known = {name: p for name, p in signature.parameters.items() if name != "self"}
    named = [name for name, p in known.items() if p.kind not in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if unknown := next((name for name in kwargs if name not in named), ""):
        problem = _unexpected(unknown, list(known), named)
    listed = list(known)
    by_name = [name for name, p in known.items() if p.kind is p.KEYWORD_ONLY]
    if by_name and not any(p.kind is p.VAR_POSITIONAL for p in known.values()):
        listed.insert(listed.index(by_name[0]), "*")
    return f"{problem}; its parameters are {', '.join(listed) or 'none'}"


def unexpected(unknown: str, known: Sequence[str], named: Sequence[str]) -> str:
    """What is wrong with a keyword that is none of the `known` parameters, or none of those that are `named`."""
    return f"{_unexpected(unknown, known, named)}; its parameters are {', '.join(known)}"


def _unexpected(unknown: str, known: Sequence[str], named: Sequence[str]) -> str:
    return f"got an unexpected keyword argument {unknown!r}{_instead(unknown, known, named)}"


def _instead(unknown: str, known: Sequence[str], named: Sequence[str]) -> str:
    """The end of a message: what is written instead of a keyword."""
    if here := next((name for name in _HERE.get(unknown, ()) if name in known), ""):
        return f"; here it is {here}" + (", which is given by its place" if here not in named else "")
    if unknown in known:
        return "; it is given by its place, without a name"
    if unknown in _FIRST and known:
        return f"; here it is {known[0]}" if known[0] in named else "; the first argument is given without a name"
    if unknown in _NOWHERE:
        return f"; {_NOWHERE[unknown]}"
    return did_you_mean(unknown, named)
