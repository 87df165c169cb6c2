"""Every kind of operation goes through the ttir and ttgir passes, verified after each of them, on targets with and without wgmma."""

from __future__ import annotations

import pytest

pytest.importorskip("mlir")

from frontend_build import jit
from passes_pipeline import ttgir

import tilewright.language as tl

TARGETS = (80, 89, 90, 120)


@jit
def elementwise(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n)
    v = tl.where(v > 0, tl.exp(v), tl.sqrt(tl.abs(v))) + tl.math.fma(v, v, v)
    tl.store(o + i, v.to(tl.float16), mask=i < n)


@jit
def gather_rows(x, index, o, D: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    r = tl.load(index + i)
    d = tl.arange(0, D)
    v = tl.load(x + r[:, None] * D + d[None, :])
    tl.store(o + i[:, None] * D + d[None, :], v)


@jit
def reductions(x, o, M: tl.constexpr, N: tl.constexpr):
    m = tl.arange(0, M)
    n = tl.arange(0, N)
    v = tl.load(x + m[:, None] * N + n[None, :])
    rows = tl.sum(v, 1)
    cols = tl.max(v, 0)
    best = tl.argmax(v, 1)
    tl.store(o + m, rows + best.to(tl.float32))
    tl.store(o + n, cols)
    tl.store(o, tl.sum(tl.sum(v, 1), 0))
    w = v / rows[:, None] + cols[None, :]
    tl.store(o + m[:, None] * N + n[None, :], tl.cumsum(w, 1))


@jit
def shapes(x, o, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    b = tl.load(x + i + N)
    j = tl.join(a, b)
    p, q = tl.split(j)
    t = tl.trans(tl.reshape(p + q, (N // 16, 16)))
    c = tl.cat(tl.reshape(t, (N,)), a, can_reorder=True)
    f = tl.flip(tl.reshape(c, (2 * N,)), 0)
    tl.store(o + tl.arange(0, 2 * N), f)
    tl.store(o + i, tl.gather(a, i % 7, 0))


@jit
def sorting(x, o, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o + i, tl.sort(tl.load(x + i)))


@jit
def control_flow(x, o, n, B: tl.constexpr):
    i = tl.arange(0, B)
    total = tl.zeros((B,), tl.float32)
    pointers = x + i
    k = 0
    while k < n:
        v = tl.load(pointers)
        if k % 2 == 0:
            total += v
        else:
            total -= v
        pointers += B
        k += 1
    for _ in range(n):
        total = total * 2
    tl.store(o + i, total)


@jit
def atomics(x, o, h, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    old = tl.atomic_add(o + i % 8, v, mask=v > 0)
    tl.store(o + i, old)
    tl.atomic_max(o, tl.max(v, 0))
    tl.store(h + tl.arange(0, 16), tl.histogram((v * 16).to(tl.int32), 16))
    tl.atomic_cas(h, 0, 1)


@jit
def dot(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, PRECISION: tl.constexpr, STEPS: tl.constexpr):
    m = tl.arange(0, M)
    n = tl.arange(0, N)
    k = tl.arange(0, K)
    acc = tl.zeros((M, N), tl.float32)
    for s in range(STEPS):
        x = tl.load(a + m[:, None] * K * STEPS + (s * K + k)[None, :])
        y = tl.load(b + (s * K + k)[:, None] * N + n[None, :])
        acc += tl.dot(x, y, input_precision=PRECISION)
    tl.store(c + m[:, None] * N + n[None, :], acc)


@jit
def integer_dot(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m = tl.arange(0, M)
    n = tl.arange(0, N)
    k = tl.arange(0, K)
    x = tl.load(a + m[:, None] * K + k[None, :])
    y = tl.load(b + n[:, None] * K + k[None, :])
    tl.store(c + m[:, None] * N + n[None, :], tl.dot(x, tl.trans(y), out_dtype=tl.int32))


@jit
def batched_dot(a, b, c, B: tl.constexpr, M: tl.constexpr):
    i = tl.arange(0, B)[:, None, None] * M * M + tl.arange(0, M)[None, :, None] * M + tl.arange(0, M)[None, None, :]
    tl.store(c + i, tl.dot(tl.load(a + i), tl.load(b + i)))


@jit
def dequantized_dot(a, b, scale, c, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m = tl.arange(0, M)
    cols = tl.arange(0, N)
    k = tl.arange(0, K)
    s = tl.load(scale + cols)
    acc = tl.zeros((M, N), tl.float32)
    for step in range(n):
        x = tl.load(a + m[:, None] * K + (step * K + k)[None, :])
        y = tl.load(b + (step * K + k)[:, None] * N + cols[None, :])
        acc = tl.dot(x, y.to(x.dtype), acc)
    tl.store(c + m[:, None] * N + cols[None, :], (acc * s[None, :]).to(tl.bfloat16))


@jit
def scaled_dot(a, sa, b, sb, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m = tl.arange(0, M)
    n = tl.arange(0, N)
    g = tl.arange(0, K // 32)
    x = tl.load(a + m[:, None] * (K // 2) + tl.arange(0, K // 2)[None, :])
    y = tl.load(b + tl.arange(0, K)[:, None] * N + n[None, :])
    p = tl.load(sa + m[:, None] * (K // 32) + g[None, :])
    q = tl.load(sb + n[:, None] * (K // 32) + g[None, :])
    tl.store(c + m[:, None] * N + n[None, :], tl.dot_scaled(x, p, "e2m1", y, q, "e5m2"))


@jit
def descriptors(x, o, index, M, N, B: tl.constexpr):
    d = tl.make_tensor_descriptor(x, shape=[M, N], strides=[N, 1], block_shape=[B, B])
    e = tl.make_tensor_descriptor(o, shape=[M, N], strides=[N, 1], block_shape=[B, B])
    v = d.load([tl.program_id(0) * B, 0])
    e.store([0, tl.program_id(0) * B], v.T)
    e.atomic_add([0, 0], v)


@jit
def residual(a, b, r, c, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m = tl.arange(0, M)
    cols = tl.arange(0, N)
    k = tl.arange(0, K)
    acc = tl.zeros((M, N), tl.float32)
    for step in range(n):
        x = tl.load(a + m[:, None] * K + (step * K + k)[None, :])
        y = tl.load(b + (step * K + k)[:, None] * N + cols[None, :])
        acc = tl.dot(x, y, acc)
    at = m[:, None] * N + cols[None, :]
    tl.store(c + at, (acc + tl.load(r + at)).to(tl.bfloat16))


PRECISIONS = ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6")
BF, F32, I8, I32 = "*bf16", "*fp32", "*i8", "*i32"
CASES = [
    (elementwise, [F32, "*fp16", "i32"], {"B": 1024}),
    (gather_rows, [F32, I32, F32], {"D": 64, "N": 32}),
    (reductions, [F32, F32], {"M": 32, "N": 128}),
    (shapes, [F32, F32], {"N": 256}),
    (sorting, [F32, F32], {"N": 256}),
    (control_flow, [F32, F32, "i32"], {"B": 512}),
    (atomics, [F32, F32, I32], {"N": 128}),
    *[(dot, [BF, BF, F32], {"M": 64, "N": 64, "K": 32, "PRECISION": "tf32", "STEPS": s}) for s in (1, 4)],
    *[(dot, [F32, F32, F32], {"M": 64, "N": 32, "K": 32, "PRECISION": p, "STEPS": 4}) for p in PRECISIONS],
    (dot, ["*fp8e5", "*fp8e5", F32], {"M": 64, "N": 32, "K": 32, "PRECISION": "ieee", "STEPS": 4}),
    (dot, ["*fp16", "*fp16", F32], {"M": 16, "N": 16, "K": 16, "PRECISION": "ieee", "STEPS": 2}),
    (integer_dot, [I8, I8, I32], {"M": 64, "N": 32, "K": 64}),
    (batched_dot, ["*fp16", "*fp16", F32], {"B": 4, "M": 32}),
    (dequantized_dot, [BF, I8, F32, BF, "i32"], {"M": 64, "N": 64, "K": 64}),
    (scaled_dot, [I8, I8, "*fp8e5", I8, F32], {"M": 64, "N": 32, "K": 64}),
    (descriptors, [F32, F32, I32, "i32", "i32"], {"B": 32}),
    (residual, [BF, BF, BF, BF, "i32"], {"M": 128, "N": 64, "K": 64}),
]


def _name(case) -> str:
    function, types, constants = case
    return "-".join([function.fn.__name__, types[0].strip("*"), *map(str, constants.values())])


@pytest.mark.parametrize("capability", TARGETS)
@pytest.mark.parametrize("case", CASES, ids=_name)
def test_verified_after_every_pass(case, capability):
    function, types, constants = case
    module = ttgir(function, types, capability, **constants)
    text = str(module)
    assert "tensor<" not in text or "#layout" in text
    assert "dot_scaled" not in text and "make_descriptor" not in text


@pytest.mark.parametrize("num_warps", (1, 2, 16, 32))
@pytest.mark.parametrize("case", [CASES[2], CASES[3], CASES[7], CASES[11], CASES[20]], ids=_name)
def test_any_number_of_warps(case, num_warps):
    function, types, constants = case
    for capability in (80, 90):
        ttgir(function, types, capability, num_warps=num_warps, **constants)
