"""Runs StableHLO texts in JAX: ``python run_in_jax.py FOLDER``, of which NAME.mlir, NAME.in.npz become NAME.out.npz."""

from __future__ import annotations

import sys
from pathlib import Path

import jax
import jax.extend.backend
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax._src.lib import xla_client


def main(folder: Path) -> None:
    jax.config.update("jax_enable_x64", True)
    jnp.linalg.eigvalsh(jnp.eye(2))  # has JAX look LAPACK's functions up, which it does at the first of its own calls
    backend = jax.extend.backend.get_backend("cpu")
    devices = tuple(backend.local_devices()[:1])
    for path in sorted(folder.glob("*.mlir")):
        with np.load(path.with_suffix(".in.npz")) as file:
            arguments = [file[f"a{i}"] for i in range(len(file.files))]
        # Files have no name for bfloat16.
        arguments = [x.view(ml_dtypes.bfloat16) if x.dtype.kind == "V" else x for x in arguments]
        program = backend.compile_and_load(
            path.read_text(encoding="utf-8"), xla_client.DeviceList(devices), xla_client.CompileOptions()
        )
        found = program.execute_sharded([jax.device_put(x) for x in arguments])
        results = [np.asarray(x[0]) for x in found.disassemble_into_single_device_arrays()]
        np.savez(path.with_suffix(".out.npz"), **{f"r{i}": x for i, x in enumerate(results)})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
