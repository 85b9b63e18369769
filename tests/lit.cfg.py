"""lit's configuration: `lit -v tests` in the environment where smelt is installed."""

import os
import sys

import lit.formats

config.name = "smelt"  # noqa: F821
config.test_format = lit.formats.ShTest(execute_external=False)  # noqa: F821
config.suffixes = [".mlir"]  # noqa: F821
config.test_source_root = os.path.dirname(__file__)  # noqa: F821
config.test_exec_root = os.path.join(os.path.dirname(__file__), "..", "build", "lit")  # noqa: F821

_python = sys.executable
for _name, _command in (
    (r"\bsmelt-opt\b", f"{_python} -m smelt.tools.opt"),
    (r"\bsmelt (?=run|dump|opt)", f"{_python} -m smelt.tools.cli "),
    (r"\b(filecheck|FileCheck)\b", f"{_python} -m filecheck"),
):
    config.substitutions.append((_name, _command))  # noqa: F821
for _variable in ("SMELT_MLIR_PACKAGE", "PYTHONPATH", "HOME"):
    if _variable in os.environ:
        config.environment[_variable] = os.environ[_variable]  # noqa: F821
