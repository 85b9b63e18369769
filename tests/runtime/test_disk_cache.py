"""Programs on disk: found again, checked, bounded, and never trusted where others can write."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.cpu import objects
from smelt.ir.custom_call import Target, register_target
from smelt.ir.settings import override
from smelt.lazy.evaluate import executables
from smelt.runtime import kept
from smelt.runtime.disk import PUTS, DiskCache, disk

pytestmark = pytest.mark.skipif(not objects.supported(), reason="no objects are loaded on this machine")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Where programs are kept in this test."""
    with override(cache=True, cache_dir=tmp_path):
        place = disk.place
        assert place is not None
        yield Path(place)


def x_of(*shape: int) -> Any:
    return smelt.array(np.random.default_rng(0).random(shape, np.float32) + 0.5)


def again(make: Callable[[], Any], *arguments: Any) -> tuple[Any, Any]:
    """What a function gives when it is compiled, and when it comes from disk. Each `make` is another function."""
    before = disk.writes, disk.hits
    first = smelt.compile(make())(*arguments)
    assert (disk.writes, disk.hits) == (before[0] + 1, before[1])
    second = smelt.compile(make())(*arguments)
    assert (disk.writes, disk.hits) == (before[0] + 1, before[1] + 1)
    return first, second


def scanned(x: Any) -> Any:
    return smelt.scan(lambda c, y: (c + y, c * y), x.sum(), x)


def endless(x: Any) -> Any:
    return smelt.while_loop(lambda s: s.sum() < 1e4, lambda s: s * 1.5, x)


def root(x: Any) -> Any:
    return smelt.linalg.cholesky(x @ x.T + smelt.eye(x.shape[0]) * 4)


def looped_on_the_host(x: Any) -> Any:
    return smelt.scan(lambda c, y: (root(c) + y, c.sum()), smelt.eye(3), x)


def endless_on_the_host(x: Any) -> Any:
    return smelt.while_loop(lambda s: s.sum() < 1e4, lambda s: s * 1.5 + root(s), x)


def branched_on_the_host(x: Any) -> Any:
    return smelt.cond(x.sum() > 0, root, lambda x: x, x)


PROGRAMS = {
    "elementwise": (lambda x: smelt.exp(x) * 2, (30,)),
    "a team": (lambda x: smelt.softmax(x, axis=1), (600, 600)),
    "no kernel": (lambda x: (x, x.reshape(4, 3)), (12,)),
    "aliases": (lambda x: (x + 1, x, x.reshape(-1)), (3, 4)),
    "a product": (lambda x: x @ x.T, (200, 200)),
    "complex": (lambda x: smelt.abs(x.astype(smelt.complex64) * 1j), (9,)),
    "a literal": (lambda x: x + smelt.array(np.arange(5, dtype=np.float32)), (5,)),
    "gradient": (smelt.grad(lambda x: (smelt.sin(x) * x).sum()), (7, 3)),
    "random": (lambda x: x + smelt.random.normal(x.shape, key=smelt.random.key(3)), (50,)),
    "sorted": (lambda x: (smelt.sort(x), smelt.argsort(x), smelt.cumsum(x)), (50,)),
    "library": (lambda x: root(x) * 2, (4, 4)),
    "several results": (smelt.linalg.qr, (4, 3)),
    "loop": (scanned, (20,)),
    "long loop": (endless, (5,)),
    "loop on the host": (looped_on_the_host, (5, 3, 3)),
    "endless on the host": (endless_on_the_host, (3, 3)),
    "branch on the host": (branched_on_the_host, (3, 3)),
}


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_comes_from_disk_is_the_same(name: str, checked: bool, folder: Path) -> None:
    function, shape = PROGRAMS[name]
    with override(check=checked):
        first, second = again(lambda: lambda x: function(x), x_of(*shape))
    for one, other in zip(smelt.utils.tree_flatten(first), smelt.utils.tree_flatten(second)):
        np.testing.assert_array_equal(np.array(one[1]), np.array(other[1]))
    assert [path.stat().st_mode & 0o777 for path in (folder, *folder.iterdir())] == [0o700, 0o600]


CODE = """
import numpy as np, smelt
from smelt.runtime.disk import disk
x = smelt.array(np.arange(10, dtype=np.float32))
print(np.array(smelt.compile(lambda x: smelt.cos(x) * 3)(x)).tolist())
import sys
bindings = any(name.endswith("_mlir_libs") for name in sys.modules)
print(disk.hits, disk.writes, bindings, "smelt.passes" in sys.modules, "smelt.backends.cpu.program" in sys.modules)
"""


