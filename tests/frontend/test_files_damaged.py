"""Damaged and hostile files: what leaves `load` is an error that it documents, and memory is what the file holds."""

from __future__ import annotations

import io
import json
import sys
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir.errors import DTypeError, FileFormatError, OutOfMemoryError

DOCUMENTED = (FileFormatError, DTypeError, OutOfMemoryError, OSError)


def loaded(data: bytes, format: str | None = None) -> Any:
    """What a file holds, evaluated; or the error."""
    try:
        found = smelt.load(io.BytesIO(data), format)
        smelt.eval(found)
    except DOCUMENTED as error:
        return error
    return found


def npy(header: str, data: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    text = header.encode("utf-8")
    return b"\x93NUMPY" + version + len(text).to_bytes(2 if version[0] == 1 else 4, "little") + text + data


def described(descr: str = "'<f4'", order: str = "False", shape: str = "(2,)") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"


def saved(write: Callable, *args: Any, **kwargs: Any) -> bytes:
    file = io.BytesIO()
    write(file, *args, **kwargs)
    return file.getvalue()


X = np.arange(6, dtype=np.float32).reshape(2, 3)
DEEP = 100_000
NPY = {
    "13 bytes": b"\x93NUMPY\x02\x00\xff\xff\xff\x7f{",
    "huge shape": npy(described(shape="(1000000000000,)")),
    "huge product": npy(described(shape=f"({2**62}, {2**62})")),
    "empty product": npy(described(shape=f"({2**62}, 0, {2**62})")),
    "many digits": npy(described(shape="(" + "9" * 60_000 + ",)")),
    "many axes": npy(described(shape="(" + "1," * 20_000 + ")"), b"1234"),
    "negative": npy(described(shape="(-2,)"), b"12345678"),
    "brackets": npy("{" + "(" * 60_000),
    "signs": npy(described(shape="(" + "-" * 50_000 + "1,)")),
    "unclosed": npy("{'descr': '<f4"),
    "tokens": npy("{'descr': '''"),
    "null": npy("\0" * 100),
    "call": npy(described(shape="(print(1),)")),
    "list": npy("[1, 2]"),
    "twice": npy("{'shape': (1,), 'shape': (2,), 'descr': '<f4'}"),
    "more keys": npy("{'shape': (1,), 'descr': '<f4', 'fortran_order': False, 'more': 1}", b"1234"),
    "object": saved(np.save, np.array([{}], object), allow_pickle=True),
    "structure": saved(np.save, np.zeros(2, [("a", "<f4"), ("b", "<i8")])),
    "recursive structure": npy(described("[('a', [" * 5_000)),
    "text": saved(np.save, np.array(["text"])),
    "date": saved(np.save, np.array(["2020-01-01"], "M8[D]")),
    "void": saved(np.save, np.zeros(2, "V7")),
    "subarray": npy(described("'(1000000000,)f4'")),
    "commas": npy(described("'f4,f4'")),
    "huge text": npy(described("'<U999999999'")),
    "empty descr": npy(described("''")),
    "version 9": npy(described(), b"12345678", b"\x09\x00"),
    "too short": npy(described(), b"1234567"),
    "no shape": npy("{'descr': '<f4', 'fortran_order': False}"),
    "odd order": npy(described(order="3"), b"12345678"),
}


@pytest.mark.parametrize("what", NPY)
def test_hostile_npy(what: str) -> None:
    assert isinstance(loaded(NPY[what], "npy"), (FileFormatError, DTypeError, OutOfMemoryError))


HEADERS: dict[str, Any] = {
    "brackets": b"[" * DEEP, "objects": b'{"a":' * DEEP, "digits": b'{"w": ' + b"9" * DEEP + b"}", "list": b"[1]",
    "number": b"3", "text": b'"x"', "null": b"null", "empty": b"", "no JSON": b"{w: 3}", "not UTF-8": b'{"\xff": 1}',
    "twice": b'{"w": {"dtype":"U8","shape":[1],"data_offsets":[0,1]},'
    b'"w": {"dtype":"U8","shape":[1],"data_offsets":[0,1]}}',
    "metadata": {"__metadata__": 3}, "metadata of numbers": {"__metadata__": {"a": 1}},
    "no entry": {"w": 3}, "empty entry": {"w": {}},
    **{
        f"{key} {value!r}"[:40]: {"w": {"dtype": "U8", "shape": [8], "data_offsets": [0, 8], key: value}}
        for key, values in {
            "dtype": (3, None, [], {}, "F4", "f32", "", "COMPLEX"),
            "shape": (8, None, "8", [8.0], [True], [-8], [2**62, 2**62], [9], [None], [[8]], {}, [1] * 70 + [8]),
            "data_offsets": (8, None, [0], [0, 8, 8], [8, 0], [-8, 0], [0, 2**70], [0.0, 8.0], [1, 9], "08", [None, 8]),
        }.items()
        for value in values
    },
    "overlap": {f"w{i}": {"dtype": "U8", "shape": [8], "data_offsets": [0, 8]} for i in range(1000)},
    "gap": {"w": {"dtype": "U8", "shape": [4], "data_offsets": [4, 8]}},
    "bytes left": {"w": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}},
}  # fmt: skip


