"""Programs import this to run on GPUs that are not there; the environment says how many, and where they meet."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from smelt.backends.cuda import collectives, driver, executable, installed
from smelt.backends.device import devices, registered

from ..backends.cuda.fake_driver import FakeDriver
from ..backends.cuda.fake_nccl import FakeNccl

fake = FakeDriver(gpus=int(os.environ["FAKE_GPUS"]))
nccl = FakeNccl(fake, Path(os.environ["FAKE_FOLDER"]))
replaced: list[tuple[Any, str, Any]] = [
    (driver, "driver_library", lambda: fake),
    (executable, "cuda_sources", lambda text, threads, most: dict.fromkeys(threads, text)),
    (executable, "cubins", lambda sources, architecture: [source.encode() for source in sources]),
    *((module, "load", lambda name: None) for module in installed.MODULES.values()),
    (collectives, "load", lambda name: nccl),
]
for _module, _name, _value in replaced:
    setattr(_module, _name, _value)
devices["cuda"] = registered["cuda"]