def run(**variables: str) -> list[str]:
    environment = {**os.environ, "SMELT_TIER": "program", **variables}
    command = [sys.executable, "-c", CODE]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, timeout=120)
    return done.stdout.splitlines()


def test_another_process_compiles_nothing(tmp_path: Path) -> None:
    first = run(SMELT_CACHE="1", SMELT_CACHE_DIR=str(tmp_path))
    second = run(SMELT_CACHE="1", SMELT_CACHE_DIR=str(tmp_path))
    assert first[0] == second[0]
    assert (first[1], second[1]) == ("0 1 True True True", "1 0 False False False")
    assert run(SMELT_CACHE="0", SMELT_CACHE_DIR=str(tmp_path))[1] == "0 0 True True True"


def message_of(function: Callable[[Any], Any]) -> str:
    with pytest.raises(np.linalg.LinAlgError) as caught:
        smelt.eval(smelt.compile(function)(smelt.zeros((2, 2))))
    return str(caught.value)


def test_errors_name_the_lines_of_this_process(folder: Path) -> None:
    messages = []
    for _ in range(2):  # the second time from disk
        first = lambda x: smelt.linalg.cholesky(x)  # noqa: E731
        other = lambda x: smelt.linalg.cholesky(x)  # noqa: E731  (on another line)
        messages.append((message_of(first), message_of(other)))
    assert messages[0] == messages[1] and messages[0][0] != messages[0][1]
    assert len(list(folder.iterdir())) == 2


def test_settings_that_change_code_are_part_of_the_key(folder: Path) -> None:
    x = x_of(5)
    for checked in (False, True):
        with override(check=checked):
            again(lambda: lambda x: x * 3, x)
    assert len(disk.entries()) == 2


def test_what_only_this_process_knows_is_not_kept(folder: Path) -> None:
    register_target(Target("tests.disk", lambda call, x: x * 2))
    types = smelt.ShapeDtype((5,), smelt.float32)
    smelt.eval(smelt.compile(lambda x: smelt.custom_call("tests.disk", x, types=types))(x_of(5)))
    assert not disk.entries()


# The files


@pytest.fixture
def cache(folder: Path) -> DiskCache:
    found = DiskCache()
    assert found.put("key", b"content" * 100)
    return found


def the_file(folder: Path) -> Path:
    (path,) = folder.iterdir()
    return path


def test_changed_bytes_are_noticed(cache: DiskCache, folder: Path) -> None:
    rng = np.random.default_rng(0)
    good = the_file(folder).read_bytes()
    for at in [0, 16, 48, 56, len(good) - 1, *rng.integers(0, len(good), 40).tolist()]:
        changed = bytearray(good)
        changed[at] ^= 1 << int(rng.integers(8))
        (folder / "key.program").write_bytes(changed)
        os.chmod(folder / "key.program", 0o600)
        assert cache.get("key") is None and not list(folder.iterdir())
    for length in (0, 1, 55, 56, len(good) - 1):
        (folder / "key.program").write_bytes(good[:length])
        os.chmod(folder / "key.program", 0o600)
        assert cache.get("key") is None and not list(folder.iterdir())
    assert cache.damaged == 50
    (folder / "other.program").write_bytes(good)
    os.chmod(folder / "other.program", 0o600)
    assert cache.get("other") is None  # it was written under another key


