"""What tests of the commands share."""

from __future__ import annotations

import pytest

from smelt.tools import opt

from .test_tools import GOOD


@pytest.fixture
def good(tmp_path) -> str:
    path = tmp_path / "good.mlir"
    path.write_text(GOOD)
    return str(path)


@pytest.fixture
def run(capsys):
    """Run smelt-opt in this process: (exit code, stdout, stderr)."""

    def go(*arguments: str, main=opt.main) -> tuple[int, str, str]:
        code = main([str(a) for a in arguments], isolate=False)
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err

    return go
