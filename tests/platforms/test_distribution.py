"""The source distribution, the workflow of public CI, and what they say of versions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from . import sdist, wheels

WORKFLOW = sdist.ROOT / ".github" / "workflows" / "test.yml"


@pytest.mark.skipif(not sdist.tracked(), reason="needs the repository and git")
def test_a_source_distribution_is_whole(tmp_path: Path) -> None:
    """Documents, examples, tests and what builds it; `make sdist-check` installs from it as well."""
    assert sdist.missing(sdist.build(tmp_path)) == []


def test_the_workflow_runs_what_the_package_promises() -> None:
    text = WORKFLOW.read_text(encoding="utf-8")
    promised = wheels.tomllib.loads((sdist.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    versions = [c.rpartition(" ")[2] for c in promised["classifiers"] if re.search(r"Python :: 3\.\d+$", c)]
    assert re.findall(r'"(3\.\d+)"', re.search(r"python: \[(.*)\]", text)[1]) == versions  # type: ignore[index]
    used = re.findall(r"uses: (\S+)(.*)", text)
    assert used and all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action) for action, _ in used), used
    assert all(re.fullmatch(r"  # v\d+\.\d+\.\d+", comment) for _, comment in used), used
    targets = set(re.findall(r"^([a-z0-9-]+):", (sdist.ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    assert set(re.findall(r"run: make ([a-z0-9-]+)", text)) <= targets


def test_packages_for_another_machine() -> None:
    project = {
        "name": "own",
        "dependencies": ["a>=1", "mac==1; sys_platform == 'darwin'"],
        "optional-dependencies": {"test": ["pytest", "ruff==1", "own[more]"], "more": ["b"], "other": ["c"]},
    }
    assert wheels.wanted(project, ["test"]) == ["a>=1", "b", "pytest"]
