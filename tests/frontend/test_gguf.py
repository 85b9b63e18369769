"""Files in the .gguf format: round trips, quantized kinds against their formulas, packed weights."""

from __future__ import annotations

import io
import struct
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.formats import gguf
from smelt.ir.errors import AttributeValueError, DTypeError, FileFormatError, ShapeError, TreeError

DTYPES = [
    smelt.float16, smelt.bfloat16, smelt.float32, smelt.float64, smelt.int8, smelt.int16, smelt.int32, smelt.int64,
]  # fmt: skip


def saved(*args: Any, **kwargs: Any) -> io.BytesIO:
    file = io.BytesIO()
    smelt.save_gguf(file, *args, **kwargs)
    file.seek(0)
    return file


@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3), (1, 2, 1, 2, 3)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
def test_round_trips(dtype, shape, tmp_path):
    x = smelt.array(np.arange(int(np.prod(shape))).reshape(shape), dtype=dtype)
    smelt.save_gguf(tmp_path / "x", {"a.weight": x, "b": x})
    for found in (smelt.load(tmp_path / "x.gguf"), smelt.load(saved({"a.weight": x, "b": x}), "gguf")):
        assert list(found) == ["a.weight", "b"]
        for y in found.values():
            assert y.dtype is dtype and y.shape == shape
            np.testing.assert_array_equal(np.array(y), np.array(x))


def test_metadata():
    given = {
        "general.name": "a näme", "tokens": ["a", "", "中", "\udcff"], "none": [], "true": True, "number": 3,
        "half": 1.5,
        "large": 2**40, **{d.name: smelt.array([1, 2], dtype=d) for d in (smelt.uint8, smelt.int64, smelt.float64)},
        "scalar": smelt.array(7, dtype=smelt.uint16), "numpy": np.arange(3), "bools": smelt.array([True, False]),
    }  # fmt: skip
    arrays, found = smelt.load(saved({}, given), return_metadata=True)
    assert arrays == {} and list(found) == list(given)
    assert [found[k] for k in ("general.name", "tokens", "none")] == ["a näme", ["a", "", "中", "\udcff"], []]
    for name in ("true", "number", "half", "large", "uint8", "int64", "float64", "scalar", "numpy", "bools"):
        x = smelt.array(given[name])
        assert found[name].dtype is x.dtype and found[name].tolist() == x.tolist() and found[name].shape == x.shape


def test_alignment():
    x = smelt.arange(3)
    file = saved({"a": x, "b": x}, {"general.alignment": smelt.array(256, dtype=smelt.uint32)})
    assert file.getvalue()[256:268] == file.getvalue()[512:524] == np.arange(3, dtype=np.int32).tobytes()
    assert smelt.load(file)["b"].tolist() == [0, 1, 2]


# Quantized kinds: element i of a block, by the definition of its kind


def half(b: bytes, at: int) -> float:
    return float(np.frombuffer(b, "<f2", 1, at)[0])


def bit(b: bytes, at: int, i: int) -> int:
    return b[at + i // 8] >> (i % 8) & 1


def signed(n: int) -> int:
    return n - 256 if n > 127 else n


def nibble(b: bytes, at: int, i: int) -> int:
    """Of sixteen bytes: the lower halves, then the upper ones."""
    return b[at + i % 16] >> 4 * (i // 16) & 15


def k_scales(b: bytes, i: int) -> tuple[int, int]:
    s, g = b[4:16], i // 32
    if g < 4:
        return s[g] & 63, s[g + 4] & 63
    return (s[g + 4] & 15) | (s[g - 4] >> 6) << 4, (s[g + 4] >> 4) | (s[g] >> 6) << 4


def q3_scale(b: bytes, g: int) -> int:
    return ((b[96 + g % 8] >> 4 * (g // 8) & 15) | (b[104 + g % 4] >> 2 * (g // 4) & 3) << 4) - 32


def two_bits(b: bytes, at: int, i: int) -> int:
    return b[at + 32 * (i // 128) + i % 32] >> 2 * (i % 128 // 32) & 3


def k_nibble(b: bytes, at: int, i: int) -> int:
    return b[at + 32 * (i // 64) + i % 32] >> 4 * (i % 64 // 32) & 15


def q4_k(b: bytes, i: int) -> float:
    scale, least = k_scales(b, i)
    return half(b, 0) * scale * k_nibble(b, 16, i) - half(b, 2) * least


def q5_k(b: bytes, i: int) -> float:
    scale, least = k_scales(b, i)
    return half(b, 0) * scale * (k_nibble(b, 48, i) | (b[16 + i % 32] >> i // 32 & 1) << 4) - half(b, 2) * least


def q6_k(b: bytes, i: int) -> float:
    low = b[64 * (i // 128) + i % 64] >> 4 * (i % 128 // 64) & 15
    q = (low | (b[128 + 32 * (i // 128) + i % 32] >> 2 * (i % 128 // 32) & 3) << 4) - 32
    return half(b, 208) * signed(b[192 + i // 16]) * q


def q3_k(b: bytes, i: int) -> float:
    return half(b, 108) * q3_scale(b, i // 16) * (two_bits(b, 32, i) + 4 * (b[i % 32] >> i // 32 & 1) - 4)


LEVELS = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)


def iq4_xs(b: bytes, i: int) -> float:
    g = i // 32
    scale = ((b[4 + g // 2] >> 4 * (g % 2) & 15) | (int.from_bytes(b[2:4], "little") >> 2 * g & 3) << 4) - 32
    return half(b, 0) * scale * LEVELS[nibble(b, 8 + 16 * g, i % 32)]


def tq1_0(b: bytes, i: int) -> float:
    if i < 160:
        octet, digit = b[i % 32], i // 32
    elif i < 240:
        octet, digit = b[32 + i % 16], (i - 160) // 16
    else:
        octet, digit = b[48 + i % 4], (i - 240) // 4
    return half(b, 52) * ((octet * 3**digit % 256 * 3 >> 8) - 1)


E2M1 = (0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6)


def e4m3(byte: int) -> float:
    """A positive number of eight bits."""
    exponent, fraction = byte >> 3 & 15, byte & 7
    return fraction * 2.0**-9 if not exponent else (1 + fraction / 8) * 2.0 ** (exponent - 7)


FORMULAS: dict[str, Callable[[bytes, int], float]] = {
    "Q5_0": lambda b, i: half(b, 0) * ((nibble(b, 6, i) | bit(b, 2, i) << 4) - 16),
    "Q5_1": lambda b, i: half(b, 0) * (nibble(b, 8, i) | bit(b, 4, i) << 4) + half(b, 2),
    "Q8_1": lambda b, i: half(b, 0) * signed(b[4 + i]),
    "Q2_K": lambda b, i: (
        half(b, 80) * (b[i // 16] & 15) * two_bits(b, 16, i) - half(b, 82) * (b[i // 16] >> 4)
    ),
    "Q3_K": q3_k, "Q4_K": q4_k, "Q5_K": q5_k, "Q6_K": q6_k,
    "Q8_K": lambda b, i: struct.unpack("<f", b[:4])[0] * signed(b[4 + i]),
    "IQ4_NL": lambda b, i: half(b, 0) * LEVELS[nibble(b, 2, i)],
    "IQ4_XS": iq4_xs, "TQ1_0": tq1_0, "TQ2_0": lambda b, i: half(b, 64) * (two_bits(b, 0, i) - 1),
    "Q4_0": lambda b, i: half(b, 0) * (nibble(b, 2, i) - 8),
    "Q4_1": lambda b, i: half(b, 0) * nibble(b, 4, i) + half(b, 2),
    "Q8_0": lambda b, i: half(b, 0) * signed(b[2 + i]),
    "MXFP4": lambda b, i: 2.0 ** (b[0] - 127) * E2M1[nibble(b, 1, i)],
    "NVFP4": lambda b, i: e4m3(b[i // 16]) * E2M1[b[4 + i // 16 * 8 + i % 8] >> (i % 16 // 8 * 4) & 15],
}  # fmt: skip
#: Where a block has its scales, which must not be NaN.
SCALES = {"Q2_K": (80, 82), "Q3_K": (108,), "Q6_K": (208,), "TQ1_0": (52,), "TQ2_0": (64,)}


def blocks(kind: gguf.Kind, shape: tuple[int, ...]) -> np.ndarray:
    rng = np.random.default_rng(kind.number)
    found = rng.integers(0, 256, (*shape, kind.nbytes), np.uint8)
    for at in SCALES.get(kind.name, (0, 2) if kind.name in ("Q4_1", "Q5_1", "Q4_K", "Q5_K") else (0,)):
        found[..., at : at + 2] = (rng.standard_normal(shape) / 64).astype("<f2")[..., None].view(np.uint8)
    if kind.name == "Q8_K":
        found[..., :4] = rng.standard_normal(shape).astype("<f4")[..., None].view(np.uint8)
    if kind.name == "MXFP4":
        found[..., 0] = rng.integers(120, 130, shape)
    if kind.name == "NVFP4":
        found[..., :4] = rng.integers(0, 127, (*shape, 4))
    return found


def test_all_kinds_have_formulas():
    quantized = {kind.name for kind in gguf.KINDS.values() if kind.dtype is None}
    assert set(FORMULAS) | set(BY_BOOKS) == quantized and not set(FORMULAS) & set(BY_BOOKS)


#: Kinds by books of vectors, which the package gguf decodes; IQ1_M has its scale in pieces.
BY_BOOKS = ("IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ1_S", "IQ1_M")


@pytest.mark.parametrize("name", BY_BOOKS)
def test_kinds_by_books(name, monkeypatch):
    kind = gguf.BY_NAME[name]
    stored = blocks(kind, (3, 2))
    if name == "IQ1_M":
        stored[..., 49::2] &= 0x1F
    file = io.BytesIO()
    gguf.write_gguf(file, [gguf.Tensor("a", kind, (3, 512), stored)], {})
    file.seek(0)
    found = smelt.load(file)["a"]
    constants, quants = pytest.importorskip("gguf.constants"), pytest.importorskip("gguf.quants")
    want = quants.dequantize(stored.reshape(3, -1), constants.GGMLQuantizationType[name])
    assert found.shape == want.shape == (3, 512) and found.dtype is smelt.float16 and np.abs(want).max() > 0
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(np.array(found), want.astype(np.float16))
    assert (kind.each, kind.nbytes) == constants.GGML_QUANT_SIZES[constants.GGMLQuantizationType[name]]
    monkeypatch.setitem(sys.modules, "gguf.constants", None)
    file.seek(0)
    with pytest.raises(ImportError, match=rf"kind {name} .* pip install smelt-mlir\[gguf\]"):
        smelt.load(file)


@pytest.mark.parametrize("name", FORMULAS)
def test_quantized_kinds(name):
    kind = gguf.BY_NAME[name]
    stored = blocks(kind, (3, 2))
    file = io.BytesIO()
    gguf.write_gguf(file, [gguf.Tensor("a.weight", kind, (3, 2 * kind.each), stored)], {})
    file.seek(0)
    found = smelt.load(file)
    expected = np.array([[FORMULAS[name](b.tobytes(), i) for b in row for i in range(kind.each)] for row in stored])
    if name in ("Q4_0", "Q4_1", "Q8_0", "MXFP4", "NVFP4"):
        mode = name.lower() if "FP4" in name else "affine"
        assert list(found) == ["a.weight", "a.scales", "a.biases"][: 2 if "FP4" in name else 3]
        scales = list(found.values())[1:]
        parts = [found["a.weight"], *(x if mode != "affine" else x.astype(smelt.float32) for x in scales)]
        group = 16 if name == "NVFP4" else 32
        x = smelt.dequantize(*parts, group_size=group, bits=8 if name == "Q8_0" else 4, mode=mode, dtype=smelt.float32)
        np.testing.assert_allclose(np.array(x), expected, rtol=1e-6, atol=1e-6)
        again = saved(found, types={"a.weight": name})
        assert again.getvalue() == file.getvalue()
    else:
        assert list(found) == ["a.weight"] and found["a.weight"].dtype is smelt.float16
        np.testing.assert_allclose(np.array(found["a.weight"]), expected, rtol=2e-3, atol=1e-6)


def test_what_quantize_packs_is_written():
    w = smelt.random.normal((4, 64)) + 1  # so that zero is in the middle of no group
    parts = dict(zip(("w.weight", "w.scales", "w.biases"), smelt.quantize(w.astype(smelt.float16), 32, 4)))
    found = smelt.load(saved(parts, types={"w.weight": "Q4_1"}))
    assert all(bool((found[k] == parts[k]).all()) for k in parts)
    with pytest.raises(AttributeValueError, match=r"biases of Q4_0 are -8 times the scales; Q4_1 takes any.*w\.weight"):
        saved(parts, types={"w.weight": "Q4_0"})
    with pytest.raises(DTypeError, match=r"no elements of 'w\.weight', ui32\[4,8\]; packed weights need types="):
        saved(parts)
    with pytest.raises(ShapeError, match="8 bits an element and groups of 32"):
        saved(parts, types={"w.weight": "Q8_0"})
    with pytest.raises(TreeError, match=r"'w\.scales', 'w\.biases'"):
        saved({"w.weight": parts["w.weight"]}, types={"w.weight": "Q4_1"})
    with pytest.raises(AttributeValueError, match="Q9"):
        saved(parts, types={"w.weight": "Q9"})
    packed, scales = smelt.quantize(w, mode="mxfp4")
    assert list(smelt.load(saved({"w": packed, "w.scales": scales}, types={"w": "MXFP4"}))) == ["w", "w.scales"]
    packed, scales = smelt.quantize(w, mode="nvfp4")
    found = smelt.load(saved({"w": packed, "w.scales": scales}, types={"w": "NVFP4"}))
    assert bool((found["w"] == packed).all()) and bool((found["w.scales"] == scales).all())
    with pytest.raises(AttributeValueError, match="neither negative nor NaN"):
        saved({"w": packed, "w.scales": scales | 128}, types={"w": "NVFP4"})
    with pytest.raises(ShapeError, match="groups of 16, 4 in a block"):
        saved({"w": packed[:, :2], "w.scales": scales[:, :1]}, types={"w": "NVFP4"})


def test_what_cannot_be_written():
    for arrays, metadata, error, text in (
        ({"a": smelt.zeros(2, smelt.bool_)}, {}, DTypeError, "'a', i1"),
        ({"a": smelt.zeros((1,) * 9)}, {}, ShapeError, "8 axes"), ([], {}, TreeError, "arrays must be a dict"),
        ({}, {"k": smelt.zeros((2, 2))}, ShapeError, r"'k' must be a text.*f32\[2,2\]"),
        ({}, {"k": ["a", 1]}, TreeError, "'k'"), ({}, {"k": 1j}, DTypeError, "'k'"),
        ({}, {1: "a"}, TreeError, "metadata"),
        ({}, {"general.alignment": 3}, AttributeValueError, "power of two"),
    ):  # fmt: skip
        with pytest.raises(error, match=text):
            saved(arrays, metadata)


def test_damaged_and_hostile(tmp_path):
    good = saved({"a": smelt.arange(3)}, {"k": ["x", "y"]}).getvalue()
    changed = {
        "version 9": good[:4] + b"\x09" + good[5:], "big-endian": good[:4] + b"\0\0\0\x03" + good[8:],
        "many tensors": good[:8] + b"\xff" * 7 + b"\x0f" + good[16:], "many pairs": good[:16] + b"\xff" * 8 + good[24:],
        "long text": good.replace(struct.pack("<Q", 1) + b"k", struct.pack("<Q", 2**60) + b"k"),
        "many texts": good.replace(struct.pack("<IQ", 8, 2), struct.pack("<IQ", 8, 2**50)),
        "array of arrays": good.replace(struct.pack("<II", 9, 8), struct.pack("<II", 9, 9)),
        "no kind": good.replace(struct.pack("<II", 9, 8), struct.pack("<II", 9, 77)),
        "large": good.replace(struct.pack("<IQ", 1, 3), struct.pack("<IQ", 1, 2**62)),
        "axes": good.replace(struct.pack("<IQ", 1, 3), struct.pack("<IQ", 2**31, 3)),
        "offset": good.replace(struct.pack("<IQ", 26, 0), struct.pack("<IQ", 26, 32)),
        "blocks": good.replace(struct.pack("<IQ", 26, 0), struct.pack("<IQ", 2, 0)),
        **{f"up to {n}": good[:n] for n in (3, 20, 40, len(good) - 25)},
    }  # fmt: skip
    for what, data in changed.items():
        assert data != good, what
        (tmp_path / "x.gguf").write_bytes(data)
        with pytest.raises(FileFormatError, match=r"x\.gguf|none of") as error:
            smelt.load(tmp_path / "x.gguf", "gguf")
        assert "test_gguf.py" in str(error.value), what
    with pytest.raises(DTypeError, match="kind 77, which smelt does not read"):
        smelt.load(io.BytesIO(good.replace(struct.pack("<IQ", 26, 0), struct.pack("<IQ", 77, 0))))


def test_tensors_that_share_bytes():
    good = saved({"a": smelt.arange(8), "b": smelt.arange(8)}).getvalue()
    bad = good.replace(struct.pack("<IQ", 26, 32), struct.pack("<IQ", 26, 0))
    with pytest.raises(FileFormatError, match="'b' lies at byte 0, 'a' ends at 32"):
        smelt.load(io.BytesIO(bad))
