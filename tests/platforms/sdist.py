"""Builds the source distribution, looks that it is whole, installs from it into a fresh environment and runs tests and
an example there: `make sdist-check`.

    python -m tests.platforms.sdist [FOLDER]
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: What the repository has and a distribution needs not.
LEFT_OUT = (".ci/", ".gitignore")
#: A look at each room: what is installed, and what only the distribution's folder has.
TESTS = (
    "tests/ir", "tests/ops/test_registry.py", "tests/tools", "tests/frontend/test_elementwise.py",
    "tests/backends/metal/test_golden.py",
)  # fmt: skip


def run(command: Sequence[str | Path], folder: Path) -> str:
    """What a command prints; its output is shown and this program ends when it fails."""
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    answer = subprocess.run([str(c) for c in command], cwd=folder, capture_output=True, text=True, env=clean)
    if answer.returncode:
        sys.exit(f"sdist-check: {' '.join(map(str, command))}\n{answer.stdout[-6000:]}\n{answer.stderr[-6000:]}")
    return answer.stdout


def tracked() -> list[str]:
    """Files of the repository, those that are new and not ignored too; none without git."""
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True)
    except OSError:
        return []
    return answer.stdout.splitlines() if answer.returncode == 0 else []


def build(folder: Path) -> Path:
    """Build the distribution from a copy of the repository's files; its path."""
    copy = folder / "copy"
    for name in tracked():
        if (ROOT / name).exists():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    program = "import sys, build_backend; print(build_backend.build_sdist(sys.argv[1]))"
    return folder / run([sys.executable, "-c", program, str(folder)], copy).splitlines()[-1]


def missing(archive: Path) -> list[str]:
    """Files of the repository that a distribution does not have."""
    with tarfile.open(archive) as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
    wanted = [name for name in tracked() if (ROOT / name).exists() and not name.startswith(LEFT_OUT)]
    return [name for name in wanted if name not in names]


def main(place: Path) -> None:
    """Do it all in a folder."""
    if not tracked():
        sys.exit("sdist-check: needs git and its repository")
    archive = build(place)
    if lost := missing(archive):
        sys.exit(f"sdist-check: {archive.name} lacks {len(lost)} files: {', '.join(lost[:20])}")
    print(f"{archive.name}: {archive.stat().st_size >> 10} KiB, whole")
    with tarfile.open(archive) as tar:
        tar.extractall(place, filter="data") if sys.version_info >= (3, 12) else tar.extractall(place)
    source = archive.with_name(archive.name.removesuffix(".tar.gz"))
    venv.create(place / "venv", with_pip=True)
    programs = place / "venv" / "bin"
    run([programs / "python", "-m", "pip", "install", "--quiet", f"{archive}[test]"], place)
    where = run([programs / "python", "-c", "import smelt; print(smelt.__file__)"], place).strip()
    if not where.startswith(str(place / "venv")):
        sys.exit(f"sdist-check: smelt was imported from {where}")
    print(f"installed: {run([programs / 'smelt', '--version'], place).strip()}")
    print(run([programs / "python", "examples/gelu.py"], source).strip())
    print(run([programs / "python", "-m", "pytest", "-p", "no:cacheprovider", *TESTS], source).strip().splitlines()[-1])


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]).resolve())
    else:
        with tempfile.TemporaryDirectory(prefix="smelt-sdist-") as made:
            main(Path(made))
