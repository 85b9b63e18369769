"""Mutations of each kind of text and file: no crash, no hang, no exception that is not smelt's."""

from __future__ import annotations

import pytest

from tests.hostile import batch
from tests.hostile.subjects import SUBJECTS

#: How many; a Metal text takes clang 50 ms.
AMOUNTS = {
    "mlir": 100_000, "npy": 100_000, "npz": 100_000, "safetensors": 100_000, "metal": 20_000, "pipelines": 50_000,
    "settings": 20_000, "gguf": 100_000, "functions": 20_000, "stablehlo": 5_000, "artifacts": 10_000, "onnx": 20_000,
    "commands": 3_000,
}  # fmt: skip
assert AMOUNTS.keys() >= SUBJECTS.keys(), "each subject has its amount"
#: A process for each: what one leaves behind, another does not see.
BATCH = 5_000


@pytest.mark.parametrize("subject", SUBJECTS)
def test_mutations(campaign, subject: str) -> None:
    if subject == "metal":
        pytest.importorskip("clang")
    found: list[batch.Finding] = []
    amount = campaign.amount(AMOUNTS[subject])
    for first in range(0, amount, BATCH):
        found += batch.run(subject, first, min(BATCH, amount - first))
    campaign.ran(f"mutations: {subject}", amount)
    assert not found, "\n".join(str(finding) for finding in found[:20])
