"""Tensor descriptors, made in the kernel and on the host: bounds, padding, gather and scatter, reductions into memory."""

import numpy as np
import pytest
from language_harness import INTERPRETED, empty, jit, launch, numbers, of, reports, sample

import tilewright
import tilewright.language as tl
from tilewright.tools.tensor_descriptor import TensorDescriptor


@pytest.fixture(autouse=True)
def allocator():
    if not INTERPRETED:
        import torch

        tilewright.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device="cuda"))


@jit
def copy_kernel(x, out, M, N, BM: tl.constexpr, BN: tl.constexpr, PADDING: tl.constexpr):
    source = tl.make_tensor_descriptor(x, shape=[M, N], strides=[N, 1], block_shape=[BM, BN], padding_option=PADDING)
    target = tl.make_tensor_descriptor(out, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    row, col = tl.program_id(0) * BM, tl.program_id(1) * BN
    target.store([row, col], source.load([row, col]))


@pytest.mark.parametrize("dtype", [tl.int8, tl.int32, tl.float16, tl.bfloat16, tl.float32, tl.float64, tl.float8e5], ids=str)
def test_copy(dtype):
    m, n = 20, 48
    x, out = sample(dtype, m * n, 1), empty(m * n, dtype)
    launch(copy_kernel, (3, 2), x, out, m, n, 8, 32, "zero")
    assert np.array_equal(numbers(out), numbers(x))


@jit
def outside_kernel(x, out, M, N, row, col, BM: tl.constexpr, BN: tl.constexpr, PADDING: tl.constexpr):
    desc = tl.make_tensor_descriptor(x, shape=[M, N], strides=[N, 1], block_shape=[BM, BN], padding_option=PADDING)
    v = desc.load([row, col])
    tl.store(out + tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :], v)


@pytest.mark.parametrize("padding", ["zero", "nan"])
@pytest.mark.parametrize(("row", "col"), [(0, 0), (6, 28), (-3, -4), (10, 32), (100, 0)])
def test_loads_outside_are_padding(row, col, padding):
    x = np.random.default_rng(2).standard_normal((10, 32)).astype(np.float32)
    out = np.zeros((8, 8), np.float32)
    launch(outside_kernel, (1,), x, out, 10, 32, row, col, 8, 8, padding)
    want = np.full((8, 8), np.nan if padding == "nan" else 0, np.float32)
    for i in range(8):
        for j in range(8):
            if 0 <= row + i < 10 and 0 <= col + j < 32:
                want[i, j] = x[row + i, col + j]
    assert np.array_equal(out, want, equal_nan=True)


@jit
def column_kernel(x, out, M, N, COL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    desc = tl.make_tensor_descriptor(x, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    tl.store(out + tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :], desc.load([0, COL]))


@pytest.mark.parametrize("column", [-4, 1, 8, 12])
@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float32])
def test_columns_that_are_no_multiples_of_16_bytes(dtype, column):
    m, n, bm, bn = 8, 64, 8, 32
    x = np.arange(1, m * n + 1).reshape(m, n).astype(dtype)
    out = np.zeros((bm, bn), dtype)
    launch(column_kernel, (1,), x, out, m, n, column, bm, bn)
    padded = np.pad(x, ((0, 0), (4, 64)))
    assert np.array_equal(out, padded[:, column + 4 : column + 4 + bn])


@jit
def fill_kernel(out, M, N, STRIDE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    desc = tl.make_tensor_descriptor(out, shape=[M, N], strides=[STRIDE, 1], block_shape=[BM, BN])
    for c in range(0, N, BN):
        desc.store([0, c], tl.full([BM, BN], 7, out.dtype.element_ty))


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.float32])
def test_stores_outside_are_dropped(dtype):
    out = np.full((32, 256), 99, dtype)
    launch(fill_kernel, (1,), out, 30, 210, 256, 32, 64)
    want = np.full((32, 256), 99)
    want[:30, :210] = 7
    assert np.array_equal(out, want)


@jit
def host_kernel(source, target, BM: tl.constexpr, BN: tl.constexpr):
    for i in range(0, source.shape[0], BM):
        target.store([i, 0], source.load([i, 0]) * 2)


def test_host_descriptors():
    x = np.random.default_rng(3).standard_normal((20, 16)).astype(np.float32)
    out = np.zeros_like(x)
    source, target = (TensorDescriptor.from_tensor(a, [8, 16]) for a in (x, out))
    launch(host_kernel, (1,), source, target, 8, 16)
    assert np.array_equal(out, 2 * x)


