"""Every pass on every valid module: the result verifies and means the same, or there is an error of smelt.

The modules are the lit files of the passes and those of `modules`, which have little in common with what the
frontend writes.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smelt.ir import mlir, text
from smelt.ir.builder import functions, read_function
from smelt.ir.errors import SmeltError
from smelt.ir.interpreter import Interpreter
from smelt.passes import Pipeline
from smelt.passes.registry import registry

from .control_programs import EXPAND
from .modules import MODULES

ROOT = Path(__file__).parent.parent
FILES = {str(p.relative_to(ROOT)): p for folder in ("passes", "diffrules") for p in (ROOT / folder).rglob("*.mlir")}
#: Options of passes that change what they do.
OPTIONS = [
    "fuse{contractions=true}", "fuse{max-ops=2}", "fuse{max-buffers=3}", "remat{max-flops=100}",
    "place{kinds=control}", "place{dtypes=f32}", "place{kinds=opaque}",
]  # fmt: skip
#: What one pass leaves is valid input of the next.
SEQUENCES = [
    "fuse,dce", "fuse,plan-buffers,dce", "place{kinds=control},inline", "dce,fuse,plan-buffers", "linearize,remat,dce",
    "inline,jvp,cse", "dce,batch", "dce,transpose",
]  # fmt: skip
EXPANDED = [f"{EXPAND},canonicalize,cse,dce", f"{EXPAND},dce,fuse,plan-buffers,dce"]


def own_passes() -> list[str]:
    return [name for name, cls in registry().items() if cls.__module__.startswith("smelt.passes.")]


def parsed(source: str) -> Any:
    with mlir.lock:
        module = text.parse(source)
        text.verify(module)
    return module


class Endless(Exception):
    """A program that runs for very long from the arguments that it was given."""


class Patient(Interpreter):
    """An interpreter that does not wait for ever."""

    calls = 0

    def __call__(self, name: str, arguments: Any) -> list[np.ndarray]:
        self.calls += 1
        if self.calls > 150:
            raise Endless
        return super().__call__(name, arguments)


def meaning(source: str) -> dict[str, list[np.ndarray]] | None:
    """What the public functions compute from some arguments; None if they cannot be run."""
    module = parsed(source)
    try:
        Pipeline.parse(EXPAND).run(module)
        found = {}
        for name, operation in functions(module).items():
            if "sym_visibility" not in operation.attributes:
                with mlir.lock:
                    avals = [a.aval for a in read_function(operation).arguments]
                rng = np.random.default_rng(3)
                arguments = [np.asarray(rng.uniform(0.4, 2.4, a.shape)).astype(a.dtype.numpy) for a in avals]
                with np.errstate(all="ignore"), contextlib.suppress(Endless):
                    found[name] = Patient(module)(name, arguments)
    except SmeltError:
        return None
    return found


def _of_rounding(a: np.ndarray) -> float:
    """What sums may differ by whose terms cancel, as in the gradient of attention."""
    return 5e-6 * max(1.0, float(np.abs(np.where(np.isfinite(a), a, 0)).max(initial=0)))


def check(source: str, pipelines: list[str]) -> None:
    meanings: dict[str, dict[str, list[np.ndarray]] | None] = {}
    want = meanings[text.to_text(parsed(source))] = meaning(source)
    problems = []
    for pipeline in pipelines:
        module = parsed(source)
        try:
            Pipeline.parse(pipeline).run(module)
        except SmeltError as error:
            if want and "is for modules without transformations" not in str(error):
                problems.append(f"{pipeline} refuses what can be run: {error}")
            continue
        except Exception as error:  # the test is that there is none
            problems.append(f"{pipeline}: {type(error).__name__}: {error}")
            continue
        after = text.to_text(module)
        if after in meanings:
            continue  # as it was, or as another pipeline left it
        have = meanings[after] = meaning(after)  # which verifies
        if want is None:
            continue
        if have is None or set(have) != set(want):
            problems.append(f"{pipeline}: it cannot be run any more\n{after}")
            continue
        for name, results in want.items():
            for a, b in zip(results, have[name], strict=True):
                same = a.dtype == b.dtype and a.shape == b.shape
                if same and a.tobytes() == b.tobytes():
                    continue
                if not same or not np.allclose(a, b, rtol=1e-5, atol=_of_rounding(a), equal_nan=True):
                    problems.append(f"{pipeline}: @{name} means something else\n{after}")
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("name", [*MODULES, *sorted(FILES)])
def test_passes_keep_the_meaning_or_raise_an_error_of_smelt(name: str) -> None:
    source = MODULES[name] if name in MODULES else FILES[name].read_text(encoding="utf-8")
    try:
        parsed(source)
    except SmeltError:
        pytest.skip("no valid module")
    if name.startswith("diffrules/"):
        check(source, EXPANDED)
    else:
        check(source, [*own_passes(), *OPTIONS, *SEQUENCES, *EXPANDED])
