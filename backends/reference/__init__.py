"""The NumPy interpreter as a device: modules run op by op with the `reference` rules. It is the oracle of the tests."""

from ..buffer import HostMemory
from ..device import Device, Lazy, Target, register

REFERENCE = register(
    Device(
        "reference",
        pipeline=Lazy("smelt.backends.pipelines:SIMPLIFY"),
        executable=Lazy("smelt.backends.executable:InterpretedExecutable"),
        memory=HostMemory(),
        target=Target("reference"),
        interprets=True,
    )
)
