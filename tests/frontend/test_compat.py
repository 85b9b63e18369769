"""A program written for MLX runs as it is."""

from __future__ import annotations

import ast
import importlib.util
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.functions.known_indices import Refusal
from smelt.lazy.printing import Layout

PROGRAM = """
import sys
from functools import partial

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
from mlx.nn.layers.base import Module
from mlx.nn.losses import cross_entropy
from mlx.utils import tree_flatten, tree_map


class MLP(Module):
    def __init__(self, layers, inputs, hidden, outputs):
        super().__init__()
        sizes = [inputs] + [hidden] * layers + [outputs]
        self.layers = [nn.Linear(i, o) for i, o in zip(sizes[:-1], sizes[1:])]

    def __call__(self, x):
        for layer in self.layers[:-1]:
            x = nn.relu(layer(x))
        return self.layers[-1](x)


def loss_fn(model, x, y):
    return cross_entropy(model(x), y, reduction="mean")


mx.random.seed(0)
model = MLP(2, 4, 16, 2)
mx.eval(model.parameters())
optimizer = optim.Adam(learning_rate=2e-2)
state = [model.state, optimizer.state]


@partial(mx.compile, inputs=state, outputs=state)
def step(x, y):
    loss, grads = nn.value_and_grad(model, loss_fn)(model, x, y)
    optimizer.update(model, grads)
    return loss


x = mx.random.normal((64, 4))
y = (x[:, 0] > x[:, 1]).astype(mx.int32)
losses = []
for _ in range(30):
    loss = step(x, y)
    mx.eval(state)
    losses.append(loss.item())
count = sum(p.size for _, p in tree_flatten(model.parameters()))
print(losses[-1] < 0.2 < losses[0], count, sys.argv[1:], mx.__name__)
"""


