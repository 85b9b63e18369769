"""How passes and patterns of other packages are found and made: what does not load harms nobody who does not ask."""

from __future__ import annotations

import importlib
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

import smelt
from smelt.backends.cpu import program as cpu
from smelt.ir import dtypes, text
from smelt.ir.aval import Aval
from smelt.ir.builder import functions, new_function, read_function
from smelt.ir.errors import ArgumentTypeError, IRError, PassError, PipelineError
from smelt.passes import Pass, Pipeline, register_pass, registry
from smelt.passes.extract import reassemble
from smelt.passes.rewrite import rebuild
from smelt.passes.simplify import patterns
from smelt.tools import opt

from .plugins import parsed

REGISTRY = sys.modules["smelt.passes.registry"]

PLUGIN = '''
from dataclasses import dataclass
from smelt.passes import Pass, register_pass

LOADED = True

@register_pass("plugin")
@dataclass(frozen=True)
class PluginPass(Pass):
    """Does nothing."""
    limit: int
    scale: float = 1.5
    names: tuple = ()

    def __post_init__(self):
        if self.limit > 99:
            raise KeyError("limit")

    def run(self, module, statistics):
        pass

@register_pass("second-plugin")
@dataclass(frozen=True)
class SecondPass(Pass):
    def run(self, module, statistics):
        pass
'''


@pytest.fixture
def plugins(tmp_path, monkeypatch) -> Iterator[Any]:
    """A package with entry points: one that works, and some that do not load."""
    (tmp_path / "a_plugin.py").write_text(PLUGIN)
    (tmp_path / "a_broken.py").write_text("import nothing_that_is_there")
    (tmp_path / "a_leaver.py").write_text("raise SystemExit(3)")
    (tmp_path / "a_mistake.py").write_text("def f(:")
    (tmp_path / "a_module.py").write_text("x = 1")
    info = tmp_path / "a_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: a-plugin\nVersion: 1.0\n")
    entries = {
        "plugin": "a_plugin:PluginPass", "stale": "no_such_package.x:StalePass", "broken": "a_broken:BrokenPass",
        "leaver": "a_leaver:LeaverPass", "mistake": "a_mistake", "missing": "a_plugin:MissingPass",
        "nameless": "a_module", "symbol-dce": "no_such_package:Taken",
    }  # fmt: skip
    listed = "".join(f"{k} = {v}\n" for k, v in entries.items())
    (info / "entry_points.txt").write_text(f"[smelt.passes]\n{listed}")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    known = dict(registry())
    yield entries
    REGISTRY._passes.clear()
    REGISTRY._passes.update(known)
    for name in [n for n in sys.modules if n.startswith("a_")]:
        del sys.modules[name]


STALE = ("stale", "broken", "leaver", "mistake", "missing", "nameless", "symbol-dce")


def test_entry_points_are_loaded_when_their_name_is_asked_for(plugins) -> None:
    f = smelt.compile(lambda x: smelt.exp(x) + 1)
    assert f(smelt.zeros(3)).tolist() == [2, 2, 2]
    Pipeline.parse("fixpoint(inline,jvp),canonicalize,cse,dce").run(parsed())
    assert not [name for name in sys.modules if name.startswith("a_")]
    Pipeline.parse("plugin{limit=3},cse").run(parsed())
    assert sys.modules["a_plugin"].LOADED and "a_broken" not in sys.modules


@pytest.mark.parametrize("name", STALE)
@pytest.mark.parametrize("prefix", ["", "smelt-"])
def test_an_entry_point_that_does_not_load_is_an_error_where_it_is_asked_for(plugins, name, prefix) -> None:
    with pytest.raises(PipelineError, match=rf"{name}.*{plugins[name].split(':')[0]}|{plugins[name]}.*{name}"):
        Pipeline.parse(f"cse,{prefix}{name}")


def test_entry_points_do_not_hide_passes_of_smelt_and_of_mlir(plugins) -> None:
    Pipeline.parse("cse,smelt-cse,func.func(canonicalize),sccp").run(parsed())


def test_a_second_pass_of_an_entry_point_is_found(plugins) -> None:
    assert str(Pipeline.parse("second-plugin")) == "second-plugin"


