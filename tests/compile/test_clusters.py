"""Kernels that a cluster of CTAs runs (`num_ctas` > 1), through all passes on the test machine; CTAs run apart in random turns."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_harness import run_kernel

import tilewright
import tilewright.language as tl
from tilewright.backends.compiler import GPUTarget
from tilewright.compiler import ASTSource

F32 = "*fp32"


@tilewright.jit
def add(X, Y, OUT, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(OUT + i, tl.load(X + i, mask=i < n) + tl.load(Y + i, mask=i < n), mask=i < n)


@pytest.mark.parametrize("ctas", [2, 4, 16])
def test_elementwise(ctas):
    x, y = (np.random.default_rng(s).standard_normal(496).astype(np.float32) for s in (0, 1))
    out = np.full_like(x, np.nan)
    run_kernel(add, (2,), {"X": x, "Y": y, "OUT": out, "n": 496}, {"B": 256}, dict.fromkeys(("X", "Y", "OUT"), F32), num_ctas=ctas)
    assert (out == x + y).all()


@tilewright.jit
def softmax(X, OUT, n, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    x = tl.load(X + row * n + i, mask=i < n, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(OUT + row * n + i, e / tl.sum(e, 0), mask=i < n)


@pytest.mark.parametrize("ctas", [1, 2, 8])
@pytest.mark.parametrize("seed", [None, 0, 1])
def test_softmax(ctas, seed):
    x = np.random.default_rng(0).standard_normal((2, 992)).astype(np.float32)
    out = np.full_like(x, np.nan)
    run_kernel(softmax, (2,), {"X": x, "OUT": out, "n": 992}, {"B": 1024}, {"X": F32, "OUT": F32}, seed, num_ctas=ctas)
    e = np.exp(x - x.max(1, keepdims=True))
    assert np.allclose(out, e / e.sum(1, keepdims=True), rtol=1e-5, atol=1e-7)


@tilewright.jit
def columns_and_rows(X, SUMS, MAXIMA, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(X + i[:, None] * N + j[None, :])
    tl.store(SUMS + j, tl.sum(x, 0))
    tl.store(MAXIMA + i, tl.max(x, 1))


@pytest.mark.parametrize("ctas", [2, 4, 16])
@pytest.mark.parametrize("shape", [(4, 64), (16, 32), (1, 256)])
def test_reductions_of_both_dimensions(ctas, shape):
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    sums, maxima = np.full(shape[1], np.nan, np.float32), np.full(shape[0], np.nan, np.float32)
    arguments = {"X": x, "SUMS": sums, "MAXIMA": maxima}
    run_kernel(columns_and_rows, (1,), arguments, {"M": shape[0], "N": shape[1]}, dict.fromkeys(arguments, F32), 3, num_ctas=ctas)
    assert np.allclose(sums, x.sum(0), rtol=1e-5, atol=1e-5)
    assert (maxima == x.max(1)).all()


@tilewright.jit
def _linear(a1, b1, a2, b2):
    """Two functions x -> a x + b, one after the other: the order matters."""
    return a1 * a2, b1 * a2 + b2


@tilewright.jit
def scans(X, UP, DOWN, ROWS, A, B, M: tl.constexpr, N: tl.constexpr):
    k = tl.arange(0, M * N)
    x = tl.load(X + k)
    tl.store(UP + k, tl.cumsum(x, 0))
    tl.store(DOWN + k, tl.cumsum(x, 0, reverse=True))
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(ROWS + i, tl.cumsum(tl.load(X + i), 1))
    a, b = tl.associative_scan((x % 3 - 1, x), 0, _linear, reverse=False)
    tl.store(A + k, a)
    tl.store(B + k, b)
    a, b = tl.associative_scan((x % 3 - 1, x), 0, _linear, reverse=True)
    tl.store(A + M * N + k, a)
    tl.store(B + M * N + k, b)


@pytest.mark.parametrize("ctas, shape", [(2, (1, 256)), (4, (2, 128)), (8, (4, 64))])
def test_scans(ctas, shape):
    n = shape[0] * shape[1]
    x = np.random.default_rng(0).integers(0, 5, n).astype(np.int32)
    out = {name: np.full(n, -1, np.int32) for name in ("UP", "DOWN", "ROWS")} | {name: np.full(2 * n, -1, np.int32) for name in "AB"}
    constants = {"M": shape[0], "N": shape[1]}
    run_kernel(scans, (1,), {"X": x, **out}, constants, dict.fromkeys(("X", *out), "*i32"), 4, num_ctas=ctas, num_warps=2)
    assert (out["UP"] == np.cumsum(x)).all() and (out["DOWN"] == np.cumsum(x[::-1])[::-1]).all()
    assert (out["ROWS"] == np.cumsum(x.reshape(shape), 1).ravel()).all()
    for part, order in ((slice(0, n), range(n)), (slice(n, 2 * n), reversed(range(n)))):
        a, b = np.int32(1), np.int32(0)
        with np.errstate(over="ignore"):
            for i in order:
                a, b = a * np.int32(x[i] % 3 - 1), b * np.int32(x[i] % 3 - 1) + x[i]
                assert (out["A"][part][i], out["B"][part][i]) == (a, b)


@tilewright.jit
def counters(COUNT, TICKETS, BINS, X, n, B: tl.constexpr):
    ticket = tl.atomic_add(COUNT, 1)
    seen = tl.load(TICKETS + ticket, volatile=True)
    if seen < 0:
        tl.store(TICKETS + ticket, ticket)
    tl.atomic_add(COUNT + 1 + tl.arange(0, 2), 1)
    tl.debug_barrier()
    x = tl.load(X + ticket * B + tl.arange(0, B))
    tl.store(BINS + ticket * 8 + tl.arange(0, 8), tl.histogram(x, 8))


@pytest.mark.parametrize("ctas", [2, 4])
def test_atomics_happen_once(ctas):
    x = np.random.default_rng(0).integers(0, 8, 3 * 64).astype(np.int32)
    count, tickets, bins = np.zeros(3, np.int32), np.full(3, -1, np.int32), np.full((3, 8), -1, np.int32)
    arguments = {"COUNT": count, "TICKETS": tickets, "BINS": bins, "X": x, "n": 0}
    run_kernel(counters, (3,), arguments, {"B": 64}, dict.fromkeys(arguments, "*i32") | {"n": "i32"}, 5, num_ctas=ctas)
    assert count.tolist() == [3, 3, 3]
    assert tickets.tolist() == [0, 1, 2]
    assert (bins == [np.bincount(row, minlength=8) for row in x.reshape(3, 64)]).all()


@tilewright.jit
def shapes(X, SORTED, SCANNED, FLIPPED, GATHERED, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(X + i)
    tl.store(SORTED + i, tl.sort(x))
    tl.store(SCANNED + i, tl.cumsum(x, 0))
    tl.store(FLIPPED + i, tl.trans(x.reshape(8, N // 8)).reshape(N))
    tl.store(GATHERED + i, tl.gather(x, N - 1 - i, 0))


@pytest.mark.parametrize("ctas", [2, 8])
def test_data_that_moves_between_ctas(ctas):
    x = np.random.default_rng(0).integers(-100, 100, 128).astype(np.int32)
    out = {name: np.full(128, -1, np.int32) for name in ("SORTED", "SCANNED", "FLIPPED", "GATHERED")}
    run_kernel(shapes, (1,), {"X": x, **out}, {"N": 128}, dict.fromkeys(("X", *out), "*i32"), 2, num_ctas=ctas, num_warps=1)
    assert (out["SORTED"] == np.sort(x)).all()
    assert (out["SCANNED"] == np.cumsum(x)).all()
    assert (out["FLIPPED"] == x.reshape(8, 16).T.ravel()).all()
    assert (out["GATHERED"] == x[::-1]).all()


@tilewright.jit
def pointer_gemm(A, B, C, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm, rn, rk = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    a, b = A + rm[:, None] * K + rk[None, :], B + rk[:, None] * N + rn[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(tl.load(a), tl.load(b), acc)
        a += BK
        b += BK * N
    tl.store(C + rm[:, None] * N + rn[None, :], acc.to(C.dtype.element_ty))


@pytest.mark.parametrize("ctas, warps, bm, bn", [(2, 4, 128, 64), (2, 4, 64, 128), (4, 4, 128, 128), (2, 1, 32, 32)])
def test_pointer_gemm(ctas, warps, bm, bn):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((bm, 128)).astype(np.float16), rng.standard_normal((128, 2 * bn)).astype(np.float16)
    c = np.full((bm, 2 * bn), np.nan, np.float32)
    arguments = {"A": a, "B": b, "C": c, "M": bm, "N": 2 * bn, "K": 128}
    constants = {"BM": bm, "BN": bn, "BK": 32}
    run_kernel(pointer_gemm, (1, 2), arguments, constants, {"A": "*fp16", "B": "*fp16", "C": F32}, num_ctas=ctas, num_warps=warps)
    assert np.allclose(c, a.astype(np.float32) @ b.astype(np.float32), rtol=1e-3, atol=1e-3)


@tilewright.jit
def block_gemm(A, B, C, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, WS: tl.constexpr):
    a = tl.make_tensor_descriptor(A, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    b = tl.make_tensor_descriptor(B, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
    c = tl.make_tensor_descriptor(C, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    for t in tl.range(tl.program_id(0), tl.cdiv(N, BN), 2, warp_specialize=WS):
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, K, BK):
            acc = tl.dot(a.load([0, k]), b.load([t * BN, k]).T, acc)
        c.store([0, t * BN], acc.to(C.dtype.element_ty))


@pytest.mark.parametrize("specialized, ctas, seed", [(False, 2, None), (False, 2, 0), (True, 2, 0), (True, 2, 1), (True, 4, 2)])
def test_block_gemm(specialized, ctas, seed):
    """Each CTA loads its own rows of A; with a producer, each piece of B comes to all."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((256, 192)).astype(np.float16), rng.standard_normal((256, 192)).astype(np.float16)
    c = np.full((256, 256), np.nan, np.float16)
    arguments = {"A": a, "B": b, "C": c, "M": 256, "N": 256, "K": 192}
    constants = {"BM": 256, "BN": 64, "BK": 64, "WS": specialized}
    types = dict.fromkeys(("A", "B", "C"), "*fp16")
    run_kernel(block_gemm, (2,), arguments, constants, types, seed, num_ctas=ctas, num_warps=4, num_stages=2)
    assert np.allclose(c, a.astype(np.float32) @ b.astype(np.float32).T, rtol=1e-2, atol=1e-1)


