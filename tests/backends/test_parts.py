"""Maps that are divided where arrays are joined."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends import buffer, plan
from smelt.backends.cpu import maps, streaming

JOINED = {
    "rows": lambda x, y: smelt.concatenate([x, y], axis=0),
    "columns": lambda x, y: smelt.concatenate([x, y.T[: x.shape[0], :40]], axis=1),
    "several": lambda x, y: smelt.concatenate([x, x * 2, x[:, :20]], axis=1),
    "transposed": lambda x, y: smelt.concatenate([x.T, x.T], axis=0) + 1,
    "blocks": lambda x, y: smelt.concatenate([smelt.concatenate([x, x], 1), smelt.concatenate([x * x, x], 1)], 0),
    "cut and turned": lambda x, y: smelt.concatenate([x, x + 3], axis=1)[::-1, 5:-3],
    "two results": lambda x, y: (smelt.concatenate([x, y], axis=0), smelt.concatenate([y, x], axis=0) * 2),
    "few in front": lambda x, y: smelt.concatenate([x[:, :3], x, x, x[:, :40]], axis=1),
    "few behind": lambda x, y: smelt.concatenate([x, x, x[:, :1]], axis=1),
    "rolled and turned": lambda x, y: smelt.roll(smelt.concatenate([x, x], axis=1), -3, 1)[:, ::-1],
    "narrow": lambda x, y: smelt.concatenate([x, x[:, :3], x], axis=1),
    "edges": lambda x, y: smelt.pad(x, 2, mode="edge"),
    "mirrored": lambda x, y: smelt.pad(x.reshape(4, 10, 72), ((1, 2), (3, 2), (70, 1)), mode="reflect"),
    "mirrored among channels": lambda x, y: smelt.pad(x.reshape(10, 9, 32), ((2, 2), (2, 2), (0, 0)), mode="symmetric"),
    "with nothing": lambda x, y: smelt.concatenate([x, x[:, :0], x], axis=1),
}


@pytest.mark.parametrize("dtype", ["float16", "int8", "float32", "bool"])
@pytest.mark.parametrize("name", JOINED)
def test_joined_arrays(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    x, y = (smelt.array(rng.integers(0, 2, s)).astype(getattr(smelt, dtype)) for s in ((40, 72), (90, 72)))
    f: Any = JOINED[name]
    with smelt.ir.settings.override(device="reference"):
        wanted = smelt.compile(f)(x, y)
    monkeypatch.setattr(maps, "WHOLE", 0)
    monkeypatch.setattr(streaming, "STREAM_BYTES", 1)
    monkeypatch.setattr(buffer, "SMALL", 0)
    found = smelt.compile(f)(x, y)
    for a, b in zip(*(v if isinstance(v, tuple) else (v,) for v in (found, wanted))):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(np.array(a.astype(smelt.float32)), np.array(b.astype(smelt.float32)))


def test_parts_have_no_conditions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maps, "WHOLE", 0)
    x = smelt.array(np.ones((40, 72), np.float16))

    def kernel(count: int) -> str:
        joined = smelt.compile(lambda x: smelt.concatenate([x] * count, axis=1))
        return joined.trace(x).lower().compile().as_text("kernel")

    assert "scf.if" not in kernel(3) and "_part2" in kernel(3)
    assert "scf.if" not in kernel(12)
    monkeypatch.setattr(plan, "JOINED_PARTS", 11)
    assert "scf.if" in kernel(12)


def test_nested_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Elements inside of a padded array are copied in a loop without conditions, along the last two axes at least."""
    monkeypatch.setattr(maps, "WHOLE", 0)
    for shape in ((300, 200), (8, 300, 200)):
        padded = smelt.compile(lambda x: smelt.pad(x, 2, mode="reflect"))
        text = padded.trace(smelt.zeros(shape)).lower().compile().as_text("kernel")
        assert "_part8" in text


@pytest.mark.parametrize("shape", [(20, 300), (20, 20, 300)])
def test_rows_of_padding_read_nothing(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even in lanes that are masked out: an address outside of memory takes a processor hundreds of cycles."""
    monkeypatch.setattr(maps, "WHOLE", 0)
    x = smelt.zeros(shape)
    padded = smelt.compile(lambda x: smelt.pad(x, 1, constant_values=2))
    parts = padded.trace(x).lower().compile().as_text("kernel").split("func.func private @fused_pad_part")[1:]
    for only_value in (parts[0], parts[-1].split("func.func")[0]):
        assert "memref.load %arg0" not in only_value and "scf.if" not in only_value
    assert sum("scf.if" in part for part in parts) == 2  # at both ends of the last axis
    np.testing.assert_array_equal(np.array(padded(x)), np.pad(np.zeros(shape), 1, constant_values=2))


def test_narrow_parts_have_others_around(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few elements that are computed in another way put no condition into the loop of all others."""
    monkeypatch.setattr(maps, "WHOLE", 0)
    x = smelt.array(np.ones((4, 1000), np.int8))
    text = smelt.compile(lambda x: smelt.roll(x, 7, 1)).trace(x).lower().compile().as_text("kernel")
    first, second = text.split("func.func private @fused_concatenate_part")[1:]
    assert "scf.if" in first and "scf.if" not in second.split("func.func")[0]
    assert "memref.store" in second


@pytest.mark.parametrize("cuts", [{0, 7, 4096}, {0, 4089, 4096}, {0, 70, 73, 200}, {0, 1, 2, 3}, {0, 100, 200}])
def test_parts_around_borders(cuts: set[int]) -> None:
    found = plan._widened(cuts)
    assert {0, max(cuts)} <= found <= {*range(0, max(cuts), plan.AROUND)} | cuts
    assert len(found) == 2 or min(np.diff(sorted(found))) >= plan.NARROW
