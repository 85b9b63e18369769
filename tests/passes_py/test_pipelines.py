"""Pipelines: how they are changed, what their options may be, what passes that only look may do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import pytest

import smelt
from smelt.ir import text
from smelt.ir.builder import Builder, functions, read_function
from smelt.ir.errors import ArgumentTypeError, IRError, PipelineError
from smelt.ir.settings import override
from smelt.passes import Pass, Pipeline, analysis, register_pass, registry
from smelt.passes.analysis import analysis_of, invalidate, register_analysis
from smelt.passes.pipeline_text import UpstreamPass
from smelt.passes.registry import _passes
from smelt.passes.rewrite import rebuild
from smelt.tools import opt

SOURCE = """
func.func @main(%x: tensor<4x2xf32>) -> (tensor<8xf32>, tensor<4x2xf32>) {
  %0 = "smelt.exp"(%x) : (tensor<4x2xf32>) -> tensor<4x2xf32>
  %1 = "smelt.mul"(%0, %0) : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  %2 = "smelt.add"(%1, %0) : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  %3 = "smelt.reshape"(%2) {shape = array<i64: 8>} : (tensor<4x2xf32>) -> tensor<8xf32>
  return %3, %0 : tensor<8xf32>, tensor<4x2xf32>
}
"""


@pytest.fixture(autouse=True)
def known() -> Iterator[None]:
    passes, analyses = dict(registry()), dict(analysis._registered)
    yield
    _passes.clear()
    _passes.update(passes)
    analysis._registered.clear()
    analysis._registered.update(analyses)


def made() -> list[str]:
    """A pass that notes its runs; those."""
    runs: list[str] = []

    @register_pass("noting")
    @dataclass(frozen=True)
    class Noting(Pass):
        said: str = "ran"

        def run(self, module: Any, statistics: Counter) -> None:
            runs.append(self.said)

    return runs


BASE = "fixpoint(inline,jvp),canonicalize,cse,canonicalize,dce"
CHANGES = {
    "before:cse=dce": "fixpoint(inline,jvp),canonicalize,dce,cse,canonicalize,dce",
    "after:cse=dce,cse": "fixpoint(inline,jvp),canonicalize,cse,dce,cse,canonicalize,dce",
    "before:jvp=fixpoint(cse)": "fixpoint(inline,fixpoint(cse),jvp),canonicalize,cse,canonicalize,dce",
    "after:canonicalize#2=cse": "fixpoint(inline,jvp),canonicalize,cse,canonicalize,cse,dce",
    "replace:canonicalize=dce": "fixpoint(inline,jvp),dce,cse,dce,dce",
    "without:canonicalize": "fixpoint(inline,jvp),cse,dce",
    " without:canonicalize#1 ; before:all=cse; after:all=symbol-dce": (
        "cse,fixpoint(inline,jvp),cse,canonicalize,dce,symbol-dce"
    ),
    "replace:cse=canonicalize{without=mul-one,div-one}": BASE.replace("cse", "canonicalize{without=mul-one,div-one}"),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_changes_of_a_pipeline(change: str) -> None:
    assert str(Pipeline.parse(BASE).changed(change)) == CHANGES[change]


def test_changes_by_methods() -> None:
    base = Pipeline.parse(BASE)
    assert str(base.before("cse", "dce")) == CHANGES["before:cse=dce"]
    assert str(base.after("canonicalize#2", Pipeline.parse("cse"))) == CHANGES["after:canonicalize#2=cse"]
    assert str(base.replace("canonicalize", registry()["dce"]())) == CHANGES["replace:canonicalize=dce"]
    assert str(base.without("canonicalize")) == CHANGES["without:canonicalize"]
    assert str(base) == BASE


@pytest.mark.parametrize("item", [object(), Pass, ["cse"], None, 3])
def test_what_is_no_pass_is_an_error(item: Any) -> None:
    with pytest.raises(ArgumentTypeError, match="a pass is an object of a subclass of Pass"):
        Pipeline.parse("cse").after("cse", item)
    with pytest.raises(ArgumentTypeError, match="a pass is an object of a subclass of Pass"):
        Pipeline([item])


@pytest.mark.parametrize(
    "change, words",
    [
        ("before:fuse=cse", "the pipeline runs fuse 0 times; it is fixpoint"),
        ("after:canonicalize#3=cse", "the pipeline runs canonicalize 2 times"),
        ("before:cse", "needs passes"),
        ("before:cse=", "needs passes"),
        ("without:cse=dce", "unexpected '=dce'"),
        ("before:cse=dce;cse", "'cse' is no change of a pipeline; changes: before:PASS=PASSES"),
        ("before:cse=nonsense", "unknown pass 'nonsense'"),
        ("before:=cse", "is no change"),
        ("before:cse=canonicalize{without='x", "quotes or brackets are not closed"),
    ],
)
def test_changes_that_cannot_be(change: str, words: str) -> None:
    with pytest.raises(PipelineError, match=words):
        Pipeline.parse(BASE).changed(change)


def test_compile_takes_changes_and_objects() -> None:
    runs = made()
    x = smelt.array([1.0, 2.0])
    for pipeline in (
        "before:fuse=noting{said=text}",
        smelt.default_pipeline().before("fuse", "noting{said=object}"),
    ):
        assert smelt.compile(lambda x: smelt.exp(x) * 2, pipeline=pipeline)(x).shape == (2,)
    assert runs == ["text", "object"]
    with pytest.raises(PipelineError, match=r"runs place 0 times.*\(of cpu\)"):
        smelt.compile(smelt.exp, pipeline="before:place=noting")(x)
    with pytest.raises(ArgumentTypeError, match=r"pipeline must be a text or a smelt.passes.Pipeline, is 3; at "):
        smelt.compile(smelt.exp, pipeline=3)  # type: ignore[call-overload]
    assert str(smelt.default_pipeline("reference")).endswith("canonicalize,cse,dce")


def test_a_setting_changes_all_programs() -> None:
    runs = made()
    with override(pipeline="before:fuse=noting{said=everywhere}", tier="program", small_work=0):
        assert smelt.compile(lambda x: smelt.exp(x) * 3)(smelt.array([1.0, 2.0])).shape == (2,)
        (smelt.zeros((3, 7)) + 5).tolist()
    assert runs and set(runs) == {"everywhere"}
    with override(pipeline="before:place=noting"), pytest.raises(PipelineError, match="SMELT_PIPELINE"):
        smelt.compile(lambda x: smelt.exp(x) * 4)(smelt.array([1.0, 2.0]))


def test_smelt_opt_takes_changes(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "f.mlir"
    file.write_text(SOURCE)
    changes = "before:fuse=analyze{of=cost};without:plan-buffers"
    assert opt.main([str(file), f"--pass-pipeline={changes}"], isolate=False) == 0
    out, err = capsys.readouterr()
    assert "@main: 112 operations" in err and "smelt.fusion" in out and "arena" not in out


OPTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "quotes": ("text=\"two words\" label='a, {b}'", {"text": "two words", "label": "a, {b}"}),
    "escapes": ('text="a \\"b\\" \\n" label="it\'s"', {"text": 'a "b" \n', "label": "it's"}),
    "nothing": ('text=""', {"text": ""}),
    "tuple": ("sizes=1,2,3", {"sizes": (1, 2, 3)}),
    "braces": ("sizes={1,2}", {"sizes": (1, 2)}),
    "none in it": ("sizes={}", {"sizes": ()}),
    "Python's": ("sizes=(1, 2) words=['a b', c]", {"sizes": (1, 2), "words": ("a b", "c")}),
    "Python's of one and none": ("sizes=(1,) words=()", {"sizes": (1,), "words": ()}),
    "Python's nested": ("pairs=((1, 2), (3, 4)) text='(a'", {"pairs": ((1, 2), (3, 4)), "text": "(a"}),
    "texts": ('words="a b",c', {"words": ("a b", "c")}),
    "nested": ("pairs={1,2},{3,4}", {"pairs": ((1, 2), (3, 4))}),
    "optional": ("limit=3", {"limit": 3}),
    "optional none": ("limit=none", {"limit": None}),
    "choice": ("way=fast", {"way": "fast"}),
    "truth": ("exact=true scale=1e-3", {"exact": True, "scale": 1e-3}),
}
REFUSED = {
    "tuple of text": ("sizes=1,x", "option sizes of pass options takes tuple of int, not '1,x'"),
    "optional text": ("limit=x", "option limit of pass options takes int or none, not 'x'"),
    "choice": ("way=slow", "takes fast or exact, not 'slow'"),
    "short pair": ("pairs={1}", "takes tuple of tuple"),
    "dict": ("table=x", "no text gives a dict; options are bool, int, float, str, Literal, Optional or a tuple"),
    "bracket not closed": ("sizes=(1,2 limit=3", "quotes or brackets are not closed"),
    "not closed": ("text='x", "quotes or brackets are not closed"),
    "twice": ("limit=1 limit=2", "given twice"),
}


@register_pass("options")
@dataclass(frozen=True)
class Options(Pass):
    """Has options of all types."""

    text: str = "x"
    label: str = ""
    sizes: tuple[int, ...] = (7,)
    words: tuple[str, ...] = ()
    pairs: tuple[tuple[int, int], ...] = ()
    limit: int | None = None
    way: Literal["fast", "exact"] = "exact"
    exact: bool = False
    scale: float = 1.0
    table: dict[str, int] | None = None

    def run(self, module: Any, statistics: Counter) -> None:
        pass


@pytest.mark.parametrize("what", OPTIONS)
def test_options_of_all_types(what: str) -> None:
    spelling, values = OPTIONS[what]
    (found,) = Pipeline.parse(f"options{{{spelling}}}").items
    assert {name: getattr(found, name) for name in values} == values
    (again,) = Pipeline.parse(f"cse,{found},dce").items[1:2]
    assert again == found


@pytest.mark.parametrize("what", REFUSED)
def test_options_that_no_text_gives(what: str) -> None:
    spelling, words = REFUSED[what]
    with pytest.raises(PipelineError, match=words):
        Pipeline.parse(f"options{{{spelling}}}")


def test_passes_of_mlir_inside_of_a_fixpoint() -> None:
    module = text.parse(SOURCE)
    records = Pipeline.parse("fixpoint(symbol-dce,cse),dce").run(module)
    assert [r.stage for r in records] == ["symbol-dce#1", "cse#1", "dce"]
    unused = SOURCE + "func.func private @unused() { return }\n"
    records = Pipeline.parse("fixpoint(symbol-dce)").run(text.parse(unused))
    assert len(records) == 2


def test_an_analysis_may_be_an_object() -> None:
    class Counts:
        def __call__(self, module: Any) -> int:
            return len(functions(module))

    try:
        for _ in range(2):  # as a module that is imported again does
            register_analysis("an-object")(Counts())
        assert analysis_of(text.parse(SOURCE), "an-object") == 1
        with pytest.raises(PipelineError, match="two analyses are called 'an-object'"):
            register_analysis("an-object")(lambda module: 0)
    finally:
        del analysis._registered["an-object"]


def test_analyses_are_kept_until_something_changes() -> None:
    asked: list[str] = []

    @register_analysis("counting")
    def counting(module: Any) -> int:
        asked.append("computed")
        return sum(len(read_function(f).ops) for f in functions(module).values())

    @register_pass("asking")
    @dataclass(frozen=True)
    class Asking(Pass):
        only_looks: ClassVar[bool] = True
        anew: bool = False

        def run(self, module: Any, statistics: Counter) -> str:
            if self.anew:
                invalidate(module)
            statistics["asked"] += 1
            return f"{analysis_of(module, 'counting')} ops"

    @register_pass("adding")
    @dataclass(frozen=True)
    class Adding(Pass):
        preserves: ClassVar[tuple[str, ...]] = ("counting",)

        def run(self, module: Any, statistics: Counter) -> None:
            statistics["ops"] += 1

    module = text.parse(SOURCE)
    records = Pipeline.parse("asking,asking,adding,asking,cse,asking,asking{anew=true}").run(module)
    assert [r.report for r in records if r.name == "asking"] == ["4 ops"] * 5
    assert len(asked) == 2  # cse changes nothing here
    asked.clear()
    Pipeline.parse("fixpoint(asking),asking,dce,symbol-dce,asking").run(module)
    assert len(asked) == 2  # MLIR's own passes may change anything
    assert analysis_of(module, "counting") == 4 and len(asked) == 3


def test_a_pass_of_others_that_forgets_to_count() -> None:
    """What it has changed is seen all the same: analyses are asked anew, and a fixpoint goes on."""

    @register_pass("forgetful")
    @dataclass(frozen=True)
    class Forgetful(Pass):
        def run(self, module: Any, statistics: Counter) -> None:
            for operation in list(functions(module).values()):
                unread = [op for op in read_function(operation).ops if not any(r.users for r in op.results)]
                for op in unread[-1:]:
                    if op.results[0] not in read_function(operation).returns:
                        op.erase()

    @register_pass("careless")
    @dataclass(frozen=True)
    class Careless(Forgetful):
        only_looks: ClassVar[bool] = True

    source = """
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = "smelt.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
      %1 = "smelt.sin"(%0) : (tensor<4xf32>) -> tensor<4xf32>
      %2 = "smelt.cos"(%1) : (tensor<4xf32>) -> tensor<4xf32>
      return %x : tensor<4xf32>
    }"""
    pipeline = "analyze{of=liveness},forgetful,analyze{of=liveness},fixpoint(forgetful),analyze{of=liveness}"
    records = Pipeline.parse(pipeline).run(text.parse(source))
    assert [r.report[-9:].strip() for r in records if r.name == "analyze"] == ["in 3 ops", "in 2 ops", "in 0 ops"]
    with pytest.raises(PipelineError, match="it only looks, by its own word, and has changed the module; in the pass"):
        Pipeline.parse("careless").run(text.parse(source))


REPORTS = {
    "users": "@main %0: mul, add, returned\n@main %1: add\n@main %2: reshape\n@main %3: nobody, returned",
    "liveness": "@main: at most 96 bytes at add, in 4 ops",
    "alias": "@main %3 is %2",
    "trip-counts": "@main runs 1 times",
}  # fmt: skip


@pytest.mark.parametrize("name", REPORTS)
def test_reports(name: str) -> None:
    (record,) = Pipeline.parse(f"fixpoint(analyze{{of={name}}})").run(text.parse(SOURCE))
    assert record.report.strip().endswith(REPORTS[name]) or REPORTS[name] in record.report, record.report


def test_trip_counts_of_loops() -> None:
    def f(x: Any) -> Any:
        return smelt.scan(lambda c, y: (smelt.scan(lambda d, z: (d + z, None), c, x)[0] + y, None), x[0], x)[0]

    module = text.parse(smelt.make_ir(f)(smelt.zeros(3)))
    times = analysis_of(module, "trip-counts")
    assert sorted(times.values()) == [1, 3, 9] and times["main"] == 1


def test_trip_counts_of_functions_that_are_called_twice() -> None:
    """Of sixty, each of which calls the next one twice, the last runs 2⁶⁰ times: counted, not walked."""

    def function(i: int) -> str:
        head = f"func.func private @f{i}(%x: tensor<f32>) -> tensor<f32>" if i else (
            "func.func @main(%x: tensor<f32>) -> tensor<f32>"
        )  # fmt: skip
        call = f"func.call @f{i + 1}" if i < 60 else '"smelt.exp"'
        calls = [f"%{j} = {call}(%{j - 1 if j else 'x'}) : (tensor<f32>) -> tensor<f32>" for j in range(2)]
        return f"{head} {{ {' '.join(calls)} return %1 : tensor<f32> }}"

    times = analysis_of(text.parse("\n".join(map(function, range(61)))), "trip-counts")
    assert times["main"] == 1 and times["f60"] == 2**60


def test_unknown_analyses() -> None:
    with pytest.raises(PipelineError, match=r"no analysis 'nonsense'; analyses: .*liveness"):
        Pipeline.parse("analyze{of=nonsense}").run(text.parse(SOURCE))


def test_users_of_values() -> None:
    module = text.parse(SOURCE)
    function = read_function(functions(module)["main"])
    exp, mul, add, reshape = function.ops
    assert exp.results[0].users == (mul, add) and function.arguments[0].users == (exp,)
    assert add.results[0].users == (reshape,) and reshape.results[0].users == ()
    seen: list[int] = []

    def visit(b: Builder, op: Any, operands: Any) -> Any:
        (made,) = b.clone(op, operands)
        seen.append(len(operands[0].users))
        return [made]

    rebuild(module, function, visit)
    assert seen == [1, 1, 1, 1]
    with pytest.raises(IRError, match="erased"):
        _ = exp.results[0].users


def test_users_through_loops_and_slices() -> None:
    def f(x: Any, k: Any) -> Any:
        return smelt.scan(lambda c, y: (c * k + y, c), k, smelt.exp(x))

    module = text.parse(smelt.make_ir(f)(smelt.zeros(3), smelt.array(2.0)))
    function = read_function(functions(module)["main"])
    (loop,) = [op for op in function.ops if op.op.kind == "control"]
    (exp,) = [op for op in function.ops if op.name == "exp"]
    assert exp.results[0].users == (loop,) and function.arguments[1].users == (loop,)


def test_an_upstream_pass_is_named_in_changes() -> None:
    pipeline = Pipeline.parse("cse").after("cse", UpstreamPass("symbol-dce"))
    assert str(pipeline) == "cse,symbol-dce"
