"""Which passes a program goes through: those of its device, or others that the caller or a setting asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smelt.backends.device import Device, registered
from smelt.ir import locks
from smelt.ir.errors import ArgumentTypeError, PipelineError, at_user_line, shown
from smelt.ir.settings import settings

from .device import default_device, device_named

if TYPE_CHECKING:
    from smelt.passes.driver import Pipeline


#: What becomes of modules of kernels without sizes, before they are lowered.
WITHOUT_SIZES = "cse,dce"


def in_force(device: Device, asked: str | None) -> str | None:
    """The pipeline that a program goes through, as text; None: the device's own.

    Args:
        asked: a pipeline, the name of a device for its pipeline, or changes of `device`'s own (see
            `smelt.passes.extension`); None: what the setting ``pipeline`` (SMELT_PIPELINE) says.

    Raises:
        PipelineError: changes that cannot be read, or of passes that the device's pipeline has not.
    """
    if asked is None and not settings.pipeline:
        return None
    text = settings.pipeline if asked is None else asked
    if text in registered:
        return registered[text].pipeline
    if ":" not in text:
        return text
    # Where nobody asks for anything, no pass need be loaded: programs come from disk.
    if not locks.loaded("smelt.passes.extension").is_change(text):
        return text
    try:
        return str(_pipelines().parse(device.pipeline).changed(text))
    except PipelineError as error:
        where = "; the setting pipeline (SMELT_PIPELINE) asks for it" if asked is None else ""
        raise PipelineError(f"{error} (of {device.name}){where}") from None


def _pipelines() -> type[Pipeline]:
    """The class, which is loaded when it is asked for: programs that come from disk need no passes."""
    found: type[Pipeline] = locks.loaded("smelt.passes.driver").Pipeline
    return found


def spelled(pipeline: Any, asked: str) -> str | None:
    """A pipeline that somebody hands in, as text: it may be one, an object, or None.

    Raises:
        ArgumentTypeError: it is nothing of that; `asked`: who wants it.
    """
    if pipeline is None or isinstance(pipeline, str):
        return pipeline
    if not isinstance(pipeline, _pipelines()):
        message = f"{asked}: pipeline must be a text or a smelt.passes.Pipeline, is {shown(pipeline)}"
        raise ArgumentTypeError(at_user_line(message))
    return str(pipeline)


def default_pipeline(device: Device | str | None = None) -> Pipeline:
    """The passes that programs of a device go through, as an object that can be changed and handed to `compile`.

    Args:
        device: a device or its name; default: that of this thread.

    Raises:
        DeviceError: there is no such device here.

    >>> import smelt
    >>> print(smelt.default_pipeline("reference").after("canonicalize", "cse,dce"))
    fixpoint(inline,batch,jvp,linearize,transpose),canonicalize,cse,dce,cse,dce
    """
    return _pipelines().parse((default_device() if device is None else device_named(device)).pipeline)
