"""Programs that JAX made run with JAX's values, on all devices; and transform like other functions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import smelt
from smelt.ir import stablehlo
from smelt.ir.bytecode import without_attributes

from .programs_of_jax import FOLDER, NAMES, check, program

#: Numbers that the reference rules and the kernels compute from other formulas than JAX.
DEVICES = ("cpu", "metal:sim")


@pytest.fixture
def on_device() -> Iterator[None]:
    before = smelt.default_device()
    yield
    smelt.set_default_device(before)


def test_there_are_forty() -> None:
    assert len(NAMES) >= 40


@pytest.mark.parametrize("name", NAMES)
def test_values(name: str) -> None:
    text, arguments, _ = program(name)
    check(name, smelt.from_stablehlo(text, name=name)(*map(smelt.array, arguments)))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", NAMES)
def test_compiled(name: str, device: str, on_device: None) -> None:
    text, arguments, _ = program(name)
    smelt.set_default_device(device)
    compiled = smelt.compile(smelt.from_stablehlo(text, name=name))
    check(name, compiled(*map(smelt.array, arguments)))


def test_bytecode_is_the_text() -> None:
    text, arguments, _ = program("mlp")
    data = stablehlo.to_bytecode(text)
    assert data.startswith(stablehlo.BYTECODE)
    check("mlp", smelt.from_stablehlo(data)(*map(smelt.array, arguments)))


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.bytecode")))
def test_artifacts_with_notes_on_sharding(name: str) -> None:
    """Calls of LAPACK have attributes in the bytecode of a dialect that the bindings do not have."""
    data = (FOLDER / f"{name}.bytecode").read_bytes()
    assert b"sdy.sharding_rule" in data
    check(name, smelt.from_stablehlo(data)(*map(smelt.array, program(name).arguments)))


def test_damaged_artifacts_with_notes_on_sharding() -> None:
    """Whatever the bytes say, as many come out, or the reader's error; nothing else is raised, and nothing hangs."""
    data = (FOLDER / "cholesky.bytecode").read_bytes()
    rng = np.random.default_rng(0)
    for length in range(0, len(data), 7):
        assert len(without_attributes(data[:length], "sdy")) == length
    for _ in range(2000):
        damaged = bytearray(data)
        for at in rng.integers(0, len(data), 3):
            damaged[at] = rng.integers(0, 256)
        assert len(without_attributes(bytes(damaged), "sdy")) == len(data)
    changed = without_attributes(data, "sdy")
    assert changed != data and without_attributes(changed, "sdy") == changed
    assert without_attributes(data, "affine") == data


def test_gradient_is_that_of_the_framework() -> None:
    """The gradient of the imported forward pass is the imported gradient."""
    for forward, backward in (("layer_norm", "layer_norm_grad"), ("conv_net", "conv_net_grad")):
        f = smelt.from_stablehlo(program(forward).text)
        arguments = [smelt.array(x) for x in program(backward).arguments]
        power = 3 if forward == "layer_norm" else 2
        found = smelt.grad(lambda *a, f=f, p=power: (f(*a) ** p).sum(), argnums=(0, 1, 2))(*arguments)
        check(backward, tuple(found))


def test_counted_loops_differentiate_backwards() -> None:
    f = smelt.from_stablehlo(program("recurrent").text)
    arguments = [smelt.array(x) for x in program("recurrent_grad").arguments]
    found = smelt.grad(lambda *a: f(*a)[1].sum(), argnums=(0, 2))(*arguments)
    check("recurrent_grad", tuple(found))


def test_vmap() -> None:
    text, (x, *rest), (wanted,) = program("mlp")
    f = smelt.from_stablehlo(text)
    batch = np.stack([x, x * 2])
    found = smelt.vmap(f, in_axes=(0, None, None, None))(smelt.array(batch), *map(smelt.array, rest))
    np.testing.assert_allclose(np.array(found[0]), wanted, rtol=1e-5, atol=1e-5)
