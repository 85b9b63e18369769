"""What several loops and branches run is one function of machine code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.cpu import program as cpu
from smelt.ir.aval import Aval
from smelt.ir.dtypes import bool_, int32
from smelt.ir.settings import override
from smelt.passes import Pipeline

from .control_modules import Made
from .modules import f32, random_array

#: What one thread runs alone; what a team runs with barriers, or (large, other teams) launch by launch.
SIZES = (6, 60_000)


def scanned(m: Made, b: Any, name: str, x: Any) -> Any:
    """Two steps; what each makes is stacked, too."""
    last, stacked = m.scan(b, name, [x], 2, 0, 1)
    return last + b.reduce_sum(stacked, axes=(0,)) * 0.25


def chosen(m: Made, b: Any, name: str, x: Any) -> Any:
    positive = b.less(b.full((), 0, f32), b.reduce_sum(x, axes=(0,)))
    return m.cond(b, b.convert(positive, dtype=int32), [x], f"{name}_other", name)[0]


def repeated(m: Made, b: Any, name: str, x: Any) -> Any:
    """As long as the largest element is large: the number of steps is not known."""
    return m.loop(b, "large", name, [x])[0]


def nested(m: Made, levels: int, size: int, run: Any) -> None:
    """Functions that run the next one twice."""
    aval = Aval((size,), f32)
    m.define("large", [aval], lambda b, x: [b.less(b.full((), 0.7, f32), b.reduce_max(b.abs(x), axes=(0,)))])

    def returned(x: Any) -> list[Any]:
        return [x, x] if run is scanned else [x]

    m.define("level_0", [aval], lambda b, x: returned(b.tanh(x) * 0.9))
    m.define("level_0_other", [aval], lambda b, x: returned(b.sin(x) + 0.125))
    for i in range(levels):
        for ending in ("", "_other"):
            inner = f"level_{i}"

            def level(b: Any, x: Any, inner: str = inner, ending: str = ending) -> list[Any]:
                y = run(m, b, inner, x * (0.5 if ending else 0.75))
                return returned(run(m, b, inner, y + x * 0.125))

            m.define(f"level_{i + 1}{ending}", [aval], level)
    m.define("main", [aval], lambda b, x: [run(m, b, f"level_{levels}", x)])


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("run", [scanned, chosen, repeated])
def test_values_are_those_of_the_interpreter(run: Any, size: int) -> None:
    m = Made()
    nested(m, 3, size, run)
    program = m.check([random_array(Aval((size,), f32)) + 0.25])
    assert "call @body_" in program.as_text("kernel")


@pytest.mark.parametrize("run", [scanned, chosen, repeated])
def test_code_does_not_double_with_each_level(run: Any) -> None:
    lines = []
    for levels in (20, 24, 28):
        m = Made()
        nested(m, levels, 6, run)
        Pipeline.parse(cpu.PIPELINE).run(m.module)
        lines.append(cpu.compile_module(m.module).as_text("kernel").count("\n"))
    assert lines[2] - lines[1] <= 1.2 * (lines[1] - lines[0])


def unchanged(m: Made) -> None:
    """Carries that stay as they are, that change places, and results that are arguments, in several places."""
    aval = Aval((6,), f32)
    m.define("inner", [aval, aval, aval], lambda b, k, s, t: [t, s + k])

    def step(b: Any, k: Any, s: Any, t: Any) -> Any:
        return m.scan(b, "inner", [k, *m.scan(b, "inner", [k, s, t], 3, 1, 2)], 2, 1, 2)

    m.define("step", [aval, aval, aval], step)
    m.define("same", [aval, aval, aval], lambda b, k, s, t: [s, k])
    m.define("main", [aval, aval], lambda b, x, y: [
        *m.scan(b, "step", [x, x, y], 3, 1, 2), *m.scan(b, "step", [y, x, x], 2, 1, 2),
        *m.scan(b, "same", [x, y, y], 2, 1, 2),
        *m.cond(b, b.constant(value=True, dtype=bool_), [x, y, y], "same", "step"),
    ])  # fmt: skip


def test_a_shared_body_keeps_what_it_does_not_change() -> None:
    m = Made()
    unchanged(m)
    assert "call @body_" in m.check().as_text("kernel")


def test_checked_accesses_are_named_in_each_run() -> None:
    x = smelt.array(np.linspace(-1, 1, 6, dtype=np.float32))

    def body(x: Any) -> Any:
        for _ in range(2):
            x = smelt.scan(lambda c, _: (smelt.tanh(c) * 0.5, None), x, None, length=3)[0]
        return x

    def f(x: Any) -> Any:
        for _ in range(2):
            x = smelt.scan(lambda c, _: (body(c), None), x, None, length=2)[0]
        return x

    want = np.asarray(f(x))
    with override(check=True):
        np.testing.assert_allclose(np.asarray(smelt.compile(f)(x)), want, rtol=1e-6)
