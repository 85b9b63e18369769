"""The loss of sequences whose places are not known: connectionist temporal classification."""

from __future__ import annotations

import functools
from typing import Literal

import smelt
from smelt import array
from smelt.ir.errors import AttributeValueError, ShapeError, at_user_line, shown

from .operands import takes_arrays

__all__ = ["ctc_loss"]

#: Stands for log 0, whose differences are NaN.
NEVER = -1e30


@functools.partial(takes_arrays, remembers=False)  # a loop is no recipe, nor are the checks of its indices
def ctc_loss(
    log_probs: array,
    targets: array,
    input_lengths: array | None = None,
    target_lengths: array | None = None,
    blank: int = 0,
    reduction: Literal["none", "mean", "sum"] = "none",
) -> array:
    """-log of the probability that a sequence, without repetitions and then without blanks, is the target.

    Graves et al., "Connectionist temporal classification", 2006.

    Args:
        log_probs: [batch, positions, classes], logarithms of probabilities, such as `nn.log_softmax` gives.
        targets: [batch, labels], integers other than `blank`.
        input_lengths, target_lengths: [batch], how many positions and labels of each there are; all by default.
        blank: the class that stands for no label.

    Returns:
        [batch], unless reduced; infinite where there are too few positions, and the gradient is zero there.

    Raises:
        ShapeError: shapes that do not fit. AttributeValueError: `blank` is no class, an unknown `reduction`.

    >>> import smelt
    >>> log_probs = smelt.log(smelt.array([[[0.5, 0.5], [0.5, 0.5]]]))
    >>> smelt.exp(-smelt.nn.losses.ctc_loss(log_probs, smelt.array([[1]]))).tolist()
    [0.75]
    """
    _check(log_probs, targets, input_lengths, target_lengths, blank, reduction)
    batch, positions, _ = log_probs.shape
    labels = targets.shape[1]
    if input_lengths is None:
        input_lengths = smelt.full((batch,), positions, smelt.int32)
    if target_lengths is None:
        target_lengths = smelt.full((batch,), labels, smelt.int32)
    # blank, label, blank, …, label, blank: from one position to the next a path stays, moves one on, or, between
    # different labels, two.
    extended = smelt.stack([smelt.full(targets.shape, blank, targets.dtype), targets], axis=-1).flatten(-2)
    extended = smelt.concatenate([extended, smelt.full((batch, 1), blank, targets.dtype)], axis=1)
    states = extended.shape[1]
    leaps = (extended[:, 2:] != extended[:, :-2]) & (extended[:, 2:] != blank)
    leaps = smelt.pad(leaps, [(0, 0), (min(2, states), 0)]) if states > 2 else smelt.zeros((batch, states), smelt.bool_)
    scores = smelt.take_along_axis(
        log_probs, smelt.broadcast_to(extended[:, None, :], (batch, positions, states)), axis=2
    )

    def shifted(paths: array, by: int) -> array:
        return smelt.pad(paths, [(0, 0), (by, 0)], constant_values=NEVER)[:, :states]

    def step(paths: array, inputs: tuple[array, array]) -> tuple[array, None]:
        score, position = inputs
        found = smelt.logaddexp(paths, shifted(paths, 1))
        found = smelt.logaddexp(found, smelt.where(leaps, shifted(paths, 2), NEVER))
        # A sum of many would leave what can be represented in half precision.
        found = smelt.maximum(found + score, NEVER)
        return smelt.where(position < input_lengths[:, None], found, paths), None

    first = smelt.arange(states) < 2
    scores = scores.astype(smelt.float32) if scores.dtype in (smelt.float16, smelt.bfloat16) else scores
    start = smelt.where(first & (input_lengths[:, None] > 0), smelt.maximum(scores[:, 0], NEVER), NEVER)
    paths, _ = smelt.scan(step, start, (smelt.moveaxis(scores, 1, 0)[1:], smelt.arange(1, positions)))
    ends = smelt.stack([2 * target_lengths, smelt.maximum(2 * target_lengths - 1, 0)], axis=1)
    last = smelt.take_along_axis(paths, ends, axis=1)
    last = smelt.where(smelt.stack([target_lengths >= 0, target_lengths > 0], axis=1), last, NEVER)
    found = smelt.logaddexp(last[:, 0], last[:, 1])
    loss = smelt.where(found > NEVER / 2, -found, smelt.inf).astype(log_probs.dtype)
    return {"none": lambda x: x, "mean": smelt.mean, "sum": smelt.sum}[reduction](loss)


def _check(
    log_probs: array, targets: array, input_lengths: array | None, target_lengths: array | None, blank: int,
    reduction: str,
) -> None:  # fmt: skip
    if reduction not in ("none", "mean", "sum"):
        raise AttributeValueError(
            at_user_line(f"smelt.nn.losses.ctc_loss: reduction must be none, mean or sum, is {shown(reduction)}")
        )
    fits = log_probs.ndim == 3 and targets.ndim == 2 and log_probs.shape[0] == targets.shape[0]
    if not fits or log_probs.shape[1] == 0:
        raise ShapeError(
            at_user_line(
                "smelt.nn.losses.ctc_loss: needs log_probs [batch, positions, classes] and targets [batch, labels]; "
                f"log_probs {log_probs.aval}, targets {targets.aval}"
            )
        )
    for name, lengths in (("input_lengths", input_lengths), ("target_lengths", target_lengths)):
        if lengths is not None and lengths.shape != log_probs.shape[:1]:
            raise ShapeError(
                at_user_line(
                    f"smelt.nn.losses.ctc_loss: {name} needs one entry for each of the batch; {name} {lengths.aval}, "
                    f"log_probs {log_probs.aval}"
                )
            )
    if not 0 <= blank < log_probs.shape[2]:
        raise AttributeValueError(
            at_user_line(f"smelt.nn.losses.ctc_loss: blank must be one of {log_probs.shape[2]} classes, is {blank}")
        )