@jit
def rank3_kernel(x, out, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [A, B, C], [B * C, C, 1], [2, 4, C])
    target = tl.make_tensor_descriptor(out, [A, B, C], [B * C, C, 1], [2, 4, C])
    for i in range(0, A, 2):
        for j in range(0, B, 4):
            tl.store_tensor_descriptor(target, [i, j, 0], tl.load_tensor_descriptor(source, [i, j, 0]) + 1)


def test_rank_three():
    x = np.arange(3 * 8 * 16, dtype=np.float32).reshape(3, 8, 16)
    out = np.zeros_like(x)
    launch(rank3_kernel, (1,), x, out, 3, 8, 16)
    assert np.array_equal(out, x + 1)


@jit
def reduce_kernel(x, out, M, N, BM: tl.constexpr, BN: tl.constexpr, OP: tl.constexpr):
    desc = tl.make_tensor_descriptor(out, [M, N], [N, 1], [BM, BN])
    v = tl.load(x + tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :])
    if OP == "add":
        desc.atomic_add([0, 0], v)
    elif OP == "min":
        desc.atomic_min([0, 0], v)
    elif OP == "max":
        desc.atomic_max([0, 0], v)
    elif OP == "and":
        desc.atomic_and([0, 0], v)
    elif OP == "or":
        desc.atomic_or([0, 0], v)
    else:
        desc.atomic_xor([0, 0], v)


@pytest.mark.parametrize("op", ["add", "min", "max", "and", "or", "xor"])
@pytest.mark.parametrize("dtype", [tl.int32, tl.uint32], ids=str)
def test_reductions_into_memory(dtype, op):
    x, out = sample(dtype, 64, 4).reshape(8, 8), sample(dtype, 48, 5).reshape(6, 8)
    before = out.copy()
    launch(reduce_kernel, (1,), x, out, 6, 8, 8, 8, op)
    function = {
        "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    }[op]  # fmt: skip
    assert np.array_equal(out, function(before, x[:6]))


@pytest.mark.parametrize("dtype", [tl.float32, tl.float16, tl.bfloat16], ids=str)
def test_float_additions_into_memory(dtype):
    x, out = of(np.arange(128).reshape(8, 16) % 7, dtype), of(np.full((8, 16), 2), dtype)
    launch(reduce_kernel, (4,), x, out, 8, 16, 8, 16, "add")
    assert np.array_equal(numbers(out), 2 + 4 * (np.arange(128).reshape(8, 16) % 7))


@jit
def gather_kernel(x, rows, out, M, N: tl.constexpr, R: tl.constexpr, BN: tl.constexpr, SCATTER: tl.constexpr):
    index = tl.load(rows + tl.arange(0, R))
    p = tl.arange(0, R)[:, None] * BN + tl.arange(0, BN)[None, :]
    desc = tl.make_tensor_descriptor(x, [M, N], [N, 1], [1, BN])
    if SCATTER:
        desc.scatter(tl.load(out + p), index, 8)
    else:
        tl.store(out + p, desc.gather(index, 8))


def test_gather_and_scatter():
    rng = np.random.default_rng(6)
    x = rng.standard_normal((20, 32)).astype(np.float32)
    rows = np.array([3, 0, 19, 7, 25, 5, 3, 11], np.int32)  # row 25 lies outside
    out = np.zeros((8, 16), np.float32)
    launch(gather_kernel, (1,), x, rows, out, 20, 32, 8, 16, False)
    padded = np.vstack([x, np.zeros((8, 32), np.float32)])
    assert np.array_equal(out, padded[rows, 8:24])

    values = rng.standard_normal((8, 16)).astype(np.float32)
    rows[6] = 4  # all different
    want = x.copy()
    for i, row in enumerate(rows):
        if row < 20:
            want[row, 8:24] = values[i]
    launch(gather_kernel, (1,), x, rows, values, 20, 32, 8, 16, True)
    assert np.array_equal(x, want)


@jit
def bad_kernel(x, STRIDE: tl.constexpr, LAST: tl.constexpr, BN: tl.constexpr):
    desc = tl.make_tensor_descriptor(x, [8, 16], [STRIDE, LAST], [8, BN])
    desc.store([0, 0], tl.zeros([8, BN], tl.float32))


@pytest.mark.parametrize(("stride", "last", "block", "message"), [(16, 2, 16, "last dim"), (17, 1, 16, "16 bytes"), (16, 1, 2, "16 bytes")])
def test_bad_descriptors(stride, last, block, message):
    reports(message, bad_kernel, np.zeros(256, np.float32), stride, last, block)
