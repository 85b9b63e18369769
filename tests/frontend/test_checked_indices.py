"""Indices of arrays that have values (SMELT_CHECK=1): out of range they are an error that names the op and its line."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import smelt
x, known = smelt.ones((3, 4)), smelt.array([0, 7])
smelt.eval(x, known)
CALLS = {
    "x[i]": lambda: x[i],
    "x[:, i]": lambda: x[:, i],
    "take": lambda: smelt.take(x, i, axis=1),
    "take of the flattened array": lambda: smelt.take(x, i + 20),
    "take_along_axis": lambda: smelt.take_along_axis(x, i[:, None], axis=0),
    "at": lambda: x.at[i].add(1.0),
    "put_along_axis": lambda: smelt.put_along_axis(x, i[:, None], smelt.array(1.0), axis=0),
    "gather_mm": lambda: smelt.gather_mm(smelt.ones((2, 3, 4)), smelt.ones((2, 4, 5)), i, i),
    "below": lambda: x[-i],
}
for name, call in CALLS.items():
    i = known + 0  # one whose value is there is an error of the call
    made = call()
    try:
        smelt.eval(made)
    except IndexError as error:
        line = call.__code__.co_firstlineno
        assert f"<string>:{line}" in str(error) or f"line {line}" in str(error), (name, line, str(error))
        assert "smelt.gather: index" in str(error) or "smelt.scatter: index" in str(error), (name, str(error))
    else:
        raise AssertionError(name)
"""


def test_the_error_names_the_op_and_its_line() -> None:
    environment = {"SMELT_CHECK": "1", "PATH": "/usr/bin"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
