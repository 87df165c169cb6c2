"""The edges of what a kernel may be given: empty grids and arrays, blocks of one element, every rank, far offsets, lanes that are off."""

import math

import numpy as np
import pytest
from language_harness import FLOATS, INTEGERS, empty, jit, launch, numbers, of

import tilewright
import tilewright.language as tl


@jit
def count_kernel(out):
    tl.atomic_add(out, 1)


@pytest.mark.parametrize("grid", [(0,), (0, 3), (2, 0), (1, 2, 0), lambda meta: (0,)], ids=["0", "0x3", "2x0", "1x2x0", "function"])
def test_empty_grids_run_nothing(grid):
    out = np.zeros(1, np.int32)
    launch(count_kernel, grid, out)
    assert out[0] == 0


@jit
def copy_kernel(x, out, n, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out + i, tl.load(x + i, mask=i < n, other=-1), mask=i < n)


@pytest.mark.parametrize("dtype", [tl.int8, tl.float16, tl.float64], ids=str)
def test_arrays_without_elements(dtype):
    launch(copy_kernel, (1,), empty(0, dtype), empty(0, dtype), 0, 64)
    out = empty((3, 0), dtype)
    launch(copy_kernel, (2,), empty((0, 5), dtype), out, 0, 1)


@jit
def one_element_kernel(x, out):
    i = tl.arange(0, 1)
    v = tl.load(x + i)
    w = tl.load(x + i[:, None] + i[None, :])
    tl.store(out + i, v + tl.sum(v, 0) + tl.max(v, 0) + tl.cumsum(v, 0) + tl.argmax(v, 0))
    tl.store(out + 1 + i, tl.sort(v) + tl.flip(v) + tl.ravel(tl.trans(w)) + tl.sum(w, 1) + v.item())
    tl.store(out + 2 + i, tl.where(v > 0, v, -v) + tl.reshape(w, (1,)) + tl.broadcast_to(v, (1,)))
    tl.store(out + 3 + tl.arange(0, 2), tl.interleave(v, v + 1))
    tl.store(out + 5 + tl.arange(0, 2), tl.ravel(tl.join(v, v * 2)))
    tl.store(out + 7 + i, tl.gather(v, i, 0) + tl.associative_scan(v, 0, larger))


@jit
def larger(a, b):
    return tl.maximum(a, b)


@pytest.mark.parametrize("dtype", [tl.int32, tl.int64, tl.float32], ids=str)
def test_blocks_of_one_element(dtype):
    x, out = of([5], dtype), empty(8, dtype)
    launch(one_element_kernel, (1,), x, out)
    assert out.tolist() == [20, 25, 15, 5, 6, 5, 10, 10]


