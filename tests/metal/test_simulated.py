"""What the check accepts runs in the simulator, but for textures and their pixels, stages of a render pipeline, and
what the host has nothing for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from smelt.backends.metal.simulator import Library, Options, SimulatorError

from .corpus import rows

ORDERS = [Options(), Options("reverse"), Options("shuffled", 3, poison=True, guard=True)]

#: Rows that the simulator does not run, and what it says of them.
NOT_RUN = {
    "address_spaces: overloads by address space": "overloads of 'first' differ in address spaces and in what they do",
    "address_spaces: references of one function in several spaces": "overloads of 'first' differ in address spaces",
    "address_spaces: a method qualified for device memory": "overloads of 'sum' differ in address spaces",
    "arguments: a buffer and a texture of one number": "the simulator has no textures",
    "arguments: the last numbers": "the simulator has no textures",
    "arguments: textures and samplers without numbers (tolerated)": "the simulator has no textures",
    "arguments: stage_in of a kernel": "neither a buffer nor a known position",
    "structures: argument buffers": "texture2d",
    "shipped: an argument buffer (tolerated)": "texture2d",
    # C++ compilers of the host refuse the enumerations of Apple's macro.
    "shipped: a header that the host shares (tolerated)": "does not compile",
    "shipped: a stencil of constants (tolerated)": "the simulator has no textures",
    "style: histogram with local bins (tolerated)": "the simulator has no textures",
    "style: signed distances (tolerated)": "the simulator has no textures",
    "style: an image through a pipeline of stages (tolerated)": "the simulator has no textures",
    # Vectors are classes there, with copies of their own.
    "library: type traits": "static assertion failed",
}
#: Families of which the simulator says that it has no such thing.
ABSENT = {
    "tiles": "image blocks",
    "meshes": "mesh pipelines",
    "rays": "ray tracing",
    "commands": "indirect command buffers",
    "tensors": "tensors",
}
ROWS = [row for row in rows() if not row.is_refused and row.family not in ("stages", "textures", "pixels")]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_row(row: object) -> None:
    text = next(r.text for r in ROWS if r is row)
    refused = NOT_RUN.get(str(row)) or ABSENT.get(str(row).partition(":")[0])
    if refused:
        with pytest.raises(SimulatorError, match=refused):
            Library(text)
    else:
        assert "kernel" not in text or "kernel void" not in text or Library(text).entries


def launch(row: str, entry: str, arrays: list[np.ndarray], groups: tuple[int, int], threads: int, **more: Any) -> None:
    """Run a kernel of a row, of `style.metal` where no family is named."""
    (text,) = [r.text for r in ROWS if str(r) in (row, f"style: {row}")]
    options = more.pop("options", None)
    buffers = {i: (x.ctypes.data, x.nbytes) for i, x in enumerate(arrays)}
    Library(text, options).launch(entry, buffers, (*groups, 1), (threads, 1, 1), **more)


@pytest.mark.parametrize("options", ORDERS, ids=lambda o: o.order)
def test_a_tiled_product(options: Options) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((32, 8), np.float32), rng.standard_normal((8, 48), np.float32)
    out, shape = np.zeros((32, 48), np.float32), np.array([32, 48, 8], np.int32)
    launch(
        "a tiled product with a loader", "gemm_float32_bm16_bn16_bk8", [a, b, out, shape], (3, 2), 32, options=options
    )
    np.testing.assert_allclose(out, a @ b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("options", ORDERS, ids=lambda o: o.order)
def test_blocks_of_four_bits(options: Options) -> None:
    rng = np.random.default_rng(0)
    blocks = np.zeros((6, 2), [("d", "f2"), ("qs", "u1", 16)])
    blocks["d"], blocks["qs"] = rng.uniform(0.5, 2, (6, 2)), rng.integers(0, 256, (6, 2, 16))
    which = np.array([4, 0, 5], np.int32)
    # The size of a row stands for that of a row of results, too: results lie as far apart as whole rows of blocks.
    sizes = np.array([(64, 256, 0, 1.0)], [("ne00", "i8"), ("nb01", "i8"), ("offs", "u8"), ("scale", "f4")])
    padded = np.zeros((6, 256), np.uint8)
    padded[:, : blocks[0].nbytes] = blocks.view(np.uint8).reshape(6, -1)
    out = np.zeros((3, 64), np.float32)
    row = "blocks of four bits, by a table of functions"
    launch(row, "kernel_get_rows_q4", [sizes, padded, which, out], (3, 1), 32, options=options)
    low, high = blocks["qs"] & 15, blocks["qs"] >> 4
    wanted = np.concatenate([low, high], axis=2) * blocks["d"].astype(np.float32)[:, :, None]
    np.testing.assert_allclose(out, wanted.reshape(6, 64)[which], rtol=1e-3)


def test_matrices_in_constants_have_their_numbers() -> None:
    x = np.zeros((2, 4), np.float32)
    launch("constants: matrices in constants (tolerated)", "k", [x], (1, 1), 1)
    colors = np.float32([[1.25, 1.25, 1.25], [0, -0.5, 2], [1.5, -0.75, 0]]).T
    expected = np.zeros((2, 4), np.float32)
    expected[0] = np.float32([0, 0, 0, 1]) + np.float32([1, 1, 1, 2]) + np.float32([0, 0.5, 0, 0])
    expected[1, :3] = colors @ np.float32([1, 2, 3]) + np.float32([6, 5, 2])
    expected[1, 3] = (np.float32([[1, 3], [2, 4]]) @ np.float32([1, 2]))[0]
    np.testing.assert_array_equal(x, expected)


def test_components_of_packed_vectors_are_theirs() -> None:
    x = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    c, h, two, four = np.float32([7, 8, 9]), np.zeros((1, 3), np.float16), np.zeros(2, np.float32), np.arange(4.0)
    four = four.astype(np.float32)
    launch("library: components of packed vectors", "k", [x, c, h, two, four], (1, 1), 1, threadgroup_lengths={0: 12})
    first = np.float32([6 + 1, 5 + 2, 4])
    q = -2 * first[[0, 2]]
    np.testing.assert_array_equal(x, [first, [7, 7, 4 * q[0] + 4 * q[1]]])
    np.testing.assert_array_equal(h, [[7, 7, 0]])
    np.testing.assert_array_equal(two, [3, 2])
    np.testing.assert_array_equal(four, [9, 8, 7, 3])
