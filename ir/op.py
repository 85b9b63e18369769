"""What an op is: the base class whose subclasses are the dialect, and their registry.

An op is one block on one page. Its class holds, in this order: docstring (sentence, formula, MLIR
example), typed fields, `infer`, `verify`, `reference`, derivative, `batch`, `lower`. One instance
of each class is registered; all rules are methods without state.

The rules and who calls them:

==============  ==================================================================================
``infer``       operand avals → result avals. The only shape and dtype rule: tracer, builder and
                verifier call it. Raises ShapeError / DTypeError with the bare rule as message.
``verify``      what ``infer`` cannot say; called by the verifier only.
``reference``   NumPy arrays → NumPy array(s): the meaning of the op.
``host_call``   operand avals, result → a function of NumPy that is the same, without the rule around it.
``jvp``         primals, tangents → result tangents. Inherited when the op is linear.
``transpose``   cotangents → cotangents of the linear operands.
``batch``       operands with a batch axis → results with a batch axis. Usually from the kind.
``lower``       how one element is computed, target-neutral. Its signature belongs to the kind.
==============  ==================================================================================

How many operands a rule takes and under which names its attributes come, each op says for itself:
where the signatures here and in `kinds.py` end in ``*_: Any, **attrs: Any``, an op has its own. mypy
compares what stands before and what comes back; a test over the registry compares the rest with the
fields: an operand is an `Aval`, `Value`, `Scalar` or array, an attribute is annotated like its field.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias, TypeVar, get_origin

import numpy as np

from .attribute_kinds import checked
from .aval import Aval
from .dtypes import DType
from .errors import (
    ArgumentTypeError,
    AttributeValueError,
    DTypeError,
    IRError,
    NotDifferentiableError,
    RuleError,
    ShapeError,
    at_user_line,
    did_you_mean,
    shown,
)
from .foreign_rules import guard_rules
from .parameters import Parameters

if TYPE_CHECKING:
    from .builder import Builder, Value

# Field types: what may stand as an annotation in an op's block.
Operand = Any  #: one tensor
Operands = Any  #: any number of tensors of one type; only the last operand field
Ints = tuple[int, ...]  #: array<i64: ...>
Int = int
Float = float
Bool = bool
Str = str
Element = DType  #: a dtype, as a TypeAttr
Number = Any  #: a Python scalar of the result's dtype: bool, int, float or complex
Array = Any  #: a NumPy array, as dense elements
Types = tuple[Aval, ...]  #: types of tensors, as an array of type attributes
Static = Parameters  #: parameters by name, as a dictionary

# What rules take and give.
Avals: TypeAlias = Sequence[Aval]
Values: TypeAlias = "Sequence[Value]"
Tangents: TypeAlias = "Sequence[Value | None]"  #: None: zero. In `jvp`, one at least is not
Cotangents: TypeAlias = "Sequence[Value | None]"  #: None: zero. In `transpose`, one at least is not
Flags: TypeAlias = Sequence[bool]
Dims: TypeAlias = "Sequence[int | None]"  #: None: no batch axis. In `batch`, one at least has one
Batched: TypeAlias = "tuple[Values, Dims]"

ATTRIBUTE_TYPES = ("Ints", "Int", "Float", "Bool", "Str", "Element", "Number", "Array", "Types", "Static")
_OPERAND_TYPES = ("Operand", "Operands")
FIELD_TYPES = (*_OPERAND_TYPES, *ATTRIBUTE_TYPES)
_CLASS_VARIABLE = re.compile(r"(\w+\.)*ClassVar\b")

#: Parameters of rules that are also given attributes, by name.
_PARAMETERS = {
    "self", "b", "operation", "operand", "operands", "primals", "tangents", "result", "results", "cotangents",
    "linear", "dims", "k", "index", "fetch", "place", "depth", "arguments", "rng", "language", "texts",
}  # fmt: skip


#: Names that text can spell and that a `Builder` has methods of; those of control flow (`smelt.ir.control`) are taken.
_NAME = re.compile("[a-z][a-z0-9_]*")
_TAKEN = ("cond", "while", "scan")


class Attr(NamedTuple):
    """An attribute field: its type's name (one of ATTRIBUTE_TYPES) and default."""

    type: str
    default: Any = None
    required: bool = True


class NotDifferentiable(NamedTuple):
    """Stands in place of a derivative rule, with the reason."""

    why: str


