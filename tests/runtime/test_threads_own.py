"""What a thread chooses is chosen for that thread: devices, streams, print options, traces."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import smelt
from smelt.ir.settings import override


def elsewhere(function: Callable[[], Any]) -> Any:
    """What another thread finds now."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


def test_the_default_device_is_the_threads() -> None:
    smelt.set_default_device("reference")
    assert smelt.default_device() == smelt.reference and elsewhere(smelt.default_device) == smelt.cpu
    elsewhere(lambda: smelt.set_default_device("metal:sim"))
    assert smelt.default_device() == smelt.reference
    with override(device="metal:sim"):  # what threads have that chose nothing
        assert elsewhere(smelt.default_device).name == "metal:sim" and smelt.default_device() == smelt.reference


def test_a_stream_is_the_threads() -> None:
    both = threading.Barrier(2, timeout=60)
    shared = smelt.stream("reference")
    found: dict[str, list[Any]] = {"plain": [], "inside": []}

    def plain() -> None:
        for _ in range(3):
            both.wait()
            found["plain"].append((smelt.default_device().name, smelt.default_stream("reference").index > 0))
            both.wait()

    def inside() -> None:
        both.wait()
        with smelt.stream(smelt.new_stream("reference")) as _, shared:
            both.wait()
            both.wait()
            with smelt.stream(smelt.cpu), shared:
                found["inside"].append(smelt.default_device().name)
                both.wait()
                both.wait()
            found["inside"].append(smelt.default_device().name)
            both.wait()
        found["inside"].append(smelt.default_device().name)

    threads = [threading.Thread(target=f) for f in (plain, inside)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == {"plain": [("cpu", True)] * 3, "inside": ["reference", "reference", "cpu"]}


def test_contexts_restore_what_was_there_after_an_error() -> None:
    stream = smelt.new_stream("cpu")
    with pytest.raises(ZeroDivisionError), smelt.stream(smelt.reference), smelt.stream(stream):
        assert (smelt.default_device(), smelt.default_stream("cpu")) == (smelt.cpu, stream)
        raise ZeroDivisionError
    assert (smelt.default_device(), smelt.default_stream("cpu").index) == (smelt.cpu, 0)


def test_the_default_stream_of_a_device_says_nothing_about_the_default_device() -> None:
    stream, before = smelt.new_stream("reference"), smelt.default_stream("reference")
    smelt.set_default_stream(stream)
    try:
        assert smelt.default_device() == smelt.cpu and smelt.default_stream(smelt.reference) == stream
        assert elsewhere(lambda: smelt.default_stream("reference")) not in (stream, before)
    finally:
        smelt.set_default_stream(before)


def test_compiled_functions_know_on_which_device_their_thread_is() -> None:
    f = smelt.compile(lambda x: smelt.exp(x))
    x = smelt.array([0.0, 1.0])
    here = f(x).tolist()

    def there() -> Any:
        with smelt.stream("reference"):
            return f(x).tolist(), repr(f)

    found, text = elsewhere(there)
    assert found == pytest.approx(here, rel=1e-6) and "2 versions" in text


def test_print_options_of_a_block_are_the_threads() -> None:
    with smelt.printoptions(precision=2):
        smelt.set_printoptions(3)
        assert smelt.get_printoptions().precision == 3
        assert elsewhere(smelt.get_printoptions).precision == -1
    assert smelt.get_printoptions().precision == -1
    smelt.set_printoptions(4)
    try:
        assert elsewhere(smelt.get_printoptions).precision == 4
    finally:
        smelt.set_printoptions()


def test_what_is_traced_is_the_threads() -> None:
    other: list[Any] = []

    def f(x: Any) -> Any:
        other.append(elsewhere(lambda: (smelt.array([1.0, 2.0]) + 1).tolist()))
        return x * 2

    assert smelt.compile(f)(smelt.array(3.0)).item() == 6.0
    assert smelt.grad(f)(smelt.array(3.0)).item() == 2.0
    assert smelt.vmap(f)(smelt.array([3.0])).tolist() == [6.0]
    assert other == [[2.0, 3.0]] * 3
