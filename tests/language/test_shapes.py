"""Everything that moves elements: reshape, transpose, join and split, gather, flip, broadcast, sort, histogram."""

import numpy as np
import pytest
from language_harness import empty, jit, launch, numbers, reports, sample

import tilewright.language as tl


@jit
def shape_kernel(x, out, M: tl.constexpr, N: tl.constexpr, OP: tl.constexpr):
    v = tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    if OP == "trans":
        r = tl.trans(v)
    elif OP == ".T":
        r = v.T
    elif OP == "permute":
        r = tl.permute(v, (1, 0))
    elif OP == "reshape":
        r = tl.reshape(v, (N // 2, M * 2))
    elif OP == "rank4":
        r = v.reshape(2, M // 2, N // 4, 4).permute(3, 1, 0, 2)
    elif OP == "ravel":
        r = tl.ravel(v)
    elif OP == "flip":
        r = tl.flip(v, 1)
    elif OP == "flip0":
        r = tl.flip(v, 0)
    elif OP == "join":
        r = tl.join(v, v + 1)
    elif OP == "interleave":
        r = tl.interleave(v, v + 1)
    elif OP == "split":
        a, b = tl.split(v.reshape(M, N // 2, 2))
        r = a * 100 + b
    elif OP == "cat":
        r = tl.cat(v, v + 1, dim=1)
    elif OP == "expand":
        r = tl.expand_dims(v, (0, -1))
    elif OP == "broadcast":
        a, b = tl.broadcast(v, tl.arange(0, N))
        r = a + b
    elif OP == "broadcast_to":
        r = tl.expand_dims(v, 0).broadcast_to(4, M, N)
    else:
        r = tl.squeeze(tl.unsqueeze(v, 1), 1)
    flat = tl.ravel(r)
    tl.store(out + tl.arange(0, flat.numel), flat)


REFERENCES = {
    "trans": lambda v: v.T,
    ".T": lambda v: v.T,
    "permute": lambda v: v.T,
    "reshape": lambda v: v,
    "rank4": lambda v: v.reshape(2, v.shape[0] // 2, v.shape[1] // 4, 4).transpose(3, 1, 0, 2),
    "ravel": lambda v: v,
    "flip": lambda v: v[:, ::-1],
    "flip0": lambda v: v[::-1],
    "join": lambda v: np.stack([v, v + 1], -1),
    "interleave": lambda v: np.stack([v, v + 1], -1),
    "split": lambda v: v[:, ::2] * 100 + v[:, 1::2],
    "cat": lambda v: np.concatenate([v, v + 1], 1),
    "expand": lambda v: v,
    "broadcast": lambda v: v + np.arange(v.shape[1]),
    "broadcast_to": lambda v: np.stack([v] * 4),
    "squeeze": lambda v: v,
}


@pytest.mark.parametrize("shape", [(8, 16), (32, 4), (2, 64)])
@pytest.mark.parametrize("op", sorted(REFERENCES))
def test_shape_operations(op, shape):
    x = np.random.default_rng(1).integers(-50, 50, shape).astype(np.int32)
    want = REFERENCES[op](x)
    out = np.zeros(want.size, np.int32)
    launch(shape_kernel, (1,), x, out, *shape, op)
    assert np.array_equal(out, want.ravel())


@jit
def scalar_shape_kernel(out):
    pair = tl.join(tl.full((), 3, tl.int32), 4)
    a, b = tl.split(pair)
    one = tl.full([1], 7, tl.int32)
    tl.store(out, a * 10 + b)
    tl.store(out + 1, one.item())
    tl.store(out + 2, tl.reshape(one, ()))
    tl.store(out + tl.arange(4, 8), tl.full([4], b, tl.int32))


def test_scalars_and_blocks_of_one():
    out = np.zeros(8, np.int32)
    launch(scalar_shape_kernel, (1,), out)
    assert out.tolist() == [34, 7, 7, 0, 4, 4, 4, 4]


@jit
def range_kernel(out, START: tl.constexpr, END: tl.constexpr):
    i = tl.arange(START, END)
    tl.store(out + i - START, i)


@pytest.mark.parametrize("start", [-8, -16, -5, 3, -(2**31), 2**31 - 16])
def test_ranges_start_anywhere(start):
    out = np.zeros(16, np.int32)
    launch(range_kernel, (1,), out, start, start + 16)
    assert np.array_equal(out, np.arange(start, start + 16))


@jit
def gather_kernel(x, index, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, AXIS: tl.constexpr):
    v = tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    if AXIS == 0:
        p = tl.arange(0, K)[:, None] * N + tl.arange(0, N)[None, :]
    else:
        p = tl.arange(0, M)[:, None] * K + tl.arange(0, K)[None, :]
    tl.store(out + p, tl.gather(v, tl.load(index + p), AXIS))


@pytest.mark.parametrize("dtype", [tl.int8, tl.float16, tl.float32, tl.int64], ids=str)
@pytest.mark.parametrize("axis", [0, 1])
def test_gather(axis, dtype):
    m, n, k = 8, 16, 32
    x = sample(dtype, m * n, 2).reshape(m, n)
    shape = (k, n) if axis == 0 else (m, k)
    index = np.random.default_rng(3).integers(0, x.shape[axis], shape).astype(np.int32)
    out = np.zeros(shape, x.dtype)
    launch(gather_kernel, (1,), x, index, out, m, n, k, axis)
    assert np.array_equal(out, np.take_along_axis(x, index.astype(np.int64), axis))


@jit
def sort_kernel(x, out, M: tl.constexpr, N: tl.constexpr, DESCENDING: tl.constexpr):
    p = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + p, tl.sort(tl.load(x + p), descending=DESCENDING))


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", [tl.int8, tl.uint16, tl.int32, tl.float16, tl.bfloat16, tl.float32, tl.int64], ids=str)
def test_sort(dtype, descending):
    for m, n in ((1, 4), (4, 64), (2, 256)):
        x, out = sample(dtype, m * n, 4), empty(m * n, dtype)
        launch(sort_kernel, (1,), x, out, m, n, descending)
        want = np.sort(numbers(x).reshape(m, n), axis=1)
        assert np.array_equal(numbers(out).reshape(m, n), want[:, ::-1] if descending else want)


def test_sort_keeps_nans_and_zeros():
    """Elements only change places: positive NaNs come last, and -0 before 0."""
    x = np.array([0.0, np.nan, -1.0, np.inf, -0.0, -np.inf, 1e-45, np.nan], np.float32)
    out = np.zeros(8, np.float32)
    launch(sort_kernel, (1,), x, out, 1, 8, False)
    want = np.array([-np.inf, -1.0, -0.0, 0.0, 1e-45, np.inf, np.nan, np.nan], np.float32)
    assert np.array_equal(out, want, equal_nan=True) and np.array_equal(np.signbit(out), np.signbit(want))


@jit
def topk_kernel(x, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    v = tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(out + tl.arange(0, M)[:, None] * K + tl.arange(0, K)[None, :], tl.topk(v, K))


def test_topk():
    x = np.random.default_rng(5).standard_normal((4, 64)).astype(np.float32)
    out = np.zeros((4, 8), np.float32)
    launch(topk_kernel, (1,), x, out, 4, 64, 8)
    assert np.array_equal(out, np.sort(x, axis=1)[:, :-9:-1])


@jit
def histogram_kernel(x, out, n, N: tl.constexpr, BINS: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    v = tl.load(x + i, mask=i < n, other=0)
    tl.store(out + tl.program_id(0) * BINS + tl.arange(0, BINS), tl.histogram(v, BINS, mask=i < n))


@pytest.mark.parametrize("bins", [2, 16, 128])
def test_histogram(bins):
    x = np.random.default_rng(6).integers(0, bins, 1000).astype(np.int32)
    out = np.zeros((4, bins), np.int32)
    launch(histogram_kernel, (4,), x, out, 1000, 256, bins)
    want = [np.bincount(x[i * 256 : (i + 1) * 256], minlength=bins) for i in range(4)]
    assert np.array_equal(out, want)


@jit
def swizzle_kernel(out_i, out_j, M: tl.constexpr, N: tl.constexpr, G: tl.constexpr):
    i = tl.arange(0, M)[:, None]
    j = tl.arange(0, N)[None, :]
    a, b = tl.swizzle2d(i, j, M, N, G)
    tl.store(out_i + i * N + j, a)
    tl.store(out_j + i * N + j, b)


def test_swizzle2d():
    out_i, out_j = np.zeros((8, 4), np.int32), np.zeros((8, 4), np.int32)
    launch(swizzle_kernel, (1,), out_i, out_j, 8, 4, 2)
    for i in range(8):
        for j in range(4):
            place = i * 4 + j
            group, rest = divmod(place, 8)
            assert (out_i[i, j], out_j[i, j]) == (group * 2 + rest % 2, rest // 2)


@jit
def bad_shape_kernel(OP: tl.constexpr):
    if OP == "arange":
        v = tl.arange(0, 3)
    elif OP == "order":
        v = tl.arange(4, 4)
    elif OP == "numel":
        v = tl.zeros((2048, 1024), tl.float32)
    elif OP == "full":
        v = tl.zeros((3,), tl.float32)
    elif OP == "reshape":
        v = tl.arange(0, 8).reshape(2, 2)
    elif OP == "broadcast":
        v = tl.arange(0, 8)[:, None] + tl.arange(0, 4)[:, None]
    elif OP == "index":
        v = tl.arange(0, 8)[0]
    else:
        v = tl.arange(0, 8)[:, :]
    tl.static_assert(v is not None)


@pytest.mark.parametrize(
    ("op", "message"),
    [("arange", "power of 2"), ("order", "greater than"), ("numel", "exceeds"), ("full", "power of 2"), ("reshape", "reshape"),
     ("broadcast", "broadcast|incompatible"), ("index", "unsupported tensor index"), ("rank", "too many indices")],
)  # fmt: skip
def test_bad_shapes(op, message):
    reports(message, bad_shape_kernel, op)
