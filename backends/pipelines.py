"""What the pipelines of devices are made of. They are texts, so a program that comes from disk loads no pass."""

from __future__ import annotations

from typing import Any

from smelt.passes.call_graph import EXPAND
from smelt.passes.option_text import spelled


def sequence(*passes: str) -> str:
    """The passes one after the other; an empty text is none.

    >>> sequence("cse", "", with_options("fuse", max_ops=4))
    'cse,fuse{max-ops=4}'
    """
    return ",".join(filter(None, passes))


def with_options(name: str, **options: Any) -> str:
    """A pass with those options that are not None.

    >>> with_options("place", dtypes=("f64", "complex128"), library=None)
    'place{dtypes=f64,complex128}'
    """
    return spelled(name, {key: value for key, value in options.items() if value is not None})


def simplified(*before: str, without: str | None = None) -> str:
    """Transformations expanded, the graph simplified: what every device needs.

    Args:
        before: passes in front of `canonicalize`. without: the patterns that it leaves out.
    """
    return sequence(EXPAND, *before, with_options("canonicalize", without=without), "cse", "dce")


SIMPLIFY = simplified()
