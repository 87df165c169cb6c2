"""Loads and stores through pointers that become TMA: the same results, bit for bit, as without."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kernel_harness import run_kernel

import tilewright
import tilewright.compiler
import tilewright.language as tl
from tilewright.backends.compiler import GPUTarget


@tilewright.jit
def matmul(A, B, C, M, N, K, sam, sak, sbk, sbn, scm, start, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, G: tl.constexpr):
    """The usual matrix product: grouped tiles, indices that wrap around, pointers that advance."""
    pid = tl.program_id(0)
    across = tl.cdiv(N, BN)
    group = pid // (G * across)
    rows = min(tl.cdiv(M, BM) - group * G, G)
    pm = group * G + (pid % (G * across)) % rows
    pn = (pid % (G * across)) // rows
    rm = (pm * BM + tl.arange(0, BM)) % M
    rn = (pn * BN + tl.arange(0, BN)) % N
    rk = tl.arange(0, BK)
    a = A + start + rm[:, None] * sam + rk[None, :] * sak
    b = B + rk[:, None] * sbk + rn[None, :] * sbn
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        x = tl.load(a, mask=rk[None, :] < K - k * BK, other=0.0)
        y = tl.load(b, mask=rk[:, None] < K - k * BK, other=0.0)
        acc = tl.dot(x, y, acc)
        a += BK * sak
        b += BK * sbk
    cm = pm * BM + tl.arange(0, BM)
    cn = pn * BN + tl.arange(0, BN)
    c = C + cm[:, None] * scm + cn[None, :]
    tl.store(c, acc.to(C.dtype.element_ty), mask=(cm[:, None] < M) & (cn[None, :] < N))


@tilewright.jit
def masked_matmul(A, B, C, M, N, K, SPLIT, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Masks instead of indices that wrap around, pointers made anew in each iteration, of which each program does a part."""
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for first in tl.range(tl.program_id(2) * BK, K, SPLIT * BK):
        rk = first + tl.arange(0, BK)
        x = tl.load(A + rm[:, None] * K + rk[None, :], mask=(rm < M)[:, None] & (K > rk)[None, :], other=0.0)
        y = tl.load(B + rk[:, None] * N + rn[None, :], mask=(rk <= K - 1)[:, None] & (rn[None, :] < N), other=0.0)
        acc = tl.dot(x, y, acc)
    c = C + tl.program_id(2) * M * N + rm[:, None] * N + rn[None, :]
    tl.store(c, acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


@tilewright.jit
def persistent_matmul(A, B, C, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PROGRAMS: tl.constexpr):
    """Several tiles a program; the number of the tile is computed twice, indices behind the end are replaced by 0."""
    own = tl.program_id(0) - PROGRAMS
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * tl.cdiv(N, BN), PROGRAMS):
        rm = (tile // tl.cdiv(N, BN)) * BM + tl.arange(0, BM)
        rn = (tile % tl.cdiv(N, BN)) * BN + tl.arange(0, BN)
        rm = tl.where(rm < M, rm, 0)
        rn = tl.where(rn < N, rn, 0)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(tl.cdiv(K, BK)):
            rk = k * BK + tl.arange(0, BK)
            x = tl.load(A + rm[:, None] * K + rk[None, :], mask=tl.arange(0, BK)[None, :] < K - k * BK, other=0.0)
            y = tl.load(B + rk[:, None] * N + rn[None, :], mask=tl.arange(0, BK)[:, None] < K - k * BK, other=0.0)
            acc = tl.dot(x, y, acc)
        own += PROGRAMS
        cm = (own // tl.cdiv(N, BN)) * BM + tl.arange(0, BM)
        cn = (own % tl.cdiv(N, BN)) * BN + tl.arange(0, BN)
        tl.store(C + cm[:, None] * N + cn[None, :], acc, mask=(cm[:, None] < M) & (cn[None, :] < N))


@tilewright.jit
def attention(Q, K, V, OUT, sqz, sqh, sqm, skz, skh, skn, H, S, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, MASK: tl.constexpr):
    """Heads and batches by strides of their own."""
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.arange(0, BN)
    rd = tl.arange(0, D)
    z = (tl.program_id(1) // H).to(tl.int64)
    h = (tl.program_id(1) % H).to(tl.int64)
    q = tl.load(Q + z * sqz + h * sqh + rm[:, None] * sqm + rd[None, :])
    m = tl.full((BM,), -float("inf"), tl.float32)
    d = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    kp = K + z * skz + h * skh + rn[None, :] * skn + rd[:, None]
    vp = V + z * skz + h * skh + rn[:, None] * skn + rd[None, :]
    for n in range(0, S, BN):
        if MASK:
            s = tl.dot(q, tl.load(kp, mask=(n + rn)[None, :] < S, other=0.0))
            s = tl.where((n + rn)[None, :] < S, s, -1e6)
        else:
            s = tl.dot(q, tl.load(kp))
        top = tl.maximum(m, tl.max(s, 1))
        p = tl.exp2(s - top[:, None])
        scale = tl.exp2(m - top)
        d = d * scale + tl.sum(p, 1)
        v = tl.load(vp, mask=(n + rn)[:, None] < S, other=0.0) if MASK else tl.load(vp)
        acc = tl.dot(p.to(v.dtype), v, acc * scale[:, None])
        m = top
        kp += BN * skn
        vp += BN * skn
    o = OUT + z * sqz + h * sqh + rm[:, None] * sqm + rd[None, :]
    tl.store(o, (acc / d[:, None]).to(OUT.dtype.element_ty), mask=rm[:, None] < S)


HALF = {"A": "*fp16", "B": "*fp16", "C": "*fp16"}
TILE = {"BM": 64, "BN": 64, "BK": 32, "G": 2}


def values(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float16)


def both(kernel: Any, grid: tuple[int, ...], arguments: dict[str, Any], out: str, *rest: Any, **options: Any) -> tuple[np.ndarray, bool]:
    """Run a kernel as it is and compiled without TMA, from equal arguments; the results must be equal. Return them, and whether TMA
    was used."""
    got = []
    for tma in (True, False):
        own = {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in arguments.items()}
        used = run_kernel(kernel, grid, own, *rest, tma=tma, **options)
        got.append((own[out], used))
    assert not got[1][1]
    assert np.array_equal(got[0][0].view(np.uint8), got[1][0].view(np.uint8))
    return got[0]


@pytest.mark.parametrize(
    ("m", "n", "k", "pad", "stages", "tma"),
    [
        (128, 64, 80, 0, 3, True),
        (64, 128, 80, 16, 1, True),
        (64, 64, 16, 48, 3, True),
        (64, 64, 16, 0, 3, True),
        (80, 64, 32, 64, 3, True),
        (48, 80, 32, 64, 3, True),
        (64, 72, 40, 0, 3, True),
        (64, 66, 40, 0, 3, False),
        (64, 64, 0, 64, 3, False),
    ],
)
def test_matmul(m, n, k, pad, stages, tma):
    rng = np.random.default_rng(m + n + k)
    a, b = values(rng, m, k + pad), values(rng, k + 1, n + pad)
    arguments = {"A": a, "B": b, "C": np.full((m, n), 7, np.float16), "M": m, "N": n, "K": k}
    arguments |= {"sam": k + pad, "sbk": n + pad, "scm": n, "start": 0}
    grid = (-(-m // 64) * -(-n // 64),)
    c, used = both(matmul, grid, arguments, "C", {**TILE, "sak": 1, "sbn": 1}, HALF, num_stages=stages)
    assert used == tma
    want = a[:, :k].astype(np.float32) @ b[:k, :n].astype(np.float32)
    assert np.abs(c - want).max() < 0.1


def test_persistent_matmul():
    rng = np.random.default_rng(9)
    a, b = values(rng, 80, 48), values(rng, 48, 48)
    arguments = {"A": a, "B": b, "C": np.full((80, 48), 7, np.float32), "M": 80, "N": 48, "K": 48}
    constants = {"BM": 64, "BN": 32, "BK": 32, "PROGRAMS": 2}
    c, used = both(persistent_matmul, (2,), arguments, "C", constants, {**HALF, "C": "*fp32"})
    assert used and np.abs(c - a.astype(np.float32) @ b).max() < 1e-2


def test_matmul_of_clusters():
    rng = np.random.default_rng(8)
    a, b = values(rng, 128, 64), values(rng, 64, 64)
    arguments = {"A": a, "B": b, "C": np.zeros((128, 64), np.float16), "M": 128, "N": 64, "K": 64}
    arguments |= {"sam": 64, "sbk": 64, "scm": 64, "start": 0}
    c, used = both(matmul, (1,), arguments, "C", {**TILE, "BM": 128, "sak": 1, "sbn": 1}, HALF, num_ctas=2)
    assert used and np.abs(c - a.astype(np.float32) @ b).max() < 0.1


@pytest.mark.parametrize("order", ["A.T", "B.T"])
def test_matmul_of_transposed_matrices(order):
    rng = np.random.default_rng(4)
    a, b = values(rng, 96, 64), values(rng, 96, 64)
    transposed = {"sam": 1, "sak": 64, "sbk": 64, "sbn": 1} if order == "A.T" else {"sam": 64, "sak": 1, "sbk": 1, "sbn": 64}
    a, b = (a, b) if order == "A.T" else (a[:64], b[:64])
    k = 96 if order == "A.T" else 64
    ones = {name: 1 for name, stride in transposed.items() if stride == 1}
    arguments = {"A": a, "B": b, "C": np.zeros((64, 64), np.float16), "M": 64, "N": 64, "K": k}
    arguments |= {name: stride for name, stride in transposed.items() if stride != 1} | {"scm": 64, "start": 0}
    order_of = {name: i for i, name in enumerate(matmul.arg_names)}
    arguments = dict(sorted(arguments.items(), key=lambda item: order_of[item[0]]))
    c, used = both(matmul, (1,), arguments, "C", {**TILE, **ones}, HALF)
    want = a.T.astype(np.float32) @ b if order == "A.T" else a.astype(np.float32) @ b.T
    assert used and np.abs(c - want).max() < 0.1


@pytest.mark.parametrize(
    ("start", "stride", "tma"), [(0, 64, True), (64, 64, True), (3, 64, False), (64 * 63, -64, False), (0, 0, False), (0, 68, False)]
)
def test_other_bases_and_strides(start, stride, tma):
    rng = np.random.default_rng(5)
    a, b = values(rng, 70, 64), values(rng, 64, 64)
    arguments = {"A": a, "B": b, "C": np.zeros((64, 64), np.float16), "M": 64, "N": 64, "K": 64}
    arguments |= {"sam": stride, "sbk": 64, "scm": 64, "start": start}
    c, used = both(matmul, (1,), arguments, "C", {**TILE, "sak": 1, "sbn": 1}, HALF)
    rows = a.reshape(-1)[start + stride * np.arange(64)[:, None] + np.arange(64)]
    assert used == tma and np.abs(c - rows.astype(np.float32) @ b).max() < 0.1


@pytest.mark.parametrize(("m", "n", "k"), [(80, 88, 104), (48, 64, 64), (48, 48, 28)])
def test_masks(m, n, k):
    rng = np.random.default_rng(6)
    a, b = values(rng, m, k), values(rng, k, n)
    arguments = {"A": a, "B": b, "C": np.zeros((2, m, n), np.float32), "M": m, "N": n, "K": k, "SPLIT": 2}
    types = {**HALF, "C": "*fp32"}
    grid = (-(-m // 64), -(-n // 64), 2)
    c, used = both(masked_matmul, grid, arguments, "C", {"BM": 64, "BN": 64, "BK": 32}, types)
    assert np.abs(c.sum(0) - a.astype(np.float32) @ b).max() < 1e-2
    assert used == (k % 8 == 0)


@pytest.mark.parametrize(("mask", "s"), [(True, 112), (False, 128)])
@pytest.mark.parametrize("heads_first", [True, False])
def test_attention(mask, s, heads_first):
    z, h, d = 2, 3, 64
    rng = np.random.default_rng(7)
    q, k, v = (values(rng, *((z, h, s, d) if heads_first else (z, s, h, d))) for _ in range(3))
    strides = {
        f"s{x}{axis}": size for x in "qk" for axis, size in zip(("z", "h", "mn"["qk".index(x)]), _strides(q, heads_first), strict=True)
    }
    arguments = {"Q": q, "K": k, "V": v, "OUT": np.zeros_like(q), **strides, "H": h, "S": s}
    types = dict.fromkeys(("Q", "K", "V", "OUT"), "*fp16")
    grid = (-(-s // 64), z * h)
    constants = {"D": d, "BM": 64, "BN": 32, "MASK": mask}
    if s % 64:  # what Q has behind its end is loaded, too
        arguments["Q"] = np.concatenate([q.reshape(-1), np.zeros(64 * h * d, np.float16)])
        arguments["OUT"] = np.zeros_like(q)
    out, used = both(attention, grid, arguments, "OUT", constants, types)
    assert used
    axes = (0, 1, 2, 3) if heads_first else (0, 2, 1, 3)
    q, k, v, out = (x.transpose(axes).astype(np.float64) for x in (q, k, v, out))
    p = np.exp2(q @ k.transpose(0, 1, 3, 2))
    assert np.abs(out - p @ v / p.sum(-1, keepdims=True)).max() < 2e-2


def _strides(x: np.ndarray, heads_first: bool) -> tuple[int, ...]:
    z, first, second, _ = (step // x.itemsize for step in x.strides)
    return (z, first, second) if heads_first else (z, second, first)


@pytest.fixture(scope="module")
def benchmark_kernels():
    """The module of the benchmark's kernels, for Tilewright."""
    path = Path(__file__).parents[2] / "benchmarks" / "kernels.py"
    spec = importlib.util.spec_from_file_location("benchmark_kernels", path)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TW_IMPL", "tilewright")
        spec.loader.exec_module(module)
    return module


GEMM = {"sak": 1, "sbn": 1, "scn": 1, "BM": 128, "BN": 256, "BK": 64, "G": 8}
ATTENTION = {"D": 128, "BM": 128, "BN": 64, "CAUSAL": True}


@pytest.mark.parametrize(("name", "constants", "arrays"), [("matmul_kernel", GEMM, 3), ("attn_kernel", ATTENTION, 4)])
@pytest.mark.parametrize(("arch", "tma"), [(90, True), (90, False), (80, True)])
def test_what_the_benchmarks_are_made_of(benchmark_kernels, name, constants, arrays, arch, tma):
    kernel = getattr(benchmark_kernels, name)
    types = {"sm": "fp32", **dict.fromkeys(("A", "Bp", "C", "Q", "K", "V", "O") if "D" in constants else ("A", "Bp", "C"), "*bf16")}
    signature = {n: "constexpr" if n in constants else types.get(n, "i32") for n in kernel.arg_names}
    attrs = {(i,): [["tt.divisibility", 16]] for i, kind in enumerate(signature.values()) if kind not in ("constexpr", "fp32")}
    source = tilewright.compiler.ASTSource(kernel, signature, constants, attrs)
    options = {"num_warps": 8, "num_stages": 3, "tma": tma}
    made = tilewright.compile(source, target=GPUTarget("cuda", arch, 32), options=options)
    ptx = made.asm["ptx"]
    by_tma = tma and arch == 90
    assert not by_tma or (made.n_spills == 0 and not made.metadata.ptxas_warnings)
    assert len(made.metadata.tma_descriptors) == (arrays if by_tma else 0)
    assert ("cp.async.bulk.tensor" in ptx) == ("mbarrier.try_wait.parity" in ptx) == by_tma
    assert ("cp.async.cg" in ptx) == (not by_tma)
