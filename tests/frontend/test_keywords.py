"""Keywords of other libraries: each function and method that is given one says what it is called here."""

from __future__ import annotations

import inspect
from types import FunctionType
from typing import Any

import pytest

import smelt
from smelt.ir.errors import ArgumentTypeError

MODULES = ("", "linalg", "fft", "random", "fast", "nn", "nn.losses")
#: A keyword, what it is called here, and the functions that have the latter.
PAIRS = {"dim": "axis", "keepdim": "keepdims", "size": "shape", "generator": "key", "in_dims": "in_axes"}
X = smelt.ones((2, 3))


def public() -> list[tuple[str, Any]]:
    found = []
    for module in MODULES:
        owner = smelt
        for part in module.split("."):
            owner = getattr(owner, part) if part else owner
        for name in owner.__all__:
            if type(function := getattr(owner, name)) is FunctionType:
                found.append((f"{module}.{name}".lstrip("."), function))
    return found


def takes_any(function: Any) -> bool:
    return any(p.kind is p.VAR_KEYWORD for p in inspect.signature(function).parameters.values())


@pytest.mark.parametrize(("there", "here"), PAIRS.items())
def test_each_function_names_its_own_keyword(there: str, here: str) -> None:
    asked = 0
    for name, function in public():
        parameters = inspect.signature(function).parameters
        if here in parameters and there not in parameters and not takes_any(function):
            with pytest.raises(TypeError, match=rf"unexpected keyword argument '{there}'; here it is {here}") as caught:
                function(**{there: 1})
            assert isinstance(caught.value, ArgumentTypeError), name
            assert "test_keywords.py" in str(caught.value), name
            asked += 1
    assert asked >= {"dim": 80, "keepdim": 25, "size": 25, "generator": 25}.get(there, 1)


#: What defines no parameter that others call otherwise, or is called very often: only Python's own words.
PYTHONS_WORDS = {"eval", "async_eval", "synchronize", "depends"}


def test_no_public_function_has_only_pythons_words() -> None:
    bare = []
    for name, function in public():
        if takes_any(function) or not set(inspect.signature(function).parameters) & {"a", "x", "axis", "shape", "key"}:
            continue
        try:
            function(nonsense_of_nobody=1)
        except ArgumentTypeError:
            continue
        except TypeError:
            bare.append(name)
    assert not bare


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: X.sum(dim=1), "smelt.sum: got an unexpected keyword argument 'dim'; here it is axis"),
        (lambda: X.max(axis=1, keepdim=True), "here it is keepdims"),
        (lambda: smelt.mean(input=X), "the first argument is given without a name"),
        (lambda: smelt.stack(tensors=[X, X]), "here it is arrays"),
        (lambda: smelt.add(X, other=X), "here it is b"),
        (lambda: X.reshape(shape=(3, 2)), "given by its place"),
        (lambda: X.transpose(axes=(1, 0)), "given by its place"),
        (lambda: smelt.array([1], requires_grad=True), "derivatives are taken by smelt.grad"),
        (lambda: smelt.argmax(X, where=X > 0), "smelt.where"),
        (lambda: X.at[0].set(values=1), "unexpected keyword argument 'values'"),
        (lambda: smelt.softmax(X, axes=-1), "here it is axis"),
        (lambda: smelt.topk(X, 2, axsi=1), "did you mean axis"),
        (lambda: X.sum(1, False, 3), "too many positional arguments; its parameters are a, axis, keepdims, *, dtype"),
        (lambda: smelt.unique(X, True), "size must be an int, is True; name return_index=True"),
        (lambda: smelt.concatenate(), "missing a required argument: 'arrays'"),
        (lambda: smelt.nn.Linear(in_features=3, out_features=4), "here it is input_dims"),
        (lambda: smelt.optimizers.SGD(lr=0.1), "here it is learning_rate"),
        (lambda: smelt.compile(lambda x: x.sum(dim=0))(X), "here it is axis"),
    ],
)
def test_what_is_said(call: Any, said: str) -> None:
    with pytest.raises(ArgumentTypeError) as caught:
        call()
    assert said in str(caught.value)
    assert "test_keywords.py" in str(caught.value)


def test_errors_of_functions_of_the_user_stay_as_they_are() -> None:
    def refuses(x: Any) -> Any:
        raise TypeError("its own")

    for call in (smelt.grad(refuses), smelt.vmap(refuses), smelt.compile(refuses)):
        with pytest.raises(TypeError, match=r"^its own"):
            call(X)
    with pytest.raises(TypeError, match="required positional argument"):
        smelt.grad(lambda x, y: x)(smelt.array(1.0))
