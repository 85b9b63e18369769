"""Flags of mlir-opt: some that smelt-opt takes, those that change nothing here, and what to use instead of others."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import Any

from .usage import count

_ACTIONS = "--dump-ir-to=DIR and --mlir-timing show each run of a pass"

_LLVM = "it is about LLVM IR; --emit=llvm prints that, for LLVM's own opt"
_COUNTER = "--opt-bisect-limit=N runs the first N passes"
_KINDS = "--remarks-filter-passed=REGEX (-missed, -analyse) prints remarks of passes or rules"
_LIST = "--mlir-timing prints a list"

#: By flag, why there is none, or what there is.
LACKING = {
    "--allow-unregistered-dialect": "all ops are checked by their rules: name dialects of MLIR or ops of packages",
    "--debug-only": "--debug shows the traceback of an error, --remarks what passes decided",
    "--color": "what is printed has no colours",
    "--debug-counter": _COUNTER,
    "--elide-resource-data-from-bytecode": "only text is read and written",
    "--emit-bytecode": "only text is read and written",
    "--emit-bytecode-producer": "only text is read and written",
    "--emit-bytecode-version": "only text is read and written",
    "--help-hidden": "--help lists all",
    "--help-list": "--help lists all",
    "--help-list-hidden": "--help lists all",
    "--irdl-file": "ops are classes of Python: --load-dialect-plugin=FILE.py, see docs/add-an-op.md",
    "--log-actions-to": _ACTIONS,
    "--log-mlir-actions-filter": _ACTIONS,
    "--profile-actions-to": "SMELT_PROFILE=trace.json writes a trace of passes",
    "--mlir-debug-counter": _COUNTER,
    "--mlir-disable-diagnostic-notes": "grep -v ': note: ' leaves them out",
    "--mlir-pass-pipeline-local-reproducer": "a reproducer holds the pass that failed, and no others",
    "--mlir-pass-statistics-display": "--mlir-pass-statistics prints a list",
    "--mlir-timing-display": _LIST,
    "--mlir-print-elementsattrs-with-hex-if-larger": "numbers are printed as MLIR prints them",
    "--mlir-print-stacktrace-on-diagnostic": "--debug shows the traceback of an error",
    "--mlir-print-unique-ssa-ids": "names of values are printed as MLIR prints them: unique in a function",
    "--mlir-print-value-users": "--emit=dot draws who reads what",
    "--mlir-very-unsafe-disable-verifier-on-parsing": "what is read is verified",
    "--mlir-output-format": _LIST,
    "--no-implicit-module": "a file is a module, written or not",
    "--print-all-options": "--help lists all",
    "--print-options": "--help lists all",
    "--remark-policy": "--remarks prints all",
    "--remark-format": "--remarks prints lines, --remarks-output-file writes YAML",
    "--show-dialects": "--list-ops lists smelt's ops; MLIR's own dialects are those of the bindings",
    "--stats": "--mlir-pass-statistics prints what passes counted",
    "--strip-debuginfo-on-print": "locations are printed with --mlir-print-debuginfo alone",
    "--time-passes": "--mlir-timing prints how long each pass took",
    "--test-legalize-mode": "it belongs to MLIR's own tests",
    "--verify-region-info": "regions hold nothing but calls here",
    "--view-op-graph": "--emit=dot draws each function, `smelt view` a page",
    "--crash-diagnostics-dir": "--dump-ir-to=DIR leaves the IR before a pass that fails, with the command",
    "--debug-counter-break-on-last": _COUNTER,
    "--disable-symbolication": "--debug shows the traceback of an error",
    "--h": "--help lists all",
    "--info-output-file": "2> FILE keeps what is printed",
    "--mlir-diagnostic-verbosity-level": "grep finds some",
    "--mlir-enable-debugger-hook": "python -m pdb -m smelt.tools.opt stops where you like",
    "--mlir-print-debug-counter": _COUNTER,
    "--opt-bisect": _COUNTER,
    "--opt-bisect-verbose": "--opt-bisect-limit=N prints all passes, numbered",
    "--opt-disable": "leave the pass out of --pass-pipeline",
    "--pass-remarks": _KINDS,
    "--pass-remarks-analysis": _KINDS,
    "--pass-remarks-missed": _KINDS,
    "--print-debug-counter": _COUNTER,
    "--print-debug-counter-queries": _COUNTER,
    "--remarks-filter-failed": "a remark is passed, missed or analysis; errors tell of failures",
    "--remarks-section": _LLVM,
    "--rng-seed": "no pass draws numbers",
    "--sort-timers": _LIST,
    "--stats-json": "--mlir-pass-statistics prints what passes counted",
    "--track-memory": "--mlir-timing prints times alone",
    **dict.fromkeys(
        (
            "--always-rename-promoted-locals", "--disable-i2p-p2i-opt", "--elide-all-zero-branch-weights",
            "--enable-fs-discriminator", "--import-constants-with-refs", "--non-global-value-max-name-size",
            "--pick-merged-source-locations", "--preserve-ll-uselistorder", "--print-addrspace-name",
            "--print-inst-addrs", "--print-inst-debug-locs", "--print-prof-data", "--profcheck-disable-metadata-fixes",
            "--propagate-attrs", "--use-constant-int-for-fixed-length-splat", "--use-constant-int-for-scalable-splat",
            "--use-dereferenceable-at-point-semantics",
        ),
        _LLVM,
    ),
}

#: They ask for what is so anyway: passes run in one thread, and see the whole module; an error names the op.
WITHOUT_EFFECT = frozenset(
    {"--mlir-disable-threading", "--mlir-print-ir-module-scope", "--mlir-print-op-on-diagnostic"}
)

#: By flag, the kind of remarks that it chooses from; all without one.
_FILTERS = {
    "--remarks-filter": "", "--remarks-filter-passed": "passed", "--remarks-filter-missed": "missed",
    "--remarks-filter-analyse": "analysis",
}  # fmt: skip


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Those of mlir-opt about MLIR's printer, reproducers and remarks."""
    add = parser.add_argument
    add("--dump-pass-pipeline", action="store_true", help="print the pipeline before it runs")
    add("--verify-roundtrip", action="store_true", help="check that what is read is printed and read as the same")
    add("--mlir-print-debuginfo", action="store_true", help="print locations")
    add("--mlir-pretty-debuginfo", action="store_true", help="... in a form to be read and not parsed")
    add("--mlir-print-op-generic", action="store_true", help="print MLIR's own ops in the generic form, too")
    add("--mlir-print-local-scope", action="store_true", help="print no aliases of attributes and types")
    add("--mlir-use-nameloc-as-prefix", action="store_true", help="name values as their locations do")
    add("--mlir-print-assume-verified", action="store_true", help="do not verify what is printed")
    add("--mlir-print-skip-regions", action="store_true", help="print {...} for regions")
    size = "print ... for constants of more elements"
    add("--mlir-elide-elementsattrs-if-larger", type=count, metavar="N", help=size)
    add("--mlir-elide-resource-strings-if-larger", type=count, metavar="N", help="... for resources of more characters")
    where = "where the IR before a pass that fails goes, with the command"
    add("--mlir-pass-pipeline-crash-reproducer", metavar="FILE", help=where)
    add("--mlir-generate-reproducer", metavar="FILE", help="write what is read, with the passes that are to run")
    add("--remarks", action="store_true", help="print what passes say about what they did, and did not do, and why")
    for flag, kind in _FILTERS.items():
        what = f"... those that are {kind}" if kind else "print those whose pass or rule it finds"
        add(flag, type=_pattern, metavar="REGEX", help=what)
    add("--remarks-output-file", metavar="FILE", help="write these remarks as YAML, in the form of LLVM's")


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no regular expression: {error}") from None


def _filters(options: argparse.Namespace) -> list[tuple[str, re.Pattern[str]]]:
    given = ((kind, getattr(options, flag[2:].replace("-", "_"))) for flag, kind in _FILTERS.items())
    return [(kind, pattern) for kind, pattern in given if pattern is not None]


def remarks_asked(options: argparse.Namespace) -> bool:
    """Whether remarks are printed."""
    return bool(options.remarks or _filters(options))


def chosen(found: Sequence[Any], options: argparse.Namespace) -> list[Any]:
    """Of remarks those whose pass or rule a filter finds; all without a filter."""
    filters = _filters(options)

    def asked(remark: Any) -> bool:
        return any(
            kind in ("", remark.kind) and (pattern.search(remark.pass_name) or pattern.search(remark.rule))
            for kind, pattern in filters
        )

    return [remark for remark in found if not filters or asked(remark)]