def test_memory_for_an_entry_is_that_of_the_entry(
    cache: DiskCache, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Where memory is limited (ulimit -v, containers) a buffer for the largest entry would not be there.
    tracemalloc.start()
    try:
        assert cache.get("key") == b"content" * 100
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()

    def out_of_memory(*_: Any, **__: Any) -> bytes:
        raise MemoryError

    monkeypatch.setattr("smelt.runtime.disk.os.fdopen", out_of_memory)
    assert cache.get("key") is None and the_file(folder).exists() and not cache.damaged


def test_a_damaged_program_is_compiled_again(folder: Path) -> None:
    again(lambda: lambda x: x * 5, x_of(5))
    path = the_file(folder)
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    again(lambda: lambda x: x * 5, x_of(5))


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_what_others_can_write_is_not_read(cache: DiskCache, folder: Path, mode: int) -> None:
    os.chmod(the_file(folder), mode)
    assert cache.get("key") is None
    os.chmod(the_file(folder), 0o600)
    assert cache.get("key") == b"content" * 100
    os.chmod(folder, 0o700 | mode & 0o077)
    assert cache.get("key") is None and not cache.put("new", b"")
    os.chmod(folder, 0o700)
    assert cache.get("key") is not None


def test_links_and_other_owners_are_not_followed(
    cache: DiskCache, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = the_file(folder)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert cache.get("key") is None
    path.unlink()
    os.mkfifo(path, 0o600)
    assert cache.get("key") is None
    path.unlink()
    folder.rename(tmp_path / "other")
    folder.symlink_to(tmp_path / "other")
    assert not cache.put("key", b"")
    folder.unlink()
    (tmp_path / "other").rename(folder)
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    folder.rename(tmp_path / f"programs-{user + 1}")
    assert cache.get("key") is None and not cache.put("key", b"")


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with override(cache=True, cache_dir=tmp_path / "file"):
        assert not DiskCache().put("key", b"") and DiskCache().get("key") is None and not DiskCache().entries()
        np.testing.assert_array_equal(np.array(smelt.compile(lambda x: x * 7)(smelt.ones(3))), [7, 7, 7])


def test_what_is_empty(folder: Path) -> None:
    cache = DiskCache()
    assert cache.is_empty()
    assert cache.put("key", b"content") and not cache.is_empty()
    cache.clear()
    assert cache.is_empty()


def test_a_folder_that_cannot_be_listed_is_empty(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise OSError(errno.EMFILE, "too many open files")

    cache = DiskCache()
    assert cache.put("key", b"content")
    monkeypatch.setattr(os, "scandir", fails)
    assert cache.is_empty() and not cache.entries()


def test_what_was_used_least_recently_goes_first(folder: Path) -> None:
    cache = DiskCache()
    with override(cache_disk_bytes=5000):
        for i in range(6):
            assert cache.put(f"key{i}", bytes(1000))
            os.utime(folder / f"key{i}.program", (i, i))
            cache.get("key0")
        assert {entry.name for entry in cache.entries()} == {f"key{i}.program" for i in (0, 3, 4, 5)}
        assert not cache.put("large", bytes(5000)) and len(cache.entries()) == 4
    (folder / ".1-left").write_bytes(b"")
    os.utime(folder / ".1-left", (1, 1))
    cache.put("more", b"")
    assert not (folder / ".1-left").exists()  # a writer that died has left it
    assert cache.clear() == 5 and not list(folder.iterdir())


def test_not_every_entry_looks_at_the_whole_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And yet there are hardly more bytes than there may be, whoever writes them."""
    cache = DiskCache()
    scans: list[Any] = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: scans.append(path) or scandir(path))
    for i in range(PUTS):
        assert cache.put(f"{i:02}", bytes(100))
    assert len(scans) == 2  # at the first: entries, and what dead writers left
    other, bound = DiskCache(), sum(file.stat().st_size for file in folder.iterdir()) * 2
    with override(cache_disk_bytes=bound):
        for i in range(PUTS * 4):
            assert (cache if i % 3 else other).put(f"more{i:03}", bytes(100))
            there = sum(file.stat().st_size for file in folder.iterdir())
            assert there <= bound + PUTS * 200  # those that one of them has not seen yet
    assert cache.get(f"more{PUTS * 4 - 1:03}") is not None and cache.get("00") is None


def test_sources_that_changed_since_they_were_loaded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever edits smelt while a process runs shall not find what that compiles under the edited sources."""
    monkeypatch.setattr(kept, "READ_AT", 0.0)
    kept._environment.cache_clear()
    try:
        smelt.eval(smelt.compile(lambda x: x * 11)(x_of(5)))
        assert not disk.entries()
    finally:
        kept._environment.cache_clear()


def test_a_setting_that_changes_meanwhile(folder: Path) -> None:
    trace = smelt.compile(lambda x: x * 12).trace(x_of(5))
    program = trace.lower().compile(keep_texts=False).executable
    recipe = kept.Recipe("of another program", smelt.cpu)
    assert recipe.keys is not None
    with override(check=True):
        assert recipe.keep(program) is None
    assert len(disk.entries()) == 1


def test_a_lazy_graph_that_is_on_disk_runs_as_a_program_at_once(folder: Path) -> None:
    def graph() -> Any:
        x = x_of(1200, 1200)
        return smelt.sin(smelt.exp(x) * 13).sum(axis=0)

    results = []
    for tier, how in (("program", 1), ("auto", 0)):
        executables.clear()
        with override(tier=tier), smelt.explain() as explained:
            results.append(np.array(graph()))
        assert explained.count == how and len(explained.compiles) == 1
    np.testing.assert_array_equal(*results)
