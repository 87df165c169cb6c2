"""Attention in a loop over programs: the first products of a program are issued beside the end of the one before."""

import re

import numpy as np
import pytest
from kernel_harness import passes_of, run_kernel

import tilewright
import tilewright.language as tl
from tilewright.backends.compiler import GPUTarget
from tilewright.compiler import ASTSource

TYPES = {"Q": "*fp16", "K": "*fp16", "V": "*fp16", "OUT": "*fp32"}


@tilewright.jit
def attend(Q, K, V, OUT, ROWS, KEYS, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """Attention of rows to any number of keys, zero included: then the result is zero."""
    first = tl.program_id(0) * BM
    q = tl.make_tensor_descriptor(Q, shape=[ROWS, D], strides=[D, 1], block_shape=[BM, D]).load([first, 0])
    keys = tl.make_tensor_descriptor(K, shape=[KEYS, D], strides=[D, 1], block_shape=[BN, D])
    values = tl.make_tensor_descriptor(V, shape=[KEYS, D], strides=[D, 1], block_shape=[BN, D])
    out = tl.make_tensor_descriptor(OUT, shape=[ROWS, D], strides=[D, 1], block_shape=[BM, D])
    m = tl.full((BM,), -float("inf"), tl.float32)
    d = tl.full((BM,), 1e-20, tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for n in tl.range(0, KEYS, BN, warp_specialize=True):
        s = tl.dot(q, keys.load([n, 0]).T)
        new = tl.maximum(m, tl.max(s, 1))
        p = tl.math.exp2(s - new[:, None])
        scale = tl.math.exp2(m - new)
        d = d * scale + tl.sum(p, 1)
        v = values.load([n, 0])
        acc = tl.dot(p.to(v.dtype), v, acc * scale[:, None])
        m = new
    out.store([first, 0], acc / d[:, None])


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("programs", "keys", "warps"), [(1, 128, 8), (5, 64, 8), (4, 256, 8), (3, 0, 8), (3, 128, 16)])
def test_attend(programs, keys, warps, seed):
    """Two CTAs work on all programs; four warpgroups take turns."""
    block, dim = 16 * warps, 64
    rows = block * programs
    rng = np.random.default_rng(7)
    q, k, v = (rng.standard_normal((n, dim)).astype(np.float16) for n in (rows, max(keys, 1), max(keys, 1)))
    out = np.full((rows, dim), np.nan, np.float32)
    arguments = {"Q": q, "K": k, "V": v, "OUT": out, "ROWS": rows, "KEYS": keys}
    run_kernel(attend, (programs,), arguments, {"D": dim, "BM": block, "BN": 64}, TYPES, seed=seed, num_warps=warps, persistent=True)
    if not keys:
        assert not out.any()
        return
    scores = q.astype(np.float64) @ k.astype(np.float64).T
    p = np.exp2(scores - scores.max(1, keepdims=True))
    assert np.abs(out - p @ v.astype(np.float64) / p.sum(1, keepdims=True)).max() < 3e-3


@pytest.mark.parametrize("seed", range(2))
def test_clusters(seed):
    """Two clusters of two CTAs work on all programs; each CTA loads half of the keys and values for both."""
    rows, keys, dim = 3 * 256, 192, 64
    rng = np.random.default_rng(8)
    q, k, v = (rng.standard_normal((n, dim)).astype(np.float16) for n in (rows, keys, keys))
    out = np.full((rows, dim), np.nan, np.float32)
    arguments = {"Q": q, "K": k, "V": v, "OUT": out, "ROWS": rows, "KEYS": keys}
    run_kernel(attend, (3,), arguments, {"D": dim, "BM": 256, "BN": 64}, TYPES, seed=seed, num_warps=8, num_ctas=2)
    scores = q.astype(np.float64) @ k.astype(np.float64).T
    p = np.exp2(scores - scores.max(1, keepdims=True))
    assert np.abs(out - p @ v.astype(np.float64) / p.sum(1, keepdims=True)).max() < 3e-3


def test_what_is_issued_early():
    """The loop over programs carries the first products' results, waits for the last products with the next first ones in flight, and has a
    twin without products."""
    types = {**TYPES, "ROWS": "i32", "KEYS": "i32"}
    text = str(passes_of(attend, types, {"D": 64, "BM": 128, "BN": 64}, num_warps=8, num_stages=2, persistent=True)[0])
    assert text.count("tile.programs") == 2, "with products and without"
    loop = text[: text.index("tile.programs")].rsplit("scf.for", 1)[1]
    behind = loop[loop.index("tilegpu.turns") :]
    waits = re.findall(r"(tilegpu\.wgmma |tilegpu\.mbarrier_wait.*pred|tilegpu\.wgmma_wait num = \d|tma_store )", behind)
    issue, full = "tilegpu.wgmma ", "tilegpu.mbarrier_wait"
    assert [w if w.startswith(("tilegpu.wgmma", "tma")) else full for w in waits] == [
        *(issue, full, full, issue),
        *("tilegpu.wgmma_wait num = 1", "tma_store ", "tilegpu.wgmma_wait num = 0"),
    ]


@pytest.mark.parametrize(("dim", "block", "ctas", "moved"), [(128, 128, 1, False), (256, 64, 1, True), (128, 128, 2, True)])
def test_rescaling(dim, block, ctas, moved):
    """Where the accumulator is larger than what exponentials are taken of, or CTAs wait for each other, it is rescaled beside the next
    first product, and only if a maximum of the warp's rows has changed."""
    types = {**TYPES, "ROWS": "i32", "KEYS": "i32"}
    text = str(passes_of(attend, types, {"D": dim, "BM": 128 * ctas, "BN": block}, num_warps=8, num_stages=2, num_ctas=ctas)[0])
    assert ("tilegpu.often_one" in text) == moved
    if moved:
        loop = text[text.index("scf.while") :]
        issue = loop[loop.index("tilegpu.often_one") :]
        assert loop.index("math.exp2") < loop.index("tilegpu.wgmma %") < loop.index("tilegpu.often_one") and "tilegpu.wgmma %" in issue


def test_code_of_the_loop():
    constants = {"D": 128, "BM": 128, "BN": 128}
    signature = {name: "constexpr" if name in constants else TYPES.get(name, "i32") for name in attend.arg_names}
    source = ASTSource(attend, signature, constants, {(i,): [["tt.divisibility", 16]] for i in range(6)})
    kernel = tilewright.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 8, "num_stages": 2, "persistent": True})
    assert kernel.n_spills == 0 and not kernel.metadata.ptxas_warnings
    assert kernel.asm["ptx"].count("wgmma.mma_async") == 5 * 8, "first products in three places, the others in two"
