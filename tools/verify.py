"""``smelt verify``: whether passes keep the values of an IR file."""

from __future__ import annotations

import argparse
import os

from smelt.ir.settings import settings
from smelt.passes.driver import Pipeline
from smelt.passes.extension import is_change
from smelt.runtime import device_named

from . import opt
from .user_code import load_plugins


def verify(options: argparse.Namespace) -> int:
    """Run a pipeline as smelt-opt does, compare values after each pass, and write no IR."""
    pipeline = options.pass_pipeline
    if pipeline is None or is_change(pipeline):
        load_plugins(options.plugins)
        whole = Pipeline.parse(device_named(options.device or settings.device).pipeline)
        pipeline = str(whole.changed(pipeline) if pipeline else whole)
    flags = [f"--load-pass-plugin={name}" for name in options.plugins]
    flags += ["--debug"] * options.debug + ["--custom-calls"] * options.custom_calls
    command = [options.file, "--verify-values", f"--pass-pipeline={pipeline}", "-o", os.devnull, *flags]
    return opt.main(command, options.isolate)
