"""Matrix products beside the plain ones of `kernels.py`. TW_IMPL picks the implementation under test."""

import importlib
import os

IMPL = os.environ.get("TW_IMPL", "triton")
triton = importlib.import_module(IMPL)
tl = importlib.import_module(IMPL + ".language")


@triton.jit
def matmul_int8_kernel(
    A, Bt, C, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, G: tl.constexpr, NSM: tl.constexpr, WS: tl.constexpr
):
    """C[M, N] = A[M, K] Bt[N, K]^T: int8 in, int32 out; persistent, tiles in groups of G rows of tiles."""
    nm = tl.cdiv(M, BM)
    nn = tl.cdiv(N, BN)
    ad = tl.make_tensor_descriptor(A, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    bd = tl.make_tensor_descriptor(Bt, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
    cd = tl.make_tensor_descriptor(C, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    for t in tl.range(tl.program_id(0), nm * nn, NSM, flatten=True, warp_specialize=WS):
        first = t // (G * nn) * G
        rows = min(nm - first, G)
        pm = first + t % (G * nn) % rows
        pn = t % (G * nn) // rows
        acc = tl.zeros((BM, BN), dtype=tl.int32)
        for k in range(tl.cdiv(K, BK)):
            x = ad.load([pm * BM, k * BK])
            y = bd.load([pn * BN, k * BK])
            acc = tl.dot(x, y.T, acc, out_dtype=tl.int32)
        cd.store([pm * BM, pn * BN], acc)


@triton.jit
def linear_kernel(X, W, Y, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, WS: tl.constexpr):
    """Y[M, N] = X[M, K] W[N, K]^T for few rows M <= BM. The weights are the left operand: their rows fill the instruction's 64."""
    n = tl.program_id(0) * BN
    xd = tl.make_tensor_descriptor(X, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    wd = tl.make_tensor_descriptor(W, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
    acc = tl.zeros((BN, BM), dtype=tl.float32)
    for k in tl.range(0, K, BK, warp_specialize=WS):
        w = wd.load([n, k])
        x = xd.load([0, k])
        acc = tl.dot(w, x.T, acc)
    rm = tl.arange(0, BM)
    rn = n + tl.arange(0, BN)
    y = Y + rm[:, None] * N + rn[None, :]
    tl.store(y, acc.T.to(Y.dtype.element_ty), mask=(rm[:, None] < M) & (rn[None, :] < N))


@triton.jit
def matmul_split_k_kernel(A, Bt, C, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr, WS: tl.constexpr):
    """C[M, N] += A[M, K] Bt[N, K]^T in fp32: each of SPLIT programs adds its part of K to a tile."""
    pn = tl.program_id(0)
    pm = tl.program_id(1)
    part = tl.cdiv(tl.cdiv(K, BK), SPLIT) * BK
    begin = tl.program_id(2) * part
    ad = tl.make_tensor_descriptor(A, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    bd = tl.make_tensor_descriptor(Bt, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
    cd = tl.make_tensor_descriptor(C, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(begin, min(begin + part, K), BK, warp_specialize=WS):
        x = ad.load([pm * BM, k])
        y = bd.load([pn * BN, k])
        acc = tl.dot(x, y.T, acc)
    cd.atomic_add([pm * BM, pn * BN], acc)


@triton.jit
def grouped_matmul_kernel(
    A, Bt, C, ends, total, N, K, E: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, WS: tl.constexpr
):
    """Rows ends[g - 1] to ends[g] of C[total, N] = those rows of A[total, K] times Bt[g, N, K]^T. A program finds its group and its tile
    there by itself; the grid is an upper bound of the number of tiles."""
    pid = tl.program_id(0)
    g = tl.arange(0, E)
    end = tl.load(ends + g)
    begin = tl.load(ends + g - 1, mask=g > 0, other=0)
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
    ad = tl.make_tensor_descriptor(A, shape=[total, K], strides=[K, 1], block_shape=[BM, BK])
    bd = tl.make_tensor_descriptor(Bt, shape=[E * N, K], strides=[K, 1], block_shape=[BN, BK])
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(0, K, BK, warp_specialize=WS):
        x = ad.load([row, k])
        y = bd.load([group * N + col, k])
        acc = tl.dot(x, y.T, acc)
    rm = row + tl.arange(0, BM)
    rn = col + tl.arange(0, BN)
    c = C + rm[:, None] * N + rn[None, :]
    tl.store(c, acc.to(C.dtype.element_ty), mask=(rm[:, None] < limit) & (rn[None, :] < N))
