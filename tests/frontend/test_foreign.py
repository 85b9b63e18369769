"""Names of other libraries: the error says what they are here."""

from __future__ import annotations

import functools
import pickle
import re

import pytest

import smelt
from smelt import foreign
from smelt.functions import foreign_methods
from smelt.ir.errors import MissingNameError

OF = {where: [(name, text) for names in found.values() for name, text in names.items()]
      for where, found in {**foreign._LIBRARIES, "smelt.array": foreign_methods.ELSEWHERE}.items()}  # fmt: skip
NAMES = dict(OF["smelt"])


@pytest.mark.parametrize("where", OF)
def test_what_is_named_is_there(where):
    for name, text in OF[where]:
        for path in re.findall(r"\bsmelt\.([\w.]*\w)", text):
            found = smelt
            for part in path.split("."):
                assert hasattr(found, part), f"{name}: {text}"
                found = getattr(found, part)


@pytest.mark.parametrize("name", ["dot", "tensor", "jit", "cat", "conv2", "vdot"])
def test_the_error_says_what_to_write(name):
    with pytest.raises(MissingNameError) as error:
        getattr(smelt, name)
    assert NAMES[name] in str(error.value) and "test_foreign.py" in str(error.value)
    assert isinstance(error.value, AttributeError) and not hasattr(smelt, name)


def test_names_of_linalg():
    with pytest.raises(AttributeError, match=r"smelt\.linalg has no 'schur'; what SciPy .*eigh.*test_foreign"):
        smelt.linalg.schur  # noqa: B018
    with pytest.raises(AttributeError, match=r"did you mean smelt\.linalg\.cholesky\?"):
        smelt.linalg.choleski  # noqa: B018


@pytest.mark.parametrize("where", OF)
def test_names_of_others_are_not_there(where):
    found = {"smelt.array": smelt.ones(2), "smelt.nn.Module": smelt.nn.Linear(2, 2)}.get(where)
    if found is None:
        found = functools.reduce(getattr, where.split(".")[1:], smelt)
    assert not [name for name, _ in OF[where] if hasattr(found, name) or name in dir(found)]


@pytest.mark.parametrize(
    ("use", "says"),
    [
        (lambda: smelt.ones(2).numpy(), r"smelt\.array has no 'numpy'; what PyTorch calls so is numpy\.array\(x\)"),
        (lambda: smelt.ones(2).tanh(), r"smelt\.tanh\(x, …\)"),
        (lambda: smelt.ones(2).block_until_ready(), r"what JAX calls so is smelt\.eval\(x\)"),
        (lambda: smelt.array.unsqueeze, r"smelt\.expand_dims"),
        (lambda: smelt.nn.CrossEntropyLoss(), r"smelt\.nn has no .*smelt\.nn\.losses\.cross_entropy"),
        (lambda: smelt.nn.Lineer(2, 2), r"did you mean smelt\.nn\.Linear\?"),
        (lambda: smelt.nn.init.xavier_uniform_, r"smelt\.nn\.init\.glorot_uniform\(\)\(x\)"),
        (lambda: smelt.nn.losses.mse_los, r"did you mean smelt\.nn\.losses\.mse_loss\?"),
        (lambda: smelt.nn.Linear(2, 2).state_dict(), r"Linear has no attribute 'state_dict'.*parameters\(\)"),
        (lambda: smelt.optimizers.Adam(0.1).zero_grad(), r"Adam has no attribute 'zero_grad'.*value_and_grad"),
        (lambda: smelt.optimizers.SGD(0.1).momentun, r"SGD has no attribute 'momentun'"),
        (lambda: smelt.random.PRNGKey(0), r"what JAX calls so is smelt\.random\.key"),
        (lambda: smelt.optimizers.lr_scheduler, r"smelt\.optimizers\.schedulers"),
        (lambda: smelt.fft.fft3, r"did you mean smelt\.fft\.fft\w*\?"),
        (lambda: smelt.utils.tree_leafs, r"smelt\.utils has no 'tree_leafs'"),
    ],
)
def test_of_arrays_and_of_modules(use, says):
    with pytest.raises(AttributeError, match=rf"{says}.*; at .*test_foreign\.py"):
        use()


