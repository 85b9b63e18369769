"""Programs on sizes (`smelt.ir.symbolic`) as plain data, for files: what is read from a file is not executed as code.

The form has ``cases``. In each some sizes are ``equal`` to others or to numbers, where rules may decide otherwise than
where they are not; its ``lines`` say whether the program is the same there. The lines of the first, in which none are,
compute what the program needs. A line is ``[name, operator, a, b]`` with names or numbers as operands; a name is given
the value, while "" and "!" stand for guards that must hold, or must not. ``outputs`` are lists and dictionaries with
names where sizes, or numbers computed from sizes, stand, and null for what holds none.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

from .errors import IRError, shown
from .symbolic import Program, Symbol, has_symbol

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
    "/": operator.truediv,
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_TERM = r"(\w+|\(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?\))"
_LINE = re.compile(rf"(not \()?{_TERM} (\S+) {_TERM}(\))?")
#: No size, and nothing that sizes are computed from, is larger.
_MOST = 1 << 64
_NO_NUMBERS = {"inf", "nan"}


def written_program(program: Program, outputs: Any, equal: dict[str, Any]) -> dict[str, Any]:
    """A case of a program whose inputs are called v0, v1, …, and the form of its outputs.

    Raises:
        IRError: it computes with what are no finite numbers.
    """
    needed: set[str] = set()
    form = _form(outputs, needed)
    lines: list[list[Any]] = []
    for name, code, names in reversed(program.lines):
        if name and name not in needed:
            continue
        match = _LINE.fullmatch(code)
        if match is None or match[3] not in _OPERATORS or not _NO_NUMBERS.isdisjoint((match[2], match[4])):
            raise IRError(f"sizes are computed by {code}, which is not among finite numbers")
        lines.append([name or ("!" if match[1] else ""), match[3], _operand(match[2]), _operand(match[4])])
        needed.update(names)
    return {"cases": [{"equal": equal, "lines": lines[::-1]}], "outputs": form}


def _operand(text: str) -> str | int | float:
    if text[0] != "(":
        return text
    return int(text[1:-1]) if text[1:-1].lstrip("-").isdecimal() else float(text[1:-1])


def _form(x: Any, needed: set[str]) -> Any:
    if type(x) is Symbol:
        needed.add(x.name)
        return x.name
    if not has_symbol(x):
        return None
    return {k: _form(v, needed) for k, v in x.items()} if type(x) is dict else [_form(v, needed) for v in x]


def run_written(form: Any, sizes: Sequence[int]) -> dict[str, Any] | None:
    """The values of all names for these sizes; None where a guard does not hold.

    Raises:
        IRError: it is no form of a program.
    """
    inputs: dict[str, Any] = {f"v{i}": n for i, n in enumerate(sizes)}
    try:
        for case in form["cases"]:
            if all(inputs[a] == (inputs[b] if type(b) is str else b) for a, b in case["equal"].items()):
                found = _run(case["lines"], inputs, True)
                if found is not None:
                    return found if case is form["cases"][0] else _run(form["cases"][0]["lines"], inputs, False)
    except ArithmeticError:
        return None
    except (KeyError, ValueError, TypeError, AttributeError):
        raise IRError(f"{shown(form)} is no program on sizes") from None
    return None


def _run(lines: Any, inputs: dict[str, Any], check: bool) -> dict[str, Any] | None:
    """The values of all names; None where a guard does not hold, if those are to be checked."""
    values = dict(inputs)
    for name, text, *operands in lines:
        if name in ("", "!") and not check:
            continue
        a, b = (values[x] if type(x) is str else _number(x) for x in operands)
        found = _OPERATORS[text](a, b)
        if name not in ("", "!"):
            values[name] = _number(found)
        elif bool(found) is (name == "!"):
            return None
    return values


def _number(x: Any) -> Any:
    if not (abs(x) <= _MOST if type(x) is int else type(x) is float and math.isfinite(x)):
        raise IRError(f"{shown(x)} is no size, and no number that is computed from sizes")
    return x


def merged(original: Any, form: Any, values: dict[str, Any]) -> Any:
    """`original` with values where the form has names.

    Raises:
        IRError: the form belongs to something else.
    """
    if form is None:
        return original
    if type(form) is str and type(original) in (int, float) and type(values.get(form)) is type(original):
        return values[form]
    if type(form) is list and type(original) in (tuple, list) and len(form) == len(original):
        return type(original)([merged(x, part, values) for x, part in zip(original, form)])
    if type(form) is dict and type(original) is dict and set(form) <= set(original):
        return {k: merged(x, form.get(k), values) for k, x in original.items()}
    raise IRError(f"{shown(form)} are no sizes of {shown(original)}")
