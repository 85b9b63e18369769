"""Arrays in files: round trips, NumPy's view of them, damaged files."""

import io
import json
import mmap
import os
import tracemalloc
import zipfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import smelt
from smelt.ir.errors import DTypeError, TraceError

from .checks import exact

DTYPES = [
    smelt.bool_, smelt.uint8, smelt.int16, smelt.uint32, smelt.int64, smelt.float16, smelt.bfloat16, smelt.float32,
    smelt.float64, smelt.complex64,
]  # fmt: skip


def same(a, b):
    assert a.dtype is b.dtype and a.shape == b.shape
    np.testing.assert_array_equal(np.array(a), np.array(b))


@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
def test_round_trips(dtype, shape, tmp_path):
    x = smelt.array(np.arange(int(np.prod(shape))).reshape(shape), dtype=dtype)
    smelt.save(tmp_path / "x", x)
    same(smelt.load(tmp_path / "x.npy"), x)
    smelt.savez(str(tmp_path / "many.npz"), x, w=x)
    smelt.savez_compressed(tmp_path / "small", x, name=x)
    smelt.save_safetensors(tmp_path / "safe", {"layers.0.w": x, "b": x}, {"step": "7"})
    for file, names in (("many.npz", {"arr_0", "w"}), ("small.npz", {"arr_0", "name"})):
        found = smelt.load(tmp_path / file)
        assert set(found) == names
        for y in found.values():
            same(y, x)
    found, metadata = smelt.load(tmp_path / "safe.safetensors", return_metadata=True)
    assert metadata == {"step": "7"} and list(found) == ["layers.0.w", "b"]
    same(found["b"], x)


def test_numpy_reads_and_writes_them(tmp_path):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    smelt.save(tmp_path / "x.npy", exact(x))
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), x)
    np.savez(tmp_path / "y.npz", a=x.T, b=x.astype(">f8"))
    found = smelt.load(tmp_path / "y.npz")
    np.testing.assert_array_equal(np.array(found["a"]), x.T)
    assert found["b"].dtype is smelt.float64 and found["b"].tolist() == x.tolist()


def test_open_files():
    for write in (smelt.save, smelt.savez, lambda f, x: smelt.save_safetensors(f, {"arr_0": x})):
        file = io.BytesIO()
        write(file, smelt.array([1.5, 2]))
        file.seek(0)
        found = smelt.load(file)
        assert (found["arr_0"] if isinstance(found, dict) else found).tolist() == [1.5, 2]


