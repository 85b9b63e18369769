"""Learning rates that change: functions of the number of steps so far, an int or an array of one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import smelt
from smelt import array
from smelt.ir.errors import AttributeValueError, at_user_line, shown

from ..lazy.explained import explained_maker

__all__ = ["cosine_decay", "exponential_decay", "join_schedules", "linear_schedule", "step_decay"]


def _check_count(name: str, what: str, value: int) -> None:
    if value < 1:
        message = f"{what} must be at least 1, is {shown(value)}"
        raise AttributeValueError(at_user_line(f"smelt.optimizers.{name}: {message}"))


@explained_maker
def exponential_decay(init: float, decay_rate: float) -> Callable[[Any], array]:
    """init · decay_rate^step.

    >>> import smelt
    >>> smelt.optimizers.exponential_decay(1.0, 0.5)(smelt.array(3))
    array(0.125, dtype=float32)
    """
    return lambda step: init * smelt.power(decay_rate, step)


@explained_maker
def step_decay(init: float, decay_rate: float, step_size: int) -> Callable[[Any], array]:
    """init, multiplied by `decay_rate` after each `step_size` steps.

    Raises:
        AttributeValueError: `step_size` is less than 1.

    >>> import smelt
    >>> smelt.optimizers.step_decay(1.0, 0.5, 10)(smelt.array(25))
    array(0.25, dtype=float32)
    """
    _check_count("step_decay", "step_size", step_size)
    return lambda step: init * smelt.power(decay_rate, smelt.floor_divide(step, step_size))


@explained_maker
def cosine_decay(init: float, decay_steps: int, end: float = 0.0) -> Callable[[Any], array]:
    """From `init` to `end` in `decay_steps` steps, along half a wave of the cosine; then `end`.

    Raises:
        AttributeValueError: `decay_steps` is less than 1.

    >>> import smelt
    >>> smelt.optimizers.cosine_decay(1.0, 10)(smelt.array(5))
    array(0.5, dtype=float32)
    """

    _check_count("cosine_decay", "decay_steps", decay_steps)

    def schedule(step: Any) -> array:
        passed = smelt.minimum(step, decay_steps)
        return end + 0.5 * (init - end) * (1.0 + smelt.cos(math.pi / decay_steps * passed))

    return schedule


@explained_maker
def linear_schedule(init: float, end: float, steps: int) -> Callable[[Any], array]:
    """From `init` to `end` in `steps` equal steps; then `end`.

    Raises:
        AttributeValueError: `steps` is less than 1.

    >>> import smelt
    >>> smelt.optimizers.linear_schedule(0.0, 1.0, 4)(smelt.array(3))
    array(0.75, dtype=float32)
    """
    _check_count("linear_schedule", "steps", steps)
    return lambda step: init + smelt.minimum(step, steps) * ((end - init) / steps)


@explained_maker
def join_schedules(schedules: Sequence[Callable[[Any], array]], boundaries: Sequence[int]) -> Callable[[Any], array]:
    """Schedules one after the other: each counts its steps from its boundary on.

    Args:
        boundaries: the steps at which the second, third, … schedule starts.

    Raises:
        AttributeValueError: no schedules, or not one boundary less than schedules.

    >>> import smelt
    >>> warmup = smelt.optimizers.linear_schedule(0.0, 1.0, 10)
    >>> rate = smelt.optimizers.join_schedules([warmup, smelt.optimizers.cosine_decay(1.0, 20)], [10])
    >>> rate(smelt.array(5)), rate(smelt.array(20))
    (array(0.5, dtype=float32), array(0.5, dtype=float32))
    """
    if not schedules or len(schedules) != len(boundaries) + 1:
        raise AttributeValueError(
            at_user_line(
                "smelt.optimizers.join_schedules: needs at least one schedule, and one boundary less than schedules; "
                f"got {len(schedules)} schedules, {len(boundaries)} boundaries"
            )
        )

    def schedule(step: Any) -> array:
        found = schedules[0](step)
        for start, following in zip(boundaries, schedules[1:]):
            found = smelt.where(smelt.less(step, start), found, following(step - start))
        return found

    return schedule