@jit
def ranked_kernel(x, out, sums, SHAPE: tl.constexpr, AXIS: tl.constexpr):
    n: tl.constexpr = product(SHAPE)
    v = tl.reshape(tl.load(x + tl.arange(0, n)), SHAPE)
    turned = tl.permute(v * 2 + 1, backwards(len(SHAPE)))
    tl.store(out + tl.arange(0, n), tl.ravel(turned))
    r = tl.sum(v, AXIS)
    if len(SHAPE) == 1:
        tl.store(sums, r)
    else:
        tl.store(sums + tl.arange(0, n // SHAPE[AXIS]), tl.ravel(r))


@tilewright.constexpr_function
def backwards(n):
    return tuple(range(n))[::-1]


@tilewright.constexpr_function
def product(shape):
    return math.prod(shape)


@pytest.mark.parametrize(
    ("shape", "axis"),
    [((8,), 0), ((2, 4), 0), ((4, 1, 2), 2), ((2, 2, 4), 1), ((2, 1, 4, 2), 3), ((1, 2, 4, 8), 0), ((2, 4, 1, 2, 2), 1), ((2,) * 5, 4)],
    ids=str,
)
def test_ranks_one_to_five(shape, axis):
    x = np.arange(np.prod(shape), dtype=np.int32)
    out, sums = np.zeros_like(x), np.zeros(x.size // shape[axis], np.int32)
    launch(ranked_kernel, (1,), x, out, sums, shape, axis)
    assert np.array_equal(out, (x.reshape(shape) * 2 + 1).transpose().ravel())
    assert np.array_equal(sums, x.reshape(shape).sum(axis).ravel())


@jit
def scalar_kernel(x, out, a, b):
    v = tl.load(x)
    w = tl.load(x + a)
    tl.store(out, v * w + b)
    tl.store(out + 1, tl.where(v > w, v, w))
    tl.store(out + 2, tl.full((), 7, v.dtype))
    tl.store(out + 3, tl.reshape(tl.full((1, 1), 3, v.dtype), ()) + tl.maximum(v, w))


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS], ids=str)
def test_rank_zero(dtype):
    out = empty(4, dtype)
    launch(scalar_kernel, (1,), of([3, 0, 5], dtype), out, 2, 4)
    assert numbers(out).tolist() == [19, 5, 7, 8]


@jit
def far_kernel(x, out, rows, stride, N: tl.constexpr):
    far = rows.to(tl.int64) * stride
    i = tl.arange(0, N)
    base = x - far
    tl.store(out + i, tl.load(base + (far + i)))
    tl.store(out + N + i, tl.load((base + i) + far))
    lanes = (i + rows).to(tl.int64) * stride  # a tensor of far offsets, each its own
    tl.store(out + 2 * N + i, tl.load(x - i.to(tl.int64) * stride + (lanes - far)))
    tl.store(out + 3 * N + i, tl.load(x - 3000000000 + (i.to(tl.uint32) + 3000000000)))
    tl.store((out - far + 4 * N) + (far + i), i)


def test_offsets_beyond_32_bits():
    x, out = np.arange(64, dtype=np.int32) + 100, np.zeros(5 * 64, np.int32)
    launch(far_kernel, (1,), x, out, 1 << 20, 1 << 13, 64)
    assert np.array_equal(out.reshape(5, 64), [x, x, np.full(64, 100), x, np.arange(64)])


@jit
def far_program_kernel(x, out, N: tl.constexpr):
    on = tl.program_id(0) == 1
    row = tl.program_id(0).to(tl.int64) * 4294967296
    p = x - 4294967296 + row + tl.arange(0, N)
    tl.store(out + tl.arange(0, N), tl.load(p, mask=on), mask=on)


def test_far_programs():
    x, out = np.arange(16, dtype=np.int16), np.zeros(16, np.int16)
    launch(far_program_kernel, (2,), x, out, 16)
    assert np.array_equal(out, x)


@jit
def off_kernel(x, out, counts, n, N: tl.constexpr):
    i = tl.arange(0, N)
    on = i < n
    far = tl.where(on, i.to(tl.int64), 1 << 40)  # no memory there
    v = tl.load(x + far, mask=on, other=-7)
    tl.store(out + i, v)
    tl.store(out + N + far, v * 2, mask=on)
    old = tl.atomic_add(counts + far, 1, mask=on)
    tl.store(out + 2 * N + i, tl.where(on, old, -1))
    if n < 0:  # a scalar that is off
        tl.store(out + (1 << 40), 1)
    tl.store(out + (1 << 40), 1, mask=n < 0)
    tl.store(out + 3 * N, tl.load(x + (1 << 40), mask=n < 0, other=9))
    tl.store(out + 3 * N + 1, tl.load(x - (1 << 40), mask=False, other=11))
    tl.atomic_xchg(out - (1 << 40), 1, mask=n < 0)


@pytest.mark.parametrize("n", [0, 1, 5, 64])
def test_lanes_that_are_off_touch_no_memory(n):
    x, out, counts = np.arange(64, dtype=np.int32), np.zeros(3 * 64 + 2, np.int32), np.full(64, 40, np.int32)
    launch(off_kernel, (1,), x, out, counts, n, 64)
    on = np.arange(64) < n
    assert np.array_equal(out[:64], np.where(on, x, -7))
    assert np.array_equal(out[64:128], np.where(on, x * 2, 0))
    assert np.array_equal(out[128:192], np.where(on, 40, -1))
    assert out[192:].tolist() == [9, 11]
    assert np.array_equal(counts, 40 + on)


@jit
def others_kernel(x, y, out, N: tl.constexpr):
    i = tl.arange(0, N)
    on = i % 2 == 0
    tl.store(out + i, tl.load(x + i, mask=on, other=2.75))  # a number becomes what a cast of it gives
    tl.store(out + N + i, tl.load(x + i, mask=on, other=tl.load(y + i)))
    tl.store(out + 2 * N + i, tl.load(x + i, mask=on, other=tl.load(y)))
    tl.store(out + 3 * N + i, tl.where(on, tl.load(x + i, mask=on), 1))  # without `other` the rest is undefined, and not used
    tl.store(out + 4 * N + i, tl.load(x + i, mask=True, other=5))
    tl.store(out + 5 * N + i, tl.load(x + i, mask=False, other=5))
    tl.store(out + 6 * N + i, tl.load(x + i, mask=tl.load(y) > 0, other=6))


@pytest.mark.parametrize("dtype", [tl.int8, tl.int32, tl.uint16, tl.float16, tl.bfloat16, tl.float32], ids=str)
def test_other(dtype):
    x, y, out = of(np.arange(32), dtype), np.float32(np.arange(32) + 40.5), empty(7 * 32, dtype)
    launch(others_kernel, (1,), x, y, out, 32)
    on = np.arange(32) % 2 == 0
    others = [numbers(of(v, dtype)) for v in (np.full(32, 2.75), y, np.full(32, 40.5), np.ones(32))]
    want = [np.where(on, numbers(x), other) for other in others] + [numbers(x), np.full(32, 5), numbers(x)]
    assert np.array_equal(numbers(out).reshape(7, 32), want)
