"""Copies and pickles of every kind of public object: they work, or the error says what has none."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import smelt
from smelt import nn, optimizers
from smelt.ir.errors import SmeltError


def square(x: smelt.array) -> smelt.array:
    return (x * x).sum()


def imported(folder: Path) -> Any:
    smelt.export_function(str(folder / "f.smelt"), square, smelt.ones(3))
    return smelt.import_function(str(folder / "f.smelt"))


WRAPPERS = (smelt.checkpoint, smelt.custom_function, smelt.custom_vjp, smelt.custom_jvp, smelt.compile)
FUNCTIONS = {
    f"{wrap.__name__} of {f.__name__}": (lambda wrap=wrap, f=f: wrap(f))
    for wrap in WRAPPERS
    for f in (smelt.sin, smelt.sum, smelt.softmax, smelt.matmul, square, nn.relu)
} | {"checkpoint twice": lambda: smelt.checkpoint(smelt.checkpoint(smelt.cos)), "a function": lambda: smelt.exp}
VALUES: dict[str, Callable[[], Any]] = {
    "dtype": lambda: smelt.bfloat16, "category": lambda: smelt.floating, "device": lambda: smelt.cpu,
    "stream": lambda: smelt.new_stream(smelt.cpu), "type": lambda: smelt.ShapeDtype((2,), smelt.int8),
    "finfo": lambda: smelt.finfo(smelt.float16), "iinfo": lambda: smelt.iinfo(smelt.int8),
}  # fmt: skip
COPIES: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda x: pickle.loads(pickle.dumps(x)), "copy": copy.copy, "deepcopy": copy.deepcopy
}  # fmt: skip


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("what", FUNCTIONS)
def test_functions(what: str, how: str) -> None:
    made = FUNCTIONS[what]()
    x = (smelt.array([[1.0, 2.0], [3.0, 4.0]]),) * (2 if "matmul" in what else 1)
    want = made(*x)
    try:
        found = COPIES[how](made)
    except pickle.PicklingError as error:  # found by its name, which is that of the function inside
        assert how == "pickle" and "compile" in what and "compile" in str(error)
        return
    np.testing.assert_array_equal(np.array(found(*x)), np.array(want))


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("what", VALUES)
def test_values(what: str, how: str) -> None:
    made = VALUES[what]()
    assert repr(COPIES[how](made)) == repr(made) and type(COPIES[how](made)) is type(made)


@pytest.mark.parametrize("how", COPIES)
def test_arrays_and_what_has_them(how: str) -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm(4), nn.relu, nn.Dropout(0.5), nn.Linear(4, 1)).eval()
    step = optimizers.Adam(0.1)
    step.update(model, model.parameters())
    x = smelt.arange(6.0).reshape(2, 3)
    for make in (lambda: x * 2, lambda: smelt.random.key(3), lambda: x.astype(smelt.bfloat16), lambda: x[0, 0]):
        made = make()
        found = COPIES[how](made)
        assert found.dtype == made.dtype and found.tolist() == made.tolist()
    assert COPIES[how](model)(x).tolist() == model(x).tolist()
    assert COPIES[how](step).state["step"].item() == 1


def test_what_belongs_to_its_process(tmp_path: Path) -> None:
    traced = smelt.compile(square).trace(smelt.ones(3))
    for made in (traced, traced.lower(), traced.lower().compile(), imported(tmp_path)):
        assert copy.copy(made) is made and copy.deepcopy([made])[0] is made
        with pytest.raises(SmeltError, match=f"a {type(made).__name__} belongs to this process") as info:
            pickle.dumps({"of": made})
        assert isinstance(info.value, TypeError) and "export_function" in str(info.value)
