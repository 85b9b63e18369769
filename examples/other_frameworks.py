"""Programs of JAX and of PyTorch on any device of smelt: on a Mac on its GPU, as Metal.

``programs/`` holds what `make_jax.py` and `make_torch.py` there wrote: StableHLO, arguments, results.
"""

import argparse
from pathlib import Path

import numpy as np

import smelt

PROGRAMS = Path(__file__).parent / "programs"


def load(name):
    """A program as a function, its arguments, and the results of the framework that wrote it."""
    function = smelt.from_stablehlo((PROGRAMS / f"{name}.mlir").read_text(), name=f"{name}.mlir")
    arrays = np.load(PROGRAMS / f"{name}.npz")
    arguments = [smelt.array(arrays[key]) for key in sorted(arrays) if key.startswith("argument")]
    return function, arguments, [arrays[key] for key in sorted(arrays) if key.startswith("result")]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default=None, help="cpu, metal, metal:sim, cuda, ...")
    options = parser.parse_args()
    if options.device:
        smelt.set_default_device(options.device)
    for framework, name in (("JAX", "attention"), ("PyTorch", "classifier")):
        function, arguments, wanted = load(name)
        found = smelt.compile(function)(*arguments)
        found = found if isinstance(found, tuple) else (found,)
        apart = max(float(np.abs(np.array(a) - b).max()) for a, b in zip(found, wanted))
        print(f"{name} of {framework} on {smelt.default_device()}: {apart:.1e} from its own results")
        assert apart < 1e-4

    # What came in transforms like any other function: here the gradient of a class's log-probability by the picture.
    classify, (pictures,), _ = load("classifier")
    slope = smelt.compile(smelt.grad(lambda x: classify(x)[:, 3].sum()))(pictures)
    print(f"the class depends most on element {smelt.argmax(smelt.abs(slope[0])).item()} of the first picture")


if __name__ == "__main__":
    main()
