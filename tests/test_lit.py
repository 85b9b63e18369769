"""Each lit file is a test. ``SMELT_LIT=process`` runs them all by lit, in real processes."""

from __future__ import annotations

import pytest

from .litfile import ROOT, lit_files, run_file, run_with_lit


def _name(path):
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", lit_files(), ids=_name)
def test_lit_file(path):
    run_file(path)


#: One file of each sort also goes through lit, so that its configuration stays right.
BY_LIT = ["ir/roundtrip/arithmetic.mlir", "ir/invalid/arithmetic.mlir", "diffrules/mul.mlir"]


@pytest.mark.parametrize("name", BY_LIT)
def test_by_lit_itself(name):
    run_with_lit(ROOT / name)
