"""What a device is, and the devices that backends have registered.

Each folder beside this file registers its devices when it is imported, and packages elsewhere do by an entry point of
the group ``smelt.devices``. A device names its parts by `Lazy`, so registering loads no compiler; a part is loaded
when it is asked for.
"""

from __future__ import annotations

import enum
import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from smelt.ir import locks
from smelt.ir.entry_points import load, offered
from smelt.ir.errors import ArgumentTypeError, DeviceError, SmeltError, at_user_line, did_you_mean, shown

if TYPE_CHECKING:
    from .buffer import Memory
    from .executable import Executable, Portable
    from .strided import StridedKernels

T = TypeVar("T")


@dataclass(frozen=True)
class Target:
    """What programs of a device are made for; 0 stands for no limit.

    Attributes:
        name: of the machine.
        max_buffers: arrays that one kernel binds, at most.
        max_threads: threads of a threadgroup, at most.
        threadgroup_bytes: memory that the threads of a group share, at most.
        measured_bytes: bytes of an array whose copy tells the bandwidth; 0: a bandwidth means nothing here.
    """

    name: str
    max_buffers: int = 0
    max_threads: int = 0
    threadgroup_bytes: int = 0
    measured_bytes: int = 1 << 24


@dataclass(frozen=True)
class Lazy:
    """An object of a module, ``"module:name"``, loaded when it is asked for."""

    reference: str

    def load(self) -> Any:
        module, _, name = self.reference.partition(":")
        return getattr(locks.loaded(module), name)


