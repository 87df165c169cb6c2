"""Benchmark kernels in the Triton language. TW_IMPL picks the implementation under test."""

import importlib
import os

IMPL = os.environ.get("TW_IMPL", "triton")
triton = importlib.import_module(IMPL)
tl = importlib.import_module(IMPL + ".language")


@triton.jit
def add_kernel(x, y, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(o + i, tl.load(x + i, mask=m) + tl.load(y + i, mask=m), mask=m)


@triton.jit
def softmax_kernel(o, x, so, sx, n, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    v = tl.load(x + r * sx + c, mask=c < n, other=-float("inf")).to(tl.float32)
    v = tl.exp(v - tl.max(v, axis=0))
    v = v / tl.sum(v, axis=0)
    tl.store(o + r * so + c, v.to(o.dtype.element_ty), mask=c < n)


@triton.jit
def layernorm_kernel(x, o, w, b, n, eps, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    m = c < n
    v = tl.load(x + r * n + c, mask=m, other=0.0).to(tl.float32)
    mu = tl.sum(v, axis=0) / n
    d = tl.where(m, v - mu, 0.0)
    rs = 1.0 / tl.sqrt(tl.sum(d * d, axis=0) / n + eps)
    y = d * rs * tl.load(w + c, mask=m) + tl.load(b + c, mask=m)
    tl.store(o + r * n + c, y.to(o.dtype.element_ty), mask=m)


@triton.jit
def matmul_kernel(A, Bp, C, M, N, K, sam, sak, sbk, sbn, scm, scn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, G: tl.constexpr):
    pid = tl.program_id(0)
    nm = tl.cdiv(M, BM)
    nn = tl.cdiv(N, BN)
    ng = G * nn
    gid = pid // ng
    first = gid * G
    gs = min(nm - first, G)
    pm = first + (pid % ng) % gs
    pn = (pid % ng) // gs
    rm = (pm * BM + tl.arange(0, BM)) % M
    rn = (pn * BN + tl.arange(0, BN)) % N
    rk = tl.arange(0, BK)
    a = A + rm[:, None] * sam + rk[None, :] * sak
    b = Bp + rk[:, None] * sbk + rn[None, :] * sbn
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(tl.cdiv(K, BK)):
        x = tl.load(a, mask=rk[None, :] < K - k * BK, other=0.0)
        y = tl.load(b, mask=rk[:, None] < K - k * BK, other=0.0)
        acc = tl.dot(x, y, acc)
        a += BK * sak
        b += BK * sbk
    cm = pm * BM + tl.arange(0, BM)
    cn = pn * BN + tl.arange(0, BN)
    c = C + cm[:, None] * scm + cn[None, :] * scn
    tl.store(c, acc.to(C.dtype.element_ty), mask=(cm[:, None] < M) & (cn[None, :] < N))


@triton.jit
def matmul_tma_kernel(
    A, Bp, C, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, G: tl.constexpr, NSM: tl.constexpr, WS: tl.constexpr
):
    start = tl.program_id(0)
    nm = tl.cdiv(M, BM)
    nn = tl.cdiv(N, BN)
    nk = tl.cdiv(K, BK)
    ad = tl.make_tensor_descriptor(A, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    bd = tl.make_tensor_descriptor(Bp, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
    cd = tl.make_tensor_descriptor(C, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    for t in tl.range(start, nm * nn, NSM, flatten=True, warp_specialize=WS):
        ng = G * nn
        first = (t // ng) * G
        gs = min(nm - first, G)
        pm = first + (t % ng) % gs
        pn = (t % ng) // gs
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(nk):
            x = ad.load([pm * BM, k * BK])
            y = bd.load([pn * BN, k * BK])
            acc = tl.dot(x, y.T, acc)
        cd.store([pm * BM, pn * BN], acc.to(C.dtype.element_ty))


@triton.jit
def attn_kernel(Q, K, V, O, sm, H, S, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr):
    pm = tl.program_id(0)
    bh = tl.program_id(1)
    base = bh.to(tl.int64) * S * D
    rm = pm * BM + tl.arange(0, BM)
    rn = tl.arange(0, BN)
    rd = tl.arange(0, D)
    q = tl.load(Q + base + rm[:, None] * D + rd[None, :])
    m_i = tl.full((BM,), -float("inf"), tl.float32)
    l_i = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    qk_s = sm * 1.44269504
    hi = (pm + 1) * BM if CAUSAL else S
    kp = K + base + rn[None, :] * D + rd[:, None]
    vp = V + base + rn[:, None] * D + rd[None, :]
    for n in range(0, hi, BN):
        k = tl.load(kp)
        s = tl.dot(q, k)
        if CAUSAL:
            s = tl.where(rm[:, None] >= (n + rn)[None, :], s * qk_s, -1e6)
            m_n = tl.maximum(m_i, tl.max(s, 1))
            s = s - m_n[:, None]
        else:
            m_n = tl.maximum(m_i, tl.max(s, 1) * qk_s)
            s = s * qk_s - m_n[:, None]
        p = tl.math.exp2(s)
        al = tl.math.exp2(m_i - m_n)
        l_i = l_i * al + tl.sum(p, 1)
        acc = acc * al[:, None]
        v = tl.load(vp)
        acc = tl.dot(p.to(v.dtype), v, acc)
        m_i = m_n
        kp += BN * D
        vp += BN * D
    acc = acc / l_i[:, None]
    tl.store(O + base + rm[:, None] * D + rd[None, :], acc.to(O.dtype.element_ty))


@triton.jit
def attn_tma_kernel(Q, K, V, O, sm, Z, H, S, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr, WS: tl.constexpr):
    pm = tl.program_id(0)
    bh = tl.program_id(1)
    y = Z * H * S
    qd = tl.make_tensor_descriptor(Q, shape=[y, D], strides=[D, 1], block_shape=[BM, D])
    kd = tl.make_tensor_descriptor(K, shape=[y, D], strides=[D, 1], block_shape=[BN, D])
    vd = tl.make_tensor_descriptor(V, shape=[y, D], strides=[D, 1], block_shape=[BN, D])
    od = tl.make_tensor_descriptor(O, shape=[y, D], strides=[D, 1], block_shape=[BM, D])
    base = bh * S
    rm = pm * BM + tl.arange(0, BM)
    rn = tl.arange(0, BN)
    q = qd.load([base + pm * BM, 0])
    m_i = tl.full((BM,), -float("inf"), tl.float32)
    l_i = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    qk_s = sm * 1.44269504
    hi = (pm + 1) * BM if CAUSAL else S
    for n in tl.range(0, hi, BN, warp_specialize=WS):
        k = kd.load([base + n, 0]).T
        s = tl.dot(q, k)
        if CAUSAL:
            s = tl.where(rm[:, None] >= (n + rn)[None, :], s * qk_s, -1e6)
            m_n = tl.maximum(m_i, tl.max(s, 1))
            s = s - m_n[:, None]
        else:
            m_n = tl.maximum(m_i, tl.max(s, 1) * qk_s)
            s = s * qk_s - m_n[:, None]
        p = tl.math.exp2(s)
        al = tl.math.exp2(m_i - m_n)
        l_i = l_i * al + tl.sum(p, 1)
        acc = acc * al[:, None]
        v = vd.load([base + n, 0])
        acc = tl.dot(p.to(v.dtype), v, acc)
        m_i = m_n
    acc = acc / l_i[:, None]
    od.store([base + pm * BM, 0], acc.to(O.dtype.element_ty))
