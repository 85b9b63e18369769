"""`smelt doctor`: its checks find faults, and what it would do on a Mac runs here against the fake."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import smelt
from smelt.backends.metal.apple import AppleDevice
from smelt.ir.op import registry
from smelt.runtime import device as devices
from smelt.tools import cli, doctor

pytestmark = pytest.mark.usefixtures("small_heap")

FEW = ("add", "erf", "reduce_sum", "dot_general", "sort", "cholesky", "gather", "transpose")


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A handful of ops, and short arrays."""
    monkeypatch.setattr(doctor, "plain_ops", lambda: [registry[name] for name in FEW if name in registry])
    monkeypatch.setattr(doctor, "MOST_COPIED", 1 << 12)


def states(answers: Iterator[doctor.Answer]) -> dict[str, str]:
    return {a.name: a.state for a in answers}


def test_a_report(few: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "report.txt"
    assert cli.main(["doctor", "--device", "cpu", "--device", "metal", "-o", str(path)]) == 0
    report = path.read_text()
    assert report in capsys.readouterr().out
    for part in (f"smelt {smelt.__version__}", "torch-mlir", "core in C: ", "BLAS: right, for", "Nothing failed."):
        assert part in report
    assert report.count("  ok ") == 5
    if "metal" not in devices.devices:
        reason = "it needs macOS and the package pyobjc-framework-Metal"
        assert report.count(f"{reason}; would check that") == len(doctor.CHECKS)


def test_an_unknown_device_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor", "--device", "gpu"]) != 0
    assert "there is no device 'gpu'" in capsys.readouterr().err


@pytest.mark.parametrize(("check", "rounding"), [("precision", "sqrt"), ("half", ""), ("training", "")])
def test_faults_are_found(few: None, monkeypatch: pytest.MonkeyPatch, check: str, rounding: str) -> None:
    """Each by a rule that is a little off."""
    if check == "precision":
        right = smelt.sqrt
        monkeypatch.setattr(smelt, "sqrt", lambda x: right(x) * (1 + 2.0**-23))
    elif check == "half":
        monkeypatch.setattr(smelt.array, "astype", lambda self, dtype: smelt.zeros(self.shape, dtype))
    else:
        monkeypatch.setattr(smelt, "tanh", lambda x: x * 0)
    assert states(doctor.examine("cpu")) | {"ops": "ok"} == {
        "ops": "ok", "precision": "ok", "half": "ok", "training": "ok", "ownership": "left out", "bandwidth": "ok",
        check: "failed",
    }  # fmt: skip


def test_a_wrong_op_is_named(few: None, monkeypatch: pytest.MonkeyPatch) -> None:
    right = registry["erf"].reference
    monkeypatch.setattr(type(registry["erf"]), "reference", staticmethod(lambda *xs, **attrs: right(*xs, **attrs) + 1))
    (ops, *_) = doctor.examine("cpu")
    assert ops.state == "failed" and ops.text.startswith("1 of ") and "erf(" in ops.text


def test_the_acceptance_of_a_mac_runs_against_the_fake(few: None, monkeypatch: pytest.MonkeyPatch) -> None:
    simulator = pytest.importorskip("smelt.backends.metal.simulator", exc_type=ImportError)
    from ..backends.metal.fake_metal import FakeMetal

    monkeypatch.setattr(AppleDevice, "_default", AppleDevice(FakeMetal(simulator.Library)))
    if "metal" not in devices.devices:
        monkeypatch.setitem(devices.devices, "metal", devices.Device("metal"))
    answers = list(doctor.examine("metal"))
    assert {a.name: a.state for a in answers} == dict.fromkeys(doctor.CHECKS, "ok"), [str(a) for a in answers]


def test_memory_that_is_not_freed_is_found(few: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from ..backends.metal.fake_metal import FakeMetal, FakeObjc
    from ..backends.metal.stub_kernels import Stub

    with pytest.warns(RuntimeWarning, match="is not freed"):
        monkeypatch.setattr(AppleDevice, "_default", AppleDevice(FakeMetal(Stub, objc=FakeObjc(heeds=False))))
    with pytest.raises(doctor.Finding, match="64 blocks of 1 MiB"):
        doctor._ownership(devices.Device("metal"))


def test_every_check_has_a_meaning() -> None:
    assert list(doctor._RUN) == list(doctor.CHECKS)
