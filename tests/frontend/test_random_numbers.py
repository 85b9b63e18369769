"""Random numbers of a seed are MLX's, so that a program that moves over draws the same ones.

The expected values are those of mlx 0.32.4 on its CPU, by the same calls. They are equal to the last bit where only
arithmetic is used; logarithms and the like may differ in the last bits.
"""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt import nn, random

from .checks import exact

KEY = random.key(12)
LOW, HIGH = exact(np.array([-1, 2], np.float32)), exact(np.array([[0.5], [9]], np.float32))
LOGITS = exact(np.array([[0.1, 2, -1], [3, 0, 1]], np.float32))

SAMPLERS = {
    "split": lambda k: random.split(k, 3),
    "uniform": lambda k: random.uniform(shape=(5,), key=k),
    "uniform_even": lambda k: random.uniform(shape=(2, 1, 3), key=k),
    "uniform_one": lambda k: random.uniform(key=k),
    "uniform_bounds": lambda k: random.uniform(-0.3, 0.9, (2, 2), key=k),
    "uniform_arrays": lambda k: random.uniform(LOW, HIGH, (2, 2), key=k),
    "uniform_float16": lambda k: random.uniform(-0.3, 0.9, (6,), smelt.float16, k),
    "uniform_bfloat16": lambda k: random.uniform(-0.3, 0.9, (6,), smelt.bfloat16, k),
    "uniform_large": lambda k: random.uniform(shape=(70001,), key=k)[smelt.array([0, 34999, 35000, 35001, 70000])],
    "normal": lambda k: random.normal((5,), key=k),
    "normal_bounds": lambda k: random.normal((2, 2), loc=1.0, scale=0.3, key=k),
    "normal_arrays": lambda k: random.normal((2, 2), loc=LOW, scale=HIGH, key=k),
    "normal_float16": lambda k: random.normal((4,), smelt.float16, 1.0, 0.3, k),
    "normal_bfloat16": lambda k: random.normal((4,), smelt.bfloat16, key=k),
    "normal_complex64": lambda k: random.normal((3,), smelt.complex64, key=k),
    "bernoulli": lambda k: random.bernoulli(0.3, (9,), k),
    "bernoulli_array": lambda k: random.bernoulli(smelt.array([0.0, 0.7, 0.7, 0.7, 1.0], smelt.float16), key=k),
    "randint": lambda k: random.randint(-5, 9, (7,), key=k),
    "randint_uint8": lambda k: random.randint(0, 256, (5,), smelt.uint8, k),
    "randint_int32": lambda k: random.randint(0, 2**31 - 1, (4,), key=k),
    "randint_int64": lambda k: random.randint(-(2**40), 2**40, (4,), smelt.int64, k),
    "randint_arrays": lambda k: random.randint(smelt.array([0, -7]), smelt.array([[100], [8]]), (2, 2), key=k),
    "randint_floats": lambda k: random.randint(LOW, 4.7 + LOW, (3, 2), key=k),
    "truncated_normal": lambda k: random.truncated_normal(-1.2, 2.0, (4,), key=k),
    "truncated_normal_float16": lambda k: random.truncated_normal(-1.2, 2.0, (4,), smelt.float16, k),
    "gumbel": lambda k: random.gumbel((4,), key=k),
    "laplace": lambda k: random.laplace((4,), loc=1.0, scale=0.3, key=k),
    "laplace_bfloat16": lambda k: random.laplace((4,), smelt.bfloat16, 1.0, 0.3, k),
    "categorical": lambda k: random.categorical(LOGITS, shape=(4, 2), key=k),
    "categorical_samples": lambda k: random.categorical(LOGITS, axis=0, num_samples=4, key=k),
    "permutation": lambda k: random.permutation(9, key=k),
    "permutation_array": lambda k: random.permutation(smelt.arange(12).reshape(3, 4), axis=1, key=k),
}

