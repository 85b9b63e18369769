"""Layers with a state from step to step, as functions."""

from __future__ import annotations

from smelt.ir import dtypes
from smelt.ir.errors import ShapeError, at_user_line
from smelt.ir.keywords import explain_keywords

from .functions.creation import zeros
from .functions.joining import repeat as repeated
from .functions.logic import where
from .functions.reductions import sum
from .functions.shaping import moveaxis
from .lazy.arrays import ArrayLike, StreamOrDevice, array, as_array, convert
from .lazy.streams import check_stream
from .transforms.control import scan

__all__ = ["gated_delta_update"]


def gated_delta_update(
    q: ArrayLike, k: ArrayLike, v: ArrayLike, gamma: ArrayLike, beta: ArrayLike, initial_state: ArrayLike | None = None,
    mask: ArrayLike | None = None, *, stream: StreamOrDevice = None,
) -> list[array]:  # fmt: skip
    """Gated delta rule (Yang et al., 2024): a state that forgets, and is corrected towards what it should answer.

    For each step t: ``S = γₜ·S``, ``S = S + βₜ·(vₜ - S·kₜ)·kₜᵀ``, ``oₜ = S·qₜ``.

    Args:
        q, k: queries and keys [B, T, Hk, Dk]. v: values [B, T, Hv, Dv]; Hk divides Hv.
        gamma: what is kept of the state at each step [B, T, Hv]. beta: how far it is corrected [B, T, Hv].
        initial_state: [B, Hv, Dv, Dk]; zeros if missing.
        mask: [B, T]; steps where it is False change no state, and their results are 0.

    Returns:
        Results [B, T, Hv, Dv] of the dtype of `q`, and the last state, float32 [B, Hv, Dv, Dk].

    Raises:
        ShapeError: shapes that do not belong together.

    >>> import smelt
    >>> x, one = smelt.ones((1, 3, 1, 2)), smelt.ones((1, 3, 1))
    >>> out, state = smelt.fast.gated_delta_update(x, x, x, one, one * 0.5)
    >>> out.shape, state.shape
    ((1, 3, 1, 2), (1, 1, 2, 2))
    """
    check_stream(stream)
    given = {"q": q, "k": k, "v": v, "gamma": gamma, "beta": beta}
    arrays = {name: as_array(x) for name, x in given.items()}
    queries, keys, values, kept, rate = (convert(x, dtypes.float32) for x in arrays.values())
    heads = values.shape[2] if values.ndim == 4 else 0
    shown = ", ".join(f"{name} {x.aval}" for name, x in arrays.items())
    fits = (
        queries.ndim == 4
        and queries.shape == keys.shape
        and values.ndim == 4
        and values.shape[:2] == queries.shape[:2]
        and kept.shape == rate.shape == values.shape[:3]
        and (queries.shape[2] and heads % queries.shape[2] == 0)
    )
    if not fits:
        rule = "q and k [B, T, Hk, Dk], v [B, T, Hv, Dv], gamma and beta [B, T, Hv], where Hk divides Hv"
        raise ShapeError(at_user_line(f"smelt.fast.gated_delta_update: needs {rule}; {shown}"))
    batch, steps, key_heads, width = queries.shape
    size = (batch, heads, values.shape[3], width)
    state = zeros(size) if initial_state is None else convert(as_array(initial_state), dtypes.float32)
    if state.shape != size:
        message = f"initial_state must have the shape {size}, is {state.aval}"
        raise ShapeError(at_user_line(f"smelt.fast.gated_delta_update: {message}; {shown}"))
    queries, keys = (repeated(x, heads // key_heads, axis=2) for x in (queries, keys))
    flags = None if mask is None else convert(as_array(mask), dtypes.bool_)
    if flags is not None and flags.shape != (batch, steps):
        message = f"mask must have the shape {(batch, steps)}, is {flags.aval}"
        raise ShapeError(at_user_line(f"smelt.fast.gated_delta_update: {message}; {shown}"))

    def step(before, now):  # type: ignore[no-untyped-def]
        q, k, v, gamma, beta, *flag = now
        state = before * gamma[..., None, None]
        wanted = (v - sum(state * k[..., None, :], axis=-1)) * beta[..., None]
        state = state + wanted[..., None] * k[..., None, :]
        out = sum(state * q[..., None, :], axis=-1)
        if flag:
            state = where(flag[0][:, None, None, None], state, before)
            out = where(flag[0][:, None, None], out, 0.0)
        return state, out

    parts = [queries, keys, values, kept, rate] + ([] if flags is None else [flags])
    last, outs = scan(step, state, tuple(moveaxis(x, 1, 0) for x in parts))
    return [convert(moveaxis(outs, 0, 1), arrays["q"].dtype), last]


explain_keywords(globals())
