"""What several loops and branches run is one function of a launch plan."""

from __future__ import annotations

from typing import Any

import pytest

from smelt.backends.gpu.manifest import Call, Manifest
from smelt.backends.gpu.program import DeviceSegment, Program
from smelt.backends.gpu.steps import known_launches, walk
from smelt.ir import text

from ..control_modules import Made
from ..modules import f32, random_array
from ..test_shared_bodies import Aval, chosen, nested, repeated, scanned, unchanged
from .harness import program_of
from .test_control import check


def manifest_of(program: Program) -> Manifest:
    (segment,) = program.segments
    assert isinstance(segment, DeviceSegment)
    return segment.manifest


#: Whose elements vectors do not reach in loops; whose sums have scratch.
@pytest.mark.parametrize("size", [6, 5000])
@pytest.mark.parametrize("run", [scanned, chosen, repeated])
def test_values_are_those_of_the_interpreter(run: Any, size: int) -> None:
    m = Made()
    nested(m, 2 if size > 6 else 3, size, run)
    program = check(m, [random_array(Aval((size,), f32)) + 0.25])
    assert manifest_of(program).functions


def test_a_shared_body_keeps_what_it_does_not_change() -> None:
    m = Made()
    unchanged(m)
    program = check(m, [random_array(Aval((6,), f32), i) for i in range(2)])
    assert any(isinstance(step, Call) for loop in manifest_of(program).steps for step in getattr(loop, "steps", ()))


def test_launches_are_counted_through_calls() -> None:
    m = Made()
    nested(m, 4, 6, scanned)
    manifest = manifest_of(program_of(text.to_text(m.module), loops=False))
    count = known_launches(manifest)
    assert count == len(list(walk(manifest, lambda where, nbytes: 0)))
    assert count is not None
    assert count > 100 > len(manifest.launches)


@pytest.mark.parametrize("run", [scanned, chosen, repeated])
def test_plans_do_not_double_with_each_level(run: Any) -> None:
    lines = []
    for levels in (8, 11, 14):
        m = Made()
        nested(m, levels, 6, run)
        lines.append(manifest_of(program_of(text.to_text(m.module), loops=False)).to_json().count("\n"))
    assert lines[2] - lines[1] <= 1.2 * (lines[1] - lines[0])
