"""A device of another package: a folder of its own, and one registration. See docs/architecture.md."""

from __future__ import annotations

from smelt.backends.device import Device, Lazy, Target, register

TOY = register(
    Device(
        "toy",
        pipeline=Lazy("tests.toy.program:PIPELINE"),
        executable=Lazy("tests.toy.program:ToyExecutable"),
        memory=Lazy("tests.toy.memory:MEMORY"),
        target=Target("toy", max_buffers=4, measured_bytes=0),
        modules=("tests.toy.memory", "tests.toy.program"),
        stages=("beads",),
        lower=Lazy("tests.toy.program:lower"),
        details=lambda: {"beads": 10},
    )
)
