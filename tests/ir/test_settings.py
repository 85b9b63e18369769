"""Every setting of the table, from the environment and inside a program."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import smelt
from smelt.ir.errors import SettingError
from smelt.ir.settings import (
    COMPILE,
    RULES,
    Choice,
    Debug,
    Flag,
    Name,
    Number,
    Settings,
    Text,
    override,
    settings,
    variable,
)

WORDS = {"0": False, "1": True, "true": True, "false": False, "on": True, "off": False, "yes": True, "no": False}


def accepted(rule: Any) -> dict[str, Any]:
    """Texts of a variable, and what they mean."""
    found: dict[str, Any] = {"": rule.default, "  ": rule.default}
    if isinstance(rule, Flag):
        found |= {spelt: value for word, value in WORDS.items() for spelt in (word, word.upper(), f" {word.title()} ")}
    elif isinstance(rule, Number):
        found |= {str(n): n for n in (rule.least, rule.most)} | {f" {rule.least + 1} ": rule.least + 1}
        found |= {"compile": COMPILE, " Compile ": COMPILE} if isinstance(rule, Debug) else {}
    elif isinstance(rule, Choice):
        found |= {word: word for word in rule.words if word} | {rule.words[0].upper(): rule.words[0]}
        found |= {"0": "", "Off": ""} if "" in rule.words else {}
    elif isinstance(rule, Name):
        found |= {"cpu": "cpu", " Abacus ": "abacus"}
    else:
        found |= {"a text": "a text"} | ({"0": "", "Off": ""} if rule.optional else {"0": "0"})
    return found


def refused(rule: Any) -> list[str]:
    if isinstance(rule, Flag):
        return ["2", "-1", "maybe", "o n", "1.0", "wahr"]
    if isinstance(rule, Number):
        return ["many", "1.5", "2 GiB", "1e9", "0x10", "--1", "9" * 5000, str(rule.least - 1), str(rule.most + 1)]
    return [] if isinstance(rule, (Name, Text)) else ["foward", "gpu3", "1", "auto auto"]


ACCEPTED = [(name, text, value) for name, rule in RULES.items() for text, value in accepted(rule).items()]
REFUSED = [(name, text) for name, rule in RULES.items() for text in refused(rule)]


@pytest.mark.parametrize(("name", "text", "value"), ACCEPTED)
def test_accepted(name: str, text: str, value: Any) -> None:
    found = Settings({variable(name): text})
    assert getattr(found, name) == value and type(getattr(found, name)) is type(value)
    others = {other: getattr(found, other) for other in RULES if other != name}
    assert others == {other: rule.default for other, rule in RULES.items() if other != name}


@pytest.mark.parametrize(("name", "text"), REFUSED, ids=lambda t: t[:20])
def test_refused(name: str, text: str) -> None:
    found = Settings({variable(name): text})
    with pytest.raises(SettingError) as caught:
        getattr(found, name)
    message = str(caught.value)
    assert variable(name) in message and RULES[name].allowed in message and __file__ in message
    assert text[:20] in message and len(message) < 400
    setattr(found, name, RULES[name].default)  # a program may set what the environment has wrong
    assert getattr(found, name) == RULES[name].default


@pytest.mark.parametrize("name", RULES)
def test_inside_a_program(name: str) -> None:
    rule = RULES[name]
    wrong: list[Any] = [None, 1.5, [], object()]
    wrong += [] if isinstance(rule, (Name, Text)) else ["sideways"]
    for value in wrong:
        before = getattr(settings, name)
        with pytest.raises(SettingError, match=f"the setting {name} must be"), override(**{name: value}):
            pass
        assert getattr(settings, name) == before
    with override(**{name: rule.default}) as found:
        assert getattr(found, name) == rule.default


def test_unknown_settings() -> None:
    with pytest.raises(SettingError, match="no setting 'debgu'; it has device, debug"), override(debgu=1):
        pass
    assert not hasattr(settings, "debgu")


@pytest.mark.parametrize("name", [name for name, rule in RULES.items() if isinstance(rule, Text)])
@pytest.mark.parametrize("value", ["\0", "a\0b", "\ud800", b"a\0b", Path("a\0b")], ids=repr)
def test_what_no_path_can_be(name: str, value: Any) -> None:
    refused = pytest.raises(SettingError, match=f"the setting {name} must be {RULES[name].allowed}")
    with refused, override(**{name: value}):
        pass


@pytest.mark.parametrize("package", [".x", "..", "a b", "os", "torch_mlir.", "é", "smelt", "no.such.package"])
def test_packages_that_host_no_bindings(package: str) -> None:
    done = run("import smelt\nsmelt.make_ir(smelt.exp)(smelt.ones(2))", SMELT_MLIR_PACKAGE=package)
    last = done.stderr.strip().splitlines()[-1]
    assert "BindingsError: smelt needs MLIR's Python bindings" in last and f"Tried {package}: " in last


def test_the_table_documents_every_setting() -> None:
    import smelt.ir.settings as module

    rows = [line.split()[0] for line in (module.__doc__ or "").splitlines() if line.startswith("SMELT_")]
    assert rows == [variable(name) for name in RULES] == [variable(name) for name in Settings.__annotations__]


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, timeout=120
    )


def test_import_survives_wrong_values_of_all_settings() -> None:
    rules = {name: rule for name, rule in RULES.items() if not isinstance(rule, Text)}
    wrong = {variable(name): [*refused(rule), "forward"][0] for name, rule in rules.items()}
    code = "import smelt\ntry:\n    smelt.eval(smelt.ones(2) + 1)\nexcept smelt.SmeltError as e:\n    print(e)"
    done = run(code, **wrong)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("smelt: there is no device 'forward'") and "SMELT_DEVICE" in done.stdout, done.stdout


def test_a_wrong_race_is_one_error_when_the_simulator_runs() -> None:
    code = "import smelt\nprint((smelt.ones(2) + 1).tolist())"
    done = run(code, SMELT_RACE="fast", SMELT_DEVICE="metal:sim", SMELT_SMALL_WORK="0")
    last = done.stderr.strip().splitlines()[-1]
    rule = "must be forward, reverse, shuffled or 0 (off), is 'fast'"
    assert f"SettingError: the environment variable SMELT_RACE {rule}" in last


def test_disable_compile() -> None:
    calls = []
    with override(disable_compile=True):
        f = smelt.compile(lambda x: calls.append(1) or x + 1)
        f(smelt.array(1.0)), f(smelt.array(2.0))
    assert len(calls) == 2


@pytest.mark.parametrize("name", ["cache_dir", "dump_ir", "profile"])
def test_a_tilde_is_the_users_folder(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Also where no shell has seen it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    with override(**{name: os.path.join("~", "kept")}):
        assert getattr(settings, name) == str(tmp_path / "kept")
    with override(**{name: "a~b"}):
        assert getattr(settings, name) == "a~b"
