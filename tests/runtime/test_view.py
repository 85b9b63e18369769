"""``smelt view``: the page says what the compiler's own numbers say, and needs nothing from elsewhere."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import smelt
import smelt.nn as nn
from smelt.ir import text
from smelt.ir.errors import ArgumentTypeError, IRError
from smelt.ir.short import to_short_text
from smelt.runtime import device_named
from smelt.runtime.view.code import MOST
from smelt.runtime.view.drawing import draw
from smelt.runtime.view.page import MAX_TEXT
from smelt.tools import cli, opt


def data_of(page: str) -> dict:
    found = re.search(r"^const data = (.*);$", page, re.MULTILINE)
    assert found
    data = json.loads(found[1])
    places, lines = data.pop("places"), []
    for stage in data["stages"]:
        if stage["lines"] is not None:  # a stage that is like the one before has none
            lines = [[line, places[i]] for line, i in stage["lines"]]
        stage["lines"] = lines
    for remark in data["remarks"]:
        remark["line"] = places[remark["line"]]
    return data


def program_of(function, *arguments):
    return smelt.compile(function).trace(*arguments).lower().compile()


def attention(q, k, v):
    return smelt.softmax(q @ k.T / 8, axis=-1) @ v


ARGUMENTS = smelt.ones((32, 16)), smelt.ones((64, 16)), smelt.ones((64, 16))


@pytest.fixture(scope="module")
def program():
    return program_of(lambda q, k, v: smelt.grad(lambda q: attention(q, k, v).sum())(q), *ARGUMENTS)


def test_stages_and_lines(program):
    data = data_of(program.view())
    assert [s["name"] for s in data["stages"]] == program.executable.passed.names
    for stage in data["stages"]:
        short = program.as_text(stage["name"], short=True)
        assert [line for line, _ in stage["lines"] if line] == [x for x in short.split("\n")[1:] if x]
    (source,) = data["sources"].values()
    assert "def attention(q, k, v):" in source
    places = {place for s in data["stages"] for _, place in s["lines"] if place}
    assert all(int(p.rpartition(":")[2]) <= len(source) for p in places) and places


def test_costs_are_those_of_the_compiler(program):
    data, cost = data_of(program.view())["cost"], program.cost()
    assert [s["name"] for s in data["steps"]] == [s.name for s in cost.steps]
    assert data["bytes"] == cost.step_bytes and data["moved"] == cost.moved_bytes and data["peak"] == cost.peak_bytes
    assert data["arena"] == program.executable.arena_bytes == cost.arena_bytes
    assert max(x["offset"] + x["nbytes"] for x in data["lifetimes"]) <= cost.arena_bytes
    for x in data["lifetimes"]:  # no two that live at once share memory
        for y in data["lifetimes"]:
            if x is not y and x["first"] <= y["last"] and y["first"] <= x["last"]:
                assert x["offset"] + x["nbytes"] <= y["offset"] or y["offset"] + y["nbytes"] <= x["offset"]


def test_graphs_hold_all_ops(program):
    drawings = {d["name"]: d for d in data_of(program.view())["drawings"]}
    assert {s.name for s in program.cost().steps if s.kind != "library"} <= drawings.keys()
    for d in drawings.values():
        assert len({(n["x"], n["y"]) for n in d["nodes"]}) == len(d["nodes"]), "two nodes at one place"
        assert all(d["nodes"][a]["y"] < d["nodes"][b]["y"] for a, b in d["edges"])


def test_code_of_all_backends(program):
    texts = data_of(program.view())["texts"]
    assert "kernel void" in texts["msl"] and "llvm.func" in texts["llvm"] and "scf." in texts["kernel"]


def test_code_of_each_kernel():
    """Of all stages in which a kernel has this name: Metal's of attention are others."""
    x, y = smelt.ones((32, 16)), smelt.ones((16, 8))
    program = program_of(lambda x, y: smelt.softmax(smelt.tanh(x @ y), axis=0), x, y)
    code = data_of(program.view())["code"]
    assert {"kernel", "llvm", "msl"} <= code.keys()
    names = {s.name for s in program.cost().steps if s.kind != "library"}
    for stage, found in code.items():
        assert found and found.keys() <= names
        whole = [line.strip() for line in program.as_text(stage).split("\n")]
        for name, definition in found.items():
            lines = [line.strip() for line in definition.split("\n")]
            assert name in lines[0] and lines[-1] == "}"
            start = whole.index(lines[0])
            assert whole[start : start + len(lines)] == lines
    assert code["kernel"].keys() == names


