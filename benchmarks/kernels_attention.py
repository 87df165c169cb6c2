"""Attention with grouped key and value heads, and its derivatives. TW_IMPL picks the implementation under test.

With s = sm q k^T, p = exp(s - lse) and o = p v, a loss L and do = dL/do:

    dv = p^T do     dp = do v^T     ds = p (dp - delta), delta = sum(o do) of a row     dq = sm ds k     dk = sm ds^T q

Exponentials are of base 2: scores are scaled by sm log2(e), and LSE holds the row's log2 of the sum of exp2 of these.
"""

import importlib
import os

IMPL = os.environ.get("TW_IMPL", "triton")
triton = importlib.import_module(IMPL)
tl = importlib.import_module(IMPL + ".language")


@triton.jit
def attention_forward_kernel(
    Q,
    K,
    V,
    O,
    LSE,
    sm,
    Z,
    H,
    S,
    GROUP: tl.constexpr,
    D: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    CAUSAL: tl.constexpr,
    WS: tl.constexpr,
):
    """O and LSE of BM rows of one head of Q[Z, H, S, D]; GROUP heads share one of K and V[Z, H / GROUP, S, D]."""
    pm = tl.num_programs(0) - 1 - tl.program_id(0)  # the rows with the most columns first
    head = tl.program_id(1)
    row = head * S + pm * BM
    col = head // GROUP * S
    qd = tl.make_tensor_descriptor(Q, shape=[Z * H * S, D], strides=[D, 1], block_shape=[BM, D])
    kd = tl.make_tensor_descriptor(K, shape=[Z * H // GROUP * S, D], strides=[D, 1], block_shape=[BN, D])
    vd = tl.make_tensor_descriptor(V, shape=[Z * H // GROUP * S, D], strides=[D, 1], block_shape=[BN, D])
    od = tl.make_tensor_descriptor(O, shape=[Z * H * S, D], strides=[D, 1], block_shape=[BM, D])
    rm = pm * BM + tl.arange(0, BM)
    rn = tl.arange(0, BN)
    scale = sm * 1.44269504
    q = qd.load([row, 0])
    m = tl.full((BM,), -float("inf"), tl.float32)
    l = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    hi = (pm + 1) * BM if CAUSAL else S
    for n in tl.range(0, hi, BN, warp_specialize=WS):
        k = kd.load([col + n, 0])
        s = tl.dot(q, k.T)
        if CAUSAL:
            s = tl.where(rm[:, None] >= (n + rn)[None, :], s, -1e6)
        m_new = tl.maximum(m, tl.max(s, 1) * scale)
        p = tl.math.exp2(s * scale - m_new[:, None])
        alpha = tl.math.exp2(m - m_new)
        l = l * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None]
        v = vd.load([col + n, 0])
        acc = tl.dot(p.to(v.dtype), v, acc)
        m = m_new
    od.store([row, 0], (acc / l[:, None]).to(O.dtype.element_ty))
    tl.store(LSE + head * S + rm, m + tl.math.log2(l))


@triton.jit
def attention_delta_kernel(O, DO, DELTA, D: tl.constexpr, BM: tl.constexpr):
    """DELTA[rows] = sum(O * DO) of each row of D columns."""
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    at = rm[:, None] * D + tl.arange(0, D)[None, :]
    o = tl.load(O + at).to(tl.float32)
    do = tl.load(DO + at).to(tl.float32)
    tl.store(DELTA + rm, tl.sum(o * do, 1))


@triton.jit
def attention_backward_kv_kernel(
    Q,
    K,
    V,
    DO,
    DK,
    DV,
    LSE,
    DELTA,
    sm,
    Z,
    H,
    S,
    D: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    CAUSAL: tl.constexpr,
    WS: tl.constexpr,
):
    """DK and DV of BN columns: over the rows, in blocks of BM. Scores are transposed, so that p and ds are left operands."""
    pn = tl.program_id(0)
    base = tl.program_id(1) * S
    rows = Z * H * S
    qd = tl.make_tensor_descriptor(Q, shape=[rows, D], strides=[D, 1], block_shape=[BM, D])
    kd = tl.make_tensor_descriptor(K, shape=[rows, D], strides=[D, 1], block_shape=[BN, D])
    vd = tl.make_tensor_descriptor(V, shape=[rows, D], strides=[D, 1], block_shape=[BN, D])
    dod = tl.make_tensor_descriptor(DO, shape=[rows, D], strides=[D, 1], block_shape=[BM, D])
    dkd = tl.make_tensor_descriptor(DK, shape=[rows, D], strides=[D, 1], block_shape=[BN, D])
    dvd = tl.make_tensor_descriptor(DV, shape=[rows, D], strides=[D, 1], block_shape=[BN, D])
    rn = pn * BN + tl.arange(0, BN)
    scale = sm * 1.44269504
    k = kd.load([base + pn * BN, 0])
    v = vd.load([base + pn * BN, 0])
    dk = tl.zeros((BN, D), tl.float32)
    dv = tl.zeros((BN, D), tl.float32)
    lo = pn * BN // BM * BM if CAUSAL else 0
    for m in tl.range(lo, S, BM, warp_specialize=WS):
        rm = m + tl.arange(0, BM)
        q = qd.load([base + m, 0])
        do = dod.load([base + m, 0])
        lse = tl.load(LSE + base + rm)
        s = tl.dot(k, q.T)
        dp = tl.dot(v, do.T)
        p = tl.math.exp2(s * scale - lse[None, :])
        if CAUSAL:
            p = tl.where(rm[None, :] >= rn[:, None], p, 0.0)
        p = p.to(do.dtype)
        delta = tl.load(DELTA + base + rm)
        dv = tl.dot(p, do, dv)
        ds = p.to(tl.float32) * (dp - delta[None, :])
        dk = tl.dot(ds.to(q.dtype), q, dk)
    dkd.store([base + pn * BN, 0], (dk * sm).to(DK.dtype.element_ty))
    dvd.store([base + pn * BN, 0], dv.to(DV.dtype.element_ty))


@triton.jit
def attention_backward_q_kernel(
    Q,
    K,
    V,
    DO,
    DQ,
    LSE,
    DELTA,
    sm,
    Z,
    H,
    S,
    D: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    CAUSAL: tl.constexpr,
    WS: tl.constexpr,
):
    """DQ of BM rows: over the columns, in blocks of BN."""
    pm = tl.num_programs(0) - 1 - tl.program_id(0)
    base = tl.program_id(1) * S
    rows = Z * H * S
    qd = tl.make_tensor_descriptor(Q, shape=[rows, D], strides=[D, 1], block_shape=[BM, D])
    kd = tl.make_tensor_descriptor(K, shape=[rows, D], strides=[D, 1], block_shape=[BN, D])
    vd = tl.make_tensor_descriptor(V, shape=[rows, D], strides=[D, 1], block_shape=[BN, D])
    dod = tl.make_tensor_descriptor(DO, shape=[rows, D], strides=[D, 1], block_shape=[BM, D])
    dqd = tl.make_tensor_descriptor(DQ, shape=[rows, D], strides=[D, 1], block_shape=[BM, D])
    rm = pm * BM + tl.arange(0, BM)
    scale = sm * 1.44269504
    q = qd.load([base + pm * BM, 0])
    do = dod.load([base + pm * BM, 0])
    lse = tl.load(LSE + base + rm)
    delta = tl.load(DELTA + base + rm)
    dq = tl.zeros((BM, D), tl.float32)
    hi = (pm + 1) * BM if CAUSAL else S
    for n in tl.range(0, hi, BN, warp_specialize=WS):
        k = kd.load([base + n, 0])
        v = vd.load([base + n, 0])
        s = tl.dot(q, k.T)
        dp = tl.dot(do, v.T)
        p = tl.math.exp2(s * scale - lse[:, None])
        if CAUSAL:
            p = tl.where(rm[:, None] >= (n + tl.arange(0, BN))[None, :], p, 0.0)
        ds = p * (dp - delta[:, None])
        dq = tl.dot(ds.to(k.dtype), k, dq)
    dqd.store([base + pm * BM, 0], (dq * sm).to(DQ.dtype.element_ty))


@triton.jit
def attention_backward_kernel(
    Q,
    K,
    V,
    DO,
    DQ,
    DK,
    DV,
    LSE,
    DELTA,
    sm,
    Z,
    H,
    S,
    D: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    CAUSAL: tl.constexpr,
    WS: tl.constexpr,
):
    """DK and DV of BN columns, and what these columns add to DQ / sm of all rows, an fp32 array that starts at 0."""
    pn = tl.program_id(0)
    base = tl.program_id(1) * S
    rows = Z * H * S
    qd = tl.make_tensor_descriptor(Q, shape=[rows, D], strides=[D, 1], block_shape=[BM, D])
    kd = tl.make_tensor_descriptor(K, shape=[rows, D], strides=[D, 1], block_shape=[BN, D])
    vd = tl.make_tensor_descriptor(V, shape=[rows, D], strides=[D, 1], block_shape=[BN, D])
    dod = tl.make_tensor_descriptor(DO, shape=[rows, D], strides=[D, 1], block_shape=[BM, D])
    dqd = tl.make_tensor_descriptor(DQ, shape=[rows, D], strides=[D, 1], block_shape=[BM, D])
    dkd = tl.make_tensor_descriptor(DK, shape=[rows, D], strides=[D, 1], block_shape=[BN, D])
    dvd = tl.make_tensor_descriptor(DV, shape=[rows, D], strides=[D, 1], block_shape=[BN, D])
    rn = pn * BN + tl.arange(0, BN)
    scale = sm * 1.44269504
    k = kd.load([base + pn * BN, 0])
    v = vd.load([base + pn * BN, 0])
    dk = tl.zeros((BN, D), tl.float32)
    dv = tl.zeros((BN, D), tl.float32)
    lo = pn * BN // BM * BM if CAUSAL else 0
    for m in tl.range(lo, S, BM, warp_specialize=WS):
        rm = m + tl.arange(0, BM)
        q = qd.load([base + m, 0])
        do = dod.load([base + m, 0])
        lse = tl.load(LSE + base + rm)
        s = tl.dot(k, q.T)
        dp = tl.dot(v, do.T)
        p = tl.math.exp2(s * scale - lse[None, :])
        if CAUSAL:
            p = tl.where(rm[None, :] >= rn[:, None], p, 0.0)
        p = p.to(do.dtype)
        delta = tl.load(DELTA + base + rm)
        dv = tl.dot(p, do, dv)
        ds = (p.to(tl.float32) * (dp - delta[None, :])).to(q.dtype)
        dk = tl.dot(ds, q, dk)
        dqd.atomic_add([base + m, 0], tl.dot(ds.T, k))
    dkd.store([base + pn * BN, 0], (dk * sm).to(DK.dtype.element_ty))
    dvd.store([base + pn * BN, 0], dv.to(DV.dtype.element_ty))


@triton.jit
def attention_scale_kernel(X, OUT, sm, B: tl.constexpr):
    """OUT = sm X, X in fp32; B elements a program."""
    at = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    tl.store(OUT + at, (tl.load(X + at) * sm).to(OUT.dtype.element_ty))
