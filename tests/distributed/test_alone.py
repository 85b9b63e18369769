"""Where nothing is launched: a group of one process."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import smelt
from smelt import distributed, nn
from smelt.nn.layers.distributed import shard_inplace, shard_linear, sum_gradients


def test_the_group_of_one() -> None:
    group = distributed.init()
    assert (group.rank(), group.size(), group.split(3).size()) == (0, 1, 1)
    x = smelt.array([1.0, -2.0])
    for name in ("all_sum", "all_max", "all_min", "all_gather", "sum_scatter"):
        assert getattr(distributed, name)(x) is x
        assert getattr(distributed, name)(x, group=group, stream=smelt.cpu) is x
    assert smelt.grad(lambda x: distributed.all_sum(x * x).sum())(x).tolist() == [2.0, -4.0]
    assert not distributed.is_available("nccl")


def test_layers_are_copied_and_pickled_with_their_group() -> None:
    layer = nn.AllToShardedLinear(2, 4, group=distributed.init())
    x = smelt.ones((1, 2))
    for other in (copy.deepcopy(layer), copy.copy(layer), pickle.loads(pickle.dumps(layer))):
        assert other.group is layer.group
        assert smelt.array_equal(other(x), layer(x)).item()


def test_import_does_not_start_mpi() -> None:
    code = "import sys, smelt; smelt.distributed.init(); print('mpi4py' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


def test_layers_of_one_process_are_whole() -> None:
    x = smelt.random.normal((3, 4))
    linear = nn.Linear(4, 6)
    for sharding in ("all-to-sharded", "sharded-to-all"):
        part = shard_linear(linear, sharding, segments=2)
        assert smelt.array_equal(part(x), linear(x)).item()
    packed = nn.Linear(64, 8).to_quantized(32, 8)
    x = smelt.random.normal((3, 64))
    for sharding in ("all-to-sharded", "sharded-to-all"):
        assert smelt.allclose(shard_linear(packed, sharding)(x), packed(x)).item()
    whole = nn.Linear(64, 3)
    assert smelt.array_equal(nn.fully_shard(whole)(x), whole(x)).item()
    shard_inplace(whole, "all-to-sharded")
    assert whole.weight.shape == (3, 64)
    assert smelt.grad(lambda x: sum_gradients(distributed.init())(x).sum())(x).shape == x.shape
    gradients = {"w": x, "b": [smelt.ones(1)]}
    assert nn.average_gradients(gradients) is gradients


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: distributed.init(strict=True), "nothing was launched; run the program by: smelt launch"),
        (lambda: distributed.init(backend="ring"), "backend must be any, mpi or nccl, is 'ring'"),
        (lambda: distributed.send(smelt.ones(1), 0), "send: there is one process"),
        (lambda: distributed.recv((1,), smelt.float32, 0), "recv: there is one process"),
        (lambda: distributed.all_sum(smelt.ones(1), group=3), "group must be a smelt.distributed.Group, is 3"),
        (lambda: distributed.init().split(-1), "split: color must not be negative, is -1"),
        (lambda: distributed.sum_scatter(smelt.array(1.0)), r"sum_scatter: the first axis needs equal parts"),
        (lambda: distributed.all_max(smelt.array(1j)), "all_max: complex numbers have no order"),
        (lambda: shard_linear(nn.ReLU(), "all-to-sharded"), r"needs a linear layer, got ReLU\(\)"),
        (lambda: shard_linear(nn.Linear(1, 1), "x"), "sharding must be all-to-sharded, sharded-to-all or a function"),
    ],
)
def test_bad_arguments(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(smelt.SmeltError, match=message):
        call()