def test_remarks_are_those_of_the_passes(program):
    told = data_of(program.view())["remarks"]
    assert [(r["kind"], r["text"], r["line"]) for r in told] == [(r.kind, r.text, r.line) for r in program.remarks()]
    kernels = {s.name for s in program.cost().steps if s.kind != "library"}
    assert {r["about"][0] for r in told if r["kind"] == "passed"} == kernels
    assert any(r["kind"] == "missed" for r in told)


def test_a_folder_of_dumps(tmp_path, capsys, program):
    source = tmp_path / "f.mlir"
    source.write_text(program.as_text("graph"))
    pipeline = f"--pass-pipeline={device_named('cpu').pipeline}"
    for flag in ("--dump-ir-to", "--mlir-print-ir-tree-dir"):
        folder, out = tmp_path / flag.strip("-"), tmp_path / "page.html"
        assert opt.main([str(source), pipeline, f"{flag}={folder}", "--mlir-print-ir-after-all"], isolate=False) == 0
        assert cli.main(["view", str(folder), "-o", str(out)], isolate=False) == 0
        data = data_of(out.read_text(encoding="utf-8"))
        stages = {s["name"]: s for s in data["stages"]}
        assert {"linearize#1", "fuse", "plan-buffers"} <= stages.keys()
        (file,) = folder.rglob("*_plan-buffers.mlir") if "tree" in flag else folder.rglob("*-plan-buffers.mlir")
        short = to_short_text(text.parse(file.read_text(encoding="utf-8"))).split("\n")[1:]
        assert [line for line, _ in stages["plan-buffers"]["lines"] if line] == [x for x in short if x]
        cost = program.cost()
        assert [s["name"] for s in data["cost"]["steps"]] == [s.name for s in cost.steps]
        assert data["cost"]["peak"] == cost.peak_bytes and data["texts"] == {} and data["remarks"] == []
    capsys.readouterr()
    empty = tmp_path / "empty"
    empty.mkdir()
    assert cli.main(["view", str(empty), "-o", str(out)], isolate=False) == 1
    assert "there are no dumps of passes" in capsys.readouterr().err
    assert cli.main(["view", str(tmp_path), "-o", str(out)], isolate=False) == 1
    assert "has dumps of 2 compiles; name one" in capsys.readouterr().err
    (empty / "0001-cse.mlir").write_text("func.func @f(")
    assert cli.main(["view", str(empty), "-o", str(out)]) == 1
    assert cli.main(["view", str(empty), "f32[2]", "-o", str(out)], isolate=False) == 1
    assert "takes no arguments" in capsys.readouterr().err
    (empty / "0001-cse.mlir").write_bytes(b"\xff\xfe")
    assert cli.main(["view", str(empty), "-o", str(out)], isolate=False) == 1
    assert "0001-cse.mlir: error: this is not MLIR text" in capsys.readouterr().err


@pytest.mark.parametrize("device", ["cpu", "metal:sim"])
def test_an_ir_file(tmp_path, capsys, program, device):
    source, out = tmp_path / "f.mlir", tmp_path / "page.html"
    source.write_text(program.as_text("graph"))
    with smelt.stream(smelt.Device(device)):
        assert cli.main(["view", str(source), "-o", str(out), "--device", device], isolate=False) == 0
    data = data_of(out.read_text(encoding="utf-8"))
    assert {"graph", "linearize#1", "fuse"} <= {s["name"] for s in data["stages"]}
    if device == "cpu":
        assert [s["name"] for s in data["cost"]["steps"]] == [s.name for s in program.cost().steps]
    assert data["sources"][str(source)] == source.read_text().split("\n")
    source.write_text("func.func private @main(tensor<3xf32>)")
    assert cli.main(["view", str(source), "-o", str(out)], isolate=False) == 1
    assert "@main has no body" in capsys.readouterr().err
    assert cli.main(["view", str(tmp_path / "absent"), "-o", str(out)]) == 1
    assert "there is no file or folder" in capsys.readouterr().err


def test_a_page_of_a_thousand_ops():
    choose = random.Random(0)

    def many(x):
        values = [x]
        for _ in range(1000):
            one, other = choose.choice(values[-5:]), choose.choice(values[-5:])
            values.append(choose.choice((smelt.add, smelt.multiply, smelt.maximum))(smelt.sin(one), other))
        return values[-5:]

    page = program_of(many, smelt.ones((8, 8))).view()
    data = data_of(page)
    assert len(page) < 5_000_000 and max(len(s["lines"]) for s in data["stages"]) >= 500
    assert sum(d["ops"] for d in data["drawings"]) >= 1000 and all(d["nodes"] for d in data["drawings"])


