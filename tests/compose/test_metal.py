"""Random programs through Metal's kernels, on the simulator, agree with the reference device."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import smelt
from smelt.ir.settings import override

from ..devices import chosen_device, is_chosen
from ..examples import examples
from .programs import Program, arguments_for, programs
from .test_control import Structured, blocks
from .test_programs import common

DEVICE = chosen_device().name if is_chosen() else "metal:sim"
#: Programs in one example: they share a compile of their text.
TOGETHER = 4


def _run(several: list[Program], arguments: list[list], device: str) -> list:
    flat = [x for xs in arguments for x in xs]

    def every(*xs):
        rest = iter(xs)
        return [p.all_values(*[next(rest) for _ in p.shapes]) for p in several]

    with override(device=device):
        outs = smelt.compile(every)(*flat)
        smelt.eval(outs)
        return [[np.array(v) for v in values] for values in outs]


def _agree(several: list[Program], seed: int) -> None:
    arguments = [[smelt.array(a) for a in arguments_for(p, seed, np.float32)] for p in several]
    for p, found, want in zip(several, _run(several, arguments, DEVICE), _run(several, arguments, "reference")):
        for i, (a, b) in enumerate(zip(found, want)):
            assert a.shape == b.shape
            np.testing.assert_allclose(a, b, rtol=3e-4, atol=3e-4, err_msg=f"{p}\nv{i + len(p.shapes)}")


@settings(max_examples=examples(36), **common)
@given(st.lists(programs(max_steps=8), min_size=TOGETHER, max_size=TOGETHER), st.integers(0, 3))
def test_fused_programs(several, seed):
    _agree(several, seed)


@settings(max_examples=examples(8), **common)
@given(programs(max_steps=6), st.integers(0, 3))
def test_gradients(program, seed):
    arguments = [smelt.array(a) for a in arguments_for(program, seed, np.float32)]
    gradient = smelt.grad(lambda xs: program(*xs))
    found = {}
    for device in (DEVICE, "reference"):
        with override(device=device):
            found[device] = [np.array(g) for g in smelt.compile(gradient)(arguments)]
    for a, b in zip(found[DEVICE], found["reference"]):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3, err_msg=str(program))


@settings(max_examples=examples(8), **common)
@given(st.lists(blocks(), min_size=3, max_size=3), st.lists(blocks(loops=False), min_size=1, max_size=1))
def test_control_flow(several, differentiable):
    """Loops and branches around kernels; the gradient of one of them beside the values of all."""
    v, w = (smelt.array(np.random.default_rng(i).uniform(-1, 1, 3).astype(np.float32)) for i in (1, 2))

    def values(v, w):
        slope = smelt.grad(lambda v: (differentiable[0].run(v, w, Structured) ** 2).sum())(v)
        return [slope, *[b.run(v, w, Structured) for b in several]]

    found = {}
    for device in (DEVICE, "reference"):
        with override(device=device):
            found[device] = [np.array(x) for x in smelt.compile(values)(v, w)]
    for a, b in zip(found[DEVICE], found["reference"]):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3, err_msg=f"{several}\n{differentiable}")
