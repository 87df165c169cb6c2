"""Kernels on tensor descriptors that several tests compile."""

import tilewright
import tilewright.language as tl


@tilewright.jit
def attention(Q, K, V, OUT, S, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr, WS: tl.constexpr):
    first = tl.program_id(0) * BM
    rows = first + tl.arange(0, BM)
    q = tl.make_tensor_descriptor(Q, shape=[S, D], strides=[D, 1], block_shape=[BM, D]).load([first, 0])
    keys = tl.make_tensor_descriptor(K, shape=[S, D], strides=[D, 1], block_shape=[BN, D])
    values = tl.make_tensor_descriptor(V, shape=[S, D], strides=[D, 1], block_shape=[BN, D])
    out = tl.make_tensor_descriptor(OUT, shape=[S, D], strides=[D, 1], block_shape=[BM, D])
    m = tl.full((BM,), -float("inf"), tl.float32)
    d = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for n in tl.range(0, first + BM if CAUSAL else S, BN, warp_specialize=WS):
        s = tl.dot(q, keys.load([n, 0]).T)
        if CAUSAL:
            s = tl.where(rows[:, None] >= (n + tl.arange(0, BN))[None, :], s, -1e6)
        new = tl.maximum(m, tl.max(s, 1))
        p = tl.math.exp2(s - new[:, None])
        scale = tl.math.exp2(m - new)
        d = d * scale + tl.sum(p, 1)
        v = values.load([n, 0])
        acc = tl.dot(p.to(v.dtype), v, acc * scale[:, None])
        m = new
    out.store([first, 0], (acc / d[:, None]).to(OUT.dtype.element_ty))