def safe(header: Any, data: bytes = b"12345678") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


@pytest.mark.parametrize("what", HEADERS)
def test_hostile_safetensors(what: str) -> None:
    assert isinstance(loaded(safe(HEADERS[what]), "safetensors"), (FileFormatError, DTypeError))


def test_a_number_is_no_bool() -> None:
    """Any other byte would be one that is neither."""
    header = {"w": {"dtype": "BOOL", "shape": [4], "data_offsets": [0, 4]}}
    found = loaded(safe(header, b"\0\1\2\xff"))["w"]
    assert found.tolist() == [False, True, True, True] and found.astype(smelt.int32).tolist() == [0, 1, 1, 1]
    found = loaded(npy(described("'|b1'", shape="(3,)"), b"\0\7\1"))
    assert found.astype(smelt.int32).tolist() == [0, 1, 1]


def archive(entries: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as out:
        for name, data in entries.items():
            out.writestr(name, data)
    return file.getvalue()


def overlapping(count: int) -> bytes:
    """Many entries of a directory that name the same megabyte."""
    data = saved(np.save, np.zeros(1 << 18, np.float32))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as out:
        out.writestr("a.npy", data)
        first = out.infolist()[0]
        for i in range(count):
            info = zipfile.ZipInfo(f"b{i}.npy")
            for name in ("compress_type", "CRC", "compress_size", "file_size", "header_offset", "flag_bits"):
                setattr(info, name, getattr(first, name))
            out.filelist.append(info)
            out.NameToInfo[info.filename] = info
    return file.getvalue()


def patched(data: bytes, place: bytes, offset: int, new: bytes) -> bytes:
    """`data` with bytes changed behind each occurrence of a signature."""
    found, at = bytearray(data), data.find(place)
    while at >= 0:
        found[at + offset : at + offset + len(new)] = new
        at = data.find(place, at + 1)
    return bytes(found)


GOOD = saved(np.save, X)
PLAIN, PACKED = archive({"a.npy": GOOD}), archive({"a.npy": GOOD}, zipfile.ZIP_DEFLATED)
HUGE = b"\xff\xff\xff\x7f"
NPZ = {
    "lzma": archive({"a.npy": GOOD}, zipfile.ZIP_LZMA), "bzip2": archive({"a.npy": GOOD}, zipfile.ZIP_BZIP2),
    "no array": archive({"a.npy": b"nothing"}), "folder": archive({"a/": b""}), "empty": archive({"a.npy": b""}),
    "more behind": archive({"a.npy": GOOD + b"x"}), "overlap": overlapping(1000),
    "header of 2 GiB": archive({"a.npy": NPY["13 bytes"]}), "huge shape": archive({"a.npy": NPY["huge shape"]}),
    "encrypted": patched(patched(PLAIN, b"PK\1\2", 8, b"\1\0"), b"PK\3\4", 6, b"\1\0"),
    "unknown method": patched(patched(PLAIN, b"PK\1\2", 10, b"c\0"), b"PK\3\4", 8, b"c\0"),
    "wrong CRC": patched(patched(PLAIN, b"PK\1\2", 16, b"abcd"), b"PK\3\4", 14, b"abcd"),
    "wrong size": patched(PLAIN, b"PK\1\2", 24, HUGE), "wrong packed size": patched(PACKED, b"PK\1\2", 20, HUGE),
    "wrong offset": patched(PLAIN, b"PK\1\2", 42, HUGE), "wrong directory": patched(PLAIN, b"PK\5\6", 16, HUGE),
    "deflate": patched(PACKED, b"PK\3\4", 35, b"\xff" * 40),
    "long name": patched(archive({"a.npy": saved(np.save, np.zeros(2000))}), b"PK\3\4", 26, b"\0\x20"),
    "stored as packed": patched(PLAIN, b"PK\1\2", 10, b"\x08\0"), "truncated": PLAIN[:-30],
}  # fmt: skip


@pytest.mark.parametrize("what", NPZ)
def test_hostile_npz(what: str) -> None:
    error = loaded(NPZ[what], "npz")
    assert isinstance(error, (FileFormatError, DTypeError)) and len(str(error)) < 1500


EVERY = {"npy": NPY, "npz": NPZ, "safetensors": {what: safe(header) for what, header in HEADERS.items()}}


@pytest.mark.parametrize("format", EVERY)
def test_memory_is_what_the_file_holds(format: str) -> None:
    for what, data in EVERY[format].items():
        tracemalloc.start()
        try:
            loaded(data, format)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 60 * len(data) + (1 << 23), f"{what}: {peak} bytes for a file of {len(data)}"


def test_what_is_compressed_well_is_still_read() -> None:
    x = np.zeros((1 << 10, 1 << 10), np.float32)
    data = saved(np.savez_compressed, x=x)
    assert len(data) < 10_000
    np.testing.assert_array_equal(np.array(loaded(data)["x"]), x)


def test_more_than_there_is_memory_for() -> None:
    data = saved(np.save, np.zeros(1 << 20, np.float32))
    before = smelt.set_memory_limit(1 << 20)
    try:
        assert isinstance(loaded(data), (OutOfMemoryError, smelt.array))
    finally:
        smelt.set_memory_limit(before)


def damaged() -> Iterator[tuple[str, str, bytes]]:
    whole = {"npy": GOOD, "npz": PACKED, "safetensors": safe({"w": {"dtype": "F32", "shape": [2, 1],
             "data_offsets": [0, 8]}, "__metadata__": {"a": "b"}})}  # fmt: skip
    for name, data in whole.items():
        for length in range(len(data)):
            yield name, f"{name} up to {length}", data[:length]
        for at in range(len(data)):
            for byte in {0, 0xFF, data[at] ^ 1, data[at] ^ 0x80}:
                yield name, f"{name} with {byte} at {at}", data[:at] + bytes([byte]) + data[at + 1 :]


def test_each_length_and_each_byte() -> None:
    for format, what, data in damaged():
        for given in (None, format):
            try:
                loaded(data, given)
            except Exception as error:
                raise AssertionError(f"{what}: {type(error).__name__}: {error}") from error


class Odd(io.BytesIO):
    """A file that gives what no file gives."""

    def __init__(self, data: bytes, gives: Callable[[bytes], Any]):
        super().__init__(data)
        self.gives = gives

    def read(self, count: int | None = -1) -> Any:
        return self.gives(super().read(count))


@pytest.mark.parametrize("format", ["npy", "npz", "safetensors"])
def test_odd_files(format: str, tmp_path: Path) -> None:
    whole = {"npy": GOOD, "npz": PACKED, "safetensors": safe(HEADERS["gap"])}[format]
    answers: list[Callable[[bytes], Any]] = [
        lambda b: None, lambda b: "text", lambda b: b + b"more", lambda b: b"", lambda b: b[:1], lambda b: 3,
    ]  # fmt: skip
    for gives in answers:
        for given in (None, format):
            with pytest.raises(DOCUMENTED):
                smelt.load(Odd(whole, gives), given)
                raise FileFormatError("some bytes at a time are enough")
    closed = io.BytesIO(whole)
    closed.close()
    path = tmp_path / "x"
    path.write_bytes(whole)
    with open(path, encoding="latin-1") as text:
        for file in (closed, io.StringIO("text"), text, "\0", "\ud800"):
            with pytest.raises(FileFormatError):
                smelt.load(file, format)  # type: ignore[arg-type]
    for name in (tmp_path, tmp_path / "missing", "x" * 5000):
        with pytest.raises(OSError):
            smelt.load(name, format)


def test_arrays_one_behind_the_other() -> None:
    file = io.BytesIO()
    for n in range(3):
        smelt.save(file, smelt.arange(n))
    file.seek(0)
    assert [smelt.load(file).tolist() for _ in range(3)] == [[], [0], [0, 1]]


@pytest.mark.skipif(sys.platform == "win32", reason="no such file")
@pytest.mark.parametrize("format", [None, "npy", "npz", "safetensors"])
def test_endless_files(format: str | None) -> None:
    with pytest.raises((FileFormatError, OSError)):
        smelt.load("/dev/zero", format)


HEADER_FORMS = [
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}", "{'descr':'<f4','fortran_order':False,'shape':(2,3)}",
    "{'shape': (2L, 3L), 'fortran_order': False, 'descr': '<f4'}  ", "{ 'fortran_order': False , 'descr': '<f4', "
    "'shape': (2, 3,), }\n",
]  # fmt: skip


@pytest.mark.parametrize("header", HEADER_FORMS)
@pytest.mark.parametrize("version", [b"\x01\x00", b"\x02\x00", b"\x03\x00"])
def test_headers_that_others_write(header: str, version: bytes) -> None:
    assert loaded(npy(header, X.tobytes(), version)).tolist() == X.tolist()
