"""Kernels with roles of warps: their results on the test machine, with warpgroups that run apart, and what they are made of."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from descriptor_kernels import attention
from kernel_harness import passes_of, run_kernel

import tilewright
import tilewright.compiler
import tilewright.language as tl
from tilewright.backends.compiler import GPUTarget


@tilewright.jit
def gemm(A, B, C, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STEP: tl.constexpr, WS: tl.constexpr, KIND: tl.constexpr):
    """C = A B^T, to which KIND "columns" adds the number of the column; "number" halves what is above zero, and leaves no less."""
    across = tl.cdiv(N, BN)
    a = tl.make_tensor_descriptor(A, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    b = tl.make_tensor_descriptor(B, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
    c = tl.make_tensor_descriptor(C, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    for t in tl.range(tl.program_id(0), tl.cdiv(M, BM) * across, STEP, warp_specialize=WS):
        row = t // across * BM
        col = t % across * BN
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(tl.cdiv(K, BK)):
            acc = tl.dot(a.load([row, k * BK]), b.load([col, k * BK]).T, acc)
        if KIND == "columns":
            acc = acc + tl.arange(0, BN).to(tl.float32)[None, :]
        elif KIND == "number":
            acc = tl.maximum(acc * 0.5, 0.0)
        c.store([row, col], acc.to(C.dtype.element_ty))


@tilewright.jit
def two_products(A, B, C, OUT, K1, K2, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Two loops of one kind of ring, the second only where its extent is not zero."""
    a = tl.make_tensor_descriptor(A, shape=[BM, K1], strides=[K1, 1], block_shape=[BM, BK])
    b = tl.make_tensor_descriptor(B, shape=[BN, K1], strides=[K1, 1], block_shape=[BN, BK])
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(0, K1, BK, warp_specialize=True):
        acc = tl.dot(a.load([0, k]), b.load([0, k]).T, acc)
    if K2 > 0:
        c = tl.make_tensor_descriptor(C, shape=[BN, K1], strides=[K1, 1], block_shape=[BN, BK])
        for k in tl.range(0, K2, BK, warp_specialize=True):
            acc = tl.dot(a.load([0, k]), c.load([0, k]).T, acc)
    rows = tl.arange(0, BM)
    cols = tl.arange(0, BN)
    tl.store(OUT + rows[:, None] * BN + cols[None, :], acc)