def test_an_unknown_pass_names_what_did_not_load(plugins) -> None:
    with pytest.raises(PipelineError, match=r"unknown pass 'nonsense'.*'stale' of no_such_package"):
        Pipeline.parse("nonsense")


def test_a_set_of_rewrites_that_loads_in_part_is_not_there(plugins, tmp_path) -> None:
    (tmp_path / "a_set.py").write_text(
        "from smelt.passes.rewrites import RewriteSet, Rule, Term, ops\n"
        "rewrites = RewriteSet('a-set')\n"
        "@rewrites.rewrite\n"
        "def good(x: Term) -> Rule:\n    return -(-x) >> x\n"
        "@rewrites.rewrite\n"
        "def bad(x: Term) -> Rule:\n    return ops.no_such_op(x) >> x\n"
    )
    entries = tmp_path / "a_plugin-1.0.dist-info" / "entry_points.txt"
    entries.write_text("[smelt.rewrites]\na-set = a_set\n")
    importlib.invalidate_caches()
    for _ in range(2):
        with pytest.raises(PipelineError, match=r"the rewrites 'a-set' of a_set do not load: .*no op 'no_such_op'"):
            Pipeline.parse("rewrite{set=a-set}").run(parsed())
    with pytest.raises(PipelineError, match=r"no set of rewrites 'a-sett'; sets: .*a-set"):
        Pipeline.parse("rewrite{set=a-sett}").run(parsed())


def test_list_passes_warns(plugins, capsys) -> None:
    assert opt.main(["--list-passes"], isolate=False) == 0
    out, err = capsys.readouterr()
    assert "--plugin\n" in out and "--second-plugin" in out and "--cse" in out
    assert "    limit\n" in out and "    scale=1.5" in out
    for name in STALE:
        assert [line for line in err.splitlines() if line.startswith("smelt-opt: warning: ") and name in line], name


@pytest.mark.parametrize(
    "options, words",
    [
        ("limit=x", "option limit of pass plugin takes int, not 'x'"),
        ("limit=" + "9" * 5000, "option limit of pass plugin"),
        ("limit=1 scale=y", "option scale"),
        ("limit=1 scale='1.5", "quotes or brackets are not closed"),
        ("limit=1 limit=2", "option limit of plugin is given twice"),
        ("", "plugin cannot be made: TypeError"),
        ("limit=100", "plugin cannot be made: KeyError"),
        ("limits=1", "has no option 'limits'; its options: limit, scale, names"),
        ("limit", "needs a value"),
    ],
)
def test_options_of_plugins(plugins, options, words) -> None:
    with pytest.raises(PipelineError, match=words.replace("(", r"\(")):
        Pipeline.parse(f"plugin{{{options}}}")


def test_a_boolean_alone_is_true() -> None:
    assert str(Pipeline.parse("fuse{contractions  max-ops=4}")) == "fuse{max-ops=4 contractions=true}"
    with pytest.raises(PipelineError, match="option 'max-ops' of pass fuse needs a value"):
        Pipeline.parse("fuse{max-ops contractions}")


class CsePass(Pass):
    """Called like smelt's own."""


@pytest.mark.parametrize("name", ["cse", "canonicalize", "plan-buffers"])
def test_names_of_smelt_are_taken(name, monkeypatch) -> None:
    monkeypatch.setattr(REGISTRY, "_loaded", False)  # as in a process that has compiled nothing so far
    with pytest.raises(PipelineError, match=f"two passes are called '{name}'.*test_plugin_registry.py"):
        register_pass(name)(CsePass)
    assert registry()[name].__module__.startswith("smelt.passes.")


@pytest.mark.parametrize("what", [3, "text", object, lambda: None, type("Plain", (), {})], ids=range(5))
def test_only_passes_are_registered(what) -> None:
    with pytest.raises(ArgumentTypeError, match="a subclass of Pass"):
        register_pass("anything")(what)
    assert "anything" not in registry()


@pytest.mark.parametrize("name", ["", "a b", "a,b", "a{b}", "fixpoint(", None, 3])
def test_names_that_a_pipeline_can_spell(name) -> None:
    with pytest.raises(PipelineError, match="a pass is called by"):
        register_pass(name)


