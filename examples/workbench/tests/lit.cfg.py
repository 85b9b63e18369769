"""lit's configuration: `lit -v tests`, where smelt and this package are installed."""

import os
import sys

import lit.formats

config.name = "workbench"  # noqa: F821
config.test_format = lit.formats.ShTest(execute_external=False)  # noqa: F821
config.suffixes = [".mlir"]  # noqa: F821
config.test_source_root = os.path.dirname(__file__)  # noqa: F821

for _name, _command in (("smelt-opt", "-m smelt.tools.opt"), ("filecheck", "-m filecheck")):
    config.substitutions.append((rf"\b{_name}\b", f"{sys.executable} {_command}"))  # noqa: F821
for _variable in ("PYTHONPATH", "HOME"):
    if _variable in os.environ:
        config.environment[_variable] = os.environ[_variable]  # noqa: F821