@tilewright.jit
def products_of_a_list(A, B, C, ENDS, TOTAL, N, K, E: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Rows ENDS[g - 1] to ENDS[g] of C are those of A times B[g]^T; a program finds its group g by itself."""
    pid = tl.program_id(0)
    g = tl.arange(0, E)
    end = tl.load(ENDS + g)
    begin = tl.load(ENDS + g - 1, mask=g > 0, other=0)
    tiles = tl.cdiv(end - begin, BM) * tl.cdiv(N, BN)
    last = tl.cumsum(tiles, 0)
    group = tl.sum((last <= pid).to(tl.int32), 0)
    if group == E:
        return
    mine = g == group
    tile = pid - tl.sum(tl.where(mine, last - tiles, 0), 0)
    row = tl.sum(tl.where(mine, begin, 0), 0) + tile // tl.cdiv(N, BN) * BM
    limit = tl.sum(tl.where(mine, end, 0), 0)
    col = tile % tl.cdiv(N, BN) * BN
    a = tl.make_tensor_descriptor(A, shape=[TOTAL, K], strides=[K, 1], block_shape=[BM, BK])
    b = tl.make_tensor_descriptor(B, shape=[E * N, K], strides=[K, 1], block_shape=[BN, BK])
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(0, K, BK, warp_specialize=True):
        acc = tl.dot(a.load([row, k]), b.load([group * N + col, k]).T, acc)
    rows = row + tl.arange(0, BM)
    cols = col + tl.arange(0, BN)
    tl.store(C + rows[:, None] * N + cols[None, :], acc.to(C.dtype.element_ty), mask=(rows[:, None] < limit) & (cols[None, :] < N))


HALF = {"A": "*fp16", "B": "*fp16", "C": "*fp16"}
QKV = dict.fromkeys(("Q", "K", "V", "OUT"), "*fp16")


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("warps", "stages", "k"), [(8, 3, 208), (8, 2, 64), (4, 2, 144), (8, 4, 64 * 9), (8, 3, 0)])
def test_gemm(warps, stages, k, seed):
    m, n = 200, 144
    rng = np.random.default_rng(0)
    a = rng.integers(-4, 5, (m, k)).astype(np.float16)
    b = rng.integers(-4, 5, (n, k)).astype(np.float16)
    c = np.full((m, n), 7, np.float16)
    arguments = {"A": a, "B": b, "C": c, "M": m, "N": n, "K": k}
    constants = {"BM": 128 if warps == 8 else 64, "BN": 64, "BK": 64, "STEP": 2, "WS": True, "KIND": ""}
    run_kernel(gemm, (2,), arguments, constants, HALF, seed=seed, num_warps=warps, num_stages=stages)
    assert np.array_equal(c, (a.astype(np.float32) @ b.astype(np.float32).T).astype(np.float16))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("causal", "s", "d", "block"), [(False, 160, 64, 64), (False, 64, 64, 64), (True, 256, 64, 64), (False, 384, 128, 128)]
)
def test_attention(causal, s, d, block, seed):
    rng = np.random.default_rng(1)
    q, k, v = (rng.standard_normal((s, d)).astype(np.float16) for _ in range(3))
    out = np.zeros((s, d), np.float16)
    constants = {"D": d, "BM": 128, "BN": block, "CAUSAL": causal, "WS": True}
    run_kernel(attention, (-(-s // 128),), {"Q": q, "K": k, "V": v, "OUT": out, "S": s}, constants, QKV, seed=seed, num_warps=8)
    keys, values = (np.concatenate([x, np.zeros((-s % block, d))]).astype(np.float64) for x in (k, v))
    scores = q.astype(np.float64) @ keys.T
    if causal:
        scores = np.where(np.arange(s)[:, None] >= np.arange(len(keys))[None, :], scores, -1e6)
    p = np.exp2(scores - scores.max(1, keepdims=True))
    assert np.abs(out - p @ values / p.sum(1, keepdims=True)).max() < 3e-3


@tilewright.jit
def scaled_attention(Q, K, V, OUT, scale, S, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """Causal attention whose mask follows the scale."""
    first = tl.program_id(0) * BM
    rows = first + tl.arange(0, BM)
    q = tl.make_tensor_descriptor(Q, shape=[S, D], strides=[D, 1], block_shape=[BM, D]).load([first, 0])
    keys = tl.make_tensor_descriptor(K, shape=[S, D], strides=[D, 1], block_shape=[BN, D])
    values = tl.make_tensor_descriptor(V, shape=[S, D], strides=[D, 1], block_shape=[BN, D])
    out = tl.make_tensor_descriptor(OUT, shape=[S, D], strides=[D, 1], block_shape=[BM, D])
    m = tl.full((BM,), -float("inf"), tl.float32)
    d = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for n in tl.range(0, first + BM, BN, warp_specialize=True):
        s = tl.dot(q, keys.load([n, 0]).T)
        s = tl.where(rows[:, None] >= (n + tl.arange(0, BN))[None, :], s * scale, -1e6)
        new = tl.maximum(m, tl.max(s, 1))
        p = tl.math.exp2(s - new[:, None])
        old = tl.math.exp2(m - new)
        d = d * old + tl.sum(p, 1)
        v = values.load([n, 0])
        acc = tl.dot(p.to(v.dtype), v, acc * old[:, None])
        m = new
    out.store([first, 0], (acc / d[:, None]).to(OUT.dtype.element_ty))


@pytest.mark.parametrize(("scale", "rows", "warps"), [(0.5, 128, 8), (-0.5, 128, 8), (0.0, 128, 8), (0.5, 256, 16)])
def test_scaled_attention(scale, rows, warps):
    s, dim = 512, 64
    rng = np.random.default_rng(3)
    q, k, v = (rng.standard_normal((s, dim)).astype(np.float16) for _ in range(3))
    out = np.zeros((s, dim), np.float16)
    arguments = {"Q": q, "K": k, "V": v, "OUT": out, "scale": scale, "S": s}
    constants = {"D": dim, "BM": rows, "BN": 64}
    run_kernel(scaled_attention, (s // rows,), arguments, constants, {**QKV, "scale": "fp32"}, seed=0, num_warps=warps)
    scores = scale * (q.astype(np.float64) @ k.astype(np.float64).T)
    p = np.exp2(np.where(np.tri(s, dtype=bool), scores, -1e6) - scores.max(1, keepdims=True))
    assert np.abs(out - p @ v.astype(np.float64) / p.sum(1, keepdims=True)).max() < 3e-3


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("second", [0, 192])
def test_loops_share_their_rings(second, seed):
    m, n, k = 128, 64, 256
    rng = np.random.default_rng(2)
    a, b, c = (rng.integers(-4, 5, (rows, k)).astype(np.float16) for rows in (m, n, n))
    out = np.zeros((m, n), np.float32)
    arguments = {"A": a, "B": b, "C": c, "OUT": out, "K1": k, "K2": second}
    constants = {"BM": m, "BN": n, "BK": 64}
    run_kernel(two_products, (1,), arguments, constants, {**HALF, "OUT": "*fp32"}, seed=seed, num_warps=8)
    a, b, c = (x.astype(np.float32) for x in (a, b, c))
    assert np.array_equal(out, a @ b.T + a[:, :second] @ c[:, :second].T)
    module, _ = passes_of(two_products, {**HALF, "OUT": "*fp32", "K1": "i32", "K2": "i32"}, constants, num_warps=8)
    assert str(module).count("tilegpu.mbarrier_init") == 2


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("persistent", [False, None])
@pytest.mark.parametrize(("sizes", "warps"), [((100, 0, 40, 130), 8), ((8, 70, 0, 0, 20, 1, 1, 30), 4)])
def test_a_program_finds_its_block_in_a_list(sizes, warps, persistent, seed):
    """The producer's warp does that by itself."""
    n, k, groups = 72, 144, len(sizes)
    rng = np.random.default_rng(4)
    ends = np.cumsum(sizes).astype(np.int32)
    total = int(ends[-1])
    a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((total, k), (groups * n, k)))
    c = np.full((total, n), np.nan, np.float16)
    arguments = {"A": a, "B": b, "C": c, "ENDS": ends, "TOTAL": total, "N": n, "K": k}
    constants = {"E": groups, "BM": 128 if warps == 8 else 64, "BN": 64, "BK": 64}
    types, options = {**HALF, "ENDS": "*i32"}, {"num_warps": warps, "persistent": persistent}
    module, _ = passes_of(products_of_a_list, {**types, **dict.fromkeys(("TOTAL", "N", "K"), "i32")}, constants, **options)
    assert "tilegpu.warp_specialize(" in str(module) and ("tile.programs" in str(module)) == (persistent is None)
    run_kernel(products_of_a_list, (2 * (groups + total // 64),), arguments, constants, types, seed=seed, **options)
    for g, (begin, end) in enumerate(zip([0, *ends], ends, strict=False)):
        want = a[begin:end].astype(np.float32) @ b[g * n : (g + 1) * n].astype(np.float32).T
        assert np.array_equal(c[begin:end], want.astype(np.float16))


def test_lists_of_several_warps_have_no_producer():
    """A warp alone cannot sum up what all of them hold."""
    constants = {"E": 256, "BM": 128, "BN": 64, "BK": 64}
    types = {**HALF, "ENDS": "*i32", **dict.fromkeys(("TOTAL", "N", "K"), "i32")}
    module, _ = passes_of(products_of_a_list, types, constants, num_warps=8)
    assert "tilegpu.warp_specialize(" not in str(module)


def compiled(kernel, types: dict[str, str], constants: dict[str, object], **options):
    """A kernel compiled for sm_90, and its PTX; pointers and integers are multiples of 16."""
    names = kernel.arg_names
    signature = {name: "constexpr" if name in constants else types.get(name, "i32") for name in names}
    attrs = {(i,): [["tt.divisibility", 16]] for i, name in enumerate(names) if name not in constants}
    source = tilewright.compiler.ASTSource(kernel, signature, constants, attrs)
    result = tilewright.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
    return result, result.asm["ptx"]


def assert_specialized(kernel, ptx: str) -> None:
    """12 warps that hand registers over, no spills, and wgmmas that stay asynchronous (ptxas warns by C75xx where it serializes them)."""
    assert kernel.metadata.num_warps == 12
    assert re.findall(r"setmaxnreg\.(\w+)\.sync\.aligned\.u32 (\d+)", ptx) == [("inc", "240"), ("dec", "24")]
    assert kernel.n_spills == 0
    assert not kernel.metadata.ptxas_warnings
    assert not re.findall(r"bar\.sync\s+0;", ptx) and re.findall(r"barrier\.(\w+)\.aligned 0, 384;", ptx) == ["sync", "arrive"]


@pytest.mark.parametrize(("k", "seed"), [(192, 0), (192, 1), (64, 0), (112, 1), (256, 2), (448, 0)])
def test_tile_is_stored_in_pieces(k, seed):
    """Four stages leave room for a part of the tile only; two tiles of one program reuse its slots. The pieces of the first are stored with
    the second one's products, of which there may be fewer than pieces."""
    m, n = 200, 256
    rng = np.random.default_rng(0)
    a = rng.integers(-4, 5, (m, k)).astype(np.float16)
    b = rng.integers(-4, 5, (n, k)).astype(np.float16)
    c = np.full((m, n), 7, np.float16)
    arguments = {"A": a, "B": b, "C": c, "M": m, "N": n, "K": k}
    constants = {"BM": 128, "BN": 256, "BK": 64, "STEP": 1, "WS": True, "KIND": ""}
    run_kernel(gemm, (1,), arguments, constants, HALF, seed=seed, num_warps=8, num_stages=4)
    assert np.array_equal(c, (a.astype(np.float32) @ b.astype(np.float32).T).astype(np.float16))


@pytest.mark.parametrize("k", [0, 64, 320])
@pytest.mark.parametrize(("kind", "dtype"), [("columns", np.float16), ("number", np.float16), ("", np.float32)])
def test_what_is_stored_is_computed_in_pieces_or_not(kind, dtype, k):
    """The last tile's pieces are computed one by one where that is elementwise and takes no other tensors."""
    m, n = 256, 256
    rng = np.random.default_rng(0)
    a = rng.integers(-2, 3, (m, k)).astype(np.float16)
    b = rng.integers(-2, 3, (n, k)).astype(np.float16)
    c = np.full((m, n), 7, dtype)
    width = 128 if dtype == np.float32 else 256
    constants = {"BM": 128, "BN": width, "BK": 64, "STEP": 1, "WS": True, "KIND": kind}
    types = HALF | ({"C": "*fp32"} if dtype == np.float32 else {})
    run_kernel(gemm, (1,), {"A": a, "B": b, "C": c, "M": m, "N": n, "K": k}, constants, types, num_warps=8, num_stages=4)
    expected = a.astype(np.float32) @ b.astype(np.float32).T
    if kind == "columns":
        expected += np.arange(n)
    elif kind == "number":
        expected = np.maximum(expected * 0.5, 0)
    assert np.array_equal(c, expected.astype(dtype))


def test_pieces_are_computed_beside_their_stores():
    """Conversions stand between the stores of the last tile; those of other tiles all stand together."""
    constants = {"BM": 128, "BN": 256, "BK": 64, "STEP": 132, "WS": True, "KIND": "number"}
    kernel, ptx = compiled(gemm, HALF, constants, num_warps=8, num_stages=4)
    assert_specialized(kernel, ptx)
    steps = re.findall(r"cvt\.rn\.f16x2|stmatrix", ptx)
    runs = [len(list(group)) for name, group in itertools.groupby(steps) if name.startswith("cvt")]
    assert sorted(runs) == [16, 16, 16, 16, 64]


@pytest.mark.parametrize(("width", "stages", "slots", "pieces"), [(256, 3, 4, 4), (256, 4, 4, 4), (128, 4, 6, 1)])
def test_gemm_is_made_of_roles(width, stages, slots, pieces):
    """The rings fill the shared memory; where a whole tile does not fit beside them, it is stored in pieces."""
    constants = {"BM": 128, "BN": width, "BK": 64, "STEP": 132, "WS": True, "KIND": ""}
    kernel, ptx = compiled(gemm, HALF, constants, num_warps=8, num_stages=stages)
    assert_specialized(kernel, ptx)
    assert len(re.findall(r"mbarrier\.init\.shared::cta\.b64 \[%r\d+\+\d+\], 2;", ptx)) == slots
    # Stores stand beside the next tile's products, behind the last tile's, and where there are no products.
    assert ptx.count("stmatrix.sync.aligned.m8n8.x4") == 3 * width // 16 and ptx.count("cp.async.bulk.commit_group") == 3 * pieces
    assert ptx.count("cp.async.bulk.tensor.2d.global") == 3 * width // 64, "boxes of 16 rows and 64 columns, of each warp"
    assert ptx.count("wgmma.mma_async") == 4 and ptx.count("mbarrier::complete_tx::bytes") == 2
    assert ptx.count("mbarrier.try_wait.parity") == 2 and ptx.count("mbarrier.arrive.shared") == 2
    assert len(re.findall(r"bar\.warp\.sync", ptx)) == 6 * pieces + 1, "of each warp, around its part of the staging buffer"
    assert not re.findall(r"bar\.sync\s+\S+, \d+;", ptx), "consumers do not meet"
    assert ".minnctapersm 1" in ptx and ".reqntid 384" in ptx
    # But that they end one after the other: the first turn is given away at the start, each waits once for its own and passes it on.
    assert ptx.count("barrier.sync.aligned %r") == 1 and ptx.count("barrier.arrive.aligned %r") == 2


def test_one_warpgroup_ends_alone():
    """No other warpgroup could compute while it stores."""
    _, ptx = compiled(gemm, HALF, {"BM": 64, "BN": 256, "BK": 64, "STEP": 132, "WS": True, "KIND": ""}, num_warps=4, num_stages=3)
    assert "setmaxnreg" in ptx or ".reqntid 256" in ptx
    assert "barrier.sync.aligned %r" not in ptx and "barrier.arrive.aligned %r" not in ptx


def test_producer_starts_alone():
    """It makes the mbarriers and goes on to its loads. The consumers have their registers when they meet there, so they start together."""
    _, ptx = compiled(gemm, HALF, {"BM": 128, "BN": 256, "BK": 64, "STEP": 132, "WS": True, "KIND": ""}, num_warps=8, num_stages=3)
    steps = (
        r"mbarrier\.init",
        r"barrier\.\w+\.aligned",
        r"setmaxnreg\.\w+",
        "mbarrier.try_wait",
        "cp.async.bulk.tensor.2d.shared",
        "prefetch.tensormap",
    )
    found = re.findall("|".join(steps), ptx)
    start = found[found.index("mbarrier.init") :]
    loads = ["mbarrier.try_wait", *["cp.async.bulk.tensor.2d.shared"] * 2]
    assert start[8 : 8 + 5] == ["barrier.arrive.aligned", "setmaxnreg.dec", *loads] and start[:8] == ["mbarrier.init"] * 8
    consumers = found.index("setmaxnreg.inc")
    assert found[:consumers] == ["prefetch.tensormap"] * 3
    assert "barrier.sync.aligned" in found[consumers + 1 : found.index("mbarrier.try_wait")]


@pytest.mark.parametrize(("d", "block", "causal"), [(64, 128, False), (64, 128, True), (128, 128, False), (128, 64, True)])
def test_attention_is_made_of_roles(d, block, causal):
    constants = {"D": d, "BM": 128, "BN": block, "CAUSAL": causal, "WS": True}
    kernel, ptx = compiled(attention, QKV, constants, num_warps=8, num_stages=2)
    assert_specialized(kernel, ptx)
    loop = loop_of(ptx)
    assert not re.findall(r"barrier\.(\w+)\.aligned", loop), "two warpgroups do not take turns"
    assert "bar.sync" not in loop and loop.count("mbarrier.try_wait.parity") == 2 and loop.count("mbarrier.arrive") == 2
    products = [m.start() for m in re.finditer(rf"wgmma.mma_async.sync.aligned.m64n(?:{d}|{block})k16", loop)]
    assert len(products) == d // 16 + block // 16
    wait_first, wait_all = (loop.index(f"wgmma.wait_group.sync.aligned {n};") for n in (1, 0))
    assert wait_all < products[0] < products[-1] < wait_first, "both products are issued before the wait for the first one"
    assert loop.index("ex2.approx") < wait_all, "the later product runs beside the exponentials"
    assert ptx.count("wgmma.mma_async") == 2 * len(products), "one more of each, in front of the loop and behind it"
    assert not re.findall(r"bar\.sync\s+\S+, \d+;", ptx), "consumers do not meet: the producer loads the queries, too"


@pytest.mark.parametrize(("block", "late"), [(128, False), (64, True)])
def test_late_products_fit_into_the_registers(block, late):
    """With 128 registers a thread, two CTAs run on a multiprocessor."""
    constants = {"D": 64, "BM": 128, "BN": block, "CAUSAL": False, "WS": False}
    kernel, ptx = compiled(attention, QKV, constants, num_warps=8, num_stages=3, maxnreg=128)
    assert kernel.n_spills == 0 and not kernel.metadata.ptxas_warnings
    assert (ptx.count("wgmma.mma_async") > 64 // 16 + block // 16) == late


def test_masks_are_in_one_branch_only():
    """Causal attention compares and selects in blocks on the diagonal; all others run what attention without a mask runs."""
    constants = {"D": 128, "BM": 128, "BN": 128, "WS": True}
    kernel, ptx = compiled(attention, QKV, {**constants, "CAUSAL": True}, num_warps=8, num_stages=2)
    assert_specialized(kernel, ptx)
    loop = loop_of(ptx)
    parts = re.split(r"^\$L__BB\d+_\d+:|^\s*bra\b|^\s*@%p\d+ bra\b", loop, flags=re.MULTILINE)
    maxima = [part for part in parts if part.count("max.f32") >= 64]
    assert sorted(len(re.findall(r"selp.f32|setp\.\w+\.s32", part)) > 64 for part in maxima) == [False, True]
    assert loop.count("ex2.approx") < 80, "the exponentials are the same for both"


def loop_of(ptx: str) -> str:
    """The text of the loop that holds `ex2`: from a label to the last branch back there."""
    labels = list(re.finditer(r"^(\$L__BB\d+_\d+):", ptx, re.MULTILINE))
    for label in reversed(labels):
        back = [m.end() for m in re.finditer(rf"bra(?:\.uni)?\s+{re.escape(label[1])};", ptx) if m.start() > label.end()]
        if back and "ex2.approx" in ptx[label.end() : back[-1]]:
            return ptx[label.end() : back[-1]]
    raise AssertionError("no loop")


@pytest.mark.parametrize("options", [{"num_warps": 2}, {"num_warps": 8, "arch": 120}, {"num_warps": 8, "maxnreg": 128}])
def test_kernels_without_roles(options):
    constants = {"BM": 128, "BN": 64, "BK": 64, "STEP": 2, "WS": True, "KIND": ""}
    module, _ = passes_of(gemm, {**HALF, **dict.fromkeys("MNK", "i32")}, constants, **options)
    assert "warp_specialize" not in str(module).replace("tile.warp_specialize", "")


@tilewright.jit
def product_of_a_product(a, b, h, c, out, count, K, GUARD: tl.constexpr):
    """The second product reads what other programs have stored, through another argument, when all of them have counted."""
    r, n = tl.arange(0, 128), tl.arange(0, 256)
    left = tl.make_tensor_descriptor(a, [4096, 4096], [4096, 1], [128, 64])
    right = tl.make_tensor_descriptor(b, [4096, 4096], [4096, 1], [64, 256])
    stored = tl.make_tensor_descriptor(c, [4096, 4096], [4096, 1], [64, 256])
    acc = tl.zeros((128, 256), tl.float32)
    for k in range(0, K, 64):
        acc = tl.dot(left.load([tl.program_id(0) * 128, k]), right.load([k, 0]), acc)
    tl.store(h + (tl.program_id(0) * 128 + r)[:, None] * 4096 + n[None, :], acc.to(tl.float16))
    if GUARD == "atomic":
        tl.atomic_add(count, 1)
        while tl.atomic_add(count, 0) < tl.num_programs(0):
            pass
    elif GUARD == "volatile":
        tl.atomic_add(count, 1)
        while tl.load(count, volatile=True) < tl.num_programs(0):
            pass
    for k in range(0, K, 64):
        acc = tl.dot(left.load([0, k]), stored.load([k, 0]), acc)
    tl.store(out + r[:, None] * 4096 + n[None, :], acc)


@pytest.mark.parametrize(("guard", "roles"), [("", True), ("atomic", False), ("volatile", False)])
def test_producers_load_nothing_that_others_may_have_to_store_first(guard, roles):
    types = {**dict.fromkeys("abhc", "*fp16"), "out": "*fp32", "count": "*i32", "K": "i32"}
    module, _ = passes_of(product_of_a_product, types, {"GUARD": guard}, num_warps=8)
    assert ("tilegpu.warp_specialize(" in str(module)) == roles


@pytest.mark.parametrize(
    ("asked", "width", "warps", "roles"),
    [(None, 128, 8, True), (None, 128, 4, True), (None, 32, 8, False), (True, 32, 8, True), (False, 256, 8, False)],
)
def test_roles_are_chosen(asked, width, warps, roles):
    """By the registers that products fill, where the user says nothing."""
    constants = {"BM": 128, "BN": width, "BK": 64, "STEP": 2, "WS": asked, "KIND": ""}
    module, _ = passes_of(gemm, {**HALF, **dict.fromkeys("MNK", "i32")}, constants, num_warps=warps)
    assert ("tilegpu.warp_specialize(" in str(module)) == roles