class _Part(Generic[T]):
    """An attribute of a device that may have been given as `Lazy`. From its first use on it is the object itself."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, device: Device | None, owner: type | None = None) -> T:
        if device is None:
            raise AttributeError(self._name)
        given = device if device.is_complete else registered_device(device.name)
        found = given._given[self._name]
        if isinstance(found, Lazy):
            try:
                found = found.load()
            except SmeltError:
                raise
            except Exception as error:
                what = f"smelt: the {self._name} of the device {device.name!r}, {found.reference}, does not load"
                raise DeviceError(at_user_line(f"{what}: {type(error).__name__}: {error}")) from error
        device.__dict__[self._name] = found
        return found


#: What fields that are no parts of a program must be.
_TYPES: dict[str, type] = {
    "kind": str, "rank": int, "interprets": bool, "tiers": bool, "compiling": tuple, "modules": tuple,
    "stages": tuple, "languages": Mapping, "missing": str,
}  # fmt: skip


class DeviceType(enum.Enum):
    """MLX's names of kinds of devices. Equal to the devices of the kind, too.

    >>> import smelt
    >>> smelt.default_device().type == smelt.DeviceType.cpu, smelt.Device(smelt.DeviceType.cpu)
    (True, Device(cpu, 0))
    """

    cpu = "cpu"
    gpu = "gpu"

    def __eq__(self, other: object) -> bool:
        return other.kind == self.value if isinstance(other, Device) else self is other

    __hash__ = enum.Enum.__hash__

    def __repr__(self) -> str:
        return f"DeviceType.{self.name}"


class Device:
    """A place where programs run. ``Device(name)`` stands for the one that is registered under that name; so does, as
    MLX writes it, ``Device(device_type, 0)`` for the one of a kind.

    Devices of one name are equal. What they differ in stands in the attributes; nothing asks for the name.

    Attributes:
        name: ``cpu``, ``reference``, ``metal:sim``, ``metal``, or what another package has registered.
        pipeline: the passes that its programs go through, as text.
        executable: makes a program of a module that has been through the pipeline, and the device.
        memory: where its arrays lie.
        target: what its kernels are made for: its limits.
        kind: ``cpu`` or ``gpu``: which of MLX's names it goes by; `type` is that as a `DeviceType`.
        rank: the device of the highest rank that is here is the default.
        interprets: whether an op by itself runs as it would in a program: then what needs no compile gets none.
        tiers: whether a graph may run op by op on the host until its program pays.
        compiling: seconds that a compile takes, roughly: so much, and so much for each op.
        modules: the packages that its compiler consists of, each with all that lies in it.
        stages: what its programs can be shown as, beside the IR after each pass.
        lower: makes a program to look at and to save of such a module, without the device, and the name of a target
            (None: its own).
        languages: what launches a kernel that a user has written, by its language.
        strided: how kernels for all sizes run on arrays in its own memory; None where there are none.
        portable: makes bytes of its programs and programs of bytes, for other processes; None where that cannot be.
        warm: makes ready what its first program waits for, in another thread, where the interpreter's lock is hardly
            held for it; None: there is nothing.
        missing: why it is not here; empty where it is.
        details: what is known of the machine, by name.

    Raises:
        ArgumentTypeError: a name, or another field, of a wrong type. DeviceError: from an attribute, where no such
            device is registered.

    >>> import smelt
    >>> smelt.cpu
    Device(cpu, 0)
    >>> smelt.Device("cpu") == smelt.cpu, smelt.Device("cpu").pipeline == smelt.cpu.pipeline
    (True, True)
    """

    name: str
    pipeline = _Part[str]()
    executable = _Part["Callable[[Any, Device], Executable]"]()
    memory = _Part["Memory"]()
    target = _Part[Target]()
    kind = _Part[str]()
    rank = _Part[int]()
    interprets = _Part[bool]()
    tiers = _Part[bool]()
    compiling = _Part[tuple[float, float]]()
    modules = _Part[tuple[str, ...]]()
    stages = _Part[tuple[str, ...]]()
    lower = _Part["Callable[[Any, str | None], Any] | None"]()
    languages = _Part["Mapping[str, Any]"]()
    strided = _Part["StridedKernels | None"]()
    portable = _Part["Portable | None"]()
    warm = _Part["Callable[[], None] | None"]()
    missing = _Part[str]()
    details = _Part["Callable[[], dict[str, str | int]]"]()

    def __init__(
        self,
        name: str | DeviceType | Device,
        pipeline: str | Lazy | int | None = None,
        executable: Callable[[Any, Device], Executable] | Lazy | None = None,
        memory: Memory | Lazy | None = None,
        target: Target | Lazy | None = None,
        *,
        kind: str = "cpu",
        rank: int = 0,
        interprets: bool = False,
        tiers: bool = False,
        compiling: tuple[float, float] = (0.025, 0.001),
        modules: tuple[str, ...] = (),
        stages: tuple[str, ...] = (),
        lower: Callable[[Any, str | None], Any] | Lazy | None = None,
        languages: Mapping[str, Lazy | Callable[..., Any]] | None = None,
        strided: StridedKernels | Lazy | None = None,
        portable: Portable | Lazy | None = None,
        warm: Callable[[], None] | Lazy | None = None,
        missing: str = "",
        details: Callable[[], dict[str, str | int]] | Lazy = dict,
    ):
        if isinstance(name, (DeviceType, Device)):
            if pipeline not in (None, 0):
                raise DeviceError(at_user_line(f"smelt.Device: there is one {name!r}, number 0, not {shown(pipeline)}"))
            name, pipeline = (of_kind(name.value) if isinstance(name, DeviceType) else name).name, None
        if not isinstance(name, str):
            raise ArgumentTypeError(at_user_line(f"smelt.Device: name must be a text, is {shown(name)}"))
        languages = {} if languages is None else languages
        self.__dict__["name"] = name
        self.__dict__["_given"] = given = {
            "pipeline": pipeline, "executable": executable, "memory": memory, "target": target, "kind": kind,
            "rank": rank, "interprets": interprets, "tiers": tiers, "compiling": compiling, "modules": modules,
            "stages": stages, "lower": lower, "languages": languages, "strided": strided, "portable": portable,
            "warm": warm, "missing": missing, "details": details,
        }  # fmt: skip
        for field, types in _TYPES.items():
            if not isinstance(given[field], types):
                what = f"smelt.Device: {field} must be a {types.__name__}, is {shown(given[field])}"
                raise ArgumentTypeError(at_user_line(what))

    def __setattr__(self, name: str, value: Any) -> None:
        raise ArgumentTypeError(at_user_line(f"smelt.Device: {name} of {self!r} cannot be set"))

    def __eq__(self, other: object) -> bool:
        return self.name == other.name if isinstance(other, Device) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"Device({self.name}, 0)"

    def __reduce__(self) -> Any:
        return Device, (self.name,)

    @property
    def type(self) -> DeviceType:
        """Which of MLX's names it goes by."""
        return DeviceType(self.kind)

    @property
    def is_host(self) -> bool:
        """Whether its arrays lie in the host's memory."""
        from .buffer import HostMemory

        return isinstance(self.memory, HostMemory)

    @property
    def is_complete(self) -> bool:
        """Whether it has what programs need, and not a name alone."""
        return None not in [self._given[name] for name in ("pipeline", "executable", "memory", "target")]

    if TYPE_CHECKING:
        _given: dict[str, Any]


