"""What the check accepts runs in the simulator, but for what that has not: textures, stages of a render pipeline."""

from __future__ import annotations

import pytest

from smelt.backends.metal.simulator import Library, SimulatorError

from .corpus import rows

#: Rows that the simulator does not run, and what it says of them.
NOT_RUN = {
    "address_spaces: overloads by address space": "overloads of 'first' differ in address spaces and in what they do",
    "address_spaces: a method qualified for device memory": "overloads of 'sum' differ in address spaces",
    "arguments: a buffer and a texture of one number": "the simulator has no textures",
    "arguments: the last numbers": "the simulator has no textures",
    "arguments: textures and samplers without numbers (tolerated)": "the simulator has no textures",
    "arguments: stage_in of a kernel": "neither a buffer nor a known position",
    "structures: argument buffers": "texture2d",
    # Vectors are classes there, with copies of their own; components are objects that lie in the vector.
    "library: type traits": "static assertion failed",
    "templates: deduced types": "has no member named",
}
ROWS = [row for row in rows() if not row.is_refused and row.family not in ("stages", "textures")]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_row(row: object) -> None:
    text = next(r.text for r in ROWS if r is row)
    if str(row) in NOT_RUN:
        with pytest.raises(SimulatorError, match=NOT_RUN[str(row)]):
            Library(text)
    else:
        assert "kernel" not in text or "kernel void" not in text or Library(text).entries