def test_it_needs_nothing_from_elsewhere(program):
    page = program.view(title="</script><b>")
    assert "</script><b>" not in page and data_of(page)["title"] == "</script><b>"
    own = re.sub(r"^const data = .*$", "", page, flags=re.MULTILINE).replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"(src|href)\s*=|@import|url\(|https?:", own)


def test_a_train_step_of_a_transformer():
    model = nn.TransformerEncoder(2, 32, 2)
    mask = nn.MultiHeadAttention.create_additive_causal_mask(16)

    def step(parameters, x):
        def loss(parameters):
            model.update(parameters)
            return (model(x, mask) ** 2).mean()

        value, gradients = smelt.value_and_grad(loss)(parameters)
        return value, smelt.utils.tree_map(lambda p, g: p - 0.1 * g, parameters, gradients)

    page = program_of(step, model.trainable_parameters(), smelt.ones((4, 16, 32))).view()
    assert len(page) < 5_000_000
    assert len(data_of(page)["cost"]["steps"]) > 20


def test_the_command(tmp_path, capsys):
    file = tmp_path / "program.py"
    file.write_text("import smelt\n\ndef f(x):\n    return smelt.exp(x) * 2\n")
    out = tmp_path / "page.html"
    assert cli.main(["view", f"{file}:f", "f32[4,8]", "-o", str(out), "--measure"]) == 0
    assert capsys.readouterr().out.strip() == str(out)
    data = data_of(out.read_text(encoding="utf-8"))
    assert data["cost"]["steps"][0]["measured"] > 0 and data["title"].endswith("f f32[4,8]")
    assert cli.main(["view", f"{file}:f", "f32[4,8]", "-o", str(tmp_path / "no" / "page.html")]) == 1
    assert "cannot be written" in capsys.readouterr().err


def test_a_program_without_kernels(tmp_path):
    """Of a device that interprets there are stages, and neither costs nor memory."""
    with smelt.stream(smelt.Device("reference")):
        program = program_of(lambda x: smelt.exp(x) * 2, smelt.ones((4, 8)))
        data = data_of(program.view())
        with pytest.raises(IRError, match="no kernels whose costs"):
            program.view(measure=True)
    names = [s["name"] for s in data["stages"]]
    assert names[0] == "graph" and "fuse" not in names
    assert data["cost"] is None and data["drawings"][0]["ops"] > 0


def test_a_number_is_no_path(program):
    with pytest.raises(ArgumentTypeError, match="path must be a path, is 2"):
        program.view(2)


def test_a_program_without_texts():
    program = smelt.compile(lambda x: x + 1).trace(smelt.ones(3)).lower().compile(keep_texts=False)
    with pytest.raises(IRError):
        program.view()


