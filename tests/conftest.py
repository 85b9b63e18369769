"""What all tests share: settings and random state are as they were after each test."""

from __future__ import annotations

import argparse
import gc
import os
import re
import signal
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from smelt.backends.device import devices, registered, unknown
from smelt.ir.settings import settings
from smelt.runtime.device import chosen, cpu

from .devices import ON_DEVICES, chosen_device, is_chosen

CAMPAIGNS = Path(__file__).parent / "long"

hypothesis_settings.register_profile(
    "smelt", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
hypothesis_settings.load_profile("smelt")

# Tests compile: what an earlier run has left on disk is none of their business. Child processes see the variable.
settings.cache = False
os.environ["SMELT_CACHE"] = "0"


# What is tested is the compiler, unless a test or the environment says otherwise.
if "SMELT_TIER" not in os.environ:
    settings.tier = "program"

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell has it for what runs in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)


def part_of(text: str) -> tuple[int, int]:
    """`K/N` as numbers, of which the first counts from one."""
    found = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", text)
    if found is None or int(found[1]) > int(found[2]):
        raise argparse.ArgumentTypeError(f"{text!r} is not like 1/2")
    return int(found[1]), int(found[2])


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--device", metavar="NAME", help="run the tests of ops, compositions and the frontend on a device")
    parser.addoption("--update-golden", action="store_true", help="write the expected Metal texts anew")
    parser.addoption("--sample", type=int, default=1, metavar="N", help="of each test's variants only every N-th")
    parser.addoption("--part", type=part_of, metavar="K/N", help="of each file's tests every N-th, from the K-th on")
    parser.addoption("--all-variants", action="store_true", help="those, too, that `thinned` leaves out")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "host(reason): about the CPU and its memory; left out on another device")
    config.addinivalue_line("markers", "tier(name): about what runs that way, whatever SMELT_TIER says")
    config.addinivalue_line("markers", "thinned(n): every n-th diagonal of its variants is run, all by --all-variants")
    name = config.getoption("--device")
    if not name:
        return
    if name == "apart":
        from . import apart  # noqa: F401  (registers itself, which other runs must not see)
    if name not in devices:
        pytest.exit(unknown(name), returncode=0 if name in registered else 4)
    settings.device = name
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        config.args = list(ON_DEVICES)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """The campaigns run when they are named (`pytest tests/long`); pytest does not ask about what is named."""
    return True if collection_path == CAMPAIGNS else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if is_chosen() and chosen_device() != cpu:
        for item in items:
            for mark in item.iter_markers("host"):
                item.add_marker(pytest.mark.skip(reason=mark.args[0]))
    sample, is_thinned = config.getoption("--sample"), not config.getoption("--all-variants")
    seen: Counter[str] = Counter()
    diagonal = Diagonals()
    part = Part(*(config.getoption("--part") or (1, 1)))
    kept, left_out = [], []
    for item in items:
        test = item.nodeid.partition("[")[0]
        if test not in part:
            left_out.append(item)
            continue
        thinned = item.get_closest_marker("thinned") if is_thinned else None
        if thinned is not None and diagonal(test, item) % thinned.args[0]:
            left_out.append(item)
            continue
        (left_out if seen[test] % sample else kept).append(item)
        seen[test] += 1
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


class Part:
    """Of the tests of each file, with all of their variants, every `step`-th from the `first`-th on."""

    def __init__(self, first: int, step: int) -> None:
        self.first, self.step = first, step
        self._numbers: defaultdict[str, dict[str, int]] = defaultdict(dict)  #: of the tests of each file

    def __contains__(self, test: str) -> bool:
        numbers = self._numbers[test.partition("::")[0]]
        return (numbers.setdefault(test, len(numbers)) + 1 - self.first) % self.step == 0


class Diagonals:
    """Numbers diagonals of the grids that the parameters of tests make.

    Where each side but one has n values, every n-th diagonal meets every value of each side; of one list of
    parameters it is every n-th.
    """

    def __init__(self) -> None:
        #: By test and names of parameters that go together: places of their values, which are told apart by identity.
        self._places: defaultdict[tuple[str, ...], dict[tuple[int, ...], int]] = defaultdict(dict)

    def __call__(self, test: str, item: pytest.Item) -> int:
        callspec = getattr(item, "callspec", None)
        if callspec is None:
            return 0
        left, found = dict(callspec.params), 0
        marks = [m.args[0] if m.args else m.kwargs["argnames"] for m in item.iter_markers("parametrize")]
        together = [re.findall(r"\w+", names) if isinstance(names, str) else names for names in marks]
        for names in (*together, *([name] for name in callspec.params)):  # the latter: of fixtures
            if values := tuple([id(left.pop(name)) for name in names if name in left]):
                places = self._places[(test, *names)]
                found += places.setdefault(values, len(places))
        return found


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Tests live as long as the process: the collector of garbage need not look at them, again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.fixture(scope="module")
def small_heap() -> None:
    """For files whose tests collect garbage or count objects: these look among what the file makes alone. A process
    that has run many tests has a million objects besides, which take a second each time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def restore_settings(request: pytest.FixtureRequest) -> Iterator[None]:
    saved = dict(vars(settings))
    if (mark := request.node.get_closest_marker("tier")) is not None:
        settings.tier = mark.args[0]
    yield
    chosen.device = None
    if vars(settings) != saved:
        vars(settings).clear()
        vars(settings).update(saved)
