"""Pictures of training, by matplotlib where it is installed: curves of losses, maps of attention.

They are figures of matplotlib, made without its global state: nothing is shown until somebody asks for it.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np

import smelt
from smelt import array
from smelt.ir.errors import ArgumentTypeError, AttributeValueError, MissingPackageError, ShapeError, at_user_line, shown

__all__ = ["attention_maps", "training_curves"]

#: As an array may be: nested sequences of numbers, NumPy's arrays, arrays.
Numbers = Any
#: Panels that stand beside each other, at most.
_COLUMNS = 4


def training_curves(
    curves: Mapping[str, Numbers],
    path: str | PathLike[str] | None = None,
    *,
    steps: Mapping[str, Numbers] | None = None,
    smooth: float = 0.0,
    log: bool = False,
    title: str = "",
) -> Any:
    """Curves over the steps of training, such as losses.

    Args:
        curves: values by name. What is not finite leaves a gap.
        path: where the picture is written (.png, .svg, .pdf); by default it is not.
        steps: of the curves that have not one value a step, the steps of their values.
        smooth: from 0 on, below 1: how much of what was before stays in the bold line; the values are pale then.
        log: whether the axis of values is logarithmic. title: above the picture.

    Returns:
        A ``matplotlib.figure.Figure``.

    Raises:
        MissingPackageError: matplotlib is not installed.
        ArgumentTypeError: `curves` is no mapping. ShapeError: a curve that is no sequence of numbers, or has not as
            many steps. AttributeValueError: another `smooth`.

    >>> import importlib.util, smelt
    >>> if importlib.util.find_spec("matplotlib"):
    ...     figure = smelt.nn.pictures.training_curves({"loss": [2.0, 1.1, 0.7]}, log=True)
    """
    where = "smelt.nn.pictures.training_curves"
    if not isinstance(curves, Mapping):
        raise ArgumentTypeError(at_user_line(f"{where}: curves must be values by name, is {shown(curves)}"))
    if not 0 <= smooth < 1:
        raise AttributeValueError(at_user_line(f"{where}: smooth must be at least 0 and below 1, is {shown(smooth)}"))
    lines = {str(name): _line(where, name, values, (steps or {}).get(name)) for name, values in curves.items()}
    figure = _figure(where, (6.4, 3.6))
    axes = figure.add_subplot()
    for name, (at, values) in lines.items():
        if smooth:
            pale = axes.plot(at, values, alpha=0.3, linewidth=0.8)[0]
            axes.plot(at, _smoothed(values, smooth), color=pale.get_color(), label=name)
        else:
            axes.plot(at, values, label=name, marker="." if len(values) < 30 else None)
    axes.set_xlabel("step")
    axes.set_title(title)
    axes.grid(alpha=0.3)
    if log:
        axes.set_yscale("log")
    if lines:
        axes.legend()
    return _written(figure, path)


def attention_maps(
    weights: Numbers,
    path: str | PathLike[str] | None = None,
    *,
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    title: str = "",
) -> Any:
    """What each query attends to: a map for each head, the brighter the more.

    Args:
        weights: [heads, queries, keys], or [queries, keys].
        path: where the picture is written (.png, .svg, .pdf); by default it is not.
        queries, keys: a word for each; keys are called as the queries by default, if there are as many.
        title: above the picture.

    Returns:
        A ``matplotlib.figure.Figure``.

    Raises:
        MissingPackageError: matplotlib is not installed. ShapeError: arrays of other shapes, or not a word for each.

    >>> import importlib.util, smelt
    >>> weights = smelt.softmax(smelt.random.normal((2, 3, 3)), axis=-1)
    >>> if importlib.util.find_spec("matplotlib"):
    ...     figure = smelt.nn.pictures.attention_maps(weights, queries=["all", "my", "words"])
    """
    where = "smelt.nn.pictures.attention_maps"
    x = _host(weights)
    x = x[None] if x.ndim == 2 else x
    if x.ndim != 3 or 0 in x.shape:
        raise ShapeError(at_user_line(f"{where}: weights are [heads, queries, keys] or [queries, keys], not {x.shape}"))
    heads, rows, columns = x.shape
    if keys is None and queries is not None and rows == columns:
        keys = queries
    for what, words, count in (("queries", queries, rows), ("keys", keys, columns)):
        if words is not None and len(words) != count:
            raise ShapeError(at_user_line(f"{where}: {count} {what} with {len(words)} words"))
    across = min(heads, _COLUMNS)
    down = math.ceil(heads / across)
    panel = 2.4 if queries is None and keys is None else max(2.4, 0.18 * max(rows, columns) + 1)
    figure = _figure(where, (panel * across, panel * down))
    for i, head in enumerate(x):
        axes = figure.add_subplot(down, across, i + 1)
        axes.imshow(head, vmin=0, aspect="auto", interpolation="nearest")
        axes.set_title(f"head {i}" if heads > 1 else "", fontsize="small")
        if queries is not None:
            axes.set_yticks(range(rows), labels=list(queries), fontsize="x-small")
        if keys is not None:
            axes.set_xticks(range(columns), labels=list(keys), fontsize="x-small", rotation=90)
    if title:
        figure.suptitle(title)
    return _written(figure, path)


def _line(where: str, name: Any, values: Numbers, steps: Numbers | None) -> tuple[np.ndarray, np.ndarray]:
    y = _host(values)
    if y.ndim != 1:
        raise ShapeError(at_user_line(f"{where}: {name} must be a sequence of numbers, has the shape {y.shape}"))
    x = np.arange(1, len(y) + 1) if steps is None else _host(steps)
    if x.shape != y.shape:
        raise ShapeError(at_user_line(f"{where}: {name} has {len(y)} values at {len(x)} steps"))
    return x, np.where(np.isfinite(y), y, np.nan)


def _smoothed(values: np.ndarray, smooth: float) -> np.ndarray:
    """A mean of each value and those before, which count the less the longer ago they are."""
    found, total, count = np.empty_like(values), 0.0, 0.0
    for i, value in enumerate(values):
        if np.isfinite(value):
            total, count = smooth * total + value, smooth * count + 1
        found[i] = total / count if count else np.nan
    return found


def _host(values: Numbers) -> np.ndarray:
    if not isinstance(values, (array, np.ndarray)):
        values = [x.item() if isinstance(x, array) and x.ndim == 0 else x for x in values]
    return np.asarray(smelt.array(values).astype(smelt.float64))


def _figure(where: str, size: tuple[float, float]) -> Any:
    try:
        figures = importlib.import_module("matplotlib.figure")
    except ImportError as error:
        message = f"{where}: needs matplotlib: pip install matplotlib ({error})"
        raise MissingPackageError(at_user_line(message)) from None
    return figures.Figure(figsize=size, layout="constrained")


def _written(figure: Any, path: str | PathLike[str] | None) -> Any:
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure
