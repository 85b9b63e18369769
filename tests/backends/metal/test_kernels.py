"""How many kernels programs become, and what they move: one pass over memory where one is enough."""

from __future__ import annotations

import math

import pytest

import smelt
from smelt.backends.metal.check import check as strict_check
from smelt.backends.metal.simulator import Options

from .harness import check, graph_of, program_of
from .programs import PROGRAMS, S, cross_entropy, f32, gelu, layer_norm, linear_gelu, rms_norm, softmax

ORDERS = [Options(order=order, seed=1, poison=True, guard=True) for order in ("forward", "reverse", "shuffled")]

ONE_KERNEL = {
    "gelu": (gelu, (S((4096, 1024), f32),)),
    "softmax": (softmax, (S((512, 4096), f32),)),
    "layer_norm": (layer_norm, (S((512, 4096), f32), S((4096,), f32), S((4096,), f32))),
    "rms_norm": (rms_norm, (S((512, 4096), f32), S((4096,), f32))),
    "linear_gelu": (linear_gelu, (S((256, 512), f32), S((512, 128), f32), S((128,), f32))),
}


@pytest.mark.parametrize("name", ONE_KERNEL)
@pytest.mark.parametrize("gpu", ["apple8", "nvidia"])
def test_one_kernel_moves_the_least(name, gpu):
    function, arguments = ONE_KERNEL[name]
    program = program_of(graph_of(function, *arguments), gpu)
    (kernel,) = program.kernels
    least = sum(a.nbytes for a in (*program.arguments, *program.results))
    assert kernel.bytes_read + kernel.bytes_written == least


def test_sum_of_a_hundred_million_elements_is_two_kernels():
    program = program_of(graph_of(lambda x: smelt.sum(x), S((100_000_000,), f32)), "apple8")
    first, second = program.kernels
    assert first.bytes_read == 4 * 100_000_000
    assert second.bytes_read < 16384
    assert math.prod(first.threadgroups) >= 256


@pytest.mark.parametrize("options", ORDERS, ids=lambda o: o.order)
@pytest.mark.parametrize("name", PROGRAMS)
def test_race_mode(name, options):
    """Any order of lanes, poisoned threadgroup memory and guarded buffers change nothing."""
    function, arguments = PROGRAMS[name]
    if name == "cross_entropy":  # labels must be below the number of classes
        arguments = (arguments[0], S((64,), smelt.int32))
        function = lambda x, i: cross_entropy(x, smelt.abs(i) % 10)  # noqa: E731
    check(function, *arguments, options=options)


@pytest.mark.parametrize("gpu", ["apple7", "apple8", "apple9", "nvidia"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_strict_check(name, gpu):
    function, arguments = PROGRAMS[name]
    assert not strict_check(program_of(graph_of(function, *arguments), gpu).as_text("msl"), strict=True)
