"""``smelt-opt --list-rewrites`` and ``--check-rewrites``."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from smelt.ir.errors import PipelineError, shown
from smelt.passes import registry
from smelt.passes.rewrites.sets import Rewrite, RewriteSet, all_sets, find, load_all, require_known
from smelt.passes.simplify.patterns import all_patterns


def listed() -> int:
    """Print all sets with their rewrites, then the patterns of canonicalize that are functions; the exit code."""
    registry()
    problems = load_all()
    sets = all_sets()
    for found in sets.values():
        print(f"{found.name}: {found.doc}" if found.doc else found.name)
        for rewrite in found:
            print(f"  {rewrite.name}" + ("" if rewrite.claim == "exact" else f" ({rewrite.claim})"))
            for rule in rewrite.rules:
                print(f"    {rule}")
    functions = [name.replace("_", "-") for name in all_patterns()]
    others = [name for name in functions if name not in sets["canonicalize"].rewrites]
    print("Patterns of canonicalize that are functions in Python, and are not checked here:")
    for name in others:
        print(f"  {name}")
    return _warn(problems)


def _warn(problems: list[str]) -> int:
    for problem in problems:
        print(f"smelt-opt: warning: {problem}", file=sys.stderr)
    return 0


def check(names: str) -> int:
    """Check rewrites and print what was found; the exit code: 1 if one does not do what it claims.

    Args:
        names: sets, or rewrites as ``set/rewrite``, with commas in between; nothing: all sets.

    Raises:
        PipelineError: there is no such set or rewrite.
    """
    from smelt.passes.rewrites.checking import check as check_rewrite

    registry()
    failed = _warn(load_all() if not names else [])
    for owner, rewrites in _asked(names):
        print(f"{owner.name}:")
        for rewrite in rewrites:
            verdict = check_rewrite(rewrite)
            print(f"  {verdict}", flush=True)
            failed |= not verdict.kept
    return int(failed)


def _asked(names: str) -> Iterator[tuple[RewriteSet, list[Rewrite]]]:
    if not names:
        yield from ((found, list(found)) for found in all_sets().values())
        return
    for word in filter(None, names.split(",")):
        name, _, rewrite = word.partition("/")
        if not name:
            raise PipelineError(f"--check-rewrites takes SET or SET/REWRITE, not {shown(word)}")
        found = find(name)
        require_known(f"the set {name}", [rewrite] if rewrite else [], found.rewrites)
        yield found, [found.rewrites[rewrite]] if rewrite else list(found)
