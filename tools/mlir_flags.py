"""Flags of mlir-opt that smelt-opt has not, and what to use in their place."""

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
    "--emit-bytecode": "only text is read and written",
    "--irdl-file": _PLUGIN,
    "--load-dialect-plugin": _PLUGIN,
    "--load-pass-plugin": _PLUGIN,
    "--log-actions-to": _ACTIONS,
    "--log-mlir-actions-filter": _ACTIONS,
    "--profile-actions-to": "SMELT_PROFILE=trace.json writes a trace of passes",
    "--mlir-debug-counter": "--opt-bisect-limit=N runs the first N passes",
    "--mlir-disable-threading": _THREADS,
    "--mlir-elide-elementsattrs-if-larger": "--short leaves long literals out",
    "--mlir-elide-resource-strings-if-larger": "--short leaves long literals out",
    "--mlir-pass-pipeline-crash-reproducer": _REPRODUCER,
    "--mlir-generate-reproducer": _REPRODUCER,
    "--mlir-pass-pipeline-local-reproducer": _REPRODUCER,
    "--mlir-pass-statistics-display": "--mlir-pass-statistics prints a list",
    "--mlir-timing-display": "--mlir-timing prints a list",
    "--mlir-print-assume-verified": _ONE,
    "--mlir-print-ir-module-scope": _ONE,
    "--mlir-print-local-scope": _ONE,
    "--mlir-print-op-generic": _ONE,
    "--mlir-print-op-on-diagnostic": "errors name the op, its types and the line",
    "--mlir-print-stacktrace-on-diagnostic": "--debug shows the traceback of an error",
    "--mlir-print-skip-regions": _ONE,
    "--mlir-print-unique-ssa-ids": _ONE,
    "--mlir-print-value-users": "--emit=dot draws who reads what",
    "--mlir-use-nameloc-as-prefix": "--short names parameters as the user did",
    "--no-implicit-module": "a file is a module, written or not",
    "--output-split-marker": "parts are divided by lines '// -----'",
    "--remarks-filter": "--remarks prints all; grep finds some",
    "--remark-format": "--remarks prints lines, --remarks-output-file writes YAML",
    "--show-dialects": "--list-ops lists smelt's ops; MLIR's own dialects are those of the bindings",
    "--strip-debuginfo-on-print": "locations are printed with --mlir-print-debuginfo alone",
    "--test-legalize-mode": "it belongs to MLIR's own tests",
    "--verify-roundtrip": "tests/ir/roundtrip does that for every op",
    "--verify-region-info": "regions hold nothing but calls here",
    "--view-op-graph": "--emit=dot draws each function, `smelt view` a page",
}
