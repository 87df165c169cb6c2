"""Matrix products: operand types, accumulators, precisions, batches, scaled formats."""

import numpy as np
import pytest
from language_harness import jit, launch, numbers, of, reports

import tilewright.language as tl


@jit
def dot_kernel(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, OUT: tl.constexpr, PRECISION: tl.constexpr):
    m = tl.arange(0, M)[:, None]
    n = tl.arange(0, N)[None, :]
    x = tl.load(a + m * K + tl.arange(0, K)[None, :])
    y = tl.load(b + tl.arange(0, K)[:, None] * N + n)
    tl.store(c + m * N + n, tl.dot(x, y, input_precision=PRECISION, out_dtype=OUT))


def whole(shape, dtype, seed, top=4):
    """Small whole numbers, whose products are exact in every format."""
    low = 0 if dtype.is_int_unsigned() else -top
    return of(np.random.default_rng(seed).integers(low, top + 1, shape), dtype)


@pytest.mark.parametrize("shape", [(16, 16, 16), (32, 64, 32), (64, 32, 128)])
@pytest.mark.parametrize("dtype", [tl.float16, tl.bfloat16, tl.float32], ids=str)
def test_float_operands(dtype, shape):
    m, n, k = shape
    a, b = whole((m, k), dtype, 1), whole((k, n), dtype, 2)
    c = np.zeros((m, n), np.float32)
    launch(dot_kernel, (1,), a, b, c, m, n, k, tl.float32, None)
    assert np.array_equal(c, numbers(a).astype(np.float64) @ numbers(b).astype(np.float64))


def test_fp64():
    a, b = np.random.default_rng(3).standard_normal((2, 16, 16))
    c = np.zeros((16, 16))
    launch(dot_kernel, (1,), a, b, c, 16, 16, 16, tl.float64, None)
    np.testing.assert_allclose(c, a @ b, rtol=1e-12, atol=1e-12)


def test_fp16_result():
    a, b = whole((32, 32), tl.float16, 4), whole((32, 32), tl.float16, 5)
    c = np.zeros((32, 32), np.float16)
    launch(dot_kernel, (1,), a, b, c, 32, 32, 32, tl.float16, None)
    assert np.array_equal(c, numbers(a).astype(np.float32) @ numbers(b).astype(np.float32))


@pytest.mark.parametrize(
    ("left", "right"), [(tl.float8e5, tl.float8e5), (tl.float8e4nv, tl.float8e4nv), (tl.float8e4nv, tl.float8e5)], ids=str
)
def test_fp8_operands(left, right):
    a, b = whole((32, 64), left, 6), whole((64, 32), right, 7)
    c = np.zeros((32, 32), np.float32)
    launch(dot_kernel, (1,), a, b, c, 32, 32, 64, tl.float32, None)
    assert np.array_equal(c, numbers(a) @ numbers(b))


@pytest.mark.parametrize("dtype", [tl.int8, tl.uint8], ids=str)
def test_integer_operands_are_exact(dtype):
    a, b = whole((32, 128), dtype, 8, 127), whole((128, 32), dtype, 9, 127)
    a[0], b[:, 0] = (-128, -128) if dtype is tl.int8 else (255, 255)
    c = np.zeros((32, 32), np.int32)
    launch(dot_kernel, (1,), a, b, c, 32, 32, 128, tl.int32, None)
    assert np.array_equal(c, a.astype(np.int64) @ b.astype(np.int64))


@pytest.mark.parametrize(("precision", "tolerance"), [("tf32", 2e-2), ("tf32x3", 1e-4), ("ieee", 1e-5), ("bf16x3", 1e-3), ("bf16x6", 1e-4)])
def test_precisions_of_fp32(precision, tolerance):
    a, b = np.random.default_rng(10).standard_normal((2, 32, 32)).astype(np.float32)
    c = np.zeros((32, 32), np.float32)
    launch(dot_kernel, (1,), a, b, c, 32, 32, 32, tl.float32, precision)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, atol=tolerance)