@pytest.mark.parametrize(
    ("use", "says"),
    [
        (lambda: smelt.nn.pad, r"smelt\.nn has no 'pad'; there is smelt\.pad"),
        (lambda: smelt.Linear, r"there is smelt\.nn\.Linear"),
        (lambda: smelt.Adam, r"there is smelt\.optimizers\.Adam"),
        (lambda: smelt.nn.mse_loss, r"there is smelt\.nn\.losses\.mse_loss"),
        (lambda: smelt.linalg.einsum, r"smelt\.einsum"),
        (lambda: smelt.random.Adam, r"there is smelt\.optimizers\.Adam"),
        (lambda: smelt.nn.one_hot, r"what PyTorch calls so is labels\[\.\.\., None\]"),
        (lambda: smelt.jacobian, r"what JAX calls so is smelt\.jacrev"),
    ],
)
def test_names_of_another_part_of_smelt(use, says):
    with pytest.raises(MissingNameError, match=rf"{says}.*; at .*test_foreign\.py"):
        use()


@pytest.mark.parametrize(
    ("take", "names"),
    [
        (lambda f, x: f, {
            "view": r"\.trace\(\*args\)\.lower\(\)\.compile\(\)\.view", "lower": r"\.trace\(\*args\)\.lower",
            "as_text": r"\.trace\(\*args\)\.as_text", "jaxpr": r"what JAX calls so is smelt\.compile\(f\)\.trace",
            "tracee": "has no attribute 'tracee'",
        }),
        (lambda f, x: f.trace(x), {"cost": r": \.lower\(\)\.compile\(\)\.cost", "compile": r": \.lower\(\)\.compile"}),
        (lambda f, x: f.trace(x).lower(), {"remarks": r": \.compile\(\)\.remarks", "as_texts": "did you mean as_text"}),
        (lambda f, x: f.trace(x).lower().compile(), {"vieww": "did you mean view", "lower": "no attribute 'lower'"}),
    ],
)  # fmt: skip
def test_names_of_later_stages(take, names):
    stage = take(smelt.compile(lambda x: x * 2), smelt.ones(2))
    for name, says in names.items():
        with pytest.raises(MissingNameError, match=rf"{says}.*; at .*test_foreign\.py"):
            getattr(stage, name)
    assert not hasattr(stage, "__length_hint__") and not hasattr(stage, "_repr_html_")


def test_labels_that_are_left_out():
    logits, targets = smelt.array([[1.0, 0.0], [3.0, 1.0], [0.5, 0.25]]), smelt.array([0, -100, 1])
    with pytest.raises(TypeError, match=r"'ignore_index'; keep = targets != index, .*; its parameters"):
        smelt.nn.losses.cross_entropy(logits, targets, ignore_index=-100)
    keep = targets != -100
    loss = smelt.nn.losses.cross_entropy(logits, smelt.where(keep, targets, 0), keep, reduction="sum") / keep.sum()
    picked = smelt.nn.losses.cross_entropy(logits[[0, 2]], targets[[0, 2]], reduction="mean")
    assert smelt.allclose(loss, picked)


def test_an_attribute_of_a_subclass_comes_first():
    class Named(smelt.array):
        numpy = "mine"

    named = Named([1.0])
    named.grad = 3
    assert (named.numpy, named.grad) == ("mine", 3)


def test_names_that_nobody_has():
    with pytest.raises(AttributeError, match=r"smelt has no 'softmaxx'; did you mean smelt\.softmax\?"):
        smelt.softmaxx  # noqa: B018
    with pytest.raises(AttributeError, match="smelt has no 'qqqqqqq'; at"):
        smelt.qqqqqqq  # noqa: B018
    with pytest.raises(ImportError, match="qqqqqqq"):
        from smelt import qqqqqqq  # noqa: F401


def test_the_reference_leaves_them_out():
    pdoc = pytest.importorskip("pdoc.doc")
    members = pdoc.Class("smelt", "array", smelt.array, ("smelt.lazy.arrays", "array")).members
    assert "@private" in members["numpy"].docstring and "@private" not in members["sum"].docstring


def test_other_parts_are_looked_through_when_the_message_is_read(monkeypatch):
    looked: list[str] = []
    monkeypatch.setattr(foreign, "_said_of_other_parts", lambda name, where: looked.append(name) or "; there is more")
    assert not hasattr(smelt, "unknown_thing") and not hasattr(smelt.linalg, "unknown_thing") and not looked
    with pytest.raises(AttributeError, match=r"no 'unknown_thing'; there is more; at .*test_foreign\.py") as error:
        _ = smelt.unknown_thing
    assert "there is more" in str(pickle.loads(pickle.dumps(error.value)))
