"""How `smelt-opt` prints a module, and what it prints about the passes of a pipeline."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from typing import Any

from smelt.ir.errors import IRError

from .usage import require_one, require_with, write

#: Flags of mlir-opt about MLIR's form, by the keyword of the bindings' printer.
_FORMS = {
    "enable_debug_info": "mlir_print_debuginfo",
    "pretty_debug_info": "mlir_pretty_debuginfo",
    "print_generic_op_form": "mlir_print_op_generic",
    "use_local_scope": "mlir_print_local_scope",
    "use_name_loc_as_prefix": "mlir_use_nameloc_as_prefix",
    "assume_verified": "mlir_print_assume_verified",
    "skip_regions": "mlir_print_skip_regions",
    "large_elements_limit": "mlir_elide_elementsattrs_if_larger",
    "large_resource_limit": "mlir_elide_resource_strings_if_larger",
}


def shown(module: Any, options: argparse.Namespace) -> str:
    """A module as text, in the form that is asked for."""
    from smelt.ir import short, text

    if options.short:
        return short.to_short_text(module, options.mlir_print_debuginfo)
    form = {keyword: getattr(options, flag) for keyword, flag in _FORMS.items()}
    form["enable_debug_info"] = form["enable_debug_info"] or form["pretty_debug_info"]
    return text.printed(module, **{k: v for k, v in form.items() if v is not None})


def check_printing(options: argparse.Namespace) -> None:
    """Raise UsageError where flags about printing contradict each other, or one would say nothing."""
    prints = bool(
        options.mlir_print_ir_before or options.mlir_print_ir_after or options.mlir_print_ir_before_all
        or options.mlir_print_ir_after_all or options.mlir_print_ir_after_change or options.mlir_print_ir_after_failure
    )  # fmt: skip
    shows = prints or (options.emit == "mlir" and not options.execute)
    form = "it is a form of the dialect's IR, --emit=mlir and what flags print between passes"
    require_with("--short", options.short, shows, form)
    for name in _FORMS.values():
        flag, given = "--" + name.replace("_", "-"), getattr(options, name) not in (None, False)
        require_with(flag, given, shows, form)
        if name != "mlir_print_debuginfo":  # the short form has the user's lines
            require_one({"--short": options.short, flag: given})
    which = "give one that prints, too, such as --mlir-print-ir-after-all"
    require_with("--mlir-print-ir-tree-dir", bool(options.mlir_print_ir_tree_dir), prints, which)


class PrintedIR:
    """Where the IR between passes goes: to stderr, or to files, called as mlir-opt calls them."""

    def __init__(self, options: argparse.Namespace):
        self._options, self._number = options, 0

    def show(self, when: str, module: Any, name: str) -> None:
        """Print a module, or write it to ``DIR/builtin_module_no-symbol-name/3_fuse.mlir``."""
        content = f"// -----// IR Dump {when} //----- //\n{shown(module, self._options)}"
        if not self._options.mlir_print_ir_tree_dir:
            sys.stderr.write(content)
            return
        folder = os.path.join(self._options.mlir_print_ir_tree_dir, "builtin_module_no-symbol-name")
        name = re.sub(r"[^\w.()-]", "_", name)
        path = os.path.join(folder, f"{self._number}_{name}.mlir")
        try:
            os.makedirs(folder, exist_ok=True)
            write(path, content)
        except OSError as error:
            raise IRError(f"{path}: error: cannot be written: {error.strerror}") from None
        self._number += 1


def timing_report(records: Sequence[Any]) -> str:
    """Seconds a pass, all its executions together."""
    total = sum(r.seconds for r in records) or 1e-12
    seconds: dict[str, float] = {}
    for r in records:
        seconds[r.name] = seconds.get(r.name, 0.0) + r.seconds
    lines = ["===- Pass execution timing -===", f"  total {total:.6f} s", "   seconds       %  pass"]
    lines += [f"  {s:.6f}  {100 * s / total:5.1f}%  {name}" for name, s in seconds.items()]
    return "\n".join(lines) + "\n"


def statistics_report(records: Sequence[Any]) -> str:
    """What each pass counted, all its executions together."""
    lines = ["===- Pass statistics -==="]
    counts: dict[str, Any] = {}
    for r in records:
        counts.setdefault(r.name, type(r.statistics)()).update(r.statistics)
    for name, counted in counts.items():
        lines.append(name)
        lines += [f"  {n:6}  {what}" for what, n in sorted(counted.items()) if n]
    return "\n".join(lines) + "\n"