def test_an_unmodified_program(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("")
    (tmp_path / "train.py").write_text("import helper\n" + PROGRAM)
    command = [sys.executable, "-m", "smelt.compat", str(tmp_path / "train.py"), "--epochs", "3"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "True 386 ['--epochs', '3'] smelt\n"


def _run(*arguments: str, **options: Any) -> str:
    command = [sys.executable, "-m", "smelt.compat", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_modules_packages_and_code(tmp_path: Path) -> None:
    """What Python runs by ``-m`` and ``-c``: programs that are installed are mostly run so."""
    package = tmp_path / "trainer"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text("from . import step\nstep.main()\n")
    (package / "step.py").write_text(
        "import sys, mlx.core as mx\ndef main():\n    print(mx.array([1.0]) + 1, *sys.argv[1:])\n"
        "if __name__ == '__main__':\n    main()\n"
    )
    for name in ("trainer", "trainer.step"):
        assert _run("-m", name, "-m", "x", cwd=tmp_path) == "array([2], dtype=float32) -m x\n"
    code = "import sys, trainer.step; trainer.step.main(); print(__name__, sys.argv)"
    assert _run("-c", code, "x", cwd=tmp_path) == "array([2], dtype=float32) x\n__main__ ['-c', 'x']\n"


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_processes_of_a_program(tmp_path: Path, method: str) -> None:
    """Workers that import the program anew, and other programs, have smelt under MLX's names as well."""
    (tmp_path / "train.py").write_text(
        f"""
import multiprocessing, subprocess, sys
import mlx.core as mx
from mlx.utils import tree_map

def work(n):
    return mx.arange(n).sum().item()

if __name__ == "__main__":
    with multiprocessing.get_context("{method}").Pool(1) as pool:
        print(pool.map(work, [3, 4]))
    subprocess.run([sys.executable, "-c", "import mlx.core as mx, mlx.nn; print(mx.__name__, mlx.nn.__name__)"])
"""
    )
    assert _run(str(tmp_path / "train.py")) == "[3, 6]\nsmelt smelt.nn\n"


@pytest.mark.parametrize("environment", ["{}", "{b'A': b'b', b'PYTHONPATH': b'/nowhere'}", "None"])
def test_processes_with_an_environment_of_their_own(tmp_path: Path, environment: str) -> None:
    """Programs that are started without the variables of this one, also by those that were started so."""
    (tmp_path / "train.py").write_text(
        f"""
import os, subprocess, sys
import mlx.core as mx

os.environ.clear()
inner = "import mlx.core as mx; print(mx.__name__, mx.__version__)"
outer = f"import os, subprocess, sys, mlx.core; subprocess.run([sys.executable, '-c', {{inner!r}}], env={{{{}}}})"
for code in (inner, outer):
    subprocess.run([sys.executable, "-c", code], env={environment}, check=True)
"""
    )
    assert _run(str(tmp_path / "train.py")) == "smelt 0.32.4\nsmelt 0.32.4\n"


def test_the_version_of_the_module(tmp_path: Path) -> None:
    """That of MLX whose names these are, as a module and as a package; smelt's own is its package's."""
    (tmp_path / "train.py").write_text(
        """
import importlib.metadata
import mlx.core as mx

assert tuple(map(int, mx.__version__.split("."))) >= (0, 25)
print(mx.__version__ == importlib.metadata.version("mlx"))
"""
    )
    assert _run(str(tmp_path / "train.py")) == "True\n"


def test_what_cannot_be_done() -> None:
    code = "import sys, types; sys.modules['mlx'] = types.ModuleType('mlx'); import smelt; smelt.compat.install()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "SettingError: smelt.compat.install: MLX itself has been imported already" in done.stderr
    done = subprocess.run([sys.executable, "-m", "smelt.compat"], capture_output=True, text=True)
    assert done.returncode == 2 and done.stdout.startswith("usage: ")
    done = subprocess.run([sys.executable, "-m", "smelt.compat", "trian.py"], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr == "smelt.compat: there is no file trian.py\n"


def test_every_module_stands_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in sys.modules if n.partition(".")[0] == "mlx"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(smelt.Dtype, "module", smelt.Dtype.module)  # as it is afterwards
    monkeypatch.setattr(smelt, "__version__", smelt.__version__)
    monkeypatch.setattr(Layout, "of_mlx", Layout.of_mlx)
    monkeypatch.setattr(Refusal, "of_mlx", Refusal.of_mlx)
    viewed = smelt.zeros(2)
    view = np.asarray(viewed)
    kinds = (type(smelt.zeros(2)), type(viewed), type(smelt.float32))
    for kind in kinds:
        monkeypatch.setattr(kind, "__module__", kind.__module__)
    smelt.compat.install()
    import mlx.core as mx  # type: ignore[import-not-found]
    import mlx.core.cuda  # type: ignore[import-not-found]
    import mlx.nn as nn  # type: ignore[import-not-found]
    from mlx.nn.layers import Linear, relu, transformer  # type: ignore[import-not-found]
    from mlx.optimizers.schedulers import cosine_decay  # type: ignore[import-not-found]

    assert (relu, Linear, nn.activations.relu) == (smelt.nn.relu, smelt.nn.Linear, smelt.nn.relu)
    assert mlx.core.cuda is smelt.cuda
    assert mx is smelt and nn is smelt.nn and transformer.Transformer is nn.Transformer
    assert cosine_decay is smelt.optimizers.cosine_decay and mx.random.normal is smelt.random.normal
    assert importlib.util.find_spec("mlx") is not None and importlib.util.find_spec("mlx.core") is not None
    smelt.compat.install()  # again
    assert [str(d) for d in (mx.bfloat16, mx.bool_)] == ["mlx.core.bfloat16", "mlx.core.bool"]
    assert getattr(mx, str(mx.zeros(2).dtype).rpartition(".")[2]) is mx.float32
    assert [kind.__module__ for kind in kinds] == ["mlx.core"] * 3 and view.shape == (2,)
    assert kinds[0].__name__ == kinds[1].__name__ == "array"
    assert pickle.loads(pickle.dumps(viewed)).tolist() == [0, 0] and pickle.loads(pickle.dumps(mx.array)) is smelt.array
    for name in [n for n in sys.modules if n.partition(".")[0] == "mlx"]:
        monkeypatch.delitem(sys.modules, name)


def test_other_packages_below_the_name(tmp_path: Path) -> None:
    """As `mlx.data` is: a package of its own, installed into the folder ``mlx`` whether MLX is there or not."""
    package = tmp_path / "mlx" / "data"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("import mlx.core as mx\nx = mx.array([1.0])\n")
    (tmp_path / "mlx" / "core.py").write_text("raise ImportError('MLX itself')\n")
    program = tmp_path / "train.py"
    program.write_text("import mlx.data as dx, mlx.core as mx\nprint(dx.x, mx.__name__)\n")
    assert _run(str(program)) == "array([1], dtype=float32) smelt\n"
    (tmp_path / "elsewhere.py").write_text(program.read_text())
    (tmp_path / "mlx" / "__init__.py").write_text("raise ImportError('MLX itself')\n")
    assert _run(str(tmp_path / "elsewhere.py")) == "array([1], dtype=float32) smelt\n"


@pytest.mark.parametrize("transform", [smelt.compile, smelt.vmap])
@pytest.mark.parametrize("ask", [smelt.eval, lambda x: x.tolist(), lambda x: x.item(), lambda x: bool(x)])
def test_programs_know_that_they_are_traced_by_the_message(transform, ask) -> None:
    """MLX has no other sign of it, so programs that time their kernels, where they can, look for these words."""
    with pytest.raises(ValueError, match="during function transformations"):
        transform(lambda x: ask(x.sum()))(smelt.ones((3,)))


@pytest.mark.parametrize("transform", [smelt.compile, smelt.vmap])
def test_programs_go_on_without_async_eval_where_they_are_traced(transform) -> None:
    """They know it by MLX's message."""

    def begun(x: smelt.array) -> smelt.array:
        y = x * 2
        try:
            smelt.async_eval(y, [y])
        except ValueError as error:
            if "Not allowed inside a graph transformation" not in str(error):
                raise
        return y

    assert transform(begun)(smelt.ones((3,))).tolist() == [2, 2, 2]


HOSTS = """
import argparse, json, sys
from mlx._distributed_utils.common import Host, Hostfile
from mlx._distributed_utils.launch import launch_ring

for said in ([{"ssh": "localhost"}, {"ssh": "localhost", "ips": ["127.0.0.1"]}], None):
    with open("hosts.json", "w") as file:
        json.dump(said or read.to_json(), file)
    read = Hostfile.from_file("hosts.json")
    print(read.backend, [(host.rank, host.ssh_hostname, host.ips) for host in read.hosts])
for bad in ("[]]", '[{"name": "a"}]', "3"):
    with open("bad.json", "w") as file:
        file.write(bad)
    for name in ("bad.json", "none.json"):
        try:
            Hostfile.from_file(name)
        except ValueError as error:
            print(name in str(error))
print(Hostfile.from_list("10.0.0.1,b", 2).hosts[1:3])
try:
    launch_ring(None, [Host(0, "localhost", [], []), Host(1, "elsewhere", [], [])], argparse.Namespace(), ["x.py"])
except RuntimeError as error:
    print("elsewhere" in str(error))
launch_ring(None, read.hosts, argparse.Namespace(env=["SAID=so"], cwd="."), [sys.executable, "-c", "print('ran')"])
"""


def test_files_of_hosts_and_launching_on_them(tmp_path: Path) -> None:
    """Programs that start others on the hosts of a file import this from a private module of MLX."""
    (tmp_path / "smelt_launch.py").write_text(
        "import os, subprocess\nrun = subprocess.run\n"
        "def seen(command, **options):\n"
        "    print(command[1:-1], options['env']['SAID'], options['cwd'], flush=True)\n"
        "    return run(['true'])\n"
        "subprocess.run = seen\n"
    )
    (tmp_path / "train.py").write_text("import smelt_launch\n" + HOSTS)
    lines = _run("train.py", cwd=tmp_path).splitlines()
    assert lines[0] == lines[1] == " [(0, 'localhost', []), (1, 'localhost', ['127.0.0.1'])]"
    assert lines[2:8] == ["True"] * 6
    assert lines[8].startswith("[Host(rank=1, ssh_hostname='10.0.0.1', ips=['10.0.0.1']") and "'b'" in lines[8]
    assert lines[9] == "True"
    assert lines[10] == "['-m', 'smelt', 'launch', '-n', '2', '--backend', 'mpi', '-c'] so ."


def test_the_version_that_programs_ask_for() -> None:
    """Of the package, as it is installed; what else is installed is found as ever, and what is not is not."""
    code = """
from importlib import metadata
import mlx.core
print(metadata.version("mlx"), metadata.version("numpy") == __import__("numpy").__version__)
print([d.metadata["Name"] for d in metadata.distributions() if d.metadata["Name"] == "mlx"])
try:
    metadata.version("mlx-none")
except metadata.PackageNotFoundError:
    print("none")
"""
    assert _run("-c", code) == "0.32.4 True\n['mlx']\nnone\n"


def test_arrays_print_as_those_of_mlx() -> None:
    code = """
import mlx.core as mx
for x in ([1, 20, 3], [True, False], 2.5, [], [[], []], [1 - 2j], list(range(8)), [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]):
    print(mx.array(x))
print(mx.array([[1.5, 10]] * 7, mx.bfloat16))
"""
    assert _run("-c", code) == """array([1, 20, 3], dtype=int32)
array([True, False], dtype=bool)
array(2.5, dtype=float32)
array([], dtype=float32)
array([[],
       []], dtype=float32)
array([1-2j], dtype=complex64)
array([0, 1, 2, ..., 5, 6, 7], dtype=int32)
array([[[1, 2],
        [3, 4]],
       [[5, 6],
        [7, 8]]], dtype=int32)
array([[1.5, 10],
       [1.5, 10],
       [1.5, 10],
       ...,
       [1.5, 10],
       [1.5, 10],
       [1.5, 10]], dtype=bfloat16)
"""



#: Expressions with an index out of range, and their values: the nearest element is read, and nothing is written.
OUTSIDE = {
    "x[at]": [[1, 2], [3, 4]],
    "x[mx.array([-5, 1])]": [[1, 2], [3, 4]],
    "put(mx.array(x))": [[9, 9], [3, 4]],
    "mx.take(x, at, axis=1)": [[1, 2], [3, 4]],
    "mx.take_along_axis(x, at[:, None], axis=1)": [[1], [4]],
    "x.at[at].add(5.0)": [[6, 7], [3, 4]],
    "mx.put_along_axis(x, at[:, None], mx.array(8.0), axis=1)": [[8, 2], [3, 4]],
    "model(at)": [[1, 2], [3, 4]],
    "nn.losses.nll_loss(x, at)": [-1, -4],
    "mx.gather_mm(x[:, None], mx.stack([x, 2 * x]), rhs_indices=at)[:, 0]": [[7, 10], [30, 44]],
    "mx.grad(lambda x: x[at].sum())(x)": [[1, 1], [1, 1]],
}
PRINTING = """
import os, sys, warnings
import mlx.core as mx, mlx.nn as nn

x = mx.array([[1.0, 2.0], [3.0, 4.0]])
at = mx.array([0, 7])
model = nn.Sequential(nn.Embedding(2, 2))
model.layers[0].weight = x

def put(y):
    y[at] = 9.0
    return y

def said(f):
    try:
        return f().tolist()
    except IndexError:
        return "IndexError"

for f in (
    CASES
):
    with warnings.catch_warnings(record=True) as seen:
        found = said(f)
        assert said(f) == found
    print([found, [(os.path.basename(w.filename), w.lineno == f.__code__.co_firstlineno) for w in seen]])
print(said(lambda: x[3]))
"""


def test_arrays_with_indices_out_of_range_warn_once_a_line(tmp_path: Path) -> None:
    """As MLX's programs go on; sizes of small models in their tests often have no room for their tokens."""
    program = tmp_path / "train.py"
    cases = "\n".join(f"    lambda: {case}," for case in OUTSIDE)
    program.write_text(PRINTING.replace("    CASES", cases))
    *lines, number = _run(str(program)).splitlines()
    assert number == "IndexError"
    for line, (case, value) in zip(lines, OUTSIDE.items(), strict=True):
        found, warned = ast.literal_eval(line)
        assert found == value and len(warned) == 1 and warned[0][0] == "train.py", (case, line)
        assert warned[0][1] or case.startswith("put"), case  # where the index stands
    checked = _run(str(program), env={**os.environ, "SMELT_CHECK": "1"}).splitlines()
    assert [line.startswith("['IndexError', []]") for line in checked[:-1]] == [True] * len(OUTSIDE)


def test_trees_of_arrays_are_plain_under_other_names() -> None:
    """What arrays and dtypes are called does not decide how the trees that hold them are taken apart."""
    program = """
import smelt.compat
smelt.compat.install()
import mlx.core as mx
from smelt.lazy import tree_nodes
from smelt.lazy.plain_trees import PlainStructure

for leaf in (mx.zeros(2), mx.float32, None, 1.5):
    for tree in ([leaf], {"a": [leaf, (mx.zeros(2), leaf)]}):
        assert isinstance(tree_nodes.flatten(tree)[1], PlainStructure), tree
"""
    subprocess.run([sys.executable, "-c", program], check=True)
