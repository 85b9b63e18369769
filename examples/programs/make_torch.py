"""Writes classifier.mlir and classifier.npz, where PyTorch is installed: ``python make_torch.py``.

torch.export makes a graph of the module; the package of the MLIR bindings lowers it to StableHLO.
"""

from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch_mlir import fx


class Classifier(nn.Module):
    """A small convolutional network."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(1, 4, 3, padding=1)
        self.second = nn.Conv2d(4, 8, 3, stride=2, padding=1)
        self.norm = nn.LayerNorm(8)
        self.last = nn.Linear(8, 10)

    def forward(self, x):
        x = nn.functional.gelu(self.first(x))
        x = nn.functional.max_pool2d(torch.relu(self.second(x)), 2)
        return torch.log_softmax(self.last(self.norm(x.mean((2, 3)))), -1)


torch.manual_seed(0)
model, x = Classifier().eval(), torch.rand(2, 1, 16, 16)
here = Path(__file__).parent
module = fx.export_and_import(model, x, output_type="stablehlo")
(here / "classifier.mlir").write_text(module.operation.get_asm(large_elements_limit=None))
with torch.no_grad():
    np.savez_compressed(here / "classifier.npz", argument0=x.numpy(), result0=model(x).numpy())