@tilewright.jit
def softmax_of_rows(X, OUT, rows, n, B: tl.constexpr):
    """A program takes several rows: the slots of its exchanges are used again."""
    i = tl.arange(0, B)
    for row in range(0, rows):
        x = tl.load(X + row * n + i, mask=i < n, other=-float("inf"))
        e = tl.exp(x - tl.max(x, 0))
        tl.store(OUT + row * n + i, e / tl.sum(e, 0), mask=i < n)


@pytest.mark.parametrize("ctas, warps", [(2, 1), (8, 1), (4, 4)])
@pytest.mark.parametrize("seed", [None, 0, 1, 2])
def test_exchanges_in_a_loop(ctas, warps, seed):
    x = np.random.default_rng(0).standard_normal((7, 240)).astype(np.float32)
    out = np.full_like(x, np.nan)
    arguments = {"X": x, "OUT": out, "rows": 7, "n": 240}
    run_kernel(softmax_of_rows, (1,), arguments, {"B": 256}, {"X": F32, "OUT": F32}, seed, num_ctas=ctas, num_warps=warps)
    e = np.exp(x - x.max(1, keepdims=True))
    assert np.allclose(out, e / e.sum(1, keepdims=True), rtol=1e-5, atol=1e-7)


@tilewright.jit
def reductions_of_types(X, OUT, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(X + i)
    tl.store(OUT, tl.sum(x.to(tl.int64), 0))
    tl.store(OUT + 1, tl.max(x.to(tl.int16), 0).to(tl.int64))
    tl.store(OUT + 2, tl.argmax(x, 0).to(tl.int64))
    tl.store(OUT + 3, tl.min(x.to(tl.float16), 0).to(tl.int64))
    tl.store(OUT + 4, tl.reduce(x > 0, 0, _either).to(tl.int64))


@tilewright.jit
def _either(a, b):
    return a | b


@pytest.mark.parametrize("ctas", [2, 8])
def test_words_of_every_width(ctas):
    x = np.random.default_rng(0).integers(-1000, 1000, 256).astype(np.int32)
    out = np.full(5, -1, np.int64)
    run_kernel(reductions_of_types, (1,), {"X": x, "OUT": out}, {"N": 256}, {"X": "*i32", "OUT": "*i64"}, 1, num_ctas=ctas)
    assert out.tolist() == [x.sum(), x.max(), x.argmax(), x.min(), 1]


@tilewright.jit(noinline=True)
def row_sum(X, n, B: tl.constexpr):
    i = tl.arange(0, B)
    return tl.sum(tl.load(X + i, mask=i < n, other=0.0), 0)


@tilewright.jit
def sums_by_helper(X, OUT, rows, n, B: tl.constexpr):
    total = tl.sum(tl.load(X + tl.arange(0, B)), 0) * 0
    for row in range(0, rows):
        total += row_sum(X + row * n, n, B)
        tl.store(OUT + row, total)
        tl.debug_barrier()


@pytest.mark.parametrize("seed", [None, 1])
def test_exchanges_in_helpers(seed):
    """A helper cannot know the phases of mbarriers, so its exchanges go through barriers of the cluster, beside pushed ones."""
    x = np.random.default_rng(0).integers(-4, 5, (5, 128)).astype(np.float32)
    out = np.full(5, np.nan, np.float32)
    run_kernel(sums_by_helper, (1,), {"X": x, "OUT": out, "rows": 5, "n": 128}, {"B": 128}, {"X": F32, "OUT": F32}, seed, num_ctas=4)
    assert (out == np.cumsum(x.sum(1))).all()


def ptx_of(kernel, types: dict[str, str], constants: dict, **options) -> str:
    """The PTX for sm_90; pointers and integers count as multiples of 16."""
    full = {name: "constexpr" if name in constants else types.get(name, "i32") for name in kernel.arg_names}
    attrs = {(i,): [["tt.divisibility", 16]] for i, name in enumerate(kernel.arg_names) if name not in constants}
    compiled = tilewright.compile(ASTSource(kernel, full, constants, attrs), target=GPUTarget("cuda", 90, 32), options=options)
    assert compiled.n_spills == 0 and not compiled.metadata.ptxas_warnings
    return compiled.asm["ptx"]


def test_a_row_meets_the_cluster_once():
    """Each of the two reductions is one store to each CTA, which an mbarrier counts; nothing waits for a flush."""
    text = ptx_of(softmax, {"X": F32, "OUT": F32}, {"B": 32768}, num_ctas=4, num_warps=8)
    assert text.count("barrier.cluster.arrive.relaxed") == text.count("barrier.cluster.wait") == 1
    assert "barrier.cluster.arrive.release" not in text and "fence.acq_rel" not in text
    assert text.count("st.async") == 2 and text.count("mbarrier.try_wait") == 2


def test_nothing_of_clusters_in_programs_of_one_cta():
    text = ptx_of(softmax, {"X": F32, "OUT": F32}, {"B": 4096}, num_warps=8)
    assert ".cluster" not in text and "explicitcluster" not in text and "mapa" not in text


def test_shared_blocks_are_multicast():
    """B of a product whose rows are divided: each CTA issues one box of half the rows, and gives slots back to both."""
    types = dict.fromkeys(("A", "B", "C"), "*fp16")
    constants = {"BM": 256, "BN": 256, "BK": 64, "WS": True}
    text = ptx_of(block_gemm, types, constants, num_ctas=2, num_warps=8, num_stages=3)
    assert text.count(".multicast::cluster") == 1 and "mbarrier.arrive.shared::cluster" in text
    assert "arrive.release.cluster" not in text and "setmaxnreg" in text
