"""Optimizers, learning rate schedules and clipping, under the names of `mlx.optimizers`.

>>> import smelt
>>> model = smelt.nn.Linear(1, 1, bias=False)
>>> model.weight = smelt.array([[3.0]])
>>> optimizer = smelt.optimizers.SGD(0.5)
>>> loss_and_gradients = smelt.nn.value_and_grad(model, lambda x: (model(x) ** 2).sum() / 2)
>>> for _ in range(3):
...     loss, gradients = loss_and_gradients(smelt.ones((1, 1)))
...     optimizer.update(model, gradients)
>>> model.weight
array([[0.375]], dtype=float32)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from smelt.ir.listing import listed as _listed

from ..lacking import lacking as _lacking
from . import schedulers
from .adam_variants import LAMB, NAdam
from .algorithms import SGD, AdaDelta, Adagrad, Adam, Adamax, AdamW, Lion, RMSprop
from .averages import EMA
from .base import MultiOptimizer, Optimizer, clip_grad_norm
from .lbfgs import LBFGS
from .matrices import Adafactor, Muon
from .schedulers import cosine_decay, exponential_decay, join_schedules, linear_schedule, step_decay

__all__ = [
    "EMA", "LAMB", "LBFGS", "SGD", "AdaDelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Lion",
    "MultiOptimizer", "Muon", "NAdam", "Optimizer", "RMSprop", "clip_grad_norm", "cosine_decay", "exponential_decay",
    "join_schedules", "linear_schedule", "schedulers", "step_decay",
]  # fmt: skip

__dir__ = _listed(globals())
if not TYPE_CHECKING:
    __getattr__ = _lacking(globals())
