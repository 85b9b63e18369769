"""The tests of this folder run on the toy, and the other ones know nothing of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from smelt.backends.buffer import pools
from smelt.backends.device import register, unregister
from smelt.ir.settings import override

from . import TOY
from .memory import MEMORY

unregister(TOY)


@pytest.fixture(autouse=True)
def on_toy() -> Iterator[None]:
    register(TOY)
    pools.append(MEMORY)  # other tests of the folder have used it
    with override(device=TOY.name):
        yield
    unregister(TOY)
    pools.remove(MEMORY)