def test_damaged_files(tmp_path):
    smelt.save(tmp_path / "x.npy", smelt.array([1.0, 2.0]))
    smelt.savez(tmp_path / "x.npz", smelt.array([1.0, 2.0]))
    smelt.save_safetensors(tmp_path / "x.safetensors", {"w": smelt.array([1.0, 2.0])})
    for name in ("x.npy", "x.npz", "x.safetensors"):
        data = (tmp_path / name).read_bytes()
        for length in (len(data) - 3, len(data) // 2, 9):
            (tmp_path / name).write_bytes(data[:length])
            with pytest.raises(ValueError, match=name):
                smelt.load(tmp_path / name)
    (tmp_path / "text").write_text("hello")
    with pytest.raises(ValueError, match=r"text does not begin as.*test_io\.py"):
        smelt.load(tmp_path / "text")
    with pytest.raises(FileNotFoundError):
        smelt.load(tmp_path / "missing.npy")


def test_hostile_files(tmp_path):
    np.save(tmp_path / "o.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.save(tmp_path / "s.npy", np.array(["text"]))
    with pytest.raises(ValueError, match=r"o\.npy"):
        smelt.load(tmp_path / "o.npy")
    with pytest.raises(DTypeError, match=r"s\.npy"):
        smelt.load(tmp_path / "s.npy")
    for header in (b'{"w": {"dtype": "F32", "shape": [4], "data_offsets": [0, 8]}}', b"[1]", b'{"w": 3}',
                   b'{"w": {"dtype": "F32", "shape": [-2], "data_offsets": [8, 0]}}'):  # fmt: skip
        (tmp_path / "h.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"12345678")
        with pytest.raises(ValueError, match=r"h\.safetensors"):
            smelt.load(tmp_path / "h.safetensors")
    (tmp_path / "long.safetensors").write_bytes(b"\xff" * 7 + b"\x00{}")
    with pytest.raises(ValueError, match="long"):
        smelt.load(tmp_path / "long.safetensors")
    with zipfile.ZipFile(tmp_path / "z.npz", "w") as archive:
        archive.writestr("a.npy", b"nothing")
    with pytest.raises(ValueError, match=r"z\.npz"):
        smelt.load(tmp_path / "z.npz")


def test_arguments(tmp_path):
    with pytest.raises(ValueError, match="arr_0"):
        smelt.savez(tmp_path / "x", smelt.array(1), arr_0=smelt.array(2))
    with pytest.raises(ValueError, match="format"):
        smelt.load(tmp_path / "x", format="tar")
    smelt.save(tmp_path / "x", smelt.array(1))
    with pytest.raises(ValueError, match="metadata"):
        smelt.load(tmp_path / "x.npy", return_metadata=True)
    with pytest.raises(TraceError):
        smelt.compile(lambda x: smelt.save(tmp_path / "t", x))(smelt.array(1.0))


def test_safetensors_are_mapped(tmp_path):
    """Loading looks at the header alone, and what is loaded outlives the file's name."""
    path = tmp_path / "x.safetensors"
    smelt.save_safetensors(path, {"a": smelt.arange(1000), "b": smelt.array([True, False]), "c": smelt.ones(3)})
    found = smelt.load(path)
    base = found["a"]._host()
    while isinstance(base, np.ndarray):
        base = base.base
    assert isinstance(base.obj, mmap.mmap)
    smelt.save_safetensors(path, {"a": found["a"] + 1})  # where it was loaded from
    assert found["a"].sum().item() == 499500 and found["c"].tolist() == [1, 1, 1]
    assert smelt.load(path)["a"].sum().item() == 500500
    with open(path, "rb") as file:
        mapped = smelt.load(file)["a"]
        assert not file.read(1)
    path.unlink()
    assert mapped[-1].item() == 1000 and np.asarray(mapped)[-1] == 1000
    assert (mapped * 2).tolist()[:2] == [2, 4]


# Bytes that other threads and what died before may add to a count or take from it: of files of gigabytes it is little.
ELSEWHERE = 1 << 26


def test_one_tensor_of_a_large_file(tmp_path):
    """Of ten gigabytes that the file says it has, and has as holes."""
    path, size = tmp_path / "x.safetensors", 10 << 30
    header = {"a": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]},
              "b": {"dtype": "F32", "shape": [2], "data_offsets": [size, size + 8]}}  # fmt: skip
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.seek(8 + len(text) + size)
        file.write(np.array([1.5, 2.5], np.float32).tobytes())
    tracemalloc.start()
    found = smelt.load(path)
    assert found["b"].tolist() == [1.5, 2.5] and found["a"].shape == (size,)
    assert found["a"][-5:].tolist() == [0] * 5
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < ELSEWHERE


KINDS = {"BOOL": 1, "U8": 1, "F8_E5M2": 1, "I16": 2, "BF16": 2, "F16": 2, "U32": 4, "F32": 4, "F64": 8, "C64": 8}


@pytest.mark.parametrize("pad", range(8))
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_used_is_not_read(kind, pad, tmp_path):
    """Wherever the header leaves the elements: other programs' headers, MLX's among them, are of any length."""
    path, count = tmp_path / "x.safetensors", (10 << 30) // KINDS[kind]
    end, size = count * KINDS[kind], 4 * KINDS[kind]
    header = {"a": {"dtype": kind, "shape": [count], "data_offsets": [0, end]},
              "b": {"dtype": kind, "shape": [4], "data_offsets": [end, end + size]}}  # fmt: skip
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8 + pad)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + end + size)
    before = smelt.get_active_memory()
    tracemalloc.start()
    found = smelt.load(path)
    path.unlink()
    assert found["a"].shape == (count,) and smelt.get_active_memory() < before + ELSEWHERE
    for b in (found["b"].reshape(2, 2).astype(smelt.int32), found["b"].reshape(2, 2)):
        assert b.tolist() == [[0, 0], [0, 0]]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < ELSEWHERE


def test_elements_read_later(tmp_path):
    """They are what they would be at once, once and for all uses: reshaped, cut, compiled, in several threads."""
    path, values = tmp_path / "x.safetensors", np.arange(24, dtype=np.float32)
    text = json.dumps({"a": {"dtype": "F32", "shape": [4, 6], "data_offsets": [0, 96]}}).encode()
    text += b" " * (3 - len(text) % 4)  # at an odd place

    def loaded():
        path.write_bytes(len(text).to_bytes(8, "little") + text + values.tobytes())
        found = smelt.load(path)["a"]
        path.unlink()
        return found

    wanted = values.reshape(4, 6)
    uses = {
        "reshape": (lambda x: x.reshape(24), values), "cut": (lambda x: x[1:3, ::2], wanted[1:3, ::2]),
        "transpose": (lambda x: x.T, wanted.T), "sum": (lambda x: x.sum(0), wanted.sum(0)),
        "compiled": (smelt.compile(lambda x: x * 2 + 1), wanted * 2 + 1), "view": (lambda x: x.view(smelt.int32), None),
        "product": (lambda x: x @ x.T, wanted @ wanted.T), "copy": (smelt.array, wanted),
    }  # fmt: skip
    for name, (use, result) in uses.items():
        x = loaded()
        for _ in range(2):
            found = use(x)
            assert result is None or np.array_equal(np.asarray(found), result), name
        assert x.tolist() == wanted.tolist()
    outside = loaded()
    assert smelt.compile(lambda y: outside * y)(smelt.array(2.0)).tolist() == (2 * wanted).tolist()
    changed = loaded()
    changed[0] = -1.0
    assert changed.tolist() == [[-1.0] * 6, *wanted[1:].tolist()]
    shared = loaded()
    with ThreadPoolExecutor(8) as threads:
        for found in threads.map(lambda _: shared.sum().item(), range(32)):
            assert found == values.sum()


