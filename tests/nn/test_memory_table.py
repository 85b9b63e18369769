"""The command that measures the memory of train steps (`python -m benchmarks memory`)."""

import pytest

from benchmarks import memory


def test_each_row_is_printed_before_the_next_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    printed: list[str] = []

    def measured(name: str) -> memory.Measured:
        printed.append(capsys.readouterr().out)
        return memory.Measured(name, 2 << 20, 1 << 20, 1 << 20, 6 << 20)

    monkeypatch.setattr(memory, "measured", measured)
    memory.main(["llama", "char_gpt"])
    assert printed[0].endswith("---: |\n")
    assert printed[1] == "| llama | 2 | 1 | 3 | 1 | 6 | 2.00 |\n"
    assert capsys.readouterr().out.startswith("| char_gpt | ")