def test_its_script_runs(program, tmp_path):
    """The functions that compare stages, by a JavaScript engine where there is one."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("no JavaScript engine here")
    (script,) = re.findall(r"<script>(.*?)</script>", program.view(), re.DOTALL)
    functions = script[script.rindex("const NUMBER") : script.rindex("function lineOf")]
    check = """
    const mark = (a, b) => ([i, j]) => (i == null ? "+" + b[j] : j == null ? "-" + a[i] : a[i]);
    const text = (a, b) => differences([...a], [...b]).map(mark(a, b)).join("");
    console.log(JSON.stringify([text("abcd", "abxd"), text("", "ab"), text("abc", "abc"), text("xaby", "aby")]));
    const of = (...all) => all.map(line => [line, ""]);
    console.log(JSON.stringify(compare(of("@f()", "  x", "", "@g()"), of("@g()", "", "@f()", "  y"))));
    """
    file = tmp_path / "page.js"
    file.write_text(script)
    assert subprocess.run([node, "--check", str(file)], capture_output=True, timeout=60).returncode == 0
    file.write_text(functions + check)
    done = subprocess.run([node, str(file)], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == [
        '["ab-c+xd","+a+b","abc","-xaby"]', "[[0,2],[1,null],[null,3],[null,null],[3,0]]"
    ], done.stderr  # fmt: skip


TABS = """{
const shown = {};
for (const button of [...nav.children]) {
  button.click();
  shown[button.textContent] = [...main.children].find(e => e.attributes.id === "tab-" + button.textContent);
}
const texts = e => e.querySelectorAll("tr").map(row => row.children.map(c => c.textContent));
const kernels = texts(shown.Kernels);
for (const e of [...shown.Kernels.all(), ...shown.Stages.all()]) if (e.listeners.click) e.click();
const opened = shown.Graph.querySelectorAll("g").filter(g => g.listeners.click).length;
const boxes = shown.Memory.querySelectorAll("rect").length;
console.log(JSON.stringify({ summary: named.summary.textContent, kernels, passes: texts(shown.Passes),
  remarks: texts(shown.Remarks), facts: shown.Kernels.querySelector(".facts").textContent, opened, boxes,
  graph: shown.Graph.querySelectorAll("title").map(t => t.textContent), tabs: Object.keys(shown),
  code: shown.Code.textContent.length }));
}
"""


def shown_by(page: str, tmp_path) -> dict:
    """What the page's script shows in each tab, as texts; all that can be clicked is."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("no JavaScript engine here")
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    file = tmp_path / "page.js"
    file.write_text(Path(__file__).with_name("dom.js").read_text() + script + TABS)
    done = subprocess.run([node, str(file)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("address", "tab"),
    [("", "Stages"), ("#Kernels", "Kernels"), ("#Nothing", "Stages"), ("#%zz", "Stages"), ("#%", "Stages")],
)
def test_an_address_opens_a_tab(program, address, tab, tmp_path):
    """Whatever stands behind the page's address: what names no tab, or is no text, opens the first."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("no JavaScript engine here")
    (script,) = re.findall(r"<script>(.*?)</script>", program.view(), re.DOTALL)
    chosen = """
    const pressed = [...nav.children].filter(b => b.attributes["aria-selected"] === "true").map(b => b.textContent);
    console.log(JSON.stringify(pressed));
    """
    file, dom = tmp_path / "page.js", Path(__file__).with_name("dom.js").read_text()
    file.write_text(f"{dom}\nlocation.hash = {json.dumps(address)};\n{script}\n{chosen}")
    done = subprocess.run([node, str(file)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [tab]


def test_words_are_found_in_folded_lines_and_kernels(tmp_path):
    def f(x, y):
        for i in range(30):
            x = smelt.sort(x * (i + 2.5))
        return smelt.erf(x), y + 0

    node = shutil.which("node")
    if node is None:
        pytest.skip("no JavaScript engine here")
    (script,) = re.findall(r"<script>(.*?)</script>", program_of(f, smelt.ones(8), smelt.ones(8)).view(), re.DOTALL)
    asked = """
    const section = name => [...main.children].find(e => e.attributes.id === "tab-" + name);
    const ask = (name, word) => {
      [...nav.children].find(b => b.textContent === name).click();
      const box = section(name).querySelectorAll("input").find(e => e.attributes.type === "search");
      box.value = word;
      for (const f of box.listeners.input) f({});
      const lines = section(name).querySelectorAll(".found").map(e => e.textContent.trim());
      const rows = section(name).querySelectorAll("tr").filter(e => e.attributes.class === "step" && !e.hidden);
      return [lines, section(name).textContent.includes("equal lines"), rows.length];
    };
    const asked = [["Stages", ""], ["Stages", "* 17.5"], ["Kernels", ""], ["Kernels", "ERF"]];
    console.log(JSON.stringify(asked.map(([tab, word]) => ask(tab, word))));
    """
    file = tmp_path / "page.js"
    file.write_text(Path(__file__).with_name("dom.js").read_text() + script + asked)
    done = subprocess.run([node, str(file)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    nothing, lines, kernels, some = json.loads(done.stdout)
    assert nothing[:2] == [[], True] and lines[1] and len(lines[0]) == 2 and all("* 17.5" in x for x in lines[0])
    assert kernels[2] > 20 and some[2] == 1


def test_what_is_shown_are_the_numbers_of_the_compiler(tmp_path):
    """Of a program with loops, and with products of several shapes, which are one op."""

    def f(w, u, xs):
        def step(h, x):
            h = smelt.tanh(h @ w + x @ u)
            return h, h.sum()

        h, sums = smelt.scan(step, smelt.zeros((96, 128)), xs)
        return (h @ w).sum() + (h.T @ h / 2).max() + sums.sum()

    def gradients(w, u, xs):
        return smelt.grad(f, argnums=(0, 1))(w, u, xs)

    program = program_of(gradients, smelt.ones((128, 128)), smelt.ones((32, 128)), smelt.ones((5, 96, 32)))
    cost, found = program.cost(), shown_by(program.view(), tmp_path)
    assert found["tabs"] == ["Stages", "Kernels", "Graph", "Memory", "Passes", "Code", "Remarks"]
    assert found["code"] > 500
    rows = found["kernels"][1:]
    assert [row[:3] for row in rows] == [[s.name, s.kind, str(s.times)] for s in cost.steps]
    assert [row[3:5] for row in rows] == [[scaled(s.least_bytes), scaled(s.moved_or_least)] for s in cost.steps]
    assert f"{scaled(cost.moved_bytes)}B moved" in found["summary"] and f"{scaled(cost.step_bytes)}B" in found["facts"]
    library = [s for s in cost.steps if s.kind == "library"]
    assert len({s.least_bytes for s in library}) > 1 and all(s.bytes_moved == s.least_bytes for s in library)
    records = program.executable.records
    assert [row[:2] for row in found["passes"][1:]] == [[r.stage, f"{r.seconds * 1e3:.2f}"] for r in records]
    changed = {row[0] for row in found["passes"][1:] if not row[3].endswith("changed nothing")}
    assert changed == set(program.executable.passed.names) - program.executable.passed.unchanged - {"graph"}
    assert found["boxes"] == len(cost.lifetimes) > 0
    drawn = [node.split(" : ")[0] for node in found["graph"]]
    assert {"w", "u", "xs", "scan"} <= set(drawn)
    assert found["opened"] == sum(s.kind != "library" and s.times == 1 for s in cost.steps) + drawn.count("scan")
    texts = {(r.kind, r.rule, r.text) for r in program.remarks()}
    assert {(row[1], row[2], row[4]) for row in found["remarks"][1:]} == texts
    assert any("scan is no kernel: what it runs are kernels" in text for _, _, text in texts)


def scaled(number: float) -> str:
    """As the page writes numbers."""
    for limit, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= limit:
            return f"{float(f'{number / limit:.3g}'):g} {prefix}"
    return f"{number:g} "


@pytest.fixture(scope="module")
def large():
    """A program of a thousand ops that have little to do with each other, with many results."""

    def f(x, y):
        choose, values = random.Random(0), [x, y]
        for _ in range(1000):
            a, b = (choose.choice(values[-40:]) for _ in range(2))
            op = choose.choice((smelt.add, smelt.multiply, smelt.maximum))
            values.append(op(a, choose.choice((b, smelt.sin(b)))))
        return values[::20]

    return program_of(f, smelt.ones((64, 64)), smelt.ones((64, 64)))


def test_a_thousand_ops(large):
    """The page stays small: equal stages are there once, code as far as there is room, results not one by one."""
    page = large.view()
    assert len(page) < 5_000_000
    raw = json.loads(re.search(r"^const data = (.*);$", page, re.MULTILINE)[1])
    data = data_of(page)
    assert sum(s["lines"] is None for s in raw["stages"]) >= len(large.executable.passed.unchanged)
    assert sum(len(text) for found in data["code"].values() for text in found.values()) <= MOST
    assert all(len(text) < MAX_TEXT + 200 for text in data["texts"].values())
    assert {"kernel", "llvm", "msl"} == data["code"].keys() and "llvm" not in data["whole"]
    (drawn,) = (d for d in data["drawings"] if d["name"] == "main")
    assert not any(n["kind"] == "result" for n in drawn["nodes"])
    shown = sorted(i for n in drawn["nodes"] for i in n.get("results", ()))
    assert shown == list(range(len(range(0, 1002, 20))))


def test_in_a_browser(large, tmp_path):
    """Each tab is filled without an error, where there is a browser."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no browser here")
    file = tmp_path / "page.html"
    large.view(file)
    least = {"Stages": 20, "Kernels": 20, "Graph": 20, "Memory": 20, "Passes": 10, "Code": 3, "Remarks": 20}
    for tab, count in least.items():
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--virtual-time-budget=8000"]
        command = [browser, *flags, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", f"{file.as_uri()}#{tab}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert "CONSOLE" not in done.stderr, done.stderr
        shown = re.search(rf'<section id="tab-{tab}" class="shown".*?</section>', done.stdout, re.DOTALL)
        assert shown and len(re.findall(r"<(?:div|tr|g|option)\b", shown[0])) >= count, tab


def test_layers():
    assert draw(0, []) == []
    assert draw(3, [(0, 2), (1, 2)]) == [(0, 0), (1, 0), (0, 1)]
    places = draw(200, [(i, i + 1) for i in range(199)])
    assert [y for _, y in places] == list(range(200))