WANT = {
    "split": [1029522022, 3192139876, 3798893366, 80478158, 3186488394, 1289577730],
    "uniform": [0.239704281, 0.743227959, 0.511184216, 0.0187377818, 0.741912127],
    "uniform_even": [0.239704281, 0.743227959, 0.884498775, 0.0187377818, 0.741912127, 0.300253212],
    "uniform_one": [0.303770334],
    "uniform_bounds": [-0.186247185, -0.0127139091, 0.389980197, -0.13558884],
    "uniform_arrays": [-0.857808948, 1.64089239, 4.74983501, 2.9590652],
    "uniform_float16": [-0.0122070312, 0.591796875, 0.76171875, -0.277587891, 0.58984375, 0.0603027344],
    "uniform_bfloat16": [-0.013671875, 0.59375, 0.76171875, -0.27734375, 0.59375, 0.060546875],
    "uniform_large": [0.925283134, 0.983674884, 0.558828712, 0.170719698, 0.190872774],
    "normal": [-0.707254052, 0.653329313, 0.0280384179, -2.08054423, 0.649251699],
    "normal_bounds": [0.606460333, 0.787534714, 1.05672288, 0.671843529],
    "normal_arrays": [-1.65589929, 1.64589119, 0.701686859, -7.84469223],
    "normal_float16": [0.606445312, 0.787597656, 1.05664062, 0.671875],
    "normal_bfloat16": [-1.3125, -0.70703125, 0.189453125, -1.09375],
    "normal_complex64": [[-0.500104129, 0.461973578], [0.846958876, -1.47116697], [0.459090292, -0.370292276]],
    "bernoulli": [0, 1, 1, 1, 0, 0, 0, 0, 0],
    "bernoulli_array": [0, 0, 1, 1, 1],
    "randint": [-5, 4, 8, -4, 2, -3, -4],
    "randint_uint8": [61, 190, 130, 4, 189],
    "randint_int32": [203568608, 514118464, 1234767616, 294225248],
    "randint_int64": [-891057340416, -573054320640, 164890411008, -798224941056],
    "randint_arrays": [9, 18, 4, -5],
    "randint_floats": [0, 5, 2, 2, 2, 3],
    "truncated_normal": [-0.853109598, -0.463564157, 0.281428486, -0.728360593],
    "truncated_normal_float16": [-0.853515625, -0.463623047, 0.281982422, -0.728515625],
    "gumbel": [-0.856986105, -0.357393503, 0.591648936, -0.68698144],
    "laplace": [1.49887049, 1.22093534, 0.951255977, 1.38836777],
    "laplace_bfloat16": [1.5, 1.21875, 0.953125, 1.390625],
    "categorical": [1, 0, 1, 0, 1, 0, 0, 0],
    "categorical_samples": [1, 0, 0, 1, 0, 0, 1, 0, 1, 1, 1, 1],
    "permutation": [3, 1, 2, 7, 8, 6, 4, 0, 5],
    "permutation_array": [0, 3, 1, 2, 4, 7, 5, 6, 8, 11, 9, 10],
}  # fmt: skip

DRAWN = {
    "uniform": [0.576550841, 0.299172252],
    "normal": [0.00870730728, -0.0488850065],
    "multivariate_normal": [-2.47139239, -3.00965309, 0.242457747, -1.31832039],
    "Linear.weight": [0.458544731, 0.439555526, -0.531262636, -0.149211556, -0.285746962, 0.437026858],
    "Linear.bias": [0.370297253, 0.214273274],
    "GRU.Wx": [-0.573628366, -0.571939707, 0.216953874, -0.0215270519, -0.222678959, -0.322930753],
    "GRU.bhn": [-0.263864249, -0.457407326],
    "init.sparse": [0.0, 1.32082462, 0.0, 0.915456653, 0.0, -0.475230038, -2.44162226, 0.0],
    "Dropout": [1.66666663, 1.66666663, 1.66666663, 1.66666663, 0.0, 0.0, 1.66666663, 0.0, 0.0],
    "randint": [1, 9, 0, 8],
}  # fmt: skip

#: By which part of themselves numbers may differ that functions such as `log` have made.
CLOSE = {smelt.float32: 4e-6, smelt.complex64: 4e-6, smelt.float16: 2**-10, smelt.bfloat16: 2**-7}


def check(name: str, found: smelt.array, want: list) -> None:
    if found.dtype is smelt.complex64:
        found = smelt.stack([found.real, found.imag], -1)
    values = np.array(found.astype(smelt.float32) if found.dtype.size == 2 else found).ravel()
    wanted = np.array(want).ravel()
    if found.dtype in CLOSE and not name.startswith("uniform"):
        np.testing.assert_allclose(values, wanted, CLOSE[found.dtype], 4e-7, err_msg=name)
    else:
        np.testing.assert_array_equal(values, wanted.astype(values.dtype), err_msg=name)


@pytest.mark.parametrize("way", [lambda f: f, smelt.compile], ids=["op by op", "compiled"])
def test_numbers_of_a_key(way):
    found = way(lambda key: {name: sample(key) for name, sample in SAMPLERS.items()})(KEY)
    for name, want in WANT.items():
        check(name, found[name], want)


def test_numbers_of_a_seed():
    """Draws without a key: the state is split, and modules draw their parameters in MLX's order."""
    random.seed(0)
    mean, cov = exact(np.array([1, -1], np.float32)), exact(np.array([[2, 0.7], [0.7, 1]], np.float32))
    found = [random.uniform(shape=(2,)), random.normal((2,)), random.multivariate_normal(mean, cov, (2,))]
    linear = nn.Linear(3, 2)
    gru = nn.GRU(1, 2)
    found += [linear.weight, linear.bias, gru.Wx, gru.bhn, nn.init.sparse(0.5)(smelt.zeros((2, 4)))]
    found += [nn.Dropout(0.4)(smelt.ones((3, 3))), random.randint(0, 10, (4,))]
    for (name, want), x in zip(DRAWN.items(), found, strict=True):
        check(name, x, want)
