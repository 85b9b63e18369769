"""Losses: what training makes small.

All take arrays of equal shapes unless they say otherwise, and `reduction`: ``"none"`` for the loss of each element or
row, ``"mean"`` or ``"sum"`` for one number.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, Literal

import smelt
from smelt import array
from smelt.ir.errors import AttributeValueError, DTypeError, ShapeError, at_user_line, shown
from smelt.ir.listing import listed

from ..functions.known_indices import check_known
from ..lacking import lacking
from .ctc import ctc_loss
from .layers.activation_functions import largest_and_rest, relu, widened
from .operands import in_float32, takes_arrays

__all__ = [
    "binary_cross_entropy", "cosine_similarity_loss", "cross_entropy", "ctc_loss", "gaussian_nll_loss", "hinge_loss",
    "huber_loss", "kl_div_loss", "l1_loss", "log_cosh_loss", "margin_ranking_loss", "mse_loss", "nll_loss",
    "smooth_l1_loss", "triplet_loss",
]  # fmt: skip

Reduction = Literal["none", "mean", "sum"]

__dir__ = listed(globals())
if not TYPE_CHECKING:
    __getattr__ = lacking(globals())


def _reduced(name: str, loss: array, reduction: str) -> array:
    if reduction == "none":
        return loss
    if reduction == "mean":
        return smelt.mean(loss)
    if reduction == "sum":
        return smelt.sum(loss)
    raise AttributeValueError(
        at_user_line(f"smelt.nn.losses.{name}: reduction must be none, mean or sum, is {shown(reduction)}")
    )


def _same_shape(name: str, **operands: array) -> None:
    first, *others = [x.shape for x in operands.values()]
    if any(shape != first for shape in others):
        listed = ", ".join(f"{what} {x.aval}" for what, x in operands.items())
        raise ShapeError(at_user_line(f"smelt.nn.losses.{name}: {' and '.join(operands)} differ in shape; {listed}"))


def _weighted(name: str, loss: array, weights: array | None) -> array:
    if weights is None:
        return loss
    if weights.shape != loss.shape:
        raise ShapeError(
            at_user_line(
                f"smelt.nn.losses.{name}: weights need the shape of the loss; weights {weights.aval}, loss {loss.aval}"
            )
        )
    return loss * weights


def _check_classes(given: dict[str, Any]) -> None:
    """Raise for a target that is there and no class."""
    x, targets, axis = given.get("logits", given.get("inputs")), given.get("targets"), given.get("axis", -1)
    if isinstance(x, array) and isinstance(targets, array) and isinstance(axis, int) and targets.dtype.is_integer:
        if targets.ndim == x.ndim - 1 and -x.ndim <= axis < x.ndim:
            check_known(targets, axis % x.ndim, x)


@functools.partial(takes_arrays, check=_check_classes)
def cross_entropy(
    logits: array,
    targets: array,
    weights: array | None = None,
    axis: int = -1,
    label_smoothing: float = 0.0,
    reduction: Reduction = "none",
) -> array:
    """-log softmax(logits)[targets] along an axis.

    Args:
        logits: any shape, floating point. targets: the shape of `logits` without `axis`, integers; or that of
            `logits`, probabilities; where these do not sum to 1, the loss is that of the logits without their maximum.
            Numbers below 0 count from the last class. What is to be left out, marked by -100 say, needs the number of
            some class, and 0 among the weights: ``smelt.where(targets == -100, 0, targets)``.
        weights: for each loss, of its shape. label_smoothing: how much of the probability is spread over all classes.

    Returns:
        The shape of `logits` without `axis`, unless reduced.

    Raises:
        ShapeError: shapes that do not fit. DTypeError: targets that are neither integers nor probabilities.
        IndexOutOfRangeError: a number, in an array whose values are there, that there is no class for.
        AttributeValueError: `label_smoothing` outside [0, 1), an unknown `reduction`.

    >>> import smelt
    >>> smelt.nn.losses.cross_entropy(smelt.array([[0.0, 0.0], [0.0, 100.0]]), smelt.array([0, 1]))
    array([0.693147, 0], dtype=float32)
    """
    if not 0 <= label_smoothing < 1:
        raise AttributeValueError(
            at_user_line(
                f"smelt.nn.losses.cross_entropy: label_smoothing must be in [0, 1), is {shown(label_smoothing)}"
            )
        )
    probabilities = targets.ndim == logits.ndim
    kept = tuple(n for i, n in enumerate(logits.shape) if i != axis % max(1, logits.ndim))
    if targets.shape != (logits.shape if probabilities else kept):
        raise ShapeError(
            at_user_line(
                f"smelt.nn.losses.cross_entropy: targets need the shape of the logits, or that without axis {axis}; "
                f"logits {logits.aval}, targets {targets.aval}"
            )
        )
    if not probabilities and not targets.dtype.is_integer:
        rule = "targets without the axis of the classes are their numbers, integers: targets.astype(smelt.int32)"
        raise DTypeError(
            at_user_line(f"smelt.nn.losses.cross_entropy: {rule}; logits {logits.aval}, targets {targets.aval}")
        )
    wide = widened(logits)
    top, rest = largest_and_rest(wide, axis)
    if probabilities:
        score = smelt.sum((wide - top) * widened(targets), axis=axis)
    else:
        chosen = widened(smelt.take_along_axis(logits, smelt.expand_dims(targets, axis), axis))
        score = smelt.squeeze(chosen - top, axis)
    if label_smoothing:
        score = (1 - label_smoothing) * score + label_smoothing * smelt.mean(wide - top, axis=axis)
    loss = (smelt.squeeze(rest, axis) - score).astype(_loss_dtype(logits, *([targets] if probabilities else [])))
    return _reduced("cross_entropy", _weighted("cross_entropy", loss, weights), reduction)


def _loss_dtype(*given: array) -> smelt.Dtype:
    """The common dtype, of integers float32."""
    found = smelt.result_type(*given)
    return found if found.is_inexact else smelt.float32


@takes_arrays
def binary_cross_entropy(
    inputs: array,
    targets: array,
    weights: array | None = None,
    with_logits: bool = True,
    reduction: Reduction = "mean",
) -> array:
    """-(targets · log p + (1 - targets) · log(1 - p)), with p = sigmoid(inputs).

    Args:
        inputs: logits, or with `with_logits` false the probabilities p, of which the logarithms are at least -100.
        targets: 0 or 1, or between. weights: for each loss, of its shape.

    Raises:
        ShapeError: shapes that do not broadcast. AttributeValueError: an unknown `reduction`.

    >>> import smelt
    >>> smelt.nn.losses.binary_cross_entropy(smelt.array([0.0, 20.0]), smelt.array([0.0, 1.0]), reduction="none")
    array([0.693147, 2.06115e-09], dtype=float32)
    """
    _same_shape("binary_cross_entropy", inputs=inputs, targets=targets)
    if with_logits:
        # log(1 + exp(x)) - x · t, of whose first part x itself is taken where it is positive: what is left is small.
        x, t = widened(inputs), widened(targets)
        positive = x > 0
        rest = smelt.log1p(smelt.exp(smelt.where(positive, -x, x)))
        loss = (smelt.where(positive, (1 - t) * x, -t * x) + rest).astype(_loss_dtype(inputs, targets))
    else:
        p, t = widened(inputs), widened(targets)
        yes, no = (smelt.maximum(smelt.log(x), -100.0) for x in (p, 1 - p))
        loss = (-(t * yes + (1 - t) * no)).astype(_loss_dtype(inputs, targets))
    return _reduced("binary_cross_entropy", _weighted("binary_cross_entropy", loss, weights), reduction)


@takes_arrays
@in_float32
def l1_loss(predictions: array, targets: array, reduction: Reduction = "mean") -> array:
    """|predictions - targets|.

    Raises:
        ShapeError: shapes that do not broadcast. AttributeValueError: an unknown `reduction`.

    >>> import smelt
    >>> smelt.nn.losses.l1_loss(smelt.array([1.0, 2.0]), smelt.array([3.0, 5.0]))
    array(2.5, dtype=float32)
    """
    _same_shape("l1_loss", predictions=predictions, targets=targets)
    return _reduced("l1_loss", smelt.abs(predictions - targets), reduction)


@takes_arrays
@in_float32
def mse_loss(predictions: array, targets: array, reduction: Reduction = "mean") -> array:
    """(predictions - targets)².

    Raises:
        ShapeError: shapes that do not broadcast. AttributeValueError: an unknown `reduction`.

    >>> import smelt
    >>> smelt.nn.losses.mse_loss(smelt.array([1.0, 2.0]), smelt.array([3.0, 5.0]))
    array(6.5, dtype=float32)
    """
    _same_shape("mse_loss", predictions=predictions, targets=targets)
    return _reduced("mse_loss", smelt.square(predictions - targets), reduction)


@functools.partial(takes_arrays, check=_check_classes)
def nll_loss(inputs: array, targets: array, axis: int = -1, reduction: Reduction = "none") -> array:
    """-inputs[targets] along an axis.

    Args:
        inputs: logarithms of probabilities. targets: the shape of `inputs` without `axis`, integers, which mean what
            they do in `cross_entropy`.

    Raises:
        ShapeError: shapes that do not fit. AttributeValueError: an unknown `reduction`.

    >>> import smelt
    >>> smelt.nn.losses.nll_loss(smelt.array([[-1.0, -2.0]]), smelt.array([1]))
    array([2], dtype=float32)
    """
    chosen = smelt.take_along_axis(inputs, smelt.expand_dims(targets, axis), axis)
    return _reduced("nll_loss", -smelt.squeeze(chosen, axis), reduction)


@takes_arrays
@in_float32
def gaussian_nll_loss(
    inputs: array,
    targets: array,
    vars: array,
    full: bool = False,
    eps: float = 1e-6,
    reduction: Reduction = "mean",
) -> array:
    """½ · (log vars + (targets - inputs)² / vars).

    Args:
        inputs: means. vars: variances, taken as at least `eps`. full: add ½ · log 2π.

    Raises:
        ShapeError: shapes that do not broadcast. AttributeValueError: an unknown `reduction`.

    >>> import smelt
    >>> smelt.nn.losses.gaussian_nll_loss(smelt.array([1.0]), smelt.array([3.0]), smelt.array([1.0]))
    array(2, dtype=float32)
    """
    _same_shape("gaussian_nll_loss", inputs=inputs, targets=targets, vars=vars)
    spread = smelt.where(vars <= eps, eps, vars)
    loss = 0.5 * (smelt.log(spread) + smelt.square(targets - inputs) / spread)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return _reduced("gaussian_nll_loss", loss, reduction)


@takes_arrays
@in_float32
def kl_div_loss(inputs: array, targets: array, axis: int = -1, reduction: Reduction = "none") -> array:
    """Σ exp(targets) · (targets - inputs) along an axis: how far the distribution of `targets` is from `inputs`.

    Args:
        inputs, targets: logarithms of probabilities.
        axis: of the sum. reduction: "none", "mean" or "sum" of all.

    >>> import smelt
    >>> p = smelt.log(smelt.array([0.5, 0.5]))
    >>> smelt.nn.losses.kl_div_loss(p, p)
    array(0, dtype=float32)
    """
    loss = smelt.sum(smelt.exp(targets) * (targets - inputs), axis=axis)
    return _reduced("kl_div_loss", loss, reduction)


@takes_arrays
@in_float32
def smooth_l1_loss(predictions: array, targets: array, beta: float = 1.0, reduction: Reduction = "mean") -> array:
    """½ · d² / beta where d = |predictions - targets| is less than `beta`, else d - ½ · beta.

    Raises:
        ShapeError: shapes that do not broadcast. AttributeValueError: an unknown `reduction`.

    >>> import smelt
    >>> smelt.nn.losses.smooth_l1_loss(smelt.array([0.5, 3.0]), smelt.zeros(2), reduction="none")
    array([0.125, 2.5], dtype=float32)
    """
    _same_shape("smooth_l1_loss", predictions=predictions, targets=targets)
    distance = smelt.abs(predictions - targets)
    if not beta:
        return _reduced("smooth_l1_loss", distance, reduction)
    loss = smelt.where(distance < beta, 0.5 * smelt.square(distance) / beta, distance - 0.5 * beta)
    return _reduced("smooth_l1_loss", loss, reduction)


@takes_arrays
@in_float32
def huber_loss(inputs: array, targets: array, delta: float = 1.0, reduction: Reduction = "none") -> array:
    """½ · d² where d = |inputs - targets| is at most `delta`, else delta · (d - ½ · delta).

    Args:
        inputs, targets: arrays of one shape, or that broadcast. delta: above 0.
        reduction: "none", "mean" or "sum" of all.

    Raises:
        ShapeError: shapes that do not broadcast. AttributeValueError: an unknown `reduction`.

    >>> import smelt
    >>> smelt.nn.losses.huber_loss(smelt.array([0.5, 3.0]), smelt.zeros(2), 2.0)
    array([0.125, 4], dtype=float32)
    """
    distance = smelt.abs(inputs - targets)
    near = smelt.minimum(distance, delta)
    return _reduced("huber_loss", 0.5 * smelt.square(near) + delta * (distance - near), reduction)


@takes_arrays
@in_float32
def log_cosh_loss(inputs: array, targets: array, reduction: Reduction = "none") -> array:
    """log cosh(inputs - targets).

    Args:
        inputs, targets: arrays of one shape, or that broadcast.
        reduction: "none", "mean" or "sum" of all.

    Raises:
        ShapeError: shapes that do not broadcast. AttributeValueError: an unknown `reduction`.

    >>> import smelt
    >>> smelt.nn.losses.log_cosh_loss(smelt.array([0.0, 100.0]), smelt.zeros(2))
    array([0, 99.3069], dtype=float32)
    """
    error = inputs - targets
    return _reduced("log_cosh_loss", smelt.logaddexp(error, -error) - math.log(2), reduction)


@takes_arrays
@in_float32
def hinge_loss(inputs: array, targets: array, reduction: Reduction = "none") -> array:
    """max(1 - inputs · targets, 0), with targets 1 or -1.

    Args:
        inputs, targets: arrays of one shape, or that broadcast.
        reduction: "none", "mean" or "sum" of all.

    Raises:
        ShapeError: shapes that do not broadcast. AttributeValueError: an unknown `reduction`.

    >>> import smelt
    >>> smelt.nn.losses.hinge_loss(smelt.array([0.5, 2.0]), smelt.array([1.0, 1.0]))
    array([0.5, 0], dtype=float32)
    """
    return _reduced("hinge_loss", relu(1 - inputs * targets), reduction)


@takes_arrays
@in_float32
def triplet_loss(
    anchors: array,
    positives: array,
    negatives: array,
    axis: int = -1,
    p: int = 2,
    margin: float = 1.0,
    eps: float = 1e-6,
    reduction: Reduction = "none",
) -> array:
    """max(d(anchors, positives) - d(anchors, negatives) + margin, 0), with d(x, y) = (Σ |x - y|^p + eps)^(1/p).

    Args:
        axis: of the sums. eps: keeps the slope finite where arrays are equal.
        reduction: "none", "mean" or "sum" of all.

    >>> import smelt
    >>> anchors, far = smelt.zeros((1, 2)), smelt.array([[3.0, 4.0]])
    >>> smelt.nn.losses.triplet_loss(anchors, far, anchors, eps=0.0)
    array([6], dtype=float32)
    """

    def distance(x: array) -> array:
        return smelt.power(smelt.sum(smelt.power(smelt.abs(anchors - x), p), axis=axis) + eps, 1 / p)

    return _reduced("triplet_loss", relu(distance(positives) - distance(negatives) + margin), reduction)


@takes_arrays
@in_float32
def cosine_similarity_loss(
    x1: array, x2: array, axis: int = 1, eps: float = 1e-8, reduction: Reduction = "none"
) -> array:
    """Σ x1 · x2 / max(|x1| · |x2|, eps) along an axis: the cosine of the angle, which is large for similar arrays.

    Args:
        x1, x2: arrays of one shape, or that broadcast. axis: of the sums. eps: keeps the quotient finite.
        reduction: "none", "mean" or "sum" of all.

    Returns:
        Their shape without `axis`, unless reduced.

    Raises:
        ShapeError: shapes that do not broadcast. AttributeValueError: an unknown `reduction`.

    >>> import smelt
    >>> smelt.nn.losses.cosine_similarity_loss(smelt.array([[3.0, 4.0]]), smelt.array([[6.0, 8.0]]))
    array([1], dtype=float32)
    """
    if x1.shape != x2.shape:  # the length of a vector that is one number for all of the axis
        x1, x2 = smelt.broadcast_arrays(x1, x2)
    sizes = [smelt.linalg.vector_norm(x, axis=axis) for x in (x1, x2)]  # whose derivative at 0 is 0
    loss = smelt.sum(x1 * x2, axis=axis) / smelt.maximum(sizes[0] * sizes[1], eps)
    return _reduced("cosine_similarity_loss", loss, reduction)


@takes_arrays
@in_float32
def margin_ranking_loss(
    inputs1: array, inputs2: array, targets: array, margin: float = 0.0, reduction: Reduction = "none"
) -> array:
    """max(-targets · (inputs1 - inputs2) + margin, 0): where the target is 1 the first should be larger, where -1 less.

    Raises:
        ShapeError: shapes that do not broadcast. AttributeValueError: an unknown `reduction`.

    >>> import smelt
    >>> smelt.nn.losses.margin_ranking_loss(smelt.array([1.0]), smelt.array([3.0]), smelt.array([1.0]))
    array([2], dtype=float32)
    """
    _same_shape("margin_ranking_loss", inputs1=inputs1, inputs2=inputs2, targets=targets)
    loss = -targets * (inputs1 - inputs2) + margin
    return _reduced("margin_ranking_loss", smelt.where(loss < 0, 0, loss), reduction)