@jit
def accumulate_kernel(a, b, c, K, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    m = tl.arange(0, M)[:, None]
    n = tl.arange(0, N)[None, :]
    acc = tl.load(c + m * N + n)
    for k in range(0, K, BK):
        i = k + tl.arange(0, BK)
        x = tl.load(a + m * K + i[None, :], mask=i[None, :] < K, other=0)
        y = tl.load(b + i[:, None] * N + n, mask=i[:, None] < K, other=0)
        acc = tl.dot(x, y, acc)
    tl.store(c + m * N + n, acc)


@pytest.mark.parametrize(("dtype", "acc"), [(tl.float16, np.float32), (tl.int8, np.int32), (tl.bfloat16, np.float32)], ids=str)
def test_accumulator_and_ragged_k(dtype, acc):
    a, b = whole((32, 100), dtype, 11), whole((100, 32), dtype, 12)
    c = np.random.default_rng(13).integers(-50, 50, (32, 32)).astype(acc)
    want = c + (numbers(a).astype(np.float64) @ numbers(b).astype(np.float64)).astype(acc)
    launch(accumulate_kernel, (1,), a, b, c, 100, 32, 32, 32)
    assert np.array_equal(c, want)


@jit
def transposed_kernel(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    x = tl.load(a + tl.arange(0, K)[:, None] * M + tl.arange(0, M)[None, :])
    y = tl.load(b + tl.arange(0, N)[:, None] * K + tl.arange(0, K)[None, :])
    s = tl.dot(x.T, y.T)
    t = tl.dot(tl.trans(s.to(tl.float16)), s.to(tl.float16))
    tl.store(c + tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :], t)


def test_products_of_transposes_and_of_products():
    a, b = whole((32, 16), tl.float16, 14, 1), whole((64, 32), tl.float16, 15, 1)
    c = np.zeros((64, 64), np.float32)
    launch(transposed_kernel, (1,), a, b, c, 16, 64, 32)
    s = a.T.astype(np.float64) @ b.T.astype(np.float64)
    assert np.array_equal(c, s.T @ s)


@jit
def dot_of_gathered_rows(a, rows, b, c, K, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    m, n, r = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BK)
    acc = tl.zeros((M, N), tl.float32)
    for k in range(0, K, BK):
        inside = k + r < K
        row = tl.load(rows + k + r, mask=inside, other=0)
        x = tl.load(a + m[:, None] * K + (k + r)[None, :], mask=inside[None, :], other=0.0)
        acc = tl.dot(x, tl.load(b + row[:, None] * N + n[None, :], mask=inside[:, None], other=0.0), acc)
    tl.store(c + m[:, None] * N + n[None, :], acc)


@pytest.mark.parametrize("k", [16, 64, 500, 1024])
def test_rows_by_index_in_a_loop(k):
    a, b = whole((64, k), tl.float16, 24), whole((700, 128), tl.float16, 25)
    rows = np.random.default_rng(26).integers(0, 700, k).astype(np.int32)
    c = np.zeros((64, 128), np.float32)
    launch(dot_of_gathered_rows, (1,), a, rows, b, c, k, 64, 128, 64)
    assert np.array_equal(c, numbers(a).astype(np.float32) @ numbers(b)[rows].astype(np.float32))


@jit
def batched_kernel(a, b, c, B: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i = tl.arange(0, B)[:, None, None]
    m = tl.arange(0, M)[None, :, None]
    n = tl.arange(0, N)[None, None, :]
    x = tl.load(a + (i * M + m) * K + tl.arange(0, K)[None, None, :])
    y = tl.load(b + (i * K + tl.arange(0, K)[None, :, None]) * N + n)
    tl.store(c + (i * M + m) * N + n, tl.dot(x, y))


def test_batches():
    a, b = whole((4, 16, 32), tl.float16, 16), whole((4, 32, 16), tl.float16, 17)
    c = np.zeros((4, 16, 16), np.float32)
    launch(batched_kernel, (1,), a, b, c, 4, 16, 16, 32)
    assert np.array_equal(c, a.astype(np.float64) @ b.astype(np.float64))


E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)


@jit
def scaled_kernel(
    a, a_scale, b, b_scale, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, A: tl.constexpr, B: tl.constexpr,
    GROUP: tl.constexpr,
):  # fmt: skip
    ka: tl.constexpr = K // 2 if A == "e2m1" else K
    kb: tl.constexpr = K // 2 if B == "e2m1" else K
    m = tl.arange(0, M)[:, None]
    n = tl.arange(0, N)[None, :]
    g = tl.arange(0, K // GROUP)[None, :]
    x = tl.load(a + m * ka + tl.arange(0, ka)[None, :])
    y = tl.load(b + tl.arange(0, kb)[:, None] * N + n)
    sx = tl.load(a_scale + m * (K // GROUP) + g)
    sy = None
    if b_scale is not None:
        sy = tl.load(b_scale + tl.arange(0, N)[:, None] * (K // GROUP) + g)
    tl.store(c + m * N + n, tl.dot_scaled(x, sx, A, y, sy, B))


def scaled_operand(shape, fmt, axis, seed):
    """(what the kernel gets, its values)."""
    rng = np.random.default_rng(seed)
    if fmt == "e2m1":
        codes = rng.integers(0, 16, shape)
        low, high = (codes[:, ::2], codes[:, 1::2]) if axis == 1 else (codes[::2], codes[1::2])
        return (low | high << 4).astype(np.uint8), E2M1[codes]
    dtype = {"e4m3": tl.float8e4nv, "e5m2": tl.float8e5, "bf16": tl.bfloat16, "fp16": tl.float16}[fmt]
    array = of(rng.integers(-4, 5, shape), dtype)
    return array, numbers(array)


@pytest.mark.parametrize(("left", "right"), [("e4m3", "e4m3"), ("e2m1", "e2m1"), ("e5m2", "bf16"), ("e2m1", "e4m3"), ("bf16", "e2m1")])
def test_scaled(left, right):
    m, n, k = 32, 32, 64
    a, x = scaled_operand((m, k), left, 1, 18)
    b, y = scaled_operand((k, n), right, 0, 19)
    rng = np.random.default_rng(20)
    sa, sb = rng.integers(124, 131, (m, k // 32)).astype(np.uint8), rng.integers(124, 131, (n, k // 32)).astype(np.uint8)
    b_scale = None if right in ("bf16", "fp16") else sb
    c = np.zeros((m, n), np.float32)
    launch(scaled_kernel, (1,), a, sa, b, b_scale, c, m, n, k, left, right, 32)
    x = x * np.repeat(2.0 ** (sa.astype(int) - 127), 32, 1)
    if b_scale is not None:
        y = y * np.repeat(2.0 ** (sb.astype(int) - 127), 32, 1).T
    np.testing.assert_allclose(c, x @ y, rtol=1e-5, atol=1e-4)


def test_scaled_by_fp8():
    m, n, k = 32, 32, 64
    a, x = scaled_operand((m, k), "e2m1", 1, 21)
    b, y = scaled_operand((k, n), "e2m1", 0, 22)
    scales = [of(np.random.default_rng(s).choice([0.5, 1.5, 2, 3], (m, k // 16)), tl.float8e4nv) for s in (23, 24)]
    c = np.zeros((m, n), np.float32)
    launch(scaled_kernel, (1,), a, scales[0], b, scales[1], c, m, n, k, "e2m1", "e2m1", 16)
    x, y = x * np.repeat(numbers(scales[0]), 16, 1), y * np.repeat(numbers(scales[1]), 16, 1).T
    np.testing.assert_allclose(c, x @ y, rtol=1e-5, atol=1e-4)


@jit
def matmul_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pm, pn = tl.program_id(0), tl.program_id(1)
    m = pm * BM + tl.arange(0, BM)
    n = pn * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    pa = a + m[:, None] * K + k[None, :]
    pb = b + k[:, None] * N + n[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for i in range(0, tl.cdiv(K, BK)):
        x = tl.load(pa, mask=(m[:, None] < M) & (k[None, :] < K - i * BK), other=0.0)
        y = tl.load(pb, mask=(k[:, None] < K - i * BK) & (n[None, :] < N), other=0.0)
        acc = tl.dot(x, y, acc)
        pa += BK
        pb += BK * N
    tl.store(c + m[:, None] * N + n[None, :], acc.to(c.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


@pytest.mark.parametrize("size", [(64, 64, 64), (100, 70, 90), (257, 129, 200)])
def test_matmul(size):
    m, n, k = size
    a, b = whole((m, k), tl.float16, 25, 2), whole((k, n), tl.float16, 26, 2)
    c = np.zeros((m, n), np.float16)
    launch(matmul_kernel, (-(-m // 64), -(-n // 32)), a, b, c, m, n, k, 64, 32, 32)
    assert np.array_equal(c, (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float16))


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [((16, 16), (32, 16), "not compatible|must be equal"), ((16, 8), (8, 16), "K >= 16")],
)
def test_shapes_that_do_not_fit(a, b, message):
    @jit
    def kernel(AM: tl.constexpr, AK: tl.constexpr, BK: tl.constexpr, BN: tl.constexpr):
        tl.dot(tl.zeros((AM, AK), tl.float16), tl.zeros((BK, BN), tl.float16))

    reports(message, kernel, *a, *b)


def test_operands_of_different_types_are_refused():
    @jit
    def kernel():
        tl.dot(tl.zeros((16, 16), tl.float16), tl.zeros((16, 16), tl.float32))

    reports("same dtype", kernel)


def test_accumulator_of_another_shape_is_refused():
    @jit
    def kernel():
        tl.dot(tl.zeros((16, 16), tl.float16), tl.zeros((16, 16), tl.float16), tl.zeros((16, 32), tl.float32))

    reports("acc", kernel)