#: All devices that backends have registered, and those of them that this machine has; by name.
registered: dict[str, Device] = {}
devices: dict[str, Device] = {}
_best: Device | None = None


def register(device: Device) -> Device:
    """Make a device known under its name; the device.

    Raises:
        ArgumentTypeError: no device, or one without pipeline, executable, memory and target.
        DeviceError: the name is taken, or means something else.
    """
    if not isinstance(device, Device) or not device.is_complete:
        what = "needs pipeline, executable, memory and target" if isinstance(device, Device) else "is no device"
        raise ArgumentTypeError(at_user_line(f"smelt: cannot register {shown(device)}: it {what}"))
    name = device.name
    if name in registered or name == AUTO or name != name.strip().lower() or not name:
        reason = "there is one" if name in registered else "a device has a name of its own, in small letters"
        raise DeviceError(at_user_line(f"smelt: cannot register a device {shown(name)}: {reason}"))
    registered[name] = device
    if not device.missing:
        devices[name] = device
    _choose()
    return device


def unregister(device: Device) -> None:
    """Forget a device. Arrays that live there stay readable."""
    registered.pop(device.name, None)
    devices.pop(device.name, None)
    _choose()


def _choose() -> None:
    global _best
    _best = max(devices.values(), key=lambda device: device.rank, default=None)


#: Stands for the best device that is here.
AUTO = "auto"


def best() -> Device:
    """The device of the highest rank that is here."""
    assert _best is not None, "cpu registers itself"
    return _best


def registered_device(name: str) -> Device:
    """The device registered under `name`, here or not; packages that have one by that name are loaded for it.

    Raises:
        DeviceError: there is none, or it does not load.
    """
    found = registered.get(name)
    if found is None:
        load_entry_points(name)
        found = registered.get(name)
    if found is None:
        raise DeviceError(at_user_line(unknown(name)))
    return found


#: What PyTorch calls devices, or kinds of them.
_ELSEWHERE = {"mps": "metal"}


def unknown(name: Any) -> str:
    """What to say where there is no device called `name`."""
    hint = ""
    if isinstance(name, str) and name in registered and registered[name].missing:
        hint = f"; {registered[name].missing}"
    elif isinstance(name, str):
        kind = _ELSEWHERE.get(name.partition(":")[0], name.partition(":")[0])  # of "cuda:0"
        of_kind = [f"; {d.name}: {d.missing}" for d in registered.values() if kind in (d.kind, d.name) and d.missing]
        hint = "".join(of_kind) or did_you_mean(name, devices)
    return f"smelt: there is no device {shown(name)}{hint} (devices: {', '.join(devices)})"


def offering(stage: str) -> Device | None:
    """The device, here or not, whose programs can be shown at `stage`; that of the highest rank."""
    found = [device for device in registered.values() if stage in device.stages and device.lower is not None]
    return max(found, key=lambda device: device.rank, default=None)


def stages() -> list[str]:
    """All stages for which `offering` knows a device, once each."""
    return list(dict.fromkeys(stage for device in registered.values() for stage in device.stages))


def launcher(language: str, device: Device) -> Any:
    """What launches kernels in a language, on `device` if it can and else on another that is here; None if none can."""
    for candidate in (device, *sorted(devices.values(), key=lambda d: -d.rank)):
        found = candidate.languages.get(language)
        if found is not None:
            return found.load() if isinstance(found, Lazy) else found
    return None


def of_kind(kind: str) -> Device:
    """The device of a kind: the best one that is here, else the best that there could be."""
    found = [device for device in registered.values() if device.kind == kind]
    return max(found, key=lambda device: (not device.missing, device.rank))


def load_entry_points(name: str) -> None:
    """Load what installed packages offer under `name` in the group ``smelt.devices``.

    Raises:
        DeviceError: it does not load, or registers no device of that name.
    """
    for entry in offered("smelt.devices"):
        if entry.name != name:
            continue
        try:
            load(entry, "the device", DeviceError)
        except DeviceError as error:
            if isinstance(error.__cause__, SmeltError):  # the package says by itself what is missing
                raise error.__cause__ from None
            raise DeviceError(at_user_line(f"smelt: {error}")) from error.__cause__
        if name not in registered:
            message = f"smelt: {entry.value}, the entry point of the device {name!r}, registers no such device"
            raise DeviceError(at_user_line(message))


def import_backends() -> None:
    """Import the folders beside this file, whose devices make themselves known."""
    room = importlib.import_module(__package__)
    for found in pkgutil.iter_modules(room.__path__, f"{room.__name__}."):
        if found.ispkg:
            importlib.import_module(found.name)
