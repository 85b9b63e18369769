"""Flags of mlir-opt that smelt-opt does not have, and what to use instead."""

from __future__ import annotations

_ONE = "smelt-opt prints a whole module, in the generic form of smelt's ops, as it is: there is nothing to choose"
_REPRODUCER = "--dump-ir-to=DIR leaves the IR before a pass that fails, with the command that replays it"
_THREADS = "passes run in one thread"
_PLUGIN = "packages bring passes and ops by entry points: see docs/add-a-pass.md"
_ACTIONS = "--dump-ir-to=DIR and --mlir-timing show each run of a pass"

#: By flag, why there is none, or what there is.
LACKING = {
    "--allow-unregistered-dialect": "all ops are checked by their rules: name dialects of MLIR or ops of packages",
    "--debug-only": "--debug shows the traceback of an error, --remarks what passes decided",
    "--dump-pass-pipeline": "`smelt dump --stage=list` and --mlir-timing name the passes in order",
    "--color": "what is printed has no colours",
    "--debug-counter": "--opt-bisect-limit=N runs the first N passes",
    "--elide-resource-data-from-bytecode": "only text is read and written",
    "--emit-bytecode": "only text is read and written",
    "--emit-bytecode-producer": "only text is read and written",
    "--emit-bytecode-version": "only text is read and written",
    "--help-hidden": "--help lists all",
    "--help-list": "--help lists all",
    "--help-list-hidden": "--help lists all",
    "--irdl-file": _PLUGIN,
    "--load-dialect-plugin": _PLUGIN,
    "--load-pass-plugin": _PLUGIN,
    "--log-actions-to": _ACTIONS,
    "--log-mlir-actions-filter": _ACTIONS,
    "--profile-actions-to": "SMELT_PROFILE=trace.json writes a trace of passes",
    "--mlir-debug-counter": "--opt-bisect-limit=N runs the first N passes",
    "--mlir-disable-threading": _THREADS,
    "--mlir-disable-diagnostic-notes": "grep -v ': note: ' leaves them out",
    "--mlir-elide-elementsattrs-if-larger": "--short leaves long literals out",
    "--mlir-elide-resource-strings-if-larger": "--short leaves long literals out",
    "--mlir-pass-pipeline-crash-reproducer": _REPRODUCER,
    "--mlir-generate-reproducer": _REPRODUCER,
    "--mlir-pass-pipeline-local-reproducer": _REPRODUCER,
    "--mlir-pass-statistics-display": "--mlir-pass-statistics prints a list",
    "--mlir-timing-display": "--mlir-timing prints a list",
    "--mlir-print-assume-verified": _ONE,
    "--mlir-pretty-debuginfo": "--mlir-print-debuginfo prints locations in MLIR's form",
    "--mlir-print-elementsattrs-with-hex-if-larger": "numbers are printed as MLIR prints them",
    "--mlir-print-ir-module-scope": _ONE,
    "--mlir-print-local-scope": _ONE,
    "--mlir-print-op-on-diagnostic": "errors name the op, its types and the line",
    "--mlir-print-stacktrace-on-diagnostic": "--debug shows the traceback of an error",
    "--mlir-print-skip-regions": _ONE,
    "--mlir-print-unique-ssa-ids": _ONE,
    "--mlir-print-value-users": "--emit=dot draws who reads what",
    "--mlir-very-unsafe-disable-verifier-on-parsing": "what is read is verified",
    "--mlir-output-format": "--mlir-timing prints a list",
    "--mlir-use-nameloc-as-prefix": "--short names parameters as the user did",
    "--no-implicit-module": "a file is a module, written or not",
    "--print-all-options": "--help lists all",
    "--print-options": "--help lists all",
    "--remark-policy": "--remarks prints all; grep finds some",
    "--remarks-filter": "--remarks prints all; grep finds some",
    "--remark-format": "--remarks prints lines, --remarks-output-file writes YAML",
    "--show-dialects": "--list-ops lists smelt's ops; MLIR's own dialects are those of the bindings",
    "--stats": "--mlir-pass-statistics prints what passes counted",
    "--strip-debuginfo-on-print": "locations are printed with --mlir-print-debuginfo alone",
    "--time-passes": "--mlir-timing prints how long each pass took",
    "--test-legalize-mode": "it belongs to MLIR's own tests",
    "--verify-roundtrip": "tests/ir/roundtrip does that for every op",
    "--verify-region-info": "regions hold nothing but calls here",
    "--view-op-graph": "--emit=dot draws each function, `smelt view` a page",
}