@pytest.fixture
def a_pattern() -> Iterator[Any]:
    """Registers a pattern for ``smelt.log``, and takes it back."""

    def register(function: Any) -> None:
        patterns.pattern("log")(function)

    yield register
    patterns._by_name["log"] = [f for f in patterns._by_name["log"] if f.__module__.startswith("smelt.")]
    patterns._foreign.clear()
    patterns._tables.clear()


PATTERNS = {
    "shape": lambda b, at: b.reduce_sum(at.operands[0], axes=(0,)),
    "dtype": lambda b, at: b.convert(at.operands[0], dtype=dtypes.int32),
    "number": lambda b, at: 3.5,
    "list": lambda b, at: [at.operands[0]],
    "another module": lambda b, at: read_function(functions(parsed())["main"]).arguments[0],
    "another function": lambda b, at: PATTERNS["another module"](b, at),
    "exception": lambda b, at: at.nothing,
    "erased": lambda b, at: [v := b.neg(at.operands[0]), v.owner.erase()][0],
    "for ever": lambda b, at: b.log(b.neg(b.neg(b.exp(at.operands[0])))),
}


@pytest.mark.parametrize("what", PATTERNS)
def test_patterns_of_other_packages(what, a_pattern) -> None:
    a_pattern(PATTERNS[what])
    with pytest.raises((IRError, PassError), match=r"test_plugin_registry\.py:\d+|model\.py:14"):
        Pipeline.parse("canonicalize").run(parsed())


@register_pass("test-narrower-main")
@dataclass(frozen=True)
class NarrowerMain(Pass):
    """Gives @main another type."""

    arguments: int = 3

    def run(self, module: Any, statistics: Counter) -> None:
        old = functions(module)["main"]
        aval = Aval((self.arguments,), dtypes.float32)
        _, values, b = new_function(module, "main", [aval], [aval], public=True, before=old)
        b.return_([b.neg(values[0])])
        old.erase()


def test_a_pass_that_changes_the_type_of_a_program(monkeypatch) -> None:
    f = smelt.compile(lambda x: x + 1, pipeline=f"test-narrower-main,{cpu.PIPELINE}")
    with pytest.raises(IRError, match=r"made @main a \(tensor<3xf32>\) -> tensor<3xf32>, the program is a"):
        f(smelt.zeros(4))
    assert f(smelt.zeros(3)).tolist() == [0, 0, 0]


def test_a_pass_of_one_file_runs_in_compile() -> None:
    @register_pass("test-doubled")
    @dataclass(frozen=True)
    class Doubled(Pass):
        """exp(x) → exp(x) + exp(x)."""

        def run(self, module: Any, statistics: Counter) -> None:
            def visit(b, op, operands):
                (found,) = b.clone(op, operands)
                return [found + found] if op.name == "exp" else [found]

            rebuild(module, read_function(functions(module)["main"]), visit)

    f = smelt.compile(lambda x: smelt.exp(x), pipeline=f"test-doubled,{cpu.PIPELINE}")
    assert f(smelt.zeros(2)).tolist() == [2, 2]


def test_modules_are_as_before_after_a_failed_rebuild() -> None:
    module = parsed()
    before = text.to_text(module)
    with pytest.raises(ZeroDivisionError):
        rebuild(module, read_function(functions(module)["main"]), lambda b, op, operands: 1 / 0)
    assert text.to_text(module) == before
    with pytest.raises(ZeroDivisionError):
        reassemble(module, read_function(functions(module)["main"]), ["item"], lambda b, item, env: 1 / 0)
    assert text.to_text(module) == before


class Undecorated(Pass):
    """Its annotations would be no options."""

    NAMES: ClassVar[tuple[str, ...]] = ()
    limit: int = 4


def test_options_of_a_class_that_is_no_dataclass() -> None:
    derived = dataclass(frozen=True)(type("Decorated", (Undecorated,), {}))
    for cls in (Undecorated, derived):
        with pytest.raises(PipelineError, match=r"Undecorated.limit is no option: write @dataclass\(frozen=True\)"):
            register_pass("undecorated")(cls)
    assert "undecorated" not in registry()
