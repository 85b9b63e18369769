"""Forms of StableHLO's ops that JAX seldom writes: truth values in products, complex angles, groups of one device."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.ir.errors import IRError

COMPUTED = ["reference", "cpu", "metal:sim"]


@pytest.mark.parametrize("device", COMPUTED)
def test_products_of_truth_values_say_whether_both_hold_anywhere(device: str) -> None:
    f = smelt.from_stablehlo("""func.func @main(%x: tensor<3x400xi1>, %y: tensor<400x2xi1>) -> tensor<3x2xi1> {
      %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<3x400xi1>, tensor<400x2xi1>) -> tensor<3x2xi1>
      return %0 : tensor<3x2xi1>
    }""")  # noqa: E501
    x, y = np.zeros((3, 400), bool), np.ones((400, 2), bool)
    x[0], y[:200, 1], x[1, 0] = True, False, True  # 400 and 200 places, of which no byte counts 256; one; none
    with smelt.stream(smelt.Device(device)):
        found = smelt.compile(f)(smelt.array(x), smelt.array(y))
        assert found.tolist() == (x @ y).tolist() == [[True, True], [True, False], [False, False]]


def test_convolutions_of_truth_values() -> None:
    f = smelt.from_stablehlo("""func.func @main(%x: tensor<1x1x6xi1>, %w: tensor<1x1x2xi1>) -> tensor<1x1x5xi1> {
      %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {}
        {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x1x6xi1>, tensor<1x1x2xi1>) -> tensor<1x1x5xi1>
      return %0 : tensor<1x1x5xi1>
    }""")  # noqa: E501
    x = np.array([[[1, 0, 0, 1, 1, 0]]], bool)
    assert f(smelt.array(x), smelt.ones((1, 1, 2), dtype=smelt.bool_)).tolist() == [[[True, False, True, True, True]]]


#: The ops of StableHLO that take elements of truth values, and what NumPy computes.
OF_TRUTH_VALUES = {
    "add": np.logical_or, "multiply": np.logical_and, "maximum": np.maximum, "minimum": np.minimum,
    "and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor, "not": np.logical_not, "select": np.where,
    "clamp": lambda low, x, high: np.minimum(np.maximum(low, x), high),
}  # fmt: skip


@pytest.mark.parametrize("device", COMPUTED)
@pytest.mark.parametrize("op", OF_TRUTH_VALUES)
def test_elements_of_truth_values(op: str, device: str) -> None:
    count = {"not": 1, "select": 3, "clamp": 3}.get(op, 2)
    names, kind = [f"%x{i}" for i in range(count)], "tensor<8xi1>"
    f = smelt.from_stablehlo(f"""func.func @main({", ".join(f"{x}: {kind}" for x in names)}) -> {kind} {{
      %0 = "stablehlo.{op}"({", ".join(names)}) : ({", ".join([kind] * count)}) -> {kind}
      return %0 : {kind}
    }}""")
    given = [np.arange(8) >> i & 1 == 1 for i in range(count)]
    with smelt.stream(smelt.Device(device)):
        found = smelt.compile(f)(*map(smelt.array, given))
        assert found.tolist() == OF_TRUTH_VALUES[op](*given).tolist()


def test_truth_values_between_scalars() -> None:
    f = smelt.from_stablehlo("""func.func @main(%low: tensor<i1>, %x: tensor<2xi1>, %high: tensor<i1>) -> tensor<2xi1> {
      %0 = stablehlo.clamp %low, %x, %high : (tensor<i1>, tensor<2xi1>, tensor<i1>) -> tensor<2xi1>
      return %0 : tensor<2xi1>
    }""")
    x = smelt.array([False, True])
    bounds = [(low, high) for low in (False, True) for high in (False, True)]
    found = [f(smelt.array(low), x, smelt.array(high)).tolist() for low, high in bounds]
    assert found == [[False, False], [False, True], [False, False], [True, True]]


def test_angles_of_complex_numbers() -> None:
    f = smelt.from_stablehlo("""func.func @main(%y: tensor<3xcomplex<f32>>, %x: tensor<3xcomplex<f32>>) -> tensor<3xcomplex<f32>> {
      %0 = stablehlo.atan2 %y, %x : tensor<3xcomplex<f32>>
      return %0 : tensor<3xcomplex<f32>>
    }""")  # noqa: E501
    y, x = np.array([1, 0.5 + 2j, -2 - 0.5j], np.complex64), np.array([2, 1 - 0.5j, 1 + 3j], np.complex64)
    found = np.array(f(smelt.array(y), smelt.array(x)))
    np.testing.assert_allclose(np.tan(found), y / x, rtol=1e-5)
    np.testing.assert_allclose(found[0], np.arctan2(1, 2), rtol=1e-6)


def collective(groups: str) -> str:
    return f"""func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
      %0 = "stablehlo.all_reduce"(%x) <{{replica_groups = {groups}}}> ({{
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }}) : (tensor<4xf32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }}"""


def test_groups_of_one_device() -> None:
    f = smelt.from_stablehlo(collective("dense<0> : tensor<1x1xi64>"))
    assert f(smelt.array([1.0, 2.0, 3.0, 4.0])).tolist() == [1, 2, 3, 4]
    with pytest.raises(IRError, match=r"all_reduce joins groups of 2 devices; .*export it for one"):
        smelt.from_stablehlo(collective("dense<[[0, 1]]> : tensor<1x2xi64>"))


def test_windows_do_not_fold_what_pads_them() -> None:
    """A function for which the initial value is neutral beside numbers alone: of two of it, it makes NaN."""
    f = smelt.from_stablehlo("""func.func @main(%x: tensor<5xf32>, %init: tensor<f32>) -> tensor<5xf32> {
      %0 = "stablehlo.reduce_window"(%x, %init) <{
        window_dimensions = array<i64: 5>, padding = dense<[[4, 0]]> : tensor<1x2xi64>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %most = stablehlo.maximum %a, %b : tensor<f32>
        %least = stablehlo.minimum %a, %b : tensor<f32>
        %gap = stablehlo.subtract %least, %most : tensor<f32>
        %exp = stablehlo.exponential %gap : tensor<f32>
        %log = stablehlo.log_plus_one %exp : tensor<f32>
        %sum = stablehlo.add %most, %log : tensor<f32>
        stablehlo.return %sum : tensor<f32>
      }) : (tensor<5xf32>, tensor<f32>) -> tensor<5xf32>
      return %0 : tensor<5xf32>
    }""")
    x = np.array([0.5, -1.0, 2.0, 0.0, 1.0], np.float32)
    found = f(smelt.array(x), smelt.array(-np.inf))
    np.testing.assert_allclose(np.array(found), np.log(np.cumsum(np.exp(x))), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16"])
def test_the_sign_of_zeros(dtype: str) -> None:
    """StableHLO's sign of -0.0 is -0.0, smelt's is 0, as NumPy's: both keep theirs."""
    kind = smelt.ir.dtypes.by_mlir(dtype)
    x = smelt.array([0.0, -0.0, 2.0, -3.0, -smelt.inf, smelt.nan]).astype(kind)
    theirs = smelt.from_stablehlo(f"""func.func @main(%x: tensor<6x{dtype}>) -> tensor<6x{dtype}> {{
      %0 = stablehlo.sign %x : tensor<6x{dtype}>
      return %0 : tensor<6x{dtype}>
    }}""")
    out = smelt.from_stablehlo(str(smelt.to_stablehlo(smelt.sign, x)))
    for f, wanted in ((theirs, [0.0, -0.0]), (out, [0.0, 0.0]), (smelt.sign, [0.0, 0.0])):
        for way in (f, smelt.compile(f)):
            found = np.array(way(x).astype(smelt.float32))
            np.testing.assert_array_equal(found, [0, 0, 1, -1, -1, np.nan])
            np.testing.assert_array_equal(np.signbit(found[:2]), np.signbit(wanted))
