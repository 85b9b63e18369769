"""A decoder of Llama's kind: rotary positions, grouped queries, a cache of keys and values, packed weights, sampling.

On random weights it writes nonsense, but at the speed of a real one. ``--weights`` reads a .safetensors or .gguf file
with the names of the parameters here; ``--save`` writes one. Run it: ``python examples/llama.py --bits 4``.
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np

import smelt
from smelt import nn


class Attention(nn.Module):
    def __init__(self, dims, heads, kv_heads, growing):
        super().__init__()
        size, self.growing = dims // heads, growing
        self.heads, self.kv_heads, self.scale = heads, kv_heads, size**-0.5
        self.q_proj = nn.Linear(dims, heads * size, bias=False)
        self.k_proj = nn.Linear(dims, kv_heads * size, bias=False)
        self.v_proj = nn.Linear(dims, kv_heads * size, bias=False)
        self.o_proj = nn.Linear(heads * size, dims, bias=False)
        self.rope = nn.RoPE(size)

    def __call__(self, x, cache, position):
        batch, length, _ = x.shape

        def split(y, heads):
            return y.reshape(batch, length, heads, -1).transpose(0, 2, 1, 3)

        q = self.rope(split(self.q_proj(x), self.heads), offset=position)
        k = self.rope(split(self.k_proj(x), self.kv_heads), offset=position)
        v = split(self.v_proj(x), self.kv_heads)
        if self.growing:
            keys, values = (smelt.concatenate(parts, axis=2) for parts in zip(cache, (k, v)))
        else:
            # The cache has one size, so one program serves all positions; what lies behind is masked.
            at = smelt.stack([smelt.array(0), smelt.array(0), position, smelt.array(0)])
            keys, values = (smelt.slice_update(old, new, at, (0, 1, 2, 3)) for old, new in zip(cache, (k, v)))
        places = smelt.arange(keys.shape[2])
        mask = places[None, :] <= position + smelt.arange(length)[:, None]
        found = smelt.fast.scaled_dot_product_attention(q, keys, values, scale=self.scale, mask=mask)
        return self.o_proj(found.transpose(0, 2, 1, 3).reshape(batch, length, -1)), (keys, values)


class Layer(nn.Module):
    def __init__(self, dims, heads, kv_heads, hidden, growing):
        super().__init__()
        self.self_attn = Attention(dims, heads, kv_heads, growing)
        self.input_layernorm, self.post_attention_layernorm = nn.RMSNorm(dims), nn.RMSNorm(dims)
        self.gate_proj = nn.Linear(dims, hidden, bias=False)
        self.up_proj = nn.Linear(dims, hidden, bias=False)
        self.down_proj = nn.Linear(hidden, dims, bias=False)

    def __call__(self, x, cache, position):
        found, cache = self.self_attn(self.input_layernorm(x), cache, position)
        x = x + found
        y = self.post_attention_layernorm(x)
        return x + self.down_proj(nn.silu(self.gate_proj(y)) * self.up_proj(y)), cache


class Llama(nn.Module):
    def __init__(self, vocabulary, dims, layers, heads, kv_heads, hidden, growing=False):
        super().__init__()
        self.embed_tokens = nn.Embedding(vocabulary, dims)
        self.layers = [Layer(dims, heads, kv_heads, hidden, growing) for _ in range(layers)]
        self.norm = nn.RMSNorm(dims)
        self.kv_heads, self.size, self.growing = kv_heads, dims // heads, growing

    def __call__(self, tokens, caches, position):
        """Logits after the last token, and the caches with these tokens."""
        x, kept = self.embed_tokens(tokens), []
        for layer, cache in zip(self.layers, caches):
            x, cache = layer(x, cache, position)
            kept.append(cache)
        return self.embed_tokens.as_linear(self.norm(x[:, -1])), kept

    def caches(self, batch, length):
        """Of the dtype of the weights; those that grow are empty."""
        shape = (batch, self.kv_heads, 0 if self.growing else length, self.size)
        dtype = self.norm.weight.dtype
        return [(smelt.zeros(shape, dtype), smelt.zeros(shape, dtype)) for _ in self.layers]


def sampled(logits, seen, temperature=0.8, top_k=50, top_p=0.95, repetition=1.1):
    """One token for each row of logits, [batch, vocabulary]; `seen` marks those that have been there."""
    logits = smelt.where(seen, smelt.where(logits > 0, logits / repetition, logits * repetition), logits)
    if temperature == 0:
        return smelt.argmax(logits, axis=-1)
    logits = logits / temperature
    best = smelt.sort(logits, axis=-1)[:, ::-1]
    top_k = min(top_k, logits.shape[-1])
    logits = smelt.where(logits < best[:, top_k - 1 : top_k], -smelt.inf, logits)
    # The fewest tokens that have the probability top_p together; of those, the least one's logit is the bound.
    before = smelt.cumsum(smelt.softmax(best, axis=-1), axis=-1) - smelt.softmax(best, axis=-1)
    bound = smelt.min(smelt.where(before < top_p, best, smelt.inf), axis=-1, keepdims=True)
    return smelt.random.categorical(smelt.where(logits < bound, -smelt.inf, logits))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--dims", type=int, default=512)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--vocabulary", type=int, default=8192)
    parser.add_argument("--bits", type=int, choices=[2, 3, 4, 5, 6, 8], help="pack the weights in so many bits")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--prompt", type=int, default=64, help="how many tokens to begin with")
    parser.add_argument("--tokens", type=int, default=128, help="how many to write")
    parser.add_argument("--cache", choices=["fixed", "growing"], default="fixed", help="one size, or that of the text")
    parser.add_argument("--weights", help="a .safetensors or .gguf file")
    parser.add_argument("--save", help="write the weights to such a file")
    parser.add_argument("--temperature", type=float, default=0.8, help="0: always the likeliest token")
    parser.add_argument("--top-k", type=int, default=50, help="of so many tokens")
    parser.add_argument("--top-p", type=float, default=0.95, help="of the fewest that are so likely together")
    parser.add_argument("--repetition", type=float, default=1.1, help="how much less likely what has been there is")
    options = parser.parse_args()
    for name, number in vars(options).items():
        if isinstance(number, int) and number < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1")
    if not 0 <= options.temperature < math.inf or not 0 < options.repetition < math.inf or not 0 < options.top_p <= 1:
        parser.error("--temperature must not be negative, --repetition above 0, --top-p above 0 and at most 1")
    if options.dims < 64 or options.dims % 64:
        parser.error("--dims is a multiple of 64, the size of a head")

    smelt.random.seed(0)
    heads = options.dims // 64
    hidden = options.dims * 8 // 3 // 64 * 64
    growing = options.cache == "growing"
    model = Llama(options.vocabulary, options.dims, options.layers, heads, max(1, heads // 4), hidden, growing)
    if options.weights:
        model.load_weights(list(smelt.load(options.weights).items()))
    if options.save:
        save = smelt.save_gguf if options.save.endswith(".gguf") else smelt.save_safetensors
        save(options.save, dict(smelt.utils.tree_flatten(model.parameters())))
    count = sum(x.size for _, x in smelt.utils.tree_flatten(model.parameters()))
    if options.bits:
        nn.quantize(model, bits=options.bits)
    size = sum(x.nbytes for _, x in smelt.utils.tree_flatten(model.parameters()))
    print(f"{count:,} parameters, {size / 2**20:.1f} MiB")

    total = options.prompt + options.tokens
    caches = model.caches(options.batch, total)
    seen = smelt.zeros((options.batch, options.vocabulary), smelt.bool_)
    rows = smelt.arange(options.batch)
    state = [model.state, smelt.random.state]

    def advance(tokens, caches, seen, position):
        logits, caches = model(tokens, caches, position)
        seen = seen.at[rows[:, None], tokens].maximum(True)
        how = (options.temperature, options.top_k, options.top_p, options.repetition)
        return sampled(logits, seen, *how)[:, None], caches, seen

    # A cache that grows has another size at each token: the trace on symbols serves all of them.
    advance = smelt.compile(advance, inputs=state, outputs=smelt.random.state, shapeless=growing)
    prompt = np.random.default_rng(0).integers(0, options.vocabulary, (options.batch, options.prompt)).astype(np.int32)
    start = time.perf_counter()
    token, caches, seen = advance(smelt.array(prompt), caches, seen, smelt.array(0))
    smelt.eval(token, caches, seen)
    seconds = time.perf_counter() - start
    print(f"{options.batch} × {options.prompt} tokens read in {seconds:.2f} s, compilation included")
    written, times = [token], []
    for i in range(options.tokens - 1):
        start = time.perf_counter()
        token, caches, seen = advance(token, caches, seen, smelt.array(options.prompt + i))
        smelt.eval(token, caches, seen)
        times.append(time.perf_counter() - start)
        written.append(token)
    print("first sequence:", *smelt.concatenate(written, axis=1)[0].tolist()[:16], "...")
    if times:
        print(f"first token {times[0]:.2f} s, then {options.batch / np.median(times):.1f} tokens per second")


if __name__ == "__main__":
    main()
