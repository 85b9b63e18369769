"""Arrays in files: round trips, NumPy's view of them, damaged files."""

import io
import zipfile

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
    with pytest.raises(ValueError, match=r"text is none of.*test_io\.py"):
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
        smelt.load(tmp_path / "x", format="gguf")
    smelt.save(tmp_path / "x", smelt.array(1))
    with pytest.raises(ValueError, match="metadata"):
        smelt.load(tmp_path / "x.npy", return_metadata=True)
    with pytest.raises(TraceError):
        smelt.compile(lambda x: smelt.save(tmp_path / "t", x))(smelt.array(1.0))