def test_elements_out_of_line(tmp_path):
    """What does not lie as its dtype needs it is copied."""
    header = b'{"a":{"dtype":"F64","shape":[2],"data_offsets":[0,16]}}'
    data = np.array([1.5, 2.5]).tobytes()
    for pad in range(8):
        text = header + b" " * pad
        (tmp_path / "x.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
        assert (smelt.load(tmp_path / "x.safetensors")["a"] * 2).tolist() == [3, 5]


def test_floats_of_eight_bits():
    header = json.dumps({k: {"dtype": k, "shape": [3], "data_offsets": [3 * i, 3 * i + 3]}
                         for i, k in enumerate(("F8_E4M3", "F8_E5M2", "F8_E8M0"))}).encode()  # fmt: skip
    data = bytes([0x38, 0xB8, 0x7E, 0x3C, 0xC0, 0x7C, 127, 128, 0])
    found = smelt.load(io.BytesIO(len(header).to_bytes(8, "little") + header + data), "safetensors")
    assert smelt.from_fp8(found["F8_E4M3"]).tolist() == [1, -1, 448]
    assert found["F8_E5M2"].tolist() == [1, -2, float("inf")] and found["F8_E5M2"].dtype is smelt.float16
    assert found["F8_E8M0"].tolist() == [127, 128, 0]


WRITERS = {
    "npy": smelt.save, "npz": smelt.savez, "safetensors": lambda f, x: smelt.save_safetensors(f, {"a": x}),
    "gguf": lambda f, x: smelt.save_gguf(f, {"a": x}),
}  # fmt: skip


@pytest.mark.parametrize("format", WRITERS)
def test_files_are_replaced_whole(format, tmp_path, monkeypatch):
    write, path, x = WRITERS[format], tmp_path / f"x.{format}", smelt.array([1, 2])
    path.write_bytes(b"before")
    path.chmod(0o640)
    write(path, x)
    assert list(tmp_path.iterdir()) == [path] and path.stat().st_mode & 0o777 == 0o640
    new, link = tmp_path / f"new.{format}", tmp_path / f"link.{format}"
    write(new, x)
    assert new.stat().st_mode & 0o777 == 0o666 & ~umask()
    link.symlink_to(path)
    write(link, x + 1)
    found = smelt.load(path)
    assert link.is_symlink() and (found if format == "npy" else next(iter(found.values()))).tolist() == [2, 3]
    with pytest.raises(OSError, match="missing"):
        write(tmp_path / "missing" / "x", x)
    before = path.read_bytes()
    monkeypatch.setattr(os, "replace", lambda *args: (_ for _ in ()).throw(OSError("no space left")))
    with pytest.raises(OSError, match="space"):
        write(path, x)
    assert path.read_bytes() == before and not list(tmp_path.glob(".*"))


def test_files_that_are_no_files(tmp_path):
    (tmp_path / "none.gguf").symlink_to("/dev/null")
    smelt.save_gguf(tmp_path / "none", {"a": smelt.array(1)})
    read, write = os.pipe()
    with open(read, "rb") as out:
        with open(write, "wb") as file:
            smelt.save(file, smelt.array([1, 2]))
        assert smelt.load(io.BytesIO(out.read())).tolist() == [1, 2]


def umask():
    found = os.umask(0)
    os.umask(found)
    return found


def test_what_is_loaded_in_traced_functions(tmp_path):
    path = tmp_path / "w.safetensors"
    smelt.save_safetensors(path, {"w": smelt.arange(3, dtype=smelt.float32)})

    def f(x):
        return (x * smelt.load(path)["w"]).sum()

    x = smelt.ones(3)
    assert smelt.compile(f)(x).item() == f(x).item() == 3 and smelt.grad(f)(x).tolist() == [0, 1, 2]
    assert smelt.vmap(f)(smelt.ones((2, 3))).tolist() == [3, 3]
