"""The text that some programs become, byte by byte. ``pytest --update-golden`` writes the files anew."""

from __future__ import annotations

import pathlib

import pytest

from .harness import metal_text
from .programs import PROGRAMS

GOLDEN = pathlib.Path(__file__).parent / "golden"


@pytest.mark.parametrize("name", PROGRAMS)
def test_text_is_as_it_was(name, request):
    function, arguments = PROGRAMS[name]
    text = metal_text(function, *arguments)
    path = GOLDEN / f"{name}.metal"
    if request.config.getoption("--update-golden"):
        GOLDEN.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text(), "run pytest with --update-golden if the change is meant, and read the diff"


def test_the_same_program_gives_the_same_text():
    function, arguments = PROGRAMS["layer_norm"]
    assert metal_text(function, *arguments) == metal_text(function, *arguments)


def test_no_golden_file_is_left_over():
    assert {p.stem for p in GOLDEN.glob("*.metal")} == set(PROGRAMS)