class HostCall(NamedTuple):
    """The same as a `reference` rule, ready to be called where microseconds count.

    Attributes:
        function: takes the operands as NumPy arrays, and `extra` after them; it is called under
            ``np.errstate(all="ignore")`` and gives the bits of the rule.
        spreads: whether operands may be shorter by what NumPy's broadcasting repeats, as long as one is whole.
        repeats: whether it does nothing but such a repetition.
    """

    function: Callable[..., Any] | None
    extra: tuple[Any, ...] = ()
    spreads: bool = False
    repeats: bool = False


#: By kind, the formulas by which passes recognize ops, and the attributes of such ops.
FORMULAS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "elementwise": dict.fromkeys(("x + y", "x - y", "x * y", "x / y", "-x", "exp(x)", "max(x, y)"), ()),
    "reduction": dict.fromkeys(("sum(x)", "max(x)"), ("axes",)),
}
_VARIABLE = re.compile(r"\b[xy]\b")


class Op:
    """Base class of all ops. Subclass with ``name="..."`` to define one and register it."""

    name: ClassVar[str] = ""
    is_own: ClassVar[bool] = False  #: not of another package
    kind: ClassVar[str] = "opaque"
    operand_names: ClassVar[tuple[str, ...]] = ()
    variadic: ClassVar[bool] = False  #: the last operand field takes any number of tensors
    attrs: ClassVar[dict[str, Attr]] = {}
    #: Whether attributes are the same where their Python values are equal: of numbers ``0.0 == -0.0``.
    attrs_compare: ClassVar[bool] = True
    #: Attributes that are extents, or places along axes: they change where shapes do. Programs are shared by them.
    sizes: ClassVar[tuple[str, ...]] = ()
    #: Operands and results are of any types each. In MLIR the op is then a function value without operands, and an
    #: upstream ``func.call_indirect`` applies it; everywhere else it is one op.
    mixed: ClassVar[bool] = False
    num_results: ClassVar[int] = 1  #: -1: any number
    pure: ClassVar[bool] = True
    commutative: ClassVar[bool] = False
    #: Whether the result is the operand's memory under another shape or dtype: then nothing need be computed.
    is_view: ClassVar[bool] = False
    #: "jointly": linear in all `linear_operands` together (add, concatenate, gather's operand);
    #: "each": linear in each of them alone (mul, dot_general); None: nonlinear, has a jvp.
    linearity: ClassVar[str | None] = None
    linear_operands: ClassVar[tuple[int, ...] | None] = None  #: None: all
    #: Set on ops without a derivative: the reason. Their results carry no tangent.
    not_differentiable: ClassVar[NotDifferentiable | None] = None
    #: Operands whose negation negates the result, exactly.
    odd_operands: ClassVar[tuple[int, ...]] = ()
    #: The op of the same operands whose result is true where that of this one is not; empty: there is none.
    complement: ClassVar[str] = ""
    #: Of a reduction: whether equal elements reduce to that element. Which extremum it finds: "max", "min" or none.
    idempotent: ClassVar[bool] = False
    #: Of a reduction: what n elements equal to x reduce to, a "multiple" (x · n) or "power" (xⁿ) of it, or neither.
    repeated: ClassVar[str] = ""
    extremum: ClassVar[str] = ""
    #: What it computes of numbers, one of `FORMULAS`, by which passes recognize forms such as softmax; empty: something
    #: else. An op may be replaced by another one of its formula. Not inherited: a subclass may compute something else.
    formula: ClassVar[str] = ""
    #: Whether the elements are positions from 0 on along the axis `axis`: of the operand, or where there is none, of
    #: the result.
    gives_positions: ClassVar[bool] = False
    #: Whether the op, which repeats or numbers elements, is shorter than its result written out.
    stays_symbolic: ClassVar[bool] = False
    #: What graphs that users look at call it, by MLX's names; the name of its class where nothing else is said.
    primitive: ClassVar[str] = ""
    #: How the short form (`smelt.ir.short`) writes it: between its two operands, or before the one it has.
    symbol: ClassVar[str] = ""
    #: Cost of recomputing one element, in units of an addition: fusion's cost model asks.
    flops: ClassVar[float] = 1.0
    #: The same by the `reference` rule, where that does not go the way that kernels go.
    rule_flops: ClassVar[float | None] = None

    @property
    def tells_line(self) -> bool:
        """Whether an error that the op raises when it runs names the user's line."""
        return self.kind == "library" or self.mixed

    @property
    def rule_cost(self) -> float:
        """Cost of one element by the `reference` rule, in units of an addition; also a move goes over memory."""
        return max(1.0, self.flops if self.rule_flops is None else self.rule_flops)

    def __init_subclass__(cls, name: str | None = None, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        cls.is_own = cls.__module__.split(".")[0] == __name__.split(".")[0]
        if not cls.is_own:
            guard_rules(cls)
        cls._take_fields(f"smelt.{name}" if name else cls.__qualname__)
        cls._take_formula(f"smelt.{name}" if name else cls.__qualname__)
        cls.complete()
        if name is not None:
            if not _NAME.fullmatch(name) or name in _TAKEN:
                raise AttributeValueError(
                    f"an op is called by lower-case letters, digits and '_', and not {', '.join(_TAKEN)}; not {name!r}"
                )
            cls.name = name
            if "primitive" not in vars(cls):
                cls.primitive = cls.__name__.removesuffix("Op")
            known = type(_registry.get(name))
            # A module whose import was interrupted is imported again.
            again = (known.__module__, known.__qualname__) == (cls.__module__, cls.__qualname__)
            if name in _registry and not again:
                raise AttributeValueError(
                    f"op {name!r} of {cls.__module__} is already defined, by {known.__module__}; choose another name: "
                    "ops of other packages best begin with the name of the package"
                )
            _registry[name] = cls()

    @classmethod
    def _take_formula(cls, owner: str) -> None:
        """The formula that the class states itself.

        Raises:
            AttributeValueError: none that passes know for ops of its kind, or one of other operands or attributes.
        """
        if "formula" not in vars(cls):
            cls.formula = ""
            return
        known = FORMULAS.get(cls.kind, {})
        if cls.formula not in known:
            rule = f"of an op of the kind {cls.kind!r} passes know {', '.join(map(repr, known)) or 'none'}"
            raise AttributeValueError(at_user_line(f"{owner}: no such formula: {cls.formula!r}; {rule}"))
        operands, attributes = _VARIABLE.findall(cls.formula), known[cls.formula]
        if cls.variadic or len(cls.operand_names) != len(operands):
            rule = f"takes {' and '.join(operands)} alone"
        elif set(cls.attrs) != set(attributes):
            rule = f"takes {f'the attribute {attributes[0]} alone' if attributes else 'no attributes'}"
        else:
            return
        given = ", ".join((*cls.operand_names, *cls.attrs)) or "nothing"
        raise AttributeValueError(at_user_line(f"{owner}: the formula {cls.formula!r} {rule}; the op has {given}"))

    @classmethod
    def _take_fields(cls, owner: str) -> None:
        """Operands and attributes from the annotations of the class, beside those that it inherits.

        Raises:
            AttributeValueError: an annotation that is no field's, a name that a field cannot have.
        """
        operands, attrs = list(cls.operand_names), dict(cls.attrs)
        for field, kind in _fields(cls, owner):
            where, known = f"{owner}: the field {field}", field in attrs
            if field in operands or (known and kind in _OPERAND_TYPES):
                raise AttributeValueError(at_user_line(f"{where} is one of its base class already"))
            if kind in _OPERAND_TYPES:
                if field in cls.__dict__:
                    raise AttributeValueError(at_user_line(f"{where} is an operand, which has no default"))
                if cls.variadic:
                    rule = f"comes after {operands[-1]}, which takes any number: Operands stand last"
                    raise AttributeValueError(at_user_line(f"{where} {rule}"))
                operands.append(field)
                cls.variadic = kind == "Operands"
            else:
                if field in _PARAMETERS:
                    rule = "is called like a parameter of rules, which take attributes by name; choose another name"
                    raise AttributeValueError(at_user_line(f"{where} {rule}"))
                attrs[field] = Attr(kind, cls.__dict__.get(field), field not in cls.__dict__)
            if not known and any(hasattr(base, field) for base in cls.__bases__):
                rule = f"is called like {cls.__bases__[0].__name__}.{field}; choose another name"
                raise AttributeValueError(at_user_line(f"{where} {rule}"))
        cls.operand_names, cls.attrs = tuple(operands), attrs
        cls.attrs_compare = all(a.type in ("Ints", "Int", "Bool", "Str", "Element") for a in attrs.values())

    @classmethod
    def complete(cls) -> None:
        """What a kind makes of an op's fields, before the op is registered."""

    # Rules. The kinds in kinds.py give most of them a default.

    def infer(self, *operands: Any, **attrs: Any) -> Aval | tuple[Aval, ...]:
        raise RuleError(f"smelt.{self.name} does not state the rule infer")

    def verify(self, operation: Any, *_: Any, **attrs: Any) -> None:
        """Raise when the MLIR operation is wrong in a way that `infer` cannot see."""

    def reference(self, *operands: Any, **attrs: Any) -> np.ndarray | tuple[np.ndarray, ...]:
        raise RuleError(f"smelt.{self.name} does not state the rule reference")

    def host_call(self, operands: Avals, result: Aval, *_: Any, **attrs: Any) -> HostCall | None:
        """`reference` for operands of these types, where there is a shorter way to it; None: there is not."""
        return None

    def check(self, *operands: Any, **attrs: Any) -> None:
        """Raise when an index lies out of range that the op would bring into it: asked for by SMELT_CHECK=1."""

    def jvp(
        self, b: Builder, primals: Values, tangents: Tangents, results: Values, *_: Any, **attrs: Any
    ) -> Tangents:
        """Tangents of the results; a tangent of None is zero. Linear ops inherit this one."""
        if self.not_differentiable is not None:
            return [None] * len(results)
        which = range(len(primals)) if self.linear_operands is None else self.linear_operands
        if self.linearity == "jointly":
            if all(tangents[i] is None for i in which):
                return [None] * len(results)
            operands = list(primals)
            for i in which:
                t = tangents[i]
                operands[i] = b.zeros_like(primals[i]) if t is None else t
            return b.emit(self, operands, attrs)
        if self.linearity == "each":
            total: Value | None = None
            for i in which:
                if (t := tangents[i]) is not None:
                    operands = [*primals[:i], t, *primals[i + 1 :]]
                    (term,) = b.emit(self, operands, attrs)
                    total = term if total is None else total + term
            return [total]
        raise NotDifferentiableError(f"smelt.{self.name} has no derivative rule")

    def transpose(
        self, b: Builder, cotangents: Cotangents, operands: Values, linear: Flags, *_: Any, **attrs: Any
    ) -> Cotangents:
        """Cotangents of the operands marked in `linear` (of which only ``.aval`` may be used).

        Called with at least one cotangent that is not None; returns one entry an operand.
        """
        raise NotDifferentiableError(f"smelt.{self.name} has no transpose rule")

    def batch(self, b: Builder, operands: Values, dims: Dims, *_: Any, **attrs: Any) -> Batched:
        """Apply the op over a batch axis: ``dims[i]`` is operand i's, or None where unbatched."""
        raise NotImplementedError(f"smelt.{self.name} has no batching rule")

    # What generic code asks of an op.

    def symbol_for(self, operands: Avals, *_: Any, **attrs: Any) -> str:
        """`symbol`, for operands of these types; empty where it would not say all."""
        return self.symbol

    def short(self, texts: Sequence[str], operands: Avals, *_: Any, **attrs: Any) -> str | None:
        """How the short form writes the op on operands that are written so; None: as a call by its name."""
        return None

    @property
    def differentiable(self) -> bool:
        return self.not_differentiable is None

    def has_batch(self, **attrs: Any) -> bool:
        """Whether there is a batching rule; else the op is batched by a scan that runs it on one element at a time."""
        return self.has_rule("batch")

    def has_kernel(self, language: str, **attrs: Any) -> bool:
        """Whether it brings a kernel of its own in this language (``msl``)."""
        return False

    def has_rule(self, rule: str) -> bool:
        """Whether `rule` is more than the base class's refusal."""
        if rule in ("jvp", "transpose") and self.linearity is not None:
            return rule == "jvp" or getattr(type(self), rule) is not getattr(Op, rule)
        return getattr(type(self), rule, None) is not getattr(Op, rule, None)

    def infer_checked(self, operands: Avals, attrs: dict[str, Any]) -> tuple[Aval, ...]:
        """`infer` with its error made presentable: op, rule, operands, the user's line.

        What an op of another package is given is checked, too: functions of smelt's own ops check theirs.
        """
        if not self.is_own:
            self.check_given(operands, attrs)
        try:
            result = self.infer(*operands, **attrs)
        except (ShapeError, DTypeError, AttributeValueError) as error:
            raise type(error)(at_user_line(self.describe_error(str(error), operands, attrs))) from None
        return result if isinstance(result, tuple) else (result,)

    def check_given(self, operands: Sequence[Any], attrs: dict[str, Any]) -> None:
        """Raise ArgumentTypeError for another number of operands, AttributeValueError for attributes that are none."""
        names = self.operand_names
        if len(operands) < len(names) - 1 if self.variadic else len(operands) != len(names):
            listed = ", ".join(names) + "..." * self.variadic
            message = f"smelt.{self.name} takes {len(names)} operands ({listed}), got {len(operands)}"
            raise ArgumentTypeError(at_user_line(message))
        checked(self, attrs)

    def describe_error(self, rule: str, operands: Avals, attrs: dict[str, Any]) -> str:
        names = list(self.operand_names)
        if self.variadic:
            last = names.pop()
            names += [f"{last}[{i}]" for i in range(len(operands) - len(names))]
        listed = [f"{name} {aval}" for name, aval in zip(names, operands)]
        listed += [f"{k}={v}" for k, v in attrs.items()]
        return f"smelt.{self.name}: {rule}; {', '.join(listed)}"

    def __repr__(self) -> str:
        return f"<op smelt.{self.name}>"

    @property
    def example(self) -> str | None:
        """The MLIR example in the docstring: the first line that contains ``"smelt.``."""
        found = re.search(r'^.*"smelt\..*$', type(self).__doc__ or "", re.MULTILINE)
        return found.group().strip().strip("`") if found else None


def _fields(cls: type, owner: str) -> Iterator[tuple[str, str]]:
    """Names and field types of the annotations of a class; those of class variables are none.

    Raises:
        AttributeValueError: an annotation that is no text, or that names no field type.
    """
    as_text = 'read as text: begin the module with "from __future__ import annotations"'
    try:
        annotations = inspect.get_annotations(cls)
    except NameError as error:  # Python 3.14 evaluates annotations when they are asked for
        raise AttributeValueError(at_user_line(f"{owner}: the annotations of fields are {as_text}")) from error
    for field, annotation in annotations.items():
        where = f"{owner}: the annotation of {field}"
        if ClassVar in (annotation, get_origin(annotation)):
            continue
        if not isinstance(annotation, str):
            raise AttributeValueError(at_user_line(f"{where} is {as_text}"))
        text = annotation.strip("\"'")
        if _CLASS_VARIABLE.match(text):
            continue
        if text not in FIELD_TYPES:
            one_of = f"{', '.join(FIELD_TYPES[:-1])} or {FIELD_TYPES[-1]}, or ClassVar[...] for what is no field"
            raise AttributeValueError(at_user_line(f"{where} is {shown(text)}; write {one_of}"))
        yield field, text


_registry: dict[str, Op] = {}

#: All ops by name, in the order of definition. Import `smelt.ir.ops` to fill it.
registry = MappingProxyType(_registry)


def get(name: str) -> Op:
    """The op called `name`, with or without the ``smelt.`` prefix."""
    try:
        return _registry[name.removeprefix("smelt.")]
    except KeyError:
        hint = did_you_mean(name.removeprefix("smelt."), _registry, "smelt.")
        raise AttributeValueError(f"the smelt dialect has no op {name!r}{hint}") from None


K = TypeVar("K", bound=Op)


def of_kind(op: Op, kind: type[K]) -> K:
    """An op as one of a kind, whose rules it then has.

    Raises:
        IRError: the op is of another kind.
    """
    if not isinstance(op, kind):
        raise IRError(at_user_line(f"smelt.{op.name} is no {kind.__name__}"))
    return op


# What the rules of many ops share.

T = TypeVar("T")


def shifted(axes: Ints, inserted: int) -> Ints:
    """Axes after a new axis was inserted at `inserted`."""
    return tuple(a + (a >= inserted) for a in axes)


def only(given: Sequence[T | None]) -> T:
    """The only one that is not None, of tangents, cotangents or batch axes, for ops with a single operand.

    Raises:
        IRError: none or several are not None. Passes call a rule only if at least one is not.
    """
    found = [x for x in given if x is not None]
    if len(found) != 1:
        raise IRError(f"a rule for one tangent, cotangent or batch axis is called with {len(found)}")
    return found[0]


def require(condition: object, message: str, error: type[Exception] = ShapeError) -> None:
    """Raise `error(message)` unless `condition` holds."""
    if not condition:
        raise error(message)


def require_dtype(aval: Aval, allowed: Sequence[DType], what: str = "operand") -> None:
    if aval.dtype not in allowed:
        listed = ", ".join(d.name for d in allowed)
        raise DTypeError(f"{what} is {aval.dtype.name}, must be one of {listed}")


def require_axes(axes: Sequence[int], ndim: int, what: str = "axes") -> None:
    """Axes in the IR are sorted nowhere, but are non-negative, in range and distinct."""
    for axis in axes:
        if not 0 <= axis < ndim:
            raise AttributeValueError(f"{what} {tuple(axes)} out of range for {ndim} dimensions")
    if len(set(axes)) != len(axes):
        raise AttributeValueError(f"{what} {tuple(axes)} repeat an axis")


def require_positions(x: Aval, axis: int) -> None:
    """Positions along an axis, which ops give as uint32, fit into that."""
    if x.shape[axis] > 2**32:
        raise ShapeError(f"positions along axis {axis} of {x} do not fit uint32")
