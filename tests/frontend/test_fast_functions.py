"""Normalization, loss and attention against NumPy in float64, and their gradients against finite differences."""

import numpy as np
import pytest

import smelt

from .checks import check_gradient, exact

RNG = np.random.default_rng(3)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(q, k, v, scale, bias=0.0, sinks=None):
    k, v = (np.repeat(x, q.shape[1] // k.shape[1], 1) for x in (k, v))
    scores = scale * q @ np.swapaxes(k, -1, -2) + bias
    if sinks is not None:
        column = np.broadcast_to(sinks[:, None, None], (*scores.shape[:-1], 1))
        return softmax(np.concatenate([column, scores], -1))[..., 1:] @ v
    return softmax(scores) @ v


def rotated(x, dims, traditional, rates, positions):
    """Each pair of features as a complex number, turned."""
    pairs = np.arange(dims).reshape(-1, 2) if traditional else np.arange(dims).reshape(2, -1).T
    z = (x[..., pairs[:, 0]] + 1j * x[..., pairs[:, 1]]) * np.exp(1j * positions[..., None] * rates)
    out = x.copy()
    out[..., pairs[:, 0]], out[..., pairs[:, 1]] = z.real, z.imag
    return out


class TestRows:
    x, w, b = RNG.standard_normal((3, 2, 5)), RNG.standard_normal(5), RNG.standard_normal(5)

    def test_rms_norm(self):
        want = self.x / np.sqrt((self.x**2).mean(-1, keepdims=True) + 1e-5)
        for f in (smelt.fast.rms_norm, smelt.compile(smelt.fast.rms_norm)):
            np.testing.assert_allclose(np.array(f(exact(self.x), exact(self.w), 1e-5)), want * self.w, rtol=1e-12)
        np.testing.assert_allclose(np.array(smelt.fast.rms_norm(exact(self.x), None, 1e-5)), want, rtol=1e-12)

    def test_layer_norm(self):
        want = (self.x - self.x.mean(-1, keepdims=True)) / np.sqrt(self.x.var(-1, keepdims=True) + 1e-5)
        for f in (smelt.fast.layer_norm, smelt.compile(smelt.fast.layer_norm)):
            found = f(exact(self.x), exact(self.w), exact(self.b), 1e-5)
            np.testing.assert_allclose(np.array(found), want * self.w + self.b, rtol=1e-10, atol=1e-12)
        found = smelt.fast.layer_norm(exact(self.x), None, None, 1e-5)
        np.testing.assert_allclose(np.array(found), want, rtol=1e-10, atol=1e-12)

    def test_dtypes(self):
        half = smelt.array([1000.0, 2000.0], smelt.float16)  # whose squares overflow in half precision
        assert smelt.fast.rms_norm(half, None, 1e-5).dtype is smelt.float16
        np.testing.assert_allclose(smelt.fast.rms_norm(half, None, 1e-5).tolist(), [0.6325, 1.265], rtol=1e-3)
        assert smelt.fast.layer_norm(half, smelt.ones(2), None, 1e-5).dtype is smelt.float32

    def test_gradients(self):
        check_gradient(lambda x, w: smelt.fast.rms_norm(x, w, 1e-3), self.x, self.w)
        check_gradient(lambda x, w, b: smelt.fast.layer_norm(x, w, b, 1e-3), self.x, self.w, self.b)

    def test_cross_entropy(self):
        targets = np.array([[0, 4], [2, 2], [1, 3]])
        want = -np.log(np.take_along_axis(softmax(self.x), targets[..., None], -1))[..., 0]
        found = smelt.fast.cross_entropy(exact(self.x), smelt.array(targets))
        np.testing.assert_allclose(np.array(found), want, rtol=1e-12)
        half = smelt.fast.cross_entropy(smelt.array([0.0, 0.0], smelt.float16), smelt.array(1))
        assert half.dtype is smelt.float32
        check_gradient(lambda x: smelt.fast.cross_entropy(x, smelt.array(targets)), self.x)

    def test_errors(self):
        x = smelt.zeros((2, 3))
        with pytest.raises(ValueError, match=r"fast\.rms_norm: weight .* f32\[4\], x f32\[2,3\]; at .*fast_functions"):
            smelt.fast.rms_norm(x, smelt.ones(4), 1e-5)
        with pytest.raises(ValueError, match=r"fast\.layer_norm: bias"):
            smelt.fast.layer_norm(x, None, smelt.ones(2), 1e-5)
        with pytest.raises(ValueError, match=r"fast\.cross_entropy: targets need"):
            smelt.fast.cross_entropy(x, smelt.array([[0], [1]]))
        with pytest.raises(TypeError, match="integer targets"):
            smelt.fast.cross_entropy(x, smelt.ones(2))
        with pytest.raises(ValueError, match="no classes"):
            smelt.fast.cross_entropy(smelt.ones((2, 0)), smelt.array([0, 0]))
        for eps in (None, "a", 1j, smelt.ones(2)):
            with pytest.raises(TypeError, match=r"fast\.rms_norm: eps must be a number"):
                smelt.fast.rms_norm(x, None, eps)
        with pytest.raises(TypeError, match=r"fast\.layer_norm: bias must hold real numbers"):
            smelt.fast.layer_norm(x, None, smelt.ones(3, smelt.complex64), 1e-5)

    def test_a_traced_epsilon(self):
        found = smelt.compile(lambda x, eps: smelt.fast.rms_norm(x, None, eps))(exact(self.x), smelt.array(0.5))
        np.testing.assert_allclose(np.array(found), np.array(smelt.fast.rms_norm(exact(self.x), None, 0.5)), rtol=1e-12)


class TestRope:
    x = RNG.standard_normal((2, 3, 4, 6))

    @pytest.mark.parametrize("traditional", [True, False])
    @pytest.mark.parametrize("dims", [6, 4])
    def test_base(self, traditional, dims):
        rates = 100.0 ** (-np.arange(0, dims, 2) / dims)
        want = rotated(self.x, dims, traditional, rates, 0.5 * (np.arange(4) + 3))
        found = smelt.fast.rope(
            smelt.array(self.x), dims, traditional=traditional, base=100.0, scale=0.5, offset=3
        )
        np.testing.assert_allclose(np.array(found), want, rtol=1e-4, atol=1e-5)

    def test_frequencies_and_an_offset_for_each_of_the_batch(self):
        freqs, offset = np.array([1.0, 2.0, 5.0]), np.array([1, 7])
        positions = np.arange(4) + offset[:, None, None]
        want = rotated(self.x, 6, False, 1 / freqs, positions)
        found = smelt.fast.rope(
            smelt.array(self.x), 6, traditional=False, base=None, scale=1.0, offset=smelt.array(offset),
            freqs=smelt.array(freqs),
        )  # fmt: skip
        np.testing.assert_allclose(np.array(found), want, rtol=1e-4, atol=1e-5)

    def test_errors(self):
        x, rest = smelt.zeros((1, 2, 4)), {"traditional": False, "scale": 1.0, "offset": 0}
        with pytest.raises(ValueError, match="exactly one of base and freqs"):
            smelt.fast.rope(x, 4, base=None, **rest)
        with pytest.raises(ValueError, match="dims must be even"):
            smelt.fast.rope(x, 3, base=10.0, **rest)
        with pytest.raises(ValueError, match="needs axes"):
            smelt.fast.rope(smelt.zeros((2, 4)), 4, base=10.0, **rest)
        with pytest.raises(TypeError, match="integer offset"):
            smelt.fast.rope(x, 4, base=10.0, **{**rest, "offset": 0.5})
        with pytest.raises(TypeError, match="freqs must hold real"):
            smelt.fast.rope(x, 4, base=None, freqs=[1j, 2], **rest)
        for base in (0.0, -1.0, float("inf"), float("nan")):
            with pytest.raises(ValueError, match=r"fast\.rope: base must be positive"):
                smelt.fast.rope(x, 4, base=base, **rest)
        for dims, base, scale, match in (
            ("4", 10.0, 1.0, "dims must be an int"),
            (4.0, 10.0, 1.0, "dims must be an int"),
            (4, "x", 1.0, "base must be a number"),
            (4, 10.0, None, "scale must be a number"),
        ):
            with pytest.raises(TypeError, match=rf"fast\.rope: {match}"):
                smelt.fast.rope(x, dims, base=base, **{**rest, "scale": scale})

    def test_far_positions(self):
        """The rates are as exact as float32 has them; the angles are rounded once more."""
        x = self.x[:1].astype(np.float32)
        want = rotated(x.astype(float), 6, False, 1e4 ** (-np.arange(0, 6, 2) / 6), np.arange(4) + 1e5)
        found = smelt.fast.rope(smelt.array(x), 6, traditional=False, base=1e4, scale=1.0, offset=100_000)
        np.testing.assert_allclose(np.array(found), want, atol=1e5 * 2**-23)


class TestAttention:
    q = RNG.standard_normal((2, 4, 3, 5))
    k, v = RNG.standard_normal((2, 2, 6, 5)), RNG.standard_normal((2, 2, 6, 7))

    def run(self, **options):
        found = smelt.fast.scaled_dot_product_attention(
            exact(self.q), exact(self.k), exact(self.v), scale=0.3, **options
        )
        return np.array(found)

    def test_groups(self):
        np.testing.assert_allclose(self.run(), attention(self.q, self.k, self.v, 0.3), rtol=1e-10)

    def test_masks(self):
        seen = np.tril(np.ones((3, 6), bool), 3)
        want = attention(self.q, self.k, self.v, 0.3, np.where(seen, 0.0, -np.inf))
        np.testing.assert_allclose(self.run(mask="causal"), want, rtol=1e-10)
        np.testing.assert_allclose(self.run(mask=smelt.array(seen)), want, rtol=1e-10)
        bias = RNG.standard_normal((2, 1, 3, 6))
        want = attention(self.q, self.k, self.v, 0.3, bias)
        np.testing.assert_allclose(self.run(mask=exact(bias)), want, rtol=1e-10)

    def test_a_query_without_keys_gets_the_mean(self):
        found = self.run(mask=smelt.zeros((3, 6), smelt.bool_))
        np.testing.assert_allclose(found[:, ::2], np.broadcast_to(self.v.mean(2, keepdims=True), (2, 2, 3, 7)))

    def test_sinks(self):
        sinks = RNG.standard_normal(4)
        want = attention(self.q, self.k, self.v, 0.3, sinks=sinks)
        np.testing.assert_allclose(self.run(sinks=exact(sinks)), want, rtol=1e-10)

    def test_compiled_half(self):
        q, k, v = (smelt.array(x).astype(smelt.bfloat16) for x in (self.q, self.k, self.v))
        found = smelt.compile(lambda *x: smelt.fast.scaled_dot_product_attention(*x, scale=0.3, mask="causal"))(q, k, v)
        assert found.dtype is smelt.bfloat16 and found.shape == (2, 4, 3, 7)

    def test_gradient(self):
        def f(q, k, v):
            return smelt.fast.scaled_dot_product_attention(q, k, v, scale=0.3, mask="causal")

        check_gradient(f, self.q, self.k, self.v)

    def test_errors(self):
        call = smelt.fast.scaled_dot_product_attention
        x = smelt.zeros((1, 2, 3, 4))
        for args, options, match in (
            ((x[0], x, x), {}, "operands have axes"),
            ((x, x, x[:, :, :2]), {}, "each key has a value"),
            ((x, x[..., :2], x), {}, "same batch and features"),
            ((x[:, :1], x, x), {}, "multiple of those of k"),
            ((x, x, x), {"mask": "full"}, '"causal" or an array'),
            ((x, x, x), {"mask": smelt.zeros((5, 1, 2, 3, 3))}, "mask must broadcast to the scores"),
            ((x, x, x), {"sinks": smelt.zeros(3)}, "one sink for each of the 2 heads"),
        ):
            with pytest.raises(ValueError, match=match):
                call(*args, scale=1.0, **options)
        with pytest.raises(TypeError, match="floating point"):
            call(x, x, x.astype(smelt.int32), scale=1.0)
        for options, match in (
            ({"scale": None}, "scale must be a number"),
            ({"scale": "1"}, "scale must be a number"),
            ({"scale": 1.0, "mask": smelt.ones((3, 3), smelt.complex64)}, "bools or real numbers"),
            ({"scale": 1.0, "sinks": smelt.ones(2, smelt.complex64)}, "sinks must hold real"),
        ):
            with pytest.raises(TypeError, match=match):
                call(x, x, x, **options)
