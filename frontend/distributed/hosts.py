"""Files of hosts, and launching on them, under the names that MLX's programs import from `mlx._distributed_utils`.

What is launched are processes of this machine, as by `smelt launch`; hosts that are others are an error.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from smelt.ir.errors import AttributeValueError, DistributedError, FileFormatError, at_user_line

__all__ = ["Host", "Hostfile", "launch_jaccl", "launch_mpi", "launch_nccl", "launch_ring"]

#: Names of this machine.
LOCAL = ("127.0.0.1", "::1", "localhost")


@dataclass
class Host:
    """A process's machine: its rank, its name for SSH, its addresses, its devices for direct memory access."""

    rank: int
    ssh_hostname: str
    ips: list[str]
    rdma: list[Any]


@dataclass
class Hostfile:
    """What a file of hosts says: where processes run, by what they talk, and variables of their environments.

    >>> from smelt.distributed.hosts import Hostfile
    >>> hosts = Hostfile.from_list("localhost", repeats=2).hosts
    >>> [(host.rank, host.ssh_hostname) for host in hosts]
    [(0, 'localhost'), (1, 'localhost')]
    """

    hosts: list[Host]
    backend: str = ""
    envs: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """What `from_file` reads, as dicts and lists."""
        hosts = [{"ssh": host.ssh_hostname, "ips": host.ips, "rdma": host.rdma} for host in self.hosts]
        return {"backend": self.backend, "envs": self.envs, "hosts": hosts}

    @classmethod
    def from_file(cls, hostfile: str | os.PathLike[str]) -> Hostfile:
        """The hosts of a JSON file: a list of dicts with "ssh", or a dict with "hosts", "backend" and "envs".

        Raises:
            FileFormatError: the file is not there, or says no hosts.
        """
        name = os.fspath(hostfile)
        try:
            with open(name, encoding="utf-8") as file:
                said = json.load(file)
            said = said if isinstance(said, dict) else {"hosts": said}
            hosts = [
                Host(rank, host["ssh"], host.get("ips", []), host.get("rdma", []))
                for rank, host in enumerate(said["hosts"])
            ]
        except (AttributeError, KeyError, OSError, TypeError, ValueError) as error:
            raise FileFormatError(at_user_line(f"Hostfile.from_file: {name} is no file of hosts: {error}")) from error
        return cls(hosts, said.get("backend", ""), said.get("envs", []))

    @classmethod
    def from_list(cls, hostlist: str, repeats: int = 1) -> Hostfile:
        """Hosts whose names or addresses are separated by commas, each with a number of processes.

        Raises:
            AttributeValueError: a name is empty.
        """
        names = hostlist.split(",")
        if "" in names:
            raise AttributeValueError(at_user_line("Hostfile.from_list: the name of a host is empty"))
        each = [name for name in names for _ in range(repeats)]
        return cls([Host(rank, name, [name] if _is_address(name) else [], []) for rank, name in enumerate(each)])


def _is_address(name: str) -> bool:
    import ipaddress  # here: the import of smelt loads only what most programs use

    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _launch(backend: str, hosts: Sequence[Host], options: argparse.Namespace, command: Sequence[str]) -> NoReturn:
    """Run a program on the hosts and end with its status; it talks over MPI unless NCCL is asked for."""
    others = sorted({host.ssh_hostname for host in hosts if host.ssh_hostname not in LOCAL})
    if others:
        raise DistributedError(
            at_user_line(
                f"launch: smelt starts processes of this machine alone, and {', '.join(others)} are others; "
                "write mpiexec -host ... python -m mpi4py program.py"
            )
        )
    environment = dict(os.environ)
    environment.update(said.split("=", 1) for said in getattr(options, "env", None) or () if "=" in said)
    program = list(command)
    if program and (program[0] == sys.executable or os.path.basename(program[0]).startswith("python")):
        program = program[1:]  # the launcher starts its own
    own = ["-m", "smelt", "launch", "-n", str(len(hosts)), "--backend", backend]
    python = getattr(options, "python", None) or sys.executable
    cwd = getattr(options, "cwd", None)
    sys.exit(subprocess.run([python, *own, *program], env=environment, cwd=cwd).returncode)


def launch_ring(parser: Any, hosts: Sequence[Host], args: argparse.Namespace, command: Sequence[str]) -> NoReturn:
    """Run a program on hosts, and end with its status; its processes talk over MPI."""
    _launch("mpi", hosts, args, command)


def launch_mpi(parser: Any, hosts: Sequence[Host], args: argparse.Namespace, command: Sequence[str]) -> NoReturn:
    """Run a program on hosts, and end with its status; its processes talk over MPI."""
    _launch("mpi", hosts, args, command)


def launch_jaccl(parser: Any, hosts: Sequence[Host], args: argparse.Namespace, command: Sequence[str]) -> NoReturn:
    """Run a program on hosts, and end with its status; its processes talk over MPI."""
    _launch("mpi", hosts, args, command)


def launch_nccl(parser: Any, hosts: Sequence[Host], args: argparse.Namespace, command: Sequence[str]) -> NoReturn:
    """Run a program on hosts, and end with its status; its processes talk over NCCL."""
    _launch("nccl", hosts, args, command)
